"""How rules, systems and datasets are written: `gamma(0.5) | rotation(5, centre=swapped)`.

A spelling is parsed into a `Call` (a name with arguments), bound to declared `Parameter`s, and written
back in one canonical way: parameters without a default by position, others by name and only where they
differ from their default. The canonical spelling is the id of what it names.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, Union


@dataclass(frozen=True, slots=True)
class Call:
    """A name with arguments: `rotation(5, centre=swapped)`."""

    name: str
    args: tuple[Value, ...] = ()
    kwargs: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """A range of whole numbers, both ends included: `1..21`."""

    first: int
    last: int


Value: TypeAlias = Union[int, float, str, bool, "tuple[Value, ...]", "Span", "Call", "tuple[Call, ...]", None]


MOST_LETTERS, MOST_DIGITS, DEEPEST, MOST_LEVELS = 10_000, 40, 32, 1_000
"""How long a spelling may be, how long a number in it, how many brackets lie in one another, and how many levels a
range has. Suites and tables come from anywhere; whoever meant more wrote something else."""


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()

Kind = Literal["int", "float", "choice", "text", "bool", "colour", "floats", "transformation"]


@dataclass(frozen=True, slots=True)
class Scale:
    """How far an ordered parameter may be turned, for whoever searches along it: from `neutral`, where nothing changes,
    to the far end `below` it, `above` it, or both.

    Equal steps are equal differences (`linear`), equal factors (`log`), or differences that grow with the distance
    (`square`). `beside` is the value it has while another parameter of its family is searched: `neutral` by default.

    >>> Scale(1, 0.1, 10, "log").at(10, 0.5), Scale(0, above=32, steps="square").at(32, 0.5)
    (3.1622776601683795, 8.0)
    """

    neutral: float
    below: float | None = None
    above: float | None = None
    steps: Literal["linear", "log", "square"] = "linear"
    beside: float | None = None

    def __post_init__(self) -> None:
        ends = [end for end in (self.below, self.above) if end is not None]
        if not ends or any(end == self.neutral for end in ends):
            raise ValueError(f"a scale has a far end below or above its neutral value {self.neutral:g}, or both")
        if self.steps == "log" and min(self.neutral, *ends) <= 0:
            raise ValueError(f"steps of equal factors need values above 0, got {self.neutral:g} and {ends}")

    def at(self, end: float, share: float) -> float:
        """The value at a share of the way from the neutral one to a far end."""
        if self.steps == "log":
            return float(self.neutral * (end / self.neutral) ** share)
        return self.neutral + (end - self.neutral) * (share**2 if self.steps == "square" else share)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One declared parameter: its kind, what is allowed, and what it is when nobody says.

    `ordered` parameters have a weak and a strong end, and a search can bisect those whose `scale` says which;
    `shared` ones do not enter the seed, so that levels of one family use the same random numbers.
    """

    name: str
    kind: Kind
    default: object = REQUIRED
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False
    choices: tuple[str, ...] = ()
    length: int = 0
    ordered: bool = False
    shared: bool = False
    help: str = ""
    scale: Scale | None = None

    @property
    def allowed(self) -> str:
        """What values are allowed, in words."""
        if self.kind == "choice":
            return "one of " + ", ".join(self.choices)
        if self.kind == "bool":
            return "true or false"
        if self.kind == "colour":
            return "(red, green, blue), each 0 to 255"
        if self.kind == "transformation":
            return "a transformation, e.g. gamma(0.5)"
        if self.kind == "text":
            return "text"
        what = {"int": "a whole number", "float": "a number", "floats": f"{self.length} numbers"}[self.kind]
        if math.isfinite(self.low) and math.isfinite(self.high):
            low = "above " if self.open_low else ""
            high = "below " if self.open_high else ""
            return f"{what} from {low}{self.low:g} to {high}{self.high:g}"
        if math.isfinite(self.low):
            return f"{what} {'above' if self.open_low else 'from'} {self.low:g}"
        if math.isfinite(self.high):
            return f"{what} {'below' if self.open_high else 'up to'} {self.high:g}"
        return what

    def check(self, value: object, owner: str) -> Value:
        """The value in its canonical type, or a ValueError that says what is allowed."""
        converted = self._converted(value)
        if converted is None:
            hint = nearest(str(value), self.choices) if self.choices and isinstance(value, str) else ""
            written = _shortened(spell_value(value))
            raise ValueError(f"{owner}: {self.name}={written} is not allowed; it takes {self.allowed}{hint}")
        return converted

    def _converted(self, value: object) -> Value | None:
        if self.kind == "choice":
            text = spell_value(value) if isinstance(value, int | float) else value
            return text if isinstance(text, str) and text in self.choices else None
        if self.kind == "bool":
            return value if isinstance(value, bool) else {"true": True, "false": False}.get(str(value))
        if self.kind == "text":
            return value if isinstance(value, str) else None
        if self.kind == "transformation":
            if isinstance(value, str):
                return (Call(value),)
            if isinstance(value, Call):
                return (value,)
            ok = isinstance(value, tuple) and value and all(isinstance(v, Call) for v in value)
            return value if ok else None  # type: ignore[return-value]
        if self.kind in ("colour", "floats"):
            length = 3 if self.kind == "colour" else self.length
            if not isinstance(value, tuple | list) or len(value) != length:
                return None
            items = [_number(v) for v in value]
            if any(v is None for v in items):
                return None
            if self.kind == "colour":
                return (
                    tuple(int(v) for v in items)  # type: ignore[arg-type]
                    if all(isinstance(v, int) and 0 <= v <= 255 for v in items)
                    else None
                )
            return tuple(items) if all(self._inside(v) for v in items) else None
        number = _number(value)
        if number is None or not self._inside(number):
            return None
        return number if self.kind == "float" or isinstance(number, int) else None

    def _inside(self, v: float | None) -> bool:
        if v is None or not math.isfinite(v):
            return False
        above = v > self.low if self.open_low else v >= self.low
        below = v < self.high if self.open_high else v <= self.high
        return above and below


