"""Model graphs held to a limit: how many operations can make an output NaN or ±∞."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from instar.gate.check import Check
from instar.gate.policy import Graph, Policy, PolicyError, line_of
from instar.report.words import count_of, listed

if TYPE_CHECKING:
    from instar.numerics import Defect


def graph_check(graph: Graph, policy: Policy) -> Check:
    """The numerical defects of a model that reach an output. Raises PolicyError where the model cannot be analysed."""
    from instar.numerics import numerics, parse_dims, parse_ranges  # late: it needs onnx, and most policies do not

    place = f"{policy.path}, line {graph.line}"
    try:
        analysis = numerics(graph.model, parse_ranges(list(graph.ranges)), dims=parse_dims(list(graph.dims)))
    except FileNotFoundError:
        place = f"{policy.path}, line {line_of(graph, 'model')}"
        raise PolicyError(f"{place}: there is no {graph.model}") from None
    except (ValueError, KeyError) as error:
        raise PolicyError(f"{place}: {error}") from None
    defects, unknown = len(analysis.serious), sum(len(one.nodes) for one in analysis.unknown)
    words = f"{count_of(defects, 'operation')} of {graph.model.name} can make an output NaN or ±∞; at most "
    words = f"{words}{graph.defects:,} may." + (f" {_defects(analysis.serious)}" if defects else "")
    too_unknown = graph.unknown is not None and unknown > graph.unknown
    if unknown:
        words += f" {count_of(unknown, 'operation')} cannot be analysed" + (
            f"; at most {graph.unknown:,} may be." if graph.unknown is not None else "."
        )
    holds = defects <= graph.defects and not too_unknown
    return Check(f"numerics of {graph.model.name}", holds, words, graph.line, (), defects, defects, graph.defects)


def _defects(defects: Sequence[Defect]) -> str:
    """Which operations, and which outputs they reach."""
    return listed([f"{one.operator} {one.node} (it reaches {', '.join(one.reaches)})" for one in defects], 3) + "."
