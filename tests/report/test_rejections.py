"""A small bias that violates no threshold is told by the tests of the whole run, in words, tables and JSON."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from starlette.testclient import TestClient
from typer.testing import CliRunner

import instar
from instar.cli import app
from instar.outputs.forecast import Forecast
from instar.report import show_run
from instar.report.page import make_report, page
from instar.report.sentences import headline, rejection_findings
from instar.report.unbroken import unbroken
from instar.scene import Scene
from instar.viewer import application
from tests.missing import module
from tests.perfect.walker import Walker, dataset, system

RULES = ("identity => wvc(sources=6, repeats=4)", "mirror(h) => wvc(sources=6, repeats=4)")


class Leaning(Walker):
    """Every future is turned a little clockwise, whichever way the scene is mirrored."""

    def __call__(self, scene: Scene, seed: int) -> Forecast:
        answer = super().__call__(scene, seed)
        turn = np.array([[np.cos(0.1), -np.sin(0.1)], [np.sin(0.1), np.cos(0.1)]])
        return Forecast.from_array((answer.futures - scene.position) @ turn.T + scene.position)


def run(walker: Walker, out: Path, *rules: str) -> instar.Run:
    suite = instar.Suite("turns", tuple(map(instar.rule, rules or RULES)))
    return instar.run(replace(system(walker), fingerprint=out.name), suite, dataset(10), out=out, workers=0)


@pytest.fixture(scope="module")
def leaning(tmp_path_factory: pytest.TempPathFactory) -> instar.Run:
    return run(Leaning(gives_map=False), tmp_path_factory.mktemp("leaning") / "run")


def shown(run: instar.Run) -> str:
    printed = io.StringIO()
    show_run(Console(file=printed, width=200), run, threshold=5.0)
    return " ".join(printed.getvalue().replace("\xa0", " ").split())


def test_show_and_json_say_how_many_tests_reject(leaning: instar.Run) -> None:
    text = shown(leaning)
    assert "0 of 10 cases violate at least one rule" in text
    assert re.search(r"Statistical tests: \d+ % of 9 tests reject; 5 % would reject by chance \(corrected p < ", text)
    printed = json.loads(CliRunner().invoke(app, ["show", str(leaning.folder), "--json"]).stdout)["tests"]
    assert printed["level"] == 0.05
    assert [(row["rule"], row["family"]) for row in printed["rows"]][2:] == [(None, "mirror"), (None, None)]
    assert printed["rows"][-1]["p_corrected"] < 1e-4


def test_report_and_viewer_say_it_too(leaning: instar.Run) -> None:
    module("vl_convert")
    made = make_report([leaning], images=0)
    section = made.runs[0].parts[0].section
    sentence = next(words for words in headline(section, section.start) if words.startswith("Statistical tests"))
    sentence = unbroken(escape(sentence))
    html = page(made)
    assert sentence in html and "How many tests reject" in html
    site = application([leaning.folder], port=8000)
    for one in site.state.viewer.runs:
        one.look()
    overview = TestClient(site, base_url="http://127.0.0.1:8000").get("/").text
    assert sentence in overview and "Tests, rule by rule" in overview


def test_a_flawless_system_is_not_accused_by_its_tests(tmp_path: Path) -> None:
    flawless = run(Walker(gives_map=False), tmp_path / "flawless")
    assert (flawless.tests().filter(family="mirror")["p_corrected"] > 0.05).all()
    assert "say little" not in " ".join(one.words for one in rejection_findings(flawless.tests()))


def test_too_few_samples_are_told_instead_of_nought_per_cent(tmp_path: Path) -> None:
    text = shown(run(Leaning(gives_map=False), tmp_path / "few", "mirror(h) => wvc(sources=3, repeats=1)"))
    assert "The tests cannot reject with so few samples: the least p that is possible is 0.25" in text
    assert "tests reject" not in text
