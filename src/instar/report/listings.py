"""What commands print besides runs, in the terminal: lists of what there is, plans, checks, tables of tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from instar.analysis.limits import LimitPlan
from instar.datasets import datasets
from instar.engine import Estimate, JudgingOption, Outcome
from instar.engine.options import spelled_choice
from instar.numerics import Numerics, lines, rows
from instar.relations import Relation, relations
from instar.report.panels import TaskTables
from instar.report.tables import show_tables
from instar.report.words import (
    count_of,
    duration,
    listed,
    markdown_text,
    of_total,
    percent,
    statuses_text,
    violated_from,
)
from instar.spelling import REQUIRED, Parameter
from instar.suites import suites
from instar.systems import models, systems
from instar.systems.check import Finding
from instar.transforms import TransformationFamily, families

_LONG = 40
"""The length of a name that leaves room beside it."""

# --- what there is ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing of a list: its name, a sentence, its parameters; `judging` are options chosen when a run is judged."""

    name: str
    help: str
    facts: Mapping[str, object] = field(default_factory=dict)
    parameters: Sequence[Parameter] | None = None
    judging: Sequence[Parameter] | None = None

    def json(self) -> dict[str, object]:
        lists = {"parameters": self.parameters, "judging": self.judging}
        spelled = {name: [_json(one) for one in some] for name, some in lists.items() if some is not None}
        return {"name": self.name, **self.facts, "help": self.help, **spelled}


def _json(parameter: Parameter) -> dict[str, object]:
    required = parameter.default is REQUIRED
    return {
        "name": parameter.name,
        "kind": parameter.kind,
        "allowed": parameter.allowed,
        "required": required,
        "default": None if required else parameter.default,
        "ordered": parameter.ordered,
        "shared": parameter.shared,
        "help": parameter.help,
    }


def rule_entries() -> list[Entry]:
    """The transformations and relations that rules are made of."""
    return [*map(transformation_entry, families().values()), *map(relation_entry, relations().values())]


def transformation_entry(one: TransformationFamily) -> Entry:
    facts = {"what": "transformation", "room": one.room, "needs": list(one.needs), "random": one.random}
    return Entry(one.name, one.help, facts, one.parameters)


def relation_entry(one: Relation) -> Entry:
    facts = {"output": one.output, "threshold": one.threshold, "grid": list(one.grid), "kinds": list(one.kinds)}
    words = f"{one.help} Severity: {one.unit}; {violated_from(one.threshold)}."
    return Entry(f"=> {one.name}", words, {"what": "relation", **facts}, one.parameters, one.options)


def suite_entries() -> list[Entry]:
    return [
        Entry(
            one.name,
            f"{one.help} ({count_of(len(one.rules), 'rule')})",
            {"rules": len(one.rules), "output": one.output},
        )
        for one in suites().values()
    ]


def system_entries() -> list[Entry]:
    return [
        Entry(one.name, one.help, {"output": one.kind, "extra": one.extra}, one.parameters)
        for one in systems().values()
    ]


def dataset_entries() -> list[Entry]:
    return [Entry(one.name, one.help, {}, one.parameters) for one in datasets().values()]


def model_entries() -> list[Entry]:
    """The model files that can be fetched, with their state."""
    return [
        Entry(
            one.name,
            f"{one.state}; {one.purpose} ({one.size / 1e6:.1f} MB, {one.licence})",
            {"state": one.state, "path": str(one.path), "sha256": one.sha256, "package": one.package},
        )
        for one in models()
    ]


def show_entries(console: Console, entries: Sequence[Entry]) -> None:
    """Names with their sentences, parameters and judging options."""
    table = entry_grid(max((len(entry.name) for entry in entries), default=0))
    for entry in entries:
        table.add_row(Text(entry.name, style="bold"), Text(entry.help))
        for parameter in entry.parameters or ():
            table.add_row("", Text(f"{parameter.name}: {described_parameter(parameter)}", style="dim"))
        for parameter in entry.judging or ():
            table.add_row("", Text(f"judging: {parameter.name}: {described_parameter(parameter)}", style="dim"))
    console.print(table)


def described_parameter(parameter: Parameter) -> str:
    """What a parameter allows, its default, and what it means."""
    usual = "" if parameter.default is REQUIRED else f", {spelled_choice(parameter.default)} by default"
    text = f"{parameter.allowed}{usual}"
    return f"{text}; {parameter.help}" if parameter.help else text


def entry_grid(longest: int = 0) -> Table:
    """Names on the left, what is told of them on the right; with a long one among them, names may be folded."""
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=longest <= _LONG)
    table.add_column(overflow="fold")
    return table


def show_options(console: Console, options: Sequence[JudgingOption]) -> None:
    """The judging options of a run: what is in force, what is allowed, what is the default."""
    if not options:
        console.print("The relations of this run leave nothing to choose.")
        return
    table = entry_grid()
    for option in options:
        table.add_row(
            Text(f"{option.parameter.name}={spelled_choice(option.value)}", style="bold"),
            Text(f"{option.text}; {option.parameter.help}" if option.parameter.help else option.text),
        )
    console.print(table)


# --- before and after a run ------------------------------------------------------------------------


