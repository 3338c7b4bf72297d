"""A service spoken to over HTTP as a system: `http(captions.toml)`.

The file is a template of the request, described in docs/http.md. Secrets come from environment variables alone: the
template names them, and their values go into the request's headers and nowhere else.
"""

from __future__ import annotations

import email.utils
import io
import ipaddress
import json
import math
import os
import random
import re
import ssl
import threading
import time
import tomllib
import urllib.error
import urllib.parse
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any, ClassVar

import cv2
import numpy as np

from instar.image import Image
from instar.outputs import Output
from instar.outputs.caption import Caption
from instar.outputs.detections import Detections
from instar.spelling import Call, Parameter, bind, nearest
from instar.systems.system import System, SystemFamily, fingerprint_of

__all__ = ["FAMILIES", "TimedOut"]

_ADAPTER = "1"
"""Part of every fingerprint here; changes when the requests of the same template do."""
_SHOWN = 200
"""Characters of an answer that an error quotes."""
_ERROR_BYTES = 1 << 16
_LATER = (408, 425, 429)
"""Refusals that mean: not now. Others will not be better another time."""

_KEYS = (
    Parameter("url", "text"),
    Parameter("version", "text"),
    Parameter("deterministic", "bool"),
    Parameter("kind", "choice", Caption.kind, choices=(Caption.kind, Detections.kind)),
    Parameter("method", "choice", "POST", choices=("POST", "PUT")),
    Parameter("json", "text", None),
    Parameter("raw", "bool", False),
    Parameter("timeout", "float", 20, low=0, open_low=True),
    Parameter("retries", "int", 4, low=0),
    Parameter("backoff", "float", 0.5, low=0, open_low=True),
    Parameter("patience", "float", 50, low=0, open_low=True),
    Parameter("per_second", "float", None, low=0, open_low=True),
    Parameter("per_minute", "float", None, low=0, open_low=True),
    Parameter("most_bytes", "int", 1_000_000, low=1),
)
_IMAGE = (
    Parameter("format", "choice", "png", choices=("png", "jpeg")),
    Parameter("quality", "int", 95, low=1, high=100),
)
_ANSWERS = {
    Caption.kind: (Parameter("caption", "text"), Parameter("score", "text", None)),
    Detections.kind: (Parameter("boxes", "text"), Parameter("labels", "text"), Parameter("scores", "text", None)),
}
_TABLES = ("headers", "multipart", "image", "answer")
_HOW = ("timeout", "retries", "backoff", "patience", "per_second", "per_minute", "most_bytes")
"""How patiently the service is asked, which does not change its answers."""

_PLACEHOLDERS = ("image_base64", "image_data_url", "width", "height")
_FILE = "{image}"
_PLACEHOLDER = re.compile(r"\{([a-z_0-9]+)\}")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_SECRET_HEADER = re.compile(r"(?:^|-)(?:authorization|cookie|key|password|secret|token)$", re.IGNORECASE)
_URL = re.compile(r"[!#-;=?-\[\]_a-z~]+")
_HEADER = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


class TimedOut(RuntimeError):
    """The service did not answer in time."""

    status: ClassVar[str] = "timeout"


class _Failed(Exception):
    """A try that another one may mend: how long the service asks us to wait, and whether it was too slow."""

    def __init__(self, why: str, *, wait: float = 0.0, slow: bool = False) -> None:
        super().__init__(why)
        self.wait, self.slow = wait, slow


# --- the template ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Template:
    """A template as it is written: it names secrets and holds none."""

    told: Mapping[str, Any]
    headers: Mapping[str, str]
    multipart: Mapping[str, str]
    image: Mapping[str, Any]
    answer: Mapping[str, Any]
    body: Any
    """The JSON of the body with its placeholders, if it is one."""

    @property
    def fingerprint(self) -> str:
        decides = {key: value for key, value in self.told.items() if key not in _HOW}
        return fingerprint_of(
            "http",
            _ADAPTER,
            *(
                json.dumps(part, sort_keys=True)
                for part in (decides, dict(self.headers), dict(self.multipart), dict(self.image), dict(self.answer))
            ),
        )


