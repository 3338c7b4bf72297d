"""What a coordinator and its workers tell each other. All of it can be pickled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Literal

from instar.case import Case
from instar.engine.needs import Need
from instar.engine.plan import Key
from instar.outputs import Output
from instar.store import KEY, Columns, Header, ProviderInfo, Row, SystemInfo
from instar.systems import Identity, System
from instar.transforms import NotApplicable

# --- to a worker -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Setup:
    """The first message: spelled, so that it can be sent anywhere. `code` names the functions and families of the
    user's own that make follow-ups.

    A *worker* makes follow-ups and predicts them. Or *makers* lay them on `trays` (their descriptors), of which
    *predictors* take them: a maker is told what the system is (`answers`) and how many inputs a tray takes.
    `environment` is for this process alone, such as the GPU it may use.
    """

    system: str | System | None
    providers: Mapping[str, str]
    path: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    role: Literal["worker", "maker", "predictor"] = "worker"
    trays: tuple[int, ...] = ()
    answers: SystemInfo | None = None
    tray_inputs: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)  # without slots: it is pickled by Python's own code in C, in a fraction of the time
class CaseTask:
    """A case and the keys still missing; `needs` and `source` are what the run folder holds already, `lost` are needs
    that it held.

    `single` works one input at a time and says beforehand which, so that a death can be laid at its door.
    """

    case: Case
    keys: tuple[Key, ...]
    seed: int
    needs: Mapping[str, Need | NotApplicable] = field(default_factory=dict)
    source: Output | None = None
    single: bool = False
    lost: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Stored:
    """The need that the worker provided is stored, or what it begins is noted: it may go on."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A maker may fill this tray."""

    tray: int


@dataclass(frozen=True, slots=True)
class Batch:
    """A tray that a predictor is to predict: what lies on it, pickled, and the places among that which are wanted.

    `single` predicts one input at a time and says beforehand which.
    """

    tray: int
    content: bytes
    places: tuple[int, ...]
    single: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """Nothing more is to do: the worker closes its systems and ends."""


# --- from a worker ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """The system and the providers that a worker loaded, the hashes of the files that they are made of, what the
    system's fingerprint covers, the hashes of the user's own modules behind the rules, the device that the system
    says it lives on, and whether it takes tensors there."""

    system: SystemInfo
    providers: Mapping[str, ProviderInfo]
    batch: int = 1
    files: Mapping[str, str] = field(default_factory=dict)
    identity: Identity = field(default_factory=Identity)
    code: Mapping[str, str] = field(default_factory=dict)
    device: str = ""
    takes_tensors: bool = False


@dataclass(frozen=True, slots=True)
class Ready:
    """The first message of a worker that has loaded."""

    info: WorkerInfo


@dataclass(frozen=True, slots=True)
class Failed:
    """The last message of a worker that could not load, or whose system is no longer the one it loaded (`changed`)."""

    reason: str
    changed: bool = False


@dataclass(frozen=True, slots=True)
class Loaded:
    """Files that the system was found to be made of after it was loaded: modules that it imports late."""

    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Begin:
    """What a task that goes one input at a time does next: predict a key or provide a need; else read the input. The
    worker goes on when that is noted: what is on its way is lost with a machine, and another input would be accused."""

    key: Key | None = None
    need: str | None = None


@dataclass(frozen=True)
class InputRead:
    """What the run folder says of a case's input."""

    hash: str
    width: int
    height: int
    properties: Mapping[str, float] | None

    def row(self) -> Row:
        return {"status": "ok", **vars(self)}


@dataclass(frozen=True, slots=True)
class InputUnreadable:
    """Why a case's input cannot be read."""

    reason: str

    def row(self) -> Row:
        return {"status": "error", "message": self.reason}


@dataclass(frozen=True, slots=True)
class NeedProvided:
    """A need as it is stored, or (`message`) why it cannot be had. The worker goes on when it is stored."""

    need: str
    status: str
    message: str | None = None
    provider: str | None = None
    kind: str | None = None
    hash: str | None = None
    header: str | None = None
    facts: str | None = None
    content: bytes = b""
    """What is stored by its hash."""

    def row(self) -> Row:
        return {name: value for name, value in asdict(self).items() if name != "content"}


@dataclass(frozen=True)
class Rows:
    """Rows of predictions, column by column: a dict for every row takes four times as long on its way. A row that has
    nothing in a column has None there. `headers` and `contents` are those that rows name by their hash, where they are
    new."""

    columns: Columns
    headers: Mapping[str, Header] = field(default_factory=dict)
    contents: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Rows:
        """Rows that are there one by one. Most often all have the same columns."""
        names = list(rows[0]) if rows else []
        if all(list(row) == names for row in rows):
            return cls(dict(zip(names, map(list, zip(*(row.values() for row in rows), strict=True)), strict=True)))
        names = list(dict.fromkeys(name for row in rows for name in row))
        return cls({name: [row.get(name) for row in rows] for name in names})

    def __len__(self) -> int:
        return len(self.columns["case"])

    @property
    def keys(self) -> list[Key]:
        """What each is about, within its case."""
        return list(zip(*(self.columns[name] for name in KEY[1:]), strict=True))

    def row(self, place: int) -> Row:
        return {name: values[place] for name, values in self.columns.items()}

    def only(self, places: Sequence[int]) -> Rows:
        """The rows at some places."""
        return replace(self, columns={name: [values[p] for p in places] for name, values in self.columns.items()})

    @staticmethod
    def joined(several: Sequence[Rows]) -> Columns:
        """The columns of all rows together."""
        names = dict.fromkeys(name for rows in several for name in rows.columns)
        return {name: [v for rows in several for v in rows.columns.get(name, [None] * len(rows))] for name in names}


@dataclass(frozen=True, slots=True)
class Filled:
    """A tray that a maker has filled, with the case and key of each input that lies on it; `content` is the rest that
    a predictor has to know, pickled."""

    tray: int
    keys: tuple[tuple[str, Key], ...]
    content: bytes


@dataclass(frozen=True, slots=True)
class Waits:
    """A maker cannot go on with its case before the system has answered the source, and takes the next."""


@dataclass(frozen=True, slots=True)
class BeginPlace:
    """Which input of a tray a predictor predicts next, one at a time."""

    place: int


@dataclass(frozen=True)
class Done:
    """The case, or the tray, is done."""


FromMaker = Begin | InputRead | InputUnreadable | NeedProvided | Filled | Waits
FromPredictor = BeginPlace
Message = Ready | Failed | Loaded | FromMaker | FromPredictor | Rows | Done
