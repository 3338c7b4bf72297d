"""Cards of the viewer say nothing that contradicts itself."""

from __future__ import annotations

import re

import pytest

from instar.relations.marks import MarkedPair, Segment
from instar.viewer.app import _ENVIRONMENT


@pytest.mark.parametrize(
    ("severity", "kind", "shown"), [(0.1, "lost", False), (0.5, "lost", True), (0.0, "confirmed", True)]
)
def test_no_kind_of_violation_stands_beside_kept(severity: float, kind: str, shown: bool) -> None:
    """Below the threshold a class may be nearly lost, and is kept; what is kept may be confirmed."""
    state = _ENVIRONMENT.get_template("parts.html").module.state  # type: ignore[attr-defined]
    card = {"judged": True, "severity": severity, "unit": "IoU lost", "limit": 0.3, "kind": kind}
    words = state({**card, "violated": severity >= 0.3, "source_score": None, "follow_up_score": None})
    assert (f">{kind}</span>" in words) is shown


def test_both_captions_say_which_image_they_are_of() -> None:
    """A card on the page of a case shows the follow-up alone, above the captions of both."""
    marked = _ENVIRONMENT.get_template("parts.html").module.marked  # type: ignore[attr-defined]
    words = marked(MarkedPair((Segment("a dog"),), (Segment("a cat"),), ()))
    assert re.findall(r"[\w-]+:", re.sub("<[^>]*>", " ", words)) == ["source:", "follow-up:"]
