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
from instar.relations import Mark, segments
from instar.report import write_report
from instar.report.marks import marked_pairs, roles_of
from instar.tasks.meta_ic.analysis import caption_notes, caption_table
from instar.tasks.meta_ic.labels import label_problems, left_out_words
from instar.tasks.meta_ic.panel import PANELS
from instar.tasks.meta_ic.suspicious import corrected, export_suspicious
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

PASTE = "recorded(paste)"
OBJECTS = f"{PASTE} => objects"


def recorded_run(tmp_path: Path) -> instar.Run:
    table = tmp_path / "log.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in ROWS), "utf-8")
    name = "recorded(paste)"
    return instar.import_outputs(
        table, out=tmp_path / "run", follow_up=name, suite=f"{name} => objects + {name} => numbers"
    )


@pytest.fixture
def run(tmp_path: Path) -> instar.Run:
    return recorded_run(tmp_path)


@given(st.text(max_size=30), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=5))
def test_segments_are_the_text(text: str, places: list[tuple[int, int]]) -> None:
    marks = [Mark(min(a, len(text)), min(b, len(text)), "kept", "") for a, b in sorted(places)]
    assert "".join(part.text for part in segments(text, marks)) == text


def test_what_is_wrong_is_marked(run: instar.Run) -> None:
    rule = "recorded(paste) => objects"
    first, second, third = marked_pairs(run.store, [{"case": each, "rule": rule} for each in "abc"])
    assert first is not None and first.sentences == ("dog was inserted and is not named",)
    assert second is not None and second.sentences == (), "two kittens are what is left of a cat and another one"
    assert third is not None
    assert [part.text for part in third.source if part.role == "missing"] == ["bus"]
    assert set(third.sentences) == {"bus is not named any more", "cup was inserted and is not named"}


