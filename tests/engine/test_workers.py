"""Systems that misbehave in a worker's process: what they cost, and that a run is of one version."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import instar
from instar.engine import hands
from instar.engine.crew import CaseWork
from instar.engine.messages import Setup
from instar.engine.process import Process, start
from instar.engine.versions import Changed
from instar.store import KEY, Store
from tests.systems.test_process import gone
from tests.toys import write_scenes

HELPER = "WHERE = 1\n"
EDITED = """
import os
import numpy as np
from pathlib import Path
from instar import Poses

HERE = Path(__file__).parent
WHERE = 1


def answer(image) -> Poses:
    import late_helper

    with (HERE / "calls").open("a") as calls:
        calls.write("x")
    if len((HERE / "calls").read_text()) == 5:  # the run is under way: somebody saves an edit, and the worker dies
        path = HERE / os.environ["EDITED_FILE"]
        path.write_text(path.read_text().replace("WHERE = 1", "WHERE = 2"))
        os._exit(3)
    points = np.full((1, 17, 2), float(WHERE * late_helper.WHERE))
    return Poses.from_array(points, skeleton="coco-17")
"""


@pytest.mark.parametrize("file", ["edited_answer.py", "late_helper.py"])
def test_a_worker_that_would_answer_with_new_code_ends_the_run(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The helper is imported at the first prediction only: also what is loaded late belongs to the version."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("EDITED_FILE", file)
    sources = {"edited_answer.py": EDITED, "late_helper.py": HELPER}
    for name, text in sources.items():
        (tmp_path / name).write_text(text)
    photos, out = write_scenes(tmp_path / "photos", 4), tmp_path / "run"
    with pytest.raises(Changed, match=rf"{file} changed while the run was under way.*put the earlier version back"):
        instar.run("edited_answer:answer", "mirror(h)", photos, out=out, workers=1)
    rows = Store(out).predictions()
    assert 0 < rows.height < 8
    places = rows["points"].explode()
    assert set(places) == {1.0}, "nothing of the new version is stored"
    for name, text in sources.items():
        (tmp_path / name).write_text(text)
    whole = instar.run("edited_answer:answer", "mirror(h)", photos, out=out, workers=0)
    for name in sources:
        sys.modules.pop(name.removesuffix(".py"), None)
    assert whole.predictions().select(KEY).is_unique().all()
    assert whole.predictions().height == 8


ZONES = """
import os
from pathlib import Path
from tests.engine.zones import painted

HERE = Path(__file__).parent
WHERE = 1


def zones(image):
    with (HERE / "calls").open("a") as calls:
        calls.write("x")
    if len((HERE / "calls").read_text()) == 3:
        Path(__file__).write_text(Path(__file__).read_text().replace("WHERE = 1", "WHERE = 2"))
        os._exit(3)
    return painted(image)
"""


def test_a_worker_whose_provider_would_be_another_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zones decide what a follow-up is: half of them of another segmenter are two suites in one run."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "edited_zones.py").write_text(ZONES)
    photos, out = write_scenes(tmp_path / "photos", 4), tmp_path / "run"
    with pytest.raises(Changed, match=r"edited_zones.py changed while the run was under way"):
        instar.run(
            "tests.toys:rectangles", "filtered(gamma(0.5), red)", photos, out=out, workers=1, zones="edited_zones:zones"
        )
    sys.modules.pop("edited_zones", None)
    assert 0 < Store(out).needs().height < 4, "those of the first version alone are stored"


ROWDY = """
import os, stat, subprocess
from pathlib import Path
from instar import Poses
from tests.toys import steady

HERE = Path(__file__).parent


def answer(image) -> Poses:
    level = float(image.mean())
    if level > 230:  # comes back twice
        os.fork()
    elif level < 20:  # speaks on the lines of others
        for name in os.listdir("/proc/self/fd"):
            try:
                if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                    os.write(int(name), b"Loading the weights: 50 %. " * 9)
            except OSError:
                pass
    else:
        if not (HERE / "left").exists():
            left = subprocess.Popen(["sleep", "600"], start_new_session=True)
            (HERE / "left").write_text(str(left.pid))
        for _ in range(64):
            os.write(1, b"chatter " * 8192)
        (HERE / "log").write_text(str(max(os.stat(f"/proc/{os.getppid()}/fd/2").st_size, 1)))
    return steady(image)
"""


def test_a_system_that_forks_babbles_and_leaves_processes_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "rowdy.py").write_text(ROWDY)
    photos = write_scenes(tmp_path / "photos", 1)
    rules = instar.Suite("s", tuple(map(instar.rule, ("gamma(0.05)", "gamma(5)", "mirror(h)"))))
    rows = instar.run("rowdy:answer", rules, photos, out=tmp_path / "run", workers=1).predictions()
    assert rows.height == 4 and rows.select(KEY).is_unique().all(), "a forked copy answers nothing"
    for name, status in (("source", "ok"), ("mirror(h)", "ok"), ("gamma(0.05)", "ok"), ("gamma(5)", "crashed")):
        assert rows.filter(follow_up=name)["status"].to_list() == [status], name
    message = rows.filter(follow_up="gamma(5)")["message"][0]
    assert "said 'Loading the weights: 50 %" in message and "descriptors of the process that are not its own" in message
    assert gone(int((tmp_path / "left").read_text())), "a process of another session ends with the run, too"
    assert int((tmp_path / "log").read_text()) < 1 << 20, "4 MB were printed, their end is kept"


@pytest.mark.parametrize(("workers", "limit", "started"), [(3, 1, 1), (2, 5, 2), (2, None, 2), (0, 1, 0)])
def test_no_more_workers_than_cases_are_started(
    workers: int, limit: int | None, started: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 32 workers for one case, 31 loaded the model for nothing."""
    processes: list[object] = []

    def counted(setup: Setup) -> Process[CaseWork]:
        processes.append(setup)
        return start(setup)

    monkeypatch.setattr(hands, "start", counted)
    monkeypatch.setattr(hands, "visible_gpus", list)
    photos = write_scenes(tmp_path / "photos", 2)
    run = instar.run(
        "tests.toys:steady", "mirror(h)", photos, out=tmp_path / "run", workers=workers, predictors=0, limit=limit
    )
    assert len(processes) == started
    assert run.store.predictions()["case"].n_unique() == (limit if limit == 1 else 2)
