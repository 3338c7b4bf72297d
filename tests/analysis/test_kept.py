"""What takes long to find out about a large run is kept, and never believed where it could be wrong."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import xxhash

from benchmarks.runs import run_of_poses
from instar.analysis import Run
from instar.store import Store

NAMES = ("answers", "conditions", "parts-poses", "severities", "unjudged")
RULES = 19
ASKED: dict[str, Callable[[Run], object]] = {
    "rates": lambda run: run.rates().to_dicts(),
    "unjudged": lambda run: run.unjudged().to_dicts(),
    "straying": lambda run: run.straying_parts().to_dicts(),
    "answers": lambda run: run.answers(),
    "conditions": lambda run: run.conditions().to_dicts(),
    "worst": lambda run: run.worst(5).to_dicts(),
}
"""All that reads what is kept."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that is large enough."""
    monkeypatch.setattr(import_module("instar.analysis.kept"), "LARGE", 1)
    return run_of_poses(tmp_path / "run", 3, 1).folder


def said(folder: Path) -> dict[str, object]:
    """What one who opens the run is told."""
    run = Run(Store(folder))
    return {name: ask(run) for name, ask in ASKED.items()}


def files(folder: Path) -> list[Path]:
    return sorted((folder / "verdicts" / "default" / "kept").glob("*"))


def never(*_: object, **__: object) -> None:
    raise AssertionError("it is kept: nobody need find it out")


def test_it_is_found_out_once_and_the_same_from_then_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = said(folder)
    assert tuple(path.name.partition(".")[0] for path in files(folder)) == NAMES
    kept = import_module("instar.analysis.kept")
    for made in ("severities", "part_matrix", "answers_of", "condition_counts", "unjudged_pairs"):
        monkeypatch.setattr(kept, made, never)
    assert said(folder) == first


def test_a_matrix_is_the_same_to_the_last_bit(folder: Path) -> None:
    made, again = (Run(Store(folder)).severities() for _ in range(2))
    assert again.rules == made.rules
    assert again.kinds == made.kinds
    assert again.cases.equals(made.cases)
    assert (again.p is None) == (made.p is None)
    for name in ("severity", "status", "kind"):
        assert getattr(again, name).dtype == getattr(made, name).dtype
        assert np.array_equal(getattr(again, name), getattr(made, name), equal_nan=name == "severity")


def test_a_run_that_goes_on_is_found_out_anew(folder: Path) -> None:
    said(folder)
    before = files(folder)
    store = Store(folder)
    rows = store.predictions().filter(pl.col("case") == "000000").with_columns(case=pl.lit("new"))
    store.append("predictions", rows)
    assert Run(store).severities().severity.shape == (RULES, 4)
    said(folder)
    assert len(files(folder)) == len(NAMES)  # those of before are gone
    assert not set(files(folder)) & set(before)


@pytest.mark.parametrize("damage", [lambda content: content[:-9], lambda content: content[:99] + b"?" + content[100:]])
def test_what_is_damaged_is_found_out_anew(folder: Path, damage: Callable[[bytes], bytes]) -> None:
    first = said(folder)
    for path in files(folder):
        path.write_bytes(damage(path.read_bytes()))
    assert said(folder) == first


def test_what_leads_elsewhere_is_not_read(folder: Path, tmp_path: Path) -> None:
    first = said(folder)
    for number, path in enumerate(files(folder)):
        elsewhere = path.replace(tmp_path / str(number))
        path.symlink_to(elsewhere)
    assert said(folder) == first


@pytest.mark.parametrize("content", [pl.DataFrame({"a": [1]}), pl.DataFrame({"rules": [["x"]], "cases": [["y"]]})])
def test_what_somebody_made_up_is_found_out_anew(folder: Path, content: pl.DataFrame) -> None:
    """A name that fits says nothing about who wrote it."""
    first = said(folder)
    for path in files(folder):
        name, basis, *_ = path.name.split(".")
        content.write_parquet(path)
        path.rename(path.with_name(f"{name}.{basis}.{xxhash.xxh3_64_hexdigest(path.read_bytes())}.parquet"))
    assert said(folder) == first


def test_verdicts_that_are_judged_anew_are_others(folder: Path) -> None:
    """By another option the judging has a folder of its own; its results are not those of the default."""
    run = Run(Store(folder))
    default = run.rates()
    other = run.judge(normaliser="pixels")
    assert not run.rates(judging=other)["median"].equals(default["median"])
    assert Run(Store(folder)).rates(judging=other).equals(run.rates(judging=other))


def test_nothing_is_kept_of_a_small_run(tmp_path: Path) -> None:
    folder = run_of_poses(tmp_path / "run", 3, 1).folder
    said(folder)
    assert files(folder) == []


def test_a_folder_that_cannot_be_written_is_read_all_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    Run(Store(folder)).judge()
    monkeypatch.setattr(import_module("instar.store.kept"), "place_file", full)
    assert said(folder)
    assert files(folder) == []
