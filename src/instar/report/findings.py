"""What was found of a run as a whole: the one list that the terminal, the report and programs print."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

import polars as pl

from instar.analysis import Run, remembered, repeated, unusable_truth
from instar.analysis.copies import copies
from instar.analysis.found import found_combinations
from instar.analysis.pattern import leading_pattern, outstanding_rules
from instar.analysis.rejections import LEVEL
from instar.engine import DEFAULT
from instar.engine.extent import Extent
from instar.engine.progress import FAILURES, failure_reasons, status_counts, unreadable_cases
from instar.outputs import output_kind
from instar.report.copies import copies_finding
from instar.report.finding import Finding
from instar.report.limits import LONG, limit_words
from instar.report.noise import memory_finding, noise_finding, repeated_finding
from instar.report.panels import remarks_on
from instar.report.pattern import pattern_finding
from instar.report.section import counted_kinds, heading_of, noise_of
from instar.report.sentences import (
    answers_findings,
    class_findings,
    named,
    over_cases_text,
    rate_words,
    rejected_rule_finding,
    rejection_findings,
    rule_finding,
    straying_findings,
    truth_findings,
    unjudged_findings,
    violating,
)
from instar.report.words import ONE_SIDED, count_of, listed, of_total, severity_text, violated_from
from instar.store import Row, shard_words
from instar.suites import KEPT, declared

SHOWN_RULES = 5
"""Violated rules of which a sentence says what is wrong; the table of rates has all."""
SHOWN_REASONS = 3
"""Reasons of failures that are told; the table of what was not judged has all."""


def findings(
    run: Run,
    *,
    threshold: float | None = None,
    p: float | None = None,
    judging: str = DEFAULT,
    group: str | None = None,
    failures: bool = True,
) -> list[Finding]:
    """What to know of a run, in sentences: what was not read, not judged or failed, what is violated and how, which
    parts stray, what its tests say, its noise and its memory, and what its tasks remark."""
    judged, answers = run.judged(judging, group=group), run.answers(judging)
    rates = run.rates(threshold, p=p, judging=judging, group=group)
    leading = leading_pattern(run, threshold, judging)
    standing_out = outstanding_rules(run, threshold, judging, p=p, pattern=leading)
    return [
        *_extent(run),
        *unjudged_findings(judged, answers),
        *answers_findings(answers, judged),
        *(copies_finding(alike) for alike in [copies(run)] if alike is not None),
        *truth_findings(unusable_truth(run, judging)),
        *(_unreadable(run) if failures else ()),
        *((_failed_questions(run) if run.searched else _failures(run.unjudged(judging))) if failures else ()),
        *(() if run.searched else _whole(run, rates, threshold, p, judging, group)),
        *(() if leading is None else (pattern_finding(leading),)),
        *(() if run.searched else violated_rules(run, rates, standing_out, judging)),
        *(() if run.searched else _conditions(run, judging)),
        *(() if run.searched else _scores(run, threshold, judging)),
        *(() if run.searched else _straying(run, threshold, judging)),
        *_rejections(
            run, p or LEVEL, standing_out if p else outstanding_rules(run, threshold, judging, p=LEVEL), judging
        ),
        *_over_cases(run, judging),
        *_noise(run, rates, judging),
        *remarks_on(run, judging),
    ]


def _extent(run: Run) -> Iterator[Finding]:
    """That cases or predictions are missing: rates of what is there are not those of the whole run."""
    extent = Extent.of(run.store)
    if extent.shard is not None:
        yield Finding(
            "run.shard",
            f"This run is {extent.shard.words}: it has only the cases of this shard, and what follows is about these. "
            "`instar merge` joins the shards.",
            figures={"number": extent.shard.number, "of": extent.shard.total},
        )
    if extent.absent:
        whose = "its" if len(extent.absent) == 1 else "their"
        yield Finding(
            "run.shards_missing",
            f"This run was merged without {shard_words(extent.absent)}: {whose} cases are missing, and what follows is "
            "about the others. The command that made the shards, given this folder and no shard, predicts the rest.",
            figures={"missing": len(extent.absent)},
        )
    if run.searched:
        yield Finding(
            "run.searched_limits",
            "This run searched for limits: a case was asked about a level only where its limit could be, so that the "
            "rates of single rules are those of the cases that were asked, and not of all.",
        )
    elif run.manifest.until is not None:
        yield Finding(
            "run.until",
            f"Cases were asked in random order until {run.manifest.until}, or until no case was left. The intervals "
            "hold however often one looks, and are wider for that. What is said of several rules together is about the "
            "cases that were asked under all of them.",
            figures={"until": str(run.manifest.until)},
        )
    if run.manifest.search is not None:
        yield _combinations(run)
    if extent.whole and extent.done < extent.planned:
        yield Finding(
            "run.unfinished",
            f"This run is not finished: {of_total(extent.done, extent.planned, 'prediction')} "
            f"{'is' if extent.done == 1 else 'are'} there, and what follows is about these. Run the same command "
            "again: it goes on where it stopped.",
            figures={"done": extent.done, "planned": extent.planned},
        )


def _combinations(run: Run) -> Finding:
    """What a search found first, and what everything else in its run is about."""
    best = found_combinations(run)
    search = run.manifest.search
    words = "It found none." if search is not None and search.ended else "It has not come to its end yet."
    figures: Row = {"found": best.height}
    if best.height:
        row = best.row(0, named=True)
        figures |= {"worst": row["name"], **{key: row[key] for key in ("broken", "judged", "alone")}}
        together = f"its rules break {row['alone']:,} of these only together"
        if not row["alone"]:
            together = "one of its rules alone breaks these, too"
        words = (
            f"It found {count_of(best.height, 'combination')}. The worst one, {row['name']}, breaks "
            f"{of_total(row['broken'], row['judged'], 'case')} that the search did not see"
            f"{'; ' + together if row['broken'] else ''}."
        )
    rest = "What follows about rules is about each by itself, on the cases that it was asked about."
    words = f"This run searched for rules that break answers together. {words} {rest}"
    return Finding("search.combinations", words, bool(best.height), figures)


def _unreadable(run: Run) -> Iterator[Finding]:
    """Inputs that could not be read: a matter of the dataset, not of the system."""
    reasons = unreadable_cases(run.store)
    if unread := sum(reasons.values()):
        cases = run.store.cases(["case"]).height
        yield Finding(
            "cases.unreadable",
            f"{of_total(unread, cases, 'case')} cannot be read and "
            f"{'counts' if unread == 1 else 'count'} in no rate ({_reasons_text(reasons)}).",
            figures={"unreadable": unread, "cases": cases, "reasons": dict(reasons)},
        )


def _reasons_text(reasons: Mapping[str, int]) -> str:
    shown = [f"{count_of(count, 'time')}: {reason}" for reason, count in list(reasons.items())[:SHOWN_REASONS]]
    rest = len(reasons) - len(shown)
    return "; ".join([*shown, *([f"and for {count_of(rest, 'other reason')}"] if rest else [])])


def _failures(unjudged: pl.DataFrame) -> Iterator[Finding]:
    """Inputs that the system did not answer, or not in a way that can be read."""
    failed = unjudged.filter(pl.col("status").is_in(FAILURES))
    for row in failed.head(SHOWN_REASONS).iter_rows(named=True):
        pairs = f"{count_of(row['pairs'], 'pair')} of {count_of(row['rules'], 'rule')}"
        figures = {key: row[key] for key in ("pairs", "rules", "status", "reason")}
        yield Finding("pairs.failed", f"{pairs} failed ({row['status']}): {row['reason']}", True, figures)
    rest = failed[SHOWN_REASONS:]
    if rest.height:
        more, reasons = count_of(int(rest["pairs"].sum()), "more pair"), count_of(rest.height, "other reason")
        figures = {"pairs": int(rest["pairs"].sum()), "reasons": rest.height}
        yield Finding("pairs.failed_more", f"{more} failed for {reasons}.", True, figures)


def _failed_questions(run: Run) -> Iterator[Finding]:
    """The same of a search for limits: what it did not ask after a failure is no pair of any rule."""
    statuses = status_counts(run.store)
    failed = sum(statuses.get(status, 0) for status in FAILURES)
    if not failed:
        return
    attempts = failed + statuses.get("ok", 0)
    reasons = _reasons_text(failure_reasons(run.store, statuses))
    words = f"{of_total(failed, attempts, 'prediction')} failed ({reasons})."
    yield Finding("predictions.failed", words, True, {"failed": failed, "attempts": attempts})


def _whole(
    run: Run, rates: pl.DataFrame, threshold: float | None, p: float | None, judging: str, group: str | None
) -> Iterator[Finding]:
    whole = run.any_rule(threshold, p=p, judging=judging, group=group)
    if not whole["judged"]:
        return
    limits = limit_words(run, threshold=threshold, p=p, judging=judging)
    one_sided = rates.filter(pl.col("rule").is_in(run.changing_rules()) & pl.col("worst").is_infinite()).height
    unchanged = run.rules().filter(family="identity")["rule"].to_list()
    noisy = rates.filter(pl.col("rule").is_in(unchanged))["violated"].sum() > 0
    rule = "at least one rule that changes something" if noisy else "at least one rule"
    rates_of_all = f"{violating(whole)} {rule} ({rate_words(whole)})."
    from_where = f"A rule is {limits}." + (f" A severity of ∞ means: {ONE_SIDED}." if one_sided else "")
    figures = {key: whole[key] for key in ("violated", "judged", "rate", "low", "high")}
    against = bool(whole["violated"])
    if len(limits) <= LONG:
        yield Finding("rules.any", f"{rates_of_all} {from_where}", against, figures)
        return
    yield Finding("rules.any", rates_of_all, against, figures)
    yield Finding("rules.thresholds", from_where)


def violated_rules(
    run: Run, rates: pl.DataFrame, standing_out: Collection[str] = (), judging: str = DEFAULT
) -> Iterator[Finding]:
    """Return what is wrong under identity, if that is violated, and under each of the most violated rules.

    What a rule looks for is named if it stands out from the others, or if nothing was changed.
    """
    known = run.rules(judging).filter(over="case")
    relations = {one.relation.relation.name: one.relation.relation for one in run.bound_rules()}
    violated = rates.filter(pl.col("violated") > 0).join(known, on="rule", maintain_order="left")
    order = [pl.col("family") == "identity", "rate", "median"]
    ranked = violated.sort(order, descending=True, nulls_last=True, maintain_order=True)
    purposes = _purposes(run)
    for row in ranked.head(SHOWN_RULES).iter_rows(named=True):
        purpose = purposes.get(row["rule"]) if row["rule"] in standing_out or row["family"] == "identity" else None
        yield rule_finding(row, row["unit"], relations[row["relation"]].meanings, purpose)
    rest = ranked["name"][SHOWN_RULES:].to_list()
    if rest:
        verb = "is" if len(rest) == 1 else "are"
        words = f"{count_of(len(rest), 'more rule')} {verb} violated: {listed(rest)}."
        yield Finding("rule.violated_more", words, True, {"rules": ranked["rule"][SHOWN_RULES:].to_list()})


def _conditions(run: Run, judging: str) -> Iterator[Finding]:
    """Yield the rules whose condition occurred in too few cases to say anything about it."""
    names = dict(run.rules().select("rule", "name").iter_rows())
    for row in run.conditions(judging).filter("absent").iter_rows(named=True):
        noun = output_kind(run.manifest.system.kind).subject(run.manifest.header) or "subject"
        article = "an" if noun[0] in "aeiou" else "a"
        words = (
            f"{names[row['rule']]} cuts {article} {noun} in {of_total(row['met'], row['judged'], 'case')}, so it says "
            f"{'little' if row['met'] else 'nothing'} about {article} {noun} at the border of the image. Add images "
            "that show one there."
        )
        figures = {key: row[key] for key in ("rule", "condition", "met", "judged")}
        yield Finding("rule.condition_absent", words, figures=figures)


def _scores(run: Run, threshold: float | None, judging: str) -> Iterator[Finding]:
    """Yield notes on scores: most violations are faint, or weak detections are withheld."""
    relations = [one.relation.relation for one in run.bound_rules()]
    faint = next((one for one in relations if "faint" in one.kinds), None)
    if faint is None:
        return
    limit = pl.col("rule").replace_strict(run.thresholds(threshold), default=None, return_dtype=pl.Float64)
    scores = ["source_score", "follow_up_score"]
    violated = (pl.col("severity") > 0) & (pl.col("severity") >= limit)
    empty = pl.DataFrame(schema={"kind": pl.String, **dict.fromkeys(scores, pl.Float64)})
    parts = run.store.verdict_parts(judging, list(empty.columns), violated)
    violations = pl.concat([empty, *parts], how="diagonal_relaxed")
    options = run.judging(judging).of(faint)
    yield from _faint(violations, float(options["confidence"]))
    yield from _cut_off(run, violations, float(options["confidence"]), float(options["margin"]), judging)


def _faint(violations: pl.DataFrame, confidence: float) -> Iterator[Finding]:
    rows = violations.filter(pl.col("kind") == "faint")
    if 2 * rows.height <= violations.height:
        return
    figures: dict[str, float] = {"faint": rows.height, "violations": violations.height, "confidence": confidence}
    known = rows.select("source_score", "follow_up_score").drop_nulls()
    change = ""
    if known.height:
        before, after = (float(known[name].median()) for name in known.columns)  # type: ignore[arg-type]
        figures |= {"before": before, "after": after}
        change = f" (median score {before:.2f} → {after:.2f})"
    yield Finding(
        "violations.faint",
        f"{of_total(rows.height, violations.height, 'violation')} are faint: both images show the same thing, but one "
        f"of them with a score below {confidence:g}{change}. Another confidence changes what counts: "
        "`instar judge --set confidence=…`.",
        figures=figures,
    )


CUT_ROUNDING = 0.02
"""A system that withholds weak detections returns some that score little more than its limit."""


def _cut_off(run: Run, violations: pl.DataFrame, confidence: float, margin: float, judging: str) -> Iterator[Finding]:
    """Yield that a system withholds weak detections, so that a small change of a score can read as a loss."""
    least = run.answers(judging).least_score
    if least is None or not confidence - margin + CUT_ROUNDING < least < confidence + CUT_ROUNDING:
        return
    lost = violations.filter(pl.col("kind") == "lost")
    nearby = lost.filter(pl.col("source_score") < least + margin).height
    if 4 * nearby < max(lost.height, 1):
        return
    yield Finding(
        "scores.cut_off",
        f"The model returns nothing that scores below {least:.2g}: {of_total(nearby, lost.height, 'lost one')} scored "
        f"less than {least + margin:.2g} before, and may still be found with a slightly lower score. Return "
        f"detections down to a score of {confidence - margin:g} or lower, so that Instar can tell.",
        figures={"least_score": least, "lost": lost.height, "nearby": nearby},
    )


def _straying(run: Run, threshold: float | None, judging: str) -> Iterator[Finding]:
    """Which parts stray more often than the whole, and which classes more often than others."""
    names = dict(run.rules().select("rule", "name").iter_rows())
    yield from straying_findings(run.straying_parts(threshold, judging=judging), names)
    yield from class_findings(run.straying_classes(threshold, judging=judging), names, counted_kinds(run))


def _rejections(run: Run, level: float, standing_out: Collection[str], judging: str) -> Iterator[Finding]:
    """What the tests say together, and which rules' reject more often than chance explains."""
    tests = run.tests(level, judging=judging)
    yield from rejection_findings(tests, level)
    purposes, names = _purposes(run), _named_rules(run)
    sure = tests.filter(
        pl.col("rule").is_not_null() & (pl.col("p_corrected") <= level) & (pl.col("family") != "identity")
    )
    for row in sure.sort("share", descending=True, maintain_order=True).head(SHOWN_RULES).iter_rows(named=True):
        purpose = purposes[row["rule"]] if row["rule"] in standing_out else None
        yield rejected_rule_finding(row, names[row["rule"]], purpose)


