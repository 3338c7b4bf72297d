"""Targets by name: nobody knows who `2183095` or `0/body` is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest

from instar.analysis import Run
from instar.outputs import output_kind
from instar.relations import named_rule
from instar.report.targets import target_names
from instar.skeleton import skeleton, skeletons

ERASED, MOVED = "erase(1) => presence(gone)", "mirror(h) => detections"


def run_of(kind: str, rules: list[str], *, header: dict[str, Any] | None = None, **columns: Any) -> Run:
    """As much of a run as names are made of: its rules, one case `a.png` with its truth, and its verdicts."""
    verdicts = pl.DataFrame(columns.pop("verdicts", {"case": ["a.png"]}))
    return cast(
        Run,
        SimpleNamespace(
            manifest=SimpleNamespace(system=SimpleNamespace(kind=kind), header=header or {}),
            bound_rules=lambda: tuple(named_rule(rule).for_output(kind) for rule in rules),
            cases=lambda: pl.DataFrame({"case": ["a.png"], **{key: [value] for key, value in columns.items()}}),
            store=SimpleNamespace(
                judgings=lambda: ["default"],
                verdict_parts=lambda judging, names: [verdicts.select(set(names) & {*verdicts.columns})],
            ),
        ),
    )


def verdicts_on(rule: str, *targets: str | None) -> pl.DataFrame:
    rows = [{"case": "a.png", "rule": rule, "target": target} for target in targets]
    return pl.DataFrame(rows, schema=dict.fromkeys(("case", "rule", "target"), pl.String))


def test_annotated_objects_are_called_by_class_and_place_among_their_like() -> None:
    run = run_of("detections", [ERASED], truth_labels=["cup", "dining table", "cup"], truth_ids=["2183095", "12", "7"])
    assert target_names(run, verdicts_on(ERASED, "7", "12", "2183095", "whole")) == [
        "cup, 2nd", "dining table", "cup, 1st", "the whole image",
    ]  # fmt: skip


def test_found_objects_are_counted_apart_from_annotated_ones_that_share_their_numbers() -> None:
    """A run may judge both: target 1 of `detections` is the second answer of the system, not annotation 1."""
    judged = [
        (MOVED, "0", "dog"),
        (MOVED, "4", "dog"),
        (MOVED, "1", "cat"),
        (MOVED, "whole", None),
        (ERASED, "1", "cup"),
    ]
    run = run_of(
        "detections",
        [ERASED, MOVED],
        truth_labels=["cup"],
        truth_ids=["1"],
        verdicts=[{"case": "a.png", "rule": rule, "target": target, "label": label} for rule, target, label in judged],
    )
    assert target_names(run, verdicts_on(MOVED, "4", "1", "0")) == ["dog, 2nd", "cat", "dog, 1st"]
    assert target_names(run, verdicts_on(ERASED, "1")) == ["cup"]


def test_an_object_without_a_class_has_its_number_from_one() -> None:
    assert target_names(run_of("detections", [MOVED]), verdicts_on(MOVED, "6")) == ["object 7"]


@pytest.mark.parametrize(
    ("bones", "target", "name"),
    [
        ("mediapipe-holistic", "2/left_hand", "person 3, left hand"),
        ("mediapipe-holistic", "0/body", "person 1, body"),
        ("coco-17", "1", "person 2"),
        ("hand-21", "0", "hand 1"),
        ("face-mesh-468", "0", "face 1"),
        ("ap-10k", "0", "subject 1"),
        ("coco-17", "whole", "the whole image"),
    ],
)
def test_subjects_are_numbered_and_their_parts_named(bones: str, target: str, name: str) -> None:
    run = run_of("poses", ["gamma(2) => poses"], header={"skeleton": skeleton(bones).to_dict()})
    assert target_names(run, verdicts_on("gamma(2) => poses", target)) == [name]


def test_a_verdict_about_its_whole_input_needs_no_name() -> None:
    """Captions have one target, or one for each follow-up that was drawn."""
    run = run_of("caption", ["noise(8) => objects"])
    assert target_names(run, verdicts_on("noise(8) => objects", "whole", "draw 0", None)) == ["", "follow-up 1", ""]


@pytest.mark.parametrize("name", skeletons())
def test_every_skeleton_has_a_word_for_its_subject(name: str) -> None:
    assert output_kind("poses").subject({"skeleton": skeleton(name).to_dict()}) in ("person", "hand", "face", "subject")
