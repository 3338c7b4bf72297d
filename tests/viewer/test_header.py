"""What stands on every page: the threshold in force, how far the run is, and names of runs that stay the same."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest

import instar
from instar.engine.extent import Extent
from instar.report.findings import findings
from instar.store import Store
from instar.viewer.header import extent_words
from instar.viewer.watch import Watched, run_names
from tests.toys import steady, write_scenes
from tests.viewer.conftest import MIRROR, opened, suite, total


def words(answer: Any) -> str:
    text = re.sub(r'<span class="whole">([^<]*)</span>', r"\1", answer.text)  # an interval, in the middle of a sentence
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def in_force(answer: Any) -> str:
    form = re.search(r'<form id="limit".*?</form>', answer.text, re.DOTALL)
    assert form, answer.text
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", form[0])).split())


# --- the threshold ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/gallery?run=poses",
        "/gallery?run=poses&status=kept",
        "/case?run=poses&case=00.png",
        "/compare?a=poses&b=steady",
    ],
)
def test_every_page_says_the_threshold_its_unit_and_whose_it_is(client: Any, path: str) -> None:
    assert in_force(client.get(path)).startswith("threshold 0.2 body lengths , the relation's own")
    chosen = in_force(client.get(f"{path}&threshold=0.35"))
    assert chosen.startswith("threshold 0.35 body lengths , yours") and "back to each rule's own" in chosen


def test_a_threshold_of_the_suite_is_called_so(tmp_path: Path) -> None:
    rules = replace(suite("mirror(h)", "gamma(0.5)"), thresholds={"mirror(h)": 0.7})
    data = write_scenes(tmp_path / "data", 2)
    instar.run(steady, rules, data, out=tmp_path / "run", workers=0, zones="none")
    with opened(tmp_path / "run") as client:
        both = in_force(client.get("/gallery?run=run"))
        assert both.startswith("thresholds 0.2 to 0.7 , each rule's own")
        assert "0.7 body lengths , the suite's: 1 rule" in both and "0.2 body lengths , the relation's own" in both
        one = client.get(f"/rule?run=run&rule={MIRROR}")
        assert in_force(one).startswith("threshold 0.7 body lengths , the suite's")


def test_the_threshold_stays_on_the_way_to_other_pages(client: Any) -> None:
    text = client.get("/gallery?run=poses&threshold=0.5&q=0").text
    top = text[text.index("<header") : text.index("</header>")]
    ways = [html.unescape(link) for link in re.findall(r'href="(/[^"]*)"', top)]
    assert "/?threshold=0.5" in ways and any(way.startswith("/compare?a=poses&b=steady&threshold=0.5") for way in ways)
    # the form asks for the same page again, with all that was chosen besides
    assert '<input type="hidden" name="q" value="0">' in top and 'action="/gallery"' in top
    assert re.search(r'<input type="hidden" name="threshold" value="0.5">', text[text.index("</header>") :])


# --- names of runs ---------------------------------------------------------------------------------


def test_runs_are_named_by_their_folders_and_told_apart_by_what_is_around_them(tmp_path: Path) -> None:
    assert run_names([tmp_path / "a" / "first", tmp_path / "second"]) == ["first", "second"]
    assert run_names([tmp_path / "a" / "x", tmp_path / "b" / "x"]) == ["a/x", "b/x"]
    assert run_names([tmp_path / "x", tmp_path / "x"]) == ["x", "x · 2"]
    lone = run_names([tmp_path / "caf\udce9 & <b>"])[0]
    assert lone.encode("utf-8") and lone.endswith(" & <b>")


def test_a_folder_with_any_name_has_working_links(tmp_path: Path) -> None:
    data, folder = write_scenes(tmp_path / "data", 2), tmp_path / "<i>ein Lauf & mehr #1? 100%"
    instar.run(steady, suite("mirror(h)"), data, out=folder, workers=0, zones="none")
    with opened(folder) as client:
        text = client.get("/").text
        assert "<i>ein" not in text
        link = html.unescape(re.search(r'class="button" href="(/gallery[^"]*)"', text)[1])  # type: ignore[index]
        assert total(client.get(f"{link}&status=all")) == 2


def _ageless(page: str) -> str:
    """A page without how long ago its run was updated, which is another time at every look."""
    return re.sub(r'data-age="[^"]*">[^<]*<', "<", page)


def test_a_run_is_reached_by_the_name_that_pages_give_it(tmp_path: Path) -> None:
    data = write_scenes(tmp_path / "data", 2)
    for folder, name in (("first", "of today"), ("second", "of yesterday")):
        instar.run(steady, suite("mirror(h)"), data, out=tmp_path / folder, name=name, workers=0, zones="none")
    with opened(tmp_path / "first", tmp_path / "second") as client:
        by_name, by_folder = (client.get(f"/gallery?run={name}").text for name in ("of+yesterday", "second"))
        assert _ageless(by_name) == _ageless(by_folder) and "of yesterday" in by_name
        assert client.get("/gallery?run=of+tomorrow").status_code == 404


@pytest.mark.parametrize("path", ["/gallery?run=0", "/gallery?run=nonsense", "/case?run=7&case=x", "/compare?a=0&b=1"])
def test_an_old_or_unknown_name_of_a_run_gives_a_page_that_says_what_there_is(client: Any, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404 and "There is no run" in words(answer)
    for name in ("poses", "steady", "walks"):
        assert f'href="/gallery?run={name}"' in answer.text


def test_a_gallery_without_a_run_is_that_of_the_first(client: Any) -> None:
    answer = client.get("/gallery", follow_redirects=False)
    assert answer.status_code == 302 and answer.headers["location"] == "/gallery?run=poses"


# --- how far the run is ----------------------------------------------------------------------------


def test_progress_is_that_of_the_whole_run_while_the_first_case_is_predicted(tmp_path: Path) -> None:
    data, folder, seen = write_scenes(tmp_path / "data", 4), tmp_path / "run", []

    def watching(pixels: np.ndarray) -> instar.Poses:
        seen.append(Extent.of(Store(folder)))
        return steady(pixels)

    (tmp_path / "data" / "broken.png").write_bytes(b"no image")
    instar.run(watching, suite("mirror(h)", "gamma(0.5)"), data, out=folder, workers=0, zones="none")
    assert seen[0] == Extent(0, 15, True)
    assert Extent.of(Store(folder)) == Extent(15, 15, True)  # what cannot be read is done
    write_scenes(data, 6)
    seen.clear()
    instar.run(watching, suite("mirror(h)"), data, out=folder, workers=0, zones="none", limit=5)
    assert {extent.planned for extent in seen} == {18}  # what was there, and one case more of all three
    assert Extent.of(Store(folder)) == Extent(18, 18, True)


def test_pages_of_an_unfinished_run_say_so(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its gallery and its rates looked like those of a whole run, once no prediction had come for a while."""
    monkeypatch.setattr(Extent, "of", classmethod(lambda cls, store: cls(30, 120, True)))
    words = "is not finished: 30 of 120 predictions (25\u00a0%). What is shown is what was judged so far."
    rule = "rule=mirror(h)%20%3D%3E%20poses"
    client = opened(base / "poses", base / "steady")
    for page in ("gallery?run=poses", "case?run=poses&case=00.png", f"rule?run=poses&{rule}"):
        assert client.get(f"/{page}").text.count(words) == 1, page
    assert client.get("/compare?a=poses&b=steady").text.count(words) == 2
    monkeypatch.setattr(Extent, "of", classmethod(lambda cls, store: cls(120, 120, True)))
    assert "is not finished" not in opened(base / "poses").get("/gallery?run=poses").text


