from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from instar.case import read_input
from instar.datasets import dataset
from instar.image import Image


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    path = tmp_path / "clip.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 25, (32, 24))
    for i in range(30):
        writer.write(np.full((24, 32, 3), 8 * i, np.uint8))
    writer.release()
    return path


def test_frames(clip: Path) -> None:
    found = dataset(clip)
    cases = list(found.cases())
    assert [case.id for case in cases] == [f"clip.avi#{i:06d}" for i in range(30)]
    images = [read_input(case)[0] for case in cases]
    assert [round(image.pixels.mean() / 8) for image in images if isinstance(image, Image)] == list(range(30))
    assert found.notes == ()


def test_stride_start_and_stop(clip: Path) -> None:
    found = dataset(f'video("{clip}", stride=10, start=5, stop=26)')
    assert [case.frame for case in found.cases()] == [5, 15, 25]
    assert found.notes == ("every 10th frame: 3 of 21",)
    assert dataset(found.name).name == found.name == f'video("{clip}", stride=10, start=5, stop=26)'
    assert dataset(f'video("{clip}", stop=99)').notes == ("the video ends after 30 frames, before 99",)
    with pytest.raises(ValueError, match="no frame from 30 on; 30 can be decoded"):
        dataset(f'video("{clip}", start=30)')


def test_a_video_whose_header_promises_more(clip: Path) -> None:
    """Half a file: the header says 30 frames."""
    data = clip.read_bytes()
    half = clip.with_name("half.avi")
    half.write_bytes(data[: len(data) // 2])
    frames = [case.frame for case in dataset(half).cases()]
    assert 0 < len(frames) < 30
    for case in dataset(half).cases():
        read_input(case)


def test_what_is_no_video(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="not a video"):
        dataset(tmp_path / "a.mp4")
