"""Mutants: they expose what they should, and their labels say what is in them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from instar.case import Case
from instar.datasets import Dataset
from instar.outputs.detections import Detections
from instar.tasks.object_relevance.repair import choose, exposing, mutants
from tests.tasks.object_relevance.repair.squares import SIZE, found, in_memory, pixels_of, ran, remembering, truth_of


def test_a_right_detector_has_no_mutants(tmp_path: Path) -> None:
    run = ran(found, in_memory(), tmp_path)
    assert exposing(run).is_empty()


def test_labels_are_right_for_each_kind(tmp_path: Path) -> None:
    data = in_memory()
    run = ran(remembering(), data, tmp_path)
    available = exposing(run)
    assert set(available["rule"]) == {
        "erase(1) => presence(gone)",
        "background_noise(16) => presence(kept)",
        "background_noise(64) => presence(kept)",
    }
    assert available.height == 18, "each of six pictures breaks each of three rules"
    sources = {case.id: case for case in data.cases()}
    for one in mutants(run, available, data):
        source = sources[str(one.origin["case"])]
        truth, pixels = truth_of(source), pixels_of(source)
        changed = (one.image.pixels != pixels).any(2)
        inside = np.zeros((SIZE[1], SIZE[0]), bool)
        for x0, y0, x1, y1 in truth.boxes.astype(int):
            inside[y0:y1, x0:x1] = True
        if str(one.origin["rule"]).startswith("erase"):
            assert len(one.truth) == 0, "what is erased has no label"
            assert not changed[~inside].any() and changed[inside].mean() > 0.9
        else:
            assert one.truth.labels == truth.labels and np.array_equal(one.truth.boxes, truth.boxes)
            assert not changed[inside].any() and changed[~inside].mean() > 0.5


def test_objects_that_were_not_erased_keep_their_labels(tmp_path: Path) -> None:
    """One object lies outside the frame: it is not erased, so it is not gone."""
    (one,) = in_memory(1).cases()
    seen = truth_of(one)
    truth = Detections.from_xyxy([*seen.boxes, [-9, -9, -1, -1]], [*seen.labels, "red"], ids=["a", "b", "c"])
    data = Dataset("one", "", lambda: iter([Case(one.id, input=one.input, truth=truth)]), truth="detections")
    run = ran(remembering(1), data, tmp_path)
    (made,) = mutants(run, exposing(run).filter(pl.col("rule").str.starts_with("erase")), data)
    assert made.truth.ids == ("c",)


def test_labels_move_with_the_picture(tmp_path: Path) -> None:
    data = in_memory(2)
    run = ran(
        lambda pixels: Detections.from_xyxy([], []) if (pixels == 128).all(2).mean() < 0.3 else remembering(2)(pixels),
        data,
        tmp_path,
        "background_noise(64) | mirror(h) => presence(kept)",
    )
    for made in mutants(run, exposing(run), data):
        truth = next(truth_of(case) for case in data.cases() if case.id == made.origin["case"])
        mirrored = np.stack(
            [SIZE[0] - truth.boxes[:, 2], truth.boxes[:, 1], SIZE[0] - truth.boxes[:, 0], truth.boxes[:, 3]], 1
        )
        assert np.allclose(made.truth.boxes, mirrored)


def test_the_draw_is_one_that_exposes(tmp_path: Path) -> None:
    """The detector is blind to the first of three draws only: two of three are a violation, seen from the second on."""
    asked: list[int] = []
    blind = remembering(1)

    def late(pixels: np.ndarray) -> Detections:
        asked.append(len(asked))
        if len(asked) <= 2:  # the source and the first draw
            return found(pixels)
        return blind(pixels)

    data = in_memory(1)
    run = ran(late, data, tmp_path, "background_noise(16) => presence(kept)")
    assert run.verdicts()["severity"].to_list() == pytest.approx([2 / 3, 2 / 3])
    available = exposing(run)
    assert available.rows() == [("000.png", "background_noise(16) => presence(kept)", 1)]
    (made,) = mutants(run, available, data)
    assert len(blind(made.image.pixels)) == 0, "the very follow-up that it failed on"


def test_exposing_draws_really_expose(tmp_path: Path) -> None:
    data = in_memory()
    system = remembering()
    run = ran(system, data, tmp_path)
    for made in mutants(run, exposing(run), data):
        said = system(made.image.pixels)
        assert len(said) == (2 if str(made.origin["rule"]).startswith("erase") else 0)


def frame(cases: int, rules: int) -> pl.DataFrame:
    rows = [(f"c{c}", f"r{r}", 0) for c in range(cases) for r in range(rules)]
    return pl.DataFrame(rows, schema={"case": pl.String, "rule": pl.String, "draw": pl.Int32}, orient="row")


@pytest.mark.parametrize("share", [0.01, 0.15, 0.27, 0.5])
def test_the_share_is_kept(share: float) -> None:
    chosen = choose(frame(100, 5), 100, share=share)
    count = chosen.mutants.height
    assert count / (100 + count) <= share + 1e-12
    assert (count + 1) / (101 + count) > share, "and no mutant less than fits"
    assert chosen.available == 500
    assert chosen.counts["chosen"].sum() == count


def test_mutants_are_spread_over_rules_and_images() -> None:
    chosen = choose(frame(100, 5), 100, share=0.5)
    assert chosen.counts["chosen"].to_list() == [20] * 5
    assert chosen.mutants["case"].n_unique() == 100, "no image twice before every image once"


def test_a_rule_with_few_mutants_gives_its_turns_to_others() -> None:
    few = pl.concat([frame(100, 1), frame(3, 2).filter(pl.col("rule") == "r1")])
    assert dict(choose(few, 100, share=0.2).counts.select("rule", "chosen").iter_rows()) == {"r0": 22, "r1": 3}


def test_the_choice_depends_on_the_seed_alone() -> None:
    available = frame(40, 4)
    first = choose(available, 100, seed=1).mutants
    again = choose(available.sample(fraction=1, shuffle=True, seed=3), 100, seed=1).mutants
    assert first.sort("case", "rule").equals(again.sort("case", "rule"))
    assert not first.equals(choose(available, 100, seed=2).mutants)


def test_fewer_than_allowed_are_all_taken() -> None:
    assert choose(frame(2, 2), 1000).mutants.height == 4
    assert choose(frame(0, 0), 1000).mutants.height == 0


def test_another_image_or_label_is_refused(tmp_path: Path) -> None:
    run = ran(remembering(), in_memory(), tmp_path)
    available = exposing(run)
    (first, *rest) = in_memory().cases()
    truth = truth_of(first)
    other = Detections.from_xyxy(truth.boxes + 1, truth.labels, ids=truth.ids)
    for case, why in (
        (Case(first.id, input=rest[0].input, truth=first.truth), "not the image"),
        (Case(first.id, input=first.input, truth=other), "labels are not those"),
    ):
        with pytest.raises(ValueError, match=why):
            list(mutants(run, available, Dataset("x", "", partial(iter, [case, *rest]))))


def test_a_run_without_presence_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="object-relevance"):
        exposing(ran(found, in_memory(), tmp_path, "mirror(h)"))
