"""What an export holds: its manifest, its cases and their inputs.

A case is a folder of files and a `case.json` that says what they are. That is written last, by one rename, so that a
case is there whole or not at all. `inputs.jsonl` gathers what all of them say, one line per input.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
import xxhash

from instar.engine.plan import Key
from instar.files import inside, place_file
from instar.reading import file_bytes
from instar.scene import decode_classes
from instar.store import DatasetInfo, ProviderInfo, Row
from instar.store.manifest import Header, sealed, unsealed
from instar.transforms import Change
from instar.warp import Size, Warp

_FORMAT = 2
_READABLE = (1, _FORMAT)
"""The formats that can be read. In the first one no file has a checksum."""
_REMEDY = "delete it and export again: the same command makes this case anew"
_MANIFEST, _INPUTS, _CASE, _LINES = "export.json", "inputs", "case.json", "inputs.jsonl"
_LETTERS = 60
"""As many of a name are kept for people to read; its hash makes it one of its own."""


@dataclass(frozen=True, slots=True)
class ExportManifest:
    """What an export says of itself: all that an import needs to know besides the cases."""

    instar: str
    created: str
    updated: str
    kind: str
    stochastic: bool
    dataset: DatasetInfo
    seed: int
    options: Header
    suites: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict)
    panels: tuple[str, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)
    providers: Mapping[str, ProviderInfo] = field(default_factory=dict)
    max_pixels: int | None = None

    def write(self, folder: Path) -> None:
        place_file(folder / _MANIFEST, sealed({"format": _FORMAT, **asdict(self)}, indent=1))

    @classmethod
    def from_dict(cls, values: Header) -> ExportManifest:
        """From parsed JSON. What is missing or of another form raises TypeError, KeyError or AttributeError."""
        known = {one.name: values[one.name] for one in fields(cls) if one.name in values}
        known.update(
            dataset=DatasetInfo(**values["dataset"]),
            providers={need: ProviderInfo(**who) for need, who in values["providers"].items()},
            **{name: tuple(values[name]) for name in ("suites", "rules", "panels")},
        )
        return cls(**known)


def opened_export(folder: str | Path) -> ExportManifest:
    """The manifest of an export."""
    path = inside(Path(folder), _MANIFEST)
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder} holds no export (there is no {_MANIFEST} in it); "
            "`instar export DATASET SUITE --out FOLDER` makes one"
        )
    values = _unsealed(path, "restore it, or export into another folder")
    if values.get("format") not in _READABLE:
        raise ValueError(
            f"{folder} was exported in format {values.get('format')}, this Instar reads {_FORMAT}; "
            f"it was written by Instar {values.get('instar')}"
        )
    try:
        return ExportManifest.from_dict(values)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{path} is damaged ({error}); restore it, or export into another folder") from None


def _unsealed(path: Path, remedy: str) -> Row:
    """The values in a sealed file; raises ValueError, with its name and what to do, where it is damaged."""
    try:
        values = unsealed(file_bytes(path))
        if isinstance(values, dict):
            return values
        why = "it is no JSON object"
    except (ValueError, RecursionError) as error:
        why = str(error)
    raise ValueError(
        f"{path} is damaged ({why}); {remedy}. If you changed it yourself, delete its entry `checksum`"
    ) from None


@dataclass(frozen=True, slots=True)
class ExportedInput:
    """A line of an export: an input by its key, with its file and what was changed, or why there is none."""

    case: str
    follow_up: str
    draw: int
    repeat: int
    status: str
    message: str | None = None
    file: str | None = None
    """Relative to the export's folder."""
    hash: str | None = None
    """Of the file's content; None where a format without hashes wrote it."""
    width: int | None = None
    height: int | None = None
    change: Header | None = None
    seed: int | None = None

    @property
    def key(self) -> Key:
        return self.follow_up, self.draw, self.repeat

    def to_json(self) -> dict[str, object]:
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def row(self, source: Size, folder: Path) -> Row:
        """Its columns in a run's predictions."""
        row = {name: getattr(self, name) for name in ("case", "follow_up", "draw", "repeat", "status", "message")}
        if self.change is None or self.width is None or self.height is None:
            return row
        mask = _read_mask(folder, self.change) if "mask" in self.change else None
        warp = Warp(np.array(self.change["warp"]), source, (self.width, self.height))
        regions = tuple((x0, y0, x1, y1) for x0, y0, x1, y1 in self.change["regions"])
        added, removed = tuple(self.change["added"]), tuple(self.change["removed"])
        return {**row, **Change(warp, regions, added, removed, self.change["facts"], mask).row()}


