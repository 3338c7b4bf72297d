"""TC1: how measures respond to covering one landmark after another, and what completing a finger costs."""

from __future__ import annotations

import numpy as np
import polars as pl

from instar.tasks.hand_pose.counts import OTHER
from instar.tasks.hand_pose.measures import ANSWERING, LOST, VALUE, Row, Sums, interval_columns

COMPLETED = {5: "thumb", 9: "index", 13: "middle", 17: "ring", 21: "little"}
"""The crucial points: which finger the first n landmarks complete."""
RESPONDING = (*ANSWERING, "hand_precision", "hand_recall", "hand_f1")
"""The measures whose response to covering is shown."""


def response_frame(sums: Sums) -> pl.DataFrame:
    """Precision, recall and F1 of landmarks and of hands with n landmarks covered, and what each step of n costs."""
    rows: list[Row] = []
    covering = sums.covering
    for measure in RESPONDING if covering is not None else ():
        assert covering is not None
        names = covering.counts.landmarks
        values = np.stack([covering.values(measure, [place]) for place in covering.levels.values()], 1)
        steps = [dict.fromkeys(LOST), *interval_columns(values[:, :-1] - values[:, 1:], LOST)]
        rows += [
            {
                "n": n,
                "landmark": names[n - 1] if 0 < n <= len(names) and OTHER not in names else None,
                "completes": COMPLETED.get(n),
                "measure": measure,
                "cases": len(covering.counts.cases),
                **number,
                **step,
            }
            for n, number, step in zip(covering.levels, interval_columns(values), steps, strict=True)
        ]
    text = ("landmark", "completes", "measure")
    schema = {"n": pl.Int64, **dict.fromkeys(text, pl.String), "cases": pl.Int64}
    return pl.DataFrame(rows, schema={**schema, **dict.fromkeys((*VALUE, *LOST), pl.Float64)})


def crucial_frame(sums: Sums) -> pl.DataFrame:
    """What a step that completes a finger costs more than any other, per step."""
    rows: list[Row] = []
    covering = sums.covering
    levels = {} if covering is None else covering.levels
    steps = [n for n in levels if n and n - 1 in levels]
    completing = np.array([n in COMPLETED for n in steps], bool)
    for measure in ("recall", "f1") if completing.any() and not completing.all() else ():
        assert covering is not None
        values = {n: covering.values(measure, [place]) for n, place in levels.items()}
        lost = np.stack([values[n - 1] - values[n] for n in steps], 1)
        more = lost[:, completing].mean(1) - lost[:, ~completing].mean(1)
        means = {"completing": float(lost[0, completing].mean()), "others": float(lost[0, ~completing].mean())}
        counted = {"measure": measure, "cases": len(covering.counts.cases)}
        rows.append({**counted, **means, **interval_columns(more[:, None])[0]})
    schema = {"measure": pl.String, "cases": pl.Int64}
    return pl.DataFrame(rows, schema={**schema, **dict.fromkeys(("completing", "others", *VALUE), pl.Float64)})
