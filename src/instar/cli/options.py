"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Json", "Judging", "Objects", "Pool", "RunArgument", "SuiteArgument", "SystemArgument", "Threshold", "Zones"]

SystemArgument = Annotated[
    str,
    typer.Argument(
        metavar="SYSTEM", help="mediapipe-holistic, mediapipe-holistic(complexity=2), package.module:function …"
    ),
]
SuiteArgument = Annotated[
    str,
    typer.Argument(
        metavar="SUITE", help="met-pose/sub, a .toml file, one rule such as gamma(0.5), or several joined by +"
    ),
]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Threshold = Annotated[
    float | None,
    typer.Option("--threshold", "-t", min=0, help="Violated from here up; each relation's own by default."),
]
Judging = Annotated[str, typer.Option(help="Which judging; see `instar judge`.")]
Zones = Annotated[
    str,
    typer.Option(
        help="Who finds skin, hair, clothes and background: auto, none, masks or boxes of the dataset, or a segmenter."
    ),
]
Objects = Annotated[
    str, typer.Option(help="The detector that finds objects where none are annotated: auto, none, efficientdet-lite0 …")
]
Pool = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Cut-out objects to insert; see `instar pool make`.")]
