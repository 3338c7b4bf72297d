"""Average precision of detectors by COCO's own evaluator: `pip install pycocotools`.

    python -m benchmarks.detectors instances.json SYSTEM [SYSTEM …] [--images FOLDER]

Each system answers every picture of a file in COCO's format once. What it finds is matched with the truth by name,
and compared by pycocotools, crowds and all. AP is the mean over intersections over union of 0.50 to 0.95, AP50 that at
0.50 alone. The lowest floor gives the whole curve: `'efficientdet-lite0(floor=0)'`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import time
from typing import Any

from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from instar.datasets import dataset
from instar.image import read_image
from instar.outputs.detections import Detections
from instar.spelling import spell_value
from instar.systems import system


def evaluated(spelling: str, annotations: str, images: str | None) -> dict[str, Any]:
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(annotations)
    places = {str(entry["file_name"]): key for key, entry in truth.imgs.items()}
    numbers = {str(entry["name"]): key for key, entry in truth.cats.items()}
    where = f", images={spell_value(images)}" if images else ""
    found, unknown, seconds = [], set(), []
    detector = system(spelling)
    for case in dataset(f"coco({spell_value(annotations)}, truth=instances, masks=false{where})").cases():
        image = read_image(str(case.path))
        begun = time.perf_counter()
        [answer] = detector.answer([image], [0])
        seconds.append(time.perf_counter() - begun)
        if not isinstance(answer, Detections):
            raise SystemExit(f"{spelling} on {case.id}: {answer}")
        unknown |= {label for label in answer.labels if label not in numbers}
        found += [
            {
                "image_id": places[case.id],
                "category_id": numbers[label],
                "score": float(score),
                "bbox": [float(x0), float(y0), float(x1 - x0), float(y1 - y0)],
            }
            for (x0, y0, x1, y1), label, score in zip(answer.boxes, answer.labels, answer.scores, strict=True)
            if label in numbers
        ]
    if not found:
        raise SystemExit(f"{spelling} found nothing of the classes in {annotations}")
    with contextlib.redirect_stdout(io.StringIO()):
        score = COCOeval(truth, truth.loadRes(found), "bbox")
        score.evaluate()
        score.accumulate()
        score.summarize()
    return {
        "AP": round(float(score.stats[0]), 4),
        "AP50": round(float(score.stats[1]), 4),
        "milliseconds": round(1000 * sorted(seconds)[len(seconds) // 2], 1),
        "images": len(seconds),
        "detections": len(found),
        "unknown_classes": sorted(unknown),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("annotations", help="COCO's JSON with instances")
    parser.add_argument("systems", nargs="+", metavar="SYSTEM", help="detectors, spelled as on the command line")
    parser.add_argument("--images", help="the folder of the pictures, if they are not found nearby")
    told = parser.parse_args()
    results = {spelling: evaluated(spelling, told.annotations, told.images) for spelling in told.systems}
    for spelling, result in results.items():
        print(f"{spelling}: AP {result['AP']:.3f}, AP50 {result['AP50']:.3f}, {result['milliseconds']} ms")
    print(json.dumps({"benchmark": "detectors", **results}))


if __name__ == "__main__":
    main()
