"""Nouns: written out by hand for COCO's classes, by rule for the rest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.systems.boxes import COCO
from instar.tasks.meta_ic.language.nouns import article, counted, plural, singular

# One and two of each, as a person would say it.
SAID = """
a person | two people
a bicycle | two bicycles
a car | two cars
a motorcycle | two motorcycles
an airplane | two airplanes
a bus | two buses
a train | two trains
a truck | two trucks
a boat | two boats
a traffic light | two traffic lights
a fire hydrant | two fire hydrants
a stop sign | two stop signs
a parking meter | two parking meters
a bench | two benches
a bird | two birds
a cat | two cats
a dog | two dogs
a horse | two horses
a sheep | two sheep
a cow | two cows
an elephant | two elephants
a bear | two bears
a zebra | two zebras
a giraffe | two giraffes
a backpack | two backpacks
an umbrella | two umbrellas
a handbag | two handbags
a tie | two ties
a suitcase | two suitcases
a frisbee | two frisbees
a pair of skis | two pairs of skis
a snowboard | two snowboards
a sports ball | two sports balls
a kite | two kites
a baseball bat | two baseball bats
a baseball glove | two baseball gloves
a skateboard | two skateboards
a surfboard | two surfboards
a tennis racket | two tennis rackets
a bottle | two bottles
a wine glass | two wine glasses
a cup | two cups
a fork | two forks
a knife | two knives
a spoon | two spoons
a bowl | two bowls
a banana | two bananas
an apple | two apples
a sandwich | two sandwiches
an orange | two oranges
a piece of broccoli | two pieces of broccoli
a carrot | two carrots
a hot dog | two hot dogs
a pizza | two pizzas
a donut | two donuts
a cake | two cakes
a chair | two chairs
a couch | two couches
a potted plant | two potted plants
a bed | two beds
a dining table | two dining tables
a toilet | two toilets
a tv | two tvs
a laptop | two laptops
a mouse | two mice
a remote | two remotes
a keyboard | two keyboards
a cell phone | two cell phones
a microwave | two microwaves
an oven | two ovens
a toaster | two toasters
a sink | two sinks
a refrigerator | two refrigerators
a book | two books
a clock | two clocks
a vase | two vases
a pair of scissors | two pairs of scissors
a teddy bear | two teddy bears
a hair drier | two hair driers
a toothbrush | two toothbrushes
""".strip().splitlines()

PLURALS = """
man men, woman women, fireman firemen, snowman snowmen, human humans, ottoman ottomans, child children,
grandchild grandchildren, baby babies, boy boys, puppy puppies, monkey monkeys, donkey donkeys, lady ladies,
foot feet, tooth teeth, goose geese, mongoose mongooses, ox oxen, box boxes, fox foxes, calf calves, wolf wolves,
leaf leaves, loaf loaves, bookshelf bookshelves, wife wives, roof roofs, chef chefs, giraffe giraffes, cliff cliffs,
deer deer, fish fish, goldfish goldfish, moose moose, aircraft aircraft, potato potatoes, tomato tomatoes,
photo photos, piano pianos, kangaroo kangaroos, flamingo flamingos, church churches, stomach stomachs, brush brushes,
dish dishes, glass glasses, dress dresses, lens lenses, quiz quizzes, axe axes, horse horses, house houses, vase vases,
cookie cookies, pie pies, cherry cherries, hoof hooves, scarf scarves, cactus cacti, octopus octopuses, watch watches,
luggage luggage, furniture furniture, jeans jeans, sunglasses sunglasses, TV TVs, SUV SUVs, Person People,
cup of tea|cups of tea, slice of pizza|slices of pizza, man in a suit|men in a suit, taxi taxis, kiwi kiwis,
bus driver|bus drivers, police officer|police officers
"""
PAIRS = [tuple(pair.strip().split("|" if "|" in pair else " ")) for pair in PLURALS.replace("\n", " ").split(",")]


def test_every_class_of_coco_is_said_right() -> None:
    assert [f"{counted(1, name)} | {counted(2, name)}" for name in COCO] == SAID


@pytest.mark.parametrize(("one", "many"), PAIRS)
def test_plurals(one: str, many: str) -> None:
    assert plural(one) == many


@pytest.mark.parametrize("noun", [*COCO, *(one for one, _ in PAIRS)])
def test_a_plural_leads_back_to_its_noun(noun: str) -> None:
    assert noun in singular(plural(noun))


@pytest.mark.parametrize(
    ("word", "noun"),
    [
        ("persons", "person"),
        ("fishes", "fish"),
        ("scarfs", "scarf"),
        ("cactuses", "cactus"),
        ("hoofs", "hoof"),
        ("wine glasses", "wine glass"),
        ("women", "woman"),
        ("mice", "mouse"),
        ("horses", "horse"),
        ("buses", "bus"),
        ("vases", "vase"),
        ("glasses", "glass"),
        ("axes", "axe"),
        ("axes", "axis"),
        ("cookies", "cookie"),
        ("ties", "tie"),
        ("Men", "Man"),
        ("Dogs", "Dog"),
        ("Children", "Child"),
        ("People", "Person"),
        ("Knives", "Knife"),
    ],
)
def test_other_plurals_are_understood(word: str, noun: str) -> None:
    assert noun in singular(word)


@pytest.mark.parametrize("word", ["dog", "person", "knife", "mouse", "wine glass", "child", "woman", "on", "a", ""])
def test_what_is_no_plural_has_no_singular(word: str) -> None:
    assert singular(word) == ()


def test_the_likeliest_comes_first() -> None:
    words = "horses houses vases glasses churches boxes women knives people dogs babies teeth sheep TVs"
    likely = "horse house vase glass church box woman knife person dog baby tooth sheep TV"
    assert [singular(word)[0] for word in words.split()] == likely.split()


@pytest.mark.parametrize(
    ("said", "nouns"),
    [
        (
            "an",
            (
                "umbrella",
                "hour",
                "airplane",
                "honest man",
                "heir",
                "SUV",
                "x-ray",
                "MRI scanner",
                "8-ball",
                "urn",
                "uneven road",
                "unidentified object",
                "unused bench",
                "igloo",
                "onion",
                "upright piano",
                "LED",
                "mp3 player",
                "S-bend",
                "hors d'oeuvre",
                "orange",
                "ugly duckling",
                "11-year-old",
                "undershirt",
                "only child",
                "Uber",
            ),
        ),
        (
            "a",
            (
                "unicorn",
                "uniform",
                "utensil",
                "ukulele",
                "one-way sign",
                "eucalyptus",
                "European",
                "ewe",
                "horse",
                "hotel",
                "TV",
                "tv",
                "DVD",
                "UFO",
                "U-turn",
                "T-shirt",
                "user",
                "unit",
                "yacht",
                "house",
                "7-year-old",
                "1-euro coin",
                "urinal",
                "union",
                "once-in-a-lifetime chance",
                "Wespe",
                "Ukrainian flag",
            ),
        ),
    ],
)
def test_article_goes_by_sound(said: str, nouns: tuple[str, ...]) -> None:
    assert [noun for noun in nouns if article(noun) != said] == []


@pytest.mark.parametrize(
    ("number", "noun", "said"),
    [
        (0, "dog", "no dogs"),
        (3, "person", "three people"),
        (12, "sheep", "twelve sheep"),
        (13, "bird", "13 birds"),
        (0, "scissors", "no scissors"),
        (1, "kitchen scissors", "a pair of kitchen scissors"),
        (1, "fruit", "a piece of fruit"),
        (4, "grass", "some grass"),
        (1, "glass of wine", "a glass of wine"),
        (2, "glass of wine", "two glasses of wine"),
        (1, "SUV", "an SUV"),
        (2, "mouse", "two mice"),
        (25, "skis", "25 pairs of skis"),
    ],
)
def test_counting(number: int, noun: str, said: str) -> None:
    assert counted(number, noun) == said


def test_fewer_than_none_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"there are -1 of 'dog'; a number of things is 0 or more"):
        counted(-1, "dog")


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=12))
def test_any_word_has_a_plural_that_leads_back(noun: str) -> None:
    assert noun in singular(plural(noun))


@given(st.text(max_size=30), st.integers(0, 1000))
def test_any_text_can_be_counted(noun: str, number: int) -> None:
    assert noun in counted(number, noun) or number != 1
    assert article(noun) in ("a", "an")
    assert isinstance(plural(noun), str)
    assert isinstance(singular(noun), tuple)
