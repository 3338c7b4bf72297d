"""Pictures of verdicts: source and follow-up side by side, expected hollow, actual filled."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.analysis import Run
from instar.case import Case, Input, read_input
from instar.engine import DEFAULT, SOURCE, Need, Provider, make_follow_up, provided, provider, stored_judging
from instar.files import path_of
from instar.image import Crop, Image, Unreadable
from instar.outputs import Output, output_kind
from instar.outputs.sides import other_side
from instar.relations import Relation, Row, named_rule, own_equivariance
from instar.remote import Address, address_in, bucket_and_key, joined
from instar.report.picture import ACCUSED, Annotated, LegendEntry, draws_nothing, legend, pair_picture, write_png
from instar.report.targets import WHOLE, target_names
from instar.report.words import landmark_words, scores_text, severity_words
from instar.scene import Track
from instar.shapes import Shape
from instar.store import Manifest, Store
from instar.transforms import Change, NotApplicable, Transformation
from instar.warp import Size, boxes_iou

Boxes = npt.NDArray[np.float64]
"""Boxes (N, 4) in pixels."""

CannotDraw = (Unreadable, NotApplicable, LookupError)
"""Why a pair cannot be shown: its input is gone or another one now, or a prediction is missing."""


_LOOKED_AT = 20
"""Cases whose answers are looked at for something to draw."""


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A verdict's source and follow-up with the answers to them, ready to be drawn.

    `answers` are both answers in words, for a system that answers in words.
    """

    source: Annotated
    follow_up: Annotated
    title: str
    facts: str
    answers: tuple[str, ...] = ()

    def picture(self) -> Image:
        """Both sides beside each other, with what the verdict says."""
        return pair_picture(self.source, self.follow_up, title=self.title, lines=[self.facts, *self.answers])


def draw_pairs(
    run: Run,
    verdicts: pl.DataFrame,
    out: str | Path,
    *,
    threshold: float | None = None,
    judging: str = DEFAULT,
    dataset: str | Path | None = None,
) -> Iterator[tuple[Path | None, str]]:
    """Draw each verdict's pair into a folder; yields the file, or None and why it could not be drawn.

    The inputs are found by the path stored with their case, or under `dataset` if that is not None, and are
    the right ones only if their content hash is the stored one.
    """
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    for number, verdict in enumerate(verdicts.iter_rows(named=True), start=1):
        label = f"{verdict['case']} {verdict['rule']}"
        try:
            pair = load_pair(run, verdict, threshold=threshold, judging=judging, dataset=dataset)
        except CannotDraw as error:
            yield None, f"{label}: {error}"
            continue
        name = re.sub(
            r"[^\w.()=-]+", "_", f"{number:02d}_{Path(verdict['case']).stem}_{named_rule(verdict['rule']).left}"
        )
        path = folder / f"{name[:120]}.png"
        write_png(path, pair.picture())
        yield path, label


def load_source(
    run: Run, case: str, *, judging: str = DEFAULT, dataset: str | Path | None = None, counted: bool = False
) -> Annotated:
    """A case's input, with the answer to it where there is one, as far as a judging takes notice of it; or as far as it
    `counted` under every relation."""
    source, answer = _source(run, case, judging, dataset)
    if counted and answer is not None:
        answer = answer.confident(_counted_from(run, judging))
    panel = _annotated(source, answer.shapes() if answer else [])
    return replace(panel, silent=answer is not None and is_silent(answer))


def is_silent(answer: Output, other: Output | None = None) -> bool:
    """Whether it found nothing, of a kind that is drawn: one with places, or one of which the `other` answer of the
    pair is drawn. What is said in words is never silent."""
    is_drawn = answer.has_marks or (other is not None and not draws_nothing(other.shapes()))
    return is_drawn and answer.says() is None and draws_nothing(answer.shapes())


