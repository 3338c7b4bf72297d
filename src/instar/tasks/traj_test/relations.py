"""Forecasts under a change that moves everything alike: the distribution, carried back, is the same."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.outputs.forecast import Paths
from instar.outputs.heat import heat_of
from instar.relations import DRAWS, matrices_of, paired, per_pair
from instar.relations.relation import VERDICT_COLUMNS, Evidence, Relation
from instar.scene import Track
from instar.spelling import Parameter
from instar.stats import hellinger, permutation_test, wasserstein, z_test
from instar.store import Row, Schema
from instar.warp import Size, Warp

Floats = npt.NDArray[np.float64]

LEAST_SHARE, LEAST_PIXELS = 0.01, 0.1
"""What a system differs from itself counts as at least this share of the past path, and so many pixels."""
MOST_FUTURES = 240
NOTHING = 0.01
"""Pixels: what is nearer is the same, so that rounding is no difference to a system that never varies."""
HASTE = 1.5
"""How many times as fast as before a person may be, when it is asked how far they get."""
OUT_OF_FRAME = "the person may walk to where only one of source and follow-up has a map"
LEAVING = "the person is about to leave the map: straight on, the last of the steps is outside it"
NO_MAP = "this system gives no probability map, which the relation compares"
_CORNERS = np.array([[0.0, 0], [1, 0], [0, 1], [1, 1]])
SOURCES = Parameter("sources", "int", 20, low=1, high=1000, help="predictions of the source by a stochastic system")


def past_of(cases: pl.DataFrame) -> dict[str, Floats]:
    """The past (P, 2) of each case."""
    return {
        name: np.array(Track.from_json(text).past, np.float64).reshape(-1, 2)
        for name, text in cases.select("case", "track").iter_rows()
        if text
    }


# --- wvc: the sampled futures -----------------------------------------------------------------------

COURSE_MEASURES: Schema = dict.fromkeys(("turn", "reach", "further"), pl.Float64)
"""How many degrees the follow-up's futures turn to the left of the source's, as the person sees it; how far the ends of
the source's futures are from the person, in pixels, and how much further those of the follow-up."""
WVC_MEASURES: Schema = {
    "p": pl.Float64,
    "p_least": pl.Float64,
    "distance": pl.Float64,
    "own": pl.Float64,
    "spread": pl.Float64,
    "fan": pl.Float64,
    "futures": pl.Int32,
    "sources": pl.Int32,
    "runs": pl.Int32,
    **COURSE_MEASURES,
}


