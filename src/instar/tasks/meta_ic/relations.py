"""Captions: the objects that a caption names grow by exactly what was inserted, and their numbers agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import polars as pl

from instar.relations import VERDICT_COLUMNS, Evidence, Mark, MarkedPair, Relation, Row, segments
from instar.spelling import Parameter
from instar.tasks.meta_ic.language import Mention, Reading, Vocabulary, coco, read_caption, read_paper, read_vocabulary

_ROLES = {
    "kept": "named in both captions",
    "added": "inserted and named",
    "missing": "not named any more",
    "extra": "named and not there before",
    "number": "named in another number",
    "wider": "a wider word that may stand for it",
}
MEASURES = {"missing": pl.String, "extra": pl.String, "numbers": pl.String, "draw": pl.Int32}
"""The classes that should be named and are not, those that are and should not, and those whose number is wrong, with
commas between them; and which follow-up it was."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Two captions side by side.

    `missing` and `extra` are classes that break the first relation, `numbers` those that break the second, `vague`
    those that a wider word may stand for ("an animal"), which break nothing. `sentences` say it in words.
    """

    missing: tuple[str, ...]
    extra: tuple[str, ...]
    numbers: tuple[str, ...]
    vague: tuple[str, ...]
    shared: int
    source: tuple[Mark, ...]
    follow_up: tuple[Mark, ...]
    sentences: tuple[str, ...]

    @property
    def kind(self) -> str | None:
        """What the first relation calls it."""
        if self.extra:
            return "misclassification"
        return "omission" if self.missing else None


def compared(
    source: str,
    follow_up: str,
    added: Sequence[str] = (),
    removed: Sequence[str] = (),
    *,
    reader: str = "words",
    vocabulary: str = "coco",
) -> Compared:
    """What two captions name, and where that breaks the relations.

    >>> compared("a man on a bench", "a man on a bench and a cat", ["dog"]).sentences
    ('dog was inserted and is not named', 'cat is named and was not there before')
    """
    words = vocabulary_of(vocabulary)
    source_reading, actual_reading = _read(source, reader, words), _read(follow_up, reader, words)
    named, actual = source_reading.objects, actual_reading.objects
    new = {_class_of(label, words) or label for label in added}
    gone = {_class_of(label, words) or label for label in removed}
    expected = (named.keys() | new) - gone
    absent, surplus = expected - actual.keys(), actual.keys() - expected
    hinted = _covered(source_reading, surplus) | _covered(actual_reading, absent)
    missing, extra = sorted(absent - hinted), sorted(surplus - hinted)
    wrong = {}
    shared = sorted(expected & actual.keys() - gone)
    for label in shared:
        number = "many" if label in named and label in new else named.get(label, "one")
        if {number, actual[label]} == {"one", "many"}:
            wrong[label] = number
    sentences = [
        f"{label} was inserted and is not named" if label in new else f"{label} is not named any more"
        for label in missing
    ]
    sentences += [f"{label} is named and was not there before" for label in extra]
    sentences += [f"{label}: {actual[label]} where {number} is expected" for label, number in wrong.items()]
    roles = {
        **dict.fromkeys(shared, "kept"),
        **dict.fromkeys(new & actual.keys(), "added"),
        **dict.fromkeys(wrong, "number"),
        **dict.fromkeys(extra, "extra"),
        **dict.fromkeys(missing, "missing"),
        **dict.fromkeys(hinted, "wider"),
    }
    return Compared(
        tuple(missing),
        tuple(extra),
        tuple(wrong),
        tuple(sorted(hinted)),
        len(shared),
        _marks(source_reading, roles, hinted),
        _marks(actual_reading, roles, hinted),
        tuple(sentences),
    )


@lru_cache(maxsize=16)
def vocabulary_of(name: str) -> Vocabulary:
    """COCO's classes, or those of a TOML file."""
    return coco() if name == "coco" else read_vocabulary(name)


@lru_cache(maxsize=4096)
def _class_of(label: str, vocabulary: Vocabulary) -> str | None:
    """The class that a label of a pool or a dataset means: itself, or the one that it is a word for."""
    if label in vocabulary.classes:
        return label
    named = read_caption(f"a {label}", vocabulary).objects
    return next(iter(named)) if len(named) == 1 else None


def _read(text: str, reader: str, vocabulary: Vocabulary) -> Reading:
    if reader == "words":
        return read_caption(text, vocabulary)
    return Reading(text, tuple(Mention(label, number, 0, 0, "") for label, number in read_paper(text).items()), (), ())


def _covered(reading: Reading, labels: set[str]) -> set[str]:
    """Which of some classes a wider word of a caption may stand for."""
    return {label for label in labels if any(label in wide.classes for wide in reading.wider)}


def _marks(reading: Reading, roles: Mapping[str, str], hinted: set[str]) -> tuple[Mark, ...]:
    marks = [
        Mark(each.start, each.end, roles.get(each.label, "kept"), each.why)
        for each in reading.mentions
        if each.end > each.start
    ]
    marks += [Mark(each.start, each.end, "wider", each.why) for each in reading.wider if hinted & set(each.classes)]
    return tuple(sorted(marks, key=lambda mark: mark.start))


# --- judging ---------------------------------------------------------------------------------------


def compared_rows(source: Row, follow_up: Row, options: Row) -> Compared:
    """Two stored predictions compared as a judging does it."""
    return compared(
        source["caption"],
        follow_up["caption"],
        follow_up["added"] or (),
        follow_up["removed"] or (),
        reader=options["reader"],
        vocabulary=options["vocabulary"],
    )


