"""The fingerprint of a model is that of what was loaded: a file may be replaced while a library reads it."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace

import pytest
import xxhash

from instar.systems import AnotherVersion, litert, system
from instar.systems.identity import identities_noted
from instar.systems.mediapipe import _Graph
from instar.systems.weights import Edited, Files, content_of, loaded_from

LOADERS = {
    "onnx-detector": "instar.systems.onnx:onnx_session",
    "onnx-landmarks": "instar.systems.onnx:onnx_session",
    "onnx-classifier": "instar.systems.onnx:onnx_session",
    "goalmap": "instar.tasks.traj_test.goalmap:onnx_session",
    "reference-detector": "instar.tasks.object_relevance.reference_detector:read_weights",
}
"""Families that load a file by its path, and what loads it."""
PARAMETERS = {"reference-detector": "weights"}


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "weights"
    path.write_bytes(b"the first version")
    return path


@pytest.mark.parametrize("family", LOADERS)
def test_weights_that_change_while_they_are_loaded_are_refused(
    family: str, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was loaded may be either version, or half of each: a fingerprint of the file would be a guess."""
    module, _, loader = LOADERS[family].partition(":")

    def load(path: Path) -> SimpleNamespace:
        path.write_bytes(b"the second version")
        return SimpleNamespace(run=None)

    monkeypatch.setattr(importlib.import_module(module), loader, load)
    with pytest.raises(Edited, match=f"{weights} changed while it was loaded; start again"):
        system(f'{family}({PARAMETERS.get(family, "model")}="{weights}")')


def test_a_model_beside_which_more_of_it_lies_is_both_files(weights: Path) -> None:
    beside = weights.with_name("weights.data")
    beside.write_bytes(b"large")
    loaded, hashes = loaded_from([weights, beside], lambda: "a model")
    assert loaded == "a model" and len(set(hashes)) == 2
    with pytest.raises(Edited, match=f"{beside} changed"):
        loaded_from([weights, beside], lambda: beside.write_bytes(b"other"))


def test_a_file_that_was_only_touched_is_the_same(weights: Path) -> None:
    files = Files([str(weights)])
    weights.write_bytes(weights.read_bytes())
    assert files.changed() == ""


def test_litert_is_given_what_was_hashed(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would map the file, and answer by whatever is copied over it later."""
    contents: list[bytes] = []

    class Interpreter:
        def __init__(self, model_content: bytes, num_threads: int) -> None:
            weights.write_bytes(b"the second version")
            contents.append(model_content)

        def allocate_tensors(self) -> None: ...

        def get_input_details(self) -> list[object]:
            return [{}]

        def get_output_details(self) -> list[object]:
            return []

    monkeypatch.setattr(litert, "imported", lambda *_: SimpleNamespace(Interpreter=Interpreter))
    model = litert.Model(weights)
    assert contents == [model.content] == [b"the first version"]
    assert model.weights == xxhash.xxh3_128_hexdigest(b"the first version") != content_of(weights)[1]


@pytest.mark.parametrize("at", [1, 2])
def test_mediapipe_is_built_of_one_version(weights: Path, at: int) -> None:
    """A graph that failed is built anew, by which time its files may be others."""
    builds: list[int] = []

    def build() -> SimpleNamespace:
        builds.append(1)
        if len(builds) == at:
            weights.write_bytes(b"the second version")
        return SimpleNamespace(process=lambda image: image)

    def both() -> None:
        graph = _Graph(build, [weights])
        graph._solution = None  # as after a failure
        graph._open()

    with pytest.raises(AnotherVersion, match=f"{weights} changed, and MediaPipe was loaded with it"):
        both()
    assert len(builds) == at


def test_a_model_that_is_given_as_bytes_is_known_by_its_file(weights: Path) -> None:
    """Else a run says that its options alone identify it, and a refusal cannot name the file."""
    with identities_noted() as noted:
        _, digest = content_of(weights)
    assert [(dict(one.parts), dict(one.sizes)) for one in noted] == [({str(weights): digest}, {str(weights): 17})]
