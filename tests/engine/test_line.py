"""Between a coordinator and its workers: whole messages, or a clear word that something is none."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from instar.engine.line import Garbage, Line
from instar.engine.messages import WorkerInfo
from instar.engine.versions import Changed, refuse_changed, refuse_other
from instar.store import ProviderInfo, SystemInfo

Ends = tuple[Line, Line, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """Both ends of a line, and the bare socket of the one that speaks."""
    here, there = socket.socketpair()
    yield Line(here), Line(there), there
    here.close()
    there.close()


def test_messages_arrive_whole_however_they_are_cut(ends: Ends) -> None:
    here, there, _ = ends
    large = os.urandom(100_000)
    for message in ([1], [large], [2]):
        there.send(message)
    heard: list[object] = []
    while len(heard) < 3:
        heard += here.arrived()
    assert heard == [[1], [large], [2]]
    assert here.arrived() == []


def test_half_a_message_makes_nobody_wait(ends: Ends) -> None:
    """A worker that is stopped while it sends would stop the coordinator, too, and with it all time limits."""
    here, there, bare = ends
    there.send([1])
    whole = here._socket.recv(1 << 16)
    bare.sendall(whole[:-1])
    assert here.arrived() == []
    bare.sendall(whole[-1:])
    assert here.arrived() == [[1]]


@pytest.mark.parametrize(
    "garbage",
    [b"Loading the weights: 50 %\n" * 2, b"\0" * 64, b"\xff" * 64, b"ins1" + b"\xff" * 60],
    ids=["words", "zeros", "ones", "a length beyond all"],
)
def test_what_is_no_message_is_garbage_and_what_came_before_counts(garbage: bytes, ends: Ends) -> None:
    here, there, bare = ends
    there.send(["an answer"])
    bare.sendall(garbage)
    with pytest.raises(Garbage) as caught:
        here.arrived()
    assert caught.value.before == [["an answer"]]


def test_a_message_that_something_was_written_into_is_garbage(ends: Ends) -> None:
    here, there, bare = ends
    there.send(["an answer", 12345])
    content = here._socket.recv(1 << 16)
    bare.sendall(content.replace(b"answer", b"ANSWER"))
    with pytest.raises(Garbage):
        here.arrived()


def test_the_end_is_heard_after_what_was_said(ends: Ends) -> None:
    here, there, bare = ends
    there.send([1])
    bare.close()
    assert here.arrived() == [[1]]
    with pytest.raises(EOFError):
        here.arrived()


SYSTEM = SystemInfo("my:system", "poses", "1", deterministic=True, seedable=True, takes="image")
FIRST = WorkerInfo(SYSTEM, {"zones": ProviderInfo("my:zones", "1")}, 1, {"/my/system.py": "a", "/my/zones.py": "b"})
OTHERS = {
    "the system": (
        SystemInfo("my:system", "poses", "2", True, True, "image"),
        "1",
        {},
        "my:system is not what the run",
    ),
    "whether it is deterministic": (SystemInfo("my:system", "poses", "1", False, True, "image"), "1", {}, "my:system"),
    "a provider": (SYSTEM, "2", {}, "my:zones is not what the run was begun with (fingerprint 1, now 2)"),
    "a file": (SYSTEM, "1", {"/my/zones.py": "c"}, "/my/zones.py changed while the run was under way"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_worker_that_loaded_something_else_ends_the_run_and_says_what_changed(what: str) -> None:
    system, zones, files, words = OTHERS[what]
    with pytest.raises(Changed) as caught:
        refuse_other(FIRST, WorkerInfo(system, {"zones": ProviderInfo("my:zones", zones)}, 1, files))
    assert words in str(caught.value)
    assert "put the earlier version back" in str(caught.value) and "`out`" in str(caught.value)


def test_a_worker_that_loaded_the_same_is_welcome() -> None:
    refuse_other(FIRST, WorkerInfo(SYSTEM, FIRST.providers, 1, {**FIRST.files, "/my/helper.py": "d"}))
    refuse_changed("my:system", FIRST.files, {"/my/late.py": "e"})
