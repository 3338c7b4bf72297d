"""LiteRT (TensorFlow Lite) models: MoveNet, and the multiclass selfie segmenter."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from instar.image import Image
from instar.outputs import Output
from instar.outputs.poses import Poses
from instar.outputs.zones import Zones
from instar.spelling import Parameter
from instar.systems.boxes import fitting
from instar.systems.models import model_path
from instar.systems.system import System, SystemFamily, fingerprint_of, imported, one_by_one
from instar.systems.weights import content_of
from instar.warp import Size, Warp, warp_pixels

_ADAPTER = "2"
"""Part of every fingerprint here; changes when an adapter's answers do."""

_CHATTER = re.compile(
    rb"XNNPACK delegate for CPU|before absl::InitializeLog|inference_feedback_manager\.cc"
    rb"|landmark_projection_calculator\.cc"
)


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out what TensorFlow Lite and MediaPipe always print to stderr while they load.

    No environment variable reaches these lines. Everything else that was printed meanwhile is printed
    afterwards; nothing is held back outside of loading, so that a crash on an image keeps its last words.
    """
    sys.stderr.flush()
    try:
        real = os.dup(2)
    except OSError:  # a process without stderr
        yield
        return
    with tempfile.TemporaryFile() as captured:
        os.dup2(captured.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(real, 2)
            os.close(real)
            captured.seek(0)
            kept = b"".join(line for line in captured if not _CHATTER.search(line))
            if kept:
                os.write(2, kept)


class Model:
    """One loaded .tflite file with one input. A single thread: workers are the parallelism here.

    The library would map the file, and so see later changes of it: it is given the `content` that was hashed.
    """

    def __init__(self, path: Path) -> None:
        library = imported("ai_edge_litert.interpreter", "litert", "LiteRT")
        self.content, self.weights = content_of(path)
        try:
            with quiet():
                self._interpreter: Any = library.Interpreter(model_content=self.content, num_threads=1)
                self._interpreter.allocate_tensors()
        except (ValueError, RuntimeError) as error:
            raise ValueError(f"{path} is not a model LiteRT can load: {error}") from error
        [self.input] = self._interpreter.get_input_details()
        self.outputs: list[dict[str, Any]] = self._interpreter.get_output_details()

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(int(n) for n in self.input["shape"])

    def __call__(self, array: npt.NDArray[np.generic]) -> list[npt.NDArray[np.float32]]:
        self._interpreter.set_tensor(self.input["index"], array)
        self._interpreter.invoke()
        return [np.asarray(self._interpreter.get_tensor(o["index"]), np.float32) for o in self.outputs]


def model_file(model: str, name: str) -> Path:
    path = Path(model).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"{name}: there is no model file {path}")
    return path


def _resized(pixels: npt.NDArray[np.generic], target: Size) -> npt.NDArray[np.generic]:
    """The whole frame at another size; averaged where it shrinks, so that fine patterns do not alias."""
    size = pixels.shape[1], pixels.shape[0]
    shrinks = target[0] <= size[0] and target[1] <= size[1]
    return warp_pixels(pixels, Warp.resize(size, target), "area" if shrinks else "linear")


# --- MoveNet ---------------------------------------------------------------------------------------


def _movenet(name: str, *, model: str, floor: float) -> System:
    path = model_file(model, name)
    run = Model(path)
    if len(run.shape) != 4 or run.shape[1] != run.shape[2] or run.shape[3] != 3:
        raise ValueError(f"{name}: {path} takes {run.shape}; MoveNet single-pose takes (1, side, side, 3)")
    if len(run.outputs) != 1 or tuple(run.outputs[0]["shape"]) != (1, 1, 17, 3):
        shapes = [tuple(int(n) for n in o["shape"]) for o in run.outputs]
        raise ValueError(f"{name}: {path} returns {shapes}; MoveNet single-pose returns (1, 1, 17, 3)")
    side = run.shape[1]

    def one(image: Image) -> Poses:
        warp, (width, height) = fitting(image.size, (side, side), "middle")
        square = np.zeros((side, side, 3), np.uint8)
        top, left = (side - height) // 2, (side - width) // 2
        square[top : top + height, left : left + width] = _resized(image.pixels, (width, height))
        [landmarks] = run(square[None].astype(run.input["dtype"]))
        # Shares of the square from its top-left corner. Measured on 137 photos: landmarks carried back from
        # the mirror image lie 0.49 ± 0.12 px of the 192 to the right of the photo's own (1 px if pixel
        # centres were at whole numbers): the model's own, and not corrected.
        y, x, score = landmarks.reshape(17, 3).astype(np.float64).T
        sure = score.mean()
        if sure < floor:  # NaN is not, goes on, and is refused by Poses for what it is
            return Poses.from_array([], skeleton="coco-17")
        points = warp.inverse.points(np.stack([x, y], -1) * side)
        # the floor has decided that somebody is there: a mean over hidden legs is no score on the scale of others
        return Poses.from_array(points[None], skeleton="coco-17", visibility=score[None])

    return _system(name, "poses", one, run.weights, floor=floor)


# --- zones -----------------------------------------------------------------------------------------

SELFIE_ZONES = {"background": (0,), "hair": (1,), "skin": (2, 3), "clothes": (4,), "person": (1, 2, 3, 4, 5)}
"""The model's classes: background, hair, body skin, face skin, clothes, other (what is worn or held)."""


