"""`instar judge`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from instar.cli.looking import run_json
from instar.cli.options import Json, RunArgument, SummaryThreshold
from instar.cli.printing import new_console, print_json

Choices = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Choose an option of the run's relations. It may be given several times."
    ),
]


def judge(run: RunArgument, choices: Choices = None, threshold: SummaryThreshold = None, as_json: Json = False) -> None:
    """Judge the same predictions by other choices, without any new prediction.

    Which options there are depends on the relations of the run: without --set the run is judged by its defaults, and
    the options with what they allow are listed. `instar rules` lists those of every relation.

    Examples:

        instar judge runs/first

        instar judge runs/first --set landmarks=hands --set aggregate=max

        instar judge runs/first --set confidence=0.7 --json
    """
    from instar.api import open_run
    from instar.engine import judging_options, parsed_options
    from instar.report import show_run
    from instar.report.listings import show_options

    opened = open_run(run)
    name = opened.judge(**parsed_options(opened.store, option_texts(choices or ())))
    if as_json:
        options = [option.json() for option in judging_options(opened.store, name)]
        print_json({**run_json(opened, threshold=threshold, judging=name), "options": options})
        return
    console = new_console()
    show_run(console, opened, threshold=threshold, judging=name, limit=30)
    if not choices:
        console.print("\nOptions of this run; `--set NAME=VALUE` judges by another choice:", markup=False)
        show_options(console, judging_options(opened.store, name))


def option_texts(choices: Sequence[str]) -> dict[str, str]:
    """The options that were set, by name."""
    texts: dict[str, str] = {}
    for choice in choices:
        name, sign, text = choice.partition("=")
        if not sign or not name.strip():
            raise typer.BadParameter(f"{choice!r}; it is written NAME=VALUE, e.g. confidence=0.7", param_hint="--set")
        if name.strip() in texts:
            raise typer.BadParameter(f"{name.strip()} is set twice", param_hint="--set")
        texts[name.strip()] = text.strip()
    return texts
