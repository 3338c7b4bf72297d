"""Predictors that are exactly right: every rule of `forecasts` and TrajTest finds so, and tests keep their level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import instar
from instar.outputs.forecast import Forecast
from instar.relations import Evidence, rule
from instar.scene import Scene, Track
from instar.stats import wilson
from instar.systems import System
from instar.tasks.traj_test.analysis import trajectory_tables
from tests.perfect.calibration import LEVEL, accused
from tests.perfect.walker import STEPS, Stroller, Walker, dataset, predictor, strolls, system
from tests.quality.words import accusations, assert_shown

EXACT = 1e-6
RESAMPLED = 0.2
"""Hellinger distance for rescale: a map of nearest cells is another map, whose patches are up to a cell larger."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> instar.Run:
    out = tmp_path_factory.mktemp("run") / "right"
    return instar.run(system(Walker()), "trajtest", dataset(10), out=out, workers=0)


def test_probability_maps_move_exactly(finished: instar.Run) -> None:
    judged = finished.verdicts().filter(pl.col("rule").str.ends_with("=> hvc"))
    assert judged["severity"].null_count() == 0
    for name, part in judged.group_by("rule"):
        limit = RESAMPLED if "rescale" in str(name) else EXACT
        assert part["severity"].max() <= limit, name  # type: ignore[operator]
        assert part["own"].max() == 0, "its map does not depend on chance"


def test_futures_stay_as_near_as_the_system_is_to_itself(finished: instar.Run) -> None:
    judged = finished.verdicts().filter(pl.col("rule").str.ends_with("=> wvc"))
    rescaled = pl.col("rule").str.contains("rescale")
    assert judged.filter(~rescaled)["severity"].max() < 0.15  # type: ignore[operator]
    assert judged.filter(rescaled)["severity"].max() < 0.4  # type: ignore[operator]
    assert judged.filter(~rescaled)["p"].min() > 0.001  # type: ignore[operator]
    assert (judged["p_least"] < 2e-5).all()


def test_probability_goes_the_right_way_and_nobody_walks_through_walls(finished: instar.Run) -> None:
    judged = finished.verdicts().filter(pl.col("rule").str.contains("direction") & pl.col("severity").is_not_null())
    assert set(judged["kind"]) == {"confirmed", "inconclusive"}
    assert judged["severity"].max() < 0.1  # type: ignore[operator]
    assert judged.filter(pl.col("rule").str.contains("avoid"))["crossing"].sum() == 0
    table = trajectory_tables(finished)["map"]
    share = {(row["change"], row["effect"]): row["confirmed"] for row in table.iter_rows(named=True)}
    assert share["obstacle", "avoid"] > 0.95
    assert min(share.values()) > 0.5
    # where hardly anything was or came, nothing can be said
    quiet = judged.filter(pl.col("kind") == "inconclusive")
    assert quiet.select(pl.min_horizontal("before", "after")).to_series().median() < 0.05  # type: ignore[operator]


