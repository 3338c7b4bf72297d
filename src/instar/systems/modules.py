"""The user's own modules that a function is made of: the one that has it, and all that this one imports.

What a module imports is read in its source, also inside functions, where it may not have been imported yet; and seen in
what it holds and in what was imported while it was, as a name may be put together only then. Nothing is imported here.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import resolve_name
from pathlib import Path
from types import FunctionType, ModuleType

from instar.own import is_own
from instar.systems.sources import IMPORTED, LOADED, Finder, Loader, code_hash, codes_of, hash_bytes


def own_modules(names: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Hashes of modules of the user's own, and of all those that they import, by file; and the files that changed since
    they were imported, which is not what answers."""
    hashes: dict[str, str] = {}
    edited: list[str] = []
    waiting = list(dict.fromkeys(names))
    known = set(waiting)
    for name in waiting:  # grows meanwhile
        module = sys.modules.get(name)
        path = getattr(module, "__file__", None) if module is not None else _located(name)
        if not path or not is_own(path) or not Path(path).is_file():
            continue
        loader = getattr(getattr(module, "__spec__", None), "loader", None)
        content = Path(path).read_bytes()
        digest = hash_bytes(content)
        if isinstance(loader, Loader):
            loaded = loader.digest
        else:
            loaded = _code_loaded(module, path, content) or digest
            if loaded == digest:
                LOADED[path] = digest
        file = _file_name(name, path)
        hashes[file] = loaded
        if loaded != digest:
            edited.append(file)
        source = loader.content if isinstance(loader, Loader) else content
        imports = [*_written_imports(source, name, path, module), *_held_modules(module), *IMPORTED.get(name, ())]
        more = [other for other in dict.fromkeys(imports) if other not in known and _may_be_own(other)]
        waiting += more
        known.update(more)
    return hashes, edited


def imported_modules(names: Iterable[str]) -> list[ModuleType]:
    """Modules of the user's own, and all of them that were imported when these were: the same in every process, as what
    a function imports when it is called is left out."""
    modules: list[ModuleType] = []
    waiting = list(dict.fromkeys(names))
    known = set(waiting)
    for name in waiting:  # grows meanwhile
        module = sys.modules.get(name)
        path = getattr(module, "__file__", None)
        if module is None or not path or not is_own(path) or not Path(path).is_file():
            continue
        modules.append(module)
        loader = getattr(module.__spec__, "loader", None)
        source = loader.content if isinstance(loader, Loader) else Path(path).read_bytes()
        imports = _written_imports(source, name, path, module, called=False)
        more = [other for other in dict.fromkeys(imports) if other not in known and _may_be_own(other)]
        waiting += more
        known.update(more)
    return modules


def _file_name(name: str, path: str) -> str:
    """A module's file as its package sees it, wherever that lies: `pkg/helpers.py`."""
    file = Path(path)
    if name == "__main__":
        return file.name
    return f"{name.replace('.', '/')}{'/__init__' if file.stem == '__init__' else ''}{file.suffix}"


def _may_be_own(name: str) -> bool:
    """False where a package is known to be Python's, installed or Instar's: nothing in it is looked at."""
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names and top != "__main__":
        return False
    path = getattr(sys.modules.get(top), "__file__", None)
    return path is None or is_own(path)


def _located(name: str) -> str | None:
    """The file of a module that was not imported, found without importing the packages around it."""
    places, spec = None, None
    names = name.split(".")
    for number in range(1, len(names) + 1):
        package = ".".join(names[:number])
        loaded = sys.modules.get(package)
        spec = Finder.find_spec(package, places) if loaded is None else loaded.__spec__
        if spec is None:
            return None
        places = list(spec.submodule_search_locations or ())
    return spec.origin if isinstance(spec, ModuleSpec) and spec.has_location else None


def _code_loaded(module: ModuleType | None, path: str, content: bytes) -> str | None:
    """A hash of the functions of a module that are not those of its file: it was edited after Python imported it."""
    if module is None or type(getattr(module.__spec__, "loader", None)) is not SourceFileLoader:
        return None
    functions = [value for value in vars(module).values() if isinstance(value, FunctionType)]
    codes = {one.__qualname__: one.__code__ for one in functions if one.__code__.co_filename == path}
    written = codes_of(content, path) if codes else []
    if all(code in written for code in codes.values()):
        return None
    return hash_bytes(repr(sorted((name, code_hash(code)) for name, code in codes.items())).encode())


def _written_imports(
    content: bytes, name: str, path: str, module: ModuleType | None, *, called: bool = True
) -> tuple[str, ...]:
    """The modules that a source imports anywhere in it, with the packages around them; not those for type checkers, and
    unless its functions are `called` not those in them."""
    package = getattr(module, "__package__", None)
    if package is None:
        package = name if Path(path).stem == "__init__" else name.rpartition(".")[0]
    return _imports_in(content, package, called)


@lru_cache(maxsize=1024)
def _imports_in(content: bytes, package: str, called: bool) -> tuple[str, ...]:
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):  # a compiled module, or one that nobody has imported
        return ()
    return tuple(_imported(tree, package, called))


def _imported(tree: ast.AST, package: str, called: bool) -> Iterator[str]:
    for node in _executed(tree, called):
        bases: list[str] = []
        if isinstance(node, ast.Import):
            bases = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(f"{'.' * node.level}{node.module or ''}", package)
            bases = [base, *(f"{base}.{alias.name}" for alias in node.names)] if base else []
        elif isinstance(node, ast.Call) and _last_name(node.func) in ("import_module", "__import__"):
            bases = [a.value for a in node.args[:1] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        for base in bases:
            parts = base.split(".")
            yield from (".".join(parts[:number]) for number in range(1, len(parts) + 1))


def _executed(tree: ast.AST, called: bool) -> Iterator[ast.AST]:
    """All nodes but those in `if TYPE_CHECKING:`, and in functions only where these are `called`."""
    waiting = [tree]
    for node in waiting:  # grows meanwhile
        yield node
        if not called and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        only_checked = isinstance(node, ast.If) and _last_name(node.test) == "TYPE_CHECKING"
        waiting += node.orelse if only_checked else ast.iter_child_nodes(node)  # type: ignore[attr-defined]


def _last_name(node: ast.expr) -> str:
    """`import_module` of `importlib.import_module` and of `import_module`."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _absolute(name: str, package: str) -> str | None:
    try:
        return resolve_name(name, package)
    except ImportError:  # a relative import outside of a package: it fails when it is run
        return None


def _held_modules(module: ModuleType | None) -> Iterator[str]:
    """The modules that a module holds, and those of the functions, classes and objects that it holds.

    A package holds whatever of it anybody has imported, which is another matter in every process: that is left out.
    """
    if module is None or module.__name__ == "__main__":  # whose names are of many things
        return
    for value in list(vars(module).values()):
        if type(value) is ModuleType:
            if not value.__name__.startswith(f"{module.__name__}."):
                yield value.__name__
        else:
            owner = value.__module__ if isinstance(value, FunctionType | type) else type(value).__module__
            if isinstance(owner, str):
                yield owner
