"""Systems for nodes of a cluster, which does not have this process's environment: what they need is in the image."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np

import instar
from instar import Poses
from tests.toys import steady

SLOW = 0.15


def slow(pixels: np.ndarray) -> Poses:
    """The right answer, so late that a run of a few images can be disturbed."""
    time.sleep(SLOW)
    return steady(pixels)


def unseating(pixels: np.ndarray) -> Poses:
    """Kills the actor above it, which stands for its node, at one dark image."""
    if pixels.mean() < 30:
        guard = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
        os.kill(int(guard[1]), signal.SIGKILL)
        time.sleep(60)
    return steady(pixels)


@instar.declare(kind="labels", device="cuda")
def on_gpu(pixels: np.ndarray) -> dict[str, float]:
    """Says that it lives on a GPU, and answers with the one it was given."""
    return {f"GPU {os.environ.get('CUDA_VISIBLE_DEVICES')}": 1.0}


@instar.declare(kind="labels")
def on_cpu(pixels: np.ndarray) -> dict[str, float]:
    return {f"GPU {os.environ.get('CUDA_VISIBLE_DEVICES')}": 1.0}
