"""Tables of recorded outputs: lines of CSV or JSON, and what they say of predictions."""

from __future__ import annotations

import csv
import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import xxhash

from instar.engine.plan import SOURCE
from instar.json_values import as_list, as_numbers, as_text, one_of, short
from instar.outputs import Output
from instar.outputs.caption import Caption
from instar.outputs.detections import Detections
from instar.outputs.forecast import Forecast
from instar.outputs.poses import Poses
from instar.skeleton import Skeleton
from instar.spelling import nearest
from instar.store import KEY
from instar.transforms import transformation
from instar.warp import Size, Warp

__all__ = ["COLUMNS", "KNOWN", "Reader", "columns_of", "lines", "renamed"]

STATUSES = ("ok", "error", "timeout", "crashed", "not applicable")
KNOWN = (*KEY, "status", "message", "seconds", "width", "height", "warp", "regions", "added", "removed", "facts")
"""Columns of every table, whatever the kind of its outputs."""
OF_SOURCE = ("status", "message", "seconds")
"""Columns besides the output's that a line with a pair may have for its source too, after `source_`."""


class _Columns(NamedTuple):
    """The columns of a kind of output: those without which there is none, and those that may be there."""

    needed: tuple[str, ...]
    more: tuple[str, ...]


COLUMNS: dict[str, _Columns] = {
    Caption.kind: _Columns(("caption",), ("score",)),
    Detections.kind: _Columns(("boxes", "labels"), ("scores",)),
    Forecast.kind: _Columns(("futures",), ("map",)),
    Poses.kind: _Columns(("points",), ("visibility", "scores")),
}
"""How each kind of output stands in a table."""


# --- tables ----------------------------------------------------------------------------------------


def lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
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


