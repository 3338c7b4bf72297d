"""Tables of recorded outputs: lines of CSV or JSON, and what they say of predictions."""

from __future__ import annotations

import csv
import json
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO

import xxhash

from instar.engine.plan import SOURCE
from instar.json_values import (
    as_number,
    as_numbers,
    as_text,
    as_texts,
    as_whole,
    depth,
    one_of,
    refuse_columns,
    short,
    whole_number,
)
from instar.outputs import Output, json_columns, output_kind, output_kinds
from instar.outputs.limits import TooMuch, within_limits
from instar.pool import plain_label
from instar.spelling import nearest
from instar.store import KEY, Row
from instar.store.manifest import Header
from instar.transforms import named_transformation
from instar.warp import Warp

STATUSES = ("ok", "error", "timeout", "crashed", "not applicable")
KNOWN = (*KEY, "status", "message", "seconds", "width", "height", "warp", "regions", "added", "removed", "facts")
"""Columns of every table, whatever the kind of its outputs."""
OF_SOURCE = ("status", "message", "seconds")
"""Columns besides the output's that a line with a pair may have for its source too, after `source_`."""


def kinds_in(columns: Collection[str]) -> list[str]:
    """The kinds of output that columns may hold: those whose first field is there, less those whose needed fields
    are part of what another one of them needs."""
    needed = {
        kind: [json_columns(kind)[field] for field, is_needed in output.json_fields.items() if is_needed]
        for kind, output in output_kinds().items()
    }
    kinds = [kind for kind, names in needed.items() if names and names[0] in columns]
    return [kind for kind in kinds if not any(set(needed[kind]) < set(needed[other]) for other in kinds)]


# --- tables ----------------------------------------------------------------------------------------


