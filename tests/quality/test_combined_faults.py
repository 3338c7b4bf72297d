"""Faults that show only where several changes come together are found, and named by the rules that they take."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import instar
from instar.analysis.found import found_combinations
from instar.stats import fisher
from studies.combinations import RESULTS, measured
from tests.quality.combined_faults import FAULTS, NEEDED, RULES, photos
from tests.toys import image_system


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return photos(tmp_path_factory.mktemp("combined") / "photos", 16)


@pytest.mark.parametrize("name", FAULTS)
def test_no_rule_alone_shows_the_fault(name: str, pictures: Path, tmp_path: Path) -> None:
    system = image_system(FAULTS[name], "detections")
    run = instar.run(system, "+".join(RULES), pictures, out=tmp_path / "run", workers=0)
    assert run.any_rule()["violated"] == 0


@pytest.mark.parametrize("name", ["dark, soft and mirrored", "small, grainy and dark"])
def test_a_search_names_the_fault(name: str, pictures: Path, tmp_path: Path) -> None:
    """By the rules that it takes, with the share of other cases that have it, and in a smaller form."""
    system = image_system(FAULTS[name], "detections")
    run = instar.search(system, "+".join(RULES), pictures, out=tmp_path / "run", budget=600, visual=0.5, workers=0)
    named_combinations = found_combinations(run).to_dicts()
    (named,) = [
        one for one in named_combinations if {each.partition("(")[0] for each in one["members"]} == NEEDED[name]
    ]
    share = 0.5 if "small" in name else 1.0  # every other image has a small object
    assert named["low"] <= share <= named["high"] and named["alone"] == named["broken"] > 0
    assert named["shrunk"] != named["name"]
    assert named["visual"] <= 0.52


def test_the_study_names_faults_more_often_than_chance() -> None:
    """In the committed results, over all faults; the ways to pick differ in nothing else."""
    results = json.loads(RESULTS.read_text("utf-8"))
    assert set(results["faults"]) == set(FAULTS) and results["rules"] == len(RULES)
    likely, by_chance = (
        sum(one[picks]["found"] for one in results["faults"].values()) for picks in ("likely", "random")
    )
    every = sum(one["likely"]["of"] for one in results["faults"].values())
    assert likely > by_chance and fisher(likely, every - likely, by_chance, every - by_chance) < 0.001


def test_the_study_runs() -> None:
    (name,) = list(FAULTS)[:1]
    made = measured([0], 200, [name])
    assert made[name]["likely"]["of"] == made[name]["random"]["of"] == 1
