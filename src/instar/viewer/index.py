"""What a judging says, in memory and in numbers: filters over millions of verdicts take milliseconds."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from threading import Lock, RLock, Thread
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.analysis import Run, Severities, noise, rates
from instar.analysis.boundary import Boundary, visual_changes
from instar.analysis.severities import Numbers, shown_status
from instar.engine import DEFAULT, bound_rules, judge
from instar.relations import BoundRule, Rule
from instar.report.finding import Finding
from instar.report.findings import findings
from instar.report.marks import roles_of
from instar.report.picture import LegendEntry
from instar.report.rebuild import run_legend
from instar.report.section import counted_kinds
from instar.report.words import severity_text
from instar.store import Manifest, Row, Store

Bools = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int32]
K = TypeVar("K")
T = TypeVar("T")

COLUMNS = ("case", "target", "rule", "severity", "kind", "status", "reason")
DRAW = "draw"
"""Of several follow-ups the one that shows the verdict, where its relation names one."""
SCORES = ("source_score", "follow_up_score")
"""How sure the system was in both images, where the relation measures it."""
STATUSES = ("ok", "nothing found", "not applicable", "error", "timeout", "crashed")
OK, NOTHING_FOUND, NOT_APPLICABLE = range(3)
FAILED = STATUSES[3:]
AT_ONCE = 1_000_000
"""Verdicts whose texts become numbers together: many small parts take twice as long one by one."""
MOST_VALUES = 20
"""A column with more different texts is a name, not a slice."""
GRACE = 0.5
"""Seconds in which pages that waited for the run are made, before work goes on that they do without."""
RELATIONS, SUITES = "the relation's own", "the suite's"
"""Where a threshold comes from that the user did not choose."""
_SHOWN = ("case", "path", "hash", "width", "height", "status", "message", "attributes", "properties")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RuleFacts:
    """One rule of a run, from where on it is violated, and where that threshold comes from."""

    id: str
    name: str
    words: str
    family: str
    relation: str
    unit: str
    over: str
    threshold: float
    origin: str
    help: str
    mapping: bool

    @property
    def changing(self) -> bool:
        """Whether it changes something and is judged case by case: others count in no rate, as `Run.judged` has it."""
        return self.over == "case" and self.family != "identity"


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """The cases that have something in common: a property, in words which part of it, and which cases."""

    property: str
    part: str
    cases: Bools


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Verdicts by case and then by rule, as numbers of the index's lists. A severity is NaN where there is none."""

    case: Codes
    rule: Codes
    target: Codes
    severity: npt.NDArray[np.float64]
    kind: Codes
    status: Codes
    reason: Codes
    draw: Codes
    source_score: npt.NDArray[np.float64]
    follow_up_score: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.case)

    def at(self, where: npt.NDArray[np.generic]) -> Pairs:
        return Pairs(*(getattr(self, column.name)[where] for column in fields(self)))


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """The worst verdict of each pair, its severity in units of the rule's threshold, and the order by that."""

    pairs: Pairs
    measured: npt.NDArray[np.float64]
    by_severity: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """One judging of a run as it was at one moment. Never changes: a newer one takes its place."""

    version: str
    judging: str
    parts: tuple[int, int]
    manifest: Manifest
    rules: tuple[RuleFacts, ...]
    grids: Mapping[str, tuple[float, ...]]
    cases: pl.Series
    facts: pl.DataFrame
    targets: Sequence[str]
    kinds: Sequence[str]
    statuses: Sequence[str]
    reasons: Sequence[str]
    groups: tuple[str, ...]
    over_cases: pl.DataFrame
    tests: pl.DataFrame
    predictions: Mapping[str, int]
    judgings: tuple[str, ...]
    verdicts: Pairs
    run: Run
    _groups: dict[str, Group] = field(default_factory=dict)
    _matrices: dict[str, Severities] = field(default_factory=dict)
    _findings: dict[float | None, Future[list[Finding]]] = field(default_factory=dict)
    _limits: dict[tuple[float | None, int], Future[Boundary | ValueError]] = field(default_factory=dict)
    _sliced: dict[str, Slice] = field(default_factory=dict)
    _legends: dict[str, list[LegendEntry]] = field(default_factory=dict)
    _lock: RLock = field(default_factory=RLock)
    _reading: RLock = field(default_factory=RLock)

    @property
    def described(self) -> pl.DataFrame:
        """What is known of each case, from its source's answer too: read when it is first asked for."""
        with self._reading:
            return self.run.described() if self.facts.height else self.facts.select("case")

    @property
    def slices(self) -> Mapping[str, Slice]:
        """The cases by what is known of them, by the slice's name."""
        with self._reading:
            if not self._sliced:
                self._sliced.update(_slices(self.described, self.cases))
            return self._sliced

    def complete(self) -> None:
        """Make what takes longest, and some pages do without, before anybody asks for it."""
        self.findings()
        time.sleep(GRACE)
        _ = self.slices

    def group(self, name: str = "") -> Group:
        """The pairs, by their worst target; with a name only targets of that part of a subject count."""
        with self._lock:
            if name not in self._groups:
                self._groups[name] = self._grouped(name)
            return self._groups[name]

    def _grouped(self, name: str) -> Group:
        rows = self.verdicts
        if name:
            of_group = np.array([target.rpartition("/")[2] == name for target in self.targets] or [False])
            whole = np.array([target == "whole" for target in self.targets] or [False])
            # where nobody was found, no part was
            members = of_group[rows.target] | (whole[rows.target] & (rows.status == NOTHING_FOUND))
            if self.group().pairs is rows:  # one target each: the order of all of them is that of some of them
                every = self.group()
                order = (np.cumsum(members) - 1)[every.by_severity[members[every.by_severity]]]
                return Group(rows.at(members), every.measured[members], order)
            rows = rows.at(members)
        pairs = _worst(rows)
        limits = np.array([rule.threshold or 1.0 for rule in self.rules] or [1.0])
        measured = pairs.severity / limits[pairs.rule]
        return Group(pairs, measured, _by_severity(pairs.case, measured))

    def matrix(self, group: str = "") -> Severities:
        """The pairs as the analyses take them."""
        with self._lock:
            if group not in self._matrices:
                self._matrices[group] = self._matrix(self.group(group).pairs)
            return self._matrices[group]

    def _matrix(self, pairs: Pairs) -> Severities:
        shape = len(self.rules), len(self.cases)
        severity = np.full(shape, np.nan)
        status, kind = np.zeros(shape, np.uint8), np.zeros(shape, np.uint8)
        at = pairs.rule, pairs.case
        severity[at], kind[at] = pairs.severity, pairs.kind
        status[at] = np.minimum(pairs.status, 3) + 1  # 0 is absent; whatever failed, failed
        rules, looked = tuple(rule.id for rule in self.rules), self.run.looked
        return Severities(rules, self.cases, severity, status, kind, tuple(self.kinds), looked=looked)

    def thresholds(self, threshold: float | None = None) -> dict[str, float]:
        """Each rule's threshold: this one for all, or without one its own. A rule over many cases keeps its own."""
        return {
            rule.id: rule.threshold if threshold is None or rule.over == "cases" else threshold for rule in self.rules
        }

    def rates(self, threshold: float | None = None, group: str = "") -> pl.DataFrame:
        """As `Run.rates` has them, of the rules over one case."""
        limits = self.thresholds(threshold)
        limits = {name: limits[name] for name in self.rule_ids("case")}
        return rates(self.matrix(group), limits)

    def findings(self, threshold: float | None = None, wait: float | None = None) -> list[Finding] | None:
        """What to know of the run, in the sentences that `show` and the report have; None where that takes longer than
        one waits: they are made in a thread of their own, and ready when one asks again."""
        return self._later(self._findings, threshold, partial(self._sentences, threshold), wait)

    def _sentences(self, threshold: float | None) -> list[Finding]:
        try:
            return findings(self.run, threshold=threshold, judging=self.judging)
        except Exception as error:  # what a task remarks is code of others, and all else can be shown
            log.exception("%s: the findings failed", self.run.folder)
            words = f"The findings cannot be listed: {type(error).__name__}: {error}"
            return [Finding("viewer.findings_failed", words, True)]

    def limits(self, threshold: float | None = None, wait: float | None = None) -> Boundary | ValueError | None:
        """The limits of the cases, or why there are none to be shown; None where that takes longer, as above."""
        measured = visual_changes(self.run.store, self.judging).height  # they come after the last prediction
        return self._later(self._limits, (threshold, measured), partial(self._boundary, threshold), wait)

    def _boundary(self, threshold: float | None) -> Boundary | ValueError:
        try:
            return self.run.boundary(threshold, judging=self.judging)
        except ValueError as error:
            return error

    def _later(self, made: dict[K, Future[T]], key: K, make: Callable[[], T], wait: float | None) -> T | None:
        """What is made in a thread of its own, once; None where it is not there when one has waited so long."""
        with self._lock:
            if key not in made:
                made[key] = Future()
                Thread(target=_fulfil, args=(made[key], make), daemon=True).start()
        try:
            return made[key].result(wait)
        except TimeoutError:
            return None

    def legend(self, dataset: str | Path | None = None) -> list[LegendEntry]:
        """What is drawn on the pictures of its pairs."""
        with self._lock:
            if str(dataset) not in self._legends:
                self._legends[str(dataset)] = run_legend(self.run, judging=self.judging, dataset=dataset)
            return self._legends[str(dataset)]

    def roles(self) -> dict[str, str]:
        """What the marks on the words of its answers mean, where its relations mark words."""
        names = dict.fromkeys(rule.relation for rule in self.rules)
        return {role: meaning for name in names for role, meaning in roles_of(name).items()}

    def noise(self) -> pl.DataFrame:
        identity = {rule.relation: rule.id for rule in self.rules if rule.family == "identity"}
        return noise(self.matrix(), identity)

    def rule_ids(self, over: str) -> list[str]:
        """The rules over one case, or those over many cases."""
        return [rule.id for rule in self.rules if rule.over == over]

    def counting(self) -> Bools:
        """Which rules' pairs are counted: those that change something, or all where none does."""
        changing = np.array([rule.changing for rule in self.rules], bool)
        return changing if changing.any() else np.ones(len(self.rules), bool)

    def counted_kinds(self) -> dict[str, str]:
        return counted_kinds(self.run)

    def case_number(self, case: str) -> int | None:
        place = self.cases.search_sorted(case) if len(self.cases) else 0
        return int(place) if place < len(self.cases) and self.cases[int(place)] == case else None

    def case_facts(self, case: str) -> Row | None:
        rows = self.facts.filter(pl.col("case") == case)
        return None if rows.is_empty() else rows.row(0, named=True)


