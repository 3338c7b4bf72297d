"""Leeds Sports Pose: `joints.mat` or `joints.csv` beside `images/`."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from instar.case import Case
from instar.datasets.dataset import PATH, Dataset, DatasetFamily, Place, annotation_file, first_existing, nfc
from instar.datasets.matlab import load, variables
from instar.outputs.poses import Poses
from instar.reading import file_text
from instar.skeleton import skeleton
from instar.spelling import Parameter, nearest

CSV_HEADER = ("image", "landmark", "x", "y", "visible")
Floats = npt.NDArray[np.float64]


def _cases(root: Path, people: dict[str, Floats]) -> Iterator[Case]:
    for name in sorted(people):
        truth = Poses.from_array(people[name], skeleton="lsp-14")
        yield Case(nfc(name), str(root / name), truth=truth)


FILES = ("joints.mat", "joints.csv")


def _is_lsp(place: Place) -> bool:
    if place.is_folder:
        return any(_is_lsp(Place(file)) for name in FILES if (file := place.path / name).is_file())
    if place.ending == "mat":
        return "joints" in variables(place.path)
    return place.ending == "csv" and place.text.startswith(",".join(CSV_HEADER))


def _open(name: str, *, path: str, images: str | None) -> Dataset:
    file = annotation_file(path, FILES)
    near = [Path(images)] if images else [file.parent / "images", file.parent]
    if file.suffix.lower() == ".csv":
        people = _from_csv(file, path)
        root = first_existing(near, people, of=Path(path), option="images")
    else:
        joints = _from_mat(file)
        four, five = (f"im{1:0{digits}d}.jpg" for digits in (4, 5))
        root = first_existing(near, [four, five], of=Path(path), option="images")
        digits = 4 if (root / four).is_file() else 5
        people = {f"im{number:0{digits}d}.jpg": person for number, person in enumerate(joints, 1)}
    absent = sum(int(np.isnan(person[:, 0]).sum()) for person in people.values())
    notes = [f"{absent:,} landmarks are not annotated"] if absent else []
    root = root.absolute()
    return Dataset(name, str(root), partial(_cases, root, people), Poses.kind, tuple(notes))


def _from_mat(path: Path) -> Floats:
    """(N, 14, 3): x, y, visibility; NaN where there is no annotation.

    The two published sets differ in shape, and in what their third number means: in 3 × 14 × N (2,000 images)
    a joint with 1 is occluded, and its place was annotated all the same; in 14 × 3 × N (10,000 images) one
    with 0 was not annotated.
    """
    joints = np.asarray(load(path, "joints"), dtype=np.float64)
    if joints.ndim == 2:
        joints = joints[..., None]
    if joints.shape[:2] == (3, 14):
        joints = joints.transpose(2, 1, 0).copy()
        joints[..., 2] = np.where(joints[..., 2] > 0, 0.5, 1)
    elif joints.shape[:2] == (14, 3):
        joints = joints.transpose(2, 0, 1).copy()
        joints[joints[..., 2] == 0] = np.nan
    else:
        shape = " × ".join(map(str, joints.shape))
        raise ValueError(f"{path}: joints are 3 × 14 × N or 14 × 3 × N, got {shape}")
    joints[..., :2] -= 0.5  # MATLAB calls the centre of the first pixel 1, here it is 0.5
    return joints


def _from_csv(file: Path, path: str) -> dict[str, Floats]:
    """By image: (14, 3) in the pixel coordinates used here, NaN where `visible` is 0 or there is no line."""
    place = {landmark: i for i, landmark in enumerate(skeleton("lsp-14").landmarks)}
    people: dict[str, Floats] = {}
    with io.StringIO(file_text(file), newline="") as lines:
        reader = csv.DictReader(lines)
        if tuple(reader.fieldnames or ()) != CSV_HEADER:
            raise ValueError(
                f"{path}: its first line is {','.join(reader.fieldnames or ())!r}, not {','.join(CSV_HEADER)!r}"
            )
        for row in reader:

            def fail(why: str) -> ValueError:
                return ValueError(f"{path}, line {reader.line_num}: {why}")

            if row["landmark"] not in place:
                hint = nearest(str(row["landmark"]), place)
                raise fail(f"{row['landmark']!r} is not a landmark of lsp-14{hint}")
            try:
                x, y, visible = float(row["x"]), float(row["y"]), float(row["visible"])
            except (TypeError, ValueError):
                raise fail(
                    f"x, y and visible are numbers, got {row['x']!r}, {row['y']!r}, {row['visible']!r}"
                ) from None
            person = people.setdefault(row["image"], np.full((14, 3), np.nan))
            if visible > 0 and math.isfinite(x) and math.isfinite(y):
                person[place[row["landmark"]]] = x, y, 1
    if not people:
        raise ValueError(f"{path}: there are no lines below the first")
    return people


# fmt: off
LSP = DatasetFamily("lsp", _open,
    (PATH, Parameter("images", "text", None, help="the folder of the pictures; if not given, images/ beside it")),
    "Leeds Sports Pose: joints.mat (both published sets) or joints.csv, or their folder, with 14 landmarks",
    recognises=_is_lsp)
# fmt: on
