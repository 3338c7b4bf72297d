"""Runs in buckets: what is in a bucket is what a run on a disk would be, whoever is killed when."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import instar
from instar import Detections
from instar.cli import app
from instar.remote import Advisory, Objects, Unreachable, objects_in
from instar.store import KEY, Busy, Damaged, Gone, NoRun, Store, bucket, lease, repair
from instar.store.bucket import Bucket, bucket_at
from instar.viewer.watch import Watched
from tests.remote.servers import S3, Answer
from tests.toys import rectangles, write_scenes

RUN = "s3://photos/runs/first"
predicted: Counter[bytes] = Counter()


def counting(pixels: np.ndarray) -> Detections:
    predicted[pixels.tobytes()] += 1
    return rectangles(pixels)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    predicted.clear()
    return write_scenes(tmp_path / "photos", 3, (48, 36))


def run(photos: Path, out: str | Path, rules: str = "gamma(0.5)+mirror(h)", **more: object) -> instar.Run:
    return instar.run(counting, rules, photos, out=out, workers=0, **more)  # type: ignore[arg-type]


def content(done: instar.Run) -> set[str]:
    """The rows of a run, less how long they took."""
    columns = ["case", "rule", "target", "severity", "status"]
    return {*map(repr, done.predictions().drop("seconds").rows()), *map(repr, done.verdicts().select(columns).rows())}


@pytest.fixture
def another_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From the call on, this process has an empty disk."""
    number = iter(range(1000))
    return lambda: monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"machine {next(number)}"))


# --- in every store ----------------------------------------------------------------------------------


def test_a_run_in_a_bucket_is_that_on_a_disk_and_goes_on_elsewhere(
    store_of_buckets: str, photos: Path, tmp_path: Path, another_machine: Callable[[], None]
) -> None:
    """Begun here, gone on with from another machine, read from a third: nothing is predicted twice."""
    out = f"{store_of_buckets}/runs/ä b {os.getpid()}-{time.monotonic_ns()}"
    here = run(photos, tmp_path / "here")
    predicted.clear()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", Advisory)
        run(photos, out, limit=2)
    advisory = [str(one.message) for one in warned if issubclass(one.category, Advisory)]
    keeps = "s3://" not in out or os.environ["AWS_ACCESS_KEY_ID"] != "S3RVER"
    assert advisory == ([] if keeps else [advisory[0]]), "one sentence, where the store does not keep conditions"
    assert all(one.startswith(f"{out}: its store does not keep two processes from") for one in advisory)
    before = dict(predicted)
    another_machine()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Advisory)
        there = run(photos, out)
    assert {image: predicted[image] for image in before} == before, "nothing that was committed is predicted again"
    assert content(there) == content(here)
    another_machine()
    read = instar.open_run(out)
    assert content(read) == content(here)
    assert str(read.folder) == out and read.folder.name == out.rpartition("/")[2]
    assert read.manifest.created == there.manifest.created
    names = {name.partition("/runs/")[2].partition("/")[2] for name in _names(store_of_buckets, out)}
    assert not any(name.endswith("lock") for name in names), "whoever ends opens the lock"


def _names(bucket: str, out: str) -> list[str]:
    prefix = out.removeprefix(f"{bucket}/")
    return [f"{bucket}/{name}" for name in objects_in(bucket).names(f"{prefix}/")]


def test_of_two_writers_one_is_told_to_wait(store_of_buckets: str, another_machine: Callable[[], None]) -> None:
    out = f"{store_of_buckets}/runs/two {os.getpid()}-{time.monotonic_ns()}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Advisory)
        first = Store(out)
        with first.lock():
            another_machine()
            with pytest.raises(Busy, match=r"another process is writing to .*two.*since"), Store(out).lock():
                pass
            first.place.refuse_gone()
        with Store(out).lock():
            pass


# --- kills -------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process is no more."""


