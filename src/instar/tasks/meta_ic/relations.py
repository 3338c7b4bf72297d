"""Captions: the objects that a caption names grow by exactly what was inserted, and their numbers agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import polars as pl

from instar.relations.relation import VERDICT_COLUMNS, Evidence, Relation
from instar.spelling import Parameter
from instar.tasks.meta_ic.language import Mention, Reading, Vocabulary, coco, read_caption, read_paper, read_vocabulary

__all__ = ["RELATIONS", "Compared", "Mark", "compared", "compared_rows", "vocabulary_of"]

Role = Literal["kept", "added", "missing", "extra", "number", "wider"]
MEASURES: dict[str, Any] = {"missing": pl.String, "extra": pl.String, "numbers": pl.String, "draw": pl.Int32}
"""The classes that should be named and are not, those that are and should not, and those whose number is wrong, with
commas between them; and which follow-up it was."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Some letters of a caption, what they show, and why they were read so."""

    start: int
    end: int
    role: Role
    why: str


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
    words: str = "coco",
) -> Compared:
    """What two captions name, and where that breaks the relations.

    >>> compared("a man on a bench", "a man on a bench and a cat", ["dog"]).sentences
    ('dog was inserted and is not named', 'cat is named and was not there before')
    """
    known = vocabulary_of(words)
    before, after = _read(source, reader, known), _read(follow_up, reader, known)
    new = {_class_of(label, known) or label for label in added}
    gone = {_class_of(label, known) or label for label in removed}
    expected = (before.objects.keys() | new) - gone
    absent, surplus = expected - after.objects.keys(), after.objects.keys() - expected
    hinted = _covered(before, surplus) | _covered(after, absent)
    missing, extra = sorted(absent - hinted), sorted(surplus - hinted)
    wrong = {}
    shared = sorted(expected & after.objects.keys() - gone)
    for label in shared:
        want = "many" if label in before.objects and label in new else before.objects.get(label, "one")
        if {want, after.objects[label]} == {"one", "many"}:
            wrong[label] = (want, after.objects[label])
    sentences = [
        f"{label} was inserted and is not named" if label in new else f"{label} is not named any more"
        for label in missing
    ]
    sentences += [f"{label} is named and was not there before" for label in extra]
    sentences += [f"{label}: {is_} where {want} is expected" for label, (want, is_) in wrong.items()]
    roles: dict[str, Role] = {
        **dict.fromkeys(shared, "kept"),
        **dict.fromkeys(new & after.objects.keys(), "added"),
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
        _marks(before, roles, hinted),
        _marks(after, roles, hinted),
        tuple(sentences),
    )


@lru_cache(maxsize=16)
def vocabulary_of(name: str) -> Vocabulary:
    """COCO's classes, or those of a TOML file."""
    return coco() if name == "coco" else read_vocabulary(name)


@lru_cache(maxsize=4096)
def _class_of(label: str, known: Vocabulary) -> str | None:
    """The class that a label of a pool or a dataset means: itself, or the one that it is a word for."""
    if label in known.classes:
        return label
    named = read_caption(f"a {label}", known).objects
    return next(iter(named)) if len(named) == 1 else None


def _read(text: str, reader: str, known: Vocabulary) -> Reading:
    if reader == "words":
        return read_caption(text, known)
    return Reading(text, tuple(Mention(label, number, 0, 0, "") for label, number in read_paper(text).items()), (), ())


def _covered(reading: Reading, labels: set[str]) -> set[str]:
    """Which of some classes a wider word of a caption may stand for."""
    return {label for label in labels if any(label in wide.classes for wide in reading.wider)}


def _marks(reading: Reading, roles: Mapping[str, Role], hinted: set[str]) -> tuple[Mark, ...]:
    marks = [
        Mark(each.start, each.end, roles.get(each.label, "kept"), each.why)
        for each in reading.mentions
        if each.end > each.start
    ]
    marks += [Mark(each.start, each.end, "wider", each.why) for each in reading.wider if hinted & set(each.classes)]
    return tuple(sorted(marks, key=lambda mark: mark.start))


# --- judging ---------------------------------------------------------------------------------------


def compared_rows(source: Mapping[str, Any], follow_up: Mapping[str, Any], options: Mapping[str, Any]) -> Compared:
    """Two stored predictions compared as a judging does it."""
    return compared(
        source["caption"],
        follow_up["caption"],
        follow_up["added"] or (),
        follow_up["removed"] or (),
        reader=options["reader"],
        words=options["vocabulary"],
    )


