"""Answers as they came: what can be said of them before anything is counted, and how else they could be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.outputs.poses import PoseBatch
from instar.relations import Evidence, pose_pairs
from instar.relations.accuracy import counted_pairs, exchanged_limbs, reference_of
from instar.skeleton import Skeleton
from instar.warp import inside

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Reading = Callable[[Floats, Floats], Floats]
"""Points (subjects, landmarks, 2) and the sizes of their images (subjects, 2), as points in pixels."""

NARROW = 2.0
"""Pixels: landmarks that all lie within so many are in one place."""
SAME = 0.1
"""Two answers are the same hand where their landmarks are nearer than this share of its size on average."""
AS_IT_IS = "as it is"
FACTS = {
    "case": pl.String,
    "follow_up": pl.String,
    "hands": pl.Int64,
    **dict.fromkeys(("x", "y", "across", "down"), pl.Float64),
    "narrow": pl.Boolean,
    "shares": pl.Boolean,
    "outside": pl.Boolean,
    "doubled": pl.Boolean,
    "stays": pl.Boolean,
    "exchanged": pl.String,
}
"""What is known of each answer: how many hands it has; where the middle of the first is, in
pixels and in shares of the frame; whether they are in one place, in coordinates from 0 to 1,
mostly outside the image, one hand twice; whether they stayed where they were although the image moved (null where it
did not move); which two fingers are exchanged."""
READINGS = {"case": pl.String, "reading": pl.String, "right": pl.Float64, "of": pl.Float64}
"""How many landmarks of a case's source are right if answers are read in some way, of how many."""


def facts_of(evidence: Evidence, follow_ups: pl.DataFrame) -> pl.DataFrame:
    """One row per follow-up, the source among them: see `FACTS`."""
    count = len(evidence.header["skeleton"]["landmarks"])
    batch = PoseBatch.from_frame(follow_ups, count)
    owner = np.repeat(np.arange(follow_ups.height), batch.counts)
    sure = batch.scores >= evidence.options["confidence"]
    points, owner = batch.points[sure].astype(np.float64), owner[sure]
    sizes = _sizes(follow_ups)[owner]
    low, high = np.fmin.reduce(points, 1), np.fmax.reduce(points, 1)
    present = ~np.isnan(points[..., 0])
    extent = np.linalg.norm(high - low, axis=1)
    shares = (low >= -0.5).all(1) & (high <= 1.5).all(1) & (sizes.min(1) >= 16)
    out = (present & ~inside(np.nan_to_num(points, nan=-1.0), sizes[:, None])).sum(1) > present.sum(1) / 2

    def every(flags: Flags) -> Flags:
        """Whether it is so of each answer's hands, of which there is at least one."""
        whole, so = (np.bincount(owner[which], minlength=follow_ups.height) for which in (flags | True, flags))
        return np.asarray((whole > 0) & (so == whole))

    middle = np.full((follow_ups.height, 2), np.nan)
    middle[owner[::-1]] = (low + high)[::-1] / 2  # of several, the first is written last
    places = dict(zip(("x", "y", "across", "down"), np.hstack([middle, middle / _sizes(follow_ups)]).T, strict=True))
    known = follow_ups.select("case", "follow_up").with_columns(
        **{name: pl.Series(values).fill_nan(None) for name, values in places.items()},
        hands=pl.Series(np.bincount(owner, minlength=follow_ups.height)),
        narrow=pl.Series(every((extent < NARROW) & (present.sum(1) > 4) & ~shares)),
        shares=pl.Series(every(shares)),
        outside=pl.Series(every(out)),
        doubled=pl.Series(_doubled(points, owner, extent, follow_ups.height)),
    )
    return known.unique(["case", "follow_up"], keep="first", maintain_order=True)


def _doubled(points: Floats, owner: npt.NDArray[np.int64], extent: Floats, rows: int) -> Flags:
    """Which answers have a hand twice: neighbours in one answer, or any two of few."""
    doubled = np.zeros(rows, bool)
    for step in range(1, 4):
        one, other = slice(None, -step or None), slice(step, None)
        gap = np.linalg.norm(points[one] - points[other], axis=-1)
        near = np.nanmean(np.where(np.isnan(gap).all(1)[:, None], np.inf, gap), 1) if len(gap) else np.zeros(0)
        twice = (owner[one] == owner[other]) & (near < SAME * extent[one]) & (extent[one] >= NARROW)
        doubled[owner[one][twice]] = True
    return doubled


def stays_of(evidence: Evidence) -> pl.DataFrame:
    """Follow-ups whose image moved: whether the answers are those to the source, where those were."""
    identity = np.eye(3).ravel()
    moved = [not np.allclose(warp, identity, atol=1e-6) for warp in evidence.follow_ups["warp"].to_list()]
    follow_ups = evidence.follow_ups.filter(pl.Series(moved, dtype=pl.Boolean))
    own = replace(evidence, options={**evidence.options, "reference": "source", "outside": "keep"})
    still = follow_ups.with_columns(warp=pl.lit(identity.tolist(), pl.List(pl.Float64)))
    shares = []
    for rows in (follow_ups, still):
        compared = reference_of(own, rows, "source")
        if compared is None:
            return pl.DataFrame(schema={name: FACTS[name] for name in ("case", "follow_up", "stays")})
        pairs = pose_pairs(compared)
        counts = counted_pairs(pairs)
        every = counts["tp"] + counts["fp"] + counts["fn"]
        shares.append(np.where(every > 0, counts["tp"] / np.where(every > 0, every, 1), np.nan))
        keys = pairs.follow_ups.select("case", "follow_up")
    carried, kept = shares
    return keys.with_columns(stays=pl.Series((kept > 0.8) & (carried < 0.5))).unique(
        ["case", "follow_up"], keep="first", maintain_order=True
    )


