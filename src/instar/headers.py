"""What the first bytes of an image say: its kind, its size and its orientation, before anything is decoded."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from instar.json_values import PNG
from instar.warp import Size


@dataclass(frozen=True, slots=True)
class Header:
    """What an image's first bytes say, and what it lacks at the end. Without a size, nobody knows how large it is."""

    kind: str = ""
    size: Size | None = None
    orientation: int = 1
    lack: str = ""


def header_of(data: bytes) -> Header:
    """The header of an encoded image of any kind that OpenCV decodes; without a kind where it is none of them."""
    for begins, read in _READERS:
        if begins.match(data):
            try:
                return read(data)
            except (struct.error, IndexError, ValueError, OverflowError):  # before it says its size
                return Header(lack="its header is damaged")
    return Header()


def encoded_size(data: bytes) -> Size | None:
    """Width and height that the first bytes of an image claim; None where they claim nothing."""
    return header_of(data).size


# --- JPEG, PNG, GIF --------------------------------------------------------------------------------


def _jpeg(data: bytes) -> Header:
    """Walks the segments up to the pixels: a thumbnail inside EXIF has markers of its own."""
    at, orientation, size = 2, 1, None
    while at + 4 <= len(data):
        if data[at] != 0xFF:  # damaged; the decoder goes on with the next marker, too
            marker_at = data.find(b"\xff", at)
            at = len(data) if marker_at < 0 else marker_at
            continue
        marker = data[at + 1]
        if marker == 0xFF or 0xD0 <= marker <= 0xD8 or marker == 0x01:  # fill bytes, markers without a length
            at += 1 if marker == 0xFF else 2
            continue
        length = data[at + 2] << 8 | data[at + 3]
        if marker == 0xE1 and data[at + 4 : at + 10] == b"Exif\0\0":
            orientation = _orientation(data[at + 10 : at + 2 + length])
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            size = (int.from_bytes(data[at + 7 : at + 9], "big"), int.from_bytes(data[at + 5 : at + 7], "big"))
        elif marker == 0xDA:
            # The end is almost always within the last bytes; only then is the whole file searched.
            ends = data.find(b"\xff\xd9", max(at, len(data) - 64)) >= 0 or data.rfind(b"\xff\xd9", at) >= 0
            return Header("jpeg", size, orientation, "" if ends else "its end is missing")
        at += 2 + length
    return Header("jpeg", size, orientation, "it ends before the pixels begin")


