"""Needs: what a transformation needs besides the input, and who provides it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

import numpy as np

from instar.case import Case, Input
from instar.files import path_of, path_text
from instar.outputs import Output, output_kind, output_kinds
from instar.outputs.detections import Detections
from instar.outputs.zones import Zones, segmenter_words
from instar.pool import Pool, read_pool
from instar.registry import NotLoaded
from instar.secrets import without_secrets
from instar.systems import System, system, systems
from instar.transforms import NotApplicable

Need = Output | Pool
"""What a need may be."""

SURE = 0.5
"""The score from which what a system finds stands in for what is not annotated."""

_NO_PROVIDER = {
    "objects": "no objects are annotated here, and there is no detector to find them; `instar models pull "
    "efficientdet-lite0` gets one, or name your own as `objects`",
    "landmarks": "no landmarks are annotated here, and no system that finds them was asked; a run asks yours, a "
    "preview the one named as `system`",
    "pool": "there is no pool of objects to insert; `instar pool make` makes one, and its folder is named as `pool`",
    "source": "it depends on what the system says of the source, and none was asked; a run asks yours, a preview the "
    "one named as `system`",
}


def with_source(needs: frozenset[str], case: Case | None, kind: str) -> frozenset[str]:
    """What is needed, and the source output of that kind where it stands in for what the case does not have.

    Without a case: where it may.
    """
    need = output_kind(kind).need
    annotated = case is not None and _meets(need, case.truth)
    return needs | {"source"} if need in needs and not annotated else needs


def lost_needs(needs: frozenset[str], case: Case) -> frozenset[str]:
    """Of needs that follow-ups of a case were made with, and that the run folder does not hold, those that it must have
    held: what is annotated is stored with the case."""
    return frozenset(need for need in needs if not _meets(need, case.truth))


def _meets(need: str | None, output: object) -> bool:
    return output is not None and need is not None and getattr(output, "need", None) == need


@dataclass(frozen=True, slots=True, eq=False)
class Provider:
    """Who provides a need: a system, a pool, or the dataset's own masks or boxes."""

    name: str
    fingerprint: str
    source: System | Pool | Literal["masks", "boxes"]

    @property
    def parts(self) -> dict[str, str]:
        """What determines what it provides, by name, as far as that is known."""
        return dict(self.source.identity.parts) if isinstance(self.source, System) else {}


def provider(need: str, name: str) -> Provider:
    """Who provides a need, by name; raises ValueError where it cannot."""
    if need == "pool":
        folder = path_of(name)
        pool = read_pool(folder)
        return Provider(path_text(str(Path(folder).resolve())), pool.fingerprint, pool)
    if need == Zones.need and name in ("masks", "boxes"):
        return Provider(name, f"dataset-{name}", name)  # type: ignore[arg-type]
    kinds = [kind.kind for kind in output_kinds().values() if kind.need == need]
    if not kinds:
        raise ValueError(f"nobody can provide {need}: it comes with the case")
    loaded = system(name)
    if loaded.kind not in kinds:
        raise ValueError(
            f"{name} answers with {loaded.kind}; who provides {need} is a system that answers with {' or '.join(kinds)}"
        )
    return Provider(loaded.name, loaded.fingerprint, loaded)


def stored_provider(need: str, name: str) -> str:
    """The provider that a file names, if it may work unasked: a pool, annotations, or a system that comes with Instar
    or an installed package, as it is. Programs, services, files and functions are named by the user."""
    if need == "pool" or name in ("masks", "boxes") or name in systems():
        return name
    raise NotLoaded(
        f"{need} came from {name}, which is not loaded or started because a file names it; "
        f"name it again as `{need}`, or give `trust`"
    )


def is_stored(who: Provider, value: Need | NotApplicable, case: Case) -> bool:
    """Whether a need is stored for itself. Truth is stored with its case, the source output with the predictions, and
    a pool is a folder of its own."""
    return value is not case.truth and not isinstance(who.source, Pool)


def no_provider(need: str) -> str:
    """Why a need cannot be had when nobody provides it."""
    if need == "zones":
        return f"there is no segmenter for zones; {segmenter_words()}, or name your own as `zones`"
    return _NO_PROVIDER.get(need, f"this case has no {need}")


def provided(
    need: str, who: Provider | None, case: Case, source: Input, answer: Output | NotApplicable | None = None
) -> Need | NotApplicable:
    """The need of one case, or the reason why it cannot be had. `answer` is the source output, where it is known.

    What is annotated goes before what somebody finds, and that before what the system itself says of the source.
    """
    if need == "truth":
        return NotApplicable("this dataset has no ground truth") if case.truth is None else cast(Output, case.truth)
    if _meets(need, case.truth):
        return cast(Output, case.truth)
    if who is None:
        if answer is not None and not isinstance(answer, NotApplicable) and _meets(need, answer):
            return _sure(answer)
        return answer if isinstance(answer, NotApplicable) else NotApplicable(no_provider(need))
    if isinstance(who.source, Pool):
        return who.source
    try:
        if isinstance(who.source, System):
            provision = who.source.answer([source], [0])[0]
            if isinstance(provision, Exception):
                return NotApplicable(without_secrets(f"{who.name}: {provision}"))
            return _sure(provision)
        return _zones_of_truth(case, source, who.source)
    except Exception as error:
        return NotApplicable(without_secrets(f"{who.name} failed: {type(error).__name__}: {error}"))


def _sure(answer: Output) -> Output:
    """What the system is sure of; objects are named by their place among all that it said."""
    if isinstance(answer, Detections):
        answer = replace(answer, ids=tuple(str(number) for number in range(len(answer))))
    return answer.confident(SURE)


def _zones_of_truth(case: Case, source: Input, how: Literal["masks", "boxes"]) -> Zones | NotApplicable:
    """Zones from annotated objects: one per class, `object` for all of them, and `background`."""
    truth = case.truth
    if not isinstance(truth, Detections):
        return NotApplicable("this dataset has no annotated objects to take zones from")
    if how == "masks" and truth.masks is None:
        return NotApplicable("this dataset has no masks; `boxes` as the provider of `zones` takes its boxes")
    width, height = source.size
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
    named = {name: (value,) for name, value in zip(classes, values, strict=True)}
    return Zones(labels, {"background": (0,), "object": tuple(values), **named})
