"""Images at addresses: the cases are those of a folder, and what cannot be read is a row that says why."""

from __future__ import annotations

import io
import json
import re
import unicodedata
import urllib.request
from collections.abc import Mapping
from http.client import HTTPMessage
from pathlib import Path

import cv2
import numpy as np
import pytest

import instar
from instar.case import Case, read_input
from instar.datasets import dataset
from instar.reading import MAX_PIXELS, Unreadable
from instar.remote import Missing, Unreachable, objects, web
from instar.report import load_source
from instar.secrets import plain_address, without_secrets
from tests.cli.conftest import typed
from tests.remote.servers import PAGE, S3, Answer, Web
from tests.toys import rectangles, scene, write_scenes

SIGNATURE = "0123456789abcdef0123456789abcdef"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "WAIT", 0.01)


def png(seed: int = 0) -> bytes:
    return bytes(cv2.imencode(".png", cv2.cvtColor(scene(seed, (48, 36)).pixels, cv2.COLOR_RGB2BGR))[1])


class Pages(Web):
    """A web server with some files."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)
        super().__init__()

    def answer(
        self, method: str, path: str, headers: Mapping[str, str], content: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        if path.partition("?")[0] not in self.files:
            raise Answer(404)
        return 200, {}, self.files[path.partition("?")[0]]


def ids(spelling: str) -> list[str]:
    return [case.id for case in dataset(spelling).cases()]


def run(address: str, out: Path, rules: str = "gamma(0.5)", **more: object) -> instar.Run:
    return instar.run(rectangles, rules, address, out=out, workers=0, **more)  # type: ignore[arg-type]


# --- buckets -----------------------------------------------------------------------------------------


def test_names_below_an_address_become_ids_as_in_a_folder(s3: S3) -> None:
    """Spaces, accents in both ways of writing, signs that addresses escape; nothing hidden, nothing else."""
    decomposed = unicodedata.normalize("NFD", "é")
    names = ["a b/ä.png", f"{decomposed}.jpg", "é.jpg", "50%25 #1?.PNG", "plus+.webp", "deep/er/x.tif"]
    others = [".hidden/x.png", "sub/.x.png", "notes.txt", "sub/"]
    s3.objects = {f"photos/in/{name}": png() for name in (*names, *others)} | {"photos/inner/x.png": png()}
    assert sorted(ids("s3://photos/in")) == sorted(
        ["a b/ä.png", "é.jpg", "é.jpg#2", "50%25 #1?.PNG", "plus+.webp", "deep/er/x.tif"]
    )
    assert ids("s3://photos/in/") == ids("s3:/photos/in"), "a path of an address has lost a slash"
    for case in dataset("s3://photos/in").cases():
        assert read_input(case)[0].size == (48, 36), case.path


def test_a_run_of_a_bucket_has_the_rows_of_a_run_of_its_folder(s3: S3, tmp_path: Path) -> None:
    folder = write_scenes(tmp_path / "photos", 3, (48, 36))
    s3.objects = {f"photos/{path.name}": path.read_bytes() for path in folder.iterdir()}
    there, here = run("s3://photos", tmp_path / "there"), run(str(folder), tmp_path / "here")
    assert there.predictions().drop("seconds").equals(here.predictions().drop("seconds"))
    assert there.cases().drop("path").equals(here.cases().drop("path")), "ids, hashes, sizes"
    assert there.cases()["path"].to_list() == [f"s3://photos/{number:03d}.png" for number in range(3)]
    assert there.manifest.datasets[0].name == "remote(s3://photos)"


def test_what_cannot_be_read_is_a_row_that_says_why(s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty, larger than allowed, gone since it was listed, no image."""
    monkeypatch.setenv(MAX_PIXELS, "2000")
    s3.objects = {"photos/empty.png": b"", "photos/gone.png": png(), "photos/good.png": png(), "photos/text.png": b"?"}
    s3.objects["photos/huge.png"] = bytes(8 * 2000 + (1 << 20) + 1)
    images = dataset("s3://photos")
    assert len(list(images.cases())) == 5
    del s3.objects["photos/gone.png"]
    done = instar.run(rectangles, "gamma(0.5)", images, out=tmp_path / "run", workers=0)
    reasons = dict(done.cases().select("case", "message").iter_rows())
    assert reasons.pop("good.png") is None
    assert reasons == {
        "empty.png": "s3://photos/empty.png: the file is empty",
        "gone.png": "s3://photos/gone.png: there is no such object",
        "huge.png": "s3://photos/huge.png: 1,064,577 bytes; at most 1,064,576 are read of such an object (the "
        f"environment variable {MAX_PIXELS})",
        "text.png": reasons["text.png"],
    }
    assert "s3://photos/text.png: " in reasons["text.png"]


