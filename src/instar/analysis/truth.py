"""Classic testing beside metamorphic testing: the source outputs against ground truth, where there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from instar.analysis.severities import Verdicts, severities
from instar.engine import SOURCE
from instar.outputs.poses import Poses
from instar.relations import Evidence, own_equivariance, renamed_poses
from instar.skeleton import Skeleton
from instar.stats import wilson
from instar.store import Store

__all__ = ["TRUTH", "classic", "classic_vs_metamorphic"]

TRUTH = "truth"
"""What stands for the rule in verdicts against ground truth."""


def classic(store: Store, **options: Any) -> pl.DataFrame:
    """Verdicts of a run's source outputs against its ground truth, one row per case and annotated subject.

    They have the columns of all verdicts, with `truth` for the rule, so that every other analysis takes them.
    Severity is what the poses relation measures (the suite's options, or those given here) over the landmarks
    that both skeletons name, in body lengths of the annotated subject; ∞ where the subject was not found.
    Subjects that were found and not annotated are not judged, nor are cases without annotated subjects.
    """
    manifest = store.manifest()
    given, said = manifest.truth, manifest.output
    if given is None or not {given["kind"], manifest.system.kind} <= {Poses.kind}:
        raise ValueError(
            f"{store.folder} has no annotated poses to compare with"
            if given is None
            else f"only poses are compared with ground truth here, got {manifest.system.kind} "
            f"and a ground truth of {given['kind']}"
        )
    asked = [f"truth_{name}" for name in Poses.columns]
    found = store.predictions(where=pl.col("follow_up") == SOURCE)
    fine = found.filter(pl.col("status") == "ok")
    sizes = fine.select("case", "width", "height").unique("case", keep="first", maintain_order=True)
    annotated = (
        store.cases(["case", *asked])
        .filter(pl.col("truth_scores").list.len() > 0)
        .rename({name: name.removeprefix("truth_") for name in asked})
    )
    failed = (
        found.filter(pl.col("status") != "ok")
        .join(annotated, on="case", how="semi")
        .unique("case", keep="first", maintain_order=True)
    )
    truth = (
        annotated.join(failed, on="case", how="anti").join(sizes, on="case").with_columns(repeat=pl.lit(0, pl.Int32))
    )
    if said is None or truth.is_empty():
        judged = pl.DataFrame()
    else:
        answers = fine.join(truth, on="case", how="semi")
        judged = _judged(truth, answers, given, said, {**manifest.options, **options})
    columns: dict[str, Any] = {
        "case": pl.String,
        "target": pl.String,
        "rule": pl.String,
        "severity": pl.Float64,
        "kind": pl.String,
        "reason": pl.String,
        "status": pl.String,
    }
    lost = failed.select("case", "status", target=pl.lit("whole"), reason=pl.col("message"))
    both = pl.concat([pl.DataFrame(schema=columns), judged, lost], how="diagonal")
    return both.with_columns(rule=pl.lit(TRUTH)).select(list(columns))


def _judged(
    truth: pl.DataFrame, found: pl.DataFrame, given: Mapping[str, Any], said: Mapping[str, Any], options: dict[str, Any]
) -> pl.DataFrame:
    """Annotated poses as sources, found ones as follow-ups that changed nothing."""
    bones, others = Skeleton.from_dict(given["skeleton"]), Skeleton.from_dict(said["skeleton"])
    bound = own_equivariance(Poses.kind)
    settings = {
        p.name: p.check(options[p.name], "classic") if p.name in options else p.default for p in bound.relation.options
    }
    mine, theirs = bones.mapping(others)
    if settings["landmarks"]:
        chosen = {i for _, indices in others.select(str(settings["landmarks"])) for i in indices}
        mine = mine[np.isin(theirs, list(chosen))]
    if not len(mine):
        raise ValueError(f"skeletons {bones.name} and {others.name} have none of the landmarks in common")
    settings["landmarks"] = ", ".join(bones.landmarks[i] for i in mine)
    follow = (
        found.drop(list(Poses.columns))
        .hstack(renamed_poses(found, others, bones))
        .with_columns(warp=pl.lit(np.eye(3).ravel().tolist(), pl.List(pl.Float64)), draw=pl.lit(0, pl.Int32))
    )
    evidence = Evidence(given, pl.DataFrame(), truth, follow, dict(bound.values), settings)
    judged = bound.relation.judge(evidence)
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

    def worst(given: Verdicts, name: str) -> pl.DataFrame:
        held = severities(given).per_case()
        return pl.DataFrame({"case": held.cases, name: np.nanmax(held.severity, 0, initial=0.0)})

    cases = worst(truth, "classic").join(worst(verdicts, "metamorphic"), on="case")
    one, other = cases["classic"].to_numpy(), cases["metamorphic"].to_numpy()
    rows = []
    for threshold in grid:
        classic, meta = (one >= threshold) & (one > 0), (other >= threshold) & (other > 0)
        both, missed, extra = int((classic & meta).sum()), int((classic & ~meta).sum()), int((meta & ~classic).sum())
        rows.append(
            (
                float(threshold),
                len(one),
                missed,
                extra,
                both,
                len(one) - missed - extra - both,
                *_share(both, both + extra),
                *_share(both, both + missed),
            )
        )
    counts = dict.fromkeys(("cases", "classic_only", "metamorphic_only", "both", "neither"), pl.Int64)
    shares = [f"{name}{end}" for name in ("precision", "recall") for end in ("", "_low", "_high")]
    return pl.DataFrame(
        rows, orient="row", schema={"threshold": pl.Float64, **counts, **dict.fromkeys(shares, pl.Float64)}
    )


def _share(hits: int, tries: int) -> tuple[float | None, float | None, float | None]:
    return (hits / tries, *wilson(hits, tries)) if tries else (None, None, None)
