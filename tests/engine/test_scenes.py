"""Scenes from files and from memory to stored forecasts and verdicts: resume, kills, bad histories, bad systems."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, cast
from urllib.error import HTTPError

import cv2
import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

import instar
from instar.case import Case
from instar.datasets import Dataset
from instar.outputs.forecast import Forecast
from instar.scene import Scene, Track
from instar.store import APART, KEY, Store
from instar.systems import System
from instar.tasks.traj_test.analysis import trajectory_tables
from tests.perfect.walker import FUTURES, STEPS, Walker, scenes
from tests.toys import write_scenes

ROOT = Path(__file__).parents[2]
RULES = (
    "mirror(h) => wvc(sources=4, repeats=2)",
    "mirror(h) => hvc",
    "class_change(road, pavement) => direction(increase, sources=4)",
    "obstacle => direction(avoid, sources=4)",
)
PER_CASE = 4 + 2 + 1 + 1
"""Predictions of RULES: of the source, mirrored, with changed classes, with an obstacle."""


def suite(*rules: str) -> instar.Suite:
    return instar.Suite("test", tuple(map(instar.rule, rules)))


def people(count: int) -> list[Scene]:
    """People on two maps, each a little further down than the one before."""
    grounds = list(scenes(2))
    return [replace(grounds[i % 2], past=grounds[i % 2].past + np.array([0, 0.5 * (i // 2)])) for i in range(count)]


def write_map(path: Path, classes: npt.NDArray[np.generic]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), cast(Any, classes))  # NumPy's stubs and OpenCV's differ in what a map may hold
    return path


def on_files(folder: Path, count: int) -> Dataset:
    """The people as cases whose two maps lie in a folder; what really happens is one of the ways."""
    given = people(count)
    paths = [write_map(folder / "maps" / f"ground {i}.png", given[i].classes) for i in range(min(count, 2))]
    cases = [
        Case(
            f"person {i:02}",
            path=str(paths[i % 2]),
            track=Track.of(scene),
            truth=Forecast.from_array(Walker()(scene, 900 + i).futures[:1]),
        )
        for i, scene in enumerate(given)
    ]
    return Dataset("people", str(folder), lambda: iter(cases), truth="forecast", inputs="scene")


def in_memory(*given: Scene) -> Dataset:
    return Dataset(
        "people", "", lambda: iter([Case(f"{i}", input=scene) for i, scene in enumerate(given)]), inputs="scene"
    )


_WALKED = count()


def walks(scene: Scene, seed: int) -> Forecast:
    """A system that other processes can import; $WALK_SLEEP is how long it takes, and after $WALK_MOST it hangs."""
    time.sleep(float(os.environ.get("WALK_SLEEP", "0")))
    if next(_WALKED) >= int(os.environ.get("WALK_MOST", "1000000")):
        time.sleep(3600)
    return Walker()(scene, seed)


def system(answer: Callable[[Scene, int], object], *, deterministic: bool = False) -> System:
    def predict(inputs: Sequence[Scene], seeds: Sequence[int]) -> list[object]:
        return [answer(scene, seed) for scene, seed in zip(inputs, seeds, strict=True)]

    return System("toy", "forecast", predict, "1", deterministic=deterministic, takes="scene", batch=3)


def run(
    tested: str | System, data: Dataset | Path, out: Path, *rules: str, workers: int = 0, limit: int | None = None
) -> instar.Run:
    return instar.run(tested, suite(*(rules or RULES)), data, out=out, workers=workers, limit=limit)


def told(one: instar.Run) -> pl.DataFrame:
    """All that was predicted, maps and masks included, in an order of its own."""
    return one.store.whole(one.predictions()).drop("seconds").sort(KEY)


def judged(one: instar.Run) -> pl.DataFrame:
    return one.verdicts().sort("case", "rule", "target")


def apart_hashes(one: instar.Run) -> list[str]:
    return one.store.read("apart", APART, ["hash"])["hash"].to_list()


# --- files, workers, resume --------------------------------------------------------------------------


def test_results_do_not_depend_on_workers(tmp_path: Path) -> None:
    data = on_files(tmp_path / "data", 4)
    here, there = (run("constant-velocity", data, tmp_path / f"run{n}", workers=n) for n in (0, 2))
    assert told(here).height == 4 * PER_CASE
    assert told(here)["status"].unique().to_list() == ["ok"]
    assert told(here)["map"].null_count() == 0
    assert told(here).equals(told(there))
    assert judged(here).equals(judged(there))
    assert judged(here)["severity"].null_count() == 0


def test_tracks_of_ones_own(tmp_path: Path) -> None:
    write_map(tmp_path / "map.png", people(1)[0].classes)
    names = ", ".join(f'"{name}"' for name in people(1)[0].names)
    (tmp_path / "scene.toml").write_text(f'names = [{names}]\nmap = "map.png"\nrate = 2.5\n')
    lines = [f"{who},{t},{20 + 3 * t},{50 + 10 * who}" for who in (1, 2) for t in range(20)]
    (tmp_path / "tracks.csv").write_text("\n".join(["track,frame,x,y", *lines]))
    one = instar.run("constant-velocity", suite(*RULES), tmp_path / "tracks.csv", out=tmp_path / "run", workers=0)
    assert one.predictions().height == 2 * PER_CASE
    (first, *_) = one.cases().sort("case").iter_rows(named=True)
    track = Track.from_json(first["track"])
    assert (track.past[0], track.past[-1], track.steps) == ((20, 60), (41, 60), 12)
    assert first["truth_futures"][-2:] == [20 + 3 * 19, 60]
    assert trajectory_tables(one)["displacement"]["case"].n_unique() == 2


@pytest.fixture(scope="module")
def parted(tmp_path_factory: pytest.TempPathFactory) -> tuple[instar.Run, instar.Run, Counter[tuple[bytes, int]]]:
    """A run made in three goes, one that was made at once, and what the first was asked, by scene and seed."""
    folder = tmp_path_factory.mktemp("resume")
    asked: Counter[tuple[bytes, int]] = Counter()

    def counting(scene: Scene, seed: int) -> Forecast:
        asked[scene.classes.tobytes() + scene.past.tobytes(), seed] += 1
        return Walker()(scene, seed)

    data = on_files(folder / "data", 5)
    run(system(counting), data, folder / "parted", RULES[0], limit=2)
    run(system(counting), data, folder / "parted", *RULES, limit=4)
    finished = run(system(counting), data, folder / "parted", *RULES)
    return finished, run(system(Walker()), data, folder / "whole"), asked


def test_nothing_is_predicted_twice(parted: tuple[instar.Run, instar.Run, Counter[tuple[bytes, int]]]) -> None:
    finished, _, asked = parted
    assert set(asked.values()) == {1}
    assert len(asked) == finished.predictions().filter(status="ok").height
    assert finished.outcome is not None and finished.outcome.fresh == PER_CASE


def test_a_run_in_parts_is_the_run_at_once(parted: tuple[instar.Run, instar.Run, object]) -> None:
    finished, whole, _ = parted
    assert told(finished).equals(told(whole))
    assert judged(finished).select(whole.verdicts().columns).equals(judged(whole))
    assert told(finished)["map"].null_count() == 0
    assert set(apart_hashes(finished)) == set(apart_hashes(whole))
    changed = told(finished).filter(pl.col("follow_up").str.contains("class_change|obstacle"))
    assert changed.filter(status="ok")["mask"].null_count() == 0


def test_what_is_kept_apart_is_kept_once(parted: tuple[instar.Run, instar.Run, object]) -> None:
    hashes = apart_hashes(parted[0])
    assert len(hashes) == len(set(hashes))


def test_people_on_one_map_share_its_changed_cells(parted: tuple[instar.Run, instar.Run, object]) -> None:
    one = parted[1]
    named = one.predictions().filter(pl.col("follow_up").str.contains("class_change"))["mask"]
    assert (named.len(), named.n_unique()) == (5, 2)
    hashes = apart_hashes(one)
    assert len(hashes) == len(set(hashes))


# --- kills -------------------------------------------------------------------------------------------

SCRIPT = """
import sys, instar, instar.engine.keeper as p
from pathlib import Path
from tests.engine.test_scenes import on_files, run
p.COMMIT_SECONDS, p.COMMIT_ROWS = 0.1, 12
run("tests.engine.test_scenes:walks", on_files(Path(sys.argv[1]), 12), Path(sys.argv[2]), workers=1)
"""


def launch(data: Path, out: Path, sleep: str) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "WALK_SLEEP": sleep,
        "WALK_MOST": "40",
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
    }
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(data), str(out)],
        env=environment,
        cwd=ROOT,
        start_new_session=True,
        stderr=subprocess.PIPE,
    )


def committed(out: Path) -> set[tuple[str, str, int, int]]:
    """The keys of all committed predictions, after a look whether all that they name is there."""
    store = Store(out)
    if not store.exists:
        return set()
    rows = store.predictions()
    keys = rows.select(KEY).rows()
    assert len(keys) == len(set(keys)), "a key appears twice"
    whole = store.whole(rows)
    for column in ("map", "mask"):
        assert whole[column].null_count() == rows[column].null_count(), f"a {column} was lost"
    return set(keys)


def test_a_kill_of_the_whole_tree_loses_no_map_and_no_mask(tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "run"
    stored: set[tuple[str, str, int, int]] = set()
    for _ in range(2):
        child = launch(data, out, "0.015")
        while not Store(out).exists or Store(out).predictions(["case"]).height <= len(stored) + 5:
            assert child.poll() is None, child.communicate()
            time.sleep(0.1)
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        now = committed(out)
        assert stored < now, "committed rows were lost"
        stored = now
    assert len(stored) < 12 * PER_CASE, "the test must really kill"
    run(f"{__name__}:walks", on_files(data, 12), out)
    assert len(committed(out)) == 12 * PER_CASE
    undisturbed = run(f"{__name__}:walks", on_files(data, 12), tmp_path / "undisturbed")
    assert told(instar.open_run(out)).equals(told(undisturbed))


# --- histories and maps that cannot be used ------------------------------------------------------------

FINE = people(1)[0]
TRACK = Track.of(FINE)
UNREADABLE = {
    "empty": (replace(TRACK, past=()), "map.png", "the past is empty"),
    "not a number": (replace(TRACK, past=((1, 2), (float("nan"), 3))), "map.png", "position 1 .* is not a number"),
    "off the map": (replace(TRACK, past=((10, 10), (170, 10))), "map.png", r"\(170, 10\) .* off the map of 160 × 120"),
    "no name": (replace(TRACK, names=TRACK.names[:3]), "map.png", r"cells of class 5, the names end with 2 \(road\)"),
    "no map": (TRACK, "nowhere.png", "nowhere.png: No such file"),
    "no bytes": (TRACK, "nothing.png", r"nothing.png: .*\(0 bytes\)"),
    "truncated": (TRACK, "truncated.png", r"truncated.png: .*damaged"),
    "coloured": (TRACK, "rgb.png", "one channel with eight bits.* this one has 3"),
    "deep": (TRACK, "deep.png", "one channel with eight bits.* of uint16"),
}


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> instar.Run:
    folder = tmp_path_factory.mktemp("faulty")
    data = write_map(folder / "map.png", FINE.classes).read_bytes()
    (folder / "nothing.png").write_bytes(b"")
    (folder / "truncated.png").write_bytes(data[: len(data) // 2])
    write_map(folder / "rgb.png", np.stack([FINE.classes] * 3, -1))
    write_map(folder / "deep.png", FINE.classes.astype(np.uint16))
    cases = [Case(name, path=str(folder / file), track=track) for name, (track, file, _) in UNREADABLE.items()]
    cases += [
        Case("fine", path=str(folder / "map.png"), track=TRACK),
        Case("one position", path=str(folder / "map.png"), track=replace(TRACK, past=TRACK.past[-1:])),
        Case("no map at all", path=str(folder), track=replace(TRACK, size=(160, 120))),
    ]
    return run("constant-velocity", Dataset("faulty", str(folder), lambda: iter(cases), inputs="scene"), folder / "run")


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_a_row_that_says_why(faulty: instar.Run, name: str) -> None:
    row = faulty.cases().filter(case=name).row(0, named=True)
    assert row["status"] == "error"
    assert pl.Series([row["message"]]).str.contains(UNREADABLE[name][2]).item(), row["message"]
    assert faulty.predictions().filter(case=name).is_empty()


def test_it_costs_nobody_else(faulty: instar.Run) -> None:
    assert faulty.predictions().filter(case="fine")["status"].to_list() == ["ok"] * PER_CASE
    assert faulty.outcome is not None and faulty.outcome.unreadable == len(UNREADABLE)
    again = run("constant-velocity", Dataset("none", "", lambda: iter(()), inputs="scene"), faulty.folder)
    assert again.cases().height == len(UNREADABLE) + 3


def test_a_history_that_is_too_short_for_the_system(faulty: instar.Run) -> None:
    short = faulty.predictions().filter(case="one position")
    assert set(short.filter(pl.col("follow_up") != "obstacle")["status"]) == {"error"}
    assert "needs two past positions" in short["message"][0]
    assert short.filter(follow_up="obstacle").select("status", "message").row(0) == (
        "not applicable",
        "the source could not be predicted",
    )


def test_a_track_without_a_map_is_walked_on_background(faulty: instar.Run) -> None:
    status = dict(faulty.predictions().filter(case="no map at all").select("follow_up", "status").iter_rows())
    assert status == {
        "source": "ok",
        "mirror(h)": "ok",
        "obstacle": "ok",
        "class_change(road, pavement)": "not applicable",
    }


def test_a_person_off_the_map_cannot_be_read_from_memory_either(tmp_path: Path) -> None:
    away = replace(FINE, past=np.array([[10.0, 10], [170, 10]]))
    one = run(system(Walker()), in_memory(away), tmp_path / "run", "mirror(h) => hvc")
    assert one.cases()["status"].to_list() == ["error"]


# --- systems that answer badly ---------------------------------------------------------------------------


class Gone(RuntimeError):
    """As process systems raise when their program is no more."""

    def __init__(self, status: str) -> None:
        super().__init__(f"the program is {status}")
        self.status = status


def raising(error: Exception) -> Callable[[Scene, int], object]:
    def answer(scene: Scene, seed: int) -> object:
        raise error

    return answer


BAD: dict[str, tuple[Callable[[Scene, int], object], str, str]] = {
    "too few steps": (lambda scene, seed: np.zeros((20, 11, 2)), "error", "asks for 12 positions, its futures have 11"),
    "no numbers": (lambda scene, seed: np.full((20, 12, 2), np.nan), "error", "20 of 20 futures have positions"),
    "no futures": (lambda scene, seed: np.zeros((0, 12, 2)), "error", "at least one path"),
    "a word": (lambda scene, seed: "left", "error", "TypeError: expected a Forecast .* got str"),
    "a bad map": (
        lambda scene, seed: Forecast.from_array(np.zeros((5, 12, 2)), np.zeros((9, 9))),
        "error",
        "some of them are above 0",
    ),
    "an exception": (raising(KeyError("velocity")), "error", r"KeyError: 'velocity' \(test_scenes.py:"),
    "a crash": (raising(Gone("crashed")), "crashed", "Gone: the program is crashed"),
    "a timeout": (raising(Gone("timeout")), "timeout", "Gone: the program is timeout"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_answer_costs_its_own_rows(name: str, tmp_path: Path) -> None:
    """Mirrored scenes, in which the person walks to the left, are answered badly."""
    answer, status, message = BAD[name]

    def tested(scene: Scene, seed: int) -> object:
        return answer(scene, seed) if scene.past[-1, 0] < scene.past[0, 0] else Walker()(scene, seed)

    one = run(system(tested), in_memory(*people(2)), tmp_path / "run", *RULES)
    rows = one.predictions()
    assert set(rows.filter(pl.col("follow_up") != "mirror(h)")["status"]) == {"ok"}
    bad = rows.filter(follow_up="mirror(h)")
    assert bad["status"].to_list() == [status] * 4
    assert bad["message"].str.contains(message).all(), bad["message"][0]
    rates = {row["rule"]: row for row in one.rates().iter_rows(named=True)}
    assert (rates[RULES[0]]["failed"], rates[RULES[0]]["judged"], rates[RULES[0]]["rate"]) == (2, 0, None)
    assert rates[RULES[2]]["judged"] == 2


def test_a_status_that_means_something_else_is_an_error(tmp_path: Path) -> None:
    unavailable = HTTPError("http://localhost", 503, "Service Unavailable", {}, None)  # type: ignore[arg-type]
    one = run(system(raising(unavailable)), in_memory(FINE), tmp_path / "run", "mirror(h) => hvc")
    assert set(one.predictions()["status"]) == {"error"}


@pytest.mark.parametrize(("fewer", "severity"), [(10, True), (17, False)])
def test_fewer_futures_than_before(fewer: int, severity: bool, tmp_path: Path) -> None:
    def tested(scene: Scene, seed: int) -> npt.NDArray[np.float32]:
        futures = Walker()(scene, seed).futures
        return futures[:fewer] if scene.past[-1, 0] < scene.past[0, 0] else futures

    one = run(system(tested), in_memory(FINE), tmp_path / "run", "mirror(h) => wvc(4, 2)")
    row = one.verdicts().row(0, named=True)
    if severity:
        assert row["severity"] < 0.5
    else:
        assert row["status"] == "not applicable"
        assert "runs of 20 and 17 futures" in row["reason"]


def test_without_a_probability_map(tmp_path: Path) -> None:
    blind = Walker(sees_the_map=False, gives_map=False)
    one = run(system(blind), in_memory(*people(2)), tmp_path / "run", *RULES)
    found = {(row["rule"], row["status"]): row for row in one.verdicts().iter_rows(named=True)}
    assert set(found) == {
        (RULES[0], "ok"),
        (RULES[1], "not applicable"),
        (RULES[2], "not applicable"),
        (RULES[3], "ok"),
    }
    for rule in RULES[1:3]:
        assert "gives no probability map" in found[rule, "not applicable"]["reason"]
    crossing = found[RULES[3], "ok"]
    assert crossing["kind"] == "crossing"
    assert crossing["severity"] > 0.1
    assert 0 < crossing["crossing"] <= crossing["futures"] == FUTURES


def test_a_system_that_never_varies(tmp_path: Path) -> None:
    """It is asked once, nothing is tested, and severity is how far it strays, in shares of the past."""

    def straight(scene: Scene, seed: int) -> npt.NDArray[np.float64]:
        step = scene.past[-1] - scene.past[-2]
        off = 1.0 if step[0] < 0 else 0.0
        return np.asarray(scene.position + step * np.arange(1, STEPS + 1)[:, None] + (0, off))

    scene = replace(FINE, past=FINE.past[:1] + np.arange(8)[:, None] * np.array([2.5, 0]))
    one = run(
        system(straight, deterministic=True), in_memory(scene), tmp_path / "run", "mirror(h) => wvc", "mirror(v) => wvc"
    )
    assert one.predictions().select("follow_up", "repeat").sort("follow_up").rows() == [
        ("mirror(h)", 0),
        ("mirror(v)", 0),
        ("source", 0),
    ]
    found = {row["rule"]: row for row in one.verdicts().iter_rows(named=True)}
    assert found["mirror(v) => wvc"]["severity"] == 0
    strayed = found["mirror(h) => wvc"]
    assert strayed["distance"] == pytest.approx(1, abs=1e-4)
    assert strayed["severity"] == pytest.approx(1 / (0.01 * 17.5) - 1, rel=1e-3)  # one pixel of a path of 17.5
    assert (strayed["p"], strayed["p_least"]) == (None, None)


# --- what does not go together ---------------------------------------------------------------------------


def test_photographs_are_not_for_predictors_and_scenes_not_for_detectors(tmp_path: Path) -> None:
    photos, out = write_scenes(tmp_path / "photos", 1), tmp_path / "run"
    with pytest.raises(ValueError, match=r"constant-velocity takes scenes, the cases of folder.* are images; give it"):
        run("constant-velocity", photos, out)
    with pytest.raises(ValueError, match="takes images, the cases of people are scenes"):
        run("tests.toys:steady", in_memory(FINE), out, "mirror(h)")
    assert not Store(out).exists
    assert not [path for path in out.rglob("*") if path.name != "lock"]


def test_ids_in_any_script(tmp_path: Path) -> None:
    names = ["Zoë/日本 – 1", "Ж'\"{}.png", "a b\tc"]
    data = Dataset("names", "", lambda: iter([Case(name, input=FINE) for name in names]), inputs="scene")
    rule = "obstacle => direction(avoid, 2)"
    one = run(system(Walker()), data, tmp_path / "run", rule, workers=0)
    assert sorted(one.verdicts()["case"]) == sorted(names)
    again = run(system(Walker()), data, tmp_path / "run", rule, workers=0)
    assert again.outcome is not None and again.outcome.fresh == 0


def gathered() -> Iterator[Case]:
    """A dataset of scenes as a plain function."""
    yield from (Case(f"{i}", input=scene) for i, scene in enumerate(people(2)))


def test_a_function_can_be_a_dataset_of_scenes(tmp_path: Path) -> None:
    one = run(system(Walker()), instar.dataset(f"{__name__}:gathered"), tmp_path / "run", "mirror(h) => hvc")
    assert one.verdicts().height == 2
