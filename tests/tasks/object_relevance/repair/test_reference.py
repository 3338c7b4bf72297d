"""The reference trainer: it learns, and the same seed learns the same."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import instar
from instar.case import read_input
from instar.datasets import dataset
from instar.image import Image
from instar.systems import system
from instar.tasks.object_relevance.reference_detector import decoded, framed, read_weights
from instar.tasks.object_relevance.repair import compared, examples, export, reference
from instar.tasks.object_relevance.repair.reference import detector, train
from tests.missing import module
from tests.tasks.object_relevance.repair.squares import in_memory, on_disk


@pytest.fixture
def torch() -> Iterator[Any]:
    torch = module("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield torch
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained for long enough to find something."""
    module("torch")
    folder = tmp_path_factory.mktemp("trained")
    return train(on_disk(folder / "set", 4).parent, folder / "a folder", seed=0, steps=30, side=64, batch=4)


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
    files = [
        train(folder, tmp_path / name, seed=seed, steps=4, side=64, batch=4)
        for name, seed in (("a", 0), ("b", 0), ("c", 1))
    ]
    first, again, other = (read_weights(file).state for file in files)
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not all(np.array_equal(first[name], other[name]) for name in first)
    prints = [detector(file).fingerprint for file in files]
    assert prints[0] == prints[1] != prints[2]


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
    told.write_text(
        json.dumps({**json.loads(told.read_text()), "categories": [{"id": n, "name": f"class {n}"} for n in (1, 2, 3)]})
    )
    with pytest.raises(ValueError, match="know the classes"):
        train(folder, tmp_path / "third", seed=0, steps=2, side=64, batch=2, start=first)


