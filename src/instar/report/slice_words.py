"""What failing cases have in common, in sentences."""

from __future__ import annotations

from instar.analysis.slices import ABOVE, IS
from instar.report.words import amount, percent
from instar.store import Row

_LESS_AND_MORE = {
    "brightness": ("darker", "brighter"),
    "contrast": ("lower in contrast", "higher in contrast"),
    "sharpness": ("less sharp", "sharper"),
    "saturation": ("less colourful", "more colourful"),
    "pixels": ("smaller", "larger"),
    "aspect": ("narrower", "wider"),
    "subjects": ("those with fewer subjects", "those with more subjects"),
    "subject_x": ("those with subjects further to the left", "those with subjects further to the right"),
    "subject_y": ("those with subjects higher up", "those with subjects further down"),
    "subject_size": ("those with smaller subjects", "those with larger subjects"),
    "subject_off_centre": ("those with subjects nearer to the centre", "those with subjects further from the centre"),
}
_PROPERTIES = {
    "pixels": "number of pixels",
    "aspect": "ratio of width to height",
    "subjects": "number of subjects",
    "subject_x": "distance of its subjects from the left",
    "subject_y": "distance of its subjects from the top",
    "subject_size": "size of its subjects",
    "subject_off_centre": "distance of its subjects from the centre",
}
"""What a case has more or less of, where the name of the property does not say it."""


def slice_text(row: Row) -> str:
    """Name the slice of a row beside its property.

    >>> slice_text({"kind": "is", "value": "yard"}), slice_text({"kind": "from", "cut": 3.0})
    ('yard', 'from 3 up')
    >>> slice_text({"kind": "above", "cut": 0.3309}), slice_text({"kind": "above", "cut": 273280.0})
    ('above 0.331', 'above 273,280')
    """
    if row["kind"] == IS:
        return str(row["value"])
    return f"above {amount(row['cut'])}" if row["kind"] == ABOVE else f"from {amount(row['cut'])} up"


def effect_text(row: Row) -> str:
    """Return the effect of a row; only a difference has a sign.

    >>> effect_text({"kind": "is", "effect": 0.25}), effect_text({"kind": "from", "effect": 0.25})
    ('+0.25', '0.25')
    """
    return f"{row['effect']:+.2f}" if row["kind"] == IS else f"{row['effect']:.2f}"


def slice_words(row: Row) -> str:
    """A row of `slices` as a sentence."""
    if row["kind"] == IS:
        more = "more" if row["effect"] > 0 else "less"
        return (
            f"cases with {row['property']} = {row['value']} fail {more} often: {percent(row['rate'])} against "
            f"{percent(row['elsewhere'])} elsewhere"
        )
    lower = row["effect"] < 0.5
    name = _PROPERTIES.get(row["property"], row["property"].replace("_", " "))
    less, more = _LESS_AND_MORE.get(row["property"], (f"lower in {name}", f"higher in {name}"))
    probability = 1 - row["effect"] if lower else row["effect"]
    return (
        f"failing cases are {less if lower else more}: a failing case has a {'lower' if lower else 'higher'} {name} "
        f"than another case with probability {probability:.2f}"
    )
