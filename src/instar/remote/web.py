"""Objects on web servers and at Hugging Face, read with nothing but Python's own library."""

from __future__ import annotations

import json
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO

from instar.remote.address import refuse_login
from instar.remote.errors import Missing, TooLarge, Unreachable
from instar.secrets import keep_secret, plain_address

TRIES = 5
"""How often an object is asked for that a server cannot give just now."""
WAIT, LONGEST_WAIT = 0.25, 30.0
"""Seconds before the second try, twice as many before each one after it; and as many as a server can ask for."""
PATIENCE = 60.0
"""Seconds in which a server must send something."""
MOST_PAGES, MOST_LISTED = 1_000, 1 << 29
"""Pages (of 1,000 files at a hub) and bytes that a list may have."""
_LATER = (408, 425, 429, 500, 502, 503, 504)
_SIGNS = "/%:?&=#+,;@!$'()*~[]"
_CHUNK = 1 << 20
_HF = re.compile(r"hf://(datasets|spaces|models)/([^/@]+/[^/@]+)(?:@([^/]+))?(?:/(.*))?")


class _Later(Exception):
    """A try that another one may mend: why, and how many seconds the server asks us to wait."""

    def __init__(self, why: str, wait: float = 0.0) -> None:
        super().__init__(why)
        self.wait = wait


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follow redirects to https, and from http to http. A token goes to no other host than the one that it is for."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        before, after = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(newurl)
        if after.scheme not in ("https", before.scheme):
            raise Unreachable(
                f"{plain_address(req.full_url)}: the server redirects to {after.scheme}:// at {after.hostname}; only "
                "redirects to https are followed"
            )
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None and after[:2] != before[:2]:
            request.remove_header("Authorization")
        return request


_opener = urllib.request.build_opener(_Redirects)


def web_bytes(address: str, most: int) -> bytes:
    """The content of an `https://` or `hf://` address, of at most so many bytes."""
    return _got(*_request_of(address), shown=plain_address(address), most=most)[0]


def hub_names(address: str) -> Iterator[str]:
    """The names of the files below an `hf://` address, relative to it, sorted."""
    kind, repository, revision, path = _hub_parts(address)
    folder = f"/{urllib.parse.quote(path)}" if path else ""
    url = (
        f"{_endpoint()}/api/{kind}/{repository}/tree/{urllib.parse.quote(revision, safe='')}{folder}"
        "?recursive=true&limit=1000"
    )
    names: list[str] = []
    for content in _hub_pages(url, address):
        try:
            names += [str(entry["path"]) for entry in json.loads(content) if entry["type"] == "file"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Unreachable(f"{address}: the list of its files is none that Instar reads") from None
    start = f"{path}/" if path else ""
    yield from sorted(name.removeprefix(start) for name in names if name.startswith(start))


def _hub_pages(url: str, address: str) -> Iterator[bytes]:
    """Yield the pages of a list. Raises Unreachable if it is too long, or continues at another host."""
    left = MOST_LISTED
    try:
        for _ in range(MOST_PAGES):
            content, headers = _got(url, _hub_headers(), shown=address, most=left)
            yield content
            left -= len(content)
            following = re.search(r'<([^>]+)>;\s*rel="next"', headers.get("Link") or "")
            if following is None:
                return
            url = following[1]
            if not url.startswith(f"{_endpoint()}/"):
                raise Unreachable(f"{address}: the list of its files goes on at another host")
    except TooLarge:
        pass
    raise Unreachable(
        f"{address}: the list of its files is too long: at most {MOST_PAGES:,} pages and {MOST_LISTED >> 20:,} MB are "
        "read; give a folder in it"
    )


def _request_of(address: str) -> tuple[str, dict[str, str]]:
    refuse_login(address)
    if not address.startswith("hf://"):
        scheme, _, rest = address.partition("://")
        # signs that no address may hold are escaped, what is escaped stays
        return f"{scheme}://{urllib.parse.quote(rest, safe=_SIGNS)}", {}
    kind, repository, revision, path = _hub_parts(address)
    place = repository if kind == "models" else f"{kind}/{repository}"
    return (
        f"{_endpoint()}/{place}/resolve/{urllib.parse.quote(revision, safe='')}/{urllib.parse.quote(path)}",
        _hub_headers(),
    )


def _hub_parts(address: str) -> tuple[str, str, str, str]:
    """Kind of repository, its name, revision, path in it."""
    refuse_login(address)
    parts = _HF.fullmatch(address)
    if parts is None:
        raise Unreachable(f"{address}: an address at Hugging Face is hf://datasets/OWNER/NAME[@REVISION]/PATH")
    return parts[1], parts[2], parts[3] or "main", (parts[4] or "").strip("/")


def _endpoint() -> str:
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def _hub_headers() -> dict[str, str]:
    """The user's token, from where Hugging Face's own tools have it."""
    token = os.environ.get("HF_TOKEN", "").strip()
    if not token:
        home = os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface"
        file = Path(os.environ.get("HF_TOKEN_PATH") or Path(home) / "token")
        token = file.read_text("utf-8").strip() if file.is_file() else ""
        if token:
            keep_secret("HF_TOKEN", token)
    return {"Authorization": f"Bearer {token}"} if token else {}


def _got(url: str, headers: dict[str, str], *, shown: str, most: int) -> tuple[bytes, HTTPMessage]:
    """Content and headers of an address that is called `shown`; asked for again where another time may be better."""
    for attempt in range(TRIES):
        try:
            return _once(url, headers, shown, most)
        except _Later as failure:
            if attempt == TRIES - 1:
                raise Unreachable(f"{shown}: {failure}, {TRIES} times") from None
            time.sleep(min(LONGEST_WAIT, max(failure.wait, WAIT * 2**attempt)))
    raise AssertionError("unreachable")


def _once(url: str, headers: dict[str, str], shown: str, most: int) -> tuple[bytes, HTTPMessage]:
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "instar", **headers})
        with _opener.open(request, timeout=PATIENCE) as answer:
            length = answer.headers.get("Content-Length") or ""
            size = int(length) if length.isdecimal() else None
            if size is not None and size > most:
                raise TooLarge(f"{shown}: {size:,} bytes")
            content = bytearray()
            while len(content) <= most and (chunk := answer.read(min(_CHUNK, most + 1 - len(content)))):
                content += chunk
            if len(content) > most:
                raise TooLarge(f"{shown}: more than {most:,} bytes")
            if size is not None and len(content) != size:
                raise _Later(f"only {len(content):,} of {size:,} bytes came")
            return bytes(content), answer.headers
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in (404, 410):
            raise Missing(f"{shown}: there is no such object (HTTP {error.code})") from None
        if error.code in _LATER:
            wait = error.headers.get("Retry-After") or ""
            raise _Later(f"the server answered HTTP {error.code}", float(wait) if wait.isdecimal() else 0.0) from None
        reason = "you may not read it" if error.code in (401, 403) else "the server refused it"
        raise Unreachable(f"{shown}: {reason} (HTTP {error.code})") from None
    except urllib.error.URLError as error:
        reason = getattr(error.reason, "strerror", None) or type(error.reason).__name__
        raise _Later(f"the server could not be reached ({reason})") from None
    except (TimeoutError, ConnectionError, HTTPException) as error:
        raise _Later(f"the connection broke ({type(error).__name__})") from None
    except ValueError as error:
        raise error if isinstance(error, OSError) else Unreachable(f"{shown}: no address that can be read") from None
