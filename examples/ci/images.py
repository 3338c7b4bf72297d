"""Draws the images of this example: coloured blocks on grey. `python images.py images` makes them anew."""

import sys
from pathlib import Path

import cv2
import numpy as np

COLOURS = ((200, 40, 40), (50, 190, 60), (50, 70, 210))
COUNT, WIDTH, HEIGHT = 60, 96, 72


def drawn(number: int) -> np.ndarray:
    rng = np.random.default_rng(number)
    pixels = np.full((HEIGHT, WIDTH, 3), int(rng.integers(90, 150)), np.uint8)
    for place in range(3):
        x, y = place * 32 + int(rng.integers(2, 10)), int(rng.integers(4, 40))
        width, height = int(rng.integers(10, 20)), int(rng.integers(12, 28))
        pixels[y : y + height, x : x + width] = COLOURS[int(rng.integers(3))]
    return pixels


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(COUNT):
        cv2.imwrite(str(folder / f"{number:02d}.png"), cv2.cvtColor(drawn(number), cv2.COLOR_RGB2BGR))
