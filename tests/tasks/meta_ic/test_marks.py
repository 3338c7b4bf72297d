"""Captions with their words marked, in pages and in files for people."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import instar
from instar.report import export_suspicious, write_report
from instar.report.spoken import segments, spoken
from instar.tasks.meta_ic.labels import label_problems
from instar.tasks.meta_ic.relations import Mark
from instar.tasks.meta_ic.suspicious import corrected
from tests.perfect.test_captions import COLOURS, blind_to_cars, data

ROWS = [
    {
        "case": "a",
        "source_caption": "a man on a bench",
        "caption": "a man on a bench",
        "added": ["dog"],
        "truth_caption": ["a man on a bench", "A man sits on a bench.", "a <b>park</b>"],
    },
    {"case": "b", "source_caption": "a cat", "caption": "two kittens", "added": ["cat"], "truth_caption": ["a cat"]},
    {
        "case": "c",
        "source_caption": "a car & a <i>bus</i>",
        "caption": "a car",
        "added": ["cup"],
        "truth_caption": ["a car and a bus"],
    },
]


@pytest.fixture
def run(tmp_path: Path) -> instar.Run:
    table = tmp_path / "log.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in ROWS), "utf-8")
    name = "recorded(paste)"
    return instar.import_outputs(
        table, out=tmp_path / "run", follow_up=name, suite=f"{name} => objects + {name} => numbers"
    )


@given(st.text(max_size=30), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=5))
def test_segments_are_the_text(text: str, places: list[tuple[int, int]]) -> None:
    marks = [Mark(min(a, len(text)), min(b, len(text)), "kept", "") for a, b in sorted(places)]
    assert "".join(part.text for part in segments(text, marks)) == text


def test_what_is_wrong_is_marked(run: instar.Run) -> None:
    rule = "recorded(paste) => objects"
    first, second, third = spoken(run.store, run.manifest, [{"case": each, "rule": rule} for each in "abc"], "default")
    assert first is not None and first.sentences == ("dog was inserted and is not named",)
    assert second is not None and second.sentences == (), "two kittens are what is left of a cat and another one"
    assert third is not None
    assert [part.text for part in third.source if part.role == "missing"] == ["bus"]
    assert set(third.sentences) == {"bus is not named any more", "cup was inserted and is not named"}


def test_the_report_shows_captions_and_escapes_them(run: instar.Run, tmp_path: Path) -> None:
    write_report([run], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert '<mark class="missing"' in page
    assert "&lt;i&gt;" in page and "<i>bus" not in page
    assert "this run was recorded" in page


def test_pairs_for_people_and_captions_to_train_on(run: instar.Run, tmp_path: Path) -> None:
    found = export_suspicious(run, tmp_path / "out")
    assert (found.pairs, found.pictures, len(found.missing)) == (2, 0, 2)
    with (tmp_path / "out" / "pairs.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = {row["case"]: row for row in csv.DictReader(file)}
    assert rows["a"]["corrected"] == "a man on a bench with a dog"
    assert rows["a"]["is_error"] == ""
    assert set(rows) == {"a", "c"}


def test_pictures_that_cannot_be_made_again_are_told(tmp_path: Path) -> None:
    pool = tmp_path / "pool"
    pool.mkdir()
    for label in ("car", "dog"):
        cutout = np.zeros((30, 36, 4), np.uint8)
        cutout[3:-3, 3:-3] = (*COLOURS[label][::-1], 255)
        cv2.imwrite(str(pool / f"{label}.png"), cutout)
    run = instar.run(
        instar.declare(kind="caption")(blind_to_cars),
        "insert(0, label=car) => objects",
        data(3),
        out=tmp_path / "run",
        pool=pool,
        workers=0,
    )
    found = export_suspicious(run, tmp_path / "out")
    assert found.missing and "memory" in found.missing[0], "pictures that exist in memory only cannot be made again"


@pytest.mark.parametrize(
    ("caption", "label", "better"),
    [
        ("A man on a bench.", "dog", "A man on a bench with a dog."),
        ("two dogs", "dog", "two dogs and another dog"),
        ("a table", "scissors", "a table with a pair of scissors"),
        ("a street!", "umbrella", "a street with an umbrella!"),
    ],
)
def test_corrected(caption: str, label: str, better: str) -> None:
    assert corrected(caption, label) == better


def test_labels_that_leave_out_what_is_there(run: instar.Run) -> None:
    found = label_problems(run)
    assert found.select("case", "number", "left_out").rows() == [("a", 2, "bench, person")]
    assert found["others"].to_list() == [2]


def test_labels_of_another_dataset(run: instar.Run, tmp_path: Path) -> None:
    told = {"c": ["a bicycle", "a car"]}
    assert label_problems(run, told).is_empty(), "a bicycle is a vehicle, as a car is"
    assert label_problems(run, {"c": ["an empty street", "a car"]})["left_out"].to_list() == ["car"]