def _named_rules(run: Run) -> Mapping[str, str]:
    """Each rule by its name and in words."""
    rows = run.rules().select("rule", "name", "words").iter_rows()
    return {rule: named(name, words) for rule, name, words in rows}


def _purposes(run: Run) -> Mapping[str, str]:
    """What each rule is there to show, as far as the run's suites are known by name and say so."""
    purposes = declared(run.manifest.suites, run.manifest.rules, lambda suite: suite.purposes)
    return {rule: purposes.get(rule, "").partition(KEPT)[0] for rule in run.manifest.rules}


def _over_cases(run: Run, judging: str) -> Iterator[Finding]:
    """What is violated over all cases, worst first; of many rules how many more are, since the table has all."""
    limits, names = run.thresholds(), _named_rules(run)
    meanings = {one.id: one.relation.relation.meanings for one in run.bound_rules()}
    known = run.over_cases(judging).filter(pl.col("severity").is_not_null())
    ranked = known.sort("severity", descending=True, maintain_order=True)
    for row in ranked.head(SHOWN_RULES).iter_rows(named=True):
        violated, limit = _is_violated(row, limits), limits[row["rule"]]
        meaning = meanings[row["rule"]].get(row.get("kind") or "")
        measured = ": ".join(filter(None, (over_cases_text(row), meaning)))
        severity = f"severity {severity_text(row['severity'], limit)}, {violated_from(limit)}"
        yield Finding(
            f"over_cases.{'violated' if violated else 'kept'}",
            f"Over all cases, the rule {names[row['rule']]} is {'violated' if violated else 'kept'}: "
            f"{f'{measured} ({severity})' if measured else severity}.",
            violated,
            {key: value for key, value in row.items() if value is not None},
        )
    rest = list(ranked[SHOWN_RULES:].iter_rows(named=True))
    spelled = dict(run.rules().select("rule", "name").iter_rows())
    more = [spelled[row["rule"]] for row in rest if _is_violated(row, limits)]
    kept = [spelled[row["rule"]] for row in rest if not _is_violated(row, limits)]
    for rules, state in ((more, "violated"), (kept, "kept")):
        if rules:
            verb = "is" if len(rules) == 1 else "are"
            words = f"Over all cases, {count_of(len(rules), 'more rule')} {verb} {state}: {listed(rules)}."
            yield Finding(f"over_cases.{state}_more", words, rules is more, {"rules": rules})


def _is_violated(row: Row, limits: Mapping[str, float]) -> bool:
    return bool(row["severity"] > 0 and row["severity"] >= limits[row["rule"]])


def _noise(run: Run, rates: pl.DataFrame, judging: str) -> Iterator[Finding]:
    """What identity says of the system's own noise; thresholds that do not stand above it are named."""
    noise, units = noise_of(run, judging), run.units(judging)
    limits = rates.join(run.rules().select("rule", "relation"), on="rule")
    for row in noise.filter(pl.col("noisy") > 0).iter_rows(named=True):
        relation = row["relation"]
        own = sorted(limits.filter(relation=relation)["threshold"])
        below = " The threshold is not above this noise, so that the rates say little about the rules."
        finding = noise_finding(
            row,
            units[relation],
            heading_of(relation) if noise.height > 1 else None,
            threshold=next((limit for limit in own if limit > row["floor"]), None),
        )
        yield replace(finding, words=f"{finding.words}{below}") if own and own[0] <= row["floor"] else finding
    if memory := remembered(run, judging):
        yield memory_finding(memory)
    if (again := repeated(run)) and again.differing:
        yield repeated_finding(again)
