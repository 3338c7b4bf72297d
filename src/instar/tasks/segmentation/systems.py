"""Any segmenter that finds zones, as a system under test: its zones are classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from instar.image import Image
from instar.outputs import Output
from instar.outputs.segmentation import Segmentation
from instar.outputs.zones import Zones
from instar.spelling import Parameter
from instar.systems import System, SystemFamily, fingerprint_of, system


def _segmenter(name: str, *, of: str) -> System:
    inner = system(of)
    if inner.kind != Zones.kind:
        raise ValueError(f"{name}: {inner.name} answers with {inner.kind}; it takes a system that finds zones")

    def predict(inputs: Sequence[Image], seeds: Sequence[int]) -> list[Output]:
        answers = inner.answer(inputs, seeds)
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return [answer for answer in answers if not isinstance(answer, Exception)]

    fingerprint = fingerprint_of("segmenter", inner.fingerprint)
    return replace(inner, name=name, kind=Segmentation.kind, predict=predict, fingerprint=fingerprint)


FAMILIES: Mapping[str, SystemFamily] = {
    "segmenter": SystemFamily(
        "segmenter",
        Segmentation.kind,
        _segmenter,
        (Parameter("of", "text", help="a system that finds zones: selfie-multiclass, mediapipe-selfie, or yours"),),
        help="A segmenter of zones under test: selfie-multiclass, mediapipe-selfie, or one of yours.",
    )
}
