"""FLIC, frames labelled in cinema: `examples.mat` beside `images/`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from instar.case import Case
from instar.datasets.dataset import PATH, Dataset, DatasetFamily, Place, annotation_file, first_existing, nfc
from instar.datasets.matlab import load, variables
from instar.outputs.poses import Poses
from instar.spelling import Parameter

# Of 29 columns these are annotated: shoulder, elbow, wrist of either side, hips, eyes, nose.
_COLUMNS = (0, 1, 2, 3, 4, 5, 6, 9, 12, 13, 16)

_FILE = "examples.mat"


@dataclass(slots=True)
class _Frame:
    path: str
    movie: str
    people: list[npt.NDArray[np.float64]]


def _cases(frames: dict[str, _Frame]) -> Iterator[Case]:
    for name, frame in frames.items():
        # MATLAB calls the centre of the first pixel 1, here it is 0.5.
        truth = Poses.from_array(np.stack(frame.people) - 0.5, skeleton="flic-11")
        yield Case(name, frame.path, truth=truth, attributes={"movie": frame.movie} if frame.movie else {})


def _is_flic(place: Place) -> bool:
    if place.is_folder:
        return (file := place.path / _FILE).is_file() and _is_flic(Place(file))
    return place.ending == "mat" and "examples" in variables(place.path)


def _open(name: str, *, path: str, images: str | None, split: str, single: bool) -> Dataset:
    file = annotation_file(path, [_FILE])
    examples = np.atleast_1d(load(file, "examples"))
    fields = examples.dtype.names or ()
    for needed in ("coords", "filepath", *(() if split == "all" else (f"is{split}",))):
        if needed not in fields:
            there = ", ".join(fields) or "none"
            raise ValueError(f"{path}: its examples have no field {needed!r}; there are {there}")
    frames: dict[str, _Frame] = {}
    chosen: dict[str, bool] = {}
    for number, example in enumerate(examples, 1):
        coords = np.asarray(example["coords"], dtype=np.float64)
        if coords.ndim != 2 or coords.shape[0] != 2 or coords.shape[1] <= _COLUMNS[-1]:
            raise ValueError(f"{path}: example {number} has coords of shape {coords.shape}, not (2, 29)")
        file_name = str(example["filepath"])
        frame = frames.setdefault(nfc(file_name), _Frame(file_name, "", []))
        frame.people.append(coords[:, _COLUMNS].T)
        if "moviename" in fields:
            frame.movie = str(example["moviename"])
        inside = split == "all" or bool(np.any(example[f"is{split}"]))
        chosen[nfc(file_name)] = chosen.get(nfc(file_name), False) or inside
    kept = {key: frames[key] for key in sorted(frames) if chosen[key]}
    several = [key for key, frame in kept.items() if len(frame.people) > 1]
    notes = []
    if len(kept) < len(frames):
        notes.append(f"split={split}: {len(kept):,} of {len(frames):,} images")
    if single:
        for key in several:
            del kept[key]
        if several:
            notes.append(f"single=true: {len(several):,} images with more than one annotation left out")
    if not kept:
        raise ValueError(f"{path}: no images in split={split}" + (" with one annotation" if single else ""))
    near = [Path(images)] if images else [file.parent / "images", file.parent]
    files = [frame.path for frame in kept.values()]
    root = first_existing(near, files, of=Path(path), option="images").absolute()
    for frame in kept.values():
        frame.path = str(root / frame.path)
    return Dataset(name, str(root), partial(_cases, kept), Poses.kind, tuple(notes))


# fmt: off
FLIC = DatasetFamily("flic", _open, (
    PATH,
    Parameter("images", "text", None, help="the folder of the pictures; if not given, images/ beside it"),
    Parameter("split", "choice", "test", choices=("test", "train", "all"), help="which images"),
    Parameter("single", "bool", False, help="only images with exactly one annotation"),
), "FLIC's examples.mat or its folder, with 11 landmarks of the upper body",
    recognises=_is_flic)
# fmt: on
