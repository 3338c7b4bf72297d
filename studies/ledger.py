"""Runs that are disturbed at random end in exactly the undisturbed result, or are refused with a reason.

Every entry of the ledger is a run of its own with two disturbances: it is killed, its disk is full, one of its
files is damaged, its images or its system's code change, its worker dies, two of them write at once, its folder is
taken away. After that whatever was changed is put back, what was damaged is repaired as the refusal says, and the run
goes on to its end. Its tables must then be those of a run that nothing happened to.

    python -m studies.ledger --seed 1 --out studies/ledger.json
"""

from __future__ import annotations

import argparse
import errno
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import ParamSpec, TypeVar

import polars as pl

import instar
import instar.engine.coordinator
import instar.engine.keeper
import instar.engine.worker
from instar.store import KEY, Damaged, Store, repair
from tests.toys import write_scenes

P = ParamSpec("P")
R = TypeVar("R")

MODEL = """
from tests.engine.zones import painted
from tests.toys import rectangles

VERSION = 1


def predict(pixels):
    return rectangles(pixels)


def zones(pixels):
    return painted(pixels)
"""
RULES = ("gamma(0.5)", "mirror(h)", "noise(10)", "gamma(0.7, red)")
IMAGES = 5
OTHER_CONFIDENCE = 0.4
MOST_SECONDS = 60.0
DISTURBED = 2
"""Disturbances of each run."""
FORKS = multiprocessing.get_context("forkserver")
# a new process has everything imported that a run needs, and no thread of Polars yet
FORKS.set_forkserver_preload(["studies.ledger", "instar.api", "scipy.optimize", "tests.engine.zones"])