def source_answer(run: Run, case: str, *, judging: str = DEFAULT) -> Output | None:
    """The answer to a case's source, as far as a judging takes notice of it; None where there is none."""
    store, manifest = run.store, run.manifest
    of_source = (pl.col("case") == case) & (pl.col("follow_up") == SOURCE)
    rows = store.predictions(where=of_source & (pl.col("repeat") == 0) & (pl.col("status") == "ok"))
    if rows.is_empty():
        return None
    answer = _output(store, manifest, rows.row(0, named=True))
    relation = own_equivariance(manifest.system.kind).relation
    return answer.confident(_confidence(stored_judging(store, judging).of(relation)))


def _counted_from(run: Run, judging: str) -> float:
    """The score from which on an answer counts under every relation of a run."""
    options = stored_judging(run.store, judging)
    return max(
        (float(options.of(one.relation.relation).get("confidence", 0.0)) for one in run.bound_rules()), default=0
    )


def _source(run: Run, case: str, judging: str, dataset: str | Path | None) -> tuple[Input, Output | None]:
    row = _one(run.store.cases(where=pl.col("case") == case), f"case {case}")
    source = _input(row, run.manifest, run.folder, Path(dataset) if dataset else None)
    return source, source_answer(run, case, judging=judging)


def load_changes(
    run: Run, case: str, changes: Sequence[Transformation], *, dataset: Path | None = None
) -> tuple[Annotated, dict[str, tuple[Annotated, Change]]]:
    """A case's input, and what transformations make of it, by their ids and without answers.

    Those that do not apply to the case, or that the run asked no follow-up of, are left out.
    """
    store, manifest = run.store, run.manifest
    row = _one(store.cases(where=pl.col("case") == case), f"case {case}")
    source, answer = _input(row, manifest, run.folder, dataset), None
    with suppress(LookupError):  # the source failed; most changes need no answer to it
        answer = _answer(store, manifest, case, SOURCE, 0)
    made = {}
    for changed in changes:
        with suppress(NotApplicable):
            follow_up, change = _follow_up(run, row, source, changed, 0, answer)
            made[changed.id] = _annotated(follow_up, []), change
    return _annotated(source, []), made


def run_legend(
    run: Run,
    *,
    relation: str | None = None,
    alone: bool = False,
    judging: str = DEFAULT,
    dataset: str | Path | None = None,
) -> list[LegendEntry]:
    """What is drawn on the pairs of a run or of one of its relations, or on its sources `alone`, for a page that shows
    many: nothing for a system that answers in words.

    Taken from the first case of which there is something to see.
    """
    relations = {one.relation.relation.name: one.relation.relation for one in run.bound_rules()}
    shown = [] if alone else [one for name, one in relations.items() if relation in (None, name)]
    expects, accuses = any(one.mapping for one in shown), any(not one.own_needs for one in shown)
    colours = _class_colours(run.manifest)
    for case in run.cases()["case"].head(_LOOKED_AT):
        with suppress(*CannotDraw):
            source, answer = _source(run, case, judging, dataset)
            shapes = answer.shapes() if answer else []
            several = bool(accuses and answer and (colours or len(answer.marks()) > 1))
            panel = replace(_annotated(source, shapes, shapes if expects else ()), accused=shapes if several else ())
            if entries := legend(panel, None if alone else panel, colours):
                return entries
    return []


