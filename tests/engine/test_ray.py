"""Workers that are actors of a Ray cluster: the results of workers of this machine, whatever becomes of nodes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

import instar
from instar.engine import SystemFailed
from instar.engine.ray_site import ENVIRONMENT, ROOM_SECONDS, RaySite, own_path
from instar.store import KEY, Store
from instar.systems import MissingExtra
from tests.clocks import ENOUGH
from tests.engine.test_shards import same
from tests.missing import module
from tests.toys import write_scenes

for _name, _value in ENVIRONMENT.items():  # Ray reads it when it is imported, and any test may be the first to do that
    os.environ.setdefault(_name, _value)
ROOT = Path(__file__).parents[2]
RULES = "gamma(0.5) + mirror(h)"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head without CPUs, and one node. It takes seconds to start, so that all tests share it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(ROOT), *sys.path]))
        module("ray")
        from ray.cluster_utils import Cluster

        nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        nodes.add_node(num_cpus=1)
        yield nodes
        nodes.shutdown()


def ran(system: str, rules: str, photos: Path | str, out: Path, **more: Any) -> instar.Run:
    return instar.run(system, rules, photos, out=out, seed=3, **{"zones": "none", **more})


def on(cluster: Any) -> dict[str, Any]:
    return {"engine": "ray", "address": cluster.address}


@pytest.fixture
def unseen(tmp_path: Path) -> Iterator[str]:
    """`/proc/self/fd/9` is this process's folder alone: the same path is nothing, or something else, for any other."""
    photos = write_scenes(tmp_path / "photos", 4)
    (photos / "broken.png").write_bytes(b"no image")
    folder = os.open(photos, os.O_RDONLY)
    yield f"/proc/self/fd/{folder}"
    os.close(folder)


def test_the_results_are_those_of_this_machine_and_either_goes_on_with_the_other(
    cluster: Any, unseen: str, tmp_path: Path
) -> None:
    """With needs, which a worker waits to be stored, answers about the source, draws, and a file that is no image; and
    with files that a node cannot see, which are sent to it."""
    what = ("tests.toys:rectangles", "colour_wheel(90, red) + object_noise(0.5, 20) + noise(8)", unseen)
    more: dict[str, Any] = {"zones": "tests.engine.zones:painted", "objects": "none"}
    whole = ran(*what, tmp_path / "here", workers=0, **more)
    ran(*what, tmp_path / "nodes", workers=0, limit=1, **more)
    nodes = ran(*what, tmp_path / "nodes", **{**on(cluster), **more})
    assert nodes.outcome and nodes.outcome.fresh == whole.predictions().height * 3 // 4
    same(tmp_path / "here", tmp_path / "nodes")
    assert nodes.cases()["status"].to_list().count("ok") == 4
    assert ran(*what, tmp_path / "nodes", workers=0, **more).outcome.fresh == 0  # type: ignore[union-attr]
    assert not list(nodes.folder.glob("*/.*"))


def test_whoever_raises_hangs_dies_or_lies_has_the_rows_of_this_machine(cluster: Any, tmp_path: Path) -> None:
    photos = write_scenes(tmp_path / "photos", 1)
    what = ("tests.toys:moody", "gamma(0.05)+gamma(0.5)+gamma(2.5)+gamma(5)", photos)
    ran(*what, tmp_path / "here", workers=1, timeout=20)
    nodes = ran(*what, tmp_path / "nodes", timeout=20, **on(cluster))
    same(tmp_path / "here", tmp_path / "nodes")
    status = dict(nodes.predictions().select("follow_up", "status").iter_rows())
    assert sorted(status.values()) == ["crashed", "error", "ok", "ok", "timeout"]


def test_what_an_actor_dies_of_twice_is_a_row(cluster: Any, tmp_path: Path) -> None:
    """The rest goes on: what was in its hands is asked again, one input at a time."""
    photos, rules = write_scenes(tmp_path / "photos", 1), "gamma(0.5) + gamma(3) + mirror(h)"
    run = ran("tests.engine.on_nodes:unseating", rules, photos, tmp_path / "run", **on(cluster))
    lost = run.predictions().filter(pl.col("status") != "ok")
    assert lost.select("case", "follow_up", "status").rows() == [("000.png", "gamma(3)", "crashed")]
    assert lost["message"][0].startswith("the worker process died (") and run.predictions().height == 4


