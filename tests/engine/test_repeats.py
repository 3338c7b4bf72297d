"""The last round of a run predicts violating pairs a second time: each once, whatever happens meanwhile."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import instar
from instar import Detections
from instar.analysis import Repeats, repeated
from instar.analysis.repeats import LEAST
from instar.datasets import dataset
from instar.engine import Progress, predict
from instar.engine.extent import Extent
from instar.store import KEY, Store
from tests.toys import rectangles, write_scenes

FAULTY = f"{__name__}:faulty"
RULES = "mirror(h) + gamma(2) + noise(5) => detections(draws=2)"
CASES = 12


@instar.declare(kind="detections", version="1")
def faulty(pixels: np.ndarray) -> Detections:
    """Misses an object in dark images."""
    found = rectangles(pixels)
    return Detections.from_xyxy(found.boxes[1:], found.labels[1:]) if pixels.mean() < 70 else found


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return write_scenes(tmp_path / "photos", CASES)


def stored(out: Path) -> set[tuple[str, str, int, int]]:
    rows = Store(out).predictions(list(KEY), again=True).rows()
    assert len(rows) == len(set(rows)), "a key appears twice"
    return set(rows)


def seconds(out: Path) -> set[tuple[str, str, int]]:
    return {(case, name, draw) for case, name, draw, repeat in stored(out) if repeat}


@pytest.mark.parametrize("hands", [{"workers": 0}, {"workers": 2}, {"workers": 1, "predictors": 1}], ids=str)
def test_a_violating_pair_and_its_source_are_predicted_a_second_time(
    photos: Path, tmp_path: Path, hands: dict[str, int]
) -> None:
    out = tmp_path / "run"
    run = instar.run(FAULTY, RULES, photos, out=out, **hands)  # type: ignore[arg-type]
    cases = run.cases()["case"]
    assert seconds(out) == {(case, name, 0) for case in cases for name in ("source", "gamma(2)")}
    assert run.outcome is not None and (run.outcome.fresh, run.outcome.again) == (5 * CASES, 2 * CASES)
    assert run.predictions()["repeat"].unique().to_list() == [0]
    assert run.output(cases[0], "gamma(2)", repeat=1).says() == run.output(cases[0], "gamma(2)").says()
    assert Extent.of(run.store).missing == 0
    again = instar.run(FAULTY, RULES, photos, out=out, **hands)  # type: ignore[arg-type]
    assert again.outcome is not None and (again.outcome.fresh, again.outcome.again) == (0, 0)


def test_identity_is_the_second_prediction_of_the_source(photos: Path, tmp_path: Path) -> None:
    instar.run(FAULTY, f"identity + {RULES}", photos, out=tmp_path / "run", workers=0)
    assert {name for _, name, _ in seconds(tmp_path / "run")} == {"gamma(2)"}


def test_all_draws_of_a_violating_pair_are_predicted_again(photos: Path, tmp_path: Path) -> None:
    rule = "gamma(2) | noise(5) => detections(draws=2)"
    instar.run(FAULTY, rule, photos, out=tmp_path / "run", workers=0)
    asked = {(name, draw) for _, name, draw in seconds(tmp_path / "run")}
    assert asked == {("source", 0), ("gamma(2) | noise(5)", 0), ("gamma(2) | noise(5)", 1)}


@pytest.mark.parametrize("stop", [5 * CASES, 5 * CASES + 2, 5 * CASES + 9])
def test_a_run_that_was_stopped_in_its_last_round_goes_on_there(photos: Path, tmp_path: Path, stop: int) -> None:
    class Stopped(Exception): ...

    def stopping(progress: Progress) -> None:
        if progress.fresh >= stop:
            raise Stopped

    out = tmp_path / "run"
    with pytest.raises(Stopped):
        instar.run(FAULTY, RULES, photos, out=out, workers=0, on_progress=stopping)
    before = stored(out)
    assert 5 * CASES <= len(before) < 7 * CASES
    if len(before) > 5 * CASES:
        assert Extent.of(Store(out)).missing > 0
    run = instar.run(FAULTY, RULES, photos, out=out, workers=0)
    assert run.outcome is not None and run.outcome.fresh == 0
    assert len(before) + run.outcome.again == len(stored(out)) == 7 * CASES
    assert Extent.of(run.store).missing == 0
    instar.run(FAULTY, RULES, photos, out=tmp_path / "whole", workers=0)
    assert stored(out) == stored(tmp_path / "whole")


def test_a_sample_of_many_violating_pairs(tmp_path: Path) -> None:
    photos = write_scenes(tmp_path / "photos", LEAST + 10)
    run = instar.run(FAULTY, "gamma(2)", photos, out=tmp_path / "run", workers=0)
    assert run.any_rule()["violated"] == LEAST + 10
    assert run.outcome is not None and run.outcome.again == 2 * LEAST
    found = repeated(run)
    assert found is not None and found.pairs == LEAST


def test_shards_are_asked_each_and_what_is_merged_is_not_asked_again(photos: Path, tmp_path: Path) -> None:
    folders = []
    for number in (1, 2):
        part = instar.run(FAULTY, RULES, photos, out=tmp_path / "part", workers=0, shard=f"{number}/2")
        assert part.outcome is not None and part.outcome.again == 2 * part.cases().height
        folders.append(part.folder)
    merged = instar.merge(folders, out=tmp_path / "run")
    assert merged.outcome is not None and merged.outcome.fresh == 5 * CASES
    assert Extent.of(merged.store).missing == 0
    found = repeated(merged)
    assert found is not None and (found.pairs, found.differing) == (CASES, 0)
    again = instar.run(FAULTY, RULES, photos, out=tmp_path / "run", workers=0)
    assert again.outcome is not None and (again.outcome.fresh, again.outcome.again) == (0, 0)


def test_a_run_until_rates_are_known_is_asked_at_its_end(tmp_path: Path) -> None:
    photos = write_scenes(tmp_path / "photos", 60)
    run = instar.run(FAULTY, "mirror(h) + gamma(2)", photos, out=tmp_path / "run", workers=0, until=0.2)
    assert run.manifest.until is not None and run.predictions().height < 3 * 60
    assert run.outcome is not None and run.outcome.again > 0
    again = instar.run(FAULTY, "mirror(h) + gamma(2)", photos, out=tmp_path / "run", workers=0, until=0.2)
    assert again.outcome is not None and (again.outcome.fresh, again.outcome.again) == (0, 0)


def test_judging_predicts_nothing(photos: Path, tmp_path: Path) -> None:
    run = instar.run(FAULTY, RULES, photos, out=tmp_path / "run", workers=0)
    before = stored(tmp_path / "run")
    run.judge(confidence=0.3)
    assert stored(tmp_path / "run") == before


def test_needs_and_the_source_output_are_there_in_the_last_round(photos: Path, tmp_path: Path) -> None:
    """Follow-ups of the last round are the first ones: they are made with the same needs."""
    zones = "tests.engine.zones:painted"
    rule = "filtered(gamma(2.5), background)"
    run = instar.run(FAULTY, rule, photos, out=tmp_path / "run", workers=0, zones=zones)
    assert run.any_rule()["violated"] > 0
    both = run.store.predictions(again=True).filter(pl.col("follow_up") == rule)
    assert both.filter(pl.col("repeat") == 1).height > 0
    assert set(both["status"]) == {"ok"}
    found = repeated(run)
    assert found is not None and found.differing == 0


def test_the_choice_is_the_same_for_a_store_of_the_same_answers(photos: Path, tmp_path: Path) -> None:
    names = []
    for name in ("one", "two"):
        store = Store(tmp_path / name)
        predict(FAULTY, instar.suite(RULES), dataset(photos), store, workers=0, seed=3)
        names.append(Repeats(store)([case.id for case in dataset(photos).cases()]))
    assert names[0] == names[1] and len(names[0]) == CASES
