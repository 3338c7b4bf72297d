"""What a run found, in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import polars as pl
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from instar.analysis import ANY, Run
from instar.analysis.boundary import searched_grids
from instar.analysis.rates import Judged
from instar.analysis.slices import LEAST
from instar.engine import DEFAULT, Outcome
from instar.engine.progress import FAILURES
from instar.relations import MarkedPair
from instar.report.boundary_words import median_table
from instar.report.combinations import show_combinations
from instar.report.console import headed_table, show_sentence, show_title
from instar.report.findings import findings
from instar.report.limits import LONG, limit_words
from instar.report.marks import marked_pairs
from instar.report.precision import show_precision
from instar.report.slice_words import effect_text, slice_text
from instar.report.tables import show_tables
from instar.report.targets import target_names
from instar.report.words import (
    SPACE,
    STRAY_MOST,
    beside_limit,
    count_of,
    duration,
    interval,
    of_total,
    p_text,
    percent,
    scores_text,
    severity_text,
    statuses_text,
)

_WIDE = 120
"""From this width on, rules have a column that says them in words."""
_HEADS = {"nothing_found": "nothing found", "not_applicable": "n/a", "failed": "failed"}


SHOWN_REASONS = 3
"""Reasons of failures that the end of a run tells."""
SHOWN_GAPS = 6
"""Reasons why pairs were not judged that `show_run` tells."""


def show_outcome(
    console: Console, outcome: Outcome, folder: str, judged: Judged | None = None, *, merged: int = 0
) -> None:
    """How a run went: first what failed and why, then what was not judged and why, then what there is.

    `merged` is of how many runs it was made, where nothing was predicted for it.
    """
    if outcome.interrupted:
        console.print(
            f"[bold yellow]Stopped.[/] {count_of(outcome.fresh, 'new prediction')} "
            f"{'is' if outcome.fresh < 2 else 'are'} stored; the same command again goes on from there."
        )
    _failures(console, outcome)
    if judged is not None and judged["judged"] < judged["pairs"]:
        _not_judged(console, judged)
    if merged:
        console.print(
            f"{count_of(outcome.fresh, 'new prediction')} {'was' if outcome.fresh == 1 else 'were'} added; "
            f"{count_of(merged, 'run')} {'was' if merged == 1 else 'were'} given."
        )
    elif outcome.fresh:
        console.print(
            f"{count_of(outcome.fresh, 'new prediction')} in {duration(outcome.seconds)} "
            f"({outcome.fresh / max(outcome.seconds, 1e-9):.1f} a second)."
        )
    elif not outcome.statuses and not outcome.interrupted:
        console.print(
            "[bold yellow]Nothing was predicted[/]: "
            + ("no case of this dataset can be read." if outcome.cases else "there is no case.")
        )
    elif not outcome.interrupted and outcome.statuses.get("ok") and not outcome.again:
        console.print("Nothing is left to do: everything this asks for is in the run folder already.")
    if outcome.again:
        was = "was" if outcome.again == 1 else "were"
        console.print(f"{count_of(outcome.again, 'input')} of violating pairs {was} predicted a second time.")
    statuses = {"ok": 0, **dict(sorted(outcome.statuses.items(), key=lambda each: (each[0] != "ok", each[0])))}
    unreadable = f", {outcome.unreadable:,} of them unreadable" if outcome.unreadable else ""
    console.print(
        f"{folder}: {count_of(outcome.cases, 'case')}{unreadable}; predictions: {statuses_text(statuses)}.",
        highlight=False,
    )
    for note in outcome.notes[:10]:
        console.print(f"  note: {note}", style="dim", markup=False)
    if len(outcome.notes) > 10:
        console.print(f"  … and {count_of(len(outcome.notes) - 10, 'more note')}", style="dim")
    if any(outcome.statuses.get(status) for status in FAILURES) or outcome.unreadable:
        console.print(
            "  --retry failed tries again what failed or could not be read."
            if outcome.statuses.get("ok")
            else "  --retry failed tries again with the same system. When you have changed it, --fresh starts over and "
            "moves this run aside.",
            style="dim",
        )


def _failures(console: Console, outcome: Outcome) -> None:
    """How many cases cannot be read, and how many predictions failed, each with its commonest reasons: the first is a
    matter of the dataset, the second of the system."""
    if outcome.unreadable:
        words = f"{of_total(outcome.unreadable, outcome.cases, 'case')} cannot be read"
        _with_reasons(console, words, outcome.unreadable_reasons)
    failed = sum(outcome.statuses.get(status, 0) for status in FAILURES)
    if failed:  # of those that were to be made: where a rule does not apply there was none to fail
        attempts = failed + outcome.statuses.get("ok", 0)
        share = percent(failed / attempts)
        _with_reasons(console, f"{of_total(failed, attempts, 'prediction')} failed ({share})", outcome.reasons)
    elif outcome.reasons:
        _with_reasons(console, "No input was answered", outcome.reasons)


def _with_reasons(console: Console, words: str, reasons: Mapping[str, int]) -> None:
    console.print(f"{words}{':' if reasons else '.'}", style="bold yellow", highlight=False)
    for reason, count in list(reasons.items())[:SHOWN_REASONS]:
        console.print(f"  {count_of(count, 'time')}: {reason}", style="yellow", markup=False, highlight=False)
    if len(reasons) > SHOWN_REASONS:
        others = count_of(len(reasons) - SHOWN_REASONS, "other reason")
        console.print(f"  … and for {others}", style="yellow")


def _not_judged(console: Console, judged: Judged) -> None:
    rest = judged["pairs"] - judged["judged"]
    whys = {
        "because nothing was found in either input": judged["nothing_found"],
        "because the rule does not apply": judged["not_applicable"],
        "because a prediction failed": judged["failed"],
    }
    reasons = [f"{count:,} {words}" for words, count in whys.items() if count]
    console.print(
        f"{of_total(rest, judged['pairs'], 'pair')} {'was' if rest == 1 else 'were'} not judged "
        f"({percent(rest / judged['pairs'])}): {', '.join(reasons)}.",
        style="bold yellow" if 2 * rest > judged["pairs"] else "yellow",
        highlight=False,
    )


def show_run(
    console: Console,
    run: Run,
    *,
    threshold: float | None = None,
    p: float | None = None,
    judging: str = DEFAULT,
    by: Literal["case", "target"] = "case",
    group: str | None = None,
    worst: int = 10,
    limit: int | None = None,
    failures: bool = True,
) -> None:
    """What was found, in sentences; violation rates per rule, most violated first, and per family; what was not judged
    and why; the worst cases. Without `failures` after who has told them."""
    manifest, known = run.manifest, run.rules()
    named = {rule: (name, words) for rule, name, words in known.select("rule", "name", "words").iter_rows()}
    names = {rule: name for rule, (name, _) in named.items()}
    rates = run.rates(threshold, p=p, judging=judging, by=by, group=group)
    rates = rates.join(known.filter(over="level"), on="rule", how="anti")
    limits = limit_words(run, threshold=threshold, p=p, judging=judging)
    called = f"[bold]{escape(manifest.name)}[/] · " if manifest.name else ""
    console.print(
        f"{called}[bold]{escape(manifest.system.name)}[/] · {', '.join(manifest.suites)} · judging {judging}",
        highlight=False,
    )
    sentences = findings(run, threshold=threshold, p=p, judging=judging, group=group, failures=failures)
    if len(limits) > LONG and any(limits in one.words for one in sentences):
        limits = "violated from the severities up that are said above"
    for finding in sentences:
        style = "bold yellow" if finding.against else None
        show_sentence(console, finding.words, style)
    counted = (
        limits
        if by == "case"
        else f"{limits}; every target of a case counts for itself, in intervals as part of its case"
    )
    if run.searched and searched_grids(run):
        console.print()
        show_tables(console, [median_table(run.boundary(threshold, judging=judging))])
    else:
        _rates(console, rates.join(run.over_cases(judging), on="rule", how="anti"), named, limit, counted)
        suites = list(run.suites())
        for suite in suites if len(suites) > 1 else [None]:
            _families(console, run.family_rates(threshold, p=p, judging=judging, group=group, suite=suite), suite)
    _unjudged(console, run.unjudged(judging))
    show_precision(console, run, threshold=threshold, judging=judging)
    show_combinations(console, run)
    pairs = run.worst(worst, threshold=threshold, p=p, judging=judging, group=group)
    own = pl.col("rule").replace_strict(run.thresholds(threshold), return_dtype=pl.Float64)
    _worst(console, run, pairs.with_columns(threshold=own), names, limits, judging)


def _rates(
    console: Console, rates: pl.DataFrame, named: Mapping[str, tuple[str, str]], limit: int | None, limits: str
) -> None:
    """The rates of rules, most violated first; `named` has each rule's name and what it is in words."""
    ranked = rates.sort(["rate", "median"], descending=True, nulls_last=True)
    extra = [name for name in _HEADS if ranked[name].sum()]
    words = ["rule", "in words"] if console.width >= _WIDE else ["rule"]
    heads = (*words, "violated", "rate", "95 % int.", "median", "worst", *(_HEADS[name] for name in extra))
    table = headed_table(heads, words=words)
    for row in ranked.head(limit or ranked.height).iter_rows(named=True):
        table.add_row(
            *map(Text, named[row["rule"]][: len(words)]),
            f"{row['violated']}/{row['judged']}",
            percent(row["rate"]),
            interval(row["low"], row["high"]) if row["judged"] else "",
            severity_text(row["median"], row["threshold"]),
            severity_text(row["worst"], row["threshold"]),
            *(str(row[name] or "") for name in extra),
        )
    show_title(console, "rules", limits)
    console.print(table)
    if limit and ranked.height > limit:
        more = ranked.height - limit
        which = f"rule{'s' * (more > 1)}"
        if ranked["judged"][limit:].sum():
            which += f" that {'is' if more == 1 else 'are'} violated less"
        else:
            which = f"more {which}"
        console.print(f"… and {more:,} {which} (--all shows all)", style="dim")


