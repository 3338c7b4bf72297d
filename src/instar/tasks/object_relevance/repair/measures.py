"""How good a detector is against labels, and what a repair changed, with intervals.

Detections are matched with labels by pycocotools, the field's evaluator; everything is then counted per image, so that
images can be drawn anew to say how sure a number is.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.outputs.detections import Detections
from instar.stats import resamples as drawings
from instar.store import Schema
from instar.systems.system import imported
from instar.tasks.object_relevance.repair.export import coco_annotation

CONFIDENCE = 0.5
"""The score from which a detection counts, in precision, recall and the counts."""

MEASURES = ("mAP@0.5", "mAP@0.5:0.95", "precision", "recall", "TP", "FP", "FN", "mean IoU", "unreliable")
COMPARED = MEASURES[:-1]
"""The measures that need nothing but answers and labels."""
TABLE: Schema = {
    "measure": pl.String,
    **dict.fromkeys(("before", "before_low", "before_high", "after", "after_low", "after_high"), pl.Float64),
    **dict.fromkeys(("change", "low", "high", "seed_low", "seed_high"), pl.Float64),
    "seeds_better": pl.Int64,
    "seeds": pl.Int64,
}
"""The columns of a before/after table."""
_ENDS = (0.5 - 0.95 / 2, 0.5 + 0.95 / 2)
_LESS_IS_BETTER = {"FP", "FN", "unreliable"}
_WHOLE = {"TP", "FP", "FN"}

Coco = Any
"""pycocotools and what is made by it, which have no types."""
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class _Class:
    """The detections of one class, surest first, and how many labels of it each image has."""

    image: Integers
    scores: Floats
    hit: Bools
    """(10, D): matched at IoU 0.5, 0.55 … 0.95."""
    iou: Floats
    """With the label it is matched with at 0.5."""
    labels: Integers


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What there is to count of one detector on a set of images.

    `broken` of the `judged` verdicts of an image are violations of the relation presence; without a run both are
    empty, and `unreliable` is not known.
    """

    images: int
    classes: tuple[_Class, ...]
    broken: Floats = field(default_factory=lambda: np.zeros(0))
    judged: Floats = field(default_factory=lambda: np.zeros(0))

    def values(self, weights: Floats | None = None) -> dict[str, float]:
        """Every measure, where image i counts `weights[i]` times; NaN for what is not known.

        Classes without a label count in no average precision, as in pycocotools.
        """
        times = np.ones(self.images) if weights is None else weights
        precisions = [ap for one in self.classes if (ap := _average_precision(one, times)) is not None]
        average = np.mean(precisions, 0) if precisions else np.full(10, np.nan)
        true = false = there = overlap = 0.0
        for one in self.classes:
            counts = times[one.image] * (one.scores >= CONFIDENCE)
            true += float(counts @ one.hit[0])
            false += float(counts @ ~one.hit[0])
            overlap += float(counts @ (one.iou * one.hit[0]))
            there += float(times @ one.labels)
        judged = float(times @ self.judged) if len(self.judged) else 0.0
        unreliable = _share(float(times @ self.broken), judged) if judged else np.nan
        shares = (float(average[0]), float(average.mean()), _share(true, true + false), _share(true, there))
        others = (true, false, there - true, _share(overlap, true), unreliable)
        return dict(zip(MEASURES, (*shares, *others), strict=True))

    def only(self, images: Bools) -> Measured:
        """The same on some of the images."""
        place = np.cumsum(images) - 1
        classes = tuple(
            _Class(place[one.image[kept]], one.scores[kept], one.hit[:, kept], one.iou[kept], one.labels[images])
            for one in self.classes
            for kept in [images[one.image]]
        )
        known = len(self.judged) > 0
        broken, judged = (each[images] if known else each for each in (self.broken, self.judged))
        return Measured(int(images.sum()), classes, broken, judged)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")


def _average_precision(one: _Class, times: Floats) -> Floats | None:
    """Average precision at each IoU: the mean of the precision at recall 0, 0.01 … 1."""
    there = float(times @ one.labels)
    if not there:
        return None
    counts = times[one.image]
    true = np.cumsum(counts * one.hit, 1)
    precision = true / np.maximum(np.cumsum(counts), np.finfo(np.float64).eps)
    highest = np.maximum.accumulate(precision[:, ::-1], 1)[:, ::-1]
    recall = true / there
    padded = np.concatenate([highest, np.zeros((len(highest), 1))], 1)
    places = np.array([reached.searchsorted(_RECALLS) for reached in recall])
    return np.asarray(np.take_along_axis(padded, places, 1).mean(1))


_RECALLS = np.linspace(0.0, 1.0, 101)


def matched(answers: Sequence[Detections], truths: Sequence[Detections]) -> Measured:
    """Match the answers to some images with their labels, as pycocotools does: surest first, one label each."""
    if len(answers) != len(truths):
        raise ValueError(f"{len(answers)} answers for {len(truths)} images")
    evaluated, names = _evaluated(answers, truths)
    classes = []
    for number, _ in enumerate(names, start=1):
        labels = np.zeros(len(truths), np.int64)
        places, scores, hits, ious = [np.zeros(0, np.int64)], [np.zeros(0)], [np.zeros((10, 0), bool)], [np.zeros(0)]
        for image, entry in enumerate(evaluated.evalImgs[(number - 1) * len(truths) : number * len(truths)]):
            if entry is None:
                continue
            labels[image] = len(entry["gtIds"])
            count = len(entry["dtScores"])
            places.append(np.full(count, image))
            scores.append(np.asarray(entry["dtScores"], np.float64))
            match = np.asarray(entry["dtMatches"]).reshape(10, count)
            hits.append(match > 0)
            ious.append(_overlaps(evaluated.ious[image + 1, number], match[0], entry["gtIds"]))
        score, hit = np.concatenate(scores), np.concatenate(hits, 1)
        order = np.argsort(-score, kind="mergesort")
        image_of, iou = np.concatenate(places)[order], np.concatenate(ious)[order]
        classes.append(_Class(image_of, score[order], hit[:, order], iou, labels))
    return Measured(len(truths), tuple(classes))


