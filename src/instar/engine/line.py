"""The line between a coordinator and a worker: whole messages, each with its length and a checksum."""

from __future__ import annotations

import os
import pickle
import struct
from contextlib import suppress
from socket import MSG_DONTWAIT, socket
from typing import Any

import xxhash

from instar.systems.child import quoted
from instar.systems.system import end_copy

_HEADER = struct.Struct("<4sQQ")
_MARK = b"ins1"
_MOST_BYTES = 4 << 30
_SMALL = 1 << 18
"""Up to here one copy costs less than waking the other side for a header alone."""


class Garbage(ValueError):
    """Something arrived that no worker sends: the system writes to descriptors that are not its own, or closed ours."""

    def __init__(self, content: bytes | bytearray) -> None:
        super().__init__(quoted(content))
        self.before: list[Any] = []
        """The messages that came before it."""


class Line:
    """One end. A message is whole and as it was sent, or it is `Garbage`: half a message never makes anybody wait."""

    def __init__(self, end: socket) -> None:
        self._socket = end
        self._heard = bytearray()
        self._chunk = memoryview(bytearray(1 << 18))
        self._owner = os.getpid()

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def send(self, message: object) -> None:
        self.send_bytes(pickled(message))

    def send_bytes(self, content: bytes) -> None:
        end_copy(self._owner)
        if len(content) <= _SMALL:
            self._socket.sendall(framed(content))
        else:
            self._socket.sendall(_header(content))
            self._socket.sendall(content)

    def received(self) -> Any:
        """The next message, waited for."""
        return pickle.loads(self.received_bytes())

    def received_bytes(self) -> bytes:
        while (content := self._next()) is None:
            self._read(0)
        return content

    def arrived(self) -> list[Any]:
        """The messages that are there; raises EOFError where nothing more will come."""
        with suppress(BlockingIOError):
            self._read(MSG_DONTWAIT)
        messages = []
        try:
            while (content := self._next()) is not None:
                messages.append(pickle.loads(content))
        except Garbage as garbage:
            garbage.before = messages
            raise
        return messages

    def _read(self, flags: int) -> None:
        size = self._socket.recv_into(self._chunk, 0, flags)
        if not size:
            raise EOFError
        self._heard += self._chunk[:size]

    def _next(self) -> bytes | None:
        """The content of the next message, once it is there."""
        if len(self._heard) < _HEADER.size:
            return None
        mark, size, checksum = _HEADER.unpack_from(self._heard)
        end = _HEADER.size + size
        if mark != _MARK or size > _MOST_BYTES:
            raise Garbage(self._heard)
        if len(self._heard) < end:
            return None
        content = bytes(memoryview(self._heard)[_HEADER.size : end])
        if xxhash.xxh3_64_intdigest(content) != checksum:
            raise Garbage(content)
        del self._heard[:end]
        return content


def pickled(message: object) -> bytes:
    """With the plain pickler: it takes half the time of a connection's own for many small values."""
    return pickle.dumps(message, pickle.HIGHEST_PROTOCOL)


def framed(content: bytes) -> bytes:
    """A message as it goes over a line."""
    return _header(content) + content


def _header(content: bytes) -> bytes:
    return _HEADER.pack(_MARK, len(content), xxhash.xxh3_64_intdigest(content))
