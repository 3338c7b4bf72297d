"""Pictures of verdicts: source and follow-up side by side, expected hollow, actual filled."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from instar.case import Case, Image, Unreadable, read_input
from instar.engine import SOURCE
from instar.outputs import Output, output_kind
from instar.relations import rule
from instar.report.picture import pair_picture, write_png
from instar.store import Store
from instar.transforms import Change, NotApplicable, draw_seed, transformation

__all__ = ["draw_pairs", "severity_text"]


def severity_text(severity: float | None) -> str:
    """A severity as people read it."""
    if severity is None:
        return "–"
    return "∞" if math.isinf(severity) else f"{severity:.3g}"


def draw_pairs(store: Store, verdicts: pl.DataFrame, out: str | Path, *, dataset: str | Path | None = None,
               unit: str = "") -> Iterator[tuple[Path | None, str]]:
    """Draw each verdict's pair into a folder; yields the file, or None and why it could not be drawn.

    The inputs are found by the path stored with their case, or under `dataset` where that is given, and are
    the right ones only if their content hash is the stored one.
    """
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    manifest = store.manifest()
    for number, verdict in enumerate(verdicts.iter_rows(named=True), start=1):
        label = f"{verdict['case']} {verdict['rule']}"
        try:
            picture = _pair(store, manifest, verdict, Path(dataset) if dataset else None, unit)
        except (Unreadable, NotApplicable, LookupError) as error:
            yield None, f"{label}: {error}"
            continue
        name = re.sub(r"[^\w.()=-]+", "_", f"{number:02d}_{Path(verdict['case']).stem}_{rule(verdict['rule']).left}")
        path = folder / f"{name[:120]}.png"
        write_png(path, picture)
        yield path, label


def _pair(store: Store, manifest: Mapping[str, Any], verdict: Mapping[str, Any], dataset: Path | None,
          unit: str) -> Image:
    case = _one(store.cases(where=pl.col("case") == verdict["case"]), f"case {verdict['case']}")
    image = _input(case, dataset)
    (changed,) = rule(verdict["rule"]).transformations
    mine = pl.col("case") == verdict["case"]
    source = _one(store.predictions(where=mine & (pl.col("follow_up") == SOURCE) & (pl.col("repeat") == 0)), "source")
    follow = _one(store.predictions(where=mine & (pl.col("follow_up") == changed.id) & (pl.col("draw") == 0)
                                    & (pl.col("repeat") == 0)), changed.id)
    needs = {row["need"]: store.need_value(row, manifest["need_headers"])
             for row in store.needs(mine & (pl.col("status") == "ok")).iter_rows(named=True)}
    told = _output(manifest, source)
    if "source" in changed.needs:
        needs["source"] = told
    follow_up, _ = transformation(changed.id)(image, needs=needs,
                                              seed=draw_seed(manifest["seed"], verdict["case"], changed, 0))
    expected = told.warped(Change.from_row(follow, image.size).warp)
    title = f"{rule(verdict['rule']).left}   severity {severity_text(verdict['severity'])} {unit}".rstrip()
    lines = [f"{verdict['case']}   target {verdict['target']}" + (f"   {verdict['kind']}" if verdict["kind"] else "")
             + (f"   worst: {verdict['worst']}" if verdict.get("worst") else "")]
    target = verdict["target"]
    return pair_picture(image, told.shapes(target), follow_up, expected.shapes(target),
                        _output(manifest, follow).shapes(target), title=title, lines=lines)


def _one(frame: pl.DataFrame, what: str) -> dict[str, Any]:
    if frame.is_empty():
        raise LookupError(f"the run holds no {what}")
    return frame.row(0, named=True)


def _output(manifest: Mapping[str, Any], row: Mapping[str, Any]) -> Output:
    return output_kind(manifest["system"]["kind"]).from_row(row, manifest["output"])


def _input(case: Mapping[str, Any], dataset: Path | None) -> Image:
    """The case's input, if it is still what it was."""
    if case["path"] is None:
        raise Unreadable("its input was in memory only")
    places = [Path(case["path"]), *([dataset / case["case"]] if dataset else [])]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise Unreadable(f"{places[-1]}: no such file; say with --dataset where the pictures are now")
    image, digest = read_input(Case(case["case"], path=str(found), frame=case["frame"]))
    if digest != case["hash"]:
        raise Unreadable(f"{found}: not the picture that was tested (its content changed)")
    return image
