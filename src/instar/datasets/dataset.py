"""What a dataset is, and what its readers share."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from instar.case import Case
from instar.reading import file_bytes, file_text
from instar.remote import address_in
from instar.secrets import plain_address
from instar.spelling import Parameter, nearest


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Cases to read, in a stable order.

    `cases()` begins anew at every call and reads as it goes. `truth` is the output kind of `Case.truth`;
    `notes` say in words what was left out and why; `inputs` is what its cases are: image or scene. `classes` are those
    of its truth by their own numbers, also the ones that no case shows, where the dataset lists them.
    """

    name: str
    root: str
    cases: Callable[[], Iterator[Case]]
    truth: str | None = None
    notes: tuple[str, ...] = ()
    inputs: str = "image"
    classes: Mapping[int, str] = field(default_factory=dict)


class Place:
    """An existing path, for readers to say whether they recognise it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_folder = path.is_dir()
        self.ending = "" if self.is_folder else path.suffix.lower().removeprefix(".")

    @cached_property
    def start(self) -> bytes:
        """The first bytes of a file; nothing of a folder."""
        if self.is_folder:
            return b""
        return file_bytes(self.path, start=4096)

    @cached_property
    def text(self) -> str:
        return self.start.decode("utf-8-sig", errors="replace")

    @property
    def is_table(self) -> bool:
        """A text file that may be a table or a list: its ending says nothing else."""
        return not self.is_folder and self.ending not in ("json", "yaml", "yml", "mat") and b"\0" not in self.start


@dataclass(frozen=True, slots=True)
class DatasetFamily:
    """A kind of dataset: `open(name, **parameters)` makes one, where `name` is its canonical spelling.

    `recognises` says of an existing path whether it is such a dataset, so that users need not name it.
    """

    name: str
    open: Callable[..., Dataset]
    parameters: tuple[Parameter, ...]
    help: str
    recognises: Callable[[Place], bool] = field(default=lambda place: False)


FAR = 1e9
"""No pixel is so far away, whatever a file says."""
PATH = Parameter("path", "text", help="where it lies")


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


class Distinct:
    """Ids that are given once only: the second `a.jpg` is `a.jpg#2`.

    >>> distinct = Distinct()
    >>> distinct("a.jpg"), distinct("a.jpg"), distinct("b.jpg")
    ('a.jpg', 'a.jpg#2', 'b.jpg')
    """

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}
        self.repeated = 0

    def __call__(self, name: str) -> str:
        count = self.seen[name] = self.seen.get(name, 0) + 1
        if count == 1:
            return name
        self.repeated += 1
        return self(f"{name}#{count}")


def missing(path: Path, what: str = "file or folder") -> FileNotFoundError:
    """The error for a path that is not there: which, and what lies near it."""
    if (address := address_in(path)) is not None:
        return FileNotFoundError(
            f"{plain_address(address)}: this reader takes what lies on a disk; images without annotations are read at "
            "an address, which is then given alone"
        )
    there = path.parent
    while not there.exists() and there != there.parent:
        there = there.parent
    if there != path.parent and there != Path():
        return FileNotFoundError(
            f"there is no {what} {str(path)!r}; of the folders on the way {str(there)!r} is the last that exists"
        )
    try:
        names = [entry.name for entry in there.iterdir()]
    except OSError:
        names = []
    return FileNotFoundError(
        f"there is no {what} {str(path)!r}{nearest(path.name, names, lambda name: str(path.with_name(name)))}"
    )


def existing(path: str | Path, what: str = "file or folder", test: Callable[[Path], bool] = Path.exists) -> Path:
    """The absolute path of what a user named; raises where it is not there, or is something else."""
    if not test(Path(path)):
        raise missing(Path(path), what)
    return Path(path).absolute()


def annotation_file(path: str | Path, names: Sequence[str]) -> Path:
    """The file that a user named, or the first one of these names in the folder that the user named."""
    inside = [Path(path) / name for name in names if (Path(path) / name).is_file()]
    return existing(inside[0] if inside else path, test=Path.is_file)


def utf8_text(path: str | Path, what: str) -> str:
    """The text in a file; `what` says in an error what such a file is."""
    try:
        return file_text(path)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: {what} text in UTF-8, this is not ({error.reason})") from None


def json_of(file: Path) -> Any:
    """What a JSON file says; a damaged one raises ValueError."""
    content = file_bytes(existing(file, "file"))
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file}: not JSON, or damaged ({error})") from None


def first_existing(folders: Sequence[Path], files: Iterable[str], *, of: Path, option: str) -> Path:
    """The first folder that holds one of the files; images are looked for where datasets have them."""
    names = list(files)
    for folder in folders:
        if any((folder / name).is_file() for name in names):
            return folder
    looked = ", ".join(str(folder) for folder in dict.fromkeys(folders))
    raise FileNotFoundError(
        f'{of}: its pictures (e.g. {names[0]}) are in none of {looked}; say where with {option}="folder"'
    )


def shortened(items: Sequence[object], most: int = 3) -> str:
    """`a, b, c and 4 more`."""
    more = f" and {len(items) - most:,} more" if len(items) > most else ""
    return ", ".join(str(item) for item in items[:most]) + more


def counted(number: int, what: str) -> str:
    """`1 object`, `1,200 objects`."""
    return f"{number:,} {what}{'s' * (number != 1)}"
