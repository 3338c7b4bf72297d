"""Files for build servers are whole, whatever cases and rules are called."""

from __future__ import annotations

import json
from xml.etree import ElementTree

from hypothesis import example, given
from hypothesis import strategies as st

from instar.gate import Check, junit, sarif
from instar.report.words import visible

HOSTILE = st.text(st.characters(), max_size=20) | st.sampled_from(
    ["]]>", "<a b='\"'>&", "\ufffe\uffff", "\x00\x1b", "\ud800", "\r\n\t "]
)


@given(HOSTILE, HOSTILE)
@example("\uffff", "]]>")
@example("[a](http://b)", "[a](http://b)")
def test_every_name_is_in_files_that_can_be_read(name: str, words: str) -> None:
    checks = [Check(name, False, words, 1), Check("open", False, words, 1, undecided=True)]
    (suite,) = ElementTree.fromstring(junit(checks, name).encode())
    failed, skipped = suite
    assert suite.attrib["name"] == failed.attrib["name"] == visible(name)
    assert failed[0].attrib["message"] == (failed[0].text or "") == skipped[0].attrib["message"] == visible(words)
    (run,) = json.loads(sarif(checks, "caf\udce9.toml").encode())["runs"]
    (result,) = run["results"]
    (rule,) = run["tool"]["driver"]["rules"][:1]
    assert result["ruleId"] == rule["id"]
    assert "](" not in result["message"]["text"] + rule["shortDescription"]["text"]
    assert result["message"]["text"].replace("\u200b", "") == visible(words).replace("\u200b", "")
