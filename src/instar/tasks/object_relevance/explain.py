"""One image explained: which objects are found because of themselves, which are not, and why, in a sentence each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.analysis import Run
from instar.engine import DEFAULT, SOURCE, bound_rules, evidence, refuse_unloaded, stored_judging
from instar.image import Image
from instar.outputs.detections import Detections
from instar.relations import Evidence, named_rule
from instar.relations.relation import NOTHING_FOUND
from instar.report.drawing import BLUE, ORANGE
from instar.report.lettering import WHITE, Colour
from instar.report.picture import Annotated, LegendEntry, box_entry, contact_sheet, panel_picture
from instar.report.rebuild import load_pair, load_source
from instar.report.targets import target_names
from instar.report.words import count_of
from instar.shapes import Shape
from instar.spelling import unknown
from instar.store import Row
from instar.tasks.object_relevance.analysis import presence_rules
from instar.tasks.object_relevance.relations import UNFOUND, object_in

PICTURES = 8
"""The most follow-ups that are shown."""
WHOLE = "whole"
"""The target of what is about no object: an image without any, or a row that failed."""
GREY = (190, 190, 195)
_NO_MORE = "adds nothing of it: being found is an accident"


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


def explain(run: Run, case: str, *, judging: str = DEFAULT) -> list[Explained]:
    """Every object of a case under the rules about presence, the unreliable ones first.

    `reliable` is None where no rule says anything, where nothing speaks against an object that the source does not
    show (what is never found is neither), and where the object itself was never changed: that it does not depend on
    others does not prove that it is found for its own sake. What failed, and an image without objects, is explained
    under the target `whole`.
    """
    return explained(_verdicts(run, case, judging), run.thresholds())


def explained(verdicts: pl.DataFrame, limits: Mapping[str, float]) -> list[Explained]:
    """The same of the verdicts of one case; `limits` are the thresholds of the run's rules, in their order."""
    explanations = []
    by_target = dict(verdicts.group_by("target", maintain_order=True))
    whole = by_target.pop((WHOLE,), None)
    for (target,), rows in by_target.items():
        judged = rows.filter(pl.col("severity").is_not_null())
        broken = judged.filter((pl.col("severity") > 0) & (pl.col("severity") >= pl.col("rule").replace_strict(limits)))
        never_tried = _effects(judged) <= {"others"} or not rows["found_source"].any()
        says_nothing = judged.is_empty() or (broken.is_empty() and never_tried)
        reliable = None if says_nothing else broken.is_empty()
        worst = _most_telling(broken, list(limits)) if reliable is False else {}
        why = _why(rows, judged, broken.height, worst)
        label = str(rows["label"][0])
        explanations.append(Explained(str(target), label, reliable, why, worst.get("rule"), worst.get("draw")))
    if whole is not None and (not by_target or not whole.filter(pl.col("status") != "not applicable").is_empty()):
        explanations.append(Explained(WHOLE, "image", None, _why_nothing(whole)))
    return sorted(explanations, key=lambda one: (False, True, None).index(one.reliable))


def _verdicts(run: Run, case: str, judging: str = DEFAULT) -> pl.DataFrame:
    of_case = (pl.col("case") == case) & pl.col("rule").is_in(presence_rules(run))
    verdicts = run.verdicts(judging).filter(of_case)
    if verdicts.is_empty():
        raise unknown("case", case, run.cases()["case"])
    return verdicts


def _most_telling(broken: pl.DataFrame, order: list[str]) -> Row:
    """Still found with the most of it erased; else the first rule of the run: the smallest change."""

    def rank(row: Row) -> tuple[bool, int]:
        place = order.index(row["rule"])
        return row["kind"] != "persists", -place if row["kind"] == "persists" else place

    return min(broken.iter_rows(named=True), key=rank)


