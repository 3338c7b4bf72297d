"""The versions of a model over time, in words and in the terminal: rates of families, and what each version changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from instar.analysis import ANY, Run, open_run
from instar.analysis.comparison import LEVEL, differences, sides
from instar.analysis.history import common_families, history_rates, of_one_kind
from instar.engine import DEFAULT
from instar.report.compared import own_notes, run_names
from instar.report.console import headed_table, show_sentence, show_title
from instar.report.limits import limit_words
from instar.report.verdict import ABOUT_ONE, BETTER, FEWER, MORE, WORSE, Verdict, verdict
from instar.report.words import clipped, count_of, interval, listed, of_total, percent
from instar.store import Row, moved_from

SIGNS = {WORSE: "▲", BETTER: "▼", MORE: "△", FEWER: "▽", "": ""}
STEPS = (
    f"{SIGNS[WORSE]} marks what is surely worse than in the run before, {SIGNS[BETTER]} what is surely better: "
    "compared pair by pair on the cases that both have, corrected for the number of families (Holm). "
    f"{SIGNS[MORE]} and {SIGNS[FEWER]} mark what surely more or fewer cases violate, where fewer say little: that run "
    "surely finds less, finds nothing or has one answer to everything."
)
UNUSABLE = (ValueError, KeyError, TypeError, OSError, RuntimeError, pl.exceptions.PolarsError)
"""What a folder that cannot be used raises: the others are shown all the same."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A run against the one before it: the verdict, and the difference of each family that both asked."""

    verdict: Verdict
    families: pl.DataFrame

    @property
    def words(self) -> list[str]:
        """What `instar compare` says of the two; of one alone, notes say it."""
        return [one.words for one in self.verdict.leading if one.code != ABOUT_ONE]


@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """One run of a history. `rates` has a row for each family that it asked; `step` compares it with the latest run
    before that it can be compared with, and `notes` say what must be known of it."""

    number: int
    name: str
    run: Run
    rates: pl.DataFrame
    step: Step | None
    notes: tuple[str, ...]

    def difference(self, family: str) -> Row | None:
        """What the comparison with the run before says of a family; None where it says nothing."""
        rows = [] if self.step is None else self.step.families.filter(pl.col("group") == family).to_dicts()
        return rows[0] if rows and rows[0]["cases"] else None

    def change(self, family: str) -> str:
        """What the family surely is against the run before, as `change_of` says it; empty where nothing is sure."""
        row = self.difference(family)
        if self.step is None or row is None or row["p_corrected"] > LEVEL:
            return ""
        return self.step.verdict.change(row["difference"])

    def rate(self, family: str) -> Row | None:
        """The row of a family; None where the run did not ask it, or nothing of it was judged."""
        rows = self.rates.filter(pl.col("group") == family, pl.col("judged") > 0)
        return rows.row(0, named=True) if rows.height else None


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """Runs in their order, the families that are followed, and why other runs are left out."""

    versions: tuple[Version, ...]
    families: Mapping[str, Sequence[str]]
    limits: str
    notes: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]

    def record(self) -> Row:
        """The same for programs."""
        return {
            "families": {name: list(rules) for name, rules in self.families.items()},
            "runs": [
                {
                    "run": str(one.run.folder),
                    "name": one.name,
                    "system": one.run.manifest.system.name,
                    "created": one.run.manifest.created,
                    "words": [] if one.step is None else one.step.words,
                    "notes": list(one.notes),
                    "families": [
                        {**row, "change": one.change(row["group"]), **_compared(one, row["group"])}
                        for row in one.rates.to_dicts()
                    ],
                }
                for one in self.versions
            ],
            "notes": list(self.notes),
            "left_out": [{"run": run, "why": why} for run, why in self.left_out],
        }


def _compared(one: Version, family: str) -> Row:
    row = one.difference(family) or {}
    return {name: row.get(name) for name in ("difference", "p_corrected")}


