"""Reading a caption: places, reasons, wider words, vocabularies and taggers of one's own, and hostile text."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.systems.boxes import COCO
from instar.tasks.meta_ic.language import Mention, Reading, coco, read_caption, read_vocabulary
from instar.tasks.meta_ic.language.splitting import split
from tests.tasks.meta_ic.language.test_difficult import difficult


def said(reading: Reading, mention: Mention) -> str:
    return reading.text[mention.start : mention.end]


# --- what counts, and why -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("caption", "words"),
    [
        ("two Puppies", {"Puppies": "dog"}),
        ("a glass of red wine", {"glass of red wine": "wine glass"}),
        ("red Traffic-Lights", {"Traffic-Lights": "traffic light"}),
        ("a woman’s hand", {"woman": "person"}),
        ("a red bus and a blue one", {"bus": "bus", "one": "bus"}),
        ("an elephant and her calf", {"elephant": "elephant", "calf": "elephant"}),
        ("🐕 a dog 🐕", {"dog": "dog"}),
    ],
)
def test_mentions_are_the_words_that_count(caption: str, words: dict[str, str]) -> None:
    reading = read_caption(caption)
    assert {said(reading, mention): mention.label for mention in reading.mentions} == words


@pytest.mark.parametrize(
    ("caption", "why"),
    [
        ("puppies", "'puppies' is the plural of puppy, a word for dog"),
        ("a dog", "'dog' names it"),
        ("a girl", "'girl' is a word for person"),
        ("a crowd", "'crowd' is a word for people"),
        ("a girafe", "'girafe' is read as giraffe"),
        ("three surfbaords", "'surfbaords' is read as surfboards"),
        ("two giraffe", "'giraffe' names it, and 'two' makes it many"),
        ("a herd of zebra", "'zebra' names it, and 'herd' makes it many"),
        ("some broccoli", "'broccoli' names it, and the number is left open"),
        ("a slice of pizza", "'pizza' names it, and 'slice' leaves the number open"),
        ("the sheep is asleep", "'sheep' names it, and 'is' makes it one"),
        ("a clock tower", "'clock tower' has a clock, and the number is left open"),
    ],
)
def test_every_mention_has_its_reason(caption: str, why: str) -> None:
    assert [mention.why for mention in read_caption(caption).mentions] == [why]


@pytest.mark.parametrize(
    ("caption", "label", "why"),
    [
        ("a dog house", "dog", "'dog' describes 'house'"),
        ("a zebra-striped couch", "zebra", "'zebra' describes 'couch'"),
        ("a hot dog stand", "hot dog", "'hot dog' describes 'stand'"),
        ("a prairie dog", "dog", "'prairie dog' is no dog"),
        ("an orange ball", "orange", "'orange' is a colour here"),
        ("a boy skateboards", "skateboard", "'skateboards' is what somebody does here"),
        ("with no dogs", "dog", "'no' takes 'dogs' away"),
        ("without a car or a truck", "truck", "'without' takes 'truck' away"),
        ("not wearing a tie", "tie", "'not' takes 'tie' away"),
        ("kids playing baseball", "sports ball", "'baseball' is a game here"),
        ("a mouse eats cheese", "mouse", "'mouse' is something else beside 'cheese'"),
        ("a sign reading “dogs welcome”", "dog", "'dogs' is written there"),
        ("a market in Turkey", "bird", "'Turkey' is a name here"),
        ("a table set for six people", "person", "'people' is what something is meant for"),
        ("a cake shaped like a bus", "bus", "'bus' is what something looks like"),
    ],
)
def test_what_is_dismissed_has_its_reason(caption: str, label: str, why: str) -> None:
    reading = read_caption(caption)
    assert (label, why) in [(mention.label, mention.why) for mention in reading.dismissed]
    assert label not in reading.objects


@pytest.mark.parametrize(
    ("caption", "number"),
    [
        ("a dog and a dog", "many"),
        ("a dog; the dog sleeps", "one"),
        ("a beagle; the dog sleeps", "one"),
        ("a dog; the other dog sleeps", "many"),
        ("a dog and every dog", "one"),
        ("every dog", "any"),
        ("dogs and every dog", "many"),
    ],
)
def test_mentions_of_one_class_are_taken_together(caption: str, number: str) -> None:
    assert read_caption(caption).objects == {"dog": number}


def test_wider_words_say_what_they_may_stand_for() -> None:
    reading = read_caption("two animals beside a vehicle and a fruit stand")
    assert reading.objects == {}
    animals, vehicle = reading.wider
    assert (animals.label, animals.number, said(reading, animals)) == ("animal", "many", "animals")
    assert set(animals.classes) == set(coco().within("animal"))
    assert (vehicle.number, "truck" in vehicle.classes, "dog" in vehicle.classes) == ("one", True, False)


def test_coco_has_its_classes_and_super_categories() -> None:
    assert coco().classes == tuple(COCO)
    assert set(coco().supers) == set(COCO)
    assert set(coco().supers.values()) == {
        "person",
        "vehicle",
        "outdoor",
        "animal",
        "accessory",
        "sports",
        "kitchen",
        "food",
        "furniture",
        "electronic",
        "appliance",
        "indoor",
    }


@pytest.mark.parametrize("label", COCO)
def test_every_class_is_found_by_its_name(label: str) -> None:
    assert read_caption(f"this is a {label}").objects.keys() == {label}
    assert read_caption(f"{label.upper()}!").objects.keys() == {label}


# --- a vocabulary and a tagger of one's own -------------------------------------------------------------


def written(folder: Path, text: str) -> Path:
    path = folder / "own.toml"
    path.write_text(text, "utf-8")
    return path


def test_a_list_of_classes_is_a_vocabulary(tmp_path: Path) -> None:
    own = read_vocabulary(written(tmp_path, 'classes = ["dog", "fire engine", "wolf", "skateboard"]'))
    reading = read_caption("two wolves and a puppy behind fire-engines; a boy skateboards, no dogs", own)
    assert (own.name, reading.objects) == ("own", {"wolf": "many", "fire engine": "many"})


def test_a_vocabulary_can_say_everything(tmp_path: Path) -> None:
    own = read_vocabulary(
        written(
            tmp_path,
            """
        [class.insect]
        super = "animal"
        words = ["bee", "fly"]
        many = ["swarm"]
        not = ["bee house"]
        unless = { fly = ["fishing"] }
        [class.honey]
        mass = ["honey"]
        [wider]
        food = ["honey"]
        thing = ["*"]
    """,
        )
    )
    assert own.within("animal") == ("insect",)
    assert read_caption("a bee and some honey", own).objects == {"insect": "one", "honey": "any"}
    assert read_caption("a swarm by a bee house", own).objects == {"insect": "many"}
    assert read_caption("a fly on a fishing rod", own).objects == {}
    thing, food = read_caption("a thing with food", own).wider
    assert (thing.classes, food.classes) == (("insect", "honey"), ("honey",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it names no class; classes ="),
        ("classes = 3", "classes is 3; it must be a list of words"),
        ('classes = ["dog", 3]', "it must be a list of words"),
        ('classes = ["?!"', "is not a TOML file"),
        ('classes = ["“”"]', "has no letter or digit"),
        ('klasses = ["dog"]', "unknown key 'klasses'"),
        ('[class.dog]\nwrods = ["puppy"]', "class.dog: unknown key 'wrods'"),
        ('[class.dog]\nunless = { pup = ["seal"] }', "class.dog.unless: 'pup' is no word of dog; add it to `words`"),
        ('[class.dog]\nwords = ["pup"]\n[class.seal]\nwords = ["pup"]', "'pup' names dog and seal; say by"),
        ('classes = ["dog"]\n[wider]\npet = ["dgo"]', "wider.pet: unknown class or super-category 'dgo'"),
        ('class = "dog"', "class is 'dog'; it must be a table"),
    ],
)
def test_a_wrong_vocabulary_says_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises((ValueError, KeyError)) as error:
        read_vocabulary(written(tmp_path, text))
    assert message in str(error.value)
    assert "own.toml" in str(error.value)


def test_another_tagger_decides_what_is_a_noun() -> None:
    def all_verbs(words: list[str]) -> list[str]:
        return ["verb"] * len(words)

    assert read_caption("a dog").objects == {"dog": "one"}
    assert read_caption("a dog", tagger=all_verbs).objects == {}


@pytest.mark.parametrize(
    ("tags", "message"),
    [(["noun"], "the tagger gave 1 tags for the 2 words of 'a dog'"), (["noun", "NN"], "unknown tag 'NN'")],
)
def test_a_tagger_that_answers_wrong_is_told(tags: list[str], message: str) -> None:
    with pytest.raises(ValueError) as error:
        read_caption("a dog", tagger=lambda words: tags)
    assert message in str(error.value)


# --- hostile text -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\n\t",
        "\x00\x01",
        "\u200f",
        "...",
        "'",
        "'" * 4,
        '"',
        "“",
        "-",
        "--",
        "a-",
        "'s",
        "\ud800",
        "🐕",
        "👩‍👩‍👧",
        "İ",
        "ß",
        "\u0301",
        "𝒅𝒐𝒈",
        "0",
        "w/",
    ],
)
def test_text_without_objects_has_none(text: str) -> None:
    assert read_caption(text).objects == {}


def test_other_scripts_stand_beside_english() -> None:
    assert read_caption("הכלב a dog הכלב").objects == {"dog": "one"}
    assert read_caption("\x07a dog\x00 and\u00a0a\u2009cat\u200b").objects.keys() == {"dog", "cat"}


@pytest.mark.parametrize(
    "words",
    [
        "dog ",
        "a dog ",
        "no dog or ",
        "the man ",
        "one and ",
        "black and ",
        '"dog" ',
        "mouse ",
        "a zebra and another ",
        "playing duck, ",
        "dog-",
        "x" * 1000,
        "((((",
        "'s ",
    ],
)
def test_long_text_takes_no_longer_than_its_length(words: str) -> None:
    text = (words * (100_000 // len(words) + 1))[:100_000]
    start = time.process_time()
    reading = read_caption(text)
    assert time.process_time() - start < 5
    assert reading.text == text


def test_captions_are_read_fast() -> None:
    captions = [one.caption for one in difficult()]
    read_caption("a dog")
    start = time.process_time()
    for number, caption in enumerate(captions):
        read_caption(f"{caption} {number}.")
    assert len(captions) / (time.process_time() - start) > 2000


pieces = st.sampled_from(
    [
        "dog",
        "dogs",
        "a",
        "the",
        "no",
        "two",
        "and",
        "or",
        "of",
        "'s",
        "’",
        "-",
        "“",
        "”",
        ",",
        ".",
        "(",
        "/",
        "sheep",
        "orange",
        "baby",
        "mother",
        "playing",
        "not",
        "wearing",
        "one",
        "another",
        "other",
        "skis",
        "pair",
        "boats",
        "calf",
        "her",
        "like",
        "for",
        "used",
        "to",
        "hot",
        "stuffed",
        "bear",
        "café",
        "9",
        "²",
        "group",
        "couple",
        "clock",
        "tower",
        "İ",
        "ﬁre",
        "hydrant",
        "family",
        "slices",
        "pizza",
        '"',
        "\n",
    ]
)
texts = st.one_of(
    st.text(), st.lists(st.one_of(pieces, st.text(max_size=3))).map(" ".join), st.lists(pieces).map("".join)
)


@given(texts)
def test_any_text_is_read(text: str) -> None:
    reading = read_caption(text)
    assert reading == read_caption(text)
    everything = (*reading.mentions, *reading.dismissed, *reading.wider)
    assert all(0 <= mention.start < mention.end <= len(text) and mention.why for mention in everything)
    for some in (reading.mentions, reading.dismissed, reading.wider):
        assert list(some) == sorted(some, key=lambda mention: mention.start)
    places = [(mention.start, mention.end) for mention in everything]
    assert len(set(places)) == len(places)
    assert reading.objects.keys() <= set(coco().classes)
    assert set(reading.objects.values()) <= {"one", "many", "any"}


@given(st.text())
def test_words_lie_where_they_say(text: str) -> None:
    words = split(text)
    assert [text[start:end] for start, end in zip(words.start, words.end, strict=True)] == words.raw
    assert all(0 <= first <= at for at, first in enumerate(words.quoted) if first >= 0)
    assert words.start == sorted(words.start)


@pytest.mark.parametrize(
    ("text", "objects"),
    [
        ("A MAN WEARING A TIE. A man wearing a tie.", {"person": "one", "tie": "one"}),
        ("a dog on a bench! a dog on a bench! a dog on a bench", {"dog": "one", "bench": "one"}),
        ("two dogs. two dogs.", {"dog": "many"}),
        ("a dog and a dog.", {"dog": "many"}),
        ("a dog on a bench. a dog on a couch.", {"dog": "many", "bench": "one", "couch": "one"}),
    ],
)
def test_a_sentence_that_stands_there_twice_counts_once(text: str, objects: dict[str, str]) -> None:
    assert read_caption(text).objects == objects


def test_a_wider_word_in_a_repeated_sentence_stands_for_one_thing() -> None:
    assert len(read_caption("an animal in a field. an animal in a field.").wider) == 1
