"""Detectors in ONNX files: the layouts that YOLO and TensorFlow detectors are exported in."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from instar.image import Image
from instar.outputs.detections import Detections
from instar.spelling import Parameter
from instar.systems.boxes import COCO, COCO_NUMBERS, FLOOR, Fit, carried_back, fitted, names_in, suppressed
from instar.systems.system import MissingExtra, System, SystemFamily, fingerprint_of, imported, one_by_one
from instar.systems.weights import Edited, loaded_from
from instar.warp import Size

_ADAPTER = "1"
"""Part of the fingerprint; changes when the adapter's answers do."""

_STRIDES = ((8, 16, 32), (8, 16, 32, 64), (4, 8, 16, 32))
"""Pixels from cell to cell in the grids of usual networks, of those for large images and of those for small objects."""

_MOST = 300
"""Detections of one image."""

Floats = npt.NDArray[np.float64]
Floats32 = npt.NDArray[np.float32]
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """How an image goes in: its colours of 0 to 255 less the mean, over the deviation, in the order of the channels."""

    fit: Fit
    bgr: bool = False
    mean: tuple[float, ...] = (0, 0, 0)
    std: tuple[float, ...] = (255, 255, 255)
    pad: int = 114


_AS_READ = (1, 1, 1)
_LAYOUTS = {  # how boxes come out is in `_decoded`
    "yolox": Layout("corner", bgr=True, std=_AS_READ),
    "yolox-decoded": Layout("corner", bgr=True, std=_AS_READ),
    "yolov5": Layout("middle"),
    "yolov8": Layout("middle"),
    "nms": Layout("middle"),
    "tf": Layout("stretch", std=_AS_READ),
}
_GIVES = """\
yolox: (1, cells, 5 + classes), yolov5: (1, 3 × cells, 5 + classes), yolov8: (1, 4 + classes, cells), nms: (1, n, 6), \
tf: boxes (1, n, 4), classes (1, n), scores (1, n) and their number"""


# --- the network -----------------------------------------------------------------------------------


