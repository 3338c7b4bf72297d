"""The two baseline walkers: what they predict, and that they follow the changes of a scene exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.outputs.forecast import Forecast
from instar.outputs.heat import HeatMap
from instar.scene import Scene, decode_classes
from instar.spelling import bind, parse_call, spell
from instar.systems.system import System
from instar.tasks.traj_test import constant_velocity, social_force
from instar.warp import Size, Warp, warp_pixels
from tests.missing import shared

NAMES = ("background", "pavement", "road", "structure", "terrain", "tree")
BACKGROUND, PAVEMENT, ROAD, STRUCTURE, TERRAIN, TREE = range(6)
BOTH = ("constant-velocity", "social-force")
EXACT: dict[str, Callable[[Size], Warp]] = {
    "mirror h": lambda size: Warp.mirror(size, "h"),
    "mirror v": lambda size: Warp.mirror(size, "v"),
    "rotate90 1": lambda size: Warp.rotate90(size, 1),
    "rotate90 2": lambda size: Warp.rotate90(size, 2),
    "rotate90 3": lambda size: Warp.rotate90(size, 3),
}


@cache
def walker(spelling: str) -> System:
    call = parse_call(spelling, what="system")
    family = {**constant_velocity.FAMILIES, **social_force.FAMILIES}[call.name]
    values = bind(call, family.parameters, what="system")
    return family.build(spell(family.name, values, family.parameters), **values)


def walk(
    position: tuple[float, float] = (100, 150), velocity: tuple[float, float] = (10, 0), length: int = 8
) -> npt.NDArray[np.float64]:
    """A past of constant velocity that ends at a position."""
    return np.asarray(np.array(position) - np.arange(length - 1, -1, -1.0)[:, None] * np.array(velocity))


def scene(classes: npt.NDArray[np.uint8] | None = None, past: npt.ArrayLike | None = None, **told: Any) -> Scene:
    cells = np.full((300, 400), PAVEMENT, np.uint8) if classes is None else classes
    return Scene(cells, NAMES, walk() if past is None else past, **{"steps": 12, **told})  # type: ignore[arg-type]


def patchwork() -> Scene:
    """Somebody who walks aslant towards blocks of all classes."""
    rng = np.random.default_rng(4)
    blocks = rng.choice(6, (15, 20), p=[0.1, 0.35, 0.2, 0.1, 0.15, 0.1]).astype(np.uint8)
    classes = np.ascontiguousarray(np.kron(blocks, np.ones((20, 20), np.uint8)))
    classes[120:190, 80:160] = PAVEMENT
    return scene(classes, walk((120.3, 150.7), (8.1, -3.7)))


def answer(spelling: str, asked: Scene, seed: int = 0) -> Forecast:
    [found] = walker(spelling).answer([asked], [seed])
    assert isinstance(found, Forecast), found
    return found


def heat(found: Forecast) -> HeatMap:
    assert found.heat is not None
    return found.heat


def futures(spelling: str, asked: Scene, seeds: int = 40) -> npt.NDArray[np.float64]:
    found = walker(spelling).answer([asked] * seeds, range(seeds))
    return np.concatenate([one.futures for one in found]).astype(float)  # type: ignore[union-attr]


def stored(found: Forecast, size: Size) -> Forecast:
    return Forecast.from_row({**found.row(), "width": size[0], "height": size[1]}, found.header())


def hellinger(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> float:
    p, q = (np.asarray(cells, float) / float(np.sum(cells, dtype=float)) for cells in (one, other))
    return float(np.linalg.norm(np.sqrt(p) - np.sqrt(q)) / np.sqrt(2))


def strays(spelling: str, asked: Scene, warp: Warp) -> float:
    """The Hellinger distance between the source's map and the follow-up's, mapped back, both as stored."""
    follow_up = asked.warped(warp)
    ours = heat(stored(answer(spelling, asked), asked.size))
    back = heat(stored(answer(spelling, follow_up), follow_up.size).warped(warp.inverse))
    between = back.warp.then(ours.warp.inverse)
    whole = np.rint(between.matrix)
    if np.allclose(between.matrix, whole, atol=1e-6):  # the two grids lie on each other
        between = Warp(whole, between.source, between.target)
    return hellinger(ours.cells, warp_pixels(back.cells, between))


def mass(found: Forecast, region: npt.NDArray[np.bool_]) -> float:
    """The probability of the map in a region (H, W) of the frame."""
    ours = heat(found)
    rows, columns = np.mgrid[: ours.size[1], : ours.size[0]] + 0.5
    return float(ours.cells[cells_of(region, ours.warp.points(np.stack([columns, rows], -1)))].sum())


def cells_of(region: npt.NDArray[np.bool_], xy: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Whether positions (…, 2) lie in cells of a region; outside of the frame they do not."""
    at = np.floor(xy).astype(int)
    on = np.asarray((at >= 0).all(-1) & (at < region.shape[::-1]).all(-1))
    at = np.where(on[..., None], at, 0)
    return np.asarray(region[at[..., 1], at[..., 0]] & on)


