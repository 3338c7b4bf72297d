"""Systems with one fault each: the perfect system's answer, spoilt.

A fault is in the system, which sees nothing but the picture: what it does wrong depends on the map from the
scene that it found there, or on the picture's colours, light and blur.
"""

from __future__ import annotations

import colorsys
import math
from collections.abc import Callable

import numpy as np

from instar import Poses
from tests.perfect.scenes import View, carried, exchanged, glow, luma_of

# --- what a system may notice ----------------------------------------------------------------------


def _light(view: View) -> float:
    """The level of the grey card, which is 90 in the scene."""
    return float(view.colour("grey").mean())


def dark(view: View) -> bool:
    return _light(view) < 60


def bright(view: View) -> bool:
    return _light(view) > 140


def turned(view: View) -> float:
    """Degrees that the scene was rotated by; 0 for every other map, and for half a turn."""
    linear = view.matrix[:2, :2]
    if view.mirrored or not np.allclose(linear @ linear.T, np.eye(2), atol=1e-3):
        return 0.0
    degrees = math.degrees(math.atan2(linear[0, 1], linear[0, 0]))
    return degrees if 1 < abs(degrees) < 90 else 0.0


def scale(view: View) -> float:
    return math.sqrt(abs(np.linalg.det(view.matrix)))


def streak(view: View) -> float:
    """How much longer than wide a mark has become: its two variances' difference, in square pixels."""
    back = np.linalg.inv(view.matrix)
    light, across, down = glow(luma_of(view.pixels), view.matrix, back, view.scene.marks[0])
    xx, yy, xy = ((light * product).sum() for product in (across**2, down**2, across * down))
    return math.hypot(xx - yy, 2 * xy)


def _shirt(view: View) -> tuple[float, float]:
    """Hue in degrees and saturation of the clothes."""
    hue, saturation, _ = colorsys.rgb_to_hsv(*view.colour("clothes") / 255)
    return 360 * hue, saturation


def _named(view: View, *names: str) -> list[int]:
    """The landmarks of some parts or names."""
    return [number for _, chosen in view.scene.bones.select(",".join(names)) for number in chosen]


# --- left and right --------------------------------------------------------------------------------


def never_exchanges(view: View) -> Poses:
    return view.answer(carried(view.matrix, view.scene.points))


def exchanges_for_any_flip(view: View) -> Poses:
    """Also for two flips, which are half a turn."""
    order = exchanged(view.scene.bones) if min(np.diag(view.matrix)[:2]) < 0 else slice(None)
    return view.answer(carried(view.matrix, view.scene.points[:, order]))


def names_by_the_picture(view: View) -> Poses:
    """What is further right in the picture is called left, as for everybody who stands and faces us."""
    points = view.points.copy()
    other = exchanged(view.scene.bones)
    for left, name in enumerate(view.scene.bones.landmarks):
        if name.startswith("left_"):
            wrong = points[:, left, 0] < points[:, other[left], 0]
            right = other[left]
            here, there = np.array([left, right]), np.array([right, left])
            points[np.ix_(wrong, here)] = points[np.ix_(wrong, there)]
    return view.answer(points)


def hands_exchanged(view: View) -> Poses:
    points = view.points.copy()
    left, right = _named(view, "left_hand"), _named(view, "right_hand")
    points[:, left + right] = points[:, right + left]
    return view.answer(points)


def hands_exchanged_in_the_dark(view: View) -> Poses:
    return hands_exchanged(view) if dark(view) else view.answer()


def no_right_hand_in_a_mirror(view: View) -> Poses:
    points = view.points.copy()
    if view.mirrored:
        points[:, _named(view, "right_hand")] = np.nan
    return view.answer(points)


# --- geometry --------------------------------------------------------------------------------------


def _rotation(degrees: float, x: float, y: float) -> np.ndarray:
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return np.array([[c, s, x - c * x - s * y], [-s, c, y + s * x - c * y], [0, 0, 1]])


def rotates_about_another_centre(view: View) -> Poses:
    """The middle with x and y exchanged."""
    degrees, (width, height) = turned(view), view.size
    if not degrees:
        return view.answer()
    return view.answer(carried(_rotation(degrees, height / 2, width / 2), view.scene.points))


def rotates_in_unit_coordinates(view: View) -> Poses:
    degrees, size = turned(view), np.array(view.size)
    if not degrees:
        return view.answer()
    return view.answer(carried(_rotation(degrees, 0.5, 0.5), view.scene.points / size) * size)


def half_a_pixel_off(view: View) -> Poses:
    return view.answer(view.points + 0.5)


def x_and_y_exchanged(view: View) -> Poses:
    return view.answer(view.points[..., ::-1])


def answers_in_its_own_size(view: View) -> Poses:
    """In pixels of the picture resized to what a network takes, and never carried back."""
    return view.answer(view.points * np.array(view.scene.size) / np.array(view.size))


