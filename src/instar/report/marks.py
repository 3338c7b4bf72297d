"""The answers of pairs with their words marked, where the relation of a verdict comments on words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from instar.engine import DEFAULT, SOURCE, bound_rules, stored_judging
from instar.relations import MarkedPair, Relation, Row, relations
from instar.store import Store


def roles_of(relation: str) -> Mapping[str, str]:
    """What the marks of a relation mean, in the order in which a legend has them."""
    return relations()[relation].roles


def marked_pairs(store: Store, verdicts: Sequence[Row], judging: str = DEFAULT) -> list[MarkedPair | None]:
    """The marked answers of each verdict's pair; None where its relation marks nothing, or an answer is missing.

    A verdict has `case` and `rule`, and may have the `draw` that shows it and its `kind`.
    """
    manifest, options = store.manifest(), stored_judging(store, judging)
    marking: dict[str, tuple[Relation, str]] = {}
    for rule in bound_rules({verdict["rule"] for verdict in verdicts}, manifest.system.kind):
        assert rule.relation is not None
        if rule.relation.relation.marked is not None:
            marking[rule.id] = rule.relation.relation, rule.transformations[0].id
    cases = list({verdict["case"] for verdict in verdicts if verdict["rule"] in marking})
    if not cases:
        return [None] * len(verdicts)
    answered = pl.col("case").is_in(cases) & (pl.col("repeat") == 0) & (pl.col("status") == "ok")
    rows = {
        (row["case"], row["follow_up"], row["draw"]): row
        for row in store.predictions(where=answered).iter_rows(named=True)
    }
    pairs: list[MarkedPair | None] = []
    for verdict in verdicts:
        relation, change = marking.get(verdict["rule"], (None, ""))
        source = rows.get((verdict["case"], SOURCE, 0))
        follow_up = rows.get((verdict["case"], change, verdict.get("draw") or 0))
        if relation is None or relation.marked is None or source is None or follow_up is None:
            pairs.append(None)
        else:
            pairs.append(relation.marked(source, follow_up, options.of(relation), verdict))
    return pairs
