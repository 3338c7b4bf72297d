"""A case as the run folder knows it: its row, and its input once it is read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import cast

import numpy as np

from instar.case import Case, Input, read_input
from instar.engine.follow_up import error_text
from instar.engine.messages import InputRead, InputUnreadable
from instar.files import path_text
from instar.image import Unreadable
from instar.outputs import Output
from instar.store import Row

MOST_LETTERS = 1000
"""As many letters of an attribute are stored: what is longer is a document, and no case is sliced by it."""


def case_row(case: Case, truth_kind: str | None) -> Row:
    """What is known of a case before it is read. Its truth goes with it where it is of the kind that all cases have."""
    track = case.stored_track
    row: Row = {
        "case": case.id,
        "path": None if case.path is None else path_text(case.path),
        "frame": case.frame,
        "crop": list(case.crop or ()),
        "track": track.json() if track else None,
        "attributes": attributes_json(case.attributes),
    }
    truth = cast("Output | None", case.truth)
    if truth is not None and truth.kind == truth_kind:
        row.update({f"truth_{name}": value for name, value in truth.row().items()})
    return row


def attributes_json(attributes: Mapping[str, object]) -> str:
    """A case's attributes as they are stored: as JSON that every reader takes. What is no number is absent; what is
    too long is cut."""
    plain = {str(name)[:MOST_LETTERS]: _plain(value) for name, value in attributes.items()}
    return json.dumps(plain, ensure_ascii=False)


def _plain(value: object) -> object:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) < 1 << 63):
        return value
    if isinstance(value, str):
        text = value
    elif isinstance(value, int):
        try:
            return float(value)
        except OverflowError:
            text = hex(value)  # its decimal digits would take for ever
    else:
        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)
            if len(text) <= MOST_LETTERS:
                return json.loads(text)
        except Exception as error:  # whatever an object of the user's does when it is asked for its text
            text = f"a {type(value).__name__} that JSON cannot say ({type(error).__name__})"
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}…"


def read_case(case: Case) -> tuple[Input | None, InputRead | InputUnreadable]:
    """A case's input and what its row says of it; None and the reason where it cannot be read."""
    try:
        source, digest = read_input(case)
    except Exception as error:
        reason = str(error) if isinstance(error, Unreadable) else f"{case.path}: {error_text(error)}"
        return None, InputUnreadable(reason)
    return source, InputRead(digest, *source.size, source.properties() or None)
