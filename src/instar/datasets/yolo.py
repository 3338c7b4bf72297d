"""YOLO's folders: `images/`, and `labels/` with a text file for each picture."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt

from instar.case import Case
from instar.datasets.dataset import PATH, Dataset, DatasetFamily, counted, existing, missing, nfc, shortened
from instar.datasets.folder import FOLDER
from instar.datasets.objects import Left, Thing, truth_of, within
from instar.image import picture_size
from instar.outputs.detections import Detections
from instar.reading import file_text
from instar.spelling import Parameter
from instar.warp import Size

_NAMES = ("classes.txt", "obj.names")
_SPLITS = ("train", "val", "valid", "test")

Floats = npt.NDArray[np.float64]
Description = Mapping[str, "str | list[str] | dict[int, str]"]


def _is_yolo(path: Path) -> bool:
    """Whether a folder is one of YOLO's: it says so itself, or has text files in `labels/` beside `images/`."""
    return _described(path) is not None or any(
        (folder / "images").is_dir() and next((folder / "labels").rglob("*.txt"), None) is not None
        for folder in (path, *(path / split for split in _SPLITS))
    )


# --- data.yaml -------------------------------------------------------------------------------------


def _described(root: Path) -> Path | None:
    """The file in a folder that names classes and where the pictures are."""
    for file in sorted(root.glob("*.y*ml")):
        description = _description(file)
        if description.get("names") and any(split in description for split in _SPLITS):
            return file
    return None


def _description(file: Path) -> Description:
    """As much of YAML as such files are written in: values, lists and numbered names, in a line or below it."""
    try:
        text = file_text(file)
    except ValueError:
        return {}
    blocks: dict[str, list[str]] = {}
    for line in text.splitlines():
        plain = re.sub(r"(^|\s)#.*", "", line).rstrip()
        key = re.match(r"([A-Za-z]\w*)\s*:(?:\s+(.+))?$", plain)
        if key:
            blocks[key[1]] = [key[2]] if key[2] else []
        elif plain and blocks:
            blocks[list(blocks)[-1]].append(plain.strip())
    return {key: _value(lines) for key, lines in blocks.items()}


def _value(lines: list[str]) -> str | list[str] | dict[int, str]:
    whole = " ".join(lines)
    if whole[:1] in ("[", "{"):
        items = [part.strip() for part in re.findall(r"""(?:[^,'"]|'[^']*'|"[^"]*")+""", whole.strip("[]{} "))]
    elif all(line.startswith("- ") for line in lines):
        items = [line[2:] for line in lines]
    else:
        items = lines
    numbered = [re.match(r"""['"]?(\d+)['"]?\s*:\s*(.+)$""", item) for item in items]
    if items and all(numbered):
        return {int(each[1]): _bare(each[2]) for each in numbered if each}
    return _bare(whole) if items is lines else [_bare(item) for item in items if item]


