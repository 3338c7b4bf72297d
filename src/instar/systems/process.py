"""A program in any language as a system, spoken to in JSON lines: `process("node detector.js")`.

The protocol is described in docs/process-systems.md. Nothing that a program says is ever evaluated, and no shell
is between.
"""

from __future__ import annotations

import json
import os
import selectors
import shlex
import shutil
import signal
import site
import struct
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import weakref
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import cv2
import numpy as np
import numpy.typing as npt

from instar.case import Input
from instar.image import Image
from instar.json_values import as_list, as_numbers, as_text, one_of, short
from instar.outputs import Output
from instar.outputs.caption import Caption
from instar.outputs.detections import Detections
from instar.outputs.forecast import Forecast
from instar.outputs.poses import Poses
from instar.outputs.zones import Zones
from instar.scene import Scene, decode_classes
from instar.skeleton import Skeleton, skeleton
from instar.spelling import Parameter, nearest
from instar.systems.system import System, SystemFamily, fingerprint_of, hash_file

__all__ = ["FAMILIES", "Crashed", "TimedOut"]

_ADAPTER = "1"
"""Part of every fingerprint here; changes when the adapter's answers do."""
_PROTOCOL = 1
_MOST_BYTES = 256 << 20
"""The longest line that is read: a program that never ends its line must not fill the memory."""
_MOST_LOG = 1 << 20
_STARTS = 3
_GRACE = 2.0
_LOOK = 0.5
"""Seconds between looks whether a silent program is still there: a process it left behind may hold its stdout open."""

_PNG = b"\x89PNG\r\n\x1a\n"
_GREETING = '{"instar": 1, "kind": "poses", "deterministic": true}'


class Crashed(RuntimeError):
    """The program ended instead of answering; the message says how, and its last words on stderr."""

    status: ClassVar[str] = "crashed"


class TimedOut(RuntimeError):
    """The program did not answer in time, and was killed."""

    status: ClassVar[str] = "timeout"


# --- one running program ---------------------------------------------------------------------------

_KEEPER = """
import _thread, os, signal, sys, time
parent, argv = int(sys.argv[1]), sys.argv[2:]
try:
    child = os.posix_spawnp(argv[0], argv, os.environ, setsigdef=[signal.SIGPIPE, signal.SIGXFSZ])
except OSError as error:
    sys.exit(f"{argv[0]}: {error.strerror}")
null = os.open(os.devnull, os.O_RDWR)
os.dup2(null, 0)
os.dup2(null, 1)
def watch():
    while os.getppid() == parent:
        time.sleep(0.5)
    os.kill(0, signal.SIGKILL)
_thread.start_new_thread(watch, ())
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
os._exit(code if code >= 0 else 128 - code)
"""
"""What stands between us and the program, and leads its process group. A worker may be killed at any moment and
cannot clean up after itself then: the keeper sees that its parent is gone and kills the group, also what a wrapper
such as `uv run` or a shell script has started. (Linux' PR_SET_PDEATHSIG kills one process only, and does so already
when the thread ends that started it.) A program that a signal killed is told as shells tell it: 128 + its number."""