def history(
    folders: Sequence[str | Path], *, judging: str = DEFAULT, threshold: float | None = None, as_given: bool = False
) -> History:
    """The runs in these folders in the order of their making, or as given, each compared with the one before.

    A folder that cannot be used is left out, with the reason. Raises ValueError where none is left.
    """
    opened, left_out = _usable(folders, judging)
    runs = opened if as_given else sorted(opened, key=lambda run: run.manifest.created)
    kept = of_one_kind(runs)
    others = [run for run in runs if run not in kept]
    left_out += [(str(run.folder), _other_kind(run, kept[0])) for run in others]
    if not kept:
        reasons = "; ".join(f"{run}: {why}" for run, why in left_out)
        raise ValueError(f"no run can be shown. {reasons}")
    families, names = common_families(kept), run_names(kept)
    limits = kept[-1].thresholds(threshold)
    versions: list[Version] = []
    for number, (run, name) in enumerate(zip(kept, names, strict=True), 1):
        step, notes = _step(versions, run, name, families, judging, threshold)
        rates = history_rates(run, families, limits, judging)
        own = [one.words for one in own_notes(run, judging, run.severities(judging).only(run.changing_rules()))]
        versions.append(Version(number, name, run, rates, step, (*own, *notes)))
    notes = _family_notes(kept, families)
    if any(run.thresholds(threshold)[one] != limits[one] for run in kept for one in run.thresholds() if one in limits):
        notes.append("The runs have different thresholds. Rates are by those of the last run; one threshold holds all.")
    words = limit_words(kept[-1], threshold=threshold, judging=judging)
    return History(tuple(versions), families, words, tuple(notes), tuple(left_out))


def _usable(folders: Sequence[str | Path], judging: str) -> tuple[list[Run], list[tuple[str, str]]]:
    """The runs that can be read, each once, and why others cannot."""
    runs: dict[Path, Run] = {}
    left_out: list[tuple[str, str]] = []
    for folder in folders:
        if Path(folder).is_file():
            left_out.append((str(folder), "it is a file, and no run folder"))
            continue
        try:
            run = open_run(folder)
            if why := _no_version(run):
                left_out.append((str(folder), why))
            elif not run.store.state("predictions"):
                left_out.append((str(folder), "it holds no prediction yet"))
            elif not run.judged(judging)["judged"]:
                left_out.append((str(folder), "no pair of it was judged"))
            else:
                run.answers(judging)  # read here, so that what is damaged is known here
                runs[run.folder.resolve()] = run
        except UNUSABLE as error:
            left_out.append((str(folder), str(error)))
    return list(runs.values()), left_out


def _no_version(run: Run) -> str:
    """Why a run is no version of a model that others can be held against; empty where it may be one."""
    shard, earlier = run.manifest.shard, moved_from(run.folder)
    if shard is not None:
        return f"it is {shard.words}; merge the shards"
    if run.searched:
        return "it searched for limits, and its rates are not those of all cases"
    if run.manifest.search is not None:
        return "it searched for combinations, and its rules are those that the search tried"
    if earlier is not None:
        return f"it was moved aside when {earlier} was made anew; rename the folder to show it"
    return ""


def _other_kind(run: Run, shown: Run) -> str:
    """Why a run that can be read is none of those that are shown."""
    kind, others = run.manifest.system.kind, shown.manifest.system.kind
    if kind != others:
        return f"its system answers with {kind}, and those of the others with {others}"
    return f"it shares no rule with the others: it asked {', '.join(run.manifest.suites)}"


def _step(
    before: Sequence[Version],
    run: Run,
    name: str,
    families: Mapping[str, Sequence[str]],
    judging: str,
    threshold: float | None,
) -> tuple[Step | None, list[str]]:
    """A run against the latest one before it that it can be compared with, and what to know of that."""
    notes: list[str] = []
    for earlier in reversed(before):
        try:
            pair = sides(earlier.run, run, judgings=(judging, judging), threshold=threshold)
        except ValueError as error:
            notes = notes or [f"It cannot be compared with {earlier.name}: {error}."]
            continue
        whole = {group: rules for group, rules in families.items() if set(pair.first.rules).issuperset(rules)}
        alone = {group: rules for group, rules in whole.items() if group != ANY}
        each = pl.concat([differences(pair, alone), differences(pair, {ANY: families[ANY]})])
        names, judgings = (earlier.name, name), (judging, judging)
        against = verdict(earlier.run, run, names, judgings=judgings, threshold=threshold)
        shared = (
            "" if earlier is before[-1] else f"It is compared with {earlier.name}, the latest before it that can be."
        )
        cautions = [one.words for one in against.cautions if one.code != ABOUT_ONE]
        return Step(against, each), [*notes, *filter(None, [shared, _other_system(earlier, run), *cautions])]
    return None, notes


