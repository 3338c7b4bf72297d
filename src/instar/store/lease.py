"""The lock of a run in a bucket: an object that says who writes, and that it still does."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
import warnings
from contextlib import suppress
from datetime import UTC, datetime

from instar.remote import Advisory, Changed, Missing, Objects, Unreachable, Version
from instar.store.folder import Busy, Gone

BEAT = 10.0
"""Seconds after which the holder of a lock says again that it is there."""
STALE = 60.0
"""Seconds without a sign of life after which a lock is taken over. They are waited for: clocks differ."""
POLL = 1.0
SETTLE = 0.5
"""Seconds after which one looks who else wrote the lock, in a store that lets two do so."""
READS = 5
"""How often a lock is read that is not whole."""


class Lease:
    """A lock that its holder renews. `disk` names the copy of the run on this disk, whose own lock the holder has: a
    lock of the same copy is that of a process that ended."""

    def __init__(self, objects: Objects, key: str, name: str, disk: str, *, conditional: bool) -> None:
        self._objects, self._key, self._name, self._disk = objects, key, name, disk
        self._conditional = conditional
        self._owner = uuid.uuid4().hex
        self._version: Version | None = None
        self._beats = 0
        self._over, self._turn = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._renew_until_over, daemon=True)

    def take(self, *, wait: bool) -> None:
        """Become the holder; raises Busy where another one is alive, unless one can `wait` for its end."""
        while not self._written(self._free_or_stale(wait)):
            pass
        self._thread.start()

    def check(self) -> None:
        """Raises Gone where somebody else holds the lock by now: this process slept, or was cut off."""
        with self._turn:  # not every store shows an object whole while it is written
            holder = self._holder()
        if holder != self._owner:
            raise Gone(
                f"the lock of {self._name} was deleted, or another process took it over while this one did not answer; "
                "nothing more is written. Give the same command again when the other one is done"
            )

    def release(self) -> None:
        self._over.set()
        self._thread.join()
        try:
            if self._holder() == self._owner:
                self._objects.delete(self._key)
        except Unreachable as error:
            warnings.warn(Advisory(f"{error}; the lock of {self._name} opens by itself in a minute"), stacklevel=3)

    def _free_or_stale(self, wait: bool) -> Version | None:
        """The version of a lock that nobody holds any more; None where there is none."""
        content, since, warned = None, time.monotonic(), False
        while True:
            try:
                current = self._objects.get(self._key)
            except Missing:
                return None
            except Unreachable:
                if content is None or time.monotonic() - since >= STALE:
                    raise
                time.sleep(POLL)
                continue
            values = _values(current.data)
            if values.get("disk") == self._disk:
                return current.version
            if content is not None and current.data != content:
                if not wait:
                    raise Busy(
                        f"another process is writing to {self._name} (on {values.get('host')}, since "
                        f"{values.get('since')}); wait for it, or give another folder (`out`)"
                    )
                since = time.monotonic()
            content = current.data
            if time.monotonic() - since >= STALE:
                return current.version
            if not warned:
                warned = True
                warnings.warn(
                    Advisory(
                        f"{self._name} is locked by a process on {values.get('host')}; if it gives no sign of life "
                        f"within {STALE:.0f} seconds, the lock is taken over"
                    ),
                    stacklevel=5,
                )
            time.sleep(POLL)

    def _written(self, over: Version | None) -> bool:
        """Whether the lock is ours, written over a state of it or anew."""
        self._beats += 1
        content = self._content()
        try:
            if self._conditional:
                self._version = self._objects.put(self._key, content, over=over, anew=over is None)
                return True
            self._objects.put(self._key, content)
        except Changed:
            return self._adopted(content)
        time.sleep(SETTLE)
        return self._holder() == self._owner

    def _adopted(self, content: bytes) -> bool:
        """Whether what is there is our own: the answer to a write can be lost, and the write is made again."""
        try:
            current = self._objects.get(self._key)
        except Missing:
            return False
        self._version = current.version
        return current.data == content

    def _content(self) -> bytes:
        values = {
            "owner": self._owner,
            "host": socket.gethostname(),
            "process": os.getpid(),
            "disk": self._disk,
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
            "beat": self._beats,
        }
        return json.dumps(values).encode()

    def _holder(self) -> object:
        """Who holds the lock; None where nobody does. Some stores answer a write before all of it can be read."""
        for _ in range(READS):
            try:
                values = _values(self._objects.get(self._key).data)
            except Missing:
                break
            if values:
                return values.get("owner")
            time.sleep(SETTLE)
        return None

    def _renew_until_over(self) -> None:
        while not self._over.wait(BEAT):
            with self._turn, suppress(Unreachable):  # the next beat may come through, and every write looks for itself
                if self._conditional:
                    if not self._written(self._version):
                        return
                elif self._holder() == self._owner:
                    self._beats += 1
                    self._objects.put(self._key, self._content())
                else:
                    return


def _values(content: bytes) -> dict[str, object]:
    try:
        values = json.loads(content)
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}
