"""What rules have in common: the family of their transformation, and the suite they are of."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from instar.engine import bound_rules
from instar.registry import names
from instar.relations import Rule
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
