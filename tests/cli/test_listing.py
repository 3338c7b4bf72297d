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


@pytest.mark.parametrize(
    ("name", "sentences"),
    [
        (
            "motion",
            [
                "size a whole number from 1 to 999; length of the line in pixels",
                "poses (2 rules)",
                "met-pose/sub (2 rules)",
                "example motion(",
            ],
        ),
        (
            "motion(11, 100)",
            [
                "Motion blur, 11 pixels, at 100°.",
                "size is 11: length of the line in pixels (a whole number from 1 to 999)",
                "suites met-pose, met-pose/sub, met-pose/quality",
            ],
        ),
        ("class_change(road, tree)", ["suites none has it with => direction(avoid): trajtest, trajtest/map"]),
        (
            "obstacle(tree, 0.5, 0.5)",
            ["futures must go around it", "=> direction(avoid)", "suites forecasts, trajtest, trajtest/map"],
        ),
        ("turn_past", ["must hold what the relation after => says; without one, follows"]),
        ("mirror(h)", ["with => wvc: forecasts, trajtest, trajtest/geometry"]),
        ("filtered(greyscale, skin)", ["zone is skin", "greyscale Rec. 601 luma", "suites none has it"]),
        ("presence", ["=> presence", "effect one of gone, kept, others", "object-relevance (28 rules)"]),
        ("=> poses", ["what rules without => ask of poses", "judging: aggregate text, median by default"]),
        ("noise(16) => poses(draws=3)", ["=> poses(draws=3) Landmarks move", "violated from 0.2 up"]),
    ],
)
def test_one_is_explained(typed: Type, name: str, sentences: list[str]) -> None:
    shown = typed("rules", name)
    assert shown.code == 0, shown.stderr
    assert not [sentence for sentence in sentences if sentence not in shown.words], shown.stdout
    (row,) = json.loads(typed("rules", name, "--json").stdout)
    assert row["help"] and isinstance(row["suites"], dict)


def test_a_name_that_is_nearly_right_is_told(typed: Type) -> None:
    refused = typed("rules", "motoin")
    assert refused.code == 2 and "did you mean 'motion'?" in refused.stderr
    assert "it takes a number from above 0 to 100" in typed("rules", "gamma(500)").stderr


def test_defects_of_papers_are_told_in_the_docs_not_in_lists(typed: Type) -> None:
    """Who looks for a rule does not ask what the code of a paper did; `docs/rules.md` says it where it matters."""
    listed = typed("rules").stdout
    assert "⚠" not in listed
    assert "lose up to 21" not in listed


def test_the_rules_of_a_suite(typed: Type) -> None:
    assert len(json.loads(typed("suites", "met-pose", "--json").stdout)["rules"]) == 123
    assert "motion(11, 100) motion blur, 11 pixels, at 100°" in typed("suites", "met-pose/sub").words
    assert "jpeg(20) looks for answers that depend on fine texture" in typed("suites", "detections").words
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
