"""The controlled study, small: everything from generated pictures to the report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from instar.tasks.object_relevance.repair import Trainer
from tests.missing import module


def test_the_study_runs_from_pictures_to_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the detector under test learns enough to break rules; of all others it matters that they are trained."""
    torch = module("torch")
    module("pycocotools")
    import examples.repair.study
    from examples.repair.study import Scale, study, trainer

    def mostly_short(scale: Scale) -> Trainer:
        whole, short = trainer(scale), trainer(replace(scale, steps=2))

        def train(dataset_folder: Path, out: Path, *, seed: int, start: Path | None) -> Path:
            return (whole if out.name == "before-0" else short).train(dataset_folder, out, seed=seed, start=start)

        return replace(whole, train=train)

    monkeypatch.setattr(examples.repair.study, "trainer", mostly_short)
    scale = Scale(train=32, val=6, test=8, steps=45, seeds=1, shares=(0.2,), resamples=4, batch=10)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        results = study(tmp_path / "out", tmp_path / "work", scale, quick=True, apart=False)
    finally:
        torch.set_num_threads(threads)
    assert json.loads((tmp_path / "out" / "results.json").read_text("utf-8"))["styles"].keys() == {"a", "b"}
    told = (tmp_path / "out" / "results.md").read_text("utf-8")
    for style, found in results["styles"].items():
        assert f"## Style {style}" in told
        tables = found["evaluation"]["tables"]
        assert {"shifted", "unshifted", "shifted, near the training set", "unseen backgrounds"} <= tables.keys()
        assert any(name.startswith("transfer") for name in tables)
        assert found["mutants"] <= 0.2 / 0.8 * scale.train
        for row in tables["shifted"]:
            assert row["change"] == pytest.approx(row["after"] - row["before"])
            assert row["seed_low"] == pytest.approx(row["change"]), "one seed is all seeds"
