"""Whatever a file, a class or a model is called, Markdown shows its name and does nothing else with it."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from instar.gate import Check, WorstPair, markdown
from instar.report.tables import markdown_lines
from instar.report.words import markdown_text, one_line

PIECES = [
    *re.findall(r"\S+", r"[a](http://b) ![a](b) <b> <!-- &lt; &#64; `a` `` *a* __a__ ~~a~~ | \ \| # === --- $a$ ! ]("),
    *re.findall(r"\S+", "@team me@host.org #12 GH-12 https://a.b www.a.b ftp://a <https://a.b> [a]:"),
    *("- ", "+ ", "* ", "1. ", "    ", "\n", "\r", "\t", "\x00", "\u2028", "\ud83d", "\uffff"),
]
HOSTILE = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=6).map("".join)
LIVE = re.compile(r"@\w|#\d|\bGH-\d|://|\bwww\.", re.IGNORECASE)
"""What GitHub turns into a link or a notification although Markdown doesn't."""
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def inline(text: str) -> list[list[Token]]:
    return [token.children or [] for token in PARSER.parse(text) if token.type == "inline"]


def shown(tokens: list[Token]) -> str:
    """The text of inline tokens, none of which may be anything but text."""
    assert {token.type for token in tokens} <= {"text", "text_special"}, tokens
    text = "".join(token.content for token in tokens)
    assert not LIVE.search(text)
    return text.replace("\u200b", "")


def plain(text: str) -> str:
    return " ".join(one_line(text).split()).replace("\u200b", "")


@given(HOSTILE)
@example("\\[click](http://evil.example)")
@example("\\| a")
@example("@team fixes #1")
def test_a_text_is_shown_literally_wherever_it_stands(text: str) -> None:
    tokens = PARSER.parse(markdown_text(text))
    assert [token.type for token in tokens] in ([], ["paragraph_open", "inline", "paragraph_close"])
    assert "".join(map(shown, inline(markdown_text(text)))) == plain(text)
    assert [shown(cell) for cell in inline("\n".join(markdown_lines([text, "a"], [[text, "b"]])))] == [
        *(plain(text), "a"),
        *(plain(text), "b"),
    ]


@given(HOSTILE, HOSTILE)
@example("a\\", "@team")
def test_a_summary_links_nothing_but_its_pictures(name: str, words: str) -> None:
    pair = WorstPair(name, name, words, "my pictures/1.png")
    tokens = inline(markdown([Check(name, False, words, 1)], name, [pair]))
    pictures = [token for cell in tokens for token in cell if token.type == "image"]
    assert [token.attrs["src"] for token in pictures] == ["my%20pictures/1.png"]
    assert [shown(token.children or []) for token in pictures] == [plain(name)]
    title, _, *table = ["".join(token.content for token in cell if token.type != "image") for cell in tokens]
    assert not any(LIVE.search(cell) for cell in [title, *table])
    names = [cell.replace("\u200b", "") for cell in (title, *table)]
    assert (names.count(plain(name)) >= 4 and plain(words) in names) or not plain(name)
    assert {token.type for cell in tokens for token in cell} <= {
        "text",
        "text_special",
        "image",
        "strong_open",
        "strong_close",
    }
