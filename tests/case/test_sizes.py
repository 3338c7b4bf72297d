"""Sizes are bounded: nothing is decoded, made or read that is larger than allowed, and what is refused says so."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from pathlib import Path

import cv2
import numpy as np
import pytest

import instar
from instar.case import Case, read_input
from instar.headers import encoded_size, header_of
from instar.image import Image, Unreadable, decode_image, picture_size, read_image
from instar.outputs.detections import Detections
from instar.reading import MAX_PIXELS, file_bytes, file_text, most_pixels, regular
from instar.scene import Track, decode_classes
from instar.suites import Suite
from instar.transforms import NotApplicable, transformation
from instar.video import count_frames, video_frame
from tests.toys import write_scenes

SIDE = 16_383


def png(side: int) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


def webp(kind: bytes, content: bytes) -> bytes:
    chunk = kind + struct.pack("<I", len(content)) + content
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk


def tiff(order: str, big: bool) -> bytes:
    sides = [(tag, 4, 1, SIDE) for tag in (256, 257)]
    if big:
        entries = b"".join(struct.pack(order + "HHQQ", *side) for side in sides)
        start = b"\x2b\0" if order == "<" else b"\0\x2b"
        header = start + struct.pack(order + "HHQQ", 8, 0, 16, len(sides))
    else:
        entries = b"".join(struct.pack(order + "HHII", *side) for side in sides)
        header = (b"*\0" if order == "<" else b"\0*") + struct.pack(order + "IH", 8, len(sides))
    return (b"II" if order == "<" else b"MM") + header + entries


LESS = SIDE - 1
BOMBS: dict[str, bytes] = {
    "a WebP without loss, of 38 bytes": webp(b"VP8L", b"/" + struct.pack("<I", LESS | LESS << 14) + bytes(13)),
    "a WebP with loss": webp(b"VP8 ", b"\x50\0\0\x9d\x01\x2a" + struct.pack("<HH", SIDE, SIDE) + bytes(8)),
    "a WebP with a canvas": webp(b"VP8X", bytes(4) + struct.pack("<I", LESS)[:3] * 2),
    "a PNG": png(SIDE),
    "a JPEG": b"\xff\xd8\xff\xc0\0\x11\x08" + struct.pack(">HH", SIDE, SIDE) + bytes(10) + b"\xff\xda\0\x02\xff\xd9",
    "a JPEG with rubbish before its size": b"\xff\xd8\xff\xe0\0\x02rubbish\xff\xc0\0\x11\x08"
    + struct.pack(">HH", SIDE, SIDE) + bytes(10) + b"\xff\xda\0\x02\xff\xd9",
    "a GIF": b"GIF89a" + struct.pack("<HH", SIDE, SIDE) + b"\0\0\0;",
    "a BMP": b"BM" + bytes(12) + struct.pack("<Iii", 40, SIDE, -SIDE) + bytes(40),
    "an old BMP": b"BM" + bytes(12) + struct.pack("<IHH", 12, SIDE, SIDE) + bytes(40),
    "a PPM with a comment": b"P6\n# much\n16383\n# more\n16383\n255\n",
    "a PAM": b"P7\nWIDTH 16383\nHEIGHT 16383\nDEPTH 3\nMAXVAL 255\nENDHDR\n",
    "a Sun raster": struct.pack(">8I", 0x59A66A95, SIDE, SIDE, 24, 0, 1, 0, 0),
    "a TIFF": tiff("<", big=False),
    "a TIFF of the other order": tiff(">", big=False),
    "a BigTIFF": tiff("<", big=True),
    "a JPEG 2000": b"\xff\x4f\xff\x51\0\x2f\0\0" + struct.pack(">IIII", SIDE, SIDE, 0, 0) + bytes(40),
    "an AVIF": b"\0\0\0\x20ftypavif" + bytes(20) + b"\0\0\0\x14ispe\0\0\0\0" + struct.pack(">II", SIDE, SIDE),
}  # fmt: skip


@pytest.mark.parametrize("what", BOMBS)
def test_an_image_that_claims_too_much_is_refused_before_it_is_decoded(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decoder(*_: object) -> None:
        raise AssertionError("it was decoded")

    monkeypatch.setattr(cv2, "imdecode", decoder)
    message = "^bomb: 16,383 × 16,383 pixels; at most 100,000,000 are allowed .*INSTAR_MAX_PIXELS"
    with pytest.raises(Unreadable, match=message):
        decode_image(BOMBS[what], "bomb")


def test_stored_maps_are_read_whatever_the_limit_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run made with a higher limit can be judged without it; what no run stores is refused."""
    stored = cv2.imencode(".png", np.zeros((9, 9), np.uint8))[1].tobytes()
    monkeypatch.setenv(MAX_PIXELS, "80")
    assert decode_classes(stored).shape == (9, 9)
    with pytest.raises(ValueError, match="40,000 × 40,000 pixels; at most 80 are allowed"):
        decode_classes(png(40_000))


