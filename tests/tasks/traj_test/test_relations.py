"""wvc, hvc and direction on forecasts made by hand, whose severities can be worked out on paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.engine.plan import bound_rules, make_plan
from instar.outputs.forecast import Forecast
from instar.relations import Evidence, rule
from instar.scene import Scene, Track
from instar.store import rows_frame
from instar.tasks.traj_test.relations import _ended
from instar.transforms import Change, transformation
from instar.warp import Warp

Floats = npt.NDArray[np.float64]
SIZE = (100, 100)
STEPS = 4
STILL = ((20.0, 50.0), (20.0, 50.0))
SCHEMA = {
    "case": pl.String,
    "follow_up": pl.String,
    "draw": pl.Int32,
    "repeat": pl.Int32,
    **Change.columns,
    **Forecast.columns,
}


def verdicts(
    relation: str,
    sources: Sequence[Forecast],
    follow_ups: Sequence[Forecast],
    *,
    change: Change | None = None,
    past: tuple[tuple[float, float], ...] = STILL,
    **options: float,
) -> list[dict[str, Any]]:
    """What a relation says of one case: `sources` are its repeats, `follow_ups` those of one transformation."""
    bound = rule(f"identity => {relation}").relation
    assert bound is not None
    settings = {p.name: options.get(p.name, p.default) for p in bound.relation.options}
    change = change or Change.none(SIZE)
    told, said = (
        rows_frame(
            [
                {"case": "a", "follow_up": name, "draw": 0, "repeat": i, **did.row(), **one.row()}
                for i, one in enumerate(forecasts)
            ],
            SCHEMA,
        )
        for name, did, forecasts in (("source", Change.none(SIZE), sources), ("it", change, follow_ups))
    )
    cases = pl.DataFrame({"case": ["a"], "track": [Track(past, ("background",), STEPS, size=SIZE).json()]})
    return bound.relation.judge(Evidence({}, cases, told, said, dict(bound.values), settings)).to_dicts()


def verdict(*arguments: Any, **more: Any) -> dict[str, Any]:
    (one,) = verdicts(*arguments, **more)
    return one


def at(*places: float) -> list[Forecast]:
    """Runs of one future each, which stays so many pixels right of the person."""
    return [Forecast.from_array(np.broadcast_to([50 + place, 50], (1, STEPS, 2))) for place in places]


def crowd(count: int, seed: int) -> Forecast:
    rng = np.random.default_rng(seed)
    return Forecast.from_array(50 + np.cumsum(rng.normal(2, 1, (count, STEPS, 2)), 1))


# --- wvc -----------------------------------------------------------------------------------------------


def test_distances_of_one_run_from_one() -> None:
    """Nothing is known of the system's own spread: its floor of 0.1 pixels stands for it."""
    outcome = verdict("wvc", at(0), at(3))
    assert outcome["distance"] == pytest.approx(3)
    assert outcome["severity"] == pytest.approx(3 / 0.1 - 1)
    assert (outcome["p"], outcome["p_least"], outcome["spread"], outcome["own"]) == (None, None, None, 0)


def test_one_follow_up_run_against_several() -> None:
    outcome = verdict("wvc", at(0, 1, 2, 3), at(10))
    assert outcome["own"] == pytest.approx(10 / 6)
    assert outcome["distance"] == pytest.approx(8.5)
    assert outcome["severity"] == pytest.approx(8.5 / (10 / 6) - 1)
    assert outcome["p"] == outcome["p_least"] == pytest.approx(1 / 5)
    assert (outcome["sources"], outcome["runs"], outcome["spread"]) == (4, 1, None)


def test_several_against_several() -> None:
    outcome = verdict("wvc", at(0, 1, 2, 3), at(10, 12))
    assert (outcome["distance"], outcome["spread"]) == pytest.approx((9.5, 2))
    assert outcome["severity"] == pytest.approx((2 * 9.5 - 10 / 6 - 2) / (2 * 10 / 6))
    assert outcome["p"] == outcome["p_least"] == pytest.approx(1 / 15)


