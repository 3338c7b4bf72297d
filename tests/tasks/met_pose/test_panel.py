"""What `instar tables` prints of MET-POSE."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import instar
from instar import Run
from instar.analysis import classic_table
from instar.case import Case
from instar.datasets import Dataset
from instar.suites import Suite
from instar.tasks.met_pose.landmarks import landmark_table
from instar.tasks.met_pose.panel import PANELS
from tests.toys import rectangles, scene, shaky, steady, write_scenes

RULES = Suite("test", tuple(instar.rule(text) for text in ("identity", "gamma(0.5)", "rotation(5)")))


@pytest.fixture(scope="module")
def annotated(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("annotated")
    photos = write_scenes(folder / "photos", 4)
    cases = [
        Case(path.name, path=str(path), truth=steady(scene(number).pixels))
        for number, path in enumerate(sorted(photos.iterdir()))
    ]
    data = Dataset("annotated", str(photos), lambda: iter(cases), "poses")
    return instar.run(shaky, RULES, data, out=folder / "run", workers=0)


@pytest.fixture(scope="module")
def unlabelled(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("unlabelled")
    return instar.run(rectangles, RULES, write_scenes(folder / "photos", 2), out=folder / "run", workers=0)


def test_cases_by_the_number_of_violated_rules(annotated: Run) -> None:
    made = PANELS["violated-counts"].tables
    assert made is not None
    content = made([annotated], "default", 0.05)
    assert content is not None
    (table,) = content.tables
    assert table.caption == "poses: cases by the number of rules that they violate, by threshold in body lengths"
    assert table.heads == ["violated rules", *("∞" if limit == float("inf") else f"{limit:g}" for limit in grid())]
    assert [row[0] for row in table.rows] == ["0", "1", "2"], "identity is no rule that changes something"
    assert all(sum(int(row[column]) for row in table.rows) == 4 for column in range(1, len(table.heads)))
    assert content.frames["poses"].equals(annotated.violated_counts("poses"))


def test_cases_that_were_judged_under_fewer_rules_are_counted(annotated: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case that few rules apply to looks as if it kept the others."""
    made = PANELS["violated-counts"].tables
    assert made is not None
    whole = annotated.severities()
    severity = whole.severity.copy()
    severity[whole.rules.index("gamma(0.5) => poses"), 0] = np.nan
    partly = replace(whole, severity=severity)
    for matrix, words in (
        (whole, []),
        (
            partly,
            ["poses: 1 of 4 cases was not judged under all 2 rules, but under 1 of them, and can violate no more"],
        ),
    ):
        monkeypatch.setattr(Run, "severities", lambda *_, matrix=matrix: matrix)
        content = made([annotated], "default", 0.05)
        assert content is not None
        assert [note.removesuffix(" than these.") for note in content.after] == words


def grid() -> tuple[float, ...]:
    return instar.rule("identity").for_output("poses").relation.relation.grid


def test_classic_testing(annotated: Run) -> None:
    made = PANELS["classic"].tables
    assert made is not None
    content = made([annotated], "default", 0.05)
    assert content is not None
    expected = classic_table(annotated)
    assert content.frames["classic"].equals(expected)
    (table,) = content.tables
    assert [row[1:5] for row in table.rows] == [
        [str(number) for number in row]
        for row in expected.select("both", "classic_only", "metamorphic_only", "neither").iter_rows()
    ]


def test_the_landmarks_that_stray_most_often_come_first(annotated: Run) -> None:
    made = PANELS["landmarks"].tables
    assert made is not None
    content = made([annotated], "default", 0.05)
    assert content is not None
    (table,) = content.tables
    expected = landmark_table(annotated, grid=(0.2,)).filter(pl.col("rule").is_null()).drop_nulls("rate")
    rates = {name.replace("_", " "): rate for name, rate in expected.select("landmark", "rate").iter_rows()}
    shown = [rates[row[0]] for row in table.rows]
    assert shown == sorted(rates.values(), reverse=True)
    assert table.caption == (
        f"Landmarks that stray by at least 0.2 body lengths, all rules together, the {len(rates)} worst"
    )


def test_a_detector_has_neither_landmarks_nor_a_classic_test(unlabelled: Run) -> None:
    for name in ("classic", "landmarks"):
        made = PANELS[name].tables
        assert made is not None and made([unlabelled], "default", 0.05) is None
