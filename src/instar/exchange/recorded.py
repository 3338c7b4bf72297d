"""Import: a run made of recorded outputs. What a system said elsewhere, in tables of any length.

Tables are read line by line into a folder beside the run, checked as a whole, and only then become part of the run: a
new run appears by one rename; in one that is there already predictions are added as one part, and the manifest that
speaks of them is written last. An import that was killed is completed by giving it again.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from instar.datasets import Dataset, shortened
from instar.engine.manifest import Conflict, grown, refuse_pixels
from instar.engine.messages import WorkerInfo
from instar.engine.progress import Outcome, outcome_of
from instar.exchange.cases import add_cases
from instar.exchange.changes import add_predictions, source_sizes
from instar.exchange.exported import ExportManifest, opened_export
from instar.exchange.inputs import KnownInputs
from instar.exchange.keys import check_keys
from instar.exchange.raw import NAMED, RAW, RawRows
from instar.exchange.rules import import_rules
from instar.exchange.tables import Reader, kinds_in, lines, renamed
from instar.files import clear_unfinished
from instar.outputs import json_columns, output_kind, output_kinds
from instar.relations import Rule
from instar.skeleton import Skeleton
from instar.store import APART, NAMES, DatasetInfo, Manifest, NoRun, RecordedInfo, Store, SystemInfo
from instar.suites import Suite
from instar.systems import fingerprint_of


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
        raise ValueError("an export knows its dataset; give export or dataset, not both")
    if not tables and suite is None:
        raise ValueError("there is nothing to import; give a table of outputs, or with suite more rules for a run")
    importer = _Importer(store, [Path(table) for table in tables], export)
    reader = importer.reader(kind, columns or {}, follow_up, skeleton)
    with ExitStack() as stack:
        stack.enter_context(importer.scratch.lock())
        importer.clear_scratch()
        stack.callback(shutil.rmtree, importer.scratch.folder, ignore_errors=True)
        if importer.before is not None:
            stack.enter_context(store.lock())
        raw = importer.read(reader, suite, dataset)
        importer.commit(raw, suite, dataset, name)
    return outcome_of(store, raw.keys.height - raw.stored.height, begun, raw.notes)


class _Importer:
    """One import. `before` is the manifest of the run that it adds to, None for a new one."""

    def __init__(self, store: Store, tables: Sequence[Path], export: str | Path | None) -> None:
        store.refuse_bucket("recorded outputs are imported into a folder on a disk; give one (`out`)")
        self.store, self.tables = store, tables
        self.before = store.manifest() if store.exists else None
        self.run = None if self.before is None else store
        _refuse_folder(store, self.before, tables)
        self.export_folder = None if export is None else Path(export)
        self.export = None if export is None else opened_export(export)
        whole = store.folder.absolute()
        self.scratch = Store(whole.with_name(f".{whole.name}.import"))
        self.inputs = KnownInputs(self.before.truth if self.before else None)
        self.rules: tuple[Rule, ...] = ()
        self.deterministic = True

    def reader(
        self, kind: str | None, columns: Mapping[str, str], follow_up: str | None, skeleton: Skeleton | str | None
    ) -> Reader:
        name = _kind(kind, self.export, self.before) or _guessed_kind(self.tables[0], columns)
        header = self.before.output if self.before else None
        fields = output_kind(name).json_fields
        common = {field: value for field, value in (header or {}).items() if field in fields}
        if skeleton is not None:
            common["skeleton"] = skeleton
        return Reader(name, common, columns, follow_up, header)

    def clear_scratch(self) -> None:
        """Delete what a killed import left. A folder of that name that is somebody's own is left alone."""
        folder = self.scratch.folder
        clear_unfinished([folder])
        names = {*NAMES, RAW}
        strangers = sorted(path.name for path in folder.iterdir() if path.name not in names)
        if strangers:
            raise Conflict(
                f"{folder} is where an import prepares its run, and it holds {shortened(strangers, NAMED)}; move that, "
                "or give another folder (`out`)"
            )
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)

    def read(self, reader: Reader, suite: Suite | None, dataset: Dataset | None) -> RawRows:
        """All that becomes part of the run, checked, in the folder beside it."""
        raw = RawRows(self.scratch, self.tables, reader)
        check_keys(raw, self.run, self.before)
        self.rules, self.deterministic = import_rules(raw, suite, self.export, self.before)
        if self.export_folder is not None:
            self.inputs.add_export(raw, self.export_folder)
        elif dataset is not None:
            self.inputs.add_dataset(raw, dataset)
        sizes = source_sizes(raw, self.inputs, self.run)
        add_predictions(raw, self.inputs, sizes, self.run)
        add_cases(raw, self.inputs, sizes, self.run)
        return raw

    def commit(self, raw: RawRows, suite: Suite | None, dataset: Dataset | None, name: str | None) -> None:
        """What was read becomes part of the run."""
        target = self.run or self.scratch
        if self.run is not None:
            self._add_beside()
            self.run.append("predictions", self.scratch.read("predictions", self.run.prediction_schema(raw.kind)))
        target.write_manifest(self._manifest(raw, suite, dataset, name))
        if self.run is None:
            shutil.rmtree(self.scratch.folder / RAW, ignore_errors=True)
            self.scratch.folder.rename(self.store.folder.absolute())

    def _manifest(self, raw: RawRows, suite: Suite | None, dataset: Dataset | None, name: str | None) -> Manifest:
        system = self.before.system if self.before else self._system(raw.kind, name)
        info = WorkerInfo(system, self.export.providers if self.export else {})
        seed = self.export.seed if self.export else None
        source, rules = dataset or self._known_dataset(), suite or self._suite()
        manifest = grown(self.before, info, rules, self.rules, source, seed, folder=self.store.folder)
        recorded = self.before.recorded if self.before else None
        tables = tuple(dict.fromkeys([*(recorded.tables if recorded else ()), *raw.recorded]))
        fingerprint = fingerprint_of("recorded", *sorted(table.hash for table in tables))
        return replace(
            manifest,
            recorded=RecordedInfo(tables, bool(self.export or dataset or (recorded and recorded.inputs))),
            system=replace(system, deterministic=self.deterministic, fingerprint=fingerprint),
            output=manifest.output or raw.reader.header,
            truth=self.inputs.truth,
        )

    def _system(self, kind: str, name: str | None) -> SystemInfo:
        return SystemInfo(
            name or self.tables[0].stem,
            kind,
            fingerprint="",
            deterministic=self.deterministic,
            seedable=False,
            takes=output_kind(kind).answers,
        )

    def _suite(self) -> Suite:
        """The rules as a suite, with what the export's suites asked for."""
        if self.export is None:
            return Suite("recorded", self.rules)
        return Suite(
            " + ".join(self.export.suites),
            self.rules,
            options=self.export.options,
            thresholds=self.export.thresholds,
            panels=self.export.panels,
            titles=self.export.titles,
        )

    def _known_dataset(self) -> Dataset:
        """Where the cases come from, as the export, the table or the run says it; nothing can be read there."""
        if self.export is not None:
            info = self.export.dataset
        elif self.before is not None and not self.tables:
            info = self.before.datasets[0]
        else:
            info = DatasetInfo(self.tables[0].name, "")
        return Dataset(info.name, info.folder, lambda: iter(()))

    def _add_beside(self) -> None:
        """All that predictions need, as far as the run does not hold it; a kill here costs nothing."""
        self.store.append("cases", self.scratch.read("cases", {}))
        stored = self.store.read("apart", APART, ["hash"])
        self.store.append("apart", self.scratch.read("apart", APART).join(stored, on="hash", how="anti"))
        needs = self.scratch.needs().join(self.store.needs(), on=["case", "need"], how="anti")
        for hash_ in needs["hash"].drop_nulls().unique():
            self.store.put_blob(hash_, self.scratch.blob(hash_))
        self.store.append("needs", needs)


