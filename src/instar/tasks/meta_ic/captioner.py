"""A captioner that says in words what a detector sees: `two dogs on a bench and a kite`.

It is as right as its detector. Each class is named once, with its number; where things are is told only where their
boxes leave little doubt, and by no other evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from instar.case import Input
from instar.outputs.caption import Caption
from instar.outputs.detections import Detections
from instar.spelling import Parameter
from instar.systems.system import System, SystemFamily, fingerprint_of
from instar.tasks.meta_ic.language.nouns import counted

_ADAPTER = "1"
"""Part of the fingerprint; changes when the words for the same detections do."""

_NOTHING = "nothing in particular"


# fmt: off
_LAID = {
    "bottle", "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana", "apple", "sandwich", "orange",
    "broccoli", "carrot", "hot dog", "pizza", "donut", "cake", "laptop", "mouse", "remote", "keyboard", "cell phone",
    "book", "vase", "scissors",
}
_SEATED = {
    "person", "cat", "dog", "bird", "teddy bear", "backpack", "handbag", "suitcase", "laptop", "remote", "cell phone",
    "book",
}
# fmt: on
_TABLES = {"dining table"}
_SEATS = {"bed", "bench", "chair", "couch"}
_MOUNTS = {"horse", "bicycle", "motorcycle"}
_BOARDS = {"surfboard", "skateboard", "snowboard"}
_SUPPORTS = {*_TABLES, *_SEATS, *_MOUNTS, *_BOARDS}
_WORN = {"tie", "backpack", "handbag"}


class _Thing(NamedTuple):
    """A detection: its class and its box."""

    label: str
    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def width(self) -> float:
        return self.x1 - self.x0

    @property
    def height(self) -> float:
        return self.y1 - self.y0

    @property
    def area(self) -> float:
        return self.width * self.height

    @property
    def middle(self) -> tuple[float, float]:
        return (self.x0 + self.x1) / 2, (self.y0 + self.y1) / 2


# --- where things are, by their boxes --------------------------------------------------------------


def _across(a: _Thing, b: _Thing) -> float:
    """How far the two overlap from left to right; negative is the gap between them."""
    return min(a.x1, b.x1) - max(a.x0, b.x0)


def _rests(a: _Thing, on: _Thing) -> bool:
    """Whether a thing's lower edge lies where what it rests on would carry it."""
    foot = (a.y1 - on.y0) / on.height if on.height else -1.0
    inside = _across(a, on) >= 0.8 * a.width and a.area < on.area
    if on.label in _TABLES:
        return a.label in _LAID and 0.1 <= foot <= 1 and inside
    if on.label in _SEATS:  # what stands behind one ends where its back begins; what stands before it reaches its foot
        return a.label in _SEATED and (a.label, on.label) != ("person", "chair") and 0.3 <= foot <= 0.9 and inside
    if a.label != "person":
        return False
    if on.label in _MOUNTS:
        return a.y0 < on.y0 and 0.2 <= foot <= 0.9 and _across(a, on) >= 0.5 * a.width
    # a board that lies, at the feet
    return (
        on.width >= on.height
        and on.middle[1] >= a.y0 + 0.75 * a.height
        and abs(a.y1 - on.middle[1]) <= 0.15 * a.height
        and _across(a, on) >= 0.5 * min(a.width, on.width)
    )


def _carries(person: _Thing, a: _Thing) -> bool:
    if a.label in _WORN:
        across, down = _across(person, a), min(person.y1, a.y1) - max(person.y0, a.y0)
        return across > 0 and across * down >= 0.6 * a.area and a.area < 0.5 * person.area
    return (
        a.x0 <= person.middle[0] <= a.x1
        and a.y1 >= person.y0
        and a.middle[1] < person.middle[1]
        and a.width <= 3 * person.width
    )


def _beside(a: _Thing, b: _Thing) -> bool:
    """On the same ground, about as large, with a small gap or hardly an overlap between them."""
    narrow, tall = min(a.width, b.width), max(a.height, b.height)
    return (
        -0.5 * narrow <= _across(a, b) <= 0.1 * narrow
        and abs(a.y1 - b.y1) <= 0.25 * tall
        and max(a.area, b.area) < 4 * min(a.area, b.area)
    )