def test_the_smallest_bomb_has_38_bytes() -> None:
    assert len(BOMBS["a WebP without loss, of 38 bytes"]) == 38


ENDINGS = (".jpg", ".png", ".webp", ".bmp", ".tiff", ".ppm", ".pgm", ".pbm", ".jp2", ".ras", ".pam", ".gif", ".avif")


@pytest.mark.parametrize("ending", [ending for ending in ENDINGS if cv2.haveImageWriter(f"a{ending}")])
def test_the_header_says_what_the_decoder_makes(ending: str) -> None:
    """Of every kind of image that is written here, the size is known before it is decoded."""
    pixels = np.random.default_rng(0).integers(0, 255, (48, 64, 3), np.uint8)
    done, data = cv2.imencode(ending, pixels[..., :1] if ending in (".pgm", ".pbm") else pixels)
    assert done
    assert encoded_size(data.tobytes()) == (64, 48)
    assert decode_image(data.tobytes(), "a").size == (64, 48)


@pytest.mark.parametrize("start", [b"", b"not an image", b"#?RADIANCE\n", b"v/1\x01 and more", b"Pf\n3 3\n-1\n", b"BM"])
def test_what_says_no_size_is_not_decoded(start: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cv2, "imdecode", None)
    assert header_of(start).size is None
    with pytest.raises(Unreadable, match=r"^a: "):
        decode_image(start, "a")


def test_the_limit_is_set_in_one_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    photo = next(write_scenes(tmp_path, 1).iterdir())
    assert most_pixels() == 100_000_000
    monkeypatch.setenv(MAX_PIXELS, "19199")
    with pytest.raises(Unreadable, match="160 × 120 pixels; at most 19,199 are allowed"):
        read_image(photo)
    assert picture_size(str(photo)) is None
    monkeypatch.setenv(MAX_PIXELS, "19200")
    assert read_image(photo).size == picture_size(str(photo)) == (160, 120)


@pytest.mark.parametrize("text", ["many", "-1", "0", "1e8", "9" * 400])
def test_a_limit_that_is_no_number_is_an_error_before_the_run(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photos = write_scenes(tmp_path, 1)
    monkeypatch.setenv(MAX_PIXELS, text)
    with pytest.raises(ValueError, match=r"INSTAR_MAX_PIXELS is '.*'; it takes a whole number from 1"):
        instar.dataset(photos)


def test_a_follow_up_that_would_be_too_large_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MAX_PIXELS, "10000")
    photo = Image(np.zeros((60, 80, 3), np.uint8))
    assert transformation("rescale(1.4)")(photo)[0].size == (112, 84)
    monkeypatch.setattr(Image, "warped", None)  # no memory is taken for it
    for name in ("rescale(4)", "stretch(4, 4)", "pad(1)", "rescale(2) | rescale(0.5)"):
        with pytest.raises(NotApplicable, match=r"^the follow-up would have [\d,]+ × [\d,]+ pixels; at most 10,000"):
            transformation(name)(photo)


