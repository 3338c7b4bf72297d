"""Commands that look at runs: show, tables, report, view, draw, select, slices."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from instar.cli.options import All, DatasetFolder, Group, Json, Judging, Level, RunArgument, Threshold, Trust
from instar.cli.printing import flags_spelled, new_console, print_json, print_unloaded

if TYPE_CHECKING:
    from instar.api import Run
    from instar.report.panels import TaskTables

By = Literal["case", "target"]
Worst = Annotated[int, typer.Option(metavar="N", min=0, help="List the N worst pairs.")]
OneRule = Annotated[str | None, typer.Option(metavar="RULE", help="Look at this rule only.")]
Figure = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER",
        help="Make one figure or table of the task's paper of these runs, by its number there: 7, II … "
        "An unknown number lists those that there are.",
    ),
]
FigureRules = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RULES",
        help="The rules that the figure is about: a set that its paper names (such as sub; all is every rule), a "
        "suite, or rules joined by +. Give it again for another set.",
    ),
]
FigureFile = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FILE", help="Write the figure: .svg, .png or .html; or its numbers: .csv or .json."
    ),
]
Runs = Annotated[list[Path], typer.Argument(metavar="RUN...", help="One or more run folders.")]
RunsOrFolders = Annotated[
    list[Path], typer.Argument(metavar="RUN...", help="One or more run folders, or folders that contain runs.")
]


def show(
    run: RunArgument,
    threshold: Threshold = None,
    judging: Judging = "default",
    worst: Worst = 10,
    every: All = False,
    p: Level = None,
    by: Annotated[
        str, typer.Option(metavar="case|target", help="Count cases, or every target of a case for itself.")
    ] = "case",
    group: Group = None,
    table: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Print another table instead: families, suites, counts (how many rules a case violates), coverage …",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the violation rate of each rule with its interval, and the worst pairs.

    Examples:

        instar show runs/first --threshold 0.2

        instar show runs/first --judging landmarks=hands --group left_hand

        instar show runs/first --table coverage --threshold 0.2

        instar show runs/first --judging landmarks=hands --json
    """
    from instar.api import open_run
    from instar.report import run_table, show_run, show_tables

    if by not in ("case", "target"):
        raise typer.BadParameter(f"{by!r}; allowed are: case, target", param_hint="--by")
    opened, each = open_run(run), cast(By, by)
    if table is not None:
        tables = run_table(opened, table, threshold=threshold, judging=judging)
        if as_json:
            print_json([{"table": one.caption, "rows": one.records()} for one in tables])
        else:
            show_tables(new_console(), tables)
    elif as_json:
        print_json(run_json(opened, threshold=threshold, judging=judging, worst=worst, by=each, p=p, group=group))
    else:
        console, limit = new_console(), None if every else 30
        show_run(
            console, opened, threshold=threshold, judging=judging, worst=worst, by=each, limit=limit, p=p, group=group
        )


def run_json(
    run: Run,
    *,
    threshold: float | None = None,
    judging: str = "default",
    worst: int = 10,
    by: By = "case",
    p: float | None = None,
    group: str | None = None,
) -> dict[str, object]:
    """What `show_run` prints, for programs."""
    from instar.analysis.precision import precision
    from instar.analysis.rejections import LEVEL
    from instar.report import findings

    return {
        "run": str(run.folder),
        "system": asdict(run.manifest.system),
        "judging": judging,
        "findings": [asdict(each) for each in findings(run, threshold=threshold, p=p, judging=judging, group=group)],
        "judged": run.judged(judging, group=group),
        "answers": asdict(run.answers(judging)),
        "any": run.any_rule(threshold, p=p, judging=judging, group=group),
        "rules": run.rates(threshold, p=p, judging=judging, by=by, group=group).to_dicts(),
        "worst": run.worst(worst, threshold=threshold, p=p, judging=judging, group=group).to_dicts(),
        "families": run.family_rates(threshold, p=p, judging=judging, group=group).to_dicts(),
        "noise": run.noise(judging).to_dicts(),
        "straying": run.straying_parts(threshold, judging=judging).to_dicts(),
        "straying_classes": run.straying_classes(threshold, judging=judging).to_dicts(),
        "tests": {"level": p or LEVEL, "rows": run.tests(p or LEVEL, judging=judging).to_dicts()},
        "precision": precision(run, threshold, judging=judging).to_dicts(),
        "over_cases": [
            {name: value for name, value in row.items() if value is not None}
            for row in run.over_cases(judging).iter_rows(named=True)
        ],
    }


