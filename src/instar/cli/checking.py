"""Commands that look before a night is spent: check, preview, numerics."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from instar.cli.options import Json, Objects, Pool, SuiteArgument, SystemArgument, Zones
from instar.cli.printing import flags_spelled, new_console, print_json
from instar.cli.running import ALL_FAILED, Timeout


def check(
    system: SystemArgument,
    images: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[IMAGE|DATASET]...",
            help="Images that show what the system looks for, or datasets of them, such as a folder; sample photos by "
            "default. For a predictor of scenes, datasets of them, by default scenes that are made for it.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where pictures of its answers are written.")
    ] = Path("check"),
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, help="Of many inputs, the first 8 are asked: each a dozen times. Ask N.")
    ] = 8,
    timeout: Timeout = 60.0,
    as_json: Json = False,
) -> None:
    """Check whether the adapter of a system is right, and say what to change.

    It looks for the usual mistakes in coordinates (unit, order, margins, offsets), classes, scores, channels (RGB or
    BGR), left and right, batches and class maps. It also finds answers by chance or from memory, zeros for what was not
    found, objects found twice, and seeds and pasts that are ignored. If there is a problem, the exit code is 1. If
    there is none, but nothing was found in any image, so that nothing can be told, it is 3. What these images cannot
    tell is unsure: ask more. An answer that does not come in time is a problem, and ends the questions.

    Examples:

        instar check mediapipe-holistic

        instar check my.module:predict photo.jpg

        instar check my.module:predict photos/ --limit 40

        instar check social-force

        instar check my.module:walk 'tracks("people.csv")'
    """
    from instar import trial
    from instar.report.listings import show_findings

    findings, drawn, found_any = trial.check(system, images or [], out, limit=limit, timeout=timeout)
    if as_json:
        print_json({"findings": [asdict(one) for one in findings], "pictures": [str(path) for path in drawn]})
    else:
        show_findings(new_console(), findings, drawn)
    if any(finding.state == "problem" for finding in findings):
        raise typer.Exit(1)
    if not found_any:
        raise typer.Exit(ALL_FAILED)


def preview(
    suite: SuiteArgument,
    image: Annotated[str, typer.Argument(metavar="IMAGE", help="An image, or a dataset: its first case is taken.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="The PNG: IMAGE-preview.png here by default, preview.png for a dataset."
        ),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            metavar="SYSTEM",
            help="The system whose answer says where landmarks or objects are, as in a run, if a rule needs them.",
        ),
    ] = None,
    zones: Zones = "auto",
    objects: Objects = "auto",
    pool: Pool = None,
    seed: Annotated[int, typer.Option(metavar="N", help="The seed of random follow-ups.")] = 0,
) -> None:
    """Draw a contact sheet of every rule of a suite on your image, with its spelling below.

    Examples:

        instar preview met-pose/sub photo.jpg

        instar preview "mirror(h)+gamma(0.5)" photo.jpg --out sheet.png

        instar preview hand-pose hand.jpg --system mediapipe-hands
    """
    from instar import trial
    from instar.report import write_png
    from instar.report.words import listed, one_line

    made = trial.preview(suite, image, system=system, zones=zones, objects=objects, pool=pool, seed=seed)
    place = Path(image)
    target = out or (Path(f"{place.stem}-preview.png") if place.is_file() else Path("preview.png"))
    write_png(target, made.sheet)
    print(target)
    for reason in dict.fromkeys(reason for _, reason in made.missing):
        names = [name for name, other in made.missing if other == reason]
        print(one_line(f"not applicable: {listed(names, 4)}: {flags_spelled(reason)}"))


def numerics(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="An ONNX file. It is read, never run.")],
    ranges: Annotated[
        list[str],
        typer.Option(
            "--input",
            "-i",
            metavar="RANGE",
            help="What goes in: 0..255 for every input, or images=0..255 for one. "
            "A tensor inside the graph may be named too; its range is taken as given.",
        ),
    ],
    dims: Annotated[
        list[str] | None,
        typer.Option("--dim", metavar="NAME=SIZE", help="The length of an axis that the model leaves open: batch=1."),
    ] = None,
    gate: Annotated[bool, typer.Option("--gate", help="Exit with code 1 if an output can be NaN or ±∞.")] = False,
    as_json: Json = False,
) -> None:
    """Find numerical defects: operations of a model graph that can yield NaN or ±∞ for inputs in a range.

    Examples:

        instar numerics yolox_nano.onnx --input 0..255

        instar numerics goalmap.onnx -i classes=0..1 -i past=0..64 -i motion=-1..1 --dim batch=1 --gate
    """
    from instar.numerics import numerics as analysed
    from instar.numerics import parse_dims, parse_ranges
    from instar.report.listings import show_numerics

    analysis = analysed(model, parse_ranges(ranges), dims=parse_dims(dims or []))
    if as_json:
        print_json(asdict(analysis))
    else:
        show_numerics(new_console(), analysis)
    if gate and analysis.serious:
        raise typer.Exit(1)