def load_pair(
    run: Run, verdict: Row, *, threshold: float | None = None, judging: str = DEFAULT, dataset: str | Path | None = None
) -> Pair:
    """A verdict's pair; its follow-up is made anew from the rule. Raises one of `CannotDraw`.

    A verdict has `case`, `rule`, `target` and `severity`, and may have `kind`, `worst`,
    both scores and the `draw` that shows it.
    Of the answers only that is shown which the judging takes notice of.
    """
    store, manifest = run.store, run.manifest
    case = _one(store.cases(where=pl.col("case") == verdict["case"]), f"case {verdict['case']}")
    source = _input(case, manifest, run.folder, Path(dataset) if dataset else None)
    judged = named_rule(verdict["rule"])
    assert judged.relation is not None
    relation, target = judged.relation.relation, verdict["target"]
    (changed,) = judged.transformations
    draw = verdict.get("draw") or 0
    first = _answer(store, manifest, verdict["case"], SOURCE, 0)
    second = _answer(store, manifest, verdict["case"], changed.id, draw)
    follow_up, change = _follow_up(run, case, source, changed, draw, first)
    options = stored_judging(store, judging).of(relation)
    confidence = _confidence(options)
    if verdict["severity"]:  # what a verdict accuses may score less
        scores = verdict.get("source_score"), verdict.get("follow_up_score")
        confidence = min(confidence, *(score for score in scores if score is not None), np.inf)
    (name,) = target_names(run, pl.DataFrame([{key: verdict[key] for key in _KEY}]), judging=judging)
    marks = [] if relation.own_needs else first.marks()
    first, second = first.confident(confidence), second.confident(confidence)
    carried = first.warped(change.warp) if relation.mapping else None
    expected = carried.shapes(target) if carried else []
    left, right = _annotated(source, first.shapes(target)), _annotated(follow_up, second.shapes(target), expected)
    left, right = replace(left, silent=is_silent(first, second)), replace(right, silent=is_silent(second, first))
    if target == WHOLE and verdict["severity"]:
        right = _accusing(right, second, verdict.get("follow_up_score"), _boxes(carried), fresh=True)
    if verdict["severity"] and (worst := verdict.get("worst") or "") in _class_colours(manifest):
        names = manifest.header["names"]
        left = replace(left, accused=first.shapes(other_side(worst, names) if change.warp.mirrors else worst))
        right = replace(right, accused=second.shapes(worst) or (carried.shapes(worst) if carried else ()))
    number = (target or "").partition("/")[0]
    if number.isdecimal() and int(number) < len(marks):
        places = marks[int(number)].places
        there = change.warp.points(places) if relation.mapping else None
        if len(first.marks()) > 1:
            left = _with_name(left, name, places)
            right = right if there is None else _with_name(right, name, there)
        if verdict["severity"]:
            left = _accusing(left, first, verdict.get("source_score"), _box(places))
            right = _accusing(right, second, verdict.get("follow_up_score"), _box(places if there is None else there))
    return Pair(
        left,
        right,
        f"{judged.left}: {judged.words}",
        _facts(
            verdict,
            name,
            relation,
            relation.unit_under(options, manifest.header),
            run.thresholds(threshold)[verdict["rule"]],
        ),
        tuple(f"{side}: {text}" for side, text in (("source", first.says()), ("follow-up", second.says())) if text),
    )


def _class_colours(manifest: Manifest) -> Mapping[str, tuple[int, int, int]]:
    """The colours in which the answers of a run have classes, by name."""
    return output_kind(manifest.system.kind).class_colours(manifest.header)


def _accusing(
    panel: Annotated, answer: Output, score: float | None, expected: Boxes, *, fresh: bool = False
) -> Annotated:
    """With that marked which a verdict is about, where the answer to this side has it beside something else.

    A verdict knows it by its score. Of several that score the same it is the one that lies best in an `expected` box,
    or worst where it is `fresh`: invented or doubled.
    """
    marks = answer.marks()
    same = [mark for mark in marks if score is not None and np.float32(score) in mark.scores]
    if not same or panel.own or len(marks) + fresh * len(expected) < 2:
        return panel
    boxes = np.concatenate([_box(mark.places) for mark in same])
    overlap = boxes_iou(boxes, expected).max(1, initial=0.0)
    box = boxes[int(overlap.argmin() if fresh else overlap.argmax())]
    texts = [shape for shape in panel.actual if shape.form == "text" and np.allclose(shape.xy[0], box[:2])]
    return replace(panel, accused=[Shape("boxes", box[None]), *texts])


def _box(places: npt.NDArray[np.float64]) -> Boxes:
    """The box (1, 4) around places."""
    return np.concatenate([np.nanmin(places, axis=0), np.nanmax(places, axis=0)])[None]


