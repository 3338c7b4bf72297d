"""Property tests of a model of one's own: what is drawn is allowed, shrinks, and is judged as a run judges it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

import instar
from instar import Detections, NotApplicable, severity
from instar.strategies import rules, transformations
from instar.transforms import families, transformation
from instar.trial import SeededRule
from tests.toys import rectangles, scene, write_image

PHOTO = scene(1)
DRAWN = [
    name
    for name, family in sorted(families().items())
    if not any(p.kind in ("text", "transformation") and repr(p.default) == "REQUIRED" for p in family.parameters)
]
few = settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def blind(pixels: np.ndarray) -> Detections:
    """Right, but where the image is bright."""
    return rectangles(pixels) if pixels.max() < 240 else Detections.from_xyxy(np.empty((0, 4)), [])


@few
@given(st.data())
@pytest.mark.parametrize("name", DRAWN)
def test_every_family_draws_what_it_allows(name: str, data: st.DataObject) -> None:
    drawn = data.draw(transformations(name))
    made = transformation(drawn.rule)
    assert made.id == drawn.rule and made.steps[0].family.name == name
    assert made.random or drawn.seed == 0


def test_a_range_is_kept_and_both_ends_are_drawn() -> None:
    def degrees(drawn: SeededRule) -> float:
        return float(transformation(drawn.rule).steps[0].values["degrees"])

    turns = transformations("rotation", degrees=(-7.25, 10))
    assert find(turns, lambda drawn: degrees(drawn) == -7.25).rule == "rotation(-7.25)"
    assert find(turns, lambda drawn: degrees(drawn) == 10).rule == "rotation(10)"
    with pytest.raises(NoSuchExample):
        find(turns, lambda drawn: not -7.25 <= degrees(drawn) <= 10)


@pytest.mark.parametrize(
    ("family", "parameter", "nearest"),
    [
        ("brightness", "multiply", 1),
        ("brightness", "add", 0),
        ("colour_channels", "factors", 1),
        ("crop", "share", 1),
        ("gamma", "gamma", 1),
        ("jpeg", "quality", 100),
        ("resolution", "factor", 0.999),  # whose end is open
        ("stretch", "width", 1),
    ],
)
def test_examples_shrink_to_the_value_that_changes_least(family: str, parameter: str, nearest: float) -> None:
    simplest = transformation(find(transformations(family), lambda _: True).rule).steps[0].values[parameter]
    assert np.allclose(simplest, nearest, atol=0.01)


def test_other_values_and_what_is_not_allowed() -> None:
    assert find(transformations("rotation", degrees=5, centre=["swapped"]), lambda _: True).rule == (
        "rotation(5, centre=swapped)"
    )
    assert find(transformations("mirror", axis=["v"]), lambda _: True).rule == "mirror(v)"
    assert find(transformations("blur", sigma=st.just(3)), lambda _: True).rule == "blur(3)"
    assert find(transformations("colour_fill", colour=(1, 2, 3)), lambda _: True).rule == "colour_fill((1, 2, 3))"
    for wrong, why in (
        ({"degree": 3}, "no parameter 'degree'; did you mean 'degrees'"),
        ({"degrees": (-400, 3)}, "it takes a number from -360 to 360"),
        ({"degrees": (3, -3)}, "runs backwards"),
        ({"degrees": []}, "is empty"),
        ({"centre": "left"}, "one of middle, swapped"),
    ):
        with pytest.raises(ValueError, match=why):
            transformations("rotation", **wrong)
    with pytest.raises(KeyError, match="did you mean 'gamma'"):
        transformations("gama")
    with pytest.raises(ValueError, match="needs zone, which cannot be drawn"):
        transformations("filtered", inner="greyscale")


def test_a_violation_shrinks_to_the_plainest_one() -> None:
    """Blue is 230 there, and 1.05 is the first step that makes it 240."""
    brighter = transformations("brightness", add=0, multiply=(1, 2))
    worst = find(brighter, lambda drawn: not len(blind(drawn.follow_up(PHOTO).picture())))
    assert worst == SeededRule("brightness(0, 1.05)")
    assert severity(worst, blind, PHOTO) == 1.0
    assert severity("brightness(0, 1.04)", blind, PHOTO) == 0.0


@few
@given(rules("mirror(h) + identity + noise(3) + rotate90(1)"))
def test_a_flawless_system_holds_the_rules_of_a_suite(drawn: SeededRule) -> None:
    assert not drawn.rule.startswith("identity")
    assert severity(drawn, rectangles, PHOTO) <= 0.05


def test_a_severity_is_that_of_a_run(tmp_path: Path) -> None:
    write_image(tmp_path / "input.png", PHOTO)
    rule = "rotation(7) + noise(40)"
    run = instar.run(rectangles, rule, tmp_path / "input.png", out=tmp_path / "run", workers=0, seed=5)
    for one in run.manifest.rules:
        if "noise" not in one:  # whose follow-up is drawn by the case's id, too
            assert severity(one, rectangles, PHOTO, seed=5) == run.verdicts().filter(rule=one)["severity"].max()
    seeded = SeededRule("noise(40)", 5)
    other = SeededRule("noise(40)", 6).follow_up(PHOTO)
    assert isinstance(other, instar.Image) and not np.array_equal(seeded.follow_up(PHOTO).picture(), other.pixels)
    assert np.array_equal(seeded.follow_up(PHOTO).picture(), seeded.follow_up(PHOTO.pixels).picture())


def test_what_has_no_severity_says_why() -> None:
    def broken(pixels: np.ndarray) -> Detections:
        raise OSError("no camera")

    with pytest.raises(RuntimeError, match="no camera"):
        severity("mirror(h)", instar.declare(kind="detections")(broken), PHOTO)
    with pytest.raises(NotApplicable, match="nothing was found in either image"):
        severity("mirror(h)", rectangles, np.zeros((40, 40, 3), np.uint8))
    with pytest.raises(ValueError, match="rule over many cases"):
        severity("[noise(1), noise(5)] => correlation(iou)", rectangles, PHOTO)


@pytest.fixture
def documented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Callable[[], None]]:
    """The test that the documentation writes, of a model."""
    page = (Path(__file__).parents[2] / "docs" / "deciding.md").read_text("utf-8")
    (block,) = (part.partition("```")[0] for part in page.split("```python")[1:] if "instar.strategies" in part)
    write_image(tmp_path / "photo.png", PHOTO)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    def made(model: str) -> Callable[[], None]:
        (tmp_path / "my_model.py").write_text(model)
        monkeypatch.delitem(sys.modules, "my_model", raising=False)
        names: dict[str, Callable[[], None]] = {}
        exec(block, names)
        return names["test_boxes_turn_with_the_image"]

    return made


def test_the_documented_property_holds_and_fails(documented: Callable[[str], Callable[[], None]]) -> None:
    documented("from tests.toys import rectangles as detect")()
    upright = """
import instar
from tests.toys import rectangles

def detect(pixels):
    return rectangles(pixels) if pixels[0, 0].any() else instar.Detections.from_xyxy([[0, 0, 9, 9]], ["corner"])
"""
    with pytest.raises(AssertionError) as error:
        documented(upright)()
    assert "drawn=SeededRule('rotation(" in "\n".join(error.value.__notes__)


def test_without_hypothesis_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['hypothesis'] = None; import instar.strategies"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip().endswith("not installed: pip install hypothesis")