def test_a_limit_lists_no_more_than_it_takes(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten of ten million images are no reason to list them all; and what was listed is not asked for again."""
    s3.objects = {f"photos/{number:04d}.png": png() for number in range(60)}
    monkeypatch.setattr(objects, "PAGE", PAGE)
    cases = dataset("s3://photos").cases
    assert [case.id for case, _ in zip(cases(), range(4), strict=False)] == [f"{n:04d}.png" for n in range(4)]
    few = s3.counted("list-type")["GET"]
    assert few <= 3
    assert len(list(cases())) == len(list(cases())) == 60
    assert s3.counted("list-type")["GET"] == 20, "each page once"


def test_a_store_that_fails_twice_is_asked_a_third_time(s3: S3, tmp_path: Path) -> None:
    s3.objects = {"photos/a.png": png()}
    failures = iter([500, 503])

    def fail(method: str, path: str) -> None:
        if path.endswith("a.png") and (status := next(failures, None)):
            raise Answer(status, "InternalError")

    s3.before = fail
    assert run("s3://photos", tmp_path / "run").cases()["status"].to_list() == ["ok"]
    assert s3.counted("a.png")["GET"] == 3


def test_who_is_refused_or_not_answered_is_told_so_without_a_secret(
    s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAWRONGWRONG")
    with pytest.raises(Unreachable, match="the store refused the credentials of this environment") as refused:
        dataset("s3://photos")
    assert "AKIAWRONGWRONG" not in str(refused.value)
    monkeypatch.setattr(objects, "_RETRY", {"max_retries": 0})
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(Unreachable, match=r"s3://photos/: nothing answers at http://127\.0\.0\.1:1, after \d+ retries"):
        dataset("s3://photos")


@pytest.mark.parametrize(("scheme", "variable"), [("s3", "AWS_PROFILE"), ("az", "AZURE_STORAGE_ACCOUNT_NAME")])
def test_who_has_no_credentials_is_told_which_to_set(
    s3: S3, monkeypatch: pytest.MonkeyPatch, scheme: str, variable: str
) -> None:
    """Nothing is given: obstore asks whether this machine is one of a cloud, which is no answer for a user."""
    monkeypatch.setattr(objects, "_RETRY", {"max_retries": 0})
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AZURE_STORAGE_ACCOUNT_NAME"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(Unreachable, match=f"nor the usual files have credentials for it; set .*{variable}"):
        dataset(f"{scheme}://photos")


def test_keys_come_from_the_file_of_aws_too(s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment's first, then the profile; what the file has is a secret like any other."""
    s3.objects = {"photos/a.png": png()}
    file = tmp_path / "credentials"
    file.write_text(
        f"[default]\naws_access_key_id = OTHER\naws_secret_access_key = x\n[work]\naws_access_key_id = {s3.key}\n"
        "aws_secret_access_key = from-a-file-of-keys\n",
        "utf-8",
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(Unreachable, match="refused"):
        dataset("s3://photos")
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert ids("s3://photos") == ["a.png"]
    assert "from-a-file-of-keys" not in without_secrets("the key is from-a-file-of-keys")


def test_without_obstore_one_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.setenv("AWS_REGION", "nowhere-1")  # a bucket that nobody asked for before
    with pytest.raises(Unreachable, match=re.escape("pip install 'instar[cloud]'")):
        dataset("s3://photos")


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("s3://photos/instances.json", "copy annotations"),
        ("https://example.org/street.mp4", "copy annotations"),
        ("https://example.org/photos/", "does not list what it has"),
        ("s3://photos", "there are no images below s3://photos"),
        ('coco("s3://photos/instances.json")', "this reader takes what lies on a disk"),
        ('folder("s3://photos")', "this reader takes what lies on a disk"),
        ("hf://photos", "hf://datasets/OWNER/NAME"),
    ],
)
def test_what_is_not_read_at_an_address_is_refused_in_words(s3: S3, address: str, reason: str) -> None:
    with pytest.raises((ValueError, OSError), match=reason):
        dataset(address)


