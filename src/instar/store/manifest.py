"""Manifest: what a run is. It is written when the run begins, and grows with it. A judging has one of its own."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import xxhash

from instar.files import path_of, path_text, storable
from instar.json_values import as_instance, as_text, whole_number
from instar.outputs import Row
from instar.store.shard import Shard

FORMAT = 3
"""The version of the run folder's format."""
READABLE = (2, FORMAT)
"""The formats that can be read. In the second one no file has a checksum."""

Header = Row
"""What all outputs of a kind have in common, as that kind writes it: `kind`, a skeleton, the names of zones."""


def sealed(values: Row, indent: int | None = None) -> bytes:
    """Values as JSON, with the checksum of what they say."""
    text = storable(json.dumps(values, ensure_ascii=False))
    sealing = {**json.loads(text), "checksum": _checksum(text)}
    return json.dumps(sealing, indent=indent, ensure_ascii=False).encode("utf-8")


def unsealed(content: bytes) -> object:
    """The values in a sealed file. Raises ValueError where it is no JSON, or says something else than was written."""
    values = json.loads(content.decode("utf-8"), parse_int=whole_number)
    checksum = values.pop("checksum", None) if isinstance(values, dict) else None
    text = storable(json.dumps(values, ensure_ascii=False))
    if checksum not in (None, _checksum(text)):
        raise ValueError("its content does not fit its checksum")
    return json.loads(text)  # JSON that somebody else wrote may spell what is no text


def _checksum(text: str) -> str:
    return str(xxhash.xxh3_64_hexdigest(text.encode("utf-8")))


LONGEST_NAME = 100
"""Letters of a run's name."""


def run_name(text: str) -> str:
    """A run's name as its manifest holds it: in one line, letters with their accents as one sign each.

    >>> run_name(" v2,\\n retrained "), run_name("  ")
    ('v2, retrained', '')
    """
    name = storable(unicodedata.normalize("NFC", " ".join(text.split())))
    if len(name) > LONGEST_NAME:
        raise ValueError(f"`name` has {len(name)} letters; at most {LONGEST_NAME} are allowed: {name[:30]}…")
    return name


