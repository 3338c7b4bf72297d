"""A trajectory predictor as a process system: process("python3 examples/process/forecast.py")

The person goes on as fast as before and turns a little, differently in each sampled future. It is stochastic and
takes the seed it is given, so that the same seed is answered the same way. The standard library is enough.
"""

from __future__ import annotations

import math
import random
from typing import Any

from program import serve

FUTURES = 20
CELLS = 32
"""The probability map has so many cells along the longer side of the frame."""


def futures(past: list[list[float]], steps: int, seed: int) -> list[list[list[float]]]:
    """Sampled paths of so many positions each."""
    dice = random.Random(seed)
    (x0, y0), (x1, y1) = past[-2:] if len(past) > 1 else past * 2
    paths = []
    for _ in range(FUTURES):
        x, y, dx, dy = x1, y1, x1 - x0, y1 - y0
        turn = dice.gauss(0, 0.05)
        path = []
        for _ in range(steps):
            dx, dy = dx * math.cos(turn) - dy * math.sin(turn), dx * math.sin(turn) + dy * math.cos(turn)
            x, y = x + dx, y + dy
            path.append([x, y])
        paths.append(path)
    return paths


def heat(paths: list[list[list[float]]], width: int, height: int) -> list[list[float]]:
    """How many paths end in each cell: anything proportional to a probability will do."""
    side = max(width, height) / CELLS
    columns, rows = math.ceil(width / side), math.ceil(height / side)
    cells = [[0.01] * columns for _ in range(rows)]
    for path in paths:
        column, row = int(path[-1][0] * columns // width), int(path[-1][1] * rows // height)
        if 0 <= column < columns and 0 <= row < rows:
            cells[row][column] += 1
    return cells


def answer(input: dict[str, Any], seed: int) -> dict[str, Any]:
    paths = futures(input["past"], input["steps"], seed)
    # without a box, the map covers the whole frame
    return {"futures": paths, "map": {"probability": heat(paths, input["width"], input["height"])}}


def main() -> None:
    serve(
        lambda request: answer(request["input"], request["seed"]),
        kind="forecast",
        takes="scene",
        deterministic=False,
        seedable=True,
    )


if __name__ == "__main__":
    main()
