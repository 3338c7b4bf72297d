"""Services over HTTP as systems, against a server that fails in every way."""

from __future__ import annotations

import base64
import email.utils
import json
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import cv2
import numpy as np
import pytest

import instar
from instar.image import Image
from instar.outputs.caption import Caption
from instar.outputs.detections import Detections
from instar.relations import rule
from instar.suites import Suite
from instar.systems import System, system
from instar.systems.http import TimedOut
from tests.clocks import ENOUGH
from tests.missing import absent

KEY = "sk-7f3a/9c+ok"
"""A secret, with characters that JSON and addresses write in another way."""
PICTURE = Image(np.random.default_rng(0).integers(0, 256, (30, 40, 3), dtype=np.uint8))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    given = b""

    def do_POST(self) -> None:
        begun = time.monotonic()
        self.given = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {key.lower(): value for key, value in self.headers.items()}
        step = self.server.noted(headers, self.given, begun)  # type: ignore[attr-defined]
        try:
            step(self)
        except OSError:  # nobody listens any more
            self.close_connection = True

    do_PUT = do_POST

    def log_message(self, format: str, *args: Any) -> None:
        pass


Step = Callable[[Handler], None]


class Server:
    """Answers each request with the next step; the last one stays."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.seen: list[tuple[dict[str, str], bytes, float]] = []
        """Headers, body and time of each request."""
        self.over = threading.Event()
        self._lock = threading.Lock()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.noted = self._noted  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self.http.serve_forever, args=(0.01,))
        self._thread.start()

    def _noted(self, *request: Any) -> Step:
        with self._lock:
            self.seen.append(request)
            return self.steps[0] if len(self.steps) == 1 else self.steps.pop(0)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_port}/caption"

    def close(self) -> None:
        self.over.set()
        self.http.shutdown()
        self.http.server_close()
        self._thread.join()


def says(body: object, status: int = 200, **headers: str) -> Step:
    """Answer with this: bytes as they are, anything else as JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    def step(to: Handler) -> None:
        to.send_response(status)
        to.send_header("Content-Length", str(len(data)))
        for key, value in headers.items():
            to.send_header(key.replace("_", "-"), value)
        to.end_headers()
        to.wfile.write(data)

    return step


DOG = says({"result": {"caption": "a dog", "confidence": 0.75}})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CAPTION_KEY", KEY)
    made = Server()
    yield made
    made.close()


PLAIN = """
url = "{url}"
version = "1"
deterministic = true
timeout = {timeout}
backoff = 0.001
{more}
[headers]
Authorization = "Bearer ${{CAPTION_KEY}}"
[answer]
caption = "result.caption"
score = "result.confidence"
"""
JSON = 'json = \'{"image": "{image_base64}"}\''


def template(
    server: Server,
    folder: Path,
    more: str = JSON,
    *,
    timeout: float = ENOUGH,
    text: str = PLAIN,
    name: str = "service.toml",
) -> str:
    (folder / name).write_text(text.format(url=server.url, more=more, timeout=timeout), "utf-8")
    return f'http("{folder / name}")'


@pytest.fixture
def loaded(server: Server, tmp_path: Path) -> Callable[..., System]:
    return lambda more="", **told: system(template(server, tmp_path, f"{JSON}\n{more}", **told))


def only(found: System, image: Image = PICTURE) -> Caption:
    [answer] = found.answer([image], [0])
    assert isinstance(answer, Caption), answer
    return answer


def failure(found: System) -> str:
    """What an input costs that failed; without any secret."""
    try:
        [answer] = found.answer([PICTURE], [0])
    except (RuntimeError, ValueError) as error:
        answer = error
    assert isinstance(answer, Exception), answer
    assert KEY not in str(answer)
    assert KEY[:9] not in str(answer)
    return str(answer)


# --- what is sent ----------------------------------------------------------------------------------


