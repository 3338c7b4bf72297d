"""What stands at the top of every page: the threshold in force, how far runs are, and the ways to the other pages."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from instar.report.words import count_of, duration, of_total, percent, threshold_text
from instar.spelling import nearest
from instar.store import Row
from instar.viewer.index import Index
from instar.viewer.pages import Viewer
from instar.viewer.query import Filters, address, threshold_of
from instar.viewer.watch import Watched

YOURS = "yours"


@dataclass(frozen=True, slots=True)
class Limit:
    """From where on rules are violated: the number and its unit, where it comes from, and how many rules have it."""

    threshold: float
    unit: str
    origin: str
    rules: int

    @property
    def words(self) -> str:
        return threshold_text(self.threshold, self.unit)


def limits(indexes: Iterable[Index], filters: Filters) -> list[Limit]:
    """The thresholds in force of the rules that filters ask for, those of most rules first."""
    counts: Counter[tuple[float, str, str]] = Counter()
    for index in indexes:
        chosen = index.thresholds(filters.threshold)
        for rule, counts_here in zip(index.rules, index.counting().tolist(), strict=True):
            wanted = (filters.rule, rule.id), (filters.family, rule.family), (filters.relation, rule.relation)
            named = filters.rule or filters.family == "identity"
            if (counts_here or named) and all(filter_text in ("", own) for filter_text, own in wanted):
                origin = rule.origin if filters.threshold is None else YOURS
                counts[chosen[rule.id], rule.unit, origin] += 1
    return [Limit(*key, count) for key, count in counts.most_common()]


def _sentence(shown: Sequence[Limit]) -> tuple[str, str]:
    """The threshold in words, and whose it is."""
    if not shown:
        return "no threshold yet", ""
    if len(shown) == 1:
        return f"threshold {shown[0].words}", shown[0].origin
    ends = sorted({min(each.threshold for each in shown), max(each.threshold for each in shown)})
    words = f"threshold{'s' if len(ends) > 1 else ''} {' to '.join(map(threshold_text, ends))}"
    return words, f"{YOURS}, in the unit of each rule" if shown[0].origin == YOURS else "each rule's own"


_OWN_NAMES: Mapping[str, tuple[str, ...]] = {
    "/": (),
    "/gallery": (),
    "/rule": (),
    "/case": ("case", "shown"),
    "/limits": ("way", "state"),
    "/compare": ("a", "b"),
}
"""What an address of a page may name besides filters; what those of tasks' pages may, only they know."""


def unread_words(path: str, query: Mapping[str, str]) -> str:
    """What of an address cannot be understood, and what is shown instead; nothing where all of it is."""
    threshold, words = query.get("threshold", "").strip(), []
    if threshold and threshold_of(threshold) is None:
        words.append(
            f"“{threshold}” is no threshold: give a number from 0 up, or ∞. What is shown is at each rule's own."
        )
    known = [*_OWN_NAMES.get(path, query), *(each.name for each in fields(Filters))]
    words += [
        f"This page knows no “{name}”, and shows what it would without{nearest(name, known) or '.'}"
        for name in query
        if name not in known
    ]
    return " ".join(words)


def header(viewer: Viewer, path: str, query: Mapping[str, str], context: Mapping[str, object]) -> dict[str, object]:
    """The top of a page at an address; its context says which runs and rules it is about."""
    filters = context.get("filters")
    filters = filters if isinstance(filters, Filters) else Filters.read(query)
    known = [run.newest for run in viewer.runs]
    indexes = context.get("indexes", [context["index"]] if "index" in context else known)
    assert isinstance(indexes, Sequence)
    there = [index for index in indexes if index is not None]
    shown = limits(there, filters)
    sentence, origin = _sentence(shown)
    kept = {name: value for name, value in query.items() if name not in ("threshold", "page") and value}
    shared = filters.query("judging", "threshold")
    first, second = viewer.runs[0].name, viewer.runs[-1 if len(viewer.runs) < 2 else 1].name
    return {
        "in_force": {
            "sentence": sentence,
            "origin": origin,
            "rows": [(each.words, count_of(each.rules, "rule"), each.origin) for each in shown if len(shown) > 1],
            "value": filters.query("threshold").get("threshold", ""),
            "unread": unread_words(path, query),
            "grid": sorted({step for index in there for grid in index.grids.values() for step in grid}),
            "path": path,
            "kept": kept,
            "own": address(path, kept) if filters.threshold is not None else "",
        },
        "ways": {
            "overview": address("/", shared),
            "gallery": address("/gallery", {"run": filters.run or first, **shared}),
            "compare": address("/compare", {"a": first, "b": second, **shared}),
        },
        "runs": viewer.names(),
        "legend": lambda: there[0].legend(viewer.runs[0].dataset) if there else [],
        "roles": there[0].roles() if there else {},
        "pulse": pulse(viewer),
        "unfinished": _unfinished(viewer, {filters.run, context.get("a"), context.get("b")}),
    }


def _unfinished(viewer: Viewer, shown: Collection[object]) -> list[str]:
    """Of the runs that a page shows, how far those are that lack predictions."""
    names = viewer.names()
    return [
        f"{names[run.name]} is not finished: {extent_words(run)}. What is shown is what was judged so far."
        for run in viewer.runs
        if run.name in shown and run.extent is not None and run.extent.done < run.extent.planned
    ]


# --- how far runs are ------------------------------------------------------------------------------


def pulse(viewer: Viewer) -> Row:
    """Whether anything is new, and how far runs are that go on: pages ask every few seconds."""
    names = viewer.names()
    going_on = [f"{names[run.name]}: " * (len(names) > 1) + extent_words(run) for run in viewer.runs if run.live]
    return {
        "version": "|".join(f"{run.version} {bool(run.problem)}" for run in viewer.runs),
        "live": bool(going_on),
        "progress": "; ".join(going_on),
        "age": round(time.time() - max(run.updated for run in viewer.runs), 1),
    }


def extent_words(run: Watched) -> str:
    """How many predictions there are of how many, and how long the rest will take.

    What is not known of a folder that an earlier version wrote is said.
    """
    extent = run.extent
    if extent is None or not extent.planned:
        return "no prediction yet"
    shard = "" if extent.shard is None else f"{extent.shard.words}: "
    words = shard + of_total(extent.done, extent.planned, "prediction")
    if not extent.whole:
        return f"{words} of the cases begun so far"
    words += f" ({percent(extent.done / extent.planned)})"
    return f"{words}, about {duration(run.left)} left" if run.left is not None and run.left >= 1 else words
