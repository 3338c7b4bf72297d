"""What is asked next may depend on what was answered: rounds of a choice, in one run folder."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import polars as pl
import pytest

import instar
from instar.datasets import dataset
from instar.engine import Outcome, Progress, predict
from instar.engine.extent import Extent
from instar.store import Store
from tests.toys import write_scenes

LEVELS = ("gamma(1.5)", "gamma(2)", "gamma(3)")
SYSTEM = "tests.toys:rectangles"


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return write_scenes(tmp_path / "photos", 3, (64, 48))


class Climb:
    """Asks the first case about one level after the other, the second about the highest, the third about nothing."""

    def __init__(self, store: Store) -> None:
        self.store, self.rounds = store, 0

    def __call__(self, cases: Sequence[str]) -> Mapping[str, Collection[str]]:
        self.rounds += 1
        rows = self.store.predictions(["case", "follow_up"])
        levels = set(rows.filter(pl.col("case") == cases[0])["follow_up"])
        level = next((level for level in LEVELS if level not in levels), None)
        first = {} if level is None else {cases[0]: [level]}
        return {**first, cases[1]: LEVELS[-1:]}


def climbed(photos: Path, out: Path, **more: int) -> tuple[Outcome, Climb]:
    store = Store(out)
    choice = Climb(store)
    rules = instar.suite("+".join(LEVELS))
    return predict(SYSTEM, rules, dataset(photos), store, choice=choice, **more), choice  # type: ignore[arg-type]


def follow_ups(out: Path) -> dict[str, set[str]]:
    rows = Store(out).predictions(["case", "follow_up"])
    assert rows.is_duplicated().sum() == 0
    return {case: set(part["follow_up"]) for (case,), part in rows.group_by("case")}


@pytest.mark.parametrize("hands", [{"workers": 0}, {"workers": 2}, {"workers": 1, "predictors": 1}], ids=str)
def test_cases_are_asked_what_follows_from_their_answers(photos: Path, tmp_path: Path, hands: dict[str, int]) -> None:
    outcome, choice = climbed(photos, tmp_path / "run", **hands)
    assert choice.rounds == 5  # one for each level, and two that choose nothing new
    assert outcome.fresh == 4 + 2
    assert follow_ups(tmp_path / "run") == {"000.png": {"source", *LEVELS}, "001.png": {"source", LEVELS[-1]}}
    assert Extent.of(Store(tmp_path / "run")).missing == 0
    assert climbed(photos, tmp_path / "run", **hands)[0].fresh == 0


def test_rounds_of_a_run_that_was_stopped_go_on_where_they_were(photos: Path, tmp_path: Path) -> None:
    class Stopped(Exception): ...

    def stopping(progress: Progress) -> None:
        if progress.fresh >= 4:
            raise Stopped

    store = Store(tmp_path / "run")
    rules = instar.suite("+".join(LEVELS))
    with pytest.raises(Stopped):
        predict(SYSTEM, rules, dataset(photos), store, choice=Climb(store), workers=0, on_progress=stopping)
    before = store.predictions(["case"]).height
    outcome, _ = climbed(photos, tmp_path / "run", workers=0)
    assert 0 < before < 6
    assert outcome.fresh == 6 - before


def test_an_input_that_is_not_the_one_of_before_ends_the_rounds(photos: Path, tmp_path: Path) -> None:
    """Nothing more is stored of it, so that a choice would ask about it for ever."""
    store = Store(tmp_path / "run")
    one = instar.suite(LEVELS[0])
    predict(SYSTEM, one, dataset(photos), store, workers=0)
    (photos / "000.png").write_bytes((photos / "002.png").read_bytes())
    outcome, choice = climbed(photos, tmp_path / "run", workers=0)
    assert choice.rounds == 3
    assert sum("000.png is not the input" in note for note in outcome.notes) == 1
    assert follow_ups(tmp_path / "run")["001.png"] == {"source", LEVELS[0], LEVELS[-1]}


@pytest.mark.parametrize("hands", [{"workers": 0}, {"workers": 2}, {"workers": 1, "predictors": 1}], ids=str)
def test_rules_join_a_run_between_rounds(photos: Path, tmp_path: Path, hands: dict[str, int]) -> None:
    """A search makes its questions of the answers: nobody knows all rules before, and no model is loaded twice."""
    joining = "gamma(2) | mirror(h) => detections"

    class Joins(Climb):
        def __call__(self, cases: Sequence[str]) -> Mapping[str, Collection[str]]:
            self.rounds += 1
            return {cases[0]: LEVELS[:1]} if self.rounds == 1 else {cases[0]: LEVELS[:1], cases[2]: [joining]}

    store = Store(tmp_path / "run")
    suite, cases = instar.suite("+".join(LEVELS)), dataset(photos)
    outcome = predict(SYSTEM, suite, cases, store, choice=Joins(store), **hands)  # type: ignore[arg-type]
    assert outcome.fresh == 4
    assert follow_ups(tmp_path / "run")["002.png"] == {"source", "gamma(2) | mirror(h)"}
    run = instar.open_run(tmp_path / "run")
    assert run.manifest.rules == (*(f"{level} => detections" for level in LEVELS), joining)
    assert run.verdicts().filter(rule=joining)["case"].unique().to_list() == ["002.png"]
    again = predict(SYSTEM, suite, cases, store, choice=Joins(store), **hands)  # type: ignore[arg-type]
    assert again.fresh == 0
