"""What a search for limits found, in words and tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import polars as pl

from instar.analysis import Run
from instar.analysis.boundary import Boundary, unjudged_ways
from instar.analysis.limits import MOST_PERCENT, bisections
from instar.engine import DEFAULT
from instar.outputs import output_kind
from instar.report.finding import Finding
from instar.report.limits import limit_words
from instar.report.tables import Table
from instar.report.words import SPACE, amount, count_of, interval, listed, of_total, percent
from instar.store import Row
from instar.suites import default_suite
from instar.suites.grid import Grid

BEYOND = "beyond"
"""What stands for a value that the far end does not reach."""
NOT_KNOWN = "not known"
"""What stands for a value that would lie where no case was judged any more."""
MOST_LEVELS = 12
"""Levels of a curve that a table has; the numbers behind it have all."""
MOST_REASONS = 3
"""Reasons that are told why no case has a limit."""
NO_CHANGE = "no change"
MANY_LOST = 0.2
"""The share of cases that were lost on the way from which on it is said what that does to a curve."""


def value_text(value: float | None) -> str:
    """A value of a parameter; ∞ is beyond its far end.

    >>> value_text(2.24), value_text(-13.5), value_text(float("inf")), value_text(None)
    ('2.24', '−13.5', 'beyond', '–')
    """
    if value is None:
        return "–"
    if math.isinf(value):
        return BEYOND
    return f"−{amount(-value)}" if value < 0 else amount(value)


def level_words(limit: Row, which: str) -> str:
    """The level of a limit, `limit` or `last`, as a rule spells it."""
    rule = limit["rule"] if which == "limit" else limit["last_rule"]
    return str(rule).partition(" => ")[0]


def span_text(low: float | None, high: float | None) -> str:
    """An interval of values, the smaller change first.

    >>> span_text(1.5, float("inf")), span_text(2.0, 2.0)
    ('1.5 to beyond', '2')
    """
    first, last = value_text(low), value_text(high)
    return first if first == last else f"{first} to {last}"


def both_text(row: Row, name: str) -> str:
    """One value, or the two of a frontier."""
    other = f"second{name.removeprefix('median')}" if name.startswith("median") else f"second_{name}"
    values = [row[key] for key in (name, other) if row.get(key) is not None]
    if values and all(math.isinf(value) for value in values):
        return BEYOND
    return ", ".join(map(value_text, values)) or "–"


def boundary_line(boundary: Boundary, most: int = 6) -> str:
    """A search in a line, as Python shows it: how far each way may go."""
    rows = boundary.median.rows(named=True)
    more = [f"{count_of(len(rows) - most, 'way')} more."] if len(rows) > most else []
    words = " ".join([*map(_ray_words, rows[:most]), *more]).replace(SPACE, " ")
    return f"<limits in {boundary.run.folder}: {words}>"


def boundary_findings(
    boundary: Boundary, *, threshold: float | None = None, judging: str = DEFAULT
) -> Iterator[Finding]:
    """Yield each way's median limit, what was broken before, not monotone or left out, and what it cost."""
    rows = boundary.median.rows(named=True)
    for row in rows:
        yield Finding("boundary.median", _ray_words(row), figures=row)
    yield from _reasons(boundary)
    yield from _gaps(rows)
    unordered = [row for row in rows if row["held_beyond"]]
    if unordered:
        ways = "; ".join(
            f"{row['ray']} ({row['held_beyond']:,} of {row['broken']:,}{_probed(row)})" for row in unordered
        )
        yield Finding(
            "boundary.not_monotonic",
            f"Not monotone: some broken cases hold again at a larger change: {ways}. A limit is the smallest change "
            "that was seen to break the answer, and a smaller one may have been missed there; more probes look closer.",
            figures={
                "ways": {row["ray"]: [row["held_beyond"], row["broken"]] for row in unordered},
                "no_median": [row["ray"] for row in unordered if row["not_monotonic"]],
            },
        )
    yield from _unprobed(rows)
    for grid in boundary.grids:
        yield from _short_grid(grid)
    limits = limit_words(boundary.run, threshold=threshold, judging=judging)
    share = percent(boundary.questions / boundary.every if boundary.every else 0.0)
    yield Finding(
        "boundary.cost",
        "Of the cases that are judged, the search asked "
        f"{of_total(boundary.questions, boundary.every, 'follow-up')} of the grid ({share}). "
        f"An answer is broken where the rule is {limits}.{_suite_words(boundary.run, threshold)}",
        figures={"predicted": boundary.questions, "grid": boundary.every},
    )