def tables(
    runs: Runs,
    p: Annotated[
        float, typer.Option("--p", metavar="P", min=0, max=1, help="The level of significance of statistical tests.")
    ] = 0.05,
    judging: Judging = "default",
    figure: Figure = None,
    rules: FigureRules = None,
    threshold: Threshold = None,
    out: FigureFile = None,
    as_json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Print the tables of the task that a run belongs to, as its paper has them; or make one of its figures.

    Some tasks put several runs side by side. --rules, --threshold and --out belong to --figure.

    Examples:

        instar tables runs/first

        instar tables runs/first runs/second

        instar tables runs/first --p 0.01 --markdown > tables.md

        instar tables runs/first --figure 7 --rules sub --out figure7.svg

        instar tables runs/first --figure 4 --rules all --rules "greyscale + mirror(h)"
    """
    from instar.api import open_run
    from instar.report.listings import show_task_tables
    from instar.report.panels import Choice, figures_of, paper_figure, tables_of

    if figure is None:
        for name, value in {"--rules": rules, "--threshold": threshold, "--out": out}.items():
            if value is not None:
                raise typer.BadParameter("it belongs to --figure, which was not given", param_hint=name)
    opened = [open_run(folder) for folder in runs]
    if figure is None:
        by_panel = tables_of(opened, judging, p)
    else:
        if not figures_of(opened):
            suites = ", ".join(dict.fromkeys(suite for run in opened for suite in run.manifest.suites))
            raise ValueError(
                f"there is no figure {figure!r} of a run of {suites}: figures of papers belong to the suites of tasks. "
                "`instar report --format svg` draws figures of any run"
            )
        by_panel = {figure: paper_figure(opened, figure, Choice(tuple(rules or ()), threshold, judging, p))}
    if out is not None and figure is not None:
        _write_figure(by_panel[figure], out)
    if as_json:
        frames = {panel: task.frames for panel, task in by_panel.items()}
        print_json({panel: {name: one.to_dicts() for name, one in some.items()} for panel, some in frames.items()})
    else:
        for task in by_panel.values():
            show_task_tables(new_console(), task, markdown=markdown)


def _write_figure(made: TaskTables, out: Path) -> None:
    from instar.report.paper_figures import write_figure

    print(f"The figure is in {write_figure(made, out)}", file=sys.stderr)


def report(
    runs: Runs,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help="The page, or report.md. Other formats are written beside it."
        ),
    ] = Path("report.html"),
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            metavar="FORMAT,…",
            help="What is written: html, md, svg or png, several as html,svg. svg and png are the figures, for papers. "
            "By default the suffix of --out decides.",
        ),
    ] = None,
    images: Annotated[int, typer.Option(metavar="N", min=0, help="The page shows the N worst pairs.")] = 24,
    threshold: Threshold = None,
    judging: Judging = "default",
    dataset: DatasetFolder = None,
    trust: Trust = False,
) -> None:
    """Write what a run found as one page that works without a network; several runs are compared.

    Examples:

        instar report runs/first --out report.html

        instar report runs/first runs/second --out both.html --images 40

        instar report runs/first --format md,svg --threshold 0.2 --out paper/report.md
    """
    from instar.api import open_run
    from instar.report import write_report
    from instar.report.words import one_line

    chosen = [name.strip() for names in formats or [] for name in names.split(",") if name.strip()]
    opened = [open_run(folder, trust=trust) for folder in runs]
    written = write_report(
        opened,
        out,
        formats=chosen,
        threshold=threshold,
        judging=judging,
        images=images,
        dataset=dataset,
        say=lambda sentence: print(f"instar: {flags_spelled(one_line(sentence))}", file=sys.stderr),
    )
    for path in written:
        size = path.stat().st_size
        print(f"{path}  {size / 1e6:.1f} MB" if size >= 1e5 else f"{path}  {size / 1e3:.1f} kB")
        if path.suffix in (".html", ".htm"):
            print(f"Open it in a browser: {path.resolve().as_uri()}")
    print_unloaded(opened)


def view(
    runs: RunsOrFolders,
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65535, help="The port; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Show marks of pairs, and let nobody change them.")
    ] = False,
    dataset: DatasetFolder = None,
    trust: Trust = False,
) -> None:
    """Look at runs in the browser: filter and mark the pairs, open every case and rule, compare two runs.

    The page is served to this machine alone, needs no network, and follows a run that still goes on.

    Examples:

        instar view runs/first

        instar view runs/

        instar view runs/before runs/after --port 8000 --no-browser
    """
    from instar.api import open_run
    from instar.store import Store
    from instar.viewer import serve

    runs = [run for folder in runs for run in _runs_of(folder)]
    print_unloaded([open_run(folder, trust=trust) for folder in runs if Store(folder).exists])
    serve(runs, port=port, browser=browser, dataset=dataset, worded=flags_spelled, read_only=read_only)


def _runs_of(folder: Path) -> list[Path]:
    """Return the runs inside a folder, or the folder itself if it is a run or contains none."""
    from instar.store import Store

    if Store(folder).exists or not folder.is_dir():
        return [folder]
    return sorted(inner for inner in folder.iterdir() if inner.is_dir() and Store(inner).exists) or [folder]


def draw(
    run: RunArgument,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where the pictures are written.")],
    worst: Annotated[int, typer.Option(metavar="N", min=1, help="Draw the N worst pairs.")] = 10,
    threshold: Threshold = None,
    judging: Judging = "default",
    rule: OneRule = None,
    case: Annotated[str | None, typer.Option(metavar="CASE", help="Draw pairs of this case only.")] = None,
    dataset: DatasetFolder = None,
    trust: Trust = False,
) -> None:
    """Draw the worst pairs: source and follow-up, what was expected hollow and what was answered filled.

    They are those that `instar show` lists: what violates its rule comes first, and the rules take turns.

    Examples:

        instar draw runs/first --worst 10 --out pics/

        instar draw runs/first --rule "mirror(h)" --out pics/
    """
    from instar.api import open_run
    from instar.report import draw_pairs
    from instar.report.words import one_line

    opened = open_run(run, trust=trust)
    chosen = opened.worst(worst, threshold=threshold, judging=judging, rule=rule, case=case)
    if chosen.is_empty():
        print("There is nothing to draw: no pair has a severity above 0.")
        return
    pictures = 0
    for path, label in draw_pairs(opened, chosen, out, threshold=threshold, judging=judging, dataset=dataset):
        print(f"{path}  {one_line(label)}" if path else f"not drawn: {flags_spelled(one_line(label))}")
        pictures += path is not None
    print_unloaded([opened])
    if not pictures:
        raise typer.Exit(2)


def select(
    run: RunArgument,
    share: Annotated[
        float, typer.Option(metavar="SHARE", min=0, max=1, help="Find at least this share of the failing cases.")
    ] = 1.0,
    threshold: Threshold = None,
    judging: Judging = "default",
    as_json: Json = False,
) -> None:
    """Find the cheapest set of rules that still finds the failing cases, and what each rule adds.

    Examples:

        instar select runs/first --threshold 0.2

        instar select runs/first --share 0.95 --json
    """
    from instar.api import open_run
    from instar.report import show_selection
    from instar.report.limits import limit_words

    opened = open_run(run)
    table, proven = opened.select(share, threshold=threshold, judging=judging)
    if as_json:
        print_json({"rules": table.to_dicts(), "proven": proven})
    else:
        limits = limit_words(opened, threshold=threshold, judging=judging)
        show_selection(new_console(), opened, table, proven=proven, share=share, limits=limits)


def slices(
    run: RunArgument,
    threshold: Threshold = None,
    rule: OneRule = None,
    judging: Judging = "default",
    as_json: Json = False,
) -> None:
    """Show how failing cases differ from the others, in what was measured of them and in your own columns.

    Examples:

        instar slices runs/first --threshold 0.2

        instar slices runs/first --rule "gamma(0.5)" --json
    """
    from instar.api import open_run
    from instar.report import show_slices
    from instar.report.limits import limit_words

    opened = open_run(run)
    table = opened.slices(threshold=threshold, rule=rule, judging=judging)
    if as_json:
        print_json(table.to_dicts())
    else:
        limits = limit_words(opened, threshold=threshold, judging=judging, rule=rule)
        show_slices(new_console(), table, limits=limits)
