"""A captioner as a process system: instar check 'process("python3 examples/process/caption.py")'

It names what is red an apple, what is green a bottle and what is blue an umbrella, and says
how many there are. The standard library is enough.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import png
from colours import NAMES, areas

WORDS = {"red": ("an apple", "apples"), "green": ("a bottle", "bottles"), "blue": ("an umbrella", "umbrellas")}
NUMBERS = {2: "two", 3: "three", 4: "four"}


def named(colour: str, count: int) -> str:
    one, many = WORDS[colour]
    return one if count == 1 else f"{NUMBERS.get(count, 'many')} {many}"


def answer(input: dict[str, Any]) -> dict[str, Any]:
    shown = [name for name, _, _ in areas(*png.read(input["png"]))]
    parts = [named(colour, shown.count(colour)) for colour in NAMES if colour in shown]
    text = " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))
    return {"text": text or "an empty table"}


def main() -> None:
    print(json.dumps({"instar": 1, "kind": "caption", "deterministic": True, "version": "1"}), flush=True)
    for line in sys.stdin:  # ends when Instar closes it
        request = json.loads(line)
        try:
            reply = {"output": answer(request["input"])}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"id": request["id"], **reply}), flush=True)


if __name__ == "__main__":
    main()
