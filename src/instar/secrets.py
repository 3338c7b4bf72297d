"""Secrets that a system or a bucket was given, taken out of what is stored: who refuses a key likes to repeat it."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache

_NAMES = re.compile(
    r"(?:key|token|secret|password|passwd|credentials?|access_key_id|connection_string)$", re.IGNORECASE
)
_SIGNED = re.compile(
    r"(https?://[^\s?\"'<>]+)\?[^\s\"'<>]*?(?:X-Amz-|X-Goog-|Signature=|AWSAccessKeyId=|Policy=|sig=|token=|key=)"
    r"[^\s\"'<>]*",
    re.IGNORECASE,
)
"""An address that opens an object for whoever knows it: its query is a key."""
_LOGIN = re.compile(r"\b((?:s3|gs|az|hf|https?|ftp):/{1,2})[^\s/@\"'<>]*:[^\s@\"'<>]*@", re.IGNORECASE)
"""A name and a password in an address."""
_of_files: dict[str, str] = {}
"""Secrets that this process read from a file of credentials, by what they are called there."""
SHORTEST = 8
"""A shorter value may stand in a text by chance: `test`, `1234`."""
_BASE64 = r"[A-Za-z0-9+/_-]"


class Secrets:
    """Values of environment variables, by their names."""

    def __init__(self, values: Mapping[str, str]) -> None:
        longest_first = sorted(values.items(), key=lambda item: -len(item[1]))
        self._patterns = [(name, len(value), *_patterns(value)) for name, value in longest_first]

    def scrubbed(self, text: str) -> str:
        """The text without them, however JSON, Python, HTML, addresses, base64 and hexadecimal write them."""
        for name, _, plain, coded in self._patterns:
            # a function, so that nothing in a name is a reference; of a word in base64 the ends hold parts of it, too
            text = plain.sub(lambda _, name=name: f"${{{name}}}", text)  # type: ignore[misc]
            if coded is not None and coded.search(text):
                whole = re.compile(f"{_BASE64}{{0,3}}(?:{coded.pattern}){_BASE64}*={{0,2}}", re.IGNORECASE)
                text = whole.sub(lambda _, name=name: f"${{{name}}}", text)  # type: ignore[misc]
        return text

    def without(self, value: object) -> object:
        """A JSON value with all its texts scrubbed."""
        if isinstance(value, str):
            return self.scrubbed(value)
        if isinstance(value, list):
            return [self.without(one) for one in value]
        if isinstance(value, dict):
            return {self.scrubbed(name): self.without(one) for name, one in value.items()}
        return value

    def held_in(self, text: str) -> str | None:
        """The variable whose value a text holds in any of these forms; None where it holds none."""
        for name, length, plain, coded in self._patterns:
            if length >= SHORTEST and (plain.search(text) or (coded is not None and coded.search(text))):
                return name
        return None


def without_secrets(text: str) -> str:
    """A message without the secrets of this process's environment. Whoever cuts it does so afterwards: half of a
    secret is not recognised any more."""
    return _SIGNED.sub(r"\1", _LOGIN.sub(r"\1", environment_secrets().scrubbed(text)))


def plain_address(address: str) -> str:
    """An address as it may be stored and shown: without a password, and on the web without its query, which may be a
    key. Any other text stays as it is.

    >>> plain_address("https://me:secret@host/a b.jpg?X-Amz-Signature=1"), plain_address("s3://me:sec/ret@photos/a.jpg")
    ('https://host/a b.jpg', 's3://photos/a.jpg')
    """
    scheme, mark, rest = address.partition("://")
    if not mark or scheme.lower() not in ("http", "https", "s3", "gs", "az", "hf"):
        return address
    if scheme.lower() in ("http", "https"):
        host, slash, path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")
        return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
    host = rest.partition("/")[0]
    return f"{scheme}://{rest.rpartition('@')[2]}" if "@" in host or (":" in host and "@" in rest) else address


def keep_secret(name: str, value: str) -> None:
    """Have a value that came from a file of credentials taken out of messages, too."""
    _of_files[name] = value


def environment_secrets() -> Secrets:
    """Those of this process's environment: variables whose name ends in key, token, secret, password, credentials,
    access_key_id or connection_string."""
    named = ((name, value.strip()) for name, value in (*os.environ.items(), *_of_files.items()) if _NAMES.search(name))
    return _of_environment(tuple((name, value) for name, value in named if len(value) >= SHORTEST))


@lru_cache(maxsize=8)
def _of_environment(values: tuple[tuple[str, str], ...]) -> Secrets:
    return Secrets(dict(values))


def _patterns(value: str) -> tuple[re.Pattern[str], re.Pattern[str] | None]:
    """How a value is written sign by sign, and as a whole in base64 or hexadecimal; None where that is too short."""
    plain = "".join(map(_sign, value))
    content = value.encode("utf-8", "surrogatepass")
    cores = [core for core in (_base64_core(content, shift) for shift in range(3)) if len(core) >= SHORTEST]
    coded = ["".join(map(_coded_sign, core)) for core in cores]
    if len(content) >= SHORTEST:
        coded.append("[ :]?".join(f"{byte:02x}" for byte in content))
    return re.compile(plain, re.IGNORECASE), re.compile("|".join(coded), re.IGNORECASE) if coded else None


def _sign(sign: str) -> str:
    """One sign as it is, and as JSON, Python, addresses and HTML escape it, also twice."""
    number = ord(sign)
    backslashes = "" if sign.isalnum() else r"\\*"
    percent = "".join(f"%(?:25)*{byte:02x}" for byte in sign.encode("utf-8", "surrogatepass"))
    named = {"&": "|&amp;", "<": "|&lt;", ">": "|&gt;", '"': "|&quot;", "'": "|&apos;"}.get(sign, "")
    escapes = rf"\\+u{number:04x}|\\+x{number:02x}|{percent}|&\#0*{number};|&\#x0*{number:x};{named}"
    return f"(?:{backslashes}{re.escape(sign)}|{escapes})"


def _coded_sign(sign: str) -> str:
    return {"+": "(?:[+-]|%2b)", "/": r"(?:\\*[/_]|%2f)"}.get(sign, sign)


def _base64_core(content: bytes, shift: int) -> str:
    """The signs that are the same whatever stands before, at this place of a triple of bytes, and after."""
    shifted = bytes(shift) + content
    return b64encode(shifted).decode("ascii")[(0, 2, 3)[shift] : len(shifted) * 8 // 6]
