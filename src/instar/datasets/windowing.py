"""Tracks of people cut into windows, each a case: what the readers of scenes share."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TypedDict, Unpack

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.case import Case
from instar.datasets.dataset import Dataset, Distinct, counted, existing, nfc, shortened
from instar.outputs.forecast import Forecast
from instar.reading import regular, too_many_pixels
from instar.scene import BACKGROUND, Track
from instar.spelling import Parameter, nearest
from instar.warp import Size

Floats = npt.NDArray[np.float64]

GROUND = (BACKGROUND, "pavement", "road", "structure", "terrain", "tree")
"""The classes of the maps that were drawn for SDD and inD, by their number."""

_HORIZONS = {"short": (8, 12, 2.5), "long": (5, 30, 1.0)}
_ROUNDING = 1e-6
_LINE = "\0line"
"""A column that no file has."""

# fmt: off
HORIZON = (
    Parameter("horizon", "choice", "short", choices=tuple(_HORIZONS),
              help="short: 8 past + 12 future positions, 2.5 per second; long: 5 + 30, one per second"),
    Parameter("past", "int", None, low=1, help="how many past positions, instead of the horizon's"),
    Parameter("future", "int", None, low=1, help="how many future positions, instead of the horizon's"),
    Parameter("rate", "float", None, low=0, open_low=True, help="positions per second, instead of the horizon's"),
    Parameter("stride", "int", None, low=1,
              help="how many positions after a window's first the next one begins; if not given past + future, so "
                   "that none overlap"),
)
# fmt: on
"""What every reader of tracks is asked: the values go to `Horizon.of`."""


def agents_parameter(default: str) -> Parameter:
    return Parameter("agents", "text", default, help='whose tracks, by class: one, several with commas, or "all"')


class Window(TypedDict):
    """The values of HORIZON."""

    horizon: str
    past: int | None
    future: int | None
    rate: float | None
    stride: int | None


@dataclass(frozen=True, slots=True)
class Horizon:
    """How long a window is: `past` + `future` positions, `rate` per second, a new one every `stride` positions.

    >>> str(Horizon.of(horizon="long", past=None, future=None, rate=None, stride=None))
    '5 + 30 positions at 1 per second'
    """

    past: int
    future: int
    rate: float
    stride: int

    @classmethod
    def of(cls, **window: Unpack[Window]) -> Horizon:
        past, future, rate = _HORIZONS[window["horizon"]]
        past, future = window["past"] or past, window["future"] or future
        return cls(past, future, float(window["rate"] or rate), window["stride"] or past + future)

    def __len__(self) -> int:
        return self.past + self.future

    def __str__(self) -> str:
        return f"{self.past} + {self.future} positions at {self.rate:g} per second"


@dataclass(frozen=True, slots=True)
class Ground:
    """What the tracks of one scene lie on: its class map at `path`, or a frame of `size` without one."""

    scene: str
    path: str
    names: tuple[str, ...] = GROUND
    size: Size | None = None
    metres: float | Callable[[Floats], float | None] | None = None
    """Metres per pixel: everywhere, or where a person is."""
    timed: bool = True
    """Whether frames are those of a recording, and not only counted."""
    attributes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """A part of one track without gaps: `xy` (n, 2) in pixels, the first at frame `start`, one every `step` frames."""

    track: str
    agent: str | None
    start: float
    step: float
    xy: Floats


# --- cutting ---------------------------------------------------------------------------------------


def stretches(seen: pl.DataFrame, fps: float, rate: float) -> list[Stretch]:
    """Tracks at another rate, cut where they have gaps; in the order of the tracks' numbers or names.

    `seen` has the columns track, agent, frame, x, y, in any order of rows but with no frame of a track twice.
    A step between two frames that is longer by half than the most common one is a gap. Where no frame falls
    on the time asked for, the position lies between its two neighbours' on a straight line.
    """
    native = native_step(seen)
    if native is None:
        return []
    if rate > fps / native * (1 + _ROUNDING):
        raise ValueError(
            f"its positions come {fps / native:g} times per second, {rate:g} per second are asked for; "
            "say rate=… with fewer"
        )
    ranks = {name: rank for rank, name in enumerate(sorted(seen["track"].unique(), key=_natural))}
    ordered = seen.with_columns(rank=pl.col("track").replace_strict(ranks, return_dtype=pl.Int64)).sort("rank", "frame")
    frames, rank = ordered["frame"].to_numpy(), ordered["rank"].to_numpy()
    xy = ordered.select("x", "y").to_numpy().astype(np.float64)
    step = fps / rate
    gap = (np.diff(frames) > 1.5 * native) | (rank[1:] != rank[:-1])
    edges = [0, *(np.flatnonzero(gap) + 1).tolist(), len(frames)]
    tracks, agents = ordered["track"].to_list(), ordered["agent"].to_list()
    return [
        Stretch(tracks[a], agents[a], float(frames[a]), step, _resampled(frames[a:b], xy[a:b], step))
        for a, b in pairwise(edges)
    ]


def _natural(name: str) -> tuple[int, int, str]:
    """Numbers by their value, before all names."""
    return (0, int(name), name) if name.isdecimal() and len(name) < 19 else (1, 0, name)


def native_step(seen: pl.DataFrame) -> float | None:
    """The most common difference between a frame of a track and its next; None where no track has two."""
    ordered = seen.select("track", "frame").unique().sort("track", "frame")
    leaps = ordered.select(pl.col("frame").diff().over("track").round(6)).to_series().drop_nulls().to_numpy()
    values, counts = np.unique(leaps, return_counts=True)
    return float(values[counts.argmax()]) if len(values) else None


def _resampled(frames: Floats, xy: Floats, step: float) -> Floats:
    count = math.floor((frames[-1] - frames[0]) / step + _ROUNDING) + 1
    times = frames[0] + np.arange(count) * step
    return np.stack([np.interp(times, frames, xy[:, axis]) for axis in (0, 1)], 1)


def plain(value: float) -> int | float:
    """A frame's number as it is written: whole where it is."""
    return int(value) if float(value).is_integer() else round(float(value), 3)