def test_json_request(server: Server, tmp_path: Path) -> None:
    body = {
        "prompt": 'say {"caption": …} for {width}×{height}',
        "size": ["{width}", "{height}"],
        "n": 1,
        "image": {"url": "{image_data_url}"},
        "{width}": None,
    }
    server.steps = [DOG]
    found = system(template(server, tmp_path, f"json = '''{json.dumps(body)}'''"))
    caption = only(found)
    assert (caption.text, caption.score) == ("a dog", 0.75)
    headers, sent, _ = server.seen[0]
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["content-type"] == "application/json"
    told = json.loads(sent)
    assert (told["prompt"], told["size"], told["n"]) == ('say {"caption": …} for 40×30', [40, 30], 1)
    assert "{width}" in told
    start, _, data = told["image"]["url"].partition(",")
    assert start == "data:image/png;base64"
    picture = cv2.imdecode(np.frombuffer(base64.b64decode(data), np.uint8), cv2.IMREAD_COLOR)
    assert picture is not None
    assert np.array_equal(picture[..., ::-1], PICTURE.pixels)  # bit for bit, red first


def test_multipart_request(server: Server, tmp_path: Path) -> None:
    text = PLAIN + (
        '[multipart]\nfile = "{{image}}"\nmodel = "größer"\nsize = "{{width}}x{{height}}"\nagain = "{{image_base64}}"\n'
    )
    server.steps = [DOG]
    assert only(system(template(server, tmp_path, "", text=text))).text == "a dog"
    headers, sent, _ = server.seen[0]
    message = BytesParser().parsebytes(b"Content-Type: " + headers["content-type"].encode() + b"\r\n\r\n" + sent)
    payload = cast("list[Message]", message.get_payload())
    parts: dict[object, Any] = {part.get_param("name", header="content-disposition"): part for part in payload}
    assert parts["file"].get_content_type() == "image/png"
    assert parts["file"].get_filename() == "image.png"
    assert parts["file"].get_payload(decode=True).startswith(b"\x89PNG")
    assert parts["model"].get_payload(decode=True).decode() == "größer"
    assert parts["size"].get_payload() == "40x30"
    assert base64.b64decode(parts["again"].get_payload()) == parts["file"].get_payload(decode=True)


def test_raw_request(server: Server, tmp_path: Path) -> None:
    text = PLAIN.replace("[headers]", '[headers]\nContent-Type = "application/octet-stream"')
    server.steps = [DOG]
    more = 'raw = true\nmethod = "PUT"'
    smooth = Image(np.full((30, 40, 3), (200, 100, 30), np.uint8))
    found = system(template(server, tmp_path, more, text=text + '[image]\nformat = "jpeg"\nquality = 90\n'))
    only(found, smooth)
    headers, sent, _ = server.seen[0]
    assert headers["content-type"] == "application/octet-stream"
    picture = cv2.imdecode(np.frombuffer(sent, np.uint8), cv2.IMREAD_COLOR)
    assert picture is not None
    assert sent.startswith(b"\xff\xd8")
    assert np.abs(picture[..., ::-1].astype(int) - smooth.pixels).max() < 5


def test_detections(server: Server, tmp_path: Path) -> None:
    text = PLAIN.split("[answer]")[0] + (
        '[answer]\nboxes = "objects.*.box"\nlabels = "objects.*.name"\nscores = "objects.*.sure"\n'
    )
    objects = [{"box": [1, 2, 3.5, 4], "name": "dog", "sure": 0.5}, {"box": [0, 0, 9, 9], "name": "cat", "sure": 1}]
    wrong = ({"box": [1, "2"]}, {"name": 7}, {"box": [9, 2, 3, 4]})
    server.steps = [says({"objects": each}) for each in (objects, [], *([{**objects[0], **one}] for one in wrong))]
    found = system(template(server, tmp_path, f'kind = "detections"\n{JSON}', text=text))
    assert found.kind == "detections"
    [answer] = found.answer([PICTURE], [0])
    assert isinstance(answer, Detections)
    assert answer.labels == ("dog", "cat")
    assert answer.boxes.tolist() == [[1, 2, 3.5, 4], [0, 0, 9, 9]]
    assert answer.scores.tolist() == [0.5, 1]
    [empty] = found.answer([PICTURE], [0])
    assert isinstance(empty, Detections)
    assert len(empty) == 0
    assert 'boxes is [[1, "2"]]; it takes boxes [x0, y0, x1, y1] in pixels (any number × 4)' in (said := failure(found))
    assert "boxes is at objects.*.box" in said
    assert "one of labels is 7; it takes a text" in failure(found)
    assert "x1 < x0" in failure(found)


