"""The viewer without a browser: what it shows, whom it answers, and what it makes of folders that change or vanish."""

from __future__ import annotations

import html
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import cv2
import numpy as np
import polars as pl
import pytest
from starlette.testclient import TestClient

import instar
from instar.case import Case
from instar.cli.printing import flags_spelled
from instar.datasets.dataset import Dataset
from instar.report import Finding
from instar.store import Store
from instar.viewer import application, pictures
from instar.viewer.charts import bins, histogram
from instar.viewer.index import build
from instar.viewer.pictures import Pictures, plate
from instar.viewer.query import Filters, address, matches
from tests.toys import scene, steady, write_scenes
from tests.viewer.conftest import MIRROR, PORT, SCRIPT, opened, settled, suite, total

# --- pages -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", ["poses", "steady", "walks"])
def test_every_page_of_every_kind_of_run(client: Any, base: Path, run: str) -> None:
    opened_run = instar.open_run(base / run)
    rules, case = opened_run.rules()["rule"].to_list(), str(opened_run.cases()["case"][0])
    addresses = ["/", "/?threshold=0.5", "/?threshold=inf", f"/gallery?run={run}", f"/compare?a={run}&b={run}"]
    addresses += [f"/rule?run={run}&rule={quote(rule)}" for rule in rules]
    addresses += [f"/rule?run={run}&rule={quote(rules[0])}&threshold={t}" for t in ("0", "inf", "0.3", "x")]
    addresses += [f"/case?run={run}&case={quote(case)}", f"/case?run={run}&case={quote(case)}&shown={quote(rules[0])}"]
    for asked in addresses:
        answer = client.get(asked)
        assert answer.status_code == 200, (asked, answer.text)
        assert answer.headers["content-type"].startswith("text/html")
        assert "Traceback" not in answer.text


@pytest.mark.parametrize("name", ["poses", "steady", "walks"])
@pytest.mark.parametrize("threshold", [None, 0.05, 0.5, float("inf")])
def test_filters_count_as_rates_do(client: Any, base: Path, name: str, threshold: float | None) -> None:
    for row in instar.open_run(base / name).rates(threshold).iter_rows(named=True):
        if "correlation" in row["rule"]:
            continue
        expected = {
            "violated": row["violated"],
            "kept": row["judged"] - row["violated"],
            "not applicable": row["not_applicable"],
            "failed": row["failed"],
        }
        for status, count in expected.items():
            filters = Filters(run=name, rule=row["rule"], threshold=threshold, status=status)
            assert total(client.get(address("/gallery", filters.query()))) == count, (row["rule"], status)


def test_filters_by_landmark_group_count_as_rates_do(base: Path, tmp_path: Path) -> None:
    shutil.copytree(base / "steady", tmp_path / "run")
    store, rng = Store(tmp_path / "run"), np.random.default_rng(0)
    info = store.judging_info("default")
    assert info is not None
    whole = store.verdicts("default")
    parts = [
        whole.with_columns(target=pl.lit(target), severity=pl.Series(rng.choice(choices, len(whole))))
        for target, choices in (("0/body", [0, 0.1, 0.3]), ("0/left_hand", [0, 0.5, np.inf]), ("whole", [0, 0.25]))
    ]
    store.replace_verdicts("default", iter(parts), info)
    run = instar.open_run(tmp_path / "run")
    with opened(tmp_path / "run") as client:
        for group in ("body", "left_hand", None):
            for threshold in (None, 0.3, float("inf")):
                asked = Filters(group=group or "", status="violated", threshold=threshold)
                found = total(client.get(address("/gallery", asked.query())))
                changing = pl.col("rule").is_in(run.changing_rules())
                assert found == run.rates(threshold, group=group).filter(changing)["violated"].sum()
        assert total(client.get("/gallery?run=run&group=nonsense")) == 0
        assert client.get("/rule?run=run&rule=mirror(h)%20%3D%3E%20poses&group=left_hand").status_code == 200


def test_filters_by_kind_family_relation_and_judging(client: Any, base: Path) -> None:
    run = instar.open_run(base / "poses")
    changing = pl.col("rule").is_in(run.changing_rules())
    rows = run.rates(judging="aggregate=max").filter(changing)
    assert total(settled(client, "/gallery?run=poses&judging=aggregate%3Dmax")) == rows["violated"].sum()
    worst = run.verdicts().filter(pl.col("case").is_not_null()).sort("severity", descending=True, nulls_last=True)
    pairs = worst.unique(["case", "rule"], keep="first", maintain_order=True)
    assert total(client.get("/gallery?run=poses&status=all&kind=lost")) == pairs.filter(changing, kind="lost").height
    assert total(client.get("/gallery?run=poses&status=all&family=noise")) == 12, "levels count in no rate"
    assert total(client.get("/gallery?run=poses&status=all&rule=noise(10)")) == 12, "and are there for who names them"
    assert total(client.get("/gallery?run=walks&status=all&relation=hvc")) == 6
    assert total(client.get("/gallery?run=poses&status=all&q=GROSSE")) == 0
    assert total(client.get("/gallery?run=poses&status=all&q=GROßE")) == len(run.changing_rules())


