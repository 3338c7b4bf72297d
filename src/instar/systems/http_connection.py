"""Connections whose whole exchange ends in time, and which follow no redirect."""

from __future__ import annotations

import io
import ssl
import time
import urllib.request
from collections.abc import Callable
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from socket import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class _Bounded(io.RawIOBase):
    """A socket's bytes until a moment; a socket's own timeout begins again with every byte that drips in."""

    def __init__(self, sock: socket, deadline: float) -> None:
        self._sock, self._deadline = sock, deadline
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        count: int | None = self._raw.readinto(buffer)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Heard(HTTPResponse):
    def __init__(self, sock: socket, deadline: float, *, debuglevel: int = 0, method: str | None = None) -> None:
        super().__init__(sock, debuglevel, method)
        self.fp.close()
        self.fp = io.BufferedReader(_Bounded(sock, deadline))


def _bounded(kind: Callable[..., HTTPConnection]) -> Callable[..., HTTPConnection]:
    """Connections whose whole exchange ends in time, not only each read of it."""

    def connection(host: str, *, timeout: float, **more: object) -> HTTPConnection:
        made, deadline = kind(host, timeout=timeout, **more), time.monotonic() + timeout
        made.response_class = lambda sock, **more: _Heard(sock, deadline, **more)  # type: ignore[assignment]
        return made

    return connection


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(_bounded(HTTPConnection), req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self) -> None:
        super().__init__()
        self._verifying = ssl.create_default_context()

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(_bounded(HTTPSConnection), req, context=self._verifying)


def opener() -> urllib.request.OpenerDirector:
    """Without what follows redirects, where the headers' secrets would go along, and without files and FTP."""
    opener = urllib.request.OpenerDirector()
    for handler in (urllib.request.ProxyHandler(), _Http(), _Https()):
        opener.add_handler(handler)
    return opener
