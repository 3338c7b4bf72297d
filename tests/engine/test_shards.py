"""Shards of a run, each in a folder of its own, become the run that nobody split."""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import instar
from benchmarks.same_results import compared
from instar.case import Case
from instar.datasets import Dataset
from instar.engine import Conflict
from instar.engine.extent import Extent
from instar.report import findings, page
from instar.store import Busy, Damaged, DatasetInfo, Manifest, NoRun, ProviderInfo, Shard, Store
from instar.store.merge import Different, Joined
from instar.store.parts import Part
from instar.viewer.header import extent_words
from instar.viewer.watch import Watched
from tests.store.test_whole import flip, part_of
from tests.toys import rectangles, scene, shaky, write_scenes

RULES = "mirror(h)+gamma(0.5)+noise(8)"
TOTAL = 3
KEYS = 4
"""Predictions of a case: the source and three follow-ups."""


def run(photos: object, out: Path, system: object = rectangles, rules: str = RULES, **more: Any) -> instar.Run:
    return instar.run(system, rules, photos, out=out, workers=0, **{"zones": "none", **more})  # type: ignore[arg-type]


def shards_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("x-*-of-*"))


def sentences(done: instar.Run) -> str:
    return " ".join(finding.words for finding in findings(done))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, and the same run in three shards: of nine images and a file that is none."""
    base = tmp_path_factory.mktemp("shards")
    photos = write_scenes(base / "photos", 9, (80, 60))
    (photos / "broken.png").write_bytes(b"no image")
    run(photos, base / "whole")
    for number in range(1, TOTAL + 1):
        run(photos, base / "x", shard=f"{number}/{TOTAL}")
    return base


@pytest.fixture
def shards(made: Path, tmp_path: Path) -> list[Path]:
    """Copies of the shards, which may be changed."""
    for folder in shards_of(made):
        shutil.copytree(folder, tmp_path / folder.name)
    return shards_of(tmp_path)


# --- which case is whose ---------------------------------------------------------------------------


def test_a_case_belongs_to_one_shard_whatever_lies_beside_it(made: Path) -> None:
    """Its id alone decides: a dataset that grows, or is listed in another order, moves no case to another shard."""
    cases = [instar.open_run(folder).cases()["case"].to_list() for folder in shards_of(made)]
    assert sorted(chain(*cases)) == sorted(instar.open_run(made / "whole").cases()["case"])
    for number, names in enumerate(cases, 1):
        assert names and all(Shard(number, TOTAL).holds(name) for name in names)
    assert Shard(30, 64).holds("photos/1.jpg"), "also in the next version: a run that is half done goes on"


def test_cases_are_spread_evenly() -> None:
    """Also ids that differ in one digit."""
    counts = Counter(n for n in range(1, 9) for case in range(4000) if Shard(n, 8).holds(f"frame_{case:05}.png"))
    assert sum(counts.values()) == 4000 and max(counts.values()) < 1.15 * 500


def test_all_shards_together_have_the_cases_that_the_limit_allows(made: Path, tmp_path: Path) -> None:
    """The first five of the dataset, and not five of each shard."""
    for number in (1, 2):
        run(made / "photos", tmp_path / "x", limit=5, shard=f"{number}/2")
    merged = instar.merge(shards_of(tmp_path), out=tmp_path / "all")
    assert sorted(merged.cases()["case"]) == [f"00{number}.png" for number in range(5)]
    assert merged.manifest.datasets[0].limit == 5


@pytest.mark.parametrize(
    ("spelling", "message"),
    [
        ("0/64", "there is no shard 0/64: they are numbered from 1 to 64"),
        ("65/64", "there is no shard 65/64: they are numbered from 1 to 64"),
        ("1/0", "there is no shard 1/0: the total is at least 1"),
        ("a/b", "'a/b' is no shard; give its number and how many there are: 3/64"),
        ("3", "'3' is no shard"),
        ("-1/3", "'-1/3' is no shard"),
    ],
)
def test_what_is_no_shard_is_refused_in_words(spelling: str, message: str, made: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        run(made / "photos", tmp_path / "x", shard=spelling)
    assert not any(tmp_path.iterdir())


# --- the folder of a shard -------------------------------------------------------------------------


def test_a_shard_says_that_it_is_one(made: Path) -> None:
    folders = shards_of(made)
    assert [folder.name for folder in folders] == ["x-1-of-3", "x-2-of-3", "x-3-of-3"]
    assert Shard(3, 64).folder(Path("runs/x")) == Path("runs/x-03-of-64"), "so that a list of them is in order"
    second = instar.open_run(folders[1])
    assert second.manifest.shard == Shard(2, 3) and Extent.of(second.store).shard == Shard(2, 3)
    assert "This run is shard 2 of 3: it has only the cases of this shard" in sentences(second)
    assert "shard" not in sentences(instar.open_run(made / "whole"))
    watched = Watched(folders[1])
    watched.measure()
    assert extent_words(watched).startswith("shard 2 of 3: ")
    assert ("Shard", "2 of 3") in page._facts(second, "default")
    assert " --shard 2/3 --out x-2-of-3 " in page._commands(second, "default")[0], "what makes this folder again"


def test_a_shard_goes_on_by_either_name_and_predicts_nothing_twice(made: Path, shards: list[Path]) -> None:
    store = Store(shards[0])
    store.merge("predictions", keep=pl.col("follow_up") != "mirror(h)")
    lost = store.manifest().planned - Extent.of(store).done  # type: ignore[operator]
    for out in (shards[0].with_name("x"), shards[0]):
        again = run(made / "photos", out, shard="1/3")
        assert again.folder == shards[0] and again.outcome is not None
        assert again.outcome.fresh == lost
        lost = 0


def test_the_folder_of_a_shard_is_for_no_other_shard(made: Path, shards: list[Path]) -> None:
    with pytest.raises(ValueError, match="called after shard 1 of 3, and shard 2 of 3 was asked for; give shard 1/3"):
        run(made / "photos", shards[0], shard="2/3")
    renamed = shards[0].rename(shards[0].with_name("mine-2-of-3"))
    with pytest.raises(Conflict, match="is shard 1 of 3, not shard 2 of 3"):
        run(made / "photos", renamed, shard="2/3")
    with pytest.raises(Conflict, match=r"is shard 1 of 3; go on with 1/3 \(`shard`\), or give another folder"):
        run(made / "photos", renamed)
    whole = shutil.copytree(made / "whole", renamed.with_name("all-2-of-3"))
    with pytest.raises(Conflict, match="is a run of all cases, not shard 2 of 3"):
        run(made / "photos", whole, shard="2/3")


def test_a_shard_without_a_case_is_finished(made: Path, tmp_path: Path) -> None:
    """More shards than cases: whoever waits for all of them must not wait for ever, nor be told of a failure."""
    empty = next(n for n in range(1, 65) if not any(Shard(n, 64).holds(f"00{case}.png") for case in range(9)))
    done = run(made / "photos", tmp_path / "x", shard=f"{empty}/64", limit=9)
    assert done.outcome is not None and (done.outcome.cases, done.manifest.planned) == (0, 0)
    assert any(f"falls to shard {empty} of 64" in note for note in done.outcome.notes)
    merged = instar.merge([done.folder], out=tmp_path / "all")
    assert empty not in {shard.number for shard in merged.manifest.absent}


# --- merged ----------------------------------------------------------------------------------------


def same(whole: Path, merged: Path) -> None:
    """The predictions, cases and verdicts of two runs are equal, and so is what their manifests say of the plan."""
    assert not compared(whole, merged, {})
    manifests = [
        replace(Store(folder).manifest(), created="", updated="", packages={}, machine=None)  # type: ignore[arg-type]
        for folder in (whole, merged)
    ]
    assert manifests[0] == manifests[1]


def test_merged_shards_are_the_run_that_nobody_split(made: Path, tmp_path: Path) -> None:
    folders = shards_of(made)
    random.Random(0).shuffle(folders)
    merged = instar.merge(folders, out=tmp_path / "all")
    assert merged.outcome is not None and (merged.outcome.fresh, merged.outcome.cases) == (9 * KEYS, 10)
    whole = instar.open_run(shutil.copytree(made / "whole", tmp_path / "whole"))
    for each in (whole, merged):
        each.judge(confidence=0.1)
    same(tmp_path / "whole", tmp_path / "all")
    assert sentences(merged) == sentences(whole)


def test_a_stochastic_systems_shards_are_its_run(made: Path, tmp_path: Path) -> None:
    """Draws and repeats are seeded by the case: they do not depend on what was asked before."""
    rules = "noise(8) => poses(draws=2, repeats=2)+mirror(h)"
    run(made / "photos", tmp_path / "whole", shaky, rules, seed=7)
    for number in (1, 2):
        run(made / "photos", tmp_path / "x", shaky, rules, seed=7, shard=f"{number}/2")
    instar.merge(shards_of(tmp_path), out=tmp_path / "all")
    same(tmp_path / "whole", tmp_path / "all")


def test_zones_come_along(made: Path, tmp_path: Path) -> None:
    """Needs and their contents: pictures of follow-ups are made of them."""
    rules, zones = "filtered(greyscale, red)", "tests.engine.zones:painted"
    run(made / "photos", tmp_path / "whole", rules=rules, zones=zones)
    for number in (1, 2):
        run(made / "photos", tmp_path / "x", rules=rules, zones=zones, shard=f"{number}/2")
    merged = instar.merge(shards_of(tmp_path), out=tmp_path / "all")
    same(tmp_path / "whole", tmp_path / "all")
    needs = merged.store.needs()
    assert needs.sort("case").equals(Store(tmp_path / "whole").needs().sort("case")) and len(needs) == 9
    assert all(merged.store.blob(name) for name in needs["hash"])
    again = run(made / "photos", tmp_path / "all", rules=rules, zones=zones)
    assert again.outcome is not None and again.outcome.fresh == 0


def some_truths() -> Iterator[Case]:
    """Only the first case has a truth, so that all shards but one know of none."""
    for number in range(6):
        image = scene(number, (80, 60))
        yield Case(f"{number}", input=image, truth=rectangles(image.pixels) if number == 0 else None)


def test_truths_come_along(tmp_path: Path) -> None:
    data = Dataset("truths", "", some_truths, truth="detections")
    run(data, tmp_path / "whole")
    for number in (1, 2, 3):
        run(data, tmp_path / "x", shard=f"{number}/3")
    assert {Store(folder).manifest().truth is None for folder in shards_of(tmp_path)} == {True, False}
    instar.merge(shards_of(tmp_path), out=tmp_path / "all")
    same(tmp_path / "whole", tmp_path / "all")


def test_files_are_shared_and_the_merged_run_needs_no_shard(
    made: Path, shards: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is stored twice on one disk; where there are no links between disks, parts are copied."""
    out = shards[0].with_name("all")
    instar.merge(shards, out=out)
    parts = list((out / "predictions").iterdir())
    assert len(parts) == TOTAL and all(part.stat().st_nlink == 2 for part in parts)
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(18, "Invalid cross-device link")))
    copied = out.with_name("copied")
    instar.merge(shards, out=copied)
    assert all(part.stat().st_nlink == 1 for part in (copied / "predictions").iterdir())
    for folder in shards:
        shutil.rmtree(folder)
    for folder in (out, copied):
        same(made / "whole", folder)


