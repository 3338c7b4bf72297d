"""Runs made of recorded outputs: the same verdicts as a run, tables of every shape, and what is wrong with others."""

from __future__ import annotations

import csv
import json
import shutil
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import instar
from instar.case import Case
from instar.datasets import Dataset, dataset
from instar.engine import Conflict, Outcome
from instar.exchange.export import export_inputs
from instar.exchange.recorded import import_outputs
from instar.image import read_image
from instar.outputs.forecast import Forecast
from instar.report import draw_pairs, load_pair, write_report
from instar.scene import Scene, decode_classes
from instar.store import KEY, Busy, Manifest, Store, SystemInfo, repair
from instar.suites import suite
from instar.viewer.pictures import Pictures
from tests.engine.test_scenes import on_files, system
from tests.missing import shared
from tests.store.test_whole import flip
from tests.toys import rectangles, scene, shaky, write_scenes

POINTS = np.linspace([20.0, 30.0], [90.0, 80.0], 17)


def imported(table: Path | Sequence[Path], out: Path, **more: Any) -> Outcome:
    rules = more.pop("suite", None)
    return import_outputs(
        [table] if isinstance(table, Path) else table, Store(out), suite=None if rules is None else suite(rules), **more
    )


def jsonl(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def as_csv(path: Path, *lines: dict[str, Any]) -> Path:
    """Lists and objects as JSON in their cells."""
    names = list(dict.fromkeys(name for line in lines for name in line))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        for line in lines:
            writer.writerow(
                {
                    name: value if isinstance(value, str) else json.dumps(value)
                    for name, value in line.items()
                    if value is not None
                }
            )
    return path


def found(case: str, follow_up: str, *boxes: list[float], **more: Any) -> dict[str, Any]:
    """A line of a table of detections, in frames of 100 × 50."""
    return {
        "case": case,
        "follow_up": follow_up,
        "boxes": list(boxes),
        "labels": ["dog"] * len(boxes),
        "width": 100,
        "height": 50,
        **more,
    }


def said(case: str, follow_up: str, caption: str, **more: Any) -> dict[str, Any]:
    return {"case": case, "follow_up": follow_up, "caption": caption, **more}


LEFT, RIGHT = [10.0, 10.0, 30.0, 40.0], [70.0, 10.0, 90.0, 40.0]
PAIR = (found("a", "source", LEFT), found("a", "mirror(h)", RIGHT))


# --- the same as a run -----------------------------------------------------------------------------


def answered(export: Path, path: Path, answer: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]) -> Path:
    """A table of what somebody says of the exported files, who knows nothing else of them than their lines."""
    lines = [json.loads(line) for line in (export / "inputs.jsonl").read_text().splitlines()]
    told = [
        {**{name: line[name] for name in KEY}, **answer(line, {"path": export / line["file"]})}
        for line in lines
        if line["status"] == "ok"
    ]
    np.random.default_rng(1).shuffle(told)
    return jsonl(path, *told)


