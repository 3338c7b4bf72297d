"""Makers and predictors: the results of workers, whoever dies, hangs or waits."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import instar
from instar.engine.tray import Copies, Tray, new_tray
from instar.outputs.poses import Poses
from instar.scene import Scene
from instar.store import KEY
from instar.systems.system import gpu_in_use, page_locked
from tests.clocks import only_hangs_take_time
from tests.missing import module, unsuited
from tests.toys import scene, steady, write_scenes


def stored(run: instar.Run) -> pl.DataFrame:
    """All that a run predicted, in one order, less the times."""
    return run.predictions().drop("seconds", "part", strict=False).sort(KEY)


def ran(system: str, rules: str, photos: Path, out: Path, **more: Any) -> instar.Run:
    return instar.run(system, rules, photos, out=out, seed=3, **{"zones": "none", **more})


def with_a_large_one(photos: Path) -> Path:
    write_scenes(photos / "large", 1, (240, 180))
    (photos / "large" / "000.png").rename(photos / "large.png")
    return photos


@instar.declare(kind="poses", batch=True)
def together(images: list[np.ndarray]) -> list[Poses]:
    """Writes down how many images it was given at once."""
    with open(os.environ["BATCHES"], "a") as file:  # noqa: PTH123
        file.write(f"{len(images)}\n")
    return [steady(pixels) for pixels in images]


@instar.declare(kind="poses", batch="array")
def as_they_lie(images: np.ndarray) -> list[Poses]:
    """Writes down how many images it was given at once, and whether they were copied to be one array."""
    with open(os.environ["BATCHES"], "a") as file:  # noqa: PTH123
        file.write(f"{len(images)} {images.flags.owndata}\n")
    return [steady(pixels) for pixels in images]


def deadly(pixels: np.ndarray) -> np.ndarray:
    """A transformation that kills whoever makes it, of large images alone."""
    if pixels.shape[1] > 200:
        os.kill(os.getpid(), signal.SIGKILL)
    return pixels


@pytest.mark.parametrize(
    ("system", "rules", "more"),
    {
        "drawn and repeated": ("tests.toys:shaky", "noise(8) + mirror(h)", {}),
        "deterministic, with zones, and some that depend on the source": (
            "tests.toys:rectangles",
            "gamma(0.5) + mirror(h) + noise(8) + rescale(0.5) + colour_wheel(90, red) + object_noise(0.5, 20)",
            {"zones": "tests.engine.zones:painted", "objects": "none"},
        ),
    }.values(),
)
def test_the_results_are_those_of_workers(system: str, rules: str, more: dict[str, str], tmp_path: Path) -> None:
    photos = write_scenes(tmp_path / "photos", 5)
    (photos / "broken.png").write_bytes(b"no image")
    here = ran(system, rules, photos, tmp_path / "here", workers=0, **more)
    split = ran(system, rules, photos, tmp_path / "split", workers=2, predictors=1, **more)
    assert stored(here).equals(stored(split))
    assert here.cases().sort("case").equals(split.cases().sort("case"))
    assert here.verdicts().sort("case", "rule", "target").equals(split.verdicts().sort("case", "rule", "target"))
    assert not list(split.folder.glob("*/.*"))


def test_a_batch_holds_inputs_of_several_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHES", str(tmp_path / "batches"))
    photos = write_scenes(tmp_path / "photos", 20)
    ran("tests.engine.test_split:together", "gamma(0.5)", photos, tmp_path / "run", workers=1, predictors=1)
    sizes = [int(line) for line in (tmp_path / "batches").read_text().split()]
    assert sum(sizes) == 40
    assert max(sizes) > 2  # a case has two inputs


@pytest.mark.parametrize("images", ["of one size", "of two sizes"])
def test_images_of_one_size_are_one_array(images: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they lie where a predictor copied them to: nothing is copied again. The answers are those of a function of one
    image."""
    monkeypatch.setenv("BATCHES", str(tmp_path / "batches"))
    rules = "gamma(0.5)" if images == "of one size" else "gamma(0.5) + mirror(h) + rescale(0.5)"
    photos = write_scenes(tmp_path / "photos", 12)
    split = ran("tests.engine.test_split:as_they_lie", rules, photos, tmp_path / "1", workers=1, predictors=1)
    calls = [line.split() for line in (tmp_path / "batches").read_text().splitlines()]
    assert sum(int(count) for count, _ in calls) == split.predictions().height
    if images == "of one size":
        assert max(int(count) for count, _ in calls) > 2
    assert {copied for _, copied in calls} == {"False"}
    whole = ran("tests.engine.test_split:as_they_lie", rules, photos, tmp_path / "2", workers=1, predictors=0)
    single = ran("tests.toys:steady", rules, photos, tmp_path / "3", workers=1)
    assert stored(split).equals(stored(whole))
    assert stored(split).equals(stored(single))


