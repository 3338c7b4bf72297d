"""Pairs that one of two runs alone violates stand in the report as pictures of both."""

from __future__ import annotations

from pathlib import Path

import instar
from instar.report.page import make_report, page
from tests.toys import write_scenes

RIGHT, FORGETFUL = "tests.toys:rectangles", "tests.engine.zones:forgetful"


def test_pairs_that_changed_are_drawn_as_both_runs_answered_them(tmp_path: Path) -> None:
    photos = write_scenes(tmp_path / "photos", 6)
    first, second, same = (
        instar.run(system, "mirror(h)+gamma(2)", photos, out=tmp_path / name, workers=0, name=name)
        for name, system in (("v1", RIGHT), ("v2", FORGETFUL), ("v3", RIGHT))
    )
    report = make_report([first, second, same], images=3)
    (flipped,) = report.flipped.values()
    assert {(pair.run, pair.worse) for pair in flipped} == {("v2", True)}, "v3 answers as v1 does"
    assert [pair.first.name for pair in flipped] == ["gamma(2)", "mirror(h)"] * 2, "the rules in turn"
    assert all(pair.first.verdict["severity"] < 0.5 <= pair.second.verdict["severity"] for pair in flipped)
    assert all(pair.first.follow_up != pair.second.follow_up for pair in flipped)
    html = page(report)
    head = html[html.index("Each violates its rule in one of two runs alone") : html.index("Worse than in v1")]
    assert "answer to the follow-up" in head, "a legend says what the colours are"
    assert "answer to the source" not in head, "which is in neither picture"
    assert "Better than in v1" not in html
    assert all(pair.second.follow_up in html for pair in flipped)
    (backwards,) = make_report([second, first], images=2).flipped.values()
    assert not any(pair.worse for pair in backwards)
    assert not make_report([first, second], images=0).flipped
