"""Pools: what a folder of cut-out objects says, and what is wrong with others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.image import Unreadable
from instar.pool import LISTING, Item, Pool, plain_label, read_pool, write_item, write_pool
from instar.warp import Warp
from tests.missing import shared

Pixels = npt.NDArray[np.uint8]


def cut_out(
    width: int = 20, height: int = 12, *, margin: int = 2, colour: tuple[int, int, int] = (200, 100, 50)
) -> Pixels:
    """An opaque rectangle with a transparent margin, RGBA."""
    pixels = np.zeros((height + 2 * margin, width + 2 * margin, 4), np.uint8)
    pixels[margin : margin + height, margin : margin + width] = (*colour, 255)
    return pixels


def write(path: Path, pixels: npt.NDArray[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    shown = cv2.cvtColor(pixels, cv2.COLOR_RGBA2BGRA) if pixels.ndim == 3 and pixels.shape[2] == 4 else pixels
    path.write_bytes(cv2.imencode(".png", shown)[1].tobytes())
    return path


def listing(folder: Path, *lines: dict[str, Any]) -> None:
    (folder / LISTING).write_text("\n".join(json.dumps(line) for line in lines))


@pytest.mark.parametrize(
    ("file", "label"),
    [
        ("dog.png", "dog"),
        ("dog-3.png", "dog"),
        ("dog_3.png", "dog"),
        ("dog 3.png", "dog"),
        ("dog3.PNG", "dog"),
        ("dog (2).png", "dog"),
        ("traffic light.png", "traffic light"),
        ("traffic_light_07.png", "traffic light"),
        ("dog/17.png", "dog"),
        ("traffic_light/a.png", "traffic light"),
        ("animals/dog/cat.png", "dog"),
        ("t-shirt.png", "t-shirt"),
        ("ärmel.png", "ärmel"),
    ],
)
def test_the_class_is_in_the_name(tmp_path: Path, file: str, label: str) -> None:
    write(tmp_path / file, cut_out())
    pool = read_pool(tmp_path)
    assert [(item.label, item.name) for item in pool.items] == [(label, file)]
    assert pool.labels == (label,)


def test_an_item_is_rgba_without_its_margin(tmp_path: Path) -> None:
    write(tmp_path / "dog.png", cut_out(20, 12))
    item = read_pool(tmp_path).items[0]
    assert item.size == (20, 12)
    assert item.pixels.shape == (12, 20, 4)
    assert (item.pixels == (200, 100, 50, 255)).all()
    assert not item.pixels.flags.writeable


def test_on_grey() -> None:
    pixels = np.full((4, 5, 4), (200, 100, 50, 255), np.uint8)
    pixels[1:3, 1:3, 3] = 0
    shown = Item.from_pixels("dog", pixels).on_grey().pixels
    assert shown[0, 0].tolist() == [200, 100, 50]
    assert shown[1, 1].tolist() == [128, 128, 128]


def test_sixteen_bits_are_read(tmp_path: Path) -> None:
    write(tmp_path / "dog.png", cut_out().astype(np.uint16) * 257)
    assert (read_pool(tmp_path).items[0].pixels == (200, 100, 50, 255)).all()


def test_a_listing_wins(tmp_path: Path) -> None:
    for name in ("dog-1.png", "17.png", "cat.png"):
        write(tmp_path / name, cut_out())
    listing(
        tmp_path,
        {"file": "dog-1.png", "label": "wolf", "licence": "CC BY 2.0", "source": "a.jpg#3"},
        {"file": "17.png", "label": "cup"},
        {"file": "gone.png", "label": "cup"},
    )
    pool = read_pool(tmp_path)
    assert {item.name: item.label for item in pool.items} == {"dog-1.png": "wolf", "17.png": "cup", "cat.png": "cat"}
    wolf = pool.of("wolf")[0]
    assert (wolf.licence, wolf.source) == ("CC BY 2.0", "a.jpg#3")
    assert pool.skipped == (("gone.png", "listed in pool.jsonl, but not there"),)


def test_what_cannot_be_used_is_skipped_and_told(tmp_path: Path) -> None:
    folder = tmp_path / "pool"
    write(folder / "dog.png", cut_out())
    write(folder / "flat.png", cut_out()[..., :3])
    write(folder / "grey.png", cut_out()[..., 0])
    write(folder / "clear.png", cut_out() * np.array([1, 1, 1, 0], np.uint8))
    write(folder / "whole.png", cut_out(margin=0))
    write(folder / "17.png", cut_out())
    whole = write(folder / "cut.png", cut_out()).read_bytes()
    (folder / "cut.png").write_bytes(whole[: len(whole) // 2])
    (folder / "empty.png").write_bytes(b"")
    (folder / "text.png").write_text("no picture")
    (folder / "photo.jpg").write_bytes(cv2.imencode(".jpg", cut_out()[..., :3])[1].tobytes())
    (folder / "notes.txt").write_text("nothing to say of this")
    (folder / "._dog.png").write_bytes(b"another system's business")
    outside = write(tmp_path / "secret.png", cut_out())
    (folder / "link.png").symlink_to(outside)
    (folder / "more").symlink_to(tmp_path)
    pool = read_pool(folder)
    assert [item.name for item in pool.items] == ["dog.png"]
    reasons = dict(pool.skipped)
    for name, reason in {
        "flat.png": "no alpha",
        "grey.png": "no alpha",
        "clear.png": "nothing of it can be seen",
        "whole.png": "not cut out",
        "17.png": "says no class",
        "cut.png": "truncated",
        "empty.png": "not a PNG",
        "text.png": "not a PNG",
        "photo.jpg": "not a PNG",
        "link.png": "outside of the folder",
        "more": "outside of the folder",
    }.items():
        assert reason in reasons.pop(name), name
    assert not reasons
    assert any("3 files skipped, not a PNG: empty.png, photo.jpg, text.png" in note for note in pool.notes)


def test_a_listing_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    write(tmp_path / "pool" / "dog.png", cut_out())
    secret = write(tmp_path / "secret.png", cut_out())
    listing(tmp_path / "pool", {"file": "../secret.png", "label": "cup"}, {"file": str(secret), "label": "cup"})
    pool = read_pool(tmp_path / "pool")
    assert pool.labels == ("dog",)
    assert all("outside" in reason for _, reason in pool.skipped)
    assert len(pool.skipped) == 2


@pytest.mark.parametrize("line", ["{", "[]", '{"label": "dog"}', '{"file": 3}', '{"file": "a.png", "label": 5}'])
def test_a_listing_that_makes_no_sense_is_an_error(tmp_path: Path, line: str) -> None:
    write(tmp_path / "dog.png", cut_out())
    (tmp_path / LISTING).write_text('{"file": "dog.png"}\n' + line)
    with pytest.raises(ValueError, match=r"pool\.jsonl, line 2: a line is a JSON object with file"):
        read_pool(tmp_path)


def test_no_pool_at_all(tmp_path: Path) -> None:
    (tmp_path / "cutouts").mkdir()
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*cutout'.* did you mean 'cutouts'"):
        read_pool(tmp_path / "cutout")
    with pytest.raises(ValueError, match=r"no object in it can be used .it holds no PNG.*PNGs with alpha"):
        read_pool(tmp_path / "cutouts")
    write(tmp_path / "cutouts" / "dog.png", cut_out()[..., :3])
    with pytest.raises(ValueError, match=r"dog\.png: it has no alpha channel"):
        read_pool(tmp_path / "cutouts")


def test_the_fingerprint_is_that_of_the_contents(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name / "dog.png", cut_out())
        write(tmp_path / name / "cat.png", cut_out(9))
    first = read_pool(tmp_path / "a").fingerprint
    assert read_pool(tmp_path / "b").fingerprint == first
    (tmp_path / "b" / "cat.png").rename(tmp_path / "b" / "cow.png")
    assert read_pool(tmp_path / "b").fingerprint != first
    write(tmp_path / "a" / "cat.png", cut_out(9, colour=(200, 100, 51)))
    assert read_pool(tmp_path / "a").fingerprint != first


def test_pixels_are_decoded_when_they_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_pool(tmp_path / "pool", [Item.from_pixels("dog", cut_out(20 + n), name=f"{n}") for n in range(5)])
    decoded: list[int] = []
    real = cv2.imdecode

    def counted(*arguments: Any) -> Any:
        decoded.append(1)
        return real(*arguments)

    monkeypatch.setattr(cv2, "imdecode", counted)
    pool = read_pool(tmp_path / "pool")
    assert [item.size for item in pool.items] == [(20 + n, 12) for n in range(5)]
    assert not decoded
    first = pool.items[3].pixels
    assert pool.items[3].pixels is first
    assert len(decoded) == 1


def test_a_file_that_changes_under_a_pool_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "dog.png", cut_out())
    item = read_pool(tmp_path).items[0]
    write(path, cut_out(33))
    with pytest.raises(Unreadable, match=r"dog\.png: what can be seen of it is 33×12, not 20×12"):
        _ = item.pixels
    path.unlink()
    with pytest.raises(Unreadable, match=r"dog\.png: No such file"):
        _ = item.pixels


def test_of_a_class_and_of_any() -> None:
    pool = Pool.from_items([Item.from_pixels(label, cut_out()) for label in ("dog", "cat", "dog")])
    assert len(pool) == len(pool.of("any")) == 3
    assert len(pool.of("dog")) == 2
    assert pool.of("cow") == ()
    assert pool.warped(Warp.mirror((10, 10), "h")) is pool


@pytest.mark.parametrize("pixels", [cut_out()[..., :3], cut_out().astype(np.float32), [[1]]])
def test_an_object_is_rgba(pixels: Any) -> None:
    with pytest.raises(ValueError, match=r"uint8 array \(H, W, 4\) in RGBA order"):
        Item.from_pixels("dog", pixels)


@given(
    label=st.text(min_size=1, max_size=12).filter(str.strip),
    name=st.text(min_size=1, max_size=12),
    licence=st.text(max_size=20),
)
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, label: str, name: str, licence: str
) -> None:
    """Whatever a class is called, its file stays in the folder."""
    for text in (label, name, licence):
        try:
            text.encode()
        except UnicodeEncodeError:
            return
    folder = tmp_path_factory.mktemp("pool") / "inside"
    given_item = Item.from_pixels(label, cut_out(), name=name, licence=licence, source="a.jpg#1")
    pool = write_pool(folder, [given_item, given_item])
    assert not pool.skipped
    assert len(pool) == 2
    for item in pool.items:
        assert (item.label, item.licence, item.source) == (plain_label(label), licence, "a.jpg#1")
        assert np.array_equal(item.pixels, given_item.pixels)
    assert {path.name for path in folder.parent.iterdir()} == {"inside"}


def test_a_pool_is_not_written_over_another(tmp_path: Path) -> None:
    write_item(tmp_path, Item.from_pixels("dog", cut_out()))
    with pytest.raises(FileExistsError, match="give a folder that is new or empty"):
        write_pool(tmp_path, [])


def test_the_cutouts_at_hand() -> None:
    pool = read_pool(shared("data/cutouts"))
    assert len(pool.labels) == len(pool) == 58
    assert not pool.skipped


def test_a_pool_whose_maker_was_killed_does_not_pass_as_whole(tmp_path: Path) -> None:
    ring = cut_out()
    ring[8, 8] = 0

    def items() -> Iterator[Item]:
        yield Item.from_pixels("dog", ring)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_pool(tmp_path / "pool", items())
    assert list((tmp_path / "pool").rglob("*.png")), "there is something that looks like a pool"
    with pytest.raises(ValueError, match=r"its making was stopped.*delete the folder and make the pool again"):
        read_pool(tmp_path / "pool")
    with pytest.raises(FileExistsError, match="a pool that is not whole"):
        write_pool(tmp_path / "pool", [Item.from_pixels("dog", ring)])
    assert len(write_pool(tmp_path / "other", [Item.from_pixels("dog", ring)])) == 1
