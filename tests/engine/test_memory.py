"""Judging takes memory for a piece of the run, whatever the run: not for all of it, nor for all pairs of subjects."""

from __future__ import annotations

import tracemalloc
from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import instar
from benchmarks.million import RULES, images
from instar import Detections, Poses
from instar.engine import bound_rules, judge, keeper, predict
from instar.outputs import Output
from instar.relations import matching
from instar.skeleton import skeleton
from instar.store import Store
from instar.warp import boxes_iou
from tests.manifests import manifest_of

SIZE = (400, 300)
judging = import_module("instar.engine.judge")  # the room exports its function by the same name


def stored_run(folder: Path, answers: list[list[Output]]) -> Store:
    """A run of one rule, `gamma(0.5)`: the answers to each case's source and follow-up."""
    first = answers[0][0]
    rule = bound_rules(("gamma(0.5)",), first.kind)[0]
    store = Store(folder)
    store.write_manifest(manifest_of(first.kind, output=first.header(), rules=(rule.id,)))
    frame = {"status": "ok", "width": SIZE[0], "height": SIZE[1]}
    store.append_cases([{"case": f"{number:03d}", **frame} for number in range(len(answers))], None)
    rows = [
        {"case": f"{number:03d}", "follow_up": name, "draw": 0, "repeat": 0, "warp": np.eye(3).ravel(), **frame}
        | dict(answer.row())
        for number, pair in enumerate(answers)
        for name, answer in zip(("source", "gamma(0.5)"), pair, strict=True)
    ]
    store.append_predictions(rows, first.kind)
    return store


def crowds(images: int, subjects: int, landmarks: int = 17) -> list[list[Output]]:
    rng = np.random.default_rng(0)
    bones = skeleton("coco-17")
    people = rng.uniform(0, 300, (images, subjects, landmarks, 2))
    shaken = people[:, ::-1] + rng.normal(0, 1, people.shape)  # found in another order, so that they must be matched
    return [[Poses.from_array(each, skeleton=bones) for each in pair] for pair in zip(people, shaken, strict=True)]


def peak_megabytes(store: Store) -> float:
    judge(stored_run(store.folder / "warm", crowds(2, 7)))  # what is imported for it is no part of it
    tracemalloc.start()
    try:
        judge(store)
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_square_of_the_subjects_times_the_rows(tmp_path: Path) -> None:
    """40 images of 60 people are 2.5 million distances of landmarks: 100 MB where they are all there at once."""
    store = stored_run(tmp_path, crowds(40, 60))
    assert peak_megabytes(store) < 40
    verdicts = store.verdicts("default")
    assert verdicts.height == 40 * 60
    assert (verdicts["severity"] < 0.1).all()  # everybody was found again


def test_a_single_crowd_is_matched_in_blocks(tmp_path: Path) -> None:
    """400 people in one image: all pairs of them with their landmarks would be 70 MB and more."""
    assert peak_megabytes(stored_run(tmp_path, crowds(1, 400))) < 35


def test_blocks_do_not_change_who_is_matched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = crowds(6, 9)
    judge(stored_run(tmp_path / "large", answers))
    monkeypatch.setattr(matching, "BLOCK", 100)  # less than one pair of rows, and than one subject with all others
    judge(stored_run(tmp_path / "small", answers))
    large, small = (Store(tmp_path / name).verdicts("default") for name in ("large", "small"))
    assert large.equals(small)


def test_pieces_are_as_large_as_what_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows with many subjects are as much work as many rows with few."""
    monkeypatch.setattr(judging, "PIECE_BYTES", 1 << 16)
    monkeypatch.setattr(judging, "PIECE_ROWS", 1000)
    many, few = (stored_run(tmp_path / str(n), crowds(12, n)) for n in (60, 1))
    assert len([*judging.chunks(many)]) >= 4
    assert len([*judging.chunks(few)]) == 1
    judge(many)
    assert sorted(many.verdicts("default")["case"].unique()) == [f"{number:03d}" for number in range(12)]


def test_pieces_of_a_merged_part_are_read_by_themselves(tmp_path: Path) -> None:
    """Rows lie in groups of some megabytes: a reader of a few cases need not decode the part that holds them all."""
    store = stored_run(tmp_path, crowds(1, 1))
    names = [f"{number:06d}" for number in range(40_000)]
    store.append("many", pl.DataFrame({"case": names, "text": ["x" * 500] * len(names)}))
    (part,) = (tmp_path / "many").glob("*.parquet")
    assert part.read_bytes().count(b"case") > 5  # every group of rows names its columns, and so does the schema


def predicted_megabytes(place: Path, cases: int) -> float:
    """The most memory that Python held while a run of so many cases was predicted and judged."""
    images(place / "images", cases)
    suite = instar.Suite("million", tuple(map(instar.rule, RULES)))
    store = Store(place / "run")
    tracemalloc.start()
    try:
        outcome = predict(
            "benchmarks.million:costless", suite, instar.dataset(place / "images"), store, workers=0, providers={}
        )
        judge(store)
        assert outcome.fresh == cases * (len(RULES) + 1)
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def test_memory_of_a_run_does_not_grow_with_its_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row is a kilobyte, and a run has a million of them: only ids and hashes of cases are kept, 2 KB a case."""
    monkeypatch.setattr(keeper, "COMMIT_ROWS", 200)
    monkeypatch.setattr(judging, "PIECE_BYTES", 1 << 18)
    monkeypatch.setattr(judging, "PIECE_ROWS", 400)
    few, many = 40, 120
    predicted_megabytes(tmp_path / "warm", 2)
    before, after = (predicted_megabytes(tmp_path / str(cases), cases) for cases in (few, many))
    assert 1e6 * (after - before) / (many - few) < 6_000


def test_a_thousand_boxes_are_compared_without_a_gigabyte() -> None:
    boxes = np.random.default_rng(0).uniform(0, 300, (1000, 4))
    boxes[:, 2:] += boxes[:, :2]
    tracemalloc.start()
    overlap = boxes_iou(boxes, boxes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert overlap.diagonal().tolist() == [1.0] * 1000
    assert peak < 6 * overlap.nbytes


def test_crowds_of_objects_are_matched_where_they_count(tmp_path: Path) -> None:
    """A detector may say all that it thought of, with its scores; thousands that it is sure of are not matched."""
    boxes = np.tile([0, 0, 9, 9], (4_000, 1)) + np.arange(4_000)[:, None]
    first_counts = np.where(np.arange(4_000) == 0, 0.9, 0.01)
    sure, unsure = (Detections.from_xyxy(boxes, ["dust"] * 4_000, scores) for scores in (np.ones(4_000), first_counts))
    store = stored_run(tmp_path, [[unsure, unsure], [sure, sure]])
    judge(store)
    verdicts = store.verdicts("default").sort("case")
    assert verdicts["severity"].to_list() == [0.0, None]
    assert verdicts["reason"][1] == "4,000 and 4,000 objects that count are too many to match"


def test_objects_of_many_classes_are_judged(tmp_path: Path) -> None:
    """Classes are compared by number: names that are equal but for a NUL at the end stay different."""
    boxes = [[0, 0, 10, 10], [20, 20, 40, 40]]
    before, after = (Detections.from_xyxy(boxes, names) for names in (["a", "b"], ["a", "b\0"]))
    store = stored_run(tmp_path, [[before, after]])
    judge(store)
    kinds = dict(store.verdicts("default").select("target", "kind").iter_rows())
    assert kinds == {"0": None, "1": "class"}
