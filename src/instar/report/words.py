"""What a run found, in sentences that code writes from numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from instar.report.rebuild import severity_text
from instar.report.section import Section

SPACE = "\u00a0"

__all__ = [
    "count_of",
    "duration",
    "headline",
    "interval",
    "over_cases_text",
    "p_text",
    "percent",
    "points",
    "slice_words",
]


def percent(share: float | None, *, digits: int = 0, sign: bool = True) -> str:
    """A share in per cent; what is not all or nothing never reads as 100 % or 0 %.

    >>> [percent(share).replace(SPACE, " ") for share in (0.92, 0.998, 0.004, None)]
    ['92 %', '>99 %', '<1 %', '–']
    >>> percent(0.0004, digits=1, sign=False), percent(0.5, digits=1, sign=False)
    ('<0.1', '50.0')
    """
    if share is None:
        return "–"
    text, least = f"{100 * share:.{digits}f}", 10.0**-digits
    if share > 0 and float(text) == 0:
        text = f"<{least:.{digits}f}"
    elif share < 1 and float(text) == 100:
        text = f">{100 - least:.{digits}f}"
    return f"{text}{SPACE}%" if sign else text


def interval(low: float | None, high: float | None) -> str:
    """A 95 % interval in per cent, without the sign.

    >>> interval(0.85, 0.959)
    '85–96'
    """
    return "–" if low is None or high is None else f"{100 * low:.0f}–{100 * high:.0f}"


def points(difference: float) -> str:
    """A difference of two shares in points.

    >>> points(0.123), points(0.0)
    ('+12 points', '0 points')
    """
    return f"{round(100 * difference):+d} points".replace("+0 ", "0 ")


def p_text(p: float) -> str:
    """A p value as people read it."""
    return "< 0.001" if p < 0.001 else f"{p:.2g}"


def count_of(number: int, word: str) -> str:
    """A number with its noun.

    >>> count_of(1, "pair"), count_of(0, "rule"), count_of(1200, "case")
    ('1 pair', 'no rule', '1,200 cases')
    """
    return f"no {word}" if number == 0 else f"{number:,} {word}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """How long something takes.

    >>> duration(4.21), duration(59.7), duration(200), duration(7500)
    ('4.2 s', '1 min', '3 min 20 s', '2 h 5 min')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(hours, "h"), (minutes, "min")] if hours else [(minutes, "min"), (rest, "s")]
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


def headline(section: Section, t: int) -> list[str]:
    """What a relation's rules found at a threshold: the finding first, then the extremes, the gaps and the noise."""
    whole, table = section.whole(t), section.at(t)
    at = section.with_unit(section.grid[t])
    if table.is_empty():
        return ["The suite has no rule of this relation but identity.", *_noise(section, t)]
    if not whole["judged"]:
        return [
            f"At {at}, nothing was judged: no case has a severity under this relation.",
            *_gaps(table),
            *_noise(section, t),
        ]
    rules = "the one rule" if table.height == 1 else f"at least one of {table.height} rules"
    first = (
        f"At {at}, {whole['violated']:,} of {whole['judged']:,} cases violate {rules} "
        f"({percent(whole['rate'])}, 95{SPACE}% interval {interval(whole['low'], whole['high'])})."
    )
    return [first, *_extremes(table), *_gaps(table), *_noise(section, t)]


def _extremes(table: pl.DataFrame) -> list[str]:
    judged = table.filter(pl.col("judged") > 0)
    if judged.height < 2:
        return []
    worst, best = judged.row(0, named=True), judged.row(-1, named=True)
    if not worst["violated"]:
        return ["No rule is violated at this threshold."]
    kept = judged.filter(pl.col("violated") == 0).height
    words = [f"Worst: {worst['name']}, violated by {worst['violated']:,} of {worst['judged']:,}."]
    if kept > 1:
        words.append(f"{kept} rules are violated by no case.")
    else:
        words.append(f"Most robust: {best['name']}, violated by {best['violated']:,} of {best['judged']:,}.")
    return words


def _gaps(table: pl.DataFrame) -> list[str]:
    missing, failed = int(table["not_applicable"].sum()), int(table["failed"].sum())
    one, other = count_of(missing, "pair"), "none" if not failed else f"{failed:,}"
    if not missing and not failed:
        return ["Every pair was judged."]
    was = "was" if missing < 2 else "were"
    return [f"{one[0].upper()}{one[1:]} {was} not applicable, {other} failed."]


def _noise(section: Section, t: int) -> list[str]:
    noise: Mapping[str, Any] | None = section.noise
    if noise is None:
        return ["The suite has no rule identity for this relation: the system's own noise is not known."]
    if not noise["judged"]:
        return ["The rule identity was judged on no case: the system's own noise is not known."]
    if not noise["noisy"]:
        return [
            f"The system is deterministic: unchanged inputs gave identical answers in {noise['judged']:,} of "
            f"{noise['judged']:,} cases."
        ]
    words = [
        f"The system has noise of its own: unchanged inputs strayed in {noise['noisy']:,} of {noise['judged']:,} "
        f"cases, and 95{SPACE}% of the cases stay within {severity_text(noise['floor'])}."
    ]
    if t in section.below_noise:
        words.append("This threshold is not above that noise floor: rates here say little about the rules.")
    return words


_LESS = {
    "brightness": "darker",
    "contrast": "lower in contrast",
    "sharpness": "less sharp",
    "saturation": "less colourful",
    "pixels": "smaller",
}
_MORE = {
    "brightness": "brighter",
    "contrast": "higher in contrast",
    "sharpness": "sharper",
    "saturation": "more colourful",
    "pixels": "larger",
}


def slice_words(row: Mapping[str, Any]) -> str:
    """A row of `slices` as a sentence."""
    if not row["value"].startswith("above "):
        more = "more" if row["effect"] > 0 else "less"
        return (
            f"cases with {row['property']} = {row['value']} fail {more} often: {percent(row['rate'])} against "
            f"{percent(row['elsewhere'])} elsewhere"
        )
    lower = row["effect"] < 0.5
    name = "number of pixels" if row["property"] == "pixels" else row["property"].replace("_", " ")
    known = (_LESS if lower else _MORE).get(row["property"])
    what = known or f"{'lower' if lower else 'higher'} in {name}"
    probability = 1 - row["effect"] if lower else row["effect"]
    return (
        f"failing cases are {what}: probability {probability:.2f} that a failing case has the "
        f"{'lower' if lower else 'higher'} {name}"
    )


def over_cases_text(row: Mapping[str, Any]) -> str:
    """What a rule over many cases measured, with its interval."""
    if row.get("drop") is not None:
        told = (
            f"{row['baseline']:.3f} → {row['value']:.3f}, {row['drop']:+.3f} lost "
            f"(95 %: {row['low']:+.3f} to {row['high']:+.3f})"
        )
    elif row.get("r") is not None:
        rho = "" if row.get("rho") is None else f", ρ = {row['rho']:.2f}"
        told = f"r = {row['r']:.2f} (95 %: {row['low']:.2f} to {row['high']:.2f}){rho}"
    else:
        return ""
    return f"{told}, {row['cases']} cases"
