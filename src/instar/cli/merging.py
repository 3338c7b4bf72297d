"""`instar merge`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from instar.cli.options import Json, SummaryThreshold
from instar.cli.running import print_outcome

Runs = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN...", help="Run folders of one plan, each with other cases, or their addresses in buckets."
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        "--out",
        "-o",
        metavar="FOLDER",
        help="The run folder that they become. Where it is one, what it lacks is added.",
    ),
]


def merge(runs: Runs, out: Out, threshold: SummaryThreshold = None, as_json: Json = False) -> None:
    """Join the shards of a run, or runs of one plan on different cases, in one run folder, and judge it.

    Nothing is predicted, and the runs stay as they are: on one disk their files are shared, not copied. If shards are
    missing or not finished, the command says which; `instar run` with the merged folder, without --shard, predicts the
    rest. Runs of another system, suite, seed or dataset are refused, and so is a case that two runs answer differently.

    Examples:

        instar merge runs/first-*-of-64 --out runs/first
        instar merge s3://results/first-{01..64}-of-64 --out runs/first     # your shell makes 64 addresses of it
    """
    from instar import api

    print_outcome(api.merge(runs, out=out), threshold, as_json, merged=len(runs))
