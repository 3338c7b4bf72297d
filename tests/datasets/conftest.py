from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests import missing


@pytest.fixture
def shared() -> Path:
    return missing.shared("data")


@pytest.fixture
def picture() -> Callable[..., Path]:
    """Writes a small picture, grey or coloured, and the folders on the way."""

    def write(path: Path, size: tuple[int, int] = (16, 12)) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        ok, data = cv2.imencode(".png", np.full((size[1], size[0], 3), 128, np.uint8))
        assert ok
        path.write_bytes(data.tobytes())
        return path

    return write


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
