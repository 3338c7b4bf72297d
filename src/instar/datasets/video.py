"""The frames of a video."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from instar.case import Case
from instar.datasets.dataset import PATH, Dataset, DatasetFamily, existing, nfc
from instar.image import Unreadable
from instar.spelling import Parameter
from instar.video import count_frames

VIDEOS = ("3gp", "avi", "flv", "m4v", "mkv", "mov", "mp4", "mpeg", "mpg", "mts", "ogv", "ts", "webm", "wmv")


def _cases(path: Path, frames: range, digits: int) -> Iterator[Case]:
    for frame in frames:
        yield Case(f"{nfc(path.name)}#{frame:0{digits}d}", str(path), frame)


def _open(name: str, *, path: str, stride: int, start: int, stop: int | None) -> Dataset:
    file = existing(path, "video", Path.is_file)
    try:
        count = count_frames(file, stop=stop)
    except Unreadable as error:
        raise ValueError(str(error)) from None
    frames = range(start, count, stride)
    if not frames:
        raise ValueError(
            f"{path}: no frame from {start} on; {count:,} can be decoded"
            + (f" before {stop}" if stop is not None else "")
        )
    notes = []
    if stop is not None and count < stop:
        notes.append(f"the video ends after {count:,} frames, before {stop:,}")
    if stride > 1:
        notes.append(f"every {stride}th frame: {len(frames):,} of {count - start:,}")
    # Six digits sort any video of nine hours; a longer one gets as many as it needs.
    cases = partial(_cases, file, frames, max(6, len(str(count))))
    return Dataset(name, str(file.parent), cases, notes=tuple(notes))


# fmt: off
VIDEO = DatasetFamily("video", _open, (
    PATH,
    Parameter("stride", "int", 1, low=1, help="take every n-th frame"),
    Parameter("start", "int", 0, low=0, help="the first frame taken"),
    Parameter("stop", "int", None, low=1, help="the frame before which to stop; the end if not given"),
), "the frames of a video", recognises=lambda place: place.ending in VIDEOS)
# fmt: on
