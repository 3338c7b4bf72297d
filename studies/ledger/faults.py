"""What may happen to a run, and what may be said of it."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import polars as pl

from instar.store import KEY
from instar.store.parts import live_parts
from studies.ledger.calls import DEADLY, MOODS, STATUSES, Key, lines_in, note
from studies.ledger.entries import FOLDER_GONE, MENDED, MODEL, Entry, photos_in
from studies.ledger.life import ENGINES, NODE, PAUSED, Disturbance, Operation

HANG_SECONDS = 3.0
YEARS = 365 * 86_400


@dataclass(frozen=True, slots=True)
class Fault:
    """`refusal` is what a life that meets it may say instead of doing its work; `weight` is how often it comes. A
    `real` one needs a disk of its own."""

    inject: Callable[[Entry], None]
    refusal: str = ""
    weight: int = 1
    real: bool = False


def _struck(entry: Entry, action: str) -> None:
    """Something happens at some step of running or judging."""
    work = entry.work()
    entry.live(work, Disturbance(action, entry.step(work)), engine=entry.engine())


# -- the process that drives the run


def killed(entry: Entry) -> None:
    _struck(entry, "kill")


def power_cut(entry: Entry) -> None:
    _struck(entry, "power cut")


def interrupted(entry: Entry) -> None:
    """Ctrl-C, once or twice."""
    entry.live("run", Disturbance("interrupt", entry.step(), entry.random.randint(1, 2)), engine=entry.engine())


def two_at_once(entry: Entry) -> None:
    """One begins, and in the middle of it another one comes, and ends before it."""
    first = entry.begin("run", Disturbance("pause", entry.random.randint(1, 20)), entry.engine())
    second = entry.begin(entry.random.choice(("run", "run", "judge")), retry=False)
    one, paused = Operation(first), entry.home / PAUSED
    while one.alive and not paused.exists():
        time.sleep(0.01)
    result = Operation(second).result()
    paused.unlink(missing_ok=True)
    entry.end(first, one.result(), result)


# -- those that work for it


def process_killed(entry: Entry) -> None:
    """A worker, a maker or a predictor, or its guard, up to three times; or a node."""
    name = entry.engine_with_processes()
    role = entry.random.choice(ENGINES[name].roles)
    if role == NODE:
        _node_killed(entry, name)
        return
    at = entry.random.randint(1, 15)
    entry.live("run", Disturbance("lose", at, entry.random.choice((1, 1, 2, 3)), role), engine=name)


def _node_killed(entry: Entry, engine: str) -> None:
    """A node dies as soon as something was asked in this life."""
    assert entry.nodes is not None
    life = entry.begin("run", engine=engine)
    operation = Operation(life)
    while operation.alive and not any(
        line.life == life.number and line.word == "asked" for line in lines_in(entry.home)
    ):
        time.sleep(0.02)
    if operation.alive:
        entry.nodes.lose_one(entry.random)
        note(entry.home, life.number, "killed", (NODE,))
    entry.end(life, operation.result())


def system_fails(entry: Entry) -> None:
    """It raises, or answers what is no number."""
    _moody(entry, entry.engine(), [mood for mood in STATUSES if mood and mood not in DEADLY], inputs=3)


def system_hangs(entry: Entry) -> None:
    """Or kills its process. Once: then another process is asked; or always."""
    _moody(entry, entry.engine_with_processes(), list(DEADLY), inputs=entry.random.choice((1, 1, 2)))


def _moody(entry: Entry, engine: str, moods: list[str], *, inputs: int) -> None:
    wanted = entry.missing()
    chosen = entry.random.sample(wanted, min(inputs, len(wanted)))
    plan = {entry.digest(key): (entry.random.choice(moods), entry.random.choice((1, 99))) for key in chosen}
    (entry.home / MOODS).write_text(json.dumps(plan))
    entry.live("run", engine=engine, timeout=HANG_SECONDS if "hangs" in moods else 60.0)
    (entry.home / MOODS).unlink()


# -- the disk


def disk_fills(entry: Entry) -> None:
    """From some write on there is no space; injected where files are made durable and renamed."""
    _struck(entry, "full")


def disk_full(entry: Entry) -> None:
    """A file takes what is left of the disk, all but a little."""
    ballast = entry.run / "ballast"
    space = os.statvfs(entry.run)
    ballast.write_bytes(bytes(space.f_bavail * space.f_frsize - entry.random.choice((0, 4, 8, 16, 32, 64)) * 1024))
    entry.live(entry.work(), engine=entry.engine())
    ballast.unlink()


def turns_read_only(entry: Entry) -> None:
    """From some write on; injected, as a disk that meets an error of its own does it."""
    _struck(entry, "read-only")


def read_only(entry: Entry) -> None:
    """Its file system is mounted so."""
    subprocess.run(["mount", "-o", "remount,ro", entry.run], check=True)
    try:
        entry.live("run", engine=entry.engine())
    finally:
        subprocess.run(["mount", "-o", "remount,rw", entry.run], check=True)


def folder_gone(entry: Entry) -> None:
    entry.live("run", Disturbance("remove", entry.step()), engine=entry.engine())


def damaged(entry: Entry) -> None:
    """One file of the run folder is cut off, emptied or has a wrong byte."""
    if not entry.rows:
        entry.live()
    folders: dict[str, list[Path]] = {}
    for path in sorted(entry.run.rglob("*")):
        if path.is_file() and path.name not in ("lock", "readers") and "damaged" not in path.parts:
            folders.setdefault(path.relative_to(entry.run).parts[0], []).append(path)
    path = entry.random.choice(folders[entry.random.choice(list(folders))])
    how = entry.random.choice(("cut", "emptied", "wrong byte", "wrong byte"))
    content = bytearray(path.read_bytes())
    if path.name == "manifest.json":
        entry.manifest = bytes(content)
    counts, keys = _content(entry, path)
    if how == "wrong byte" and content:
        content[entry.random.randrange(len(content))] ^= 1 << entry.random.randrange(8)
    path.write_bytes(content[: len(content) // 2] if how == "cut" else b"" if how == "emptied" else content)
    name = str(path.relative_to(entry.run))
    entry.damage[name] = keys
    entry.events.append(f"{name} {how}")
    before = len(entry.events)
    for work in ("run", "judge"):
        entry.live(work)
    if counts and not any(path.name in event for event in entry.events[before:]):
        entry.wrong.append(f"nobody said that {name} is damaged ({how})")


def _content(entry: Entry, path: Path) -> tuple[bool, frozenset[Key]]:
    """Whether every run reads a file, and the rows that it holds, or that stand on it."""
    table = path.parent.name
    if table not in ("predictions", "cases", "needs", "apart"):
        return path.name == "manifest.json", frozenset()
    store = entry.store
    if path not in [part.path for part in live_parts(store.place.parts(table))]:
        return False, frozenset()
    if table == "predictions":
        return True, frozenset(pl.read_parquet(path, columns=list(KEY), glob=False).rows())
    if table != "apart":
        return True, frozenset()
    lost = pl.read_parquet(path, columns=["hash"], glob=False)["hash"].implode()
    columns = store.apart(store.manifest().system.kind)
    rows = store.predictions(where=pl.any_horizontal(pl.col(name).is_in(lost) for name in columns), again=True)
    return True, frozenset(rows.select(KEY).rows())


# -- what the run is of


def image_replaced(entry: Entry) -> None:
    """A photo is another one now. Where the run knows the first one, that is said and nothing of the other is stored;
    where it has not read it yet, the other one is the photo."""
    name = entry.photo()
    known, missing = entry.knows(name), entry.missing(name)
    entry.put_photo(name, other=True)
    result = entry.live(engine=entry.engine())
    if known and missing and f"{name} is not the input that this run knows" not in result.words:
        entry.wrong.append(f"{name} was replaced, and nobody said so: {result}")
    if entry.knows(name) and not known:
        entry.replaced.add(name)
    entry.put_photo(name)


def image_removed(entry: Entry) -> None:
    name = entry.photo()
    known, missing = entry.knows(name), entry.missing(name)
    (entry.home / "photos" / name).unlink()
    result = entry.live(engine=entry.engine())
    if known and missing and name not in result.words:
        entry.wrong.append(f"{name} was removed, and nobody said that it lacks predictions: {result}")
    entry.put_photo(name)


def image_added(entry: Entry) -> None:
    name = f"{len(photos_in(entry.home)):03d}.png"
    if (entry.undisturbed.photos[0] / name).exists():
        entry.put_photo(name)
    entry.live("run", Disturbance("kill", entry.step()), engine=entry.engine())


def image_broken(entry: Entry) -> None:
    """Cut off or empty, for a while."""
    name = entry.photo()
    known, missing = entry.knows(name), entry.missing(name)
    path = entry.home / "photos" / name
    path.write_bytes(path.read_bytes()[:-20] if entry.random.random() < 0.5 else b"")
    result = entry.live(engine=entry.engine())
    if known and missing and f"{name} was read before and cannot be read any more" not in result.words:
        entry.wrong.append(f"{name} was broken, and nobody said so: {result}")
    entry.put_photo(name)


def code_changed(entry: Entry) -> None:
    """The system's module is edited, and later put back."""
    if not (entry.run / "manifest.json").exists():  # who begins a run with the new code has a run of the new code
        entry.live("run", Disturbance("kill", entry.undisturbed.steps // 4))
    model = entry.home / "model.py"
    if (entry.run / "manifest.json").exists():
        model.write_text(MODEL.replace("VERSION = 1", "VERSION = 2"))
        result = entry.live("run", engine=entry.engine())
        model.write_text(MODEL)
        if result.end != "refused":
            entry.wrong.append(f"the system's code changed, and the run went on: {result}")


# -- the clock


def clock_jumps(entry: Entry) -> None:
    """By years, back or forth, before the life or in the middle of it; and files have the times that it left."""
    seconds = entry.random.choice((-1, 1)) * entry.random.randint(YEARS, 9 * YEARS)
    for path in entry.run.rglob("*"):
        if entry.random.random() < 0.3:
            moment = path.stat().st_mtime + seconds
            os.utime(path, (moment, moment))
    jump = Disturbance("jump", entry.step(), seconds=seconds)
    entry.live("run", jump, engine=entry.engine(), library=false_clock() if entry.real else None)


@cache
def false_clock() -> Path:
    """The library that has a process believe in another time."""
    library = Path(tempfile.mkdtemp(prefix="ledger-")) / "clock.so"
    source = Path(__file__).with_name("clock.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, source], check=True)
    return library


PROCESS_KILLED = "a worker, maker, predictor or node is killed"
_FULL, _READ_ONLY = "No space left on device", "Read-only file system"
FAULTS: Mapping[str, Fault] = {
    "the driver is killed (kill -9)": Fault(killed, weight=4),
    "the power is cut": Fault(power_cut, weight=2),
    "Ctrl-C": Fault(interrupted, weight=2),
    PROCESS_KILLED: Fault(process_killed, weight=3),
    "the system raises or answers NaN": Fault(system_fails),
    "the system hangs or dies": Fault(system_hangs, weight=2),
    "the disk is full": Fault(disk_full, _FULL, real=True),
    "the disk gets full": Fault(disk_fills, _FULL),
    "the folder is read-only": Fault(read_only, _READ_ONLY, real=True),
    "the folder turns read-only": Fault(turns_read_only, _READ_ONLY),
    "a stored file is damaged": Fault(damaged, MENDED, weight=3),
    FOLDER_GONE: Fault(folder_gone, "was moved, deleted or replaced|holds no run|was not written"),
    "an image is replaced": Fault(image_replaced),
    "an image is removed": Fault(image_removed),
    "an image is added": Fault(image_added),
    "an image is broken": Fault(image_broken),
    "the system's code changes": Fault(code_changed, r"model.*changed|changed.*model"),
    "the clock jumps": Fault(clock_jumps, weight=2),
    "two processes write": Fault(two_at_once, "another process is writing|holds no run"),
}
