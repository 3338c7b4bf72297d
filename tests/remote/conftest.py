from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from instar.store import bucket, lease
from tests import missing
from tests.remote.servers import AZURITE_KEY, S3, Web, free_port, make_container, program, started


@pytest.fixture(autouse=True)
def _own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No credentials of the user's, a cache of its own, and a lock whose holder is seen to live within a moment."""
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "HF_TOKEN_PATH"):
        monkeypatch.setenv(name, str(tmp_path / "nothing"))
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(lease, "BEAT", 0.1)
    monkeypatch.setattr(lease, "POLL", 0.02)
    monkeypatch.setattr(lease, "SETTLE", 0.05)


@pytest.fixture
def always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a bucket said is never taken for granted, so that nothing waits until it may be asked again."""
    monkeypatch.setattr(bucket, "FRESH", 0.0)


def _credentials(monkeypatch: pytest.MonkeyPatch, endpoint: str, key: str, secret: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    monkeypatch.setenv("AWS_REGION", "us-east-1")


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    """A store of buckets in this process, which keeps conditions."""
    missing.module("obstore")
    server = S3()
    _credentials(monkeypatch, server.address, server.key, "a-secret-that-nobody-may-see")
    yield server
    server.close()


@pytest.fixture
def web() -> Iterator[Web]:
    server = Web()
    yield server
    server.close()


@pytest.fixture(scope="session")
def s3rver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of s3rver, which keeps no conditions; it has a bucket `photos`."""
    missing.module("obstore")
    folder, port = tmp_path_factory.mktemp("s3rver"), free_port()
    command = [str(program("s3rver", "s3rver")), "-a", "127.0.0.1", "-p", str(port), "-d", str(folder)]
    with started([*command, "--configure-bucket", "photos"], port, folder):
        yield port


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of Microsoft's emulator, which keeps conditions; it has a container `photos`."""
    missing.module("obstore")
    folder, port = tmp_path_factory.mktemp("azurite"), free_port()
    command = [str(program("azurite", "azurite-blob")), "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    more = ["--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
    with started([*command, *more], port, folder):
        make_container(port, "photos")
        yield port


@pytest.fixture(params=["s3", "s3rver", "azurite", "google"])
def store_of_buckets(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a bucket, in a store that keeps conditions, in one that does not, in Azure's and in one as
    Google's, which keeps them by generations."""
    if request.param == "google":
        server = request.getfixturevalue("s3")
        server.key = ""
        account = {"gcs_base_url": server.address, "disable_oauth": True, "client_email": "", "private_key": ""}
        monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", json.dumps({**account, "private_key_id": ""}))
        return "gs://photos"
    if request.param == "azurite":
        monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
        monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", f"http://127.0.0.1:{request.getfixturevalue('azurite')}")
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "devstoreaccount1")
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", AZURITE_KEY)
        return "az://photos"
    if request.param == "s3rver":
        _credentials(monkeypatch, f"http://127.0.0.1:{request.getfixturevalue('s3rver')}", "S3RVER", "S3RVER")
    else:
        request.getfixturevalue("s3")
    return "s3://photos"
