"""Datasets: readers of what users have, one file each."""

from __future__ import annotations

from pathlib import Path

from instar.datasets.attributes import with_attributes
from instar.datasets.captions import CAPTIONS
from instar.datasets.coco import COCO
from instar.datasets.dataset import Dataset, DatasetFamily, Place, missing, shortened
from instar.datasets.egohands import EGOHANDS
from instar.datasets.ethucy import ETH_UCY
from instar.datasets.flic import FLIC
from instar.datasets.folder import FOLDER
from instar.datasets.freihand import FREIHAND
from instar.datasets.function import from_function
from instar.datasets.ind import IND
from instar.datasets.listing import LIST
from instar.datasets.lsp import LSP
from instar.datasets.matlab import variables
from instar.datasets.onehand import ONEHAND10K
from instar.datasets.panoptic import PANOPTIC
from instar.datasets.remote import REMOTE
from instar.datasets.sample import SAMPLE
from instar.datasets.sdd import SDD
from instar.datasets.tracks import TRACKS
from instar.datasets.video import VIDEO
from instar.datasets.voc import VOC
from instar.datasets.yolo import YOLO
from instar.reading import most_pixels
from instar.registry import every, find, loaded_object
from instar.remote import address_in
from instar.spelling import Call, bind, nearest, parse_call, spell

__all__ = ["Dataset", "DatasetFamily", "Place", "dataset", "datasets", "shortened"]

_FAMILIES = (
    *(SDD, IND, EGOHANDS, FREIHAND, ONEHAND10K, PANOPTIC, VOC, YOLO, FLIC, LSP, TRACKS, CAPTIONS, ETH_UCY),
    *(FOLDER, VIDEO, COCO, LIST, SAMPLE, REMOTE),
)
"""In the order in which they are asked whether they recognise a path: those that look closer first."""
_BUILT_IN: dict[str, DatasetFamily] = {family.name: family for family in _FAMILIES}


def datasets() -> dict[str, DatasetFamily]:
    """Every kind of dataset by name: those of Instar and those of installed packages."""
    families = every("datasets", DatasetFamily, _BUILT_IN)
    return {name: with_attributes(family) for name, family in families.items()}


def dataset(spelling: str | Path) -> Dataset:
    """Open a dataset: a path, an address, `coco("annotations.json", images="photos")`, or `package.module:function`.

    A path that exists is recognised by what lies there: a folder, a picture, a list, a video, COCO's JSON, the files
    of FLIC, LSP and EgoHands, the folders of YOLO and Pascal VOC, the hands of FreiHAND, CMU and OneHand10K, the tracks
    of SDD, inD, ETH and UCY and your own.
    """
    most_pixels()  # a limit that is no number is said now, and not in every row
    text = str(spelling)
    if not text:
        raise ValueError("nothing was given; a dataset is a path, a name with parameters, or package.module:function")
    if (address := address_in(text)) is not None:
        return _opened(Call(REMOTE.name, (address,)))
    path = Path(text)
    if _exists(path):
        return _opened(Call(_recognised(path), (text,)))
    if isinstance(spelling, Path):
        raise missing(path)
    if "(" in text:
        return _opened(parse_call(text, what="dataset"))
    if ":" in text and not {"/", "\\"} & set(text):
        loaded = loaded_object(text)
        if isinstance(loaded, Dataset):
            return loaded
        if not callable(loaded):
            raise TypeError(f"{text} is a {type(loaded).__name__}, not a function or a Dataset")
        return from_function(loaded, text)
    if text in datasets():
        return _opened(Call(text))  # says which parameters it needs
    error, kinds = str(missing(path)), sorted(datasets())
    hint = "" if "did you mean" in error or "/" in text else nearest(text, kinds)
    raise FileNotFoundError(
        f"{error}{hint or ('' if error.endswith('?') else '.')} A dataset is a path, one of {', '.join(kinds)} "
        "with parameters, or package.module:function"
    )


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long, or with a NUL: no path, so a spelling
        return False


def _opened(call: Call) -> Dataset:
    if ":" in call.name:
        raise ValueError(f"{call.name}: a function takes no parameters here; set them in Python")
    family = find(
        "dataset",
        call.name,
        "datasets",
        DatasetFamily,
        _BUILT_IN,
        see="A path needs quotes inside parameters; your own is written package.module:function.",
    )
    family = with_attributes(family)
    values = bind(call, family.parameters, what="dataset")
    return family.open(spell(family.name, values, family.parameters), **values)


def _recognised(path: Path) -> str:
    """The kind of dataset that lies at an existing path. Readers of installed packages are asked first."""
    place = Place(path)
    families = every("datasets", DatasetFamily, _BUILT_IN)
    first = [family for name, family in families.items() if name not in _BUILT_IN]
    recognised = next((family.name for family in (*first, *_FAMILIES) if family.recognises(place)), None)
    if recognised is None:
        inside = f", which has the variables {', '.join(variables(path)) or 'none'}" if place.ending == "mat" else ""
        raise ValueError(f"{path}: no reader recognises this file{inside}; datasets are {', '.join(sorted(families))}")
    return recognised
