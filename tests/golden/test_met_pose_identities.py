"""The golden tables of MET-POSE say the same thing wherever they say it twice."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.golden.met_pose import (
    FLIC_COUNTS,
    GRID,
    IMAGES,
    MOTION,
    MOTION_COUNTS,
    RULES,
    SUB,
    against_truth,
    fired,
    fired_on,
    histogram,
    matrix,
    rows,
    table_two,
)
from tests.missing import shared as beside

DATA = tuple(IMAGES)
AT = GRID.index(0.2)


def test_every_table_is_read_by_some_test() -> None:
    rows("histogram_failed_images_across_thresholds_pose_FLIC-test_AllRels")  # skips where there is none
    assert sorted(path.stem for path in beside("golden/met-pose").glob("*.csv")) == sorted(
        [f"gt_vs_metamorphic_failed_tests_across_thresholds_FLIC-test_{name}" for name in RULES.values()]
        + [f"histogram_failed_images_across_thresholds_hands_phoenix-dev_{name}" for name in ("Greyscale", "MirrorH")]
        + [
            f"histogram_failed_images_across_thresholds_pose_{data}_{name}"
            for data in DATA
            for name in ("AllRels", "SubRels", "GreyAndMirr")
        ]
        + [f"images_failed_per_num_of_rules_pose_{data}_FailedPerNumRulesTable" for data in DATA]
        + [f"table_subsumption_ratios_pose_{data}_{name}" for data in DATA for name in ("SubRels", "AllMotionBlur")]
    )


@pytest.mark.parametrize("data", DATA)
def test_rates_are_whole_images_fall_and_nest(data: str) -> None:
    everything, sub, two = (histogram(data, name)[0] for name in ("AllRels", "SubRels", "GreyAndMirr"))
    for counts in (everything, sub, two):
        assert counts == sorted(counts, reverse=True)
    assert all(a >= b >= c for a, b, c in zip(everything, sub, two, strict=True))


@pytest.mark.parametrize("rules", ["Greyscale", "MirrorH"])
def test_hands_are_whole_images_and_fall(rules: str) -> None:
    for counts in histogram("phoenix-dev", rules, "hands", ("left_hand", "right_hand")):
        assert counts == sorted(counts, reverse=True)


@pytest.mark.parametrize("data", DATA)
def test_whoever_violates_no_rule_is_missing_from_the_histogram(data: str) -> None:
    # Table II counts > t and the histogram ≥ t: they agree, so no image's worst error is a threshold exactly.
    # In the last column only the threshold is written as 9999999: were the errors, none would be greater.
    assert (IMAGES[data] - table_two(data)[0]).tolist() == histogram(data, "AllRels")[0]


def test_which_numbers_table_two_counts_twice() -> None:
    flic, phoenix = table_two("FLIC-test"), table_two("phoenix-dev")
    extra = {"FLIC-test": (flic.sum(0) - 835).tolist(), "phoenix-dev": (phoenix.sum(0) - 55_775).tolist()}
    assert extra == {
        "FLIC-test": [0, 23, 19, 18, 10, 9, 5, 6, 5, 1, 1],
        "phoenix-dev": [586, 360, 1, 0, 0, 0, 0, 0, 0, 0, 0],
    }
    # 4 and 5 share no image: 5129 fail four rules at 0.1, one image is counted twice
    assert phoenix[4, 2] == 5129
    # 122 is in no other bin: 338 fail all rules at 0.01, none is counted twice
    assert flic[9, 0] == 338
    # 30 is in two: at 0.1 the bins above 61 are empty, and so hold no 61 and no 91
    assert phoenix[7:, 2].tolist() == [0, 0, 0]
    # 91 is in two: at 0.01 the bins below 61 are empty, and so hold no 30 and no 61
    assert phoenix[:7, 0].tolist() == [0] * 7
    # a bin holds at least the images that it shares with its neighbours: 30, 61 and 91 explain all columns
    for table, more in ((flic, extra["FLIC-test"]), (phoenix, extra["phoenix-dev"])):
        for column, twice in zip(table.T, more, strict=True):
            assert 0 <= twice <= sum(min(column[number : number + 2]) for number in (5, 6, 7))


@pytest.mark.parametrize(("data", "images"), [("FLIC-test", 360), ("phoenix-dev", 7)])
def test_grey_or_mirror_from_the_matrix_and_from_the_histogram(data: str, images: int) -> None:
    shares = matrix(data, "SubRels")
    grey, mirror = SUB.index("Grey"), SUB.index("MirrH")
    counts = fired_on(data)
    both = shares[grey][mirror] * counts[grey]
    assert counts[grey] + counts[mirror] - both == images == histogram(data, "GreyAndMirr")[0][AT]


def test_the_exact_counts_and_their_order() -> None:
    assert tuple(fired(matrix("FLIC-test", "SubRels"))) == FLIC_COUNTS
    assert fired_on("FLIC-test") == list(FLIC_COUNTS)
    assert dict(zip(SUB, fired_on("phoenix-dev"), strict=True)) == {
        **dict.fromkeys(SUB, 0),
        "Grey": 5,
        "Bilat(125,5)": 1,
        "Gamma(.5)": 1,
        "MirrH": 2,
        "Motion(11,0)": 77,
        "Motion(11,100)": 33,
        "Res(.2)": 293,
        "Rot5": 1,
        "Stch(1.25,1)": 208,
        "Stch(1,.6)": 20_304,
        "Stch(1,.8)": 170,
    }


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("rules", ["SubRels", "AllMotionBlur"])
def test_joint_counts_are_whole_and_symmetric(data: str, rules: str) -> None:
    shares = matrix(data, rules)
    names = SUB if rules == "SubRels" else MOTION
    counts = fired_on(data) if rules == "SubRels" else MOTION_COUNTS[data]
    assert [len(row) for row in shares] == [len(names)] * len(names)
    joint = np.array([[shares[i][j] * counts[i] for j in range(len(names))] for i in range(len(names))])
    assert all(cell.denominator == 1 for cell in joint.ravel())
    assert (joint == joint.T).all()
    assert joint.diagonal().tolist() == counts
    # what any three sets fulfil
    for i, j, k in itertools.combinations(range(len(names)), 3):
        for a, b, c in ((i, j, k), (j, i, k), (k, i, j)):
            assert joint[a, b] + joint[a, c] - joint[b, c] <= joint[a, a]
    least = np.add.outer(counts, counts) - IMAGES[data]
    assert (joint >= np.maximum(least, 0)).all()


@pytest.mark.parametrize("data", DATA)
def test_the_two_matrices_agree_where_they_meet(data: str) -> None:
    sub, motion = matrix(data, "SubRels"), matrix(data, "AllMotionBlur")
    shared = [name for name in SUB if name in MOTION]
    assert shared == ["Motion(11,0)", "Motion(11,100)"]
    for one, other in itertools.product(shared, repeat=2):
        assert sub[SUB.index(one)][SUB.index(other)] == motion[MOTION.index(one)][MOTION.index(other)]
    assert [MOTION_COUNTS[data][MOTION.index(name)] for name in shared] == [
        fired_on(data)[SUB.index(name)] for name in shared
    ]


@pytest.mark.parametrize("data", DATA)
def test_the_restricted_set_is_between_its_greatest_rule_and_the_sum(data: str) -> None:
    counts = fired_on(data)
    assert max(counts) <= histogram(data, "SubRels")[0][AT] <= sum(counts)
    most = (table_two(data)[:, AT] * [0, 1, 2, 3, 4, 30, 61, 91, 121, 122]).sum()
    assert sum(counts) <= most, "all violations of all rules"


def test_metamorphic_failures_are_the_same_beside_ground_truth() -> None:
    found = {name: against_truth(file) for name, file in RULES.items()}
    metamorphic = {name: [b + m for b, m, _ in zip(*parts, strict=True)] for name, parts in found.items()}
    assert metamorphic["AllRels"] == histogram("FLIC-test", "AllRels")[0]
    assert metamorphic["SubRels"] == histogram("FLIC-test", "SubRels")[0]
    assert metamorphic["Grey"][AT] == FLIC_COUNTS[SUB.index("Grey")]
    assert metamorphic["MirrH"][AT] == FLIC_COUNTS[SUB.index("MirrH")]
    for either, grey, mirror in zip(
        histogram("FLIC-test", "GreyAndMirr")[0], metamorphic["Grey"], metamorphic["MirrH"], strict=True
    ):
        assert max(grey, mirror) <= either <= grey + mirror


def test_classic_failures_do_not_depend_on_the_rules() -> None:
    classic = {tuple(b + c for b, _, c in zip(*against_truth(file), strict=True)) for file in RULES.values()}
    assert classic == {(835, 825, 470, 195, 171, 166, 164, 124, 49, 35, 35)}
    both, _, only = against_truth("AllRels")
    # the two images in which nobody is found under any rule: the only ones that no rule catches at 0.01
    assert set(only) == {2} == {int(table_two("FLIC-test")[0, 0])}
    assert both[-1] + only[-1] == 35, "images in which nobody was found"
