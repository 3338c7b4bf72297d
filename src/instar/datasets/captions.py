"""Captions of pictures as tables have them: Flickr8k and Flickr30k, Conceptual Captions' kind, your own."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from instar.case import Case
from instar.datasets.dataset import (
    PATH,
    Dataset,
    DatasetFamily,
    counted,
    existing,
    first_existing,
    nfc,
    shortened,
    utf8_text,
)
from instar.outputs.caption import Caption
from instar.spelling import Parameter

_IMAGE = ("image", "image_name", "filename", "file_name", "file", "img")
_CAPTION = ("caption", "captions", "comment", "text", "sentence")
_TOKEN = re.compile(r"^(.+\.\w{3,4})#\d+\t(.+)$")
"""A line of Flickr's token files: `1000092795.jpg#0`, a tab, the caption."""


def _is_captions(start: str) -> bool:
    """Whether a text file begins as a table of captions does."""
    first = start.lstrip("\ufeff").partition("\n")[0].strip()
    if _TOKEN.match(first):
        return True
    if first.startswith("{"):
        return any(f'"{name}"' in first for name in _IMAGE) and any(f'"{name}"' in first for name in _CAPTION)
    columns = [name.strip().strip('"').lower() for name in re.split(r"[,\t|]", first)]
    return any(name in columns for name in _IMAGE) and any(name in columns for name in _CAPTION)


def _open(name: str, *, path: str, images: str | None) -> Dataset:
    file = existing(path, "table of captions", Path.is_file)
    text = utf8_text(path, "a table of captions is")
    captions: dict[str, list[str]] = {}
    empty: list[int] = []
    for line, picture, caption in _lines(text, path):
        if picture.strip() and caption.strip():
            captions.setdefault(nfc(picture.strip()), []).append(caption)
        else:
            empty.append(line)
    if not captions:
        raise ValueError(f"{path}: it has no captions")
    near = ("", "images", "Images", "flickr30k_images", "Flicker8k_Dataset")
    folders = [Path(images)] if images else [file.parent / each for each in near]
    root = first_existing([folder.absolute() for folder in folders], captions, of=file, option="images")
    notes = (f"{counted(len(empty), 'line')} without a picture or a caption: {shortened(empty)}",)
    return Dataset(name, str(root), partial(_cases, root, captions), Caption.kind, notes if empty else ())


def _lines(text: str, path: str) -> Iterator[tuple[int, str, str]]:
    """The number of each line, its picture and its caption."""
    first = text.partition("\n")[0]
    numbered = ((number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip())
    if _TOKEN.match(first.strip()):
        for number, line in numbered:
            match = _TOKEN.match(line.strip())
            if match is None:
                raise ValueError(f"{path}, line {number}: expected `picture.jpg#0`, a tab and a caption")
            yield number, match[1], match[2]
    elif first.lstrip().startswith("{"):
        for number, line in numbered:
            yield from _of_json(number, line, path)
    else:
        mark = next((mark for mark in ("\t", "|", ",") if mark in first), ",")
        rows = csv.reader(io.StringIO(text), delimiter=mark)
        heads = [head.strip().lower() for head in next(rows, [])]
        picture, caption = _column(heads, _IMAGE, path), _column(heads, _CAPTION, path)
        for row in rows:
            if row:
                if len(row) <= max(picture, caption):
                    raise ValueError(
                        f"{path}, line {rows.line_num}: it has {len(row)} columns, the first line has {len(heads)}"
                    )
                # a caption with a bare separator in it spills over into columns that the table does not have
                spilled = row[caption:] if caption == len(heads) - 1 else [row[caption]]
                yield rows.line_num, row[picture], mark.join(spilled)


def _of_json(number: int, line: str, path: str) -> Iterator[tuple[int, str, str]]:
    try:
        entry = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{path}, line {number}: not JSON ({error})") from None
    if not isinstance(entry, Mapping):
        raise ValueError(f"{path}, line {number}: expected an object with an image and its captions")
    picture = next((entry[name] for name in _IMAGE if name in entry), None)
    entries = next((entry[name] for name in _CAPTION if name in entry), None)
    texts = entries if isinstance(entries, list) else [entries]
    if not isinstance(picture, str) or not all(isinstance(each, str) for each in texts):
        raise ValueError(
            f"{path}, line {number}: it has no image ({', '.join(_IMAGE[:3])} …) or no caption "
            f"({', '.join(_CAPTION[:3])} …)"
        )
    for each in texts:
        yield number, picture, str(each)


def _column(heads: list[str], names: tuple[str, ...], path: str) -> int:
    for name in names:
        if name in heads:
            return heads.index(name)
    raise ValueError(f"{path}: none of its columns {', '.join(heads)} is called {' or '.join(names)}")


def _cases(root: Path, captions: Mapping[str, list[str]]) -> Iterator[Case]:
    for picture in sorted(captions):
        yield Case(picture, str(root / picture), truth=Caption.from_texts(captions[picture]))


CAPTIONS = DatasetFamily(
    "captions",
    _open,
    (PATH, Parameter("images", "text", None, help="the folder of the pictures; if not given, looked for nearby")),
    "pictures with captions in a table: CSV, JSON lines, or Flickr's token file",
    recognises=lambda place: place.is_table and _is_captions(place.text),
)
