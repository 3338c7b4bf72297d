"""Attributes of cases from a table of the user's, for every dataset: `folder("photos/", attributes="objects.csv")`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import polars as pl

from instar.case import Case
from instar.datasets.dataset import Dataset, DatasetFamily, counted, existing, nfc, shortened
from instar.json_values import refuse_columns
from instar.reading import Unreadable, file_bytes
from instar.spelling import Parameter

_ATTRIBUTES = Parameter(
    "attributes", "text", None, help="a CSV file whose column `case` has the cases' ids, and its others attributes"
)
Rows = Mapping[str, Mapping[str, object]]


def with_attributes(family: DatasetFamily) -> DatasetFamily:
    """The same datasets, whose cases can have more attributes: those of a table."""
    if any(parameter.name == _ATTRIBUTES.name for parameter in family.parameters):
        return family
    return replace(family, open=partial(_open, family), parameters=(*family.parameters, _ATTRIBUTES))


def _open(family: DatasetFamily, name: str, *, attributes: str | None, **values: object) -> Dataset:
    opened = family.open(name, **values)
    if attributes is None:
        return opened
    rows = _rows(Path(attributes))
    ids = {case.id for case in opened.cases()}
    strangers, bare = sorted(rows.keys() - ids), sorted(ids - rows.keys())
    if len(strangers) == len(rows):
        raise ValueError(
            f"{attributes}: no line of it names a case; it has {shortened(strangers)}, the cases are {shortened(bare)}"
        )
    notes = list(opened.notes)
    if strangers:
        notes.append(f"{counted(len(strangers), 'line')} of {attributes} of no case: {shortened(strangers)}")
    if bare:
        notes.append(f"{counted(len(bare), 'case')} without a line in {attributes}: {shortened(bare)}")
    return replace(opened, cases=partial(_cases, opened, rows), notes=tuple(notes))


def _rows(file: Path) -> Rows:
    """By case; what is empty is left out. A column is of numbers or of truth values where all its lines are."""
    existing(file, "table of attributes", Path.is_file)
    try:
        table = pl.read_csv(file_bytes(file), schema_overrides={"case": pl.String}, infer_schema_length=None)
    except (pl.exceptions.PolarsError, Unreadable) as error:
        raise ValueError(f"{file}: not a table in CSV ({str(error).splitlines()[0][:200]})") from None
    refuse_columns(str(file), table.width)
    if "case" not in table.columns or len(table.columns) < 2:
        raise ValueError(
            f"{file}: a table of attributes has a column 'case' and others; its first line names "
            f"{', '.join(table.columns)}"
        )
    rows: dict[str, dict[str, object]] = {}
    for number, row in enumerate(table.iter_rows(named=True), 2):
        case = nfc(row.pop("case") or "")
        if not case or case in rows:
            why = f"{case} has a line already" if case else "it names no case"
            raise ValueError(f"{file}, line {number}: {why}")
        rows[case] = {key: value for key, value in row.items() if value is not None}
    return rows


def _cases(opened: Dataset, rows: Rows) -> Iterator[Case]:
    for case in opened.cases():
        yield replace(case, attributes={**case.attributes, **rows.get(case.id, {})})
