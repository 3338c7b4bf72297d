"""CMU's hands, from files written as their public readers agree; the pictures are the real ones where they are here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.case import Case, read_input
from instar.datasets import dataset
from instar.datasets.panoptic import _square
from instar.image import Crop, Image, Unreadable, read_image
from tests.datasets.found import by_id, hand_points

Write = Callable[..., Path]


def marks(x: float = 40, y: float = 30, *, invalid: tuple[int, ...] = ()) -> list[list[float]]:
    """A hand 20 pixels wide and 10 high."""
    return [[x + k, y + k / 2, 0.0 if k in invalid else 1.0] for k in range(21)]


def labelled(folder: Path, picture: Write, name: str, content: Any, part: str = "manual_test") -> None:
    picture(folder / part / f"{name}.jpg", (100, 80))
    (folder / part / f"{name}.json").write_text(json.dumps(content))


def listed(folder: Path, picture: Write, entries: list[Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for entry in entries:
        if isinstance(entry, dict) and str(entry.get("img_paths")).startswith("imgs/0"):
            picture(folder / entry["img_paths"], (100, 80))
    file = folder / "hands_v143_14817.json"
    file.write_text(json.dumps({"root": entries}))
    return file


def test_a_json_file_beside_each_picture(tmp_path: Path, picture: Write) -> None:
    labelled(tmp_path, picture, "b_01_l", {"hand_pts": marks(invalid=(2,)), "is_left": 1.0})
    labelled(tmp_path, picture, "a.flv_r", {"hand_pts": marks(), "is_left": 0}, "manual_train")
    labelled(tmp_path, picture, "0001", {"hand_pts": marks()}, "synth2")
    found = dataset(tmp_path)
    cases = by_id(found)
    assert (found.name.partition("(")[0], found.truth, found.notes) == ("panoptic", "poses", ())
    assert list(cases) == ["manual_test/b_01_l.jpg", "manual_train/a.flv_r.jpg", "synth2/0001.jpg"]
    assert [case.attributes for case in cases.values()] == [
        {"part": "manual_test", "hand": "left"},
        {"part": "manual_train", "hand": "right"},
        {"part": "synth2"},
    ]
    truth = hand_points(cases["manual_test/b_01_l.jpg"])
    assert truth[0, 0].tolist() == [40.5, 30.5]  # pixel 40 has its centre at 40.5
    assert np.flatnonzero(np.isnan(truth[0, :, 0])).tolist() == [2]
    assert read_input(cases["synth2/0001.jpg"])[0].size == (100, 80)
    assert list(by_id(dataset(tmp_path / "synth2"))) == ["0001.jpg"]


def test_a_list_of_pictures(tmp_path: Path, picture: Write) -> None:
    folder = tmp_path / "hand143_panopticdb"
    entries = [
        {"img_paths": f"imgs/{i:08d}.jpg", "joint_self": marks(30 + i), "img_width": 100, "img_height": 80}
        for i in (1, 0, 1)
    ]
    file = listed(folder, picture, entries)
    for given_path in (tmp_path, folder, file):
        found = dataset(given_path)
        assert found.name.startswith("panoptic(")
        assert [case.id.rpartition("/")[2] for case in found.cases()] == [
            "00000000.jpg",
            "00000001.jpg",
            "00000001.jpg#2",
        ]
        assert found.notes == ("1 hand of a picture that has one already; their ids end in #2, …",)
    assert hand_points(by_id(found)["imgs/00000000.jpg"])[0, 0].tolist() == [30.5, 30.5]


def test_crops_as_in_the_paper(tmp_path: Path, picture: Write) -> None:
    labelled(tmp_path, picture, "a", {"hand_pts": marks(5, 30)})
    labelled(tmp_path, picture, "b", {"hand_pts": marks(60, 30)})
    found = dataset(f'panoptic("{tmp_path}", crop=2.2)')
    first, second = found.cases()
    # 2.2 × 20 pixels about the middle of the box; beyond the edge of the picture it is black.
    assert first.crop == Crop(-6, 14, 38, 58, 44, 44)
    image, digest = read_input(first)
    assert isinstance(image, Image)
    assert image.size == (44, 44)
    assert not image.pixels[:, :6].any()
    assert image.pixels[:, 6:].all()
    np.testing.assert_allclose(hand_points(first)[0, 0], [5.5 + 6, 30.5 - 14])
    assert digest != read_input(second)[1] != read_input(Case("a", first.path))[1]
    assert read_input(first)[1] == digest
    small = next(dataset(f'panoptic("{tmp_path}", crop=2.2, size=224)').cases())
    assert read_input(small)[0].size == (224, 224)
    np.testing.assert_allclose(hand_points(small), hand_points(first) * 224 / 44, rtol=1e-6)
    assert dataset(found.name).name == found.name
    with pytest.raises(ValueError, match=r"size is that of crops; .* crop=2\.2"):
        dataset(f'panoptic("{tmp_path}", size=224)')
    with pytest.raises(ValueError, match=r"crop=0\.5 is not allowed"):
        dataset(f'panoptic("{tmp_path}", crop=0.5)')


def test_a_crop_away_from_its_picture_is_a_row_that_says_so(tmp_path: Path, picture: Write) -> None:
    labelled(tmp_path, picture, "a", {"hand_pts": marks(500, 30)})
    labelled(tmp_path, picture, "b", {"hand_pts": [*marks()[:20], [1e9, 1e9, 1]]})
    outside, huge = dataset(f'panoptic("{tmp_path}", crop=2.2)').cases()
    with pytest.raises(Unreadable, match=r"a\.jpg: .*lies outside of the image, 100 × 80"):
        read_input(outside)
    with pytest.raises(Unreadable, match="at most 100,000,000 are allowed"):
        read_input(huge)


def test_what_cannot_be_read_is_left_out_and_said(tmp_path: Path, picture: Write) -> None:
    labelled(tmp_path, picture, "good", {"hand_pts": marks(), "is_left": [1]})
    labelled(tmp_path, picture, "few", {"hand_pts": marks()[:20]})
    labelled(tmp_path, picture, "words", {"hand_pts": "none"})
    labelled(tmp_path, picture, "nan", {"hand_pts": [[float("nan"), 1, 1]] * 21})
    labelled(tmp_path, picture, "other", {"hand": 1})
    labelled(tmp_path, picture, "list", [1, 2])
    labelled(tmp_path, picture, "torn", {})
    (tmp_path / "manual_test" / "torn.json").write_text('{"hand_pts": [[1, 2')
    labelled(tmp_path, picture, "gone", {"hand_pts": marks()})
    (tmp_path / "manual_test" / "gone.jpg").unlink()
    nameless = [{"joint_self": marks()}, {"img_paths": 3, "joint_self": marks()}]
    listed(tmp_path / "hand143_panopticdb", picture, [7, *nameless])
    found = dataset(tmp_path)
    assert {case.id: case.attributes for case in found.cases()} == {"manual_test/good.jpg": {"part": "manual_test"}}
    assert sorted(found.notes) == [
        "1 hand left out, whose JSON is damaged: manual_test/torn.json",
        "1 hand left out, without any valid landmark: manual_test/nan.json",
        "2 hands left out, whose JSON has neither hand_pts nor root: manual_test/list.json, manual_test/other.json",
        "3 hands left out, whose picture is not there: hand143_panopticdb/hands_v143_14817.json 1, "
        "hand143_panopticdb/hands_v143_14817.json 2, manual_test/gone.json",
        "3 hands left out, without 21 × (x, y, flag): hand143_panopticdb/hands_v143_14817.json 0, "
        "manual_test/few.json, manual_test/words.json",
    ]


def test_a_hand_in_one_place_has_no_crop(tmp_path: Path, picture: Write) -> None:
    labelled(tmp_path, picture, "dot", {"hand_pts": marks(invalid=tuple(range(1, 21)))})
    assert len(list(dataset(tmp_path).cases())) == 1
    with pytest.raises(ValueError, match="no hand in it can be read; 1 hand left out, with one place only"):
        dataset(f'panoptic("{tmp_path}", crop=2.2)')


def test_folders_that_are_something_else(tmp_path: Path, picture: Write) -> None:
    picture(tmp_path / "synth1" / "a.jpg")
    assert dataset(tmp_path).name.startswith("folder(")
    with pytest.raises(ValueError, match=r"no \.json files"):
        dataset(f'panoptic("{tmp_path}")')
    with pytest.raises(FileNotFoundError, match="nowhere"):
        dataset(f'panoptic("{tmp_path}/nowhere")')


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-100, 2000), st.floats(-100, 2000)), min_size=21, max_size=21), st.floats(1.1, 5))
def test_a_crop_is_square_and_holds_the_hand_in_its_middle(places: list[tuple[float, float]], times: float) -> None:
    hand = np.array(places)
    extent = float(np.ptp(hand, 0).max())
    crop = _square(hand, times, None)
    side = crop.x1 - crop.x0
    assert crop == Crop(crop.x0, crop.y0, crop.x0 + side, crop.y0 + side, side, side)
    assert abs(side - max(1, times * extent)) <= 0.5
    inside = crop.points(hand)
    np.testing.assert_allclose((inside.min(0) + inside.max(0)) / 2, side / 2, atol=1)


def test_real_pictures_in_the_layout_agree_with_the_coco_style_file(tmp_path: Path, shared: Path) -> None:
    real = shared / "hands" / "panoptic"
    folder = tmp_path / "hand_labels" / "manual_test"
    folder.mkdir(parents=True)
    content = json.loads((real / "test_panoptic.json").read_text())
    names = {image["id"]: image["file_name"] for image in content["images"]}
    for entry in content["annotations"]:
        name = names[entry["image_id"]]
        shutil.copy(real / name, folder / name)
        told = {
            "hand_pts": np.array(entry["keypoints"]).reshape(21, 3).tolist(),
            "is_left": int("_l." in name),
            "hand_box_center": entry["center"],
        }
        (folder / name).with_suffix(".json").write_text(json.dumps(told))
    expected = by_id(dataset(real / "test_panoptic.json"))
    whole, cropped = by_id(dataset(tmp_path)), by_id(dataset(f'panoptic("{tmp_path}", crop=2.2)'))
    for name, case in expected.items():
        mine, part = (cases[f"hand_labels/manual_test/{name}"] for cases in (whole, cropped))
        np.testing.assert_array_equal(hand_points(mine), hand_points(case))
        assert mine.attributes["hand"] == ("left" if "_l." in name else "right")
        picture, (crop, _) = read_image(str(case.path)), read_input(part)
        assert isinstance(crop, Image)
        for (x, y), (u, v) in zip(hand_points(case)[0], hand_points(part)[0], strict=True):
            np.testing.assert_array_equal(crop.pixels[int(v), int(u)], picture.pixels[int(y), int(x)])
