"""A real Chromium without a screen, and runs to look at. What a page says in its console is an error of the test."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import cv2
import numpy as np
import pytest

import instar
from tests.clocks import ENOUGH, wait_for
from tests.missing import absent, module
from tests.toys import _centres, _pose, scene

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# A page under test talks to nobody but loopback; neither does its browser.
QUIET = [
    "--disable-gpu",
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
RULES = (
    "identity",
    "mirror(h)",
    "stretch(1, 0.8)",
    "rotation(5)",
    "gamma(0.5)",
    "brightness(20, 0.8)",
    "greyscale",
    "noise(8)",
    "resolution(0.5)",
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = module("playwright.sync_api")
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        absent(f"a browser: one of {', '.join(NAMES)}")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=found, args=QUIET)
        yield opened
        opened.close()


@contextmanager
def new_page(browser: Any) -> Iterator[Any]:
    """A page that must leave no error in its console and ask nobody but loopback for anything."""
    opened = browser.new_page(viewport={"width": 1400, "height": 900})
    opened.set_default_timeout(1000 * ENOUGH)
    wrong: list[str] = []
    opened.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    opened.on("pageerror", lambda error: wrong.append(str(error)))

    def asked(request: Any) -> None:
        address = urlsplit(request.url)
        if address.scheme not in ("file", "data", "blob", "about") and address.hostname not in ("127.0.0.1",):
            wrong.append(f"a request to {request.url}")

    opened.on("request", asked)
    yield opened
    opened.close()
    assert not wrong, wrong


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    with new_page(browser) as opened:
        yield opened


@contextmanager
def serving(*folders: Path) -> Iterator[str]:
    """Serves runs on a free port of loopback. Nothing that a page does is kept there: tests share a server."""
    uvicorn = module("uvicorn")
    from instar.viewer import application

    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    port = bound.getsockname()[1]
    viewer = application(folders, port=port)
    server = uvicorn.Server(uvicorn.Config(viewer, log_level="error", access_log=False, timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    wait_for(lambda: server.started)
    base = f"http://127.0.0.1:{port}"

    def is_read() -> bool:
        """Whether the runs are read, or there is none; the first pages of a busy machine have nothing to look at."""
        page = urlopen(f"{base}/gallery").read()
        return b"data-waiting" not in page or b"holds no run" in page

    wait_for(is_read)
    yield base
    server.should_exit = True
    thread.join(ENOUGH)


@pytest.fixture
def served() -> Iterator[Callable[..., str]]:
    """Serves runs for one test, which asks for it before its page, so that it outlives the page."""
    with ExitStack() as servers:
        yield lambda *folders: servers.enter_context(serving(*folders))


def wobbly(pixels: np.ndarray, seed: int) -> instar.Poses:
    """Finds the rectangles, shakes, strays in darker and in stretched pictures, raises in bright ones."""
    if pixels.mean() > 150:
        raise RuntimeError("too bright for me")
    rng = np.random.default_rng(seed)
    height, width = pixels.shape[:2]
    strays = 60 * abs(height / width - 0.75) + 0.6 * abs(float(pixels[0, 0].mean()) - 110)
    return _pose(_centres(pixels) + rng.normal(0, 0.4, (17, 2)) + strays * rng.uniform(0, 1))


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    for number in range(12):
        name = "eine <b>große<b> & 'böse' 100% Datei.png" if number == 3 else f"{number:02d}.png"
        pixels = scene(number, (160, 120)).pixels
        (folder / name).write_bytes(cv2.imencode(".png", cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR))[1].tobytes())
    return folder


@pytest.fixture(scope="session")
def pose_run(tmp_path_factory: pytest.TempPathFactory, pictures: Path) -> Path:
    """A finished run of poses: violations of every size, rows that failed, pairs that do not apply, some noise."""
    folder = tmp_path_factory.mktemp("runs") / "poses"
    rules = (*RULES, "filtered(gamma(0.5), skin)", "brightness(30, 1.15)")
    instar.run(
        wobbly, instar.Suite("looks", tuple(map(instar.rule, rules))), pictures, out=folder, workers=0, zones="none"
    )
    return folder


@pytest.fixture(scope="session")
def other_run(tmp_path_factory: pytest.TempPathFactory, pictures: Path) -> Path:
    """The same cases, another system."""
    folder = tmp_path_factory.mktemp("runs") / "steady"
    instar.run(
        "tests.toys:steady",
        instar.Suite("looks", tuple(map(instar.rule, RULES))),
        pictures,
        out=folder,
        workers=0,
        zones="none",
    )
    return folder


@pytest.fixture(scope="session")
def scene_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of forecasts with three relations."""
    from tests.engine.test_scenes import RULES as SCENE_RULES
    from tests.engine.test_scenes import on_files, walks

    base = tmp_path_factory.mktemp("scenes")
    chosen = instar.Suite("walks", tuple(map(instar.rule, (*SCENE_RULES, "identity => wvc(sources=4, repeats=2)"))))
    instar.run(walks, chosen, on_files(base, 6), out=base / "run", workers=0)
    return base / "run"