def _suite_words(run: Run, threshold: float | None) -> str:
    """That the suite of the output's kind has another threshold than this search, which asks single rules."""
    manifest = run.manifest
    if output_kind(manifest.system.kind).suite_of(manifest.header) is None:
        return ""
    suite = default_suite(manifest.system.kind, manifest.header)
    limit = suite.thresholds.get("identity")
    if limit is None or limit in run.thresholds(threshold).values():
        return ""
    return (
        f" The suite {suite.name} is stricter, and calls its rules violated from {limit:g} up: `--threshold {limit:g}` "
        "searches by that."
    )


def unfinished_words(boundary: Boundary, threshold: float | None = None) -> list[str]:
    """Of which cases the limit is still to be found, since the search goes on, was stopped, or was made for another
    `threshold` or another judging than this one; nothing where all are known."""
    ways = [
        f"{row['ray']} ({count_of(row['unfinished'], 'case')})"
        for row in boundary.median.rows(named=True)
        if row["unfinished"]
    ]
    if not ways:
        return []
    judgings = [name for name in boundary.run.store.judgings() if name != boundary.judging]
    others = [*(["another threshold"] if threshold is not None else []), *(["another judging"] if judgings else [])]
    followed = f"followed {' or '.join(others)}, and did not ask all that this one takes"
    why = f"The search {followed}."
    if threshold is None:
        why = f"The search is not finished{f', or it {followed}' if others else ''}; the same command again"
        why += f"{', with the options of this judging,' if others else ''} goes on with it."
    return [
        f"{why} Some limits are not known yet: {'; '.join(ways)}. Curves and medians leave these cases out. Those that "
        "are broken before anything is changed are known first, so that a curve lies too low until all are known."
    ]


def _probed(row: Row) -> str:
    return f", {row['broken_below']:,} of them found by a probe below" if row["broken_below"] else ""


def _unprobed(rows: Sequence[Row]) -> Iterator[Finding]:
    """Ways on which no level was asked beside bisection, though there are others."""
    if unseen := [row for row in rows if row["unprobed"]]:
        ways = "; ".join(f"{row['ray']} ({of_total(row['unprobed'], row['cases'], 'case')})" for row in unseen)
        yield Finding(
            "boundary.not_probed",
            f"Whether the response is monotone is not known for {ways}: only the levels of bisection were asked there. "
            "A smaller change may break the answer, too, and a larger one may not; a search that is told how many "
            "probes to make looks there.",
            figures={"ways": {row["ray"]: [row["unprobed"], row["cases"]] for row in unseen}},
        )


def _short_grid(grid: Grid) -> Iterator[Finding]:
    """Yield why a search of so few levels takes more of them than others do, if it does."""
    counts = [len(ray.levels) for ray in grid.rays]
    most, every = 2 + sum(map(bisections, counts)), 2 + sum(counts)
    if 100 * most <= MOST_PERCENT * every:
        return
    yield Finding(
        "boundary.few_levels",
        f"{grid.family}: its levels are few, and bisection alone asks a case about up to "
        f"{of_total(most - 2, every - 2, 'level')}: with the source and the unchanged input {percent(most / every)} of "
        "the predictions of the grid.",
        figures={"family": grid.family, "most": most, "levels": every},
    )


_LEFT = {"not_judged": "not judged", "not_applicable": "not applicable", "unfinished": "unfinished"}


