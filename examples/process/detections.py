"""A detector as a process system: instar check 'process("python3 examples/process/detections.py")'

It finds every red, green and blue area, and is as sure of it as the area fills its box. The standard library is enough.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import png
from colours import areas


def answer(input: dict[str, Any]) -> dict[str, Any]:
    shown = areas(*png.read(input["png"]))
    return {
        "boxes": [box for _, box, _ in shown],
        "labels": [name for name, _, _ in shown],
        "scores": [count / ((box[2] - box[0]) * (box[3] - box[1])) for _, box, count in shown],
    }


def main() -> None:
    print(json.dumps({"instar": 1, "kind": "detections", "deterministic": True, "version": "1"}), flush=True)
    for line in sys.stdin:  # ends when Instar closes it
        request = json.loads(line)
        try:
            reply = {"output": answer(request["input"])}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"id": request["id"], **reply}), flush=True)


if __name__ == "__main__":
    main()
