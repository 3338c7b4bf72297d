"""The built-in skeletons are what they say: symmetric, complete, in the order of their sources."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from instar.skeleton import Skeleton, skeleton, skeletons

SIZES = {
    "ap-10k": 17,
    "coco-17": 17,
    "face-mesh-468": 468,
    "face-mesh-478": 478,
    "flic-11": 11,
    "hand-21": 21,
    "lsp-14": 14,
    "mediapipe-holistic": 553,
    "mediapipe-holistic-468": 543,
    "mediapipe-pose-33": 33,
}

# On the midline of a body; a lone hand has no left and right of its own.
MIDLINE = {"nose", "neck", "head_top", "root_of_tail"}


def other_side(name: str) -> str:
    """left_wrist → right_wrist, left_hand.wrist → right_hand.wrist, mouth_left → mouth_right."""
    table = {"left": "right", "right": "left"}
    head, dot, tail = name.partition(".")
    return "_".join(table.get(word, word) for word in head.split("_")) + dot + tail


def test_all_are_there() -> None:
    assert {name: len(skeleton(name).landmarks) for name in skeletons()} == SIZES


@pytest.mark.parametrize("name", SIZES)
def test_is_called_as_its_file_and_loaded_once(name: str) -> None:
    assert skeleton(name).name == name
    assert skeleton(name) is skeleton(name)


@pytest.mark.parametrize("name", SIZES)
def test_swap_is_an_involution(name: str) -> None:
    s = skeleton(name)
    assert s.swap.shape == (len(s.landmarks),)
    assert s.swap.dtype == np.intp
    assert np.array_equal(s.swap[s.swap], np.arange(len(s.landmarks)))
    assert not s.swap.flags.writeable


@pytest.mark.parametrize("name", SIZES)
def test_left_goes_right_and_the_rest_stays(name: str) -> None:
    s = skeleton(name)
    for i, landmark in enumerate(s.landmarks):
        if landmark.startswith("face."):
            continue
        assert s.landmarks[s.swap[i]] == other_side(landmark)
        if s.swap[i] == i and name != "hand-21":
            assert landmark in MIDLINE


@pytest.mark.parametrize("name", SIZES)
def test_symmetric_in_all_it_says(name: str) -> None:
    """Edges are drawn on both sides, and no group favours the landmarks of one unless it says so."""
    s = skeleton(name)
    edges = {frozenset(edge) for edge in s.edges}
    assert len(edges) == len(s.edges)
    assert {frozenset(int(s.swap[i]) for i in edge) for edge in edges} == edges
    for group in s.groups:
        twin = group.replace("left", "#").replace("right", "left").replace("#", "right")
        mine = {i for _, chosen in s.select(group) for i in chosen}
        theirs = {i for _, chosen in s.select(twin) for i in chosen}
        assert {int(s.swap[i]) for i in mine} == theirs


@pytest.mark.parametrize("name", SIZES)
def test_parts_hold_every_landmark_once(name: str) -> None:
    s = skeleton(name)
    assert sorted(i for part in s.parts for i in part.landmarks) == list(range(len(s.landmarks)))
    for part in s.parts:
        assert {i for length in (*part.lengths, *part.spans) for end in length for i in end} <= set(part.landmarks)


def named_lengths(s: Skeleton, part: str) -> list[list[list[str]]]:
    found = next(p for p in s.parts if p.name == part)
    return [[[s.landmarks[i] for i in end] for end in length] for length in found.lengths]


@pytest.mark.parametrize("name", ["mediapipe-holistic", "mediapipe-pose-33", "coco-17", "flic-11", "lsp-14"])
def test_bodies_are_measured_from_shoulder_to_shoulder(name: str) -> None:
    assert named_lengths(skeleton(name), "body") == [[["left_shoulder"], ["right_shoulder"]]]


@pytest.mark.parametrize("name", ["mediapipe-holistic", "mediapipe-pose-33", "coco-17", "flic-11", "lsp-14"])
def test_bodies_span_their_hips_and_both_sides_of_the_trunk(name: str) -> None:
    bones = skeleton(name)
    spans = next(part.spans for part in bones.parts if part.name == "body")
    assert [tuple(bones.landmarks[end[0]] for end in span) for span in spans] == [
        ("left_hip", "right_hip"),
        ("left_shoulder", "left_hip"),
        ("right_shoulder", "right_hip"),
    ]


def test_hands_are_measured_from_wrist_to_middle_finger() -> None:
    assert skeleton("hand-21").parts[0].lengths == (((0,), (9,)),)
    for side in ("left_hand", "right_hand"):
        assert named_lengths(skeleton("mediapipe-holistic"), side) == [
            [[f"{side}.wrist"], [f"{side}.middle_finger_mcp"]]
        ]


def test_faces_are_measured_from_iris_to_iris_else_between_the_eyes() -> None:
    corners = ((362, 263), (33, 133))
    assert skeleton("face-mesh-478").parts[0].lengths == (((468,), (473,)), corners)
    assert skeleton("face-mesh-468").parts[0].lengths == (corners,)


def test_holistic_is_body_hands_face_in_this_order() -> None:
    s = skeleton("mediapipe-holistic")
    assert s.default == "body"
    assert [(p.name, p.landmarks[0], len(p.landmarks)) for p in s.parts] == [
        ("body", 0, 33),
        ("left_hand", 33, 21),
        ("right_hand", 54, 21),
        ("face", 75, 478),
    ]
    assert [part.name for part, _ in s.select("hands")] == ["left_hand", "right_hand"]
    assert s.swap[s.index("left_hand.thumb_tip")] == s.index("right_hand.thumb_tip")


@pytest.mark.parametrize("name", ["mediapipe-pose-33", "mediapipe-holistic", "mediapipe-holistic-468"])
def test_flic_in_mediapipe(name: str) -> None:
    mine, theirs = skeleton("flic-11").mapping(skeleton(name))
    assert mine.tolist() == list(range(11))
    assert theirs.tolist() == [11, 13, 15, 12, 14, 16, 23, 24, 2, 5, 0]


def test_coco_and_lsp_in_mediapipe() -> None:
    pose = skeleton("mediapipe-pose-33")
    assert skeleton("coco-17").mapping(pose)[1].tolist() == [
        0,
        2,
        5,
        7,
        8,
        11,
        12,
        13,
        14,
        15,
        16,
        23,
        24,
        25,
        26,
        27,
        28,
    ]
    mine, theirs = skeleton("lsp-14").mapping(pose)
    assert mine.tolist() == list(range(12))
    assert theirs.tolist() == [28, 26, 24, 23, 25, 27, 16, 14, 12, 11, 13, 15]


def test_faces_map_onto_holistic() -> None:
    mine, theirs = skeleton("face-mesh-468").mapping(skeleton("mediapipe-holistic"))
    assert mine.tolist() == list(range(468))
    assert theirs.tolist() == list(range(75, 75 + 468))


def test_holistic_loads_without_the_heavy_libraries() -> None:
    code = (
        "import sys, numpy; from instar.skeleton import skeleton\n"
        "skeleton('mediapipe-holistic')\n"
        "print(*{'cv2', 'scipy', 'mediapipe', 'polars', 'pydantic', 'torch'} & set(sys.modules))"
    )
    heavy = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert heavy == []


def test_the_documented_examples_are_the_files() -> None:
    docs = Path(__file__).parents[2] / "docs" / "skeletons.md"
    folder = Path(sys.modules["instar.skeleton"].__file__ or "").parent / "skeletons"
    for name in ("ap-10k", "mediapipe-holistic"):
        assert (folder / f"{name}.toml").read_text("utf-8") in docs.read_text("utf-8")
