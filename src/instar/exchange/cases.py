"""The cases of an import: what the tables say of them besides outputs, and their truth."""

from __future__ import annotations

import json
from collections.abc import Sequence

import polars as pl

from instar.datasets import shortened
from instar.engine.cases import attributes_json
from instar.exchange.inputs import KnownInputs
from instar.exchange.raw import CHUNK, NAMED, RawRows
from instar.store import Row, Store


def add_cases(raw: RawRows, inputs: KnownInputs, sizes: pl.DataFrame, run: Store | None) -> None:
    """Write the rows of the cases that the run does not hold yet."""
    extras = raw.read(["case", "extras", "file", "line", "row"], pl.col("extras").is_not_null()).sort("row")
    by_case = extras.group_by("case", maintain_order=True).agg(
        pl.col("extras").unique(maintain_order=True), pl.col("file", "line").first()
    )
    varying = _varying(by_case.filter(pl.col("extras").list.len() > 1)["extras"])
    for name in varying & raw.reader.truths:
        raise ValueError(f"the column {name} is the truth of a case, and differs between lines of one case")
    stored = {} if run is None else dict(run.cases(["case", "attributes"]).iter_rows())
    cases = pl.DataFrame({"case": raw.keys["case"].unique(maintain_order=True)})
    for more in (by_case, sizes):
        cases = cases.join(more, on="case", how="left", maintain_order="left")
    rows: list[Row] = []
    kept, other = set[str](), set[str]()
    for case, texts, file, line, wide, high in cases.iter_rows():
        attributes, truth = _attributes_and_truth(texts or (), varying, raw.reader.truths)
        if case in stored:
            before = json.loads(stored[case])
            other.update(name for name, value in attributes.items() if before.get(name) != value)
            continue
        kept.update(attributes)
        row = inputs.cases.pop(case, None) or {"case": case, "status": "ok", "width": wide, "height": high}
        row["attributes"] = attributes_json({**json.loads(row.get("attributes") or "{}"), **attributes})
        if truth:
            try:
                row.update(_truth_columns(raw, inputs, truth))
            except (ValueError, TypeError) as error:
                where = raw.at({"file": file, "line": line})
                raise ValueError(f"{where}: the truth of case {case!r}: {error}") from None
        rows.append(row)
        if len(rows) >= CHUNK:
            _append(raw, inputs, rows)
            rows = []
    unreadable = [row for row in inputs.cases.values() if row["case"] not in stored]
    _append(raw, inputs, [*rows, *unreadable])
    raw.notes += _notes(kept, varying, other)


def _append(raw: RawRows, inputs: KnownInputs, rows: list[Row]) -> None:
    raw.scratch.append_cases(rows, None if inputs.truth is None else inputs.truth["kind"])


def _attributes_and_truth(texts: Sequence[str], varying: set[str], truths: set[str]) -> tuple[Row, Row]:
    """What the lines of a case say in other columns, less what they do not agree on."""
    values: Row = {}
    for text in texts:
        values.update(json.loads(text))
    truth = {name: value for name, value in values.items() if name in truths}
    return {name: value for name, value in values.items() if name not in varying and name not in truths}, truth


def _truth_columns(raw: RawRows, inputs: KnownInputs, values: Row) -> Row:
    truth = raw.reader.truth(values)
    inputs.truth = inputs.truth or truth.header()
    if truth.header() != inputs.truth:
        raise ValueError(f"it is {truth.kind}, that of other cases is {inputs.truth['kind']}")
    return {f"truth_{name}": value for name, value in truth.row().items()}


def _varying(texts: pl.Series) -> set[str]:
    """The columns whose value differs between lines of one case."""
    varying = set[str]()
    for several in texts:
        merged: Row = {}
        for text in several:
            varying |= {name for name, value in json.loads(text).items() if merged.setdefault(name, value) != value}
    return varying


def _notes(kept: set[str], varying: set[str], other: set[str]) -> list[str]:
    notes = []
    if kept:
        notes.append(f"taken as attributes of cases: {shortened(sorted(kept), NAMED)}")
    if varying:
        notes.append(
            f"left out, because they differ between lines of one case: {shortened(sorted(varying), NAMED)}; the "
            "parameter columns makes one a fact of the follow-up: facts.NAME=COLUMN"
        )
    if other:
        notes.append(
            "cases that the run holds keep their attributes; the tables say something else of "
            f"{shortened(sorted(other), NAMED)}"
        )
    return notes
