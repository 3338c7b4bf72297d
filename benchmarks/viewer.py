"""How long the viewer takes over a large run: to start, for its first page, and for every filter.

    python -m benchmarks.viewer [--cases 10000] [--rules 100]

The last line is one JSON object. Times are whole answers of the application, in seconds; no network lies between.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from starlette.testclient import TestClient

import instar
from instar.engine import bound_rules
from instar.skeleton import skeleton
from instar.store import DatasetInfo, JudgingInfo, Store
from instar.suites import suite
from instar.viewer import application
from tests.manifests import manifest_of

PORT = 8000
PART = 400_000
FILTERS = (
    "status=all",
    "status=kept",
    "sort=severity",
    "status=not applicable",
    "status=failed",
    "threshold=0.5",
    "threshold=inf",
    "kind=lost&status=all",
    "family=gamma",
    "rule={rule}&status=all",
    "rule={rule}",
    "sort=case&status=all",
    "sort=rule&status=all",
    "sort=least&status=all",
    "q=00123&status=all",
    "q=7&sort=case",
    "slice=brightness > median&status=all",
    "slice=place = street",
    "slice=sharpness ≤ lower quartile&kind=invented&sort=rule",
    "page=9999",
    "group=body",
)


def made(folder: Path, cases: int, rules: int) -> tuple[Store, list[str], int]:
    """A run folder as the engine and the judge leave it, with verdicts by chance and hardly any predictions."""
    rng = np.random.default_rng(0)
    names = [one.id for one in bound_rules(suite("met-pose").rules, "poses")][:rules]
    store = Store(folder)
    header = instar.Poses.from_array(np.zeros((1, 33, 2)), skeleton=skeleton("mediapipe-pose-33")).header()
    store.write_manifest(
        manifest_of(output=header, datasets=(DatasetInfo("bench", ""),), suites=("bench",), rules=tuple(names))
    )
    ids = [f"{number:06d}.jpg" for number in range(cases)]
    places = ("street", "park", "room", "shop")
    store.append_cases(
        [
            {
                "case": name,
                "status": "ok",
                "width": 640,
                "height": 480,
                "hash": name,
                "attributes": json.dumps({"place": places[number % 4]}),
                "properties": dict(
                    zip(("brightness", "contrast", "sharpness", "saturation"), rng.uniform(0, 1, 4), strict=True)
                ),
            }
            for number, name in enumerate(ids)
        ],
        None,
    )
    store.append_predictions(
        [
            {
                "case": ids[0],
                "follow_up": "source",
                "draw": 0,
                "repeat": 0,
                "status": "ok",
                "width": 640,
                "height": 480,
                "points": np.zeros(66, np.float32),
                "visibility": np.ones(33, np.float32),
                "scores": np.ones(1, np.float32),
            }
        ],
        "poses",
    )
    total = cases * len(names)

    def parts() -> Iterator[pl.DataFrame]:
        for start in range(0, total, PART):
            place = np.arange(start, min(total, start + PART))
            severity = rng.lognormal(-2.5, 1.2, len(place))
            chance = rng.uniform(0, 1, len(place))
            severity[chance < 0.05] = 0.0
            severity[chance > 0.96] = np.inf
            bare = (chance > 0.05) & (chance < 0.07)
            failed = bare & (chance > 0.065)
            yield pl.DataFrame(
                {
                    "case": pl.Series(ids).gather(place // len(names)),
                    "target": pl.Series(np.where(bare, "whole", "0/body")),
                    "rule": pl.Series(names).gather(place % len(names)),
                    "severity": pl.Series(severity).set(pl.Series(bare), None),
                    "kind": pl.Series(
                        np.where(np.isinf(severity), np.where(chance > 0.98, "lost", "invented"), ""), dtype=pl.String
                    ).replace("", None),
                    "reason": pl.Series(
                        np.where(failed, "too bright for me", np.where(bare, "no hair in this image", "")),
                        dtype=pl.String,
                    ).replace("", None),
                    "status": pl.Series(np.where(failed, "error", np.where(bare, "not applicable", "ok"))),
                }
            )

    state = JudgingInfo(instar.__version__, {}, tuple(names), store.state("predictions"), store.state("cases"))
    store.replace_verdicts("default", parts(), state)
    return store, names, total


def measured(folder: Path, rule: str) -> dict[str, float]:
    begun = time.perf_counter()
    app = application([folder], port=PORT)
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}") as client:

        def asked(address: str) -> float:
            at = time.perf_counter()
            answer = client.get(address)
            assert answer.status_code == 200, answer.text
            return time.perf_counter() - at

        first = asked(f"/gallery?run={folder.name}")
        while "data-waiting" in client.get(f"/gallery?run={folder.name}").text:
            time.sleep(0.01)
        start = time.perf_counter() - begun
        again = asked(f"/gallery?run={folder.name}")
        spent = {f: asked(f"/gallery?run={folder.name}&" + f.format(rule=rule)) for f in FILTERS}
        for name, seconds in sorted(spent.items(), key=lambda item: -item[1])[:5]:
            print(f"{1000 * seconds:7.1f} ms  {name}")
        others = {
            name: asked(address)
            for name, address in (
                ("overview", "/"),
                ("rule", f"/rule?run={folder.name}&rule={rule}"),
                ("case", f"/case?run={folder.name}&case=000123.jpg"),
                ("compare", f"/compare?a={folder.name}&b={folder.name}"),
            )
        }
        return {
            "first_answer_s": first,
            "start_s": start,
            "first_page_s": again,
            "filter_median_s": statistics.median(spent.values()),
            "filter_worst_s": max(spent.values()),
            **{f"{name}_s": seconds for name, seconds in others.items()},
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--rules", type=int, default=100)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _, names, total = made(Path(folder), asked.cases, asked.rules)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = measured(Path(folder), names[7])
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        json.dumps(
            {
                "benchmark": "viewer",
                "verdicts": total,
                "rules": len(names),
                "filters": len(FILTERS),
                **{name: round(value, 3) for name, value in found.items()},
                "memory_peak_mb": round(held / 1024),
                "memory_peak_before_mb": round(before / 1024),
            }
        )
    )


if __name__ == "__main__":
    main()
