"""MediaPipe 0.10.21 (`mp.solutions`): Holistic, Hands and the selfie segmenter."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from instar.image import Image
from instar.outputs import Output
from instar.outputs.poses import Poses
from instar.outputs.zones import Zones
from instar.skeleton import Skeleton, skeleton
from instar.spelling import Parameter
from instar.systems.litert import quiet
from instar.systems.models import model_path
from instar.systems.system import AnotherVersion, MissingExtra, System, SystemFamily, fingerprint_of, one_by_one
from instar.systems.weights import Files

_ADAPTER = "2"
"""Part of every fingerprint here; changes when an adapter's answers do."""

MediaPipe = Any  # its objects have no types
_INSTALL = "pip install 'instar[mediapipe]'"


@dataclass(frozen=True, slots=True)
class _Library:
    """The imported library: its version, and the folder that holds its package."""

    version: str
    root: Path

    def weights(self, *names: str) -> list[Path]:
        return [self.root / "mediapipe" / "modules" / f"{name}.tflite" for name in names]


def _mediapipe() -> _Library:
    """MediaPipe, imported late and without its chatter; MissingExtra says what to do where that fails."""
    if find_spec("mediapipe") is None:
        if sys.version_info >= (3, 13):
            here = f"{sys.version_info.major}.{sys.version_info.minor}"
            raise MissingExtra(
                "this system needs MediaPipe 0.10.21, whose wheel needs Python 3.11 or 3.12; "
                f"this is Python {here}. In an environment of one of those: {_INSTALL}"
            )
        raise MissingExtra(f"this system needs MediaPipe: {_INSTALL}")
    try:
        with quiet():
            import mediapipe
    except ImportError as error:
        headless = "pip install --force-reinstall --no-deps opencv-python-headless"
        hint = f"; put the OpenCV that needs no libGL back: {headless}" if "libGL" in str(error) else ""
        raise MissingExtra(f"MediaPipe is installed but cannot be imported: {error}{hint}") from error
    if not hasattr(mediapipe, "solutions"):
        version = getattr(mediapipe, "__version__", "of an unknown version")
        raise MissingExtra(f"MediaPipe {version} has no mp.solutions and no models; 0.10.21 has: {_INSTALL}")
    return _Library(mediapipe.__version__, Path(mediapipe.__file__).parent.parent)


class _Graph:
    """A MediaPipe graph of some files of weights. One that failed is of no use any more, and is built anew for the next
    image, as long as the files are the same."""

    def __init__(self, build: Callable[[], MediaPipe], weights: Sequence[Path]) -> None:
        self._build, self._files = build, Files(map(str, weights))
        self.hashes = list(self._files.hashes.values())
        self._solution: MediaPipe = None
        self._open()

    def _open(self) -> None:
        with quiet():
            try:
                self._solution = self._build()
            except (AttributeError, TypeError) as error:
                if (installed := version("protobuf")).startswith(("3.", "4.")):
                    raise
                extras = "mediapipe,numerics" if find_spec("onnx") else "mediapipe"  # onnx may have brought it along
                raise MissingExtra(
                    f"MediaPipe needs a protobuf below 5, and {installed} is installed: pip install 'instar[{extras}]'"
                ) from error
            # The graph opens in its own threads; an image waits for them, and shows now what fails.
            self._solution.process({"image": np.full((64, 64, 3), 127, np.uint8)})
        if changed := self._files.changed():
            raise AnotherVersion(f"{changed} changed, and MediaPipe was loaded with it")

    def __call__(self, image: Image) -> MediaPipe:
        if self._solution is None:
            self._open()
        try:
            return self._solution.process({"image": np.ascontiguousarray(image.pixels)})
        except Exception:
            self._solution = None
            raise

    def close(self) -> None:
        if self._solution is not None:
            self._solution.close()
            self._solution = None


def _built(
    library: _Library,
    binary: str,
    *,
    side: Mapping[str, object],
    outputs: Sequence[str],
    parameters: Mapping[str, object] | None = None,
    edit: Callable[[MediaPipe], None] | None = None,
) -> MediaPipe:
    """A solution from a graph of the wheel, edited before it starts."""
    from mediapipe.framework import calculator_pb2
    from mediapipe.python import solution_base
    from mediapipe.python._framework_bindings import resource_util, validated_graph_config

    resource_util.set_resource_dir(str(library.root))
    validated = validated_graph_config.ValidatedGraphConfig()
    validated.initialize(binary_graph_path=str(library.root / "mediapipe" / "modules" / binary))
    graph = calculator_pb2.CalculatorGraphConfig()
    graph.ParseFromString(validated.binary_config)
    if edit is not None:
        edit(graph)
    return solution_base.SolutionBase(
        graph_config=graph, side_inputs=dict(side), outputs=list(outputs), calculator_params=dict(parameters or {})
    )


