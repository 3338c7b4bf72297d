"""The ledger of a seed: entries, each with its share of all that may happen."""

from __future__ import annotations

import random
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from studies.ledger.calls import Account, account, lines_in
from studies.ledger.entries import IMAGES, Entry, Undisturbed, make_home
from studies.ledger.faults import FAULTS, PROCESS_KILLED
from studies.ledger.life import ENGINES, NODE, ON_THIS_MACHINE
from studies.ledger.nodes import Nodes

DISK = "8m"
"""The size of a run folder that is a file system of its own."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the ledger says of one entry: what happened, and what is wrong (nothing, it is hoped)."""

    number: int
    lives: int
    rows: int
    ends: Counter[tuple[str, str, str]]
    calls: Account
    events: tuple[str, ...]
    wrong: tuple[str, ...]


class Ledger:
    """Entries of `faults` each. Over all of them each kind of fault comes as often as its weight says, in an order that
    the seed draws. `processes` is how likely engines with processes of their own are beside the one without; with
    `real`, every run folder is a small file system, and the clock of processes is ours: that needs Linux, its
    administrator and a C compiler."""

    def __init__(
        self, seed: int, faults: int, processes: float, *, real: bool = False, engines: Sequence[str] = ON_THIS_MACHINE
    ) -> None:
        self.seed, self.faults, self.processes, self.real, self.engines = seed, faults, processes, real, engines
        self.nodes = Nodes() if any(NODE in ENGINES[name].roles for name in engines) else None
        self._folder = tempfile.TemporaryDirectory(prefix="ledger-")
        self.undisturbed = Undisturbed(Path(self._folder.name))

    def kinds(self) -> list[str]:
        return [name for name, fault in FAULTS.items() if self.real or not fault.real]

    def deck(self) -> list[str]:
        """All that happens in turn: every kind once, then every kind as often as it weighs. Where there are nodes, one
        is killed every second time."""
        drawn = random.Random(self.seed)
        names = self.kinds()
        drawn.shuffle(names)
        rest = [name for name in self.kinds() for _ in range(FAULTS[name].weight)]
        for _ in range(100):
            drawn.shuffle(rest)
            names += rest
        return [one for name in names for one in (PROCESS_KILLED, name)] if self.nodes else names

    def entry(self, number: int) -> Outcome:
        with self._prepared(number) as entry:
            for name in self.deck()[number * self.faults : (number + 1) * self.faults]:
                entry.fault, entry.refusal = name, FAULTS[name].refusal
                FAULTS[name].inject(entry)
            entry.settle()
            entry.check()
            return Outcome(
                number,
                sum(entry.ends.values()),
                len(entry.rows),
                entry.ends,
                account(lines_in(entry.home), self.undisturbed.keys),
                tuple(entry.events),
                tuple(entry.wrong),
            )

    @contextmanager
    def _prepared(self, number: int) -> Iterator[Entry]:
        home = make_home(Path(self._folder.name) / f"entry {number}", IMAGES)
        drawn = random.Random(f"{self.seed}/{number}")
        entry = Entry(self.undisturbed, home, drawn, self.engines, self.processes, self.real, self.nodes)
        if self.real:
            entry.run.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=700", "ledger", entry.run], check=True)
        try:
            yield entry
        finally:
            if self.real:
                subprocess.run(["umount", "-l", entry.run], check=True)
            shutil.rmtree(home, ignore_errors=True)
