"""Pool: cut-out objects to insert, each with its class.

A pool is a folder of PNGs with alpha. A file's class is the name of its sub-folder or, outside of one, its own name
less a trailing number: `dog/17.png`, `dog-3.png`, `traffic_light.png`. An optional `pool.jsonl` has a line for each
file of which there is more to say; what it says wins: `{"file": "dog-3.png", "label": "dog", "licence": "CC BY 2.0"}`.
"""

from __future__ import annotations

import json
import re
import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import count
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import xxhash

from instar.case import case_id
from instar.files import place_file, storable
from instar.headers import png_chunks
from instar.image import Image
from instar.json_values import PNG
from instar.reading import Unreadable, file_text, image_bytes, too_many_pixels
from instar.spelling import nearest
from instar.warp import Size, Warp

Pixels = npt.NDArray[np.uint8]

LISTING = "pool.jsonl"
UNFINISHED = "pool.unfinished"
"""A file that is there while a pool is made: a killed maker's pool must not pass as whole."""
_TEXTS, _SIZES = ("file", "label", "licence", "source"), ("width", "height", "area")
VISIBLE = 26
"""The alpha from which a pixel belongs to the object: a tenth."""
_KEPT_BYTES = 64 << 20
_OTHER_IMAGES = (".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff")


def plain_label(label: str) -> str:
    """A class as people write it: words with one space between them.

    >>> plain_label("wine_glass"), plain_label(" hot  dog ")
    ('wine glass', 'hot dog')
    """
    return " ".join(label.replace("_", " ").split()) or label


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One cut-out object: its class, and where it is from.

    `size` is that of the object without the transparent margin. `content` are its pixels, or the file they are in.
    """

    label: str
    name: str
    size: Size
    content: Pixels | Path
    licence: str = ""
    source: str = ""

    @classmethod
    def from_pixels(cls, label: str, pixels: Pixels, *, name: str = "", licence: str = "", source: str = "") -> Item:
        """From RGBA, `uint8`, (H, W, 4) with straight alpha.

        >>> Item.from_pixels("dog", np.full((30, 40, 4), 255, np.uint8)).size
        (40, 30)
        """
        shown, label = _cut(pixels), plain_label(label)
        return cls(label, name or label, (shown.shape[1], shown.shape[0]), shown, licence, source)

    @property
    def pixels(self) -> Pixels:
        """RGBA, `uint8`, (H, W, 4), straight alpha, read-only. Decoded when asked for; the last ones are kept."""
        if not isinstance(self.content, Path):
            return self.content
        pixels = _recent(self.content)
        if (size := (pixels.shape[1], pixels.shape[0])) != self.size:
            raise Unreadable(
                f"{self.content}: what can be seen of it is {size[0]}×{size[1]}, not {self.size[0]}×"
                f"{self.size[1]} as {LISTING} says, or as it was when the pool was read"
            )
        return pixels

    def on_grey(self) -> Image:
        """An image of it, on mid-grey."""
        alpha = self.pixels[..., 3:] / np.float32(255)
        return Image(np.rint(self.pixels[..., :3] * alpha + 128 * (1 - alpha)).astype(np.uint8))


@dataclass(frozen=True, eq=False)
class Pool:
    """Objects to insert. `fingerprint` is a hash of their names, classes and contents; `skipped` are the files that
    cannot be used, with the reason."""

    items: tuple[Item, ...]
    fingerprint: str
    skipped: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_items(cls, items: Iterable[Item]) -> Pool:
        kept = tuple(items)
        return cls(
            kept,
            _fingerprint(
                (item.name, item.label, xxhash.xxh3_128_hexdigest(repr(item.size).encode() + item.pixels.tobytes()))
                for item in kept
            ),
        )

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The classes there are, in alphabetical order."""
        return tuple(sorted({item.label for item in self.items}))

    def of(self, label: str) -> tuple[Item, ...]:
        """The items of a class, however it is spelled (wine_glass, Wine glass); of all classes for `any`."""
        name = plain_label(label).lower()
        return self.items if label == "any" else tuple(item for item in self.items if item.label.lower() == name)

    def warped(self, warp: Warp) -> Pool:
        """Itself: what is inserted does not move with the image."""
        return self

    @property
    def notes(self) -> tuple[str, ...]:
        """What was skipped and why, in words."""
        reasons: dict[str, list[str]] = {}
        for file, reason in self.skipped:
            reasons.setdefault(reason, []).append(file)
        return tuple(
            f"{len(files):,} file{'s' * (len(files) > 1)} skipped, {reason}: {', '.join(files[:3])}"
            + (f" and {len(files) - 3:,} more" if len(files) > 3 else "")
            for reason, files in reasons.items()
        )


