"""One image explained: the right objects, the right reason, the right picture, in the terminal and in the viewer."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import polars as pl
import pytest
from starlette.testclient import TestClient

import instar
from instar.outputs.detections import Detections
from instar.relations.relation import NOTHING_FOUND
from instar.report.drawing import ORANGE
from instar.report.picture import contact_sheet
from instar.store import Store
from instar.tasks.object_relevance import relations
from instar.tasks.object_relevance.analysis import object_table
from instar.tasks.object_relevance.explain import (
    GREY,
    WHOLE,
    ObjectView,
    _accused_picture,
    explain,
    explanation_picture,
    object_views,
    outcome_words,
)
from instar.viewer import application
from instar.viewer.index import build
from tests.browser.test_explain import HOSTILE, RED, SCRIPT, object_run
from tests.perfect.test_object_relevance import background_only, background_shortcut, picture, ran, seen

PORT = 8000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> instar.Run:
    return instar.open_run(object_run(tmp_path_factory.mktemp("objects")))


def test_each_object_has_its_reason(tmp_path: Path) -> None:
    rules = "erase(1) => presence(gone) + background_noise(16) => presence(kept)"
    fine = explain(ran(seen, tmp_path / "a", rules), "0")
    assert [(one.label, one.reliable) for one in fine] == [("red", True), ("green", True), ("blue", True)]
    assert all("found in the source, for its own sake: 2 rules" in one.why for one in fine)
    kept = explain(ran(background_only, tmp_path / "b", rules), "0")
    assert not any(one.reliable for one in kept)
    assert all("still found in 3 of 3 follow-ups of erase(1)" in one.why for one in kept)
    lost = explain(ran(background_shortcut, tmp_path / "c", rules), "0")
    assert all(not one.reliable and "lost in 3 of 3 follow-ups of background_noise(16)" in one.why for one in lost)


def test_verdicts_go_into_frames_as_values_of_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy 1 warns of each truth value of its own that becomes a cell of a frame."""
    cells: list[object] = []
    made = relations._case_verdicts

    def noted(*values: Any) -> Iterator[Mapping[str, Any]]:
        for row in made(*values):
            cells.extend(row.values())
            yield row

    monkeypatch.setattr(relations, "_case_verdicts", noted)
    ran(seen, tmp_path / "run", "erase(1) => presence(gone)").judge()
    assert cells and not [cell for cell in cells if isinstance(cell, np.generic)]


def test_who_was_never_erased_is_not_called_reliable(tmp_path: Path) -> None:
    """The first object alone is erased: of the others it is only known that they do not depend on it."""
    rules = "erase(1, only=0) => presence(gone) + erase(1, only=0) => presence(others)"
    first, *others = explain(ran(seen, tmp_path / "a", rules), "0")
    assert first.reliable and "for its own sake: 1 rule" in first.why
    assert [one.reliable for one in others] == [None, None]
    assert {one.why for one in others} == {
        "found in the source, but never erased: 1 rule only shows that it does not depend on other objects"
    }
    noise = explain(ran(seen, tmp_path / "b", "background_noise(16) => presence(kept)"), "0")
    assert all(one.reliable and "never erased" in one.why and one.why.endswith("for its own sake") for one in noise)


def test_on_the_picture_what_is_explained_lies_over_all_else(monkeypatch: pytest.MonkeyPatch, run: instar.Run) -> None:
    """A weaker answer at the same place must not hide it, and no two tiles have one title."""
    titles: list[str] = []

    def sheet(tiles: Sequence[tuple[instar.Image, str]], **layout: Any) -> instar.Image:
        titles.extend(title for _, title in tiles)
        return contact_sheet(tiles, **layout)

    monkeypatch.setattr("instar.tasks.object_relevance.explain.contact_sheet", sheet)
    explanation_picture(run, "0.png")
    assert titles[0] == "source" and len(set(titles)) == len(titles) > 2
    assert not any("kept" in title for title in titles)
    box = np.array([[10.0, 20, 50, 50]] * 2)
    answer = Detections.from_xyxy(box, ["truck", "car"], [0.75, 0.6])
    view = ObjectView(None, 1.0, False, 0.75, box[0], answer, np.array([True, False]))
    pixels = _accused_picture(instar.Image(np.full((60, 60, 3), 120, np.uint8)), [view], 0.5, ORANGE).pixels
    assert (pixels == ORANGE).all(-1).any() and not (pixels == GREY).all(-1).any()


