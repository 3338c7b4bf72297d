"""What a search for limits finds: of systems that break, never break, break at once, or not in order."""

from __future__ import annotations

import math
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import instar
from instar.analysis.limits import BROKEN, HELD, UNJUDGED, UNKNOWN, next_levels
from instar.engine import Progress
from instar.image import Pixels
from instar.report.boundary_panel import frontier_points, grid_charts
from instar.report.boundary_words import boundary_findings, curve_table, median_table, unfinished_words
from instar.report.findings import findings
from instar.spelling import Parameter, Scale
from instar.suites.grid import Grid, suite_of
from instar.transforms import NotApplicable, TransformationFamily
from tests.toys import rectangles, write_scenes

CASES = 6


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scenes(tmp_path_factory.mktemp("boundary") / "photos", CASES, (96, 72))


def nothing() -> instar.Detections:
    return instar.Detections.from_xyxy([], [])


def dim(pixels: Pixels) -> instar.Detections:
    """Finds nothing in the dark."""
    return nothing() if pixels.max() < 150 else rectangles(pixels)


def blind_spot(pixels: Pixels) -> instar.Detections:
    """Finds nothing in the half-dark, and the same as ever where it is darker."""
    return nothing() if 20 <= pixels.max() < 120 else fixed(pixels)


def fixed(pixels: Pixels) -> instar.Detections:
    """Never looks at more than the size."""
    return instar.Detections.from_xyxy([[2, 2, pixels.shape[1] - 9, 40]], ["thing"])


QUESTIONS: Counter[bytes] = Counter()  # how often each picture was asked about


@instar.declare(deterministic=False)
def nervous(pixels: Pixels) -> instar.Detections:
    """Never the answer that it gave to this picture before, nor one that overlaps it."""
    QUESTIONS[pixels.tobytes()] += 1
    x = 12 * (QUESTIONS[pixels.tobytes()] % 6)
    return instar.Detections.from_xyxy([[x, 2, x + 9, 9]], ["thing"])


def sentences_of(search: instar.Run) -> str:
    return " ".join(one.words for one in findings(search))


def test_half_of_the_cases_break_where_they_do(photos: Path, tmp_path: Path) -> None:
    search = instar.boundary(dim, "gamma", photos, out=tmp_path / "run", workers=0)
    bright, dark = search.median.rows(named=True)
    assert (bright["broken"], dark["broken"]) == (CASES, CASES)
    least = min(
        value for value in search.curve.filter(ray="gamma above 1")["value"] if 230 * (230 / 255) ** (value - 1) < 150
    )
    assert dark["median"] == dark["median_low"] == dark["median_high"] == pytest.approx(least)
    assert (search.limits["last"].fill_null(0) != 0).all()
    assert 0 < dark["visual"] < 1  # of a change that is seen
    again = instar.open_run(tmp_path / "run").boundary()
    assert again.limits.equals(search.limits)
    assert "gamma above 1: half of 6 cases have broken at 5.31 (95 % interval 5.31)" in sentences_of(search.run)


