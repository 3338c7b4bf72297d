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
    from instar.api import compare, export_inputs, import_outputs, merge, run
    from instar.case import Case, Input
    from instar.combining import search
    from instar.datasets import Dataset, DatasetFamily, dataset
    from instar.image import Image
    from instar.limits import boundary
    from instar.outputs import Output, OutputDefaults
    from instar.outputs.caption import Caption
    from instar.outputs.detections import Detections
    from instar.outputs.forecast import Forecast
    from instar.outputs.labels import Labels
    from instar.outputs.poses import Poses
    from instar.outputs.segmentation import Segmentation
    from instar.outputs.zones import Zones
    from instar.relations import Evidence, Relation, Rule, rule
    from instar.scene import Scene, Track
    from instar.skeleton import Skeleton
    from instar.spelling import Parameter, Scale
    from instar.suites import Suite, suite
    from instar.systems import System, SystemFamily, declare, fingerprint_of, system
    from instar.task import Task
    from instar.transforms import Change, NotApplicable, Transformation, TransformationFamily, transformation
    from instar.trial import preview, severity
    from instar.warp import Warp

# fmt: off
# Where each public name lives. It is fetched when it is first used, so that `import instar` costs nothing.
_HOMES = {
    "Caption": "outputs.caption", "Case": "case", "Change": "transforms", "Dataset": "datasets", "DatasetFamily":
    "datasets", "Detections": "outputs.detections", "Evidence": "relations", "Forecast": "outputs.forecast", "Image":
    "image", "Input": "case", "Labels": "outputs.labels", "NotApplicable": "transforms", "Output": "outputs",
    "OutputDefaults": "outputs", "Parameter": "spelling", "Poses": "outputs.poses", "Relation": "relations", "Rule":
    "relations", "Run": "analysis", "Scale": "spelling", "Scene": "scene", "Segmentation": "outputs.segmentation",
    "Skeleton": "skeleton", "Suite": "suites", "System": "systems", "SystemFamily": "systems", "Task": "task", "Track":
    "scene", "Transformation": "transforms", "TransformationFamily": "transforms", "Warp": "warp", "Zones":
    "outputs.zones", "boundary": "limits", "compare": "api", "dataset": "datasets", "declare": "systems",
    "export_inputs": "api", "fingerprint_of": "systems", "import_outputs": "api", "merge": "api", "open_run":
    "analysis", "preview": "trial", "rule": "relations", "run": "api", "search": "combining", "severity": "trial",
    "suite": "suites", "system": "systems", "transformation": "transforms",
}

__all__ = [
    "Caption", "Case", "Change", "Dataset", "DatasetFamily", "Detections", "Evidence", "Forecast", "Image", "Input",
    "Labels", "NotApplicable", "Output", "OutputDefaults", "Parameter", "Poses", "Relation", "Rule", "Run", "Scale",
    "Scene", "Segmentation", "Skeleton", "Suite", "System", "SystemFamily", "Task", "Track", "Transformation",
    "TransformationFamily", "Warp", "Zones", "boundary", "compare", "dataset", "declare", "export_inputs",
    "fingerprint_of", "import_outputs", "merge", "open_run", "preview", "rule", "run", "search", "severity", "suite",
    "system", "transformation",
]
# fmt: on


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'instar' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"instar.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
