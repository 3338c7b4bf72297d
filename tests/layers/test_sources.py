"""What the sources must not do: name a task outside `tasks/`, list output kinds, load code that nobody named."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import instar
from instar.outputs import output_kinds
from instar.registry import names, tasks

SOURCE = Path(instar.__file__).parent
OF_OTHERS_TOO = {"objects", "numbers", "direction", "captions", "detections", "poses", "segmentation", "labels"}
"""Names of relations or suites that are words for other things too: a need, a parameter, an output kind, a field."""
MAKERS = ("outputs", "tasks", "systems", "datasets")
"""Rooms that make outputs of a kind. They may name the one they make, and list none."""


@cache
def parsed() -> dict[Path, ast.Module]:
    return {path.relative_to(SOURCE): ast.parse(path.read_text("utf-8")) for path in sorted(SOURCE.rglob("*.py"))}


def outside(*rooms: str) -> Iterator[tuple[Path, ast.Module]]:
    return ((path, tree) for path, tree in parsed().items() if path.parts[0] not in rooms)


def docstrings(tree: ast.Module) -> set[int]:
    """Strings that stand alone: they explain, and decide nothing."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    explaining = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in explaining:
            yield node.lineno, node.value


def test_nothing_outside_tasks_names_a_task_its_relations_or_its_suites() -> None:
    of_tasks = {name for task in tasks().values() for name in (task.name, *task.relations, *task.suites)}
    packages = {task.package.rpartition(".")[2] for task in tasks().values()}
    wrong = [
        f"{path}:{line}: {text!r}"
        for path, tree in outside("tasks", "outputs")
        for line, text in texts(tree)
        if text in (of_tasks | packages) - OF_OTHERS_TOO or re.search(r"instar\.tasks\.\w", text)
    ]
    assert not wrong, "\n".join(wrong)


def output_names(node: ast.expr) -> set[str]:
    """The output kinds that an expression names: as a text, as a class, or by a class's `kind`."""
    classes = {kind.__name__: name for name, kind in output_kinds().items()}
    if isinstance(node, ast.Constant) and node.value in output_kinds():
        return {str(node.value)}
    if isinstance(node, ast.Name) and node.id in classes:
        return {classes[node.id]}
    if isinstance(node, ast.Attribute) and node.attr == "kind":
        return output_names(node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return output_names(node.left) | output_names(node.right)
    return set()


def test_nothing_outside_outputs_lists_output_kinds() -> None:
    wrong = []
    for path, tree in outside("outputs", "tasks"):
        for node in ast.walk(tree):
            members: list[ast.expr] = []
            if isinstance(node, ast.Tuple | ast.List | ast.Set):
                members = list(node.elts)
            elif isinstance(node, ast.Dict):
                members = [key for key in node.keys if key is not None]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                members = [node.args[1]]
            if len(set().union(*map(output_names, members))) > 1:
                wrong.append(f"{path}:{node.lineno}")  # type: ignore[attr-defined]
    assert not wrong, wrong


def test_no_branch_outside_the_rooms_that_make_outputs_asks_for_a_kind() -> None:
    wrong = [
        f"{path}:{node.lineno}"
        for path, tree in outside(*MAKERS)
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        and any("kind" in ast.unparse(side) for side in (node.left, *node.comparators))
        and set().union(*map(output_names, (node.left, *node.comparators)))
    ]
    assert not wrong, wrong


def test_the_registry_names_every_suite_and_relation_once() -> None:
    for group in ("suites", "relations", "panels", "systems"):
        brought = [name for task in tasks().values() for name in getattr(task, group)]
        assert len(brought) == len(set(brought)) and set(brought) <= set(names(group))


def test_datasets_read_files_through_the_one_reader() -> None:
    """It refuses what is no regular file, or too large; a bare `open` waits for a pipe for ever."""
    families = {"FOLDER", "COCO", "family"}  # which open datasets, not files
    calls = [
        (path, node.lineno, ast.unparse(node.func).split("."))
        for path, tree in parsed().items()
        if path.parts[0] == "datasets" or path.name in ("image.py", "scene.py", "video.py")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
    ]
    wrong = [
        f"{path}:{line}: {'.'.join(names)}"
        for path, line, names in calls
        if names[-1] in ("open", "read_bytes", "read_text") and names[0] not in families
    ]
    assert not wrong, "\n".join(wrong)


LOADING = {"rule", "transformation", "suite", "system", "dataset", "loaded_object"}
"""Functions that import the code that a text names: the text must be the user's."""
DOORS = {
    *("__init__.py", "api.py", "combining.py", "trial.py", "cli", "suites", "transforms", "relations", "systems"),
    "datasets",
    *("engine/maker.py", "engine/predictor.py", "engine/needs.py"),  # which are sent what was named or trusted
    *("pytest_plugin.py", "strategies.py"),  # whose marks and arguments are code
    "analysis/run.py",  # whose `open_run` loads what is trusted
    *("tasks/object_relevance/commands.py", "tasks/object_relevance/repair", "tasks/meta_ic/commands.py"),
    "tasks/meta_ic/captioner.py",
}
"""Where users' own words are read. All else reads files, with `named_rule`, `named_transformation`, `named_suite`."""


def test_only_the_users_own_words_load_code() -> None:
    """A run folder is somebody else's text: what opens it must not be able to import what it names."""
    wrong = [
        f"{path}:{node.lineno}: {name.name}"
        for path, tree in parsed().items()
        if path.as_posix() not in DOORS and not any(parent.as_posix() in DOORS for parent in path.parents)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("instar")
        for name in node.names
        if name.name in LOADING
    ]
    assert not wrong, "\n".join(wrong)
