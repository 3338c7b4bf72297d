"""The keys of an import: none twice, and no follow-up without a source."""

from __future__ import annotations

import polars as pl

from instar.engine.plan import SOURCE
from instar.exchange.raw import RawRows, spelled_key
from instar.exchange.tables import KNOWN
from instar.store import KEY, Manifest, Store


def check_keys(raw: RawRows, run: Store | None, manifest: Manifest | None) -> None:
    """Leaves in `raw.keys` what is new to the run, which is None for a new one.

    Where the tables were imported before, and only in part, or have lost rows since, all keys are left, and
    `raw.stored` are those that are there.
    """
    _refuse_twice(raw)
    raw.keys = raw.keys.sort("row").unique(KEY, keep="first", maintain_order=True)
    stored = pl.DataFrame(schema=raw.keys.select(KEY).schema) if run is None else run.predictions(list(KEY))
    if run is not None and manifest is not None:
        _refuse_stored(raw, run, stored, manifest)
    sources = pl.concat([stored, raw.keys.select(KEY)]).filter(
        (pl.col("follow_up") == SOURCE) & (pl.col("repeat") == 0)
    )
    lonely = raw.keys.filter(pl.col("follow_up") != SOURCE).join(sources, on="case", how="anti")
    if not lonely.is_empty():
        at, row, more = raw.first(lonely)
        raise ValueError(
            f"{at}: {spelled_key(row)} has no source to be compared with{more}; what was said of the "
            "source is a line with follow_up source, or in columns that begin with source_, where an empty cell says "
            'nothing. Where that failed, its status is error; an empty caption is such a line, or "" in JSONL'
        )


def _refuse_twice(raw: RawRows) -> None:
    groups = raw.keys.group_by(KEY).agg(
        count=pl.len(), pairs=pl.col("of_pair").all(), answers=pl.col("pair_hash").n_unique()
    )
    twice = groups.filter((pl.col("count") > 1) & (~pl.col("pairs") | (pl.col("answers") > 1)))
    if twice.is_empty():
        return
    bad = raw.keys.join(twice.select(KEY), on=KEY, how="semi").sort("row")
    first = bad.row(0, named=True)
    second = bad.filter(*(pl.col(name) == first[name] for name in KEY)).row(1, named=True)
    why = (
        "says something else of the source than there; what a stochastic system says again is another repeat"
        if first["of_pair"] and second["of_pair"]
        else "has the same key"
    )
    more = f" ({twice.height - 1:,} more keys like it)" if twice.height > 1 else ""
    raise ValueError(
        f"{raw.at(second)}: {spelled_key(first)} is on line {first['line']} of "
        f"{raw.tables[first['file']].name} already, and this line {why}{more}"
    )


def _refuse_stored(raw: RawRows, run: Store, stored: pl.DataFrame, manifest: Manifest) -> None:
    """What the run holds is not said again; only the source of a pair may be, if it is the same, and all of it by
    tables whose import is to be completed."""
    both = raw.keys.join(stored, on=KEY, how="semi")
    if both.is_empty():
        return
    outputs = (name for name in run.prediction_schema(raw.kind) if name not in (*KEY, *KNOWN, "mask"))
    columns = [*KEY, "status", *outputs]
    new = raw.read([*columns, "row", "file", "line"]).join(both.select("row"), on="row", how="semi").sort(KEY)
    old = run.predictions(columns).join(both.select(KEY), on=KEY, how="semi").sort(KEY)
    same = new.select(columns).equals(old.select(columns))
    completed = same and _completes(raw, run, both, manifest)
    twice = both.filter(~pl.col("of_pair"))
    if not twice.is_empty() and not completed:
        at, row, more = raw.first(twice)
        raise ValueError(f"{at}: {run.folder} holds {spelled_key(row)} already{more}")
    if not same:
        number = next(n for n in range(new.height) if not new[n].select(columns).equals(old[n].select(columns)))
        row = new.row(number, named=True)
        raise ValueError(
            f"{raw.at(row)}: {run.folder} holds another output for {spelled_key(row)}; give another folder (`out`)"
        )
    if completed:
        raw.stored = both
        raw.notes.append(f"an earlier import of the same is completed; {both.height:,} outputs of it were there")
    else:
        raw.keys = raw.keys.join(stored, on=KEY, how="anti")


def _completes(raw: RawRows, run: Store, both: pl.DataFrame, manifest: Manifest) -> bool:
    """Whether tables are imported again because the run holds only part of what they say: an import was killed after
    it had added all predictions and before the manifest spoke of it, or files of the run were lost since."""
    known = {table.hash for table in manifest.recorded.tables} if manifest.recorded else set()
    repeated = [table.hash in known for table in raw.recorded]
    if not any(repeated):
        return both.height == raw.keys.height
    rows = set(run.cases(["case"])["case"])
    return all(repeated) and (both.height < raw.keys.height or not rows.issuperset(raw.keys["case"]))