def test_the_time_left_is_estimated_from_the_pace_since_one_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, now = write_scenes(tmp_path / "data", 2), [1000.0]
    instar.run(steady, suite("mirror(h)"), data, out=tmp_path / "run", workers=0, zones="none")
    monkeypatch.setattr("instar.viewer.watch.time.monotonic", lambda: now[0])
    watched, done = Watched(tmp_path / "run"), [0]
    monkeypatch.setattr(Extent, "of", classmethod(lambda cls, store: cls(done[0], 1000, True)))
    for seconds, predictions in ((0, 100), (10, 200), (30, 400)):
        now[0], done[0] = 1000.0 + seconds, predictions
        watched._measured = None
        watched.measure()
    # 200 predictions in the 20 seconds from the first growth that was seen to the last
    assert watched.live and watched.left == pytest.approx(60.0)
    assert extent_words(watched).replace("\u00a0", " ") == "400 of 1,000 predictions (40 %), about 1 min left"
    now[0] += 20
    assert watched.left == pytest.approx(40.0)
    now[0] += 60
    assert not watched.live and extent_words(watched).replace("\u00a0", " ") == "400 of 1,000 predictions (40 %)"


def test_a_folder_of_an_earlier_version_says_of_what_its_progress_is(tmp_path: Path) -> None:
    data = write_scenes(tmp_path / "data", 2)
    instar.run(steady, suite("mirror(h)"), data, out=tmp_path / "run", workers=0, zones="none")
    manifest = tmp_path / "run" / "manifest.json"
    values = {**json.loads(manifest.read_text("utf-8")), "planned": 0}  # which said that it is not known
    manifest.write_text(json.dumps({name: values[name] for name in values.keys() - {"shard", "absent", "checksum"}}))
    watched = Watched(tmp_path / "run")
    watched.measure()
    assert extent_words(watched) == "4 of 4 predictions of the cases begun so far"


