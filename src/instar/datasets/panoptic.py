"""CMU's hands: `hand_labels`, `hand_labels_synth` and `hand143_panopticdb`.

As public readers of them agree: in the first two, one JSON file beside each picture, with `hand_pts` (21 × x, y and a
flag that is 1 where they are valid) and `is_left`; in the third, one file with a list `root`, whose entries have
`img_paths` and `joint_self`, which is as `hand_pts`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from instar.case import Case
from instar.datasets.dataset import FAR, PATH, Dataset, DatasetFamily, Distinct, Place, counted, existing, json_of, nfc
from instar.datasets.hands import Floats, array_of, hands_of
from instar.datasets.listing import path_id
from instar.datasets.objects import Left
from instar.image import Crop
from instar.outputs.poses import Poses
from instar.spelling import Parameter

# fmt: off
_PARTS = (
    "hand_labels", "hand_labels_synth", "hand143_panopticdb", "manual_train", "manual_test", "synth1", "synth2",
    "synth3", "synth4",
)
# fmt: on


def _is_panoptic(place: Place) -> bool:
    """A folder that is one of the published ones, or holds one; or a JSON file as the list of hand143_panopticdb is."""
    path = place.path
    if not place.is_folder:
        return place.ending == "json" and re.match(r'\s*\{\s*"root"\s*:\s*\[', place.text) is not None
    named = [path] if path.absolute().name in _PARTS else [path / part for part in _PARTS]
    return any(next(place.glob(depth), None) for place in named for depth in ("*.json", "*/*.json"))


@dataclass(slots=True)
class _Hand:
    id: str
    path: str
    points: Floats
    attributes: dict[str, str]


def _open(name: str, *, path: str, crop: float | None, size: int | None) -> Dataset:
    place = existing(path)
    if size is not None and crop is None:
        raise ValueError(f"{name}: size is that of crops; say how large they are as well, e.g. crop=2.2")
    files = sorted(place.rglob("*.json")) if place.is_dir() else [place]
    if not files:
        raise ValueError(f"{path}: there are no .json files in it")
    root = place if place.is_dir() else place.parent
    left, distinct = Left("hand"), Distinct()
    hands = [hand for file in files for hand in _hands(file, root, crop is not None, left)]
    for hand in hands:
        hand.id = distinct(hand.id)
    if not hands:
        raise ValueError(f"{path}: no hand in it can be read; " + "; ".join(left.notes()))
    notes = left.notes()
    if distinct.repeated:
        notes.append(f"{counted(distinct.repeated, 'hand')} of a picture that has one already; their ids end in #2, …")
    ordered = sorted(hands, key=lambda hand: hand.id)
    return Dataset(name, str(root), partial(_cases, ordered, crop, size), Poses.kind, tuple(notes))


def _hands(file: Path, root: Path, cropped: bool, left: Left) -> Iterator[_Hand]:
    """The hands that a JSON file tells of."""
    here, part = nfc(file.relative_to(root).as_posix()), nfc(file.parent.name)
    try:
        content = json_of(file)
    except ValueError:
        left("whose JSON is damaged", here)
        return
    if isinstance(content, dict) and isinstance(content.get("root"), list):
        for number, entry in enumerate(content["root"]):
            fields = entry if isinstance(entry, dict) else {}
            picture = file.parent / str(fields.get("img_paths", ""))
            points = _valid(fields.get("joint_self"), picture, cropped, left, f"{here} {number}")
            if points is not None:
                yield _Hand(path_id(picture, root), str(picture), points, {"part": part})
    elif isinstance(content, dict) and "hand_pts" in content:
        picture = next(
            (each for each in map(file.with_suffix, (".png", ".jpg")) if each.is_file()), file.with_suffix(".jpg")
        )
        points = _valid(content["hand_pts"], picture, cropped, left, here)
        if points is not None:
            attributes = {"part": part}
            if (left_hand := content.get("is_left")) in (0, 1):
                attributes["hand"] = "left" if left_hand else "right"
            yield _Hand(path_id(picture, root), str(picture), points, attributes)
    else:
        left("whose JSON has neither hand_pts nor root", here)


def _valid(marks: object, picture: Path, cropped: bool, left: Left, place: str) -> Floats | None:
    """(21, 2) in pixels, NaN where a landmark is not valid; None where there is nothing to test, and why is said."""
    landmarks = array_of(marks, (21, 3))
    if landmarks is None:
        left("without 21 × (x, y, flag)", place)
        return None
    landmarks[(landmarks[:, 2] != 1) | ~(np.abs(landmarks) <= FAR).all(1)] = np.nan
    known = landmarks[~np.isnan(landmarks[:, 0]), :2]
    if not len(known):
        left("without any valid landmark", place)
    elif cropped and not np.ptp(known, 0).any():
        left("with one place only, around which nothing can be cropped", place)
    elif not picture.is_file():
        left("whose picture is not there", place)
    else:
        return landmarks[:, :2] + 0.5  # pixels are counted from 0; the centre of the first is 0.5
    return None


def _square(points: Floats, times: float, size: int | None) -> Crop:
    """In whole pixels: so many times the longer side of the box around the landmarks, with the same middle."""
    low, high = np.nanmin(points, 0), np.nanmax(points, 0)
    side = max(1, round(times * float((high - low).max())))
    x0, y0 = (round(float(middle) - side / 2) for middle in (low + high) / 2)
    return Crop(x0, y0, x0 + side, y0 + side, size or side, size or side)


def _cases(hands: list[_Hand], crop: float | None, size: int | None) -> Iterator[Case]:
    for hand in hands:
        part = None if crop is None else _square(hand.points, crop, size)
        points = hand.points if part is None else part.points(hand.points)
        yield Case(hand.id, hand.path, crop=part, truth=hands_of(points), attributes=hand.attributes)


# fmt: off
PANOPTIC = DatasetFamily("panoptic", _open, (
    PATH,
    Parameter("crop", "float", None, low=1, high=100,
              help="a square so many times as large as the hand, around it; if not given, whole pictures"),
    Parameter("size", "int", None, low=1, high=8192, help="the crops' width and height; if not given, as they are"),
), "CMU's hands: hand_labels, hand_labels_synth and hand143_panopticdb, with 21 landmarks", recognises=_is_panoptic)
# fmt: on