def every(position: npt.NDArray[np.float64], paths: npt.NDArray[Any], apart: float = 0.25) -> npt.NDArray[np.float64]:
    """Positions all along paths (K, T, 2), from where the person is."""
    ends = np.concatenate([np.broadcast_to(position, (len(paths), 1, 2)), paths], 1).astype(float)
    moves = np.diff(ends, axis=1)
    share = np.linspace(0, 1, 2 + int(np.linalg.norm(moves, axis=-1).max() / apart))[:, None]
    return np.asarray((ends[:, :-1, None] + moves[:, :, None] * share).reshape(len(paths), -1, 2))


def crosses(found: Forecast, asked: Scene) -> npt.NDArray[np.bool_]:
    """Which futures touch an obstacle."""
    return np.asarray(cells_of(asked.mask("structure", "tree"), every(asked.position, found.futures)).any(1))


# --- on plain ground -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOTH)
def test_a_straight_walker_goes_on(name: str) -> None:
    paths = futures(name, scene())
    assert paths.shape == (800, 12, 2)
    mean = paths.mean(0)
    steps = np.arange(1, 13)
    assert np.abs(mean[:, 1] - 150).max() < 4  # of a spread of 30
    # headings spread, so the mean lags a little: by 3 % with 15 degrees
    assert mean[:, 0] - 100 == pytest.approx(10 * steps, rel=0.05)
    assert (np.linalg.norm(np.diff(paths, axis=1), axis=-1).std(1) < 1e-3).all()  # each at its own constant speed


@pytest.mark.parametrize("name", BOTH)
def test_the_map_is_where_the_futures_are(name: str) -> None:
    asked = scene()
    found = heat(answer(name, asked))
    assert found.cells.sum() == pytest.approx(1, abs=1e-5)
    rows, columns = np.mgrid[: found.size[1], : found.size[0]] + 0.5
    places = found.warp.points(np.stack([columns, rows], -1)).reshape(-1, 2)
    share = found.cells.ravel().astype(float)
    centre = share @ places
    spread = (share * ((places - centre) ** 2).T) @ np.ones(len(places))
    walked = every(asked.position, futures(name, asked), 1.0).reshape(-1, 2)
    assert centre == pytest.approx(walked.mean(0), abs=2)
    assert np.sqrt(spread) == pytest.approx(walked.std(0), rel=0.1)


def test_the_noise_is_what_was_asked_for() -> None:
    ends = futures("constant-velocity(samples=200, heading=5, speed=0.1)", scene())[:, -1] - (100, 150)
    heading = np.degrees(np.arctan2(ends[:, 1], ends[:, 0]))
    assert (heading.mean(), heading.std()) == (pytest.approx(0, abs=0.2), pytest.approx(5, rel=0.05))
    speed = np.linalg.norm(ends, axis=1) / 120
    assert (speed.mean(), speed.std()) == (pytest.approx(1, abs=0.01), pytest.approx(0.1, rel=0.05))


@pytest.mark.parametrize("name", BOTH)
def test_without_noise_there_is_one_future(name: str) -> None:
    found = answer(f"{name}(samples=3, heading=0, speed=0)", scene())
    straight = np.stack([100 + 10 * np.arange(1, 13), np.full(12, 150)], 1)
    assert found.futures == pytest.approx(np.stack([straight] * 3), abs=1e-3)


@pytest.mark.parametrize("name", BOTH)
def test_the_last_three_steps_count(name: str) -> None:
    past = np.concatenate([walk((70, 50), (0, 10), 5), [[80, 50], [90, 50], [100, 50]]])
    paths = answer(f"{name}(samples=1, heading=0, speed=0)", scene(past=past)).futures[0]
    assert paths[-1] == pytest.approx([220, 50], abs=1e-3)


def test_constant_velocity_does_not_look_at_the_map() -> None:
    walled = np.full((300, 400), STRUCTURE, np.uint8)
    one, other = answer("constant-velocity", scene()), answer("constant-velocity", scene(walled))
    assert np.array_equal(one.futures, other.futures)
    assert np.array_equal(heat(one).cells, heat(other).cells)


