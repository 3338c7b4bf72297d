"""Plan: who predicts what. Which follow-ups, how many draws and repeats, and what is left to do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from instar.registry import NotLoaded
from instar.relations import BoundRule, Rule, levels_of, named_rule
from instar.store import KEY, Store
from instar.transforms import Transformation

SOURCE = "source"
SOURCE_ANSWERED = (pl.col("follow_up") == SOURCE) & (pl.col("repeat") == 0) & (pl.col("status") == "ok")
"""Of predictions: the first answer to each unchanged input."""
Key = tuple[str, int, int]
"""(follow-up, draw, repeat) within a case."""
Choice = Callable[[Sequence[str]], Mapping[str, Collection[str | Key]]]
"""Chooses what to ask next by what a run holds so far: for all cases, in the dataset's order, the follow-ups that some
of them are asked about; nothing where all is known. It is called again whenever what it chose is committed. It may name
rules, too: one that the run does not have joins it. It may name keys that the plan does not have and that are not
stored: second predictions."""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """One transformation to be predicted, with its draws and repeats."""

    transformation: Transformation
    draws: int
    repeats: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What is predicted for every case. Rules with the same transformation share predictions."""

    rules: tuple[Rule, ...]
    seed: int
    sources: int
    follow_ups: tuple[FollowUp, ...]

    def keys(self) -> list[Key]:
        """Every key of a case, the source first."""
        keys: list[Key] = [(SOURCE, 0, repeat) for repeat in range(self.sources)]
        for follow_up in self.follow_ups:
            name = follow_up.transformation.id
            keys += [(name, draw, repeat) for draw in range(follow_up.draws) for repeat in range(follow_up.repeats)]
        return keys

    @property
    def needs(self) -> frozenset[str]:
        return frozenset().union(*(f.transformation.needs for f in self.follow_ups))


def bound_rules(rules: Iterable[Rule | str], output: str) -> tuple[BoundRule, ...]:
    """Rules with their relation filled in for a kind of output, checked, without repetitions.

    A rule over many cases brings its levels along as ordinary rules: it is judged from their verdicts.
    """
    bound: dict[str, BoundRule] = {}
    for rule_or_text in rules:
        one = (named_rule(rule_or_text) if isinstance(rule_or_text, str) else rule_or_text).for_output(output)
        if one.relation.relation.over == "cases":
            bound |= {level.id: level for level in levels_of(one, output) if level.id not in bound}
        wants = one.relation.relation.output
        if wants not in ("any", output):
            raise ValueError(f"rule {one.id!r} is about {wants}, this system answers with {output}")
        bound.setdefault(one.id, one)
    return tuple(bound.values())


def own_code(rules: Iterable[Rule | str]) -> tuple[str, ...]:
    """The functions and families of the user's own, by name, that make follow-ups of these rules."""
    named = (named_rule(one) if isinstance(one, str) else one for one in rules)
    return tuple(sorted(frozenset().union(*(change.own_code for one in named for change in one.transformations))))


def unloaded_code(rules: Iterable[Rule]) -> list[str]:
    """The functions, by name, that make follow-ups of these rules and were not loaded: only a file names them."""
    names = (one.unloaded for rule in rules for one in rule.transformations)
    return sorted(frozenset().union(*names))


def refuse_unloaded(folder: Path, rules: Iterable[Rule]) -> None:
    """Raises where follow-ups cannot be made because a file alone names the code that makes them."""
    if names := unloaded_code(rules):
        raise NotLoaded(
            f"{folder} has follow-ups that are made by {', '.join(names)}: that is code, and is not loaded because a "
            "file names it; name its rules in `suite`, or give `trust`"
        )


def make_plan(rules: Sequence[Rule], *, seed: int, deterministic: bool) -> Plan:
    """Repeats of a deterministic system collapse to one, and so do draws of a transformation without chance."""
    wanted: dict[str, tuple[Transformation, int, int]] = {}
    sources = 1
    for one in rules:
        assert one.relation is not None
        repeats = 1 if deterministic else one.relation.count("repeats")
        sources = max(sources, repeats, 1 if deterministic else one.relation.count("sources"))
        for transformation in one.transformations:
            draws = one.relation.count("draws") if transformation.random else 1
            _, old_draws, old_repeats = wanted.get(transformation.id, (transformation, 1, 1))
            wanted[transformation.id] = (transformation, max(draws, old_draws), max(repeats, old_repeats))
    return Plan(tuple(rules), seed, sources, tuple(FollowUp(*follow_up) for follow_up in wanted.values()))


@dataclass(frozen=True, slots=True)
class Committed:
    """What a run folder holds already of a plan."""

    keys: tuple[Key, ...]
    complete: frozenset[str]
    partial: dict[str, list[int]]
    hashes: dict[str, str]
    unreadable: frozenset[str]

    def knows(self, case: str) -> bool:
        """Whether the case has a row; where that was lost, its input is read again though every key is there."""
        return case in self.hashes or case in self.unreadable

    def missing(self, case: str) -> tuple[Key, ...]:
        """The keys of a case that are still to be predicted, in the plan's order."""
        if case in self.complete:
            return ()
        if case not in self.partial:
            return self.keys
        done = set(self.partial[case])
        return tuple(key for number, key in enumerate(self.keys) if number not in done)


def committed(store: Store, plan: Plan) -> Committed:
    """What is committed. A case that cannot be read is complete: its row says so."""
    keys = tuple(plan.keys())
    numbered = pl.DataFrame(
        keys, schema={"follow_up": pl.String, "draw": pl.Int32, "repeat": pl.Int32}, orient="row"
    ).with_row_index("number")

    def planned(rows: pl.LazyFrame) -> pl.LazyFrame:
        return rows.join(numbered.lazy(), on=["follow_up", "draw", "repeat"])

    # only the counts of all cases are held, and the keys of those that are neither untouched nor complete
    counts = store.predictions(list(KEY), query=lambda rows: planned(rows).group_by("case").agg(count=pl.len()))
    full = pl.col("count") >= len(keys)
    begun = counts.filter(~full)["case"].implode()
    partial = store.predictions(
        list(KEY), where=pl.col("case").is_in(begun), query=lambda rows: planned(rows).group_by("case").agg("number")
    )
    cases = store.cases(["case", "hash", "status"])
    unreadable = frozenset(cases.filter(pl.col("status") != "ok")["case"])
    return Committed(
        keys,
        frozenset(counts.filter(full)["case"]).union(unreadable),
        dict(partial.select("case", "number").iter_rows()),
        dict(cases.filter(pl.col("status") == "ok").select("case", "hash").iter_rows()),
        unreadable,
    )
