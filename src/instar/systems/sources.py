"""What was really loaded: modules of the user's own as they were imported, and files as they were hashed.

A file may be edited while a model loads, which takes seconds, or a moment later; and for a file of the same second and
length Python takes an old `.pyc`. What the file holds now is then not what answers. Modules that are imported while
`imports_noted` is in force are compiled from bytes that are read once, and hashed from the same bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, NoReturn

import xxhash

from instar.own import is_own

LOADED: dict[str, str] = {}
"""The hash of every file that a system was made of in this process, by its path."""
IMPORTED: dict[str, set[str]] = {}
"""The modules of the user's own that were imported for the first time while one of them was, by that one's name."""
_importing: list[str] = []


class Loader(SourceFileLoader):
    """Loads a module from its source alone, and remembers the hash of what it compiled."""

    digest, content = "", b""

    def exec_module(self, module: ModuleType) -> None:
        if _importing:
            IMPORTED.setdefault(_importing[-1], set()).add(module.__name__)
        _importing.append(module.__name__)
        try:
            super().exec_module(module)
        finally:
            _importing.pop()

    def path_stats(self, path: str) -> NoReturn:
        raise OSError(f"{path} is compiled each time: no .pyc stands for it")

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        self.content, self.digest = bytes(data), hash_bytes(data)
        LOADED[str(path)] = self.digest
        return super().source_to_code(data, path, _optimize=_optimize)


class Finder:
    """Finds what the others find. Modules of the user's own get a loader that remembers."""

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        for finder in sys.meta_path:
            spec = None if finder is cls else finder.find_spec(name, path, target)
            if spec is not None:
                if type(spec.loader) is SourceFileLoader and is_own(spec.loader.path):
                    spec.loader = Loader(spec.loader.name, spec.loader.path)
                return spec
        return None


@contextmanager
def imports_noted() -> Iterator[None]:
    """Modules of the user's own that are imported meanwhile are remembered as they were read."""
    if Finder in sys.meta_path:
        yield
        return
    sys.meta_path.insert(0, Finder)
    try:
        yield
    finally:
        sys.meta_path.remove(Finder)


def hash_bytes(content: bytes) -> str:
    return str(xxhash.xxh3_128_hexdigest(content))


@lru_cache(maxsize=256)
def codes_of(content: bytes, path: str) -> list[CodeType]:
    """All code of a source file; none where it cannot be compiled, which is not what runs, then."""
    try:
        codes = [compile(content, path, "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        return []
    for code in codes:  # grows meanwhile
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return codes


def code_hash(code: CodeType) -> str:
    """A hash of what a function does, wherever it stands and whatever its comments say."""
    return hash_bytes(repr((code.co_code, code.co_names, [_constant(one) for one in code.co_consts])).encode())


def _constant(value: object) -> str:
    if isinstance(value, CodeType):
        return code_hash(value)
    return repr(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)
