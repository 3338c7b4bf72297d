"""What a page says of runs that are judged by two relations agrees with what a terminal says of them."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import instar
from instar import Detections
from instar.analysis.comparison import differences, sides
from instar.api import NothingTold
from instar.report import show_run
from instar.report.console import PlainConsole
from instar.report.findings import findings
from instar.report.limits import limit_words
from instar.report.page import make_report, page
from tests.toys import rectangles, write_scenes

SUITE = "gamma(0.5) + mirror(h) + erase(1, only=0) => presence(gone) + erase(1, only=1) => presence(gone)"
NOTHING = Detections.from_xyxy(np.zeros((0, 4)), [], [])


def good(pixels: np.ndarray) -> Detections:
    return rectangles(pixels)


def lost_in_the_light(pixels: np.ndarray) -> Detections:
    """Finds nothing in bright images."""
    return NOTHING if pixels.mean() > 130 else rectangles(pixels)


def half_blind(pixels: np.ndarray) -> Detections:
    """Finds nothing in some images, be they mirrored or not."""
    return NOTHING if int(pixels.sum()) % 7 < 3 else rectangles(pixels)


def nothing(pixels: np.ndarray) -> Detections:
    return NOTHING


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[instar.Run]:
    folder = tmp_path_factory.mktemp("two")
    photos = write_scenes(folder / "photos", 8)
    return [instar.run(one, SUITE, photos, out=folder / one.__name__, workers=0) for one in (good, lost_in_the_light)]


def test_a_rule_has_the_same_corrected_p_on_the_page_and_in_the_terminal(runs: list[instar.Run]) -> None:
    """A page that corrects for the rules of one relation alone calls sure what the terminal calls unsure."""
    terminal = differences(sides(*runs))
    expected = {rule.partition(" =>")[0]: p for rule, p in terminal.select("group", "p_corrected").iter_rows()}
    comparisons = [one for _, one, _ in make_report(runs, images=0).comparisons]
    assert len(comparisons) == 2
    shown = {
        rule: p
        for one in comparisons
        for rule, p in one.differences[one.section.start].select("rule", "p_corrected").iter_rows()
    }
    assert shown == pytest.approx(expected)
    light = terminal.filter(group="gamma(0.5) => detections").row(0, named=True)
    assert light["p_corrected"] == pytest.approx(4 * light["p"]) and light["p"] == pytest.approx(2 / 2**8)


def test_a_third_run_changes_no_p_of_the_first_two(runs: list[instar.Run]) -> None:
    """A page that corrects over all runs together calls unsure what `instar compare` calls sure."""
    alone = {row["rule"]: row["p_corrected"] for row in _differences(runs)}
    beside = _differences([*runs, runs[1]])
    assert len(beside) == 2 * len(alone)
    assert [row["p_corrected"] for row in beside] == pytest.approx([alone[row["rule"]] for row in beside])


def test_of_three_runs_each_that_surely_finds_less_than_the_first_is_named(
    runs: list[instar.Run], tmp_path: Path
) -> None:
    """What is not found breaks no rule, and its lower severities would look like merit."""

    def largest(pixels: np.ndarray) -> Detections:
        boxes = rectangles(pixels)
        kept = int(np.argmax(np.prod(boxes.boxes[:, 2:] - boxes.boxes[:, :2], 1)))
        return Detections.from_xyxy(boxes.boxes[[kept]], [boxes.labels[kept]], boxes.scores[[kept]])

    photos = write_scenes(tmp_path / "photos", 8)
    third = instar.run(largest, SUITE, photos, out=tmp_path / "largest", workers=0, name="largest")
    less = "largest finds 8 in the unchanged inputs of 8 cases, "
    for several, count in (([*runs, third], 1), ([third, *runs], 2)):
        caveats = [one for one in make_report(several, images=0).leading if one.code == "compare.finds_less"]
        assert len(caveats) == count and all(one.words.startswith(less) for one in caveats)
        assert all(one.figures["fewer_in"] == "largest" for one in caveats)
    again = make_report([runs[0], *runs], images=0).leading
    assert "compare.finds_less" not in [one.code for one in again]


def test_runs_that_judged_different_cases_say_whose_cases_the_first_figures_count(tmp_path: Path) -> None:
    photos = write_scenes(tmp_path / "photos", 8)
    systems = good, half_blind
    pair = [instar.run(one, "mirror(h)", photos, out=tmp_path / one.__name__, workers=0) for one in systems]
    words = "Each run counts the cases that it judged itself; the differences below count those that both judged."
    assert words in page(make_report(pair, images=0))
    assert words not in page(make_report([pair[0], pair[0]], images=0))


def _differences(runs: list[instar.Run]) -> list[dict[str, Any]]:
    comparisons = [one for _, one, _ in make_report(runs, images=0).comparisons]
    return [row for one in comparisons for row in one.differences[one.section.start].to_dicts()]


def test_pairs_to_which_a_rule_does_not_apply_are_not_said_to_be_kept(tmp_path: Path) -> None:
    """Where nothing is found there is no object to erase: the default options count no such pair as kept."""
    photos = write_scenes(tmp_path / "photos", 3)
    rules = "gamma(0.5) + erase(1, only=0) => presence(gone)"
    with pytest.warns(NothingTold):
        blind = instar.run(nothing, rules, photos, out=tmp_path / "run", workers=0)
    text = page(make_report([blind], images=0))
    assert "The system found nothing in 3 of 3 source images" in text
    assert "count the pair as kept" not in text


def test_thresholds_of_many_relations_are_said_once_and_not_in_the_headline(
    runs: list[instar.Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four relations have seven lines of thresholds: before every table, and in bold, they bury what was found."""
    run, limits = runs[1], limit_words(runs[1])
    for longest, times in ((10_000, 2), (20, 1)):
        for module in ("findings", "terminal"):
            monkeypatch.setattr(sys.modules[f"instar.report.{module}"], "LONG", longest)
        console = PlainConsole(file=io.StringIO(), width=2000)
        show_run(console, run)
        text = console.file.getvalue()  # type: ignore[attr-defined]
        assert text.count(limits) > 1 if times > 1 else text.count(limits) == 1
        assert ("violated from the severities up that are said above" in text) is (times == 1)
        (accusing,) = [each for each in findings(run) if "violate at least one rule" in each.words]
        assert accusing.against and (limits in accusing.words) is (times > 1)
        assert [each.against for each in findings(run) if limits in each.words] == [times > 1]