def test_what_is_right_says_whether_the_object_is_found(tmp_path: Path) -> None:
    """Gone after its erasure and still there in noise are right both, and are not called the same."""
    rules = "erase(1) => presence(gone) + background_noise(16) => presence(kept)"

    def words(system: Any, folder: str) -> dict[str, set[str]]:
        verdicts = ran(system, tmp_path / folder, rules).verdicts().filter(pl.col("target") != WHOLE)
        by_rule: dict[str, set[str]] = {}
        for row in verdicts.iter_rows(named=True):
            by_rule.setdefault(row["rule"].partition("(")[0], set()).add(outcome_words(row))
        return by_rule

    fine = {"erase": {"not found, as it should be"}, "background_noise": {"still found, as it should be"}}
    assert words(seen, "a") == fine
    assert words(background_only, "b")["erase"] == {"persists"}
    assert words(background_shortcut, "c")["background_noise"] == {"missing"}


def test_of_several_reasons_the_most_telling_is_named(tmp_path: Path) -> None:
    rules = " + ".join(f"background_noise({sigma}) => presence(kept)" for sigma in (16, 32, 128))
    lost = explain(ran(background_shortcut, tmp_path / "a", rules), "0")
    assert all("of background_noise(16)" in one.why and one.why.endswith("2 more rules against it") for one in lost), (
        "the least noise that does it"
    )
    kept = explain(ran(background_only, tmp_path / "b", "object-relevance/erase"), "0")
    assert all("of erase(1)" in one.why for one in kept), "with the most of it gone"
    assert {(one.rule, one.draw) for one in kept} == {("erase(1) => presence(gone)", 0)}


def test_what_no_rule_says_anything_about_is_not_judged(tmp_path: Path) -> None:
    shapes = explain(ran(seen, tmp_path, "erase(0.5) => presence(gone)"), "0")
    assert [one.reliable for one in shapes] == [None, None, None]
    assert "judged from 0.9 up" in shapes[0].why


def test_an_object_that_is_never_found_is_neither(tmp_path: Path) -> None:
    def blind_to_red(pixels: np.ndarray) -> Detections:
        shapes = seen(pixels)
        kept = [number for number, label in enumerate(shapes.labels) if label != "red"]
        return Detections.from_xyxy(shapes.boxes[kept], [shapes.labels[n] for n in kept], shapes.scores[kept])

    rules = "erase(1) => presence(gone) + background_noise(16) => presence(kept)"
    run = ran(blind_to_red, tmp_path, f"{rules} + identity => presence(kept, unfound=count)")
    by_label = {one.label: one for one in explain(run, "0")}
    assert {label: one.reliable for label, one in by_label.items()} == {"red": None, "green": True, "blue": True}
    assert by_label["red"].why == (
        "not found in the source and in no follow-up either: an object that is not found is neither reliable nor "
        "unreliable"
    )
    red = (pl.col("label") == "red") & pl.col("rule").str.starts_with("identity")
    left = run.verdicts().filter(red)
    assert left["severity"].to_list() == [None] * 4 and set(left["reason"]) == {NOTHING_FOUND}
    kept = run.verdicts(run.judge(empty="keep")).filter(red)
    assert kept["severity"].to_list() == [0.0] * 4, "as in the original"
    table = object_table(run).row(2, named=True)
    assert (table["annotated"], table["objects"], table["found"]) == (12, 8, 8)


def test_other_runs_and_cases_are_refused_in_words(tmp_path: Path) -> None:
    run = ran(seen, tmp_path / "a", "erase(1) => presence(gone)")
    with pytest.raises(KeyError, match="case"):
        explain(run, "nobody")
    other = ran(seen, tmp_path / "b", "mirror(h)")
    with pytest.raises(ValueError, match="object-relevance"):
        explain(other, "0")