# --- reading ---------------------------------------------------------------------------------------


class _Skip(ValueError):
    """Why a file of a pool cannot be used."""


def read_pool(folder: str | Path) -> Pool:
    """The pool in a folder. Files that cannot be used are skipped and named in `skipped`; at least one must be usable.

    Every file's bytes are read once, for the fingerprint. Pixels are decoded when they are used, except of files whose
    line in `pool.jsonl` does not tell their width, height and area: these are looked at here.
    """
    root = Path(folder)
    if not root.is_dir():
        names = [entry.name for entry in root.parent.iterdir()] if root.parent.is_dir() else []
        raise FileNotFoundError(f"there is no folder {str(root)!r} with objects to insert{nearest(root.name, names)}")
    if (root / UNFINISHED).exists():
        raise ValueError(f"{root}: {_NOT_WHOLE}")
    listed = _listing(root / LISTING)
    files = dict(_files(root))
    items, skipped, parts = [], [], []
    for name in sorted({*files, *listed}):
        try:
            item, content = _item(root, name, files.get(name), listed.get(name))
        except _Skip as reason:
            skipped.append((name, str(reason)))
        else:
            items.append(item)
            parts.append((item.name, item.label, content))
    if not items:
        why = "; ".join(f"{name}: {reason}" for name, reason in skipped[:3]) or "it holds no PNG"
        raise ValueError(
            f"{root}: no object in it can be used ({why}). A pool is a folder of PNGs with alpha, each "
            "named for its class, or in a sub-folder that is"
        )
    return Pool(tuple(items), _fingerprint(parts), tuple(skipped))


def _fingerprint(parts: Iterable[tuple[str, str, str]]) -> str:
    """Of names, classes and the hashes of contents."""
    return str(xxhash.xxh3_128_hexdigest("\x1e".join("\x1f".join(part) for part in parts).encode()))[:16]


@dataclass(frozen=True, slots=True)
class ListingLine:
    """What a line of `pool.jsonl` says of a file; empty or None where it says nothing."""

    file: str
    label: str = ""
    licence: str = ""
    source: str = ""
    width: int | None = None
    height: int | None = None
    area: int | None = None


def _listing(path: Path) -> dict[str, ListingLine]:
    if not path.is_file():
        return {}
    lines: dict[str, ListingLine] = {}
    try:
        text = file_text(path)
    except ValueError as error:
        raise ValueError(f"{path}: cannot be read ({error})") from None
    for number, written in enumerate(text.split("\n"), 1):
        if not written.strip():
            continue
        try:
            content = json.loads(written)
        except (ValueError, RecursionError):
            content = None
        texts = {key: content.get(key, "") for key in _TEXTS} if isinstance(content, dict) else {}
        if not texts.get("file") or not all(isinstance(text, str) for text in texts.values()):
            raise ValueError(
                f"{path}, line {number}: a line is a JSON object with file and, as far as known, label, "
                f"licence and source, all of them text; it is {written.strip()[:100]}"
            )
        name = unicodedata.normalize("NFC", texts["file"])
        if name in lines:
            raise ValueError(f"{path}, line {number}: {name} is listed twice")
        sizes = {key: content[key] for key in _SIZES if isinstance(content.get(key), int)}
        lines[name] = ListingLine(**{**texts, "file": name}, **sizes)
    return lines


def _files(root: Path) -> Iterator[tuple[str, Path]]:
    """Images and links below a folder, by name; what is hidden is left alone."""
    for path in root.rglob("*"):
        name = case_id(path, root)
        hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
        if hidden or not (path.suffix.lower() in (".png", *_OTHER_IMAGES) or path.is_symlink()):
            continue
        if path.is_file() or path.is_symlink():
            yield name, path


