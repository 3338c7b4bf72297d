"""Marking pairs in the viewer: the one thing that a request may change, and who may."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import pytest

import instar
from instar.analysis.precision import precision
from instar.store import MOST_NOTE, Store, add_marks, new_mark, stored_marks
from instar.viewer import application
from instar.viewer.triage import MOST_BYTES
from tests.viewer.conftest import HOSTILE, PORT, opened, settled, total

HERE = f"http://127.0.0.1:{PORT}"
KEY = re.compile(r'data-mark data-case="([^"]*)" data-rule="([^"]*)" data-target="([^"]*)" data-seen="([^"]*)"')


@pytest.fixture
def folder(base: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(base / "poses", tmp_path / "run"))


@pytest.fixture
def client(folder: Path) -> Iterator[Any]:
    with opened(folder) as made:
        yield made


@pytest.fixture(scope="module")
def untouched(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run for requests that are refused: it must have no mark afterwards."""
    return Path(shutil.copytree(base / "poses", tmp_path_factory.mktemp("untouched") / "run"))


@pytest.fixture(scope="module")
def refusing(untouched: Path) -> Iterator[Any]:
    with opened(untouched) as made:
        yield made


def token(client: Any, address: str = "/gallery?run=run") -> str:
    brought = re.search(r'data-token="([^"]+)"', settled(client, address).text)
    assert brought
    return brought[1]


def first(client: Any, address: str = "/gallery?run=run") -> dict[str, str]:
    """What the page of the first violated pair would send."""
    keys = KEY.search(settled(client, address).text)
    assert keys
    names = ("case", "rule", "target", "seen")
    return {"run": "run", "judging": "default", **dict(zip(names, map(html.unescape, keys.groups()), strict=True))}


def send(client: Any, pair: dict[str, str], mark: str, note: str = "", **headers: Any) -> Any:
    """As a page of the viewer sends it, with other headers, or without some."""
    usual = {"Origin": HERE, "X-Instar-Token": token(client), "Content-Type": "application/json"}
    chosen = {**usual, **{name.replace("_", "-"): value for name, value in headers.items()}}
    body = json.dumps({**pair, "mark": mark, "note": note})
    return client.post("/mark", content=body, headers={name: value for name, value in chosen.items() if value})


# --- what is marked --------------------------------------------------------------------------------


def test_a_mark_is_stored_and_shown_everywhere(client: Any, folder: Path) -> None:
    pair = first(client)
    answer = send(client, pair, "false alarm", "nobody <b>could</b> tell")
    assert answer.status_code == 200 and answer.json()["mark"] == "false alarm"
    assert "access-control-allow-origin" not in answer.headers and answer.headers["cache-control"] == "no-store"
    (stored,) = stored_marks(Store(folder)).values()
    assert (stored.case, stored.rule, stored.target) == (pair["case"], pair["rule"], pair["target"])
    page = client.get(f"/case?run=run&case={quote(pair['case'])}&shown={quote(pair['rule'])}").text
    assert 'data-set="false alarm" aria-pressed="true"' in page
    assert "nobody &lt;b&gt;could&lt;/b&gt; tell" in page and "<b>could" not in page
    assert "nobody &lt;b&gt;could" in client.get("/gallery?run=run").text
    assert "1 false alarm" in client.get(f"/rule?run=run&rule={quote(pair['rule'])}").text
    assert "Which violations are real" in client.get("/?run=run").text


def test_a_mark_is_changed_and_taken_back(client: Any, folder: Path) -> None:
    pair = first(client)
    pair["seen"] = send(client, pair, "real").json()["made"]
    pair["seen"] = send(client, pair, "unclear").json()["made"]
    assert [mark.mark for mark in stored_marks(Store(folder)).values()] == ["unclear"]
    assert send(client, pair, "").json() == {"mark": "", "note": "", "made": ""}
    assert not stored_marks(Store(folder))


def test_who_did_not_see_a_mark_does_not_overwrite_it(client: Any, folder: Path) -> None:
    """Two people look at the same pair; the second one has a page from before the first one's mark."""
    pair = first(client)
    assert send(client, pair, "real", "look at the left arm").status_code == 200
    late = send(client, pair, "false alarm")
    assert late.status_code == 409 and "the pair is marked real now" in late.text
    assert [mark.note for mark in stored_marks(Store(folder)).values()] == ["look at the left arm"]


def test_a_mark_of_the_pair_as_a_whole_stays_one(client: Any, folder: Path) -> None:
    """An imported mark that names no target holds for every target, also after it was changed here."""
    pair = first(client)
    whole = new_mark(pair["case"], pair["rule"], "", "real")
    add_marks(Store(folder), {whole.key: whole})
    assert send(client, first(client), "unclear").status_code == 200
    assert [(mark.target, mark.mark) for mark in stored_marks(Store(folder)).values()] == [("", "unclear")]


