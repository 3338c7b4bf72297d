"""goalmap, the learned trajectory predictor that comes with Instar."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from instar.outputs.forecast import Forecast
from instar.scene import Scene
from instar.systems.system import MissingExtra, System
from instar.tasks.traj_test.goalmap import FAMILIES, WEIGHTS, _Patch, _View
from instar.warp import Warp
from tests.missing import module

NAMES = ("background", "pavement", "road", "structure", "terrain", "tree")
STRUCTURE = 3


def straight(*, steps: int = 12, past: int = 8, pace: float = 9.0, size: int = 500) -> Scene:
    """Somebody walks to the right over a lawn with a pavement."""
    classes = np.full((size, size), 4, np.uint8)
    classes[size // 2 - 30 : size // 2 + 30] = 1
    x = size / 2 + pace * np.arange(1 - past, 1)
    return Scene(classes, NAMES, np.stack([x, np.full(past, size / 2 + 3.3)], 1), steps)


@pytest.fixture(scope="module")
def goalmap() -> System:
    module("onnxruntime")
    return FAMILIES["goalmap"].build("goalmap", samples=20, model=None)


def said(system: System, scene: Scene, seed: int = 0) -> Forecast:
    [answer] = system.answer([scene], [seed])
    assert isinstance(answer, Forecast)
    return answer


def mass(forecast: Forecast, mask: npt.NDArray[np.bool_]) -> float:
    assert forecast.heat is not None
    return float((forecast.heat.cells * forecast.heat.share(mask)).sum())


def with_block(scene: Scene, x: slice, y: slice) -> tuple[Scene, npt.NDArray[np.bool_]]:
    classes, mask = scene.classes.copy(), np.zeros(scene.classes.shape, bool)
    mask[y, x] = True
    classes[mask] = STRUCTURE
    return replace(scene, classes=classes), mask


def hellinger(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float:
    return float(np.linalg.norm(np.sqrt(a) - np.sqrt(b)) / np.sqrt(2))


# --- what it answers -------------------------------------------------------------------------------


def test_it_answers_in_the_scenes_own_terms(goalmap: System) -> None:
    scene = straight()
    answer = said(goalmap, scene)
    assert answer.futures.shape == (20, 12, 2)
    assert answer.heat is not None and answer.heat.cells.shape == (64, 64)
    assert answer.heat.cells.sum() == pytest.approx(1, abs=1e-5)
    middle = answer.heat.warp.points([[32.0, 32.0]])[0]
    assert np.allclose(middle, scene.position)


def test_a_walker_goes_on(goalmap: System) -> None:
    scene = straight()
    ends = said(goalmap, scene).futures[:, -1] - scene.position
    assert np.median(ends[:, 0]) > 50
    assert abs(np.median(ends[:, 1])) < 40


def test_who_stands_stays(goalmap: System) -> None:
    scene = straight(pace=0.0)
    away = np.linalg.norm(said(goalmap, scene).futures[:, -1] - scene.position, axis=1)
    assert np.median(away) < _Patch.of(scene).half / 2


def test_the_seed_decides_and_the_map_does_not_depend_on_it(goalmap: System) -> None:
    scene = straight()
    one, same, other = (said(goalmap, scene, seed) for seed in (1, 1, 2))
    assert np.array_equal(one.futures, same.futures) and not np.array_equal(one.futures, other.futures)
    assert one.heat is not None and other.heat is not None
    assert np.array_equal(one.heat.cells, other.heat.cells)


def test_an_answer_does_not_depend_on_the_batch(goalmap: System) -> None:
    scenes = [straight(), straight(pace=4), straight(), straight(steps=30)]
    together = goalmap.answer(scenes, [3, 4, 5, 6])
    for scene, seed, answer in zip(scenes, (3, 4, 5, 6), together, strict=True):
        assert isinstance(answer, Forecast)
        assert np.array_equal(answer.futures, said(goalmap, scene, seed).futures)


def test_repeats_of_a_scene_cost_one_look(goalmap: System, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, of = [], _View.of

    def counted(scene: Scene, answer: Any) -> _View:
        looks.append(scene)
        return of(scene, answer)

    monkeypatch.setattr(_View, "of", counted)
    scene = straight()
    goalmap.answer([scene] * 32, list(range(32)))
    assert len(looks) == 1
    goalmap.answer([replace(scene) for _ in range(3)], list(range(3)))
    assert len(looks) == 4


@pytest.mark.parametrize("steps", [1, 2, 5, 30])
@pytest.mark.parametrize("past", [2, 5, 12])
def test_any_number_of_steps_and_past_positions(goalmap: System, steps: int, past: int) -> None:
    assert said(goalmap, straight(steps=steps, past=past)).futures.shape == (20, steps, 2)


def test_one_past_position_is_too_few(goalmap: System) -> None:
    with pytest.raises(ValueError, match="at least two past positions"):
        goalmap.answer([straight(past=1)], [0])


def test_as_many_samples_as_asked_for() -> None:
    module("onnxruntime")
    few, many = (FAMILIES["goalmap"].build("goalmap", samples=n, model=None) for n in (3, 50))
    assert len(said(few, straight())) == 3 and len(said(many, straight())) == 50
    assert few.fingerprint != many.fingerprint


# --- what it does with the map ---------------------------------------------------------------------


def test_an_obstacle_on_the_way_is_avoided(goalmap: System) -> None:
    scene = straight()
    x, y = scene.position
    blocked, mask = with_block(scene, slice(int(x) + 40, int(x) + 70), slice(int(y) - 18, int(y) + 18))
    before, after = said(goalmap, scene), said(goalmap, blocked)
    assert mass(after, mask) < 0.9 * mass(before, mask)
    ends = np.floor(after.futures).astype(int)
    assert not mask[ends[..., 1].clip(0, 499), ends[..., 0].clip(0, 499)].any()


def test_who_is_inside_an_obstacle_still_gets_futures(goalmap: System) -> None:
    scene, _ = with_block(straight(), slice(200, 300), slice(200, 300))
    assert np.isfinite(said(goalmap, scene).futures).all()


def test_a_walled_in_person_gets_an_answer_all_the_same(goalmap: System) -> None:
    scene = straight()
    classes = np.full_like(scene.classes, STRUCTURE)
    classes[240:266, 240:260] = 1
    assert said(goalmap, replace(scene, classes=classes)).futures.shape == (20, 12, 2)


def test_unknown_classes_and_an_empty_map_are_background(goalmap: System) -> None:
    scene = straight()
    unknown = replace(scene, names=("background", "a", "b", "c", "d", "e"))
    empty = replace(scene, classes=np.zeros_like(scene.classes))
    assert np.array_equal(said(goalmap, unknown).futures, said(goalmap, empty).futures)


def test_class_numbers_do_not_matter_only_names_do(goalmap: System) -> None:
    scene = straight()
    swapped = np.array([0, 4, 2, 3, 1, 5], np.uint8)[scene.classes]
    renamed = replace(scene, classes=swapped, names=("background", "terrain", "road", "structure", "pavement", "tree"))
    assert np.array_equal(said(goalmap, scene).futures, said(goalmap, renamed).futures)


def test_a_person_outside_the_map(goalmap: System) -> None:
    scene = straight()
    assert np.isfinite(said(goalmap, replace(scene, past=scene.past - [900.0, 0])).futures).all()


# --- coordinates -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "warp",
    [
        Warp.mirror((500, 500), "h"),
        Warp.mirror((500, 500), "v"),
        Warp.rotate90((500, 500), 1),
        Warp.rotate90((500, 500), 2),
    ],
)
def test_a_mirrored_or_turned_scene_has_that_patch(warp: Warp) -> None:
    scene, _ = with_block(straight(), slice(290, 330), slice(230, 260))
    followed = scene.warped(warp)
    here, there = _Patch.of(scene), _Patch.of(followed)
    assert there.half == pytest.approx(here.half) and np.allclose(there.centre, warp.points(here.centre))
    a, b = here.fractions(scene), there.fractions(followed)
    turn = np.rint(warp.matrix[:2, :2]).astype(int)
    y, x = np.mgrid[0:64, 0:64] * 2 - 63
    to_x, to_y = (turn @ np.stack([x.ravel(), y.ravel()]) + 63) // 2
    carried = np.zeros_like(b)
    carried[:, to_y, to_x] = a.reshape(6, -1)
    assert np.allclose(carried, b, atol=1e-5)


def test_the_scale_of_the_map_does_not_matter(goalmap: System) -> None:
    scene = straight(size=480)
    doubled = scene.warped(Warp.resize((480, 480), (960, 960)))
    one, other = said(goalmap, scene), said(goalmap, doubled)
    assert one.heat is not None and other.heat is not None
    assert hellinger(one.heat.cells, other.heat.cells) < 0.01
    assert np.allclose(other.futures, one.futures * 2, atol=1)


def test_fractions_sum_to_one_also_at_the_border() -> None:
    scene = straight()
    near = replace(scene, past=scene.past - [240.0, 200.0])
    fractions = _Patch.of(near).fractions(near)
    assert np.allclose(fractions.sum(0), 1, atol=1e-5) and fractions.min() > -1e-5
    assert fractions[0, 0, 0] == pytest.approx(1)


# --- the file --------------------------------------------------------------------------------------


def test_the_weights_are_small() -> None:
    assert WEIGHTS.stat().st_size < 4_000_000


def test_without_onnxruntime_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setattr(sys.modules["instar.systems.system"], "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'instar\[onnx\]'"):
        FAMILIES["goalmap"].build("goalmap", samples=20, model=None)


def test_a_model_file_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError, match=r"no model file.*nowhere\.onnx"):
        FAMILIES["goalmap"].build("goalmap", samples=20, model="nowhere.onnx")
