"""Systems that fail on one class alone: it is named, with how often it strays and how often the others do."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from rich.console import Console

import instar
from instar import Case, Dataset, Detections, Image, Labels, Segmentation, declare
from instar.report import show_run
from instar.report.section import make_section
from instar.report.sentences import headline

NAMES = ("person", "bicycle", "dog")
TINTS = np.array([[220, 60, 60], [60, 220, 60], [60, 60, 220]])


def _scene(number: int) -> np.ndarray:
    """Two squares of two of the three classes on a dark ground, somewhere."""
    pixels = np.full((60, 80, 3), 20, np.uint8)
    rng = np.random.default_rng(number)
    for place, kind in enumerate((number % 3, (number + 1) % 3)):
        x, y = int(rng.integers(4, 18)) + 38 * place, int(rng.integers(6, 32))
        pixels[y : y + 18, x : x + 18] = TINTS[kind]
    return pixels


SCENES = [_scene(number) for number in range(18)]


def _classes(pixels: np.ndarray) -> np.ndarray:
    """The class of every pixel, 0 for the ground."""
    bright = pixels.max(2) > 2 * pixels.min(2).clip(1)
    return np.where(bright, pixels.argmax(2) + 1, 0).astype(np.uint8)


def _dark(pixels: np.ndarray) -> bool:
    return bool(pixels.max() < 200)


def seen(pixels: np.ndarray, lost: Callable[[np.ndarray, str], bool]) -> Detections:
    classes = _classes(pixels)
    boxes, labels = [], []
    for number, name in enumerate(NAMES, start=1):
        rows, columns = np.nonzero(classes == number)
        if len(rows) and not lost(pixels, name):
            boxes.append([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1])
            labels.append(name)
    return Detections.from_xyxy(np.reshape(boxes, (-1, 4)), labels)


def mapped(pixels: np.ndarray, lost: Callable[[np.ndarray, str], bool]) -> Segmentation:
    classes = _classes(pixels)
    for number, name in enumerate(NAMES, start=1):
        if lost(pixels, name):
            classes[classes == number] = 0
    return Segmentation.from_classes(classes, ("ground", *NAMES))


def labelled(pixels: np.ndarray, lost: Callable[[np.ndarray, str], bool]) -> Labels:
    """What is further left; a class that is lost is taken for another."""
    counts = np.bincount(_classes(pixels)[:, : pixels.shape[1] // 2].ravel(), minlength=4)[1:]
    name = NAMES[int(counts.argmax())]
    return Labels.from_scores(["cat" if lost(pixels, name) else name, "nothing"], [0.9, 0.1])


def bicycle_in_the_dark(pixels: np.ndarray, name: str) -> bool:
    return name == "bicycle" and _dark(pixels)


def nothing_is_lost(pixels: np.ndarray, name: str) -> bool:
    return False


def everything_in_the_dark(pixels: np.ndarray, name: str) -> bool:
    return _dark(pixels)


@dataclass(frozen=True)
class Fault:
    kind: str
    answer: Callable[..., Any]
    words: str


FAULTS = {
    "bicycles lost in the dark": Fault("detections", seen, "(mostly lost) in 100 % of the 12"),
    "bicycles unseen in the dark": Fault("segmentation", mapped, "(mostly lost) in 100 % of the 12"),
    "bicycles are cats in the dark": Fault("labels", labelled, "(mostly of another class) in 100 % of the 6"),
}


def run_of(kind: str, answer: Callable[..., Any], lost: Callable[[np.ndarray, str], bool], folder: Path) -> instar.Run:
    cases = [Case(f"{number:02}", input=Image(pixels)) for number, pixels in enumerate(SCENES)]
    system = declare(kind=kind)(lambda pixels: answer(pixels, lost))
    rules = "identity + gamma(2) + gamma(0.8)"
    return instar.run(system, rules, Dataset("scenes", "", lambda: iter(cases)), out=folder / "run", workers=0)


def sentences(run: instar.Run) -> Sequence[str]:
    """What `show` prints, and the headline of the report."""
    printed = io.StringIO()
    show_run(Console(file=printed, width=1000), run)
    section = make_section(run, next(iter(run.grids())))
    return [text.replace("\xa0", " ") for text in (printed.getvalue(), " ".join(headline(section, section.start)))]


@pytest.mark.parametrize("name", FAULTS)
def test_the_class_that_fails_is_named(name: str, tmp_path: Path) -> None:
    fault = FAULTS[name]
    run = run_of(fault.kind, fault.answer, bicycle_in_the_dark, tmp_path)
    table = run.straying_classes()
    assert set(table["class"]) == {"bicycle"}
    assert (table["p_corrected"] <= 0.05).all() and (table["others"] == 0).all()
    for text in sentences(run):
        assert (
            f"bicycle strays beyond the threshold {fault.words}" in text
            and "other classes in 0 % of theirs; most often under gamma(2)." in text
        )


@pytest.mark.parametrize("lost", [nothing_is_lost, everything_in_the_dark])
@pytest.mark.parametrize("name", FAULTS)
def test_no_class_is_named_where_all_fare_alike(
    name: str, lost: Callable[[np.ndarray, str], bool], tmp_path: Path
) -> None:
    fault = FAULTS[name]
    assert run_of(fault.kind, fault.answer, lost, tmp_path).straying_classes().is_empty()


def test_a_case_counts_for_the_class_of_its_source(tmp_path: Path) -> None:
    """Under a mirror the class left is expected where the source has right: such a case has no class left."""
    left = np.full((40, 60, 3), 60, np.uint8)
    left[:, :30] = 120

    def place(pixels: np.ndarray) -> Labels:
        at_left = pixels[:, :30].mean() > pixels[:, 30:].mean()
        return Labels.from_scores(["left" if at_left and pixels.mean() < 110 else "right", "nothing"], [0.9, 0.1])

    pixels = [left + np.uint8(number) if number < 8 else left[:, ::-1] + np.uint8(number) for number in range(18)]
    cases = [Case(f"{number:02}", input=Image(np.ascontiguousarray(image))) for number, image in enumerate(pixels)]
    system = declare(kind="labels")(place)
    data = Dataset("places", "", lambda: iter(cases))
    run = instar.run(system, "mirror(h) + gamma(0.5)", data, out=tmp_path / "run", workers=0)
    assert run.rates().filter(rule="mirror(h) => class_kept")["violated"].item() == 0
    (row,) = run.straying_classes().filter(pl.col("rule").is_null()).to_dicts()
    assert (row["class"], row["judged"], row["strayed"], row["others"]) == ("left", 8, 8, 0)


def test_a_captioner_that_never_says_dog(tmp_path: Path) -> None:
    """What was inserted is named, but for dogs; recorded captions are enough."""
    labels = [("dog", "cat", "bus")[number % 3] for number in range(18)]
    rows = [
        {
            "case": f"{number:02}",
            "source_caption": f"a man in {number} trees",
            "caption": "a man in trees" if label == "dog" else f"a man in trees and a {label}",
            "added": [label],
        }
        for number, label in enumerate(labels)
    ]
    table = tmp_path / "captions.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    rule = "recorded(paste) => objects"
    run = instar.import_outputs(table, out=tmp_path / "run", follow_up="recorded(paste)", suite=rule)
    assert set(run.straying_classes()["class"]) == {"dog"}
    for text in sentences(run):
        assert "dog strays beyond the threshold (mostly omissions) in 100 % of the 6 cases" in text