def _why(rows: pl.DataFrame, judged: pl.DataFrame, broken: int, worst: Row) -> str:
    """The reason in a sentence."""
    before = bool(rows["found_source"][0])
    in_source = "found in the source" if before else "not found in the source"
    if judged.is_empty() and not rows["reason"].is_in([NOTHING_FOUND, UNFOUND]).any():
        return f"no rule says anything about it: {rows['reason'][0]}"
    if not before and not worst:
        seen = "hardly ever in a follow-up" if (rows["found"] > 0).any() else "in no follow-up either"
        return f"{in_source} and {seen}: an object that is not found is neither reliable nor unreliable"
    if not worst:
        return f"{in_source}, {_nothing_against(judged)}"
    times = f"in {round(worst['severity'] * worst['tries'])} of {count_of(worst['tries'], 'follow-up')}"
    left = named_rule(worst["rule"]).left
    kind = "others" if _effect(worst["rule"]) == "others" else worst["kind"]
    faint = "far fainter" if before else "far surer"
    lost = faint if worst["kind"] == "faint" else "lost"
    same = "leaves it as recognisable as it was"
    reasons = {
        "others": f"but {lost} {times} of {left}, which changes another object and nothing of it: it is found "
        "because of its neighbour",
        "unfound": f"and not found {times} of {left} either: as published, an answer that stays the same "
        "is a violation",
        "persists": f"and still found {times} of {left}, which leaves little or nothing of it: it is what is around it "
        "that is found",
        "faint": f"but {faint} {times} of {left}, which {same if before else _NO_MORE}",
        "missing": f"but lost {times} of {left}, which {same}",
        "incorrect": f"but found {times} of {left}, which {_NO_MORE}",
    }
    more = f"; {count_of(broken - 1, 'more rule')} against it" if broken > 1 else ""
    return f"{in_source}, {reasons[kind]}{more}"


def _nothing_against(judged: pl.DataFrame) -> str:
    """What rules prove of an object that none of them accuses: only who was erased is found for its own sake."""
    rules, effects = count_of(judged.height, "rule"), _effects(judged)
    shown = {
        "gone": f"for its own sake: {rules} found nothing against it",
        "kept": f"but never erased: {rules} found nothing against it, and none tells whether it is found for its own "
        "sake",
        "others": f"but never erased: {rules} only {'shows' if judged.height == 1 else 'show'} that it does not depend "
        "on other objects",
    }
    unsure = judged.filter((pl.col("found") < 1) & ~pl.col("rule").map_elements(_is_gone, pl.Boolean)).height
    more = f"; under {unsure} of them it is not found with confidence in every follow-up" if unsure else ""
    return next(words for effect, words in shown.items() if effect in effects) + more


def _effects(judged: pl.DataFrame) -> set[str]:
    return {_effect(rule) for rule in judged["rule"].unique()}


def _effect(spelling: str) -> str:
    """What a rule about presence expects of an object: `gone`, `kept` or `others`."""
    bound = named_rule(spelling).relation
    return str(bound.values["effect"]) if bound is not None else ""


def _is_gone(spelling: str) -> bool:
    return _effect(spelling) == "gone"


def _why_nothing(whole: pl.DataFrame) -> str:
    """Why rules say nothing of a whole image, most frequent reason first."""
    counts = (
        whole.group_by("status", "reason", maintain_order=True).len().sort("len", descending=True, maintain_order=True)
    )
    reasons = []
    for status, reason, count in counts.iter_rows():
        failed = f" ({status})" if status != "not applicable" else ""
        times = f", {count_of(count, 'rule')}" if len(counts) > 1 else ""
        reasons.append(f"{reason}{failed}{times}")
    return "; ".join(reasons)


def object_names(run: Run, case: str, explanations: Sequence[Explained], *, judging: str = DEFAULT) -> dict[str, str]:
    """What the objects of a case are called, by target: several of one class have numbers."""
    first, *_ = presence_rules(run)
    keys = pl.DataFrame(
        [(case, first, one.target) for one in explanations],
        schema=dict.fromkeys(("case", "rule", "target"), pl.String),
        orient="row",
    )
    names = zip(explanations, target_names(run, keys, judging=judging), strict=True)
    return {one.target: one.label if name == one.target or one.target == WHOLE else name for one, name in names}


def object_legend() -> list[LegendEntry]:
    """What is drawn on pictures of an object."""
    return [
        box_entry("the object", "hollow", WHITE),
        box_entry("answer to the source", "filled", BLUE),
        box_entry("answer to the follow-up", "filled", ORANGE),
        box_entry("answers about others", "filled", GREY),
    ]


# --- looking at one object -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ObjectView:
    """An object in the source or in one follow-up (a `draw`), and what the system says of it there.

    `found_share` is the share of the predictions in which it is found, 0 or 1 for a deterministic system; `broken`
    whether that breaks the relation; `score` the highest of the detections that match it by class and overlap, however
    low.
    """

    draw: int | None
    found_share: float
    broken: bool
    score: float | None
    box: npt.NDArray[np.float64]
    answer: Detections
    matching: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class ObjectViews:
    """An object under one rule: in the source and in the follow-ups, or `why` there are none.

    `confidence` and `iou` say from where on a detection is there, and is about the object; a score that fell below the
    confidence by no more than the `margin` is not found, and not lost either (0 where the object must be gone).
    """

    source: ObjectView
    follow_ups: tuple[ObjectView, ...]
    why: str
    confidence: float
    iou: float
    margin: float


