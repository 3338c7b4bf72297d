"""reference-detector: a small one-stage detector in plain PyTorch, of the reference trainer's weights.

A convolutional network looks at a square image and says for each cell of eight pixels how much it is the middle of
an object of each class, and where that object's box ends. `instar objects repair` trains it; it is for studies and
small problems.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from instar.image import Image
from instar.outputs.detections import Detections
from instar.spelling import Parameter
from instar.systems.boxes import carried_back, fitted, suppressed
from instar.systems.system import System, SystemFamily, fingerprint_of, imported
from instar.systems.weights import loaded_from
from instar.warp import Warp

VERSION = 1
"""Of the weights' file, and part of the fingerprint: changes when the answers do."""
STRIDE = 8
"""Pixels from cell to cell."""
FLOOR = 0.05
"""Detections below this score are not said."""
MOST = 100
SAME = 0.5
"""Of two boxes of a class that overlap by more the surer one is said."""

Torch = Any
"""PyTorch and what is made by it: it is imported late, so that nothing is known of its types."""
Array = npt.NDArray[np.generic]
Kinds = npt.NDArray[np.int64]
Pixels = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """What a training leaves: the classes in the network's order, the side of its square, the network's arrays."""

    labels: list[str]
    side: int
    state: Mapping[str, Array]

    def write(self, path: Path) -> None:
        """As a plain archive of arrays; the same weights are the same file."""
        with path.open("wb") as file:
            arrays: dict[str, Any] = {f"state/{name}": value for name, value in self.state.items()}
            np.savez(file, version=VERSION, labels=np.array(self.labels), side=self.side, **arrays)

    def network(self, torch: Torch, device: Torch) -> Torch:
        made = network_of(torch, len(self.labels))
        try:
            made.load_state_dict({name: torch.from_numpy(value) for name, value in self.state.items()})
        except (RuntimeError, TypeError) as error:
            raise ValueError(f"these weights are not of the reference detector's network: {error}") from None
        return made.to(device)


def read_weights(path: Path) -> Weights:
    """The weights in a file. It holds arrays alone: reading it runs no code."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file of weights {path}")
    try:
        with np.load(path, allow_pickle=False) as stored:
            if int(stored["version"]) != VERSION:
                raise ValueError(f"of version {int(stored['version'])}")
            state = {name.removeprefix("state/"): stored[name] for name in stored.files if name.startswith("state/")}
            return Weights([str(label) for label in stored["labels"]], int(stored["side"]), state)
    except (AttributeError, BadZipFile, EOFError, KeyError, TypeError, ValueError):  # numpy's, by what the file is
        raise ValueError(
            f"{path}: these are no weights of the reference trainer, version {VERSION}; it writes a file weights.npz"
        ) from None


def _reference_detector(name: str, *, weights: str) -> System:
    path = Path(weights).expanduser()
    read, [digest] = loaded_from([path], lambda: read_weights(path))
    torch = imported("torch", "repair", "PyTorch")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network = read.network(torch, device).eval()

    def predict(inputs: Sequence[Image], seeds: Sequence[int]) -> list[Detections]:
        squares, frames = zip(*(framed(image, read.side) for image in inputs), strict=True)
        with torch.inference_mode():
            answer = network(normalised(torch.from_numpy(np.stack(squares)).to(device)))
            peaks = _peaks(torch, *decoded(torch, answer, len(read.labels)))
        return [_detections(*cells, read.labels, frame) for cells, frame in zip(peaks, frames, strict=True)]

    return System(name, Detections.kind, predict, fingerprint_of("reference-detector", VERSION, digest), batch=256)


def framed(image: Image, side: int) -> tuple[Pixels, Warp]:
    """The whole image as large as fits into a square, in its middle; and the map that took it there."""
    return fitted(image, (side, side), "middle", 0)


# --- the network -----------------------------------------------------------------------------------


def network_of(torch: Torch, classes: int) -> Torch:
    """Per cell: a score for each class, and the box's four sides as logarithms of their distance in cells.

    Its 190,000 weights see 140 pixels about a cell: much more than a small object.
    """
    nn = torch.nn

    def layer(inner: int, outer: int, stride: int = 1, apart: int = 1) -> list[Torch]:
        return [
            nn.Conv2d(inner, outer, 3, stride, apart, dilation=apart, bias=False),
            nn.BatchNorm2d(outer),
            nn.ReLU(inplace=True),
        ]

    last = nn.Conv2d(64, classes + 4, 1)
    with torch.no_grad():
        last.bias.zero_()
        last.bias[:classes] = math.log(0.02 / 0.98)  # cells without an object are the rule
    made = nn.Sequential(
        *layer(3, 24, 2),
        *layer(24, 48, 2),
        *layer(48, 64, 2),
        *layer(64, 64),
        *layer(64, 64, 1, 2),
        *layer(64, 64, 1, 4),
        *layer(64, 64),
        last,
    )
    return made.to(memory_format=torch.channels_last)  # as images come; twice as fast on a CPU


def normalised(pixels: Torch) -> Torch:
    """Images (N, H, W, 3) of bytes as the network takes them."""
    return pixels.permute(0, 3, 1, 2).float().div(127.5).sub(1)


def decoded(torch: Torch, answer: Torch, classes: int) -> tuple[Torch, Torch]:
    """Scores (N, C, h, w) as logits, boxes (N, 4, h, w) in pixels."""
    rows, columns = answer.shape[2:]
    down = (torch.arange(rows, device=answer.device) + 0.5)[None, :, None] * STRIDE
    across = (torch.arange(columns, device=answer.device) + 0.5)[None, None, :] * STRIDE
    left, top, right, bottom = (answer[:, classes:].clamp(-4, 4).exp() * STRIDE).unbind(1)
    return answer[:, :classes], torch.stack([across - left, down - top, across + right, down + bottom], 1)


def _peaks(torch: Torch, heat: Torch, boxes: Torch) -> list[tuple[Array, Kinds, Array]]:
    """For each image the scores, classes and boxes of the cells that score higher than their neighbours."""
    scores = heat.sigmoid()
    highest = torch.nn.functional.max_pool2d(scores, 3, 1, 1)
    flat = torch.where((scores == highest) & (scores >= FLOOR), scores, scores.new_zeros(())).flatten(1)
    best, place = flat.topk(min(MOST, flat.shape[1]), 1)
    cells = boxes.shape[2] * boxes.shape[3]
    where = boxes.flatten(2).gather(2, (place % cells)[:, None].expand(-1, 4, -1)).transpose(1, 2)
    best, kinds, where = (each.cpu().numpy() for each in (best, place // cells, where))
    return [(one[one > 0], kind[one > 0], box[one > 0]) for one, kind, box in zip(best, kinds, where, strict=True)]


def _detections(scores: Array, kinds: Kinds, boxes: Array, labels: Sequence[str], frame: Warp) -> Detections:
    kept = suppressed(boxes.astype(np.float64), kinds, scores.astype(np.float64), SAME, MOST)
    return carried_back(boxes[kept], [labels[int(kind)] for kind in kinds[kept]], scores[kept], frame)


FAMILIES: Mapping[str, SystemFamily] = {
    "reference-detector": SystemFamily(
        "reference-detector",
        Detections.kind,
        _reference_detector,
        (Parameter("weights", "text", help="weights.npz of a training, e.g. repaired/trained/after-0/weights.npz"),),
        help="A small detector that `instar objects repair` trains.",
        extra="repair",
    )
}