def _families(console: Console, families: pl.DataFrame, suite: str | None) -> None:
    """The share of cases that violate a family, most violated first; of a suite where there are several."""
    if families.height < 3 and suite is None:
        return
    rows = families.filter((pl.col("group") != ANY) & (pl.col("judged") > 0))
    violated = rows.filter(pl.col("violated") > 0).sort("rate", descending=True)
    shares = [
        f"{row['group'].replace(' ', SPACE)}{SPACE}{percent(row['rate'])}" for row in violated.iter_rows(named=True)
    ]
    kept = [name.replace(" ", SPACE) for name in rows.filter(pl.col("violated") == 0)["group"]]
    parts = [", ".join(shares), f"0{SPACE}%: {', '.join(kept)}" if kept else ""]
    where = f"{suite}, by family" if suite else "by family"
    console.print(f"{where}: {'; '.join(filter(None, parts)) or 'nothing was judged'}", style="dim", highlight=False)


def _worst(
    console: Console, run: Run, worst: pl.DataFrame, names: Mapping[str, str], limits: str, judging: str
) -> None:
    """The worst verdicts, and the words of the first of them where a system answers with words."""
    targets = target_names(run, worst, judging=judging)
    rows = [{**row, "target": name} for row, name in zip(worst.to_dicts(), targets, strict=True)]
    parts = {
        f"worst pairs, {limits}": [row for row in rows if row["violated"]],
        STRAY_MOST: [row for row in rows if not row["violated"]],
    }
    for title, part in parts.items():
        if not part:
            continue
        name, _, what = title.partition(", ")
        show_title(console, name, what)
        heads = ["severity", "rule", "case"]
        heads += [name for name in ("target", "kind", "scores") if any(_shown(row)[name] for row in part)]
        table = headed_table(heads, words=("rule", "case", "target", "kind", "scores"))
        for row in part:
            cells = {"rule": Text(names.get(row["rule"], row["rule"])), **_shown(row)}
            table.add_row(*(cells[head] for head in heads))
        console.print(table)
    for pair in filter(None, marked_pairs(run.store, worst.head(5).to_dicts(), judging)):
        console.print()
        _show_marked(console, pair)