def show_plan(console: Console, cost: Estimate) -> None:
    """How many predictions a run asks for, and how long they would take."""
    console.print(
        f"{count_of(cost.cases, 'case')} × {count_of(cost.keys, 'prediction')} = {cost.rows:,}: the source and "
        f"{count_of(cost.follow_ups, 'follow-up')}, with all draws and repeats",
        highlight=False,
    )
    if cost.done:
        there = "is" if cost.done == 1 else "are"
        console.print(f"{cost.done:,} {there} in the run folder already", highlight=False)
    _show_seconds(console, cost)


def show_limit_plan(console: Console, plan: LimitPlan) -> None:
    """How many predictions a search for limits takes at the most, and how long they would take."""
    cost = plan.estimate
    console.print(
        f"at most {count_of(cost.cases, 'case')} × {count_of(cost.keys, 'prediction')} = {cost.rows:,}: the source and "
        f"{of_total(cost.follow_ups, plan.every, 'follow-up')} of the grid "
        f"({percent(cost.follow_ups / plan.every)}), with all draws and repeats; a response that is not monotone may "
        "take more",
        highlight=False,
    )
    if cost.done:
        left = cost.rows - cost.done
        words = f"at most {left:,} {'is' if left == 1 else 'are'} left" if left else "nothing is left to ask"
        console.print(f"by what the run folder holds already, {words}", highlight=False)
    _show_seconds(console, cost)


def _show_seconds(console: Console, cost: Estimate) -> None:
    """How long predictions would take, and what became of those that were timed."""
    if cost.seconds is None or cost.seconds_per_row is None:
        console.print(f"no estimate: none of {count_of(cost.timed, 'timed case')} could be predicted")
    else:
        console.print(
            f"{1000 * cost.seconds_per_row:.1f} ms each in one worker ({count_of(cost.timed, 'case')} timed): "
            f"[bold]about {duration(cost.seconds)}[/]",
            highlight=False,
        )
    others = {status: count for status, count in cost.statuses.items() if status not in ("ok", "unreadable")}
    if others:
        console.print(f"The timed predictions include {statuses_text(others)}.", style="yellow", highlight=False)
    if unreadable := cost.statuses.get("unreadable"):
        console.print(f"{of_total(unreadable, cost.timed, 'timed case')} cannot be read.", style="yellow")


def show_export(console: Console, outcome: Outcome, folder: Path) -> None:
    """What an export wrote, by status."""
    counts = statuses_text(outcome.statuses) or "nothing"
    unreadable = f", {outcome.unreadable:,} of them unreadable" if outcome.unreadable else ""
    console.print(
        f"{folder}: {counts}; {outcome.fresh:,} new in {duration(outcome.seconds)}, "
        f"{count_of(outcome.cases, 'case')}{unreadable}",
        markup=False,
        highlight=False,
    )
    for note in outcome.notes:
        console.print(note, style="yellow", markup=False, highlight=False)


_COLOURS = {"ok": "green", "unsure": "cyan", "warning": "yellow", "problem": "bold red", "skipped": "dim"}


def show_findings(console: Console, findings: Sequence[Finding], drawn: Sequence[Path]) -> None:
    """What a check of a system's adapter found, and where its answers are drawn."""
    table = Table(box=None, pad_edge=False, show_header=False)
    skipped: dict[str, list[str]] = {}
    for one in findings:
        if one.state == "skipped":
            skipped.setdefault(one.message, []).append(one.name)
            continue
        table.add_row(Text(one.state, style=_COLOURS[one.state]), Text(one.name, style="bold"), Text(one.message))
    for reason, names in skipped.items():  # questions that were skipped for one reason are one line, after all others
        alone = len(names) == 1
        title = names[0] if alone else f"{len(names)} others"
        message = reason if alone else f"{reason}: {listed(names, len(names))}"
        table.add_row(Text("skipped", style=_COLOURS["skipped"]), Text(title, style="bold"), Text(message))
    console.print(table)
    for path in drawn:
        console.print(f"drawn: {path}", markup=False, highlight=False)


def show_numerics(console: Console, analysis: Numerics) -> None:
    """The operations of a model graph that can go wrong, and the sum of it."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for head in ("operator", "node", "can be", "because it", "reaches"):
        table.add_column(head, overflow="fold")
    for row in rows(analysis):
        table.add_row(*map(Text, row))
    if table.row_count:
        console.print(table)
    for line in lines(analysis):
        console.print(line, markup=False, highlight=False)


# --- tables of tasks -------------------------------------------------------------------------------


def show_task_tables(console: Console, task: TaskTables, *, markdown: bool = False) -> None:
    """The sentences and tables of a task."""
    words = _markdown_line if markdown else str
    for line in (*task.before, *([""] if task.before else [])):
        console.print(words(line), highlight=False, markup=False, soft_wrap=markdown)
    show_tables(console, task.tables, markdown=markdown)
    for line in task.after:
        console.print(words(line), highlight=False, markup=False, soft_wrap=markdown)


def _markdown_line(line: str) -> str:
    """Escape a sentence or an item of a list."""
    text = line.removeprefix("* ")
    return line.removesuffix(text) + markdown_text(text)