def lines(path: Path) -> Iterator[tuple[int, Row]]:
    """The lines of a table with their numbers: JSON objects, or the cells of CSV by the names in its first line."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no table {str(path)!r}")
    with path.open("rb") as file:
        texts = _decoded(path, file)
        first = next((text for text in texts if text.strip()), "")
    if not first:
        raise ValueError(f"{path}: the file is empty")
    if first.lstrip().startswith("["):
        raise ValueError(
            f"{path}: it is one JSON list; a table has one JSON object per line (`jq -c '.[]'` makes one "
            "of the other), or is CSV"
        )
    with path.open("rb") as file:
        texts = _decoded(path, file)
        yield from _objects(path, texts) if first.lstrip().startswith("{") else _cells(path, texts, first)


def _decoded(path: Path, file: IO[bytes]) -> Iterator[str]:
    for number, line in enumerate(file, start=1):
        if number == 1:
            if line.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise ValueError(f"{path}: it is in UTF-16; save it in UTF-8")
            line = line.removeprefix(b"\xef\xbb\xbf")
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path}, line {number}: it is not in UTF-8 ({error.reason}); save the table in UTF-8"
            ) from None


def _objects(path: Path, texts: Iterator[str]) -> Iterator[tuple[int, Row]]:
    for number, text in enumerate(texts, start=1):
        if not text.strip():
            continue
        try:
            record = _JSON.decode(text)
            if "\\u" in text:  # half of a pair, as "\ud83d": no file could hold it
                json.dumps(record, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}, line {number}: not a JSON object: {error}") from None
        if not isinstance(record, dict):
            raise ValueError(f"{path}, line {number}: a line is a JSON object, this is {short(record)}")
        refuse_columns(f"{path}, line {number}", len(record))
        yield number, record


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON; what is absent is null")


_JSON = json.JSONDecoder(parse_int=whole_number, parse_constant=_refused)
_SPELLED = json.JSONEncoder(ensure_ascii=False)


def _cells(path: Path, texts: Iterator[str], header: str) -> Iterator[tuple[int, Row]]:
    csv.field_size_limit(1 << 30)
    reader = csv.reader(texts, delimiter=max(",;\t", key=header.count), strict=True)
    try:
        names = next(row for row in reader if row)
        refuse_columns(str(path), len(names))
        twice = next((name for name, count in Counter(names).items() if name and count > 1), None)
        if twice is not None:
            raise ValueError(f"{path}: two columns are called {twice!r}")
        seen = False
        for cells in reader:
            if not cells:
                continue
            seen = True
            if len(cells) != len(names):
                raise ValueError(
                    f"{path}, line {reader.line_num}: it has {len(cells)} cells, the header has {len(names)}"
                )
            # a column without a name is the numbering that many programs write
            yield reader.line_num, {name: _Cell(text) for name, text in zip(names, cells, strict=True) if name}
        if not seen:
            raise ValueError(f"{path}: it has no lines besides its header")
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: not CSV: {error}") from None


class _Cell(str):
    """The text of a cell: what it means depends on its column."""

    __slots__ = ()


def _cell_value(cell: _Cell, name: str) -> object:
    """A cell's value: text where text belongs, else what it is in JSON, else text.

    An empty cell says nothing, but where the output is a text: it is empty then.
    """
    text = str(cell)
    own, one_or_several = _text_columns()
    if not text:
        return text if f"truth_{name}" in one_or_several else None
    if name.removeprefix("source_") in own or (name in one_or_several and not text.startswith("[")):
        return text
    try:
        return _JSON.decode(text)
    except (ValueError, RecursionError):
        return text


@cache
def _text_columns() -> tuple[frozenset[str], frozenset[str]]:
    """The columns that hold a text, and those that hold one or a list of them."""
    texts = [json_columns(kind)["text"] for kind, output in output_kinds().items() if "text" in output.json_fields]
    return (
        frozenset({"case", "follow_up", "status", "message", *texts}),
        frozenset({"added", "removed", *(f"truth_{name}" for name in texts)}),
    )


def renamed(values: Row, columns: Mapping[str, str]) -> Row:
    """A line by our names."""
    if not columns:
        return dict(values)
    others = set(columns.values())
    own = {name: value for name, value in values.items() if name not in others and name not in columns}
    return {**own, **{ours: values[name] for ours, name in columns.items() if name in values}}


def columns_of(texts: Sequence[str]) -> dict[str, str]:
    """What columns are called in a table, as it is written: `caption=text,case=image_id`.

    >>> columns_of(["caption=text,case=image_id"])
    {'caption': 'text', 'case': 'image_id'}
    """
    columns: dict[str, str] = {}
    for piece in (piece for text in texts for piece in text.split(",")):
        ours, _, name = (part.strip() for part in piece.partition("="))
        if not ours or not name:
            raise ValueError(f"columns: {piece}: it is written OURS=THEIRS, as in caption=text")
        if columns.setdefault(ours, name) != name:
            raise ValueError(f"columns: {ours} is {columns[ours]} and {name}")
    return columns


# --- lines to rows ---------------------------------------------------------------------------------


class Reader:
    """Makes rows of lines."""

    def __init__(
        self,
        kind: str,
        common: Mapping[str, object],
        columns: Mapping[str, str],
        follow_up: str | None,
        header: Header | None,
    ) -> None:
        """`common` are fields that every output has, `header` is what the outputs of the run have in common so far."""
        self.kind, self.columns, self.common, self.header = kind, columns, common, header
        own = json_columns(kind).values()
        self.of_source = {f"source_{name}" for name in (*own, *OF_SOURCE)}
        self.truths = {f"truth_{name}" for one in output_kinds() for name in json_columns(one).values()}
        self.known = {*KNOWN, *own, *self.of_source}
        for ours in columns:
            if ours not in self.known | self.truths and not ours.startswith("facts."):
                raise ValueError(
                    f"columns: {ours}={columns[ours]}: a table of {kind} has no column {ours!r}"
                    f"{nearest(ours, self.known | self.truths)}; it has {', '.join(sorted(self.known))}, "
                    f"facts.NAME, and of the truth {', '.join(sorted(self.truths))}"
                )
        self.ids: dict[str, str] = {SOURCE: SOURCE}
        self.follow_up = None if follow_up is None else self._id(follow_up)
        self.changing = set[str]()
        """The columns seen that say what was changed."""

    def rows(self, line: Row) -> Iterator[Row]:
        """The rows of a line: one, or that of the source and that of the follow-up."""
        values = {
            name: content
            for name, value in renamed(line, self.columns).items()
            if (content := _cell_value(value, name) if type(value) is _Cell else value) is not None
        }
        case, name = _case(values.get("case")), values.get("follow_up", self.follow_up)
        if name is None:
            raise ValueError(
                "it has no follow_up; that is source, or a transformation such as mirror(h). For tables "
                "that do not say it there is the parameter follow_up"
            )
        name = self._id(as_text(name, "follow_up"))
        draw, repeat = (as_whole(values.get(what, 0), what, 0) for what in ("draw", "repeat"))
        if name == SOURCE and draw:
            raise ValueError(f"the source has no draws; draw is {draw}")
        sides: dict[str, int] = {
            side: as_whole(values[side], side, 1) for side in ("width", "height") if side in values
        }
        if not self.of_source.isdisjoint(values):
            if name == SOURCE:
                raise ValueError("a line with a source beside is a pair; its follow_up is a transformation, not source")
            text = repr([(column, value) for column, value in sorted(values.items()) if column in self.of_source])
            yield {
                **dict(zip(KEY, (case, SOURCE, 0, repeat), strict=True)),
                "of_pair": True,
                **sides,
                **self._answer(values, "source_"),
                "pair_hash": xxhash.xxh3_64_hexdigest(text.encode()),
            }
            sides = {}
        extras = {
            column: value
            for column, value in values.items()
            if column not in self.known and not column.startswith("facts.")
        }
        self.changing |= values.keys() & _CHANGES
        yield {
            **dict(zip(KEY, (case, name, draw, repeat), strict=True)),
            "of_pair": False,
            "extras": _SPELLED.encode(extras) if extras else None,
            **sides,
            **({} if name == SOURCE else _change(values)),
            **self._answer(values, ""),
        }

    def _id(self, text: str) -> str:
        if text not in self.ids:
            try:
                self.ids[text] = named_transformation(text).id
            except (KeyError, ValueError, TypeError) as error:
                raise ValueError(
                    f"follow_up: {error} What was made elsewhere, and Instar has no name for, is spelled "
                    "recorded(NAME)."
                ) from None
        return self.ids[text]

    def _answer(self, values: Row, prefix: str) -> Row:
        """The status and the output of a line, or of its source."""
        status = one_of(values.get(f"{prefix}status", "ok"), f"{prefix}status", STATUSES)
        row: Row = {"status": status}
        if f"{prefix}message" in values:
            row["message"] = as_text(values[f"{prefix}message"], "message")
        if f"{prefix}seconds" in values:
            row["seconds"] = as_number(values[f"{prefix}seconds"], "seconds")
        fields, lacking = self._fields(self.kind, values, prefix)
        needed = [field for field, is_needed in output_kind(self.kind).json_fields.items() if is_needed]
        if status == "ok":
            if lacking:
                raise ValueError(_lacking_text(lacking, prefix))
            frame = (values["width"], values["height"]) if not prefix and {"width", "height"} <= values.keys() else None
            output = output_kind(self.kind).from_json(fields, frame)
            try:
                row["output"] = self._of_the_run(within_limits(output))
            except TooMuch as error:
                return {**row, "status": "error", "message": str(error)}
        elif not lacking and any(fields[field] not in ("", None) for field in needed):
            raise ValueError(f"its {prefix}status is {status}, and it has an output too")
        return row

    def _fields(self, kind: str, values: Mapping[str, object], prefix: str) -> tuple[dict[str, object], list[str]]:
        """The fields of an output in a line, and the columns that the line lacks for one."""
        columns = {field: f"{prefix}{column}" for field, column in json_columns(kind).items()}
        fields = {field: values.get(column, self.common.get(field)) for field, column in columns.items()}
        needed = output_kind(kind).json_fields
        return fields, [column for field, column in columns.items() if needed[field] and fields[field] is None]

    def _of_the_run(self, output: Output) -> Output:
        """What all outputs of a run have in common is the same in each."""
        header = output.header()
        if self.header is None:
            self.header = header
        elif header != self.header and json.loads(json.dumps(header)) != self.header:
            other = " and ".join(name for name, value in header.items() if self.header.get(name) != value)
            raise ValueError(f"its {other} differs from that of the other outputs; all outputs of a run have the same")
        return output

    def truth(self, values: Mapping[str, object]) -> Output:
        """The truth of a case, by the columns that begin with `truth_`."""
        kinds = kinds_in({name.removeprefix("truth_") for name in values})
        if len(kinds) != 1:
            mains = (f"truth_{next(iter(json_columns(kind).values()))}" for kind in output_kinds())
            raise ValueError(f"it takes one of {', '.join(mains)}")
        fields, lacking = self._fields(kinds[0], values, "truth_")
        if lacking:
            raise ValueError(f"it has no {' and no '.join(lacking)}")
        return output_kind(kinds[0]).from_json(fields, truth=True)


def _lacking_text(lacking: Sequence[str], prefix: str) -> str:
    if lacking == ["skeleton"]:
        return (
            "it does not say whose landmarks its points are; give the skeleton of all of them: coco-17, another name, "
            "or a .toml file"
        )
    return (
        f"it has no {' and no '.join(lacking)}; where there is no output, the column {prefix}status says "
        f"{', '.join(STATUSES[1:])}"
    )


_CHANGES = frozenset({"warp", "regions", "added", "removed", "facts"})


def _change(values: Row) -> Row:
    """The columns of a change, as far as a line has them."""
    row: Row = {}
    if "warp" in values:
        flat = (9,) if depth(values["warp"]) == 1 else (3, 3)
        matrix = as_numbers(
            values["warp"], "warp", flat, "a matrix that carries the source to the follow-up, in pixels"
        )
        row["warp"] = Warp(matrix.reshape(3, 3), (1, 1), (1, 1)).matrix.ravel().tolist()
    if "regions" in values:
        boxes = as_numbers(values["regions"], "regions", (None, 4), "boxes [x0, y0, x1, y1] in pixels")
        row["regions"] = boxes.ravel().tolist()
    for name in ("added", "removed"):
        if name in values:
            labels = [values[name]] if isinstance(values[name], str) else as_texts(values[name], name)
            row[name] = list(map(plain_label, labels))
    facts = values.get("facts", {})
    if not isinstance(facts, dict):
        raise ValueError(f"facts is {short(facts)}; it takes an object")
    facts = {
        **facts,
        **{name.removeprefix("facts."): value for name, value in values.items() if name.startswith("facts.")},
    }
    wrong = next((name for name, value in facts.items() if not isinstance(value, str | int | float | bool)), None)
    if wrong is not None:
        raise ValueError(f"the fact {wrong} is {short(facts[wrong])}; facts are texts, numbers, true or false")
    if facts:
        row["facts"] = json.dumps(facts, ensure_ascii=False)
    return row


# --- single values ---------------------------------------------------------------------------------


def _case(value: object) -> str:
    if value is None:
        raise ValueError("it has no case; where its column has another name, columns says so: case=NAME")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    text = unicodedata.normalize("NFC", as_text(value, "case"))
    if not text.strip():
        raise ValueError("case is empty")
    return text
