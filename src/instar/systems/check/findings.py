"""All questions in order, and what comes out of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from instar.case import Input
from instar.outputs import Output
from instar.scene import Scene
from instar.systems.check import geometry, maps, memory, questions, scenes, subjects
from instar.systems.check.examination import Examination, Skip, State, described
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
    system: System, inputs: Sequence[tuple[str, Input]], *, samples: int = SAMPLES, offered: int = 0
) -> tuple[list[Finding], list[tuple[str, Input, Output]]]:
    """Findings about a system's adapter, always the same ones in one order, and its answers to the inputs.

    The first `samples` of the named inputs are used, each predicted about a dozen times; of more, or where more were
    `offered` to whoever chose these, this is said. Photos
    that show what the system looks for, seen from the front, say most. A predictor of scenes is also asked about scenes
    that are made here; it needs no others.
    """
    of_scenes = system.takes == Scene.kind
    if not inputs and not of_scenes:
        raise ValueError("checking a system needs at least one image")
    if samples < 1:
        raise ValueError(f"samples is at least 1, got {samples}")
    examined = Examination(system.tested(), list(inputs[:samples]) or list(scenes.SCENES), max(offered, len(inputs)))
    questions_of = _OF_SCENES if of_scenes else _OF_IMAGES
    return [_finding(name, question, examined) for name, question in questions_of], examined.answered


def _finding(name: str, question: Question, examined: Examination) -> Finding:
    try:
        return Finding(name, *question(examined))
    except Skip as reason:
        return Finding(name, "skipped", str(reason))
    except Exception as error:  # an answer nobody thought of is a finding about the system, not a crash
        return Finding(name, "problem", f"the answers could not be compared: {described(error)}")


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
    ("speed", questions.speed),
)
