"""Image classifiers in ONNX files: one image in, one row of scores out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from instar.image import Image
from instar.outputs.labels import Labels
from instar.spelling import Parameter
from instar.systems.boxes import Fit, fitted, names_in
from instar.systems.onnx import Layout, Network, frame_of
from instar.systems.system import System, SystemFamily, fingerprint_of

_ADAPTER = "1"
"""Part of the fingerprint; changes when the adapter's answers do."""
_MEAN, _STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
"""ImageNet's mean and deviation of colours from 0 to 255, which most published classifiers take."""


def _onnx_classifier(
    name: str,
    *,
    model: str,
    names: str | None,
    top: int,
    scores: str,
    fit: Fit,
    bgr: bool,
    mean: tuple[float, float, float],
    std: tuple[float, float, float],
    size: int | None,
) -> System:
    path = Path(model)
    network = Network(path, name, "an image classifier")
    frame = frame_of(network, size, name, path)
    if frame is None:
        raise ValueError(f"{name}: {path} does not say what size of image it takes; give it, e.g. size=224")
    layout = Layout(fit, bgr=bgr, mean=mean, std=std, pad=0)
    classes = names_in(names, name) if names else None

    def one(image: Image) -> Labels:
        pixels, _ = fitted(image, frame, layout.fit, layout.pad)
        answer = network(pixels, layout)[0]
        if answer.size != max(answer.shape, default=0):
            raise ValueError(f"{path} returns {answer.shape}; a classifier returns one row of scores, (1, classes)")
        row = answer.ravel().astype(np.float64)
        sums_to_one = scores == "probabilities" or (scores == "auto" and _are_probabilities(row))
        probabilities = row if sums_to_one else _softmax(row)
        if classes is not None and len(classes) != len(row):
            raise ValueError(f"{path} returns {len(row)} scores, and names has {len(classes)} classes")
        return Labels.from_scores(classes or [str(number) for number in range(len(row))], probabilities, top=top)

    def predict(inputs: Sequence[Image], seeds: Sequence[int]) -> list[Labels]:
        return [one(image) for image in inputs]

    fingerprint = fingerprint_of("onnx-classifier", _ADAPTER, classes, top, scores, layout, frame, *network.weights)
    return System(name, Labels.kind, predict, fingerprint)


def _are_probabilities(row: np.ndarray[tuple[int], np.dtype[np.float64]]) -> bool:
    return bool(row.min() >= 0 and row.max() <= 1.0001 and abs(row.sum() - 1) < 0.01)


def _softmax(row: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    powers = np.exp(row - row.max())
    return np.asarray(powers / powers.sum())


# fmt: off
FAMILIES: Mapping[str, SystemFamily] = {
    "onnx-classifier": SystemFamily(
        "onnx-classifier", Labels.kind, _onnx_classifier,
        (
            Parameter("model", "text", help="the .onnx file"),
            Parameter("names", "text", None, help="a text file of its classes, one a line; numbers if not given"),
            Parameter("top", "int", 10, low=1, high=100_000, help="how many of the best classes are kept"),
            Parameter(
                "scores", "choice", "auto", choices=("auto", "logits", "probabilities"),
                help="what the model returns; auto: probabilities if a row sums to 1, else logits",
            ),
            Parameter(
                "fit", "choice", "stretch", choices=("stretch", "middle"),
                help="the image fills the frame, or lies in its middle, the rest black",
            ),
            Parameter("bgr", "bool", False, help="whether it takes blue first"),
            Parameter("mean", "floats", _MEAN, length=3, help="taken off the colours of 0 to 255"),
            Parameter("std", "floats", _STD, length=3, low=0, open_low=True, help="what they are then divided by"),
            Parameter(
                "size", "int", None, low=8, high=4096, help="side of the square it takes, where its file does not tell",
            ),
        ),
        help="An image classifier in an ONNX file.", extra="onnx",
    ),
}
# fmt: on
