"""A case as the run folder knows it: its row, and its input once it is read."""

from __future__ import annotations

import json
from typing import cast

from instar.case import Case, Input, read_input
from instar.engine.follow_up import error_text
from instar.engine.messages import InputRead, InputUnreadable
from instar.image import Unreadable
from instar.outputs import Output
from instar.store import Row


def case_row(case: Case, truth_kind: str | None) -> Row:
    """What is known of a case before it is read. Its truth goes with it where it is of the kind that all cases have."""
    track = case.stored_track
    row: Row = {
        "case": case.id,
        "path": case.path,
        "frame": case.frame,
        "crop": list(case.crop or ()),
        "track": track.json() if track else None,
        "attributes": json.dumps(dict(case.attributes), ensure_ascii=False, default=str),
    }
    truth = cast("Output | None", case.truth)
    if truth is not None and truth.kind == truth_kind:
        row.update({f"truth_{name}": value for name, value in truth.row().items()})
    return row


def read_case(case: Case) -> tuple[Input | None, InputRead | InputUnreadable]:
    """A case's input and what its row says of it; None and the reason where it cannot be read."""
    try:
        source, digest = read_input(case)
    except Exception as error:
        reason = str(error) if isinstance(error, Unreadable) else f"{case.path}: {error_text(error)}"
        return None, InputUnreadable(reason)
    return source, InputRead(digest, *source.size, source.properties() or None)
