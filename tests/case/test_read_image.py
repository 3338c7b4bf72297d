"""Pictures of every kind, whole and broken."""

from __future__ import annotations

import base64
import os
import struct
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.case import Case, case_id, read_input
from instar.image import Image, Unreadable, _set_log_level, decode_image, image_properties, read_image
from tests.missing import not_as_root

# An 8×8 JPEG in CMYK, of one colour: (200, 30, 40).
CMYK = base64.b64decode(
    "/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwAIBgYHBgUIBwcHCQkICgwUDQwLCwwZEhMPFB0aHx4dGhwcICQuJyAiLCMcHCg3KSww"
    "MTQ0NB8nOT04MjwuMzQy/8AAFAgACAAIBEMRAE0RAFkRAEsRAP/EABQAAQAAAAAAAAAAAAAAAAAAAAf/xAAUEAEAAAAAAAAA"
    "AAAAAAAAAAAA/9oADgRDAE0AWQBLAAA/AEgOic/v/9k="
)


def encoded(rgb: np.ndarray, ending: str = ".png", *options: int) -> bytes:
    bgr = rgb if rgb.ndim == 2 else np.ascontiguousarray(rgb[..., [2, 1, 0, 3][: rgb.shape[2]]])
    return cv2.imencode(ending, bgr, options)[1].tobytes()


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, rows: bytes, *, bits: int = 8, colour: int = 2, extra: bytes = b"") -> bytes:
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + extra
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def exif(orientation: int, order: str = "<") -> bytes:
    mark = b"II*\0" if order == "<" else b"MM\0*"
    return (
        mark
        + struct.pack(order + "IH", 8, 2)
        + struct.pack(order + "HHIHH", 0x10F, 3, 1, 7, 0)
        + struct.pack(order + "HHIHH", 0x112, 3, 1, orientation, 0)
        + struct.pack(order + "I", 0)
    )


def with_exif(jpeg: bytes, tiff: bytes) -> bytes:
    body = b"Exif\0\0" + tiff
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + jpeg[2:]


@pytest.fixture
def photo() -> np.ndarray:
    """Four quarters of different colours in a frame that is not square, smooth enough for JPEG."""
    pixels = np.zeros((32, 48, 3), np.uint8)
    pixels[:16, :24], pixels[:16, 24:] = (220, 30, 40), (30, 200, 60)
    pixels[16:, :24], pixels[16:, 24:] = (40, 60, 210), (240, 240, 230)
    return pixels


# What EXIF says of the stored picture, as what must be done to show it upright.
UPRIGHT: dict[int, Callable[[np.ndarray], np.ndarray]] = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.swapaxes(0, 1),
    6: lambda a: np.rot90(a, -1),
    7: lambda a: a[::-1, ::-1].swapaxes(0, 1),
    8: lambda a: np.rot90(a, 1),
}


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_applied(photo: np.ndarray, orientation: int, order: str) -> None:
    jpeg = encoded(photo, ".jpg", cv2.IMWRITE_JPEG_QUALITY, 100)
    upright = decode_image(with_exif(jpeg, exif(orientation, order)), "a.jpg").pixels
    expected = UPRIGHT[orientation](decode_image(jpeg, "a.jpg").pixels)
    np.testing.assert_array_equal(upright, expected)
    assert upright.flags.c_contiguous
    # The same as OpenCV's own idea of it.
    own = cv2.imdecode(np.frombuffer(with_exif(jpeg, exif(orientation, order)), np.uint8), cv2.IMREAD_COLOR)
    assert own is not None
    np.testing.assert_array_equal(upright, own[..., ::-1])


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_of_a_transparent_png(orientation: int) -> None:
    rows = bytes([0, 255, 0, 0, 255, 0, 255, 0, 0])  # red, and a green that cannot be seen
    data = png(2, 1, rows, colour=6, extra=chunk(b"eXIf", exif(orientation)))
    expected = UPRIGHT[orientation](np.array([[[255, 0, 0], [255, 255, 255]]], np.uint8))
    np.testing.assert_array_equal(decode_image(data, "a.png").pixels, expected)


@pytest.mark.parametrize(
    "tiff", [b"", b"II*\0", exif(0), exif(9), exif(65535), exif(6)[:20], b"II*\0\xff\xff\xff\xff", b"JUNK" + bytes(40)]
)
def test_exif_that_makes_no_sense_is_no_orientation(photo: np.ndarray, tiff: bytes) -> None:
    assert decode_image(with_exif(encoded(photo, ".jpg"), tiff), "a.jpg").size == (48, 32)


