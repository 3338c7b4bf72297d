"""Runs that may go on while one looks at them: their newest index, made in the background and swapped in whole."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import polars as pl

from instar.engine import DEFAULT
from instar.engine.extent import Extent
from instar.files import storable
from instar.store import Manifest, NoRun, Store
from instar.viewer.index import Index, build

EVERY = 2.0
"""Seconds between two looks at a folder."""
PATIENCE = 1.0
"""Seconds that a page waits for an index before it says that it is being read."""
LIVE = 45.0
"""Seconds without a new prediction after which a run no longer counts as going on."""
MOST_JUDGINGS = 4
_LATER = (OSError, pl.exceptions.PolarsError)

log = logging.getLogger(__name__)


class Unavailable(Exception):
    """There is nothing to show of a run, now; `waiting` says whether that will pass by itself."""

    def __init__(self, message: str, waiting: bool = True) -> None:
        super().__init__(message)
        self.waiting = waiting


def run_names(folders: Sequence[str | Path]) -> list[str]:
    """What addresses call runs: by their folders, with as many of the folders around them as tell them apart.

    >>> run_names(["/runs/first", "/runs/second", "/old/first"])
    ['runs/first', 'second', 'old/first']
    """
    paths = [Path(folder).resolve().parts for folder in folders]
    names: list[str] = []
    for parts in paths:
        count = 1
        while count < len(parts) - 1 and any(other[-count:] == parts[-count:] for other in paths if other != parts):
            count += 1
        name = storable("/".join(parts[-count:]))
        alike = sum(one.partition(" · ")[0] == name for one in names)
        names.append(f"{name} · {alike + 1}" if alike else name)
    return names


class Watched:
    """One run folder, what addresses call it, and the indexes of its judgings."""

    def __init__(self, folder: str | Path, dataset: str | Path | None = None, name: str = "") -> None:
        self.store = Store(folder)
        self.dataset = dataset
        self.name = name
        self.problem = ""
        self.updated = time.time()
        self.version = ""
        self.extent: Extent | None = None
        self._changed: float | None = None
        self._measured: object = None
        self._growth: tuple[float, int] | None = None
        self._pace = 0.0
        self._state: object = None
        self._indexes: dict[str, Index] = {}
        self._building, self._asking, self._measuring = threading.Lock(), threading.Lock(), threading.Lock()
        self._readers: dict[str, threading.Thread] = {}
        self._ready = threading.Event()

    @property
    def manifest(self) -> Manifest | None:
        """What the run is; None where that is not known."""
        try:
            return self.newest.manifest if self.newest else self.store.manifest()
        except (OSError, KeyError):
            return None

    @property
    def newest(self) -> Index | None:
        """What was read last, without waiting for it."""
        return self._indexes.get(DEFAULT)

    @property
    def live(self) -> bool:
        """Whether predictions were added since one looks, and lately."""
        return self._changed is not None and time.monotonic() - self._changed < LIVE

    @property
    def left(self) -> float | None:
        """Seconds until the run is complete, by its pace since one looks; None where that is not known."""
        if self.extent is None or not self.extent.whole or not self._pace or self._changed is None or not self.live:
            return None
        seconds = (self.extent.planned - self.extent.done) / self._pace
        return max(0.0, seconds - (time.monotonic() - self._changed))

    def measure(self) -> None:
        """See how far the run is, and how fast: from the first new predictions that were seen to the latest."""
        with self._measuring:
            state = (self.store.manifest(), self.store.state("predictions"), self.store.state("cases"))
            if state == self._measured:
                return
            before, self.extent, self._measured = self.extent, Extent.of(self.store), state
            now, done = time.monotonic(), self.extent.done
            if before is None or done == before.done:
                return
            self._changed = now
            if self._growth is None or done < before.done:
                self._growth = now, done
            else:
                self._pace = (done - self._growth[1]) / max(1e-3, now - self._growth[0])

    def look(self) -> bool:
        """Read anew what changed; whether anything did. Raises nothing: what is wrong is kept for the pages."""
        known = self._state
        try:
            state = (self.store.manifest().rules, self.store.state("predictions"), self.store.state("cases"))
            if state == known and self._indexes and not any(map(self._rejudged, self._indexes.values())):
                self.problem = ""
                return False
            self.measure()
            with self._building:
                there = [DEFAULT, *(name for name in self.store.judgings() if name in self._indexes)]
                self._indexes = {name: _built(self.store, name) for name in there}
            self._state, self.problem = state, ""
            self._swapped()
            for index in self._indexes.values():
                index.complete()
        except NoRun as error:
            return self._failed(str(error))
        except Exception as error:  # a folder can hold anything, and the thread that looks must go on looking
            log.debug("%s", self.store.folder, exc_info=True)
            return self._failed(f"{self.store.folder} cannot be read: {type(error).__name__}: {error}")
        return True

    def _rejudged(self, index: Index) -> bool:
        info = self.store.judging_info(index.judging)
        return info is not None and info.parts != index.parts

    def _swapped(self) -> None:
        self.updated = time.time()
        self.version = "+".join(f"{name}:{index.version}" for name, index in sorted(self._indexes.items()))
        self._ready.set()

    def _failed(self, problem: str) -> bool:
        fresh = problem != self.problem
        self.problem = problem
        self._ready.set()
        if fresh:
            log.info("%s", problem)
        return fresh

    def index(self, judging: str = DEFAULT) -> Index:
        """The newest index of a judging. Raises `Unavailable` where there is none (yet)."""
        if not self.store.exists:
            why = self.store.place.instead() or "it was moved or deleted, or nothing was written yet"
            raise Unavailable(f"{self.store.folder} holds no run: {why}")
        self._ready.wait(PATIENCE)
        if judging not in self._indexes and judging != DEFAULT and judging in self.store.judgings():
            self._another(judging)
        index = self._indexes.get(judging)
        if index is not None:
            return index
        if judging != DEFAULT and judging not in self._readers:
            raise Unavailable(
                f"{self.store.folder} has no judging {judging!r}; it has {', '.join(self.store.judgings()) or 'none'}",
                waiting=False,
            )
        raise Unavailable(self.problem or f"{self.store.folder} is being read")

    def _another(self, judging: str) -> None:
        """Read a judging that nobody asked for before, beside the page that asks now."""
        with self._asking:
            thread = self._readers.get(judging)
            if thread is None or not thread.is_alive():
                thread = threading.Thread(target=self._add, args=(judging,), daemon=True)
                self._readers[judging] = thread
                thread.start()
        thread.join(PATIENCE)

    def _add(self, judging: str) -> None:
        with self._building:
            try:
                made = _built(self.store, judging)
            except Exception as error:  # as above: it is said on the page
                self._failed(f"{self.store.folder} cannot be read: {type(error).__name__}: {error}")
                return
            kept = [name for name in self._indexes if name != DEFAULT][-(MOST_JUDGINGS - 2) :]
            before = {name: self._indexes[name] for name in (DEFAULT, *kept) if name in self._indexes}
            self._indexes = {**before, judging: made}
        self._swapped()


def _built(store: Store, judging: str) -> Index:
    """A part that was merged or judged away while it was read is looked up again."""
    for _ in range(3):
        try:
            return build(store, judging)
        except NoRun:
            raise
        except _LATER:
            time.sleep(0.1)
    return build(store, judging)


class Watcher:
    """Looks at all runs again and again, in a thread of its own; does something else after the first look."""

    def __init__(self, runs: tuple[Watched, ...], then: Callable[[], object]) -> None:
        self.runs, self.then = runs, then
        self._end = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._go, name="instar-viewer-watcher", daemon=True).start()
        threading.Thread(target=self._count, name="instar-viewer-counter", daemon=True).start()

    def stop(self) -> None:
        self._end.set()

    def _go(self) -> None:
        self._look()
        self.then()
        while not self._end.is_set():
            begun = time.monotonic()
            self._look()
            # judging a large run takes its time: look no more often than that leaves most of it to others
            self._end.wait(max(EVERY, 3 * (time.monotonic() - begun)))

    def _count(self) -> None:
        """How far runs are, also while a large one is being judged."""
        while not self._end.wait(EVERY):
            for run in self.runs:
                with suppress(OSError, LookupError, ValueError, pl.exceptions.PolarsError):  # a look says what is wrong
                    run.measure()

    def _look(self) -> None:
        for run in self.runs:
            if not self._end.is_set():
                run.look()