def _bare(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


# --- reading ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Row:
    """A line of a label file: a box as x0, y0, x1, y1, or an outline; in shares of the picture's size."""

    line: int
    label: str
    box: tuple[float, float, float, float]
    outline: Floats | None


@dataclass(slots=True)
class _Picture:
    id: str
    path: str
    rows: list[_Row] | None
    """None where its label file cannot be read."""


def _open(name: str, *, path: str, split: str, names: str | None, masks: bool) -> Dataset:
    place = existing(path)
    if place.is_file() and not _description(place).get("names"):
        raise ValueError(f"{path}: a file for yolo is its data.yaml, which has names; this has none")
    yaml = place if place.is_file() else _described(place)
    description = _description(yaml) if yaml else {}
    root = _root(place, yaml, description)
    pictures = _pictures(root, split, yaml, description)
    called = _names(root, names, description)
    left = Left()
    files = {picture.id: _label_file(root, picture) for picture in pictures}
    there = {key: file for key, file in files.items() if file.is_file()}
    if not there:
        raise ValueError(
            f"{path}: none of its {counted(len(pictures), 'picture')} has a label file; that of "
            f"{pictures[0].id} should be {files[pictures[0].id]}"
        )
    damaged = []
    for picture in pictures:
        if picture.id in there:
            picture.rows = _rows(there[picture.id], root, called, left, posed="kpt_shape" in description)
            if picture.rows is None:
                damaged.append(nfc(there[picture.id].name))
    notes = []
    if len(there) < len(pictures):
        bare = [picture.id for picture in pictures if picture.id not in there]
        notes.append(f"{counted(len(bare), 'picture')} without a label file, so without objects: {shortened(bare)}")
    if damaged:
        notes.append(f"{counted(len(damaged), 'label file')} that cannot be read, so no truth: {shortened(damaged)}")
    if split == "all" and (lone := _lone(root, set(there.values()))):
        notes.append(f"{counted(len(lone), 'label file')} without a picture: {shortened(lone)}")
    if not called:
        notes.append('no names of its classes were found, so their numbers stand for them; say names="classes.txt"')
    cases = partial(_cases, pictures, masks)
    return Dataset(name, str(root), cases, Detections.kind, tuple(notes + left.notes()), classes=called)


def _root(place: Path, yaml: Path | None, description: Description) -> Path:
    """Where ids begin: the folder that was given; for a file, the folder it speaks of where that is here."""
    if place.is_dir() or yaml is None:
        return place
    inner = description.get("path")
    spoken = (yaml.parent / inner).resolve() if isinstance(inner, str) and inner else yaml.parent
    return spoken if spoken.is_dir() else yaml.parent


def _pictures(root: Path, split: str, yaml: Path | None, description: Description) -> list[_Picture]:
    every = [_Picture(case.id, str(case.path), []) for case in FOLDER.open("", path=str(root)).cases()]
    pictures = [picture for picture in every if "images" in PurePosixPath(picture.id).parts[:-1]] or every
    if split == "all":
        return pictures
    entry = description.get(split)
    if entry and yaml:
        places = [_place(str(each), root, yaml) for each in (entry if isinstance(entry, list) else [entry])]
        listed = {file for place in places if place.is_file() for file in _listed(place)}
        chosen = [
            picture
            for picture in pictures
            if Path(picture.path).resolve() in listed
            or any(Path(picture.path).is_relative_to(place) for place in places)
        ]
    else:
        chosen = [picture for picture in pictures if split in PurePosixPath(picture.id).parts[:-1]]
    if not chosen:
        parts = {part for picture in pictures for part in PurePosixPath(picture.id).parts[:-1]} - {"images"}
        there = sorted({*(key for key in _SPLITS if key in description), *parts})
        raise ValueError(f"{root}: there are no pictures in split={split}; it takes {shortened([*there, 'all'], 8)}")
    return chosen


def _place(entry: str, root: Path, yaml: Path) -> Path:
    """A folder or list of pictures; many such files were written for another folder than the one they lie in."""
    inner = re.sub(r"^(\.\./)+", "", entry.replace("\\", "/"))
    near = [yaml.parent / entry, root / entry, yaml.parent / inner, root / inner]
    return next((place.resolve() for place in near if place.exists()), root / inner)


def _listed(file: Path) -> Iterator[Path]:
    for line in file_text(file, errors="replace").splitlines():
        if line.strip():
            yield (file.parent / line.strip()).resolve()


def _names(root: Path, names_file: str | None, description: Description) -> dict[int, str]:
    if names_file:
        file = next((place for place in (Path(names_file), root / names_file) if place.is_file()), None)
        if file is None:
            raise missing(Path(names_file), "file of names")
    else:
        names = description.get("names")
        if names:
            return names if isinstance(names, dict) else dict(enumerate([names] if isinstance(names, str) else names))
        places = [root / name for name in _NAMES] + [root / "labels" / name for name in _NAMES]
        file = next((place for place in places if place.is_file()), None)
        if file is None:
            return {}
    lines = file_text(file, errors="replace").strip().splitlines()
    return {number: line.strip() for number, line in enumerate(lines)}


def _label_file(root: Path, picture: _Picture) -> Path:
    """Its path with the last `images` replaced by `labels`; else beside the picture."""
    path = Path(picture.path)
    parts = list(path.relative_to(root).parts)
    if "images" in parts[:-1]:
        parts[max(i for i, part in enumerate(parts[:-1]) if part == "images")] = "labels"
    inner = Path(*parts).with_suffix(".txt")
    # accents may be written in one way in the picture's name and in another in this one
    spelled = (
        [inner]
        if inner.name.isascii()
        else [inner, *(inner.with_name(unicodedata.normalize(form, inner.name)) for form in ("NFC", "NFD"))]
    )
    return next((root / each for each in spelled if (root / each).is_file()), root / inner)


def _lone(root: Path, used: set[Path]) -> list[str]:
    files = (file for file in root.rglob("*.txt") if "labels" in file.relative_to(root).parts[:-1])
    return sorted(
        nfc(file.relative_to(root).as_posix()) for file in files if file not in used and file.name not in _NAMES
    )


def _rows(file: Path, root: Path, called: Mapping[int, str], left: Left, *, posed: bool) -> list[_Row] | None:
    try:
        text = file_text(file)
    except ValueError:
        return None
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        if not fields:
            continue
        place = f"{nfc(file.relative_to(root).as_posix())} line {number}"
        try:
            values = np.array(fields[:5] if posed else fields, np.float64)
            label = int(fields[0])
        except ValueError:
            values, label = np.array([]), -1
        outlined = len(values) >= 7 and len(values) % 2 == 1
        if not (len(values) == 5 or outlined) or not np.isfinite(values).all():
            left("neither class, x, y, width, height nor class and the corners of an outline", place)
            continue
        if label < 0 or (called and label not in called):
            left(f"of classes that are not among the {len(called)} names", place)
            continue
        outline = values[1:] if outlined else None
        if outline is not None:
            xy = outline.reshape(-1, 2)
            box = [*xy.min(0), *xy.max(0)]
        else:
            x, y, width, height = values[1:].tolist()
            box = [x - width / 2, y - height / 2, x + width / 2, y + height / 2]
        cut = within([float(edge) for edge in box], (1, 1))
        if isinstance(cut, str):
            left(f"{cut} (numbers are shares of its size)" if "outside" in cut else cut, place)
        else:
            rows.append(_Row(number, called.get(label, str(label)), cut, outline))
    return rows


# --- cases -----------------------------------------------------------------------------------------


def _cases(pictures: list[_Picture], masks: bool) -> Iterator[Case]:
    for picture in pictures:
        size = picture_size(picture.path) if picture.rows else None
        truth = None
        if picture.rows is not None and (size or not picture.rows):
            truth = truth_of((_thing(row, size) for row in picture.rows if size), size, masks=masks)
        yield Case(picture.id, picture.path, truth=truth)


def _thing(row: _Row, size: Size) -> Thing:
    (width, height), (x0, y0, x1, y1) = size, row.box
    shape = None if row.outline is None else [(row.outline.reshape(-1, 2) * size).ravel()]
    return Thing(str(row.line), row.label, (x0 * width, y0 * height, x1 * width, y1 * height), shape)


# fmt: off
YOLO = DatasetFamily("yolo", _open, (
    PATH,
    Parameter("split", "text", "all", help="train, val, test as data.yaml names them, or a folder's name; or all"),
    Parameter("names", "text", None,
              help="a text file of the classes, one a line, where data.yaml or classes.txt does not tell"),
    Parameter("masks", "bool", True, help="whether objects with an outline have masks"),
), "YOLO's images/ and labels/, with boxes or outlines",
    recognises=lambda place: place.ending in ("yaml", "yml") or (place.is_folder and _is_yolo(place.path)))
# fmt: on
