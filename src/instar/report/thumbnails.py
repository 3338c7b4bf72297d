"""What each rule does to an image, as small pictures that a page holds once, in its style sheet."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path

import cv2
import numpy as np

from instar.analysis import Run
from instar.engine import DEFAULT
from instar.image import Image
from instar.report.picture import Annotated, encoded, panel_picture
from instar.report.rebuild import CannotDraw, load_changes
from instar.transforms import Transformation

WIDE, HIGH = 96, 72
LARGEST = 250_000
"""Bytes that the pictures of a run take at the most; rules beyond have none."""
TRIED = 3
"""Cases that are looked at until every rule has a picture: not every rule applies to every case."""
VISIBLE = 16
"""Levels by which a pixel differs to the eye."""
_LEAST = 160


def thumbnails(run: Run, *, judging: str = DEFAULT, dataset: Path | None = None) -> dict[str, str]:
    """A picture of what each rule does, by the rule, as data addresses; a rule that cannot be shown has none."""
    wanted: dict[str, Transformation] = {
        one.id: one.transformations[0] for one in run.bound_rules() if len(one.transformations) == 1
    }
    drawn: dict[str, str] = {}
    for case in _cases(run, judging):
        missing = {one.id: one for one in wanted.values() if one.id not in drawn}
        try:
            source, changed = load_changes(run, case, list(missing.values()), dataset=dataset)
        except CannotDraw:
            continue
        for name, (follow_up, change) in changed.items():
            drawn[name] = _address(source, follow_up, whole=not change.warp.is_identity)
    worst = run.rates(judging=judging).sort("rate", "median", descending=True, nulls_last=True, maintain_order=True)
    shown = {rule: wanted[rule].id for rule in worst["rule"] if rule in wanted}
    return _within(LARGEST, {rule: drawn[name] for rule, name in shown.items() if name in drawn})


def _cases(run: Run, judging: str) -> Sequence[str]:
    """Cases on which most rules were judged; the smaller image first, since it is changed once for every rule."""
    severities = run.severities(judging)
    judged = (~np.isnan(severities.severity)).sum(0)
    known = run.described()
    pixels = dict(zip(known["case"], known["pixels"], strict=True)) if "pixels" in known.columns else {}
    order = sorted(range(len(severities.cases)), key=lambda n: (-judged[n], pixels.get(severities.cases[n]) or 0))
    return [severities.cases[n] for n in order if severities.cases[n] is not None][:TRIED]


def _address(source: Annotated, follow_up: Annotated, *, whole: bool) -> str:
    """A follow-up whose content moved is seen whole, and so is a map with what belongs to it."""
    panel = follow_up if whole or follow_up.own else Annotated(_seen(source.image, follow_up.image), (), ())
    picture = panel_picture(panel, side="follow-up", wide=WIDE, high=HIGH)
    return "data:image/webp;base64," + base64.b64encode(encoded(picture, "webp", 60)).decode("ascii")


def _seen(source: Image, follow_up: Image) -> Image:
    """The whole follow-up where its change can be seen this small; else, for grain and blur, where it differs most."""
    apart = cv2.absdiff(source.pixels, follow_up.pixels).max(2)
    small = cv2.absdiff(
        *(cv2.resize(one.pixels, (WIDE, HIGH), interpolation=cv2.INTER_AREA) for one in (source, follow_up))
    )
    if (small.max(2) > VISIBLE).mean() > 0.02 or not apart.any():
        return follow_up
    width, height = source.size
    wide = min(width, max(_LEAST, width // 3))
    high = min(height, wide * HIGH // WIDE)
    sums = cv2.boxFilter(
        apart, cv2.CV_32F, (wide, high), anchor=(0, 0), normalize=False, borderType=cv2.BORDER_CONSTANT
    )
    inside = sums[: height - high + 1, : width - wide + 1]
    y, x = np.unravel_index(int(inside.argmax()), inside.shape)
    return Image(np.ascontiguousarray(follow_up.pixels[y : y + high, x : x + wide]))


def _within(most: int, pictures: Mapping[str, str]) -> dict[str, str]:
    """As many pictures as fit; those of the same transformation are one."""
    kept: dict[str, str] = {}
    used = 0
    sizes = {address: len(address) for address in pictures.values()}
    for rule, address in pictures.items():
        used += sizes.pop(address, 0)
        if used > most:
            break
        kept[rule] = address
    return kept
