"""Pages that tasks add to the viewer: each at an address of its own, behind the guards that all pages have."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING

import jinja2
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from instar.registry import BrokenPlugin, every
from instar.viewer.index import Index
from instar.viewer.pictures import Picture, Side, plate
from instar.viewer.query import Filters
from instar.viewer.watch import Unavailable

if TYPE_CHECKING:
    from instar.viewer.pages import Viewer

Query = Mapping[str, str]
"""What stands after the question mark of an address."""
Draw = Callable[[QueryParams, Side, int], Picture]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CaseLink:
    """A link that a case page shows: its words, and where it leads."""

    label: str
    address: str


@dataclass(frozen=True, slots=True, eq=False)
class ShownCase:
    """The case that a case page shows; `rule` and `target` are those of the verdict in large, empty without one."""

    index: Index
    filters: Filters
    case: str
    rule: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """What a task adds to the viewer. Its address is `/NAME`, by its name in `Task.pages`.

    `template` is a Jinja file that extends `base.html`, and `content` makes what it shows for the query of an address.
    `picture` draws one side of what the page shows, at most so many pixels wide, for `/NAME/picture?side=source&w=480`.
    `styles` is served as `/static/NAME.css`; the template links it in its block `styles`. `link` is the way there from
    a case page, None where the page has nothing to show of the run. What an address names and is not there raises
    starlette's `HTTPException(404, …)`.
    """

    template: Traversable
    content: Callable[[Viewer, Query], Mapping[str, object]]
    picture: Callable[[Viewer, Query, Side, int], Picture] | None = None
    styles: Traversable | None = None
    link: Callable[[ShownCase], CaseLink | None] | None = None


def task_template(file: str) -> str | None:
    """The text of a page's template, which the viewer knows as `NAME.html`."""
    page = every("pages", Page).get(file.removesuffix(".html"))
    return None if page is None else page.template.read_text("utf-8")


def task_pages(environment: jinja2.Environment, built_in: set[str]) -> dict[str, Page]:
    """The pages of tasks by name. One whose name is taken or whose files cannot be read is reported and left out."""
    pages = {}
    for name, page in every("pages", Page).items():
        try:
            if name in built_in or not re.fullmatch(r"[a-z][a-z0-9-]*", name):
                raise ValueError("the viewer has such a page itself, or this is no name for an address")
            environment.get_template(f"{name}.html")
            if page.styles is not None:
                page.styles.read_bytes()
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            warnings.warn(f"the viewer's page {name!r} is left out ({reason})", BrokenPlugin, stacklevel=2)
        else:
            pages[name] = page
    return pages


def case_links(pages: Mapping[str, Page], shown: ShownCase) -> list[CaseLink]:
    """The ways from a case to the pages that have something to show of it. A page that fails costs its own link."""
    links = []
    for name, page in pages.items():
        try:
            link = page.link(shown) if page.link else None
        except Exception:
            log.exception("the page %s has no link from the case %s", name, shown.case)
        else:
            links += [link] if link else []
    return links


def page_routes(
    viewer: Viewer,
    render: Callable[[Request, str, Mapping[str, object]], Response],
    draw: Callable[[Request, Draw], Awaitable[Response]],
) -> Iterator[Route]:
    """The routes of the viewer's pages of tasks. `render` fills a template, `draw` answers with a picture."""

    def content(name: str, page: Page, request: Request) -> Response:
        try:
            return render(request, name, page.content(viewer, request.query_params))
        except (HTTPException, Unavailable):
            raise
        except Exception as error:
            log.exception("the page %s failed", name)
            raise HTTPException(500, f"this page failed: {type(error).__name__}: {error}") from error

    def picture(name: str, page: Page, query: QueryParams, side: Side, width: int) -> Picture:
        assert page.picture is not None
        try:
            return page.picture(viewer, query, side, width)
        except (HTTPException, Unavailable):
            raise
        except Exception as error:
            log.exception("a picture of the page %s failed", name)
            return plate(f"{type(error).__name__}: {error}", width)

    async def drawn(name: str, page: Page, request: Request) -> Response:
        return await draw(request, partial(picture, name, page))

    for name, page in viewer.pages.items():
        yield Route(f"/{name}", partial(content, name, page))
        if page.picture is not None:
            yield Route(f"/{name}/picture", partial(drawn, name, page))
