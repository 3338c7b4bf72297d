"""What is known of the inputs of an import besides its tables, from the export or from the dataset."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import polars as pl

from instar.datasets import Dataset, shortened
from instar.engine.cases import case_row, read_case
from instar.engine.plan import SOURCE
from instar.exchange.exported import ExportedCase, check_inputs, content_hash, exported_cases
from instar.exchange.raw import CHUNK, NAMED, RawRows, spelled_key
from instar.files import inside, path_text
from instar.outputs import Output
from instar.reading import image_bytes
from instar.store import KEY, Row
from instar.store.manifest import Header
from instar.transforms import Change


class KnownInputs:
    """Rows of cases by id, the header of their truth, and what an export says was changed, None without one."""

    def __init__(self, truth: Header | None) -> None:
        self.cases: dict[str, Row] = {}
        self.truth = truth
        self.changes: pl.DataFrame | None = None

    def add_dataset(self, raw: RawRows, dataset: Dataset) -> None:
        wanted = set(raw.keys["case"])
        for case in dataset.cases():
            if case.id in wanted:
                truth = cast("Output | None", case.truth)
                row = {**case_row(case, None if truth is None else truth.kind), **read_case(case)[1].row()}
                self._add(row, None if truth is None else truth.header())
        missing = raw.keys.filter(~pl.col("case").is_in(list(self.cases)))
        if not missing.is_empty():
            at, row, more = raw.first(missing)
            raise ValueError(f"{at}: {dataset.name} has no case {row['case']!r}{more}")

    def add_export(self, raw: RawRows, folder: Path) -> None:
        """The export's cases and changes; what could not be made there is a row of the run."""
        schema = {name: raw.schema[name] for name in (*KEY, "status", "message", *Change.columns)}
        wanted = set(raw.keys["case"])
        frames, rows, needs = [], list[Row](), list[Row]()
        unanswered = gone = 0
        for exported in exported_cases(folder):
            case = exported.case
            if case["case"] not in wanted and case["status"] == "ok":
                unanswered += len(exported.inputs)
                continue
            gone += check_inputs(folder, exported.inputs)
            if case["path"] is None and case["status"] == "ok":
                case.update(_source_file(folder, exported))
            self._add(case, exported.truth)
            for need in exported.needs:
                if need["status"] == "ok":
                    raw.scratch.put_blob(need["hash"], need["data"])
                needs.append({**{name: need[name] for name in need if name != "data"}, "case": case["case"]})
            rows += [line.row((case["width"], case["height"]), folder) for line in exported.inputs]
            if len(rows) >= CHUNK:
                frames.append(raw.frame(rows, schema))
                rows = []
        self.changes = pl.concat([*frames, raw.frame(rows, schema)])
        raw.scratch.append_needs(needs)
        _check_exported(raw, self.changes, folder)
        made = self.changes.filter(pl.col("status") == "ok")
        unanswered += made.join(raw.keys, on=KEY, how="anti").height
        if raw.reader.changing:
            raw.notes.append(
                "the export says what was changed; not used are "
                f"{shortened(sorted(raw.reader.changing), NAMED)} of the tables"
            )
        if unanswered:
            raw.notes.append(f"{unanswered:,} inputs of {folder} have no output in the tables")
        if gone:
            raw.notes.append(f"{gone:,} inputs of {folder} are gone, and could not be compared with what was exported")

    def _add(self, row: Row, truth: Header | None) -> None:
        if truth is not None and self.truth is None:
            self.truth = truth
        if truth != self.truth:
            row = {name: value for name, value in row.items() if not name.startswith("truth_")}
        self.cases[row["case"]] = row


def _check_exported(raw: RawRows, changes: pl.DataFrame, folder: Path) -> None:
    """Every key of the tables is an input of the export, and one that was made."""
    beside = raw.keys.join(changes, on=KEY, how="anti")
    if not beside.is_empty():
        at, row, more = raw.first(beside)
        raise ValueError(f"{at}: {folder} has no input {spelled_key(row)}{more}")
    unmade = raw.keys.join(changes.filter(pl.col("status") != "ok").select(*KEY, why="message"), on=KEY)
    if not unmade.is_empty():
        at, row, more = raw.first(unmade)
        raise ValueError(
            f"{at}: there is an output for {spelled_key(row)}, for which {folder} has no input ({row['why']}){more}"
        )


def _source_file(folder: Path, exported: ExportedCase) -> Row:
    """An image that was in memory only has a file now: the one that was exported."""
    file = next(line.file for line in exported.inputs if line.follow_up == SOURCE)
    if file is None or not file.endswith(".png"):
        return {}
    path = inside(folder, file).absolute()
    if not path.exists():
        return {}
    return {"path": path_text(str(path)), "hash": content_hash(image_bytes(path))}