def _boxes(answer: Output | None) -> Boxes:
    """The boxes around all that an answer has at places."""
    return np.concatenate([np.empty((0, 4)), *(_box(mark.places) for mark in (answer.marks() if answer else ()))])


def _with_name(panel: Annotated, name: str, places: npt.NDArray[np.float64]) -> Annotated:
    """With the name of one of several written below it; a map of which a part is shown has none."""
    present = places[np.isfinite(places).all(1)]
    if panel.own or not len(present):
        return panel
    foot = np.array([[present[:, 0].min(), present[:, 1].max()]])
    return replace(panel, names=[Shape("text", foot, name, ACCUSED)])


def _facts(verdict: Row, name: str, relation: Relation, unit: str, threshold: float) -> str:
    """What a verdict is about and what it says."""
    kind, severity, worst = verdict.get("kind"), verdict["severity"], verdict.get("worst")
    meaning = relation.meanings.get(kind or "")
    words = "" if severity is None else severity_words(severity, unit, kind, meaning, threshold=threshold)
    parts = (
        str(verdict["case"]),
        name,
        words and f"severity {words}",
        f"worst: {landmark_words(worst)}" if worst else "",
        scores_text(verdict),
    )
    return "; ".join(filter(None, parts))


_KEY = ("case", "rule", "target")


def _confidence(options: Row) -> float:
    """Return the score from which answers are drawn: the judging's confidence, less the margin if it has one."""
    return float(options.get("confidence", 0.0)) - float(options.get("margin", 0.0))


def _answer(store: Store, manifest: Manifest, case: str, follow_up: str, draw: int) -> Output:
    key = {"case": case, "follow_up": follow_up, "draw": draw, "repeat": 0}
    rows = store.predictions(where=pl.all_horizontal(pl.col(name) == value for name, value in key.items()))
    row = _one(rows, follow_up)
    if row["status"] != "ok":
        raise LookupError(f"the system gave no answer to {follow_up}: {row['status']}")
    return _output(store, manifest, row)


def _follow_up(
    run: Run, case: Row, source: Input, changed: Transformation, draw: int, answer: Output | None
) -> tuple[Input, Change]:
    """A follow-up made anew, with the needs that the run stored."""
    store, manifest = run.store, run.manifest
    stored = store.needs((pl.col("case") == case["case"]) & (pl.col("status") == "ok"))
    needs: dict[str, Need | NotApplicable] = {
        row["need"]: store.need_value(row) for row in stored.iter_rows(named=True)
    }
    if answer is not None:
        needs["source"] = answer
    whole = Case(case["case"], input=source, truth=_truth(case, manifest))
    for need in changed.needs - needs.keys():
        needs[need] = provided(need, _pool(manifest) if need == "pool" else None, whole, source, answer)
    return make_follow_up(manifest.seed, case["case"], source, changed, draw, needs)


def _pool(manifest: Manifest) -> Provider | None:
    """The pool that the run inserted from, as long as it is where it was and what it was."""
    stored = manifest.providers.get("pool")
    if stored is None:
        return None
    try:
        pool = _read_provider("pool", stored.name)
    except (OSError, ValueError) as error:
        raise NotApplicable(f"the pool of this run cannot be read: {error}") from error
    if pool.fingerprint != stored.fingerprint:
        raise NotApplicable(f"the pool {stored.name} is not what it was when the run was made")
    return pool


_read_provider = lru_cache(maxsize=4)(provider)


def _annotated(shown: Input, actual: Sequence[Shape], expected: Sequence[Shape] = ()) -> Annotated:
    """An input with the answer to it. A photograph is shown whole, of a map the part where something happens."""
    image, own = Image(shown.picture()), shown.shapes()
    if not own:
        return Annotated(image, own, actual, expected)
    x0, y0, x1, y1 = _part([*own, *(s for s in (*actual, *expected) if s.form != "heat")], image.size)
    part = Image(np.ascontiguousarray(image.pixels[y0:y1, x0:x1]))
    own, actual, expected = ([shape.moved(-x0, -y0) for shape in shapes] for shapes in (own, actual, expected))
    return Annotated(part, own, actual, expected, f"part of {image.size[0]} x {image.size[1]} px")


