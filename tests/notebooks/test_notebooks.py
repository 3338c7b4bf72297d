"""What a notebook shows, and what becomes of a run there that is interrupted, in a real kernel."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import instar
from instar import Detections, Run
from instar.engine import Outcome
from instar.image import Image
from instar.report.cell_progress import CellProgress
from instar.store import Store
from tests.missing import module
from tests.toys import rectangles, scene, write_image, write_scenes

EXAMPLE = Path(__file__).parents[2] / "examples" / "notebook" / "detector.ipynb"
RULES = "identity + mirror(h) + gamma(3)"
TAG = "<img src=x onerror=alert(1)>"
HOSTILE = f"{TAG}\u202egnp"
"""A name that would run a script, and turns the writing round."""


def blind(pixels: np.ndarray) -> Detections:
    """Right, but where the image is dark; then something with a name that is no text for a page."""
    return rectangles(pixels) if pixels[0, 0, 0] > 80 else Detections.from_xyxy([[0, 0, 9, 9]], [HOSTILE])


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("cells")
    photos = write_scenes(folder / "photos", 3, (64, 48))
    write_image(photos / f"{TAG.replace('/', '')}.png", scene(7, (64, 48)))
    return instar.run(blind, RULES, photos, out=folder / "run")


class _Elements(HTMLParser):
    """The elements of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))


def safe(page: str | None) -> str:
    """A page, once it is known that it runs nothing, asks nobody for anything and has no writing that is turned."""
    assert page is not None
    elements = _Elements(page).elements
    assert not [tag for tag, _ in elements if tag in ("script", "link", "iframe", "object")]
    assert not [name for _, attributes in elements for name in attributes if name.startswith("on")]
    sources = [attributes.get("src") or "" for tag, attributes in elements if tag == "img"]
    assert all(source.startswith("data:image/") for source in sources)
    assert "http" not in page and "url(" not in page and "\u202e" not in page
    return page


def pictures(page: str) -> int:
    """How many pictures it shows that are no part of a legend."""
    return sum(tag == "img" and bool(attributes.get("alt")) for tag, attributes in _Elements(page).elements)


def test_a_run_says_what_was_found_and_shows_its_worst_pairs(finished: Run) -> None:
    page = safe(finished._repr_html_())
    assert "4 of 4 cases violate gamma(3)" in page
    assert "<td>gamma(3)</td>" in page
    assert f"instar report {finished.folder}" in page
    assert pictures(page) == 2 * finished.worst(6).height
    assert "&lt;img src=x onerror" in page


def test_a_run_that_cannot_be_read_is_a_sentence(finished: Run, tmp_path: Path) -> None:
    assert Run(Store(tmp_path / "nowhere"))._repr_html_() is None
    assert "cannot be read" in repr(Run(Store(tmp_path / "nowhere")))
    copy = shutil.copytree(finished.folder, tmp_path / "<damaged>")
    for part in copy.glob("predictions/*.parquet"):
        part.write_bytes(part.read_bytes()[:-100])
    assert "&lt;damaged&gt; cannot be shown: " in safe(Run(Store(copy))._repr_html_())


def test_pairs_are_a_sequence_and_show_themselves(finished: Run) -> None:
    drawn = finished.pairs(3)
    assert len(drawn) == 3 and [one.verdict["case"] for one in drawn] == finished.worst(3)["case"].to_list()
    assert pictures(safe(drawn._repr_html_())) == 6
    page = safe(drawn[0]._repr_html_())
    assert pictures(page) == 2
    assert "expected of the follow-up" in page and "answer to the source" in page
    assert drawn[0].picture().size[0] > 100
    assert len(drawn[1:]) == 2
    chosen = finished.pairs(finished.verdicts().filter(pl.col("case") == "000.png", pl.col("severity") > 0).head(1))
    assert chosen[0].verdict["case"] == "000.png"
    assert "no pair" in safe(finished.pairs(0)._repr_html_())


