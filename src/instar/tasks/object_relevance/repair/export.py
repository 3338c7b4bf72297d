"""A training set as a folder that COCO's and YOLO's readers both understand.

images/train/…  images/val/…     the images: the original files, follow-ups as PNG
labels/train/…  labels/val/…     YOLO: a text file for each image
data.yaml                        YOLO: what is where
instances_train.json  instances_val.json     COCO
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from instar.case import Case, read_input
from instar.datasets import Dataset
from instar.image import Image
from instar.outputs.detections import Detections
from instar.remote import address_in

LABELS = "instances_train.json"
VALIDATION = "instances_val.json"
NO_VALIDATION = (
    "There is no validation set: val names the images that are trained on, so what a trainer measures there says "
    "nothing of other images, and training cannot stop in time."
)

_COPIED = {".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"}
"""Endings that every trainer reads; images of another kind are written anew."""


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """An image with its labels. `path` is its file where it is unchanged; `origin` goes with it into COCO's file."""

    name: str
    truth: Detections
    image: Image
    path: str | None = None
    origin: Mapping[str, str | int] = field(default_factory=dict)


def examples(cases: Iterable[Case]) -> Iterator[Example]:
    """The images of a dataset as they are."""
    for case in cases:
        image, _ = read_input(case)
        if not isinstance(case.truth, Detections) or not isinstance(image, Image):
            raise ValueError(f"case {case.id!r} has no annotated objects; training needs labels")
        on_disk = case.path is not None and address_in(case.path) is None
        whole = case.path if on_disk and case.frame is None and case.crop is None else None
        yield Example(case.id, case.truth, image, whole, {"case": case.id})


