from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from instar.case import read_input
from instar.datasets import dataset
from instar.outputs.caption import Caption
from instar.outputs.detections import Detections
from instar.outputs.poses import Poses
from instar.skeleton import skeleton
from tests.datasets.found import by_id

Write = Callable[..., Path]
PERSON = {"id": 1, "name": "person", "keypoints": list(skeleton("coco-17").landmarks)}


def write(
    folder: Path,
    annotations: list[dict[str, Any]],
    categories: list[dict[str, Any]],
    images: list[dict[str, Any]] | None = None,
) -> str:
    path = folder / "annotations" / "instances_val2017.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    listed = (
        images
        if images is not None
        else [{"id": i, "file_name": file, "width": 16, "height": 12} for i, file in ((2, "b.png"), (1, "a.png"))]
    )
    path.write_text(json.dumps({"images": listed, "annotations": annotations, "categories": categories}))
    return str(path)


@pytest.fixture
def folder(tmp_path: Path, picture: Write) -> Path:
    for name in ("a.png", "b.png"):
        picture(tmp_path / "images" / name)
    return tmp_path


def keypoints(values: dict[int, tuple[float, float, float]], count: int = 17) -> list[float]:
    return [value for i in range(count) for value in values.get(i, (0, 0, 0))]


def test_keypoints(folder: Path) -> None:
    path = write(
        folder,
        [
            {"id": 7, "image_id": 1, "category_id": 1, "keypoints": keypoints({0: (3, 4, 2), 5: (6, 7, 1)})},
            {"id": 8, "image_id": 1, "category_id": 1, "keypoints": keypoints({1: (1, 1, 2)})},
            {"id": 9, "image_id": 1, "category_id": 1, "keypoints": keypoints({})},
        ],
        [PERSON],
    )
    found = dataset(path)
    cases = by_id(found)
    assert (found.truth, list(cases), found.root) == ("poses", ["a.png", "b.png"], str(folder / "images"))
    truth = cases["a.png"].truth
    assert isinstance(truth, Poses)
    assert truth.skeleton.name == "coco-17"
    assert len(truth) == 2
    # Pixel 3 has its centre at 3.5; hidden is half visible; not annotated is absent.
    np.testing.assert_array_equal(truth.points[0, [0, 5]], [[3.5, 4.5], [6.5, 7.5]])
    assert np.isnan(truth.points[0, 1:5]).all()
    assert truth.visibility[0, [0, 5]].tolist() == [1, 0.5]
    empty = cases["b.png"].truth
    assert isinstance(empty, Poses)
    assert len(empty) == 0
    assert found.notes == ("1 annotation without any keypoint",)
    assert read_input(cases["a.png"])[0].size == (16, 12)


def test_people_nobody_marked_are_no_empty_truth(folder: Path) -> None:
    path = write(
        folder,
        [
            {"id": 9, "image_id": 1, "category_id": 1, "keypoints": keypoints({})},
            {"id": 10, "image_id": 2, "category_id": 1, "iscrowd": 1},
        ],
        [PERSON],
    )
    assert [case.truth for case in dataset(path).cases()] == [None, None]


def test_flags_of_0_and_1_only_mean_absent_and_visible(folder: Path) -> None:
    marks = keypoints({i: (i, i, 1) for i in range(1, 21)}, 21)
    hand = {"id": 1, "name": "hand", "keypoints": [f"joint{i}" for i in range(21)]}
    path = write(folder, [{"id": 1, "image_id": 1, "category_id": 1, "keypoints": marks}], [hand])
    truth = by_id(dataset(path))["a.png"].truth
    assert isinstance(truth, Poses)
    assert truth.skeleton.name == "hand-21"
    assert truth.visibility[0, 1:].tolist() == [1] * 20
    assert np.isnan(truth.points[0, 0]).all()


def test_other_keypoints_need_a_skeleton(folder: Path) -> None:
    odd = {"id": 1, "name": "thing", "keypoints": ["tip", "tail"]}
    marked = {"id": 1, "image_id": 1, "category_id": 1, "keypoints": [1, 2, 2, 5, 2, 2]}
    path = write(folder, [marked], [odd])
    with pytest.raises(ValueError, match=r"has its 2 keypoints \(tip, tail\).*skeleton="):
        dataset(path)
    toml = folder / "thing.toml"
    toml.write_text('landmarks = ["tip", "tail"]\nlengths = [["tip", "tail"]]\n')
    found = dataset(f'coco("{path}", skeleton="{toml}")')
    truth = by_id(found)["a.png"].truth
    assert isinstance(truth, Poses)
    assert truth.points.tolist() == [[[1.5, 2.5], [5.5, 2.5]]]
    assert dataset(found.name).name == found.name


