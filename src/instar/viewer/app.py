"""The viewer's web application: routes, and what every answer must be.

It answers loopback only. Any page in the user's browser can send requests there, too, so that a request must name
this host (no DNS rebinding), must not come from another site (Origin, Sec-Fetch-Site), and no answer may be read or
framed by one. A secret in the address would add nothing to that, and addresses could no longer be shared. One address
takes a POST, which must come from a page of this host and bring the token that stands in these pages (`triage.py`).
"""

from __future__ import annotations

import mimetypes
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from http import HTTPStatus
from importlib import resources
from pathlib import Path

import anyio
import jinja2
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from instar.report import words
from instar.report.section import heading_of
from instar.report.sentences import over_cases_text
from instar.report.slice_words import effect_text, slice_text
from instar.report.unbroken import unbroken
from instar.store import Row
from instar.viewer import charts, compare, pages, rules, searches, triage
from instar.viewer.header import header, pulse, unread_words
from instar.viewer.overview import overview
from instar.viewer.page import page_routes, task_pages, task_template
from instar.viewer.pages import Viewer
from instar.viewer.pictures import WIDTHS, Picture, Pictures, Side, plate
from instar.viewer.query import Filters, address
from instar.viewer.watch import Unavailable, Watched, Watcher, run_names

STATIC = {
    "base.css": resources.files("instar.report"),
    **dict.fromkeys(("viewer.css", "viewer.js", "triage.css", "triage.js"), resources.files("instar.viewer")),
}
"""The files of a page, and the room that each lies in."""
SIDES: dict[str, Side] = {"source": "source", "follow-up": "follow-up"}
# fmt: off
BUILT_IN = {
    "base", "case", "compare", "gallery", "limits", "mark", "marks", "message", "overview", "parts", "picture", "pulse",
    "rule", "static", "triage",
}
# fmt: on
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


def application(
    folders: Sequence[str | Path],
    *,
    port: int,
    dataset: str | Path | None = None,
    worded: Callable[[str], str] = str,
    read_only: bool = False,
) -> Starlette:
    """The viewer of some run folders, to be served at a port of 127.0.0.1.

    `worded` puts the reasons why there is no picture into the words of whoever reads them. With `read_only` pairs
    cannot be marked.
    """
    pages_of_tasks = task_pages(_ENVIRONMENT, BUILT_IN)
    named = zip(folders, run_names(folders), strict=True)
    runs = tuple(Watched(folder, dataset, name) for folder, name in named)
    viewer = Viewer(runs, Pictures(worded), pages_of_tasks, "" if read_only else triage.new_token())
    watcher = Watcher(viewer.runs, then=charts.warm_up)
    site = _Site(viewer)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        watcher.start()
        yield
        watcher.stop()

    made = Starlette(
        routes=site.routes(),
        middleware=[Middleware(_Guard, port=port)],
        lifespan=lifespan,
        exception_handlers={
            Unavailable: site.unavailable,
            HTTPException: site.refused,
            ClientDisconnect: lambda request, error: Response(status_code=400),  # the client that would read it is gone
        },
    )
    made.state.viewer = viewer
    return made