def export(
    folder: Path,
    training: Iterable[Example],
    validation: Dataset | None = None,
    *,
    classes: Mapping[int, str] | None = None,
) -> Path:
    """Write a training set, and the validation set where there is one, into a new folder.

    It appears whole or not at all. `classes` are numbered as they are, also those that no image shows; others come
    after them. Without any, classes are numbered in the order of their names.
    """
    if folder.exists():
        raise FileExistsError(f"{folder} is there already; give another name, or remove it")

    folder.parent.mkdir(parents=True, exist_ok=True)
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)  # of a killed writer
    try:
        sets = {"train": _write_images(part, "train", training)}
        if validation is not None:
            sets["val"] = _write_images(part, "val", examples(validation.cases()))
        labels = {label for entries in sets.values() for _, truth, _ in entries for label in truth.labels}
        listed = _numbered(classes or {}, labels)
        in_yolo = _in_yolo(listed)
        for split, entries in sets.items():
            _write_coco(part / f"instances_{split}.json", entries, listed)
            _write_yolo(part / "labels" / split, entries, in_yolo)
        (part / "data.yaml").write_text(_description(in_yolo, validated=validation is not None), "utf-8")
        part.replace(folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return folder


def classes_of(training: Dataset, validation: Dataset | None, model: Sequence[str] | None = None) -> dict[int, str]:
    """The classes of a training set by their numbers: the model's in its order, else those that the dataset lists.

    Classes that only the validation set lists come after the dataset's, never after the model's. Raises ValueError
    where the model lists a name twice, or does not know a class that an image of either set shows.
    """
    if model is not None:
        _check_known(model, [training] if validation is None else [training, validation])
        return dict(enumerate(model))
    classes = dict(training.classes)
    for label in validation.classes.values() if validation is not None and classes else ():
        if label not in classes.values():
            classes[max(classes) + 1] = label
    return classes


def _check_known(model: Sequence[str], sets: Iterable[Dataset]) -> None:
    """Every class that an image shows has one number of the model's: with one more it would get a new last layer."""
    doubled = sorted({label for label in model if model.count(label) > 1})
    if doubled:
        raise ValueError(f"classes: the model lists {', '.join(map(repr, doubled))} more than once")
    for each in sets:
        truths = (case.truth for case in each.cases())
        shown = {label for truth in truths if isinstance(truth, Detections) for label in truth.labels}
        unknown = sorted(shown - set(model))
        if unknown:
            raise ValueError(
                f"classes: the model does not know {', '.join(map(repr, unknown))} of {each.name}; it knows "
                f"{', '.join(map(repr, model))}"
            )


def _numbered(classes: Mapping[int, str], labels: set[str]) -> dict[int, str]:
    """The classes in the order of their numbers; labels that are not among them come last, by name."""
    listed = dict(sorted(classes.items()))
    for label in sorted(labels - set(listed.values())):
        listed[max(listed, default=0) + 1] = label
    return listed


def _in_yolo(listed: Mapping[int, str]) -> dict[int, str]:
    """YOLO numbers classes from 0 without a gap. A list from 0 keeps its numbers, any other keeps its order."""
    if 0 not in listed:
        return dict(enumerate(listed.values()))
    return {number: listed.get(number, f"unused {number}") for number in range(max(listed) + 1)}


def _description(classes: Mapping[int, str], *, validated: bool) -> str:
    # json is YAML: names may hold any sign
    names = "".join(f"  {number}: {json.dumps(label, ensure_ascii=False)}\n" for number, label in classes.items())
    val = "val: images/val\n" if validated else f"# {NO_VALIDATION}\nval: images/train\n"
    return f"train: images/train\n{val}names:\n{names}"


Entry = tuple[dict[str, str | int], Detections, tuple[int, int]]
"""What COCO says of an image, its labels, its size."""


def _write_images(part: Path, split: str, written: Iterable[Example]) -> list[Entry]:
    """Write the images. Their names are numbers and as much of the old name as every file system takes."""
    folder = part / "images" / split
    folder.mkdir(parents=True)
    entries: list[Entry] = []
    for number, one in enumerate(written, start=1):
        copied = one.path is not None and Path(one.path).suffix.lower() in _COPIED
        stem = re.sub(r"[^A-Za-z0-9.-]+", "_", one.name if copied else Path(one.name).stem)[-80:].strip("_.")
        name = f"{number:06d}_{stem}" if copied else f"{number:06d}_{stem}.png"
        if copied:
            assert one.path is not None
            shutil.copyfile(one.path, folder / name)
        elif not cv2.imwrite(str(folder / name), cv2.cvtColor(one.image.pixels, cv2.COLOR_RGB2BGR)):
            raise OSError(f"{folder / name} could not be written")
        width, height = one.image.size
        entry = {"id": number, "file_name": name, "width": width, "height": height, **one.origin}
        entries.append((entry, one.truth, one.image.size))
    return entries


def _write_coco(path: Path, entries: list[Entry], classes: Mapping[int, str]) -> None:
    numbers = {label: number for number, label in classes.items()}
    annotations: list[dict[str, object]] = []
    for image, truth, _ in entries:
        for number, (box, label) in enumerate(zip(truth.boxes.astype(np.float64), truth.labels, strict=True)):
            entry = coco_annotation(len(annotations) + 1, image["id"], numbers[label], box)
            if truth.masks is not None:
                mask = truth.masks[number]
                entry |= {"segmentation": _runs(mask), "area": int(mask.sum())}
            annotations.append(entry)
    categories = [{"id": number, "name": label} for number, label in classes.items()]
    content = {"images": [image for image, _, _ in entries], "annotations": annotations, "categories": categories}
    path.write_text(json.dumps(content, ensure_ascii=False), "utf-8")


def coco_annotation(number: int, image: int | str, category: int, box: npt.NDArray[np.float64]) -> dict[str, object]:
    x0, y0, x1, y1 = box.tolist()
    place = {"bbox": [x0, y0, x1 - x0, y1 - y0], "area": (x1 - x0) * (y1 - y0)}
    return {"id": number, "image_id": image, "category_id": category, **place, "iscrowd": 0}


def _runs(mask: npt.NDArray[np.bool_]) -> dict[str, object]:
    """Plain run lengths, down the columns, beginning with what is not inside."""
    flat = np.concatenate([[False], mask.T.ravel()])
    ends = np.flatnonzero(np.diff(flat)).tolist()
    counts = np.diff([0, *ends, mask.size]).tolist()
    return {"size": list(mask.shape), "counts": counts}


def _write_yolo(folder: Path, entries: list[Entry], classes: Mapping[int, str]) -> None:
    numbers = {label: number for number, label in classes.items()}
    folder.mkdir(parents=True)
    for image, truth, (width, height) in entries:
        lines = []
        frame = np.array([width, height] * 2, np.float64)
        for box, label in zip(np.clip(truth.boxes.astype(np.float64), 0, frame) / frame, truth.labels, strict=True):
            x0, y0, x1, y1 = box.tolist()
            lines.append(f"{numbers[label]} {(x0 + x1) / 2:.8f} {(y0 + y1) / 2:.8f} {x1 - x0:.8f} {y1 - y0:.8f}\n")
        (folder / f"{Path(str(image['file_name'])).stem}.txt").write_text("".join(lines), "utf-8")