def _number(value: object) -> int | float | None:
    """Whole floats become ints, so that 5 and 5.0 are one spelling and one id."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int) and abs(value) >= 10**MOST_DIGITS:
        return None  # no float could hold one of 400 digits
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def nearest(name: str, known: Iterable[str], spelled: Callable[[str], str] = str) -> str:
    """`; did you mean …?`, or nothing when nothing is near; `spelled` is how the near one has to be typed.

    >>> nearest("fotos", ["photos", "videos"], lambda name: f"../{name}")
    "; did you mean '../photos'?"
    """
    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {spelled(matches[0])!r}?" if matches else ""


def unknown(what: str, name: str, known: Iterable[str], *, see: str = "") -> KeyError:
    """The error for a name that does not exist: what was given, what is near, what there is."""
    names = sorted(set(known))
    hint = nearest(name, names)
    there = f" There are: {', '.join(names)}." if len(names) <= 25 else ""
    see = f" {see}" if see else ""
    return UnknownName(f"unknown {what} {name!r}{hint or '.'}{there}{see}")


class UnknownName(KeyError):
    """A name nobody registered. Prints as its message, not as a quoted key."""

    def __str__(self) -> str:
        return str(self.args[0])


# --- parsing ---------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<span>[-+]?\d+\.\.[-+]?\d+)
  | (?P<number>[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?(?![\w.]))
  | (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<name>[^\W\d][\w.\-/@:]*)
  | (?P<sign>=>|[()\[\],|=])
)""",
    re.VERBOSE,
)


_DIGIT_FIRST = re.compile(r"\d[^,()=|\"]{0,60}")
"""A name that would be one but for its first letter."""


def _shortened(text: str, most: int = 200) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