def wvc(evidence: Evidence) -> pl.DataFrame:
    """How much further the follow-up's futures are from the source's than those are from themselves.

    Runs are compared by the exact Wasserstein distance W2 of their sets of futures, the follow-up's carried back;
    distances are root-mean-square pixels per position. With several follow-up runs the severity is half the
    statistic (2·between − within the source − within the follow-up) over the source's own, which also sees a
    spread that changed; with one, and for a system that never varies, it is between over own, less 1. A system that
    differs from itself by less than what counts as a difference has no p.
    """
    source_paths, follow_up_paths = Paths.of(evidence.sources), Paths.of(evidence.follow_ups)
    runs_of = _rows_by(evidence.sources, "case")
    pasts = past_of(evidence.cases)
    warps, sizes = matrices_of(evidence.follow_ups), _sizes(evidence.follow_ups)
    frames = _sizes(evidence.sources)
    published = evidence.parameters["test"] == "z"
    judged = _against_each if published else _against_all
    verdicts: list[Row] = []
    previous, own, fan, alike = None, np.zeros((0, 0)), 0.0, 0.0
    for (case, follow_up), rows in _rows_by(evidence.follow_ups, "case", "follow_up").items():
        if (case,) not in runs_of:
            continue
        sources = [source_paths[row] for row in runs_of[case,]]
        if case != previous:
            previous, own = case, _distances(_even(sources), None, not published)
            fan = float(np.mean([without_rounding(run.std(0)).mean() for run in sources]))
            alike = 0.0 if own.any() else _between_halves(sources[0])
        base = {"case": case, "follow_up": follow_up, "target": "whole", "sources": len(sources), "runs": len(rows)}
        base |= {"fan": fan, "futures": len(sources[0])}
        runs, matrices = [follow_up_paths[row] for row in rows], [warps[row] for row in rows]
        warp = Warp(matrices[0], frames[runs_of[case,][0]], sizes[rows[0]])
        past = pasts.get(case)
        if past is not None and not published:
            base |= _course(sources, runs, matrices, past[-1])
        compared = own
        if not published and past is not None and _moves_the_frame(warp):
            steps = sources[0].shape[1]
            if reason := _out_of_sight(past, steps, warp):
                verdicts.append({**base, "reason": reason})
                continue
            if not _within(_around(past, steps), warp.source).all():
                sources, runs = _up_to_the_edge(sources, runs, matrices, past[-1], warp.source)
                matrices, compared = [np.eye(3)] * len(runs), _distances(_even(sources), None, True)
        least = _least(past, None) if published else max(_least(past, warp), alike)
        verdicts += [{**base, **verdict} for verdict in judged(sources, runs, matrices, compared, least)]
    return pl.DataFrame(verdicts, schema={**VERDICT_COLUMNS, **WVC_MEASURES}, orient="row")


def _course(sources: Sequence[Floats], runs: Sequence[Floats], warps: Sequence[Floats], here: Floats) -> Row:
    """Where the follow-up's futures lead beside those of the source, all by their ends."""
    back = [Warp(warp, (1, 1), (1, 1)).inverse.points(run[:, -1]) for run, warp in zip(runs, warps, strict=True)]
    before, after = np.concatenate([run[:, -1] for run in sources]) - here, np.concatenate(back) - here
    (x, y), (to_x, to_y) = before.mean(0), after.mean(0)
    reach, further = (float(np.linalg.norm(ends, axis=1).mean()) for ends in (before, after))
    goes_somewhere = min(math.hypot(x, y), math.hypot(to_x, to_y)) >= 1
    # y points down: what turns from x to y turns to the right
    turn = math.degrees(math.atan2(y * to_x - x * to_y, x * to_x + y * to_y)) if goes_somewhere else None
    return {"turn": turn, "reach": reach, "further": further - reach}


def _sizes(frame: pl.DataFrame) -> list[Size]:
    return list(frame.select("width", "height").iter_rows())


def _moves_the_frame(warp: Warp) -> bool:
    """Whether the corners of the source's frame are not those of the follow-up's."""
    corners = {tuple(corner) for corner in np.round(warp.points(_CORNERS * warp.source), 6)}
    return corners != {tuple(corner) for corner in _CORNERS * warp.target}


def _around(past: Floats, steps: int) -> Floats:
    """Where the person may get at most, whichever way they go."""
    angles = np.arange(32) * np.pi / 16
    return np.asarray(past[-1] + HASTE * _pace(past) * steps * np.stack([np.cos(angles), np.sin(angles)], 1))


def _pace(past: Floats) -> float:
    return float(np.linalg.norm(np.diff(past, axis=0), axis=1).mean()) if len(past) > 1 else 0.0


def _out_of_sight(past: Floats, steps: int, warp: Warp) -> str | None:
    """Why people cannot be judged whose frame was moved; None where they can.

    A part of the map that the follow-up lacks may be what the source's futures go around, and who leaves the map goes
    where nobody knows anything. Told from the past alone: a system that sends people to the edge has no say in it.
    """
    frame = np.array(warp.source, np.float64)
    corners = _CORNERS * frame
    near = np.linalg.norm(corners - past[-1], axis=1) <= HASTE * _pace(past) * steps
    places = warp.points(np.concatenate([_around(past, steps).clip(0, frame), corners[near]]))
    if not ((places > -1e-6) & (places < np.array(warp.target) + 1e-6)).all():
        return OUT_OF_FRAME
    ahead = (past[-1] - past[0]) / max(len(past) - 1, 1)
    return None if _within(past[-1] + steps * ahead, warp.source) else LEAVING


