"""Scene: a semantic map seen from above, and the past of one person on it. And how it is stored: a Track."""

from __future__ import annotations

import colorsys
import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import cv2
import numpy as np
import numpy.typing as npt
import xxhash

from instar.headers import encoded_size
from instar.image import fast_png, quiet_opencv
from instar.reading import Unreadable, image_bytes, place_of, too_many_pixels
from instar.shapes import Shape
from instar.warp import Resampling, Size, Warp, inside, warp_pixels

Classes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]

BACKGROUND = "background"
"""The name of class 0: nothing is known of the cell, or it lies outside the map."""

MOST_CELLS = 1 << 28
"""Of a class map that is stored in a run."""

_PAST = (31, 90, 210)
_COLOURS: Mapping[str, tuple[int, int, int]] = {
    BACKGROUND: (238, 238, 238),
    "pavement": (222, 207, 187),
    "road": (150, 152, 158),
    "structure": (122, 86, 74),
    "terrain": (196, 219, 163),
    "tree": (92, 138, 84),
}
_UNEVEN = 0.01
"""A warp whose two scales differ by more than this has no one length for a metre."""


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """What a trajectory predictor is given: a class for every cell of a map, and where a person was.

    `classes` (H, W) of uint8 are indices into `names`, whose first is `background`; `past` (P, 2) are positions
    in pixels of the map, oldest first, `rate` of them per second. The predictor is asked for the next `steps`
    positions at the same rate. `metres_per_pixel` is None where nobody knows.

    >>> scene = Scene(np.ones((40, 60), np.uint8), ("background", "pavement"), [[10, 20], [12, 20]], steps=12)
    >>> scene.size, scene.warped(Warp.mirror(scene.size, "h")).past.tolist()
    ((60, 40), [[50.0, 20.0], [48.0, 20.0]])
    """

    classes: Classes
    names: tuple[str, ...]
    past: Floats
    steps: int
    rate: float = 2.5
    metres_per_pixel: float | None = None

    kind: ClassVar[str] = "scene"

    def __post_init__(self) -> None:
        classes, past = np.asarray(self.classes), np.array(self.past, np.float64)
        if classes.dtype != np.uint8 or classes.ndim != 2 or 0 in classes.shape:
            raise ValueError(f"a scene's classes are a uint8 array (H, W), got {classes.dtype} {classes.shape}")
        if not self.names or self.names[0] != BACKGROUND or len(set(self.names)) < len(self.names):
            raise ValueError(f"class names are different and begin with {BACKGROUND!r}, got {', '.join(self.names)}")
        if (top := int(classes.max())) >= len(self.names):
            raise ValueError(
                f"the map has cells of class {top}, the names end with {len(self.names) - 1} ({self.names[-1]})"
            )
        if past.size == 0:
            raise ValueError("the past is empty; it takes at least one position")
        if past.ndim != 2 or past.shape[1] != 2:
            raise ValueError(f"the past is (P, 2) as x, y in pixels, got shape {past.shape}")
        if not np.isfinite(past).all():
            raise ValueError(f"position {np.flatnonzero(~np.isfinite(past).all(1))[0]} of the past is not a number")
        if self.steps < 1 or not self.rate > 0 or not (self.metres_per_pixel is None or self.metres_per_pixel > 0):
            raise ValueError(
                f"steps, rate and metres per pixel are positive, got {self.steps}, {self.rate} "
                f"and {self.metres_per_pixel}"
            )
        for name, value in (
            ("names", tuple(self.names)),
            ("steps", int(self.steps)),
            ("rate", float(self.rate)),
            ("metres_per_pixel", None if self.metres_per_pixel is None else float(self.metres_per_pixel)),
        ):
            object.__setattr__(self, name, value)  # numpy's own numbers are not JSON's
        classes = classes.view()
        for array in (classes, past):
            array.setflags(write=False)
        object.__setattr__(self, "classes", classes)
        object.__setattr__(self, "past", past)

    @property
    def size(self) -> Size:
        return self.classes.shape[1], self.classes.shape[0]

    @property
    def nbytes(self) -> int:
        return self.classes.nbytes + self.past.nbytes

    @property
    def position(self) -> Floats:
        """Where the person is now: the last position of the past."""
        return np.asarray(self.past[-1])

    @property
    def ground(self) -> str:
        """The class of the cell in which the person is now."""
        column, row = np.floor(self.position).astype(int).clip(0, np.array(self.size) - 1)
        return self.names[int(self.classes[row, column])]

    def mask(self, *names: str) -> npt.NDArray[np.bool_]:
        """The cells of these classes; a class that the map does not know has none."""
        table = np.zeros(256, bool)
        table[[self.names.index(name) for name in names if name in self.names]] = True
        return np.asarray(table[self.classes])

    def on_map(self) -> npt.NDArray[np.bool_]:
        """Which positions of the past lie in the frame."""
        return inside(self.past, self.size)

    def warped(self, warp: Warp, resampling: Resampling = "nearest") -> Scene:
        """Carried by a warp: cells take the nearest class, and metres per pixel follow where they can."""
        metres = self.metres_per_pixel
        if metres is not None:
            large, small = np.linalg.svd(warp.matrix[:2, :2], compute_uv=False)
            metres = metres / float(np.sqrt(large * small)) if large <= small * (1 + _UNEVEN) else None
        return Scene(
            warp_pixels(self.classes, warp, "nearest"),
            self.names,
            warp.points(self.past),
            self.steps,
            self.rate,
            metres,
        )

    def content_hash(self) -> str:
        digest = xxhash.xxh3_128(repr(self.classes.shape).encode() + self.classes.tobytes())
        digest.update(Track.of(self).json().encode())
        return str(digest.hexdigest())

    def properties(self) -> dict[str, float]:
        """Nothing is measured of a scene: brightness and sharpness belong to photographs."""
        return {}

    def picture(self) -> npt.NDArray[np.uint8]:
        """The map as colours, RGB, to draw on."""
        return np.asarray(cv2.applyColorMap(self.classes, _palette(self.names)[:, None]), np.uint8)

    def shapes(self) -> list[Shape]:
        """The past, to draw on the map."""
        lines = np.concatenate([self.past[:-1], self.past[1:]], 1)
        return [
            Shape("lines", lines, "the past", colour=_PAST),
            Shape("points", np.asarray(self.past), "the past", colour=_PAST),
        ]

    @classmethod
    def blank(cls, size: Size) -> Scene:
        return cls(np.zeros(size[::-1], np.uint8), (BACKGROUND,), np.array([[size[0] / 2, size[1] / 2]]), 1)

    @property
    def track(self) -> Track:
        return Track.of(self)

    def check(self) -> None:
        """The person must be on the map all the time."""
        if not self.on_map().all():
            x, y = self.past[np.flatnonzero(~self.on_map())[0]]
            raise ValueError(
                f"the position ({x:g}, {y:g}) of the past is off the map of {self.size[0]} × {self.size[1]} pixels"
            )

    def plain(self) -> Scene:
        return self

    def to_json(self) -> bytes:
        width, height = self.size
        return json.dumps(
            {
                "kind": self.kind,
                "width": width,
                "height": height,
                "classes": b64encode(fast_png(self.classes, 1)).decode("ascii"),
                "names": list(self.names),
                "past": self.past.tolist(),
                "steps": self.steps,
                "rate": self.rate,
                "metres_per_pixel": self.metres_per_pixel,
            },
            allow_nan=False,
        ).encode("ascii")

    def encoded(self) -> tuple[str, bytes]:
        return "json", self.to_json()


