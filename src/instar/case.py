"""Case: one source input with an id and, where there is one, its ground truth."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Protocol

import cv2
import numpy as np
import numpy.typing as npt
import xxhash

from instar.image import (
    MOST_PIXELS,
    Crop,
    Unreadable,
    decode_image,
    encoded_size,
    file_bytes,
    quiet_opencv,
    video_frame,
)
from instar.scene import Classes, Scene, Track, decode_classes
from instar.shapes import Shape
from instar.warp import Resampling, Size, Warp

__all__ = ["Case", "Input", "case_id", "read_input"]


class Input(Protocol):
    """What a system is given: a picture, a scene, or an input of another package."""

    kind: ClassVar[str]

    @property
    def size(self) -> Size:
        """Width and height in pixels."""
        ...

    @property
    def nbytes(self) -> int: ...

    def warped(self, warp: Warp, resampling: Resampling = ...) -> Input: ...

    def content_hash(self) -> str: ...

    def properties(self) -> dict[str, float]:
        """What is measured of it, to slice results by later."""
        ...

    def picture(self) -> npt.NDArray[np.uint8]:
        """What answers are drawn on, (H, W, 3) in RGB order."""
        ...

    def shapes(self) -> list[Shape]:
        """What is drawn of the input besides its picture."""
        ...


@dataclass(frozen=True, slots=True)
class Case:
    """One source input.

    `path` is where it is read from (`frame` numbers a video's frames, `crop` is the part that is taken of the
    picture, `track` is what a scene adds to the map that lies there); `input` holds it instead when it exists only in
    memory. `truth` is an output of the kind the dataset annotates, in the same pixel coordinates as the image once its
    EXIF orientation and the crop are applied; `attributes` are the user's own columns.
    """

    id: str
    path: str | None = None
    frame: int | None = None
    crop: Crop | None = None
    track: Track | None = None
    input: Input | None = None
    truth: object | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.id:
            raise ValueError("a case needs an id that is not empty")
        if self.path is None and self.input is None:
            raise ValueError(f"case {self.id!r} has neither a path nor an input")
        if self.crop is not None and (self.input is not None or self.track is not None):
            raise ValueError(f"case {self.id!r} has a crop, which is of a picture at a path, and an input or a track")


def case_id(path: Path, root: Path) -> str:
    """A file's id: its NFC path relative to the dataset's root, with forward slashes."""
    return unicodedata.normalize("NFC", path.relative_to(root).as_posix())


def read_input(case: Case) -> tuple[Input, str]:
    """A case's input and the hash of its content: of the file's bytes, with the crop; without a file, of the pixels."""
    if case.input is not None:
        if isinstance(case.input, Scene):
            _refuse_off_map(case, case.input)
        return case.input, case.input.content_hash()
    if case.track is not None:
        return _read_scene(case, case.track)
    assert case.path is not None
    if case.frame is not None:
        image = video_frame(case.path, case.frame)
        digest = image.content_hash()
    else:
        data = file_bytes(case.path)
        image, digest = decode_image(data, case.path), str(xxhash.xxh3_128_hexdigest(data))
    if case.crop is None:
        return image, digest
    try:
        return case.crop.of(image), str(xxhash.xxh3_128_hexdigest((digest + repr(tuple(case.crop))).encode()))
    except ValueError as error:
        raise Unreadable(f"{case.path}: {error}") from None


def _read_scene(case: Case, track: Track) -> tuple[Scene, str]:
    assert case.path is not None
    classes, digest = (None, "") if track.size else _class_map(case.path)
    try:
        scene = track.on(classes)
    except ValueError as error:
        raise Unreadable(f"{case.id}: {error}") from None
    _refuse_off_map(case, scene)
    return scene, str(xxhash.xxh3_128_hexdigest((digest + track.json()).encode()))


def _refuse_off_map(case: Case, scene: Scene) -> None:
    if not scene.on_map().all():
        x, y = scene.past[np.flatnonzero(~scene.on_map())[0]]
        raise Unreadable(
            f"{case.id}: the position ({x:g}, {y:g}) of the past is off the map of "
            f"{scene.size[0]} × {scene.size[1]} pixels"
        )


def _class_map(path: str) -> tuple[Classes, str]:
    """Many cases share a map: the last ones are kept, for as long as their files do not change."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    return _decoded_map(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=32)
def _decoded_map(path: str, *changed: int) -> tuple[Classes, str]:
    data = file_bytes(path)
    size = encoded_size(data)
    if size and size[0] * size[1] > MOST_PIXELS:
        raise Unreadable(f"{path}: {size[0]:,} × {size[1]:,} cells; at most {MOST_PIXELS:,} are read")
    try:
        with quiet_opencv:
            classes = decode_classes(data)
    except (ValueError, cv2.error) as error:
        raise Unreadable(f"{path}: {error}") from None
    classes.setflags(write=False)
    return classes, str(xxhash.xxh3_128_hexdigest(data))
