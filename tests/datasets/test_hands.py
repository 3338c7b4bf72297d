"""The order of landmarks in hands, in real pictures of four datasets and in files of one's own."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from instar.datasets import dataset
from instar.outputs.poses import Poses
from instar.skeleton import skeleton

DOCS = Path(__file__).resolve().parents[2] / "docs" / "datasets.md"
NAMED_AFTER_NUMBERS = [
    "wrist",
    *(
        f"{finger}{k}"
        for finger in ("thumb", "forefinger", "middle_finger", "ring_finger", "pinky_finger")
        for k in (1, 2, 3, 4)
    ),
]


@pytest.mark.parametrize("name", ["freihand", "onehand10k", "panoptic", "rhd"])
def test_real_thumbs_begin_at_the_wrist(shared: Path, name: str) -> None:
    thumbs = 0
    for case in dataset(shared / "hands" / name / f"test_{name}.json").cases():
        assert isinstance(case.truth, Poses)
        for hand in case.truth.points:
            base, tip, wrist = (hand[skeleton("hand-21").index(each)] for each in ("thumb_cmc", "thumb_tip", "wrist"))
            if np.isfinite([base, tip, wrist]).all():
                assert np.linalg.norm(tip - wrist) > np.linalg.norm(base - wrist)
                thumbs += 1
    assert thumbs


def test_real_fingers_that_are_stretched_begin_at_the_wrist(shared: Path) -> None:
    """In this picture of RHD, whose file names the tip forefinger1, all fingers but the little one are stretched."""
    case = next(dataset(shared / "hands" / "rhd" / "test_rhd.json").cases())
    assert (case.id, isinstance(case.truth, Poses)) == ("00111.png", True)
    hand = case.truth.points[0]  # type: ignore[attr-defined]
    for finger in ("thumb", "index_finger", "middle_finger", "ring_finger"):
        chain = [skeleton("hand-21").index(each) for each in skeleton("hand-21").groups[finger]]
        assert (np.diff(np.linalg.norm(hand[chain] - hand[0], axis=1)) > 0).all()


@pytest.mark.parametrize(
    ("description", "names", "turned"),
    [
        ("RHD", NAMED_AFTER_NUMBERS, True),
        ("RHD", list(skeleton("hand-21").landmarks), False),
        ("FreiHand", NAMED_AFTER_NUMBERS, False),
        (None, NAMED_AFTER_NUMBERS, False),
    ],
)
def test_rhd_is_put_in_order_unless_its_names_are_ours(
    tmp_path: Path, picture: Callable[..., Path], description: str | None, names: list[str], turned: bool
) -> None:
    picture(tmp_path / "a.png")
    content = {
        "info": {"description": description} if description else "none",
        "images": [{"id": 1, "file_name": "a.png", "width": 16, "height": 12}],
        "categories": [{"id": 1, "name": "hand", "keypoints": names}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "keypoints": [[k, 0, 1] for k in range(21)]}],
    }
    (tmp_path / "hands.json").write_text(json.dumps(content))
    found = dataset(tmp_path / "hands.json")
    (case,) = found.cases()
    assert isinstance(case.truth, Poses)
    order = [0, 4, 3, 2, 1, 8, 7, 6, 5, 12, 11, 10, 9, 16, 15, 14, 13, 20, 19, 18, 17] if turned else list(range(21))
    assert (case.truth.points[0, :, 0] - 0.5).tolist() == order
    assert any("from its tip" in note for note in found.notes) == turned


def test_the_recipe_for_rhd(here: Path, picture: Callable[..., Path]) -> None:
    """Two hands of one sample, as RHD lists them: the left one first, and each finger from its tip."""
    recipe = re.search(r"```python\n(# rhd\.py\n.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    assert recipe is not None
    marks = np.column_stack([np.arange(42), np.arange(42) + 100, np.arange(42) != 5]).astype(np.float32)
    hidden = np.zeros((42, 3), np.float32)
    hidden[:21] = marks[:21]
    (here / "anno_evaluation.pickle").write_bytes(pickle.dumps({0: {"uv_vis": marks}, 7: {"uv_vis": hidden}}))
    for number in (0, 7):
        picture(here / "color" / f"{number:05d}.png", (320, 320))
    exec(recipe[1], {})
    found = dataset(here / "rhd.json")
    both, one = (case.truth for case in found.cases())
    assert isinstance(both, Poses)
    assert isinstance(one, Poses)
    assert (len(both), len(one), found.notes) == (2, 1, ())
    tip, base = (skeleton("hand-21").index(each) for each in ("index_finger_tip", "index_finger_mcp"))
    assert (both.points[:, [tip, base], 0] - 0.5).tolist() == [[5, 8], [26, 29]]
    assert both.visibility[:, [tip, base]].tolist() == [[0.5, 1], [1, 1]]
