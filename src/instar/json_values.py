"""JSON values: what programs, services and tables may say, checked one by one."""

from __future__ import annotations

import json
from base64 import b64decode
from collections import abc
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from instar.secrets import without_secrets
from instar.spelling import MOST_DIGITS, nearest

PNG = b"\x89PNG\r\n\x1a\n"
"""How every PNG file begins."""


MOST_COLUMNS = 1_000
"""How many columns a table may have: every one that is no output is an attribute of cases, which reports compare."""


def refuse_columns(where: str, count: int) -> None:
    if count > MOST_COLUMNS:
        raise ValueError(f"{where}: it has {count:,} columns, at most {MOST_COLUMNS:,} are read; leave out the others")


def whole_number(digits: str) -> int:
    """What JSON's decoder makes of a whole number: an error where no float could hold it."""
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number has {len(digits):,} digits, at most {MOST_DIGITS} are read")
    return int(digits)


def as_text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{what} is {short(value)}; it takes a text")
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a pair, as "\ud83d": no file could hold it
        raise ValueError(f"{what} is {short(value)}, which is no text in Unicode") from None
    return value


def as_list(value: object, what: str, form: str) -> list[object]:
    if not isinstance(value, list):
        raise ValueError(f"{what} is {short(value)}; it takes a list of {form}")
    return value


def as_texts(value: object, what: str) -> list[str]:
    return [as_text(one, f"one of {what}") for one in as_list(value, what, "texts")]


def as_object(value: object, what: str, fields: Mapping[str, bool]) -> dict[str, object]:
    """All fields of an object, None where one is absent. `fields` says of each name whether it must be there."""
    known = ", ".join(fields)
    if not isinstance(value, dict):
        raise ValueError(f"{what} is an object with {known}; got {short(value)}")
    for name in value:
        if name not in fields:
            raise ValueError(f"{what} has no field {name!r}{nearest(name, fields)}; there are {known}")
    lacking = [name for name, needed in fields.items() if needed and value.get(name) is None]
    if lacking:
        raise ValueError(f"{what} needs {' and '.join(lacking)}; got {short(value)}")
    return {name: value.get(name) for name in fields}


def one_of(value: object, what: str, allowed: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in allowed:
        hint = nearest(value, allowed) if isinstance(value, str) else ""
        raise ValueError(f"{what} is {short(value)}; it takes one of {', '.join(allowed)}{hint}")
    return value


def as_bool(value: object, what: str) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{what} is {short(value)}; it takes true or false")
    return value


def as_whole(value: object, what: str, low: int) -> int:
    """A whole number, also one that a program wrote as 1.0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value < 1 << 31:
        raise ValueError(f"{what} is {short(value)}; it takes a whole number from {low}")
    return value


def as_number(value: object, what: str) -> float:
    return float(as_numbers(value, what, (), "a number"))


def as_numbers(value: object, what: str, shape: tuple[int | None, ...], form: str) -> npt.NDArray[np.float64]:
    """Finite numbers in nested lists. Of `shape`, what is None may be anything."""
    try:
        array = np.array(value)  # of no chosen type: a text or a null must not become a number
    except ValueError:  # lists of different lengths
        array = np.array(None)
    if array.shape == (0,):
        array = np.zeros([side or 0 for side in shape])
    fits = array.ndim == len(shape) and all(side in (None, n) for side, n in zip(shape, array.shape, strict=True))
    if array.dtype.kind not in "iuf" or not fits:
        sides = f" ({' × '.join('any number' if side is None else str(side) for side in shape)})" if shape else ""
        raise ValueError(f"{what} is {short(value)}; it takes {form}{sides}")
    if not np.isfinite(array).all():
        raise ValueError(f"{what} holds {'NaN' if np.isnan(array).any() else 'a number that is too large'}")
    return array.astype(np.float64)


def as_instance(value: object, what: str, kind: Any) -> Any:
    """Return a JSON value as an instance of an annotated type: a dataclass, a mapping, a tuple, an optional or a plain
    type. Fields that a dataclass doesn't have are left out.

    >>> as_instance([[1, 2]], "spans", tuple[tuple[int, int], ...])
    ((1, 2),)
    """
    origin: Any = get_origin(kind)
    kinds = get_args(kind)
    if kind is Any:
        return value
    if origin is UnionType:
        (only,) = (one for one in kinds if one is not NoneType)
        return None if value is None else as_instance(value, what, only)
    if is_dataclass(kind) and isinstance(value, dict):
        hints = get_type_hints(kind)
        given = {one.name for one in fields(kind)}.intersection(value)
        for one in fields(kind):
            if one.name not in given and one.default is MISSING and one.default_factory is MISSING:
                raise ValueError(f"{what or 'it'} has no {one.name}")
        make: Any = kind
        return make(**{name: as_instance(value[name], f"{what}.{name}".lstrip("."), hints[name]) for name in given})
    if origin is tuple and isinstance(value, list):
        each = kinds[:1] * len(value) if kinds[1:] == (...,) else kinds
        if len(each) == len(value):
            return tuple(
                as_instance(one, f"{what}.{number}", own)
                for number, (one, own) in enumerate(zip(value, each, strict=True))
            )
    if origin is abc.Mapping and isinstance(value, dict):
        return {name: as_instance(one, f"{what}.{name}", kinds[1]) for name, one in value.items()}
    plain = (int, float) if kind is float else kind if kind in _FORMS else ()
    if isinstance(value, plain) and (kind is bool or not isinstance(value, bool)):
        return value
    raise ValueError(
        f"{what} is {short(value)}, expected {_FORMS.get(kind, 'a list' if origin is tuple else 'an object')}"
    )


_FORMS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


def as_png(value: object, what: str) -> bytes:
    """A PNG file in base64."""
    try:
        content = b64decode(as_text(value, what), validate=True)
    except ValueError as error:
        raise ValueError(f"{what} is a PNG in base64; this is none: {error}") from None
    if not content.startswith(PNG):
        raise ValueError(f"{what} is a PNG in base64; this is something else in base64")
    return content


def depth(value: object) -> int:
    """How many lists lie in one another."""
    return 1 + max((depth(one) for one in value), default=0) if isinstance(value, list) else 0


def short(value: object) -> str:
    """A value as a message quotes it, without secrets; what no file could hold is escaped."""
    written = json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace").decode()
    text = without_secrets(written)
    return text if len(text) <= 80 else f"{text[:80]}…"
