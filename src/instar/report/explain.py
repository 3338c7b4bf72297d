"""One image explained: which objects are found because of themselves, which are not, and why, in a sentence each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from instar.analysis import Run
from instar.case import Image
from instar.relations import rule
from instar.report.pairs import load_pair
from instar.report.picture import contact_sheet, panel_picture
from instar.spelling import unknown

__all__ = ["Explained", "explain", "explanation_picture"]

PICTURES = 8
"""The most follow-ups that are shown."""


@dataclass(frozen=True, slots=True)
class Explained:
    """What is known of one object: whether the inference about it is reliable, and why."""

    target: str
    label: str
    reliable: bool | None
    why: str


def explain(run: Run, case: str) -> list[Explained]:
    """Every object of a case under the rules about presence; `reliable` is None where no rule says anything."""
    mine = _verdicts(run, case)
    limits = run.thresholds()
    found = []
    for (target,), rows in mine.group_by("target", maintain_order=True):
        if target == "whole":
            continue
        judged = rows.filter(pl.col("severity").is_not_null())
        broken = judged.filter((pl.col("severity") > 0) & (pl.col("severity") >= pl.col("rule").replace_strict(limits)))
        label, before = rows["label"][0], bool(rows["found_source"][0])
        reliable = None if judged.is_empty() else broken.is_empty()
        found.append(Explained(str(target), str(label), reliable, _why(rows, judged, broken, before)))
    return found


def _verdicts(run: Run, case: str) -> pl.DataFrame:
    names = run.rules().filter(relation="presence")["rule"]
    if names.is_empty():
        raise ValueError(f"{run.folder} has no rules about the presence of objects; `instar run DETECTOR "
                         "object-relevance DATASET` makes such a run")
    mine = run.verdicts().filter((pl.col("case") == case) & pl.col("rule").is_in(names.implode()))
    if mine.is_empty():
        raise unknown("case", case, run.cases()["case"])
    return mine


def _why(rows: pl.DataFrame, judged: pl.DataFrame, broken: pl.DataFrame, before: bool) -> str:
    """The reason in a sentence; of several, the one with the smallest change."""
    seen = "found in the source" if before else "not found in the source"
    if judged.is_empty():
        return f"{seen}; no rule says anything about it ({rows['reason'][0]})"
    if broken.is_empty():
        return f"{seen}, and stays so under {_count(judged.height, 'rule')}" if not before else (
            f"{seen}, for its own sake: {_count(judged.height, 'rule')} found nothing against it")
    worst = broken.row(0, named=True)
    times = f"in {round(worst['severity'] * worst['tries'])} of {worst['tries']} follow-ups"
    left = rule(worst["rule"]).left
    says = {
        "persists": f"{seen}, and still found {times} of {left}, where it is no longer there: it is its background "
                    "that is found",
        "missing": f"{seen}, but lost {times} of {left}, which leaves it as recognisable as it was",
        "incorrect": f"{seen}, but found {times} of {left}, which adds nothing of it: being found is an accident"}
    more = f"; {_count(broken.height - 1, 'more rule')} against it" if broken.height > 1 else ""
    return says[worst["kind"]] + more


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def explanation_picture(run: Run, case: str, *, dataset: str | Path | None = None) -> Image:
    """The source and the follow-ups that speak against it (others where none does), side by side with the answers."""
    mine = _verdicts(run, case).sort("severity", descending=True, nulls_last=True, maintain_order=True)
    tiles: list[tuple[Image, str]] = []
    manifest = run.manifest
    for verdict in mine.unique("rule", keep="first", maintain_order=True).head(PICTURES).iter_rows(named=True):
        pair = load_pair(run.store, manifest, verdict, dataset=dataset)
        if not tiles:
            tiles.append((panel_picture(pair.source, side="source"), "source"))
        said = f": {verdict['label']} {verdict['kind']}" if verdict["kind"] else ""
        tiles.append((panel_picture(pair.follow_up, side="follow-up"), f"{rule(verdict['rule']).left}{said}"))
    if not tiles:
        raise LookupError(f"{case} has no follow-ups to show")
    return contact_sheet(tiles, columns=3, tile=420)
