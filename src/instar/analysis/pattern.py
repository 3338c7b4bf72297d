"""Look at all rules together: what the violated rules have in common says more than each of them alone.

A pattern is claimed only with evidence: many cases, a difference that chance does not explain (case by case, since the
objects of an image are no independent trials), and no such violations when nothing was changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.analysis.severities import BETWEEN, COLUMNS, Bools, Floats, severities
from instar.analysis.subjects import confidence_of
from instar.engine import DEFAULT, SOURCE
from instar.outputs import output_kind
from instar.stats import binomial_excess, fisher_excess, holm, swapped_sides
from instar.store import of_cases

if TYPE_CHECKING:
    from instar.analysis.run import Run

MOST_CASES = 2000
"""Most cases whose verdicts are used; more take longer and add no evidence."""
CASES = 300
"""Most cases whose objects are used."""
LEVEL = 0.005
"""Highest p of a pattern."""
FACTOR = 3.0
"""How many times more often the rules of a pattern are violated than the others, at least."""
LEAST_RATE = 0.05
"""Share of the instances that violate the rules of a pattern, at least."""
OUTLIER = 0.3
"""Share of the instances from which on a family that is violated far more than others is left out of a comparison."""
BREADTH = 0.5
"""Share of a pattern's families that are violated, at least, and at least two: otherwise single rules say more."""

MOVES, RESIZES, COLOUR, DETAIL = "moves", "resizes", "colour", "detail"
"""What a rule changes: places in the frame, the frame's size alone, single pixels, or pixels with their neighbours."""
PIXELS = (COLOUR, DETAIL)


@dataclass(frozen=True, slots=True)
class Pattern:
    """What many violated rules have in common. `rules` are those that it explains; `cause` says that it names the fault
    itself, and not only what these rules change."""

    code: str
    figures: Mapping[str, Any]
    rules: frozenset[str]
    cause: bool = False


def leading_pattern(run: Run, threshold: float | None = None, judging: str = DEFAULT) -> Pattern | None:
    """Return the pattern that explains the violated rules of a run best, or None if nothing shows one."""

    def look() -> Pattern | None:
        if run.searched or run.looked or run.manifest.output is None:
            return None
        seen = _Seen.of(run, threshold, judging)
        tests = (_seam, _most_objects, _coarse_grid, _any_change, *_ONLY)
        return next((found for test in tests if (found := test(seen)) is not None), None) if seen.enough else None

    return run.cached(("pattern", threshold, judging), look)


