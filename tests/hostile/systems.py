"""Systems that answer with what nobody asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import numpy as np

from instar import Caption, Detections, declare
from tests.hostile.corpus import TEXTS

SPOKEN = tuple(TEXTS.values())


def _text(pixels: np.ndarray) -> str:
    """One of the texts, settled by the picture."""
    return SPOKEN[int(pixels[0, 0, 0]) % len(SPOKEN)]


def talker(pixels: np.ndarray) -> Caption:
    return Caption(_text(pixels))


def labeller(pixels: np.ndarray) -> Detections:
    return Detections.from_xyxy(np.array([[1, 1, 9, 9]], float), [_text(pixels)], np.array([0.9]))


class _Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@declare(kind="detections")
def thrower(pixels: np.ndarray) -> Detections:
    """Raises whatever can be raised, as the picture tells it."""
    errors: tuple[BaseException, ...] = (
        ValueError(_text(pixels)),
        _Unspeakable(),
        SystemExit(3),
        KeyboardInterrupt(),
        RecursionError("deep"),
        MemoryError(),
        StopIteration(),
        GeneratorExit(),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "\ud83d"),
    )
    raise errors[int(pixels[0, 0, 0]) // 10 % len(errors)]


@declare(kind="detections")
def liar(pixels: np.ndarray) -> object:
    """Answers with what is no answer, as the picture tells it."""
    many = 200_000
    answers: tuple[Callable[[], object], ...] = (
        lambda: None,
        lambda: "a dog",
        lambda: object,
        lambda: Detections.from_xyxy(np.full((1, 4), np.nan), ["x"]),
        lambda: Detections.from_xyxy(np.full((1, 4), np.inf), ["x"]),
        lambda: Detections.from_xyxy(np.full((1, 4), 1e300), ["x"]),
        lambda: Detections.from_xyxy(np.zeros((many, 4)), ["x"] * many),
        lambda: Detections.from_xyxy(np.zeros((1, 4)), ["x" * 10_000_000]),
        lambda: (number for number in range(3)),
        lambda: {"boxes": []},
    )
    return answers[int(pixels[0, 0, 0]) // 10 % len(answers)]()


@declare(kind="detections")
def chatty(pixels: np.ndarray) -> Detections:
    """Writes to every descriptor it may have, then answers rightly."""
    print("x" * 100_000)
    sys.stderr.write("\x1b[31m" * 1000)
    for descriptor in range(1, 3):
        os.write(descriptor, b"\0garbage\xff" * 100)
    return Detections.from_xyxy(np.array([[1, 1, 9, 9]], float), ["x"], np.array([0.9]))
