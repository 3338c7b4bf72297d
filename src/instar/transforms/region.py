"""The region filter: any photometric transformation, only inside a zone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cv2
import numpy as np

from instar.case import Image
from instar.outputs import Zones
from instar.spelling import Parameter
from instar.transforms.change import Change
from instar.transforms.family import Family, NotApplicable, Transformation

__all__ = ["FAMILIES"]


def filtered(image: Image, needs: Mapping[str, Any], rng: np.random.Generator, *,
             inner: Transformation, zone: str) -> tuple[Image, Change]:
    zones: Zones = needs["zones"]
    if zone not in zones.names:
        raise NotApplicable(f"the zones of this case have no {zone!r}, only {', '.join(zones.names)}; "
                            "skin, hair and clothes come with `instar models pull selfie-multiclass`")
    mask = zones.mask(zone)
    share = cv2.countNonZero(mask) / mask.size
    if share == 0:
        raise NotApplicable(f"no {zone} in this image")
    changed, _ = inner(image, seed=int(rng.integers(2**62)))
    pixels = image.pixels.copy()
    cv2.copyTo(changed.pixels, mask, pixels)
    return Image(pixels), Change(Change.none(image.size).warp, facts={"zone": zone, "share": round(share, 6)})


FAMILIES = (
    Family("filtered", "region", "general", filtered,
           (Parameter("inner", "transformation", help="any photometric transformation"),
            Parameter("zone", "text", help="skin, hair, clothes, background, or a zone of your segmenter")),
           help="A photometric transformation, only inside a zone.", needs=("zones",)),
)
