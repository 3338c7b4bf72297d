"""inD and its sisters: `XX_tracks.csv`, `XX_tracksMeta.csv`, `XX_recordingMeta.csv`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.datasets.dataset import PATH, Dataset, DatasetFamily, existing, nfc
from instar.datasets.windowing import (
    HORIZON,
    Ground,
    Horizon,
    Scenes,
    Window,
    agents_parameter,
    collected,
    frame_to,
    maps_in,
    named_columns,
)
from instar.reading import file_bytes
from instar.spelling import Parameter
from instar.warp import Size

_META = "_recordingMeta.csv"
_FAR_LARGER = 4
"""A map so many times larger than where people are was most likely drawn at another scale."""


@dataclass(frozen=True, slots=True)
class _Recording:
    number: str
    location: str
    fps: float
    metres_per_pixel: float
    """Of the full-size orthophoto."""


def _open(name: str, *, path: str, maps: str, scale: float, agents: str, **window: Unpack[Window]) -> Dataset:
    root = existing(path, "folder", Path.is_dir)
    files = sorted(root.glob(f"*{_META}"))
    if not files:
        raise FileNotFoundError(f"{path}: there is no XX{_META} in it, e.g. 00{_META}")
    scenes = Scenes(path, Horizon.of(**window), agents)
    drawn = maps_in(Path(maps)) if maps else None
    for file in files:
        recording = _recording(file)
        names = recording.number, f"location{recording.location}"
        place = drawn.find(*names) if drawn else None
        if drawn and place is None:
            scenes.unmapped[recording.number] = drawn.place(*names)
            continue
        if not drawn:
            scenes.bare.append(recording.number)
        _read(file, recording, place, scale, scenes)
    return scenes.dataset(name, root)


def _read(file: Path, recording: _Recording, place: Path | None, scale: float, scenes: Scenes) -> None:
    number = recording.number
    classes = _classes(_beside(file, number, "tracksMeta"))
    scenes.there.update(classes.values())
    wanted = {track: agent for track, agent in classes.items() if scenes.wants(agent)}
    scenes.passed(len(classes) - len(wanted))
    tracks = _beside(file, number, "tracks")
    seen = scenes.sound(_positions(tracks, wanted), tracks.name) if wanted else pl.DataFrame()
    if seen.is_empty():
        return
    metres = recording.metres_per_pixel * scale
    # y runs up from the orthophoto's top edge: all of the picture is below 0
    seen = seen.with_columns(x=pl.col("x") / metres, y=-pl.col("y") / metres)
    reach = seen.select("x", "y").to_numpy().max(0)
    attributes = {"location": recording.location}
    if place is None:
        ground = Ground(number, str(tracks), size=frame_to(reach, tracks.name), metres=metres, attributes=attributes)
    else:
        ground = Ground(number, str(place), metres=metres, attributes=attributes)
        if hint := _doubt(place, reach, scale):
            scenes.notes.append(hint)
    scenes.add(ground, seen, recording.fps)


def _beside(file: Path, number: str, what: str) -> Path:
    return existing(file.with_name(f"{number}_{what}.csv"), "file", Path.is_file)


def _recording(file: Path) -> _Recording:
    needed = ("frameRate", "locationId", "orthoPxToMeter")
    rows = collected(named_columns(file, needed), file)
    try:
        fps, metres = (float(rows[name][0]) for name in ("frameRate", "orthoPxToMeter"))
        if not (math.isfinite(fps) and math.isfinite(metres) and fps > 0 and metres > 0):
            raise ValueError
    except (IndexError, TypeError, ValueError):
        raise ValueError(
            f"{file}: frameRate and orthoPxToMeter are numbers above 0, its second line has "
            f"{rows.drop('line').rows(named=True)[:1] or 'nothing'}"
        ) from None
    return _Recording(nfc(file.name.removesuffix(_META)), str(rows["locationId"][0] or ""), fps, metres)


def _classes(file: Path) -> dict[str, str]:
    rows = collected(named_columns(file, ("trackId", "class")), file).drop_nulls()
    return dict(zip(rows["trackId"], rows["class"], strict=True))


def _positions(file: Path, wanted: dict[str, str]) -> pl.DataFrame:
    """Only the tracks asked for are kept in memory: a file has up to a million lines."""
    table = named_columns(file, ("trackId", "frame", "xCenter", "yCenter"))
    kept = table.filter(pl.col("trackId").is_in(list(wanted)) | pl.col("trackId").is_null())
    return collected(
        kept.select(
            "line",
            track="trackId",
            agent=pl.col("trackId").replace_strict(wanted, default=None, return_dtype=pl.String),
            frame=pl.col("frame").cast(pl.Float64, strict=False),
            x=pl.col("xCenter").cast(pl.Float64, strict=False),
            y=pl.col("yCenter").cast(pl.Float64, strict=False),
        ),
        file,
    )


def _doubt(place: Path, reach: npt.NDArray[np.float64], scale: float) -> str:
    size = _png_size(place)
    if size is None or not (np.array(size) > reach * _FAR_LARGER).all():
        return ""
    return (
        f"{place.name} has {size[0]:,} × {size[1]:,} pixels and its people stay within {reach[0]:,.0f} × "
        f"{reach[1]:,.0f}: was it drawn at another scale than {scale:g}?"
    )


def _png_size(file: Path) -> Size | None:
    start = file_bytes(file, start=24)
    if not start.startswith(b"\x89PNG\r\n\x1a\n"):
        return None
    return int.from_bytes(start[16:20], "big"), int.from_bytes(start[20:24], "big")


# fmt: off
IND = DatasetFamily("ind", _open, (
    PATH,
    Parameter("maps", "text", "",
              help="the folder of the class maps, by recording (07.png) or by location (location1.png); if not given, "
                   "there are none"),
    Parameter("scale", "float", 12, low=0, open_low=True,
              help="how many times smaller the maps are than the orthophoto; the published pictures are 12 times"),
    agents_parameter("pedestrian"),
    *HORIZON,
), "inD: XX_tracks.csv, XX_tracksMeta.csv and XX_recordingMeta.csv in a folder; one case of each recording in turn",
    recognises=lambda place: place.is_folder and any(place.path.glob(f"*{_META}")))
# fmt: on
