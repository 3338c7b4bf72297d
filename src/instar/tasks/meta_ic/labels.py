"""Labelling errors: captions of a dataset that leave out what a captioner names with and without an inserted object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from instar.analysis import Run
from instar.engine import SOURCE
from instar.outputs.caption import Caption
from instar.tasks.meta_ic.language import Reading, Vocabulary, read_caption
from instar.tasks.meta_ic.relations import vocabulary_of

__all__ = ["label_problems"]


def label_problems(
    run: Run, labels: Mapping[str, Sequence[str]] | None = None, *, vocabulary: str = "coco"
) -> pl.DataFrame:
    """Captions of people that leave out what the captioner names with and without an inserted object.

    `labels` are the captions of each case; those of the run's own dataset by default.
    """
    if run.manifest.system.kind != Caption.kind:
        raise ValueError(f"{run.folder} is a run of {run.manifest.system.kind}; labels are checked with a captioner's")
    if labels is None:
        if run.manifest.truth_kind != Caption.kind:
            raise ValueError(f"{run.folder}: its dataset has no captions; give a dataset that has some")
        captions = run.store.cases(["case", "truth_caption"]).drop_nulls("truth_caption")
        labels = {case: text.split("\n") for case, text in captions.iter_rows()}
    rows = run.store.predictions(["case", "follow_up", "draw", "repeat", "status", "caption"]).filter(
        (pl.col("status") == "ok") & (pl.col("repeat") == 0)
    )
    source = rows.filter(follow_up=SOURCE).select("case", source="caption")
    pairs = rows.filter(pl.col("follow_up") != SOURCE).join(source, on="case", maintain_order="left")
    return _problems(pairs.select("case", "source", follow_up="caption"), labels, vocabulary_of(vocabulary))


def _problems(said: pl.DataFrame, labels: Mapping[str, Sequence[str]], words: Vocabulary) -> pl.DataFrame:
    """Captions of people that look wrong, the likeliest first.

    `said` has `case`, `source` and `follow_up`: what the captioner said. What it names in both is taken to be there; a
    label is flagged where it names nothing of that super-category, nor a wider word for it. One row per flagged label:
    its number and text, the classes it leaves out, in how many pairs these were `seen`, and how many of the `others`
    of the picture name them: where they do, it is the odd one out.
    """
    found = []
    for (case,), pairs in said.group_by("case", maintain_order=True):
        texts = labels.get(str(case), ())
        both = [
            read_caption(before, words).objects.keys() & read_caption(after, words).objects.keys()
            for before, after in pairs.select("source", "follow_up").iter_rows()
        ]
        readings = [read_caption(text, words) for text in texts]
        for label in sorted(set().union(*both)):
            seen = sum(label in named for named in both)
            names = [_names(reading, label, words) for reading in readings]
            for number, (text, named) in enumerate(zip(texts, names, strict=True)):
                if not named:
                    found.append(
                        {
                            "case": case,
                            "number": number,
                            "label": text,
                            "left_out": label,
                            "seen": seen,
                            "pairs": pairs.height,
                            "others": sum(names),
                            "of": len(texts) - 1,
                        }
                    )
    table = pl.DataFrame(
        found,
        schema={
            "case": pl.String,
            "number": pl.Int32,
            "label": pl.String,
            "left_out": pl.String,
            "seen": pl.Int32,
            "pairs": pl.Int32,
            "others": pl.Int32,
            "of": pl.Int32,
        },
    )
    merged = table.group_by("case", "number", "label", maintain_order=True).agg(
        pl.col("left_out").str.join(", "),
        pl.col("seen").max(),
        pl.col("pairs").first(),
        pl.col("others").max(),
        pl.col("of").first(),
    )
    return merged.sort("others", "seen", descending=True, maintain_order=True)


def _names(reading: Reading, label: str, words: Vocabulary) -> bool:
    """Whether a caption names something of a class's super-category, or a wider word for it."""
    category = words.supers.get(label, label)
    return any(words.supers.get(each, each) == category for each in reading.objects) or any(
        label in wide.classes for wide in reading.wider
    )