@dataclass(frozen=True, slots=True)
class ExportedCase:
    """A case of an export: its row in a run folder, the header of its truth, the needs that were stored, its inputs."""

    case: Row
    truth: Header | None = None
    needs: tuple[Row, ...] = ()
    inputs: tuple[ExportedInput, ...] = ()

    def write(self, folder: Path) -> None:
        inputs = [line.to_json() for line in self.inputs]
        record = {"case": self.case, "truth": self.truth, "needs": self.needs, "inputs": inputs}
        place_file(folder / _CASE, sealed(cast(Row, _plain(record))))

    @classmethod
    def read(cls, folder: Path) -> ExportedCase | None:
        path = inside(folder, _CASE)
        if not path.exists():
            return None
        record = _unsealed(path, _REMEDY)
        try:
            for row in (record["case"], *record["needs"]):
                for name, value in row.items():
                    if isinstance(value, dict) and "base64" in value:
                        row[name] = b64decode(value["base64"])
            inputs = tuple(ExportedInput(**line) for line in record["inputs"])
            return cls(record["case"], record["truth"], tuple(record["needs"]), inputs)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"{path} is damaged ({error}); {_REMEDY}") from None


def is_export(folder: Path) -> bool:
    return (folder / _MANIFEST).is_file()


def inputs_folders(folder: Path) -> Iterator[Path]:
    """The folders that an export writes its cases to."""
    return inside(folder, _INPUTS).glob("*/")


def case_folder(folder: Path, case: str) -> Path:
    return inside(folder, f"{_INPUTS}/{safe_name(case)}")


def exported_cases(folder: Path) -> Iterator[ExportedCase]:
    for path in sorted(inside(folder, _INPUTS).glob(f"*/{_CASE}")):
        case = ExportedCase.read(inside(folder, f"{_INPUTS}/{path.parent.name}"))
        assert case is not None
        yield case


def content_hash(content: bytes) -> str:
    return str(xxhash.xxh3_128_hexdigest(content))


def is_whole(folder: Path, line: ExportedInput) -> bool:
    """Whether the files of an input are there, and what was exported."""
    mask = (line.change or {}).get("mask")
    try:
        _check_content(folder, str(line.file), line.hash)
        if mask is not None:
            _check_content(folder, mask, (line.change or {}).get("mask_hash"))
    except (FileNotFoundError, ValueError):
        return False
    return True


def check_inputs(folder: Path, inputs: Iterable[ExportedInput]) -> int:
    """How many inputs have no file any more. Raises ValueError for a file that is not what was exported: the answer is
    to something else, then."""
    hashes = {line.file: line.hash for line in inputs if line.status == "ok" and line.file is not None}
    gone = 0
    for name, expected in hashes.items():
        try:
            _check_content(folder, name, expected)
        except FileNotFoundError:
            gone += 1
    return gone


def _check_content(folder: Path, name: str, expected: str | None) -> bytes:
    """The content of an exported file. Raises FileNotFoundError where it is gone, ValueError where it is another."""
    path = inside(folder, name)
    if not path.exists():
        raise FileNotFoundError(f"{path} is gone; export again: the same command makes it anew")
    content = file_bytes(path)
    if expected not in (None, content_hash(content)):
        raise ValueError(
            f"{path} is damaged or was edited: its content is not what was exported. Export again, which makes it anew,"
            " and have it answered again"
        )
    return content


def gather_lines(folder: Path) -> tuple[dict[str, int], int, int]:
    """Write all lines into one file; how many there are by status, how many cases, and how many were unreadable."""
    statuses, readable = Counter[str](), Counter[bool]()

    def write(place: Path) -> None:
        with place.open("w", encoding="utf-8") as file:
            for case in exported_cases(folder):
                readable[case.case["status"] == "ok"] += 1
                statuses.update(line.status for line in case.inputs)
                file.writelines(json.dumps(line.to_json()) + "\n" for line in case.inputs)

    place_file(folder / _LINES, write)
    return dict(statuses), readable.total(), readable[False]


def safe_name(name: str) -> str:
    """A file name for any text: on every system, for people to recognise, and never that of another text."""
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", name)[-_LETTERS:].strip("-.")
    return f"{slug}-{xxhash.xxh3_64_hexdigest(name.encode('utf-8', 'surrogatepass'))}".lstrip("-")


def _read_mask(folder: Path, change: Header) -> npt.NDArray[np.bool_]:
    """The changed cells."""
    content = _check_content(folder, change["mask"], change.get("mask_hash"))
    try:
        return decode_classes(content) > 0
    except ValueError as error:
        raise ValueError(f"{folder / change['mask']}: {error}; export again") from None


def _plain(value: object) -> object:
    """What JSON can say: arrays as lists, what is not a number as null, bytes in base64."""
    if isinstance(value, bytes):
        return {"base64": b64encode(value).decode("ascii")}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
