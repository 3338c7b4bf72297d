"""A text file that names pictures, one per line."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from instar.case import Case
from instar.datasets.dataset import PATH, Dataset, DatasetFamily, Distinct, counted, existing, nfc, shortened, utf8_text
from instar.datasets.folder import is_picture
from instar.datasets.remote import address_id
from instar.datasets.windowing import header_names
from instar.remote import address_in


def path_id(path: Path, root: Path) -> str:
    """A path's id relative to a root, or the whole path where it lies elsewhere."""
    return nfc((path.relative_to(root) if path.is_relative_to(root) else path).as_posix())


def _cases(pairs: list[tuple[str, str]]) -> Iterator[Case]:
    for name, path in pairs:
        yield Case(name, path)


def _there(path: str) -> str:
    """The path, or the one that exists and differs only in how accents are written."""
    if not path.isascii() and not Path(path).exists():
        for other in (nfc(path), unicodedata.normalize("NFD", path)):
            if Path(other).exists():
                return other
    return path


def _id(pair: tuple[str, str]) -> str:
    """What a list is sorted by. Ids differ; a signature in an address is another one every day."""
    return pair[0]


def _refuse_tables(file: Path, first: str) -> None:
    """A table with a header is none of pictures, and its columns would become names of files that are not there."""
    columns = header_names(first)
    if len(columns) < 3 or address_in(first) is not None or first.startswith("#"):
        return
    if not is_picture(first) and not os.path.exists(file.parent / first):  # noqa: PTH110  (True of no name too long)
        raise ValueError(
            f"{file}: its first line names no picture. A list has one path per line; the first line of a table of "
            f"tracks names track, frame, x, y, and this names {shortened([column[:40] for column in columns], 8)}"
        )


def _open(name: str, *, path: str) -> Dataset:
    file = existing(path, "list", Path.is_file)
    text = utf8_text(path, "a list is")
    distinct, root = Distinct(), f"{str(file.parent).rstrip('/')}/"
    _refuse_tables(file, text.lstrip().partition("\n")[0].strip())
    pairs = []
    for line in text.splitlines():
        entry = line.strip()
        if entry and not entry.startswith("#"):
            if (address := address_in(entry)) is not None:
                pairs.append((address_id(address, str(file.parent)), address))
                continue
            target = _there(os.path.normpath(entry if entry.startswith("/") else root + entry))
            # without a `Path` for each of many lines, which would take longer than all the rest
            inside = target.startswith(root)
            pairs.append((nfc(target[len(root) :]) if inside else path_id(Path(target), file.parent), target))
    if not pairs:
        raise ValueError(
            f"{path}: the list names no pictures; it has one path per line, relative to itself, "
            "and lines starting with # are comments"
        )
    pairs = [(distinct(each), target) for each, target in pairs]
    notes = []
    if distinct.repeated:
        notes.append(f"{counted(distinct.repeated, 'line')} repeat an earlier one; their ids end in #2, #3, …")
    return Dataset(name, str(file.parent), partial(_cases, sorted(pairs, key=_id)), notes=tuple(notes))


# fmt: off
LIST = DatasetFamily("list", _open, (PATH,), "a text file with one path or address per line; # comments",
    recognises=lambda place: place.is_table)
# fmt: on
