"""Source outputs against ground truth, and beside metamorphic verdicts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import instar
from instar import Poses
from instar.analysis import Run, classic, classic_vs_metamorphic, has_comparable_truth, rates
from instar.case import Case
from instar.datasets import Dataset
from instar.report.findings import findings
from instar.report.verdict import verdict
from instar.skeleton import skeleton
from instar.store import Store
from instar.suites import Suite
from tests.analysis.frames import table
from tests.cli.conftest import typed
from tests.manifests import manifest_of
from tests.toys import scene, steady, write_scenes

INF = float("inf")
COUNTS = ("threshold", "cases", "classic_only", "metamorphic_only", "both", "neither")
SIZE = (200, 100)
RULES = Suite("test", (instar.rule("gamma(0.5)"),))


def annotated(shift: float = 0.0) -> np.ndarray:
    """A FLIC subject whose shoulders are 40 pixels apart, its landmarks moved to the right."""
    points = np.stack([np.linspace(60, 100, 11), np.linspace(20, 80, 11)], -1)
    bones = skeleton("flic-11")
    points[[bones.index("left_shoulder"), bones.index("right_shoulder")]] = [[100, 30], [60, 30]]
    return np.asarray(points + np.array([shift, 0.0]))


def found(shift: float) -> np.ndarray:
    """The same subject as MediaPipe says it; landmarks that FLIC has not are far off."""
    mine, theirs = skeleton("flic-11").mapping(skeleton("mediapipe-pose-33"))
    points = np.full((33, 2), 5000.0)
    points[theirs] = annotated(shift)[mine]
    return points


def folder(
    path: Path, answers: dict[str, list[np.ndarray] | None], truths: dict[str, list[np.ndarray]], **options: object
) -> Run:
    """A run with these source outputs (none: the prediction failed) and annotations."""
    store = Store(path)
    header = {"kind": "poses", "skeleton": skeleton("mediapipe-pose-33").to_dict()}
    store.write_manifest(
        manifest_of(
            output=header,
            rules=("gamma(0.5) => poses",),
            options={"normaliser": "part", **options},  # shoulder widths are easy to count
            truth={"kind": "poses", "skeleton": skeleton("flic-11").to_dict()},
        )
    )
    rows = [
        {
            "case": case,
            "follow_up": "source",
            "draw": 0,
            "repeat": 0,
            "width": SIZE[0],
            "height": SIZE[1],
            "warp": np.eye(3).ravel(),
            "status": "error" if people is None else "ok",
            "message": "it fell over" if people is None else None,
            **(Poses.from_array(people, skeleton="mediapipe-pose-33").row() if people is not None else {}),
        }
        for case, people in answers.items()
    ]
    store.append_predictions(rows, "poses")
    store.append_cases(
        [
            {
                "case": case,
                "status": "ok",
                **{
                    f"truth_{name}": value for name, value in Poses.from_array(people, skeleton="flic-11").row().items()
                },
            }
            for case, people in truths.items()
        ],
        "poses",
    )
    return Run(store)


def test_severity_in_shoulder_lengths_of_the_annotation(tmp_path: Path) -> None:
    run = folder(
        tmp_path,
        {
            "exact": [found(0)],
            "off": [found(10)],
            "nobody": [],
            "failed": None,
            "two": [found(90), found(0)],
            "unlabelled": [found(0)],
        },
        {
            "exact": [annotated()],
            "off": [annotated()],
            "nobody": [annotated()],
            "failed": [annotated()],
            "two": [annotated()],
            "unlabelled": [],
        },
    )
    verdicts = classic(run)
    severity = dict(verdicts.select("case", "severity").iter_rows())
    assert severity == {"exact": 0.0, "off": 0.25, "nobody": INF, "failed": None, "two": 0.0}
    assert verdicts.filter(case="nobody")["kind"].item() == "lost"
    assert verdicts.filter(case="failed").select("status", "reason").row(0) == ("error", "it fell over")
    rate = rates(verdicts, {"truth": 0.2}).row(0, named=True)
    assert (rate["judged"], rate["violated"], rate["failed"]) == (4, 2, 1)


def test_every_annotated_subject_is_judged_and_no_other(tmp_path: Path) -> None:
    run = folder(
        tmp_path,
        {"a": [found(90), found(0)], "b": [found(90)]},
        {"a": [annotated(), annotated(92)], "b": [annotated(), annotated(90)]},
    )
    assert classic(run).select("case", "target", "severity").sort("case", "target").rows() == [
        ("a", "0", 0.0),
        ("a", "1", pytest.approx(0.05)),
        ("b", "0", INF),
        ("b", "1", 0.0),
    ]


def test_the_metric_is_the_user_s(tmp_path: Path) -> None:
    moved = found(0)
    moved[0, 0] += 20  # the nose, alone
    run = folder(tmp_path, {"a": [moved]}, {"a": [annotated()]}, aggregate="max")
    assert classic(run)["severity"].item() == pytest.approx(0.5), "the suite's options"
    assert classic(run, judging=run.judge(aggregate="median"))["severity"].item() == 0
    assert classic(run, judging=run.judge(normaliser="pixels"))["severity"].item() == pytest.approx(20)
    assert classic(run, judging=run.judge(landmarks="left_elbow, left_ear"))["severity"].item() == 0
    with pytest.raises(ValueError, match="none of the landmarks in common"):
        classic(run, judging=run.judge(landmarks="left_ear"))


def test_a_real_run_with_annotations(tmp_path: Path) -> None:
    photos = write_scenes(tmp_path / "photos", 3)
    cases = [
        Case(path.name, path=str(path), truth=steady(scene(number).pixels))
        for number, path in enumerate(sorted(photos.iterdir()))
    ]
    data = Dataset("annotated", str(photos), lambda: iter(cases), "poses")
    run = instar.run("tests.toys:steady", RULES, data, out=tmp_path / "run", workers=0)
    assert classic(run)["severity"].to_list() == [0.0] * 3


def test_a_ground_truth_of_other_landmarks_is_ignored_and_named(tmp_path: Path) -> None:
    (tmp_path / "stick.toml").write_text('landmarks = ["top", "middle", "end"]')
    truth = Poses.from_array([[[10, 20], [20, 30], [30, 50]]], skeleton=str(tmp_path / "stick.toml"))
    photos = write_scenes(tmp_path / "photos", 3)
    cases = [Case(path.name, path=str(path), truth=truth) for path in sorted(photos.iterdir())]
    data = Dataset("annotated", str(photos), lambda: iter(cases), "poses")
    rules = "gamma(0.5) + gamma(0.5) => accuracy"
    run = instar.run("tests.toys:steady", rules, data, out=tmp_path / "run", workers=0)
    assert not has_comparable_truth(run)
    assert run.verdicts()["severity"].to_list() == [0.0] * 6, "compared with the source instead"
    (note,) = [one for one in findings(run) if one.code == "truth.unusable"]
    assert not note.against and "stick" in note.figures["reason"]
    for command in ("show", "tables", "report", "compare"):
        more = {"report": ("--out", tmp_path / "report.html"), "compare": (run.folder,)}.get(command, ())
        assert typed(command, run.folder, *more).code == 0
    assert note.words.partition(":")[0] in (tmp_path / "report.html").read_text()
    assert any("truth.unusable" in one.figures.get("codes", ()) for one in verdict(run, run, ("a", "b")).findings)


def test_without_ground_truth_it_says_so(tmp_path: Path) -> None:
    photos = write_scenes(tmp_path / "photos", 1)
    run = instar.run("tests.toys:steady", RULES, photos, out=tmp_path / "run", workers=0)
    with pytest.raises(ValueError, match="no ground truth"):
        classic(run)


def test_classic_and_metamorphic_side_by_side() -> None:
    truth = table({"truth": [0.3, 0.3, 0.0, 0.0, INF, None]})
    rules = table({"r": [0.1, 0.4, 0.4, 0.0, INF, 1.0], "s": [0.0, 0.0, None, 0.1, 0.0, 1.0]})
    found = classic_vs_metamorphic(truth, rules, (0.05, 0.2, INF))
    assert found.select(COUNTS).rows() == [(0.05, 5, 0, 2, 3, 0), (0.2, 5, 1, 1, 2, 1), (INF, 5, 0, 0, 1, 4)]
    one = rules.filter(pl.col("rule") == "s")
    assert classic_vs_metamorphic(truth, one, (0.2,)).select(COUNTS).row(0) == (0.2, 4, 3, 0, 0, 1)
    assert found.select("precision", "recall").rows() == [(3 / 5, 1.0), (2 / 3, 2 / 3), (1.0, 1.0)]
    assert all(found[f"{name}_low"][1] < 2 / 3 < found[f"{name}_high"][1] for name in ("precision", "recall"))
    silent = classic_vs_metamorphic(table({"truth": [0.0]}), table({"r": [0.0]}), (0.2,))
    assert silent["precision"].item() is None and silent["recall"].item() is None


def test_landmarks_that_nobody_annotated_are_not_invented(tmp_path: Path) -> None:
    """Annotators leave out what is hidden; by default a fifth of landmarks on one side only would be ∞."""
    truth = annotated()
    truth[:4] = np.nan
    truth[0] = annotated()[0]
    run = folder(tmp_path, {"a": [found(0)]}, {"a": [truth]}, normaliser="body")
    assert classic(run)["severity"].item() == 0
