"""Stanford Drone Dataset: its annotations, or `trajectories.npz` beside `maps/`."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
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
    Maps,
    Scenes,
    Window,
    agents_parameter,
    frame_to,
    maps_in,
)
from instar.image import picture_size
from instar.reading import MOST_BYTES, file_bytes, regular
from instar.spelling import Parameter
from instar.warp import Size

_COMPACT = "trajectories.npz"
_COMPACT_RATE = 2.5
_FPS = 30.0
_AGENTS = "Pedestrian"
_COLUMNS = ("track", "xmin", "ymin", "xmax", "ymax", "frame", "lost", "occluded", "generated", "label")
_TEXT = ("track", "label")


def _is_sdd(folder: Path) -> bool:
    """Whether a folder has the shape of one of the two forms."""
    compact = (folder / _COMPACT).is_file() and (folder / "maps").is_dir()
    return compact or any(folder.glob("annotations/*/video*/annotations.txt"))


def _open(name: str, *, path: str, maps: str, agents: str, **window: Unpack[Window]) -> Dataset:
    root, horizon = existing(path, "folder", Path.is_dir), Horizon.of(**window)
    if (root / _COMPACT).is_file():
        if agents.strip().casefold() not in (_AGENTS.casefold(), "all"):
            raise ValueError(
                f"{path}: {_COMPACT} does not say who is what, so agents={agents} cannot be chosen; "
                "the original annotations do"
            )
        scenes = Scenes(path, horizon)
        _read_compact(root / _COMPACT, maps_in(Path(maps) if maps else root / "maps"), scenes)
    else:
        scenes = Scenes(path, horizon, agents)
        _read_original(root, path, maps_in(Path(maps)) if maps else None, scenes)
    return scenes.dataset(name, root)


# --- the compact form ------------------------------------------------------------------------------


def _read_compact(file: Path, maps: Maps, scenes: Scenes) -> None:
    longest = 0
    for scene, rows in _arrays(file):
        longest = max(longest, rows.shape[1])
        place = maps.find(scene)
        if place is None:
            scenes.unmapped[scene] = maps.place(scene)
            continue
        count, length = rows.shape[:2]
        seen = pl.DataFrame(
            {
                "track": np.repeat(np.arange(count), length),
                "frame": np.tile(np.arange(length), count),
                "x": rows[..., 0].ravel(),
                "y": rows[..., 1].ravel(),
            }
        )
        # a position that is not a number is a gap
        seen = seen.filter(pl.col("x").is_finite() & pl.col("y").is_finite()).with_columns(
            pl.col("track").cast(pl.String), pl.col("frame").cast(pl.Float64), agent=pl.lit(None, pl.String)
        )
        scenes.add(Ground(scene, str(place), timed=False), seen, _COMPACT_RATE)
    horizon = scenes.horizon
    if longest and (len(horizon) - 1) / horizon.rate > (longest - 1) / _COMPACT_RATE + 1e-6:
        raise ValueError(
            f"{scenes.source}: {_COMPACT} holds {longest} positions of everybody at {_COMPACT_RATE} per "
            f"second, and {horizon} were asked for; the original annotations have longer tracks"
        )


def _arrays(file: Path) -> Iterator[tuple[str, npt.NDArray[np.float64]]]:
    try:
        with np.load(regular(file), allow_pickle=False) as arrays:
            size = sum(member.file_size for member in arrays.zip.infolist())
            if size > MOST_BYTES:
                raise ValueError(f"unpacked it has {size:,} bytes, and at most {MOST_BYTES:,} are read")
            for scene in sorted(arrays.files):
                rows = arrays[scene]
                if rows.ndim != 3 or rows.shape[2] != 2 or rows.dtype.kind not in "iuf":
                    raise ValueError(f"{scene} is {rows.dtype} {rows.shape}, not numbers (tracks, positions, 2)")
                yield nfc(scene), rows.astype(np.float64)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, AttributeError) as error:
        raise ValueError(
            f"{file}: not an .npz file of arrays (tracks, positions, 2) by scene, or damaged ({error})"
        ) from None


# --- the original ----------------------------------------------------------------------------------


def _read_original(root: Path, path: str, maps: Maps | None, scenes: Scenes) -> None:
    files = sorted([*root.glob("annotations/*/video*/annotations.txt"), *root.glob("*/video*/annotations.txt")])
    if not files:
        raise FileNotFoundError(f"{path}: neither {_COMPACT} nor annotations/SCENE/video0/annotations.txt lies there")
    for file in files:
        scene = nfc(f"{file.parent.parent.name}_{file.parent.name.removeprefix('video')}")
        place = maps.find(scene) if maps else None
        if maps and place is None:
            scenes.unmapped[scene] = maps.place(scene)
            continue
        seen = scenes.sound(_boxes(file), file.relative_to(root).as_posix())
        if seen.is_empty():
            continue
        if place is None:
            scenes.bare.append(scene)
            ground = Ground(scene, str(file), size=_frame(file, seen, scene))
        else:
            ground = Ground(scene, str(place))
        scenes.add(ground, seen, _FPS)


def _boxes(file: Path) -> pl.DataFrame:
    """The middle of every box that is not lost; boxes are measured in continuous pixels already."""
    # With a first line of names no damaged line decides how many columns there are. Quotes are taken off by hand:
    # one that is never closed would swallow the lines below it.
    text = " ".join(_COLUMNS).encode() + b"\n" + file_bytes(file).removeprefix(b"\xef\xbb\xbf")
    table = pl.read_csv(
        text,
        separator=" ",
        quote_char=None,
        encoding="utf8-lossy",
        truncate_ragged_lines=True,
        schema_overrides={name: pl.String if name in _TEXT else pl.Float64 for name in _COLUMNS},
        ignore_errors=True,
        row_index_name="line",
        row_index_offset=1,
    )
    return table.filter(pl.col("lost").fill_null(0) == 0).select(
        "line",
        "track",
        "frame",
        agent=pl.col("label").str.strip_chars('" '),
        x=(pl.col("xmin") + pl.col("xmax")) / 2,
        y=(pl.col("ymin") + pl.col("ymax")) / 2,
    )


def _frame(file: Path, seen: pl.DataFrame, scene: str) -> Size:
    """The size of the picture beside the annotations; without one, as far as people come."""
    beside = picture_size(str(file.with_name("reference.jpg")))
    return beside or frame_to(seen.select("x", "y").to_numpy().max(0), scene)


# fmt: off
SDD = DatasetFamily("sdd", _open, (
    PATH,
    Parameter("maps", "text", "",
              help="the folder of the class maps, SCENE_0.png or SCENE_0_mask.png; if not given, maps/ beside "
                   "trajectories.npz, else there are none"),
    agents_parameter(_AGENTS),
    *HORIZON,
),
    "Stanford Drone Dataset: annotations/SCENE/video0/annotations.txt, or trajectories.npz beside maps/; one case of "
    "each scene in turn", recognises=lambda place: place.is_folder and _is_sdd(place.path))
# fmt: on
