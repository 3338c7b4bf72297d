"""Occlusion: something lies over what the system should find. Every point stays where it was."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import numpy as np

from instar.image import Image
from instar.outputs.poses import Poses
from instar.spelling import Parameter, Scale
from instar.transforms.change import Change
from instar.transforms.colour import FILL
from instar.transforms.family import NO_CHANCE, Needs, NotApplicable, TransformationFamily
from instar.transforms.region import BY, ONLY, RATIO, By, cells_inside, object_parts, part_words
from instar.warp import Warp

_FINGERS = {
    "thumb": "thumb",
    "index": "index_finger",
    "middle": "middle_finger",
    "ring": "ring_finger",
    "little": "pinky",
}
"""Fingers, and what skeletons call their groups of four landmarks."""


def discs(image: Image, needs: Needs, rng: np.random.Generator, *, n: int, radius: float) -> tuple[Image, Change]:
    poses = _poses(needs)
    count = len(poses.skeleton.landmarks)
    if n > count:
        raise NotApplicable(f"the skeleton {poses.skeleton.name} has {count} landmarks, not {n}")
    return _covered(image, poses, range(n), radius)


def finger_discs(
    image: Image, needs: Needs, rng: np.random.Generator, *, finger: str, radius: float, wrist: bool
) -> tuple[Image, Change]:
    poses = _poses(needs)
    bones, group = poses.skeleton, _FINGERS[finger]
    groups = [name for name in bones.groups if name == group or name.endswith(f".{group}")]
    if not groups:
        raise NotApplicable(f"the skeleton {bones.name} has no group {group!r}")
    landmarks = [bones.index(landmark) for name in groups for landmark in bones.groups[name]]
    if wrist:
        landmarks = [bones.index(name) for name in bones.landmarks if name.split(".")[-1] == "wrist"] + landmarks
    return _covered(image, poses, landmarks, radius)


def _poses(needs: Needs) -> Poses:
    poses = needs["landmarks"]
    assert isinstance(poses, Poses)
    return poses


def _covered(image: Image, poses: Poses, landmarks: Iterable[int], radius: float) -> tuple[Image, Change]:
    """Black discs of a radius that counts in 224ths of the image's height; absent landmarks have none."""
    reach = radius * image.size[1] / 224
    places = poses.points[:, list(landmarks)].reshape(-1, 2).astype(np.float64)
    mask = np.zeros(image.size[::-1], np.uint8)
    boxes = []
    for x, y in places[~np.isnan(places).any(1)]:
        cells = cells_inside((x - reach, y - reach, x + reach, y + reach), image.size)
        if cells.empty:
            continue
        across = (np.arange(cells.x0, cells.x1) + 0.5 - x) ** 2
        down = (np.arange(cells.y0, cells.y1) + 0.5 - y) ** 2
        mask[cells.slices] |= across + down[:, None] <= reach * reach
        boxes.append(cells.box)
    if not boxes:
        raise NotApplicable("none of the landmarks to cover is in the image")
    black, _ = FILL.apply(image, {}, NO_CHANCE, {"colour": (0, 0, 0)})
    change = Change(Warp.identity(image.size), regions=tuple(boxes), facts={"discs": len(boxes)})
    return image.covered(cast(Image, black), mask), change


def erase(
    image: Image, needs: Needs, rng: np.random.Generator, *, ratio: float, by: By, only: int
) -> tuple[Image, Change]:
    parts = object_parts(needs["objects"], image.size, ratio, by, only)
    random = Image(rng.integers(0, 256, (*parts.mask.shape, 3), dtype=np.uint8))
    return image.covered(random, parts.mask, parts.field.slices), Change(
        Warp.identity(image.size), regions=parts.boxes, removed=parts.ids, facts={"ratio": ratio, **parts.facts}
    )


def _disc_words(n: int) -> str:
    return "a black disc on the first landmark" if n == 1 else f"black discs on the first {n} landmarks"


def _finger_words(finger: str, wrist: bool) -> str:
    name = finger if finger == "thumb" else f"{finger} finger"
    return f"black discs on the {name}{' and the wrist' if wrist else ''}"


def _erase_words(ratio: float, only: int) -> str:
    return f"{part_words(ratio, only)} erased"


# fmt: off
_RADIUS = Parameter("radius", "float", 10, low=0, open_low=True, high=1000, ordered=True,
    help="in 224ths of the image's height: pixels of FreiHAND's images", scale=Scale(0, above=60, steps="square"))

FAMILIES = (
    TransformationFamily("discs", "occlusion", "general", discs, (
        Parameter("n", "int", low=1, high=10_000, ordered=True, help="how many landmarks, in the skeleton's order",
                  scale=Scale(0, above=40, beside=5)),
        _RADIUS,
    ),
        help="Black discs on the first n landmarks of every subject: the annotated ones, else those that the system "
             "finds in the source.",
        needs=("landmarks",), words=_disc_words),
    TransformationFamily("finger_discs", "occlusion", "general", finger_discs, (
        Parameter("finger", "choice", choices=tuple(_FINGERS), help="which finger"),
        _RADIUS,
        Parameter("wrist", "bool", False, help="whether the wrist is covered too, as in the original's code"),
    ),
        help="Black discs on the four landmarks of one finger of every hand.", needs=("landmarks",),
        words=_finger_words),
    TransformationFamily("erase", "occlusion", "general", erase, (RATIO, BY, ONLY),
        help="Random erase: uniform random pixels over the centred part of every object, or of one. Larger ratios "
             "keep the pixels of smaller ones.", needs=("objects",), random=True,
        words=_erase_words),
)
# fmt: on