def outstanding_rules(
    run: Run,
    threshold: float | None = None,
    judging: str = DEFAULT,
    *,
    p: float | None = None,
    pattern: Pattern | None = None,
) -> frozenset[str]:
    """Return the rules that are violated significantly more often than the other rules on the same cases.

    Were all rules alike, each violation of a case would fall to any of the rules that were judged there: a test tells
    how often chance alone gives a rule as many (corrected after Holm). The rule's rate must also be twice that of the
    others, and half of the highest rate. The rules of a pattern are compared with each other, since the pattern already
    says how they differ from the rest; if it names the cause, none of them stands out.
    """
    matrix = run.severities(judging).per_case()
    matrix = matrix.only([rule for rule in run.rules(judging).filter(over="case")["rule"] if rule in matrix.rules])
    hits, judged = matrix.violated(run.thresholds(threshold), run.alphas(p)), ~np.isnan(matrix.severity)
    rates = hits.sum(1) / np.maximum(judged.sum(1), 1)
    own = np.isin(matrix.rules, list(pattern.rules) if pattern is not None else [])
    found: dict[str, float] = {}
    for group in (~own,) if pattern is not None and pattern.cause else (own, ~own):
        some, every = hits[group].sum(0), judged[group].sum(0)
        for place in np.flatnonzero(group):
            there = judged[place] & (every > 1)
            violated, others = int(hits[place, there].sum()), float((some - hits[place])[there].sum())
            rate, rest = violated / max(1, there.sum()), others / max(1, (every - 1)[there].sum())
            found[matrix.rules[place]] = 1.0
            if violated and rate >= max(2 * rest, rates.max() / 2):
                chance = (some[there] / every[there]).mean()  # bounds the tail of unequal chances (Hoeffding)
                found[matrix.rules[place]] = float(binomial_excess(violated, there.sum(), chance))
    corrected = dict(zip(found, holm(list(found.values())), strict=True))
    return frozenset(rule for rule, chance in corrected.items() if chance <= 0.05)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a run shows, instance by instance (an object, a person or a whole image)."""

    run: Run
    judging: str
    rules: tuple[str, ...]
    families: Mapping[str, str]
    changes: Mapping[str, str]
    """What each rule changes; nothing for a rule that does something else."""
    columns: pl.DataFrame
    """The `case` and the `target` of each column."""
    owners: npt.NDArray[np.int64]
    hits: Bools
    judged: Bools
    unchanged: float
    """Share of the instances that deviate without any change; 0 if that was not predicted."""

    @classmethod
    def of(cls, run: Run, threshold: float | None, judging: str) -> _Seen:
        limits, rules = run.thresholds(threshold), run.rules(judging).filter(over="case")
        cases = run.severities(judging).cases.drop_nulls().head(MOST_CASES)
        verdicts = run.store.verdict_parts(judging, COLUMNS, of_cases(cases))
        matrix = severities(verdicts, rules=rules["rule"].to_list(), by="target")
        hits, judged = matrix.violated(limits), ~np.isnan(matrix.severity)
        families = dict(rules.select("rule", "family").iter_rows())
        same = np.array([families[rule] == "identity" for rule in matrix.rules], bool)
        tried = int(judged[same].sum())
        split = matrix.cases.str.split_exact(BETWEEN, 1).struct.rename_fields(["case", "target"]).struct.unnest()
        owners = split["case"].rank("dense").to_numpy().astype(np.int64) - 1
        changes = _changes(run) if hits[~same].any() else {}
        unchanged = int(hits[same].sum()) / max(1, tried)
        return cls(run, judging, matrix.rules, families, changes, split, owners, hits, judged, unchanged)

    @property
    def enough(self) -> bool:
        return bool(self.changes)

    def names(self, *changes: str) -> list[str]:
        return [rule for rule in self.rules if self.changes.get(rule) in changes]

    def at(self, rules: Collection[str]) -> Bools:
        return np.isin(self.rules, list(rules))

    def rate(self, rules: Collection[str]) -> float:
        at = self.at(rules)
        return float(self.hits[at].sum() / max(1, self.judged[at].sum()))

    def family_rates(self, rules: Collection[str]) -> Mapping[str, float]:
        members: dict[str, list[str]] = {}
        for rule in rules:
            members.setdefault(self.families[rule], []).append(rule)
        return {family: self.rate(names) for family, names in members.items()}

    def counts(self, others: Bools, members: Bools) -> Floats:
        """Hits and trials of either side, case by case; a side is a mask of cells."""
        cells = [(self.hits & others), (self.judged & others), (self.hits & members), (self.judged & members)]
        count = int(self.owners.max(initial=-1)) + 1
        return np.stack([np.bincount(self.owners, cell.sum(0), count) for cell in cells], 1)

    def without_outlier(self, rules: Collection[str]) -> tuple[list[str], str | None]:
        """Leave out the one family that is violated far more often than all others of these rules, and name it."""
        rates = sorted(self.family_rates(rules).items(), key=lambda each: -each[1])
        if len(rates) < 3 or rates[0][1] < OUTLIER or rates[0][1] < FACTOR * rates[1][1]:
            return list(rules), None
        return [rule for rule in rules if self.families[rule] != rates[0][0]], rates[0][0]

    def apart(
        self, others: Collection[str], members: Collection[str], factor: float = FACTOR
    ) -> Mapping[str, Any] | None:
        """Figures of rules that are violated much more often than others are, and than without any change."""
        if not others or not members:
            return None
        rows = self.at(others)[:, None], self.at(members)[:, None]
        return _apart(self.counts(*rows), self.unchanged, factor)


def _apart(counts: Floats, unchanged: float = 0.0, factor: float = FACTOR) -> Mapping[str, Any] | None:
    """Figures of a difference of two shares, of counts (cases, 4); None if it is small or may be chance."""
    hits, tries, own_hits, own_tries = counts.sum(0)
    if not tries or not own_tries:
        return None
    rate, others = float(own_hits / own_tries), float(hits / tries)
    if rate < LEAST_RATE or rate < factor * max(others, unchanged):
        return None
    p = swapped_sides(counts)
    cases = int(((counts[:, 1] > 0) | (counts[:, 3] > 0)).sum())
    return {"rate": rate, "others": others, "cases": cases, "p": p} if p <= LEVEL else None


def _changes(run: Run) -> dict[str, str]:
    """Classify the rules by what they change, using the stored warps and the declarations of transformations."""
    cases = run.store.cases(["case"])["case"].head(CASES)
    columns = ["case", "follow_up", "width", "height", "warp"]
    rows = run.store.predictions(columns, where=of_cases(cases) & (pl.col("status") == "ok"))
    frames = rows.filter(follow_up=SOURCE).unique("case").select("case", own_width="width", own_height="height")
    moved: dict[str, str | None] = {}
    followed = rows.filter(pl.col("follow_up") != SOURCE).join(frames, on="case", maintain_order="left")
    for name, _, width, height, warp, own_width, own_height in followed.select(
        "follow_up", "case", "width", "height", "warp", "own_width", "own_height"
    ).iter_rows():
        if moved.get(name) == MOVES or None in (warp, width, height, own_width, own_height):
            continue
        matrix = np.reshape(warp, (3, 3)).astype(np.float64)
        relative = np.diag([1 / width, 1 / height, 1]) @ matrix @ np.diag([own_width, own_height, 1])
        still = np.allclose(relative, np.eye(3), atol=1e-3)
        moved[name] = MOVES if not still else RESIZES if not np.allclose(matrix, np.eye(3), atol=1e-3) else None
    found = {}
    for rule in run.bound_rules():
        first = rule.transformations[0]
        change = moved.get(first.id)
        if change is None and first.photometric and first.id != "identity":
            change = COLOUR if first.pointwise else DETAIL
        if change is not None:
            found[rule.id] = change
    return found


# what only some rules show


def _only(code: str, members: Sequence[str], others: Sequence[str]) -> Callable[[_Seen], Pattern | None]:
    """Build a test for rules that are violated if they change one thing, and kept if they change another.

    One family alone makes no pattern, and hides none: greyscale takes every object from a model that knows colours.
    """

    def test(seen: _Seen) -> Pattern | None:
        rules = seen.names(*members)
        rates = seen.family_rates(rules)
        broad = [rate for rate in rates.values() if rate >= max(LEAST_RATE, max(rates.values()) / 10)]
        if len(broad) < max(2, BREADTH * len(rates)):
            return None
        rest, outlier = seen.without_outlier(seen.names(*others))
        figures = seen.apart(rest, rules)
        if figures is None or seen.apart(rest, seen.without_outlier(rules)[0]) is None:
            return None
        return Pattern(code, figures if outlier is None else {**figures, "apart_from": outlier}, frozenset(rules))

    return test


_ONLY = (
    _only("pattern.position", (MOVES,), PIXELS),
    _only("pattern.colour", (COLOUR,), (MOVES, DETAIL)),
    _only("pattern.detail", (DETAIL,), (MOVES, COLOUR)),
    _only("pattern.appearance", PIXELS, (MOVES,)),
)


def _any_change(seen: _Seen) -> Pattern | None:
    """Test whether all rules are violated about equally often, but nothing without a change."""
    rules, same = seen.names(MOVES, RESIZES, *PIXELS), [r for r in seen.rules if seen.families[r] == "identity"]
    moves, pixels = seen.rate(seen.names(MOVES)), seen.rate(seen.names(*PIXELS))
    rates = seen.family_rates(rules)
    kinds = {seen.changes[rule] for rule in rules}
    if (
        not kinds >= {MOVES, COLOUR, DETAIL}
        or min(moves, pixels) < 0.3
        or 1.5 * min(moves, pixels) < max(moves, pixels)
    ):
        return None
    if 2.5 * min(rates.values()) < max(rates.values()):
        return None
    figures = seen.apart(same, rules)
    if figures is None:
        return None
    return Pattern("pattern.any_change", {**figures, "moves": moves, "pixels": pixels}, frozenset(rules))


# what the places of objects show


@dataclass(frozen=True, slots=True)
class _Objects:
    """What was found in some cases: `rows` are predictions, `boxes` what counts in them, by number of the row."""

    rows: pl.DataFrame
    boxes: pl.DataFrame


def _objects(seen: _Seen) -> _Objects | None:
    """Return what the predictions of some cases found, or None for a kind of output without objects."""
    run = seen.run
    kind = output_kind(run.manifest.system.kind)
    if not kind.has_marks:
        return None

    def read() -> _Objects | None:
        wanted = seen.columns["case"].unique(maintain_order=True).head(CASES)
        own = [name for name, dtype in kind.columns.items() if dtype != pl.Binary]
        columns = ["case", "follow_up", "draw", "repeat", "width", "height", "warp", *own]
        where = of_cases(wanted) & (pl.col("status") == "ok") & (pl.col("draw") == 0) & (pl.col("repeat") == 0)
        rows = run.store.predictions(columns, where=where)
        boxes = kind.subjects(rows, run.manifest.header)
        if boxes is None:
            return None
        numbered = boxes.with_columns(number=pl.int_range(pl.len()).over("row"))
        kept = rows.select("case", "follow_up", "width", "height", "warp").with_row_index("row")
        return _Objects(kept, numbered.filter(pl.col("score") >= confidence_of(run, seen.judging)))

    return run.cached(("pattern objects", seen.judging), read)


LINES = (0.3, 0.4, 0.6, 0.7)
"""Lines beside the middle, as shares of the frame: things of the same size touch them as often."""


def _seam(seen: _Seen) -> Pattern | None:
    """Test whether objects on the middle line of the frame fail more often than objects on lines beside it."""
    objects = _objects(seen)
    if objects is None:
        return None
    targets = _targets(seen, objects)
    if targets.is_empty():
        return None
    found = {}
    for axis, size in (("x", "width"), ("y", "height")):
        middle = _touches(axis, size, 0.5)
        beside = pl.any_horizontal(_touches(axis, size, line) for line in LINES) & ~middle
        sides = [pl.col("hit") & beside, beside, pl.col("hit") & middle, middle]
        counts = targets.group_by("case").agg(side.sum().alias(str(at)) for at, side in enumerate(sides))
        figures = _apart(counts.select("0", "1", "2", "3").to_numpy().astype(np.float64), seen.unchanged)
        if figures is not None:
            found["vertical" if axis == "x" else "horizontal"] = figures
    if not found:
        return None
    best = max(found.values(), key=lambda figures: figures["rate"])
    return Pattern("pattern.seam", {"lines": [*found], **best}, frozenset(seen.names(MOVES, RESIZES, *PIXELS)), True)


def _touches(axis: str, size: str, line: float) -> pl.Expr:
    """Return an expression that is true if a box touches a line in the source, or would touch it in the follow-up."""
    return pl.any_horizontal(
        (pl.col(f"{axis}0{side}") - 1 <= line * pl.col(f"{size}{side}"))
        & (pl.col(f"{axis}1{side}") + 1 >= line * pl.col(f"{size}{side}"))
        for side in ("", "_after")
    )


def _targets(seen: _Seen, objects: _Objects) -> pl.DataFrame:
    """One row for each object and rule: its box in the source, where that belongs in the follow-up, and whether the
    object is a `hit`."""
    at = np.argwhere(seen.judged & seen.at(seen.names(MOVES, RESIZES, *PIXELS))[:, None])
    follow_ups = {rule.id: rule.transformations[0].id for rule in seen.run.bound_rules()}
    verdicts = seen.columns[at[:, 1]].with_columns(
        pl.col("target").str.split("/").list.first().cast(pl.Int64, strict=False).alias("number"),
        follow_up=pl.Series([follow_ups[seen.rules[row]] for row in at[:, 0]], dtype=pl.String),
        hit=pl.Series(seen.hits[at[:, 0], at[:, 1]]),
    )
    places = objects.boxes.join(objects.rows, on="row")
    sources = places.filter(follow_up=SOURCE).select("case", "number", "x0", "y0", "x1", "y1", "width", "height")
    after = objects.rows.filter(pl.col("follow_up") != SOURCE).select(
        "case", "follow_up", "warp", width_after="width", height_after="height"
    )
    pairs = verdicts.drop_nulls("number").join(sources, on=["case", "number"]).join(after, on=["case", "follow_up"])
    if pairs.is_empty():
        return pairs
    matrix = np.array(pairs["warp"].to_list(), np.float64).reshape(-1, 3, 3)
    x0, y0, x1, y1 = pairs.select("x0", "y0", "x1", "y1").to_numpy().T
    square = np.stack([np.stack([x, y, np.ones(len(x))], -1) for x, y in ((x0, y0), (x1, y0), (x1, y1), (x0, y1))], 1)
    moved = square @ matrix.transpose(0, 2, 1)
    moved = moved[..., :2] / moved[..., 2:]
    ends = {
        "x0": moved[..., 0].min(1),
        "x1": moved[..., 0].max(1),
        "y0": moved[..., 1].min(1),
        "y1": moved[..., 1].max(1),
    }
    return pairs.with_columns(pl.Series(f"{name}_after", values) for name, values in ends.items())


NEARLY_ALWAYS = 0.75
"""A rule that this share of the instances violate doesn't tell which images fail."""