def _pairs(evidence: Evidence) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """The stored source and follow-up of each verdict, and how it begins."""
    sources = {row["case"]: row for row in evidence.sources.filter(pl.col("repeat") == 0).iter_rows(named=True)}
    several = evidence.parameters["draws"] > 1
    for row in evidence.follow_ups.filter(pl.col("repeat") == 0).iter_rows(named=True):
        if row["case"] in sources:
            yield (
                sources[row["case"]],
                row,
                {
                    "case": row["case"],
                    "follow_up": row["follow_up"],
                    "draw": row["draw"],
                    "target": f"draw {row['draw']}" if several else "whole",
                },
            )


def objects(evidence: Evidence) -> pl.DataFrame:
    """How many classes are wrong: those that are not named and should be, and those that are and should not."""
    rows = []
    known = vocabulary_of(evidence.options["vocabulary"])
    for source, follow_up, row in _pairs(evidence):
        unknown = _unknown(follow_up, known)
        found = compared_rows(source, follow_up, evidence.options)
        row |= (
            {"severity": None, "reason": unknown}
            if unknown
            else {"severity": float(len(found.missing) + len(found.extra)), "kind": found.kind}
        )
        rows.append(row | _measured(found))
    return pl.DataFrame(rows, schema={**VERDICT_COLUMNS, **MEASURES}, orient="row")


def numbers(evidence: Evidence) -> pl.DataFrame:
    """How many classes that both captions name have the wrong number."""
    rows = []
    known = vocabulary_of(evidence.options["vocabulary"])
    for source, follow_up, row in _pairs(evidence):
        found = compared_rows(source, follow_up, evidence.options)
        reason = _unknown(follow_up, known)
        if evidence.options["numbers"] == "agreed" and (found.missing or found.extra):
            reason = "the captions do not name the same objects"
        elif not found.shared:
            reason = "no object is named that was there before or was inserted"
        row |= (
            {"severity": None, "reason": reason}
            if reason
            else {"severity": float(len(found.numbers)), "kind": "number" if found.numbers else None}
        )
        rows.append(row | _measured(found))
    return pl.DataFrame(rows, schema={**VERDICT_COLUMNS, **MEASURES}, orient="row")


def _unknown(follow_up: Mapping[str, Any], known: Vocabulary) -> str | None:
    strange = [
        label
        for label in (*(follow_up["added"] or ()), *(follow_up["removed"] or ()))
        if _class_of(label, known) is None
    ]
    return f"the vocabulary {known.name} has no word for {strange[0]!r}" if strange else None


def _measured(found: Compared) -> dict[str, Any]:
    return {
        name: ", ".join(labels) or None
        for name, labels in (("missing", found.missing), ("extra", found.extra), ("numbers", found.numbers))
    }


def verbatim(evidence: Evidence) -> pl.DataFrame:
    """1 where the caption is another one, to the letter."""
    rows = [
        row | {"severity": float(source["caption"] != follow_up["caption"])}
        for source, follow_up, row in _pairs(evidence)
    ]
    return pl.DataFrame(rows, schema={**VERDICT_COLUMNS, "draw": pl.Int32}, orient="row")


_DRAWS = Parameter("draws", "int", 1, low=1, high=1000, help="follow-ups of a random transformation, each a target")
_READER = Parameter(
    "reader",
    "choice",
    "words",
    choices=("words", "paper"),
    help="how captions are understood: by Instar, or as MetaIC's code had it",
)
_WORDS = Parameter("vocabulary", "text", "coco", help="the classes and their words: coco, or a TOML file of yours")

RELATIONS: Mapping[str, Relation] = {
    relation.name: relation
    for relation in (
        Relation(
            "objects",
            "caption",
            objects,
            unit="classes",
            threshold=1.0,
            grid=(1.0, 2.0, 3.0),
            mapping=False,
            kinds=("misclassification", "omission"),
            measures=MEASURES,
            parameters=(_DRAWS,),
            options=(_READER, _WORDS),
            help="The follow-up's caption names the objects of the source's, and what was inserted.",
        ),
        Relation(
            "numbers",
            "caption",
            numbers,
            unit="classes",
            threshold=1.0,
            grid=(1.0, 2.0, 3.0),
            mapping=False,
            kinds=("number",),
            measures=MEASURES,
            parameters=(_DRAWS,),
            options=(
                _READER,
                _WORDS,
                Parameter(
                    "numbers",
                    "choice",
                    "shared",
                    choices=("shared", "agreed"),
                    help="asked of the classes that both captions name, or only where the captions name the same ones",
                ),
            ),
            help="Objects keep their grammatical number; what was inserted is one, or many if one was there.",
        ),
        Relation(
            "verbatim",
            "caption",
            verbatim,
            unit="captions changed",
            threshold=1.0,
            grid=(1.0,),
            mapping=False,
            measures={"draw": pl.Int32},
            parameters=(_DRAWS,),
            help="The caption stays the same, to the letter.",
        ),
    )
}
