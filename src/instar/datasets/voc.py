"""Pascal VOC and ImageNet DET: an XML file for each picture."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from instar.case import Case
from instar.datasets.dataset import FAR, PATH, Dataset, DatasetFamily, counted, existing, missing, nfc, shortened
from instar.datasets.folder import FOLDER
from instar.datasets.objects import Left, Thing, truth_of, within
from instar.image import picture_size
from instar.outputs.detections import Detections
from instar.reading import file_bytes, file_text
from instar.spelling import Parameter, nearest

_ANNOTATIONS = "Annotations"
_PICTURES = ("JPEGImages", "Data", "images")
_EDGES = ("xmin", "ymin", "xmax", "ymax")


def _is_voc(path: Path) -> bool:
    return (path / _ANNOTATIONS).is_dir() and next((path / _ANNOTATIONS).rglob("*.xml"), None) is not None


@dataclass(slots=True)
class _Picture:
    id: str
    path: str
    things: list[Thing] | None = field(default_factory=list)
    """None where its XML cannot be read."""
    difficult: int = 0


def _open(name: str, *, path: str, images: str | None, split: str, difficult: bool) -> Dataset:
    root = existing(path, "folder", Path.is_dir)
    written = root / _ANNOTATIONS if (root / _ANNOTATIONS).is_dir() else root
    files = {_stem(file, written): file for file in sorted(written.rglob("*.xml"))}
    if not files:
        raise ValueError(f"{path}: there are no .xml files in {written}")
    place = _place(root, written, images)
    pictures = {
        _stem(Path(str(case.path)), place): _Picture(case.id, str(case.path))
        for case in FOLDER.open("", path=str(place)).cases()
    }
    if place == root and written != root:  # pictures elsewhere in the folder say nothing of their own
        pictures = {key: picture for key, picture in pictures.items() if key in files}
    lone = sorted(nfc(files[key].name) for key in files.keys() - pictures.keys())
    notes: list[str] = []
    if split != "all":
        pictures = _split(root, split, pictures, notes)
    elif lone:
        notes.append(f"{counted(len(lone), 'XML file')} without a picture: {shortened(lone)}")
    if not files.keys() & pictures.keys():
        raise ValueError(
            f"{path}: none of the {counted(len(pictures), 'picture')} in {place} has an XML file of its "
            f'name in {written}; say where its pictures are with images="folder"'
        )
    left, damaged, early = Left(), [], 0
    for key, picture in pictures.items():
        if key in files:
            try:
                early += _read(files[key], picture, left, difficult)
            except (expat.ExpatError, ValueError, OSError) as error:
                picture.things = None
                damaged.append(f"{nfc(files[key].name)} ({error})")
    bare = [picture.id for key, picture in pictures.items() if key not in files]
    if bare:
        notes.append(f"{counted(len(bare), 'picture')} without an XML file, so without objects: {shortened(bare)}")
    if damaged:
        notes.append(f"{counted(len(damaged), 'XML file')} that cannot be read, so no truth: {shortened(damaged)}")
    if hard := sum(picture.difficult for picture in pictures.values()):
        notes.append(f"{counted(hard, 'difficult object')} left out of the truth; attribute difficult counts them")
    if early:
        notes.append(
            f"{early:,} box{'es' * (early > 1)} begin at 0, though the first pixel is 1; if its files count "
            "from 0, all boxes lie a pixel too far up and left"
        )
    ordered = sorted(pictures.values(), key=lambda picture: picture.id)
    return Dataset(name, str(place), partial(_cases, ordered), Detections.kind, tuple(notes + left.notes()))


def _stem(file: Path, root: Path) -> str:
    return nfc(file.relative_to(root).with_suffix("").as_posix())


def _place(root: Path, written: Path, images: str | None) -> Path:
    """The folder of the pictures."""
    if images:
        near = [Path(images).absolute(), root / images]
        folder = next((place for place in near if place.is_dir()), None)
        if folder is None:
            raise missing(Path(images), "folder")
        return folder
    above = root.parent if root.name == _ANNOTATIONS else root
    return next((above / name for name in _PICTURES if (above / name).is_dir()), root)


def _split(root: Path, split: str, pictures: dict[str, _Picture], notes: list[str]) -> dict[str, _Picture]:
    """The pictures that ImageSets/…/SPLIT.txt names, each by the first word of a line."""
    above = root.parent if root.name == _ANNOTATIONS else root
    lists = {nfc(file.stem): file for file in sorted((above / "ImageSets").rglob("*.txt"), reverse=True)}
    main = above / "ImageSets" / "Main" / f"{split}.txt"
    file = main if main.is_file() else lists.get(split)
    if file is None:
        raise ValueError(
            f"{root}: there is no ImageSets/…/{split}.txt for split={split}{nearest(split, lists)}; "
            f"there are {shortened(sorted(lists), 8) or 'no such lists'}, and all"
        )
    lines = file_text(file, errors="replace").splitlines()
    words = [nfc(line.split()[0]) for line in lines if line.strip()]
    last = {key.rpartition("/")[2]: key for key in pictures}
    keys = {word: word if word in pictures else last.get(word.rpartition("/")[2]) for word in words}
    chosen = {key: pictures[key] for key in keys.values() if key is not None}
    if gone := [word for word, key in keys.items() if key is None]:
        notes.append(f"{counted(len(gone), 'picture')} of split={split} not found: {shortened(gone)}")
    notes.append(f"split={split}: {len(chosen):,} of {counted(len(pictures), 'picture')}")
    return chosen


# --- XML -------------------------------------------------------------------------------------------


def _parsed(data: bytes) -> Element:
    """The tree of a file without a document type: that is where entities are declared, and none is needed here."""
    builder = TreeBuilder()
    parser = expat.ParserCreate()

    def refuse(*_: object) -> NoReturn:
        raise ValueError("it declares a document type, which is refused")

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.Parse(data, True)
    return builder.close()


def _read(file: Path, picture: _Picture, left: Left, difficult: bool) -> int:
    """Fills in a picture's objects, and returns how many boxes begin before the first pixel."""
    tree = _parsed(file_bytes(file))
    size = _size(tree, picture.path)
    things, early = [], 0
    for number, entry in enumerate(tree.iter("object"), 1):
        place = f"{nfc(file.name)} object {number}"
        label = (entry.findtext("name") or "").strip()
        try:
            x0, y0, x1, y1 = (float(entry.findtext(f"bndbox/{edge}") or "") for edge in _EDGES)
            if not all(abs(edge) < FAR for edge in (x0, y0, x1, y1)):
                raise ValueError
        except ValueError:
            left("whose bndbox is not xmin, ymin, xmax, ymax", place)
            continue
        if not label:
            left("without a name", place)
            continue
        if (entry.findtext("difficult") or "").strip() == "1" and not difficult:
            picture.difficult += 1
            continue
        early += min(x0, y0) == 0
        # The first pixel is 1 and the last one belongs to the box: its edges lie around them.
        cut = within((x0 - 1, y0 - 1, x1, y1), size)
        if isinstance(cut, str):
            left(cut, place)
        else:
            things.append(Thing(str(number), label, cut))
    picture.things = things
    return early


