"""Commands that help to decide: compare, history, gate."""

from __future__ import annotations

import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from instar.cli.options import All, DatasetFolder, Group, Json, Judging, Level, RunArgument, Threshold
from instar.cli.printing import Display, new_console, print_json
from instar.cli.running import ALL_FAILED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from instar.api import Run
    from instar.gate import Check, Policy, WorstPair

Runs = Annotated[
    list[Path],
    typer.Argument(metavar="RUN RUN...", help="The run to compare with, and one or more that are compared with it."),
]
Judgings = Annotated[
    list[str] | None,
    typer.Option(
        "--judging",
        metavar="JUDGING",
        help="Use the verdicts of this judging (see `instar judge`); give it once for all runs, or once for each.",
    ),
]


By = Annotated[
    str, typer.Option(metavar="case|target", help="With target, also compare the shares of targets: people, objects.")
]
Flips = Annotated[
    int, typer.Option("--flips", metavar="N", min=0, help="List N pairs that got worse, and N that got better.")
]


def compare(
    runs: Runs,
    threshold: Threshold = None,
    judging: Judgings = None,
    p: Level = None,
    by: By = "case",
    group: Group = None,
    flips: Flips = 10,
    every: All = False,
    as_json: Json = False,
) -> None:
    """Compare runs on the cases they share: what got worse, what got better, and how sure that is.

    Each run is compared with the first one, pair by pair: both must have asked the same rules of the same inputs.

    Examples:

        instar compare runs/v1 runs/v2

        instar compare runs/v1 runs/v2 runs/v3 --threshold 0.2 --json

        instar compare runs/v1 runs/v1 --judging default --judging landmarks=hands
    """
    from instar.api import open_run
    from instar.report.compared import run_names
    from instar.report.verdict import show_verdict, verdict

    if by not in ("case", "target"):
        raise typer.BadParameter(f"{by!r}; allowed are: case, target", param_hint="--by")
    judgings = _one_for_each(judging or ["default"], runs)
    opened = [open_run(folder) for folder in runs]
    names = run_names(opened)
    if len(set(judgings)) > 1:
        names = [f"{name} judged by {one}" for name, one in zip(names, judgings, strict=True)]
    verdicts = [
        verdict(
            opened[0],
            other,
            (names[0], names[number]),
            judgings=(judgings[0], judgings[number]),
            threshold=threshold,
            p=p,
            group=group,
            by_target=by == "target",
        )
        for number, other in enumerate(opened[1:], 1)
    ]
    if as_json:
        print_json([one.record() for one in verdicts])
    console = new_console()
    for number, one in enumerate([] if as_json else verdicts):
        if number:
            console.print()
        show_verdict(console, one, most=None if every else 30, shown_flips=flips)
    if not any(one.rules["cases"].sum() for one in verdicts):
        raise typer.Exit(ALL_FAILED)


def _one_for_each(judgings: list[str], runs: Sequence[Path]) -> list[str]:
    if len(runs) < 2:
        raise typer.BadParameter("a comparison takes two runs or more, and one was given", param_hint="RUN")
    if len(judgings) not in (1, len(runs)):
        raise typer.BadParameter(
            f"{len(judgings)} judgings for {len(runs)} runs; give one for all, or one for each", param_hint="--judging"
        )
    return judgings * len(runs) if len(judgings) == 1 else judgings


Versions = Annotated[list[Path], typer.Argument(metavar="RUN...", help="The runs of a model's versions.")]
AsGiven = Annotated[
    bool, typer.Option("--as-given", help="Keep the order in which the runs are named, not that of their making.")
]
HistoryPage = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the history as a page, with its figure.")
]


