"""Datasets: readers of what users have, one file each."""

from __future__ import annotations

from pathlib import Path

from instar.datasets.attributes import with_attributes
from instar.datasets.captions import CAPTIONS, is_captions
from instar.datasets.coco import COCO
from instar.datasets.dataset import Dataset, DatasetFamily, missing, shortened
from instar.datasets.egohands import EGOHANDS, holds_egohands
from instar.datasets.ethucy import ETH_UCY, is_track_text
from instar.datasets.flic import FLIC
from instar.datasets.folder import FOLDER, is_picture
from instar.datasets.freihand import FREIHAND, holds_freihand
from instar.datasets.function import from_function
from instar.datasets.ind import IND, holds_ind
from instar.datasets.listing import LIST
from instar.datasets.lsp import CSV_HEADER, LSP
from instar.datasets.matlab import variables
from instar.datasets.onehand import ONEHAND10K, holds_onehand, is_joint_labels
from instar.datasets.panoptic import PANOPTIC, holds_panoptic, is_hand_list
from instar.datasets.sample import SAMPLE
from instar.datasets.sdd import SDD, holds_sdd
from instar.datasets.tracks import TRACKS, is_tracks_header
from instar.datasets.video import VIDEO, VIDEOS
from instar.datasets.voc import VOC, holds_voc
from instar.datasets.yolo import YOLO, holds_yolo
from instar.registry import every, find, loaded_object
from instar.spelling import Call, bind, nearest, parse_call, spell

__all__ = ["Dataset", "DatasetFamily", "dataset", "datasets", "shortened"]

_FAMILIES = (
    CAPTIONS,
    COCO,
    EGOHANDS,
    ETH_UCY,
    FLIC,
    FOLDER,
    FREIHAND,
    IND,
    LIST,
    LSP,
    ONEHAND10K,
    PANOPTIC,
    SAMPLE,
    SDD,
    TRACKS,
    VIDEO,
    VOC,
    YOLO,
)
_FOLDERS = (
    ("sdd", holds_sdd),
    ("ind", holds_ind),
    ("egohands", holds_egohands),
    ("freihand", holds_freihand),
    ("onehand10k", holds_onehand),
    ("panoptic", holds_panoptic),
    ("voc", holds_voc),
    ("yolo", holds_yolo),
)
_BUILT_IN: dict[str, DatasetFamily] = {family.name: family for family in _FAMILIES}


def datasets() -> dict[str, DatasetFamily]:
    """Every kind of dataset by name: those of Instar and those of installed packages."""
    families = every("datasets", DatasetFamily, _BUILT_IN)
    return {name: with_attributes(family) for name, family in families.items()}


def dataset(spelling: str | Path) -> Dataset:
    """Open a dataset: a path, `coco("annotations.json", images="photos")`, or `package.module:function`.

    A path that exists is recognised by what lies there: a folder, a picture, a list, a video, COCO's JSON, the files
    of FLIC, LSP and EgoHands, the folders of YOLO and Pascal VOC, the hands of FreiHAND, CMU and OneHand10K, the tracks
    of SDD, inD, ETH and UCY and your own.
    """
    text = str(spelling)
    if not text:
        raise ValueError("nothing was given; a dataset is a path, a name with parameters, or package.module:function")
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
        f"{error}{hint or '.'} A dataset is a path, one of {', '.join(kinds)} "
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
    """The kind of dataset that lies at an existing path."""
    ending = path.suffix.lower().removeprefix(".")
    if path.is_dir():
        return next((kind for kind, holds in _FOLDERS if holds(path)), "folder")
    if is_picture(path.name):
        return "folder"
    if ending in VIDEOS:
        return "video"
    if ending == "json":
        return "panoptic" if is_hand_list(_start(path).decode(errors="replace")) else "coco"
    if ending in ("yaml", "yml"):
        return "yolo"
    if ending == "mat":
        names = variables(path)
        for variable, kind in (("examples", "flic"), ("joints", "lsp"), ("video", "egohands")):
            if variable in names:
                return kind
        raise ValueError(
            f"{path}: a .mat file is FLIC's (with 'examples'), LSP's (with 'joints') or EgoHands' (with "
            f"'video'), this one has {', '.join(names) or 'nothing'}"
        )
    start = _start(path)
    if ending == "csv" and start.removeprefix(b"\xef\xbb\xbf").startswith(",".join(CSV_HEADER).encode()):
        return "lsp"
    text = start.decode("utf-8-sig", errors="replace")
    if ending == "csv" and is_tracks_header(text.partition("\n")[0]):
        return "tracks"
    if is_captions(text):
        return "captions"
    if ending == "txt" and is_track_text(text):
        return "eth-ucy"
    if ending == "txt" and is_joint_labels(text):
        return "onehand10k"
    if b"\0" in start:
        raise ValueError(
            f"{path}: neither a picture, a video, nor a text file; datasets are {', '.join(sorted(_BUILT_IN))}"
        )
    return "list"


def _start(path: Path) -> bytes:
    if not path.is_file():
        raise ValueError(f"{path}: neither a folder nor a regular file")
    with path.open("rb") as file:
        return file.read(4096)
