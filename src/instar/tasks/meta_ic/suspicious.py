"""Suspicious pairs of captions for people to look at, and the follow-ups with corrected captions to train on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl
import xxhash

from instar.analysis import Run
from instar.engine import DEFAULT, stored_judging
from instar.files import place_file
from instar.pool import plain_label
from instar.relations import MarkedPair, Row, Segment, named_rule
from instar.report.marks import marked_pairs
from instar.report.picture import encoded
from instar.report.rebuild import CannotDraw, load_pair
from instar.report.tables import write_csv
from instar.report.words import count_of
from instar.store import Mark, stored_marks
from instar.store.marks import Key
from instar.tasks.meta_ic.comparison import class_of, vocabulary_of
from instar.tasks.meta_ic.language import counted, read_caption
from instar.tasks.meta_ic.relations import RELATIONS
from instar.tasks.meta_ic.suspicious_marks import COMMENT, MARK, PAIRS, cells_of, line_key, written_marks

# fmt: off
COLUMNS = (
    "pair", "case", "rule", "target", "relations", "inserted", "source", "follow_up", "what", "source_image",
    "follow_up_image", "corrected", MARK, COMMENT,
)
# fmt: on
"""The last two are for the person who looks at it."""


@dataclass(frozen=True, slots=True)
class Suspicious:
    """What was written: pairs, images, corrected captions; why images are missing; how many marks were kept."""

    pairs: int
    images: int
    captions: int
    missing: tuple[str, ...]
    marks: int = 0


@dataclass(frozen=True, slots=True)
class _Export:
    """What is collected on the way: lines of `pairs.csv`, the content of `captions.json`, and images that failed."""

    lines: list[dict[str, object]] = field(default_factory=list)
    images: list[dict[str, object]] = field(default_factory=list)
    annotations: list[dict[str, object]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def add_training_image(self, number: int, file: str, size: tuple[int, int], captions: Iterable[str]) -> None:
        self.images.append({"id": number, "file_name": file, "width": size[0], "height": size[1]})
        for caption in captions:
            self.annotations.append({"id": len(self.annotations), "image_id": number, "caption": caption})

    def fill_in(self, marks: Mapping[Key, Mark]) -> None:
        """Write down what is marked in the run."""
        for line in self.lines:
            case, rule, target = (str(line[name]) for name in ("case", "rule", "target"))
            mark = marks.get((case, rule, target)) or marks.get((case, rule, ""))
            line |= cells_of(mark) if mark else {}

    def keep_marks(self, file: Path) -> int:
        """Fill in what people wrote into the file that is there; refuse where a mark would be lost."""
        if not file.is_file():
            return 0
        marks = written_marks(file)
        kept = 0
        for line in self.lines:
            if of_pair := marks.get(line_key(line)):
                mark, comment = of_pair.pop(0)
                line |= {MARK: mark, COMMENT: comment}
                kept += 1
        lost = sum(map(len, marks.values()))
        if lost:
            raise ValueError(
                f"{file} has {count_of(lost, 'marked pair')} that would not be in it any more, with this run, judging "
                "and threshold; write to another folder, or move the file away"
            )
        return kept

    def write(self, folder: Path, description: str) -> None:
        write_csv(folder / PAIRS, COLUMNS, self.lines)
        content = {"info": {"description": description}, "images": self.images, "annotations": self.annotations}
        place_file(folder / "captions.json", json.dumps(content, ensure_ascii=False, indent=1).encode())


def corrected(caption: str, label: str, vocabulary: str = "coco") -> str:
    """A caption of the source with the inserted object added.

    >>> corrected("A man on a bench.", "dog"), corrected("a dog", "dog")
    ('A man on a bench with a dog.', 'a dog and another dog')
    """
    body = caption.rstrip(" .!")
    stop = caption[len(body) :].strip()[:1]
    name = class_of(label, vocabulary_of(vocabulary)) or plain_label(label)
    if name in read_caption(caption, vocabulary_of(vocabulary)).objects:
        return f"{body} and another {name}{stop}"
    return f"{body} with {counted(1, name)}{stop}"


def export_suspicious(
    run: Run,
    out: str | Path,
    *,
    threshold: float | None = None,
    judging: str = DEFAULT,
    dataset: Path | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Suspicious:
    """Write the violated pairs: `pairs.csv` for people, images, and `captions.json` in COCO's form to train on.

    The corrected caption is the source's with the inserted object added; where the case has captions of people, each of
    them with it. Images that are there already are left alone, so that the same call again goes on. Marks of the run
    stand in `pairs.csv`, and those that people made there are kept.
    """
    folder, system = Path(out), run.manifest.system
    if system.kind != "caption":
        raise ValueError(f"{run.folder} is a run of {system.kind}; suspicious captions come from a run of captions")
    vocabulary = str(stored_judging(run.store, judging).of(RELATIONS["objects"])["vocabulary"])
    verdicts = _violated_pairs(run, threshold, judging)
    cases = run.store.cases()
    known = "truth_caption" in cases.columns
    human = dict(cases.select("case", "truth_caption").iter_rows()) if known else {}
    sizes = _sizes(run)
    export = _Export()
    for number, (verdict, pair) in enumerate(zip(verdicts, _marked(run, verdicts, judging), strict=True)):
        if pair is None:
            continue
        line = _line(number, verdict, pair)
        export.lines.append(line)
        try:
            files = _images(run, verdict, folder, dataset)
            line |= {"source_image": files[0], "follow_up_image": files[1]}
        except CannotDraw as error:
            export.missing.append(f"{verdict['case']} {verdict['change']}: {error}")
            files = None
        if len(pair.added) == 1:
            texts = (human.get(verdict["case"]) or _text(pair.source)).split("\n")
            better = [corrected(text, pair.added[0], vocabulary) for text in texts]
            line["corrected"] = better[0]
            if files is not None:
                key = verdict["case"], verdict["change"], verdict["draw"] or 0
                export.add_training_image(number, files[1], sizes[key], better)
        if on_progress is not None:
            on_progress(number + 1, len(verdicts))
    export.fill_in(stored_marks(run.store))
    marks = export.keep_marks(folder / PAIRS)
    export.write(folder, f"inserted objects with corrected captions, from a run of {system.name}")
    images = 2 * (len(export.lines) - len(export.missing))
    return Suspicious(len(export.lines), images, len(export.annotations), tuple(export.missing), marks)


def _violated_pairs(run: Run, threshold: float | None, judging: str) -> list[Row]:
    """The worst violated verdict of every pair, the worst pairs first, with all `rules` that the pair violates."""
    limit = pl.col("rule").replace_strict(run.thresholds(threshold), return_dtype=pl.Float64)
    violated = (
        run.verdicts(judging)
        .filter((pl.col("severity") > 0) & (pl.col("severity") >= limit))
        .with_columns(change=pl.col("rule").map_elements(lambda one: named_rule(one).left, pl.String))
    )
    pair = ["case", "change", "target"]
    by_name = run.rules().select("rule", "relation")
    relations = pl.col("relation").unique().sort().str.join(", ")
    broken = violated.join(by_name, on="rule").group_by(pair).agg(relations=relations, rules=pl.col("rule").unique())
    worst = violated.join(broken, on=pair, maintain_order="left").sort("severity", descending=True, maintain_order=True)
    pairs = worst.unique(pair, keep="first", maintain_order=True)
    return list(pairs.iter_rows(named=True))


def _marked(run: Run, verdicts: Sequence[Row], judging: str) -> list[MarkedPair | None]:
    """The captions of each pair as its worst rule marks them, with the sentences of every rule that it violates."""
    worst = marked_pairs(run.store, verdicts, judging)
    every = [(place, {**verdict, "rule": rule}) for place, verdict in enumerate(verdicts) for rule in verdict["rules"]]
    sentences: list[list[str]] = [list(pair.sentences) if pair else [] for pair in worst]
    for (place, _), pair in zip(every, marked_pairs(run.store, [one for _, one in every], judging), strict=True):
        sentences[place] += pair.sentences if pair else ()
    return [
        pair and replace(pair, sentences=tuple(dict.fromkeys(words)))
        for pair, words in zip(worst, sentences, strict=True)
    ]


def _sizes(run: Run) -> dict[tuple[str, str, int], tuple[int, int]]:
    """The size of each follow-up, in pixels."""
    rows = run.store.predictions(["case", "follow_up", "draw", "width", "height"], where=pl.col("repeat") == 0)
    return {(case, change, draw): (width or 0, height or 0) for case, change, draw, width, height in rows.iter_rows()}


def _text(parts: Iterable[Segment]) -> str:
    return "".join(part.text for part in parts)


def _line(number: int, verdict: Row, pair: MarkedPair) -> dict[str, object]:
    return {
        "pair": number,
        "case": verdict["case"],
        "rule": verdict["rule"],
        "target": verdict["target"],
        "relations": verdict["relations"],
        "inserted": ", ".join(pair.added),
        "source": _text(pair.source),
        "follow_up": _text(pair.follow_up),
        "what": "; ".join(pair.sentences),
    }


def _images(run: Run, verdict: Row, folder: Path, dataset: Path | None) -> tuple[str, str]:
    """Both images of a pair, named by what they are: a run that has grown numbers its pairs anew."""
    key = "\x1f".join((str(run.manifest.seed), verdict["case"], verdict["change"], str(verdict["draw"] or 0)))
    name = xxhash.xxh3_64_hexdigest(key.encode())
    names = f"images/{name}-source.png", f"images/{name}-follow-up.png"
    if not all((folder / name).is_file() for name in names):
        pair = load_pair(run, verdict, dataset=dataset)
        for name, side in zip(names, (pair.source, pair.follow_up), strict=True):
            place_file(folder / name, encoded(side.image, "png"))
    return names
