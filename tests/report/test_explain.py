"""One image explained: the right objects, the right reason, the right picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from instar.report import explain, explanation_picture
from tests.perfect.test_object_relevance import background_only, background_shortcut, ran, seen


def test_each_object_has_its_reason(tmp_path: Path) -> None:
    rules = "erase(1) => presence(gone) + background_noise(16) => presence(kept)"
    fine = explain(ran(seen, tmp_path / "a", rules), "0")
    assert [(one.label, one.reliable) for one in fine] == [("red", True), ("green", True), ("blue", True)]
    assert all("found in the source, for its own sake: 2 rules" in one.why for one in fine)
    kept = explain(ran(background_only, tmp_path / "b", rules), "0")
    assert not any(one.reliable for one in kept)
    assert all("still found in 3 of 3 follow-ups of erase(1)" in one.why for one in kept)
    lost = explain(ran(background_shortcut, tmp_path / "c", rules), "0")
    assert all(not one.reliable and "lost in 3 of 3 follow-ups of background_noise(16)" in one.why for one in lost)


def test_what_no_rule_says_anything_about_is_not_judged(tmp_path: Path) -> None:
    found = explain(ran(seen, tmp_path, "erase(0.5) => presence(gone)"), "0")
    assert [one.reliable for one in found] == [None, None, None]
    assert "claimed from 0.9 up" in found[0].why


def test_other_runs_and_cases_are_refused_in_words(tmp_path: Path) -> None:
    run = ran(seen, tmp_path / "a", "erase(1) => presence(gone)")
    with pytest.raises(KeyError, match="case"):
        explain(run, "nobody")
    other = ran(seen, tmp_path / "b", "mirror(h)")
    with pytest.raises(ValueError, match="object-relevance"):
        explain(other, "0")


def test_the_picture_needs_the_pictures(tmp_path: Path) -> None:
    run = ran(seen, tmp_path, "erase(1) => presence(gone)")
    with pytest.raises(Exception, match="in memory only"):
        explanation_picture(run, "0")
