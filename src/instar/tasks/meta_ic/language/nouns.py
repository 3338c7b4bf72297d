"""Nouns of English: their plural and singular, their article, and so many of them in words."""

from __future__ import annotations

import re

__all__ = ["article", "counted", "plural", "singular"]

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")

_IRREGULAR = {
    "bacterium": "bacteria",
    "cactus": "cacti",
    "die": "dice",
    "foot": "feet",
    "fungus": "fungi",
    "goose": "geese",
    "louse": "lice",
    "mother-in-law": "mothers-in-law",
    "mouse": "mice",
    "ox": "oxen",
    "passer-by": "passers-by",
    "passerby": "passersby",
    "person": "people",
    "quiz": "quizzes",
    "tooth": "teeth",
    **{noun: f"{noun[:-1]}ves" for noun in ("calf", "elf", "half", "hoof", "scarf", "self", "sheaf", "thief")},
    **{
        noun: f"{noun}es"
        for noun in (
            "buffalo",
            "cargo",
            "echo",
            "hero",
            "mosquito",
            "potato",
            "tomato",
            "tornado",
            "torpedo",
            "volcano",
        )
    },
    **{noun: f"{noun[:-2]}es" for noun in ("analysis", "axis", "basis", "crisis", "oasis", "thesis")},
    **{
        noun: f"{noun}s"
        for noun in (
            "caiman",
            "german",
            "human",
            "matriarch",
            "monarch",
            "ottoman",
            "patriarch",
            "roman",
            "shaman",
            "stomach",
            "talisman",
        )
    },
    **{
        noun: noun
        for noun in (
            "aircraft",
            "bison",
            "cattle",
            "cod",
            "deer",
            "elk",
            "hovercraft",
            "lego",
            "moose",
            "offspring",
            "police",
            "salmon",
            "series",
            "sheep",
            "shrimp",
            "spacecraft",
            "species",
            "squid",
            "sushi",
            "swine",
            "trout",
            "watercraft",
        )
    },
}
_ENDINGS = {
    "child": "children",
    "fish": "fish",
    "knife": "knives",
    "leaf": "leaves",
    "life": "lives",
    "loaf": "loaves",
    "man": "men",
    "shelf": "shelves",
    "wife": "wives",
    "wolf": "wolves",
}
"""Also at the end of a longer word: fireman, bookshelf, goldfish."""

_PAIRS = {
    "binoculars",
    "chopsticks",
    "clippers",
    "glasses",
    "goggles",
    "headphones",
    "jeans",
    "leggings",
    "overalls",
    "pajamas",
    "pants",
    "pliers",
    "pyjamas",
    "scissors",
    "shears",
    "shorts",
    "skis",
    "sunglasses",
    "tights",
    "tongs",
    "trousers",
    "trunks",
    "tweezers",
}
"""Counted in pairs, and never without their -s."""
_PIECES = {
    "baggage",
    "bread",
    "broccoli",
    "cauliflower",
    "cheese",
    "chocolate",
    "clothing",
    "equipment",
    "fruit",
    "furniture",
    "jewellery",
    "jewelry",
    "lettuce",
    "luggage",
    "meat",
    "paper",
    "toast",
}
"""Counted in pieces."""
_STUFF = {"dirt", "food", "grass", "hair", "hay", "ice", "rice", "sand", "snow", "water"}
"""Not counted at all."""

_HEADED = re.compile(r"(.+?)( (?:at|for|from|in|of|on|to|with) .+)")
"""A glass of wine: the noun that is counted stands first."""

_SPELLED_AN = "AEFHILMNORSX"
"""Letters whose names begin with a vowel."""
_CONSONANT = re.compile(r"eu|ew|one\b|once\b|ouij|u(?:biq|fo\b|k(?:r|ul)|nanim|ni(?![dmn])|[rstv][aeiou])")
"""Written with a vowel, spoken with a consonant: a unicorn, a one-way street, a utensil; but an uneven road."""
_VOWEL = re.compile(r"[aeiou]|h(?:eir|onest|ono|ors d|our)|8|1[18]\b")
"""Spoken with a vowel: an hour, an 8-ball."""


