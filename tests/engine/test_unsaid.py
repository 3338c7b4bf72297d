"""A relation that passes a pair over, as one of a plug-in may: the pair has a row all the same."""

from __future__ import annotations

import polars as pl

from instar.engine.judge import UNSAID, _unsaid
from instar.relations import VERDICT_COLUMNS, Evidence


def test_a_pair_that_a_relation_passes_over_is_not_applicable() -> None:
    sources = pl.DataFrame({"case": ["a", "b"], "repeat": [0, 0]})
    follow_ups = pl.DataFrame({"case": ["a", "b", "b", "c"], "follow_up": ["x", "x", "y", "x"]})
    seen = Evidence({}, pl.DataFrame(), sources, follow_ups, {}, {})
    judged = {"case": "b", "follow_up": "x", "target": "0", "severity": 0.5}
    verdicts = pl.DataFrame([judged], schema=dict(VERDICT_COLUMNS))
    unsaid = _unsaid(seen, verdicts)
    assert unsaid.rows() == [(case, name, "whole", "not applicable", UNSAID) for case, name in (("a", "x"), ("b", "y"))]
    assert _unsaid(seen, pl.DataFrame()).height == 3, "the source of c is still to be predicted"
