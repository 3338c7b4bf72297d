"""Addresses of objects: how they are recognised, joined and shown."""

from __future__ import annotations

import re
from pathlib import Path, PosixPath

from instar.remote.errors import Unreachable
from instar.secrets import plain_address

BUCKETS = ("s3", "gs", "az")
_ADDRESS = re.compile(r"(s3|gs|az|hf|https?):/{1,2}(?=[^/])", re.IGNORECASE)


def address_in(text: str | Path) -> str | None:
    """The address that a text is; None where it is a path. A `Path` of an address has lost a slash.

    >>> address_in("s3:/photos/a.jpg"), address_in("photos/a.jpg")
    ('s3://photos/a.jpg', None)
    """
    scheme = _ADDRESS.match(str(text))
    return f"{scheme[1].lower()}://{str(text)[scheme.end() :]}" if scheme else None


def in_bucket(address: str) -> bool:
    """Whether an address is one in a bucket, which can be listed and, with the right to, be written to."""
    return address.partition("://")[0] in BUCKETS


def bucket_and_key(address: str) -> tuple[str, str]:
    """An address as its bucket and the key in it, which is no URL: nothing in it is escaped.

    >>> bucket_and_key("s3://photos/summer 2024/ä?.jpg")
    ('s3://photos', 'summer 2024/ä?.jpg')
    """
    refuse_login(address)
    scheme, _, rest = address.partition("://")
    bucket, _, key = rest.partition("/")
    return f"{scheme}://{bucket}", key


def refuse_login(address: str) -> None:
    """Raise Unreachable if an address contains a name or a password."""
    shown = plain_address(address)
    scheme, _, rest = address.partition("://")
    if "@" in rest.partition("/")[0] or (scheme in (*BUCKETS, "hf") and shown != address):
        raise Unreachable(f"{shown}: a name and a password in an address are not used; leave them out")


def joined(address: str, name: str) -> str:
    """The address of what lies below another one."""
    return f"{address.rstrip('/')}/{name}"


class Address(PosixPath):
    """An address where a path is expected. It prints as it was written, and nothing can be opened by it.

    >>> str(Address("s3://runs/first").parent)
    's3://runs'
    """

    __slots__ = ()

    def __str__(self) -> str:
        text = super().__str__()
        return address_in(text) or text
