"""A captioner as a process system: instar check 'process("python3 examples/process/caption.py")'

It names what is red an apple, what is green a bottle and what is blue an umbrella, and says
how many there are. The standard library is enough.
"""

from __future__ import annotations

from typing import Any

import png
from colours import NAMES, areas
from program import serve

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
    serve(lambda request: answer(request["input"]), kind="caption", deterministic=True)


if __name__ == "__main__":
    main()