def test_a_message_quotes_no_part_of_a_secret(server: Server, loaded: Callable[..., System]) -> None:
    """A message quotes the first 80 characters of a wrong value, which end in the middle of the key here."""
    server.steps = [says({"result": {"caption": ["x" * 70 + KEY.upper()], "confidence": 1}})]
    message = failure(loaded())
    assert "the answer holds the value of CAPTION_KEY" in message, "in capitals, too"
    assert KEY.upper()[:6] not in message


def test_a_secret_of_the_environment_that_a_service_knows_is_not_cut_in_half(
    server: Server, loaded: Callable[..., System], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in no template, and what is stored is cut: its beginning would not be recognised any more."""
    monkeypatch.setenv("DATABASE_PASSWORD", "abcdefgh-12345")
    server.steps = [says(b"x" * 192 + b"abcdefgh-12345", 400)]
    assert "abc" not in failure(loaded())


@pytest.mark.parametrize(
    "echo",
    [base64.b64encode(KEY.encode()).decode(), "".join(f"\\u{ord(sign):04x}" for sign in KEY)],
    ids=["in base64", "in escapes"],
)
def test_an_answer_that_echoes_the_key_in_another_spelling_is_refused(
    echo: str, server: Server, loaded: Callable[..., System]
) -> None:
    """A caption is stored and shared: whoever reads it could read the key."""
    server.steps = [says({"result": {"caption": f"no key of ours: {echo}", "confidence": 1}})]
    message = failure(loaded())
    assert "the answer holds the value of CAPTION_KEY" in message and echo not in message


# --- what goes wrong and comes right ---------------------------------------------------------------


def closes(to: Handler) -> None:
    to.connection.shutdown(socket.SHUT_RDWR)
    to.close_connection = True


def breaks_off(to: Handler) -> None:
    to.send_response(200)
    to.send_header("Content-Length", "1000")
    to.end_headers()
    to.wfile.write(b'{"result": {"caption": "a d')
    closes(to)


def breaks_off_in_a_chunk(to: Handler) -> None:
    to.send_response(200)
    to.send_header("Transfer-Encoding", "chunked")
    to.end_headers()
    to.wfile.write(b"40\r\n{")
    closes(to)


def speaks_no_http(to: Handler) -> None:
    to.wfile.write(b"SSH-2.0-OpenSSH\r\n")
    closes(to)


@pytest.mark.parametrize(
    "first",
    [
        says(b"oops", 500),
        says(b"oops", 503),
        says(b"slow down", 429, Retry_After="0"),
        says(b"", 408),
        says(b"", 425),
        says(b"", 429, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"),
        says(b"", 503, Retry_After="soon"),
        closes,
        breaks_off,
        breaks_off_in_a_chunk,
        speaks_no_http,
    ],
)
def test_what_may_pass_is_tried_again(server: Server, loaded: Callable[..., System], first: Step) -> None:
    server.steps = [first, first, DOG]
    assert only(loaded()).text == "a dog"
    assert len(server.seen) == 3
    assert len({sent for _, sent, _ in server.seen}) == 1


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (says(b"oops", 500), "no answer after 3 tries in .* s; the service answered 500 Internal Server Error: 'oops'"),
        (says(b"", 503), "answered 503"),
        (says(b"", 429), "answered 429"),
        (closes, "the connection failed: RemoteDisconnected"),
        (breaks_off, "the answer broke off 973 bytes before its end"),
        (breaks_off_in_a_chunk, "the connection failed: IncompleteRead"),
        (speaks_no_http, "BadStatusLine: SSH-2.0"),
    ],
)
def test_in_the_end_it_is_given_up(server: Server, loaded: Callable[..., System], step: Step, message: str) -> None:
    server.steps = [step]
    found = loaded("retries = 2")
    with pytest.raises(RuntimeError, match=message) as raised:
        found.answer([PICTURE], [0])
    assert getattr(raised.value, "status", "error") == "error"
    assert len(server.seen) == 3
    server.steps = [DOG]
    assert only(found).text == "a dog"  # one input's failure is not the next one's


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (says(b"who?", 400), "the service answered 400 Bad Request: 'who\\?'"),
        (says(b"", 401), "answered 401"),
        (says(b"", 403), "403"),
        (says(b"", 404), "404 Not Found"),
        (says(b"x" * 500, 413), "413 .*: 'x{200}…'$"),
        (
            says(b"<html>hello</html>", Content_Type="text/html"),
            "the answer is no JSON: .*answered '<html>hello</html>'",
        ),
        (says(b""), "the answer is no JSON"),
        (says(b"\xff\xfe\x00"), "the answer is no JSON"),
        (says(b"[" * 100_000), "the answer is no JSON"),
        (says({}), "there is no 'result' in the answer: it has no fields"),
        (says({"error": "out of credit"}), "no 'result' in the answer: it has error; .*out of credit"),
        (says({"result": [1, 2]}), "there is no 'caption' in result: it is a list of 2"),
        (says({"result": "a dog"}), "no 'caption' in result: it is neither an object nor a list"),
        (
            says({"result": {"caption": None, "confidence": 1}}),
            r"of a caption is null; .* \(caption is at result.caption, score",
        ),
        (
            says({"result": {"caption": ["a dog"], "confidence": 1}}),
            r'the text of a caption is \["a dog"\]; it takes a text \(caption is at result.caption',
        ),
        (says(b'{"result": {"caption": "\\ud83d", "confidence": 1}}'), "the text of a caption is .* no text in"),
        (says({"result": {"caption": "a dog"}}), "there is no 'confidence' in result: it has caption"),
        (
            says({"result": {"caption": "a dog", "confidence": "high"}}),
            r'score is "high"; it takes a number \(.*score is at result.confidence\)',
        ),
        (
            says({"result": {"caption": "a dog", "confidence": float("nan")}}),
            r"score holds NaN \(.*score is at result.confidence\)",
        ),
        (
            says({"result": {"caption": "a dog", "confidence": 10**400}}),
            "a number has 401 digits, at most 40 are read; the service",
        ),
        (says({"result": {"caption": "a dog", "confidence": 1}, "more": "x" * 5000}), "longer than most_bytes = 2000"),
    ],
)
def test_what_will_not_pass_is_said_at_once(
    server: Server, loaded: Callable[..., System], step: Step, message: str
) -> None:
    server.steps = [step]
    found = loaded("most_bytes = 2000" if "most_bytes" in message else "")
    with pytest.raises((RuntimeError, ValueError), match=message):
        found.answer([PICTURE], [0])
    assert len(server.seen) == 1


def test_an_endless_answer_is_cut(server: Server, loaded: Callable[..., System]) -> None:
    def endless(to: Handler) -> None:
        to.send_response(200)
        to.end_headers()
        while not server.over.is_set():
            to.wfile.write(b"x" * 10_000)

    server.steps = [endless]
    assert failure(loaded("most_bytes = 20000")) == "the answer is longer than most_bytes = 20000"


def test_captions_in_any_script(server: Server, loaded: Callable[..., System]) -> None:
    server.steps = [says({"result": {"caption": " 一只狗 🐕\n auf einer Bank ", "confidence": 1}})]
    assert only(loaded()).text == "一只狗 🐕 auf einer Bank"


# --- time ------------------------------------------------------------------------------------------


def hangs(server: Server) -> Step:
    return lambda to: server.over.wait(ENOUGH) and None  # type: ignore[return-value]


def drips(server: Server, head: bool) -> Step:
    """One byte at a time, each well within a socket's own timeout."""

    def step(to: Handler) -> None:
        if not head:
            to.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not server.over.wait(0.01):
            to.wfile.write(b"H" if head else b" ")

    return step


@pytest.mark.parametrize("way", ["hangs", "drips its head", "drips its body"])
def test_too_slow_is_a_timeout(server: Server, loaded: Callable[..., System], way: str) -> None:
    server.steps = [hangs(server) if way == "hangs" else drips(server, "head" in way)]
    service = loaded("retries = 1", timeout=0.4)
    begun = time.monotonic()
    with pytest.raises(TimedOut, match=r"no answer after 2 tries in .* s; it did not answer within 0.4 s") as raised:
        service.answer([PICTURE], [0])
    assert raised.value.status == "timeout"
    assert time.monotonic() - begun >= 0.8


def test_a_service_that_was_slow_once(server: Server, loaded: Callable[..., System]) -> None:
    server.steps = [hangs(server), DOG]
    assert only(loaded(timeout=5)).text == "a dog"


def test_retry_after_is_honoured(server: Server, loaded: Callable[..., System]) -> None:
    server.steps = [says(b"", 429, Retry_After="0.3"), DOG]
    assert only(loaded()).text == "a dog"
    assert server.seen[1][2] - server.seen[0][2] >= 0.3
    server.seen.clear()
    server.steps = [says(b"", 429, Retry_After="100"), DOG]
    assert "no answer after 1 try in " in (said := failure(loaded("patience = 10")))
    assert said.endswith("answered 429 Too Many Requests: '', and asks to wait 100 s")
    assert len(server.seen) == 1, "nobody waits for what will not be waited out"
    later = email.utils.formatdate(time.time() + 10_000, usegmt=True)
    server.steps = [says(b"", 503, Retry_After=later)]
    assert "asks to wait 9" in failure(loaded("patience = 10"))


def test_patience_ends_the_tries(server: Server, loaded: Callable[..., System]) -> None:
    server.steps = [hangs(server)]
    found = loaded("retries = 1000\npatience = 0.5", timeout=0.15)
    begun = time.monotonic()
    with pytest.raises(TimedOut):
        found.answer([PICTURE], [0])
    assert time.monotonic() - begun >= 0.3


@pytest.mark.parametrize("rate", ["per_second = 20", "per_minute = 1200", "per_second = 100\nper_minute = 1200"])
def test_rate_is_kept_over_threads_and_retries(server: Server, loaded: Callable[..., System], rate: str) -> None:
    server.steps = [says(b"", 500), *[DOG] * 9]
    found = loaded(rate)
    begun = time.monotonic()
    with ThreadPoolExecutor(4) as threads:
        captions = list(threads.map(lambda _: only(found).text, range(8)))
    assert captions == ["a dog"] * 8
    assert len(server.seen) == 9
    assert max(at for _, _, at in server.seen) - begun >= 8 * 0.05


# --- secrets ---------------------------------------------------------------------------------------


def echo(to: Handler) -> None:
    says({"error": f"no such key: {to.headers['Authorization']}"}, 401)(to)


def echo_as_others_write_it(to: Handler) -> None:
    said = to.headers["Authorization"].replace("/", "\\/").encode()
    says(b'{"error": "' + said + b'", "more": "sk-7f3a%2F9c%2Bok SK-7F3A/9C+OK"}', 403)(to)


def echo_at_the_cut(to: Handler) -> None:
    says(b"x" * 180 + to.headers["Authorization"].encode() + b"x" * 500, 500)(to)


def echo_for_ever(to: Handler) -> None:
    to.wfile.write(to.headers["Authorization"].encode() + b"\r\n")
    closes(to)


def echo_as_a_field(to: Handler) -> None:
    says({"result": {to.headers["Authorization"]: 1}})(to)


def echo_as_a_place(to: Handler) -> None:
    says(b"", 302, Location=f"https://elsewhere.example/?key={to.headers['Authorization'][7:]}")(to)


def echo_as_a_caption(to: Handler) -> None:
    says({"result": {"caption": f"a dog with {to.headers['Authorization'][7:]}", "confidence": 1}})(to)


def echo_as_a_number(to: Handler) -> None:
    says({"result": {"caption": "a dog", "confidence": "x" * 60 + to.headers["Authorization"]}})(to)


@pytest.mark.parametrize(
    "step",
    [
        echo,
        echo_as_others_write_it,
        echo_at_the_cut,
        echo_for_ever,
        echo_as_a_field,
        echo_as_a_place,
        echo_as_a_caption,
        echo_as_a_number,
    ],
)
def test_a_key_that_comes_back_is_not_told(server: Server, loaded: Callable[..., System], step: Step) -> None:
    server.steps = [step]
    said = failure(loaded("retries = 1"))
    # what is cut off, and the query of an address, which may be a signature, are left out as a whole
    assert "CAPTION_KEY" in said or step in (echo_at_the_cut, echo_as_a_place)
    assert "9c" not in said.lower()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(server: Server, loaded: Callable[..., System], status: int) -> None:
    other = Server()
    other.steps = [DOG]
    try:
        server.steps = [says(b"", status, Location=other.url)]
        said = failure(loaded())
        assert f"a redirect to '{other.url}'; it is not followed" in said
        assert other.seen == []
        assert len(server.seen) == 1
    finally:
        other.close()


def test_secrets_are_nowhere_to_be_seen(
    server: Server, loaded: Callable[..., System], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = loaded()
    assert KEY not in repr(first) + str(first) + repr(first.predict) + first.fingerprint + first.name
    monkeypatch.setenv("CAPTION_KEY", "another")
    assert loaded().fingerprint == first.fingerprint


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "the environment variable CAPTION_KEY is not set or empty"),
        ("", "is not set or empty"),
        ("tail\nInjected: yes", "the value of the environment variable CAPTION_KEY cannot be sent as a header"),
        ("schlüssel", "cannot be sent as a header"),
    ],
)
def test_secrets_that_cannot_be_sent(
    loaded: Callable[..., System], monkeypatch: pytest.MonkeyPatch, value: str | None, message: str
) -> None:
    if value is None:
        monkeypatch.delenv("CAPTION_KEY")
    else:
        monkeypatch.setenv("CAPTION_KEY", value)
    with pytest.raises(ValueError, match=message) as raised:
        loaded()
    assert not value or value not in str(raised.value)