class _Site:
    """What every address answers."""

    def __init__(self, viewer: Viewer) -> None:
        self.viewer = viewer
        self.drawing = anyio.CapacityLimiter(AT_ONCE)
        self.drawn_at = {"/picture", *(f"/{name}/picture" for name in viewer.pages)}
        self.files = {name: room.joinpath("static", name) for name, room in STATIC.items()}
        self.files |= {f"{name}.css": page.styles for name, page in viewer.pages.items() if page.styles is not None}

    def routes(self) -> list[Route]:
        return [
            Route("/", self.overview),
            Route("/gallery", self.gallery),
            Route("/case", self.case),
            Route("/rule", self.rule),
            Route("/limits", self.limits),
            Route("/compare", self.comparison),
            Route("/picture", self.picture),
            Route("/pulse", self.pulse),
            Route(triage.ADDRESS, self.mark, methods=["POST"]),
            Route("/static/{name}", self.static),
            *page_routes(self.viewer, self.page, self.drawn),
        ]

    def page(self, request: Request, template: str, context: Mapping[str, object], status: int = 200) -> HTMLResponse:
        path, query = (request.url.path, request.query_params) if status < 400 else ("/", QueryParams())
        above = header(self.viewer, path, query, context)
        text = unbroken(_ENVIRONMENT.get_template(f"{template}.html").render({**context, **above}))
        headers = {"Cache-Control": "no-store"}
        if template == "message" and context["waiting"]:
            headers["Refresh"] = "2"
        return HTMLResponse(text, status, headers)

    def message(
        self, request: Request, title: str, message: str, *, waiting: bool = False, status: int = 200
    ) -> HTMLResponse:
        return self.page(request, "message", {"title": title, "message": message, "waiting": waiting}, status)

    def overview(self, request: Request) -> Response:
        return self.page(request, "overview", overview(self.viewer, Filters.read(request.query_params)))

    def gallery(self, request: Request) -> Response:
        filters = self.spelled(request)
        unread = unread_words("/gallery", request.query_params)  # the page says so
        as_sent = [*request.query_params.multi_items()]  # a form sends its empty fields, too
        if not unread and as_sent != [*filters.query().items()]:
            return RedirectResponse(address("/gallery", filters.query()), 302)
        return self.page(request, "gallery", pages.gallery(self.viewer, filters))

    def case(self, request: Request) -> Response:
        query = request.query_params
        name, shown = query.get("case", ""), query.get("shown", "")
        return self.page(request, "case", pages.case(self.viewer, self.viewer.filters(query), name, shown))

    def rule(self, request: Request) -> Response:
        return self.page(request, "rule", rules.rule(self.viewer, self.spelled(request)))

    def spelled(self, request: Request) -> Filters:
        """What an address asks for, with its rule by its id, however it is spelled."""
        filters = self.viewer.filters(request.query_params)
        if not filters.rule:
            return filters
        return replace(filters, rule=pages.spelled_rule(self.viewer.index(filters), filters.rule))

    def limits(self, request: Request) -> Response:
        return self.page(request, "limits", searches.limits(self.viewer, request.query_params))

    def comparison(self, request: Request) -> Response:
        return self.page(request, "compare", compare.comparison(self.viewer, request.query_params))

    async def picture(self, request: Request) -> Response:
        def make(query: QueryParams, side: Side, wide: int) -> Picture:
            return pages.picture(self.viewer, self.viewer.filters(query), query.get("case", ""), side, wide)

        return await self.drawn(request, make)

    async def drawn(self, request: Request, make: Callable[[QueryParams, Side, int], Picture]) -> Response:
        query = request.query_params
        side, wide = SIDES.get(query.get("side", "source")), query.get("w", "480")
        if side is None or wide not in map(str, WIDTHS):
            raise HTTPException(404, "side is source or follow-up, w one of " + ", ".join(map(str, WIDTHS)))
        made = await anyio.to_thread.run_sync(lambda: make(query, side, int(wide)), limiter=self.drawing)
        if not made.drawn:
            return _plate(made)
        headers = {"Cache-Control": "private, max-age=60", "ETag": f'"{made.etag}"'}
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(made.content, 200, headers, made.kind)

    async def mark(self, request: Request) -> Response:
        return await triage.answer(self.viewer, request)

    def pulse(self, _: Request) -> Response:
        return JSONResponse(pulse(self.viewer), headers={"Cache-Control": "no-store"})

    def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self.files:
            raise HTTPException(404, "there is no such file")
        return Response(
            self.files[name].read_bytes(), 200, {"Cache-Control": "no-cache"}, mimetypes.guess_type(name)[0]
        )

    def unavailable(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, Unavailable)
        if request.url.path in self.drawn_at:
            return _plate(plate(str(error), WIDTHS[0]))
        title = "Nothing to show yet" if error.waiting else "Nothing to show"
        return self.message(request, title, str(error), waiting=error.waiting)

    def refused(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if request.url.path in (*self.drawn_at, "/pulse", triage.ADDRESS) or request.url.path.startswith("/static"):
            return PlainTextResponse(error.detail, error.status_code, error.headers)
        title = {404: "Not found", 500: "Cannot be shown"}.get(error.status_code, "Refused")
        plain = error.detail == HTTPStatus(error.status_code).phrase
        words = f"The viewer has no page {request.url.path}." if plain and error.status_code == 404 else error.detail
        return self.message(request, title, words, status=error.status_code)


def _plate(made: Picture) -> Response:
    return Response(made.content, 200, {"Cache-Control": "no-store"}, made.kind)


class _Guard:
    """Refuses what does not come from the viewer's own pages or the user's address bar."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.app = app
        ends = [f":{port}"] if port != 80 else ["", ":80"]
        self.hosts = {f"{name}{end}" for name in ("127.0.0.1", "localhost") for end in ends}

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
        headers = request.headers
        if headers.get("host", "") not in self.hosts:
            return "this host is not the viewer's", 403
        origin = headers.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in self.hosts}:
            return "requests from other sites are refused", 403
        # following a link that was shared is fine, embedding or fetching from elsewhere is not
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and headers.get("sec-fetch-mode") != "navigate":
            return "requests from other sites are refused", 403
        if request.method in ("GET", "HEAD"):
            return None
        if request.method != "POST" or request.url.path != triage.ADDRESS:
            return "the viewer only shows: GET and HEAD", 405
        # what changes something comes from a page of this very host, and says so
        if origin != f"http://{headers['host']}" or headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return "marks are made in the viewer's own pages", 403
        return None


def _interval(row: Row) -> str:
    return words.interval(row["low"], row["high"]) if row["judged"] else ""


_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.ChoiceLoader([jinja2.PackageLoader("instar.viewer"), jinja2.FunctionLoader(task_template)]),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters.update(
    severity=words.severity_text,
    breakable=words.breakable,
    commands=words.commands,
    percent=words.percent,
    interval=_interval,
    span=lambda row: words.interval(row["low"], row["high"]),
    bracketed=lambda row: f"({_interval(row)})" if row["judged"] else "",
    points=words.points,
    between=words.points_between,
    kinds=words.kinds_text,
    statuses=words.statuses_text,
    landmark=words.landmark_words,
    scores=words.scores_text,
    p=words.p_text,
    slice=slice_text,
    effect=effect_text,
    count=lambda number: f"{number:,}",
)
_ENVIRONMENT.globals.update(
    address=address,
    zip=zip,
    count_of=words.count_of,
    of_total=words.of_total,
    measured=words.measured,
    threshold_text=words.threshold_text,
    violated_from=words.violated_from,
    over_cases_text=over_cases_text,
    one_sided=words.ONE_SIDED,
    interval_and_p=words.INTERVAL_AND_P,
    heading_of=heading_of,
)