def test_filters_by_mark_count_as_precision_does(client: Any, folder: Path) -> None:
    every = total(settled(client, "/gallery?run=run"))
    keys = KEY.findall(client.get("/gallery?run=run").text)[:4]
    for (case, rule, target, _), mark in zip(keys, ("real", "real", "false alarm", "unclear"), strict=True):
        made = new_mark(html.unescape(case), html.unescape(rule), html.unescape(target), mark)
        add_marks(Store(folder), {made.key: made})
    counts = {mark: total(client.get(f"/gallery?run=run&mark={quote(mark)}")) for mark in ("real", "false alarm")}
    assert counts == {"real": 2, "false alarm": 1}
    assert total(client.get("/gallery?run=run&mark=unmarked")) == every - 4
    page = client.get("/gallery?run=run&mark=real").text
    numbers = dict(re.findall(r'data-swap[^>]*>([a-z ]+) <span class="number">(\d+)<', page.split('id="by-mark"')[1]))
    assert numbers == {
        **{"real": "2", "false alarm": "1", "unclear": "1", "unmarked": str(every - 4)},
        "any mark or none": str(every),
    }
    row = precision(instar.open_run(folder)).row(0, named=True)
    assert (row["real"], row["false_alarm"], row["unclear"], row["violated"]) == (2, 1, 1, every)
    assert total(client.get("/gallery?run=run&mark=nonsense")) == 0
    assert "mark=real" in page, "the choice is in the address"


def test_another_judging_keeps_the_marks_of_what_it_shows(client: Any, folder: Path) -> None:
    """The mark is of a case, a rule and a target, not of a row of verdicts."""
    pair = first(client, "/gallery?run=run&judging=aggregate%3Dmax")
    assert send(client, pair, "real").status_code == 200
    for judging in ("default", "aggregate%3Dmax"):
        page = settled(client, f"/gallery?run=run&status=all&mark=real&judging={judging}")
        assert total(page) == 1


def test_a_mark_about_another_target_is_said_and_does_not_count(client: Any, folder: Path) -> None:
    """What was seen of one person says nothing of another; it is shown, so that nobody thinks that it was lost."""
    pair = first(client)
    other = new_mark(pair["case"], pair["rule"], "0/left_hand", "real", "the thumb")
    add_marks(Store(folder), {other.key: other})
    assert total(client.get("/gallery?run=run&mark=real")) == 0
    page = client.get(f"/case?run=run&case={quote(pair['case'])}&shown={quote(pair['rule'])}").text
    assert "Also marked real, about" in page and "left hand: the thumb." in page


def test_the_next_pair_is_there_also_after_this_one_was_marked(client: Any) -> None:
    """Whoever goes through what is unmarked marks a pair, which then matches no more, and goes on."""
    gallery = settled(client, "/gallery?run=run&mark=unmarked").text
    pages = [html.unescape(link) for link in re.findall(r'class="open" href="([^"]*)"', gallery)]
    assert send(client, first(client, "/gallery?run=run&mark=unmarked"), "real").status_code == 200
    page = client.get(pages[0]).text
    following = re.search(r'href="([^"]*)" data-pair="next"', page)
    assert following and html.unescape(following[1]) == pages[1]
    assert "not among the" in page


def test_pairs_by_chance_are_the_same_pairs_in_one_order(client: Any) -> None:
    pages = [settled(client, "/gallery?run=run&sort=chance").text for _ in range(2)]
    by_chance, again = (KEY.findall(page) for page in pages)
    worst = KEY.findall(client.get("/gallery?run=run").text)
    assert by_chance == again != worst and sorted(by_chance) == sorted(worst)


