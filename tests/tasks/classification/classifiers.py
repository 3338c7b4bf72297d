"""Classifiers of painted images: one that is right, and ones with a fault each."""

from __future__ import annotations

import cv2
import numpy as np

from instar.outputs.labels import Labels

COLOURS = {"disc": (200, 60, 60), "square": (60, 160, 80), "bar": (70, 80, 190)}


def painted(number: int) -> np.ndarray:
    """A shape on grey; which one, and where, hangs on the number."""
    rng = np.random.default_rng(number)
    pixels = np.full((120, 160, 3), 128, np.uint8)
    x, y = int(rng.integers(50, 110)), int(rng.integers(45, 75))
    shape = list(COLOURS)[number % 3]
    if shape == "disc":
        cv2.circle(pixels, (x, y), 28, COLOURS[shape], -1)
    else:
        half = (26, 26) if shape == "square" else (40, 9)
        cv2.rectangle(pixels, (x - half[0], y - half[1]), (x + half[0], y + half[1]), COLOURS[shape], -1)
    return pixels


def _scores(pixels: np.ndarray) -> dict[str, float]:
    """By hue, which light, blur and geometry leave alone."""
    colours = pixels.reshape(-1, 3).astype(float)
    spread = colours.max(1) - colours.min(1)
    if spread.max() < 20:
        return dict.fromkeys(COLOURS, 1 / 3)
    strong = colours[spread > 0.6 * spread.max()].mean(0)
    best = list(COLOURS)[int(strong.argmax())]
    return {name: 0.9 if name == best else 0.05 for name in COLOURS}


def right(pixels: np.ndarray) -> Labels:
    scores = _scores(pixels)
    return Labels.from_scores(list(scores), list(scores.values()))


def by_table(pixels: np.ndarray) -> dict[str, float]:
    """Plain Python: scores by class."""
    return _scores(pixels)


def hates_mirrors(pixels: np.ndarray) -> Labels:
    """Another class where the right half is darker than the left: a mirrored image is something else to it."""
    scores = _scores(pixels)
    half = pixels.shape[1] // 2
    darker = pixels[:, half:].mean() < pixels[:, :half].mean()
    names = list(scores)
    return Labels.from_scores(names if darker else [*names[1:], names[0]], list(scores.values()))


def unsure_in_the_dark(pixels: np.ndarray) -> Labels:
    """The class stays, and its score falls with the light."""
    scores = _scores(pixels)
    factor = min(1.0, float(pixels.mean()) / 128)
    return Labels.from_scores(list(scores), [score * factor**4 for score in scores.values()])


def nothing(pixels: np.ndarray) -> Labels:
    return Labels.from_scores([])


def side(pixels: np.ndarray) -> Labels:
    """The half of the image that is brighter: exact, also in a mirror."""
    half = pixels.shape[1] // 2
    share = 0.9 if pixels[:, :half].mean() > pixels[:, half:].mean() else 0.1
    return Labels.from_scores(["left", "right"], [share, 1 - share])


def always_left(pixels: np.ndarray) -> Labels:
    return Labels.from_scores(["left", "right"], [0.8, 0.2])


def always_left_alone(pixels: np.ndarray) -> Labels:
    """Left of every image but black ones, and no word of the other side."""
    return Labels.from_scores(["right" if pixels.max() == 0 else "left"])