def object_views(run: Run, case: str, target: str, name: str, *, judging: str = DEFAULT) -> ObjectViews:
    """What the rule `name` about presence sees of an object. Raises `LookupError`."""
    judged_by, why = _evidence(run, case, name, judging)
    bound = named_rule(name)
    assert bound.relation is not None
    views = []
    for (draw,), tries in judged_by.follow_ups.sort("draw", "repeat").group_by("draw", maintain_order=True):
        verdicts = bound.relation.relation.judge(replace(judged_by, follow_ups=tries)).filter(
            pl.col("target") == target
        )
        if verdicts.is_empty():
            raise LookupError(f"{bound.left} says nothing of object {target}")
        verdict = verdicts.row(0, named=True)
        view = _view(judged_by, tries.row(0, named=True), target)
        broken = bool(verdict["severity"])
        views.append(replace(view, draw=draw, found_share=verdict["found"], broken=broken))
    source = _view(judged_by, judged_by.sources.row(0, named=True), target)
    confidence, iou = float(judged_by.options["confidence"]), float(judged_by.parameters["iou"])
    margin = 0.0 if _is_gone(name) else float(judged_by.options["margin"])
    return ObjectViews(source, tuple(views), why, confidence, iou, margin)


def _evidence(run: Run, case: str, name: str, judging: str) -> tuple[Evidence, str]:
    """What a rule is judged by on one case, and why it has no follow-ups where it has none."""
    manifest, of_case = run.manifest, pl.col("case") == case
    rules = bound_rules([name], manifest.system.kind)
    follow_ups = [SOURCE, rules[0].transformations[0].id]
    rows = run.store.predictions(where=of_case & pl.col("follow_up").is_in(follow_ups))
    cases = run.store.cases(where=of_case)
    judged_by, failed = evidence(rules, rows, cases, manifest, stored_judging(run.store, judging))
    why = failed["reason"][0] if failed.height else "" if judged_by.follow_ups.height else "it was not predicted yet"
    if judged_by.sources.is_empty():
        raise LookupError(why)
    return judged_by, why


def _view(judged_by: Evidence, row: Row, target: str) -> ObjectView:
    box, matching = object_in(row, target, judged_by)
    answer = Detections.from_row(row, {})
    score = float(answer.scores[matching].max()) if matching.any() else None
    found_share = float(score is not None and score >= judged_by.options["confidence"])
    return ObjectView(None, found_share, False, score, box, answer, matching)


def object_panels(
    run: Run,
    case: str,
    target: str,
    name: str,
    draw: int | None,
    *,
    judging: str = DEFAULT,
    dataset: str | Path | None = None,
    near: bool = False,
) -> tuple[Annotated, Annotated | str]:
    """Source and follow-up with an object's box hollow and the answer about it; others are grey. Raises `CannotDraw`.

    `near` shows the part around the object. A text says why there is no follow-up.
    """
    views = object_views(run, case, target, name, judging=judging)
    chosen = next((view for view in views.follow_ups if view.draw == draw), None)
    if chosen is None:
        image = load_source(run, case, judging=judging, dataset=dataset).image
        return _object_panel(image, views.source, views.confidence, near), views.why or f"there is no follow-up {draw}"
    verdict = {"case": case, "rule": name, "target": target, "severity": None, "draw": draw}
    pair = load_pair(run, verdict, judging=judging, dataset=dataset)
    return (
        _object_panel(pair.source.image, views.source, views.confidence, near),
        _object_panel(pair.follow_up.image, chosen, views.confidence, near),
    )


def object_alone(
    run: Run, case: str, target: str, name: str, *, judging: str = DEFAULT, dataset: str | Path | None = None
) -> Annotated:
    """The part of the source around an object, with nothing drawn on it. Raises `CannotDraw`."""
    judged_by, _ = _evidence(run, case, name, judging)
    box, _ = object_in(judged_by.sources.row(0, named=True), target, judged_by)
    image = load_source(run, case, judging=judging, dataset=dataset).image
    return Annotated(_part(image, _around(box, image)), (), ())


