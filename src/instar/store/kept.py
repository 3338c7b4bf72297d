"""What took long to find out about a large run, kept beside the verdicts that it was found from.

A file is named for what it was made of and for its own content. So one that is out of date is not looked for, one that
is damaged is not read, and nothing needs any of them: what is not there is found out anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from io import BytesIO

import polars as pl
import xxhash

from instar.files import place_file
from instar.remote import Address
from instar.store.parts import UNREADABLE
from instar.store.store import Store

KeptColumns = Mapping[str, pl.Series]
"""What is kept: columns by name, each of a length of its own."""

LAYOUT = 1
"""How columns are made of what is kept. One that is made otherwise has another number, and is not mistaken for it."""


def basis_of(store: Store, judging: str) -> str | None:
    """What anything that is found out about a judging now is made of; None where there are no verdicts.

    Parts of tables are named for their content.
    """
    from instar import __version__

    info = store.judging_info(judging)
    if info is None or isinstance(store.folder, Address):  # a bucket is not written to by those who look
        return None
    verdicts = [
        part.path.name for part in store.place.parts(store.verdict_table(judging)) if part.first in range(*info.parts)
    ]
    tables = [store.state(table) for table in ("predictions", "cases", "needs")]
    return xxhash.xxh3_64_hexdigest(repr((LAYOUT, __version__, info.rules, info.options, verdicts, tables)).encode())


def kept(store: Store, judging: str, name: str, basis: str) -> KeptColumns | None:
    """What is kept under a name; None where there is nothing of this basis, or it is not what was written."""
    with suppress(OSError, ValueError, *UNREADABLE):
        folder = store.inside(f"{store.verdict_table(judging)}/kept")
        for path in folder.glob(f"{name}.{basis}.*.parquet"):
            content = store.place.content(f"{store.verdict_table(judging)}/kept/{path.name}")
            if path.name == f"{name}.{basis}.{xxhash.xxh3_64_hexdigest(content)}.parquet":
                columns = pl.read_parquet(BytesIO(content)).to_dict()
                return {key: column.item() for key, column in columns.items() if isinstance(column.dtype, pl.List)}
    return None


def keep(store: Store, judging: str, name: str, basis: str, columns: KeptColumns) -> None:
    """Keep something in the place of what was kept under its name; where nothing can be written, nothing is."""
    if not columns:
        return
    content = BytesIO()
    pl.DataFrame([column.implode().alias(key) for key, column in columns.items()]).write_parquet(
        content, compression="zstd", compression_level=1
    )
    written = f"{name}.{basis}.{xxhash.xxh3_64_hexdigest(content.getvalue())}.parquet"
    with suppress(OSError):
        folder = store.inside(f"{store.verdict_table(judging)}/kept")
        place_file(folder / written, content.getvalue())
        for path in folder.glob(f"{name}.*.parquet"):
            if path.name != written:
                path.unlink(missing_ok=True)