def test_a_curve_in_numbers_says_how_many_levels_it_leaves_out(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else *at risk* falls from row to row by more than what broke there."""
    search = instar.boundary(dim, "gamma", photos, out=tmp_path / "run", workers=0, visual=False)
    (grid,) = search.grids
    whole = curve_table(search, grid)
    assert whole.caption.endswith("judged so far") and len(whole.rows) > 4
    monkeypatch.setattr("instar.report.boundary_words.MOST_LEVELS", 1)
    thin = curve_table(search, grid)
    left_out = len(whole.rows) - len(thin.rows)
    assert left_out and f" {left_out} more level" in thin.caption and thin.caption.endswith("between these rows")


def test_what_never_breaks_has_its_median_beyond_the_far_end(photos: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="every input has the same answer"):
        search = instar.boundary(fixed, "gamma", photos, out=tmp_path / "run", workers=0)
    assert set(search.limits["status"]) == {"unbroken"}
    assert search.median["median"].to_list() == [math.inf, math.inf]
    assert search.curve["share"].min() == 1
    assert search.curve["low"].min() == pytest.approx(0.025 ** (1 / CASES))
    assert "fewer than half of 6 cases break up to the far end (0 of 6 cases break)" in sentences_of(search.run)


@pytest.mark.parametrize(("threshold", "words"), [(None, True), (0.3, False)])
def test_another_threshold_than_that_of_the_suite_is_said(
    photos: Path, tmp_path: Path, threshold: float | None, words: bool
) -> None:
    search = instar.boundary(fixed, "gamma", photos, out=tmp_path / "run", threshold=threshold, workers=0)
    assert ("violated from 0.3 up: `--threshold 0.3` searches by that" in sentences_of(search.run)) is words


def test_what_is_broken_before_has_no_limit_to_search(photos: Path, tmp_path: Path) -> None:
    search = instar.boundary(nervous, "gamma", photos, out=tmp_path / "run", workers=0)
    before = search.limits.filter(status="broken before")["case"].n_unique()
    assert before == CASES
    assert search.median["median_level"].to_list() == [0, 0]
    assert search.median["median"].to_list() == [1, 1]
    assert "broken before anything is changed" in sentences_of(search.run)
    assert search.run.predictions().filter(pl.col("follow_up").str.starts_with("gamma")).is_empty()


@pytest.mark.parametrize("steps", [40, 60])
def test_a_response_that_is_not_monotone_is_said(photos: Path, tmp_path: Path, steps: int) -> None:
    search = instar.boundary(blind_spot, "brightness(add=0)", photos, out=tmp_path / "run", workers=0, steps=steps)
    dark = search.median.filter(pl.col("ray").str.contains("below")).row(0, named=True)
    grid = instar.boundary(
        blind_spot, "brightness(add=0)", photos, out=tmp_path / "grid", workers=0, steps=steps, probes=steps
    )
    whole = grid.median.filter(pl.col("ray").str.contains("below")).row(0, named=True)
    assert whole["broken"] == whole["held_beyond"] == CASES  # with a probe at every level nothing is missed
    assert dark["broken"] == dark["held_beyond"] == CASES
    assert "Not monotone: some broken cases hold again" in sentences_of(search.run)
    assert "brightness multiply below 1 (6 of 6)" in sentences_of(search.run)
    assert search.limits.select("case", "ray", "limit").equals(grid.limits.select("case", "ray", "limit"))
    assert grid.median["asked"].sum() > search.median["asked"].sum()
    # limits may be missed where levels were left out, and a median of them is none; with all levels it is the truth
    assert (dark["not_monotonic"], dark["median"], dark["median_low"], dark["q10"]) == (True, None, None, None)
    own = search.curve.filter(pl.col("ray") == dark["ray"])
    assert own["share"].null_count() == own["low"].null_count() == own.height
    assert (whole["not_monotonic"], whole["median"] is None, whole["median_low"] is None) == (False, False, False)
    (finding,) = (one for one in findings(search.run) if one.code == "boundary.not_monotonic")
    assert finding.figures["ways"][dark["ray"]] == [CASES, CASES]
    assert finding.figures["no_median"] == [dark["ray"]]


def test_a_probe_below_moves_the_limit() -> None:
    truth = np.full(40, HELD, np.uint8)
    truth[[4, 5, *range(25, 40)]] = BROKEN
    states, rounds = np.zeros(40, np.uint8), 0
    while chosen := next_levels(states, 5):
        states[chosen] = truth[chosen]
        rounds += 1
    assert np.flatnonzero(states == BROKEN)[0] == 4
    assert rounds < 20


def test_what_is_not_judged_ends_a_ray() -> None:
    truth = np.full(40, HELD, np.uint8)
    truth[17:] = UNJUDGED
    states = np.zeros(40, np.uint8)
    while chosen := next_levels(states):
        states[chosen] = truth[chosen]
    assert states[16] == HELD
    assert (states != UNKNOWN).sum() <= 10


def halved(image: object, needs: object, rng: object, *, share: float) -> object:
    if share > 0.5:
        raise NotApplicable("no more than half")
    return image, instar.Change.none(image.size)  # type: ignore[attr-defined]


HALF = TransformationFamily(
    "half", "user", "general", halved,
    (Parameter("share", "float", low=0, high=1, ordered=True, scale=Scale(0, above=1)),),
)  # fmt: skip


def test_cases_that_are_lost_on_the_way_count_as_far_as_they_were_judged(photos: Path, tmp_path: Path) -> None:
    search = instar.boundary(rectangles, "tests.analysis.test_boundary:HALF", photos, out=tmp_path / "run", workers=0)
    assert set(search.limits["status"]) == {"lost"}
    assert set(search.limits["last"]) == {0.5}
    last = search.curve.filter(pl.col("value") == 0.5).row(0, named=True)
    assert (last["at_risk"], last["share"]) == (CASES, 1)
    assert search.curve.filter(pl.col("value") > 0.5)["at_risk"].max() == 0
    assert "6 cases were not judged up to the far end" in sentences_of(search.run)


def crashing(pixels: Pixels) -> instar.Detections:
    """Raises an exception in the dark."""
    if pixels.max() < 150:
        raise RuntimeError("too dark")
    return rectangles(pixels)


def test_where_a_system_crashes_at_strong_changes_the_limit_is_not_known(photos: Path, tmp_path: Path) -> None:
    search = instar.boundary(crashing, "gamma", photos, out=tmp_path / "run", workers=0)
    row = search.median.row(1, named=True)
    assert (row["ray"], row["lost"], row["failed"]) == ("gamma above 1", CASES, CASES)
    assert [row[name] for name in ("median", "median_level", "q10", "q90", "visual")] == [None] * 5
    dark = search.curve.filter(ray="gamma above 1")
    judged_to = search.limits.filter(ray="gamma above 1")["last"].max()
    assert dark.filter(pl.col("share").is_not_null())["value"].max() == judged_to == row["judged_to"]
    words = sentences_of(search.run)
    assert "gamma above 1: at which level half of 6 cases have broken is not known. 0 broke" in words
    assert f"no case was judged beyond {row['judged_to']:.3g}" in words
    assert "6 cases were not judged up to the far end (the prediction at a larger change failed)" in words
    _, darker = median_table(search).rows
    assert (darker[2], darker[4], darker[-1]) == ("not known", "not known", "not known")
    (figure,) = grid_charts(search, search.grids[0])
    (points,) = figure.tables.values()
    assert points["value"].max() == judged_to  # the curve ends where the last case was judged
    frontier = instar.boundary(
        crashing, "gamma | brightness(add=0)", photos, out=tmp_path / "two", workers=0, steps=8, visual=False
    )
    points = frontier_points(frontier, frontier.grids[0]).filter(ray="gamma above 1")
    assert points["beyond"].all() and (points["x"] < 10).all()


def test_a_median_that_few_cases_broke_for_is_called_an_estimate(photos: Path, tmp_path: Path) -> None:
    search = instar.boundary(dim, "gamma", photos, out=tmp_path / "run", workers=0, visual=False)
    sure = " ".join(one.words for one in boundary_findings(search))
    assert "estimated" not in sure
    (row,) = search.median.filter(pl.col("ray").str.contains("above")).to_dicts()
    few = {**row, "broken": 2, "lost": 4, "unbroken": 0, "broken_before": 0, "cases": 6}
    told = " ".join(one.words for one in boundary_findings(replace(search, median=pl.DataFrame([few]))))
    assert "an estimated half of 6 cases have broken at" in told
    assert ": 2 broke, and 4 were lost before they did." in told
    assert "the true limits are smaller than these" in told


def test_a_judging_that_nobody_searched_by_says_so(photos: Path, tmp_path: Path) -> None:
    search = instar.boundary(fading, "gamma", photos, out=tmp_path / "run", workers=0, visual=False)
    other = search.run.boundary(judging=search.run.judge(confidence=0.8, margin=0))
    (words,) = unfinished_words(other)
    assert "or it followed another judging, and did not ask all that this one takes" in words
    (words,) = unfinished_words(other, 0.4)
    assert words.startswith("The search followed another threshold or another judging")


def counted(pixels: Pixels) -> instar.Detections:
    """Dim, and leaves a line for every question."""
    with Path(os.environ["LEDGER"]).open("a") as ledger:
        ledger.write(f"{pixels.sum()}\n")
    return dim(pixels)


def test_a_search_that_was_stopped_asks_nothing_again(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(Exception): ...

    ledger = tmp_path / "ledger"
    monkeypatch.setenv("LEDGER", str(ledger))

    def stopping(progress: Progress) -> None:
        if progress.fresh >= 40:
            raise Stopped

    whole = instar.boundary(counted, "gamma", photos, out=tmp_path / "whole", workers=0)
    alone = ledger.read_text().split()
    ledger.unlink()
    for _ in range(2):
        with pytest.raises(Stopped):
            instar.boundary(counted, "gamma", photos, out=tmp_path / "run", workers=0, on_progress=stopping)
    again = instar.boundary(counted, "gamma", photos, out=tmp_path / "run", workers=0)
    assert again.limits.equals(whole.limits)
    calls = ledger.read_text().split()
    assert sorted(calls) == sorted(alone)
    assert len(calls) == again.run.predictions().height
    instar.boundary(counted, "gamma", photos, out=tmp_path / "run", workers=0)
    assert len(ledger.read_text().split()) == len(calls)


def test_an_unfinished_search_leaves_open_cases_out(photos: Path, tmp_path: Path) -> None:
    class Stopped(Exception): ...

    def stopping(progress: Progress) -> None:
        if progress.fresh >= 30:
            raise Stopped

    with pytest.raises(Stopped):
        instar.boundary(dim, "gamma", photos, out=tmp_path / "run", workers=0, on_progress=stopping)
    search = instar.open_run(tmp_path / "run").boundary()
    assert (search.median["unfinished"] > 0).all()
    assert "unfinished" in sentences_of(search.run)


def test_one_case_unreadable_cases_and_a_search_of_whole_numbers(photos: Path, tmp_path: Path) -> None:
    one = instar.boundary(dim, "jpeg", photos / "000.png", out=tmp_path / "one", workers=0)
    assert one.median["cases"].to_list() == [1]
    assert one.median["median"][0] is not None
    assert one.median["median_low"][0] is None  # of one case there is no interval
    assert median_table(one).rows[0][3] == "–"
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "a.png").write_bytes(b"no image")
    with pytest.warns(UserWarning, match="not one input was answered"):
        none = instar.boundary(dim, "gamma", folder, out=tmp_path / "none", workers=0)
    assert none.limits.height == 0
    assert none.median["cases"].to_list() == [0, 0]
    assert "no case has a limit (no case was read)" in next(boundary_findings(none)).words
    (folder / "b.png").write_bytes((photos / "001.png").read_bytes())
    some = instar.boundary(dim, "motion(direction=0)", folder, out=tmp_path / "some", workers=0)
    assert some.limits["case"].to_list() == ["b.png"]
    assert some.limits["limit"].drop_nulls().map_elements(float.is_integer, pl.Boolean).all()


def test_inputs_in_which_nothing_is_found_are_not_judged(photos: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="not one pair was judged"):
        search = instar.boundary(lambda pixels: nothing(), "gamma", photos, out=tmp_path / "run", workers=0)
    assert set(search.limits["status"]) == {"not judged"}
    (reason,) = [one for one in boundary_findings(search) if one.code == "boundary.not_judged"]
    assert reason.figures["pairs"] == 6
    assert search.run.predictions().height == 2 * CASES  # the source, and the same again


def test_a_frontier_has_a_limit_along_each_ray(photos: Path, tmp_path: Path) -> None:
    search = instar.boundary(dim, "gamma | brightness(add=0)", photos, out=tmp_path / "run", workers=0, steps=8)
    assert search.median.height == 8
    both = search.median.filter(ray="gamma above 1, brightness multiply below 1").row(0, named=True)
    alone = search.median.filter(ray="gamma above 1").row(0, named=True)
    assert both["median"] < alone["median"]  # darker twice breaks earlier
    assert both["second"] < 1
    assert alone["second"] is None
    tenth = search.curve.filter(pl.col("ray") == both["ray"], pl.col("share") <= 0.9).sort("level").row(0, named=True)
    assert (both["q10"], both["second_q10"]) == (tenth["value"], tenth["second"])
    (row,) = (row for row in median_table(search).rows if row[0] == both["ray"])
    assert row[4] == f"{both['q10']:.3g}, {both['second_q10']:.3g}"


def test_several_searches_and_another_threshold_share_a_folder(photos: Path, tmp_path: Path) -> None:
    first = instar.boundary(dim, "gamma", photos, out=tmp_path / "run", workers=0)
    more = instar.boundary(dim, "gamma+brightness(add=0)", photos, out=tmp_path / "run", workers=0)
    assert more.median["family"].unique().sort().to_list() == ["brightness(add=0)", "gamma"]
    assert more.limits.filter(family="gamma").drop("visual_change").equals(first.limits.drop("visual_change"))
    never = instar.boundary(dim, "gamma", photos, out=tmp_path / "run", workers=0, threshold=1.5)
    assert set(never.limits.filter(family="gamma")["status"]) == {"unbroken"}


def test_a_run_that_searched_nothing_says_so(photos: Path, tmp_path: Path) -> None:
    run = instar.run(dim, "gamma(2)", photos, out=tmp_path / "run", workers=0)
    with pytest.raises(ValueError, match="holds no search for limits: it is a run of gamma"):
        run.boundary()
    with pytest.raises(ValueError, match="probes is 0 or more"):
        instar.boundary(dim, "gamma", photos, out=tmp_path / "other", probes=-1)


def fading(pixels: Pixels) -> instar.Detections:
    """The less sure the darker."""
    right = rectangles(pixels)
    return instar.Detections.from_xyxy(right.boxes, right.labels, np.full(len(right.boxes), pixels.max() / 255))


def test_limits_by_another_judging_ask_only_what_is_missing(photos: Path, tmp_path: Path) -> None:
    strict = {"confidence": 0.8, "margin": 0}
    usual = instar.boundary(fading, "gamma", photos, out=tmp_path / "run", workers=0, visual=False)
    before = usual.run.predictions().height
    other = instar.boundary(fading, "gamma", photos, out=tmp_path / "run", workers=0, visual=False, options=strict)
    alone = instar.boundary(fading, "gamma", photos, out=tmp_path / "alone", workers=0, visual=False, options=strict)
    least = ["ray", "case", "status", "limit", "last"]
    assert other.judging == alone.judging == "confidence=0.8,margin=0"
    assert other.limits.select(least).equals(alone.limits.select(least))
    assert not other.limits.select(least).equals(usual.limits.select(least))
    # what both searches ask is asked once
    assert before < other.run.predictions().height < before + alone.run.predictions().height - 2 * CASES
    assert other.run.boundary().limits.select(least).equals(usual.limits.select(least))  # the default is still there
    assert instar.open_run(tmp_path / "run").boundary(judging=other.judging).curve.equals(alone.curve)


def test_an_option_that_is_none_is_said_before_anything_is_predicted(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="unknown judging option 'confidense'; did you mean 'confidence'"):
        instar.boundary(fading, "gamma", photos, out=tmp_path / "run", workers=0, options={"confidense": 0.8})
    assert not (tmp_path / "run").exists()
    with pytest.raises(ValueError, match="there is no judging option 'landmarks' for this run"):  # but for another kind
        instar.boundary(fading, "gamma", photos, out=tmp_path / "run", workers=0, options={"landmarks": "hands"})
    assert not list((tmp_path / "run").glob("manifest*"))
    instar.boundary(fading, "gamma", photos, out=tmp_path / "run", workers=0, options={"confidence": "0.8"})


def red_seen(pixels: Pixels) -> instar.Detections:
    """Finds nothing where the red rectangle is dark: how dark, the size of the green one says."""
    own = pixels[..., 0][(pixels[..., 1] < 40) & (pixels[..., 2] < 40)]
    return rectangles(pixels) if own.size and own.max() > 60 + int((pixels[..., 1] > 150).sum()) % 90 else nothing()


def test_a_change_of_a_zone_is_searched_as_a_whole_grid_says(photos: Path, tmp_path: Path) -> None:
    family, zones = "filtered(gamma, red)", "tests.engine.zones:painted"
    search = instar.boundary(red_seen, family, photos, out=tmp_path / "run", workers=0, zones=zones, visual=False)
    grid = instar.run(red_seen, suite_of([Grid.of(family)]), photos, out=tmp_path / "grid", workers=0, zones=zones)
    first = ["ray", "case", "status", "limit", "last"]
    dark = search.limits.filter(ray="gamma in red above 1")
    assert dark.select(first).equals(grid.boundary().limits.filter(ray="gamma in red above 1").select(first))
    assert dark["limit"].n_unique() > 1
    assert dark["rule"].drop_nulls().str.starts_with("filtered(gamma(").all()
    assert search.run.predictions().height <= 0.3 * grid.predictions().height
    none = instar.boundary(red_seen, "filtered(gamma, sky)", photos, out=tmp_path / "none", workers=0, zones=zones)
    assert set(none.limits["status"]) == {"not applicable"}


def test_shards_have_the_limits_of_the_whole(photos: Path, tmp_path: Path) -> None:
    whole = instar.boundary(dim, "gamma", photos, out=tmp_path / "whole", workers=0, visual=False)
    parts = [
        instar.boundary(dim, "gamma", photos, out=tmp_path / "run", workers=0, visual=False, shard=f"{number}/4")
        for number in (1, 2, 3, 4)
    ]
    counts = [part.limits["case"].n_unique() for part in parts]
    assert counts == [0, 0, 3, 3]
    merged = instar.merge([part.run.folder for part in parts], out=tmp_path / "run")
    assert merged.searched  # whose rates are those of no rule, whatever shard comes first
    assert merged.boundary().limits.sort("ray", "case").equals(whole.limits.sort("ray", "case"))
    assert merged.boundary().curve.equals(whole.curve)
    again = instar.boundary(dim, "gamma", photos, out=tmp_path / "run", workers=0, visual=False)
    assert again.run.outcome is not None
    assert again.run.outcome.fresh == 0


def test_where_no_probe_is_left_it_is_said(photos: Path, tmp_path: Path) -> None:
    """Of few levels bisection takes all that a search may: an island is missed, and the reader knows that it may be."""
    few = instar.boundary(blind_spot, "brightness(add=0)", photos, out=tmp_path / "run", workers=0, steps=8)
    assert few.limits["held_beyond"].sum() == 0
    words = sentences_of(few.run)
    ways = "brightness multiply below 1 (6 of 6 cases); brightness multiply above 1 (6 of 6 cases)"
    assert f"Whether the response is monotone is not known for {ways}" in words
    assert (
        "bisection alone asks a case about up to 8 of 16 levels: with the source and the unchanged input 56\xa0%"
        in words
    )
    more = instar.boundary(blind_spot, "brightness(add=0)", photos, out=tmp_path / "run", workers=0, steps=8, probes=8)
    assert "is not known" not in sentences_of(more.run)
    assert more.limits["held_beyond"].sum() == CASES