def _ray_words(row: Row) -> str:
    """How far one way may go."""
    name, cases = row["ray"], row["cases"]
    if not cases:
        why = ", ".join(f"{row[key]:,} {words}" for key, words in _LEFT.items() if row[key]) or "no case was read"
        return f"{name}: no case has a limit ({why})."
    if cases == 1 and row["unbroken"]:
        return f"{name}: the one case does not break up to the far end."
    broken = row["broken"] + row["broken_before"]
    if row["not_monotonic"]:
        return (
            f"{name}: no median and no curve. {of_total(row['held_beyond'], row['probed'], 'case')} that were probed "
            f"break at a level and hold at a larger one; search every level with `--probes {row['levels']}`."
        )
    if row["median_level"] is None:
        others = "the one case was" if cases == 1 else "the other was" if row["lost"] == 1 else "the others were"
        return (
            f"{name}: at which level half of {count_of(cases, 'case')} have broken is not known. {broken:,} broke, and "
            f"{others} lost before ({_loss(row)}): no case was judged beyond "
            f"{', '.join(_values(row, 'judged_to', 'second_judged_to'))}."
        )
    if math.isinf(row["median_level"]):
        return (
            f"{name}: fewer than half of {count_of(cases, 'case')} break up to the far end "
            f"({of_total(broken, cases, 'case')} {'breaks' if broken == 1 else 'break'})."
        )
    if row["median_level"] == 0:
        return f"{name}: half of {count_of(cases, 'case')} or more are broken before anything is changed."
    if cases == 1:
        return f"{name}: the one case breaks at {both_text(row, 'median')}."
    estimated = row["lost"] and 2 * broken < cases
    counts = f": {broken:,} broke, and {row['lost']:,} were lost before they did" if estimated else ""
    span = "" if row["median_low"] is None else f" (95 % interval {_span(row)})"
    return (
        f"{name}: {'an estimated half' if estimated else 'half'} of {count_of(cases, 'case')} have broken at "
        f"{both_text(row, 'median')}{span}{counts}."
    )


def _reasons(boundary: Boundary) -> Iterator[Finding]:
    """Why no case of a way was judged, the most frequent reasons first."""
    if (boundary.median["cases"] > 0).all():
        return
    for row in unjudged_ways(boundary).head(MOST_REASONS).iter_rows(named=True):
        was = "was" if row["pairs"] == 1 else "were"
        words = f"{count_of(row['pairs'], 'pair')} {was} not judged: {row['reason'] or row['status']}."
        yield Finding("boundary.not_judged", words, figures=row)


def _gaps(rows: Sequence[Row]) -> Iterator[Finding]:
    """What was broken before, left out or lost on the way: once for all ways where it is the same for them."""
    before, left = dict[tuple[int, int], list[str]](), dict[str, list[str]]()
    for row in rows:
        if row["broken_before"]:
            before.setdefault((row["broken_before"], row["cases"]), []).append(row["ray"])
        words = ", ".join(f"{row[key]:,} {words}" for key, words in _LEFT.items() if row[key])
        if words and row["cases"]:
            left.setdefault(words, []).append(row["ray"])
    for (broken, cases), ways in before.items():
        yield Finding(
            "boundary.broken_before",
            f"{_ways(ways, rows)}{of_total(broken, cases, 'case')} {'is' if broken == 1 else 'are'} violated before "
            "anything is changed: the answer to the same input again breaks the rule.",
            figures={"ways": ways, "broken": broken, "cases": cases},
        )
    for words, ways in left.items():
        words = f"{_ways(ways, rows)}of the cases that were read, these are left out: {words}."
        yield Finding("boundary.left_out", words, figures={"ways": ways})
    for row in rows:
        if row["lost"]:
            one = row["lost"] == 1
            yield Finding(
                "boundary.lost",
                f"{row['ray']}: {count_of(row['lost'], 'case')} {'was' if one else 'were'} not judged up to the far "
                f"end ({_loss(row)}), and {'counts' if one else 'count'} as unbroken as far as "
                f"{'it was' if one else 'they were'}.",
                figures={key: row[key] for key in ("ray", "lost", "failed", "cases")},
            )
    if any(row["lost"] > MANY_LOST * row["cases"] for row in rows):
        yield Finding(
            "boundary.many_lost",
            "Curves and medians take the cases that were not judged to the end for cases like the others. Where they "
            "were lost because the change is large, as when the system fails on such inputs, that is not so, and the "
            "true limits are smaller than these.",
        )


def _loss(row: Row) -> str:
    """Why cases were lost on the way."""
    failed, others = row["failed"], row["lost"] - row["failed"]
    failures = "the prediction at a larger change failed"
    without = "a larger change was not applicable"
    if failed and others:
        return f"{failures} for {failed:,}, and {without} for {others:,}"
    return failures if failed else without


def _ways(ways: Sequence[str], rows: Sequence[Row]) -> str:
    if len(ways) == len(rows):
        return "All ways: " if len(rows) > 1 else f"{ways[0]}: "
    return f"{listed(ways, 3)}: "