def _system(
    library: _Library,
    name: str,
    kind: str,
    graph: _Graph,
    read: Callable[[MediaPipe, Image], Output],
    config: Mapping[str, object],
) -> System:
    family = name.partition("(")[0]
    fingerprint = fingerprint_of(family, _ADAPTER, library.version, sorted(config.items()), *graph.hashes)
    return System(name, kind, one_by_one(lambda image: read(graph(image), image)), fingerprint, close=graph.close)


def _points(landmarks: MediaPipe, image: Image, count: int) -> npt.NDArray[np.float64]:
    """Landmarks in pixels (count, 2), NaN where the part was not found.

    MediaPipe's x and y are shares of width and height from the top-left *corner*: x·W is a continuous
    pixel coordinate already. Measured on 70 sports photos at 0.5, 1, 2, 4 and 8 times their size of about
    150 px: body landmarks carried back from the mirror image lie right of the photo's own by a median of
    0.73 ± 0.06, 0.37 ± 0.18, -0.09 ± 0.23, -1.7 ± 0.5 and -2.2 ± 1.0 px. Were pixel centres at whole
    numbers, it would be 1 px at every size. It is near 1 - s instead, s being the source pixels per pixel
    of the model's input: as if MediaPipe's cropping took corners for pixel centres on both sides.
    That is the system's own fault, to be found by rules, and is not corrected here.
    """
    if landmarks is None:
        return np.full((count, 2), np.nan)
    points = np.array([(point.x, point.y) for point in landmarks.landmark])
    if points.shape != (count, 2) or not np.isfinite(points).all():
        raise ValueError(
            f"MediaPipe returned landmarks of shape {points.shape} instead of ({count}, 2), "
            "or coordinates that are not finite numbers"
        )
    return np.asarray(points * np.array(image.size, np.float64))


# --- faint answers ---------------------------------------------------------------------------------

_SURE = 0.5
"""Both floors of MediaPipe's own defaults: it does not answer with a person or a hand that scores less."""
_FAINT = 0.3
"""Both floors here: less than the confidence of a judging by its margin, so that who is scored lower is not lost."""
_AGAIN = "again__"


def _look_again(graph: MediaPipe, names: Sequence[str]) -> None:
    """Let the graph take fainter detections where the detector has none that MediaPipe's own defaults would take.

    A lower floor alone would change the answers about everybody: the detector averages overlapping boxes, faint ones
    too. So its last nodes, behind the network, are there twice, and the second ones count where the first have nothing.
    """
    first = [node for node in graph.node if node.name in names]
    if len(first) != len(names):
        raise RuntimeError(f"MediaPipe's graph has {len(first)} of the {len(names)} nodes {', '.join(names)}")
    inner = {stream.rpartition(":")[2] for node in first for stream in node.output_stream}
    second = [type(node).FromString(node.SerializeToString()) for node in first]
    for node in second:
        node.name = f"{_AGAIN}{node.name}"
        for streams in (node.input_stream, node.output_stream):
            for i, stream in enumerate(streams):
                tag, colon, last = stream.rpartition(":")
                streams[i] = f"{tag}{colon}{_AGAIN}{last}" if last in inner else stream
    tag, colon, detected = first[-1].output_stream[0].rpartition(":")
    first[-1].output_stream[0] = f"{tag}{colon}sure__{detected}"
    choices = [f"sure__{detected}", f"{_AGAIN}{detected}"]  # the first that is there is taken
    chosen = type(node)(calculator="MergeCalculator", input_stream=choices, output_stream=[detected])
    graph.node.extend([*second, chosen])


def _detector_floors(node: str, detection: float) -> dict[str, float]:
    """Of the detector whose tensors a node reads, and of the second look where there is one."""
    again = {f"{_AGAIN}{node}.min_score_thresh": detection} if detection < _SURE else {}
    return {f"{node}.min_score_thresh": max(detection, _SURE), **again}


# --- Holistic --------------------------------------------------------------------------------------

