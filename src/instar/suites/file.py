"""Suite files: a user's own list of rules, as TOML.

name = "lighting"
include = ["met-pose/sub"]
rules = ["gamma(0.3)", {rule = "rotation(5)", threshold = 0.3}]

[thresholds]
"*" = 0.2

[judging]
aggregate = "max"
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path

from instar.json_values import short
from instar.outputs import output_kinds
from instar.reading import Unreadable, file_text
from instar.relations import Rule, relations, rule
from instar.spelling import Parameter, nearest
from instar.suites.suite import Suite, joined

_KEYS = ("name", "help", "output", "include", "rules", "thresholds", "judging")
MOST_BYTES, DEEPEST = 1 << 20, 16
"""How large a suite's file may be, and through how many others it may be included."""


@dataclass(slots=True)
class _Reading:
    """The files that are being read, each included by the one before it, and the suites of those that were.

    Each is read once, however often it is included: files that include each other twice would double with every step.
    """

    way: list[Path] = field(default_factory=list)
    suites: dict[Path, Suite] = field(default_factory=dict)


_reading: ContextVar[_Reading | None] = ContextVar("reading", default=None)


def read_suite(path: Path, find: Callable[[str], Suite]) -> Suite:
    """The suite a file describes; `find` looks up those it includes. Paths in it are relative to it."""
    where, reading = path.resolve(), _reading.get() or _Reading()
    if where in reading.suites:
        return reading.suites[where]
    if where in reading.way:
        way = " and ".join(open_file.name for open_file in reading.way)
        raise ValueError(f"suite {path}: it includes itself, through {way}")
    if len(reading.way) >= DEEPEST:
        raise ValueError(f"suite {path}: it is included through {DEEPEST} other files; no more are followed")
    before = _reading.set(reading)
    reading.way.append(where)
    try:
        reading.suites[where] = _suite(path, _loaded(path), find)
    finally:
        reading.way.pop()
        _reading.reset(before)
    return reading.suites[where]


