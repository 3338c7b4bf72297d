"""A clock that several processes advance: how long reading and transforming took, and how often each happened."""

from __future__ import annotations

import ctypes
import mmap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

Work = Callable[[], object]
"""What a way does once everything is imported and prepared: what is timed."""
NUMBERS = ctypes.c_double * 4


class Times(NamedTuple):
    """Seconds of the processor, and how many images were read and made in them."""

    read_seconds: float
    read: float
    made_seconds: float
    made: float


class Clock:
    """Four numbers in a file. One process at a time advances them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            path.write_bytes(bytes(NUMBERS()))
        with path.open("r+b") as file:
            self._numbers = NUMBERS.from_buffer(mmap.mmap(file.fileno(), ctypes.sizeof(NUMBERS)))

    def times(self) -> Times:
        return Times(*self._numbers)

    def reading(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, which reads an image, timed."""
        return self._timed(function, 0)

    def making(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, which makes a follow-up, timed."""
        return self._timed(function, 2)

    def _timed(self, function: Callable[..., Any], place: int) -> Callable[..., Any]:
        numbers, now = self._numbers, time.thread_time

        def timed(*args: Any, **kwargs: Any) -> Any:
            begun = now()
            result = function(*args, **kwargs)
            numbers[place] += now() - begun
            numbers[place + 1] += 1
            return result

        return timed
