"""Pairs that violate their rule in one of two runs alone, as pictures: both answers to the same follow-up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from instar.analysis import Run
from instar.analysis.comparison import flips, sides
from instar.engine import DEFAULT
from instar.report.gallery import PairShown, drawn_pair
from instar.report.targets import target_names
from instar.store import Row

MOST = 8
"""Pairs that are drawn of two runs and one relation."""


@dataclass(frozen=True, slots=True, eq=False)
class FlippedPair:
    """A pair as the first run and another one answered it; `worse` where the other alone violates its rule."""

    run: str
    worse: bool
    first: PairShown
    second: PairShown


def flipped_pairs(
    runs: Sequence[Run],
    names: Sequence[str],
    rules: Mapping[str, str],
    *,
    threshold: float | None = None,
    judging: str = DEFAULT,
    dataset: Path | None = None,
) -> list[FlippedPair]:
    """The first run against each other one: pairs under these rules (by id, with their names) that changed most, those
    that got worse first and the rules in turn."""
    shown = []
    for run, name in zip(runs[1:], names[1:], strict=True):
        try:
            pair = sides(runs[0], run, judgings=(judging, judging), threshold=threshold)
        except ValueError:  # nothing in common, which the page says
            continue
        table = flips(pair).filter(pl.col("rule").is_in(list(rules)))
        if table.is_empty():
            continue
        turn = pl.int_range(pl.len()).over("worse", "rule")
        table = table.with_columns(turn=turn).sort("worse", "turn", descending=[True, False], maintain_order=True)
        # what got better has its place, too
        table = pl.concat([part.head(MOST // 2) for part in table.partition_by("worse", maintain_order=True)])
        sided = [_pairs(each, table, rules, judging, dataset) for each in (runs[0], run)]
        shown += [
            FlippedPair(name, worse, first, second)
            for worse, first, second in zip(table["worse"], sided[0], sided[1], strict=True)
        ]
    return shown


def _pairs(
    run: Run, table: pl.DataFrame, rules: Mapping[str, str], judging: str, dataset: Path | None
) -> list[PairShown]:
    verdicts = run.verdicts_of(table, judging=judging)
    rows: list[Row] = verdicts.to_dicts()
    targets = target_names(run, verdicts, judging=judging)
    return [
        drawn_pair(run, PairShown(row, rules[row["rule"]], target, 0), judging, dataset)
        for row, target in zip(rows, targets, strict=True)
    ]
