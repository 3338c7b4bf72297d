"""Captions in numbers: per change, how many pairs break which relation, and how; and what is odd, in words."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from instar.analysis import Run
from instar.analysis.clusters import clustered
from instar.engine import DEFAULT, SOURCE
from instar.relations import named_rule
from instar.report.finding import Finding
from instar.report.words import count_of, of_total
from instar.tasks.meta_ic.comparison import BOTH
from instar.tasks.meta_ic.language import is_english
from instar.tasks.meta_ic.relations import MEASURES, NOT_ENGLISH, RELATIONS

CAPTION_KINDS = ("misclassification", "omission", "silent", "language", "number")
_TOGETHER = {"misclassification": BOTH, "omission": BOTH}
"""The kind of verdicts that show another one as well."""
UNCHANGED = "identity"
"""The change that changes nothing; `all` leaves it out."""
_ALIKE = 3
"""Of how many images on the same caption is worth a word."""
_MOST_CLASSES = 5
"""Classes that a sentence names."""


def caption_rules(run: Run) -> pl.DataFrame:
    """The rules of a run that are about captions: `rule`, `change` and `relation`."""
    change = pl.col("rule").map_elements(lambda text: named_rule(text).left, pl.String).alias("change")
    return run.rules().filter(pl.col("relation").is_in(list(RELATIONS))).select("rule", change, "relation")


def caption_table(
    run: Run, *, threshold: float | None = None, judging: str = DEFAULT, among: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Tables 1 and 2 of MetaIC without a human's word: one row per change, and `all` of them together but `identity`.

    A pair is a source and one follow-up, however many rules judge it: every draw is a pair of its own. `pairs` are
    those that the relation of objects or that of numbers judges, `unjudged` those that neither can judge;
    `objects` violate the first, `numbers` the second, `either` one of both, with the 95 % interval of its share, which
    takes the pairs of one image as a cluster.
    `verbatim` counts captions that changed at all, of the `exact` pairs that a rule asks for that. A pair counts once
    in each of the kinds that it shows. With `identity` nothing is changed: its pairs would make the share of `all` look
    smaller. `among` are the only pairs that count: `change`, `case`, `target`.
    """
    rules = caption_rules(run)
    if rules.is_empty():
        raise ValueError(
            f"{run.folder} has no rules about captions; `instar run CAPTIONER meta-ic DATASET` with a pool of objects "
            "to insert makes such a run"
        )
    limit = run.thresholds(threshold)[rules["rule"][0]]
    verdicts = run.verdicts(judging).select("rule", "case", "target", "severity", "kind")
    violated = (pl.col("severity") >= limit) & (pl.col("severity") > 0)
    of = {name: pl.col("relation") == name for name in RELATIONS}
    either = of["objects"] | of["numbers"]
    pairs = (
        rules.join(verdicts, on="rule", maintain_order="left")
        .group_by("change", "case", "target", maintain_order=True)
        .agg(
            judged=(either & pl.col("severity").is_not_null()).any(),
            unjudged=either.any() & ~(either & pl.col("severity").is_not_null()).any(),
            **{name: (of[name] & violated).any() for name in RELATIONS},
            exact=(of["verbatim"] & pl.col("severity").is_not_null()).any(),
            **{
                kind: (violated & pl.col("kind").is_in([kind, _TOGETHER.get(kind, kind)])).any()
                for kind in CAPTION_KINDS
            },
        )
    )
    if among is not None:
        pairs = pairs.join(among, on=["change", "case", "target"], how="semi", maintain_order="left")
    changed = pairs.filter(pl.col("change") != UNCHANGED)
    if changed["change"].n_unique() > 1:
        pairs = pl.concat([pairs, changed.with_columns(change=pl.lit("all"))])
    table = pairs.group_by("change", maintain_order=True).agg(
        pairs=pl.col("judged").sum(),
        unjudged=pl.col("unjudged").sum(),
        **{name: pl.col(name).sum() for name in ("objects", "numbers")},
        either=(pl.col("objects") | pl.col("numbers")).sum(),
        **{kind: pl.col(kind).sum() for kind in CAPTION_KINDS},
        exact=pl.col("exact").sum(),
        verbatim=pl.col("verbatim").sum(),
    )
    judged = pairs.filter("judged").select("change", "case", hit=pl.col("objects") | pl.col("numbers"))
    table = table.join(clustered(judged, "change"), on="change", how="left", maintain_order="left")
    share = pl.when(pl.col("pairs") > 0).then(pl.col("either") / pl.col("pairs"))
    return table.with_columns(share=share, verbatim=pl.when(pl.col("exact") > 0).then(pl.col("verbatim")))


