"""Every benchmark runs, at its small size, and the page says what the stored results say."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import cv2
import pytest

from benchmarks import page, performance, wasserstein
from benchmarks.command import main
from benchmarks.figures import Absent, Figures, rounded, short
from benchmarks.page import BEGIN, END, NAMES, PAGE, stored_results
from tests.missing import absent

MODULES = Path(page.__file__).parent
SHARED_CODE = {"__init__", "__main__", "command", "figures", "inputs", "page", "performance", "runs"}
TOOLS = {"same_results"}


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    """Benchmarks use OpenCV as a worker does, on one thread; other tests in this process do not."""
    threads = cv2.getNumThreads()
    yield
    cv2.setNumThreads(threads)


def module(name: str) -> ModuleType:
    return import_module(f"benchmarks.{name}")


def numbers(figures: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, object]]:
    for name, value in figures.items():
        if isinstance(value, dict):
            yield from numbers(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_runs_and_its_figures_can_be_told(name: str) -> None:
    try:
        figures = rounded(module(name).measure(small=True))
    except Absent as missing:
        absent(str(missing))
    wrong = {
        path: value
        for path, value in numbers(figures)
        if not (isinstance(value, int | float) and math.isfinite(value) and value > 0)
    }
    assert not wrong
    for row in module(name).rows(figures):  # a figure that a row tells and `measure` does not make is a KeyError
        assert row.what and row.words


def test_every_module_is_a_benchmark_or_known_as_none() -> None:
    """One that `NAMES` forgets would never run again without anybody noticing."""
    assert {path.stem for path in MODULES.glob("*.py")} == {*NAMES, *SHARED_CODE, *TOOLS}


def test_the_page_is_what_the_results_say() -> None:
    text = PAGE.read_text("utf-8")
    assert text == page.page(text, stored_results()), "make it with `python -m benchmarks NAME --write`, not by hand"


def test_results_know_where_they_are_from() -> None:
    for name, result in stored_results().items():
        assert name in NAMES
        assert {"figures", "date", *page.SETTING} <= result.keys()


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page and results of one benchmark, which may be overwritten."""
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(page, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(performance, "PAGE", tmp_path / "performance.md")
    marks = [mark.format(name=name) for name in ("peers", "plan") for mark in (performance.BEGIN, performance.END)]
    (tmp_path / "performance.md").write_text("\n".join(marks), "utf-8")
    place = {"date": "2020-02-02", "machine": "1 core", "python": "3", "instar": "0"}
    (tmp_path / "page.md").write_text(f"Before.\n{BEGIN}\nold\n{END}\nAfter.\n", "utf-8")
    (tmp_path / "results.json").write_text(json.dumps({"wasserstein": {"figures": walks(7), **place}}), "utf-8")
    return tmp_path / "page.md"


def walks(microseconds: float) -> Figures:
    beside = {"times_faster_than_emd2": 2.0, "times_faster_than_solve_sample": 3.0, "difference": 1e-11}
    both = {kind: {"microseconds": microseconds, **beside} for kind in ("walks", "normal")}
    return {"runs": 25, "futures": 20, **both}


def typed(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", *words])
    main()


def test_writing_stores_the_figures_and_makes_the_table_only(
    copied: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(wasserstein, "measure", lambda small: walks(11.23456))
    typed(monkeypatch, "wasserstein", "--write")
    assert json.loads(capsys.readouterr().out)["walks"]["microseconds"] == 11.23
    text = copied.read_text("utf-8")
    assert text.startswith("Before.\n") and text.endswith("\nAfter.\n") and "old" not in text
    assert "11 and 11 µs a pair" in text and "2020-02-02" not in text


def test_what_is_absent_is_skipped_in_words_and_its_row_stays(
    copied: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def without(small: bool) -> Figures:
        raise Absent("the transport library POT (pip install POT)")

    before = page.stored_results()
    monkeypatch.setattr(wasserstein, "measure", without)
    typed(monkeypatch, "wasserstein", "--write")
    output = capsys.readouterr()
    assert not output.out
    assert "wasserstein: skipped. It needs the transport library POT (pip install POT)" in output.err
    assert page.stored_results() == before
    assert "7 and 7 µs a pair" in page.table(before) and "2020-02-02" in page.table(before)


@pytest.mark.parametrize(
    ("words", "message"),
    [(("--small", "--write"), "full size"), (("jugde",), "there is no benchmark jugde; there are judge")],
)
def test_the_command_refuses_what_makes_no_sense(
    words: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Figures of small sizes on the page would be taken for what things cost."""
    with pytest.raises(SystemExit):
        typed(monkeypatch, *words)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "text"), [(123_456, "120,000"), (12.34, "12"), (9.96, "10"), (0.0456, "0.046"), (3.0, "3"), (100, "100")]
)
def test_numbers_are_told_with_the_digits_that_count(value: float, text: str) -> None:
    assert short(value) == text
