"""What broke a run costs what it broke alone: the next run gets past it, and makes nothing twice."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import instar
from instar import Detections, Poses
from instar.case import Case
from instar.datasets import Dataset
from instar.engine import Conflict
from instar.engine.keeper import Keeper
from instar.outputs.segmentation import Segmentation
from instar.outputs.zones import Zones
from instar.reading import MAX_PIXELS
from instar.report import load_pair
from instar.store import KEY, Damaged, Gone, Store, repair
from tests.engine.zones import painted
from tests.store.test_whole import flip, part_of
from tests.toys import rectangles, scene, steady, write_scenes

ZONES = "tests.engine.test_resume:counted_zones"
zone_calls: Counter[int] = Counter()


def counted_zones(pixels: np.ndarray) -> Zones:
    zone_calls[int(pixels.sum())] += 1
    return painted(pixels)


def run(photos: Path, out: Path, rules: str = "gamma(0.5)", system: object = steady, **more: object) -> instar.Run:
    return instar.run(system, rules, photos, out=out, **{"workers": 0, "zones": "none", **more})  # type: ignore[arg-type]


def content(done: instar.Run) -> set[str]:
    """The rows of a run, less how long they took."""
    columns = ["case", "rule", "target", "severity", "status"]
    return {*map(repr, done.predictions().drop("seconds").rows()), *map(repr, done.verdicts().select(columns).rows())}


# --- another limit of pixels -----------------------------------------------------------------------


def test_what_was_too_large_is_asked_again_where_more_pixels_are_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run has rows of one limit: it ends as if it had been begun with the higher one."""
    photos, out = write_scenes(tmp_path / "photos", 2, (80, 60)), tmp_path / "run"
    shutil.copy(write_scenes(tmp_path / "large", 1, (240, 160)) / "000.png", photos / "large.png")
    monkeypatch.setenv(MAX_PIXELS, "10000")
    low = run(photos, out, "rescale(2)+gamma(0.5)")
    assert low.manifest.max_pixels == 10_000
    assert low.cases().filter(case="large.png")["status"].to_list() == ["error"]
    assert low.predictions().group_by("status").len().sort("status").rows() == [("not applicable", 2), ("ok", 4)]
    monkeypatch.setenv(MAX_PIXELS, "1000000")
    raised = run(photos, out, "rescale(2)+gamma(0.5)")
    assert raised.outcome is not None and raised.outcome.fresh == 5, "what was answered before is not asked again"
    assert raised.manifest.max_pixels == 1_000_000
    assert content(raised) == content(run(photos, tmp_path / "undisturbed", "rescale(2)+gamma(0.5)"))


