"""Checks in the formats that build servers and reviews read: JUnit, SARIF, Markdown."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote
from xml.etree import ElementTree

from instar import __version__
from instar.gate.check import Check, count_words
from instar.report.words import markdown_text, visible

SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def junit(checks: Sequence[Check], name: str) -> str:
    """A test suite with one test case for each check, with all that readers of this format ask for."""
    failures, skipped = (str(sum(one.state == state for one in checks)) for state in ("fails", "open"))
    counts = {"tests": str(len(checks)), "failures": failures, "errors": "0", "skipped": skipped, "time": "0"}
    made = {"timestamp": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}", "hostname": visible(platform.node()) or "localhost"}
    suite = ElementTree.Element("testsuite", {"name": visible(name), **counts, **made})
    for one in checks:
        case = ElementTree.SubElement(suite, "testcase", classname="instar.gate", name=visible(one.name), time="0")
        if one.state == "open":
            ElementTree.SubElement(case, "skipped", message=visible(one.words))
        if one.state == "fails":
            ElementTree.SubElement(case, "failure", message=visible(one.words), type="policy").text = visible(one.words)
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suites, "unicode") + "\n"


def sarif(checks: Sequence[Check], policy: str) -> str:
    """A log with one result for each check that fails, at its line of the policy."""
    rules = [
        {"id": identity, "shortDescription": {"text": _plain(one.name)}}
        for identity, one in {_identity(one): one for one in checks}.items()
    ]
    results = [
        {
            "ruleId": _identity(one),
            "level": "error",
            "message": {"text": _plain(one.words)},
            "locations": [
                {"physicalLocation": {"artifactLocation": {"uri": _address(policy)}, "region": {"startLine": one.line}}}
            ],
        }
        for one in checks
        if one.state == "fails"
    ]
    driver = {"name": "Instar", "version": __version__, "rules": rules}
    log = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return json.dumps(log, indent=1, ensure_ascii=False) + "\n"


def _address(path: str) -> str:
    """A path as SARIF has it: below the current directory, which is that of the repository, relative to it."""
    below = os.path.relpath(path)
    return quote(os.fsencode(path if below.startswith("..") else below).replace(b"\\", b"/"))


def _identity(one: Check) -> str:
    return f"instar/{visible(one.name)}"


def _plain(text: str) -> str:
    """Return a text for a message of SARIF, in which `[words](address)` would be a link."""
    return visible(text).replace("](", "]\u200b(")


@dataclass(frozen=True, slots=True)
class WorstPair:
    """A pair of a failed check: what it is, how far it strays in words, and its picture's path, if there is one."""

    case: str
    rule: str
    words: str
    picture: str = ""


def markdown(checks: Sequence[Check], title: str, pairs: Sequence[WorstPair] = ()) -> str:
    """A summary for a pull request."""
    holds = all(one.passed for one in checks)
    verdict = (
        f"**It holds: all {len(checks)} checks pass.**" if holds else f"**It does not hold: {count_words(checks)}**"
    )
    lines = [f"## {markdown_text(title)}", "", verdict, "", "| | check | reason |", "|---|---|---|"]
    order = sorted(checks, key=lambda one: list(_SIGNS).index(one.state))
    lines += [f"| {_SIGNS[one.state]} | {markdown_text(one.name)} | {markdown_text(one.words)} |" for one in order]
    if pairs:
        lines += ["", "### The worst pairs", "", "| case | rule | severity | |", "|---|---|---|---|"]
        lines += [
            f"| {markdown_text(one.case)} | {markdown_text(one.rule)} | {markdown_text(one.words)} | "
            f"{f'![{markdown_text(one.case)}]({quote(one.picture)})' if one.picture else ''} |"
            for one in pairs
        ]
    return "\n".join(lines) + "\n"


_SIGNS = {"fails": "❌", "open": "❔", "holds": "✅"}