def _read(path: str, name: str) -> _Template:
    file = Path(path).expanduser()
    try:
        data = tomllib.loads(file.read_text("utf-8-sig"))
    except OSError as error:
        raise FileNotFoundError(f"{name}: {file}: {error.strerror or error}; docs/http.md shows a template") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{name}: {file} is not valid TOML: {error}") from None
    tables: dict[str, dict[str, Any]] = {}
    for key in _TABLES:
        tables[key] = data.pop(key, {})
        if not isinstance(tables[key], dict):
            raise ValueError(f"{name}: {key} is a table ([{key}]), got {tables[key]!r}")
    known = [parameter.name for parameter in _KEYS]
    for key in data:
        if key not in known:
            raise ValueError(
                f"{name}: unknown key {key!r}{nearest(key, [*known, *_TABLES])}; it has "
                f"{', '.join(known)}, and the tables {', '.join(_TABLES)}"
            )
    told = _bound(name, data, _KEYS)
    template = _Template(
        told,
        _texts(name, "headers", tables["headers"]),
        _texts(name, "multipart", tables["multipart"]),
        _bound(f"{name}: [image]", tables["image"], _IMAGE),
        _bound(f"{name}: [answer]", tables["answer"], _ANSWERS[told["kind"]]),
        _body(name, told["json"]),
    )
    _check(name, template)
    return template


def _bound(name: str, given: Mapping[str, Any], parameters: tuple[Parameter, ...]) -> dict[str, Any]:
    return dict(bind(Call(name, kwargs=tuple(given.items())), parameters, what="template"))


def _texts(name: str, table: str, given: Mapping[str, Any]) -> dict[str, str]:
    for key, value in given.items():
        if not isinstance(value, str):
            raise ValueError(f"{name}: [{table}] {key} is text, got {value!r}")
    return dict(given)


def _body(name: str, text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"{name}: json is no valid JSON: {error}") from None


def _check(name: str, template: _Template) -> None:
    """What no single key can say."""
    told = template.told
    try:
        url = urllib.parse.urlsplit(told["url"])
        sound = url.scheme in ("http", "https") and url.hostname and url.port != 0 and re.fullmatch(_URL, told["url"])
    except ValueError:  # a port that is no number
        sound = None
    if not sound:
        raise ValueError(
            f"{name}: url is {told['url']!r}; it takes http:// or https://, a host, and a path in plain "
            "characters. What is secret belongs in a header"
        )
    if url.username is not None or url.password is not None:
        raise ValueError(
            f"{name}: the url holds a user's name or password; write them as a header whose value comes "
            'from the environment: Authorization = "Basic ${MY_CREDENTIALS}"'
        )
    bodies = [told["json"] is not None, bool(template.multipart), told["raw"]]
    if sum(bodies) != 1:
        raise ValueError(f"{name}: it says {sum(bodies)} of json, [multipart] and raw; a request has exactly one body")
    _check_placeholders(name, template)
    _check_headers(name, template, url)


def _check_placeholders(name: str, template: _Template) -> None:
    if template.told["raw"]:
        return
    known = (*_PLACEHOLDERS, "image") if template.multipart else _PLACEHOLDERS
    found = set()
    for text in template.multipart.values() if template.multipart else _strings(template.body):
        for placeholder in _PLACEHOLDER.findall(text):
            if placeholder not in known and (hint := nearest(placeholder, known)):
                raise ValueError(f"{name}: there is no placeholder {{{placeholder}}}{hint}")
            found.add(placeholder)
    if not found & {"image", "image_base64", "image_data_url"}:
        wanted = (
            '[multipart] has no field that is "{image}"'
            if template.multipart
            else ("json mentions neither {image_base64} nor {image_data_url}")
        )
        raise ValueError(f"{name}: {wanted}: the service would never see the image")
    if any(_FILE in text and text != _FILE for text in template.multipart.values()):
        raise ValueError(f'{name}: [multipart] a field that uploads the image is "{_FILE}" and nothing beside it')


