"""A pose estimator as a process system: instar check 'process("python3 examples/process/poses.py")'

It sees a person in a red, a green and a blue mark: from left to right in the image they are the right eye and
shoulder, the nose, and the left eye and shoulder. The standard library is enough.
"""

from __future__ import annotations

from typing import Any

import png
from program import serve

LANDMARKS = 17
RIGHT, MIDDLE, LEFT = (2, 6), (0,), (1, 5)  # places in coco-17


def find(width: int, height: int, pixels: bytes) -> list[list[list[float] | None]]:
    """The subjects: one with its landmarks, or none."""
    sums = [[0, 0, 0] for _ in range(3)]
    for number in range(width * height):
        colour = pixels[3 * number : 3 * number + 3]
        brightest = max(colour)
        if brightest - sorted(colour)[1] > 60:
            mark = sums[colour.index(brightest)]
            mark[0] += 1
            mark[1] += number % width
            mark[2] += number // width
    if any(count == 0 for count, _, _ in sums):
        return []
    # the centre of pixel (row i, column j) is (j + 0.5, i + 0.5)
    middles = sorted([x / count + 0.5, y / count + 0.5] for count, x, y in sums)
    subject: list[list[float] | None] = [None] * LANDMARKS
    for number, places in enumerate((RIGHT, MIDDLE, LEFT)):
        for place in places:
            subject[place] = middles[number]
    return [subject]


def answer(input: dict[str, Any]) -> dict[str, Any]:
    return {"skeleton": "coco-17", "points": find(*png.read(input["png"]))}


def main() -> None:
    serve(lambda request: answer(request["input"]), kind="poses", deterministic=True)


if __name__ == "__main__":
    main()
