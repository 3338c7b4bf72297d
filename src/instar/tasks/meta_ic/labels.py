"""Labelling errors: captions of a dataset that leave out what a captioner names with and without an inserted object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from instar.analysis import Run
from instar.engine import SOURCE
from instar.outputs.caption import Caption
from instar.report.mark_files import file_rows
from instar.report.tables import write_csv
from instar.report.words import count_of, listed
from instar.store import LABEL, stored_marks
from instar.tasks.meta_ic.comparison import verb_of, vocabulary_of
from instar.tasks.meta_ic.language import Reading, Vocabulary, read_caption
from instar.tasks.meta_ic.suspicious_marks import CELLS, COMMENT, MARK

# fmt: off
_COLUMNS = {
    "case": pl.String, "number": pl.Int32, "label": pl.String, "left_out": pl.String, "seen": pl.Int32,
    "pairs": pl.Int32, "others": pl.Int32, "of": pl.Int32,
}
# fmt: on


def label_problems(
    run: Run, labels: Mapping[str, Sequence[str]] | None = None, *, vocabulary: str = "coco"
) -> pl.DataFrame:
    """Captions of people that look wrong, the likeliest first.

    `labels` are the captions of each case; those of the run's own dataset by default. What the captioner names in both
    images of a pair is taken to be there; a label is flagged where it names nothing of that super-category, nor a wider
    word for it. One row per flagged label: its number and text, the classes it leaves out, in how many pairs each was
    `seen`, and how many of the `others` of the image name each: where they do, it is the odd one out. These three have
    commas between the classes, the likeliest first.
    """
    words = vocabulary_of(vocabulary)
    labels = _own_labels(run) if labels is None else labels
    rows = []
    for (case,), pairs in _captions(run).group_by("case", maintain_order=True):
        texts = labels.get(str(case), ())
        both = [
            read_caption(source, words).objects.keys() & read_caption(follow_up, words).objects.keys()
            for source, follow_up in pairs.select("source", "follow_up").iter_rows()
        ]
        readings = [read_caption(text, words) for text in texts]
        for label in sorted(set().union(*both)):
            seen = sum(label in named for named in both)
            names = [_names(reading, label, words) for reading in readings]
            rows += [
                (case, number, text, label, seen, pairs.height, sum(names), len(texts) - 1)
                for number, (text, named) in enumerate(zip(texts, names, strict=True))
                if not named
            ]
    ordered = pl.DataFrame(rows, schema=_COLUMNS, orient="row").sort(
        "others", "seen", descending=True, maintain_order=True
    )
    return ordered.group_by("case", "number", "label", maintain_order=True).agg(
        pl.col("left_out", "seen").cast(pl.String).str.join(", "),
        pl.col("pairs").first(),
        pl.col("others").cast(pl.String).str.join(", "),
        pl.col("of").first(),
    )


def left_out_words(row: Mapping[str, str | int]) -> list[str]:
    """What a flagged label leaves out, in sentences: the classes that as many others name, and that were seen as often,
    in one.

    >>> left_out_words({"left_out": "chair, tv, book", "others": "4, 0, 0", "of": 4, "seen": "2, 2, 2", "pairs": 2})[1]
    'tv and book are left out; 0 of 4 other captions name them, the captioner does in 2 of 2 pairs'
    """
    columns = [str(row[name]).split(", ") for name in ("left_out", "others", "seen")]
    alike: dict[tuple[str, str], list[str]] = {}
    for label, others, seen in zip(*columns, strict=True):
        alike.setdefault((others, seen), []).append(label)
    sentences = []
    for (others, seen), labels in alike.items():
        are = verb_of(labels[0]) if len(labels) == 1 else "are"
        sentences.append(
            f"{listed(labels, len(labels))} {are} left out; {others} of {row['of']} other captions name "
            f"{'it' if are == 'is' else 'them'}, the captioner does in {seen} of {row['pairs']} pairs"
        )
    return sentences


def write_sheet(run: Run, problems: pl.DataFrame, file: Path) -> int:
    """Write flagged labels for people to look at, and how many of them are marked: in the run, or in the file that is
    there already. Raises ValueError where a mark in that file would be lost."""
    stored = stored_marks(run.store)
    there = _written(file) if file.is_file() else {}
    lines = []
    for line in problems.to_dicts():
        mark = stored.get((line["case"], LABEL, line["label"]))
        cells = {MARK: CELLS.get(mark.mark, mark.mark), COMMENT: mark.note} if mark else {MARK: "", COMMENT: ""}
        lines.append({**line, **there.pop((line["case"], line["label"]), cells)})
    if there:
        raise ValueError(
            f"{file} has {count_of(len(there), 'marked label')} that would not be in it any more; write to another "
            "file, or move this one away"
        )
    write_csv(file, [*problems.columns, MARK, COMMENT], lines)
    return sum(bool(line[MARK]) for line in lines)


def _written(file: Path) -> dict[tuple[str, str], dict[str, str]]:
    """What people wrote into a sheet of labels, by case and label."""
    rows = (row for _, row in file_rows(file))
    return {
        (row["case"], row["target"]): {MARK: row["mark"], COMMENT: row.get("note", "")}
        for row in rows
        if row["mark"].strip() or row.get("note")
    }


def _own_labels(run: Run) -> dict[str, list[str]]:
    """The captions that the run's dataset has, by case."""
    if run.manifest.truth_kind != Caption.kind:
        raise ValueError(f"the dataset of {run.folder} has no captions; give a dataset that has some as labels")
    cases = run.store.cases(["case", "truth_caption"]).drop_nulls("truth_caption")
    return {case: text.split("\n") for case, text in cases.iter_rows()}


def _captions(run: Run) -> pl.DataFrame:
    """The captions of each pair: `case`, `source` and `follow_up`."""
    if (kind := run.manifest.system.kind) != Caption.kind:
        raise ValueError(f"{run.folder} is a run of {kind}; labels are checked with the captions of a captioner")
    rows = run.store.predictions(
        ["case", "follow_up", "caption"], where=(pl.col("status") == "ok") & (pl.col("repeat") == 0)
    )
    source = rows.filter(follow_up=SOURCE).select("case", source="caption")
    return (
        rows.filter(pl.col("follow_up") != SOURCE)
        .join(source, on="case", maintain_order="left")
        .select("case", "source", follow_up="caption")
    )


def _names(reading: Reading, label: str, words: Vocabulary) -> bool:
    """Whether a caption names something of a class's super-category, or a wider word for it."""
    category = words.supers.get(label, label)
    return any(words.supers.get(each, each) == category for each in reading.objects) or any(
        label in wide.classes for wide in reading.wider
    )
