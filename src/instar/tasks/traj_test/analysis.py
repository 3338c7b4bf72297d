"""Forecasts beside what really happened, and the tables of TrajTest: what moves all alike, and what changes the map."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.analysis import Run
from instar.analysis.rates import by_case
from instar.engine import DEFAULT, SOURCE, chunks
from instar.outputs.forecast import Forecast, Paths
from instar.relations import Rule, matrices_of, named_rule
from instar.stats import clustered_interval, moments, permutation_test, z_test
from instar.store import Row, Schema, Store
from instar.tasks.traj_test.relations import without_rounding
from instar.warp import Warp

Bools = npt.NDArray[np.bool_]

DISPLACEMENTS = ("best_ade", "best_fde", "mean_ade", "mean_fde")
"""Average and final displacement from the truth, in pixels: of the best future, and the mean over all of them."""

_P = {name: f"p_{name}" for name in DISPLACEMENTS}
_TESTED: Schema = {"case": pl.String, "follow_up": pl.String, **dict.fromkeys([*_P.values(), "p_least"], pl.Float64)}
_PUBLISHED = ", as published"


def trajectory_tables(run: Run, *, p: float = 0.05, judging: str = DEFAULT) -> dict[str, pl.DataFrame]:
    """The tables of TrajTest for a run of forecasts.

    `preserving`: changes that move all alike (Table 3); `map`: changes of the map (Table 4); `agreement` with the
    displacement from the truth over levels of p (Figure 5) and `displacement` of the source's predictions, where there
    is a truth.
    """
    if run.manifest.system.kind != Forecast.kind:
        raise ValueError(f"{run.folder} is a run of {run.manifest.system.kind}; these tables are of forecasts")
    run.alphas(p)  # refuses what is no level
    suite_order = pl.DataFrame({"rule": run.manifest.rules}, schema={"rule": pl.String})
    verdicts = suite_order.join(run.verdicts(judging), on="rule", maintain_order="left_right")
    if run.manifest.truth_kind != Forecast.kind:
        return {"preserving": preserving_table(verdicts, None, p=p), "map": map_table(verdicts)}
    compared = [named_rule(text) for text in _by_relation(verdicts, "wvc")["rule"].unique(maintain_order=True)]
    distances = displacement(run.store, [one.left for one in compared])
    tests = _tests_of_rules(distances, compared)
    return {
        "preserving": preserving_table(verdicts, tests, p=p),
        "map": map_table(verdicts),
        "agreement": agreement(verdicts, tests),
        "displacement": distances.filter(follow_up=SOURCE).drop("follow_up", "draw"),
    }


def _tests_of_rules(distances: pl.DataFrame, rules: Sequence[Rule]) -> pl.DataFrame:
    """The displacement tests of every rule of `wvc`: by its own test, on as many runs as it asks for."""
    parts = [pl.DataFrame(schema={**_TESTED, "rule": pl.String})]
    for one in rules:
        assert one.relation is not None
        of_source = pl.when(pl.col("follow_up") == SOURCE).then(one.relation.count("sources"))
        enough = of_source.otherwise(one.relation.count("repeats"))
        runs = distances.filter(pl.col("follow_up").is_in([SOURCE, one.left]) & (pl.col("repeat") < enough))
        tests = displacement_tests(runs, as_published=one.relation.values["test"] == "z")
        parts.append(tests.with_columns(rule=pl.lit(one.id)))
    return pl.concat(parts)


def displacement(store: Store, follow_ups: Sequence[str] | None = None) -> pl.DataFrame:
    """How far every prediction is from what really happened: one row per case, follow-up, draw and repeat.

    Follow-ups are carried back; distances are in pixels of the source. Cases without a truth are left out.
    """
    manifest = store.manifest()
    if manifest.truth_kind != Forecast.kind:
        raise ValueError(f"{store.folder} has no ground truth of forecasts to compare with")
    keys = {"case": pl.String, "follow_up": pl.String, "draw": pl.Int32, "repeat": pl.Int32}
    parts = [pl.DataFrame(schema={**keys, **dict.fromkeys(DISPLACEMENTS, pl.Float64)})]
    wanted = pl.col("status") == "ok"
    if follow_ups is not None:
        wanted &= pl.col("follow_up").is_in([SOURCE, *follow_ups])
    for piece in chunks(store):
        cases = piece.cases(["case", "truth_futures"])
        truths = {case: np.reshape(future, (-1, 2)) for case, future in cases.iter_rows() if future}
        rows = piece.predictions([*keys, "warp", "futures", "samples"], where=wanted)
        rows = rows.filter(pl.col("case").is_in(list(truths)))
        paths, warps = Paths.of(rows), matrices_of(rows)
        each = [_displacement(paths[at], truths[case], warps[at], case) for at, case in enumerate(rows["case"])]
        distances = pl.DataFrame(each, dict.fromkeys(DISPLACEMENTS, pl.Float64), orient="row")
        parts.append(rows.select(*keys).hstack(distances))
    return pl.concat(parts)


def _displacement(
    futures: npt.NDArray[np.float64], truth: npt.NDArray[np.float64], warp: npt.NDArray[np.float64], case: str
) -> tuple[float, float, float, float]:
    if futures.shape[1:] != truth.shape:
        raise ValueError(
            f"{case}: its ground truth has {len(truth)} positions, the predicted futures "
            f"{futures.shape[1]}; truth is one future of as many positions as the scene asks for"
        )
    back = Warp(warp, (1, 1), (1, 1)).inverse.points(futures)
    apart = np.linalg.norm(back - truth, axis=-1)
    average, final = apart.mean(1), apart[:, -1]
    return float(average.min()), float(final.min()), float(average.mean()), float(final.mean())


def displacement_tests(table: pl.DataFrame, *, as_published: bool = False) -> pl.DataFrame:
    """Whether a follow-up's displacement differs from that of the source runs: p per case, follow-up and measure.

    By the test of the relation `wvc`, on the differences of the numbers that `displacement` gives; `p_least` is the
    least p that so many runs can show. As published: the follow-up's (first) run against mean and deviation of the
    source runs by a two-sided z-test, which knows no least p.
    """
    keys: list[tuple[str, str]] = []
    values: list[tuple[npt.NDArray[np.float64], int]] = []
    for case in table.partition_by("case", maintain_order=True):
        sources = case.filter(pl.col("follow_up") == SOURCE).select(DISPLACEMENTS).to_numpy()
        for (name,), runs in case.filter(pl.col("follow_up") != SOURCE).group_by("follow_up", maintain_order=True):
            if len(sources) >= 2:
                keys.append((case["case"][0], str(name)))
                values.append((np.concatenate([sources, runs.select(DISPLACEMENTS).to_numpy()]), len(sources)))
    with ThreadPoolExecutor() as pool:  # numpy lets others work while it sums
        tested = list(pool.map(_z_tests if as_published else _permutation_tests, values))
    return pl.DataFrame([(*key, *p) for key, p in zip(keys, tested, strict=True)], orient="row", schema=_TESTED)


def _permutation_tests(runs: tuple[npt.NDArray[np.float64], int]) -> list[float | None]:
    """p of every measure, and the least p."""
    values, sources = runs
    gaps = (without_rounding(np.abs(np.subtract.outer(column, column))) for column in values.T)
    tested = [permutation_test(apart, sources) for apart in gaps]
    return [*(p for _, p, _ in tested), tested[0][2]]


def _z_tests(runs: tuple[npt.NDArray[np.float64], int]) -> list[float | None]:
    values, sources = runs
    own, first = values[:sources], values[sources]
    middles, deviations = own.mean(0), own.std(0)
    apart = without_rounding(np.abs(first - middles))
    return [*(z_test(gap, 0.0, deviation) for gap, deviation in zip(apart, deviations, strict=True)), None]


def _by_relation(verdicts: pl.DataFrame, name: str) -> pl.DataFrame:
    """The verdicts of one relation, rule by rule, with the transformation of their rule and its parameters."""
    rules = {text: named_rule(text) for text in verdicts["rule"].unique(maintain_order=True)}
    of_relation = [
        {
            "rule": text,
            "follow_up": one.left,
            "effect": one.relation.values.get("effect"),
            "as_published": one.relation.values.get("test") in ("z", "wilcoxon"),
        }
        for text, one in rules.items()
        if one.relation is not None and one.relation.relation.name == name
    ]
    schema = {"rule": pl.String, "follow_up": pl.String, "effect": pl.String, "as_published": pl.Boolean}
    absent = [pl.lit(None, pl.Float64).alias(name) for name in ("p", "p_least") if name not in verdicts.columns]
    order = pl.DataFrame(of_relation, schema=schema)
    return verdicts.with_columns(absent).join(order, on="rule", maintain_order="right_left")


def preserving_table(verdicts: pl.DataFrame, truth: pl.DataFrame | None, *, p: float = 0.05) -> pl.DataFrame:
    """Table 3: per change that moves all alike, how often the distribution differs at level p, with intervals.

    `judged` are the tests of `wvc` that can reject at this level, `tests_per_case` how many each of the `cases` had:
    comparisons as published (test=z) each count for themselves. Where so few runs cannot show a p as small as the level
    there is no rate, `cases` are all that were tested, and `p_least` says what they can show. Beside `wvc` stand the
    tests on the displacement from the truth (`displacement_tests` with the rule they belong to; null without one): one
    for each of those cases that has a truth, which are `displacement_cases`. The mean and standard deviation of the
    Hellinger distance are those of the `hvc_cases`, which `hvc` judged itself.
    """
    wvc, hvc = _by_relation(verdicts, "wvc"), _by_relation(verdicts, "hvc")
    rows = []
    for (text, name, as_published), part in wvc.group_by("rule", "follow_up", "as_published", maintain_order=True):
        tested = part.filter(pl.col("p").is_not_null())
        able = tested.filter(_able(p))
        counted = able if len(able) else tested
        cases = counted["case"].n_unique()
        row: Row = {
            "change": f"{name}{_PUBLISHED * bool(as_published)}",
            "cases": cases,
            "judged": len(able),
            "tests_per_case": len(counted) / cases if cases else None,
            "p_least": tested["p_least"].min(),
            **_rate("wvc", able.select("case", hit=pl.col("p") <= p)),
        }
        if truth is not None:
            by_truth = truth.filter((pl.col("rule") == text) & _able(p)).join(able, on="case", how="semi")
            row["displacement_cases"] = len(by_truth)
            row |= {measure: _share(by_truth[column] <= p) for measure, column in _P.items()}
        maps = hvc.filter(follow_up=name).drop_nulls("severity")
        row["hvc_cases"] = maps["case"].n_unique()
        row["hvc"], row["hvc_sd"] = maps["severity"].mean(), maps["severity"].std()
        rows.append(row)
    measures = ("tests_per_case", "p_least", "wvc", "wvc_low", "wvc_high", *DISPLACEMENTS, "hvc", "hvc_sd")
    numbers = dict.fromkeys(("cases", "judged", "displacement_cases", "hvc_cases"), pl.Int64)
    return pl.DataFrame(rows, schema={"change": pl.String, **numbers, **dict.fromkeys(measures, pl.Float64)})


def _able(level: float, column: str = "p_least") -> pl.Expr:
    """Whether a test can reject at a level: its least p is not above it."""
    return pl.col(column).is_null() | (pl.col(column) <= level)


def _share(hits: pl.Series) -> float | None:
    return int(hits.sum()) / len(hits) if len(hits) else None


def _rate(name: str, tests: pl.DataFrame) -> dict[str, float | None]:
    """The share of tests that are a `hit`, with its interval: a comparison as published has several of one case."""
    names = (name, f"{name}_low", f"{name}_high")
    if tests.is_empty():
        return dict.fromkeys(names)
    cases = tests.group_by("case").agg(hits=pl.col("hit").sum(), tests=pl.len())
    ends = clustered_interval(moments(cases["hits"].to_numpy(), cases["tests"].to_numpy()))
    return dict(zip(names, (_share(tests["hit"]), *map(float, ends)), strict=True))


def agreement(
    verdicts: pl.DataFrame, truth: pl.DataFrame, grid: Sequence[float] = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
) -> pl.DataFrame:
    """Figure 5: how well `wvc` predicts that the displacement from the truth changed, at each level of p.

    `truth` are the `displacement_tests` with the rule they belong to. Both are decided at the same level, by tests that
    can reject at it; a comparison as published counts for itself, and stands apart from the others. Accuracy, precision
    and recall are null where there is nothing to divide by.
    """
    wvc = _by_relation(verdicts, "wvc").filter(pl.col("p").is_not_null() & (pl.col("follow_up") != "identity"))
    columns = wvc.select("case", "rule", "p", "p_least", "as_published")
    joined = columns.join(truth, on=["case", "rule"], suffix="_truth")
    rows = []
    for as_published in joined["as_published"].unique(maintain_order=True).to_list() or [False]:
        pairs = joined.filter(as_published=as_published)
        for level in grid:
            part = pairs.filter(_able(level) & _able(level, "p_least_truth"))
            predicted = part["p"].to_numpy() <= level
            for measure, column in _P.items():
                changed = part[column].to_numpy() <= level
                rows.append((level, measure, as_published, *_scores(predicted, changed)))
    schema = {"p": pl.Float64, "measure": pl.String, "as_published": pl.Boolean, "pairs": pl.Int64}
    shares = dict.fromkeys(("accuracy", "precision", "recall"), pl.Float64)
    return pl.DataFrame(rows, schema={**schema, **shares}, orient="row")


def _scores(predicted: Bools, changed: Bools) -> tuple[int, float | None, float | None, float | None]:
    """The pairs; accuracy, precision and recall."""
    hits = int((predicted & changed).sum())
    accuracy = float((predicted == changed).mean()) if len(predicted) else None
    precision = hits / int(predicted.sum()) if predicted.any() else None
    recall = hits / int(changed.sum()) if changed.any() else None
    return len(predicted), accuracy, precision, recall


def map_table(verdicts: pl.DataFrame) -> pl.DataFrame:
    """Table 4: per kind of change to the map and its expected effect, the share of each outcome.

    `cases_crossing` is the share of pairs in which any future crosses the changed cells, `paths_crossing` that of
    all futures; they are there where the cells become an obstacle.
    """
    every_target = _by_relation(verdicts, "direction").with_columns(change=pl.col("follow_up").str.extract(r"^(\w+)"))
    order = every_target.select("rule").unique(maintain_order=True)
    directions = order.join(by_case(every_target), on="rule", maintain_order="left_right")
    rows = []
    kinds = directions.group_by("change", "effect", "as_published", maintain_order=True)
    for (change, effect, as_published), part in kinds:
        judged = part.filter(pl.col("severity").is_not_null())
        row: Row = {
            "change": f"{change}{_PUBLISHED * bool(as_published)}",
            "effect": effect,
            "judged": len(judged),
            "not_applicable": int((part["status"] == "not applicable").sum()),
        }
        row |= _rate("confirmed", judged.select("case", hit=(pl.col("kind") == "confirmed").fill_null(False)))
        for kind in ("inconclusive", "wrong way", "crossing"):
            row[kind.replace(" ", "_")] = _share(judged["kind"] == kind)
        avoid = effect == "avoid" and len(judged) > 0
        row["cases_crossing"] = _share(judged["crossing"] > 0) if avoid else None
        row["paths_crossing"] = int(judged["crossing"].sum()) / int(judged["futures"].sum()) if avoid else None
        row["hellinger"], row["hellinger_sd"] = judged["hellinger"].mean(), judged["hellinger"].std()
        rows.append(row)
    schema = {"change": pl.String, "effect": pl.String, "judged": pl.Int64, "not_applicable": pl.Int64}
    outcomes = ("confirmed", "confirmed_low", "confirmed_high", "inconclusive", "wrong_way", "crossing")
    others = ("cases_crossing", "paths_crossing", "hellinger", "hellinger_sd")
    return pl.DataFrame(rows, schema={**schema, **dict.fromkeys((*outcomes, *others), pl.Float64)})
