"""`instar fruit count IMAGE`: what the counter says of one image."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app"]

app = typer.Typer(help="Count fruit.", no_args_is_help=True)


@app.callback()
def _fruit() -> None:
    """Commands of the task fruit."""


@app.command()
def count(image: Annotated[Path, typer.Argument(metavar="IMAGE", help="An image of a bowl.")]) -> None:
    """Print how many fruits of each sort are in an image.

    Example:

        instar fruit count bowl.png
    """
    from instar.image import read_image
    from instar_fruit.systems import count_fruit

    print(count_fruit(read_image(image).pixels).says())
