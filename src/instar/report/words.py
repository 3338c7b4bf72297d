"""Numbers in words: the one place where a number becomes text that people read, and names are made fit to be shown."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from markupsafe import Markup, escape

from instar.analysis.comparison import LEVEL

SPACE = "\u00a0"
ONE_SIDED = "found in one of the two images, with no match or a far lower score in the other"
"""What a severity of ∞ means."""
INTERVAL_AND_P = (
    "An interval is Newcombe's, of one difference alone; p is exact and corrected for the number of rules, so that it "
    "may be above 0.05 where the interval leaves out 0: then it is p that counts."
)
"""What must be known where the interval of a difference stands beside its p."""


STRAY_MOST = "pairs that stray most, and violate no rule"
"""What is said of pairs that are shown among the worst, and violate nothing."""


def hundredths(share: float, digits: int = 0) -> str:
    """A share in hundredths, as everybody rounds: a half goes away from 0, and 0 has no sign.

    >>> [hundredths(share) for share in (0.625, 0.125, 0.145, -0.125, -0.001)], hundredths(0.00125, 1)
    (['63', '13', '15', '-13', '0'], '0.1')
    """
    value = Decimal(repr(float(share))) * 100  # the shortest decimal number that is this one: 0.145 is a half, too
    if not value.is_finite():
        return f"{float(share):.0f}"
    rounded = value.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{rounded if rounded else abs(rounded):f}"


def percent(share: float | None, *, digits: int = 0, sign: bool = True) -> str:
    """A share in per cent; what is not all or nothing never reads as 100 % or 0 %.

    >>> [percent(share).replace(SPACE, " ") for share in (0.92, 5 / 8, 0.998, 0.004, None)]
    ['92 %', '63 %', '>99 %', '<1 %', '–']
    >>> percent(0.0004, digits=1, sign=False), percent(0.5, digits=1, sign=False)
    ('<0.1', '50.0')
    """
    if share is None:
        return "–"
    text, least = hundredths(share, digits), 10.0**-digits
    if share > 0 and float(text) == 0:
        text = f"<{least:.{digits}f}"
    elif share < 1 and float(text) == 100:
        text = f">{100 - least:.{digits}f}"
    return f"{text}{SPACE}%" if sign else text


def beside_limit(share: float, limit: float) -> tuple[str, str]:
    """A share and the limit that it is held to, in per cent, with as many digits as tell them apart.

    >>> [[text.replace(SPACE, " ") for text in beside_limit(share, 0.1)] for share in (0.03, 0.1001, 0.1)]
    [['3 %', '10 %'], ['10.01 %', '10.00 %'], ['10 %', '10 %']]
    """
    for digits in range(_MOST_DIGITS + 1):
        texts = percent(share, digits=digits), percent(limit, digits=digits)
        if texts[0] != texts[1]:
            return texts
    return percent(share), percent(limit)


_MOST_DIGITS = 4
"""Of a share in per cent; what differs by less is the same."""


def interval(low: float | None, high: float | None) -> str:
    """A 95 % interval in per cent, without the sign.

    >>> interval(0.85, 0.959)
    '85–96'
    """
    return "–" if low is None or high is None else f"{hundredths(low)}–{hundredths(high)}"


def rate_text(share: float | None, low: float | None, high: float | None, *, digits: int = 0) -> str:
    """A share in per cent with its interval.

    >>> rate_text(0.92, 0.85, 0.959).replace(SPACE, " "), rate_text(None, 0.0, 1.0)
    ('92 % (85–96)', '–')
    """
    return "–" if share is None else f"{percent(share, digits=digits)} ({interval(low, high)})"


def points(difference: float | None, *, digits: int = 0) -> str:
    """A difference of two shares in points.

    >>> [points(difference).replace(SPACE, " ") for difference in (0.123, -0.01, 0.0, None)]
    ['+12 points', '−1 point', '0 points', '–']
    >>> points(0.0204, digits=1).replace(SPACE, " ")
    '+2.0 points'
    """
    if difference is None:
        return "–"
    text = hundredths(difference, digits)
    signed = text.replace("-", "−") if float(text) <= 0 else f"+{text}"
    return f"{signed}{SPACE}point{'' if text.lstrip('-') == '1' else 's'}"


def points_beside_limit(difference: float, limit: float) -> tuple[str, str]:
    """A difference and the limit that it is held to, in points, with as many digits as tell them apart.

    >>> [text.replace(SPACE, " ") for text in points_beside_limit(0.0204, 0.02)]
    ['+2.04 points', '+2.00 points']
    """
    for digits in range(_MOST_DIGITS + 1):
        texts = points(difference, digits=digits), points(limit, digits=digits)
        if texts[0] != texts[1]:
            return texts
    return points(difference), points(limit)


def points_between(ends: Sequence[float]) -> str:
    """The interval of such a difference, without its unit.

    >>> points_between((-0.329, 0.056))
    '−33 to +6'
    """
    return " to ".join(points(end).partition(SPACE)[0] for end in ends)


def p_text(p: float) -> str:
    """A p value as people read it; one above the level has as many digits as tell that.

    >>> [p_text(p) for p in (0.031, 0.0004, 0.0498, 0.0502, 0.050004, 0.05)]
    ['0.031', '< 0.001', '0.05', '0.0502', '0.050004', '0.05']
    """
    if p < 0.001:
        return "< 0.001"
    texts = (f"{p:.{digits}g}" for digits in range(2, _EXACT_DIGITS + 1))
    return next(text for text in texts if (float(text) <= LEVEL) == (p <= LEVEL))


_EXACT_DIGITS = 17
"""So many digits are those of one number alone."""


def p_words(p: float) -> str:
    """A p value in a sentence; a small one by its order of magnitude.

    >>> p_words(0.0502), p_words(0.0004), p_words(3e-6), p_words(0.0)
    ('p = 0.0502', 'p < 0.001', 'p < 1e-5', 'p < 1e-9')
    """
    if p >= 0.001:
        return f"p = {p_text(p)}"
    order = min(9, int(-math.log10(p))) if p > 0 else 9
    return f"p < {'0.001' if order == 3 else f'1e-{order}'}"


def count_of(number: int, word: str) -> str:
    """A number with its noun.

    >>> count_of(1, "pair"), count_of(0, "rule"), count_of(1200, "case"), count_of(2, "family")
    ('1 pair', 'no rule', '1,200 cases', '2 families')
    """
    return f"no {word}" if number == 0 else f"{number:,} {_counted(number, word)}"


def of_total(number: int, total: int, word: str) -> str:
    """A part of a number of things.

    >>> of_total(3, 1200, "case"), of_total(1, 1, "case")
    ('3 of 1,200 cases', '1 of 1 case')
    """
    return f"{number:,} of {total:,} {_counted(total, word)}"


def _counted(number: int, word: str) -> str:
    several = f"{word[:-1]}ies" if word.endswith("ly") else f"{word}s"
    return word if number == 1 else several


def kinds_text(kinds: Sequence[Mapping[str, Any]], counted: Mapping[str, str] | None = None) -> str:
    """How many violations are of each kind; `counted` has what several of a kind are called, as relations say it.

    >>> kinds_text([{"kind": "lost", "count": 1200}, {"kind": "omission", "count": 1}], {"omission": "omissions"})
    '1,200 lost, 1 omission'
    """
    return ", ".join(_so_many(each["count"], each["kind"], counted or {}) for each in kinds)


_STATUSES = {"error": "errors", "timeout": "timeouts"}
"""What several predictions of a status are called, where that is another word."""


def statuses_text(counts: Mapping[str, int]) -> str:
    """How many predictions, or inputs, have each status.

    >>> statuses_text({"ok": 40, "error": 3, "timeout": 1})
    '40 ok, 3 errors, 1 timeout'
    """
    return ", ".join(_so_many(count, status, _STATUSES) for status, count in counts.items())


def _so_many(count: int, name: str, several: Mapping[str, str]) -> str:
    if name not in several:
        return f"{count:,} {name}"
    return f"{count:,} {_singular(several[name]) if count == 1 else several[name]}"


def landmark_words(name: str) -> str:
    """The name of a landmark, of a group of them or of a part, as people read it.

    >>> landmark_words("left_shoulder"), landmark_words("left_hand.thumb_tip")
    ('left shoulder', 'thumb tip (left hand)')
    """
    owner, _, own = name.replace("_", " ").rpartition(".")
    return f"{own} ({owner})" if owner else own


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names in a sentence; of many the first.

    >>> listed(["left ankle", "right ankle"]), listed(["a", "b", "c"], 2)
    ('left ankle and right ankle', 'a, b and 1 more')
    """
    shown = [*names[:most], *([f"{len(names) - most} more"] if len(names) > most else [])]
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def scores_text(verdict: Mapping[str, object]) -> str:
    """How sure the system was of what a verdict is about, in the source and in the follow-up; empty where not known.

    >>> scores_text({"source_score": 0.62, "follow_up_score": None})
    'scores 0.62 → no match'
    """
    scores = verdict.get("source_score"), verdict.get("follow_up_score")
    if scores == (None, None):
        return ""
    return "scores " + " → ".join("no match" if score is None else f"{score:.2f}" for score in scores)