@pytest.mark.parametrize("name", BOTH)
def test_who_stands_stays(name: str) -> None:
    asked = scene(past=walk(velocity=(0, 0)))
    found = answer(name, asked)
    assert np.array_equal(found.futures, np.broadcast_to([100.0, 150.0], (20, 12, 2)))
    near = np.hypot(*(np.indices((300, 400)) + 0.5 - np.array([150, 100])[:, None, None])) < 5
    assert mass(found, near) > 0.99


@pytest.mark.parametrize("name", BOTH)
def test_one_past_position_is_not_enough(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} needs two past positions, this scene has one"):
        walker(f"{name}(samples=5)").answer([scene(past=[[5, 5]])], [0])


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize(
    ("size", "past", "steps"),
    [
        ((1, 1), [[0.2, 0.2], [0.5, 0.5]], 12),
        ((1, 1), [[0, 0], [9e5, 1e5]], 12),  # leaps over a map
        ((400, 300), walk((399.5, 299.5)), 12),  # at the edge, and beyond it
        ((400, 300), walk((1000, -500)), 12),
        ((400, 300), walk((200, 150)), 1),
        ((400, 300), walk((200, 150), length=2), 30),
        ((400, 300), walk((200, 150), (0.001, 0)), 12),
        ((3, 2000), walk((1.5, 1000), (0, 60)), 12),
    ],
)
@pytest.mark.parametrize("filled", [PAVEMENT, TREE])
def test_odd_scenes(name: str, size: Size, past: npt.ArrayLike, steps: int, filled: int) -> None:
    asked = scene(np.full(size[::-1], filled, np.uint8), past, steps=steps)
    found = answer(name, asked)
    assert found.futures.shape == (20, steps, 2)
    assert np.isfinite(found.futures).all()
    assert heat(found).warp.target == size
    found.shapes()


# --- seeds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOTH)
def test_seeds(name: str) -> None:
    asked, other = patchwork(), scene()
    together = walker(name).answer([asked, asked, other, asked, asked], [1, 2, 1, 1, 3])
    one, two, _, again, three = (found.futures for found in together)  # type: ignore[union-attr]
    assert np.array_equal(one, again)
    assert not np.array_equal(one, two) and not np.array_equal(two, three)
    assert np.array_equal(three, answer(name, patchwork(), 3).futures)  # alone, and of an equal scene
    assert np.array_equal(heat(together[0]).cells, heat(together[4]).cells)  # type: ignore[arg-type]


def test_the_spelling_is_in_the_fingerprint() -> None:
    prints = {walker(s).fingerprint for s in (*BOTH, "social-force(preference=0)", "constant-velocity(samples=5)")}
    assert len(prints) == 4
    assert walker("social-force(preference=3)").fingerprint == walker("social-force").fingerprint
    assert all(not walker(s).deterministic and walker(s).seedable and walker(s).takes == "scene" for s in BOTH)


# --- equivariance ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("change", EXACT)
def test_maps_follow_mirrors_and_quarter_turns_exactly(name: str, change: str) -> None:
    asked = patchwork()
    assert strays(name, asked, EXACT[change](asked.size)) < 1e-6


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("factor", [0.8, 1.2])
def test_maps_follow_a_rescaled_scene(name: str, factor: float) -> None:
    asked = patchwork()
    # 0.8 and 1.2 of 400 × 300 are whole pixels; the class map of social-force is resampled to the nearest cell
    assert strays(name, asked, Warp.scale(asked.size, factor, factor)) < (1e-6 if name == BOTH[0] else 0.03)