def _check_headers(name: str, template: _Template, url: urllib.parse.SplitResult) -> None:
    for key, value in template.headers.items():
        if not _HEADER.fullmatch(key) or not _sendable(value):
            raise ValueError(f"{name}: [headers] {key!r} cannot be sent: a header is one line of plain characters")
        if key.lower() in ("content-length", "host", "transfer-encoding") or (
            template.multipart and key.lower() == "content-type"
        ):
            raise ValueError(f"{name}: [headers] {key} is set by Instar; leave it out")
        if _SECRET_HEADER.search(key) and not _VARIABLE.search(value):
            raise ValueError(
                f"{name}: [headers] {key} holds its value itself; name an environment variable that holds "
                f'it, as in {key} = "${{MY_KEY}}"'
            )
        if _VARIABLE.search(value) and url.scheme == "http" and not _near(str(url.hostname)):
            raise ValueError(f"{name}: [headers] {key} would send a secret in the clear; write the url with https://")


def _near(host: str) -> bool:
    """This machine or its own network."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host


def _sendable(value: str) -> bool:
    return value.isprintable() and value.isascii()


def _headers(name: str, template: _Template) -> tuple[dict[str, str], dict[str, str]]:
    """The headers as they are sent, and the secrets in them by their variables."""
    secrets: dict[str, str] = {}

    def taken(found: re.Match[str]) -> str:
        variable = found[1]
        value = os.environ.get(variable, "").strip()
        if not re.fullmatch(r"[A-Za-z_]\w*", variable):
            raise ValueError(f"{name}: [headers] ${{{variable}}} names no environment variable")
        if not value:
            raise ValueError(f"{name}: the environment variable {variable} is not set or empty; its headers need it")
        if not _sendable(value):
            raise ValueError(
                f"{name}: the value of the environment variable {variable} cannot be sent as a header: it "
                "holds a line break, or characters beyond ASCII"
            )
        secrets[variable] = value
        return value

    headers = {key: _VARIABLE.sub(taken, value) for key, value in template.headers.items()}
    return headers, secrets


# --- the request -----------------------------------------------------------------------------------


def _encoded(image: Image, told: Mapping[str, Any]) -> bytes:
    options = [cv2.IMWRITE_JPEG_QUALITY, told["quality"]] if told["format"] == "jpeg" else []
    done, data = cv2.imencode("." + told["format"], image.pixels[..., ::-1], options)
    if not done:
        raise ValueError(f"the image cannot be written as {told['format']}")
    return data.tobytes()


def _strings(value: Any) -> list[str]:
    """All texts in a JSON value, less the names of its fields."""
    if isinstance(value, str):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inside for text in _strings(one)]


def _filled(value: Any, facts: Mapping[str, str | int]) -> Any:
    """A JSON value with its placeholders replaced; a text that is nothing but `{width}` becomes the number."""
    if isinstance(value, dict):
        return {key: _filled(one, facts) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, facts) for one in value]
    if not isinstance(value, str):
        return value
    whole = _PLACEHOLDER.fullmatch(value)
    if whole and whole[1] in facts:
        return facts[whole[1]]
    return _PLACEHOLDER.sub(lambda found: str(facts.get(found[1], found[0])), value)


def _request(template: _Template, image: Image) -> tuple[bytes, str]:
    """The body, and its type."""
    data, mime = _encoded(image, template.image), f"image/{template.image['format']}"
    if template.told["raw"]:
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
        if text == _FILE:
            head = f'{named}; filename="image.{template.image["format"]}"\r\nContent-Type: {mime}'
            content = data
        else:
            head, content = named, str(_filled(text, facts)).encode()
        parts.append(f"--{boundary}\r\n{head}\r\n\r\n".encode() + content + b"\r\n")
    return b"".join(parts) + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


class _Bounded(io.RawIOBase):
    """A socket's bytes until a moment; a socket's own timeout begins again with every byte that drips in."""

    def __init__(self, sock: Any, deadline: float) -> None:
        self._sock, self._deadline = sock, deadline
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        found: int | None = self._raw.readinto(buffer)
        return found

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Heard(HTTPResponse):
    def __init__(self, sock: Any, deadline: float, **more: Any) -> None:
        super().__init__(sock, **more)
        self.fp.close()
        self.fp = io.BufferedReader(_Bounded(sock, deadline))


def _bounded(kind: Callable[..., HTTPConnection]) -> Callable[..., HTTPConnection]:
    """Connections whose whole exchange ends in time, not only each read of it."""

    def connection(host: str, *, timeout: float, **more: Any) -> HTTPConnection:
        made, deadline = kind(host, timeout=timeout, **more), time.monotonic() + timeout
        made.response_class = lambda sock, **told: _Heard(sock, deadline, **told)  # type: ignore[assignment]
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


def _opener() -> urllib.request.OpenerDirector:
    """Without what follows redirects, where the headers' secrets would go along, and without files and FTP."""
    opener = urllib.request.OpenerDirector()
    for handler in (urllib.request.ProxyHandler(), _Http(), _Https()):
        opener.add_handler(handler)
    return opener


