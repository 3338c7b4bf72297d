"""Image: pixels, and how they are read from files."""

from __future__ import annotations

import struct
import tempfile
import threading
import zlib
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import cv2
import numpy as np
import numpy.typing as npt
import xxhash

from instar.headers import encoded_size as encoded_size
from instar.headers import header_of
from instar.headers import png_chunks as png_chunks
from instar.json_values import PNG
from instar.reading import Unreadable as Unreadable
from instar.reading import file_bytes as file_bytes
from instar.reading import image_bytes, too_many_pixels
from instar.shapes import Shape
from instar.warp import Resampling, Size, Warp, warp_pixels

Pixels = npt.NDArray[np.uint8]

_Decoded = npt.NDArray[Any]

SHOWN = 1024
"""The most pixels that an image has along a side where a notebook shows it."""


@dataclass(frozen=True, slots=True, eq=False)
class Image:
    """An image: `uint8`, RGB, (H, W, 3), read-only."""

    pixels: Pixels

    kind: ClassVar[str] = "image"
    deferred: ClassVar[bool] = False
    """Whether its follow-ups are made when they are asked for, all that are alike together: a part costs extra."""

    def __post_init__(self) -> None:
        pixels = self.pixels
        array = isinstance(pixels, np.ndarray)
        if not array or pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
            what = f"{pixels.dtype} {pixels.shape}" if array else type(pixels).__name__
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

    def operated(self, name: str, rng: np.random.Generator, values: Mapping[str, Any]) -> Image | None:
        """What the operation of a family makes of an image that lies on a device; None: this one does not."""

    def part(self, place: tuple[slice, slice]) -> Image:
        """Some rows and columns of it."""
        return Image(self.pixels[place])

    def covered(self, other: Image, mask: Pixels, place: tuple[slice, slice] | None = None) -> Image:
        """Another image over it where a mask is not 0: over the whole, or over the part at a place."""
        pixels = self.pixels.copy()
        cv2.copyTo(other.pixels, mask, pixels if place is None else pixels[place])
        return Image(pixels)

    def content_hash(self) -> str:
        return xxhash.xxh3_128_hexdigest(repr(self.pixels.shape).encode() + self.pixels.tobytes())

    def properties(self) -> dict[str, float]:
        return image_properties(self)

    def picture(self) -> Pixels:
        """What answers are drawn on: the image itself."""
        return self.pixels

    def _repr_png_(self) -> bytes:
        """What a notebook shows: the image, smaller where it is large."""
        pixels, scale = self.pixels, SHOWN / max(self.size)
        if scale < 1:
            wide, high = (max(1, round(side * scale)) for side in self.size)
            pixels = np.asarray(cv2.resize(pixels, (wide, high), interpolation=cv2.INTER_AREA), np.uint8)
        return bytes(cv2.imencode(".png", cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR))[1].tobytes())

    def shapes(self) -> list[Shape]:
        """What is drawn of the input besides its picture: nothing."""
        return []

    @classmethod
    def blank(cls, size: Size) -> Image:
        return cls(np.zeros((size[1], size[0], 3), np.uint8))

    @property
    def track(self) -> None:
        """An image is its pixels alone."""

    def check(self) -> None:
        """Every image can be answered."""

    def plain(self) -> Pixels:
        return self.pixels

    def to_json(self) -> bytes:
        # put together by hand: json would look for quotes in megabytes of base64
        png = b64encode(fast_png(self.pixels, 0))
        return b'{"kind": "image", "width": %d, "height": %d, "png": "%s"}' % (*self.size, png)

    def encoded(self) -> tuple[str, bytes]:
        return "png", small_png(self.pixels)


def fast_png(pixels: Pixels, level: int) -> bytes:
    """RGB or grey, without the filters that make files small and slow.

    Photos are not compressed (level 0): 1 ms for 640×480 where OpenCV takes 15, and they are read five times as fast.
    A class map (level 1) shrinks to a thirtieth in the time that OpenCV takes, and is read as much faster.
    """
    height, width = pixels.shape[:2]
    rows = np.zeros((height, 1 + pixels.size // height), np.uint8)  # each begins with its filter, 0 for none
    rows[:, 1:] = pixels.reshape(height, -1)

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(name)))

    header = struct.pack(">IIBBBBB", width, height, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    data = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows.data, level)), chunk(b"IEND", b"")
    return PNG + b"".join(data)


def small_png(pixels: Pixels) -> bytes:
    """RGB or grey, lossless; pressed hard enough for photographs and no longer than that takes."""
    bgr = cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR) if pixels.ndim == 3 else pixels
    return cv2.imencode(".png", bgr, [cv2.IMWRITE_PNG_COMPRESSION, 1])[1].tobytes()


