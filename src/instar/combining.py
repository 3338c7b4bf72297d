"""The search for combinations, as users call it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from instar.analysis.combinations import combinable
from instar.analysis.onlooker import Onlooker
from instar.analysis.search import Limits, Search
from instar.api import Run, chosen_dataset, chosen_suite, providers_of, sendable, stored_providers
from instar.datasets import Dataset
from instar.engine import Outcome, Progress, predict
from instar.engine.keeper import shared_cases
from instar.image import Image
from instar.report.combinations import outcome_sentences
from instar.report.words import count_of, of_total
from instar.store import SearchInfo, Store
from instar.suites import Suite
from instar.systems import System
from instar.systems.settled import noted_answering

FEWEST = 8
"""A budget asks every rule about so many cases at least: fewer say nothing of any."""


def search(
    system: str | System | Callable[..., object],
    suite: str | Suite,
    dataset: str | Path | Dataset,
    *,
    out: str | Path,
    budget: int = 2000,
    visual: float | None = 0.3,
    most: int = 3,
    combinations: int = 5,
    seed: int | None = None,
    workers: int | None = None,
    timeout: float = 60.0,
    limit: int | None = None,
    zones: str | None = None,
    objects: str | None = None,
    pool: str | Path | None = None,
    trust: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> Run:
    """Search for combinations of a suite's rules that a person hardly sees and that break answers which no rule of them
    breaks alone; each is made as small as it can be, and its rate is taken on cases that it was not searched with.

    The same call again goes on where it was stopped; a larger budget searches on. What it found is in
    `instar.analysis.found_combinations(run)`.

    Args:
        budget: how many predictions it may have, those that the folder holds already among them.
        visual: what a person may see of a combination at the most: 1 − VIF, in the median over cases. None: any.
        most: how many rules a combination has at the most, 2 or 3.
        combinations: how many are found.
        dataset: half of its cases are searched with, the other half says how often the found ones break answers.
    """
    limits = Limits(budget, visual, most, combinations)
    chosen, cases = chosen_suite(suite), chosen_dataset(dataset)
    kept = combinable(chosen.rules)
    _refuse(limits, len(kept.rules), kept.left_out)
    store = Store(out)
    sent, workers = sendable(system, workers, "local")
    part = replace(chosen, rules=kept.rules)
    providers = providers_of(part, stored_providers(store, trust), zones=zones, objects=objects, pool=pool, trust=trust)
    seen = visual is not None and cases.inputs == Image.kind
    onlooker = Onlooker.of(store, shared_cases(cases, limit, None)) if seen else None
    choice = Search(store, kept.rules, limits, onlooker)
    with noted_answering(system):
        outcome = predict(
            sent,
            part,
            cases,
            store,
            seed=seed,
            workers=workers,
            timeout=timeout,
            limit=limit,
            providers=providers,
            choice=choice,
            search=SearchInfo((), visual if seen else None, budget),
            on_progress=None if on_progress is None else _towards(budget, on_progress),
        )
    run = Run(store, outcome)
    if store.state("predictions"):
        run.judge()
        _keep(store, choice, 0 if outcome.interrupted else choice.used)
    blind = visual is not None and not seen
    notes = [*kept.left_out, *outcome_sentences(choice, blind=blind), *_unasked(choice)]
    return Run(store, _noted(outcome, notes))


def _unasked(choice: Search) -> list[str]:
    """Why a search has fewer cases than it was given, or used less than its budget."""
    searched, apart = len(choice.searching), len(choice.held_out)
    sentences = []
    if choice.unreached:
        sentences.append(
            f"{of_total(searched, searched + choice.unreached + apart, 'case')} {'was' if searched == 1 else 'were'} "
            "searched with: every rule is asked alone about each, for at most a quarter of the budget. A larger budget "
            "reaches more, up to half of all."
        )
    if apart and not choice.winners:
        sentences.append(
            f"No combination was found to count on the {count_of(apart, 'case')} kept apart: these were not asked, and "
            "the predictions that were kept for that are not used."
        )
    return sentences


def _towards(budget: int, on_progress: Callable[[Progress], None]) -> Callable[[Progress], None]:
    """Progress of the whole search, which has many rounds."""
    return lambda progress: on_progress(replace(progress, rows=max(budget, progress.done)))


def _noted(outcome: Outcome, notes: list[str]) -> Outcome:
    return outcome if outcome.interrupted else replace(outcome, notes=(*outcome.notes, *notes))


def _keep(store: Store, choice: Search, used: int) -> None:
    """Write down what was found, also on the way: whoever opens the folder need not search again."""
    with store.lock():
        manifest = store.manifest()
        assert manifest.search is not None
        best = choice.combinations()
        store.write_manifest(replace(manifest, search=replace(manifest.search, used=used, combinations=best)))


def _refuse(limits: Limits, rules: int, left_out: tuple[str, ...]) -> None:
    if limits.most not in (2, 3):
        raise ValueError(f"a combination has 2 or 3 rules at the most (`most`), got {limits.most}")
    if limits.count < 1:
        raise ValueError(f"`combinations` is how many are found, at least 1, got {limits.count}")
    if limits.visual is not None and not 0 < limits.visual <= 1:
        raise ValueError(
            f"`visual` is above 0 and at most 1, got {limits.visual:g}; a person sees 0.3 when looking twice"
        )
    if rules < 2:
        why = f": {' '.join(left_out)}" if left_out else ""
        raise ValueError(
            f"the suite has {count_of(rules, 'rule')} that can be combined, and a combination takes two or more{why}"
        )
    if limits.budget < (least := FEWEST * (rules + 1)):
        raise ValueError(
            f"a `budget` of {limits.budget:,} predictions is too small for {rules} rules: each is asked alone first; "
            f"give {least:,} or more, or fewer rules"
        )
