"""Nothing that a system starts outlives it, and what it prints fills no disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from instar.systems.child import end_guarded, ending, guarded, last_words, scratch
from tests.clocks import ENOUGH, wait_for
from tests.systems.test_process import gone

PYTHON = [sys.executable, "-I", "-S", "-c"]
DAEMON = """
    import os, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            open(r"{pid}.new", "w").write(str(os.getpid()))
            os.rename(r"{pid}.new", r"{pid}")
            time.sleep(600)
        os._exit(0)
    os.wait()
    while not os.path.exists(r"{pid}"): time.sleep(0.01)
    {then}
"""
"""A program that leaves a daemon behind: a process of another session, without a parent."""


def daemon(pid: Path, then: str) -> list[str]:
    return [*PYTHON, textwrap.dedent(DAEMON).format(pid=pid, then=then)]


def number_in(path: Path) -> int:
    wait_for(path.exists)
    return int(path.read_text())


def test_a_daemon_ends_with_the_program_that_started_it(tmp_path: Path) -> None:
    process = subprocess.Popen(guarded(daemon(tmp_path / "pid", "os._exit(3)")))
    assert ending(process.wait(ENOUGH)) == "exit status 3"
    assert gone(number_in(tmp_path / "pid"))


def test_a_daemon_ends_when_the_program_is_ended(tmp_path: Path) -> None:
    process = subprocess.Popen(guarded(daemon(tmp_path / "pid", "time.sleep(600)")))
    left = number_in(tmp_path / "pid")
    assert not gone(left, within=0)
    end_guarded(process)
    assert gone(left)


def test_a_daemon_ends_when_the_owner_is_killed(tmp_path: Path) -> None:
    guard = guarded(daemon(tmp_path / "pid", "time.sleep(600)"))
    code = f"import os, subprocess, time; g = {guard!r}; g[4] = str(os.getpid()); subprocess.Popen(g); time.sleep(600)"
    owner = subprocess.Popen([*PYTHON, code])
    left = number_in(tmp_path / "pid")
    owner.kill()
    owner.wait()
    assert gone(left)


def test_the_program_ends_when_its_guard_is_killed() -> None:
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    guard = subprocess.Popen(guarded([*PYTHON, code]), stdout=subprocess.PIPE)
    assert guard.stdout is not None
    program = int(guard.stdout.readline())
    guard.kill()
    guard.wait()
    assert gone(program)
    guard.stdout.close()


def test_megabytes_of_words_are_kept_as_their_end() -> None:
    log = scratch()
    code = "import os\nfor n in range(300): os.write(2, b'chatter ' * 4096 + b'\\n')\nos.write(2, b'the end\\n')"
    process = subprocess.Popen(guarded([*PYTHON, code]), stderr=log)
    largest = 0
    while process.poll() is None:
        largest = max(largest, os.fstat(log.fileno()).st_size)
        time.sleep(0.001)
    assert largest <= 200 << 10
    assert last_words(log).endswith("the end")
    log.close()


@pytest.mark.parametrize(
    ("deed", "end"),
    [("os._exit(4)", "exit status 4"), ("os.kill(os.getpid(), 11)", "SIGSEGV"), ("1 / 0", "exit status 1")],
)
def test_how_a_program_ended(deed: str, end: str) -> None:
    process = subprocess.Popen(guarded([*PYTHON, f"import os; {deed}"]), stderr=subprocess.DEVNULL)
    assert ending(process.wait(ENOUGH)) == end


def test_ctrl_c_is_for_the_owner() -> None:
    process = subprocess.Popen(
        guarded([*PYTHON, "print(flush=True); input()"]), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(b"\n", timeout=ENOUGH)
    assert process.returncode == 0
