"""What changes the semantic map of a scene, or the past of its person. The person stays where they are now."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from instar.outputs.forecast import Forecast
from instar.scene import Scene
from instar.spelling import Parameter, Scale
from instar.transforms.change import Change
from instar.transforms.family import Needs, NotApplicable, TransformationFamily
from instar.warp import Warp

_CORNERS = 12
_LEAST_PATH = 4.0
"""Pixels: on a shorter path there is no place for an obstacle that is not on the person."""


def class_change(scene: Scene, needs: Needs, rng: np.random.Generator, *, old: str, new: str) -> tuple[Scene, Change]:
    if old == new:
        raise NotApplicable(f"{old} becomes {new}: nothing would change")
    mask = scene.mask(old)
    if not mask.any():
        raise NotApplicable(f"this map has no cell of class {old} (it knows {', '.join(scene.names)})")
    return _filled(scene, mask, new), Change(
        Warp.identity(scene.size), added=(new,), removed=(old,), mask=mask, facts={"ground": scene.ground}
    )


def obstacle(
    scene: Scene, needs: Needs, rng: np.random.Generator, *, new: str, size: float, distance: float
) -> tuple[Scene, Change]:
    source = needs["source"]
    if not isinstance(source, Forecast):
        raise NotApplicable(f"an obstacle stands on a predicted path; the source output is {source.kind}")
    path = np.concatenate([scene.position[None], source.medoid])
    steps = np.linalg.norm(np.diff(path, axis=0), axis=1)
    length = float(steps.sum())
    if length < _LEAST_PATH:
        raise NotApplicable(
            f"the future in the middle of all predicted ones is {length:.1f} pixels long: the person hardly moves in "
            "it, and an obstacle stands on a path"
        )
    centre, radius = _along(path, steps, distance * length), size * length / 2
    corners = _twelve_gon(centre, radius)
    mask = _inside_convex(corners, scene.size) & ~scene.mask(new)
    if not mask.any():
        raise NotApplicable("the obstacle would cover no cell of the map that is not an obstacle already")
    if _holds(corners, scene.position):
        raise NotApplicable("the obstacle would stand on the person")
    (x0, y0), (x1, y1) = corners.min(0), corners.max(0)
    box = (float(x0), float(y0), float(x1), float(y1))
    return _filled(scene, mask, new), Change(
        Warp.identity(scene.size),
        (box,),
        added=(new,),
        mask=mask,
        facts={"x": float(centre[0]), "y": float(centre[1]), "radius": radius, "ground": scene.ground},
    )


def turn_past(scene: Scene, needs: Needs, rng: np.random.Generator, *, degrees: float) -> tuple[Scene, Change]:
    steps = np.diff(scene.past, axis=0)
    walked, gone = float(np.linalg.norm(steps, axis=1).sum()), float(np.linalg.norm(steps.sum(0)))
    if gone < _LEAST_PATH or gone < walked / 2:
        raise NotApplicable(
            f"the person walked {walked:.1f} pixels and got {gone:.1f} pixels away: there is no way they came"
        )
    way = Warp.rotation(scene.size, degrees, (0.0, 0.0)).points(scene.past - scene.position)
    turned = replace(scene, past=scene.position + way)
    return turned, Change(Warp.identity(scene.size), facts={"degrees": degrees})


def _filled(scene: Scene, mask: npt.NDArray[np.bool_], name: str) -> Scene:
    """The scene with these cells of another class, which the map may not have known before."""
    names = scene.names if name in scene.names else (*scene.names, name)
    if len(names) > 256:
        raise NotApplicable(f"the map has 256 classes already, there is no number for {name}")
    classes = np.where(mask, np.uint8(names.index(name)), scene.classes)
    return replace(scene, classes=classes, names=names)


def _along(path: npt.NDArray[np.float64], steps: npt.NDArray[np.float64], way: float) -> npt.NDArray[np.float64]:
    """The point of a path after so much of its length."""
    walked = np.concatenate([[0.0], np.cumsum(steps)])
    return np.array([np.interp(way, walked, path[:, axis]) for axis in (0, 1)])


def _twelve_gon(centre: npt.NDArray[np.float64], radius: float) -> npt.NDArray[np.float64]:
    """The corners of a regular 12-gon that looks the same after a quarter turn or in a mirror."""
    angles = (np.arange(_CORNERS) + 0.5) * 2 * np.pi / _CORNERS
    return np.asarray(centre + radius * np.stack([np.cos(angles), np.sin(angles)], 1))


def _holds(corners: npt.NDArray[np.float64], point: npt.NDArray[np.float64]) -> bool:
    edge, reach = np.roll(corners, -1, 0) - corners, point - corners
    return bool((edge[:, 0] * reach[:, 1] - edge[:, 1] * reach[:, 0] >= 0).all())


def _inside_convex(corners: npt.NDArray[np.float64], size: tuple[int, int]) -> npt.NDArray[np.bool_]:
    """The cells whose centre lies in a convex polygon."""
    mask = np.zeros(size[::-1], bool)
    (x0, y0), (x1, y1) = (
        np.clip(np.floor(corners.min(0)).astype(int), 0, size),
        np.clip(np.ceil(corners.max(0)).astype(int), 0, size),
    )
    x, y = np.arange(x0, x1) + 0.5, (np.arange(y0, y1) + 0.5)[:, None]
    part = np.ones((max(0, y1 - y0), max(0, x1 - x0)), bool)
    for (ax, ay), (bx, by) in zip(corners, np.roll(corners, -1, 0), strict=True):
        part &= (bx - ax) * (y - ay) - (by - ay) * (x - ax) >= 0
    mask[y0:y1, x0:x1] = part
    return mask


# fmt: off
FAMILIES = (
    TransformationFamily("class_change", "scene", "general", class_change, (
        Parameter("old", "text", help="the class whose cells change"),
        Parameter("new", "text", help="what they become"),
    ), help="Every cell of one class becomes another.",
        inputs=("scene",), words="{old} becomes {new}"),
    TransformationFamily("obstacle", "scene", "general", obstacle, (
        Parameter("new", "text", "structure", help="what it is made of: structure, tree, or a class of your map"),
        Parameter("size", "float", 0.25, low=0, open_low=True, high=2, ordered=True,
                  help="its diameter, as a share of the predicted path's length", scale=Scale(0, above=2)),
        Parameter("distance", "float", 0.5, low=0, open_low=True, high=1.5, ordered=True,
                  help="how far along the predicted path, as a share of its length"),
    ),
        help="A 12-gon of structure or tree stands on the predicted path: the medoid of the source's futures.",
        needs=("source",), inputs=("scene",),
        words="{new} on the predicted path, {distance:%} along it, {size:%} of its length wide"),
    TransformationFamily("turn_past", "scene", "general", turn_past, (
        Parameter("degrees", "float", 180, low=-360, high=360, ordered=True, help="counter-clockwise as seen",
                  scale=Scale(0, -180, 180)),
    ),
        help="The past is turned about where the person is now, the map is not: they came from elsewhere, and walk on "
             "another way. It goes with the relation follows.", inputs=("scene",),
        words="the past turned by {degrees:°} about where the person is now"),
)
# fmt: on
