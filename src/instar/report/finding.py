"""Findings: what a run or a comparison shows, as a stable code with its figures, and in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of a run, or of a comparison of runs.

    `code` is stable: programs and tests compare it, while the words may change. `figures` holds the numbers and names
    in the words as plain values. `against`: the finding speaks against the model.
    """

    code: str
    words: str
    against: bool = False
    figures: Mapping[str, Any] = field(default_factory=dict)