@pytest.mark.parametrize("ending", [".png", ".bmp", ".tiff", ".ppm", ".webp", ".jp2", ".jpg"])
def test_common_formats(photo: np.ndarray, ending: str) -> None:
    image = decode_image(encoded(photo, ending), "any name")
    assert image.size == (48, 32)
    assert np.abs(image.pixels[4:12, 4:20].astype(int) - (220, 30, 40)).mean() < 12


def test_what_the_bytes_are_decides_not_the_name(tmp_path: Path, photo: np.ndarray) -> None:
    (tmp_path / "photo.jpg").write_bytes(encoded(photo, ".png"))
    np.testing.assert_array_equal(read_image(tmp_path / "photo.jpg").pixels, photo)


def test_grey_16_bit_palette_and_alpha() -> None:
    grey = decode_image(encoded(np.array([[7, 200]], np.uint8)), "grey").pixels
    assert grey.tolist() == [[[7] * 3, [200] * 3]]
    deep = decode_image(encoded(np.array([[[65535, 256, 0]]], np.uint16)), "16-bit").pixels
    assert deep.tolist() == [[[255, 1, 0]]]
    deep_grey = decode_image(encoded(np.array([[65535, 256]], np.uint16)), "16-bit grey").pixels
    assert deep_grey[0, :, 0].tolist() == [255, 1]
    palette = png(2, 1, b"\0\0\1", colour=3, extra=chunk(b"PLTE", bytes([250, 1, 2, 3, 240, 5])))
    assert decode_image(palette, "palette").pixels.tolist() == [[[250, 1, 2], [3, 240, 5]]]
    clear = png(
        2, 1, b"\0\0\1", colour=3, extra=chunk(b"PLTE", bytes([250, 1, 2, 3, 240, 5])) + chunk(b"tRNS", bytes([0, 255]))
    )
    assert decode_image(clear, "transparent palette").pixels.tolist() == [[[255] * 3, [3, 240, 5]]]
    bits = png(9, 1, b"\0\xaa\x80", bits=1, colour=0)
    assert decode_image(bits, "1-bit").pixels[0, :, 0].tolist() == [255, 0, 255, 0, 255, 0, 255, 0, 255]
    grey_alpha = png(2, 1, b"\0\x50\x00\x50\xff", colour=4)
    assert decode_image(grey_alpha, "grey and alpha").pixels[0, :, 0].tolist() == [255, 0x50]


@pytest.mark.parametrize("kind", ["8-bit", "16-bit"])
def test_alpha_shows_white(kind: str) -> None:
    rgba = np.array([[[100, 0, 200, 0], [100, 0, 200, 255], [100, 0, 200, 128]]])
    data = rgba.astype(np.uint8) if kind == "8-bit" else (rgba * 257).astype(np.uint16)
    seen = decode_image(encoded(data), "a.png").pixels[0]
    assert seen[0].tolist() == [255, 255, 255]
    assert seen[1].tolist() == [100, 0, 200]
    assert np.abs(seen[2].astype(int) - (177, 127, 227)).max() <= 1


def test_32_bit_bmp_whose_fourth_byte_means_nothing() -> None:
    header = struct.pack("<IiiHHIIiiII", 40, 1, 1, 1, 32, 0, 0, 0, 0, 0, 0)
    bmp = b"BM" + struct.pack("<IHHI", 58, 0, 0, 54) + header + bytes([30, 20, 10, 0])
    assert decode_image(bmp, "a.bmp").pixels.tolist() == [[[10, 20, 30]]]


def test_cmyk_jpeg() -> None:
    assert np.abs(decode_image(CMYK, "a.jpg").pixels.astype(int) - (200, 30, 40)).max() <= 3


def test_one_pixel(photo: np.ndarray) -> None:
    for ending in (".png", ".jpg", ".webp"):
        assert decode_image(encoded(photo[:1, :1], ending), "a").size == (1, 1)


