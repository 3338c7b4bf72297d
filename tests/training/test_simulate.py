"""The simulation that goalmap is trained on, and a training of a few seconds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from instar.scene import Scene
from instar.tasks.traj_test.goalmap import _Patch
from instar.warp import Warp
from tests.missing import module
from training.goalmap import simulate

SEEDS = (11, 7)
OBSTACLES = (simulate.STRUCTURE, simulate.TREE)


def scene_of(case: simulate.Case) -> Scene:
    return Scene(case.classes, simulate.NAMES, case.past.astype(np.float64), case.steps)


@pytest.fixture(scope="module")
def cases() -> list[simulate.Case]:
    return [case for seed in (1, 2) for case in simulate.cases(seed, steps=12)]


@pytest.fixture(scope="module")
def worlds() -> list[simulate.Samples]:
    """Samples of two worlds that are soon simulated."""
    return [simulate.world_samples(seed) for seed in SEEDS]


def test_the_same_seed_gives_the_same_samples(worlds: list[simulate.Samples], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "1")  # as it is set for the processes that simulate, and no longer than this test
    one, another = worlds
    other = simulate.simulated(SEEDS[0], len(one["past"]), workers=1)
    assert all(np.array_equal(one[name], other[name]) for name in one)
    assert one["classes"].shape != another["classes"].shape or not np.array_equal(one["classes"], another["classes"])


def test_a_world_has_every_kind_of_ground_now_and_then() -> None:
    seen = {label for seed in range(12) for label in np.unique(simulate.make_map(np.random.default_rng(seed)))}
    assert seen == {simulate.PAVEMENT, simulate.ROAD, simulate.STRUCTURE, simulate.TERRAIN, simulate.TREE}


def test_samples_are_in_units_of_the_patch(worlds: list[simulate.Samples]) -> None:
    made = worlds[0]
    assert len(made["past"]) > 50
    assert made["classes"].dtype == np.uint8 and made["classes"].shape[1:] == (5, 64, 64)
    assert np.abs(made["ends"]).max() <= 1
    assert not made["past"][:, -1, :2].any() and (made["past"][:, -2:, 2] == 1).all()


def test_walkers_do_not_enter_obstacles(cases: list[simulate.Case]) -> None:
    """They may come from inside of one that has just appeared, or from under a crown."""
    entered = walked = 0
    for case in cases:
        rows, columns = (
            np.clip(case.futures[..., axis].astype(int), 0, case.classes.shape[1 - axis] - 1) for axis in (1, 0)
        )
        inside = np.isin(case.classes[rows, columns], OBSTACLES)
        now = case.classes[int(case.past[-1, 1]), int(case.past[-1, 0])]
        if now not in OBSTACLES:
            entered += int(inside.sum())
            walked += inside.size
    assert walked > 10_000
    assert entered / walked < 0.01  # between two looks a walker may cut a corner


def test_futures_go_on_where_the_past_ends(cases: list[simulate.Case]) -> None:
    for case in cases:
        speed = simulate.recent_speed(case.past)
        first = np.linalg.norm(case.futures[:, 0] - case.past[-1], axis=1)
        assert (first < 3 * max(speed, case.floor / 6)).all()


def test_the_least_cost_on_even_ground_is_the_distance() -> None:
    times = simulate.arrival(np.ones((60, 60), np.float32), np.array([[30, 30]]))[0]
    i, j = np.mgrid[0:60, 0:60]
    away = np.hypot(i - 30, j - 30)
    assert np.abs(times - np.maximum(away - 1, 0)).max() < 0.06 * away.max()


def test_the_least_cost_goes_round_a_wall() -> None:
    cost = np.ones((60, 60), np.float32)
    cost[30, :50] = 1000
    times = simulate.arrival(cost, np.array([[40, 10]]))[0]
    assert times[20, 10] == pytest.approx(2 * np.hypot(10, 40), rel=0.06)


def test_training_and_adapter_show_the_network_the_same(cases: list[simulate.Case]) -> None:
    for case in cases[::17]:
        scene = scene_of(case)
        used = _Patch.of(scene)
        shown, motion = simulate.described(case.past.astype(np.float64), case.steps, used.half)
        seen = simulate.patch(case.classes, scene.position, used.half)
        assert np.allclose(used.fractions(scene)[1:], seen, atol=1e-5)
        assert all(np.allclose(a, b, atol=1e-5) for a, b in zip(used.described(scene), (shown, motion), strict=True))


@pytest.mark.parametrize("axis", ["h", "v", "both"])
def test_a_mirrored_map_has_the_mirrored_patch(cases: list[simulate.Case], axis: str) -> None:
    case = cases[3]
    size = case.classes.shape[1], case.classes.shape[0]
    turned = Warp.mirror(size, axis)  # type: ignore[arg-type]
    scene = scene_of(case).warped(turned)
    flips = tuple(number for number, name in ((2, "h"), (1, "v")) if axis in (name, "both"))
    expected = np.flip(simulate.patch(case.classes, case.past[-1], 40.3), flips)
    assert np.allclose(simulate.patch(scene.classes, scene.position, 40.3), expected, atol=1e-5)


@pytest.fixture
def torch_as_it_was() -> Iterator[None]:
    """A training sets how torch reckons; other tests in this process do not ask for that."""
    torch = module("torch")
    precision, threads = torch.get_float32_matmul_precision(), torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        yield
    torch.set_float32_matmul_precision(precision)
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("torch_as_it_was")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_training_of_a_few_seconds(worlds: list[simulate.Samples], tmp_path: Path) -> None:
    for name in ("onnx", "onnxruntime"):
        module(name)
    kept = {"train": worlds[0], "held": worlds[1]}  # most of the time would go into simulating others
    arrays: dict[str, Any] = {f"{half}.{name}": value for half, made in kept.items() for name, value in made.items()}
    np.savez(tmp_path / "kept.npz", **arrays)
    module("training.goalmap.train").main(["--quick", "--out", str(tmp_path), "--keep", str(tmp_path / "kept.npz")])
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["difference"] < 1e-4
    assert metrics["history"][-1]["train"] < metrics["history"][0]["train"]
    assert (tmp_path / "goalmap.onnx").stat().st_size < 4_000_000
