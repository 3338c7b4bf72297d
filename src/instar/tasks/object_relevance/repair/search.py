"""Which mutants help: tried on a sample of the training set, decided on the validation set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path

import polars as pl
import xxhash

from instar.analysis import Run
from instar.datasets import Dataset
from instar.relations import named_rule
from instar.report.tables import markdown_lines
from instar.tasks.object_relevance.repair.evaluate import compared
from instar.tasks.object_relevance.repair.export import classes_of, examples, export
from instar.tasks.object_relevance.repair.measures import COMPARED, measure_text
from instar.tasks.object_relevance.repair.mutants import choose, mutants
from instar.tasks.object_relevance.repair.trainer import Trainer, trained

NOTHING = "no mutants"
SAMPLE = 0.3
"""The share of the training set that is trained on while searching."""


def candidates(available: pl.DataFrame) -> dict[str, list[str]]:
    """What to try: the mutants of each rule alone (a ratio, a σ), of each family, of all."""
    rules = available["rule"].unique().sort().to_list()
    families: dict[str, list[str]] = {}
    for text in rules:
        steps = named_rule(text).transformations[0].steps
        families.setdefault(" | ".join(step.family.name for step in steps), []).append(text)
    tried = {named_rule(text).left: [text] for text in rules}
    tried |= {f"{name}, every level": members for name, members in families.items() if len(members) > 1}
    if len(families) > 1:
        tried["all rules"] = rules
    return tried


def search(
    run: Run,
    available: pl.DataFrame,
    training: Dataset,
    validation: Dataset,
    by: Trainer,
    out: Path,
    *,
    share: float,
    tried: Mapping[str, Sequence[str]] | None = None,
    seed: int = 0,
    start: Path | None = None,
    say: Callable[[str], None] = print,
) -> pl.DataFrame:
    """Train once with each candidate's mutants on a sample of the training set; the best on the validation set first.

    One row per candidate: `rules`, how many `mutants`, and every measure on the validation set. Tried are the
    `candidates`, and `no mutants` to compare with, unless `tried` says otherwise. One training each: differences of a
    few hundredths may be chance.
    """
    cases = [
        case
        for case in training.cases()
        if xxhash.xxh3_64_intdigest(f"sample\x1f{seed}\x1f{case.id}".encode()) / 2**64 < SAMPLE
    ]
    part = Dataset(f"a sample of {training.name}", training.root, lambda: iter(cases), training.truth)
    sampled = available.filter(pl.col("case").is_in([case.id for case in cases]))
    rows = []
    everything = {NOTHING: [], **candidates(available)} if tried is None else tried
    for number, (name, rules) in enumerate(everything.items()):
        say(f"searching, {number + 1} of {len(everything)}: {name}")
        chosen = choose(sampled.filter(pl.col("rule").is_in(rules)), len(cases), share=share, seed=seed).mutants
        folder = out / f"set-{number:02d}"
        if not folder.exists():
            with_mutants = chain(examples(cases), mutants(run, chosen, part))
            export(folder, with_mutants, validation, classes=classes_of(training, validation))
        weights = trained(by, folder, out / f"trained-{number:02d}", seed=seed, start=start)
        values = compared(by.system(weights), validation).values()
        rows.append((name, list(rules), chosen.height, *(values[measure] for measure in COMPARED)))
    schema = {"candidate": pl.String(), "rules": pl.List(pl.String), "mutants": pl.Int64()}
    table = pl.DataFrame(rows, schema={**schema, **dict.fromkeys(COMPARED, pl.Float64())}, orient="row")
    return table.fill_nan(None).sort("mAP@0.5", descending=True, nulls_last=True)


def search_markdown(searched: pl.DataFrame) -> str:
    """Tables 11 and 12: what training with each candidate's mutants gave on the validation set."""
    heads = ["candidate", "mutants", *COMPARED]
    rows = [
        [row["candidate"], f"{row['mutants']:,}", *(measure_text(name, row[name]) for name in COMPARED)]
        for row in searched.iter_rows(named=True)
    ]
    return "\n".join(markdown_lines(heads, rows)) + "\n"
