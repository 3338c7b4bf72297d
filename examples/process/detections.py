"""A detector as a process system: instar check 'process("python3 examples/process/detections.py")'

It finds every red, green and blue area, and is as sure of it as the area fills its box. The standard library is enough.
"""

from __future__ import annotations

from typing import Any

import png
from colours import areas
from program import serve


def answer(input: dict[str, Any]) -> dict[str, Any]:
    shown = areas(*png.read(input["png"]))
    return {
        "boxes": [box for _, box, _ in shown],
        "labels": [name for name, _, _ in shown],
        "scores": [count / ((box[2] - box[0]) * (box[3] - box[1])) for _, box, count in shown],
    }


def main() -> None:
    serve(lambda request: answer(request["input"]), kind="detections", deterministic=True)


if __name__ == "__main__":
    main()
