"""The faulty and the flawless systems of the tests, by kind of output: how each is run, and which rules say so.

Nothing is seeded here: the tables are those of `tests/quality` and `tests/perfect`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import polars as pl

import instar
from instar import Run, Suite
from instar.analysis import remembered
from instar.tasks.met_pose.landmarks import landmark_table
from tests.perfect import captioners, figures, hands, shapes
from tests.perfect import test_detections as right_detections
from tests.perfect import test_hands as right_hands
from tests.perfect import test_labels as right_labels
from tests.perfect import test_poses as right_poses
from tests.perfect import test_segmentation as right_segmentation
from tests.perfect import test_trajtest as right_forecasts
from tests.perfect.scenes import ZONES, crowd, holistic_person, one_person, perfect, system_of, three_people
from tests.perfect.walker import Walker, dataset, predictor, strolls, system
from tests.quality import painted, test_memory
from tests.quality import test_caption_faults as captions
from tests.quality import test_detection_faults as detections
from tests.quality import test_faults as met_pose
from tests.quality import test_forecast_faults as forecasts
from tests.quality import test_hand_faults as hand_faults
from tests.quality import test_label_faults as labels
from tests.quality import test_landmark_faults as landmarks
from tests.quality import test_pose_faults as poses
from tests.quality import test_segmentation_faults as segmentation
from tests.toys import write_scenes

CERTAIN = 0.0001
"""A rule whose relation is a test catches where so many of its tests reject with at most this probability by chance: a
suite of ten such rules accuses one flawless system of a thousand."""

Ask = Callable[[Suite, Path], Run]
Catching = Callable[[Run, Suite], frozenset[str]]


# --- what a rule says ------------------------------------------------------------------------------


def spelled(run: Run, suite: Suite) -> dict[str, str]:
    """The ids that the rules of a suite have in a run, with those that they have in the suite."""
    kind = run.manifest.system.kind
    return {one.for_output(kind).id: one.id for one in suite.rules}


def violated(run: Run, suite: Suite) -> frozenset[str]:
    """The rules that are violated, or whose tests reject too often; none where the answers are refused anyway."""
    names = spelled(run, suite)
    if refused(run):
        return frozenset()
    tested = {one.id for one in run.bound_rules() if one.relation.relation.tests}
    rates = run.rates().filter(pl.col("violated") > 0, ~pl.col("rule").is_in(list(tested)))
    rules = set(rates["rule"])
    if tested:
        rules |= set(run.tests().filter(pl.col("rule").is_not_null(), pl.col("p") <= CERTAIN)["rule"])
    return frozenset(names[rule] for rule in rules if rule in names)


def refused(run: Run) -> bool:
    """Whether answers to unchanged inputs were no answers: a message says so, whatever the rules."""
    unchanged = run.predictions().filter(follow_up="source")
    return bool(unchanged["status"].is_in(["error", "crashed", "timeout"]).any())


def of_landmarks(run: Run, suite: Suite) -> frozenset[str]:
    """The rules under which single landmarks are beyond the threshold, which the median over all hides."""
    table = landmark_table(run, grid=(0.2,)).filter(pl.col("violated") > 0, pl.col("rule").is_not_null())
    names = spelled(run, suite)
    return violated(run, suite) | frozenset(names[rule] for rule in table["rule"])


def straying(run: Run, suite: Suite) -> frozenset[str]:
    """The rules under which landmarks stray surely more often than pairs are violated."""
    names = spelled(run, suite)
    return frozenset(names[rule] for rule in run.straying_parts()["rule"] if rule in names)


def joined(suite: Suite) -> str:
    return " + ".join(one.id for one in suite.rules)


@dataclass(frozen=True)
class Fault:
    """A seeded fault, how it is run with a suite, which rules catch it, and what else says that it is there."""

    table: str
    run: Ask
    caught: Catching = violated
    about: tuple[str, ...] = ("*",)
    """Patterns over the rules that its table expects to name it."""
    channel: str = ""
    """What says so besides rules; for a fault that no rule catches it is what it is named by."""


@dataclass(frozen=True)
class Kind:
    """The faulty and the flawless systems of one kind of output."""

    faults: Callable[[], Mapping[str, Fault]]
    flawless: Callable[[], Mapping[str, tuple[Ask, Catching]]]


# --- poses -----------------------------------------------------------------------------------------


def _posed(answer: Any, scene: Any, deterministic: bool, suite: Suite, folder: Path) -> Run:
    made = scene()
    system = system_of(made, answer, deterministic=deterministic)
    return instar.run(system, suite, made.dataset, out=folder, workers=0, zones=ZONES)


def _figured(answer: Any, suite: Suite, folder: Path) -> Run:
    return figures.run_of(answer, folder, rules=tuple(one.id for one in suite.rules))


def _remembering(name: str, suite: Suite, folder: Path) -> Run:
    """With the kind's own suite alone: what a system remembers depends on all that it is asked."""
    make, _, cases = test_memory.FAULTS[name]
    answer = make()
    kind = "detections" if "boxes" in answer.__qualname__ else "poses"
    images = write_scenes(folder / "photos", cases)
    system = instar.declare(kind=kind, version="1")(answer)
    return instar.run(system, kind, images, out=folder / "run", workers=0, zones="none")