class Mortal:
    """A process that dies at its n-th write to the bucket, before or after the write; a dead one asks for nothing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left, self.after, self.dead = -1, False, False
        for name in ("get", "put", "delete", "fetch", "version"):
            monkeypatch.setattr(Objects, name, self._mortal(name, getattr(Objects, name)))

    def _mortal(self, name: str, real: Callable[..., object]) -> Callable[..., object]:
        def call(objects: Objects, key: str, *values: object, **named: object) -> object:
            if self.dead:
                raise Killed
            counts = name in ("put", "delete") and not key.endswith("lock")
            self.left -= counts
            self.dead = counts and self.left == 0
            if self.dead and not self.after:
                raise Killed
            answer = real(objects, key, *values, **named)
            if self.dead:
                raise Killed
            return answer

        return call


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.filterwarnings("ignore::instar.remote.Advisory")
@pytest.mark.parametrize("here", [False, True], ids=["elsewhere", "here"])
def test_a_kill_at_any_write_leaves_a_run_that_goes_on(
    s3: S3,
    photos: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    another_machine: Callable[[], None],
    here: bool,
) -> None:
    """Content comes before what names it. What is left can be read, and is gone on with: from an empty disk after a
    death before each write, and from the same one, which has what did not get into the bucket, after it."""
    monkeypatch.setattr(lease, "STALE", 0.05)
    monkeypatch.setattr(lease, "BEAT", 0.5)
    monkeypatch.setattr("instar.engine.keeper.COMMIT_ROWS", 1)
    (photos / "002.png").unlink()
    whole = content(run(photos, tmp_path / "here", "gamma(0.5)"))
    mortal = Mortal(monkeypatch)
    for number in range(1, 100):
        s3.objects.clear()
        predicted.clear()
        another_machine()
        mortal.left, mortal.after = number, here
        with suppress(Killed):
            run(photos, RUN, "gamma(0.5)")
        if not mortal.dead:
            break
        mortal.dead, mortal.left = False, -1
        if here:
            bucket._shared.cache_clear()  # a new process knows nothing
        else:
            another_machine()
        stored = _stored_keys()
        before = sum(predicted.values())
        assert content(run(photos, RUN, "gamma(0.5)")) == whole
        assert sum(predicted.values()) - before == 4 - stored, "what is committed is predicted no more"
    assert 6 < number < 99, "it died at each of its writes"


def _stored_keys() -> int:
    try:
        rows = Store(RUN).predictions(list(KEY))
    except NoRun:
        return 0
    assert rows.is_unique().all()
    assert set(rows["case"]) <= set(Store(RUN).cases(["case"])["case"]), "all that a prediction names is there"
    return rows.height


def test_a_part_that_did_not_reach_the_bucket_is_no_part_of_the_run(s3: S3, photos: Path) -> None:
    """The disk is full of what a store refused: the run is what the store has."""

    def refuse(method: str, path: str) -> None:
        if method == "PUT" and "/predictions/" in path:
            raise Answer(403, "QuotaExceeded")

    s3.before = refuse
    with pytest.raises(Unreachable, match="QuotaExceeded"):
        run(photos, RUN)
    copy = Store(RUN).inside("predictions")
    assert list(copy.glob("*.parquet")), "it was written here"
    assert Store(RUN).predictions().is_empty()
    s3.before = lambda method, path: None
    run(photos, RUN)
    assert {path.name for path in copy.glob("*.parquet")} == {
        name.rpartition("/")[2] for name in s3.objects if "/predictions/" in name
    }


# --- locks -------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::instar.remote.Advisory")
def test_of_two_that_lock_at_once_one_succeeds(s3: S3, another_machine: Callable[[], None]) -> None:
    outcomes: Counter[str] = Counter()
    barrier = threading.Barrier(4)
    places = []
    for _ in range(4):
        another_machine()
        places.append(bucket_at(RUN))

    def write(place: Bucket) -> None:
        barrier.wait()
        try:
            with place.locked("lock", wait=False):
                outcomes["writes"] += 1
                done.wait()
        except Busy:
            outcomes["busy"] += 1

    done = threading.Event()
    threads = [threading.Thread(target=write, args=(place,)) for place in places]
    for thread in threads:
        thread.start()
    while sum(outcomes.values()) < 4:
        time.sleep(0.01)
    done.set()
    for thread in threads:
        thread.join()
    assert outcomes == {"writes": 1, "busy": 3}


@pytest.mark.filterwarnings("ignore::instar.remote.Advisory")
def test_a_lock_without_a_sign_of_life_is_taken_over_and_its_holder_writes_no_more(
    s3: S3, another_machine: Callable[[], None], photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A laptop that slept: when it wakes up, somebody else has the run."""
    run(photos, RUN)
    another_machine()
    slept = Store(RUN)
    monkeypatch.setattr(lease, "BEAT", 3600.0)
    monkeypatch.setattr(lease, "STALE", 0.1)
    with slept.lock():
        another_machine()
        with Store(RUN).lock():
            before = dict(s3.objects)
            with pytest.raises(Gone, match="another process took it over"):
                slept.append("cases", slept.cases())
            with pytest.raises(Gone, match="another process took it over"):
                slept.write_manifest(slept.manifest())
            assert s3.objects == before


