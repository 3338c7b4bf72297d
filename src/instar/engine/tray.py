"""Trays: memory that processes share, in which one lays follow-ups for another to predict."""

from __future__ import annotations

import mmap
import os
import pickle
import sys
import tempfile
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from instar.case import Input

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
    """Memory for copies, used again as soon as nobody has the copy any more: fresh memory costs five times as much as
    the copying."""

    MOST = 128

    def __init__(self) -> None:
        self._memory: list[Bytes] = []

    def of(self, content: Bytes) -> Bytes:
        size = content.nbytes
        for memory in self._memory:
            # three know it when nobody else does: the list, this loop and the call; whatever is a view of it, a tensor
            # too, keeps it
            if size <= memory.nbytes <= 2 * size and sys.getrefcount(memory) == 3:
                break
        else:
            memory = np.empty(size, np.uint8)
            if len(self._memory) < self.MOST:
                self._memory.append(memory)
        copy = memory[:size]
        np.copyto(copy, content)
        return copy


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

    def take(self, laid: Laid, copies: Copies) -> Input:
        """A copy of an input: a system may keep what it was given, and the tray is filled again."""
        end = max((end for _, end in laid.places), default=0)
        memory = np.frombuffer(self._seen(end), np.uint8) if end else np.empty(0, np.uint8)
        input: Input = pickle.loads(laid.small, buffers=[copies.of(memory[start:stop]) for start, stop in laid.places])
        return input

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
