"""What a function holds that no file says: the code of a notebook's cell, values in a closure, arguments of a partial.

Code and plain values are hashed. What an object of a library holds, such as a model, is not: it is named, to be told.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType

import numpy as np

from instar.own import is_own
from instar.systems.sources import code_hash, hash_bytes

_PLAIN = (type(None), bool, int, float, complex, str, bytes, Path)
MOST_PARTS = 40
"""Of more values than these, one part is told and stored for all that a name holds."""
_OF_PYTHON = ("__module__", "__qualname__", "__doc__", "__firstlineno__")


class Holdings:
    """What a callable holds: `parts`, hashes of code and values by name; the `modules` that have the rest; and by name
    the `objects` of which it is not known what they hold."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.parts: dict[str, str] = {}
        self.modules: list[str] = []
        self.objects: list[str] = []
        self._looked_at: dict[int, object] = {}  # held, so that no id becomes another's
        self._look("", function)
        if len(self.parts) > MOST_PARTS:
            self.parts = _by_first_name(self.parts)

    def _look(self, name: str, value: object) -> None:
        content = plain_content(value)
        if content is not None:
            self.parts[f"the value of {name}"] = hash_bytes(content)
            return
        if id(value) in self._looked_at:
            return
        self._looked_at[id(value)] = value
        if isinstance(value, ModuleType):
            self.modules.append(value.__name__)
        elif isinstance(value, partial):
            self._look(name, value.func)
            self._each(name, {f"argument {number}": one for number, one in enumerate(value.args, 1)} | value.keywords)
        elif isinstance(value, MethodType):
            self._look(name, value.__func__)
            self._look(name or type(value.__self__).__name__, value.__self__)
        elif isinstance(value, FunctionType):
            self._function(value)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, list | tuple | set | frozenset | dict):
            self._each(name, value if isinstance(value, dict) else dict(enumerate(value)))
        elif callable(wrapped := getattr(value, "__wrapped__", None)):  # functools.lru_cache
            self._look(name, wrapped)
        elif not isinstance(value, BuiltinFunctionType | np.ufunc):
            self._object(name or type(value).__name__, value)

    def _each(self, name: str, values: dict) -> None:  # type: ignore[type-arg]
        for key, value in values.items():
            self._look(f"{name}.{key}" if name else str(key), value)

    def _function(self, function: FunctionType) -> None:
        """A function at the top of a module's file is what the file says; of any other, all that it names."""
        module = str(function.__globals__.get("__name__"))
        self.modules += [module, *_imports_of(function.__code__)]
        if _has_file(module) and "<locals>" not in function.__code__.co_qualname:
            return
        self.parts[f"the code of {function.__qualname__}"] = code_hash(function.__code__)
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        self._each("", {name: cell.cell_contents for name, cell in cells.items() if _is_filled(cell)})
        defaults = {f"default {number}": value for number, value in enumerate(function.__defaults__ or (), 1)}
        self._each("", defaults | (function.__kwdefaults__ or {}))
        if not _has_file(module):
            names = dict.fromkeys(_globals_of(function.__code__))
            self._each("", {name: function.__globals__[name] for name in names if name in function.__globals__})

    def _class(self, kind: type) -> None:
        if _of_library(kind):
            return
        self.modules.append(kind.__module__)
        if _has_file(kind.__module__):
            return
        for base in kind.__bases__:
            self._look(base.__name__, base)
        values = {name: getattr(value, "__func__", value) for name, value in vars(kind).items()}
        known = (*_PLAIN, FunctionType)
        values = {name: v for name, v in values.items() if isinstance(v, known) and name not in _OF_PYTHON}
        self._each(kind.__qualname__, values)

    def _object(self, name: str, value: object) -> None:
        """One of a class of the user's own is what it holds; of another, that is not known."""
        self._class(type(value))
        if _of_library(type(value)):
            self.objects.append(name)
        else:
            self._each(name, dict(getattr(value, "__dict__", {})))


def _by_first_name(parts: dict[str, str]) -> dict[str, str]:
    """One hash for all values of `table.a`, `table.b` …: that of `table`."""
    together: dict[str, list[str]] = {}
    for name, digest in parts.items():
        first = name if name.startswith("the code of ") else name.partition(".")[0]
        together.setdefault(first, []).append(f"{name}={digest}")
    return {first: hash_bytes("\n".join(some).encode("utf-8", "surrogatepass")) for first, some in together.items()}


def plain_content(value: object) -> bytes | None:
    """What a plain value is, as bytes that are the same in any process; None for anything else."""
    if isinstance(value, _PLAIN):
        return repr(value).encode("utf-8", "surrogatepass")
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return f"{value.dtype}{value.shape}".encode() + value.tobytes()
    if type(value) in (list, tuple, set, frozenset, dict):
        items: list[object] = list(value.items()) if isinstance(value, dict) else list(value)  # type: ignore[call-overload]
        contents = [plain_content(item) for item in items]
        known = [content for content in contents if content is not None]
        if len(known) == len(contents):
            return repr(sorted(known) if isinstance(value, set | frozenset) else known).encode()
    return None


def _is_filled(cell: object) -> bool:
    try:
        cell.cell_contents  # type: ignore[attr-defined]  # noqa: B018
    except ValueError:
        return False
    return True


def _has_file(module_name: str) -> bool:
    """Whether a file says what a module is. It does not of a script, which is told more on its command line."""
    path = getattr(sys.modules.get(module_name), "__file__", None)
    return module_name != "__main__" and path is not None and Path(path).is_file()


def _of_library(kind: type) -> bool:
    module = sys.modules.get(kind.__module__)
    path = getattr(module, "__file__", None)
    return kind.__module__ != "__main__" and module is not None and (path is None or not is_own(path))


def _globals_of(code: CodeType) -> Iterator[str]:
    """The global names that code reads, also in the functions inside it."""
    return _named(code, ("LOAD_GLOBAL", "LOAD_NAME"))


def _imports_of(code: CodeType) -> Iterator[str]:
    return _named(code, ("IMPORT_NAME",))


def _named(code: CodeType, operations: tuple[str, ...]) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in operations:
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _named(constant, operations)
