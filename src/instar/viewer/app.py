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

from instar.report import words
from instar.tasks.object_relevance import viewer_page as explain
from instar.viewer import charts, compare, pages, rules
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
PICTURES = ("/picture", "/explain/picture")
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
    viewer = Viewer(tuple(Watched(folder, dataset) for folder in folders))
    watcher = Watcher(viewer.runs, then=charts.warm_up)
    drawing = anyio.CapacityLimiter(AT_ONCE)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        watcher.start()
        yield
        watcher.stop()

    def page(template: str, context: dict[str, Any], status: int = 200) -> HTMLResponse:
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

    def explanation(request: Request) -> Response:
        asked = request.query_params
        return page("explain", explain.explanation(viewer, Filters.read(asked), asked))

    def comparison(request: Request) -> Response:
        return page("compare", compare.comparison(viewer, request.query_params))

    async def picture(request: Request) -> Response:
        return await drawn(
            request,
            lambda asked, side, wide: pages.picture(viewer, Filters.read(asked), asked.get("case", ""), side, wide),
        )

    async def object_picture(request: Request) -> Response:
        return await drawn(
            request, lambda asked, side, wide: explain.picture(viewer, Filters.read(asked), asked, side, wide)
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
        if name not in STATIC:
            raise HTTPException(404, "there is no such file")
        content = STATIC[name].joinpath("static", name).read_bytes()
        return Response(content, 200, {"Cache-Control": "no-cache"}, mimetypes.guess_type(name)[0])

    def unavailable(request: Request, error: Exception) -> Response:
        assert isinstance(error, Unavailable)
        if request.url.path in PICTURES:
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
        if request.url.path in (*PICTURES, "/pulse") or request.url.path.startswith("/static"):
            return PlainTextResponse(error.detail, error.status_code, error.headers)
        return page(
            "message",
            {
                "title": "Not found" if error.status_code == 404 else "Refused",
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
        Route("/explain", explanation),
        Route("/compare", comparison),
        Route("/picture", picture),
        Route("/explain/picture", object_picture),
        Route("/pulse", pulse),
        Route("/static/{name}", static),
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


def _interval(row: Mapping[str, Any]) -> str:
    return words.interval(row["low"], row["high"]) if row["judged"] else ""


_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.PackageLoader("instar.viewer"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters.update(
    severity=words.severity_text,
    percent=words.percent,
    interval=_interval,
    points=words.points,
    p=words.p_text,
    count=lambda number: f"{number:,}",
)
_ENVIRONMENT.globals.update(
    address=address,
    zip=zip,
    count_of=words.count_of,
    of_total=words.of_total,
    threshold_text=words.threshold_text,
    one_sided=words.ONE_SIDED,
)