def on_a_grid_of_the_frame(view: View) -> Poses:
    """The middle of the nearest of 40 × 30 cells, whatever the picture's size: a heat map's best cell."""
    cell = np.array(view.size) / (40, 30)
    return view.answer((np.floor(view.points / cell) + 0.5) * cell)


def on_a_grid_of_pixels(view: View) -> Poses:
    """The middle of a cell of 8 × 8 pixels: a heat map of stride 8."""
    return view.answer((np.floor(view.points / 8) + 0.5) * 8)


def wrong_when_small(view: View) -> Poses:
    return view.answer(view.points + (16 * scale(view) if scale(view) < 0.45 else 0))


# --- light, blur, colour ---------------------------------------------------------------------------


def drifts_with_the_light(view: View) -> Poses:
    """0.2 pixels to the right for each grey level."""
    return view.answer(view.points + np.array([0.2 * (_light(view) - 90), 0]))


def drawn_along_a_streak(view: View) -> Poses:
    return view.answer(view.points + (12 if streak(view) > 1.7 else 0))


def nobody_without_fine_texture(view: View) -> Poses:
    """Relies on stripes of single pixels, which filters take away; turned pictures still show them."""
    x, y = (int(at) for at in carried(view.matrix, np.array(view.scene.places["weave"])))
    reach = max(1, int(7 * scale(view)))
    luma = luma_of(view.pixels)
    texture = np.ptp(luma[max(y - reach, 0) : y + reach, max(x - reach, 0) : x + reach]) / np.ptp(luma)
    return view.answer() if texture > 0.012 else view.answer(np.empty(0))


def nobody_in_another_shirt(view: View) -> Poses:
    hue, saturation = _shirt(view)
    return view.answer() if saturation > 0.05 and abs(hue - 214) < 20 else view.answer(np.empty(0))


def nobody_of_another_skin(view: View) -> Poses:
    """The skin beside a card of its colour: other light changes both, another skin only one of them."""
    strange = np.abs(view.colour("skin") - view.colour("card")).max() > 5
    return view.answer(np.empty(0)) if strange else view.answer()


# --- subjects and landmarks ------------------------------------------------------------------------


def loses_somebody_in_the_dark(view: View) -> Poses:
    return view.answer(np.delete(view.points, 1, 0)) if dark(view) else view.answer()


def sees_a_ghost_in_the_light(view: View) -> Poses:
    points = view.points
    return view.answer(np.concatenate([points, points[:1] + 40])) if bright(view) else view.answer()


def sees_double_when_large(view: View) -> Poses:
    points = view.points
    return view.answer(np.concatenate([points, points[1:2] + 1])) if scale(view) > 1.1 else view.answer()


def in_another_order(view: View) -> Poses:
    """No fault: nobody promised an order of subjects."""
    return view.answer(np.roll(view.points, 1, 0) if view.mirrored or dark(view) else view.points)


def no_left_wrist_without_colour(view: View) -> Poses:
    points = view.points.copy()
    if _shirt(view)[1] < 0.05:
        points[:, _named(view, "left_wrist")] = np.nan
    return view.answer(points)


def unsure_along_a_streak(view: View) -> Poses:
    return view.answer(scores=[0.2 if streak(view) > 1.7 else 0.9])


def legs_hardly_visible_in_the_dark(view: View) -> Poses:
    points = view.points
    visibility = np.ones(points.shape[:2])
    if dark(view):
        visibility[:, _named(view, "legs")] = 0.2
    return Poses.from_array(points, skeleton=view.scene.bones, visibility=visibility)


def jittery() -> Callable[[View], Poses]:
    rng = np.random.default_rng(0)

    def answer(view: View) -> Poses:
        return view.answer(view.points + rng.normal(0, 1, view.points.shape))

    return answer


# --- what the middle, the border and the letterbox do ----------------------------------------------


def leans_on_the_middle(view: View) -> Poses:
    """Half of the way from where the scene's middle is to the middle of the frame."""
    middle = carried(view.matrix, np.array(view.scene.size) / 2)
    return view.answer(view.points + (np.array(view.size) / 2 - middle) / 2)


def _aspect(view: View) -> float:
    """Width by height of the frame, of that of the scene's."""
    return view.size[0] / view.size[1] * view.scene.size[1] / view.scene.size[0]


def letterbox_of_thirty_pixels(view: View) -> Poses:
    """The border that makes the frame 4 : 3 is never taken off, and is always thirty pixels wide."""
    aspect = _aspect(view)
    border = (30 if aspect < 0.99 else 0, 30 if aspect > 1.01 else 0)
    return view.answer(view.points + np.array(border))


def aspect_ignored(view: View) -> Poses:
    """Squeezed to the shape of the scene before it is looked at, and stretched back by the height alone."""
    return view.answer(view.points * np.array([1 / _aspect(view), 1]))


def border_not_taken_off(view: View) -> Poses:
    """Cuts black borders off, and forgets that."""
    offset = np.clip(view.matrix[:2, 2], 0, None)
    plain = np.allclose(view.matrix[:2, :2], np.eye(2), atol=1e-3)
    return view.answer(view.points - (offset if plain else 0))


