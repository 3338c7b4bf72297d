"""A detector on a set of labelled images: what it answers, and how reliably."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.analysis import Run
from instar.analysis.slices import MOST_VALUES
from instar.case import Case, read_input
from instar.datasets import Dataset
from instar.engine import SOURCE, Progress, judge, predict
from instar.image import Image
from instar.outputs import Output
from instar.outputs.detections import Detections
from instar.spelling import unknown
from instar.stats import bootstrap
from instar.store import Store
from instar.suites import Suite
from instar.systems import System
from instar.tasks.object_relevance.analysis import presence_rules
from instar.tasks.object_relevance.repair.measures import COMPARED, Measured, matched, measure_text

_AT_ONCE = 64

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def compared(system: System, data: Dataset) -> Measured:
    """A detector's answers against the labels; nothing is changed, and nothing stored."""
    answers: list[Detections] = []
    truths: list[Detections] = []
    cases = iter(data.cases())
    while some := list(islice(cases, _AT_ONCE)):
        images: list[Image] = []
        for case in some:
            images.append(_image_of(case, data))
            assert isinstance(case.truth, Detections)
            truths.append(case.truth)
        for answer in system.answer(images, [0] * len(images)):
            if not isinstance(answer, Detections):
                raise ValueError(f"{system.name} failed on {data.name}: {answer}")
            answers.append(answer)
    return matched(answers, truths)


def evaluate(system: System, data: Dataset, *, column: str | None = None, resamples: int = 300) -> pl.DataFrame:
    """Every measure of a detector on labelled images as it is: one row for all of them, and one for each slice.

    `column` is an attribute of the cases, or what is measured of an image (brightness, sharpness …); a number makes two
    slices, up to its median and above. `low` and `high` are the 95 % interval of mAP@0.5 over images drawn anew.
    Images on which the system fails are left out and counted in `failed`.
    """
    cases = list(data.cases())
    answers: list[Detections] = []
    truths: list[Detections] = []
    known: list[dict[str, object]] = []
    for first in range(0, len(cases), _AT_ONCE):
        some = cases[first : first + _AT_ONCE]
        images = [_image_of(case, data) for case in some]
        for case, image, answer in zip(some, images, _answers(system, images), strict=True):
            if isinstance(answer, Detections):
                assert isinstance(case.truth, Detections)
                answers.append(answer)
                truths.append(case.truth)
                known.append({**image.properties(), **case.attributes})
    failed = len(cases) - len(answers)
    if not answers:
        raise ValueError(f"{system.name} failed on every one of {len(cases):,} images of {data.name}")
    whole = matched(answers, truths)
    parts = {"all": np.ones(len(answers), bool), **(_slices(column, known) if column else {})}
    rows = [
        {"slice": name, "images": int(inside.sum()), "failed": failed if name == "all" else None}
        | _measures(whole.only(inside), resamples)
        for name, inside in parts.items()
    ]
    return pl.DataFrame(rows, infer_schema_length=None).fill_nan(None)


def _image_of(case: Case, data: Dataset) -> Image:
    image, _ = read_input(case)
    if not isinstance(image, Image) or not isinstance(case.truth, Detections):
        raise ValueError(f"{data.name}: case {case.id!r} has no annotated objects, so there is nothing to compare with")
    return image


def _answers(system: System, images: Sequence[Image]) -> list[Output | Exception]:
    """The answers; where a system fails on several images at once, they are asked about one by one."""
    try:
        return system.answer(images, [0] * len(images))
    except Exception as error:
        return [error] if len(images) == 1 else [_answers(system, [image])[0] for image in images]


def _slices(column: str, known: Sequence[dict[str, object]]) -> dict[str, Bools]:
    names = sorted({name for one in known for name in one})
    if column not in names:
        raise unknown("column", column, names)
    values = [one.get(column) for one in known]
    numbers = [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) == len(values) and len(set(numbers)) > 2:
        middle = float(np.median(numbers))
        above = np.array(numbers) > middle
        return {f"{column} ≤ {middle:.3g}": ~above, f"{column} > {middle:.3g}": above}
    texts = [str(value) for value in values]
    distinct = sorted(set(texts))
    if len(distinct) > MOST_VALUES:
        raise ValueError(
            f"column {column!r} has {len(distinct)} different values; slices are made of at most {MOST_VALUES}"
        )
    return {f"{column} = {value}": np.array([text == value for text in texts]) for value in distinct}


def _measures(one: Measured, resamples: int) -> dict[str, float]:
    values = {name: one.values()[name] for name in COMPARED}

    def drawn(rows: Floats) -> float:
        return one.values(np.bincount(rows.astype(np.int64), minlength=one.images).astype(np.float64))["mAP@0.5"]

    low, high = bootstrap(np.arange(one.images, dtype=np.float64), drawn, resamples=resamples)
    return {"mAP@0.5": values.pop("mAP@0.5"), "low": low, "high": high, **values}


def evaluation_text(table: pl.DataFrame) -> str:
    """The table in Markdown."""
    heads = ["", "images", "mAP@0.5", "95 % over images", *COMPARED[1:]]
    lines = [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
    for row in table.iter_rows(named=True):
        ends = " – ".join(measure_text("mAP@0.5", row[name]) for name in ("low", "high"))
        shares = [measure_text(name, row[name]) for name in COMPARED]
        cells = [row["slice"], f"{row['images']:,}", shares[0], ends, *shares[1:]]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


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
            f"{failed[0]}; `instar show {shlex.quote(str(folder))}` says why"
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
