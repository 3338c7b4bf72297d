"""What a policy asks, one thing at a time, and whether it holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from instar.report.words import of_total


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a policy asks. `figure` is what was measured, `bound` what is held against `allowed`; `rules` are
    those it is about, `line` is that of the policy. `certain`: where it does not pass, more cases would not let it.
    `undecided`: it does not pass because asking stopped before it was certain."""

    name: str
    passed: bool
    words: str
    line: int
    rules: tuple[str, ...] = ()
    figure: float | None = None
    bound: float | None = None
    allowed: float | None = None
    certain: bool = True
    undecided: bool = False

    @property
    def state(self) -> Literal["holds", "fails", "open"]:
        return "holds" if self.passed else "open" if self.undecided else "fails"


def with_open(checks: Sequence[Check]) -> list[Check]:
    """The checks of a run that was asked no more as soon as one limit was sure to fail: what was not certain by then
    is open, and not to be mended."""
    if not any(one.rules and one.certain and not one.passed for one in checks):
        return list(checks)
    why = "Not decided, because asking stopped at a limit that is sure to fail: "
    return [
        one if one.passed or one.certain else replace(one, undecided=True, words=f"{why}{one.words}") for one in checks
    ]


def count_words(checks: Sequence[Check]) -> str:
    """How many checks fail, and how many are open.

    >>> some = [Check("a", True, "", 1), Check("b", False, "", 2), Check("c", False, "", 3, undecided=True)]
    >>> count_words(some), count_words(some[:1])
    ('1 of 3 checks fails; 1 is not decided.', 'All 1 checks hold.')
    """
    counts = Counter(one.state for one in checks)
    if not counts["fails"] and not counts["open"]:
        return f"All {len(checks)} checks hold."
    fails = f"{of_total(counts['fails'], len(checks), 'check')} {'fails' if counts['fails'] == 1 else 'fail'}"
    rest = f"; {counts['open']} {'is' if counts['open'] == 1 else 'are'} not decided" if counts["open"] else ""
    return f"{fails}{rest}."
