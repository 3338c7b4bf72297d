"""Segmentation from images to tables: a right segmenter passes, faults are caught and named."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import cv2
import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import instar
from instar.cli import app
from instar.outputs.segmentation import CLASS_COLOURS, Segmentation
from instar.report.picture import legend
from instar.report.rebuild import load_pair, run_legend
from instar.tasks.segmentation.panel import PANELS, overlaps
from instar.viewer.pictures import Pictures
from tests.missing import astronaut, loaded_system
from tests.tasks.segmentation.segmenters import NAMES, painted, right

HERE = "tests.tasks.segmentation.segmenters"


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("images")
    for number in range(4):
        cv2.imwrite(str(root / f"{number}.png"), painted(number)[..., ::-1])
    return root


def run(name: str, images: Path, out: Path, rules: str = "segmentation") -> instar.Run:
    return instar.run(f"{HERE}:{name}", rules, images, out=out, workers=0)


def test_a_right_segmenter_violates_nothing(images: Path, tmp_path: Path) -> None:
    tested = run("right", images, tmp_path / "run", "segmentation")
    assert len(tested.manifest.rules) == 15
    assert cast(float, tested.verdicts()["severity"].max()) < 0.05
    exact = tested.judge(slack=0)
    assert 0.05 < cast(float, tested.verdicts(exact)["severity"].max()) < 0.2  # the edges of a grid of half the size


@pytest.mark.parametrize(("name", "caught_by"), [("blind_to_the_right", "mirror(h)"), ("half_a_cell_off", "mirror(h)")])
def test_faults_are_caught_by_geometry(name: str, caught_by: str, images: Path, tmp_path: Path) -> None:
    tested = run(name, images, tmp_path / "run", f"{caught_by}+gamma(0.5)")
    worst = tested.verdicts().filter(rule=f"{caught_by} => class_overlap")
    assert (worst["severity"] > 0.2).all() and worst["worst"].is_not_null().all()
    even = tested.verdicts().filter(rule="gamma(0.5) => class_overlap")
    assert cast(float, even["severity"].max()) < 0.05


def test_a_lost_class_is_named(images: Path, tmp_path: Path) -> None:
    tested = run("blind_in_the_dark", images, tmp_path / "run", "gamma(2)+gamma(0.5)")
    dark = tested.verdicts().filter(rule="gamma(2) => class_overlap")
    assert set(dark["kind"]) == {"lost"} and set(dark["worst"]) == {"red"}
    assert tested.verdicts().filter(rule="gamma(0.5) => class_overlap")["kind"].is_null().all()


def test_pictures_say_which_colour_is_which_class_and_mark_the_one_of_the_verdict(images: Path, tmp_path: Path) -> None:
    tested = run("blind_in_the_dark", images, tmp_path / "run", "gamma(2)+mirror(h)")
    verdicts = tested.verdicts().sort("case", "rule").to_dicts()
    lost, kept = (load_pair(tested, each) for each in verdicts[:2])
    words = [entry.words for entry in legend(lost.source, lost.follow_up)]
    assert words == ["answer", "expected of the follow-up", *NAMES, "what the verdict is about"]
    for side in (lost.source, lost.follow_up):  # in the follow-up, where it should be
        assert {shape.text for shape in side.accused} == {"red"}
    assert {shape.text: shape.colour for shape in lost.source.actual} == dict(zip(NAMES, CLASS_COLOURS, strict=False))
    assert not kept.source.accused and not kept.follow_up.accused
    assert [entry.words for entry in run_legend(tested)] == words, "also of a page of many pairs"


def test_a_viewer_marks_the_class_of_a_verdict(images: Path, tmp_path: Path) -> None:
    """Its index of verdicts does not hold the class."""
    tested = run("blind_in_the_dark", images, tmp_path / "run", "gamma(2)")
    verdict = tested.verdicts().row(0, named=True)
    known = {"draw": 0, **{name: verdict[name] for name in ("case", "rule", "target", "severity")}}
    shown = [
        Pictures()
        .picture(tested.store, tested.manifest, "", case=known["case"], side="source", width=240, verdict=each)
        .content
        for each in (known, {**known, "worst": verdict["worst"]}, None)
    ]
    assert shown[0] == shown[1] != shown[2]


def test_pairs_without_an_overlap_are_counted_beside_the_means_of_the_others(images: Path, tmp_path: Path) -> None:
    """Who knows no cell in the dark has no IoU there, and would have no row, or one of the other pairs alone."""

    def unknowing_in_the_dark(pixels: np.ndarray) -> Segmentation:
        return right(pixels) if pixels.mean() > 60 else Segmentation.from_classes(np.full((80, 100), 255), NAMES)

    tested = instar.run(unknowing_in_the_dark, "gamma(5)+mirror(h)", images, out=tmp_path / "run", workers=0)
    table = overlaps(tested)
    assert table.select("name", "pairs", "unmatched").rows() == [("gamma(5)", 4, 4), ("mirror(h)", 4, 0)]
    assert PANELS["overlaps"].tables is not None
    printed = PANELS["overlaps"].tables([tested], "default", 0.05)
    assert printed is not None and printed.tables[0].rows[0] == ["gamma(5)", "4", "4", "–", "–", "–"]


def test_tables_report_and_pictures(images: Path, tmp_path: Path) -> None:
    tested = run("blind_to_the_right", images, tmp_path / "run", "mirror(h)+gamma(0.5)")
    mirrored = overlaps(tested).row(0, named=True)
    own = tested.verdicts().filter(pl.col("rule").str.starts_with("mirror"), worst=mirrored["worst"])
    assert mirrored["name"] == "mirror(h)" and mirrored["worst_pairs"] == own.height
    assert mirrored["worst_iou"] == pytest.approx(own["worst_iou"].mean()), "its own IoU stands beside a class"
    printed = CliRunner().invoke(app, ["tables", str(tmp_path / "run")])
    assert printed.exit_code == 0 and "cells that agree" in printed.output, printed.output
    drawn = CliRunner().invoke(app, ["draw", str(tmp_path / "run"), "--out", str(tmp_path / "pictures")])
    assert drawn.exit_code == 0 and len(list((tmp_path / "pictures").iterdir())) == 4, drawn.output


def test_zones_of_a_real_segmenter_are_classes(tmp_path: Path) -> None:
    loaded_system("selfie-multiclass")
    cv2.imwrite(str(tmp_path / "photo.png"), astronaut().pixels[..., ::-1])
    tested = instar.run(
        "selfie-multiclass", "mirror(h)+gamma(0.5)", tmp_path / "photo.png", out=tmp_path / "run", workers=1
    )
    severities = tested.verdicts()["severity"]
    assert len(severities) == 2 and cast(float, tested.verdicts()["mean_iou"].min()) > 0.5
    assert "skin" in tested.manifest.header["names"]


def test_a_mirror_maps_cells_exactly() -> None:
    cells = np.array([[0, 1, 1], [2, 0, 0]], np.uint8)
    made = Segmentation.from_classes(cells, ("a", "b", "c"), size=(30, 20))
    mirrored = made.warped(instar.Warp.mirror((30, 20), "h"))
    assert np.array_equal(mirrored.onto(made), cells[:, ::-1])


def zones_of(pixels: np.ndarray) -> instar.Zones:
    """What finds zones and nothing else."""
    return instar.Zones((pixels[..., 0] > 150).astype(np.uint8), {"ground": (0,), "red": (1,)})


def test_a_system_that_finds_zones_is_tested_as_a_segmenter(images: Path, tmp_path: Path) -> None:
    tested = instar.run(f"{__name__}:zones_of", "mirror(h)", images, out=tmp_path / "run", workers=0)
    assert tested.manifest.system.kind == "segmentation"
    assert [rule.id for rule in tested.bound_rules()] == ["mirror(h) => class_overlap"]
    assert tested.rates()["violated"].sum() == 0 < tested.rates()["judged"].sum()
