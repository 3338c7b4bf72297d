"""What a run found, in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from rich.console import Console
from rich.table import Table
from rich.text import Text

from instar.analysis import ANY
from instar.engine import Outcome
from instar.relations import MarkedPair
from instar.report.rebuild import severity_text
from instar.report.words import over_cases_text
from instar.store import Manifest

__all__ = ["show_outcome", "show_run"]

_HEADS = {"not_applicable": "n/a", "failed": "failed"}
FAILURES = ("error", "timeout", "crashed")


def show_outcome(console: Console, outcome: Outcome, folder: str) -> None:
    """How the predicting went, by status."""
    if outcome.interrupted:
        console.print(
            f"[bold yellow]Stopped.[/] {outcome.fresh:,} new predictions are stored; "
            "the same command again goes on from there."
        )
    elif outcome.fresh == 0:
        console.print("Nothing is left to do: everything this asks for is in the run folder already.")
    else:
        console.print(
            f"{outcome.fresh:,} new predictions in {_time(outcome.seconds)} "
            f"({outcome.fresh / max(outcome.seconds, 1e-9):.1f} a second)."
        )
    parts = [f"{outcome.statuses.get('ok', 0):,} ok"]
    parts += [f"{count:,} {status}" for status, count in sorted(outcome.statuses.items()) if status != "ok"]
    unreadable = f", {outcome.unreadable:,} of them unreadable" if outcome.unreadable else ""
    console.print(f"{folder}: {outcome.cases:,} cases{unreadable}; predictions: {', '.join(parts)}.", highlight=False)
    for note in outcome.notes[:10]:
        console.print(f"  note: {note}", style="dim", markup=False)
    if len(outcome.notes) > 10:
        console.print(f"  … and {len(outcome.notes) - 10} more notes", style="dim")
    if any(outcome.statuses.get(status) for status in FAILURES) or outcome.unreadable:
        console.print("  --retry failed tries the failed ones again.", style="dim")


def show_run(
    console: Console,
    *,
    manifest: Manifest,
    rates: pl.DataFrame,
    whole: Mapping[str, Any],
    worst: pl.DataFrame,
    over_cases: pl.DataFrame,
    unjudged: pl.DataFrame,
    families: pl.DataFrame,
    noise: pl.DataFrame,
    judging: str,
    units: Mapping[str, str],
    limit: int | None = None,
    marked: Sequence[MarkedPair | None] = (),
) -> None:
    """Violation rates per rule, most violated first, and per family; what was not judged and why; the worst cases.

    `marked` are the worst answers with their words marked, where a relation marks words.
    """
    console.print(
        f"[bold]{manifest.system.name}[/] · {', '.join(manifest.suites)} · judging {judging}", highlight=False
    )
    ranked = rates.join(over_cases, on="rule", how="anti").sort(["rate", "median"], descending=True, nulls_last=True)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("rule", overflow="fold", min_width=30)
    extra = [name for name in ("not_applicable", "failed") if ranked[name].sum()]
    for name in ("violated", "rate", "95 % int.", "median", "worst", *(_HEADS[name] for name in extra)):
        table.add_column(name, justify="right", no_wrap=True)
    for row in ranked.head(limit or ranked.height).iter_rows(named=True):
        table.add_row(*_rate_row(row), *(str(row[name] or "") for name in extra))
    console.print(table)
    if limit and ranked.height > limit:
        console.print(f"… and {ranked.height - limit} rules violated less (--all shows them)", style="dim")
    if whole["judged"]:
        console.print(
            f"[bold]{whole['violated']} of {whole['judged']} cases[/] violate at least one rule "
            f"({whole['rate']:.0%}, 95 % interval {whole['low']:.0%}–{whole['high']:.0%}). "
            f"Severity is in {_units(units)}; ∞ is an answer on one side only.",
            highlight=False,
        )
    if families.height > 2:
        found = families.sort("rate", descending=True, nulls_last=True)
        console.print(
            "by family: "
            + ", ".join(
                f"{row['group']} {row['rate']:.0%}"
                for row in found.iter_rows(named=True)
                if row["group"] != ANY and row["rate"] is not None
            ),
            style="dim",
            highlight=False,
        )
    _noise(console, noise, rates)
    for row in over_cases.filter(pl.col("severity").is_not_null()).iter_rows(named=True):
        console.print(
            f"over all cases: {row['rule']}  severity {severity_text(row['severity'])}  {over_cases_text(row)}",
            highlight=False,
            soft_wrap=True,
        )
    _unjudged(console, unjudged)
    if not worst.is_empty():
        console.print("\n[bold]worst[/]")
        listed = Table(box=None, pad_edge=False, show_header=False)
        for row in worst.iter_rows(named=True):
            listed.add_row(
                severity_text(row["severity"]),
                Text(row["case"]),
                Text(_short(row["rule"])),
                row["kind"] or "",
                f"target {row['target']}",
            )
        console.print(listed)
        for pair in filter(None, marked):
            console.print()
            _show_marked(console, pair)


_STYLES = {
    "": "not dim",
    "kept": "not dim",
    "added": "bold blue",
    "missing": "strike",
    "extra": "bold reverse",
    "number": "underline",
    "wider": "italic",
}


def _show_marked(console: Console, pair: MarkedPair) -> None:
    """Both answers of a pair with their words marked, and what is wrong."""
    for name, parts in (("source   ", pair.source), ("follow-up", pair.follow_up)):
        line = Text(f"{name}  ", style="dim")
        for part in parts:
            line.append(part.text, style=_STYLES.get(part.role, "bold"))
        console.print(line, soft_wrap=True)
    console.print(Text(f"           {'; '.join(pair.sentences) or 'nothing is wrong'}", style="dim"), soft_wrap=True)


def show_selection(console: Console, table: pl.DataFrame, *, proven: bool, rules: int, share: float) -> None:
    """A selected set of rules: what each adds, and what it costs."""
    if table.is_empty():
        console.print("no case violates any rule: there is nothing to find", highlight=False)
        return
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("rule", "new cases", "found so far", "share", "ms per case"):
        shown.add_column(name, justify="left" if name == "rule" else "right", no_wrap=name != "rule")
    for row in table.iter_rows(named=True):
        shown.add_row(
            Text(_short(row["rule"])),
            str(row["found"]),
            str(row["total"]),
            f"{row['share']:.0%}",
            f"{1000 * row['cost']:.1f}",
        )
    console.print(shown)
    what = "the cheapest set" if proven else "the cheapest set found in time, perhaps not the cheapest there is,"
    console.print(
        f"[bold]{len(table)} of {rules} rules[/] are {what} that finds {share:.0%} of the failing cases.",
        highlight=False,
    )


def show_slices(console: Console, table: pl.DataFrame) -> None:
    """How failing cases differ from the others."""
    if table.is_empty():
        console.print("nothing to ask: too few cases fail, too few do not, or nothing is known of them")
        return
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("property", "slice", "failing", "rate", "95 % int.", "else", "effect", "p corr."):
        shown.add_column(name, justify="left" if name in ("property", "slice") else "right", no_wrap=True)
    for row in table.iter_rows(named=True):
        effect = f"{row['effect']:.2f}" if row["value"].startswith("above ") else f"{row['effect']:+.2f}"
        shown.add_row(
            Text(row["property"]),
            Text(row["value"]),
            f"{row['failing']}/{row['cases']}",
            f"{row['rate']:.0%}",
            f"{100 * row['low']:.0f}–{row['high']:.0%}",
            f"{row['elsewhere']:.0%}",
            effect,
            f"{row['p_corrected']:.2g}",
            style="bold" if row["p_corrected"] <= 0.05 else "dim",
        )
    console.print(shown)
    console.print(
        f"{len(table)} questions were asked; p is corrected for that, and bold stays below 0.05. "
        "For numbers, effect is the probability that a failing case has the higher value (0.5: no "
        "difference); for slices, the difference of the two rates.",
        style="dim",
        highlight=False,
    )


def _units(units: Mapping[str, str]) -> str:
    if len(units) == 1:
        return next(iter(units.values()))
    return "; ".join(f"{unit} ({name})" for name, unit in units.items())


def _rate_row(row: Mapping[str, Any]) -> list[str | Text]:
    interval = f"{100 * row['low']:.0f}–{row['high']:.0%}" if row["judged"] else ""
    rate = f"{row['rate']:.0%}" if row["rate"] is not None else "–"
    return [
        Text(_short(row["rule"])),
        f"{row['violated']}/{row['judged']}",
        rate,
        interval,
        severity_text(row["median"]),
        severity_text(row["worst"]),
    ]


def _short(rule: str) -> str:
    """A rule without its relation where that is only the output kind's own."""
    left, _, relation = rule.partition(" => ")
    return left if relation in ("poses", "detections") else rule


def _noise(console: Console, noise: pl.DataFrame, rates: pl.DataFrame) -> None:
    """What identity says of the system's own noise; thresholds that do not stand above it are named."""
    for row in noise.iter_rows(named=True):
        if not row["noisy"]:
            continue
        mine = pl.col("rule").str.contains(rf" => {row['relation']}\b")
        low = rates.filter(mine & (pl.col("threshold") <= row["floor"]))
        console.print(
            f"not deterministic: unchanged inputs stray in {row['noisy']} of {row['judged']} cases "
            f"({row['relation']}); 95 % of them stay within {severity_text(row['floor'])}"
            + (": the threshold is not above the system's own noise" if len(low) else ""),
            style="yellow",
            highlight=False,
        )


def _unjudged(console: Console, unjudged: pl.DataFrame) -> None:
    """Why pairs have no severity, most frequent first."""
    for row in unjudged.head(6).iter_rows(named=True):
        console.print(
            f"{row['status']}: {row['pairs']} pairs of {row['rules']} rules: {row['reason']}",
            style="yellow",
            markup=False,
            highlight=False,
        )


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
