"""Exported sets: Instar reads back what was written, and the numbers are those of the formats."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import cv2
import numpy as np
import pytest

from instar.case import Case
from instar.datasets import Dataset, dataset
from instar.image import Image, read_image
from instar.outputs.detections import Detections
from instar.tasks.object_relevance.repair import LABELS, Example, augment, classes_of, examples, export
from tests.tasks.object_relevance.repair.squares import (
    in_memory,
    on_disk,
    picture,
    pixels_of,
    ran,
    remembering,
    truth_of,
)


def odd(count: int = 5) -> list[Example]:
    """Boxes at odd places, masks, an empty picture, names of every sort."""
    rng = np.random.default_rng(0)
    made = []
    for number in range(count):
        pixels = rng.integers(0, 256, (37 + number, 53, 3), dtype=np.uint8)
        low = rng.uniform(0, 20, (number, 2)).astype(np.float32)
        boxes = np.concatenate([low, low + rng.uniform(1, 16, (number, 2)).astype(np.float32)], 1)
        masks = np.zeros((number, 37 + number, 53), bool)
        for mask, (x0, y0, x1, y1) in zip(masks, np.rint(boxes).astype(int), strict=True):
            mask[y0:y1, x0:x1] = rng.random((y1 - y0, x1 - x0)) < 0.7
        labels = [("a b", "ü", "c: d")[n % 3] for n in range(number)]
        made.append(
            Example(
                f"sub/images/pic {number}.png",
                Detections.from_xyxy(boxes, labels, masks=masks),
                Image(pixels),
                origin={"case": str(number)},
            )
        )
    return made


def test_coco_comes_back_exactly(tmp_path: Path) -> None:
    given = odd()
    cases = list(dataset(export(tmp_path / "set", given) / LABELS).cases())
    assert len(cases) == len(given)
    for case, one in zip(cases, given, strict=True):
        truth = case.truth
        assert isinstance(truth, Detections)
        assert np.array_equal(truth.boxes, one.truth.boxes)
        assert truth.labels == one.truth.labels
        if len(truth):
            assert truth.masks is not None and one.truth.masks is not None
            assert np.array_equal(truth.masks, one.truth.masks)
        assert np.array_equal(pixels_of(case), one.image.pixels)


def test_coco_says_areas_and_where_a_picture_came_from(tmp_path: Path) -> None:
    told = json.loads((export(tmp_path / "set", odd()) / LABELS).read_text("utf-8"))
    assert [image["case"] for image in told["images"]] == list("01234")
    masks = [mask for one in odd() for mask in cast(np.ndarray, one.truth.masks)]
    assert [entry["area"] for entry in told["annotations"]] == [int(mask.sum()) for mask in masks]
    assert len({entry["id"] for entry in told["annotations"]}) == 10
    assert [category["name"] for category in told["categories"]] == ["a b", "c: d", "ü"]


ORDER = ["person", "car", "bus"]


def street(categories: dict[int, str], shown: list[str]) -> Dataset:
    """A dataset that lists more classes than its images show."""
    image = Image(np.zeros((40, 50, 3), np.uint8))
    truth = Detections.from_xyxy([[1, 2, 11, 22]] * len(shown), shown)
    return Dataset("street", "", lambda: iter([Case("a", input=image, truth=truth)]), "detections", classes=categories)


@pytest.mark.parametrize(
    ("numbers", "in_yolo"),
    [((1, 2, 3), (0, 1, 2)), ((1, 3, 6), (0, 1, 2)), ((0, 1, 2), (0, 1, 2)), ((0, 1, 4), (0, 1, 4))],
)
def test_classes_keep_their_numbers_names_and_order(
    tmp_path: Path, numbers: tuple[int, ...], in_yolo: tuple[int, ...]
) -> None:
    """`[person, car, bus]` with a person and a bus stays that, whatever the images show and names sort like."""
    data = street(dict(zip(numbers, ORDER, strict=True)), ["bus", "person"])
    folder = export(tmp_path / "set", examples(data.cases()), classes=classes_of(data, None))
    coco = json.loads((folder / LABELS).read_text("utf-8"))
    assert [(each["id"], each["name"]) for each in coco["categories"]] == list(zip(numbers, ORDER, strict=True))
    assert [each["category_id"] for each in coco["annotations"]] == [numbers[2], numbers[0]]
    (file,) = (folder / "labels" / "train").iterdir()
    assert [int(line.split()[0]) for line in file.read_text().splitlines()] == [in_yolo[2], in_yolo[0]]
    again = dataset(f'yolo("{folder}")').classes
    assert {number: name for number, name in again.items() if name in ORDER} == dict(zip(in_yolo, ORDER, strict=True))
    assert set(again) == set(range(max(in_yolo) + 1)), "YOLO's numbers have no gap"


def test_what_was_read_is_written_with_the_same_numbers(tmp_path: Path) -> None:
    data = street({1: "person", 3: "car", 6: "bus"}, ["bus"])
    first = export(tmp_path / "first", examples(data.cases()), classes=classes_of(data, None))
    coco, yolo = dataset(first / LABELS), dataset(f'yolo("{first}")')
    assert coco.classes == {1: "person", 3: "car", 6: "bus"}
    for name, opened in (("coco", coco), ("yolo", yolo)):
        again = export(tmp_path / name, examples(opened.cases()), classes=classes_of(opened, None))
        assert dataset(f'yolo("{again}")').classes == {0: "person", 1: "car", 2: "bus"}


def test_the_models_classes_go_before_the_datasets(tmp_path: Path) -> None:
    data = street({0: "bus", 1: "person"}, ["bus", "person"])
    model = ["person", "bicycle", "car", "motorcycle", "aeroplane", "bus"]
    folder = export(tmp_path / "set", examples(data.cases()), classes=classes_of(data, None, model))
    (file,) = (folder / "labels" / "train").iterdir()
    assert [int(line.split()[0]) for line in file.read_text().splitlines()] == [5, 0]
    assert list(dataset(f'yolo("{folder}")').classes.values()) == model
    with pytest.raises(ValueError, match="the model does not know 'bus' of street"):
        classes_of(data, None, model[:5])


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        (["person", "bus"], "does not know 'tram' of validation; it knows 'person', 'bus'"),
        (["bus", "person", "tram", "bus"], "lists 'bus' more than once"),
    ],
)
def test_the_models_classes_are_never_added_to(model: list[str], complaint: str) -> None:
    """A class more, be it of the validation set, and a trainer begins with a new last layer; a name with two numbers
    would lose one of them."""
    training, validation = street({0: "bus"}, ["bus"]), replace(street({0: "tram"}, ["tram"]), name="validation")
    with pytest.raises(ValueError, match=complaint):
        classes_of(training, validation, model)


def test_classes_that_no_image_shows_need_no_number_of_the_models() -> None:
    training, validation = street({1: "tram", 2: "bus"}, ["bus"]), street({1: "tram"}, [])
    assert classes_of(training, validation, ["person", "bus"]) == {0: "person", 1: "bus"}


def test_classes_of_the_validation_set_come_after(tmp_path: Path) -> None:
    training, validation = street({0: "b", 1: "a"}, ["b"]), street({0: "c", 1: "b"}, ["c"])
    assert classes_of(training, validation) == {0: "b", 1: "a", 2: "c"}


def test_a_set_without_validation_says_so(tmp_path: Path) -> None:
    alone = (export(tmp_path / "alone", odd()) / "data.yaml").read_text("utf-8")
    assert "# There is no validation set: val names the images that are trained on" in alone
    both = (export(tmp_path / "both", odd(), in_memory(2)) / "data.yaml").read_text("utf-8")
    assert "#" not in both and "val: images/val" in both


def test_yolo_numbers(tmp_path: Path) -> None:
    given = odd()
    folder = export(tmp_path / "set", given, in_memory(2))
    files = sorted((folder / "labels" / "train").iterdir())
    pictures = sorted((folder / "images" / "train").iterdir())
    assert [file.stem for file in files] == [file.stem for file in pictures]
    assert all(file.parent == folder / "images" / "train" for file in pictures), "no second images/ on the way"
    names = sorted({"a b", "c: d", "ü"} | {label for case in in_memory(2).cases() for label in truth_of(case).labels})
    for file, one in zip(files, given, strict=True):
        rows = [line.split() for line in file.read_text("utf-8").splitlines()]
        assert [names[int(row[0])] for row in rows] == list(one.truth.labels)
        width, height = one.image.size
        for row, (x0, y0, x1, y1) in zip(rows, one.truth.boxes.astype(float), strict=True):
            right = [(x0 + x1) / 2 / width, (y0 + y1) / 2 / height, (x1 - x0) / width, (y1 - y0) / height]
            assert [float(value) for value in row[1:]] == pytest.approx(right, abs=1e-6)
    told = (folder / "data.yaml").read_text("utf-8")
    assert "train: images/train" in told and "val: images/val" in told and '"c: d"' in told


def test_the_yolo_reader_reads_it(tmp_path: Path) -> None:
    given = odd()
    folder = export(tmp_path / "set", given, in_memory(2))
    opened = dataset(f'yolo("{folder}", split="train")')
    cases = {Path(case.id).stem: case for case in opened.cases()}
    for file, one in zip(sorted((folder / "images" / "train").iterdir()), given, strict=True):
        truth = cases[file.stem].truth
        assert isinstance(truth, Detections)
        assert truth.labels == one.truth.labels
        assert np.allclose(truth.boxes, one.truth.boxes, atol=1e-4)


def test_boxes_beyond_the_frame_are_cut_for_yolo(tmp_path: Path) -> None:
    one = Example("a.png", Detections.from_xyxy([[-10, 0, 20, 100]], ["x"]), Image(np.zeros((50, 40, 3), np.uint8)))
    folder = export(tmp_path / "set", [one])
    (file,) = (folder / "labels" / "train").iterdir()
    assert [float(value) for value in file.read_text().split()] == [0, 0.25, 0.5, 0.5, 1.0]


def test_unchanged_pictures_are_copied(tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    cv2.imwrite(str(path), np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8))
    one = Example("photo.jpg", Detections.from_xyxy([[1, 2, 3, 4]], ["x"]), read_image(path), str(path))
    (copied,) = (export(tmp_path / "set", [one]) / "images" / "train").iterdir()
    assert copied.suffix == ".jpg" and copied.read_bytes() == path.read_bytes()


def test_it_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    def failing() -> object:
        yield odd()[1]
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        export(tmp_path / "set", failing())  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
    export(tmp_path / "set", odd())
    with pytest.raises(FileExistsError, match="there already"):
        export(tmp_path / "set", odd())


def test_the_augmented_set_holds_originals_and_mutants(tmp_path: Path) -> None:
    data = dataset(on_disk(tmp_path / "train", 20))
    run = ran(remembering(20), data, tmp_path / "run")
    chosen = augment(run, data, tmp_path / "set", share=0.2)
    assert chosen.mutants.height == 5
    told = json.loads((tmp_path / "set" / LABELS).read_text("utf-8"))
    assert [("rule" in image) for image in told["images"]] == [False] * 20 + [True] * 5
    cases = list(dataset(tmp_path / "set" / LABELS).cases())
    for case, source in zip(cases[:20], data.cases(), strict=True):
        assert Path(case.path or "").read_bytes() == Path(source.path or "").read_bytes()
    assert {len(case.truth) for case in cases} == {0, 2}  # type: ignore[arg-type]


def test_pictures_in_memory_are_written(tmp_path: Path) -> None:
    (case,) = dataset(export(tmp_path / "set", examples(in_memory(1).cases())) / LABELS).cases()
    assert np.array_equal(pixels_of(case), picture(0)[0].pixels)
