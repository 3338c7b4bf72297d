"""What the address asks for: filters, their canonical spelling, and the pairs that match."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from urllib.parse import quote, urlencode

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.engine import DEFAULT
from instar.store import Row
from instar.viewer.index import FAILED, NOT_APPLICABLE, NOTHING_FOUND, OK, Bools, Index, Pairs
from instar.viewer.marks import chosen_mask, mark_codes
from instar.viewer.turns import in_turn

STATES = ("violated", "kept", "nothing found", "not applicable", "failed")
VIOLATED, ALL = STATES[0], "all"
"""The state that pairs are looked at for, and the word for whichever."""
SORTS = {
    "": "worst, rules in turn",
    "severity": "severity, worst first",
    "least": "severity, least first",
    "case": "case",
    "rule": "rule",
    "chance": "chance: what is marked first speaks for all",
}
FILTERING = ("rule", "family", "relation", "group", "kind", "slice", "mark", "q")
"""The filters besides the state that narrow what matches, as their chips name them."""


@dataclass(frozen=True, slots=True)
class Filters:
    """All the state of a page, in the order in which addresses spell it. What is empty asks for nothing.

    `run` is the name of a run in addresses; empty is the first one.
    """

    run: str = ""
    judging: str = DEFAULT
    rule: str = ""
    family: str = ""
    relation: str = ""
    threshold: float | None = None
    group: str = ""
    status: str = VIOLATED
    kind: str = ""
    slice: str = ""
    mark: str = ""
    q: str = ""
    sort: str = ""
    page: int = 1

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Filters:
        """From a query string; what cannot be understood is as if it were not there."""
        texts = {name: query.get(name, "").strip() for name in (*FILTERING, "sort")}
        texts["sort"] = texts["sort"] if texts["sort"] in SORTS else ""
        return cls(
            run=query.get("run", ""),
            judging=query.get("judging") or DEFAULT,
            threshold=threshold_of(query.get("threshold", "")),
            status=query.get("status", "").strip() or VIOLATED,
            page=max(1, whole(query.get("page"), 1)),
            **texts,
        )

    def without(self, *names: str) -> Filters:
        plain: Row = {each.name: each.default for each in fields(self) if each.name in names}
        return replace(self, **plain, page=1)

    def query(self, *names: str) -> dict[str, str]:
        """What differs from the default, of the fields named or of all."""
        texts = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if (not names or each.name in names) and value != each.default:
                texts[each.name] = f"{value:g}" if isinstance(value, float) else str(value)
        return texts

    def active(self) -> dict[str, str]:
        """The filters that narrow what matches."""
        return {name: getattr(self, name) for name in FILTERING if getattr(self, name)}


def address(path: str, query: Mapping[str, object]) -> str:
    """A canonical address that people can read."""
    kept = {name: value for name, value in query.items() if value not in ("", None)}
    return f"{path}?{urlencode(kept, safe='(),/:', quote_via=quote)}" if kept else path


def whole(text: str | None, otherwise: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 9 else otherwise


def threshold_of(text: str) -> float | None:
    """A threshold as somebody wrote it; None where it is none."""
    try:
        value = math.inf if text.strip() == "∞" else float(text.strip().replace(",", "."))
    except ValueError:
        return None
    return value if value >= 0 else None  # NaN is not


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """The pairs that match, in the chosen order, and how many there are of each state, whichever state is chosen."""

    pairs: Pairs
    order: npt.NDArray[np.int64]
    states: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.order)

    def cases(self) -> npt.NDArray[np.int32]:
        """The cases of the pairs, each once, in their order."""
        return np.asarray(pl.Series(self.pairs.case[self.order]).unique(maintain_order=True).to_numpy())


def matches(index: Index, filters: Filters) -> Matches:
    """The pairs of an index that filters ask for."""
    group = index.group(filters.group)
    pairs = group.pairs
    there = _mask(index, pairs, filters)
    states = state_masks(index, pairs, filters.threshold)
    counts = {name: int((there & mask).sum()) for name, mask in states.items()}
    if filters.status != ALL:
        wanted = states.get(filters.status)
        there = there & (_status(index, pairs, filters.status) if wanted is None else wanted)
    if filters.sort == "case":
        order = np.flatnonzero(there)
    elif filters.sort == "chance":
        order = np.random.default_rng(0).permutation(len(pairs))
        order = order[there[order]]
    elif filters.sort == "rule":
        places = np.flatnonzero(there)
        order = places[np.argsort(pairs.rule[places], kind="stable")]
    else:
        order = group.by_severity[there[group.by_severity]]
        if filters.sort == "least":
            bare = np.isnan(pairs.severity[order])
            order = np.concatenate([order[~bare][::-1], order[bare]])
        elif not filters.sort:
            hit = states[VIOLATED][order]
            families = [rule.family for rule in index.rules]
            order = np.concatenate([in_turn(order[hit], pairs.case, pairs.rule, group.measured, families), order[~hit]])
    return Matches(pairs, order, counts)


def state_masks(index: Index, pairs: Pairs, threshold: float | None) -> dict[str, Bools]:
    """Which pairs are violated, kept, with nothing found in either image, not applicable, failed."""
    limits = np.array(list(index.thresholds(threshold).values()) or [0.0])
    hit = (pairs.severity >= limits[pairs.rule]) & (pairs.severity > 0)
    return {
        "violated": hit,
        "kept": (pairs.status == OK) & ~hit,
        "nothing found": pairs.status == NOTHING_FOUND,
        "not applicable": pairs.status == NOT_APPLICABLE,
        "failed": pairs.status > NOT_APPLICABLE,
    }


def _status(index: Index, pairs: Pairs, status: str) -> Bools:
    """One way to fail: error, timeout, crashed."""
    if status not in FAILED or status not in index.statuses:
        return np.zeros(len(pairs), bool)
    return np.asarray(pairs.status == index.statuses.index(status))


def _mask(index: Index, pairs: Pairs, filters: Filters) -> Bools:
    """Which pairs match, whatever their state. Identity's count in no rate, and match where they are asked for."""
    rules = np.array(
        [
            (not filters.rule or filters.rule in (rule.id, rule.name))
            and (not filters.family or rule.family == filters.family)
            and (not filters.relation or rule.relation == filters.relation)
            and bool(counts or filters.rule or filters.family == "identity")
            for rule, counts in zip(index.rules, index.counting().tolist(), strict=True)
        ],
        bool,
    )
    cases = np.ones(len(index.cases), bool)
    if filters.slice:
        chosen = index.slices.get(filters.slice)
        cases = cases & (chosen.cases if chosen else False)
    if filters.q:
        text = index.cases.str.to_lowercase().str.contains(filters.q.lower(), literal=True)
        cases = cases & text.to_numpy()
    there = np.ones(len(pairs), bool)
    if not rules.all():
        there &= rules[pairs.rule]
    if not cases.all():
        there &= cases[pairs.case]
    if filters.kind:
        there &= pairs.kind == (index.kinds.index(filters.kind) if filters.kind in index.kinds else -1)
    if filters.mark:
        there &= chosen_mask(mark_codes(index, pairs), filters.mark)
    return there
