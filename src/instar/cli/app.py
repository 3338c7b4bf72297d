"""The command `instar`: which commands there are, in which groups, and what becomes of errors."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperGroup

from instar import __version__
from instar.cli import (
    boundary,
    checking,
    deciding,
    exchange,
    judging,
    listing,
    looking,
    marking,
    merging,
    models,
    repairing,
    running,
    searching,
)
from instar.cli.printing import flags_spelled, visible_streams
from instar.registry import BrokenPlugin, find, names
from instar.remote import Advisory
from instar.secrets import without_secrets

TASKS = "Tasks"
MORE = "More"
# fmt: off
COMMANDS: Mapping[str, Mapping[str, Callable[..., None]]] = {
    "Run": {"run": running.run, "boundary": boundary.boundary, "judge": judging.judge},
    "Look": {
        "show": looking.show, "tables": looking.tables, "report": looking.report, "view": looking.view,
        "draw": looking.draw,
    },
    "Decide": {"compare": deciding.compare, "gate": deciding.gate},
    "Check": {"check": checking.check},
    "List": {
        "rules": listing.rules, "suites": listing.suites, "systems": listing.systems, "datasets": listing.datasets,
    },
    MORE: {
        "preview": checking.preview, "search": searching.search, "select": looking.select, "slices": looking.slices,
        "history": deciding.history, "marks": marking.marks, "merge": merging.merge, "export": exchange.export_inputs,
        "import": exchange.import_outputs, "numerics": checking.numerics, "repair-run": repairing.repair_run,
    },
}
# fmt: on
"""The general commands by the group that `instar --help` shows them in: a dozen that everybody needs, and by name alone
those that some do. Tasks bring theirs through the registry."""

ERRORS = (ValueError, KeyError, TypeError, OSError, ImportError, RuntimeError)
"""Errors that users can mend: they are one line on stderr, and the exit code is 2."""


class Commands(TyperGroup):
    """The general commands and those of tasks, which are loaded when they are needed."""

    def list_commands(self, ctx: object) -> list[str]:
        return [*self.commands, *(name for name in names("commands") if name not in self.commands)]

    def get_command(self, ctx: object, cmd_name: str) -> Any:
        """A command by name; one of a task that cannot be loaded is reported in one line and left out."""
        if cmd_name in self.commands or cmd_name not in names("commands"):
            return _shown(self.commands.get(cmd_name))
        try:
            command = typer.main.get_group(find("command", cmd_name, "commands", typer.Typer))
        except Exception as error:  # whatever a package's module does when it is imported
            _report(str(error))
            return None
        command.name, command.rich_help_panel = cmd_name, TASKS
        return _shown(command)

    def _flags(self, ctx: Any) -> dict[str, str]:
        """How the typed command spells its parameters: options as flags, others by their place."""
        command = self.get_command(ctx, ctx.invoked_subcommand) if ctx.invoked_subcommand else None
        typed = [one for each in getattr(command, "commands", {}).values() for one in each.params]
        flags = {}
        for one in (*typed, *getattr(command, "params", ())):
            place = (one.metavar or one.name).strip("[].")
            flags[one.name] = max(one.opts, key=len) if one.param_type_name == "option" else place
        if "run" in flags:  # a command of one run, which starts none over and names its folder in another place
            flags = {"fresh": "`instar run … --fresh`", "out": flags["run"], **flags}
        return flags

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The epilog names what is in `MORE`. It is hidden here alone: what is hidden is not completed by a shell."""
        more = [command for command in self.commands.values() if getattr(command, "rich_help_panel", None) == MORE]
        for command in more:
            command.hidden = True
        super().format_help(ctx, formatter)
        for command in more:
            command.hidden = False

    def invoke(self, ctx: Any) -> object:
        with warnings.catch_warnings():
            warnings.showwarning = _report_warning
            try:
                return super().invoke(ctx)
            except (typer.Exit, typer.Abort, BrokenPipeError):
                raise
            except ERRORS as error:
                if os.environ.get("INSTAR_DEBUG"):
                    raise
                _report(flags_spelled(_message(error), self._flags(ctx)))
                raise typer.Exit(2) from None
            except KeyboardInterrupt as error:
                _report(": ".join(["stopped", *map(str, error.args)]))
                raise typer.Exit(130) from None
            except BaseException as error:
                if not _is_another_version(error):
                    raise
                _report(f"{error}; answers of two versions do not belong together: give the same command again")
                raise typer.Exit(2) from None


def _shown(command: Any) -> Any:
    """The command, and those in it, with all that they print made visible."""
    for one in (command, *getattr(command, "commands", {}).values()):
        work = getattr(one, "callback", None)
        if work is not None and not hasattr(work, "shown"):
            one.callback = visible_streams()(work)
            one.callback.shown = True
    return command


def _is_another_version(error: BaseException) -> bool:
    from instar.systems import AnotherVersion  # late: most commands end well, and need nothing that it imports

    return isinstance(error, AnotherVersion)


def _report(message: str) -> None:
    from instar.report.words import one_line

    with visible_streams():
        print(f"instar: {one_line(without_secrets(message))}", file=sys.stderr)


_usual_showwarning = warnings.showwarning


def _report_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A plug-in that cannot be loaded is one line, and so is what a bucket does not do; Python's own form also quotes a
    line of our source."""
    if issubclass(category, BrokenPlugin | Advisory):
        _report(str(message))
    else:
        _usual_showwarning(message, category, filename, lineno, file, line)


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno and error.filename:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, OSError) and error.errno:
        return f"{error.strerror}; what was committed is safe, and the same command goes on from there"
    return str(error) or type(error).__name__


app = typer.Typer(
    name="instar",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Test a perception system without labels: change each input in a way whose effect on the right "
    "answer is known, and measure how far the system's answers stray.",
    epilog=f"More commands, each with a --help of its own: {', '.join([*COMMANDS[MORE], 'models'])}.\n\n"
    "Exit codes: 0 done; 1 found what the command was asked to fail on; 2 wrong use; "
    "3 the run says nothing: no input was answered, no pair was judged, every answer is the same, most pairs are "
    "near ties, or a check found nothing in any image; 130 stopped.",
)
for group, commands in COMMANDS.items():
    for name, command in commands.items():
        app.command(name, rich_help_panel=group)(command)
app.add_typer(models.app, name="models", rich_help_panel=MORE)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit


def main() -> None:
    """The `instar` command."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a file's name may be no text, and is printed all the same
    app()