def test_one_source_run_against_several_is_no_test() -> None:
    outcome = verdict("wvc", at(0), at(3, 5))
    assert outcome["severity"] == pytest.approx(4 / 0.1 - 1)
    assert outcome["p"] is None


@pytest.mark.parametrize("warp", [Warp.mirror(SIZE, "h"), Warp.rotate90(SIZE, 1), Warp.scale(SIZE, 2, 2)])
def test_follow_ups_are_carried_back(warp: Warp) -> None:
    sources = at(0, 1, 2, 3)
    right = [one.warped(warp) for one in at(1, 2)]
    assert verdict("wvc", sources, right, change=Change(warp))["severity"] == 0
    wrong = [one.warped(warp) for one in at(10, 12)]
    assert verdict("wvc", sources, wrong, change=Change(warp))["distance"] == pytest.approx(9.5, abs=1e-4)


def test_the_floor_grows_with_the_way_that_was_walked() -> None:
    walked = ((20.0, 50.0), (320.0, 50.0), (320.0, 150.0))  # 400 pixels, of which 1 % count
    assert verdict("wvc", at(0), at(6), past=walked)["severity"] == pytest.approx(6 / 4 - 1)
    assert verdict("wvc", at(0), at(3), past=walked)["severity"] == 0
    assert verdict("wvc", at(0), at(6), past=STILL[:1])["severity"] == pytest.approx(6 / 0.1 - 1)
    assert verdict("wvc", at(0, 20), at(10), past=walked)["severity"] == 0, "its own spread is larger than the floor"


def test_rounding_is_no_difference() -> None:
    outcome = verdict("wvc", at(0, 0, 0), at(0.005, 0.005))
    assert (outcome["severity"], outcome["distance"]) == (0, 0)


def test_what_never_varies_has_no_test() -> None:
    """Any difference would be significant, however small; severity says how large it is."""
    for far, severity in ((0.03, 0), (3.0, 3 / 0.1 - 1)):
        outcome = verdict("wvc", at(0, 0, 0), at(far, far))
        assert (outcome["p"], outcome["p_least"]) == (None, None)
        assert outcome["severity"] == pytest.approx(severity)
    assert verdict("wvc", at(0, 0, 0), at(0, 5))["p"] is not None, "its follow-up varies"


def test_futures_that_are_always_the_same_are_one_sample() -> None:
    """A deterministic system that draws its futures once is as far from another draw as its own halves are apart."""
    assert verdict("wvc", [crowd(20, 1)], [crowd(20, 2)])["severity"] < 0.5
    assert verdict("wvc", [crowd(20, 1)] * 3, [crowd(20, 2)] * 2)["severity"] < 0.5
    moved = Forecast.from_array(crowd(20, 1).futures + 30)
    assert verdict("wvc", [crowd(20, 1)], [moved])["severity"] > 3


@pytest.mark.parametrize(
    ("warp", "cell"),
    [
        (Warp.scale(SIZE, 0.8, 0.8), 1.25),
        (Warp.scale(SIZE, 1.2, 1.2), 1.0),
        (Warp.rotation(SIZE, 22.5), 1.0),
        (Warp.scale(SIZE, 2, 2), 0.1),
        (Warp.rotate90(SIZE, 1), 0.1),
    ],
)
def test_new_cells_say_where_things_are_to_a_cell(warp: Warp, cell: float) -> None:
    moved = [one.warped(warp) for one in at(5)]
    outcome = verdict("wvc", at(0), moved, change=Change(warp), past=STILL)
    assert outcome["severity"] == pytest.approx(5 / cell - 1, rel=1e-3)


WALKING = ((38.0, 50.0), (44.0, 50.0), (50.0, 50.0))


