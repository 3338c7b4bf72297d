"""By how many grey levels follow-ups of one image differ at most from Instar's, by library: one line of JSON.

python -m benchmarks.ways.differences IMAGE
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import instar
from benchmarks.ways.loops import read_pixels
from benchmarks.ways.nrtk_evaluation import nrtk_perturbers
from benchmarks.ways.rules import RULES, albumentations_makers, opencv_makers
from instar.image import Image


def differences(path: Path) -> dict[str, int]:
    pixels = read_pixels(path)
    ours = {rule: instar.transformation(rule)(Image(pixels))[0].pixels.astype(np.int16) for rule in RULES}
    others = {
        "opencv": {rule: maker(pixels) for rule, maker in opencv_makers().items()},
        "albumentations": {rule: maker(pixels) for rule, maker in albumentations_makers().items()},
        "nrtk": {rule: perturber(image=pixels)[0] for rule, perturber in nrtk_perturbers().items()},
    }
    return {
        library: max(int(np.abs(ours[rule] - followed).max()) for rule, followed in follow_ups.items())
        for library, follow_ups in others.items()
    }


if __name__ == "__main__":
    print(json.dumps(differences(Path(sys.argv[1]))))
