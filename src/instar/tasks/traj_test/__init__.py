"""TrajTest: human trajectory prediction on mirrored, turned, rescaled and changed maps."""

from instar.task import Task

__all__ = ["TASK"]

TASK = Task(
    "trajtest",
    __name__,
    "Human trajectory prediction: moved, turned and changed maps (TrajTest).",
    systems={
        "constant-velocity": ".constant_velocity:FAMILIES",
        "social-force": ".social_force:FAMILIES",
        "goalmap": ".goalmap:FAMILIES",
    },
    relations={
        **dict.fromkeys(("wvc", "hvc"), ".relations:RELATIONS"),
        **dict.fromkeys(("follows", "varies"), ".plausible:RELATIONS"),
        "direction": ".direction:RELATIONS",
    },
    own_relations={"obstacle": "direction(avoid)", "turn_past": "follows"},
    suites=dict.fromkeys(
        ("forecasts", "trajtest", "trajtest/geometry", "trajtest/map", "trajtest@paper"), ".suite:SUITES"
    ),
    panels={"trajtest": ".panel:PANELS"},
)
