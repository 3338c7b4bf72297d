"""Grids: which levels a search has, how a run spells it, and what cannot be searched."""

from __future__ import annotations

import pytest

from instar.image import Pixels
from instar.registry import NotLoaded
from instar.spelling import Parameter, Scale
from instar.suites.grid import Grid, can_be_searched, grids_of, suite_of
from instar.transforms import TransformationFamily, families


def veil(pixels: Pixels, *, share: float) -> Pixels:
    return (pixels * (1 - share) + 255 * share).astype("uint8")


VEIL = TransformationFamily(
    "veil", "user", "photometric", veil,
    (Parameter("share", "float", low=0, high=1, ordered=True, scale=Scale(0, above=1)),),
)  # fmt: skip
BLIND = TransformationFamily(
    "blind", "user", "photometric", veil, (Parameter("share", "float", low=0, high=1, ordered=True),)
)


def ways(family: str, steps: int = 40, rays: int = 1) -> dict[str, list[tuple[float, ...]]]:
    return {ray.name: [level.values for level in ray.levels] for ray in Grid.of(family, steps=steps, rays=rays).rays}


def test_a_family_goes_both_ways_from_where_it_changes_nothing() -> None:
    levels = ways("gamma", steps=4)
    assert levels == {
        "gamma below 1": [(0.562,), (0.316,), (0.178,), (0.1,)],
        "gamma above 1": [(1.78,), (3.16,), (5.62,), (10,)],
    }
    assert list(ways("rotation", steps=4).values()) == [
        [(-45,), (-90,), (-135,), (-180,)],
        [(45,), (90,), (135,), (180,)],
    ]


def test_every_ordered_parameter_is_searched_for_itself() -> None:
    assert list(ways("brightness", steps=4)) == [
        "brightness add below 0", "brightness add above 0",
        "brightness multiply below 1", "brightness multiply above 1",
    ]  # fmt: skip
    assert list(ways("brightness(add=0)", steps=4)) == ["brightness multiply below 1", "brightness multiply above 1"]
    rules = [level.rule.id for level in Grid.of("bilateral", steps=4).rays[1].levels]
    assert rules[-1] == "bilateral(80, 31)"  # at the neutral strength its size would change nothing


def test_whole_numbers_stay_whole_and_come_once() -> None:
    (levels,) = ways("motion(direction=0)", steps=40).values()
    values = [value for (value,) in levels]
    assert values == sorted(set(values))
    assert all(isinstance(value, int) or value.is_integer() for value in values)
    assert (values[0], values[-1]) == (2, 99)


def test_families_that_mean_another_answer_are_not_offered() -> None:
    with pytest.raises(ValueError, match="class_change cannot be searched") as refused:
        Grid.of("class_change(road, tree)")
    assert "obstacle" not in str(refused.value) and "turn_past" not in str(refused.value)
    grid = Grid.of("obstacle => wvc", steps=4)
    assert [level.rule.id for level in grid.rays[0].levels][-1] == "obstacle(size=2) => wvc"
    assert grid.unchanged.id == "identity => wvc"


@pytest.mark.parametrize("name", [name for name, one in families().items() if can_be_searched(one)])
def test_every_scale_lies_inside_its_parameters_range(name: str) -> None:
    given = {"motion": "motion(direction=0)", "finger_discs": "finger_discs(index)"}.get(name, name)
    for ray in Grid.of(given).rays:
        assert len(ray.levels) >= 25


def test_steps_that_a_family_keeps_are_kept() -> None:
    grid = Grid.of("mirror(h) | gamma => accuracy", steps=4)
    assert grid.rays[1].levels[-1].rule.id == "mirror(h) | gamma(10) => accuracy"
    assert grid.unchanged.id == "identity => accuracy"


def test_a_frontier_has_both_axes_and_rays_between_them() -> None:
    levels = ways("gamma | rotation", steps=4, rays=1)
    assert len(levels) == 8
    assert levels["gamma above 1"][-1] == (10, 0)
    assert levels["gamma above 1, rotation degrees below 0"][0] == (1.78, -45)
    grid = Grid.of("gamma | rotation", steps=4, rays=3)
    assert len(grid.rays) == 16
    assert {ray.slant for ray in grid.rays[4:7]} == {(1.0, 0.414214), (1.0, 1.0), (0.414214, 1.0)}
    assert grid.rays[0].levels[0].rule.id == "gamma(0.562)"  # an axis leaves the other family out