def test_slices_split_the_cases(client: Any, base: Path) -> None:
    index = build(Store(base / "poses"))
    bright = instar.open_run(base / "poses").described()
    above = bright.filter(pl.col("sharpness") > bright["sharpness"].median())["case"].to_list()
    sharp = matches(index, Filters(slice="sharpness > median", status="all"))
    assert sorted(index.cases[int(number)] for number in sharp.cases()) == sorted(above)
    everything = {"run": "poses", "status": "all"}
    both = [
        total(client.get(address("/gallery", {**everything, "slice": f"sharpness {part} median"}))) for part in "≤>"
    ]
    assert sum(both) == total(client.get("/gallery?run=poses&status=all"))
    assert total(client.get(address("/gallery", {"run": "poses", "slice": "nonsense > 3"}))) == 0


def test_each_slice_of_a_rule_leads_to_its_pairs(tmp_path: Path) -> None:
    """Those of a slice without anything above it had no pairs at all."""

    def cases() -> Iterator[Case]:
        for number in range(24):
            attributes = {"people": 3 if number % 3 else 1, "place": "yard" if number % 2 else "hall", "age": number}
            yield Case(f"{number:02}", input=scene(number, (160, 120)), attributes=attributes)

    def forgetful(pixels: np.ndarray) -> instar.Poses:
        return steady(pixels) if int(pixels.astype(int).sum()) % 2 else steady(pixels[:, ::-1])

    instar.run(forgetful, "gamma(0.5)", Dataset("own", "", cases), out=tmp_path / "run", workers=0)
    with opened(tmp_path / "run") as client:
        text = client.get(address("/rule", {"run": "run", "rule": "gamma(0.5) => poses"})).text
        rows = instar.open_run(tmp_path / "run").slices()
        assert set(rows["kind"]) == {"is", "above", "from"}
        table = text.partition("Slices: do cases")[2]
        links = [html.unescape(link) for link in re.findall(r'<tr[^>]*><td><a href="([^"]+)"', table)]
        assert [total(client.get(link)) for link in links] == rows["failing"].to_list()[: len(links)]
        assert set(rows["kind"].head(len(links))) >= {"above", "from"}


def test_the_gallery_sorts_by_severity_and_pages(base: Path) -> None:
    index = build(Store(base / "poses"))
    worst = matches(index, Filters(rule=MIRROR, status="all", sort="severity"))
    severity = worst.pairs.severity[worst.order]
    assert (severity[:-1] >= severity[1:]).all()
    least = matches(index, Filters(rule=MIRROR, status="all", sort="least"))
    assert (np.diff(least.pairs.severity[least.order]) >= 0).all()
    every = matches(index, Filters(status="all"))
    bare = np.isnan(every.pairs.severity[every.order])
    assert not bare[: -bare.sum()].any() and bare[-bare.sum() :].all()
    by_case = matches(index, Filters(status="all", sort="case"))
    assert (np.diff(by_case.pairs.case[by_case.order]) >= 0).all()


def test_pages_of_the_gallery_hold_every_pair_once(client: Any) -> None:
    seen: list[str] = []
    for page in range(1, 99):
        text = client.get(address("/gallery", Filters(status="all", page=page).query())).text
        cards = re.findall(r'class="open" href="([^"]+)"', text)
        seen += [html.unescape(link).replace(f"&page={page}", "") for link in cards]
        if 'rel="next"' not in text:
            break
    assert len(seen) == len(set(seen)) == total(client.get("/gallery?run=poses&status=all"))
    assert client.get("/gallery?run=poses&page=99999").status_code == 200


def test_a_form_with_empty_fields_leads_to_the_canonical_address(client: Any) -> None:
    answer = client.get("/gallery?run=poses&rule=&family=&threshold=0.50&status=kept&q=&sort=", follow_redirects=False)
    assert answer.status_code == 302
    assert answer.headers["location"] == "/gallery?run=poses&threshold=0.5&status=kept"
    assert client.get(answer.headers["location"], follow_redirects=False).status_code == 200


def test_an_empty_result_says_which_filter_to_loosen(client: Any) -> None:
    text = client.get(address("/gallery", Filters(rule=MIRROR, status="failed").query())).text
    assert "No pair matches" in text and "whatever their status" in text and "12 pairs" in text
    text = client.get(address("/gallery", Filters(q="nobody is called so").query())).text
    assert 'without the filter <em>case contains</em> <span class="rule">nobody is called so</span>' in text


def test_what_is_not_there_is_named_in_a_sentence(client: Any) -> None:
    """A page that is not there said *Not Found*, and a mistyped rule was not told the nearest."""
    for path, sentence in (
        ("/nowhere", "The viewer has no page /nowhere."),
        ("/case?run=poses&case=nobody", "There is no case 'nobody' in this run."),
        ("/rule?run=poses&rule=mirrr(h)%20%3D%3E%20poses", f"did you mean {MIRROR!r}?"),
    ):
        answer = client.get(path)
        assert answer.status_code == 404 and sentence in html.unescape(answer.text), path


