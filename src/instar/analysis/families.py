"""What rules have in common: the family of their transformation, the suite they are of, and a table of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import polars as pl

from instar.engine import bound_rules
from instar.outputs import output_kind
from instar.registry import names
from instar.relations import BoundRule, Rule, levels_of
from instar.suites import named_suite, suite_pieces
from instar.transforms.family import Step

OTHERS = "other rules"
"""The group of rules that are of no registered suite, where they come from more than three places."""


def family_name(rule: Rule) -> str:
    """The family of a rule's transformation; where it changes a zone alone, that zone, which says more.

    >>> from instar.relations import rule
    >>> family_name(rule("filtered(greyscale, skin)")), family_name(rule("gamma(0.5) | mirror(h)"))
    ('zone skin', 'gamma | mirror')
    """
    return " | ".join(_name_of(step) for step in rule.transformations[0].steps)


def _name_of(step: Step) -> str:
    zone = step.values.get("zone")
    return f"zone {zone}" if isinstance(zone, str) else step.family.name


def rules_by_suite(suites: Sequence[str], rules: Sequence[str], kind: str) -> dict[str, list[str]]:
    """These rules by the registered suites that have them, and those that none of them has, as the user gave them."""
    known = set(names("suites"))
    pieces = list(dict.fromkeys(piece for text in suites for piece in suite_pieces(text)))
    sets: dict[str, list[str]] = {}
    for name in (piece for piece in pieces if piece in known):
        with suppress(KeyError, ValueError):  # a suite that has changed since may name what is no longer there
            members = {one.id for one in bound_rules(named_suite(name).rules, kind)}
            sets[name] = [rule for rule in rules if rule in members]
    others = [rule for rule in rules if not any(rule in members for members in sets.values())]
    own = [piece for piece in pieces if piece not in sets]
    return {**sets, (" + ".join(own) if 0 < len(own) <= 3 else OTHERS): others} if others else sets


def rules_table(
    kind: str, bound: Sequence[BoundRule], units: Mapping[str, str], members: Sequence[str] | None = None
) -> pl.DataFrame:
    """One row per rule, as `Run.rules` says. Where `members` are combined by a search, all others are what it tried."""
    own = output_kind(kind).relation
    many = [one for one in bound if one.relation.relation.over == "cases"]
    levels, bounded = (
        {level.id for one in many if one.relation.relation.responds is responds for level in levels_of(one, kind)}
        for responds in (True, False)
    )
    tried = set() if members is None else {one.id for one in bound} - {*members}
    rows = [
        {
            "rule": one.id,
            "name": one.left if one.relation.relation.name == own else one.id,
            "words": one.words,
            "family": family_name(one),
            "relation": one.relation.relation.name,
            "unit": units[one.relation.relation.name],
            "over": "level" if one.id in (levels - bounded) | tried else one.relation.relation.over,
        }
        for one in bound
    ]
    columns = "rule", "name", "words", "family", "relation", "unit", "over"
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String))
