"""What people say of violated pairs: that they are real, a false alarm or unclear. A small file beside the verdicts.

A mark belongs to a case, a rule and a target, by their ids: judging anew does not touch it. The file is replaced as a
whole by whoever holds its lock, who reads it first: two viewers, or a viewer beside a run, lose nothing of each other.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from instar.files import clear_unfinished, storable
from instar.remote import Address
from instar.store.folder import place_of
from instar.store.manifest import sealed, unsealed
from instar.store.parts import Damaged
from instar.store.store import Store

REAL, FALSE_ALARM, UNCLEAR = MARKS = ("real", "false alarm", "unclear")
"""What a pair may be marked as."""
MOST_NOTE = 1000
"""The letters that a note has at the most."""
LABEL = "label"
"""What stands in the place of a rule where a mark is about a label of the dataset, which is its target."""
_FOLDER = "marks"  # a folder of its own: whoever runs clears what is unfinished beside the manifest
_FILE, _LOCK = f"{_FOLDER}/marks.json", f"{_FOLDER}/lock"
_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)

Key = tuple[str, str, str]
"""The case, the rule and the target of a mark; an empty target is the pair as a whole, whichever target is worst."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What somebody says of a pair, and when it was said (UTC)."""

    case: str
    rule: str
    target: str
    mark: str
    note: str = ""
    made: str = ""

    @property
    def key(self) -> Key:
        return self.case, self.rule, self.target


class Unmarkable(ValueError):
    """A run whose pairs cannot be marked, and why."""


class DamagedMarks(Damaged):
    """The file of marks is not what was written."""

    def __str__(self) -> str:
        return (
            f"{self.path} is damaged: {self.why}. `instar repair-run` sets it aside; marks that were exported can be "
            "imported again"
        )


def new_mark(case: str, rule: str, target: str, mark: str, note: str = "", made: str = "") -> Mark:
    """A mark that can be stored: its note is one line. Raises ValueError for what is none."""
    if mark not in MARKS:
        raise ValueError(f"{mark!r} is no mark; allowed are: {', '.join(MARKS)}")
    line = " ".join(storable(note).split())
    if len(line) > MOST_NOTE:
        raise ValueError(f"a note has at most {MOST_NOTE:,} letters, and this one has {len(line):,}")
    return Mark(case, rule, target, mark, line, made or datetime.now(UTC).isoformat(timespec="microseconds"))


def stored_marks(store: Store) -> Mapping[Key, Mark]:
    """All marks of a run by their keys, in the order in which they were made. Raises DamagedMarks."""
    try:
        content = store.place.content(_FILE)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    try:
        return _parsed(content)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise DamagedMarks(store.folder, store.folder / _FILE, str(error) or type(error).__name__) from None


@lru_cache(maxsize=4)
def _parsed(content: bytes) -> Mapping[Key, Mark]:
    values = unsealed(content)
    if not isinstance(values, dict) or not isinstance(values.get("marks"), list):
        raise ValueError("it holds no marks")
    marks = [Mark(**row) for row in values["marks"]]
    for mark in marks:
        if not all(isinstance(getattr(mark, one.name), str) for one in fields(Mark)) or mark.mark not in MARKS:
            raise ValueError(f"{mark.mark!r} is no mark")
    return {mark.key: mark for mark in marks}


def why_unmarkable(store: Store) -> str:
    """Why the pairs of a run cannot be marked; empty where they can."""
    if isinstance(store.folder, Address):
        return (
            f"{store.folder} is in a bucket, and marks are made on a disk; copy the run into a folder to mark its pairs"
        )
    places = [path for path in (store.place.path, store.inside(_FOLDER)) if path.exists()]
    if all(os.access(path, os.W_OK | os.X_OK) for path in places):
        return ""
    return _read_only(store.folder)


def _read_only(folder: Path) -> str:
    return f"{folder} cannot be written to, and marks are kept in it; copy the run to where you can write"


@contextmanager
def changing_marks(store: Store) -> Iterator[dict[Key, Mark]]:
    """The marks of a run, to be changed in the block, at whose end they are stored whole; nobody else changes them
    meanwhile. Where the block raises, nothing is stored. Raises Unmarkable where nothing can be."""
    store.manifest()  # a folder that was deleted is not made anew
    if why := why_unmarkable(store):
        raise Unmarkable(why)
    # a place of its own: threads of one process that hold other locks of the run know nothing of this one
    place = place_of(store.folder)
    try:
        with place.locked(_LOCK, wait=True):
            clear_unfinished([place.inside(_FOLDER)])
            before = stored_marks(store)
            marks = dict(before)
            yield marks
            if marks != before:
                place.replace(_FILE, sealed({"marks": [asdict(mark) for mark in marks.values()]}))
    except OSError as error:
        if error.errno in _READ_ONLY:
            raise Unmarkable(_read_only(store.folder)) from None
        raise


def add_marks(store: Store, marks: Mapping[Key, Mark]) -> None:
    """Add the marks of another run; what is marked here already stays as it is."""
    if marks:
        with changing_marks(store) as own:
            own |= {key: mark for key, mark in marks.items() if key not in own}


def set_marks_aside(store: Store, folder: str) -> tuple[str, str, str]:
    """Move a damaged file of marks into a folder: where it was, where it is, and what is wrong with it, which is
    nothing where it is whole."""
    aside = f"{folder}/{_FILE.replace('/', '-')}"
    try:
        stored_marks(store)
    except DamagedMarks as damage:
        store.place.set_aside(_FILE, aside)
        return _FILE, aside, damage.why
    return _FILE, aside, ""
