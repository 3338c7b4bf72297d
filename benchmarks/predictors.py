"""Makers and a predictor against workers that each hold the model: a detector in PyTorch that takes batches, on a GPU.

    python -m benchmarks.predictors [--small] [--write]

The detector has the size of a YOLO-nano (2.3 million weights, which are random) and takes batches of 640×480. Without a
GPU there is nothing to measure; in small mode it is a smaller one on the processor. Throughput is the slope between a
short and a long run, so that loading does not count.
"""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np

import instar
from benchmarks.command import main
from benchmarks.figures import Absent, Figures, Row, short
from benchmarks.overhead import plain_suite
from instar.engine import default_workers

NARROW = "INSTAR_BENCHMARK_NARROW"
"""Set in the environment where the detector is to be small."""
ALONE = 4
"""One worker is given so many times fewer cases."""


def measure(small: bool = False) -> Figures:
    try:
        import torch
    except ImportError:
        raise Absent("PyTorch: pip install 'instar[torch]'") from None
    if not small and not torch.cuda.is_available():
        raise Absent("a GPU that PyTorch can use")
    os.environ[NARROW] = "1" if small else ""
    cores = 1 if small else default_workers()
    few, many = (0, 2) if small else (6 * cores, 60 * cores)
    ways = {"one worker": (1, 0), "makers and a predictor": (cores, 1)}
    if not small:
        ways |= {"makers and two predictors": (cores, 2), "a copy of the model in every worker": (cores, 0)}
    with tempfile.TemporaryDirectory() as place:
        folder = textures(Path(place) / "inputs", many, (64, 48) if small else (640, 480))
        speeds = {}
        for name, (workers, predictors) in ways.items():
            share = 1 if workers == cores else ALONE  # of the cases: one worker needs as long for them as the others
            speeds[name] = _pairs_per_second(
                folder, Path(place) / name, few // share, many // share, workers, predictors
            )
    return {"cores": cores, "cases": many, "rules": len(plain_suite().rules), "pairs_per_second": speeds}


def rows(figures: Figures) -> list[Row]:
    speeds = figures["pairs_per_second"]
    split = speeds["makers and a predictor"]
    others = ", ".join(f"{name} {short(speed)}" for name, speed in speeds.items() if speed != split)
    return [
        Row(
            f"a detector on one GPU, fed by {figures['cores']} makers through shared memory, 640×480",
            f"{short(split)} pairs a second ({others}): {short(split / speeds['one worker'])} times one worker's",
        )
    ]


def _pairs_per_second(folder: Path, out: Path, few: int, many: int, workers: int, predictors: int) -> float:
    spent = []
    for count in filter(None, (few, many)):
        finished = instar.run(
            "benchmarks.predictors:detector",
            plain_suite(),
            folder,
            out=out / str(count),
            workers=workers,
            predictors=predictors,
            limit=count,
            zones="none",
        )
        assert finished.outcome is not None
        assert finished.outcome.statuses.keys() == {"ok"}, finished.outcome.statuses
        spent.append(finished.outcome.seconds)
    return (many - few) * (len(plain_suite().rules) + 1) / (spent[-1] - sum(spent[:-1]))


def textures(folder: Path, count: int, size: tuple[int, int]) -> Path:
    """A folder of JPEG files that take as long to decode as photos."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(count):
        coarse = rng.integers(0, 256, (size[1] // 8, size[0] // 8, 3), np.uint8)
        pixels = cv2.resize(coarse, size, interpolation=cv2.INTER_CUBIC)
        cv2.imwrite(str(folder / f"{number:04d}.jpg"), pixels)
    return folder


@cache
def _network() -> Any:
    import torch

    torch.manual_seed(0)
    wide = 4 if os.environ.get(NARROW) else 32
    layers: list[Any] = []
    channels = 3
    for width, stride in ((1, 2), (2, 2), (2, 1), (4, 2), (4, 1), (8, 2), (8, 1), (8, 1), (8, 1)):
        layers += [torch.nn.Conv2d(channels, width * wide, 3, stride, 1), torch.nn.SiLU()]
        channels = width * wide
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.nn.Sequential(*layers, torch.nn.Conv2d(channels, 5, 1)).eval().to(device), device


@instar.declare(kind="detections", batch="array", device="cuda")
def detector(images: np.ndarray) -> list[instar.Detections]:
    """The surest place of the last map is a box."""
    import torch

    network, device = _network()
    with torch.inference_mode():
        maps = network(torch.tensor(images, device=device).permute(0, 3, 1, 2).float().div_(255))
        places = maps[:, 4].flatten(1).argmax(1).cpu().numpy()
    corners = 16.0 * np.stack([places % maps.shape[3], places // maps.shape[3]], 1)
    return [instar.Detections.from_xyxy([[x, y, x + 16, y + 16]], ["thing"], [0.9]) for x, y in corners]


if __name__ == "__main__":
    main("predictors")
