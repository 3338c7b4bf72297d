"""What is said of a run in words, and proof that the terminal and the report say all of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import unescape
from typing import Any

from typer.testing import CliRunner

import instar
from instar.cli import app
from instar.report import Finding, findings
from instar.report.page import make_report, page
from instar.systems import System
from instar.systems.check import check_system
from tests.missing import module


def plain(text: str) -> str:
    return text.replace("\xa0", " ")


def said(run: instar.Run, **how: Any) -> list[Finding]:
    """The findings of a run, with plain spaces; made once, however often a test asks."""

    def make() -> list[Finding]:
        return [replace(each, words=plain(each.words)) for each in findings(run, **how)]

    return run.cached(("said", *sorted(how.items())), make)


def accusations(run: instar.Run, **how: Any) -> list[str]:
    """What is said against a system: nothing, if it is flawless."""
    return [each.words for each in said(run, **how) if each.against]


def against(run: instar.Run, **how: Any) -> list[str]:
    """Return the codes of the findings against a system."""
    return [each.code for each in said(run, **how) if each.against]


def finding(run: instar.Run, code: str, **how: Any) -> Finding:
    """Return the first finding with this code."""
    codes = {each.code: each for each in reversed(said(run, **how))}
    assert code in codes, f"{code} is not among {list(codes)}"
    return codes[code]


def named_rules(run: instar.Run, **how: Any) -> dict[str, set[str]]:
    """Return the violated rules that the findings name, and the kinds of their violations where they tell them."""
    found = [one for one in said(run, **how) if one.against]
    told = {one.figures["rule"]: set(one.figures["kinds"]) for one in found if one.code == "rule.violated"}
    more = {rule for one in found if one.code == "rule.violated_more" for rule in one.figures["rules"]}
    return {**{rule: set[str]() for rule in more}, **told}


def assert_accused(run: instar.Run, words: str, **how: Any) -> None:
    """One sentence against the system holds these words, a regular expression."""
    sentences = accusations(run, **how)
    assert words, "a fault must be said in words"
    assert any(re.search(words, sentence) for sentence in sentences), "\n".join(sentences)


def assert_checked(system: System | Callable[..., object], inputs: Sequence[tuple[str, Any]], code: str) -> None:
    """`instar check` has a finding with this code against a system that it runs on a few inputs."""
    codes = {one.code for one in check_system(instar.system(system), inputs)[0] if one.state != "ok"}
    assert code in codes, codes


def assert_shown(run: instar.Run) -> None:
    """`instar show` prints every finding."""
    shown = CliRunner().invoke(app, ["show", str(run.folder)])
    assert shown.exit_code == 0, shown.output
    _assert_holds(shown.output, run)


def assert_shown_and_reported(run: instar.Run) -> None:
    """`instar show` prints every finding, and the report's page holds every finding."""
    module("vl_convert")
    assert_shown(run)
    html = re.sub(r'<span class="whole">([^<]*)</span>', r"\1", page(make_report([run], images=0)))  # an interval
    _assert_holds(unescape(html), run)


def _assert_holds(text: str, run: instar.Run) -> None:
    sentences = [each.words for each in said(run)]
    missing = [sentence for sentence in sentences if sentence not in plain(text)]
    assert sentences and not missing, missing
