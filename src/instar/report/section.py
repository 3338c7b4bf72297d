"""What a report says of one relation of a run, at every threshold of its grid. Every number comes from `analysis`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from instar.analysis import (
    ANY,
    Answers,
    Memory,
    Run,
    Severities,
    costs,
    coverage,
    curve,
    judged_pairs,
    rates,
    remembered,
    selected,
    slices,
)
from instar.analysis.classes import straying_classes
from instar.analysis.parts import SCHEMA as STRAYING
from instar.analysis.parts import straying_parts
from instar.analysis.rates import Judged
from instar.engine import DEFAULT
from instar.relations import named_rule, relations
from instar.report.words import threshold_text
from instar.store import Row

MANY = 40
"""With more rules, figures show the most violated of them, or families."""
SEARCHED = 20_000
"""Rules × cases up to which the search for the cheapest set of rules is made at every threshold."""


def heading_of(relation: str) -> str:
    """What people call a relation."""
    return relations()[relation].heading


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """One relation of a run. Frames have a column `t`: the place of their threshold in `grid`.

    `rates` has a row per rule and threshold, with `order`, its place among the most violated ones there; identity is in
    it, and nowhere else but in `curves`. `names` has what each rule is called, `strayed` counts the pairs with a
    severity above 0, `judged` says what became of all pairs, `answers` what can be told from the answers alone,
    `tests` how many of its tests reject where it is one, `straying` which parts stray more often than the whole, at
    each threshold, and `classes` which classes more often than others. `words` say what a rule does, by its name;
    `counted` what several violations of a kind are called.
    `coverage` is between rules, or between families where `by_family`.
    """

    relation: str
    unit: str
    grid: tuple[float, ...]
    start: int
    names: Mapping[str, str]
    words: Mapping[str, str]
    counted: Mapping[str, str]
    families: Mapping[str, Sequence[str]]
    strayed: int
    judged: Judged
    answers: Answers
    tests: pl.DataFrame
    straying: Sequence[pl.DataFrame]
    classes: Sequence[pl.DataFrame]
    noise: Row | None
    memory: Memory | None
    rates: pl.DataFrame
    curves: pl.DataFrame
    coverage: pl.DataFrame
    by_family: bool
    groups: pl.DataFrame
    slices: Sequence[pl.DataFrame]
    selections: Mapping[int, tuple[pl.DataFrame, bool]]

    @property
    def heading(self) -> str:
        """What people call the relation."""
        return heading_of(self.relation)

    @property
    def labels(self) -> list[str]:
        """The thresholds as text."""
        return [threshold_text(value) for value in self.grid]

    @property
    def rules(self) -> int:
        """How many rules have verdicts, without identity."""
        return self.at(self.start).height

    @property
    def below_noise(self) -> list[int]:
        """Which thresholds are not above the system's own noise."""
        floor = self.noise["floor"] if self.noise else None
        return [t for t, value in enumerate(self.grid) if floor and value <= floor]

    @property
    def hiding(self) -> list[int]:
        """At which thresholds parts stray more often than the whole."""
        return [t for t, table in enumerate(self.straying) if table.height]

    @property
    def sliced(self) -> list[int]:
        """At which thresholds failing cases could be compared with others."""
        return [t for t, table in enumerate(self.slices) if table.height]

    @property
    def enough(self) -> list[int]:
        """At which thresholds there is a set of rules that finds every failing case."""
        return [t for t, (rules, _) in self.selections.items() if rules.height]

    @property
    def covering(self) -> list[int]:
        """At which thresholds a rule, or a family, is violated that another one may cover."""
        return self.coverage.filter(pl.col("violated") > 0)["t"].unique().sort().to_list()

    @property
    def gaps(self) -> list[str]:
        """Why pairs of any rule were not judged: the columns of `rates` that count something."""
        return [name for name in ("nothing_found", "not_applicable", "failed") if self.rates[name].sum()]

    @property
    def kinds(self) -> list[str]:
        """Of which kinds violations are, at any threshold."""
        return sorted({each["kind"] for kinds in self.rates["kinds"].to_list() for each in kinds})

    def at(self, t: int) -> pl.DataFrame:
        """The rates at a threshold, most violated first, without identity."""
        return self.rates.filter((pl.col("t") == t) & (pl.col("family") != "identity")).sort("order")

    def whole(self, t: int) -> Row:
        """How many cases violate at least one rule at a threshold."""
        return self.curves.filter((pl.col("t") == t) & (pl.col("group") == ANY)).row(0, named=True)

    def violated_pairs(self, name: str | None = None) -> list[int]:
        """How many pairs violate their rule at each threshold: of all rules but identity, or of one by its name."""
        own = self.rates.filter(pl.col("family") != "identity" if name is None else pl.col("name") == name)
        counts = dict(own.group_by("t").agg(pl.col("violated").sum()).iter_rows())
        return [counts.get(t, 0) for t in range(len(self.grid))]

    def with_unit(self, value: float) -> str:
        """A threshold with its unit."""
        return threshold_text(value, self.unit)

    def limit_above(self, severity: float) -> float | None:
        """The threshold that a severity just fails to reach, and must not read as if it did."""
        return min((value for value in self.grid if value > severity), default=None)