# --- and in words ----------------------------------------------------------------------------------


def _listed(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def caption_of(detections: Detections) -> str:
    """Detections in words.

    >>> caption_of(Detections.from_xyxy([[0, 0, 90, 90], [40, 50, 50, 60], [70, 50, 80, 60]], ["cow", "bird", "bird"]))
    'a cow and two birds'
    """
    weights: dict[str, float] = {}
    groups: dict[str, list[_Thing]] = {}
    rows = zip(detections.labels, detections.scores.tolist(), detections.boxes.tolist(), strict=True)
    for label, score, box in rows:
        thing = _Thing(label.replace("_", " ").strip() or "thing", *box)
        groups.setdefault(thing.label, []).append(thing)
        weights[thing.label] = weights.get(thing.label, 0.0) + score * thing.area
    if not groups:
        return _NOTHING
    order = sorted(groups, key=lambda label: (-weights[label], label))
    words = {label: counted(len(groups[label]), label) for label in order}
    people = groups.get("person", [])
    carried = [
        label
        for label in order
        if label in (*_WORN, "umbrella") and all(any(_carries(person, a) for person in people) for a in groups[label])
    ]
    if carried:
        words["person"] += f" with {_listed([words[label] for label in carried])}"
    left = [label for label in order if label not in carried]
    parts: dict[str, str] = {}
    for support in [label for label in left if label in _SUPPORTS]:
        resting = _resting([label for label in left if label not in parts], groups, groups[support])
        if resting:
            parts[resting[0]] = f"{_listed([words[label] for label in resting])} on {words[support]}"
            left = [label for label in left if label not in (*resting[1:], support)]
    phrases = [parts.get(label, words[label]) for label in left]
    if (
        len(left) == 2
        and not parts
        and all(len(groups[label]) == 1 for label in left)
        and _beside(*(groups[label][0] for label in left))
    ):
        return " next to ".join(reversed(phrases))  # the smaller one next to the larger
    # What would be read as "on a bench", too, comes after what is on it.
    phrases.sort(key=lambda part: " on " not in part)
    several, rest = [[part for part in phrases if (" and " in part) is so] for so in (True, False)]
    return ", as well as ".join(filter(None, [", and ".join(several), _listed(rest) if rest else ""]))


def _resting(labels: Sequence[str], groups: dict[str, list[_Thing]], supports: Sequence[_Thing]) -> list[str]:
    """The classes of which every one rests on one of these; none where one of these would carry nothing."""
    resting = [label for label in labels if all(any(_rests(a, on) for on in supports) for a in groups[label])]
    used = [on for on in supports if any(_rests(a, on) for label in resting for a in groups[label])]
    return resting if len(used) == len(supports) else []


def _detector_captioner(name: str, *, detector: str, confidence: float) -> System:
    from instar.systems import system  # which knows this family, too

    wrapped = system(detector)
    if wrapped.kind != Detections.kind:
        wrapped.close()
        raise ValueError(
            f"{name}: {detector} answers with {wrapped.kind}; a detector-captioner needs a system that "
            "answers with detections, e.g. efficientdet-lite0"
        )

    def predict(inputs: Sequence[Input], seeds: Sequence[int]) -> list[Caption]:
        return [_caption(answer) for answer in wrapped.answer(inputs, seeds)]

    def _caption(answer: object) -> Caption:
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Detections)
        sure = answer.confident(confidence)
        return Caption.from_text(
            caption_of(sure), score=float(sure.scores.min()) if len(sure) else None, detections=sure
        )

    fingerprint = fingerprint_of("detector-captioner", _ADAPTER, confidence, wrapped.fingerprint)
    return replace(wrapped, name=name, kind=Caption.kind, predict=predict, fingerprint=fingerprint)


FAMILIES: Mapping[str, SystemFamily] = {
    "detector-captioner": SystemFamily(
        "detector-captioner",
        Caption.kind,
        _detector_captioner,
        (
            Parameter("detector", "text", "efficientdet-lite0", help="a system that answers with detections"),
            Parameter("confidence", "float", 0.4, low=0, high=1, help="what a detection must score to be named"),
        ),
        help="Says in words what a detector sees.",
    )
}
