"""Pictures of verdicts: source and follow-up side by side, expected hollow, actual filled."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from instar.case import Case, Input, read_input
from instar.engine import SOURCE, Need, Provider, make_follow_up, provided, provider
from instar.image import Crop, Image, Unreadable
from instar.outputs import Output, output_kind
from instar.relations import rule
from instar.report.picture import Panel, pair_picture, write_png
from instar.scene import Track
from instar.shapes import Shape
from instar.store import Manifest, Store
from instar.transforms import NotApplicable
from instar.warp import Size

__all__ = ["CannotDraw", "Pair", "draw_pairs", "load_pair", "load_source", "severity_text"]

CannotDraw = (Unreadable, NotApplicable, LookupError)
"""Why a pair cannot be shown: its input is gone or another one now, or a prediction is missing."""


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A verdict's source and follow-up with the answers to them, ready to be drawn."""

    source: Panel
    follow_up: Panel
    title: str
    about: str
    said: tuple[str, ...] = ()
    """What was said of both in words, for a system that answers in words."""


def severity_text(severity: float | None) -> str:
    """A severity as people read it."""
    if severity is None:
        return "–"
    return "∞" if math.isinf(severity) else f"{severity:.3g}"


def draw_pairs(
    store: Store, verdicts: pl.DataFrame, out: str | Path, *, dataset: str | Path | None = None
) -> Iterator[tuple[Path | None, str]]:
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
            pair = load_pair(store, manifest, verdict, dataset=dataset)
        except CannotDraw as error:
            yield None, f"{label}: {error}"
            continue
        picture = pair_picture(pair.source, pair.follow_up, title=pair.title, lines=[pair.about, *pair.said])
        name = re.sub(r"[^\w.()=-]+", "_", f"{number:02d}_{Path(verdict['case']).stem}_{rule(verdict['rule']).left}")
        path = folder / f"{name[:120]}.png"
        write_png(path, picture)
        yield path, label


def load_source(store: Store, manifest: Manifest, case: str, *, dataset: str | Path | None = None) -> Panel:
    """A case's input, with the answer to it where there is one."""
    mine = pl.col("case") == case
    given = _input(_one(store.cases(where=mine), f"case {case}"), manifest, Path(dataset) if dataset else None)
    rows = store.predictions(
        where=mine & (pl.col("follow_up") == SOURCE) & (pl.col("repeat") == 0) & (pl.col("status") == "ok")
    )
    return _panel(given, [] if rows.is_empty() else _output(store, manifest, rows.row(0, named=True)).shapes())


def load_pair(
    store: Store, manifest: Manifest, verdict: Mapping[str, Any], *, dataset: str | Path | None = None
) -> Pair:
    """A verdict's pair; its follow-up is made anew from the rule. Raises one of `CannotDraw`.

    A verdict has `case`, `rule`, `target` and `severity`, and may have `kind`, `worst` and the `draw` that shows it.
    """
    case = _one(store.cases(where=pl.col("case") == verdict["case"]), f"case {verdict['case']}")
    given = _input(case, manifest, Path(dataset) if dataset else None)
    judged = rule(verdict["rule"])
    assert judged.relation is not None
    (changed,) = judged.transformations
    mine, draw = pl.col("case") == verdict["case"], verdict.get("draw") or 0
    source = _one(store.predictions(where=mine & (pl.col("follow_up") == SOURCE) & (pl.col("repeat") == 0)), "source")
    follow = _one(
        store.predictions(
            where=mine & (pl.col("follow_up") == changed.id) & (pl.col("draw") == draw) & (pl.col("repeat") == 0)
        ),
        changed.id,
    )
    needs: dict[str, Need | NotApplicable] = {
        row["need"]: store.need_value(row)
        for row in store.needs(mine & (pl.col("status") == "ok")).iter_rows(named=True)
    }
    told, said = _output(store, manifest, source), _output(store, manifest, follow)
    relation, target = judged.relation.relation, verdict["target"]
    own = {p.name: p.default for p in relation.options}
    confidence = float({**own, **manifest.options}.get("confidence", 0.0))
    needs["source"] = told
    about = Case(verdict["case"], input=given, truth=_truth(case, manifest))
    for need in changed.needs - needs.keys():
        needs[need] = provided(need, _pool(manifest) if need == "pool" else None, about, given, told)
    follow_up, change = make_follow_up(manifest.seed, verdict["case"], given, changed, draw, needs)
    told, said = told.confident(confidence), said.confident(confidence)
    expected = told.warped(change.warp).shapes(target) if relation.mapping else []
    title = f"{judged.left}   severity {severity_text(verdict['severity'])} {relation.unit}"
    words = (
        f"{verdict['case']}   target {verdict['target']}"
        + (f"   {verdict['kind']}" if verdict.get("kind") else "")
        + (f"   worst: {verdict['worst']}" if verdict.get("worst") else "")
    )
    lines = tuple(f"{side}: {text}" for side, text in (("source", told.says()), ("follow-up", said.says())) if text)
    return Pair(
        _panel(given, told.shapes(target)), _panel(follow_up, said.shapes(target), expected), title, words, lines
    )