def counted_kinds(run: Run) -> dict[str, str]:
    """What several violations of a kind are called, where that is not the kind itself."""
    relations = [one.relation.relation for one in run.bound_rules()]
    return {kind: several for relation in relations for kind, several in relation.counted.items()}


def noise_of(run: Run, judging: str = DEFAULT) -> pl.DataFrame:
    """The system's own noise, and how many predictions of the source and of the same input again it was judged by."""
    varies = not run.manifest.system.deterministic
    counts = {
        one.id: (one.relation.count("sources"), one.relation.count("repeats")) if varies else (1, 1)
        for one in run.bound_rules()
    }
    noise = run.noise(judging)
    sources, repeats = ([counts[rule][side] for rule in noise["rule"]] for side in (0, 1))
    return noise.with_columns(
        sources=pl.Series(sources, dtype=pl.Int64), repeats=pl.Series(repeats, dtype=pl.Int64)
    ).with_columns(sources=pl.max_horizontal("sources", "repeats"))


def start_of(grid: Sequence[float], thresholds: Sequence[float]) -> int:
    """Which threshold of a grid is nearest to the most frequent one of these."""
    wanted = max(thresholds, key=list(thresholds).count, default=grid[0])
    apart = [0.0 if value == wanted else abs(value - wanted) for value in grid]
    return apart.index(min(apart))


def make_section(run: Run, relation: str, *, threshold: float | None = None, judging: str = DEFAULT) -> Section:
    """Ask a run everything that a report shows of a relation. A threshold joins its grid."""
    grid = run.grids()[relation]
    if threshold is not None:
        grid = tuple(sorted({*grid, threshold}))
    known = _named(run.rules().filter((pl.col("relation") == relation) & (pl.col("over") == "case")))
    severities = run.severities(judging).only(known["rule"].to_list())
    if run.searched:  # of the levels of a grid it asks some
        with_verdicts = np.flatnonzero((~np.isnan(severities.severity)).any(1))
        severities = severities.only([severities.rules[place] for place in with_verdicts])
    families = {
        name: [one for one in rules if one in severities.rules] for name, rules in run.families(relation).items()
    }
    families = {name: rules for name, rules in families.items() if rules}
    changing = [one for rules in families.values() for one in rules]
    limits = run.thresholds(threshold)
    start = start_of(grid, [limits[one] for one in changing or known["rule"]])
    noise = noise_of(run, judging).filter(relation=relation)
    by_family = len(changing) > MANY
    cases = severities.only(changing)
    return Section(
        relation,
        run.units(judging)[relation],
        grid,
        start,
        dict(known.select("rule", "name").iter_rows()),
        dict(known.select("name", "words").iter_rows()),
        counted_kinds(run),
        families,
        int((cases.severity > 0).sum()),
        judged_pairs(cases, changing),
        run.answers(judging),
        run.tests(judging=judging, relation=relation),
        _straying(run, relation, grid, start, judging),
        _classes(run, relation, grid, start, judging),
        noise.row(0, named=True) if len(noise) else None,
        remembered(run, judging) if noise["noisy"].sum() else None,
        rates_per_threshold(severities, known, grid),
        _curves(run, relation, grid, judging, bool(changing)),
        _coverage(_by_family(cases, families) if by_family else cases, known, grid),
        by_family,
        _groups(run, relation, grid, judging, bool(changing)),
        _slices(run, cases, grid),
        _selections(run, cases, grid, start),
    )


def _named(known: pl.DataFrame) -> pl.DataFrame:
    """Rules of one relation by their transformations alone, where that tells them apart."""
    left = pl.col("rule").str.split(" => ").list.first()
    return known.with_columns(name=pl.when(left.is_unique()).then(left).otherwise(pl.col("rule")))


