"""What is shown of TrajTest: the tables of its paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from instar.analysis import Run
from instar.relations import named_rule
from instar.report.finding import Finding
from instar.report.panels import Choice, Panel, PanelContent, PaperFigure, Table, TaskTables
from instar.report.words import count_of, interval, percent
from instar.store import Row
from instar.tasks.traj_test.analysis import trajectory_tables
from instar.tasks.traj_test.courses import course_findings
from instar.tasks.traj_test.figures import agreement_curves
from instar.tasks.traj_test.plausible import ONE_ANSWER

_MEASURES = {"best_ade": "best ADE", "best_fde": "best FDE", "mean_ade": "mean ADE", "mean_fde": "mean FDE"}
_USUAL_P = 0.05


def _of_run(run: Run, judging: str) -> PanelContent | None:
    tables = [table for table in _in_words(trajectory_tables(run, p=_USUAL_P, judging=judging), _USUAL_P) if table.rows]
    return PanelContent("TrajTest's tables", tables=tables) if tables else None


def _tables(runs: Sequence[Run], judging: str, p: float) -> TaskTables:
    frames = trajectory_tables(runs[0], p=p, judging=judging)
    numbers = {name: frame for name, frame in frames.items() if name != "displacement"}
    if not _untested(frames):
        return TaskTables(_in_words(frames, p), numbers)
    return TaskTables(_in_words(frames, p), numbers, before=[_without_tests(runs[0], judging)])


def _untested(frames: Mapping[str, pl.DataFrame]) -> bool:
    """Whether changes that move all alike were asked, and no case of them has a p."""
    preserving = frames["preserving"]
    return not preserving.is_empty() and not preserving["cases"].sum()


def _without_tests(run: Run, judging: str) -> str:
    """Why there are no tests, and what was judged instead."""
    verdicts = run.verdicts(judging)
    of_futures = verdicts.filter(pl.col("rule").is_in(_rules_of_futures(run)) & pl.col("severity").is_not_null())
    cases = count_of(of_futures["case"].n_unique(), "case")
    why = (
        "The system is deterministic: it answers the same scene with the same futures every time"
        if run.manifest.system.deterministic
        else "No two predictions of the same scene differ, or there is one prediction of each"
    )
    return (
        f"{why}, so that there is nothing to test, no p, and no table of tests. Of changes that move everything alike "
        f"{cases} {'was' if of_futures['case'].n_unique() == 1 else 'were'} judged by the distance between futures "
        "instead; `instar show` has the rate of violations of each rule."
    )


def _rules_of_futures(run: Run) -> list[str]:
    return [text for text in run.manifest.rules if (one := named_rule(text).relation) and one.relation.name == "wvc"]


def _in_words(frames: Mapping[str, pl.DataFrame], p: float) -> list[Table]:
    tested = not _untested(frames)
    tables = [*([_preserving(frames["preserving"], p)] if tested else []), _map(frames["map"])]
    if "agreement" in frames:
        tables += [*([_agreement(frames["agreement"])] if tested else []), _displacement(frames["displacement"])]
    return tables


def _share(share: float | None) -> str:
    return percent(share, digits=1, sign=False)


def _rate(share: float | None, low: float | None, high: float | None) -> str:
    return "–" if share is None else f"{_share(share)} ({interval(low, high)})"


def _mean(middle: float | None, spread: float | None) -> str:
    if middle is None:
        return "–"
    return f"{middle:.3f}" if spread is None else f"{middle:.3f} ± {spread:.3f}"


def _preserving(frame: pl.DataFrame, p: float) -> Table:
    apart = [name for name, measure in _OWN_CASES.items() if _other_cases(frame, name, measure)]
    rows = [
        [
            row["change"],
            str(row["cases"]),
            "–" if row["tests_per_case"] is None else f"{row['tests_per_case']:g}",
            _tested(row, p) or _rate(row["wvc"], row["wvc_low"], row["wvc_high"]),
            *(_tested(row, p) or _share(row[name]) for name in _MEASURES),
            _mean(row["hvc"], row["hvc_sd"]),
            *(str(row[name]) for name in apart),
        ]
        for row in frame.iter_rows(named=True)
    ]
    title = (
        f"Changes that move everything alike: violations at p ≤ {p:g} in % of the tests, those of futures (wvc) with "
        "their 95 % interval; ADE and FDE have one test for each of the same cases; the mean distance of the "
        "probability maps (hvc) ± its standard deviation"
    )
    if any(_tested(row, p) for row in frame.iter_rows(named=True)):
        title += ". p ≥ …: so few runs cannot show a smaller p, so that at this level nothing can be rejected"
    if apart:
        title += ". Some columns rest on other numbers of cases, which stand last"
    heads = {"displacement_cases": "cases of ADE, FDE", "hvc_cases": "cases of maps"}
    columns = [
        "change",
        "cases",
        "tests a case",
        "futures (wvc)",
        *_MEASURES.values(),
        "maps (hvc)",
        *(heads[name] for name in apart),
    ]
    return Table(title, columns, rows)


_OWN_CASES = {"displacement_cases": "best_ade", "hvc_cases": "hvc"}
"""Measures that may rest on other cases than wvc, by the column with their number."""


def _other_cases(frame: pl.DataFrame, number: str, measure: str) -> bool:
    """Whether a measure rests on another number of cases than wvc in any row that has it."""
    return not frame.filter(pl.col(measure).is_not_null() & (pl.col(number) != pl.col("cases"))).is_empty()


def _tested(row: Row, p: float) -> str | None:
    """The least p that a rule's tests can show, where that is above the level; else nothing."""
    return f"p ≥ {row['p_least']:.2g}" if row["p_least"] is not None and row["p_least"] > p else None


