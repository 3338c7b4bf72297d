"""Entries of the ledger: each is one run with several lives, and what must have come of it in the end."""

from __future__ import annotations

import random
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

import instar
from instar.store import KEY, Damaged, NoRun, Store
from studies.ledger.calls import Key, account, committed_in, lines_in, note
from studies.ledger.life import ENGINES, OTHER_CONFIDENCE, RULES, Disturbance, Life, Operation, Result
from studies.ledger.nodes import Nodes
from tests.toys import scene, write_image

MODEL = """
from pathlib import Path

import instar
from studies.ledger.calls import answered, life_in
from tests.engine.zones import painted

VERSION = 1
HOME = Path(__file__).parent
LIFE = life_in(HOME)  # a process may live on for a moment when the next life begins


@instar.declare(kind="detections")
def predict(pixels):
    return answered(pixels, HOME, LIFE)


def zones(pixels):
    return painted(pixels)
"""
FOLLOW_UPS = ("source", *(instar.rule(one).transformations[0].id for one in RULES))
IMAGES, ADDED = 4, 2
"""Photos that a run begins with, and that may come later."""
FIRST_RULES = 2
"""A run begins with so many rules, and each life adds one: there is something to predict in all of them."""
STEPS_OF_JUDGING = 10
MENDED = "repair-run|restore it from a copy"


def photos_in(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "photos").iterdir())


def make_home(home: Path, count: int, first: int = 0) -> Path:
    """A folder with photos and the system; `first` numbers the scenes, so that photos of one name can be others."""
    (home / "photos").mkdir(parents=True)
    for number in range(count):
        write_image(home / "photos" / f"{number:03d}.png", scene(first + number, (60, 40)))
    (home / "model.py").write_text(MODEL)
    return home


def tables(run: Path) -> dict[str, pl.DataFrame]:
    """Everything that a run says, without the seconds it took and the folders it lies in."""
    opened, store = instar.open_run(run), Store(run)
    return _sorted(
        {
            "predictions": store.whole(store.predictions()).drop("seconds"),
            "cases": store.cases().drop("path", strict=False),
            "needs": store.needs(),
            "verdicts": opened.verdicts(),
            "verdicts of another judging": opened.verdicts(confidence=OTHER_CONFIDENCE),
        }
    )