def _selfie_multiclass(name: str, *, model: str | None) -> System:
    path = model_path("selfie-multiclass") if model is None else model_file(model, name)
    run = Model(path)
    if len(run.shape) != 4 or run.shape[3] != 3 or run.outputs[0]["shape"][-1] != 6:
        raise ValueError(
            f"{name}: {path} takes {run.shape} and returns "
            f"{tuple(int(n) for n in run.outputs[0]['shape'])}; "
            "the multiclass selfie model takes (1, 256, 256, 3) and returns 6 classes"
        )
    height, width = run.shape[1:3]

    def one(image: Image) -> Zones:
        small = _resized(image.pixels, (width, height))
        logits = run(small[None].astype(np.float32) / np.float32(255))[0][0]
        if not np.isfinite(logits).all():
            raise ValueError("the model returned numbers that are not finite")
        back = Warp.resize((width, height), image.size)
        # One class after the other: all six at the size of a large photo would take hundreds of megabytes.
        best = warp_pixels(np.ascontiguousarray(logits[..., 0]), back)
        labels = np.zeros(best.shape, np.uint8)
        for label in range(1, logits.shape[-1]):
            rival = warp_pixels(np.ascontiguousarray(logits[..., label]), back)
            higher = rival > best
            labels[higher] = label
            np.maximum(best, rival, out=best)
        return Zones(labels, SELFIE_ZONES)

    return _system(name, "zones", one, run.weights)


def _system(name: str, kind: str, one: Callable[[Image], Output], weights: str, **config: object) -> System:
    # The file's content tells models apart, not where it lies.
    family = name.partition("(")[0]
    fingerprint = fingerprint_of(family, _ADAPTER, sorted(config.items()), weights)
    return System(name, kind, one_by_one(one), fingerprint)


# fmt: off
FAMILIES = (
    SystemFamily("movenet", "poses", _movenet, (
        Parameter("model", "text", help="the .tflite file of a MoveNet single-pose model"),
        # MoveNet always answers. Plain pictures and noise reach 0.104; of 200 photos of people one is lower.
        Parameter("floor", "float", 0.11, low=0, high=1,
                  help="a subject whose mean landmark score is lower was not found"),
    ), help="MoveNet single-pose: 17 COCO landmarks of one subject.", extra="litert"),
    SystemFamily("selfie-multiclass", "zones", _selfie_multiclass,
                 (Parameter("model", "text", None, help="the .tflite file, if not the pulled one"),),
                 help="Background, hair, skin, clothes and person.", extra="litert"),
)
# fmt: on
