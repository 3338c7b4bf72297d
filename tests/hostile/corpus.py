"""What nobody should send and somebody will: texts, file names, pictures, tables, suites, manifests."""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import cv2
import numpy as np

from tests.toys import scene

TEXTS: Mapping[str, str] = {
    "lone surrogate": "a dog \ud83d runs",
    "byte that is no UTF-8": os.fsdecode(b"caf\xe9"),
    "zero byte": "a\0b",
    "escape sequence": "\x1b[2J\x1b[31mred\x07",
    "window title": "\x1b]0;owned\x07",
    "line breaks": "one\ntwo\r\nthree\u2028four",
    "from right to left": "invoice\u202egnp.exe",
    "formula": '=HYPERLINK("//x","y")',
    "formula by sign": "+1+cmd|' /C calc'!A0",
    "script": "<script>alert(1)</script>",
    "broken tag": '"><img src=x onerror=alert(1)>',
    "markup of the terminal": "[red]not[/red] [link=file:///etc/passwd]x[/]",
    "format": "{0} {name} %s %n ${HOME} `id`",
    "combining": "a" + "\u0301" * 300,
    "emoji": "👩‍👩‍👧‍👦 𝔘𝔫𝔦 🏳️‍🌈",
    "long": "x" * 60_000,
    "nothing": "",
    "spaces": " \t ",
    "number": "1e400",
    "null": "null",
}


