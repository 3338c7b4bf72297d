"""What was really loaded: modules of the user's own as they were imported, and files as they were hashed.

A file may be edited while a model loads, which takes seconds, or a moment later; and for a file of the same second and
length Python takes an old `.pyc`. What the file holds now is then not what answers. Modules that are imported while
`imports_noted` is in force are compiled from bytes that are read once, and hashed from the same bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.machinery import ModuleSpec, SourceFileLoader
from inspect import unwrap
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NoReturn

import xxhash

from instar.own import is_own

LOADED: dict[str, str] = {}
"""The hash of every file that a system was made of in this process, by its path."""


class _Loader(SourceFileLoader):
    """Loads a module from its source alone, and remembers the hash of what it compiled."""

    digest = ""

    def path_stats(self, path: str) -> NoReturn:
        raise OSError(f"{path} is compiled each time: no .pyc stands for it")

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        self.digest = LOADED[str(path)] = _hash(data)
        return super().source_to_code(data, path, _optimize=_optimize)


class _Finder:
    """Finds what the others find. Modules of the user's own get a loader that remembers."""

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        for finder in sys.meta_path:
            spec = None if finder is cls else finder.find_spec(name, path, target)
            if spec is not None:
                if type(spec.loader) is SourceFileLoader and is_own(spec.loader.path):
                    spec.loader = _Loader(spec.loader.name, spec.loader.path)
                return spec
        return None


@contextmanager
def imports_noted() -> Iterator[None]:
    """Modules of the user's own that are imported meanwhile are remembered as they were read."""
    if _Finder in sys.meta_path:
        yield
        return
    sys.meta_path.insert(0, _Finder)
    try:
        yield
    finally:
        sys.meta_path.remove(_Finder)


def _hash(content: bytes) -> str:
    return str(xxhash.xxh3_128_hexdigest(content))


def code_hashes(function: object, module_name: str) -> list[str]:
    """Hashes of the code behind a callable: of the module that names it and of the one that defines it."""
    inner = function
    while isinstance(inner, partial):
        inner = inner.func
    inner = unwrap(inner) if callable(inner) else inner
    code = getattr(inner, "__code__", None)
    names = dict.fromkeys((module_name, str(getattr(inner, "__module__", None) or "")))
    modules = [sys.modules[name] for name in names if name in sys.modules]
    hashes = [_module_hash(module, code) for module in modules] or [_module_hash(None, code)]
    return list(dict.fromkeys(hashes))


def _module_hash(module: ModuleType | None, code: CodeType | None) -> str:
    """That of its file as it was imported; of the code itself where there is no file, or the file is another by now."""
    loader = getattr(getattr(module, "__spec__", None), "loader", None)
    if isinstance(loader, _Loader):
        return loader.digest
    path = getattr(module, "__file__", None)
    if not path or not Path(path).is_file():
        return "" if code is None else _code_hash(code)
    content = Path(path).read_bytes()
    if code is not None and path.endswith(".py") and code.co_filename == path and code not in _codes_of(content, path):
        return _code_hash(code)
    LOADED[path] = _hash(content)
    return LOADED[path]


def _codes_of(content: bytes, path: str) -> list[CodeType]:
    """All code of a source file; none where it cannot be compiled, which is not what runs, then."""
    try:
        codes = [compile(content, path, "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        return []
    for code in codes:  # grows meanwhile
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return codes


def _code_hash(code: CodeType) -> str:
    constants = [_code_hash(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    return _hash(repr((code.co_code, code.co_names, constants)).encode())
