"""What the analysis of a model says, and how it is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy.typing as npt

from instar.numerics.domain import Shape

Bounds = tuple[npt.ArrayLike, npt.ArrayLike]


@dataclass(frozen=True, slots=True)
class Range:
    """What a tensor can hold. Sizes that are not known are None."""

    name: str
    type: str
    shape: Shape | None
    low: float
    high: float
    nan: bool = False


@dataclass(frozen=True, slots=True)
class Defect:
    """An operation that can turn finite numbers into NaN or ±∞.

    `low` to `high` is what the blamed `operand` can hold. `reaches` names the outputs that can be NaN or ±∞ because of
    it, or are whole numbers that depend on one; empty, if what happens is made good on the way. `loose` says that
    nothing but sums and products grows too large here, after several weighted sums: bounds grow with every layer, far
    beyond what networks do, so this is often a false alarm.
    """

    node: str
    operator: str
    why: str
    outcomes: tuple[str, ...]
    operand: str
    low: float
    high: float
    reaches: tuple[str, ...]
    loose: bool


@dataclass(frozen=True, slots=True)
class Unknown:
    """An operator that is not analysed: its results are taken as anything, NaN and ±∞ included."""

    operator: str
    why: str
    nodes: tuple[str, ...]
    reaches: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Numerics:
    """What the analysis of a model found."""

    model: str
    inputs: tuple[Range, ...]
    outputs: tuple[Range, ...]
    defects: tuple[Defect, ...]
    unknown: tuple[Unknown, ...]
    nodes: int
    seconds: float

    @property
    def serious(self) -> tuple[Defect, ...]:
        """The defects that reach an output and are not just loose bounds: what a gate fails on."""
        return tuple(one for one in self.defects if one.reaches and not one.loose)


# --- in words --------------------------------------------------------------------------------------


def rows(numerics: Numerics) -> list[tuple[str, str, str, str, str]]:
    """The defects, those that are just loose bounds last: operator, node, what can happen, why, what it reaches."""
    return [
        (one.operator, one.node, ", ".join(one.outcomes), _why(one), _reached(one))
        for one in sorted(numerics.defects, key=lambda one: one.loose)
    ]


def _why(one: Defect) -> str:
    return f"{one.why}: {one.operand} from {_number(one.low)} to {_number(one.high)}" if one.operand else one.why


def _reached(one: Defect) -> str:
    if not one.reaches:
        return "no output: made good on the way"
    return ", ".join(one.reaches) + (" (loose bounds)" if one.loose else "")


def lines(numerics: Numerics) -> list[str]:
    """All but the defects themselves: what is not analysed, what goes in and comes out, and the sum of it."""
    sentences = []
    for unknown in numerics.unknown:
        some = ", ".join(unknown.nodes[:3]) + (" …" if len(unknown.nodes) > 3 else "")
        sentences.append(f"not analysed: {unknown.operator} ({some}): {unknown.why}; taken as anything")
    sentences += [
        f"{way} {_range(one)}" for way, some in (("in: ", numerics.inputs), ("out:", numerics.outputs)) for one in some
    ]
    loose = sum(one.loose for one in numerics.defects)
    if loose:
        sentences.append(
            "loose bounds: only sums and products of many layers grow too large, which tells little. "
            "NAME=LOW..HIGH declares the range of a tensor inside"
        )
    sure = len(numerics.defects) - loose
    sentences.append(
        f"{numerics.nodes} node{'s' * (numerics.nodes != 1)}, {numerics.seconds:.1f} s: "
        f"{sure or 'no'} defect{'s' * (sure != 1)}"
        + (f", {len(numerics.serious)} of which can be seen in an output" if sure else "")
        + (f"; bounds are too loose to tell at {loose} node{'s' * (loose > 1)}" if loose else "")
    )
    return sentences


def _range(one: Range) -> str:
    size = "of unknown shape" if one.shape is None else " × ".join("?" if n is None else str(n) for n in one.shape)
    return f"{one.name}: {one.type} {size or 'number'}, {_number(one.low)} to {_number(one.high)}" + (
        " or NaN" if one.nan else ""
    )


def _number(value: float) -> str:
    return f"{value:.4g}".replace("inf", "∞").replace("-", "−")


# --- as it is typed --------------------------------------------------------------------------------


def parse_ranges(texts: Sequence[str]) -> Bounds | dict[str, Bounds]:
    """Ranges as they are written on the command line: `0..255` for every input, or `images=0..255` for each.

    >>> parse_ranges(["0..255"])
    (0.0, 255.0)
    >>> parse_ranges(["images=-1..1", "past=0..100"])
    {'images': (-1.0, 1.0), 'past': (0.0, 100.0)}
    """
    named: dict[str, Bounds] = {}
    for text in texts:
        name, _, bounds = text.rpartition("=")
        low, _, high = bounds.partition("..")
        try:
            limits = float(low), float(high)
        except ValueError:
            raise ValueError(f"range {text!r}: it is written LOW..HIGH or NAME=LOW..HIGH, e.g. images=0..255") from None
        if not name and len(texts) > 1:
            raise ValueError(f"range {text!r}: of several ranges each names its input, e.g. images={bounds}")
        if not name:
            return limits
        named[name] = limits
    return named


def parse_dims(texts: Sequence[str]) -> dict[str, int]:
    """Sizes of open axes as they are written on the command line.

    >>> parse_dims(["batch=1", "height=640"])
    {'batch': 1, 'height': 640}
    """
    sizes = {}
    for text in texts:
        name, _, size = text.rpartition("=")
        if not name or not size.isdecimal():
            raise ValueError(f"size {text!r}: it is written NAME=SIZE, e.g. batch=1")
        sizes[name] = int(size)
    return sizes