def _up_to_the_edge(
    sources: Sequence[Floats], runs: Sequence[Floats], warps: Sequence[Floats], here: Floats, frame: Size
) -> tuple[list[Floats], list[Floats]]:
    """Runs of the source, and those of the follow-up carried back, each future up to where it leaves the source's
    frame: some systems end their futures there, and others go on."""
    carried_back = [Warp(warp, (1, 1), (1, 1)).inverse.points(run) for run, warp in zip(runs, warps, strict=True)]
    return [_ended(run, here, frame) for run in sources], [_ended(run, here, frame) for run in carried_back]


def _ended(run: Floats, here: Floats, frame: Size) -> Floats:
    """Futures (K, T, 2) of a person who is here: whoever leaves the frame stays where they went out."""
    places = np.concatenate([np.broadcast_to(here, (len(run), 1, 2)), run], 1)
    inside = np.logical_and.accumulate(_within(run, frame), 1).sum(1)
    leaving = np.flatnonzero(inside < run.shape[1])
    last = places[leaving, inside[leaving]]
    step = places[leaving, inside[leaving] + 1] - last
    room = np.where(step > 0, np.array(frame, np.float64), 0.0) - last
    part = np.divide(room, step, out=np.full(step.shape, np.inf), where=step != 0).min(1).clip(0, 1)
    ended = run.copy()
    out = np.arange(run.shape[1]) >= inside[leaving, None]
    ended[leaving] = np.where(out[..., None], (last + step * part[:, None])[:, None], run[leaving])
    return ended


def _within(points: Floats, size: Size) -> npt.NDArray[np.bool_]:
    """Which points lie in a frame, and not on its edge."""
    return np.asarray(((points > 0) & (points < size)).all(-1))


def _rows_by(frame: pl.DataFrame, *keys: str) -> dict[tuple[str, ...], list[int]]:
    """Row numbers by the values of some columns, cases one after the other."""
    ordered = frame.select(*keys).with_row_index("row").sort(keys[0], maintain_order=True)
    grouped = ordered.group_by(*keys, maintain_order=True).agg("row")
    return {tuple(names): rows for *names, rows in grouped.iter_rows()}


def _least(past: Floats | None, warp: Warp | None) -> float:
    """What counts as no difference, in pixels: under a change that makes new cells of old ones at least a cell."""
    length = 0.0 if past is None else float(np.linalg.norm(np.diff(past, axis=0), axis=1).sum())
    cell = 0.0 if warp is None else _new_cell(warp.matrix[:2, :2])
    return max(LEAST_PIXELS, LEAST_SHARE * length, cell)


def _between_halves(run: Floats) -> float:
    """How far two halves of the futures are apart, on average over ten ways to halve them; 0 for one future.

    A system that always draws the same futures is known by one sample only; another one would be about so far away.
    """
    half, rng = len(run) // 2, np.random.default_rng(0)
    parts = [rng.permutation(run)[: 2 * half].reshape(2, half, -1) for _ in range(10 if half else 0)]
    distances = [wasserstein(pair[:1], pair[1:])[0, 0] for pair in parts]
    return float(np.mean(distances)) / math.sqrt(run.shape[1]) if distances else 0.0


def _new_cell(linear: Floats) -> float:
    """The side of a cell, of the coarser of the two maps, in pixels of the source; 0 where cells are copied."""
    whole = np.abs(linear[linear != 0])
    if len(whole) == 2 and np.array_equal(whole, np.rint(whole)):
        return 0.0
    return max(1.0, 1 / math.sqrt(abs(float(np.linalg.det(linear)))))