@dataclass(frozen=True, slots=True)
class SystemInfo:
    """The system under test: what it answers with, what it takes, and what determines its answers: `parts` by name,
    each with its hash or version, as far as that is known."""

    name: str
    kind: str
    fingerprint: str
    deterministic: bool
    seedable: bool
    takes: str
    parts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProviderInfo:
    """Who provides a need, and what determines what it provides: `parts` by name, as of a system."""

    name: str
    fingerprint: str
    parts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """Where cases came from: the dataset's spelling, the folder that paths are relative to, and how many of its cases
    were asked for, where that was not all."""

    name: str
    root: str
    limit: int | None = None

    @classmethod
    def of(cls, name: str, folder: str, limit: int | None = None) -> DatasetInfo:
        """As texts that a file can hold."""
        return cls(storable(name), path_text(folder), limit)

    @property
    def folder(self) -> str:
        return path_of(self.root)


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine that began the run."""

    system: str
    release: str
    machine: str
    python: str
    cores: int


@dataclass(frozen=True, slots=True)
class RecordedTable:
    """A table of outputs that was imported."""

    name: str
    hash: str
    rows: int


@dataclass(frozen=True, slots=True)
class RecordedInfo:
    """What a run of recorded outputs was made of. `inputs`: whether a dataset or an export knows its inputs."""

    tables: tuple[RecordedTable, ...]
    inputs: bool


@dataclass(frozen=True, slots=True)
class CombinationInfo:
    """A combination that a search found: its rule, the rules that it is made of, and its smallest form that breaks the
    first of the `cases`; it broke `hits` of those that it was `searched` with. Of the others `judged` were, `broken` of
    them are broken by it, `alone` of these by none of its rules. `visual` is the median of what a person sees of it,
    None where that is not defined.
    """

    rule: str
    members: tuple[str, ...]
    shrunk: str
    cases: tuple[str, ...]
    searched: int
    hits: int
    judged: int
    broken: int
    alone: int
    visual: float | None


@dataclass(frozen=True, slots=True)
class SearchInfo:
    """A search for combinations: the rules that were combined, which kind of limit their change had, the predictions
    that it could have and those that it used, and what it found, worst first."""

    members: tuple[str, ...]
    visual: float | None
    budget: int
    used: int = 0
    combinations: tuple[CombinationInfo, ...] = ()

    @property
    def ended(self) -> bool:
        """Whether it came to its end: before that it used nothing that is written down."""
        return self.used > 0


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a run is: versions, fingerprints, rules, seed, machine.

    `output` and `truth` are the headers of the outputs and of the ground truth, None before the first is stored.
    `options` are the judging options of the run's suites, `panels` what they ask a report to show, `titles` what their
    papers call the rules. `planned` is how many predictions the run will have in the end, None where that is not known;
    a case that cannot be read counts with all that it would have had. `shard` says which shard of its plan the run is;
    `absent` which shards of its plan a merged run lacks. `max_pixels` is how many pixels an input could
    have; None where a version made the run that did not note it. `code` has the hashes of the user's own modules
    behind the rules, by file. `until` says what asking went on until, where answers decided what was asked: rules of
    cases in random order, or the levels of a search for limits. None where all cases are asked about all follow-ups;
    `looked` says that it was asked so, and came to all of them. `name` is what the user calls the run; empty where they
    did not say. `search` is what a search for combinations of rules was made with and found: rules of the run that it
    does not name as members are what it tried.
    """

    instar: str
    created: str
    updated: str
    machine: Machine
    packages: Mapping[str, str]
    system: SystemInfo
    seed: int
    providers: Mapping[str, ProviderInfo] = field(default_factory=dict)
    output: Header | None = None
    truth: Header | None = None
    suites: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    options: Row = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    panels: tuple[str, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)
    datasets: tuple[DatasetInfo, ...] = ()
    recorded: RecordedInfo | None = None
    planned: int | None = None
    max_pixels: int | None = None
    code: Mapping[str, str] = field(default_factory=dict)
    shard: Shard | None = None
    absent: tuple[Shard, ...] = ()
    until: str | None = None
    looked: bool = False
    name: str = ""
    search: SearchInfo | None = None

    @property
    def called(self) -> str:
        """What tells people which run it is: its own name, else that of its system."""
        return self.name or self.system.name

    @property
    def header(self) -> Header:
        """What all outputs have in common; nothing before the first is stored."""
        return self.output or {}

    @property
    def truth_kind(self) -> str | None:
        """The output kind of the ground truth; None where there is none."""
        return None if self.truth is None else str(self.truth["kind"])

    def to_json(self) -> bytes:
        return sealed({"format": FORMAT, **asdict(self)}, indent=1)

    @classmethod
    def from_dict(cls, values: Row) -> Manifest:
        """From parsed JSON. Raises ValueError, which names the entry, for what is missing or of another type."""
        counted = "shard" in values or values.get("planned")  # earlier versions wrote 0 for what is not known
        manifest: Manifest = as_instance(dict(values) if counted else {**values, "planned": None}, "", cls)
        for name, header in (("output", manifest.output), ("truth", manifest.truth)):
            if header is not None:
                as_text(header.get("kind"), f"{name}.kind")
        return manifest


@dataclass(frozen=True, slots=True)
class JudgingInfo:
    """What the verdicts of a judging were made of and by, and in which parts of their table they are.

    They are up to date while all but the parts is the same: the names of a table's parts stand for its rows.
    """

    instar: str
    options: Row
    rules: tuple[str, ...]
    predictions: tuple[str, ...]
    cases: tuple[str, ...]
    parts: tuple[int, int] = (0, 0)
    """The number of the first part, and the one after the last."""

    def to_json(self) -> bytes:
        return sealed(asdict(self))

    @classmethod
    def from_dict(cls, values: Row) -> JudgingInfo:
        """From parsed JSON. Raises ValueError for what is missing or of another type."""
        info: JudgingInfo = as_instance(values, "", cls)
        return info
