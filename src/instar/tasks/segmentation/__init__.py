"""Segmentation: the class of every cell moves as the image was moved."""

from instar.task import Task

__all__ = ["TASK"]

TASK = Task(
    "segmentation",
    __name__,
    "Semantic segmentation: the class of every cell moves as the image was moved.",
    relations={"class_overlap": ".relations:RELATIONS"},
    suites={"segmentation": ".suite:SUITES"},
    panels={"overlaps": ".panel:PANELS"},
)