def test_training_stops_when_the_validation_set_is_saturated(
    tmp_path: Path, torch: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """mAP that rises twice and never again: five checks more, and the weights are those of the highest."""
    module("pycocotools")
    rising = iter([0.1, 0.4, *[0.3] * 100])

    class Fixed:
        def values(self) -> dict[str, float]:
            return {"mAP@0.5": next(rising)}

    monkeypatch.setattr(reference, "compared", lambda system, data: Fixed())
    folder = export(tmp_path / "set", examples(in_memory(4).cases()), in_memory(2, 10))
    train(folder, tmp_path / "out", seed=0, steps=400, side=32, batch=2)
    record = json.loads((tmp_path / "out" / "saturation.json").read_text())
    assert (record["steps"], record["most"], record["best_step"], record["every"]) == (175, 400, 50, 25)
    assert len(record["checks"]) == 7
    assert (
        "ended after 175 of 400 steps: mAP@0.5 on the validation set did not rise in 5 checks"
        in capsys.readouterr().err
    )


def test_the_classes_of_the_set_stay_those_of_the_weights(tmp_path: Path, torch: Any) -> None:
    """Also those that no image shows; and weights to go on from keep their own."""
    numbered = {3: "green", 5: "yellow", 7: "red", 9: "blue"}
    folder = export(tmp_path / "set", examples(in_memory(4).cases()), classes=numbered)
    first = train(folder, tmp_path / "first", seed=0, steps=1, side=32, batch=2)
    assert read_weights(first).labels == ["green", "yellow", "red", "blue"]
    plain = on_disk(tmp_path / "plain", 4).parent
    second = train(plain, tmp_path / "second", seed=0, steps=1, side=32, batch=2, start=first)
    assert read_weights(second).labels == ["green", "yellow", "red", "blue"]


def test_a_stopped_training_goes_on(
    tmp_path: Path, torch: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """To the same weights as one that was never stopped; and one that was asked for otherwise begins anew."""
    folder, plain, looked = on_disk(tmp_path / "set", 4).parent, decoded, 0
    monkeypatch.setattr(reference, "SAVED_EVERY", 0.0)

    def stopping(*given: Any) -> Any:
        nonlocal looked
        looked += 1
        if looked == 6:
            raise KeyboardInterrupt
        return plain(*given)

    def trained(name: str, seed: int = 0) -> Any:
        return read_weights(train(folder, tmp_path / name, seed=seed, steps=9, side=64, batch=4)).state

    whole, other = trained("whole"), trained("other", 1)
    monkeypatch.setattr(reference, "decoded", stopping)
    for name in ("stopped", "changed"):
        looked = 0
        with pytest.raises(KeyboardInterrupt):
            trained(name)
    looked = 6
    again = trained("stopped")
    assert looked == 6 + 4, "five of nine steps were done"
    assert "stopped after 5 steps" in capsys.readouterr().err
    assert all(np.array_equal(whole[name], again[name]) for name in whole)
    changed = trained("changed", 1)
    assert all(np.array_equal(other[name], changed[name]) for name in other)
    assert sorted(file.name for file in (tmp_path / "stopped").iterdir()) == ["weights.npz"]


def test_it_is_a_system(tmp_path: Path, torch: Any, weights: Path) -> None:
    """Alone or in a batch, of any size, and with rules."""
    system = detector(weights)
    images = [read_input(case)[0] for case in in_memory(3).cases()]
    together = system.answer(images, [0] * 3)
    for image, answer in zip(images, together, strict=True):
        (alone,) = system.answer([image], [0])
        assert np.allclose(alone.boxes, answer.boxes, atol=1e-3)  # type: ignore[union-attr]
    run = instar.run(system, "background_noise(16) => presence(kept)", in_memory(3), out=tmp_path / "run", workers=0)
    assert run.verdicts().height == 6


def test_what_was_trained_can_be_named(tmp_path: Path, torch: Any, weights: Path) -> None:
    """A repaired detector is a system like any other, and its run says how to name it again."""
    labels = on_disk(tmp_path / "set", 2)
    named = f'reference-detector("{weights}")'
    run = instar.run(named, "background_noise(16) => presence(kept)", labels, out=tmp_path / "run", workers=1)
    assert run.verdicts().height == 4
    assert run.manifest.system.name == named == detector(weights).name
    assert system(named).fingerprint == detector(weights).fingerprint


class _Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("a file of weights ran code",)


@pytest.mark.parametrize("kind", ["pickle", "array of objects", "another archive", "text", "nothing", "cut short"])
def test_what_are_no_weights_is_said(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "weights.npz"
    if kind == "pickle":
        path.write_bytes(pickle.dumps(_Trap()))
    elif kind == "array of objects":
        np.savez(path, version=np.array([_Trap()], object))
    elif kind == "another archive":
        np.savez(path, version=1)
    elif kind == "cut short":
        np.savez(path, version=1, labels=np.array(["disc"]), side=64)
        path.write_bytes(path.read_bytes()[:200])
    else:
        path.write_text("weights" if kind == "text" else "")
    with pytest.raises(ValueError, match="no weights of the reference trainer"):
        system(f'reference-detector("{path}")')
    with pytest.raises(FileNotFoundError, match="no file of weights"):
        system("reference-detector(nowhere.npz)")


def test_weights_of_another_network_are_said(tmp_path: Path, torch: Any) -> None:
    path = tmp_path / "weights.npz"
    np.savez(
        path, version=1, labels=np.array(["disc"]), side=64, **cast(dict[str, Any], {"state/0.weight": np.zeros(3)})
    )
    with pytest.raises(ValueError, match="not of the reference detector's network"):
        system(f'reference-detector("{path}")')


def test_boxes_come_back_through_the_square() -> None:
    _, frame = framed(Image(np.zeros((100, 200, 3), np.uint8)), 64)
    assert np.allclose(frame.boxes([[0, 0, 200, 100]]), [[0, 16, 64, 48]])
    assert np.allclose(frame.inverse.boxes(frame.boxes([[10, 20, 30, 40]])), [[10, 20, 30, 40]])
