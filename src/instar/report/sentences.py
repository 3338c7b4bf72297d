"""What a run found, in sentences that code writes from numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from string import Formatter
from typing import Any

import polars as pl

from instar.analysis import Answers, kind_counts
from instar.analysis.rates import Judged
from instar.analysis.rejections import LEVEL
from instar.relations import Relation
from instar.report.finding import Finding
from instar.report.noise import answered_again, memory_finding, noise_words
from instar.report.section import Section
from instar.report.words import (
    ONE_SIDED,
    SPACE,
    count_of,
    hundredths,
    interval,
    kinds_text,
    landmark_words,
    listed,
    measured,
    of_total,
    p_words,
    percent,
)
from instar.store import Row
from instar.systems.scores import unscaled_words, weak_words
from instar.transforms.words import in_words, value_words


def headline(section: Section, t: int) -> list[str]:
    """What a relation's rules found at a threshold: how much was judged where that is little, the finding, the
    extremes, the gaps and the noise."""
    whole, table = section.whole(t), section.at(t)
    unjudged = [one.words for one in unjudged_findings(section.judged, section.answers)]
    telling = [one.words for one in answers_findings(section.answers, section.judged)]
    at = f"At a threshold of {section.with_unit(section.grid[t])}"
    if table.is_empty():
        return ["The suite has no rule of this relation but identity that is judged case by case.", *_noise(section, t)]
    if not whole["judged"]:
        return [
            *(unjudged or [f"{at}, nothing was judged: no case has a severity under this relation."]),
            *telling,
            *_gaps(section.judged),
            *_noise(section, t),
        ]
    rules = "the only rule" if table.height == 1 else f"at least one of {table.height} rules"
    return [
        *unjudged,
        *telling,
        f"{at}, {violating(whole)} {rules} ({rate_words(whole)}).",
        *(one.words for one in rejection_findings(section.tests)),
        *(one.words for one in straying_findings(section.straying[t], section.names)),
        *(one.words for one in class_findings(section.classes[t], section.names, section.counted)),
        *_extremes(table),
        *_kinds(table, section.counted),
        *_gaps(section.judged),
        *_noise(section, t),
    ]


def violating(row: Mapping[str, Any]) -> str:
    """How many cases violate, up to the verb; one case, or none of one, violates."""
    one = 1 in (row["violated"], row["judged"])
    return f"{of_total(row['violated'], row['judged'], 'case')} violate{'s' if one else ''}"


def rate_words(row: Mapping[str, Any]) -> str:
    return f"{percent(row['rate'])}, 95{SPACE}% interval {interval(row['low'], row['high'])}"


def rule_finding(row: Row, unit: str, meanings: Mapping[str, str], purpose: str | None) -> Finding:
    """Return what is wrong under a violated rule: how often, in which ways, and what such a rule is there to show."""
    kinds = [(each["count"], each["kind"], meanings.get(each["kind"])) for each in row["kinds"]]
    ways = [(count, f"{meaning} ({kind})" if meaning else kind) for count, kind, meaning in kinds]
    others = row["violated"] - sum(count for count, _, _ in kinds)
    if others:
        worst = row["worst_without_kind"]
        far = ONE_SIDED if math.isinf(worst) else f"by up to {measured(worst, unit, row['threshold'])}"
        ways.append((others, far))
    texts = [way if len(ways) == 1 else f"in {count_of(count, 'case')} {way}" for count, way in ways]
    words = f"{violating(row)} {named(row['name'], row['words'])}: {', '.join(texts)}.{_topic(purpose)}"
    figures = {key: row.get(key) for key in ("rule", "family", "violated", "judged", "rate", "low", "high")}
    figures |= {"kinds": {kind: count for count, kind, _ in kinds}, "purpose": purpose or None}
    return Finding("rule.violated", words, True, figures)


def named(name: str, words: str) -> str:
    """A rule by its name, and in words that say what it does.

    >>> named("motion(11, 100)", "motion blur, 11 pixels, at 100°"), named("dim_lights", "dim lights")
    ('motion(11, 100) (motion blur, 11 pixels, at 100°)', 'dim_lights')
    """
    return f"{name} ({words})" if words and words != name.replace("_", " ") else name


def _topic(purpose: str | None) -> str:
    return f" This rule looks for {purpose}." if purpose else ""


def _extremes(table: pl.DataFrame) -> list[str]:
    judged = table.filter(pl.col("judged") > 0)
    if judged.height < 2:
        return []
    worst, best = (judged.filter(pl.col("rate") == end) for end in (judged["rate"].max(), judged["rate"].min()))
    if not judged["violated"].sum():
        return ["No rule is violated at this threshold."]
    if worst.height == judged.height:
        return [f"No rule is violated more often than another: {_each_violated(worst)}."]
    kept = judged.filter(pl.col("violated") == 0).height
    least = f"{kept} rules are violated by no case." if kept > 1 else _extreme("least", best)
    return [_extreme("most", worst), least]


SHOWN_TIES = 3
"""Of rules that are violated as often as each other, those that are named."""


def _extreme(which: str, rules: pl.DataFrame) -> str:
    """Which rules are violated most, or least."""
    if rules.height == 1:
        row = rules.row(0, named=True)
        return f"The {which} violated rule is {row['name']}: {violating(row)} it."
    return f"The {which} violated rules are {listed(rules['name'].to_list(), SHOWN_TIES)}: {_each_violated(rules)}."


def _each_violated(rules: pl.DataFrame) -> str:
    """How often each of some rules is violated, which is equally often."""
    row = rules.row(0, named=True)
    if rules.select("violated", "judged").n_unique() == 1:
        return f"{violating(row)} each of them"
    return f"each is violated by {percent(row['rate'])} of its cases"


def unjudged_findings(judged: Judged, answers: Answers) -> list[Finding]:
    """Return what comes first if nothing, or less than half of the pairs, was judged."""
    if not judged["pairs"] or 2 * judged["judged"] >= judged["pairs"]:
        return []
    against = bool(judged["nothing_found"] or judged["failed"] == judged["pairs"])
    figures: Mapping[str, Any] = {key: judged[key] for key in ("judged", "pairs", "cases", "empty", "failed")}
    if judged["failed"] == judged["pairs"]:
        return [Finding("judged.all_failed", "Every pair failed, so that nothing could be judged.", against, figures)]
    if not judged["judged"]:
        words = f"{_empty(judged, answers)}, so that nothing could be judged."
        return [Finding("judged.nothing_found", words, against, figures)] if judged["nothing_found"] else []
    share = f" ({percent(judged['judged'] / judged['pairs'])})"
    few = (
        f"Only {of_total(judged['judged'], judged['pairs'], 'pair')} {'was' if judged['pairs'] == 1 else 'were'} "
        f"judged{share}, and rates are over these alone."
    )
    seldom = [Finding("judged.seldom_found", f"{_empty(judged, answers)}.", against, figures)]
    return [*(seldom if 2 * judged["empty"] >= judged["cases"] else []), Finding("judged.few", few, against, figures)]


def truth_findings(reason: str) -> list[Finding]:
    """Return a note that the ground truth is ignored, if there is a reason."""
    if not reason:
        return []
    words = f"The ground truth is ignored: {reason}. Rules between source and follow-up don't need it."
    return [Finding("truth.unusable", words, figures={"reason": reason})]


def _empty(judged: Judged, answers: Answers) -> str:
    """In how many images nothing is found: nothing at all, or nothing of what the rules ask about."""
    if not answers.sources:
        return f"The system found nothing in {of_total(judged['empty'], judged['cases'], 'source image')}"
    if 2 * answers.empty >= answers.sources:
        return f"The system found nothing in {of_total(answers.empty, answers.sources, 'source image')}"
    answered = of_total(answers.sources - answers.empty, answers.sources, "source image")
    where = f"in {answered}" if answers.empty else "in every source image"
    cases = of_total(judged["empty"], judged["cases"], "case")
    return f"The system finds something {where}, but in {cases} nothing that the rules ask about, in either image"


def answers_findings(answers: Answers, judged: Judged) -> list[Finding]:
    """Return what the answers alone show: nothing counts in most of them, all are the same, or most are ties."""
    findings = []
    if answers.sources and 2 * answers.empty >= answers.sources:
        if 2 * judged["empty"] < judged["cases"]:
            kept = ": where nothing is found in either image, these options count the pair as kept"
            words = (
                f"The system found nothing in {of_total(answers.empty, answers.sources, 'source image')}"
                f"{kept if answers.keeps and not judged['nothing_found'] else ''}."
            )
            figures = {"empty": answers.empty, "sources": answers.sources}
            findings.append(Finding("outputs.empty", words, True, figures))
        if answers.highest_of_empty is not None and answers.confidence is not None and answers.unscaled is None:
            where = "" if answers.silent else "In the images in which nothing was found"
            words = f"{weak_words(answers.highest_of_empty, answers.confidence, where)}."
            scores = {"highest": answers.highest_of_empty, "confidence": answers.confidence}
            findings.append(Finding("scores.low", words, True, scores))
    if answers.unplaced:
        words = (
            f"In {of_total(answers.unplaced, answers.sources, 'source image')} the system is sure that somebody is "
            "there, and gives not a single landmark: all of them are NaN. That counts as nothing found. A model whose "
            "numbers overflow answers like this, and so does an adapter that leaves out each landmark it is unsure of."
        )
        figures = {"unplaced": answers.unplaced, "sources": answers.sources}
        findings.append(Finding("keypoints.missing", words, True, figures))
    if answers.unscaled is not None:
        low, high = answers.unscaled
        words = unscaled_words(low, high, answers.confidence or 0.0)
        findings.append(Finding("scores.out_of_range", words, True, {"low": low, "high": high}))
    if answers.normalised:
        words = (
            "The coordinates lie about between 0 and 1, in images of many pixels: they look like shares of the image, "
            "and rules take them for pixels, so that the rates say little. `instar check` says what to change."
        )
        findings.append(Finding("coordinates.normalised", words, True))
    if answers.doubled:
        words = (
            f"{answers.twice:,} of the {answers.marks:,} that were found in source images lie on another one of the "
            "same class: objects are found twice, which breaks no rule as long as it stays so. Switch on non-maximum "
            "suppression (NMS), or lower its overlap."
        )
        figures = {"doubled": answers.twice, "found": answers.marks}
        findings.append(Finding("objects.doubled", words, True, figures))
    if answers.alike:
        answer = f": {answers.words}" if answers.words else ""
        words = (
            f"All {answers.alike:,} inputs that were compared have the same answer{answer}. Either they all show the "
            "same, or the system does not look at them; rates do not tell which."
        )
        findings.append(Finding("outputs.alike", words, True, {"inputs": answers.alike}))
    if answers.undecided:
        words = (
            f"{of_total(answers.forgiven, answers.forgivable, 'pair')} are near ties: the scores are so close that the "
            "judging forgives nearly any other answer. Rules that are kept there say nothing."
        )
        figures = {"ties": answers.forgiven, "pairs": answers.forgivable}
        findings.append(Finding("scores.near_ties", words, True, figures))
    return findings


def _kinds(table: pl.DataFrame, counted: Mapping[str, str]) -> list[str]:
    kinds = [{"kind": name, "count": count} for name, count in kind_counts(table).items()]
    hits = int(table["violated"].sum())
    some = "The violation" if hits == 1 else f"Of the {count_of(hits, 'violation')}"
    others = hits - sum(kind_counts(table).values())
    strays = "one strays" if others == 1 else f"{others:,} stray"
    rest = f"; the other {strays} by the threshold or more" if others > 0 else ""
    return [f"{some}, by kind: {kinds_text(kinds, counted)}{rest}."] if kinds else []


def _gaps(judged: Judged) -> list[str]:
    nothing, missing, failed = judged["nothing_found"], judged["not_applicable"], judged["failed"]
    if judged["judged"] == judged["pairs"]:  # nothing was asked yet where there are none
        return ["Every pair was judged."] if judged["pairs"] else []
    return [
        *([f"In {count_of(nothing, 'pair')} nothing was found in either image."] if nothing else []),
        *([f"{count_of(missing, 'pair')} {'was' if missing == 1 else 'were'} not applicable."] if missing else []),
        *([f"{count_of(failed, 'pair')} failed."] if failed else []),
    ]


def _noise(section: Section, t: int) -> list[str]:
    noise = section.noise
    if noise is None:
        return ["The suite has no rule identity for this relation, so the system's own noise is not known."]
    if not noise["judged"]:
        return ["The rule identity was judged on no case, so the system's own noise is not known."]
    if not noise["noisy"]:
        one, several = "does not stray from its own answers in the only case", "strays from its own answers in none of"
        steady = one if noise["judged"] == 1 else f"{several} {noise['judged']:,} cases"
        return [f"{answered_again(noise)}, the system {steady}."]
    words = [noise_words(noise, section.unit, threshold=section.grid[t])]
    if section.memory is not None:
        words.append(memory_finding(section.memory).words)
    if t in section.below_noise:
        words.append("This threshold is not above that noise floor, so rates here say little about the rules.")
    return words


SHOWN_RULES = 3
"""Rules of which the straying parts are told in sentences; the table has all."""


def straying_findings(table: pl.DataFrame, names: Mapping[str, str]) -> list[Finding]:
    """Return which parts stray beyond the threshold more often than their pairs violate the rule, by name."""
    findings = []
    by_rule = list(table.group_by("rule", maintain_order=True))
    for _, part in by_rule[:SHOWN_RULES]:
        rates = sorted({percent(rate) for rate in part["rate"].sort()}, key=lambda text: float(text.strip("<>%\xa0")))
        shares = rates[0] if len(rates) == 1 else f"{rates[0]} to {rates[-1]}"
        whole = float(part["whole"].max())  # type: ignore[arg-type]
        words = (
            f"{_capital(listed(_together(part['part'].sort())))} stray{'s' if len(part) == 1 else ''} beyond the "
            f"threshold in "
            f"{shares} of the judged pairs under {names[part['rule'][0]]}, although "
            + (f"only {percent(whole)} of these pairs violate" if whole else "none of these pairs violates")
            + " the rule as a whole."
        )
        rates_of = dict(part.select("part", "rate").sort("part").iter_rows())
        figures = {"rule": part["rule"][0], "parts": rates_of, "whole": whole}
        findings.append(Finding("parts.straying", words, True, figures))
    if len(by_rule) > SHOWN_RULES:
        more = len(by_rule) - SHOWN_RULES
        words = f"Under {count_of(more, 'more rule')} single parts stray more often than the whole, too."
        findings.append(Finding("parts.straying_more", words, True, {"rules": more}))
    return findings


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _together(parts: pl.Series) -> list[str]:
    """Names of parts as people read them; several landmarks of a hand (`left_hand.wrist`) are that hand, and how many
    they are."""
    owners = Counter(name.rpartition(".")[0] for name in parts)
    whole = {name: name.rpartition(".")[0] for name in parts if "." in name and owners[name.rpartition(".")[0]] > 2}
    names = {
        whole[name]: f"{owners[whole[name]]} landmarks of {landmark_words(whole[name])}"
        for name in parts
        if name in whole
    }
    return [*(landmark_words(name) for name in parts if name not in whole), *names.values()]


SHOWN_CLASSES = 3
"""Classes that are told in sentences."""


def class_findings(table: pl.DataFrame, names: Mapping[str, str], counted: Mapping[str, str]) -> list[Finding]:
    """Return which classes stray beyond the threshold more often than the others: under any rule, and under which.

    `counted` is that of `kinds_text`.
    """
    by_class = list(table.group_by("class", maintain_order=True))
    findings = []
    for _, part in by_class[:SHOWN_CLASSES]:
        first, *others = part.sort(pl.col("rule").is_not_null(), maintain_order=True).iter_rows(named=True)
        kind = f" (mostly {counted.get(first['kind'], first['kind'])})" if first["kind"] else ""
        under = f" under {names[first['rule']]}" if first["rule"] else ""
        most = f"; most often under {names[others[0]['rule']]}" if others and not first["rule"] else ""
        words = (
            f"The class {first['class']} strays beyond the threshold{kind} in {percent(first['rate'])} of the "
            f"{count_of(first['judged'], 'case')} that have it{under}, other classes in {percent(first['others'])} of "
            f"theirs{most}."
        )
        figures = {key: first[key] for key in ("class", "kind", "rule", "rate", "judged", "others")}
        findings.append(Finding("classes.straying", words, True, figures))
    if len(by_class) > SHOWN_CLASSES:
        more = len(by_class) - SHOWN_CLASSES
        words = f"{more:,} more class{' strays' if more == 1 else 'es stray'} more often than the others, too."
        findings.append(Finding("classes.straying_more", words, True, {"classes": more}))
    return findings


def rejection_findings(tests: pl.DataFrame, level: float = LEVEL) -> list[Finding]:
    """Return what a run's statistical tests show together: of all, and of each family if there are several.

    More rejections than chance explains speak against the system.
    """
    together = pl.col("rule").is_null() & pl.col("family").is_null()
    if tests.filter(together).is_empty():
        return []
    whole = tests.filter(together).row(0, named=True)
    findings = []
    if whole["tests"]:
        surely = bool((tests["p_corrected"] <= level).any())
        chance = f"{percent(level)} would reject by chance"
        words = f"Statistical tests: {_rejected(whole)}; {chance} ({_corrected(whole)})."
        findings.append(Finding("tests.rejected", words, surely, _test_figures(whole)))
        families = tests.filter(pl.col("rule").is_null() & pl.col("family").is_not_null() & (pl.col("tests") > 0))
        if families.height > 1:
            rows = families.sort("share", descending=True, maintain_order=True).iter_rows(named=True)
            shares = [
                f"{row['family']} {percent(row['share'])} of {row['tests']:,} ({_corrected(row)})" for row in rows
            ]
            words = f"By family of rules, so many of the tests reject: {', '.join(shares)}."
            by_family = {row["family"]: row["share"] for row in families.iter_rows(named=True)}
            findings.append(Finding("tests.by_family", words, surely, {"families": by_family}))
    if whole["powerless"]:
        least = tests.filter(pl.col("powerless") > 0).select(pl.col("p_least").min()).item()
        every = "The tests" if not whole["tests"] else count_of(whole["powerless"], "further test")
        findings.append(
            Finding(
                "tests.powerless",
                f"{every} cannot reject with so few samples: the least p that is possible is {least:.2g}, above the "
                f"level of {level:g}. A test needs more predictions of each input.",
                figures={"tests": whole["powerless"], "least_p": least, "level": level},
            )
        )
    noisy = tests.filter((pl.col("family") == "identity") & (pl.col("p_corrected") <= level))
    return findings + [
        Finding(
            "tests.unchanged_rejected",
            f"The tests reject even where nothing was changed: {_rejected(row)} ({_corrected(row)}). The system's "
            "answers to one and the same input are not alike from one time to the next, so that the tests say little "
            "about the rules.",
            True,
            _test_figures(row),
        )
        for row in noisy.iter_rows(named=True)
    ]


def _test_figures(row: Row) -> Row:
    """Return the figures of a finding about statistical tests."""
    return {key: row.get(key) for key in ("rule", "tests", "rejected", "share", "p_corrected")}


def rejected_rule_finding(row: Row, rule: str, purpose: str | None) -> Finding:
    """Return that a rule's tests reject more often than chance explains, and what such a rule is there to show."""
    words = (
        f"The tests of {rule} reject more often than chance explains: {_rejected(row)} ({_corrected(row)})."
        f"{_topic(purpose)}"
    )
    return Finding("tests.rule_rejected", words, True, {**_test_figures(row), "purpose": purpose or None})