def _most_objects(seen: _Seen) -> Pattern | None:
    """Many images show as many objects as any, none shows more, and these images fail, unlike those with fewer."""
    objects = _objects(seen)
    if objects is None:
        return None
    found = objects.boxes.group_by("row").len("count")
    rows = objects.rows.join(found, on="row", how="left").with_columns(pl.col("count").fill_null(0))
    sources = rows.filter(follow_up=SOURCE).select("case", source="count")
    most = int(rows["count"].max() or 0)  # type: ignore[arg-type]
    at = sources.filter(pl.col("source") == most)["case"]
    below = sources.filter(pl.col("source").is_between(1, most - 1))
    next_to = below.filter(pl.col("source") == most - 1).height
    if not len(at) or not below.height or binomial_excess(len(at), len(at) + next_to, 0.5) > 0.05:
        return None
    every = seen.names(MOVES, RESIZES, *PIXELS)
    changed = [rule for rule in every if seen.rate([rule]) < NEARLY_ALWAYS]
    cells = np.argwhere(seen.hits & seen.at(changed)[:, None])
    follow_ups = {rule.id: rule.transformations[0].id for rule in seen.run.bound_rules()}
    violated = pl.DataFrame(
        {
            "case": seen.columns["case"].gather(cells[:, 1]),
            "follow_up": pl.Series([follow_ups[seen.rules[row]] for row in cells[:, 0]], dtype=pl.String),
        }
    ).unique()
    failing = violated["case"].unique()
    full, fewer = (int(cases.is_in(failing.implode()).sum()) for cases in (at, below["case"]))
    p = float(fisher_excess(full, len(at), fewer, below.height))
    rate, others = full / len(at), fewer / below.height
    if p > LEVEL or rate < FACTOR * max(others, seen.unchanged):
        return None
    pairs = rows.join(violated, on=["case", "follow_up"], how="semi").filter(pl.col("case").is_in(at.implode()))
    if 2 * pairs.filter(pl.col("count") == most).height < pairs.height:  # a limit gives other objects, not fewer
        return None
    figures = {"most": most, "rate": rate, "others": others, "cases": len(at), "other_cases": below.height, "p": p}
    return Pattern("pattern.most_objects", figures, frozenset(changed), True)


