"""What there is by name: built in, brought by a task, or registered by an installed package.

A task brings things through its `Task`; a package may also register single things as entry points of the groups
`instar.outputs`, `instar.systems`, `instar.datasets`, `instar.transformations`, `instar.relations`, `instar.suites`.
What cannot be loaded is reported in a warning and left out; it costs nobody else.

An object that nobody registered is named `package.module:object`, and then the one question is who named it. A name
that the user gave is imported (`loaded_object`). A name that stands in a file, such as a run folder, is only looked up
among those that the user gave (`known_object`): to open a file never runs code.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from inspect import getattr_static, isclass, isroutine
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, TypeVar

from instar.own import broken_module, is_own
from instar.spelling import unknown
from instar.task import Task

T = TypeVar("T")


class BrokenPlugin(UserWarning):
    """Something that a package registered and that cannot be loaded; the message says what and why."""


class NotLoaded(ValueError):
    """Code that a file names and the user did not; the message says what it is."""


Lookup = Callable[[str], Any]
"""How the object that `package.module:object` names is had: `loaded_object` for a name of the user's, `known_object`
for a name in a file."""
_loaded: dict[str, Any] = {}


def known_object(name: str) -> Any:
    """The object of a name that stands in a file: one that was loaded for the user before. Nothing is imported."""
    if name not in _loaded:
        raise NotLoaded(f"{name} is code, and was not loaded: a file names it, and you did not")
    return _loaded[name]


def loaded_names() -> tuple[tuple[str, int], ...]:
    """What was loaded so far, and which object each name stands for: what names in files mean hangs on it."""
    return tuple((name, id(value)) for name, value in _loaded.items())


def loaded_object(name: str) -> Any:
    """The object that `package.module:object` names, imported on the user's word.

    The current folder can be imported from, as by `python -m`. Raises BrokenModule where the module itself fails.
    """
    module_name, _, attribute = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
    try:
        loaded: object = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and f"{module_name}.".startswith(f"{error.name}."):
            raise ModuleNotFoundError(
                f"{name}: there is no module {error.name!r} in {here} or on the Python path; "
                "it is written package.module:object"
            ) from None
        raise broken_module(module_name, error) from None
    except (Exception, SystemExit) as error:  # whatever the user's module does when it is imported
        raise broken_module(module_name, error) from None
    for part in attribute.split("."):
        if not hasattr(loaded, part):
            raise unknown(f"object in {module_name}", part, _own_objects(loaded))
        loaded = getattr(loaded, part)
    _loaded[name] = loaded
    return loaded


def later_object(place: str) -> Any:
    """The object of Instar's own that `package.module:object` names, for a room that may not import it: what is asked
    of a run may be answered by the report. Nobody but our own sources says what it is."""
    module_name, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module_name), attribute)


def _own_objects(owner: object) -> list[str]:
    """The names in a module, or a class, that a user may have meant: no modules, constants or imports from packages."""
    values = {name: getattr_static(owner, name) for name in dir(owner) if not name.startswith("_")}
    return [name for name, value in values.items() if _may_be_named(value)]


def _may_be_named(value: object) -> bool:
    """Whether it is a function or a class of the user's own, can be called, or is of Instar's own types."""
    if not (isroutine(value) or isclass(value)):
        return callable(value) or type(value).__module__.startswith("instar.")
    home = sys.modules.get(str(getattr(value, "__module__", "")))
    path = getattr(home, "__file__", None)
    return home is None or (path is not None and is_own(path))


@dataclass(frozen=True, slots=True)
class _Registration:
    """A thing under its name, not loaded yet, and who registered it."""

    name: str
    owner: str
    load: Callable[[], object]
    package: str = ""
    """What uninstalling takes it away; empty for what comes with a task."""


@cache
def tasks() -> Mapping[str, Task]:
    """Every task by name: those in `instar.tasks`, and those of installed packages (entry points `instar.tasks`)."""
    package = importlib.import_module("instar.tasks")
    loaded: dict[str, Task] = {}
    for module in iter_modules(package.__path__, "instar.tasks."):
        task: Task = importlib.import_module(module.name).TASK
        loaded[task.name] = task
    for entry in entry_points(group="instar.tasks"):
        task_or_none = _loaded_or_reported(_of_entry_point(entry, "tasks"), Task)
        if task_or_none is not None:
            _add_once(loaded, task_or_none.name, task_or_none, f"the package {_package(entry)}")
    return loaded


@cache
def _registered(group: str) -> Mapping[str, _Registration]:
    """What tasks bring and packages register under a group."""
    registrations: dict[str, _Registration] = {}
    for one in _registrations(group):
        _add_once(registrations, one.name, one, one.owner)
    return registrations


def _registrations(group: str) -> Iterator[_Registration]:
    for task in tasks().values():
        for name, place in getattr(task, group).items():
            yield _Registration(name, f"the task {task.name}", _loader(task, name, place))
    for entry in entry_points(group=f"instar.{group}"):
        yield _of_entry_point(entry, group)


def _of_entry_point(entry: EntryPoint, group: str) -> _Registration:
    package = _package(entry)
    return _Registration(entry.name, f"the package {package} (entry points instar.{group})", entry.load, package)


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value


def _loader(task: Task, name: str, place: str) -> Callable[[], object]:
    def load() -> object:
        module_name, _, attribute = place.partition(":")
        stands = getattr(importlib.import_module(module_name, task.package), attribute)
        return stands[name] if isinstance(stands, Mapping) else stands

    return load


def _add_once(table: dict[str, T], name: str, thing: T, owner: str) -> None:
    if name in table:
        _report_twin(owner, name)
    else:
        table[name] = thing


def _report_twin(owner: str, name: str) -> None:
    text = f"{owner} brings {name!r}, which is there already; the first one is used"
    warnings.warn(text, BrokenPlugin, stacklevel=3)


def _checked(registration: _Registration, kind: type[T]) -> T:
    thing = registration.load()
    if not isinstance(thing, kind):
        raise TypeError(f"{registration.name!r} is a {type(thing).__name__}, not a {kind.__name__}")
    return thing


def _loaded_or_reported(registration: _Registration, kind: type[T]) -> T | None:
    try:
        return _checked(registration, kind)
    except Exception as error:
        away = f"; mend it, or `pip uninstall {registration.package}`" if registration.package else ""
        warnings.warn(
            f"{registration.owner}: {registration.name!r} cannot be loaded and is left out "
            f"({type(error).__name__}: {error}){away}",
            BrokenPlugin,
            stacklevel=3,
        )
        return None


def names(group: str, built_in: Mapping[str, object] | None = None) -> list[str]:
    """The names of a group, nothing loaded."""
    return list(dict.fromkeys([*(built_in or ()), *_registered(group)]))


def every(group: str, kind: type[T], built_in: Mapping[str, T] | None = None) -> dict[str, T]:
    """Everything of a group by name. What cannot be loaded is reported and left out."""
    table = dict(built_in or {})
    for name, registration in _registered(group).items():
        thing = None if name in table else _loaded_or_reported(registration, kind)
        if thing is not None:
            table[name] = thing
        elif built_in and name in built_in:
            _report_twin(registration.owner, name)
    return table


def find(
    what: str, name: str, group: str, kind: type[T], built_in: Mapping[str, T] | None = None, *, see: str = ""
) -> T:
    """A thing by name: a built-in one, else one that a task or a package brings, else the error that names the nearest.

    One that is asked for and cannot be loaded raises.
    """
    if built_in is not None and name in built_in:
        return built_in[name]
    if name in _registered(group):
        registration = _registered(group)[name]
        try:
            return _checked(registration, kind)
        except Exception as error:
            raise ImportError(
                f"{what} {name!r} of {registration.owner} cannot be loaded: {type(error).__name__}: {error}"
            ) from error
    raise unknown(what, name, names(group, built_in), see=see)
