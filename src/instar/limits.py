"""`instar.boundary`: how far can each input be changed before the answer breaks?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from instar.analysis.boundary import Boundary
from instar.analysis.limits import LimitPlan, LimitSearch, bisections, most_probes
from instar.api import chosen_dataset, providers_of, run, stored_providers
from instar.datasets import Dataset
from instar.engine import Progress
from instar.engine import estimate as _estimate
from instar.engine.keeper import shared_cases
from instar.relations import relations
from instar.report.boundary_pictures import measure_visual_changes
from instar.spelling import unknown
from instar.store import Shard, Store
from instar.suites import Suite, suite_pieces
from instar.suites.grid import RAYS, STEPS, Grid, suite_of
from instar.systems import System, system_name


def boundary(
    system: str | System | Callable[..., object],
    family: str,
    dataset: str | Path | Dataset,
    *,
    out: str | Path,
    steps: int = STEPS,
    probes: int | None = None,
    rays: int = RAYS,
    threshold: float | None = None,
    options: Mapping[str, object] | None = None,
    visual: bool = True,
    seed: int | None = None,
    workers: int | None = None,
    predictors: int | None = None,
    engine: str = "local",
    address: str | None = None,
    timeout: float = 60.0,
    limit: int | None = None,
    shard: str | None = None,
    zones: str | None = None,
    objects: str | None = None,
    pool: str | Path | None = None,
    retry_failed: bool = False,
    fresh: bool = False,
    trust: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
    on_measured: Callable[[int, int], None] | None = None,
) -> Boundary:
    """Search how far each input can be changed before the answer breaks, and predict only what that takes.

    The run folder is one of `run`: the same call again goes on, or predicts nothing. What it holds is opened again with
    `open_run(out).boundary()`.

    Args:
        family: a family of transformations with a parameter that goes from weak to strong (`gamma`, `rotation`,
            `brightness(add=0)`, `blur => poses`), also inside a zone (`filtered(gamma, skin)`), two for their frontier
            (`gamma | rotation`), or several joined by `+`.
        steps: how many levels each way has, from no change to the far end.
        probes: how many more levels are asked below each limit, and how many beyond it, to see whether the response is
            monotone: by default 2, or as many as 30 % of the predictions of the grid leave.
        rays: how many directions a frontier has between two axes.
        threshold: the severity from which on an answer counts as broken; each relation's own by default.
        visual: whether the visual change at the limits is measured, which reads the images once more.
        on_measured: called with how many cases of how many have their visual change measured.

    The others are those of `run`.
    """
    grids = _grids(family, steps, rays, probes, options or {})
    store = Store(_folder(out, shard))
    search = LimitSearch(store, grids, probes, options or {})

    def forward(progress: Progress) -> None:
        """What later rounds will ask is not known before this one, and belongs to what is left."""
        assert on_progress is not None
        on_progress(replace(progress, rows=progress.rows + search.later))

    # fmt: off
    finished = run(
        system, suite_of(grids, threshold), dataset, out=out, seed=seed, workers=workers, predictors=predictors,
        engine=engine, address=address, timeout=timeout, limit=limit, shard=shard, zones=zones, objects=objects,
        pool=pool, retry_failed=retry_failed, fresh=fresh, trust=trust, until=search,
        on_progress=forward if on_progress else None,
    )
    # fmt: on
    judging = search.judging()
    limits = finished.boundary(judging=judging)
    if visual and finished.outcome is not None and not finished.outcome.interrupted:
        measure_visual_changes(limits, dataset=_place(dataset), judging=judging, on_case=on_measured)
        limits = finished.boundary(judging=judging)
    return limits


def plan_of(
    system: str,
    family: str,
    dataset: str | Path | Dataset,
    *,
    out: str | Path | None = None,
    steps: int = STEPS,
    probes: int | None = None,
    rays: int = RAYS,
    options: Mapping[str, object] | None = None,
    workers: int | None = None,
    timeout: float = 60.0,
    limit: int | None = None,
    shard: str | None = None,
    zones: str | None = None,
    objects: str | None = None,
    pool: str | Path | None = None,
    trust: bool = False,
) -> LimitPlan:
    """What a search would ask at the most, from three timed cases; of one that was begun, what it still may."""
    grids = _grids(family, steps, rays, probes, options or {})
    part, cases = None if shard is None else Shard.parse(shard), chosen_dataset(dataset)
    store = Store("no run folder" if out is None else _folder(out, shard))
    sample, whole = _sample(grids, probes), suite_of(grids)
    earlier = stored_providers(store, trust)
    providers = providers_of(whole, earlier, zones=zones, objects=objects, pool=pool, trust=trust)
    cost = _estimate(
        system_name(system), sample, cases, Store("no run folder"), workers=workers, timeout=timeout, limit=limit,
        shard=part, providers=providers,
    )  # fmt: skip
    if store.exists:
        left = LimitSearch(store, grids, probes, options or {}).left(
            list(dict.fromkeys(case.id for case in shared_cases(cases, limit, part)))
        )
        seconds = None if cost.seconds is None or not cost.rows else cost.seconds * left / cost.rows
        cost = replace(cost, done=cost.rows - left, seconds=seconds)
    return LimitPlan(cost, len({change.id for rule in whole.rules for change in rule.transformations}))


def _sample(grids: Sequence[Grid], probes: int | None) -> Suite:
    """As many levels of each ray as a case may be asked about, evenly spread, and the unchanged input."""
    rules = []
    for grid in grids:
        rules.append(grid.unchanged)
        for ray in grid.rays:
            count = len(ray.levels)
            most = min(count, bisections(count) + 2 * most_probes(count, probes))
            rules += [ray.levels[number * count // most].rule for number in range(most)]
    return Suite("sample", tuple(dict.fromkeys(rules)))


def _grids(family: str, steps: int, rays: int, probes: int | None, options: Mapping[str, object]) -> list[Grid]:
    """What is searched; an option that no relation has is refused before there is a folder."""
    known = {option.name for relation in relations().values() for option in relation.options}
    for name in options:
        if name not in known:
            raise unknown("judging option", name, known)
    if probes is not None and probes < 0:
        raise ValueError(f"probes is 0 or more, got {probes}")
    return [Grid.of(piece, steps=steps, rays=rays) for piece in suite_pieces(family)]


def _folder(out: str | Path, shard: str | None) -> str | Path:
    return out if shard is None else Shard.parse(shard).folder(out)


def _place(dataset: str | Path | Dataset) -> Path | None:
    """Where the images are, as far as the user named a folder."""
    path = Path(dataset) if isinstance(dataset, str | Path) else None
    return path if path is not None and path.is_dir() else None