def poses_said(line: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    poses = shaky(read_image(about["path"]).pixels, line["seed"])
    points = np.where(np.isnan(poses.points), np.array(None), poses.points.astype(object)).tolist()
    return {"points": points, "scores": poses.scores.tolist()}


def boxes_said(line: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    answer = rectangles(read_image(about["path"]).pixels)
    return {"boxes": answer.boxes.tolist(), "labels": list(answer.labels), "scores": answer.scores.tolist()}


def ahead(scene: Scene, seed: int) -> tuple[list[Any], dict[str, Any]]:
    """Five ways straight on, and cells that the person may be in: a predictor that is as good as this test needs."""
    rng = np.random.default_rng(seed)
    step = np.diff(scene.past, axis=0).mean(0) + rng.normal(0, 0.5, (5, 1, 2))
    futures = scene.position + step * np.arange(1, scene.steps + 1)[:, None]
    road = scene.mask("road")[::4, ::4]
    width, height = scene.size
    cells = np.where(road, 1, 5) + rng.integers(0, 2, road.shape)
    return futures.tolist(), {"probability": cells.tolist(), "box": [0, 0, width, height]}


def walking(scene: Scene, seed: int) -> Forecast:
    futures, heat = ahead(scene, seed)
    return Forecast.from_array(futures, heat["probability"], box=heat["box"])


def futures_said(line: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    told = json.loads(about["path"].read_text())
    futures, heat = ahead(
        Scene(
            decode_classes(b64decode(told["classes"])),
            tuple(told["names"]),
            told["past"],
            told["steps"],
            told["rate"],
            told["metres_per_pixel"],
        ),
        line["seed"],
    )
    return {"futures": futures, "map": heat}


def photographs(folder: Path) -> Dataset:
    write_scenes(folder, 3)
    (folder / "broken.png").write_bytes(b"no picture")
    return dataset(folder)


def annotated(folder: Path) -> Dataset:
    def cases() -> Iterator[Case]:
        for number in range(3):
            picture = scene(number)
            yield Case(f"é {number}", input=picture, truth=rectangles(picture.pixels), attributes={"weather": "dry"})

    return Dataset("annotated", "", cases, truth="detections")


Answer = Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]
ROUNDS: dict[str, tuple[Any, str, Callable[[Path], Dataset], Answer, dict[str, Any]]] = {
    "poses": (
        shaky,
        "mirror(h) => poses(repeats=2) + noise(20) => poses(draws=3) + rotate90(1) + stretch(1, 0.8) + "
        "colour_wheel(90, red) + colour_wheel(90, hair)",
        photographs,
        poses_said,
        {"skeleton": "coco-17"},
    ),
    "detections": (
        rectangles,
        "mirror(h) + rotation(5) + erase(0.95) => presence(gone) + object_noise(0.5, 40) => "
        "presence(kept) + colour_wheel(90)",
        annotated,
        boxes_said,
        {},
    ),
    "forecast": (
        system(walking),
        "mirror(h) => wvc(sources=4, repeats=2) + rescale(1.2) => hvc + "
        "class_change(road, pavement) => direction(increase, sources=4)",
        lambda folder: on_files(folder, 3),
        futures_said,
        {},
    ),
}


@pytest.mark.parametrize("kind", ROUNDS)
def test_a_run_and_answers_to_its_export_have_the_same_verdicts(kind: str, tmp_path: Path) -> None:
    tested, rules, data, answer, more = ROUNDS[kind]
    zones = "tests.engine.zones:painted"
    run = instar.run(tested, rules, data(tmp_path / "data"), out=tmp_path / "run", workers=0, seed=5, zones=zones)
    export_inputs(
        data(tmp_path / "data"),
        suite(rules),
        tmp_path / "export",
        kind=kind,
        seed=5,
        stochastic=kind != "detections",
        providers={"zones": zones},
    )
    table = answered(tmp_path / "export", tmp_path / "answers.jsonl", answer)
    imported(table, tmp_path / "recorded", export=tmp_path / "export", **more)
    again = instar.open_run(tmp_path / "recorded")

    order = ["case", "target", "rule"]
    expected, actual = run.verdicts().sort(order), again.verdicts().sort(order)
    assert expected.select(*order, "severity", "kind", "status", "reason").equals(
        actual.select(*order, "severity", "kind", "status", "reason")
    )
    assert expected["severity"].drop_nulls().len() > 5
    whole = [one.store.whole(one.predictions()).drop("seconds").sort(KEY) for one in (run, again)]
    assert whole[0].equals(whole[1])
    for name in ("case", "status", "message", "width", "height", "track", "attributes", "properties"):
        assert run.cases().sort("case")[name].equals(again.cases().sort("case")[name]), name
    assert (
        run.store.needs()
        .select("case", "need", "hash")
        .sort("case")
        .equals(again.store.needs().select("case", "need", "hash").sort("case"))
    )
    if kind == "poses":  # the others are in memory
        for verdict in again.worst(3).iter_rows(named=True):
            first, second = (load_pair(one, verdict).follow_up.image.pixels for one in (run, again))
            assert np.array_equal(first, second)


def test_what_was_in_memory_is_drawn_from_the_export(tmp_path: Path) -> None:
    export_inputs(annotated(tmp_path), suite("mirror(h) + recorded(paste)"), tmp_path / "export", kind="detections")
    table = answered(tmp_path / "export", tmp_path / "answers.jsonl", boxes_said)
    imported(table, tmp_path / "run", export=tmp_path / "export")
    run = instar.open_run(tmp_path / "run")
    verdict = {"case": "é 0", "rule": "mirror(h) => detections", "target": "0", "severity": 0.0}
    pair = load_pair(run, verdict)
    assert np.array_equal(pair.source.image.pixels, scene(0).pixels)
    assert np.array_equal(pair.follow_up.image.pixels, scene(0).pixels[:, ::-1])


# --- tables of every shape -------------------------------------------------------------------------


@pytest.mark.parametrize("write", [jsonl, as_csv])
def test_a_table_of_detections_is_a_run(write: Callable[..., Path], tmp_path: Path) -> None:
    lines = [
        *PAIR,
        found("b", "mirror(h)"),
        found("b", "source", LEFT, scores=[0.75]),
        {"case": "c", "follow_up": "source", "status": "timeout", "message": "30 s", "width": 100, "height": 50},
        found("c", "mirror(h)", LEFT),
    ]
    outcome = imported(write(tmp_path / "answers", *lines), tmp_path / "run", name="our detector")
    run = instar.open_run(tmp_path / "run")
    assert outcome.statuses == {"ok": 5, "timeout": 1} and outcome.fresh == 6
    verdicts = {row["case"]: row for row in run.verdicts().iter_rows(named=True)}
    assert verdicts["a"]["severity"] == 0, "the warp of mirror(h) is known from the size of the source"
    assert (verdicts["b"]["severity"], verdicts["b"]["kind"]) == (1.0, "lost")
    assert (verdicts["c"]["status"], verdicts["c"]["reason"]) == ("timeout", "the source: 30 s")
    system, recorded = run.manifest.system, run.manifest.recorded
    assert system == SystemInfo(
        "our detector", "detections", system.fingerprint, deterministic=True, seedable=False, takes="image"
    )
    assert recorded is not None and recorded.inputs is False
    assert [(one.name, one.rows) for one in recorded.tables] == [("answers", 6)]


def test_csv_and_jsonl_say_the_same(tmp_path: Path) -> None:
    lines = [
        said("7", "source", "a dog"),
        said(
            "7",
            "recorded(paste)",
            'a dog, "2" cats\nand 1e5 birds',
            score=0.5,
            added=["cat"],
            facts={"x": 1},
            weather="wet",
            level=3,
        ),
        said("007", "source", "3"),
    ]
    imported(as_csv(tmp_path / "t.csv", *lines), tmp_path / "one")
    imported(jsonl(tmp_path / "t.jsonl", *lines), tmp_path / "two")
    runs = [instar.open_run(tmp_path / name) for name in ("one", "two")]
    frames = [run.predictions().sort(KEY) for run in runs]
    assert frames[0].equals(frames[1])
    assert frames[0].filter(pl.col("follow_up") != "source").select("caption", "score", "added", "facts").row(0) == (
        'a dog, "2" cats and 1e5 birds',
        0.5,
        ["cat"],
        '{"x": 1}',
    )
    assert dict(runs[0].cases().select("case", "attributes").iter_rows()) == {
        "7": '{"weather": "wet", "level": 3}',
        "007": "{}",
    }


def test_the_change_of_a_follow_up_may_stand_in_the_table(tmp_path: Path) -> None:
    half = [[0.5, 0, 0], [0, 0.5, 0], [0, 0, 1]]
    moved = found(
        "a",
        "recorded(thumbnail)",
        [5, 5, 15, 20],
        warp=half,
        width=50,
        height=25,
        regions=[[0, 0, 5, 5]],
        added="dog",
        removed=["cat", "cow"],
    )
    imported(jsonl(tmp_path / "t", found("a", "source", LEFT), moved), tmp_path / "run")
    run = instar.open_run(tmp_path / "run")
    row = run.predictions().filter(follow_up="recorded(thumbnail)").row(0, named=True)
    assert (row["width"], row["warp"]) == (50, [0.5, 0, 0, 0, 0.5, 0, 0, 0, 1])
    assert (row["regions"], row["added"], row["removed"]) == ([0, 0, 5, 5], ["dog"], ["cat", "cow"])
    assert run.verdicts()["severity"].to_list() == [0.0]


def test_recorded_poses_with_absent_landmarks_and_visibility(tmp_path: Path) -> None:
    seen = [[*point, 0.5] for point in POINTS.tolist()]
    seen[3], seen[4] = None, [None, None, 0.5]  # type: ignore[call-overload]
    nobody: list[Any] = []
    lines = [
        {"case": "a", "follow_up": "source", "points": seen, "width": 100, "height": 100},
        {"case": "a", "follow_up": "gamma(0.5)", "points": [seen], "width": 100, "height": 100},
        {"case": "a", "follow_up": "gamma(2)", "points": nobody, "width": 100, "height": 100},
    ]
    imported(jsonl(tmp_path / "t", *lines), tmp_path / "run", skeleton="coco-17")
    run = instar.open_run(tmp_path / "run")
    row = run.predictions().filter(follow_up="source").row(0, named=True)
    assert run.manifest.output is not None
    kept = instar.Poses.from_row(row, run.manifest.output)
    assert np.isnan(kept.points[0, [3, 4]]).all() and np.allclose(kept.points[0, 5:], POINTS[5:])
    assert kept.visibility[0, 5] == 0.5
    assert dict(run.verdicts().select("rule", "severity").iter_rows()) == {
        "gamma(0.5) => poses": 0.0,
        "gamma(2) => poses": np.inf,
    }


def test_draws_and_repeats_make_the_rule_that_uses_them(tmp_path: Path) -> None:
    lines = [found("a", "source", LEFT, repeat=repeat) for repeat in range(2)]
    lines += [found("a", "recorded(paste)", LEFT if draw else RIGHT, draw=draw) for draw in range(3)]
    imported(jsonl(tmp_path / "t", *lines), tmp_path / "run")
    run = instar.open_run(tmp_path / "run")
    assert run.manifest.rules == ("recorded(paste) => detections(draws=3, repeats=2)",)
    assert run.manifest.system.deterministic is False
    assert run.verdicts().filter(target="0")["severity"].to_list() == [0.0], "two of three draws are right"


def test_several_tables_are_one_run(tmp_path: Path) -> None:
    tables = [jsonl(tmp_path / "sources.jsonl", PAIR[0]), as_csv(tmp_path / "rest.csv", PAIR[1])]
    imported(tables, tmp_path / "run")
    assert instar.open_run(tmp_path / "run").verdicts()["severity"].to_list() == [0.0]


def test_a_dataset_gives_size_truth_and_pictures(tmp_path: Path) -> None:
    data, photos = dataset(write_scenes(tmp_path / "photos", 2)), tmp_path / "photos"
    lines = [
        {"case": case, "follow_up": name, **boxes_said({}, {"path": photos / case})}
        for case in ("000.png", "001.png")
        for name in ("source", "gamma(0.99)")
    ]
    imported(jsonl(tmp_path / "t", *lines), tmp_path / "run", dataset=data)
    run = instar.open_run(tmp_path / "run")
    assert run.verdicts()["severity"].max() == 0
    assert run.cases().select("width", "height").row(0) == (160, 120)
    drawn = [path for path, _ in draw_pairs(run, run.verdicts().head(1), tmp_path / "pictures")]
    assert drawn[0] is not None and drawn[0].is_file()
    with pytest.raises(ValueError, match=r"line 1: .* has no case 'x'"):
        imported(jsonl(tmp_path / "t", found("x", "source")), tmp_path / "other", dataset=data)
    with pytest.raises(ValueError, match="100×50 here, and 160×120 in the dataset"):
        imported(jsonl(tmp_path / "t", found("000.png", "source")), tmp_path / "other", dataset=data)


def test_other_columns_are_attributes_where_they_belong_to_the_case(tmp_path: Path) -> None:
    lines = [{**line, "weather": "wet", "attempt": number} for number, line in enumerate(PAIR)]
    outcome = imported(jsonl(tmp_path / "t", *lines), tmp_path / "run")
    assert instar.open_run(tmp_path / "run").cases()["attributes"].to_list() == ['{"weather": "wet"}']
    assert any("attributes of cases: weather" in note for note in outcome.notes)
    assert any("left out" in note and "attempt" in note for note in outcome.notes)


def test_truth_in_the_table_is_the_truth_of_the_case(tmp_path: Path) -> None:
    lines = [{**PAIR[0], "truth_boxes": [LEFT], "truth_labels": ["dog"]}, PAIR[1]]
    imported(jsonl(tmp_path / "t", *lines), tmp_path / "run")
    run = instar.open_run(tmp_path / "run")
    assert run.manifest.truth == {"kind": "detections"}
    assert run.cases().select("truth_boxes", "truth_labels").row(0) == (LEFT, ["dog"])
    with pytest.raises(ValueError, match=r"t, line 1: the truth of case 'a': it has no truth_labels"):
        imported(jsonl(tmp_path / "t", {**PAIR[0], "truth_boxes": [LEFT]}), tmp_path / "other")


# --- pairs, and a second table ---------------------------------------------------------------------


def golden(name: str) -> Path:
    return shared(f"golden/meta-ic/{name}.jsonl")


COLUMNS = {
    "case": "pair",
    "source_caption": "source",
    "caption": "follow_up",
    "added": "inserted",
    "truth_caption": "labels",
    "facts.reported": "reported",
}


def test_both_logs_of_a_captioner_become_two_follow_ups_of_the_same_cases(tmp_path: Path) -> None:
    first = imported(golden("overlap-0"), tmp_path / "run", columns=COLUMNS, follow_up="recorded(overlap-0)")
    second = imported(golden("overlap-15"), tmp_path / "run", columns=COLUMNS, follow_up="recorded(overlap-15)")
    assert (first.fresh, second.fresh, second.cases) == (2000, 1000, 1000)
    run = instar.open_run(tmp_path / "run")
    rows = run.predictions()
    assert dict(rows.group_by("follow_up").len().iter_rows()) == {
        "source": 1000,
        "recorded(overlap-0)": 1000,
        "recorded(overlap-15)": 1000,
    }
    assert rows.select(KEY).is_unique().all()
    line = json.loads(golden("overlap-15").read_text().splitlines()[2])
    mine = rows.filter(case="3", follow_up="recorded(overlap-15)").row(0, named=True)
    assert (mine["caption"], mine["added"], json.loads(mine["facts"])) == (
        line["follow_up"],
        [line["inserted"]],
        {"reported": line["reported"]},
    )
    case = run.cases().filter(case="3").row(0, named=True)
    assert case["truth_caption"].splitlines() == [" ".join(label.split()) for label in line["labels"]]
    assert json.loads(case["attributes"]) == {"background": line["background"]}
    assert run.manifest.recorded is not None
    assert [table.name for table in run.manifest.recorded.tables] == ["overlap-0.jsonl", "overlap-15.jsonl"]


def pair(case: str, source: str, caption: str, **more: Any) -> dict[str, Any]:
    return {"case": case, "source_caption": source, "caption": caption, "follow_up": "recorded(paste)", **more}


def test_the_source_of_pairs_may_be_said_again_but_not_otherwise(tmp_path: Path) -> None:
    lines = [pair("a", "a dog", "a dog and a cat", draw=0), pair("a", "a dog", "two dogs", draw=1)]
    imported(jsonl(tmp_path / "t", *lines), tmp_path / "run")
    assert instar.open_run(tmp_path / "run").predictions().height == 3
    with pytest.raises(
        ValueError,
        match=r"t, line 2: source of case 'a' is on line 1 of t already, and this line says "
        "something else of the source",
    ):
        imported(jsonl(tmp_path / "t", lines[0], pair("a", "a cow", "two dogs", draw=1)), tmp_path / "other")
    with pytest.raises(ValueError, match=r"t, line 1: .*run holds another output for source of case 'a'"):
        imported(jsonl(tmp_path / "t", pair("a", "a cow", "x", draw=2)), tmp_path / "run")
    assert instar.open_run(tmp_path / "run").predictions().height == 3


def test_a_key_that_the_run_holds_is_named_and_nothing_is_added(tmp_path: Path) -> None:
    imported(jsonl(tmp_path / "t", *PAIR), tmp_path / "run")
    before = sorted((path, path.stat().st_mtime_ns) for path in (tmp_path / "run").rglob("*"))
    more = jsonl(tmp_path / "more", found("b", "source", LEFT), found("a", "mirror(h)", LEFT))
    with pytest.raises(ValueError, match=r"more, line 2: .*run holds mirror\(h\) of case 'a' already"):
        imported(more, tmp_path / "run")
    assert sorted((path, path.stat().st_mtime_ns) for path in (tmp_path / "run").rglob("*")) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["more", "run", "t"]


def test_a_run_grows_by_cases_follow_ups_and_rules(tmp_path: Path) -> None:
    imported(jsonl(tmp_path / "t", *PAIR), tmp_path / "run")
    first = instar.open_run(tmp_path / "run").manifest.system.fingerprint
    imported(jsonl(tmp_path / "u", found("a", "gamma(2)", RIGHT), found("b", "source", LEFT)), tmp_path / "run")
    run = instar.open_run(tmp_path / "run")
    assert run.manifest.rules == ("mirror(h) => detections", "gamma(2) => detections")
    assert run.manifest.system.fingerprint != first
    assert dict(run.verdicts().filter(target="0").select("rule", "severity").iter_rows()) == {
        "mirror(h) => detections": 0.0,
        "gamma(2) => detections": 1.0,
    }
    imported([], tmp_path / "run", suite="[mirror(h), gamma(2)] => correlation")
    assert len(run.manifest.rules) == 3 and run.over_cases().height == 1


def test_an_import_that_broke_off_leaves_the_run_as_it_was_and_can_be_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, table = Store.append, jsonl(tmp_path / "t", *PAIR)

    def full(store: Store, name: str, frame: pl.DataFrame) -> None:
        if name == "predictions":
            raise OSError(28, "No space left on device")
        real(store, name, frame)

    with monkeypatch.context() as broken:
        broken.setattr(Store, "append", full)
        with pytest.raises(OSError, match="No space"):
            imported(table, tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["t"]
    imported(table, tmp_path / "run")
    more = jsonl(tmp_path / "u", found("b", "source", LEFT, weather="wet"), found("b", "gamma(2)", LEFT))
    scratch = tmp_path / ".run.import" / "predictions"  # as a killed import leaves it
    shutil.copytree(tmp_path / "run" / "predictions", scratch)

    def killed(store: Store, name: str, frame: pl.DataFrame) -> None:
        if name == "predictions" and store.folder.name == "run":
            raise KeyboardInterrupt
        real(store, name, frame)

    with monkeypatch.context() as broken:
        broken.setattr(Store, "append", killed)
        with pytest.raises(KeyboardInterrupt):
            imported(more, tmp_path / "run")
    assert instar.open_run(tmp_path / "run").predictions().height == 2
    imported(more, tmp_path / "run")
    run = instar.open_run(tmp_path / "run")
    assert run.predictions().height == 4 and run.cases()["case"].sort().to_list() == ["a", "b"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "t", "u"]


def grown(tmp_path: Path) -> tuple[Path, Path]:
    """A recorded run, and a table with more cases and another follow-up for it."""
    imported(jsonl(tmp_path / "t", *PAIR), tmp_path / "run")
    more = jsonl(tmp_path / "u", found("b", "source", LEFT, weather="wet"), found("b", "gamma(2)", LEFT))
    return tmp_path / "run", more


def content(run: Path) -> tuple[Any, ...]:
    """All that a recorded run says, whenever it was written."""
    one = instar.open_run(run)
    manifest = one.manifest
    rows = (one.predictions(), one.cases(), one.verdicts())
    return (manifest.rules, manifest.recorded, manifest.system, *(frame.sort(pl.all()).rows() for frame in rows))


@pytest.mark.parametrize("moment", ["before the predictions", "before the manifest"])
def test_a_killed_import_claims_nothing_and_is_completed_by_giving_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    (tmp_path / "undisturbed").mkdir()
    whole, more = grown(tmp_path / "undisturbed")
    imported(more, whole)
    run, more = grown(tmp_path)
    before, append, write = Store(run).manifest(), Store.append, Store.write_manifest

    def appended(store: Store, table: str, frame: pl.DataFrame) -> None:
        if store.folder == run and table == "predictions" and moment == "before the predictions":
            raise KeyboardInterrupt
        append(store, table, frame)

    def written(store: Store, manifest: Manifest) -> None:
        if store.folder == run and moment == "before the manifest":
            raise KeyboardInterrupt
        write(store, manifest)

    with monkeypatch.context() as broken:
        broken.setattr(Store, "append", appended)
        broken.setattr(Store, "write_manifest", written)
        with pytest.raises(KeyboardInterrupt):
            imported(more, run)
    assert Store(run).manifest() == before, "it does not speak of what may not be there"
    imported(more, run)
    assert content(run) == content(whole)
    with pytest.raises(ValueError, match="holds source of case 'b' already"):
        imported(more, run)


@pytest.mark.parametrize("table", ["predictions", "cases"])
def test_what_a_recorded_run_lost_is_imported_again(tmp_path: Path, table: str) -> None:
    run, more = grown(tmp_path)
    imported(more, run)
    whole = content(run)
    flip(max((run / table).glob("*.parquet")))
    (lost,) = repair(Store(run))
    assert "import the same tables again" in lost.content
    imported(more, run)
    assert content(run) == whole


def test_a_folder_of_the_users_beside_the_run_is_left_alone(tmp_path: Path) -> None:
    """An import prepares its run in a hidden folder beside it."""
    users = tmp_path / ".run.import" / "cases" / "mine.txt"
    users.parent.mkdir(parents=True)
    (tmp_path / ".run.import" / "notes.txt").touch()
    users.touch()
    with pytest.raises(Conflict, match=r"\.run\.import is where an import prepares its run, and it holds notes\.txt"):
        imported(jsonl(tmp_path / "t", *PAIR), tmp_path / "run")
    assert users.exists()


def test_other_outputs_do_not_go_into_a_run(tmp_path: Path) -> None:
    photos = write_scenes(tmp_path / "photos", 1)
    instar.run(rectangles, "mirror(h)", photos, out=tmp_path / "asked", workers=0)
    with pytest.raises(Conflict, match="which was asked itself"):
        imported(jsonl(tmp_path / "t", *PAIR), tmp_path / "asked")
    imported(jsonl(tmp_path / "t", *PAIR), tmp_path / "run")
    with pytest.raises(Conflict, match="kind says caption, the run says detections"):
        imported(jsonl(tmp_path / "t", said("b", "source", "a dog")), tmp_path / "run", kind="caption")
    with pytest.raises(Conflict, match="is a run of t, not of"):
        instar.run(rectangles, "mirror(h)", photos, out=tmp_path / "run", workers=0)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    with pytest.raises(Conflict, match="holds no run"):
        imported(jsonl(tmp_path / "t", *PAIR), tmp_path / "notes")
    with Store(tmp_path / "run").lock(), pytest.raises(Busy):
        imported(jsonl(tmp_path / "t", found("b", "source")), tmp_path / "run")


# --- what is wrong with a table --------------------------------------------------------------------

BAD_LINES: list[tuple[dict[str, Any], str]] = [
    ({"case": None}, "it has no case"),
    ({"case": 1.5}, "case is 1.5; it takes a text"),
    ({"case": " "}, "case is empty"),
    ({"follow_up": None}, "it has no follow_up"),
    ({"follow_up": "miror(h)"}, "did you mean 'mirror'"),
    ({"follow_up": "paste"}, r"spelled recorded\(NAME\)"),
    ({"draw": -1}, "draw is -1; it takes a whole number from 0"),
    ({"repeat": "often"}, 'repeat is "often"; it takes a whole'),
    ({"follow_up": "source", "draw": 1}, "has no draws"),
    ({"boxes": None}, "it has no boxes; where there is no output, the column status says error, timeout"),
    ({"labels": None}, "it has no labels"),
    ({"boxes": "many"}, 'boxes is "many"; it takes boxes'),
    ({"boxes": [[1, 2, 3]]}, r"it takes boxes \[x0, y0, x1, y1\] in pixels \(any number × 4\)"),
    ({"boxes": [["1", "2", "3", "4"]]}, "it takes boxes"),
    ({"boxes": [[30, 10, 10, 40]]}, "x1 < x0"),
    ({"boxes": [[1, 2, 3, 1e999]]}, "line 3"),
    ({"labels": ["dog", "cow"]}, "1 boxes need as many labels"),
    ({"labels": [3]}, "one of labels is 3; it takes a text"),
    ({"scores": [2e308]}, "line 3"),
    ({"status": "fine"}, 'status is "fine"; it takes one of ok, error'),
    ({"status": "error"}, "and it has an output too"),
    ({"width": 0}, "width is 0; it takes a whole number from 1"),
    ({"warp": [1, 2, 3]}, "warp is .* it takes a matrix"),
    ({"warp": [0] * 9}, "singular"),
    ({"regions": [1, 2]}, "regions is"),
    ({"added": 3}, "added is 3; it takes a list"),
    ({"facts": [1]}, "facts is .* it takes an object"),
    ({"facts": {"a": [1]}}, "the fact a is"),
    ({"seconds": "long"}, "seconds is"),
]


@pytest.mark.parametrize(("wrong", "why"), BAD_LINES, ids=[str(wrong) for wrong, _ in BAD_LINES])
def test_a_wrong_line_is_named_and_nothing_remains(wrong: dict[str, Any], why: str, tmp_path: Path) -> None:
    lines = [found("a", "source", LEFT), found("b", "source", LEFT), {**found("b", "gamma(2)", LEFT), **wrong}]
    with pytest.raises(ValueError, match=why) as caught:
        imported(jsonl(tmp_path / "t.jsonl", *lines), tmp_path / "run")
    assert str(caught.value).startswith(f"{tmp_path / 't.jsonl'}, line 3: ")
    assert [path.name for path in tmp_path.iterdir()] == ["t.jsonl"]


BAD_FILES: list[tuple[bytes, str]] = [
    (b"", "t: the file is empty"),
    (b" \n\n", "t: the file is empty"),
    (b"case,follow_up,boxes,labels\n", "no lines besides its header"),
    (b"case,follow_up,boxes,labels\na,source\n", "line 2: it has 2 cells, the header has 4"),
    (b'case,follow_up,boxes,labels\na,source,"[],[]\n', "line 2: not CSV"),
    (b"case,case,boxes,labels\n", "two columns are called 'case'"),
    ("case,follow_up,boxes,labels\né,source,[],[]\n".encode("latin-1"), "line 2: it is not in UTF-8"),
    ("case,boxes\n".encode("utf-16"), "it is in UTF-16; save it in UTF-8"),
    (b'{"case": "a", "boxes": [], "labels": [], "follow_up": "source"}\n{"case": \n', "line 2: not a JSON object"),
    (b'{"case": "a", "boxes": [], "labels": [], "follow_up": "source"}\n[1]\n', "line 2: a line is a JSON object,"),
    (b'[{"case": "a"}]', "one JSON list; a table has one JSON object per line"),
    (b'{"case": "a", "boxes": [[NaN, 0, 1, 1]], "labels": ["x"], "follow_up": "source"}', "line 1: .*NaN is not JSON"),
    (b'{"case": "\\ud83d", "boxes": [], "labels": [], "follow_up": "source"}', "line 1: not a JSON object"),
    (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "line 1"),
    (b"name,result\na,b\n", r"t: its columns \(name, result\) say nothing"),
    (b"case,caption,boxes\na,b,[]\n", r"t: its columns .* or several things"),
    (b'case,follow_up,boxes,labels,width,height\na,source,"[[0,0,nan,5]]","[""x""]",9,9\n', "line 2: boxes is"),
]


@pytest.mark.parametrize(("content", "why"), BAD_FILES, ids=[why for _, why in BAD_FILES])
def test_a_file_that_is_no_table_is_refused(content: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(ValueError, match=why):
        imported(tmp_path / "t", tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


def test_files_as_spreadsheets_and_other_systems_write_them(tmp_path: Path) -> None:
    text = (
        ";case;follow_up;boxes;labels;width;height\r\n0;a;source;[];[];100.0;50\r\n\r\n1;a;mirror(h);[];[];100;50\r\n"
    )
    (tmp_path / "t").write_bytes(b"\xef\xbb\xbf" + text.encode())
    imported(tmp_path / "t", tmp_path / "run")
    assert instar.open_run(tmp_path / "run").verdicts()["reason"].to_list() == ["nothing was found in either image"]


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([*PAIR, PAIR[1]], r"line 3: mirror\(h\) of case 'a' is on line 2 of t already, and this line has the same"),
        ([PAIR[1]], r"line 1: mirror\(h\) of case 'a' has no source to be compared with; .* follow_up source"),
        ([{**PAIR[0], "repeat": 1}, PAIR[1]], "has no source"),
        (
            [found("a", "source", LEFT, width=None), PAIR[1]],
            "line 1: source of case 'a': the size of the source is not",
        ),
        (
            [PAIR[0], found("a", "erase(0.5)", LEFT)],
            r"line 2: erase\(0.5\) of case 'a': .* \(it needs objects\); give the",
        ),
        (
            [PAIR[0], found("a", "rotate90(1)", LEFT)],
            r"line 2: rotate90\(1\) of a source of 100×50 is 50×100, not 100×50",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_lines_that_do_not_fit_together(lines: list[dict[str, Any]], why: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=why):
        imported(jsonl(tmp_path / "t", *lines), tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ("mirror(v)", r"line 2: mirror\(h\) of case 'a' is not in the plan: no rule is about it; did you mean 'mirror"),
        ("mirror(h) => poses", "is about poses, this system answers with detections"),
    ],
)
def test_keys_that_no_rule_asks_for(rules: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=why):
        imported(jsonl(tmp_path / "t", *PAIR), tmp_path / "run", suite=rules)
    lines = [PAIR[0], found("a", "recorded(x)", LEFT), found("a", "recorded(x)", LEFT, draw=1)]
    with pytest.raises(ValueError, match=r"line 3: .*no rule asks for draw 1 and repeat 0 of it; a rule says how many"):
        imported(jsonl(tmp_path / "t", *lines), tmp_path / "run", suite="recorded(x)")
    assert not (tmp_path / "run").exists()


def test_what_a_suite_asks_for_and_the_table_lacks_is_said(tmp_path: Path) -> None:
    outcome = imported(jsonl(tmp_path / "t", *PAIR), tmp_path / "run", suite="mirror(h) + gamma(0.5)")
    assert "the tables have nothing of gamma(0.5)" in outcome.notes


def test_columns_that_are_renamed_must_be_there(tmp_path: Path) -> None:
    table = jsonl(tmp_path / "t", {"image": "a", "text": "a dog", "follow_up": "source"})
    imported(table, tmp_path / "run", columns={"case": "image", "caption": "text"})
    assert instar.open_run(tmp_path / "run").predictions()["caption"].to_list() == ["a dog"]
    with pytest.raises(ValueError, match=r"has no column 'scroe', which the parameter columns says is score.*it has"):
        imported(table, tmp_path / "other", columns={"case": "image", "caption": "text", "score": "scroe"})
    with pytest.raises(ValueError, match="a table of caption has no column 'captoin'; did you mean 'caption'"):
        imported(table, tmp_path / "other", columns={"case": "image", "captoin": "text"}, kind="caption")
    with pytest.raises(FileNotFoundError, match="there is no table"):
        imported(tmp_path / "none", tmp_path / "other")


def test_answers_to_an_export_must_be_to_its_inputs(tmp_path: Path) -> None:
    export = tmp_path / "export"
    rules = suite("mirror(h) + colour_wheel(90, red)")
    export_inputs(photographs(tmp_path / "photos"), rules, export, kind="detections")
    table = answered(export, tmp_path / "t", boxes_said)
    lines = [json.loads(line) for line in table.read_text().splitlines()]
    part = [line for line in lines if line["case"] != "002.png"]
    outcome = imported(jsonl(tmp_path / "u", *part), tmp_path / "run", export=export)
    assert "3 inputs of" in outcome.notes[0]
    assert outcome.statuses == {"ok": 4, "not applicable": 2}
    missing = jsonl(tmp_path / "u", *(line for line in lines if line not in part))
    rest = imported(missing, tmp_path / "run", export=export)
    assert rest.statuses == {"ok": 6, "not applicable": 3}, "what could not be made there is said once"
    assert instar.open_run(tmp_path / "run").predictions().select(KEY).is_unique().all()
    source = next(line for line in lines if line["follow_up"] == "source")
    with pytest.raises(ValueError, match=r"line 2: gamma\(2\) of case .* is not in the plan"):
        imported(jsonl(tmp_path / "u", source, {**source, "follow_up": "gamma(2)"}), tmp_path / "other", export=export)
    with pytest.raises(ValueError, match=r"line 1: .* has no input source of case 'x.png'"):
        imported(jsonl(tmp_path / "u", {**source, "case": "x.png"}), tmp_path / "other", export=export)
    with pytest.raises(ValueError, match=r"line 2: there is an output for filtered.* has no input \(there is no segm"):
        imported(
            jsonl(tmp_path / "u", source, {**source, "follow_up": "colour_wheel(90, red)"}),
            tmp_path / "other",
            export=export,
        )
    with pytest.raises(FileNotFoundError, match="holds no export"):
        imported(table, tmp_path / "other", export=tmp_path)


def test_answers_to_an_input_that_is_not_what_was_exported_are_refused(tmp_path: Path) -> None:
    """Whoever brightens, recompresses or loses half of a follow-up has an answer to something else."""
    export = tmp_path / "export"
    data = annotated(tmp_path)
    export_inputs(data, suite("mirror(h)"), export, kind="detections")
    table = answered(export, tmp_path / "t", boxes_said)
    path = next(export.rglob("mirror*.png"))
    content = path.read_bytes()
    path.write_bytes(content[:-1] + b"x")
    with pytest.raises(ValueError, match=rf"{path} is damaged or was edited.*Export again, which makes it anew"):
        imported(table, tmp_path / "run", export=export)
    assert not (tmp_path / "run").exists()
    path.unlink()
    notes = imported(table, tmp_path / "run", export=export).notes
    assert any("1 inputs of" in note and "are gone" in note for note in notes), "they may have been answered elsewhere"


# --- looking at it ---------------------------------------------------------------------------------


def test_a_run_without_pictures_can_be_looked_at(tmp_path: Path) -> None:
    lines = [
        line
        for case in "abcdef"
        for line in (found(case, "source", LEFT), found(case, "mirror(h)", LEFT), found(case, "recorded(paste)", RIGHT))
    ]
    imported(jsonl(tmp_path / "t", *lines), tmp_path / "run")
    run = instar.open_run(tmp_path / "run")
    assert run.any_rule()["rate"] == 1
    assert run.slices().columns and run.described().height == 6
    why = [reason for path, reason in draw_pairs(run, run.worst(2), tmp_path / "pictures") if path is None]
    assert len(why) == 2 and all("this run was recorded: it has no images" in reason for reason in why)
    plate = Pictures().picture(run.store, run.manifest, "1", case="a", side="source", width=240)
    assert not plate.drawn and b"recorded" in plate.content
    (page,) = write_report([run], tmp_path / "report.html")
    assert "this run was recorded: it has no images" in page.read_text("utf-8")


def test_a_dataset_named_later_shows_the_source_but_nothing_outside_it(tmp_path: Path) -> None:
    photos = write_scenes(tmp_path / "photos", 2)
    shutil.copy(photos / "000.png", tmp_path / "private.png")
    lines = [
        line
        for case in ("000.png", "../private.png")
        for line in (
            found(case, "source", LEFT, width=160, height=120),
            found(case, "mirror(h)", LEFT, width=160, height=120),
        )
    ]
    imported(jsonl(tmp_path / "t", *lines), tmp_path / "run")
    run = instar.open_run(tmp_path / "run")
    drawn = draw_pairs(run, run.worst(2), tmp_path / "pictures", dataset=photos)
    shown = {label.split()[0]: path for path, label in drawn}
    assert shown["000.png"] is not None
    assert shown["../private.png"] is None


WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(WORDS.filter(lambda text: bool(text.strip())), WORDS.filter(lambda text: bool(text.split()))),
        min_size=1,
        max_size=5,
        unique_by=lambda told: normalize("NFC", told[0]),
    )
)
def test_any_text_survives_both_kinds_of_table(tmp_path: Path, told: list[tuple[str, str]]) -> None:
    expected = {normalize("NFC", case): " ".join(text.split()) for case, text in told}
    for write in (jsonl, as_csv):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        imported(write(tmp_path / "t", *(said(case, "source", text) for case, text in told)), tmp_path / "run")
        assert dict(instar.open_run(tmp_path / "run").predictions().select("case", "caption").iter_rows()) == expected


def test_a_table_has_at_most_a_thousand_columns(tmp_path: Path) -> None:
    """A hundred thousand would be as many attributes of every case, and a report would compare them all."""
    more = {f"column {number}": 1 for number in range(100_000)}
    for table in (
        as_csv(tmp_path / "wide.csv", said("a", "source", "a dog", **more)),
        jsonl(tmp_path / "wide.jsonl", said("a", "source", "a dog", **more)),
    ):
        with pytest.raises(ValueError, match=r"it has 100,00\d columns, at most 1,000 are read; leave out the others"):
            imported(table, tmp_path / "run")


def test_a_number_of_400_digits_is_refused_where_it_stands(tmp_path: Path) -> None:
    table = jsonl(tmp_path / "table.jsonl", said("a", "source", "a dog", age=10**400))
    with pytest.raises(ValueError, match=r"line 1: .*a number has 401 digits, at most 40 are read"):
        imported(table, tmp_path / "run")
