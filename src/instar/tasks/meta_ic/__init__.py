"""MetaIC: an object is inserted into an image, and the caption gains exactly that."""

from instar.task import Task

__all__ = ["TASK"]

TASK = Task(
    "meta-ic",
    __name__,
    "Image captioning: an object is inserted, and the caption gains exactly that (MetaIC).",
    systems={"detector-captioner": ".captioner:FAMILIES"},
    relations=dict.fromkeys(("objects", "numbers", "verbatim"), ".relations:RELATIONS"),
    suites=dict.fromkeys(("captions", "meta-ic", "meta-ic@paper", "meta-ic@paper/65", "deeptest"), ".suite:SUITES"),
    panels={"captions": ".panel:PANELS"},
    commands={"captions": ".commands:captions", "pool": ".commands:pool"},
)
