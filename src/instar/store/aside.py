"""Starting over in a run folder: the run that is there is moved aside, and nothing is deleted."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from instar.store.parts import Damaged
from instar.store.store import NoRun, Store


def move_aside(store: Store) -> str:
    """Rename a run folder, with all that is in it, and say so in words; the caller holds its lock.

    A link to the folder stays, and leads to where the new run will be.
    """
    store.refuse_bucket("a run there cannot be moved aside (`fresh`); give another address")
    folder = store.folder.resolve()
    if Path.cwd().is_relative_to(folder):
        raise ValueError(f"{store.folder} is the current directory, which cannot be moved aside; give another (`out`)")
    count = _predictions(store)
    name = f"{folder.name}.{datetime.now():%Y-%m-%d-%H%M}"
    names = [name, *(f"{name}-{number}" for number in range(2, 1000))]
    aside = next(path for path in map(folder.with_name, names) if not path.exists())
    try:
        folder.rename(aside)
    except OSError as error:
        raise ValueError(
            f"{store.folder} cannot be moved aside to {aside} ({error.strerror}); give another folder (`out`)"
        ) from None
    folder.mkdir()  # what a link to it leads to
    shown = store.folder.parent / aside.name if store.folder.absolute() == folder else aside
    return f"The run that was in {store.folder}{count} is now in {shown}; nothing of it was deleted."


_ASIDE = re.compile(r"(.+)\.\d{4}-\d{2}-\d{2}-\d{4}(?:-\d+)?")


def moved_from(folder: Path) -> Path | None:
    """The run folder that a folder's run was moved aside from, where there is another run by now; None for others."""
    named = _ASIDE.fullmatch(folder.name)
    return folder.with_name(named[1]) if named and folder.with_name(named[1]).is_dir() else None


def _predictions(store: Store) -> str:
    with suppress(NoRun, Damaged, OSError):  # it is moved aside, whatever it holds
        number = store.predictions(["status"]).height
        return f", with {number:,} prediction{'' if number == 1 else 's'},"
    return ""
