"""A classifier as a process system: instar check 'process("python3 examples/process/labels.py")'

It says which colour most of an image has; the score of a class is the share of its pixels. The standard library
is enough.
"""

from __future__ import annotations

from typing import Any

import png
from colours import NAMES, colours
from program import serve

CLASSES = [*NAMES, "grey"]


def answer(input: dict[str, Any]) -> dict[str, Any]:
    cells = colours(*png.read(input["png"]))
    return {"classes": CLASSES, "scores": [cells.count(place) / len(cells) for place in range(len(CLASSES))]}


def main() -> None:
    serve(lambda request: answer(request["input"]), kind="labels", deterministic=True)


if __name__ == "__main__":
    main()
