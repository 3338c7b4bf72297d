"""A folder of pictures, read through all its sub-folders."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from instar.case import Case
from instar.datasets.dataset import PATH, Dataset, DatasetFamily, counted, missing, nfc, shortened

# fmt: off
PICTURES = (
    "avif", "bmp", "dib", "gif", "jfif", "jp2", "jpe", "jpeg", "jpg", "pbm", "pgm", "png", "pnm", "ppm", "ras", "sr",
    "tif", "tiff", "webp",
)
# fmt: on
"""The endings looked for, in any case. Some need a newer OpenCV; such a file becomes a row that says so."""
_ENDINGS = frozenset(PICTURES)


def is_picture(name: str) -> bool:
    return name.rpartition(".")[2].lower() in _ENDINGS and not name.startswith(".")


@dataclass(slots=True)
class _Seen:
    """What a walk met besides pictures."""

    others: Counter[str] = field(default_factory=Counter)
    closed: list[str] = field(default_factory=list)
    loops: list[str] = field(default_factory=list)
    misnamed: int = 0
    annotations: list[str] = field(default_factory=list)


def _walk(folders: list[str], prefix: str, above: frozenset[tuple[int, int]], seen: _Seen) -> Iterator[tuple[str, str]]:
    """(id, path) of every picture, sorted by id, with no more in memory than one folder on each level.

    Several folders at once where their names differ only in how accents are written: their ids would
    otherwise come out of order. A folder counts as `name/`, which makes walking in order sort whole paths.
    Paths are texts: a `Path` for each of 100,000 files would take longer than all the rest.
    """
    groups: dict[str, list[str]] = {}
    inside = set(above)
    for folder in folders:
        try:
            status = Path(folder).stat()
            if (status.st_dev, status.st_ino) in above:
                seen.loops.append(prefix)
                continue
            inside.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as entries:
                children = [each for each in entries if not each.name.startswith(".")]
        except OSError:
            seen.closed.append(prefix or folder)
            continue
        for entry in children:
            name, is_folder, ascii_name = entry.name, _is_folder(entry), entry.name.isascii()
            if not ascii_name and not _sayable(name):
                seen.misnamed += 1
            elif is_folder or is_picture(name):
                key = (name if ascii_name else nfc(name)) + "/" * is_folder
                groups.setdefault(key, []).append(entry.path)
            else:
                seen.others[Path(name).suffix.lower() or "no ending"] += 1
                seen.annotations += [prefix + name] if name.lower().endswith(".json") else []
    for key in sorted(groups):
        paths = groups.pop(key)
        if len(paths) > 1:
            paths.sort(key=Path)  # part by part
        if key.endswith("/"):
            yield from _walk(paths, prefix + key, frozenset(inside), seen)
        else:
            yield prefix + key, paths[0]
            for number, path in enumerate(paths[1:], 2):
                yield f"{prefix}{key}#{number}", path


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _sayable(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _cases(root: Path) -> Iterator[Case]:
    for name, path in _walk([str(root)], "", frozenset(), _Seen()):
        yield Case(name, path)


def _one(path: Path) -> Iterator[Case]:
    yield Case(nfc(path.name), str(path))


def _open(name: str, *, path: str) -> Dataset:
    root = Path(path).absolute()
    if root.is_file():
        return Dataset(name, str(root.parent), partial(_one, root))
    if not root.is_dir():
        raise missing(Path(path))
    seen = _Seen()
    count = sum(1 for _ in _walk([str(root)], "", frozenset(), seen))
    notes = _notes(seen)
    if not count:
        raise ValueError(
            f"there are no pictures in {path!r}: looked in all its folders for "
            f"{', '.join('.' + ending for ending in PICTURES)}" + "".join(f"; {note}" for note in notes)
        )
    return Dataset(name, str(root), partial(_cases, root), notes=notes)


def _notes(seen: _Seen) -> tuple[str, ...]:
    notes = []
    if total := seen.others.total():
        common = sorted(seen.others.items(), key=lambda item: (-item[1], item[0]))
        kinds = [f"{ending} {count:,}" for ending, count in common]
        notes.append(
            f"{total:,} {'file is no picture' if total == 1 else 'files are no pictures'}: {shortened(kinds, 5)}"
        )
    if seen.annotations:
        notes.append(
            f"its ground truth is not read; if {shortened(seen.annotations, 1)} holds it, give that file instead"
        )
    if seen.closed:
        notes.append(f"{counted(len(seen.closed), 'folder')} cannot be opened: {shortened(seen.closed)}")
    if seen.loops:
        links = counted(len(seen.loops), "link")
        notes.append(f"{links} to a folder above not followed: {shortened(seen.loops)}")
    if seen.misnamed:
        notes.append(f"{counted(seen.misnamed, 'name')} not in UTF-8 left out; rename them")
    return tuple(notes)


# fmt: off
FOLDER = DatasetFamily("folder", _open, (PATH,), "a folder of pictures, with its sub-folders; or one",
    recognises=lambda place: place.is_folder or is_picture(place.path.name))
# fmt: on