def test_in_a_run_they_are_rows_that_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photos = write_scenes(tmp_path / "photos", 2)
    (photos / "bomb.webp").write_bytes(BOMBS["a WebP without loss, of 38 bytes"])
    monkeypatch.setenv(MAX_PIXELS, "40000")
    rules = Suite("sizes", (instar.rule("rescale(4)"), instar.rule("mirror(h)")))
    one = instar.run("tests.toys:rectangles", rules, photos, out=tmp_path / "run", workers=0)
    refused = one.cases().filter(one.cases()["case"] == "bomb.webp").row(0, named=True)
    assert "16,383 × 16,383 pixels; at most 40,000 are allowed" in refused["message"]
    rows = one.predictions()
    large = rows.filter(rows["follow_up"] == "rescale(4)")
    assert large["status"].to_list() == ["not applicable"] * 2
    assert all("would have 640 × 480 pixels; at most 40,000" in text for text in large["message"])
    assert rows.filter(rows["follow_up"] != "rescale(4)")["status"].unique().to_list() == ["ok"]


def test_frames_of_videos_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clip = tmp_path / "clip.avi"
    writer = cv2.VideoWriter(str(clip), cv2.VideoWriter.fourcc(*"MJPG"), 10, (64, 48))
    writer.write(np.zeros((48, 64, 3), np.uint8))
    writer.release()
    monkeypatch.setenv(MAX_PIXELS, "3071")
    for read in (lambda: video_frame(str(clip), 0), lambda: count_frames(clip)):
        with pytest.raises(Unreadable, match="its frames have 64 × 48 pixels; at most 3,071"):
            read()
    monkeypatch.setenv(MAX_PIXELS, "3072")
    assert video_frame(str(clip), 0).size == (64, 48)


def test_maps_and_masks_are_bounded(tmp_path: Path) -> None:
    track = Track(((1.0, 1.0), (2.0, 2.0)), ("background",), 2, 1.0, None, None)
    (tmp_path / "map.png").write_bytes(png(SIDE))
    with pytest.raises(Unreadable, match="16,383 × 16,383 pixels; at most"):
        read_input(Case("a", str(tmp_path / "map.png"), track=track))
    with pytest.raises(ValueError, match="16,383 × 16,383 pixels; at most"):
        Track(track.past, track.names, 2, 1.0, None, (SIDE, SIDE)).on(None)
    fields = {"boxes": [[0, 0, 1, 1]], "labels": ["a"], "masks": [b64encode(png(SIDE)).decode()]}
    with pytest.raises(ValueError, match="16,383 × 16,383 pixels; at most"):
        Detections.from_json(fields)


# --- files -----------------------------------------------------------------------------------------


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    """It holds nothing, so the disk has room for it; memory would not."""
    vast = tmp_path / "vast.jpg"
    with vast.open("wb") as file:
        file.truncate(1 << 42)
    with pytest.raises(Unreadable, match=r"4,398,046,511,104 bytes; at most 801,048,576 are read of such a file"):
        read_image(vast)
    for read in (file_bytes, file_text, regular):
        with pytest.raises(Unreadable, match="at most 4,294,967,296 are read"):
            read(vast)


def test_a_file_of_unknown_length_is_read_to_its_end() -> None:
    assert "Pid:" in file_text("/proc/self/status")  # whose length is 0


def test_the_beginning_of_a_file_is_enough_for_some(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abcdef")
    assert file_bytes(tmp_path / "a", start=3) == b"abc"
    assert file_bytes(tmp_path / "a") == b"abcdef"
    with pytest.raises(Unreadable, match="6 bytes; at most 5 are read"):
        file_bytes(tmp_path / "a", 5)
