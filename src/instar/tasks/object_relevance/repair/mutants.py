"""Mutants: the follow-ups that exposed violations, with the labels they should have had."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import numpy as np
import polars as pl
import xxhash

from instar.analysis import Run
from instar.case import Case, read_input
from instar.datasets import Dataset
from instar.engine import DEFAULT, SOURCE, Need, bound_rules, make_follow_up, provided, refuse_unloaded
from instar.image import Image
from instar.outputs.detections import Detections
from instar.relations import Rule, named_rule
from instar.store import Manifest, Row, Store
from instar.tasks.object_relevance.analysis import presence_rules
from instar.tasks.object_relevance.repair.export import Example
from instar.transforms import NotApplicable, Transformation

SHARE = 0.15
"""Mutants in the training set; the paper had 1 to 27 %."""


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """Which mutants go into the training set, one row each: `case`, `rule`, `draw`.

    `counts` says for each rule how many mutants were `available` and how many are `chosen`.
    """

    mutants: pl.DataFrame
    counts: pl.DataFrame

    @property
    def available(self) -> int:
        return int(self.counts["available"].sum())


def mutant_rules(run: Run) -> list[Rule]:
    """The rules of a run that mutants come of: those about the presence of annotated objects."""
    manifest = run.manifest
    if manifest.system.kind != Detections.kind:
        raise ValueError(f"{run.folder} is a run of {manifest.system.kind}; a repair needs one of detections")
    if manifest.truth_kind != Detections.kind:
        raise ValueError(f"{run.folder}: its dataset has no annotated objects, and training needs labels")
    return list(bound_rules(presence_rules(run), manifest.system.kind))


def exposing(run: Run, *, threshold: float | None = None, judging: str = DEFAULT) -> pl.DataFrame:
    """One row for each pair of a case and a rule that is violated, with the first draw that shows it.

    A pair is violated where the severity of one of its objects is at least the threshold; the draw is the first in
    which such an object breaks the relation, as its verdict says.
    """
    rules, limits = [one.id for one in mutant_rules(run)], run.thresholds(threshold)
    limit = pl.col("rule").replace_strict(limits, return_dtype=pl.Float64)
    broken = run.verdicts(judging).filter(
        pl.col("rule").is_in(rules) & (pl.col("severity") > 0) & (pl.col("severity") >= limit)
    )
    return broken.group_by("case", "rule").agg(pl.col("draw").min()).sort("case", "rule")


def choose(available: pl.DataFrame, originals: int, *, share: float = SHARE, seed: int = 0) -> Chosen:
    """As many mutants as keep to their share of the whole set, spread over rules and images.

    Rules take turns; each takes a mutant of an image that has the fewest so far. Which of those is decided by a hash
    of the seed, so that the choice depends on nothing else.

    >>> pairs = pl.DataFrame({"case": ["a", "a", "b"], "rule": ["r", "s", "s"], "draw": [0, 0, 0]})
    >>> choose(pairs, 4, share=0.4).mutants.height
    2
    """
    if not 0 < share < 1:
        raise ValueError(f"share is above 0 and below 1, got {share}")
    most = int(share / (1 - share) * originals + 1e-9)
    heaps: dict[str, list[tuple[int, int, int]]] = {}
    rows = available.select("case", "rule").rows()
    for number, (case, name) in enumerate(rows):
        chance = xxhash.xxh3_64_intdigest(f"{seed}\x1f{case}\x1f{name}".encode())
        heaps.setdefault(name, []).append((0, chance, number))
    for heap in heaps.values():
        heapq.heapify(heap)
    used: Counter[str] = Counter()
    taken: list[int] = []
    turns = cycle(sorted(heaps))
    while len(taken) < min(most, len(rows)):
        heap = heaps[next(turns)]
        while heap:
            count, chance, number = heapq.heappop(heap)
            case = rows[number][0]
            if used[case] > count:  # it has been used since it was put here
                heapq.heappush(heap, (used[case], chance, number))
                continue
            used[case] += 1
            taken.append(number)
            break
    chosen = available[sorted(taken)]
    counts = (
        available.group_by("rule")
        .agg(available=pl.len().cast(pl.Int64))
        .join(chosen.group_by("rule").agg(chosen=pl.len().cast(pl.Int64)), on="rule", how="left")
        .with_columns(pl.col("chosen").fill_null(0))
        .sort("rule")
    )
    return Chosen(chosen, counts)


def mutants(run: Run, chosen: pl.DataFrame, training: Dataset) -> Iterator[Example]:
    """The chosen mutants, made anew: the very follow-ups that the run predicted, with their labels.

    Where the effect is `gone` or `others` what was erased loses its label; where it is `kept` all stay. The run's
    dataset must still be what it was: images by their content hash, labels by their numbers.
    """
    manifest = run.manifest
    refuse_unloaded(run.folder, map(named_rule, chosen["rule"].unique()))
    cases = {case.id: case for case in training.cases()}
    of_chosen = run.store.cases(where=pl.col("case").is_in(chosen["case"].implode()))
    stored = {row["case"]: row for row in of_chosen.iter_rows(named=True)}
    for (name,), of_case in chosen.group_by("case", maintain_order=True):
        case = cases.get(str(name))
        if case is None:
            raise ValueError(f"{training.name} has no case {name!r}; give the dataset that {run.folder} is a run of")
        image = _unchanged(case, stored[str(name)])
        for text, draw in of_case.select("rule", "draw").iter_rows():
            yield _mutant(run.store, manifest, case, image, named_rule(text), draw)


def _mutant(store: Store, manifest: Manifest, case: Case, image: Image, judged: Rule, draw: int) -> Example:
    (changed,) = judged.transformations
    assert judged.relation is not None
    truth = case.truth
    assert isinstance(truth, Detections)
    needs = _needs(store, manifest, case, image, changed)
    followed, change = make_follow_up(manifest.seed, case.id, image, changed, draw, needs)
    assert isinstance(followed, Image)
    gone = judged.relation.values["effect"] != "kept"
    ids = truth.ids or tuple(str(number) for number in range(len(truth)))
    kept = [number for number, one in enumerate(ids) if not (gone and one in change.removed)]
    left = Detections.from_xyxy(
        truth.boxes[kept],
        [truth.labels[number] for number in kept],
        ids=[ids[number] for number in kept],
        masks=None if truth.masks is None else truth.masks[kept],
    )
    labels = left if change.warp.is_identity else left.warped(change.warp)
    return Example(
        f"{Path(case.id).stem}_{changed.id}_{draw}.png",
        labels,
        followed,
        origin={"case": case.id, "rule": judged.id, "draw": draw},
    )


def _needs(
    store: Store, manifest: Manifest, case: Case, image: Image, changed: Transformation
) -> dict[str, Need | NotApplicable]:
    """What the follow-up was made with."""
    of_case = pl.col("case") == case.id
    needs: dict[str, Need | NotApplicable] = {}
    for need in sorted(changed.needs - {"truth", "objects"}):
        if need == "source":
            source = of_case & (pl.col("follow_up") == SOURCE) & (pl.col("repeat") == 0)
            row = store.whole(store.predictions(where=source)).row(0, named=True)
            needs[need] = Detections.from_row(row, manifest.header)
        else:
            needs[need] = store.need_value(store.needs(of_case & (pl.col("need") == need)).row(0, named=True))
    for need in changed.needs & {"truth", "objects"}:
        needs[need] = provided(need, None, case, image)
    return needs


def _unchanged(case: Case, stored: Row) -> Image:
    """The case's image, if it and its labels are still what was tested."""
    image, digest = read_input(case)
    if digest != stored["hash"]:
        raise ValueError(
            f"{case.id}: not the image that was tested; give the training set that the run is of, or, "
            "if it has changed, run the suite again"
        )
    truth = case.truth
    if (
        isinstance(truth, Detections)
        and isinstance(image, Image)
        and list(truth.labels) == list(stored["truth_labels"] or ())
        and list(truth.ids) == list(stored["truth_ids"] or ())
        and np.array_equal(truth.boxes.ravel(), np.asarray(stored["truth_boxes"] or (), np.float32))
    ):
        return image
    raise ValueError(f"{case.id}: its labels are not those it was tested with; run the suite again")
