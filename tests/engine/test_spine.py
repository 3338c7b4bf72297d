"""From pictures to stored verdicts: keys, draws, repeats, targets, needs, judgings, resume."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

import instar
from instar.api import estimate
from instar.engine import Conflict, hands, process
from instar.engine.plan import bound_rules, make_plan
from instar.store import KEY, Store
from instar.suites import Suite
from instar.transforms import draw_seed
from tests.toys import rectangles, scene, write_scenes


def suite(*rules: str, **more: object) -> Suite:
    return Suite("test", tuple(instar.rule(r) for r in rules), **more)  # type: ignore[arg-type]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return write_scenes(tmp_path / "photos", 4)


def run(system: str, rules: Suite, photos: Path | instar.Dataset, out: Path, **more: object) -> instar.Run:
    return instar.run(system, rules, photos, out=out, workers=more.pop("workers", 0), **more)  # type: ignore[arg-type]


def largest(verdicts: pl.DataFrame) -> float:
    return cast(float, verdicts["severity"].max())


def keys(store: Store) -> pl.DataFrame:
    return store.predictions(list(KEY)).sort(KEY)


def test_three_rules_end_to_end_with_worker_processes_of_which_none_dies(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []
    real = process.start

    def counted(setup: Any) -> Any:
        started.append(1)
        return real(setup)

    monkeypatch.setattr(process, "start", counted)  # by whom those that died are replaced
    monkeypatch.setattr(hands, "start", counted)
    rules = suite("mirror(h)", "gamma(0.5)", "colour_wheel(90, red)")
    write_scenes(photos, 12)
    one = run("tests.toys:rectangles", rules, photos, tmp_path / "run", workers=2, zones="tests.engine.zones:painted")
    assert len(started) == 2
    predictions = one.predictions()
    assert predictions.height == 12 * 4
    assert predictions["status"].unique().to_list() == ["ok"]
    rates = {row["rule"]: row for row in one.rates(0.5).to_dicts()}
    assert rates["mirror(h) => detections"]["rate"] == 0
    assert rates["gamma(0.5) => detections"]["rate"] == 0
    # the toy names rectangles by their colour: turning red by a quarter of the wheel must expose it
    assert rates["filtered(colour_wheel(90), red) => detections"]["rate"] == 1


def test_large_inputs_in_memory_do_not_lock_coordinator_and_workers(tmp_path: Path) -> None:
    """Both sides send more than a pipe holds: whoever waits for the other to read would wait for ever."""
    cases = [instar.Case(f"{i}", input=scene(i, (1200, 900))) for i in range(8)]
    data = instar.Dataset("memory", str(tmp_path), lambda: iter(cases))
    one = instar.run(
        "tests.engine.zones:talkative",
        suite("mirror(h)", "colour_wheel(90, red)"),
        data,
        out=tmp_path / "run",
        workers=2,
        zones="tests.engine.zones:painted",
        timeout=600,
    )
    assert one.predictions()["status"].to_list() == ["ok"] * 24


def test_a_case_that_cannot_be_sent_is_an_error_and_no_silence(tmp_path: Path) -> None:
    data = instar.Dataset(
        "memory", str(tmp_path), lambda: iter([instar.Case("a", input=scene(0), attributes={"f": lambda: None})])
    )
    with pytest.raises((AttributeError, TypeError, pickle.PicklingError), match="<lambda>"):
        instar.run("tests.toys:steady", suite("mirror(h)"), data, out=tmp_path / "run", workers=1, timeout=600)


def test_a_segmenter_that_kills_its_process_costs_its_own_pairs(photos: Path, tmp_path: Path) -> None:
    (photos / "000.png").unlink()  # two of the others kill it, each of which costs a worker or two
    one = run(
        "tests.toys:rectangles",
        suite("colour_wheel(90, red)", "mirror(h)"),
        photos,
        tmp_path / "run",
        workers=1,
        zones="tests.engine.zones:fragile",
    )
    rows = one.predictions()
    assert rows.height == 3 * 3 and rows.select(KEY).is_unique().all()
    lost = rows.filter(pl.col("status") != "ok")
    assert lost["follow_up"].unique().to_list() == ["filtered(colour_wheel(90), red)"]
    assert lost.height == 2
    assert lost["status"].unique().to_list() == ["not applicable"]
    assert "SIGSEGV" in lost["message"][0]


def test_an_estimate_writes_nothing_and_knows_what_is_done(photos: Path, tmp_path: Path) -> None:
    rules = suite("colour_wheel(90, red)", "mirror(h)")
    zones = "tests.engine.zones:painted"
    run("tests.toys:rectangles", suite("mirror(h)"), photos, tmp_path / "run", limit=1, zones=zones)
    before = sorted((p, p.stat().st_mtime_ns) for p in tmp_path.rglob("*"))
    found = estimate("tests.toys:rectangles", rules, photos, out=tmp_path / "run", zones=zones)
    assert sorted((p, p.stat().st_mtime_ns) for p in tmp_path.rglob("*")) == before
    assert (found.cases, found.keys, found.rows, found.done) == (4, 3, 12, 2)
    assert found.statuses == {"ok": 9}
    assert found.seconds is not None and found.seconds > 0


def test_every_object_is_a_target_and_inventions_belong_to_the_whole(photos: Path, tmp_path: Path) -> None:
    one = run("tests.engine.zones:forgetful", suite("mirror(h)", "gamma(2)"), photos, tmp_path / "run")
    verdicts = one.verdicts()
    mirrored = verdicts.filter(rule="mirror(h) => detections", case="000.png")
    assert sorted(mirrored["target"]) == ["0", "1", "2"]
    assert mirrored.filter(pl.col("severity") > 0)["kind"].to_list() == ["lost"]
    darker = verdicts.filter(rule="gamma(2) => detections", case="000.png", target="whole")
    assert darker.select("severity", "kind").row(0) == (1.0, "invented")


def test_draws_and_repeats_are_predicted_and_voted_on(photos: Path, tmp_path: Path) -> None:
    rules = suite("noise(8) => poses(draws=3)", "mirror(h) => poses(repeats=2)", "identity")
    one = run("tests.toys:shaky", rules, photos, tmp_path / "run")
    counted = dict(one.predictions().filter(case="000.png").group_by("follow_up").len().iter_rows())
    assert counted == {"source": 2, "noise(8)": 3, "mirror(h)": 2, "identity": 1}
    verdicts = one.verdicts()
    assert verdicts.group_by("case", "target", "rule").len()["len"].max() == 1
    assert largest(verdicts.filter(rule="identity => poses")) > 0, "identity measures the system's own noise"


def test_repeats_of_a_deterministic_system_collapse(photos: Path, tmp_path: Path) -> None:
    one = run("tests.toys:steady", suite("mirror(h) => poses(repeats=5)"), photos, tmp_path / "run")
    assert one.predictions()["repeat"].max() == 0
    assert largest(one.verdicts()) < 1e-6


def test_draws_of_a_transformation_without_chance_collapse() -> None:
    plan = make_plan(bound_rules(["gamma(0.5) => poses(draws=9)"], "poses"), seed=0, deterministic=True)
    assert plan.keys() == [("source", 0, 0), ("gamma(0.5)", 0, 0)]


def test_rules_that_share_a_transformation_share_predictions() -> None:
    rules = bound_rules(["noise(8) => poses(draws=2)", "noise(8) => poses(draws=5)"], "poses")
    assert len(make_plan(rules, seed=0, deterministic=True).keys()) == 1 + 5


@pytest.mark.parametrize("system", ["tests.toys:shaky", "tests.toys:rectangles"])
def test_results_do_not_depend_on_order_or_workers(photos: Path, tmp_path: Path, system: str) -> None:
    kind = "poses" if "shaky" in system else "detections"
    rules = suite(f"noise(20) => {kind}(draws=2)", "mirror(h)")
    runs = [run(system, rules, photos, tmp_path / f"run{workers}", workers=workers) for workers in (0, 2)]
    parted = run(system, suite("mirror(h)"), photos, tmp_path / "later", limit=2)
    parted = run(system, rules, photos, tmp_path / "later")
    frames = [one.predictions().drop("seconds").sort(KEY) for one in (*runs, parted)]
    for other in frames[1:]:
        assert frames[0].equals(other)


def test_zones_are_provided_once_stored_and_not_asked_again(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run("tests.toys:rectangles", suite("colour_wheel(90, red)"), photos, out, zones="tests.engine.zones:painted")
    store = Store(out)
    assert store.needs().select("case", "need", "status").unique().height == 4
    before = store.state("needs")
    run(
        "tests.toys:rectangles",
        suite("colour_wheel(90, red)", "colour_fill((0, 0, 0), red)"),
        photos,
        out,
        zones="tests.engine.zones:painted",
    )
    assert store.state("needs") == before
    row = store.needs().row(0, named=True)
    zones = store.need_value(row)
    assert zones.mask("red").any()  # type: ignore[attr-defined]


def test_zones_of_annotations_keep_the_names_of_their_own_picture(tmp_path: Path) -> None:
    def cases() -> Iterator[instar.Case]:
        for name in ("dog", "cat"):
            truth = instar.Detections.from_xyxy([[10, 10, 60, 60]], [name])
            yield instar.Case(name, input=scene(1), truth=truth)

    pets = instar.Dataset("pets", "", cases, truth="detections")
    run("tests.toys:rectangles", suite("filtered(gamma(0.5), object)"), pets, tmp_path / "run", zones="boxes")
    store = Store(tmp_path / "run")
    names = {row["case"]: set(store.need_value(row).names) for row in store.needs().iter_rows(named=True)}  # type: ignore[attr-defined]
    assert names == {"dog": {"dog", "object", "background"}, "cat": {"cat", "object", "background"}}


def test_a_zone_that_cannot_be_had_is_not_applicable_and_says_what_to_do(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    one = run("tests.toys:rectangles", suite("colour_wheel(90, red)", "mirror(h)"), photos, out, zones="none")
    row = one.rates().filter(pl.col("rule").str.contains("filtered")).row(0, named=True)
    assert (row["judged"], row["not_applicable"], row["rate"]) == (0, 4, None)
    assert "instar models pull" in one.verdicts().filter(status="not applicable")["reason"][0]
    # once somebody provides them, the pairs are open again, and no key appears twice
    again = run(
        "tests.toys:rectangles",
        suite("colour_wheel(90, red)", "mirror(h)"),
        photos,
        out,
        zones="tests.engine.zones:painted",
    )
    assert again.outcome is not None and again.outcome.fresh == 4
    assert keys(again.store).is_unique().all()
    assert again.rates()["not_applicable"].sum() == 0


def test_a_zone_that_the_segmenter_does_not_know_or_find(photos: Path, tmp_path: Path) -> None:
    one = run(
        "tests.toys:rectangles",
        suite("colour_wheel(90, hair)", "colour_wheel(90, empty)"),
        photos,
        tmp_path / "run",
        zones="tests.engine.zones:painted",
    )
    reasons = dict(one.verdicts().select("rule", "reason").unique().iter_rows())
    assert "have no 'hair'" in reasons["filtered(colour_wheel(90), hair) => detections"]
    assert "no empty in this image" in reasons["filtered(colour_wheel(90), empty) => detections"]


@pytest.mark.parametrize(("how", "workers"), [("masks", 1), ("boxes", 0)])
def test_zones_from_annotated_objects(tmp_path: Path, how: str, workers: int) -> None:
    def cases() -> Iterator[instar.Case]:
        for number in range(3):
            image = scene(number)
            found = rectangles(image.pixels)
            masks = np.zeros((len(found), *image.pixels.shape[:2]), bool)
            for mask, box in zip(masks, found.boxes.astype(int), strict=True):
                mask[box[1] : box[3], box[0] : box[2]] = True
            truth = instar.Detections.from_xyxy(found.boxes, found.labels, ids=["a", "b", "c"], masks=masks)
            yield instar.Case(f"{number}", input=image, truth=truth)

    data = instar.Dataset("memory", str(tmp_path), cases, truth="detections")
    rules = suite("colour_fill((220, 30, 30), blue)", "colour_wheel(90, background)", "gamma(2, cat)")
    one = instar.run("tests.toys:rectangles", rules, data, out=tmp_path / "run", workers=workers, zones=how)
    rates = {row["rule"].split(" =>")[0]: row for row in one.rates(0.5).to_dicts()}
    assert rates["filtered(colour_fill((220, 30, 30)), blue)"]["rate"] == 1, "blue painted red is found as red"
    assert rates["filtered(colour_wheel(90), background)"]["rate"] == 0
    assert rates["filtered(gamma(2), cat)"]["not_applicable"] == 3
    stored = one.cases().row(0, named=True)
    assert stored["truth_ids"] == ["a", "b", "c"]
    assert one.manifest.truth is not None and one.manifest.truth["kind"] == "detections"


def test_another_judging_asks_the_same_predictions(photos: Path, tmp_path: Path) -> None:
    one = run("tests.toys:shaky", suite("mirror(h)"), photos, tmp_path / "run")
    before = one.store.state("predictions")
    judging = one.judge(aggregate="max", normaliser="pixels")
    assert judging == "aggregate=max,normaliser=pixels"
    assert largest(one.verdicts(judging)) > largest(one.verdicts())
    assert one.store.state("predictions") == before
    assert sorted(one.store.judgings()) == [judging, "default"]
    with pytest.raises(ValueError, match="did you mean 'aggregate'"):
        one.judge(agregate="max")
    with pytest.raises(ValueError, match="part, box, image, pixels"):
        one.judge(normaliser="shoe")


def test_the_same_again_continues_or_has_nothing_to_do(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = run("tests.toys:steady", suite("mirror(h)"), photos, out, limit=2)
    assert first.outcome is not None and first.outcome.fresh == 4
    second = run("tests.toys:steady", suite("mirror(h)", "gamma(0.5)"), photos, out)
    assert second.outcome is not None and second.outcome.fresh == 2 * 1 + 2 * 3
    third = run("tests.toys:steady", suite("mirror(h)"), photos, out)
    assert third.outcome is not None and third.outcome.fresh == 0
    assert keys(third.store).is_unique().all()


def test_a_run_of_another_system_seed_or_provider_refuses_politely(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    rules = suite("colour_wheel(90, red)")
    zones = "tests.engine.zones:painted"  # named each time: no folder has code loaded
    run("tests.toys:steady", rules, photos, out, zones=zones)
    with pytest.raises(Conflict, match=r"is a run of tests\.toys:steady, not of tests\.toys:shaky; start over"):
        run("tests.toys:shaky", rules, photos, out, zones=zones)
    with pytest.raises(Conflict, match="seed 0, not 7"):
        run("tests.toys:steady", rules, photos, out, seed=7, zones=zones)
    with pytest.raises(Conflict, match="has its zones from"):
        run("tests.toys:steady", rules, photos, out, zones="tests.engine.zones:striped")


def test_a_relation_over_many_cases_is_judged_from_its_levels(photos: Path, tmp_path: Path) -> None:
    rules = suite("noise(10..14) => correlation(severity)")
    one = run("tests.toys:shaky", rules, photos, tmp_path / "run")
    verdicts = one.verdicts()
    assert verdicts.filter(pl.col("rule").str.starts_with("noise(12) =>")).height == 4, "levels are ordinary verdicts"
    group = verdicts.filter(pl.col("case").is_null()).row(0, named=True)
    assert group["rule"] == "noise(10..14) => correlation"
    assert group["target"] is None and group["cases"] == 4
    assert group["low"] <= group["r"] <= group["high"]
    assert group["severity"] == pytest.approx(max(0, 0.9 - group["r"])), "severity must rise with the level"


def test_levels_of_one_family_share_their_random_numbers() -> None:
    image = scene(1)
    deviations = []
    for sigma in (4, 8):
        step = instar.transformation(f"noise({sigma})")
        seed = draw_seed(0, "a", step, 0)
        deviations.append(step(image, seed=seed)[0].pixels.astype(int) - image.pixels)
    middle = (image.pixels > 60) & (image.pixels < 200)
    assert np.corrcoef(deviations[0][middle], deviations[1][middle])[0, 1] > 0.98


def test_bad_files_are_rows_and_cost_nothing_else(photos: Path, tmp_path: Path) -> None:
    (photos / "broken.png").write_bytes((photos / "000.png").read_bytes()[:60])
    (photos / "empty.jpg").write_bytes(b"")
    one = run("tests.toys:steady", suite("mirror(h)"), photos, tmp_path / "run", workers=1)
    bad = one.cases().filter(pl.col("status") != "ok").sort("case")
    assert bad["case"].to_list() == ["broken.png", "empty.jpg"]
    assert "empty" in bad["message"][1]
    assert one.predictions().height == 8
    again = run("tests.toys:steady", suite("mirror(h)"), photos, tmp_path / "run")
    assert again.outcome is not None and again.outcome.fresh == 0 and again.outcome.unreadable == 2


def test_a_changed_file_is_noticed(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run("tests.toys:steady", suite("mirror(h)"), photos, out)
    (photos / "001.png").write_bytes((photos / "002.png").read_bytes())
    one = run("tests.toys:steady", suite("mirror(h)", "gamma(2)"), photos, out)
    assert one.outcome is not None
    assert [note for note in one.outcome.notes if "001.png" in note]
    assert one.predictions().filter(case="001.png").height == 2


def test_the_folder_alone_is_enough_to_judge(photos: Path, tmp_path: Path) -> None:
    run("tests.toys:rectangles", suite("mirror(h)"), photos, tmp_path / "run")
    moved = (tmp_path / "run").rename(tmp_path / "elsewhere")
    for file in photos.iterdir():
        file.unlink()
    one = instar.open_run(moved)
    one.judge(confidence=0.1)
    assert one.rates().height == 1


def test_the_manifest_says_what_was_run(photos: Path, tmp_path: Path) -> None:
    run("tests.toys:drifting", suite("mirror(h)"), photos, tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["system"]["deterministic"] is False
    assert manifest["system"]["seedable"] is False
    assert manifest["rules"] == ["mirror(h) => poses"]
    assert {"numpy", "polars"} <= manifest["packages"].keys()


def test_a_function_of_this_file_works_in_process(photos: Path, tmp_path: Path) -> None:
    def local(pixels: np.ndarray) -> instar.Detections:
        return instar.Detections.from_xyxy([], [])

    one = instar.run(local, suite("mirror(h)"), photos, out=tmp_path / "run")
    assert one.rates()["rate"].to_list() == [None], "nothing found in either image is not judged"
    with pytest.raises(ValueError, match="workers=0"):
        instar.run(local, suite("mirror(h)"), photos, out=tmp_path / "other", workers=2)
