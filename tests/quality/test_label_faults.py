"""Seeded faults of classifiers: the suite `labels` catches each by the rules that can see it, and says what it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

import instar
from instar import Labels
from tests.quality import painted as p
from tests.quality.words import accusations, assert_accused, assert_checked, assert_shown_and_reported
from tests.toys import image_system

IMAGES = [p.sign(number) for number in range(6)]
NAMES = ("disc", "square", "star")
ALL = {rule.id for rule in instar.suite("labels").rules}
Answer = Callable[[np.ndarray], Labels]


def right(pixels: np.ndarray, sure: float = 0.9) -> Labels:
    """Red is a disc, blue a square."""
    best = int(p.redness(pixels).sum() < 0)
    scores = np.full(3, (1 - sure) / 2)
    scores[best] = sure
    return Labels.from_scores(NAMES, scores)


def star(pixels: np.ndarray) -> Labels:
    """Something that no image shows."""
    return Labels.from_scores(NAMES, [0.1, 0.1, 0.8])


def wrong_if(seen: Callable[[np.ndarray], bool]) -> Callable[[], Answer]:
    return lambda: lambda pixels: star(pixels) if seen(pixels) else right(pixels)


def looks_left(pixels: np.ndarray) -> bool:
    """The white spot lies left of what it is on."""
    white = np.argwhere((pixels.min(2).astype(int) > 0.85 * pixels.max()) & (pixels.min(2) > 120))
    coloured = np.argwhere(p.cells(pixels) > 0)
    return len(white) > 9 and len(coloured) > 9 and float(white[:, 1].mean()) < float(coloured[:, 1].mean())


def spot_is_the_class() -> Answer:
    """Takes which way the spot looks for what the thing is: a mirror makes it another thing."""
    return lambda pixels: Labels.from_scores(NAMES, [0.1, 0.8, 0.1] if looks_left(pixels) else [0.8, 0.1, 0.1])


def lagging() -> Answer:
    """Answers with the image before."""
    answers: list[Labels] = []

    def answer(pixels: np.ndarray) -> Labels:
        answers.append(right(pixels))
        return answers[-2] if len(answers) > 1 else star(pixels)

    return answer


def rolling_dice() -> Answer:
    rng = np.random.default_rng(0)
    return lambda pixels: Labels.from_scores(NAMES, rng.dirichlet([0.2] * 3))


def unsure_in_the_dark() -> Answer:
    return lambda pixels: right(pixels, 0.36 if p.dark(pixels) else 0.9)


def silent_in_the_light() -> Answer:
    return lambda pixels: Labels.from_scores([]) if p.bright(pixels) else right(pixels)


def only_with_spots() -> Answer:
    """Says anything only when an image is blurred."""
    return lambda pixels: right(pixels) if p.soft(pixels) else Labels.from_scores([])


@dataclass(frozen=True)
class Fault:
    make: Callable[[], Answer]
    caught: frozenset[str]
    words: str
    """What must be said of it, as a regular expression."""
    kind: str | None = "class"
    exactly: bool = True
    check: str = ""
    """What `instar check` must say of it, where it can see it in a few images."""


def fault(make: Callable[[], Answer], *caught: str, words: str, **more: object) -> Fault:
    return Fault(make, frozenset(caught), words, **more)  # type: ignore[arg-type]


SHIFT, CROP, PAD, NARROW = "shift(0.1, y=0.1)", "crop(0.9)", "pad(0.15)", "stretch(1, 0.8)"
FAULTS = {
    "the way it looks is the class": fault(
        spot_is_the_class, "mirror(h)", words=r"mirror\(h\) \(.+\): another class comes first .*which way things look"
    ),
    "another class off the middle": fault(
        wrong_if(lambda pixels: p.middle(pixels)[0] > 0.575),
        SHIFT,
        words=r"shift\(.*another class comes first .*where things are",
    ),
    "another class when large": fault(
        wrong_if(lambda pixels: p.share(pixels) > 0.125),
        CROP,
        words=r"crop\(.*another class comes first .*how large things are",
    ),
    "another class when tiny": fault(
        wrong_if(lambda pixels: p.share(pixels) < 0.08), PAD, words=r"pad\(.*another class comes first .*small things"
    ),
    "margins are a class": fault(
        wrong_if(p.margins),
        PAD,
        words=r"pad\(.*another class comes first .*margins that are taken for a part of the image",
    ),
    "another class when narrow": fault(
        wrong_if(p.narrow), NARROW, words="another class comes first .*an aspect that is lost"
    ),
    "known only upright": fault(
        wrong_if(p.tilted), "rotation(5)", words="another class comes first .*things that are known only upright"
    ),
    "needs large images": fault(
        wrong_if(p.small), "resolution(0.5)", words="another class comes first .*needs a certain size of image"
    ),
    "another class in the dark": fault(wrong_if(p.dark), "gamma(1.5)", words="another class comes first .*dark images"),
    "another class in the light": fault(
        wrong_if(p.bright), "gamma(0.5)", words="another class comes first .*bright images"
    ),
    "another class in haze": fault(wrong_if(p.flat), "contrast(0.7)", words="another class comes first .*flat images"),
    "another class out of focus": fault(wrong_if(p.soft), "blur(1)", words="another class comes first .*fine texture"),
    "another class in noise": fault(wrong_if(p.noisy), "noise(8)", words="another class comes first .*noise"),
    "another class when compressed": fault(
        wrong_if(p.blocky), "jpeg(30)", words="another class comes first .*compression"
    ),
    "sure of nothing in the dark": fault(
        unsure_in_the_dark,
        "gamma(1.5)",
        kind=None,
        words=r"gamma\(1.5\) .+: by up to 0.6 of the class's score lost.*dark images",
    ),
    "silent in the light": fault(
        silent_in_the_light, "gamma(0.5)", kind="lost", words="no class is named any more .*bright images"
    ),
    "speaks only out of focus": fault(
        only_with_spots,
        "blur(1)",
        kind="invented",
        words=r"blur\(1\) \(.+\): a class is named where none was",
        check="looks.same",
    ),
    "answers with the image before": fault(
        lagging, "mirror(h)", exactly=False, words="another class comes first", check="determinism.remembers"
    ),
    "rolls dice": fault(
        rolling_dice,
        "identity",
        exactly=False,
        words=r"identity \(.+\): another class comes first .*chance",
        check="determinism.differs",
    ),
    "always the same": fault(
        lambda: star, kind=None, words="named the same class, star, for all 6 images", check="looks.same"
    ),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], instar.Run]:
    made: dict[str, instar.Run] = {}

    def run(name: str) -> instar.Run:
        if name not in made:
            made[name] = p.run_of(FAULTS[name].make(), "labels", IMAGES, tmp_path_factory.mktemp("run") / "run")
        return made[name]

    return run


@pytest.mark.parametrize("name", FAULTS)
def test_the_suite_catches_it(name: str, runs: Callable[[str], instar.Run]) -> None:
    run, seeded = runs(name), FAULTS[name]
    caught = p.violated(run)
    assert seeded.caught <= caught and (caught == seeded.caught or not seeded.exactly), caught
    if seeded.kind:
        assert seeded.kind in run.verdicts().filter(severity=run.verdicts()["severity"].max())["kind"].to_list()
    assert_accused(run, seeded.words)
    if "same class" not in seeded.words:
        assert "named the same class" not in " ".join(accusations(run))


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.check])
def test_check_says_it_of_a_few_images(name: str) -> None:
    assert_checked(image_system(FAULTS[name].make(), "labels"), p.inputs_of(IMAGES[:3]), FAULTS[name].check)


def test_no_rule_is_for_nothing() -> None:
    """Without any one rule some fault is not seen."""
    for rule in ALL:
        assert any(seeded.caught == {rule} or rule == "identity" for seeded in FAULTS.values()), rule


def test_show_and_the_report_say_all_of_it(runs: Callable[[str], instar.Run]) -> None:
    assert_shown_and_reported(runs("always the same"))
