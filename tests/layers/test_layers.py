"""Each layer imports only earlier ones, and importing Instar is cheap."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import cv2

import instar
from tests.missing import absent

SOURCE = Path(instar.__file__).parent
LAYERS = [
    {"__init__"},
    {"files", "levels", "own", "reading", "remote", "secrets", "spelling", "task"},
    {"registry"},
    {"json_values", "shapes", "warp"},
    {"headers"},
    {"skeleton", "stats", "scene", "image"},
    {"video", "tensors", "visual"},
    {"case", "pool"},
    {"outputs"},
    {"transforms", "datasets", "systems"},
    {"relations", "numerics"},
    {"suites"},
    {"store"},
    {"engine"},
    {"exchange"},
    {"analysis"},
    {"report"},
    {"gate", "viewer"},
    {"api"},
    {"combining", "limits", "trial"},
    {"cli", "pytest_command", "pytest_plugin", "strategies"},
    {"tasks"},
    {"__main__"},
]
"""Rooms, each of which imports only earlier ones; what a task brings is found through the registry, by name."""
RANK = {room: number for number, layer in enumerate(LAYERS) for room in layer}


def room_of(path: Path) -> str:
    relative = path.relative_to(SOURCE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


@cache
def imports(path: Path) -> set[str]:
    """The rooms a file imports, also inside functions; not those for type checking only."""
    tree = ast.parse(path.read_text("utf-8"))
    checking = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in checking:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "instar":
            parts = node.module.split(".")
            found.add(parts[1] if len(parts) > 1 else "__init__")
    return found


def test_every_room_is_in_a_layer() -> None:
    assert {room_of(path) for path in SOURCE.rglob("*.py")} == set(RANK)


def test_layers_import_only_earlier_ones() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)} imports {room}"
        for path in sorted(SOURCE.rglob("*.py"))
        for room in imports(path)
        if room != room_of(path) and RANK[room] > RANK[room_of(path)]
    ]
    assert not wrong, wrong


def test_siblings_in_a_layer_do_not_import_each_other_in_circles() -> None:
    edges = {(room_of(path), room) for path in SOURCE.rglob("*.py") for room in imports(path) if room != room_of(path)}
    assert not [(a, b) for a, b in edges if (b, a) in edges and RANK[a] == RANK[b]]


def loaded(module: str, heavy: tuple[str, ...]) -> list[str]:
    """Which of some packages a fresh interpreter has after importing a module."""
    code = f"import sys, {module}; print(*(m for m in {heavy!r} if m in sys.modules))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_importing_instar_loads_nothing_heavy() -> None:
    assert loaded("instar", ("numpy", "cv2", "polars", "scipy", "torch", "mediapipe")) == []


def test_the_rooms_load_neither_models_nor_scipy() -> None:
    assert loaded("instar.api", ("scipy", "torch", "mediapipe", "ai_edge_litert", "matplotlib")) == []


def test_opencv_is_the_headless_one() -> None:
    """MediaPipe declares an OpenCV that links libGL, which many servers lack; `make` installs it without that."""
    gui = re.search(r"GUI:\s+(\S+)", cv2.getBuildInformation())
    if gui is None or gui[1] != "NONE":
        absent("opencv-python-headless as the only OpenCV")


def test_public_names_are_alphabetised_and_there() -> None:
    assert instar.__all__ == sorted(instar.__all__)
    for name in instar.__all__:
        assert getattr(instar, name) is not None
