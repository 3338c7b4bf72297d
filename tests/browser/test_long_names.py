"""Pages with long names, on a screen and on a phone: what is written is read, and nothing lies over anything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

import instar
from instar.report import write_report
from instar.report.history import history
from instar.report.history_page import history_page
from tests.browser.conftest import new_page
from tests.missing import module
from tests.toys import rectangles, scene

CHAIN = "rotation(5) | stretch(1, 0.8) | noise(8) | brightness(20, 0.8) | gamma(0.5) | jpeg({})"
CUT = """() => [...document.querySelectorAll(".chart svg")].flatMap((svg) => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].filter((text) => {
    const own = text.getBoundingClientRect();
    return own.width && (own.left < box.left - 1 || own.right > box.right + 1);
  }).map((text) => text.textContent);
})"""
OVER = """() => [...document.querySelectorAll(".cards tbody tr")].flatMap((row) => [...row.cells].filter((cell) =>
  cell.scrollWidth > cell.clientWidth + 1).map((cell) => cell.textContent))"""


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    for number in range(4):
        cv2.imwrite(str(folder / f"00000000{number}-a-camera.jpg"), scene(number, (160, 120)).pixels)
    return folder


def brighter(pixels: np.ndarray) -> instar.Caption:
    return instar.Caption("a dog on a street" if pixels.mean() > 113 else "a cat on a chair")


def opened(page: Any, path: Path, width: int) -> Any:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]", state="attached")
    page.evaluate("document.querySelectorAll('main details').forEach((each) => { each.open = true; })")
    page.wait_for_timeout(300)
    return page


@pytest.mark.parametrize("width", [1400, 400])
def test_long_rules_are_told_apart_and_leave_room(browser: Any, pictures: Path, tmp_path: Path, width: int) -> None:
    """On a phone a name of a hundred letters took the whole figure; rules that differ at their end read the same."""
    module("vl_convert")
    rules = (*(CHAIN.format(quality) for quality in (40, 60)), "mirror(h)")
    suite = instar.Suite("chains", tuple(map(instar.rule, rules)))
    run = instar.run(rectangles, suite, pictures, out=tmp_path / "run", workers=0)
    (path,) = write_report([run], tmp_path / "report.html", images=0)
    with new_page(browser) as page:
        opened(page, path, width)
        assert page.evaluate(CUT) == []
        names = page.locator('[data-figure="detections-rates"] .role-axis-label text').all_text_contents()
        assert any("jpeg(40)" in name for name in names) and any("jpeg(60)" in name for name in names), names


def test_a_search_for_limits_is_read_on_a_phone(browser: Any, pictures: Path, tmp_path: Path) -> None:
    """Names of cases lay over what stands beside them; the figures warned in the console."""
    module("vl_convert")
    run = instar.boundary("tests.toys:rectangles", "gamma | rotation", pictures, out=tmp_path / "run", workers=0).run
    (path,) = write_report([run], tmp_path / "report.html", images=0)
    with new_page(browser) as page:  # which must leave nothing in its console
        opened(page, path, 400)
        assert page.locator(".cards tbody td.case").count()
        assert page.evaluate(OVER) == []


def test_marked_words_are_read_in_faint_text(browser: Any, pictures: Path, tmp_path: Path) -> None:
    """In the legend an inserted word was faint on blue: 4.1 to 1."""
    module("vl_convert")
    suite = "gamma(0.9) => objects"
    run = instar.run(brighter, suite, pictures, out=tmp_path / "run", workers=0)
    (path,) = write_report([run], tmp_path / "report.html", images=2)
    with new_page(browser) as page:
        opened(page, path, 1400)
        colours = page.evaluate(
            """() => [...document.querySelectorAll("p.faint mark")].map((each) => getComputedStyle(each).color)"""
        )
        ink = page.evaluate("getComputedStyle(document.body).color")
        assert colours and set(colours) == {ink}


def test_names_of_versions_stand_at_the_left_on_a_phone(browser: Any, pictures: Path, tmp_path: Path) -> None:
    run = instar.run(rectangles, "mirror(h)", pictures, out=tmp_path / "run", workers=0)
    path = tmp_path / "history.html"
    path.write_text(history_page(history([run.folder])), "utf-8")
    with new_page(browser) as page:
        page.set_viewport_size({"width": 400, "height": 900})
        page.goto(path.as_uri())
        lefts = {
            round(cell.bounding_box()["x"]) for cell in page.locator("#runs tbody td.name, #runs tbody td.whole").all()
        }
        padded = page.locator("#runs tbody td.name").first.evaluate("(cell) => getComputedStyle(cell).paddingLeft")
        assert len(lefts) == 1 and padded == "0px"