def _memory(run: Run, suite: Suite) -> frozenset[str]:
    """Memory is told from the answers to the source and to identity, and not by the rules that it happens to spoil."""
    return frozenset({"identity"} if remembered(run) else ())


def _memories(boxes: bool) -> dict[str, Fault]:
    return {
        name: Fault(
            "test_memory",
            partial(_remembering, name),
            _memory,
            ("identity",),
            "“it remembers”, with the rules of its test",
        )
        for name in test_memory.FAULTS
        if ("boxes" in name) is boxes
    }


def pose_faults() -> dict[str, Fault]:
    rows: dict[str, Fault] = {}
    for name, fault in poses.FAULTS.items():
        run = partial(_posed, fault.answer, fault.scene, fault.deterministic)
        hidden = bool(fault.landmarks)
        rows[name] = Fault(
            "test_pose_faults",
            run,
            of_landmarks if hidden else violated,
            fault.caught,
            "its landmarks by name" if hidden else "",
        )
    for name, paper in met_pose.FAULTS.items():
        if name in poses.FAULTS and poses.FAULTS[name].answer is paper.answer:
            continue
        run = partial(_posed, paper.answer, paper.scene, paper.deterministic)
        catches = [one for one in paper.asked if one.caught]
        others = [", ".join(f"{key}={value}" for key, value in one.judging.items()) for one in catches]
        channel = f"judged with {others[0]}" if catches and others[0] else "" if catches else "nothing: it is no fault"
        expected = tuple(pattern for one in catches for pattern in one.caught)
        rows[name] = Fault("test_faults", run, about=expected, channel=channel)
    for name, single in landmarks.FAULTS.items():
        run_of = partial(_figured, single.answer)
        rows[name] = Fault("test_landmark_faults", run_of, straying, (single.rule,), "its landmarks by name")
    return rows | _memories(boxes=False)


def flawless_poses() -> dict[str, tuple[Ask, Catching]]:
    rows: dict[str, tuple[Ask, Catching]] = {
        name: (partial(_posed, habit.answer, habit.scene, True), violated)
        for name, habit in right_poses.FLAWLESS.items()
    }
    for scene in (one_person, three_people, crowd, holistic_person):
        rows[f"perfect: {scene.__name__}"] = partial(_posed, perfect, scene, True), of_landmarks
    rows["perfect: figures"] = partial(_figured, figures.perfect), straying
    return rows


# --- hands -----------------------------------------------------------------------------------------

KIN = {
    "gamma(5)": "gamma(3)",
    **dict.fromkeys(("gamma(0.2)", "gamma(0.3)"), "gamma(0.4)"),
    **dict.fromkeys(
        ("motion(20, 0)", "motion(20, 45)", "motion(20, 90)", "motion(11, 0)", "motion(11, 90)", "motion(9, 0)"),
        "motion(9, 45)",
    ),
    **dict.fromkeys(("resolution(0.2)", "rescale(0.5)"), "resolution(0.5)"),
    "jpeg(10)": "jpeg(20)",
    **dict.fromkeys(("rotation(25)", "rotate90(2)", "rotate90(3)", "mirror(v)", "mirror(both)"), "rotation(20)"),
}
"""Faulty hand systems go by the name of a follow-up. Whoever fails under one fails under its kin, which do the same and
at least as much of it; else only the rules that the tables name could ever catch them."""


def _handled(fault: Any, suite: Suite, folder: Path) -> Run:
    def answer(view: hands.View) -> instar.Poses:
        return fault.answer(replace(view, follow_up=KIN.get(view.follow_up, view.follow_up)))  # type: ignore[no-any-return]

    return hands.ran(answer, folder, joined(suite), annotated=fault.annotated, empty=fault.empty)


def hand_table() -> dict[str, Fault]:
    return {
        name: Fault(
            "test_hand_faults",
            partial(_handled, fault),
            about=fault.rules or ("*",),
            channel=f"advice ({', '.join(fault.says)})" * bool(fault.says),
        )
        for name, fault in hand_faults.FAULTS.items()
    }


def flawless_hands() -> dict[str, tuple[Ask, Catching]]:
    def run_of(answer: hands.Answer, suite: Suite, folder: Path) -> Run:
        return hands.ran(answer, folder, joined(suite), annotated=False)

    return {name: (partial(run_of, answer), violated) for name, answer in right_hands.FLAWLESS.items()}


# --- detections ------------------------------------------------------------------------------------


def _detected(answer: Any, deterministic: bool, suite: Suite, folder: Path) -> Run:
    system = shapes.detector(answer, deterministic=deterministic)
    return instar.run(system, suite, shapes.shapes_dataset(), out=folder, workers=0)


