"""Pictures of pairs, drawn when a page asks for them and held in memory; follow-ups are made anew from their rule."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import escape

import cv2
import polars as pl

from instar.analysis import Run
from instar.engine import DEFAULT
from instar.outputs import output_kind
from instar.report.picture import Annotated, encoded, panel_picture
from instar.report.rebuild import CannotDraw, load_pair, load_source
from instar.store import CASE, NEED, Manifest, Row, Schema, Store

Side = Literal["source", "follow-up"]
Sides = dict[Side, Annotated | str]
"""What there is to draw of a pair; a text says why there is none."""
WIDTHS = (240, 480, 960)
HELD_BYTES = 96 << 20
HELD_CASES = 128
LETTERS, LINES = 24, 9
"""As many as a plate has room for."""
# fmt: off
_NOT_DRAWN = (
    *CannotDraw, OSError, ValueError, TypeError, ArithmeticError, RuntimeError, cv2.error, pl.exceptions.PolarsError,
)
# fmt: on
"""What one picture may cost: itself. A dataset can hold anything."""


@dataclass(frozen=True, slots=True)
class Picture:
    """The bytes of a picture file; `drawn` is false for a plate that says why there is none."""

    content: bytes
    kind: str
    drawn: bool
    etag: str


class _OneCase(Store):
    """The run folder as far as it is about one case, read once: another picture of the case costs no scan of parts."""

    def __init__(self, store: Store, manifest: Manifest, frames: Mapping[str, pl.DataFrame]) -> None:
        super().__init__(store.folder)
        self._known, self._frames = manifest, frames

    def manifest(self) -> Manifest:
        return self._known

    def read(
        self,
        table: str,
        schema: Schema,
        columns: Sequence[str] | None = None,
        where: pl.Expr | None = None,
        query: Callable[[pl.LazyFrame], pl.LazyFrame] | None = None,
    ) -> pl.DataFrame:
        if table not in self._frames or query is not None:
            return super().read(table, schema, columns, where, query)
        rows = self._frames[table]
        rows = rows if where is None else rows.filter(where)
        return rows if columns is None else rows.select(columns)


class Pictures:
    """Draws, and remembers what it drew as far as that stays within bounds."""

    def __init__(self, worded: Callable[[str], str] = str) -> None:
        self._worded = worded
        self._drawn: OrderedDict[tuple[object, ...], Picture] = OrderedDict()
        self._bytes = 0
        self._cases: OrderedDict[tuple[str, str, str], _OneCase] = OrderedDict()
        self._expected: dict[str, tuple[str, ...]] = {}
        self._lock, self._reading = threading.Lock(), threading.Lock()
        self._busy: dict[tuple[object, ...], threading.Lock] = {}

    def expect(self, store: Store, cases: Sequence[str]) -> None:
        """Say which cases a page shows: they are read together when the first of their pictures is asked for."""
        self._expected[str(store.folder)] = tuple(dict.fromkeys(cases))[:HELD_CASES]

    def picture(
        self,
        store: Store,
        manifest: Manifest,
        version: str,
        *,
        case: str,
        side: Side,
        width: int,
        verdict: Row | None = None,
        judging: str = DEFAULT,
        dataset: str | Path | None = None,
    ) -> Picture:
        """One side of a verdict's pair, at most `width` pixels wide and high; without a verdict the case's source."""

        def make(rows: Store) -> Sides:
            return _pair_sides(Run(rows), case, verdict, judging, dataset)

        key = () if verdict is None else (verdict["rule"], verdict["target"], verdict["draw"])
        return self.of_case(store, manifest, version, case, key, side, width, make)

    def of_case(
        self,
        store: Store,
        manifest: Manifest,
        version: str,
        case: str,
        key: tuple[object, ...],
        side: Side,
        width: int,
        make: Callable[[Store], Sides],
    ) -> Picture:
        """A picture, remembered by its key or drawn: both sides, as `make` has them of one reading of the case."""
        key = str(store.folder), version, case, *key
        with self._lock:
            busy = self._busy.setdefault((*key, width), threading.Lock())
        with busy:
            picture = self._remembered((*key, width, side))
            if picture is None:
                try:
                    sides = make(self._rows(store, manifest, version, case))
                except _NOT_DRAWN as error:
                    sides = {"source": _reason(error), "follow-up": _reason(error)}
                for name, made in sides.items():
                    fresh = plate(self._worded(made), width) if isinstance(made, str) else _encoded(made, name, width)
                    self._hold((*key, width, name), fresh)
                    picture = fresh if name == side else picture
        with self._lock:
            self._busy.pop((*key, width), None)
        return picture or plate("there is no follow-up", width)

    def _rows(self, store: Store, manifest: Manifest, version: str, case: str) -> _OneCase:
        folder = str(store.folder)
        with self._reading:
            if (folder, version, case) not in self._cases:
                expected = self._expected.get(folder, ())
                together = expected if case in expected else (case,)
                wanted = [name for name in together if (folder, version, name) not in self._cases]
                of_cases = pl.col("case").is_in(wanted)
                schemas = {"cases": CASE, "needs": NEED, "predictions": store.prediction_schema(manifest.system.kind)}
                tables = {name: store.read(name, schema, where=of_cases) for name, schema in schemas.items()}
                for one in wanted:
                    frames = {name: table.filter(pl.col("case") == one) for name, table in tables.items()}
                    self._cases[folder, version, one] = _OneCase(store, manifest, frames)
                while len(self._cases) > HELD_CASES:
                    self._cases.popitem(last=False)
            self._cases.move_to_end((folder, version, case))
            return self._cases[folder, version, case]

    def _remembered(self, key: tuple[object, ...]) -> Picture | None:
        with self._lock:
            picture = self._drawn.get(key)
            if picture is not None:
                self._drawn.move_to_end(key)
            return picture

    def _hold(self, key: tuple[object, ...], picture: Picture) -> None:
        with self._lock:
            old = self._drawn.pop(key, None)
            self._bytes += len(picture.content) - (len(old.content) if old else 0)
            self._drawn[key] = picture
            while self._bytes > HELD_BYTES and len(self._drawn) > 1:
                self._bytes -= len(self._drawn.popitem(last=False)[1].content)


def _pair_sides(run: Run, case: str, verdict: Row | None, judging: str, dataset: str | Path | None) -> Sides:
    """Both panels of a pair; its source alone where there is no verdict, or the follow-up cannot be made."""
    reason: str | None = None
    if verdict is not None:
        try:
            pair = load_pair(run, {**_worst(run, verdict, judging), **verdict}, judging=judging, dataset=dataset)
            return {"source": pair.source, "follow-up": pair.follow_up}
        except _NOT_DRAWN as error:
            reason = _reason(error)
    source = load_source(run, case, judging=judging, dataset=dataset)
    return {"source": source} if reason is None else {"source": source, "follow-up": reason}


def _worst(run: Run, verdict: Row, judging: str) -> Row:
    """The class that a verdict is about, where classes have colours: the viewer's index does not hold it."""
    manifest, store = run.manifest, run.store
    if not output_kind(manifest.system.kind).class_colours(manifest.header):
        return {}
    key = ("case", "rule", "target")
    same = pl.all_horizontal(pl.col(name) == verdict[name] for name in key)
    rows = store.read(store.verdict_table(judging), dict.fromkeys(key, pl.String), where=same)
    return {} if rows.is_empty() else {"worst": rows.row(-1, named=True).get("worst")}


