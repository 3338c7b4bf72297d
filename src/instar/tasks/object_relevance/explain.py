"""One image explained: which objects are found because of themselves, which are not, and why, in a sentence each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.analysis import Run
from instar.engine import SOURCE, Judging, evidence
from instar.image import Image
from instar.outputs.detections import Detections
from instar.relations import Evidence, rule
from instar.report.picture import Panel, contact_sheet, panel_picture
from instar.report.rebuild import load_pair, load_source
from instar.shapes import Shape
from instar.spelling import unknown
from instar.store import Manifest, Store
from instar.tasks.object_relevance.relations import object_in

__all__ = [
    "Explained",
    "Look",
    "Looks",
    "explain",
    "explained",
    "explanation_picture",
    "looks",
    "object_alone",
    "object_panels",
]

PICTURES = 8
"""The most follow-ups that are shown."""
WHOLE = "whole"
"""The target of what is about no object: an image without any, or a row that failed."""
GREY = (190, 190, 195)


@dataclass(frozen=True, slots=True)
class Explained:
    """What is known of one object: whether the inference about it is reliable, and why.

    `rule` is the one that the reason names, and `draw` the first follow-up of it that shows it; None where none does.
    """

    target: str
    label: str
    reliable: bool | None
    why: str
    rule: str | None = None
    draw: int | None = None


def explain(run: Run, case: str) -> list[Explained]:
    """Every object of a case under the rules about presence, the unreliable ones first.

    `reliable` is None where no rule says anything. What failed, and an image without objects, is told of the target
    `whole`.
    """
    return explained(_verdicts(run, case), run.thresholds())


def explained(verdicts: pl.DataFrame, limits: Mapping[str, float]) -> list[Explained]:
    """The same of the verdicts of one case; `limits` are the thresholds of the run's rules, in their order."""
    found = []
    parts = dict(verdicts.group_by("target", maintain_order=True))
    whole = parts.pop((WHOLE,), None)
    for (target,), rows in parts.items():
        judged = rows.filter(pl.col("severity").is_not_null())
        broken = judged.filter((pl.col("severity") > 0) & (pl.col("severity") >= pl.col("rule").replace_strict(limits)))
        reliable = None if judged.is_empty() else broken.is_empty()
        worst = _most_telling(broken, list(limits)) if reliable is False else {}
        found.append(
            Explained(
                str(target),
                str(rows["label"][0]),
                reliable,
                _why(rows, judged, broken.height, worst),
                worst.get("rule"),
                worst.get("draw"),
            )
        )
    if whole is not None and (not parts or not whole.filter(pl.col("status") != "not applicable").is_empty()):
        found.append(Explained(WHOLE, "image", None, _unsaid(whole)))
    return sorted(found, key=lambda one: (False, True, None).index(one.reliable))


def _verdicts(run: Run, case: str) -> pl.DataFrame:
    names = run.rules().filter(relation="presence")["rule"]
    if names.is_empty():
        raise ValueError(
            f"{run.folder} has no rules about the presence of objects; `instar run DETECTOR "
            "object-relevance DATASET` makes such a run"
        )
    mine = run.verdicts().filter((pl.col("case") == case) & pl.col("rule").is_in(names.implode()))
    if mine.is_empty():
        raise unknown("case", case, run.cases()["case"])
    return mine


def _most_telling(broken: pl.DataFrame, order: list[str]) -> dict[str, Any]:
    """Still found with the most of it erased; else the first rule of the run: the smallest change."""

    def rank(row: Mapping[str, Any]) -> tuple[bool, int]:
        place = order.index(row["rule"])
        return row["kind"] != "persists", -place if row["kind"] == "persists" else place

    return min(broken.iter_rows(named=True), key=rank)


