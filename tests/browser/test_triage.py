"""Marking pairs by keys, in a real browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from instar.store import Store, stored_marks
from tests.browser.test_viewer import until


def test_pairs_are_marked_by_keys_in_the_gallery_and_on_their_page(
    pose_run: Path, tmp_path: Path, served: Callable[..., str], page: Any
) -> None:
    folder = Path(shutil.copytree(pose_run, tmp_path / "poses"))
    base = served(folder)

    def stored() -> list[tuple[str, str]]:
        return [(mark.mark, mark.note) for mark in stored_marks(Store(folder)).values()]

    page.goto(f"{base}/gallery?run=poses")
    page.keyboard.press("j")
    page.keyboard.press("r")
    until(page, "document.querySelector('[data-card] [data-mark]').textContent.includes('real')")
    until(page, "document.querySelector('#by-mark').textContent.includes('real 1')")
    assert stored() == [("real", "")]
    page.keyboard.press("Enter")
    until(page, "document.querySelector('[data-set=real]')?.getAttribute('aria-pressed') === 'true'")
    page.keyboard.press("n")
    page.keyboard.type("the right one is lost; further keys: r f u")
    page.keyboard.press("Enter")
    until(page, "document.querySelector('[data-mark-status]').textContent.includes('Stored')")
    assert stored() == [("real", "the right one is lost; further keys: r f u")], "keys in a note are letters"
    page.keyboard.press("u")
    page.keyboard.press("f")  # at once: the second must know what the first stored
    until(page, "document.querySelector('[data-set=\"false alarm\"]').getAttribute('aria-pressed') === 'true'")
    first = page.url
    page.keyboard.press("ArrowRight")
    until(page, f"location.href !== {first!r} && !!document.querySelector('[data-panel-mark]')")
    assert stored() == [("false alarm", "the right one is lost; further keys: r f u")]
    page.keyboard.press("ArrowLeft")
    until(
        page,
        f"location.href === {first!r} && document.querySelector('[data-panel-mark]')?.dataset.value === 'false alarm'",
    )
    page.keyboard.press("x")
    until(page, "document.querySelector('[data-mark-status]').textContent.includes('no mark')")
    assert stored() == []


def test_a_note_is_stored_where_the_next_pair_is_clicked_at_once_and_caps_lock_is_no_other_key(
    pose_run: Path, tmp_path: Path, served: Callable[..., str], page: Any
) -> None:
    folder = Path(shutil.copytree(pose_run, tmp_path / "poses"))
    base = served(folder)
    page.goto(f"{base}/gallery?run=poses")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    until(page, "!!document.querySelector('[data-panel-mark] [name=note]')")
    press = "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'F', shiftKey: %s, bubbles: true}))"
    page.evaluate(press % "true")
    page.evaluate("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'r', ctrlKey: true, bubbles: true}))")
    assert not stored_marks(Store(folder)), "Ctrl+R loads the page again, and marks nothing"
    page.evaluate(press % "false")
    until(page, "document.querySelector('[data-mark-status]').textContent.includes('Stored: false alarm')")
    first = page.url
    page.keyboard.press("n")
    page.keyboard.type("the shadow moved")
    page.click("[data-pair=next]")
    until(page, f"location.href !== {first!r} && !!document.querySelector('[data-panel-mark]')")
    for _ in range(6000):
        if [mark.note for mark in stored_marks(Store(folder)).values()] == ["the shadow moved"]:
            return
        page.wait_for_timeout(100)
    raise AssertionError(stored_marks(Store(folder)))
