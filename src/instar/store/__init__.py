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
from instar.store.parts import Damaged
from instar.store.repair import Repair, repair
from instar.store.store import NAMES, Busy, Gone, NoRun, Store
from instar.store.tables import APART, CASE, KEY, NEED, VERDICT, Row, need_content, rows_frame

# fmt: off
__all__ = [
    "APART", "CASE", "FORMAT", "KEY", "NAMES", "NEED", "VERDICT", "Busy", "Damaged", "DatasetInfo", "Gone", "Header",
    "JudgingInfo", "Machine", "Manifest", "NoRun", "ProviderInfo", "RecordedInfo", "RecordedTable", "Repair", "Row",
    "Schema", "Store", "SystemInfo", "need_content", "repair", "rows_frame",
]
# fmt: on
