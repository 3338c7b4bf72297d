"""Policies: what a run must hold, read from a TOML file. An error names the line."""

from __future__ import annotations

import difflib
import math
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from instar.analysis import ANY
from instar.engine import DEFAULT

EACH_RULE, EACH_FAMILY = "each rule", "each family"
FAILED_AS: Mapping[str, str] = {"errors": "error", "timeouts": "timeout", "crashes": "crashed"}
"""The statuses of predictions that a policy limits one by one."""
UNJUDGED: Mapping[str, str] = {
    "not_judged": "were not judged",
    "not_applicable": "are not applicable",
    "nothing_found": "have nothing found in either input",
}
"""The pairs without a severity whose share a policy limits: all of them, or for one reason."""
SURE = ("upper", "lower", "plain")


class PolicyError(ValueError):
    """A policy that cannot be read, or that names what the run does not have."""


@dataclass(frozen=True, slots=True)
class Where:
    """Only the cases whose `column` is one of `values`, or lies within the ends."""

    column: str
    values: tuple[str, ...] = ()
    at_least: float | None = None
    below: float | None = None

    @property
    def words(self) -> str:
        ends = [
            f"at least {self.at_least:g}" if self.at_least is not None else "",
            f"below {self.below:g}" if self.below is not None else "",
        ]
        return f"{self.column} is {' and '.join(filter(None, [' or '.join(self.values), *ends]))}"


@dataclass(frozen=True, slots=True)
class Limit:
    """The highest rate or severity of a rule, a family, a suite, all rules together, or a rule over many cases; of the
    latter also the highest or the lowest value of a measure. `cases` is how many it counts at least.

    `sure` says what must lie at or below it: the *upper* end of the interval (the run has to show that it is good
    enough), its *lower* end (it fails only where it is shown not to be), or the *plain* figure. What must lie at or
    above `at_least` is the lower end, unless it says otherwise.
    """

    of: str
    line: int
    rate: float | None = None
    severity: float | None = None
    quantile: float = 0.95
    measure: str | None = None
    at_most: float | None = None
    at_least: float | None = None
    cases: int = 1
    sure: str = "upper"
    where: Where | None = None
    lines: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NoWorse:
    """No regression: the rate is shown to be no more than `margin` above the baseline's."""

    of: str
    line: int
    margin: float
    lines: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Graph:
    """A model graph whose numerical defects are gated: how many may reach an output, and how many operators may be
    unknown to the analysis."""

    model: Path
    line: int
    ranges: tuple[str, ...]
    dims: tuple[str, ...] = ()
    defects: int = 0
    unknown: int | None = None
    lines: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)


def near_key(name: str, allowed: Iterable[str]) -> str:
    """The key that was meant, as a question; empty where none is near."""
    near = difflib.get_close_matches(name, list(allowed), 1)
    return f"did you mean {near[0]}? " if near else ""


def line_of(table: Limit | NoWorse | Graph, *keys: str) -> int:
    """The line of the first of these keys that stands in a line of its own, or else that of the table."""
    return next((table.lines[key] for key in keys if key in table.lines), table.line)


