"""What a policy asks, one thing at a time, and whether it holds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a policy asks. `figure` is what was measured, `bound` what is held against `allowed`; `rules` are
    those it is about, `line` is that of the policy."""

    name: str
    passed: bool
    words: str
    line: int
    rules: tuple[str, ...] = ()
    figure: float | None = None
    bound: float | None = None
    allowed: float | None = None