def _marked(source: Row, follow_up: Row, options: Row) -> MarkedPair:
    comparison = compared_rows(source, follow_up, options)
    return MarkedPair(
        segments(source["caption"], comparison.source),
        segments(follow_up["caption"], comparison.follow_up),
        comparison.sentences,
        tuple(follow_up["added"] or ()),
    )


def _marked_verbatim(source: Row, follow_up: Row, options: Row) -> MarkedPair:
    """The objects are marked all the same; that another caption names the same ones is a sentence of its own."""
    pair = _marked(source, follow_up, {"reader": "words", "vocabulary": "coco", **options})
    changed = source["caption"] != follow_up["caption"]
    return replace(pair, sentences=("the caption is another one", *pair.sentences)) if changed else pair


def _pairs(evidence: Evidence) -> Iterator[tuple[Row, Row, dict[str, object]]]:
    """The stored source and follow-up of each verdict, and how it begins."""
    sources = {row["case"]: row for row in evidence.sources.filter(pl.col("repeat") == 0).iter_rows(named=True)}
    several = evidence.parameters["draws"] > 1
    for row in evidence.follow_ups.filter(pl.col("repeat") == 0).iter_rows(named=True):
        if row["case"] in sources:
            verdict = {name: row[name] for name in ("case", "follow_up", "draw")}
            yield sources[row["case"]], row, verdict | {"target": f"draw {row['draw']}" if several else "whole"}


def _judged(evidence: Evidence, severity: Callable[[Compared, str | None], dict[str, object]]) -> pl.DataFrame:
    """A verdict for each pair: `severity` is given the comparison, and why the pair cannot be judged, if it cannot."""
    vocabulary = vocabulary_of(evidence.options["vocabulary"])
    rows = []
    for source, follow_up, verdict in _pairs(evidence):
        comparison = compared_rows(source, follow_up, evidence.options)
        measures = {name: ", ".join(getattr(comparison, name)) or None for name in ("missing", "extra", "numbers")}
        rows.append(verdict | severity(comparison, _unknown(follow_up, vocabulary)) | measures)
    return pl.DataFrame(rows, schema={**VERDICT_COLUMNS, **MEASURES}, orient="row")


def _unknown(follow_up: Row, vocabulary: Vocabulary) -> str | None:
    labels = (*(follow_up["added"] or ()), *(follow_up["removed"] or ()))
    strange = [label for label in labels if _class_of(label, vocabulary) is None]
    return f"the vocabulary {vocabulary.name} has no word for {strange[0]!r}" if strange else None


def objects(evidence: Evidence) -> pl.DataFrame:
    """How many classes are wrong: those that are not named and should be, and those that are and should not."""

    def severity(comparison: Compared, reason: str | None) -> dict[str, object]:
        if reason:
            return {"severity": None, "reason": reason}
        return {"severity": float(len(comparison.missing) + len(comparison.extra)), "kind": comparison.kind}

    return _judged(evidence, severity)


def numbers(evidence: Evidence) -> pl.DataFrame:
    """How many classes that both captions name have the wrong number."""
    agreed = evidence.options["numbers"] == "agreed"

    def severity(comparison: Compared, reason: str | None) -> dict[str, object]:
        if agreed and (comparison.missing or comparison.extra):
            reason = "the captions do not name the same objects"
        elif not comparison.shared:
            reason = "no object is named that was there before or was inserted"
        if reason:
            return {"severity": None, "reason": reason}
        return {"severity": float(len(comparison.numbers)), "kind": "number" if comparison.numbers else None}

    return _judged(evidence, severity)


def verbatim(evidence: Evidence) -> pl.DataFrame:
    """1 where the caption is another one, to the letter."""
    rows = [
        row | {"severity": float(source["caption"] != follow_up["caption"])}
        for source, follow_up, row in _pairs(evidence)
    ]
    return pl.DataFrame(rows, schema={**VERDICT_COLUMNS, "draw": pl.Int32}, orient="row")


_DRAWS = Parameter("draws", "int", 1, low=1, high=1000, help="how many follow-ups a random transformation makes")
_READER = Parameter(
    "reader",
    "choice",
    "words",
    choices=("words", "paper"),
    help="how captions are understood: by Instar, or as the code of MetaIC does",
)
_WORDS = Parameter("vocabulary", "text", "coco", help="the classes and their words: coco, or a TOML file of yours")

# fmt: off
RELATIONS: Mapping[str, Relation] = {
    relation.name: relation
    for relation in (
        Relation(
            "objects", "caption", objects, unit="classes", threshold=1.0, grid=(1.0, 2.0, 3.0), mapping=False,
            kinds=("misclassification", "omission"), measures=MEASURES, parameters=(_DRAWS,), options=(_READER, _WORDS),
            marked=_marked, roles=_ROLES,
            help="The follow-up's caption names the objects of the source's, and what was inserted.",
        ),
        Relation(
            "numbers", "caption", numbers, unit="classes", threshold=1.0, grid=(1.0, 2.0, 3.0), mapping=False,
            kinds=("number",), measures=MEASURES, parameters=(_DRAWS,),
            options=(
                _READER, _WORDS,
                Parameter(
                    "numbers", "choice", "shared", choices=("shared", "agreed"),
                    help="judge every class that both captions name, or only pairs that name the same classes",
                ),
            ),
            marked=_marked, roles=_ROLES,
            help="Objects keep their grammatical number; what was inserted is one, or many if one was there.",
        ),
        Relation(
            "verbatim", "caption", verbatim, unit="captions changed", threshold=1.0, grid=(1.0,), mapping=False,
            measures={"draw": pl.Int32}, parameters=(_DRAWS,), marked=_marked_verbatim, roles=_ROLES,
            help="The caption stays the same, to the letter.",
        ),
    )
}
# fmt: on
