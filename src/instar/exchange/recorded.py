"""Import: a run made of recorded outputs. What a system said elsewhere, in tables of any length.

Tables are read line by line into a folder beside the run, checked as a whole, and only then become part of the run: a
new run appears by one rename; in one that is there already predictions are added last, as one part.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import xxhash

from instar.case import blank_input
from instar.datasets import Dataset, shortened
from instar.engine.manifest import Conflict, grown_manifest
from instar.engine.messages import WorkerInfo
from instar.engine.packing import Packer
from instar.engine.plan import SOURCE, Plan, bound_rules, make_plan
from instar.engine.progress import Outcome
from instar.exchange.export import case_row, exported_cases, opened_export, read_mask
from instar.exchange.tables import KNOWN, Reader, kinds_in, lines, renamed
from instar.outputs import json_columns, output_kind, output_kinds
from instar.outputs.caption import Caption
from instar.relations import BoundRelation, Rule, own_equivariance
from instar.skeleton import Skeleton
from instar.spelling import nearest
from instar.store import (
    APART,
    KEY,
    DatasetInfo,
    Manifest,
    NoRun,
    ProviderInfo,
    RecordedInfo,
    RecordedTable,
    Store,
    SystemInfo,
    rows_frame,
)
from instar.suites import Suite
from instar.systems import fingerprint_of, hash_file
from instar.transforms import Change, NotApplicable, transformation
from instar.warp import Size, Warp

__all__ = ["import_outputs"]

CHUNK = 20_000
MOST_PIXELS = 1 << 28
NAMED = 8
"""How many of a list a message names."""


def import_outputs(
    tables: Sequence[str | Path],
    store: Store,
    *,
    kind: str | None = None,
    suite: Suite | None = None,
    export: str | Path | None = None,
    dataset: Dataset | None = None,
    columns: Mapping[str, str] | None = None,
    follow_up: str | None = None,
    skeleton: Skeleton | str | None = None,
    name: str | None = None,
) -> Outcome:
    """Make a run of recorded outputs, or add to one that was made so.

    Every line of a CSV or JSONL table is the output for one key, or for a pair: then columns that begin with `source_`
    are the source's. `columns` says what a column is called in the tables ({"caption": "text"}), `follow_up` what every
    line is about that does not say it. `suite` are the rules; without one, those of the `export`, else the kind's own
    equivariance for every follow-up. An `export` knows what was changed and the inputs; a `dataset` knows the inputs.
    """
    begun = time.monotonic()
    if export is not None and dataset is not None:
        raise ValueError("an export knows its dataset; give --export or --dataset, not both")
    if not tables and suite is None:
        raise ValueError("there is nothing to import; give a table of outputs, or with --suite more rules for a run")
    importer = _Importer(store, [Path(table) for table in tables], kind, export, columns or {}, follow_up, skeleton)
    with ExitStack() as stack:
        stack.enter_context(importer.scratch.lock())
        stack.callback(shutil.rmtree, importer.scratch.folder, ignore_errors=True)
        if importer.held is not None:
            stack.enter_context(store.lock())
        for left in importer.scratch.folder.iterdir():  # of an import that was killed
            if left.is_dir():
                shutil.rmtree(left)
        importer.read()
        importer.check()
        rules = importer.rules(suite)
        importer.inputs(dataset)
        importer.changes()
        importer.cases()
        importer.commit(suite, rules, dataset, name)
    counted = store.predictions(["status"], query=lambda rows: rows.group_by("status").agg(pl.len()))
    cases = store.cases(["status"])["status"]
    return Outcome(
        importer.added,
        time.monotonic() - begun,
        dict(counted.iter_rows()),
        len(cases),
        int((cases != "ok").sum()),
        False,
        tuple(importer.notes),
    )


class _Importer:
    """One import: what was asked, and what is known by now."""

    def __init__(
        self,
        store: Store,
        tables: Sequence[Path],
        kind: str | None,
        export: str | Path | None,
        columns: Mapping[str, str],
        follow_up: str | None,
        skeleton: Skeleton | str | None,
    ) -> None:
        self.store, self.tables = store, tables
        self.held = store.manifest() if store.exists else None
        _refuse_folder(store, self.held, tables)
        self.export = None if export is None else Path(export)
        self.about = None if export is None else opened_export(export)
        self.kind = self._kind(kind, columns)
        header = self.held.output if self.held else None
        self.reader = Reader(self.kind, self._common(skeleton, header), columns, follow_up, header)
        whole = store.folder.absolute()
        self.scratch = Store(whole.with_name(f".{whole.name}.import"))
        self.schema = {
            **store.prediction_schema(self.kind),
            "row": pl.Int64,
            "file": pl.Int32,
            "line": pl.Int64,
            "of_pair": pl.Boolean,
            "pair_hash": pl.String,
            "extras": pl.String,
        }
        self.packer, self.apart = Packer(), set[str]()
        self.hashes: list[str] = []
        self.counts: list[int] = []
        self.header: Mapping[str, Any] | None = None
        self.truth: dict[str, Any] | None = dict(self.held.truth) if self.held and self.held.truth else None
        self.known: dict[str, dict[str, Any]] = {}
        self.exported = pl.DataFrame()
        self.notes: list[str] = []
        self.added = 0

    # -- what was asked

    def _kind(self, given: str | None, columns: Mapping[str, str]) -> str:
        """The one that is said, by the user, the export or the run; else the one whose columns the first table has."""
        said = {
            "kind": given,
            "the export": (self.about or {}).get("kind"),
            "the run": self.held.system.kind if self.held else None,
        }
        told = {who: kind for who, kind in said.items() if kind is not None}
        if len(set(told.values())) > 1:
            raise Conflict(
                "what the outputs are is said differently: "
                + ", ".join(f"{who} says {kind}" for who, kind in told.items())
            )
        if told:
            return output_kind(next(iter(told.values()))).kind
        names = set(renamed(next(lines(self.tables[0]))[1], columns))
        own = {kind: output for kind, output in output_kinds().items() if output.relation is not None}
        kinds = [kind for kind in kinds_in({name.removeprefix("source_") for name in names}) if kind in own]
        if len(kinds) != 1:
            main = ", ".join(f"{next(iter(json_columns(kind).values()))} ({kind})" for kind in own)
            raise ValueError(
                f"{self.tables[0]}: its columns ({shortened(sorted(names), NAMED)}) say nothing, or "
                f"several things, of what the outputs are. There are {main}; say which with kind, or "
                "what a column is called with columns: caption=text"
            )
        return kinds[0]

    def _common(self, skeleton: Skeleton | str | None, header: Mapping[str, Any] | None) -> dict[str, object]:
        """Fields that every output has: those that outputs of the run have in common, and the skeleton."""
        fields = output_kind(self.kind).json_fields
        common = {name: value for name, value in (header or {}).items() if name in fields}
        return common if skeleton is None else {**common, "skeleton": skeleton}

    # -- reading

    def read(self) -> None:
        """All tables into the scratch folder, each line checked for itself."""
        row = 0
        for file, path in enumerate(self.tables):
            before, left = row, self._rows(path, file)
            while rows := list(islice(left, CHUNK)):
                for one in rows:
                    one["row"] = row = row + 1
                self.scratch.append("raw", self._frame(rows, self.schema))
            self.hashes.append(hash_file(str(path)))
            self.counts.append(row - before)
        self.keys = self.scratch.read(
            "raw", self.schema, [*KEY, "row", "file", "line", "of_pair", "pair_hash", "status", "width", "height"]
        )

    def _frame(self, rows: list[dict[str, Any]], schema: Mapping[str, Any]) -> pl.DataFrame:
        """Rows as a frame, with what is large set apart."""
        if not rows:
            return pl.DataFrame(schema=schema)
        packed = self.packer(rows)
        self.header = next(iter(packed.headers.values()), self.header)
        fresh = {name: content for name, content in packed.contents.items() if name not in self.apart}
        if fresh:
            self.apart.update(fresh)
            self.scratch.append_apart(fresh)
        there = {name for row in packed.rows for name in row}
        # columns that no row has are made at once: empty lists, each for itself, would take as long as all the rest
        absent = {name: kind for name, kind in schema.items() if name not in there}
        return (
            rows_frame(packed.rows, {name: kind for name, kind in schema.items() if name in there})
            .with_columns(
                pl.lit(pl.Series([[] if isinstance(kind, pl.List) else None], dtype=kind)).first().alias(name)
                for name, kind in absent.items()
            )
            .select(list(schema))
        )

    def _rows(self, path: Path, file: int) -> Iterator[dict[str, Any]]:
        seen = set[str]()
        for line, values in lines(path):
            seen.update(values)
            try:
                yield from ({**row, "file": file, "line": line} for row in self.reader.rows(values))
            except (ValueError, KeyError, TypeError, OverflowError) as error:
                raise ValueError(f"{path}, line {line}: {error}") from None
        for ours, theirs in self.reader.columns.items():
            if theirs not in seen:
                raise ValueError(
                    f"{path}: it has no column {theirs!r}, which --columns says is {ours}"
                    f"{nearest(theirs, seen)}; it has {shortened(sorted(seen), NAMED)}"
                )

    def _at(self, row: Mapping[str, Any]) -> str:
        return f"{self.tables[row['file']]}, line {row['line']}"

    def _first(self, rows: pl.DataFrame) -> tuple[str, dict[str, Any], str]:
        """Where the first of some rows stands, what it is, and how many more there are, in words."""
        row = rows.sort("row").row(0, named=True)
        more = f" ({rows.height - 1:,} more lines like it)" if rows.height > 1 else ""
        return self._at(row), row, more

    # -- checking

    def check(self) -> None:
        """No key twice, and no follow-up without a source."""
        groups = self.keys.group_by(KEY).agg(
            count=pl.len(), pairs=pl.col("of_pair").all(), answers=pl.col("pair_hash").n_unique()
        )
        twice = groups.filter((pl.col("count") > 1) & (~pl.col("pairs") | (pl.col("answers") > 1)))
        if not twice.is_empty():
            bad = self.keys.join(twice.select(KEY), on=KEY, how="semi").sort("row")
            first = bad.row(0, named=True)
            second = bad.filter(*(pl.col(name) == first[name] for name in KEY)).row(1, named=True)
            why = (
                "says something else of the source than there; what a stochastic system says again is another repeat"
                if first["of_pair"] and second["of_pair"]
                else "has the same key"
            )
            raise ValueError(
                f"{self._at(second)}: {_spelled(first)} is on line {first['line']} of "
                f"{self.tables[first['file']].name} already, and this line {why}"
                f"{_more(twice.height, 'keys')}"
            )
        self.keys = self.keys.sort("row").unique(KEY, keep="first", maintain_order=True)
        held = self.store.predictions(list(KEY)) if self.held else pl.DataFrame(schema=self.keys.select(KEY).schema)
        self._check_held(held)
        there = pl.concat([held, self.keys.select(KEY)]).filter(
            (pl.col("follow_up") == SOURCE) & (pl.col("repeat") == 0)
        )
        lonely = self.keys.filter(pl.col("follow_up") != SOURCE).join(there, on="case", how="anti")
        if not lonely.is_empty():
            at, row, more = self._first(lonely)
            raise ValueError(
                f"{at}: {_spelled(row)} has no source to be compared with{more}; what was said of the "
                "source is a line with follow_up source, or in columns that begin with source_. Where "
                "that failed, its status is error"
            )

    def _check_held(self, held: pl.DataFrame) -> None:
        """What the run holds is not said again; only the source of a pair may be, if it is the same."""
        both = self.keys.join(held, on=KEY, how="semi")
        if both.is_empty():
            return
        twice = both.filter(~pl.col("of_pair"))
        if not twice.is_empty():
            at, row, more = self._first(twice)
            raise ValueError(f"{at}: {self.store.folder} holds {_spelled(row)} already{more}")
        columns = [
            *KEY,
            "status",
            *(
                name
                for name in self.schema
                if name in self.store.prediction_schema(self.kind) and name not in (*KEY, *KNOWN, "mask")
            ),
        ]
        new = self.scratch.read("raw", self.schema, [*columns, "row", "file", "line"])
        new = new.join(both.select("row"), on="row", how="semi").sort(KEY)
        old = self.store.predictions(columns).join(both.select(KEY), on=KEY, how="semi").sort(KEY)
        if not new.select(columns).equals(old.select(columns)):
            number = next(n for n in range(new.height) if not new[n].select(columns).equals(old[n].select(columns)))
            raise ValueError(
                f"{self._at(new.row(number, named=True))}: {self.store.folder} holds another output for "
                f"{_spelled(new.row(number, named=True))}; give another --out"
            )
        self.keys = self.keys.join(held, on=KEY, how="anti")

    def rules(self, suite: Suite | None) -> tuple[Rule, ...]:
        """The rules to be added; every key must be in the plan of all."""
        old = bound_rules(self.held.rules, self.kind) if self.held else ()
        if suite is not None:
            new = bound_rules(suite.rules, self.kind)
        elif self.about is not None:
            new = bound_rules(self.about["rules"], self.kind)
        else:
            new = self._own_rules({t.id for rule in old for t in rule.transformations})
        self.deterministic = not (
            (self.keys["repeat"] > 0).any()
            or (self.about or {}).get("stochastic")
            or (self.held and not self.held.system.deterministic)
        )
        plan = make_plan(bound_rules([*old, *new], self.kind), seed=0, deterministic=self.deterministic)
        self._check_plan(plan)
        return new

    def _own_rules(self, covered: set[str]) -> tuple[Rule, ...]:
        """The kind's own equivariance for every follow-up that no rule is about, with as many draws as there are."""
        counts = (
            self.keys.filter(~pl.col("follow_up").is_in(covered))
            .group_by("follow_up", maintain_order=True)
            .agg(draws=pl.col("draw").max() + 1, repeats=pl.col("repeat").max() + 1)
        )
        own = own_equivariance(self.kind)
        asks = {p.name for p in own.relation.parameters}
        several = {name: {"draws": draws, "repeats": repeats} for name, draws, repeats in counts.iter_rows()}
        sources = several.pop(SOURCE, {"repeats": 1})["repeats"]
        rules = []
        for name, given in several.items():
            given = (
                {**given, "sources": sources}
                if "sources" in asks
                else {**given, "repeats": max(given["repeats"], sources)}
            )
            values = {**own.values, **{asked: count for asked, count in given.items() if asked in asks}}
            rules.append(Rule((transformation(name),), BoundRelation(own.relation, values), name))
        return tuple(rules)

    def _check_plan(self, plan: Plan) -> None:
        planned = pl.DataFrame(
            plan.keys(), schema={"follow_up": pl.String, "draw": pl.Int32, "repeat": pl.Int32}, orient="row"
        )
        names = planned["follow_up"].unique().to_list()
        beside = self.keys.join(planned, on=["follow_up", "draw", "repeat"], how="anti")
        if not beside.is_empty():
            at, row, more = self._first(beside)
            why = (
                f"no rule asks for draw {row['draw']} and repeat {row['repeat']} of it; a rule says how many with "
                "draws=, repeats= and sources="
                if row["follow_up"] in names
                else f"no rule is about it{nearest(row['follow_up'], names)}; add one with --suite"
            )
            raise ValueError(f"{at}: {_spelled(row)} is not in the plan: {why}{more}")
        absent = [name for name in names if name not in set(self.keys["follow_up"])]
        if absent and self.tables and self.about is None and self.held is None:
            self.notes.append(f"the tables have nothing of {shortened(absent, NAMED)}")

    # -- inputs and changes

    def inputs(self, dataset: Dataset | None) -> None:
        """What is known of the cases besides the tables, from the export or the dataset."""
        wanted = set(self.keys["case"])
        if self.export is not None:
            self._exported(wanted)
        elif dataset is not None:
            for case in dataset.cases():
                if case.id in wanted:
                    _, row, truth = case_row(case)
                    self._know(row, truth)
            missing = self.keys.filter(~pl.col("case").is_in(list(self.known)))
            if not missing.is_empty():
                at, row, more = self._first(missing)
                raise ValueError(f"{at}: {dataset.name} has no case {row['case']!r}{more}")

    def _know(self, row: dict[str, Any], truth: dict[str, Any] | None) -> None:
        if truth is not None and self.truth is None:
            self.truth = truth
        if truth != self.truth:
            row = {name: value for name, value in row.items() if not name.startswith("truth_")}
        self.known[row["case"]] = row

    def _exported(self, wanted: set[str]) -> None:
        """The export's cases and changes; what could not be made there is a row of the run."""
        schema = {name: self.schema[name] for name in (*KEY, "status", "message", *Change.columns)}
        frames, rows, needs = [], list[dict[str, Any]](), list[dict[str, Any]]()
        given = 0
        assert self.export is not None
        for record in exported_cases(self.export):
            row = record["case"]
            if row["case"] not in wanted and row["status"] == "ok":
                given += len(record["inputs"])
                continue
            if row["path"] is None and row["status"] == "ok":
                row.update(_source_file(self.export, record["inputs"]))
            self._know(row, record["truth"])
            for need in record["needs"]:
                if need["status"] == "ok":
                    self.scratch.put_blob(need["hash"], need.pop("data"))
                needs.append({**need, "case": row["case"]})
            rows += [
                {**line, **_change_row(line, (row["width"], row["height"]), self.export)} for line in record["inputs"]
            ]
            if len(rows) >= CHUNK:
                frames.append(self._frame(rows, schema))
                rows = []
        self.exported = pl.concat([*frames, self._frame(rows, schema)])
        self.scratch.append_needs(needs)
        if self.reader.changing:
            self.notes.append(
                "the export says what was changed; not used are "
                f"{shortened(sorted(self.reader.changing), NAMED)} of the tables"
            )
        beside = self.keys.join(self.exported, on=KEY, how="anti")
        if not beside.is_empty():
            at, row, more = self._first(beside)
            raise ValueError(f"{at}: {self.export} has no input {_spelled(row)}{more}")
        unmade = self.keys.join(self.exported.filter(pl.col("status") != "ok").select(*KEY, why="message"), on=KEY)
        if not unmade.is_empty():
            at, row, more = self._first(unmade)
            raise ValueError(
                f"{at}: there is an output for {_spelled(row)}, for which {self.export} has no input "
                f"({row['why']}){more}"
            )
        given += self.exported.filter(pl.col("status") == "ok").join(self.keys, on=KEY, how="anti").height
        if given:
            self.notes.append(f"{given:,} inputs of {self.export} have no output in the tables")

    def changes(self) -> None:
        """Predictions with what was changed, chunk by chunk."""
        taken = self.keys.select("row").sort("row")
        self.sizes = self._sizes()
        schema = self.store.prediction_schema(self.kind)
        for start in range(0, taken.height, CHUNK):
            mine = taken.slice(start, CHUNK)
            first, last = mine["row"][0], mine["row"][-1]
            part = self.scratch.read("raw", self.schema, where=pl.col("row").is_between(first, last))
            part = part.join(mine, on="row", how="semi")
            part = self._from_export(part) if self.export is not None else self._from_table(part)
            self.scratch.append("predictions", part.select(pl.col(name).cast(kind) for name, kind in schema.items()))
        unmade = self.exported.filter(pl.col("status") != "ok") if self.export is not None else pl.DataFrame()
        if not unmade.is_empty():
            held = self.store.predictions(list(KEY)) if self.held else None
            unmade = unmade if held is None else unmade.join(held, on=KEY, how="anti")
            self.scratch.append("predictions", rows_frame(unmade.to_dicts(), schema))
            self.keys = pl.concat([self.keys, unmade.select(KEY)], how="diagonal")
        self.added = self.keys.height

    def _from_export(self, part: pl.DataFrame) -> pl.DataFrame:
        return part.drop(*Change.columns).join(self.exported.drop("status", "message"), on=KEY, how="left")

    def _sizes(self) -> pl.DataFrame:
        """The size of each case's source, as `wide` and `high`; the dataset's and the table's must be the same."""
        schema = {"case": pl.String, "wide": pl.Int32, "high": pl.Int32}
        told = self.keys.filter((pl.col("follow_up") == SOURCE) & (pl.col("repeat") == 0)).select(
            "case", "row", "file", "line", wide="width", high="height"
        )
        known = pl.DataFrame(
            [(name, row.get("width"), row.get("height")) for name, row in self.known.items()],
            schema=schema,
            orient="row",
        )
        other = told.join(known, on="case").filter(
            (pl.col("wide") != pl.col("wide_right")) | (pl.col("high") != pl.col("high_right"))
        )
        if not other.is_empty():
            at, row, more = self._first(other)
            raise ValueError(
                f"{at}: the source of {row['case']} is {row['wide']}×{row['high']} here, and "
                f"{row['wide_right']}×{row['high_right']} in the dataset{more}"
            )
        held = (
            self.store.cases(["case", "width", "height"]).rename({"width": "wide", "height": "high"})
            if (self.held)
            else pl.DataFrame(schema=schema)
        )
        return (
            pl.concat([known, held, told.select("case", "wide", "high")])
            .drop_nulls()
            .unique("case", keep="first", maintain_order=True)
        )

    def _from_table(self, part: pl.DataFrame) -> pl.DataFrame:
        """What the table says of the change; where it says nothing, what the transformation does to such a frame."""
        part = part.join(self.sizes, on="case", how="left", maintain_order="left").with_columns(
            pl.col("wide", "high").fill_null(0)
        )
        fine, unsaid = pl.col("status") == "ok", pl.col("warp").list.len() == 0
        made = []
        for name, wide, high in (
            part.filter(fine & unsaid).select("follow_up", "wide", "high").unique(maintain_order=True).iter_rows()
        ):
            found = self._derived(name, (wide, high))
            if isinstance(found, str):
                mine = part.filter(
                    fine & unsaid & (pl.col("follow_up") == name) & (pl.col("wide") == wide) & (pl.col("high") == high)
                )
                at, row, more = self._first(mine)
                raise ValueError(f"{at}: {_spelled(row)}: {found}{more}")
            (width, height), matrix = found
            made.append((name, wide, high, matrix, width, height))
        derived = pl.DataFrame(
            made,
            orient="row",
            schema={
                "follow_up": pl.String,
                "wide": pl.Int32,
                "high": pl.Int32,
                "matrix": pl.List(pl.Float64),
                "to_wide": pl.Int32,
                "to_high": pl.Int32,
            },
        )
        part = part.join(derived, on=["follow_up", "wide", "high"], how="left", maintain_order="left")
        other = part.filter(
            fine & unsaid & ((pl.col("width") != pl.col("to_wide")) | (pl.col("height") != pl.col("to_high")))
        )
        if not other.is_empty():
            at, row, more = self._first(other)
            raise ValueError(
                f"{at}: {row['follow_up']} of a source of {row['wide']}×{row['high']} is "
                f"{row['to_wide']}×{row['to_high']}, not {row['width']}×{row['height']}{more}"
            )
        return part.with_columns(
            warp=pl.when(fine & unsaid).then("matrix").otherwise("warp"),
            width=pl.coalesce("width", "to_wide", pl.when(pl.col("wide") > 0).then("wide")),
            height=pl.coalesce("height", "to_high", pl.when(pl.col("high") > 0).then("high")),
        )

    def _derived(self, name: str, size: Size) -> tuple[tuple[int | None, int | None], list[float]] | str:
        """Frame and warp of a follow-up, or why they are not known."""
        if size == (0, 0):
            if self.kind == Caption.kind:  # words have no place in a picture
                return (None, None), np.eye(3).ravel().tolist()
            return (
                "the size of the source is not known, and what is judged has a place in it; give the columns width "
                "and height, or --export or --dataset"
            )
        found = Change.none(size) if name == SOURCE else _change_of(name, size, output_kind(self.kind).answers)
        if isinstance(found, str):
            if self.kind != Caption.kind:
                return f"what it does to a picture is not known without it ({found}); give the column warp, or --export"
            found = Change.none(size)
        return found.warp.target, found.warp.matrix.ravel().tolist()

    # -- cases

    def cases(self) -> None:
        """Rows of the cases that the run does not hold: what the tables say of them besides outputs, and truth."""
        extras = self.scratch.read(
            "raw", self.schema, ["case", "extras", "file", "line", "row"], pl.col("extras").is_not_null()
        ).sort("row")
        told = extras.group_by("case", maintain_order=True).agg(
            pl.col("extras").unique(maintain_order=True), pl.col("file", "line").first()
        )
        varying = _varying(told.filter(pl.col("extras").list.len() > 1)["extras"])
        for name in varying & self.reader.truths:
            raise ValueError(f"the column {name} is the truth of a case, and differs between lines of one case")
        held = dict(self.store.cases(["case", "attributes"]).iter_rows()) if self.held else {}
        names = pl.DataFrame({"case": self.keys["case"].unique(maintain_order=True)})
        for more in (told, self.sizes):
            names = names.join(more, on="case", how="left", maintain_order="left")
        rows: list[dict[str, Any]] = []
        kept, other = set[str](), set[str]()
        for case, texts, file, line, wide, high in names.iter_rows():
            said: dict[str, Any] = {}
            for text in texts or ():
                said.update(json.loads(text))
            truth = {name: said.pop(name) for name in list(said) if name in self.reader.truths}
            said = {name: value for name, value in said.items() if name not in varying}
            if case in held:
                before = json.loads(held[case])
                other.update(name for name, value in said.items() if before.get(name) != value)
                continue
            kept.update(said)
            row = self.known.pop(case, None) or {"case": case, "status": "ok", "width": wide, "height": high}
            row["attributes"] = json.dumps({**json.loads(row.get("attributes") or "{}"), **said}, ensure_ascii=False)
            if truth:
                try:
                    row.update(self._truth(truth))
                except (ValueError, TypeError) as error:
                    where = self._at({"file": file, "line": line})
                    raise ValueError(f"{where}: the truth of case {case!r}: {error}") from None
            rows.append(row)
            if len(rows) >= CHUNK:
                self.scratch.append_cases(rows, (self.truth or {}).get("kind"))
                rows = []
        rows += [row for row in self.known.values() if row["case"] not in held]  # those that could not be read
        self.scratch.append_cases(rows, (self.truth or {}).get("kind"))
        if kept:
            self.notes.append(f"taken as attributes of cases: {shortened(sorted(kept), NAMED)}")
        if varying:
            self.notes.append(
                "left out, because they differ between lines of one case: "
                f"{shortened(sorted(varying), NAMED)}; --columns facts.NAME=COLUMN makes one a fact of "
                "the follow-up"
            )
        if other:
            self.notes.append(
                "cases that the run holds keep their attributes; the tables say something else of "
                f"{shortened(sorted(other), NAMED)}"
            )

    def _truth(self, told: Mapping[str, Any]) -> dict[str, Any]:
        truth = self.reader.truth(told)
        self.truth = self.truth or truth.header()
        if truth.header() != self.truth:
            raise ValueError(f"it is {truth.kind}, that of other cases is {self.truth['kind']}")
        return {f"truth_{name}": value for name, value in truth.row().items()}

    # -- the run

    def commit(self, suite: Suite | None, rules: tuple[Rule, ...], dataset: Dataset | None, name: str | None) -> None:
        """What was read becomes part of the run."""
        target = self.scratch if self.held is None else self.store
        if self.held is not None:
            self._add_beside()
        about = self.about or {}
        source = dataset or self._known_dataset(about)
        system = (
            self.held.system
            if self.held
            else SystemInfo(
                name or self.tables[0].stem,
                self.kind,
                fingerprint="",
                deterministic=self.deterministic,
                seedable=False,
                takes=output_kind(self.kind).answers,
            )
        )
        if suite is None:
            suite = (
                Suite(
                    " + ".join(about["suites"]),
                    rules,
                    options=about["options"],
                    thresholds=about["thresholds"],
                    panels=tuple(about["panels"]),
                )
                if about
                else Suite("recorded", rules)
            )
        before = self.held.recorded if self.held else None
        providers = {need: ProviderInfo(**who) for need, who in about.get("providers", {}).items()}
        manifest = grown_manifest(target, WorkerInfo(system, providers), suite, rules, source, about.get("seed"))
        tables = (
            *(before.tables if before else ()),
            *(
                RecordedTable(path.name, digest, count)
                for path, digest, count in zip(self.tables, self.hashes, self.counts, strict=True)
            ),
        )
        fingerprint = fingerprint_of("recorded", *sorted(one.hash for one in tables))
        target.write_manifest(
            replace(
                manifest,
                recorded=RecordedInfo(tables, bool(about or dataset or (before and before.inputs))),
                system=replace(system, deterministic=self.deterministic, fingerprint=fingerprint),
                output=manifest.output or self.header,
                truth=self.truth,
            )
        )
        if self.held is None:
            shutil.rmtree(self.scratch.folder / "raw", ignore_errors=True)
            self.scratch.folder.rename(self.store.folder.absolute())
        else:
            self.store.append("predictions", self.scratch.read("predictions", self.store.prediction_schema(self.kind)))

    def _known_dataset(self, about: Mapping[str, Any]) -> Dataset:
        """Where the cases come from, as the export, the table or the run says it; nothing can be read there."""
        if "dataset" in about:
            info = DatasetInfo(**about["dataset"])
        elif self.tables or self.held is None:
            info = DatasetInfo(self.tables[0].name, "")
        else:
            info = self.held.datasets[0]
        return Dataset(info.name, info.root, lambda: iter(()))

    def _add_beside(self) -> None:
        """All that predictions need, as far as the run does not hold it; a kill here costs nothing."""
        self.store.append("cases", self.scratch.read("cases", {}))
        held = self.store.read("apart", APART, ["hash"])
        self.store.append("apart", self.scratch.read("apart", APART).join(held, on="hash", how="anti"))
        needs = self.scratch.needs().join(self.store.needs(), on=["case", "need"], how="anti")
        for hash_ in needs["hash"].drop_nulls().unique():
            self.store.put_blob(hash_, self.scratch.blob(hash_))
        self.store.append("needs", needs)


