"""A run that found nothing is told so first, in plain words, wherever one looks at it; never a clean bill."""

from __future__ import annotations

import io
import json
from html import unescape
from pathlib import Path

import cv2
import numpy as np
import pytest
from rich.console import Console
from starlette.testclient import TestClient
from typer.testing import CliRunner

import instar
from instar.cli import app
from instar.report import show_run, write_report
from instar.report.page import make_report, page
from instar.report.sentences import headline
from instar.viewer import application
from tests.missing import module
from tests.toys import steady, write_scenes

ALL = "The system found nothing in 6 of 6 source images, so that nothing could be judged."


def blind(pixels: np.ndarray) -> instar.Poses:
    return instar.Poses.from_array([], skeleton="coco-17")


def by_day(pixels: np.ndarray) -> instar.Poses:
    """Finds somebody wherever there is light."""
    return steady(pixels) if pixels.any() else blind(pixels)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nothing")
    images = write_scenes(folder / "images", 6)
    suite = instar.Suite("looks", tuple(map(instar.rule, ("identity", "mirror(h)", "gamma(0.5)"))))
    for image in sorted(images.iterdir())[:4]:
        cv2.imwrite(str(image), np.zeros((120, 160, 3), np.uint8))
    instar.run(blind, suite, f'folder("{images}/")', out=folder / "blind", workers=0)
    instar.run(by_day, suite, images, out=folder / "some", workers=0)
    return folder


def shown(run: instar.Run) -> str:
    printed = io.StringIO()
    show_run(Console(file=printed, width=160), run)
    return printed.getvalue().replace("\xa0", " ")


def test_show_says_first_that_nothing_was_found(base: Path) -> None:
    lines = shown(instar.open_run(base / "blind")).splitlines()
    assert lines[1].strip() == ALL, "before any table"
    assert "at least one rule" not in "".join(lines), "no sentence counts violations of nothing"
    title = next(number for number, line in enumerate(lines) if line.startswith("rules, "))
    assert "nothing found" in lines[title + 1], "the table has a column of its own for them"
    assert any(line.startswith("nothing found: 12 pairs of 2 rules") for line in lines)


def test_json_counts_them_for_themselves(base: Path) -> None:
    printed = json.loads(CliRunner().invoke(app, ["show", str(base / "blind"), "--json"]).stdout)
    states = {"judged": 0, "nothing_found": 12, "not_applicable": 0, "failed": 0}
    assert printed["judged"] == {"pairs": 12, **states, "cases": 6, "empty": 6}
    assert printed["any"]["nothing_found"] == 6 and printed["any"]["rate"] is None
    assert {(row["nothing_found"], row["not_applicable"], row["rate"]) for row in printed["rules"]} == {(6, 0, None)}
    assert {row["nothing_found"] for row in printed["families"]} == {6}


def test_a_run_of_which_little_was_judged_says_how_much(base: Path) -> None:
    run = instar.open_run(base / "some")
    text = " ".join(shown(run).split())
    assert "The system found nothing in 4 of 6 source images." in text
    assert "Only 4 of 12 pairs were judged (33 %), and rates are over these alone." in text
    assert "0 of 2 cases violate at least one rule" in text
    section = make_report([run], images=0).runs[0].parts[0].section
    words = headline(section, section.start)
    assert words[0] == "The system found nothing in 4 of 6 source images."
    assert "In 8 pairs nothing was found in either image." in words
    assert "Every pair was judged." not in words


def test_the_report_says_it_first_and_compares_it(base: Path, tmp_path: Path) -> None:
    module("vl_convert")
    blind_run, some = instar.open_run(base / "blind"), instar.open_run(base / "some")
    made = make_report([blind_run], images=0)
    section = made.runs[0].parts[0].section
    assert headline(section, section.start)[0] == ALL
    assert ' of folder("images/"), ' in made.runs[0].short, "the folder keeps its name where its path ends with a slash"
    html = unescape(page(made))
    assert ALL in html and "nothing found in either" in html
    (written,) = write_report([blind_run], tmp_path / "report.md", formats=["md"])
    assert ALL in written.read_text("utf-8").replace("\\", "")
    both = make_report([some, blind_run], images=0)
    rows = both.comparisons[0][1].differences[0].to_dicts()
    assert {(row["cases"], row["first_empty"], row["other_empty"]) for row in rows} == {(0, 4, 6)}
    assert "nothing found: second" in unescape(page(both))


def test_a_comparison_says_beside_the_rates_which_run_found_little(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rates over the two cases that one run found anything in must not make it look better than the others."""
    runs = [instar.open_run(base / name) for name in ("some", "blind")]
    made = make_report(runs, images=0)
    (_, one, drawn), names = made.comparisons[0], made.names
    little = "The system found nothing in 4 of 6 source images. Only 4 of 12 pairs were judged (33\xa0%)"
    assert " ".join(note.words for note in one.notes[names[0]]).startswith(little)
    assert one.notes[names[1]][0].words == ALL
    html = unescape(page(made))
    top = html[html.index('id="comparison"') : html.index('class="figures"')]
    assert little in top and ALL in top
    assert all(f"count: 2 cases of {names[0]} and no case of {names[1]}." in each.caption for each in drawn)
    monkeypatch.setattr("instar.report.export._write_figures", lambda *_: [])  # seconds, and nobody looks at them
    (written,) = write_report(runs, tmp_path / "report.md", formats=["md"])
    top, _, _ = written.read_text("utf-8").replace("\\", "").partition("![")
    assert little.replace("\xa0", " ") in top and ALL in top


def test_the_viewer_says_it_first_and_filters_by_it(base: Path) -> None:
    made = application([base / "blind", base / "some"], port=8000)
    for run in made.state.viewer.runs:
        run.look()
    client = TestClient(made, base_url="http://127.0.0.1:8000")
    text = unescape(client.get("/").text)
    assert ALL in text and "The system found nothing in 4 of 6 source images." in text
    assert "A severity of 0 is perfect." in text and "∞: found" not in text, "no severity here is ∞"
    assert "<strong data-total>8</strong>" in client.get("/gallery?run=some&status=nothing%20found").text
    rule = unescape(client.get("/rule?run=some&rule=mirror(h)%20%3D%3E%20poses").text)
    assert "Nothing was found in either image in 4 cases" in rule
    compared = unescape(client.get("/compare?a=blind&b=some").text)
    assert 'data-name="nothing found">A 6, B 4</td>' in compared
    assert ALL in compared[: compared.index("<table")], "beside a blind run every other one looks bad"
    assert "The system found nothing in 4 of 6 source images." in compared[: compared.index("<table")]
