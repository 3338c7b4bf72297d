"""The run folder: a manifest and tables of Parquet parts. The only code that knows its file names."""

from instar.outputs import Schema
from instar.store.manifest import (
    FORMAT,
    DatasetInfo,
    Header,
    JudgingInfo,
    Machine,
    Manifest,
    ProviderInfo,
    RecordedInfo,
    RecordedTable,
    SystemInfo,
)
from instar.store.store import Busy, NoRun, Store
from instar.store.tables import APART, CASE, KEY, NEED, VERDICT, Row, need_content, rows_frame

# fmt: off
__all__ = [
    "APART", "CASE", "FORMAT", "KEY", "NEED", "VERDICT", "Busy", "DatasetInfo", "Header", "JudgingInfo", "Machine",
    "Manifest", "NoRun", "ProviderInfo", "RecordedInfo", "RecordedTable", "Row", "Schema", "Store", "SystemInfo",
    "need_content", "rows_frame",
]
# fmt: on
