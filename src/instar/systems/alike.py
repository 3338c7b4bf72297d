"""Images of one size as one array, for systems that predict them together."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]


def answers_by_shape(
    predict: Callable[[Any, Sequence[int]], Sequence[object]], images: Sequence[Any], seeds: Sequence[int]
) -> list[object]:
    """The answers in the images' order; those of one shape are predicted together, arrays and tensors alike."""
    places: dict[tuple[int, ...], list[int]] = {}
    for place, image in enumerate(images):
        places.setdefault(tuple(image.shape), []).append(place)
    answers: dict[int, object] = {}
    for alike in places.values():
        together = predict(_joined([images[place] for place in alike]), [seeds[place] for place in alike])
        if len(together) != len(alike):
            raise ValueError(
                f"the system was given an array of {len(alike)} images and returned {len(together)} answers"
            )
        answers |= zip(alike, together, strict=True)
    return [answers[place] for place in range(len(images))]


def _joined(images: list[Any]) -> Any:
    """One array, or tensor, of images of one shape."""
    if not isinstance(images[0], np.ndarray):
        return sys.modules["torch"].stack(images)
    array = np.stack(images) if (view := _view(images)) is None else view
    array.flags.writeable = False  # the images themselves lie here, and may be asked about again
    return array


def _view(images: list[Pixels]) -> Pixels | None:
    """The images as they lie in memory, where each follows on the one before: nothing needs to be copied."""
    first, size = images[0], images[0].nbytes
    start, owner = first.ctypes.data, _owner(first)
    for number, image in enumerate(images):
        if image.ctypes.data != start + number * size or _owner(image) is not owner or not image.flags.c_contiguous:
            return None
    return np.lib.stride_tricks.as_strided(first, (len(images), *first.shape), (size, *first.strides), writeable=False)


def _owner(array: Pixels) -> object:
    """Whose memory it is."""
    owner: Any = array
    while (base := owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)) is not None:
        owner = base
    return owner