def png(width: int, height: int, *, rows: bytes | None = None) -> bytes:
    """A PNG that says it has this size, whatever its content is."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    content = zlib.compress(rows if rows is not None else b"\0" * 100)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", content) + chunk(b"IEND", b"")


def encoded(extension: str, pixels: np.ndarray | None = None) -> bytes:
    if pixels is None:
        pixels = np.full((24, 32, 3), 120, np.uint8)
    return cv2.imencode(extension, pixels)[1].tobytes()


# a lossless WebP whose header says 16383 × 16383 and whose one code fills it
WEBP = b"RIFF\x1e\0\0\0WEBPVP8L\x11\0\0\0\x2f\xfe\xbf\xff\x0f" + b"\x88\x88\x08\x07\x10\x11\xfd\x0f" + b"\0" * 8

PICTURES: Mapping[str, bytes] = {
    "nothing.png": b"",
    "one.png": encoded(".png", np.zeros((1, 1, 3), np.uint8)),
    "thin.png": encoded(".png", np.zeros((1, 3000, 3), np.uint8)),
    "text.jpg": b"not a picture",
    "cut.jpg": encoded(".jpg")[:-200],
    "cut.png": encoded(".png")[:60],
    "wrong crc.png": encoded(".png")[:40] + b"\xff" + encoded(".png")[41:],
    "huge.png": png(2**31 - 1, 2**31 - 1),
    "large.png": png(60_000, 60_000),
    "none.png": png(0, 0),
    "bomb.webp": WEBP,
    "other kind.png": encoded(".jpg"),
    "deep.png": encoded(".png", np.full((9, 9, 3), 60_000, np.uint16)),
    "grey.png": encoded(".png", np.full((9, 9), 60, np.uint8)),
    "see through.png": encoded(".png", np.full((9, 9, 4), 60, np.uint8)),
    "page.png": b"<html><script>alert(1)</script></html>",
    "zip.png": b"PK\x03\x04" + b"\0" * 40,
}

NAMES: tuple[bytes, ...] = (
    b"plain.png",
    b"caf\xe9.png",
    "größe 漢字 👩‍👧.png".encode(),
    b"new\nline.png",
    b"\x1b[31mred.png",
    b"=1+1.png",
    b"-rf.png",
    b"a<script>.png",
    b"[red]x[bold].png",
    b"quote'\".png",
    b"100%25 a&b;c#d?e.png",
    b"x" * 240 + b".png",
    b"  spaces .png",
    "right\u202egnp.png".encode(),
)


def hostile_folder(folder: Path) -> Path:
    """Every picture and every name, and what is no file at all."""
    folder.mkdir(parents=True)
    for name, content in PICTURES.items():
        (folder / name).write_bytes(content)
    for number, name_bytes in enumerate(NAMES):
        pixels = cv2.cvtColor(scene(number, (80, 60)).pixels, cv2.COLOR_RGB2BGR)
        (folder / os.fsdecode(name_bytes)).write_bytes(encoded(".png", pixels))
    os.mkfifo(folder / "pipe.png")
    (folder / "folder.png").mkdir()
    (folder / "nowhere.png").symlink_to(folder / "missing.png")
    (folder / "loop.png").symlink_to(folder / "loop.png")
    (folder / "noise.png").symlink_to("/dev/zero")
    return folder


def _columns(count: int) -> str:
    names = ",".join(f"c{number}" for number in range(count))
    return f"case,follow_up,caption,{names}\na.png,source,a dog,{','.join('1' * count)}\n"


TABLES: Mapping[str, bytes] = {
    "nothing.csv": b"",
    "head.csv": b"case,follow_up,caption\n",
    "zero.csv": b"case,follow_up,caption\na\0b.png,source,a dog\n",
    "latin.csv": "case,follow_up,caption\ncafé.png,source,ein Hund\n".encode("latin-1"),
    "mark.csv": "\ufeffcase,follow_up,caption\na.png,source,a dog\n".encode(),
    "wide.csv": _columns(100_000).encode(),
    "ragged.csv": b'case,follow_up,caption\na.png,source,"a dog\nb.png\n',
    "twice.csv": b"case,case,follow_up,caption\na.png,b.png,source,a dog\n",
    "digits.csv": b"case,follow_up,draw,caption\na.png,source," + b"9" * 400 + b",a dog\n",
    "long line.csv": b"case,follow_up,caption\na.png,source," + b"x" * 2_000_000 + b"\n",
    "formula.csv": b"=1+1,@x,caption\na.png,source,=cmd()\n",
    "digits.jsonl": b'{"case": "a.png", "follow_up": "source", "draw": ' + b"9" * 400 + b', "caption": "x"}\n',
    "deep.jsonl": b'{"case": "a.png", "caption": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    "cut.jsonl": b'{"case": "a.png", "caption": "a',
    "other.jsonl": b'[1, 2]\n"x"\nnull\n',
    "infinite.jsonl": b'{"case": "a.png", "follow_up": "source", "draw": NaN, "caption": Infinity}\n',
    "surrogate.jsonl": b'{"case": "a.png", "follow_up": "source", "caption": "\\ud83d"}\n',
    "mixed.jsonl": b'{"case": "a.png", "follow_up": "source", "caption": "x", "age": 1}\n'
    b'{"case": "b.png", "follow_up": "source", "caption": "y", "age": {"a": [1]}}\n',
}

SUITES: Mapping[str, str] = {
    "nothing.toml": "",
    "no toml.toml": "name = [",
    "other types.toml": "name = 3\nrules = 7\n",
    "rules of other types.toml": 'rules = ["gamma(0.5)", 3, {a = 1}]\n',
    "digits.toml": f'rules = ["gamma({"9" * 400})"]\n',
    "open.toml": f'rules = ["{"gamma(" * 5000}"]\n',
    "many.toml": f'rules = ["{" | ".join(["gamma(0.5)"] * 3000)}"]\n',
    "itself.toml": 'include = ["itself.toml"]\nrules = []\n',
    "elsewhere.toml": 'include = ["/etc/passwd", "/dev/zero"]\n',
    "script.toml": 'rules = ["<script>alert(1)</script>"]\n',
    "surrogate.toml": 'rules = ["gamma(\\uD83D)"]\n',
}


def hostile_suites(folder: Path) -> list[Path]:
    """Suite files, a bomb of includes among them: every file includes the next one ten times."""
    folder.mkdir(parents=True)
    for name, text in SUITES.items():
        (folder / name).write_text(text)
    for number in range(30):
        included = ", ".join([f'"bomb{number + 1}.toml"'] * 10)
        (folder / f"bomb{number}.toml").write_text(f"include = [{included}]\nrules = []\n")
    (folder / "bomb30.toml").write_text('rules = ["gamma(0.5)"]\n')
    os.mkfifo(folder / "pipe.toml")
    return [*(folder / name for name in SUITES), folder / "bomb0.toml", folder / "pipe.toml"]


def other_values(value: object) -> list[object]:
    """What may stand where a value stood."""
    return [None, -1, 10**400, "\x1b[31m<script>", [], {}, [[[]]], {"a": value}, "../../../etc/passwd"]


def hostile_manifests(manifest: Path) -> dict[str, bytes]:
    """A run's manifest, with one of its values another each time, and texts that are none."""
    values = json.loads(manifest.read_text())
    del values["checksum"]
    texts: dict[str, bytes] = {
        "nothing": b"",
        "list": b"[]",
        "cut": manifest.read_bytes()[:200],
        "no UTF-8": b'{"format": 2, "instar": "\xff"}',
        "deep": b"[" * 100_000,
        "digits": b'{"format": ' + b"9" * 5000 + b"}",
    }
    for number, name in enumerate(values):
        other = other_values(values[name])
        for turn in range(2):
            chosen = other[(2 * number + turn) % len(other)]
            texts[f"{name} is {str(chosen)[:20]}"] = json.dumps({**values, name: chosen}).encode()
    return texts


Damage = Callable[[bytes], bytes]
DAMAGES: Mapping[str, Damage] = {
    "emptied": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "one bit": lambda content: (
        content[: len(content) // 3] + bytes([content[len(content) // 3] ^ 4]) + content[len(content) // 3 + 1 :]
    ),
    "another file": lambda content: b"<html>not found</html>",
}