# --- what was found --------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [None, 0.5])
def test_the_first_page_lists_the_findings_that_show_and_the_report_have(
    client: Any, base: Path, threshold: float | None
) -> None:
    text = words(client.get("/" if threshold is None else f"/?threshold={threshold}"))
    for name in ("poses", "steady", "walks"):
        for finding in findings(instar.open_run(base / name), threshold=threshold):
            assert " ".join(finding.words.split()) in text


def test_findings_that_fail_cost_themselves_alone(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("a mistake of a task")

    monkeypatch.setattr("instar.viewer.index.findings", failing)
    with opened(base / "steady") as client:
        text = words(client.get("/"))
        assert "cannot be listed: ZeroDivisionError: a mistake of a task" in text and "9 rules, most violated" in text


# --- one case, two runs ----------------------------------------------------------------------------


def test_a_case_shows_its_violated_rules_beside_the_source_and_the_others_folded(client: Any, base: Path) -> None:
    run = instar.open_run(base / "poses")
    limits, worst = run.thresholds(), dict[str, float]()
    for row in run.verdicts().filter(pl.col("rule").is_in(run.changing_rules()), case="00.png").iter_rows(named=True):
        if row["severity"] is not None:
            worst[row["rule"]] = max(worst.get(row["rule"], 0.0), row["severity"])
    broken = sorted((rule for rule in worst if worst[rule] >= limits[rule]), key=lambda rule: -worst[rule])
    text = client.get("/case?run=poses&case=00.png").text
    beside, folded, uncounted = text.split('<details class="others"')
    shown = [html.unescape(name) for name in re.findall(r"&amp;shown=([^\"&]+)", beside.partition('class="beside"')[2])]
    assert [one.replace("%20%3D%3E%20", " => ").replace("%20", " ") for one in shown] == broken and broken
    assert " open>" not in folded.partition("<summary>")[0] and "kept" in folded.partition("</summary>")[0]
    assert beside.count('side=source"') == 1  # once, not beside each rule
    assert "4 rules that count in no rate" in uncounted  # identity, and three levels of a rule over many cases


def test_differences_have_an_interval_and_p_with_the_name_of_the_test(client: Any) -> None:
    text = client.get("/compare?a=poses&b=steady&threshold=0.1").text
    row = next(part for part in re.split("<tr[ >]", text) if ">stretch(1, 0.8)</a>" in part)
    cells = dict(re.findall(r'data-name="([^"]+)">(.*?)</td>', row, re.DOTALL))
    only_a, only_b = int(cells["only A"]), int(cells["only B"])
    exact = binomtest(only_a, only_a + only_b).pvalue if only_a + only_b else 1.0
    assert cells["p"] == ("< 0.001" if exact < 0.001 else f"{exact:.2g}")
    low, high = re.search(r"\(([−+\d]+) to ([−+\d]+)\)", cells["B − A"]).groups()  # type: ignore[union-attr]
    assert int(low.replace("−", "-")) <= 100 * (only_b - only_a) / 12 <= int(high.replace("−", "-"))
    assert "McNemar's paired test, exact and two-sided" in html.unescape(text) and "Newcombe" in text and "Holm" in text


@pytest.mark.parametrize("path", ["/?", "/gallery?run=poses&", "/compare?a=poses&b=steady&"])
def test_what_a_page_is_not_asked_by_is_said(client: Any, path: str) -> None:
    assert "This page knows no “thresold”" in words(client.get(f"{path}thresold=3"))
    assert "did you mean 'threshold'?" in words(client.get(f"{path}thresold=3"))
    assert "knows no" not in words(client.get(f"{path}judging=default&threshold=0.5"))


def test_a_rule_is_read_as_commands_read_it(client: Any) -> None:
    """The short spelling, and one with other spaces."""
    for spelled in ("mirror(h)", "mirror( axis = h )"):
        for page in ("rule", "gallery"):
            found = client.get(f"/{page}?run=poses&rule={spelled}")
            assert found.status_code == 200 and "mirror(h) => poses" in html.unescape(found.text)
    assert client.get("/rule?run=poses&rule=mirrors(h)").status_code == 404


@pytest.mark.parametrize("path", ["/?", "/gallery?run=poses&", "/compare?a=poses&b=steady&"])
def test_a_threshold_that_is_none_is_said_and_not_passed_over(client: Any, path: str) -> None:
    for given in ("abc", "-1", "nan"):
        text = words(client.get(f"{path}threshold={given}"))
        assert f"“{given}” is no threshold: give a number from 0 up, or ∞." in text
    for given in ("", "0.5", "0,5", "∞", "inf"):
        assert "is no threshold" not in words(client.get(f"{path}threshold={given}"))
