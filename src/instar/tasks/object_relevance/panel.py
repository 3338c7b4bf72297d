"""What a report shows of object relevance: which objects are found because of themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import polars as pl

from instar.analysis import Run
from instar.relations import named_rule
from instar.report.chart import Chart, Spec, curve_layers, drawn, share_axis, tooltip
from instar.report.finding import Finding
from instar.report.panels import Panel, PanelContent, Table, TaskTables
from instar.report.section import Section
from instar.report.words import count_of, listed, of_total, percent, rate_text
from instar.tasks.object_relevance.analysis import RELATION, class_names, object_table, objects_beyond
from instar.tasks.object_relevance.relations import OUTCOMES, RELATIONS

_UNRELIABLE = (
    "The system is unreliable about an object where at least two of three follow-ups go wrong. An object is 'missing' "
    "where nothing that matters was done to it and it is not found any more, 'incorrect' where it was not found in the "
    "source and is found now, and 'persists' where it was erased and is found all the same. An object that is found "
    "neither in the source nor in a follow-up does not count. An image counts once under each of these words that fits "
    "one of its objects, under 'none' where the system is reliable about at least one of its objects, as in the paper, "
    "and under 'no violation' where it is reliable about all of them."
)
_UNANNOTATED = (
    "This dataset has no annotated objects. The objects are what the system itself found in the source, with a score "
    "of at least the confidence of the judging."
)

FEWEST_RENAMED = 3
"""Objects that must have a box of another class on them before that is worth saying."""
_SHOWN_NAMES = 5


def _remarks(run: Run, judging: str) -> list[Finding]:
    """That boxes lie on most objects, and have other names than these: then rules about the objects look for what the
    system never says."""
    if run.rules().filter(relation=RELATION).is_empty():
        return []
    objects, own, others = class_names(run, judging)
    if others.total() < FEWEST_RENAMED or others.total() <= own:
        return []
    ranked = sorted(others.items(), key=lambda each: (-each[1], each[0]))
    named = [f"{label!r} is called {name!r} ({count_of(count, 'time')})" for (label, name), count in ranked]
    words = (
        f"{of_total(others.total(), objects, 'annotated object')} have a box on them that is of another class, and "
        f"none of their own: {listed(named, _SHOWN_NAMES)}.{'' if own else ' No object is found under its name.'} "
        "Class numbers and names may be counted from different places, or the dataset may spell its classes otherwise."
    )
    figures = {"renamed": others.total(), "objects": objects, "own": own}
    return [Finding("objects.renamed", words, True, figures)]


def _sentences(run: Run, judging: str) -> list[str]:
    sentences = [_UNRELIABLE] if run.manifest.truth else [_UNRELIABLE, _UNANNOTATED]
    options = run.judging(judging).of(RELATIONS[RELATION])
    if options["margin"] > 0:
        sentences.append(
            f"Still found are objects with a score of at least {options['confidence']:g}. Faint are those whose score "
            f"crosses that and changes by more than {options['margin']:g}; if it changes by less, they are neither "
            "found nor missing."
        )
    objects, images = objects_beyond(run)
    if objects:
        sentences.append(
            f"{count_of(objects, 'object')} of {count_of(images, 'image')} had no follow-up of their own: the rules of "
            "this run number fewer objects than these images have."
        )
    return sentences


def _of_relation(run: Run, section: Section, judging: str) -> PanelContent | None:
    if section.relation != RELATION:
        return None
    table = object_table(run, judging=judging)
    title, text = "Is it found because of itself?", " ".join(_sentences(run, judging))
    return PanelContent(title, text, _curves(table, section), [_table(table, run)])


def _tables(runs: Sequence[Run], judging: str, p: float) -> TaskTables | None:
    (run,) = runs
    if run.rules().filter(relation=RELATION).is_empty():
        return None
    table = object_table(run, judging=judging)
    return TaskTables([_table(table, run)], {"objects": table}, after=_sentences(run, judging))


def _table(table: pl.DataFrame, run: Run) -> Table:
    """The outcomes of object relevance, by object and by image."""
    every = "annotated" if run.manifest.truth else "detected"
    shown = [name for name in OUTCOMES if name not in ("faint", "unfound") or table[name].sum() > 0]
    objects = ("annotated", "found", *shown)
    images = ("images", *(f"images_{name}" for name in shown), "images_none", "images_clean")
    rows = [
        [
            _change(row["rule"]),
            *(f"{row[name]:,}" for name in objects),
            rate_text(row["of_found"], row["low"], row["high"]),
            percent(row["of_annotated"]),
            *(f"{row[name]:,}" for name in images),
            f"{row['tried']:,}",
            percent(row["still_found"]),
        ]
        for row in table.iter_rows(named=True)
    ]
    return Table(
        f"Each row is a change. The columns up to 'of {every}' count objects: all that are {every}; of those that were "
        "judged, the ones found in the source; and the ones with each outcome. 'unreliable of found' is the share of "
        "the objects found in the source about which the system is unreliable, with its 95 % interval, and "
        f"'of {every}' the share of all {every} ones. The columns from 'images' to 'no violation' count images. "
        "'tried' counts the objects found in the source, also those of which too little is erased to judge them, and "
        "'still found' is the share of their follow-ups in which they are found. In a row about the others, an object "
        "counts once for each other object that was erased",
        ["change", every, *objects[1:], "unreliable of found", f"of {every}", "images",
         *(f"{name}, images" for name in (*shown, "none")), "no violation", "tried", "still found"],
        rows,
    )  # fmt: skip


def _change(spelling: str) -> str:
    """The rule's change; with its relation where that is about the other objects."""
    left, _, relation = spelling.partition(" => ")
    return f"{left}: the others" if relation.startswith(f"{RELATION}(others") else left