# --- the answer ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class _Secrets:
    """Values of environment variables, by their names."""

    held: Mapping[str, str]

    def scrubbed(self, text: str) -> str:
        """The text without them, also as JSON, Python and addresses write them."""
        for variable, value in sorted(self.held.items(), key=lambda item: -len(item[1])):
            for written in {
                value,
                json.dumps(value)[1:-1],
                repr(value)[1:-1],
                value.replace("/", "\\/"),
                urllib.parse.quote(value),
                urllib.parse.quote(value, safe=""),
            }:
                text = re.sub(re.escape(written), f"${{{variable}}}", text, flags=re.IGNORECASE)
        return text

    def quoted(self, data: bytes) -> str:
        return repr(self.cut(" ".join(self.scrubbed(data.decode("utf-8", "replace")).split())))

    def cut(self, text: str) -> str:
        """Its beginning. Half of a secret would not be found any more, so that they go first."""
        clean = self.scrubbed(text)
        return clean if len(clean) <= _SHOWN else f"{clean[:_SHOWN]}…"

    def check(self, text: str) -> None:
        """A service that repeats what it was sent must not put a secret into a run."""
        for variable, value in self.held.items():
            if len(value) >= 8 and value in text:
                raise ValueError(f"the answer holds the value of {variable}")


def _at(value: Any, keys: Sequence[str], before: tuple[str, ...] = ()) -> Any:
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


def _answer(template: _Template, content: Any, secrets: _Secrets) -> Output:
    found = {key: _at(content, path.split(".")) for key, path in template.answer.items() if path is not None}
    where = template.answer
    if template.told["kind"] == Caption.kind:
        text = _text(found["caption"], where["caption"], "a caption")
        secrets.check(text)
        if not text.strip():
            raise ValueError(f"the caption at {where['caption']} is empty")
        score = found.get("score")
        if score is not None and (
            isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score)
        ):
            raise ValueError(f"a score is a number, and {where['score']} is {json.dumps(score)}")
        return Caption.from_text(text, score=score)
    boxes = _numbers(found["boxes"], where["boxes"], "boxes are lists [x0, y0, x1, y1] in pixels")
    labels = found["labels"]
    if not isinstance(labels, list):
        raise ValueError(f"labels are a list of texts, and {where['labels']} is {json.dumps(labels)}")
    named = [_text(label, where["labels"], "a label") for label in labels]
    secrets.check("\n".join(named))
    return Detections.from_xyxy(
        boxes,
        named,
        None if where["scores"] is None else _numbers(found["scores"], where["scores"], "scores are a list of numbers"),
    )


def _text(value: Any, where: str, what: str) -> str:
    # half of a pair, as "\ud83d", is none: no file could hold it
    if not isinstance(value, str) or re.search("[\ud800-\udfff]", value):
        raise ValueError(f"{what} is text, and {where} is {json.dumps(value)}")
    return value