def gif(pixels: bytes, *, clear: bool = False) -> bytes:
    """A 1×1 GIF with a palette of red and blue."""
    extension = b"\x21\xf9\x04\x01\x00\x00\x00\x00" if clear else b""
    return (
        b"GIF89a"
        + struct.pack("<HHBBB", 1, 1, 0x80, 0, 0)
        + bytes([255, 0, 0, 0, 0, 255])
        + extension
        + b"\x2c"
        + struct.pack("<HHHHB", 0, 0, 1, 1, 0)
        + b"\x02\x02"
        + pixels
        + b"\x00;"
    )


def test_gif() -> None:
    assert decode_image(gif(b"\x44\x01"), "a.gif").pixels.tolist() == [[[255, 0, 0]]]
    assert decode_image(gif(b"\x4c\x01"), "a.gif").pixels.tolist() == [[[0, 0, 255]]]
    assert decode_image(gif(b"\x44\x01", clear=True), "a.gif").pixels.tolist() == [[[255, 255, 255]]]


def test_pixels_nobody_can_show() -> None:
    with pytest.raises(Unreadable, match=r"hdr\.tiff: its pixels are float32.*8 or 16 bits"):
        decode_image(encoded(np.full((3, 3, 3), 0.5, np.float32), ".tiff"), "hdr.tiff")


@pytest.mark.parametrize("ending", [".jpg", ".png", ".webp", ".bmp", ".tiff", ".ppm", ".jp2"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.9, 0.999])
def test_truncated_pictures_are_unreadable(photo: np.ndarray, ending: str, share: float) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8)
    data = encoded(noise, ending)
    with pytest.raises(Unreadable, match=f"^half{ending}: "):
        decode_image(data[: int(len(data) * share)], f"half{ending}")


def test_truncated_gif() -> None:
    with pytest.raises(Unreadable, match="truncated"):
        decode_image(gif(b"\x44\x01")[:-1], "a.gif")


def test_truncated_jpeg_filled_up_with_zeros(photo: np.ndarray) -> None:
    """What an interrupted download leaves; a thumbnail inside EXIF has an end of its own."""
    thumbnail = encoded(photo[:8, :8], ".jpg")
    whole = with_exif(encoded(photo, ".jpg"), exif(1) + thumbnail)
    decode_image(whole, "whole")
    decode_image(whole + bytes(5000), "whole and more")
    with pytest.raises(Unreadable, match="truncated"):
        decode_image(whole[:-20] + bytes(20), "half")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 1000,
        b"\xff\xd8",
        b"\xff\xd8\xff",
        b"\xff\xd8\xff\xff",
        b"GIF89a;",
        b"BM",
        b"RIFF\0\0\0\0WEBP",
        b"RIFF\0\0\0\0WEBPVP8X",
        b"<svg></svg>",
        b"P6\n3 3\n255\n",
        b"\x89PNG\r\n\x1a\n",
        b"\x89PNG\r\n\x1a\nIEND",
        b"hello",
        b"MM\0*" + b"\xff" * 50,
        b"II*\0" + b"\xff" * 50,
    ],
)
def test_rubbish_is_unreadable(data: bytes) -> None:
    with pytest.raises(Unreadable, match=r"^rubbish: "):
        decode_image(data, "rubbish")


@pytest.mark.parametrize(("width", "height"), [(2**31 - 1, 2**31 - 1), (200_000, 200_000), (30_000, 30_000), (0, 5)])
def test_headers_that_promise_too_much(width: int, height: int) -> None:
    with pytest.raises(Unreadable, match=r"^bomb: "):
        decode_image(png(width, height, b""), "bomb")
    jpeg = bytearray(encoded(np.zeros((8, 8, 3), np.uint8), ".jpg"))
    at = jpeg.index(b"\xff\xc0")
    jpeg[at + 5 : at + 9] = b"\xff" * 4
    with pytest.raises(Unreadable, match="65,535 × 65,535 pixels; at most"):
        decode_image(bytes(jpeg), "bomb")


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([".jpg", ".png", ".webp", ".tiff", ".bmp", ".jp2"]), st.data())
def test_damage_never_crashes(ending: str, data: st.DataObject) -> None:
    good = bytearray(encoded(np.arange(32 * 36 * 3).astype(np.uint8).reshape(32, 36, 3), ending))
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    try:
        image = decode_image(bytes(good), "damaged")
    except Unreadable:
        return
    assert image.pixels.dtype == np.uint8


