"""Suspicious pairs of captions for people to look at, and the inserted pictures with corrected captions to train on."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import xxhash

from instar.analysis import Run
from instar.engine import DEFAULT
from instar.files import place_file
from instar.relations import rule
from instar.report.picture import encoded
from instar.report.rebuild import CannotDraw, load_pair
from instar.report.spoken import caption_options, spoken
from instar.tasks.meta_ic.language import counted, read_caption
from instar.tasks.meta_ic.relations import vocabulary_of

__all__ = ["Suspicious", "corrected", "export_suspicious"]

COLUMNS = (
    "pair",
    "case",
    "rule",
    "inserted",
    "source",
    "follow_up",
    "what",
    "source_picture",
    "follow_up_picture",
    "corrected",
    "is_error",
    "comment",
)
"""The last two are for who looks at it."""


@dataclass(frozen=True, slots=True)
class Suspicious:
    """What was written: pairs, pictures, corrected captions, and why pictures are missing."""

    pairs: int
    pictures: int
    captions: int
    missing: tuple[str, ...]


def corrected(caption: str, label: str, words: str = "coco") -> str:
    """A caption of the source with the inserted object added.

    >>> corrected("A man on a bench.", "dog"), corrected("a dog", "dog")
    ('A man on a bench with a dog.', 'a dog and another dog')
    """
    body = caption.rstrip(" .!")
    stop = caption[len(body) :].strip()[:1]
    if label in read_caption(caption, vocabulary_of(words)).objects:
        return f"{body} and another {label}{stop}"
    return f"{body} with {counted(1, label)}{stop}"


def export_suspicious(
    run: Run,
    out: str | Path,
    *,
    threshold: float | None = None,
    judging: str = DEFAULT,
    dataset: Path | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Suspicious:
    """Write the violated pairs: `pairs.csv` for people, pictures, and `captions.json` in COCO's form to train on.

    The corrected caption is the source's with the inserted object added; where the case has captions of people, each of
    them with it. Pictures that are there already are left alone, so that the same call again goes on.
    """
    folder, manifest = Path(out), run.manifest
    if manifest.system.kind != "caption":
        raise ValueError(f"{run.folder} is a run of {manifest.system.kind}; this is for captions")
    limits = run.thresholds(threshold)
    limit = pl.col("rule").replace_strict(limits, return_dtype=pl.Float64)
    broken = (
        run.verdicts(judging)
        .filter((pl.col("severity") > 0) & (pl.col("severity") >= limit))
        .with_columns(change=pl.col("rule").map_elements(lambda one: rule(one).left, pl.String))
    )
    pairs = broken.sort("severity", descending=True, maintain_order=True).unique(
        ["case", "change", "target"], keep="first", maintain_order=True
    )
    verdicts = list(pairs.iter_rows(named=True))
    said = spoken(run.store, manifest, verdicts, judging)
    truth = {row["case"]: row.get("truth_caption") for row in run.store.cases().iter_rows(named=True)}
    rows: list[dict[str, Any]] = []
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    missing: list[str] = []
    words = str(caption_options(run.store, manifest, judging)["vocabulary"])
    for number, (verdict, both) in enumerate(zip(verdicts, said, strict=True)):
        if both is None:
            continue
        before, after = ("".join(part.text for part in side) for side in (both.source, both.follow_up))
        row: dict[str, Any] = {
            "pair": number,
            "case": verdict["case"],
            "rule": verdict["rule"],
            "inserted": ", ".join(both.added),
            "source": before,
            "follow_up": after,
            "what": "; ".join(both.sentences),
        }
        try:
            names = _pictures(run, verdict, folder, dataset)
            row |= {"source_picture": names[0], "follow_up_picture": names[1]}
        except CannotDraw as error:
            missing.append(f"{verdict['case']} {verdict['change']}: {error}")
            names = None
        if len(both.added) == 1:
            texts = (truth.get(verdict["case"]) or before).split("\n")
            better = [corrected(text, both.added[0], words) for text in texts]
            row["corrected"] = better[0]
            if names is not None:
                width, height = both.size
                images.append({"id": number, "file_name": names[1], "width": width, "height": height})
                annotations += [
                    {"id": len(annotations) + place, "image_id": number, "caption": text}
                    for place, text in enumerate(better)
                ]
        rows.append(row)
        if on_progress is not None:
            on_progress(number + 1, len(verdicts))
    folder.mkdir(parents=True, exist_ok=True)
    table = io.StringIO()
    writer = csv.DictWriter(table, COLUMNS, restval="")
    writer.writeheader()
    writer.writerows(rows)
    place_file(folder / "pairs.csv", table.getvalue().encode("utf-8-sig"))
    content = {
        "info": {"description": f"inserted objects with corrected captions, from a run of {manifest.system.name}"},
        "images": images,
        "annotations": annotations,
    }
    place_file(folder / "captions.json", json.dumps(content, ensure_ascii=False, indent=1).encode())
    return Suspicious(len(rows), 2 * len(rows) - 2 * len(missing), len(annotations), tuple(missing))


def _pictures(run: Run, verdict: dict[str, Any], folder: Path, dataset: Path | None) -> tuple[str, str]:
    """Both pictures of a pair, named by what they are: a run that has grown numbers its pairs anew."""
    key = "\x1f".join((str(run.manifest.seed), verdict["case"], verdict["change"], str(verdict["draw"] or 0)))
    name = xxhash.xxh3_64_hexdigest(key.encode())
    names = f"images/{name}-source.png", f"images/{name}-follow-up.png"
    if not all((folder / name).is_file() for name in names):
        pair = load_pair(run.store, run.manifest, verdict, dataset=dataset)
        (folder / "images").mkdir(parents=True, exist_ok=True)
        for name, panel in zip(names, (pair.source, pair.follow_up), strict=True):
            place_file(folder / name, encoded(panel.image, "png"))
    return names