class _Child:
    """A started program. Its pipes are its own: what an earlier one says late is never heard."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._log = _scratch()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _KEEPER, str(os.getpid()), *argv],
            bufsize=0,
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        # A large request and a large answer may meet: whoever blocks on writing then waits for ever.
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        self._heard = bytearray()
        self._searched = 0
        # called by itself when nobody knows this object any more, and when the interpreter exits
        self.close = weakref.finalize(self, _close, self._process, self._log, os.getpid())

    def kill(self) -> None:
        _kill_group(self._process)
        self.close()

    def exchange(self, request: bytes, seconds: float, what: str) -> bytes:
        """Write a line (nothing, to hear the greeting) and return the next line heard."""
        deadline = time.monotonic() + seconds
        if os.fstat(self._log.fileno()).st_size > _MOST_LOG:
            os.ftruncate(self._log.fileno(), 0)
        left = memoryview(request)
        with selectors.DefaultSelector() as pipes:
            pipes.register(self._out, selectors.EVENT_READ)
            if left:
                pipes.register(self._in, selectors.EVENT_WRITE)
            while (line := self._line()) is None:
                gone = self._process.poll() is not None
                events = pipes.select(max(0.0, min(_LOOK, deadline - time.monotonic())))
                for key, _ in events:
                    if key.fd == self._in:
                        left = self._write(left)
                        if not left:
                            pipes.unregister(self._in)
                    elif not self._read():
                        gone, events = True, []
                if gone and not events:
                    raise Crashed(f"the program {self._end()} instead of its {what}{self._last_words()}")
                if time.monotonic() > deadline:
                    raise TimedOut(f"the program was killed after {seconds:g} s without its {what}{self._last_words()}")
        return line

    def _write(self, left: memoryview) -> memoryview:
        """What is left to write; nothing where nobody reads any more, whose reason stdout tells."""
        try:
            return left[os.write(self._in, left) :]
        except BlockingIOError:
            return left
        except BrokenPipeError:
            return left[:0]

    def _read(self) -> bool:
        """Read what there is; False at the end."""
        try:
            data = os.read(self._out, 1 << 20)
        except BlockingIOError:
            return True
        self._heard += data
        return bool(data)

    def _line(self) -> bytes | None:
        end = self._heard.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(self._heard)
            if self._searched > _MOST_BYTES:
                raise ValueError(
                    f"the program wrote a line of more than {_MOST_BYTES >> 20} MB, which starts with "
                    f"{_quoted(self._heard)}"
                )
            return None
        line = bytes(self._heard[:end])
        del self._heard[: end + 1]
        self._searched = 0
        return line

    def _end(self) -> str:
        """How it ended, in words."""
        try:
            code = self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            return "closed its stdout"
        number = -code if code < 0 else code - 128
        if number in {one.value for one in signal.Signals}:
            return f"was killed by {signal.Signals(number).name}"
        return f"ended with exit status {code}"

    def _last_words(self) -> str:
        """The end of what it wrote to stderr: why it failed is said nowhere else."""
        descriptor = self._log.fileno()
        size = os.fstat(descriptor).st_size
        lines = os.pread(descriptor, 2000, max(0, size - 2000)).decode("utf-8", "replace").splitlines()
        words = " / ".join([line.strip() for line in lines if line.strip()][-3:])[-400:]
        return f": {words}" if words else ""


def _scratch() -> BinaryIO:
    """A file without a name to append to: it can be cut while a program writes, and never makes it wait."""
    descriptor, path = tempfile.mkstemp(prefix="instar-")
    os.close(descriptor)
    file = Path(path).open("a+b", buffering=0)  # noqa: SIM115  (lives as long as the program)
    Path(path).unlink()
    return file


def _close(process: subprocess.Popen[bytes], log: BinaryIO, owner: int) -> None:
    if os.getpid() != owner:  # a forked copy of its owner must not end it
        return
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
    _kill_group(process)
    process.wait()
    process.stdout.close()
    log.close()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _environment() -> dict[str, str]:
    """Ours, less what is for this interpreter alone.

    A worker process has its whole `sys.path` in PYTHONPATH. A program that runs in another Python would import
    this one's standard library, and fail in strange ways.
    """
    environment = dict(os.environ)
    folders = environment.get("PYTHONPATH", "").split(os.pathsep)
    library = sysconfig.get_path("stdlib")
    if library in folders:
        own = (library, sysconfig.get_path("platstdlib"), *site.getsitepackages(), site.getusersitepackages())
        archive = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
        environment["PYTHONPATH"] = os.pathsep.join(
            folder
            for folder in folders
            if not any(Path(folder).is_relative_to(part) for part in own) and Path(folder).name != archive
        )
    return environment


# --- the system ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Greeting:
    """What a program says of itself, once, before anything else."""

    kind: str
    takes: str
    deterministic: bool
    seedable: bool
    version: str


class _Program:
    """A program that is started again when it has died."""

    def __init__(self, argv: Sequence[str], timeout: float, start_timeout: float) -> None:
        self._argv, self._timeout, self._start_timeout = argv, timeout, start_timeout
        self._lock = threading.Lock()
        self._asked = 0
        self._given_up = ""
        self._last: tuple[Input, bytes] | None = None
        self._child: _Child | None
        self._child, self.greeting = self._started()

    def predict(self, inputs: Sequence[Input], seeds: Sequence[int]) -> list[Output]:
        with self._lock:
            return [self._one(given, seed) for given, seed in zip(inputs, seeds, strict=True)]

    def close(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None

    def _one(self, given: Input, seed: int) -> Output:
        child = self._running()
        self._asked += 1
        request = b'{"id": %d, "seed": %d, "input": %s}\n' % (self._asked, seed, self._spelled(given))
        try:
            reply = _reply(child.exchange(request, self._timeout, "answer"), self._asked)
        except BaseException:  # also when the user interrupts: the answer would be heard as that to the next input
            child.kill()
            self._child = None
            raise
        # From here on program and adapter are in step: a bad answer does not cost loading the model again.
        if reply.strange:
            raise ValueError(f"the answer holds {reply.strange}, which is not JSON; an absent landmark is null")
        told = _fields(reply.content, "an answer", ("id",), ("output", "error"))
        if told["error"] is not None:
            raise RuntimeError(f"the program says: {as_text(told['error'], 'error')}")
        return _OUTPUTS[self.greeting.kind](told["output"], given)

    def _spelled(self, given: Input) -> bytes:
        """Repeats of a prediction are given the same input: it is encoded once."""
        if self._last is None or self._last[0] is not given:
            self._last = given, _spelled(given)
        return self._last[1]

    def _running(self) -> _Child:
        if self._given_up:
            raise Crashed(self._given_up)
        if self._child is None:
            self._child = self._started_again()
        return self._child

    def _started(self) -> tuple[_Child, _Greeting]:
        child = _Child(self._argv)
        try:
            return child, _greeting(child.exchange(b"", self._start_timeout, "greeting"))
        except BaseException:
            child.kill()
            raise

    def _started_again(self) -> _Child:
        """A new one, in the few tries that it has: then no input waits for it any more."""
        why = ""
        for _ in range(_STARTS):
            try:
                child, greeting = self._started()
            except (Crashed, TimedOut, ValueError, OSError) as error:
                why = str(error)
                continue
            if greeting == self.greeting:
                return child
            child.kill()
            why = f"it greeted with {greeting}, before with {self.greeting}"
        self._given_up = f"the program was there once, but failed to start again {_STARTS} times in a row: {why}"
        raise Crashed(self._given_up)


def _process(name: str, *, command: str, version: str, timeout: float, start_timeout: float) -> System:
    argv = _words(name, command)
    try:
        program = _Program(argv, timeout, start_timeout)
    except (Crashed, TimedOut, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None
    said = program.greeting
    fingerprint = fingerprint_of("process", _ADAPTER, *argv, *_contents(argv), version, said)
    return System(
        name,
        said.kind,
        program.predict,
        fingerprint,
        deterministic=said.deterministic,
        seedable=said.seedable,
        takes=said.takes,
        close=program.close,
    )


def _words(name: str, command: str) -> list[str]:
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"{name}: the command cannot be read: {error}") from None
    if not argv:
        raise ValueError(f'{name}: the command is empty; it is written process("python3 my_model.py")')
    if shutil.which(argv[0]) is None:
        if Path(argv[0]).is_file() and "/" in argv[0]:
            raise PermissionError(
                f"{name}: {argv[0]} is not executable; name what runs it first, as in "
                f'process("python3 {argv[0]}"), or make it executable'
            )
        raise FileNotFoundError(
            f"{name}: there is no program {argv[0]!r} on the PATH or in {Path.cwd()}; install it, "
            "or give its path. No shell reads the command: ~, $NAME and pipes mean nothing in it"
        )
    return argv


def _contents(argv: Sequence[str]) -> list[str]:
    """Hashes of the files that the command names, also as `--weights=FILE`."""
    found = []
    for word in argv:
        for path in (word, word.partition("=")[2]):
            with suppress(OSError, ValueError):  # a program that may be run but not read; a word that is no path
                if Path(path).is_file():
                    found.append(hash_file(path))
    return found


# --- what is said ----------------------------------------------------------------------------------


def _spelled(given: Input) -> bytes:
    width, height = given.size
    if isinstance(given, Image):
        # put together by hand: json would look for quotes in megabytes of base64
        png = b64encode(_png(given.pixels, 0))
        return b'{"kind": "image", "width": %d, "height": %d, "png": "%s"}' % (width, height, png)
    assert isinstance(given, Scene)
    classes = b64encode(_png(given.classes, 1)).decode()
    return json.dumps(
        {
            "kind": "scene",
            "width": width,
            "height": height,
            "classes": classes,
            "names": list(given.names),
            "past": given.past.tolist(),
            "steps": given.steps,
            "rate": given.rate,
            "metres_per_pixel": given.metres_per_pixel,
        },
        allow_nan=False,
    ).encode()


def _png(pixels: npt.NDArray[np.uint8], level: int) -> bytes:
    """RGB or grey, without the filters that make files small and slow.

    Photos are not compressed (level 0): 1 ms for 640×480 where OpenCV takes 15, and they are read five times as fast.
    A class map shrinks to a thirtieth in the time that OpenCV takes, and is read as much faster.
    """
    height, width = pixels.shape[:2]
    rows = np.zeros((height, 1 + pixels.size // height), np.uint8)  # each begins with its filter, 0 for none
    rows[:, 1:] = pixels.reshape(height, -1)

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(name)))

    header = struct.pack(">IIBBBBB", width, height, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    data = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows.data, level)), chunk(b"IEND", b"")
    return _PNG + b"".join(data)


# --- what is heard ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Reply:
    """A line that was understood; `strange` names a constant in it that JSON does not have."""

    content: dict[str, Any]
    strange: str


def _heard(line: bytes) -> _Reply | None:
    """A JSON object, or None."""
    strange: list[str] = []

    def note(constant: str) -> float:
        strange.append(constant)
        return 0.0

    try:
        content = json.loads(line.decode("utf-8-sig"), parse_constant=note)
    except (ValueError, RecursionError):
        return None
    return _Reply(content, strange[0] if strange else "") if isinstance(content, dict) else None


def _reply(line: bytes, number: int) -> _Reply:
    reply = _heard(line)
    if reply is None:
        raise ValueError(
            f"the program wrote {_quoted(line)} to stdout, which is no answer; stdout is for answers "
            "alone, print logs to stderr"
        )
    if reply.content.get("id") != number:
        raise ValueError(
            f"the answer has id {short(reply.content.get('id'))}, the request has {number}: {_quoted(line)}"
        )
    return reply


def _greeting(line: bytes) -> _Greeting:
    reply = _heard(line)
    if reply is None or reply.strange or "instar" not in reply.content:
        raise ValueError(
            f"the program wrote {_quoted(line)} to stdout; its first line is a greeting such as "
            f"{_GREETING}, and logs are printed to stderr"
        )
    told = _fields(reply.content, "a greeting", ("instar", "kind", "deterministic"), ("takes", "seedable", "version"))
    if told["instar"] != _PROTOCOL:
        raise ValueError(
            f"the program speaks version {short(told['instar'])} of the protocol, this Instar speaks {_PROTOCOL}"
        )
    kind = one_of(told["kind"], "kind", tuple(_OUTPUTS))
    takes = one_of(told["takes"] or ("scene" if kind == Forecast.kind else "image"), "takes", (Image.kind, Scene.kind))
    deterministic = _yes_or_no(told["deterministic"], "deterministic")
    seedable = deterministic if told["seedable"] is None else _yes_or_no(told["seedable"], "seedable")
    return _Greeting(kind, takes, deterministic, seedable, as_text(told["version"] or "", "version"))


def _poses(told: object, given: Input) -> Poses:
    output = _fields(told, "poses", ("skeleton", "points"), ("visibility", "scores"))
    bones = _skeleton(output["skeleton"])
    count = len(bones.landmarks)
    subjects = as_list(output["points"], "points", "subjects, each a list of landmarks")
    for number, subject in enumerate(subjects):
        if len(as_list(subject, f"subject {number} of points", "landmarks, each [x, y] or null")) != count:
            raise ValueError(f"subject {number} of points has {len(subject)} landmarks; {bones.name} has {count}")
    absent = np.array([[point is None for point in subject] for subject in subjects], bool).reshape(-1, count)
    points = as_numbers(
        [[[0, 0] if point is None else point for point in subject] for subject in subjects],
        "points",
        (len(subjects), count, 2),
        "landmarks [x, y] in pixels, null where one is absent",
    )
    points[absent] = np.nan
    seen, sure = output["visibility"], output["scores"]
    return Poses.from_array(
        points,
        skeleton=bones,
        visibility=None if seen is None else as_numbers(seen, "visibility", absent.shape, "a number for each landmark"),
        scores=None if sure is None else as_numbers(sure, "scores", (len(subjects),), "a number for each subject"),
    )


def _detections(told: object, given: Input) -> Detections:
    output = _fields(told, "detections", ("boxes", "labels"), ("scores",))
    boxes = as_numbers(output["boxes"], "boxes", (None, 4), "boxes [x0, y0, x1, y1] in pixels")
    labels = [as_text(label, "a label") for label in as_list(output["labels"], "labels", "texts, one for each box")]
    sure = output["scores"]
    return Detections.from_xyxy(
        boxes, labels, None if sure is None else as_numbers(sure, "scores", (len(boxes),), "a number for each box")
    )


def _zones(told: object, given: Input) -> Zones:
    output = _fields(told, "zones", ("labels", "names"))
    try:
        png = b64decode(as_text(output["labels"], "labels"), validate=True)
    except ValueError as error:
        raise ValueError(f"labels is a PNG in base64; this is none: {error}") from None
    if not png.startswith(_PNG):
        raise ValueError("labels is a PNG in base64; this is something else in base64")
    size = struct.unpack(">II", png[16:24].ljust(8, b"\0"))
    if size != given.size:  # said before it is decoded: a few bytes can claim to be gigabytes
        raise ValueError(f"the zones are {size}, the input is {given.size}")
    names = output["names"]
    if not isinstance(names, dict):
        raise ValueError(f'names is {short(names)}; it takes the label values of each zone, as in {{"skin": [1, 2]}}')
    try:
        labels = decode_classes(png)
    except cv2.error as error:
        raise ValueError(f"labels cannot be decoded: {error.err}") from None
    return Zones(labels, {as_text(name, "a zone's name"): _values(values, name) for name, values in names.items()})


def _forecast(told: object, given: Input) -> Forecast:
    output = _fields(told, "a forecast", ("futures",), ("map",))
    futures = as_numbers(output["futures"], "futures", (None, None, 2), "paths, each a list of positions [x, y]")
    if output["map"] is None:
        return Forecast.from_array(futures)
    heat = _fields(output["map"], "map", ("probability",), ("box",))
    cells = as_numbers(heat["probability"], "probability", (None, None), "rows of equally many numbers")
    if heat["box"] is None:
        return Forecast.from_array(futures, cells)
    x0, y0, x1, y1 = as_numbers(heat["box"], "box", (4,), "x0, y0, x1, y1 in pixels").tolist()
    if x1 <= x0 or y1 <= y0:
        raise ValueError(f"box is {short(heat['box'])}; it takes x0, y0, x1, y1 with x0 < x1 and y0 < y1")
    return Forecast.from_array(futures, cells, box=(x0, y0, x1, y1))


def _caption(told: object, given: Input) -> Caption:
    output = _fields(told, "a caption", ("text",), ("score",))
    score = None if output["score"] is None else float(as_numbers(output["score"], "score", (), "a number"))
    return Caption.from_text(as_text(output["text"], "text"), score=score)


_OUTPUTS: Mapping[str, Callable[[object, Input], Output]] = {
    Caption.kind: _caption,
    Detections.kind: _detections,
    Forecast.kind: _forecast,
    Poses.kind: _poses,
    Zones.kind: _zones,
}


# --- single values ---------------------------------------------------------------------------------


def _fields(value: object, what: str, needed: Sequence[str], more: Sequence[str] = ()) -> dict[str, Any]:
    """All fields of an object, None where one is absent."""
    known = [*needed, *more]
    if not isinstance(value, dict):
        raise ValueError(f"{what} is an object with {', '.join(known)}; got {short(value)}")
    for key in value:
        if key not in known:
            raise ValueError(f"{what} has no field {key!r}{nearest(key, known)}; there are {', '.join(known)}")
    lacking = [key for key in needed if value.get(key) is None]
    if lacking:
        raise ValueError(f"{what} needs {' and '.join(lacking)}; got {short(value)}")
    return {key: value.get(key) for key in known}


def _values(value: object, zone: str) -> tuple[int, ...]:
    found = as_list(value, zone, "label values from 0 to 255")
    if not all(type(one) is int and 0 <= one <= 255 for one in found):
        raise ValueError(f"{zone} is {short(value)}; it takes a list of label values from 0 to 255")
    return tuple(found)


def _yes_or_no(value: object, what: str) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{what} is {short(value)}; it takes true or false")
    return value


def _skeleton(told: object) -> Skeleton:
    if not isinstance(told, str | dict):
        raise ValueError(f"skeleton is {short(told)}; it takes the name of a skeleton, or all of one")
    try:
        return _known_skeleton(json.dumps(told))
    except (KeyError, OSError) as error:
        raise ValueError(str(error)) from None


@lru_cache(maxsize=64)
def _known_skeleton(text: str) -> Skeleton:
    """It comes with every answer, and is always the same."""
    told = json.loads(text)
    return skeleton(told) if isinstance(told, str) else Skeleton.from_dict(told)


def _quoted(line: bytes | bytearray) -> str:
    text = line[:800].decode("utf-8", "replace").strip()
    return repr(text) if len(text) <= 160 else f"{text[:160]!r}…"


FAMILIES = (
    SystemFamily(
        "process",
        "any",
        _process,
        (
            Parameter("command", "text", help="the program and its arguments; no shell reads it"),
            Parameter("version", "text", "", help="change it when the program's answers change"),
            Parameter("timeout", "float", 30, low=0, open_low=True, help="seconds that one answer may take"),
            Parameter("start_timeout", "float", 120, low=0, open_low=True, help="seconds until the program's greeting"),
        ),
        help="A program in any language, spoken to in JSON lines; it says itself what it answers with.",
    ),
)