def _even(runs: Sequence[Floats]) -> Floats | None:
    """Runs (R, K, 2T) scaled so that distances are pixels per position; None where they cannot be of one size.

    A run with fewer futures stands for each of them more than once, as often as it takes to be equal.
    """
    counts = {len(run) for run in runs}
    common = math.lcm(*counts)
    if common > MOST_FUTURES and len(counts) > 1:
        return None
    sets = np.stack([np.repeat(run, common // len(run), 0).reshape(common, -1) for run in runs])
    return np.asarray(sets / math.sqrt(runs[0].shape[1]))


def _distances(first: Floats | None, second: Floats | None, squared: bool) -> Floats:
    """Distances of all runs of the first kind to all of the second, or among themselves."""
    if first is None:
        return np.zeros((0, 0))
    return without_rounding(wasserstein(first, second, squared=squared))


def without_rounding(distances: Floats) -> Floats:
    """Distances in pixels, with those that are only rounding as 0."""
    return np.where(distances < NOTHING, 0.0, distances)


def _mean_within(matrix: Floats) -> float:
    return float(matrix[np.triu_indices(len(matrix), 1)].mean()) if len(matrix) > 1 else 0.0


def _unequal(sources: Sequence[Floats], runs: Sequence[Floats]) -> Iterator[Row]:
    counts = " and ".join(map(str, dict.fromkeys(len(run) for run in [*sources, *runs])))
    yield {
        "severity": None,
        "reason": f"runs of {counts} futures have no common size up to {MOST_FUTURES}; "
        "let the system always sample as many",
    }


def _against_all(
    sources: Sequence[Floats], runs: Sequence[Floats], warps: Sequence[Floats], own: Floats, least: float
) -> Iterator[Row]:
    """One verdict over all runs, with p by permuting whole runs."""
    carried_back = [Warp(warp, (1, 1), (1, 1)).inverse.points(run) for run, warp in zip(runs, warps, strict=True)]
    together = _even([*sources, *carried_back])
    if together is None:
        yield from _unequal(sources, runs)
        return
    source_runs, follow_up_runs = together[: len(sources)], together[len(sources) :]
    if len({len(run) for run in [*sources, *carried_back]}) > 1:
        own = _distances(source_runs, None, True)
    across, of_follow_up = _distances(source_runs, follow_up_runs, True), _distances(follow_up_runs, None, True)
    within, between, spread = _mean_within(own), float(across.mean()), _mean_within(of_follow_up)
    floor = max(within, least)
    varies = max(within, spread) >= least  # what never varies has no distribution to test
    several = len(sources) > 1 and len(runs) > 1 and varies
    beyond = (2 * between - within - spread) / (2 * floor) if several else between / floor - 1
    p, p_least = None, None
    if len(sources) > 1 and varies:
        _, p, p_least = permutation_test(np.block([[own, across], [across.T, of_follow_up]]), len(sources))
    yield {
        "severity": max(0.0, beyond),
        "p": p,
        "p_least": p_least,
        "distance": between,
        "own": within,
        "spread": spread if len(runs) > 1 else None,
    }


def _against_each(
    sources: Sequence[Floats], runs: Sequence[Floats], warps: Sequence[Floats], own: Floats, least: float
) -> Iterator[Row]:
    """As published: the source is carried forward, and each comparison has its own z-test and is a target.

    The distances among the source runs stay in the source's pixels, and are not squared.
    """
    apart = own[np.triu_indices(len(own), 1)]
    mean, deviation = (float(apart.mean()), float(apart.std())) if len(apart) else (0.0, 0.0)
    for number, source in enumerate(sources):
        for again, (run, warp) in enumerate(zip(runs, warps, strict=True)):
            pair = _even([Warp(warp, (1, 1), (1, 1)).points(source), run])
            if pair is None:
                yield from _unequal(sources, runs)
                return
            distance = float(wasserstein(pair[:1], pair[1:], squared=False)[0, 0])
            name = f"source {number}" + (f", run {again}" if len(runs) > 1 else "")
            yield {
                "target": name,
                "severity": max(0.0, distance / max(mean, least) - 1),
                "p": z_test(distance, mean, deviation) if len(apart) else None,
                "distance": distance,
                "own": mean,
            }


# --- hvc: the probability map -----------------------------------------------------------------------

HVC_MEASURES: Schema = {"own": pl.Float64}


def hvc(evidence: Evidence) -> pl.DataFrame:
    """The Hellinger distance between the probability maps, the follow-up's carried back to the source's grid.

    `own` is the same distance between the first two predictions of the source: what the system differs from itself.
    """
    follow_ups = paired(evidence)
    columns = ["map", "map_size", "map_warp", "width", "height"]
    sources = evidence.sources.select("case", "repeat", *columns).to_dicts()
    runs_of, noise = _rows_by(evidence.sources, "case"), dict[str, float | None]()
    verdicts: list[Row] = []
    for place, row in enumerate(follow_ups.select("case", "warp", "source", *columns).iter_rows(named=True)):
        source = sources[row["source"]]
        verdict = {"row": place, "target": "whole", "severity": None, "kind": None, "reason": None, "own": None}
        expected, answer = heat_of(source), heat_of(row)
        if expected is None or answer is None:
            verdicts.append({**verdict, "reason": NO_MAP})
            continue
        frame = (source["width"], source["height"])
        actual = answer.warped(Warp(np.reshape(row["warp"], (3, 3)), frame, (row["width"], row["height"])).inverse)
        if row["case"] not in noise:
            noise[row["case"]] = _noise([sources[number] for number in runs_of[row["case"],][:2]])
        severity = hellinger(expected.cells, actual.onto(expected))
        verdicts.append({**verdict, "severity": severity, "own": noise[row["case"]]})
    return per_pair(verdicts, follow_ups, HVC_MEASURES)


def _noise(rows: Sequence[Row]) -> float | None:
    heats = [heat for heat in map(heat_of, rows) if heat is not None]
    return hellinger(heats[0].cells, heats[1].onto(heats[0])) if len(heats) == 2 else None


# fmt: off
RELATIONS: Mapping[str, Relation] = {
    relation.name: relation
    for relation in (
        Relation(
            "wvc", "forecast", wvc, tests=True, unit="multiples of the system's own distance too far", threshold=0.5,
            grid=(0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0), measures=WVC_MEASURES,
            parameters=(
                SOURCES,
                Parameter(
                    "repeats", "int", 5, low=1, high=1000,
                    help="predictions of the follow-up; with one, p cannot fall below 1/(sources+1)",
                ),
                Parameter("draws", "int", 1, low=1, high=1000, help="follow-ups of a random transformation"),
                Parameter(
                    "test", "choice", "permutation", choices=("permutation", "z"),
                    help="z: as published, each source run a comparison of its own",
                ),
            ),
            words="the futures must agree", title="agreement of futures",
            details=(
                "the follow-up's futures are {distance:pixel} from the source's, and those {own:pixel} from each other",
                "p = {p}",
            ),
            help="The futures of the follow-up, carried back, are as near to the source's as two answers to the "
            "source are to each other. p is that of a permutation test.",
        ),
        Relation(
            "hvc", "forecast", hvc, unit="shares of the largest Hellinger distance", threshold=0.2,
            grid=(0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0), measures=HVC_MEASURES,
            parameters=(
                Parameter("sources", "int", 2, low=1, high=1000, help="with two, the system's own noise is measured"),
                *DRAWS,
            ),
            words="the probability maps must agree", title="agreement of probability maps",
            details=("the system's own maps of the source differ by {own}",),
            help="The map of where the person may be, carried back, is the source's. The severity is the Hellinger "
            "distance of the two: 0 where they are equal, 1 where they have no place in common.",
        ),
    )
}
# fmt: on
