"""What there is: rules, suites, systems, datasets, models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Type


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("rules", "gamma Gamma correction: 255·(v/255)^γ."),
        ("suites", "(19 rules)"),
        ("systems", "mediapipe-holistic"),
        ("datasets", "folder"),
        ("models", "selfie-multiclass missing;"),
    ],
)
def test_lists(typed: Type, tmp_path: Path, what: str, line: str) -> None:
    shown = typed(what, INSTAR_MODELS=str(tmp_path))
    assert shown.code == 0, shown.stderr
    assert line in shown.words
    rows = json.loads(typed(what, "--json", INSTAR_MODELS=str(tmp_path)).stdout)
    assert len(rows) > 3
    assert all(row["name"] and row["help"] for row in rows)
    assert all(row["name"] in shown.stdout for row in rows)


def test_relations_say_what_can_be_chosen_when_judging(typed: Type) -> None:
    assert "judging: normaliser: one of part, box, image, pixels, part by default" in typed("rules").words
    rows = {row["name"]: row for row in json.loads(typed("rules", "--json").stdout)}
    assert "aggregate" in [option["name"] for option in rows["=> poses"]["judging"]]
    assert rows["gamma"]["parameters"][0]["required"]


def test_the_rules_of_a_suite(typed: Type) -> None:
    assert len(typed("suites", "met-pose").stdout.splitlines()) == 123
    values = json.loads(typed("suites", "met-pose@paper", "--json").stdout)
    assert values["judging"]["space"] == "normalised"


def test_models_are_verified_and_used(typed: Type, tmp_path: Path) -> None:
    folder = {"INSTAR_MODELS": str(tmp_path)}
    every = typed("models", "verify", **folder)
    assert every.code == 0, "what was never pulled is no damage"
    assert "selfie-multiclass: missing" in every.stdout
    assert typed("models", "verify", "selfie-multiclass", **folder).code == 1
    path = {row["name"]: row["path"] for row in json.loads(typed("models", "--json", **folder).stdout)}
    Path(path["selfie-multiclass"]).write_bytes(b"no model")
    damaged = typed("models", "verify", **folder)
    assert damaged.code == 1 and "selfie-multiclass: damaged" in damaged.stdout
    refused = typed("models", "use", "selfie-multiclass", path["selfie-multiclass"], **folder)
    assert refused.code == 2 and "SHA-256" in refused.stderr


def test_models_are_pulled_with_npm(typed: Type, tmp_path: Path) -> None:
    refused = typed("models", "pull", "selfie-multiclass", INSTAR_MODELS=str(tmp_path), PATH="")
    assert refused.code == 2
    assert "npm, which is not installed" in refused.stderr
    assert "did you mean 'selfie-multiclass'?" in typed("models", "pull", "selfie").stderr
