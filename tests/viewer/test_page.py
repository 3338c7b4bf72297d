"""Pages that tasks add to the viewer: guarded like all others, and a broken one costs nobody else."""

from __future__ import annotations

import html
import importlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

import instar
from instar.case import Case
from instar.datasets import Dataset
from instar.registry import BrokenPlugin
from instar.viewer import CaseLink, Page, ShownCase, application
from instar.viewer.pictures import Picture, plate
from instar.viewer.query import address
from tests.toys import scene

hook = importlib.import_module("instar.viewer.page")
PORT = 8000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    cases = [Case(str(number), input=scene(number)) for number in range(2)]
    instar.run("tests.toys:steady", "mirror(h)", Dataset("two", "", lambda: iter(cases)), out=folder, workers=0)
    return folder


def content(viewer: Any, query: Mapping[str, str]) -> dict[str, Any]:
    if "wrong" in query:
        raise ZeroDivisionError("a mistake of the task")
    if "nobody" in query:
        raise HTTPException(404, "there is no such case")
    return {"word": query.get("word", ""), "waiting": False}


def picture(viewer: Any, query: Mapping[str, str], side: str, width: int) -> Picture:
    if "wrong" in query:
        raise ZeroDivisionError("a mistake of the task")
    return plate(f"{side} {width}", width)


def link(shown: ShownCase) -> CaseLink | None:
    if shown.case == "1":
        raise ZeroDivisionError("a mistake of the task")
    return CaseLink("More of <it>", address("/more", {"case": shown.case, "rule": shown.rule, "target": shown.target}))


def served(monkeypatch: pytest.MonkeyPatch, run: Path, pages: Mapping[str, Page]) -> TestClient:
    monkeypatch.setattr(hook, "every", lambda group, kind: dict(pages))
    made = application([run], port=PORT)
    made.state.viewer.runs[0].look()
    return TestClient(made, base_url=f"http://127.0.0.1:{PORT}", raise_server_exceptions=False)


@pytest.fixture
def page(tmp_path: Path) -> Page:
    (tmp_path / "more.html").write_text(
        '{% extends "base.html" %}{% set here = "more" %}\n'
        '{% block styles %}<link rel="stylesheet" href="/static/more.css">{% endblock %}\n'
        "{% block main %}<h1>{{ word }}</h1>{% endblock %}"
    )
    (tmp_path / "more.css").write_text("h1 { color: red }")
    return Page(tmp_path / "more.html", content, picture, tmp_path / "more.css", link)


def words(answer: Any) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", answer.text)).split())


def test_a_page_has_its_address_styles_pictures_and_link(
    monkeypatch: pytest.MonkeyPatch, run: Path, page: Page
) -> None:
    with served(monkeypatch, run, {"more": page}) as client:
        answer = client.get("/more?word=<b>")
        assert answer.status_code == 200 and "<h1>&lt;b&gt;</h1>" in answer.text and "/static/more.css" in answer.text
        assert client.get("/static/more.css").text == "h1 { color: red }"
        assert "follow-up 240" in client.get("/more/picture?side=follow-up&w=240").text
        case = client.get("/case?run=run&case=0").text
        assert '<a class="button" href="/more?case=0">More of &lt;it&gt;</a>' in case
        shown = client.get("/case?run=run&case=0&shown=mirror(h)%20%3D%3E%20poses").text
        assert "/more?case=0&amp;rule=mirror(h)%20%3D%3E%20poses&amp;target=" in shown


def test_the_guards_are_those_of_all_pages(monkeypatch: pytest.MonkeyPatch, run: Path, page: Page) -> None:
    with served(monkeypatch, run, {"more": page}) as client:
        for path in ("/more", "/more/picture", "/static/more.css"):
            policy = client.get(path).headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert client.get(path, headers={"host": "evil.example"}).status_code == 403
            assert client.get(path, headers={"origin": "http://evil.example"}).status_code == 403
            assert client.post(path).status_code == 405
            assert client.head(path).status_code == 200


def test_a_page_that_fails_says_so_and_costs_nobody_else(
    monkeypatch: pytest.MonkeyPatch, run: Path, page: Page
) -> None:
    with served(monkeypatch, run, {"more": page}) as client:
        failed = client.get("/more?wrong=1")
        assert failed.status_code == 500 and "a mistake of the task" in words(failed)
        assert "Content-Security-Policy" in failed.headers
        missing = client.get("/more?nobody=1")
        assert missing.status_code == 404 and "there is no such case" in words(missing)
        plated = client.get("/more/picture?wrong=1")
        assert plated.headers["content-type"] == "image/svg+xml" and "a mistake of the task" in words(plated)
        assert client.get("/more/picture?w=7").headers["content-type"].startswith("text/plain")
        case = client.get("/case?run=run&case=1")
        assert case.status_code == 200 and "/more" not in case.text


def test_a_page_that_cannot_be_used_is_reported_and_left_out(
    monkeypatch: pytest.MonkeyPatch, run: Path, page: Page, tmp_path: Path
) -> None:
    (tmp_path / "torn.html").write_text("{% block main %}")
    torn = Page(tmp_path / "torn.html", content)
    absent = Page(tmp_path / "absent.html", content)
    unstyled = Page(page.template, content, styles=tmp_path / "absent.css")
    wrong = {"torn": torn, "absent": absent, "unstyled": unstyled, "gallery": page, "{name}": page}
    with pytest.warns(BrokenPlugin) as warned:
        client = served(monkeypatch, run, {**wrong, "more": page})
    assert [next(name for name in wrong if repr(name) in str(one.message)) for one in warned] == list(wrong)
    with client:
        assert client.get("/more").status_code == 200
        assert client.get("/torn").status_code == client.get("/absent").status_code == 404
        assert "Gallery" in client.get("/gallery?run=run").text