# -- one operation in a process of its own, with what is to happen to it


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What happens when the operation comes to its `at`-th step: a file is about to be written, renamed or removed, or
    was just, or the system is asked."""

    action: str = "none"  # none, kill, full, gone
    at: int = 0


@dataclass(slots=True)
class _Steps:
    """Counts steps, and does at the right one what is to be done."""

    disturbance: Disturbance
    folder: Path
    count: int = 0
    full: bool = False

    def __call__(self, *, writes: bool = True) -> None:
        self.count += 1
        if self.count == self.disturbance.at:
            if self.disturbance.action == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.disturbance.action == "gone":
                shutil.rmtree(self.folder, ignore_errors=True)
            self.full = self.disturbance.action == "full"
        if self.full and writes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _watched(steps: _Steps) -> None:
    """Every durable step of this process is counted before and after."""

    def counted(function: Callable[P, R], writes: bool) -> Callable[P, R]:
        def step(*arguments: P.args, **named: P.kwargs) -> R:
            steps(writes=writes)
            value = function(*arguments, **named)
            steps(writes=False)
            return value

        return step

    os.fsync = counted(os.fsync, True)
    Path.replace = counted(Path.replace, True)  # type: ignore[method-assign]
    Path.unlink = counted(Path.unlink, False)  # type: ignore[method-assign]
    worker = instar.engine.worker.Worker
    worker._predicted = counted(worker._predicted, False)  # type: ignore[method-assign]


def _operation(folder: str, name: str, disturbance: Disturbance, workers: int, answer: Connection) -> None:
    """Run or judge; what came of it goes to the one who waits for it."""
    os.environ["TMPDIR"] = folder
    os.environ["POLARS_MAX_THREADS"] = "1"  # small tables, and many processes at once
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    instar.engine.keeper.COMMIT_ROWS = 7
    home = Path(folder)
    steps = _Steps(disturbance, home / "run")
    _watched(steps)
    try:
        if name == "run":
            instar.run(
                "model:predict",
                _suite(),
                home / "photos",
                out=home / "run",
                workers=workers,
                seed=3,
                zones="model:zones",
                retry_failed=True,  # an image that was broken for a while is a row that says so until it is asked again
            )
        elif name == "judge":
            instar.open_run(home / "run").judge(confidence=OTHER_CONFIDENCE)
        elif name == "repair":
            repair(Store(home / "run"))
    except Exception as error:
        answer.send(("refused", f"{type(error).__name__}: {error}", steps.count))
        return
    answer.send(("done", "", steps.count))


def _suite() -> instar.Suite:
    return instar.Suite("ledger", tuple(map(instar.rule, RULES)))


@dataclass(frozen=True, slots=True)
class Result:
    """How an operation ended: `done`, `refused` with its words, or `killed`."""

    end: str
    words: str = ""
    steps: int = 0


class Operation:
    """An operation under way in another process."""

    def __init__(self, home: Path, name: str, disturbance: Disturbance | None = None, workers: int = 0) -> None:
        self.answer, there = FORKS.Pipe(duplex=False)
        values = (str(home), name, disturbance or Disturbance(), workers, there)
        self.process = FORKS.Process(target=_operation, args=values)
        self.process.start()
        there.close()

    def result(self) -> Result:
        try:
            if not self.answer.poll(MOST_SECONDS):
                self.process.kill()
                return Result("hung", f"no end within {MOST_SECONDS:g} s")
            return Result(*self.answer.recv())
        except EOFError:
            return Result("killed")
        finally:
            self.process.join()
            self.answer.close()


# -- what can happen


@dataclass(slots=True)
class Entry:
    """One run of the ledger, and what happened to it."""

    number: int
    home: Path
    random: random.Random
    steps: int
    events: list[str] = field(default_factory=list)
    manifest: bytes = b""
    """A copy of the manifest from before it was damaged: nothing else says what a run is."""

    @property
    def run(self) -> Path:
        return self.home / "run"

    def operation(self) -> str:
        """Something to disturb: judging comes where there is something to judge."""
        return self.random.choice(("run", "judge")) if (self.run / "predictions").is_dir() else "run"

    def note(self, event: str, *results: Result) -> None:
        self.events.append(f"{event}: {', '.join(f'{r.end} {r.words}'.strip() for r in results)}" if results else event)


def killed(entry: Entry) -> None:
    name, at = entry.operation(), entry.random.randint(1, entry.steps)
    entry.note(f"{name} killed at step {at}", Operation(entry.home, name, Disturbance("kill", at)).result())


def disk_full(entry: Entry) -> None:
    name, at = entry.operation(), entry.random.randint(1, entry.steps)
    entry.note(f"disk full from step {at} of {name}", Operation(entry.home, name, Disturbance("full", at)).result())


def damaged(entry: Entry) -> None:
    """One file of the run folder is cut off, emptied, removed or has a wrong byte."""
    if not entry.run.is_dir():
        Operation(entry.home, "run", Disturbance("kill", entry.random.randint(entry.steps // 2, entry.steps))).result()
    files = sorted(path for path in entry.run.rglob("*") if path.is_file() and path.name != "lock")
    if not files:
        return
    path, how = entry.random.choice(files), entry.random.choice(("cut", "emptied", "wrong byte", "wrong byte"))
    content = bytearray(path.read_bytes())
    if path.name == "manifest.json":
        entry.manifest = bytes(content)
    if how == "wrong byte" and content:
        content[entry.random.randrange(len(content))] ^= 1 << entry.random.randrange(8)
    path.write_bytes(content[: len(content) // 2] if how == "cut" else b"" if how == "emptied" else content)
    entry.note(
        f"{path.relative_to(entry.run)} {how}", *(Operation(entry.home, name).result() for name in ("run", "judge"))
    )


def dataset_changed(entry: Entry) -> None:
    """An image is another, or gone, for a while."""
    path = entry.random.choice(sorted((entry.home / "photos").iterdir()))
    content = path.read_bytes()
    if entry.random.random() < 0.5:
        path.unlink()
    else:
        path.write_bytes(
            sorted((entry.home / "photos").iterdir())[0].read_bytes()[:-20] if entry.random.random() < 0.5 else b""
        )
    at = entry.random.randint(1, entry.steps)
    entry.note(f"{path.name} changed", Operation(entry.home, "run", Disturbance("kill", at)).result())
    path.write_bytes(content)


def code_changed(entry: Entry) -> None:
    """The system's module is edited, and later put back."""
    model = entry.home / "model.py"
    model.write_text(
        MODEL.replace("rectangles(pixels)", "rectangles(pixels[::-1])").replace("VERSION = 1", "VERSION = 2")
    )
    fresh = not (entry.run / "manifest.json").exists()
    if fresh:  # whoever begins a run with the new code has a run of the new code: that is no disturbance
        model.write_text(MODEL)
        Operation(entry.home, "run", Disturbance("kill", entry.random.randint(entry.steps // 3, entry.steps))).result()
        model.write_text(MODEL.replace("VERSION = 1", "VERSION = 2"))
    if (entry.run / "manifest.json").exists():
        entry.note("code changed", Operation(entry.home, "run").result())
    model.write_text(MODEL)


def worker_lost(entry: Entry) -> None:
    """Worker processes are killed while they work."""
    operation = Operation(entry.home, "run", workers=1)
    deadline = time.monotonic() + 20
    victims = 0
    while victims < 1 and operation.process.is_alive() and time.monotonic() < deadline:
        for child in _children(operation.process.pid):
            time.sleep(entry.random.random() * 0.5)
            try:
                os.kill(child, signal.SIGKILL)
                victims += 1
            except ProcessLookupError:
                continue
        time.sleep(0.02)
    entry.note(f"{victims} worker killed", operation.result())


def _children(parent: int | None) -> list[int]:
    """The processes that a process has started (Linux)."""
    try:
        return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
    except OSError:
        return []


def two_at_once(entry: Entry) -> None:
    names = ("run", entry.random.choice(("run", "judge")))
    operations = [Operation(entry.home, name) for name in names]
    entry.note(f"{' and '.join(names)} at once", *(operation.result() for operation in operations))


def folder_gone(entry: Entry) -> None:
    at = entry.random.randint(1, entry.steps)
    entry.note(f"folder removed at step {at}", Operation(entry.home, "run", Disturbance("gone", at)).result())


DISTURBANCES: dict[Callable[[Entry], None], float] = {
    killed: 8,
    disk_full: 4,
    damaged: 6,
    dataset_changed: 3,
    code_changed: 3,
    worker_lost: 0.5,
    two_at_once: 3,
    folder_gone: 1.5,
}
"""What may happen, and how often."""


# -- what must come of it


def tables(run: Path) -> dict[str, pl.DataFrame]:
    """Everything that a run says, without the seconds it took and the folders it lies in."""
    opened, store = instar.open_run(run), Store(run)
    predictions = store.whole(store.predictions()).drop("seconds").sort(KEY)
    return {
        "predictions": predictions,
        "cases": store.cases().drop("path", strict=False).sort("case"),
        "needs": store.needs().sort("case", "need"),
        "verdicts": opened.verdicts().sort("case", "target", "rule"),
        "verdicts of another judging": opened.verdicts(confidence=OTHER_CONFIDENCE).sort("case", "target", "rule"),
    }


def settled(entry: Entry) -> None:
    """Go on to the end as a user would: by what the refusals say."""
    for _ in range(4):
        result = Operation(entry.home, "run").result()
        entry.note("run", result)
        if result.end == "done":
            try:
                tables(entry.run)
                return
            except Damaged as damage:  # a run that has its verdicts does not read them
                entry.note(str(damage))
        if "restore it from a copy" in result.words:
            (entry.run / "manifest.json").write_bytes(entry.manifest)
        entry.note("repair", Operation(entry.home, "repair").result())


@contextmanager
def prepared(number: int, seed: int, steps: int) -> Iterator[Entry]:
    with tempfile.TemporaryDirectory(prefix="ledger-") as folder:
        home = Path(folder)
        write_scenes(home / "photos", IMAGES, (60, 40))
        (home / "model.py").write_text(MODEL)
        yield Entry(number, home, random.Random(f"{seed}/{number}"), steps)


@dataclass(frozen=True, slots=True)
class Line:
    """What the ledger says of one entry: what happened, and what is wrong with the result (nothing, it is hoped)."""

    number: int
    events: tuple[str, ...]
    wrong: tuple[str, ...]


class Ledger:
    """The undisturbed run, and entries that are compared with it."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        with prepared(-1, seed, 0) as entry:
            result = Operation(entry.home, "run").result()
            assert result.end == "done", result
            self.steps, self.tables = result.steps, tables(entry.run)

    def entry(self, number: int) -> Line:
        with prepared(number, self.seed, self.steps) as entry:
            kinds, weights = list(DISTURBANCES), list(DISTURBANCES.values())
            # every kind comes first in some entry; what comes after it is drawn
            first = [kinds[number % len(kinds)]] if number < len(kinds) else entry.random.choices(kinds, weights)
            for disturb in [*first, *entry.random.choices(kinds[:5], weights[:5], k=DISTURBED - 1)]:
                disturb(entry)
            settled(entry)
            return Line(number, tuple(entry.events), tuple(self._wrong(entry)))

    def _wrong(self, entry: Entry) -> Iterator[str]:
        if any(": hung" in event for event in entry.events):
            yield "an operation did not end"
        for event in entry.events:
            if "Traceback" in event or any(word in event for word in ("AssertionError", "KeyError", "IndexError")):
                yield f"no clear words: {event}"
        try:
            results = tables(entry.run)
        except Exception as error:
            yield f"the run cannot be read: {type(error).__name__}: {error}"
            return
        for name, expected in self.tables.items():
            if not results[name].equals(expected):
                yield f"{name} differ ({results[name].height} rows, {expected.height} expected)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    ledger, began = Ledger(options.seed), time.monotonic()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        lines = list(pool.map(ledger.entry, range(options.entries)))
    summary = {
        "entries": len(lines),
        "disturbances": DISTURBED * len(lines),
        "seed": options.seed,
        "wrong": [asdict(line) for line in lines if line.wrong],
        "seconds": round(time.monotonic() - began),
    }
    print(json.dumps(summary, indent=1))
    if options.out is not None:
        options.out.write_text(json.dumps(summary, indent=1) + "\n")


if __name__ == "__main__":
    main()