def test_a_line_break_after_a_key_is_no_part_of_it(
    server: Server, loaded: Callable[..., System], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPTION_KEY", f"{KEY}\n")
    server.steps = [DOG]
    only(loaded())
    assert server.seen[0][0]["authorization"] == f"Bearer {KEY}"


def test_certificates_are_verified(server: Server, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        absent("the program openssl")
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-keyout",
            "key.pem",
            "-out",
            "cert.pem",
            "-days",
            "1",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
        ],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    server.http.socket = context.wrap_socket(server.http.socket, server_side=True)
    server.steps = [DOG]
    spelling = template(server, tmp_path, text=PLAIN.replace("{url}", server.url.replace("http:", "https:")))
    assert "the service's certificate cannot be trusted: SSLCertVerificationError" in failure(system(spelling))
    assert server.seen == []  # not a byte of the request was sent
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
        assert only(system(spelling)).text == "a dog"


# --- templates -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version =", "versoin =", "unknown key 'versoin'; did you mean 'version'.*and the tables headers, multipart"),
        ("[headers]", "[header]", "unknown key 'header'; did you mean 'headers'"),
        ('version = "1"', "", "needs version: text"),
        ("deterministic = true", "", "needs deterministic: true or false"),
        ('version = "1"', "version = 1", "version=1 is not allowed; it takes text"),
        ("timeout = 600.0", "timeout = 0", "timeout=0 is not allowed; it takes a number above 0"),
        ("timeout = 600.0", "timeout = 600.0\nretries = 1.5", "retries=1.5 is not allowed"),
        ("timeout = 600.0", 'timeout = 5\nkind = "captoin"', "did you mean 'caption'"),
        ("score =", "scoer =", r"\[answer\] has no parameter 'scoer'; did you mean 'score'"),
        ('caption = "result.caption"', "", r"\[answer\] needs caption: text"),
        ("timeout = 600.0", "timeout = 600.0\nanswer = 7", r"not valid TOML|answer is a table"),
        ('"Bearer ${CAPTION_KEY}"', "7", r"\[headers\] Authorization is text, got 7"),
        (
            '"Bearer ${CAPTION_KEY}"',
            '"Bearer abc"',
            "Authorization holds its value itself; name an environment variable",
        ),
        ('Authorization = "Bearer ${CAPTION_KEY}"', 'X-Api-Key = "abc"', "X-Api-Key holds its value itself"),
        ('"Bearer ${CAPTION_KEY}"', '"Bearer ${CAPTION KEY}"', r"\$\{CAPTION KEY\} names no environment variable"),
        ('"Bearer ${CAPTION_KEY}"', '"Bearer ${CAPTION_KEY}\\n"', "a header is one line of plain characters"),
        ("Authorization", "Content-Length", "Content-Length is set by Instar"),
        (
            "http://127.0.0.1",
            "http://captions.example",
            "would send a secret in the clear; write the url with https://",
        ),
        ("http://127.0.0.1", "http://93.184.216.34", "would send a secret in the clear"),
        ("http://127.0.0.1", "ftp://127.0.0.1", "url is 'ftp://.*it takes http:// or https://"),
        ("http://127.0.0.1", "http://127.0.0.1:x", "it takes http:// or https://"),
        ("/caption", "/{caption}", "it takes http:// or https://"),
        ("/caption", "/cap tion", "it takes http:// or https://"),
        ("http://127.0.0.1", "http://me:word@127.0.0.1", "the url holds a user's name or password"),
        (JSON, "", r"it says 0 of json, \[multipart\] and raw; a request has exactly one body"),
        (JSON, f"{JSON}\nraw = true", "it says 2 of json"),
        (JSON, "json = '{'", "json is no valid JSON"),
        (JSON, "json = '{}'", "json mentions neither .*: the service would never see the image"),
        (JSON, 'json = \'{"image": "{image_base46}"}\'', "no placeholder {image_base46}; did you mean 'image_base64'"),
        (JSON, "multipart = {a = '{width}'}", r"\[multipart\] has no field that is \"{image}\""),
        (JSON, "multipart = {a = 'the {image}'}", "and nothing beside it"),
        ("url", "url =", "not valid TOML"),
    ],
)
def test_templates_that_are_wrong(server: Server, tmp_path: Path, old: str, new: str, message: str) -> None:
    spelling = template(server, tmp_path)
    path = tmp_path / "service.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ValueError, match=message):
        system(spelling)
    assert server.seen == []


