"""A segmenter of classes as a process system: instar check 'process("python3 examples/process/segmentation.py")'

It tells red, green and blue from the background, pixel by pixel. The standard library is enough.
"""

from __future__ import annotations

from typing import Any

import png
from colours import NAMES, colours
from program import serve

CLASSES = [*NAMES, "background"]  # the same in every answer


def answer(input: dict[str, Any]) -> dict[str, Any]:
    width, height, pixels = png.read(input["png"])
    cells = colours(width, height, pixels)  # for each pixel the place of its class
    return {"cells": png.write_grey(width, height, bytes(cells)), "names": CLASSES}


def main() -> None:
    serve(lambda request: answer(request["input"]), kind="segmentation", deterministic=True)


if __name__ == "__main__":
    main()