def _fulfil(future: Future[T], make: Callable[[], T]) -> None:
    try:
        future.set_result(make())
    except BaseException as error:  # whoever waits is told
        future.set_exception(error)


@dataclass(frozen=True)
class _Judged(Run):
    """A run as it was judged when its index was made: a page that asks it waits for no other judging."""

    _one: Lock = field(default_factory=Lock, compare=False, repr=False)

    def _up_to_date(self, judging: str) -> None:
        pass

    def bound_rules(self) -> tuple[BoundRule, ...]:
        return self.cached("rules", super().bound_rules)

    def boundary(self, threshold: float | None = None, *, judging: str = DEFAULT) -> Boundary:
        measured = visual_changes(self.store, judging).height  # they come after the last prediction
        make = partial(super().boundary, threshold, judging=judging)
        with self._one:  # findings and figures ask at the same time
            return self.cached(("boundary", threshold, judging, measured), make)


def build(store: Store, judging: str = DEFAULT) -> Index:
    """Judge what is not judged yet, and read it. Raises `NoRun` where there is nothing to read."""
    manifest = store.manifest()
    info = store.judging_info(judging)
    try:
        judge(store, info.options if info else {})
    except PermissionError:
        if info is None:
            raise
    run = _Judged(store)
    judged = store.judging_info(judging)
    first, end = judged.parts if judged else (0, 0)
    bound = bound_rules(manifest.rules, manifest.system.kind)
    rules = _rule_facts(run, bound, judging)
    facts = store.cases()
    facts = facts.select(name for name in _SHOWN if name in facts.columns)
    known = {"rule": [rule.id for rule in rules], "kind": [""], "status": STATUSES, "reason": [""]}
    numbers = {name: Numbers(known.get(name, ())) for name in COLUMNS if name != "severity"}
    verdicts = _together(store.verdict_parts(judging, (*COLUMNS, DRAW, *SCORES)))
    parts = [_coded(some, numbers) for some in verdicts]
    texts = {name: [text or "" for text in one.known] for name, one in numbers.items()}
    cases, rows = _sorted_cases(texts["case"], facts["case"], parts)
    counted = store.predictions(["status"], query=lambda lazy: lazy.group_by("status").agg(pl.len()))
    targets = texts["target"]
    made = Index(
        version=_digest(manifest.created, judging, first, end, store.state("predictions"), cases.to_list()),
        judging=judging,
        parts=(first, end),
        manifest=manifest,
        rules=rules,
        grids=run.grids(),
        cases=cases,
        facts=facts,
        targets=targets,
        kinds=texts["kind"],
        statuses=texts["status"],
        reasons=texts["reason"],
        groups=tuple(sorted({target.rpartition("/")[2] for target in targets if "/" in target})),
        over_cases=_over_cases(store, judging, rules),
        tests=run.tests(judging=judging),
        predictions=dict(counted.iter_rows()),
        judgings=tuple(store.judgings()),
        verdicts=rows,
        run=run,
    )
    if store.judging_info(judging) != judged:  # what was read may lack some
        raise OSError(f"{store.folder}: judged anew while it was read")
    made.matrix()  # here, where nobody waits for it
    for name in made.groups:
        made.group(name)
    return made


