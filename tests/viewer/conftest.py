"""Runs to look at in the viewer, and a client of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from starlette.testclient import TestClient

import instar
from instar.engine import judge
from instar.store import Store
from instar.viewer import application
from tests.browser.conftest import RULES, wobbly
from tests.clocks import wait_for
from tests.engine.test_scenes import RULES as SCENE_RULES
from tests.engine.test_scenes import on_files, walks
from tests.toys import scene, steady

PORT = 8000
HOSTILE = "eine <b>große<b> & 'böse' 100% Datei.png"
SCRIPT = "<script>alert('reason')</script>"
MIRROR = "mirror(h) => poses"


def suite(*rules: str) -> instar.Suite:
    return instar.Suite("looks", tuple(map(instar.rule, rules)))


def rude(pixels: np.ndarray, seed: int) -> instar.Poses:
    """As `wobbly`, with an error message that is not to be trusted."""
    if pixels.mean() > 150:
        raise RuntimeError(SCRIPT)
    return wobbly(pixels, seed)


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of poses on the same pictures, and one of forecasts."""
    folder = tmp_path_factory.mktemp("viewer")
    (folder / "pictures").mkdir()
    for number in range(12):
        name = HOSTILE if number == 3 else f"{number:02d}.png"
        pixels = cv2.cvtColor(scene(number, (160, 120)).pixels, cv2.COLOR_RGB2BGR)
        (folder / "pictures" / name).write_bytes(cv2.imencode(".png", pixels)[1].tobytes())
    rules = (*RULES, "filtered(gamma(0.5), skin)", "brightness(30, 1.15)", "noise(10..12) => correlation(severity)")
    instar.run(rude, suite(*rules), folder / "pictures", out=folder / "poses", workers=0, zones="none")
    instar.run(steady, suite(*RULES), folder / "pictures", out=folder / "steady", workers=0, zones="none")
    instar.run(walks, suite(*SCENE_RULES), on_files(folder / "scenes", 6), out=folder / "walks", workers=0)
    judge(Store(folder / "poses"), {"aggregate": "max"})
    return folder


def opened(*folders: Path, **more: Any) -> Any:
    """A client of the viewer that has read its folders."""
    made = application(folders, port=PORT, **more)
    for run in made.state.viewer.runs:
        run.look()
    return TestClient(made, base_url=f"http://127.0.0.1:{PORT}")


@pytest.fixture(scope="session")
def client(base: Path) -> Iterator[Any]:
    with opened(base / "poses", base / "steady", base / "walks") as made:
        yield made


def settled(client: Any, address: str) -> Any:
    """A page; on a busy machine the first ones say that the run is being read."""
    wait_for(lambda: "data-waiting" not in client.get(address).text)
    return client.get(address)


def total(answer: Any) -> int:
    """How many pairs a gallery says there are."""
    number = re.search(r"data-total>([\d,]+)<", answer.text)
    assert number, answer.text
    return int(number[1].replace(",", ""))