def _curves(table: pl.DataFrame, section: Section) -> list[Chart]:
    """One figure per family of changes: unreliable objects and those still found, against its varied parameter."""
    charts = []
    for family, rules in section.families.items():
        steps = {text: named_rule(text).transformations[0].steps[0] for text in rules}
        varied = [
            p.name
            for p in next(iter(steps.values())).family.parameters
            if p.ordered and len({step.values[p.name] for step in steps.values()}) > 1
        ]
        if len(varied) == 1:
            levels = {text: float(step.values[varied[0]]) for text, step in steps.items()}
            rows = table.filter(pl.col("rule").is_in(rules)).with_columns(
                level=pl.col("rule").replace_strict(levels, return_dtype=pl.Float64)
            )
            charts.append(_curve(rows.sort("level"), family, varied[0], section))
    return charts


def _curve(table: pl.DataFrame, family: str, parameter: str, section: Section) -> Chart:
    labels = [f"{level:g}" for level in table["level"]]
    axis = {"values": list(range(len(labels))), "grid": False, "title": parameter, "labelOverlap": "greedy"}
    x: Spec = {
        "field": "place",
        "type": "quantitative",
        "scale": {"domain": [-0.3, len(labels) - 0.7], "nice": False},
        "axis": {**axis, "labelExpr": f"{json.dumps(labels)}[datum.value]"},
    }
    colour: Spec = {
        "field": "measure",
        "type": "nominal",
        "scale": {"domain": ["unreliable", "still found"], "range": ["var(--orange)", "var(--blue)"]},
        "legend": {"title": None, "orient": "bottom"},
    }
    dash: Spec = {"field": "measure", "type": "nominal", "legend": None, "scale": {"range": [[1, 0], [6, 3]]}}
    tips = tooltip(("measure", "objects"), ("level", parameter), ("count", "count"), ("rate", "share"))
    layers = curve_layers(x, share_axis("objects"), colour, tips, size=45, shade=0.18, strokeDash=dash)
    name = f"objects-{family}"
    return Chart(
        name,
        f"{family} by {parameter}",
        "Unreliable: of the objects found in the source, the share whose inference breaks the relation, with its 95 % "
        "interval. Still found: of the same objects, the share that is found in follow-ups; where too little is erased "
        "to judge any, of all objects found in the source.",
        drawn(220, section.start, layers, data={"name": name}),
        {name: _points(table)},
        330,
    )


def _points(table: pl.DataFrame) -> pl.DataFrame:
    """One row per level and curve."""
    place = pl.int_range(pl.len(), dtype=pl.Int32).alias("place")
    broken = pl.format("{}/{}", (pl.col("of_found") * pl.col("found")).round().cast(pl.Int64), "found")
    unreliable = table.select(
        place, "level", "low", "high", measure=pl.lit("unreliable"), rate="of_found", count=broken
    )
    tried = pl.format("of {}", "tried")
    still_found = table.select(place, "level", measure=pl.lit("still found"), rate="still_found", count=tried)
    return (
        pl.concat([unreliable, still_found], how="diagonal")
        .filter(pl.col("rate").is_not_null())
        .with_columns(level=pl.format("{}", pl.col("level").round(3).cast(pl.String).str.strip_suffix(".0")))
    )


PANELS: Mapping[str, Panel] = {
    "objects": Panel(of_relation=_of_relation, tables=_tables, remarks=_remarks, kind="detections")
}