def test_a_node_that_joins_works_and_one_that_is_lost_costs_nothing(
    cluster: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The node on which all is done is killed as soon as there is another one."""
    photos = write_scenes(tmp_path / "photos", 12)
    first = cluster.worker_nodes.copy().pop()
    joined: list[Any] = []

    def disturb(progress: instar.Progress) -> None:
        if progress.fresh and not joined:
            joined.append(cluster.add_node(num_cpus=1))
            cluster.remove_node(first, allow_graceful=False)

    nodes = ran("tests.engine.on_nodes:slow", RULES, photos, tmp_path / "nodes", on_progress=disturb, **on(cluster))
    assert joined
    assert nodes.outcome and nodes.outcome.fresh == 36
    words, errors = capfd.readouterr()
    assert not words and all(line.startswith("instar: ") for line in errors.splitlines()), "Ray says nothing of it"
    ran("tests.engine.on_nodes:slow", RULES, photos, tmp_path / "here", workers=2)
    same(tmp_path / "here", tmp_path / "nodes")


def test_a_system_that_lives_on_a_gpu_has_one(cluster: Any, tmp_path: Path) -> None:
    """Also where another system was tried first: one that needs no GPU leaves it to others."""
    photos = write_scenes(tmp_path / "photos", 1)
    node = cluster.add_node(num_cpus=1, num_gpus=1)
    try:
        answers = {
            system: ran(f"tests.engine.on_nodes:{system}", "gamma(0.5)", photos, tmp_path / system, **on(cluster))
            for system in ("on_gpu", "on_cpu")
        }
    finally:
        cluster.remove_node(node)
    names = {system: set(run.predictions()["classes"].explode()) for system, run in answers.items()}
    assert names["on_gpu"] == {"GPU 0"}
    assert names["on_cpu"] in ({"GPU "}, {"GPU None"})


def test_ctrl_c_loses_nothing(cluster: Any, tmp_path: Path) -> None:
    photos = write_scenes(tmp_path / "photos", 6)
    pressed: list[int] = []

    def stop(progress: instar.Progress) -> None:
        if progress.fresh and not pressed:
            pressed.append(progress.fresh)
            os.kill(os.getpid(), signal.SIGINT)

    stopped = ran("tests.engine.on_nodes:slow", RULES, photos, tmp_path / "run", on_progress=stop, **on(cluster))
    assert stopped.outcome and stopped.outcome.interrupted
    assert 0 < pressed[0] <= Store(tmp_path / "run").predictions().height < 18


def workers_on_nodes() -> list[int]:
    """The processes that actors have started."""
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"INSTAR_BROUGHT=" in (folder / "environ").read_bytes() and (folder / "cmdline").read_bytes():
                pids.append(int(folder.name))
        except OSError:
            continue
    return pids


def awaited(what: Any, seconds: float = ENOUGH) -> bool:
    deadline = time.monotonic() + seconds
    while not what() and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(what())


def test_limits_that_a_cluster_finds_are_those_of_this_machine(cluster: Any, tmp_path: Path) -> None:
    """Round after round: what is asked next depends on the answers so far."""
    photos, dim = write_scenes(tmp_path / "photos", 3), "tests.analysis.test_boundary:dim"
    here = instar.boundary(dim, "gamma", photos, out=tmp_path / "here", workers=0, steps=8, visual=False)
    nodes = instar.boundary(dim, "gamma", photos, out=tmp_path / "nodes", steps=8, visual=False, **on(cluster))
    assert nodes.limits.sort("ray", "case").equals(here.limits.sort("ray", "case"))
    assert nodes.run.predictions().height == here.run.predictions().height


def test_a_driver_that_is_killed_leaves_nobody_behind_and_its_run_goes_on(cluster: Any, tmp_path: Path) -> None:
    """Nor does it say anything on the terminal that is Ray's."""
    photos = write_scenes(tmp_path / "photos", 20)
    what = ("tests.engine.on_nodes:slow", "gamma(0.5)+mirror(h)", str(photos))
    code = "import instar.engine.keeper as k; k.COMMIT_SECONDS = 0.15; from instar.cli import main; main()"
    assert awaited(lambda: not workers_on_nodes()), "those of other tests have ended"
    driver = subprocess.Popen(
        [sys.executable, "-c", code, "run", *what, "--out", str(tmp_path / "nodes"), "--seed", "3",
         "--zones", "none", "--engine", "ray", "--address", cluster.address],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
    )  # fmt: skip
    assert awaited(lambda: Store(tmp_path / "nodes").state("predictions")), driver.poll()
    assert workers_on_nodes()
    driver.kill()
    words, errors = driver.communicate()
    assert all(line.startswith(("instar: ", "predicting: ")) for line in errors.splitlines()), errors
    assert "ray" not in words.lower()
    assert awaited(lambda: not workers_on_nodes()), "actors end with their driver, and processes with their actors"
    committed = Store(tmp_path / "nodes").predictions().height
    whole = ran(what[0], what[1], photos, tmp_path / "nodes", workers=2)
    assert whole.outcome and whole.outcome.fresh == 60 - committed < 60
    assert whole.predictions().select(KEY).is_unique().all()


# --- without a cluster -------------------------------------------------------------------------------


def test_a_missing_extra_is_said_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"^the engine ray needs Ray: pip install 'instar\[ray\]'$"):
        ran("tests.toys:steady", RULES, write_scenes(tmp_path / "photos", 1), tmp_path / "run", engine="ray")