def _shown(verdict: Mapping[str, Any]) -> dict[str, Text | str]:
    """The cells of a verdict, by their heads."""
    return {
        "severity": severity_text(verdict["severity"], verdict["threshold"]),
        "case": Text(verdict["case"]),
        "target": Text(verdict["target"]),
        "kind": verdict["kind"] or "",
        "scores": scores_text(verdict).removeprefix("scores "),
    }


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


def show_selection(console: Console, run: Run, table: pl.DataFrame, *, proven: bool, share: float, limits: str) -> None:
    """A selected set of rules: what each adds, and what it costs; `limits` says when a rule is violated."""
    if table.is_empty():
        console.print(
            f"No case violates any rule, so there is nothing to find ({limits}).", markup=False, highlight=False
        )
        return
    names = dict(run.rules().select("rule", "name").iter_rows())
    shown = headed_table(("rule", "new cases", "found so far", "share", "ms per case"), words=["rule"])
    for row in table.iter_rows(named=True):
        shown.add_row(
            Text(names[row["rule"]]),
            str(row["found"]),
            str(row["total"]),
            beside_limit(row["share"], share)[0],
            f"{1000 * row['cost']:.1f}",
        )
    show_title(console, "rules that are enough", limits)
    console.print(shown)
    what = "the cheapest set" if proven else "the cheapest set found in time, perhaps not the cheapest there is,"
    console.print(
        f"[bold]{of_total(len(table), len(run.changing_rules()), 'rule')}[/] {'is' if len(table) == 1 else 'are'} "
        f"{what} "
        f"that finds {percent(share)} of the failing cases.",
        highlight=False,
    )


