"""The tables of object relevance, counted by hand."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from instar.tasks.object_relevance.analysis import outcome_table
from instar.tasks.object_relevance.relations import ONLY_MEASURED
from tests.analysis.frames import SCHEMA

KEPT, GONE = "object_noise(0.5, 16) => presence(kept)", "erase(0.5) => presence(gone)"


def verdicts(
    rows: Sequence[tuple[str, str, str, float | None, str | None, bool, float]], reason: str | None = None
) -> pl.DataFrame:
    """Verdicts about dogs; those without a severity have this reason."""
    full = [
        (case, target, rule, severity, kind, reason if severity is None else None, "ok", before, after, "dog")
        for case, target, rule, severity, kind, before, after in rows
    ]
    return pl.DataFrame(
        full, schema={**SCHEMA, "found_source": pl.Boolean, "found": pl.Float64, "label": pl.String}, orient="row"
    )


def test_objects_and_images_are_counted_apart() -> None:
    found = outcome_table(
        verdicts(
            [
                ("a", "1", KEPT, 1.0, "missing", True, 0.0),
                ("a", "2", KEPT, 2 / 3, "incorrect", False, 2 / 3),
                ("a", "3", KEPT, 1 / 3, "missing", True, 2 / 3),
                ("b", "4", KEPT, 0.0, None, True, 1.0),
                ("c", "5", KEPT, None, None, True, 1.0),
            ]
        ),
        {KEPT: 2 / 3},
    ).row(0, named=True)
    assert {
        name: found[name]
        for name in (
            "objects",
            "missing",
            "incorrect",
            "persists",
            "images",
            "images_missing",
            "images_incorrect",
            "images_none",
            "images_clean",
            "annotated",
            "found",
        )
    } == {
        "objects": 4,
        "missing": 1,
        "incorrect": 1,
        "persists": 0,
        "images": 2,
        "images_missing": 1,
        "images_incorrect": 1,
        "images_none": 2,
        "images_clean": 1,
        "annotated": 5,
        "found": 3,
    }, "an image with one reliable inference counts among the paper's none, whatever else it shows"
    assert found["of_found"] == 1 / 3 and found["low"] < 1 / 3 < found["high"]
    assert found["of_annotated"] == 2 / 5
    assert found["tried"] == 3 and found["still_found"] == (0 + 2 / 3 + 1) / 3, "of the objects that are judged"


def test_a_curve_where_nothing_is_judged() -> None:
    found = outcome_table(
        verdicts(
            [
                ("a", "1", GONE, None, None, True, 1.0),
                ("a", "2", GONE, None, None, True, 0.0),
                ("a", "3", GONE, None, None, False, 1.0),
            ],
            f"{ONLY_MEASURED} 0.5 is erased; judged from 0.9 up",
        ),
        {GONE: 2 / 3},
    ).row(0, named=True)
    assert (found["objects"], found["images"], found["of_found"], found["still_found"]) == (0, 0, None, 0.5)
    assert found["of_annotated"] is None and found["tried"] == 2


def test_what_the_erased_object_covers_is_not_among_what_is_still_found() -> None:
    """It is lost for a reason that is no fault, and nothing is claimed of it."""
    others = "erase(1, only=0) => presence(others)"
    rows = [("a", "1", others, 0.0, None, True, 1.0), ("a", "2", others, None, None, True, 0.0)]
    covered = outcome_table(verdicts(rows, "the change of the other object covers 73% of this one"), {others: 2 / 3})
    assert covered.select("annotated", "found", "tried", "still_found").row(0) == (2, 1, 1, 1.0)


def test_other_relations_have_no_place_there() -> None:
    frame = verdicts([("a", "1", "mirror(h) => detections", 1.0, "lost", True, 0.0)])
    assert outcome_table(frame, {KEPT: 2 / 3}).is_empty()
