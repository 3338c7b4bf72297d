"""What commands print with: the console, JSON, durations, and progress."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from instar.engine import Progress

__all__ = ["Display", "duration", "new_console", "print_json"]


def new_console() -> Console:
    from rich.console import Console

    return Console(soft_wrap=False)


def print_json(value: object) -> None:
    print(json.dumps(_plain(value), ensure_ascii=False, indent=1))


def _plain(value: Any) -> Any:
    """JSON has no ∞: it is written as the string "inf" or "-inf"."""
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def duration(seconds: float) -> str:
    from instar.report.words import duration as in_words  # here: a command starts without loading reports

    return in_words(seconds)


class Display:
    """Progress with rate and remaining time: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self, quiet: bool = False, what: str = "predicting") -> None:
        self.quiet, self.what, self.said = quiet, what, time.monotonic()
        self.bar: Any = None
        self.task: Any = None

    def __enter__(self) -> Display:
        if not self.quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

            self.bar = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[note]}"),
                console=Console(stderr=True),
                transient=True,
            )
            self.task = self.bar.add_task(
                "loading the system" if self.what == "predicting" else self.what, total=None, note=""
            )
            self.bar.start()
        return self

    def update(self, progress: Progress) -> None:
        if self.quiet:
            return
        note = f"{progress.rate:.1f}/s" if progress.fresh else ""
        if progress.remaining is not None:
            note += f", {duration(progress.remaining)} left"
        failed = sum(count for status, count in progress.statuses.items() if status not in ("ok", "not applicable"))
        note += f", {failed} failed" if failed else ""
        if self.bar is not None and self.task is not None:
            self.bar.update(self.task, description=self.what, total=progress.rows, completed=progress.done, note=note)
        elif progress.fresh and time.monotonic() - self.said > 10:
            self.said = time.monotonic()
            print(f"{self.what}: {progress.done:,} of {progress.rows:,} ({note})", file=sys.stderr, flush=True)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()
