"""How a run of a million pairs is made, goes on after a kill, and is judged, shown, reported and viewed.

    python -m benchmarks.million [--small] [--write]

20 rules on very small images, with a system that costs nothing, at three sizes: what grows faster than the pairs, and
what grows at all that should not, shows. Each run is killed (SIGKILL) in the middle and goes on. Every command has a
process of its own; seconds are those of the processor, imports included, and memory is that of all processes. In small
mode a limit takes the place of the kill, and all is done in the process that measures.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import resource
import signal
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import cv2
import numpy as np

import instar
from benchmarks.command import main
from benchmarks.figures import Absent, Figures, Row, measured_apart, peak_megabytes, short
from instar.engine import predict
from instar.engine.progress import Progress
from instar.store import Store

SIZES = (10_000, 100_000, 1_000_000)
RULES = ("identity", "mirror(h)", *(f"gamma({number / 10})" for number in range(3, 10)))
RULES += tuple(f"gamma({number / 10})" for number in range(11, 22))
IN_A_FOLDER = 1000
WORKERS = 2
PORT = 8000


def measure(small: bool = False) -> Figures:
    figures: Figures = {"rules": len(RULES)}
    for pairs in (200,) if small else SIZES:
        with tempfile.TemporaryDirectory() as place:
            figures[f"pairs_{pairs}"] = {"pairs": pairs, **_measured(Path(place), pairs // len(RULES), small)}
    return figures


def rows(figures: Figures) -> list[Row]:
    sizes = [each for each in figures.values() if isinstance(each, dict)]
    last = sizes[-1]
    counts = ", ".join(f"{each['pairs']:,}" for each in sizes)

    def of_run(name: str, digits: int = 2) -> str:
        return ", ".join(short(each["run"][name], digits) for each in sizes)

    words = [
        f"{name} {short(last[name]['seconds'])} s and {short(last[name]['megabytes'], 3)} MB"
        for name in ("judge", "show", "report")
    ]
    view = last["view"]
    return [
        Row(
            f"runs of {counts} pairs ({figures['rules']} rules) with a system that costs nothing",
            f"{of_run('ms_per_pair')} ms of processor time a pair, and {of_run('megabytes', 3)} MB, in the driver and "
            f"{WORKERS} workers together",
        ),
        Row(
            "the same runs, killed in the middle, until the first new prediction",
            f"{of_run('resume_seconds')} s of processor time",
        ),
        Row(
            f"commands on the run of {last['pairs']:,} pairs: processor time with imports, and memory at its highest",
            f"{', '.join(words)}; the viewer's first page {short(view['first_page_seconds'])} s, its gallery "
            f"{short(view['gallery_seconds'])} s, {short(view['megabytes'], 3)} MB",
        ),
    ]


def _measured(place: Path, cases: int, small: bool) -> Figures:
    images(place / "images", cases)
    apart: Callable[[Callable[[Path], Figures], Path], Figures] = _here if small else measured_apart
    if small:
        _predict(place, 0, limit=cases // 2)
    else:
        process = multiprocessing.get_context("spawn").Process(target=_killed, args=(place, cases))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    run = place / "run"
    return {
        "run": apart(partial(resumed, workers=0 if small else WORKERS), place),
        "judge": apart(partial(_command, "judge"), run),
        "show": apart(partial(_command, "show"), run),
        "report": apart(partial(_command, "report"), run),
        "view": apart(_viewed, run),
    }


def _here(measure: Callable[[Path], Figures], folder: Path) -> Figures:
    return measure(folder)


def images(folder: Path, count: int) -> None:
    """A folder of very small images, no two alike."""
    for number in range(count):
        path = folder / f"{number // IN_A_FOLDER:03d}" / f"{number:06d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.full((16, 16, 3), (number % 256, number // 256 % 256, number // 65536), np.uint8)
        path.write_bytes(cv2.imencode(".png", pixels)[1].tobytes())


_RNG = np.random.default_rng(0)
_BODY = _RNG.uniform(3, 13, (33, 2))
_POSES = [(_BODY + _RNG.normal(0, 0.02 * (number % 40), _BODY.shape))[None] for number in range(255)]
_ANSWERS = [instar.Poses.from_array(pose, skeleton="mediapipe-pose-33") for pose in (*_POSES, np.zeros((0, 33, 2)))]


def costless(image: np.ndarray) -> instar.Poses:
    """A system that costs nothing, and answers otherwise where an image is brighter or darker."""
    return _ANSWERS[int(image[0, 0, 2])]


def _predict(
    place: Path, workers: int, *, limit: int | None = None, on_progress: Callable[[Progress], None] | None = None
) -> int:
    """Predict what is missing of a run; how many predictions are new."""
    suite = instar.Suite("million", tuple(map(instar.rule, RULES)))
    outcome = predict(
        "benchmarks.million:costless",
        suite,
        instar.dataset(place / "images"),
        Store(place / "run"),
        workers=workers,
        limit=limit,
        providers={},
        on_progress=on_progress,
    )
    assert outcome.statuses.keys() == {"ok"}, outcome.statuses
    return outcome.fresh


def _killed(place: Path, cases: int) -> None:
    """Predict half of a run, and die."""

    def die(progress: Progress) -> None:
        if progress.fresh * 2 >= cases * (len(RULES) + 1):
            os.kill(os.getpid(), signal.SIGKILL)

    _predict(place, WORKERS, on_progress=die)


def resumed(place: Path, workers: int) -> Figures:
    """What the rest of a run costs, and how long it takes until the first of it is predicted."""
    first: list[float] = []
    begun = time.process_time() if workers == 0 else 0.0

    def note(progress: Progress) -> None:
        if progress.fresh and not first:
            first.append(time.process_time() - begun)

    fresh = _predict(place, workers, on_progress=note)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = time.process_time() - begun + (children.ru_utime + children.ru_stime if workers else 0.0)
    return {
        "ms_per_pair": 1000 * seconds / fresh,
        "resume_seconds": first[0],
        "megabytes": peak_megabytes() + workers * children.ru_maxrss / 1000,
    }


def _command(name: str, run: Path) -> Figures:
    """What a command costs, as one who types it sees it: with all that is imported."""
    from instar.cli.app import app

    more = ["--out", str(run.parent / "report.html")] if name == "report" else []
    with contextlib.redirect_stdout(io.StringIO()):
        app([name, str(run), *more], standalone_mode=False)
    return {"seconds": time.process_time(), "megabytes": peak_megabytes()}


def _viewed(run: Path) -> Figures:
    """How long the viewer takes until it shows rates, and until it shows pairs."""
    try:
        from starlette.testclient import TestClient
    except (ImportError, RuntimeError):
        raise Absent("httpx, to ask the viewer without a network (pip install httpx)") from None
    from instar.viewer import application

    with TestClient(application([run], port=PORT), base_url=f"http://127.0.0.1:{PORT}") as client:
        while "mirror(h)" not in client.get("/").text:
            time.sleep(0.01)
        first_page = time.process_time()
        while "data-waiting" in client.get("/gallery").text:
            time.sleep(0.01)
        gallery = time.process_time()
    return {"first_page_seconds": first_page, "gallery_seconds": gallery, "megabytes": peak_megabytes()}


if __name__ == "__main__":
    main("million")