def test_an_address_at_which_nobody_listens_is_said_at_once(tmp_path: Path) -> None:
    module("ray")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(SystemFailed, match=f"no Ray cluster can be used at {address}: .*refused"):
            ran(
                "tests.toys:steady",
                RULES,
                write_scenes(tmp_path / "p", 1),
                tmp_path / "run",
                engine="ray",
                address=address,
            )


@pytest.mark.parametrize(
    ("more", "message"),
    {
        "an engine that is none": ({"engine": "dask"}, "engine is 'dask'; allowed are: local, ray"),
        "an address of nothing": ({"address": "auto"}, "an address is of a Ray cluster"),
        "no workers": ({"engine": "ray", "workers": 0}, "0 workers work in this process"),
        "predictors": ({"engine": "ray", "predictors": 1}, "leave out `predictors`"),
    }.values(),
)
def test_what_does_not_go_together_is_refused(more: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        ran("tests.toys:steady", RULES, write_scenes(tmp_path / "photos", 1), tmp_path / "run", **more)
    assert not (tmp_path / "run").exists()


def test_a_function_that_no_node_can_import_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="put a function into a module"):
        instar.run(lambda pixels: {}, RULES, tmp_path, out=tmp_path / "run", engine="ray")


def room(monkeypatch: pytest.MonkeyPatch, workers: int | None = None, **resources: float) -> tuple[RaySite, Any]:
    """A cluster that has these resources, as many of them free as are set later, and a clock that never rests."""
    clock = iter(range(0, 1000, int(ROOM_SECONDS) + 1))
    monkeypatch.setattr("instar.engine.ray_site.time.monotonic", lambda: next(clock))
    cluster = SimpleNamespace(total=resources, free=dict(resources))
    ray = SimpleNamespace(cluster_resources=lambda: cluster.total, available_resources=lambda: cluster.free)
    return RaySite(ray, workers, print), cluster


def processes(placed: int, waiting: int = 0) -> list[Any]:
    bodies = [False] * placed + [True] * waiting
    return [SimpleNamespace(ready=not waits, body=SimpleNamespace(waits=lambda waits=waits: waits)) for waits in bodies]


def test_there_are_as_many_actors_as_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is asked for that would have to wait: an autoscaler would add nodes for it, and room for the next."""
    site, cluster = room(monkeypatch, CPU=4)
    cluster.free = {"CPU": 3.0}
    assert site.wanted(processes(1), 1) == 4
    assert site.wanted(processes(1, waiting=3), 4) == 4, "as long as some are on their way, nothing more is asked for"
    cluster.free = {}
    assert site.wanted(processes(4), 4) == 4
    cluster.total, cluster.free = {"CPU": 8}, {"CPU": 4.0}
    assert site.wanted(processes(4), 4) == 8, "a node has joined"
    cluster.total, cluster.free = {"CPU": 2}, {}
    assert site.wanted(processes(1, waiting=5), 8) == 2, "nodes are gone: who waits for them is dropped"
    cluster.total = {}
    assert site.wanted([], 2) == 1, "one waits for the first node"


def test_as_many_actors_are_asked_for_as_the_user_says(monkeypatch: pytest.MonkeyPatch) -> None:
    site, _ = room(monkeypatch, workers=64, CPU=4)
    assert site.wanted(processes(4), 1) == 64, "an autoscaler adds nodes for those that wait"


def test_gpus_bound_the_room_for_those_who_need_one(monkeypatch: pytest.MonkeyPatch) -> None:
    site, _ = room(monkeypatch, CPU=16, GPU=2)
    assert site.gpus == 1 and site.wanted([], 1) == 2
    site.gpus = 0
    assert site.wanted([], 1) == 16


def test_a_node_has_its_own_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The user's folders are looked for there, and neither this Python's library nor its packages are."""
    monkeypatch.chdir(tmp_path)
    pythons = [sysconfig.get_path(name) for name in ("stdlib", "purelib")]
    monkeypatch.setattr(sys, "path", ["", str(tmp_path / "src"), *pythons])
    assert own_path() == (str(tmp_path), str(tmp_path / "src"))
