"""All questions in order, and what comes out of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from instar.case import Input
from instar.outputs import Output
from instar.scene import Scene
from instar.systems.check import geometry, maps, memory, questions, scenes, subjects
from instar.systems.check.examination import Examination, Skip, described
from instar.systems.check.patience import Unanswered
from instar.systems.check.results import Finding, Result
from instar.systems.system import System

SAMPLES = 8
"""So many inputs are asked where nobody says how many: each is predicted about a dozen times."""
Question = Callable[[Examination], Result]


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
        late = "not asked after one that was not answered in time"
        findings += [Finding(f"{_area(name)}.skipped", name, "skipped", late) for name, _ in left]
    failed, figures = examined.failed(range(len(examined.log)))
    if failed:
        first = findings[0]
        between = {"ok": ", but ", "problem": "; besides, "}.get(first.state)
        message = failed if between is None else f"{first.message}{between}{failed}"
        code = first.code if first.state == "problem" else "answers.failed_changed"
        findings[0] = Finding(code, first.name, "problem", message, {**first.figures, "changed": figures})
    return findings, examined.answered


def _area(name: str) -> str:
    """The first part of the codes of a question."""
    return "sides" if name == "left/right" else name


def _finding(name: str, question: Question, examined: Examination) -> Finding:
    """Ask a question. If parts of it failed, the rest can't prove anything right."""
    examined.leant_on.clear()
    area = _area(name)
    try:
        result = question(examined)
    except Skip as reason:
        result = Result(f"{area}.skipped", "skipped", str(reason))
    except Exception as error:  # an unforeseen output is a finding about the system, not a crash
        message = f"the answers could not be compared: {described(error)}"
        return Finding(f"{area}.incomparable", name, "problem", message)
    code, state, message, figures = result.code, result.state, result.message, result.figures
    if state in ("ok", "unsure", "skipped"):
        failed, counts = examined.failed(examined.leant_on)
        if failed:
            message = failed if state == "skipped" else f"{failed}. Apart from that: {message}"
            return Finding(f"{area}.unanswered", name, "unsure", message, {**figures, **counts})
    return Finding(code, name, state, message, figures)


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