def test_a_frame_that_moved_says_nothing_of_people_at_its_edge() -> None:
    """With 6 pixels a step, a person gets at most 36 pixels far."""
    for x, judged in ((10, True), (-10, True), (40, False), (-40, False)):
        shifted = Warp(np.array([[1.0, 0, x], [0, 1, 0], [0, 0, 1]]), SIZE, SIZE)
        moved = [one.warped(shifted) for one in at(0, 1)]
        outcome = verdict("wvc", at(0, 1, 2), moved, change=Change(shifted), past=WALKING)
        assert (outcome["severity"] is not None) == judged
        if not judged:
            assert "only one of source and follow-up has a map" in outcome["reason"]
    far = at(0, 1, 90)  # sends people out of the frame, which is no excuse
    standing = ((50.0, 50.0), (50.0, 50.0))
    assert verdict("wvc", far, at(0, 1), change=Change(shifted), past=standing)["severity"] is not None


# --- follows -------------------------------------------------------------------------------------------

TURNED = Change(Warp.identity(SIZE), facts={"degrees": 180})


def ahead(pace: float) -> list[Forecast]:
    """A person at (50, 50) who goes on with so many pixels a step to the right."""
    steps = pace * np.arange(1, STEPS + 1)
    return [Forecast.from_array(np.stack([50 + steps, np.full(STEPS, 50.0)], 1)[None])]


@pytest.mark.parametrize(
    ("before", "after", "severity", "kind"),
    [
        (6, -6, 0, None),
        (6, -9, 0, None),
        (6, 0, 0.5, None),
        (6, 6, 1, "past ignored"),
        (0, 0, 1, "past ignored"),
        (-6, 6, 2, "past opposed"),
    ],
)
def test_the_future_turns_with_the_past(before: float, after: float, severity: float, kind: str | None) -> None:
    outcome = verdict("follows", ahead(before), ahead(after), change=TURNED, past=WALKING)
    assert outcome["severity"] == pytest.approx(severity, abs=1e-5)
    assert outcome["kind"] == kind


def test_a_past_that_was_not_turned() -> None:
    assert "goes with turn_past" in verdict("follows", ahead(6), ahead(6), past=WALKING)["reason"]
    whole = replace(TURNED, facts={"degrees": 360})
    assert verdict("follows", ahead(6), ahead(6), change=whole, past=STILL)["severity"] is None


def turned(past: Floats) -> Floats:
    return np.asarray(2 * past[-1] - past)


@given(
    speed=st.floats(0.3, 3),
    heading=st.floats(0, 6.3),
    stops=st.integers(0, 7),
    lag=st.sampled_from([1, 2, 3]),
    wobble=st.lists(st.floats(-0.5, 0.5), min_size=16, max_size=16),
)
def test_who_goes_on_at_the_last_pace_ignores_no_past(
    speed: float, heading: float, stops: int, lag: int, wobble: list[float]
) -> None:
    """Tracks in whole pixels, of people of whom many have just stopped: their last step, or second, says nothing."""
    steps = np.minimum(np.arange(8), 7 - stops)[:, None] * speed * np.array([math.cos(heading), math.sin(heading)])
    past = np.round(50 + steps + np.reshape(wobble, (8, 2)))

    def goes_on(known: Floats) -> list[Forecast]:
        pace = (known[-1] - known[-1 - lag]) / lag
        return [Forecast.from_array((known[-1] + pace * np.arange(1, STEPS + 1)[:, None])[None])]

    track = tuple((float(x), float(y)) for x, y in past)
    outcome = verdict("follows", goes_on(past), goes_on(turned(past)), change=TURNED, past=track)
    assert outcome["severity"] is None or outcome["severity"] <= 0.5 + 1e-6


def test_who_has_just_stopped_is_not_judged() -> None:
    """Two pixels, none, two pixels, none: nobody knows whether such a person goes on."""
    past = ((40.0, 50.0), (42.0, 50.0), (46.0, 50.0), (50.0, 50.0), (50.0, 50.0))
    outcome = verdict("follows", ahead(0), ahead(0), change=TURNED, past=past)
    assert outcome["severity"] is None and "has just stopped" in outcome["reason"]
    assert verdict("follows", ahead(0), ahead(0), change=TURNED, past=past[:-1])["kind"] == "past ignored"


