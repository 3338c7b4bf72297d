"""FLIC and LSP, from files written to their published descriptions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from instar.case import Case
from instar.datasets import dataset
from instar.outputs.poses import Poses
from tests.datasets.found import by_id

Write = Callable[..., Path]
FLIC = [
    "lsho",
    "lelb",
    "lwri",
    "rsho",
    "relb",
    "rwri",
    "lhip",
    "lkne",
    "lank",
    "rhip",
    "rkne",
    "rank",
    "leye",
    "reye",
    "lear",
    "rear",
    "nose",
    "msho",
    "mhip",
    "mear",
    "mtorso",
    "mluarm",
    "mruarm",
    "mllarm",
    "mrlarm",
    "mluleg",
    "mruleg",
    "mllleg",
    "mrlleg",
]
ANNOTATED = {
    "lsho": "left_shoulder",
    "lelb": "left_elbow",
    "lwri": "left_wrist",
    "rsho": "right_shoulder",
    "relb": "right_elbow",
    "rwri": "right_wrist",
    "lhip": "left_hip",
    "rhip": "right_hip",
    "leye": "left_eye",
    "reye": "right_eye",
    "nose": "nose",
}


def flic(folder: Path, rows: list[tuple[str, bool, bool]], picture: Write) -> Path:
    """Example i has its landmark k at x = 10·i + k + 1, y = x + 0.25; eyes of even examples are missing."""
    fields = [
        "poselet_hit_idx",
        "moviename",
        "coords",
        "filepath",
        "imgdims",
        "currframe",
        "torsobox",
        "istrain",
        "istest",
    ]
    examples = np.zeros(len(rows), dtype=[(name, object) for name in fields])
    for i, (name, train, test) in enumerate(rows):
        coords = np.full((2, 29), np.nan)
        for k, short in enumerate(FLIC):
            if short in ANNOTATED and not (short.endswith("eye") and i % 2 == 0):
                coords[:, k] = 10 * i + k + 1, 10 * i + k + 1.25
        examples[i] = (
            np.arange(3.0),
            "a-movie",
            coords,
            name,
            np.array([480.0, 720, 3]),
            7.0,
            np.array([1.0, 2, 3, 4]),
            train,
            test,
        )
        picture(folder / "images" / name)
    path = folder / "examples.mat"
    savemat(path, {"examples": examples})
    return path


def poses(case: Case) -> Poses:
    assert isinstance(case.truth, Poses)
    return case.truth


def test_flic(tmp_path: Path, picture: Write) -> None:
    path = flic(
        tmp_path,
        [("c.jpg", False, True), ("a.jpg", False, True), ("t.jpg", True, False), ("c.jpg", False, True)],
        picture,
    )
    found = dataset(path)
    cases = by_id(found)
    assert (found.truth, list(cases)) == ("poses", ["a.jpg", "c.jpg"])
    assert found.notes == ("split=test: 2 of 3 images",)
    assert Path(str(cases["a.jpg"].path)) == tmp_path / "images" / "a.jpg"
    assert cases["a.jpg"].attributes == {"movie": "a-movie"}
    truth = poses(cases["a.jpg"])
    assert truth.skeleton.name == "flic-11"
    for short, name in ANNOTATED.items():  # MATLAB's pixel 1 has its centre at 0.5
        x = 10 + FLIC.index(short) + 1
        assert truth.points[0, truth.skeleton.index(name)].tolist() == [x - 0.5, x - 0.25]
    both = poses(cases["c.jpg"])
    assert len(both) == 2
    assert np.isnan(both.points[0, both.skeleton.index("left_eye")]).all()
    assert not np.isnan(both.points[1]).any()

    single = dataset(f'flic("{path}", single=true)')
    assert list(by_id(single)) == ["a.jpg"]
    assert single.notes[1] == "single=true: 1 images with more than one annotation left out"
    assert dataset(single.name).name == single.name
    assert list(by_id(dataset(f'flic("{path}", split=train)'))) == ["t.jpg"]
    assert list(by_id(dataset(f'flic("{path}", split=all)'))) == ["a.jpg", "c.jpg", "t.jpg"]


def test_flic_with_one_example(tmp_path: Path, picture: Write) -> None:
    path = flic(tmp_path, [("a.jpg", True, False)], picture)
    assert list(by_id(dataset(f'flic("{path}", split=train)'))) == ["a.jpg"]
    with pytest.raises(ValueError, match="no images in split=test"):
        dataset(path)


def test_flic_that_is_something_else(tmp_path: Path) -> None:
    savemat(tmp_path / "examples.mat", {"examples": np.zeros(2, [("coords", object)])})
    with pytest.raises(ValueError, match="no field 'filepath'; there are coords"):
        dataset(tmp_path / "examples.mat")
    savemat(tmp_path / "x.mat", {"something": 1})
    with pytest.raises(ValueError, match="no reader recognises this file, which has the variables something"):
        dataset(tmp_path / "x.mat")
    with pytest.raises(ValueError, match="no variable 'examples' in it, only something"):
        dataset(f'flic("{tmp_path}/x.mat")')
    with pytest.raises(ValueError, match="no variable 'joints' in it, only something"):
        dataset(f'lsp("{tmp_path}/x.mat")')


@pytest.mark.parametrize("digits", [4, 5])
def test_lsp_where_places_of_occluded_joints_are_known(tmp_path: Path, picture: Write, digits: int) -> None:
    joints = np.zeros((3, 14, 2))
    joints[0], joints[1] = np.arange(14)[:, None] + 1, 50
    joints[2, 3, 0] = 1  # left hip of the first, occluded
    savemat(tmp_path / "joints.mat", {"joints": joints})
    picture(tmp_path / "images" / f"im{1:0{digits}d}.jpg")
    found = dataset(tmp_path / "joints.mat")
    cases = by_id(found)
    assert list(cases) == [f"im{i:0{digits}d}.jpg" for i in (1, 2)]
    truth = poses(cases[f"im{1:0{digits}d}.jpg"])
    assert truth.points[0, :, 0].tolist() == [i + 0.5 for i in range(14)]
    assert truth.points[0, :, 1].tolist() == [49.5] * 14
    assert truth.visibility[0].tolist() == [1, 1, 1, 0.5] + [1] * 10
    assert found.notes == ()


def test_lsp_where_they_are_not(tmp_path: Path, picture: Write) -> None:
    joints = np.ones((14, 3, 3))
    joints[5] = np.array([0, -20, 0])[:, None]  # a left ankle nobody saw
    savemat(tmp_path / "joints.mat", {"joints": joints})
    picture(tmp_path / "images" / "im00001.jpg")
    found = dataset(tmp_path / "joints.mat")
    truth = poses(by_id(found)["im00003.jpg"])
    assert np.isnan(truth.points[0, 5]).all()
    assert truth.points[0, 0].tolist() == [0.5, 0.5]
    assert found.notes == ("3 landmarks are not annotated",)


def test_lsp_of_another_shape(tmp_path: Path) -> None:
    savemat(tmp_path / "joints.mat", {"joints": np.zeros((4, 5, 6))})
    with pytest.raises(ValueError, match="got 4 × 5 × 6"):
        dataset(tmp_path / "joints.mat")


def test_lsp_csv(tmp_path: Path, picture: Write) -> None:
    path = tmp_path / "joints.csv"
    picture(tmp_path / "images" / "b.jpg")
    path.write_text("image,landmark,x,y,visible\nb.jpg,left_hip,3.25,4,1\nb.jpg,neck,1,1,0\na.jpg,neck,7,8,1\n")
    cases = by_id(dataset(path))
    assert list(cases) == ["a.jpg", "b.jpg"]
    truth = poses(cases["b.jpg"])
    assert truth.points[0, truth.skeleton.index("left_hip")].tolist() == [3.25, 4]
    assert np.isnan(truth.points[0]).all(1).sum() == 13


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image,landmark,x,y,visible\n", "no lines"),
        ("image,landmark,x,y,visible\na.jpg,left_hipp,1,2,1\n", "line 2: 'left_hipp' is not .*'left_hip'"),
        ("image,landmark,x,y,visible\na.jpg,left_hip,1,two,1\n", "line 2: x, y and visible are numbers"),
        ("image,landmark,x,y,visible\na.jpg,left_hip,1\n", "line 2: x, y and visible are numbers"),
        ("a,b\n", "first line is 'a,b'"),
    ],
)
def test_csv_that_is_something_else(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "joints.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        dataset(f'lsp("{tmp_path}/joints.csv")')


def test_real_lsp(shared: Path) -> None:
    found = dataset(shared / "lsp" / "joints.csv")
    cases = list(found.cases())
    assert len(cases) == 200
    assert found.notes == ("390 landmarks are not annotated",)
    assert all(len(poses(case)) == 1 for case in cases)


def test_the_folder_of_an_annotation_file_is_read_with_its_truth(tmp_path: Path, picture: Write) -> None:
    """Whoever gives the folder means the dataset, and not its images alone."""
    flic(tmp_path / "flic", [("a.jpg", False, True)], picture)
    picture(tmp_path / "lsp" / "images" / "b.jpg")
    (tmp_path / "lsp" / "joints.csv").write_text("image,landmark,x,y,visible\nb.jpg,left_hip,3.25,4,1\n")
    assert [len(poses(case)) for case in dataset(tmp_path / "flic").cases()] == [1]
    assert [len(poses(case)) for case in dataset(f'lsp("{tmp_path / "lsp"}")').cases()] == [1]
    assert dataset(tmp_path / "lsp").truth == "poses"
    (tmp_path / "lsp" / "joints.csv").write_text("name,x\na,1\n")
    assert dataset(tmp_path / "lsp").truth is None, "another table of that name makes it no such dataset"
