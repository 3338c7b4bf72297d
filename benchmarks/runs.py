"""Run folders as the engine and the judge leave them, with outputs and verdicts by chance."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

import instar
from instar.engine import bound_rules
from instar.skeleton import skeleton
from instar.store import DatasetInfo, JudgingInfo, Store
from instar.suites import suite
from instar.warp import Warp
from tests.manifests import manifest_of

SIZE = (720, 480)
LANDMARKS = 33
AT_ONCE = 400_000
"""Verdicts that are made and written together."""
PLACES = ("street", "park", "room", "shop")


def run_of_poses(folder: Path, cases: int, subjects: int) -> Store:
    """A run that is not judged yet: poses that nearly agree, under the 19 rules of `met-pose/sub`."""
    rng = np.random.default_rng(0)
    bones = skeleton("mediapipe-pose-33")
    rules = bound_rules(suite("met-pose/sub").rules, "poses")
    warps = {"mirror(h)": Warp.mirror(SIZE, "h"), "rotation(5)": Warp.rotation(SIZE, 5)}
    names = [f"{number:06d}" for number in range(cases)]
    store = _begun(folder, names, [rule.id for rule in rules])
    rows = []
    for name in names:
        truth = rng.uniform(50, 400, (subjects, LANDMARKS, 2)).astype(np.float32)
        for follow_up in ("source", *(rule.transformations[0].id for rule in rules)):
            warp = warps.get(follow_up, Warp.identity(SIZE))
            order = bones.swap if warp.mirrors else slice(None)
            points = warp.points(truth[:, order]) + rng.normal(0, 2, truth.shape)
            rows.append(_prediction(name, follow_up, warp, points.astype(np.float32)))
        if len(rows) > 20_000:
            store.append_predictions(rows, "poses")
            rows = []
    store.append_predictions(rows, "poses")
    store.merge("predictions")
    return store


def run_of_verdicts(folder: Path, cases: int, rules: int) -> tuple[Store, list[str], list[str]]:
    """A judged run with one prediction alone, and the names of its cases and rules: the first of `met-pose`."""
    rng = np.random.default_rng(0)
    ids = [rule.id for rule in bound_rules(suite("met-pose").rules, "poses")][:rules]
    names = [f"folder {number % 97:02}/photo {number:07}.jpg" for number in range(cases)]
    store = _begun(folder, names, ids)
    points = np.zeros((1, LANDMARKS, 2), np.float32)
    store.append_predictions([_prediction(names[0], "source", Warp.identity(SIZE), points)], "poses")
    state = JudgingInfo(instar.__version__, {}, tuple(ids), store.state("predictions"), store.state("cases"))
    store.replace_verdicts("default", _verdicts(names, ids, rng), state)
    return store, names, ids


def _begun(folder: Path, names: Sequence[str], rules: Sequence[str]) -> Store:
    store = Store(folder)
    header = instar.Poses.from_array(
        np.zeros((1, LANDMARKS, 2)), skeleton=skeleton(f"mediapipe-pose-{LANDMARKS}")
    ).header()
    store.write_manifest(
        manifest_of(output=header, datasets=(DatasetInfo("bench", ""),), suites=("bench",), rules=tuple(rules))
    )
    rng = np.random.default_rng(1)
    store.append_cases(
        [
            {
                "case": name,
                "status": "ok",
                "width": SIZE[0],
                "height": SIZE[1],
                "hash": name,
                "attributes": json.dumps({"place": PLACES[number % len(PLACES)]}),
                "properties": dict(
                    zip(("brightness", "contrast", "sharpness", "saturation"), rng.uniform(0, 1, 4), strict=True)
                ),
            }
            for number, name in enumerate(names)
        ],
        None,
    )
    return store


def _prediction(case: str, follow_up: str, warp: Warp, points: np.ndarray) -> dict[str, object]:
    subjects = len(points)
    return {
        "case": case,
        "follow_up": follow_up,
        "draw": 0,
        "repeat": 0,
        "status": "ok",
        "width": SIZE[0],
        "height": SIZE[1],
        "warp": warp.matrix.ravel(),
        "points": points.ravel(),
        "visibility": np.ones(LANDMARKS * subjects, np.float32),
        "scores": np.ones(subjects, np.float32),
    }


def _verdicts(names: Sequence[str], rules: Sequence[str], rng: np.random.Generator) -> Iterator[pl.DataFrame]:
    """Severities of every size, some lost and invented, some not applicable, some failed."""
    total = len(names) * len(rules)
    cases, ids = pl.Series(names), pl.Series(rules)
    for start in range(0, total, AT_ONCE):
        place = np.arange(start, min(total, start + AT_ONCE))
        severity = rng.lognormal(-2.5, 1.2, len(place))
        chance = rng.uniform(0, 1, len(place))
        severity[chance < 0.05] = 0.0
        severity[chance > 0.96] = np.inf
        bare = (chance > 0.05) & (chance < 0.07)
        failed = bare & (chance > 0.065)
        kind = np.where(np.isinf(severity), np.where(chance > 0.98, "lost", "invented"), "")
        reason = np.where(failed, "too bright for me", np.where(bare, "no hair in this image", ""))
        yield pl.DataFrame(
            {
                "case": cases.gather(place // len(rules)),
                "target": pl.Series(np.where(bare, "whole", "0/body")),
                "rule": ids.gather(place % len(rules)),
                "severity": pl.Series(severity).set(pl.Series(bare), None),
                "kind": pl.Series(kind, dtype=pl.String).replace("", None),
                "reason": pl.Series(reason, dtype=pl.String).replace("", None),
                "status": pl.Series(np.where(failed, "error", np.where(bare, "not applicable", "ok"))),
            }
        ).with_columns(compared=pl.lit(LANDMARKS, pl.Int32), worst=pl.lit("left_wrist"))
