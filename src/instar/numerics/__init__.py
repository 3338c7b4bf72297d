"""Numerical defects: which operations of a model graph can yield NaN or ±∞ for inputs in a declared range.

A static analysis of an ONNX file: intervals over parts of tensors, and what is known of one tensor because of another.
The model is never run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from instar.numerics.analysis import Analysis
from instar.numerics.domain import OTHER, Kind, Span, Value, fit, unbounded
from instar.numerics.reading import Model, read_model, typed
from instar.numerics.report import Bounds, Defect, Numerics, Range, Unknown, lines, parse_dims, parse_ranges, rows
from instar.spelling import nearest

__all__ = ["Defect", "Numerics", "Range", "Unknown", "lines", "numerics", "parse_dims", "parse_ranges", "rows"]


def numerics(
    model: str | Path, ranges: Bounds | Mapping[str, Bounds], *, dims: Mapping[str, int] | None = None
) -> Numerics:
    """Analyse an ONNX file.

    Args:
        model: the file. It is read, never run.
        ranges: (lowest, highest) of every input, or of each by name: numbers, or arrays that broadcast to it. Whole
            numbers and booleans need none. A tensor inside the graph may be named too; its range is believed.
        dims: sizes of axes that the file names and leaves open, e.g. {"batch": 1}.
    """
    started = time.perf_counter()
    read = read_model(Path(model), dims or {})
    with np.errstate(all="ignore"):
        analysis, inputs, env = _analysed(read, ranges)
    outputs = {one.name: env[one.name] for one in read.graph.output if one.name in env}
    defects, unknown = [], []
    for number, one in enumerate(analysis.origins):
        reaches = tuple(name for name, value in outputs.items() if number in value.taint)
        if one.outcomes:
            blamed = one.operand, one.low, one.high
            defects.append(Defect(one.nodes[0], one.operator, one.why, one.outcomes, *blamed, reaches, one.loose))
        else:
            unknown.append(Unknown(one.operator, one.why, tuple(one.nodes), reaches))
    return Numerics(
        str(model),
        tuple(_range(name, value) for name, value in inputs.items()),
        tuple(_range(name, value) for name, value in outputs.items()),
        tuple(defects),
        tuple(unknown),
        analysis.nodes,
        time.perf_counter() - started,
    )


def _analysed(
    read: Model, ranges: Bounds | Mapping[str, Bounds]
) -> tuple[Analysis, dict[str, Value], dict[str, Value]]:
    """The analysis, what goes in, and every tensor by name."""
    stored = {tensor.name for tensor in read.graph.initializer}
    takes = {one.name: typed(one) for one in read.graph.input}
    named = (
        dict(ranges)
        if isinstance(ranges, Mapping)
        else {name: ranges for name, (kind, _) in takes.items() if kind.real and name not in stored}
    )
    _check_names(named, read)
    spans = {name: _span(name, bounds) for name, bounds in named.items()}
    analysis = Analysis(read, {name: span for name, span in spans.items() if name not in takes})
    inputs = {}
    for name, (kind, shape) in takes.items():
        if kind is OTHER:
            inputs[name] = analysis.not_known("inputs", "not of a type that is analysed", name, kind, shape)
        elif name in spans:
            inputs[name] = analysis.fresh(kind, shape, _representable(name, spans[name], kind))
        elif name not in stored:
            if kind.real:
                size = " × ".join("?" if n is None else str(n) for n in shape or ())
                inside = "".join(
                    f"; {other!r} is no input, but another tensor" for other in spans if other not in takes
                )
                raise ValueError(f"input {name!r} ({kind.name} {size}) needs a range, e.g. {name}=0..1{inside}")
            inputs[name] = analysis.fresh(kind, shape, unbounded(kind))
    return analysis, inputs, analysis.walk(read.graph, inputs)


def _check_names(named: Mapping[str, object], read: Model) -> None:
    inside = {name for node in read.graph.node for name in node.output} | {one.name for one in read.graph.input}
    for name in named:
        if name not in inside:
            raise ValueError(
                f"the model has no input or tensor {name!r}{nearest(name, inside)}; its inputs are: "
                f"{', '.join(one.name for one in read.graph.input)}"
            )


def _span(name: str, bounds: Bounds) -> Span:
    low, high = (np.asarray(side, np.float64) for side in bounds)
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
        raise ValueError(f"range of {name!r}: {low} to {high}; it goes from a number to one as large or larger")
    return Span(low, high)


def _representable(name: str, span: Span, kind: Kind) -> Span:
    """The numbers of a type in a range that was declared."""
    if (span.low < kind.least).any() or (span.high > kind.most).any():
        raise ValueError(f"range of {name!r}: {kind.name} goes from {kind.least:g} to {kind.most:g}")
    return fit(span, kind) if kind.real else Span(np.ceil(span.low), np.floor(span.high))


def _range(name: str, value: Value) -> Range:
    low, high = float(np.min(value.span.low)), float(np.max(value.span.high))
    return Range(name, value.kind.name, value.shape, low, high, value.span.nan)