_POSE_NODE = "poselandmarkcpu__"
_BY_ROI = f"{_POSE_NODE}poselandmarkbyroicpu__tensorstoposelandmarksandsegmentation__"
_PRESENCE = f"{_BY_ROI}pose_presence_score"
_POSE = ("lite", "full", "heavy")
_DETECTOR = (
    f"{_POSE_NODE}posedetectioncpu__TensorsToDetectionsCalculator",
    f"{_POSE_NODE}posedetectioncpu__NonMaxSuppressionCalculator",
    f"{_POSE_NODE}posedetectioncpu__DetectionLetterboxRemovalCalculator",
    f"{_POSE_NODE}SplitDetectionVectorCalculator",
)
"""From the person detector's tensors to the one detection that is followed up."""


def _holistic_graph(library: _Library, complexity: int, refine_face: bool, detection: float, tracking: float) -> _Graph:
    # Complexity 0 and 2 are not in the wheel, and MediaPipe would download them by itself, unverified.
    # The graph is given the pulled file's path instead; nothing is written into the installed package.
    size = _POSE[complexity]
    [pose] = (
        library.weights("pose_landmark/pose_landmark_full") if size == "full" else [model_path(f"pose-landmark-{size}")]
    )

    def edit(graph: MediaPipe) -> None:
        _point_to(graph, f"pose_landmark_{size}.tflite", pose)
        _forget(graph)
        if detection < _SURE:
            _look_again(graph, _DETECTOR)

    off = ("smooth_landmarks", "enable_segmentation", "smooth_segmentation", "use_prev_landmarks")
    outputs = ("pose_landmarks", "left_hand_landmarks", "right_hand_landmarks", "face_landmarks")
    build = partial(
        _built,
        library,
        "holistic_landmark/holistic_landmark_cpu.binarypb",
        edit=edit,
        side={"model_complexity": complexity, "refine_face_landmarks": refine_face, **dict.fromkeys(off, False)},
        parameters={
            **_detector_floors(_DETECTOR[0], detection),
            f"{_BY_ROI}ThresholdingCalculator.threshold": tracking,
        },
        outputs=(*outputs, "pose_detection", _PRESENCE),
    )

    weights = [
        pose,
        *library.weights(
            "pose_detection/pose_detection",
            "hand_landmark/hand_landmark_full",
            "holistic_landmark/hand_recrop",
            "face_detection/face_detection_short_range",
            "face_landmark/face_landmark" + ("_with_attention" if refine_face else ""),
        ),
    ]
    return _Graph(build, weights)


def _holistic(name: str, *, complexity: int, refine_face: bool, detection: float, tracking: float) -> System:
    library = _mediapipe()
    config = {"complexity": complexity, "refine_face": refine_face, "detection": detection, "tracking": tracking}
    graph = _holistic_graph(library, complexity, refine_face, detection, tracking)
    bones = skeleton("mediapipe-holistic" if refine_face else "mediapipe-holistic-468")
    face_count = 478 if refine_face else 468

    def read(answer: MediaPipe, image: Image) -> Poses:
        if answer.pose_landmarks is None:  # hands and face are looked for where the pose says
            return Poses.from_array([], skeleton=bones)
        points = np.concatenate(
            [
                _points(answer.pose_landmarks, image, 33),
                _points(answer.left_hand_landmarks, image, 21),
                _points(answer.right_hand_landmarks, image, 21),
                _points(answer.face_landmarks, image, face_count),
            ]
        )
        # Only the body's landmarks have a visibility; a hand or a face is there or is not.
        seen = np.isfinite(points[:, 0]).astype(np.float64)
        seen[:33] = [point.visibility for point in answer.pose_landmarks.landmark]
        return Poses.from_array(points[None], skeleton=bones, visibility=seen[None], scores=[_person_score(answer)])

    return _system(library, name, "poses", graph, read, config)


def _holistic_hands(name: str, *, complexity: int, detection: float, tracking: float) -> System:
    library = _mediapipe()
    config = {"complexity": complexity, "detection": detection, "tracking": tracking}
    graph = _holistic_graph(library, complexity, refine_face=False, detection=detection, tracking=tracking)

    def read(answer: MediaPipe, image: Image) -> Poses:
        hands = [
            _points(hand, image, 21)
            for hand in (answer.left_hand_landmarks, answer.right_hand_landmarks)
            if hand is not None
        ]
        scores = [_person_score(answer) for _ in hands]  # a hand has no score of its own
        return Poses.from_array(np.array(hands), skeleton="hand-21", scores=scores)

    return _system(library, name, "poses", graph, read, config)