def _span(row: Row) -> str:
    if row.get("second_low") is None:
        return span_text(row["median_low"], row["median_high"])
    return f"{both_text(row, 'median_low')} to {both_text(row, 'median_high')}"


def _quantile(row: Row, name: str) -> str:
    return NOT_KNOWN if row["cases"] and row[name] is None else both_text(row, name)


def _visual(row: Row) -> str:
    """The median visual change; it was measured where it has an interval."""
    return NOT_KNOWN if row["visual"] is None and row["visual_low"] is not None else value_text(row["visual"])


def median_table(boundary: Boundary) -> Table:
    """A row per ray: how many cases, how many break, and where half of them have."""
    seen = ["visual change"] if boundary.median["visual_low"].is_not_null().any() else []
    rows = [
        [
            row["ray"],
            f"{row['broken'] + row['broken_before']:,}/{row['cases']:,}",
            both_text(row, "median") if row["median"] is not None or not row["cases"] else NOT_KNOWN,
            _span(row) if row["cases"] else "–",
            *(_quantile(row, name) for name in ("q10", "q90")),
            *([_visual(row)] if seen else []),
        ]
        for row in boundary.median.iter_rows(named=True)
    ]
    words = "; the median visual change there, from 0 for none to 1" if seen else ""
    return Table(
        "Limits: of the cases that are judged how many break, the level at which half of them have broken, its 95 % "
        f"interval, and the levels at which 10 % and 90 % have{words}",
        ["way", "broken", "median", "95 % int.", "10 %", "90 %", *seen],
        rows,
    )


def curve_table(boundary: Boundary, grid: Grid) -> Table:
    """The share of cases that have not broken up to the levels at which some do; of many, some of these."""
    rows, between = [], 0
    for ray in grid.rays:
        own = boundary.curve.filter(pl.col("ray") == ray.name, pl.col("family") == grid.family)
        if own.is_empty() or own["share"][0] is None:
            continue
        own = own.filter(pl.col("share").is_not_null())  # as far as somebody was at risk
        broke = own.with_row_index("place").filter(pl.col("broken") > 0, pl.col("level") > 0)["place"].to_list()
        places = list(dict.fromkeys([0, *broke, own.height - 1]))
        thin = dict.fromkeys(round(number * (len(places) - 1) / MOST_LEVELS) for number in range(MOST_LEVELS + 1))
        between += len(places) - len(thin)
        for place in (places[number] for number in thin):
            row = own.row(place, named=True)
            rows.append(
                [
                    ray.name,
                    NO_CHANGE if not row["level"] else ", ".join(_values(row, "value", "second")),
                    f"{row['at_risk']:,}",
                    percent(row["share"]),
                    interval(row["low"], row["high"]),
                ]
            )
    lie = "lies" if between == 1 else "lie"
    left_out = f". {count_of(between, 'more level')} at which cases break {lie} between these rows" if between else ""
    return Table(
        f"{grid.family}: the share of cases that have not broken up to a level, with its 95 % interval. At risk are "
        f"those that had not broken before it, and were judged so far{left_out}",
        ["way", "level", "at risk", "unbroken", "95 % int."],
        rows,
    )


def _values(row: Row, *names: str) -> list[str]:
    return [value_text(row[name]) for name in names if row.get(name) is not None]


def cases_table(boundary: Boundary, grid: Grid) -> Table:
    """Every case's limits, the least first."""
    own = boundary.limits.filter(family=grid.family).sort("ray", "level", "case", nulls_last=True)
    order = {ray.name: number for number, ray in enumerate(grid.rays)}
    own = own.sort(pl.col("ray").replace_strict(order, return_dtype=pl.Int64), maintain_order=True)
    seen = own["visual_change"].is_not_null().any()
    rows = [
        [
            row["ray"],
            row["case"],
            row["status"] + (", not monotone" if row["held_beyond"] else ""),
            ", ".join(value_text(row[name]) for name in ("last", "last_second") if row[name] is not None) or "–",
            ", ".join(value_text(row[name]) for name in ("limit", "second") if row[name] is not None) or "–",
            *([value_text(row["visual_change"])] if seen else []),
        ]
        for row in own.iter_rows(named=True)
    ]
    return Table(
        f"{grid.family}: the limit of each case: the last level that held and the first that broke"
        + (", with the visual change there" if seen else ""),
        ["way", "case", "state", "holds", "breaks", *(["visual change"] if seen else [])],
        rows,
    )