def _refuse_folder(store: Store, before: Manifest | None, tables: Sequence[Path]) -> None:
    other = "give another folder (`out`)"
    if before is None:
        if not tables:
            raise NoRun(f"{store.folder} holds no run yet; give a table of outputs")
        if store.folder.exists() and (not store.folder.is_dir() or any(store.folder.iterdir())):
            raise Conflict(f"{store.folder} is there already and holds no run; {other}")
    elif before.recorded is None:
        raise Conflict(
            f"{store.folder} is a run of {before.system.name}, which was asked itself; recorded outputs "
            f"do not belong in it, {other}"
        )
    else:
        refuse_pixels(store.folder, before.max_pixels, may_rise=False)


def _kind(name: str | None, export: ExportManifest | None, before: Manifest | None) -> str | None:
    """What the outputs are, as far as somebody says it."""
    said_by = {
        "the parameter kind": name,
        "the export": export.kind if export else None,
        "the run": before.system.kind if before else None,
    }
    kinds = {who: kind for who, kind in said_by.items() if kind is not None}
    if len(set(kinds.values())) > 1:
        raise Conflict(
            "what the outputs are is said differently: "
            + ", ".join(f"{who} says {kind}" for who, kind in kinds.items())
        )
    return next((output_kind(kind).kind for kind in kinds.values()), None)


def _guessed_kind(table: Path, columns: Mapping[str, str]) -> str:
    """The kind whose columns the first line has. Kinds without a relation of their own are not guessed: a column of
    theirs is more likely an attribute of cases."""
    names = set(renamed(next(lines(table))[1], columns))
    own = [kind for kind, output in output_kinds().items() if output.relation is not None]
    kinds = [kind for kind in kinds_in({name.removeprefix("source_") for name in names}) if kind in own]
    if len(kinds) != 1:
        main = ", ".join(f"{next(iter(json_columns(kind).values()))} ({kind})" for kind in own)
        raise ValueError(
            f"{table}: its columns ({shortened(sorted(names), NAMED)}) say nothing, or "
            f"several things, of what the outputs are. There are {main}; say which with the parameter kind, or "
            "what a column is called with columns: caption=text"
        )
    return kinds[0]
