"""How many pose verdicts a second the judge makes, from stored predictions to stored verdicts.

    python -m benchmarks.judge [--cases 4000]
    python -m benchmarks.judge --memory 1000000

With `--memory` it says how much memory judging takes instead: of so many verdicts, six subjects in every image, in a
process of its own. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import instar
from instar.engine import bound_rules, judge
from instar.skeleton import skeleton
from instar.store import Store
from instar.suites import suite
from instar.warp import Warp
from tests.manifests import manifest_of

SIZE = (720, 480)
WARPS = {"mirror(h)": Warp.mirror(SIZE, "h"), "rotation(5)": Warp.rotation(SIZE, 5)}


def made(folder: Path, cases: int, subjects: int) -> tuple[Store, int]:
    """A run folder as the engine leaves it, with poses that nearly agree."""
    rng = np.random.default_rng(0)
    bones = skeleton("mediapipe-pose-33")
    rules = bound_rules(suite("met-pose/sub").rules, "poses")
    store = Store(folder)
    header = instar.Poses.from_array(np.zeros((1, 33, 2)), skeleton=bones).header()
    store.write_manifest(manifest_of(output=header, suites=("bench",), rules=tuple(r.id for r in rules)))
    store.append_cases(
        [
            {"case": f"{i:06d}", "status": "ok", "width": SIZE[0], "height": SIZE[1], "hash": str(i)}
            for i in range(cases)
        ],
        None,
    )
    rows = []
    for number in range(cases):
        truth = rng.uniform(50, 400, (subjects, 33, 2)).astype(np.float32)
        for name in ("source", *(r.transformations[0].id for r in rules)):
            warp = WARPS.get(name, Warp.identity(SIZE))
            order = bones.swap if warp.mirrors else slice(None)
            points = warp.points(truth[:, order]) + rng.normal(0, 2, truth.shape)
            rows.append(
                {
                    "case": f"{number:06d}",
                    "follow_up": name,
                    "draw": 0,
                    "repeat": 0,
                    "status": "ok",
                    "width": SIZE[0],
                    "height": SIZE[1],
                    "warp": warp.matrix.ravel(),
                    "points": points.astype(np.float32).ravel(),
                    "visibility": np.ones(33 * subjects, np.float32),
                    "scores": np.ones(subjects, np.float32),
                }
            )
        if len(rows) > 20_000:
            store.append_predictions(rows, "poses")
            rows = []
    store.append_predictions(rows, "poses")
    store.merge("predictions")
    return store, cases * len(rules) * subjects


def measured(cases: int, subjects: int) -> float:
    """The best of several judgings: the least disturbed."""
    with tempfile.TemporaryDirectory() as folder:
        store, verdicts = made(Path(folder), cases, subjects)
        spent = []
        for number in range(5):
            begun = time.perf_counter()
            name = judge(store, {"confidence": number / 1000})
            spent.append(time.perf_counter() - begun)
            assert store.verdicts(name).height == verdicts
        return verdicts / min(spent)


def remembered(verdicts: int, subjects: int = 6) -> dict[str, object]:
    """What a process takes that judges so many verdicts and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        _, count = made(Path(folder), -(-verdicts // (19 * subjects)), subjects)
        judged = subprocess.run(
            [sys.executable, "-m", "benchmarks.judge", "--folder", folder], check=True, capture_output=True, text=True
        )
        return {"verdicts": count, "subjects": subjects, **json.loads(judged.stdout)}


def judged_alone(folder: str) -> dict[str, float]:
    """How long this process takes to judge a run, and the most memory that it has had since it began."""
    begun = time.perf_counter()
    judge(Store(folder))
    seconds = time.perf_counter() - begun
    peak = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert peak is not None
    return {"seconds": round(seconds, 1), "peak_megabytes": round(int(peak[1]) / 1024)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=4000)
    parser.add_argument("--memory", type=int, metavar="VERDICTS", help="measure memory, of so many verdicts")
    parser.add_argument("--folder", help="judge this run once, and say what it took")
    arguments = parser.parse_args()
    if arguments.folder:
        print(json.dumps(judged_alone(arguments.folder)))
        return
    if arguments.memory:
        print(json.dumps({"benchmark": "judge", "landmarks": 33, **remembered(arguments.memory)}))
        return
    rates = {
        "verdicts_per_second": round(measured(arguments.cases, 1)),
        "verdicts_per_second_three_subjects": round(measured(arguments.cases // 4, 3)),
    }
    print(json.dumps({"benchmark": "judge", "cases": arguments.cases, "rules": 19, "landmarks": 33, **rates}))


if __name__ == "__main__":
    main()
