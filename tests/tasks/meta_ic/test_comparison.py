"""Two captions side by side: an oracle is never accused, and what is wrong is always seen, over pairs of classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import pytest

from instar.tasks.meta_ic.comparison import class_of, compared, unknown_label
from instar.tasks.meta_ic.language import coco, counted

CLASSES = coco().classes
PHRASINGS = {
    "and": ("{here}", "{here} and {new}"),
    "before": ("{here} in a room.", "{new} next to {here} in a room."),
    "list": ("a close up of {here}", "a close up of {new}, {here}"),
    "title": ("There Is {here}", "There Is {here} With {new}"),
}


NUMBERS = {label: number for number, label in enumerate(CLASSES)}
T = TypeVar("T")


def one(label: str) -> str:
    return counted(1, label)


def in_turn(ways: Sequence[T], here: str, new: str) -> T:
    """Every pair of classes is put in one of several ways, and every class in all of them."""
    return ways[(NUMBERS[here] + NUMBERS[new]) % len(ways)]


def words_with_senses() -> Iterator[tuple[str, str]]:
    """Every word of which other words of a caption decide what it means, with its class."""
    for entry in coco().entries:
        if (entry.only or entry.unless) and entry.kind == "word" and entry.form == "singular":
            yield entry.lemma, entry.label


SENSES = sorted(set(words_with_senses()))


def wrong(source: str, follow_up: str, inserted: str) -> tuple[str, ...]:
    pair = compared(source, follow_up, [inserted])
    return (*pair.missing, *pair.extra, *pair.numbers)


@pytest.mark.parametrize("phrasing", PHRASINGS)
def test_an_oracle_is_not_accused_whatever_is_inserted(phrasing: str) -> None:
    source, follow_up = PHRASINGS[phrasing]
    for here in CLASSES:
        before = source.format(here=one(here))
        more = source.format(here=counted(2, here))
        assert not wrong(before, more, here), (before, more)
        for new in CLASSES:
            after = follow_up.format(here=one(here), new=one(new))
            if here != new and in_turn([*PHRASINGS], here, new) == phrasing:
                assert not wrong(before, after, new), (before, after)


def test_a_list_of_tags_is_a_caption_too() -> None:
    for here in CLASSES:
        for new in CLASSES:
            if here != new:
                before, between = in_turn([(f"{here}, wall", ", "), (here, " and ")], here, new)
                assert not wrong(before, f"{before}{between}{new}", new), (here, new)


@pytest.mark.parametrize("word", sorted({word for word, _ in SENSES}))
def test_a_word_of_several_senses_keeps_the_sources(word: str) -> None:
    for new in CLASSES:
        before, after = f"{one(word)} outside", f"{one(new)} and {one(word)} outside"
        if (word, new) not in SENSES:
            assert not wrong(before, after, new), (before, after)


@pytest.mark.parametrize(("word", "label"), SENSES)
def test_a_word_of_several_senses_may_name_its_class(word: str, label: str) -> None:
    for other in CLASSES:
        if other == label:
            continue
        ways = (
            (one(label), f"{one(word)} and {one(other)}", other),
            (one(other), f"{one(other)} and {one(word)}", label),
            (one(word), f"{one(label)} with {one(other)}", other),
        )
        before, after, new = in_turn(ways, label, other)
        assert not wrong(before, after, new), (before, after)


@pytest.mark.parametrize(
    ("source", "follow_up", "inserted"),
    [
        ("a bike on a street", "a bike and a motorcycle on a street", "motorcycle"),
        ("a motorcycle", "a motorcycle and a bike", "bicycle"),
        ("a motorcycle", "a bike and a dog", "dog"),
        ("a batter at home plate", "a batter at home plate and a bowl", "bowl"),
        ("a chicken in a yard", "a chicken in a yard and a fork", "fork"),
        ("a woman with a glove", "a woman with a glove and a ball", "sports ball"),
        ("a fan on a desk", "a fan on a desk and a baseball", "sports ball"),
        ("a pitcher on a mound", "a cup and a pitcher on a mound", "cup"),
        ("a baby", "an elephant and a baby", "elephant"),
        ("a bird", "a bird and a baby", "person"),
        ("a man with a keyboard", "a musician with a keyboard and a clock", "clock"),
        ("a man wind surfing", "a man wind surfing and a dog", "dog"),
        ("a statue of a horse", "a horse statue and a dog", "dog"),
        ("an animal in a field", "a dog and a cat in a field", "cat"),
        ("two dogs", "a couple of dogs and a Cat.", "cat"),
    ],
)
def test_flawless_pairs(source: str, follow_up: str, inserted: str) -> None:
    assert not any(compared(source, follow_up, [inserted]).sentences.values())


@pytest.mark.parametrize(
    ("source", "follow_up", "inserted", "sentence"),
    [
        ("a plate of food", "a plate of food", "pizza", "pizza was inserted and is not named"),
        ("an animal", "an animal and a bench", "dog", "dog was inserted and is not named"),
        ("a dog", "an animal", "cat", "dog is not named any more"),
        ("a bench", "a bench and an object", "dog", "dog was inserted and is not named"),
        ("a bench", "a bench and some things", "dog", "dog was inserted and is not named"),
        ("a bench", "a bench with neither a dog nor a cat", "dog", "dog was inserted and is not named"),
        ("a bench", "a bench without a dog", "dog", "dog was inserted and is not named"),
        ("a man wind surfing", "a wave and a dog", "dog", "person is not named any more"),
        ("a horse statue", "a statue and a dog", "dog", "horse is not named any more"),
        ("a dog", "", "cat", "the caption of the follow-up is empty"),
        ("a dog", "un perro y un gato", "cat", "the caption of the follow-up is not English, that of the source is"),
    ],
)
def test_faults_are_seen(source: str, follow_up: str, inserted: str, sentence: str) -> None:
    assert sentence in compared(source, follow_up, [inserted]).sentences["objects"]


def test_what_is_omitted_added_or_miscounted_is_always_seen() -> None:
    for here in CLASSES:
        for new in CLASSES:
            other = next(each for each in ("zebra", "kite", "sink") if each not in (here, new))
            before = one(here)
            if here == new:
                pair = compared(before, before, [new])
                assert pair.numbers or before.startswith(("a pair", "a piece", "some")), before
                continue
            follow_up, missing, extra = in_turn(
                [
                    (before, (new,), ()),
                    (one(new), (here,), ()),
                    (f"{before} and {one(new)} and {one(other)}", (), (other,)),
                ],
                here,
                new,
            )
            pair = compared(before, follow_up, [new])
            assert (pair.missing, pair.extra) == (missing, extra), (here, new)


def test_a_wider_word_that_is_new_leaves_the_pair_unjudged() -> None:
    pair = compared("a field", "an animal in a field", ["dog"])
    assert (pair.missing, pair.vague, pair.kind) == ((), ("dog",), None)
    assert compared("a field with an animal", "animals in a field", ["dog"]).vague == ("dog",)


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("wine_glass", "wine glass"),
        ("hot_dog", "hot dog"),
        ("Hot Dog", "hot dog"),
        ("TrafficLight", "traffic light"),
        ("diningtable", "dining table"),
        ("pottedplant", "potted plant"),
        ("aeroplane", "airplane"),
        ("TV", "tv"),
        ("cell-phone", "cell phone"),
        ("sports_ball", "sports ball"),
        ("unicorn", None),
    ],
)
def test_labels_are_the_classes_they_mean(label: str, name: str | None) -> None:
    assert class_of(label, coco()) == name


def test_labels_with_underscores_are_judged_like_those_without() -> None:
    assert not any(compared("a bench", "a wine glass on a bench", ["wine_glass"]).sentences.values())
    assert compared("a bench", "a dog on a bench", ["hot_dog"]).missing == ("hot dog",)


def test_each_original_knows_its_own_classes() -> None:
    reason = "the code of MetaIC knows 60 classes, and 'donut' is none of them"
    assert unknown_label(["donut"], "paper", coco()) == reason
    assert unknown_label(["donut"], "paper65", coco()) is None
    assert "65 classes" in str(unknown_label(["wine_glass"], "paper65", coco()))
    assert unknown_label(["wine_glass"], "words", coco()) is None


def test_both_captions_in_another_language_are_not_judged() -> None:
    pair = compared("un perro en un banco", "un perro y un gato en un banco", ["cat"])
    assert pair.foreign
    assert not compared("", "", []).foreign
    assert compared("", "", []).nothing
