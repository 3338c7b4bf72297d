"""The commands of captions and pools, as a user types them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import cv2
import numpy as np
import polars as pl
import pytest
import typer
from typer.testing import CliRunner

import instar
from instar.analysis.precision import precision
from instar.cli import app
from instar.image import read_image
from instar.pool import read_pool
from instar.registry import every
from instar.report.mark_files import Imported, export_marks, import_marks
from instar.report.precision import precision_panel
from instar.store import LABEL, add_marks, changing_marks, new_mark, stored_marks
from instar.tasks.meta_ic.commands import captions, pool
from instar.tasks.meta_ic.labels import label_problems, write_sheet
from tests.tasks.meta_ic.test_marks import recorded_run

PASTE = "recorded(paste) => objects"


def printed(app: typer.Typer, *arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def unwrapped(text: str) -> str:
    return " ".join(text.split())


def test_the_task_brings_its_commands() -> None:
    nouns = every("commands", typer.Typer)
    assert (nouns["captions"], nouns["pool"]) == (captions, pool)


def test_words_says_why_each_counts() -> None:
    text = printed(captions, "words", "a puppy on two benches next to a bus stop with an animal")
    assert "dog, one: 'puppy' is a word for dog" in text
    assert "bench, many: 'benches' is the plural of bench" in text
    assert "no bus: 'bus' describes 'stop'" in text
    assert "animal, one: 'animal' may be any of bird, cat" in text
    assert text.splitlines()[-1] == "objects: dog (one), bench (many)"


def test_words_as_json_with_a_vocabulary_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('classes = ["fire engine"]', "utf-8")
    reading = json.loads(
        printed(captions, "words", "two fire engines and a dog", "--vocabulary", tmp_path / "mine.toml", "--json")
    )
    assert reading["objects"] == {"fire engine": "many"}
    assert [mention["words"] for mention in reading["mentions"]] == ["fire engines"]
    assert reading["dismissed"] == reading["wider"] == []


def test_a_caption_that_is_not_english_is_said_to_be_none() -> None:
    """ "objects: none" reads as if it named nothing."""
    assert "This caption is not English" in printed(captions, "words", "Zwei Hunde auf einer Bank")
    assert json.loads(printed(captions, "words", "Zwei Hunde auf einer Bank", "--json"))["english"] is False
    assert "not English" not in printed(captions, "words", "two dogs on a bench")


@pytest.fixture
def run(tmp_path: Path) -> instar.Run:
    return recorded_run(tmp_path)


def test_labels_are_listed_and_written(run: instar.Run, tmp_path: Path) -> None:
    text = printed(captions, "labels", run.folder, "--out", tmp_path / "problems.csv")
    sentence = "bench and person are left out; 2 of 2 other captions name them, the captioner does in 1 of 1 pairs"
    assert sentence in unwrapped(text)
    assert "a #2: a <b>park</b>" in text
    assert "1 label of 1 image" in text
    assert pl.read_csv(tmp_path / "problems.csv")["left_out"].to_list() == ["bench, person"]
    (row,) = json.loads(printed(captions, "labels", run.folder, "--json"))
    assert (row["case"], row["number"]) == ("a", 2)


def test_labels_of_another_dataset(run: instar.Run, tmp_path: Path) -> None:
    content = {
        "images": [{"id": 1, "file_name": "c", "width": 8, "height": 8}],
        "annotations": [
            {"id": 1, "image_id": 1, "caption": "an empty street"},
            {"id": 2, "image_id": 1, "caption": "a car"},
        ],
    }
    (tmp_path / "c").touch()
    (tmp_path / "captions.json").write_text(json.dumps(content), "utf-8")
    text = printed(captions, "labels", run.folder, "--captions", tmp_path / "captions.json")
    assert "car is left out; 1 of 1 other captions name it" in text
    assert "c #0: an empty street" in text


def test_suspicious_pairs_are_written(run: instar.Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    text = printed(captions, "suspicious", run.folder, "--out", out)
    assert f"{out} has 2 pairs, no image and no corrected caption" in unwrapped(text)
    assert text.count("no images: ") == 2
    with (out / "pairs.csv").open(encoding="utf-8-sig", newline="") as file:
        assert {row["case"] for row in csv.DictReader(file)} == {"a", "c"}
    written = json.loads(printed(captions, "suspicious", run.folder, "--out", out, "--json"))
    assert (written["pairs"], len(written["missing"])) == (2, 2)


def test_no_table_for_spreadsheets_holds_a_formula(tmp_path: Path) -> None:
    """Cases are called what their files are called, and captions are what anybody says."""
    folder, formula = recorded_run(tmp_path).folder, "=HYPERLINK(1)"
    for part in [*folder.glob("cases/*.parquet"), *folder.glob("predictions/*.parquet")]:
        named = pl.read_parquet(part).with_columns(pl.col("case").replace("a", formula))
        part.unlink()
        named.write_parquet(part.with_name(f"{part.name.split('.')[0]}.parquet"))
    printed(captions, "labels", folder, "--out", tmp_path / "problems.csv")
    printed(captions, "suspicious", folder, "--out", tmp_path / "out")
    for table in (tmp_path / "problems.csv", tmp_path / "out" / "pairs.csv"):
        with table.open(encoding="utf-8-sig", newline="") as file:
            assert f"'{formula}" in {row["case"] for row in csv.DictReader(file)}


def mark(file: Path, marks: dict[str, str], delimiter: str = ",") -> list[dict[str, str]]:
    """Fill in what a person thinks of the pairs of some cases, and save the file as a spreadsheet does."""
    with file.open(encoding="utf-8-sig", newline="") as opened:
        rows = list(csv.DictReader(opened))
    for row in rows:
        row["is_error"] = marks.get(row["case"], "")
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.DictWriter(opened, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return rows


def refused(app: typer.Typer, *arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert isinstance(result.exception, ValueError), result.output
    return str(result.exception)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_marked_pairs_become_marks_of_the_run(run: instar.Run, tmp_path: Path, delimiter: str) -> None:
    """There is one way to count them: `instar marks` reads what people wrote into is_error and comment, also where a
    spreadsheet saved the file with another sign between its cells."""
    out = tmp_path / "out"
    printed(captions, "suspicious", run.folder, "--out", out)
    rows = mark(out / "pairs.csv", {"a": "TRUE", "c": "no"}, delimiter)
    assert {row["case"]: row["relations"] for row in rows} == {"a": "objects", "c": "objects"}
    assert import_marks(run, out / "pairs.csv") == Imported(new=2, replaced=0, same=0, empty=0)
    (every, *_) = precision(run).to_dicts()
    assert (every["violated"], every["real"], every["false_alarm"], every["precision"]) == (2, 1, 1, 0.5)


def test_a_pair_that_breaks_both_relations_is_marked_under_both(run: instar.Run, tmp_path: Path) -> None:
    """A line of pairs.csv stands for one pair of captions, whichever relations it breaks."""
    out = tmp_path / "out"
    printed(captions, "suspicious", run.folder, "--out", out)
    rows = mark(out / "pairs.csv", {"a": "yes"})
    text = (out / "pairs.csv").read_text("utf-8").replace(",objects,", ',"numbers, objects",')
    (out / "pairs.csv").write_text(text, "utf-8")
    assert import_marks(run, out / "pairs.csv").new == 2 and rows
    assert {rule for _, rule, _ in stored_marks(run.store)} == {
        "recorded(paste) => objects",
        "recorded(paste) => numbers",
    }


def test_marks_of_the_run_stand_in_the_pairs(run: instar.Run, tmp_path: Path) -> None:
    """Who marked pairs in the viewer finds the marks in pairs.csv, and what the file says goes before them."""
    add_marks(run.store, {made.key: made for made in [new_mark("a", PASTE, "whole", "false alarm", "a statue")]})
    out = tmp_path / "out"
    printed(captions, "suspicious", run.folder, "--out", out)
    with (out / "pairs.csv").open(encoding="utf-8-sig", newline="") as file:
        cells = {row["case"]: (row["is_error"], row["comment"]) for row in csv.DictReader(file)}
    assert cells == {"a": ("false", "a statue"), "c": ("", "")}


def test_bad_marks_are_told_with_their_lines(run: instar.Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    printed(captions, "suspicious", run.folder, "--out", out)
    mark(out / "pairs.csv", {"a": "maybe", "c": "yes"})
    message = refused(captions, "suspicious", run.folder, "--out", out)
    assert (
        "1 mark in is_error that cannot be read: line " in message and "'maybe'. Allowed are true, yes or 1" in message
    )
    with pytest.raises(ValueError, match=r"line \d: 'maybe' is no mark; allowed are real, false alarm, unclear, true"):
        import_marks(run, out / "pairs.csv")
    assert not stored_marks(run.store)


def test_marks_are_kept_when_the_pairs_are_written_again(run: instar.Run, tmp_path: Path) -> None:
    """An hour of marking is not lost by a command that was given twice, nor by another threshold."""
    out = tmp_path / "out"
    printed(captions, "suspicious", run.folder, "--out", out)
    mark(out / "pairs.csv", {"a": "yes", "c": "no"})
    text = printed(captions, "suspicious", run.folder, "--out", out)
    assert "keeps what was written into 2 pairs" in unwrapped(text)
    before = (out / "pairs.csv").read_bytes()
    message = refused(captions, "suspicious", run.folder, "--out", out, "--threshold", 99)
    assert "has 2 marked pairs that would not be in it any more" in message
    assert (out / "pairs.csv").read_bytes() == before


@pytest.fixture
def instances(tmp_path: Path) -> Path:
    """One image with a whole disc, and one that the border cuts off."""
    pixels = np.random.default_rng(0).integers(0, 256, (240, 320, 3), dtype=np.uint8)
    cv2.imwrite(str(tmp_path / "a.png"), pixels)
    annotations = []
    for number, (x, y) in enumerate([(120, 100), (280, 120)]):
        mask = cv2.circle(np.zeros((240, 320), np.uint8), (x, y), 45, 1, -1)
        (outline,), _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
        left, top, width, height = cv2.boundingRect(mask)
        annotations.append(
            {
                "id": number + 1,
                "image_id": 1,
                "category_id": 1,
                "bbox": [left, top, width, height],
                "segmentation": [outline.ravel().tolist()],
                "area": int(mask.sum()),
                "iscrowd": 0,
            }
        )
    content = {
        "images": [{"id": 1, "file_name": "a.png", "width": 320, "height": 240}],
        "categories": [{"id": 1, "name": "cup"}],
        "annotations": annotations,
    }
    path = tmp_path / "instances.json"
    path.write_text(json.dumps(content), "utf-8")
    return path


def test_a_pool_is_made_and_shown(instances: Path, tmp_path: Path) -> None:
    out, sheet = tmp_path / "pool", tmp_path / "sheet.png"
    text = printed(pool, "make", instances, "--out", out, "--sheet", sheet)
    assert f"{out} has 1 object of 1 class" in text
    assert "1  left out: cut off by the border" in text
    assert "1  licence: not told" in text
    assert text.splitlines()[-1] == str(sheet)
    assert read_pool(out).labels == ("cup",)
    assert read_image(sheet).size[0] >= 160
    made = json.loads(printed(pool, "make", instances, "--out", tmp_path / "second", "--json"))
    assert (made["objects"], made["kept"]) == (1, {"cup": 1})


def filled(sheet: Path, *words: str) -> None:
    """Fill in the column is_error, from the first line on."""
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for row, word in zip(rows, words, strict=False):
        row |= {"is_error": word, "comment": f"looked at {row['label']}"}
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def run_of_labels(tmp_path: Path) -> instar.Run:
    """The captioner names a dog and a bench in three images; eight captions of people leave one of them out."""
    left_out = ["a street", "=a wide <b>street</b>", "an alley", "a dog"]
    rows = [
        {
            "case": case,
            "source_caption": "a dog on a bench",
            "caption": "a dog on a bench",
            "added": ["cat"],
            "truth_caption": [*left_out[: 2 + number], "a dog on a bench"],
        }
        for number, case in enumerate("abc")
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    name = "recorded(paste)"
    return instar.import_outputs(tmp_path / "log.jsonl", out=tmp_path / "run", follow_up=name, suite=PASTE)


def test_labels_are_written_filled_in_and_read_back(tmp_path: Path) -> None:
    run, sheet = run_of_labels(tmp_path), tmp_path / "labels.csv"
    printed(captions, "labels", run.folder, "--out", sheet)
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        assert next(csv.reader(file))[-2:] == ["is_error", "comment"]
    filled(sheet, "true", "yes", "false", "1", "unclear")
    assert import_marks(run, sheet) == Imported(5, 0, 0, 4)
    labels = [mark for mark in stored_marks(run.store).values() if mark.rule == LABEL]
    assert {mark.mark for mark in labels} == {"real", "false alarm", "unclear"}
    assert any(mark.target == "=a wide <b>street</b>" for mark in labels), "a spreadsheet's apostrophe is no part of it"
    (panel,) = precision_panel(run)
    words = unwrapped(panel.text.replace("\u00a0", " "))
    assert "Of the labels of the dataset that people looked at, 3 of 4 labels are wrong (75 %" in words
    assert "1 more is unclear" in words
    assert precision(run).is_empty(), "what is said of a label says nothing of a pair"
    assert import_marks(run, sheet) == Imported(0, 0, 5, 4)


def test_marks_of_labels_go_through_an_export_and_through_the_sheet(tmp_path: Path) -> None:
    run, sheet = run_of_labels(tmp_path), tmp_path / "labels.csv"
    printed(captions, "labels", run.folder, "--out", sheet)
    filled(sheet, "true", "false")
    assert "keeps what people said of 2 labels" in printed(captions, "labels", run.folder, "--out", sheet)
    import_marks(run, sheet)
    marks = dict(stored_marks(run.store))
    for name in ("marks.csv", "marks.jsonl"):
        assert export_marks(run, tmp_path / name) == 2
        with changing_marks(run.store) as there:
            there.clear()
        assert import_marks(run, tmp_path / name).new == 2
        assert stored_marks(run.store).keys() == marks.keys()
    fresh = tmp_path / "again.csv"
    assert "keeps what people said of 2 labels" in printed(captions, "labels", run.folder, "--out", fresh)
    with sheet.open("a", encoding="utf-8") as file:
        file.write("a,9,a label that nobody flagged,dog,1,1,1,1,true,\n")
    with pytest.raises(ValueError, match="1 marked label that would not be in it any more"):
        write_sheet(run, label_problems(run), sheet)


def test_a_label_that_cannot_be_taken_is_told_with_its_line(tmp_path: Path) -> None:
    run, sheet = run_of_labels(tmp_path), tmp_path / "labels.csv"
    sheet.write_text("case,label,is_error\na,a street,perhaps\nd,a street,true\na,,true\n")
    with pytest.raises(ValueError, match=r"line 2: 'perhaps' is no mark.*line 3: unknown case 'd'.*line 4: .*no label"):
        import_marks(run, sheet)
    assert not stored_marks(run.store)


@pytest.mark.parametrize(
    ("rules", "count"),
    [
        ("noise(8) => objects(draws=3) + noise(8) => numbers(draws=3)", "2 follow-ups were answered and are"),
        ("noise(8) => objects(draws=3) + noise(8) => numbers", "1 follow-up was answered and is"),
    ],
)
def test_what_was_answered_beside_a_failed_draw_is_counted(rules: str, count: str, tmp_path: Path) -> None:
    """They were missing from the table without a word. What a rule of one draw judges is judged."""
    (tmp_path / "images").mkdir()
    for name, grey in (("a", 90), ("b", 140)):
        cv2.imwrite(str(tmp_path / "images" / f"{name}.png"), np.full((40, 40, 3), grey, np.uint8))
    noisy = 0

    def caption(image: np.ndarray) -> str:
        nonlocal noisy
        noisy += int(image.std() > 1)
        if noisy == 3 and image.std() > 1:
            raise OSError("the service answered 503")
        return "a dog on a couch"

    run = instar.run(caption, rules, tmp_path / "images", out=tmp_path / "run", workers=0)
    assert run.predictions().filter(pl.col("status") != "ok").select("draw").rows() == [(2,)]
    for command in ("tables", "show"):
        assert f"{count} not judged, because another follow-up of the same image" in unwrapped(
            printed(app, command, run.folder)
        )
    run = instar.run(lambda image: "a dog", rules, tmp_path / "images", out=tmp_path / "whole", workers=0)
    assert "not judged, because another" not in unwrapped(printed(app, "tables", run.folder))
