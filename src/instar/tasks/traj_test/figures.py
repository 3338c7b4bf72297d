"""The figure of TrajTest's paper that has numbers: how well wvc agrees with displacements from the truth."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from instar.report.chart import Chart, Spec, share_axis
from instar.report.words import SPACE

_SCORES = {"accuracy": "ink", "precision": "blue", "recall": "orange"}


def agreement_curves(table: pl.DataFrame, measures: Mapping[str, str]) -> Chart:
    """Figure 5: accuracy, precision and recall against the level of p, for each displacement."""
    published = pl.when("as_published").then(pl.lit(", as published")).otherwise(pl.lit(""))
    long = (
        table.with_columns(measure=pl.col("measure").replace(dict(measures)) + published)
        .unpivot(list(_SCORES), index=["p", "measure"], variable_name="score", value_name="rate")
        .drop_nulls("rate")
        .with_columns(level=pl.col("p").cast(pl.String))
    )
    axis: Spec = {"title": f"level of{SPACE}p", "labelAngle": 0, "ticks": False}
    x: Spec = {"field": "level", "type": "ordinal", "sort": {"field": "p", "op": "min"}, "axis": axis}
    colour: Spec = {
        "field": "score",
        "type": "nominal",
        "scale": {"domain": list(_SCORES), "range": [f"var(--{colour})" for colour in _SCORES.values()]},
        "legend": {"title": None, "orient": "bottom"},
    }
    facet: Spec = {
        "field": "measure",
        "type": "nominal",
        "sort": list(measures.values()),
        "columns": 2,
        "header": {"title": None, "labelFontSize": 13, "labelColor": "var(--ink)"},
    }
    encoding = {"x": x, "y": share_axis(""), "color": colour, "facet": facet}
    mark: Spec = {"type": "line", "point": {"filled": True, "size": 40}, "strokeWidth": 2.4}
    return Chart(
        "agreement",
        "How well wvc agrees with displacements from the truth",
        "Of the pairs whose displacement from the truth changed, by the same test at the same level of p, the share "
        "that wvc finds is the recall; of the pairs that wvc rejects, the share that changed is the precision.",
        {"width": 330, "height": 190, "mark": mark, "encoding": encoding, "data": {"name": "agreement"}},
        {"agreement": long},
        560,
    )
