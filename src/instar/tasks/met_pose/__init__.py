"""MET-POSE: pose estimation under 122 changes of shape, image quality and colour."""

from instar.task import Task

__all__ = ["TASK"]

# fmt: off
TASK = Task(
    "met-pose", __name__, "Pose estimation: shape, image quality and colour (MET-POSE).",
    suites=dict.fromkeys(
        (
            "poses", "met-pose", "met-pose/sub", "met-pose/spatial", "met-pose/quality", "met-pose/colour",
            "met-pose@paper", "met-pose/sub@paper",
        ),
        ".suite:SUITES",
    ),
    panels=dict.fromkeys(("violated-counts", "violated-counts@paper", "classic", "landmarks"), ".panel:PANELS"),
)
# fmt: on