def test_nothing_is_printed(photo: np.ndarray, capfd: pytest.CaptureFixture[str]) -> None:
    level = _set_log_level(3)
    _set_log_level(level)
    for ending in (".jpg", ".png", ".webp", ".bmp", ".tiff", ".ppm", ".jp2"):
        data = encoded(photo, ending)
        with pytest.raises(Unreadable):
            decode_image(data[: len(data) // 2], "half")
    assert capfd.readouterr() == ("", "")
    now = _set_log_level(level)
    assert now == level


def test_threads_leave_opencv_as_it_was(photo: np.ndarray) -> None:
    level = _set_log_level(3)
    data = encoded(photo, ".jpg")

    def decode() -> None:
        for _ in range(50):
            decode_image(data, "a")

    threads = [threading.Thread(target=decode) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert _set_log_level(level) == 3


def test_files_that_cannot_be_read(tmp_path: Path, photo: np.ndarray) -> None:
    with pytest.raises(Unreadable, match=r"none\.jpg: No such file"):
        read_image(tmp_path / "none.jpg")
    with pytest.raises(Unreadable, match=r"[Dd]irectory|not a regular file"):
        read_image(tmp_path)
    with pytest.raises(Unreadable, match="null"):
        read_image("a\0b.jpg")
    with pytest.raises(Unreadable, match="too long"):
        read_image("a" * 5000)
    os.mkfifo(tmp_path / "pipe.jpg")
    with pytest.raises(Unreadable, match="not a regular file"):
        read_image(tmp_path / "pipe.jpg")
    with pytest.raises(Unreadable, match="not a regular file"):
        read_image("/dev/zero")
    (tmp_path / "loop.jpg").symlink_to("loop.jpg")
    with pytest.raises(Unreadable, match=r"loop\.jpg"):
        read_image(tmp_path / "loop.jpg")


def test_missing_permission(tmp_path: Path, photo: np.ndarray) -> None:
    not_as_root()
    (tmp_path / "mine.png").write_bytes(encoded(photo))
    (tmp_path / "mine.png").chmod(0)
    with pytest.raises(Unreadable, match="Permission denied"):
        read_image(tmp_path / "mine.png")


def test_unicode_names(tmp_path: Path, photo: np.ndarray) -> None:
    path = tmp_path / "Ünïcødé 写真 👍.png"
    path.write_bytes(encoded(photo))
    assert read_image(path).size == (48, 32)


def test_content_hash_is_of_the_file(tmp_path: Path, photo: np.ndarray) -> None:
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(encoded(photo))
    first, second = (read_input(Case(name, str(tmp_path / name)))[1] for name in ("a.png", "b.png"))
    assert first == second


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1).filter(
        lambda name: name not in (".", "..")
    )
)
def test_ids_do_not_depend_on_how_accents_are_written(name: str) -> None:
    import unicodedata

    forms = {case_id(Path("/root", "sub", unicodedata.normalize(form, name)), Path("/root")) for form in ("NFC", "NFD")}
    assert forms == {unicodedata.normalize("NFC", f"sub/{name}")}


def test_properties_follow_what_is_seen() -> None:
    rng = np.random.default_rng(0)
    dark, bright = (Image(np.full((480, 720, 3), level, np.uint8)) for level in (20, 220))
    assert image_properties(dark)["brightness"] == pytest.approx(20 / 255)
    assert image_properties(bright)["brightness"] == pytest.approx(220 / 255)
    assert image_properties(dark)["contrast"] == image_properties(dark)["sharpness"] == 0
    red = image_properties(Image(np.full((50, 50, 3), (255, 0, 0), np.uint8)))
    assert red["saturation"] == pytest.approx(1)
    assert red["brightness"] == pytest.approx(0.299, abs=0.002)
    halves = np.zeros((100, 100, 3), np.uint8)
    halves[:, 50:] = 255
    assert image_properties(Image(halves))["contrast"] == pytest.approx(0.5)
    sharp = np.asarray(cv2.GaussianBlur(rng.integers(0, 255, (480, 720, 3), np.uint8), (0, 0), 2), np.uint8)
    soft = np.asarray(cv2.GaussianBlur(sharp, (0, 0), 6), np.uint8)
    assert image_properties(Image(soft))["sharpness"] < 0.3 * image_properties(Image(sharp))["sharpness"]
    for shape in ((1, 1, 3), (1, 5000, 3), (5000, 1, 3)):
        values = image_properties(Image(np.full(shape, 9, np.uint8))).values()
        assert all(np.isfinite(value) for value in values)
