"""Case: one source input with an id and, where there is one, its ground truth."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt
import xxhash

from instar.files import storable
from instar.image import Crop, Image, decode_image
from instar.reading import Unreadable, image_bytes
from instar.scene import Scene, Track
from instar.secrets import plain_address
from instar.shapes import Shape
from instar.video import video_frame
from instar.warp import Resampling, Size, Warp


class Input(Protocol):
    """What a system is given: an image, a scene, or an input of another package."""

    kind: ClassVar[str]

    @property
    def size(self) -> Size:
        """Width and height in pixels."""
        ...

    @property
    def nbytes(self) -> int: ...

    @property
    def track(self) -> Track | None:
        """What is stored with a case besides the path, where that alone does not say what the input is."""
        ...

    def check(self) -> None:
        """Raises ValueError, saying why, where no system can answer it."""
        ...

    def warped(self, warp: Warp, resampling: Resampling = ...) -> Self: ...

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

    def plain(self) -> object:
        """What a user's own function is given: the pixels of an image, a scene as it is."""
        ...

    def to_json(self) -> bytes:
        """What a program is given: a JSON object in ASCII, described in docs/process-systems.md."""
        ...

    def encoded(self) -> tuple[str, bytes]:
        """Its file in an export: how the name ends, and the content."""
        ...

    @classmethod
    def blank(cls, size: Size) -> Self:
        """An input of a size that shows nothing, to try transformations on."""
        ...


_INPUTS: Mapping[str, type[Input]] = {Image.kind: Image, Scene.kind: Scene}


def blank_input(kind: str, size: Size) -> Input:
    return _INPUTS[kind].blank(size)


@dataclass(frozen=True, slots=True)
class Case:
    """One source input.

    `path` is where it is read from (`frame` numbers a video's frames, `crop` is the part that is taken of the
    image, `track` is what a scene adds to the map that lies there); `input` holds it instead when it exists only in
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
    attributes: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.id:
            raise ValueError("a case needs an id that is not empty")
        # an id is a key of tables, texts and seeds: it must be the same before and after it was stored
        object.__setattr__(self, "id", storable(self.id))
        if self.path is None and self.input is None:
            raise ValueError(f"case {self.id!r} has neither a path nor an input")
        if self.crop is not None and (self.input is not None or self.track is not None):
            raise ValueError(f"case {self.id!r} has a crop, which is of an image at a path, and an input or a track")

    @property
    def kind(self) -> str:
        """The kind of its input."""
        return self.input.kind if self.input is not None else Scene.kind if self.track is not None else Image.kind

    @property
    def stored_track(self) -> Track | None:
        """What a run stores of its input besides the path."""
        return self.track if self.input is None else self.input.track


def case_id(path: Path, root: Path) -> str:
    """A file's id: its NFC path relative to the dataset's root, with forward slashes."""
    return unicodedata.normalize("NFC", path.relative_to(root).as_posix())


def read_input(case: Case) -> tuple[Input, str]:
    """A case's input and the hash of its content: of the file's bytes, with the crop; without a file, of the pixels."""
    try:
        if case.input is not None:
            input, digest = case.input, case.input.content_hash()
        else:
            assert case.path is not None
            input, digest = (
                _read_image(case.path, case.frame, case.crop) if case.track is None else case.track.read(case.path)
            )
        input.check()
    except Unreadable as error:
        path = case.path or ""
        if (shown := plain_address(path)) == path:
            raise
        raise Unreadable(str(error).replace(path, shown)) from None
    except ValueError as error:
        raise Unreadable(f"{case.id}: {error}") from None
    return input, digest


def content_hash(case: Case) -> str:
    """Return the hash that `read_input` returns, without decoding an image file. Raises Unreadable."""
    if case.path is None or case.input is not None or case.frame is not None or case.track is not None:
        return read_input(case)[1]
    return _image_hash(image_bytes(case.path), case.crop)


def _image_hash(content: bytes, crop: Crop | None) -> str:
    return _cropped_hash(str(xxhash.xxh3_128_hexdigest(content)), crop)


def _cropped_hash(digest: str, crop: Crop | None) -> str:
    return digest if crop is None else str(xxhash.xxh3_128_hexdigest((digest + repr(tuple(crop))).encode()))


def _read_image(path: str, frame: int | None, crop: Crop | None) -> tuple[Image, str]:
    if frame is not None:
        image = video_frame(path, frame)
        digest = _cropped_hash(image.content_hash(), crop)
    else:
        content = image_bytes(path)
        image, digest = decode_image(content, path), _image_hash(content, crop)
    try:
        return image if crop is None else crop.of(image), digest
    except ValueError as error:
        raise Unreadable(f"{path}: {error}") from None