@dataclass
class _Reader:
    text: str
    what: str
    tokens: list[tuple[str, str]] = field(default_factory=list)
    at: int = 0
    depth: int = 0

    def __post_init__(self) -> None:
        if len(self.text) > MOST_LETTERS:
            raise self.error(f"it has {len(self.text):,} letters, at most {MOST_LETTERS:,} are read")
        place, end = 0, len(self.text.rstrip())
        while place < end:
            match = _TOKEN.match(self.text, place)
            if not match or match.lastgroup is None:
                rest = self.text[place:].strip()
                quoted = _DIGIT_FIRST.match(rest)
                how = (
                    f'; what begins with a digit and is no number stands in quotes: "{quoted[0].rstrip()}"'
                    if quoted
                    else ""
                )
                raise self.error(f"cannot read {rest[:20]!r}{how}")
            if match.lastgroup in ("number", "span") and len(match.group(match.lastgroup)) > MOST_DIGITS:
                raise self.error(f"a number has at most {MOST_DIGITS} digits")
            self.tokens.append((match.lastgroup, match.group(match.lastgroup)))
            place = match.end()

    def error(self, why: str) -> ValueError:
        unquoted = '"' not in self.text and not {"/", "\\", "'"}.isdisjoint(self.text)
        path = '; a path stands in double quotes: name("folder/file")' if unquoted else ""
        return ValueError(f"{self.what} {_shortened(self.text)!r}: {why}; written like name(value, key=value){path}")

    def peek(self, sign: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at] == ("sign", sign)

    def take(self, sign: str) -> bool:
        if self.peek(sign):
            self.at += 1
            return True
        return False

    def expect(self, sign: str) -> None:
        if not self.take(sign):
            got = self.tokens[self.at][1] if self.at < len(self.tokens) else "the end"
            raise self.error(f"expected {sign!r}, found {got!r}")

    def call(self) -> Call:
        if self.at >= len(self.tokens) or self.tokens[self.at][0] != "name":
            got = self.tokens[self.at][1] if self.at < len(self.tokens) else "the end"
            raise self.error(f"expected a name, found {got!r}")
        name = self.tokens[self.at][1]
        self.at += 1
        args: list[Value] = []
        kwargs: list[tuple[str, Value]] = []
        if self.take("("):
            while not self.take(")"):
                key = self.tokens[self.at] if self.at < len(self.tokens) else ("", "")
                if key[0] == "name" and self.tokens[self.at + 1 : self.at + 2] == [("sign", "=")]:
                    self.at += 2
                    if key[1] in dict(kwargs):
                        raise self.error(f"{key[1]} is given twice")
                    kwargs.append((key[1], self.value()))
                elif kwargs:
                    raise self.error("a value without a name follows one with a name")
                else:
                    args.append(self.value())
                if not self.peek(")"):
                    self.expect(",")
        return Call(name, tuple(args), tuple(kwargs))

    def value(self) -> Value:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error(f"more than {DEEPEST} brackets lie in one another")
        value = self._value()
        self.depth -= 1
        return value

    def _value(self) -> Value:
        if self.at >= len(self.tokens):
            raise self.error("it ends where a value should be")
        kind, text = self.tokens[self.at]
        if kind == "number":
            self.at += 1
            number = _number(int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text))
            assert number is not None
            return number
        if kind == "span":
            self.at += 1
            first, last = (int(end) for end in text.split(".."))
            if last < first:
                raise self.error(f"the range {text} runs backwards")
            if last - first >= MOST_LEVELS:
                raise self.error(f"the range {text} has more than {MOST_LEVELS:,} levels")
            return Span(first, last)
        if kind == "string":
            self.at += 1
            return str(json.loads(text))
        if self.take("("):
            items: list[Value] = []
            while not self.take(")"):
                items.append(self.value())
                if not self.peek(")"):
                    self.expect(",")
            return tuple(items)
        chain = self.chain()
        if len(chain) == 1 and not chain[0].args and not chain[0].kwargs:
            return chain[0].name
        return chain[0] if len(chain) == 1 else chain

    def chain(self) -> tuple[Call, ...]:
        calls = [self.call()]
        while self.take("|"):
            calls.append(self.call())
        return tuple(calls)

    def end(self) -> None:
        if self.at < len(self.tokens):
            raise self.error(f"unexpected {self.tokens[self.at][1]!r}")


