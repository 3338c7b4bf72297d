"""FreiHAND: `training_xyz.json` and `training_K.json` beside `training/rgb/`, and the same of `evaluation`.

As its authors describe it: lists of as many entries as there are different samples, xyz 21 × 3 in metres as the camera
sees them, K the camera's 3 × 3 matrix. Picture n shows sample n modulo their number; the training pictures come in four
versions one after another: before the green screen (gs), and on another background with three ways of making
the colours fit (hom, sample, auto).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from instar.case import Case
from instar.datasets.dataset import PATH, Dataset, DatasetFamily, counted, existing, json_of, shortened
from instar.datasets.hands import Floats, array_of, hands_of
from instar.outputs.poses import Poses
from instar.spelling import Parameter

_SPLITS = ("training", "evaluation")
_VERSIONS = {"training": ("gs", "hom", "sample", "auto"), "evaluation": ("gs",)}


def _is_freihand(path: Path) -> bool:
    return any((path / f"{split}_K.json").is_file() and (path / split / "rgb").is_dir() for split in _SPLITS)


@dataclass(slots=True)
class _Picture:
    id: str
    path: str
    attributes: dict[str, str]
    points: Floats | None
    """(21, 2) in pixels; None where nobody says."""


def _open(name: str, *, path: str, split: str, versions: str) -> Dataset:
    root = existing(path, "folder", Path.is_dir)
    notes: list[str] = []
    pictures: list[_Picture] = []
    splits = [each for each in _SPLITS if split in (each, "all") and (root / each / "rgb").is_dir()]
    if not splits:
        wanted = " or ".join(f"{each}/rgb" for each in _SPLITS if split in (each, "all"))
        raise FileNotFoundError(f"{path}: there is no folder {wanted} in it; FreiHAND's pictures lie there")
    for each in splits:
        pictures += _split(root, each, versions == "all", notes)
    if not pictures:
        raise FileNotFoundError(
            f"{path}: no picture of {' or '.join(splits)} is there; the first is {splits[0]}/rgb/00000000.jpg"
        )
    return Dataset(name, str(root), partial(_cases, pictures), Poses.kind, tuple(notes))


def _split(root: Path, split: str, every: bool, notes: list[str]) -> list[_Picture]:
    """The pictures of one part that are there, in the order of their numbers."""
    numbers = sorted(
        int(match[1])
        for entry in (root / split / "rgb").iterdir()
        if (match := re.fullmatch(r"(\d{8})\.jpg", entry.name))
    )
    if split == "evaluation" and not (root / f"{split}_xyz.json").is_file():
        notes.append("evaluation: there is no evaluation_xyz.json, which comes with version 2; its cases have no truth")
        return [_picture(root, split, number, {"split": split}, None) for number in numbers]
    hands = _projected(root, split, notes)
    names = _VERSIONS[split] if every else _VERSIONS[split][:1]
    expected = len(hands) * len(names)
    beyond = [number for number in numbers if number >= len(hands) * len(_VERSIONS[split])]
    if beyond:
        notes.append(
            f"{split}: {counted(len(beyond), 'picture')} left out, whose number is beyond those of "
            f"{counted(len(hands), 'sample')}: {shortened([f'{number:08d}.jpg' for number in beyond])}"
        )
    chosen = [number for number in numbers if number < expected]
    if len(chosen) < expected:
        notes.append(f"{split}: {expected - len(chosen):,} of {counted(expected, 'picture')} not there, and left out")
    pictures = []
    for number in chosen:
        version, sample = divmod(number, len(hands))
        attributes = {"split": split, "sample": f"{sample:08d}", "version": names[version]}
        pictures.append(_picture(root, split, number, attributes, hands[sample]))
    return pictures


def _picture(root: Path, split: str, number: int, attributes: dict[str, str], points: Floats | None) -> _Picture:
    name = f"{split}/rgb/{number:08d}.jpg"
    return _Picture(name, str(root / name), attributes, points)


def _projected(root: Path, split: str, notes: list[str]) -> Floats:
    """(samples, 21, 2) in pixels, NaN where a landmark is no number, or behind the camera."""
    files = [root / f"{split}_{what}.json" for what in ("xyz", "K")]
    places, cameras = (json_of(file) for file in files)
    for file, entries in zip(files, (places, cameras), strict=True):
        if not isinstance(entries, list) or not entries:
            raise ValueError(f"{file}: it is a list with an entry for each sample, this is none, or empty")
    if len(places) != len(cameras):
        raise ValueError(
            f"{root}: {files[0].name} has {counted(len(places), 'sample')}, {files[1].name} "
            f"{len(cameras):,}; they belong to different versions, or one is damaged"
        )
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        seen = _arrays(places, (21, 3)) @ _arrays(cameras, (3, 3)).transpose(0, 2, 1)
        # The camera's matrix calls the centre of the first pixel 0, as its authors draw it; here it is 0.5.
        hands = seen[..., :2] / seen[..., 2:] + 0.5
    hands[~(seen[..., 2] > 0) | ~np.isfinite(hands).all(2)] = np.nan
    absent = np.isnan(hands[..., 0])
    blank = np.flatnonzero(absent.all(1)).tolist()
    if blank:
        notes.append(
            f"{split}: {counted(len(blank), 'sample')} without truth, for want of 21 × 3 places before a "
            f"camera of 3 × 3 numbers: {shortened(blank)}"
        )
    if single := int(absent.sum()) - 21 * len(blank):
        notes.append(f"{split}: {counted(single, 'landmark')} no number, or behind the camera, and absent")
    return hands


def _arrays(entries: list[object], shape: tuple[int, ...]) -> Floats:
    """(entries, …); NaN where an entry is something else."""
    whole = array_of(entries, (len(entries), *shape))
    if whole is not None:
        return whole
    return np.stack([np.full(shape, np.nan) if (each := array_of(entry, shape)) is None else each for entry in entries])


def _cases(pictures: list[_Picture]) -> Iterator[Case]:
    for picture in sorted(pictures, key=lambda each: each.id):
        truth = None if picture.points is None else hands_of(picture.points)
        yield Case(picture.id, picture.path, truth=truth, attributes=picture.attributes)


# fmt: off
FREIHAND = DatasetFamily("freihand", _open, (
    PATH,
    Parameter("split", "choice", "all", choices=("all", *_SPLITS), help="which pictures; all that are there"),
    Parameter("versions", "choice", "one", choices=("one", "all"),
              help="one: training pictures before the green screen; all: on three other backgrounds as well"),
), "FreiHAND, both versions: its pictures with xyz and K, projected to 21 landmarks of the hand",
    recognises=lambda place: place.is_folder and _is_freihand(place.path))
# fmt: on