def _pool(manifest: Manifest) -> Provider | None:
    """The pool that the run inserted from, as long as it is where it was and what it was."""
    stored = manifest.providers.get("pool")
    if stored is None:
        return None
    try:
        found = _read_provider(stored.name)
    except (OSError, ValueError) as error:
        raise NotApplicable(f"the pool of this run cannot be read: {error}") from error
    if found.fingerprint != stored.fingerprint:
        raise NotApplicable(f"the pool {stored.name} is not what it was when the run was made")
    return found


@lru_cache(maxsize=4)
def _read_provider(folder: str) -> Provider:
    return provider("pool", folder)


def _panel(given: Input, said: Sequence[Shape], expected: Sequence[Shape] = ()) -> Panel:
    """An input with the answer to it. A photograph is shown whole, of a map the part where something happens."""
    image, own = Image(given.picture()), given.shapes()
    if not own:
        return Panel(image, own, said, expected)
    x0, y0, x1, y1 = _part([*own, *(s for s in (*said, *expected) if s.form != "heat")], image.size)
    part = Image(np.ascontiguousarray(image.pixels[y0:y1, x0:x1]))
    own, said, expected = ([shape.moved(-x0, -y0) for shape in shapes] for shapes in (own, said, expected))
    return Panel(part, own, said, expected, f"part of {image.size[0]} x {image.size[1]} px")


def _part(shapes: Sequence[Shape], size: Size) -> tuple[int, int, int, int]:
    """The box around shapes with some room, as square as the frame allows."""
    places = np.concatenate([shape.xy.reshape(-1, 2) for shape in shapes])
    low, high = np.nanmin(places, 0), np.nanmax(places, 0)
    half = max(30.0, 0.7 * float((high - low).max()))
    middle = (low + high) / 2
    x0, y0 = np.clip(np.floor(middle - half), 0, np.array(size) - 1).astype(int)
    x1, y1 = np.clip(np.ceil(middle + half), (x0 + 1, y0 + 1), size).astype(int)
    return int(x0), int(y0), int(x1), int(y1)


def _one(frame: pl.DataFrame, what: str) -> dict[str, Any]:
    if frame.is_empty():
        raise LookupError(f"the run holds no {what}")
    return frame.row(0, named=True)


def _output(store: Store, manifest: Manifest, row: Mapping[str, Any]) -> Output:
    whole = store.whole(pl.DataFrame([row], schema=store.prediction_schema(manifest.system.kind)))
    return output_kind(manifest.system.kind).from_row(whole.row(0, named=True), manifest.header)


def _truth(case: Mapping[str, Any], manifest: Manifest) -> Output | None:
    header = manifest.truth
    if header is None or case.get("status") != "ok":
        return None
    kind = output_kind(header["kind"])
    stored = {name: case.get(f"truth_{name}") for name in kind.columns}
    return kind.from_row(stored, header) if any(value is not None for value in stored.values()) else None


def _input(case: Mapping[str, Any], manifest: Manifest, dataset: Path | None) -> Input:
    """The case's input, if it is still what it was."""
    track = Track.from_json(case["track"]) if case["track"] else None
    if case["path"] is None and (manifest.recorded is None or dataset is None):
        raise Unreadable(
            "this run was recorded: it has no pictures, unless --dataset says where they are"
            if manifest.recorded
            else "its input was in memory only"
        )
    places = [Path(case["path"])] if case["path"] is not None else []
    if dataset:
        roots = [Path(source.root) for source in manifest.datasets if source.root]
        inside = [place.relative_to(root) for place in places for root in roots if place.is_relative_to(root)]
        places += [dataset / case["case"], *(dataset / place for place in inside)]
    if case["path"] is None:  # recorded elsewhere: nothing but its name says that it is the right one
        places = [place for place in places if dataset and place.resolve().is_relative_to(dataset.resolve())]
    found = next((place for place in places if place.is_file()), None)
    if found is None and not (track and track.size):
        raise Unreadable(
            f"{places[-1] if places else case['case']}: no such file; say with --dataset where the pictures are now"
        )
    crop = Crop(*case["crop"]) if case.get("crop") else None  # runs made before there were crops have no such column
    given, digest = read_input(
        Case(case["case"], path=str(found or places[0]), frame=case["frame"], crop=crop, track=track)
    )
    if digest != case["hash"] and case["hash"] is not None:
        raise Unreadable(f"{found}: not the input that was tested (its content changed)")
    return given
