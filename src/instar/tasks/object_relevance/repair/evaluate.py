"""A detector on a set of labelled images: what it answers, and how reliably."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.analysis import Run
from instar.case import read_input
from instar.datasets import Dataset
from instar.engine import SOURCE, Progress, judge, predict
from instar.image import Image
from instar.outputs.detections import Detections
from instar.store import Store
from instar.suites import Suite
from instar.systems import System
from instar.tasks.object_relevance.analysis import presence_rules
from instar.tasks.object_relevance.repair.measures import Measured, matched

_AT_ONCE = 64

Floats = npt.NDArray[np.float64]


def compared(system: System, data: Dataset) -> Measured:
    """A detector's answers against the labels; nothing is changed, and nothing stored."""
    answers: list[Detections] = []
    truths: list[Detections] = []
    cases = iter(data.cases())
    while some := list(islice(cases, _AT_ONCE)):
        images: list[Image] = []
        for case in some:
            image, _ = read_input(case)
            if not isinstance(image, Image) or not isinstance(case.truth, Detections):
                raise ValueError(f"{data.name}: case {case.id!r} has no annotated objects")
            images.append(image)
            truths.append(case.truth)
        for answer in system.answer(images, [0] * len(images)):
            if not isinstance(answer, Detections):
                raise ValueError(f"{system.name} failed on {data.name}: {answer}")
            answers.append(answer)
    return matched(answers, truths)


def measured(
    system: System, suite: Suite, data: Dataset, folder: Path, *, on_progress: Callable[[Progress], None] | None = None
) -> Measured:
    """The same, and how many of the verdicts of a suite's rules are violations: a run in `folder`, in this process.

    Images are in the order of the dataset. Every image must have been predicted.
    """
    store = Store(folder)
    if predict(system, suite, data, store, workers=0, on_progress=on_progress).interrupted:
        raise KeyboardInterrupt
    judge(store)
    sources = store.predictions(where=(pl.col("follow_up") == SOURCE) & (pl.col("repeat") == 0))
    rows = {row["case"]: row for row in store.whole(sources).iter_rows(named=True)}
    cases = list(data.cases())
    failed = [case.id for case in cases if rows.get(case.id, {}).get("status") != "ok"]
    if failed:
        raise ValueError(
            f"{system.name} failed on {len(failed):,} of {len(cases):,} images of {data.name}, e.g. "
            f"{failed[0]}; `instar show {folder}` says why"
        )
    output = store.manifest().header
    truths = [case.truth for case in cases if isinstance(case.truth, Detections)]
    measures = matched([Detections.from_row(rows[case.id], output) for case in cases], truths)
    broken, judged = _counts(Run(store), [case.id for case in cases])
    return replace(measures, broken=broken, judged=judged)


def _counts(run: Run, cases: list[str]) -> tuple[Floats, Floats]:
    """For each image, how many verdicts of the relation presence are violations, and how many there are."""
    rules, limits = presence_rules(run), run.thresholds()
    judged = run.verdicts().filter(pl.col("severity").is_not_null() & pl.col("rule").is_in(rules))
    limit = pl.col("rule").replace_strict(limits, return_dtype=pl.Float64)
    broken = (pl.col("severity") >= limit) & (pl.col("severity") > 0)
    counts = judged.group_by("case").agg(broken=broken.sum(), judged=pl.len())
    of_cases = pl.DataFrame({"case": cases}).join(counts, on="case", how="left", maintain_order="left").fill_null(0)
    return of_cases["broken"].cast(pl.Float64).to_numpy(), of_cases["judged"].cast(pl.Float64).to_numpy()
