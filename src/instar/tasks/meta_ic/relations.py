"""Captions: the objects that a caption names grow by exactly what was inserted, and their numbers agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import polars as pl

from instar.relations import VERDICT_COLUMNS, Evidence, MarkedPair, Relation, Row, segments
from instar.relations.relation import NOTHING_FOUND
from instar.spelling import Parameter
from instar.tasks.meta_ic.comparison import BOTH, PAPER_READERS, Compared, compared, unknown_label, vocabulary_of

_ROLES = {
    "kept": "named in both captions",
    "added": "inserted and named",
    "missing": "not named any more",
    "extra": "named and not there before",
    "number": "one named as many, or many as one",
    "wider": "a wider word that may stand for it",
}
_CLASSES = ("expected", "missing", "extra", "numbers", "vague")
MEASURES = {**dict.fromkeys((*_CLASSES, "by_class"), pl.String), "draw": pl.Int32}
"""The classes that should be named, those of them that are not, those that are named and should not be, those whose
number is wrong, and those that only a wider word may stand for, with commas between them; `by_class` has 1 for each
that should be named and is not, 0 for the others; and which follow-up it was."""
NOT_ENGLISH = "neither caption is English, and only English is read"


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


def _marking(relation: str) -> Callable[[Row, Row, Row, Row], MarkedPair]:
    """Marks what a relation looks at, and nothing that only the other one counts."""

    def marked(source: Row, follow_up: Row, options: Row, verdict: Row) -> MarkedPair:
        comparison = compared_rows(source, follow_up, options)
        before, after = comparison.marks[relation]
        return MarkedPair(
            segments(source["caption"], before),
            segments(follow_up["caption"], after),
            comparison.sentences[relation],
            tuple(follow_up["added"] or ()),
        )

    return marked


def _marked_verbatim(source: Row, follow_up: Row, options: Row, verdict: Row) -> MarkedPair:
    """What captions name is no matter of this relation: no word is marked."""
    changed = source["caption"] != follow_up["caption"]
    return MarkedPair(
        segments(source["caption"], ()),
        segments(follow_up["caption"], ()),
        ("the caption is another one",) if changed else (),
        tuple(follow_up["added"] or ()),
    )


def _pairs(evidence: Evidence) -> Iterator[tuple[Row, Row, dict[str, object]]]:
    """The stored source and follow-up of each verdict, and how it begins."""
    sources = {row["case"]: row for row in evidence.sources.filter(pl.col("repeat") == 0).iter_rows(named=True)}
    several = evidence.parameters["draws"] > 1
    for row in evidence.follow_ups.filter(pl.col("repeat") == 0).iter_rows(named=True):
        if row["case"] in sources:
            verdict = {name: row[name] for name in ("case", "follow_up", "draw")}
            yield sources[row["case"]], row, verdict | {"target": f"draw {row['draw']}" if several else "whole"}


def _judged(evidence: Evidence, severity: Callable[[Compared], dict[str, object]]) -> pl.DataFrame:
    """A verdict for each pair that can be judged: `severity` is given the comparison."""
    vocabulary, reader = vocabulary_of(evidence.options["vocabulary"]), evidence.options["reader"]
    keep = evidence.options["empty"] == "keep"
    rows = []
    for source, follow_up, verdict in _pairs(evidence):
        comparison = compared_rows(source, follow_up, evidence.options)
        measures = {name: ", ".join(getattr(comparison, name)) or None for name in _CLASSES}
        measures["by_class"] = ", ".join("01"[name in comparison.missing] for name in comparison.expected) or None
        labels = (*(follow_up["added"] or ()), *(follow_up["removed"] or ()))
        reason = unknown_label(labels, reader, vocabulary) or (NOT_ENGLISH if comparison.foreign else None)
        if comparison.nothing and not reason:
            reason = None if keep else NOTHING_FOUND
            outcome: dict[str, object] = {"severity": None if reason else 0.0, "reason": reason}
        else:
            outcome = {"severity": None, "reason": reason} if reason else severity(comparison)
        rows.append(verdict | outcome | measures)
    return pl.DataFrame(rows, schema={**VERDICT_COLUMNS, **MEASURES}, orient="row")


def objects(evidence: Evidence) -> pl.DataFrame:
    """How many classes are wrong: those that are not named and should be, and those that are and should not."""

    def severity(comparison: Compared) -> dict[str, object]:
        wrong = len(comparison.missing) + len(comparison.extra)
        if comparison.vague and not comparison.kind:
            words = " and ".join(comparison.vague)
            return {"severity": None, "reason": f"a wider word stands for {words}, at the most"}
        return {"severity": float(max(wrong, comparison.kind is not None)), "kind": comparison.kind}

    return _judged(evidence, severity)


def numbers(evidence: Evidence) -> pl.DataFrame:
    """How many classes that both captions name have the wrong number."""
    agreed = evidence.options["numbers"] == "agreed"

    def severity(comparison: Compared) -> dict[str, object]:
        if agreed and (comparison.missing or comparison.extra):
            return {"severity": None, "reason": "the captions do not name the same objects"}
        if not comparison.shared:
            return {"severity": None, "reason": "no object is named that was there before or was inserted"}
        return {"severity": float(len(comparison.numbers)), "kind": "number" if comparison.numbers else None}

    return _judged(evidence, severity)


def verbatim(evidence: Evidence) -> pl.DataFrame:
    """1 where the caption is another one, to the letter."""
    rows = []
    for source, follow_up, row in _pairs(evidence):
        silent = not (source["caption"] or follow_up["caption"]) and evidence.options["empty"] == "leave"
        changed = float(source["caption"] != follow_up["caption"])
        rows.append(row | ({"severity": None, "reason": NOTHING_FOUND} if silent else {"severity": changed}))
    return pl.DataFrame(rows, schema={**VERDICT_COLUMNS, "draw": pl.Int32}, orient="row")


_DRAWS = Parameter("draws", "int", 1, low=1, high=1000, help="how many follow-ups a random transformation makes")
_READER = Parameter(
    "reader",
    "choice",
    "words",
    choices=("words", *PAPER_READERS),
    help="how captions are understood: by Instar, or as the code of MetaIC does, with 60 classes or 65",
)
_EMPTY = Parameter(
    "empty",
    "choice",
    "leave",
    choices=("leave", "keep"),
    help="a pair that names nothing, and should not: not judged, or a success as in papers",
)
_WORDS = Parameter("vocabulary", "text", "coco", help="the classes and their words: coco, or a TOML file of yours")

# fmt: off
RELATIONS: Mapping[str, Relation] = {
    relation.name: relation
    for relation in (
        Relation(
            "objects", "caption", objects, unit="classes wrong", threshold=1.0, grid=(1.0, 2.0, 3.0), mapping=False,
            title="objects in captions", details=("the caption should name: {expected}",),
            kinds=("misclassification", "omission", BOTH, "silent", "language"), measures=MEASURES,
            parameters=(_DRAWS,),
            meanings={
                "misclassification": "something is named that is not there",
                "omission": "something that is there is not named",
                BOTH: "something that is there is not named, and something is named that is not there",
                "silent": "the follow-up's caption is empty", "language": "the follow-up's caption is not English",
            },
            counted={
                "misclassification": "misclassifications", "omission": "omissions",
                BOTH: "misclassifications with omission", "language": "not in English",
            },
            options=(_READER, _WORDS, _EMPTY), classes="expected", by_class="by_class",
            marked=_marking("objects"), roles={role: _ROLES[role] for role in _ROLES if role != "number"},
            words="the caption must name the right objects",
            help="The follow-up's caption names the objects of the source's, and what was inserted.",
        ),
        Relation(
            "numbers", "caption", numbers, unit="classes wrong", threshold=1.0, grid=(1.0, 2.0, 3.0), mapping=False,
            title="grammatical number in captions", details=("the caption should name: {expected}",),
            kinds=("number",), measures=MEASURES, parameters=(_DRAWS,),
            meanings={"number": "one is called many, or many one"}, counted={"number": "wrong numbers"},
            options=(
                _READER, _WORDS, _EMPTY,
                Parameter(
                    "numbers", "choice", "shared", choices=("shared", "agreed"),
                    help="judge every class that both captions name, or only pairs that name the same classes",
                ),
            ),
            marked=_marking("numbers"), roles={role: _ROLES[role] for role in ("kept", "added", "number")},
            words="the caption must tell one from many",
            help="Objects keep their grammatical number; what was inserted is one, or many if one was there.",
        ),
        Relation(
            "verbatim", "caption", verbatim, unit="captions changed", threshold=1.0, grid=(1.0,), mapping=False,
            title="captions word for word",
            measures={"draw": pl.Int32}, parameters=(_DRAWS,), options=(_EMPTY,), marked=_marked_verbatim,
            words="the caption must stay word for word",
            help="The caption stays the same, to the letter.",
        ),
    )
}
# fmt: on