def test_instances(folder: Path) -> None:
    dog, cat = {"id": 3, "name": "dog"}, {"id": 5, "name": "cat"}
    annotations = [
        {"id": 11, "image_id": 1, "category_id": 3, "bbox": [2, 1, 3, 2], "segmentation": [[2, 1, 5, 1, 5, 3, 2, 3]]},
        {
            "id": 12,
            "image_id": 1,
            "category_id": 5,
            "bbox": [0, 0, 1, 12],
            "segmentation": {"size": [12, 16], "counts": [0, 12, 180]},
        },
        {
            "id": 13,
            "image_id": 1,
            "category_id": 5,
            "bbox": [0, 0, 9, 9],
            "iscrowd": 1,
            "segmentation": {"size": [12, 16], "counts": [192]},
        },
        {"id": 14, "image_id": 1, "category_id": 5, "bbox": [15, 11, 1, 1]},
    ]
    found = dataset(write(folder, annotations, [dog, cat]))
    cases = by_id(found)
    truth = cases["a.png"].truth
    assert isinstance(truth, Detections)
    assert truth.boxes.tolist() == [[2, 1, 5, 3], [0, 0, 1, 12], [15, 11, 16, 12]]
    assert (truth.labels, truth.ids) == (("dog", "cat", "cat"), ("11", "12", "14"))
    assert truth.masks is not None
    assert truth.masks.shape == (3, 12, 16)
    for box, mask in zip(truth.boxes.astype(int), truth.masks, strict=True):
        expected = np.zeros((12, 16), bool)
        expected[box[1] : box[3], box[0] : box[2]] = True
        np.testing.assert_array_equal(mask, expected)
    assert cases["a.png"].attributes == {"crowds": 1}
    assert found.notes == ("1 crowd region left out of the truth; attribute crowds counts them",)
    empty = cases["b.png"].truth
    assert isinstance(empty, Detections)
    assert len(empty) == 0
    light = dataset(f'coco("{found.name[6:-2]}", masks=false)')
    truth = by_id(light)["a.png"].truth
    assert isinstance(truth, Detections)
    assert truth.masks is None


def test_bad_annotations_are_left_out_and_noted(folder: Path) -> None:
    good = {"id": 1, "image_id": 1, "category_id": 3, "bbox": [0, 0, 4, 4]}
    bad: list[dict[str, object]] = [
        {"id": 2, "bbox": [0, 0, 4]},
        {"id": 3, "bbox": [0, 0, -4, 4]},
        {"id": 4, "bbox": "x"},
        {"id": 5, "image_id": 99},
        {"id": 6, "category_id": 99},
        {"id": 7, "segmentation": [[1, 2, 3]]},
        {"id": 8, "segmentation": {"size": [12, 16], "counts": [5]}},
        {"id": 9, "bbox": [0, 0, float("nan"), 4]},
        {"id": 10, "image_id": [1]},
        {"id": 11, "segmentation": "x"},
    ]
    found = dataset(write(folder, [good, *({**good, **each} for each in bad)], [{"id": 3, "name": "dog"}]))
    truth = by_id(found)["a.png"].truth
    assert isinstance(truth, Detections)
    assert truth.ids == ("1",)
    assert found.notes == (
        "4 annotations left out, whose bbox is not x, y, width, height: 2, 3, 4 and 1 more",
        "2 annotations left out, of images that are not listed: 5, 10",
        "1 annotation left out, of categories that are not listed: 6",
        "3 annotations left out, whose segmentation is neither polygons nor runs that fit the image: 7, 8, 11",
    )


def test_truth_can_be_chosen(folder: Path) -> None:
    path = write(
        folder,
        [{"id": 7, "image_id": 1, "category_id": 1, "bbox": [1, 1, 2, 2], "keypoints": keypoints({0: (3, 4, 2)})}],
        [PERSON],
    )
    assert dataset(path).truth == "poses"
    found = dataset(f'coco("{path}", truth=instances)')
    assert (found.truth, found.name) == ("detections", f'coco("{path}", truth=instances)')


