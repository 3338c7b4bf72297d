"""YOLO's folders, Pascal VOC's XML and EgoHands' outlines, from files written to their published descriptions."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from scipy.io import savemat

from instar.case import Case
from instar.datasets import dataset
from instar.image import picture_size, read_image
from instar.outputs.detections import Detections
from tests import missing
from tests.datasets.found import by_id

Write = Callable[..., Path]


def truth(case: Case) -> Detections:
    assert isinstance(case.truth, Detections)
    return case.truth


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


# --- YOLO ------------------------------------------------------------------------------------------


@pytest.fixture
def yolo(tmp_path: Path, picture: Write) -> Path:
    """Three pictures of 16 × 12 in two splits: two objects, an outline, and no label file."""
    picture(tmp_path / "images" / "train" / "b.png")
    picture(tmp_path / "images" / "train" / "a.png")
    picture(tmp_path / "images" / "val" / "Köln 1.png")
    written(tmp_path / "labels" / "train" / "b.txt", "1 0.5 0.5 0.25 0.5\n\n0 0.125 0.25 0.25 0.5\n")
    written(tmp_path / "labels" / "val" / "Köln 1.txt", "0 0.25 0.25 0.75 0.25 0.75 0.75 0.25 0.75\n")
    written(
        tmp_path / "data.yaml",
        "path: ../datasets/mine\ntrain: images/train\nval: images/val # few\nnc: 2\n"
        "names:\n  0: person\n  1: 'traffic light'\n",
    )
    return tmp_path


def test_yolo(yolo: Path) -> None:
    found = dataset(yolo)
    cases = by_id(found)
    assert found.name == f'yolo("{yolo}")'
    assert (found.truth, list(cases)) == (
        "detections",
        ["images/train/a.png", "images/train/b.png", "images/val/Köln 1.png"],
    )
    assert found.notes == ("1 picture without a label file, so without objects: images/train/a.png",)
    assert len(truth(cases["images/train/a.png"])) == 0
    two = truth(cases["images/train/b.png"])
    assert (two.labels, two.ids) == (("traffic light", "person"), ("1", "3"))
    assert two.boxes.tolist() == [[6, 3, 10, 9], [0, 0, 4, 6]]
    assert two.masks is None
    outlined = truth(cases["images/val/Köln 1.png"])
    assert outlined.boxes.tolist() == [[4, 3, 12, 9]]
    assert outlined.masks is not None
    assert np.argwhere(outlined.masks[0])[[0, -1]].tolist() == [[3, 4], [8, 11]]
    assert outlined.masks.sum() == 48
    assert truth(by_id(dataset(f'yolo("{yolo}", masks=false)'))["images/val/Köln 1.png"]).masks is None
    assert Path(str(cases["images/train/a.png"].path)).is_file()
    assert dataset(found.name).name == found.name


def test_yolo_splits(yolo: Path) -> None:
    assert list(by_id(dataset(f'yolo("{yolo}", split=val)'))) == ["images/val/Köln 1.png"]
    train = dataset(f'yolo("{yolo}/data.yaml", split=train)')
    assert list(by_id(train)) == ["images/train/a.png", "images/train/b.png"]
    assert list(by_id(dataset(yolo / "data.yaml"))) == list(by_id(dataset(yolo)))
    written(yolo / "few.txt", "./images/train/b.png\n")
    written(
        yolo / "data.yaml", "names: [person, traffic light]\ntrain: few.txt\nval:\n  - images/val\n  - images/train\n"
    )
    assert list(by_id(dataset(f'yolo("{yolo}", split=train)'))) == ["images/train/b.png"]
    assert len(by_id(dataset(f'yolo("{yolo}", split=val)'))) == 3
    with pytest.raises(ValueError, match="no pictures in split=tets; it takes train, val, all"):
        dataset(f'yolo("{yolo}", split=tets)')


@pytest.mark.parametrize(
    "text",
    [
        "names: ['person', \"traffic light\"]\ntrain: x\n",
        "# ours\ntrain: x\nnames: [person,\n  traffic light]  # two\nnc: 2\n",
        "train: x\nnames:\n- person\n- traffic light\nnc: 2",
        'train: x\nnames:\n    0: "person"\n    1: traffic light\nroboflow:\n  license: CC\n',
        "train: x\nnames: {0: person, 1: 'traffic light'}\n",
        "\ufefftrain: x\r\nnames:\r\n  - person\r\n  - 'traffic light'\r\n",
    ],
)
def test_names_in_yaml(yolo: Path, text: str) -> None:
    (yolo / "data.yaml").write_bytes(text.encode())
    assert truth(by_id(dataset(yolo))["images/train/b.png"]).labels == ("traffic light", "person")


def test_other_places_of_yolo(tmp_path: Path, picture: Write, here: Path) -> None:
    """Roboflow's folders; darknet's, with labels beside the pictures; names in a text file, or nowhere."""
    picture(tmp_path / "r" / "valid" / "images" / "a.png")
    written(tmp_path / "r" / "valid" / "labels" / "a.txt", "1 0.5 0.5 1 1")
    written(tmp_path / "r" / "data.yaml", "train: ../train/images\nval: ../valid/images\nnames: ['x', 'y']\n")
    found = dataset('yolo("r", split=val)')
    assert truth(by_id(found)["valid/images/a.png"]).labels == ("y",)
    picture(tmp_path / "d" / "a.png")
    written(tmp_path / "d" / "a.txt", "1 0.5 0.5 1 1")
    beside = dataset('yolo("d")')
    assert truth(by_id(beside)["a.png"]).labels == ("1",)
    assert beside.notes == (
        'no names of its classes were found, so their numbers stand for them; say names="classes.txt"',
    )
    written(tmp_path / "d" / "classes.txt", "x\ny\n")
    assert truth(by_id(dataset('yolo("d")'))["a.png"]).labels == ("y",)
    written(tmp_path / "other.txt", "u\nv")
    assert truth(by_id(dataset('yolo("d", names="other.txt")'))["a.png"]).labels == ("v",)
    assert dataset("d").name == "folder(d)"  # not taken for YOLO's unless somebody says so


def test_yolo_poses_are_boxes(yolo: Path) -> None:
    """Keypoints behind the box would make an odd number, as an outline does."""
    written(yolo / "labels" / "train" / "b.txt", "1 0.5 0.5 0.25 0.5 0.1 0.1 0.9 0.9\n")
    written(yolo / "data.yaml", "train: images/train\nkpt_shape: [2, 2]\nnames: [a, b]\n")
    assert truth(by_id(dataset(yolo))["images/train/b.png"]).boxes.tolist() == [[6, 3, 10, 9]]


def test_what_is_odd_in_labels_is_said(yolo: Path) -> None:
    written(
        yolo / "labels" / "train" / "b.txt",
        "\n".join(
            [
                "0 0.5 0.5 0 0.5",
                "0 0.5 0.5 -0.1 0.5",
                "0 1.5 0.5 0.2 0.2",
                "0 120 80 40 40",
                "2 0.5 0.5 0.1 0.1",
                "person 0.5 0.5 0.1 0.1",
                "0 0.5 0.5 0.1",
                "0 0.5 0.5 0.1 0.1 0.9",
                "0 0.5 nan 0.1 0.1",
                "-1 0.5 0.5 0.1 0.1",
                "0 0.2 0.2 0.4 0.4 0.3 0.3",
                "0 0.2 0.2 0.2 0.4 0.2 0.3",
                "0 0 0 0.5 0.5",
            ]
        ),
    )
    (yolo / "labels" / "val" / "Köln 1.txt").write_bytes(b"\xff\xfe0 0")
    written(yolo / "labels" / "val" / "nobody.txt", "0 0.5 0.5 1 1")
    found = dataset(yolo)
    cases = by_id(found)
    kept = truth(cases["images/train/b.png"])
    assert kept.ids == ("11", "13")
    assert kept.boxes[1].tolist() == [0, 0, 4, 3]  # cut at the edge
    assert cases["images/val/Köln 1.png"].truth is None
    file = "labels/train/b.txt line"
    assert found.notes == (
        "1 picture without a label file, so without objects: images/train/a.png",
        "1 label file that cannot be read, so no truth: Köln 1.txt",
        "1 label file without a picture: labels/val/nobody.txt",
        f"3 objects left out, whose box has no area: {file} 1, {file} 2, {file} 12",
        f"2 objects left out, outside of the picture (numbers are shares of its size): {file} 3, {file} 4",
        f"2 objects left out, of classes that are not among the 2 names: {file} 5, {file} 10",
        "4 objects left out, neither class, x, y, width, height nor class and the corners of an outline: "
        f"{file} 6, {file} 7, {file} 8 and 1 more",
    )


def test_yolo_that_is_something_else(tmp_path: Path, picture: Write, yolo: Path) -> None:
    picture(tmp_path / "p" / "images" / "a.png")
    with pytest.raises(ValueError, match=r"none of its 1 picture has a label file; that of images/a.png should"):
        dataset(f'yolo("{tmp_path}/p")')
    with pytest.raises(FileNotFoundError, match=r"no file of names 'nowhere\.txt'"):
        dataset(f'yolo("{yolo}", names="nowhere.txt")')
    written(tmp_path / "x.yaml", "a: 1")
    with pytest.raises(ValueError, match=r"is its data\.yaml, which has names; this has none"):
        dataset(tmp_path / "x.yaml")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        dataset('yolo("nowhere")')


def test_unreadable_picture_is_a_case_without_truth(yolo: Path) -> None:
    (yolo / "images" / "train" / "b.png").write_bytes(b"no picture")
    assert by_id(dataset(yolo))["images/train/b.png"].truth is None


def test_names_in_either_way_of_writing(tmp_path: Path, picture: Write) -> None:
    apart, together = unicodedata.normalize("NFD", "é"), unicodedata.normalize("NFC", "é")
    picture(tmp_path / "images" / f"{apart}.png")
    written(tmp_path / "labels" / f"{together}.txt", "0 0.5 0.5 1 1")
    found = dataset(f'yolo("{tmp_path}")')
    assert len(truth(by_id(found)[f"images/{together}.png"])) == 1
    picture(tmp_path / "v" / "JPEGImages" / f"{apart}.png")
    written(tmp_path / "v" / "Annotations" / f"{together}.xml", xml(("é", 1, 1, 2, 2)))
    assert truth(by_id(dataset(tmp_path / "v"))[f"{together}.png"]).labels == ("é",)


def test_sizes_are_those_of_the_upright_picture(tmp_path: Path, picture: Write) -> None:
    files = [picture(tmp_path / "a.png", (31, 17))]
    pixels = np.zeros((17, 31, 3), np.uint8)
    for ending in ("jpg", "bmp", "webp", "tif"):
        ok, data = cv2.imencode(f".{ending}", pixels)
        assert ok
        files.append(tmp_path / f"a.{ending}")
        files[-1].write_bytes(data.tobytes())
    jpeg = files[1].read_bytes()
    exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"
    turned = tmp_path / "turned.jpg"
    turned.write_bytes(jpeg[:2] + b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif + jpeg[2:])
    for file in (*files, turned):
        assert picture_size(str(file)) == read_image(file).size
    assert picture_size(str(turned)) == (17, 31)
    assert picture_size(str(tmp_path / "nowhere.png")) is None


# --- Pascal VOC ------------------------------------------------------------------------------------


def xml(
    *objects: tuple[Any, ...], size: str = "<size><width>16</width><height>12</height></size>", more: str = ""
) -> str:
    parts = "".join(
        f"<object><name>{name}</name>{more}<bndbox><xmin>{x0}</xmin><ymin>{y0}</ymin><xmax>{x1}</xmax>"
        f"<ymax>{y1}</ymax></bndbox></object>"
        for name, x0, y0, x1, y1 in objects
    )
    return f"<annotation><folder>VOC</folder><filename>x.jpg</filename>{size}{parts}</annotation>"


@pytest.fixture
def voc(tmp_path: Path, picture: Write) -> Path:
    for name in ("2007_a", "2007_b", "2007_c"):
        picture(tmp_path / "JPEGImages" / f"{name}.png")
    written(tmp_path / "Annotations" / "2007_a.xml", xml(("dog", 1, 1, 16, 12), ("tv &amp; co", 3, 4, 3, 4)))
    written(tmp_path / "Annotations" / "2007_b.xml", xml(("cat", 2.5, 3, 9, 9), more="<difficult>1</difficult>"))
    written(tmp_path / "ImageSets" / "Main" / "val.txt", "2007_b\n2007_d\n")
    written(tmp_path / "ImageSets" / "Main" / "dog_val.txt", "2007_a  1\n2007_b -1\n")
    return tmp_path


def test_voc(voc: Path) -> None:
    found = dataset(voc)
    cases = by_id(found)
    assert (found.name, found.truth, list(cases)) == (
        f'voc("{voc}")',
        "detections",
        ["2007_a.png", "2007_b.png", "2007_c.png"],
    )
    both = truth(cases["2007_a.png"])
    assert (both.labels, both.ids) == (("dog", "tv & co"), ("1", "2"))
    # the whole picture, and one pixel: edges lie around the pixels that are named
    assert both.boxes.tolist() == [[0, 0, 16, 12], [2, 3, 3, 4]]
    assert len(truth(cases["2007_b.png"])) == 0
    assert cases["2007_b.png"].attributes == {"difficult": 1}
    assert found.notes == (
        "1 picture without an XML file, so without objects: 2007_c.png",
        "1 difficult object left out of the truth; attribute difficult counts them",
    )
    hard = truth(by_id(dataset(f'voc("{voc}", difficult=true)'))["2007_b.png"])
    assert hard.boxes.tolist() == [[1.5, 2, 9, 9]]
    assert list(by_id(dataset(f'voc("{voc}/Annotations")'))) == list(cases)


def test_voc_splits(voc: Path) -> None:
    found = dataset(f'voc("{voc}", split=val)')
    assert list(by_id(found)) == ["2007_b.png"]
    assert found.notes[:2] == ("1 picture of split=val not found: 2007_d", "split=val: 1 of 3 pictures")
    assert list(by_id(dataset(f'voc("{voc}", split=dog_val)'))) == ["2007_a.png", "2007_b.png"]
    with pytest.raises(ValueError, match=r"no ImageSets/…/vall.txt for split=vall; did you mean 'val'\?; there are"):
        dataset(f'voc("{voc}", split=vall)')


def test_imagenet(tmp_path: Path, picture: Write) -> None:
    """Folders inside folders, names without an ending, lists with numbers, classes of WordNet."""
    picture(tmp_path / "Data" / "DET" / "val" / "ILSVRC2012_val_00000001.png")
    picture(tmp_path / "Data" / "DET" / "train" / "n01" / "n01_7.png")
    written(tmp_path / "Annotations" / "DET" / "val" / "ILSVRC2012_val_00000001.xml", xml(("n02672831", 0, 2, 5, 6)))
    written(tmp_path / "Annotations" / "DET" / "train" / "n01" / "n01_7.xml", xml(("n01", 1, 2, 5, 6)))
    written(tmp_path / "ImageSets" / "DET" / "val.txt", "ILSVRC2012_val_00000001 1\n")
    found = dataset(f'voc("{tmp_path}", split=val)')
    [case] = found.cases()
    assert case.id == "DET/val/ILSVRC2012_val_00000001.png"
    assert truth(case).labels == ("n02672831",)
    assert truth(case).boxes.tolist() == [[0, 1, 5, 6]]
    assert found.notes[-1].startswith("1 box begin at 0, though the first pixel is 1")
    assert len(list(dataset(tmp_path).cases())) == 2


def test_xml_beside_the_pictures(tmp_path: Path, picture: Write) -> None:
    picture(tmp_path / "a.png")
    written(tmp_path / "a.xml", xml(("x", 1, 1, 2, 2), size=""))
    assert truth(by_id(dataset(f'voc("{tmp_path}")'))["a.png"]).boxes.tolist() == [[0, 0, 2, 2]]
    elsewhere = tmp_path / "elsewhere"
    written(elsewhere / "Annotations" / "a.xml", xml(("x", 1, 1, 2, 2)))
    assert list(by_id(dataset(f'voc("{elsewhere}", images="{tmp_path}")'))) == ["a.png"]


def test_what_is_odd_in_xml_is_said(voc: Path) -> None:
    written(
        voc / "Annotations" / "2007_a.xml",
        xml(
            ("dog", 5, 1, 4, 12),
            ("dog", 20, 1, 25, 12),
            ("", 1, 1, 2, 2),
            ("dog", "one", 1, 2, 2),
            ("dog", 10, 5, 99, 99),
            ("dog", "inf", 1, 2, 2),
        ),
    )
    written(voc / "Annotations" / "2007_b.xml", "<annotation><object>")
    written(voc / "Annotations" / "2007_z.xml", xml())
    found = dataset(voc)
    cases = by_id(found)
    assert truth(cases["2007_a.png"]).boxes.tolist() == [[9, 4, 16, 12]]
    assert cases["2007_b.png"].truth is None
    at = "2007_a.xml object"
    assert found.notes[0] == "1 XML file without a picture: 2007_z.xml"
    assert found.notes[2].startswith("1 XML file that cannot be read, so no truth: 2007_b.xml (")
    assert set(found.notes[3:]) == {
        f"1 object left out, whose box has no area: {at} 1",
        f"1 object left out, outside of the picture: {at} 2",
        f"1 object left out, without a name: {at} 3",
        f"2 objects left out, whose bndbox is not xmin, ymin, xmax, ymax: {at} 4, {at} 6",
    }


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_refused(voc: Path, encoding: str) -> None:
    (voc / "secret").write_text("secret")
    text = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE a [<!ENTITY x SYSTEM "file://{voc}/secret">]>' + xml(
        ("&x;", 1, 1, 2, 2)
    )
    (voc / "Annotations" / "2007_b.xml").write_bytes(text.encode(encoding))
    found = dataset(voc)
    assert by_id(found)["2007_b.png"].truth is None
    assert "2007_b.xml (it declares a document type, which is refused)" in found.notes[1]


def test_voc_that_is_something_else(tmp_path: Path, picture: Write) -> None:
    picture(tmp_path / "JPEGImages" / "a.png")
    with pytest.raises(ValueError, match=r"no \.xml files in"):
        dataset(f'voc("{tmp_path}")')
    written(tmp_path / "Annotations" / "b.xml", xml())
    with pytest.raises(ValueError, match=r"none of the 1 picture in .*JPEGImages has an XML file.*images="):
        dataset(tmp_path)
    with pytest.raises(FileNotFoundError, match="no folder 'nowhere'"):
        dataset('voc("nowhere")')
    with pytest.raises(FileNotFoundError, match="no folder 'nowhere'"):
        dataset(f'voc("{tmp_path}", images="nowhere")')


# --- EgoHands --------------------------------------------------------------------------------------

SQUARE = np.array([[100.5, 200.5], [200.5, 200.5], [200.5, 300.5], [100.5, 300.5]])
NONE = np.zeros((0, 0))
NAMES = ("myleft", "myright", "yourleft", "yourright")


def egohands(folder: Path, picture: Write, videos: dict[str, list[tuple[int, dict[str, Any]]]]) -> Path:
    """As published: a struct array `video`, each with a struct array `labelled_frames`; hands that are not there are
    empty."""
    held = np.zeros(
        (1, len(videos)),
        [
            (name, object)
            for name in (
                "video_id",
                "partner_video_id",
                "ego_viewer_id",
                "partner_id",
                "location_id",
                "activity_id",
                "labelled_frames",
            )
        ],
    )
    for number, (video, frames) in enumerate(videos.items()):
        labelled = np.zeros((1, len(frames)), [(name, object) for name in ("frame_num", *NAMES)])
        for i, (frame, hands) in enumerate(frames):
            labelled[0, i] = (float(frame), *(hands.get(name, NONE) for name in NAMES))
            picture(folder / "_LABELLED_SAMPLES" / video / f"frame_{frame:04d}.jpg", (1280, 720))
        activity, location, viewer, partner = video.split("_")
        held[0, number] = (video, video, viewer, partner, location, activity, labelled)
    savemat(folder / "metadata.mat", {"video": held})
    return folder


def test_egohands(tmp_path: Path, picture: Write) -> None:
    egohands(
        tmp_path,
        picture,
        {
            "CARDS_OFFICE_B_S": [(11, {"myleft": SQUARE, "yourright": SQUARE + 50}), (2, {})],
            "CHESS_COURTYARD_H_T": [(1200, {"myright": SQUARE})],
        },
    )
    found = dataset(tmp_path)
    cases = by_id(found)
    assert found.name == f'egohands("{tmp_path}")'
    assert list(cases) == [
        "CARDS_OFFICE_B_S/frame_0002.jpg",
        "CARDS_OFFICE_B_S/frame_0011.jpg",
        "CHESS_COURTYARD_H_T/frame_1200.jpg",
    ]
    assert len(truth(cases["CARDS_OFFICE_B_S/frame_0002.jpg"])) == 0
    two = truth(cases["CARDS_OFFICE_B_S/frame_0011.jpg"])
    assert (two.labels, two.ids) == (("hand", "hand"), ("myleft", "yourright"))
    assert two.boxes.tolist() == [[100, 200, 200, 300], [150, 250, 250, 350]]  # MATLAB's pixel 1 has its centre at 0.5
    assert two.masks is not None
    assert two.masks.shape == (2, 720, 1280)
    assert np.argwhere(two.masks[0])[[0, -1]].tolist() == [[200, 100], [299, 199]]
    assert cases["CHESS_COURTYARD_H_T/frame_1200.jpg"].attributes == {
        "video": "CHESS_COURTYARD_H_T",
        "activity": "CHESS",
        "location": "COURTYARD",
        "viewer": "H",
        "partner": "T",
    }
    four = by_id(dataset(f'egohands("{tmp_path}/metadata.mat", classes=four, masks=false)'))
    assert truth(four["CARDS_OFFICE_B_S/frame_0011.jpg"]).labels == ("myleft", "yourright")
    assert truth(four["CARDS_OFFICE_B_S/frame_0011.jpg"]).masks is None
    assert dataset(tmp_path / "metadata.mat").truth == "detections"


def test_odd_outlines_are_said(tmp_path: Path, picture: Write) -> None:
    egohands(
        tmp_path,
        picture,
        {
            "CARDS_OFFICE_B_S": [
                (
                    1,
                    {
                        "myleft": SQUARE[:1],
                        "myright": SQUARE[:2],
                        "yourleft": SQUARE - 900,
                        "yourright": SQUARE * np.nan,
                    },
                ),
                (2, {"myleft": np.array([1.0, 2, 3]), "myright": SQUARE * [1, 0]}),
                (3, {"myleft": SQUARE - [150, 0]}),
            ]
        },
    )
    (tmp_path / "_LABELLED_SAMPLES" / "CARDS_OFFICE_B_S" / "frame_0002.jpg").unlink()
    found = dataset(tmp_path)
    cases = by_id(found)
    assert [len(truth(case)) for case in cases.values()] == [0, 0, 1]
    assert truth(cases["CARDS_OFFICE_B_S/frame_0003.jpg"]).boxes.tolist() == [[0, 200, 50, 300]]
    first, second = (f"CARDS_OFFICE_B_S/frame_000{i}.jpg" for i in (1, 2))
    assert found.notes == (
        f"1 frame not found: {second}",
        "3 objects left out, with fewer than three corners, or corners that are no numbers: "
        f"{first} myleft, {first} myright, {first} yourright",
        f"1 object left out, outside of the picture: {first} yourleft",
        f"1 object left out, whose corners are not (x, y): {second} myleft",
        f"1 object left out, whose box has no area: {second} myright",
    )


def test_egohands_that_is_something_else(tmp_path: Path, picture: Write) -> None:
    egohands(tmp_path, picture, {"CARDS_OFFICE_B_S": [(1, {})]})
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"none of its frames \(e.g. CARDS_OFFICE_B_S/frame_0001.jpg\) is in"):
        dataset(f'egohands("{tmp_path}", images="{tmp_path}/empty")')
    with pytest.raises(FileNotFoundError, match="no folder of frames"):
        dataset(f'egohands("{tmp_path}", images="{tmp_path}/nowhere")')
    savemat(tmp_path / "metadata.mat", {"video": np.zeros(2, [("video_id", object)])})
    with pytest.raises(ValueError, match="its video has no field 'labelled_frames'; there are video_id"):
        dataset(tmp_path)


# --- real photos, written anew ---------------------------------------------------------------------


def test_the_same_truth_in_every_format(tmp_path: Path) -> None:
    """COCO's boxes and outlines, written as YOLO's and as Pascal's, come back as they were."""
    folder = missing.shared("data/coco-mini")
    source = {case.id: case for case in dataset(folder / "annotations" / "instances_train2017.json").cases()}
    names = sorted({label for case in source.values() for label in truth(case).labels})
    written(tmp_path / "y" / "classes.txt", "\n".join(names))
    (tmp_path / "y" / "images").symlink_to(folder / "images")
    (tmp_path / "v" / "Annotations").mkdir(parents=True)
    (tmp_path / "v" / "JPEGImages").symlink_to(folder / "images")
    for name, case in source.items():
        width, height = read_image(str(case.path)).size
        lines = []
        for (x0, y0, x1, y1), label in zip(truth(case).boxes, truth(case).labels, strict=True):
            middle = (x0 + x1) / 2 / width, (y0 + y1) / 2 / height, (x1 - x0) / width, (y1 - y0) / height
            lines.append(f"{names.index(label)} {' '.join(f'{value:.6f}' for value in middle)}")
        written(tmp_path / "y" / "labels" / f"{Path(name).stem}.txt", "\n".join(lines))
        rows = [
            (label, *(box + np.array([1, 1, 0, 0])))
            for box, label in zip(truth(case).boxes, truth(case).labels, strict=True)
        ]
        written(
            tmp_path / "v" / "Annotations" / f"{Path(name).stem}.xml",
            xml(*rows, size=f"<size><width>{width}</width><height>{height}</height></size>"),
        )
    for found, prefix in ((dataset(tmp_path / "y"), "images/"), (dataset(tmp_path / "v"), "")):
        cases = by_id(found)
        assert len(cases) == len(source)
        for name, case in source.items():
            again = truth(cases[prefix + name])
            assert again.labels == truth(case).labels
            assert again.boxes == pytest.approx(truth(case).boxes, abs=0.01)
