"""Second predictions: violating pairs are predicted again, to see whether their outputs depend on chance or memory."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl
import xxhash

from instar.analysis.run import Run
from instar.engine import SOURCE, Key, chunks, make_plan, verdicts_of
from instar.outputs import output_kind
from instar.relations import BoundRule
from instar.store import KEY, Manifest, Store, of_cases

SHARE, LEAST, MOST = 0.05, 50, 1000
"""Pairs that are predicted again: a share of the run's predictions, within these ends."""
RELATIVE, ABSOLUTE = 1e-4, 1e-3
"""Numbers that differ by less are equal but for the order of floating-point operations."""
SHOWN = 3
"""Examples of pairs with another output."""
IDENTITY = "identity"

Pair = tuple[str, str]
"""A case and a follow-up."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """Choose violating pairs whose follow-up and source are predicted a second time.

    Rules take turns, so that a rule that is often violated leaves room for the rare random violations of others. The
    source is not predicted again if `identity` did so. What is stored counts: a finished run chooses nothing more.
    """

    store: Store

    def __call__(self, cases: Sequence[str]) -> Mapping[str, Collection[Key]]:
        manifest = self.store.manifest()
        if not _may_repeat(manifest) or not self.store.state("predictions"):
            return {}
        run = Run(self.store)
        plan = make_plan(run.bound_rules(), seed=manifest.seed, deterministic=True)
        draws = {one.transformation.id: one.draws for one in plan.follow_ups}
        stored = {(case, (name, draw, repeat)) for case, name, draw, repeat in _second_keys(self.store).iter_rows()}
        begun = {(case, name) for case, (name, _, _) in stored}
        first = self.store.predictions(["status"], query=lambda rows: rows.select(pl.len())).item()
        limit = min(MOST, max(LEAST, int(SHARE * first)))
        known = set(cases)
        pairs = sorted((pair for pair in _violating(run) if pair[0] in known), key=lambda pair: pair not in begun)
        unchanged = _identity_cases(self.store)
        chosen: dict[str, list[Key]] = {}
        for case, name in pairs[:limit]:
            source = [] if case in unchanged else [(SOURCE, 0, 1)]
            for key in (*source, *((name, draw, 1) for draw in range(draws[name]))):
                if (case, key) not in stored and key not in chosen.setdefault(case, []):
                    chosen[case].append(key)
        return {case: keys for case, keys in chosen.items() if keys}


def _may_repeat(manifest: Manifest) -> bool:
    """Return whether violating pairs of the run are predicted again.

    The repeats of a stochastic system are part of its rules. Recorded outputs have no system to ask, and suites that
    reproduce a paper predict what the paper did.
    """
    papers = any("@paper" in name for name in manifest.suites)
    return manifest.system.deterministic and manifest.recorded is None and manifest.search is None and not papers


def _violating(run: Run) -> list[Pair]:
    """Return the violating pairs of rules that change something, rules taking turns, in a seeded order."""
    matrix = run.severities().only(run.changing_rules())
    names = {rule.id: rule.transformations[0].id for rule in run.bound_rules()}
    seed, ranked = run.manifest.seed, list[tuple[int, int, Pair]]()
    for rule, violated in zip(matrix.rules, matrix.violated(run.thresholds()), strict=True):
        of_rule = matrix.cases.filter(pl.Series(violated, dtype=pl.Boolean)).drop_nulls()
        lots = sorted((xxhash.xxh3_64_intdigest(f"{seed}\x1f{rule}\x1f{case}".encode()), case) for case in of_rule)
        ranked += [(turn, lot, (case, names[rule])) for turn, (lot, case) in enumerate(lots)]
    return list(dict.fromkeys(pair for _, _, pair in sorted(ranked)))


def _second_keys(store: Store) -> pl.DataFrame:
    return store.predictions(list(KEY), where=pl.col("repeat") > 0, again=True)


def _identity_cases(store: Store) -> set[str]:
    """Return the cases whose unchanged input was predicted twice, as source and as `identity`."""
    predicted = (pl.col("follow_up") == IDENTITY) & (pl.col("status") == "ok")
    return set(store.predictions(["case"], where=predicted)["case"])


@dataclass(frozen=True, slots=True)
class Repeated:
    """What came of predicting violating pairs again.

    Of `pairs`, in `differing` the second output of the follow-up or of the source is another one, or missing; with the
    second outputs `passing` of these violate no rule any more. `examples` are some of the differing pairs.
    """

    pairs: int
    differing: int
    passing: int
    examples: tuple[Pair, ...]


def repeated(run: Run) -> Repeated | None:
    """Compare the second outputs of violating pairs with the first; None if no pair was predicted again."""
    return run.cached("repeated", lambda: _repeated(run))


def _repeated(run: Run) -> Repeated | None:
    if not _may_repeat(run.manifest) or not run.store.state("predictions"):
        return None
    asked = set(_second_keys(run.store).select("case", "follow_up").iter_rows())
    pairs = sorted({*((case, name) for case, name in asked if name != SOURCE), *_unsteady(run)})
    if not pairs:
        return None
    cases = pl.Series(sorted({case for case, _ in pairs}), dtype=pl.String)
    names = {SOURCE, IDENTITY, *(name for _, name in pairs)}
    wanted = of_cases(cases) & pl.col("follow_up").is_in(sorted(names))
    differing, passing = set[Pair](), set[Pair]()
    for piece in chunks(run.store, wanted):
        rows = run.store.whole(piece.predictions(where=wanted, again=True))
        of_piece = set(rows["case"])
        own = [pair for pair in pairs if pair[0] in of_piece]
        second = _second(rows)
        other = _other_outputs(run, rows, second)
        differing.update(pair for pair in own if not other.isdisjoint((pair, (pair[0], SOURCE))))
        passing.update(_passing(run, second, [pair for pair in own if pair in differing]))
    return Repeated(len(pairs), len(differing), len(passing), tuple(sorted(differing)[:SHOWN]))


def _unsteady(run: Run) -> Iterator[Pair]:
    """Yield the violating pairs of `identity`: source and follow-up are one input that was predicted twice."""
    unchanged = run.rules().filter(family=IDENTITY)["rule"].to_list()
    matrix = run.severities().only(unchanged)
    violated = pl.Series(matrix.violated(run.thresholds()).any(0), dtype=pl.Boolean)
    yield from ((case, IDENTITY) for case in matrix.cases.filter(violated).drop_nulls())


def _second(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the second predictions with the keys of the first; that of `identity` is a second one of the source."""
    unchanged = (pl.col("follow_up") == IDENTITY) & (pl.col("status") == "ok")
    as_source = rows.filter(unchanged).with_columns(follow_up=pl.lit(SOURCE), repeat=pl.lit(1, pl.Int32))
    again = pl.concat([as_source, rows.filter(pl.col("repeat") > 0)])
    return again.with_columns(repeat=pl.lit(0, pl.Int32)).unique(list(KEY), keep="first", maintain_order=True)


