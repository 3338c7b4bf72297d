"""Images that cannot be read are named wherever a run is looked at, and are no fault of the system."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from starlette.testclient import TestClient

import instar
from instar import Poses
from instar.api import NothingTold
from instar.report import show_run
from instar.report.findings import findings
from instar.report.page import make_report
from instar.store import NoRun
from instar.viewer import application
from tests.toys import steady, write_scenes

WORDS = (
    "3 of 5 cases cannot be read and count in no rate (2 times: truncated (it ends before the pixels begin, 15 bytes), "
    "first in cut_1.jpg; 1 time: the file is empty, in empty.png)."
)


def failing(pixels: np.ndarray) -> Poses:
    """Its messages differ in more than numbers."""
    raise ValueError("code " + "".join(chr(ord("a") + int(digit)) for digit in str(pixels.sum())))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> instar.Run:
    folder = tmp_path_factory.mktemp("unread")
    photos = write_scenes(folder / "photos", 2)
    for name in ("cut_1.jpg", "cut_2.jpg"):
        (photos / name).write_bytes(b"\xff\xd8\xff\xe0 not a jpeg")
    (photos / "empty.png").write_bytes(b"")
    return instar.run(steady, "mirror(h)", photos, out=folder / "run", workers=0)


def test_show_report_and_viewer_name_them(run: instar.Run) -> None:
    """A run of which three fifths were never seen does not look like a run of what is left."""
    sentences = {finding.words: finding.against for finding in findings(run)}
    assert sentences[WORDS] is False, "files are damaged, not the system"
    printed = io.StringIO()
    show_run(Console(file=printed, width=400), run)
    assert WORDS in printed.getvalue()
    assert WORDS in [finding.words for finding in make_report([run], images=0).runs[0].findings]
    with TestClient(application([run.folder], port=80), base_url="http://127.0.0.1") as client:
        assert client.get("/").text.count("cut_1.jpg") == 1


def test_a_run_of_nothing_else_says_why_there_is_nothing_to_show(tmp_path: Path) -> None:
    """`instar run` sends there for the reason."""
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "empty.png").write_bytes(b"")
    with pytest.warns(NothingTold):
        instar.run(steady, "mirror(h)", tmp_path / "photos", out=tmp_path / "run", workers=0)
    with pytest.raises(NoRun, match=r"no case of it can be read \(the file is empty, in empty\.png\)"):
        instar.open_run(tmp_path / "run").verdicts()


def test_failures_for_many_reasons_are_counted(tmp_path: Path) -> None:
    """Five pairs that failed, each with a message of its own, did not read as three."""
    photos = write_scenes(tmp_path / "photos", 5)
    with pytest.warns(NothingTold):
        failed = instar.run(failing, "mirror(h)", photos, out=tmp_path / "run", workers=0)
    sentences = [finding.words for finding in findings(failed)]
    assert len([words for words in sentences if words.startswith("1 pair of 1 rule failed (error): ")]) == 3
    assert "2 more pairs failed for 2 other reasons." in sentences
