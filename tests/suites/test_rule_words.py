"""Rules in a few words: a stranger reads `motion(11, 100)` as "motion blur, 11 pixels, at 100°"."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pytest

from instar import Parameter, TransformationFamily
from instar.relations import rule
from instar.spelling import parse_call
from instar.suites import suites
from instar.transforms import families, named_transformation, transformation
from instar.transforms.family import Transformation, bound_step, family_of_function

BUILT_IN = sorted(name for name in suites() if suites()[name].output)
PLURAL_OF_ONE = re.compile(r"(?<![\d.,])1 [a-z ]*?(pixels|levels|times|landmarks|follow-ups)\b")


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_rule_of_a_suite_has_words_of_its_own(name: str) -> None:
    """No brace of a template is left, no plural follows 1, and different rules read differently."""
    suite = suites()[name]
    words = {one.id: one.for_output(str(suite.output)).words for one in suite.rules}
    for text in words.values():
        assert text and not re.search(r"[{}_=]", text) and not PLURAL_OF_ONE.search(text), text
    assert len(set(words.values())) == len(words)


def test_every_family_of_instar_has_words() -> None:
    assert not [family.name for family in families().values() if family.room != "user" and not family.words]


@pytest.mark.parametrize(
    ("spelling", "words"),
    {
        "motion(11, 100)": "motion blur, 11 pixels, at 100°",
        "motion(1, -45, kernel=unnormalised)": "motion blur, 1 pixel, at −45°, kernel unnormalised",
        "mirror(h) | gamma(0.5)": "mirrored left to right, then brighter, gamma 0.5",
        "filtered(greyscale | gamma(2), skin)": "without colour, then darker, gamma 2, only in the skin zone",
        "shift(-0.1, y=0.25)": "moved by 10 % of the width to the left and 25 % of the height down",
        "shift(0, y=-0.1)": "moved by 10 % of the height up",
        "rotation(-90)": "turned by 90° clockwise",
        "stretch(1, 1)": "stretched to 100 % of the height and 100 % of the width",
        "brightness(-1, 1)": "brightness minus 1 grey level",
        "brightness(0, 1)": "brightness at 100 %",
        "insert(0.3, label=dog)": "an object of class dog pasted in over 15 to 30 % of the largest object",
        "erase(0.1, only=1, by=mask)": "the middle 10 % of the 2nd object erased, by mask",
        "recorded(rainy_street)": "rainy street, made elsewhere",
        "colour_channels((1, 1, 1))": "all colours at 100 %",
    }.items(),
)
def test_words_of_a_transformation(spelling: str, words: str) -> None:
    assert transformation(spelling).words == words


@pytest.mark.parametrize(
    ("spelling", "words"),
    {
        "mirror(v) => poses(handedness=kept, repeats=3)": "mirrored top to bottom: left and right must stay, each "
        "follow-up answered 3 times",
        "noise(8) => poses(draws=2)": "noise of 8 grey levels: 2 follow-ups of each input",
        "[gamma(2), gamma(3)] => degradation(severity, margin=0.1)": "darker, gamma 2; darker, gamma 3: severity may "
        "rise by at most 0.1",
        "erase(1, only=0) => presence(others)": "the 1st object erased: the other objects must be found again",
    }.items(),
)
def test_words_of_a_relation_stand_after_those_of_the_transformation(spelling: str, words: str) -> None:
    assert rule(spelling).words == words


def dim_lights(pixels: npt.NDArray[np.uint8], strength: float, evenly: bool = False) -> npt.NDArray[np.uint8]:
    return pixels


def test_a_function_of_ones_own_reads_as_its_name_and_values() -> None:
    """Also where its code was not loaded, and braces in a name are no places of a template."""
    family = family_of_function(dim_lights, "shop.lamps:dim_lights")
    step = bound_step(parse_call("f(0.5, evenly=true)"), family, Transformation)  # type: ignore[arg-type]
    assert step.words == "dim lights, strength 0.5, evenly"
    assert named_transformation("shop.lamps:dim_lights(0.5, evenly=true)").words == "dim lights, 0.5, evenly true"
    braces = TransformationFamily("{odd}", "user", "photometric", dim_lights, (Parameter("strength", "float"),))
    assert bound_step(parse_call("f(2)"), braces, Transformation).words == "{odd}, strength 2"  # type: ignore[arg-type]


def test_words_do_not_enter_an_id_or_a_seed() -> None:
    one = transformation("erase(0.4, only=2) | mirror(h)")
    assert (one.id, one.seed_id) == ("erase(0.4, only=2) | mirror(h)", "erase(only=2) | mirror(h)")
