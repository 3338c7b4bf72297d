"""Commands that list what there is: rules, suites, systems, datasets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from instar.cli.options import Json
from instar.cli.printing import new_console, print_json

if TYPE_CHECKING:
    from instar.report.listings import Entry


def print_entries(entries: Sequence[Entry], as_json: bool) -> None:
    from instar.report.listings import show_entries

    if as_json:
        print_json([entry.json() for entry in entries])
    else:
        show_entries(new_console(), entries)


def rules(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help='Explain this one: a transformation (motion), a relation ("=> poses") or a rule ("motion(11, 100)").',
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the transformations and relations that rules are made of, or explain one of them, or one rule.

    Examples:

        instar rules

        instar rules motion

        instar rules "filtered(greyscale, skin)"
    """
    from instar.relations import rule
    from instar.report.explanation import explained, show_explanations
    from instar.report.listings import rule_entries

    if name is not None:
        explanations = explained(name, rule)
        if as_json:
            print_json([one.json() for one in explanations])
        else:
            show_explanations(new_console(), explanations)
        return
    print_entries(rule_entries(), as_json)
    if not as_json:
        print(
            "\nA rule is a transformation, e.g. gamma(0.5); several in a row, gamma(0.5) | rotation(5); only in a"
            "\nzone, filtered(greyscale, skin); with a relation of its own, noise(16) => poses(draws=3)."
            "\nA relation's judging options are chosen with `instar judge RUN --set NAME=VALUE`."
            "\n`instar rules NAME` explains one of them: what it does, its parameters, and which suites use it."
        )


def suites(
    name: Annotated[str | None, typer.Argument(metavar="[SUITE]", help="List the rules of this suite.")] = None,
    as_json: Json = False,
) -> None:
    """List the suites, or the rules of one suite and what each rule looks for.

    Examples:

        instar suites

        instar suites met-pose/sub --json
    """
    from instar.report.listings import Entry, show_entries, suite_entries
    from instar.suites import suite

    if name is None:
        print_entries(suite_entries(), as_json)
        return
    chosen = suite(name)
    spellings = [rule.id for rule in chosen.rules]
    if as_json:
        judging = {"judging": dict(chosen.options), "thresholds": dict(chosen.thresholds)}
        purposes = dict(chosen.purposes)
        print_json({"name": chosen.name, "help": chosen.help, "rules": spellings, "purposes": purposes, **judging})
    else:
        looks_for = {rule: f"looks for {purpose}" for rule, purpose in chosen.purposes.items()}
        words = {rule.id: looks_for.get(rule.id, rule.words) for rule in chosen.rules}
        show_entries(new_console(), [Entry(spelling, words[spelling]) for spelling in spellings])


def systems(as_json: Json = False) -> None:
    """List the systems with their parameters. A function of your own is written package.module:function.

    Examples:

        instar systems

        instar systems --json
    """
    from instar.report.listings import system_entries

    print_entries(system_entries(), as_json)


def datasets(as_json: Json = False) -> None:
    """List the datasets that can be read, with their parameters. A path is recognised by what lies there.

    Examples:

        instar datasets

        instar datasets --json
    """
    from instar.report.listings import dataset_entries

    print_entries(dataset_entries(), as_json)
