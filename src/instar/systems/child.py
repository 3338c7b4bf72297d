"""A running program, spoken to in lines over its stdin and stdout. It never outlives the process that started it."""

from __future__ import annotations

import os
import selectors
import signal
import site
import subprocess
import sys
import sysconfig
import tempfile
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, ClassVar

_MOST_BYTES = 256 << 20
"""The longest line that is read: a program that never ends its line must not fill the memory."""
_MOST_LOG = 1 << 20
_GRACE = 2.0
_LOOK = 0.5
"""Seconds between looks whether a silent program is still there: a process it left behind may hold its stdout open."""


class Crashed(RuntimeError):
    """The program ended instead of answering; the message says how, and its last words on stderr."""

    status: ClassVar[str] = "crashed"


class TimedOut(RuntimeError):
    """The program did not answer in time, and was killed."""

    status: ClassVar[str] = "timeout"


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


class Child:
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
                    f"{quoted(self._heard)}"
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


def quoted(line: bytes | bytearray) -> str:
    text = line[:800].decode("utf-8", "replace").strip()
    return repr(text) if len(text) <= 160 else f"{text[:160]!r}…"
