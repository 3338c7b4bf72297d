"""Seeded faults of a trajectory predictor: each is caught by the rules that can see it, and by no other.

The rules that move all alike catch by their tests (wvc at p ≤ 0.001, hvc above what rescaling costs a right system);
those that change the map by their outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import pytest

import instar
from instar.tasks.traj_test.analysis import trajectory_tables
from tests.perfect.walker import Walker, dataset, system

SCENES = 10
LEFTWARDS = ("mirror(h)", "rotate90(1)", "rotate90(2)", "rotate90(3)")
"""What makes a person who walks to the right walk to the left, some of them only by a little."""
STANDING = ("rotate90(1)", "rotate90(3)")
ALL = ("mirror(v)", "mirror(h)", "rotate90(1)", "rotate90(2)", "rotate90(3)")


@dataclass(frozen=True)
class Fault:
    walker: Walker
    futures: tuple[str, ...] = ()
    """The changes under which wvc rejects."""
    maps: tuple[str, ...] = ()
    """The changes under which hvc is large."""
    crosses: bool = False
    ignores_classes: bool = False


FAULTS = {
    "nothing": Fault(Walker()),
    "the spread collapses to a fifth": Fault(Walker(spread_to_the_left=0.2), LEFTWARDS, LEFTWARDS),
    "turned by the wrong sign": Fault(Walker(turns_portrait_wrongly=True), STANDING, STANDING),
    "the map is mirrored without the history": Fault(Walker(mirrors_map_only=True), LEFTWARDS, LEFTWARDS),
    "the probability map is half a pixel off": Fault(Walker(shift=0.5), (), ALL),
    "the map is ignored": Fault(Walker(sees_the_map=False), crosses=True, ignores_classes=True),
    "walks through structures": Fault(Walker(stops_at_obstacles=False), crosses=True),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_caught_by_the_rules_that_can_see_it(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    fault = FAULTS[name]
    run = instar.run(
        system(fault.walker), "trajtest", dataset(SCENES), out=tmp_path_factory.mktemp("run") / "run", workers=0
    )
    verdicts = run.verdicts().with_columns(change=pl.col("rule").str.split(" => ").list.first())

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


def test_thresholds_and_levels_are_chosen_afterwards(tmp_path_factory: pytest.TempPathFactory) -> None:
    run = instar.run(
        system(Walker(turns_portrait_wrongly=True)),
        "trajtest/geometry",
        dataset(6),
        out=tmp_path_factory.mktemp("run") / "run",
        workers=0,
    )

    def rate(rule: str, **how: float) -> float:
        return float(run.rates(**how).filter(rule=rule)["rate"].item())  # type: ignore[arg-type]

    assert rate("rotate90(1) => wvc") == rate("rotate90(1) => wvc", p=0.01) == 1
    assert rate("rotate90(1) => wvc", threshold=1e6) == 0
    assert rate("rotate90(1) => wvc", threshold=1e6, p=0.01) == 1
    assert rate("identity => wvc", p=0.9) > 0.5 > rate("identity => wvc", p=0.001)
    assert rate("rotate90(1) => hvc", p=0.01) == rate("rotate90(1) => hvc"), "no test, so its threshold decides"
    with pytest.raises(ValueError, match="p is above 0"):
        run.rates(p=1.5)
