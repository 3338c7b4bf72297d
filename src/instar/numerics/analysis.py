"""The walk through a graph: what each tensor can hold, and where it can stop being finite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import xxhash

from instar.numerics.constraints import chosen, refined
from instar.numerics.creation import MAKING
from instar.numerics.domain import (
    BOOL,
    KINDS,
    OTHER,
    Array,
    Call,
    Kind,
    NotKnown,
    Shape,
    Span,
    Value,
    broadcast,
    capped,
    divided,
    exactly,
    finite,
    fit,
    hull,
    inferred,
    joined,
    optional,
    sized,
    unbounded,
)
from instar.numerics.elementwise import ELEMENTWISE, result_kind
from instar.numerics.hazards import danger, outcomes
from instar.numerics.linear import WEIGHTED
from instar.numerics.reading import GRAPHS, Model, Proto, call_of, stored_tensor
from instar.numerics.rearrange import MOVES, moving, sections
from instar.numerics.reductions import REDUCTIONS
from instar.numerics.trace import Record, evaluated

_WHOLE = {**REDUCTIONS, **WEIGHTED, **MAKING}
_MIXES = {
    *WEIGHTED,
    *(name for name in REDUCTIONS if name.startswith("Reduce") and name[6:] not in ("Max", "Min")),
    "CumSum",
    "AveragePool",
    "GlobalAveragePool",
}
"""Each sum over elements that depend on each other makes bounds looser."""
_FORGETS = {"Shape", "Size", "ConstantOfShape", "EyeLike"}
"""Results that do not depend on the operand's elements."""
_SAME = {"Identity", "Dropout"}


@dataclass(slots=True, eq=False)
class Origin:
    """What may have made tensors NaN or ±∞: an operation, or one that is not known here (without `outcomes`)."""

    operator: str
    why: str
    nodes: list[str] = field(default_factory=list)
    operand: str = ""
    low: float = -np.inf
    high: float = np.inf
    outcomes: tuple[str, ...] = ()
    loose: bool = False


