"""The follow-ups at the limits of images: how much of a change a person sees in them, and pictures of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import polars as pl

from instar.analysis import Run
from instar.analysis.boundary import CHANGES, Boundary, keep_visual_changes, limit_pairs, visual_changes
from instar.engine import DEFAULT
from instar.image import Image
from instar.report.boundary_words import level_words
from instar.report.picture import contact_sheet, panel_picture, write_png
from instar.report.rebuild import CannotDraw, load_changes, load_pair, run_legend
from instar.report.words import severity_text
from instar.store import Row
from instar.visual import visual_change

TILE = 300
"""Pixels of a side of the pictures of a limit."""


def measure_visual_changes(
    boundary: Boundary,
    *,
    dataset: Path | None = None,
    judging: str = DEFAULT,
    on_case: Callable[[int, int], None] | None = None,
) -> pl.DataFrame:
    """How much of a change a person sees at the limit of each case, as far as its image is there; kept with the run.

    What was measured of the run as it is now is not measured again. `on_case` is told how many cases of how many are
    done.
    """
    run = boundary.run
    known = visual_changes(run.store, judging)
    done = set(known.select("case", "rule").iter_rows())
    wanted: dict[str, list[str]] = {}
    for case, rule in limit_pairs(boundary):
        if (case, rule) not in done:
            wanted.setdefault(case, []).append(rule)
    rules = {one.id: one.transformations[0] for one in run.bound_rules()}
    rows: list[Row] = []
    for number, (case, names) in enumerate(wanted.items(), start=1):
        with suppress(*CannotDraw):
            source, made = load_changes(run, case, [rules[name] for name in names], dataset=dataset)
            for name in names:
                if rules[name].id in made:
                    follow_up, change = made[rules[name].id]
                    seen = None if source.own else visual_change(source.image, follow_up.image, change.warp)
                    rows.append({"case": case, "rule": name, "visual_change": seen})
        if on_case:
            on_case(number, len(wanted))
    measured = pl.concat([known, pl.DataFrame(rows, schema=CHANGES)])
    if rows:
        keep_visual_changes(run.store, measured, judging)
    return measured


def limit_tiles(
    run: Run, limit: Row, *, judging: str = DEFAULT, dataset: str | Path | None = None
) -> list[tuple[Image, str]]:
    """A limit in pictures: the source, the last level that held (no change where none did) and the first that broke,
    each with the answer to it. Raises one of `CannotDraw`."""
    wanted = [(limit["last_rule"], "last", "holds"), (limit["rule"], "limit", "broken")]
    shown = [(rule, which, state) for rule, which, state in wanted if rule is not None]
    keys = pl.DataFrame({"case": [limit["case"]] * len(shown), "rule": [rule for rule, *_ in shown]})
    verdicts = {row["rule"]: row for row in run.verdicts_of(keys, judging=judging).iter_rows(named=True)}
    tiles: list[tuple[Image, str]] = []
    for rule, which, state in shown:
        if rule not in verdicts:
            raise LookupError(f"the run holds no verdict on {limit['case']} under {rule}")
        pair = load_pair(run, verdicts[rule], judging=judging, dataset=dataset)
        if not tiles:
            source = panel_picture(pair.source, side="source", wide=TILE, high=TILE)
            tiles += [
                (source, f"{limit['case']}: source"),
                *([(source, "no change: holds")] if len(shown) == 1 else []),
            ]
        severity = severity_text(verdicts[rule]["severity"], run.thresholds()[rule])
        words = f"{level_words(limit, which)}: {state}, severity {severity}"
        tiles.append((panel_picture(pair.follow_up, side="follow-up", wide=TILE, high=TILE), words))
    return tiles


def shown_limits(boundary: Boundary, ray: str, count: int) -> list[Row]:
    """Broken cases of a ray to be shown: spread evenly from the least limit to the largest."""
    rows = boundary.limits.filter(pl.col("status") == "broken", pl.col("ray") == ray).sort("level", "case")
    count = min(count, rows.height)
    places = [round(number * (rows.height - 1) / max(1, count - 1)) for number in range(count)]
    return [rows.row(place, named=True) for place in places]


def draw_limits(
    boundary: Boundary, out: Path, count: int, *, judging: str = DEFAULT, dataset: str | Path | None = None
) -> Iterator[tuple[Path | None, str]]:
    """A picture per ray with so many limits, each a row; yields the file and the ray, or None and what is missing."""
    out.mkdir(parents=True, exist_ok=True)
    meanings = run_legend(boundary.run, judging=judging, dataset=dataset)
    for ray in boundary.median["ray"].unique(maintain_order=True):
        tiles: list[tuple[Image, str]] = []
        trouble = []
        for limit in shown_limits(boundary, ray, count):
            try:
                tiles += limit_tiles(boundary.run, limit, judging=judging, dataset=dataset)
            except CannotDraw as error:
                trouble.append(f"{limit['case']}: {error}")
        if tiles:
            path = out / f"{re.sub(r'[^a-z0-9]+', '-', ray.lower()).strip('-')}.png"
            write_png(path, contact_sheet(tiles, columns=3, tile=TILE, legend=meanings))
            yield path, ray
        yield from ((None, words) for words in trouble)