class Crop(NamedTuple):
    """A part of an image: the pixels from (x0, y0) up to (x1, y1), scaled to width × height.

    It may reach beyond the image's edges; there it is black.
    """

    x0: int
    y0: int
    x1: int
    y1: int
    width: int
    height: int

    def of(self, image: Image) -> Image:
        """The part as an image of its own. What has no area, or nothing of the image, raises ValueError."""
        high, wide = self.y1 - self.y0, self.x1 - self.x0
        if min(high, wide, self.width, self.height) < 1:
            raise ValueError(f"{self} has no area")
        for size in ((wide, high), (self.width, self.height)):
            if reason := too_many_pixels(*size):
                raise ValueError(f"{self} has {reason}")
        left, top = max(self.x0, 0), max(self.y0, 0)
        part = image.pixels[top : max(self.y1, 0), left : max(self.x1, 0)]
        if not part.size:
            raise ValueError(f"{self} lies outside of the image, {image.size[0]} × {image.size[1]} pixels")
        cut = np.zeros((high, wide, 3), np.uint8)
        cut[top - self.y0 :, left - self.x0 :][: part.shape[0], : part.shape[1]] = part
        shrinks = self.width < wide or self.height < high
        return Image(cut).warped(Warp.resize((wide, high), (self.width, self.height)), "area" if shrinks else "linear")

    def points(self, xy: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Where points (…, 2) of the image lie in the part. NaN stays NaN.

        >>> Crop(10, 20, 30, 40, 40, 40).points([[10, 20], [25, 30]])
        array([[ 0.,  0.],
               [30., 20.]])
        """
        scale = self.width / (self.x1 - self.x0), self.height / (self.y1 - self.y0)
        return np.asarray((np.asarray(xy, np.float64) - (self.x0, self.y0)) * scale)


# --- reading ----------------------------------------------------------------------------------------


def decode_image(data: bytes, name: str) -> Image:
    """An encoded image as RGB: EXIF orientation applied, 16-bit, grey, palette converted, alpha on white.

    What the bytes are decides, not the name. Of several frames or pages the first is taken. A truncated
    image raises Unreadable, even where a decoder would fill the rest with grey.
    """
    if not data:
        raise Unreadable(f"{name}: the file is empty")
    header = header_of(data)
    if header.lack:
        raise Unreadable(f"{name}: truncated ({header.lack}, {len(data):,} bytes)")
    if header.size and (reason := too_many_pixels(*header.size)):
        raise Unreadable(f"{name}: {reason}")
    if not header.kind:  # nothing is decoded of which nobody knows how large it becomes
        raise Unreadable(f"{name}: not an image that OpenCV can read, or damaged ({len(data):,} bytes)")
    try:
        with quiet_opencv:
            pixels = _decoded(_without_profile(data) if header.kind == "png" else data, header.kind)
        if pixels is None:
            raise Unreadable(f"{name}: not an image that OpenCV can read, or damaged ({len(data):,} bytes)")
        return Image(_turned(pixels, header.orientation))
    except (cv2.error, MemoryError, OverflowError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise Unreadable(f"{name}: {lines[-1]}") from None
    except _NotForEyes as error:
        raise Unreadable(f"{name}: {error}") from None


def _without_profile(data: bytes) -> bytes:
    """A PNG less its colour profile, which is not applied; of many an editor's libpng complains on stderr."""
    for kind, start, end in png_chunks(data):
        if kind == b"iCCP":
            return data[:start] + data[end:]
        if kind == b"IDAT":
            break
    return data


class _NotForEyes(ValueError):
    """Pixels that nobody says how to show."""


_NO_BLACK = "its pixels are {}, of which nobody says what is black and what white; save it with 8 or 16 bits"


def _turned(pixels: Pixels, orientation: int) -> Pixels:
    """The image upright: 2 to 8 are the flips and quarter turns of EXIF."""
    if orientation in (5, 6, 7, 8):
        pixels = np.asarray(cv2.transpose(pixels), dtype=np.uint8)
    flip = {2: 1, 3: -1, 4: 0, 6: 1, 7: -1, 8: 0}.get(orientation)
    return pixels if flip is None else np.asarray(cv2.flip(pixels, flip), dtype=np.uint8)


def _decoded(data: bytes, kind: str) -> Pixels | None:
    """RGB as it is stored; None where OpenCV cannot decode it.

    OpenCV's own handling of EXIF differs between formats and versions, so it is switched off.
    """
    if kind == "float":
        raise _NotForEyes(_NO_BLACK.format("floating point"))
    buffer = np.frombuffer(data, dtype=np.uint8)
    plain = cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
    if kind == "jpeg":
        if _RGB is not None:
            return cv2.imdecode(buffer, _RGB | cv2.IMREAD_IGNORE_ORIENTATION)  # type: ignore[return-value]
        return bgr_to_rgb(cv2.imdecode(buffer, plain))
    full: _Decoded | None = cv2.imdecode(buffer, cv2.IMREAD_UNCHANGED)
    if full is None:
        return _first_of_gif(data) if kind == "gif" else None
    if full.dtype not in (np.uint8, np.uint16):
        raise _NotForEyes(_NO_BLACK.format(full.dtype))
    if full.ndim == 3 and full.shape[2] == 4:
        return _on_white(full)
    if full.ndim == 3 and full.shape[2] == 3 and full.dtype == np.uint8:
        return bgr_to_rgb(full)
    return bgr_to_rgb(cv2.imdecode(buffer, plain))


_RGB: int | None = getattr(cv2, "IMREAD_COLOR_RGB", None)  # since 4.11; the decoder's own order, at no cost


def bgr_to_rgb(bgr: _Decoded | None) -> Pixels | None:
    # In place: another few hundred thousand fresh bytes cost more than exchanging channels.
    return None if bgr is None else np.asarray(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB, dst=bgr), dtype=np.uint8)


