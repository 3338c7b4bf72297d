"""`instar run`."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from instar.cli.options import (
    DatasetArgument,
    Json,
    Limit,
    Objects,
    Pool,
    Providers,
    Seed,
    SuiteArgument,
    SummaryThreshold,
    SystemArgument,
    Trust,
    Zones,
)
from instar.cli.printing import Display, new_console, print_json, print_notes

if TYPE_CHECKING:
    from instar.api import Run

ALL_FAILED = 3
"""The exit code of a run in which not one input was answered, or from whose answers nothing can be told."""

Out = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="FOLDER", help="The run folder. It is made if it is not there.")
]
Workers = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=0,
        help="How many processes predict, each with its own copy of the model: one per core by default, 1 for a model "
        "on a GPU; 0 predicts in this process.",
    ),
]
Timeout = Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="How many seconds one prediction may take.")]
Retry = Annotated[
    str | None, typer.Option(metavar="failed", help="`--retry failed` predicts again what failed before.")
]
Fresh = Annotated[
    bool,
    typer.Option(
        "--fresh", help="Start over: a run that is in the folder is moved aside (FOLDER.DATE-TIME), never deleted."
    ),
]
Plan = Annotated[
    bool, typer.Option("--plan", help="Count the predictions, time 3 cases and print an estimate. Nothing is written.")
]


def run(
    system: SystemArgument,
    suite: SuiteArgument,
    dataset: DatasetArgument,
    out: Out = None,
    limit: Limit = None,
    workers: Workers = None,
    timeout: Timeout = 60.0,
    seed: Seed = None,
    zones: Zones = "auto",
    objects: Objects = "auto",
    pool: Pool = None,
    retry: Retry = None,
    fresh: Fresh = False,
    plan: Plan = False,
    trust: Trust = False,
    threshold: SummaryThreshold = None,
    as_json: Json = False,
) -> None:
    """Predict what is missing in a run folder, judge it, and show which rules are violated.

    The same command again continues where it stopped, or says that nothing is left to do. Ctrl-C loses nothing.
    If the run says nothing about the system (no input answered, no pair judged, nothing found, or the same answer to
    every input), the exit code is 3.

    Examples:

        instar run mediapipe-holistic met-pose/sub photos/ --out runs/first

        instar run my.module:predict "mirror(h)+gamma(0.5)" photos/ --out runs/mine --workers 1

        instar run mediapipe-holistic met-pose photos/ --out runs/all --plan
    """
    from instar import api
    from instar.report.listings import show_plan

    if retry not in (None, "failed"):
        raise typer.BadParameter(f"{retry!r}; allowed is: failed", param_hint="--retry")
    if out is None and not plan:
        raise typer.BadParameter("say where the run goes, e.g. --out runs/first", param_hint="--out")
    providers = Providers(zones=zones, objects=objects, pool=pool, trust=trust)
    if out is None or plan:
        place = None if fresh else out
        cost = api.estimate(
            system, suite, dataset, out=place, limit=limit, workers=workers, timeout=timeout, **providers
        )
        return print_json(asdict(cost)) if as_json else show_plan(new_console(), cost)
    with flags_spelled(), Display(quiet=as_json) as display, warnings.catch_warnings():
        warnings.simplefilter("ignore", api.NothingTold)  # told at the end, with the exit code
        # fmt: off
        finished = api.run(
            system, suite, dataset, out=out, limit=limit, workers=workers, timeout=timeout, seed=seed, fresh=fresh,
            retry_failed=retry == "failed", on_progress=display.update, **providers,
        )
        # fmt: on
    _print_outcome(finished, threshold, as_json)


@contextmanager
def flags_spelled() -> Iterator[None]:
    """A conflict with what the folder holds names parameters; here they are flags."""
    from instar.engine.manifest import Conflict

    try:
        yield
    except Conflict as conflict:
        raise Conflict(re.sub(r"\(`(\w+)`\)", r"(--\1)", str(conflict))) from None


def _print_outcome(finished: Run, threshold: float | None, as_json: bool) -> None:
    from instar.api import nothing_to_tell
    from instar.report import show_outcome, show_run

    outcome, folder = finished.outcome, finished.folder
    assert outcome is not None
    if as_json:
        print_json({"run": str(folder), **asdict(outcome)})
    else:
        console = new_console()
        complete = bool(outcome.statuses.get("ok")) and not outcome.interrupted
        show_outcome(console, outcome, str(folder), finished.judged() if complete else None)
        if complete:
            console.print()
            show_run(console, finished, threshold=threshold, worst=5, limit=20, failures=False)
            print_notes(
                console,
                f"\ninstar show {folder} --threshold T · instar draw {folder} --worst 10 --out pics/",
                style="dim",
            )
    if outcome.interrupted:
        raise typer.Exit(130)
    if trouble := nothing_to_tell(finished):
        print(f"instar: {trouble}; `instar show {folder}` says why", file=sys.stderr)
        raise typer.Exit(ALL_FAILED)
