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
from instar.image import read_image
from instar.pool import read_pool
from instar.registry import every
from instar.tasks.meta_ic.commands import captions, pool
from tests.tasks.meta_ic.test_marks import recorded_run


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


@pytest.fixture
def run(tmp_path: Path) -> instar.Run:
    return recorded_run(tmp_path)


def test_labels_are_listed_and_written(run: instar.Run, tmp_path: Path) -> None:
    text = printed(captions, "labels", run.folder, "--out", tmp_path / "problems.csv")
    sentence = "bench, person is left out; 2 of 2 other captions name it, the captioner does in 1 of 1 pairs"
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