def _on_white(bgra: _Decoded) -> Pixels:
    """Transparent pixels show white, as in most viewers."""
    top = np.iinfo(bgra.dtype).max
    flat = (bgra[..., 2::-1] >> 8 if top > 255 else bgra[..., 2::-1]).astype(np.uint8)
    alpha = bgra[..., 3:]
    if (alpha == top).all():
        return flat
    part = alpha / np.float32(top)
    return np.asarray(np.rint(flat * part + 255 * (1 - part)), dtype=np.uint8)


def _first_of_gif(data: bytes) -> Pixels | None:
    """OpenCV decodes GIF since 4.12; its video reader does in every version, but from files only."""
    with tempfile.TemporaryDirectory(prefix="instar-") as folder:
        path = Path(folder, "image.gif")
        path.write_bytes(data)
        video = cv2.VideoCapture(str(path))
        try:
            ok, pixels = video.read()
        finally:
            video.release()
    return bgr_to_rgb(pixels) if ok else None


class _Quiet:
    """OpenCV's log is silent inside: what it would print is raised as Unreadable. Threads may overlap."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.level = 0

    def __enter__(self) -> None:
        with self.lock:
            if self.depth == 0:
                self.level = _set_log_level(0)
            self.depth += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth == 0:
                _set_log_level(self.level)


def _set_log_level(level: int) -> int:
    """The level before. OpenCV 4 and 5 have it in different places."""
    set_level = getattr(cv2, "setLogLevel", None) or cv2.utils.logging.setLogLevel
    return int(set_level(level))


quiet_opencv = _Quiet()


def read_image(path: str | Path) -> Image:
    """Read an image file; raises Unreadable with the path and the reason."""
    return decode_image(image_bytes(path), str(path))


# --- what is measured ------------------------------------------------------------------------------


def image_properties(image: Image) -> dict[str, float]:
    """What can be measured of any image, to slice results by later.

    `brightness` and `contrast`: mean and standard deviation of luma (Rec. 601), 0 to 1. `saturation`: mean
    HSV saturation, 0 to 1, of pixels on a coarse grid. `sharpness`: mean square of the Laplacian of 8-bit luma,
    after averaging whole blocks of pixels until the longer side is below 640, so that sizes compare.

    >>> image_properties(Image(np.full((4, 4, 3), 255, np.uint8)))
    {'brightness': 1.0, 'contrast': 0.0, 'saturation': 0.0, 'sharpness': 0.0}
    """
    width, height = image.size
    luma = cv2.cvtColor(image.pixels, cv2.COLOR_RGB2GRAY)
    block = min(max(1, max(width, height) // 320), width, height)
    if block > 1:
        wide, high = width // block, height // block
        luma = cv2.resize(luma[: high * block, : wide * block], (wide, high), interpolation=cv2.INTER_AREA)
    mean, spread = cv2.meanStdDev(luma)
    step = max(1, max(width, height) // 80)
    saturation = cv2.mean(cv2.cvtColor(np.ascontiguousarray(image.pixels[::step, ::step]), cv2.COLOR_RGB2HSV))[1]
    edges = cv2.norm(cv2.Laplacian(luma, cv2.CV_16S), cv2.NORM_L2) ** 2 / luma.size
    return {
        "brightness": float(mean[0, 0]) / 255,
        "contrast": float(spread[0, 0]) / 255,
        "saturation": saturation / 255,
        "sharpness": edges,
    }


def picture_size(path: str) -> Size | None:
    """Width and height of an image as it is read, upright; from its first bytes where they tell. None: unreadable,
    or too large to be read."""
    try:
        header = header_of(image_bytes(path))
        if header.size is None:
            return read_image(path).size
    except Unreadable:
        return None
    width, height = header.size
    if too_many_pixels(width, height):
        return None
    return (height, width) if header.orientation in (5, 6, 7, 8) else (width, height)