def _part(shapes: Sequence[Shape], size: Size) -> tuple[int, int, int, int]:
    """The box around shapes with some room, as square as the frame allows."""
    places = np.concatenate([shape.xy.reshape(-1, 2) for shape in shapes])
    low, high = np.nanmin(places, 0), np.nanmax(places, 0)
    half = max(30.0, 0.7 * float((high - low).max()))
    middle = (low + high) / 2
    x0, y0 = np.clip(np.floor(middle - half), 0, np.array(size) - 1).astype(int)
    x1, y1 = np.clip(np.ceil(middle + half), (x0 + 1, y0 + 1), size).astype(int)
    return int(x0), int(y0), int(x1), int(y1)


def _one(frame: pl.DataFrame, what: str) -> Row:
    if frame.is_empty():
        raise LookupError(f"the run holds no {what}")
    return frame.row(0, named=True)


def _output(store: Store, manifest: Manifest, row: Row) -> Output:
    whole = store.whole(pl.DataFrame([row], schema=store.prediction_schema(manifest.system.kind)))
    return output_kind(manifest.system.kind).from_row(whole.row(0, named=True), manifest.header)


def _named_address(places: Sequence[Path], run: Path, dataset: Path | None) -> Path | None:
    """The first address that the user named with the dataset, or by the bucket that the run is in. Whoever made a run
    may name any, and asking there tells who asks."""
    bucket, _ = bucket_and_key(address_in(run) or "")
    named = [start for start in (dataset and address_in(dataset), bucket if address_in(run) else None) if start]
    addresses = [Address(address) for place in places if (address := address_in(place))]
    return next((one for one in addresses if any(str(one).startswith(joined(start, "")) for start in named)), None)


def _truth(case: Row, manifest: Manifest) -> Output | None:
    header = manifest.truth
    if header is None or case.get("status") != "ok":
        return None
    kind = output_kind(header["kind"])
    stored = {name: case.get(f"truth_{name}") for name in kind.columns}
    return kind.from_row(stored, header) if any(value is not None for value in stored.values()) else None


def _input(case: Row, manifest: Manifest, run: Path, dataset: Path | None) -> Input:
    """The case's input, if it is still what it was."""
    track = Track.from_json(case["track"]) if case["track"] else None
    if case["path"] is None and (manifest.recorded is None or dataset is None):
        raise Unreadable(
            "this run was recorded: it has no images; pass `dataset` to say where they are"
            if manifest.recorded
            else "its input was in memory only"
        )
    places = [Path(path_of(case["path"]))] if case["path"] is not None else []
    if dataset:
        roots = [Path(source.folder) for source in manifest.datasets if source.root]
        inside = [place.relative_to(root) for place in places for root in roots if place.is_relative_to(root)]
        places += [dataset / case["case"], *(dataset / place for place in inside)]
    if case["path"] is None:  # recorded elsewhere: nothing but its name says that it is the right one
        places = [place for place in places if dataset and place.resolve().is_relative_to(dataset.resolve())]
    file = next((place for place in places if place.is_file()), None) or _named_address(places, run, dataset)
    if file is None and not (track and track.size):
        why = (
            "the run names this address, and you did not; pass `dataset` to have images read there"
            if places and address_in(places[-1])
            else "no such file; pass `dataset` to say where the images are now"
        )
        raise Unreadable(f"{(places and address_in(places[-1])) or (places or [case['case']])[-1]}: {why}")
    crop = Crop(*case["crop"]) if case["crop"] else None
    read, digest = read_input(
        Case(case["case"], path=str(file or places[0]), frame=case["frame"], crop=crop, track=track)
    )
    unknown_file = case["hash"] is None and case["path"] is not None  # whoever made the run may name any file
    if unknown_file or (digest != case["hash"] and case["hash"] is not None):
        raise Unreadable(f"{file}: not the input that was tested (its content changed)")
    return read