def _rule_facts(run: Run, bound: Sequence[Rule], judging: str) -> tuple[RuleFacts, ...]:
    limits = run.thresholds()
    named = run.manifest.thresholds.keys()
    relations = {one.id: one.relation.relation for one in bound if one.relation}
    return tuple(
        RuleFacts(
            id=row.pop("rule"),
            **row,
            threshold=limits[one.id],
            origin=SUITES if named & {one.id, one.left, "*"} else RELATIONS,
            help=relations[one.id].help,
            mapping=relations[one.id].mapping,
        )
        for one, row in zip(bound, run.rules(judging).to_dicts(), strict=True)
    )


def _over_cases(store: Store, judging: str, rules: Sequence[RuleFacts]) -> pl.DataFrame:
    """The verdicts of rules over many cases."""
    if not any(rule.over == "cases" for rule in rules):
        return pl.DataFrame()
    parts = [part.filter(pl.col("case").is_null()) for part in store.verdict_parts(judging)]
    return pl.concat(parts, how="diagonal") if parts else pl.DataFrame()


def _digest(*what: object) -> str:
    return hashlib.blake2b(repr(what).encode(), digest_size=8).hexdigest()


def _together(parts: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Parts put together, until they have `AT_ONCE` rows."""
    some: list[pl.DataFrame] = []
    for part in parts:
        some.append(part)
        if sum(map(len, some)) >= AT_ONCE:
            yield pl.concat(some, how="diagonal")
            some = []
    if some:
        yield pl.concat(some, how="diagonal")


def _coded(part: pl.DataFrame, numbers: Mapping[str, Numbers]) -> Pairs:
    """Verdicts of cases in numbers; those over many cases have no case, and are left out."""
    part = part.filter(pl.col("case").is_not_null()) if part["case"].null_count() else part
    part = part.with_columns(shown_status()) if "reason" in part.columns else part
    none = np.zeros(len(part), np.int32)
    columns = {
        name: numbers[name](part[name].fill_null("")).astype(np.int32) if name in part.columns else none
        for name in COLUMNS
        if name != "severity"
    }
    columns[DRAW] = part[DRAW].fill_null(0).to_numpy().astype(np.int32) if DRAW in part.columns else none
    absent = np.full(len(part), np.nan)
    severity, *scores = (
        part[name].fill_null(np.nan).to_numpy().astype(np.float64) if name in part.columns else absent
        for name in ("severity", *SCORES)
    )
    return Pairs(severity=severity, source_score=scores[0], follow_up_score=scores[1], **columns)


def _sorted_cases(known: Sequence[str], stored: pl.Series, parts: list[Pairs]) -> tuple[pl.Series, Pairs]:
    """All cases by id, also those without a verdict, and the verdicts with their numbers, by case and rule."""
    judged = pl.Series("case", known, dtype=pl.String)
    cases = pl.concat([judged, stored.cast(pl.String)]).unique().sort()
    place = cases.search_sorted(judged).to_numpy() if len(judged) else np.empty(0, np.int64)
    rows = {
        name: np.concatenate([getattr(part, name) for part in parts] or [np.empty(0, np.int32)])
        for name in (*COLUMNS, DRAW, *SCORES)
    }
    rows["case"] = place.astype(np.int32)[rows["case"]]
    rows |= {name: rows[name].astype(np.float64) for name in ("severity", *SCORES)}
    order = np.argsort(_keys(rows["case"], rows["rule"]), kind="stable")
    return cases, Pairs(**rows).at(order)


def _keys(case: Codes, rule: Codes) -> npt.NDArray[np.int64]:
    return np.asarray(case.astype(np.int64) * (int(rule.max(initial=0)) + 1) + rule)


def _worst(rows: Pairs) -> Pairs:
    """The first among the worst of each pair; what has no severity comes last, and nothing found after all else."""
    keys = _keys(rows.case, rows.rule)
    if not len(keys) or (np.diff(keys) > 0).all():
        return rows
    bare = np.where(rows.status == NOTHING_FOUND, 2.0, 1.0)
    order = np.lexsort((np.where(np.isnan(rows.severity), bare, -rows.severity), keys))
    return rows.at(order[np.concatenate([[True], np.diff(keys[order]) > 0])])


def _by_severity(case: Codes, severity: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Worst first; among equals each case's first, then each case's second …, so that no case crowds out the others."""
    rank = np.where(np.isnan(severity), 1.0, -severity)
    order = np.argsort(rank, kind="stable")
    if not len(order):
        return order
    ranked, owner = rank[order], case[order]
    fresh = np.concatenate([[True], ranked[1:] != ranked[:-1]])
    starts = np.flatnonzero(fresh | np.concatenate([[True], owner[1:] != owner[:-1]]))
    turn = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    return np.asarray(order[np.argsort(np.cumsum(fresh) * (int(turn.max()) + 1) + turn, kind="stable")])


def _slices(described: pl.DataFrame, cases: pl.Series) -> Iterator[tuple[str, Slice]]:
    """Parts of the cases by what is known of them: numbers by median and quartiles, texts by value."""
    known = pl.DataFrame({"case": cases}).join(described, on="case", how="left", maintain_order="left")
    for name in known.columns[1:]:
        column = known[name]
        if column.dtype.is_numeric():
            values = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
            finite = values[np.isfinite(values)]
            if len(np.unique(finite)) < 2:
                continue
            for share, end in ((0.5, "median"), (0.25, "lower quartile"), (0.75, "upper quartile")):
                limit = float(np.quantile(finite, share))
                # the words alone are the id: a number would change with every case that a live run adds
                if share <= 0.5:
                    yield f"{name} ≤ {end}", Slice(name, f"≤ {severity_text(limit)} ({end})", values <= limit)
                if share >= 0.5:
                    least = limit == finite.max()  # nothing is above it
                    sign, inside = ("≥", values >= limit) if least else (">", values > limit)
                    yield f"{name} {sign} {end}", Slice(name, f"{sign} {severity_text(limit)} ({end})", inside)
        elif 2 <= column.drop_nulls().n_unique() <= MOST_VALUES:
            for value in column.drop_nulls().unique().sort():
                yield f"{name} = {value}", Slice(name, str(value), (column == value).fill_null(False).to_numpy())