def _encoded(panel: Annotated, side: Side, width: int) -> Picture:
    try:
        # lines stay clear at twice the size of a thumbnail, and cost little
        content = encoded(panel_picture(panel, side=side, wide=width, high=width), "jpeg", 85)
    except _NOT_DRAWN as error:
        return plate(_reason(error), width)
    return Picture(content, "image/jpeg", True, hashlib.blake2b(content, digest_size=12).hexdigest())


def _reason(error: BaseException) -> str:
    return str(error.args[0] if isinstance(error, LookupError) and error.args else error) or type(error).__name__


def plate(reason: str, width: int) -> Picture:
    """A picture of the reason. Mid-grey is legible on light and on dark; attributes alone need no style sheet."""
    reason = "".join(sign if sign.isprintable() else " " for sign in reason)
    lines = [""]
    for word in reason.split():
        for piece in [word[start : start + LETTERS] for start in range(0, len(word), LETTERS)]:
            if len(lines[-1]) + len(piece) >= LETTERS and lines[-1]:
                lines.append("")
            lines[-1] = f"{lines[-1]} {piece}".strip()
    lines = lines if len(lines) <= LINES else [*lines[: LINES - 1], "…"]
    top = 126 - 11 * (len(lines) - 1)
    texts = "".join(
        f'<text x="120" y="{top + 22 * n}" text-anchor="middle" font-size="17" font-family="sans-serif" '
        f'fill="#808080">{escape(line)}</text>'
        for n, line in enumerate(lines)
    )
    content = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{width}" viewBox="0 0 240 240" '
        f'role="img"><title>{escape(reason)}</title>{texts}</svg>'
    ).encode()
    return Picture(content, "image/svg+xml", False, "")