def _overlaps(ious: Coco, match: Floats, labels: Sequence[int]) -> Floats:
    """The IoU of each detection with the label it is matched with, 0 without one."""
    place = {label: number for number, label in enumerate(labels)}
    return np.array(
        [ious[number][place[int(label)]] if label > 0 else 0.0 for number, label in enumerate(match)], np.float64
    )


def evaluator() -> tuple[Coco, Coco]:
    """pycocotools' modules `coco` and `cocoeval`, imported late."""
    coco, cocoeval = (imported(f"pycocotools.{name}", "repair", owner="mAP") for name in ("coco", "cocoeval"))
    return coco, cocoeval


def _evaluated(answers: Sequence[Detections], truths: Sequence[Detections]) -> tuple[Coco, list[str]]:
    coco, cocoeval = evaluator()
    names = sorted({label for one in (*truths, *answers) for label in one.labels})
    numbers = {name: number for number, name in enumerate(names, start=1)}
    sides = []
    with redirect_stdout(io.StringIO()):
        for side in (truths, answers):
            annotations: list[dict[str, object]] = []
            for image, one in enumerate(side, start=1):
                for box, label, score in zip(one.boxes.astype(np.float64), one.labels, one.scores, strict=True):
                    entry = coco_annotation(len(annotations) + 1, image, numbers[label], box)
                    annotations.append({**entry, "score": float(score)})
            index = coco.COCO()
            index.dataset = {
                "images": [{"id": image} for image in range(1, len(truths) + 1)],
                "categories": [{"id": number} for number in numbers.values()],
                "annotations": annotations,
            }
            index.createIndex()
            sides.append(index)
        evaluation = cocoeval.COCOeval(*sides, "bbox")
        evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, 1e10]], ["all"]
        evaluation.params.maxDets = [100]
        evaluation.evaluate()
    return evaluation, names


def before_after(before: Sequence[Measured], after: Sequence[Measured], *, resamples: int = 1000) -> pl.DataFrame:
    """What a repair changed: one row per measure, the mean over seeds before and after, and the change.

    `before` and `after` hold one detector for each seed, on the same images in the same order. `low` and `high` are
    the change's 95 % interval over images: they are drawn anew, the same for both sides. `seed_low` and `seed_high`
    are the least and the greatest change of a seed, `seeds_better` counts the seeds that got better. What is not known
    is null: the mean IoU of no matches, or its interval where images drawn anew may have none.
    """
    if not before or len(before) != len(after) or len({one.images for one in (*before, *after)}) != 1:
        raise ValueError("before and after are the same seeds on the same images")
    images = before[0].images

    def each(weights: Floats | None) -> Floats:
        """(2, seeds, measures)"""
        return np.array([[list(one.values(weights).values()) for one in side] for side in (before, after)])

    whole = each(None)
    drawn = np.array([each(weights).mean(1) for some in drawings(images, times=resamples) for weights in some])
    rows = []
    for number, name in enumerate(MEASURES):
        seeds = whole[1, :, number] - whole[0, :, number]
        if np.isnan(seeds).all():
            continue
        sides = whole[:, :, number].mean(1)
        ends = [np.quantile(drawn[:, :, number] @ signs, _ENDS) for signs in ([1.0, 0.0], [0.0, 1.0], [-1.0, 1.0])]
        better = -seeds if name in _LESS_IS_BETTER else seeds
        of_seeds = (seeds.min(), seeds.max(), int((better > 0).sum()), len(seeds))
        rows.append((name, sides[0], *ends[0], sides[1], *ends[1], sides[1] - sides[0], *ends[2], *of_seeds))
    return pl.DataFrame(rows, schema=TABLE, orient="row").fill_nan(None)


def measure_text(name: str, value: float | None, sign: str = "") -> str:
    """A measure as a table shows it: counts whole where they are, shares with three places."""
    if value is None:
        return "–"
    return f"{value:{sign},.{(0 if value == round(value) else 1) if name in _WHOLE else 3}f}"


def markdown(table: pl.DataFrame) -> str:
    lines = [
        "| | before | after | change | 95 % over images | over seeds | seeds better |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in table.iter_rows(named=True):
        places = 1 if row["measure"] in _WHOLE else 3
        sides = ["–" if row[name] is None else f"{row[name]:.{places}f}" for name in ("before", "after")]
        change, low, high, seed_low, seed_high = (
            "–" if row[name] is None else f"{row[name]:+.{places}f}"
            for name in ("change", "low", "high", "seed_low", "seed_high")
        )
        cells = [row["measure"], *sides, change, f"{low} … {high}", f"{seed_low} … {seed_high}"]
        lines.append(f"| {' | '.join(cells)} | {row['seeds_better']} of {row['seeds']} |")
    return "\n".join(lines) + "\n"
