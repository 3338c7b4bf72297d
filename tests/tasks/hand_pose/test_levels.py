"""Levels, and relations over many cases: what counts as a rule, which way a measure goes, what there was to lose."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import instar
from instar.cli.looking import run_json
from instar.outputs.poses import Poses
from instar.relations import Evidence
from instar.relations.over_cases import correlation, degradation
from instar.report.section import make_section
from instar.report.sentences import headline
from instar.tasks.hand_pose.panel import PANELS
from tests.perfect.test_hand_pose import data, known, seeing


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> instar.Run:
    return instar.run(seeing, "hand-pose", data(count=4), out=tmp_path_factory.mktemp("run") / "run", workers=0)


def test_levels_are_no_rules_of_their_own(run: instar.Run) -> None:
    """One that sees loses what is covered: TC1 asks for that, so that no level of it is a violation."""
    assert "at least one of 12 rules" in headline(make_section(run, "accuracy"), 0)[0]
    assert run.rules().filter(over="level").height == 21
    assert run.any_rule(0.3)["violated"] == 0, "a finger's four landmarks are a tenth of F1"
    assert not run.worst(100)["rule"].str.starts_with("discs").any()
    assert run.worst(5, rule="discs(21) => accuracy").height == 4, "who asks for one gets it"


def test_levels_of_a_bounded_test_case_count(tmp_path: Path) -> None:
    suite = "discs(1..3) => correlation(f1) + discs(3) => degradation(f1)"
    run = instar.run(seeing, suite, data(count=3), out=tmp_path, workers=0)
    assert run.changing_rules() == ["discs(3) => accuracy"]


def test_a_run_of_levels_alone_has_a_headline(tmp_path: Path) -> None:
    run = instar.run(seeing, "discs(1..3) => correlation(f1)", data(count=3), out=tmp_path, workers=0)
    assert headline(make_section(run, "accuracy"), 0)[0].startswith(
        "The suite has no rule of this relation but identity"
    )


# --- which way


def judged(
    relation: Callable[[Evidence], pl.DataFrame], hits: list[int], first: int = 20, **parameters: object
) -> dict[str, Any]:
    """What a relation says of two equal cases with so many of 20 landmarks right at each level."""
    rows = [
        {
            "case": case,
            "follow_up": f"level {level}",
            "tp": float(right),
            "fp": 0.0,
            "fn": 20.0 - right,
            "source_tp": float(first),
            "source_fp": 0.0,
            "source_fn": 20.0 - first,
            "severity": (20 - right) / 20,
        }
        for case in "ab"
        for level, right in enumerate(hits)
    ]
    names = tuple(f"level {level}" for level in range(len(hits)))
    defaults = {"measure": "f1", "least": 0.9, "direction": "worse", "margin": 0.05, "of": "baseline"}
    empty = pl.DataFrame()
    seen = Evidence({}, empty, empty, empty, {**defaults, **parameters}, {}, pl.DataFrame(rows), names)
    return relation(seen).row(0, named=True)


def test_a_rising_f1_does_not_pass() -> None:
    assert judged(correlation, [15, 10, 5])["severity"] == 0
    rising = judged(correlation, [5, 10, 15])
    assert rising["r"] > 0.9 and rising["severity"] == pytest.approx(0.9 + rising["r"])
    assert judged(correlation, [5, 10, 15], direction="either")["severity"] == 0, "as the paper has it"
    assert judged(correlation, [15, 10, 5], measure="severity")["severity"] == 0, "what is wrong rises"
    assert judged(correlation, [5, 10, 15], measure="severity")["severity"] > 1
    assert judged(correlation, [5, 10, 15], measure="tp")["severity"] == 0, "of other columns nothing is known"


def test_what_was_nothing_cannot_fall() -> None:
    """A system that found no hand, and one behind a disc by chance, was said to lose nothing and to violate TC1."""
    for hits in ([0, 0, 0], [2, 0, 0]):
        nothing = judged(correlation, hits, first=0)
        assert nothing["severity"] is None and "nothing to lose" in str(nothing["reason"])
    assert judged(correlation, [0, 0, 0], first=0, direction="either")["severity"] == 0.9, "as the paper has it"
    assert judged(correlation, [0, 0, 2], first=0)["severity"] > 1, "it finds more, the less is to be seen"
    assert judged(correlation, [1, 1, 1], first=1)["severity"] == 0.9


def test_what_is_lost_is_relative_to_what_there_was() -> None:
    """F1 of 1 in 20 right is 2 / 21: to lose all of it is no small loss."""
    little = judged(degradation, [0], first=1)
    assert little["drop"] == pytest.approx(2 / 21) and little["lost"] == 1
    assert little["severity"] == pytest.approx(0.95)
    assert judged(degradation, [0], first=1, of="whole")["severity"] == pytest.approx(2 / 21 - 0.05)
    nothing = judged(degradation, [0], first=0)
    assert nothing["severity"] is None and "nothing to lose" in str(nothing["reason"])


def test_a_loss_of_just_the_margin_at_every_level_is_seldom_accused() -> None:
    """The worst of six levels is worse by chance: its own interval accused one system in eight."""
    rng, names, empty = np.random.default_rng(3), [f"level {number}" for number in range(6)], pl.DataFrame()
    parameters = {"measure": "severity", "margin": 0.05, "of": "baseline", "direction": "worse"}
    accused = 0
    for _ in range(100):
        drawn = rng.uniform(0, 0.1, (30, 6))
        rows = [
            {"case": f"{case:02}", "follow_up": name, "severity": severity}
            for case, of_case in enumerate(drawn)
            for name, severity in zip(names, of_case, strict=True)
        ]
        row = degradation(Evidence({}, empty, empty, empty, parameters, {}, pl.DataFrame(rows), tuple(names)))
        told = row.row(0, named=True)
        assert told["lost"] == pytest.approx(drawn.mean(0).max())
        assert told["lost_low"] <= told["lost"] <= told["lost_high"]
        accused += told["severity"] > 0
    assert accused <= 6, "2.5 %, and chance"


def test_numbers_are_in_json_and_tables(run: instar.Run) -> None:
    rows = {row["rule"]: row for row in json.loads(json.dumps(run_json(run)["over_cases"], default=str))}
    assert {"r", "rho", "low", "high", "severity"} <= rows["discs(1..21) => correlation(measure=f1)"].keys()
    assert {"drop", "low", "high", "lost", "lost_low", "lost_high"} <= rows[
        "gamma(5) => degradation(measure=f1)"
    ].keys()
    panel = PANELS["hands"]
    assert panel.tables is not None
    printed = panel.tables([run], "default", 0.05)
    assert printed is not None and printed.frames["over_cases"].height == 13
    cells = {row[0]: row[2] for row in printed.tables[-1].rows}
    assert "r = -" in cells["TC1 landmarks covered"] and "ρ = -1.00" in cells["TC1 landmarks covered"]
    assert "lost (95\u00a0%:" in cells["TC2 thumb covered"]


def test_a_system_that_finds_more_the_more_is_covered(tmp_path: Path) -> None:
    def contrary(pixels: np.ndarray) -> Poses:
        points, shown = known(pixels)
        given = points.copy()
        given[shown] = np.nan
        return Poses.from_array(given if (~shown).any() else [], skeleton="hand-21")

    run = instar.run(contrary, "discs(1..21) => correlation(f1)", data(), out=tmp_path, workers=0)
    row = run.over_cases().row(0, named=True)
    assert row["r"] > 0.9 and row["severity"] > 1.8
