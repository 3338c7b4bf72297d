"""Patience with a system that does not answer: a word on stderr after a while, and an end."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 10.0
"""Seconds after which it is said what is waited for."""
GRACE = 5.0
"""Seconds in which code of Python's ends after it was interrupted; other code may never notice."""


class Unanswered(BaseException):
    """A question that was not answered in time. No system that catches every `Exception` may catch it."""


@contextmanager
def watched(what: str, timeout: float | None) -> Iterator[None]:
    """Say what takes long, such as "question 3, a.jpg, is not answered", and raise Unanswered after `timeout` seconds.

    Whoever is not interrupted by that hangs in code that is not Python's: then the process ends, with a word. A thread
    that is not the main one, and Windows, have no such interruption; there it is only said.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGALRM"):
        timeout = None
    done = threading.Event()

    def interrupt(*_: object) -> None:
        if not done.is_set():
            raise Unanswered(what)

    watch = threading.Thread(target=_watch, args=(what, timeout, done), daemon=True)
    usual = None if timeout is None else signal.signal(signal.SIGALRM, interrupt)
    watch.start()
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(what) from None
    finally:
        done.set()
        watch.join()  # it interrupts nobody after this
        if timeout is not None:
            signal.signal(signal.SIGALRM, usual)


def _watch(what: str, timeout: float | None, done: threading.Event) -> None:
    begin = time.monotonic()
    if timeout is None or timeout > PATIENCE:
        if done.wait(PATIENCE):
            return
        _say(f"{what} after {PATIENCE:g} s; Ctrl-C stops")
    if done.wait(None if timeout is None else max(0.0, begin + timeout - time.monotonic())):
        return
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)
    if not done.wait(GRACE):
        _say(f"{what} after {timeout:g} s, and what hangs there cannot be interrupted: the check ends without findings")
        os._exit(1)


def _say(words: str) -> None:
    print(f"instar: {words}", file=sys.stderr, flush=True)