# --- who may mark ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Origin": None}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": f"http://localhost:{PORT}"}, 403),
        ({"Origin": HERE, "Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}, 403),
        ({"Origin": HERE, "Sec_Fetch_Site": "none"}, 403),
        ({"X_Instar_Token": None}, 403),
        ({"X_Instar_Token": "wrong"}, 403),
        ({"X_Instar_Token": b"\xe4"}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_a_request_that_is_not_of_the_viewers_page_is_refused(
    refusing: Any, untouched: Path, headers: dict[str, Any], status: int
) -> None:
    answer = send(refusing, first(refusing), "real", **headers)
    assert answer.status_code == status, answer.text
    assert not stored_marks(Store(untouched))


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_marks_are_posted_alone(refusing: Any, untouched: Path, method: str) -> None:
    headers = {"Origin": HERE, "X-Instar-Token": token(refusing), "Content-Type": "application/json"}
    body = None if method in ("GET", "HEAD") else json.dumps({**first(refusing), "mark": "real", "note": ""})
    assert refusing.request(method, "/mark", content=body, headers=headers).status_code == 405
    assert not stored_marks(Store(untouched))


def test_nothing_else_takes_a_post(refusing: Any) -> None:
    headers = {"Origin": HERE, "X-Instar-Token": token(refusing)}
    for path in ("/", "/gallery?run=run", "/pulse", "/static/triage.js", "/mark/", "/mark/real"):
        assert refusing.post(path, headers=headers).status_code == 405


def test_a_token_is_of_one_start_and_in_no_address(client: Any, folder: Path) -> None:
    page = settled(client, "/gallery?run=run")
    secret = token(client)
    assert len(secret) > 40 and secret not in str(page.url) and not page.cookies
    assert not re.search(rf'(href|src|action)="[^"]*{re.escape(secret)}', page.text)
    assert page.headers["cache-control"] == "no-store"
    with opened(folder) as another:
        assert token(another) != secret
        assert send(another, first(another), "real", X_Instar_Token=secret).status_code == 403


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"mark": "wrong"}, 400, "allowed are: real, false alarm, unclear, or nothing"),
        ({"note": "x" * (MOST_NOTE + 1)}, 400, "at most 1,000 letters"),
        ({"note": 3}, 400, "a JSON object of texts"),
        ({"more": "x"}, 400, "a mark has the fields run, judging"),
        ({"case": "../../manifest.json"}, 404, "no such case"),
        ({"rule": "nonsense"}, 404, "no rule 'nonsense'"),
        ({"target": "7/left_foot"}, 404, "no such case or target"),
        ({"run": "other"}, 404, "There is no run 'other'"),
        ({"judging": "nonsense"}, 409, "has no judging 'nonsense'"),
        ({"note": "x" * MOST_BYTES}, 413, "at most 65,536 bytes"),
    ],
)
def test_what_is_no_mark_of_a_pair_is_refused(
    refusing: Any, untouched: Path, change: dict[str, Any], status: int, words: str
) -> None:
    body = json.dumps({**first(refusing), "mark": "real", "note": "", **change})
    headers = {"Origin": HERE, "X-Instar-Token": token(refusing), "Content-Type": "application/json"}
    answer = refusing.post("/mark", content=body, headers=headers)
    assert answer.status_code == status and words in answer.text, answer.text
    assert not stored_marks(Store(untouched))


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b"[" * 50_000])
def test_rubbish_is_refused(refusing: Any, body: bytes) -> None:
    headers = {"Origin": HERE, "X-Instar-Token": token(refusing), "Content-Type": "application/json"}
    assert refusing.post("/mark", content=body, headers=headers).status_code == 400


def test_a_hostile_name_can_be_marked(client: Any, folder: Path) -> None:
    pair = first(client, f"/gallery?run=run&threshold=0&q={quote(HOSTILE)}")
    assert pair["case"] == HOSTILE and send(client, pair, "unclear", "=1+1 '\" </script>").status_code == 200
    page = client.get(f"/case?run=run&case={quote(HOSTILE)}&shown={quote(pair['rule'])}").text
    assert "=1+1 &#39;&#34; &lt;/script&gt;" in page


# --- where nothing can be marked -------------------------------------------------------------------


def test_a_viewer_that_was_started_read_only_says_so(folder: Path) -> None:
    made = new_mark("00.png", "mirror(h) => poses", "0/body", "real", "seen")
    add_marks(Store(folder), {made.key: made})
    with opened(folder, read_only=True) as client:
        page = settled(client, "/gallery?run=run&status=all")
        assert "This viewer was started read-only" in page.text and "data-token" not in page.text
        assert "seen" in client.get("/gallery?run=run&status=all&mark=real").text
        answer = client.post("/mark", content="{}", headers={"Origin": HERE, "X-Instar-Token": "x"})
        assert answer.status_code == 403 and "read-only" in answer.text


def test_a_folder_that_cannot_be_written_to_says_so(client: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair, secret = first(client), token(client)
    monkeypatch.setattr(os, "access", lambda *_: False)
    page = client.get(f"/case?run=run&case={quote(pair['case'])}&shown={quote(pair['rule'])}").text
    assert "cannot be written to, and marks are kept in it" in page and "data-set" not in page
    headers = {"Origin": HERE, "X-Instar-Token": secret, "Content-Type": "application/json"}
    answer = client.post("/mark", content=json.dumps({**pair, "mark": "real", "note": ""}), headers=headers)
    assert answer.status_code == 409 and "cannot be written to" in answer.text


def test_damaged_marks_cost_no_page(client: Any, folder: Path) -> None:
    assert send(client, first(client), "real").status_code == 200
    (folder / "marks" / "marks.json").write_bytes(b"half")
    for path in ("/", "/gallery?run=run", "/gallery?run=run&mark=real"):
        assert client.get(path).status_code == 200
    assert "marks.json is damaged" in client.get("/gallery?run=run").text


def test_a_client_that_leaves_while_it_sends_a_mark_raises_nothing(untouched: Path) -> None:
    made = application([untouched], port=PORT)
    headers = {"Host": f"127.0.0.1:{PORT}", "Origin": HERE, "X-Instar-Token": made.state.viewer.token}
    scope = {
        **{"type": "http", "method": "POST", "path": "/mark", "query_string": b"", "http_version": "1.1"},
        "headers": [
            (name.lower().encode(), value.encode())
            for name, value in {**headers, "Content-Type": "application/json", "Content-Length": "90"}.items()
        ],
    }
    messages = iter([{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}])
    sent: list[Any] = []

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(message)

    anyio.run(made, scope, receive, send)
    assert sent[0]["status"] == 400
    assert next(messages, None) is None
