"""A repair from a run to its result, with a trainer that learns nothing and is quick."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

import numpy as np
import pytest
from typer.testing import CliRunner

import instar
from instar.outputs.detections import Detections
from instar.systems import MissingExtra
from instar.tasks.object_relevance.commands import objects
from instar.tasks.object_relevance.repair import Trainer, augment, check_disjoint, compared, reference, repair, trainer
from instar.tasks.object_relevance.repair.trainer import trained
from tests.layers.test_layers import loaded
from tests.missing import module
from tests.tasks.object_relevance.repair.squares import found, in_memory, on_disk, ran, remembering
from tests.toys import steady

TRAINER = f"{__name__}:train"
calls: list[str] = []


def train(dataset_folder: Path, out: Path, *, seed: int, start: Path | None) -> Path:
    """Remembers whether there were mutants in the set."""
    told = json.loads((dataset_folder / "instances_train.json").read_text("utf-8"))
    calls.append(out.name)
    path = out / "weights.json"
    path.write_text(json.dumps({"mutants": sum("rule" in image for image in told["images"]), "seed": seed}))
    return path


def detector(weights: Path) -> Callable[[np.ndarray], Detections]:
    """Right if it saw mutants, blind on every second picture if not."""
    mutants = json.loads(weights.read_text())["mutants"]

    def predict(pixels: np.ndarray) -> Detections:
        seen = found(pixels)
        return seen if mutants or int(pixels.astype(int).sum()) % 2 else Detections.from_xyxy([], [])

    return predict


class Sets(TypedDict):
    train: Path
    val: Path
    test: Path


@pytest.fixture(autouse=True)
def no_calls() -> None:
    calls.clear()


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Sets:
    folder = tmp_path_factory.mktemp("sets")
    return {
        "train": on_disk(folder / "train", 12, 0),
        "val": on_disk(folder / "val", 6, 100),
        "test": on_disk(folder / "test", 6, 200),
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, sets: Sets) -> instar.Run:
    """Of a detector that has something to be repaired; a repair reads it, and writes elsewhere."""
    return ran(remembering(12), sets["train"], tmp_path_factory.mktemp("runs") / "run")


def test_a_repair_from_run_to_result(tmp_path: Path, run: instar.Run, sets: Sets) -> None:
    module("pycocotools")
    said: list[str] = []
    done = repair(run, **sets, out=tmp_path / "out", by=TRAINER, seeds=2, share=0.25, say=said.append)
    rows = {row["measure"]: row for row in done.table.iter_rows(named=True)}
    assert done.chosen.mutants.height == 4
    assert rows["recall"]["change"] > 0.2 and rows["recall"]["seeds_better"] == 2
    assert rows["unreliable"]["after"] <= rows["unreliable"]["before"]
    assert calls == ["before-0", "after-0", "before-1", "after-1"]
    told = json.loads((tmp_path / "out" / "result.json").read_text("utf-8"))
    assert len(told["seeds"]["after"]) == 2
    assert "| recall |" in (tmp_path / "out" / "result.md").read_text("utf-8")
    assert "training 1 of 4: before, seed 0" in said
    assert any(line.startswith("training 4 of 4: after, seed 1; about 0.0 min left") for line in said)
    assert not any("test" in line for line in said[: said.index("testing 1 of 4: before, seed 0")])


def test_what_is_finished_is_not_done_again(tmp_path: Path, run: instar.Run, sets: Sets) -> None:
    module("pycocotools")
    first = repair(run, **sets, out=tmp_path / "out", by=TRAINER, seeds=1, say=lambda _: None)
    (tmp_path / "out" / "trained" / "after-0" / "trained.json").unlink()
    calls.clear()
    said: list[str] = []
    again = repair(run, **sets, out=tmp_path / "out", by=TRAINER, seeds=1, say=said.append)
    assert calls == ["after-0"], "the other was finished"
    assert said[-1].startswith("the test set was evaluated before")
    assert again.table.equals(first.table)
    with pytest.raises(ValueError, match="another share"):
        repair(run, **sets, out=tmp_path / "out", by=TRAINER, seeds=1, share=0.2, say=lambda _: None)


def test_searching_decides_on_the_validation_set(tmp_path: Path, run: instar.Run, sets: Sets) -> None:
    module("pycocotools")
    done = repair(run, **sets, out=tmp_path / "out", by=TRAINER, seeds=1, searching=True, share=0.4, say=lambda _: None)
    assert done.searched is not None
    tried = {row["candidate"]: row for row in done.searched.iter_rows(named=True)}
    assert {
        "no mutants",
        "erase(1)",
        "background_noise(16)",
        "background_noise, every level",
        "all rules",
    } == tried.keys() - {"background_noise(64)"}
    assert done.searched["candidate"][-1] == "no mutants"
    taken = set(done.chosen.mutants["rule"])
    assert taken <= set(done.searched["rules"][0])


def test_rules_can_be_given(tmp_path: Path, run: instar.Run, sets: Sets) -> None:
    module("pycocotools")
    done = repair(run, **sets, out=tmp_path / "out", by=TRAINER, seeds=1, rules=["erase(1)"], say=lambda _: None)
    assert set(done.chosen.mutants["rule"]) == {"erase(1) => presence(gone)"}
    with pytest.raises(LookupError, match="rule of this run"):
        repair(run, **sets, out=tmp_path / "other", by=TRAINER, rules=["erase(0.5)"], say=lambda _: None)


def test_an_overlap_of_train_and_test_is_refused(tmp_path: Path, run: instar.Run, sets: Sets) -> None:
    module("pycocotools")
    overlapping: Sets = {**sets, "test": on_disk(tmp_path / "more", 12, first=11)}
    with pytest.raises(ValueError, match=r"overlap in 1 image: 000001_011\.png of test is 000012_011\.png of train"):
        repair(run, **overlapping, out=tmp_path / "out", by=TRAINER, say=lambda _: None)
    with pytest.raises(ValueError, match="takes none; give a larger share"):
        repair(run, **sets, out=tmp_path / "out", by=TRAINER, share=0.001, say=lambda _: None)
    assert calls == []
    repair(run, **sets, out=tmp_path / "out", by=TRAINER, seeds=1, say=lambda _: None)  # nothing was held against it


def test_the_same_pixels_under_another_name_overlap() -> None:
    check_disjoint({"train": in_memory(3), "test": in_memory(3, first=3)})
    with pytest.raises(ValueError, match="overlap in 2 images"):
        check_disjoint({"train": in_memory(3), "val": in_memory(3, first=6), "test": in_memory(3, first=1)})


def test_a_test_set_without_labels_is_refused_before_anything_is_trained(
    tmp_path: Path, run: instar.Run, sets: Sets
) -> None:
    module("pycocotools")
    unlabelled: Sets = {**sets, "test": sets["test"].parent / "images"}
    with pytest.raises(ValueError, match="has no annotated objects"):
        repair(run, **unlabelled, out=tmp_path / "out", by=TRAINER, say=lambda _: None)
    assert calls == []


def test_missing_pycocotools_is_said_before_anything_is_trained(
    tmp_path: Path, run: instar.Run, sets: Sets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pycocotools.coco", None)
    with pytest.raises(MissingExtra, match="pycocotools"):
        repair(run, **sets, out=tmp_path / "out", by=TRAINER, say=lambda _: None)
    assert calls == []
    assert not (tmp_path / "out").exists()


def test_a_run_without_violations_is_said(tmp_path: Path, sets: Sets) -> None:
    run = ran(found, sets["train"], tmp_path / "run", "background_noise(1) => presence(kept)")
    for one in (lambda out: augment(run, sets["train"], out), lambda out: repair(run, **sets, out=out, by=TRAINER)):
        with pytest.raises(ValueError, match="has no violations of the relation presence"):
            one(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_weights_to_start_from_must_be_there(tmp_path: Path, run: instar.Run, sets: Sets) -> None:
    with pytest.raises(FileNotFoundError, match="no weights"):
        repair(run, **sets, out=tmp_path / "out", by=TRAINER, start=tmp_path / "nowhere.npz", say=lambda _: None)


def test_a_trainer_needs_a_detector_beside_it(tmp_path: Path) -> None:
    sys.modules.pop("alone", None)
    (tmp_path / "alone.py").write_text("def train(folder, out, *, seed, start): ...\n")
    sys.path.insert(0, str(tmp_path))
    try:
        with pytest.raises(TypeError, match="no function detector"):
            trainer("alone:train")
    finally:
        sys.path.remove(str(tmp_path))


def test_the_reference_trainer_has_a_short_name() -> None:
    by = trainer("reference")
    assert (by.name, by.train, by.detector) == ("reference", reference.train, reference.detector)
    with pytest.raises(KeyError, match=r"unknown trainer 'referense'.*reference.*package\.module:function"):
        trainer("referense")


def test_weights_that_are_not_there_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="returned"):
        trained(Trainer("bad", lambda *_, **__: tmp_path / "nothing", detector), tmp_path, tmp_path / "out", seed=0)


def test_runs_of_different_weights_have_different_fingerprints(tmp_path: Path) -> None:
    by = trainer(TRAINER)
    files = []
    for number in range(2):
        files.append(tmp_path / f"{number}.json")
        files[-1].write_text(json.dumps({"mutants": number}))
    first, second = (by.system(file) for file in files)
    assert first.fingerprint != second.fingerprint
    assert first.kind == "detections"


def test_the_command_exports_and_repairs(tmp_path: Path, run: instar.Run, sets: Sets) -> None:
    runner = CliRunner()
    command = ["repair", str(run.folder), "--train", str(sets["train"]), "--val", str(sets["val"])]
    exported = runner.invoke(objects, [*command, "--out", str(tmp_path / "set"), "--export-only", "--share", "0.2"])
    assert exported.exit_code == 0, exported.output
    assert "3 of 36 mutants taken" in exported.output
    assert (tmp_path / "set" / "data.yaml").is_file()
    assert re.search(r"^ +1 of +\d+  erase\(1\) => presence\(gone\)$", exported.output, re.MULTILINE), exported.output
    refused = runner.invoke(objects, [*command, "--out", str(tmp_path / "out")])
    assert refused.exit_code == 2 and "a repair needs --val and --test" in " ".join(refused.output.split())
    module("pycocotools")
    repaired = runner.invoke(
        objects,
        [*command, "--test", str(sets["test"]), "--out", str(tmp_path / "out"), "--trainer", TRAINER, "--seeds", "1"],
    )
    assert repaired.exit_code == 0, repaired.output
    assert "| mAP@0.5 |" in repaired.output and str(tmp_path / "out" / "result.md") in repaired.output


MINE = """
import json
from functools import partial
import numpy as np

