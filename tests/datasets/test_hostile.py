"""What lies in a dataset may be anything: a pipe that never ends, a size that no image has. Nothing hangs or breaks."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import instar
from instar.case import read_input
from instar.datasets import dataset
from instar.image import Unreadable
from instar.outputs.detections import Detections
from instar.outputs.limits import LIMITS
from instar.skeleton import skeleton
from instar.suites import suite
from instar.systems.http_template import read_template
from tests.toys import write_scenes


@pytest.fixture(autouse=True)
def not_for_ever() -> Iterator[None]:
    """What waits for a pipe's other end waits for ever."""

    def stop(*_: object) -> None:
        raise RuntimeError("it hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def yolo(root: Path) -> Path:
    write_scenes(root / "images", 2)
    (root / "labels").mkdir()
    for name in ("000", "001"):
        (root / "labels" / f"{name}.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    return root


def voc(root: Path) -> Path:
    write_scenes(root / "JPEGImages", 2)
    (root / "Annotations").mkdir()
    for name in ("000", "001"):
        (root / "Annotations" / f"{name}.xml").write_text(
            "<annotation><size><width>160</width><height>120</height></size><object><name>dog</name><bndbox>"
            "<xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax></bndbox></object></annotation>"
        )
    return root


def pedestrians(root: Path) -> Path:
    root.mkdir(parents=True)
    lines = (f"{10 * step} 1 {step * 0.1} {step * 0.1}" for step in range(40))
    (root / "walk.txt").write_text("\n".join(lines))
    return root


PIPES: dict[str, tuple[Callable[[Path], Path], str, str]] = {
    "a picture": (lambda root: write_scenes(root, 2), "pipe.jpg", "{}"),
    "YOLO's description": (yolo, "data.yaml", "{}"),
    "one of YOLO's labels": (yolo, "labels/002.txt", "{}"),
    "YOLO's list of names": (yolo, "classes.txt", "{}"),
    "one of VOC's annotations": (voc, "Annotations/002.xml", "{}"),
    "a list of VOC's": (voc, "ImageSets/Main/val.txt", 'voc("{}", split=all)'),
    "a text of tracks": (pedestrians, "pipe.txt", 'eth-ucy("{}")'),
}


@pytest.mark.parametrize("kind", ["pipe", "socket", "folder"])
@pytest.mark.parametrize("what", PIPES)
def test_what_is_no_file_costs_no_more_than_itself(
    what: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, name, spelling = PIPES[what]
    root = make(tmp_path / "set")
    place = root / name
    place.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    else:
        monkeypatch.chdir(place.parent)  # the whole path is too long for a socket
        with socket.socket(socket.AF_UNIX) as end:
            end.bind(place.name)
    opened = dataset(spelling.format(root))
    reasons = []
    for case in opened.cases():
        try:
            read_input(case)
        except Unreadable as error:
            reasons.append(str(error))
        else:
            reasons.append("")
    assert "" in reasons  # the others can be read
    assert all("not a regular file" in reason for reason in reasons if reason)


FILES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "COCO's JSON": ("a.json", lambda path: dataset(f'coco("{path}")')),
    "a list": ("a.txt", lambda path: dataset(f'list("{path}")')),
    "a table of captions": ("a.csv", lambda path: dataset(f'captions("{path}")')),
    "a table of attributes": ("a.csv", lambda path: dataset(f'sample-photos(attributes="{path}")')),
    "a dataset of any kind": ("a.json", dataset),
    "a skeleton": ("a.toml", lambda path: skeleton(str(path))),
    "a suite": ("a.toml", lambda path: suite(str(path))),
    "a template": ("a.toml", lambda path: read_template(str(path), "http")),
}


@pytest.mark.parametrize("what", FILES)
def test_a_pipe_that_is_named_is_an_error(what: str, tmp_path: Path) -> None:
    name, read = FILES[what]
    os.mkfifo(tmp_path / name)
    with pytest.raises((ValueError, FileNotFoundError), match=name.replace(".", r"\.")):
        read(tmp_path / name)


SIZES: dict[str, tuple[object, object]] = {
    "vast": (10**12, 10**12),
    "beyond any number": (10**400, 1),
    "negative": (-160, 120),
    "nothing": (0, 0),
    "no number": (float("nan"), 120),
    "infinite": (float("inf"), 120),
    "a text": ("wide", 120),
    "nobody's": (None, 120),
    "a list": ([160], 120),
}


def coco(folder: Path, size: tuple[object, object], **annotation: object) -> instar.Dataset:
    write_scenes(folder / "images", 2)
    images = [
        {"id": 0, "file_name": "000.png", "width": size[0], "height": size[1]},
        {"id": 1, "file_name": "001.png", "width": 160, "height": 120},
    ]
    shape = {"bbox": [0, 0, 9, 9], "category_id": 1, "segmentation": [[0, 0, 9, 0, 9, 9]], **annotation}
    objects = [{"id": number, "image_id": number, **shape} for number in (0, 1)]
    content = {"images": images, "annotations": objects, "categories": [{"id": 1, "name": "dog"}]}
    (folder / "a.json").write_text(json.dumps(content))
    return dataset(folder / "a.json")


@pytest.mark.parametrize("what", SIZES)
def test_a_size_in_cocos_json_that_no_image_has(what: str, tmp_path: Path) -> None:
    """The image is there and is tested; only masks cannot be drawn without its size."""
    opened = coco(tmp_path, SIZES[what])
    first, second = (case.truth for case in opened.cases())
    assert isinstance(first, Detections)
    assert isinstance(second, Detections)
    assert first.masks is None
    assert second.masks is not None
    assert first.boxes.tolist() == second.boxes.tolist() == [[0, 0, 9, 9]]
    assert any("1 picture whose width and height are no size of an image" in note for note in opened.notes)


@pytest.mark.parametrize(
    "annotation",
    [
        {"bbox": [0, 0, 10**400, 9]},
        {"category_id": [1]},
        {"image_id": {}},
        {"segmentation": [[10**400, 0, 9, 0, 9, 9]]},
        {"segmentation": {"size": [120, 160], "counts": [10**30, 5]}},
        {"segmentation": {"size": [120, 160], "counts": [2**63 - 1, 2**63 - 1, 19_202]}},
        {"segmentation": {"size": [120, 160], "counts": "o" * 200 + "0"}},
    ],
    ids=["a box", "a class", "an image", "an outline", "a run", "runs whose sum overflows", "compressed runs"],
)
def test_absurd_numbers_of_an_annotation_are_left_out_with_the_reason(
    annotation: dict[str, object], tmp_path: Path
) -> None:
    opened = coco(tmp_path, (160, 120), **annotation)
    assert [len(case.truth) for case in opened.cases()] == [0, 0]  # type: ignore[arg-type]
    assert any("2 annotations left out" in note for note in opened.notes)


def test_boxes_of_voc_that_no_image_holds_are_left_out(tmp_path: Path) -> None:
    """As 32-bit numbers they would be infinite, and end the run at the first case that has one."""
    root = voc(tmp_path)
    file = root / "Annotations" / "000.xml"
    vast = file.read_text().replace("<xmax>9<", "<xmax>1e300<").replace("<width>160<", "<width>1e301<")
    file.write_text(vast)
    opened = dataset(root)
    assert [len(case.truth) for case in opened.cases()] == [0, 1]  # type: ignore[arg-type]
    assert any("whose bndbox is not xmin, ymin, xmax, ymax" in note for note in opened.notes)


def test_landmarks_that_no_image_holds_are_absent(tmp_path: Path) -> None:
    """A crop around them would have corners that no table holds."""
    write_scenes(tmp_path, 1)
    marks = [[20.0 + n, 20.0 + n, 1] for n in range(20)] + [[1e30, 1e30, 1]]
    (tmp_path / "000.json").write_text(json.dumps({"hand_pts": marks, "is_left": 1}))
    os.mkfifo(tmp_path / "pipe.json")
    (case,) = dataset(f'panoptic("{tmp_path}", crop=2.2)').cases()
    assert read_input(case)[0].size == (42, 42)


def test_masks_that_no_memory_holds_are_not_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("instar.datasets.objects.LIMITS", {**LIMITS, "pixels in all masks": 160 * 120 - 1})
    truths = [case.truth for case in coco(tmp_path, (160, 120)).cases()]
    assert [truth.masks for truth in truths if isinstance(truth, Detections)] == [None, None]
