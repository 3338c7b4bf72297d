"""`instar export` and `instar import`: systems that Instar cannot call."""

from __future__ import annotations

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
    Seed,
    SuiteArgument,
    SummaryThreshold,
    Trust,
    Zones,
)
from instar.cli.printing import Display, new_console, print_json, print_notes
from instar.cli.running import end_in_trouble

ExportFolder = Annotated[
    Path, typer.Option("--out", "-o", metavar="FOLDER", help="The folder of the export. It is made if it is not there.")
]
AnswerKind = Annotated[
    str | None,
    typer.Option(metavar="KIND", help="The output kind of the answers, such as poses; by default that of the suite."),
]
Stochastic = Annotated[
    bool,
    typer.Option(
        "--stochastic",
        help="The system answers the same input differently each time: "
        "export the repeats that rules ask for, each with its seed.",
    ),
]


def export_inputs(
    dataset: DatasetArgument,
    suite: SuiteArgument,
    out: ExportFolder,
    kind: AnswerKind = None,
    stochastic: Stochastic = False,
    limit: Limit = None,
    seed: Seed = None,
    zones: Zones = "auto",
    objects: Objects = "auto",
    pool: Pool = None,
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Write every input of a run as a file with its key, for a system that Instar cannot call.

    `instar import` makes a run of what the system answered. The same command again writes only what is missing.
    Ctrl-C loses nothing.

    Examples:

        instar export photos/ met-pose/sub --out questions/

        instar export photos/ "mirror(h)+gamma(0.5)" --kind detections --out questions/

        instar export tracks.csv trajtest/geometry --stochastic --out questions/
    """
    from instar import api
    from instar.report.listings import show_export

    with Display(quiet=as_json, what="exporting") as display:
        outcome = api.export_inputs(
            dataset,
            suite,
            out=out,
            kind=kind,
            stochastic=stochastic,
            limit=limit,
            seed=seed,
            zones=zones,
            objects=objects,
            pool=pool,
            trust=trust,
            on_progress=display.update,
        )
    if as_json:
        print_json({"export": str(out), **asdict(outcome)})
    else:
        console = new_console()
        show_export(console, outcome, out)
        inputs = out / "inputs.jsonl"
        print_notes(
            console,
            f"The inputs to answer are listed in {inputs}; then: instar import answers.csv --export {out} --out RUN",
            style="dim",
        )
    if outcome.interrupted:
        raise typer.Exit(130)


Tables = Annotated[
    list[Path] | None,
    typer.Argument(metavar="TABLE...", help="CSV or JSONL files with one output, or one pair of outputs, per line."),
]
RunFolder = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="FOLDER", help="The run folder. It is made, or added to.")
]
Rules = Annotated[
    str | None,
    typer.Option(
        metavar="SUITE",
        help="The rules: by default those of the export, or else the output kind's own relation for every follow-up.",
    ),
]
OutputKind = Annotated[
    str | None,
    typer.Option(metavar="KIND", help="The output kind, such as poses; by default the columns of the table decide."),
]
Answered = Annotated[Path | None, typer.Option(metavar="FOLDER", help="The export whose inputs were answered.")]
Source = Annotated[
    str | None,
    typer.Option(
        metavar="DATASET", help="The dataset that the cases come from: it has their sizes, their truth and the images."
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=COLUMN,…", help="How the columns are called in the table, e.g. caption=text,case=image_id."
    ),
]
FollowUp = Annotated[
    str | None,
    typer.Option(
        metavar="TRANSFORMATION",
        help="The follow-up of lines that name none: mirror(h), or recorded(NAME) for one that was made elsewhere.",
    ),
]
SkeletonName = Annotated[
    str | None, typer.Option(metavar="SKELETON", help="The skeleton of the landmarks: coco-17, a .toml file …")
]
SystemName = Annotated[
    str | None, typer.Option(metavar="NAME", help="The name of the system; by default that of the table.")
]


def import_outputs(
    tables: Tables = None,
    out: RunFolder = None,
    suite: Rules = None,
    kind: OutputKind = None,
    export: Answered = None,
    dataset: Source = None,
    columns: Columns = None,
    follow_up: FollowUp = None,
    skeleton: SkeletonName = None,
    name: SystemName = None,
    threshold: SummaryThreshold = None,
    as_json: Json = False,
) -> None:
    """Make a run of recorded outputs: what a service, another program or a person answered.

    A table has the columns case, follow_up (`source`, or a transformation), draw and repeat, and those of the output.
    Every other column is an attribute of the case. Tables can be added later. docs/recorded.md explains every column.
    If there are rules and the run so far says nothing about the system, as in `instar run`, the exit code is 3.

    Examples:

        instar import answers.csv --export questions/ --out runs/service

        instar import log.jsonl --out runs/log --follow-up "recorded(paste)" --columns case=pair,caption=after

        instar import --out runs/log --suite "recorded(paste) => numbers"
    """
    from instar import api
    from instar.exchange import columns_of
    from instar.report import show_run, words

    if out is None:
        raise typer.BadParameter("say where the run goes, e.g. --out runs/recorded", param_hint="--out")
    finished = api.import_outputs(
        tables or [],
        out=out,
        suite=suite,
        kind=kind,
        export=export,
        dataset=dataset,
        columns=columns_of(columns or []),
        follow_up=follow_up,
        skeleton=skeleton,
        name=name,
    )
    outcome = finished.outcome
    assert outcome is not None
    if as_json:
        print_json({"run": str(out), **asdict(outcome)})
    else:
        console = new_console()
        console.print(
            f"Imported {words.count_of(outcome.fresh, 'output')} of {words.count_of(outcome.cases, 'case')} in "
            f"{words.duration(outcome.seconds)}",
            highlight=False,
        )
        print_notes(console, *outcome.notes)
        if finished.manifest.rules:
            console.print()
            show_run(console, finished, threshold=threshold, worst=5, limit=20)
    if finished.manifest.rules:
        end_in_trouble(finished, api.nothing_to_tell(finished))
