"""Serving the viewer on loopback."""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import uvicorn

from instar.remote import address_in
from instar.store import NoRun
from instar.viewer.app import application


def _say(line: str) -> None:
    print(line, flush=True)  # also for who reads the address from a pipe


def serve(
    folders: Sequence[str | Path],
    *,
    port: int = 0,
    browser: bool = True,
    dataset: str | Path | None = None,
    worded: Callable[[str], str] = str,
    read_only: bool = False,
    say: Callable[[str], object] = _say,
) -> None:
    """Show runs in the browser until Ctrl-C. Port 0 is any that is free; nothing outside this machine can connect. With
    `read_only` pairs cannot be marked."""
    for folder in folders:
        if not Path(folder).is_dir() and address_in(folder) is None:
            raise NoRun(f"{folder}: there is no such run folder")
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(("127.0.0.1", port))
    except OSError as error:
        bound.close()
        raise OSError(
            f"port {port} of 127.0.0.1 cannot be used ({error.strerror}); port 0 takes any that is free"
        ) from None
    with bound:
        port = bound.getsockname()[1]
        address = f"http://127.0.0.1:{port}/"
        config = uvicorn.Config(
            application(folders, port=port, dataset=dataset, worded=worded, read_only=read_only),
            log_level="error",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        bound.listen(128)  # from here on a browser that is faster than the server waits for it
        say(f"{address}  (Ctrl-C ends it)")
        if browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[bound])
        say("viewer stopped")