def test_a_table_in_very_many_parts_is_put_together(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand small parts would make every later reading slow. To merge again finds its rows there all the same."""
    monkeypatch.setattr(sys.modules["instar.engine.merge"], "MANY_PARTS", 2)
    for fresh in (9 * KEYS, 0):
        merged = instar.merge(shards_of(made), out=tmp_path / "all")
        assert merged.outcome is not None and merged.outcome.fresh == fresh
        assert len(merged.store.state("predictions")) == len(merged.store.state("cases")) == 1
        same(made / "whole", tmp_path / "all")


# --- missing and unfinished ------------------------------------------------------------------------


def test_a_run_merged_without_some_shards_says_so_and_predicts_only_what_is_missing(
    made: Path, shards: list[Path]
) -> None:
    """One shard is missing, and one was stopped: what the others cost is not lost."""
    Store(shards[0]).merge("predictions", keep=pl.col("follow_up") != "mirror(h)")
    stopped = Extent.of(Store(shards[0]))
    absent = Store(shards[1]).cases().filter(status="ok").height
    out = shards[0].with_name("all")
    merged = instar.merge([shards[0], shards[2]], out=out)
    assert merged.outcome is not None
    missing, unfinished = merged.outcome.notes
    assert missing.startswith("shard 2 of 3 is missing; merge again when it is done, or predict its cases: ")
    assert unfinished == f"not finished: {shards[0]} ({stopped.done} of {stopped.planned} predictions)"
    assert "This run was merged without shard 2 of 3: its cases are missing" in sentences(merged)
    assert Extent.of(merged.store).missing == stopped.missing > 0
    whole = run(made / "photos", out)
    assert whole.outcome is not None and whole.outcome.fresh == stopped.missing + absent * KEYS
    assert "merged without" not in sentences(whole)
    same(made / "whole", out)


def test_to_merge_again_adds_what_has_come_since(made: Path, shards: list[Path]) -> None:
    """The same command once the last shard is done; and once more, when nothing is new."""
    out = shards[0].with_name("all")
    instar.merge(shards[:2], out=out)
    for fresh in (Extent.of(Store(shards[2])).done, 0):
        again = instar.merge([*shards, out], out=out)
        assert again.outcome is not None and (again.outcome.fresh, again.outcome.notes) == (fresh, ())
        same(made / "whole", out)


def test_a_run_that_went_on_by_itself_takes_the_missing_shard_without_its_rows(made: Path, shards: list[Path]) -> None:
    """The cases of the last shard are predicted in the merged run, and the shard comes in the end after all."""
    out = shards[0].with_name("all")
    instar.merge(shards[:2], out=out)
    run(made / "photos", out)
    again = instar.merge(shards, out=out)
    assert again.outcome is not None and again.outcome.fresh == 0
    same(made / "whole", out)


def test_a_shard_whose_job_died_before_it_began_is_missing(shards: list[Path]) -> None:
    """Its folder is there, and in it the lock alone."""
    shutil.rmtree(shards[1])
    shards[1].mkdir()
    (shards[1] / "lock").touch()
    merged = instar.merge(shards, out=shards[0].with_name("all"))
    assert merged.outcome is not None
    assert merged.outcome.notes[0] == f"{shards[1]}: no run has begun there"
    assert merged.manifest.absent == (Shard(2, 3),)


# --- refused ---------------------------------------------------------------------------------------

OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "seed": ({"seed": 5}, "the seed is 0 in .*x-1-of-3, .*x-3-of-3 and 5 in .*x-2-of-3"),
    "rules": ({"rules": ("mirror(h) => detections",)}, "the rules are also gamma.* and no others in .*x-2-of-3"),
    "suites": ({"suites": ("mine",)}, "the suites are .* and mine in .*x-2-of-3"),
    "options": ({"options": {"confidence": 0.1}}, r"the judging's options are none in .* and 0.1 for confidence in"),
    "thresholds": ({"thresholds": {"*": 0.3}}, r"the thresholds are none in .* and 0.3 for \* in"),
    "pixels": ({"max_pixels": 99}, "the most pixels of an image are .* and 99 in .*x-2-of-3"),
    "header": (
        {"output": {"kind": "poses"}},
        "what all answers share is detections .* and poses with the hash .* in .*x-2-of-3",
    ),
    "provider": (
        {"providers": {"zones": ProviderInfo("painter", "f1")}},
        r"zones come from nobody in .* and painter \(fingerprint f1\) in .*x-2-of-3",
    ),
    "total": ({"shard": Shard(2, 4)}, "the number of shards is 3 in .*x-1-of-3, .*x-3-of-3 and 4 in .*x-2-of-3"),
    "dataset": ({"datasets": (DatasetInfo("other", "/"),)}, "the dataset is folder.* and other in .*x-2-of-3"),
    "limit": ({"datasets": None}, "the dataset is folder.* and folder.* up to case 3 in .*x-2-of-3"),
    "system": ({"system": None}, "the system is .*:rectangles .* and another version of it .*changed. in .*x-2-of-3"),
    "code": ({"code": {"mine.py": "2"}}, ""),
}


def another(manifest: Manifest, changed: dict[str, Any]) -> Manifest:
    if "system" in changed:
        parts = dict.fromkeys(manifest.system.parts, "2")
        return replace(manifest, system=replace(manifest.system, fingerprint="2", parts=parts))
    if changed.get("datasets", ()) is None:
        return replace(manifest, datasets=(replace(manifest.datasets[0], limit=3),))
    return replace(manifest, **changed)


@pytest.mark.parametrize("what", OTHERS)
def test_what_is_not_of_one_plan_is_refused_with_what_differs_and_where(what: str, shards: list[Path]) -> None:
    """Rates over two plans say nothing of either."""
    changed, message = OTHERS[what]
    store = Store(shards[1])
    store.write_manifest(another(store.manifest(), changed))
    out = shards[0].with_name("all")
    if what == "code":  # files that only one of them knows are no difference
        instar.merge(shards, out=out)
        first = Store(shards[0])
        first.write_manifest(replace(first.manifest(), code={"mine.py": "1"}))
        message, out = "mine.py has the hash 1 in .*x-1-of-3 and 2 in .*x-2-of-3", out.with_name("again")
    with pytest.raises(Conflict, match=f"These runs are not of one plan: .*{message}"):
        instar.merge(shards, out=out)
    assert not out.exists()


def test_other_versions_of_libraries_are_noted(shards: list[Path]) -> None:
    """A run may go on with a newer library, so that shards may differ in it; whoever wonders can read it."""
    store = Store(shards[1])
    store.write_manifest(replace(store.manifest(), packages={**store.manifest().packages, "numpy": "0.1"}))
    merged = instar.merge(shards, out=shards[0].with_name("all"))
    assert merged.outcome is not None
    (note,) = merged.outcome.notes
    assert note.startswith("versions differ: numpy is ") and note.endswith(f"and 0.1 in {shards[1]}")


def changed_row(folder: Path, column: str, value: object) -> None:
    """One prediction of a run with another value."""
    store = Store(folder)
    first = (pl.col("case") == store.cases()["case"].min()) & (pl.col("follow_up") == "source")
    rows = store.predictions()
    store.merge("predictions", keep=~first)
    store.append("predictions", rows.filter(first).with_columns(pl.lit(value, rows.schema[column]).alias(column)))


def test_a_case_with_other_rows_in_two_runs_is_an_error_that_names_it(shards: list[Path]) -> None:
    copy = shutil.copytree(shards[0], shards[0].with_name("y-1-of-3"))
    changed_row(copy, "seconds", 99.0)
    merged = instar.merge([shards[0], copy], out=copy.with_name("same"))
    assert merged.predictions().height == Store(copy).predictions().height, "a case that both have counts once"
    changed_row(copy, "status", "crashed")
    case = Store(copy).predictions().filter(status="crashed")["case"].item()
    message = f"{case} is a case of .*x-1-of-3 and in .*y-1-of-3, and its rows differ .source, draw 0, repeat 0: status"
    with pytest.raises(Different, match=message):
        instar.merge([*shards, copy], out=copy.with_name("all"))
    assert not copy.with_name("all").exists()


def test_runs_that_were_split_by_hand_are_merged(tmp_path: Path) -> None:
    """Two folders of images, run apart; ids are relative to each folder, and so may meet."""
    write_scenes(tmp_path / "photos", 4, (80, 60))
    for part, names in {"a": ("000", "001"), "b": ("002", "003")}.items():
        (tmp_path / part).mkdir()
        for name in names:
            shutil.copy(tmp_path / "photos" / f"{name}.png", tmp_path / part)
        run(tmp_path / part, tmp_path / f"run-{part}")
    run(tmp_path / "photos", tmp_path / "whole")
    runs = [tmp_path / "run-a", tmp_path / "run-b"]
    merged = instar.merge(runs, out=tmp_path / "all")
    assert (
        merged.verdicts()
        .drop("path", strict=False)
        .sort("case", "rule")
        .equals(instar.open_run(tmp_path / "whole").verdicts().sort("case", "rule"))
    )
    assert [Path(data.folder).name for data in merged.manifest.datasets] == ["a", "b"]
    assert merged.manifest.absent == () and Extent.of(merged.store).missing == 0
    write_scenes(tmp_path / "c", 1, (90, 60))
    runs.append(run(tmp_path / "c", tmp_path / "run-c").folder)
    with pytest.raises(Different, match=r"000\.png is an input of .*run-a and in .*run-c, and not the same one"):
        instar.merge(runs, out=tmp_path / "more")


def test_what_is_no_run_is_refused(made: Path, shards: list[Path], tmp_path: Path) -> None:
    with pytest.raises(NoRun, match="photos holds no run"):
        instar.merge([*shards, made / "photos"], out=tmp_path / "all")
    with pytest.raises(NoRun, match="there is no run to merge"):
        instar.merge([], out=tmp_path / "all")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").touch()
    with pytest.raises(Conflict, match="full is there already and holds no run; give another folder"):
        instar.merge(shards, out=tmp_path / "full")
    (tmp_path / "empty").mkdir()
    assert instar.merge(shards, out=tmp_path / "empty").cases().height == 10


def test_a_shard_that_is_being_written_or_is_damaged_is_refused(shards: list[Path]) -> None:
    out = shards[0].with_name("all")
    with Store(shards[1]).lock(), pytest.raises(Busy, match=r"another process is writing to .*x-2-of-3"):
        instar.merge(shards, out=out)
    flip(part_of(shards[1] / "predictions"))
    with pytest.raises(Damaged, match=r"`instar repair-run .*x-2-of-3` sets it aside"):
        instar.merge(shards, out=out)
    assert not out.exists() and not list(out.parent.glob(".*"))


def test_shards_that_may_only_be_read_are_merged(
    made: Path, shards: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive, or the folder of a colleague: no lock can be taken there."""
    opened = Path.open

    def read_only(self: Path, mode: str = "r", **more: Any) -> Any:
        if self.parent in shards and mode == "a":
            raise OSError(30, "Read-only file system", str(self))
        return opened(self, mode, **more)

    monkeypatch.setattr(Path, "open", read_only)
    instar.merge(shards, out=shards[0].with_name("all"))
    same(made / "whole", shards[0].with_name("all"))


# --- killed ----------------------------------------------------------------------------------------


def test_a_killed_merge_leaves_nothing_that_looks_like_a_run(
    made: Path, shards: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder appears when all is in it; what a kill left is not taken for rows."""
    out = shards[0].with_name("all")
    add, removed = Joined.add, shutil.rmtree

    def dying(self: Joined, source: Store) -> bool:
        if source.folder == shards[2]:
            monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)  # nobody tidies up
            raise KeyboardInterrupt
        return add(self, source)

    monkeypatch.setattr(Joined, "add", dying)
    with pytest.raises(KeyboardInterrupt):
        instar.merge(shards, out=out)
    monkeypatch.setattr(shutil, "rmtree", removed)
    assert not out.exists() and not (out.with_name(".all.merging") / "manifest.json").exists()
    assert list((out.with_name(".all.merging") / "predictions").iterdir())
    monkeypatch.setattr(Joined, "add", add)
    instar.merge(shards[::-1], out=out)
    same(made / "whole", out)
    assert not list(out.parent.glob(".*"))


def test_a_merge_into_a_run_that_is_killed_goes_on(
    made: Path, shards: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run stays one that says what it lacks."""
    out = shards[0].with_name("all")
    instar.merge(shards[:1], out=out)
    add = Joined._add_table

    def dying(self: Joined, source: Store, table: str, parts: list[Part]) -> None:
        if (source.folder, table) == (shards[1], "predictions"):
            raise KeyboardInterrupt
        add(self, source, table, parts)

    monkeypatch.setattr(Joined, "_add_table", dying)
    with pytest.raises(KeyboardInterrupt):
        instar.merge(shards, out=out)
    assert "merged without shards 2 and 3 of 3" in sentences(instar.open_run(out))
    monkeypatch.setattr(Joined, "_add_table", add)
    instar.merge(shards, out=out)
    same(made / "whole", out)