def nobody_at_the_border(view: View) -> Poses:
    edge = ((view.points < 4) | (view.points > np.array(view.size) - 4)).any()
    return view.answer(np.empty(0)) if edge else view.answer()


def always_in_the_same_place(view: View) -> Poses:
    return view.answer(view.scene.points)


def mean_pose_of_the_frame(view: View) -> Poses:
    """Has never looked at an image: the same pose in shares of the frame."""
    return view.answer(view.scene.points * np.array(view.size) / np.array(view.scene.size))


def place_not_mirrored(view: View) -> Poses:
    """Left and right change their names, and nothing moves."""
    return view.answer(view.scene.points[:, exchanged(view.scene.bones)]) if view.mirrored else view.answer()


def nobody_who_leans(view: View) -> Poses:
    return view.answer(np.empty(0)) if abs(turned(view)) > 20 else view.answer()


# --- single parts ----------------------------------------------------------------------------------


def _with_parts(view: View, points: np.ndarray, *names: str) -> Poses:
    """The right answer, with some landmarks taken from elsewhere."""
    parts = _named(view, *names)
    own = view.points.copy()
    own[:, parts] = points[:, parts]
    return view.answer(own)


def ankles_not_exchanged(view: View) -> Poses:
    return _with_parts(view, carried(view.matrix, view.scene.points), "left_ankle", "right_ankle")


def ears_not_exchanged(view: View) -> Poses:
    return _with_parts(view, carried(view.matrix, view.scene.points), "left_ear", "right_ear")


LIMBS = ("left_elbow", "right_elbow", "left_wrist", "right_wrist", "left_knee", "right_knee", "left_ankle")


def limbs_of_somebody_else_in_the_dark(view: View) -> Poses:
    return _with_parts(view, view.points[[1, 0, 2]], *LIMBS) if dark(view) else view.answer()


def _without(view: View, *names: str) -> Poses:
    return _with_parts(view, np.full_like(view.points, np.nan), *names)


def no_legs_when_small(view: View) -> Poses:
    legs = ("left_knee", "right_knee", "left_ankle", "right_ankle")
    return _without(view, *legs) if scale(view) < 0.45 else view.answer()


def no_arms_without_colour(view: View) -> Poses:
    arms = ("left_elbow", "right_elbow", "left_wrist", "right_wrist")
    return _without(view, *arms) if _shirt(view)[1] < 0.05 else view.answer()


def legs_appear_in_the_light(view: View) -> Poses:
    legs = ("left_knee", "right_knee", "left_ankle", "right_ankle")
    return view.answer() if bright(view) else _without(view, *legs)


# --- whole people ----------------------------------------------------------------------------------


def in_one_place_along_a_streak(view: View) -> Poses:
    points = view.points
    return view.answer(np.broadcast_to(points.mean(1, keepdims=True), points.shape) if streak(view) > 1.7 else points)


def in_one_place_except_along_a_streak(view: View) -> Poses:
    points = view.points
    return view.answer(points if streak(view) > 1.7 else np.broadcast_to(points.mean(1, keepdims=True), points.shape))


def sees_double_in_the_dark(view: View) -> Poses:
    points = view.points
    return view.answer(np.concatenate([points, points[:1] + 2])) if dark(view) else view.answer()


def two_become_one_in_the_dark(view: View) -> Poses:
    points = view.points
    both = np.concatenate([points[:2].mean(0, keepdims=True), points[2:]])
    return view.answer(both if dark(view) else points)


def unsure_in_the_dark(view: View) -> Poses:
    return view.answer(scores=[0.45 if dark(view) else 0.9])


def upside_down_in_the_light(view: View) -> Poses:
    points = view.points
    return view.answer(2 * points.mean(1, keepdims=True) - points if bright(view) else points)


def exchanged_in_the_dark(view: View) -> Poses:
    return view.answer(view.points[:, exchanged(view.scene.bones)]) if dark(view) else view.answer()


def _rough(view: View) -> float:
    """How much the grey card, which is one level all over, differs from itself."""
    x, y = (int(at) for at in carried(view.matrix, np.array(view.scene.places["grey"])))
    reach = max(1, int(8 * scale(view)))
    return float(luma_of(view.pixels)[y - reach : y + reach, x - reach : x + reach].std())


def nobody_in_grain(view: View) -> Poses:
    return view.answer(np.empty(0)) if _rough(view) > 6 else view.answer()


def a_ghost_in_grain(view: View) -> Poses:
    points = view.points
    return view.answer(np.concatenate([points, points + 60])) if _rough(view) > 6 else view.answer()


def drawn_to_blocks(view: View) -> Poses:
    """Compression leaves seams between blocks of 8 × 8 pixels, where flat colours met edges."""
    steps = np.abs(np.diff(luma_of(view.pixels), axis=1))
    seams, others = steps[:, 7::8], np.delete(steps, np.s_[7::8], 1)
    blocks = seams[seams < 12].mean() / others[others < 12].mean() > 1.6
    return view.answer(view.points + (25 if blocks else 0))
