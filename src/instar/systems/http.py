"""A service spoken to over HTTP as a system: `http(captions.toml)`.

The file is a template of the request, described in docs/http.md. Secrets come from environment variables alone: the
template names them, and their values go into the request's headers and nowhere else.
"""

from __future__ import annotations

import email.utils
import json
import random
import re
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http.client import HTTPException, HTTPResponse
from typing import Any, ClassVar

import cv2

from instar.image import Image
from instar.json_values import whole_number
from instar.outputs import Output, json_columns, output_kind
from instar.secrets import Secrets, without_secrets
from instar.spelling import Parameter
from instar.systems.http_connection import opener
from instar.systems.http_template import FILE, PLACEHOLDER, Template, headers_and_secrets, read_template, strings
from instar.systems.identity import Identity
from instar.systems.system import System, SystemFamily
from instar.warp import Size

_SHOWN = 200
"""Characters of an answer that an error quotes."""
_ERROR_BYTES = 1 << 16
_LATER = (408, 425, 429)
"""Refusals that mean: not now. Others will not be better another time."""


class TimedOut(RuntimeError):
    """The service did not answer in time."""

    status: ClassVar[str] = "timeout"


class _Failed(Exception):
    """A try that another one may mend: how long the service asks us to wait, and whether it was too slow."""

    def __init__(self, why: str, *, wait: float = 0.0, slow: bool = False) -> None:
        super().__init__(why)
        self.wait, self.slow = wait, slow


# --- the request -----------------------------------------------------------------------------------


def _encoded(image: Image, options: Mapping[str, Any]) -> bytes:
    flags = [cv2.IMWRITE_JPEG_QUALITY, options["quality"]] if options["format"] == "jpeg" else []
    done, data = cv2.imencode("." + options["format"], image.pixels[..., ::-1], flags)
    if not done:
        raise ValueError(f"the image cannot be written as {options['format']}")
    return data.tobytes()


def _filled(value: object, facts: Mapping[str, str | int]) -> object:
    """A JSON value with its placeholders replaced; a text that is nothing but `{width}` becomes the number."""
    if isinstance(value, dict):
        return {key: _filled(one, facts) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, facts) for one in value]
    if not isinstance(value, str):
        return value
    whole = PLACEHOLDER.fullmatch(value)
    if whole and whole[1] in facts:
        return facts[whole[1]]
    return PLACEHOLDER.sub(lambda place: str(facts.get(place[1], place[0])), value)


def _request(template: Template, image: Image) -> tuple[bytes, str]:
    """The body, and its type."""
    data, mime = _encoded(image, template.image), f"image/{template.image['format']}"
    if template.keys["raw"]:
        return data, mime
    coded = b64encode(data).decode()
    facts: dict[str, str | int] = {
        "width": image.size[0],
        "height": image.size[1],
        "image_base64": coded,
        "image_data_url": f"data:{mime};base64,{coded}",
    }
    if not template.multipart:
        return json.dumps(_filled(template.body, facts)).encode(), "application/json"
    boundary = f"instar-{random.getrandbits(128):032x}"
    parts = []
    for field, text in template.multipart.items():
        named = f'Content-Disposition: form-data; name="{urllib.parse.quote(field, safe=" ")}"'
        if text == FILE:
            head = f'{named}; filename="image.{template.image["format"]}"\r\nContent-Type: {mime}'
            content = data
        else:
            head, content = named, str(_filled(text, facts)).encode()
        parts.append(f"--{boundary}\r\n{head}\r\n\r\n".encode() + content + b"\r\n")
    return b"".join(parts) + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


# --- the answer ------------------------------------------------------------------------------------


