"""The viewer, `show` and the report count the same pairs: those of rules that change something, never identity's."""

from __future__ import annotations

import io
import re

import numpy as np
import polars as pl
import pytest

import instar
from instar.report import show_run
from instar.report.console import PlainConsole
from instar.report.page import make_report
from instar.viewer.index import build
from instar.viewer.overview import _reasons
from instar.viewer.query import Filters, matches
from tests.toys import steady, write_scenes
from tests.viewer.conftest import opened

RULES = ("identity", "mirror(h)", "gamma(0.5)", "filtered(greyscale, skin)")


def shaky(pixels: np.ndarray, seed: int) -> instar.Poses:
    """Strays by more than the threshold from one time to the next, so that identity is violated too."""
    answer = steady(pixels)
    shift = np.random.default_rng(seed).uniform(0, 40, 2)
    return instar.Poses.from_array(answer.points + shift, skeleton=answer.skeleton)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> instar.Run:
    folder = tmp_path_factory.mktemp("counts")
    rules = instar.Suite("counts", tuple(map(instar.rule, RULES)))
    photos = write_scenes(folder / "photos", 3, (80, 60))
    made = instar.run(shaky, rules, photos, out=folder / "run", workers=0, zones="none")
    identity = made.rates().filter(pl.col("rule").str.starts_with("identity"))
    assert identity["violated"].item() > 0, "a system without noise would not tell the counts apart"
    return made


def test_the_viewer_counts_the_pairs_that_run_counts(run: instar.Run) -> None:
    states = matches(build(run.store), Filters(status="all")).states
    judged = run.judged()
    violated = run.rates().filter(pl.col("rule").is_in(run.changing_rules()))["violated"].sum()
    assert states == {
        "violated": violated,
        "kept": judged["judged"] - violated,
        "nothing found": judged["nothing_found"],
        "not applicable": judged["not_applicable"],
        "failed": judged["failed"],
    }
    assert sum(states.values()) == judged["pairs"] == 9


def test_pages_of_the_viewer_say_these_counts(run: instar.Run) -> None:
    violated = matches(build(run.store), Filters()).states["violated"]
    with opened(run.folder) as client:
        assert f"See the {violated} violated pairs" in client.get("/").text
        gallery = client.get("/gallery?run=run&status=all").text
        assert "data-total>9</strong>" in gallery
        case = client.get("/case?run=run&case=000.png").text
        assert "1 rule that counts in no rate" in case
        of_case = run.verdicts().filter(pl.col("case") == "000.png", pl.col("rule").is_in(run.changing_rules()))
        many = of_case.filter(pl.col("severity") >= 0.2).height
        assert re.search(rf"{many} rules? (is|are) violated" if many else "No rule is violated", case)
        assert "identity" not in client.get("/compare?a=run&b=run").text.partition('id="results"')[2]


def test_identity_is_there_for_who_asks_for_it(run: instar.Run) -> None:
    index = build(run.store)
    for chosen in (Filters(rule="identity => poses", status="all"), Filters(family="identity", status="all")):
        assert len(matches(index, chosen)) == 3


def test_the_report_counts_the_same_pairs(run: instar.Run) -> None:
    (part,) = make_report([run], images=0).runs[0].parts
    assert part.section.judged == run.judged()


def test_what_was_not_judged_is_said_with_the_same_counts(run: instar.Run) -> None:
    console = PlainConsole(file=io.StringIO(), width=200)
    show_run(console, run)
    assert isinstance(console.file, io.StringIO)
    (row,) = _reasons(build(run.store))
    assert (row["pairs"], row["rules"]) == (3, 1)
    assert run.unjudged().select("status", "pairs", "rules").rows() == [(row["status"], 3, 1)]
    assert "not applicable: 3 pairs of 1 rule" in console.file.getvalue()


def test_selection_and_slices_leave_identity_out(run: instar.Run) -> None:
    """As the report does: with identity among them, the noise of a system would be a rule that finds its faults."""
    chosen, _ = run.select(threshold=0.01)
    assert chosen.height and not chosen["rule"].str.starts_with("identity").any()
