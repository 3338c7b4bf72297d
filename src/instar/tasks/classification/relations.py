"""class_kept: the source's class is still the follow-up's, and its score has not fallen."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from instar.outputs.labels import Labels
from instar.relations import Row
from instar.relations.pairing import DRAWS, paired, per_pair
from instar.relations.relation import Evidence, Relation
from instar.spelling import Parameter

MEASURES = {"source_class": pl.String, "class": pl.String, "source_score": pl.Float64, "score": pl.Float64}
"""The best class of both answers, and the scores of the *source's* class in both."""


def class_kept(evidence: Evidence) -> pl.DataFrame:
    """How far the score of the source's class fell, as a share of it; from 1 up where the class is another one.

    A class that is no longer among the first `top` costs 1 and the lead of the new best class over it. So a threshold
    of 1 asks whether the class changed, one of 1.1 whether it changed by a margin of 0.1, and one of 0.5 whether half
    of the score was lost.
    """
    follow_ups = paired(evidence)
    sources = evidence.sources.to_dicts()
    rows = []
    for number, row in enumerate(follow_ups.iter_rows(named=True)):
        source = Labels.from_row(sources[row["source"]], evidence.header).confident(evidence.options["confidence"])
        follow_up = Labels.from_row(row, evidence.header).confident(evidence.options["confidence"])
        rows.append({"row": number, "target": "whole", **_verdict(source, follow_up, evidence.options["top"])})
    return per_pair(rows, follow_ups, MEASURES)


def _verdict(source: Labels, follow_up: Labels, top: int) -> Row:
    if not source.classes and not follow_up.classes:
        return {"severity": None, "reason": "no class is named in either image"}
    if not source.classes or not follow_up.classes:
        return {"severity": float("inf"), "kind": "lost" if source.classes else "invented"}
    expected = source.classes[0]
    before, after = source.score_of(expected), follow_up.score_of(expected)
    fall = max(0.0, 1.0 - after / before) if before > 0 else 0.0
    kept = expected in follow_up.classes[:top]
    lead = max(0.0, follow_up.score_of(follow_up.classes[0]) - after)
    return {
        "severity": fall if kept else 1.0 + lead,
        "kind": None if kept else "class",
        "source_class": expected,
        "class": follow_up.classes[0],
        "source_score": before,
        "score": after,
    }


RELATIONS: Mapping[str, Relation] = {
    "class_kept": Relation(
        "class_kept",
        "labels",
        class_kept,
        unit="share of the score of the source's class that was lost, 1 and more where the class is another one",
        threshold=1.0,
        grid=(0.1, 0.25, 0.5, 0.75, 1.0, 1.1, 1.25, 1.5),
        kinds=("class", "lost", "invented"),
        measures=MEASURES,
        parameters=DRAWS,
        options=(
            Parameter(
                "top", "int", 1, low=1, high=100, help="how many of the best classes may hold the source's class"
            ),
            Parameter("confidence", "float", 0.0, low=0, high=1, help="classes below this score are not named"),
        ),
        help="The class of the image stays, and the system stays as sure of it.",
    )
}
