"""Training, validation and test set must not share an image."""

from __future__ import annotations

from collections.abc import Mapping

from instar.case import read_input
from instar.datasets import Dataset
from instar.image import Image
from instar.outputs.detections import Detections


def check_disjoint(sets: Mapping[str, Dataset]) -> None:
    """Raise where two sets hold the same pixels, under whatever name, and where one has no labels.

    An image that is in the training set twice is the user's own affair; in two sets it makes every measure worthless.
    """
    seen: dict[str, tuple[str, str]] = {}
    shared: list[str] = []
    for name, data in sets.items():
        for case in data.cases():
            image, _ = read_input(case)
            if not isinstance(image, Image):
                raise ValueError(f"{data.name}: case {case.id!r} is a {image.kind}; a repair needs images")
            if not isinstance(case.truth, Detections):
                raise ValueError(f"{data.name}: case {case.id!r} has no annotated objects; a repair needs labels")
            where, other = seen.setdefault(image.content_hash(), (name, case.id))
            if where != name:
                shared.append(f"{case.id} of {name} is {other} of {where}")
    if shared:
        more = f", and {len(shared) - 3:,} more" if len(shared) > 3 else ""
        raise ValueError(
            f"the sets overlap in {len(shared):,} image{'s' * (len(shared) > 1)}: "
            f"{'; '.join(shared[:3])}{more}. Numbers on images that were trained on say nothing"
        )
