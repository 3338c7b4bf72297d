"""What failing cases have in common, in sentences."""

from __future__ import annotations

from instar.report.words import percent
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


def slice_words(row: Row) -> str:
    """A row of `slices` as a sentence."""
    if not row["value"].startswith("above "):
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