def _rejected(row: Row) -> str:
    return f"{percent(row['share'])} of {count_of(row['tests'], 'test')} reject{'s' if row['tests'] == 1 else ''}"


def _corrected(row: Row) -> str:
    return f"corrected {p_words(row['p_corrected'])}"


def detail_words(relation: Relation, verdict: Mapping[str, Any]) -> list[str]:
    """What else was measured of a verdict, as its relation says it; where it says nothing, measures by their names."""
    infinite = verdict.get("severity") == math.inf
    values = {
        name: _plain_measure(verdict[name])
        for name, kind in relation.measures.items()
        if verdict.get(name) is not None and not (kind.is_integer() and verdict[name] == 0)
        if not (infinite and name == "worst")
    }
    if not relation.details:
        scores = ("source_score", "follow_up_score")  # every card has them beside its severity
        return [value_words(name, value) for name, value in values.items() if name not in scores]
    return [
        in_words(clause, values, ())
        for clause in relation.details
        if {name for _, name, _, _ in Formatter().parse(clause) if name} <= values.keys()
    ]


def _plain_measure(value: object) -> object:
    if isinstance(value, str):
        return landmark_words(value)
    return float(f"{value:.3g}") if isinstance(value, float) and math.isfinite(value) else value


def _lost_words(row: Row) -> str:
    """What was lost, with the interval that decides: as a part of what there was to lose, where that counts."""
    if row.get("lost") is None or row["lost"] == row["drop"]:
        return f"{row['drop']:+.3f} lost (95{SPACE}%: {row['low']:+.3f} to {row['high']:+.3f})"
    low, high = (hundredths(row[end]).replace("-", "−") for end in ("lost_low", "lost_high"))
    return f"{percent(row['lost'])} of it lost (95{SPACE}% interval: {low} to {high}{SPACE}%)"


def over_cases_text(row: Row) -> str:
    """What a rule over many cases measured, with its interval."""
    if row.get("drop") is not None:
        numbers = f"{row['baseline']:.3f} → {row['value']:.3f}, {_lost_words(row)}"
    elif row.get("r") is not None:
        rho = "" if row.get("rho") is None else f", ρ = {row['rho']:.2f}"
        numbers = f"r = {row['r']:.2f} (95 %: {row['low']:.2f} to {row['high']:.2f}){rho}"
    else:
        return str(row.get("kind") or "")
    return f"{numbers}, {count_of(row['cases'], 'case')}"
