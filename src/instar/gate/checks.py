"""A run held to a policy: each line of the policy is a check, with its figures and its reason in words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from instar.analysis import ANY, Run, Severities, remembered, repeated
from instar.analysis.answers import idle
from instar.analysis.comparison import Sides, cautious_counts, search_words, sides
from instar.analysis.copies import copies
from instar.engine import DEFAULT
from instar.engine.extent import Extent
from instar.engine.progress import FAILURES
from instar.gate.check import Check
from instar.gate.graphs import graph_check
from instar.gate.measures import measured_check
from instar.gate.policy import EACH_FAMILY, EACH_RULE, FAILED_AS, UNJUDGED, Limit, NoWorse, Policy, PolicyError, line_of
from instar.report.compared import found_in_both, unshared_findings
from instar.report.copies import copies_finding
from instar.report.words import (
    beside_limit,
    count_of,
    listed,
    of_total,
    percent,
    points,
    points_beside_limit,
    severity_text,
)
from instar.spelling import UnknownName, unknown
from instar.stats import binomial_bounds, paired_bound, quantile_bounds, sequence_bounds, sequence_quantile_bounds
from instar.systems.scores import scores_words


def checked(run: Run, policy: Policy, baseline: Run | None = None) -> list[Check]:
    """Every check of the policy. A policy that names what the run does not have is an error, not a pass."""
    if policy.compared is not None and baseline is None:
        name = "[[no_worse]]" if policy.no_worse else "least_found"
        raise PolicyError(
            f"{policy.path}, line {policy.compared}: {name} compares with another run; give the "
            'baseline: `--baseline runs/v1`, or `baseline="runs/v1"` in a mark of pytest'
        )
    if policy.compared is None and baseline is not None:
        raise PolicyError(
            f"{policy.path} compares the run with no baseline, and one was given; add [[no_worse]] with `of` and "
            '`margin` to the policy (`of = "any rule"`, `margin = 0.02`), or leave the baseline out'
        )
    if run.store.judging_info(policy.judging) is None and policy.judging not in (DEFAULT, *run.store.judgings()):
        line = policy.lines.get("judging", 1)
        raise PolicyError(
            f"{policy.path}, line {line}: {unknown('judging of this run', policy.judging, run.store.judgings())}"
        )
    for opened in filter(None, (run, baseline)):
        refuse_search(opened)
    limits = run.thresholds(policy.threshold)
    gate = _Gate(run, policy, run.severities(policy.judging), limits, Extent.of(run.store))
    checks = gate.of_run()
    for limit in policy.limits:
        checks += [gate.limit(one, rules) for one, rules in gate.named(limit)]
    if baseline is not None and policy.no_worse:
        judgings = policy.judging, policy.judging
        pair = sides(baseline, run, judgings=judgings, threshold=policy.threshold)
        apart = "".join(f" {one.words}" for one in unshared_findings(baseline, run, ("the baseline", "the run")))
        for each in policy.no_worse:
            for place, (one, rules) in enumerate(gate.named(each)):
                check = gate.no_worse(one, rules, pair)
                checks.append(check if place else replace(check, words=f"{check.words}{apart}"))
    if baseline is not None:
        checks += gate.least_found(baseline)
    return list(_told_apart([*checks, *(graph_check(graph, policy) for graph in policy.graphs)]))


def _told_apart(checks: Sequence[Check]) -> Iterator[Check]:
    """No two with one name, which build servers would take for one: a second one of the same rules has a number."""
    counts: Counter[str] = Counter()
    for one in checks:
        counts[one.name] += 1
        yield one if counts[one.name] == 1 else replace(one, name=f"{one.name} ({counts[one.name]})")


def refuse_search(run: Run) -> None:
    """A search holds no policy, and is no baseline."""
    if why := search_words(run.manifest):
        raise PolicyError(f"{run.folder} is {why}; no policy is held against it: gate a run of the rules themselves")


def meaningless(run: Run, judging: str) -> str | None:
    """Why rates say little of the system, whatever they are; None where nothing speaks against them."""
    answers = run.answers(judging)
    if answers.unscaled is not None:
        return f"{scores_words(*answers.unscaled)}; rules count by scores from 0 to 1."
    if answers.normalised:
        return "The coordinates look like shares of the image; rules take them for pixels."
    if remembered(run, judging) is not None:
        return "The system remembers: its answers depend on the inputs that it was asked about before, and so do rates."
    return None


def failed_predictions(run: Run, extent: Extent) -> tuple[dict[str, int], int]:
    """How many predictions failed, by status, and how many more a case that cannot be read would have had."""
    counts = dict(run.store.predictions(query=lambda rows: rows.group_by("status").agg(pl.len())).iter_rows())
    return {status: counts[status] for status in FAILURES if status in counts}, extent.done - sum(counts.values())


@dataclass(frozen=True, slots=True)
class _Gate:
    run: Run
    policy: Policy
    severities: Severities
    limits: Mapping[str, float]
    extent: Extent

    # -- the run itself

    def of_run(self) -> list[Check]:
        policy, judged = self.policy, self.run.judged(self.policy.judging)
        any_rule = self.run.any_rule(policy.threshold, judging=policy.judging)
        cases, alike = any_rule["judged"], copies(self.run)
        note = "" if alike is None else f" {copies_finding(alike).words}"
        checks = [
            Check(
                "cases",
                cases >= policy.cases,
                f"{count_of(cases, 'case')} {'was' if cases < 2 else 'were'} judged; at least {policy.cases} must be."
                f"{note}",
                policy.lines.get("cases", 1),
                figure=cases,
                allowed=policy.cases,
            ),
            self._finished(),
            self._answers(),
            *self._failed(),
            *self._repeatable(),
        ]
        counts = {
            "not_judged": judged["pairs"] - judged["judged"],
            "not_applicable": judged["not_applicable"],
            "nothing_found": judged["nothing_found"],
        }
        for name, most in policy.unjudged.items():
            share = counts[name] / judged["pairs"] if judged["pairs"] else 1.0
            shown, allowed = beside_limit(share, most)
            words = (
                f"{of_total(counts[name], judged['pairs'], 'pair')} ({shown}) {UNJUDGED[name]}; at most {allowed} may."
            )
            checks.append(self._share(name, words, share, most))
        return checks

    def _share(self, name: str, words: str, share: float, most: float) -> Check:
        line = self.policy.lines.get(name, 1)
        return Check(name.replace("_", " "), share <= most, words, line, figure=share, allowed=most)

    def _finished(self) -> Check:
        extent = self.extent
        whole = not extent.missing and extent.shard is None and not extent.absent
        words = f"{of_total(extent.done, extent.planned, 'prediction')} are there; all must be."
        if extent.shard is not None or extent.absent:
            words = "Only some shards of the run are there; all must be."
        return Check("finished", whole, words, 1, figure=extent.done, allowed=extent.planned)

    def _answers(self) -> Check:
        """A system that finds nothing, or says the same of every input, violates no rule and shows nothing; nor do
        rates of answers that are none."""
        why_idle = idle(self.run, self.policy.threshold, judging=self.policy.judging)
        answers = self.run.answers(self.policy.judging)
        if why_meaningless := meaningless(self.run, self.policy.judging):
            return Check("answers", False, why_meaningless, 1)
        same = f"All {answers.alike:,} inputs that were compared have the same answer, and yet rules are violated."
        words = {
            None: same if answers.alike else "The answers differ from input to input.",
            "silent": "Nothing was found in any input: nothing shows that the system works.",
            "alike": f"{answers.alike} inputs have the same answer: nothing shows that the system looks at them.",
            "undecided": "Most pairs are near ties, which the judging forgives: nothing shows that the system decides.",
        }
        return Check("answers", why_idle is None, words[why_idle], 1)

    def least_found(self, baseline: Run) -> list[Check]:
        """A system that finds less has less that can break a rule, and is no better for it."""
        policy = self.policy
        counts = found_in_both(baseline, self.run, (policy.judging, policy.judging))
        before = 0 if counts is None else int(counts["first"].sum())
        if counts is None and "least_found" in policy.lines:
            raise PolicyError(
                f"{policy.path}, line {policy.compared}: least_found counts what is found with a score, and answers of "
                f"kind {self.run.manifest.system.kind} have nothing to count; take it out"
            )
        if counts is None or not before:
            return []
        now = int(counts["second"].sum())
        shown, least = beside_limit(now / before, policy.least_found)
        words = (
            f"The run finds {now:,} in the unchanged inputs of {count_of(counts.height, 'case')}, the baseline "
            f"{before:,}: {shown} of that; at least {least} must be."
        )
        name, share, allowed = "found, against the baseline", now / before, policy.least_found
        return [Check(name, share >= allowed, words, policy.compared or 1, figure=share, allowed=allowed)]

    def _failed(self) -> Iterator[Check]:
        """The predictions that failed: statuses with a limit of their own, then all others."""
        counts, unread = failed_predictions(self.run, self.extent)
        total, own = self.extent.done, {FAILED_AS[name] for name in self.policy.failures}
        others = unread + sum(count for status, count in counts.items() if status not in own)
        alone = {name: (counts.get(FAILED_AS[name], 0), most) for name, most in self.policy.failures.items()}
        for name, (failed, most) in {**alone, "failed": (others, self.policy.failed)}.items():
            share = failed / total if total else 1.0
            how = {"failed": "failed" if not own else "failed otherwise"}.get(name, f"ended as {name}")
            why = f", {unread:,} of them for images that cannot be read" if name == "failed" and unread else ""
            shown, allowed = beside_limit(share, most)
            words = f"{of_total(failed, total, 'prediction')} ({shown}) {how}{why}; at most {allowed} may."
            yield self._share(name, words if total else "Nothing was predicted.", share, most)

    def _repeatable(self) -> Iterator[Check]:
        """Check the violating pairs that a deterministic system was asked about again."""
        if (again := repeated(self.run)) is None:
            return
        share, most = again.differing / again.pairs, self.policy.not_repeatable
        shown, allowed = beside_limit(share, most)
        pairs = of_total(again.differing, again.pairs, "violating pair")
        words = f"A second prediction gave another output for {pairs} ({shown}); at most {allowed} may differ."
        yield self._share("not_repeatable", words, share, most)

    # -- what a limit is of

    def named(self, limit: Limit | NoWorse) -> list[tuple[Limit | NoWorse, tuple[str, ...]]]:
        return named_rules(self.run, self.policy, limit)

    def limit(self, limit: Limit | NoWorse, rules: tuple[str, ...]) -> Check:
        assert isinstance(limit, Limit)
        over_cases = set(self.run.rules().filter(over="cases")["rule"]) & set(rules)
        if over_cases:
            return self._over_cases(limit, rules[0])
        if limit.measure is not None:
            raise PolicyError(
                f"{self.policy.path}, line {line_of(limit, 'measure')}: {limit.of} is judged case by case, and "
                "has no measure of all cases; give its highest rate or severity"
            )
        matrix = self.severities.only(rules)
        matrix = matrix.at(matrix.cases.is_not_null())
        kept = sliced(self.run, self.policy, limit, matrix.cases)
        note = self._all_or_none(limit, kept)
        matrix = matrix.at(kept)
        check = self._rate(limit, rules, matrix) if limit.rate is not None else self._severity(limit, rules, matrix)
        return replace(check, words=f"{check.words}{note}")

    def _all_or_none(self, limit: Limit, kept: pl.Series) -> str:
        """That a `where` tells no cases apart, and what its column is like: its ends may be in another unit."""
        if limit.where is None or 0 < kept.sum() < len(kept):
            return ""
        column = self.run.described()[limit.where.column].drop_nulls()
        values = listed(column.cast(pl.String).unique().sort().to_list())
        if column.dtype.is_numeric() and len(column):
            ends = column.to_numpy()
            values = f"between {ends.min():.3g} and {ends.max():.3g}"
        which = "all" if kept.sum() else "none of the"
        return (
            f" Its `where` selects {which} {count_of(len(kept), 'case')}: {limit.where.column} is "
            f"{values or 'not known of any'}."
        )

    # -- kinds of checks

    def _rate(self, limit: Limit, rules: tuple[str, ...], matrix: Severities) -> Check:
        assert limit.rate is not None
        hits = matrix.violated(self.limits).any(0)
        judged = matrix.counted()
        violated, count = int((hits & judged).sum()), int(judged.sum())
        name = _name(limit)
        if count < limit.cases:
            return self._too_few(limit, name, rules, count, limit.rate)
        bounds = sequence_bounds if matrix.looked else binomial_bounds
        confidence = self._confidence(matrix)
        low, high = bounds(violated, count, confidence)
        figure = violated / count
        bound = {"upper": high, "lower": low, "plain": figure}[limit.sure]
        shown, allowed = beside_limit(bound, limit.rate)
        sure = f", with {percent(self.policy.confidence)} confidence"
        reasons = {
            "upper": f"{percent(figure)}{sure} {_at_most(shown)}",
            "lower": f"{percent(figure)}{sure} {_at_least(shown)}",
            "plain": shown,
        }
        return Check(
            name,
            bound <= limit.rate,
            f"{of_total(violated, count, 'case')} violate {name}: {reasons[limit.sure]}; at most "
            f"{allowed} may.{_more_cases(limit, violated, count, confidence, bounds)}",
            limit.line,
            rules,
            figure,
            bound,
            limit.rate,
            certain=limit.sure != "upper" or low > limit.rate,
        )

    def _confidence(self, matrix: Severities) -> float:
        """That of a bound, so that the policy's holds: a gate that might have been decided before all cases were asked
        has spent a part of its risk."""
        spent = self.run.manifest.looked and not matrix.looked
        return after_looks(self.policy.confidence) if spent else self.policy.confidence

    def _severity(self, limit: Limit, rules: tuple[str, ...], matrix: Severities) -> Check:
        assert limit.severity is not None
        name, severity = _name(limit), matrix.severity
        judged = matrix.counted()
        worst = np.where(np.isnan(severity), -1.0, severity).max(0, initial=-1.0)[judged]
        if len(worst) < limit.cases:
            return self._too_few(limit, name, rules, len(worst), limit.severity)
        figure = float(np.quantile(worst, limit.quantile, method="inverted_cdf"))
        quantiles = sequence_quantile_bounds if matrix.looked else quantile_bounds
        low, high = quantiles(worst, limit.quantile, self._confidence(matrix))
        bound = {"upper": high, "lower": low, "plain": figure}[limit.sure]
        sure = f", with {percent(self.policy.confidence)} confidence at"
        shown, least, most = (severity_text(each, limit.severity) for each in (figure, low, high))
        top = "an unknown height: there are too few cases" if math.isinf(high) else f"most {most}"
        end = {"upper": f"{sure} {top}", "lower": f"{sure} least {least}", "plain": ""}[limit.sure]
        return Check(
            name,
            bound <= limit.severity,
            f"The severity of {name} is at most {shown} in {percent(limit.quantile)} of "
            f"{count_of(len(worst), 'case')}{end}; {severity_text(limit.severity)} is allowed.",
            limit.line,
            rules,
            figure,
            bound,
            limit.severity,
            certain=limit.sure != "upper" or low > limit.severity,
        )

    def _over_cases(self, limit: Limit, rule: str) -> Check:
        """A rule that is judged over many cases together: its severity, or a measure with its interval."""
        place = f"{self.policy.path}, line {line_of(limit, 'measure', 'where', 'rate')}"
        if limit.rate is not None or limit.where is not None:
            raise PolicyError(
                f"{place}: {limit.of} is judged over many cases together; give its highest severity, or a measure with "
                "at_most or at_least, without where"
            )
        rows = self.run.over_cases(self.policy.judging).filter(pl.col("rule") == rule, pl.col("severity").is_not_null())
        name = _name(limit)
        if rows.is_empty():
            return self._nothing(limit, name, (rule,), None)
        if limit.severity is None:
            return measured_check(rows, limit, name, place, self.policy.confidence)
        figure = float(rows["severity"].max())  # type: ignore[arg-type]
        words = (
            f"The severity of {name}, over all cases, is {severity_text(figure, limit.severity)}; "
            f"{severity_text(limit.severity)} is "
        )
        return Check(
            name, figure <= limit.severity, f"{words}allowed.", limit.line, (rule,), figure, figure, limit.severity
        )

    def no_worse(self, each: Limit | NoWorse, rules: tuple[str, ...], pair: Sides) -> Check:
        assert isinstance(each, NoWorse)
        policy = self.policy
        row = cautious_counts(pair, rules)
        name = f"{_name(each)} against the baseline"
        if not row["cases"]:
            return self._nothing(each, name, rules, each.margin)
        bound = paired_bound(row["first_only"], row["second_only"], row["cases"], policy.confidence)
        shown, allowed = points_beside_limit(bound, each.margin)
        lost = ""
        if count := row["lost"]:
            they = "it counts" if count == 1 else "they count"
            pairs, cases = count_of(count, "pair"), count_of(row["losers"], "case")
            lost = f" Only the baseline judged {pairs} of {cases}: {they} as violated by the run."
        return Check(
            name,
            bound <= each.margin,
            f"{row['second']} of {count_of(row['cases'], 'case')} violate {_name(each)}, {row['first']} did in the "
            f"baseline: {points(row['difference'])}, with {percent(policy.confidence)} confidence at most "
            f"{shown}; {allowed} may be lost.{lost}",
            each.line,
            rules,
            row["difference"],
            bound,
            each.margin,
        )

    def _too_few(self, limit: Limit, name: str, rules: tuple[str, ...], count: int, allowed: float) -> Check:
        if not count:
            return self._nothing(limit, name, rules, allowed)
        be = "was" if count == 1 else "were"
        words = f"{count_of(count, 'case')} of {name} {be} judged; at least {limit.cases} must be."
        return Check(name, False, words, limit.line, rules, count, count, limit.cases)

    def _nothing(self, limit: Limit | NoWorse, name: str, rules: tuple[str, ...], allowed: float | None) -> Check:
        """What was not judged is not shown to hold."""
        words = f"No case was judged under {name}: nothing shows that it holds."
        return Check(name, False, words, limit.line, rules, allowed=allowed)


def named_rules(run: Run, policy: Policy, limit: Limit | NoWorse) -> list[tuple[Limit | NoWorse, tuple[str, ...]]]:
    """The limit for each group of rules that it names."""
    of = limit.of
    families = run.families()
    if of == EACH_RULE:
        return [(replace(limit, of=_rule_name(run, rule)), (rule,)) for rule in run.changing_rules()]
    if of == EACH_FAMILY:
        return [(replace(limit, of=name), tuple(rules)) for name, rules in families.items()]
    suites = run.suites()
    groups: dict[str, Sequence[str]] = {ANY: run.changing_rules(), **suites, **families}
    if of in groups:
        return [(limit, tuple(groups[of]))]
    try:
        rule = run.rule_id(of)
        return [(replace(limit, of=_rule_name(run, rule)), (rule,))]
    except (UnknownName, KeyError, ValueError):
        names = run.rules()["name"].to_list()
        error = unknown("rule, family or suite of this run", of, [*groups, EACH_RULE, EACH_FAMILY, *names])
        raise PolicyError(f"{policy.path}, line {line_of(limit, 'of')}: {error}") from None


def _rule_name(run: Run, rule: str) -> str:
    """A rule without its relation, unless another rule of the run is then called the same."""
    short = rule.partition(" => ")[0]
    others = run.rules().filter(pl.col("over") != "level")["rule"]
    alike = sum(other.partition(" => ")[0] == short for other in others)
    return short if alike < 2 else rule


def sliced(run: Run, policy: Policy, limit: Limit, cases: pl.Series) -> pl.Series:
    """Which cases a limit counts."""
    where, line = limit.where, line_of(limit, "where.column", "where")
    if where is None:
        return pl.Series([True] * len(cases), dtype=pl.Boolean)
    described = run.described()
    if where.column not in described.columns:
        columns = [name for name in described.columns if name != "case"]
        error = unknown("column of this run's cases", where.column, columns)
        raise PolicyError(f"{policy.path}, line {line}: {error}")
    column = described[where.column]
    kept = pl.Series([True] * len(column))
    if where.values:
        kept &= column.cast(pl.String).is_in(list(where.values)).fill_null(False)
    for end, inside in ((where.at_least, column.__ge__), (where.below, column.__lt__)):
        if end is not None:
            if not column.dtype.is_numeric():
                raise PolicyError(f"{policy.path}, line {line}: {where.column} is no number; give its value")
            kept &= inside(end).fill_null(False)
    return cases.is_in(described["case"].filter(kept).implode())


MOST_CASES = 1_000_000
AT_THE_END = 0.9
"""The share of the risk that is left for a look at all cases after looks at some of them. `studies/decisions.py` counts
out that gates are then wrong no more often than they say."""
Bounds = Callable[[int, int, float], tuple[float, float]]


def after_looks(confidence: float) -> float:
    """Return the confidence of a bound at the end of a run whose gate might have been decided before."""
    return 1 - AT_THE_END * (1 - confidence)


def cases_needed(rate: float, violated: int, count: int, confidence: float, bounds: Bounds) -> int:
    """Return how many cases show that a rate holds, if as many of them violate the rules as now; at most MOST_CASES.

    At this rate there is no fewer than a whole case, so that the answer is never one that would fail."""
    more = count
    while more < MOST_CASES and bounds(-(-violated * more // count), more, confidence)[1] > rate:
        more += max(1, more // 200)
    return min(more, MOST_CASES)


def _more_cases(limit: Limit, violated: int, count: int, confidence: float, bounds: Bounds) -> str:
    """Say how many cases it takes, if the rate is low enough and too few cases show it."""
    assert limit.rate is not None
    if limit.sure != "upper" or violated >= limit.rate * count or bounds(violated, count, confidence)[1] <= limit.rate:
        return ""
    more = cases_needed(limit.rate, violated, count, confidence, bounds)
    takes = f"about {more:,}" if more < MOST_CASES else f"more than {MOST_CASES:,}"
    return f" Too few cases show it: at this rate it takes {takes}."


def _name(limit: Limit | NoWorse) -> str:
    where = limit.where if isinstance(limit, Limit) else None
    return limit.of if where is None else f"{limit.of} where {where.words}"


def _at_most(words: str) -> str:
    """The upper end of an interval in words: no "at most >99 %".

    >>> _at_most(percent(0.3)), _at_most(percent(0.9974))
    ('at most 30\\xa0%', 'below 100\\xa0%')
    """
    return f"below {percent(1.0)}" if words.startswith(">") else f"at most {words}"


def _at_least(words: str) -> str:
    """The lower end of an interval in words: no "at least <1 %".

    >>> _at_least(percent(0.3)), _at_least(percent(0.001))
    ('at least 30\\xa0%', 'above 0\\xa0%')
    """
    return f"above {percent(0.0)}" if words.startswith("<") else f"at least {words}"