def test_a_run_does_not_go_on_with_fewer_pixels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs that it holds would be too large now: rows of two limits say nothing together."""
    photos, out = write_scenes(tmp_path / "photos", 1, (80, 60)), tmp_path / "run"
    monkeypatch.setenv(MAX_PIXELS, "10000")
    before = content(run(photos, out))
    write_scenes(photos, 2, (80, 60))
    monkeypatch.setenv(MAX_PIXELS, "4000")
    message = r"at most 10,000 pixels, and now 4,000 are allowed \(the environment variable INSTAR_MAX_PIXELS\); set it"
    with pytest.raises(Conflict, match=message):
        run(photos, out)
    monkeypatch.setenv(MAX_PIXELS, "10000")
    assert content(instar.open_run(out)) == before


# --- kills -----------------------------------------------------------------------------------------


def test_a_need_that_was_stored_before_a_kill_is_not_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone_calls.clear()
    photos, out = write_scenes(tmp_path / "photos", 2), tmp_path / "run"

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(Keeper, "on_rows", killed)  # the need is stored, and no prediction ever is
        with pytest.raises(KeyboardInterrupt):
            run(photos, out, "filtered(gamma(0.5), red)", zones=ZONES)
    assert Store(out).needs().height == 1 and Store(out).predictions().is_empty()
    run(photos, out, "filtered(gamma(0.5), red)", zones=ZONES)
    assert Store(out).needs()["case"].sort().to_list() == ["000.png", "001.png"]
    assert list(zone_calls.values()) == [1, 1]


def test_a_case_that_was_read_before_and_cannot_be_now_keeps_its_one_row(tmp_path: Path) -> None:
    photos, out = write_scenes(tmp_path / "photos", 2), tmp_path / "run"
    before = run(photos, out).cases()
    (photos / "000.png").write_bytes(b"no picture")
    again = run(photos, out, "gamma(0.5)+gamma(2)")
    assert again.cases().equals(before)
    assert again.outcome is not None
    assert [note for note in again.outcome.notes if "000.png was read before and cannot be read any more" in note]
    assert again.predictions().filter(case="000.png").height == 2
    assert again.predictions().filter(case="001.png").height == 3


def test_two_cases_of_one_id_do_not_become_one_key_twice(tmp_path: Path) -> None:
    def cases() -> Iterator[Case]:
        for number in range(2):
            yield Case("twin", input=scene(number))

    done = instar.run(steady, "gamma(0.5)", Dataset("twins", "", cases), out=tmp_path / "run", workers=0)
    assert done.predictions().select(KEY).is_unique().all() and done.cases().height == 1
    assert done.outcome is not None and "twin is the id of two cases" in done.outcome.notes[0]


def test_a_run_whose_folder_is_deleted_stops_and_leaves_no_half_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photos, out = write_scenes(tmp_path / "photos", 3), tmp_path / "run"
    monkeypatch.setattr("instar.engine.keeper.COMMIT_ROWS", 1)
    calls = Counter[str]()

    def deleting(pixels: np.ndarray) -> Poses:
        calls["all"] += 1
        if calls["all"] == 3:
            shutil.rmtree(out)
        return steady(pixels)

    with pytest.raises(Gone, match="moved, deleted or replaced"):
        run(photos, out, system=deleting)
    assert not out.exists() and calls["all"] < 6


# --- damage ----------------------------------------------------------------------------------------


def everything(photos: Path, out: Path, rules: str) -> None:
    """Go on with a run, judge it, and draw all its pairs: then every stored file is read."""
    done = run(photos, out, rules, zones=ZONES)
    for verdict in done.verdicts().iter_rows(named=True):
        load_pair(done, verdict)


@pytest.mark.parametrize("damage", ["predictions", "cases", "needs", "blobs", "verdicts/default"])
def test_damage_costs_what_the_file_held_and_the_next_run_makes_it_again(tmp_path: Path, damage: str) -> None:
    photos, out, rules = write_scenes(tmp_path / "photos", 3), tmp_path / "run", "filtered(gamma(0.5), red)+mirror(h)"
    for limit in (1, 2, 3):
        whole = content(run(photos, out, rules, zones=ZONES, limit=limit))
    zone_calls.clear()
    flip(part_of(out / damage) if damage != "blobs" else min((out / damage).glob("*/*")))
    with pytest.raises(Damaged, match="instar repair-run"):
        everything(photos, out, rules)
    (fault,) = repair(Store(out))
    assert fault.file.startswith(damage)
    mended = run(photos, out, rules, zones=ZONES)
    assert content(mended) == whole
    assert mended.outcome is not None
    assert mended.outcome.fresh == (3 if damage == "predictions" else 0)
    assert sum(zone_calls.values()) == (damage in ("needs", "blobs")), "what was not lost is not asked for again"
    assert Store(out).needs().height == 3 and Store(out).cases().height == 3
    pair = mended.verdicts().filter(rule="filtered(gamma(0.5), red) => poses").row(0, named=True)
    load_pair(mended, pair)


def cells(pixels: np.ndarray) -> Segmentation:
    return Segmentation.from_classes((pixels[..., 0] > 150).astype(np.uint8), ("grey", "red"))


def test_predictions_whose_content_is_lost_are_made_again(tmp_path: Path) -> None:
    photos, out = write_scenes(tmp_path / "photos", 2), tmp_path / "run"
    for limit in (1, 2):
        whole = content(run(photos, out, "mirror(h)", cells, limit=limit))
    flip(part_of(out / "apart"))
    with pytest.raises(Damaged):
        run(photos, out, "mirror(h)", cells)
    repair(Store(out))
    mended = run(photos, out, "mirror(h)", cells)
    assert mended.outcome is not None and mended.outcome.fresh == 2
    assert content(mended) == whole


# --- texts -----------------------------------------------------------------------------------------


def raising(pixels: np.ndarray) -> Poses:
    raise ValueError("no pose in caf\udce9 \ud83d")


def odd_labels(pixels: np.ndarray) -> Detections:
    answer = rectangles(pixels)
    return Detections.from_xyxy(answer.boxes, [f"{label}\ud800" for label in answer.labels])


def odd_caption(pixels: np.ndarray) -> str:
    return "a caf\udce9"


@pytest.mark.parametrize(
    ("system", "rules"), [(raising, "gamma(0.5)"), (odd_labels, "gamma(0.5)"), (odd_caption, "gamma(0.5) => objects")]
)
def test_a_text_that_is_no_unicode_is_stored_and_the_run_goes_on(
    tmp_path: Path, system: Callable[[np.ndarray], object], rules: str
) -> None:
    photos = write_scenes(tmp_path / "photos", 1)
    done = run(photos, tmp_path / "run", rules, system=system)
    assert done.predictions().height == 2
    assert "U+D" in str(done.predictions().rows())
    again = run(photos, tmp_path / "run", f"{rules}+{rules.replace('0.5', '2')}", system=system)
    assert again.predictions()["status"].unique().to_list() == done.predictions()["status"].unique().to_list()
    assert again.outcome is not None and again.outcome.fresh == 1


def test_photos_in_a_folder_whose_name_is_no_text_are_read_again_and_drawn(tmp_path: Path) -> None:
    photos = write_scenes(tmp_path / "photos", 2)
    place = tmp_path / os.fsdecode(b"caf\xe9")
    photos.rename(place)
    done = run(place, tmp_path / "run")
    again = run(place, tmp_path / "run", "gamma(0.5)+mirror(h)")
    assert again.outcome is not None and again.outcome.fresh == 2 and not again.outcome.notes
    assert len(again.manifest.datasets) == 1 and again.manifest.datasets[0].folder == str(place)
    verdict = done.verdicts().row(0, named=True)
    load_pair(again, verdict)
    place.rename(tmp_path / "moved")
    load_pair(again, verdict, dataset=tmp_path / "moved")


def test_an_id_that_is_no_text_names_the_same_case_when_the_run_goes_on(tmp_path: Path) -> None:
    photos = write_scenes(tmp_path / "photos", 1)

    def cases() -> Iterator[Case]:
        yield Case("caf\udce9", str(photos / "000.png"), attributes={"lens\ud800": "\udce9"})
        yield Case("gone", "caf\udce9\ud800.png")

    for rules, fresh in (("gamma(0.5)", 2), ("gamma(0.5)", 0), ("gamma(0.5)+gamma(2)", 1)):
        done = instar.run(steady, rules, Dataset("odd", "", cases), out=tmp_path / "run", workers=0)
        assert done.outcome is not None and done.outcome.fresh == fresh
    assert done.cases().select("case", "attributes").rows() == [
        ("caf<U+DCE9>", '{"lens<U+D800>": "<U+DCE9>"}'),
        ("gone", "{}"),
    ]
    assert "lens<U+D800>" in done.described().columns


def test_a_dataset_whose_names_are_no_text_is_run_and_goes_on(tmp_path: Path) -> None:
    write_scenes(tmp_path / "photos", 1)
    size = {"width": 160, "height": 120}
    images = [{"id": 1, "file_name": "photos/000.png", **size}, {"id": 2, "file_name": "photos/\ud83d.png", **size}]
    box = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 50, 50], "area": 2500, "iscrowd": 0}
    coco = {"images": images, "annotations": [box], "categories": [{"id": 1, "name": "dog\ud83d"}]}
    (tmp_path / "coco.json").write_text(json.dumps(coco))
    for rules, fresh in (("gamma(0.5)", 2), ("gamma(0.5)+gamma(2)", 1)):
        done = run(tmp_path / "coco.json", tmp_path / "run", rules, rectangles)
        assert done.outcome is not None and done.outcome.fresh == fresh
    assert done.cases().select("case", "status", "truth_labels").rows() == [
        ("photos/000.png", "ok", ["dog<U+D83D>"]),
        ("photos/<U+D83D>.png", "error", []),
    ]


# --- attributes ------------------------------------------------------------------------------------


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("no")


ODD: dict[str, Callable[[int], object]] = {
    "mixed": lambda number: [1, "a", 2.5, True, None, [3], {"b": 4}][number % 7],
    "few": lambda number: ["wet", 1][number % 2],
    "large": lambda number: 2 ** (50 + 20 * number),
    "endless": lambda number: 10 ** (5000 + number),
    "long": lambda number: "x" * 100_000 + str(number),
    "unequal": lambda number: float("nan") if number % 2 else float("inf"),
    "measured": lambda number: np.float32(number),
    "counted": lambda number: np.int64(number),
    "object": lambda number: Unspeakable(),
    "path": lambda number: Path("a"),
    "case": lambda number: number,
}
"""Attributes that somebody's dataset may have, by what is odd about them."""