def test_a_card_says_what_its_own_rule_counts_and_nothing_else(tmp_path: Path) -> None:
    """The dog has the wrong number, the cat is gone and scissors are new: one is of numbers, two of objects."""
    row = {"case": "a", "source_caption": "a dog and a cat", "caption": "two dogs and scissors", "added": []}
    (tmp_path / "log.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    name = "recorded(paste)"
    suite = " + ".join(f"{name} => {relation}" for relation in ("objects", "numbers", "verbatim"))
    run = instar.import_outputs(tmp_path / "log.jsonl", out=tmp_path / "run", follow_up=name, suite=suite)
    of_objects, of_numbers, verbatim = marked_pairs(
        run.store, [{"case": "a", "rule": f"{name} => {each}"} for each in ("objects", "numbers", "verbatim")]
    )
    assert of_objects is not None and of_numbers is not None and verbatim is not None
    assert of_objects.sentences == ("cat is not named any more", "scissors are named and were not there before")
    assert of_numbers.sentences == ("dog is named as many instead of one",)
    assert verbatim.sentences == ("the caption is another one",)
    marked = [(part.text, part.role) for part in of_numbers.follow_up if part.role]
    assert marked == [("dogs", "number")], "scissors are no matter of numbers"
    assert [(part.text, part.role) for part in of_objects.follow_up if part.role] == [
        ("dogs", "kept"),
        ("scissors", "extra"),
    ]
    for relation, pair in (("objects", of_objects), ("numbers", of_numbers)):
        legend = roles_of(relation)
        assert {part.role for part in (*pair.source, *pair.follow_up) if part.role} <= legend.keys()
    export_suspicious(run, tmp_path / "out")
    with (tmp_path / "out" / "pairs.csv").open(encoding="utf-8-sig", newline="") as file:
        (line,) = csv.DictReader(file)
    assert "cat is not named any more" in line["what"] and "dog is named as many instead of one" in line["what"]


def test_the_report_shows_captions_and_escapes_them(run: instar.Run, tmp_path: Path) -> None:
    write_report([run], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert '<mark class="missing"' in page
    assert "&lt;i&gt;" in page and "<i>bus" not in page
    assert "this run was recorded" in page


def test_a_class_that_is_wrong_counts_once_in_a_follow_up(tmp_path: Path) -> None:
    """Verdicts of both relations have all measures: counted in both, what is wrong once would come twice."""
    captions = {"a": "two dogs on a bench", "b": "two dogs", "c": "two dogs and a cat"}
    rows = [
        {"case": case, "source_caption": "a dog and a cat on a bench", "caption": caption, "added": []}
        for case, caption in captions.items()
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    name = "recorded(paste)"
    rules = f"{name} => objects + {name} => numbers"
    run = instar.import_outputs(tmp_path / "log.jsonl", out=tmp_path / "run", follow_up=name, suite=rules)
    words = [note.words for note in caption_notes(run)]
    assert "Captions do not name what they should name: bench in 2 follow-ups, cat in 2 follow-ups." in words
    assert "Captions say one instead of many, or many instead of one: dog in 3 follow-ups." in words


def test_a_pair_that_shows_two_kinds_counts_in_both(tmp_path: Path) -> None:
    """A dog that is called a cat is not named any more, and the cat was not there before."""
    captions = {"called otherwise": "a cat on a bench", "left out": "a bench", "invented": "a dog and a cat on a bench"}
    rows = [
        {"case": case, "source_caption": "a dog on a bench", "caption": caption, "added": []}
        for case, caption in captions.items()
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    run = instar.import_outputs(tmp_path / "log.jsonl", out=tmp_path / "run", follow_up=PASTE, suite=OBJECTS)
    (row,) = caption_table(run).to_dicts()
    assert (row["objects"], row["misclassification"], row["omission"]) == (3, 2, 2)
    write_report([run], tmp_path / "report.html")
    words = "something that is there is not named, and something is named that is not there"
    assert f"in 1 case {words} (misclassification with omission)" in (tmp_path / "report.html").read_text("utf-8")


def test_captioners_stand_side_by_side_on_the_follow_ups_that_all_were_judged_on(tmp_path: Path) -> None:
    """The second says of one image nothing that can be judged: it leaves both."""
    says = {
        "first": {"a": "a cat on a bench", "b": "a dog", "c": "a dog on a bench"},
        "second": {"a": "a dog on a bench", "b": "a dog on a bench", "c": "un perro en un banco"},
    }
    runs = []
    for name, captions in says.items():
        source = dict.fromkeys(captions, "a dog on a bench") | ({"c": says[name]["c"]} if name == "second" else {})
        rows = [
            {"case": case, "source_caption": source[case], "caption": caption, "added": []}
            for case, caption in captions.items()
        ]
        table = tmp_path / f"{name}.jsonl"
        table.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        runs.append(instar.import_outputs(table, out=tmp_path / name, follow_up=PASTE, suite=OBJECTS))
    panel = PANELS["captions"]
    assert panel.tables is not None and panel.several
    content = panel.tables(runs, "default", 0.05)
    assert content is not None
    (table_of_both,) = content.tables
    shown = [dict(zip(table_of_both.heads, row, strict=True)) for row in table_of_both.rows]
    names = ("follow-ups", "objects", "misclassification", "omission")
    assert [tuple(row[name] for name in names) for row in shown] == [("2", "2", "1", "2"), ("2", "0", "0", "0")]
    assert any("not English" in note for note in content.after)


def test_captioners_without_a_judged_follow_up_are_named(tmp_path: Path) -> None:
    runs = []
    for name, caption in {"english": "a dog on a bench", "spanish": "un perro en un banco"}.items():
        row = {"case": "a", "source_caption": caption, "caption": caption, "added": []}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
        log = tmp_path / f"{name}.jsonl"
        runs.append(instar.import_outputs(log, out=tmp_path / name, follow_up=PASTE, suite=OBJECTS))
    tables = PANELS["captions"].tables
    assert tables is not None
    with pytest.raises(ValueError, match=r"\. No follow-up of spanish was judged$"):
        tables(runs, "default", 0.05)


def test_tables_of_a_run_of_captions(run: instar.Run) -> None:
    panel = PANELS["captions"]
    assert panel.tables is not None
    content = panel.tables([run], "default", 0.05)
    assert content is not None
    (table,) = content.tables
    shown = dict(zip(table.heads, table.rows[0], strict=True))
    assert (shown["change"], shown["follow-ups"], shown["share"]) == ("recorded(paste)", "3", "67\u00a0% (9–99)")
    (row,) = content.frames["captions"].to_dicts()
    assert (row["pairs"], row["objects"], row["numbers"], row["omission"]) == (3, 2, 0, 2)


def test_pairs_for_people_and_captions_to_train_on(run: instar.Run, tmp_path: Path) -> None:
    found = export_suspicious(run, tmp_path / "out")
    assert (found.pairs, found.images, len(found.missing)) == (2, 0, 2)
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
    assert found["others"].to_list() == ["2, 2"]


def test_what_others_name_is_said_of_each_object_that_a_label_leaves_out(tmp_path: Path) -> None:
    labels = ["a chair", "a chair", "a street", "a chair and scissors"]
    seen = "a chair, a tv, a book and scissors"
    row = {"case": "a", "source_caption": seen, "caption": seen, "added": [], "truth_caption": labels}
    (tmp_path / "log.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    run = instar.import_outputs(tmp_path / "log.jsonl", out=tmp_path / "run", follow_up=PASTE, suite=OBJECTS)
    problems = label_problems(run)
    worst = problems.row(0, named=True)
    assert worst["label"] == "a street"
    assert (worst["left_out"], worst["others"]) == ("chair, book, scissors, tv", "3, 1, 1, 0")
    sentences = left_out_words(worst)
    assert sentences[0] == "chair is left out; 3 of 3 other captions name it, the captioner does in 1 of 1 pairs"
    assert [sentence.partition(" captions")[0] for sentence in sentences[1:]] == [
        "book and scissors are left out; 1 of 3 other",
        "tv is left out; 0 of 3 other",
    ]


def test_labels_of_another_dataset(run: instar.Run, tmp_path: Path) -> None:
    told = {"c": ["a bicycle", "a car"]}
    assert label_problems(run, told).is_empty(), "a bicycle is a vehicle, as a car is"
    assert label_problems(run, {"c": ["an empty street", "a car"]})["left_out"].to_list() == ["car"]
