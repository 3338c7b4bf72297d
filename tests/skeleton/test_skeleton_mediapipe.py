"""The tables against MediaPipe itself: its connections, its names, and what it finds in a mirror."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from instar.skeleton import skeleton
from tests.missing import astronaut, module


def mediapipe(part: str) -> Any:
    return module(f"mediapipe.python.solutions.{part}")


def as_edges(connections: object) -> set[frozenset[int]]:
    return {frozenset(edge) for edge in connections}  # type: ignore[attr-defined]


def test_names_and_order() -> None:
    assert skeleton("mediapipe-pose-33").landmarks == tuple(m.name.lower() for m in mediapipe("pose").PoseLandmark)
    assert skeleton("hand-21").landmarks == tuple(m.name.lower() for m in mediapipe("hands").HandLandmark)


def test_edges() -> None:
    assert as_edges(skeleton("mediapipe-pose-33").edges) == as_edges(mediapipe("pose").POSE_CONNECTIONS)
    assert as_edges(skeleton("hand-21").edges) == as_edges(mediapipe("hands").HAND_CONNECTIONS)
    assert as_edges(skeleton("face-mesh-478").edges) == as_edges(mediapipe("face_mesh_connections").FACEMESH_CONTOURS)


@pytest.mark.parametrize(
    ("group", "connections"),
    [
        ("oval", "FACE_OVAL"),
        ("lips", "LIPS"),
        ("left_eye", "LEFT_EYE"),
        ("right_eye", "RIGHT_EYE"),
        ("left_eyebrow", "LEFT_EYEBROW"),
        ("right_eyebrow", "RIGHT_EYEBROW"),
    ],
)
def test_face_groups(group: str, connections: str) -> None:
    [(_, chosen)] = skeleton("face-mesh-478").select(f"face.{group}")
    lines = getattr(mediapipe("face_mesh_connections"), f"FACEMESH_{connections}")
    assert set(chosen) == {i for edge in lines for i in edge}


@pytest.mark.parametrize(("side", "centre"), [("left", 473), ("right", 468)])
def test_irises(side: str, centre: int) -> None:
    [(_, chosen)] = skeleton("face-mesh-478").select(f"face.{side}_iris")
    rim = getattr(mediapipe("face_mesh_connections"), f"FACEMESH_{side.upper()}_IRIS")
    assert set(chosen) == {centre} | {i for edge in rim for i in edge}


def test_face_pairs_keep_the_mesh() -> None:
    """Mirrored, the mesh is itself again, but for three cells a side whose diagonals differ."""
    swap = skeleton("face-mesh-468").swap
    edges = as_edges(mediapipe("face_mesh_connections").FACEMESH_TESSELATION)
    mirrored = {frozenset(int(swap[i]) for i in edge) for edge in edges}
    assert len(edges - mirrored) == 6


@pytest.fixture(scope="module")
def faces() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Landmarks (478, 3) of a photo, and of its mirror image carried back, in pixels of the photo."""
    image = astronaut().pixels
    height, width = image.shape[:2]

    def found(picture: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
        with mediapipe("face_mesh").FaceMesh(static_image_mode=True, refine_landmarks=True) as model:
            [face] = model.process(np.ascontiguousarray(picture)).multi_face_landmarks
        return np.array([(p.x * width, p.y * height, p.z * width) for p in face.landmark])

    straight, mirrored = found(image), found(image[:, ::-1])
    mirrored[:, 0] = width - mirrored[:, 0]
    return straight, mirrored


def test_face_pairs_derived_again(faces: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]) -> None:
    """Matched one to one by place alone, the landmarks of the two images give the table, point for point.

    The wheel has no canonical face model to derive the pairs from; the model's own answers say the same.
    """
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    straight, mirrored = faces
    swap = skeleton("face-mesh-478").swap
    for block in (slice(0, 468), slice(468, 478)):  # irises lie on top of the mesh, and are apart from it
        _, match = linear_sum_assignment(cdist(straight[block], mirrored[block]))
        assert np.array_equal(match + block.start, swap[block])


def test_mirrored_face_agrees(faces: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]) -> None:
    straight, mirrored = faces
    off = np.hypot(*(straight - mirrored[skeleton("face-mesh-478").swap])[:, :2].T)
    assert off.max() < 4  # pixels; the eyes are 43 apart
    assert off[468:].max() < 1  # a rim is 4 from its centre: a wrong point would be 6 or more off