def test_a_turned_past_may_be_mirrored_as_well() -> None:
    both = replace(TURNED, warp=Warp.mirror(SIZE, "h"))
    answer = [one.warped(both.warp) for one in ahead(-6)]
    assert verdict("follows", ahead(6), answer, change=both, past=WALKING)["severity"] == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("fewer", [10, 5, 4, 1])
def test_fewer_futures_stand_for_more(fewer: int) -> None:
    sources, parts = [crowd(20, i) for i in range(6)], [crowd(fewer, 50 + i) for i in range(3)]
    outcome = verdict("wvc", sources, parts)
    assert outcome["severity"] < (0.5 if fewer > 1 else 1.5)
    doubled = [Forecast.from_array(np.tile(one.futures, (2, 1, 1))) for one in parts]
    assert verdict("wvc", sources, doubled)["severity"] == pytest.approx(outcome["severity"])


@pytest.mark.parametrize("test", ["", "test=z"])
def test_sizes_without_a_common_one_are_said(test: str) -> None:
    outcome = verdict(f"wvc({test})", [crowd(20, i) for i in range(4)], [crowd(17, 9)])
    assert outcome["severity"] is None
    assert "runs of 20 and 17 futures have no common size" in outcome["reason"]


def test_the_sizes_that_differ_are_named() -> None:
    outcome = verdict("wvc", [crowd(20, 0), crowd(17, 1)], [crowd(20, 9)])
    assert outcome["severity"] is None
    assert "17" in outcome["reason"]


def test_as_published_every_source_run_is_a_comparison() -> None:
    outcome = verdicts("wvc(4, 1, test=z)", at(0, 1, 2, 3), at(10))
    assert [one["target"] for one in outcome] == ["source 0", "source 1", "source 2", "source 3"]
    assert [one["distance"] for one in outcome] == pytest.approx([10, 9, 8, 7])
    mean, deviation = 10 / 6, float(np.std([1, 1, 1, 2, 2, 3]))
    for one in outcome:
        assert one["severity"] == pytest.approx(one["distance"] / mean - 1)
        z = (one["distance"] - mean) / deviation
        assert one["p"] == pytest.approx(math.erfc(z / math.sqrt(2)))
    assert [one["p"] for one in verdicts("wvc(1, 1, test=z)", at(0), at(1))] == [None]


def test_as_published_every_comparison_is_a_target_of_its_own() -> None:
    targets = [one["target"] for one in verdicts("wvc(2, 2, test=z)", at(0, 1), at(1, 2))]
    assert len(targets) == len(set(targets)) == 4


def test_rules_share_the_predictions_of_the_source() -> None:
    def keys(*rules: str) -> list[tuple[str, int, int]]:
        return make_plan(bound_rules(rules, "forecast"), seed=0, deterministic=False).keys()

    counted = [("source", 0, i) for i in range(6)]
    assert keys("mirror(h) => wvc(6, 2)") == [*counted, ("mirror(h)", 0, 0), ("mirror(h)", 0, 1)]
    assert keys("mirror(h) => wvc(6, 2)", "mirror(h) => hvc", "mirror(h) => wvc(4, 1)") == keys(
        "mirror(h) => wvc(6, 2)"
    )
    both = keys("mirror(h) => wvc(6, 2)", "obstacle => direction(avoid, 3)")
    assert both[:6] == counted
    assert both[8:] == [("obstacle", 0, 0)]
    assert len(keys("mirror(h) => wvc")) == 20 + 5
    once = make_plan(bound_rules(["mirror(h) => wvc"], "forecast"), seed=0, deterministic=True)
    assert once.keys() == [("source", 0, 0), ("mirror(h)", 0, 0)]


# --- hvc -----------------------------------------------------------------------------------------------

FRAME = Scene(np.zeros(SIZE[::-1], np.uint8), ("background",), np.array([[20.0, 50]]), STEPS)


def mapped(cells: npt.ArrayLike, box: tuple[float, float, float, float] | None = None) -> Forecast:
    return Forecast.accept(Forecast.from_array(np.full((5, STEPS, 2), 50.0), cells, box=box), FRAME)


