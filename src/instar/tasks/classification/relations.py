"""class_kept: the source's class is still the follow-up's, and its score has not fallen."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import polars as pl

from instar.outputs.labels import Labels
from instar.outputs.sides import exchanged_sides
from instar.relations import MarkedPair, Row, Segment
from instar.relations.pairing import DRAWS, paired, per_pair
from instar.relations.relation import NOTHING_FOUND, Evidence, Relation
from instar.spelling import Parameter

MEASURES = {
    "source_class": pl.String,
    "expected": pl.String,
    "class": pl.String,
    "source_score": pl.Float64,
    "follow_up_score": pl.Float64,
    "first_class": pl.String,
    "exchanged": pl.String,
    "undecided": pl.Boolean,
}
"""The class that comes first in the source, the one that is expected of the follow-up (`right` of `left` under a
mirror), the best one of the follow-up, and the scores of the *expected* class in both. `first_class` comes first in the
follow-up; `class` is the expected one where the two are as good as equal. `exchanged` is the expected class where a
mirror makes it another one than the source's. `undecided`: in both answers nearly every
known class is as good as the first, so that nearly any other one would be forgiven."""

SURE = 0.5
"""A fall is a share of the source's score, or of this one where the source was less sure: it had little to lose."""
NEARLY_ALL = 0.75
"""Of the classes that a system names: more than this share, and none of them is told from the others."""


def class_kept(evidence: Evidence) -> pl.DataFrame:
    """How far the score of the source's class fell, as a share of it; from 1 up where the class is another one.

    A class that is no longer among the first `top` costs 1 and the lead of the new best class over it. So a threshold
    of 1 asks whether the class changed, one of 1.1 whether it changed by a margin of 0.1, and one of 0.5 whether half
    of the score was lost. Two classes that are as good as equal in both images may change places.
    """
    follow_ups = paired(evidence)
    sources, options = evidence.sources.to_dicts(), evidence.options
    names = _names(evidence.sources) | _names(follow_ups)
    rows = []
    for number, row in enumerate(follow_ups.iter_rows(named=True)):
        own = Labels.from_row(sources[row["source"]], evidence.header).confident(options["confidence"])
        follow_up = Labels.from_row(row, evidence.header).confident(options["confidence"])
        source = own.mirrored(names) if mirrors(row["warp"]) else own
        verdict = _verdict(source, follow_up, options["top"], options["margin"])
        undecided = all(_undecided(answer, names, options["margin"]) for answer in (source, follow_up))
        first = own.classes[0] if own.classes else None
        exchanged = source.classes[0] if own.classes and source.classes[0] != first else None
        if exchanged and verdict.get("kind") == "class" and verdict["class"] == first:
            verdict = {**verdict, "kind": "side"}
        measures = {"source_class": first, "exchanged": exchanged, "undecided": undecided}
        rows.append({"row": number, "target": "whole", **verdict, **measures})
    return per_pair(rows, follow_ups, MEASURES)


def mirrors(warp: Sequence[float] | None) -> bool:
    """Whether a stored warp exchanges left and right; a row without one was not moved."""
    return warp is not None and len(warp) > 0 and bool(np.linalg.det(np.reshape(warp, (3, 3))) < 0)


def _names(answers: pl.DataFrame) -> set[str]:
    return set(answers["classes"].explode().drop_nulls())


def _verdict(source: Labels, follow_up: Labels, top: int, margin: float) -> Row:
    if not source.classes and not follow_up.classes:
        return {"severity": None, "reason": NOTHING_FOUND}
    if not source.classes or not follow_up.classes:
        return {"severity": float("inf"), "kind": "lost" if source.classes else "invented"}
    expected, best = source.classes[0], follow_up.classes[0]
    before, after = source.score_of(expected), follow_up.score_of(expected)
    tied = all(_tied(answer, expected, best, margin) for answer in (source, follow_up))
    changed = not tied and expected not in follow_up.classes[:top]
    fall = max(0.0, before - after) / max(before, SURE) if tied or best == expected else 0.0
    return {
        "severity": 1.0 + follow_up.score_of(best) - after if changed else fall,
        "kind": "class" if changed else None,
        "expected": expected,
        "class": expected if tied else best,
        "source_score": before,
        "follow_up_score": after,
        "first_class": best,
    }


