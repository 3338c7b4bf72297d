"""All questions in order, and what comes out of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from instar.case import Input
from instar.outputs import Output
from instar.scene import Scene
from instar.systems.check import geometry, maps, memory, questions, scenes, subjects
from instar.systems.check.examination import Examination, Skip, State, described
from instar.systems.check.patience import Unanswered
from instar.systems.system import System

SAMPLES = 8
"""So many inputs are asked where nobody says how many: each is predicted about a dozen times."""
Question = Callable[[Examination], tuple[State, str]]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: what was seen and, where it is not ok, what to change."""

    name: str
    state: State
    message: str


def check_system(
    system: System,
    inputs: Sequence[tuple[str, Input]],
    *,
    samples: int = SAMPLES,
    offered: int = 0,
    timeout: float | None = None,
) -> tuple[list[Finding], list[tuple[str, Input, Output]]]:
    """Findings about a system's adapter, always the same ones in one order, and its answers to the inputs.

    The first `samples` of the named inputs are used, each predicted about a dozen times; of more, or where more were
    `offered` to whoever chose these, this is said. Photos that show what the system looks for, seen from the front, say
    most. A predictor of scenes is also asked about scenes that are made here; it needs no others. An answer that takes
    longer than `timeout` seconds ends the questions, and stderr says what is waited for.
    """
    of_scenes = system.takes == Scene.kind
    if not inputs and not of_scenes:
        raise ValueError("checking a system needs at least one image")
    if samples < 1:
        raise ValueError(f"samples is at least 1, got {samples}")
    chosen = list(inputs[:samples]) or list(scenes.SCENES)
    examined = Examination(system.tested(), chosen, max(offered, len(inputs)), timeout)
    findings: list[Finding] = []
    questions_of = _OF_SCENES if of_scenes else _OF_IMAGES
    try:
        for name, question in questions_of:
            findings.append(_finding(name, question, examined))
    except Unanswered:
        left = questions_of[len(findings) :]
        findings += [Finding(name, "skipped", "not asked after one that was not answered in time") for name, _ in left]
    if failed := examined.failed(range(len(examined.log))):
        between = {"ok": ", but ", "problem": "; besides, "}.get(findings[0].state)
        message = failed if between is None else f"{findings[0].message}{between}{failed}"
        findings[0] = Finding(findings[0].name, "problem", message)
    return findings, examined.answered


def _finding(name: str, question: Question, examined: Examination) -> Finding:
    """What comes out of a question. Where parts of it failed, the rest is no reason to call anything right."""
    examined.leant_on.clear()
    try:
        state, message = question(examined)
    except Skip as reason:
        state, message = "skipped", str(reason)
    except Exception as error:  # an answer nobody thought of is a finding about the system, not a crash
        return Finding(name, "problem", f"the answers could not be compared: {described(error)}")
    if state in ("ok", "unsure", "skipped") and (failed := examined.failed(examined.leant_on)):
        return Finding(name, "unsure", failed if state == "skipped" else f"{failed}. Apart from that: {message}")
    return Finding(name, state, message)


_OF_IMAGES: tuple[tuple[str, Question], ...] = (
    ("answers", questions.answers),
    ("input", questions.untouched_input),
    ("found", questions.finds),
    ("looks", questions.looks),
    ("determinism", memory.repeats),
    ("coordinates", geometry.coordinates),
    ("extent", subjects.extent),
    ("aspect", geometry.aspect),
    ("map", maps.class_map),
    ("doubled", subjects.doubled),
    ("classes", subjects.classes),
    ("scores", questions.scores),
    ("channels", questions.channels),
    ("left/right", geometry.sides),
    ("batch", questions.batch),
    ("scale", geometry.scale),
    ("empty", questions.empty),
    ("speed", questions.speed),
)
"""In order: later questions lean on what earlier ones found out."""
_OF_SCENES: tuple[tuple[str, Question], ...] = (
    ("answers", questions.answers),
    ("determinism", memory.repeats),
    ("coordinates", scenes.place),
    ("samples", scenes.samples),
    ("past", scenes.history),
    ("map", scenes.map_read),
    ("probability", scenes.map_place),
    ("speed", questions.speed),
)