def test_attributes_of_any_kind_break_neither_the_run_nor_what_is_asked_of_it(tmp_path: Path) -> None:
    def cases() -> Iterator[Case]:
        for number in range(14):
            yield Case(f"{number:02}", input=scene(number), attributes={name: of(number) for name, of in ODD.items()})

    def wavering(pixels: np.ndarray) -> Poses:
        """Strays in about every other case: where none fails, there is nothing to slice by."""
        points = steady(pixels).points + 30 * (int(pixels.sum()) % 2)
        return Poses.from_array(points, skeleton="coco-17")

    done = instar.run(wavering, "gamma(0.5)", Dataset("odd", "", cases), out=tmp_path / "run", workers=0)
    known = done.described()
    assert known["case"].to_list() == [f"{number:02}" for number in range(14)], "the case stays the case"
    assert [known[name].dtype for name in ("measured", "counted", "large", "few")] == [
        pl.Float64,
        pl.Int64,
        pl.Float64,
        pl.String,
    ]
    assert max(map(len, done.cases()["attributes"])) < 8000
    assert set(done.slices()["property"]) == {"few"}


# --- inputs that are others for a while ------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 1])
def test_nothing_of_an_image_that_was_replaced_is_stored(tmp_path: Path, workers: int) -> None:
    """Neither its answers nor its zones: with those of another image the follow-ups of this one would be others."""
    photos, out = write_scenes(tmp_path / "photos", 2, (48, 36)), tmp_path / "run"
    first, other = (photos / "000.png").read_bytes(), (photos / "001.png").read_bytes()
    run(photos, out, "gamma(0.5)", "tests.toys:steady", limit=1)
    (photos / "000.png").write_bytes(other)
    zoned = {"zones": "tests.engine.zones:painted", "limit": 1}
    between = run(photos, out, "gamma(0.7, red)", "tests.toys:steady", workers=workers, **zoned)
    assert between.outcome is not None and "000.png is not the input that this run knows" in between.outcome.notes[0]
    assert Store(out).needs().is_empty() and between.predictions().height == 2
    (photos / "000.png").write_bytes(first)
    later = run(photos, out, "gamma(0.7, red)", "tests.toys:steady", **zoned)
    whole = run(photos, tmp_path / "whole", "gamma(0.5)+gamma(0.7, red)", "tests.toys:steady", **zoned)
    assert content(later) == content(whole)


