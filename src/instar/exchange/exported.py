"""What an export holds: its manifest, its cases and their inputs.

A case is a folder of files and a `case.json` that says what they are. That is written last, by one rename, so that a
case is there whole or not at all. `inputs.jsonl` gathers what all of them say, one line per input.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import numpy as np
import numpy.typing as npt
import xxhash

from instar.engine.plan import Key
from instar.files import place_file
from instar.reading import image_bytes
from instar.scene import decode_classes
from instar.store import DatasetInfo, ProviderInfo, Row
from instar.store.manifest import Header
from instar.transforms import Change
from instar.warp import Size, Warp

_FORMAT = 1
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

    def write(self, folder: Path) -> None:
        place_file(folder / _MANIFEST, json.dumps({"format": _FORMAT, **asdict(self)}, indent=1).encode())

    @classmethod
    def from_dict(cls, values: Header) -> ExportManifest:
        """From parsed JSON. What is missing or of another form raises TypeError or KeyError."""
        known = {one.name: values[one.name] for one in fields(cls)}
        known.update(
            dataset=DatasetInfo(**values["dataset"]),
            providers={need: ProviderInfo(**who) for need, who in values["providers"].items()},
            **{name: tuple(values[name]) for name in ("suites", "rules", "panels")},
        )
        return cls(**known)


def opened_export(folder: str | Path) -> ExportManifest:
    """The manifest of an export."""
    path = Path(folder) / _MANIFEST
    try:
        values = json.loads(path.read_text("utf-8"))
        if values["format"] != _FORMAT:
            raise ValueError(
                f"{folder} was exported in format {values['format']}, this Instar reads {_FORMAT}; "
                f"it was written by Instar {values.get('instar')}"
            )
        return ExportManifest.from_dict(values)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(
            f"{folder} holds no export (there is no {_MANIFEST} in it); "
            "`instar export DATASET SUITE --out FOLDER` makes one"
        ) from None
    except (json.JSONDecodeError, TypeError, KeyError) as error:
        raise ValueError(f"{path} is damaged ({error}); restore it, or export again") from None


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
        mask = _read_mask(folder, self.change["mask"]) if "mask" in self.change else None
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
        place_file(folder / _CASE, json.dumps(_plain(record), allow_nan=False).encode())

    @classmethod
    def read(cls, folder: Path) -> ExportedCase | None:
        path = folder / _CASE
        try:
            record = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise ValueError(f"{path} is damaged ({error}); delete it and export again") from None
        for row in (record["case"], *record["needs"]):
            for name, value in row.items():
                if isinstance(value, dict) and "base64" in value:
                    row[name] = b64decode(value["base64"])
        inputs = tuple(ExportedInput(**line) for line in record["inputs"])
        return cls(record["case"], record["truth"], tuple(record["needs"]), inputs)


def is_export(folder: Path) -> bool:
    return (folder / _MANIFEST).is_file()


def inputs_folders(folder: Path) -> Iterator[Path]:
    """The folders that an export writes its cases to."""
    return (folder / _INPUTS).glob("*/")


def case_folder(folder: Path, case: str) -> Path:
    return folder / _INPUTS / safe_name(case)


def exported_cases(folder: Path) -> Iterator[ExportedCase]:
    for path in sorted((folder / _INPUTS).glob(f"*/{_CASE}")):
        case = ExportedCase.read(path.parent)
        assert case is not None
        yield case


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


def _read_mask(folder: Path, name: str) -> npt.NDArray[np.bool_]:
    """The changed cells."""
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{folder} names {name}, which lies elsewhere; export again")
    try:
        return decode_classes(image_bytes(path)) > 0
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}; export again") from None


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
