"""The explanation of a case in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import cv2
import numpy as np
import polars as pl
import pytest

import instar
from instar.case import Case
from instar.datasets import Dataset
from instar.outputs.detections import Detections
from instar.tasks.object_relevance.explain import explain
from tests.browser.conftest import serving
from tests.perfect.test_object_relevance import TRUTHS, intact, picture

HOSTILE = "eine <b>große<b> & 'böse' 100% Datei.png"
RED = "<b>red</b> & 'rot'"
"""A class that nobody should have called so."""
SCRIPT = "<script>alert('message')</script>"
RULES = (
    "erase(0.5) => presence(gone)",
    "erase(1) => presence(gone)",
    "object_noise(0.5, 16) => presence(kept)",
    "background_noise(8) => presence(kept)",
    "background_noise(32) => presence(kept)",
)


def named(label: str) -> str:
    return RED if label == "red" else label


def shifty(pixels: np.ndarray) -> Detections:
    """Red is found whatever became of it, green by chance where there is noise around it, blue where it is seen."""
    if pixels.mean() > 250:
        raise RuntimeError(SCRIPT)
    best = max(TRUTHS, key=lambda truth: intact(pixels, truth).sum())
    whole = {label for label, share in zip(best.labels, intact(pixels, best), strict=True) if share >= 0.5}
    kept = [
        number
        for number, label in enumerate(best.labels)
        if label == "red" or (label in whole and (label == "blue" or int(pixels[0, 0, 0]) <= 128))
    ]
    sure = np.where(np.array(best.labels)[kept] == "green", 0.6, 0.9)
    return Detections.from_xyxy(best.boxes[kept], [named(best.labels[n]) for n in kept], sure)


def squares(folder: Path) -> Dataset:
    """Four pictures with three objects each, one of them with a name to be careful about; one that the system refuses,
    and one without objects."""
    folder.mkdir()
    cases = []
    for number in range(6):
        image, truth = picture(number % 4)
        pixels = np.full_like(image.pixels, 255) if number == 4 else image.pixels
        place = folder / (HOSTILE if number == 1 else f"{number}.png")
        place.write_bytes(cv2.imencode(".png", cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR))[1].tobytes())
        known = Detections.from_xyxy(truth.boxes, [named(label) for label in truth.labels], ids=truth.ids)
        nothing = Detections.from_xyxy([], [])
        cases.append(Case(place.name, path=str(place), truth=nothing if number == 5 else known))
    return Dataset("squares", "", lambda: iter(cases), truth="detections")


def object_run(folder: Path) -> Path:
    """A run whose objects are reliable and unreliable, for several reasons."""
    instar.run(shifty, " + ".join(RULES), squares(folder / "pictures"), out=folder / "run", workers=0)
    return folder / "run"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return object_run(tmp_path_factory.mktemp("objects"))


@pytest.fixture(scope="module")
def base(run: Path) -> Iterator[str]:
    with serving(run) as address:
        yield address


def loaded(page: Any) -> None:
    """All pictures that are in sight are there."""
    for image in page.locator("main img").all():
        image.scroll_into_view_if_needed()
        for _ in range(24000):
            if image.evaluate("one => one.complete && one.naturalWidth > 0"):
                break
            page.wait_for_timeout(25)
        else:
            raise AssertionError(image.get_attribute("src"))


def test_from_a_case_to_its_objects(base: str, page: Any, run: Path) -> None:
    page.goto(f"{base}/case?run=run&case=0.png")
    page.get_by_role("link", name="Why?").click()
    expected = {one.target: one for one in explain(instar.open_run(run), "0.png")}
    items = page.locator(".objects li")
    items.first.wait_for()
    assert items.count() == 3
    for item, one in zip(items.all(), expected.values(), strict=True):
        assert one.why in item.inner_text().replace("\n", " ") or one.why[1:] in item.inner_text()
        assert ("unreliable" in item.inner_text()) == (one.reliable is False)
    first = next(iter(expected.values()))
    assert page.locator("#object h2").inner_text() == first.label == RED, "the worst comes first, as text"
    loaded(page)
    assert page.locator("#object .shot img").count() == 2
    page.keyboard.press("Escape")
    page.wait_for_url("**/case?**")


def test_objects_rules_and_follow_ups_are_links(base: str, page: Any, run: Path) -> None:
    rows = instar.open_run(run).verdicts().filter((pl.col("draw") > 0) & (pl.col("severity") > 0.5))
    row = rows.row(0, named=True)  # its first follow-up is not the one that breaks the relation
    page.goto(f"{base}/explain?run=run&case={quote(row['case'])}&object={row['target']}&shown={quote(row['rule'])}")
    caption = page.locator("#object .large figcaption").nth(1)
    assert caption.inner_text().startswith(f"Follow-up {row['draw'] + 1} of 3: not found")
    assert page.locator(".view [aria-current]").get_attribute("aria-label") == f"Follow-up {row['draw'] + 1}"
    assert page.locator(".view .tag.violated").count() == round(row["severity"] * row["tries"])
    before = page.locator("#object .shot img").nth(1).get_attribute("src")
    page.get_by_label("Follow-up 1", exact=True).click()
    page.get_by_text("Follow-up 1 of 3: found").wait_for()
    assert page.locator("#object .shot img").nth(1).get_attribute("src") != before
    assert "draw=0" in page.url
    page.locator(".step", has_text="1 ").first.click()
    page.wait_for_url("**shown=erase**")
    page.locator("#object h3", has_text="erase(").wait_for()
    assert "erase(" in page.locator("#object h3").inner_text()
    page.locator(".objects a", has_text="blue").click()
    page.wait_for_url("**#object")
    page.locator("#object h2", has_text="blue").wait_for()
    assert page.locator("#object h2").inner_text() == "blue"
    assert "reliable" in page.locator("#object .tag.verdict").inner_text()
    loaded(page)


@pytest.mark.parametrize("width", [1400, 400])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_and_can_be_read(base: str, page: Any, width: int, theme: str) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=theme)
    page.goto(f"{base}/explain?run=run&case={quote(HOSTILE)}")
    page.locator("#object").wait_for()  # until then the page says that the run is being read
    assert page.locator("h1").inner_text() == HOSTILE and not page.locator("h1 b, .objects b, #object b").count()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    paper, ink = (
        page.evaluate(f"getComputedStyle(document.querySelector('#object')).{name}")
        for name in ("backgroundColor", "color")
    )
    bright = [sum(map(int, colour[4:-1].split(", "))) for colour in (paper, ink)]
    assert (bright[0] > bright[1]) == (theme == "light")
    loaded(page)


def test_it_works_without_javascript(base: str, browser: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{base}/explain?run=run&case=0.png")
    page.locator(".objects a", has_text="blue").click()
    page.wait_for_url("**object=**")
    assert page.locator("#object h2").inner_text() == "blue"
    page.locator(".step", has_text="32").click()
    page.wait_for_url("**background_noise**32**")
    assert "background_noise(32)" in page.locator("#object h3").inner_text()
    context.close()
