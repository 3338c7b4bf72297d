"""Frames of videos, as images."""

from __future__ import annotations

import os
import stat
import threading
from dataclasses import dataclass
from pathlib import Path

import cv2

from instar.image import Image, bgr_to_rgb, quiet_opencv
from instar.reading import Unreadable, place_of, too_many_pixels


@dataclass(slots=True)
class _Capture:
    """An open video and the number of the frame it reads next."""

    key: tuple[str, int, int, int]
    video: cv2.VideoCapture
    at: int = 0


_last = threading.local()
_inherited: list[_Capture] = []
_SIDES = cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT


def video_frame(path: str, frame: int) -> Image:
    """One frame of a video, counted from its start by decoding.

    Frames are never sought: in videos with a damaged or irregular stream OpenCV then answers with other
    frames than in order, and an image must not depend on what was read before it. The last video stays
    open, per thread, so that frames in ascending order cost one decoding of the video.
    """
    if frame < 0:
        raise Unreadable(f"{path}: there is no frame {frame}")
    try:
        status = Path(place_of(path)).stat()
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable(f"{path}: not a regular file")
    key = (path, status.st_mtime_ns, status.st_size, os.getpid())
    capture: _Capture | None = getattr(_last, "capture", None)
    if capture is not None and capture.key[-1] != os.getpid():
        # A forked process shares its parent's file offset, so must not go on with the parent's capture; nor
        # close it, which would wait for decoding threads that only the parent has.
        _inherited.append(capture)
        capture = None
    _last.capture = None  # nobody goes on with a capture that failed
    with quiet_opencv:
        if capture is None or capture.key != key or capture.at > frame:
            capture = _Capture(key, _open_video(path))
        while capture.at < frame:
            if not capture.video.grab():
                raise Unreadable(f"{path}: there is no frame {frame}, the video ends after {capture.at}")
            capture.at += 1
        ok, pixels = capture.video.read()
    rgb = bgr_to_rgb(pixels) if ok else None
    if rgb is None:
        raise Unreadable(f"{path}: there is no frame {frame}, or it is damaged")
    capture.at += 1
    _last.capture = capture
    return Image(rgb)


def _open_video(path: str) -> cv2.VideoCapture:
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")  # FFmpeg's own complaints; the user's setting wins
    video = cv2.VideoCapture(str(place_of(path)))
    if not video.isOpened():
        raise Unreadable(f"{path}: not a video OpenCV can read, or damaged")
    if reason := too_many_pixels(*(round(video.get(side)) for side in _SIDES)):
        raise Unreadable(f"{path}: its frames have {reason}")
    return video


def count_frames(path: str | Path, *, stop: int | None = None) -> int:
    """How many frames of a video can be decoded, up to `stop`; what its header says is often not true."""
    with quiet_opencv:
        video = _open_video(str(path))
        count = 0
        while (stop is None or count < stop) and video.grab():
            count += 1
        video.release()
    return count
