"""EfficientDet-Lite: small detectors of COCO's 80 classes, on LiteRT."""

from __future__ import annotations

import zipfile
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np

from instar.image import Image
from instar.outputs.detections import Detections
from instar.spelling import Parameter
from instar.systems.boxes import FLOOR, carried_back, fitted
from instar.systems.litert import Model, model_file
from instar.systems.models import model_path
from instar.systems.system import System, SystemFamily, fingerprint_of, one_by_one

_ADAPTER = "1"
"""Part of the fingerprint; changes when the adapter's answers do."""

_GREY = 127
"""What surrounds the image: the zero point of the quantised input, as in training."""

_UNNAMED = "???"
"""How label maps write a number that no class has."""


def _efficientdet(version: str, name: str, *, model: str | None, floor: float) -> System:
    path = model_path(version) if model is None else model_file(model, name)
    run = Model(path)
    takes, gives = run.shape, [tuple(int(n) for n in output["shape"]) for output in run.outputs]
    most = gives[0][1] if len(gives[0]) == 3 else 0
    answer = [(1, most, 4), (1, most), (1, most), (1,)]
    if takes[3:] != (3,) or run.input["dtype"] != np.uint8 or gives != answer:
        raise ValueError(
            f"{name}: {path} takes {np.dtype(run.input['dtype']).name} {takes} and returns {gives}; "
            "EfficientDet-Lite takes uint8 (1, side, side, 3) and returns boxes (1, n, 4), classes and "
            "scores (1, n), and their number (1,)"
        )
    size, names = (takes[2], takes[1]), _names(run.content, path, name)
    scale = np.array([size[1], size[0], size[1], size[0]])

    def one(image: Image) -> Detections:
        # As trained: in the top-left corner. On 80 photos of COCO that is worth one point of AP over stretching.
        frame, warp = fitted(image, size, "corner", _GREY)
        boxes, classes, scores, count = run(frame[None])
        number = int(count[0])
        if not np.isfinite(scores[0, :number]).all():
            raise ValueError("the model returned a score that is not finite")
        labels = [names[label] if 0 <= label < len(names) else _UNNAMED for label in classes[0, :number].astype(int)]
        sure = [i for i, label in enumerate(labels) if scores[0, i] >= floor and label != _UNNAMED]
        corners = (boxes[0, sure].astype(np.float64) * scale)[:, [1, 0, 3, 2]]
        return carried_back(corners, [labels[i] for i in sure], scores[0, sure], warp)

    fingerprint = fingerprint_of("efficientdet-lite", _ADAPTER, floor, run.weights)
    return System(name, Detections.kind, one_by_one(one), fingerprint)


def _names(content: bytes, path: Path, name: str) -> tuple[str, ...]:
    """The label map, which such a file carries as an archive at its end."""
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            [member] = [each for each in archive.namelist() if each.endswith(".txt")]
            return tuple(archive.read(member).decode().splitlines())
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise ValueError(f"{name}: {path} holds no label map, as EfficientDet-Lite's files do ({error})") from None


FAMILIES = tuple(
    SystemFamily(
        version,
        Detections.kind,
        partial(_efficientdet, version),
        (Parameter("model", "text", None, help="the .tflite file, if not the pulled one"), FLOOR),
        help=f"COCO's 80 classes, at most 25 objects, {side}×{side} pixels.",
        extra="litert",
    )
    for version, side in (("efficientdet-lite0", 320), ("efficientdet-lite1", 384), ("efficientdet-lite2", 448))
)
