"""The contract of transformations on scenes: those that only scenes know, and the spatial ones."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from instar.outputs.forecast import Forecast
from instar.scene import Scene, Track
from instar.suites import suites
from instar.transforms import Change, NotApplicable, Transformation, families, mask_of, transformation
from instar.warp import Warp, inside

NAMES = ("background", "pavement", "road", "structure", "terrain", "tree")
SIZE = (90, 64)


@cache
def scene() -> Scene:
    """A map with every class, a person who walks to the right in its middle."""
    classes = np.random.default_rng(3).integers(0, 6, SIZE[::-1]).astype(np.uint8)
    classes[20:44] = 1
    return Scene(classes, NAMES, np.stack([np.linspace(12, 40, 8), np.full(8, 32.25)], 1), 12, 2.5, 0.05)


@cache
def needs() -> dict[str, Forecast]:
    ahead = scene().position + np.arange(1, 13)[:, None] * np.array([3.5, 0.25])
    return {"source": Forecast.from_array(np.stack([ahead, ahead + 1, ahead - 1]))}


ONLY_SCENES = list(
    dict.fromkeys(
        t
        for suite in suites().values()
        for rule in suite.rules
        for t in rule.transformations
        if all(step.family.inputs == ("scene",) for step in t.steps)
    )
)
CHANGE_THE_MAP = [t for t in ONLY_SCENES if t.steps[0].family.name != "turn_past"]
SPATIAL = [
    transformation(text)
    for text in (
        "identity",
        "mirror(h)",
        "mirror(v)",
        "mirror(both)",
        "shift(0.1, -0.05)",
        "crop(0.9)",
        "pad(0.2, left_right)",
        "rotate90(1)",
        "rotate90(2)",
        "rotate90(3)",
        "rescale(0.8)",
        "rescale(1.2)",
        "rescale(2)",
        "resolution(0.5)",
        "stretch(1, 0.8)",
        "shear(0.1)",
        "rotation(10)",
        "rotation(-5)",
    )
]
every = pytest.mark.parametrize("change", [*ONLY_SCENES, *SPATIAL], ids=str)


def equal(a: Scene, b: Scene) -> bool:
    return bool(np.array_equal(a.classes, b.classes) and np.array_equal(a.past, b.past) and a.names == b.names)


def test_nothing_is_missing_here() -> None:
    assert {t.steps[0].family.name for t in ONLY_SCENES} == {
        name for name, family in families().items() if family.inputs == ("scene",)
    }
    assert {t.steps[0].family.name for t in SPATIAL} >= {
        name for name, family in families().items() if family.form == "spatial"
    }


@every
def test_a_follow_up_is_decided_and_leaves_its_source_alone(change: Transformation) -> None:
    before = scene().classes.copy(), scene().past.copy()
    first, did = change(scene(), needs=needs(), seed=5)
    again, _ = change(scene(), needs=needs(), seed=6)
    assert equal(first, again)
    assert np.array_equal(scene().classes, before[0])
    assert np.array_equal(scene().past, before[1])
    assert first.size == did.warp.target
    assert not first.classes.flags.writeable
    assert (first.steps, first.rate) == (12, 2.5)


@every
def test_the_person_goes_where_the_warp_says(change: Transformation) -> None:
    follow, did = change(scene(), needs=needs())
    assert np.allclose(follow.position, did.warp.points(scene().position), atol=1e-9)
    if "degrees" not in did.facts:
        assert np.allclose(follow.past, did.warp.points(scene().past), atol=1e-9)


@every
def test_every_cell_takes_the_class_of_the_place_it_came_from(change: Transformation) -> None:
    follow, did = change(scene(), needs=needs())
    y, x = np.mgrid[: follow.size[1], : follow.size[0]] + 0.5
    came = did.warp.inverse.points(np.stack([x, y], -1))
    # a place right between two cells may belong to either
    between = (np.abs(came - np.rint(came)) < 0.02).any(-1)
    column, row = np.floor(came).astype(int)[..., 0], np.floor(came).astype(int)[..., 1]
    within = inside(came, SIZE) & ~between
    expected = np.zeros(follow.size[::-1], np.uint8)
    expected[within] = scene().classes[row[within], column[within]]
    if did.mask is not None:
        (new,) = did.added
        expected[did.mask] = follow.names.index(new)
    # where a rotation or a shear shows cells from outside, OpenCV's nearest cell may differ by one at their edge
    checked = within if did.warp.source == did.warp.target and not did.warp.is_identity else ~between
    wrong = (follow.classes != expected) & checked
    assert wrong.mean() < 0.01


@every
def test_metres_per_pixel_follow(change: Transformation) -> None:
    follow, did = change(scene(), needs=needs())
    scales = np.linalg.svd(did.warp.matrix[:2, :2], compute_uv=False)
    if scales[0] > 1.01 * scales[1]:
        assert follow.metres_per_pixel is None
    else:
        assert follow.metres_per_pixel == pytest.approx(0.05 / np.sqrt(scales.prod()), rel=1e-9)


@every
def test_the_change_reads_back(change: Transformation) -> None:
    _, did = change(scene(), needs=needs())
    row = did.row()
    back = Change.from_row({**row, "warp": did.warp.matrix.ravel().tolist()}, SIZE)
    assert back.warp == did.warp
    assert (back.added, back.removed, back.facts) == (did.added, did.removed, did.facts)
    assert (back.mask is None) == (did.mask is None)
    if did.mask is not None and back.mask is not None:
        assert np.array_equal(back.mask, did.mask)


@pytest.mark.parametrize("change", CHANGE_THE_MAP, ids=str)
def test_it_composes(change: Transformation) -> None:
    whole, did = change(scene(), needs=needs())
    for partner in (transformation("mirror(h)"), transformation("rotate90(1)"), transformation("rescale(1.2)")):
        follow, both = transformation(f"{change.id} | {partner.id}")(scene(), needs=needs())
        later, after = partner(whole)
        assert equal(follow, later)
        then = did.then(after)
        assert both.mask is not None and did.mask is not None and then.mask is not None
        assert np.array_equal(both.mask, then.mask)
        if partner.id != "rescale(1.2)":
            assert both.mask.sum() == did.mask.sum()
            before, first = partner(scene())
            carried = {"source": needs()["source"].warped(first.warp)}
            expected, _ = change(before, needs=carried)
            assert equal(transformation(f"{partner.id} | {change.id}")(scene(), needs=needs())[0], expected)


@pytest.mark.parametrize("change", CHANGE_THE_MAP, ids=str)
def test_only_the_masked_cells_change_and_all_of_them_do(change: Transformation) -> None:
    follow, did = change(scene(), needs=needs())
    assert did.mask is not None
    assert np.array_equal(follow.classes != scene().classes, did.mask)
    assert {follow.names[value] for value in np.unique(follow.classes[did.mask])} == set(did.added)


def test_a_class_that_is_gone_or_never_was() -> None:
    follow, _ = transformation("class_change(pavement, road)")(scene())
    assert not follow.mask("pavement").any()
    assert follow.mask("road").sum() == scene().mask("pavement", "road").sum()
    for text, message in (
        ("class_change(water, road)", "no cell of class water.*pavement"),
        ("class_change(road, road)", "nothing would change"),
    ):
        with pytest.raises(NotApplicable, match=message):
            transformation(text)(scene())
    new, _ = transformation("class_change(pavement, ice)")(scene())
    assert new.names == (*NAMES, "ice")
    assert new.mask("ice").sum() == scene().mask("pavement").sum()


def test_an_obstacle_is_a_twelve_gon_on_the_medoid() -> None:
    wide = Scene(np.ones((400, 400), np.uint8), NAMES, np.array([[80.0, 200], [100, 200]]), 10)
    ahead = np.stack([np.linspace(120, 300, 10), np.full(10, 200.0)], 1)
    source = Forecast.from_array(np.stack([ahead, ahead + np.array([0, 60]), ahead - np.array([0, 50])]))
    follow, did = transformation("obstacle(tree, 0.25, 0.5)")(wide, needs={"source": source})
    assert did.facts == {"x": 200.0, "y": 200.0, "radius": 25.0, "ground": "pavement"}
    radius = 25.0  # half of the way of 200, an eighth of it wide
    assert follow.mask("tree").sum() == pytest.approx(3 * radius**2, rel=0.01)  # the area of a regular 12-gon
    y, x = np.nonzero(follow.mask("tree"))
    assert (x.mean() + 0.5, y.mean() + 0.5) == pytest.approx((200, 200), abs=1e-9)
    assert np.hypot(x + 0.5 - 200, y + 0.5 - 200).max() <= radius


def test_where_no_obstacle_can_stand() -> None:
    obstacle = transformation("obstacle(structure, 0.25, 0.5)")
    here = np.repeat(scene().position[None], 12, 0)
    with pytest.raises(NotApplicable, match="hardly moves"):
        obstacle(scene(), needs={"source": Forecast.from_array(here)})
    with pytest.raises(NotApplicable, match="on the person"):
        transformation("obstacle(structure, 1, 0.3)")(scene(), needs=needs())
    away = scene().position + np.arange(1, 13)[:, None] * np.array([200.0, 0])
    with pytest.raises(NotApplicable, match="no cell"):
        obstacle(scene(), needs={"source": Forecast.from_array(away)})
    with pytest.raises(NotApplicable, match="needs source"):
        obstacle(scene())


def test_what_changes_photographs_says_nothing_about_a_scene() -> None:
    with pytest.raises(NotApplicable, match="gamma changes images, and this case is a scene"):
        transformation("gamma(0.5)")(scene())
    with pytest.raises(NotApplicable, match="carried out of the frame"):
        transformation("rotation(90)")(Scene(np.ones((20, 200), np.uint8), NAMES, np.array([[5.0, 5], [9, 5]]), 4))


def test_a_mask_of_any_size_reads_back() -> None:
    rng = np.random.default_rng(0)
    for size in ((1, 1), (7, 3), (8, 8), (33, 2)):
        mask = rng.random(size[::-1]) > 0.5
        row = Change(Warp.identity(size), mask=mask).row()
        read = mask_of(row)
        assert read is not None and np.array_equal(read, mask)


def test_a_track_reads_back() -> None:
    track = Track.of(scene())
    assert Track.from_json(track.json()) == track
    assert equal(track.on(scene().classes), scene())


@pytest.mark.parametrize(("degrees", "came_from"), [(180, (68, 32.25)), (90, (40, 60.25)), (-90, (40, 4.25))])
def test_a_turned_past_ends_where_the_person_is(degrees: float, came_from: tuple[float, float]) -> None:
    """Who walked to the right, turned counter-clockwise by a quarter, walks up."""
    turned, change = transformation(f"turn_past({degrees})")(scene())
    assert isinstance(turned, Scene)
    assert turned.position.tolist() == scene().position.tolist()
    assert turned.past[0] == pytest.approx(came_from)
    assert change.warp.is_identity
    assert np.array_equal(turned.classes, scene().classes)


def test_who_stands_came_from_nowhere() -> None:
    still = Scene(scene().classes, NAMES, np.array([[40.0, 32], [41, 32], [40, 32], [41, 32]]), 12)
    with pytest.raises(NotApplicable, match="there is no way they came"):
        transformation("turn_past(180)")(still)
    at_the_edge = Scene(scene().classes, NAMES, np.stack([np.linspace(40, 80, 8), np.full(8, 32.0)], 1), 12)
    with pytest.raises(NotApplicable, match="out of the frame"):
        transformation("turn_past(180)")(at_the_edge)
