"""What the examples beside it see in an image: areas of one colour. A real program has a model in this place."""

from __future__ import annotations

NAMES = ("red", "green", "blue")
OTHER = len(NAMES)
LEAST = 4
"""An area has at least so many pixels."""


def colours(width: int, height: int, pixels: bytes) -> bytearray:
    """For each pixel the place of its colour in `NAMES`, or `OTHER` where none of them stands out."""
    cells = bytearray([OTHER]) * (width * height)
    for number in range(width * height):
        rgb = pixels[3 * number : 3 * number + 3]
        brightest = max(rgb)
        if brightest - sorted(rgb)[1] > 60:
            cells[number] = rgb.index(brightest)
    return cells


def areas(width: int, height: int, pixels: bytes) -> list[tuple[str, list[int], int]]:
    """The areas of one colour, from the top: name, the box [x0, y0, x1, y1] around it, and how many pixels it has."""
    cells = colours(width, height, pixels)
    shown = []
    for start in range(width * height):
        colour = cells[start]
        if colour == OTHER:
            continue
        cells[start], todo, columns, rows, count = OTHER, [start], [], [], 0
        while todo:
            number = todo.pop()
            row, column = divmod(number, width)
            count += 1
            columns.append(column)
            rows.append(row)
            for down, right in ((-1, 0), (1, 0), (0, -1), (0, 1)):
                near = number + down * width + right
                if 0 <= row + down < height and 0 <= column + right < width and cells[near] == colour:
                    cells[near] = OTHER
                    todo.append(near)
        if count >= LEAST:  # a box covers its pixels: it ends where the last one ends
            shown.append((NAMES[colour], [min(columns), min(rows), max(columns) + 1, max(rows) + 1], count))
    return shown
