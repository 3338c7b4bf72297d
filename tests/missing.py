"""What may be missing on a machine: tests that need it skip visibly, and fail where everything must be there.

Every skip is made here. Its reason says what is needed and how to get it, in the same words for every test that needs
the same: the end of a test run counts them.
"""

from __future__ import annotations

import importlib
import os
import re
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import pytest

from instar.datasets import dataset
from instar.image import Image, read_image
from instar.systems import MissingExtra, System, system, verify

SHARED = Path(__file__).resolve().parents[2] / "shared"

TRANSFORMERS = "transformers and PyTorch (pip install -r requirements/optional.txt -r requirements/training.txt)"
PACKAGES = {
    "mediapipe": "MediaPipe, whose wheel needs Python 3.11 or 3.12",
    "obstore": "obstore (pip install -r requirements/dev.txt)",
    "ray": "Ray (pip install -r requirements/optional.txt)",
    "tokenizers": TRANSFORMERS,
    "torch": "PyTorch (pip install -r requirements/training.txt)",
    "transformers": TRANSFORMERS,
    "yaml": "PyYAML (pip install -r requirements/dev.txt)",
}


def absent(need: str, inside: str = "") -> NoReturn:
    """Something is needed that a machine can have; what of it exactly is said where it must be there."""
    if os.environ.get("INSTAR_CI_STRICT") == "1":
        pytest.fail(f"needs {need}; it must be here{inside and f': {inside}'}")
    pytest.skip(f"needs {need}")


def unsuited(why: str) -> NoReturn:
    """A test says nothing on this machine, whatever is installed."""
    pytest.skip(why)


def not_as_root() -> None:
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        unsuited("says nothing as root, who may open everything")


def module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = (error.name or name).partition(".")[0]
        absent(PACKAGES.get(package, f"{package} (pip install -r requirements/dev.txt)"), str(error))


def model(name: str) -> None:
    if verify(name) != "ok":
        absent(_model(name))


def _model(name: str) -> str:
    return f"the model {name} (instar models pull {name})"


def shared(inside: str) -> Path:
    """A folder or file of the data that is kept beside the repository."""
    path = SHARED / inside
    if not path.exists():
        absent(f"../shared/{path.relative_to(SHARED).parts[0]}", str(path))
    return path


@cache
def _system(spelling: str) -> System | MissingExtra:
    try:
        return system(spelling)
    except MissingExtra as error:
        return error


def loaded_system(spelling: str, file: Path | None = None) -> System:
    """A system, loaded once; where its library, its model or a file it takes is missing, the test says so."""
    if file is not None:
        shared(str(file.relative_to(SHARED)))
    found = _system(spelling)
    if isinstance(found, System):
        return found
    if unpulled := re.search(r"instar models pull ([\w-]+)", str(found)):
        absent(_model(unpulled[1]), str(found))
    if "MediaPipe" in str(found):
        absent(PACKAGES["mediapipe"], str(found))
    absent(f"the system {spelling}: {found}")


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
        absent("scikit-image for its photo (pip install --no-deps -r requirements/without-deps.txt)")
    return photo
