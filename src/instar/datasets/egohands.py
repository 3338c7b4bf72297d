"""EgoHands, hands seen by who wears the camera: `metadata.mat` beside `_LABELLED_SAMPLES/`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from instar.case import Case
from instar.datasets.dataset import PATH, Dataset, DatasetFamily, Place, counted, existing, missing, nfc, shortened
from instar.datasets.matlab import load, variables
from instar.datasets.objects import Left, Thing, truth_of, within
from instar.image import picture_size
from instar.outputs.detections import Detections
from instar.spelling import Parameter

_FILE, _SAMPLES = "metadata.mat", "_LABELLED_SAMPLES"
_HANDS = ("myleft", "myright", "yourleft", "yourright")
_SIZE = (1280, 720)
"""Of all its frames."""
_ABOUT = {"activity": "activity_id", "location": "location_id", "viewer": "ego_viewer_id", "partner": "partner_id"}


def _is_egohands(place: Place) -> bool:
    if place.ending == "mat":
        return "video" in variables(place.path)
    return (place.path / _FILE).is_file() and (place.path / _SAMPLES).is_dir()


@dataclass(slots=True)
class _Frame:
    id: str
    path: str
    things: list[Thing]
    attributes: dict[str, object]


def _open(name: str, *, path: str, images: str | None, classes: str, masks: bool) -> Dataset:
    place = existing(path)
    file = place / _FILE if place.is_dir() else place
    root = (Path(images) if images else file.parent / _SAMPLES).absolute()
    if not root.is_dir():
        raise missing(root, "folder of frames")
    videos = np.atleast_1d(load(file, "video"))
    _needs(videos.dtype.names, ("video_id", "labelled_frames"), "video", file)
    left = Left()
    frames = [frame for video in videos for frame in _frames(video, root, classes, left, file)]
    if not frames:
        raise ValueError(f"{file}: no video in it has labelled frames")
    gone = [frame.id for frame in frames if not Path(frame.path).is_file()]
    if len(gone) == len(frames):
        raise FileNotFoundError(
            f'{file}: none of its frames (e.g. {gone[0]}) is in {root}; say where they are with images="folder"'
        )
    notes = [f"{counted(len(gone), 'frame')} not found: {shortened(gone)}"] if gone else []
    ordered = sorted(frames, key=lambda frame: frame.id)
    return Dataset(name, str(root), partial(_cases, ordered, masks), Detections.kind, tuple(notes + left.notes()))


def _needs(there: tuple[str, ...] | None, fields: tuple[str, ...], what: str, file: Path) -> None:
    for field in fields:
        if field not in (there or ()):
            raise ValueError(f"{file}: its {what} has no field {field!r}; there are {', '.join(there or ()) or 'none'}")


def _frames(video: Any, root: Path, classes: str, left: Left, file: Path) -> Iterator[_Frame]:
    folder = str(video["video_id"])
    attributes = {key: str(video[field]) for key, field in _ABOUT.items() if field in video.dtype.names}
    labelled = np.atleast_1d(video["labelled_frames"])
    if not labelled.size:
        return
    _needs(labelled.dtype.names, ("frame_num", *_HANDS), "labelled_frames", file)
    for entry in labelled:
        name = f"{folder}/frame_{int(entry['frame_num']):04d}.jpg"
        things = [thing for hand in _HANDS if (thing := _thing(entry[hand], hand, classes, f"{name} {hand}", left))]
        yield _Frame(nfc(name), str(root / name), things, {"video": folder, **attributes})


def _thing(corners: Any, hand: str, classes: str, place: str, left: Left) -> Thing | None:
    try:
        xy = np.asarray(corners, np.float64).reshape(-1, 2)
    except (TypeError, ValueError):
        left("whose corners are not (x, y)", place)
        return None
    if not xy.size:
        return None  # this hand is not in the frame
    xy = xy - 0.5  # MATLAB calls the centre of the first pixel 1, here it is 0.5
    if len(xy) < 3 or not np.isfinite(xy).all():
        left("with fewer than three corners, or corners that are no numbers", place)
        return None
    cut = within([*xy.min(0).tolist(), *xy.max(0).tolist()], _SIZE)
    if isinstance(cut, str):
        left(cut, place)
        return None
    return Thing(hand, "hand" if classes == "one" else hand, cut, [xy.ravel()])


def _cases(frames: list[_Frame], masks: bool) -> Iterator[Case]:
    for frame in frames:
        size = picture_size(frame.path) if masks and frame.things else None
        yield Case(frame.id, frame.path, truth=truth_of(frame.things, size, masks=masks), attributes=frame.attributes)


# fmt: off
EGOHANDS = DatasetFamily("egohands", _open, (
    PATH,
    Parameter("images", "text", None,
              help="the folder of the videos' frames; if not given, _LABELLED_SAMPLES beside metadata.mat"),
    Parameter("classes", "choice", "one", choices=("one", "four"),
              help="one: hand; four: myleft, myright, yourleft, yourright"),
    Parameter("masks", "bool", True, help="whether hands have masks"),
), "EgoHands' metadata.mat, with outlines of hands", recognises=_is_egohands)
# fmt: on
