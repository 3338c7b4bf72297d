"""Seeded faults of a captioner: the suite `captions` catches each, and says what it is.

`rules` are patterns over the rules of the suite: for every fault those, and no others, are violated. `kinds` and
`sentences` are what is said of the violated pairs, `notes` what is said of the run as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import count
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import instar
from instar.report.marks import marked_pairs
from instar.report.panels import tables_of
from instar.tasks.meta_ic.language import counted, plural
from tests.perfect.captioners import GREY, Captioner, Seen, counts, data, oracle, ran, seen, worded, write_pool
from tests.quality.words import accusations, assert_accused, assert_checked, assert_shown_and_reported, said

RULES = [rule.id for rule in instar.suite("captions").rules]
NEW = "insert(0, most=* => objects*"
NEW_NUMBER = "insert(0, most=* => numbers*"
ONE_MORE = "insert(0, label=same*"
DARK, DARK_NUMBER, BRIGHT = "brightness(0, 0.4) => objects", "brightness(0, 0.4) => numbers", "gamma(0.4)*"


@dataclass(frozen=True)
class Fault:
    answer: Captioner
    rules: tuple[str, ...]
    kinds: frozenset[str] = frozenset()
    sentence: str = ""
    note: str = ""
    pool: bool = True
    also: tuple[str, ...] = ()
    """Rules that may see it as well, by chance: which objects were inserted, or in which order it was asked."""
    words: str = field(kw_only=True)
    """What must be said of it, as a regular expression; empty where nothing speaks against it."""
    check: str = field(default="", kw_only=True)
    """What `instar check` must say of it, where it can see it in a few images."""


def light(pixels: np.ndarray) -> float:
    """Of the background, whatever the border."""
    middle = pixels[pixels.shape[0] // 4 : -pixels.shape[0] // 4, pixels.shape[1] // 4 : -pixels.shape[1] // 4]
    return float(np.median(middle))


def sharp(pixels: np.ndarray) -> float:
    """The steepest edge, as a share of the range of grey levels."""
    levels = pixels.astype(np.float32)
    return float(np.abs(np.diff(levels, axis=1)).max() / max(np.ptp(levels), 1))


def blind_to_cars(pixels: np.ndarray) -> str:
    return worded({label: number for label, number in counts(seen(pixels)).items() if label != "car"})


def at_most_two_things(pixels: np.ndarray) -> str:
    return worded(dict(list(counts(seen(pixels)).items())[:2]))


def largest_alone(pixels: np.ndarray) -> str:
    return counted(1, max(seen(pixels), key=lambda each: each.area).label)


def newest_alone(pixels: np.ndarray) -> str:
    """Forgets what was there when there is a third thing."""
    things = seen(pixels)
    inserted = [each for each in things if not 0.12 < each.x < 0.3 and not 0.62 < each.x < 0.85]
    return worded(counts(inserted if len(things) > 2 and inserted else things))


def adds_a_person(pixels: np.ndarray) -> str:
    return oracle(pixels) + (" and a person" if len(seen(pixels)) > 2 else "")


def takes_a_third_for_a_cow(pixels: np.ndarray) -> str:
    things = seen(pixels)
    third = [Seen("cow", each.x, each.y, each.area) if at > 1 else each for at, each in enumerate(things)]
    return worded(counts(third))


def swaps_cats_and_dogs_in_company(pixels: np.ndarray) -> str:
    """Right with two things, and wrong with three."""
    things, swapped = seen(pixels), {"cat": "dog", "dog": "cat"}
    number = counts(things)
    return worded({swapped.get(label, label): n for label, n in number.items()} if len(things) > 2 else number)


def always_singular(pixels: np.ndarray) -> str:
    return worded(dict.fromkeys(counts(seen(pixels)), 1))


def always_plural(pixels: np.ndarray) -> str:
    return " and ".join(map(plural, counts(seen(pixels)))) or "an empty place"


def miscounts_three(pixels: np.ndarray) -> str:
    """With three things each is said to be two."""
    things = seen(pixels)
    return worded(dict.fromkeys(counts(things), 2) if len(things) > 2 else counts(things))


def training_caption(pixels: np.ndarray) -> str:
    return "a man riding a wave on top of a surfboard"


def silent(pixels: np.ndarray) -> str:
    return ""


def silent_in_the_dark(pixels: np.ndarray) -> str:
    return "" if light(pixels) < 0.6 * GREY else oracle(pixels)


def silent_on_three(pixels: np.ndarray) -> str:
    return "" if len(seen(pixels)) > 2 else oracle(pixels)


def spanish(pixels: np.ndarray) -> str:
    words = {"dog": "perro", "cat": "gato", "car": "coche", "bus": "autobús", "traffic light": "semáforo"}
    return " y ".join(f"un {words.get(label, 'animal')}" for label in counts(seen(pixels))) + " en la calle"


def spanish_in_the_dark(pixels: np.ndarray) -> str:
    return spanish(pixels) if light(pixels) < 0.6 * GREY else oracle(pixels)


def cats_in_the_dark(pixels: np.ndarray) -> str:
    text = oracle(pixels)
    return text.replace("dog", "horse").replace("car", "boat") if light(pixels) < 0.6 * GREY else text


def double_in_the_dark(pixels: np.ndarray) -> str:
    number = counts(seen(pixels))
    return worded({label: n * 2 for label, n in number.items()} if light(pixels) < 0.6 * GREY else number)


def dazzled(pixels: np.ndarray) -> str:
    return "a white wall" if light(pixels) > 1.2 * GREY else oracle(pixels)


def nothing_out_of_focus(pixels: np.ndarray) -> str:
    return "a blurry photo" if sharp(pixels) < 0.15 else oracle(pixels)


def person_in_compression(pixels: np.ndarray) -> str:
    """Sees somebody in the noise of the background."""
    return oracle(pixels) + (" and a person" if len(np.unique(pixels)) > 200 else "")


def left_half_alone(pixels: np.ndarray) -> str:
    return worded(counts([each for each in seen(pixels) if each.x < 0.55]))


def large_alone(pixels: np.ndarray) -> str:
    """What fills little of the frame is not named."""
    return worded(counts([each for each in seen(pixels) if each.area > 0.015]))


def nothing_in_small_images(pixels: np.ndarray) -> str:
    return "a tiny image" if pixels.shape[1] < 100 else oracle(pixels)


def object_for_the_third(pixels: np.ndarray) -> str:
    number = counts(seen(pixels))
    named = dict(list(number.items())[:2])
    return worded(named) + (" and an object" if len(number) > 2 else "")


def hypernyms(pixels: np.ndarray) -> str:
    wider = {"dog": "animal", "cat": "animal", "sheep": "animal", "car": "vehicle", "bus": "vehicle"}
    return worded(counts([Seen(wider.get(each.label, each.label), each.x, each.y, each.area) for each in seen(pixels)]))


def denies_the_third(pixels: np.ndarray) -> str:
    number = list(counts(seen(pixels)).items())
    return worded(dict(number[:2])) + "".join(f" but no {label}" for label, _ in number[2:])


def neither_nor(pixels: np.ndarray) -> str:
    number = list(counts(seen(pixels)).items())
    return worded(dict(number[:2])) + "".join(f" with neither a {label} nor a cow" for label, _ in number[2:])


def cut_after_five_words(pixels: np.ndarray) -> str:
    return " ".join(oracle(pixels).split()[:5])


def stutters(pixels: np.ndarray) -> str:
    return "a a a a a a a" if len(seen(pixels)) > 2 else oracle(pixels)


def by_chance() -> Captioner:
    numbers = count()

    def answer(pixels: np.ndarray) -> str:
        return oracle(pixels) if next(numbers) % 2 else "a cow in a field"

    return answer


def of_the_image_before() -> Captioner:
    last = ["a cow in a field"]

    def answer(pixels: np.ndarray) -> str:
        last.append(oracle(pixels))
        return last.pop(0)

    return answer


OMITS, INVENTS, NUMBER = frozenset({"omission"}), frozenset({"misclassification"}), frozenset({"number"})
RENAMES = frozenset({"misclassification with omission"})
COUNTS, ALL = (NEW_NUMBER, ONE_MORE), ("*",)
FAULTS = {
    "blind to one class": Fault(
        blind_to_cars,
        (NEW,),
        OMITS,
        "car was inserted and is not named",
        words="do not name what they should name: car in 4 follow-ups",
    ),
    "names two things at most": Fault(
        at_most_two_things,
        (NEW,),
        OMITS,
        "is not named",
        words="something that is there is not named .*name what is new",
    ),
    "names the largest alone": Fault(
        largest_alone,
        (NEW,),
        OMITS,
        "was inserted and is not named",
        also=ALL,
        words="something that is there is not named .*name what is new",
    ),
    "forgets what was there": Fault(
        newest_alone,
        (NEW,),
        OMITS,
        "is not named any more",
        also=COUNTS,
        words="something that is there is not named .*all that they named before",
    ),
    "adds a person": Fault(
        adds_a_person,
        (NEW,),
        INVENTS,
        "person is named and was not there before",
        words="name what is not there: person in 18 follow-ups",
    ),
    "takes a third for a cow": Fault(
        takes_a_third_for_a_cow, (NEW,), INVENTS, "cow is named", also=COUNTS, words="name what is not there: cow in"
    ),
    "swaps two classes": Fault(
        swaps_cats_and_dogs_in_company,
        (NEW,),
        RENAMES,
        "is named and was not",
        also=COUNTS,
        words="name what is not there: cat in .* dog in",
    ),
    "always singular": Fault(
        always_singular,
        (ONE_MORE,),
        NUMBER,
        "named as one instead of many",
        also=(NEW_NUMBER,),
        words="one is called many, or many one .*one more of a kind that is there makes many",
    ),
    "always plural": Fault(
        always_plural,
        (NEW_NUMBER,),
        NUMBER,
        "named as many instead of one",
        words="one is called many, or many one .*what is new is one",
    ),
    "miscounts three": Fault(
        miscounts_three,
        (NEW_NUMBER,),
        NUMBER,
        "named as many instead of one",
        also=COUNTS,
        words="one is called many, or many one .*what is new is one",
    ),
    "repeats a training caption": Fault(
        training_caption,
        (NEW,),
        OMITS,
        "was inserted and is not named",
        "All 6 images have the same caption",
        words="All 6 images have the same caption",
        check="looks.same",
    ),
    "always silent": Fault(
        silent,
        (NEW,),
        OMITS,
        "was inserted and is not named",
        "captions are empty",
        words="78 of 78 captions are empty",
        check="looks.same",
    ),
    "silent in the dark": Fault(
        silent_in_the_dark,
        (DARK,),
        frozenset({"silent"}),
        "the follow-up is empty",
        "empty",
        words="the follow-up's caption is empty .*in the dark",
    ),
    "silent on three": Fault(
        silent_on_three,
        (NEW,),
        frozenset({"silent"}),
        "the follow-up is empty",
        "empty",
        words="the follow-up's caption is empty .*name what is new",
    ),
    "in another language": Fault(spanish, (), note="captions are not English; only English is read", words=""),
    "in another language in the dark": Fault(
        spanish_in_the_dark,
        (DARK,),
        frozenset({"language"}),
        "the follow-up is not English",
        "are not English",
        words="the follow-up's caption is not English .*in the dark",
    ),
    "other classes in the dark": Fault(
        cats_in_the_dark,
        (DARK,),
        RENAMES,
        "is named and was not there before",
        words="something is named that is not there .*in the dark",
    ),
    "sees double in the dark": Fault(
        double_in_the_dark,
        (DARK_NUMBER,),
        NUMBER,
        "named as many instead of one",
        words="one is called many, or many one .*in the dark",
    ),
    "dazzled": Fault(
        dazzled,
        (BRIGHT,),
        OMITS,
        "is not named any more",
        words="something that is there is not named .*in bright light",
    ),
    "nothing out of focus": Fault(
        nothing_out_of_focus,
        ("blur(2)*",),
        OMITS,
        "is not named any more",
        words="something that is there is not named .*out of focus",
    ),
    "a person in compression": Fault(
        person_in_compression,
        ("jpeg(50)*",),
        INVENTS,
        "person is named",
        words="name what is not there: person in 6 follow-ups",
    ),
    "the left half alone": Fault(
        left_half_alone,
        ("mirror(h)*",),
        RENAMES,
        "is not named any more",
        pool=False,
        words="something is named that is not there .*on both sides of the image",
    ),
    "small things": Fault(
        large_alone,
        ("pad(0.25)*",),
        OMITS,
        "is not named any more",
        pool=False,
        words="something that is there is not named .*only what is in the middle or fills the frame",
    ),
    "nothing in small images": Fault(
        nothing_in_small_images,
        ("resolution(0.5)*",),
        OMITS,
        "is not named any more",
        words="something that is there is not named .*in a small image",
    ),
    "says an object": Fault(
        object_for_the_third,
        (NEW,),
        OMITS,
        "is not named",
        words="something that is there is not named .*name what is new",
    ),
    "says an animal": Fault(
        hypernyms,
        (NEW,),
        OMITS,
        "was inserted and is not named",
        "because a wider word stands for an object",
        words="something that is there is not named",
    ),
    "denies what is new": Fault(
        denies_the_third, (NEW,), OMITS, "is not named", words="something that is there is not named .*name what is new"
    ),
    "neither nor": Fault(
        neither_nor, (NEW,), OMITS, "is not named", words="something that is there is not named .*name what is new"
    ),
    "stops after five words": Fault(
        cut_after_five_words,
        (NEW,),
        OMITS,
        "is not named",
        also=ALL,
        words="something that is there is not named .*name what is new",
    ),
    "stutters": Fault(
        stutters, (NEW,), OMITS, "is not named", words="something that is there is not named .*name what is new"
    ),
    "answers by chance": Fault(
        by_chance(), (NEW,), RENAMES, "cow", also=ALL, words="do not name what they should name: cow"
    ),
    "answers of the image before": Fault(
        of_the_image_before(),
        (NEW,),
        INVENTS,
        also=ALL,
        words="something that is there is not named .*name what is new",
        check="determinism.remembers",
    ),
}


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pool(tmp_path_factory.mktemp("pool"))


def violated(run: instar.Run) -> pl.DataFrame:
    return run.verdicts().filter(pl.col("severity") > 0)


def sentences(run: instar.Run) -> Iterator[str]:
    for pair in marked_pairs(run.store, violated(run).to_dicts(), "default"):
        yield from pair.sentences if pair else ()


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_caught_and_named(name: str, pool: Path, tmp_path: Path) -> None:
    fault = FAULTS[name]
    run = ran(fault.answer, tmp_path / "run", pool=pool if fault.pool else None)
    rows = violated(run)
    caught = set(rows["rule"])
    expected, also = (
        {rule for rule in RULES if any(fnmatchcase(rule, pattern) for pattern in patterns)}
        for patterns in (fault.rules, fault.also)
    )
    assert expected <= caught <= expected | also
    assert fault.kinds <= set(rows["kind"])
    assert any(fault.sentence in sentence for sentence in sentences(run)) or not fault.sentence
    assert any(fault.note in each.words for each in said(run))
    if fault.words:
        assert_accused(run, fault.words)
    else:
        assert accusations(run) == [], "only English is read, and that is no fault"
    if fault.note:
        assert fault.note in " ".join(tables_of([run], "default", 0.05)["captions"].after)
    if name == "repeats a training caption":
        assert_shown_and_reported(run)


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.check])
def test_check_says_it_of_a_few_images(name: str) -> None:
    inputs = [(case.id, case.input) for case in data(3).cases()]
    assert_checked(instar.declare(kind="caption")(FAULTS[name].answer), inputs, FAULTS[name].check)


def test_every_rule_is_needed() -> None:
    """The suite is the least: each rule but identity, which tells chance, sees a fault that no other sees."""
    alone = {fault.rules[0] for fault in FAULTS.values() if len(fault.rules) == 1}
    for rule in set(RULES) - {"identity => objects"}:
        assert any(fnmatchcase(rule, pattern) for pattern in alone), rule


def test_without_a_pool_the_rest_still_says_something(tmp_path: Path) -> None:
    run = ran(silent_in_the_dark, tmp_path / "run", pool=None)
    assert set(violated(run)["rule"]) == {DARK}
    notes = " ".join(each.words for each in said(run))
    assert "Nothing was inserted, so that nobody knows whether captions name what is new" in notes
    assert "instar pool make" in notes


def test_a_useless_captioner_is_no_clean_one_without_a_pool(tmp_path: Path) -> None:
    run = ran(training_caption, tmp_path / "run", pool=None)
    assert_accused(run, "All 6 images have the same caption")
    silence = ran(silent, tmp_path / "silence", pool=None)
    verdicts = silence.verdicts()
    assert verdicts["severity"].is_null().all()
    assert "nothing was found in either image" in set(verdicts["reason"])
