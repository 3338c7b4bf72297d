"""What the viewer shows of searches: limits with their pictures, and combinations of rules; also of unfinished ones."""

from __future__ import annotations

import html
import re
import shutil
import signal
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import polars as pl
import pytest

import instar
import instar.api
from instar.analysis.boundary import Boundary, boundary_of
from instar.analysis.found import found_combinations
from instar.analysis.limits import LimitSearch
from instar.combining import search
from instar.engine import Progress
from instar.image import Pixels
from instar.report.boundary_pictures import shown_limits
from instar.store import Store
from tests.analysis.test_boundary import dim, fixed
from tests.quality.combined_faults import dark_and_soft
from tests.quality.combined_faults import photos as paint
from tests.toys import write_scenes
from tests.viewer.conftest import opened, settled, total

CASES = 5
_asked = count()


def shaky(pixels: Pixels) -> instar.Detections:
    """A box that grows with the light."""
    return instar.Detections.from_xyxy([[2, 2, 10 + float(pixels.mean()), 40]], ["thing"])


def jumpy(pixels: Pixels) -> instar.Detections:
    """Never says the same twice."""
    x = 30 * (next(_asked) % 3)
    return instar.Detections.from_xyxy([[x, 2, x + 20, 40]], ["thing"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Searches for limits of two systems, for a frontier, and for combinations."""
    made = tmp_path_factory.mktemp("searches")
    photos = write_scenes(made / "photos", CASES, (96, 72))
    instar.boundary(dim, "gamma", photos, out=made / "dim", workers=0)
    instar.boundary(shaky, "gamma", photos, out=made / "shaky", workers=0, visual=False)
    with pytest.warns(instar.api.NothingTold):
        instar.boundary(fixed, "gamma", photos, out=made / "fixed", workers=0, visual=False)
    instar.boundary(dim, "gamma | rotation", photos, out=made / "frontier", workers=0, steps=4, visual=False)
    rules = "mirror(h)+brightness(0, 0.75)+blur(1)+noise(4)"
    painted = paint(made / "painted", 8)
    search(dark_and_soft, rules, painted, out=made / "search", budget=120, visual=0.5, workers=0)
    return made


def words_of(client: Any, address: str) -> str:
    """What a page says, without its tags."""
    answer = settled(client, address)
    assert answer.status_code == 200, answer.text
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", answer.text).split()))


def links_of(client: Any, address: str, start: str) -> list[str]:
    page = settled(client, address).text
    return [html.unescape(link) for link in re.findall(f'href="({re.escape(start)}[^"]*)"', page)]


def test_the_overview_has_the_figures_and_the_medians_of_the_report(folder: Path) -> None:
    with opened(folder / "dim") as client:
        words, page = words_of(client, "/"), settled(client, "/").text
        for _ in range(40):
            if "data-later" not in page:
                break
            page = client.get("/").text
    median = instar.open_run(folder / "dim").boundary().median
    assert "How far gamma may go" in words and "At how much of a visible change it breaks" in words
    for row in median.iter_rows(named=True):
        assert f"{row['ray']} {row['broken']}/{CASES} {row['median']:g}" in words.replace("\u2212", "-")
    assert "containerSize" not in page and page.count('<div class="chart wide"') >= 2
    assert "cases that violate" not in words, "rates of a search are not those of all cases"


def test_every_case_has_its_limit_and_its_pictures(folder: Path) -> None:
    run = instar.open_run(folder / "dim")
    limits = run.boundary().limits.filter(ray="gamma above 1").sort("level", "case")
    with opened(folder / "dim") as client:
        address = "/limits?run=dim&way=2"
        cases = links_of(client, address, "/case")
        for row in limits.iter_rows(named=True):
            link = f"/case?run=dim&case={quote(row['case'])}&shown={quote(row['rule'], safe='(),/:')}"
            assert link in cases
            assert client.get(link).status_code == 200
        pictures = [html.unescape(one) for one in re.findall(r'src="(/picture[^"]*)"', client.get(address).text)]
        assert len(pictures) == 3 * CASES
        assert {client.get(one).headers["content-type"] for one in pictures[:3]} == {"image/jpeg"}
        assert f"broken {CASES}" in words_of(client, address)
        assert len(links_of(client, address + "&state=broken", "/case?")) == len(cases)


def test_a_frontier_has_its_figure_and_a_page_for_each_way(folder: Path) -> None:
    median = instar.open_run(folder / "frontier").boundary().median
    with opened(folder / "frontier") as client:
        assert "How far gamma and rotation degrees may go together" in words_of(client, "/")
        for number, ray in enumerate(median["ray"], 1):
            assert f"<h2>{ray}</h2>" in settled(client, f"/limits?way={number}").text


def test_limits_of_a_classifier_show_what_it_said(folder: Path) -> None:
    """Nothing is drawn of an answer in words: pictures of levels that hold and break look the same."""

    def bright(pixels: Pixels) -> instar.Labels:
        return instar.Labels(("day", "night") if pixels.mean() > 80 else ("night", "day"), np.array([0.9, 0.1]))

    instar.boundary(bright, "gamma", folder / "photos", out=folder / "bright", workers=0, visual=False)
    with opened(folder / "bright") as client:
        rows = settled(client, "/limits?way=2").text.split('class="limit-row"')[1:]
        assert rows
        for row in rows:
            tiles = [" ".join(re.sub(r"<[^>]*>", " ", tile).split()) for tile in row.split("<figure>")[1:]]
            assert [re.findall("day|night", tile)[0] for tile in tiles] == ["day", "day", "night"], tiles


def test_a_run_where_nothing_breaks_says_so(folder: Path) -> None:
    with opened(folder / "fixed") as client:
        words = words_of(client, "/limits")
        assert "No case breaks along this way as far as it was asked." in words
        assert f"unbroken {CASES}" in words


def test_cases_that_were_broken_before_lead_to_the_unchanged_input(folder: Path) -> None:
    instar.boundary(jumpy, "gamma", folder / "photos", out=folder / "jumpy", workers=0, visual=False)
    with opened(folder / "jumpy") as client:
        words = words_of(client, "/limits")
        assert f"{CASES} of {CASES} cases are broken before anything is changed" in words
        links = links_of(client, "/limits", "/case")
        assert len(links) == CASES and all("shown=identity" in link for link in links)


def test_an_unfinished_search_says_so_and_names_what_it_does_not_know(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, rounds = LimitSearch.__call__, count()
    monkeypatch.setattr(LimitSearch, "__call__", lambda self, cases: whole(self, cases) if next(rounds) < 3 else {})
    instar.boundary(dim, "gamma", folder / "photos", out=folder / "half", workers=0, visual=False)
    with opened(folder / "half") as client:
        for page in ("/", "/limits"):
            words = words_of(client, page)
            assert "The search is not finished; the same command again goes on with it." in words
            assert f"Some limits are not known yet: gamma below 1 ({CASES} cases)" in words
        assert f"unfinished {CASES}" in words


def test_another_threshold_says_what_the_search_did_not_ask(folder: Path) -> None:
    """Shifted boxes lose some of their overlap at every level of gamma, and all of it in the dark."""
    with opened(folder / "shaky") as client:
        assert "The search followed another threshold" not in words_of(client, "/limits")
        words = words_of(client, "/limits?threshold=0.05")
        assert "The search followed another threshold, and did not ask all that this one takes." in words
        assert "violated from 0.05 up" in words


def test_limits_are_made_once_however_often_pages_are_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[float | None] = []

    def counted(run: instar.Run, *, threshold: float | None, judging: str) -> Boundary:
        made.append(threshold)
        return boundary_of(run, threshold=threshold, judging=judging)

    monkeypatch.setattr("instar.analysis.boundary.boundary_of", counted)
    with opened(folder / "dim") as client:
        for address in ("/", "/", "/limits", "/limits?way=2", "/", "/limits?threshold=0.3"):
            words_of(client, address)
    assert made == [None, 0.3]


def test_a_run_without_limits_has_no_such_page(folder: Path) -> None:
    with opened(folder / "search") as client:
        answer = client.get("/limits?run=search")
        assert answer.status_code == 404 and "instar boundary" in answer.text


def test_combinations_lead_to_their_pairs(folder: Path) -> None:
    best = found_combinations(instar.open_run(folder / "search")).row(0, named=True)
    with opened(folder / "search") as client:
        words = words_of(client, "/")
        assert "Combinations that break answers" in words
        assert f"{best['name']} 100" in words.replace("\u00a0", " ") and best["shrunk"] in words
        rule = quote(best["rule"], safe="(),/:")
        link = next(one for one in links_of(client, "/", "/gallery") if one.endswith(f"rule={rule}"))
        assert total(client.get(link)) >= best["hits"] + best["broken"]
        chosen = f'<option value="{html.escape(best["rule"])}" selected>'
        assert chosen in client.get(link).text, "a filter that is on is seen where filters are chosen"


def test_a_search_that_was_stopped_claims_nothing(folder: Path) -> None:
    store = Store(shutil.copytree(folder / "search", folder / "stopped"))
    with store.lock():
        manifest = store.manifest()
        assert manifest.search is not None and manifest.search.ended
        store.write_manifest(replace(manifest, search=replace(manifest.search, used=0, combinations=())))
    with opened(folder / "stopped") as client:
        words = words_of(client, "/")
    assert "The search is not finished: " in words and " of 120 predictions of its budget are there" in words
    assert "No combination was found" not in words and "It found none" not in words


def test_an_interrupted_search_has_not_come_to_its_end(folder: Path) -> None:
    pressed = count()

    def stop(progress: Progress) -> None:
        if progress.done > 40 and not next(pressed):
            signal.raise_signal(signal.SIGINT)

    rules = "mirror(h)+brightness(0, 0.75)+blur(1)+noise(4)"
    call = (dark_and_soft, rules, folder / "painted")
    stopped = search(*call, out=folder / "interrupted", budget=120, visual=0.5, workers=0, on_progress=stop)
    assert stopped.outcome is not None and stopped.outcome.interrupted
    assert stopped.manifest.search is not None and not stopped.manifest.search.ended
    finished = search(*call, out=folder / "interrupted", budget=120, visual=0.5, workers=0)
    assert finished.manifest.search is not None and finished.manifest.search.ended


def test_pictures_are_spread_over_the_limits_also_where_few_break(folder: Path) -> None:
    run = instar.open_run(folder / "dim")
    boundary = run.boundary()
    few = replace(boundary, limits=boundary.limits.filter(pl.col("case").is_in(run.cases()["case"].to_list()[:2])))
    assert len(shown_limits(few, "gamma above 1", 6)) == 2


def test_a_search_is_not_offered_for_comparison_and_the_page_says_why(folder: Path) -> None:
    with opened(folder / "dim", folder / "shaky", folder / "search") as client:
        assert "Compare with" not in words_of(client, "/")
        words = words_of(client, "/compare?a=dim&b=search")
        limits, combinations = "tests.analysis.test_boundary:dim", "tests.quality.combined_faults:dark_and_soft"
        assert f"{limits} is a search for limits: its rates are not those of all cases." in words
        assert f"{combinations} is a search for combinations: its rules were tried because they break answers" in words
        assert "surest difference first" not in words
