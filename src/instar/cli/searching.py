"""`instar search`."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

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
    SystemArgument,
    Trust,
    Zones,
)
from instar.cli.printing import Display, new_console, print_json
from instar.cli.running import ALL_FAILED, Timeout, Workers

Out = Annotated[
    Path, typer.Option("--out", "-o", metavar="FOLDER", help="The run folder. It is made if it is not there.")
]
Budget = Annotated[
    int,
    typer.Option(metavar="N", min=1, help="How many predictions the search may have, those in the folder among them."),
]
Visual = Annotated[
    float,
    typer.Option(
        metavar="SHARE",
        min=0,
        max=1,
        help="What a person may see of a combination at the most, in the median over cases: 0 is nothing, 1 is all. Of "
        "0.3 one is aware when looking twice.",
    ),
]
Most = Annotated[int, typer.Option("--most", metavar="2|3", help="The most rules in a combination.")]
Combinations = Annotated[int, typer.Option(metavar="N", min=1, help="How many combinations are found.")]


def search(
    system: SystemArgument,
    suite: SuiteArgument,
    dataset: DatasetArgument,
    out: Out,
    budget: Budget = 2000,
    visual: Visual = 0.3,
    most: Most = 3,
    combinations: Combinations = 5,
    limit: Limit = None,
    workers: Workers = None,
    timeout: Timeout = 60.0,
    seed: Seed = None,
    zones: Zones = "auto",
    objects: Objects = "auto",
    pool: Pool = None,
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Search for the worst mild combination: several rules of a suite, one after the other, that a person hardly sees
    and that break answers which none of them breaks alone.

    Half of the cases are searched with. On the others it is counted how often what was found breaks answers. Each find
    is shrunk: rules are dropped and parameters turned back as long as it breaks the same cases. The same command again
    goes on where it was stopped, and a larger --budget searches on. Ctrl-C loses nothing.

    Examples:

        instar search mediapipe-holistic poses photos/ --out runs/search

        instar search my.module:predict detections photos/ --out runs/search --budget 500 --visual 0.2 --most 2

        instar report runs/search
    """
    from instar import combining
    from instar.analysis.found import found_combinations
    from instar.report import show_outcome
    from instar.report.combinations import show_combinations

    providers = Providers(zones=zones, objects=objects, pool=pool, trust=trust)
    with Display(quiet=as_json, what="predicting") as display:
        # fmt: off
        finished = combining.search(
            system, suite, dataset, out=out, budget=budget, visual=visual, most=most, combinations=combinations,
            seed=seed, workers=workers, timeout=timeout, limit=limit, on_progress=display.update, **providers,
        )
        # fmt: on
    outcome, folder = finished.outcome, shlex.quote(str(finished.folder))
    assert outcome is not None
    answered = bool(outcome.statuses.get("ok"))
    if as_json:
        made = finished.manifest.search
        used = {} if made is None else {"budget": made.budget, "used": made.used, "visual": made.visual}
        rows = found_combinations(finished).to_dicts()
        print_json({"run": str(out), **used, "combinations": rows, **asdict(outcome)})
    else:
        console = new_console()
        show_outcome(console, outcome, str(out), finished.judged() if answered and not outcome.interrupted else None)
        if answered:
            show_combinations(console, finished)
    if outcome.interrupted:
        raise typer.Exit(130)
    if not answered:
        print(f"instar: not one input was answered; `instar show {folder}` says why", file=sys.stderr)
        raise typer.Exit(ALL_FAILED)