def parse_call(text: str, *, what: str = "spelling") -> Call:
    """`name(1, key=value)` as a Call.

    >>> parse_call("rotation(5, centre=swapped)")
    Call(name='rotation', args=(5,), kwargs=(('centre', 'swapped'),))
    """
    reader = _Reader(text, what)
    call = reader.call()
    reader.end()
    return call


def parse_chain(text: str, *, what: str = "rule") -> tuple[tuple[tuple[Call, ...], ...], Call | None]:
    """A rule's text: one chain of calls (or a bracketed list of chains) and the call after `=>`."""
    reader = _Reader(text, what)
    chains: list[tuple[Call, ...]] = []
    if reader.take("["):
        while not reader.take("]"):
            chains.append(reader.chain())
            if not reader.peek("]"):
                reader.expect(",")
        if not chains:
            raise reader.error("the list is empty")
    else:
        chains.append(reader.chain())
    after = reader.call() if reader.take("=>") else None
    reader.end()
    return tuple(chains), after


# --- binding and spelling --------------------------------------------------------------------------


def bind(call: Call, parameters: tuple[Parameter, ...], *, what: str) -> dict[str, Value]:
    """The call's arguments as a full, checked mapping of parameter values."""
    names = [p.name for p in parameters]
    owner = f"{what} {call.name}"
    if len(call.args) > len(names):
        raise ValueError(f"{owner} takes {_count(names)}, {len(call.args)} were given")
    arguments: dict[str, object] = dict(zip(names, call.args, strict=False))
    for key, argument in call.kwargs:
        if key not in names:
            raise ValueError(f"{owner} has no parameter {key!r}{nearest(key, names)}; it takes {_count(names)}")
        if key in arguments:
            raise ValueError(f"{owner}: {key} is given twice")
        arguments[key] = argument
    bound: dict[str, Value] = {}
    for parameter in parameters:
        value: object = arguments.get(parameter.name, parameter.default)
        if value is REQUIRED:
            raise ValueError(f"{owner} needs {parameter.name}: {parameter.allowed}")
        if parameter.name not in arguments and value is None:
            bound[parameter.name] = None
        else:
            bound[parameter.name] = parameter.check(value, owner)
    return bound


def _count(names: list[str]) -> str:
    return "no parameters" if not names else f"{len(names)} parameter{'s' * (len(names) > 1)} ({', '.join(names)})"


def spell(name: str, values: Mapping[str, Value], parameters: tuple[Parameter, ...]) -> str:
    """The canonical spelling of a name with bound values."""
    parts = []
    for parameter in parameters:
        value = values[parameter.name]
        if parameter.default is REQUIRED:
            parts.append(spell_value(value))
        elif value != parameter.default:
            parts.append(f"{parameter.name}={spell_value(value)}")
    return f"{name}({', '.join(parts)})" if parts else name


def spell_value(value: object) -> str:
    """One value as it is written in a spelling."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Span):
        return f"{value.first}..{value.last}"
    if isinstance(value, Call):
        parts = [spell_value(v) for v in value.args] + [f"{k}={spell_value(v)}" for k, v in value.kwargs]
        return f"{value.name}({', '.join(parts)})" if parts else value.name
    if isinstance(value, tuple | list):
        if value and all(isinstance(v, Call) for v in value):
            return " | ".join(spell_value(v) for v in value)
        inner = ", ".join(spell_value(v) for v in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    text = str(value)
    return text if re.fullmatch(r"[^\W\d][\w.\-/@:]*", text) else json.dumps(text, ensure_ascii=False)