class _Secrets(Secrets):
    """The secrets in the headers; a service may repeat what it was sent."""

    def scrubbed(self, text: str) -> str:
        return without_secrets(super().scrubbed(text))  # a service on this machine may know the environment's, too

    def quoted(self, data: bytes) -> str:
        return repr(self.cut(" ".join(self.scrubbed(data.decode("utf-8", "replace")).split())))

    def cut(self, text: str) -> str:
        """Its beginning. Half of a secret would not be found any more, so that they go first."""
        clean = self.scrubbed(text)
        return clean if len(clean) <= _SHOWN else f"{clean[:_SHOWN]}…"

    def check(self, text: str) -> None:
        """A service that repeats what it was sent must not put a secret into a run."""
        if (variable := self.held_in(text)) is not None:
            raise ValueError(f"the answer holds the value of {variable}")


def _at(value: object, keys: Sequence[str], before: tuple[str, ...] = ()) -> object:
    """What lies in a JSON value at a path: names of fields, places in lists from 0, and `*` for each of a list."""
    if not keys:
        return value
    key, rest = keys[0], keys[1:]
    if isinstance(value, list) and key == "*":
        return [_at(one, rest, (*before, str(number))) for number, one in enumerate(value)]
    if isinstance(value, list) and key.isdecimal() and int(key) < len(value):
        return _at(value[int(key)], rest, (*before, key))
    if isinstance(value, dict) and key in value:
        return _at(value[key], rest, (*before, key))
    has = (
        f"it has {', '.join(map(str, list(value)[:20])) or 'no fields'}"
        if isinstance(value, dict)
        else f"it is a list of {len(value)}"
        if isinstance(value, list)
        else "it is neither an object nor a list"
    )
    raise ValueError(f"there is no {key!r} in {'.'.join(before) or 'the answer'}: {has}")


def _output(template: Template, content: object, secrets: _Secrets, frame: Size) -> Output:
    kind = output_kind(template.keys["kind"])
    fields = {field: _at(content, path.split(".")) for field, path in template.answer.items()}
    secrets.check("\n".join(strings(fields, names=True)))
    try:
        return kind.from_json(fields, frame)
    except ValueError:
        # A message quotes the beginning of a value, where half of a secret would not be recognised any more.
        try:
            kind.from_json({field: secrets.without(value) for field, value in fields.items()}, frame)
        except ValueError as error:
            raise ValueError(f"{error} ({_places(template)})") from None
        raise ValueError(f"the answer holds a secret, and no {kind.kind}") from None


def _places(template: Template) -> str:
    """Where the template says that things are, in words."""
    columns = json_columns(template.keys["kind"])
    return ", ".join(f"{columns[field]} is at {path}" for field, path in template.answer.items())


# --- the system ------------------------------------------------------------------------------------


