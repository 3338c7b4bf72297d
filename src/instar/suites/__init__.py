"""Suites by name, by path, or as rules: tasks bring their tables, users their own lists of rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

from instar.outputs import Row, output_kind, output_kinds
from instar.registry import find, loaded_object, names
from instar.relations import Rule, named_rule, rule
from instar.spelling import unknown
from instar.suites.file import read_suite
from instar.suites.suite import KEPT, Condition, Suite, joined, listed_suite
from instar.transforms import families

# fmt: off
__all__ = [
    "KEPT", "Condition", "Suite", "declared", "default_suite", "listed_suite", "named_suite", "suite", "suite_pieces",
    "suites",
]
# fmt: on

T = TypeVar("T")


@cache
def _named(name: str) -> Suite:
    """A suite that a task or an installed package brings; its rules are parsed now."""
    brought = find("suite", name, "suites", object)
    made = brought() if callable(brought) and not isinstance(brought, Suite) else brought
    if not isinstance(made, Suite):
        raise TypeError(f"suite {name!r} is a {type(made).__name__}, not a Suite")
    return made


def suites() -> dict[str, Suite]:
    """Every suite by name: those of tasks and those of installed packages."""
    return {name: _named(name) for name in names("suites")}


def default_suite(kind: str, header: Row | None = None) -> Suite:
    """The suite for a kind of output when nobody names one; its `header` may ask for another: a hand's skeleton does.

    >>> default_suite("poses", {"skeleton": {"suite": "hands"}}).name
    'hands'
    """
    name = output_kind(kind).suite_of(header or {})
    if name is None:
        raise unknown(
            "output kind with a suite of its own",
            kind,
            [other for other, output in output_kinds().items() if output.suite],
        )
    return _named(name)


def suite(name: str) -> Suite:
    """A suite by name, by path (`mine.toml`), as `package.module:object`, or one rule's spelling.

    Several are joined by `+`; rules they share count once.

    >>> len(suite("met-pose")), len(suite("met-pose/sub"))
    (123, 19)
    >>> [rule.id for rule in suite("met-pose/sub + contrast(0.5)").rules][-1]
    'contrast(0.5)'
    """
    text = name.strip()
    if text in names("suites"):
        return _named(text)
    if text.lower().endswith(".toml") and ("+" not in text or Path(text).is_file()):
        return read_suite(Path(text), suite)
    pieces = suite_pieces(text)
    if len(pieces) > 1:
        return joined([suite(piece) for piece in pieces], name=" + ".join(pieces))
    if ":" in text and not set(text) & set("()|=,"):
        loaded = loaded_object(text)
        if isinstance(loaded, Suite):
            return loaded
    elif not set(text) & set("()|=[") and text not in families():
        there = names("suites")
        raise unknown(
            "suite",
            text,
            [*there, *families()],
            see=f"Suites: {', '.join(there)}; or a file such as mine.toml, or a rule such as gamma(0.5).",
        )
    return _of_rule(rule(text))


def named_suite(text: str) -> Suite:
    """A suite as a run names it: registered ones and rules, joined by `+`. It loads no code and reads no file."""
    pieces = suite_pieces(text)
    if len(pieces) > 1:
        return joined([named_suite(piece) for piece in pieces], name=" + ".join(pieces))
    return _named(text) if text in names("suites") else _of_rule(named_rule(text))


def declared(suites: Iterable[str], rules: Iterable[str], what: Callable[[Suite], Mapping[str, T]]) -> dict[str, T]:
    """Return what the suites of a run declare about its rules, by rule.

    Suites that are unknown here, such as a file that was moved, declare nothing. A suite may name a rule without its
    relation.
    """
    known: dict[str, T] = {}
    for name in suites:
        with suppress(KeyError, ValueError, FileNotFoundError):
            known |= what(named_suite(name))
    spelled = {rule: rule if rule in known else rule.partition(" => ")[0] for rule in rules}
    return {rule: known[name] for rule, name in spelled.items() if name in known}


def _of_rule(one: Rule) -> Suite:
    kind = one.relation.relation.output if one.relation else "any"
    return Suite(one.id, (one,), output=None if kind == "any" else kind)


def suite_pieces(text: str) -> list[str]:
    """The suites that a text joins: what stands between plus signs that are in no brackets."""
    pieces, depth, start = [], 0, 0
    for place, sign in enumerate(text):
        depth += (sign in "([") - (sign in ")]")
        if sign == "+" and depth == 0:
            pieces.append(text[start:place].strip())
            start = place + 1
    pieces.append(text[start:].strip())
    if len(pieces) > 1 and not all(pieces):
        raise ValueError(f"suite {text!r}: there is nothing on one side of a +")
    return pieces