def test_a_template_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"No such file or directory; docs/http.md shows a template"):
        system(f'http("{tmp_path / "none.toml"}")')


@pytest.mark.parametrize("number", range(3))
def test_templates_of_the_documentation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setenv("CAPTION_KEY", KEY)
    monkeypatch.setenv("VISION_KEY", KEY)
    page = Path(__file__).resolve().parents[2] / "docs" / "http.md"
    shown = re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    (tmp_path / "shown.toml").write_text(shown[number], "utf-8")
    assert system(f'http("{tmp_path}/shown.toml")').kind == ("caption", "caption", "detections")[number]


def test_a_prompt_may_hold_braces(server: Server, tmp_path: Path) -> None:
    server.steps = [DOG]
    body = json.dumps({"image": "{image_base64}", "prompt": 'as {answer} or {"x": {}}, for $5 and ${HOME}'})
    only(system(template(server, tmp_path, f"json = '''{body}'''")))
    assert json.loads(server.seen[0][1])["prompt"] == 'as {answer} or {"x": {}}, for $5 and ${HOME}'


def test_fingerprint_is_what_decides(server: Server, tmp_path: Path) -> None:
    def printed(old: str = "", new: str = "", name: str = "service.toml") -> str:
        spelling = template(server, tmp_path, name=name)
        (tmp_path / name).write_text((tmp_path / name).read_text().replace(old, new, 1))
        return system(spelling).fingerprint

    slower = printed("timeout = 600.0", "timeout = 9\nper_second = 3\nretries = 1")
    assert printed() == printed(name="copy.toml") == slower
    changes = (
        ("", ""),
        ('version = "1"', 'version = "2"'),
        ("/caption", "/v2"),
        ("image_base64", "image_data_url"),
        ("result.caption", "result.text"),
        ("Bearer ", "Token "),
        ("= true", "= false"),
        ("[answer]", "[image]\nformat='jpeg'\n[answer]"),
    )
    assert len({printed(*change) for change in changes}) == len(changes)


