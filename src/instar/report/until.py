"""What came of asking until sure, in words."""

from __future__ import annotations

from instar.analysis.until import UntilSure
from instar.engine import bound_rules, make_plan
from instar.report.words import count_of, of_total, percent
from instar.store import Store


def until_words(store: Store, choice: UntilSure) -> str:
    """After how many cases enough was known, of how many questions, and what that saved."""
    manifest = store.manifest()
    rules = bound_rules(manifest.rules, manifest.system.kind)
    keys = len(make_plan(rules, seed=0, deterministic=manifest.system.deterministic).keys())
    readable = choice.total - int((store.cases(["status"])["status"] != "ok").sum())
    every = keys * readable
    spared = every - store.predictions(["status"]).height
    share = percent(spared / every if every else 0.0)
    saved = f"{of_total(spared, every, 'prediction')} ({share}) were not needed."
    if choice.failed:
        cases = next(end.cases for end in choice.ends if end.fails)
        fails = f"A limit is sure to fail after {cases:,} of {count_of(choice.total, 'case')}"
        return f"{fails}; of the others no more was asked. {saved}"
    decided = sorted(end.cases for end in choice.ends if end.enough)
    open_ends = len(choice.ends) - len(decided)
    words = []
    if decided:
        span = f"{decided[0]:,}" if decided[0] == decided[-1] else f"{decided[0]:,} to {decided[-1]:,}"
        words.append(
            f"Enough is known of {of_total(len(decided), len(choice.ends), choice.of)} after {span} of "
            f"{count_of(choice.total, 'case')}."
        )
    if open_ends:
        words.append(f"Of {count_of(open_ends, choice.of)} not enough is known, though all cases were asked.")
    return " ".join([*words, saved])
