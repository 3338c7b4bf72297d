"""What insertion costs at 640×480, and how often there is a place for an object.

    python -m benchmarks.insertion [--small] [--write] [--annotations instances.json] [--pool FOLDER]

Every background with every object of the pool is a pair, placed where all intervals of overlap are met; the reasons of
the others are counted. Insertions are timed as in a run: five draws in all four intervals, one thread, the search and
the pasting, in processor time.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from benchmarks.command import main
from benchmarks.figures import Figures, Row, percentage, short, size_words
from benchmarks.inputs import CUTOUTS, OBJECTS, cutouts, drawings, existing
from instar.datasets import dataset
from instar.image import Image, picture_size, read_image
from instar.outputs.detections import Detections
from instar.pool import Pool, read_pool
from instar.spelling import spell_value
from instar.transforms import NotApplicable, draw_seed, transformation
from instar.transforms.insertion import paste, place, spans_of
from instar.warp import Size, Warp

INTERVALS = {"0.45/4": (0.45, 4), "0.3/3": (0.3, 3), "0.15/2": (0.15, 2)}
"""The largest overlap and how many levels there are, by how they are written."""
Background = tuple[str, str, Detections]
"""The id of a case, its file, and its objects."""


def measure(small: bool = False, annotations: Path = OBJECTS, pool: Path = CUTOUTS) -> Figures:
    if small:
        with tempfile.TemporaryDirectory() as folder:
            drawn = drawings(Path(folder) / "drawings", 2, (160, 120)) / "instances.json"
            return _figures(drawn, cutouts(Path(folder) / "pool"), (160, 120), draws=1)
    existing(annotations, "COCO's JSON with instances, its images beside it", "--annotations")
    return _figures(annotations, existing(pool, "a folder of cut-out objects", "--pool"), (640, 480), draws=5)


def rows(figures: Figures) -> list[Row]:
    speed = figures["speed"]
    shares = "; ".join(
        f"{percentage(figures['placed'][name]['placed'])} of the pairs in all {levels} intervals up to {most:g}, on "
        f"{percentage(figures['placed'][name]['backgrounds'])} of the backgrounds"
        for name, (most, levels) in INTERVALS.items()
    )
    return [
        Row(
            f"one insertion at {size_words(figures)}",
            f"processor time {short(speed['ms'])} ms, {short(speed['paste_ms'])} ms of it pasting",
        ),
        Row(f"a place for an object: {figures['backgrounds']} photos × {figures['objects']} cut-outs", shares),
    ]


def _figures(annotations: Path, pool_folder: Path, size: Size, draws: int) -> Figures:
    cv2.setNumThreads(1)  # as in a worker
    cases = dataset(f"coco({spell_value(str(annotations))}, truth=instances, masks=false)").cases()
    backgrounds = [(case.id, str(case.path), case.truth) for case in cases if isinstance(case.truth, Detections)]
    pool = read_pool(pool_folder)
    return {
        "width": size[0],
        "height": size[1],
        "backgrounds": len(backgrounds),
        "objects": len(pool),
        "speed": _speed(backgrounds, pool, size, draws),
        "placed": {name: _placed(backgrounds, pool, *interval) for name, interval in INTERVALS.items()},
    }


def _placed(backgrounds: Sequence[Background], pool: Pool, most: float, levels: int) -> Figures:
    """The share of pairs, and of backgrounds with any object of the pool, that are placed in all intervals; the share
    on the ray by level, and of each reason."""
    spans, reasons, rays, fitting = spans_of(most, levels), Counter[str](), Counter[int](), set()
    for name, path, objects in backgrounds:
        size = picture_size(path)
        assert size is not None
        for item in pool.items:
            rng = np.random.default_rng(draw_seed(0, name, item.name, 0))
            try:
                _, placements = place(objects.boxes, size, [item], rng, spans)
            except NotApplicable as reason:
                reasons[str(reason)] += 1
                continue
            fitting.add(name)
            rays.update(level for level, placement in enumerate(placements) if placement.ray)
    pairs = len(backgrounds) * len(pool)
    placed = pairs - reasons.total()
    return {
        "pairs": pairs,
        "placed": placed / pairs,
        "backgrounds": len(fitting) / len(backgrounds),
        "on_ray": {f"level {level}": rays[level] / placed for level in sorted(rays)},
        "reasons": {reason: count / pairs for reason, count in reasons.most_common()},
    }


def _speed(backgrounds: Sequence[Background], pool: Pool, size: Size, draws: int) -> Figures:
    levels = [transformation(f"insert({high:g})") for _, high in spans_of(*INTERVALS["0.45/4"])]
    seconds, pasting, insertions = 0.0, 0.0, 0
    for name, path, objects in backgrounds:
        photo = read_image(path)
        image = Image(np.asarray(cv2.resize(photo.pixels, size, interpolation=cv2.INTER_AREA), np.uint8))
        needs = {"objects": objects.warped(Warp.resize(photo.size, size)), "pool": pool}
        for draw in range(draws):
            for level in levels:
                begun = time.process_time()
                try:
                    _, change = level(image, needs=needs, seed=draw_seed(0, name, level, draw))
                except NotApplicable:
                    continue
                seconds += time.process_time() - begun
                insertions += 1
                item = next(item for item in pool.items if item.name == change.facts["item"])
                x0, y0, x1, y1 = map(int, change.regions[0])
                begun = time.process_time()
                paste(image.pixels, item.pixels, (x0, y0, x1, y1))
                pasting += time.process_time() - begun
    return {"insertions": insertions, "ms": 1000 * seconds / insertions, "paste_ms": 1000 * pasting / insertions}


if __name__ == "__main__":
    main(
        "insertion",
        {
            "annotations": {"type": Path, "help": "COCO's JSON with instances, its images beside it"},
            "pool": {"type": Path, "help": "a folder of cut-out objects"},
        },
    )