def _with_t(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat([frame.with_columns(t=pl.lit(t, pl.Int32)) for t, frame in enumerate(frames)])


def _by_numbers(name: str) -> list[str | float]:
    """A key by which names are in the order of the numbers in them.

    >>> sorted(["noise(16)", "noise(2)", "blur(1)"], key=_by_numbers)
    ['blur(1)', 'noise(2)', 'noise(16)']
    """
    return [float(part) if place % 2 else part for place, part in enumerate(re.split(r"(-?\d+(?:\.\d+)?)", name))]


def rates_per_threshold(severities: Severities, known: pl.DataFrame, grid: Sequence[float]) -> pl.DataFrame:
    """Rates of rules for each threshold of a grid, with name, family and order among the most violated."""
    named = known.select("rule", "name", "family")
    places = {name: number for number, name in enumerate(sorted(named["name"], key=_by_numbers))}
    place = pl.col("name").replace_strict(places, return_dtype=pl.Int64)
    frames = []
    for value in grid:
        table = rates(severities, dict.fromkeys(severities.rules, value)).join(named, on="rule", maintain_order="left")
        ranked = table.sort(
            "rate", "median", place, descending=[True, True, False], nulls_last=True, maintain_order=True
        )
        order = (pl.col("family") != "identity").cast(pl.Int32).cum_sum() - 1
        frames.append(ranked.with_columns(order=order))
    return _with_t(frames)


def _curves(run: Run, relation: str, grid: Sequence[float], judging: str, any_rules: bool) -> pl.DataFrame:
    numbered = pl.DataFrame(
        {"threshold": list(grid), "t": range(len(grid))}, schema={"threshold": pl.Float64, "t": pl.Int32}
    )
    if any_rules:
        table = run.curves(relation, grid=grid, judging=judging)
    else:
        table = curve(run.severities(judging).only([]), grid).select(pl.lit(ANY).alias("group"), pl.all())
    return table.join(numbered, on="threshold", maintain_order="left")


def _groups(run: Run, relation: str, grid: Sequence[float], judging: str, any_rules: bool) -> pl.DataFrame:
    """The share of cases that violate at least one rule, by part of the subjects; no row where there is only one."""
    groups = run.groups(judging)
    if len(groups) < 2 or not any_rules:
        return pl.DataFrame(schema={"group": pl.String, "t": pl.Int32})
    frames = []
    for group in groups:
        table = run.curves(relation, grid=grid, judging=judging, group=group).filter(group=ANY)
        frames.append(table.with_columns(pl.lit(group).alias("group"), t=pl.int_range(pl.len(), dtype=pl.Int32)))
    return pl.concat(frames)


def _by_family(severities: Severities, families: Mapping[str, Sequence[str]]) -> Severities:
    """One row per family: the worst over its rules, so that it is violated where at least one of them is."""
    parts = [severities.only(list(rules)) for rules in families.values()]
    worst = np.array([np.fmax.reduce(part.severity, 0) for part in parts]).reshape(len(parts), len(severities.cases))
    status = np.array(
        [np.where(np.isnan(row), part.status.max(0), 1) for row, part in zip(worst, parts, strict=True)], np.uint8
    ).reshape(worst.shape)
    return Severities(tuple(families), severities.cases, worst, status, np.zeros(worst.shape, np.uint8), ("",))


def _coverage(severities: Severities, known: pl.DataFrame, grid: Sequence[float]) -> pl.DataFrame:
    table = _with_t([coverage(severities, dict.fromkeys(severities.rules, value)) for value in grid])
    names = dict(known.select("rule", "name").iter_rows())
    return table.with_columns(pl.col("of", "by").replace(names))


def _straying(run: Run, relation: str, grid: Sequence[float], start: int, judging: str) -> list[pl.DataFrame]:
    """Parts that stray more often than the whole; below the usual threshold it would be everybody's noise."""
    matrix = run.part_matrix(relation, judging)
    if matrix is None:
        return [pl.DataFrame(schema=STRAYING)] * len(grid)
    tables = [straying_parts(matrix, dict.fromkeys(matrix.rules, value)) for value in grid]
    return [table if t >= start else table.clear() for t, table in enumerate(tables)]


def _classes(run: Run, relation: str, grid: Sequence[float], start: int, judging: str) -> list[pl.DataFrame]:
    """Classes that stray more often than others, from the usual threshold on."""
    frame = run.class_severities(relation, judging)
    tables = [straying_classes(frame, dict.fromkeys(frame["rule"].unique(), value)) for value in grid[start:]]
    return [tables[0].clear()] * start + tables


def _slices(run: Run, severities: Severities, grid: Sequence[float]) -> list[pl.DataFrame]:
    properties = run.described()
    return [slices(properties, severities, dict.fromkeys(severities.rules, value)) for value in grid]


def _selections(
    run: Run, severities: Severities, grid: Sequence[float], start: int
) -> dict[int, tuple[pl.DataFrame, bool]]:
    """The cheapest rules that find all failing cases; of a large run only where the page starts: it takes seconds."""
    places = range(len(grid)) if severities.severity.size <= SEARCHED else [start]
    needed = {one: [t.id for t in named_rule(one).transformations] for one in severities.rules}
    cost = costs(run.store)
    return {t: selected(severities, dict.fromkeys(severities.rules, grid[t]), needed, cost) for t in places}