def test_walking_from_case_to_case_stays_within_the_filter(client: Any, base: Path) -> None:
    asked = Filters(status="violated", threshold=0.05)
    index = build(Store(base / "poses"))
    names = [index.cases[int(number)] for number in matches(index, asked).cases()]
    assert len(names) > 3
    link, seen = address("/case", {**asked.query(), "case": names[0]}), []
    while link:
        text = client.get(link).text
        seen.append(html.unescape(re.search(r'<h1 class="breaking">(.*?)</h1>', text)[1]))  # type: ignore[index]
        following = re.search(r'rel="next" href="([^"]+)"', text)
        link = html.unescape(following[1]) if following else ""
    assert seen == names


def test_the_overview_says_what_run_says(client: Any, base: Path) -> None:
    text = client.get("/").text
    whole = instar.open_run(base / "poses").family_rates().filter(group=instar.analysis.ANY).row(0, named=True)
    assert f"{whole['violated']} of {whole['judged']} cases" in text
    assert "Noise floor" in text and "RuntimeError" in text and "noise(10..12) =&gt; correlation" in text
    assert html.escape(SCRIPT) in text.replace("&#39;", "&#x27;") and SCRIPT not in text


def test_rates_of_a_run_that_was_asked_until_sure_are_those_of_the_run(tmp_path: Path) -> None:
    """Their intervals hold at every look, and rules together are about the cases that were asked under all of them."""

    def darkened(pixels: np.ndarray) -> instar.Poses:
        return steady(pixels) if pixels.max() > 200 or pixels.sum() % 2 else steady(pixels[::-1])

    rules = suite("identity", "mirror(h)", "gamma(3)")
    run = instar.run(darkened, rules, write_scenes(tmp_path / "data", 90), out=tmp_path / "run", workers=0, until=0.1)
    client = opened(tmp_path / "run")
    (watched,) = client.app.state.viewer.runs
    ends = ("rule", "judged", "violated", "low", "high")
    shown, own = watched.index().rates().select(ends), run.rates().select(ends)
    assert shown.sort("rule").equals(own.sort("rule"))
    counts = own.filter(pl.col("rule") != "identity => poses")["judged"].to_list()
    assert min(counts) < max(counts), "a rule that is known is asked no more"
    assert f"{min(counts)} cases, with 95 % intervals" in " ".join(settled(client, "/").text.split())


def test_a_rule_over_many_cases_has_a_page(client: Any, base: Path) -> None:
    name = instar.open_run(base / "poses").rules().filter(over="cases")["rule"][0]
    answer = client.get(address("/rule", {"run": "poses", "rule": name}))
    assert answer.status_code == 200 and "Over all cases" in answer.text
    assert re.search("The rule is (violated|kept):", answer.text), "a severity alone does not say which"
    assert total(client.get(address("/gallery", {"run": "poses", "rule": name}))) == 0


def test_a_rule_over_many_cases_shows_the_cases_that_it_is_measured_on(client: Any, base: Path) -> None:
    """A severity alone on an empty page says nothing of where it comes from."""
    rule = instar.open_run(base / "poses").rules().filter(over="cases")["rule"][0]
    text = settled(client, address("/rule", {"run": "poses", "rule": rule})).text
    for level in (10, 11, 12):
        assert html.escape(address("/rule", {"run": "poses", "rule": f"noise({level}) => poses"})) in text
    assert "Case by case, at the last level" in text and "Examples, from the worst" in text
    assert html.escape(address("/gallery", {"run": "poses", "rule": "noise(12) => poses", "status": "kept"})) in text


def test_the_first_page_says_of_rules_over_many_cases_whether_they_are_violated(client: Any) -> None:
    text = settled(client, "/").text
    section = text.partition("1 rule over many cases, worst first")[2].partition("</details>")[0]
    assert re.search(r'<span class="tag( violated)?">(violated|kept)</span>', section) and "r\xa0=\xa0" in section


def test_a_phone_has_every_column_of_the_slices(client: Any) -> None:
    """What is to the right of the screen is not read: there the cells stand below each other, each with its name."""
    text = client.get(address("/rule", {"run": "poses", "rule": "stretch(1, 0.8) => poses", "threshold": "0.1"})).text
    slices = text.partition("Slices: do cases")[2]
    assert '<table class="rates stack">' in slices
    assert all(f'data-name="{name}"' in slices for name in ("rate", "violated", "elsewhere", "effect", "p, corrected"))


def test_a_comparison_explains_what_it_shows_and_nothing_else(client: Any) -> None:
    """It shows answers to follow-ups alone; and the letter B, like its bars, is orange: dark enough to be read."""
    text = settled(client, "/compare?a=walks&b=walks").text
    assert "answer to the source" not in text
    assert re.search(r'<td class="side b">.*?<svg class="bar"', text, re.S)
    style = client.get("/static/viewer.css").text
    assert ".letter.b { color: var(--warn); }" in style and ".side.b .fill { fill: var(--orange); }" in style


def test_runs_without_a_rule_in_common_are_not_offered_for_comparison(tmp_path: Path) -> None:
    images = write_scenes(tmp_path / "data", 1)
    for name, rule in (("one", "mirror(h)"), ("two", "gamma(2)"), ("three", "mirror(h)")):
        instar.run(steady, suite(rule), images, out=tmp_path / name, workers=0)
    text = settled(opened(*(tmp_path / name for name in ("one", "two", "three"))), "/").text
    assert html.escape("/compare?a=three&b=one") in text and html.escape("/compare?a=three&b=two") not in text


