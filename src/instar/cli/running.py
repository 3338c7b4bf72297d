"""`instar run`."""

from __future__ import annotations

import shlex
import sys
import warnings
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
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FOLDER",
        help="The run folder, or an address in a bucket: s3://results/runs/first. It is made if it is not there.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=0,
        help="How many processes make follow-ups and predict them, each with its own copy of the model (see "
        "--predictors): one per core by default; 0 predicts in this process.",
    ),
]
Predictors = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=0,
        help="How many processes hold the model; the workers then make follow-ups for them. By default one for each "
        "GPU where the system says that it lives on one, else none: every worker holds the model.",
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        metavar="local|ray",
        help="Where the workers are: processes of this machine, or actors of a Ray cluster, as many as it has room for "
        "unless --workers says how many. The results are the same.",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="With --engine ray, the cluster: HOST:PORT, or auto. By default the one that RAY_ADDRESS names or that "
        "was started on this machine, else one of this machine alone.",
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
ShardOption = Annotated[
    str | None,
    typer.Option(
        "--shard",
        metavar="N/TOTAL",
        help="Predict only the cases of one shard, e.g. 3/64, into a folder of its own: FOLDER-03-of-64. "
        "`instar merge` joins the shards.",
    ),
]
Until = Annotated[
    str | None,
    typer.Option(
        "--until",
        metavar="WIDTH|POLICY",
        help="Ask cases in random order, and each rule only until its rate is known to ± this much (0.02; family=0.02 "
        "for each family), or until each limit of a policy (instar.toml) is sure to hold or to fail.",
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="What tables, reports and comparisons call the run: v2. The same command with another name changes it.",
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
    shard: ShardOption = None,
    workers: Workers = None,
    predictors: Predictors = None,
    engine: Engine = "local",
    address: Address = None,
    timeout: Timeout = 60.0,
    seed: Seed = None,
    zones: Zones = "auto",
    objects: Objects = "auto",
    pool: Pool = None,
    retry: Retry = None,
    fresh: Fresh = False,
    until: Until = None,
    name: Name = None,
    plan: Plan = False,
    trust: Trust = False,
    threshold: SummaryThreshold = None,
    as_json: Json = False,
) -> None:
    """Predict what is missing in a run folder, judge it, and show which rules are violated.

    The same command again continues where it stopped, or says that nothing is left to do. Ctrl-C loses nothing.
    If the run says nothing about the system (no input answered, no pair judged, nothing found, the same answer to
    every input, or no rule violated because most pairs are near ties), the exit code is 3.

    Examples:

        instar run mediapipe-holistic met-pose/sub photos/ --out runs/first

        instar run my.module:predict "mirror(h)+gamma(0.5)" photos/ --out runs/mine --predictors 1

        instar run mediapipe-holistic met-pose photos/ --out runs/all --plan

        instar run mediapipe-holistic met-pose photos/ --out runs/all --shard 3/64

        instar run my.module:predict poses photos/ --out runs/v2 --name "v2, retrained" --until 0.02
    """
    from instar import api
    from instar.report.listings import show_plan

    refuse(retry, out, plan)
    providers = Providers(zones=zones, objects=objects, pool=pool, trust=trust)
    if out is None or plan:
        place, what = None if fresh else out, (system, suite, dataset)
        cost = api.estimate(*what, out=place, limit=limit, shard=shard, workers=workers, timeout=timeout, **providers)
        return print_json(asdict(cost)) if as_json else show_plan(new_console(), cost)
    task = "predicting" if shard is None else f"predicting shard {shard}"
    with Display(quiet=as_json, what=task) as display, warnings.catch_warnings():
        warnings.simplefilter("ignore", api.NothingTold)  # told at the end, with the exit code
        # fmt: off
        finished = api.run(
            system, suite, dataset, out=out, limit=limit, shard=shard, workers=workers, predictors=predictors,
            engine=engine, address=address, timeout=timeout, seed=seed, fresh=fresh, retry_failed=retry == "failed",
            until=until, name=name, on_progress=display.update, **providers,
        )
        # fmt: on
    print_outcome(finished, threshold, as_json)


def refuse(retry: str | None, out: Path | None, plan: bool) -> None:
    """Raise where a run is asked for that cannot be."""
    if retry not in (None, "failed"):
        raise typer.BadParameter(f"{retry!r}; allowed is: failed", param_hint="--retry")
    if out is None and not plan:
        raise typer.BadParameter("say where the run goes, e.g. --out runs/first", param_hint="--out")


def print_outcome(finished: Run, threshold: float | None, as_json: bool, *, merged: int = 0) -> None:
    """How a run went and what was found; ends the command where it was stopped, or where the run says nothing."""
    from instar.api import nothing_to_tell
    from instar.cli.looking import run_json
    from instar.report import show_outcome, show_run

    outcome, folder = finished.outcome, finished.folder
    typed = shlex.quote(str(folder))
    assert outcome is not None
    if as_json:
        judged = run_json(finished, threshold=threshold) if finished.store.state("predictions") else {}
        print_json({"run": str(folder), **judged, **asdict(outcome)})
    else:
        console = new_console()
        complete = bool(outcome.statuses.get("ok")) and not outcome.interrupted
        show_outcome(console, outcome, str(folder), finished.judged() if complete else None, merged=merged)
        if complete:
            console.print()
            show_run(console, finished, threshold=threshold, worst=5, limit=20, failures=False)
            print_notes(
                console,
                f"\ninstar show {typed} --threshold T · instar draw {typed} --worst 10 --out pics/",
                style="dim",
            )
    if outcome.interrupted:
        raise typer.Exit(130)
    end_in_trouble(finished, nothing_to_tell(finished))


def end_in_trouble(finished: Run, trouble: str | None) -> None:
    """End the command with an exit code of its own where a run says nothing about its system, for this reason."""
    if trouble is not None:
        print(f"instar: {trouble}; `instar show {shlex.quote(str(finished.folder))}` says why", file=sys.stderr)
        raise typer.Exit(ALL_FAILED)
