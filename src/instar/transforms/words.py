"""A transformation in a few words: templates of values, and what they are filled with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from string import Formatter
from typing import Any

from instar.spelling import REQUIRED, Parameter, spell_value

Template = str | Callable[..., str]
"""Words with places for values, "motion blur, {size:pixel}, at {direction:°}"; or a function of some of the values.

A place may say how a value is read: `%` as a share in per cent, `°` as an angle, any other word as a noun that is
counted: `{size:pixel}` is "1 pixel" or "11 pixels".
"""


def digits(value: float) -> str:
    """A number as it stands in words, with a true minus sign.

    >>> digits(0.5), digits(-20), digits(3.0)
    ('0.5', '−20', '3')
    """
    return f"{value:g}".replace("-", "−")


def counted(value: float, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "pixel"), counted(0.5, "grey level"), counted(1, "time")
    ('1 pixel', '0.5 grey levels', 'once')
    """
    return "once" if value == 1 and noun == "time" else f"{digits(value)} {noun}{'' if value == 1 else 's'}"


def percentage(value: float) -> str:
    """A share in per cent.

    >>> percentage(0.15), percentage(1.25)
    ('15 %', '125 %')
    """
    return f"{digits(round(100 * value, 6))} %"


def ordinal(value: int) -> str:
    """Which one of several.

    >>> [ordinal(place) for place in (1, 2, 3, 11, 22, 113)]
    ['1st', '2nd', '3rd', '11th', '22nd', '113th']
    """
    ends = {} if value % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}
    return f"{value}{ends.get(value % 10, 'th')}"


class _Places(Formatter):
    """Fills the places of a template."""

    def format_field(self, value: Any, spec: str) -> str:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return plain(value)
        if spec == "%":
            return percentage(value)
        if spec == "°":
            return f"{digits(value)}°"
        return counted(value, spec) if spec else digits(value)


_PLACES = _Places()


def plain(value: object) -> str:
    """A value without quotes and underscores; a transformation in its own words."""
    words = getattr(value, "words", None)
    if isinstance(words, str):
        return words
    if isinstance(value, int | float) and not isinstance(value, bool):
        return digits(value)
    return value.replace("_", " ") if isinstance(value, str) else spell_value(value)


def _named(template: Template) -> set[str]:
    """The parameters whose values a template says."""
    if callable(template):
        return set(inspect.signature(template).parameters)
    return {name for _, name, _, _ in _PLACES.parse(template) if name}


def in_words(template: Template, values: Mapping[str, Any], parameters: Iterable[Parameter]) -> str:
    """A template with its places filled; values that it does not say and that are not the default stand after it.

    >>> size, kernel = Parameter("size", "int"), Parameter("kernel", "choice", "centred")
    >>> in_words("motion blur, {size:pixel}", {"size": 1, "kernel": "square"}, (size, kernel))
    'motion blur, 1 pixel, kernel square'
    """
    names = _named(template)
    if callable(template):
        head = template(**{name: values[name] for name in names})
    else:
        head = _PLACES.vformat(template, (), values)
    rest = (
        value_words(one.name, values[one.name])
        for one in parameters
        if one.name not in names and (one.default is REQUIRED or values[one.name] != one.default)
    )
    return ", ".join(filter(None, (head, *rest)))


def value_words(name: str, value: object) -> str:
    """A value by the name of its parameter; one that has no name, by itself.

    >>> value_words("radius", 2), value_words("0", "dark"), value_words("top_down", True)
    ('radius 2', 'dark', 'top down')
    """
    key = "" if name.isdecimal() else name.replace("_", " ")
    if value is True and key:
        return key
    return " ".join(filter(None, (key, plain(value))))
