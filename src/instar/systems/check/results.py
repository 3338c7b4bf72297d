"""The outcome of a question: a stable code, a state, a sentence, and the figures in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

State = Literal["ok", "unsure", "warning", "problem", "skipped"]


@dataclass(frozen=True, slots=True)
class Result:
    """What a question found out. `figures` are plain JSON values."""

    code: str
    state: State
    message: str
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a check: the stable code of the diagnosis, what was looked at, what was seen, and what to change.

    `figures` are the numbers of the message as plain JSON values.
    """

    code: str
    name: str
    state: State
    message: str
    figures: Mapping[str, Any] = field(default_factory=dict)


def ok(code: str, message: str, **figures: Any) -> Result:
    return Result(code, "ok", message, _plain(figures))


def unsure(code: str, message: str, **figures: Any) -> Result:
    return Result(code, "unsure", message, _plain(figures))


def warning(code: str, message: str, **figures: Any) -> Result:
    return Result(code, "warning", message, _plain(figures))


def problem(code: str, message: str, **figures: Any) -> Result:
    return Result(code, "problem", message, _plain(figures))


def _plain(value: Any) -> Any:
    """Convert numpy values to JSON values. Infinite numbers become null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value
