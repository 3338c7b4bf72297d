"""What is shown of hand pose: what each test case costs, figures, tables and advice; of one run or of several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from instar.analysis import Run
from instar.engine import SOURCE
from instar.report.compared import common_words, run_names
from instar.report.finding import Finding
from instar.report.panels import Choice, Panel, PanelContent, PaperFigure, Table, TaskTables
from instar.report.section import Section
from instar.report.sentences import over_cases_text
from instar.report.words import hundredths, interval, percent, severity_text
from instar.store import Row
from instar.tasks.hand_pose.analysis import hand_advice, hand_counts, hand_frames
from instar.tasks.hand_pose.comparison import compared, references, response_comparison
from instar.tasks.hand_pose.counts import HandCounts
from instar.tasks.hand_pose.figures import (
    SERIES,
    bars_by_test_case,
    compared_responses,
    finger_bars,
    pck_curves,
    purpose_bars,
    response_curves,
    run_bars,
)
from instar.tasks.hand_pose.follow_ups import GROUPS, RESPONSE, accuracy_rules
from instar.tasks.hand_pose.response import RESPONDING
from instar.tasks.hand_pose.sentences import HARMLESS

Frames = Mapping[str, pl.DataFrame]

_SHARES = ("hand_precision", "hand_recall", "hand_f1", "precision", "recall", "f1")
_UNITS = {"part": "sizes of the hand", "box": "sizes of its box", "image": "image diagonals", "pixels": "pixels"}


def _relation(run: Run) -> str | None:
    """The relation that hands are shown under: `accuracy`, else the first that is about poses; None where none is, or
    where the system answered nothing."""
    names = list(run.grids()) if accuracy_rules(run) and run.manifest.output is not None else []
    return "accuracy" if "accuracy" in names else next(iter(names), None)


def _of_relation(run: Run, section: Section, judging: str) -> PanelContent | None:
    """What is shown of one run."""
    if section.relation != _relation(run):
        return None
    frames, counts = hand_frames(run, judging=judging), hand_counts(run, judging)
    if frames["measures"]["value"].is_null().all():
        return None
    charts = (
        response_curves(frames["response"], section),
        bars_by_test_case(frames["measures"], section),
        pck_curves(frames["pck"], counts.options, section),
        finger_bars(frames["fingers"], section),
    )
    tables = _tables_of_run(frames, counts)
    return PanelContent("How well it finds hands", _text([counts]), [chart for chart in charts if chart], tables)


def _remarks(run: Run, judging: str) -> list[Finding]:
    """What follows from the numbers, and from which."""
    if _relation(run) is None:
        return []
    advice = hand_advice(run, judging=judging)
    return [
        Finding(f"hands.{ground}", words, ground not in HARMLESS, {"because": because})
        for (ground, because), words in zip(
            advice.select("ground", "because").iter_rows(), _sentences(advice), strict=True
        )
    ]


def _of_runs(runs: Sequence[Run], names: Sequence[str], section: Section, judging: str) -> PanelContent | None:
    """The same of several runs beside each other, and which of them to prefer for what."""
    if section.relation != _relation(runs[0]):
        return None
    counts = {name: hand_counts(run, judging) for name, run in zip(names, runs, strict=True)}
    frames, paired = compared(counts)
    cases = _common(frames, paired)
    charts = [run_bars(frames["measures"], names, section, cases), purpose_bars(frames["groups"], names, section)]
    tables = [_advice_table(frames["advice"]), *_tables_of_runs(frames, counts)]
    return PanelContent("Which one for what", f"{_text(list(counts.values()))} {cases}", charts, tables)


def _printed(runs: Sequence[Run], judging: str, p: float) -> TaskTables | None:
    """Tables II and III, what each test case costs and the advice, of one run or of several."""
    if _relation(runs[0]) is None:
        return None
    counts = [hand_counts(run, judging) for run in runs]
    if len(runs) == 1:
        frames = hand_frames(runs[0], judging=judging)
        tables, before = _tables_of_run(frames, counts[0]), [_text(counts)]
    else:
        named = dict(zip(run_names(runs), counts, strict=True))
        frames, paired = compared(named)
        tables, before = _tables_of_runs(frames, named), [f"{_text(counts)} {_common(frames, paired)}"]
    advice = [f"* {sentence}" for sentence in _sentences(frames["advice"])]
    return TaskTables(tables, frames, before=before, after=advice)


def _tables_of_run(frames: Frames, counts: HandCounts) -> list[Table]:
    tables = [
        *_baselines({"": frames["baselines"]}, [counts]),
        _costs(frames["measures"], counts),
        _finger_shares(frames["fingers"]),
        _crucial(frames["crucial"]),
        _relations(frames["over_cases"]),
    ]
    return [table for table in tables if table.rows]


def _tables_of_runs(frames: Frames, counts: Mapping[str, HandCounts]) -> list[Table]:
    by_run = frames["baselines"].group_by("run", maintain_order=True)
    baselines = _baselines({str(name): part for (name,), part in by_run}, list(counts.values()))
    return [*baselines, _side_by_side(frames["measures"], counts)]


# --- words -----------------------------------------------------------------------------------------


def _text(counts: Sequence[HandCounts]) -> str:
    """What the numbers are measured against, and by."""
    options = counts[0].options
    objects = [each.cases["object"] for each in counts if each.cases["object"].dtype == pl.Boolean]
    some = any(column.any() and not column.fill_null(False).all() for column in objects)
    score = f" with a score of at least {options['confidence']:g}" if options["confidence"] > 0 else ""
    knuckle = " (wrist to middle knuckle)" if options["normaliser"] == "part" else ""
    return (
        f"Measured against {references(*counts)}. A landmark is right where it is nearer than {options['within']:g} "
        f"{_UNITS[options['normaliser']]}{knuckle}, a hand where the boxes around the landmarks overlap by more than "
        f"{options['iou']:g}; what is not found{score} is missing. Intervals are 95 % intervals over "
        "a thousand resamples of the cases."
        + (" Cases whose attribute object is true are in the baselines only." if some else "")
    )


def _no_margin(counts: Sequence[HandCounts]) -> str:
    """That these numbers cut at the confidence, where rules of the same run allow a margin below it."""
    confidence, margin = counts[0].options["confidence"], max(each.margin for each in counts)
    if not confidence or not margin:
        return ""
    return (
        f". These numbers have no margin of score: a hand that scores less than {confidence:g} is missing, as for "
        f"everybody who cuts there. Rules tolerate a score that changes by no more than {margin:g}, so that a change "
        "that violates no rule may still cost F1"
    )


def _common(frames: Frames, paired: bool) -> str:
    """On how many cases runs are compared."""
    f1 = frames["measures"].filter(pl.col("measure") == "f1", pl.col("follow_up") == SOURCE)
    judged = dict(f1.select("run", "cases").iter_rows())
    if paired:
        return f"The runs are compared on {common_words(min(judged.values()))}."
    each = ", ".join(f"{name} {cases:,}" for name, cases in judged.items())
    return f"The runs have no case in common, and each has its own: {each}."


def _advice_table(advice: pl.DataFrame) -> Table:
    return Table("What follows, and from which numbers", ["advice"], [[sentence] for sentence in _sentences(advice)])


def _sentences(advice: pl.DataFrame) -> list[str]:
    """Advice, each followed by the numbers that it follows from."""
    return [
        f"{says} {because[0].upper()}{because[1:]}." for says, because in advice.select("says", "because").iter_rows()
    ]


def _percent(row: Row | None) -> str:
    """A share in per cent with its interval."""
    if row is None or row["value"] is None:
        return "–"
    share = percent(row["value"], digits=int(row["value"] < 1), sign=False)  # 100, not 100.0: tables are wide
    return f"{share} ({interval(row['low'], row['high'])})"


def _distance(row: Row) -> str:
    return "–" if row["value"] is None else f"{row['value']:.2f} ({row['low']:.2f}–{row['high']:.2f})"


def _lost(row: Row) -> str:
    if row["lost"] is None or row["follow_up"] == SOURCE:
        return "–"
    return f"{100 * row['lost']:z.1f} ({hundredths(row['lost_low'])} to {hundredths(row['lost_high'])})"


# --- tables ----------------------------------------------------------------------------------------

_SLICES = {"without objects": "hands without objects (Table II)", "with objects": "hands with objects (Table III)"}


def _by_measure(table: pl.DataFrame, *keys: str) -> Iterator[tuple[tuple[object, ...], dict[str, Row]]]:
    """The rows of a frame by some columns, and then by measure."""
    for key, part in table.group_by(*keys, maintain_order=True):
        yield key, {row["measure"]: row for row in part.iter_rows(named=True)}


def _baselines(runs: Mapping[str, pl.DataFrame], counts: Sequence[HandCounts]) -> list[Table]:
    """Tables II and III; one of all hands where nothing says which of them hold an object.

    None where nothing is annotated: against itself, every system is perfect.
    """
    if not any("truth" in each.cases["reference"] for each in counts):
        return []
    rows: dict[str, list[list[str]]] = {}
    for run, table in runs.items():
        for (name,), measures in _by_measure(table, "hands"):
            cells = [str(measures["f1"]["cases"]), *(_percent(measures[one]) for one in (*_SHARES, "auc"))]
            rows.setdefault(str(name), []).append([run, *cells] if len(runs) > 1 else cells)
    heads = [f"{what} {measure}" for what in ("hand", "mark") for measure in ("P", "R", "F1")]
    return [
        Table(
            f"Baseline of {_SLICES.get(name, name)}, in % with 95 % intervals: precision, recall and F1 of "
            "hands and of landmarks, and the area under the PCK curve",
            [*(["system"] if len(runs) > 1 else []), "cases", *heads, "PCK"],
            rows[name],
        )
        for name in list(rows)[len(rows) > 1 :]
    ]


def _cells(row: Mapping[str, Row]) -> list[str]:
    """The measures of a test case, and what it loses."""
    return [
        _percent(row["f1"]),
        _lost(row["f1"]),
        *(_percent(row[name]) for name in ("precision", "recall", "hand_f1")),
    ]


def _costs(table: pl.DataFrame, counts: HandCounts) -> Table:
    """What each test case costs, without the levels of TC1: those are a curve."""
    rows = [
        [row["f1"]["title"], str(row["f1"]["cases"]), *_cells(row), _distance(row["error"])]
        for _, row in _by_measure(table.filter(pl.col("group") != RESPONSE), "follow_up")
    ]
    return Table(
        "Test cases, in % with 95 % intervals; lost: points of F1 less than the source of the same cases; error in "
        f"{_UNITS[counts.options['normaliser']]}{_no_margin([counts])}",
        ["test case", "cases", "F1", "lost", "precision", "recall", "hand F1", "error"],
        rows,
    )


def _side_by_side(table: pl.DataFrame, counts: Mapping[str, HandCounts]) -> Table:
    """Systems × test cases × measures; of systems that are measured against different references each with its own."""
    measures = dict(_by_measure(table.filter(pl.col("group") != RESPONSE), "follow_up", "run"))
    runs = list(dict.fromkeys(table["run"]))
    against = {name: references(each) for name, each in counts.items()}
    differ = len(set(against.values())) > 1
    rows: list[list[str]] = []
    for follow_up in dict.fromkeys(follow_up for follow_up, _ in measures):
        there = [(run, measures[follow_up, run]) for run in runs if (follow_up, run) in measures]
        for place, (run, row) in enumerate(there):
            system = [run, *([against[run] or "–"] if differ else [])]
            rows.append(["" if place else row["f1"]["title"], *system, *_cells(row)])
    return Table(
        "Test cases by system, in % with 95 % intervals; lost: points of F1 less than the source of the same cases"
        + _no_margin(list(counts.values())),
        ["test case", "system", *(["against"] if differ else []), "F1", "lost", "precision", "recall", "hand F1"],
        rows,
    )


def _finger_shares(table: pl.DataFrame) -> Table:
    series = [name for name in SERIES if name in set(table["of"])]
    shares = {(row["of"], row["finger"]): row for row in table.filter(measure="right").iter_rows(named=True)}
    rows = [
        [finger, *(_percent(shares.get((name, finger))) for name in series)]
        for finger in dict.fromkeys(table["finger"])
        if shares[SOURCE, finger]["value"] is not None
    ]
    return Table(
        "Landmarks that are right, by finger, in % with 95 % intervals",
        ["finger", "source", *(GROUPS[name] for name in series[1:])],
        rows,
    )


def _crucial(table: pl.DataFrame) -> Table:
    rows = [
        [
            {"f1": "F1"}.get(row["measure"], row["measure"]),
            str(row["cases"]),
            *(f"{100 * row[name]:z.1f}" for name in ("completing", "others")),
            f"{100 * row['value']:+z.1f} ({100 * row['low']:+z.1f} to {100 * row['high']:+z.1f})",
        ]
        for row in table.drop_nulls("value").iter_rows(named=True)
    ]
    return Table(
        "TC1, crucial points: what one more covered landmark costs in points, where it completes a finger (5, 9, "
        "13, 17, 21) and elsewhere, and the difference with its 95 % interval",
        ["measure", "cases", "completing", "elsewhere", "difference"],
        rows,
    )


def _relations(table: pl.DataFrame) -> Table:
    """The rules over many cases, with what they measured and its interval."""
    rows = [
        [row["title"], severity_text(row["severity"]), over_cases_text(row) or row["reason"] or "–"]
        for row in table.with_columns(pl.col("cases").cast(pl.Int64)).iter_rows(named=True)
    ]
    return Table(
        "Rules over all cases: severity 0 is kept; r and ρ of F1 with the level, or which part of the source's F1 is "
        "lost, with 95 % intervals. These are over the cases in which there is a hand or an answer, those of the other "
        "tables over all cases, so that the two may differ",
        ["test case", "severity", "measured"],
        rows,
    )


# --- figures of the paper --------------------------------------------------------------------------


def _responses(runs: Sequence[Run], choice: Choice) -> TaskTables:
    """Figure 4: TC1 of one system or several, in every measure of landmarks and of hands."""
    counts = {name: hand_counts(run, choice.judging) for name, run in zip(run_names(runs), runs, strict=True)}
    frame = response_comparison(counts)
    without = [name for name in counts if name not in set(frame["run"])]
    if without:
        raise ValueError(
            f"{', '.join(without)}: no case was judged at every level of TC1, discs(1) to discs(21); "
            "the suite hand-pose has these rules"
        )
    cells = {
        key: {row["measure"]: row for row in part.iter_rows(named=True)}
        for key, part in frame.group_by("n", "run", maintain_order=True)
    }
    rows = [
        [str(n), name, *(_percent(cells[n, name][measure]) for measure in RESPONDING)]
        for n in frame["n"].unique().sort()
        for name in counts
        if (n, name) in cells
    ]
    heads = [
        "covered",
        "system",
        *(f"mark {name}" for name in ("P", "R", "F1")),
        *(f"hand {name}" for name in ("P", "R", "F1")),
    ]
    judged = frame.unique("run", maintain_order=True).select("run", "cases").iter_rows()
    cases = ", ".join(f"{name} {number:,}" for name, number in judged)
    caption = (
        "TC1 by landmarks covered, in % with 95 % intervals: precision, recall and F1 of landmarks and of hands. "
        f"Cases: {cases}"
    )
    chart, before = compared_responses(frame, list(counts)), [_text(list(counts.values()))]
    return TaskTables([Table(caption, heads, rows)], {"response": frame}, before=before, chart=chart)


FIGURES: Mapping[str, PaperFigure] = {
    "4": PaperFigure("TC1, the response to covering, of one system or several", _responses, several=True)
}
PANELS: Mapping[str, Panel] = {
    "hands": Panel(
        _of_relation, of_runs=_of_runs, tables=_printed, several=True, remarks=_remarks, figures=FIGURES, kind="poses"
    )
}
