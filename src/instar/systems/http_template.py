"""The template of a request to a service, as docs/http.md describes it.

It names the environment variables that hold secrets, and holds none itself.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import tomllib
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from instar.image import Image
from instar.json_values import one_of
from instar.outputs import json_columns, output_kind, output_kinds
from instar.reading import Unreadable, file_text
from instar.spelling import REQUIRED, Call, Parameter, bind, nearest
from instar.systems.system import fingerprint_of

_ADAPTER = "1"
"""Part of every fingerprint here; changes when the requests of the same template do."""

_KEYS = (
    Parameter("url", "text"),
    Parameter("version", "text"),
    Parameter("deterministic", "bool"),
    Parameter("kind", "text", "caption"),
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
_TABLES = ("headers", "multipart", "image", "answer")
_HOW = ("timeout", "retries", "backoff", "patience", "per_second", "per_minute", "most_bytes")
"""How patiently the service is asked, which does not change its answers."""

_PLACEHOLDERS = ("image_base64", "image_data_url", "width", "height")
FILE = "{image}"
PLACEHOLDER = re.compile(r"\{([a-z_0-9]+)\}")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_SECRET_HEADER = re.compile(r"(?:^|-)(?:authorization|cookie|key|password|secret|token)$", re.IGNORECASE)
_URL = re.compile(r"[!#-;=?-\[\]_a-z~]+")
_HEADER = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


@dataclass(frozen=True, slots=True)
class Template:
    """A template as it is written: it names secrets and holds none."""

    keys: Mapping[str, Any]
    headers: Mapping[str, str]
    multipart: Mapping[str, str]
    image: Mapping[str, Any]
    answer: Mapping[str, str]
    """For each field of the output that the answer has: where it is there."""
    body: object
    """The JSON of the body with its placeholders, if it is one."""

    @property
    def fingerprint(self) -> str:
        decides = {key: value for key, value in self.keys.items() if key not in _HOW}
        parts = (decides, self.headers, self.multipart, self.image, self.answer)
        return fingerprint_of("http", _ADAPTER, *(json.dumps(dict(part), sort_keys=True) for part in parts))


def read_template(path: str, name: str) -> Template:
    file = Path(path).expanduser()
    try:
        data = tomllib.loads(file_text(file))
    except Unreadable as error:
        raise FileNotFoundError(f"{name}: {error}; docs/http.md shows a template") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{name}: {file} is not valid TOML: {error}") from None
    tables: dict[str, dict[str, object]] = {}
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
    keys = _bound(name, data, _KEYS)
    template = Template(
        keys,
        _texts(name, "headers", tables["headers"]),
        _texts(name, "multipart", tables["multipart"]),
        _bound(f"{name}: [image]", tables["image"], _IMAGE),
        _answer(name, tables["answer"], keys["kind"]),
        _body(name, keys["json"]),
    )
    _check(name, template)
    return template


def _answer(name: str, table: Mapping[str, object], kind: str) -> dict[str, str]:
    """Where in an answer the fields of the output are."""
    one_of(kind, f"{name}: kind", [one for one, output in output_kinds().items() if output.answers == Image.kind])
    columns, fields = json_columns(kind), output_kind(kind).json_fields
    parameters = tuple(
        Parameter(columns[field], "text", REQUIRED if needed else None) for field, needed in fields.items()
    )
    paths = _bound(f"{name}: [answer]", table, parameters)
    return {field: paths[column] for field, column in columns.items() if paths[column] is not None}


def _bound(name: str, values: Mapping[str, Any], parameters: tuple[Parameter, ...]) -> dict[str, Any]:
    return dict(bind(Call(name, kwargs=tuple(values.items())), parameters, what="template"))


def _texts(name: str, table: str, values: Mapping[str, object]) -> dict[str, str]:
    for key, value in values.items():
        if not isinstance(value, str):
            raise ValueError(f"{name}: [{table}] {key} is text, got {value!r}")
    return {key: str(value) for key, value in values.items()}


def _body(name: str, text: str | None) -> object:
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"{name}: json is no valid JSON: {error}") from None


def _check(name: str, template: Template) -> None:
    """What no single key can say."""
    keys = template.keys
    try:
        url = urllib.parse.urlsplit(keys["url"])
        sound = url.scheme in ("http", "https") and url.hostname and url.port != 0 and re.fullmatch(_URL, keys["url"])
    except ValueError:  # a port that is no number
        sound = None
    if not sound:
        raise ValueError(
            f"{name}: url is {keys['url']!r}; it takes http:// or https://, a host, and a path in plain "
            "characters. What is secret belongs in a header"
        )
    if url.username is not None or url.password is not None:
        raise ValueError(
            f"{name}: the url holds a user's name or password; write them as a header whose value comes "
            'from the environment: Authorization = "Basic ${MY_CREDENTIALS}"'
        )
    bodies = [keys["json"] is not None, bool(template.multipart), keys["raw"]]
    if sum(bodies) != 1:
        raise ValueError(f"{name}: it says {sum(bodies)} of json, [multipart] and raw; a request has exactly one body")
    _check_placeholders(name, template)
    _check_headers(name, template, url)


def _check_placeholders(name: str, template: Template) -> None:
    if template.keys["raw"]:
        return
    known = (*_PLACEHOLDERS, "image") if template.multipart else _PLACEHOLDERS
    placeholders = set()
    for text in template.multipart.values() if template.multipart else strings(template.body):
        for placeholder in PLACEHOLDER.findall(text):
            if placeholder not in known and (hint := nearest(placeholder, known)):
                raise ValueError(f"{name}: there is no placeholder {{{placeholder}}}{hint}")
            placeholders.add(placeholder)
    if not placeholders & {"image", "image_base64", "image_data_url"}:
        wanted = (
            '[multipart] has no field that is "{image}"'
            if template.multipart
            else ("json mentions neither {image_base64} nor {image_data_url}")
        )
        raise ValueError(f"{name}: {wanted}: the service would never see the image")
    if any(FILE in text and text != FILE for text in template.multipart.values()):
        raise ValueError(f'{name}: [multipart] a field that uploads the image is "{FILE}" and nothing beside it')


def _check_headers(name: str, template: Template, url: urllib.parse.SplitResult) -> None:
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


def headers_and_secrets(name: str, template: Template) -> tuple[dict[str, str], dict[str, str]]:
    """The headers as they are sent, and the secrets in them by their variables."""
    secrets: dict[str, str] = {}

    def taken(mention: re.Match[str]) -> str:
        variable = mention[1]
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


def strings(value: object, *, names: bool = False) -> list[str]:
    """All texts in a JSON value; with the names of its fields where `names` is true."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [*(value if names else ()), *(text for one in value.values() for text in strings(one, names=names))]
    return [text for one in value for text in strings(one, names=names)] if isinstance(value, list) else []
