"""Which violations are real, as people marked them: what counts, for which pairs, and how sure the share is."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import instar
from instar.analysis import by_case
from instar.analysis.precision import ANOTHER, KEPT, UNJUDGED, VIOLATED, marked, precision
from instar.stats import binomial_bounds, clustered_share
from instar.store import MARKS, add_marks, new_mark, stored_marks
from tests.toys import rectangles, write_scenes

HALF, SHIFT = "resolution(0.5) => detections", "mirror(h) => detections"


def blind_to_red(pixels: np.ndarray) -> instar.Detections:
    """Finds every rectangle, but in a mirrored image, where red is at the right, not the red one; and all lie lower in
    a small image."""
    boxes = rectangles(pixels)
    right = [label for _, label in sorted(zip(boxes.boxes[:, 0], boxes.labels, strict=True))][-1:] == ["red"]
    kept = np.array([not (right and label == "red") for label in boxes.labels], bool)
    lower = np.array([0, 9, 0, 9]) * (pixels.shape[1] < 160)
    return instar.Detections.from_xyxy(boxes.boxes[kept] + lower, np.array(boxes.labels)[kept].tolist())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("precision")
    write_scenes(folder / "images", 8)
    suite = instar.Suite("two", tuple(map(instar.rule, ("identity", "mirror(h)", "resolution(0.5)"))))
    instar.run(blind_to_red, suite, folder / "images", out=folder / "run", workers=0, zones="none")
    return folder / "run"


@pytest.fixture
def run(made: Path, tmp_path: Path) -> instar.Run:
    return instar.open_run(shutil.copytree(made, tmp_path / "run"))


@pytest.fixture
def mark(run: instar.Run) -> Callable[..., None]:
    """Marks a pair by what it is shown with, or about another target."""
    worst = {(row["case"], row["rule"]): row["target"] for row in by_case(run.verdicts()).to_dicts()}

    def marking(number: int, rule: str, word: str, target: str | None = None) -> None:
        case = f"{number:03d}.png"
        one = new_mark(case, rule, worst[case, rule] if target is None else target, word)
        add_marks(run.store, {one.key: one})

    return marking


def rows(run: instar.Run) -> dict[str, dict[str, object]]:
    return {row["name"]: row for row in precision(run).to_dicts()}


def test_every_pair_is_violated_so_that_marks_count(run: instar.Run) -> None:
    rates = dict(run.rates().select("rule", "violated").iter_rows())
    assert rates[SHIFT] == 8 and rates[HALF] == 8


def test_precision_is_the_share_of_the_marked_that_is_real(run: instar.Run, mark: Callable[..., None]) -> None:
    """What is unclear is counted, and counts in no share; a rule's interval is Clopper and Pearson's."""
    for number, word in enumerate(("real", "real", "real", "false alarm", "unclear")):
        mark(number, SHIFT, word)
    row = rows(run)[SHIFT]
    assert [row[name] for name in ("violated", "real", "false_alarm", "unclear")] == [8, 3, 1, 1]
    assert row["precision"] == 0.75
    assert (row["low"], row["high"]) == pytest.approx(binomial_bounds(3, 4, 0.975))


def test_without_marks_or_with_unclear_ones_alone_there_is_no_share(run: instar.Run, mark: Callable[..., None]) -> None:
    assert precision(run).is_empty()
    mark(0, SHIFT, "unclear")
    assert rows(run)[SHIFT]["precision"] is None


def test_pairs_of_one_case_are_a_cluster(run: instar.Run, mark: Callable[..., None]) -> None:
    """Two rules that say the same of the same images are no twice as many images."""
    for number in range(6):
        for rule in (SHIFT, HALF):
            mark(number, rule, "real" if number % 2 else "false alarm")
    table = rows(run)
    every, alone = table["any rule"], table[SHIFT]
    assert (every["real"], every["precision"]) == (6, 0.5)
    assert every["high"] - every["low"] >= alone["high"] - alone["low"] - 1e-9  # type: ignore[operator]


def test_a_mark_of_a_pair_that_is_not_violated_any_more_counts_for_nothing(
    run: instar.Run, mark: Callable[..., None]
) -> None:
    mark(0, SHIFT, "real")
    assert marked(run)["state"].to_list() == [VIOLATED]
    assert marked(run, 2.0)["state"].to_list() == [KEPT]
    assert precision(run, 2.0).is_empty() and len(stored_marks(run.store)) == 1


def test_a_mark_about_another_target_than_the_worst_counts_for_nothing(
    run: instar.Run, mark: Callable[..., None]
) -> None:
    """The red box was a false alarm; that says nothing of the blue one, which another judging finds worse."""
    mark(0, SHIFT, "false alarm", target="99")
    assert marked(run)["state"].to_list() == [ANOTHER]


def test_a_mark_without_a_target_is_of_the_pair_whatever_is_worst(run: instar.Run, mark: Callable[..., None]) -> None:
    mark(0, SHIFT, "real", target="")
    assert rows(run)[SHIFT]["real"] == 1
    mark(0, SHIFT, "false alarm")  # what is said of the worst target goes before it, and the pair counts once
    row = rows(run)[SHIFT]
    assert (row["real"], row["false_alarm"]) == (0, 1)


def test_a_mark_of_a_pair_without_a_severity_counts_for_nothing(run: instar.Run) -> None:
    one = new_mark("gone.png", SHIFT, "0", "real")
    add_marks(run.store, {one.key: one})
    assert marked(run)["state"].to_list() == [UNJUDGED] and precision(run).is_empty()


def test_a_judging_anew_keeps_what_was_marked(run: instar.Run, mark: Callable[..., None]) -> None:
    mark(0, SHIFT, "real")
    run.judge(confidence=0.4)
    (name,) = [judging for judging in run.store.judgings() if judging != "default"]
    assert marked(run, judging=name)["state"].to_list() == [VIOLATED]


def test_the_interval_of_clusters_is_the_exact_one_where_each_has_one_trial() -> None:
    assert clustered_share([1] * 3 + [0] * 7, [1] * 10) == pytest.approx(binomial_bounds(3, 10, 0.975))
    assert clustered_share([], []) == (0.0, 1.0)
    low, high = clustered_share([5, 5, 5], [5, 5, 5])  # all alike: as much as three cases tell
    assert (low, high) == pytest.approx((binomial_bounds(3, 3, 0.975)[0], 1.0))


@pytest.mark.parametrize(("cases", "most", "alike"), [(30, 5, 1.0), (12, 8, 0.3), (60, 1, 1.0)])
def test_the_interval_covers_where_pairs_of_one_case_are_alike(cases: int, most: int, alike: float) -> None:
    """Clusters whose own share varies from case to case, so that their pairs tell less than as many cases."""
    rng = np.random.default_rng(0)
    share, times, covered = 0.7, 300, 0
    for _ in range(times):
        trials = rng.integers(1, most + 1, cases)
        hits = rng.binomial(trials, rng.beta(share * alike, (1 - share) * alike, cases))
        low, high = clustered_share(hits, trials)
        covered += low <= share <= high
    assert covered / times >= 0.93


def test_marks_are_a_table(run: instar.Run, mark: Callable[..., None]) -> None:
    for number, word in enumerate(MARKS):
        mark(number, HALF, word)
    table = marked(run)
    assert table["mark"].to_list() == list(MARKS)
    assert table.schema["severity"] == pl.Float64 and table["severity"].min() > 0  # type: ignore[operator]
