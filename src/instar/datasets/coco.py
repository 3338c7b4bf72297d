"""COCO's JSON: keypoints, instances or captions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from instar.case import Case
from instar.datasets.dataset import (
    FAR,
    PATH,
    Dataset,
    DatasetFamily,
    Distinct,
    counted,
    first_existing,
    json_of,
    nfc,
    shortened,
)
from instar.datasets.masks import Runs, runs_of
from instar.datasets.objects import Left, Thing, truth_of
from instar.outputs.caption import Caption
from instar.outputs.detections import Detections
from instar.outputs.poses import Poses
from instar.reading import too_many_pixels
from instar.skeleton import Skeleton, skeleton, skeletons
from instar.spelling import Parameter
from instar.warp import Size

Entry = Mapping[str, Any]
Floats = npt.NDArray[np.float32]

_FROM_TIPS = np.r_[0, 4:0:-1, 8:4:-1, 12:8:-1, 16:12:-1, 20:16:-1]
"""The Rendered Handpose Dataset lists each finger from its tip; so do COCO-style files of it, whatever its names."""


@dataclass(slots=True)
class _Picture:
    id: str
    path: str
    size: Size | None
    """None where the file says none that an image could have."""
    licence: str = ""
    people: list[Floats] = field(default_factory=list)
    things: list[Thing] = field(default_factory=list)
    captions: list[str] = field(default_factory=list)
    crowds: int = 0
    unmarked: int = 0


def _open(name: str, *, path: str, images: str | None, truth: str, masks: bool, skeleton: str | None) -> Dataset:
    content = _content(Path(path))
    categories = {_key(each.get("id")): each for each in _entries(content, "categories", path)}
    annotations = _entries(content, "annotations", path)
    kind = truth if truth != "auto" else _kind(categories, annotations)
    pictures = _pictures(content, path)
    left = Left("annotation")
    notes: list[str] = []
    if twice := len(pictures) - len({_id(picture.path) for picture in pictures.values()}):
        notes.append(f"{counted(twice, 'image')} of a file_name that another has already; their ids end in #2, …")
    cases: partial[Iterator[Case]]
    root = _root(Path(path), images, [picture.path for picture in pictures.values()])
    for picture in pictures.values():
        picture.path = str(root / picture.path)
    ordered = sorted(pictures.values(), key=lambda picture: picture.id)
    if kind == "keypoints":
        bones = _bones(categories, annotations, skeleton, path)
        order = _FROM_TIPS if _is_rhd(content, categories, bones) else None
        top = _read_people(annotations, pictures, bones, order, left)
        if order is not None:
            notes.append("RHD lists each finger from its tip: its keypoints were put into the order of hand-21")
        unmarked = sum(picture.unmarked for picture in ordered)
        if unmarked:
            notes.append(f"{counted(unmarked, 'annotation')} without any keypoint")
        cases = partial(_with_poses, ordered, bones, top)
    elif kind == "instances":
        _read_things(annotations, pictures, categories, left, masks)
        cases = partial(_with_detections, ordered, masks)
    elif kind == "captions":
        _read_captions(annotations, pictures, left)
        cases = partial(_with_captions, ordered)
    else:
        notes.append("no keypoints, boxes or captions in it: its cases have no truth")
        cases = partial(_with_captions, ordered)  # of which there are none
    if sizeless := [picture.id for picture in ordered if picture.size is None]:
        notes.append(
            f"{counted(len(sizeless), 'picture')} whose width and height are no size of an image, so that no masks can "
            f"be drawn: {shortened(sizeless)}"
        )
    crowds = sum(picture.crowds for picture in ordered)
    if crowds:
        notes.append(f"{counted(crowds, 'crowd region')} left out of the truth; attribute crowds counts them")
    kinds = {"keypoints": Poses.kind, "instances": Detections.kind, "captions": Caption.kind}
    listed = {key: str(each.get("name", key)) for key, each in categories.items() if isinstance(key, int)}
    classes = listed if kind == "instances" else {}
    return Dataset(name, str(root), cases, kinds.get(kind), tuple(notes + left.notes()), classes=classes)


# --- reading ---------------------------------------------------------------------------------------


def _content(path: Path) -> Entry:
    content = json_of(path)
    if not isinstance(content, dict) or not isinstance(content.get("images"), list):
        keys = shortened(list(content), 5) if isinstance(content, dict) else f"a {type(content).__name__}"
        raise ValueError(f"{path}: COCO's JSON has a list of images, this has {keys or 'nothing'}")
    return content


def _entries(content: Entry, key: str, path: str) -> list[Entry]:
    entries = content.get(key, [])
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise ValueError(f"{path}: {key} is not a list of objects")
    return entries


def _kind(categories: Mapping[object, Entry], annotations: list[Entry]) -> str:
    if any(each.get("keypoints") for each in categories.values()) or (annotations and "keypoints" in annotations[0]):
        return "keypoints"
    if any("bbox" in each for each in annotations):
        return "instances"
    return "captions" if any("caption" in each for each in annotations) else "none"


def _pictures(content: Entry, path: str) -> dict[object, _Picture]:
    distinct, licences = Distinct(), _licences(content)
    pictures: dict[object, _Picture] = {}
    for number, entry in enumerate(_entries(content, "images", path), 1):
        try:
            file_name, size = entry["file_name"], _size(entry["width"], entry["height"])
            if not isinstance(file_name, str) or not file_name:
                raise ValueError
            key = entry["id"]
            hash(key)
        except (KeyError, TypeError, ValueError):
            raise ValueError(
                f"{path}: image {number} needs id, file_name, width and height, it is {json.dumps(entry)[:200]}"
            ) from None
        if key in pictures:
            raise ValueError(f"{path}: two images have the id {key!r}")
        licence_number = entry.get("license")
        licence = licences.get(licence_number, "") if isinstance(licence_number, int | str) else ""
        pictures[key] = _Picture(distinct(_id(file_name)), file_name, size, licence)
    if not pictures:
        raise ValueError(f"{path}: its list of images is empty")
    return pictures


def _id(file_name: str) -> str:
    return nfc(file_name.replace("\\", "/"))


def _size(width: object, height: object) -> Size | None:
    """Only masks are drawn by it: an image that has another size than is written here is read all the same."""
    try:
        size = int(str(width)), int(str(height))
    except ValueError:
        return None
    return size if min(size) > 0 and not too_many_pixels(*size) else None


def _key(value: object) -> object:
    """A number or a text that entries are called by; None for anything else."""
    return value if isinstance(value, int | float | str) else None


def _licences(content: Entry) -> dict[int | str, str]:
    """Names and addresses of licences, by the number that images have; what is not told is left out."""
    listed = content.get("licenses")
    return {
        each["id"]: " ".join(str(each[key]) for key in ("name", "url") if each.get(key))
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, dict) and isinstance(each.get("id"), int | str)
    }


def _root(path: Path, images: str | None, files: list[str]) -> Path:
    here = path.absolute().parent
    if images:
        near = [Path(images).absolute(), here / images]
    else:
        split = path.stem.rpartition("_")[2]  # instances_val2017 belongs to val2017/
        names = ("images", split, f"images/{split}", ".")
        near = [folder / name for folder in (here, here.parent) for name in names]
    # The first is enough where all are there; one of many missing must not change where the rest is.
    return first_existing(near, files[:1000], of=path, option="images").resolve()


def _bones(categories: Mapping[object, Entry], annotations: list[Entry], name: str | None, path: str) -> Skeleton:
    if name is not None:
        return skeleton(name)
    named = {tuple(each["keypoints"]) for each in categories.values() if each.get("keypoints")}
    if len(named) > 1:
        raise ValueError(f"{path}: its categories have different keypoints; one skeleton serves all cases")
    names: tuple[str, ...] = named.pop() if named else ()
    for known in skeletons():
        if skeleton(known).landmarks == names:
            return skeleton(known)
    first: list[object] = next((each["keypoints"] for each in annotations if each.get("keypoints")), [])
    count = len(names) or (len(first) if first and isinstance(first[0], list) else len(first) // 3)
    if count == 21:  # hands: everybody counts from the wrist along the fingers, and names differ
        return skeleton("hand-21")
    if count == 17 and not names:
        return skeleton("coco-17")
    raise ValueError(
        f"{path}: no built-in skeleton has its {count} keypoints "
        f"({shortened(names) or 'without names'}); say which with skeleton=NAME, "
        'or your own with skeleton="my.toml"'
    )


def _picture_of(entry: Entry, pictures: dict[object, _Picture], left: Left) -> _Picture | None:
    picture = pictures.get(_key(entry.get("image_id")))
    if picture is None:
        left("of images that are not listed", entry.get("id", "?"))
    elif entry.get("iscrowd"):
        picture.crowds += 1
        return None
    return picture


def _read_captions(annotations: list[Entry], pictures: Mapping[object, _Picture], left: Left) -> None:
    for entry in annotations:
        picture, text = pictures.get(_key(entry.get("image_id"))), entry.get("caption")
        if picture is None:
            left("of a picture that is not listed", entry.get("id", "?"))
        elif not isinstance(text, str) or not text.strip():
            left("without a caption", entry.get("id", "?"))
        else:
            picture.captions.append(text)


def _is_rhd(content: Entry, categories: Mapping[object, Entry], bones: Skeleton) -> bool:
    info = content.get("info")
    named = any(tuple(each.get("keypoints", ())) == bones.landmarks for each in categories.values())
    return bones.name == "hand-21" and not named and isinstance(info, Mapping) and info.get("description") == "RHD"


def _read_people(
    annotations: list[Entry],
    pictures: dict[object, _Picture],
    bones: Skeleton,
    order: npt.NDArray[np.intp] | None,
    left: Left,
) -> float:
    """Fills in people as (landmarks, 3), and returns the largest visibility flag of the file."""
    top = 0.0
    for entry in annotations:
        picture = _picture_of(entry, pictures, left)
        if picture is None:
            continue
        try:
            marks = np.array(entry["keypoints"], dtype=np.float32).reshape(-1, 3)
        except (KeyError, TypeError, ValueError, OverflowError):
            marks = np.zeros((0, 3), np.float32)
        if marks.shape[0] != len(bones.landmarks):
            left(f"without {len(bones.landmarks)} × (x, y, v) keypoints", entry.get("id", "?"))
            picture.unmarked += "keypoints" not in entry
            continue
        if order is not None:
            marks = marks[order]
        marks[~(marks[:, 2] > 0) | ~(np.abs(marks) < FAR).all(1)] = np.nan
        if np.isnan(marks[:, 0]).all():
            picture.unmarked += 1
            continue
        top = max(top, float(np.nanmax(marks[:, 2])))
        picture.people.append(marks)
    return top


def _read_things(
    annotations: list[Entry],
    pictures: dict[object, _Picture],
    categories: Mapping[object, Entry],
    left: Left,
    masks: bool,
) -> None:
    for number, entry in enumerate(annotations, 1):
        picture = _picture_of(entry, pictures, left)
        if picture is None:
            continue
        category = categories.get(_key(entry.get("category_id")))
        if category is None:
            left("of categories that are not listed", entry.get("id", "?"))
            continue
        try:
            x, y, width, height = (float(value) for value in entry["bbox"])
            if not all(abs(value) < FAR for value in (x, y, width, height)) or width < 0 or height < 0:
                raise ValueError
        except (KeyError, TypeError, ValueError, OverflowError):
            left("whose bbox is not x, y, width, height", entry.get("id", "?"))
            continue
        if not width or not height:
            left("whose bbox has no area", entry.get("id", "?"))
            continue
        try:
            shape = _shape(entry.get("segmentation"), picture.size) if masks and picture.size else None
        except (TypeError, ValueError, OverflowError):
            left("whose segmentation is neither polygons nor runs that fit the image", entry.get("id", "?"))
            continue
        name, label = str(entry.get("id", number)), str(category.get("name", entry["category_id"]))
        if any(thing.id == name for thing in picture.things):
            left("with the id of another one in the same picture", entry.get("id", "?"))
            continue
        box = (x, y, x + width, y + height)
        picture.things.append(Thing(name, label, box, shape))


def _shape(segmentation: object, size: tuple[int, int]) -> list[Floats] | Runs | None:
    if not segmentation:
        return None
    if isinstance(segmentation, Mapping):
        return runs_of(segmentation, size)
    if not isinstance(segmentation, Sequence) or isinstance(segmentation, str):
        raise ValueError
    polygons = [np.array(polygon, dtype=np.float32) for polygon in segmentation]
    if any(p.ndim != 1 or len(p) < 6 or len(p) % 2 or not np.isfinite(p).all() for p in polygons):
        raise ValueError
    return polygons


# --- cases -----------------------------------------------------------------------------------------


def _attributes(picture: _Picture) -> dict[str, object]:
    attributes = {"crowds": picture.crowds, "licence": picture.licence}
    return {name: value for name, value in attributes.items() if value}


def _with_poses(pictures: list[_Picture], bones: Skeleton, top: float) -> Iterator[Case]:
    for picture in pictures:
        truth = None
        if picture.people:
            marks = np.stack(picture.people)
            # Keypoints number pixels from 0; the centre of the first is 0.5. A joint that is annotated but
            # hidden (v = 1 of 2) is half visible; where a file knows only 0 and 1, 1 is visible.
            truth = Poses.from_array(
                marks[..., :2] + 0.5, skeleton=bones, visibility=np.nan_to_num(marks[..., 2]) / top
            )
        elif not picture.unmarked and not picture.crowds:
            truth = Poses.from_array([], skeleton=bones)  # nobody there; elsewhere somebody is, unmarked
        yield Case(picture.id, picture.path, truth=truth, attributes=_attributes(picture))


def _with_captions(pictures: list[_Picture]) -> Iterator[Case]:
    for picture in pictures:
        truth = Caption.from_texts(picture.captions) if picture.captions else None
        yield Case(picture.id, picture.path, truth=truth)


def _with_detections(pictures: list[_Picture], masks: bool) -> Iterator[Case]:
    for picture in pictures:
        truth = truth_of(picture.things, picture.size, masks=masks)
        yield Case(picture.id, picture.path, truth=truth, attributes=_attributes(picture))


# fmt: off
COCO = DatasetFamily("coco", _open, (
    PATH,
    Parameter("images", "text", None, help="the folder of the pictures; if not given, looked for nearby"),
    Parameter("truth", "choice", "auto", choices=("auto", "keypoints", "instances", "captions"),
              help="what to read; what there is, in this order"),
    Parameter("masks", "bool", True, help="whether instances have masks"),
    Parameter("skeleton", "text", None, help="a skeleton's name or TOML file, where names do not tell"),
), "COCO's JSON: keypoints, instances with boxes and masks, or captions",
    recognises=lambda place: place.ending == "json")
# fmt: on
