"""That the cases of a run are copies of each other, in words."""

from __future__ import annotations

from instar.analysis.copies import Copies
from instar.report.finding import Finding
from instar.report.words import count_of, one_line


def copies_finding(alike: Copies) -> Finding:
    """Return that cases are copies of each other, and what that does to rates."""
    only = "are all the same" if alike.different == 1 else f"have only {alike.different:,} different ones"
    often = f"; {one_line(alike.example)}, for one, is there {alike.most:,} times" if alike.different > 1 else ""
    words = (
        f"The inputs of {count_of(alike.cases, 'case')} {only}{often}. Rates count every copy as a case of its own, so "
        "that their intervals are narrower than so few inputs allow."
    )
    return Finding("cases.copies", words, figures={"cases": alike.cases, "different": alike.different})