def _sorted(frames: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    keys = ("case", "follow_up", "draw", "repeat", "need", "target", "rule")
    return {name: frame.sort([key for key in keys if key in frame.columns]) for name, frame in frames.items()}


class Undisturbed:
    """What a run comes to that nothing happens to: with its photos, and with others of the same names."""

    def __init__(self, folder: Path) -> None:
        homes = [make_home(folder / str(number), IMAGES + ADDED, 100 * number) for number in range(2)]
        results = [Operation(Life(str(home), 0)).result() for home in homes]
        assert all(result.end == "done" for result in results), results
        self.photos = [home / "photos" for home in homes]
        self.steps = results[0].steps
        self.tables = [tables(home / "run") for home in homes]
        signed = [one["predictions"].select(*KEY, pl.col("labels").list.last()).rows() for one in self.tables]
        self.digests: list[dict[Key, str]] = [{(*key,): digest for *key, digest in rows} for rows in signed]
        self.keys = {digest: key for one in self.digests for key, digest in one.items()}
        assert len(self.keys) == sum(map(len, self.digests)), "every input has a content of its own"

    def expected(self, cases: Iterable[str], replaced: Iterable[str]) -> dict[str, pl.DataFrame]:
        """The tables of a run with these cases, some of which are the other photo of their name."""
        first, other = list(set(cases) - set(replaced)), list(replaced)
        return _sorted(
            {
                name: pl.concat(
                    [
                        table.filter(pl.col("case").is_in(first)),
                        self.tables[1][name].filter(pl.col("case").is_in(other)),
                    ]
                )
                for name, table in self.tables[0].items()
            }
        )


@dataclass(slots=True)
class Entry:
    """One run of the ledger: what happened to it, what is committed, and what is wrong."""

    undisturbed: Undisturbed
    home: Path
    random: random.Random
    engines: Sequence[str]
    processes: float
    """How likely an engine with processes is, beside one without."""
    real: bool = False
    """Whether the run folder is a file system of its own, and the clock jumps for all processes."""
    nodes: Nodes | None = None
    """The cluster, where an engine needs one."""
    fault: str = ""
    refusal: str = ""
    """What a life may say instead of doing its work."""
    life: int = 0
    ends: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """How lives ended, by fault and engine."""
    events: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    rows: dict[Key, str] = field(default_factory=dict)
    """What is committed, with its status."""
    damage: dict[str, frozenset[Key]] = field(default_factory=dict)
    """Damaged files that nobody has repaired, with the rows that stand on them."""
    replaced: set[str] = field(default_factory=set)
    """Photos that were replaced before the run knew them."""
    manifest: bytes = b""
    """A copy of the manifest from before it was damaged: nothing else says what a run is."""

    @property
    def run(self) -> Path:
        return self.home / "run"

    @property
    def store(self) -> Store:
        return Store(self.run)

    @property
    def address(self) -> str:
        return self.nodes.address if self.nodes else ""

    # -- what is drawn, and what it is drawn from

    def engine(self) -> str:
        weights = [self.processes if ENGINES[name].roles else 1.0 for name in self.engines]
        return self.random.choices(self.engines, weights)[0]

    def engine_with_processes(self) -> str:
        return self.random.choice([name for name in self.engines if ENGINES[name].roles])

    def work(self) -> str:
        """Something to disturb: judging comes where there is something to judge."""
        return self.random.choice(("run", "run", "judge")) if self.rows else "run"

    def step(self, work: str = "run") -> int:
        """Some step of a life; the first ones are likelier, since a life may be short."""
        most = self.undisturbed.steps / 4 if work == "run" else STEPS_OF_JUDGING
        return 1 + int(self.random.random() ** 1.5 * most)

    def photo(self) -> str:
        return self.random.choice(photos_in(self.home))

    def rules(self) -> int:
        return min(len(RULES), FIRST_RULES + self.life)

    def missing(self, case: str = "") -> list[Key]:
        """The rows that the next life should make, of all cases or of one."""
        names = FOLLOW_UPS[: self.rules() + 1]
        cases = [case] if case else photos_in(self.home)
        return [key for case in cases for name in names if (key := (case, name, 0, 0)) not in self.rows]

    def digest(self, key: Key) -> str:
        return self.undisturbed.digests[key[0] in self.replaced][key]

    def knows(self, case: str) -> bool:
        """Whether the run has read an input of that name."""
        try:
            cases = self.store.cases(["case", "status"])
        except NoRun:
            return False
        return (case, "ok") in cases.rows()

    def put_photo(self, name: str, *, other: bool = False) -> None:
        """A photo as it was, or the other one of its name."""
        folder = self.undisturbed.photos[other or name in self.replaced]
        shutil.copy(folder / name, self.home / "photos" / name)

    # -- lives

    def live(
        self,
        name: str = "run",
        disturbance: Disturbance | None = None,
        *,
        engine: str = "this process",
        timeout: float = 60.0,
        library: Path | None = None,
        retry: bool | None = None,
    ) -> Result:
        """One life. Where it is refused because a file is damaged, that is mended as it says, and another one comes."""
        life = self.begin(name, disturbance, engine, timeout=timeout, retry=retry)
        result = Operation(life, library).result()
        self.end(life, result)
        if self.damage and result.end == "refused" and re.search(MENDED, result.words):
            self.mend(result)
            return self.live(name, engine=engine)
        return result

    def begin(
        self,
        name: str,
        disturbance: Disturbance | None = None,
        engine: str = "this process",
        *,
        timeout: float = 60.0,
        retry: bool | None = None,
    ) -> Life:
        """A new life. Some lives try again what failed."""
        retry = self.random.random() < 0.3 if retry is None else retry
        if retry and name == "run":
            self._forget([key for key, status in self.rows.items() if status != "ok"])
        engine = engine if name == "run" else "this process"
        what = disturbance or Disturbance()
        self.events.append(
            f"life {self.life}: {self.fault}: {name} by {engine} ({what.action} {what.role} at {what.at})"
        )
        return Life(str(self.home), self.life, name, engine, self.rules(), what, retry, timeout, self.address)

    def end(self, life: Life, *results: Result) -> None:
        """A life is over, or two at once are: look at what they left."""
        for result in results:
            self.events.append(f"  {result.end} at step {result.steps} {result.words}".rstrip())
            self.ends[self.fault, life.engine, result.end] += 1
            allowed = self.refusal if not self.damage else f"{self.refusal or MENDED}|{MENDED}"
            refused = result.end == "refused" and not (allowed and re.search(allowed, result.words, re.DOTALL))
            if result.end == "hung" or refused:
                self.wrong.append(f"{self.fault}: {result.end}: {result.words}")
            if result.volatile:
                self.wrong.append(f"{self.fault}: {result.volatile} files had names before their content was durable")
        self.look()
        self.life += 1

    def mend(self, result: Result) -> None:
        """Do what a refusal says."""
        if "restore it from a copy" in result.words:
            (self.run / "manifest.json").write_bytes(self.manifest)
            self.damage.pop("manifest.json", None)
            self.look()
            return
        life = self.begin("repair")
        self.end(life, repaired := Operation(life).result())
        if repaired.end == "done":
            self.damage.clear()

    def look(self) -> None:
        """What is committed now: nothing may be gone that nobody was told of."""
        try:
            stored = self.store.predictions([*KEY, "status"], again=True).rows()
        except NoRun:
            if (self.run / "manifest.json").exists():
                return  # it is damaged: somebody will say so
            stored = []
        except Damaged:
            if not self.damage:
                self.wrong.append(f"{self.fault}: life {self.life} left a damaged file")
            return
        rows: dict[Key, str] = {(case, name, draw, repeat): status for case, name, draw, repeat, status in stored}
        if len(rows) != len(stored):
            self.wrong.append(f"{self.fault}: a key appears twice after life {self.life}")
        gone = sorted(committed_in(lines_in(self.home)) - rows.keys())
        allowed = set(gone) if self.fault == FOLDER_GONE and not rows else frozenset[Key]().union(*self.damage.values())
        if not allowed.issuperset(gone):
            self.wrong.append(f"{self.fault}: life {self.life} lost {len(gone)} committed rows, such as {gone[0]}")
        self._forget(gone)
        self.rows = rows
        note(self.home, self.life, "stored", *((*key, status) for key, status in rows.items()))

    def _forget(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self.rows.pop(key, None)
            note(self.home, self.life, "forgotten", key)

    # -- the end

    def settle(self) -> None:
        """Go on to the end as a user would: by what the refusals say."""
        self.fault, self.refusal = SETTLED, ""
        self.life = max(self.life, len(RULES))  # with all rules
        for _ in range(3):
            if self.live(retry=True).end == "done":
                try:
                    tables(self.run)
                    return
                except Damaged as damage:  # a run that has its verdicts does not read them
                    self.events.append(str(damage))
                    self.mend(Result("refused", str(damage)))

    def check(self) -> None:
        """Each pair has one row, all tables are the undisturbed ones, and no committed row was predicted again."""
        self.wrong += account(lines_in(self.home), self.undisturbed.keys).wrong
        cases = photos_in(self.home)
        expected = self.undisturbed.expected(cases, self.replaced)
        planned = {(case, name, 0, 0) for case in cases for name in FOLLOW_UPS}
        first = {key for key in self.rows if key[3] == 0}
        if first != planned:
            self.wrong.append(f"{len(first)} rows in the end, {len(planned)} were planned")
        if first == self.rows.keys():
            self.wrong.append("no violating pair was predicted again")
        try:
            results = tables(self.run)
        except Exception as error:
            self.wrong.append(f"the run cannot be read: {type(error).__name__}: {error}")
            return
        for name, table in results.items():
            if not table.equals(expected[name]):
                self.wrong.append(f"{name} differ ({table.height} rows, {expected[name].height} expected)")


FOLDER_GONE, SETTLED = "the folder is deleted", "nothing more happens"