@pytest.mark.parametrize("count", [1, 3])
def test_images_that_were_written_since_are_compared_where_nothing_is_missing(tmp_path: Path, count: int) -> None:
    photos, out = write_scenes(tmp_path / "photos", 4, (48, 36)), tmp_path / "run"
    first = run(photos, out, "gamma(0.5)")
    names = [f"{number:03}.png" for number in range(count)]
    later = time.time() + 100  # also of a run that began in this very second
    for name in names:
        os.utime(photos / name, (later, later))
    touched = run(photos, out, "gamma(0.5)")
    assert touched.outcome is not None and not touched.outcome.notes
    for name in names:
        (photos / name).write_bytes((photos / "003.png").read_bytes())
        os.utime(photos / name, (later, later))
    again = run(photos, out, "gamma(0.5)")
    assert again.outcome is not None
    (note,) = again.outcome.notes
    assert all(name in note for name in names) and "changed" in note
    assert content(again) == content(first)


def test_an_image_that_could_not_be_read_stays_so_until_it_is_asked_for(tmp_path: Path) -> None:
    photos, out = write_scenes(tmp_path / "photos", 2, (48, 36)), tmp_path / "run"
    good = (photos / "000.png").read_bytes()
    (photos / "000.png").write_bytes(b"")
    run(photos, out, "gamma(0.5)")
    (photos / "000.png").write_bytes(good)
    os.utime(photos / "000.png", (time.time() + 100,) * 2)
    assert run(photos, out, "gamma(0.5)").cases()["status"].to_list() == ["error", "ok"]