def history(
    runs: Versions,
    threshold: Threshold = None,
    judging: Judging = "default",
    as_given: AsGiven = False,
    out: HistoryPage = None,
    every: All = False,
    as_json: Json = False,
) -> None:
    """Show a model's versions over time: the rate of each family of rules, and what surely got worse or better.

    Runs stand in the order of their making, and each is compared with the one before, pair by pair. Folders that
    cannot be used are left out, with the reason.

    Examples:

        instar history runs/*

        instar history runs/v1 runs/v2 runs/v3 --as-given --out history.html
    """
    from instar.report.history import history as made_history
    from instar.report.history import show_history

    made = made_history(runs, judging=judging, threshold=threshold, as_given=as_given)
    if as_json:
        print_json(made.record())
    else:
        show_history(new_console(), made, every=every)
    if out is not None:
        from instar.report.history_page import write_history

        print(f"The history is in {write_history(made, out)}", file=sys.stderr)


FAILED = 1
"""The exit code where a check fails."""
SHOWN_PAIRS = 6
"""Worst pairs that a summary shows."""
PolicyFile = Annotated[
    Path,
    typer.Option("--policy", metavar="FILE", help="The policy: a TOML file. --init writes one that the run holds."),
]


Baseline = Annotated[
    Path | None, typer.Option(metavar="RUN", help="The run that the policy's [[no_worse]] compares with.")
]
GateUntil = Annotated[
    tuple[str, str, str] | None,
    typer.Option(
        "--until",
        metavar="SYSTEM SUITE DATASET",
        help="Make the run first, in random order and only until the policy is decided: until every limit is sure to "
        "hold, or one to fail.",
    ),
]
Workers = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="With --until: how many processes predict, as for `instar run`.")
]
Init = Annotated[bool, typer.Option("--init", help="Write a policy that this run holds, and end.")]
Junit = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write the checks as JUnit XML.")]
Sarif = Annotated[Path | None, typer.Option("--sarif", metavar="FILE", help="Write the failed checks as SARIF.")]
Summary = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write a summary in Markdown, with the worst pairs of failed checks; pictures go beside it.",
    ),
]


def gate(
    run: RunArgument,
    policy: PolicyFile = Path("instar.toml"),
    baseline: Baseline = None,
    until: GateUntil = None,
    workers: Workers = None,
    init: Init = False,
    junit_file: Junit = None,
    sarif_file: Sarif = None,
    summary: Summary = None,
    dataset: DatasetFolder = None,
    as_json: Json = False,
) -> None:
    """Hold a run to a policy: may it ship? Ends with 1 where a check fails, and says why.

    Examples:

        instar gate runs/v1 --init --policy instar.toml

        instar gate runs/v2 --policy instar.toml --baseline runs/v1 --junit out.xml --sarif out.sarif --summary pr.md

        instar gate runs/v2 --policy instar.toml --until my_model:predict poses photos/
    """
    from instar.api import open_run
    from instar.files import place_file
    from instar.gate import checked, junit, markdown, read_policy, sarif
    from instar.gate.check import with_open

    if init:
        return _init(open_run(run), policy)
    if not policy.exists():
        raise typer.BadParameter(f"there is no {policy}; --init writes one that the run holds", param_hint="--policy")
    _refuse_same({"--policy": policy, "--junit": junit_file, "--sarif": sarif_file, "--summary": summary})
    limits = read_policy(policy)
    earlier = None if baseline is None else open_run(baseline)
    opened, words = open_run(run) if until is None else None, ""
    if until is not None:
        opened, words = _asked_until(run, policy, until, workers, quiet=as_json)
    assert opened is not None
    checks = checked(opened, limits, earlier)
    if until is not None:
        checks = with_open(checks)
    if junit_file is not None:
        place_file(junit_file, junit(checks, str(run)).encode())
    if sarif_file is not None:
        place_file(sarif_file, sarif(checks, policy.as_posix()).encode())
    if summary is not None:
        pairs = list(_worst_pairs(opened, limits, checks, summary, dataset))
        place_file(summary, markdown(checks, f"{opened.manifest.called} in {run}", pairs).encode())
    failed = [one for one in checks if not one.passed]
    if as_json:
        record = {"run": str(run), "name": opened.manifest.called, "policy": str(policy), "passed": not failed}
        print_json({**record, **({"until": words} if words else {}), "checks": list(map(asdict, checks))})
    else:
        _show_checks(checks, words)
    if failed:
        raise typer.Exit(FAILED)