def _size(tree: Element, path: str) -> tuple[float, float]:
    try:
        width, height = (float(tree.findtext(f"size/{side}") or "") for side in ("width", "height"))
        if min(width, height) >= 1 and max(width, height) < FAR:
            return width, height
    except ValueError:
        pass
    return picture_size(path) or (math.inf, math.inf)  # an unreadable picture becomes a row that says so


# --- cases -----------------------------------------------------------------------------------------


def _cases(pictures: list[_Picture]) -> Iterator[Case]:
    for picture in pictures:
        truth = None if picture.things is None else truth_of(picture.things, None, masks=False)
        attributes = {"difficult": picture.difficult} if picture.difficult else {}
        yield Case(picture.id, picture.path, truth=truth, attributes=attributes)


# fmt: off
VOC = DatasetFamily("voc", _open, (
    PATH,
    Parameter("images", "text", None,
              help="the folder of the pictures; if not given, JPEGImages, Data or images beside Annotations"),
    Parameter("split", "text", "all", help="a list in ImageSets, e.g. val; or all"),
    Parameter("difficult", "bool", False, help="whether objects marked as difficult are in the truth"),
), "Pascal VOC and ImageNet DET: Annotations/*.xml with boxes",
    recognises=lambda place: place.is_folder and _is_voc(place.path))
# fmt: on