def _undecided(answer: Labels, names: Collection[str], margin: float) -> bool:
    """Whether an answer can hardly tell its first class from nearly all that are known. A set of words without scores
    is no such answer, as long as there are other words."""
    tied = int((answer.scores >= (1 - margin) * answer.scores.max(initial=0.0)).sum())
    return tied > max(1.0, NEARLY_ALL * len(names))


def _tied(answer: Labels, one: str, other: str, margin: float) -> bool:
    """Whether an answer can hardly tell two classes apart: the lower score is nearly the higher one."""
    low, high = sorted((answer.score_of(one), answer.score_of(other)))
    return high > 0 and low >= (1 - margin) * high


def _marked(source: Row, follow_up: Row, options: Row, verdict: Row) -> MarkedPair:
    """The best classes of both answers; those that came first are marked."""
    before, after = (
        list(zip(row["classes"] or (), row["scores"] or (), strict=True))[:_SHOWN] for row in (source, follow_up)
    )
    old, new = (best[0][0] if best else "" for best in (before, after))
    own, answer = (Labels.from_row(row, {}) for row in (source, follow_up))
    if mirrors(follow_up["warp"]):
        names = {*own.classes, *answer.classes}
        # these two answers may not name the other side; the verdict knows all classes of the run
        own = own.mirrored(names | {exchanged_sides(old)} if verdict.get("kind") == "side" else names)
    expected = own.classes[0] if own.classes else ""
    kept = expected == new
    tied = not kept and all(_tied(each, expected, new, options["margin"]) for each in (own, answer))
    return MarkedPair(
        _segments(before, old, "kept" if kept else "missing"),
        _segments(after, new, "kept" if kept else "extra"),
        (
            _first_words(old, expected, new, own.score_of(expected), answer.score_of(expected))
            + (f": a near tie, forgiven by the margin of {options['margin']:g}" if tied else ""),
        ),
    )


def _first_words(old: str, expected: str, new: str, before: float, after: float) -> str:
    """What came first, what had to come first, and what does; the scores are those of the expected class."""
    if expected != old:
        words = f"{expected} was expected of the mirrored image, with the score {before:.2f} of {old} in the source"
        here = "comes first" if expected == new else f"has {after:.2f}, and {new or 'no class'} comes first"
        return f"{words}; it {here}"
    return (
        f"{old} still comes first"
        if old and old == new
        else f"{old or 'no class'} came first, now {new or 'no class'} does"
    )


def _segments(best: Sequence[tuple[str, float]], first: str, role: str) -> tuple[Segment, ...]:
    parts = []
    for place, (name, score) in enumerate(best):
        parts += [Segment(", " if place else ""), Segment(name, role if name == first else "", _ROLES[role])]
        parts.append(Segment(f" ({score:.2f})"))
    return tuple(parts) or (Segment("no class"),)


_SHOWN = 3
"""Classes of an answer that are shown beside its image."""
_ROLES = {
    "kept": "first, and kept as expected",
    "missing": "first in the source, and not kept",
    "extra": "first in the follow-up, and not expected",
}

# fmt: off
RELATIONS: Mapping[str, Relation] = {
    "class_kept": Relation(
        "class_kept", "labels", class_kept, threshold=0.5,
        unit="shares of the class's score lost; from 1 up: another class leads by the rest", title="class of the image",
        grid=(0.1, 0.25, 0.5, 0.75, 1.0, 1.1, 1.25, 1.5), kinds=("class", "side", "lost", "invented"),
        measures=MEASURES,
        meanings={
            "class": "another class comes first",
            "side": "left and right of the class are not exchanged in the mirrored image",
            "lost": "no class is named any more",
            "invented": "a class is named where none was",
        },
        counted={"class": "of another class", "side": "with the side not exchanged"},
        details=(
            "{source_class} comes first in the source, {first_class} in the follow-up",
            "{exchanged} was expected of the mirrored image",
        ),
        parameters=DRAWS, classes="source_class", forgiven="undecided", marked=_marked, roles=_ROLES,
        options=(
            Parameter(
                "top", "int", 1, low=1, high=100, help="how many of the best classes may hold the source's class"
            ),
            Parameter("confidence", "float", 0.0, low=0, high=1, help="classes below this score are not named"),
            Parameter(
                "margin", "float", 0.2, low=0, high=1,
                help="two classes whose scores differ by no more than this share in both images may change places",
            ),
        ),
        help="The class of the image stays, and the system stays as sure of it. A severity below 1 is the share of its "
        "score that the class lost; from 1 on another class comes first, and what is above 1 is its lead.",
    )
}
# fmt: on
