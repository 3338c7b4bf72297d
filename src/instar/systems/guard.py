"""Stands between a process of Instar's and what it starts: python -I -S guard.py OWNER PROGRAM ARGUMENTS…

It is run by its path and imports nothing of Instar, so that it is small and there at once. It does three things that
its owner cannot, which may be killed at any moment:

* What the program has started ends with it, and all of it ends with the owner. On Linux also what went into a session
  of its own: whoever loses its parent is given to the guard. The program itself ends if the guard is killed.
* What the program writes to its stderr is kept in the guard's stderr, a file, which never grows beyond a little.
* A program that a signal killed is reported as shells report it: 128 + the signal's number.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time
from contextlib import suppress

KEPT = 64 << 10
"""Bytes of the program's last words that are kept at least; the file is at most twice as long."""
LOOK = 0.2
"""Seconds between looks whether the owner is still there."""
PATIENCE = 2.0
"""Seconds after which what does not die, though it was killed, is left alone."""
_DEATH_SIGNAL, _ADOPT = 1, 36  # PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER
LINUX = sys.platform == "linux"


def main(owner: int, argv: list[str]) -> int:
    """Start the program, and return its exit status when it and all that it started are gone."""
    if LINUX:
        _control(_ADOPT, 1)
    words, writer = os.pipe()
    wake = _wake_up()
    program = _started(argv, writer)
    os.close(writer)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    log, pipes = _Log(), select.poll()
    for pipe in (words, wake):
        pipes.register(pipe, select.POLLIN)
    status = None
    while status is None and not _ended and os.getppid() == owner:
        for pipe, _ in pipes.poll(LOOK * 1000):
            content = os.read(pipe, 1 << 16)
            if pipe == words and content:
                log.write(content)
            elif not content:
                pipes.unregister(pipe)
        status = _reaped(program)
    status = _killed(program, status)
    os.set_blocking(words, False)
    try:
        while content := os.read(words, 1 << 16):
            log.write(content)
    except BlockingIOError:  # something lives on that could not be killed
        pass
    return status if status >= 0 else 128 - status


_ended: list[int] = []
"""The signals that asked to end."""


def _control(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value)


def _wake_up() -> int:
    """A pipe that has something to read when a signal came: a program's end is noticed at once."""
    wake, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: _ended.append(number))
    return wake


def _started(argv: list[str], stderr: int) -> int:
    guard, interrupt = os.getpid(), signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who presses Ctrl-C means the owner, which ends us
    program = os.fork()
    if program:
        return program
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN if interrupt is signal.SIG_IGN else signal.SIG_DFL)
        if LINUX:
            _control(_DEATH_SIGNAL, signal.SIGKILL)
        os.dup2(stderr, 2)
        if os.getppid() == guard:
            os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode(errors="surrogateescape"))
    finally:
        os._exit(127)


class _Log:
    """Standard error, a file that is appended to, cut to its end whenever it has grown."""

    def __init__(self) -> None:
        self.end = b""
        self.size = 0

    def write(self, content: bytes) -> None:
        self.end = (self.end + content)[-KEPT:]
        self.size += len(content)
        try:
            if self.size > 2 * KEPT:
                os.ftruncate(2, 0)
                self.size, content = len(self.end), self.end
            os.write(2, content)
        except OSError:  # a full disk costs the words, and nothing else
            pass


def _reaped(program: int) -> int | None:
    """Take leave of what has ended; the program's exit status, where it is among them."""
    status = None
    while True:
        try:
            pid, end = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if not pid:
            return status
        if pid == program:
            status = os.waitstatus_to_exitcode(end)


def _killed(program: int, status: int | None) -> int:
    """Kill what is there until nothing is left; how the program ended."""
    deadline = time.monotonic() + PATIENCE
    while alive := _descendants() or [program] * (status is None):
        for pid in alive:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)
        end = _reaped(program)
        status = status if end is None else end
        if time.monotonic() > deadline:
            break
    if not LINUX and os.getpgrp() == os.getpid() and status == -signal.SIGKILL:
        os.killpg(0, signal.SIGKILL)
    return -signal.SIGKILL if status is None else status


def _descendants() -> list[int]:
    """Everything below this process, as far as the system says it."""
    if not os.path.isdir("/proc/self"):  # noqa: PTH112
        return []
    parents = {}
    for name in os.listdir("/proc"):  # noqa: PTH208  (pathlib takes longer to import than all of this takes)
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue
    below = [os.getpid()]
    for pid in below:  # grows meanwhile
        below += [child for child, parent in parents.items() if parent == pid]
    return below[1:]


if __name__ == "__main__":
    os._exit(main(int(sys.argv[1]), sys.argv[2:]))
