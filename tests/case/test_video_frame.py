"""Frames by number are the frames in order."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

import instar.image
import instar.video
from instar.case import Case, read_input
from instar.image import Image, Unreadable, decode_image
from instar.video import count_frames
from tests.missing import unsuited


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clips") / "clip.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 25, (64, 48))
    for i in range(40):
        frame = np.zeros((48, 64, 3), np.uint8)
        frame[:, :, 2] = 6 * i  # red counts the frames
        writer.write(frame)
    writer.release()
    return path


def level(path: Path, frame: int) -> int:
    image, _ = read_input(Case("x", str(path), frame))
    assert isinstance(image, Image)
    return round(float(image.pixels[..., 0].mean()) / 6)


def test_any_order_gives_the_same_frames(clip: Path) -> None:
    for order in (range(40), range(39, -1, -1), range(0, 40, 7), np.random.default_rng(0).permutation(40)):
        assert [level(clip, int(i)) for i in order] == list(order)


def test_frames_in_order_open_the_video_once(clip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    real = instar.video._open_video

    def noted(path: Any) -> Any:
        opened.append(path)
        return real(path)

    monkeypatch.setattr(instar.video, "_open_video", noted)
    monkeypatch.setattr(instar.video._last, "capture", None, raising=False)
    assert [level(clip, i) for i in range(0, 40, 10)] == [0, 10, 20, 30]
    assert len(opened) == 1


def test_threads_do_not_disturb_each_other(clip: Path) -> None:
    found: dict[int, list[int]] = {}

    def read(start: int) -> None:
        found[start] = [level(clip, i) for i in range(start, 40, 4)]

    threads = [threading.Thread(target=read, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {start: list(range(start, 40, 4)) for start in range(4)}


def _child(path: Path, frames: list[int], answers: multiprocessing.Queue[list[int]]) -> None:
    answers.put([level(path, i) for i in frames])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_does_not_take_over_the_parents_video(clip: Path) -> None:
    if "fork" not in multiprocessing.get_all_start_methods():
        unsuited("processes are not forked here")
    context = multiprocessing.get_context("fork")
    assert level(clip, 5) == 5
    answers = context.Queue()
    child = context.Process(target=_child, args=(clip, [6, 7, 8], answers))
    child.start()
    assert answers.get(timeout=600) == [6, 7, 8]
    child.join()
    assert level(clip, 6) == 6


def test_frames_that_are_not_there(clip: Path, tmp_path: Path) -> None:
    assert count_frames(clip) == 40
    assert count_frames(clip, stop=10) == 10
    for frame in (-1, 40, 1000):
        with pytest.raises(Unreadable, match=f"no frame {frame}"):
            read_input(Case("x", str(clip), frame))
    assert level(clip, 3) == 3
    with pytest.raises(Unreadable, match="No such file"):
        read_input(Case("x", str(tmp_path / "none.avi"), 0))
    (tmp_path / "text.avi").write_text("not a video")
    with pytest.raises(Unreadable, match="not a video"):
        read_input(Case("x", str(tmp_path / "text.avi"), 0))
    with pytest.raises(Unreadable, match="not a regular file"):
        read_input(Case("x", str(tmp_path), 0))


def test_a_replaced_video_is_read_anew(clip: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.avi"
    path.write_bytes(clip.read_bytes())
    assert level(path, 0) == 0
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 25, (64, 48))
    for _ in range(3):
        writer.write(np.full((48, 64, 3), 120, np.uint8))
    writer.release()
    assert level(path, 1) == 20


def test_the_decoder_without_rgb_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenCV before 4.11 decodes to BGR only."""
    data = cv2.imencode(".jpg", np.full((8, 8, 3), (0, 0, 200), np.uint8))[1].tobytes()
    now = decode_image(data, "red").pixels
    monkeypatch.setattr(instar.image, "_RGB", None)
    np.testing.assert_array_equal(decode_image(data, "red").pixels, now)
    assert now[0, 0, 0] > 190
