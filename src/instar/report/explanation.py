"""What one transformation, one relation or one rule is: `instar rules NAME`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.text import Text

from instar.outputs import output_kinds
from instar.relations import Relation, Rule, meant_relation, relations
from instar.report.listings import Entry, described_parameter, entry_grid, relation_entry, transformation_entry
from instar.report.words import count_of, listed, violated_from
from instar.spelling import spell_value, unknown
from instar.suites import Suite, suites
from instar.transforms import Transformation, TransformationFamily, families
from instar.transforms.family import Step


@dataclass(frozen=True, slots=True)
class Explanation:
    """A thing by its entry, and what can be told of it in lines, each with a name."""

    entry: Entry
    lines: list[tuple[str, str]] = field(default_factory=list)
    suites: Mapping[str, int] = field(default_factory=dict)
    """How many rules of each suite it is in."""

    def json(self) -> dict[str, object]:
        return {**self.entry.json(), "suites": dict(self.suites)}


def explained(text: str, rule: Callable[[str], Rule]) -> list[Explanation]:
    """What a name or a spelling stands for: a transformation, a relation, both where they share a name, or a rule.

    `rule` reads a spelling, and may load what the user names in it.
    """
    name = text.strip()
    bare = name.removeprefix("=>").strip()
    known, related = families(), relations()
    if not set(bare) & set("()|=[:"):
        things = [_of_family(known[bare])] if bare in known and bare == name else []
        things += [_of_relation(related[bare])] if bare in related else []
        if not things:
            see = "`instar rules` lists them all; `instar suites NAME` has the rules of a suite, or of a file with one."
            raise unknown("transformation or relation", bare, [*known, *related], see=see)
        return things
    if name.startswith("=>"):
        one = rule(f"identity {name}")
        assert one.relation is not None
        return [_of_relation(one.relation.relation)]
    return [_of_rule(rule(name))]


def _of_family(family: TransformationFamily) -> Explanation:
    def uses(_: Suite, one: Rule) -> bool:
        return any(_in(family, change) for change in one.transformations)

    lines = _parameters(transformation_entry(family))
    lines += [("needs", listed(family.needs))] if family.needs else []
    lines += [("random", "each draw of a case is another; the run's seed settles it")] if family.random else []
    own = meant_relation(None, [family.name])
    bare = own.id if own else "the relation of the system's own output"
    lines += [("must hold", f"what the relation after => says; without one, {bare}")]
    return _with_suites(transformation_entry(family), lines, uses)


def _in(family: TransformationFamily, change: Transformation) -> bool:
    return any(step.family.name == family.name or any(_in(family, one) for one in step.inner) for step in change.steps)


def _of_relation(relation: Relation) -> Explanation:
    own = [name for name, kind in output_kinds().items() if kind.relation == relation.name]

    def uses(suite: Suite, one: Rule) -> bool:
        return suite.output in own if one.relation is None else one.relation.relation.name == relation.name

    output = "any output" if relation.output == "any" else relation.output
    over = "one case at a time" if relation.over == "case" else "many cases together"
    lines = _parameters(relation_entry(relation))
    lines += [("about", f"{output}, {over}" + (f"; what rules without => ask of {listed(own)}" if own else ""))]
    lines += [("kinds", listed(relation.kinds, 12))] if relation.kinds else []
    return _with_suites(relation_entry(relation), lines, uses)


def _of_rule(one: Rule) -> Explanation:
    lines: list[tuple[str, str]] = []
    for step in one.transformations[0].steps:
        lines += _steps(step)
    if one.relation is None:
        lines.append(("must hold", "the relation of the system's own output: the answer follows the input"))
    else:
        relation = one.relation.relation
        lines.append((f"=> {one.relation.id}", relation.help))
        lines.append(("", f"severity: {relation.unit}; {violated_from(relation.threshold)}"))
    purposes = {name: suite.purposes[one.id] for name, suite in suites().items() if one.id in suite.purposes}
    lines += [(f"in {name}", f"it looks for {purpose}") for name, purpose in purposes.items()]
    facts = {"what": "rule", "relation": one.relation.id if one.relation else None, "purposes": purposes}
    words = f"{one.words[:1].upper()}{one.words[1:]}."
    others = {} if one.relation else _with_relations(one)
    more = [("", f"with => {relation}: {', '.join(names)}") for relation, names in others.items()]
    return _with_suites(Entry(one.id, words, facts), lines, lambda _, other: other == one, more)


def _with_relations(one: Rule) -> dict[str, list[str]]:
    """The suites that ask for this change by a relation of their own, by the relation."""
    names: dict[str, list[str]] = {}
    for suite in sorted(suites().values(), key=lambda suite: "@" in suite.name):
        for other in suite.rules:
            if other.relation is not None and other.transformations == one.transformations:
                names.setdefault(other.relation.id, []).append(suite.name)
    return names


def _steps(step: Step) -> list[tuple[str, str]]:
    """What a step does, with its values; then what is done inside it."""
    lines = [(step.family.name, step.family.help)]
    for parameter in step.family.parameters:
        value = step.values[parameter.name]
        if not isinstance(value, Transformation):
            meaning = f": {parameter.help}" if parameter.help else ""
            lines.append(("", f"{parameter.name} is {spell_value(value)}{meaning} ({parameter.allowed})"))
    return lines + [line for change in step.inner for inside in change.steps for line in _steps(inside)]


def _parameters(entry: Entry) -> list[tuple[str, str]]:
    """Each parameter with what it allows; options that are chosen when a run is judged come last."""
    lines = [(one.name, described_parameter(one)) for one in entry.parameters or ()]
    return lines + [(f"judging: {one.name}", described_parameter(one)) for one in entry.judging or ()]


def _with_suites(
    entry: Entry,
    lines: list[tuple[str, str]],
    uses: Callable[[Suite, Rule], bool],
    more: Sequence[tuple[str, str]] = (),
) -> Explanation:
    """With an example, and how many rules of which suites these are; `@paper` suites after the others."""
    order = sorted(suites().values(), key=lambda suite: "@" in suite.name)
    members: dict[str, list[Rule]] = {suite.name: [one for one in suite.rules if uses(suite, one)] for suite in order}
    counts = {name: len(rules) for name, rules in members.items() if rules}
    single = entry.facts["what"] == "rule"
    spellings = sorted((one.id for rules in members.values() for one in rules), key=lambda text: text == "identity")
    if spellings and not single:
        lines = [*lines, ("example", spellings[0])]
    named = [name if single else f"{name} ({count_of(count, 'rule')})" for name, count in counts.items()]
    return Explanation(entry, [*lines, ("suites", ", ".join(named) or "none has it"), *more], counts)


def show_explanations(console: Console, explanations: Sequence[Explanation]) -> None:
    """Each with its name and sentence, and its lines below."""
    for place, one in enumerate(explanations):
        if place:
            console.print()
        console.print(Text(one.entry.name, style="bold"))
        console.print(Text(one.entry.help))
        table = entry_grid()
        for name, words in one.lines:
            table.add_row(Text(name, style="bold"), Text(words))
        console.print(table)
