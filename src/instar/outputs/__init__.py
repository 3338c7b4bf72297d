"""What systems say. Every kind of output declares, warps, stores and draws itself; a new kind is one file here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from instar.outputs.output import Output, OutputDefaults, Row, Schema
from instar.registry import every
from instar.spelling import unknown

__all__ = ["Output", "OutputDefaults", "Row", "Schema", "json_columns", "output_kind", "output_kinds"]


@cache
def output_kinds() -> Mapping[str, type[Output]]:
    """Every kind by name: the `OUTPUT` of each file here, and those that tasks and installed packages bring."""
    modules = (import_module(module.name) for module in iter_modules(__path__, f"{__name__}."))
    built_in = {module.OUTPUT.kind: module.OUTPUT for module in modules if hasattr(module, "OUTPUT")}
    return every("outputs", type, built_in)


def output_kind(name: str) -> type[Output]:
    kinds = output_kinds()
    if name not in kinds:
        raise unknown("output kind", name, kinds)
    return kinds[name]


def json_columns(kind: str) -> dict[str, str]:
    """What the JSON fields of a kind are called in a table, where columns of other things stand beside them: a field
    called `text` has the name of its kind there."""
    return {field: kind if field == "text" else field for field in output_kind(kind).json_fields}