@pytest.mark.parametrize(
    ("family", "way", "level"),
    [
        ("filtered(gamma, skin)", "gamma in skin above 1", "filtered(gamma(10), skin)"),
        ("filtered(zone=hair, inner=blur)", "blur sigma in hair above 0", "filtered(blur(32), hair)"),
        ("filtered(jpeg(50) | gamma, skin)", "gamma in skin above 1", "filtered(jpeg(50) | gamma(10), skin)"),
        ("mirror(h) | filtered(noise, hair)", "noise sigma in hair above 0", "mirror(h) | filtered(noise(160), hair)"),
        ("gamma(0.5, hair) | blur", "blur sigma above 0", "filtered(gamma(0.5), hair) | blur(32)"),
    ],
)
def test_a_family_inside_a_zone_or_a_composition_is_searched(family: str, way: str, level: str) -> None:
    grid = Grid.of(family, steps=4)
    assert (grid.rays[-1].name, grid.rays[-1].levels[-1].rule.id) == (way, level)
    (again,) = grids_of([grid.name])
    assert [one.id for one in again.rules] == [one.id for one in grid.rules]


def test_a_frontier_may_lie_in_a_zone_and_across_zones() -> None:
    within = Grid.of("filtered(gamma | blur, skin)", steps=4)
    assert within.rays[2].levels[0].rule.id == "filtered(blur(2), skin)"  # what stays neutral is left out
    assert within.rays[-1].levels[-1].rule.id == "filtered(gamma(10) | blur(32), skin)"
    across = Grid.of("filtered(gamma, skin) | filtered(gamma, hair)", steps=4)
    assert across.rays[0].levels[0].rule.id == "filtered(gamma(0.562), skin)"
    assert len({ray.name for ray in across.rays}) == len(across.rays) == 8


def test_a_run_spells_a_search_so_that_it_is_found_again() -> None:
    for family in ("gamma", "gamma | rotation", "brightness(add=0)", "blur => accuracy"):
        grid = Grid.of(family, steps=8, rays=2)
        (again,) = grids_of([grid.name, "mirror(h)"])
        assert [one.id for one in again.rules] == [one.id for one in grid.rules]
    assert suite_of([Grid.of("gamma"), Grid.of("blur")]).name == "boundary(gamma) + boundary(blur)"


def test_families_of_others_are_searched_where_they_say_how(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = Grid.of("tests.suites.test_grid:VEIL", steps=4)
    assert [level.values[0] for level in grid.rays[0].levels] == [0.25, 0.5, 0.75, 1]
    with pytest.raises(ValueError, match=r"nothing says which value changes nothing.*scale=Scale\(neutral"):
        Grid.of("tests.suites.test_grid:BLIND")
    with pytest.raises(ValueError, match="no parameter that goes from weak to strong"):
        Grid.of("tests.suites.test_grid:veil")
    assert not list(grids_of(['boundary("nowhere.to_be_found:FAMILY")']))  # code that a file names is not loaded
    with pytest.raises((NotLoaded, ImportError)):
        Grid.of("nowhere.to_be_found:FAMILY")


@pytest.mark.parametrize(
    ("family", "words"),
    [
        ("mirror", r"mirror cannot be searched: .* Of the same kind \(spatial\) can be searched: .*rotation"),
        ("greyscale", r"Of the same kind \(colour\) can be searched: colour_wheel; others:"),
        ("gama", "did you mean 'gamma'"),
        ("filtered(gama, skin)", "did you mean 'gamma'"),
        ("filtered(greyscale, skin)", "greyscale cannot be searched"),
        ("filtered(gamma(2), skin)", "gamma is given, and nothing is left to search"),
        ("filtered(gamma)", "filtered needs zone"),
        ("filtered(gamma, skin, 3)", "filtered takes 2 parameters"),
        ("filtered(rotation, skin)", "filtered takes photometric transformations"),
        ("gamma(2)", "gamma is given, and nothing is left to search"),
        ("motion", r"motion needs direction, .*motion\(direction=0\)"),
        ("gamma | rotation | blur", "a frontier is of two families, and 3 are open"),
        ("brightness | gamma", r"has 2 parameters to search .*brightness\(add=0\)"),
        ("discs => correlation", "judged over many cases"),
        ("[gamma, blur]", "is a list of levels"),
        ("obstacle", r'instar run SYSTEM "obstacle => direction\(avoid\)" DATASET'),
        ("turn_past", "turn_past => follows has no limit to search: by follows answers must change with the input"),
        ("turn_past | rotation", r"turn_past \| rotation => follows has no limit"),
        ("rotation | obstacle(tree, 0.5, 0.5)", "has no limit to search"),
        ("rotation => follows", "has no limit to search"),
    ],
)
def test_what_cannot_be_searched_is_said(family: str, words: str) -> None:
    with pytest.raises((ValueError, KeyError), match=words):
        Grid.of(family)


@pytest.mark.parametrize("values", [(0, None, None), (1, 1, None), (0, -1, 1)])
def test_a_scale_leads_somewhere(values: tuple[float, float | None, float | None]) -> None:
    with pytest.raises(ValueError, match=r"scale has a far end|need values above 0"):
        Scale(*values, steps="log")