def test_comparison_counts_pairs(client: Any, base: Path) -> None:
    a, b = (instar.open_run(base / name) for name in ("poses", "steady"))
    text = client.get("/compare?a=poses&b=steady&threshold=0.1").text
    assert re.search(r"No rule shows a sure difference between|is surely (worse|better) under \d+ of", text)
    for rule in ("stretch(1, 0.8) => poses", "gamma(0.5) => poses"):
        one, two = (held.at(held.cases.is_not_null()) for held in (run.severities().only([rule]) for run in (a, b)))
        assert one.cases.to_list() == two.cases.to_list()
        hits = [held.violated({rule: 0.1})[0] for held in (one, two)]
        both = ~np.isnan(one.severity[0]) & ~np.isnan(two.severity[0])
        row = next(part for part in re.split("<tr[ >]", text) if f">{rule.partition(' =')[0]}</a>" in part)
        numbers = {
            name: int(re.search(rf'data-name="{name}">(\d+)<', row)[1])  # type: ignore[index]
            for name in ("only A", "only B", "both", "judged")
        }
        assert numbers == {
            "only A": (hits[0] & ~hits[1] & both).sum(),
            "only B": (hits[1] & ~hits[0] & both).sum(),
            "both": (hits[0] & hits[1] & both).sum(),
            "judged": both.sum(),
        }
    assert (
        "no rules in common" in client.get("/compare?a=poses&b=walks").text
        or "no cases in common" in client.get("/compare?a=poses&b=walks").text
    )


# --- hostile names ---------------------------------------------------------------------------------


def test_answers_in_words_stand_beside_the_pictures_that_are_compared(tmp_path: Path) -> None:
    """Pictures of a classifier's pairs look the same: what differs is what it said."""

    def constant(pixels: np.ndarray) -> instar.Labels:
        return instar.Labels(("cat", "dog"), np.array([0.9, 0.1]))

    def reversing(pixels: np.ndarray) -> instar.Labels:
        return instar.Labels(
            ("cat", "dog") if pixels[:, :80].mean() > pixels[:, 80:].mean() else ("dog", "cat"), np.array([0.9, 0.1])
        )

    write_scenes(tmp_path / "data", 2)
    for system in (constant, reversing):
        out = tmp_path / system.__name__
        instar.run(system, suite("mirror(h)"), tmp_path / "data", out=out, workers=0)
    client = opened(tmp_path / "constant", tmp_path / "reversing")
    text = client.get("/compare?a=constant&b=reversing").text
    cards = re.findall(r'<article class="pair".*?</article>', text, re.DOTALL)
    assert cards
    for card in cards:
        shown = " ".join(re.sub(r"<[^>]*>", " ", card).split())
        assert "cat still comes first" in shown and re.search(r"(cat|dog) came first, now (cat|dog) does", shown)
    page = client.get("/rule?run=constant&rule=mirror(h)%20%3D%3E%20class_kept").text
    assert page.count("cat still comes first") == 2, "examples of a rule show answers, too"
    assert "first in the source alone" not in text, "a mark of answers that are not shown has no meaning here"
    case = client.get("/case?run=constant&case=000.png").text
    assert "source; the answer to it: cat (0.90), dog (0.10)" in case, "nothing is drawn of an answer in words"


def test_a_hostile_case_id_is_text_and_its_addresses_work(client: Any) -> None:
    text = client.get(address("/gallery", {"run": "poses", "q": "große"})).text
    assert "<b>gro" not in text and html.escape("<b>große<b> &", quote=False) in text
    link = html.unescape(re.search(r'class="open" href="([^"]+)"', text)[1])  # type: ignore[index]
    answer = client.get(link)
    assert answer.status_code == 200 and "<b>gro" not in answer.text
    picture = html.unescape(re.search(r'src="(/picture[^"]+)"', text)[1])  # type: ignore[index]
    drawn = client.get(picture)
    assert drawn.status_code == 200 and drawn.headers["content-type"] == "image/jpeg"
    pixels = cv2.imdecode(np.frombuffer(drawn.content, np.uint8), cv2.IMREAD_COLOR)
    assert pixels is not None and pixels.shape[:2] == (360, 480)


def test_hostile_search_text_and_reasons_are_text(client: Any) -> None:
    text = client.get(address("/gallery", {"run": "poses", "q": '"><script>alert(1)</script>'})).text
    assert "<script>alert" not in text
    text = client.get("/gallery?run=poses&status=failed").text
    assert SCRIPT not in text and "&lt;script&gt;alert" in text


