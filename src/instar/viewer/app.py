"""The viewer's web application: routes, and what every answer must be.

It answers loopback only. Any page in the user's browser can send requests there, too, so that a request must name
this host (no DNS rebinding), must not come from another site (Origin, Sec-Fetch-Site), and no answer may be read or
framed by one. A secret in the address would add nothing to that, and addresses could no longer be shared.
"""

from __future__ import annotations

import mimetypes
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import anyio
import jinja2
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from instar.report.rebuild import severity_text
from instar.viewer import charts, compare, pages, rules
from instar.viewer.page import page_routes, task_pages, task_template
from instar.viewer.pages import Viewer
from instar.viewer.pictures import WIDTHS, Picture, Side, plate
from instar.viewer.query import Filters, address
from instar.viewer.watch import Unavailable, Watched, Watcher

__all__ = ["application"]

STATIC = {
    "base.css": resources.files("instar.report"),
    "viewer.css": resources.files("instar.viewer"),
    "viewer.js": resources.files("instar.viewer"),
}
"""The files of a page, and the room that each lies in."""
SIDES: dict[str, Side] = {"source": "source", "follow-up": "follow-up"}
BUILT_IN = {"base", "case", "compare", "gallery", "message", "overview", "parts", "picture", "pulse", "rule", "static"}
"""Addresses and templates of the viewer itself, whose names no task's page can have."""
AT_ONCE = 2
"""Pictures drawn at the same time."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def application(folders: Sequence[str | Path], *, port: int, dataset: str | Path | None = None) -> Starlette:
    """The viewer of some run folders, to be served at a port of 127.0.0.1."""
    added = task_pages(_ENVIRONMENT, BUILT_IN)
    viewer = Viewer(tuple(Watched(folder, dataset) for folder in folders), pages=added)
    drawn_at = {"/picture", *(f"/{name}/picture" for name in added)}
    files = {name: room.joinpath("static", name) for name, room in STATIC.items()}
    files |= {f"{name}.css": one.styles for name, one in added.items() if one.styles is not None}
    watcher = Watcher(viewer.runs, then=charts.warm_up)
    drawing = anyio.CapacityLimiter(AT_ONCE)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        watcher.start()
        yield
        watcher.stop()

    def page(template: str, context: Mapping[str, Any], status: int = 200) -> HTMLResponse:
        text = _templates().get_template(f"{template}.html").render(**viewer.common(), **context)
        headers = {"Cache-Control": "no-store"}
        if template == "message" and context["waiting"]:
            headers["Refresh"] = "2"
        return HTMLResponse(text, status, headers)

    def overview(request: Request) -> Response:
        return page("overview", pages.overview(viewer, Filters.read(request.query_params)))

    def gallery(request: Request) -> Response:
        asked = Filters.read(request.query_params)
        if dict(request.query_params) != asked.query():  # a form sends its empty fields, too
            return RedirectResponse(address("/gallery", asked.query()), 302)
        return page("gallery", pages.gallery(viewer, asked))

    def case(request: Request) -> Response:
        asked = Filters.read(request.query_params)
        return page(
            "case",
            pages.case(viewer, asked, request.query_params.get("case", ""), request.query_params.get("shown", "")),
        )

    def rule(request: Request) -> Response:
        return page("rule", rules.rule(viewer, Filters.read(request.query_params)))

    def comparison(request: Request) -> Response:
        return page("compare", compare.comparison(viewer, request.query_params))

    async def picture(request: Request) -> Response:
        return await drawn(
            request,
            lambda asked, side, wide: pages.picture(viewer, Filters.read(asked), asked.get("case", ""), side, wide),
        )

    async def drawn(request: Request, make: Callable[[QueryParams, Side, int], Picture]) -> Response:
        asked = request.query_params
        side, wide = SIDES.get(asked.get("side", "source")), asked.get("w", "480")
        if side is None or wide not in map(str, WIDTHS):
            raise HTTPException(404, "side is source or follow-up, w one of " + ", ".join(map(str, WIDTHS)))
        found = await anyio.to_thread.run_sync(lambda: make(asked, side, int(wide)), limiter=drawing)
        if not found.drawn:
            return Response(found.content, 200, {"Cache-Control": "no-store"}, found.kind)
        headers = {"Cache-Control": "private, max-age=60", "ETag": f'"{found.etag}"'}
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(found.content, 200, headers, found.kind)

    def pulse(_: Request) -> Response:
        return JSONResponse(viewer.pulse(), headers={"Cache-Control": "no-store"})

    def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in files:
            raise HTTPException(404, "there is no such file")
        return Response(files[name].read_bytes(), 200, {"Cache-Control": "no-cache"}, mimetypes.guess_type(name)[0])

    def unavailable(request: Request, error: Exception) -> Response:
        assert isinstance(error, Unavailable)
        if request.url.path in drawn_at:
            made = plate(str(error), WIDTHS[0])
            return Response(made.content, 200, {"Cache-Control": "no-store"}, made.kind)
        return page(
            "message",
            {
                "title": "Nothing to show yet" if error.waiting else "Nothing to show",
                "message": str(error),
                "waiting": error.waiting,
            },
        )

    def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if request.url.path in (*drawn_at, "/pulse") or request.url.path.startswith("/static"):
            return PlainTextResponse(error.detail, error.status_code, error.headers)
        return page(
            "message",
            {
                "title": {404: "Not found", 500: "Cannot be shown"}.get(error.status_code, "Refused"),
                "message": error.detail,
                "waiting": False,
            },
            error.status_code,
        )

    routes = [
        Route("/", overview),
        Route("/gallery", gallery),
        Route("/case", case),
        Route("/rule", rule),
        Route("/compare", comparison),
        Route("/picture", picture),
        Route("/pulse", pulse),
        Route("/static/{name}", static),
        *page_routes(viewer, page, drawn),
    ]
    made = Starlette(
        routes=routes,
        middleware=[Middleware(_Guard, port=port)],
        lifespan=lifespan,
        exception_handlers={Unavailable: unavailable, HTTPException: refused},
    )
    made.state.viewer = viewer
    return made


class _Guard:
    """Refuses what does not come from the viewer's own pages or the user's address bar."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.app = app
        self.hosts = {
            f"{name}{end}"
            for name in ("127.0.0.1", "localhost")
            for end in ([f":{port}"] if port != 80 else ["", ":80"])
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message["headers"],
                    *((name.lower().encode(), value.encode()) for name, value in HEADERS.items()),
                ]
            await send(message)

        why = self._refusal(Request(scope))
        answer: ASGIApp = PlainTextResponse(*why) if why else self.app
        await answer(scope, receive, sent)

    def _refusal(self, request: Request) -> tuple[str, int] | None:
        asked = request.headers
        if asked.get("host", "") not in self.hosts:
            return "this host is not the viewer's", 403
        origin = asked.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in self.hosts}:
            return "requests from other sites are refused", 403
        # following a link that was shared is fine, embedding or fetching from elsewhere is not
        if asked.get("sec-fetch-site") in ("cross-site", "same-site") and asked.get("sec-fetch-mode") != "navigate":
            return "requests from other sites are refused", 403
        if request.method not in ("GET", "HEAD"):
            return "the viewer only shows: GET and HEAD", 405
        return None


def _templates() -> jinja2.Environment:
    return _ENVIRONMENT


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"


def _interval(row: dict[str, Any]) -> str:
    return "" if row["low"] is None or not row["judged"] else f"{100 * row['low']:.0f}–{100 * row['high']:.0f} %"


def _points(difference: float) -> str:
    """A difference of shares in percentage points, with its sign."""
    whole = round(100 * difference)
    return f"{whole:+d}".replace("-", "−") if whole else "0"


_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.ChoiceLoader([jinja2.PackageLoader("instar.viewer"), jinja2.FunctionLoader(task_template)]),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters.update(
    severity=severity_text, percent=_percent, interval=_interval, points=_points, count=lambda number: f"{number:,}"
)
_ENVIRONMENT.globals.update(address=address, zip=zip)