def hill(cells: int, x: float = 50) -> Floats:
    """A round hill at (x, 40) of the frame, on a grid of so many cells."""
    place = (np.arange(cells) + 0.5) * 100 / cells
    return np.asarray(np.exp(-((place - x) ** 2 + (place[:, None] - 40) ** 2) / (2 * 12**2)))


def test_equal_maps_and_maps_apart() -> None:
    left, right = np.array([[1.0, 1, 0, 0]]), np.array([[0.0, 0, 1, 1]])
    assert verdict("hvc", [mapped(left)], [mapped(3 * left)])["severity"] == 0
    assert verdict("hvc", [mapped(left)], [mapped(right)])["severity"] == 1


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), sharp=st.floats(0, 30))
def test_hellinger_lies_between_0_and_1(seed: int, sharp: float) -> None:
    rng = np.random.default_rng(seed)
    box = (*rng.uniform(-50, 50, 2), *rng.uniform(51, 150, 2))
    one, other = mapped(rng.random((6, 8)) ** sharp), mapped(rng.random((5, 9)) ** sharp, box)
    assert 0 <= verdict("hvc", [one], [other])["severity"] <= 1


def test_the_grid_does_not_matter() -> None:
    for fine, coarse in ((64, 32), (32, 64), (48, 50)):
        outcome = verdict("hvc", [mapped(hill(fine))], [mapped(hill(coarse))])
        assert outcome["severity"] < 0.05
    window = hill(100)[20:60, 30:80]
    assert verdict("hvc", [mapped(window, (30, 20, 80, 60))], [mapped(window, (30, 20, 80, 60))])["severity"] < 1e-6
    assert verdict("hvc", [mapped(hill(64))], [mapped(hill(64, 80))])["severity"] > 0.5


def test_what_lies_beside_the_grid_is_missing_from_it() -> None:
    even = np.ones((4, 4))
    outcome = verdict("hvc", [mapped(even, (0, 0, 40, 40))], [mapped(even, (20, 0, 60, 40))])
    assert outcome["severity"] == pytest.approx(math.sqrt(0.5), abs=1e-3)  # half of it overlaps
    assert verdict("hvc", [mapped(even, (0, 0, 40, 40))], [mapped(even, (50, 0, 90, 40))])["severity"] == 1


@pytest.mark.parametrize("warp", [Warp.mirror(SIZE, "v"), Warp.rotate90(SIZE, 3), Warp.scale(SIZE, 0.8, 0.8)])
def test_maps_are_carried_back(warp: Warp) -> None:
    cells = np.random.default_rng(0).random((9, 7))
    moved = mapped(cells, (10, 20, 80, 60)).warped(warp)
    outcome = verdict("hvc", [mapped(cells, (10, 20, 80, 60))], [moved], change=Change(warp))
    assert outcome["severity"] < 1e-3


def test_own_noise_is_what_two_source_runs_differ() -> None:
    outcome = verdict("hvc", [mapped([[1.0, 0]]), mapped([[0.0, 1]]), mapped([[1.0, 1]])], [mapped([[1.0, 0]])])
    assert (outcome["severity"], outcome["own"]) == (0, 1)
    assert verdict("hvc(1)", [mapped([[1.0, 0]])], [mapped([[1.0, 0]])])["own"] is None


def test_no_map_on_one_side_is_said() -> None:
    bare = Forecast.from_array(np.full((5, STEPS, 2), 50.0))
    for told, said in ((bare, mapped([[1.0]])), (mapped([[1.0]]), bare)):
        outcome = verdict("hvc", [told], [said])
        assert outcome["severity"] is None
        assert "gives no probability map" in outcome["reason"]


# --- direction -------------------------------------------------------------------------------------------

LEFT = np.zeros(SIZE[::-1], bool)
LEFT[:, :50] = True
RIGHT = ~LEFT
AHEAD = [[80.0, 50]] * STEPS
CHANGED = Change(Warp.identity(SIZE), mask=LEFT)
"""The left half of the map became something else. The person stands in it, at (20, 50)."""