def _item(root: Path, name: str, path: Path | None, line: ListingLine | None) -> tuple[Item, str]:
    """The item in a file, and the hash of its content."""
    path = path or root / name
    try:
        if not path.resolve().is_relative_to(root.resolve()):
            raise _Skip("it lies outside of the folder")
        if not path.is_file():
            raise _Skip(f"listed in {LISTING}, but not there" if line else "not a file")
        data = image_bytes(path)
    except (OSError, ValueError, RuntimeError) as error:  # a NUL in the name, a link to itself
        if isinstance(error, _Skip):
            raise
        raise _Skip(getattr(error, "strerror", None) or str(error)) from None
    line, listed = line or ListingLine(name), line is not None
    label = plain_label(line.label) or _label(name)
    if not label:
        raise _Skip(
            f"its name says no class; name it for one, put it into a sub-folder that is, or list it in {LISTING}"
        )
    try:
        _, size = _plain_png(data)
        if size != (line.width, line.height) or line.area is None or line.area < 1:
            pixels = _decoded(data)
            if not listed and pixels[..., 3].min() == 255:
                raise _Skip("nothing of it is transparent, so it is not cut out")
            cut = _cut(pixels)
            size = (cut.shape[1], cut.shape[0])
    except Unreadable as error:
        raise _Skip(str(error)) from None
    return Item(label, name, size, path, line.licence, line.source), str(xxhash.xxh3_128_hexdigest(data))


def _label(name: str) -> str:
    """The class that a file's name says; empty where it says none.

    >>> [_label(name) for name in ("dog-3.png", "traffic_light.png", "cup/17.png", "17.png")]
    ['dog', 'traffic light', 'cup', '']
    """
    folder, _, file = name.rpartition("/")
    text = folder.rpartition("/")[2] if folder else re.sub(r"[-_ ]*\(?\d+\)?$", "", file.rpartition(".")[0])
    return plain_label(text)


def _plain_png(data: bytes) -> tuple[bytes, Size]:
    """A PNG's chunks that hold pixels, and its size; raises Unreadable where it is damaged or has no alpha.

    Of many a colour profile libpng complains on stderr.
    """
    if not data.startswith(PNG):
        raise Unreadable("not a PNG")
    kept = {b"IHDR": b"", b"PLTE": b"", b"tRNS": b"", b"IDAT": b"", b"IEND": b""}
    pieces = [PNG]
    for kind, start, end in png_chunks(data):
        if kind in kept:
            kept[kind] = kept[kind] or data[start:end]
            pieces.append(data[start:end])
        if kind == b"IEND":
            break
    header = kept[b"IHDR"]
    if len(header) != 25 or not kept[b"IEND"]:
        raise Unreadable(f"truncated or damaged ({len(data):,} bytes)")
    size = (int.from_bytes(header[8:12], "big"), int.from_bytes(header[12:16], "big"))
    if reason := too_many_pixels(*size):
        raise Unreadable(reason)
    if header[17] not in (4, 6) and not kept[b"tRNS"]:
        raise Unreadable("it has no alpha channel")
    return b"".join(pieces), size


def _decoded(data: bytes) -> Pixels:
    plain, _ = _plain_png(data)
    try:
        decoded = cv2.imdecode(np.frombuffer(plain, np.uint8), cv2.IMREAD_UNCHANGED)
    except (cv2.error, MemoryError) as error:
        raise Unreadable(" ".join(str(error).split()) or type(error).__name__) from None
    if decoded is None or decoded.ndim != 3 or decoded.shape[2] != 4:
        raise Unreadable(f"OpenCV cannot read it, or it is damaged ({len(data):,} bytes)")
    eight = (decoded.astype(np.uint16) >> 8).astype(np.uint8) if decoded.dtype == np.uint16 else decoded
    return np.asarray(cv2.cvtColor(eight, cv2.COLOR_BGRA2RGBA), np.uint8)


