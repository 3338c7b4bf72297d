"""The run folder: a manifest and tables of Parquet parts. The only code that knows its file names."""

from instar.outputs import Schema
from instar.store.aside import moved_from
from instar.store.kept import KeptColumns, basis_of, keep, kept
from instar.store.manifest import (
    FORMAT,
    CombinationInfo,
    DatasetInfo,
    Header,
    JudgingInfo,
    Machine,
    Manifest,
    ProviderInfo,
    RecordedInfo,
    RecordedTable,
    SearchInfo,
    SystemInfo,
    run_name,
)
from instar.store.marks import (
    FALSE_ALARM,
    LABEL,
    MARKS,
    MOST_NOTE,
    REAL,
    UNCLEAR,
    DamagedMarks,
    Mark,
    Unmarkable,
    add_marks,
    changing_marks,
    new_mark,
    stored_marks,
    why_unmarkable,
)
from instar.store.parts import Damaged
from instar.store.pieces import Piece, pieces
from instar.store.repair import Repair, repair
from instar.store.shard import Shard, shard_words
from instar.store.store import NAMES, Busy, Gone, NoRun, Store
from instar.store.tables import (
    APART,
    CASE,
    KEY,
    NEED,
    VERDICT,
    Columns,
    Row,
    columns_frame,
    first_only,
    need_content,
    of_cases,
    rows_frame,
)

# fmt: off
__all__ = [
    "APART", "CASE", "FALSE_ALARM", "FORMAT", "KEY", "LABEL", "MARKS", "MOST_NOTE", "NAMES", "NEED", "REAL",
    "UNCLEAR", "VERDICT", "Busy", "Columns", "CombinationInfo", "Damaged", "DamagedMarks", "DatasetInfo", "Gone",
    "Header", "JudgingInfo", "KeptColumns", "Machine", "Manifest", "Mark", "NoRun", "Piece", "ProviderInfo",
    "RecordedInfo", "RecordedTable", "Repair", "Row", "Schema", "SearchInfo", "Shard", "Store", "SystemInfo",
    "Unmarkable", "add_marks", "basis_of", "changing_marks", "columns_frame", "first_only", "keep", "kept",
    "moved_from", "need_content", "new_mark", "of_cases", "pieces", "repair", "rows_frame", "run_name", "shard_words",
    "stored_marks", "why_unmarkable",
]
# fmt: on
