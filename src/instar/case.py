"""Case: one source input with an id and, where there is one, its ground truth. And the input types."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import xxhash

from instar.warp import Resampling, Size, Warp, warp_pixels

__all__ = ["Case", "Image", "Unreadable", "case_id", "decode_image", "read_image", "read_input"]

Pixels = npt.NDArray[np.uint8]


class Unreadable(ValueError):
    """An input that cannot be read; its message says which and why."""


@dataclass(frozen=True, slots=True, eq=False)
class Image:
    """A picture: `uint8`, RGB, (H, W, 3), read-only."""

    pixels: Pixels

    def __post_init__(self) -> None:
        pixels = self.pixels
        if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
            what = f"{pixels.dtype} {pixels.shape}" if isinstance(pixels, np.ndarray) else type(pixels).__name__
            raise ValueError(f"an image is a uint8 array (H, W, 3) in RGB order, got {what}")
        if 0 in pixels.shape:
            raise ValueError(f"an image has at least one pixel, got {pixels.shape}")
        view = pixels.view()
        view.setflags(write=False)
        object.__setattr__(self, "pixels", view)

    @property
    def size(self) -> Size:
        return self.pixels.shape[1], self.pixels.shape[0]

    @property
    def nbytes(self) -> int:
        return self.pixels.nbytes

    def warped(self, warp: Warp, resampling: Resampling = "linear") -> Image:
        return Image(warp_pixels(self.pixels, warp, resampling))

    def content_hash(self) -> str:
        return xxhash.xxh3_128_hexdigest(repr(self.pixels.shape).encode() + self.pixels.tobytes())


@dataclass(frozen=True, slots=True)
class Case:
    """One source input.

    `path` is where it is read from (`frame` numbers a video's frames); `input` holds it instead when it
    exists only in memory. `truth` is an output of the kind the dataset annotates, in the same pixel
    coordinates as the image once its EXIF orientation is applied; `attributes` are the user's own columns.
    """

    id: str
    path: str | None = None
    frame: int | None = None
    input: Image | None = None
    truth: object | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.id:
            raise ValueError("a case needs an id that is not empty")
        if self.path is None and self.input is None:
            raise ValueError(f"case {self.id!r} has neither a path nor an input")


def case_id(path: Path, root: Path) -> str:
    """A file's id: its NFC path relative to the dataset's root, with forward slashes."""
    return unicodedata.normalize("NFC", path.relative_to(root).as_posix())


def decode_image(data: bytes, name: str) -> Image:
    """An encoded picture as RGB, EXIF orientation applied; 16-bit, grey and palette converted, alpha on white."""
    if not data:
        raise Unreadable(f"{name}: the file is empty")
    buffer = np.frombuffer(data, dtype=np.uint8)
    try:
        decoded: npt.NDArray[Any] | None = cv2.imdecode(buffer, cv2.IMREAD_COLOR)
        if decoded is not None and not data.startswith(b"\xff\xd8"):
            decoded = _on_white(cv2.imdecode(buffer, cv2.IMREAD_UNCHANGED), decoded)
    except (cv2.error, MemoryError) as error:
        raise Unreadable(f"{name}: {str(error).strip().splitlines()[-1]}") from None
    if decoded is None:
        raise Unreadable(f"{name}: not a picture OpenCV can read, or damaged ({len(data):,} bytes)")
    return Image(np.asarray(cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB)))


def _on_white(full: npt.NDArray[Any] | None, flat: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """`flat` unless the picture has transparent pixels: those show white, as most viewers do."""
    if full is None or full.ndim != 3 or full.shape[2] != 4 or full.shape[:2] != flat.shape[:2]:
        return flat
    alpha = full[..., 3:] / np.float32(np.iinfo(full.dtype).max if full.dtype.kind == "u" else 1)
    if (alpha == 1).all():
        return flat
    return np.asarray(np.rint(flat * alpha + 255 * (1 - alpha)), dtype=np.uint8)


def read_image(path: str | Path) -> Image:
    """Read a picture file; raises Unreadable with the path and the reason."""
    return decode_image(_bytes(path), str(path))


def _bytes(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror or error}") from None


def _video_frame(path: str, frame: int) -> Image:
    if not Path(path).is_file():
        raise Unreadable(f"{path}: no such file")
    video = cv2.VideoCapture(path)
    try:
        video.set(cv2.CAP_PROP_POS_FRAMES, frame)
        ok, pixels = video.read()
    finally:
        video.release()
    if not ok or pixels is None:
        raise Unreadable(f"{path}: frame {frame} cannot be decoded")
    return Image(np.asarray(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB), dtype=np.uint8))


def read_input(case: Case) -> tuple[Image, str]:
    """A case's input and the hash of its content (of the file's bytes, or of the pixels where there is no file)."""
    if case.input is not None:
        return case.input, case.input.content_hash()
    assert case.path is not None
    if case.frame is not None:
        image = _video_frame(case.path, case.frame)
        return image, image.content_hash()
    data = _bytes(case.path)
    return decode_image(data, case.path), str(xxhash.xxh3_128_hexdigest(data))
