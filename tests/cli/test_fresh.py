"""The same command after an edit: it names what changed, and `--fresh` starts over and deletes nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import instar
from instar.engine.manifest import Conflict
from instar.engine.versions import difference
from tests.cli.conftest import Type, Typed

MODEL = "import numpy as np\nfrom instar import Poses\nfrom fresh_help import shift\ndef predict(image) -> Poses:\n"
ANSWER = "    return Poses.from_array(np.linspace(0, shift, 34).reshape(1, 17, 2) + image.mean(), skeleton='coco-17')\n"

Again = Callable[..., Typed]
OWN_MODULES = ("fresh_model", "fresh_help", "fresh_rules", "fresh_steps", "fresh_zones")


@pytest.fixture
def again(typed: Type, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Again]:
    """Gives the same command each time, in a process that has imported nothing of the user's."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fresh_model.py").write_text(MODEL + ANSWER)
    (tmp_path / "fresh_help.py").write_text("shift = 20\n")

    def run(*flags: object, rule: str = "gamma(2)") -> Typed:
        for name in OWN_MODULES:
            sys.modules.pop(name, None)
        return typed("run", "fresh_model:predict", rule, photos, "--out", "run", "--workers", 0, *flags)

    yield run
    for name in OWN_MODULES:
        sys.modules.pop(name, None)


def folders(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("run"))


def test_a_run_says_what_it_knows_the_system_by(again: Again) -> None:
    first = again()
    assert first.code == 0, first.stderr
    assert first.stderr.splitlines()[0] == (
        "instar: fresh_model:predict is identified by fresh_model.py and fresh_help.py; other files it reads are not "
        "watched: name them in @declare(weights=…)."
    )
    assert "Nothing is left to do" in again().stdout


def test_a_changed_helper_is_named_and_fresh_moves_the_run_aside(again: Again, tmp_path: Path) -> None:
    again()
    (tmp_path / "run" / "notes.txt").write_text("the user's own")
    (tmp_path / "fresh_help.py").write_text("shift = 30\n")
    for flags in ((), ("--plan",)):
        refused = again(*flags)
        assert refused.code == 2
        assert "run was made with another version of fresh_model:predict: fresh_help.py changed." in refused.stderr
        assert "start over (--fresh), which moves the earlier run aside, give another folder (--out)" in refused.stderr
    assert "no good prediction" not in again().stderr
    assert folders(tmp_path) == ["run"], "a plan writes nothing"
    started = again("--fresh")
    assert started.code == 0
    assert "8 new predictions" in started.stdout
    [_, aside] = folders(tmp_path)
    assert f"The run that was in run, with 8 predictions, is now in {aside}; nothing of it was deleted" in started.words
    assert (tmp_path / aside / "notes.txt").read_text() == "the user's own"
    assert instar.open_run(tmp_path / aside).predictions().height == 8
    again("--fresh")
    assert len(folders(tmp_path)) == 3, "a second one in the same minute has a name of its own"


