"""The papers' tables, and how suites are named and joined."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from instar.relations import own_equivariance, rule
from instar.suites import KEPT, Suite, default_suite, listed_suite, suite, suites
from instar.suites.suite import joined
from instar.transforms import Transformation

COUNTS = {
    "identity": 1,
    "stretch": 12,
    "mirror": 3,
    "rotation": 4,
    "resolution": 11,
    "gamma": 8,
    "brightness": 9,
    "bilateral": 28,
    "motion": 16,
    "greyscale": 1,
    "colour_wheel": 10,
    "colour_channels": 10,
    "colour_fill": 10,
}
SUB = {
    "identity",
    "stretch(1, 0.8)",
    "stretch(1, 0.6)",
    "stretch(1.25, 1)",
    "mirror(h)",
    "rotation(5)",
    "rotation(10)",
    "resolution(0.2)",
    "resolution(0.7)",
    "gamma(0.5)",
    "brightness(20, 0.8)",
    "bilateral(10, 3)",
    "bilateral(80, 7)",
    "bilateral(125, 5)",
    "motion(11, 0)",
    "motion(11, 100)",
    "greyscale",
    "filtered(colour_wheel(90), hair)",
    "filtered(colour_wheel(90), background)",
}


def ids(name: str) -> list[str]:
    return [one.id for one in suite(name).rules]


def family_of(change: Transformation) -> str:
    (step,) = change.steps
    return family_of(step.inner[0]) if step.inner else step.family.name


@pytest.mark.parametrize("name", ["met-pose", "met-pose@paper"])
def test_met_pose_has_122_rules_and_identity(name: str) -> None:
    found = [family_of(one.transformations[0]) for one in suite(name).rules]
    assert Counter(found) == COUNTS
    assert list(dict.fromkeys(found)) == list(COUNTS)  # in the table's order
    assert len(set(ids(name))) == 123
    assert suite(name).output == "poses"


def test_met_pose_in_numbers() -> None:
    table = set(ids("met-pose"))
    assert {
        f"bilateral({strength}, {size})" for strength in (10, 30, 50, 80, 125, 150, 180) for size in (3, 5, 7, 9)
    } < table
    assert {f"motion({size}, {direction})" for size in (5, 7, 9, 11) for direction in (0, 40, 70, 100)} < table
    assert {
        f"filtered(colour_wheel({turn}), {zone})" for turn in (10, 30, 90, -45) for zone in ("skin", "clothes")
    } < table
    assert {
        f"filtered(colour_fill({colour}), {zone})"
        for colour in ((0, 0, 255), (255, 180, 120), (33, 28, 27))
        for zone in ("background", "skin", "clothes")
    } < table
    assert {
        "filtered(colour_fill((230, 120, 120)), skin)",
        "filtered(colour_channels((1, 1, 1), encoding=bgr), skin)",
        "filtered(colour_channels((1, 1, 1), encoding=xyz), skin)",
    } < table
    assert {
        f"stretch({h}, {w})"
        for h, w in (
            (0.6, 1),
            (0.8, 1),
            (0.9, 1.1),
            (0.95, 1.05),
            (1, 1.4),
            (1, 1.25),
            (1.05, 0.95),
            (1.1, 0.9),
            (1.4, 1),
        )
    } < table


def test_the_restricted_set() -> None:
    assert set(ids("met-pose/sub")) == SUB
    assert len(ids("met-pose/sub")) == 19
    assert len(ids("met-pose/sub@paper")) == 19


def test_the_three_classes_partition_the_table() -> None:
    classes = [ids(f"met-pose/{name}") for name in ("spatial", "quality", "colour")]
    assert [len(found) for found in classes] == [20, 72, 31]
    assert [*classes[0], *classes[1], *classes[2]] == ids("met-pose")
    assert "greyscale" in classes[2]
    assert "identity" in classes[0]


def test_paper_mode_spells_the_original_s_behaviour() -> None:
    paper = set(ids("met-pose@paper"))
    assert {
        "rotation(5, centre=swapped)",
        "motion(1, 40, kernel=unnormalised)",
        "motion(11, 0, kernel=unnormalised)",
        "brightness(-20, 0.8, overflow=absolute)",
        "filtered(colour_wheel(180), hair)",
        "filtered(colour_wheel(-90), skin)",
        "mirror(v) => poses(handedness=kept)",
        "mirror(h)",
        "mirror(both) => poses(handedness=swapped)",
        "filtered(colour_channels((0.9, 1.1, 1.1), overflow=wrap), skin)",
    } < paper
    assert not [text for text in paper if "motion(11, 40" in text or text == "rotation(5)"]
    assert suite("met-pose@paper").options == {
        "aggregate": "median+mean",
        "normaliser": "part",
        "outside": "keep",
        "space": "normalised",
        "confidence": 0,
        "margin": 0,
        "share": 0,
        "partly": 1,
        "empty": "keep",
        "zone_share": 1,
    }


def test_purposes_say_what_rules_are_for_and_survive_a_join() -> None:
    one = listed_suite("a", ["gamma(0.50)"], "", "poses", purposes={"gamma(0.50)": "light"})
    assert one.purposes == {"gamma(0.5)": "light"}
    assert joined([one, suite("mirror(h)")], name="b").purposes == {"gamma(0.5)": "light"}
    known = {option.name: option for option in own_equivariance("poses").relation.options}
    for name, value in suite("met-pose@paper").options.items():
        known[name].check(value, "met-pose@paper")
    assert suite("met-pose").options == {}


def test_every_suite_is_named_as_it_is_called_and_explains_itself() -> None:
    for name, one in suites().items():
        assert one.name == name
        assert one.help
        assert suite(name).rules == one.rules


@pytest.mark.parametrize(("kind", "name"), [("poses", "poses"), ("detections", "detections")])
def test_every_kind_of_output_has_a_default(kind: str, name: str) -> None:
    found = default_suite(kind)
    assert found.name == name
    for one in found.rules:
        assert one.for_output(kind).relation


def test_an_output_kind_without_a_default() -> None:
    with pytest.raises(KeyError, match=r"unknown output kind 'pose'; did you mean 'poses'"):
        default_suite("pose")


# --- naming ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "gamma(0.5)",
        "identity",
        "mirror(h) => poses",
        "gamma(0.5) | rotation(5)",
        "[gamma(0.5), gamma(0.25)] => correlation",
    ],
)
def test_one_rule_is_a_suite(text: str) -> None:
    found = suite(text)
    assert found.name == text
    assert [one.id for one in found.rules] == [rule(text).id]
    assert found.output == ("poses" if text.endswith("poses") else None)


def test_suites_and_rules_join_by_plus() -> None:
    both = suite("met-pose/sub + gamma(+0.3) + greyscale")
    assert len(both) == 20  # greyscale was there already
    assert both.rules[-1].id == "gamma(0.3)"
    assert both.output == "poses"
    assert suite("met-pose/sub@paper + contrast(0.5)").options == suite("met-pose@paper").options


def test_suites_that_are_judged_differently_do_not_join() -> None:
    with pytest.raises(ValueError, match="judged differently"):
        suite("met-pose + met-pose@paper")


MINE = Suite("mine", (rule("gamma(0.5)"), rule("mirror(h)")), thresholds={"*": 0.3, "mirror(h)": 0.1})


def test_a_suite_of_another_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    found = suite(f"{Path(__file__).stem}:MINE")
    assert [one.id for one in found.rules] == ["gamma(0.5)", "mirror(h)"]
    whole = suite(f"{Path(__file__).stem}:MINE + rotation(5)")
    assert whole.thresholds == {"gamma(0.5)": 0.3, "mirror(h)": 0.1}  # its star speaks for its own rules


def test_unknown_names_say_what_is_near() -> None:
    with pytest.raises(KeyError, match="unknown suite 'met-pos'; did you mean 'met-pose'"):
        suite("met-pos")
    with pytest.raises(KeyError, match="did you mean 'greyscale'"):
        suite("grayscale")
    with pytest.raises(KeyError, match="unknown transformation 'gama'; did you mean 'gamma'"):
        suite("gama(0.5)")
    with pytest.raises(ValueError, match="nothing on one side"):
        suite("met-pose +")


def test_importing_suites_builds_none() -> None:
    code = (
        "import instar.suites as s, sys; assert s._named.cache_info().currsize == 0; assert 'scipy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


OWN = ("poses", "hands", "detections", "captions", "forecasts", "labels", "segmentation")


@pytest.mark.parametrize("name", OWN)
def test_purposes_are_nouns_that_complete_a_sentence(name: str) -> None:
    """They stand after `This rule looks for`: some were predicates, some headings."""
    for spelling, text in suite(name).purposes.items():
        purpose = text.partition(KEPT)[0]
        assert not set(":;.") & set(purpose), (spelling, purpose)
        assert purpose.split()[0] not in ("names", "says", "counts", "walking", "leaning"), (spelling, purpose)