def plural(noun: str) -> str:
    """More than one of them; what has no plural of its own stays as it is.

    >>> plural("wine glass"), plural("person"), plural("sheep"), plural("scissors"), plural("cup of tea")
    ('wine glasses', 'people', 'sheep', 'scissors', 'cups of tea')
    """
    before, word, after = _parted(noun)
    return before + _plural(word) + after


def singular(word: str) -> tuple[str, ...]:
    """The nouns that this may be more than one of; none if it is no plural. Which of them is a noun, a lexicon knows.

    >>> singular("knives"), singular("people"), singular("sheep"), singular("dog")
    (('knife', 'knive'), ('person',), ('sheep',), ())
    """
    before, last, after = _parted(word)
    low = last.lower()
    guesses = [_cased(noun, last) for noun, many in _IRREGULAR.items() if many == low]
    if low.endswith("ses") and not low.endswith("sses"):  # more houses, horses and vases than buses
        guesses.append(last[:-1])
    replaced = (
        *((many, end) for end, many in _ENDINGS.items()),
        ("ies", "y"),
        ("ves", "f"),
        ("ves", "fe"),
        ("es", ""),
        ("s", ""),
        ("", ""),
    )
    guesses += [_cased(last[: len(last) - len(many)] + end, last) for many, end in replaced if low.endswith(many)]
    found = [guess for guess in dict.fromkeys(guesses) if guess and last in (_plural(guess), _regular(guess))]
    return tuple(before + guess + after for guess in found)


def article(noun: str) -> str:
    """`a` or `an`, by the sound.

    >>> [f"{article(noun)} {noun}" for noun in ("umbrella", "unicorn", "hour", "SUV", "tv")]
    ['an umbrella', 'a unicorn', 'an hour', 'an SUV', 'a tv']
    """
    first = re.split(r"[\s\-]", noun, maxsplit=1)[0]
    low = noun.lower()
    if first.isalnum() and first[0].isalpha():
        short = first.isupper() and 2 <= len(first) <= 3
        if short or not re.search("[aeiouy]", first.lower()) or len(first) == 1:  # its letters are said one by one
            return "an" if first[0].upper() in _SPELLED_AN else "a"
    return "an" if _VOWEL.match(low) and not _CONSONANT.match(low) else "a"


def counted(number: int, noun: str) -> str:
    """So many of them, in words up to twelve.

    >>> counted(1, "orange"), counted(2, "knife"), counted(1, "scissors"), counted(3, "broccoli"), counted(14, "bird")
    ('an orange', 'two knives', 'a pair of scissors', 'three pieces of broccoli', '14 birds')
    """
    if number < 0:
        raise ValueError(f"there are {number} of {noun!r}; a number of things is 0 or more")
    word = _parted(noun)[1].lower()
    if word in _STUFF:
        return f"some {noun}" if number else f"no {noun}"
    if number and (word in _PAIRS or word in _PIECES):
        return counted(number, f"pair of {noun}" if word in _PAIRS else f"piece of {noun}")
    if number == 1:
        return f"{article(noun)} {noun}"
    return f"{_NUMBERS[number] if number < len(_NUMBERS) else number} {plural(noun)}"


def _parted(noun: str) -> tuple[str, str, str]:
    """What stands before the word that changes with the number, that word, and what stands after it."""
    headed = _HEADED.fullmatch(noun)
    head, after = headed.groups() if headed else (noun, "")
    before, space, word = head.rpartition(" ")
    return before + space, word, after


def _plural(word: str) -> str:
    low = word.lower()
    if low in _PAIRS or low in _PIECES or low in _STUFF:
        return word
    if low in _IRREGULAR:
        return _cased(_IRREGULAR[low], word)
    for end, many in _ENDINGS.items():
        if low.endswith(end):
            return word[: len(word) - len(end)] + (_cased(many, word) if low == end else many)
    return _regular(word)


def _regular(word: str) -> str:
    if word[-1:].isupper() or word[-1:].isdigit():  # two TVs
        return f"{word}s"
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    return f"{word}es" if re.search(r"(?:s|x|z|ch|sh)$", word) else f"{word}s"


def _cased(found: str, given: str) -> str:
    return found[:1].upper() + found[1:] if given[:1].isupper() else found
