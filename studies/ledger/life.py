"""One life of a run: a process that runs, judges or repairs it, and what is to happen to it there."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import instar
import instar.engine.crew
import instar.engine.keeper
import instar.engine.predictor
from instar.store import KEY, Store, repair
from studies.ledger.calls import LIFE, note

P = ParamSpec("P")
R = TypeVar("R")

RULES = (
    *("gamma(0.5)", "mirror(h)", "noise(10)", "gamma(0.7, red)", "gamma(1.5)", "contrast(0.7)", "mirror(v)", "blur(1)"),
    *("jpeg(50)", "rotation(10)", "brightness(20, 1.2)", "shear(0.1)", "noise(20)", "gamma(2, blue)"),
)
OTHER_CONFIDENCE = 0.4
COMMIT_ROWS = 3
BETWEEN = 5
"""Steps between one time and the next where something happens more than once."""
MOST_SECONDS = 120.0
CLOCK, PAUSED = "LEDGER_CLOCK", "paused"
FORKS = multiprocessing.get_context("forkserver")
# a new process has everything imported that a run needs, and no thread of Polars yet
FORKS.set_forkserver_preload(["studies.ledger.entries", "instar.api", "scipy.optimize", "tests.engine.zones"])


@dataclass(frozen=True, slots=True)
class Engine:
    """One way to work on a run: the options that choose it, and the roles of processes that it has."""

    options: Mapping[str, Any]
    roles: tuple[str, ...] = ()


NODE = "Node"
ENGINES: Mapping[str, Engine] = {
    "this process": Engine({"workers": 0}),
    "workers": Engine({"workers": 2}, ("Workers",)),
    "makers and predictors": Engine({"workers": 1, "predictors": 1}, ("Makers", "Predictors")),
    "Ray": Engine({"engine": "ray"}, (NODE,)),
}
ON_THIS_MACHINE = tuple(name for name, engine in ENGINES.items() if NODE not in engine.roles)


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What happens when the process comes to its `at`-th step, and at `times - 1` later ones: a file is about to be
    written, renamed or removed, or was just; the system is asked, or another process is heard."""

    action: str = "none"
    at: int = 0
    times: int = 1
    role: str = ""
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class Life:
    """What a process is to do, and what is to happen to it."""

    home: str
    number: int
    name: str = "run"  # run, judge, repair
    engine: str = "this process"
    rules: int = len(RULES)
    disturbance: Disturbance = field(default_factory=Disturbance)
    retry: bool = False
    timeout: float = 60.0
    address: str = ""
    """Where the cluster is whose nodes work."""


@dataclass(frozen=True, slots=True)
class Result:
    """How a life ended: `done` or `interrupted` with notes, `refused` with its words, `stopped`, `killed`, `hung`."""

    end: str
    words: str = ""
    steps: int = 0
    volatile: int = 0
    """Files that got their names before their content was durable."""


# -- in the process


@dataclass(slots=True)
class _Steps:
    """Counts steps, and does at the right ones what is to be done."""

    life: Life
    count: int = 0
    done: int = 0
    """How often it was done."""
    trouble: int = 0
    """The number of the system's error that every write meets by now."""
    volatile: list[Path] = field(default_factory=list)
    """Files that were renamed into place before their content was durable."""
    crews: dict[str, Any] = field(default_factory=dict)
    random: random.Random = field(default_factory=random.Random)

    def __call__(self, *, writes: bool = True) -> None:
        self.count += 1
        it = self.life.disturbance
        due = it.at and self.count >= it.at + BETWEEN * self.done
        if due and self.done < it.times and ACTIONS[it.action](self) is not False:
            self.done += 1
        if self.trouble and writes:
            raise OSError(self.trouble, os.strerror(self.trouble))

    @property
    def home(self) -> Path:
        return Path(self.life.home)


def _kill(steps: _Steps) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _power_cut(steps: _Steps) -> None:
    """What is not durable is gone: files have their names, and nothing in them."""
    for path in steps.volatile:
        with suppress(FileNotFoundError):
            os.truncate(path, 0)
    _kill(steps)


def _interrupt(steps: _Steps) -> None:
    os.kill(os.getpid(), signal.SIGINT)


def _pause(steps: _Steps) -> None:
    """Wait in the middle of it until the other one has ended."""
    paused = steps.home / PAUSED
    paused.touch()
    while paused.exists():
        time.sleep(0.01)


def _full(steps: _Steps) -> None:
    steps.trouble = errno.ENOSPC


def _read_only(steps: _Steps) -> None:
    steps.trouble = errno.EROFS


def _remove(steps: _Steps) -> None:
    shutil.rmtree(steps.home / "run", ignore_errors=True)


def _jump(steps: _Steps) -> None:
    """For all processes where a library has their clock, else for this one alone and as far as it asks Python."""
    seconds = steps.life.disturbance.seconds
    if CLOCK in os.environ:
        with Path(os.environ[CLOCK]).open("r+b") as file:  # in its place, where everybody has it in memory
            file.write(seconds.to_bytes(8, "little", signed=True))
    else:
        right = time.time
        time.time = lambda: right() + seconds


def _lose(steps: _Steps) -> bool:
    """Kill a process of a role: the one that works, or the one that guards it; whether there was one that lives."""
    crew = steps.crews.get(steps.life.disturbance.role)
    guards = [guard for process in crew.processes if children(guard := _guard(process))] if crew else []
    if not guards:
        return False
    guard = steps.random.choice(guards)
    with suppress(ProcessLookupError):
        os.kill(steps.random.choice([guard, *children(guard)]), signal.SIGKILL)
    note(steps.home, steps.life.number, "killed", (steps.life.disturbance.role,))
    return True


def _guard(process: Any) -> int:
    return int(process.body.program.pid)


