"""nrtk: its perturbers, wrapped for MAITE, whose `evaluate` asks a model about a dataset under an augmentation.

That is how nrtk's own guides test a model: the dataset's targets are what the model said of the unchanged images, and
each perturbation is one evaluation. Nothing is stored. Images are read when they are asked for, since a dataset in
memory would have to fit there. nrtk has a perturber of its own for brightness; the others are albumentations' through
nrtk's `AlbumentationsPerturber`. (nrtk's item-response generators went with its version 1.0.)
"""

from __future__ import annotations

import os
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.ways.clock import Clock, Work
from benchmarks.ways.loops import read_pixels
from benchmarks.ways.rules import BRIGHTNESS, RULES, albumentations_settings, pose, severities


def with_maite(paths: list[Path], out: Path, clock: Clock) -> Work:
    os.environ["TQDM_DISABLE"] = "1"
    perturbers = nrtk_perturbers()
    for kind in {type(perturber) for perturber in perturbers.values()}:
        kind.perturb = clock.making(kind.perturb)
    wrapper = import_module("nrtk.interop").MAITEImageClassificationAugmentation
    wrapped = [wrapper(augment=perturber, augment_id=rule) for rule, perturber in perturbers.items()]
    return partial(_evaluate, import_module("maite.tasks"), Images(paths, clock), wrapped)


def _evaluate(tasks: Any, images: Images, augmentations: list[Any]) -> None:
    answers, _ = tasks.predict(model=Estimator(), dataset=images, batch_size=16)
    images.targets = [answer for batch in answers for answer in batch]
    for augmentation in augmentations:
        metric = Kept(augmentation.metadata["id"])
        shares, _, _ = tasks.evaluate(
            model=Estimator(), metric=metric, dataset=images, batch_size=16, augmentation=augmentation
        )
        assert shares == {"kept": 1.0}, shares


def nrtk_perturbers() -> dict[str, Any]:
    general = import_module("nrtk.impls.perturb_image").AlbumentationsPerturber
    bright = import_module("nrtk.impls.perturb_image.photometric.enhance").BrightnessPerturber
    perturbers = {
        rule: general(perturber=name, parameters=dict(parameters))
        for rule, (name, parameters) in albumentations_settings().items()
    }
    perturbers |= {rule: bright(factor=factor) for rule, factor in BRIGHTNESS.items()}
    return {rule: perturbers[rule] for rule in RULES}


class Images:
    """A dataset as MAITE wants it: image (channels first), target, metadata."""

    metadata = {"id": "images"}  # noqa: RUF012

    def __init__(self, paths: list[Path], clock: Clock) -> None:
        self.paths = paths
        self.targets: list[Any] = [None] * len(paths)
        self._read = clock.reading(read_pixels)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, place: int) -> tuple[Any, Any, dict[str, str]]:
        return self._read(self.paths[place]).transpose(2, 0, 1), self.targets[place], {"id": self.paths[place].name}


class Estimator:
    """The system under test."""

    metadata = {"id": "estimator"}  # noqa: RUF012

    def __call__(self, images: Any) -> list[Any]:
        return [pose(image.shape[2], image.shape[1]) for image in images]


class Kept:
    """A metric: the share of images whose pose is where a rule has carried it. nrtk carries boxes alone."""

    metadata = {"id": "kept"}  # noqa: RUF012

    def __init__(self, rule: str) -> None:
        self.rule = rule
        self.reset()

    def reset(self) -> None:
        self.kept = self.compared = 0

    def update(self, answers: Any, targets: Any, metadata: Any) -> None:
        sources, rules = np.stack(targets), [self.rule] * len(answers)
        width = round(2 * float(sources[0, 0, 0]))  # the nose is in the middle
        self.kept += int((severities(rules, sources, np.stack(answers), width) < 0.1).sum())
        self.compared += len(answers)

    def compute(self) -> dict[str, float]:
        return {"kept": self.kept / self.compared}
