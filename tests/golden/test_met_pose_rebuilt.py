"""Our analyses return the golden numbers on verdicts made to have the golden counts."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest

from instar.analysis import any_rule, classic_vs_metamorphic, coverage, curve, default_bins, rates, violated_counts
from instar.analysis.severities import OK, Severities
from instar.tasks.met_pose.suite import PAPER_BINS
from tests.golden.met_pose import (
    GRID,
    IMAGES,
    MOTION_COUNTS,
    RULES,
    SUB,
    against_truth,
    fired_on,
    histogram,
    matrix,
    table_two,
)


def frame(severities: dict[str, np.ndarray]) -> pl.DataFrame:
    """Verdicts from each rule's severities, one per image."""
    images = len(next(iter(severities.values())))
    blank = pl.DataFrame({"case": pl.Series(range(images), dtype=pl.Int64).cast(pl.String)}).with_columns(
        target=pl.lit("0"), kind=pl.lit(None, pl.String), reason=pl.lit(None, pl.String), status=pl.lit("ok")
    )
    return pl.concat(
        [blank.with_columns(rule=pl.lit(rule), severity=pl.Series(values)) for rule, values in severities.items()]
    )


def verdicts_of(data: str, severities: dict[str, np.ndarray]) -> pl.DataFrame | Severities:
    """Verdicts; of PHOENIX's 55,775 images as the matrix that analyses make of them, which took half a minute."""
    if data == "FLIC-test":
        return frame(severities)
    severity = np.stack([*severities.values()])
    status = np.full(severity.shape, OK, np.uint8)
    cases = pl.Series(range(severity.shape[1]), dtype=pl.Int64).cast(pl.String)
    return Severities(tuple(severities), cases, severity, status, np.zeros_like(status), ("",))


def pair(one: int, other: int, both: int, images: int) -> dict[str, np.ndarray]:
    """Two rules at a threshold of 0.2: violated exactly at it, kept just below it."""
    place = np.arange(images)
    second = (place < both) | ((place >= one) & (place < one + other - both))
    return {"one": np.where(place < one, 0.2, 0.19), "other": np.where(second, 0.2, 0.0)}


@pytest.mark.parametrize("data", IMAGES)
@pytest.mark.parametrize("rules", ["SubRels", "AllMotionBlur"])
def test_every_pair_of_the_matrices(data: str, rules: str) -> None:
    shares = matrix(data, rules)
    counts = fired_on(data) if rules == "SubRels" else MOTION_COUNTS[data]
    # PHOENIX without most of the images that violate nothing: 55,775 for each pair would take a minute
    images = IMAGES[data] if data == "FLIC-test" else sum(sorted(counts)[-2:])
    for i, j in itertools.combinations(range(len(counts)), 2):
        both = int(shares[i][j] * counts[i])
        verdicts = verdicts_of(data, pair(counts[i], counts[j], both, images))
        limits = {"one": 0.2, "other": 0.2}
        found = {(of, by): row for of, by, *row in coverage(verdicts, limits).iter_rows()}
        assert found["one", "other"] == [float(shares[i][j]), both, counts[i]]
        assert found["other", "one"] == [float(shares[j][i]), both, counts[j]]
        assert found["one", "one"][0] == found["other", "other"][0] == 1
        if data == "FLIC-test":
            assert dict(rates(verdicts, limits).select("rule", "violated").iter_rows()) == {
                "one": counts[i],
                "other": counts[j],
            }
            assert any_rule(verdicts, limits)["violated"] == counts[i] + counts[j] - both


def test_grey_or_mirror_as_printed() -> None:
    names = {"one": SUB.index("Grey"), "other": SUB.index("MirrH")}
    counts = fired_on("FLIC-test")
    both = int(matrix("FLIC-test", "SubRels")[names["one"]][names["other"]] * counts[names["one"]])
    verdicts = frame(pair(counts[names["one"]], counts[names["other"]], both, 835))
    assert any_rule(verdicts, {"one": 0.2, "other": 0.2})["rate"] == 360 / 835