ACTIONS: Mapping[str, Callable[[_Steps], bool | None]] = {
    "kill": _kill,
    "power cut": _power_cut,
    "interrupt": _interrupt,
    "pause": _pause,
    "full": _full,
    "read-only": _read_only,
    "remove": _remove,
    "jump": _jump,
    "lose": _lose,
}


def children(parent: int | None) -> list[int]:
    """The processes that a process has started (Linux)."""
    try:
        return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
    except OSError:
        return []


def _watched(steps: _Steps) -> None:
    """Every durable step of this process is counted before and after, and what is committed is written down."""

    def counted(function: Callable[P, R], writes: bool) -> Callable[P, R]:
        def step(*arguments: P.args, **named: P.kwargs) -> R:
            steps(writes=writes)
            value = function(*arguments, **named)
            steps(writes=False)
            return value

        return step

    durable: set[int] = set()
    fsync, rename, hear, append = os.fsync, Path.replace, instar.engine.crew.Crew.hear, Store.append_predictions

    def kept(fd: Any) -> None:
        fsync(fd)
        durable.add(os.fstat(fd).st_ino)

    def renamed(path: Path, target: Path) -> Path:
        volatile = path.suffix == ".part" and path.stat().st_ino not in durable
        placed = rename(path, target)
        steps.volatile += [placed] * volatile
        return placed

    def heard(crew: Any, process: Any) -> None:
        steps.crews[type(crew).__name__] = crew
        hear(crew, process)
        steps(writes=False)

    def appended(store: Store, columns: Any, kind: str) -> None:
        append(store, columns, kind)
        rows = zip(*(columns[name] for name in (*KEY, "status")), strict=True)
        note(steps.home, steps.life.number, "stored", *map(list, rows))

    os.fsync = counted(kept, True)
    Path.replace = counted(renamed, True)  # type: ignore[method-assign, assignment]
    Path.unlink = counted(Path.unlink, False)  # type: ignore[method-assign]
    instar.engine.crew.Crew.hear = heard  # type: ignore[method-assign, assignment]
    Store.append_predictions = appended  # type: ignore[method-assign, assignment]
    predictor = instar.engine.predictor.Predictor
    predictor.predicted = counted(predictor.predicted, False)  # type: ignore[method-assign]


def suite(rules: int) -> instar.Suite:
    return instar.Suite("ledger", tuple(map(instar.rule, RULES[:rules])))


def lived(life: Life) -> None:
    """Run, judge or repair; what came of it is left in a file."""
    os.environ |= {"TMPDIR": life.home, "POLARS_MAX_THREADS": "1"}
    (Path(life.home) / LIFE).write_text(str(life.number))
    sys.stderr = (Path(life.home) / "stderr").open("a")
    sys.path.insert(0, life.home)
    sys.dont_write_bytecode = True
    instar.engine.keeper.COMMIT_ROWS = COMMIT_ROWS
    steps = _Steps(life, random=random.Random(life.number))
    _watched(steps)
    end, words = "done", ""
    try:
        end, words = _worked(life)
    except KeyboardInterrupt:
        end = "stopped"
    except Exception as error:
        end, words = "refused", f"{type(error).__name__}: {error}"
    finally:
        steps.life = replace(life, disturbance=Disturbance())
        steps.trouble = 0
    answer = steps.home / f"result {life.number} {os.getpid()}"
    answer.write_text(json.dumps(asdict(Result(end, words, steps.count, len(steps.volatile)))))


def _worked(life: Life) -> tuple[str, str]:
    home = Path(life.home)
    if life.name == "repair":
        repairs = repair(Store(home / "run"))
        return "done", "; ".join(f"{one.file}: {one.fault}: {one.content}" for one in repairs)
    if life.name == "judge":
        instar.open_run(home / "run").judge(confidence=OTHER_CONFIDENCE)
        return "done", ""
    options = {**ENGINES[life.engine].options, **({"address": life.address} if life.engine == "Ray" else {})}
    outcome = instar.run(
        "model:predict",
        suite(life.rules),
        home / "photos",
        out=home / "run",
        seed=3,
        zones="model:zones",
        retry_failed=life.retry,
        timeout=life.timeout,
        **options,
    ).outcome
    assert outcome is not None
    return "interrupted" if outcome.interrupted else "done", "; ".join(outcome.notes)


# -- from outside


class Operation:
    """A life under way. Where the clock is to jump, it is a program of its own, whose clock a library has."""

    def __init__(self, life: Life, library: Path | None = None) -> None:
        self.life = life
        self.process: Any
        if library is None:
            self.process = FORKS.Process(target=lived, args=(life,))
            self.process.start()
            return
        (Path(life.home) / "clock").write_bytes(bytes(8))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "studies.ledger.life", json.dumps(asdict(life))],
            env={**os.environ, "LD_PRELOAD": str(library), CLOCK: f"{life.home}/clock"},
            stderr=subprocess.DEVNULL,
        )

    @property
    def alive(self) -> bool:
        return self.process.poll() is None if isinstance(self.process, subprocess.Popen) else self.process.is_alive()

    def result(self) -> Result:
        try:
            if isinstance(self.process, subprocess.Popen):
                self.process.wait(MOST_SECONDS)
            else:
                self.process.join(MOST_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        answer = Path(self.life.home) / f"result {self.life.number} {self.process.pid}"
        if answer.exists():
            return Result(**json.loads(answer.read_text()))
        hung = self.alive
        self.process.kill()
        return Result("hung", f"no end within {MOST_SECONDS:g} s") if hung else Result("killed")


if __name__ == "__main__":
    values = json.loads(sys.argv[1])
    lived(Life(**{**values, "disturbance": Disturbance(**values["disturbance"])}))
