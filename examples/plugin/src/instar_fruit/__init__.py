"""Counting fruit: an example of a task that comes from a package of its own."""

from instar import Task

__all__ = ["TASK"]

TASK = Task(
    "fruit",
    __name__,
    "Counting fruit: an example of a task from another package.",
    outputs={"count": ".output:Count"},
    systems={"fruit-counter": ".systems:FRUIT_COUNTER"},
    datasets={"bowls": ".datasets:BOWLS"},
    transformations={"lean": ".transformations:LEAN", "speckle": ".transformations:SPECKLE"},
    relations={"same_count": ".relations:SAME_COUNT"},
    suites={"fruit": ".suite:fruit"},
    panels={"fruit": ".panel:PANEL"},
    commands={"fruit": ".commands:app"},
)
