"""Follow-ups as test cases: what the follow-ups of a run are called, and what they change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from instar.analysis import Run
from instar.engine import SOURCE
from instar.relations import BoundRule, bound_relation, levels_of
from instar.spelling import Call
from instar.transforms import Transformation

GROUPS = {
    "occlusion": "a covered finger",
    "exposure": "exposure",
    "blur": "motion blur",
    "geometry": "a moved frame",
    "colour": "another skin",
    "other": "other changes",
}
"""The test cases that must cost next to nothing, by what they change."""
RESPONSE = "response"
"""The group of TC1, which must cost something: the levels of what is covered."""
_GROUP_OF_FAMILY = {
    "discs": RESPONSE,
    "finger_discs": "occlusion",
    "gamma": "exposure",
    "motion": "blur",
    "filtered": "colour",
    **dict.fromkeys(("mirror", "rotation", "rotate90", "shift", "crop", "pad", "stretch", "shear"), "geometry"),
}


@dataclass(frozen=True, slots=True)
class TestCase:
    """A follow-up of a run, or its source: the title that its suite gives it, else its spelling; what it changes."""

    __test__ = False  # not one of pytest's

    follow_up: str
    title: str
    group: str
    covered: int = 0
    """How many landmarks lie under discs, from the wrist on: TC1."""
    darker: bool = False


def accuracy_rules(run: Run) -> dict[str, BoundRule]:
    """The rule of each follow-up that says how much of the hands is found; made where it is asked something else."""
    rules: dict[str, BoundRule] = {}
    accuracy = bound_relation(Call("accuracy"))
    for rule in run.bound_rules():
        relation, change = rule.relation.relation, rule.transformations[0]
        if relation.name == "accuracy":
            rules.setdefault(change.id, rule)
        elif relation.output == "poses" and relation.over == "case" and change.steps[0].family.name != "identity":
            rules.setdefault(change.id, BoundRule((change,), accuracy, change.id))
    return rules


def named_follow_ups(run: Run, rules: Iterable[BoundRule]) -> tuple[TestCase, ...]:
    """The source, and the follow-up of each of these rules."""
    titles = _titles(run)
    changed = (rule.transformations[0] for rule in rules)
    return (TestCase(SOURCE, "baseline", SOURCE), *(_test_case(each, titles.get(each.id, each.id)) for each in changed))


def _titles(run: Run) -> dict[str, str]:
    """What suites call follow-ups: by the title of their rule and, where it has several levels, of which."""
    manifest = run.manifest
    titles: dict[str, str] = {}
    for rule in run.bound_rules():
        title = manifest.titles.get(rule.id, manifest.titles.get(rule.left))
        over_cases = rule.relation.relation.over == "cases"
        levels: Sequence[BoundRule] = levels_of(rule, manifest.system.kind) if over_cases else [rule]
        for level in levels if title is not None else ():
            if level.relation.relation.output == "poses":
                changed = level.transformations[0].id
                titles.setdefault(changed, f"{title}: {changed}" if len(levels) > 1 else str(title))
    return titles


def _test_case(change: Transformation, title: str) -> TestCase:
    if len(change.steps) > 1:
        return TestCase(change.id, title, "other")
    step = change.steps[0]
    group = _GROUP_OF_FAMILY.get(step.family.name, "other")
    covered = int(step.values["n"]) if group == RESPONSE else 0
    return TestCase(change.id, title, group, covered, group == "exposure" and step.values["gamma"] > 1)
