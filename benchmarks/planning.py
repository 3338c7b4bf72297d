"""How long it takes until the first case of a large dataset is handed out, and how much memory that needs.

    python -m benchmarks.planning [--small] [--write]

A folder of very small images, in folders of a thousand, and a list of the same files; under the rules of
`met-pose/sub`. The dataset is opened, its cases are counted, and the first one is handed out. Seconds are those of the
processor. In small mode the memory is that of the process that measures, and not only of planning.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import cv2
import numpy as np

import instar
from benchmarks.command import main
from benchmarks.figures import Figures, Row, measured_apart, peak_megabytes, short
from instar.datasets import dataset
from instar.engine import bound_rules, make_plan
from instar.engine.keeper import Keeper
from instar.store import Store
from tests.manifests import manifest_of

RULES = "met-pose/sub"
IN_A_FOLDER = 1000


def measure(small: bool = False) -> Figures:
    files = 200 if small else 100_000
    with tempfile.TemporaryDirectory() as place:
        names = _files(Path(place) / "photos", files)
        (Path(place) / "list.txt").write_text("".join(f"photos/{name}\n" for name in names), "utf-8")
        folder, listed = (
            _planned(path) if small else measured_apart(_planned, path)
            for path in (Path(place) / "photos", Path(place) / "list.txt")
        )
    return {"files": files, "folder": folder, "list": listed}


def rows(figures: Figures) -> list[Row]:
    words = [
        f"{name}: {short(each['first_seconds'])} s, and {short(each['all_seconds'])} s until the last one is; "
        f"{short(each['megabytes'], 3)} MB at its highest"
        for name, each in figures.items()
        if name != "files"
    ]
    return [Row(f"processor time until the first of {figures['files']:,} cases is handed out", "; ".join(words))]


def _files(folder: Path, count: int) -> list[str]:
    """Names of images that were written to a folder, below it."""
    _, image = cv2.imencode(".png", np.zeros((2, 2, 3), np.uint8))
    names = [f"{number // IN_A_FOLDER:03d}/frame_{number:06d}.png" for number in range(count)]
    for name in names:
        path = folder / name
        if path.name.endswith("000.png"):
            path.parent.mkdir(parents=True)
        path.write_bytes(image.tobytes())
    return names


def _planned(path: Path) -> Figures:
    """Seconds until a dataset's first case, and until all cases, are handed out; and the memory of the process."""
    rules = bound_rules(instar.suite(RULES).rules, "poses")
    plan = make_plan(rules, seed=0, deterministic=True)
    with tempfile.TemporaryDirectory() as place:
        store = Store(place)
        manifest = manifest_of(rules=tuple(rule.id for rule in rules))
        store.write_manifest(manifest)
        begun = time.process_time()
        tasks = Keeper(store, manifest, plan, dataset(path), None, None).tasks()
        next(tasks)
        first = time.process_time() - begun
        for _ in tasks:
            pass
        return {"first_seconds": first, "all_seconds": time.process_time() - begun, "megabytes": peak_megabytes()}


if __name__ == "__main__":
    main("planning")
