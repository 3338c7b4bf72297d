"""OneHand10K, from files written as its public readers agree; its pictures are the real ones where they are here."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from instar.case import Case
from instar.datasets import dataset
from instar.outputs.poses import Poses
from tests.datasets.found import by_id

Write = Callable[..., Path]


def line(name: str, *, size: tuple[int, int] = (16, 12), hidden: tuple[int, ...] = (), hands: int = 1) -> str:
    one = [word for k in range(21) for word in (("-1", "-1") if k in hidden else (str(k), str(2 * k)))]
    return ",".join([name, str(size[0]), str(size[1]), str(hands), *one * hands])


def labels(folder: Path, picture: Write, lines: list[str], part: str = "Train") -> Path:
    file = folder / part / "label_joint.txt"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n")
    for each in lines:
        picture(file.parent / "source" / each.partition(",")[0])
    return file


def poses(case: Case) -> Poses:
    assert isinstance(case.truth, Poses)
    return case.truth


def test_a_folder_is_recognised(tmp_path: Path, picture: Write) -> None:
    labels(tmp_path, picture, [line("10.jpg", hidden=(0, 7)), line("9.jpg", hidden=tuple(range(21)))])
    labels(tmp_path, picture, [line("10.jpg", hands=2)], "Test")
    found = dataset(tmp_path)
    cases = by_id(found)
    assert (found.name.partition("(")[0], found.truth, found.notes) == ("onehand10k", "poses", ())
    assert list(cases) == ["Test/source/10.jpg", "Train/source/10.jpg", "Train/source/9.jpg"]
    truth = poses(cases["Train/source/10.jpg"])
    assert truth.skeleton.name == "hand-21"
    assert np.flatnonzero(np.isnan(truth.points[0, :, 0])).tolist() == [0, 7]
    assert truth.points[0, 3].tolist() == [3.5, 6.5]  # pixel 3 has its centre at 3.5
    assert len(poses(cases["Test/source/10.jpg"])) == 2
    assert cases["Train/source/9.jpg"].truth is None  # a hand nobody marked is not nobody's hand
    assert list(by_id(dataset(f'onehand10k("{tmp_path}", split=test)'))) == ["Test/source/10.jpg"]


def test_the_file_is_recognised_and_pictures_may_lie_beside_it(tmp_path: Path, picture: Write) -> None:
    (tmp_path / "joints.txt").write_text(line("a.jpg") + "\n")
    picture(tmp_path / "a.jpg")
    found = dataset(tmp_path / "joints.txt")
    assert (found.name.partition("(")[0], list(by_id(found))) == ("onehand10k", ["a.jpg"])


def test_lines_and_pictures_that_are_not_there_are_said(tmp_path: Path, picture: Write) -> None:
    file = labels(tmp_path, picture, [line("a.jpg"), line("a.jpg"), line("b.jpg")])
    file.write_text(
        file.read_text()
        + "\nc.jpg,16,12,1,5,5\n"
        + line("d.jpg").replace(",4,", ",four,", 1)
        + "\n"
        + line("gone.jpg")
        + "\n"
        + line("e.jpg").replace(",3,", ",nan,", 1)
        + "\n"
    )
    picture(tmp_path / "Train" / "source" / "e.jpg")
    found = dataset(tmp_path)
    cases = by_id(found)
    assert list(cases) == [f"Train/source/{name}" for name in ("a.jpg", "a.jpg#2", "b.jpg", "e.jpg")]
    assert np.isnan(poses(cases["Train/source/e.jpg"]).points[0, 3]).all()
    assert found.notes == (
        "2 lines left out, which are not name, width, height, hands and 42 numbers a hand: Train 5, Train 6",
        "1 picture not there, and left out: Train/source/gone.jpg",
        "1 line of a picture that has one already; their ids end in #2, …",
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "its labels are empty"),
        (b"a.jpg,1\n", "1 line left out"),
        (b"\xff\xfe\xff", "UTF-8"),
        (line("a.jpg").encode(), "1 picture not there"),
    ],
)
def test_labels_that_tell_nothing(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "Train").mkdir()
    (tmp_path / "Train" / "label_joint.txt").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        dataset(tmp_path)


def test_parts_that_are_not_there(tmp_path: Path, picture: Write) -> None:
    labels(tmp_path, picture, [line("a.jpg")])
    with pytest.raises(FileNotFoundError, match=r"no Test/label_joint\.txt"):
        dataset(f'onehand10k("{tmp_path}", split=test)')
    with pytest.raises(FileNotFoundError, match="nowhere"):
        dataset(f'onehand10k("{tmp_path}/nowhere")')


def test_real_pictures_in_the_layout_agree_with_the_coco_style_file(tmp_path: Path, shared: Path) -> None:
    real = shared / "hands" / "onehand10k"
    content = json.loads((real / "test_onehand10k.json").read_text())
    sizes = {image["id"]: image for image in content["images"]}
    lines = []
    for entry in content["annotations"]:
        marks = np.array(entry["keypoints"]).reshape(21, 3)
        marks[marks[:, 2] == 0, :2] = -1
        about = sizes[entry["image_id"]]
        words = [about["file_name"], about["width"], about["height"], 1, *marks[:, :2].ravel()]
        lines.append(",".join(map(str, words)))
    (tmp_path / "Test").mkdir()
    (tmp_path / "Test" / "label_joint.txt").write_text("\n".join(lines))
    (tmp_path / "Test" / "source").symlink_to(real)
    found, expected = by_id(dataset(tmp_path)), by_id(dataset(real / "test_onehand10k.json"))
    assert len(found) == 4
    for name, case in expected.items():
        np.testing.assert_array_equal(poses(found[f"Test/source/{name}"]).points, poses(case).points)