def detection_faults() -> dict[str, Fault]:
    return {
        name: Fault(
            "test_detection_faults",
            partial(_detected, fault.answer, fault.deterministic),
            about=(fault.rule,),
            channel="the message of its refused answers" if fault.kind == "error" else "",
        )
        for name, fault in detections.FAULTS.items()
    } | _memories(boxes=True)


def flawless_detections() -> dict[str, tuple[Ask, Catching]]:
    return {
        name: (partial(_detected, answer, deterministic), violated)
        for name, (answer, deterministic) in right_detections.FLAWLESS.items()
    }


# --- captions --------------------------------------------------------------------------------------


@cache
def _pool() -> Path:
    return captioners.write_pool(Path(mkdtemp()) / "pool")


def _captioned(captioner: Any, pool: bool, suite: Suite, folder: Path) -> Run:
    return captioners.ran(captioner, folder, pool=_pool() if pool else None, suite=joined(suite))


def caption_faults() -> dict[str, Fault]:
    return {
        name: Fault(
            "test_caption_faults",
            partial(_captioned, fault.answer, fault.pool),
            about=fault.rules or ("*",),
            channel="a note" if fault.note else "",
        )
        for name, fault in captions.FAULTS.items()
    }


def flawless_captions() -> dict[str, tuple[Ask, Catching]]:
    return {name: (partial(_captioned, answer, True), violated) for name, answer in captioners.FLAWLESS.items()}


# --- forecasts -------------------------------------------------------------------------------------


def _forecast(system: Any, data: Any, suite: Suite, folder: Path) -> Run:
    return instar.run(system, suite, data, out=folder, workers=0)


def forecast_faults() -> dict[str, Fault]:
    rows = {
        name: Fault(
            "test_forecast_faults",
            partial(_forecast, predictor(fault.predictor, name), fault.data),
            about=(fault.by,),
            channel="the message of its refused answers" if name == "not numbers" else "",
        )
        for name, fault in forecasts.FORECAST_FAULTS.items()
    }
    for name, paper in forecasts.FAULTS.items():
        run = partial(_forecast, system(paper.walker), dataset(forecasts.SCENES))
        rows[name] = Fault("test_forecast_faults", run)
    return rows


def flawless_forecasts() -> dict[str, tuple[Ask, Catching]]:
    """Those that are right not to look at the map are not asked about it."""

    def but_maps(run: Run, suite: Suite) -> frozenset[str]:
        return frozenset(rule for rule in violated(run, suite) if "direction" not in rule)

    rows: dict[str, tuple[Ask, Catching]] = {
        name: (partial(_forecast, habit.system, strolls(8)), but_maps if habit.tells else violated)
        for name, habit in right_forecasts.FLAWLESS.items()
    }
    rows["walker"] = partial(_forecast, system(Walker()), dataset(forecasts.SCENES)), violated
    return rows


# --- labels and segmentation -----------------------------------------------------------------------


def _painted(make: Any, kind: str, images: Any, suite: Suite, folder: Path) -> Run:
    return painted.run_of(make(), kind, images, folder, joined(suite))


def painted_faults(kind: str) -> dict[str, Fault]:
    table: Any = labels if kind == "labels" else segmentation
    return {
        name: Fault(
            table.__name__.rpartition(".")[2],
            partial(_painted, fault.make, kind, table.IMAGES),
            about=tuple(sorted(fault.caught)) or ("*",),
            channel="a sentence about all answers" if fault.words else "",
        )
        for name, fault in table.FAULTS.items()
    }


def flawless_painted(kind: str) -> dict[str, tuple[Ask, Catching]]:
    if kind == "labels":
        rows = {name: (answer, right_labels.IMAGES) for name, answer in right_labels.FLAWLESS.items()}
    else:
        rows = dict(right_segmentation.FLAWLESS)
    return {
        name: (partial(_painted, lambda answer=answer: answer, kind, images), violated)
        for name, (answer, images) in rows.items()
    }


ELSEWHERE: Mapping[str, str] = {
    "test_class_faults": "the class by its name, where one strays more often than the others",
    "test_class_number_faults": "`instar check`, which sees names that no object has",
    "test_combined_faults": "`instar search`, since no rule alone shows them",
    "test_pattern_faults": "a pattern across rules, which no rule shows alone",
    "test_telling_faults": "a sentence on answers from which nothing can be told: silence, low scores, one for all",
    "test_whole_body_faults": "the hands by name, although the body alone is judged",
}
"""Tables of faults that another means than a rule tells, and which."""
KINDS: Mapping[str, Kind] = {
    "poses": Kind(pose_faults, flawless_poses),
    "hands": Kind(hand_table, flawless_hands),
    "detections": Kind(detection_faults, flawless_detections),
    "captions": Kind(caption_faults, flawless_captions),
    "forecasts": Kind(forecast_faults, flawless_forecasts),
    "labels": Kind(partial(painted_faults, "labels"), partial(flawless_painted, "labels")),
    "segmentation": Kind(partial(painted_faults, "segmentation"), partial(flawless_painted, "segmentation")),
}
