"""Objects in buckets, through obstore, which is imported when the first one is asked for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from instar.remote.address import bucket_and_key, in_bucket
from instar.remote.credentials import aws_settings
from instar.remote.errors import Changed, Missing, TooLarge, Unreachable
from instar.secrets import without_secrets

RETRIES = 5
"""How often a request is made again that a store cannot answer just now, within a minute."""
_RETRY: Mapping[str, Any] = {
    "max_retries": RETRIES,
    "retry_timeout": timedelta(minutes=1),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=15), "base": 2},
}
_CLIENT: Mapping[str, Any] = {"allow_http": True, "connect_timeout": "10 seconds", "timeout": "10 minutes"}
"""Without encryption only where the endpoint that the user set is without. A large object may take long to come."""
_STORES = {"s3": ("S3Store", "AWS_"), "gs": ("GCSStore", "GOOGLE_"), "az": ("AzureStore", "AZUR")}
"""What reaches the buckets of a scheme, and how the variables begin that it reads."""
_CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; AWS_SKIP_SIGNATURE=true for a public bucket",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS; GOOGLE_SKIP_SIGNATURE=true for a public bucket",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY; AZURE_SKIP_SIGNATURE=true for a public container",
}
_NONE = re.compile("/latest/(api/token|meta-data)|/computeMetadata/|/metadata/identity/|Account must be specified")
"""What is asked, or said, where no credentials were given: a machine in a cloud might have a role."""
_ANSWER = re.compile(r"<Code>([^<]*)</Code>\s*<Message>([^<\n]*)")
_MOST_LETTERS = 300
PAGE = 1000
"""Names that are listed at a time; stores give no more at once."""

Version = Mapping[str, Any]
"""What a store calls the state of an object, for a write that must not meet another one."""


class Content(NamedTuple):
    data: bytes
    version: Version


def object_bytes(address: str, most: int) -> bytes:
    """The content of the object at an address, of at most so many bytes. Raises Unreachable."""
    if not in_bucket(address):
        from instar.remote.web import web_bytes  # late: whoever reads files needs none of it

        return web_bytes(address, most)
    bucket, key = bucket_and_key(address)
    return objects_in(bucket).get(key, most=most).data


def object_names(address: str) -> Iterator[str]:
    """The names of the objects below an address, relative to it, in a stable order, as the store lists them."""
    if address.startswith("hf://"):
        from instar.remote.web import hub_names

        yield from hub_names(address)
        return
    bucket, key = bucket_and_key(address)
    prefix = f"{key.rstrip('/')}/" if key.strip("/") else ""
    yield from (name.removeprefix(prefix) for name in objects_in(bucket).names(prefix))


def objects_in(bucket: str) -> Objects:
    """The objects in a bucket, `s3://photos`, as the environment says how to reach it."""
    scheme = bucket.partition("://")[0]
    variables = tuple(sorted(item for item in os.environ.items() if item[0].startswith(_STORES[scheme][1])))
    return _objects(bucket, variables, str(Path.home()))


@lru_cache(maxsize=32)
def _objects(bucket: str, variables: tuple[tuple[str, str], ...], home: str) -> Objects:
    return Objects(bucket)


class Objects:
    """The objects of one bucket, by their keys. Whatever fails is `Unreachable`, in words without credentials."""

    def __init__(self, bucket: str) -> None:
        try:
            import obstore
            from obstore import store
        except ImportError:
            raise Unreachable(f"{bucket}: buckets are read with obstore: pip install 'instar[cloud]'") from None
        scheme, _, name = bucket.partition("://")
        self.bucket = bucket
        self._obstore: Any = obstore
        make = getattr(store, _STORES[scheme][0])
        settings = aws_settings() if scheme == "s3" else {}
        try:
            self._store = make(name, client_options=dict(_CLIENT), retry_config=dict(_RETRY), **settings)
        except Exception as error:
            self._refuse("", error)

    def get(self, key: str, *, most: int | None = None) -> Content:
        """The content of an object; raises Missing, and TooLarge where it has more than `most` bytes."""
        try:
            answer = self._obstore.get(self._store, key)
            size = int(answer.meta["size"])
            if most is not None and size > most:
                raise TooLarge(f"{self.bucket}/{key}: {size:,} bytes")
            return Content(bytes(answer.bytes()), _version(answer.meta))
        except Exception as error:
            self._refuse(key, error)

    def version(self, key: str) -> Version | None:
        """The state of an object; None where there is none."""
        try:
            return _version(self._obstore.head(self._store, key))
        except FileNotFoundError:
            return None
        except Exception as error:
            self._refuse(key, error)

    def fetch(self, key: str, path: Path) -> None:
        """Write an object into a file, as it comes."""
        try:
            with path.open("wb") as file:
                for chunk in self._obstore.get(self._store, key).stream(min_chunk_size=1 << 20):
                    file.write(chunk)
        except Exception as error:
            self._refuse(key, error)

    def put(self, key: str, content: bytes | Path, *, over: Version | None = None, anew: bool = False) -> Version:
        """Write an object whole: only `over` the state that is known, only `anew`, or over whatever is there.

        Raises Changed where another state is there. A store may ignore both conditions.
        """
        mode = "create" if anew else "overwrite" if over is None else dict(over)
        try:
            # in one request: a half that a kill leaves behind would be paid for, and seen by nobody
            return _version(self._obstore.put(self._store, key, content, mode=mode, use_multipart=False))
        except Exception as error:
            self._refuse(key, error)

    def delete(self, key: str) -> None:
        try:
            self._obstore.delete(self._store, key)
        except FileNotFoundError:
            pass
        except Exception as error:
            self._refuse(key, error)

    def names(self, prefix: str) -> Iterator[str]:
        """Keys that begin with a prefix, which ends with a slash or is empty; a page of them is in memory at a time."""
        pages = self._obstore.list(self._store, prefix or None, chunk_size=PAGE)
        while True:
            try:
                page = next(pages, None)
            except Exception as error:
                self._refuse(prefix, error)
            if page is None:
                return
            yield from (str(entry["path"]) for entry in page)

    def _refuse(self, key: str, error: Exception) -> NoReturn:
        """Raises what happened in our own words, with what the store said as far as it is no secret."""
        if isinstance(error, Unreachable):
            raise error
        place, kind, text = f"{self.bucket}/{key}", type(error).__name__, str(error)
        if _NONE.search(text):
            variables = _CREDENTIALS[self.bucket.partition("://")[0]]
            raise Unreachable(
                f"{self.bucket}: neither the environment nor the usual files have credentials for it; set {variables}"
            ) from None
        if re.search(r"NoSuchBucket|ContainerNotFound", text):
            raise Missing(f"{self.bucket}: there is no such bucket") from None
        if isinstance(error, FileNotFoundError):
            raise Missing(f"{place}: there is no such object") from None
        if kind in ("AlreadyExistsError", "PreconditionError"):
            raise Changed(f"{place}: another process wrote it") from None
        if kind in ("PermissionDeniedError", "UnauthenticatedError") or re.search(r"status code: 40[13]\b", text):
            raise Unreachable(
                f"{place}: the store refused the credentials of this environment ({_shortened(text)})"
            ) from None
        host = re.search(r"https?://[^\s/?]+", text)
        if "error sending request" in text and host:
            raise Unreachable(f"{place}: nothing answers at {host[0]}, after {RETRIES} retries") from None
        raise Unreachable(f"{place}: {_shortened(text)}") from None


def _version(meta: Mapping[str, Any]) -> Version:
    return {name: meta[name] for name in ("e_tag", "version") if meta.get(name) is not None}


def _shortened(text: str) -> str:
    """What the store answered, else what obstore says, in one line, without addresses' queries and without secrets."""
    answer = _ANSWER.search(text)
    text = f"{answer[1]}: {answer[2]}" if answer else text.partition("\n\nDebug source:")[0]
    text = re.sub(r"(https?://[^\s?\"'<>]+)\?[^\s\"'<>)]*", r"\1", without_secrets(text))
    text = " ".join(text.split())
    return text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]} …"
