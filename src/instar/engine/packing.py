"""Outputs and needs as plain columns: what is sent to the coordinator, and stored."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import xxhash

from instar.engine.messages import NeedProvided, Rows
from instar.engine.needs import Need, Provider
from instar.engine.plan import Key
from instar.outputs import Output
from instar.pool import Pool
from instar.store import Header, Row, need_content
from instar.systems import fingerprint_of
from instar.transforms import Change, NotApplicable

REMEMBERED = 4096


def keyed_rows(answered: Iterable[tuple[str, Key, Change | None, Row]]) -> list[Row]:
    """Rows of predictions: the case and the key of each, what was done to the input, and what became of it."""
    rows: list[Row] = []
    last: Change | None = None
    changed: Row = {}
    for case, (follow_up, draw, repeat), change, answer in answered:
        if change is not last:  # most follow-ups stay where they were, by one and the same change
            last, changed = change, {} if change is None else _sendable(change.row())
        rows.append({"case": case, "follow_up": follow_up, "draw": draw, "repeat": repeat, **changed, **answer})
    return rows


def _sendable(row: Mapping[str, object]) -> Row:
    """Arrays as their bytes: to pickle one takes ten times as long."""
    return {name: value.tobytes() if isinstance(value, np.ndarray) else value for name, value in row.items()}


class Packer:
    """Packs rows. What outputs have in common is sent when it is new, and named by its hash after that: a skeleton in
    every message would cost more than the poses."""

    def __init__(self) -> None:
        self._last: Header | None = None
        self._name = ""
        self._sent: dict[str, None] = {}

    def __call__(self, rows: list[Row]) -> Rows:
        """The rows, whose `output` becomes its columns and its header's name, with what was not sent yet."""
        fresh: dict[str, Header] = {}
        contents: dict[str, bytes] = {}
        for row in rows:
            output: Output | None = row.pop("output", None)
            if output is not None:
                header = output.header()
                if header is not self._last and header != self._last:
                    self._last, self._name = header, fingerprint_of(json.dumps(header, sort_keys=True))
                    fresh[self._name] = header
                row.update(_sendable(output.row()), header=self._name)
                self._set_apart(row, output.apart, contents)
            self._set_apart(row, Change.apart, contents)
        return replace(Rows.of(rows), headers=fresh, contents=contents)

    def _set_apart(self, row: Row, columns: tuple[str, ...], contents: dict[str, bytes]) -> None:
        """Large columns by their hash; equal ones are sent once, as far as the last few thousand are remembered."""
        for column in columns:
            content = row.get(column)
            if content is not None:
                row[column] = name = str(xxhash.xxh3_128_hexdigest(content))
                if name not in self._sent:
                    contents[name] = content
                    self._sent[name] = None
                    if len(self._sent) > REMEMBERED:
                        del self._sent[next(iter(self._sent))]


def packed_need(need: str, provider: Provider, value: Need | NotApplicable) -> NeedProvided:
    """A need that somebody provides, as it is stored."""
    if isinstance(value, NotApplicable):
        return NeedProvided(need, "not applicable", str(value))
    assert not isinstance(value, Pool)
    content = need_content(value)
    return NeedProvided(
        need,
        "ok",
        provider=provider.fingerprint,
        kind=value.kind,
        hash=str(xxhash.xxh3_128_hexdigest(content)),
        header=json.dumps(value.header(), ensure_ascii=False),
        facts=json.dumps(dict(value.facts()), ensure_ascii=False),
        content=content,
    )
