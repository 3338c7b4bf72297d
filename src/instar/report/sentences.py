"""What a run found, in sentences that code writes from numbers."""

from __future__ import annotations

import polars as pl

from instar.analysis import Memory
from instar.report.section import Section
from instar.report.words import SPACE, count_of, interval, of_total, p_text, percent, severity_text
from instar.store import Row


def headline(section: Section, t: int) -> list[str]:
    """What a relation's rules found at a threshold: the finding first, then the extremes, the gaps and the noise."""
    whole, table = section.whole(t), section.at(t)
    at = f"At a threshold of {section.with_unit(section.grid[t])}"
    if table.is_empty():
        return ["The suite has no rule of this relation but identity.", *_noise(section, t)]
    if not whole["judged"]:
        return [
            f"{at}, nothing was judged: no case has a severity under this relation.",
            *_gaps(table),
            *_noise(section, t),
        ]
    rules = "the only rule" if table.height == 1 else f"at least one of {table.height} rules"
    return [
        f"{at}, {_violating(whole)} {rules} "
        f"({percent(whole['rate'])}, 95{SPACE}% interval {interval(whole['low'], whole['high'])}).",
        *_extremes(table),
        *_gaps(table),
        *_noise(section, t),
    ]


def _violating(row: Row) -> str:
    """How many cases violate, up to the verb."""
    return f"{of_total(row['violated'], row['judged'], 'case')} violate{'s' if row['violated'] == 1 else ''}"


def _extremes(table: pl.DataFrame) -> list[str]:
    judged = table.filter(pl.col("judged") > 0)
    if judged.height < 2:
        return []
    worst, best = judged.row(0, named=True), judged.row(-1, named=True)
    if not worst["violated"]:
        return ["No rule is violated at this threshold."]
    kept = judged.filter(pl.col("violated") == 0).height
    most = f"The most violated rule is {worst['name']}: {_violating(worst)} it."
    if kept > 1:
        return [most, f"{kept} rules are violated by no case."]
    return [most, f"The least violated rule is {best['name']}: {_violating(best)} it."]


def _gaps(table: pl.DataFrame) -> list[str]:
    missing, failed = int(table["not_applicable"].sum()), int(table["failed"].sum())
    if not missing and not failed:
        return ["Every pair was judged."]
    return [
        *([f"{count_of(missing, 'pair')} {'was' if missing == 1 else 'were'} not applicable."] if missing else []),
        *([f"{count_of(failed, 'pair')} failed."] if failed else []),
    ]


def _noise(section: Section, t: int) -> list[str]:
    noise = section.noise
    if noise is None:
        return ["The suite has no rule identity for this relation, so the system's own noise is not known."]
    if not noise["judged"]:
        return ["The rule identity was judged on no case, so the system's own noise is not known."]
    if not noise["noisy"]:
        return [
            "The system is deterministic: it gave the same answer to the unchanged input again in "
            f"{of_total(noise['judged'], noise['judged'], 'case')}."
        ]
    words = [
        "The system has noise of its own: its answer to the unchanged input differed in "
        f"{of_total(noise['noisy'], noise['judged'], 'case')}; 95{SPACE}% of the cases stay within a severity of "
        f"{severity_text(noise['floor'])}."
    ]
    if section.memory is not None:
        words.append(memory_words(section.memory))
    if t in section.below_noise:
        words.append("This threshold is not above that noise floor, so rates here say little about the rules.")
    return words


def memory_words(memory: Memory) -> str:
    """That a system answers from memory, and what follows from it."""
    p = p_text(memory.p) if memory.p < 0.001 else f"= {p_text(memory.p)}"
    return (
        "It remembers: where its two answers to the unchanged input differ, they lean towards its answers to the "
        "inputs that it was asked about just before them "
        f"({of_total(memory.leaning, memory.cases, 'case')}, p {p}). What it says of one input depends on others, and "
        "so do all rates here: make it forget before each input."
    )


_LESS_AND_MORE = {
    "brightness": ("darker", "brighter"),
    "contrast": ("lower in contrast", "higher in contrast"),
    "sharpness": ("less sharp", "sharper"),
    "saturation": ("less colourful", "more colourful"),
    "pixels": ("smaller", "larger"),
}


def slice_words(row: Row) -> str:
    """A row of `slices` as a sentence."""
    if not row["value"].startswith("above "):
        more = "more" if row["effect"] > 0 else "less"
        return (
            f"cases with {row['property']} = {row['value']} fail {more} often: {percent(row['rate'])} against "
            f"{percent(row['elsewhere'])} elsewhere"
        )
    lower = row["effect"] < 0.5
    name = "number of pixels" if row["property"] == "pixels" else row["property"].replace("_", " ")
    less, more = _LESS_AND_MORE.get(row["property"], (f"lower in {name}", f"higher in {name}"))
    probability = 1 - row["effect"] if lower else row["effect"]
    return (
        f"failing cases are {less if lower else more}: a failing case has a {'lower' if lower else 'higher'} {name} "
        f"than another case with probability {probability:.2f}"
    )


def over_cases_text(row: Row) -> str:
    """What a rule over many cases measured, with its interval."""
    if row.get("drop") is not None:
        measured = (
            f"{row['baseline']:.3f} → {row['value']:.3f}, {row['drop']:+.3f} lost "
            f"(95 %: {row['low']:+.3f} to {row['high']:+.3f})"
        )
    elif row.get("r") is not None:
        rho = "" if row.get("rho") is None else f", ρ = {row['rho']:.2f}"
        measured = f"r = {row['r']:.2f} (95 %: {row['low']:.2f} to {row['high']:.2f}){rho}"
    else:
        return ""
    return f"{measured}, {count_of(row['cases'], 'case')}"
