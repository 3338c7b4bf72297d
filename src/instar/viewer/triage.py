"""The one address of the viewer that changes something: it marks a pair.

The guard has let the request through: it names this host and comes from a page of it. Here it must bring the token of
this start of the viewer, which stands in the viewer's own pages alone and which no other site can read.
"""

from __future__ import annotations

import json
import secrets

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from instar.store import MARKS, MOST_NOTE, Mark, NoRun, Unmarkable, changing_marks, new_mark
from instar.viewer.index import Index
from instar.viewer.marks import READ_ONLY, why_not
from instar.viewer.pages import Viewer, known_rule
from instar.viewer.watch import Unavailable

ADDRESS = "/mark"
HEADER = "X-Instar-Token"
MOST_BYTES = 64 << 10
"""A request is no larger: names of cases and rules may be long, and a note has its own limit."""
FIELDS = ("run", "judging", "case", "rule", "target", "mark", "note", "seen")
"""What a request says, all of it texts. `seen` is when the mark was made that its page showed; empty without one."""


def new_token() -> str:
    """A secret of one start of the viewer."""
    return secrets.token_urlsafe(32)


async def answer(viewer: Viewer, request: Request) -> Response:
    """Mark a pair, or take its mark away; says what is stored now."""
    try:
        if not viewer.token:
            raise HTTPException(403, READ_ONLY)
        if not _knows(request, viewer.token):
            raise HTTPException(403, "this page is of an earlier start of the viewer; load it again to mark pairs")
        fields = _fields(await _body(request))
        stored = await anyio.to_thread.run_sync(_store, viewer, fields)
    except Unavailable as error:
        return PlainTextResponse(str(error), 409)
    except HTTPException as error:
        return PlainTextResponse(error.detail, error.status_code)
    made = {"mark": "", "note": "", "made": ""} if stored is None else stored
    return JSONResponse(made, headers={"Cache-Control": "no-store"})


def _knows(request: Request, token: str) -> bool:
    brought = request.headers.get(HEADER, "")
    return bool(token) and secrets.compare_digest(brought.encode("utf-8"), token.encode("utf-8"))


async def _body(request: Request) -> bytes:
    """The body, as far as it may be long: its length is counted, whatever its head says."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "a mark is sent as application/json")
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > MOST_BYTES:
            raise HTTPException(413, f"a mark is sent in at most {MOST_BYTES:,} bytes")
    return content


def _fields(content: bytes) -> dict[str, str]:
    try:
        values = json.loads(content)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise HTTPException(400, "a mark is sent as a JSON object of texts")
    if values.keys() != set(FIELDS):
        raise HTTPException(400, f"a mark has the fields {', '.join(FIELDS)}")
    if values["mark"] not in ("", *MARKS):
        raise HTTPException(400, f"{values['mark']!r} is no mark; allowed are: {', '.join(MARKS)}, or nothing")
    if len(values["note"]) > MOST_NOTE:
        raise HTTPException(400, f"a note has at most {MOST_NOTE:,} letters, and this one has {len(values['note']):,}")
    return values


def _store(viewer: Viewer, fields: dict[str, str]) -> dict[str, str] | None:
    """Store the mark of a pair that the run has; None where it has none any more."""
    run = viewer.run(fields["run"])
    if why := why_not(run.store, viewer.token):
        raise HTTPException(409, why)
    key = fields["case"], fields["rule"], fields["target"]
    _refuse_unknown(run.index(fields["judging"]), *key)
    try:
        with changing_marks(run.store) as marks:
            stored = marks.get(key) or marks.get((*key[:2], ""))
            if fields["seen"] != (stored.made if stored else ""):
                raise HTTPException(409, _changed(stored))
            if stored is not None:  # a mark of the pair as a whole stays one
                key = stored.key
                del marks[key]
            if not fields["mark"]:
                return None
            marks[key] = mark = new_mark(*key, fields["mark"], fields["note"])
    except (Unmarkable, NoRun) as error:
        raise HTTPException(409, str(error)) from None
    except OSError as error:
        raise HTTPException(500, f"the mark was not stored: {error.strerror or error}") from None
    return {"mark": mark.mark, "note": mark.note, "made": mark.made}


def _changed(stored: Mark | None) -> str:
    now = "is not marked any more" if stored is None else f"is marked {stored.mark} now"
    return f"Somebody else changed this mark meanwhile: the pair {now}. Load the page again to see it, then mark it"


def _refuse_unknown(index: Index, case: str, rule: str, target: str) -> None:
    """What is marked must be a verdict of the run."""
    number, facts = index.case_number(case), known_rule(index, rule)
    if number is None or target not in index.targets:
        raise HTTPException(404, "this run has no such case or target")
    rows = index.verdicts
    of_case = slice(*rows.case.searchsorted([number, number + 1]))
    same = (rows.rule[of_case] == index.rules.index(facts)) & (rows.target[of_case] == index.targets.index(target))
    if not same.any():
        raise HTTPException(404, "this run has no verdict of this rule on this target of the case")
