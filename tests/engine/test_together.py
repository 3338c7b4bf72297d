"""Several follow-ups are made before the first is predicted; nobody who is asked can tell."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import instar
from instar import Poses, System
from instar.case import Input
from instar.engine import worker
from instar.engine.follow_up import make_follow_up
from tests.toys import write_scenes

GAMMAS = [f"gamma({number / 10:g})" for number in range(2, 13) if number != 10]
ANSWER = Poses.from_array(np.full((1, 17, 2), 9.0), skeleton="coco-17")


def events(folder: Path, monkeypatch: pytest.MonkeyPatch, batch: int, seconds: float) -> list[str]:
    """What a run of one case and ten rules does, in its order: inputs that are made, and how many are asked at once."""
    seen: list[str] = []

    def make(*values: Any) -> Any:
        seen.append("made")
        return make_follow_up(*values)

    def predict(inputs: Sequence[Input], seeds: Sequence[int]) -> list[Poses]:
        seen.append(f"asked {len(inputs)}")
        return [ANSWER] * len(inputs)

    monkeypatch.setattr("instar.engine.maker.make_follow_up", make)
    monkeypatch.setattr(worker, "TOGETHER_SECONDS", seconds)
    system = System("toy", "poses", predict, "1", batch=batch)
    photos = write_scenes(folder / "photos", 1, (40, 30))
    done = instar.run(system, " + ".join(GAMMAS), photos, out=folder / "run", workers=0)
    assert done.predictions()["status"].to_list() == ["ok"] * 11
    return seen


def test_eight_inputs_are_made_and_then_asked_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [(what, len(list(same))) for what, same in groupby(events(tmp_path, monkeypatch, 1, np.inf))]
    assert [count for what, count in runs if what == "asked 1"] == [8, 3]


def test_who_takes_time_to_make_is_asked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that says nothing for too long is taken for one that hangs: what is made does not wait."""
    seen = events(tmp_path, monkeypatch, 1, -1)
    assert max(len(list(same)) for what, same in groupby(seen) if what == "made") == 1


@pytest.mark.parametrize("seconds", [np.inf, -1])
def test_a_system_is_given_whole_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """A model may answer other than to the letter in another batch: those of a case are cut as they always were."""
    asked = [what for what in events(tmp_path, monkeypatch, 3, seconds) if what != "made"]
    assert asked == ["asked 3", "asked 3", "asked 3", "asked 2"]