def _other_system(before: Version, run: Run) -> str:
    """That another system was asked."""
    earlier, later = before.run.manifest.system.name, run.manifest.system.name
    return "" if earlier == later else f"The system is {later}; that of {before.name} is {earlier}."


def _family_notes(runs: Sequence[Run], families: Mapping[str, Sequence[str]]) -> list[str]:
    """Which families count fewer rules than a run has, and which have no rule that all runs asked."""
    most: dict[str, int] = {}
    for run in runs:
        for name, rules in run.families().items():
            most[name] = max(most.get(name, 0), len(rules))
    part = [
        f"{len(families[name])} of {most[name]} of {name}"
        for name in most
        if 0 < len(families.get(name, ())) < most[name]
    ]
    notes = [f"Only rules count that all runs with their family asked: {listed(part)}."] if part else []
    everything = len({rule for run in runs for rule in run.changing_rules()})
    if len(families[ANY]) < everything:
        counted = of_total(len(families[ANY]), everything, "rule")
        notes.insert(0, f"{ANY.capitalize()} counts {counted}: those that every run asked.")
    none = [name for name in most if name not in families]
    if none:
        notes.append(f"No rule is shared by all runs that asked {listed(none)}; these families are left out.")
    return notes


# --- in the terminal -------------------------------------------------------------------------------


def show_history(console: Console, one: History, *, every: bool = False) -> None:
    """The runs, what each changed, and the rates of families; of many runs the last, unless all are asked for."""
    show_title(console, "runs", f"in their order; {one.limits}")
    table = headed_table(("", "run", "made", "cases", "judged", "any rule", "95 % int."), words=["run"])
    for version in one.versions:
        row = version.rate(ANY)
        table.add_row(
            str(version.number),
            Text(clipped(version.name)),
            version.run.manifest.created[:10],
            str(version.run.cases().height),
            *(
                ("0", "–", "–")
                if row is None
                else (str(row["judged"]), _cell(version, ANY, ends=False), interval(row["low"], row["high"]))
            ),
        )
    console.print(table)
    if len(one.versions) == 1:
        show_sentence(console, "One run alone: there is nothing to compare it with.")
    for version in one.versions:
        for sentence in () if version.step is None else version.step.words:
            show_sentence(console, f"{version.number}: {sentence}")
        for note in version.notes:
            show_sentence(console, f"{version.number}: {note}", "bold yellow")
    for note in one.notes:
        show_sentence(console, note, "bold yellow")
    _show_families(console, one, every)
    for run, why in one.left_out:
        show_sentence(console, f"{run} is left out: {why}", "bold yellow")


def _show_families(console: Console, one: History, every: bool) -> None:
    """The rates by family, with as many runs beside each other as the console has room for."""
    names = [name for name in one.families if name != ANY]
    least = max(cell_len(name) for name in [*names, "family"])
    room = max(1, (console.width - min(least, 24)) // (_CELL + 1))
    blocks = [one.versions[max(0, end - room) : end] for end in range(len(one.versions), 0, -room)][::-1]
    shown = blocks if every else blocks[-1:]
    show_title(console, "families", "a case counts where it violates any rule of the family")
    for versions in shown:
        table = headed_table(("family", *(f"{version.number}" for version in versions)), words=["family"])
        for name in names:
            cells = [_cell(version, name) for version in versions]
            table.add_row(Text(name), *cells)
        console.print(table)
    hidden = len(one.versions) - sum(map(len, shown))
    if hidden:
        show_sentence(console, f"… and {count_of(hidden, 'earlier run')} (--all shows all)", "dim")
    if len(one.versions) > 1:
        show_sentence(console, STEPS, "dim")


_CELL = 17
"""Letters of a rate with its interval and sign, and the space before it."""


def _cell(version: Version, family: str, *, ends: bool = True) -> str:
    """A rate, with the ends of its interval if asked for, and the sign of what surely changed."""
    row = version.rate(family)
    if row is None:
        return "–"
    between, sign = f" ({interval(row['low'], row['high'])})" if ends else "", SIGNS[version.change(family)]
    return f"{percent(row['rate'])}{between}{sign and ' '}{sign}"
