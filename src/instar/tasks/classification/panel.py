"""What a report shows of a classifier: how often the class changes, into which, and how often it is right."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

import polars as pl

from instar.analysis import Run
from instar.engine import DEFAULT, SOURCE, SOURCE_ANSWERED
from instar.outputs.sides import other_side
from instar.report.finding import Finding
from instar.report.panels import Panel, PanelContent, Table, TaskTables
from instar.report.section import Section
from instar.report.words import SPACE, count_of, interval, listed, of_total, percent, rate_text
from instar.stats import wilson
from instar.tasks.classification.relations import RELATIONS, mirrors

MOST_CONFUSIONS = 20
ANOTHER = ("class", "side")
"""The kinds of verdicts on pairs whose follow-up has another class than the expected one."""
RELATION = "class_kept"
_NAMES = 5
"""Classes that a sentence names."""
_NEAR = 0.75
"""How alike two names must be to be called near: `cats` is near `cat`, and `left` is not near `toilet`."""
_COMPARED = 100
"""Classes of a system that are compared with those of a dataset: to compare thousands with each other takes seconds."""
FEWEST_CASES = 3
"""Images that must have the same answer before that is worth saying."""
FEWEST_RENAMED = 3
"""Classes that must each have one other name, in two cases or more, before names are called exchanged."""
EXPLAINED = 0.9
"""The share of the answers that exchanged names must explain."""
MOSTLY_WRONG = 0.5
"""Who is surely right less often than this may have names exchanged."""


def _verdicts(run: Run, judging: str) -> pl.DataFrame:
    rules = run.rules().filter(relation=RELATION)
    verdicts = run.verdicts(judging).filter(pl.col("severity").is_not_null())
    if rules.is_empty() or verdicts.is_empty():
        return pl.DataFrame(schema={"rule": pl.String, "name": pl.String})
    if not {"follow_up_score", "expected"} <= set(verdicts.columns):
        raise ValueError(
            f"the verdicts in {run.folder} were made by an earlier version of Instar, and lack what these "
            f"tables need. Delete the folder {run.folder / 'verdicts' / judging}: "
            f"`instar judge {shlex.quote(str(run.folder))}` then judges the stored "
            "predictions again; nothing is predicted anew"
        )
    return verdicts.join(rules.select("rule", "name"), on="rule", maintain_order="left")


def class_changes(run: Run, *, judging: str = DEFAULT) -> pl.DataFrame:
    """Per rule: pairs, in how many another class comes first (`differs`), in how many of these by more than the margin
    of near ties (`changed`), the share of the latter with its 95 % interval, the median fall.

    Who names a class in one image alone has changed it. Where none is named any more the whole score is lost; where the
    source names none there is no score to lose, and the pair is not in the median.
    """
    verdicts = _verdicts(run, judging)
    if verdicts.is_empty():
        return pl.DataFrame(schema={"rule": pl.String, "pairs": pl.Int64, "differs": pl.Int64, "changed": pl.Int64})
    fall = (1 - pl.col("follow_up_score") / pl.col("source_score")).clip(0)
    table = verdicts.group_by("rule", "name", maintain_order=True).agg(
        pairs=pl.len(),
        differs=_differs().sum(),
        changed=pl.col("kind").is_not_null().sum(),
        median_fall=pl.when(pl.col("kind") == "lost").then(1.0).otherwise(fall).median(),
    )
    intervals = [wilson(row["changed"], row["pairs"]) for row in table.iter_rows(named=True)]
    return table.with_columns(
        share=pl.col("changed") / pl.col("pairs"),
        low=pl.Series([low for low, _ in intervals], dtype=pl.Float64),
        high=pl.Series([high for _, high in intervals], dtype=pl.Float64),
    ).sort("share", "median_fall", "name", descending=[True, True, False], nulls_last=True)


def _differs() -> pl.Expr:
    """Whether another class comes first in the follow-up, or one of the two images has none."""
    return (pl.col("first_class") != pl.col("expected")).fill_null(False) | pl.col("kind").is_not_null()


def confusions(run: Run, *, judging: str = DEFAULT) -> pl.DataFrame:
    """Which class comes first in the place of which expected one, most frequent first, over all rules."""
    verdicts = _verdicts(run, judging)
    if verdicts.is_empty():
        return pl.DataFrame(schema={"expected": pl.String, "class": pl.String, "pairs": pl.UInt32})
    return (
        verdicts.filter(pl.col("kind").is_in(ANOTHER))
        .group_by("expected", "class")
        .agg(pairs=pl.len())
        .sort("pairs", "expected", "class", descending=[True, False, False])
    )


def correct(run: Run) -> pl.DataFrame:
    """Per follow-up: of the cases with a true class, how many answers name one first, and among their first five.

    In a mirrored follow-up the true class of `turn left` is `turn right`, where both are classes of the run.
    """
    schema = {"follow_up": pl.String, "cases": pl.Int64, "top_1": pl.Float64, "top_5": pl.Float64}
    if run.manifest.truth_kind != "labels":
        return pl.DataFrame(schema=schema)
    truth = run.store.cases(["case", "truth_classes"]).filter(pl.col("truth_classes").list.len() > 0)
    answers = run.store.predictions(["case", "follow_up", "repeat", "status", "classes", "warp"]).filter(
        (pl.col("status") == "ok") & (pl.col("repeat") == 0)
    )
    names = set(pl.concat([truth["truth_classes"], answers["classes"]]).explode().drop_nulls())
    other_sides = {name: other for name in names if (other := other_side(name, names)) != name}
    in_mirror = truth.with_columns(pl.col("truth_classes").list.eval(pl.element().replace(other_sides)))
    mirrored = pl.Series([mirrors(warp) for warp in answers["warp"].to_list()], dtype=pl.Boolean)
    first = pl.col("classes").list.first().is_in(pl.col("truth_classes"))
    among = pl.col("classes").list.head(5).list.set_intersection("truth_classes").list.len() > 0
    table = (
        pl.concat(
            [answers.filter(~mirrored).join(truth, on="case"), answers.filter(mirrored).join(in_mirror, on="case")]
        )
        .group_by("follow_up")
        .agg(cases=pl.len(), top_1=first.fill_null(False).mean(), top_5=among.fill_null(False).mean())
    )
    return table.sort(pl.col("follow_up") != SOURCE, "top_1", "follow_up")


def _tables(run: Run, judging: str) -> tuple[list[Table], dict[str, pl.DataFrame]]:
    changes, pairs, right = class_changes(run, judging=judging), confusions(run, judging=judging), correct(run)
    tables = [
        Table(
            "'first class differs' counts the pairs in which another class than the expected one comes first, or in "
            "which one image alone has a class. Expected is the class of the source; of classes with left or right in "
            "their names, a mirror exchanges the two. 'changed beyond the margin' counts those of the pairs that are "
            "no near ties. They alone count as changed, and 'share' is their share of all pairs, with its 95 % "
            "interval. 'median fall' is how much of its score the expected class loses, in the median of the pairs "
            "whose source names a class",
            ["rule", "pairs", "first class differs", "changed beyond the margin", "share", "median fall"],
            [
                [
                    row["name"],
                    f"{row['pairs']:,}",
                    f"{row['differs']:,}",
                    f"{row['changed']:,}",
                    rate_text(row["share"], row["low"], row["high"]),
                    percent(row["median_fall"]),
                ]
                for row in changes.iter_rows(named=True)
            ],
        ),
        Table(
            "Which class comes first in the place of the expected one, and in how many pairs of all rules, most "
            "frequent first"
            + (
                f". There are {pairs.height:,} combinations of an expected class and what comes first, of which the "
                f"most frequent {MOST_CONFUSIONS} are shown"
                if pairs.height > MOST_CONFUSIONS
                else ""
            ),
            ["expected", "first instead", "pairs"],
            [[*row[:2], f"{row[2]:,}"] for row in pairs.head(MOST_CONFUSIONS).iter_rows()],
        ),
    ]
    if right.height:
        tables.append(
            Table(
                "Answers that name a true class first, and among their first five",
                ["input", "cases", "first", "first five"],
                [[row[0], f"{row[1]:,}", percent(row[2]), percent(row[3])] for row in right.iter_rows()],
            )
        )
    frames = {"changes": changes, "confusions": pairs, "correct": right}
    return [table for table in tables if table.rows], frames


def _no_shared_class(run: Run) -> list[Finding]:
    """That no class of the answers is one of the dataset, where that is so: then none of them can be right."""
    if run.manifest.truth_kind != "labels":
        return []
    columns = (run.store.cases(["truth_classes"]), run.store.predictions(["classes"]))
    true, named = (set(column.to_series().explode().drop_nulls()) for column in columns)
    if not true or not named or true & named:
        return []
    words = (
        f"No class that the system names is a class of the dataset, so that no answer counts as right: it names "
        f"{listed(sorted(named), _NAMES)}; the dataset has {listed(sorted(true), _NAMES)}."
    )
    spelled = {name.casefold(): name for name in sorted(true)}
    for name in sorted(named)[:_COMPARED]:
        if near := get_close_matches(name.casefold(), spelled, n=1, cutoff=_NEAR):
            words += f" The nearest are {name!r} of the system and {spelled[near[0]]!r} of the dataset."
            break
    figures = {"model": sorted(named)[:_NAMES], "dataset": sorted(true)[:_NAMES]}
    return [Finding("labels.no_shared_class", words, figures=figures)]


def _seldom_right(run: Run) -> list[Finding]:
    """That the first class is right surely no more often than a guess, or that each class has the name of another."""
    if run.manifest.truth_kind != "labels":
        return []
    truth = run.store.cases(["case", "truth_classes"]).filter(pl.col("truth_classes").list.len() > 0)
    answers = run.store.predictions(["case", "classes"], where=SOURCE_ANSWERED).join(truth, on="case")
    true, named = (set(answers[column].explode().drop_nulls()) for column in ("truth_classes", "classes"))
    first = answers["classes"].list.first()
    if not true & named:
        return []  # which is said as such
    right, cases = int(answers.select(pl.col("truth_classes").list.contains(first)).to_series().sum()), answers.height
    low, high = wilson(right, cases)
    classes = len(true | named)
    chance = float(answers["truth_classes"].list.len().mean()) / classes  # type: ignore[arg-type]
    renamed = _renamed(answers.select(pl.col("truth_classes").list.first().alias("true"), first.alias("first")))
    if high > chance and not (renamed and high < MOSTLY_WRONG):
        return []
    words = (
        f"The class that comes first is right in {of_total(right, cases, 'labelled source image')} "
        f"({percent(right / cases)}, 95{SPACE}% interval {interval(low, high)})"
    )
    guess = f", no more than by guessing among {count_of(classes, 'name')}" if high <= chance else ""
    names = [f"{other!r} in the place of {name!r}" for name, other in renamed.items()]
    order = f". It is {listed(names, _NAMES)}: the list of names may be in another order than the model's classes"
    words = f"{words}{guess}{order if names else ''}."
    figures = {"right": right, "labelled": cases, "low": low, "high": high, "chance": chance, "renamed": renamed}
    return [Finding("labels.seldom_right", words, True, figures)]


def _renamed(answers: pl.DataFrame) -> dict[str, str]:
    """Which name each class has in the place of its own, where that explains nearly all answers: each class nearly
    always the same one, and no two the same; empty where it is not so."""
    pairs = answers.drop_nulls().group_by("true", "first").agg(count=pl.len())
    usual = pairs.sort("count", "first", descending=[True, False]).unique("true", keep="first").sort("true")
    many = usual.filter(pl.col("count") >= 2).height
    if many < FEWEST_RENAMED or usual["count"].sum() < EXPLAINED * answers.height:
        return {}
    if usual["first"].n_unique() < usual.height:
        return {}
    return {name: other for name, other in usual.select("true", "first").iter_rows() if name != other}


def remarks(run: Run, judging: str) -> list[Finding]:
    """What to know of a run as a whole: whether its answers can be right, and are more often than by chance, whether
    every image has the same class, and which class becomes which."""
    return [*_no_shared_class(run), *_seldom_right(run), *_of_answers(run, judging)]


def _of_answers(run: Run, judging: str) -> list[Finding]:
    answers = run.store.predictions(["case", "status", "classes"]).filter(status="ok")
    cases, best = answers["case"].n_unique(), answers["classes"].list.first()
    if cases < FEWEST_CASES or best.n_unique() > 1 or best[0] is None:
        return [*_near_ties(run, judging), *_most_confused(run, judging)]
    words = (
        f"The system named the same class, {best[0]}, for all {cases:,} images and every change of them. Unless "
        "they all show that, it does not look at the image: rules that it passes say nothing."
    )
    return [Finding("labels.same_class", words, True, {"class": best[0], "images": cases})]


def _near_ties(run: Run, judging: str) -> Iterator[Finding]:
    """In how many pairs another class comes first, where some of them are forgiven as near ties."""
    changed = _verdicts(run, judging).filter(pl.col("rule").is_in(run.changing_rules(RELATION)))
    if changed.is_empty():
        return
    differing = changed.filter(_differs())
    beyond = differing["kind"].is_not_null().sum()
    if differing.height == beyond:
        return
    margin = float(run.judging(judging).of(RELATIONS[RELATION])["margin"])
    scores = run.store.predictions(["status", "scores"]).filter(status="ok")["scores"].list.sort(descending=True)
    second, first = (scores.list.get(place, null_on_oob=True) for place in (1, 0))
    leads = bool((second.fill_null(0) < (1 - margin) * first).any())
    others = "the other one does" if differing.height - beyond == 1 else "the others do"
    rest = f"{others} not count as changed" if beyond else "none counts as changed"
    yield Finding(
        "labels.near_ties",
        f"In {of_total(differing.height, changed.height, 'pair')} another class comes first, in "
        f"{f'{beyond:,}' if beyond else 'none'} of them by more than the margin of near ties ({percent(margin)} of the "
        f"score): {rest}.{'' if leads else ' No class ever leads the next one by more than that.'}",
        run.answers(judging).undecided,
        {"differing": differing.height, "beyond": int(beyond), "pairs": changed.height, "margin": margin},
    )


def _most_confused(run: Run, judging: str) -> list[Finding]:
    """Which class comes first in the place of which expected one in most violated pairs."""
    limits = pl.col("rule").replace_strict(run.thresholds(), return_dtype=pl.Float64)
    judged = _verdicts(run, judging)
    if judged.is_empty():
        return []
    changed = judged.filter(pl.col("kind").is_in(ANOTHER) & (pl.col("severity") >= limits))
    if changed.is_empty():
        return []
    pairs = changed.group_by("expected", "class").agg(pairs=pl.len())
    first, other, count = pairs.sort("pairs", "expected", "class", descending=[True, False, False]).row(0)
    if pairs.filter(pairs=count).height > 1:
        return []  # several change as often: none of them is the most frequent
    share = of_total(count, changed.height, "pair")
    words = f"Where another class than the expected one comes first, it is most often {other} in the place of {first}"
    figures = {"expected": first, "class": other, "pairs": count, "changed": changed.height}
    return [Finding("labels.confused", f"{words}: in {share}.", True, figures)]


def _of_relation(run: Run, section: Section, judging: str) -> PanelContent | None:
    if section.relation != RELATION:
        return None
    tables, _ = _tables(run, judging)
    return PanelContent("Which classes change", tables=tables) if tables else None


def _of_runs(runs: Sequence[Run], judging: str, p: float) -> TaskTables | None:
    tables, frames = _tables(runs[0], judging)
    notes = [note.words for note in (*_no_shared_class(runs[0]), *_seldom_right(runs[0]))]
    return TaskTables(tables, frames, after=notes) if tables else None


PANELS: Mapping[str, Panel] = {
    "classes": Panel(of_relation=_of_relation, tables=_of_runs, remarks=remarks, kind="labels")
}
