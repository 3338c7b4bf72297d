"""Told: values as JSON has them, from programs and tables that may say anything, checked one by one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from instar.spelling import nearest

__all__ = ["as_list", "as_numbers", "as_text", "one_of", "short"]


def as_text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{what} is {short(value)}; it takes a text")
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a pair, as "\ud83d": no file could hold it
        raise ValueError(f"{what} is {short(value)}, which is no text in Unicode") from None
    return value


def as_list(value: object, what: str, form: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{what} is {short(value)}; it takes a list of {form}")
    return value


def one_of(value: object, what: str, allowed: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in allowed:
        hint = nearest(value, allowed) if isinstance(value, str) else ""
        raise ValueError(f"{what} is {short(value)}; it takes one of {', '.join(allowed)}{hint}")
    return value


def as_numbers(
    value: object, what: str, shape: tuple[int | None, ...], form: str, *, absent: bool = False
) -> npt.NDArray[np.float64]:
    """Finite numbers in nested lists. Of `shape`, what is None may be anything; NaN only where some may be absent."""
    try:
        array = np.array(value)  # of no given type: a text or a null must not become a number
    except ValueError:  # lists of different lengths
        array = np.array(None)
    if array.shape == (0,):
        array = np.zeros([side or 0 for side in shape])
    fits = array.ndim == len(shape) and all(side in (None, n) for side, n in zip(shape, array.shape, strict=True))
    if array.dtype.kind not in "iuf" or not fits:
        sides = f" ({' × '.join('any number' if side is None else str(side) for side in shape)})" if shape else ""
        raise ValueError(f"{what} is {short(value)}; it takes {form}{sides}")
    if not absent and not np.isfinite(array).all():
        raise ValueError(f"{what} holds a number that is too large")
    return array.astype(np.float64)


def short(value: object) -> str:
    """A value as a message quotes it; what no file could hold is escaped."""
    said = json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace").decode()
    return said if len(said) <= 80 else f"{said[:80]}…"