def futures_of(
    start: np.ndarray[tuple[int, ...], np.dtype[np.float64]], rng: np.random.Generator
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Twenty ways ahead of a walker at `start` who goes to the right with errors of heading, speed and step."""
    heading, speed = rng.normal(0, 0.3, (20, 1)), rng.normal(10, 2, (20, 1))
    steps = np.stack([speed * np.cos(heading), speed * np.sin(heading)], -1) + rng.normal(0, 0.5, (20, STEPS, 2))
    return np.asarray(start + np.cumsum(steps, 1))


CASES = 300
CHANGES = ("mirror(v)", "mirror(h)", "rotate90(1)", "rotate90(2)", "rotate90(3)", "rescale(0.8)", "rescale(1.2)")


def calibrated(sources: int, repeats: int) -> pl.DataFrame:
    """The verdicts of wvc on predictions of walkers whose follow-ups are right by construction."""
    rng = np.random.default_rng(11)
    size = (600, 400)
    rows: list[dict[str, object]] = []
    cases = []
    for number in range(CASES):
        start = rng.uniform([50, 50], [550, 350])
        name = CHANGES[number % len(CHANGES)]
        _, change = instar.transformation(name)(Scene.blank(size))
        warp = change.warp
        past = tuple((float(start[0] - 10 * k), float(start[1])) for k in range(7, -1, -1))
        cases.append({"case": f"{number:04}", "track": Track(past, ("background",), STEPS, size=size).json()})
        base = {"case": f"{number:04}", "draw": 0, "samples": 20}
        rows += [
            {
                **base,
                "follow_up": "source",
                "width": size[0],
                "height": size[1],
                "repeat": i,
                "warp": np.eye(3).ravel().tolist(),
                "futures": futures_of(start, rng).astype(np.float32).ravel().tolist(),
            }
            for i in range(sources)
        ]
        rows += [
            {
                **base,
                "follow_up": name,
                "width": warp.target[0],
                "height": warp.target[1],
                "repeat": i,
                "warp": warp.matrix.ravel().tolist(),
                "futures": warp.points(futures_of(start, rng)).astype(np.float32).ravel().tolist(),
            }
            for i in range(repeats)
        ]
    frame = pl.DataFrame(rows, schema_overrides={"futures": pl.List(pl.Float32), "warp": pl.List(pl.Float64)})
    source = pl.col("follow_up") == "source"
    bound = rule(f"mirror(h) => wvc({sources}, {repeats})").relation
    assert bound is not None
    return bound.relation.judge(
        Evidence({}, pl.DataFrame(cases), frame.filter(source), frame.filter(~source), dict(bound.values), {})
    )


@pytest.mark.parametrize(("sources", "repeats"), [(20, 5), (20, 1)])
def test_the_test_rejects_as_often_as_it_says(sources: int, repeats: int) -> None:
    """Over 300 cases whose follow-ups are right: the 99 % interval of the violation rate holds the nominal level."""
    p = calibrated(sources, repeats)["p"].to_numpy()
    assert len(p) == CASES
    for level in (0.05, 0.1, 0.2, 0.5):
        reachable = np.floor(level * (sources + 1)) / (sources + 1) if repeats == 1 else level
        low, high = wilson(int((p <= level + 1e-12).sum()), CASES, 0.99)
        assert low <= reachable <= high, (level, low, high)


def test_a_run_for_the_same_seed_is_the_same(finished: instar.Run, tmp_path: Path) -> None:
    again = instar.run(system(Walker()), "trajtest/geometry", dataset(3), out=tmp_path / "again", workers=0)
    both = (
        again.verdicts()
        .select("case", "rule", "severity", "p")
        .join(finished.verdicts().select("case", "rule", "severity", "p"), on=["case", "rule"], suffix="_before")
    )
    assert len(both) == 3 * 15
    assert both["severity"].equals(both["severity_before"].rename("severity"))


# --- the suite of forecasts ---------------------------------------------------------------------------------


_SURE = Stroller(heading=0, speed=0, futures=1)


def always_the_same_draw(scene: Scene, seed: int) -> Forecast:
    """Right, and reproducible in the way of people who fix the seed within their predictor."""
    return Stroller(futures=20)(scene, 0)


def ends_where_it_goes_out(scene: Scene, seed: int) -> Forecast:
    """Straight on in one future, which stops in the last place that is on the map."""
    futures = _SURE(scene, seed).futures.copy()
    outside = np.flatnonzero(~((futures[0] > 0) & (futures[0] < scene.size)).all(1))
    if len(outside):
        futures[:, outside[0] :] = futures[:, outside[0] - 1][:, None] if outside[0] else scene.position
    return Forecast.from_array(futures)


@dataclass(frozen=True)
class Flawless:
    system: System
    tells: tuple[str, ...] = ()
    """The rules that are right to say that it does not look at the map."""


_MAP_RULES = (
    "obstacle(new=tree, size=0.5) => direction(avoid)",
    "obstacle(size=0.5) | rotate90(1) => direction(avoid)",
)
FLAWLESS: Mapping[str, Flawless] = {
    "goes round obstacles": Flawless(predictor(Stroller())),
    "gives its futures in any order": Flawless(predictor(Stroller(shuffles=True))),
    "ends its futures at the frame": Flawless(predictor(Stroller(ends_at_the_frame=True))),
    "constant velocity with errors alike on both sides": Flawless(
        predictor(Stroller(sees_the_map=False, futures=20)), _MAP_RULES
    ),
    "one future, for sure": Flawless(predictor(_SURE, deterministic=True)),
    "one future straight on, for sure": Flawless(
        predictor(Stroller(heading=0, speed=0, futures=1, sees_the_map=False), deterministic=True), _MAP_RULES
    ),
    "draws the same futures each time": Flawless(predictor(always_the_same_draw, deterministic=True)),
    "social-force, which comes with Instar": Flawless(instar.system("social-force")),
}


@pytest.mark.parametrize("name", FLAWLESS)
def test_a_flawless_predictor_is_not_accused(name: str, tmp_path: Path) -> None:
    flawless = FLAWLESS[name]
    suite = instar.suite("forecasts + rescale(0.8) => wvc + crop(0.8) => wvc")
    run = instar.run(flawless.system, suite, strolls(8), out=tmp_path / "run", workers=0)
    assert set(accused(run, share=0)) == set(flawless.tells)
    against = [words for words in accusations(run) if "at least one rule" not in words]
    assert len(against) == len(flawless.tells) and all("go through an obstacle" in words for words in against), against
    if name == "one future, for sure":
        assert_shown(run)
    tests = run.verdicts().filter(pl.col("rule").str.ends_with("=> wvc"))
    p = tests["p"].drop_nulls()
    assert tests["severity"].null_count() < len(tests) / 4, "what is not judged accuses nobody either"
    if flawless.system.deterministic:
        assert not len(p)
    else:
        low, _ = wilson(int((p <= LEVEL).sum()), len(p), 0.999)
        assert low <= LEVEL


WALKERS = Path(__file__).parents[2] / "examples" / "walkers" / "walkers.csv"
ON_SMALL_MAPS: Mapping[str, System] = {
    "goes beyond the map": predictor(Stroller(sees_the_map=False)),
    "ends its futures at the frame": predictor(Stroller(sees_the_map=False, ends_at_the_frame=True)),
    "goes round obstacles": predictor(Stroller()),
    "one future that stops where it goes out": predictor(ends_where_it_goes_out, deterministic=True),
    "one future beyond the map": predictor(_SURE, deterministic=True),
}


@pytest.mark.parametrize("name", ON_SMALL_MAPS)
def test_most_people_on_small_maps_are_judged_and_flawless_predictors_are_not_accused(
    name: str, tmp_path: Path
) -> None:
    """The maps of the example are about as long as people walk: half of the futures go up to their edges."""
    moved = [one.left for one in instar.suite("forecasts").rules if one.left.startswith("pad(")]
    rules = " + ".join(f"{change} => wvc(8, 3)" for change in moved)
    run = instar.run(ON_SMALL_MAPS[name], rules, WALKERS, out=tmp_path / "run", workers=0)
    assert len(moved) == 3 and (run.rates()["judged"] >= 18).all(), run.unjudged()
    assert accused(run, share=0) == {}
