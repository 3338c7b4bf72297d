"""The run folder: a manifest and tables of Parquet parts. The only code that knows its file names."""

from instar.store.manifest import (
    FORMAT,
    DatasetInfo,
    JudgingInfo,
    Machine,
    Manifest,
    ProviderInfo,
    RecordedInfo,
    RecordedTable,
    SystemInfo,
)
from instar.store.store import APART, CASE, KEY, NEED, Busy, NoRun, Store, need_content, rows_frame

__all__ = [
    "APART",
    "CASE",
    "FORMAT",
    "KEY",
    "NEED",
    "Busy",
    "DatasetInfo",
    "JudgingInfo",
    "Machine",
    "Manifest",
    "NoRun",
    "ProviderInfo",
    "RecordedInfo",
    "RecordedTable",
    "Store",
    "SystemInfo",
    "need_content",
    "rows_frame",
]
