"""Average precision of detectors by COCO's own evaluator: `pip install pycocotools`.

    python -m benchmarks.detectors [--small] [--write] [--annotations instances.json] [--images FOLDER] [--systems …]

Each system answers every image of a file in COCO's format once. What it finds is matched with the truth by name, and
compared by pycocotools, crowds and all. AP is the mean over intersections over union of 0.50 to 0.95, AP50 that at 0.50
alone. The lowest floor gives the whole curve: `'efficientdet-lite0(floor=0)'`.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import main
from benchmarks.figures import Absent, Figures, Row
from benchmarks.inputs import DATA, OBJECTS, drawings, existing
from instar.datasets import dataset
from instar.image import read_image
from instar.outputs.detections import Detections
from instar.spelling import spell_value
from instar.systems import MissingExtra, System, system

YOLOX = DATA / "models" / "yolox_nano.onnx"
DETECTORS = {
    **{name: f"{name}(floor=0)" for name in ("efficientdet-lite0", "efficientdet-lite1", "efficientdet-lite2")},
    "YOLOX-Nano": f"onnx-detector({spell_value(str(YOLOX))}, floor=0.001)",
}
"""Those that are measured where no others are named."""


def measure(
    small: bool = False, annotations: Path = OBJECTS, images: Path | None = None, systems: Sequence[str] = ()
) -> Figures:
    if find_spec("pycocotools") is None:
        raise Absent("COCO's evaluator (pip install pycocotools)")
    if small:
        with tempfile.TemporaryDirectory() as folder:
            truth = drawings(Path(folder) / "drawings", 2, (160, 120)) / "instances.json"
            return _figures({"red_rectangles": "benchmarks.detectors:red_rectangles"}, truth, None)
    existing(annotations, "COCO's JSON with instances", "--annotations")
    return _figures({name: name for name in systems} or DETECTORS, annotations, images)


def rows(figures: Figures) -> list[Row]:
    words = "; ".join(
        f"{name} AP {detector['AP']:.3f}, AP50 {detector['AP50']:.3f}"
        for name, detector in figures["detectors"].items()
    )
    return [Row(f"average precision of detectors on {figures['images']} photos of COCO, with the lowest floor", words)]


def red_rectangles(image: np.ndarray) -> Detections:
    """A detector of what is drawn in small mode: the red rectangle on either side."""
    width = image.shape[1]
    boxes = []
    for left, right in ((0, width // 2), (width // 2, width)):
        ys, xs = np.nonzero((image[:, left:right] == (255, 0, 0)).all(axis=2))
        boxes += [[left + xs.min(), ys.min(), left + xs.max() + 1, ys.max() + 1]] if len(xs) else []
    return Detections.from_xyxy(boxes, ["book"] * len(boxes), scores=np.ones(len(boxes)))


def _figures(spellings: Mapping[str, str], annotations: Path, images: Path | None) -> Figures:
    """Of the detectors that this machine has; of the others it is said what they need."""
    from pycocotools.coco import COCO

    loaded = {}
    for name, spelling in spellings.items():
        try:
            loaded[name] = system(spelling)
        except (MissingExtra, FileNotFoundError) as error:
            print(f"detectors: {name} is left out: {error}", file=sys.stderr, flush=True)
    if not loaded:
        raise Absent("at least one detector")
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(annotations))
    folder = f", images={spell_value(str(images))}" if images else ""
    cases = f"coco({spell_value(str(annotations))}, truth=instances, masks=false{folder})"
    return {
        "images": len(truth.imgs),
        "detectors": {name: _precision(detector, truth, cases) for name, detector in loaded.items()},
    }


def _precision(detector: System, truth: Any, cases: str) -> Figures:
    from pycocotools.cocoeval import COCOeval

    places = {str(entry["file_name"]): key for key, entry in truth.imgs.items()}
    numbers = {str(entry["name"]): key for key, entry in truth.cats.items()}
    detections, seconds = [], []
    for case in dataset(cases).cases():
        image = read_image(str(case.path))
        begun = time.perf_counter()
        [answer] = detector.answer([image], [0])
        seconds.append(time.perf_counter() - begun)
        if not isinstance(answer, Detections):
            raise SystemExit(f"{detector.name} on {case.id}: {answer}")
        detections += [
            {
                "image_id": places[case.id],
                "category_id": numbers[label],
                "score": float(score),
                "bbox": [float(x0), float(y0), float(x1 - x0), float(y1 - y0)],
            }
            for (x0, y0, x1, y1), label, score in zip(answer.boxes, answer.labels, answer.scores, strict=True)
            if label in numbers
        ]
    if not detections:
        raise SystemExit(f"{detector.name} found nothing of the classes {', '.join(numbers)}")
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation = COCOeval(truth, truth.loadRes(detections), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return {
        "AP": float(evaluation.stats[0]),
        "AP50": float(evaluation.stats[1]),
        "milliseconds": 1000 * float(np.median(seconds)),
        "detections": len(detections),
    }


if __name__ == "__main__":
    main(
        "detectors",
        {
            "annotations": {"type": Path, "help": "COCO's JSON with instances"},
            "images": {"type": Path, "help": "the folder of the images, if they are not found nearby"},
            "systems": {"nargs": "+", "metavar": "SYSTEM", "help": "detectors, spelled as on the command line"},
        },
    )
