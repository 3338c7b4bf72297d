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

from instar.secrets import without_secrets

_MOST_BYTES = 256 << 20
"""The longest line that is read: a program that never ends its line must not fill the memory."""
_QUOTED_BYTES = 32 << 10
"""As much is looked through for secrets before a few words of it are quoted: more than the longest secret has."""
_GRACE = 2.0
_LOOK = 0.5
"""Seconds between looks whether a silent program is still there: a process it left behind may hold its stdout open."""


class Crashed(RuntimeError):
    """The program ended instead of answering; the message says how, and its last words on stderr."""

    status: ClassVar[str] = "crashed"


class TimedOut(RuntimeError):
    """The program did not answer in time, and was killed."""

    status: ClassVar[str] = "timeout"


_GUARD = str(Path(__file__).with_name("guard.py"))


def guarded(argv: Sequence[str]) -> list[str]:
    """The command that starts a program under guard: nothing that it starts outlives it, nor it this process."""
    return [sys.executable, "-I", "-S", _GUARD, str(os.getpid()), *argv]


def end_guarded(process: subprocess.Popen[bytes]) -> None:
    """End a guarded program, with all that it has started."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(2 * _GRACE)  # the guard kills at once; it gives up what cannot be killed after some patience
    if sys.platform != "linux":  # where a group is all the hold there is
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def ending(code: int) -> str:
    """How a guarded program ended: the name of the signal that killed it, or `exit status 3`."""
    number = -code if code < 0 else code - 128
    return signal.Signals(number).name if number in {one.value for one in signal.Signals} else f"exit status {code}"


def last_words(log: BinaryIO) -> str:
    """The last lines of what a program wrote to stderr: why it failed is said nowhere else."""
    descriptor = log.fileno()
    size = os.fstat(descriptor).st_size
    end = os.pread(descriptor, _QUOTED_BYTES, max(0, size - _QUOTED_BYTES)).decode("utf-8", "replace")
    lines = without_secrets(end).splitlines()  # whole: half of a secret, or a line of one, is not recognised any more
    words = " / ".join([line.strip() for line in lines if line.strip()][-3:])[-400:]
    return f": {words}" if words else ""


def scratch() -> BinaryIO:
    """A file without a name to append to: it can be cut while somebody writes."""
    descriptor, path = tempfile.mkstemp(prefix="instar-")
    os.close(descriptor)
    file = Path(path).open("a+b", buffering=0)  # noqa: SIM115  (lives as long as the program)
    Path(path).unlink()
    return file


class Child:
    """A started program. Its pipes are its own: what an earlier one says late is never heard."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._log = scratch()
        self._process = subprocess.Popen(
            guarded(argv),
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
        end_guarded(self._process)
        self.close()

    def exchange(self, request: bytes, seconds: float, what: str) -> bytes:
        """Write a line (nothing, to hear the greeting) and return the next line heard."""
        deadline = time.monotonic() + seconds
        if request:
            self._refuse_unasked()
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
                    raise Crashed(f"the program {self._end()} instead of its {what}{last_words(self._log)}")
                if time.monotonic() > deadline:
                    raise TimedOut(
                        f"the program was killed after {seconds:g} s without its {what}{last_words(self._log)}"
                    )
        return line

    def _refuse_unasked(self) -> None:
        """A line that is there before the question is no answer to it, whatever id it has."""
        self._read()
        if (line := self._line()) is not None:
            raise ValueError(
                f"the program wrote {quoted(line)} to stdout before it was asked; stdout is for answers alone, one to "
                "each request, print logs to stderr"
            )

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
        how = ending(code)
        return f"ended with {how}" if how.startswith("exit") else f"was killed by {how}"


def _close(process: subprocess.Popen[bytes], log: BinaryIO, owner: int) -> None:
    if os.getpid() != owner:  # a forked copy of its owner must not end it
        return
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
    end_guarded(process)
    process.stdout.close()
    log.close()


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
    """The beginning of what a program wrote, without secrets."""
    text = without_secrets(line[:_QUOTED_BYTES].decode("utf-8", "replace")).strip()
    return repr(text) if len(text) <= 160 else f"{text[:160]!r}…"
