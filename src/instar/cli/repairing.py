"""`instar repair-run`."""

from __future__ import annotations

from dataclasses import asdict

from instar.cli.options import Json, RunArgument
from instar.cli.printing import new_console, print_json, print_notes


def repair_run(run: RunArgument, as_json: Json = False) -> None:
    """Check every file of a run, and set aside those that are damaged.

    They are moved into the folder `damaged` of the run, and the command says what each of them held. The command that
    made the run then makes only that again. Nothing else is changed: a run without damage stays as it is.

    Examples:

        instar repair-run runs/first
    """
    from instar.store import Store, repair

    store = Store(run)
    repairs = repair(store)
    if as_json:
        print_json({"run": str(store.folder), "repairs": [asdict(one) for one in repairs]})
        return
    console = new_console()
    for one in repairs:
        where = f"it is now {one.aside}" if one.aside else "it is not there"
        print_notes(console, f"{one.file}: {one.fault}; {where}. It held {one.content}.")
    done = f"{len(repairs):,} damaged, and set aside" if repairs else "every file is whole"
    print_notes(console, f"{store.folder}: {done}", style="dim")