def severity_text(severity: float | None, threshold: float | None = None) -> str:
    """A severity as people read it: what is nothing but rounding is 0, and no number has an exponent.

    Beside a threshold it never reads as violated where it is not, nor the other way round: it has more digits then.

    >>> [severity_text(severity) for severity in (0.25, 2e-07, 12345.6, math.inf, None)]
    ['0.25', '0', '12,346', '∞', '–']
    >>> severity_text(0.1997), severity_text(0.1997, 0.2), severity_text(0.19999999, 0.2), severity_text(2e-07, 0.0)
    ('0.2', '0.1997', '<0.2', '>0')
    """
    if severity is None:
        return "–"
    if math.isinf(severity):
        return "∞"
    text = "0" if abs(severity) < 5e-5 else _rounded(severity, 3)
    if threshold is None or math.isinf(threshold):
        return text
    limit, violated = threshold_text(threshold), severity >= threshold and severity > 0
    for digits in (4, 5, 6):
        if _reads_as_violated(text, limit) == violated:
            return text
        text = _rounded(severity, digits)
    if _reads_as_violated(text, limit) == violated:
        return text
    return f"<{limit}" if not violated else f">{limit}" if severity > threshold else limit


def _rounded(value: float, digits: int) -> str:
    """So many digits that count, at most six of them after the point, and no zeros at the end."""
    decimals = min(6, max(0, digits - 1 - math.floor(math.log10(abs(value)))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _reads_as_violated(text: str, limit: str) -> bool:
    shown, least = (float(number.replace(",", "")) for number in (text, limit))
    return shown >= least and shown > 0


_SHARES = "shares of "
"""How a unit begins whose severities are parts of a whole: 0.5 of it, not 0.5 shares of it."""
_MULTIPLES = "multiples of "
"""How a unit begins whose severities count another number: 1.5 times it, not 1.5 multiples of it."""

_BEYOND = re.compile(r"; (from|above) (\d+)(?: up)?: ")
"""What stands between a unit and what larger severities say, where that is another thing."""
_REST = " by the rest"
"""How the latter may end: by what a severity is more than that number."""


def amount(value: float) -> str:
    """A number that was measured of an input; a large one in full.

    >>> amount(0.28831), amount(2241.7)
    ('0.288', '2,242')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < math.inf else severity_text(value)


def measured(severity: float | None, unit: str, threshold: float | None = None) -> str:
    """A severity with its unit, as it stands in a sentence; ∞ has none, and is said in words.

    `threshold` is that of `severity_text`.

    >>> measured(0.25, "body lengths"), measured(1.0, "classes wrong"), measured(2 / 3, "shares of the follow-ups")
    ('0.25 body lengths', '1 class wrong', '0.667 of the follow-ups')
    >>> measured(1.0, "shares of the follow-ups")
    '1 (all of the follow-ups)'
    >>> measured(1.5, "multiples of its own distance"), measured(math.inf, "body lengths") == f"∞ ({ONE_SIDED})"
    ('1.5 times its own distance', True)
    >>> unit = "shares of the class's score lost; from 1 up: another class leads by the rest"
    >>> measured(0.5, unit), measured(1.0, unit), measured(1.98, unit)
    ("0.5 of the class's score lost", '1 (another class leads)', '1.98 (another class leads by 0.98)')
    """
    number = severity_text(severity, threshold)
    if severity is None or not unit:
        return number
    if math.isinf(severity):
        return f"{number} ({ONE_SIDED})"
    return _with_unit(number, severity, unit)


def unit_name(unit: str) -> str:
    """A unit without what it says of large severities, for where there is little room.

    >>> unit_name("shares of the class's score lost; from 1 up: another class leads by the rest")
    "shares of the class's score lost"
    """
    return _BEYOND.split(unit)[0]


def _with_unit(number: str, value: float, unit: str) -> str:
    unit, *beyond = _BEYOND.split(unit)
    if beyond and (value > float(beyond[1]) or (value == float(beyond[1]) and beyond[0] == "from")):
        rest = severity_text(value - float(beyond[1]))
        return f"{number} ({beyond[2].replace(_REST, '' if rest == '0' else f' by {rest}')})"
    if unit.startswith(_SHARES):
        whole = f"of {unit.removeprefix(_SHARES)}"
        return f"1 (all {whole})" if number == "1" else f"{number} {whole}"
    if unit.startswith(_MULTIPLES):
        return f"{number} times {unit.removeprefix(_MULTIPLES)}"
    return f"{number} {_singular(unit) if number == '1' else unit}"


def _singular(unit: str) -> str:
    """A unit of which there is one: the first plural in it becomes a singular."""
    return re.sub(r"\b(\w+?)(?:(?<=ss)es|(?<!s)s)\b", r"\1", unit, count=1)


def severity_words(
    severity: float, unit: str, kind: str | None = None, meaning: str | None = None, *, threshold: float | None = None
) -> str:
    """A severity with its unit and what happened: ∞ never stands alone beside a picture.

    >>> severity_words(0.92, "body lengths", "exchanged", "left and right change places")
    '0.92 body lengths, exchanged: left and right change places'
    >>> severity_words(math.inf, "body lengths", "lost", "found in the source alone")
    '∞, lost: found in the source alone'
    >>> severity_words(math.inf, "body lengths")
    '∞: found in one of the two images, with no match or a far lower score in the other'
    """
    number = severity_text(severity) if math.isinf(severity) else measured(severity, unit, threshold)
    words = meaning or (ONE_SIDED if math.isinf(severity) else None)
    return ": ".join(filter(None, (", ".join(filter(None, (number, kind))), words)))


def threshold_text(threshold: float, unit: str = "") -> str:
    """A threshold, and what it is measured in: as it was chosen, where six digits are enough for that.

    >>> threshold_text(0.2), threshold_text(0.2004), threshold_text(2 / 3, "shares of the follow-ups")
    ('0.2', '0.2004', '0.667 of the follow-ups')
    """
    if math.isinf(threshold):
        return measured(threshold, unit)
    number = _rounded(threshold, 6) if threshold else "0"
    if float(number.replace(",", "")) != threshold:
        number = severity_text(threshold)
    return _with_unit(number, threshold, unit) if unit else number


def violated_from(threshold: float, unit: str = "") -> str:
    """From where on a rule is violated: a severity of 0 never is.

    >>> violated_from(0.2, "body lengths"), violated_from(0)
    ('violated from 0.2 body lengths up', 'violated above 0')
    """
    text = threshold_text(threshold, unit)
    return f"violated from {text} up" if threshold > 0 else f"violated above {text}"


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


def progress_words(rate: float, remaining: float | None, statuses: Mapping[str, int]) -> str:
    """How fast a run is, how long it will take, and how many predictions failed, as far as that is known.

    >>> progress_words(12.34, 75.0, {"ok": 40, "not applicable": 3, "error": 2})
    '12.3/s, 1 min 15 s left, 2 failed'
    """
    failed = sum(count for status, count in statuses.items() if status not in ("ok", "not applicable"))
    notes = [] if remaining is None else [f"{rate:.1f}/s", f"{duration(remaining)} left"]
    return ", ".join([*notes, *([f"{failed} failed"] if failed else [])])


def short_system(name: str) -> str:
    """The spelling of a system with the names of its files alone: folders push everything else off a page.

    >>> short_system('movenet("/data/models/movenet_lightning.tflite", threads=2)')
    'movenet("movenet_lightning.tflite", threads=2)'
    >>> short_system('detector-captioner(detector="onnx-detector(models/yolox.onnx)")')
    'detector-captioner(detector="onnx-detector(yolox.onnx)")'
    """
    return re.sub(r'"([\w-]+\()?[^"]*/([^"/]+)"', r'"\1\2"', name)


def clipped(name: str, most: int = 40) -> str:
    """A name as a table has room for: of a long one its beginning and its end, where versions differ.

    >>> clipped("yolo"), clipped("http://localhost:8000/models/detector/v2", 20)
    ('yolo', 'http://loc…ector/v2')
    """
    return name if len(name) <= most else f"{name[: most // 2]}…{name[-(most // 2 - 2) :]}"


def distinct_names(systems: Sequence[str], folders: Sequence[str]) -> list[str]:
    """What tells runs apart: their systems' names, with their folders' where those are the same or not known.

    >>> distinct_names(["a", "a", "b"], ["first", "second", "third"])
    ['a (first)', 'a (second)', 'b']
    """
    systems = [short_system(system) for system in systems]
    names = [
        folder if not system else system if systems.count(system) == 1 else f"{system} ({folder})"
        for system, folder in zip(systems, folders, strict=True)
    ]
    return [name if names.count(name) == 1 else f"{number}: {name}" for number, name in enumerate(names, start=1)]


def breakable(name: str) -> Markup:
    """The name of a rule or a path for a page: where it is too long for its line, it breaks at a bracket or a slash.

    >>> breakable("gamma(2)"), breakable("filtered(colour_wheel(90), hair)"), breakable("freihand/00000355.jpg")
    (Markup('gamma(2)'), Markup('filtered(<wbr>colour_wheel(<wbr>90), hair)'), Markup('freihand/<wbr>00000355.jpg'))
    """
    parts = (str(escape(word)) for word in name.split(" "))
    return Markup(
        " ".join(re.sub(r"(?<=[(/])(?=[^/])", "<wbr>", word) if len(word) > _LONG else word for word in parts)
    )


def commands(text: str) -> Markup:
    """A sentence for a page: what it spells between backticks, commands and names, stands there as code.

    >>> commands("`instar judge a` judges it again; <b> is text, and so is a lone `")
    Markup('<code>instar judge a</code> judges it again; &lt;b&gt; is text, and so is a lone `')
    """
    return Markup(re.sub(r"`([^`\n]+)`", r"<code>\1</code>", str(escape(text))))


_LONG = 20
"""Letters of a word that may not fit beside its numbers."""

UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""Signs that move a cursor, begin a command to the terminal, turn the writing round, are half of a pair or no XML."""


def visible(text: str) -> str:
    """A text from elsewhere as a terminal may show it.

    >>> visible("a\\x1b[2Jb\\u202egnp.exe")
    'a�[2Jb�gnp.exe'
    """
    return UNSEEN.sub("\ufffd", text)


def one_line(text: str) -> str:
    """A name in one line, whatever it holds."""
    return visible(re.sub(r"[\r\n\t]+", " ", text))


_MARKDOWN = (
    (re.compile(r"[\\`*_{}\[\]<>#|&~!$]|^[-+](?=[\s-]|$)"), r"\\\g<0>"),
    (re.compile(r"^(\d+)([.)])(?=\s|$)"), r"\1\\\2"),
    # GitHub finds mentions and references in the text that Markdown renders to, so an escape doesn't stop them
    (re.compile(r"(?i)@|#(?=\d)|\bgh-(?=\d)|:(?=//)|\bwww(?=\.)"), r"\g<0>&#8203;"),
)
"""Patterns of what Markdown or GitHub interprets, and their replacements; `&#8203;` is a space without width."""


def markdown_text(text: object) -> str:
    r"""Escape a text from elsewhere so that Markdown shows it literally, in one line, also in a table.

    >>> markdown_text("a|b_[c](http://d) @team")
    'a\\|b\\_\\[c\\](http:&#8203;//d) @&#8203;team'
    """
    escaped = " ".join(one_line(str(text)).split())
    for pattern, replacement in _MARKDOWN:
        escaped = pattern.sub(replacement, escaped)
    return escaped