def _cut(pixels: Pixels) -> Pixels:
    """Less the transparent margin, read-only."""
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 4:
        what = f"{pixels.dtype} {pixels.shape}" if isinstance(pixels, np.ndarray) else type(pixels).__name__
        raise ValueError(f"an object is a uint8 array (H, W, 4) in RGBA order, got {what}")
    x, y, width, height = cv2.boundingRect((pixels[..., 3] >= VISIBLE).astype(np.uint8))
    if not width:
        raise Unreadable("nothing of it can be seen: its alpha is below a tenth everywhere")
    cut = np.ascontiguousarray(pixels[y : y + height, x : x + width])
    cut.setflags(write=False)
    return cut


class _Recent:
    """Decoded items, the last ones up to a number of bytes, for as long as their files do not change."""

    def __init__(self) -> None:
        self.kept: OrderedDict[tuple[str, int, int], Pixels] = OrderedDict()
        self.lock = threading.Lock()

    def __call__(self, path: Path) -> Pixels:
        try:
            status = path.stat()
            key = (str(path), status.st_mtime_ns, status.st_size)
            with self.lock:
                if key in self.kept:
                    self.kept.move_to_end(key)
                    return self.kept[key]
            pixels = _cut(_decoded(image_bytes(path)))
        except (OSError, Unreadable) as error:
            raise Unreadable(f"{path}: {getattr(error, 'strerror', None) or error}") from None
        with self.lock:
            self.kept[key] = pixels
            while len(self.kept) > 1 and sum(one.nbytes for one in self.kept.values()) > _KEPT_BYTES:
                self.kept.popitem(last=False)
        return pixels


_recent = _Recent()


# --- writing ---------------------------------------------------------------------------------------


_NOT_WHOLE = (
    f"its making was stopped, or goes on (there is a file {UNFINISHED}), so that objects are missing; delete the "
    "folder and make the pool again"
)


def check_new(folder: Path) -> None:
    """Raises FileExistsError unless a folder is new or empty."""
    if (folder / UNFINISHED).exists():
        raise FileExistsError(f"{folder} holds a pool that is not whole: {_NOT_WHOLE}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(f"{folder} is there already; give a folder that is new or empty")


def begin_pool(folder: Path) -> None:
    """Make the folder of a pool, which is none until its listing is written."""
    check_new(folder)
    place_file(folder / UNFINISHED, b"")


def abandon_pool(folder: Path) -> None:
    """Nothing was written after all: the folder is empty again."""
    (folder / UNFINISHED).unlink(missing_ok=True)


def write_item(folder: Path, item: Item) -> ListingLine:
    """Write an item's PNG into the sub-folder of its class; returns its line for `pool.jsonl`."""
    ok, data = cv2.imencode(".png", cv2.cvtColor(item.pixels, cv2.COLOR_RGBA2BGRA))
    if not ok:
        raise ValueError(f"OpenCV could not encode {item.name} of {item.size[0]}×{item.size[1]} as PNG")
    label, name = _safe(item.label), _safe(item.name.removesuffix(".png"))
    (folder / label).mkdir(parents=True, exist_ok=True)
    for number in count(1):
        file = f"{label}/{name}{f'-{number}' if number > 1 else ''}.png"
        try:
            with (folder / file).open("xb") as out:
                out.write(data.tobytes())
            break
        except FileExistsError:
            continue
    area = int((item.pixels[..., 3] >= VISIBLE).sum())
    return ListingLine(file, item.label, item.licence, item.source, *item.size, area)


def _safe(text: str) -> str:
    """A file's name that every system takes, and that leads nowhere else."""
    return re.sub(r"[^\w .-]", "_", text)[:100].strip(" .") or "_"


def write_listing(folder: Path, lines: Iterable[ListingLine]) -> None:
    """Write `pool.jsonl`, one line per item. The pool is whole then."""
    contents = ({key: value for key, value in asdict(line).items() if value not in ("", None)} for line in lines)
    text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in contents)
    place_file(folder / LISTING, storable(text).encode("utf-8"))
    (folder / UNFINISHED).unlink(missing_ok=True)


def write_pool(folder: str | Path, items: Iterable[Item]) -> Pool:
    """Write items into a folder that is new or empty, and read it back as a pool."""
    root = Path(folder)
    begin_pool(root)
    write_listing(root, [write_item(root, item) for item in items])
    return read_pool(root)