def test_pairs_that_violate_no_rule_are_under_a_heading_of_their_own(finished: Run) -> None:
    rows = finished.worst(3).with_columns(violated=pl.Series([True, True, False]))
    worst, heading, rest = safe(finished.pairs(rows)._repr_html_()).partition(
        "<p><b>Pairs that stray most, and violate no rule</b></p>"
    )
    assert heading and "<p><b>Worst pairs</b></p>" in worst
    assert (worst.count("<figure>"), rest.count("<figure>")) == (2, 1)
    assert finished.worst(3)["violated"].all()
    assert "violate no rule" not in safe(finished._repr_html_())


def test_pairs_say_why_they_cannot_be_drawn(finished: Run) -> None:
    gone = finished.verdicts().head(1).with_columns(case=pl.lit("gone.png"))
    (pair,) = finished.pairs(gone)
    assert "case gone.png" in pair.why and pair.why in safe(pair._repr_html_())
    with pytest.raises(LookupError, match=r"cannot be drawn; gone\.png"):
        pair.picture()
    with pytest.raises(ValueError, match="lack target, severity"):
        finished.pairs(pl.DataFrame({"case": ["a"], "rule": ["b"]}))
    with pytest.raises(ValueError, match="101 verdicts are too many"):
        finished.pairs(pl.concat([gone] * 101))


def test_a_preview_has_a_picture_for_every_rule_and_says_what_does_not_apply() -> None:
    made = instar.preview("mirror(h) + gamma(0.5) + erase(1)", scene())
    page = safe(made._repr_html_())
    assert pictures(page) == 3
    assert "erase(1) is not applicable:" in page


def test_a_comparison_shows_its_sentences_and_rules(finished: Run, tmp_path: Path) -> None:
    right = instar.run(rectangles, RULES, Path(finished.manifest.datasets[0].folder), out=tmp_path / "run", workers=0)
    page = safe(instar.compare(finished, right)._repr_html_())
    assert "violate at least one rule" in page and "<td>gamma(3)</td>" in page


def test_a_comparison_and_what_a_search_found_are_a_line_of_words_in_python(finished: Run, tmp_path: Path) -> None:
    photos = Path(finished.manifest.datasets[0].folder)
    right = instar.run(rectangles, RULES, photos, out=tmp_path / "run", workers=0)
    line = repr(instar.compare(finished.folder, right))
    names = "tests.toys:rectangles compared with tests.notebooks.test_notebooks:blind"
    assert line.startswith(f"<{names} on {finished.cases().height} cases: No rule shows a sure difference")
    boundary = instar.boundary(
        rectangles, "gamma", photos, out=tmp_path / "limits", steps=4, probes=0, workers=0, visual=False
    )
    limits = repr(boundary)
    assert limits.startswith(f"<limits in {tmp_path / 'limits'}: gamma below 1: ")
    assert " gamma above 1: half of 4 cases have broken at " in limits
    for words in (line, limits):
        assert words.endswith(".>") and len(words) < 800
        assert not {"\n", "\xa0", "\\", "shape: "}.intersection(words) and "polars" not in words


def test_an_image_is_shown_and_a_large_one_smaller() -> None:
    import cv2

    png = Image(np.full((30, 3000, 3), (250, 0, 0), np.uint8))._repr_png_()
    shown = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)
    assert shown is not None and shown.shape == (10, 1024, 3) and tuple(shown[0, 0]) == (0, 0, 250)


def test_the_last_words_of_a_cell_say_what_became_of_the_predictions() -> None:
    nothing = Outcome(0, 2.0, {}, cases=3, unreadable=3, interrupted=False, notes=())

    def words(fresh: int, **statuses: int) -> str:
        cell = CellProgress("runs/first")
        cell.predicted(replace(nothing, fresh=fresh, statuses=statuses))
        return cell.words

    assert words(0) == "Nothing was predicted: no case of this dataset can be read."
    assert words(0, ok=9).startswith("Nothing is left to do")
    assert words(10, ok=9, error=1) == "10 new predictions in 2.0 s (5.0 a second). 1 of 10 predictions failed."


