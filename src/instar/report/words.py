"""Numbers in words: the one place where a number becomes text that people read, and names are made fit to be shown."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

SPACE = "\u00a0"
ONE_SIDED = "found in only one of the two images"
"""What a severity of ∞ means."""


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


def rate_text(share: float | None, low: float | None, high: float | None, *, digits: int = 0) -> str:
    """A share in per cent with its interval.

    >>> rate_text(0.92, 0.85, 0.959).replace(SPACE, " "), rate_text(None, 0.0, 1.0)
    ('92 % (85–96)', '–')
    """
    return "–" if share is None else f"{percent(share, digits=digits)} ({interval(low, high)})"


def points(difference: float | None) -> str:
    """A difference of two shares in points.

    >>> [points(difference).replace(SPACE, " ") for difference in (0.123, -0.01, 0.0, None)]
    ['+12 points', '−1 point', '0 points', '–']
    """
    if difference is None:
        return "–"
    whole = round(100 * difference)
    signed = f"{whole:+d}".replace("-", "−") if whole else "0"
    return f"{signed}{SPACE}point{'' if abs(whole) == 1 else 's'}"


def points_between(ends: Sequence[float]) -> str:
    """The interval of such a difference, without its unit.

    >>> points_between((-0.329, 0.056))
    '−33 to +6'
    """
    return " to ".join(points(end).partition(SPACE)[0] for end in ends)


def p_text(p: float) -> str:
    """A p value as people read it."""
    return "< 0.001" if p < 0.001 else f"{p:.2g}"


def p_words(p: float) -> str:
    """A p value in a sentence; a small one by its order of magnitude.

    >>> p_words(0.031), p_words(0.0004), p_words(3e-6), p_words(0.0)
    ('p = 0.031', 'p < 0.001', 'p < 1e-5', 'p < 1e-9')
    """
    if p >= 0.001:
        return f"p = {p:.2g}"
    order = min(9, int(-math.log10(p))) if p > 0 else 9
    return f"p < {'0.001' if order == 3 else f'1e-{order}'}"


def count_of(number: int, word: str) -> str:
    """A number with its noun.

    >>> count_of(1, "pair"), count_of(0, "rule"), count_of(1200, "case")
    ('1 pair', 'no rule', '1,200 cases')
    """
    return f"no {word}" if number == 0 else f"{number:,} {word}{'' if number == 1 else 's'}"


def of_total(number: int, total: int, word: str) -> str:
    """A part of a number of things.

    >>> of_total(3, 1200, "case"), of_total(1, 1, "case")
    ('3 of 1,200 cases', '1 of 1 case')
    """
    return f"{number:,} of {total:,} {word}{'' if total == 1 else 's'}"


def kinds_text(kinds: Sequence[Mapping[str, object]]) -> str:
    """How many violations are of each kind.

    >>> kinds_text([{"kind": "lost", "count": 1200}, {"kind": "doubled", "count": 3}])
    '1,200 lost, 3 doubled'
    """
    return ", ".join(f"{each['count']:,} {each['kind']}" for each in kinds)


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names in a sentence; of many the first.

    >>> listed(["left_ankle", "right_ankle"]), listed(["a", "b", "c"], 2)
    ('left_ankle and right_ankle', 'a, b and 1 more')
    """
    shown = [*names[:most], *([f"{len(names) - most} more"] if len(names) > most else [])]
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def scores_text(verdict: Mapping[str, object]) -> str:
    """How sure the system was of what a verdict is about, in the source and in the follow-up; empty where not known.

    >>> scores_text({"source_score": 0.62, "follow_up_score": None})
    'scores 0.62 → none'
    """
    scores = verdict.get("source_score"), verdict.get("follow_up_score")
    if scores == (None, None):
        return ""
    return "scores " + " → ".join("none" if score is None else f"{score:.2f}" for score in scores)


