"""Cases are asked in random order, and rules drop out when enough is known of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import instar
from instar.analysis.until import looks, random_order
from instar.engine import Progress
from instar.gate import checked, read_policy
from instar.image import Pixels
from instar.report.findings import findings
from tests.toys import rectangles, write_scenes

CASES = 120
RULES = "mirror(h)+gamma(0.5)+gamma(3)"


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_scenes(tmp_path_factory.mktemp("until") / "photos", CASES, (64, 48))
    for number in (3, 50):
        (folder / f"{number:03}.png").write_bytes(b"no image")
    return folder


def half_blind(pixels: Pixels) -> instar.Detections:
    """Answers every other scene wrongly when it is dark; which ones, its width of colours says."""
    answer = rectangles(pixels)
    dark = int(pixels.max()) < 200
    return instar.Detections.from_xyxy([[0, 0, 9, 9]], ["ghost"]) if dark and int(pixels.sum()) % 2 else answer


def asked(run: instar.Run) -> set[tuple[str, str]]:
    return set(run.predictions().select("case", "follow_up").iter_rows())


def test_a_rule_is_asked_until_its_rate_is_known(photos: Path, tmp_path: Path) -> None:
    run = instar.run(half_blind, RULES, photos, out=tmp_path / "run", workers=0, until=0.1)
    rates = {row["rule"].partition(" ")[0]: row for row in run.rates().to_dicts()}
    order = random_order([f"{number:03}.png" for number in range(CASES)], 0)
    for name, row in rates.items():
        cases = {case for case, follow_up in asked(run) if follow_up == name}
        assert cases in [set(order[:end]) - {"003.png", "050.png"} for end in looks(CASES)]  # the first ones, in order
        assert row["high"] - row["low"] <= 0.2 or len(cases) >= CASES - 2
    assert rates["mirror(h)"]["judged"] < 50 < rates["gamma(3)"]["judged"]
    whole = run.any_rule()
    assert whole["judged"] == min(row["judged"] for row in rates.values())
    assert run.outcome is not None
    (words,) = [note for note in run.outcome.notes if "were not needed" in note]
    assert words.startswith("Enough is known of ")
    assert any("until the rate of each rule was known to ± 10 points" in one.words for one in findings(run))


def test_a_run_that_was_stopped_asks_the_same(photos: Path, tmp_path: Path) -> None:
    class Stopped(Exception): ...

    def stopping(progress: Progress) -> None:
        if progress.fresh >= 130:
            raise Stopped

    whole = instar.run(half_blind, RULES, photos, out=tmp_path / "whole", workers=0, until=0.1)
    with pytest.raises(Stopped):
        instar.run(half_blind, RULES, photos, out=tmp_path / "run", workers=0, until=0.1, on_progress=stopping)
    again = instar.run(half_blind, RULES, photos, out=tmp_path / "run", workers=0, until=0.1)
    assert asked(again) == asked(whole)
    assert again.rates().drop("median").equals(whole.rates().drop("median"))


def test_without_it_the_rest_is_asked_and_intervals_are_those_of_any_run(photos: Path, tmp_path: Path) -> None:
    first = instar.run(half_blind, "mirror(h)", photos, out=tmp_path / "run", workers=0, until=0.1)
    assert first.manifest.until is not None
    before = first.rates().row(0, named=True)
    rest = instar.run(half_blind, "mirror(h)", photos, out=tmp_path / "run", workers=0)
    assert rest.manifest.until is None
    after = rest.rates().row(0, named=True)
    assert before["judged"] < after["judged"] == CASES - 2
    assert after["high"] == pytest.approx(3.84 / (3.84 + after["judged"]), rel=1e-2)  # Wilson's


def test_families_are_asked_together(photos: Path, tmp_path: Path) -> None:
    rules = "gamma(0.5)+gamma(3)"
    run = instar.run(half_blind, rules, photos, out=tmp_path / "run", workers=0, until="family=0.2")
    assert run.rates()["judged"].n_unique() == 1
    assert run.outcome is not None
    assert "Enough is known of 1 of 1 family after" in run.outcome.notes[-1]


@pytest.mark.parametrize(("rate", "passed"), [(0.2, False), (0.9, True)])
def test_a_policy_is_asked_about_until_it_is_decided(photos: Path, tmp_path: Path, rate: float, passed: bool) -> None:
    policy = tmp_path / "instar.toml"
    policy.write_text(f'[[limit]]\nof = "gamma(3)"\nrate = {rate}\n')
    run = instar.run(half_blind, RULES, photos, out=tmp_path / "run", workers=0, until=policy)
    assert {follow_up for _, follow_up in asked(run)} == {"source", "gamma(3)"}  # nothing that it does not name
    assert run.cases().height < CASES / 2
    (check,) = [one for one in checked(run, read_policy(policy)) if one.rules]
    assert check.passed is passed


def test_severities_and_plain_figures_are_decided_too(photos: Path, tmp_path: Path) -> None:
    policy = tmp_path / "instar.toml"
    policy.write_text(
        '[[limit]]\nof = "mirror(h)"\nseverity = 0.2\nquantile = 0.8\n'
        '[[limit]]\nof = "gamma(3)"\nrate = 0.1\nsure = "plain"\n'
    )
    run = instar.run(half_blind, RULES, photos, out=tmp_path / "run", workers=0, until=policy)
    mirrored, dark = (one for one in checked(run, read_policy(policy)) if one.rules)
    assert mirrored.passed
    assert not dark.passed
    assert run.predictions().height < 3 * CASES / 2


@pytest.mark.parametrize(
    ("until", "words"),
    [("0.7", "above 0 and below 0.5"), ("0", "above 0 and below 0.5"), ("nowhere.toml", "nowhere.toml")],
)
def test_it_goes_on_until_a_width_or_a_policy(photos: Path, tmp_path: Path, until: str, words: str) -> None:
    with pytest.raises((ValueError, OSError), match=words):
        instar.run(half_blind, RULES, photos, out=tmp_path / "run", workers=0, until=until)
    assert not (tmp_path / "run").exists()


def test_the_order_is_random_and_settled_by_the_seed() -> None:
    cases = [f"{number:03}" for number in range(200)]
    order = random_order(cases, 0)
    assert order == random_order(cases[::-1], 0) != random_order(cases, 1)
    places = np.array([cases.index(case) for case in order])
    assert abs(np.corrcoef(places, np.arange(200))[0, 1]) < 0.2