@pytest.mark.parametrize("rules", ["gamma(0.5)", "gamma(0.5)+gamma(0.7)"])
def test_a_dataset_with_other_inputs_by_known_names_is_refused(tmp_path: Path, rules: str) -> None:
    """They would never be asked, and the rates of the first ones would pass for theirs."""
    photos, out = write_scenes(tmp_path / "photos", 3, (48, 36)), tmp_path / "run"
    before = content(run(photos, out, "gamma(0.5)"))
    others = write_scenes(tmp_path / "others", 4, (50, 36))
    with pytest.raises(Conflict, match=r"has another input by that name, which would never be asked"):
        run(others, out, rules)
    opened = instar.open_run(out)
    assert content(opened) == before and len(opened.manifest.datasets) == 1
    moved = shutil.copytree(photos, tmp_path / "moved")
    run(moved, out, "gamma(0.5)")
    assert len(instar.open_run(out).manifest.datasets) == 2, "the same inputs elsewhere"


def test_images_that_were_removed_are_named_where_something_of_them_is_missing(tmp_path: Path) -> None:
    """Nobody would miss what is missing of them: the dataset does not list them any more."""
    photos, out = write_scenes(tmp_path / "photos", 3, (48, 36)), tmp_path / "run"
    run(photos, out, "gamma(0.5)")
    (photos / "001.png").unlink()
    complete = run(photos, out, "gamma(0.5)")
    assert complete.outcome is not None and not complete.outcome.notes, "all of it is there"
    one = run(photos, out, "mirror(h)")
    assert one.outcome is not None and one.outcome.notes == (
        f'001.png lacks predictions and is not in folder("{photos}"); stored rows stay, nothing was added',
    )
    (photos / "002.png").unlink()
    two = run(photos, out, "mirror(v)")
    assert two.outcome is not None
    assert "2 cases of this run (001.png, 002.png) lack predictions and are not in" in two.outcome.notes[0]
    assert two.predictions().height == 3 * 2 + 2 + 1, "what was stored stays"
    fewer = run(photos, out, "mirror(v)", limit=1)
    assert fewer.outcome is not None and not fewer.outcome.notes, "a limit leaves out others on purpose"
