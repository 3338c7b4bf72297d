"""Making pools: which objects are whole, and how they are cut out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from instar.case import Case
from instar.datasets import Dataset, dataset
from instar.image import Image
from instar.outputs.detections import Detections
from instar.pool import LISTING, read_pool
from instar.systems import System
from instar.tasks.meta_ic.pool_maker import PoolProgress, make_pool
from tests.missing import shared

WIDTH, HEIGHT = 320, 240
Mask = npt.NDArray[np.bool_]


def photo() -> npt.NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)


def disc(x: int, y: int, radius: int = 45) -> Mask:
    return cv2.circle(np.zeros((HEIGHT, WIDTH), np.uint8), (x, y), radius, 1, -1).astype(bool)


def box_of(mask: Mask) -> list[int]:
    x, y, width, height = cv2.boundingRect(mask.astype(np.uint8))
    return [x, y, x + width, y + height]


def case(*masks: tuple[str, Mask], name: str = "a.jpg", **attributes: Any) -> Case:
    truth = Detections.from_xyxy(
        [box_of(mask) for _, mask in masks],
        [label for label, _ in masks],
        ids=[str(5 + number) for number in range(len(masks))],
        masks=np.stack([mask for _, mask in masks]) if masks else None,
    )
    return Case(name, input=Image(photo()), truth=truth, attributes=attributes)


def of(*cases: Case, truth: str | None = "detections") -> Dataset:
    return Dataset("toy", "/", lambda: iter(cases), truth)


def test_a_whole_object_is_cut_out_softly(tmp_path: Path) -> None:
    mask = disc(120, 100)
    made = make_pool(of(case(("traffic light", mask), licence="CC BY 2.0")), tmp_path / "pool")
    [item] = made.pool.items
    assert (item.label, item.licence, item.source) == ("traffic light", "CC BY 2.0", "a.jpg#5")
    x0, y0, x1, y1 = box_of(mask)
    assert item.size == (x1 - x0, y1 - y0)
    inside, alpha = mask[y0:y1, x0:x1], item.pixels[..., 3]
    assert np.array_equal(item.pixels[inside][:, :3], photo()[y0:y1, x0:x1][inside])
    assert (alpha[~inside] == 0).all()
    core = cv2.erode(inside.astype(np.uint8), np.ones((3, 3), np.uint8), borderValue=0).astype(bool)
    assert (alpha[core] == 255).all()
    edge = alpha[inside & ~core]
    assert ((edge > 70) & (edge < 255)).all()
    line = json.loads((tmp_path / "pool" / LISTING).read_text())
    assert line["area"] == int(mask.sum())
    assert (made.kept, made.licences, made.rejected) == ({"traffic light": 1}, {"CC BY 2.0": 1}, {})


def bitten(other: Mask) -> Mask:
    return disc(100, 120, 60) & ~other


def faulty(name: str) -> list[tuple[str, Mask]]:
    """Objects of which the first is not whole, each in another way."""
    mask = disc(120, 100)
    if name == "too small":
        return [("cup", disc(120, 100, 20))]
    if name == "cut off by the border":
        return [("cup", disc(30, 100))]
    if name == "in pieces":
        return [("cup", mask | disc(250, 150, 30))]
    if name == "full of holes":
        return [("cup", mask & ~disc(120, 100, 25))]
    if name == "boxes, not masks":
        full = np.zeros_like(mask)
        full[50:150, 60:160] = True
        return [("cup", full)]
    if name == "ragged":
        cross = np.zeros_like(mask)
        cross[110:130, 20:300] = cross[20:220, 150:170] = True
        return [("cup", cross)]
    return [("cup", bitten(disc(165, 120, 40))), ("dog", disc(165, 120, 40))]


@pytest.mark.parametrize(
    "reason",
    [
        "too small",
        "cut off by the border",
        "in pieces",
        "full of holes",
        "boxes, not masks",
        "ragged",
        "hidden in part",
    ],
)
def test_what_is_not_whole_is_rejected_with_the_reason(tmp_path: Path, reason: str) -> None:
    made = make_pool(of(case(*faulty(reason)), case(("cow", disc(150, 120)), name="b.jpg")), tmp_path / "pool")
    assert made.rejected == {reason: 1}
    assert "cup" not in made.kept
    assert made.kept["cow"] == 1
    assert set(made.kept) == {"cow"} | {label for label, _ in faulty(reason)[1:]}  # what is in front is whole


def test_crumbs_are_left_out(tmp_path: Path) -> None:
    mask = disc(120, 100)
    made = make_pool(of(case(("cup", mask | disc(250, 150, 6)))), tmp_path / "pool")
    assert made.pool.items[0].size == (box_of(mask)[2] - box_of(mask)[0], box_of(mask)[3] - box_of(mask)[1])


def test_what_stands_in_front_of_something_larger_is_whole(tmp_path: Path) -> None:
    """A person before a bus: the bus lacks the person, and reaches as far down."""
    person = cv2.ellipse(np.zeros((HEIGHT, WIDTH), np.uint8), (160, 130), (35, 70), 0, 0, 360, 1, -1).astype(bool)
    bus = np.zeros_like(person)
    bus[40:220, 30:290] = True
    bus[40:60, 30:60] = False
    made = make_pool(of(case(("person", person), ("bus", bus & ~person))), tmp_path / "pool")
    assert made.kept == {"person": 1}
    assert sum(made.rejected.values()) == 1


def test_behind_a_table(tmp_path: Path) -> None:
    """A straight cut takes no bite: the lower one is in front."""
    person, table = disc(160, 110, 50), np.zeros((HEIGHT, WIDTH), bool)
    person[130:] = False
    table[130:230, 60:260] = True
    table[215:230, 100:220] = False
    made = make_pool(of(case(("person", person), ("table", table))), tmp_path / "pool")
    assert made.kept == {"table": 1}
    assert made.rejected == {"hidden in part": 1}


def test_so_many_of_a_class_and_only_some_classes(tmp_path: Path) -> None:
    cases = [case(("dog", disc(80, 100)), ("cat", disc(230, 120)), name=f"{n}.jpg") for n in range(4)]
    seen: list[PoolProgress] = []
    made = make_pool(of(*cases), tmp_path / "a", most=2, on_progress=seen.append)
    assert made.kept == {"cat": 2, "dog": 2}
    assert made.rejected == {"more than enough of their class": 4}
    assert [(one.cases, one.kept) for one in seen] == [(1, 2), (2, 4), (3, 4), (4, 4)]
    assert make_pool(of(*cases), tmp_path / "b", labels=["cat"]).kept == {"cat": 4}
    assert make_pool(of(*cases), tmp_path / "c", limit=1).kept == {"cat": 1, "dog": 1}


def test_a_label_that_is_a_path_stays_inside(tmp_path: Path) -> None:
    made = make_pool(of(case(("../../evil", disc(120, 100)))), tmp_path / "pool")
    assert made.pool.labels == ("../../evil",)
    assert [path.name for path in tmp_path.iterdir()] == ["pool"]


def segmenter(kind: str = "detections", fault: Exception | None = None) -> System:
    def predict(inputs: Sequence[Image], seeds: Sequence[int]) -> list[Any]:
        if fault is not None:
            raise fault
        masks = np.stack([disc(120, 100), disc(230, 150)])
        return [
            Detections.from_xyxy([box_of(mask) for mask in masks], ["dog", "cat"], [0.9, 0.3], masks=masks)
            for _ in inputs
        ]

    return System("finder", kind, predict, "0")


def test_a_segmenter_cuts_out_what_it_is_sure_of(tmp_path: Path) -> None:
    plain = Case("deep/a.png", input=Image(photo()))
    made = make_pool(of(plain, truth=None), tmp_path / "pool", segmenter=segmenter())
    assert made.kept == {"dog": 1}
    assert made.pool.items[0].source == "deep/a.png#0"


def test_a_segmenter_that_raises_costs_its_cases(tmp_path: Path) -> None:
    cases = [case(("dog", disc(120, 100)))]
    with pytest.raises(ValueError, match=r"no whole object was found in toy \(a\.jpg: RuntimeError: out of memory\)"):
        make_pool(of(*cases), tmp_path / "pool", segmenter=segmenter(fault=RuntimeError("out of memory")))
    missing = Case("gone.jpg", path=str(tmp_path / "gone.jpg"))
    made = make_pool(of(missing, *cases), tmp_path / "pool")  # the folder is still empty
    assert list(made.failed) == ["gone.jpg"]
    assert made.kept == {"dog": 1}


def test_who_can_make_none_says_why(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").touch()
    with pytest.raises(FileExistsError, match="new or empty"):
        make_pool(of(case()), tmp_path / "full")
    with pytest.raises(ValueError, match=r"has poses ground truth.*give a segmenter"):
        make_pool(of(case(), truth="poses"), tmp_path / "pool")
    with pytest.raises(ValueError, match="finder answers with caption"):
        make_pool(of(case()), tmp_path / "pool", segmenter=segmenter("caption"))
    boxes = Case("a.jpg", input=Image(photo()), truth=Detections.from_xyxy([[9, 9, 99, 99]], ["dog"]))
    with pytest.raises(ValueError, match=r"no whole object .*1 without a mask"):
        make_pool(of(boxes), tmp_path / "pool")


def test_cocos_licences_and_crowds_go_along(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    cv2.imwrite(str(tmp_path / "images" / "a.png"), photo())
    outline = [
        point
        for angle in np.linspace(0, 6.2, 40)
        for point in (120 + 50 * float(np.cos(angle)), 100 + 50 * float(np.sin(angle)))
    ]
    about = {"image_id": 1, "category_id": 3, "bbox": [70, 50, 100, 100]}
    (tmp_path / "instances.json").write_text(
        json.dumps(
            {
                "images": [{"id": 1, "file_name": "a.png", "width": WIDTH, "height": HEIGHT, "license": 4}],
                "licenses": [
                    {"id": 4, "name": "Attribution License", "url": "http://licences.example/by/2.0/"},
                    "rubbish",
                ],
                "categories": [{"id": 3, "name": "traffic light"}],
                "annotations": [{**about, "id": 11, "segmentation": [outline]}, {**about, "id": 12, "iscrowd": 1}],
            }
        )
    )
    made = make_pool(dataset(str(tmp_path / "instances.json")), tmp_path / "pool")
    [item] = made.pool.items
    assert item.licence == "Attribution License http://licences.example/by/2.0/"
    assert item.source == "a.png#11"
    assert made.rejected == {"crowds": 1}


def test_real_photographs(tmp_path: Path) -> None:
    annotations = shared("data/coco-mini") / "annotations" / "instances_train2017.json"
    made = make_pool(dataset(str(annotations)), tmp_path / "pool", limit=20)
    again = read_pool(tmp_path / "pool")
    assert again.fingerprint == made.pool.fingerprint
    assert len(again) >= 15
    assert [item.size for item in again.items] == [item.pixels.shape[1::-1] for item in again.items]
    assert all("creativecommons.org" in item.licence or "flickr" in item.licence for item in again.items)
