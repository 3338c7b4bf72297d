"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypedDict

import typer


def _suite_names(incomplete: str) -> list[str]:
    from instar.registry import names

    return [name for name in names("suites") if name.startswith(incomplete)]


def _system_names(incomplete: str) -> list[str]:
    from instar.systems import systems

    return [name for name in systems() if name.startswith(incomplete)]


SystemArgument = Annotated[
    str,
    typer.Argument(
        metavar="SYSTEM",
        help="The system under test: mediapipe-holistic, mediapipe-holistic(complexity=2), package.module:function …",
        autocompletion=_system_names,
    ),
]
SuiteArgument = Annotated[
    str,
    typer.Argument(
        metavar="SUITE",
        help="The name of a suite (see `instar suites`), a .toml file, one rule such as gamma(0.5), "
        "or several of these joined by +.",
        autocompletion=_suite_names,
    ),
]
DatasetArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATASET",
        help="A folder of images, also in a bucket (s3://…), a list of files, a video, annotations, tracks of people … "
        "(see `instar datasets`).",
    ),
]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or its address in a bucket.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Threshold = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        "-t",
        metavar="SEVERITY",
        min=0,
        help="Count a severity from this one up as a violation. By default each relation has its own threshold.",
    ),
]
Level = Annotated[
    float | None,
    typer.Option(
        "--p",
        metavar="P",
        min=0,
        max=1,
        help="Count a relation that is a statistical test as violated where its p is at most this, "
        "whatever the severity.",
    ),
]
Group = Annotated[
    str | None, typer.Option(metavar="GROUP", help="Count only the landmarks of one group: body, left_hand …")
]
All = Annotated[bool, typer.Option("--all", help="Print all rules, also where the list is long.")]
SummaryThreshold = Annotated[
    float | None,
    typer.Option(
        "--threshold", "-t", metavar="SEVERITY", min=0, help="The threshold of the summary that is printed at the end."
    ),
]
Judging = Annotated[str, typer.Option(metavar="JUDGING", help="Use the verdicts of this judging (see `instar judge`).")]
Limit = Annotated[int | None, typer.Option(metavar="N", min=1, help="Use only the first N cases.")]
Seed = Annotated[int | None, typer.Option(metavar="N", help="The seed of random follow-ups; 0 by default.")]
Zones = Annotated[
    str,
    typer.Option(
        metavar="PROVIDER",
        help="What finds skin, hair, clothes and background: auto, none, the dataset's own masks or boxes, "
        "or the name of a segmenter.",
    ),
]
Objects = Annotated[
    str,
    typer.Option(
        metavar="SYSTEM",
        help="The detector that finds objects in images where none are annotated: auto, none, or its name.",
    ),
]
Pool = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="The folder of cut-out objects that are inserted into images.")
]


class Providers(TypedDict):
    """What finds or holds the things that transformations need besides the input, and whether a folder may name it."""

    zones: str
    objects: str
    pool: Path | None
    trust: bool


Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Load and start what the folder itself names: functions that make follow-ups, programs and services that "
        "find zones or objects. Only for a folder of your own, or of somebody whose code you would run.",
    ),
]
DatasetFolder = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Where the images are: their folder, if they were moved, or their address."),
]
