"""The report in a real browser, opened as a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import instar
from instar.report import write_report
from instar.report.tables import write_csv
from tests.browser.conftest import new_page
from tests.missing import module

HOSTILE = "eine <b>große<b> & 'böse' 100% Datei.png"


def written(folder: Path, *runs: Path, **options: Any) -> Path:
    module("vl_convert")
    (path,) = write_report([instar.open_run(run) for run in runs], folder / "the report.html", **options)
    return path


@pytest.fixture(scope="session")
def poses(pose_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("report"), pose_run)


@pytest.fixture(scope="session")
def scenes(scene_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("report"), scene_run, images=4)


@pytest.fixture(scope="session")
def several(pose_run: Path, other_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("report"), pose_run, other_run, images=4)


def opened(page: Any, path: Path) -> Any:
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]", state="attached")
    return page


def picture(page: Any, figure: str) -> str:
    """What a figure shows, once it has come to rest."""
    page.wait_for_timeout(150)
    return str(page.locator(f'[data-figure="{figure}"] svg').inner_html())


def headline(page: Any, place: str) -> str:
    """The first sentences, with plain spaces: numbers stay beside their units by others."""
    text = str(page.locator(f'[data-place="{place}"] .lead [data-t]:not([hidden])').inner_text())
    return text.replace("\xa0", " ")


def test_the_slider_moves_everything(page: Any, poses: Path) -> None:
    opened(page, poses)
    figures = ["poses-curves", "poses-rates", "poses-heat", "poses-coverage", "poses-landmarks-worst"]
    before = headline(page, "poses"), [picture(page, figure) for figure in figures]
    frame = page.locator('[data-figure="poses-heat"] path[stroke="var(--orange)"]')
    place = frame.bounding_box()["x"]
    page.locator("#poses-t").focus()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    assert headline(page, "poses") != before[0]
    assert headline(page, "poses").startswith("At a threshold of 0.7 body lengths")
    assert page.locator('[data-place="poses"] .bar output').inner_text() == "0.7 body lengths"
    assert page.locator("#poses-t").get_attribute("aria-valuetext") == "0.7 body lengths"
    for figure, was in zip(figures, before[1], strict=True):
        assert picture(page, figure) != was, figure
    assert frame.bounding_box()["x"] > place
    assert page.locator("th.current").inner_text() == "0.7"
    page.keyboard.press("End")
    assert headline(page, "poses").startswith("At a threshold of ∞")


def test_each_relation_has_its_own_slider(page: Any, scenes: Path) -> None:
    opened(page, scenes)
    places = page.locator("[data-place]").evaluate_all("all => all.map(one => one.dataset.place)")
    assert len(places) == 3
    before = {place: (headline(page, place), picture(page, f"{place}-curves")) for place in places}
    page.locator(f"#{places[1]}-t").focus()
    page.keyboard.press("Home")
    after = {place: (headline(page, place), picture(page, f"{place}-curves")) for place in places}
    assert {place for place in places if after[place] != before[place]} == {places[1]}


@pytest.fixture(scope="module")
def untouched(browser: Any, poses: Path) -> Iterator[Any]:
    """The report as it opens, for tests that only look: to draw all figures again takes a second each time."""
    with new_page(browser) as page:
        yield opened(page, poses)


def test_figures_say_what_they_are(untouched: Any) -> None:
    labels = untouched.locator(".chart").evaluate_all("all => all.map(one => one.getAttribute('aria-label'))")
    assert labels and all(label and len(label) > 20 for label in labels)
    assert not untouched.locator(".vega-actions").count()


def test_the_gallery_is_sifted(page: Any, poses: Path) -> None:
    opened(page, poses)
    shown = page.locator(".pair:visible")
    assert shown.count() == 6, "six pictures until all are asked for"
    page.locator("[data-all]").click()
    everything = shown.count()
    choice = page.locator("[data-filter]")
    choice.select_option("rotation(5)")
    assert 0 < shown.count() < everything
    assert set(shown.locator(".rule .name").all_inner_texts()) == {"rotation(5)"}
    choice.select_option("")
    assert shown.count() == everything
    page.locator("#poses-t").focus()
    page.keyboard.press("End")
    assert shown.count() < everything
    words = page.locator(".gallery .shown").inner_text()
    assert words.startswith(f"{shown.count()} of the ")
    assert " pairs shown here violate the rule at this threshold" in words
    at = page.locator("[data-filter] option:checked").get_attribute("data-violated").split(" ")[-1]
    assert words.endswith(f"; {at} of all pairs do") == (int(at) > shown.count())


def test_a_pair_opens_large(page: Any, poses: Path) -> None:
    opened(page, poses)
    pairs = page.locator(".pair:visible")
    pairs.nth(0).focus()
    page.keyboard.press("Enter")
    dialog = page.locator("dialog")
    assert dialog.is_visible()
    first = dialog.locator(".about").inner_text()
    large, small = (one.locator("img").first.bounding_box()["width"] for one in (dialog, pairs.nth(0)))
    assert large > small
    page.keyboard.press("ArrowRight")
    assert (dialog.locator(".about").inner_text(), dialog.locator(".rule").inner_text()) == (
        pairs.nth(1).locator(".about").inner_text(),
        pairs.nth(1).locator(".rule").inner_text(),
    )
    page.keyboard.press("ArrowLeft")
    assert dialog.locator(".about").inner_text() == first
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert page.evaluate("document.activeElement.classList.contains('pair')")


def test_a_hostile_name_is_text(untouched: Any) -> None:
    assert HOSTILE in untouched.locator("main").inner_text()
    assert not untouched.locator("main .about b, main .reason b").count()


def test_the_theme_is_chosen_and_remembered(page: Any, poses: Path) -> None:
    opened(page, poses)

    def ground() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    light = ground()
    page.get_by_role("button", name="dark").click()
    assert ground() != light
    ink = page.locator('[data-figure="poses-rates"] text').first.evaluate("one => getComputedStyle(one).fill")
    opened(page, poses)
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.get_by_role("button", name="light").click()
    assert ground() == light
    assert page.locator('[data-figure="poses-rates"] text').first.evaluate("one => getComputedStyle(one).fill") != ink


@pytest.mark.parametrize("which", ["poses", "scenes", "several"])
def test_it_fits_a_phone(page: Any, which: str, request: pytest.FixtureRequest) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    opened(page, request.getfixturevalue(which))
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_the_legend_of_a_figure_is_whole_when_a_phone_is_turned(page: Any, poses: Path) -> None:
    page.set_viewport_size({"width": 800, "height": 400})
    opened(page, poses)
    page.locator('[data-figure="poses-curves"] svg').first.wait_for()
    page.set_viewport_size({"width": 400, "height": 800})
    cut = """() => {
        const figure = document.querySelector('[data-figure="poses-curves"]');
        const right = figure.getBoundingClientRect().right;
        const names = [...figure.querySelectorAll(".role-legend-label text")];
        return names.filter((name) => name.getBoundingClientRect().right > right).map((name) => name.textContent);
    }"""
    page.wait_for_function(f"() => !({cut})().length")


def test_landmarks_of_one_rule(page: Any, poses: Path) -> None:
    opened(page, poses)
    before = picture(page, "poses-landmarks-worst")
    page.locator("[data-rule-choice]").select_option("mirror(h)")
    assert picture(page, "poses-landmarks-worst") != before


def test_several_runs_are_compared(page: Any, several: Path) -> None:
    opened(page, several)
    assert "on the 12 cases that all runs have" in page.locator("main").inner_text()
    assert page.locator("details.run").count() == 2
    folded = page.locator("details.run").nth(1)
    assert not folded.locator(".chart").first.is_visible()
    folded.locator("summary").first.click()
    page.wait_for_timeout(200)
    width = folded.locator(".chart svg").first.bounding_box()["width"]
    assert width > 300
    own = page.locator("details.run [data-place]").first.get_attribute("data-place")
    before = picture(page, "comparison-poses-compare-rates"), headline(page, own)
    page.locator("#comparison-poses-t").focus()
    page.keyboard.press("Home")
    assert picture(page, "comparison-poses-compare-rates") != before[0]
    assert headline(page, own) == before[1]


def test_without_javascript_it_says_something(browser: Any, poses: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(poses.as_uri())
    text = page.locator("main").inner_text()
    assert "Without JavaScript" in text and "violate at least one of" in text
    assert page.locator("table:visible td.rule", has_text="rotation(5)").count()
    context.close()


def test_it_prints_in_light_colours(page: Any, poses: Path) -> None:
    opened(page, poses)
    page.get_by_role("button", name="dark").click()
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(27, 30, 36)"
    assert page.locator(".bar").first.evaluate("one => getComputedStyle(one).position") == "static"


# --- the address, the contents and the tables


def test_a_link_shows_the_same_thing(page: Any, browser: Any, poses: Path) -> None:
    opened(page, poses)
    pages = page.evaluate("history.length")
    page.locator("#poses-t").focus()
    page.keyboard.press("End")
    page.locator("[data-rule-choice]").select_option("mirror(h)")
    page.locator("#poses-coverage > summary").click()
    page.locator("#poses-rates .table:visible th", has_text="judged").locator("button").click()
    page.wait_for_function("location.hash.includes('sort=poses-rules')")
    assert page.evaluate("history.length") == pages, "the way back leads out of the page, not through its thresholds"
    assert "poses-t=inf" in page.url and "fold=poses-coverage" in page.url
    shown = headline(page, "poses"), page.locator("#poses-rates td .name:visible").all_inner_texts()
    linked = browser.new_page(viewport={"width": 1400, "height": 900})
    linked.goto(page.url)
    linked.wait_for_selector("html[data-ready]", state="attached")
    assert (headline(linked, "poses"), linked.locator("#poses-rates td .name:visible").all_inner_texts()) == shown
    assert linked.locator("[data-rule-choice]").input_value() == "mirror(h)"
    assert linked.locator("#poses-coverage").get_attribute("open") is not None
    linked.close()


def test_a_pair_and_a_rule_are_linked_too(page: Any, poses: Path) -> None:
    page.goto(f"{poses.as_uri()}#poses-pictures&poses-rule=rotation(5)&pair=poses-pictures.0")
    page.wait_for_selector("html[data-ready]", state="attached")
    assert page.locator("dialog").is_visible()
    page.keyboard.press("Escape")
    page.wait_for_function("!location.hash.includes('pair')")
    assert set(page.locator(".pair:visible .name").all_inner_texts()) == {"rotation(5)"}


def test_an_address_of_nonsense_shows_the_start(page: Any, poses: Path) -> None:
    page.goto(f"{poses.as_uri()}#nowhere&poses-t=99&poses-rule=%ZZ&fold=x&pair=poses-pictures.999&sort=poses-rules.99-")
    page.wait_for_selector("html[data-ready]", state="attached")
    assert headline(page, "poses").startswith("At a threshold of 0.2 ")
    assert not page.locator("dialog").is_visible()


@pytest.mark.parametrize("which", ["poses", "scenes", "several"])
def test_the_contents_lead_to_every_section(page: Any, which: str, request: pytest.FixtureRequest) -> None:
    opened(page, request.getfixturevalue(which))
    links = page.locator(".contents a")
    places = links.evaluate_all("all => all.map(one => one.getAttribute('href').slice(1))")
    assert len(places) == len(set(places)) > 5
    assert page.evaluate("all => all.filter(id => !document.getElementById(id))", places) == []
    before = page.evaluate("scrollY")
    page.locator(f'.contents a[href="#{places[-1]}"]').click()
    assert page.url.endswith(f"#{places[-1]}") and page.evaluate("scrollY") > before
    page.go_back()
    page.wait_for_function("!location.hash")


def test_sections_with_nothing_to_show_are_not_shown(untouched: Any) -> None:
    entry = untouched.locator('.contents a[href="#poses-pictures"]')
    assert untouched.locator("#poses-pictures").is_visible() and entry.is_visible()
    empty = untouched.locator("section[id]:visible").evaluate_all(
        "all => all.filter(one => one.innerText.trim().split('\\n').length < 2).map(one => one.id)"
    )
    assert empty == []


def test_tables_are_sorted_by_number_with_the_keyboard(page: Any, poses: Path) -> None:
    opened(page, poses)
    table = page.locator("#poses-rates .table:visible")
    head = table.locator("th", has_text="median")
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    texts = table.locator("tbody tr td:nth-child(6)").all_inner_texts()
    known = [float(text.replace("∞", "inf")) for text in texts if text != "–"]
    assert known == sorted(known, reverse=True) and texts[len(known) :] == ["–"] * (len(texts) - len(known))
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    again = [text for text in table.locator("tbody tr td:nth-child(6)").all_inner_texts() if text != "–"]
    assert [float(text.replace("∞", "inf")) for text in again] == sorted(known)
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") is None


NASTY = ("=cmd|'/c'!A1", "+1+1", "-2", "-2+3", "@sum", 'a "word", and another', "＝1", "plain")


def test_a_table_is_saved_as_the_csv_writer_would(page: Any, poses: Path, tmp_path: Path) -> None:
    opened(page, poses)
    table = page.locator("#poses-rates .table:visible")
    for row, text in zip(table.locator("tbody tr").all(), NASTY, strict=False):
        row.locator("td").nth(1).evaluate("(cell, text) => { cell.textContent = text }", text)
    with page.expect_download() as saved:
        table.locator("button.csv").click()
    assert saved.value.suggested_filename == "poses-rules-0.2.csv"
    saved.value.save_as(tmp_path / "saved.csv")
    heads = [head.strip().replace("\xa0", " ") for head in table.locator("th").all_inner_texts()]
    heads[:1] = ["rule", "in words"]
    rows = [
        [row.locator(".name").inner_text(), row.locator("small").inner_text(), *row.locator("td").all_inner_texts()[1:]]
        for row in table.locator("tbody tr").all()
    ]
    records = [dict(zip(heads, [cell.replace("\xa0", " ") for cell in row], strict=True)) for row in rows]
    write_csv(tmp_path / "expected.csv", heads, records)
    assert (tmp_path / "saved.csv").read_bytes() == (tmp_path / "expected.csv").read_bytes()


def test_wide_tables_scroll_in_their_own_box_and_say_so(page: Any, several: Path) -> None:
    page.set_viewport_size({"width": 540, "height": 800})
    opened(page, several)
    table = page.locator("#comparison-poses-differences .table:visible").first
    assert table.locator(".hint").is_visible() and table.locator(".scroll").get_attribute("tabindex") == "0"
    page.set_viewport_size({"width": 1400, "height": 900})
    page.wait_for_function("!document.querySelector('#comparison-poses-differences .table.over')")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1400


@pytest.mark.parametrize("head", ["rate", "corrected p"])
def test_on_a_phone_no_column_of_a_table_lies_off_the_screen(page: Any, poses: Path, several: Path, head: str) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    opened(page, poses if head == "rate" else several)
    cells = page.locator(f'td[data-head="{head}"]:visible')
    assert cells.count() > 3
    for box in (cells.nth(place).bounding_box() for place in range(4)):
        assert box["x"] >= 0 and box["x"] + box["width"] <= 400
    assert page.locator(".hint:visible").count() == page.locator(".over > .scroll:has(.chart)").count()


def test_the_name_of_a_rule_is_not_cut_in_a_table(page: Any, several: Path) -> None:
    """Columns of numbers leave it the room of its longest word, beside a picture too."""
    page.set_viewport_size({"width": 500, "height": 900})
    opened(page, several)
    lines = page.evaluate(
        """() => [...document.querySelectorAll("td.rule .name")].map(name => {
            name.textContent = "finger_discs(middle)_and_more";
            return name.getClientRects().length;
        })"""
    )
    assert lines and set(lines) <= {0, 1}