def _person_score(answer: MediaPipe) -> float:
    """The lower of the scores that the two floors test: at least 0.5 where Holistic's own defaults answer."""
    return float(min(answer.pose_detection.score[0], getattr(answer, _PRESENCE)))


def _point_to(graph: MediaPipe, file: str, path: Path) -> None:
    """Let the graph load `file` from `path`."""
    from mediapipe.calculators.core import constant_side_packet_calculator_pb2 as constants

    changed = 0
    for node in graph.node:
        if node.calculator == "ConstantSidePacketCalculator":
            for packet in node.options.Extensions[constants.ConstantSidePacketCalculatorOptions.ext].packet:
                if packet.string_value.endswith(f"/{file}"):
                    packet.string_value = str(path.resolve())
                    changed += 1
    if changed != 1:
        raise RuntimeError(f"MediaPipe's graph names {file} {changed} times instead of once")


def _forget(graph: MediaPipe) -> None:
    """Take the memory of the last image out of the graph.

    Also in static image mode Holistic looks for the face and the hands where they were in the image before,
    when that is near: the same image again moved the face by 1.8 px in a 512 px photo. Without the
    tracking nodes every answer is the one that a new Holistic gives to its first image.
    """
    instead: dict[str, str] = {}
    kept = []
    for node in graph.node:
        if node.calculator == "RoiTrackingCalculator":
            [untracked] = [
                stream[len("RECROP_RECT:") :] for stream in node.input_stream if stream.startswith("RECROP_RECT:")
            ]
            [tracked] = [stream[len("TRACKING_RECT:") :] for stream in node.output_stream]
            instead[tracked] = untracked
        else:
            kept.append(node)
    if len(instead) != 3:
        raise RuntimeError(f"MediaPipe's graph tracks {len(instead)} regions, not two hands and a face")
    for node in kept:
        for i, stream in enumerate(node.input_stream):
            tag, colon, last = stream.rpartition(":")
            if last in instead:
                node.input_stream[i] = f"{tag}{colon}{instead[last]}"
    nodes = [type(node).FromString(node.SerializeToString()) for node in kept]
    del graph.node[:]
    graph.node.extend(nodes)


# --- Hands -----------------------------------------------------------------------------------------

_PARTS = ("left_hand", "right_hand")
_PALM = (
    "palmdetectioncpu__TensorsToDetectionsCalculator",
    "palmdetectioncpu__NonMaxSuppressionCalculator",
    "palmdetectioncpu__DetectionLetterboxRemovalCalculator",
)
"""From the palm detector's tensors to the palms that are followed up."""
_HAND_PRESENCE = "handlandmarkcpu__hand_presence"


@cache
def _two_hands() -> Skeleton:
    """A left and a right hand, named as those of Holistic's skeletons; a warp that mirrors exchanges them."""
    return Skeleton.from_dict(
        {
            "name": "hands-42",
            "pairs": [list(_PARTS)],
            "include": [{"skeleton": "hand-21", "as": part} for part in _PARTS],
        }
    )


def _keep_presence(graph: MediaPipe) -> None:
    """Let the graph give the hand model's score of every hand that it answers with, in their order."""
    node, score = type(graph.node[0]), "ensured_presence"
    answered = [f"{_HAND_PRESENCE}_score", f"ALLOW:{_HAND_PRESENCE}"]
    every = [f"ITEM:{score}", "BATCH_END:hand_rects_timestamp"]
    graph.node.extend(
        [
            node(calculator="GateCalculator", input_stream=answered, output_stream=[score]),
            node(calculator="EndLoopFloatCalculator", input_stream=every, output_stream=["ITERABLE:multi_presence"]),
        ]
    )


