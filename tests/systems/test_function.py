"""Any function as a system."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from instar import registry
from instar.image import Image
from instar.outputs.poses import Poses
from instar.systems import System, declare, system, system_name, systems
from instar.systems.function import from_function

GREY = Image(np.full((40, 60, 3), 127, np.uint8))


def pose(at: float) -> Poses:
    return Poses.from_array(np.full((1, 17, 2), at), skeleton="coco-17")


def plain(image):  # type: ignore[no-untyped-def]
    return pose(image.shape[1])


def annotated(image) -> Poses:  # type: ignore[no-untyped-def]
    raise RuntimeError("never asked while loading")


def random(image, seed) -> Poses:  # type: ignore[no-untyped-def]
    return pose(np.random.default_rng(seed).uniform(0, 10))


@declare(kind="poses", batch=True)
def batched(images):  # type: ignore[no-untyped-def]
    return [pose(image.shape[1]) for image in images]


@declare(kind="poses", batch=True)
def forgetful(images):  # type: ignore[no-untyped-def]
    return [pose(1)] * (len(images) - 1)


@declare(kind="poses")
def rubbish(image):  # type: ignore[no-untyped-def]
    return "a pose" if image.shape[1] == 60 else pose(1)


def broken(image):  # type: ignore[no-untyped-def]
    raise OSError("no weights")


def silent(image):  # type: ignore[no-untyped-def]
    return None


@declare(kind="smells")
def odd(image):  # type: ignore[no-untyped-def]
    return None


def test_a_plain_function_is_asked_what_it_returns() -> None:
    found = system(plain)
    assert (found.kind, found.deterministic) == ("poses", True)
    [answer] = found.answer([GREY], [0])
    assert isinstance(answer, Poses)
    assert answer.points[0, 0, 0] == 60


def test_an_annotated_function_is_not_called_to_load() -> None:
    found = system(annotated)
    assert found.kind == "poses"
    with pytest.raises(RuntimeError, match="never asked"):
        found.answer([GREY], [0])


def test_seeds() -> None:
    found = system(random)
    assert (found.deterministic, found.seedable) == (False, True)
    a, b, c = found.answer([GREY] * 3, [1, 1, 2])
    assert isinstance(a, Poses)
    assert isinstance(b, Poses)
    assert isinstance(c, Poses)
    assert np.array_equal(a.points, b.points)
    assert not np.array_equal(a.points, c.points)


def test_batch() -> None:
    small = Image(np.zeros((5, 7, 3), np.uint8))
    answers = system(batched).answer([GREY, small], [0, 0])
    widths = [answer.points[0, 0, 0] for answer in answers if isinstance(answer, Poses)]
    assert widths == [60, 7]
    with pytest.raises(ValueError, match="given 2 inputs and returned 1 answers"):
        system(forgetful).answer([GREY, small], [0, 0])


@declare(kind="poses", batch="array")
def as_array(images, seeds):  # type: ignore[no-untyped-def]
    assert images.ndim == 4 and images.dtype == np.uint8 and len(images) == len(seeds)
    return [pose(image.shape[1] + 1000 * seed + int(image[0, 0, 0])) for image, seed in zip(images, seeds, strict=True)]


@declare(kind="poses", batch="array")
def overwriting(images):  # type: ignore[no-untyped-def]
    images[:] = 0


def test_images_of_one_size_are_one_array() -> None:
    """The answers come back in the images' order, each with the seed of its own image."""
    sizes = [(5, 7), (40, 60), (5, 7), (8, 9), (5, 7)]
    images = [Image(np.full((*size, 3), number, np.uint8)) for number, size in enumerate(sizes)]
    answers = system(as_array).answer(images, [5, 4, 3, 2, 1])
    found = [answer.points[0, 0, 0] for answer in answers if isinstance(answer, Poses)]
    assert found == [5007, 4061, 3009, 2012, 1011]


def test_an_array_of_images_is_not_written_to() -> None:
    """If it fails, its images are asked about one by one, and must be what they were."""
    with pytest.raises(ValueError, match="read-only"):
        system(overwriting).answer([GREY, GREY], [0, 0])


def test_an_array_whose_answers_are_too_few_is_said() -> None:
    @declare(kind="poses", batch="array")
    def one(images):  # type: ignore[no-untyped-def]
        return [pose(1)]

    with pytest.raises(ValueError, match="given an array of 2 images and returned 1 answer"):
        from_function(one, "one").answer([GREY, GREY], [0, 0])


def test_what_a_batch_may_be() -> None:
    with pytest.raises(ValueError, match=r"batch='arrays'.*allowed are: False .*, True .*, 'array'"):
        declare(batch="arrays")  # type: ignore[call-overload]


def test_scenes_are_no_array() -> None:
    @declare(kind="forecast", batch="array")
    def walk(scenes):  # type: ignore[no-untyped-def]
        return scenes

    with pytest.raises(ValueError, match="batch='array' is for images; forecast are answers to a scene"):
        from_function(walk, "walk")


def test_on_a_gpu_more_are_predicted_at_once() -> None:
    def many(images):  # type: ignore[no-untyped-def]
        return images

    for device, most in {"": 16, "cpu": 16, "cuda": 64, "cuda:1": 64, "mps": 64}.items():
        assert from_function(declare(kind="poses", batch=True, device=device)(many), "many").batch == most


