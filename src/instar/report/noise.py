"""Sentences on a system's own noise, and on its memory."""

from __future__ import annotations

import math

from instar.analysis import Memory, Repeated
from instar.report.finding import Finding
from instar.report.words import SPACE, count_of, measured, of_total, p_text
from instar.store import Row


def noise_words(noise: Row, unit: str, relation: str | None = None, *, threshold: float | None = None) -> str:
    """How far answers to the unchanged input differ, where they do; by which relation, where there are several."""
    cases = f"{of_total(noise['noisy'], noise['judged'], 'case')}{f', judged by {relation}' if relation else ''}"
    floor = measured(noise["floor"], unit, threshold)
    most = (
        "In more than one of 20 cases one of the two finds something where the other finds nothing (∞)."
        if math.isinf(noise["floor"])
        else f"In 95{SPACE}% of the cases the severity between the two answers is at most {floor}."
    )
    if _is_sampled(noise):
        return (
            "The system's answers to one input vary by chance, as it says of itself. It was "
            f"{answered_again(noise).lower()}: the severity between the two sets of answers is above 0 in {cases}, "
            f"and in 95{SPACE}% of the cases at most {floor}. So much may be chance."
        )
    return (
        f"The system has noise of its own: {answered_again(noise).lower()}, it gave answers that stray from each "
        f"other in {cases}. {most}"
    )


def noise_finding(noise: Row, unit: str, relation: str | None = None, *, threshold: float | None = None) -> Finding:
    """Return how far a model differs from itself: by chance, as it declares, or although it says that it is steady."""
    code = "noise.declared" if _is_sampled(noise) else "noise.own"
    figures = {key: noise[key] for key in ("noisy", "judged", "floor")}
    return Finding(code, noise_words(noise, unit, relation, threshold=threshold), figures=figures)


def _is_sampled(noise: Row) -> bool:
    """Whether several answers were compared with several: those of a system that says that it varies."""
    return bool(noise["sources"] > 1)


def answered_again(noise: Row) -> str:
    if not _is_sampled(noise):
        return "Asked twice about the same unchanged input"
    again = count_of(noise["repeats"], "time")
    return f"Asked {noise['sources']:,} times about the source and {again} about the same again"


def memory_finding(memory: Memory) -> Finding:
    """Return that a system answers from memory, and what follows from it."""
    p = p_text(memory.p) if memory.p < 0.001 else f"= {p_text(memory.p)}"
    words = (
        "It remembers: its answer to one input depends on the inputs that it was asked about before. Where its two "
        "answers to the same unchanged input differ, they lean towards its answers to the inputs just before them "
        f"({of_total(memory.leaning, memory.cases, 'case')}, p {p}). All rates here depend on that order: reset the "
        "system before each input."
    )
    return Finding("noise.memory", words, True, {"leaning": memory.leaning, "cases": memory.cases, "p": memory.p})


def repeated_finding(repeated: Repeated) -> Finding:
    """Return for how many violating pairs the second output is another one."""
    case, follow_up = repeated.examples[0]
    pairs = of_total(repeated.differing, repeated.pairs, "violating pair")
    passing = f" With the second output, {repeated.passing:,} of them violate no rule." if repeated.passing else ""
    words = (
        f"A second prediction gave another output for {pairs} (for example, {follow_up} of {case}).{passing} Its "
        "outputs depend on chance or on the inputs before: reset its state before each input, or declare that it isn't "
        "deterministic."
    )
    examples = [{"case": case, "follow_up": follow_up} for case, follow_up in repeated.examples]
    figures = {"repeated": repeated.pairs, "differing": repeated.differing, "passing": repeated.passing}
    return Finding("noise.repeated", words, True, {**figures, "examples": examples})