COARSE = range(4, 65)
"""Widths of a cell in pixels: a finer grid is no coarse one."""
CELLS = range(6, 129)
"""Cells along a side of the frame."""
COORDINATES = 4000
FEWEST = 40
ON_GRID = 0.95
GRID_FACTOR = 1.5


def _coarse_grid(seen: _Seen) -> Pattern | None:
    """Test whether coordinates are on a grid and rules that move objects between its cells are violated."""
    moved = seen.names(MOVES, RESIZES)
    rest, outlier = seen.without_outlier(seen.names(*PIXELS))
    figures = seen.apart(rest, moved, GRID_FACTOR)  # the grid itself is evidence, so that the rates may differ by less
    objects = _objects(seen) if figures is not None else None
    if figures is None or objects is None:
        return None
    places = objects.boxes.join(objects.rows, on="row")
    values = np.concatenate([places[name].to_numpy() for name in ("x0", "x1", "y0", "y1")])
    sides = np.concatenate([places[name].to_numpy() for name in ("width", "width", "height", "height")])
    longest = np.tile(places.select(pl.max_horizontal("width", "height")).to_series().to_numpy(), 4)
    inner = np.isfinite(values) & (values > 1) & (values < sides - 1)
    kept = np.flatnonzero(inner)
    kept = kept[:: max(1, len(kept) // COORDINATES)]
    if len(kept) < FEWEST:
        return None
    grids = {
        **{("pixels", cell): np.full(len(kept), float(cell)) for cell in COARSE},
        **{("side", count): sides[kept] / count for count in CELLS},
        **{("longest side", count): longest[kept] / count for count in CELLS},
    }
    found = [
        (float(np.median(steps)), unit, number)
        for (unit, number), steps in grids.items()
        if np.median(steps) >= COARSE[0] and _share_on_grid(values[kept], steps) >= ON_GRID
    ]
    if not found:
        return None
    step, unit, number = max(found, key=lambda grid: grid[0])
    return Pattern(
        "pattern.coarse_grid",
        {
            **figures,
            **({} if outlier is None else {"apart_from": outlier}),
            "step": step,
            "unit": unit,
            "number": number,
        },
        frozenset(moved),
        True,
    )


def _share_on_grid(values: Floats, steps: Floats) -> float:
    """Return the share of coordinates within half a pixel of one place in their cells, wherever the grid begins."""
    angles = 2j * np.pi * values / steps
    begin = np.angle(np.exp(angles).mean())
    off = np.abs(np.angle(np.exp(angles - 1j * begin))) / (2 * np.pi) * steps
    return float((off <= np.minimum(0.5, steps / 8) + 1e-3).mean())
