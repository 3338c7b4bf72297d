"""Instar: metamorphic testing of perception systems.

>>> import instar
>>> run = instar.run("mediapipe-holistic", "met-pose/sub", "photos/", out="runs/first")  # doctest: +SKIP
>>> run.rates(threshold=0.2)  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from instar.analysis import Run, open_run
    from instar.api import export_inputs, import_outputs, run
    from instar.case import Case, Image, Scene, Track
    from instar.datasets import Dataset, dataset
    from instar.outputs import Caption, Detections, Forecast, Poses, Zones
    from instar.relations import Rule, rule
    from instar.skeleton import Skeleton
    from instar.suites import Suite, suite
    from instar.systems import System, declare, system
    from instar.transforms import Change, Family, NotApplicable, Transformation, transformation
    from instar.warp import Warp

# Where each public name lives. It is fetched when it is first used, so that `import instar` costs nothing.
_HOMES = {
    "Caption": "outputs", "Case": "case", "Change": "transforms", "Dataset": "datasets", "Detections": "outputs",
    "Family": "transforms", "Forecast": "outputs", "Image": "case", "NotApplicable": "transforms", "Poses": "outputs",
    "Rule": "relations", "Run": "analysis", "Scene": "case", "Skeleton": "skeleton", "Suite": "suites",
    "System": "systems", "Track": "case", "Transformation": "transforms", "Warp": "warp", "Zones": "outputs",
    "dataset": "datasets", "declare": "systems", "export_inputs": "api", "import_outputs": "api",
    "open_run": "analysis", "rule": "relations", "run": "api", "suite": "suites", "system": "systems",
    "transformation": "transforms",
}

__all__ = [
    "Caption", "Case", "Change", "Dataset", "Detections", "Family", "Forecast", "Image", "NotApplicable", "Poses",
    "Rule", "Run", "Scene", "Skeleton", "Suite", "System", "Track", "Transformation", "Warp", "Zones", "dataset",
    "declare", "export_inputs", "import_outputs", "open_run", "rule", "run", "suite", "system", "transformation",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'instar' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"instar.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
