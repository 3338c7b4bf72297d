"""`instar marks`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from instar.cli.options import Json, Judging, RunArgument, Threshold
from instar.cli.printing import new_console, print_json

if TYPE_CHECKING:
    from instar.api import Run

Export = Annotated[
    Path | None, typer.Option("--export", metavar="FILE", help="Write the marks to a .csv or .jsonl file.")
]
Unmarked = Annotated[
    bool, typer.Option("--unmarked", help="Export the violated pairs that nobody marked too, to be filled in.")
]
Import = Annotated[
    Path | None,
    typer.Option(
        "--import",
        metavar="FILE",
        help="Add the marks of a .csv or .jsonl file; also of a sheet of captions whose column is_error was filled in.",
    ),
]
Replace = Annotated[
    bool, typer.Option("--replace", help="Take the marks of the imported file where the run has others.")
]


def marks(
    run: RunArgument,
    export: Export = None,
    unmarked: Unmarked = False,
    imported: Import = None,
    replace: Replace = False,
    threshold: Threshold = None,
    judging: Judging = "default",
    as_json: Json = False,
) -> None:
    """Show which violations are real, as people marked them, with the precision of each rule; export and import marks.

    Pairs are marked in the viewer (`instar view`), or in a file: real, false alarm or unclear, each with a note.

    Examples:

        instar marks runs/first

        instar marks runs/first --export marks.csv --unmarked

        instar marks runs/first --import marks.csv
    """
    from instar.analysis.precision import marked, marked_labels, precision
    from instar.api import open_run
    from instar.report.mark_files import export_marks, import_marks
    from instar.store import stored_marks

    if unmarked and export is None:
        raise typer.BadParameter("it belongs to --export, which was not given", param_hint="--unmarked")
    if replace and imported is None:
        raise typer.BadParameter("it belongs to --import, which was not given", param_hint="--replace")
    if export is not None and export.exists():
        raise typer.BadParameter(f"{export} is there already, and is kept; give another file", param_hint="--export")
    opened = open_run(run)
    outcome = None if imported is None else import_marks(opened, imported, replace=replace)
    written = None
    if export is not None:
        written = export_marks(opened, export, unmarked=unmarked, threshold=threshold, judging=judging)
    if as_json:
        rows, shares = marked(opened, threshold, judging=judging), precision(opened, threshold, judging=judging)
        files = {"imported": outcome and asdict(outcome), "exported": written}
        labels = marked_labels(stored_marks(opened.store).values()).drop("rule").rename({"target": "label"})
        print_json({**files, "marks": rows.to_dicts(), "precision": shares.to_dicts(), "labels": labels.to_dicts()})
        return
    if outcome is not None:
        counts = f"{outcome.new:,} new, {outcome.replaced:,} replaced, {outcome.same:,} as before"
        print(f"{imported}: {counts}, {outcome.empty:,} without a mark")
    if written is not None:
        none = "" if unmarked else ": none is marked, and --unmarked writes the violated ones too, to be filled in"
        print(f"{export} has {written:,} {'pair' if written == 1 else 'pairs'}{'' if written else none}")
    _show(opened, threshold, judging)


def _show(run: Run, threshold: float | None, judging: str) -> None:
    from instar.report.precision import show_precision

    if not show_precision(new_console(), run, threshold=threshold, judging=judging):
        print("No pair is marked.")