def caption_notes(run: Run, *, judging: str = DEFAULT) -> list[Finding]:
    """What is odd about the captions as a whole, in sentences: silence, other languages, wider words, one caption for
    all; which classes are wrong most often; and that nothing was inserted."""
    rows = run.store.predictions(["case", "follow_up", "caption"], where=pl.col("status") == "ok")
    captions = rows["caption"].to_list()
    sources = rows.filter(follow_up=SOURCE).unique("case")["caption"]
    notes: list[Finding] = []
    silent = sum(not text for text in captions)
    if silent:
        words = f"{silent:,} of {len(captions):,} captions are empty."
        notes.append(Finding("captions.empty", words, True, {"empty": silent, "captions": len(captions)}))
    foreign = sum(not is_english(text) for text in captions)
    if foreign:
        words = f"{foreign:,} of {len(captions):,} captions are not English; only English is read."
        figures = {"not_english": foreign, "captions": len(captions)}
        notes.append(Finding("captions.not_english", words, figures=figures))
    if len(sources) >= _ALIKE and sources.n_unique() == 1 and sources[0]:
        words = f"All {len(sources):,} images have the same caption: {sources[0]!r}."
        notes.append(Finding("captions.alike", words, True, {"images": len(sources), "caption": sources[0]}))
    notes += _answered_in_vain(run)
    measured = pl.concat([run.verdicts(judging), pl.DataFrame(schema=MEASURES)], how="diagonal")  # `verbatim` has none
    verdicts = measured.join(caption_rules(run), on="rule")
    of_objects = verdicts.filter(relation="objects")
    wide = of_objects.filter(pl.col("severity").is_null() & pl.col("vague").is_not_null()).height
    if wide:
        notes.append(
            Finding(
                "captions.wider_word",
                f"{of_total(wide, of_objects.height, 'follow-up')} {'is' if wide == 1 else 'are'} not judged, because "
                "a wider word stands for an object at the most: an animal may be the dog.",
                figures={"skipped": wide, "follow_ups": of_objects.height},
            )
        )
    notes += _wrong_classes(verdicts)
    inserted = verdicts.filter(pl.col("change").str.starts_with("insert("))
    if inserted.height and inserted["severity"].is_null().all() and NOT_ENGLISH not in inserted["reason"]:
        reason = str(inserted["reason"].drop_nulls().mode().first())
        words = f"Nothing was inserted, so that nobody knows whether captions name what is new: {reason}."
        notes.append(Finding("captions.nothing_inserted", words, figures={"reason": reason}))
    return notes


def _answered_in_vain(run: Run) -> list[Finding]:
    """How many follow-ups were answered and are not judged, because another draw of their case has no answer: the draw
    that is missing might be the one that decides."""
    relation_of = {one.id: one.relation for one in run.bound_rules()}
    key = ["case", "follow_up", "draw"]
    rows = run.store.predictions([*key, "status"], where=pl.col("repeat") == 0)
    judged, lost = [rows.select(key).clear()], [rows.select(key).clear()]
    for rule, change, _ in caption_rules(run).iter_rows():
        relation = relation_of[rule]
        assert relation is not None
        own = rows.filter((pl.col("follow_up") == change) & (pl.col("draw") < relation.count("draws")))
        incomplete = (pl.col("status") != "ok").any().over("case")
        answered = own.with_columns(incomplete=incomplete).filter(status="ok")
        lost.append(answered.filter("incomplete").select(key))
        judged.append(answered.filter(~pl.col("incomplete")).select(key))
    count = pl.concat(lost).unique().join(pl.concat(judged), on=key, how="anti").height
    if not count:
        return []
    verbs = "was answered and is" if count == 1 else "were answered and are"
    return [
        Finding(
            "captions.incomplete",
            f"{count_of(count, 'follow-up')} {verbs} not judged, because another follow-up of the same image under the "
            "same rule failed or could not be made: the missing one might be what decides.",
            figures={"skipped": count},
        )
    ]


_WRONG = {
    "missing": ("objects", "Captions do not name what they should name"),
    "extra": ("objects", "Captions name what is not there"),
    "numbers": ("numbers", "Captions say one instead of many, or many instead of one"),
}
"""What may be wrong with a class: the relation that it violates, and words. Verdicts of both have all measures."""


def _wrong_classes(verdicts: pl.DataFrame) -> Iterator[Finding]:
    """Which classes are wrong in most follow-ups, by the way in which they are: each follow-up counts once."""
    for column, (relation, words) in _WRONG.items():
        wrong = verdicts.filter((pl.col("severity") > 0) & (pl.col("relation") == relation))
        labels = wrong.select("change", "case", "draw", pl.col(column).str.split(", ")).explode(column)
        counts = (
            labels.drop_nulls(column)
            .unique()
            .group_by(column)
            .agg(follow_ups=pl.len())
            .sort("follow_ups", column, descending=[True, False])
        )
        shares = [
            f"{label} in {count_of(count, 'follow-up')}" for label, count in counts.head(_MOST_CLASSES).iter_rows()
        ]
        if shares:
            figures = {"follow_ups": dict(counts.head(_MOST_CLASSES).iter_rows())}
            yield Finding(f"captions.{column}", f"{words}: {', '.join(shares)}.", True, figures)