def onnx_session(path: Path) -> Any:
    """A loaded .onnx file, in a single thread: workers are the parallelism here."""
    onnxruntime = imported("onnxruntime", "onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


class Network:
    """A loaded .onnx file with one input, an image; `what` it should be is said where it is something else.

    `weights` are the hashes of what was loaded.
    """

    def __init__(self, path: Path, owner: str, what: str) -> None:
        if not path.is_file():
            raise FileNotFoundError(f"{owner}: there is no model file {path}")
        try:
            self._session, self.weights = loaded_from(_files(path), lambda: onnx_session(path))
        except (MissingExtra, Edited):
            raise
        except Exception as error:  # its exceptions have no common class but this
            raise ValueError(f"{owner}: {path} is not a model onnxruntime can load: {error}") from None
        inputs = self._session.get_inputs()
        shape = [*inputs[0].shape] or [0]
        several = isinstance(shape[0], int) and shape[0] != 1
        if len(inputs) != 1 or len(shape) != 4 or 3 not in (shape[1], shape[3]) or several:
            raise ValueError(
                f"{owner}: {path} takes {[each.shape for each in inputs]}; "
                f"{what} takes one image, (1, 3, height, width) or (1, height, width, 3)"
            )
        self._input: str = inputs[0].name
        kind = inputs[0].type.removeprefix("tensor(").removesuffix(")")
        self._dtype = {"float": np.float32, "float16": np.float16, "uint8": np.uint8}.get(kind)
        if self._dtype is None:
            raise ValueError(f"{owner}: {path} takes {kind}; it should take float, float16 or uint8")
        self.bytes = self._dtype is np.uint8
        self._first = shape[1] == 3
        height, width = shape[2:] if self._first else shape[1:3]
        self.size: Size | None = (width, height) if isinstance(width, int) and isinstance(height, int) else None
        self.outputs: list[str] = [each.name for each in self._session.get_outputs()]
        self.metadata: dict[str, str] = self._session.get_modelmeta().custom_metadata_map

    def __call__(self, frame: npt.NDArray[np.uint8], layout: Layout) -> list[Floats32]:
        pixels: npt.NDArray[np.number] = frame[..., ::-1] if layout.bgr else frame
        pixels = np.ascontiguousarray(pixels.transpose(2, 0, 1) if self._first else pixels)[None]
        if not self.bytes:
            mean, std = (
                np.array(each, np.float32).reshape((3, 1, 1) if self._first else 3)
                for each in (layout.mean, layout.std)
            )
            pixels = ((pixels - mean) / std).astype(self._dtype, copy=False)
        outputs = [np.asarray(each, np.float32) for each in self._session.run(None, {self._input: pixels})]
        if not all(np.isfinite(each).all() for each in outputs):
            raise ValueError("the model returned numbers that are not finite")
        return outputs

    def of_grey(self, size: Size, layout: Layout, owner: str, path: Path) -> list[Floats32]:
        """Its answer to an evenly grey image, by whose shapes it is recognised."""
        try:
            return self(np.full((size[1], size[0], 3), 114, np.uint8), layout)
        except Exception as error:  # onnxruntime's have no common class but this
            raise ValueError(f"{owner}: {path} cannot answer an image of {size[0]}×{size[1]}: {error}") from None


def frame_of(network: Network, size: int | None, owner: str, path: Path) -> Size | None:
    """The size of the images it takes: what its file tells, else the one that is given; None where nobody says."""
    if network.size and size and network.size != (size, size):
        raise ValueError(f"{owner}: {path} takes images of {network.size[0]}×{network.size[1]}, not size={size}")
    return network.size or ((size, size) if size else _stored_size(network.metadata))


def _files(path: Path) -> tuple[Path, Path]:
    """A model's files: also the one beside it, where exporters put what they keep out of it."""
    return path, path.with_name(path.name + ".data")


def _cells(size: Size, strides: Sequence[int]) -> int:
    return sum((size[0] // stride) * (size[1] // stride) for stride in strides)


def _recognised(outputs: Sequence[Floats32], size: Size) -> str | None:
    """The layout of an answer to a frame of this size, by its shapes alone."""
    if len(outputs) == 4:
        return "tf"
    shape = outputs[0].shape
    if len(outputs) != 1 or len(shape) != 3:
        return None
    cells = [_cells(size, strides) for strides in _STRIDES]
    if shape[1] in cells and shape[2] > 5:
        return "yolox"
    if shape[1] in [3 * count for count in cells] and shape[2] > 5:
        return "yolov5"
    if shape[2] in cells and shape[1] > 4:
        return "yolov8"
    return "nms" if shape[2] == 6 else None


# --- out of the network ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """Boxes (N, 4) in pixels of the network's frame, with the number of their class."""

    boxes: Floats
    classes: npt.NDArray[np.intp]
    scores: Floats


def _decoded(layout: str, outputs: Sequence[Floats32], size: Size, floor: float) -> _Candidates:
    """What a network says with a score of at least `floor`."""
    if layout == "nms":
        rows = outputs[0][0].astype(np.float64)
        rows = rows[rows[:, 4] >= floor]
        return _Candidates(rows[:, :4], rows[:, 5].astype(np.intp), rows[:, 4])
    table = outputs[0][0].T if layout == "yolov8" else outputs[0][0]
    chances = table[:, 4 if layout == "yolov8" else 5 :]
    scores = chances.max(1) if layout == "yolov8" else chances.max(1) * table[:, 4]
    sure = np.flatnonzero(scores >= floor)
    middle, sides = np.split(table[sure, :4].astype(np.float64), 2, axis=1)
    if layout == "yolox":
        corner, stride = _grid(size, len(table))
        with np.errstate(over="ignore"):  # a box that large is refused, in words
            middle, sides = (middle + corner[sure]) * stride[sure, None], np.exp(sides) * stride[sure, None]
    return _Candidates(
        np.concatenate([middle - sides / 2, middle + sides / 2], 1),
        chances[sure].argmax(1),
        scores[sure].astype(np.float64),
    )


def _grid(size: Size, count: int) -> tuple[Floats, Floats]:
    """The number (N, 2) of each cell's column and row, and its width (N,) in pixels."""
    strides = next(each for each in _STRIDES if _cells(size, each) == count)
    corners, widths = [], []
    for stride in strides:
        rows, columns = np.divmod(np.arange(_cells(size, (stride,))), size[0] // stride)
        corners.append(np.stack([columns, rows], 1))
        widths.append(np.full(len(rows), stride))
    return np.concatenate(corners).astype(np.float64), np.concatenate(widths).astype(np.float64)


def _tf_order(outputs: Sequence[str], answers: Sequence[Floats32]) -> list[int] | None:
    """Where boxes, classes, scores and their number are, by the outputs' names."""
    order = [
        next((i for i, name in enumerate(outputs) if word in name.lower()), -1)
        for word in ("box", "class", "score", "num")
    ]
    boxes, classes, scores, _ = (answers[i].shape for i in order)
    sound = sorted(order) == [0, 1, 2, 3] and boxes == (*boxes[:2], 4) and classes == scores == boxes[:2]
    return order if sound else None


def _of_tf(outputs: Sequence[Floats32], order: Sequence[int], size: Size, floor: float) -> _Candidates:
    boxes, classes, scores, number = (
        outputs[i].reshape(-1, 4) if k == 0 else outputs[i].ravel() for k, i in enumerate(order)
    )
    sure = np.flatnonzero(scores[: int(number[0])] >= floor)
    corners = boxes[sure][:, [1, 0, 3, 2]].astype(np.float64) * [*size, *size]
    return _Candidates(corners, classes[sure].astype(np.intp), scores[sure].astype(np.float64))


# --- the system ------------------------------------------------------------------------------------


def _onnx_detector(
    name: str, *, model: str, layout: str, names: str | None, size: int | None, floor: float, overlap: float
) -> System:
    path = Path(model).expanduser()
    network = Network(path, name, "a detector")
    frame = frame_of(network, size, name, path)
    class_names = names_in(names, name) if names else _stored_names(network.metadata)
    layout, tf = _settled(name, path, network, layout, frame, class_names)
    how = _LAYOUTS[layout]
    called = _called(layout, class_names)

    def one(image: Image) -> Detections:
        target = frame or image.size
        pixels, warp = fitted(image, target, how.fit, how.pad)
        answer = network(pixels, how)
        candidates = _of_tf(answer, tf, target, floor) if tf else _decoded(layout, answer, target, floor)
        if len(candidates.scores) and candidates.scores.max() > 1.001:
            raise ValueError(
                f"the model returned a score of {candidates.scores.max():.3g}; scores are 0 to 1, "
                f"so layout={layout} is not its own, or it was exported without its last sigmoid"
            )
        kept = (
            np.argsort(-candidates.scores, kind="stable")[:_MOST]
            if layout in ("nms", "tf")
            else suppressed(candidates.boxes, candidates.classes, candidates.scores, overlap, _MOST)
        )
        unknown = next((int(label) for label in candidates.classes[kept] if int(label) not in called), None)
        if unknown is not None:
            raise ValueError(
                f"the model returned class {unknown}, and there are {len(called)} names; "
                'give them all with names="classes.txt", one a line'
            )
        return carried_back(
            candidates.boxes[kept],
            [called[int(label)] for label in candidates.classes[kept]],
            candidates.scores[kept],
            warp,
        )

    fingerprint = fingerprint_of(
        "onnx-detector", _ADAPTER, layout, sorted(called.items()), frame, floor, overlap, *network.weights
    )
    return System(name, Detections.kind, one_by_one(one), fingerprint)


def _literal(metadata: dict[str, str], key: str) -> object:
    """What a file says of itself, as those that Ultralytics exports do."""
    try:
        return ast.literal_eval(metadata.get(key, ""))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _stored_names(metadata: dict[str, str]) -> tuple[str, ...] | None:
    names = _literal(metadata, "names")
    if not isinstance(names, dict) or names.keys() != set(range(len(names))):
        return None
    return tuple(str(names[i]) for i in range(len(names)))


def _stored_size(metadata: dict[str, str]) -> Size | None:
    size = _literal(metadata, "imgsz")
    if not isinstance(size, list) or len(size) != 2 or not all(isinstance(side, int) and side > 0 for side in size):
        return None
    return size[1], size[0]


def _called(layout: str, class_names: tuple[str, ...] | None) -> dict[int, str]:
    """Classes by their number: from 1 in TensorFlow's layout, in which COCO's have the numbers of its own files."""
    if layout == "tf":
        return dict(zip(COCO_NUMBERS, COCO, strict=True)) if class_names is None else dict(enumerate(class_names, 1))
    return dict(enumerate(COCO if class_names is None else class_names))


def _settled(
    name: str, path: Path, network: Network, layout: str, frame: Size | None, class_names: tuple[str, ...] | None
) -> tuple[str, list[int] | None]:
    """The layout, and for TensorFlow's the order of the outputs, once an evenly grey image was answered in it."""
    wanted = "" if layout == "auto" else layout
    if frame is None and layout != "tf" and (wanted or len(network.outputs) != 4):
        raise ValueError(f"{name}: {path} takes images of any size; say the one it was trained on, e.g. size=640")
    size = frame or (320, 320)
    outputs = network.of_grey(size, _LAYOUTS[wanted or "yolov8"], name, path)
    shapes = [each.shape for each in outputs]
    layout = wanted or _recognised(outputs, size) or ""
    if layout == "tf" and (order := _tf_order(network.outputs, outputs)):
        return layout, order
    classes = _classes(layout, shapes, size)
    if classes is None:
        what = f"layout={wanted} does not fit" if wanted else "no layout fits"
        raise ValueError(
            f"{name}: {what}: for {size[0]}×{size[1]} pixels {path} returns "
            f"{', '.join(f'{n} {s}' for n, s in zip(network.outputs, shapes, strict=True))}. "
            f"There are {_GIVES}; here there are {_cells(size, _STRIDES[0]):,} cells"
        )
    if layout == "yolox" and np.median(np.abs(outputs[0][0, :, :2])) > 8:
        raise ValueError(
            f"{name}: the boxes of {path} are decoded already; say layout=yolox-decoded, or layout=yolov5 "
            "if it takes RGB from 0 to 1 in the middle of the frame, as YOLOv6 does"
        )
    count = len(_called(layout, class_names))
    if classes and classes != count:
        raise ValueError(
            f"{name}: {path} tells {classes} classes apart, and there are {count} names"
            f'{"" if class_names else " (those of COCO)"}; give its own with names="classes.txt", one a line'
        )
    return layout, None


def _classes(layout: str, shapes: Sequence[Shape], size: Size) -> int | None:
    """How many classes an answer of this shape tells apart, 0 where it does not show; None where it has another."""
    if layout in ("", "tf") or len(shapes) != 1 or len(shapes[0]) != 3 or shapes[0][0] != 1:
        return None
    _, lines, columns = shapes[0]
    if layout == "nms":
        return 0 if columns == 6 else None
    if layout == "yolox" and lines not in [_cells(size, strides) for strides in _STRIDES]:
        return None
    classes = lines - 4 if layout == "yolov8" else columns - 5
    return classes if classes > 0 else None


# fmt: off
FAMILIES = (
    SystemFamily("onnx-detector", Detections.kind, _onnx_detector, (
        Parameter("model", "text", help="the .onnx file"),
        Parameter("layout", "choice", "auto", choices=("auto", *_LAYOUTS),
                  help="how it takes images and returns boxes; found out from the shapes it returns, if not given"),
        Parameter("names", "text", None,
                  help="a text file of its classes, one a line; if not given, the names in the model's own metadata, "
                       "else COCO's 80"),
        Parameter("size", "int", None, low=32, high=4096,
                  help="side of the square it takes, where its file does not tell"),
        FLOOR,
        Parameter("overlap", "float", 0.65, low=0, high=1,
                  help="a detection that overlaps a better one of its class by more is left out (intersection over "
                       "union); not where the model does so itself"),
    ), help="A detector in an ONNX file: YOLOX, YOLOv5 to YOLO11, with or without NMS inside, TensorFlow's.",
                 extra="onnx"),
)
# fmt: on