def _why(rows: pl.DataFrame, judged: pl.DataFrame, broken: int, worst: Mapping[str, Any]) -> str:
    """The reason in a sentence."""
    before = bool(rows["found_source"][0])
    seen = "found in the source" if before else "not found in the source"
    if judged.is_empty():
        return f"no rule says anything about it: {rows['reason'][0]}"
    if not worst:
        return (
            f"{seen}, and stays so under {_count(judged.height, 'rule')}"
            if not before
            else (f"{seen}, for its own sake: {_count(judged.height, 'rule')} found nothing against it")
        )
    times = f"in {round(worst['severity'] * worst['tries'])} of {_count(worst['tries'], 'follow-up')}"
    left = rule(worst["rule"]).left
    says = {
        "persists": f"{seen}, and still found {times} of {left}, which leaves little or nothing of it: it is what is "
        "around it that is found",
        "missing": f"{seen}, but lost {times} of {left}, which leaves it as recognisable as it was",
        "incorrect": f"{seen}, but found {times} of {left}, which adds nothing of it: being found is an accident",
    }
    return says[worst["kind"]] + (f"; {_count(broken - 1, 'more rule')} against it" if broken > 1 else "")


def _unsaid(whole: pl.DataFrame) -> str:
    """Why rules say nothing of a whole image, most frequent reason first."""
    reasons = (
        whole.group_by("status", "reason", maintain_order=True).len().sort("len", descending=True, maintain_order=True)
    )
    said = []
    for status, reason, count in reasons.iter_rows():
        failed = f" ({status})" if status != "not applicable" else ""
        times = f", {_count(count, 'rule')}" if len(reasons) > 1 else ""
        said.append(f"{reason}{failed}{times}")
    return "; ".join(said)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


