"""Captioners whose answers are known: one that words exactly what is there, and faults."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import cast

import cv2
import numpy as np
import polars as pl
import pytest

import instar
from instar.case import Case
from instar.datasets import Dataset
from instar.image import Image
from instar.outputs.detections import Detections
from instar.suites import default_suite
from instar.tasks.meta_ic.analysis import caption_notes, caption_table
from instar.tasks.meta_ic.language import counted
from instar.tasks.meta_ic.panel import _in_words
from tests.perfect import captioners
from tests.quality.words import accusations, assert_shown

COLOURS = {
    "dog": (230, 20, 20),
    "cat": (20, 200, 20),
    "car": (20, 20, 230),
    "bus": (220, 200, 20),
    "traffic light": (200, 20, 200),
    "sheep": (20, 200, 220),
}
"""Every class is a colour, so that a captioner of a few lines can see all there is."""
SIZE = (160, 120)


def seen(pixels: np.ndarray) -> dict[str, int]:
    """How many of each class there are."""
    found = {}
    for label, colour in COLOURS.items():
        near = (np.abs(pixels.astype(int) - colour).max(-1) < 30).astype(np.uint8)
        _, _, stats, _ = cv2.connectedComponentsWithStats(near)
        found[label] = int((stats[1:, cv2.CC_STAT_AREA] >= 6).sum())
    return {label: count for label, count in found.items() if count}


def worded(objects: dict[str, int]) -> str:
    parts = [counted(count, label) for label, count in objects.items()]
    return " and ".join(parts) if parts else "an empty place"


def right(pixels: np.ndarray) -> str:
    return worded(seen(pixels))


def blind_to_cars(pixels: np.ndarray) -> str:
    return worded({label: count for label, count in seen(pixels).items() if label != "car"})


def takes_dogs_for_cats(pixels: np.ndarray) -> str:
    return worded({"cat" if label == "dog" else label: count for label, count in seen(pixels).items()})


def never_counts(pixels: np.ndarray) -> str:
    return worded(dict.fromkeys(seen(pixels), 1))


def fond_of_synonyms(pixels: np.ndarray) -> str:
    text, fond = right(pixels), zlib.crc32(pixels.tobytes()) % 2
    for word, other in (
        ("dogs", "puppies"),
        ("dog", "puppy"),
        ("cats", "kittens"),
        ("cat", "kitten"),
        ("cars", "taxis"),
        ("car", "taxi"),
    ):
        text = text.replace(word, other) if fond else text
    return text


def data(count: int = 8) -> Dataset:
    cases = []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        pixels = np.full((SIZE[1], SIZE[0], 3), 128, np.uint8)
        labels = list(rng.choice(["dog", "cat", "car", "bus"], 2, replace=seed % 2 == 0))
        boxes = []
        for place, label in enumerate(labels):
            side, x0 = int(rng.integers(22, 40)), 12 + place * 80
            y0 = int(rng.integers(10, SIZE[1] - side - 10))
            pixels[y0 : y0 + side, x0 : x0 + side] = COLOURS[str(label)]
            boxes.append([x0, y0, x0 + side, y0 + side])
        truth = Detections.from_xyxy(boxes, [str(label) for label in labels])
        cases.append(Case(str(seed), input=Image(pixels), truth=truth))
    return Dataset("blocks", "", lambda: iter(cases), truth="detections")


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pool")
    for label, (r, g, b) in COLOURS.items():
        cutout = np.zeros((30, 36, 4), np.uint8)
        # a rim of its own, so that it does not run together with another of its class
        cv2.ellipse(cutout, (18, 15), (17, 14), 0, 0, 360, (128, 128, 128, 255), -1)
        cv2.ellipse(cutout, (18, 15), (13, 10), 0, 0, 360, (b, g, r, 255), -1)
        cv2.imwrite(str(folder / f"{label}.png"), cutout)
    return folder


FAULTS = "insert(0) => objects(6) + insert(0) => numbers(6)"


def ran(system: Callable[[np.ndarray], str], pool: Path, out: Path, suite: str = "meta-ic") -> instar.Run:
    captioner = instar.declare(kind="caption")(system)
    return instar.run(captioner, suite, data(), out=out, pool=pool, workers=0)


def kinds(run: instar.Run) -> set[str]:
    return set(run.verdicts().filter(pl.col("severity") > 0)["kind"].drop_nulls())


def test_a_captioner_that_words_what_is_there_breaks_nothing(pool: Path, tmp_path: Path) -> None:
    run = ran(right, pool, tmp_path)
    table = caption_table(run)
    assert table["change"].to_list() == ["insert(0)", "insert(0.15)", "insert(0.3)", "insert(0.45)", "all"]
    assert cast(int, table["pairs"].min()) >= 6, "most pairs can be placed"
    assert table["either"].sum() == 0


def test_omissions(pool: Path, tmp_path: Path) -> None:
    run = ran(blind_to_cars, pool, tmp_path, FAULTS)
    assert kinds(run) == {"omission"}
    broken = run.verdicts().filter(pl.col("severity") > 0)
    assert set(broken["missing"]) == {"car"}


def test_misclassification(pool: Path, tmp_path: Path) -> None:
    run = ran(takes_dogs_for_cats, pool, tmp_path, FAULTS)
    assert "misclassification with omission" in kinds(run)
    broken = run.verdicts().filter(pl.col("kind") == "misclassification with omission")
    assert set(broken["missing"]) == {"dog"} and set(broken["extra"]) == {"cat"}


def test_numbers(pool: Path, tmp_path: Path) -> None:
    run = ran(never_counts, pool, tmp_path, FAULTS)
    assert kinds(run) == {"number"}


def test_synonyms_are_no_errors_but_were_in_the_original(pool: Path, tmp_path: Path) -> None:
    run = ran(fond_of_synonyms, pool, tmp_path)
    assert caption_table(run)["either"].sum() == 0
    run.judge(reader="paper", numbers="agreed")
    assert caption_table(run, judging="numbers=agreed,reader=paper")["either"].sum() > 0


def test_pairs_are_those_of_every_relation_of_a_change(pool: Path, tmp_path: Path) -> None:
    """A change with a rule of numbers alone has pairs too; `identity`, which changes nothing, dilutes no share."""
    suite = "identity => objects + insert(0, same) => numbers + insert(0, any) => objects + insert(0, any) => numbers"
    run = ran(never_counts, pool, tmp_path, suite)
    table = caption_table(run)
    rows = {row["change"]: row for row in table.iter_rows(named=True)}
    verdicts = run.verdicts().filter(pl.col("rule").str.contains("same"))
    same, anything, everything = (rows[name] for name in ("insert(0, label=same)", "insert(0)", "all"))
    assert same["pairs"] == verdicts["severity"].count() > 0 and same["unjudged"] == verdicts["severity"].null_count()
    assert same["numbers"] == same["either"] == same["share"] * same["pairs"] > 0
    for column in ("pairs", "unjudged", "either"):
        assert everything[column] == same[column] + anything[column]
    assert rows["identity"]["pairs"] == 8, "it keeps its own row"
    assert "The row 'all' leaves out identity" in _in_words(table).caption


def test_a_relation_to_the_letter_is_stricter_than_one_of_objects(pool: Path, tmp_path: Path) -> None:
    changes = ("brightness(1, 1)", "brightness(2, 1)", "brightness(3, 1)")
    run = ran(fond_of_synonyms, pool, tmp_path, " + ".join(f"{c} => objects + {c} => verbatim" for c in changes))
    found = dict(run.rates().select("rule", "violated").iter_rows())
    assert sum(count for rule, count in found.items() if "objects" in rule) == 0
    assert sum(count for rule, count in found.items() if "verbatim" in rule) > 0
    table = caption_table(run)
    changed = {row[0]: row[-1] for row in _in_words(table).rows}
    for row in table.iter_rows(named=True):  # the number stands beside that of the pairs that were asked for it
        assert changed[row["change"]] == f"{row['verbatim']} of {row['exact']}" and row["exact"] > 0


def test_what_cannot_be_inserted_says_why(tmp_path: Path) -> None:
    run = instar.run(instar.declare(kind="caption")(right), "meta-ic", data(2), out=tmp_path, workers=0)
    assert set(run.verdicts()["status"]) == {"not applicable"}
    assert "instar pool" in run.verdicts()["reason"][0]


@pytest.mark.parametrize("name", captioners.FLAWLESS)
@pytest.mark.parametrize("with_pool", [True, False])
def test_a_flawless_captioner_breaks_nothing_of_our_suite(name: str, with_pool: bool, tmp_path: Path) -> None:
    folder = captioners.write_pool(tmp_path / "pool") if with_pool else None
    run = captioners.ran(captioners.FLAWLESS[name], tmp_path / "run", pool=folder)
    verdicts = run.verdicts()
    assert verdicts.filter(pl.col("severity") > 0).is_empty()
    judged = verdicts.filter(pl.col("severity").is_not_null())
    assert judged["rule"].n_unique() == (12 if with_pool else 9)
    assert accusations(run) == []
    notes = caption_notes(run)
    assert [note.words.partition(",")[0] for note in notes] == ([] if with_pool else ["Nothing was inserted"])
    if with_pool and name == "an oracle":
        assert_shown(run)


def test_our_suite_is_the_default() -> None:
    assert instar.suite("captions").rules == default_suite("caption").rules
