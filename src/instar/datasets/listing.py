"""A text file that names pictures, one per line."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from instar.case import Case
from instar.datasets.dataset import PATH, Dataset, DatasetFamily, Distinct, counted, existing, nfc, utf8_text


def path_id(path: Path, root: Path) -> str:
    """A path's id relative to a root, or the whole path where it lies elsewhere."""
    return nfc((path.relative_to(root) if path.is_relative_to(root) else path).as_posix())


def _cases(pairs: list[tuple[str, str]]) -> Iterator[Case]:
    for name, path in pairs:
        yield Case(name, path)


def _there(path: Path) -> Path:
    """The path, or the one that exists and differs only in how accents are written."""
    if not str(path).isascii() and not path.exists():
        for other in (Path(nfc(str(path))), Path(unicodedata.normalize("NFD", str(path)))):
            if other.exists():
                return other
    return path


def _open(name: str, *, path: str) -> Dataset:
    file = existing(path, "list", Path.is_file)
    text = utf8_text(path, "a list is")
    distinct = Distinct()
    pairs = []
    for line in text.splitlines():
        entry = line.strip()
        if entry and not entry.startswith("#"):
            target = _there(Path(os.path.normpath(file.parent / entry)))
            pairs.append((path_id(target, file.parent), str(target)))
    if not pairs:
        raise ValueError(
            f"{path}: the list names no pictures; it has one path per line, relative to itself, "
            "and lines starting with # are comments"
        )
    pairs = [(distinct(each), target) for each, target in pairs]
    notes = []
    if distinct.repeated:
        notes.append(f"{counted(distinct.repeated, 'line')} repeat an earlier one; their ids end in #2, #3, …")
    return Dataset(name, str(file.parent), partial(_cases, sorted(pairs)), notes=tuple(notes))


# fmt: off
LIST = DatasetFamily("list", _open, (PATH,), "a text file with one path per line, relative to it; # comments",
    recognises=lambda place: place.is_table)
# fmt: on
