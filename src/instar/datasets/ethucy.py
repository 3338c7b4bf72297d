"""ETH and UCY: pedestrians in metres, as text with frame, id, x, y."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Unpack

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.datasets.dataset import PATH, Dataset, DatasetFamily, Distinct, counted, existing, missing, nfc, shortened
from instar.datasets.windowing import HORIZON, Ground, Horizon, Scenes, Window, frame_to, native_step, plain
from instar.reading import file_text
from instar.spelling import Parameter
from instar.warp import Warp

_SECONDS = 0.4
"""Both were annotated at 2.5 positions per second, whatever the frames between two of them are called."""
_METRES_PER_PIXEL = 0.05
_MARGIN = 2.0
"""Metres around the positions, where there is no map."""
_EVEN = 0.01
"""A pixel whose two sides differ by more than this has no one length in metres."""

Floats = npt.NDArray[np.float64]
_Place = Callable[[pl.DataFrame, Path, str], tuple[Ground, Floats]]
"""From what was seen, in metres, and its file and scene: the ground, and the positions in its pixels."""


def _is_track_text(start: str) -> bool:
    """Whether a text begins with lines of four numbers each."""
    lines = [line for line in start.splitlines() if line.strip() and not line.startswith("#")][:5]
    return bool(lines) and all(_numbers(line) is not None for line in lines)


def _numbers(line: str) -> tuple[float, float, float, float] | None:
    parts = line.split()
    try:
        frame, track, x, y = (float(part) for part in parts)
    except ValueError:
        return None
    return frame, track, x, y


def _open(name: str, *, path: str, map: str, homography: str, **window: Unpack[Window]) -> Dataset:
    place_of_tracks = Path(path).absolute()
    scenes = Scenes(path, Horizon.of(**window))
    if bool(map) != bool(homography):
        have, lack = ("map", "homography") if map else ("homography", "map")
        raise ValueError(f"{path}: {have}= was given without {lack}=; both together carry positions onto a class map")
    place: _Place = _on_nothing
    if map:
        place = partial(_on_map, existing(map, "class map", Path.is_file), _homography(Path(homography)))
    if place_of_tracks.is_file():
        _read(place_of_tracks, place_of_tracks.name, place_of_tracks.stem, place, scenes)
        return scenes.dataset(name, place_of_tracks.parent)
    if not place_of_tracks.is_dir():
        raise missing(Path(path))
    distinct, others = Distinct(), []
    for file in sorted(place_of_tracks.rglob("*.txt")):
        inner = file.relative_to(place_of_tracks)
        if any(part.startswith(".") for part in inner.parts):
            continue
        if not file.is_file() or (file.stat().st_size and not _is_track_text(_text(file)[:4096])):
            others.append(inner.as_posix())
            continue
        _read(file, inner.as_posix(), distinct(nfc(inner.with_suffix("").as_posix())), place, scenes)
    if others:
        files = counted(len(others), ".txt file")
        scenes.notes.append(f"{files} left out, without four columns of numbers (frame, id, x, y): {shortened(others)}")
    return scenes.dataset(name, place_of_tracks)


def _read(file: Path, shown: str, scene: str, place: _Place, scenes: Scenes) -> None:
    seen = scenes.sound(_seen(_text(file)), shown)
    if seen.is_empty():
        return
    ground, xy = place(seen, file, nfc(scene))
    fps = (native_step(seen) or 1) / _SECONDS
    scenes.add(ground, seen.with_columns(x=xy[:, 0], y=xy[:, 1]), fps)


def _text(file: Path) -> str:
    return file_text(file, errors="replace")


def _seen(text: str) -> pl.DataFrame:
    rows: list[tuple[int, str | None, float | None, float | None, float | None]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        numbers = _numbers(line)
        if numbers is None:
            rows.append((number, "", None, None, None))
        else:
            frame, track, x, y = numbers
            rows.append((number, str(plain(track)) if np.isfinite(track) else "", frame, x, y))
    return pl.DataFrame(
        rows,
        {"line": pl.Int64, "track": pl.String, "frame": pl.Float64, "x": pl.Float64, "y": pl.Float64},
        orient="row",
    ).with_columns(agent=pl.lit(None, pl.String))


# --- from metres to pixels -------------------------------------------------------------------------


def _on_nothing(seen: pl.DataFrame, file: Path, scene: str) -> tuple[Ground, Floats]:
    """On a background as large as the positions need; y runs up in the world and down in pictures."""
    metres = seen.select("x", "y").to_numpy()
    low, high = metres.min(0) - _MARGIN, metres.max(0) + _MARGIN
    xy = np.stack([metres[:, 0] - low[0], high[1] - metres[:, 1]], 1) / _METRES_PER_PIXEL
    size = frame_to((high - low) / _METRES_PER_PIXEL, str(file))
    return Ground(scene, str(file), size=size, metres=_METRES_PER_PIXEL), xy


def _on_map(map: Path, to_metres: Warp, seen: pl.DataFrame, file: Path, scene: str) -> tuple[Ground, Floats]:
    xy = to_metres.inverse.points(seen.select("x", "y").to_numpy())
    return Ground(scene, str(map), metres=partial(_metres_at, to_metres)), xy


def _metres_at(to_metres: Warp, position: Floats) -> float | None:
    """How long a pixel is in metres where a person is; None where its two directions differ."""
    here, right, down = to_metres.points(position + np.array([[0, 0], [1, 0], [0, 1]]))
    large, small = np.linalg.svd(np.stack([right - here, down - here]), compute_uv=False)
    return float(np.sqrt(large * small)) if large <= small * (1 + _EVEN) else None


def _homography(file: Path) -> Warp:
    existing(file, "homography", Path.is_file)
    try:
        lines = (line.replace(",", " ").split() for line in _text(file).splitlines() if line.strip())
        matrix = np.array([[float(part) for part in line] for line in lines])
        if matrix.shape != (3, 3) or not np.isfinite(matrix).all() or np.linalg.matrix_rank(matrix) < 3:
            raise ValueError
    except ValueError:
        raise ValueError(
            f"{file}: a homography is three lines of three numbers, an invertible matrix that carries "
            "pixels (x, y, 1) of the map to metres"
        ) from None
    # Only the ratios of its numbers count; frames play no part in what it does to points.
    return Warp(matrix / abs(np.linalg.det(matrix)) ** (1 / 3), (1, 1), (1, 1))


# fmt: off
ETH_UCY = DatasetFamily("eth-ucy", _open, (
    PATH,
    Parameter("map", "text", "", help="the class map; if not given, a background as large as the positions need"),
    Parameter("homography", "text", "", help="a text file of 3×3 numbers that carries the map's pixels to metres"),
    *HORIZON,
), "ETH and UCY: text with frame, id, x, y in metres; one file or a folder of them, one case of each in turn",
    recognises=lambda place: place.ending == "txt" and _is_track_text(place.text))
# fmt: on