@pytest.mark.filterwarnings("ignore::instar.remote.Advisory")
def test_who_was_killed_on_this_disk_is_not_waited_for(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lock on the disk went with it."""
    with Store(RUN).lock():
        left_behind = s3.objects["photos/runs/first/lock"]
    s3.objects["photos/runs/first/lock"] = left_behind
    monkeypatch.setattr(lease, "STALE", 3600.0)
    with Store(RUN).lock():
        pass


def test_a_write_whose_answer_is_lost_is_made_once(s3: S3, photos: Path, tmp_path: Path) -> None:
    """The store wrote it and said so to nobody: made again, it meets its own."""
    lost: set[str] = set()

    def lose(method: str, path: str) -> None:
        if method == "PUT" and path not in lost:
            lost.add(path)
            raise Answer(500, "InternalError")

    s3.after = lose
    assert content(run(photos, RUN, limit=1)) == content(run(photos, tmp_path / "here", limit=1))
    assert any(path.endswith("/manifest.json") for path in lost) and any(path.endswith("/lock") for path in lost)


def test_a_sign_of_life_whose_answer_is_lost_is_not_the_last(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a lock would get stale while its holder lives."""
    monkeypatch.setattr(lease, "BEAT", 0.01)
    failures = iter([False, True])  # the lock, and its first renewal

    def lose(method: str, path: str) -> None:
        if method == "PUT" and path.endswith("/lock") and next(failures, False):
            raise Answer(500, "InternalError")

    s3.after = lose
    beats: set[bytes] = set()
    with Store(RUN).lock():
        end = time.monotonic() + 600
        while len(beats) < 5 and time.monotonic() < end:
            beats.add(s3.objects["photos/runs/first/lock"])
            time.sleep(0.005)
    assert len(beats) >= 5


def test_a_lock_that_is_not_whole_yet_is_read_again(s3: S3, photos: Path) -> None:
    """Some stores answer before all that was written can be read: the lock is not lost to anybody else."""
    run(photos, RUN)
    store = Store(RUN)
    with store.lock():
        whole = s3.objects["photos/runs/first/lock"]
        s3.objects["photos/runs/first/lock"] = whole[:5]
        reads: list[str] = []

        def complete(method: str, path: str) -> None:
            reads.extend([path] if method == "GET" and path.endswith("/lock") else [])
            if len(reads) == 2:
                s3.objects["photos/runs/first/lock"] = whole

        s3.before = complete
        store.append("cases", store.cases())
        assert len(reads) >= 2


def test_a_manifest_that_somebody_else_wrote_is_not_written_over(s3: S3, photos: Path) -> None:
    run(photos, RUN)
    store = Store(RUN)
    with store.lock():
        manifest = store.manifest()
        s3.objects["photos/runs/first/manifest.json"] += b"\n"
        with pytest.raises(Gone, match=r"manifest\.json was written by another process"):
            store.write_manifest(manifest)


# --- readers -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("always_fresh")
def test_a_reader_brings_each_part_once_and_sees_what_is_added(
    s3: S3, photos: Path, another_machine: Callable[[], None]
) -> None:
    run(photos, RUN, limit=2)
    another_machine()
    watched = Watched(RUN)
    assert watched.look() and not watched.look()
    assert watched.extent is not None and watched.extent.done == 6
    another_machine()
    run(photos, RUN)
    s3.requests.clear()
    assert watched.look() and watched.extent.done == 9
    brought = Counter(path for method, path, _ in s3.requests if method == "GET" and path.endswith(".parquet"))
    assert brought and max(brought.values()) == 1


def test_verdicts_that_are_replaced_while_they_are_read_are_read_anew(
    s3: S3, photos: Path, another_machine: Callable[[], None]
) -> None:
    """Nothing in a bucket keeps a judge from deleting what somebody on another machine is about to bring."""
    expected = run(photos, RUN).verdicts()
    (old,) = (name for name in s3.objects if "/verdicts/default/0" in name)
    another_machine()
    reader = Store(RUN)

    def judge_meanwhile(method: str, path: str) -> None:
        if method == "GET" and path.endswith(old.rpartition("/")[2]):
            s3.before = lambda method, path: None
            info = Store(RUN).judging_info("default")
            assert info is not None
            Store(RUN).replace_verdicts("default", iter([expected]), info)

    s3.before = judge_meanwhile
    assert reader.verdicts("default").equals(expected)
    assert old not in s3.objects


def test_a_damaged_copy_is_brought_again_and_a_damaged_part_is_set_aside(s3: S3, photos: Path) -> None:
    whole = content(run(photos, RUN))
    (copy,) = Store(RUN).inside("predictions").glob("*.parquet")
    copy.write_bytes(copy.read_bytes()[:-1])
    assert content(instar.open_run(RUN)) == whole
    key = f"photos/runs/first/predictions/{copy.name}"
    s3.objects[key] = s3.objects[key][:-1]
    copy.unlink()
    with pytest.raises(Damaged, match=f"instar repair-run {RUN}"):
        Store(RUN).predictions()
    (one,) = repair(Store(RUN))
    assert one.aside == f"damaged/predictions-{copy.name}"
    assert f"photos/runs/first/{one.aside}" in s3.objects and key not in s3.objects
    assert content(run(photos, RUN)) == whole


@pytest.mark.usefixtures("always_fresh")
def test_a_late_write_of_another_process_is_an_error_and_set_aside(s3: S3, photos: Path) -> None:
    whole = content(run(photos, RUN))
    (part,) = Store(RUN).whole_parts("predictions")
    frame = pl.read_parquet(part.path)
    slept = Bucket(Store(RUN).folder, "runs/first", objects_in("s3://photos"), photos.parent / "slept")
    slept.add("predictions", part.first, part.last, lambda path: frame.head(5).write_parquet(path))
    with pytest.raises(Damaged, match=part.path.name) as error:
        Store(RUN).predictions()
    (late,) = (path.name for path in slept.path.rglob("*.parquet"))
    assert late in str(error.value)
    (one,) = repair(Store(RUN))
    assert one.aside == f"damaged/predictions-{late}"
    assert content(run(photos, RUN)) == whole


# --- shards ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rights", ["to write", "to read"])
def test_shards_in_a_bucket_become_the_run_that_nobody_split(
    rights: str, s3: S3, photos: Path, tmp_path: Path, another_machine: Callable[[], None]
) -> None:
    """With what transformations needed; merged by whoever may read them, beside shards on a disk."""
    rules, zones = "filtered(greyscale, red)+gamma(0.5)", "tests.engine.zones:painted"
    whole = run(photos, tmp_path / "whole", rules, zones=zones)
    for number in (1, 2):
        run(photos, RUN, rules, zones=zones, shard=f"{number}/3")
    run(photos, tmp_path / "first", rules, zones=zones, shard="3/3")
    another_machine()

    def refuse(method: str, path: str) -> None:
        if method in ("PUT", "DELETE"):
            raise Answer(403, "AccessDenied")

    if rights == "to read":
        s3.before = refuse
    before = dict(s3.objects)
    shards: list[str | Path] = [f"{RUN}-1-of-3", f"{RUN}-2-of-3", tmp_path / "first-3-of-3"]
    merged = instar.merge(shards, out=tmp_path / "all")
    assert content(merged) == content(whole)
    assert all(merged.store.blob(name) for name in merged.store.needs()["hash"])
    assert {name: s3.objects.get(name) for name in before} == before
    again = instar.merge(shards, out=tmp_path / "all")
    assert again.outcome is not None and again.outcome.fresh == 0


def test_runs_are_not_merged_into_a_bucket(s3: S3, photos: Path) -> None:
    run(photos, RUN, shard="1/2")
    with pytest.raises(
        ValueError, match=r"s3://photos/all is in a bucket, and runs are merged into a folder on a disk"
    ):
        instar.merge([f"{RUN}-1-of-2"], out="s3://photos/all")


# --- what users see ----------------------------------------------------------------------------------


def test_commands_take_an_address_as_a_run(s3: S3, photos: Path) -> None:
    """A path on the command line loses a slash; what is printed has it."""
    invoke = CliRunner().invoke
    command = ["run", "tests.remote.test_runs:counting", "gamma(0.5)", str(photos), "--workers", "0", "--out", RUN]
    done = invoke(app, command)
    assert done.exit_code == 0, done.output
    assert f"instar show {RUN}" in done.stdout.replace("\n", "")
    assert invoke(app, ["show", RUN]).exit_code == invoke(app, ["judge", RUN]).exit_code == 0
    assert f"{RUN}: every file is whole" in invoke(app, ["repair-run", RUN]).stdout.replace("\n", "")
    assert not (Path("s3:")).exists()


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["run", "tests.toys:rectangles", "mirror(h)", "PHOTOS", "--workers", "0", "--fresh"], "cannot be moved aside"),
        (["export", "PHOTOS", "gamma(0.5)", "--kind", "detections"], "exported to a folder on a disk"),
        (["import", "PHOTOS/table.csv"], "imported into a folder on a disk"),
    ],
)
def test_what_needs_a_disk_says_so(s3: S3, photos: Path, command: list[str], reason: str) -> None:
    run(photos, RUN, "gamma(0.5)")
    done = CliRunner().invoke(app, [*(word.replace("PHOTOS", str(photos)) for word in command), "--out", RUN])
    assert done.exit_code == 2 and reason in done.output.replace("\n", " "), done.output