def halves(left: float, futures: npt.ArrayLike = AHEAD) -> Forecast:
    """A map with so much of its mass in the left half."""
    cells = np.full((10, 10), (1 - left) / 50)
    cells[:, :5] = left / 50
    return Forecast.accept(Forecast.from_array(futures, cells), FRAME)


def log_ratio(before: float, after: float) -> float:
    return math.log((after + 0.001) / (before + 0.001))


OUTCOMES = [
    ("increase", 0.2, 0.6, "confirmed"),
    ("increase", 0.2, 0.21, "inconclusive"),
    ("increase", 0.6, 0.2, "wrong way"),
    ("increase", 0.21, 0.2, "inconclusive"),
    ("increase", 0.0, 0.00005, "inconclusive"),
    ("decrease", 0.6, 0.2, "confirmed"),
    ("decrease", 0.2, 0.2, "inconclusive"),
    ("decrease", 0.2, 0.6, "wrong way"),
]


@pytest.mark.parametrize(("effect", "before", "after", "kind"), OUTCOMES)
def test_outcomes_by_mass(effect: str, before: float, after: float, kind: str) -> None:
    outcome = verdict(f"direction({effect})", [halves(before)] * 3, [halves(after)], change=CHANGED)
    wrong = log_ratio(before, after) * (-1 if effect == "increase" else 1)
    assert outcome["kind"] == kind
    assert (outcome["before"], outcome["after"]) == pytest.approx((before, after), abs=1e-3)
    assert outcome["log_ratio"] == pytest.approx(log_ratio(before, after), abs=5e-3)
    assert outcome["severity"] == pytest.approx(max(0, wrong) if kind != "confirmed" else 0, abs=5e-3)
    assert outcome["z"] is None, "its map does not vary"


def test_change_in_units_of_the_systems_own_spread() -> None:
    outcome = verdict("direction(increase)", [halves(0.2), halves(0.4)], [halves(0.6)], change=CHANGED)
    assert outcome["before"] == pytest.approx(0.3, abs=1e-3)
    spread = float(np.std([math.log(0.201), math.log(0.401)], ddof=1))
    assert outcome["z"] == pytest.approx(log_ratio(0.3, 0.6) / spread, rel=0.02)


def test_the_margin_belongs_to_the_judging() -> None:
    outcome = {
        margin: verdict("direction(increase)", [halves(0.2)], [halves(0.25)], change=CHANGED, margin=margin)
        for margin in (0.1, 0.5)
    }
    assert {margin: one["kind"] for margin, one in outcome.items()} == {0.1: "confirmed", 0.5: "inconclusive"}
    assert outcome[0.1]["log_ratio"] == outcome[0.5]["log_ratio"]


def test_the_middle_one_of_several_follow_up_runs_counts() -> None:
    outcome = verdict(
        "direction(increase, 1, 3)", [halves(0.5)], [halves(0.1), halves(0.9), halves(0.3)], change=CHANGED
    )
    assert outcome["severity"] == pytest.approx(-log_ratio(0.5, 0.3), abs=5e-3)
    assert outcome["after"] == pytest.approx(0.3, abs=1e-3)


def test_equal_cells_in_other_places_are_other_maps() -> None:
    even = np.ones((4, 4))
    sources = [mapped(even, (10, 10, 40, 40)), mapped(even, (60, 10, 90, 40))]
    outcome = verdict("direction(increase)", sources, [halves(0.5)], change=CHANGED)
    assert outcome["before"] == pytest.approx(0.5, abs=1e-3)


WALL = np.zeros(SIZE[::-1], bool)
WALL[:, 50:52] = True
BARRED = Change(Warp.identity(SIZE), mask=WALL)


def walled(*ways: list[list[float]]) -> Forecast:
    """Ways of a person at (20, 50); nothing of the map's mass lies near the wall."""
    cells = np.zeros((10, 10))
    cells[:, :4] = 1
    return Forecast.accept(Forecast.from_array(list(ways), cells), FRAME)


