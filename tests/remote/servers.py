"""Servers for tests: one that speaks as much of S3 as Instar uses and fails when it is told to, and those from npm."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import hmac
import http.client
import re
import shutil
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import formatdate
from html import escape, unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from instar.files import cache_folder
from tests.missing import absent

PAGE = 3
"""Keys that a listing holds at a time: few, so that every listing in a test has several pages."""


class Answer(Exception):
    """What a server says instead of what it was asked for."""

    def __init__(self, status: int, code: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(code)
        self.status, self.headers = status, dict(headers or {})
        self.body = f"<Error><Code>{code}</Code><Message>so it is</Message></Error>".encode()


class Web:
    """A web server in this process. `answers` says what is at a path; `before` may raise an Answer for a request."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.before: Callable[[str, str], None] = lambda method, path: None
        self.after: Callable[[str, str], None] = lambda method, path: None
        web = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # an answer in one piece: two of them wait for each other
            disable_nagle_algorithm = True

            def respond(self) -> None:
                content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                web.requests.append((self.command, self.path, headers))
                try:
                    web.before(self.command, self.path)
                    status, more, body = web.answer(self.command, self.path, headers, content)
                    web.after(self.command, self.path)
                except Answer as answer:
                    status, more, body = answer.status, answer.headers, answer.body
                self.send_response(status)
                for name, value in more.items():
                    self.send_header(name, value)
                if "Content-Length" not in more:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = respond

            def log_message(self, format: str, *values: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def answer(
        self, method: str, path: str, headers: Mapping[str, str], content: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        raise Answer(404)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def counted(self, pattern: str) -> Counter[str]:
        """How often each method was used on paths that match."""
        return Counter(method for method, path, _ in self.requests if re.search(pattern, path))


class S3(Web):
    """Buckets in memory, of Amazon and of Google, who speaks the same but for conditions. `key` is who may
    ask; everybody where it is empty."""

    def __init__(self, *, key: str = "RIGHTKEY") -> None:
        self.objects: dict[str, bytes] = {}
        self.key, self._generation = key, 0
        self._generations: dict[str, str] = {}
        self._lock = threading.Lock()
        super().__init__()

    def answer(
        self, method: str, path: str, headers: Mapping[str, str], content: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        if self.key and f"Credential={self.key}/" not in headers.get("authorization", ""):
            raise Answer(403, "InvalidAccessKeyId")
        parts = urlsplit(path)
        key, query = unquote(parts.path).lstrip("/"), parse_qs(parts.query, keep_blank_values=True)
        with self._lock:
            if method == "GET" and "list-type" in query:
                return 200, {}, self._listing(key, query)
            if method == "POST" and "delete" in query:
                names = re.findall("<Key>(.*?)</Key>", content.decode())
                for name in names:
                    self.objects.pop(f"{key}/{unescape(name)}", None)
                deleted = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in names)
                return 200, {}, f"<DeleteResult>{deleted}</DeleteResult>".encode()
            if method == "DELETE":
                self.objects.pop(key, None)
                return 204, {}, b""
            if method == "PUT":
                return self._put(key, headers, content)
            if key not in self.objects:
                raise Answer(404, "NoSuchKey")
            stored = self.objects[key]
            return 200, {"Last-Modified": formatdate(usegmt=True), **self._state(key)}, stored

    def _state(self, key: str) -> dict[str, str]:
        return {"ETag": _tag(self.objects[key]), "x-goog-generation": self._generations.get(key, "1")}

    def _put(self, key: str, headers: Mapping[str, str], content: bytes) -> tuple[int, dict[str, str], bytes]:
        there = self.objects.get(key)
        if headers.get("if-none-match") == "*" and there is not None:
            raise Answer(412, "PreconditionFailed")
        wanted = headers.get("if-match")
        if wanted is not None and (there is None or wanted != _tag(there)):
            raise Answer(412, "PreconditionFailed")
        generation = headers.get("x-goog-if-generation-match")
        if generation is not None and generation != (self._generations.get(key, "1") if there is not None else "0"):
            raise Answer(412, "PreconditionFailed")
        self._generation += 1
        self.objects[key], self._generations[key] = content, str(self._generation)
        return 200, self._state(key), b""

    def _listing(self, bucket: str, query: Mapping[str, list[str]]) -> bytes:
        start = f"{bucket}/{query.get('prefix', [''])[0]}"
        after = query.get("continuation-token", [""])[0]
        keys = [key for key in sorted(self.objects) if key.startswith(start) and key > after]
        page, rest = keys[:PAGE], keys[PAGE:]
        entries = "".join(
            f"<Contents><Key>{escape(key.removeprefix(f'{bucket}/'))}</Key><Size>{len(self.objects[key])}</Size>"
            f"<LastModified>2024-01-01T00:00:00.000Z</LastModified><ETag>{escape(_tag(self.objects[key]))}</ETag>"
            "</Contents>"
            for key in page
        )
        more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if rest else ""
        return (
            f"<ListBucketResult><IsTruncated>{str(bool(rest)).lower()}</IsTruncated>{more}{entries}</ListBucketResult>"
        ).encode()


def _tag(content: bytes) -> str:
    return f'"{hashlib.md5(content).hexdigest()}"'


# --- from npm ----------------------------------------------------------------------------------------

AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The key that Microsoft publishes for its emulator."""
_PROGRAMS = cache_folder() / "tests"
_VERSIONS = {"s3rver": "3.7.1", "azurite": "3.35.0"}


def program(package: str, name: str) -> Path:
    """A program of a package from npm, installed once in the user's cache folder."""
    need = f"{package} from npm (npm install {package}@{_VERSIONS[package]}, which the tests do by themselves)"
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        absent("node and npm, for servers that speak the protocols of buckets")
    folder = _PROGRAMS / f"{package}-{_VERSIONS[package]}"
    file = folder / "node_modules" / ".bin" / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several test processes one installs it
        if not file.exists():
            command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder)]
            try:
                done = subprocess.run(
                    [*command, f"{package}@{_VERSIONS[package]}"], capture_output=True, text=True, timeout=600
                )
            except subprocess.TimeoutExpired:
                absent(need, "npm took more than ten minutes")
            if done.returncode or not file.exists():
                absent(need, done.stderr[-500:])
    return file


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@contextmanager
def started(command: list[str], port: int, folder: Path) -> Iterator[None]:
    """A server that answers on a port until the block ends."""
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        try:
            end = time.monotonic() + 600
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    if process.poll() is not None or time.monotonic() > end:
                        raise AssertionError((folder / "log").read_text("utf-8", "replace")) from None
                    time.sleep(0.05)
            yield
        finally:
            process.kill()
            process.wait()


def make_container(port: int, name: str) -> None:
    """A container in Azurite; obstore makes none."""
    account, date = "devstoreaccount1", formatdate(usegmt=True)
    dated = f"x-ms-date:{date}\nx-ms-version:2021-10-04"
    signed = "PUT" + "\n" * 12 + f"{dated}\n/{account}/{account}/{name}\nrestype:container"
    digest = hmac.new(base64.b64decode(AZURITE_KEY), signed.encode(), hashlib.sha256).digest()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    headers = dict(line.split(":", 1) for line in dated.splitlines())
    headers |= {"Authorization": f"SharedKey {account}:{base64.b64encode(digest).decode()}", "Content-Length": "0"}
    connection.request("PUT", f"/{account}/{name}?restype=container", headers=headers)
    assert connection.getresponse().status == 201
    connection.close()
