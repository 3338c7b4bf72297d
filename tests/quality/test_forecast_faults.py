"""Seeded faults of trajectory predictors.

Each is caught by the suite `forecasts` as it is; TrajTest's rules catch those that they can see, and no others.

The rules that move all alike catch by their tests (wvc at p ≤ 0.001, hvc above what rescaling costs a right system);
those that change the map by their outcomes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path

import polars as pl
import pytest

import instar
from instar.datasets import Dataset
from instar.tasks.traj_test.analysis import trajectory_tables
from tests.perfect.calibration import accused
from tests.perfect.walker import Walker, dataset, predictor, strolls, system
from tests.quality import forecast_faults as seeded
from tests.quality.words import assert_accused, assert_checked, assert_shown_and_reported

SCENES = 5
LEFTWARDS = ("mirror(h)", "rotate90(1)", "rotate90(2)", "rotate90(3)")
"""What makes a person who walks to the right walk to the left, some of them only by a little."""
STANDING = ("rotate90(1)", "rotate90(3)")
ALL = ("mirror(v)", "mirror(h)", "rotate90(1)", "rotate90(2)", "rotate90(3)")


_STROLLS = strolls(6)


@dataclass(frozen=True)
class Seeded:
    predictor: seeded.Predictor
    by: str
    """The rule that catches it."""
    kind: str = ""
    """The kind of its verdicts, or the message of its failures."""
    data: Dataset = _STROLLS
    words: str = field(kw_only=True)
    """What must be said of it, as a regular expression."""
    purpose: str = field(default="", kw_only=True)
    """What the suite says that this rule looks for."""
    course: str = field(default="", kw_only=True)
    """What must be said of the side to which its futures turn, or of how far they go: a regular expression."""
    check: str = field(default="", kw_only=True)
    """What `instar check` must say of it, where it can see it in a few images."""


_EVERY_WAY, _TREE = "rotate90(1) => wvc", "obstacle(new=tree, size=0.5) => direction(avoid)"
_MOVED, _TURNED = "pad(0.25) | shift(0.15, y=0.1) => wvc", "pad(0.35) | rotation(22.5) => wvc"
_WALL = "obstacle(size=0.5) | rotate90(1) => direction(avoid)"
FORECAST_FAULTS: Mapping[str, Seeded] = {
    "three degrees to the left": Seeded(
        seeded.biased,
        "mirror(h) => wvc",
        words=r"tests of mirror\(h\) .*\d+ % of 6 tests",
        purpose="a bias or a preference to one side",
        course=r"turn by about [23](\.\d)?° to the left \(95 % interval .*, 6 cases\), in the source and under",
    ),
    "30 % narrower to the left": Seeded(
        seeded.narrower,
        "mirror(h) => wvc",
        words=r"tests of mirror\(h\) .*100 % of 6 tests",
        purpose="a bias or a preference to one side",
    ),
    "one future in five turns left": Seeded(
        seeded.left_preferred,
        "mirror(h) => wvc",
        words=r"mirror\(h\) \(.+\): by up to 1\.\d+",
        purpose="a bias or a preference to one side",
    ),
    "bends to the left in the mirror too": Seeded(
        seeded.turn_not_mirrored,
        "mirror(h) => wvc",
        words=r"mirror\(h\) \(.+\): by up to 1\.\d+",
        purpose="left taken for right",
        course=r"turn by about [0-9.]+° to the left",
    ),
    "the seed is ignored": Seeded(
        seeded.seed_ignored,
        "identity => varies",
        "the seed is ignored",
        words="the seed is ignored",
        check="determinism.seed_ignored",
    ),
    "one future ten times": Seeded(
        seeded.identical,
        "identity => varies",
        "all futures of a run are one",
        words="all futures of a run are one",
        check="samples.same",
    ),
    "the mean alone": Seeded(
        seeded.mean_only,
        "identity => varies",
        "all futures of a run are one",
        words="all futures of a run are one",
        check="samples.same",
    ),
    "the history is ignored": Seeded(
        seeded.history_ignored, "turn_past => follows", "past ignored", words="past ignored", check="past.ignored"
    ),
    "the history is read backwards": Seeded(
        seeded.first_step_only, "turn_past => follows", "past opposed", words="past opposed", check="past.reversed"
    ),
    "nobody ever goes anywhere": Seeded(
        seeded.stands, "turn_past => follows", "past ignored", words="past ignored", check="past.ignored"
    ),
    "everybody goes right": Seeded(
        seeded.to_the_right,
        _EVERY_WAY,
        words=r"rotate90\(1\) \(.+\): by up to",
        purpose="one direction of the frame unlike others",
        check="past.ignored",
    ),
    "the map is read transposed": Seeded(seeded.transposed, _TREE, "crossing", words="by up to", check="map.misread"),
    "obstacles are ignored": Seeded(seeded.BLIND, _TREE, "crossing", words="futures go through an obstacle"),
    "always straight ahead": Seeded(seeded.always_straight, _WALL, "crossing", words="futures go through an obstacle"),
    "walks through trees": Seeded(
        seeded.through_trees, _TREE, "crossing", words="futures go through an obstacle", purpose="a tree in the way"
    ),
    "walls are forgotten in turned scenes": Seeded(
        seeded.walls_forgotten_upright,
        _WALL,
        "crossing",
        words="futures go through an obstacle",
        purpose="of a turned scene alone",
    ),
    "speed is cut at 2 pixels a step": Seeded(
        seeded.clipped,
        "rescale(2) => wvc",
        course=r"Under rescale\(2\), its futures go about \d+ % too short",
        words=r"tests of rescale\(2\) .*100 % of 6 tests",
        purpose="lengths and speeds in pixels",
    ),
    "errors are so many pixels": Seeded(
        seeded.in_pixels,
        "rescale(2) => wvc",
        words=r"tests of rescale\(2\) .*100 % of 6 tests",
        purpose="lengths and speeds in pixels",
    ),
    "errors are shares of the frame": Seeded(
        seeded.in_shares_of_the_frame,
        "pad(0.2, sides=left_right) => wvc",
        words=r"tests of pad\(.*100 % of 6 tests",
        purpose="positions in shares of the frame",
    ),
    "leans to the middle of the frame": Seeded(
        seeded.to_the_middle,
        _MOVED,
        words=r"tests of pad\(0.25\) \| shift\(.*100 % of 6 tests",
        purpose="leaning on the middle",
    ),
    "one future in ten jumps to the border": Seeded(
        seeded.to_the_border,
        _MOVED,
        words=r"tests of pad\(0.25\) \| shift\(.*100 % of 6 tests",
        purpose="the edges of the frame",
    ),
    "positions on a grid of 8 pixels": Seeded(
        seeded.on_a_grid,
        _MOVED,
        words=r"tests of pad\(0.25\) \| shift\(.*100 % of 6 tests",
        purpose="leaning on the middle",
    ),
    "eight directions": Seeded(
        seeded.eight_ways,
        _TURNED,
        words=r"pad\(0.35\) \| rotation\(22.5\) \(.+\): by up to",
        purpose="snap to those of the grid",
    ),
    "not numbers": Seeded(
        seeded.not_numbers,
        "mirror(h) => wvc",
        "1 of 20 futures have positions that are not finite",
        words="1 of 20 futures have positions that are not finite",
        check="answers.failed",
    ),
    "the probability map is a pixel off": Seeded(
        Walker(shift=1),
        "mirror(h) => hvc",
        data=dataset(4),
        words=r"mirror\(h\) => hvc \(.+\): by up to",
        purpose="lies beside it",
    ),
    "pavement is taken for road": Seeded(
        Walker(mixes_up_ground=True),
        "class_change(road, pavement) => direction(increase)",
        "wrong way",
        dataset(4),
        words="falls where it must grow",
        purpose="classes of ground mixed up",
    ),
}


@pytest.mark.parametrize("name", FORECAST_FAULTS)
def test_every_fault_is_caught_by_the_suite_of_forecasts(name: str, tmp_path: Path) -> None:
    fault = FORECAST_FAULTS[name]
    run = instar.run(predictor(fault.predictor, name), "forecasts", fault.data, out=tmp_path / "run", workers=0)
    assert fault.by in accused(run)
    of_rule = run.verdicts().filter(rule=fault.by)
    words = {*of_rule["kind"].drop_nulls(), *of_rule["reason"].drop_nulls()}
    assert any(fault.kind in text for text in words) or not fault.kind
    assert_accused(run, fault.words)
    assert re.search(fault.purpose, instar.suite("forecasts").purposes[fault.by])
    if fault.course:
        assert_accused(run, fault.course)
    if name == "three degrees to the left":
        assert_shown_and_reported(run)


@pytest.mark.parametrize("name", [name for name, fault in FORECAST_FAULTS.items() if fault.check])
def test_check_says_it_of_a_few_images(name: str) -> None:
    fault = FORECAST_FAULTS[name]
    inputs = [(case.id, case.input) for case in islice(fault.data.cases(), 3)]
    assert_checked(predictor(fault.predictor, name), inputs, fault.check)


def test_every_rule_is_there_for_a_fault() -> None:
    """But for identity, which says how often the test rejects by chance."""
    rules = [one.id for one in instar.suite("forecasts").rules]
    assert set(rules) - {fault.by for fault in FORECAST_FAULTS.values()} == {"identity => wvc"}
    assert set(instar.suite("forecasts").purposes) == set(rules)
    assert instar.Forecast.suite == "forecasts"


@dataclass(frozen=True)
class Fault:
    walker: Walker
    futures: tuple[str, ...] = ()
    """The changes under which wvc rejects."""
    maps: tuple[str, ...] = ()
    """The changes under which hvc is large."""
    crosses: bool = False
    ignores_classes: bool = False
    words: str = field(kw_only=True)
    """What must be said of it, as a regular expression."""


FAULTS = {
    "the spread collapses to a fifth": Fault(
        Walker(spread_to_the_left=0.2),
        LEFTWARDS,
        LEFTWARDS,
        words=r"mirror\(h\) \(.+\): by up to 1\d\.\d times the system's own distance",
    ),
    "turned by the wrong sign": Fault(
        Walker(turns_portrait_wrongly=True),
        STANDING,
        STANDING,
        words=r"rotate90\(1\) \(.+\): by up to 4\d\d times the system's own distance",
    ),
    "the map is mirrored without the history": Fault(
        Walker(mirrors_map_only=True),
        LEFTWARDS,
        LEFTWARDS,
        words=r"mirror\(h\) \(.+\): by up to 1\d(\.\d)? times the system's own distance",
    ),
    "the probability map is half a pixel off": Fault(
        Walker(shift=0.5),
        (),
        ALL,
        words=r"rotate90\(2\) => hvc \(turned by 180°.*: by up to 0\.\d+ of the largest Hellinger distance",
    ),
    "the map is ignored": Fault(
        Walker(sees_the_map=False), crosses=True, ignores_classes=True, words="futures go through an obstacle"
    ),
    "walks through structures": Fault(
        Walker(stops_at_obstacles=False), crosses=True, words="futures go through an obstacle"
    ),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], instar.Run]:
    """A run of TrajTest's rules, made once per fault."""

    @cache
    def run_of(name: str) -> instar.Run:
        folder = tmp_path_factory.mktemp("run") / "run"
        return instar.run(system(FAULTS[name].walker), "trajtest", dataset(SCENES), out=folder, workers=0)

    return run_of


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_caught_by_the_rules_that_can_see_it(name: str, runs: Callable[[str], instar.Run]) -> None:
    fault, run = FAULTS[name], runs(name)
    verdicts = run.verdicts().with_columns(change=pl.col("rule").str.split(" => ").list.first())
    assert_accused(run, fault.words)

    # a rescaled map is another one, whose nearest cells may close a way
    tested = verdicts.filter(pl.col("rule").str.ends_with("=> wvc") & ~pl.col("change").str.contains("rescale"))
    rejected = set(tested.filter(pl.col("p") <= 0.001)["change"])
    assert rejected == set(fault.futures)

    maps = verdicts.filter(pl.col("rule").str.ends_with("=> hvc") & ~pl.col("change").str.contains("rescale"))
    strayed = set(maps.filter(pl.col("severity") > 1e-6)["change"])
    assert strayed == set(fault.maps)

    judged = verdicts.filter(pl.col("rule").str.contains("direction") & pl.col("severity").is_not_null())
    outcomes = {(row["change"], row["effect"]): row for row in trajectory_tables(run)["map"].iter_rows(named=True)}
    crossing = set(judged.filter(pl.col("kind") == "crossing")["change"].str.extract(r"^(\w+)"))
    assert crossing == ({"class_change", "obstacle"} if fault.crosses else set())
    assert (outcomes["obstacle", "avoid"]["confirmed"] > 0.9) != fault.crosses
    assert (outcomes["class_change", "avoid"]["confirmed"] > 0.5) != fault.crosses
    confirmed = outcomes["class_change", "decrease"]["confirmed"]
    assert confirmed == 0 if fault.ignores_classes else confirmed > 0.5


def test_thresholds_and_levels_are_chosen_afterwards(runs: Callable[[str], instar.Run]) -> None:
    run = runs("turned by the wrong sign")

    def rate(rule: str, **how: float) -> float:
        return float(run.rates(**how).filter(rule=rule)["rate"].item())  # type: ignore[arg-type]

    assert rate("rotate90(1) => wvc") == rate("rotate90(1) => wvc", p=0.01) == 1
    assert rate("rotate90(1) => wvc", threshold=1e6) == 0
    assert rate("rotate90(1) => wvc", threshold=1e6, p=0.01) == 4 / 5, "who cannot go anywhere never varies: no test"
    assert rate("identity => wvc", p=0.999) > 0.5 > rate("identity => wvc", p=0.001)
    assert rate("rotate90(1) => hvc", p=0.01) == rate("rotate90(1) => hvc"), "no test, so its threshold decides"
    with pytest.raises(ValueError, match="p is above 0"):
        run.rates(p=1.5)
