"""Captions of pictures, in the tables that people have."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from instar.datasets import dataset
from instar.outputs.caption import Caption

SAID = {"a.jpg": ("a dog, on a bench", "one dog"), "größe.jpg": ("a cat",)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in SAID:
        cv2.imencode(".jpg", np.zeros((8, 8, 3), np.uint8))[1].tofile(tmp_path / name)
    return tmp_path


def said(path: Path) -> dict[str, tuple[str, ...]]:
    found = {}
    for case in dataset(path).cases():
        assert isinstance(case.truth, Caption)
        assert Path(str(case.path)).is_file()
        found[case.id] = case.truth.texts
    return found


ROWS = [(name, text) for name, texts in SAID.items() for text in texts]
TABLES = {
    "captions.csv": "image,caption\n" + "".join(f'{name},"{text}"\n' for name, text in ROWS),
    "bare.csv": "image,caption\n" + "".join(f"{name},{text}\n" for name, text in ROWS),  # Flickr8k does not quote
    "results.csv": "image_name| comment_number| comment\n" + "".join(f"{n}| 0| {t}\n" for n, t in ROWS),  # Flickr30k
    "bom.tsv": "\ufefffile_name\tcaption\n" + "".join(f"{name}\t{text}\n" for name, text in ROWS),
    "tokens.txt": "".join(f"{name}#{k}\t{text}\n" for k, (name, text) in enumerate(ROWS)),
    "lines.jsonl": "".join(json.dumps({"image": name, "captions": texts}) + "\n" for name, texts in SAID.items()),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_captions_are_recognised(folder: Path, name: str) -> None:
    (folder / name).write_text(TABLES[name], "utf-8")
    assert said(folder / name) == SAID
    assert dataset(folder / name).name.startswith("captions(")


def test_coco_captions(folder: Path) -> None:
    content = {
        "images": [{"id": k, "file_name": name, "width": 8, "height": 8} for k, name in enumerate(SAID)],
        "annotations": [
            {"id": 1, "image_id": 0, "caption": SAID["a.jpg"][0]},
            {"id": 2, "image_id": 0, "caption": SAID["a.jpg"][1]},
            {"id": 3, "image_id": 1, "caption": "a cat\n"},
            {"id": 4, "image_id": 1, "caption": " "},
            {"id": 5, "image_id": 7, "caption": "a cow"},
        ],
    }
    (folder / "captions.json").write_text(json.dumps(content), "utf-8")
    assert said(folder / "captions.json") == SAID
    notes = " ".join(dataset(folder / "captions.json").notes)
    assert "without a caption: 4" in notes and "not listed: 5" in notes


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("image,caption\na.jpg\n", "line 2: it has 1 columns"),
        ('{"image": "a.jpg", "caption": 3}\n', "line 1: it has no image"),
        ("a.jpg#0\ta dog\nrubbish\n", "line 2: expected"),
        ("image,caption\n,\n", "no captions"),
        ("image,caption\nb.jpg,a dog\n", "its pictures"),
    ],
)
def test_bad_tables_say_where(folder: Path, text: str, told: str) -> None:
    (folder / "bad.txt").write_text(text, "utf-8")
    with pytest.raises((ValueError, FileNotFoundError), match=told):
        dataset(folder / "bad.txt")


def test_lines_without_a_caption_are_left_out_and_said(folder: Path) -> None:
    (folder / "some.csv").write_text("image,caption\na.jpg,a dog\na.jpg,\n", "utf-8")
    opened = dataset(folder / "some.csv")
    assert said(folder / "some.csv") == {"a.jpg": ("a dog",)}
    assert opened.notes == ("1 line without a picture or a caption: 3",)
