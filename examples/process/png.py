"""PNG files with the standard library alone, for the examples beside it. A real program takes Pillow or OpenCV."""

from __future__ import annotations

import base64
import struct
import zlib


def read(text: str) -> tuple[int, int, bytes]:
    """Width, height and the pixels of a base64 PNG with 8 bits per channel: RGBRGB… from the top-left."""
    data = base64.b64decode(text)
    at, packed = 8, b""
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", data[16:29])
    channels = {0: 1, 2: 3}.get(colour)
    if depth != 8 or channels is None or interlaced:
        raise ValueError("this small reader knows grey and RGB with 8 bits, not interlaced")
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + length]
        at += 12 + length
    raw, stride = zlib.decompress(packed), width * channels
    before, rows = bytes(stride), []
    for row in range(height):
        start = row * (stride + 1)
        before = _unfiltered(raw[start], raw[start + 1 : start + 1 + stride], before, channels)
        rows.append(before)
    return width, height, b"".join(rows)


def _unfiltered(kind: int, row: bytes, above: bytes, step: int) -> bytes:
    if kind == 0:
        return row
    done = bytearray(row)
    for i, value in enumerate(row):
        left, up = done[i - step] if i >= step else 0, above[i]
        corner = above[i - step] if i >= step else 0
        if kind == 4:  # Paeth: whichever is nearest to left + up - corner
            guess = min((left, up, corner), key=lambda near: abs(left + up - corner - near))
        else:
            guess = {1: left, 2: up, 3: (left + up) // 2}[kind]
        done[i] = (value + guess) & 255
    return bytes(done)


def write_grey(width: int, height: int, pixels: bytes) -> str:
    """One channel with 8 bits, as base64."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    rows = b"".join(b"\0" + pixels[row * width : (row + 1) * width] for row in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")
    return base64.b64encode(data).decode()