# --- web servers -------------------------------------------------------------------------------------


def test_an_image_and_a_list_at_a_web_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are addresses, or relative to the list; two images of one name differ in their ids."""
    server = Pages({"/in/a%20b.png": png(), "/b.png": png(1)})
    server.files["/in/list.txt"] = f"# two\na b.png\n{server.address}/b.png?v=1\n{server.address}/b.png?v=2\n".encode()
    assert ids(f"{server.address}/in/a b.png") == ["a b.png"]
    cases = list(dataset(f"{server.address}/in/list.txt").cases())
    assert [case.id for case in cases] == ["a b.png", f"{server.address}/b.png", f"{server.address}/b.png#2"]
    (tmp_path / "here.txt").write_text(f"{server.address}/b.png?v=1\n", "utf-8")
    cases += dataset(tmp_path / "here.txt").cases()
    assert [read_input(case)[0].size for case in cases] == [(48, 36)] * 4
    server.close()


def test_a_signature_is_nowhere_in_what_a_run_stores(tmp_path: Path) -> None:
    """The query of a signed address opens the object for whoever reads it."""
    server = Pages({"/good.png": png(), "/text.png": b"no image"})
    lines = [f"{server.address}/{name}?X-Amz-Signature={SIGNATURE}" for name in ("good.png", "text.png", "gone.png")]
    (tmp_path / "list.txt").write_text("\n".join(lines), "utf-8")
    runs = [run(str(tmp_path / "list.txt"), tmp_path / "list"), run(lines[0], tmp_path / "one")]
    assert runs[0].cases()["status"].to_list() == ["error", "ok", "error"]
    assert any(SIGNATURE in path for _, path, _ in server.requests), "it was sent"
    for done in runs:
        rows = repr([table.rows() for table in (done.cases(), done.predictions(), done.verdicts())])
        files = [path.read_bytes() for path in done.folder.rglob("*") if path.is_file()]
        assert SIGNATURE not in rows and not any(SIGNATURE.encode() in content for content in files)
    with pytest.raises(Unreadable) as unread:
        read_input(next(dataset(tmp_path / "list.txt").cases()))
    assert SIGNATURE not in str(unread.value)
    server.close()


def test_a_web_server_that_fails_is_asked_again_and_one_that_refuses_is_not() -> None:
    server = Pages({"/a.png": png()})
    statuses = iter([500, 429, 503])

    def fail(method: str, path: str) -> None:
        if status := next(statuses, None):
            raise Answer(status)

    server.before = fail
    assert web.web_bytes(f"{server.address}/a.png", 1 << 20) == png()
    assert len(server.requests) == 4
    statuses = iter([403])
    with pytest.raises(Unreachable, match=r"a\.png: you may not read it \(HTTP 403\)"):
        web.web_bytes(f"{server.address}/a.png", 1 << 20)
    assert len(server.requests) == 5
    with pytest.raises(Missing):
        web.web_bytes(f"{server.address}/b.png", 1 << 20)
    server.close()
    with pytest.raises(Unreachable, match=r"could not be reached \(Connection refused\), 5 times"):
        web.web_bytes(f"{server.address}/a.png", 1 << 20)


def test_an_answer_that_breaks_off_is_asked_for_again() -> None:
    class Broken(Pages):
        def answer(
            self, method: str, path: str, headers: Mapping[str, str], content: bytes
        ) -> tuple[int, dict[str, str], bytes]:
            whole = len(self.requests) > 1
            return 200, {"Content-Length": str(len(png())), "Connection": "close"}, png() if whole else png()[:50]

    server = Broken({})
    assert web.web_bytes(f"{server.address}/a.png", 1 << 20) == png()
    server.close()


@pytest.mark.parametrize(
    "address",
    [
        *("s3://me:hunter2@photos/sub", "s3://me:hunter2@photos/a.jpg", "gs://me:hunt/er2@photos/sub"),
        *("hf://me:hunter2@datasets/a/b", "https://me:hunter2@127.0.0.1/a.jpg", "az://me:hunter2@photos/list.txt"),
    ],
)
def test_a_password_in_an_address_is_refused_and_not_repeated(s3: S3, tmp_path: Path, address: str) -> None:
    for command in (
        ("run", "tests.toys:rectangles", "mirror(h)", address, "--out", tmp_path / "run", "--workers", 0),
        ("run", "tests.toys:rectangles", "mirror(h)", "sample", "--out", address, "--workers", 0),
        ("run", "tests.toys:rectangles", "insert", "sample", "--pool", address, "--out", tmp_path / "run"),
        *(("show", address), ("view", address, "--no-browser"), ("report", address), ("repair-run", address)),
        ("check", "tests.toys:rectangles", address),
    ):
        result = typed(*command)
        assert result.code == 2, (command, result)
        assert "er2" not in result.stdout + result.stderr, (command, result)
    assert not s3.requests


def test_addresses_without_what_may_be_a_key() -> None:
    for address, shown in {
        "https://me:word@host/a.png?x=1#y": "https://host/a.png",
        "http://host?token=1": "http://host",
        "s3://bucket/what?.png": "s3://bucket/what?.png",
        "photos/what?.png": "photos/what?.png",
    }.items():
        assert plain_address(address) == shown
    message = f"GET https://host/a.png?x=1&X-Goog-Signature={SIGNATURE} failed, see https://docs/page?chapter=2"
    assert without_secrets(message) == "GET https://host/a.png failed, see https://docs/page?chapter=2"
    with pytest.raises(Unreadable, match="a name and a password in an address are not used"):
        read_input(Case("a", path="https://me:word@host/a.png"))


# --- Hugging Face ------------------------------------------------------------------------------------


class Hub(Web):
    """The files of one dataset, listed by pages, each of which lies at another host."""

    def __init__(self, elsewhere: str) -> None:
        self.elsewhere, self.names = elsewhere, ["train/b.png", "train/a.png", "README.md", "other/c.png"]
        super().__init__()

    def answer(
        self, method: str, path: str, headers: Mapping[str, str], content: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        if path.startswith("/api/datasets/me/photos/tree/main"):
            second = "cursor=2" in path
            page = self.names[2:] if second else self.names[:2]
            entries = [{"type": "file", "path": name} for name in page] + [{"type": "directory", "path": "train"}]
            following = f'<{self.address}{path}&cursor=2>; rel="next"'
            return 200, {} if second else {"Link": following}, json.dumps(entries).encode()
        if path.startswith("/datasets/me/photos/resolve/main/"):
            raise Answer(302, headers={"Location": f"{self.elsewhere}/{path.rpartition('/')[2]}?Signature={SIGNATURE}"})
        raise Answer(401)


def test_images_at_hugging_face_are_read_with_a_token_that_only_it_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Pages({"/a.png": png(), "/b.png": png(1)})
    hub = Hub(files.address)
    monkeypatch.setenv("HF_ENDPOINT", hub.address)
    monkeypatch.setenv("HF_TOKEN", "hf_a-token-of-mine")
    done = run("hf://datasets/me/photos/train", tmp_path / "run")
    assert done.cases().select("case", "path", "status").rows() == [
        (f"{name}.png", f"hf://datasets/me/photos/train/{name}.png", "ok") for name in "ab"
    ]
    assert {headers.get("authorization") for _, _, headers in hub.requests} == {"Bearer hf_a-token-of-mine"}
    assert {headers.get("authorization") for _, _, headers in files.requests} == {None}
    with pytest.raises(Unreachable, match=r"hf://datasets/me/secret: you may not read it \(HTTP 401\)"):
        dataset("hf://datasets/me/secret")
    hub.close()
    files.close()


def test_a_list_at_hugging_face_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(Hub):
        length = 0

        def answer(
            self, method: str, path: str, headers: Mapping[str, str], content: bytes
        ) -> tuple[int, dict[str, str], bytes]:
            return 200, {"Link": f'<{self.address}{path}>; rel="next"'}, b"[]" + b" " * self.length

    hub = Endless("")
    monkeypatch.setenv("HF_ENDPOINT", hub.address)
    monkeypatch.setattr(web, "MOST_PAGES", 5)
    for hub.length, pages in ((0, 5), (1 << 20, 2)):
        monkeypatch.setattr(web, "MOST_LISTED", 3 << 19)
        hub.requests.clear()
        with pytest.raises(Unreachable, match="hf://datasets/me/photos: the list of its files is too long"):
            dataset("hf://datasets/me/photos")
        assert len(hub.requests) == pages
    hub.close()


@pytest.mark.parametrize(
    ("before", "after", "followed"),
    [
        *(("https", "http", False), ("https", "ftp", False), ("http", "ftp", False), ("https", "file", False)),
        *(("http", "https", True), ("http", "http", True), ("https", "https", True)),
    ],
)
def test_redirects_lead_to_encrypted_connections_alone(before: str, after: str, followed: bool) -> None:
    request = urllib.request.Request(f"{before}://here.example/a.png")
    redirects, headers, location = web._Redirects(), HTTPMessage(), f"{after}://elsewhere.example/a.png"
    if followed:
        led = redirects.redirect_request(request, io.BytesIO(), 302, "Found", headers, location)
        assert led is not None and led.full_url == location
    else:
        with pytest.raises(Unreachable, match=f"redirects to {after}://"):
            redirects.redirect_request(request, io.BytesIO(), 302, "Found", headers, location)


def test_a_redirect_to_ftp_is_not_followed() -> None:
    ftp, server = Pages({}), Pages({})

    def lead_away(method: str, path: str) -> None:
        raise Answer(302, headers={"Location": f"ftp{ftp.address.removeprefix('http')}/a.png"})

    server.before = lead_away
    with pytest.raises(Unreachable, match="redirects to ftp://"):
        web.web_bytes(f"{server.address}/a.png", 1 << 20)
    assert len(server.requests) == 1
    server.close()
    ftp.close()


# --- pictures of a run -------------------------------------------------------------------------------


def test_an_address_that_only_a_run_folder_names_is_not_asked(s3: S3, tmp_path: Path) -> None:
    """Whoever sends a run folder would learn who looks at it, and could have any server asked."""
    s3.objects = {"photos/in/000.png": png()}
    done = run("s3://photos/in", tmp_path / "run")
    requests_before = len(s3.requests)
    with pytest.raises(Unreadable, match=r"s3://photos/in/000\.png: the run names this address, and you did not"):
        load_source(done, "000.png")
    assert len(s3.requests) == requests_before
    for named in ("s3://photos/in", Path("s3://photos")):
        assert load_source(done, "000.png", dataset=named).image.size == (48, 36)
    copied = tmp_path / "copies"
    copied.mkdir()
    (copied / "000.png").write_bytes(png())
    assert load_source(done, "000.png", dataset=copied).image.size == (48, 36)
    assert np.array_equal(load_source(done, "000.png", dataset=copied).image.pixels, scene(0, (48, 36)).pixels)
