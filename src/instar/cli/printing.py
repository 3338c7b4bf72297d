"""What commands print with: the console, JSON, and progress."""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar

    from instar.api import Run
    from instar.engine import Progress


class VisibleStream:
    """A stream whose text is shown: a name that holds an escape sequence is printed, and does not reach the terminal.

    Colours are the console's, which writes to the stream `beneath`.
    """

    def __init__(self, beneath: TextIO) -> None:
        self.beneath = beneath

    def write(self, text: str) -> int:
        from instar.report.words import visible

        return self.beneath.write(visible(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.beneath, name)


@contextmanager
def visible_streams() -> Iterator[None]:
    """While a command works, all that it prints goes through here."""
    with redirect_stdout(VisibleStream(sys.stdout)), redirect_stderr(VisibleStream(sys.stderr)):
        yield


def _beneath(stream: TextIO) -> TextIO:
    return stream.beneath if isinstance(stream, VisibleStream) else stream


def new_console() -> Console:
    from instar.report.console import PlainConsole

    return PlainConsole(soft_wrap=False, file=_beneath(sys.stdout), worded=flags_spelled)


PROVIDERS = {name: f"--{name}" for name in ("zones", "objects", "pool", "system", "dataset")}
"""The parameters that reasons name, for want of which a pair is not applicable or not drawn, as flags."""


def flags_spelled(text: str, flags: Mapping[str, str] = PROVIDERS) -> str:
    """Messages name parameters, `out` or the parameter kind; for who types commands they are flags.

    >>> flags_spelled("give another folder (`out`), or name one as `zones`", {"out": "--out"})
    'give another folder (--out), or name one as `zones`'
    """
    return re.sub(
        r"`(\w+)`|\bthe parameter (\w+)", lambda named: flags.get(named[1] or named[2], named[0]), text, flags=re.ASCII
    )


def print_json(value: object) -> None:
    """What a terminal would take for a command is written as an escape, which JSON reads as the same."""
    from instar.report.words import UNSEEN

    text = json.dumps(_plain(value), ensure_ascii=False, indent=1)
    print(UNSEEN.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text))


def _plain(value: object) -> object:
    """JSON has no ∞: it is written as the string "inf" or "-inf"."""
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value


def print_notes(console: Console, *notes: str, style: str = "yellow") -> None:
    """Lines as they are: no markup, no colours of their own, and no break inside a command or a path to copy."""
    for note in notes:
        console.print(note, style=style, markup=False, highlight=False, soft_wrap=True)


def print_unloaded(runs: Sequence[Run]) -> None:
    """Say once which code runs name that is not loaded, and so which follow-ups cannot be drawn."""
    names = sorted({name for run in runs for name in run.unloaded()})
    if names:
        print(
            f"instar: follow-ups that {', '.join(names)} made are not drawn: a run folder names this code, and it was "
            "not loaded; --trust loads it",
            file=sys.stderr,
        )


class Display:
    """Progress with rate and remaining time: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self, quiet: bool = False, what: str = "predicting") -> None:
        self.quiet, self.what, self.last_line = quiet, what, time.monotonic()
        self.bar: Bar | None = None

    def __enter__(self) -> Display:
        if not self.quiet and sys.stderr.isatty():
            from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
            from rich.progress import Progress as Bar

            from instar.report.console import PlainConsole

            self.bar = Bar(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[note]}"),
                console=PlainConsole(file=_beneath(sys.stderr)),
                transient=True,
            )
            self.bar.add_task(
                "loading the system" if self.what.startswith("predicting") else self.what, total=None, note=""
            )
            self.bar.start()
        return self

    def update(self, progress: Progress) -> None:
        if self.quiet:
            return
        from instar.report.words import progress_words

        note = progress_words(progress.rate, progress.remaining, progress.statuses)
        if self.bar is not None:
            (task,) = self.bar.task_ids
            self.bar.update(task, description=self.what, total=progress.rows, completed=progress.done, note=note)
        elif progress.fresh and time.monotonic() - self.last_line > 10:
            self.last_line = time.monotonic()
            more = f" ({note})" if note else ""
            print(f"{self.what}: {progress.done:,} of {progress.rows:,}{more}", file=sys.stderr, flush=True)

    def measured(self, done: int, total: int) -> None:
        """How many cases have their visual change measured, after all is predicted."""
        if self.bar is not None:
            (task,) = self.bar.task_ids
            self.bar.update(task, description="measuring visual change", total=total, completed=done, note="")

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()
