"""MATLAB files: what is in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from instar.datasets.dataset import existing
from instar.reading import regular

T = TypeVar("T")


def variables(path: Path) -> list[str]:
    """The names of a MATLAB file's variables."""
    from scipy.io import whosmat

    return [entry[0] for entry in _scipy_call(whosmat, path)]


def load(path: Path, variable: str) -> Any:
    """One variable, without dimensions of length 1."""
    from scipy.io import loadmat

    variables_there = _scipy_call(loadmat, path, variable_names=[variable], squeeze_me=True)
    if variable not in variables_there:
        there = ", ".join(variables(path)) or "nothing"
        raise ValueError(f"{path}: there is no variable {variable!r} in it, only {there}")
    return variables_there[variable]


def _scipy_call(function: Callable[..., T], path: Path, **options: object) -> T:
    existing(path, "file", Path.is_file)
    try:
        return function(regular(path), **options)
    except NotImplementedError:
        raise ValueError(f"{path}: MATLAB 7.3 files are not read; save it with -v7") from None
    except Exception as error:  # scipy raises whatever the bytes lead it to
        raise ValueError(f"{path}: not a MATLAB file, or damaged ({error})") from None