def test_whoever_raises_hangs_dies_or_lies_costs_its_own_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A predictor has inputs of several cases in hand when it dies; only the one that it dies of is lost."""
    photos = write_scenes(tmp_path / "photos", 2)
    rules = "gamma(0.05)+gamma(0.5)+gamma(2.5)+gamma(5)"
    only_hangs_take_time(tmp_path / "hanging", monkeypatch, "instar.engine.crew", "instar.engine.process")
    one = ran("tests.toys:moody", rules, photos, tmp_path / "run", workers=1, predictors=1, timeout=2.5)
    rows = one.predictions()
    assert rows.select(KEY).is_unique().all()
    status = dict(rows.group_by("follow_up").agg(pl.col("status").unique().sort().str.join(",")).iter_rows())
    assert status == {
        "source": "ok",
        "gamma(0.05)": "error",
        "gamma(0.5)": "ok",
        "gamma(2.5)": "timeout",
        "gamma(5)": "crashed",
    }


def test_a_maker_that_dies_costs_the_pair_that_it_dies_of(tmp_path: Path) -> None:
    photos = with_a_large_one(write_scenes(tmp_path / "photos", 3))
    rules = "tests.engine.test_split:deadly() + gamma(0.5)"
    rows = ran("tests.toys:steady", rules, photos, tmp_path / "run", workers=1, predictors=1).predictions()
    assert rows.height == 12
    assert rows.select(KEY).is_unique().all()
    lost = rows.filter(pl.col("status") != "ok")
    assert lost.select("case", "follow_up", "status").rows() == [
        ("large.png", "tests.engine.test_split:deadly", "crashed")
    ]


def test_predictors_need_workers(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="give workers"):
        ran("tests.toys:steady", "gamma(0.5)", write_scenes(tmp_path / "photos", 1), tmp_path / "run", workers=0,
            predictors=1)  # fmt: skip


# --- trays -------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(40, 90), st.integers(40, 90)), min_size=1, max_size=6), st.integers(0, 99))
@settings(deadline=None)
def test_what_is_taken_from_a_tray_is_what_was_laid_on_it(sizes: list[tuple[int, int]], seed: int) -> None:
    """Also when the tray was filled before, and when the one who takes saw it smaller."""
    descriptor = new_tray()
    maker, predictor, copies = Tray(descriptor), Tray(descriptor), Copies()
    for _ in range(2):
        images = [scene(seed + number, size) for number, size in enumerate(sizes)]
        laid = [maker.lay(image) for image in images]
        taken = predictor.take(laid, copies)
        maker.clear()
        maker.lay(scene(seed + 100, (100, 90)))  # what was taken is a copy
        maker.clear()
        for image, copy in zip(images, taken, strict=True):
            assert isinstance(copy, instar.Image)
            np.testing.assert_array_equal(image.pixels, copy.pixels)
            assert not copy.pixels.flags.writeable
    os.close(descriptor)


def test_a_scene_lies_on_a_tray(tmp_path: Path) -> None:
    descriptor = new_tray()
    given_scene = Scene(
        np.arange(35, dtype=np.uint8).reshape(7, 5) % 3, ("background", "b", "c"), np.ones((2, 2)), steps=2
    )
    tray = Tray(descriptor)
    for copy in tray.take([tray.lay(given_scene), tray.lay(given_scene)], Copies()):
        assert isinstance(copy, Scene)
        np.testing.assert_array_equal(copy.classes, given_scene.classes)
        np.testing.assert_array_equal(copy.past, given_scene.past)
        assert copy.past.flags.aligned
    os.close(descriptor)


def test_what_a_system_keeps_of_an_input_stays_what_it_was() -> None:
    """A tracker keeps the image before, a part of it, or a view of another library; the rest is used again."""
    copies = Copies()

    def copied(number: int) -> np.ndarray:
        room = copies.room(100)
        room[:] = number
        return room

    kept = [copied(0), copied(1)[10:20], copied(2).data]
    used = {copied(3).ctypes.data for _ in range(5)}
    assert len(used) == 1
    assert [np.asarray(one)[0] for one in kept] == [0, 1, 2]


def test_memory_that_systems_keep_is_theirs() -> None:
    """What is kept of inputs must not grow the memory that is looked through for each."""
    copies = Copies()
    kept = [copies.room(10) for _ in range(3 * Copies.MOST)]
    assert len(copies._memory) == Copies.MOST
    assert len({room.ctypes.data for room in kept}) == len(kept)


def test_copies_for_a_gpu_lie_where_it_fetches_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """From when the system uses one: what was made before is given back."""
    locked: list[int] = []

    def page_locked(size: int) -> np.ndarray:
        locked.append(size)
        return np.empty(size, np.uint8)

    monkeypatch.setattr("instar.engine.tray.page_locked", page_locked)
    copies = Copies()
    copies.room(100)
    assert not locked
    monkeypatch.setattr("instar.engine.tray.gpu_in_use", lambda: True)
    places = {copies.room(100).ctypes.data for _ in range(5)}
    assert locked == [100]
    assert len(places) == 1


def test_where_nobody_may_lock_memory_it_is_ordinary() -> None:
    """As on a machine whose PyTorch finds no GPU."""
    if module("torch").cuda.is_available():
        unsuited("says nothing where there is a GPU")
    assert not gpu_in_use()
    memory = page_locked(100)
    assert memory.shape == (100,)
    assert memory.dtype == np.uint8


# --- who works ---------------------------------------------------------------------------------------


@instar.declare(kind="poses", device="cuda")
def on_gpu(pixels: np.ndarray) -> Poses:
    """Says that it lives on a GPU, and answers with the one it was given."""
    with open(os.environ["GPUS"], "a") as file:  # noqa: PTH123
        file.write(f"{os.environ['CUDA_VISIBLE_DEVICES']}\n")
    if pixels.shape[1] > 200 and pixels.mean() > 200:
        os._exit(1)
    return steady(pixels)


def test_a_system_on_a_gpu_is_held_once_for_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where one of the processes that hold it dies: whoever replaces it has the same GPU."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    monkeypatch.setenv("GPUS", str(tmp_path / "gpus"))
    photos = with_a_large_one(write_scenes(tmp_path / "photos", 12))
    run = ran("tests.engine.test_split:on_gpu", "gamma(0.01)+gamma(0.5)", photos, tmp_path / "run", workers=1)
    lost = run.predictions().filter(pl.col("status") != "ok")
    assert lost.select("case", "follow_up", "status").rows() == [("large.png", "gamma(0.01)", "crashed")]
    assert set((tmp_path / "gpus").read_text().split()) == {"4", "7"}
