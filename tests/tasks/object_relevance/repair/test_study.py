"""The controlled study, small: everything from generated pictures to the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.missing import module


def test_the_study_runs_from_pictures_to_report(tmp_path: Path) -> None:
    torch = module("torch")
    module("pycocotools")
    from examples.repair.study import Scale, study

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
