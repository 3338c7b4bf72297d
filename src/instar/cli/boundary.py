"""`instar boundary`."""

from __future__ import annotations

import shlex
import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from instar.cli.judging import Choices, option_texts
from instar.cli.options import (
    DatasetArgument,
    Json,
    Limit,
    Objects,
    Pool,
    Providers,
    Seed,
    SystemArgument,
    Trust,
    Zones,
)
from instar.cli.printing import Display, new_console, print_json, print_notes
from instar.cli.running import (
    Address,
    Engine,
    Fresh,
    Out,
    Plan,
    Predictors,
    Retry,
    ShardOption,
    Timeout,
    Workers,
    end_in_trouble,
    refuse,
)

if TYPE_CHECKING:
    from instar.analysis.boundary import Boundary

FamilyArgument = Annotated[
    str,
    typer.Argument(
        metavar="FAMILY",
        help="A family of transformations that goes from weak to strong: gamma, rotation, blur, brightness(add=0) … "
        "filtered(gamma, skin) changes a zone alone; "
        '"gamma | rotation" is the frontier of two; several searches are joined by +.',
    ),
]
Steps = Annotated[
    int, typer.Option(metavar="N", min=4, max=1000, help="How many levels each way has, up to the far end.")
]
Probes = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=0,
        help="How many more levels are asked below each limit, and how many beyond it, to see whether a smaller change "
        "breaks the answer too, or a larger one does not: by default 2, or as many as 30 % of the predictions of the "
        "grid leave.",
    ),
]
Rays = Annotated[
    int, typer.Option(metavar="N", min=0, max=9, help="How many directions a frontier has between two axes.")
]
Threshold = Annotated[
    float | None,
    typer.Option(
        "--threshold", "-t", metavar="SEVERITY", min=0, help="The severity from which on an answer counts as broken."
    ),
]
Visual = Annotated[
    bool,
    typer.Option(
        "--visual/--no-visual", help="Measure how much of a change a person sees at each limit (one more reading)."
    ),
]
Pictures = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Draw limits into this folder: the source, the last level that held, the first that broke.",
    ),
]


class Searched(TypedDict):
    """What is searched, and by which judging."""

    steps: int
    probes: int | None
    rays: int
    options: dict[str, str]


Count = Annotated[int, typer.Option(metavar="N", min=1, help="How many limits of each way are drawn.")]


def boundary(
    system: SystemArgument,
    family: FamilyArgument,
    dataset: DatasetArgument,
    out: Out = None,
    steps: Steps = 40,
    probes: Probes = None,
    rays: Rays = 1,
    threshold: Threshold = None,
    choices: Choices = None,
    visual: Visual = True,
    pictures: Pictures = None,
    count: Count = 5,
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
    plan: Plan = False,
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Search how far each case can be changed before its answer breaks, and show what share bears how much.

    The search is a run: Ctrl-C loses nothing, the same command again goes on or prints the same without predicting,
    and `instar tables`, `show`, `report` and `view` work on its folder.

    Examples:

        instar boundary mediapipe-holistic gamma photos/ --out runs/gamma

        instar boundary mediapipe-holistic "gamma+rotation+blur" photos/ --out runs/limits --pictures limits/

        instar boundary my.module:predict "gamma | rotation" photos/ --out runs/frontier --rays 3

        instar boundary my.module:predict "noise => poses" photos/ --out runs/noise --steps 80 --probes 4

        instar boundary mediapipe-holistic "filtered(gamma, skin)" photos/ --out runs/skin --plan

        instar boundary mediapipe-holistic gamma photos/ --out runs/gamma --set landmarks=hands

        instar tables runs/gamma
    """
    from instar import api
    from instar.limits import boundary as searched
    from instar.limits import plan_of
    from instar.report.listings import show_limit_plan

    refuse(retry, out, plan)
    providers = Providers(zones=zones, objects=objects, pool=pool, trust=trust)
    grid = Searched(steps=steps, probes=probes, rays=rays, options=option_texts(choices or ()))
    if out is None or plan:
        place = None if fresh else out
        cost = plan_of(
            system, family, dataset, out=place, limit=limit, shard=shard, workers=workers, timeout=timeout,
            **grid, **providers,
        )  # fmt: skip
        return print_json(asdict(cost)) if as_json else show_limit_plan(new_console(), cost)
    with Display(quiet=as_json, what="predicting") as display, warnings.catch_warnings():
        warnings.simplefilter("ignore", api.NothingTold)  # told at the end, with the exit code
        # fmt: off
        boundaries = searched(
            system, family, dataset, out=out, threshold=threshold, visual=visual, limit=limit, shard=shard,
            workers=workers, predictors=predictors, engine=engine, address=address, timeout=timeout, seed=seed,
            fresh=fresh, retry_failed=retry == "failed", on_progress=display.update, on_measured=display.measured,
            **grid, **providers,
        )
        # fmt: on
    _print(boundaries, as_json)
    if pictures is not None:
        _draw(boundaries, pictures, count, dataset)
    _end(boundaries)


def _print(boundaries: Boundary, as_json: bool) -> None:
    from instar.engine import DEFAULT
    from instar.report import show_outcome
    from instar.report.boundary_panel import boundary_tables
    from instar.report.listings import show_task_tables

    outcome, folder = boundaries.run.outcome, boundaries.run.folder
    assert outcome is not None
    made = boundary_tables(boundaries, judging=boundaries.judging, brief=True)
    if as_json:
        frames = {name: frame.to_dicts() for name, frame in made.frames.items()}
        counts = {"asked": boundaries.questions, "every": boundaries.every}
        print_json({"run": str(folder), **frames, **counts, "sentences": made.before, **asdict(outcome)})
        return
    console, typed = new_console(), shlex.quote(str(folder))
    folder_typed = typed
    if boundaries.judging != DEFAULT:
        typed = f"{typed} --judging {shlex.quote(boundaries.judging)}"
    show_outcome(console, outcome, str(folder))
    if boundaries.limits.height:
        console.print()
        show_task_tables(console, made)
        print_notes(
            console,
            f"the limit of each case: instar tables {typed} · instar report {typed} · instar view {folder_typed}",
            style="dim",
        )


def _draw(boundaries: Boundary, pictures: Path, count: int, dataset: str) -> None:
    from instar.report.boundary_pictures import draw_limits

    place = dataset if Path(dataset).is_dir() else None
    for path, words in draw_limits(boundaries, pictures, count, judging=boundaries.judging, dataset=place):
        print(f"{words}: {path}" if path else f"instar: not drawn: {words}", file=sys.stderr)


def _end(boundaries: Boundary) -> None:
    from instar.api import nothing_to_tell

    assert boundaries.run.outcome is not None
    if boundaries.run.outcome.interrupted:
        raise typer.Exit(130)
    end_in_trouble(boundaries.run, nothing_to_tell(boundaries.run, boundaries.judging))