def test_places_that_hold_no_run_are_refused_in_words(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, reason in {
        "s3://photos": "a run needs a name in its bucket, such as s3://photos/runs/first",
        "https://example.org/run": "a run lies in a folder, or in a bucket",
        "hf://datasets/me/runs": "a run lies in a folder, or in a bucket",
    }.items():
        with pytest.raises(ValueError, match=reason):
            Store(place)
    with pytest.raises(NoRun, match=r"s3://photos/nothing holds no run \(there is no manifest\.json in it\)"):
        instar.open_run("s3://photos/nothing")


@pytest.mark.filterwarnings("ignore::instar.api.NothingTold")
def test_credentials_are_nowhere_in_a_run_or_its_copy(s3: S3, photos: Path, tmp_path: Path) -> None:
    """Neither in the bucket nor on the disk, also where the store fails."""
    secret = os.environ["AWS_SECRET_ACCESS_KEY"].encode()
    s3.objects["photos/in/x.png"] = b""
    run("s3://photos/in", RUN)  # type: ignore[arg-type]
    copies = [path.read_bytes() for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert copies and not any(secret in one or s3.key.encode() in one for one in (*copies, *s3.objects.values()))
    page = tmp_path / "report.md"
    run(photos, "s3://photos/runs/second", "gamma(0.5)", limit=1)
    words = ["report", "s3://photos/runs/second", "--format", "md", "--out", str(page)]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert secret not in page.read_bytes() and s3.key.encode() not in page.read_bytes()
