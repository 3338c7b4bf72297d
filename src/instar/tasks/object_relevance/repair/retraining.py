"""Repair a detector: find what exposes it, train with that, and measure once on images never used before."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import polars as pl

from instar.analysis import Run
from instar.datasets import Dataset, dataset
from instar.engine import DEFAULT, Progress
from instar.files import place_file
from instar.relations import named_rule
from instar.spelling import unknown
from instar.suites import Suite
from instar.tasks.object_relevance.repair.evaluate import measured
from instar.tasks.object_relevance.repair.export import classes_of, examples, export
from instar.tasks.object_relevance.repair.measures import TABLE, Measured, before_after, evaluator, markdown
from instar.tasks.object_relevance.repair.mutants import SHARE, Chosen, choose, exposing, mutant_rules, mutants
from instar.tasks.object_relevance.repair.search import NOTHING, search, search_markdown
from instar.tasks.object_relevance.repair.splits import check_disjoint
from instar.tasks.object_relevance.repair.trainer import REFERENCE, Trainer, seconds, trained, trainer

Say = Callable[[str], None]
SIDES = ("before", "after")
SETTINGS = "repair.json"
PROGRESS_EVERY = 10.0
"""Seconds between two lines of progress."""


@dataclass(frozen=True, slots=True, eq=False)
class Repaired:
    """What a repair did: the mutants it took, and the before/after table of the test set."""

    folder: Path
    chosen: Chosen
    table: pl.DataFrame
    searched: pl.DataFrame | None = None


def augment(
    run: Run,
    training: str | Path | Dataset,
    out: Path,
    *,
    validation: str | Path | Dataset | None = None,
    share: float = SHARE,
    threshold: float | None = None,
    judging: str = DEFAULT,
    rules: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
) -> Chosen:
    """Export the training set with the mutants that exposed violations, for COCO's and YOLO's trainers.

    `rules` are those whose mutants may be taken; all rules of the relation presence by default. `classes` are the
    model's, in the order of its numbers; by default those of the training set with its own numbers.
    """
    available = _exposing(run, threshold, judging)
    data, checked = _opened(training), None if validation is None else _opened(validation)
    if checked is not None:
        check_disjoint({"train": data, "val": checked})
    chosen = _chosen(run, available, data, share, rules)
    listed = classes_of(data, checked, classes)
    export(out, chain(examples(data.cases()), mutants(run, chosen.mutants, data)), checked, classes=listed)
    return chosen


def _chosen(run: Run, available: pl.DataFrame, data: Dataset, share: float, rules: Sequence[str] | None) -> Chosen:
    allowed = available.filter(pl.col("rule").is_in(_named(run, rules)))
    chosen = choose(allowed, sum(1 for _ in data.cases()), share=share)
    if chosen.mutants.is_empty():
        raise ValueError(
            f"of {chosen.available:,} mutants a share of {share:g} takes none; give a larger share, or other rules"
        )
    return chosen


def repair(
    run: Run,
    *,
    train: str | Path | Dataset,
    val: str | Path | Dataset,
    test: str | Path | Dataset,
    out: str | Path,
    share: float = SHARE,
    seeds: int = 3,
    by: str | Trainer = REFERENCE,
    start: Path | None = None,
    rules: Sequence[str] | None = None,
    searching: bool = False,
    threshold: float | None = None,
    judging: str = DEFAULT,
    say: Say = print,
) -> Repaired:
    """Train with and without the mutants of a run, once for each seed, and compare on the test set.

    Both sides have the same trainer, seeds and start; they differ in the mutants alone. The same call again goes on
    where it stopped: a finished training is not done again, and the test set is evaluated once.

    Args:
        run: a run of the detector before repair, on the training set, with rules of the relation presence.
        train, val, test: annotated datasets that share no image.
        by: the trainer, `reference` or `package.module:function`.
        rules: take the mutants of these alone.
        searching: try every ratio and σ on a sample of the training set and take the best on the validation set.
    """
    _check_arguments(seeds, rules, searching, start)
    folder = Path(out)
    trains = by if isinstance(by, Trainer) else trainer(by)
    available = _exposing(run, threshold, judging)
    sets = {"train": _opened(train), "val": _opened(val), "test": _opened(test)}
    settings = {
        "system": run.manifest.system.fingerprint,
        "seed": run.manifest.seed,
        "rules": _named(run, rules),
        "share": share,
        "trainer": trains.name,
        "start": str(start) if start else None,
        "search": searching,
        "threshold": threshold,
        "judging": judging,
        "seeds": seeds,
        **{name: data.name for name, data in sets.items()},
    }
    _check_same(folder, settings)
    say("comparing the sets")
    check_disjoint(sets)
    _write_json(folder / SETTINGS, settings)
    searched = None
    if searching:
        place = folder / "search"
        searched = search(run, available, sets["train"], sets["val"], trains, place, share=share, start=start, say=say)
        rules = _best_rules(searched, folder, say)
    chosen = _chosen(run, available, sets["train"], share, rules)
    _write_sets(run, sets, chosen, folder, say)
    weights = _weights(trains, folder, seeds, start, say)
    return Repaired(folder, chosen, _tested(run, trains, weights, sets["test"], folder, chosen, say), searched)


def _check_arguments(seeds: int, rules: Sequence[str] | None, searching: bool, start: Path | None) -> None:
    """Raise before anything is trained, also where what measures is not installed."""
    if seeds < 1:
        raise ValueError(f"there is at least one seed, got {seeds}")
    if rules is not None and searching:
        raise ValueError("rules are either named or searched for: leave out `rules` or `searching`")
    if start is not None and not start.exists():
        raise FileNotFoundError(f"there are no weights {start} to start from")
    evaluator()


def _best_rules(searched: pl.DataFrame, folder: Path, say: Say) -> list[str]:
    """The rules whose mutants did best on the validation set; what was tried is written down."""
    _write_json(folder / "search.json", searched.to_dicts())
    place_file(folder / "search.md", search_markdown(searched).encode("utf-8"))
    if searched["candidate"][0] == NOTHING:
        say("on the validation set, training without mutants did better than training with any")
    rules: list[str] = searched.filter(pl.col("candidate") != NOTHING)["rules"][0].to_list()
    say(f"taking mutants of {', '.join(rules)}")
    return rules


def _write_sets(run: Run, sets: Mapping[str, Dataset], chosen: Chosen, folder: Path, say: Say) -> None:
    """Export both training sets, as far as they are not there."""
    train, val = sets["train"], sets["val"]
    listed = classes_of(train, val)
    if not (folder / "augmented").exists():
        say(f"making {chosen.mutants.height:,} mutants")
        with_mutants = chain(examples(train.cases()), mutants(run, chosen.mutants, train))
        export(folder / "augmented", with_mutants, val, classes=listed)
    if not (folder / "originals").exists():
        export(folder / "originals", examples(train.cases()), val, classes=listed)


def _weights(by: Trainer, folder: Path, seeds: int, start: Path | None, say: Say) -> dict[str, list[Path]]:
    """Train both sides, once for each seed."""
    weights: dict[str, list[Path]] = {side: [] for side in SIDES}
    spent: list[float] = []
    for number in range(seeds):
        for side, training in zip(SIDES, ("originals", "augmented"), strict=True):
            whole = sum(spent) / len(spent) * (2 * seeds - len(spent)) / 60 if spent else None
            say(
                f"training {len(spent) + 1} of {2 * seeds}: {side}, seed {number}"
                f"{'' if whole is None else f'; about {whole:.1f} min left for all of them'}"
            )
            out = folder / "trained" / f"{side}-{number}"
            weights[side].append(trained(by, folder / training, out, seed=number, start=start))
            spent.append(seconds(out))
    return weights


def _tested(
    run: Run, by: Trainer, weights: Mapping[str, Sequence[Path]], test: Dataset, folder: Path, chosen: Chosen, say: Say
) -> pl.DataFrame:
    """Evaluate the test set and write what came of it. Nothing else looks at the test set, and this only once."""
    result = folder / "result.json"
    if result.is_file():
        say(f"the test set was evaluated before: {result}")
        return pl.DataFrame(json.loads(result.read_text("utf-8"))["table"], schema=TABLE)
    manifest = run.manifest
    suite = Suite(
        "object relevance of the run",
        tuple(mutant_rules(run)),
        output="detections",
        options=manifest.options,
        thresholds=manifest.thresholds,
    )
    measures: dict[str, list[Measured]] = {side: [] for side in weights}
    everything = [(side, number, path) for side, paths in weights.items() for number, path in enumerate(paths)]
    for place, (side, number, path) in enumerate(everything, start=1):
        say(f"testing {place} of {len(everything)}: {side}, seed {number}")
        out = folder / "test" / f"{side}-{number}"
        measures[side].append(measured(by.system(path), suite, test, out, on_progress=_spoken(say)))
    table = before_after(measures["before"], measures["after"])
    each = {
        side: [{name: None if math.isnan(value) else value for name, value in one.values().items()} for one in seeds]
        for side, seeds in measures.items()
    }
    _write_json(result, {"table": table.to_dicts(), "seeds": each, "mutants": chosen.counts.to_dicts()})
    place_file(folder / "result.md", markdown(table).encode("utf-8"))
    return table


def _spoken(say: Say) -> Callable[[Progress], None]:
    """A line of progress now and then."""
    last = time.monotonic()

    def tell(progress: Progress) -> None:
        nonlocal last
        if time.monotonic() - last > PROGRESS_EVERY:
            last = time.monotonic()
            left = "" if progress.remaining is None else f", {progress.remaining / 60:.1f} min left"
            say(f"predicted {progress.done:,} of {progress.rows:,}{left}")

    return tell


def _exposing(run: Run, threshold: float | None, judging: str) -> pl.DataFrame:
    available = exposing(run, threshold=threshold, judging=judging)
    if available.is_empty():
        raise ValueError(
            f"{run.folder} has no violations of the relation presence, so there is nothing to repair "
            "with; `instar show` says what it has"
        )
    return available


def _named(run: Run, rules: Sequence[str] | None) -> list[str]:
    """Rules of the relation presence in this run, by their ids, with or without the relation; all by default."""
    known = mutant_rules(run)
    if rules is None:
        return [one.id for one in known]
    ids = []
    for text in rules:
        wanted = named_rule(text)
        named = [one.id for one in known if wanted.id in (one.id, one.left)]
        if not named:
            raise unknown("rule of this run", wanted.id, [one.id for one in known])
        ids += named
    return ids


def _opened(data: str | Path | Dataset) -> Dataset:
    return data if isinstance(data, Dataset) else dataset(data)


def _check_same(folder: Path, settings: Mapping[str, object]) -> None:
    """A folder is of one repair: with other settings its trainings would be taken for what they are not."""
    path = folder / SETTINGS
    begun = any((folder / name).exists() for name in ("search", "augmented", "originals", "trained"))
    if begun and path.is_file():
        stored = json.loads(path.read_text("utf-8"))
        other = [name for name in settings if stored.get(name) != settings[name]]
        if other:
            raise ValueError(
                f"{folder} holds a repair with another {' and '.join(other)} "
                f"({', '.join(str(stored.get(name)) for name in other)}); give another folder `out`"
            )


def _write_json(path: Path, content: object) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    place_file(path, text.encode("utf-8"))
