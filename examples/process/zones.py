"""A segmenter as a process system: instar run … --zones 'process("python3 examples/process/zones.py")'

It tells plants from sky by their colour alone. The standard library is enough.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import png

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
    print(json.dumps({"instar": 1, "kind": "zones", "deterministic": True, "version": "1"}), flush=True)
    for line in sys.stdin:  # ends when Instar closes it
        request = json.loads(line)
        try:
            reply = {"output": answer(request["input"])}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"id": request["id"], **reply}), flush=True)


if __name__ == "__main__":
    main()
