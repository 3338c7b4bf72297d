"""A run in a line, as Python shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.analysis.rates import any_rule, judged_pairs
from instar.analysis.severities import COLUMNS, severities
from instar.engine import DEFAULT

if TYPE_CHECKING:
    from instar.analysis.run import Run


def summary(run: Run) -> str:
    """Folder, system, suite, cases and rules; how much was judged by default and is violated. Nothing is judged for it,
    and a folder that cannot be read is said, not raised: a debugger asks for this at any time."""
    try:
        return f"<Run {run.folder}: {_tested(run)}; {_judged(run)}>"
    except Exception as error:
        return f"<Run {run.folder}, which cannot be read: {error}>"


def _tested(run: Run) -> str:
    manifest, rules = run.manifest, run.changing_rules()
    cases = len(run.store.cases(["case"]))
    counts = f"{_many(cases, 'case')}, {_many(len(rules), 'rule')}"
    named = f"{manifest.name}, " if manifest.name else ""
    return f"{named}{manifest.system.name} under {', '.join(manifest.suites)}, {counts}"


def _judged(run: Run) -> str:
    if run.store.judging_info(DEFAULT) is None:
        return "not judged yet"
    matrix = severities(run.store.verdict_parts(DEFAULT, COLUMNS), rules=run.manifest.rules)
    limits, rules = run.thresholds(), run.changing_rules()
    pairs, whole = judged_pairs(matrix, rules), any_rule(matrix, {rule: limits[rule] for rule in rules})
    return (
        f"{pairs['judged']:,} of {_many(pairs['pairs'], 'pair')} judged, {whole['violated']:,} of "
        f"{_many(whole['judged'], 'judged case')} with a violation"
    )


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
