"""What a person sees of a transformation on a case."""

from __future__ import annotations

from collections.abc import Mapping

from instar.case import Input
from instar.engine.follow_up import NoFollowUp, make_follow_up
from instar.engine.needs import Need
from instar.image import Image
from instar.transforms import NotApplicable, Transformation
from instar.visual import keeps_frame, visual_change


def visible_change(
    seed: int, case: str, source: Input, transformation: Transformation, needs: Mapping[str, Need | NotApplicable]
) -> float | None:
    """The visual change by those steps of a transformation that leave pixels where they are; the others (a mirror, a
    crop) are left out: it would compare pixels with others. None where it has no follow-up, or the input is no image.
    """
    if not isinstance(source, Image):
        return None
    kept: Transformation | None = None
    follow_up, warp = source, None
    for step in transformation.steps:
        tried = Transformation((*(kept.steps if kept else ()), step))
        try:
            made, change = make_follow_up(seed, case, source, tried, 0, needs)
        except NoFollowUp:
            return None
        if isinstance(made, Image) and keeps_frame(change.warp):
            kept, follow_up, warp = tried, made, change.warp
    return visual_change(source, follow_up, warp)