def _loaded(path: Path) -> dict[str, object]:
    try:
        if path.is_file() and path.stat().st_size > MOST_BYTES:
            raise ValueError(f"suite {path}: it is larger than {MOST_BYTES >> 20} MB; a suite is a list of rules")
        return tomllib.loads(file_text(path))
    except Unreadable as error:
        raise FileNotFoundError(f"suite {error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"suite {path}: not valid TOML: {error}") from None


def _suite(path: Path, data: Mapping[str, object], find: Callable[[str], Suite]) -> Suite:
    for key in data:
        if key not in _KEYS:
            raise ValueError(f"suite {path}: unknown key {key!r}{nearest(key, _KEYS)}; it has {', '.join(_KEYS)}")
    name, help = _text(path, data, "name", path.stem), _text(path, data, "help", "")
    parts = [_included(path, one, find) for one in _list(path, data, "include")]
    own: list[Rule] = []
    thresholds: dict[str, float] = {}
    for number, entry in enumerate(_list(path, data, "rules"), 1):
        parsed, threshold = _rule(f"suite {path}: rules, number {number}", entry)
        own.append(parsed)
        if threshold is not None:
            thresholds[parsed.id] = threshold
    whole = joined(parts, name=name, help=help)
    rules = tuple({one.id: one for one in (*whole.rules, *own)}.values())
    if not rules:
        raise ValueError(f'suite {path}: it has no rules; give it rules = ["gamma(0.5)"] or include = ["met-pose"]')
    output = _output(path, data, whole, own)
    thresholds |= _thresholds(path, data, [one.id for one in rules])
    if "*" not in thresholds:
        thresholds = {**whole.thresholds, **thresholds}
    options = {**whole.options, **_judging(path, data, output)}
    return replace(whole, rules=rules, output=output, options=options, thresholds=thresholds)


def _included(path: Path, entry: object, find: Callable[[str], Suite]) -> Suite:
    if not isinstance(entry, str):
        raise ValueError(f"suite {path}: include: {entry!r} is not the name of a suite")
    if entry.endswith(".toml"):
        return read_suite(path.parent / entry, find)
    try:
        return find(entry)
    except (KeyError, ValueError) as error:
        raise ValueError(f"suite {path}: include: {error}") from None


def _rule(where: str, entry: object) -> tuple[Rule, float | None]:
    """One entry of `rules`: a spelling, or a table of a spelling and its threshold."""
    threshold = None
    if isinstance(entry, Mapping):
        for key in entry:
            if key not in ("rule", "threshold"):
                raise ValueError(
                    f"{where}: unknown key {key!r}{nearest(key, ('rule', 'threshold'))}; it has rule and threshold"
                )
        if "threshold" in entry:
            threshold = _threshold(where, entry["threshold"])
        entry = entry.get("rule")
    if not isinstance(entry, str):
        raise ValueError(f'{where}: expected a rule such as "gamma(0.5)", got {entry!r}')
    try:
        return rule(entry), threshold
    except (KeyError, ValueError, TypeError) as error:
        raise ValueError(f"{where}: {error}") from None


def _thresholds(path: Path, data: Mapping[str, object], ids: list[str]) -> dict[str, float]:
    limits = {}
    for key, value in _table(path, data, "thresholds").items():
        name = key
        if key != "*":
            name = _rule(f"suite {path}: thresholds", key)[0].id
            if name not in ids:
                raise ValueError(f"suite {path}: thresholds: it has no rule {key!r}{nearest(name, ids)}")
        limits[name] = _threshold(f"suite {path}: thresholds: {key}", value)
    return limits


def _threshold(where: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise ValueError(f"{where}: a threshold is a number from 0 (or inf), got {short(value)}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{where}: a threshold is a number from 0 (or inf), got {short(value)}") from None


def _output(path: Path, data: Mapping[str, object], whole: Suite, own: Iterable[Rule]) -> str | None:
    """What the file says, else the one kind that its suites and relations are for."""
    output = _text(path, data, "output", "")
    if output:
        if output not in output_kinds():
            raise ValueError(
                f"suite {path}: unknown output {output!r}{nearest(output, output_kinds())}; "
                f"there are {', '.join(sorted(output_kinds()))}"
            )
        return output
    kinds = {one.relation.relation.output for one in own if one.relation} - {"any"}
    kinds |= {whole.output} if whole.output else set()
    return kinds.pop() if len(kinds) == 1 else None


def _judging(path: Path, data: Mapping[str, object], output: str | None) -> dict[str, object]:
    known: dict[str, list[Parameter]] = {}
    for relation in relations().values():
        if output is None or relation.output in (output, "any"):
            for option in relation.options:
                known.setdefault(option.name, []).append(option)
    options: dict[str, object] = {}
    for key, value in _table(path, data, "judging").items():
        if key not in known:
            raise ValueError(
                f"suite {path}: judging: unknown option {key!r}{nearest(key, known)}; "
                f"there are {', '.join(sorted(known))}"
            )
        options[key] = known[key][0].check(value, f"suite {path}: judging")
    return options


def _text(path: Path, data: Mapping[str, object], key: str, default: str) -> str:
    value = data.get(key, default)
    if not isinstance(value, str):
        raise ValueError(f"suite {path}: {key} is text, got {value!r}")
    return value


def _list(path: Path, data: Mapping[str, object], key: str) -> list[object]:
    value = data.get(key, [])
    if not isinstance(value, list):
        raise ValueError(f"suite {path}: {key} is a list, got {value!r}")
    return value


def _table(path: Path, data: Mapping[str, object], key: str) -> dict[str, object]:
    value = data.get(key, {})
    if not isinstance(value, dict):
        raise ValueError(f"suite {path}: {key} is a table ([{key}]), got {value!r}")
    return value
