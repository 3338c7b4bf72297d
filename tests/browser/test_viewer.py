"""The viewer in a real browser, served as `instar view` serves it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

import instar
from instar.image import Image
from tests.analysis.test_boundary import dim
from tests.browser.conftest import serving
from tests.missing import module
from tests.toys import scene, steady, write_image, write_scenes

STRETCH = "stretch(1, 0.8) => poses"


@pytest.fixture(scope="module")
def base(pose_run: Path, other_run: Path, scene_run: Path) -> Iterator[str]:
    with serving(pose_run, other_run, scene_run) as address:
        yield address


def total(page: Any) -> int:
    return int(page.locator("[data-total]").inner_text().replace(",", ""))


def until(page: Any, condition: str, seconds: float = 600) -> None:
    """Playwright's own way to wait is an eval, which the viewer's pages forbid."""
    end = time.monotonic() + seconds
    while True:
        with suppress(module("playwright.sync_api").Error):  # of a page that is just being left
            if page.evaluate(condition):
                return
        assert time.monotonic() < end, condition
        page.wait_for_timeout(50)


def whole_pictures(page: Any) -> list[bool]:
    """Whether each picture that is in sight has come."""
    page.wait_for_load_state("networkidle")
    whole: list[bool] = (
        page.evaluate("""() => [...document.images].filter(i => i.getBoundingClientRect().top < innerHeight)
        .map(i => i.complete && i.naturalWidth > 0)""")
    )
    return whole


def test_filters_change_the_count_and_the_address_and_back_restores_both(base: str, page: Any) -> None:
    page.goto(f"{base}/gallery?run=poses&status=all")
    every = total(page)
    page.select_option("#filters [name=rule]", label="gamma(0.5)")
    until(page, f"document.querySelector('[data-total]').textContent != '{every}'")
    assert total(page) == 12 and "rule=gamma(0.5)" in page.url
    page.locator(".states a", has_text="violated").first.click()
    until(page, "!location.search.includes('status=')")
    violated = total(page)
    assert violated < 12 and page.locator(".chip").count() == 1
    page.go_back()
    until(page, "location.search.includes('status=all')")
    until(page, "document.querySelector('[data-total]').textContent == '12'")
    assert page.locator("#filters [name=rule]").input_value() == "gamma(0.5) => poses"
    page.go_back()
    until(page, f"document.querySelector('[data-total]').textContent == '{every}'")
    assert (
        page.url == f"{base}/gallery?run=poses&status=all" and page.locator("#filters [name=rule]").input_value() == ""
    )


def test_the_search_narrows_while_one_types_and_keeps_the_focus(base: str, page: Any) -> None:
    page.goto(f"{base}/gallery?run=poses&status=all")
    page.keyboard.press("/")
    page.keyboard.type("große", delay=30)
    until(page, "location.search.includes('q=')")
    until(page, "document.querySelectorAll('[data-card]').length == 10")
    assert page.evaluate("document.activeElement.name") == "q" and page.locator("#search").input_value() == "große"
    assert page.locator("[data-card] .of").nth(1).inner_text() == "eine <b>große<b> & 'böse' 100% Datei.png · person 1"
    page.locator(".chip").click()
    until(page, "!location.search.includes('q=')")
    assert page.locator("#search").input_value() == ""


def test_a_click_is_not_undone_by_a_search_that_was_typed_before_it(base: str, page: Any) -> None:
    page.goto(f"{base}/gallery?run=poses&q=gro")
    page.evaluate("""() => {
        const search = document.querySelector("#search");
        search.value = "große";
        search.dispatchEvent(new Event("input", { bubbles: true }));
        document.querySelector(".chip").click();
    }""")
    page.wait_for_timeout(600)  # longer than a search waits for the next letter
    assert not page.evaluate("location.search.includes('q=')")


def test_a_case_opens_by_keyboard_and_escape_leads_back(base: str, page: Any) -> None:
    page.goto(f"{base}/gallery?run=poses")
    for key in ("j", "j", "k", "ArrowRight"):
        page.keyboard.press(key)
    name = page.evaluate("document.activeElement.closest('[data-card]').querySelector('.of.small').textContent")
    page.keyboard.press("Enter")
    page.wait_for_url("**/case?**")
    assert page.locator("h1").inner_text() == name.removesuffix(" · person 1")
    assert page.locator("#shown figure").count() == 2 and all(whole_pictures(page))
    place = page.locator(".crumbs").inner_text()
    page.keyboard.press("]")
    until(page, f"![{place!r}, undefined].includes(document.querySelector('.crumbs')?.innerText)")
    page.keyboard.press("Escape")
    page.wait_for_url("**/gallery?run=poses")
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#keys").is_visible()


def test_a_hostile_case_opens(base: str, page: Any) -> None:
    page.goto(f"{base}/gallery?run=poses&status=all&q={quote('große')}")
    page.locator("[data-card] .open").first.click()
    page.wait_for_url("**/case?**")
    assert page.locator("h1").inner_text() == "eine <b>große<b> & 'böse' 100% Datei.png"
    assert all(whole_pictures(page)) and page.locator("h1 b").count() == 0


def test_thumbnails_load_without_moving_anything(base: str, page: Any) -> None:
    page.goto(f"{base}/gallery?run=poses")
    boxes = "[...document.querySelectorAll('[data-card]')].map(c => c.getBoundingClientRect().top)"
    before = page.evaluate(boxes)
    found = whole_pictures(page)
    assert len(found) >= 6 and all(found)
    assert page.evaluate(boxes) == before


def test_a_rule_shows_its_histogram_and_follows_the_threshold(base: str, page: Any) -> None:
    page.goto(f"{base}/rule?run=poses&rule={quote(STRETCH)}")
    page.wait_for_selector(".chart.wide svg")
    text = page.locator(".chart.wide").inner_text()
    assert "threshold 0.2" in text and "noise floor" in text
    assert "∞" not in text, "where no severity is infinite, it has no place on the axis"
    ink = page.evaluate("getComputedStyle(document.querySelector('.chart.wide text')).fill")
    page.locator("[data-theme-toggle]").click()
    assert page.evaluate("getComputedStyle(document.querySelector('.chart.wide text')).fill") != ink
    headline = page.locator(".headline").inner_text()
    assert "0.2\xa0body lengths, the relation's own" in page.locator("#limit").inner_text()
    page.fill("#limit [name=threshold]", "0.01")
    page.keyboard.press("Enter")
    until(page, "location.search.includes('threshold=0.01')")
    assert "0.01\xa0body lengths, yours" in page.locator("#limit").inner_text()
    assert page.locator(".headline").inner_text() != headline
    assert page.locator("[data-card]").count() == 9 and all(whole_pictures(page))
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_threshold_is_in_sight_on_a_page_that_was_scrolled_and_changes_what_is_violated(
    base: str, page: Any
) -> None:
    page.goto(f"{base}/gallery?run=poses&q=png")
    before = total(page)
    page.evaluate("window.scrollTo(0, 900)")
    assert page.evaluate("document.querySelector('[data-limit]').getBoundingClientRect().top >= 0")
    page.fill("#limit [name=threshold]", "0.01")
    page.keyboard.press("Enter")
    until(page, "location.search.includes('threshold=0.01')")
    assert total(page) > before and "q=png" in page.url
    page.locator(".states a", has_text="kept").first.click()
    until(page, "location.search.includes('status=kept')")
    assert "threshold=0.01" in page.url  # what was chosen at the top stays
    page.locator("#limit a").click()
    until(page, "!location.search.includes('threshold=')")


def test_two_runs_side_by_side(base: str, page: Any) -> None:
    page.goto(f"{base}/compare?a=poses&b=steady")
    page.locator(".versus tbody tr").first.wait_for()
    assert page.locator(".versus tbody tr").count() == 8
    assert "12 cases" in page.locator("#results").inner_text()
    page.locator(".versus a.rule").first.click()
    until(page, "location.search.includes('rule=')")
    assert page.locator(".versus tbody tr").count() == 1
    assert all(whole_pictures(page)) and page.locator("[data-card]").count() > 0


def test_a_live_run_updates_by_itself(served: Callable[..., str], page: Any, tmp_path: Path) -> None:
    data, out = write_scenes(tmp_path / "data", 3), tmp_path / "run"
    rules = instar.Suite("looks", (instar.rule("mirror(h)"),))
    instar.run(steady, rules, data, out=out, workers=0, zones="none")
    page.goto(f"{served(out)}/gallery?run=run&status=all")
    assert total(page) == 3 and not page.locator("[data-live]").is_visible()
    page.evaluate("document.querySelector('[data-card] img').kept = true")
    write_scenes(data, 6)
    instar.run(steady, rules, data, out=out, workers=0, zones="none")
    until(page, "document.querySelector('[data-total]').textContent == '6'")
    assert page.locator("[data-live]").is_visible() and "updated" in page.locator("[data-live]").inner_text()
    assert page.evaluate("document.querySelector('[data-card] img').kept")  # what stays the same does not flicker


def test_a_viewer_opened_before_the_run_shows_it_when_it_is_there(
    served: Callable[..., str], page: Any, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    page.goto(f"{served(tmp_path / 'run')}/gallery?run=run&status=all")
    assert "holds no run" in page.locator("main").inner_text()
    instar.run(
        steady,
        instar.Suite("looks", (instar.rule("mirror(h)"),)),
        write_scenes(tmp_path / "data", 2),
        out=tmp_path / "run",
        workers=0,
        zones="none",
    )
    until(page, "document.querySelector('[data-total]')?.textContent == '2'")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/gallery?run=poses",
        "/gallery?run=run",
        f"/rule?run=poses&rule={quote(STRETCH)}",
        "/compare?a=poses&b=steady",
        "/case?run=poses&case=00.png",
        f"/case?run=poses&case=00.png&shown={quote(STRETCH)}",
        "/gallery?run=poses&q=nothing-like-it",
    ],
)
def test_a_phone_does_not_scroll_sideways(base: str, page: Any, path: str) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto(base + path)
    whole_pictures(page)
    page.evaluate("document.querySelectorAll('details.each').forEach((list) => { list.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.evaluate("document.querySelectorAll('details.each').forEach((list) => { list.open = false; })")
    panel = page.locator("[data-panel]")
    if panel.count():
        assert panel.get_attribute("open") is None
        panel.locator("summary").click()
        assert page.locator("#filters [name=rule]").is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 400


def mumbling(pixels: np.ndarray) -> str:
    return ["a cup", "a cup and a person", "a dog and a cat"][int(pixels[0, 0, 0]) % 3]


@pytest.fixture(scope="module")
def captions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A run with kinds of violations that have long names, and words that are marked."""
    folder = tmp_path_factory.mktemp("captions")
    photos = write_scenes(folder / "photos", 24, (96, 72))
    for number, path in enumerate(sorted(photos.iterdir())):  # what is said of each is another
        pixels = scene(number, (96, 72)).pixels.copy()
        pixels[0, 0] = 10 * number
        write_image(path, Image(pixels))
    instar.run(
        mumbling,
        instar.Suite("looks", (instar.rule("gamma(0.5) => objects"),)),
        photos,
        out=folder / "run",
        workers=0,
        zones="none",
    )
    with serving(folder / "run") as address:
        yield address


