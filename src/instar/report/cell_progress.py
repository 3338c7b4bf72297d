"""How far a run is, in the cell of a notebook. Outside of notebooks nothing is shown."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from instar.engine.progress import FAILURES
from instar.report.cells import progress_html
from instar.report.words import count_of, duration, of_total, progress_words

if TYPE_CHECKING:
    from instar.engine import Outcome, Progress

OFTEN = 0.25
"""Seconds between two pictures of the progress: each is sent to the browser."""


class Shown(Protocol):
    """What a notebook shows in a cell, and can be changed."""

    def update(self, obj: Any, *, raw: bool) -> None: ...


class CellProgress:
    """Shows how far a run into this folder is, in the cell that began it; nothing where there is no cell, or where it
    is to be silent."""

    def __init__(self, folder: object, *, silent: bool = False) -> None:
        self.folder, self.silent, self.last, self.words = folder, silent, 0.0, ""
        self.cell: Shown | None = None

    def __enter__(self) -> CellProgress:
        display = None if self.silent else _display()
        if display is not None:
            self.words = "loading the system …"
            self.cell = display(_bundle(self.words), raw=True, display_id=True)
        return self

    @property
    def shows(self) -> bool:
        """Whether there is a cell to show it in."""
        return self.cell is not None

    def update(self, progress: Progress) -> None:
        """Show how far it is, as often as an eye can follow."""
        if self.cell is None or time.monotonic() - self.last < OFTEN:
            return
        self.last = time.monotonic()
        notes = progress_words(progress.rate, progress.remaining, progress.statuses)
        more = f" ({notes})" if notes else ""
        self._show(f"predicting: {progress.done:,} of {progress.rows:,}{more}", progress.done, progress.rows)

    def predicted(self, outcome: Outcome) -> None:
        """Everything that was asked for is predicted, or the run was stopped."""
        if outcome.interrupted:
            are = "is" if outcome.fresh == 1 else "are"
            self._show(
                f"Stopped. {count_of(outcome.fresh, 'new prediction')} {are} stored in {self.folder}; the same call "
                "again goes on from there."
            )
            return
        failed, total = sum(outcome.statuses.get(status, 0) for status in FAILURES), sum(outcome.statuses.values())
        trouble = f" {of_total(failed, total, 'prediction')} failed." if failed else ""
        if outcome.fresh:
            speed = f"{outcome.fresh / max(outcome.seconds, 1e-9):.1f} a second"
            self._show(
                f"{count_of(outcome.fresh, 'new prediction')} in {duration(outcome.seconds)} ({speed}).{trouble}"
            )
        elif total:
            self._show(f"Nothing is left to do: everything this asks for is in the run folder already.{trouble}")
        else:
            self._show("Nothing was predicted: no case of this dataset can be read.")

    def _show(self, words: str, done: int = 0, rows: int = 0) -> None:
        self.words = words
        if self.cell is not None:
            self.cell.update(_bundle(words, done, rows), raw=True)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is None or self.cell is None or self.words.startswith("Stopped."):
            return
        if issubclass(kind, KeyboardInterrupt):
            self._show(
                f"Stopped. What was predicted is stored in {self.folder}; the same call again goes on from there."
            )
        else:
            self._show("It ended with an error, which is told below. What was predicted before is stored.")


def _display() -> Callable[..., Shown] | None:
    """What shows something in a cell, where Python runs in the kernel of a notebook."""
    ipython = sys.modules.get("IPython")  # it is there where a notebook is, and is not imported to look for one
    shell = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is None:
        return None
    from IPython.display import display

    shown: Callable[..., Shown] = display
    return shown


def _bundle(words: str, done: int = 0, rows: int = 0) -> dict[str, str]:
    return {"text/html": progress_html(words, done, rows), "text/plain": words}
