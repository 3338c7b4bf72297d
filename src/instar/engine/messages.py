"""What a coordinator and its workers tell each other. All of it can be pickled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from instar.case import Case
from instar.engine.needs import Need
from instar.engine.plan import Key
from instar.outputs import Output
from instar.store import Header, ProviderInfo, Row, SystemInfo
from instar.systems import Identity, System
from instar.transforms import NotApplicable

# --- to a worker -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Setup:
    """The first message: spelled, so that it can be sent anywhere. `code` names the functions and families of the
    user's own that make follow-ups."""

    system: str | System
    providers: Mapping[str, str]
    path: tuple[str, ...] = ()
    code: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
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
    """The need that the worker provided is stored: it may go on."""


@dataclass(frozen=True, slots=True)
class End:
    """Nothing more is to do: the worker closes its systems and ends."""


# --- from a worker ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """The system and the providers that a worker loaded, the hashes of the files that they are made of, what the
    system's fingerprint covers, and the hashes of the user's own modules behind the rules."""

    system: SystemInfo
    providers: Mapping[str, ProviderInfo]
    batch: int = 1
    files: Mapping[str, str] = field(default_factory=dict)
    identity: Identity = field(default_factory=Identity)
    code: Mapping[str, str] = field(default_factory=dict)


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
    """What a task that goes one input at a time does next: predict a key or provide a need; else read the input."""

    key: Key | None = None
    need: str | None = None


@dataclass(frozen=True, slots=True)
class InputRead:
    """What the run folder says of a case's input."""

    hash: str
    width: int
    height: int
    properties: Mapping[str, float] | None

    def row(self) -> Row:
        return {"status": "ok", **asdict(self)}


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


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of predictions. `headers` and `contents` are those that rows name by their hash, where they are new."""

    rows: list[Row]
    headers: Mapping[str, Header] = field(default_factory=dict)
    contents: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Done:
    """The case is done."""


Message = Ready | Failed | Loaded | Begin | InputRead | InputUnreadable | NeedProvided | Rows | Done
