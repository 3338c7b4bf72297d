"""A segmenter as a process system: instar run … --zones 'process("python3 examples/process/zones.py")'

It tells plants from sky by their colour alone. The standard library is enough.
"""

from __future__ import annotations

from typing import Any

import png
from program import serve

OTHER, PLANTS, SKY = 0, 1, 2
NAMES = {"background": [OTHER, SKY], "plants": [PLANTS], "sky": [SKY]}  # a zone may have several label values


def segment(width: int, height: int, pixels: bytes) -> bytes:
    """A label for every pixel."""
    labels = bytearray(width * height)
    for number in range(width * height):
        red, green, blue = pixels[3 * number : 3 * number + 3]
        if green > red + 20 and green > blue + 20:
            labels[number] = PLANTS
        elif blue > red + 20 and blue >= green:
            labels[number] = SKY
    return bytes(labels)


def answer(input: dict[str, Any]) -> dict[str, Any]:
    width, height, pixels = png.read(input["png"])
    return {"labels": png.write_grey(width, height, segment(width, height, pixels)), "names": NAMES}


def main() -> None:
    serve(lambda request: answer(request["input"]), kind="zones", deterministic=True)


if __name__ == "__main__":
    main()
