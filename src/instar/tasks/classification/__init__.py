"""Classification: the class of an image stays what it is, and the system stays as sure of it."""

from instar.task import Task

__all__ = ["TASK"]

TASK = Task(
    "classification",
    __name__,
    "Image classification: the class stays, and the system stays as sure of it.",
    systems={"onnx-classifier": ".systems:FAMILIES"},
    datasets={"class-folders": ".datasets:FAMILIES", "coco-classes": ".datasets:FAMILIES"},
    relations={"class_kept": ".relations:RELATIONS"},
    suites={"labels": ".suite:SUITES"},
    panels={"classes": ".panel:PANELS"},
)
