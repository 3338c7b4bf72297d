"""Every word that a page uses as a term is explained at its end, and no other word is."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

import instar
from instar.report.glossary import glossary
from instar.report.page import make_report, page
from tests.browser.conftest import RULES, wobbly
from tests.engine.test_scenes import RULES as SCENE_RULES
from tests.engine.test_scenes import on_files, walks
from tests.missing import module
from tests.toys import rectangles, scene

ORDINARY = {
    "reason", "for example", "status", "share", "pairs", "cases", "rules", "tests", "what differs", "strays",
    "new cases", "found so far", "ms per case", "landmark", "class", "from", "to", "input", "change", "measured",
    "first class differs", "first instead", "changed beyond the margin", "follow-ups",
    "images", "objects", "numbers", "either", "not judged", "difference",
    "outcome", "found", "all", "object", "label", "first", "first five", "changed at all", "pairs violated",
    "under identity", "cells that agree", "wrong way",
    "change, effect", "pairs ×", "paths ×", "measure", "pixels", "n/a", "number",
    "violated rules", "in words", "rejected",
}  # fmt: skip
"""Heads that say in ordinary words what is below them."""


def bright(pixels: np.ndarray) -> instar.Labels:
    share = float(np.clip(pixels.mean() / 255, 0.05, 0.95))
    return instar.Labels.from_scores(["bright", "dark"], [share, 1 - share])


def regions(pixels: np.ndarray) -> instar.Segmentation:
    return instar.Segmentation.from_classes((pixels.mean(2) > 110).astype(np.uint8), ["ground", "figure"])


def caption(pixels: np.ndarray) -> str:
    return "a dog on a street" if pixels.mean() > 110 else "two cats"


KINDS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "poses": (wobbly, RULES),
    "detections": (rectangles, ("identity", "mirror(h)", "gamma(0.3)", "noise(40)")),
    "labels": (bright, ("identity", "gamma(0.3)", "mirror(h)")),
    "segmentation": (regions, ("identity", "gamma(0.3)", "mirror(h)")),
    "captions": (caption, ("gamma(0.3) => verbatim", "gamma(0.3) => objects", "mirror(h) => objects")),
}


def made(kind: str, folder: Path) -> instar.Run:
    if kind == "forecasts":
        suite = instar.Suite("walks", tuple(map(instar.rule, (*SCENE_RULES, "identity => wvc(sources=4, repeats=2)"))))
        return instar.run(walks, suite, on_files(folder, 3), out=folder / "run", workers=0)
    system, rules = KINDS[kind]
    pictures = folder / "pictures"
    pictures.mkdir()
    for number in range(4):
        cv2.imwrite(str(pictures / f"{number}.png"), scene(number, (120, 90)).pixels)
    suite = instar.Suite("looks", tuple(map(instar.rule, rules)))
    return instar.run(system, suite, pictures, out=folder / "run", workers=0, zones="none")


@pytest.mark.parametrize("kind", [*KINDS, "forecasts"])
def test_every_term_of_a_page_is_explained(kind: str, tmp_path: Path) -> None:
    module("vl_convert")
    run = made(kind, tmp_path)
    report = make_report([run], images=0)
    html = page(report)
    words = {unescape(word) for word in re.findall(r"<dt>(.*?)</dt>", html[html.index('class="glossary"') :])}
    heads = {unescape(re.sub("<.*?>", "", head)).strip() for head in re.findall(r"<th\b[^>]*>(.*?)</th>", html, re.S)}
    terms = {head for head in heads if not re.match(r"[\d∞.]", head)} - ORDINARY
    forms = [re.compile(rf"(?<!\w){re.escape(word.rstrip('s'))}s?(?!\w)") for word in words]
    assert {term for term in terms if not any(form.search(term) for form in forms)} == set()
    kinds = {each for part in report.runs[0].parts for each in part.section.kinds}
    relations = [one.relation.relation for one in run.bound_rules()]
    assert kinds & {name for each in relations for name in each.meanings} <= words
    assert {each.name for each in relations if each.help} <= words


def test_a_word_that_is_not_used_is_not_explained() -> None:
    words = dict(glossary("<p>2 of 3 cases</p>", {}))
    assert set(words) == {"case", "source"}, "and those that explain it"


def test_a_word_in_its_ordinary_sense_is_not_explained_as_a_term() -> None:
    """Every page of detections explained which rule covers another one, for two boxes that cover each other; the change
    that a map must have was explained as the size of a difference."""
    assert "covers" not in dict(glossary("<p>IoU; the change covers 64 % of the object</p>", {}))
    assert "covers" in dict(glossary("<h3>Which rule covers which</h3>", {}))
    assert "effect" not in dict(glossary("<th>change, effect</th>", {}))
    assert "effect" in dict(glossary("<th>effect</th>", {}))


def test_a_word_is_explained_as_its_page_means_it(tmp_path: Path) -> None:
    """`unclear` was explained as a mark in reports of forecasts whose column has that head and which nobody marked."""
    module("vl_convert")
    words = dict(
        re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page(make_report([made("forecasts", tmp_path)], images=0)))
    )
    assert words["unclear"].startswith("the answer did not change enough")
    assert "landmark" not in dict(glossary("<p>a part of the image, and the border for the other part</p>", {}))