def show_slices(console: Console, table: pl.DataFrame, *, limits: str) -> None:
    """How failing cases differ from the others; `limits` says when a rule is violated."""
    if table.is_empty():
        console.print(
            f"Nothing can be compared. A number takes at least {LEAST} cases that fail and {LEAST} that do not, a text "
            f"at least {LEAST} cases that have it and {LEAST} that have another ({limits}).",
            markup=False,
            highlight=False,
        )
        return
    heads = ("property", "slice", "failing", "rate", "95 % int.", "else", "effect", "p corr.")
    shown = headed_table(heads, words=("property", "slice"))
    for row in table.iter_rows(named=True):
        shown.add_row(
            Text(row["property"]),
            Text(slice_text(row)),
            f"{row['failing']}/{row['cases']}",
            percent(row["rate"]),
            interval(row["low"], row["high"]),
            percent(row["elsewhere"]),
            effect_text(row),
            p_text(row["p_corrected"]),
            style="bold" if row["p_corrected"] <= 0.05 else "dim",
        )
    show_title(console, "failing cases and the others", f"rules are {limits}")
    console.print(shown)
    console.print(
        f"p is corrected for the number of questions ({len(table)}); rows in bold stay below 0.05. A number is asked "
        f"about where at least {LEAST} cases fail and {LEAST} do not, a text where at least {LEAST} cases have it and "
        f"{LEAST} have another. "
        "For numbers, effect is the probability that a failing case has the higher value (0.5: no "
        "difference); for slices, it is the difference of the two rates.",
        style="dim",
        highlight=False,
    )


def _unjudged(console: Console, unjudged: pl.DataFrame) -> None:
    """Why pairs that did not fail have no severity, most frequent first."""
    rows = unjudged.filter(~pl.col("status").is_in(FAILURES))
    for row in rows.head(SHOWN_GAPS).iter_rows(named=True):
        console.print(
            f"{row['status']}: {count_of(row['pairs'], 'pair')} of {count_of(row['rules'], 'rule')}: {row['reason']}",
            style="yellow",
            markup=False,
            highlight=False,
        )
    rest = rows[SHOWN_GAPS:]
    if rest.height:
        more = count_of(int(rest["pairs"].sum()), "more pair")
        reasons = count_of(rest.height, "other reason")
        console.print(f"… and {more} for {reasons}: the report lists all.", style="yellow", highlight=False)