class Analysis:
    """The records of all tensors, and what was found."""

    def __init__(self, model: Model, ranges: Mapping[str, Span]) -> None:
        self.model, self.ranges = model, ranges
        self.records: list[Record] = []
        self.origins: list[Origin] = []
        self.nodes = 0
        self._numbers: dict[object, list[int]] = {}
        self._unknown: dict[str, int] = {}

    # --- tensors

    def fresh(
        self,
        kind: Kind,
        shape: Shape | None,
        span: Span,
        call: Call | None = None,
        operands: tuple[int, ...] = (),
        taint: frozenset[int] = frozenset(),
        layers: int = 0,
        usual: Span | None = None,
    ) -> Value:
        """A tensor like no other."""
        fitting = sized(span, shape)
        value = Value(kind, shape, fitting if layers < 0 else capped(fitting), taint, len(self.records), layers, usual)
        self.records.append(Record(call or Call(""), operands, value))
        return value

    def constant(self, kind: Kind, numbers: Array, name: str) -> Value:
        key = "constant", kind, numbers.shape, xxhash.xxh3_128_digest(numbers.tobytes())
        if key not in self._numbers:
            self._numbers[key] = [self._written(kind, numbers, name).number]
        return self.records[self._numbers[key][0]].value

    def _written(self, kind: Kind, numbers: Array, name: str) -> Value:
        """A constant. One that is not finite is where the trouble begins."""
        wrong = ~np.isfinite(numbers)
        if not wrong.any() or not kind.real:
            return self.fresh(kind, numbers.shape, Span(numbers, numbers), layers=-1)
        clean = np.where(np.isnan(numbers), 0.0, numbers)
        span = Span(clean, clean, bool(np.isnan(numbers).any()))
        why = f"{wrong.sum():,} of its {numbers.size:,} numbers are not finite"
        self.origins.append(Origin("Constant", why, [name], outcomes=outcomes(span, kind)))
        return self.fresh(kind, numbers.shape, span, taint=frozenset({len(self.origins) - 1}), layers=-1)

    def stored(self, tensor: Proto, name: str) -> Value:
        try:
            return self.constant(*stored_tensor(tensor, self.model.folder), name)
        except NotKnown as reason:
            return self.not_known("constants", str(reason), name)

    def not_known(
        self,
        operator: str,
        why: str,
        node: str,
        kind: Kind = OTHER,
        shape: Shape | None = None,
        taint: frozenset[int] = frozenset(),
    ) -> Value:
        """Anything at all."""
        if operator not in self._unknown:
            self._unknown[operator] = len(self.origins)
            self.origins.append(Origin(operator, why))
        number = self._unknown[operator]
        if node not in self.origins[number].nodes:
            self.origins[number].nodes.append(node)
        return self.fresh(kind, shape, unbounded(kind), taint=taint | {number} if kind.real else frozenset())

    # --- nodes

    def compute(
        self, call: Call, operands: Sequence[Value | None], node: str = "", names: Sequence[str] = ()
    ) -> list[Value]:
        """The results of a node; those of the same operator with the same operands are the same."""
        if call.operator in _SAME and not _trains(operands):
            mask = self.fresh(BOOL, None, unbounded(BOOL)) if call.results > 1 else None
            return [value for value in (operands[0], mask) if value is not None]
        if call.operator == "CastLike" and operands[1] is not None:
            like = next((number for number, kind in KINDS.items() if kind is operands[1].kind), 0)
            return self.compute(replace(call, operator="Cast", attributes={"to": like}), operands[:1], node, names)
        parts = self._parts(call, operands)
        if parts is not None:
            return parts
        numbers = tuple(-1 if value is None else value.number for value in operands)
        key = call.operator, call.results, repr(sorted(call.attributes.items())), numbers
        if key not in self._numbers:
            values = self._computed(call, operands, numbers, node, names)
            self._numbers[key] = [value.number for value in values]
        return [self.records[number].value for number in self._numbers[key]]

    def _parts(self, call: Call, operands: Sequence[Value | None]) -> list[Value] | None:
        """Splits and plain slices, each taken from the tensor that was put there by a Concat, if it was."""
        x = operands[0] if operands else None
        if call.operator not in ("Split", "Slice") or x is None or x.shape is None:
            return None
        cut = sections(call, x.shape, operands)
        if cut is None:
            return None
        return [self._taken(x, cut[0], start, end) for start, end in cut[1]]

    def _taken(self, x: Value, axis: int, start: int, end: int) -> Value:
        assert x.shape is not None
        if (start, end) == (0, x.shape[axis]):
            return x
        record = self.records[x.number]
        if record.call.operator == "Concat" and record.call.attributes["axis"] % len(x.shape) == axis:
            at = 0
            for number in record.operands:
                piece = self.records[number].value
                size = piece.shape[axis] if piece.shape is not None else None
                if size is None:
                    break
                if at <= start and end <= at + size:
                    return self._taken(piece, axis, start - at, end - at)
                at += size
        return self.compute(Call("Take", {"axis": axis, "start": start, "end": end}), [x])[0]

    def _computed(
        self, call: Call, operands: Sequence[Value | None], numbers: tuple[int, ...], node: str, names: Sequence[str]
    ) -> list[Value]:
        present = [value for value in operands if value is not None]
        tainted = frozenset[int]().union(*(value.taint for value in present))
        layers = max((value.layers for value in present), default=-1)
        layers += layers >= 0 and call.operator in _MIXES
        results = self._transferred(call, operands)
        usual: list[Span] = []
        if tainted:
            usual_operands = [value and replace(value, span=value.finite()) for value in operands]
            usual = [span for _, _, span in self._transferred(call, usual_operands)]
        values: list[Value] = []
        for index, (kind, shape, span) in enumerate(results[: max(call.results, 1)]):
            shape = _filled_in(shape, inferred(call, index))
            span = sized(span, shape)
            if call.operator not in MOVES:
                span = refined(self, call, operands, span, kind)
            taint, left = frozenset[int](), None
            if span.nan or (kind.real and span.infinite):
                alone = sized(usual[index], shape) if tainted else span
                taint = tainted | self._blame(call, operands, alone, kind, node, names, layers)
                left = sized(finite(_one_sided(call, operands, alone), kind), shape)
            elif call.operator not in _FORGETS and not kind.real and any(value.span.nan for value in present):
                taint = tainted  # decided by what may be NaN
            values.append(self.fresh(kind, shape, span, call, numbers, taint, layers, left))
        return values

    def _transferred(self, call: Call, operands: Sequence[Value | None]) -> list[tuple[Kind, Shape | None, Span]]:
        """Types, shapes and spans of the results."""
        x = operands[0] if operands else None
        if call.operator in MOVES and x is not None:
            move = None if x.shape is None else moving(call, x.shape, operands)
            if move is None:
                return [(x.kind, inferred(call), hull(x.span, None))]
            span = sized(x.span, x.shape)
            return [(x.kind, move[0], Span(move[1](span.low, np.min), move[1](span.high, np.max), span.nan))]
        if call.operator == "Split" and x is not None:  # into parts of sizes that are not known
            axis = call.attributes.get("axis", 0)
            span = hull(x.span, None) if x.shape is None else hull(sized(x.span, x.shape), [axis % len(x.shape)])
            return [(x.kind, inferred(call, index), span) for index in range(call.results)]
        if call.operator in ELEMENTWISE:
            kind = result_kind(call, [value.kind if value is not None else None for value in operands])
            if kind is None:
                raise NotKnown(f"{call.operator} to a type that is not analysed")
            shape = broadcast([value.shape for value in operands if value is not None])
            spans = (
                chosen(self, operands)
                if call.operator == "Where"
                else [value.span if value is not None else None for value in operands]
            )
            return [(kind, shape, evaluated(call, kind, spans))]
        if call.operator in _WHOLE:
            return [
                (kind, shape, fit(span, kind) if call.operator not in MAKING else span)
                for kind, shape, span in _WHOLE[call.operator](call, operands)
            ]
        raise NotKnown("not analysed")

    def _blame(
        self,
        call: Call,
        operands: Sequence[Value | None],
        span: Span,
        kind: Kind,
        node: str,
        names: Sequence[str],
        layers: int,
    ) -> frozenset[int]:
        """The defect of this very node, if it can turn finite operands into something else."""
        if call.operator in MOVES or call.operator == "Where" or not (span.nan or span.infinite):
            return frozenset()
        spans = [None if value is None else value.finite() for value in operands]
        hazard = danger(call, spans, kind)
        if hazard.plain and any(value is not None and value.taint for value in operands):
            return frozenset()  # the operand is as large as numbers get already
        name = names[hazard.operand] if hazard.operand < len(names) else ""
        loose, ends = hazard.plain and layers > 1, outcomes(span, kind)
        self.origins.append(Origin(call.operator, hazard.why, [node], name, hazard.low, hazard.high, ends, loose))
        return frozenset({len(self.origins) - 1})

    # --- graphs

    def walk(self, graph: Proto, outer: Mapping[str, Value]) -> dict[str, Value]:
        """All tensors of a graph by name."""
        env = dict(outer)
        for tensor in graph.initializer:
            if graph is not self.model.graph or tensor.name not in env:  # an input may have a default
                env[tensor.name] = self.stored(tensor, tensor.name)
        for tensor in graph.sparse_initializer:
            env[tensor.values.name] = self.not_known("constants", "sparse", tensor.values.name)
        for node in graph.node:
            self.nodes += 1
            operands = [self._operand(env, name, node) for name in node.input]
            values = self._node(node, operands, env)
            for index, name in enumerate(node.output):
                if name and index < len(values):
                    env[name] = self._declared(name, values[index])
                elif name:
                    env[name] = self.not_known(node.op_type, "not all of its results are analysed", name)
        return env

    def _operand(self, env: Mapping[str, Value], name: str, node: Proto) -> Value | None:
        if not name:
            return None
        if name not in env:
            raise ValueError(f"node {node.name or node.op_type!r} takes {name!r}, which nothing before it makes")
        return env[name]

    def _declared(self, name: str, value: Value) -> Value:
        """A tensor inside the graph whose range the user declared: believed."""
        if name not in self.ranges:
            return value
        believed = sized(self.ranges[name], value.shape)
        low, high = (np.clip(side, believed.low, believed.high) for side in (value.span.low, value.span.high))
        return self.fresh(value.kind, value.shape, Span(low, high))

    def _node(self, node: Proto, operands: Sequence[Value | None], env: Mapping[str, Value]) -> list[Value]:
        title = node.name or next((name for name in node.output if name), node.op_type)
        call = call_of(node, self.model)
        if call.operator == "If":
            return self._branches(node, operands[0], env)
        if call.operator == "Constant":
            return [self._stated(node, call)]
        try:
            if any(one.type in GRAPHS for one in node.attribute):
                raise NotKnown("the graph inside it is not looked at")
            return self.compute(call, operands, title, list(node.input))
        except NotKnown as reason:
            why = str(reason)
        except Exception as error:  # one node that makes no sense, or is too large, is one that is not known
            why = f"it does not fit its operands, or this machine: {error}"
        taint = frozenset[int]().union(*(value.taint for value in operands if value is not None))
        return [
            self.not_known(call.operator, why, title, kind, shape, taint)
            for kind, shape in zip(call.kinds, call.shapes, strict=True)
        ]

    def _stated(self, node: Proto, call: Call) -> Value:
        for name, numbers in call.attributes.items():
            if name == "value":
                return self.stored(numbers, node.output[0])
            if name in ("value_float", "value_floats"):
                return self.constant(KINDS[1], np.asarray(numbers, np.float64), node.output[0])
            if name in ("value_int", "value_ints"):
                return self.constant(KINDS[7], np.asarray(numbers, np.float64), node.output[0])
        return self.not_known("constants", "not of a type that is analysed", node.output[0])

    def _branches(self, node: Proto, condition: Value | None, env: Mapping[str, Value]) -> list[Value]:
        """Both branches of an If, or the one that is taken for sure."""
        known = condition.constant() if condition is not None else None
        bodies = {one.name: one.g for one in node.attribute}
        taken = (
            ["then_branch", "else_branch"]
            if known is None or known.size != 1
            else ["then_branch" if known.item() else "else_branch"]
        )
        ends = []
        for name in taken:
            inside = self.walk(bodies[name], env)
            ends.append([inside[one.name] for one in bodies[name].output])
        if len(ends) == 1:
            return ends[0]
        return [self._either(a, b) for a, b in zip(*ends, strict=True)]

    def _either(self, a: Value, b: Value) -> Value:
        if a.number == b.number:
            return a
        shape = None
        if a.shape is not None and b.shape is not None and len(a.shape) == len(b.shape):
            shape = tuple(m if m == n else None for m, n in zip(a.shape, b.shape, strict=True))
        span, layers = joined([hull(a.span, None), hull(b.span, None)]), max(a.layers, b.layers)
        return self.fresh(a.kind, shape, span, taint=a.taint | b.taint, layers=layers)


def _trains(operands: Sequence[Value | None]) -> bool:
    """Whether a Dropout may really drop something."""
    mode = optional(operands, 2)
    return mode is not None and mode.whole() != [0]


def _one_sided(call: Call, operands: Sequence[Value | None], span: Span) -> Span:
    """A result, less what division by a zero of the other sign adds."""
    spans = [value.finite() for value in operands if value is not None]
    if call.operator not in ("Div", "Reciprocal"):
        return span
    return divided(spans[0] if call.operator == "Div" else exactly(1), spans[-1], signed=False)


def _filled_in(shape: Shape | None, guess: Shape | None) -> Shape | None:
    """A shape, with what ONNX's own inference knows besides."""
    if shape is None or guess is None or len(shape) != len(guess):
        return guess if shape is None else shape
    return tuple(b if a is None else a for a, b in zip(shape, guess, strict=True))