@dataclass(frozen=True, slots=True)
class Policy:
    """What a run must hold.

    `cases` is the least number of judged cases, `failed` the highest share of predictions that failed and `failures`
    those of single statuses, which `failed` then leaves to them. `unjudged` has the highest shares of pairs without a
    severity, by why, `not_repeatable` that of the violating pairs that were asked again and got another output.
    `least_found` is the share of what a baseline found in the unchanged inputs that the run has to
    find. `confidence` is that of every bound, on its own side.
    """

    path: str = ""
    judging: str = DEFAULT
    threshold: float | None = None
    confidence: float = 0.95
    cases: int = 1
    failed: float = 0.0
    failures: Mapping[str, float] = field(default_factory=dict)
    unjudged: Mapping[str, float] = field(default_factory=dict)
    not_repeatable: float = 0.0
    least_found: float = 0.9
    limits: tuple[Limit, ...] = ()
    no_worse: tuple[NoWorse, ...] = ()
    graphs: tuple[Graph, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def compared(self) -> int | None:
        """The line that compares with a baseline; None where none does."""
        return self.lines.get("least_found", self.no_worse[0].line if self.no_worse else None)


_Range = tuple[type | tuple[type, ...], float | None, float | None]
_SHARE: _Range = ((int, float), 0.0, 1.0)
_TOP: Mapping[str, _Range] = {
    "judging": (str, None, None),
    "threshold": ((int, float), 0.0, None),
    "confidence": ((int, float), 0.5, 0.9999),
    "cases": (int, 0, None),
    "failed": _SHARE,
    **dict.fromkeys(FAILED_AS, _SHARE),
    **dict.fromkeys(UNJUDGED, _SHARE),
    "not_repeatable": _SHARE,
    "least_found": _SHARE,
}
_LIMIT: Mapping[str, _Range] = {
    "of": (str, None, None),
    "rate": _SHARE,
    "severity": ((int, float), 0.0, None),
    "quantile": ((int, float), 0.0, 1.0),
    "measure": (str, None, None),
    "at_most": ((int, float), None, None),
    "at_least": ((int, float), None, None),
    "cases": (int, 1, None),
    "sure": (str, None, None),
    "where": (dict, None, None),
}
_NO_WORSE: Mapping[str, _Range] = {"of": (str, None, None), "margin": _SHARE}
_WHERE: Mapping[str, _Range] = {
    "column": (str, None, None),
    "value": ((str, list), None, None),
    "at_least": ((int, float), None, None),
    "below": ((int, float), None, None),
}
_GRAPH: Mapping[str, _Range] = {
    "model": (str, None, None),
    "input": ((str, list), None, None),
    "dims": ((str, list), None, None),
    "defects": (int, 0, None),
    "unknown": (int, 0, None),
}
_KINDS = {str: "a text", int: "a whole number", (int, float): "a number", dict: "a table { … }", (str, list): "texts"}


def read_policy(path: Path) -> Policy:
    """The policy in a TOML file."""
    try:
        text = path.read_text("utf-8")
        content = tomllib.loads(text)
    except FileNotFoundError:
        raise PolicyError(
            f"there is no {path}; `instar gate RUN --init --policy {path}` writes one that the run holds"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PolicyError(f"{path}: {error}") from None
    reader = _Reader(path, _lines(text))
    top = {name: value for name, value in content.items() if name not in _TABLES}
    reader.check(top, _TOP, "", "the policy", also=[f"[[{name}]]" for name in _TABLES])
    failures = {name: top.pop(name) for name in FAILED_AS if name in top}
    unjudged = {name: top.pop(name) for name in UNJUDGED if name in top}
    if not content:
        raise PolicyError(f"{path} says nothing that a run must hold; `instar gate RUN --init` writes a policy to edit")
    limits = tuple(
        reader.limit(each, f"limit.{number}.") for number, each in enumerate(reader.tables(content, "limit"))
    )
    no_worse = tuple(
        reader.no_worse(each, f"no_worse.{number}.") for number, each in enumerate(reader.tables(content, "no_worse"))
    )
    graphs = tuple(
        reader.graph(each, f"numerics.{number}.") for number, each in enumerate(reader.tables(content, "numerics"))
    )
    return Policy(
        str(path),
        **top,
        failures=failures,
        unjudged=unjudged,
        limits=limits,
        no_worse=no_worse,
        graphs=graphs,
        lines=reader.lines,
    )


_TABLES = ("limit", "no_worse", "numerics")


def _lines(text: str) -> dict[str, int]:
    """In which line each table and each key stands: `limit.0.`, `limit.0.rate` and `limit.0.where.column`."""
    lines: dict[str, int] = {}
    counts: dict[str, int] = {}
    place = ""
    for number, line in enumerate(text.splitlines(), 1):
        if table := re.match(r"\s*\[\[?\s*([\w-]+)\s*((?:\.\s*[\w-]+\s*)*)\]\]?", line):
            name, below = table[1], re.findall(r"[\w-]+", table[2])
            if not below or name not in counts:
                counts[name] = counts.get(name, 0) + 1
            place = ".".join([name, str(counts[name] - 1), *below, ""])
            lines[place] = number
        elif key := re.match(r"\s*\"?([\w-]+)\"?((?:\s*\.\s*[\w-]+)*)\s*=", line):
            names = [key[1], *re.findall(r"[\w-]+", key[2])]
            for end in range(1, len(names) + 1):
                lines.setdefault(place + ".".join(names[:end]), number)
    return lines


@dataclass(frozen=True, slots=True)
class _Reader:
    path: Path
    lines: dict[str, int]

    def wrong(self, place: str, message: str) -> PolicyError:
        return PolicyError(f"{self.path}, line {self.line(place)}: {message}")

    def line(self, place: str) -> int:
        """Of a key, or else of what it stands in: tables may also stand in one line, as a list of them."""
        while place:
            if number := self.lines.get(place) or self.lines.get(f"{place}."):
                return number
            place = place.rpartition(".")[0]
        return 1

    def below(self, place: str) -> dict[str, int]:
        """The lines of what stands in a table."""
        return {name.removeprefix(place): line for name, line in self.lines.items() if name.startswith(place)}

    def tables(self, content: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
        tables = content.get(name, [])
        if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
            raise self.wrong(f"{name}.0.", f"{name} is a list of tables: write [[{name}]], with two brackets")
        return tables

    def check(
        self, table: Mapping[str, Any], allowed: Mapping[str, _Range], place: str, what: str, also: Sequence[str] = ()
    ) -> None:
        for name, value in table.items():
            if name not in allowed:
                hint = near_key(name, [*allowed, *(one.strip("[]") for one in also)])
                raise self.wrong(
                    place + name, f"{what} has no {name!r}; {hint}allowed are {', '.join([*allowed, *also])}"
                )
            kinds, low, high = allowed[name]
            if not isinstance(value, kinds) or isinstance(value, bool):
                raise self.wrong(place + name, f"{name} is {_KINDS[kinds]}, got {value!r}")
            number = value if isinstance(value, int | float) else 0.0
            # at a threshold of infinity only what is lost or invented is a violation
            infinite = name == "threshold" and number == math.inf
            if kinds == (int, float) and not abs(number) <= sys.float_info.max and not infinite:
                raise self.wrong(place + name, f"{name} is a finite number, got {value}")
            if (low is not None and number < low) or (high is not None and number > high):
                least = f"at least {low:g}" if high is None else f"between {low:g} and {high:g}"
                raise self.wrong(place + name, f"{name} is {least}, got {value}")

    def limit(self, table: dict[str, Any], place: str) -> Limit:
        self.check(table, _LIMIT, place, "a limit")
        if "of" not in table:
            raise self.wrong(place, f"a limit says what it is of: of = {ANY!r}, a rule, a family or a suite")
        if sum(name in table for name in _ALLOWED) != 1:
            raise self.wrong(place, f"a limit has one of {', '.join(_ALLOWED)}")
        if ("measure" in table) != bool({"at_most", "at_least"}.intersection(table)):
            present = next(name for name in ("measure", "at_most", "at_least") if name in table)
            raise self.wrong(
                place + present, "at_most and at_least are of a measure of a rule over many cases: give both"
            )
        if table.get("sure", "upper") not in SURE:
            raise self.wrong(place + "sure", f"sure is one of {', '.join(SURE)}, got {table['sure']!r}")
        where = self._where(table["where"], place + "where") if "where" in table else None
        sure = table.get("sure", "lower" if "at_least" in table else "upper")
        return Limit(**{**table, "where": where, "sure": sure, "line": self.line(place), "lines": self.below(place)})

    def _where(self, table: dict[str, Any], place: str) -> Where:
        self.check(table, _WHERE, f"{place}.", "where")
        if "column" not in table or len(table) < 2:
            raise self.wrong(place, "where says which cases: a column, and its value, or at_least and below")
        return Where(table["column"], _texts(table.get("value", ())), table.get("at_least"), table.get("below"))

    def no_worse(self, table: dict[str, Any], place: str) -> NoWorse:
        self.check(table, _NO_WORSE, place, "no_worse")
        for name in _NO_WORSE:
            if name not in table:
                raise self.wrong(place, f"no_worse has to say {name}")
        return NoWorse(table["of"], self.line(place), table["margin"], self.below(place))

    def graph(self, table: dict[str, Any], place: str) -> Graph:
        self.check(table, _GRAPH, place, "numerics")
        for name in ("model", "input"):
            if name not in table:
                raise self.wrong(place, f"numerics has to say {name}, e.g. {_EXAMPLES[name]}")
        ranges, dims = (_texts(table.get(name, ())) for name in ("input", "dims"))
        model = self.path.parent / table["model"]
        allowed = table.get("defects", 0), table.get("unknown")
        return Graph(model, self.line(place), ranges, dims, *allowed, self.below(place))


_ALLOWED = ("rate", "severity", "at_most", "at_least")
"""What a limit allows, one of these."""
_EXAMPLES = {"model": 'model = "model.onnx"', "input": 'input = "0..255"'}


def _texts(value: str | Sequence[object]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(map(str, value))
