"""FreiHAND, from files written to its published description; its pictures are the real ones where they are here."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.datasets import dataset
from instar.datasets.freihand import FREIHAND
from tests.datasets.found import by_id, hand_points

Write = Callable[..., Path]
CAMERA = [[480.0, 0, 112], [0, 470.0, 110], [0, 0, 1]]


def behind(uv: Any, depth: float = 0.6) -> list[list[float]]:
    """Places that the camera sees at (u, v), where the centre of the first pixel is (0, 0)."""
    seen = np.column_stack([np.asarray(uv, float), np.ones(len(uv))]) * depth
    return np.linalg.solve(np.array(CAMERA), seen.T).T.tolist()  # type: ignore[no-any-return]


def hand(sample: int) -> list[list[float]]:
    return [[10.0 * sample + k, 2.0 * k] for k in range(21)]


def freihand(
    folder: Path,
    picture: Write,
    *,
    samples: int = 3,
    numbers: range | None = None,
    split: str = "training",
    xyz: bool = True,
) -> Path:
    if xyz:
        (folder / f"{split}_xyz.json").write_text(json.dumps([behind(hand(i)) for i in range(samples)]))
    (folder / f"{split}_K.json").write_text(json.dumps([CAMERA] * samples))
    for number in numbers if numbers is not None else range(4 * samples):
        picture(folder / split / "rgb" / f"{number:08d}.jpg", (224, 224))
    return folder


def test_a_folder_is_recognised_and_projected(tmp_path: Path, picture: Write) -> None:
    found = dataset(freihand(tmp_path, picture))
    cases = by_id(found)
    assert (found.name.partition("(")[0], found.truth, found.notes) == ("freihand", "poses", ())
    assert list(cases) == [f"training/rgb/{i:08d}.jpg" for i in range(3)]
    # Pixel 20 has its centre at 20.5.
    np.testing.assert_allclose(hand_points(cases["training/rgb/00000002.jpg"])[0], np.array(hand(2)) + 0.5, atol=1e-3)
    assert dataset(found.name).name == found.name


def test_all_versions_show_the_same_samples(tmp_path: Path, picture: Write) -> None:
    freihand(tmp_path, picture)
    cases = by_id(dataset(f'freihand("{tmp_path}", versions=all)'))
    assert len(cases) == 12
    for number, case in enumerate(cases.values()):
        assert case.attributes == {
            "split": "training",
            "sample": f"{number % 3:08d}",
            "version": ("gs", "hom", "sample", "auto")[number // 3],
        }
        np.testing.assert_array_equal(hand_points(case), hand_points(cases[f"training/rgb/{number % 3:08d}.jpg"]))


def test_evaluation_of_both_versions(tmp_path: Path, picture: Write) -> None:
    freihand(tmp_path, picture)
    freihand(tmp_path, picture, samples=2, numbers=range(2), split="evaluation", xyz=False)
    first = dataset(f'freihand("{tmp_path}", split=evaluation)')
    assert [case.truth for case in first.cases()] == [None, None]
    assert "evaluation_xyz.json, which comes with version 2" in first.notes[0]
    freihand(tmp_path, picture, samples=2, numbers=range(0), split="evaluation")
    second = dataset(f'freihand("{tmp_path}", split=evaluation)')
    assert [len(hand_points(case)) for case in second.cases()] == [1, 1]
    assert second.notes == ()
    everything = dataset(tmp_path)
    assert [case.attributes["split"] for case in everything.cases()] == ["evaluation"] * 2 + ["training"] * 3


def test_pictures_that_are_not_there_are_left_out_and_said(tmp_path: Path, picture: Write) -> None:
    freihand(tmp_path, picture, numbers=range(1, 2))
    picture(tmp_path / "training" / "rgb" / "00000012.jpg")
    (tmp_path / "training" / "rgb" / "Thumbs.db").write_bytes(b"x")
    found = dataset(f'freihand("{tmp_path}", versions=all)')
    assert list(by_id(found)) == ["training/rgb/00000001.jpg"]
    assert found.notes == (
        "training: 1 picture left out, whose number is beyond those of 3 samples: 00000012.jpg",
        "training: 11 of 12 pictures not there, and left out",
    )


def test_samples_that_make_no_sense_have_no_truth(tmp_path: Path, picture: Write) -> None:
    freihand(tmp_path, picture, samples=5)
    file = tmp_path / "training_xyz.json"
    places = json.loads(file.read_text())
    places[0] = places[0][:20]
    places[1][3][0] = float("nan")
    places[2][4][2] = -0.6
    places[3] = [["a", 1, 2]] * 21
    places[4] = [[float("inf")] * 3] * 21
    file.write_text(json.dumps(places))
    found = dataset(tmp_path)
    cases = list(found.cases())
    assert [case.truth is None for case in cases] == [True, False, False, True, True]
    assert np.flatnonzero(np.isnan(hand_points(cases[1])[0, :, 0])).tolist() == [3]
    assert np.flatnonzero(np.isnan(hand_points(cases[2])[0, :, 0])).tolist() == [4]
    assert found.notes == (
        "training: 3 samples without truth, for want of 21 × 3 places before a camera of 3 × 3 numbers: 0, 3, 4",
        "training: 2 landmarks no number, or behind the camera, and absent",
    )


@pytest.mark.parametrize(
    ("file", "text", "error", "message"),
    [
        ("training_xyz.json", None, FileNotFoundError, "no file .*training_xyz.json"),
        ("training_xyz.json", "[[[1, 2", ValueError, r"training_xyz.json: not JSON, or damaged"),
        ("training_xyz.json", "{}", ValueError, "training_xyz.json: it is a list with an entry for each sample"),
        ("training_K.json", "[]", ValueError, "training_K.json: it is a list"),
        ("training_K.json", json.dumps([CAMERA] * 2), ValueError, "training_xyz.json has 3 samples, training_K.json 2"),
    ],
)
def test_files_that_are_missing_or_damaged(
    tmp_path: Path, picture: Write, file: str, text: str | None, error: type[Exception], message: str
) -> None:
    freihand(tmp_path, picture)
    (tmp_path / file).unlink()
    if text is not None:
        (tmp_path / file).write_text(text)
    with pytest.raises(error, match=message):
        dataset(f'freihand("{tmp_path}")')


def test_folders_that_are_something_else(tmp_path: Path, picture: Write) -> None:
    with pytest.raises(FileNotFoundError, match="no folder"):
        dataset(f'freihand("{tmp_path}/nowhere")')
    with pytest.raises(FileNotFoundError, match="no folder training/rgb or evaluation/rgb"):
        dataset(f'freihand("{tmp_path}")')
    freihand(tmp_path, picture, numbers=range(0))
    (tmp_path / "training" / "rgb").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match="no picture of training is there"):
        dataset(tmp_path)


@settings(max_examples=30, deadline=None)
@given(
    uv=st.lists(st.tuples(st.floats(-50, 300), st.floats(-50, 300)), min_size=21, max_size=21), depth=st.floats(0.2, 2)
)
def test_what_the_camera_sees_comes_back(
    tmp_path_factory: pytest.TempPathFactory, uv: list[tuple[float, float]], depth: float
) -> None:
    folder = tmp_path_factory.mktemp("freihand")
    (folder / "training" / "rgb").mkdir(parents=True)
    (folder / "training" / "rgb" / "00000000.jpg").write_bytes(b"not looked into")
    (folder / "training_xyz.json").write_text(json.dumps([behind(uv, depth)]))
    (folder / "training_K.json").write_text(json.dumps([CAMERA]))
    case = next(FREIHAND.open("", path=str(folder), split="all", versions="one").cases())
    np.testing.assert_allclose(hand_points(case)[0], np.array(uv) + 0.5, atol=1e-3)


def test_real_pictures_in_the_layout_agree_with_the_coco_style_file(tmp_path: Path, shared: Path) -> None:
    """Two samples in all four versions: their numbers modulo 32,560 are the samples', and places are the same."""
    real = shared / "hands" / "freihand"
    told = {
        entry["image_id"]: np.array(entry["keypoints"]).reshape(21, 3)[:, :2]
        for entry in json.loads((real / "test_freihand.json").read_text())["annotations"]
    }
    (tmp_path / "training").mkdir()
    (tmp_path / "training" / "rgb").symlink_to(real)
    nothing = json.dumps([[0, 0, 1]] * 21)
    places = [json.dumps(behind(told[i])) if i in told else nothing for i in range(32560)]
    (tmp_path / "training_xyz.json").write_text(f"[{','.join(places)}]")
    (tmp_path / "training_K.json").write_text(json.dumps([CAMERA] * 32560))
    expected = by_id(dataset(real / "test_freihand.json"))
    found = by_id(dataset(f'freihand("{tmp_path}", versions=all)'))
    assert len(found) == 8
    for name, case in expected.items():
        mine = found[f"training/rgb/{name}"]
        assert mine.attributes["sample"] in ("00000355", "00017620")
        np.testing.assert_allclose(hand_points(mine), hand_points(case), atol=1e-2)
