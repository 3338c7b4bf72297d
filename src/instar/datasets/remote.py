"""Images at addresses: below one in a bucket or at Hugging Face, in a list, or a single one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

from instar.case import Case
from instar.datasets.dataset import PATH, Dataset, DatasetFamily, Distinct, counted, nfc
from instar.datasets.folder import PICTURES, is_picture
from instar.datasets.video import VIDEOS
from instar.reading import Unreadable, file_text
from instar.remote import address_in, in_bucket, joined, object_names, refuse_login
from instar.secrets import plain_address
from instar.spelling import spell

# fmt: off
_FILES = (
    *VIDEOS, "csv", "gz", "json", "jsonl", "mat", "npz", "parquet", "tar", "tgz", "tsv", "xml", "yaml", "yml", "zip",
)
# fmt: on
"""Endings of what is no folder of images: its reader takes files on a disk."""
_LISTS = ("lst", "txt")


class _Listing:
    """The names of the images below an address. They are asked for once, a page at a time as far as they are wanted:
    whoever goes through them again meets the same ones."""

    def __init__(self, address: str) -> None:
        self._rest = (name for name in object_names(address) if _is_image(name))
        self._names: list[str] = []
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[str]:
        position = 0
        while True:
            if position == len(self._names):
                with self._lock:
                    if position == len(self._names):
                        name = next(self._rest, None)
                        if name is None:
                            return
                        self._names.append(name)
            yield self._names[position]
            position += 1


def _is_image(name: str) -> bool:
    """As in a folder: of a known ending, and with nothing hidden on the way to it."""
    folder, _, last = name.rpartition("/")
    return is_picture(last) and not any(part.startswith(".") for part in folder.split("/"))


def _below(address: str, listing: _Listing) -> Iterator[Case]:
    distinct = Distinct()
    for name in listing:
        # in ASCII there is one way to write a name, and nothing to remember
        yield Case(name if name.isascii() else distinct(nfc(name)), joined(address, name))


def _one(address: str) -> Iterator[Case]:
    yield Case(nfc(plain_address(address).rpartition("/")[2]), address)


def _open(name: str, *, path: str) -> Dataset:
    address = address_in(path)
    if address is None:
        raise ValueError(f"{path}: that is no address; one begins with s3://, gs://, az://, hf:// or https://")
    refuse_login(address)
    shown = plain_address(address)
    name = name if shown == address else spell(REMOTE.name, {PATH.name: shown}, (PATH,))
    last = shown.rpartition("/")[2]
    ending = last.rpartition(".")[2].lower() if "." in last else ""
    if ending in PICTURES:
        return Dataset(name, shown.rpartition("/")[0], partial(_one, address))
    if ending in _LISTS:
        return _listed(name, address)
    if ending in _FILES:
        raise ValueError(
            f"{shown}: of addresses, images, lists of images (.txt) and folders of images in buckets are read; "
            "copy annotations, tables, videos and archives to a disk, with their images, and give their path"
        )
    if not in_bucket(address) and not address.startswith("hf://"):
        raise ValueError(
            f"{shown}: a web server does not list what it has; give the address of an image "
            f"({', '.join('.' + one for one in PICTURES)}), or a text file (.txt) with one address per line"
        )
    listing = _Listing(address)
    if next(iter(listing), None) is None:
        raise ValueError(f"there are no images below {shown}; looked for {', '.join('.' + one for one in PICTURES)}")
    return Dataset(name, shown, partial(_below, address, listing))


def _listed(name: str, address: str) -> Dataset:
    """A list at an address; what it names is relative to it, or an address of its own."""
    shown = plain_address(address)
    try:
        lines = [line.strip() for line in file_text(address).splitlines()]
    except UnicodeDecodeError as error:
        raise ValueError(f"{shown}: a list is text in UTF-8, this is not ({error.reason})") from None
    except Unreadable as error:
        raise FileNotFoundError(str(error)) from None
    root = shown.rpartition("/")[0]
    distinct = Distinct()
    entries = [address_in(line) or joined(root, line) for line in lines if line and not line.startswith("#")]
    pairs = [(distinct(address_id(entry, root)), entry) for entry in entries]
    if not pairs:
        raise ValueError(f"{shown}: the list names no images; it has one address per line")
    notes = [f"{counted(distinct.repeated, 'line')} repeat an earlier one; their ids end in #2, #3, …"]
    return Dataset(
        name,
        root,
        lambda: (Case(case, entry) for case, entry in sorted(pairs, key=lambda pair: pair[0])),
        notes=tuple(notes if distinct.repeated else ()),
    )


def address_id(address: str, root: str) -> str:
    """The id of an image in a list: its address relative to the list's, or the whole without what may be a key."""
    shown = plain_address(address)
    return nfc(shown.removeprefix(f"{root}/") if shown.startswith(f"{root}/") else shown)


REMOTE = DatasetFamily(
    "remote", _open, (PATH,), "images at an address: s3://, gs://, az://, hf://; one or a list of them at https://"
)
