"""Every adapter in docs/adapters.md works as it stands there: only the model behind it is a stand-in.

The stand-in finds the coloured rectangles of `tests.toys`, and knows nothing of Instar: it answers as models do, with
arrays of its own. What is wrong with a recipe is wrong with its conversions, and `instar check` or a rule says so.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import instar
from instar.scene import Scene
from instar.systems.check import check_system
from tests.missing import module
from tests.quality.words import accusations
from tests.toys import _centres, _masks, rectangles, scene, write_scenes

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "adapters.md").read_text()
RECIPES = dict(re.findall(r"```python\n# (\w+)\.py\n(.*?)```", PAGE, re.DOTALL))
NAMES = ["red", "green", "blue"]
SHOWN = {"red": "dog", "green": "cat", "blue": "bird"}
"""What a captioner may say of a rectangle."""

KINDS = {
    "my_pose": "poses",
    "my_detector": "detections",
    "my_yolo": "detections",
    "my_captioner": "caption",
    "my_classifier": "labels",
    "my_segmenter": "segmentation",
    "my_predictor": "forecast",
    "my_modes": "forecast",
    "my_batches": "detections",
    "my_gpu": "poses",
    "my_tensors": "poses",
}


def boxes_of(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Corners, class numbers and scores, as a detector returns them."""
    answer = rectangles(pixels)
    return answer.boxes, np.array([NAMES.index(name) for name in answer.labels]), answer.scores


def middles_of(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same with middle and size as shares of the image."""
    corners, numbers, scores = boxes_of(pixels)
    height, width = pixels.shape[:2]
    shares = corners / [width, height, width, height]
    return np.hstack([(shares[:, :2] + shares[:, 2:]) / 2, shares[:, 2:] - shares[:, :2]]), numbers, scores


def pose_of(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    points = _centres(pixels)
    return (np.zeros((0, 17, 2)), np.zeros(0)) if np.isnan(points).all() else (points[None], np.ones(1))


def areas(pixels: np.ndarray) -> np.ndarray:
    return np.array([mask.mean() for _, mask in _masks(pixels)])


def walked(classes: np.ndarray, past: np.ndarray, *, steps: int, seed: int) -> np.ndarray:
    """Straight on, with an error of the person's own pace."""
    pace = past[-1] - past[-2]
    turns = np.random.default_rng(seed).normal(0, 0.2, (20, 1, 2)) * np.linalg.norm(pace)
    return np.asarray(past[-1] + (pace + turns) * np.arange(1, steps + 1)[None, :, None])


def modes_of(classes: np.ndarray, past: np.ndarray, *, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Six ways ahead, faster and slower, of which one is twice as probable as each of the others."""
    pace = past[-1] - past[-2]
    paces = np.array([0.5, 0.7, 0.9, 1.0, 1.1, 1.3])[:, None, None] * pace
    return past[-1] + paces * np.arange(1, steps + 1)[None, :, None], np.array([1, 1, 1, 2, 1, 1.0])


def torch_pose(path: str) -> Any:
    torch = module("torch")

    class Network(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, images: Any) -> Any:
            arrays = (255 * images).round().byte().permute(0, 2, 3, 1).cpu().numpy()
            return torch.tensor(np.stack([_centres(pixels) for pixels in arrays]))

    return Network()


STAND_IN = {
    "modes": modes_of,
    "load": lambda path: pose_of if path.startswith("pose") else boxes_of,
    "yolo": middles_of,
    "describe": lambda pixels: " and ".join(f"a {SHOWN[name]}" for name in rectangles(pixels).labels),
    "classify": lambda pixels: 60 * areas(pixels),
    "segment": lambda pixels: np.stack([np.full(pixels.shape[:2], 0.5), *(mask for _, mask in _masks(pixels))]),
    "sample": walked,
    "detect_all": lambda images: [boxes_of(pixels) for pixels in images],
    "torch_pose": torch_pose,
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory of a user who has the recipes, the files that they declare, and a model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    models = ModuleType("my_models")
    vars(models).update(STAND_IN)
    monkeypatch.setitem(sys.modules, "my_models", models)
    for name, code in RECIPES.items():
        (tmp_path / f"{name}.py").write_text(code)
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name in set(re.findall(r'weights="([^"]+)"', PAGE)):
        (tmp_path / name).write_bytes(b"weights")
    return tmp_path


def recipe_of(name: str) -> str:
    """`module:function`: the last function in the file is the adapter."""
    *_, adapter = re.findall(r"^def (\w+)", RECIPES[name], re.MULTILINE)
    return f"{name}:{adapter}"


def test_the_page_has_a_recipe_for_every_kind() -> None:
    assert set(RECIPES) == set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_a_recipe_is_checked_and_run(place: Path, name: str) -> None:
    """`instar check` finds no problem, and a run of two inputs violates no rule of its kind."""
    if "torch" in RECIPES[name]:
        module("torch")
    system = instar.system(recipe_of(name))
    assert system.kind == KINDS[name]
    forecast = system.takes == "scene"
    inputs = [] if forecast else [(str(number), scene(number, (120, 90))) for number in range(2)]
    problems = [one.message for one in check_system(system, inputs)[0] if one.state == "problem"]
    assert not problems
    cases = ROOT / "examples" / "walkers" / "walkers.csv" if forecast else write_scenes(place / "images", 2, (120, 90))
    rules = "mirror(h)" if forecast else "mirror(h)+gamma(0.9)"
    run = instar.run(system.name, rules, cases, out=place / "run", limit=2, workers=0)
    assert run.outcome is not None and set(run.outcome.statuses) == {"ok"}
    assert run.judged()["judged"] and not accusations(run)


def test_modes_are_repeated_in_proportion_to_their_probability(place: Path) -> None:
    walk = Scene(
        np.zeros((60, 60), np.uint8), ("background", "pavement"), np.array([[10.0, 30], [12, 30]]), steps=4, rate=2.5
    )
    (answer,) = instar.system(recipe_of("my_modes")).answer([walk], [0])
    assert isinstance(answer, instar.Forecast) and len(answer) == 20
    ends, copies = np.unique(answer.futures[:, -1, 0], return_counts=True)
    assert len(ends) == 6 and copies[3] in (5, 6) and set(copies[[0, 1, 2, 4, 5]]) <= {2, 3}


def test_a_batch_function_is_known_by_its_annotation(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-> list[Detections]` says what it answers with: no image is sent, and no model is loaded, to find that out."""
    monkeypatch.setattr(sys.modules["my_models"], "detect_all", lambda images: pytest.fail("it was asked"))
    assert instar.system(recipe_of("my_batches")).kind == "detections"
