"""What may be missing on a machine: tests that need it skip visibly, and fail where everything must be there."""

from __future__ import annotations

import importlib
import os
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import pytest

from instar.datasets import dataset
from instar.image import Image, read_image
from instar.systems import MissingExtra, System, system

SHARED = Path(__file__).resolve().parents[2] / "shared"


def absent(why: str) -> NoReturn:
    if os.environ.get("INSTAR_CI_STRICT") == "1":
        pytest.fail(f"{why}; it must be here")
    pytest.skip(why)


def module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        absent(f"needs {name}")


def shared(inside: str) -> Path:
    """A folder or file of the data that is kept beside the repository."""
    path = SHARED / inside
    if not path.exists():
        absent(f"{path} is not here")
    return path


@cache
def _system(spelling: str, file: Path | None) -> System | str:
    if file is not None and not file.is_file():
        return f"{file} is not here"
    try:
        return system(spelling)
    except MissingExtra as error:
        return str(error)


def loaded_system(spelling: str, file: Path | None = None) -> System:
    """A system, loaded once; where its library, its model or a file it takes is missing, the test says so."""
    found = _system(spelling, file)
    if isinstance(found, str):
        absent(found)
    return found


@cache
def _astronaut() -> Image | None:
    try:
        paths = {case.id: case.path for case in dataset("sample-photos").cases()}
    except FileNotFoundError:
        return None
    return read_image(paths["astronaut.png"]) if paths.get("astronaut.png") else None  # type: ignore[arg-type]


def astronaut() -> Image:
    """A public-domain photo of a person."""
    photo = _astronaut()
    if photo is None:
        absent("needs scikit-image for its photo")
    return photo