BEYOND = [[80.0, 50]] * STEPS
SHORT = [[40.0, 50]] * STEPS
BACK_AND_FORTH = [[40.0, 50], [60, 50], [40, 50], [40, 50]]
INTO = [[30.0, 50], [40, 50], [45, 50], [51, 50]]


@pytest.mark.parametrize(
    ("ways", "crossing"),
    [([SHORT] * 4, 0), ([BEYOND] + [SHORT] * 3, 1), ([BACK_AND_FORTH, BEYOND, SHORT, SHORT], 2), ([INTO] * 4, 4)],
)
def test_ways_through_a_wall_are_counted(ways: list[list[list[float]]], crossing: int) -> None:
    """The way to the first future position counts, and a wall of two cells is not stepped over."""
    outcome = verdict("direction(avoid)", [walled(SHORT)], [walled(*ways)], change=BARRED)
    assert (outcome["crossing"], outcome["futures"]) == (crossing, 4)
    assert outcome["kind"] == ("crossing" if crossing else "inconclusive")
    assert outcome["severity"] == pytest.approx(0.1 + math.log(5 / (5 - crossing)) if crossing else 0)


def test_what_may_be_walked_on_is_counted_but_held_against_nobody() -> None:
    outcome = verdict("direction(decrease)", [walled(BEYOND)], [walled(BEYOND)], change=BARRED)
    assert (outcome["crossing"], outcome["kind"], outcome["severity"]) == (1, "inconclusive", 0)


def test_a_fall_confirms_that_obstacles_are_avoided() -> None:
    ahead = Change(Warp.identity(SIZE), mask=RIGHT)
    assert verdict("direction(avoid)", [halves(0.4)], [halves(1.0, SHORT)], change=ahead)["kind"] == "confirmed"
    still = verdict("direction(avoid)", [halves(0.8)], [halves(0.4, SHORT)], change=ahead)
    assert still["kind"] == "wrong way"
    through = verdict("direction(avoid)", [halves(0.8)], [halves(0.01, BEYOND)], change=ahead)
    assert through["kind"] == "crossing"
    assert through["severity"] == pytest.approx(log_ratio(0.2, 0.99), abs=5e-3), "the worse of the two counts"


def test_who_stands_on_the_changed_cells() -> None:
    outcome = verdict("direction(avoid)", [halves(0.5)], [halves(0.5)], change=CHANGED)
    assert outcome["severity"] is None
    assert "stands on the changed cells" in outcome["reason"]
    assert verdict("direction(increase)", [halves(0.5)], [halves(0.5)], change=CHANGED)["severity"] == 0
    assert verdict("direction(avoid, test=wilcoxon)", [halves(0.5)], [halves(0.5)], change=CHANGED)["severity"] == 0


def test_as_published_p_decides() -> None:
    rule_of = "direction({}, test=wilcoxon)".format
    up, down = ([halves(0.5)], [halves(0.52)]), ([halves(0.5)], [halves(0.48)])
    for effect, right, wrong in (("increase", up, down), ("decrease", down, up)):
        outcome = verdict(rule_of(effect), *right, change=CHANGED)
        assert (outcome["kind"], outcome["severity"]) == ("confirmed", 0), "by all cells alike, however little"
        assert outcome["p"] < 1e-6
        outcome = verdict(rule_of(effect), *wrong, change=CHANGED)
        assert outcome["kind"] == "inconclusive"
        assert outcome["p"] > 0.99
    ahead = Change(Warp.identity(SIZE), mask=RIGHT)
    through = verdict(rule_of("avoid"), [halves(0.5)], [halves(0.9)], change=ahead)
    assert (through["kind"], through["crossing"]) == ("confirmed", 1), "crossings were counted apart"


def test_nothing_was_changed() -> None:
    outcome = verdict("direction(increase)", [halves(0.5)], [halves(0.5)])
    assert outcome["severity"] is None
    assert "class_change and obstacle" in outcome["reason"]


