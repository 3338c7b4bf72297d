"""The reference trainer: it learns, and the same seed learns the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import instar
from instar.case import read_input
from instar.datasets import dataset
from instar.repair import compared
from instar.repair.reference import detector, letterbox, train
from tests.missing import module
from tests.repair.squares import in_memory, on_disk


@pytest.fixture
def torch() -> Iterator[Any]:
    torch = module("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield torch
    torch.set_num_threads(threads)


def test_it_overfits_a_few_pictures(tmp_path: Path, torch: Any) -> None:
    module("pycocotools")
    labels = on_disk(tmp_path / "set", 8)
    weights = train(labels.parent, tmp_path / "out", seed=0, steps=150, side=64, batch=8)
    found = compared(detector(weights), dataset(labels)).values()
    assert found["mAP@0.5"] > 0.95
    assert found["precision"] > 0.9 and found["recall"] > 0.9
    assert found["mean IoU"] > 0.7


def test_the_same_seed_gives_the_same_weights(tmp_path: Path, torch: Any) -> None:
    folder = on_disk(tmp_path / "set", 4).parent
    states = [torch.load(train(folder, tmp_path / name, seed=seed, steps=4, side=64, batch=4), weights_only=True)
              for name, seed in (("a", 0), ("b", 0), ("c", 1))]
    first, again, other = (state["state"] for state in states)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_the_callers_chance_is_untouched(tmp_path: Path, torch: Any) -> None:
    folder = on_disk(tmp_path / "set", 4).parent
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(folder, tmp_path / "out", seed=0, steps=1, side=64, batch=2)
    assert torch.equal(torch.rand(3), expected)


def test_training_goes_on_from_weights(tmp_path: Path, torch: Any) -> None:
    folder = on_disk(tmp_path / "set", 4).parent
    first = train(folder, tmp_path / "first", seed=0, steps=2, side=64, batch=2)
    train(folder, tmp_path / "second", seed=0, steps=2, side=64, batch=2, start=first)
    told = folder / "instances_train.json"
    told.write_text(json.dumps({**json.loads(told.read_text()), "categories": [
        {"id": n, "name": f"class {n}"} for n in (1, 2, 3)]}))
    with pytest.raises(ValueError, match="knows the classes"):
        train(folder, tmp_path / "third", seed=0, steps=2, side=64, batch=2, start=first)


def test_it_is_a_system(tmp_path: Path, torch: Any) -> None:
    """Alone or in a batch, of any size, and with rules."""
    weights = train(on_disk(tmp_path / "set", 4).parent, tmp_path / "out", seed=0, steps=30, side=64, batch=4)
    system = detector(weights)
    images = [read_input(case)[0] for case in in_memory(3).cases()]
    together = system.answer(images, [0] * 3)
    for image, answer in zip(images, together, strict=True):
        (alone,) = system.answer([image], [0])
        assert np.allclose(alone.boxes, answer.boxes, atol=1e-3)  # type: ignore[union-attr]
    run = instar.run(system, "background_noise(16) => presence(kept)", in_memory(3), out=tmp_path / "run", workers=0)
    assert run.verdicts().height == 6


def test_boxes_come_back_through_the_letterbox() -> None:
    frame = letterbox((200, 100), 64)
    assert np.allclose(frame.boxes([[0, 0, 200, 100]]), [[0, 16, 64, 48]])
    assert np.allclose(frame.inverse.boxes(frame.boxes([[10, 20, 30, 40]])), [[10, 20, 30, 40]])
