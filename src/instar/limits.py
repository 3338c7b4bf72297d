"""`instar.boundary`: how far can each input be changed before the answer breaks?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from instar.analysis.boundary import Boundary
from instar.analysis.limits import PROBES, LimitSearch
from instar.api import run
from instar.datasets import Dataset
from instar.engine import Progress
from instar.report.boundary_pictures import measure_visual_changes
from instar.store import Store
from instar.suites import suite_pieces
from instar.suites.grid import RAYS, STEPS, Grid, suite_of
from instar.systems import System


def boundary(
    system: str | System | Callable[..., object],
    family: str,
    dataset: str | Path | Dataset,
    *,
    out: str | Path,
    steps: int = STEPS,
    probes: int = PROBES,
    rays: int = RAYS,
    threshold: float | None = None,
    visual: bool = True,
    seed: int | None = None,
    workers: int | None = None,
    predictors: int | None = None,
    timeout: float = 60.0,
    limit: int | None = None,
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
            `brightness(add=0)`, `blur => poses`), two for their frontier (`gamma | rotation`), or
            several joined by `+`.
        steps: how many levels each way has, from no change to the far end.
        probes: how many more levels are asked below each limit, and how many beyond it, to see whether the response is
            monotone.
        rays: how many directions a frontier has between two axes.
        threshold: the severity from which on an answer counts as broken; each relation's own by default.
        visual: whether the visual change at the limits is measured, which reads the images once more.
        on_measured: called with how many cases of how many have their visual change measured.

    The others are those of `run`.
    """
    grids = [Grid.of(piece, steps=steps, rays=rays) for piece in suite_pieces(family)]
    if probes < 0:
        raise ValueError(f"probes is 0 or more, got {probes}")
    search = LimitSearch(Store(out), grids, probes)

    def forward(progress: Progress) -> None:
        """What later rounds will ask is not known before this one, and belongs to what is left."""
        assert on_progress is not None
        on_progress(replace(progress, rows=progress.rows + search.later))

    # fmt: off
    finished = run(
        system, suite_of(grids, threshold), dataset, out=out, seed=seed, workers=workers, predictors=predictors,
        timeout=timeout, limit=limit, zones=zones, objects=objects, pool=pool, retry_failed=retry_failed, fresh=fresh,
        trust=trust, until=search, on_progress=forward if on_progress else None,
    )
    # fmt: on
    limits = finished.boundary()
    if visual and finished.outcome is not None and not finished.outcome.interrupted:
        measure_visual_changes(limits, dataset=_place(dataset), on_case=on_measured)
        limits = finished.boundary()
    return limits


def _place(dataset: str | Path | Dataset) -> Path | None:
    """Where the images are, as far as the user named a folder."""
    path = Path(dataset) if isinstance(dataset, str | Path) else None
    return path if path is not None and path.is_dir() else None
