"""The ledger: a file, outside the run folder, that everybody appends to. It has every call of the system.

Each line has the number of a life, a word, and what the word is about:

    asked      the content of an input, and what the system does about it: nothing special, or a mood
    stored     the key of a row that was committed, and its status: by the process that committed it, and once more, of
               all rows in the folder, by the study when that process is gone
    forgotten  the key of a row that may go: its part was damaged, it failed and is tried again, the folder is gone
    killed     a process of the life, by the study
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from instar import Detections
from tests.toys import content, rectangles

FILE, LIFE, MOODS = "calls", "life", "moods.json"
STATUSES = {"": "ok", "raises": "error", "answers NaN": "error", "hangs": "timeout", "dies": "crashed"}
"""What the system does, and the status of a row that comes of it."""
DEADLY = ("hangs", "dies")
Key = tuple[str, str, int, int]


def note(home: Path, life: int, word: str, *entries: Iterable[object]) -> None:
    """Lines in one write at the end of the file, whoever else writes."""
    lines = "".join("\t".join(map(str, (life, word, *values))) + "\n" for values in entries)
    descriptor = os.open(home / FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, lines.encode())
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Line:
    life: int
    word: str
    values: tuple[str, ...]

    @property
    def key(self) -> Key:
        case, follow_up, draw, repeat = self.values[:4]
        return case, follow_up, int(draw), int(repeat)


def lines_in(home: Path) -> list[Line]:
    if not (home / FILE).exists():
        return []
    split = (line.split("\t") for line in (home / FILE).read_text("utf-8").splitlines())
    return [Line(int(life), word, tuple(values)) for life, word, *values in split]


# -- the system


def life_in(home: Path) -> int:
    """The number of the life that is under way."""
    return int((home / LIFE).read_text())


def answered(pixels: np.ndarray, home: Path, life: int) -> Detections:
    """What a detector says that first writes down what it is asked. It sees rectangles, and signs with the content of
    its input: a row that has the answer to another input is another row."""
    digest = content(pixels)
    mood = _mood(home, life, digest)
    note(home, life, "asked", (digest, mood))
    if mood == "raises":
        raise RuntimeError("this input is too much")
    if mood == "hangs":
        time.sleep(3600)
    if mood == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    seen = rectangles(pixels)
    corner = [1, 1, np.nan if mood == "answers NaN" else 5, 5]
    return Detections.from_xyxy(np.vstack([seen.boxes, [corner]]), [*seen.labels, digest])


def _mood(home: Path, life: int, digest: str) -> str:
    """What is to be done about an input in this life, as often as it is to be done."""
    try:
        moods: dict[str, tuple[str, int]] = json.loads((home / MOODS).read_text("utf-8"))
    except FileNotFoundError:
        return ""
    mood, times = moods.get(digest, ("", 0))
    before = sum(line.life == life and line.word == "asked" and line.values[0] == digest for line in lines_in(home))
    return mood if before < times else ""


# -- what the ledger proves


def committed_in(lines: Iterable[Line]) -> set[Key]:
    """The rows that must be there."""
    keys: set[Key] = set()
    for line in lines:
        if line.word == "stored":
            keys.add(line.key)
        elif line.word == "forgotten":
            keys.discard(line.key)
    return keys


@dataclass(slots=True)
class Account:
    """What a ledger comes to."""

    total: int = 0
    again: int = 0
    """Calls about an input that was asked about before: it was not committed then, or it was forgotten."""
    killed: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def account(lines: Iterable[Line], keys: Mapping[str, Key]) -> Account:
    """No committed row is predicted again, and every row has the status of what the system did.

    `keys` says by the content of an input which row it belongs to. A pair that violates its rule may be predicted a
    second time, once, when the life has predicted everything else: that is a row of its own.

    The order of lines is that of events, except that a process may live on for a moment after the one that started it
    was killed: what it asks in an earlier life is no second call of what a later one has stored.
    """
    sums = Account()
    stored: dict[Key, int] = {}
    moods: dict[Key, list[str]] = {}
    second: set[int] = set()  # the lives that predict pairs a second time by now
    deaths: Counter[int] = Counter()
    for line in lines:
        if line.word == "asked":
            sums.total += 1
            digest, mood = line.values
            key = keys.get(digest)
            if key is None:
                sums.wrong.append(f"life {line.life} asked about an input that nobody made")
                continue
            if key in stored and stored[key] <= line.life:
                key = (*key[:3], 1)
                second.add(line.life)
            elif line.life in second:
                sums.wrong.append(f"{key} was predicted in life {line.life} after second predictions")
            if key in stored and stored[key] <= line.life:
                sums.wrong.append(f"{key} was committed in life {stored[key]}, and predicted again in {line.life}")
            sums.again += key in moods
            moods.setdefault(key, []).append(mood)
            deaths[line.life] += mood in DEADLY
        elif line.word == "stored":
            if line.key not in stored:
                sums.wrong += _wrong_status(line, moods.get(line.key, []), max(deaths.values(), default=0))
            stored.setdefault(line.key, line.life)
        elif line.word == "forgotten":
            stored.pop(line.key, None)
        elif line.word == "killed":
            sums.killed[line.values[0]] += 1
            deaths[line.life] += 1
    return sums


def _wrong_status(line: Line, moods: list[str], deaths: int) -> Iterator[str]:
    """An input in whose turn a process was killed twice is `crashed`, too, whatever the system did."""
    status = line.values[4]
    if status in ("timeout", "crashed") and deaths < 2:
        yield f"{line.key} has the status {status} after {deaths} deaths"
    elif status != "crashed" and status not in {STATUSES[mood] for mood in moods}:
        yield f"{line.key} has the status {status}, and the system did {moods}"
