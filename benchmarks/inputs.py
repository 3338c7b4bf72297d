"""Inputs of benchmarks: photos, drawings with objects on them, objects to insert, data beside the repository."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np

from benchmarks.figures import Absent
from instar.datasets import dataset
from instar.image import read_image
from instar.warp import Size, Warp

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Where photos of COCO and cut-out objects are looked for, unless another place is named."""
OBJECTS = DATA / "coco-mini" / "annotations" / "instances_train2017.json"
CUTOUTS = DATA / "cutouts"


def existing(path: Path, what: str, option: str) -> Path:
    """A path that is there."""
    if not path.exists():
        raise Absent(f"{what}. {path} is not there; name another place with {option}")
    return path


def photos(folder: Path, count: int, size: Size) -> Path:
    """A folder of photos with people in them, each turned a little."""
    try:
        sources = [read_image(case.path) for case in dataset("sample-photos").cases() if case.path]
    except FileNotFoundError as error:
        raise Absent(f"photos of people. {error}") from None
    folder.mkdir()
    for number in range(count):
        image = sources[number % len(sources)]
        turned = image.warped(Warp.rotation(image.size, (number * 7) % 15 - 7))
        pixels = turned.warped(Warp.resize(image.size, size)).pixels
        cv2.imwrite(str(folder / f"{number:04d}.jpg"), cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR))
    return folder


def drawings(folder: Path, count: int, size: Size) -> Path:
    """A folder of grey drawings, each with two red rectangles, and `instances.json`, which says where they are."""
    folder.mkdir()
    width, height = size
    boxes = [(width // 8, height // 4, width // 4, height // 2), (width * 5 // 8, height // 4, width // 4, height // 2)]
    for number in range(count):
        pixels = np.full((height, width, 3), 90 + number, np.uint8)
        for x, y, wide, high in boxes:
            pixels[y : y + high, x : x + wide] = (0, 0, 255)
        cv2.imwrite(str(folder / f"{number:04d}.png"), pixels)
    truth = {
        "images": [
            {"id": number + 1, "file_name": f"{number:04d}.png", "width": width, "height": height}
            for number in range(count)
        ],
        "categories": [{"id": 1, "name": "book"}],
        "annotations": [
            {"id": 10 * number + place + 1, "image_id": number + 1, "category_id": 1, "iscrowd": 0}
            | {"bbox": list(box), "area": box[2] * box[3]}
            for number in range(count)
            for place, box in enumerate(boxes)
        ],
    }
    (folder / "instances.json").write_text(json.dumps(truth), "utf-8")
    return folder


def cutouts(folder: Path) -> Path:
    """A pool of two objects to insert: a disc and a wide ellipse."""
    folder.mkdir()
    for label, axes in (("ball", (20, 20)), ("plate", (28, 12))):
        pixels = np.zeros((64, 64, 4), np.uint8)
        cv2.ellipse(pixels, (32, 32), axes, 0, 0, 360, (200, 120, 40, 255), -1)
        cv2.imwrite(str(folder / f"{label}.png"), pixels)
    return folder
