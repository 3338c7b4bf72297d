"""The rules: what leaves the number of fruits as it is."""

from __future__ import annotations

from instar import Suite, rule

__all__ = ["fruit"]

RULES = ("identity", "mirror(h)", "lean(0.1)", "speckle(0.01)", "gamma(2)", "greyscale")


def fruit() -> Suite:
    return Suite(
        "fruit",
        tuple(rule(spelling) for spelling in RULES),
        "Counting fruit: moved, speckled, darker, without colour.",
        "count",
        panels=("fruit",),
        titles={rule("lean(0.1)").id: "The Leaning Bowl"},
    )
