"""What answers say by themselves: that there are none, in which units they are, that they do not follow the image."""

from __future__ import annotations

from collections import Counter

import polars as pl

from instar.engine import SOURCE
from instar.report.words import count_of
from instar.stats import wilson
from instar.tasks.hand_pose.answers import AS_IT_IS
from instar.tasks.hand_pose.follow_ups import RESPONSE
from instar.tasks.hand_pose.measures import MARGIN, Sums
from instar.tasks.hand_pose.sentences import HIGH, LEAST, LOW, NONE, SOME, Advice, hits_text, listed

SHARES = "shares of the image, from 0 to 1"


def _sources(sums: Sums) -> pl.DataFrame:
    """What is known of the answers to sources that may show a hand: all but those annotated to show none."""
    shown = sums.counts.cases.filter(~((pl.col("reference") == "truth") & pl.col("empty")))
    return sums.counts.facts.filter(pl.col("follow_up") == SOURCE).join(shown, on="case", how="semi")


def answered(sums: Sums) -> tuple[int, int]:
    """To how many sources that may show a hand it answers, of how many."""
    sources = _sources(sums)
    return int((sources["hands"] > 0).sum()), sources.height


def silent(sums: Sums) -> list[Advice]:
    hits, count = answered(sums)
    if count < SOME or (hits and (count < LEAST or wilson(hits, count)[1] >= NONE)):
        return []
    some = f"{hits} of {count}" if hits else f"none of {count}"
    often = "hardly ever answers" if hits else "never answers"
    if not hits and (sums.counts.facts["hands"] > 0).any():
        often = "answers no source, though some of its follow-ups"
    says = (
        f"It {often}: nothing else can be said of it. Find out whether it gets the images, whether they show "
        "hands as it knows them, and what its scores mean."
    )
    confidence = sums.counts.options["confidence"]
    return [
        Advice("silent", says, f"it finds a hand in {some} images; what scores below {confidence:g} does not count")
    ]


def misread(sums: Sums) -> list[Advice]:
    """Answers that are right once they are read otherwise, or that cannot be in pixels of the image."""
    totals = sums.counts.readings.group_by("reading", maintain_order=True).agg(
        pl.col("right", "of").sum(), cases=pl.col("of").filter(pl.col("of") > 0).len()
    )
    known = {row["reading"]: row for row in totals.iter_rows(named=True) if row["cases"] >= SOME and row["of"]}
    if AS_IT_IS in known:
        share = {name: row["right"] / row["of"] for name, row in known.items()}
        best = max(share, key=lambda name: share[name])
        if share[AS_IT_IS] < LOW and share[best] >= HIGH:
            says = f"Its answers are not what they should be, but right if they are read as {best}: mend its adapter."
            as_it_is, otherwise = (
                hits_text(int(known[name]["right"]), int(known[name]["of"])) for name in (AS_IT_IS, best)
            )
            because = f"of the landmarks in the source {as_it_is} are right as it is, {otherwise} if they are read so"
            return [Advice("misread", says, because)]
    answers = _sources(sums).filter(pl.col("hands") > 0)
    units = {
        "shares": f"Its answers are {SHARES}, where pixels are expected: mend its adapter.",
        "outside": "Its answers lie outside the image: they are not in pixels of the image that it was given.",
        "narrow": "All landmarks of an answer lie in one place: it does not say where the parts of a hand are.",
    }
    for name, says in units.items():
        hits = int(answers[name].sum())
        if answers.height >= SOME and hits >= HIGH * answers.height:
            because = f"so it is in {hits} of {count_of(answers.height, 'answer')}"
            return [Advice("one place" if name == "narrow" else "misread", says, because)]
    return []


def doubled(sums: Sums) -> list[Advice]:
    twice = sums.counts.facts.group_by("case").agg(pl.col("doubled").any(), answered=(pl.col("hands") > 0).any())
    twice = twice.filter(pl.col("answered"))
    count, hits = twice.height, int(twice["doubled"].sum())
    if count < LEAST or wilson(hits, count)[0] <= MARGIN:
        return []
    says = "It answers one hand twice: keep only the best of answers that overlap."
    return [Advice("doubled", says, f"so it is in {hits} of {count} cases, {hits_text(hits, count)}")]


def exchanged(sums: Sums) -> list[Advice]:
    uncovered = [each.follow_up for each in sums.counts.test_cases if each.group not in (RESPONSE, "occlusion")]
    facts = sums.counts.facts.filter(pl.col("follow_up").is_in(uncovered) & (pl.col("hands") > 0))
    count = facts["case"].n_unique()
    pairs = Counter(facts.drop_nulls("exchanged").unique(["case", "exchanged"])["exchanged"].to_list())
    advice = []
    for pair, hits in pairs.most_common():
        if count >= LEAST and wilson(hits, count)[0] > MARGIN:
            names = pair.replace("pinky", "little finger").replace("_", " ").split(" and ")
            says = f"It exchanges the {names[0]} and the {names[1]}: each lies where the other should be."
            advice.append(Advice("exchanged", says, f"so it is in {hits} of {count} cases, {hits_text(hits, count)}"))
    return advice


def still(sums: Sums) -> dict[str, tuple[int, int]]:
    """The test cases that move the image: in how many answers hands stay where they were, of how many."""
    facts = sums.counts.facts.drop_nulls("stays")
    counted = {}
    for place in sums.group("geometry"):
        each = sums.counts.test_cases[place]
        own = facts.filter(pl.col("follow_up") == each.follow_up)["stays"]
        if len(own) >= LEAST:
            counted[each.title] = int(own.sum()), len(own)
    return counted


def stays_everywhere(sums: Sums) -> bool:
    """Whether hands surely stay in most answers, however the image was moved."""
    counted = still(sums).values()
    return len(counted) > 1 and all(wilson(hits, count)[0] > LOW for hits, count in counted)


def follows(sums: Sums) -> list[Advice]:
    sure = {title: each for title, each in still(sums).items() if wilson(*each)[0] > MARGIN}
    if not sure or stays_everywhere(sums):
        return []
    says = f"It does not follow the image: under {listed(list(sure))}, its answers stay where they were."
    because = ", ".join(f"{title}: {hits} of {count} cases" for title, (hits, count) in sure.items())
    return [Advice("follows", says, because)]