@pytest.mark.parametrize(
    "path",
    [
        "/picture?run=poses&case=../../etc/passwd&w=240",
        "/picture?run=poses&case=..%2F..%2Fetc%2Fpasswd&w=240",
        "/picture?run=poses&case=%2Fetc%2Fpasswd&w=240",
        "/picture?run=7&case=00.png&w=240",
        "/picture?run=poses&case=00.png&w=241",
        "/picture?run=poses&case=00.png&w=99999999",
        "/picture?run=poses&case=00.png&side=up",
        "/picture?run=poses&case=00.png&side=follow-up&w=240",
        "/picture?run=poses&case=00.png&rule=mirror(v)&w=240",
        "/picture?run=poses&case=00.png&rule=__import__(%27os%27)&w=240",
        "/static/../index.py",
        "/static/..%2Findex.py",
        "/static/%2e%2e/viewer/app.py",
        "/static//etc/passwd",
        "/static/viewer.css/..",
        "/static/report.js%00",
        "/etc/passwd",
        "/case?run=poses&case=../../etc/passwd",
        "/case?run=9&case=00.png",
        "/rule?run=poses&rule=nonsense",
        "/rule?run=poses",
        "/gallery?run=99",
        "/compare?a=5&b=0",
        "/manifest.json",
        "/..%2f..%2fetc%2fpasswd",
    ],
)
def test_what_is_not_in_the_run_is_not_there(client: Any, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404, answer.text
    assert "root:" not in answer.text and "Traceback" not in answer.text


def test_static_files_are_those_of_the_table(client: Any) -> None:
    styles, scripts = ("base.css", "viewer.css", "triage.css"), ("viewer.js", "triage.js")
    for name, kind in (*((name, "text/css") for name in styles), *((name, "text/javascript") for name in scripts)):
        answer = client.get(f"/static/{name}")
        assert answer.status_code == 200 and answer.headers["content-type"].startswith(kind)


# --- who may ask -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1",
        f"127.0.0.1:{PORT + 1}",
        f"127.0.0.1.evil.example:{PORT}",
        "",
        f"[::1]:{PORT}",
        f"0.0.0.0:{PORT}",
    ],
)
def test_another_host_is_refused(client: Any, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 403


def test_this_host_is_answered(client: Any) -> None:
    for host in (f"127.0.0.1:{PORT}", f"localhost:{PORT}"):
        assert client.get("/pulse", headers={"Host": host}).status_code == 200
        assert client.get("/pulse", headers={"Host": host, "Origin": f"http://{host}"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": f"http://127.0.0.1:{PORT + 1}"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
    ],
)
def test_another_site_is_refused(client: Any, headers: dict[str, str]) -> None:
    for path in ("/", "/gallery?run=poses", "/picture?run=poses&case=00.png&w=240", "/pulse"):
        assert client.get(path, headers=headers).status_code == 403


def test_a_shared_link_may_be_followed(client: Any) -> None:
    assert client.get("/", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_changed(client: Any, method: str) -> None:
    assert client.request(method, "/gallery?run=poses").status_code == 405
    assert client.head("/gallery?run=poses").status_code == 200


def test_every_answer_keeps_others_out(client: Any) -> None:
    for path in (
        "/",
        "/gallery?run=poses",
        "/nothing",
        "/pulse",
        "/static/viewer.js",
        "/picture?run=poses&case=00.png&w=240",
    ):
        answer = client.get(path)
        policy = answer.headers["content-security-policy"]
        for part in (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'self'",
        ):
            assert part in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert not [name for name in answer.headers if name.startswith("access-control")]
    assert client.get("/", headers={"Host": "evil.example"}).headers["x-content-type-options"] == "nosniff"


def test_no_page_has_inline_script_or_style(client: Any) -> None:
    for path in (
        "/",
        "/gallery?run=poses",
        f"/rule?run=poses&rule={quote(MIRROR)}",
        "/compare?a=poses&b=steady",
        "/case?run=poses&case=00.png",
    ):
        text = client.get(path).text
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|<script(?! src=)", text)
        assert not re.search(r"""(src|href|action)=["'](https?:)?//""", text)


# --- pictures --------------------------------------------------------------------------------------


def test_both_sides_in_every_width(client: Any) -> None:
    for width in (240, 480, 960):
        for side in ("source", "follow-up"):
            choice = {"run": "poses", "case": "00.png", "rule": MIRROR, "side": side, "w": width}
            answer = client.get(address("/picture", choice))
            assert answer.headers["content-type"] == "image/jpeg"
            drawn = cv2.imdecode(np.frombuffer(answer.content, np.uint8), 1)
            assert drawn is not None and drawn.shape[1] == width
    tag = answer.headers["etag"]
    again = client.get(str(answer.url), headers={"If-None-Match": tag})
    assert again.status_code == 304 and "private" in again.headers["cache-control"]


def test_the_follow_up_is_the_one_that_was_predicted(client: Any, base: Path) -> None:
    answer = client.get("/picture?run=steady&case=00.png&rule=mirror(h)%20%3D%3E%20poses&side=follow-up&w=240")
    source = client.get("/picture?run=steady&case=00.png&w=240")
    read = [cv2.imdecode(np.frombuffer(a.content, np.uint8), 1) for a in (source, answer)]
    left, right = (pixels.astype(float) for pixels in read if pixels is not None)
    # a corner without any drawing: the follow-up is the source, mirrored
    assert abs(left[:, ::-1] - right).mean() < 15 < abs(left - right).mean()


def test_a_failed_pair_shows_its_source_and_the_reason(client: Any) -> None:
    text = client.get("/gallery?run=poses&status=failed").text
    assert 'class="frame reason"' in text
    source = html.unescape(re.search(r'src="(/picture[^"]+)"', text)[1])  # type: ignore[index]
    assert client.get(source).headers["content-type"] == "image/jpeg"


def test_a_follow_up_is_said_to_show_what_is_drawn_on_it(client: Any, tmp_path: Path) -> None:
    """Of the presence of objects no answer is expected that could be drawn."""
    from instar.outputs.detections import Detections

    def unmoved(pixels: np.ndarray) -> Detections:
        return Detections.from_xyxy([[10, 10, 60, 60]], ["cat"])

    write_scenes(tmp_path / "data", 1)
    rules = suite("object_noise(0.5, 16) => presence(kept)")
    instar.run(unmoved, rules, tmp_path / "data", out=tmp_path / "run", workers=0)
    text = opened(tmp_path / "run").get(f"/case?run=run&case=000.png&shown={rules.rules[0].id}").text
    assert "follow-up, with the answer to it" in text and "the expected answer" not in text
    text = client.get(f"/case?run=poses&case=00.png&shown={MIRROR}").text
    assert "follow-up, with the expected answer and the actual one" in text


def test_a_source_in_which_nothing_was_found_says_so(tmp_path: Path) -> None:
    """Without words a picture with nothing on it looks like one that was not drawn yet."""

    def blind(pixels: np.ndarray) -> instar.Detections:
        return instar.Detections(np.empty((0, 4), np.float32), (), np.empty(0, np.float32))

    write_scenes(tmp_path / "data", 1)
    instar.run(blind, suite("gamma(2)"), tmp_path / "data", out=tmp_path / "run", workers=0)
    client = opened(tmp_path / "run")
    assert "source; nothing was found in it" in client.get("/case?run=run&case=000.png").text
    pair = client.get("/case?run=run&case=000.png&shown=gamma(2)").text
    assert "follow-up; nothing was found in it" in pair and "no answer" not in pair
    assert "No pair was judged" in client.get("/gallery?run=run").text
    assert "no case matches" in pair


def test_missing_pictures_say_so_and_are_found_elsewhere(base: Path, tmp_path: Path) -> None:
    write_scenes(tmp_path / "data", 2)
    instar.run(steady, suite("mirror(h)"), tmp_path / "data", out=tmp_path / "run", workers=0, zones="none")
    (tmp_path / "data").rename(tmp_path / "moved")
    picture = "/picture?run=run&case=000.png&rule=mirror(h)%20%3D%3E%20poses&side=follow-up&w=240"
    with opened(tmp_path / "run") as client:
        assert client.get("/gallery?run=run").status_code == 200
        answer = client.get(picture)
        assert answer.status_code == 200 and answer.headers["content-type"] == "image/svg+xml"
        assert "no such file; pass `dataset` to" in " ".join(re.findall(r">([^<]+)</t", answer.text))
    with opened(tmp_path / "run", worded=flags_spelled) as client:  # as the command shows it
        assert "pass --dataset to" in " ".join(re.findall(r">([^<]+)</t", client.get(picture).text))
    with opened(tmp_path / "run", dataset=tmp_path / "moved") as client:
        assert client.get(picture).headers["content-type"] == "image/jpeg"
    (tmp_path / "moved" / "000.png").write_bytes((tmp_path / "moved" / "001.png").read_bytes())
    with opened(tmp_path / "run", dataset=tmp_path / "moved") as client:
        assert "its content changed" in client.get(picture).text


def test_plates_are_well_formed_whatever_the_reason() -> None:
    from xml.etree import ElementTree

    for reason in ("", "<b>&", "x" * 5000, "a\x00b\x1b[31m", "日本語 " * 40):
        assert ElementTree.fromstring(plate(reason, 240).content).tag.endswith("svg")


def test_what_is_held_stays_within_bounds(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "HELD_BYTES", 20_000)
    monkeypatch.setattr(pictures, "HELD_CASES", 3)
    held, store = Pictures(), Store(base / "poses")
    for number in (*range(3), *range(4, 12)):
        made = held.picture(store, store.manifest(), "v", case=f"{number:02d}.png", side="source", width=240)
        assert made.drawn
    assert held._bytes == sum(len(each.content) for each in held._drawn.values()) <= 20_000
    assert len(held._cases) <= 3 and not held._busy


# --- folders that change ---------------------------------------------------------------------------


def test_a_run_that_goes_on_shows_what_is_new(tmp_path: Path) -> None:
    write_scenes(tmp_path / "data", 3)
    instar.run(steady, suite("mirror(h)"), tmp_path / "data", out=tmp_path / "run", workers=0, zones="none")
    with opened(tmp_path / "run") as client:
        assert total(client.get("/gallery?run=run&status=all")) == 3
        before = client.get("/pulse").json()
        assert not before["live"] and 'data-live role="status" hidden' in client.get("/").text
        write_scenes(tmp_path / "data", 5)
        instar.run(
            steady, suite("mirror(h)", "gamma(0.5)"), tmp_path / "data", out=tmp_path / "run", workers=0, zones="none"
        )
        client.app.state.viewer.runs[0].look()
        assert total(client.get("/gallery?run=run&status=all")) == 10
        after = client.get("/pulse").json()
        assert after["live"] and after["version"] != before["version"] and after["age"] < 60
        assert 'data-live role="status" hidden' not in client.get("/").text


def test_a_run_folder_that_vanishes(tmp_path: Path) -> None:
    write_scenes(tmp_path / "data", 2)
    instar.run(steady, suite("mirror(h)"), tmp_path / "data", out=tmp_path / "run", workers=0, zones="none")
    with opened(tmp_path / "run") as client:
        assert client.get("/").status_code == 200
        (tmp_path / "run").rename(tmp_path / "elsewhere")
        for path in (
            "/",
            "/gallery?run=run",
            "/rule?run=run&rule=mirror(h)%20%3D%3E%20poses",
            "/case?run=run&case=000.png",
            "/compare?a=run&b=run",
        ):
            answer = client.get(path)
            assert answer.status_code == 200 and "holds no run" in answer.text, path
        assert client.get("/picture?run=run&case=000.png&w=240").headers["content-type"] == "image/svg+xml"
        client.app.state.viewer.runs[0].look()
        assert client.get("/pulse").status_code == 200
        (tmp_path / "elsewhere").rename(tmp_path / "run")
        client.app.state.viewer.runs[0].look()
        assert total(client.get("/gallery?run=run&status=all")) == 2


def test_a_folder_without_a_run_and_a_run_without_predictions(tmp_path: Path, base: Path) -> None:
    (tmp_path / "empty").mkdir()
    begun = Store(tmp_path / "begun")
    begun.write_manifest(replace(Store(base / "poses").manifest(), output=None))
    with opened(tmp_path / "empty", tmp_path / "begun") as client:
        text = client.get("/").text
        assert "holds no run" in text and "holds no predictions yet" in text
        for run in ("empty", "begun"):
            answer = client.get(f"/gallery?run={run}")
            assert answer.status_code == 200 and "looks again by itself" in answer.text and "refresh" in answer.headers
    with opened(tmp_path) as client:
        assert f"folders in it do: {tmp_path / 'begun'}" in client.get("/").text
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "manifest.json").write_text("{")
    with opened(tmp_path / "damaged") as client:
        assert "is damaged" in client.get("/").text


def test_a_run_in_which_everything_failed(tmp_path: Path) -> None:
    write_scenes(tmp_path / "data", 2)
    (tmp_path / "data" / "broken.png").write_bytes(b"no picture")

    def never(pixels: np.ndarray) -> instar.Poses:
        raise RuntimeError("never")

    instar.run(
        instar.declare(kind="poses")(never),
        suite("gamma(0.5)"),
        tmp_path / "data",
        out=tmp_path / "run",
        workers=0,
        zones="none",
    )
    with opened(tmp_path / "run") as client:
        text = client.get("/").text
        assert "2 pairs of 1 rule failed (error): " in text and "never" in text
        assert "1 unreadable" in text and "no rule identity" in text
        assert total(client.get("/gallery?run=run&status=error")) == 2
        assert total(client.get("/gallery?run=run&status=timeout")) == 0
        assert client.get("/rule?run=run&rule=gamma(0.5)%20%3D%3E%20poses").status_code == 200
        answer = client.get("/case?run=run&case=broken.png")
        assert answer.status_code == 200 and "has no verdicts" in answer.text
        text = client.get(f"/case?run=run&case={instar.open_run(tmp_path / 'run').cases()['case'][0]}").text
        assert "No rule is judged" in text and "1 rule: 1 failed" in text and "No rule is violated" not in text


def test_families_are_not_ranked_where_nothing_was_judged(tmp_path: Path) -> None:
    def seeing(pixels: np.ndarray) -> instar.Detections:
        return instar.Detections.from_xyxy(np.full((int(sees), 4), [10, 10, 60, 60]), ["cat"] * int(sees))

    write_scenes(tmp_path / "data", 1)
    for sees in (False, True):
        instar.run(seeing, suite("gamma(2)", "mirror(h)"), tmp_path / "data", out=tmp_path / str(sees), workers=0)
    shown = [settled(opened(tmp_path / str(sees)), "/").text for sees in (False, True)]
    assert ["at least one rule of the family" in text for text in shown] == [False, True]


def test_the_page_of_a_rule_with_one_case_speaks_of_one(tmp_path: Path) -> None:
    write_scenes(tmp_path / "data", 1)
    instar.run(steady, suite("identity", "mirror(h)"), tmp_path / "data", out=tmp_path / "run", workers=0)
    text = settled(opened(tmp_path / "run"), f"/rule?run=run&rule={MIRROR}").text
    assert "under identity, the one case that was judged stays within it" in " ".join(text.split())
    assert "95 % of 1 case" not in text and "even steps" not in text and "The case that was judged" in text


def test_an_unknown_judging_says_which_there_are(client: Any) -> None:
    answer = client.get("/gallery?run=poses&judging=nonsense")
    assert answer.status_code == 200 and "it has aggregate=max, default" in answer.text
    assert client.get("/gallery?run=poses&judging=..%2F..%2Fetc").status_code == 200


# --- charts ----------------------------------------------------------------------------------------


def test_bins_hold_every_severity_once() -> None:
    rng = np.random.default_rng(0)
    for severity in (
        rng.lognormal(-3, 2, 500),
        np.zeros(5),
        np.full(4, np.inf),
        np.array([]),
        np.array([0.2]),
        np.array([1e-12, 1e9, 0, np.inf]),
        np.array([0.3, 0.3 - 1e-12, 1.0]),
    ):
        for threshold in (0.0, 0.2, 0.3, 0.37, 1.0, np.inf):
            edges, counts, zeros, infinite = bins(severity, threshold)
            assert sum(counts) + zeros + infinite == len(severity)
            assert edges == sorted(set(edges)) and len(counts) == max(0, len(edges) - 1)
            assert len(edges) <= 40
            hit = int(((severity >= threshold) & (severity > 0)).sum())
            inside = sum(n for edge, n in zip(edges, counts, strict=False) if edge >= threshold)
            assert hit == inside + (infinite if severity.size else 0)


def test_the_line_of_a_threshold_below_all_severities_stands_at_its_own_number() -> None:
    edges, counts, *_ = bins(np.ones(10), 0.1)
    assert edges[0] == 0.1 and sum(counts) == 10


def test_a_chart_that_is_not_drawn_yet_is_asked_for_again(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has to reload a page whose script asks for what has `data-later`; who runs no scripts is told to."""
    monkeypatch.setattr("instar.viewer.charts._chart", lambda *spec: [])
    page = settled(client, "/?run=poses").text
    (words,) = set(re.findall(r"<p[^>]*data-later>(.*?)</p>", page))
    assert words.startswith("The chart is being drawn, and appears here by itself.<noscript>")


def test_no_page_waits_for_the_first_chart(base: Path) -> None:
    """It holds up all of Python for a third of a second, and is drawn when the page was sent."""
    program = f"""
import sys
from starlette.testclient import TestClient
from instar.viewer import application, charts
made = application([{str(base / "steady")!r}], port={PORT})
(run,) = made.state.viewer.runs
run.look()
charts.PATIENCE = charts.HEAD_START = 5.0
client = TestClient(made, base_url="http://127.0.0.1:{PORT}")
assert "data-later" in client.get("/").text
assert "vl_convert" not in sys.modules
while "data-later" in client.get("/").text: pass
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def test_a_histogram_of_anything_can_be_drawn(client: Any) -> None:
    for severity in (np.zeros(3), np.full(3, np.inf), np.array([0.1]), np.array([1e-12, 1e9])):
        for threshold, floor in ((0.2, None), (np.inf, 0.01), (0.0, np.inf)):
            histogram(severity, threshold, "body lengths", floor)


# --- the command -----------------------------------------------------------------------------------


def test_the_command_serves_loopback_and_ends_with_one_line(base: Path) -> None:
    begun = subprocess.Popen(
        [sys.executable, "-m", "instar", "view", str(base / "steady"), "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert begun.stdout is not None
        found = re.match(r"http://127\.0\.0\.1:\d+/", begun.stdout.readline())
        assert found
        with urllib.request.urlopen(found[0] + "pulse", timeout=600) as answer:
            assert "version" in json.loads(answer.read())
        begun.send_signal(signal.SIGINT)
        said, wrong = begun.communicate(timeout=600)
    finally:
        begun.kill()
    assert (begun.returncode, said, wrong) == (0, "viewer stopped\n", "")


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "instar", "view", str(tmp_path / "nothing"), "--no-browser"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and "no such run folder" in done.stderr and len(done.stderr.splitlines()) == 1


def test_instar_does_not_load_the_viewer() -> None:
    code = (
        "import sys, instar.api, instar.report; "
        "print(*(m for m in ('jinja2', 'starlette', 'uvicorn', 'vl_convert') if m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == []


def test_a_read_only_run_is_shown_as_it_was_judged(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(base / "steady", tmp_path / "run")

    def refused(*_: Any) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("instar.viewer.index.judge", refused)
    with opened(tmp_path / "run") as client:
        assert total(client.get("/gallery?run=run&status=all")) == 8 * 12


def test_rates_are_shown_before_the_findings_are_there(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Findings ask about single landmarks, which takes seconds of a million pairs; rates are known long before."""
    done = threading.Event()
    monkeypatch.setattr(
        "instar.viewer.index.findings", lambda *args, **options: [Finding("test.well", "All well.")] * done.wait(600)
    )
    monkeypatch.setattr("instar.viewer.overview.PATIENCE", 0.01)
    made = application([base / "steady"], port=PORT)
    (run,) = made.state.viewer.runs
    looking = threading.Thread(target=run.look)
    looking.start()
    client = TestClient(made, base_url=f"http://127.0.0.1:{PORT}")
    page = settled(client, "/gallery")
    assert "data-waiting" not in page.text, "pairs need no findings"
    early = client.get("/").text
    assert "data-waiting" in early and "The findings are being read" in early and "gamma(0.5)" in early
    done.set()
    looking.join()
    late = client.get("/").text
    assert "data-waiting" not in late and "All well." in late
