"""Trays: memory that processes share, in which one lays follow-ups for another to predict."""

from __future__ import annotations

import mmap
import os
import pickle
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from instar.case import Input
from instar.systems.system import gpu_in_use, page_locked

Bytes = npt.NDArray[np.uint8]

TRAY_BYTES = 32 << 20
"""The inputs on a tray take no more than that, or are one."""
_PAGE = mmap.PAGESIZE


def new_tray() -> int:
    """The descriptor of a tray. It has no name: whoever is killed leaves nothing behind."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("instar-tray")
    descriptor, path = tempfile.mkstemp(prefix="instar-")
    os.unlink(path)  # noqa: PTH108
    return descriptor


@dataclass(frozen=True, slots=True)
class Laid:
    """Where on a tray an input lies: its small parts pickled, and the places (from, to) of its arrays."""

    small: bytes
    places: tuple[tuple[int, int], ...]

    @property
    def nbytes(self) -> int:
        return sum(end - start for start, end in self.places)


class Copies:
    """Memory for copies, used again as soon as nobody has one of them any more: fresh memory costs five times as much
    as the copying. It is locked for the GPU from when the system uses one: from other memory, sending costs as much as
    predicting."""

    MOST = 8

    def __init__(self) -> None:
        self._memory: list[Bytes] = []
        self._for_gpu = False

    def room(self, size: int) -> Bytes:
        """Memory of that size, which nobody else uses."""
        if not self._for_gpu and gpu_in_use():
            self._for_gpu = True
            self._memory.clear()
        for memory in self._memory:
            # three know it when nobody else does: the list, this loop and the call; whatever is a view of it, a tensor
            # too, keeps it
            if size <= memory.nbytes and sys.getrefcount(memory) == 3:
                break
        else:
            memory = page_locked(size) if self._for_gpu else np.empty(size, np.uint8)
            self._memory.append(memory)
            del self._memory[: -self.MOST]
        return memory[:size]


class Tray:
    """A tray as one process sees it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._memory: mmap.mmap | None = None
        self.filled = 0
        """Bytes that are laid on it."""

    def lay(self, input: Input) -> Laid:
        """Copy an input onto the tray."""
        arrays: list[pickle.PickleBuffer] = []
        small = pickle.dumps(input, 5, buffer_callback=arrays.append)
        places = []
        for array in arrays:
            content = array.raw()
            start, end = self.filled, self.filled + content.nbytes
            self._seen(end, grow=True)[start:end] = content
            self.filled = end
            places.append((start, end))
        return Laid(small, tuple(places))

    def take(self, laid: Sequence[Laid], copies: Copies) -> list[Input]:
        """Copies of inputs: a system may keep what it was given, and the tray is filled again. Arrays of one size lie
        side by side, so that images of one size are one array."""
        sizes = [end - start for one in laid for start, end in one.places]
        starts, end = [0] * len(sizes), 0
        for place in sorted(range(len(sizes)), key=sizes.__getitem__):
            size = sizes[place]
            starts[place] = end = end + -end % min(64, size & -size or 1)  # where numbers of many bytes may lie
            end += size
        room, places = copies.room(end), iter(starts)
        return [
            pickle.loads(one.small, buffers=[self._copied(*place, room[next(places) :]) for place in one.places])
            for one in laid
        ]

    def _copied(self, start: int, end: int, room: Bytes) -> Bytes:
        copy = room[: end - start]
        np.copyto(copy, np.frombuffer(self._seen(end), np.uint8, end - start, start))
        return copy

    def clear(self) -> None:
        self.filled = 0

    def _seen(self, end: int, grow: bool = False) -> mmap.mmap:
        """The memory, as far as the end that is asked for at least."""
        if self._memory is None or len(self._memory) < end:
            if grow:
                size = max(-(-end // _PAGE) * _PAGE, os.fstat(self._descriptor).st_size)
                os.ftruncate(self._descriptor, size)
            self._memory = mmap.mmap(self._descriptor, os.fstat(self._descriptor).st_size)
        return self._memory