def exchanges_of(evidence: Evidence, follow_ups: pl.DataFrame) -> pl.DataFrame:
    """Which two fingers lie where the other is expected: by the truth, or by the answer to the source."""
    frames = []
    for name in ("truth", "source"):
        compared = reference_of(evidence, follow_ups, name)
        if compared is not None:
            pairs = pose_pairs(compared)
            names = pl.Series(exchanged_limbs(pairs), dtype=pl.String)
            frames.append(pairs.follow_ups.select("case", "follow_up").with_columns(exchanged=names))
    empty = pl.DataFrame(schema={name: FACTS[name] for name in ("case", "follow_up", "exchanged")})
    return pl.concat([empty, *frames]).unique(["case", "follow_up"], keep="first", maintain_order=True)


# --- other readings --------------------------------------------------------------------------------


def readings_of(evidence: Evidence, sources: pl.DataFrame) -> pl.DataFrame:
    """How many landmarks of the sources are right by the truth, if answers are read as they are and otherwise."""
    rows = pl.DataFrame(schema=READINGS)
    if reference_of(evidence, sources, "truth") is None:
        return rows
    bones = Skeleton.from_dict(evidence.header["skeleton"])
    for name, reading in {**_READINGS, **_orders(bones), **_other_sizes(evidence, sources)}.items():
        compared = reference_of(evidence, _read(sources, reading, len(bones.landmarks)), "truth")
        assert compared is not None
        pairs = pose_pairs(compared)
        counts = counted_pairs(pairs)
        of = counts["tp"] + counts["fp"] + counts["fn"]
        own = pairs.follow_ups.select("case", reading=pl.lit(name))
        rows = rows.vstack(own.with_columns(right=pl.Series(counts["tp"]), of=pl.Series(of)))
    return rows


def _sizes(rows: pl.DataFrame) -> Floats:
    return rows.select("width", "height").to_numpy().astype(np.float64)


def _read(rows: pl.DataFrame, reading: Reading, landmarks: int) -> pl.DataFrame:
    batch = PoseBatch.from_frame(rows, landmarks)
    sizes = np.repeat(_sizes(rows), batch.counts, 0)
    points = reading(batch.points.astype(np.float64), sizes)
    spans = [points[first:last].ravel().tolist() for first, last in pairwise(batch.offsets)]
    return rows.with_columns(pl.Series("points", spans, pl.List(pl.Float32)))


def _scaled(points: Floats, sizes: Floats) -> Floats:
    return points * sizes[:, None]


_READINGS: dict[str, Reading] = {
    AS_IT_IS: lambda points, sizes: points,
    "shares of the image, from 0 to 1": _scaled,
    "thousandths of the image, from 0 to 1000": lambda points, sizes: _scaled(points / 1000, sizes),
    "shares of the image, from -1 to 1": lambda points, sizes: _scaled((points + 1) / 2, sizes),
    "(y, x)": lambda points, sizes: points[..., ::-1],
    "(y, x) in shares of the image, from 0 to 1": lambda points, sizes: _scaled(points[..., ::-1], sizes),
    "counted from the right edge": lambda points, sizes: np.abs([1, 0] * sizes[:, None] - points),
    "counted from the bottom edge": lambda points, sizes: np.abs([0, 1] * sizes[:, None] - points),
}
"""How answers are often meant that are not in pixels from the top-left corner, x first."""


def _orders(bones: Skeleton) -> dict[str, Reading]:
    """Other orders of a hand's 21 landmarks."""
    if len(bones.landmarks) != 21:
        return {}
    fingers = np.arange(1, 21).reshape(5, 4)
    orders = {
        "fingers from the tip to the knuckle": fingers[:, ::-1],
        "fingers from the little one to the thumb": fingers[::-1],
        "all knuckles before all other joints": fingers.reshape(4, 5).T,
    }

    def read(order: npt.NDArray[np.int64]) -> Reading:
        whole = np.concatenate([[0], order.ravel()])
        return lambda points, sizes: points[:, whole]

    return {name: read(order) for name, order in orders.items()}


def _other_sizes(evidence: Evidence, sources: pl.DataFrame) -> dict[str, Reading]:
    """Pixels of an image of another size: the one that makes the answers as wide and high as the truth."""
    compared = reference_of(evidence, sources, "truth")
    assert compared is not None
    pairs = pose_pairs(compared)
    both = (pairs.source_subjects >= 0) & (pairs.follow_up_subjects >= 0)
    truth = pairs.source_poses.points[pairs.source_subjects[both]].astype(np.float64)
    actual = pairs.follow_up_poses.points[pairs.follow_up_subjects[both]].astype(np.float64)
    spans = [np.fmax.reduce(points, 1) - np.fmin.reduce(points, 1) for points in (truth, actual)]
    usable = (spans[0] > 0).all(1) & (spans[1] > 0).all(1)
    if not usable.any():
        return {}
    ratio = spans[1][usable] / spans[0][usable]
    factor = np.median(ratio, 0)
    side = np.median(ratio * pairs.source_sizes[pairs.rows[both]][usable], 0)
    width, height = np.rint(side).astype(int)
    across, down = (f"{one:.2g}" for one in factor)
    times = across if across == down else f"{across} and {down}"
    return {
        f"pixels of an image of {width} × {height}": lambda points, sizes: points * (sizes / side)[:, None],
        f"pixels of an image {times} times as large": lambda points, sizes: points / factor,
    }


def joined_facts(blocks: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Facts that were found apart, beside each other: one row per case and follow-up."""
    first, *others = blocks
    for other in others:
        first = first.join(other, on=["case", "follow_up"], how="left", maintain_order="left")
    return first.select(*FACTS)