def test_fresh_in_python_and_behind_a_link(again: Again, photos: Path, tmp_path: Path) -> None:
    """The link stays and leads to the new run: it may be there because the disk is another one."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "disk")
    again()
    run = instar.run("fresh_model:predict", "gamma(2)", photos, out="run", workers=0, fresh=True)
    assert run.outcome is not None and run.outcome.fresh == 8
    assert (tmp_path / "run").is_symlink() and (tmp_path / "disk" / "manifest.json").is_file()
    assert len([path for path in tmp_path.iterdir() if path.name.startswith("disk.")]) == 1


def test_a_system_that_cannot_be_loaded_moves_nothing(again: Again, tmp_path: Path) -> None:
    again()
    (tmp_path / "fresh_help.py").write_text("shift = \n")
    assert again("--fresh").code == 2
    assert folders(tmp_path) == ["run"]


def test_the_current_directory_is_not_moved_away(again: Again, typed: Type, photos: Path, tmp_path: Path) -> None:
    again()
    os.chdir(tmp_path / "run")
    stayed = typed("run", "fresh_model:predict", "gamma(2)", photos, "--out", ".", "--workers", 0, "--fresh")
    assert stayed.code == 2 and "cannot be moved aside" in stayed.stderr


def test_fresh_where_nothing_is_moves_nothing(again: Again, tmp_path: Path) -> None:
    assert again("--fresh").code == 0
    assert folders(tmp_path) == ["run"]


def test_a_folder_without_a_good_prediction_says_that_nothing_is_lost(again: Again, tmp_path: Path) -> None:
    (tmp_path / "fresh_model.py").write_text(MODEL + "    return np.ones(3) @ np.ones(4)\n")
    failed = again()
    assert failed.code == 3
    first, reason, *_ = failed.stdout.splitlines()
    assert first.replace("\u00a0", " ") == "8 of 8 predictions failed (100 %):"
    assert reason.startswith("  8 times: ValueError: matmul") and "(fresh_model.py:5)" in failed.words
    assert "0/0" not in failed.stdout and "gamma" not in failed.stdout, "no table of nothing"
    assert "When you have changed it, --fresh starts over and moves this run aside." in failed.words
    (tmp_path / "fresh_model.py").write_text(MODEL + ANSWER)
    assert "fresh_model.py changed." in again().stderr
    assert "The folder holds no good prediction, so that nothing is lost." in again().stderr
    assert again("--fresh").code == 0


def test_some_failures_say_their_share_and_what_was_not_judged(again: Again, tmp_path: Path) -> None:
    once = "    if not hasattr(predict, 'asked'):\n        predict.asked = True\n        raise RuntimeError('cold')\n"
    (tmp_path / "fresh_model.py").write_text(MODEL + once + ANSWER)
    ended = again()
    assert ended.code == 0
    lines = ended.stdout.replace("\u00a0", " ").splitlines()
    assert lines[:3] == [
        "1 of 8 predictions failed (13 %):",
        "  1 time: RuntimeError: cold (fresh_model.py:7)",
        "1 of 4 pairs was not judged (25 %): 1 because a prediction failed.",
    ]
    assert ended.stdout.count("RuntimeError: cold") == 1, "it is told once"


def test_what_differs_is_told_in_words() -> None:
    before = {"a.py": "1", "b.py": "1", "the version that you declared": "1"}
    assert (
        difference(before, {**before, "the version that you declared": "2"}) == "the version that you declared changed"
    )
    assert difference(before, {"a.py": "2", "c.py": "1", "the version that you declared": "1"}) == (
        "a.py changed, c.py is new in it, b.py is no longer part of it"
    )
    assert difference(before, before) == "its adapter in Instar, or a library that it uses, is of another version"
    assert difference({}, before) == "its code, configuration or weights changed"
    many = {f"{number}.py": "1" for number in range(9)}
    assert difference(many, dict.fromkeys(many, "2")).endswith("3.py changed, and 5 more")


def test_a_function_of_this_session_says_what_that_means(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It goes on where its code is the same, as a cell that is run again, and is refused where it is another."""

    def of_cell(word: str) -> Callable[..., object]:
        space: dict[str, object] = {"__name__": "__main__"}
        exec(f"def say(image) -> 'Caption': return {word!r} + str(image.mean())", space)
        return space["say"]  # type: ignore[return-value]

    first = instar.run(of_cell("one"), "gamma(2)", photos, out=tmp_path / "run")
    spoken = capsys.readouterr().err
    assert "__main__:say runs in this process, as no other one can import it: on one core, without a time" in spoken
    assert "__main__:say is identified by the code of say; other files it reads" in spoken
    second = instar.run(of_cell("one"), "gamma(2)", photos, out=tmp_path / "run")
    assert first.outcome is not None and second.outcome is not None
    assert (first.outcome.fresh, second.outcome.fresh) == (8, 0)
    with pytest.raises(Conflict, match="the code of say changed"):
        instar.run(of_cell("two"), "gamma(2)", photos, out=tmp_path / "run")
    with pytest.raises(ValueError, match="put a function into a module, or give workers=0"):
        instar.run(of_cell("one"), "gamma(2)", photos, out=tmp_path / "run", workers=2)


BRIGHTER = """
import numpy as np
from instar.transforms import TransformationFamily
from fresh_steps import shift
def bright(pixels):
    return np.clip(pixels.astype(int) + shift, 0, 255).astype(np.uint8)
FAMILY = TransformationFamily("bright", "user", "photometric", bright)
"""


@pytest.mark.parametrize(
    "rule", ["fresh_rules:bright", "gamma(2) | fresh_rules:FAMILY", "filtered(fresh_rules:bright, skin)"]
)
def test_a_changed_transformation_of_ones_own_is_named(again: Again, tmp_path: Path, rule: str) -> None:
    """Its follow-ups are others now: yesterday's answers to them are not today's."""
    (tmp_path / "fresh_rules.py").write_text(BRIGHTER)
    (tmp_path / "fresh_steps.py").write_text("shift = 20\n")
    first = again(rule=rule)
    assert "The code behind your own rules is identified by fresh_rules.py and fresh_steps.py." in first.stderr
    assert again(rule=rule).code == first.code, "nothing changed"
    (tmp_path / "fresh_steps.py").write_text("shift = 1_000\n")
    for flags in ((), ("--plan",)):
        refused = again(*flags, rule=rule)
        assert refused.code == 2
        changed = "run was made with another version of the code behind its rules: fresh_steps.py changed. Follow-ups"
        assert changed in refused.words
    assert (
        "start over (--fresh), which moves the earlier run aside, give another folder (--out)" in again(rule=rule).words
    )
    assert again("--fresh", rule=rule).code == first.code


def test_an_earlier_runs_rules_are_taken_as_they_are(again: Again, tmp_path: Path) -> None:
    """Earlier versions did not note the code behind rules."""
    (tmp_path / "fresh_rules.py").write_text(BRIGHTER)
    (tmp_path / "fresh_steps.py").write_text("shift = 20\n")
    again(rule="fresh_rules:bright")
    store = instar.open_run(tmp_path / "run").store
    store.write_manifest(replace(store.manifest(), code={}))
    (tmp_path / "fresh_rules.py").write_text(BRIGHTER.replace("255", "250"))
    assert again(rule="fresh_rules:bright").code == 0


ZONES = """
import numpy as np
from instar import Zones
def zones(image) -> Zones:
    return Zones(np.zeros(image.shape[:2], np.uint8), ("skin",))
"""


def test_a_changed_provider_of_zones_is_named(again: Again, tmp_path: Path) -> None:
    (tmp_path / "fresh_zones.py").write_text(ZONES)
    assert again("--zones", "fresh_zones:zones").code == 0
    (tmp_path / "fresh_zones.py").write_text(ZONES + "# another\n")
    refused = again("--zones", "fresh_zones:zones")
    assert refused.code == 2
    changed = "has its zones from another version of fresh_zones:zones: fresh_zones.py changed; start over (--fresh)"
    assert changed in refused.words
