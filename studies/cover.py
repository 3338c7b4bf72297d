"""The smallest set of rules that catches every fault, exactly: a set cover, solved as an integer programme."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

RULE, ASK, NEW = 1_000_000, 1_000, 20
"""What a rule more weighs, an answer more that is asked for, and a rule that is not in the suite today: each more than
all that comes after it. Last come the faults that a rule catches, of which many are better."""


def follow_up(rule: str) -> str:
    """The change of a rule; rules with the same one share its answers."""
    return rule.partition(" => ")[0]


def smallest(
    caught: Mapping[str, frozenset[str]], costs: Mapping[str, int], given: Collection[str], today: Collection[str]
) -> list[str]:
    """The fewest rules, with those that are given, of which every fault has one; in the order of `costs`.

    `caught` has the rules that catch each fault, `costs` every rule that may be chosen. Of several smallest sets it is
    the one that asks least of the system, then the one with most rules of today's suite, then the one whose rules
    catch most.
    """
    rules = list(costs)
    changes = list(dict.fromkeys(map(follow_up, rules)))
    hits = [sum(rule in by for by in caught.values()) for rule in rules]
    most = max([*hits, 1])
    weights = [RULE + NEW * (rule not in today) - count / most for rule, count in zip(rules, hits, strict=True)]
    asks = [ASK * max(costs[rule] for rule in rules if follow_up(rule) == change) for change in changes]
    covers = [[float(rule in by) for rule in rules] + [0.0] * len(changes) for by in set(caught.values())]
    needs = [
        [-float(rule == one) for one in rules] + [float(follow_up(rule) == change) for change in changes]
        for rule in rules
    ]
    size = len(rules) + len(changes)
    solved = milp(
        np.array(weights + asks),
        integrality=np.ones(size, int),
        bounds=Bounds([float(rule in given) for rule in rules] + [0.0] * len(changes), np.ones(size)),
        constraints=[
            LinearConstraint(np.array(covers).reshape(-1, size), lb=1),
            LinearConstraint(np.array(needs), lb=0),
        ],
        options={"mip_rel_gap": 0},
    )
    assert solved.success, solved.message
    return [rule for rule, share in zip(rules, solved.x, strict=False) if share > 0.5]


def alone(caught: Mapping[str, frozenset[str]], chosen: Collection[str]) -> dict[str, list[str]]:
    """For each chosen rule the faults that none of the others catches."""
    only: dict[str, list[str]] = {rule: [] for rule in chosen}
    for fault, by in caught.items():
        catching = by & only.keys()
        if len(catching) == 1:
            only[next(iter(catching))].append(fault)
    return only
