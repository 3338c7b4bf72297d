"""Object relevance: is an object found because of itself, or because of its background?"""

from instar.task import Task

__all__ = ["TASK"]

# fmt: off
TASK = Task(
    "object-relevance", __name__,
    "Object detection: is an object found because of itself, or because of its background?",
    systems={"reference-detector": ".reference_detector:FAMILIES"}, relations={"presence": ".relations:RELATIONS"},
    suites=dict.fromkeys(
        (
            "detections", "object-relevance", "object-relevance/erase", "object-relevance/object",
            "object-relevance/background", "object-relevance/each", "object-relevance@paper",
        ),
        ".suite:SUITES",
    ),
    panels={"objects": ".panel:PANELS"}, pages={"explain": ".page:PAGE"}, commands={"objects": ".commands:objects"},
)
# fmt: on
