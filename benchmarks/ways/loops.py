"""Plain loops, as one writes them for a paper: read, change, ask, compare, and store rows as Parquet.

A part is judged and written after every 1,000 rows, so that a crash loses no more than it does in Instar. The loops do
nothing else: no second try, no going on after a crash, no judging by another measure afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import cv2
import numpy as np
import polars as pl

from benchmarks.ways.clock import Clock, Work
from benchmarks.ways.rules import Maker, Pixels, Points, albumentations_makers, opencv_makers, pose, severities

AT_ONCE = 1000
"""Rows in a part."""


class Answered(NamedTuple):
    """A pair: what the system said of the source and of the follow-up."""

    case: str
    rule: str
    source: Points
    follow_up: Points


def with_opencv(paths: list[Path], out: Path, clock: Clock) -> Work:
    return partial(_loop, paths, out, clock, opencv_makers())


def with_albumentations(paths: list[Path], out: Path, clock: Clock) -> Work:
    return partial(_loop, paths, out, clock, albumentations_makers())


def read_pixels(path: Path | str) -> Pixels:
    pixels: Any = cv2.imread(str(path))
    return cast(Pixels, cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB))


def _loop(paths: list[Path], out: Path, clock: Clock, makers: Mapping[str, Maker]) -> None:
    out.mkdir()
    read = clock.reading(read_pixels)
    timed = {rule: clock.making(maker) for rule, maker in makers.items()}
    rows: list[Answered] = []
    parts = 0
    for path in paths:
        pixels = read(path)
        height, width = pixels.shape[:2]
        source = pose(width, height)
        for rule, maker in timed.items():
            maker(pixels)
            rows.append(Answered(path.name, rule, source, pose(width, height)))
            if len(rows) == AT_ONCE:
                _write(rows, width, out / f"{parts:06d}.parquet")
                rows, parts = [], parts + 1
    if rows:
        _write(rows, width, out / f"{parts:06d}.parquet")


def _write(rows: list[Answered], width: int, path: Path) -> None:
    """Judge rows together, and store them."""
    cases, rules, sources, follow_ups = zip(*rows, strict=True)
    answers = np.stack(follow_ups)
    severity = severities(rules, np.stack(sources), answers, width)
    table = {"case": cases, "rule": rules, "points": answers.reshape(len(rows), -1), "severity": severity}
    pl.DataFrame(table).write_parquet(path)