# --- gathering -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Scenes:
    """Gathers the tracks of a dataset, scene by scene, and what is to be said of those left out."""

    source: str
    """What the user gave, for messages."""
    horizon: Horizon
    agents: str = "all"
    walks: list[tuple[Ground, list[tuple[str, Stretch]]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    there: set[str] = field(default_factory=set)
    """The classes of agents that were met."""
    unmapped: dict[str, str] = field(default_factory=dict)
    """Scenes without a map, and where it should lie."""
    bare: list[str] = field(default_factory=list)
    """Scenes whose ground nobody asked for."""
    _distinct: Distinct = field(default_factory=Distinct)
    _odd: list[str] = field(default_factory=list)
    _empty: list[str] = field(default_factory=list)
    _tracks: int = 0
    _chosen: int = 0
    _repeated: int = 0
    _short: int = 0
    _longest: int = 0

    def wants(self, agent: str | None) -> bool:
        wanted = self._wanted()
        return wanted is None or (agent or "").casefold() in wanted

    def _wanted(self) -> dict[str, str] | None:
        """The classes asked for, as they are compared and as they were written; None for all."""
        names = [name.strip() for name in self.agents.split(",") if name.strip()]
        return None if [name.casefold() for name in names] == ["all"] else {name.casefold(): name for name in names}

    def passed(self, count: int) -> None:
        """So many tracks were not even read, since nobody asked for them."""
        self._tracks += count

    def sound(self, seen: pl.DataFrame, file: str) -> pl.DataFrame:
        """Less the lines that name no track or whose numbers are none. Needs columns line, track, frame, x, y."""
        columns = pl.col("frame", "x", "y")
        good = pl.all_horizontal(columns.is_finite(), pl.col("track").str.len_chars() > 0).fill_null(False)
        blank = pl.all_horizontal(columns.is_null(), pl.col("track").is_null())
        self._odd += [f"{file} line {line}" for line in seen.filter(~good & ~blank)["line"]]
        kept = seen.filter(good)
        if kept.is_empty():
            self._empty.append(file)
        return kept

    def add(self, ground: Ground, seen: pl.DataFrame, fps: float) -> None:
        """The tracks of one scene: columns track, agent, frame, and x, y in pixels; `fps` frames per second."""
        self.there.update(agent for agent in seen["agent"].unique() if agent)
        self._tracks += seen["track"].n_unique()
        if self._wanted() is not None:
            seen = seen.filter(pl.col("agent").is_in([agent for agent in self.there if self.wants(agent)]))
        self._chosen += seen["track"].n_unique()
        once = seen.unique(["track", "frame"], keep="first", maintain_order=True)
        self._repeated += len(seen) - len(once)
        try:
            walks = stretches(once, fps, self.horizon.rate)
        except ValueError as error:
            raise ValueError(f"{self.source}, {ground.scene}: {error}") from None
        self._longest = max([self._longest, *(len(each.xy) for each in walks)])
        long = [each for each in walks if len(each.xy) >= len(self.horizon)]
        labels = {
            track: self._distinct(f"{ground.scene}/{track}") for track in dict.fromkeys(each.track for each in long)
        }
        self._short += once["track"].n_unique() - len(labels)
        if long:
            self.walks.append((ground, [(labels[each.track], each) for each in long]))

    def dataset(self, name: str, root: Path) -> Dataset:
        self._complain()
        cases = partial(_cases, self.walks, self.horizon)
        return Dataset(name, str(root), cases, Forecast.kind, tuple(self._notes()), inputs="scene")

    def _complain(self) -> None:
        """Raises where nothing is left, with the reason; and where an agent that was asked for is nowhere."""
        if self.unmapped and not self._tracks:
            scene, place = next(iter(self.unmapped.items()))
            raise FileNotFoundError(f"{self.source}: no scene has a class map; that of {scene} should be {place}")
        damage = "".join(f"; {note}" for note in self._damage())
        if not self._tracks:
            raise ValueError(f"{self.source}: there are no positions in it{damage}")
        known, wanted = {agent.casefold() for agent in self.there}, self._wanted()
        if wanted == {}:
            raise ValueError(f'{self.source}: agents is empty; it takes {", ".join(sorted(self.there))}, or "all"')
        for folded, agent in (wanted or {}).items():
            if folded not in known:
                raise ValueError(
                    f"{self.source}: no track is of agents={agent}{nearest(agent, self.there)}; there are "
                    f'{", ".join(sorted(self.there)) or "no classes"}, and "all"'
                )
        if not self.walks:
            raise ValueError(
                f"{self.source}: no track has {self.horizon} without a gap, the longest has "
                f"{self._longest}; ask for fewer with past= and future={damage}"
            )

    def _notes(self) -> Iterator[str]:
        if self._chosen < self._tracks:
            yield f"agents={self.agents}: {self._chosen:,} of {self._tracks:,} tracks"
        if self.unmapped:
            scene, place = next(iter(self.unmapped.items()))
            yield (
                f"{counted(len(self.unmapped), 'scene')} left out, without a class map: "
                f"{shortened(list(self.unmapped))}; that of {scene} should be {place}"
            )
        yield from self.notes
        if self.bare:
            yield f"without maps= all ground is background: {shortened(self.bare)}"
        yield from self._damage()
        if self._repeated:
            yield f"{counted(self._repeated, 'position')} left out, of a track and frame that were there already"
        if self._short:
            yield (
                f"{counted(self._short, 'track')} shorter than {self.horizon}; "
                "where a track has a gap, each part counts for itself"
            )

    def _damage(self) -> Iterator[str]:
        if self._empty:
            yield f"{counted(len(self._empty), 'file')} without positions: {shortened(self._empty)}"
        if self._odd:
            yield (
                f"{counted(len(self._odd), 'line')} left out, without a track or with something else where a number "
                f"should be: {shortened(self._odd)}"
            )


# --- cases -----------------------------------------------------------------------------------------


def _cases(walks: Sequence[tuple[Ground, Sequence[tuple[str, Stretch]]]], horizon: Horizon) -> Iterator[Case]:
    """Scene after scene in turn, so that the first few cases are of all of them."""
    queue = deque(_of_scene(ground, parts, horizon) for ground, parts in walks)
    while queue:
        scene = queue.popleft()
        case = next(scene, None)
        if case is not None:
            yield case
            queue.append(scene)


def _of_scene(ground: Ground, parts: Iterable[tuple[str, Stretch]], horizon: Horizon) -> Iterator[Case]:
    for label, stretch in parts:
        for first in range(0, len(stretch.xy) - len(horizon) + 1, horizon.stride):
            yield _case(ground, label, stretch, first, horizon)


def _case(ground: Ground, label: str, stretch: Stretch, first: int, horizon: Horizon) -> Case:
    frame = plain(stretch.start + first * stretch.step)
    past, future = np.split(stretch.xy[first : first + len(horizon)], [horizon.past])
    metres = ground.metres(past[-1]) if callable(ground.metres) else ground.metres
    track = Track(
        tuple((float(x), float(y)) for x, y in past), ground.names, horizon.future, horizon.rate, metres, ground.size
    )
    attributes = {
        "scene": ground.scene,
        **ground.attributes,
        "track": stretch.track,
        **({"agent": stretch.agent} if stretch.agent else {}),
        **({"frame": frame} if ground.timed else {}),
    }
    name = f"{label}@{frame}" if ground.timed or first else label
    return Case(name, ground.path, track=track, truth=Forecast.from_array(future), attributes=attributes)


# --- maps and tables -------------------------------------------------------------------------------


def frame_to(reach: Floats, what: str) -> Size:
    """The frame from the origin to the furthest position (x, y), rounded up to whole pixels.

    A stray position must not make a frame that no memory holds.
    """
    wide, high = (max(1, math.ceil(side)) for side in reach.tolist())
    if reason := too_many_pixels(wide, high):
        raise ValueError(f"{what}: its positions spread over {reason}. Is one of them in another unit?")
    return wide, high


@dataclass(frozen=True, slots=True)
class Maps:
    """The class maps of a folder: NAME.png, or NAME_mask.png."""

    folder: Path
    files: Mapping[str, Path]

    def find(self, *names: str) -> Path | None:
        for name in names:
            for ending in (".png", "_mask.png"):
                if nfc(name) + ending in self.files:
                    return self.files[nfc(name) + ending]
        return None

    def place(self, *names: str) -> str:
        """Where a map should be, for messages."""
        return " or ".join(str(self.folder / f"{name}{ending}") for name in names for ending in (".png", "_mask.png"))


def maps_in(folder: Path) -> Maps:
    there = existing(folder, "folder of class maps", Path.is_dir)
    return Maps(there, {nfc(file.name): file for file in sorted(there.iterdir())})


SEPARATORS = ",;\t"


def separator_of(header: str) -> str:
    """What stands between the names of a table's first line."""
    return max(SEPARATORS, key=header.count)


def header_names(header: str) -> list[str]:
    """The names in a table's first line, in small letters."""
    return [name.strip().strip('"').strip().lower() for name in header.split(separator_of(header))]


def named_columns(
    file: Path, needed: Sequence[str], optional: Sequence[str] = (), *, separator: str = ",", any_case: bool = False
) -> pl.LazyFrame:
    """Columns of a CSV file with a header, as text, and `line`; the optional ones only where they are there.

    `any_case`: capital letters in names do not matter.
    """
    try:
        table = pl.scan_csv(
            regular(file),
            separator=separator,
            infer_schema=False,
            truncate_ragged_lines=True,
            ignore_errors=True,
            encoding="utf8-lossy",
            raise_if_empty=False,
            row_index_name=_LINE,
            row_index_offset=2,
        )
        stripped = {name.strip(): name for name in table.collect_schema().names() if name != _LINE}
        names = {**({name.lower(): own for name, own in stripped.items()} if any_case else {}), **stripped}
    except pl.exceptions.PolarsError as error:
        raise _not_csv(file, error) from None
    if lacking := [name for name in needed if name not in names]:
        raise ValueError(
            f"{file}: its first line names no {', '.join(lacking)}; it has "
            f"{shortened(list(stripped), 8) or 'nothing'}, and should have {', '.join(needed)}"
        )
    chosen = [*needed, *(name for name in optional if name in names)]
    columns = (pl.col(names[name]).str.strip_chars().alias(name) for name in chosen)
    return table.select(pl.col(_LINE).alias("line"), *columns)


def collected(table: pl.LazyFrame, file: Path) -> pl.DataFrame:
    try:
        return table.collect()
    except pl.exceptions.PolarsError as error:
        raise _not_csv(file, error) from None


def _not_csv(file: Path, error: Exception) -> ValueError:
    return ValueError(f"{file}: not a table that can be read, or damaged ({str(error).strip().splitlines()[0]})")