def _object_panel(image: Image, view: ObjectView, confidence: float, near: bool) -> Annotated:
    answer, confident = view.answer, np.asarray(view.answer.scores >= confidence)
    others = [Shape("boxes", answer.boxes[confident & ~view.matching].astype(np.float64), colour=GREY)]
    kept = np.flatnonzero(confident & view.matching)
    actual = Detections.from_xyxy(answer.boxes[kept], [answer.labels[n] for n in kept], answer.scores[kept]).shapes()
    expected = [Shape("boxes", view.box[None])]
    if not near:
        return Annotated(image, others, actual, expected)
    x0, y0, x1, y1 = _around(view.box, image)
    others, actual, expected = ([shape.moved(-x0, -y0) for shape in shapes] for shapes in (others, actual, expected))
    return Annotated(_part(image, (x0, y0, x1, y1)), others, actual, expected)


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


def explanation_picture(run: Run, case: str, *, judging: str = DEFAULT, dataset: str | Path | None = None) -> Image:
    """The source and the follow-ups that speak against it (others where none does), side by side with the answers.

    On each follow-up, what its rule says most about is drawn last and thick; on the source every object is. The source
    alone where no rule says anything of any object.
    """
    verdicts = (
        _verdicts(run, case, judging)
        .filter(pl.col("target") != WHOLE)
        .sort("severity", descending=True, nulls_last=True, maintain_order=True)
    )
    shown = list(verdicts.unique("rule", keep="first", maintain_order=True).head(PICTURES).iter_rows(named=True))
    refuse_unloaded(run.folder, [named_rule(verdict["rule"]) for verdict in shown])
    source = load_source(run, case, judging=judging, dataset=dataset)
    if not shown:
        return contact_sheet([(panel_picture(source, side="source"), "source")], columns=3, tile=420)
    explanations = explained(verdicts, run.thresholds())
    names = object_names(run, case, explanations, judging=judging)
    judged_by, _ = _evidence(run, case, shown[0]["rule"], judging)
    answer = judged_by.sources.row(0, named=True)
    views = [_view(judged_by, answer, one.target) for one in reversed(explanations)]  # the unreliable ones are last
    confidence = float(judged_by.options["confidence"])
    tiles = [(_accused_picture(source.image, views, confidence, BLUE), "source")]
    changes = Counter(named_rule(verdict["rule"]).left for verdict in shown)
    for verdict in shown:
        target, left = verdict["target"], named_rule(verdict["rule"]).left
        seen = object_views(run, case, target, verdict["rule"], judging=judging)
        view = next(one for one in seen.follow_ups if one.draw == (verdict["draw"] or 0))
        image = load_pair(run, verdict, judging=judging, dataset=dataset).follow_up.image
        title = f"{verdict['rule'] if changes[left] > 1 else left}: {names[target]}, {outcome_words(verdict)}"
        tiles.append((_accused_picture(image, [view], confidence, ORANGE), title))
    return contact_sheet(tiles, columns=3, tile=420)


def outcome_words(verdict: Row) -> str:
    """What became of an object: found or not, and whether that is right.

    >>> outcome_words({"kind": None, "severity": 0.0, "found_source": 1.0, "found": 0.0})
    'not found, as it should be'
    """
    if verdict["severity"] is None:
        return "not judged"
    if verdict["kind"] is not None:
        return str(verdict["kind"])
    if verdict["found_source"] <= 0.5 and verdict["found"] <= 0.5:
        return "not found, as before"
    return f"{'still found' if verdict['found'] > 0.5 else 'not found'}, as it should be"


def _accused_picture(image: Image, views: Sequence[ObjectView], confidence: float, colour: Colour) -> Image:
    """An image with the objects that are explained over all else: white where they are, thick and with its score what
    the system says of them. Other answers are grey and have no words."""
    answer = views[0].answer
    explained_boxes = np.any([view.matching for view in views], axis=0)
    others = answer.boxes[~explained_boxes & (answer.scores >= confidence)].astype(np.float64)
    over: list[Shape] = []
    for view in views:
        over.append(Shape("boxes", view.box[None], colour=WHITE))
        if view.matching.any():
            best = int(np.argmax(np.where(view.matching, answer.scores, -1)))
            box = answer.boxes[best][None].astype(np.float64)
            words = f"{answer.labels[best]} {answer.scores[best]:.2f}"
            over += [Shape("boxes", box, colour=colour), Shape("text", box[:, :2], words, colour)]
    panel = Annotated(image, [Shape("boxes", others, colour=GREY)], (), names=over)
    return panel_picture(panel, side="source")