def _init(opened: Run, policy: Path) -> None:
    from instar.files import place_file
    from instar.gate import new_policy, proposed_limits

    if policy.exists():
        raise typer.BadParameter(f"{policy} is there already, and is kept; give another file", param_hint="--policy")
    place_file(policy, new_policy(opened).encode())
    print(f"{policy}: a policy that {opened.folder} holds; put in the figures that you need")
    for limit in proposed_limits(opened):
        if (warning := limit.warning) is not None:
            print(f"instar: {warning.words}", file=sys.stderr)


def _refuse_same(files: dict[str, Path | None]) -> None:
    """Files that the command writes are replaced, as build servers expect; but none of them is another one."""
    places: dict[Path, str] = {}
    for flag, file in files.items():
        if file is not None and (first := places.setdefault(file.resolve(), flag)) != flag:
            raise typer.BadParameter(f"{file} is that of {first}, too; give another file", param_hint=flag)


def _asked_until(
    run: Path, policy: Path, what: tuple[str, str, str], workers: int | None, *, quiet: bool
) -> tuple[Run, str]:
    """The run, made until the policy is decided, and in words how much was not needed."""
    from instar import api

    with Display(quiet=quiet) as display, warnings.catch_warnings():
        warnings.simplefilter("ignore", api.NothingTold)  # a check of its own says so
        made = api.run(*what, out=run, workers=workers, until=policy, at_first_failure=True, on_progress=display.update)
    outcome = made.outcome
    assert outcome is not None
    if outcome.interrupted:
        raise typer.Exit(130)
    if not made.store.state("predictions"):
        raise ValueError(f"nothing was predicted in {run}; {' '.join(outcome.notes)}")
    return made, outcome.notes[-1]


def _show_checks(checks: Sequence[Check], until: str) -> None:
    """What fails first, each with its reason."""
    from instar.gate.check import count_words
    from instar.report.console import show_sentence

    console = new_console()
    if until:
        show_sentence(console, until)
    failed = [one for one in checks if not one.passed]
    marks = {"fails": ("FAILS", "bold red"), "open": ("open ", "bold yellow"), "holds": ("holds", "green")}
    for one in sorted(checks, key=lambda one: list(marks).index(one.state)):
        mark, style = marks[one.state]
        # a log of a build server has one line for each
        console.print(f"[{style}]{mark}[/]  {escape(one.words)}", highlight=False, soft_wrap=not console.is_terminal)
    console.print(f"[bold {'red' if failed else 'green'}]{count_words(checks)}[/]")


def _worst_pairs(
    run: Run, policy: Policy, checks: Sequence[Check], summary: Path, dataset: Path | None
) -> Iterator[WorstPair]:
    """The worst pairs under the rules of failed checks, each with a picture in a folder beside the summary."""
    from instar.gate import WorstPair
    from instar.report.picture import write_png
    from instar.report.rebuild import CannotDraw, load_pair
    from instar.report.words import severity_words

    rules = {rule for one in checks if one.state == "fails" for rule in one.rules}
    worst = run.worst(100, threshold=policy.threshold, judging=policy.judging).to_dicts()
    known = {row["rule"]: row for row in run.rules(policy.judging).to_dicts()}
    chosen = [row for row in worst if row["rule"] in rules and row["violated"]][:SHOWN_PAIRS]
    folder = summary.with_name(f"{summary.stem}-pictures")
    for number, row in enumerate(chosen, 1):
        picture = ""
        try:
            pair = load_pair(run, row, threshold=policy.threshold, judging=policy.judging, dataset=dataset)
            folder.mkdir(parents=True, exist_ok=True)
            write_png(folder / f"{number}.png", pair.picture())
            picture = f"{folder.name}/{number}.png"
        except CannotDraw:
            pass  # the row says what strays, with or without a picture
        words = severity_words(row["severity"], known[row["rule"]]["unit"], row["kind"])
        yield WorstPair(row["case"], known[row["rule"]]["name"], words, picture)