def test_rubbish_costs_its_own_answer() -> None:
    small = Image(np.zeros((5, 7, 3), np.uint8))
    bad, good = system(rubbish).answer([GREY, small], [0, 0])
    assert isinstance(bad, TypeError)
    assert isinstance(good, Poses)


@declare(kind="poses")
def forking(image):  # type: ignore[no-untyped-def]
    copy = os.fork()
    if copy == 0 and image.shape[1] == 7:
        raise RuntimeError("only the copy fails")
    return pose(copy)


def test_a_copy_that_a_system_forks_does_not_come_back() -> None:
    """It would answer what is left a second time, and fork again at each input."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    for image in (GREY, Image(np.zeros((5, 7, 3), np.uint8))):
        try:
            [answer] = system(forking).answer([image], [0])
        finally:
            os.write(writer, b"x")
        assert isinstance(answer, Poses)
        os.waitpid(int(answer.points[0, 0, 0]), 0)
        assert os.read(reader, 9) == b"x", "one process came back"
    os.close(reader)
    os.close(writer)


def test_functions_that_cannot_be_systems() -> None:
    with pytest.raises(ValueError, match=r"no weights.*annotate its return type"):
        system(broken)
    with pytest.raises(ValueError, match="NoneType"):
        system(silent)
    with pytest.raises(ValueError, match="'smells' is no kind of output"):
        system(odd)


class Wrapped:
    """A model behind a method."""

    size = 3

    def close(self) -> None: ...

    def predict(self, image: np.ndarray) -> Poses: ...  # type: ignore[empty-body]


async def awaited(image: np.ndarray) -> Poses: ...  # type: ignore[empty-body]


WRAPPED = Wrapped()


def test_what_is_named_is_not_what_answers() -> None:
    """An object has a method that answers; an async function answers nothing when it is called."""
    with pytest.raises(TypeError, match=r"WRAPPED.predict is a function of it: name that$"):
        system(f"{__name__}:WRAPPED")
    assert system(f"{__name__}:WRAPPED.predict").kind == "poses"
    for what in (awaited, f"{__name__}:awaited"):
        with pytest.raises(TypeError, match=r"awaited is async.*returns asyncio.run\(awaited\(image\)\)"):
            system(what)


def test_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import numpy as np\nfrom instar.outputs.poses import Poses\n"
        "def estimate(image) -> Poses:\n"
        "    return Poses.from_array(np.zeros((1, 17, 2)), skeleton='coco-17')\nnumber = 3\n"
    )
    (tmp_path / "my_toy_system.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    first = system("my_toy_system:estimate")
    assert (first.name, first.kind) == ("my_toy_system:estimate", "poses")
    with pytest.raises(TypeError, match="int, not a function"):
        system("my_toy_system:number")
    with pytest.raises(KeyError, match="did you mean 'estimate'"):
        system("my_toy_system:estimat")
    with pytest.raises(ModuleNotFoundError, match="no module"):
        system("no_such_module_anywhere:f")
    (tmp_path / "my_toy_system.py").write_text(code + "# changed\n")
    del sys.modules["my_toy_system"]
    assert system("my_toy_system:estimate").fingerprint != first.fingerprint


def test_from_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "our_toy_adapter.py").write_text("""
from instar.outputs.poses import Poses
from instar.spelling import Parameter
from instar.systems import System, SystemFamily, fingerprint_of

def build(name, *, threshold):
    def predict(inputs, seeds):
        return [Poses.from_array([], skeleton="coco-17") for image in inputs]
    return System(name, "poses", predict, fingerprint_of("our-pose", 1, threshold))

OUR_POSE = SystemFamily("our-pose", "poses", build, (Parameter("threshold", "float", 0.1, low=0, high=1),))
""")
    info = tmp_path / "our_toy_adapter-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: our-toy-adapter\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[instar.systems]\nour-pose = our_toy_adapter:OUR_POSE\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry._registered.cache_clear()
    try:
        assert "our-pose" in systems()
        found = system("our-pose(threshold=0.2)")
        assert found.name == "our-pose(threshold=0.2)"
        assert len(found.answer([GREY, GREY], [0, 0])) == 2
    finally:
        registry._registered.cache_clear()


def test_names_of_built_in_systems() -> None:
    assert system_name("mediapipe-holistic(complexity=1)") == "mediapipe-holistic"
    assert system_name("mediapipe-hands(detection=0.3, max_hands=1)") == "mediapipe-hands(max_hands=1)"
    with pytest.raises(KeyError, match="did you mean 'mediapipe-holistic'"):
        system_name("mediapipe-holistik")
    with pytest.raises(ValueError, match="complexity=3 is not allowed"):
        system_name("mediapipe-holistic(complexity=3)")
    with pytest.raises(ValueError, match="movenet needs model"):
        system_name("movenet")


def test_a_system_is_itself() -> None:
    made = System("mine", "poses", lambda inputs, seeds: [pose(1) for _ in inputs], "1")
    assert system(made) is made


def test_an_array_is_no_image_and_the_way_to_make_one_is_said() -> None:
    """Whoever asks a built-in system from a function of their own has an array, and read: no attribute 'kind'."""
    asked = system(annotated)
    with pytest.raises(TypeError, match=r"takes a image, this is a ndarray; .* by instar\.Image\(array\)"):
        asked.answer([GREY.pixels], [0])  # type: ignore[list-item]