def _refuse_folder(store: Store, held: Manifest | None, tables: Sequence[Path]) -> None:
    if held is None:
        if not tables:
            raise NoRun(f"{store.folder} holds no run yet; give a table of outputs")
        if store.folder.exists() and (not store.folder.is_dir() or any(store.folder.iterdir())):
            raise Conflict(f"{store.folder} is there already and holds no run; give another --out")
    elif held.recorded is None:
        raise Conflict(
            f"{store.folder} is a run of {held.system.name}, which was asked itself; recorded outputs "
            "do not belong in it. Give another --out"
        )


def _spelled(row: Mapping[str, Any]) -> str:
    """A key as people read it."""
    more = "".join(f", {name} {row[name]}" for name in ("draw", "repeat") if row[name])
    return f"{row['follow_up']} of case {row['case']!r}{more}"


def _more(count: int, what: str) -> str:
    return f" ({count - 1:,} more {what} like it)" if count > 1 else ""


def _varying(texts: pl.Series) -> set[str]:
    """The columns whose value differs between lines of one case."""
    found = set[str]()
    for several in texts:
        merged: dict[str, Any] = {}
        for text in several:
            for name, value in json.loads(text).items():
                if merged.setdefault(name, value) != value:
                    found.add(name)
    return found


def _source_file(export: Path, lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A picture that was in memory only has a file now: the one that was exported."""
    file = next(line["file"] for line in lines if line["follow_up"] == SOURCE)
    if not file.endswith(".png"):
        return {}
    path = (export / file).absolute()
    return {"path": str(path), "hash": xxhash.xxh3_128_hexdigest(path.read_bytes())}


def _change_row(line: Mapping[str, Any], size: Size, export: Path) -> dict[str, Any]:
    """An exported line's change as the columns of a prediction."""
    if line["status"] != "ok":
        return {}
    told = line["change"]
    mask = read_mask(export / told["mask"]) if "mask" in told else None
    warp = Warp(np.array(told["warp"]), size, (line["width"], line["height"]))
    regions = tuple((a, b, c, d) for a, b, c, d in told["regions"])
    return Change(warp, regions, tuple(told["added"]), tuple(told["removed"]), told["facts"], mask).row()


@lru_cache(maxsize=4096)
def _change_of(name: str, size: Size, takes: str) -> Change | str:
    """What a transformation does to any input of a size; or why that is not known without the input."""
    wanted = transformation(name)
    if wanted.photometric or [step.family.name for step in wanted.steps] == ["recorded"]:
        return Change.none(size)
    if wanted.needs or wanted.random:
        return f"it needs {' and '.join(sorted(wanted.needs))}" if wanted.needs else "it is random"
    width, height = size
    if width * height > MOST_PIXELS:
        return f"{width:,} × {height:,} pixels are too many to try it on"
    try:
        return wanted(blank_input(takes, size))[1]
    except NotApplicable as error:
        return str(error)