@pytest.mark.parametrize("name", BOTH)
def test_maps_follow_a_turn_by_any_angle(name: str) -> None:
    asked = scene(past=walk((200, 150), (5, 2)))
    assert strays(name, asked, Warp.rotation(asked.size, 33)) < 1e-6


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("velocity", [(0, 0), (0.1, 0.05), (1, 2)])
def test_maps_of_the_slow_are_rescaled_too(name: str, velocity: tuple[float, float]) -> None:
    asked = scene(past=walk(velocity=velocity))
    assert strays(name, asked, Warp.scale(asked.size, 0.8, 0.8)) < 1e-6


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("change", [*EXACT, "rescale"])
def test_futures_follow_in_distribution(name: str, change: str) -> None:
    asked = patchwork()
    warp = Warp.scale(asked.size, 0.8, 0.8) if change == "rescale" else EXACT[change](asked.size)
    ours = futures(name, asked)
    back = warp.inverse.points(futures(name, asked.warped(warp), 40))
    spread = ours.std(0)
    assert np.abs(ours.mean(0) - back.mean(0)).max() < 0.25 * spread.max()
    one, other = (np.cov(paths[:, -1].T) for paths in (ours, back))
    assert np.abs(one - other).max() < 0.25 * np.trace(one)


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """Blocks of any class and thin walls, and somebody anywhere among them, often on whole and half pixels."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    width, height = rng.integers(1, 200, 2)
    block = int(rng.integers(1, 40))
    blocks = rng.integers(0, 6, (height // block + 1, width // block + 1)).astype(np.uint8)
    classes = np.ascontiguousarray(np.kron(blocks, np.ones((block, block), np.uint8))[:height, :width])
    for _ in range(int(rng.integers(0, 5))):
        ends = (rng.random((2, 2)) * (width, height)).astype(int).tolist()
        cv2.line(classes, ends[0], ends[1], [int(rng.choice([STRUCTURE, TREE]))], int(rng.integers(1, 4)))
    position, velocity = rng.random(2) * (width, height), rng.normal(0, 1, 2) * 10 ** rng.uniform(-2, 1.2)
    if draw(st.booleans()):
        position, velocity = np.rint(position * 2) / 2, np.rint(velocity * 2) / 2
    return scene(classes, walk(tuple(position), tuple(velocity)), steps=draw(st.sampled_from([3, 12])))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(asked=scenes(), change=st.sampled_from(sorted(EXACT)))
def test_social_force_follows_anywhere(asked: Scene, change: str) -> None:
    assert strays("social-force", asked, EXACT[change](asked.size)) < 1e-6


# --- obstacles -------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None, derandomize=True)
@given(asked=scenes(), seed=st.integers(0, 1000))
def test_nobody_walks_into_an_obstacle(asked: Scene, seed: int) -> None:
    obstacles = asked.mask("structure", "tree")
    if not cells_of(obstacles, asked.position):
        found = answer("social-force", asked, seed)
        assert not crosses(found, asked).any()
        if asked.size[0] * asked.size[1] > 1000:  # the map of a small frame is as fine as its cells
            assert mass(found, obstacles) < 0.02


@pytest.mark.parametrize("kind", [STRUCTURE, TREE])
@pytest.mark.parametrize("thick", [1, 30])
def test_a_wall_across_the_way(kind: int, thick: int) -> None:
    classes = np.full((300, 400), PAVEMENT, np.uint8)
    classes[:, 150 : 150 + thick] = kind
    asked = scene(classes)
    found = answer("social-force", asked)
    assert not crosses(found, asked).any()
    assert (found.futures[..., 0] < 150).all()
    assert mass(found, asked.mask("structure", "tree")) < 1e-6
    assert crosses(answer("constant-velocity", asked), asked).all()


def test_people_go_round_a_block() -> None:
    classes = np.full((300, 400), PAVEMENT, np.uint8)
    classes[135:165, 150:170] = STRUCTURE
    asked = scene(classes)
    paths = futures("social-force", asked, 10)
    behind = paths[:, -1, 0] > 170
    assert behind.mean() > 0.6
    above = paths[behind][:, -1, 1] < 150
    assert 0.3 < above.mean() < 0.7  # on either side alike
    assert not any(crosses(Forecast.from_array(paths), asked))


def test_a_gap_in_a_wall_is_found() -> None:
    classes = np.full((300, 400), PAVEMENT, np.uint8)
    classes[:, 150:160] = STRUCTURE
    classes[115:130, 150:160] = PAVEMENT
    asked = scene(classes)
    paths = futures("social-force", asked, 10)
    assert (paths[:, -1, 0] > 160).mean() > 0.2
    assert not any(crosses(Forecast.from_array(paths), asked))


def test_who_stands_in_an_obstacle_walks_out_and_not_into_another() -> None:
    classes = np.full((300, 400), PAVEMENT, np.uint8)
    classes[100:200, 60:140] = TREE
    classes[:, 180:] = STRUCTURE
    asked = scene(classes)
    paths = futures("social-force", asked, 5)
    assert (paths[:, -1, 0] > 142).mean() > 0.9
    assert (paths[..., 0] < 180).all()
    found = answer("social-force", asked)
    assert mass(found, asked.mask("structure")) < 1e-6
    assert mass(found, asked.mask("tree")) > 0.2


@pytest.mark.parametrize("off", [0.0, 0.1, 0.5, 1.0])
def test_along_a_wall(off: float) -> None:
    """Somebody who touches a wall walks on beside it."""
    classes = np.full((300, 400), PAVEMENT, np.uint8)
    classes[150:] = STRUCTURE
    asked = scene(classes, walk((100, 150 - off)))
    paths = futures("social-force", asked, 5)
    assert (paths[:, -1, 0] > 150).mean() > 0.9
    assert (paths[..., 1] < 150).all()


# --- what people like to walk on -------------------------------------------------------------------


def halves(left: int, right: int) -> Scene:
    """Somebody who walks along the border of two classes; `left` is above."""
    classes = np.full((300, 400), PAVEMENT, np.uint8)
    classes[:150], classes[150:] = left, right
    return scene(classes)


def test_people_prefer_pavement_to_terrain_to_road() -> None:
    above = np.zeros((300, 400), bool)
    above[:150] = True
    share = {
        (left, right): mass(answer("social-force", halves(left, right)), above)
        for left in (PAVEMENT, TERRAIN, ROAD)
        for right in (PAVEMENT, TERRAIN, ROAD)
    }
    for same in (PAVEMENT, TERRAIN, ROAD):
        assert share[same, same] == pytest.approx(0.5, abs=0.01)
    assert share[PAVEMENT, ROAD] > share[PAVEMENT, TERRAIN] > 0.6
    assert share[PAVEMENT, ROAD] > 0.75
    assert share[TERRAIN, ROAD] > 0.6


def test_futures_prefer_what_the_map_prefers() -> None:
    asked = halves(PAVEMENT, ROAD)
    far = np.zeros((300, 400), bool)
    far[:, 180:] = True  # nearer to the person the map is smeared over the border
    above = far.copy()
    above[150:] = False
    expected = mass(answer("social-force", asked), above) / mass(answer("social-force", asked), far)
    walked = every(asked.position, futures("social-force", asked))
    assert cells_of(above, walked).sum() / cells_of(far, walked).sum() == pytest.approx(expected, abs=0.04)


def test_without_preference_all_ground_is_alike() -> None:
    one, other = (heat(answer("social-force(preference=0)", halves(PAVEMENT, right))) for right in (PAVEMENT, ROAD))
    assert np.array_equal(one.cells, other.cells)


def test_background_and_unknown_classes_are_plain_ground() -> None:
    plain = halves(PAVEMENT, PAVEMENT)
    unknown = replace(halves(PAVEMENT, ROAD), names=("background", "pavement", "lawn"))
    for other in (halves(BACKGROUND, PAVEMENT), unknown):
        assert np.array_equal(heat(answer("social-force", other)).cells, heat(answer("social-force", plain)).cells)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(asked=scenes(), pair=st.sampled_from([(PAVEMENT, ROAD), (PAVEMENT, TERRAIN), (TERRAIN, ROAD)]))
def test_a_class_that_becomes_less_walkable_loses(asked: Scene, pair: tuple[int, int]) -> None:
    """Both ways: and what becomes more walkable gains."""
    for before, after, sign in ((*pair, 1), (*pair[::-1], -1)):
        region = asked.classes == before
        changed = replace(asked, classes=np.where(region, np.uint8(after), asked.classes))
        lost = mass(answer("social-force", asked), region) - mass(answer("social-force", changed), region)
        assert sign * lost > -0.01  # the map is smeared over the borders of regions


# --- real people -----------------------------------------------------------------------------------


def test_near_the_futures_of_sdd() -> None:
    """Best of 20 and mean displacement in pixels, over walkers of one place."""
    folder = shared("data/sdd")
    classes = decode_classes((folder / "maps" / "nexus_7.png").read_bytes())
    with np.load(folder / "trajectories.npz", allow_pickle=False) as file:
        tracks = file["nexus_7"][:60].astype(float)
    for name in BOTH:
        asked = [Scene(classes, NAMES, track[:8], 12) for track in tracks]
        found = walker(name).answer(asked, range(len(asked)))
        error = np.array(
            [
                np.linalg.norm(one.futures - track[8:], axis=-1).mean(1)  # type: ignore[union-attr]
                for one, track in zip(found, tracks, strict=True)
            ]
        )
        assert error.min(1).mean() < 15
        assert error.mean() < 40
        if name == "social-force":
            free = [not cells_of(one.mask("structure", "tree"), one.position) for one in asked]
            assert not any(crosses(one, given).any() for one, given, ok in zip(found, asked, free, strict=True) if ok)  # type: ignore[arg-type]