def test_what_the_template_declares(server: Server, tmp_path: Path) -> None:
    sure = system(template(server, tmp_path))
    assert (sure.kind, sure.deterministic, sure.seedable) == ("caption", True, True)
    unsure = system(template(server, tmp_path, text=PLAIN.replace("= true", "= false")))
    assert (unsure.deterministic, unsure.seedable) == (False, False)


# --- in a run --------------------------------------------------------------------------------------


def test_a_run_with_two_workers(server: Server, tmp_path: Path) -> None:
    """One photo that is refused and one that takes too long cost their own rows; no file of the run holds the key."""
    photos = tmp_path / "photos"
    photos.mkdir()
    for number in range(4):
        cv2.imwrite(str(photos / f"{number}.png"), np.full((20, 20 + number, 3), 60 * number, np.uint8))

    def step(to: Handler) -> None:
        width = json.loads(to.given)["width"]
        if width == 21:
            echo(to)
        elif width == 22:
            server.over.wait(ENOUGH)
        else:
            says({"objects": [{"box": [2, 2, 9, 9], "name": "dog"}]})(to)

    server.steps = [step]
    text = PLAIN.split("[answer]")[0] + '[answer]\nboxes = "objects.*.box"\nlabels = "objects.*.name"\n'
    more = 'kind = "detections"\nretries = 0\njson = \'{"image": "{image_base64}", "width": "{width}"}\''
    done = instar.run(
        template(server, tmp_path, more, text=text, timeout=10),
        Suite("one", (rule("mirror(h)"),)),
        photos,
        out=tmp_path / "run",
        workers=2,
    )
    rows = {(row["case"], row["follow_up"]): row for row in done.predictions().to_dicts()}
    assert {
        case: {rows[case, name]["status"] for name in ("source", "mirror(h)")}
        for case in ("0.png", "1.png", "2.png", "3.png")
    } == {"0.png": {"ok"}, "1.png": {"error"}, "2.png": {"timeout"}, "3.png": {"ok"}}
    assert "401 Unauthorized" in rows["1.png", "source"]["message"]
    assert KEY not in repr(done.manifest) + "".join(str(row["message"]) for row in rows.values())
    files = [file for file in (tmp_path / "run").rglob("*") if file.is_file()]
    assert len(files) > 2
    assert not [file for file in files if KEY.encode() in file.read_bytes()]