@lru_cache(maxsize=16)
def _palette(names: tuple[str, ...]) -> npt.NDArray[np.uint8]:
    """A pale colour per class; those that nobody named before are told apart by hue."""
    table = np.zeros((256, 3), np.uint8)
    for number, name in enumerate(names):
        hue = colorsys.hls_to_rgb(number * 0.618 % 1, 0.8, 0.5)
        table[number] = _COLOURS.get(name, tuple(int(255 * part) for part in hue))
    return table


@dataclass(frozen=True, slots=True)
class Track:
    """A scene less its map, as it is stored with a case. `size` is that of the frame where there is no map."""

    past: tuple[tuple[float, float], ...]
    names: tuple[str, ...]
    steps: int
    rate: float = 2.5
    metres_per_pixel: float | None = None
    size: Size | None = None

    @classmethod
    def of(cls, scene: Scene) -> Track:
        return cls(
            tuple((float(x), float(y)) for x, y in scene.past),
            scene.names,
            scene.steps,
            scene.rate,
            scene.metres_per_pixel,
        )

    def on(self, classes: Classes | None) -> Scene:
        """The scene on a map; without one, on a background of the track's own size."""
        if classes is None:
            if self.size is None:
                raise ValueError("a track without a map says how large its frame is")
            if reason := too_many_pixels(*self.size):
                raise ValueError(f"its frame has {reason}")
            classes = np.zeros(self.size[::-1], np.uint8)
        past = np.array(self.past, np.float64).reshape(-1, 2)
        return Scene(classes, self.names, past, self.steps, self.rate, self.metres_per_pixel)

    def read(self, path: str) -> tuple[Scene, str]:
        """The scene on the map that lies at a path, and the hash of their content."""
        classes, digest = (None, "") if self.size else _class_map(path)
        return self.on(classes), str(xxhash.xxh3_128_hexdigest((digest + self.json()).encode()))

    def json(self) -> str:
        return json.dumps({each.name: getattr(self, each.name) for each in fields(self)})

    @classmethod
    def from_json(cls, text: str) -> Track:
        values = json.loads(text)
        values["past"] = tuple((x, y) for x, y in values["past"])
        values["names"] = tuple(values["names"])
        values["size"] = tuple(values["size"]) if values["size"] else None
        return cls(**values)


def decode_classes(data: bytes) -> Classes:
    """A class map from an encoded image of one channel with eight bits, whose values are class numbers.

    What a run has stored is read whatever the limit on inputs is now, up to one of its own.
    """
    size = encoded_size(data)
    if size and size[0] * size[1] > MOST_CELLS and (reason := too_many_pixels(*size)):
        raise ValueError(reason)
    cells = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED) if size else None
    if cells is None:
        raise ValueError(f"not an image that can be read, or damaged ({len(data):,} bytes)")
    if cells.ndim != 2 or cells.dtype != np.uint8:
        raise ValueError(
            "a class map is an image of one channel with eight bits, whose values are class numbers; "
            f"this one has {cells.shape[2] if cells.ndim == 3 else 1} of {cells.dtype}"
        )
    return np.asarray(cells, np.uint8)


def _class_map(path: str) -> tuple[Classes, str]:
    """Many cases share a map: the last ones are kept, for as long as their files do not change."""
    try:
        status = Path(place_of(path)).stat()
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    return _decoded_map(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=32)
def _decoded_map(path: str, *changed: int) -> tuple[Classes, str]:
    data = image_bytes(path)
    size = encoded_size(data)
    if size and (reason := too_many_pixels(*size)):
        raise Unreadable(f"{path}: {reason}")
    try:
        with quiet_opencv:
            classes = decode_classes(data)
    except (ValueError, cv2.error) as error:
        raise Unreadable(f"{path}: {error}") from None
    classes.setflags(write=False)
    return classes, str(xxhash.xxh3_128_hexdigest(data))
