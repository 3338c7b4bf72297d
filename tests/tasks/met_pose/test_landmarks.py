"""Which joints move: counted by hand, and by a fault of one joint."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import instar
from instar import Poses, Run
from instar.skeleton import Skeleton, skeleton
from instar.stats import clustered_interval, moments, wilson
from instar.store import Piece, Store, pieces
from instar.suites import Suite
from instar.tasks.met_pose import landmarks
from instar.tasks.met_pose.landmarks import Figure, landmark_table, typical_pose
from instar.warp import Warp
from tests.manifests import manifest_of
from tests.perfect.scenes import BODY, View, holistic_person, one_person, standing, system_of
from tests.toys import rectangles, shaky, write_scenes

INF = math.inf
SIZE = (400, 300)
COCO = skeleton("coco-17")
GAMMA, ROTATED = "gamma(0.5) => poses", "rotation(10) => poses"


def person(**moved: tuple[float, float]) -> np.ndarray:
    """Shoulders 40 pixels apart, all inside the frame; some landmarks elsewhere."""
    points = np.stack([np.linspace(150, 250, 17), np.linspace(50, 250, 17)], -1)
    points[[COCO.index("left_shoulder"), COCO.index("right_shoulder")]] = [[220, 100], [180, 100]]
    for name, by in moved.items():
        points[COCO.index(name)] += by
    return points


def without(*names: str) -> np.ndarray:
    return person(**dict.fromkeys(names, (np.nan, np.nan)))


People = list[np.ndarray] | None
"""Who was found; None where the prediction failed."""


def folder(
    path: Path,
    answers: Mapping[tuple[str, str, int], People],
    rules: tuple[str, ...] = (GAMMA,),
    bones: Skeleton = COCO,
    warps: Mapping[str, Warp] | None = None,
    **options: object,
) -> Run:
    """A run with these answers by case, follow-up and draw, judged in shoulder widths: those are easy to count."""
    store = Store(path)
    options = {"normaliser": "part", **options}
    store.write_manifest(
        manifest_of(rules=rules, options=options, output={"kind": "poses", "skeleton": bones.to_dict()})
    )
    store.append_predictions(
        [
            {
                "case": case,
                "follow_up": name,
                "draw": draw,
                "repeat": 0,
                "width": SIZE[0],
                "height": SIZE[1],
                "warp": (warps or {}).get(name, Warp.identity(SIZE)).matrix.ravel(),
                "status": "error" if people is None else "ok",
                **(Poses.from_array(people, skeleton=bones).row() if people is not None else {}),
            }
            for (case, name, draw), people in answers.items()
        ],
        "poses",
    )
    return Run(store)


def pairs(*follow_ups: People, source: np.ndarray | None = None) -> dict[tuple[str, str, int], People]:
    """A case for each follow-up of gamma(0.5), with the same source."""
    found: dict[tuple[str, str, int], People] = {}
    for number, people in enumerate(follow_ups):
        found[f"{number}", "source", 0] = [person() if source is None else source]
        found[f"{number}", "gamma(0.5)", 0] = people
    return found


def row(table: pl.DataFrame, landmark: str, threshold: float = 0.2, rule: str | None = GAMMA) -> dict[str, object]:
    return table.filter(pl.col("rule").eq_missing(rule), landmark=landmark, threshold=threshold).row(0, named=True)


def test_counted_by_hand(tmp_path: Path) -> None:
    table = landmark_table(
        folder(
            tmp_path,
            pairs([person(left_wrist=(10, 0))], [person()], [without("nose")], [], [person(left_wrist=(0, 4))]),
        ),
        grid=(0.2, INF),
    )
    assert table.columns == [
        "rule",
        "landmark",
        "part",
        "threshold",
        "judged",
        "violated",
        "rate",
        "low",
        "high",
        "median",
    ]
    assert table.height == 2 * 17 * 2, "one rule and all together, 17 landmarks, two thresholds"
    wrist = row(table, "left_wrist")
    assert (wrist["part"], wrist["judged"], wrist["violated"], wrist["rate"]) == ("body", 5, 2, 0.4)
    assert (wrist["low"], wrist["high"]) == (pytest.approx(0.0527, abs=1e-4), pytest.approx(0.8534, abs=1e-4))
    assert wrist["median"] == pytest.approx(0.1, rel=0.012)
    assert (row(table, "left_wrist", INF)["violated"], row(table, "nose", INF)["violated"]) == (1, 2)
    assert row(table, "nose")["median"] == 0.0
    assert [row(table, name)["violated"] for name in ("left_ankle", "right_wrist")] == [1, 1], "lost with its subject"


def ends_of(hits: list[int], trials: list[int]) -> tuple[float, ...]:
    return tuple(map(float, clustered_interval(moments(np.array(hits), np.array(trials)))))


def test_the_pairs_of_one_case_are_a_cluster_under_all_rules_and_under_one(tmp_path: Path) -> None:
    """Two photos whose wrist strays under all of three rules and two where it never does are four, not twelve."""
    rules = (GAMMA, "gamma(0.6) => poses", "gamma(0.7) => poses")
    answers: dict[tuple[str, str, int], People] = {}
    for number in range(4):
        astray = person(left_wrist=(10, 0)) if number < 2 else person()
        answers[f"{number}", "source", 0] = [person()]
        answers |= {(f"{number}", rule.partition(" ")[0], 0): [astray] for rule in rules}
    table = landmark_table(folder(tmp_path, answers, rules), grid=(0.2,))
    together = row(table, "left_wrist", rule=None)
    assert (together["judged"], together["violated"]) == (12, 6)
    assert (together["low"], together["high"]) == pytest.approx(ends_of([3, 3, 0, 0], [3] * 4))
    assert float(str(together["low"])) < wilson(2, 4)[0]
    two = {**answers, ("0", "source", 0): [person(), person()], ("0", "gamma(0.5)", 0): [person(), person()]}
    alone = row(landmark_table(folder(tmp_path / "two", two, rules), grid=(0.2,)), "left_wrist")
    assert alone["judged"] == 5
    assert (alone["low"], alone["high"]) == pytest.approx(ends_of([0, 1, 0, 0], [2, 1, 1, 1]))


def test_violated_is_above_zero(tmp_path: Path) -> None:
    table = landmark_table(folder(tmp_path, pairs([person(nose=(1, 0))])), grid=(0.0,))
    assert table.filter(pl.col("violated") > 0, rule=GAMMA)["landmark"].to_list() == ["nose"]


def test_a_landmark_that_nobody_showed_is_not_judged(tmp_path: Path) -> None:
    table = landmark_table(folder(tmp_path, pairs([without("nose", "left_ear")], source=without("nose"))), grid=(0.2,))
    nose, ear = row(table, "nose"), row(table, "left_ear")
    assert (nose["judged"], nose["rate"], nose["median"]) == (0, None, None)
    assert (ear["judged"], ear["rate"], ear["median"]) == (1, 1.0, INF)


def test_without_a_body_length_only_what_is_on_one_side_is_judged(tmp_path: Path) -> None:
    bare = without("left_shoulder")
    table = landmark_table(folder(tmp_path, pairs([without("left_shoulder", "nose")], source=bare)), grid=(0.2,))
    assert table.filter(pl.col("judged") > 0, rule=GAMMA)["landmark"].to_list() == ["nose"]


def test_what_is_carried_out_of_the_frame_is_not_judged_unless_asked(tmp_path: Path) -> None:
    away = Warp(np.array([[1.0, 0, 160], [0, 1, 0], [0, 0, 1]]), SIZE, SIZE)
    moved = person() + np.array([160, 0])
    run = folder(tmp_path, pairs([moved]), warps={"gamma(0.5)": away})
    outside = (moved[:, 0] > SIZE[0]).sum()
    assert 0 < outside < 17
    found = landmark_table(run, grid=(0.2,)).filter(rule=GAMMA)
    assert (found["judged"].sum(), found["violated"].sum()) == (17 - outside, 0)
    assert landmark_table(run, grid=(0.2,), judging=run.judge(outside="keep")).filter(rule=GAMMA)["judged"].sum() == 17


def test_several_subjects_are_matched_and_inventions_are_in_no_pair(tmp_path: Path) -> None:
    one, other = person(), person() + np.array([60, 0])
    run = folder(
        tmp_path,
        {
            ("a", "source", 0): [one, other],
            ("a", "gamma(0.5)", 0): [other, one + np.array([0, 0.5]), one - np.array([100, 0])],
        },
    )
    table = landmark_table(run, grid=(0.2,))
    assert table["judged"].unique().to_list() == [2]
    assert table["violated"].sum() == 0


def test_every_draw_counts_and_failures_do_not(tmp_path: Path) -> None:
    rules = ("noise(8) => poses(draws=2)", GAMMA)
    off = [person(nose=(20, 0))]
    answers: dict[tuple[str, str, int], People] = {("a", "gamma(0.5)", 0): None}
    for case in ("a", "b", "c"):
        answers[case, "source", 0] = [person()]
        answers[case, "noise(8)", 0] = [person()]
        answers[case, "noise(8)", 1] = off
        answers[case, "noise(8)", 2] = off  # predicted for another rule; this one asked for two
    answers["b", "noise(8)", 1] = None
    answers["c", "source", 0] = None
    table = landmark_table(folder(tmp_path, answers, rules), grid=(0.2,))
    noisy = row(table, "nose", rule="noise(8) => poses(draws=2)")
    assert (noisy["judged"], noisy["violated"]) == (2, 1)
    assert row(table, "nose")["judged"] == 0


def test_all_rules_together(tmp_path: Path) -> None:
    answers = pairs([person(nose=(20, 0))], [person()])
    answers["1", "mirror(h)", 0] = [person(nose=(12, 0))]
    answers["1", "identity", 0] = [person(nose=(30, 0))]
    table = landmark_table(folder(tmp_path, answers, (GAMMA, "mirror(h) => poses", "identity => poses")), grid=(0.2,))
    both = row(table, "nose", rule=None)
    assert (both["judged"], both["violated"], both["median"]) == (3, 2, pytest.approx(0.3, rel=0.012))


def forgets_a_wrist(view: View) -> Poses:
    """When the picture is turned, the left wrist stays where it was."""
    points = view.points.copy()
    if not np.allclose(view.matrix, np.diag(np.diag(view.matrix)), atol=0.01) and not view.mirrored:
        wrist = view.scene.bones.index("left_wrist")
        points[:, wrist] = view.scene.points[:, wrist]
    return view.answer(points)


def test_a_system_that_forgets_one_landmark_under_one_rule(tmp_path: Path) -> None:
    scene = one_person()
    rules = Suite("test", tuple(instar.rule(text) for text in ("mirror(h)", "rotation(10)", "gamma(0.5)")))
    run = instar.run(system_of(scene, forgets_a_wrist), rules, scene.dataset, out=tmp_path / "run")
    found = landmark_table(run, grid=(0.05,)).filter(pl.col("violated") > 0).select("rule", "landmark", "violated")
    assert found.rows() == [(ROTATED, "left_wrist", 1), (None, "left_wrist", 1)]


@pytest.fixture
def shaken(tmp_path: Path) -> instar.Run:
    rules = Suite("test", tuple(instar.rule(text) for text in ("mirror(h)", "noise(20)")))
    return instar.run(shaky, rules, write_scenes(tmp_path / "photos", 6), out=tmp_path / "run", workers=0)


@pytest.mark.parametrize("options", [{}, {"normaliser": "box", "space": "normalised", "aggregate": "max"}])
def test_a_landmark_alone_has_the_severity_of_its_verdict(shaken: instar.Run, options: dict[str, str]) -> None:
    for name in ("nose", "left_eye", "right_shoulder"):
        verdicts = shaken.verdicts(landmarks=name, **options)
        severities = sorted(verdicts["severity"].to_list())
        assert len(severities) == 12 and severities[0] > 0
        table = landmark_table(shaken, grid=severities, judging=shaken.judge(**options)).filter(landmark=name)
        for rule in verdicts["rule"].unique():
            mine = verdicts.filter(rule=rule)["severity"]
            counts = [int((mine >= threshold).sum()) for threshold in severities]
            assert table.filter(rule=rule)["violated"].to_list() == counts
            assert table.filter(rule=rule)["median"][0] == pytest.approx(mine.median(), rel=0.012)


def test_pieces_give_the_same_table_as_the_whole(shaken: instar.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = landmark_table(shaken, grid=(0.01, 0.2))

    def one_by_one(store: Store) -> Iterator[Piece]:
        return pieces(store, pl.lit(1), 1)

    monkeypatch.setattr(landmarks, "chunks", one_by_one)
    assert landmark_table(shaken, grid=(0.01, 0.2)).equals(whole)


def test_options_are_the_suites_unless_told(tmp_path: Path) -> None:
    run = folder(tmp_path, pairs([person(nose=(20, 0))]), landmarks="nose, left_wrist")
    assert landmark_table(run, grid=(0.2,)).filter(rule=GAMMA)["landmark"].to_list() == ["nose", "left_wrist"]
    assert (
        landmark_table(run, grid=(0.2,), judging=run.judge(landmarks="nose", normaliser="pixels"))["median"].to_list()
        == [pytest.approx(20, rel=0.012)] * 2
    )
    with pytest.raises(ValueError, match="did you mean 'aggregate'"):
        landmark_table(run, grid=(0.2,), judging=run.judge(agregate="max"))
    with pytest.raises(ValueError, match="part, box, image, pixels"):
        landmark_table(run, grid=(0.2,), judging=run.judge(normaliser="shoe"))


def test_only_poses_have_landmarks(tmp_path: Path) -> None:
    run = instar.run(
        rectangles,
        Suite("test", (instar.rule("mirror(h)"),)),
        write_scenes(tmp_path / "photos", 1),
        out=tmp_path / "run",
        workers=0,
    )
    with pytest.raises(ValueError, match="answers with detections"):
        landmark_table(run, grid=(0.2,))
    with pytest.raises(ValueError, match="no poses to draw"):
        typical_pose(run)


# --- figures ---------------------------------------------------------------------------------------


def crowd(bones: Skeleton, count: int, *, seed: int = 0) -> dict[tuple[str, str, int], People]:
    """People who stand, lean, lie and a few on their hands, of any size, every other seen from behind."""
    rng = np.random.default_rng(seed)
    answers: dict[tuple[str, str, int], People] = {}
    for number in range(count):
        angle = math.pi if number % 8 == 7 else rng.normal(0, 0.5)
        turn = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
        points = standing(bones, (0, 0), rng.uniform(20, 60), number) @ turn
        answers[f"{number:03d}", "source", 0] = [points + rng.normal(0, 1, points.shape) + (200, 150)]
    return answers


def places(figure: Figure) -> dict[str, np.ndarray]:
    return dict(zip(figure.landmarks, figure.xy, strict=True))


def test_the_figure_of_a_body_stands_upright_and_faces_us(tmp_path: Path) -> None:
    (figure,) = typical_pose(folder(tmp_path, crowd(COCO, 80)))
    assert (figure.part, figure.landmarks) == ("body", COCO.landmarks)
    assert figure.xy.min(0).tolist() == [0, 0] and figure.xy.max() == 1
    drawn = places(figure)
    scale = drawn["left_shoulder"][0] - drawn["right_shoulder"][0]
    assert scale > 0, "its left is our right"
    for name in figure.landmarks:
        expected = np.array(BODY[name]) - BODY["left_shoulder"]
        assert (drawn[name] - drawn["left_shoulder"]) / scale == pytest.approx(expected, abs=0.15), name
    assert ("left_hip", "left_knee") in figure.edges
    assert len(figure.edges) == len(COCO.edges)


def test_every_part_has_a_figure_of_its_own(tmp_path: Path) -> None:
    bones = holistic_person().bones
    figures = {figure.part: figure for figure in typical_pose(folder(tmp_path, crowd(bones, 12), bones=bones))}
    assert {name: len(figure.xy) for name, figure in figures.items()} == {
        "body": 33,
        "left_hand": 21,
        "right_hand": 21,
        "face": 478,
    }
    hand = figures["left_hand"]
    assert {end for edge in hand.edges for end in edge} == set(hand.landmarks)
    wide = figures["right_hand"].xy[:, 0].max()
    assert hand.xy * (-1, 1) + (wide, 0) == pytest.approx(figures["right_hand"].xy, abs=1e-6)


@pytest.mark.parametrize(
    ("hands", "drawn"), [("left_hand", {"body", "left_hand", "right_hand", "face"}), ("hands", {"body", "face"})]
)
def test_parts_and_landmarks_that_nobody_shows_are_left_out(tmp_path: Path, hands: str, drawn: set[str]) -> None:
    """Of a left ear or hand that is never shown, the mirror image of the right one is drawn."""
    bones = holistic_person().bones
    answers = crowd(bones, 12)
    hidden = [i for _, chosen in bones.select(f"{hands}, nose, left_ear") for i in chosen]
    for people in answers.values():
        assert people is not None
        people[0][hidden] = np.nan
    answers["nobody", "source", 0] = []
    answers["failed", "source", 0] = None
    figures = {figure.part: figure for figure in typical_pose(folder(tmp_path, answers, bones=bones))}
    assert set(figures) == drawn
    assert figures["body"].landmarks == tuple(name for name in bones.landmarks[:33] if name != "nose")
    assert not [edge for edge in figures["body"].edges if "nose" in edge]


def test_nobody_makes_no_figure(tmp_path: Path) -> None:
    assert typical_pose(folder(tmp_path, {("a", "source", 0): []})) == ()


def test_one_subject_is_enough_for_a_figure(tmp_path: Path) -> None:
    (figure,) = typical_pose(folder(tmp_path, {("a", "source", 0): [standing(COCO, (200, 100), 30)]}))
    assert places(figure)["nose"][1] < places(figure)["left_hip"][1] < places(figure)["left_ankle"][1]