def png_chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Kind, start and end of a PNG's chunks, as far as they are whole: OpenCV believes their lengths, and clears
    gigabytes for a damaged one."""
    start = 8
    while start + 12 <= len(data) and (end := start + 12 + int.from_bytes(data[start : start + 4], "big")) <= len(data):
        yield data[start + 4 : start + 8], start, end
        start = end


def _png(data: bytes) -> Header:
    orientation, size = 1, (int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big"))
    for kind, start, end in png_chunks(data):
        if kind == b"IEND":
            return Header("png", size, orientation)
        if kind == b"eXIf":
            orientation = _orientation(data[start + 8 : end - 4])
    return Header("png", size, orientation, "its end is missing")


def _gif(data: bytes) -> Header:
    size = struct.unpack_from("<HH", data, 6)
    return Header("gif", size, 1, "" if data.rstrip(b"\0").endswith(b";") else "its end is missing")


def _orientation(exif: bytes) -> int:
    """EXIF orientation 1 to 8 from a TIFF header; 1 where there is none or it makes no sense."""
    order = {b"II*\0": "little", b"MM\0*": "big"}.get(exif[:4])
    if order is None:
        return 1

    def number(at: int, size: int) -> int:
        return int.from_bytes(exif[at : at + size], "little" if order == "little" else "big")

    start = number(4, 4)
    for i in range(min(number(start, 2), 200)):
        entry = start + 2 + 12 * i
        if number(entry, 2) == 0x0112:
            value = number(entry + 8, 2)
            return value if 1 <= value <= 8 else 1
    return 1


# --- the others ------------------------------------------------------------------------------------


def _webp(data: bytes) -> Header:
    """The size is in the first chunk: of an animation or a file with more than pixels, that of its canvas."""
    lack = "" if len(data) >= int.from_bytes(data[4:8], "little") + 8 else "its end is missing"
    kind, orientation = data[12:16], 1
    if kind == b"VP8X":
        size = (1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little"))
        at = data.rfind(b"EXIF") if data[20] & 8 else -1
        orientation = _orientation(data[at + 8 :].removeprefix(b"Exif\0\0")) if at > 0 else 1
    elif kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        size = (1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF))
    else:
        wide, high = struct.unpack_from("<HH", data, 26)
        size = (wide & 0x3FFF, high & 0x3FFF)
    return Header("webp", size, orientation, lack)


def _bmp(data: bytes) -> Header:
    if int.from_bytes(data[14:18], "little") == 12:
        return Header("bmp", struct.unpack_from("<HH", data, 18))
    wide, high = struct.unpack_from("<ii", data, 18)
    return Header("bmp", (abs(wide), abs(high)))  # from the top down where it is negative


def _netpbm(data: bytes) -> Header:
    """Two numbers after the magic one, with comments between them; a PAM names them."""
    start = re.sub(rb"#[^\n\r]*", b" ", data[:4096])
    if data[1:2] == b"7":
        named = dict(re.findall(rb"(WIDTH|HEIGHT)\s+(\d{1,10})", start))
        return Header("pnm", (int(named.get(b"WIDTH", 0)), int(named.get(b"HEIGHT", 0))))
    numbers = re.match(rb"P\w\s+(\d{1,10})\s+(\d{1,10})", start)
    return Header("pnm", (int(numbers[1]), int(numbers[2]))) if numbers else Header(lack="its header is damaged")


def _ras(data: bytes) -> Header:
    return Header("ras", struct.unpack_from(">II", data, 4))


def _tiff(data: bytes) -> Header:
    """Width and height are tags 256 and 257 of the first page; in a BigTIFF numbers have eight bytes."""
    order = "<" if data[:2] == b"II" else ">"
    big = data[2:4] in (b"+\0", b"\0+")
    (start,) = struct.unpack_from(order + ("Q" if big else "I"), data, 8 if big else 4)
    (count,) = struct.unpack_from(order + ("Q" if big else "H"), data, start)
    first, step = (start + 8, 20) if big else (start + 2, 12)
    sides = {256: 0, 257: 0}
    for entry in range(first, first + step * min(count, 1000), step):
        tag, kind = struct.unpack_from(order + "HH", data, entry)
        if tag in (256, 257):
            form = {3: "H", 16: "Q"}.get(kind, "I")
            (side,) = struct.unpack_from(order + form, data, entry + (12 if big else 8))
            sides[tag] = max(side, sides[tag])
    return Header("tiff", (sides[256], sides[257]))


def _jpeg2000(data: bytes) -> Header:
    """The codestream's own size, which is what is decoded; the box around it may say another."""
    at = data.index(b"\xff\x4f\xff\x51")
    wide, high, left, top = struct.unpack_from(">IIII", data, at + 8)
    return Header("jp2", (max(wide - left, 0), max(high - top, 0)))


def _avif(data: bytes) -> Header:
    """The largest of the sizes that its boxes `ispe` have: that of the whole, of tiles, of alpha."""
    sizes = [struct.unpack_from(">II", data, each.end() + 4) for each in re.finditer(rb"ispe", data[: 1 << 20])]
    return Header("avif", max(sizes, key=lambda size: size[0] * size[1]))


def _of_light(data: bytes) -> Header:
    """Radiance, OpenEXR and PFM hold floating point, and are refused for that before anybody asks for their size."""
    return Header("float")


_READERS: tuple[tuple[re.Pattern[bytes], Callable[[bytes], Header]], ...] = tuple(
    (re.compile(begins, re.DOTALL), read)
    for begins, read in (
        (rb"\xff\xd8", _jpeg),
        (re.escape(PNG), _png),
        (rb"RIFF....WEBP", _webp),
        (rb"GIF8[79]a", _gif),
        (rb"BM", _bmp),
        (rb"P[1-7]\s", _netpbm),
        (rb"\x59\xa6\x6a\x95", _ras),
        (rb"II[*+]\0|MM\0[*+]", _tiff),
        (rb"\0\0\0\x0cjP  \r\n|\xff\x4f\xff\x51", _jpeg2000),
        (rb"....ftyp", _avif),
        (rb"#\?R(GBE|ADIANCE)|v/1\x01|P[Ff]\s", _of_light),
    )
)