def test_without_a_map_only_crossings_are_seen() -> None:
    """Who walks round is judged as well as who walks through: a rate of crossings alone would always be 100 %."""
    bare, short = Forecast.from_array([BEYOND, SHORT]), Forecast.from_array([SHORT])
    outcome = verdict("direction(avoid)", [bare], [bare], change=BARRED)
    assert (outcome["kind"], outcome["severity"]) == ("crossing", pytest.approx(0.1 + math.log(3 / 2)))
    round_it = verdict("direction(avoid)", [bare], [short], change=BARRED)
    assert (round_it["kind"], round_it["severity"]) == ("confirmed", 0)
    never_there = verdict("direction(avoid)", [short], [short], change=BARRED)
    assert (never_there["kind"], never_there["severity"]) == ("inconclusive", 0)
    for relation in ("direction(decrease)", "direction(avoid, test=wilcoxon)"):
        outcome = verdict(relation, [bare], [short], change=BARRED)
        assert outcome["severity"] is None
        assert "gives no probability map" in outcome["reason"]


@pytest.mark.parametrize("ground", ["structure", "tree", "hedge"])
def test_who_stands_inside_an_obstacle_by_the_map(ground: str) -> None:
    """Nobody walks there: the map is wrong, and crossings say nothing. As published they count."""
    inside = replace(BARRED, facts={"ground": ground}, added=("hedge",))
    bare = Forecast.from_array([BEYOND, SHORT])
    outcome = verdict("direction(avoid)", [bare], [bare], change=inside)
    assert outcome["severity"] is None
    assert f"the map puts the person inside a {ground}" in outcome["reason"]
    on_pavement = replace(BARRED, facts={"ground": "pavement"})
    assert verdict("direction(avoid)", [bare], [bare], change=on_pavement)["kind"] == "crossing"
    assert verdict("direction(increase)", [halves(0.5)], [halves(0.5)], change=inside)["severity"] is not None
    published = verdict("direction(avoid, test=wilcoxon)", [halves(0.5)], [halves(0.5)], change=inside)
    assert published["severity"] is not None


@pytest.mark.parametrize("partner", ["mirror(h)", "rotate90(1)", "rescale(2)"])
def test_a_changed_map_may_be_moved_as_well(partner: str) -> None:
    """What is found does not depend on whether the change is also mirrored, turned or rescaled."""
    classes = np.ones(SIZE[::-1], np.uint8)
    classes[30:70, 60:80] = 2
    scene = Scene(classes, ("background", "pavement", "road"), np.array([[10.0, 50], [20, 50]]), STEPS)
    cells = np.random.default_rng(4).random((20, 20))
    told, said = (Forecast.accept(Forecast.from_array([BEYOND, SHORT], c), scene) for c in (cells, cells.T))
    _, plain = transformation("class_change(road, tree)")(scene)
    _, both = transformation(f"class_change(road, tree) | {partner}")(scene)
    alone = verdict("direction(avoid)", [told], [said], change=plain)
    moved = verdict("direction(avoid)", [told], [said.warped(both.warp)], change=both)
    assert alone["crossing"] == moved["crossing"] == 1
    assert alone["kind"] == moved["kind"]
    for name in ("before", "after", "severity", "log_ratio"):
        assert alone[name] == pytest.approx(moved[name], abs=1e-6)


def test_a_future_ends_where_it_leaves_the_frame() -> None:
    """Half way through its second step, in the corner of two, and never."""
    paths = np.array(
        [[[4.0, 5], [8, 5], [12, 5], [16, 5]], [[6, 6], [9, 9], [12, 12], [0, 0]], [[5, 5], [5, 5], [5, 5], [5, 5]]]
    )
    ended = _ended(paths, np.array([2.0, 5]), (10, 10))
    assert ended[0].tolist() == [[4, 5], [8, 5], [10, 5], [10, 5]]
    assert ended[1].tolist() == [[6, 6], [9, 9], [10, 10], [10, 10]], "who went out stays there"
    assert (ended[2] == 5).all()