def test_outside_of_a_notebook_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with CellProgress("runs/first") as cell:
        assert not cell.shows
    assert capsys.readouterr() == ("", "")


# --- in a kernel -----------------------------------------------------------------------------------


def test_the_example_runs(tmp_path: Path) -> None:
    client, nbformat = module("nbclient"), module("nbformat")
    notebook = nbformat.read(EXAMPLE, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    client.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert not list(tmp_path.iterdir()), "it writes into a temporary folder"
    pages = [
        output.data["text/html"]
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "text/html" in output.get("data", {})
    ]
    shown = "\n".join(map(safe, pages))
    assert "brightness(0, 0.6)</small>" in shown  # the preview
    assert shown.count("60 new predictions in") == 2  # 12 images and 4 follow-ups of each
    assert "12 of 12 cases violate brightness(0, 0.6)" in shown
    assert "is surely better under 1 of 4 rules" in shown


CELL = """
import time, instar
from pathlib import Path
from tests.toys import rectangles

def slow(pixels) -> instar.Detections:
    with Path("calls").open("a") as calls:
        calls.write("x")
    time.sleep(0 if Path("go on").exists() else 0.5)
    return rectangles(pixels)

run = instar.run(slow, "mirror(h)+gamma(0.5)+shift(0.1)", "photos", out="run")
print("rows", run.predictions().height, "not reached" if run.outcome.interrupted else "whole")
"""


@contextmanager
def kernel(folder: Path) -> Iterator[tuple[Any, Any]]:
    """A kernel that works in a folder, and who speaks with it."""
    module("ipykernel")
    manager, client = module("jupyter_client.manager").start_new_kernel(startup_timeout=600, cwd=str(folder))
    try:
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def executed(client: Any, code: str, on_progress: Callable[[str], None] = lambda words: None) -> list[str]:
    """What a cell shows, prints or raises, as texts."""
    number, texts = client.execute(code), []
    while True:
        message = client.get_iopub_msg(timeout=600)
        content = message["content"]
        if message["parent_header"].get("msg_id") != number:
            continue
        if message["msg_type"] in ("display_data", "update_display_data"):
            texts.append(content["data"]["text/plain"])
            on_progress(texts[-1])
        elif message["msg_type"] == "stream":
            texts.append(content["text"])
        elif message["msg_type"] == "error":
            texts.append(f"{content['ename']}: {content['evalue']}")
        elif message["msg_type"] == "status" and content["execution_state"] == "idle":
            return texts


def test_interrupting_the_kernel_loses_nothing_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{Path(instar.__file__).parents[1]}:{Path(__file__).parents[2]}")
    write_scenes(tmp_path / "photos", 20, (64, 48))
    with kernel(tmp_path) as (manager, client):
        stopped: list[float] = []

        def stop(words: str) -> None:
            if re.match(r"predicting: [1-9]\d* of 80 ", words) and not stopped:
                stopped.append(time.monotonic())
                manager.interrupt_kernel()

        texts = executed(client, CELL, stop)
        assert any(re.search(r"\(\d+\.\d/s, .* left\)", text) for text in texts)  # the estimate
        assert texts[-1].startswith("KeyboardInterrupt: Stopped.") and "not reached" not in "".join(texts)
        stored = re.search(r"Stopped\. (\d+) new predictions are stored in run; the same call again", texts[-1])
        assert stored and 0 < int(stored[1]) < 80
        (tmp_path / "go on").touch()
        bytes_of_calls = (tmp_path / "calls").stat().st_size
        texts = executed(client, CELL.replace("mirror(h)+", "miror(h)+"))
        assert "did you mean 'mirror'" in texts[-1]
        texts = executed(client, CELL.replace('"photos", out="run"', '"photos", out="run", seed=5'))
        assert any("It ended with an error, which is told below" in text for text in texts), texts
        again = executed(client, CELL)
        assert "rows 80 whole" in "".join(again)
        assert (tmp_path / "calls").stat().st_size - bytes_of_calls == 80 - int(stored[1])
