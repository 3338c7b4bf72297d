"""Suites: the papers' tables, and the user's own lists of rules.

Adding one is a line in the table below; its rules are parsed when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from instar.registry import from_entry_points, loaded_object
from instar.relations import rule
from instar.spelling import unknown
from instar.suites import hand_pose, met_pose, meta_ic, object_relevance, traj_test
from instar.suites.file import read_suite
from instar.suites.suite import Suite, joined
from instar.transforms import families

__all__ = ["Suite", "default_suite", "suite", "suites"]

DETECTIONS = (
    "identity", "mirror(h)", "stretch(1, 0.8)", "stretch(1.25, 1)", "resolution(0.7)",
    "gamma(0.5)", "gamma(1.5)", "brightness(20, 0.8)", "contrast(0.7)", "bilateral(80, 7)", "motion(5, 0)",
    "noise(8)", "greyscale", "colour_wheel(90)")


def _of(name: str, spellings: tuple[str, ...], help: str, output: str, **options: object) -> Suite:
    panels = (("objects",) if name.startswith("object-relevance") else ("hands",) if name.startswith("hand-pose")
              else _PANELS.get((output, bool(options)), ()))
    return Suite(name, tuple(rule(spelling) for spelling in spellings), help, output, options, panels=panels)


_PANELS = {
    ("poses", False): ("violated-counts", "classic", "landmarks"),
    ("poses", True): ("violated-counts@paper", "classic", "landmarks"),
    ("forecast", False): ("trajtest",),
    ("caption", False): ("captions",),
    ("caption", True): ("captions",),
}
"""What a report shows of a suite besides the rest, by the kind of output and whether it is judged as published."""

_TABLE, _PAPER = met_pose.TABLE, met_pose.PAPER_TABLE
_BUILT_IN: dict[str, Callable[[str], Suite]] = {
    "met-pose": lambda name: _of(
        name, met_pose.listed(_TABLE), "MET-POSE, Table I: 122 rules and identity.", "poses"),
    "met-pose/sub": lambda name: _of(
        name, met_pose.listed(_TABLE, only="sub"), "MET-POSE's restricted set: 18 rules and identity.",
        "poses"),
    "met-pose/spatial": lambda name: _of(
        name, met_pose.listed(_TABLE, only="spatial"), "MET-POSE: shape and orientation.", "poses"),
    "met-pose/quality": lambda name: _of(
        name, met_pose.listed(_TABLE, only="quality"), "MET-POSE: image quality.", "poses"),
    "met-pose/colour": lambda name: _of(
        name, met_pose.listed(_TABLE, only="colour"), "MET-POSE: colours, in zones and everywhere.", "poses"),
    "met-pose@paper": lambda name: _of(
        name, met_pose.listed(_PAPER), "MET-POSE as the original's code had it, defects included.", "poses",
        **met_pose.PAPER_JUDGING),
    "met-pose/sub@paper": lambda name: _of(
        name, met_pose.listed(_PAPER, only="sub"), "MET-POSE's restricted set as the original's code had it.",
        "poses", **met_pose.PAPER_JUDGING),
    "hand-pose": lambda name: _of(
        name, hand_pose.listed(), "Hand pose robustness: 13 cases of occlusion, exposure and motion blur.", "poses"),
    "hand-pose/occlusion": lambda name: _of(
        name, hand_pose.listed(only="occlusion"), "Hand pose: landmarks and fingers covered.", "poses"),
    "hand-pose/exposure": lambda name: _of(
        name, hand_pose.listed(only="exposure"), "Hand pose: under- and overexposed.", "poses"),
    "hand-pose/blur": lambda name: _of(
        name, hand_pose.listed(only="blur"), "Hand pose: motion blur.", "poses"),
    "hand-pose@paper": lambda name: _of(
        name, hand_pose.listed(paper=True), "Hand pose with the original's distances, wrist and shifting blur.",
        "poses", **hand_pose.PAPER_JUDGING),
    "detections": lambda name: _of(
        name, DETECTIONS, "A first look at a detector: geometry, image quality, noise and colour.",
        "detections"),
    "object-relevance": lambda name: _of(
        name, object_relevance.listed(object_relevance.RELATIONS),
        "Object relevance: objects erased, noise on objects and on the background.", "detections"),
    "object-relevance/erase": lambda name: _of(
        name, object_relevance.listed(object_relevance.RELATIONS, only="erase"),
        "Object relevance, MR-1: what is erased is not found any more.", "detections"),
    "object-relevance/object": lambda name: _of(
        name, object_relevance.listed(object_relevance.RELATIONS, only="object"),
        "Object relevance, MR-2: noise on the object.", "detections"),
    "object-relevance/background": lambda name: _of(
        name, object_relevance.listed(object_relevance.RELATIONS, only="background"),
        "Object relevance, MR-2: noise on the background.", "detections"),
    "object-relevance/each": lambda name: _of(
        name, object_relevance.each(),
        "Object relevance with one follow-up per object: the first ten of an image.", "detections"),
    "object-relevance@paper": lambda name: _of(
        name, object_relevance.listed(object_relevance.PAPER_RELATIONS),
        "Object relevance as published: one follow-up, MR-1 at every ratio.", "detections"),
    "meta-ic": lambda name: _of(
        name, meta_ic.listed(), "MetaIC: an object is inserted, at four intervals of overlap.", "caption"),
    "meta-ic@paper": lambda name: _of(
        name, meta_ic.listed(), "MetaIC with captions understood as the original's code had it.", "caption",
        **meta_ic.PAPER_JUDGING),
    "deeptest": lambda name: _of(
        name, meta_ic.DEEPTEST, "DeepTest's blur, brightness, contrast and shear on captions.", "caption"),
    "trajtest": lambda name: _of(
        name, traj_test.geometry(("wvc", "hvc"), identity=True) + traj_test.map_rules(),
        "TrajTest: mirrored, turned and rescaled scenes, changed classes and obstacles.", "forecast"),
    "trajtest/geometry": lambda name: _of(
        name, traj_test.geometry(("wvc", "hvc"), identity=True), "TrajTest: what moves map and past alike.",
        "forecast"),
    "trajtest/map": lambda name: _of(
        name, traj_test.map_rules(), "TrajTest: classes changed and obstacles in the way.", "forecast"),
    "trajtest@paper": lambda name: _of(
        name, traj_test.geometry(("wvc(8, 1, test=z)", "hvc(1)"), identity=False)
        + traj_test.map_rules(", 8, test=wilcoxon"),
        "TrajTest as published: 8 source runs, z-test per comparison, Wilcoxon's test on cells.", "forecast"),
}
_DEFAULTS = {"poses": "met-pose/sub", "detections": "detections", "forecast": "trajtest", "caption": "deeptest"}


@cache
def _built(name: str) -> Suite:
    return _BUILT_IN[name](name)


def suites() -> dict[str, Suite]:
    """Every suite by name: those of Instar and those of installed packages."""
    return {**{name: _built(name) for name in _BUILT_IN}, **from_entry_points("instar.suites", Suite)}


def default_suite(output_kind: str) -> Suite:
    """The suite for a kind of output when nobody names one."""
    if output_kind not in _DEFAULTS:
        raise unknown("output kind with a suite of its own", output_kind, _DEFAULTS)
    return _built(_DEFAULTS[output_kind])


def suite(name: str) -> Suite:
    """A suite by name, by path (`mine.toml`), as `package.module:object`, or one rule's spelling.

    Several are joined by `+`; rules they share count once.

    >>> len(suite("met-pose")), len(suite("met-pose/sub"))
    (123, 19)
    >>> [rule.id for rule in suite("met-pose/sub + contrast(0.5)").rules][-1]
    'contrast(0.5)'
    """
    text = name.strip()
    if text in _BUILT_IN:
        return _built(text)
    if text.lower().endswith(".toml") and ("+" not in text or Path(text).is_file()):
        return read_suite(Path(text), suite)
    pieces = _pieces(text)
    if len(pieces) > 1:
        return joined([suite(piece) for piece in pieces], name=" + ".join(pieces))
    installed = from_entry_points("instar.suites", Suite)
    if text in installed:
        return installed[text]
    if ":" in text and not set(text) & set("()|=,"):
        found = loaded_object(text)
        if isinstance(found, Suite):
            return found
    elif not set(text) & set("()|=[") and text not in families():
        there = [*_BUILT_IN, *installed]
        raise unknown("suite", text, [*there, *families()],
                      see=f"Suites: {', '.join(there)}; or a file such as mine.toml, "
                          "or a rule such as gamma(0.5).")
    one = rule(text)
    kind = one.relation.relation.output if one.relation else "any"
    return Suite(one.id, (one,), output=None if kind == "any" else kind)


def _pieces(text: str) -> list[str]:
    """The text between plus signs that are in no brackets."""
    pieces, depth, start = [], 0, 0
    for place, sign in enumerate(text):
        depth += (sign in "([") - (sign in ")]")
        if sign == "+" and depth == 0:
            pieces.append(text[start:place].strip())
            start = place + 1
    pieces.append(text[start:].strip())
    if len(pieces) > 1 and not all(pieces):
        raise ValueError(f"suite {text!r}: there is nothing on one side of a +")
    return pieces