def test_the_picture_needs_the_pictures(tmp_path: Path) -> None:
    run = ran(seen, tmp_path, "erase(1) => presence(gone)")
    with pytest.raises(Exception, match="in memory only"):
        explanation_picture(run, "0")


def test_an_image_that_nothing_is_said_of_is_shown_alone(run: instar.Run) -> None:
    whole, alone, failed = (explanation_picture(run, case) for case in ("0.png", "5.png", "4.png"))
    assert alone.size == failed.size and whole.size[1] > alone.size[1]
    assert [one.why for one in explain(run, "5.png")] == ["no objects in this image"]
    assert [(one.target, one.reliable) for one in explain(run, "4.png")] == [("whole", None)]
    assert SCRIPT in explain(run, "4.png")[0].why


# --- the viewer's page -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client(run: instar.Run) -> Iterator[Any]:
    made = application([run.folder], port=PORT)
    for each in made.state.viewer.runs:
        each.look()
    with TestClient(made, base_url=f"http://127.0.0.1:{PORT}") as opened:
        yield opened


def words(answer: Any) -> str:
    """What a page says, without its tags."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", answer.text)).split())


def test_the_page_says_what_the_terminal_says(client: Any, run: instar.Run) -> None:
    for case in run.cases()["case"]:
        answer = client.get(f"/explain?run=run&case={quote(case)}")
        assert answer.status_code == 200
        for one in explain(run, case):
            assert one.why[1:] in words(answer), (case, one)
            if one.target != "whole":
                shown = client.get(f"/explain?run=run&case={quote(case)}&object={quote(one.target)}")
                assert words(shown).count(one.why[1:]) >= 2 and f"target {one.target}" not in words(shown)
                assert "the object answer to the source answer to the follow-up" in words(shown), (
                    "the legend of all pages"
                )


def test_every_follow_up_is_told_as_it_was_judged(run: instar.Run) -> None:
    objects = run.verdicts().filter(pl.col("target") != "whole")
    assert objects["severity"].n_unique() > 2
    for row in objects.iter_rows(named=True):
        views = object_views(run, row["case"], row["target"], row["rule"])
        assert bool(views.source.found_share) == row["found_source"]
        assert sum(view.found_share for view in views.follow_ups) == pytest.approx(row["found"] * row["tries"])
        if row["severity"] is not None:
            assert sum(view.broken for view in views.follow_ups) == pytest.approx(row["severity"] * row["tries"])
        if row["draw"] is not None:
            assert next(view.draw for view in views.follow_ups if view.broken) == row["draw"]


def test_what_the_margin_forgives_says_so(tmp_path: Path) -> None:
    """Not found in any follow-up, and painted as kept: a score that wobbles about the confidence is not lost."""

    def unsure(pixels: np.ndarray) -> Detections:
        answer = seen(pixels)
        changed = not any(np.array_equal(pixels, picture(number)[0].pixels) for number in range(4))
        return Detections.from_xyxy(answer.boxes, answer.labels, np.full(len(answer), 0.42 if changed else 0.6))

    ran(unsure, tmp_path / "run", "object_noise(0.9, 16) => presence(kept) + erase(1) => presence(gone)")
    made = application([tmp_path / "run"], port=PORT)
    for each in made.state.viewer.runs:
        each.look()
    with TestClient(made, base_url=f"http://127.0.0.1:{PORT}") as opened:
        rule = quote("object_noise(0.9, 16) => presence(kept)")
        shown = words(opened.get(f"/explain?run=run&case=0&shown={rule}"))
        assert "0/3" in shown
        assert "its score 0.42 is below 0.5, but fell by no more than the margin of 0.2: that is not lost" in shown
        erased = quote("erase(1) => presence(gone)")
        assert "than the margin" not in words(opened.get(f"/explain?run=run&case=0&shown={erased}"))


def test_a_case_leads_to_its_explanation(client: Any, run: instar.Run, tmp_path: Path) -> None:
    rule = "erase(1) => presence(gone)"
    alone = client.get("/case?run=run&case=0.png").text
    assert '/explain?run=run&amp;case=0.png"' in alone
    shown = client.get(f"/case?run=run&case=0.png&shown={quote(rule)}").text
    assert "/explain?run=run&amp;case=0.png&amp;object=0-red&amp;shown=erase(1)" in shown
    other = application([ran(seen, tmp_path, "mirror(h)").folder], port=PORT)
    other.state.viewer.runs[0].look()
    with TestClient(other, base_url=f"http://127.0.0.1:{PORT}") as without:
        assert "/explain" not in without.get("/case?case=0").text
        refused = without.get("/explain?case=0")
        assert refused.status_code == 404 and "object-relevance" in refused.text


def test_a_threshold_in_the_address_counts(client: Any) -> None:
    green = "/explain?run=run&case=0.png&object=0-green"
    assert "unreliable" in client.get(green).text.partition('id="object"')[2]
    strict = client.get(f"{green}&threshold=1").text.partition('id="object"')[2]
    assert "unreliable" not in strict and "reliable" in strict


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("case=nobody", "no case 'nobody'"),
        ("case=0.png&object=nobody", "no object 'nobody'"),
        ("case=0.png&object=0-red&shown=mirror(h)", "rule 'mirror(h)' has no verdict"),
        ("case=0.png&object=0-red&draw=7", "no follow-up 7; they are numbered 0 to 2"),
    ],
)
def test_what_is_not_there_is_refused_in_words(client: Any, asked: str, said: str) -> None:
    answer = client.get(f"/explain?run=run&{asked}")
    assert answer.status_code == 404 and said in words(answer)


def test_nothing_of_a_run_becomes_markup(client: Any) -> None:
    for case in (HOSTILE, "0.png", "4.png"):
        page = client.get(f"/explain?run=run&case={quote(case)}").text
        assert SCRIPT not in page and RED not in page and HOSTILE not in page
    assert SCRIPT in words(client.get("/explain?run=run&case=4.png")), "what failed says why"
    assert "no objects in this image" in words(client.get("/explain?run=run&case=5.png"))


def test_pictures_are_drawn_or_say_why_not(client: Any, run: instar.Run, tmp_path: Path) -> None:
    page = client.get("/explain?run=run&case=0.png&object=0-green").text
    addresses = [html.unescape(shapes) for shapes in re.findall(r'src="(/explain/picture[^"]*)"', page)]
    assert len(addresses) == 3 + 2 + 4, "objects, source and follow-up, the object in each of them"
    pictures = {client.get(each).content for each in addresses}
    assert len(pictures) == len(addresses) and all(content.startswith(b"\xff\xd8") for content in pictures)
    for wrong in ("view=inside", "shown=mirror(h)", "w=7", "side=left"):
        picture = "/explain/picture?run=run&case=0.png&object=0-red&shown=erase(1)%20%3D%3E%20presence(gone)"
        assert client.get(f"{picture}&{wrong}").status_code == 404
    gone = object_run(tmp_path)
    (tmp_path / "pictures" / "0.png").unlink()
    made = application([gone], port=PORT)
    made.state.viewer.runs[0].look()
    with TestClient(made, base_url=f"http://127.0.0.1:{PORT}") as without:
        for each in addresses:
            answer = without.get(each)
            assert answer.headers["content-type"] == "image/svg+xml" and "no such file" in words(answer)


def test_the_gallery_shows_the_follow_up_that_breaks_the_relation(run: instar.Run) -> None:
    held = build(Store(run.folder))
    pairs, told = (
        held.verdicts,
        {(row["case"], row["target"], row["rule"]): row["draw"] or 0 for row in run.verdicts().iter_rows(named=True)},
    )
    for case, target, rule, draw in zip(pairs.case, pairs.target, pairs.rule, pairs.draw, strict=True):
        assert told[held.cases[int(case)], held.targets[target], held.rules[rule].id] == draw
    assert pairs.draw.max() > 0
