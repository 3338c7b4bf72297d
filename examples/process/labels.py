"""A classifier as a process system: instar check 'process("python3 examples/process/labels.py")'

It says which colour most of an image has; the score of a class is the share of its pixels. The standard library
is enough.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import png
from colours import NAMES, colours

CLASSES = [*NAMES, "grey"]


def answer(input: dict[str, Any]) -> dict[str, Any]:
    cells = colours(*png.read(input["png"]))
    return {"classes": CLASSES, "scores": [cells.count(place) / len(cells) for place in range(len(CLASSES))]}


def main() -> None:
    print(json.dumps({"instar": 1, "kind": "labels", "deterministic": True, "version": "1"}), flush=True)
    for line in sys.stdin:  # ends when Instar closes it
        request = json.loads(line)
        try:
            reply = {"output": answer(request["input"])}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"id": request["id"], **reply}), flush=True)


if __name__ == "__main__":
    main()
