"""What insertion costs at 640×480, and how often there is a place for an object.

    python -m benchmarks.insertion [--annotations instances.json] [--pool FOLDER] [--draws 5]

Every background with every object of the pool is a pair, placed where all four intervals of overlap are met; the
reasons of the others are counted. Insertions are then timed as in a run: every draw in all four intervals, one thread,
the search and the pasting, in processor time. Prints one JSON object as its last line.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from instar.datasets import dataset
from instar.image import Image, picture_size, read_image
from instar.outputs.detections import Detections
from instar.pool import Pool, read_pool
from instar.spelling import spell_value
from instar.transforms import NotApplicable, draw_seed, transformation
from instar.transforms.insertion import paste, place, spans_of
from instar.warp import Warp

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
SIZE = (640, 480)
LEVELS = [transformation(f"insert({high:g})") for _, high in spans_of(0.45, 4)]


def backgrounds(annotations: str) -> list[tuple[str, str, Detections]]:
    cases = dataset(f"coco({spell_value(annotations)}, truth=instances, masks=false)").cases()
    return [(case.id, str(case.path), case.truth) for case in cases if isinstance(case.truth, Detections)]


def placed(found: list[tuple[str, str, Detections]], pool: Pool, most: float, levels: int) -> dict[str, Any]:
    """The share of pairs, and of backgrounds with any object of the pool, that are placed in all intervals."""
    spans, reasons, rays, some = spans_of(most, levels), Counter[str](), Counter[int](), set()
    for name, path, objects in found:
        size = picture_size(path)
        assert size is not None
        for item in pool.items:
            rng = np.random.default_rng(draw_seed(0, name, item.name, 0))
            try:
                _, placements = place(objects.boxes, size, [item], rng, spans)
            except NotApplicable as why:
                reasons[re.sub(r"at most \d+%", "at most …%", str(why))] += 1
                continue
            some.add(name)
            rays.update(level for level, one in enumerate(placements) if one.ray)
    pairs = len(found) * len(pool)
    good = pairs - reasons.total()
    return {
        "pairs": pairs,
        "placed": round(good / pairs, 4),
        "backgrounds": round(len(some) / len(found), 4),
        "on_ray": [round(rays[level] / max(good, 1), 4) for level in range(levels)],
        "reasons": {why: round(count / pairs, 4) for why, count in reasons.most_common()},
    }


def timed(found: list[tuple[str, str, Detections]], pool: Pool, draws: int) -> dict[str, float]:
    spent, pasting, made, refused, wasted = 0.0, 0.0, 0, 0, 0.0
    for name, path, objects in found:
        photo = read_image(path)
        warp = Warp.resize(photo.size, SIZE)
        image = Image(np.asarray(cv2.resize(photo.pixels, SIZE, interpolation=cv2.INTER_AREA), np.uint8))
        needs = {"objects": objects.warped(warp), "pool": pool}
        for draw in range(draws):
            for level in LEVELS:
                begun = time.process_time()
                try:
                    _, change = level(image, needs=needs, seed=draw_seed(0, name, level, draw))
                except NotApplicable:
                    wasted += time.process_time() - begun
                    refused += 1
                    continue
                spent += time.process_time() - begun
                made += 1
                item = next(item for item in pool.items if item.name == change.facts["item"])
                x0, y0, x1, y1 = map(int, change.regions[0])
                begun = time.process_time()
                paste(image.pixels, item.pixels, (x0, y0, x1, y1))
                pasting += time.process_time() - begun
    return {
        "insertions": made,
        "per_second": round(made / spent, 1),
        "ms": round(1000 * spent / made, 3),
        "paste_ms": round(1000 * pasting / made, 3),
        "not_applicable_ms": round(1000 * wasted / max(refused, 1), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--annotations",
        default=str(SHARED / "coco-mini/annotations/instances_train2017.json"),
        help="COCO's JSON with instances, its pictures beside it",
    )
    parser.add_argument("--pool", default=str(SHARED / "cutouts"), help="a folder of cut-out objects")
    parser.add_argument("--draws", type=int, default=5)
    told = parser.parse_args()
    cv2.setNumThreads(1)
    found, pool = backgrounds(told.annotations), read_pool(told.pool)
    speed = timed(found, pool, told.draws)
    print(
        f"{speed['per_second']:.0f} insertions a second at {SIZE[0]}×{SIZE[1]}: {speed['ms']} ms each, "
        f"{speed['paste_ms']} ms of it pasting"
    )
    shares = {
        f"{most:g}/{levels}": placed(found, pool, most, levels) for most, levels in ((0.45, 4), (0.3, 3), (0.15, 2))
    }
    for name, share in shares.items():
        print(
            f"most/levels {name}: {share['placed']:.1%} of {share['pairs']:,} pairs placed, on "
            f"{share['backgrounds']:.0%} of the backgrounds; on the ray by level: {share['on_ray']}"
        )
        for why, part in share["reasons"].items():
            print(f"    {part:6.1%}  {why}")
    print(json.dumps({"benchmark": "insertion", **speed, "placed": shares}, ensure_ascii=False))


if __name__ == "__main__":
    main()
