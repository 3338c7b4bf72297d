"""Suites: named lists of rules, and how several become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from instar.relations import Rule, rule

KEPT = "; kept because "
"""What stands in a purpose between what a rule is for and why it is kept beside the smallest set."""

Condition = Literal["cut"]
"""What has to occur before a rule shows what it is for: `cut`, the border of the image cuts what was found."""


@dataclass(frozen=True, slots=True)
class Suite:
    """A named list of rules: a paper's table, or yours.

    `output` is the kind of output it is for, where it is for one; `options` are judging options it asks for;
    `thresholds` map a rule's id to its threshold, `"*"` to that of all others. `panels` names what a report shows
    besides what it shows of every run; where no suite of a run asks for any, those of the output kind's own suite.
    `titles` map a rule's id to what its paper calls it, `purposes` to the faults that the rule
    looks for, as nouns: `mistakes on bright images`. `conditions` map a rule's id to what has to occur in some cases
    before the rule says anything about its purpose.
    """

    name: str
    rules: tuple[Rule, ...]
    help: str = ""
    output: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    panels: tuple[str, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)
    purposes: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[str, Condition] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rules)


def listed_suite(
    name: str,
    spellings: Sequence[str],
    help: str,
    output: str,
    *,
    panels: tuple[str, ...] = (),
    options: Mapping[str, object] | None = None,
    titles: Mapping[str, str] | None = None,
    purposes: Mapping[str, str] | None = None,
    conditions: Mapping[str, Condition] | None = None,
) -> Suite:
    """A suite of rules as they are spelled. `titles`, `purposes` and `conditions` are by spelling."""
    rules = {spelling: rule(spelling) for spelling in spellings}
    return Suite(
        name,
        tuple(rules.values()),
        help,
        output,
        options or {},
        panels=panels,
        titles={rules[spelling].id: title for spelling, title in (titles or {}).items()},
        purposes={rules[spelling].id: purpose for spelling, purpose in (purposes or {}).items()},
        conditions={rules[spelling].id: condition for spelling, condition in (conditions or {}).items()},
    )


def joined(parts: Sequence[Suite], *, name: str, help: str = "") -> Suite:
    """One suite of all rules in order, each once.

    Suites that are judged differently cannot be joined: one run has one judging.
    """
    rules: dict[str, Rule] = {}
    thresholds: dict[str, float] = {}
    options: Mapping[str, object] | None = None
    judged = ""
    for part in parts:
        own = part.thresholds
        for one in part.rules:
            limit = own.get(one.id, own.get("*"))
            if limit is not None and thresholds.setdefault(one.id, limit) != limit:
                raise ValueError(
                    f"{name}: the threshold of {one.id} is {limit:g} in {part.name} "
                    f"and {thresholds[one.id]:g} in another suite"
                )
            rules[one.id] = one
        if _is_one_rule(part):
            continue
        if options is not None and dict(options) != dict(part.options):
            raise ValueError(
                f"{name}: {judged} and {part.name} are judged differently "
                f"({_spelled(options)}; {_spelled(part.options)}); run them apart"
            )
        options, judged = part.options, part.name
    outputs = {part.output for part in parts if part.output}
    return Suite(
        name,
        tuple(rules.values()),
        help,
        outputs.pop() if len(outputs) == 1 else None,
        dict(options or {}),
        thresholds,
        tuple(dict.fromkeys(name for part in parts for name in part.panels)),
        {rule: title for part in parts for rule, title in part.titles.items()},
        {rule: purpose for part in parts for rule, purpose in part.purposes.items()},
        {rule: condition for part in parts for rule, condition in part.conditions.items()},
    )


def _is_one_rule(part: Suite) -> bool:
    """A rule given by its spelling says nothing of judging, and so joins with anything."""
    return not part.options and [part.name] == [one.id for one in part.rules]


def _spelled(options: Mapping[str, object]) -> str:
    return ", ".join(f"{key}={options[key]}" for key in sorted(options)) or "by default"