def _map(frame: pl.DataFrame) -> Table:
    rows = [
        [
            f"{row['change']}, {row['effect']}",
            str(row["judged"]),
            str(row["not_applicable"]),
            _rate(row["confirmed"], row["confirmed_low"], row["confirmed_high"]),
            *(_share(row[name]) for name in ("inconclusive", "wrong_way", "cases_crossing", "paths_crossing")),
            _mean(row["hellinger"], row["hellinger_sd"]),
        ]
        for row in frame.iter_rows(named=True)
    ]
    return Table(
        "Changes of the map: outcomes in % of the judged pairs, the confirmed ones with their 95 % interval; "
        "×: pairs and paths that cross an obstacle",
        ["change, effect", "judged", "n/a", "confirmed", "unclear", "wrong way", "pairs ×", "paths ×", "Hellinger"],
        rows,
    )


def _agreement(frame: pl.DataFrame) -> Table:
    rows = [
        [
            f"{row['p']:g}" + ", as published" * row["as_published"],
            _MEASURES[row["measure"]],
            str(row["pairs"]),
            *(_share(row[name]) for name in ("accuracy", "precision", "recall")),
        ]
        for row in frame.iter_rows(named=True)
    ]
    return Table(
        "How well the futures (wvc) predict that the displacement from the truth changed, in %, by the level of p",
        ["p", "measure", "pairs", "accuracy", "precision", "recall"],
        rows,
    )


def _displacement(frame: pl.DataFrame) -> Table:
    means = frame.select(*_MEASURES).mean().row(0, named=True) if not frame.is_empty() else {}
    return Table(
        f"Displacement of the source's predictions from the truth, mean over {frame['case'].n_unique()} cases",
        ["measure", "pixels"],
        [[_MEASURES[name], f"{value:.2f}"] for name, value in means.items()],
    )


def _remarks(run: Run, judging: str) -> list[Finding]:
    """To which side or how far futures stray; and that a system which takes a seed is deterministic, which is no
    fault."""
    courses = list(course_findings(run, judging))
    if run.over_cases(judging).filter(pl.col("reason") == ONE_ANSWER).is_empty():
        return courses
    words = (
        "The system takes a seed, and answers every scene with one future that is the same for every seed. It is taken "
        "to be deterministic: declare it with deterministic=True, and each input is predicted once. If it should draw "
        "its futures, hand the seed to whatever draws them."
    )
    return [*courses, Finding("trajectories.one_future", words)]


def _preserving_table(runs: Sequence[Run], choice: Choice) -> TaskTables:
    frame = trajectory_tables(runs[0], p=choice.p, judging=choice.judging)["preserving"]
    return TaskTables([_preserving(frame, choice.p)], {"preserving": frame})


def _map_table(runs: Sequence[Run], choice: Choice) -> TaskTables:
    frame = trajectory_tables(runs[0], p=choice.p, judging=choice.judging)["map"]
    return TaskTables([_map(frame)], {"map": frame})


def _agreement_figure(runs: Sequence[Run], choice: Choice) -> TaskTables:
    frames = trajectory_tables(runs[0], p=choice.p, judging=choice.judging)
    if "agreement" not in frames:
        raise ValueError(f"{runs[0].folder} has no ground truth, and so no displacements that wvc could agree with")
    frame = frames["agreement"]
    return TaskTables([_agreement(frame)], {"agreement": frame}, chart=agreement_curves(frame, _MEASURES))


FIGURES: Mapping[str, PaperFigure] = {
    "5": PaperFigure("how well wvc agrees with displacements from the truth", _agreement_figure),
    "table-3": PaperFigure("changes that move everything alike", _preserving_table),
    "table-4": PaperFigure("changes of the map", _map_table),
}
PANELS: Mapping[str, Panel] = {
    "trajtest": Panel(of_run=_of_run, tables=_tables, remarks=_remarks, figures=FIGURES, kind="forecast")
}