def severity_text(severity: float | None) -> str:
    """A severity as people read it: what is nothing but rounding is 0, and no number has an exponent.

    >>> [severity_text(severity) for severity in (0.25, 2e-07, 12345.6, math.inf, None)]
    ['0.25', '0', '12,346', '∞', '–']
    """
    if severity is None:
        return "–"
    if math.isinf(severity):
        return "∞"
    return "0" if abs(severity) < 5e-5 else f"{severity:.3g}" if abs(severity) < 999.5 else f"{severity:,.0f}"


_SHARES = "shares of "
"""How a unit begins whose severities are parts of a whole: 0.5 of it, not 0.5 shares of it."""


def amount(value: float) -> str:
    """A number that was measured of an input; a large one in full.

    >>> amount(0.28831), amount(2241.7)
    ('0.288', '2,242')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < math.inf else severity_text(value)


def measured(severity: float | None, unit: str) -> str:
    """A severity with its unit, as it stands in a sentence; ∞ has none, and is said in words.

    >>> measured(0.25, "body lengths"), measured(1.0, "classes wrong"), measured(2 / 3, "shares of the follow-ups")
    ('0.25 body lengths', '1 class wrong', '0.667 of the follow-ups')
    >>> measured(math.inf, "body lengths")
    '∞ (found in only one of the two images)'
    """
    number = severity_text(severity)
    if severity is None or not unit:
        return number
    if math.isinf(severity):
        return f"{number} ({ONE_SIDED})"
    if unit.startswith(_SHARES):
        return f"{number} of {unit.removeprefix(_SHARES)}"
    return f"{number} {_singular(unit) if number == '1' else unit}"


def _singular(unit: str) -> str:
    """A unit of which there is one: the first plural in it becomes a singular."""
    return re.sub(r"\b(\w+?)(?:(?<=ss)es|(?<!s)s)\b", r"\1", unit, count=1)


def severity_words(severity: float, unit: str, kind: str | None = None, meaning: str | None = None) -> str:
    """A severity with its unit and what happened: ∞ never stands alone beside a picture.

    >>> severity_words(0.92, "body lengths", "exchanged", "left and right change places")
    '0.92 body lengths, exchanged: left and right change places'
    >>> severity_words(math.inf, "body lengths", "lost", "found in the source alone")
    '∞, lost: found in the source alone'
    >>> severity_words(math.inf, "body lengths")
    '∞: found in only one of the two images'
    """
    number = severity_text(severity) if math.isinf(severity) else measured(severity, unit)
    words = meaning or (ONE_SIDED if math.isinf(severity) else None)
    return ": ".join(filter(None, (", ".join(filter(None, (number, kind))), words)))


def threshold_text(threshold: float, unit: str = "") -> str:
    """A threshold, and what it is measured in.

    >>> threshold_text(0.2), threshold_text(2 / 3, "shares of the follow-ups")
    ('0.2', '0.667 of the follow-ups')
    """
    return measured(threshold, unit)


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


def distinct_names(systems: Sequence[str], folders: Sequence[str]) -> list[str]:
    """What tells runs apart: their systems' names, with their folders' where those are the same or not known.

    >>> distinct_names(["a", "a", "b"], ["first", "second", "third"])
    ['a (first)', 'a (second)', 'b']
    """
    names = [
        folder if not system else system if systems.count(system) == 1 else f"{system} ({folder})"
        for system, folder in zip(systems, folders, strict=True)
    ]
    return [name if names.count(name) == 1 else f"{number}: {name}" for number, name in enumerate(names, start=1)]


UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Signs that move a cursor, begin a command to the terminal, turn the writing round or are half of a pair."""


def visible(text: str) -> str:
    """A text from elsewhere as a terminal may show it.

    >>> visible("a\\x1b[2Jb\\u202egnp.exe")
    'a�[2Jb�gnp.exe'
    """
    return UNSEEN.sub("\ufffd", text)


def one_line(text: str) -> str:
    """A name in one line, whatever it holds."""
    return visible(re.sub(r"[\r\n\t]+", " ", text))
