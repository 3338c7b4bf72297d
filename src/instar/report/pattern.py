"""Word the pattern that many violated rules have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from instar.analysis.pattern import Pattern
from instar.report.finding import Finding
from instar.report.words import count_of, p_text, percent

WORDS: Mapping[str, str] = {
    "pattern.seam": (
        "Objects are lost or cut at a {lines} seam in the middle of the image: those that touch this line "
        "violate the rules in {rate} of the pairs, those that touch a line beside it in {others}. Is the "
        "image processed in tiles?"
    ),
    "pattern.most_objects": (
        "The model never returns more than {most}: {rate} of the {images} with {most} violate a rule, "
        "{others} of the {other_images} with fewer. Is there a limit, such as `max_det`?"
    ),
    "pattern.coarse_grid": (
        "Coordinates lie on a coarse grid of {grid}: rules that move or scale the image are violated in "
        "{rate} of the pairs, the others in {others}."
    ),
    "pattern.any_change": (
        "The model reacts to any change of the pixels: rules that move the image are violated in {moves} of "
        "the pairs, rules that change only light, colour or detail in {pixels}. Without any change it is "
        "{others}."
    ),
    "pattern.position": (
        "The output depends on the position in the frame: rules that move the image are violated in {rate} of"
        " the pairs, rules that only change its pixels in {others}. Wrong coordinates look like this, too: x "
        "and y exchanged, another size, or margins that are not taken off."
    ),
    "pattern.colour": (
        "The output depends on light and colour: these rules are violated in {rate} of the pairs, the others "
        "in {others}."
    ),
    "pattern.detail": (
        "The output depends on fine detail: rules that blur, compress or add noise are violated in {rate} of "
        "the pairs, the others in {others}."
    ),
    "pattern.appearance": (
        "The output depends on how the pixels look and not on where they are: rules that change light, colour"
        " or detail are violated in {rate} of the pairs, rules that move the image in {others}."
    ),
}
SHARES = ("rate", "others", "moves", "pixels")


def pattern_finding(pattern: Pattern) -> Finding:
    """Return a pattern as a finding against the model."""
    figures = pattern.figures
    shown: dict[str, Any] = {name: percent(figures[name]) for name in SHARES if name in figures}
    if figures.get("apart_from"):
        shown["others"] += f" (apart from {figures['apart_from']})"
    shown["lines"] = " and ".join(figures.get("lines", ()))
    for name, cases in (("images", "cases"), ("other_images", "other_cases")):
        shown[name] = count_of(figures.get(cases, 0), "image")
    number, unit = figures.get("number"), figures.get("unit")
    shown["grid"] = f"{number} pixels" if unit == "pixels" else f"{number} cells along the {unit}"
    words = WORDS[pattern.code].format(**{**figures, **shown})
    p = p_text(figures["p"]) if figures["p"] < 0.001 else f"= {p_text(figures['p'])}"
    evidence = count_of(figures["cases"] + figures.get("other_cases", 0), "case")
    return Finding(pattern.code, f"{words} ({evidence}, p {p})", True, figures)
