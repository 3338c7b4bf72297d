"""A driver that is really killed while its run is in a bucket: what the bucket has is not predicted again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import instar
from instar import Detections
from instar.store import KEY, NoRun, Store, lease
from studies.ledger.calls import FILE, account, answered, lines_in, note
from tests.remote.test_runs import content
from tests.toys import write_scenes

ROOT = Path(__file__).parents[2]
SYSTEM, RULES = "tests.remote.test_kill:signed", "gamma(0.5)+mirror(h)+noise(10)"
HOME, LIFE = "LEDGER_HOME", "LEDGER_LIFE"
SCRIPT = f"""
import os, signal, sys, threading, warnings
import instar, instar.engine.keeper
from instar.remote import Objects
from instar.store import lease

photos, out, left, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
warnings.simplefilter("ignore")
lease.SETTLE, instar.engine.keeper.COMMIT_ROWS = 0.05, 3
put = Objects.put

def deadly(objects, key, *values, **named):
    global left
    left -= "/predictions/" in key
    if not left:
        threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()
    return put(objects, key, *values, **named)

Objects.put = deadly
instar.run("{SYSTEM}", "{RULES}", photos, out=out, workers=0)
"""


def signed(pixels: np.ndarray) -> Detections:
    return answered(pixels, Path(os.environ[HOME]), int(os.environ[LIFE]))


@pytest.mark.parametrize("store_of_buckets", ["s3rver", "azurite"], indirect=True)
@pytest.mark.usefixtures("always_fresh")
@pytest.mark.filterwarnings("ignore::instar.remote.Advisory")
def test_a_killed_driver_costs_only_what_the_bucket_does_not_have(
    store_of_buckets: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed twice (kill -9), each time when it puts its second part of predictions; gone on with from the same disk,
    and then from another."""
    photos, home = write_scenes(tmp_path / "photos", 6, (48, 36)), tmp_path / "ledger"
    home.mkdir()
    monkeypatch.setenv(HOME, str(home))
    monkeypatch.setenv(LIFE, "0")
    monkeypatch.setattr(lease, "STALE", 0.5)
    here = instar.run(SYSTEM, RULES, photos, out=tmp_path / "here", workers=0)
    contents = here.predictions().select(pl.col("labels").list.last(), *KEY).rows()
    keys = {digest: (case, name, draw, repeat) for digest, case, name, draw, repeat in contents}
    (home / FILE).unlink()
    out = f"{store_of_buckets}/runs/killed {os.getpid()}-{time.monotonic_ns()}"
    heights = []
    for life, seconds in enumerate((0.0, 0.004), start=1):
        monkeypatch.setenv(LIFE, str(life))
        command = [sys.executable, "-c", SCRIPT, str(photos), out, "2", str(seconds)]
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        killed = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        if life == 2:
            monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another machine"))
        rows = _committed(out)
        note(home, life, "stored", *rows)
        heights.append(len(rows))
    assert 0 < heights[0] < heights[1] < len(keys)
    monkeypatch.setenv(LIFE, "3")
    append = Store.append_predictions

    def appended(store: Store, columns: Any, kind: str) -> None:
        append(store, columns, kind)
        note(home, 3, "stored", *zip(*(columns[name] for name in (*KEY, "status")), strict=True))

    monkeypatch.setattr(Store, "append_predictions", appended)
    there = instar.run(SYSTEM, RULES, photos, out=out, workers=0)
    calls = account(lines_in(home), keys)
    assert there.outcome is not None and there.outcome.again > 0
    assert not calls.wrong and calls.total - calls.again == len(keys) + there.outcome.again
    assert content(there) == content(here)


def _committed(out: str) -> list[tuple[object, ...]]:
    try:
        return Store(out).predictions([*KEY, "status"]).rows()
    except NoRun:
        return []