def test_where_the_pictures_are(tmp_path: Path, picture: Write) -> None:
    picture(tmp_path / "val2017" / "a.png")  # b.png is missing, and is a case all the same
    path = write(tmp_path, [], [])
    assert dataset(path).root == str(tmp_path / "val2017")
    assert list(by_id(dataset(path))) == ["a.png", "b.png"]
    picture(tmp_path / "elsewhere" / "b.png")
    assert dataset(f'coco("{path}", images="{tmp_path}/elsewhere")').root == str(tmp_path / "elsewhere")
    assert dataset(f'coco("{path}", images="../elsewhere")').root == str(tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError, match=r"b\.png\) are in none of .*nowhere.*say where with images="):
        dataset(f'coco("{path}", images="nowhere")')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[1, 2", "not JSON"),
        ("[1]", "a list of images, this has a list"),
        ('{"a": 1}', "a list of images, this has a"),
        ('{"images": []}', "is empty"),
        ('{"images": [{"id": 1}]}', "image 1 needs id, file_name, width and height"),
        ('{"images": [3]}', "images is not a list of objects"),
        ('{"images": [{"id": [1], "file_name": "a.png", "width": 2, "height": 3}]}', "image 1 needs"),
        ('{"images": [], "annotations": 3}', "annotations is not a list"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_json_that_is_not_cocos(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        dataset(tmp_path / "x.json")


def test_the_same_name_twice(folder: Path) -> None:
    images = [{"id": i, "file_name": "a.png", "width": 16, "height": 12} for i in (1, 2)]
    opened = dataset(write(folder, [], [], images))
    assert list(by_id(opened)) == ["a.png", "a.png#2"]
    assert "1 image of a file_name that another has already; their ids end in #2, …" in opened.notes
    images[1]["id"] = 1
    with pytest.raises(ValueError, match="two images have the id 1"):
        dataset(write(folder, [], [], images))


def test_real_files(shared: Path) -> None:
    annotations = shared / "coco-mini" / "annotations"
    found = dataset(annotations / "instances_train2017.json")
    count, off, ratios = 0, [], []
    areas = {
        str(each["id"]): each["area"]
        for each in json.loads((annotations / "instances_train2017.json").read_text())["annotations"]
    }
    for case in found.cases():
        truth = case.truth
        assert isinstance(truth, Detections)
        count += len(truth)
        assert truth.masks is not None
        for each, box, mask in zip(truth.ids, truth.boxes, truth.masks, strict=True):
            rows, columns = np.nonzero(mask)
            if len(rows) > 100:
                near = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
                off.append(np.abs(near - box).max())
                ratios.append(mask.sum() / areas[each])
        assert read_input(case)[0].size == (truth.masks.shape[2], truth.masks.shape[1])
    assert count == 739 - 8
    # Masks fill their boxes, but for tips thinner than a pixel, and have the areas that COCO says.
    assert np.percentile(off, 90) < 1.5
    assert np.percentile(ratios, [5, 50, 95]) == pytest.approx(1, abs=0.02)
    assert (
        sum(
            1
            for case in dataset(annotations / "person_keypoints_train2017.json").cases()
            if isinstance(case.truth, Poses) and len(case.truth)
        )
        == 28
    )
    captions = dataset(annotations / "captions_train2017.json")
    assert captions.truth == "caption"
    assert {len(case.truth.texts) for case in captions.cases() if isinstance(case.truth, Caption)} == {5}


@pytest.mark.parametrize(("name", "count"), [("freihand", 8), ("onehand10k", 4), ("panoptic", 4), ("rhd", 3)])
def test_real_hands(shared: Path, name: str, count: int) -> None:
    found = dataset(shared / "hands" / name / f"test_{name}.json")
    cases = list(found.cases())
    assert len(cases) == count
    for case in cases:
        image, truth = read_input(case)[0], case.truth
        assert isinstance(truth, Poses)
        assert truth.skeleton.name == "hand-21"
        points = truth.points[~np.isnan(truth.points[..., 0])]
        assert ((points >= 0) & (points <= image.size)).all()