@pytest.mark.parametrize("data", IMAGES)
@pytest.mark.parametrize("rules", ["AllRels", "SubRels", "GreyAndMirr"])
def test_the_curves_of_figure_four(data: str, rules: str) -> None:
    golden = histogram(data, rules)[0]
    found = curve(frame({"any": worst_errors(golden, IMAGES[data])}), GRID)
    assert found["violated"].to_list() == golden
    assert found["rate"].to_list() == [number / IMAGES[data] for number in golden]


def worst_errors(counts: list[int], images: int) -> np.ndarray:
    """Severities of which `counts` are at or above the thresholds of the grid, each exactly at one."""
    severity = np.zeros(images)
    for threshold, number in zip(GRID, counts, strict=True):
        severity[:number] = threshold
    return severity


def edges(column: np.ndarray, images: int) -> tuple[int, int, int]:
    """Images with exactly 30, 61 and 91 violated rules, from which its bins come out."""
    twice = int(column.sum()) - images
    for at_91 in range(min(twice, int(min(column[7:9]))) + 1):
        for at_61 in range(min(twice - at_91, int(column[7]) - at_91) + 1):
            at_30 = twice - at_91 - at_61
            if at_30 <= column[5] and at_30 + at_61 <= column[6]:
                return at_30, at_61, at_91
    raise AssertionError("no such images")


@pytest.mark.parametrize("data", IMAGES)
def test_table_two(data: str) -> None:
    golden, images = table_two(data), IMAGES[data]
    for threshold, column in zip(GRID, golden.T, strict=True):
        if data == "phoenix-dev" and threshold > 0.1:
            continue  # 122 rules × 55,775 images; the other columns share no images between bins
        at_30, at_61, at_91 = edges(column, images)
        numbers = np.repeat(
            [0, 1, 2, 3, 4, 5, 30, 45, 61, 75, 91, 110, 122],
            [
                *column[:5],
                column[5] - at_30,
                at_30,
                column[6] - at_30 - at_61,
                at_61,
                column[7] - at_61 - at_91,
                at_91,
                column[8] - at_91,
                column[9],
            ],
        )
        assert len(numbers) == images
        verdicts = verdicts_of(data, {f"rule({n})": np.where(numbers > n, threshold, 0.0) for n in range(122)})
        ours = violated_counts(verdicts, (threshold,))
        assert tuple(ours.select("first", "last").rows()) == default_bins(122)
        shared = np.array([0, 0, 0, 0, 0, 0, at_30, at_61, at_91, 0])
        assert ours["cases"].to_list() == (column - shared).tolist()
        assert ours["cases"].sum() == images
        above = np.nextafter(threshold, np.inf)  # the original counts what is above, where all else has "at least"
        published = verdicts_of(data, {f"rule({n})": np.where(numbers > n, above, 0.0) for n in range(122)})
        found = violated_counts(published, (threshold,), PAPER_BINS, strict=True)
        assert found["cases"].to_list() == column.tolist()
        if np.isfinite(threshold):
            assert violated_counts(verdicts, (threshold,), PAPER_BINS, strict=True)["cases"][0] == images


@pytest.mark.parametrize("rules", RULES.values())
def test_figure_six(rules: str) -> None:
    both, metamorphic, classic = against_truth(rules)
    for threshold, two, one, other in zip(GRID, both, metamorphic, classic, strict=True):
        place = np.arange(835)
        truth = np.where((place < two) | (place >= 835 - other), threshold, 0.0)
        rule = np.where(place < two + one, threshold, 0.0)
        found = classic_vs_metamorphic(frame({"truth": truth}), frame({"rule": rule}), (threshold,))
        assert found.row(0)[:6] == (threshold, 835, other, one, two, 835 - two - one - other)
        assert found["recall"].item() == (two / (two + other) if two + other else None)
        assert found["precision"].item() == (two / (two + one) if two + one else None)