@pytest.mark.parametrize("width", [1400, 400])
def test_a_rule_with_violations_of_many_kinds_fits(captions: str, page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(captions)
    page.locator("td.kinds").first.wait_for()
    kinds = page.locator("td.kinds").first.inner_text()
    assert all(kind in kinds for kind in ("omission", "misclassification", "misclassifications with omission"))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    aligned = page.evaluate("getComputedStyle(document.querySelector('td.kinds')).textAlign")
    assert aligned == ("right" if width > 700 else "left"), "on a phone there is no column to be flush with"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_small_words_can_be_read(captions: str, page: Any, theme: str) -> None:
    """The contrast of text with what lies behind it is at least 4.5, as WCAG asks."""
    page.emulate_media(color_scheme=theme)
    page.goto(f"{captions}/gallery")
    page.locator(".legend mark").first.wait_for()
    for place, part in (
        (".states a[aria-current] .number", ""),
        (".states a:not([aria-current]) .number", ""),
        (".legend mark.added", ""),
        ("#search", "::placeholder"),
        ("#limit [name=threshold]", "::placeholder"),
    ):
        assert page.evaluate(CONTRAST, [place, part]) >= 4.5, place


CONTRAST = """([place, part]) => {
  const draw = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const opacity = (one) => one ? Number(getComputedStyle(one).opacity) * opacity(one.parentElement) : 1;
  const over = (colour, share) => {
    draw.globalAlpha = share; draw.fillStyle = colour; draw.fillRect(0, 0, 1, 1);
    const parts = [...draw.getImageData(0, 0, 1, 1).data].slice(0, 3).map((value) => value / 255);
    const [r, g, b] = parts.map((value) => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const own = document.querySelector(place), around = [];
  for (let one = own; one; one = one.parentElement) around.unshift(one);
  let paper = 0;
  for (const one of around) paper = over(getComputedStyle(one).backgroundColor, 1);
  const text = getComputedStyle(own, part || null);
  const ink = over(text.color, opacity(own) * (part ? Number(text.opacity) : 1));
  return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
}"""


def test_the_limits_of_a_long_way_fit_on_a_phone(tmp_path: Path, page: Any) -> None:
    """A level inside a zone is one long word."""
    photos = write_scenes(tmp_path / "photos", 2, (96, 72))
    family, zones = "filtered(brightness(add=0), red)", "tests.engine.zones:painted"
    instar.boundary(dim, family, photos, out=tmp_path / "run", workers=0, zones=zones, steps=8, visual=False)
    page.set_viewport_size({"width": 400, "height": 800})
    with serving(tmp_path / "run") as address:
        page.goto(f"{address}/limits")
        until(page, "document.querySelector('.limit-row') !== null")
        assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_everything_works_without_script(browser: Any, base: str) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.goto(f"{base}/gallery?run=poses")
    violated = total(page)
    page.select_option("[name=status]", "all")
    page.locator("#filters [data-apply]").click()
    assert page.url == f"{base}/gallery?run=poses&status=all" and total(page) > violated
    page.fill("#limit [name=threshold]", "0.01")
    page.locator("#limit [data-apply]").click()
    assert page.url == f"{base}/gallery?run=poses&threshold=0.01&status=all"
    page.locator(".pages a[rel=next]").click() if page.locator(".pages a[rel=next]").count() else None
    page.locator("[data-card] .open").first.click()
    page.locator("#shown figure").nth(1).wait_for()  # the address is the new one before the page is there
    assert page.locator("#shown figure").count() == 2
    context.close()
