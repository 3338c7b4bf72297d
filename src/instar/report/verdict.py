"""Two runs compared, in words and in the terminal: what got worse, what got better, and how sure that is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass

import polars as pl
from rich.console import Console
from rich.text import Text

from instar.analysis import Run
from instar.analysis.comparison import (
    LEVEL,
    Sides,
    differences,
    family_differences,
    flips,
    search_words,
    sides,
    target_differences,
)
from instar.engine import DEFAULT
from instar.report.cells import cell_html
from instar.report.compared import (
    FEW,
    against_first,
    found_findings,
    own_notes,
    run_names,
    severities_findings,
    unshared_findings,
)
from instar.report.console import headed_table, show_sentence, show_title
from instar.report.finding import Finding
from instar.report.limits import limit_words
from instar.report.words import (
    INTERVAL_AND_P,
    SPACE,
    count_of,
    of_total,
    p_text,
    p_words,
    percent,
    points,
    points_between,
    severity_text,
)
from instar.store import Row


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What a comparison of a run with the first one says.

    `leading` are the findings to read first, `cautions` what to know of the pairs and of each run; `rules` and
    `families` have a row each, the surest difference first, and `targets` those of `target_differences` where they
    were asked for. `no_merit` are the runs of which fewer violations make none better: they find nothing or less, or
    have one answer to everything.
    """

    first: str
    second: str
    leading: tuple[Finding, ...]
    cautions: tuple[Finding, ...]
    cases: int
    limits: str
    rules: pl.DataFrame
    families: pl.DataFrame
    flips: pl.DataFrame
    targets: pl.DataFrame | None = None
    no_merit: Collection[str] = ()

    def change(self, difference: float) -> str:
        """What a sure difference of the second run from the first makes of it."""
        return change_of(difference, (self.first, self.second), self.no_merit)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, those to read first first."""
        return (*self.leading, *self.cautions)

    @property
    def words(self) -> tuple[str, ...]:
        """The sentences of the leading findings."""
        return tuple(one.words for one in self.leading)

    @property
    def of_both(self) -> list[Finding]:
        """The findings about both runs; pages show those about one run with its rates."""
        return [one for one in self.findings if one.code != ABOUT_ONE]

    def record(self) -> Row:
        """The same for programs."""
        return {
            "first": self.first,
            "second": self.second,
            "words": list(self.words),
            "warnings": [one.words for one in self.cautions],
            "findings": [asdict(one) for one in self.findings],
            "cases": self.cases,
            "rules": self.rules.to_dicts(),
            "families": self.families.to_dicts(),
            "flips": self.flips.to_dicts(),
            **({} if self.targets is None else {"targets": self.targets.to_dicts()}),
        }

    def __repr__(self) -> str:
        words = " ".join(self.words).replace(SPACE, " ")
        return f"<{self.second} compared with {self.first} on {count_of(self.cases, 'case')}: {words}>"

    def _repr_html_(self) -> str:
        rows = _rule_rows(self.rules.to_dicts(), "name")
        return cell_html(
            "compared",
            words=self.words,
            warnings=[one.words for one in self.cautions if one.code != ABOUT_ONE],
            limits=self.limits,
            rows=rows,
        )


def verdict(
    first: Run,
    second: Run,
    names: tuple[str, str],
    *,
    judgings: tuple[str, str] = (DEFAULT, DEFAULT),
    threshold: float | None = None,
    p: float | None = None,
    group: str | None = None,
    by_target: bool = False,
) -> Verdict:
    """The second run against the first, on the cases they share."""
    pair = sides(first, second, judgings=judgings, threshold=threshold, p=p, group=group)
    spelled = dict(first.rules().select("rule", "name").iter_rows())
    order = [pl.col("p"), pl.col("difference").abs()]
    rules = differences(pair).sort(order, descending=[False, True], nulls_last=True, maintain_order=True)
    rules = rules.with_columns(name=pl.col("group").replace(spelled)).rename({"group": "rule"})
    families = family_differences(pair)
    runs = list(zip(names, (first, second), judgings, (pair.first, pair.second), strict=True))
    sentences = {name: own_notes(run, judging, side) for name, run, judging, side in runs}
    notes = {name: about_run(name, own) for name, own in sentences.items() if own}
    answers = {name: run.answers(judging) for name, run, judging, _ in runs}
    idle = [notes.pop(name) for name, own in answers.items() if own.silent or own.alike]
    less = found_findings(first, second, names, judgings)
    no_merit = names if idle else tuple(one.figures["fewer_in"] for one in less)
    changed = flips(pair)
    changed = changed.with_columns(threshold=changed["rule"].replace_strict(pair.thresholds, return_dtype=pl.Float64))
    targets = target_differences(first, second, pair, judgings=judgings, group=group) if by_target else None
    return Verdict(
        *names,
        (
            *idle,
            rules_finding(rules, names, no_merit),
            *([] if idle else severities_findings(rules, names, spelled)),
            any_rule_finding(families.row(-1, named=True), names),
            *less,
        ),
        (*_warnings(pair, rules, names), *unshared_findings(first, second, names), *notes.values()),
        pair.cases,
        limit_words(first, threshold=threshold, p=p, judging=judgings[0]),
        rules,
        families,
        changed,
        targets,
        no_merit,
    )


ABOUT_ONE = "compare.about_one"
"""The code of a finding that gathers the notes on one of the runs."""


def about_run(name: str, notes: Sequence[Finding]) -> Finding:
    """Return the notes on one of several runs as one finding."""
    words = f"{name}: {' '.join(one.words for one in notes)}"
    return Finding(ABOUT_ONE, words, figures={"run": name, "codes": [one.code for one in notes]})


def leading_findings(runs: Sequence[Run], *, threshold: float | None = None, judging: str = DEFAULT) -> list[Finding]:
    """What a page says first of runs beside each other: the verdict on two; of more, how each stands against the first.
    Nothing of searches. What is to know of a single run is said with its rates."""
    if len(runs) != 2 or any(search_words(run.manifest) for run in runs):
        return against_first(runs, judging) if len(runs) > 1 else []
    first, second = runs
    names = run_names(runs)
    try:
        one = verdict(first, second, (names[0], names[1]), judgings=(judging, judging), threshold=threshold)
    except ValueError:  # the page says that they have nothing in common
        return []
    return one.of_both


WORSE, BETTER, MORE, FEWER = "worse", "better", "more", "fewer"
"""What a run is that surely differs from another one: the latter two where the other, or it, has no merit."""


def change_of(difference: float, names: tuple[str, str], no_merit: Collection[str]) -> str:
    """What a sure difference of the second run from the first makes of it: worse or better, or where the one with
    fewer violations has no merit for that, one with more or with fewer."""
    if difference > 0:
        return MORE if names[0] in no_merit else WORSE
    return FEWER if names[1] in no_merit else BETTER


def rules_finding(rules: pl.DataFrame, names: tuple[str, str], no_merit: Collection[str] = ()) -> Finding:
    """Return under which rules the second run is surely worse or better than the first, or the largest difference.

    `no_merit` are those of `Verdict`.
    """
    first, second = names
    judged = rules.filter(pl.col("cases") > 0)
    sure = judged.filter(pl.col("p_corrected") <= LEVEL)
    worse, better = sure.filter(pl.col("difference") > 0), sure.filter(pl.col("difference") < 0)
    correction = f"corrected for {count_of(judged.height, 'rule')}"
    figures: Row = {
        "rules": judged.height,
        "more_violated": worse["rule"].to_list(),
        "less_violated": better["rule"].to_list(),
        "no_merit": list(no_merit),
    }
    if judged.is_empty():
        words = f"Nothing can be said of {second} against {first}: no pair was judged in both."
        return Finding("compare.nothing_judged", words, figures=figures)
    if sure.is_empty():
        words = f"No rule shows a sure difference between {second} and {first} ({correction})."
        top = judged.row(0, named=True)
        if not top["first_only"] and not top["second_only"]:
            words += " No pair is violated in one of them alone."
        else:
            words += f" The least unsure is {_difference_words(top)}."
        return Finding("compare.no_difference", words, figures=figures)
    parts, verb = [], ""
    for part in (worse, better):
        if part.height:
            change = change_of(part["difference"][0], names, no_merit)
            counted = change in (MORE, FEWER)
            before, verb = verb, "surely violates " if counted else "is surely "
            parts.append(
                f"{'' if before == verb else verb}{change}{' cases' if counted else ''} under "
                f"{of_total(part.height, judged.height, 'rule')}, most surely under "
                f"{_difference_words(part.row(0, named=True))}"
            )
    words = f"{second} {'; and '.join(parts)} ({correction})."
    changes = {change_of(part["difference"][0], names, no_merit) for part in (worse, better) if part.height}
    code = f"compare.{changes.pop()}" if len(changes) == 1 else "compare.mixed"
    return Finding(code, words, figures=figures)


def _difference_words(row: Row) -> str:
    return (
        f"{row['name']}: {row['first']} → {row['second']} of {count_of(row['cases'], 'case')}, "
        f"{points(row['difference'])} ({points_between((row['low'], row['high']))}), {p_words(row['p_corrected'])}"
    )


def any_rule_finding(row: Row, names: tuple[str, str]) -> Finding:
    """Return how many cases violate at least one rule in each."""
    first, second = names
    figures = {key: row[key] for key in ("cases", "first", "second", "difference", "low", "high", "p")}
    if not row["cases"]:
        return Finding("compare.any_rule", "No case was judged in both.", figures=figures)
    shares = [f"{percent(row[side] / row['cases'])} ({row[side]})" for side in ("first", "second")]
    sure = "a sure difference" if row["p"] <= LEVEL else "no sure difference"
    words = (
        f"Of {count_of(row['cases'], 'case')} that both judged, {shares[0]} of {first} and {shares[1]} of {second} "
        f"violate at least one rule: {points(row['difference'])} ({points_between((row['low'], row['high']))}), "
        f"{p_words(row['p'])}, {sure}."
    )
    return Finding("compare.any_rule", words, figures=figures)


def _warnings(pair: Sides, rules: pl.DataFrame, names: tuple[str, str]) -> list[Finding]:
    warnings = []
    judged = int(pair.both.any(0).sum())
    if 0 < judged < FEW:
        words = f"Both runs judged {count_of(judged, 'case')}: too few to tell systems apart."
        warnings.append(Finding("compare.few_cases", words, figures={"cases": judged}))
    if pair.replaced:
        is_are = "has" if pair.replaced == 1 else "have"
        words = (
            f"{count_of(pair.replaced, 'case')} {is_are} the same name in both runs and another input, and "
            f"{'is' if pair.replaced == 1 else 'are'} left out."
        )
        warnings.append(Finding("compare.replaced", words, figures={"cases": pair.replaced}))
    for column, alone, other in (("second_unjudged", *names), ("first_unjudged", *reversed(names))):
        pairs = int(rules[column].sum())
        if pairs:
            words = (
                f"{count_of(pairs, 'pair')} {'was' if pairs == 1 else 'were'} judged in {alone} and not in {other}: no "
                "difference counts them."
            )
            figures = {"pairs": pairs, "judged_in": alone, "not_in": other}
            warnings.append(Finding("compare.judged_in_one", words, figures=figures))
    return warnings


def show_verdict(console: Console, one: Verdict, *, most: int | None = 30, shown_flips: int = 10) -> None:
    """The sentences, the rules and families with their differences, and the pairs that changed."""
    console.print(f"[bold]{one.second}[/] against [bold]{one.first}[/]", highlight=False)
    for sentence in one.words:
        show_sentence(console, sentence)
    for finding in one.cautions:
        show_sentence(console, finding.words, "bold yellow")
    show_title(console, "rules", f"{one.limits}; only pairs that both judged count")
    rules = one.rules if most is None else one.rules.head(most)
    console.print(_table(rules.to_dicts(), "name", "rule"))
    if rules.height < one.rules.height:
        console.print(
            f"… and {count_of(one.rules.height - rules.height, 'rule')} less sure (--all shows all)", style="dim"
        )
    if one.families.height > 2:
        show_title(console, "families", "a case counts where it violates any rule of the family")
        console.print(_table(one.families.to_dicts(), "group", "family"))
    if any(_disagree(row) for row in (*one.rules.to_dicts(), *one.families.to_dicts())):
        show_sentence(console, INTERVAL_AND_P, "dim")
    if one.targets is not None:
        show_title(console, "targets", "intervals and p over whole cases")
        console.print(_target_table(one.targets, dict(one.rules.select("rule", "name").iter_rows())))
    _show_flips(console, one, shown_flips)


def _disagree(row: Row) -> bool:
    """Whether the interval of a difference leaves out 0, and p does not call it sure."""
    return bool(row["cases"]) and (row["low"] > 0 or row["high"] < 0) and row["p_corrected"] > LEVEL


HEADS = ("cases", "first", "second", "difference", "95 % int.", "p corr.")
"""The columns of differences, after that which names the rule or the family."""


def _rule_rows(rows: Sequence[Row], column: str) -> list[tuple[bool, Sequence[str]]]:
    """Differences in words, and whether each is sure."""
    texts: list[tuple[bool, Sequence[str]]] = []
    for row in rows:
        if not row["cases"]:
            texts.append((False, (row[column], "0", *"–––––")))
            continue
        difference = points(row["difference"]).partition(SPACE)[0]
        within, p = points_between((row["low"], row["high"])), p_text(row["p_corrected"])
        counts = (str(row[name]) for name in ("cases", "first", "second"))
        texts.append((row["p_corrected"] <= LEVEL, (row[column], *counts, difference, within, p)))
    return texts


def _table(rows: Sequence[Row], column: str, head: str) -> object:
    table = headed_table((head, *HEADS), words=[head])
    for sure, (name, *cells) in _rule_rows(rows, column):
        table.add_row(Text(name), *cells, style="bold" if sure else None)
    return table


def _target_table(targets: pl.DataFrame, names: Mapping[str, str]) -> object:
    table = headed_table(("rule", "first", "second", "difference", "95 % int.", "p corr."), words=["rule"])
    for row in targets.sort("p").iter_rows(named=True):
        if row["difference"] is not None:
            table.add_row(
                Text(names[row["rule"]]),
                f"{row['first']}/{row['first_targets']}",
                f"{row['second']}/{row['second_targets']}",
                points(row["difference"]).partition(SPACE)[0],
                points_between((row["low"], row["high"])),
                p_text(row["p_corrected"]),
            )
    return table


def _show_flips(console: Console, one: Verdict, most: int) -> None:
    """Pairs that are violated in one run alone."""
    names = dict(one.rules.select("rule", "name").iter_rows())
    for worse, title in ((True, "pairs that got worse"), (False, "pairs that got better")):
        part = one.flips.filter(pl.col("worse") == worse)
        if part.is_empty() or not most:
            continue
        show_title(
            console, title, f"{min(most, part.height)} of {part.height:,}; severity in the first run and the second"
        )
        table = headed_table(("first", "second", "rule", "case"), words=("rule", "case"))
        for row in part.head(most).iter_rows(named=True):
            both = (severity_text(row[side], row["threshold"]) for side in ("first", "second"))
            table.add_row(*both, Text(names[row["rule"]]), Text(row["case"]))
        console.print(table)