def _hands(name: str, *, max_hands: int, complexity: int, detection: float, tracking: float, sides: bool) -> System:
    library = _mediapipe()

    def edit(graph: MediaPipe) -> None:
        _keep_presence(graph)
        if detection < _SURE:
            _look_again(graph, _PALM)

    build = partial(
        _built,
        library,
        "hand_landmark/hand_landmark_tracking_cpu.binarypb",
        edit=edit,
        side={"model_complexity": complexity, "num_hands": max_hands, "use_prev_landmarks": False},
        parameters={
            **_detector_floors(_PALM[0], detection),
            "handlandmarkcpu__ThresholdingCalculator.threshold": tracking,
        },
        outputs=["multi_hand_landmarks", "multi_handedness", "multi_presence", "palm_detections"],
    )

    def read(answer: MediaPipe, image: Image) -> Poses:
        hands = np.array([_points(hand, image, 21) for hand in answer.multi_hand_landmarks or []]).reshape(-1, 21, 2)
        which = [handedness.classification[0] for handedness in answer.multi_handedness or []]
        # Which palm a hand comes from is not known, as palms are merged in between; but all are sure, or none is.
        palm = max((one.score[0] for one in answer.palm_detections or []), default=0.0)
        scores = [min(palm, presence) for presence in answer.multi_presence or []]
        if not sides:
            return Poses.from_array(hands, skeleton="hand-21", scores=scores)
        # MediaPipe takes images for those of a mirror: its "Left" is the person's right.
        places = [_PARTS.index({"Left": "right_hand", "Right": "left_hand"}[one.label]) for one in which]
        points = np.full((len(hands), 2, 21, 2), np.nan)
        points[np.arange(len(hands)), places] = hands
        return Poses.from_array(points.reshape(-1, 42, 2), skeleton=_two_hands(), scores=scores)

    config = {"max_hands": max_hands, "complexity": complexity, "detection": detection, "tracking": tracking}
    if sides:
        config["sides"] = True
    size = "full" if complexity else "lite"
    weights = library.weights(f"palm_detection/palm_detection_{size}", f"hand_landmark/hand_landmark_{size}")
    return _system(library, name, "poses", _Graph(build, weights), read, config)


# --- selfie segmenter ------------------------------------------------------------------------------


def _selfie(name: str, *, landscape: bool) -> System:
    library = _mediapipe()
    build = partial(
        _built,
        library,
        "selfie_segmentation/selfie_segmentation_cpu.binarypb",
        side={"model_selection": int(landscape)},
        outputs=["segmentation_mask"],
    )

    def read(answer: MediaPipe, image: Image) -> Zones:
        share = np.asarray(answer.segmentation_mask)
        if share.shape != image.pixels.shape[:2] or not np.isfinite(share).all():
            raise ValueError(
                f"MediaPipe returned a mask of shape {share.shape} for an image of "
                f"{image.size}, or numbers that are not finite"
            )
        return Zones((share >= 0.5).astype(np.uint8), {"background": (0,), "person": (1,)})

    weights = library.weights("selfie_segmentation/selfie_segmentation" + ("_landscape" if landscape else ""))
    return _system(library, name, "zones", _Graph(build, weights), read, {"landscape": landscape})


def _share(name: str, help: str) -> Parameter:
    return Parameter(name, "float", _FAINT, low=0, high=1, help=help)


# fmt: off
FAMILIES = (
    SystemFamily("mediapipe-holistic", "poses", _holistic, (
        Parameter("complexity", "int", 1, low=0, high=2, help="of the body model; 0 and 2 must be pulled"),
        Parameter("refine_face", "bool", False, help="478 face landmarks with irises instead of 468"),
        _share("detection", "least score of the person detector"),
        _share("tracking", "least score of the body model, below which there is no subject"),
    ), help="MediaPipe Holistic: body 33, hands 2×21, face 468 or 478 of one subject.", extra="mediapipe"),
    SystemFamily("holistic-hands", "poses", _holistic_hands, (
        Parameter("complexity", "int", 1, low=0, high=2, help="of the body model; 0 and 2 must be pulled"),
        _share("detection", "least score of the person detector"),
        _share("tracking", "least score of the body model, below which there are no hands"),
    ), help="The hands of MediaPipe Holistic: 21 landmarks per hand of one person, each hand a subject.",
                 extra="mediapipe"),
    SystemFamily("mediapipe-hands", "poses", _hands, (
        Parameter("max_hands", "int", 2, low=1, high=100, help="most hands per image"),
        Parameter("complexity", "int", 1, low=0, high=1, help="of the hand model"),
        _share("detection", "least score of the palm detector"),
        _share("tracking", "least score of the hand model, below which there is no hand"),
        Parameter("sides", "bool", False, help="each hand as a left or a right one, by its handedness"),
    ), help="MediaPipe Hands: 21 landmarks per hand, each hand a subject.", extra="mediapipe"),
    SystemFamily("mediapipe-selfie", "zones", _selfie,
                 (Parameter("landscape", "bool", False, help="the smaller model for wide images"),),
                 help="Background and person.", extra="mediapipe"),
)
# fmt: on
