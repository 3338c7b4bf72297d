"""Classic testing beside metamorphic testing: the source outputs against ground truth, where there is one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from instar.analysis.run import Run
from instar.analysis.severities import Verdicts, severities
from instar.engine import DEFAULT, SOURCE
from instar.outputs import output_kind
from instar.relations import Evidence, UnusableTruth, own_equivariance
from instar.stats import wilson
from instar.store import VERDICT

TRUTH = "truth"
"""What stands for the rule in verdicts against ground truth."""


def has_comparable_truth(run: Run, judging: str = DEFAULT) -> bool:
    """Check that cases have a ground truth of the outputs' kind, by which that kind's own relation can judge them."""
    return _has_truth(run) and not unusable_truth(run, judging)


def unusable_truth(run: Run, judging: str = DEFAULT) -> str:
    """Return why the run's outputs can't be compared with a ground truth of their kind; "" if they can or have none."""
    manifest = run.manifest
    if not _has_truth(run) or not manifest.output:
        return ""
    relation = own_equivariance(manifest.system.kind).relation
    assert relation.against_truth is not None
    rows = pl.DataFrame(schema=output_kind(manifest.system.kind).columns)
    options = run.judging(judging).of(relation)
    try:
        relation.against_truth(Evidence(manifest.header, rows, rows, rows, {}, options, truth=manifest.truth))
    except UnusableTruth as error:
        return str(error)
    return ""


def _has_truth(run: Run) -> bool:
    kind = run.manifest.system.kind
    return (
        run.manifest.truth_kind == kind
        and output_kind(kind).relation is not None
        and own_equivariance(kind).relation.against_truth is not None
    )


def classic_table(run: Run, *, grid: Sequence[float] | None = None, judging: str = DEFAULT) -> pl.DataFrame:
    """Classic testing against ground truth beside metamorphic testing, per threshold, with precision and recall."""
    relation = own_equivariance(run.manifest.system.kind).relation.name
    verdicts = run.severities(judging).only(run.changing_rules(relation))
    return classic_vs_metamorphic(classic(run, judging=judging), verdicts, grid or run.grids()[relation])


def classic(run: Run, *, judging: str = DEFAULT) -> pl.DataFrame:
    """Verdicts of a run's source outputs against its ground truth, one row per case and annotated subject.

    They have the columns of all verdicts, with `truth` for the rule, so that every other analysis takes them. Severity
    is what the outputs' own relation measures with the options of the judging, with the annotation in the place of the
    source and the source output in the place of the follow-up: ∞, or lost, where the subject was not found. Subjects
    that were found and not annotated are not judged, nor are cases without annotated subjects.
    """
    manifest, kind = run.manifest, output_kind(run.manifest.system.kind)
    if not has_comparable_truth(run, judging):
        reason = unusable_truth(run, judging)
        raise ValueError(
            f"{run.folder} has no ground truth to compare with"
            if manifest.truth is None
            else f"{run.folder} has no usable ground truth: {reason}"
            if reason
            else f"answers of the kind {kind.kind} cannot be compared with a ground truth of the kind "
            f"{manifest.truth_kind} here"
        )
    annotated = _annotated(run)
    answers = run.store.predictions(where=pl.col("follow_up") == SOURCE)
    failed = (
        answers.filter(pl.col("status") != "ok")
        .join(annotated, on="case", how="semi")
        .unique("case", keep="first", maintain_order=True)
    )
    answers = answers.filter(pl.col("status") == "ok")
    sizes = answers.select("case", "width", "height").unique("case", keep="first", maintain_order=True)
    truth = annotated.join(failed, on="case", how="anti").join(sizes, on="case")
    judged = _judged(run, truth, answers, judging) if manifest.output and not truth.is_empty() else pl.DataFrame()
    unanswered = failed.select("case", "status", target=pl.lit("whole"), reason=pl.col("message"))
    verdicts = pl.concat([pl.DataFrame(schema=VERDICT), judged, unanswered], how="diagonal")
    return verdicts.with_columns(rule=pl.lit(TRUTH)).select(list(VERDICT))


def _annotated(run: Run) -> pl.DataFrame:
    """The ground truth of the cases in which any subject is annotated, as outputs."""
    manifest, kind = run.manifest, output_kind(run.manifest.system.kind)
    own = {f"truth_{name}": name for name in kind.columns}
    truth = run.store.cases(["case", *own]).rename(own).drop_nulls(next(iter(own.values())))
    subjects = kind.subjects(truth, manifest.truth or {})
    return truth.clear() if subjects is None else truth[subjects["row"].unique().sort()]


def _judged(run: Run, truth: pl.DataFrame, answers: pl.DataFrame, judging: str) -> pl.DataFrame:
    """Annotations as sources, answers as follow-ups that changed nothing."""
    manifest, bound = run.manifest, own_equivariance(run.manifest.system.kind)
    assert bound.relation.against_truth is not None
    unchanged = pl.lit(np.eye(3).ravel().tolist(), pl.List(pl.Float64))
    evidence = Evidence(
        manifest.header,
        pl.DataFrame(),
        truth.with_columns(repeat=pl.lit(0, pl.Int32)),
        answers.join(truth, on="case", how="semi").with_columns(warp=unchanged, draw=pl.lit(0, pl.Int32)),
        dict(bound.values),
        run.judging(judging).of(bound.relation),
        truth=manifest.truth,
    )
    judged = bound.relation.judge(bound.relation.against_truth(evidence))
    status = pl.when(pl.col("severity").is_null()).then(pl.lit("not applicable")).otherwise(pl.lit("ok"))
    return judged.filter(pl.col("target") != "whole").select(
        "case", "target", "severity", "kind", "reason", status=status
    )


def classic_vs_metamorphic(truth: Verdicts, verdicts: Verdicts, grid: Sequence[float]) -> pl.DataFrame:
    """For each threshold how many cases fail classic testing only, metamorphic testing only, both, neither.

    `truth` are the verdicts of `classic`, `verdicts` those of any rules: a case fails where it violates at
    least one of them. Cases that were not judged in both ways are left out. Taken as a predictor of classic failure,
    metamorphic failure has `precision` (of the cases that fail it, the share that fails classic testing) and `recall`
    (of the cases that fail classic testing, the share it finds), each with its 95 % interval; null where there is
    nothing to divide by.
    """

    worst = {}
    for name, some in (("classic", truth), ("metamorphic", verdicts)):
        matrix = severities(some).per_case()
        worst[name] = pl.DataFrame({"case": matrix.cases, name: np.nanmax(matrix.severity, 0, initial=0.0)})
    cases = worst["classic"].join(worst["metamorphic"], on="case")
    rows = []
    for threshold in grid:
        classic, metamorphic = (
            (cases[name].to_numpy() >= threshold) & (cases[name].to_numpy() > 0) for name in ("classic", "metamorphic")
        )
        both = int((classic & metamorphic).sum())
        missed, extra = int((classic & ~metamorphic).sum()), int((metamorphic & ~classic).sum())
        counts = len(cases), missed, extra, both, len(cases) - missed - extra - both
        rows.append((float(threshold), *counts, *_share(both, both + extra), *_share(both, both + missed)))
    numbers = dict.fromkeys(("cases", "classic_only", "metamorphic_only", "both", "neither"), pl.Int64)
    shares = [f"{name}{end}" for name in ("precision", "recall") for end in ("", "_low", "_high")]
    return pl.DataFrame(
        rows, orient="row", schema={"threshold": pl.Float64, **numbers, **dict.fromkeys(shares, pl.Float64)}
    )


def _share(hits: int, tries: int) -> tuple[float | None, float | None, float | None]:
    return (hits / tries, *wilson(hits, tries)) if tries else (None, None, None)