def _numbers(value: Any, where: str, form: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    try:
        array = np.array(value)  # of no given type: a text or a null must not become a number
    except ValueError:  # lists of different lengths
        array = np.array(None)
    if array.dtype.kind not in "iuf" or not isinstance(value, list):
        raise ValueError(f"{form}, and {where} is {json.dumps(value)}")
    return array.astype(np.float64)


# --- the system ------------------------------------------------------------------------------------


class _Service:
    """A service that is asked again where that may help, and not more often than it allows."""

    def __init__(self, template: _Template, headers: Mapping[str, str], secrets: _Secrets) -> None:
        self._template, self._headers, self._secrets = template, headers, secrets
        self._opener = _opener()
        told = template.told
        self._apart = max(
            (span / told[rate] for rate, span in (("per_second", 1), ("per_minute", 60)) if told[rate] is not None),
            default=0.0,
        )
        self._next = 0.0
        self._lock = threading.Lock()

    def predict(self, inputs: Sequence[Image], seeds: Sequence[int]) -> list[Output]:
        return [self._one(image) for image in inputs]

    def _one(self, image: Image) -> Output:
        body, mime = _request(self._template, image)
        data = self._asked(body, mime)
        try:
            return _answer(self._template, _parsed(data), self._secrets)
        except (ValueError, RecursionError, OverflowError) as error:
            raise ValueError(
                f"{self._secrets.cut(str(error))}; the service answered {self._secrets.quoted(data)}"
            ) from None

    def _asked(self, body: bytes, mime: str) -> bytes:
        told, begun, tries, paused = self._template.told, time.monotonic(), 0, 0.0
        while True:
            paused += self._paced()
            left = told["patience"] - (time.monotonic() - begun - paused)
            try:
                return self._tried(body, mime, min(told["timeout"], left))
            except _Failed as error:
                failed = error
            tries += 1
            wait = max(failed.wait, told["backoff"] * 2 ** (tries - 1) * random.uniform(0.5, 1))
            took = time.monotonic() - begun - paused
            if tries > told["retries"] or took + wait >= told["patience"]:
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
        told = self._template.told
        headers = {"Accept": "application/json", "Content-Type": mime, "User-Agent": "instar", **self._headers}
        request = urllib.request.Request(told["url"], body, headers, method=told["method"])
        try:
            with self._opener.open(request, timeout=seconds) as response:
                return self._heard(response)
        except (OSError, HTTPException) as error:
            why = error.reason if isinstance(error, urllib.error.URLError) else error
            if isinstance(why, TimeoutError):
                raise _Failed(f"it did not answer within {seconds:g} s", slow=True) from None
            said = self._secrets.cut(f"{type(why).__name__}: {why}")
            if isinstance(why, ssl.SSLCertVerificationError):
                raise RuntimeError(f"the service's certificate cannot be trusted: {said}") from None
            raise _Failed(f"the connection failed: {said}") from None

    def _heard(self, response: HTTPResponse) -> bytes:
        status, most = response.status, self._template.told["most_bytes"]
        if 200 <= status < 300:
            data = response.read(most + 1) if (response.length or 0) <= most else b""
            if len(data) > most or (response.length or 0) > most:
                raise RuntimeError(f"the answer is longer than most_bytes = {most}")
            if response.length:
                raise _Failed(f"the answer broke off {response.length} bytes before its end")
            return data
        said = f"the service answered {status} {response.reason}"
        if 300 <= status < 400:
            to = self._secrets.quoted(response.headers.get("Location", "").encode())
            raise RuntimeError(
                f"{said}, a redirect to {to}; it is not followed, as the headers would go along: if "
                "that is where the service is, write it as the url"
            )
        with suppress(OSError, HTTPException):  # why it refuses is not worth another try
            said += f": {self._secrets.quoted(response.read(_ERROR_BYTES))}"
        if status in _LATER or status >= 500:
            raise _Failed(said, wait=_wait(response.headers.get("Retry-After")))
        raise RuntimeError(self._secrets.scrubbed(said))


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the answer is no JSON: {error}") from None


def _wait(told: str | None) -> float:
    """The seconds that a `Retry-After` asks for: a number, or a date."""
    if told is None:
        return 0.0
    if re.fullmatch(r"\s*\d+(?:\.\d+)?\s*", told):
        return float(told)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(told).timestamp() - time.time())
    except (TypeError, ValueError):
        return 0.0


def _http(name: str, *, template: str) -> System:
    read = _read(template, name)
    headers, secrets = _headers(name, read)
    service = _Service(read, headers, _Secrets(secrets))
    sure = bool(read.told["deterministic"])
    return System(name, read.told["kind"], service.predict, read.fingerprint, deterministic=sure, seedable=sure)


FAMILIES = (
    SystemFamily(
        "http",
        "any",
        _http,
        (Parameter("template", "text", help="the TOML file that describes requests and answers; see docs/http.md"),),
        help="A captioner or detector behind a JSON service.",
    ),
)
