"""Needs: what a transformation needs besides the input, and who provides it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from instar.case import Case, Input
from instar.outputs import Output
from instar.outputs.detections import Detections
from instar.outputs.poses import Poses
from instar.outputs.zones import Zones
from instar.pool import Pool, read_pool
from instar.systems import System, system
from instar.transforms import NotApplicable

__all__ = ["SURE", "Need", "Provider", "is_stored", "no_provider", "provided", "provider", "with_source"]

Need = Output | Pool
"""What a need may be."""

_OF_TRUTH: dict[str, type[Detections] | type[Poses]] = {"objects": Detections, "landmarks": Poses}
"""Needs that come with the case where it is annotated; else what the system says of the source stands in."""

_ANSWERS = {"zones": ("zones", "a segmenter"), "objects": (Detections.kind, "a detector")}
"""What a system that provides a need answers with, and what it is called."""

SURE = 0.5
"""The score from which a detection in the source stands in for an object where none are annotated."""


def with_source(needs: frozenset[str], case: Case | None, kind: str) -> frozenset[str]:
    """What is needed, and the source output where it stands in for what the case does not have.

    Without a case: where it may.
    """
    stands_in = any(
        name in needs and kind == of.kind and not (case is not None and isinstance(case.truth, of))
        for name, of in _OF_TRUTH.items()
    )
    return needs | {"source"} if stands_in else needs


@dataclass(frozen=True, slots=True, eq=False)
class Provider:
    """Who provides a need: a segmenter, a detector, a pool, or the dataset's own masks or boxes."""

    name: str
    fingerprint: str
    source: System | Pool | Literal["masks", "boxes"]


def provider(need: str, name: str) -> Provider:
    if need == "pool":
        pool = read_pool(name)
        return Provider(str(Path(name).resolve()), pool.fingerprint, pool)
    if need not in _ANSWERS:
        raise ValueError(f"nobody is asked for {need}: it comes with the case")
    if need == "zones" and name in ("masks", "boxes"):
        return Provider(name, f"dataset-{name}", name)  # type: ignore[arg-type]
    asked = system(name)
    kind, what = _ANSWERS[need]
    if asked.kind != kind:
        raise ValueError(f"{name} answers with {asked.kind}; {need} need {what}")
    return Provider(asked.name, asked.fingerprint, asked)


def is_stored(who: Provider, value: Need | NotApplicable, case: Case) -> bool:
    """Whether a need is stored for itself. Truth is stored with its case, the source output with the predictions, and
    a pool is a folder of its own."""
    return value is not case.truth and not isinstance(who.source, Pool)


def no_provider(need: str) -> str:
    """Why a need cannot be had when nobody provides it."""
    if need == "zones":
        return (
            "there is no segmenter for zones; `pip install 'instar[litert]'` and "
            "`instar models pull selfie-multiclass`, or give one with --zones"
        )
    if need == "objects":
        return (
            "this dataset has no objects in its ground truth, and nobody finds them; `instar models pull "
            "efficientdet-lite0`, or give a detector with --objects"
        )
    if need == "landmarks":
        return "this dataset has no landmarks in its ground truth, and the system does not find any"
    if need == "pool":
        return "there is no pool of objects to insert; make one with `instar pool` and give it with --pool FOLDER"
    if need == "source":
        return "it depends on what the system says of the source, which only a run knows"
    return f"this case has no {need}"


def provided(
    need: str, source: Provider | None, case: Case, given: Input, answer: Output | NotApplicable | None = None
) -> Need | NotApplicable:
    """The need of one case, or the reason why it cannot be had. `answer` is the source output, where it is known.

    What is annotated goes before what somebody finds, and that before what the system itself says of the source.
    """
    if need == "truth":
        return NotApplicable("this dataset has no ground truth") if case.truth is None else case.truth  # type: ignore[return-value]
    of = _OF_TRUTH.get(need)
    if of is not None and isinstance(case.truth, of):
        return case.truth
    if source is None:
        if of is not None and isinstance(answer, of):
            return _sure(answer)
        return answer if isinstance(answer, NotApplicable) else NotApplicable(no_provider(need))
    if isinstance(source.source, Pool):
        return source.source
    try:
        if isinstance(source.source, System):
            said = source.source.answer([given], [0])[0]
            if isinstance(said, Exception):
                return NotApplicable(f"{source.name}: {said}")
            return _sure(said) if isinstance(said, Detections) else said
        return _zones_of_truth(case, given, source.source)
    except Exception as error:
        return NotApplicable(f"{source.name} failed: {type(error).__name__}: {error}")


def _sure(found: Detections | Poses) -> Detections | Poses:
    """What the system is sure of; objects are named by their place among all that it said."""
    if isinstance(found, Poses):
        return found.confident(SURE)
    return replace(found, ids=tuple(str(number) for number in range(len(found)))).confident(SURE)


def _zones_of_truth(case: Case, given: Input, how: Literal["masks", "boxes"]) -> Zones | NotApplicable:
    """Zones from annotated objects: one per class, `object` for all of them, and `background`."""
    truth = case.truth
    if not isinstance(truth, Detections):
        return NotApplicable("this dataset has no annotated objects to take zones from")
    if how == "masks" and truth.masks is None:
        return NotApplicable("this dataset has no masks; --zones boxes takes its boxes")
    width, height = given.size
    labels = np.zeros((height, width), np.uint8)
    classes = sorted(set(truth.labels))[:254]
    # large objects first, so that small ones in front of them keep their pixels
    order = np.argsort([-np.prod(box[2:] - box[:2]) for box in truth.boxes], kind="stable")
    for number in order:
        if truth.labels[number] not in classes:
            continue
        value = 1 + classes.index(truth.labels[number])
        if how == "masks":
            assert truth.masks is not None
            labels[truth.masks[number]] = value
        else:
            x0, y0, x1, y1 = np.rint(truth.boxes[number]).astype(int)
            labels[max(y0, 0) : max(y1, 0), max(x0, 0) : max(x1, 0)] = value
    values = range(1, len(classes) + 1)
    return Zones(
        labels,
        {
            "background": (0,),
            "object": tuple(values),
            **{name: (value,) for name, value in zip(classes, values, strict=True)},
        },
    )
