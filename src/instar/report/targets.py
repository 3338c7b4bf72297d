"""What verdicts are about, by name: "dining table, 2nd", "person 3, left hand"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

import polars as pl

from instar.analysis import Run
from instar.engine import DEFAULT
from instar.outputs import output_kind
from instar.relations import Relation
from instar.transforms.words import ordinal

WHOLE = "whole"
"""The target of what is about no single object or subject."""

_NUMBERED = re.compile(r"(\d+)(?:/(.+))?")
_DRAW = re.compile(r"draw (\d+)")

_Names = Mapping[tuple[bool, str], Mapping[str, str]]
"""The names of a case's objects by target: of those that are annotated, and of those that the system found."""


def target_names(run: Run, verdicts: pl.DataFrame, *, judging: str = DEFAULT) -> list[str]:
    """What each verdict is about, as people call it; empty where a verdict is about its input and nothing else is.

    `verdicts` has `case`, `rule` and `target`. An object is called by its class, with its place among those of that
    class where there are several; a subject by its number in the answer to the source, from 1.
    """
    manifest = run.manifest
    noun = output_kind(manifest.system.kind).subject(manifest.header)
    relations = {one.id: one.relation.relation for one in run.bound_rules()}
    cases = run.cases().filter(pl.col("case").is_in(verdicts["case"].unique().drop_nulls().implode()))
    annotated = _annotated(cases)
    keys = list(verdicts.select("case", "rule", "target").iter_rows())
    of_truth = [bool(relations[rule].own_needs) and (True, case) in annotated for case, rule, _ in keys]
    others = verdicts.filter(~pl.Series(of_truth, dtype=pl.Boolean))
    by_case: _Names = annotated | _detected(run, others, relations, judging)
    return [
        by_case.get((known, case), {}).get(target) or _plain(target, noun)
        for known, (case, _, target) in zip(of_truth, keys, strict=True)
    ]


def _plain(target: str | None, noun: str) -> str:
    """A target that has no class: a subject with its part, the whole, a draw, or whatever a relation calls it."""
    if target is None:
        return ""
    if target == WHOLE:
        return "the whole image" if noun else ""
    if draw := _DRAW.fullmatch(target):
        return f"follow-up {int(draw[1]) + 1}"
    if noun and (numbered := _NUMBERED.fullmatch(target)):
        part = f", {numbered[2].replace('_', ' ')}" if numbered[2] else ""
        return f"{noun} {int(numbered[1]) + 1}{part}"
    return target


def _annotated(cases: pl.DataFrame) -> dict[tuple[bool, str], dict[str, str]]:
    """The annotated objects of cases, in the order of the annotation."""
    if "truth_labels" not in cases.columns:
        return {}
    names = {}
    for row in cases.filter(pl.col("truth_labels").is_not_null()).iter_rows(named=True):
        labels = row["truth_labels"]
        ids = row.get("truth_ids") or [str(number) for number in range(len(labels))]
        names[True, row["case"]] = dict(zip(ids, _counted(labels), strict=True))
    return names


def _detected(
    run: Run, verdicts: pl.DataFrame, relations: Mapping[str, Relation], judging: str
) -> dict[tuple[bool, str], dict[str, str]]:
    """The objects that the system found in the sources, as far as any verdict is about them, in its order."""
    numbered = pl.col("target").str.contains(r"^\d+$")
    shown = verdicts.filter(numbered)
    alike = {relations[rule].name for rule in shown["rule"].unique()}
    measures = {rule: one.classes for rule, one in relations.items() if one.name in alike and one.classes}
    if not measures or judging not in run.store.judgings():
        return {}
    wanted = numbered & pl.col("case").is_in(shown["case"].unique().implode()) & pl.col("rule").is_in(list(measures))
    columns = sorted(set(measures.values()))
    objects = [
        part.filter(wanted).select("case", pl.col("target").cast(pl.UInt64), label=pl.coalesce(there))
        for part in run.store.verdict_parts(judging, ["case", "target", "rule", *columns])
        if (there := [name for name in columns if name in part.columns])
    ]
    if not objects:
        return {}
    known = pl.concat(objects).drop_nulls().unique(["case", "target"]).sort("case", "target")
    return {
        (False, str(case)): dict(zip(rows["target"].cast(pl.String), _counted(rows["label"]), strict=True))
        for (case,), rows in known.group_by("case", maintain_order=True)
    }


def _counted(labels: Iterable[str]) -> list[str]:
    """Each with its place among its like, where there are several.

    >>> _counted(["cup", "dining table", "cup"])
    ['cup, 1st', 'dining table', 'cup, 2nd']
    """
    every = list(labels)
    several, places, names = Counter(every), Counter[str](), []
    for label in every:
        places[label] += 1
        names.append(f"{label}, {ordinal(places[label])}" if several[label] > 1 else label)
    return names