def learn(dataset_folder, out, *, seed, start, much):
    print("learned", much, "from", start)
    (out / "mine.json").write_text(json.dumps(json.loads((dataset_folder / "instances_train.json").read_text())))
    return out / "mine.json"

train = partial(learn, much="little")

def detector(weights):
    from tests.tasks.object_relevance.repair.squares import found
    return found
"""


def test_a_trainer_in_the_current_folder(tmp_path: Path, run: instar.Run, sets: Sets) -> None:
    """As somebody writes it beside their data, and calls the command there."""
    module("pycocotools")
    (tmp_path / "my_trainer.py").write_text(MINE)
    (tmp_path / "old.bin").write_bytes(b"")
    asked = [
        sys.executable,
        "-c",
        "from instar.tasks.object_relevance.commands import objects; objects()",
        "repair",
        str(run.folder),
        "--out",
        "out",
        "--trainer",
        "my_trainer:train",
        "--seeds",
        "1",
        "--start",
        "old.bin",
    ]
    for name, path in sets.items():
        asked += [f"--{name}", str(path)]
    paths = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])
    told = subprocess.run(
        asked, cwd=tmp_path, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout.count("learned little from old.bin") == 2
    assert "| recall |" in told.stdout
    assert "training 2 of 2: after, seed 0" in told.stderr


def test_a_stop_keeps_what_was_trained(
    tmp_path: Path, run: instar.Run, sets: Sets, monkeypatch: pytest.MonkeyPatch
) -> None:
    module("pycocotools")
    plain, runner = train, CliRunner()

    def stopped(dataset_folder: Path, out: Path, *, seed: int, start: Path | None) -> Path:
        if len(calls) == 1:
            raise KeyboardInterrupt
        return plain(dataset_folder, out, seed=seed, start=start)

    command = ["repair", str(run.folder), "--out", str(tmp_path / "out"), "--trainer", TRAINER, "--seeds", "1"]
    for name, path in sets.items():
        command += [f"--{name}", str(path)]
    monkeypatch.setattr(sys.modules[__name__], "train", stopped)
    ended = runner.invoke(objects, command)
    assert ended.exit_code != 0
    assert "what was trained is kept" in ended.output
    monkeypatch.undo()
    assert runner.invoke(objects, command).exit_code == 0
    assert calls == ["before-0", "after-0"]


def test_a_detector_that_answers_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="needs detections"):
        Trainer("bad", train, lambda _: steady).system(tmp_path)


def test_neither_torch_nor_pycocotools_is_loaded_before_it_is_needed() -> None:
    assert loaded("instar.tasks.object_relevance.repair.reference", ("torch", "pycocotools", "scipy")) == []


def test_a_failing_detector_is_not_measured() -> None:
    module("pycocotools")
    by = trainer(TRAINER)

    def broken(pixels: np.ndarray) -> Detections:
        return "nothing"  # type: ignore[return-value]

    with pytest.raises(ValueError, match="failed on squares"):
        compared(Trainer("bad", by.train, lambda _: broken).system(Path("x")), in_memory(2))