def _other_outputs(run: Run, rows: pl.DataFrame, second: pl.DataFrame) -> set[Pair]:
    """Return the inputs, by case and follow-up, whose second output is missing or another one than the first."""
    columns = list(output_kind(run.manifest.system.kind).columns)
    both = rows.filter(status="ok").join(second.select(*KEY, "status", *columns), on=KEY, suffix=" again")
    return {
        (row["case"], row["follow_up"])
        for row in both.iter_rows(named=True)
        if row["status again"] != "ok" or not all(_equal(row[name], row[f"{name} again"]) for name in columns)
    }


def _equal(first: object, second: object) -> bool:
    """Return whether two stored values are equal but for the order of floating-point operations."""
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(_equal, first, second))
    if isinstance(first, float) and isinstance(second, float):
        close = math.isclose(first, second, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
        return close or (math.isnan(first) and math.isnan(second))
    return first == second


def _passing(run: Run, second: pl.DataFrame, pairs: Sequence[Pair]) -> set[Pair]:
    """Return the pairs that violate no rule if they are judged by their second outputs."""
    names = {name for _, name in pairs}
    groups: dict[str, list[BoundRule]] = {}
    for rule in run.bound_rules():
        if rule.id in run.changing_rules() and rule.transformations[0].id in names:
            groups.setdefault(rule.relation.id, []).append(rule)
    limits, worst = run.thresholds(), dict[Pair, list[bool]]()
    cases = sorted({case for case, _ in pairs})
    for rules in groups.values():
        verdicts = verdicts_of(run.store, rules, cases, second).filter(pl.col("severity").is_not_null())
        follow_ups = {rule.id: rule.transformations[0].id for rule in rules}
        for case, rule, severity in verdicts.select("case", "rule", "severity").iter_rows():
            violated = severity > 0 and severity >= limits[rule]
            worst.setdefault((case, follow_ups[rule]), []).append(violated)
    return {pair for pair in pairs if pair in worst and not any(worst[pair])}
