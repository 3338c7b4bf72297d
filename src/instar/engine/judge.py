"""Judge: the cheap stage. From stored outputs and changes to verdicts, vectorised over the whole run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from instar.engine.judging import Judging
from instar.engine.plan import SOURCE, bound_rules
from instar.engine.progress import unreadable_cases
from instar.engine.zones import with_right_zones
from instar.outputs import Row, Schema, output_kind
from instar.relations import BoundRelation, Evidence, Rule, levels_of
from instar.relations.relation import NOTHING_FOUND
from instar.spelling import nearest
from instar.store import VERDICT, JudgingInfo, Manifest, NoRun, Piece, Store, pieces

PIECE_ROWS = 50_000
PIECE_BYTES = 32 << 20
"""What is judged at a time: relations hold it several times over, and a run may have many subjects in every row."""
UNSAID = "the relation says nothing about this pair"
"""The reason where a relation returns no row for a pair: every pair that was asked has a verdict."""
_STATUS = pl.when(pl.col("severity").is_null()).then(pl.lit("not applicable")).otherwise(pl.lit("ok"))


def judge(store: Store, options: Row | None = None) -> str:
    """Judge a run with these options (the suite's own where none are given); returns the judging's id.

    Nothing is done where the verdicts are up to date with the predictions.
    """
    manifest = store.manifest()
    judging = Judging(dict(options or {}), manifest.options)
    if _is_judged(store, judging, _state(store, manifest, judging)):
        return judging.id
    rules = bound_rules(manifest.rules, manifest.system.kind)
    check_options(judging.options, rules)
    if manifest.output is None and not store.state("predictions"):
        reasons = "; ".join(unreadable_cases(store))
        why = f": no case of it can be read ({reasons})" if reasons else " yet; run it first"
        raise NoRun(f"{store.folder} holds no predictions{why}")
    with store.judging_lock(judging.id):
        state = _state(store, manifest, judging)
        if not _is_judged(store, judging, state):
            store.replace_verdicts(judging.id, _verdicts(store, manifest, rules, judging), state)
    return judging.id


def _state(store: Store, manifest: Manifest, judging: Judging) -> JudgingInfo:
    """What verdicts would be made of and by now."""
    from instar import __version__

    return JudgingInfo(__version__, judging.options, manifest.rules, store.state("predictions"), store.state("cases"))


def _is_judged(store: Store, judging: Judging, state: JudgingInfo) -> bool:
    info = store.judging_info(judging.id)
    return info is not None and replace(info, parts=state.parts) == state and store.holds_verdicts(judging.id, info)


def check_options(options: Row, rules: tuple[Rule, ...]) -> None:
    """Every option must belong to some relation of the run, and be of an allowed value."""
    known = {p.name: p for rule in rules if rule.relation for p in rule.relation.relation.options}
    for name, value in options.items():
        if name not in known:
            raise ValueError(
                f"there is no judging option {name!r} for this run{nearest(name, known)}; "
                f"it has {', '.join(known) or 'none'}"
            )
        known[name].check(value, "judging")


def _verdicts(store: Store, manifest: Manifest, rules: tuple[Rule, ...], judging: Judging) -> Iterator[pl.DataFrame]:
    groups: dict[str, list[Rule]] = {}
    over_cases: list[Rule] = []
    for rule in rules:
        assert rule.relation is not None
        if rule.relation.relation.over == "cases":
            over_cases.append(rule)
        else:
            groups.setdefault(rule.relation.id, []).append(rule)
    levels: list[pl.DataFrame] = []
    kind = manifest.system.kind
    wanted = {level.id for rule in over_cases for level in levels_of(rule, kind)}
    for piece in chunks(store):
        cases = piece.cases()
        predictions = store.whole(piece.predictions())
        for members in groups.values():
            bound = members[0].relation
            assert bound is not None
            right = with_right_zones(store, predictions, manifest, bound.relation, judging)
            verdicts = _judged(members, right, cases, manifest, judging)
            if wanted:
                levels.append(verdicts.filter(pl.col("rule").is_in(wanted)))
            yield verdicts.drop("follow_up")
    for rule in over_cases:
        yield _over_cases(rule, pl.concat(levels, how="diagonal") if levels else pl.DataFrame(), manifest)


def verdicts_of(
    store: Store, rules: Sequence[Rule], cases: Sequence[str], predictions: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Return the verdicts of rules with one relation on some cases, by the run's own options; nothing is stored.

    `predictions`, if given, are judged in place of the stored ones.
    """
    manifest, (relation, *_) = store.manifest(), [one.relation for one in rules]
    assert relation is not None
    judging = Judging({}, manifest.options)
    names = [SOURCE, *(rule.transformations[0].id for rule in rules)]
    wanted = pl.col("case").is_in(list(cases)) & pl.col("follow_up").is_in(names)
    if predictions is None:
        predictions = store.whole(store.predictions(where=wanted))
    predictions = with_right_zones(store, predictions.filter(wanted), manifest, relation.relation, judging)
    known = store.cases(where=pl.col("case").is_in(list(cases)))
    return _judged(list(rules), predictions, known, manifest, judging)


def chunks(store: Store, where: pl.Expr | None = None) -> Iterator[Piece]:
    """The predictions of a large run, or some of them, in pieces that fit into memory; no case is in two."""
    manifest = store.manifest()
    kind = output_kind(manifest.system.kind)
    answer = pl.lit(0) if manifest.output is None else kind.stored_bytes(manifest.header)
    # a row of few numbers costs as much as one of its share of the rows that are judged at a time
    size = answer + PIECE_BYTES // PIECE_ROWS + store.apart_bytes() * len(kind.apart)
    return pieces(store, size, PIECE_BYTES, where)


def _judged(
    rules: list[Rule], predictions: pl.DataFrame, cases: pl.DataFrame, manifest: Manifest, judging: Judging
) -> pl.DataFrame:
    """The verdicts of all rules that share one relation."""
    bound = rules[0].relation
    assert bound is not None
    names = pl.DataFrame({"follow_up": [r.transformations[0].id for r in rules], "rule": [r.id for r in rules]})
    seen, failed = evidence(rules, predictions, cases, manifest, judging)
    verdicts = bound.relation.judge(seen) if manifest.output is not None else pl.DataFrame()
    if not verdicts.is_empty():
        verdicts = verdicts.with_columns(status=_STATUS)
    schema: Schema = {**VERDICT, "follow_up": pl.String, **bound.relation.measures}
    typed = pl.DataFrame(schema={name: kind for name, kind in schema.items() if name != "rule"})
    parts = [typed, verdicts, failed.filter(pl.col("follow_up") != SOURCE), _unsaid(seen, verdicts)]
    merged = pl.concat(parts, how="diagonal_relaxed")
    return merged.join(names, on="follow_up", maintain_order="left").select(list(schema)).cast(schema)  # type: ignore[arg-type]


def _unsaid(seen: Evidence, verdicts: pl.DataFrame) -> pl.DataFrame:
    """The pairs that a relation was shown and passed over; those whose source is still to be predicted are none yet."""
    pairs = seen.follow_ups.select("case", "follow_up")
    if not verdicts.is_empty():
        pairs = pairs.join(
            verdicts.select("case", "follow_up"), on=["case", "follow_up"], how="anti", maintain_order="left"
        )
    pairs = pairs.join(seen.sources.select("case"), on="case", how="semi", maintain_order="left")
    pairs = pairs.unique(maintain_order=True)
    return pairs.with_columns(target=pl.lit("whole"), status=pl.lit("not applicable"), reason=pl.lit(UNSAID))


def evidence(
    rules: Sequence[Rule], predictions: pl.DataFrame, cases: pl.DataFrame, manifest: Manifest, judging: Judging
) -> tuple[Evidence, pl.DataFrame]:
    """What rules of one relation are judged by, and the pairs that have nothing to be judged by, with the reason."""
    bound = rules[0].relation
    assert bound is not None
    keep = _wanted(predictions, [r.transformations[0].id for r in rules], bound)
    failed = _failures(keep)
    # what holds many numbers is copied only where there is a reason
    fine = keep.join(failed.select("case", "follow_up"), on=["case", "follow_up"], how="anti") if len(failed) else keep
    return Evidence(
        manifest.header,
        cases,
        fine.filter(pl.col("follow_up") == SOURCE),
        fine.filter(pl.col("follow_up") != SOURCE),
        dict(bound.values),
        judging.of(bound.relation),
        truth=manifest.truth,
    ), failed


def _wanted(predictions: pl.DataFrame, names: Sequence[str], bound: BoundRelation) -> pl.DataFrame:
    """The rows this relation is judged by: rules that share predictions may want different numbers of them."""
    repeats = bound.count("repeats")
    sources = max(repeats, bound.count("sources"))
    source = (pl.col("follow_up") == SOURCE) & (pl.col("repeat") < sources)
    follow_up = (
        pl.col("follow_up").is_in(names) & (pl.col("draw") < bound.count("draws")) & (pl.col("repeat") < repeats)
    )
    wanted = predictions.select(source | follow_up).to_series()
    return predictions if wanted.all(ignore_nulls=False) else predictions.filter(wanted)


def _failures(rows: pl.DataFrame) -> pl.DataFrame:
    """Pairs without a severity because a row of theirs, or of their source, is not ok."""
    bad = (
        rows.filter(pl.col("status") != "ok")
        .group_by("case", "follow_up", maintain_order=True)
        .agg(pl.col("status").first(), pl.col("message").first().alias("reason"))
    )
    sources = bad.filter(pl.col("follow_up") == SOURCE)
    of_source = (
        rows.select("case", "follow_up")
        .filter((pl.col("follow_up") != SOURCE) & pl.col("case").is_in(sources["case"].implode()))
        .unique(maintain_order=True)
        .join(
            sources.select("case", "status", reason="the source: " + pl.col("reason")), on="case", maintain_order="left"
        )
    )
    own = bad.join(of_source.select("case", "follow_up"), on=["case", "follow_up"], how="anti")
    return pl.concat(
        [of_source.select("case", "follow_up", "status", "reason"), own.select("case", "follow_up", "status", "reason")]
    ).with_columns(target=pl.lit("whole"))


def _over_cases(rule: Rule, levels: pl.DataFrame, manifest: Manifest) -> pl.DataFrame:
    """The verdict of a rule over many cases, from the stored verdicts of its levels."""
    bound = rule.relation
    assert bound is not None
    empty = pl.DataFrame()
    names = tuple(t.id for t in rule.transformations)
    made_of = [level.id for level in levels_of(rule, manifest.system.kind)]
    # two empty answers are not judged by themselves, but what they miss counts in a measure of the whole dataset
    counted = (pl.col("status") == "ok") | (pl.col("reason") == NOTHING_FOUND)
    judged = levels.filter(pl.col("rule").is_in(made_of) & counted) if levels.width else levels
    seen = Evidence(manifest.header, empty, empty, empty, dict(bound.values), {}, judged, names)
    return bound.relation.judge(seen).with_columns(rule=pl.lit(rule.id), status=_STATUS).drop("follow_up")
