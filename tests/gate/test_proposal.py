"""Limits that `gate --init` proposes: what the cases can show, and a warning of those that accept a broken model."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import instar
from instar import Detections
from instar.cli import app
from instar.gate import Proposed, checked, new_policy, proposed_limits, read_policy
from instar.gate.checks import after_looks
from instar.stats import binomial_bounds, sequence_bounds
from tests.toys import rectangles, write_scenes

CASES = 30


def blind_in_other_light(pixels: np.ndarray) -> Detections:
    """Finds nothing in most images whose light has changed."""
    found = rectangles(pixels)
    changed = abs(int(pixels[0, 0, 0]) - 110) > 3
    return Detections.from_xyxy(np.empty((0, 4)), []) if changed and int(found.boxes[0, 1]) % 13 else found


def code(limit: Proposed) -> str | None:
    return None if limit.warning is None else limit.warning.code


def held(run: instar.Run, folder: Path) -> bool:
    path = folder / "held.toml"
    path.write_text(new_policy(run), "utf-8")
    return all(one.passed for one in checked(run, read_policy(path)))


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scenes(tmp_path_factory.mktemp("data") / "photos", CASES)


@pytest.mark.parametrize(("cases", "limit"), [(3, 0.65), (16, 0.18), (30, 0.1)])
def test_a_limit_is_the_lowest_that_the_cases_show(photos: Path, tmp_path: Path, cases: int, limit: float) -> None:
    run = instar.run("tests.toys:rectangles", "mirror(h)", photos, out=tmp_path / "run", workers=0, limit=cases)
    for one in proposed_limits(run):
        assert (one.violated, one.judged, one.limit) == (0, cases, limit)
        assert one.tighter is not None and one.needed is not None and one.tighter < limit
        assert binomial_bounds(0, one.needed, after_looks(0.95))[1] <= one.tighter
        assert binomial_bounds(0, one.needed - 1, after_looks(0.95))[1] > one.tighter
        assert code(one) == ("gate.init_few_cases" if cases == 3 else None)
        assert f"{one.needed} cases" in new_policy(run)
    assert held(run, tmp_path)


def test_a_rate_that_accepts_a_broken_model_is_warned_of(photos: Path, tmp_path: Path) -> None:
    run = instar.run(blind_in_other_light, "mirror(h)+gamma(0.5)", photos, out=tmp_path / "run", workers=0)
    limits = {one.of: one for one in proposed_limits(run)}
    assert (limits["gamma"].violated, limits["gamma"].judged, limits["gamma"].limit) == (25, CASES, 0.94)
    assert {name: code(one) for name, one in limits.items()} == {
        "mirror": None,
        "gamma": "gate.init_high_rate",
        "any rule": "gate.init_high_rate",
    }
    assert new_policy(run).count("# WARNING") == 2
    policy = tmp_path / "instar.toml"
    result = CliRunner().invoke(app, ["gate", str(run.folder), "--init", "--policy", str(policy)])
    assert result.exit_code == 0
    assert result.stderr.count("instar: ") == 2 and "gamma" in result.stderr
    assert [limit["rate"] for limit in tomllib.loads(policy.read_text("utf-8"))["limit"]] == [
        one.limit for one in limits.values()
    ]
    assert held(run, tmp_path)


def test_a_run_that_was_stopped_by_looking_holds_its_policy_too(tmp_path: Path) -> None:
    photos = write_scenes(tmp_path / "photos", 60)
    run = instar.run("tests.toys:rectangles", "mirror(h)", photos, out=tmp_path / "run", workers=0, until=0.06)
    (limit,) = {(one.judged, one.limit) for one in proposed_limits(run)}
    assert run.looked and limit[0] < 60
    assert limit[1] >= sequence_bounds(0, limit[0], 0.95)[1]
    assert held(run, tmp_path)


def test_a_rate_just_below_a_usual_limit_promises_no_number_of_cases() -> None:
    assert code(Proposed("any rule", 1, 20, 0.22)) is None
    assert "takes" not in Proposed("any rule", 1, 20, 0.22).block()
