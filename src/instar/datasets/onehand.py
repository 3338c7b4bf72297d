"""OneHand10K: `label_joint.txt` beside `source/`, in `Train/` and `Test/`.

As public readers of it agree: a line for each picture, with commas between its name, width, height, how many hands it
has, and x, y of 21 landmarks in whole pixels; −1 for one that cannot be seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from instar.case import Case
from instar.datasets.dataset import (
    PATH,
    Dataset,
    DatasetFamily,
    Distinct,
    Place,
    counted,
    existing,
    shortened,
    utf8_text,
)
from instar.datasets.hands import Floats, array_of, hands_of
from instar.datasets.listing import path_id
from instar.datasets.objects import Left
from instar.outputs.poses import Poses
from instar.spelling import Parameter

_FILE = "label_joint.txt"
_LINE = re.compile(r"[^,\n]+\.\w{3,4}(,\d+){3}(,-?\d+){42}")


def _is_onehand(place: Place) -> bool:
    if place.is_folder:
        return bool(_files(place.path))
    return place.ending == "txt" and _LINE.match(place.text) is not None


def _files(folder: Path) -> list[Path]:
    return [file for part in ("", "Train", "Test") if (file := folder / part / _FILE).is_file()]


def _open(name: str, *, path: str, split: str) -> Dataset:
    place = existing(path)
    files = _files(place) if place.is_dir() else [place]
    if split != "all":
        files = [file for file in files if file.parent.name.lower() == split]
    if not files:
        wanted = _FILE if split == "all" else f"{split.capitalize()}/{_FILE}"
        raise FileNotFoundError(f"{path}: there is no {wanted} in it")
    root = place if place.is_dir() else place.parent
    distinct, left, gone = Distinct(), Left("line"), list[str]()
    pictures: dict[str, tuple[Path, Floats]] = {}
    for file in files:
        folder = source if (source := file.parent / "source").is_dir() else file.parent
        for each, points in _read(file, left):
            picture = folder / each
            if picture.is_file():
                pictures[distinct(path_id(picture, root))] = picture, points
            else:
                gone.append(path_id(picture, root))
    notes = left.notes()
    if gone:
        notes.append(f"{counted(len(gone), 'picture')} not there, and left out: {shortened(gone)}")
    if not pictures:
        raise ValueError(f"{path}: it has no picture with landmarks; " + ("; ".join(notes) or "its labels are empty"))
    if distinct.repeated:
        notes.append(f"{counted(distinct.repeated, 'line')} of a picture that has one already; their ids end in #2, …")
    return Dataset(name, str(root), partial(_cases, pictures), Poses.kind, tuple(notes))


def _read(file: Path, left: Left) -> list[tuple[str, Floats]]:
    """By picture: (hands, 21, 2) in pixels, NaN where a landmark cannot be seen."""
    hands = []
    for number, line in enumerate(utf8_text(file, "labels are").splitlines(), 1):
        picture, *words = (word.strip() for word in line.strip().rstrip(",").split(","))
        if not picture and not words:
            continue
        count = len(words) - 3
        points = array_of(words[3:], (count,)) if count > 0 and count % 42 == 0 else None
        if points is None or not picture:
            left("which are not name, width, height, hands and 42 numbers a hand", f"{file.parent.name} {number}")
            continue
        points = points.reshape(-1, 21, 2)
        points[~(points >= 0).all(2) | ~np.isfinite(points).all(2)] = np.nan
        hands.append((picture, points + 0.5))  # numbers of pixels from 0; the centre of the first is 0.5
    return hands


def _cases(pictures: dict[str, tuple[Path, Floats]]) -> Iterator[Case]:
    for each in sorted(pictures):
        path, points = pictures[each]
        yield Case(each, str(path), truth=hands_of(points))


# fmt: off
ONEHAND10K = DatasetFamily("onehand10k", _open, (
    PATH,
    Parameter("split", "choice", "all", choices=("all", "train", "test"), help="which pictures; all that are there"),
), "OneHand10K's label_joint.txt, with 21 landmarks of the hand", recognises=_is_onehand)
# fmt: on