class _Service:
    """A service that is asked again where that may help, and not more often than it allows."""

    def __init__(self, template: Template, headers: Mapping[str, str], secrets: _Secrets) -> None:
        self._template, self._headers, self._secrets = template, headers, secrets
        self._opener = opener()
        keys = template.keys
        self._apart = max(
            (span / keys[rate] for rate, span in (("per_second", 1), ("per_minute", 60)) if keys[rate] is not None),
            default=0.0,
        )
        self._next = 0.0
        self._lock = threading.Lock()

    def predict(self, inputs: Sequence[Image], seeds: Sequence[int]) -> list[Output]:
        return [self._one(image) for image in inputs]

    def _one(self, image: Image) -> Output:
        body, mime = _request(self._template, image)
        data = self._response(body, mime)
        try:
            return _output(self._template, _parsed(data), self._secrets, image.size)
        except (ValueError, RecursionError, OverflowError) as error:
            raise ValueError(
                f"{self._secrets.cut(str(error))}; the service answered {self._secrets.quoted(data)}"
            ) from None

    def _response(self, body: bytes, mime: str) -> bytes:
        keys, begun, tries, paused = self._template.keys, time.monotonic(), 0, 0.0
        while True:
            paused += self._paced()
            # a sleep may take longer than it was to
            left = max(0.001, keys["patience"] - (time.monotonic() - begun - paused))
            try:
                return self._tried(body, mime, min(keys["timeout"], left))
            except _Failed as error:
                failed = error
            tries += 1
            wait = max(failed.wait, keys["backoff"] * 2 ** (tries - 1) * random.uniform(0.5, 1))
            took = time.monotonic() - begun - paused
            if tries > keys["retries"] or took + wait >= keys["patience"]:
                asks = f", and asks to wait {failed.wait:g} s" if failed.wait else ""
                why = f"no answer after {tries} {'try' if tries == 1 else 'tries'} in {took:.1f} s; {failed}{asks}"
                raise (TimedOut if failed.slow else RuntimeError)(self._secrets.scrubbed(why)) from None
            time.sleep(wait)

    def _paced(self) -> float:
        """Wait for our turn; how long that was."""
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next)
            self._next = turn + self._apart
        time.sleep(turn - now)
        return turn - now

    def _tried(self, body: bytes, mime: str, seconds: float) -> bytes:
        keys = self._template.keys
        headers = {"Accept": "application/json", "Content-Type": mime, "User-Agent": "instar", **self._headers}
        request = urllib.request.Request(keys["url"], body, headers, method=keys["method"])
        try:
            with self._opener.open(request, timeout=seconds) as response:
                return self._heard(response)
        except (OSError, HTTPException) as error:
            why = error.reason if isinstance(error, urllib.error.URLError) else error
            if isinstance(why, TimeoutError):
                raise _Failed(f"it did not answer within {seconds:g} s", slow=True) from None
            reason = self._secrets.cut(f"{type(why).__name__}: {why}")
            if isinstance(why, ssl.SSLCertVerificationError):
                raise RuntimeError(f"the service's certificate cannot be trusted: {reason}") from None
            raise _Failed(f"the connection failed: {reason}") from None

    def _heard(self, response: HTTPResponse) -> bytes:
        status, most = response.status, self._template.keys["most_bytes"]
        if 200 <= status < 300:
            data = response.read(most + 1) if (response.length or 0) <= most else b""
            if len(data) > most or (response.length or 0) > most:
                raise RuntimeError(f"the answer is longer than most_bytes = {most}")
            if response.length:
                raise _Failed(f"the answer broke off {response.length} bytes before its end")
            return data
        message = f"the service answered {status} {response.reason}"
        if 300 <= status < 400:
            to = self._secrets.quoted(response.headers.get("Location", "").encode())
            raise RuntimeError(
                f"{message}, a redirect to {to}; it is not followed, as the headers would go along: if "
                "that is where the service is, write it as the url"
            )
        with suppress(OSError, HTTPException):  # why it refuses is not worth another try
            message += f": {self._secrets.quoted(response.read(_ERROR_BYTES))}"
        if status in _LATER or status >= 500:
            raise _Failed(message, wait=_wait(response.headers.get("Retry-After")))
        raise RuntimeError(self._secrets.scrubbed(message))


def _parsed(data: bytes) -> object:
    try:
        return json.loads(data, parse_int=whole_number)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"the answer is no JSON: {error}") from None


def _wait(header: str | None) -> float:
    """The seconds that a `Retry-After` asks for: a number, or a date."""
    if header is None:
        return 0.0
    if re.fullmatch(r"\s*\d+(?:\.\d+)?\s*", header):
        return float(header)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - time.time())
    except (TypeError, ValueError):
        return 0.0


def _http(name: str, *, template: str) -> System:
    read = read_template(template, name)
    headers, secrets = headers_and_secrets(name, read)
    service = _Service(read, headers, _Secrets(secrets))
    sure = bool(read.keys["deterministic"])
    identity = Identity(
        {template: read.fingerprint},
        unwatched=("what answers behind the address is not watched: change `version` in the template when it changes",),
    )
    return System(
        name, read.keys["kind"], service.predict, read.fingerprint, deterministic=sure, seedable=sure, identity=identity
    )


# fmt: off
FAMILIES = (
    SystemFamily("http", "any", _http, (
        Parameter("template", "text", help="the TOML file that describes requests and answers; see docs/http.md"),
    ), help="A captioner or detector behind a JSON service."),
)
# fmt: on
