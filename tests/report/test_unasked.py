"""What was not asked, or not judged, is not told or drawn as if it were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import instar
from instar.analysis.rates import Judged
from instar.outputs.detections import Detections
from instar.report.findings import findings
from instar.report.page import make_report, page
from instar.report.sentences import headline
from tests.missing import module
from tests.toys import rectangles, write_scenes

RIGHT = "tests.toys:rectangles"


def blind(pixels: np.ndarray) -> Detections:
    return Detections.from_xyxy(np.empty((0, 4)), [])


def broken(pixels: np.ndarray) -> Detections:
    raise RuntimeError("no weights")


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scenes(tmp_path_factory.mktemp("unasked") / "photos", 4)


def test_a_run_that_has_asked_nothing_yet_does_not_say_that_every_pair_was_judged(photos: Path, tmp_path: Path) -> None:
    run = instar.run(rectangles, "identity+mirror(h)", photos, out=tmp_path / "run", workers=0)
    run.verdicts()
    section = make_report([run], images=0).runs[0].parts[0].section
    nothing = Judged(pairs=0, judged=0, nothing_found=0, not_applicable=0, failed=0, cases=0, empty=0)
    object.__setattr__(section, "judged", nothing)
    object.__setattr__(section, "curves", section.curves.with_columns(judged=0 * section.curves["judged"]))
    words = headline(section, section.start)
    assert any("nothing was judged" in sentence for sentence in words)
    assert "Every pair was judged." not in words


def test_the_noise_of_one_case_is_told_in_its_number(photos: Path, tmp_path: Path) -> None:
    run = instar.run(rectangles, "identity+mirror(h)", photos, out=tmp_path / "run", workers=0, limit=1)
    section = make_report([run], images=0).runs[0].parts[0].section
    words = " ".join(headline(section, section.start))
    assert "does not stray from its own answers in the only case" in words and "none of 1 case" not in words


def test_a_run_of_which_everything_failed_says_so_first(photos: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="not one input was answered"):
        run = instar.run(broken, "mirror(h)+gamma(0.5)", photos, out=tmp_path / "run", workers=0)
    first, second = findings(run)[:2]
    assert first.words == "Every pair failed, so that nothing could be judged." and first.against
    assert second.words.startswith("8 pairs of 2 rules failed (error)")


def test_a_run_that_judged_nothing_has_no_band_beside_the_others(photos: Path, tmp_path: Path) -> None:
    """Its interval is from 0 to 1, and coloured the whole figure."""
    some = instar.run(rectangles, "mirror(h)", photos, out=tmp_path / "some", workers=0, name="some")
    with pytest.warns(UserWarning, match="not one pair was judged"):
        none = instar.run(blind, "mirror(h)", photos, out=tmp_path / "none", workers=0, name="none")
    ((_, _, (curves, _)),) = make_report([some, none], images=0).comparisons
    assert set(curves.tables["compare-curves"]["run"]) == {"some"}


def test_levels_that_a_search_did_not_ask_are_no_rules_of_its_report(photos: Path, tmp_path: Path) -> None:
    module("vl_convert")
    run = instar.boundary(RIGHT, "gamma", photos, out=tmp_path / "run", workers=0, visual=False).run
    report = make_report([run], images=0)
    section = report.runs[0].parts[0].section
    assert 0 < section.rules < len(run.manifest.rules) - 1
    assert section.rates.filter(judged=0).is_empty()
    assert "At risk are those that had not broken before it, and were judged so far.</p>" in page(report)


def test_rules_that_are_violated_equally_often_are_in_the_order_of_their_numbers(photos: Path, tmp_path: Path) -> None:
    rules = [f"brightness({add}, 1)" for add in (10, 2, 20, -5)]
    run = instar.run(rectangles, " + ".join(rules), photos, out=tmp_path / "run", workers=0)
    section = make_report([run], images=0).runs[0].parts[0].section
    assert section.at(section.start)["name"].to_list() == [f"brightness({add}, 1)" for add in (-5, 2, 10, 20)]


def test_an_axis_of_thresholds_has_even_lines(photos: Path, tmp_path: Path) -> None:
    from dataclasses import replace

    from instar.report.chart import threshold_title

    run = instar.run(rectangles, "mirror(h)", photos, out=tmp_path / "run", workers=0)
    section = make_report([run], images=0).runs[0].parts[0].section
    assert threshold_title(replace(section, unit="shares of the follow-ups")) == [
        "threshold in shares of the follow-ups"
    ]
    assert threshold_title(replace(section, unit="IoU lost by the worst class")) == [
        "threshold in IoU lost",
        "by the worst class",
    ]
