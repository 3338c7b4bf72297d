"""Tracks of your own: a CSV file with track, frame, x, y, and `scene.toml` beside it."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import polars as pl

from instar.datasets.dataset import PATH, Dataset, DatasetFamily, Place, existing, nfc
from instar.datasets.windowing import (
    HORIZON,
    Ground,
    Horizon,
    Scenes,
    Window,
    agents_parameter,
    collected,
    header_names,
    named_columns,
    separator_of,
)
from instar.reading import file_text
from instar.scene import BACKGROUND
from instar.spelling import Parameter, nearest

_NEEDED = ("track", "frame", "x", "y")
_OPTIONAL = ("scene", "class")
_KEYS = ("map", "metres_per_pixel", "names", "rate")
_EXAMPLE = 'names = ["background", "pavement"], map = "map.png", rate = 25'


def _is_tracks_header(line: str) -> bool:
    return set(_NEEDED) <= set(header_names(line))


@dataclass(frozen=True, slots=True)
class _Description:
    """What a CSV file of positions does not say itself."""

    names: tuple[str, ...]
    rate: float
    maps: str | Mapping[str, str] | None
    metres: float | Mapping[str, float] | None


def _open(name: str, *, path: str, scene: str | None, map: str, agents: str, **window: Unpack[Window]) -> Dataset:
    file = existing(path, "file", Path.is_file)
    toml = Path(scene).absolute() if scene else file.with_name("scene.toml")
    description = _described(toml)
    scenes = Scenes(path, Horizon.of(**window), agents)
    seen = scenes.sound(_positions(file), file.name)
    for (place,), rows in sorted(seen.group_by(["scene"], maintain_order=True), key=lambda group: str(group[0][0])):
        title = str(place)
        drawn = Path(map).absolute() if map else _map(description.maps, title, toml)
        if drawn is None:
            scenes.unmapped[title] = f'named in {toml}: map = "{title}.png", or a table [map] by scene'
            continue
        existing(drawn, f"class map of {title}", Path.is_file)
        metres = description.metres.get(title) if isinstance(description.metres, Mapping) else description.metres
        scenes.add(Ground(title, str(drawn), description.names, metres=metres), rows, description.rate)
    return scenes.dataset(name, file.parent)


def _positions(file: Path) -> pl.DataFrame:
    separator = separator_of(Place(file).text.partition("\n")[0])
    table = named_columns(file, _NEEDED, _OPTIONAL, separator=separator, any_case=True)
    there = table.collect_schema().names()
    stem = pl.lit(file.stem)
    chosen = table.select(
        "line",
        "track",
        *(_number(pl.col(name), separator).alias(name) for name in ("frame", "x", "y")),
        agent="class" if "class" in there else pl.lit(None, pl.String),
        scene=pl.col("scene").fill_null(stem) if "scene" in there else stem,
    )
    return collected(chosen, file).with_columns(pl.col("track", "scene").str.normalize("NFC"))


def _number(text: pl.Expr, separator: str) -> pl.Expr:
    """Where semicolons part the columns, a comma is a decimal point."""
    plain = text.str.replace(",", ".", literal=True) if separator == ";" else text
    return plain.cast(pl.Float64, strict=False)


# --- scene.toml ------------------------------------------------------------------------------------


def _described(toml: Path) -> _Description:
    if not toml.is_file():
        raise FileNotFoundError(
            f"there is no {toml}, which says what the positions lie on, e.g. {_EXAMPLE}; "
            'one that lies elsewhere is given with scene="other.toml"'
        )
    try:
        content = tomllib.loads(file_text(toml))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{toml}: not TOML, or damaged ({error})") from None
    for key in content:
        if key not in _KEYS:
            raise ValueError(f"{toml}: unknown key {key!r}{nearest(key, _KEYS)}; there are {', '.join(_KEYS)}")
    names = content.get("names")
    if (
        not isinstance(names, list)
        or not all(isinstance(each, str) for each in names)
        or names[:1] != [BACKGROUND]
        or len(set(names)) < len(names)
    ):
        raise ValueError(
            f"{toml}: names is a list of different class names that begins with {BACKGROUND!r}, in the "
            f"order of the map's values; it is {names!r}"
        )
    rate = content.get("rate", 0)
    if not _positive(rate):
        raise ValueError(f"{toml}: rate is how many frames pass per second, a number above 0; it is {rate!r}")
    maps = content.get("map")
    if not _by_scene(maps, lambda value: isinstance(value, str)):
        raise ValueError(f"{toml}: map is a file, or a table of files by scene; it is {maps!r}")
    metres = content.get("metres_per_pixel")
    if not _by_scene(metres, _positive):
        raise ValueError(f"{toml}: metres_per_pixel is a number above 0, or a table of them by scene; it is {metres!r}")
    return _Description(tuple(names), float(rate), _nfc_keys(maps), _nfc_keys(metres))


def _positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0


def _by_scene(value: object, right: Callable[[object], bool]) -> bool:
    """Whether a value is right for all scenes, or a table of them, or not there."""
    return value is None or (all(map(right, value.values())) if isinstance(value, dict) else right(value))


def _nfc_keys(value: Any) -> Any:
    return {nfc(scene): each for scene, each in value.items()} if isinstance(value, dict) else value


def _map(maps: str | Mapping[str, str] | None, scene: str, toml: Path) -> Path | None:
    """Where a scene's map lies; None where nobody says."""
    named = maps.get(scene) if isinstance(maps, Mapping) else maps
    return toml.parent / named if named else None


# fmt: off
TRACKS = DatasetFamily("tracks", _open, (
    PATH,
    Parameter("scene", "text", None,
              help="the TOML file that names classes, map and rate; if not given, scene.toml beside it"),
    Parameter("map", "text", "", help="another class map than the TOML file's"),
    agents_parameter("all"),
    *HORIZON,
), "tracks of your own: a CSV file with track, frame, x, y in pixels, and scene.toml; one case of each scene in turn",
    recognises=lambda place: place.ending in ("csv", "tsv") and _is_tracks_header(place.text.partition("\n")[0]))
# fmt: on