# --- looking at one object -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """An object in the source or in one follow-up (a `draw`), and what is said of it there.

    `found` is the share of the predictions in which it is found, 0 or 1 for a deterministic system; `broken` whether
    that breaks the relation; `score` the highest of the detections that match it by class and overlap, however low.
    """

    draw: int | None
    found: float
    broken: bool
    score: float | None
    box: npt.NDArray[np.float64]
    answer: Detections
    matching: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Looks:
    """An object under one rule: in the source and in the follow-ups, or `why` there are none.

    `confidence` and `iou` say from where on a detection is there, and is about the object.
    """

    source: Look
    follow_ups: tuple[Look, ...]
    why: str
    confidence: float
    iou: float


def looks(store: Store, manifest: Manifest, case: str, target: str, name: str, options: Mapping[str, Any]) -> Looks:
    """What a rule about presence sees of an object; `options` are those of the judging. Raises `LookupError`."""
    asked, (held, why) = rule(name), _held(store, manifest, case, name, options)
    assert asked.relation is not None
    found = []
    for (draw,), tried in held.follow_ups.sort("draw", "repeat").group_by("draw", maintain_order=True):
        judged = asked.relation.relation.judge(replace(held, follow_ups=tried)).filter(pl.col("target") == target)
        if judged.is_empty():
            raise LookupError(f"{asked.left} says nothing of object {target}")
        said = judged.row(0, named=True)
        found.append(_look(held, tried.row(0, named=True), target, draw, said["found"], bool(said["severity"])))
    source = _look(held, held.sources.row(0, named=True), target, None, None, False)
    return Looks(source, tuple(found), why, float(held.options["confidence"]), float(held.parameters["iou"]))


def _held(store: Store, manifest: Manifest, case: str, name: str, options: Mapping[str, Any]) -> tuple[Evidence, str]:
    """What a rule has of one case, and why it has no follow-ups where it has none."""
    asked, mine = rule(name), pl.col("case") == case
    rows = store.predictions(where=mine & pl.col("follow_up").is_in([SOURCE, asked.transformations[0].id]))
    held, failed = evidence([asked], rows, store.cases(where=mine), manifest, Judging(options, manifest.options))
    why = failed["reason"][0] if failed.height else "" if held.follow_ups.height else "it was not predicted yet"
    if held.sources.is_empty():
        raise LookupError(why)
    return held, why


def _look(held: Evidence, row: Mapping[str, Any], target: str, draw: Any, found: float | None, broken: bool) -> Look:
    box, matching = object_in(row, target, held)
    answer = Detections.from_row(row, {})
    score = float(answer.scores[matching].max()) if matching.any() else None
    if found is None:
        found = float(score is not None and score >= held.options["confidence"])
    return Look(draw, found, broken, score, box, answer, matching)


def object_panels(
    store: Store,
    manifest: Manifest,
    case: str,
    target: str,
    name: str,
    draw: int | None,
    *,
    options: Mapping[str, Any],
    dataset: str | Path | None = None,
    near: bool = False,
) -> tuple[Panel, Panel | str]:
    """Source and follow-up with an object's box hollow and the answer about it; others are grey. Raises `CannotDraw`.

    `near` shows the part around the object. A text says why there is no follow-up.
    """
    seen = looks(store, manifest, case, target, name, options)
    chosen = next((look for look in seen.follow_ups if look.draw == draw), None)
    if chosen is None:
        image = load_source(store, manifest, case, dataset=dataset).image
        return _object_panel(image, seen.source, seen.confidence, near), seen.why or f"there is no follow-up {draw}"
    pair = load_pair(
        store, manifest, {"case": case, "rule": name, "target": target, "severity": None, "draw": draw}, dataset=dataset
    )
    return (
        _object_panel(pair.source.image, seen.source, seen.confidence, near),
        _object_panel(pair.follow_up.image, chosen, seen.confidence, near),
    )


def object_alone(
    store: Store,
    manifest: Manifest,
    case: str,
    target: str,
    name: str,
    *,
    options: Mapping[str, Any],
    dataset: str | Path | None = None,
) -> Panel:
    """The part of the source around an object, with nothing drawn on it. Raises `CannotDraw`."""
    held, _ = _held(store, manifest, case, name, options)
    box, _ = object_in(held.sources.row(0, named=True), target, held)
    image = load_source(store, manifest, case, dataset=dataset).image
    return Panel(_part(image, _around(box, image)), (), ())


def _object_panel(image: Image, look: Look, confidence: float, near: bool) -> Panel:
    sure = np.asarray(look.answer.scores >= confidence)
    others = [Shape("boxes", look.answer.boxes[sure & ~look.matching].astype(np.float64), colour=GREY)]
    kept, answer = np.flatnonzero(sure & look.matching), look.answer
    said = Detections.from_xyxy(answer.boxes[kept], [answer.labels[n] for n in kept], answer.scores[kept]).shapes()
    box = [Shape("boxes", look.box[None])]
    if not near:
        return Panel(image, others, said, box)
    x0, y0, x1, y1 = _around(look.box, image)
    others, said, box = ([shape.moved(-x0, -y0) for shape in shapes] for shapes in (others, said, box))
    return Panel(_part(image, (x0, y0, x1, y1)), others, said, box)


def _part(image: Image, place: tuple[int, int, int, int]) -> Image:
    x0, y0, x1, y1 = place
    return Image(np.ascontiguousarray(image.pixels[y0:y1, x0:x1]))


def _around(box: npt.NDArray[np.float64], image: Image) -> tuple[int, int, int, int]:
    """A square around a box with some room, as far as the frame goes."""
    half = max(24.0, 0.75 * float((box[2:] - box[:2]).max()))
    middle = (box[:2] + box[2:]) / 2
    size = np.array(image.size)
    x0, y0 = np.clip(np.floor(middle - half), 0, size - 1).astype(int)
    x1, y1 = np.clip(np.ceil(middle + half), (x0 + 1, y0 + 1), size).astype(int)
    return int(x0), int(y0), int(x1), int(y1)


def explanation_picture(run: Run, case: str, *, dataset: str | Path | None = None) -> Image:
    """The source and the follow-ups that speak against it (others where none does), side by side with the answers.

    The source alone where no rule says anything of any object.
    """
    mine = (
        _verdicts(run, case)
        .filter(pl.col("target") != WHOLE)
        .sort("severity", descending=True, nulls_last=True, maintain_order=True)
    )
    shown = list(mine.unique("rule", keep="first", maintain_order=True).head(PICTURES).iter_rows(named=True))
    pairs = [load_pair(run.store, run.manifest, verdict, dataset=dataset) for verdict in shown]
    source = pairs[0].source if pairs else load_source(run.store, run.manifest, case, dataset=dataset)
    tiles = [(panel_picture(source, side="source"), "source")]
    for verdict, pair in zip(shown, pairs, strict=True):
        said = f": {verdict['label']} {verdict['kind']}" if verdict["kind"] else ""
        tiles.append((panel_picture(pair.follow_up, side="follow-up"), f"{rule(verdict['rule']).left}{said}"))
    return contact_sheet(tiles, columns=3, tile=420)
