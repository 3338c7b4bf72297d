"""A segmenter of classes as a process system: instar check 'process("python3 examples/process/segmentation.py")'

It tells red, green and blue from the background, pixel by pixel. The standard library is enough.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import png
from colours import NAMES, colours

CLASSES = [*NAMES, "background"]  # the same in every answer


def answer(input: dict[str, Any]) -> dict[str, Any]:
    width, height, pixels = png.read(input["png"])
    cells = colours(width, height, pixels)  # for each pixel the place of its class
    return {"cells": png.write_grey(width, height, bytes(cells)), "names": CLASSES}


def main() -> None:
    print(json.dumps({"instar": 1, "kind": "segmentation", "deterministic": True, "version": "1"}), flush=True)
    for line in sys.stdin:  # ends when Instar closes it
        request = json.loads(line)
        try:
            reply = {"output": answer(request["input"])}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"id": request["id"], **reply}), flush=True)


if __name__ == "__main__":
    main()
