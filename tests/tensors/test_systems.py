"""Systems that take tensors: what they are given, what they may say of their device, and that a run is the same."""

from __future__ import annotations

from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import instar
from instar.case import Case
from instar.engine import hands, worker
from instar.engine.messages import CaseTask, Rows, Setup
from instar.engine.plan import SOURCE
from instar.image import Image
from instar.outputs.labels import Labels
from instar.scene import Scene
from instar.systems import System, from_function
from tests.missing import module
from tests.transforms.test_rules import FRAME, needs_of, picture

RULES = ("identity", "mirror(h)", "shift(0.1)", "filtered(colour_fill((9, 99, 199)), skin)", "gamma(0.5)", "jpeg(50)")


def shares(levels: Any) -> Labels:
    """How much of an image's light each channel has, coarsely enough for a grey level not to matter."""
    light = np.asarray(levels, np.float64).mean((0, 1))
    return Labels.from_scores(["red", "green", "blue"], np.round(light / 255, 2))


@instar.declare(kind="labels", batch=True)
def of_arrays(images: list[Any]) -> list[Labels]:
    return [shares(image) for image in images]


@instar.declare(kind="labels", batch=True, takes_tensors=True, device="cpu")
def of_tensors(images: list[Any]) -> list[Labels]:
    for image in images:
        assert image.dtype == module("torch").uint8 and image.shape[2] == 3 and image.is_contiguous()
    answers = [shares(image.numpy()) for image in images]
    for image in images:
        image.zero_()  # a model may write into what it is given
    return answers


def answered(system: System, *, single: bool = False) -> dict[object, object]:
    """The rows of one case by key, less their times."""
    keys = ((SOURCE, 0, 0), *((rule, draw, 0) for rule in (*RULES, "noise(8)") for draw in range(1 + (rule[0] == "n"))))
    task = CaseTask(Case("a", input=picture()), keys, 1, needs_of(FRAME), single=single)  # type: ignore[arg-type]
    rows = [
        row
        for message in worker.Worker(Setup(system, {})).work(task)
        if isinstance(message, Rows)
        for row in map(message.row, range(len(message)))
    ]
    times = ("seconds", "case", "follow_up", "draw", "repeat")
    return {
        (row["follow_up"], row["draw"], row["repeat"]): {
            name: value for name, value in row.items() if name not in times and value is not None
        }
        for row in rows
    }


@pytest.mark.parametrize("single", [False, True])
def test_a_run_with_tensors_is_the_run_with_arrays(single: bool) -> None:
    module("torch")
    expected = answered(from_function(of_arrays, "of_arrays"), single=single)
    assert answered(from_function(of_tensors, "of_tensors"), single=single) == expected
    assert len(expected) == len(RULES) + 3 and {row["status"] for row in expected.values()} == {"ok"}  # type: ignore[index]


def test_follow_ups_of_a_case_are_made_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """One launch for all rules that are alike, whatever number the system answers at once."""
    operations = module("instar.tensors.operations")
    counts: list[int] = []
    together = operations.together

    def noted(source: Any, todo: Any, masks: Any) -> Any:
        counts.append(len(todo))
        return together(source, todo, masks)

    monkeypatch.setattr(operations, "together", noted)
    answered(from_function(instar.declare(kind="labels", takes_tensors=True, device="cpu")(shares), "shares"))
    assert counts == [len(RULES) + 1]  # jpeg is made here; noise has two draws


def test_a_system_of_tensors_takes_images_of_arrays_too() -> None:
    """As `check`, a preview or a chain gives it: sent when it is asked."""
    module("torch")
    answer = from_function(of_tensors, "of_tensors").answer([Image(np.full((4, 6, 3), 51, np.uint8))], [0])
    assert isinstance(answer[0], Labels)


def test_a_function_that_does_not_say_its_kind_is_tried_with_a_tensor() -> None:
    torch = module("torch")

    def caption(image):  # type: ignore[no-untyped-def]
        return "a tensor" if isinstance(image, torch.Tensor) else 3

    system = from_function(instar.declare(takes_tensors=True, device="cpu")(caption), "caption")
    assert (system.kind, system.takes_tensors, system.device, system.batch) == ("caption", True, "cpu", 1)
    assert system.identity.parts["the kind of device its tensors are made on"] == "cpu"


def test_without_a_device_the_first_gpu_or_the_processor_is_taken() -> None:
    torch = module("torch")

    def caption(image: Any) -> str:
        return str(image.device)

    system = from_function(instar.declare(takes_tensors=True)(caption), "caption")
    assert system.device == ("cuda:0" if torch.cuda.is_available() else "cpu")


def test_a_device_that_is_not_there_is_said_when_the_system_is_loaded() -> None:
    module("torch")

    def caption(image: Any) -> str:
        return ""

    with pytest.raises(ValueError, match=r"mine: device='cuda:77' cannot be used \(.*\); leave it out"):
        from_function(instar.declare(takes_tensors=True, device="cuda:77")(caption), "mine")


def test_scenes_are_no_tensors() -> None:
    module("torch")

    @instar.declare(kind="forecast", takes_tensors=True, device="cpu")
    def walk(scene: Scene) -> Any:
        return scene

    with pytest.raises(ValueError, match="takes_tensors=True is for images; forecast are answers to a scene"):
        from_function(walk, "walk")


def test_who_takes_arrays_is_given_what_it_was() -> None:
    system = from_function(of_arrays, "of_arrays")
    image = picture()
    assert system.placed([image]) == [image]
    assert not system.takes_tensors and system.device == "" and system.batch == 16


def test_each_gpu_has_one_worker_that_makes_and_predicts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen workers would hold sixteen models, and makers of their own would send what the GPU makes by itself."""
    started: list[Setup] = []

    def start(setup: Setup) -> Any:
        started.append(setup)
        return SimpleNamespace(kill=lambda: None)

    says = SimpleNamespace(device="cuda:0", takes_tensors=True)
    monkeypatch.setattr(hands, "visible_gpus", lambda: ["2", "5"])
    monkeypatch.setattr(hands, "start", start)
    monkeypatch.setattr(hands, "greeted", lambda process: says)
    with ExitStack() as stack:
        enlisted, _ = hands.enlisted(stack, Setup("mine:predict", {}), 16, None)
    assert isinstance(enlisted, hands.Hands) and len(enlisted.workers) == 2 and not enlisted.predictors
    first, *workers = started
    assert first.role == "predictor"
    assert [(one.role, dict(one.environment)) for one in workers] == [
        (Setup("", {}).role, {"CUDA_VISIBLE_DEVICES": gpu}) for gpu in ("2", "5")
    ]