def _objects(path: Path, texts: Iterator[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, text in enumerate(texts, start=1):
        if not text.strip():
            continue
        try:
            found = _JSON.decode(text)
            if "\\u" in text:  # half of a pair, as "\ud83d": no file could hold it
                json.dumps(found, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}, line {number}: not a JSON object: {error}") from None
        if not isinstance(found, dict):
            raise ValueError(f"{path}, line {number}: a line is a JSON object, this is {short(found)}")
        yield number, found


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON; what is absent is null")


_JSON, _SPELLED = json.JSONDecoder(parse_constant=_refused), json.JSONEncoder(ensure_ascii=False)


def _cells(path: Path, texts: Iterator[str], header: str) -> Iterator[tuple[int, dict[str, Any]]]:
    csv.field_size_limit(1 << 30)
    reader = csv.reader(texts, delimiter=max(",;\t", key=header.count), strict=True)
    try:
        names = next(row for row in reader if row)
        twice = next((name for name in names if name and names.count(name) > 1), None)
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
            yield reader.line_num, {name: _Cell(text) for name, text in zip(names, cells, strict=True) if name and text}
        if not seen:
            raise ValueError(f"{path}: it has no lines besides its header")
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: not CSV: {error}") from None


class _Cell(str):
    """The text of a cell: what it means depends on its column."""

    __slots__ = ()


def _meant(value: _Cell, name: str) -> Any:
    """A cell's value: text where text belongs, else what it is in JSON, else text."""
    text = str(value)
    if name.removeprefix("source_") in _TEXT or (name in _TEXTS and not text.startswith("[")):
        return text
    try:
        return _JSON.decode(text)
    except (ValueError, RecursionError):
        return text


_TEXT = {"case", "follow_up", "status", "message", "caption"}
_TEXTS = {"added", "removed", "truth_caption"}


def renamed(values: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """A line by our names."""
    if not columns:
        return dict(values)
    theirs = set(columns.values())
    own = {name: value for name, value in values.items() if name not in theirs and name not in columns}
    return {**own, **{ours: values[name] for ours, name in columns.items() if name in values}}


def columns_of(texts: Sequence[str]) -> dict[str, str]:
    """What columns are called in a table, as it is written: `caption=text,case=image_id`.

    >>> columns_of(["caption=text,case=image_id"])
    {'caption': 'text', 'case': 'image_id'}
    """
    found: dict[str, str] = {}
    for piece in (piece for text in texts for piece in text.split(",")):
        ours, _, theirs = (part.strip() for part in piece.partition("="))
        if not ours or not theirs:
            raise ValueError(f"--columns {piece}: it is written OURS=THEIRS, as in caption=text")
        if found.setdefault(ours, theirs) != theirs:
            raise ValueError(f"--columns: {ours} is {found[ours]} and {theirs}")
    return found


# --- lines to rows ---------------------------------------------------------------------------------


class Reader:
    """Makes rows of lines."""

    def __init__(self, kind: str, bones: Skeleton | None, columns: Mapping[str, str], follow_up: str | None) -> None:
        own = (*COLUMNS[kind].needed, *COLUMNS[kind].more)
        self.kind, self.bones, self.columns, self.own = kind, bones, columns, own
        self.of_source = {f"source_{name}" for name in (*own, *OF_SOURCE)}
        self.truths = {f"truth_{name}" for one in COLUMNS.values() for name in (*one.needed, *one.more)}
        self.known = {*KNOWN, *own, *self.of_source}
        for ours in columns:
            if ours not in self.known | self.truths and not ours.startswith("facts."):
                raise ValueError(
                    f"--columns {ours}={columns[ours]}: a table of {kind} has no column {ours!r}"
                    f"{nearest(ours, self.known | self.truths)}; it has {', '.join(sorted(self.known))}, "
                    f"facts.NAME, and of the truth {', '.join(sorted(self.truths))}"
                )
        self.ids: dict[str, str] = {SOURCE: SOURCE}
        self.follow_up = None if follow_up is None else self._id(follow_up)
        self.changing = set[str]()
        """The columns seen that say what was changed."""

    def rows(self, line: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The rows of a line: one, or that of the source and that of the follow-up."""
        values = {
            name: meant
            for name, value in renamed(line, self.columns).items()
            if (meant := _meant(value, name) if type(value) is _Cell else value) is not None
        }
        case, name = _case(values.get("case")), values.get("follow_up", self.follow_up)
        if name is None:
            raise ValueError(
                "it has no follow_up; that is source, or a transformation such as mirror(h). For tables "
                "that do not say it there is --follow-up"
            )
        name = self._id(as_text(name, "follow_up"))
        draw, repeat = (_whole(values.get(what, 0), what, 0) for what in ("draw", "repeat"))
        if name == SOURCE and draw:
            raise ValueError(f"the source has no draws; draw is {draw}")
        sides: dict[str, int] = {side: _whole(values[side], side, 1) for side in ("width", "height") if side in values}
        if not self.of_source.isdisjoint(values):
            if name == SOURCE:
                raise ValueError("a line with a source beside is a pair; its follow_up is a transformation, not source")
            said = repr([(column, value) for column, value in sorted(values.items()) if column in self.of_source])
            yield {
                "case": case,
                "follow_up": SOURCE,
                "draw": 0,
                "repeat": repeat,
                "again": True,
                **sides,
                **self._answer(values, "source_"),
                "said": xxhash.xxh3_64_hexdigest(said.encode()),
            }
            sides = {}
        extras = {
            column: value
            for column, value in values.items()
            if column not in self.known and not column.startswith("facts.")
        }
        self.changing |= values.keys() & _CHANGES
        yield {
            "case": case,
            "follow_up": name,
            "draw": draw,
            "repeat": repeat,
            "again": False,
            "extras": _SPELLED.encode(extras) if extras else None,
            **sides,
            **({} if name == SOURCE else _change(values)),
            **self._answer(values, ""),
        }

    def _id(self, text: str) -> str:
        if text not in self.ids:
            try:
                self.ids[text] = transformation(text).id
            except (KeyError, ValueError, TypeError) as error:
                raise ValueError(
                    f"follow_up: {error} What was made elsewhere, and Instar has no name for, is spelled "
                    "recorded(NAME)."
                ) from None
        return self.ids[text]

    def _answer(self, values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
        """The status and the output of a line, or of its source."""
        told = {name: values.get(prefix + name) for name in self.own}
        lacking = [prefix + name for name in COLUMNS[self.kind].needed if told[name] is None]
        status = one_of(values.get(f"{prefix}status", "ok"), f"{prefix}status", STATUSES)
        row: dict[str, Any] = {"status": status}
        if f"{prefix}message" in values:
            row["message"] = as_text(values[f"{prefix}message"], "message")
        if f"{prefix}seconds" in values:
            row["seconds"] = float(as_numbers(values[f"{prefix}seconds"], "seconds", (), "a number"))
        if status == "ok":
            if lacking:
                raise ValueError(
                    f"it has no {' and no '.join(lacking)}; where there is no output, the column "
                    f"{prefix}status says {', '.join(STATUSES[1:])}"
                )
            frame = (values["width"], values["height"]) if not prefix and {"width", "height"} <= values.keys() else None
            row["output"] = self._output(self.kind, told, frame)
        elif len(lacking) < len(COLUMNS[self.kind].needed):
            raise ValueError(f"its {prefix}status is {status}, and it has an output too")
        return row

    def _output(self, kind: str, told: Mapping[str, Any], frame: Size | None) -> Output:
        if kind == Caption.kind:
            sure = told.get("score")
            return Caption.from_text(
                as_text(told["caption"], "caption"),
                score=None if sure is None else float(as_numbers(sure, "score", (), "a number")),
            )
        if kind == Detections.kind:
            return _detections(told)
        return _forecast(told, frame) if kind == Forecast.kind else self._poses(told)

    def truth(self, kind: str, told: Mapping[str, Any]) -> Output:
        """The truth of a case. What several people say of a picture is a caption of as many lines."""
        if kind == Caption.kind and isinstance(told["caption"], list):
            return Caption.from_texts(_texts(told["caption"], "caption"))
        lacking = [f"truth_{name}" for name in COLUMNS[kind].needed if told.get(name) is None]
        if lacking:
            raise ValueError(f"it has no {' and no '.join(lacking)}")
        return self._output(kind, told, None)

    def _poses(self, told: Mapping[str, Any]) -> Poses:
        if self.bones is None:
            raise ValueError("points are the truth of poses, not of what this table holds")
        form = "for each subject its landmarks [x, y] or [x, y, visibility], null where one is absent"
        subjects = told["points"] if _depth(told["points"]) != 2 else [told["points"]]
        points = [
            [_landmark(one, form) for one in as_list(subject, "a subject of points", form)]
            for subject in as_list(subjects, "points", form)
        ]
        wide = max((len(one) for subject in points for one in subject if one is not None), default=2)
        absent = [float("nan")] * wide
        filled = [[absent if one is None else one for one in subject] for subject in points]
        array = as_numbers(filled, "points", (None, None, wide), form, absent=True)
        seen, sure = told.get("visibility"), told.get("scores")
        return Poses.from_array(
            array,
            skeleton=self.bones,
            visibility=None
            if seen is None
            else as_numbers(seen, "visibility", array.shape[:2], "a number per landmark"),
            scores=None if sure is None else as_numbers(sure, "scores", (len(array),), "a number for each subject"),
        )


def _landmark(value: Any, form: str) -> list[Any] | None:
    """A landmark; None where it is absent, also where that is said of its coordinates."""
    return None if value is None or None in as_list(value, "a landmark of points", form) else value


def _depth(value: Any) -> int:
    return 1 + max((_depth(one) for one in value), default=0) if isinstance(value, list) else 0


def _detections(told: Mapping[str, Any]) -> Detections:
    boxes = as_numbers(told["boxes"], "boxes", (None, 4), "boxes [x0, y0, x1, y1] in pixels")
    sure = told.get("scores")
    return Detections.from_xyxy(
        boxes,
        _texts(told["labels"], "labels"),
        None if sure is None else as_numbers(sure, "scores", (len(boxes),), "a number for each box"),
    )


def _forecast(told: Mapping[str, Any], frame: Size | None) -> Forecast:
    depth = (None, None, 2) if _depth(told["futures"]) != 2 else (None, 2)
    futures = as_numbers(told["futures"], "futures", depth, "paths, each a list of positions [x, y]")
    heat = told.get("map")
    if heat is None:
        return Forecast.from_array(futures)
    if not isinstance(heat, dict) or not {"probability"} <= heat.keys() <= {"probability", "box"}:
        raise ValueError(f"map is {short(heat)}; it takes an object with probability, and box")
    cells = as_numbers(heat["probability"], "probability", (None, None), "rows of equally many numbers")
    box = heat.get("box") or (None if frame is None else (0, 0, *frame))
    if box is None:
        raise ValueError(
            "map needs box, the part of the frame that it covers (x0, y0, x1, y1), where the line has no "
            "width and height of its own"
        )
    x0, y0, x1, y1 = as_numbers(box, "box", (4,), "x0, y0, x1, y1 in pixels").tolist()
    return Forecast.from_array(futures, cells, box=(x0, y0, x1, y1))


_CHANGES = frozenset({"warp", "regions", "added", "removed", "facts"})


def _change(values: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a change, as far as a line has them."""
    row: dict[str, Any] = {}
    if "warp" in values:
        flat = (9,) if _depth(values["warp"]) == 1 else (3, 3)
        matrix = as_numbers(
            values["warp"], "warp", flat, "a matrix that carries the source to the follow-up, in pixels"
        )
        row["warp"] = Warp(matrix.reshape(3, 3), (1, 1), (1, 1)).matrix.ravel().tolist()
    if "regions" in values:
        boxes = as_numbers(values["regions"], "regions", (None, 4), "boxes [x0, y0, x1, y1] in pixels")
        row["regions"] = boxes.ravel().tolist()
    for name in ("added", "removed"):
        if name in values:
            row[name] = [values[name]] if isinstance(values[name], str) else _texts(values[name], name)
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


def _case(value: Any) -> str:
    if value is None:
        raise ValueError("it has no case; what the cases are called is said with --columns case=COLUMN")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    text = unicodedata.normalize("NFC", as_text(value, "case"))
    if not text.strip():
        raise ValueError("case is empty")
    return text


def _texts(value: Any, what: str) -> list[str]:
    return [as_text(one, f"one of {what}") for one in as_list(value, what, "texts")]


def _whole(value: Any, what: str, low: int) -> int:
    """A whole number, also one that a program wrote as 1.0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value < 1 << 31:
        raise ValueError(f"{what} is {short(value)}; it takes a whole number from {low}")
    return value
