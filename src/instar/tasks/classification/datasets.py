"""Classes of images as truth: of folders with one sub-folder per class, and of COCO's objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from instar.case import Case
from instar.datasets.coco import COCO
from instar.datasets.dataset import PATH, Dataset, DatasetFamily
from instar.datasets.folder import FOLDER
from instar.outputs.detections import Detections
from instar.outputs.labels import Labels
from instar.spelling import Parameter


def _labelled(opened: Dataset, label: Callable[[Case], Labels | None], name: str) -> Dataset:
    """The cases of a dataset with classes for truth."""

    def cases() -> Iterator[Case]:
        return (replace(case, truth=label(case)) for case in opened.cases())

    return replace(opened, name=name, cases=cases, truth=Labels.kind)


def _class_folders(name: str, *, path: str) -> Dataset:
    if not Path(path).is_dir():
        raise FileNotFoundError(f"{path}: there is no such folder; class-folders takes one with a sub-folder per class")
    opened = FOLDER.open(name, path=path)
    if all("/" not in case.id for case in opened.cases()):
        raise ValueError(f"{path}: its images lie in no sub-folder; class-folders takes one sub-folder per class")
    return _labelled(opened, _class_of_folder, name)


def _class_of_folder(case: Case) -> Labels | None:
    folder, inside, _ = case.id.partition("/")
    return Labels.from_scores([folder]) if inside else None


def _coco_classes(name: str, *, path: str, images: str | None) -> Dataset:
    opened = COCO.open(name, path=path, images=images, truth="instances", masks=False, skeleton=None)
    return _labelled(opened, _classes_by_area, name)


def _classes_by_area(case: Case) -> Labels | None:
    """The classes of an image's objects, the one that takes most of it first."""
    if not isinstance(case.truth, Detections):
        return None
    areas: Counter[str] = Counter()
    for label, (x0, y0, x1, y1) in zip(case.truth.labels, case.truth.boxes.tolist(), strict=True):
        areas[label] += round((x1 - x0) * (y1 - y0))
    return Labels.from_scores([label for label, _ in areas.most_common()])


FAMILIES: Mapping[str, DatasetFamily] = {
    "class-folders": DatasetFamily(
        "class-folders", _class_folders, (PATH,), "a folder with one sub-folder of images per class"
    ),
    "coco-classes": DatasetFamily(
        "coco-classes",
        _coco_classes,
        (PATH, Parameter("images", "text", None, help="the folder of the images; if not given, looked for nearby")),
        "COCO's instances as classes of images, the one that takes most of the image first",
    ),
}
