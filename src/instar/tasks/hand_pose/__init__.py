"""Hand pose robustness: what occlusion, exposure and motion blur cost over a whole dataset."""

from instar.task import Task

__all__ = ["TASK"]

TASK = Task(
    "hand-pose",
    __name__,
    "Hand pose: occlusion, exposure and motion blur over a whole dataset.",
    suites=dict.fromkeys(
        ("hands", "hand-pose", "hand-pose/occlusion", "hand-pose/exposure", "hand-pose/blur", "hand-pose@paper"),
        ".suite:SUITES",
    ),
    panels={"hands": ".panel:PANELS"},
)
