"""Detectors: geometry by models whose answer is known, real ones where they are at hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from instar.image import Image
from instar.outputs.detections import Detections
from instar.systems import System, system
from instar.systems.boxes import COCO, COCO_NUMBERS, Fit, carried_back, fitted, fitting, suppressed
from instar.warp import Warp, boxes_iou
from tests.missing import SHARED, astronaut, loaded_system, module, shared

Array = npt.NDArray[Any]
YOLOX = SHARED / "data" / "models" / "yolox_nano.onnx"
SIZES = [(64, 64), (640, 480), (481, 333), (333, 481), (1, 1), (1, 50), (50, 1), (2000, 3), (3, 2000), (63, 65)]


def plain(width: int, height: int, value: int = 127) -> Image:
    return Image(np.full((height, width, 3), value, np.uint8))


def noise(width: int, height: int) -> Image:
    return Image(np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8))


def only(found: System, image: Image) -> Detections:
    [answer] = found.answer([image], [0])
    assert isinstance(answer, Detections), answer
    return answer


# --- the frame -------------------------------------------------------------------------------------


@pytest.mark.parametrize("fit", ["corner", "middle", "stretch"])
@pytest.mark.parametrize("target", [(64, 64), (96, 64), (33, 47)])
@pytest.mark.parametrize("size", SIZES)
def test_image_lies_where_the_warp_says(fit: Fit, target: tuple[int, int], size: tuple[int, int]) -> None:
    frame, warp = fitted(plain(*size, 255), target, fit, 0)
    assert frame.shape == (target[1], target[0], 3)
    rows, columns = np.nonzero(frame[..., 0])
    x0, y0, x1, y1 = np.round(warp.boxes([0, 0, *size]), 9)
    assert [x0, y0, x1, y1] == [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    if fit == "corner":
        assert (x0, y0) == (0, 0)
    if fit == "middle":
        assert (x0, y0) == (target[0] - x1, target[1] - y1)
    if fit != "stretch":
        scale = min(target[0] / size[0], target[1] / size[1])
        for part, side in ((x1 - x0, size[0]), (y1 - y0, size[1])):  # whole pixels, and at least one
            assert abs(part - side * scale) <= 1 or part == 2
    box = np.array([[0.1, 0.2, 0.7, 0.9]]) * [*size, *size]
    assert warp.inverse.boxes(warp.boxes(box)) == pytest.approx(box, rel=1e-9)


@pytest.mark.parametrize("size", [(640, 480), (481, 333), (99, 640)])
def test_mirrored_image_is_the_mirrored_frame(size: tuple[int, int]) -> None:
    image = noise(*size)
    frame, _ = fitted(image, (416, 416), "middle", 114)
    turned, _ = fitted(image.warped(Warp.mirror(size, "h")), (416, 416), "middle", 114)
    assert np.array_equal(turned[:, ::-1], frame)


def test_boxes_are_cut_at_the_edge() -> None:
    warp, _ = fitting((100, 50), (64, 64), "middle")
    boxes = np.array([[-9.0, 0, 70, 70], [0, 0, 64, 15], [5, 20, 5, 30], [9, 20, 5, 30], [0, 16, 32, 32]])
    found = carried_back(boxes, list("abcde"), [0.9, 0.8, 0.7, 0.6, 0.5], warp)
    assert (found.labels, found.boxes.tolist()) == (("a", "e"), [[0, 0, 100, 50], [0, 0, 50, 25]])
    assert found.scores.tolist() == pytest.approx([0.9, 0.5])
    with pytest.raises(ValueError, match="not finite"):
        carried_back([[0, 0, np.inf, 1]], ["a"], [1], warp)


# --- non-maximum suppression -----------------------------------------------------------------------


def one_by_one(boxes: Array, classes: Array, scores: Array, overlap: float) -> list[int]:
    kept: list[int] = []
    for i in sorted(range(len(boxes)), key=lambda i: -scores[i]):
        if all(classes[i] != classes[k] or boxes_iou(boxes[i, None], boxes[k, None])[0, 0] <= overlap for k in kept):
            kept.append(i)
    return kept


@pytest.mark.parametrize("count", [0, 1, 5, 63, 64, 65, 400])
@pytest.mark.parametrize("overlap", [0.0, 0.45, 0.65, 1.0])
def test_suppression_is_that_of_the_definition(count: int, overlap: float) -> None:
    rng = np.random.default_rng(count)
    corner = rng.uniform(0, 60, (count, 2))
    boxes = np.concatenate([corner, corner + rng.uniform(0, 40, (count, 2))], 1)
    boxes[: count // 5] = boxes[count // 2 : count // 2 + count // 5]  # the same one twice
    classes = rng.integers(0, 3, count)
    scores = rng.integers(0, 50, count) / 50  # many are equal: the first one wins
    expected = one_by_one(boxes, classes, scores, overlap)
    assert suppressed(boxes, classes, scores, overlap, 1000).tolist() == expected
    assert suppressed(boxes, classes, scores, overlap, 7).tolist() == expected[:7]


def test_a_higher_floor_only_shortens_the_list() -> None:
    rng = np.random.default_rng(1)
    corner = rng.uniform(0, 30, (300, 2))
    boxes, classes, scores = np.concatenate([corner, corner + 20], 1), rng.integers(0, 2, 300), rng.random(300)
    every = suppressed(boxes, classes, scores, 0.5, 1000)
    sure = np.flatnonzero(scores >= 0.4)
    some = sure[suppressed(boxes[sure], classes[sure], scores[sure], 0.5, 1000)]
    assert some.tolist() == every[scores[every] >= 0.4].tolist()


# --- models made here ------------------------------------------------------------------------------


def saved(
    path: Path,
    nodes: list[Any],
    inputs: list[Any],
    outputs: list[Any],
    constants: Mapping[str, Array],
    names: str = "",
    imgsz: str = "",
) -> Path:
    onnx = module("onnx")
    module("onnxruntime")
    held = [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = onnx.helper.make_graph(nodes, "made", inputs, outputs, held)
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    onnx.helper.set_model_props(made, {"names": names, "imgsz": imgsz})
    path.write_bytes(made.SerializeToString())
    return path


def says(
    path: Path, takes: tuple[Any, ...], names: str = "", imgsz: str = "", dtype: str = "FLOAT", **answers: Array
) -> Path:
    """A model that answers every image of shape `takes` with the same arrays."""
    onnx = module("onnx")
    make, kinds = onnx.helper, onnx.TensorProto
    nodes = [make.make_node("Identity", [f"{name}_held"], [name]) for name in answers]
    return saved(
        path,
        nodes,
        [make.make_tensor_value_info("image", getattr(kinds, dtype), list(takes))],
        [make.make_tensor_value_info(name, kinds.FLOAT, list(value.shape)) for name, value in answers.items()],
        {f"{name}_held": value.astype(np.float32) for name, value in answers.items()},
        names,
        imgsz,
    )


def finds_white(path: Path, size: tuple[int, int], *, top: float) -> Path:
    """A model with NMS inside that finds whatever has a first channel above half of `top`, and says with what score:
    that of the last channel at the top-left pixel of the frame."""
    onnx = module("onnx")
    make, kinds = onnx.helper, onnx.TensorProto
    nodes = [
        make.make_node("Slice", ["image", "c0", "c1", "axis"], ["first"]),
        make.make_node("Greater", ["first", "half"], ["white_"]),
        make.make_node("Cast", ["white_"], ["white"], to=kinds.FLOAT),
    ]
    for axis, across in ((3, 2), (2, 3)):
        nodes += [
            make.make_node("ReduceMax", ["white"], [f"line{axis}"], axes=[across], keepdims=1),
            make.make_node("ArgMax", [f"line{axis}"], [f"low{axis}_"], axis=axis),
            make.make_node("ArgMax", [f"line{axis}"], [f"high{axis}_"], axis=axis, select_last_index=1),
            make.make_node("Cast", [f"low{axis}_"], [f"low{axis}"], to=kinds.FLOAT),
            make.make_node("Cast", [f"high{axis}_"], [f"last{axis}"], to=kinds.FLOAT),
            make.make_node("Add", [f"last{axis}", "one"], [f"high{axis}"]),
        ]
    nodes += [
        make.make_node("Slice", ["image", "from", "to", "axes"], ["corner_"]),
        make.make_node("Div", ["corner_", "top"], ["corner"]),
    ]
    parts = ["low3", "low2", "high3", "high2", "corner", "zero"]
    nodes += [make.make_node("Reshape", [part, "flat"], [f"{part}_flat"]) for part in parts]
    nodes += [make.make_node("Concat", [f"{part}_flat" for part in parts], ["found"], axis=2)]
    whole = {
        "c0": [0],
        "c1": [1],
        "axis": [1],
        "from": [2, 0, 0],
        "to": [3, 1, 1],
        "axes": [1, 2, 3],
        "flat": [1, 1, 1],
    }
    numbers = {"half": [top / 2], "one": [1.0], "zero": [0.0], "top": [top]}
    constants: dict[str, Array] = {
        **{key: np.array(value, np.int64) for key, value in whole.items()},
        **{key: np.array(value, np.float32) for key, value in numbers.items()},
    }
    return saved(
        path,
        nodes,
        [make.make_tensor_value_info("image", kinds.FLOAT, [1, 3, size[1], size[0]])],
        [make.make_tensor_value_info("found", kinds.FLOAT, [1, 1, 6])],
        constants,
    )


def cells(size: tuple[int, int]) -> list[tuple[int, int, int]]:
    """Column, row and stride of every cell."""
    return [
        (x, y, stride) for stride in (8, 16, 32) for y in range(size[1] // stride) for x in range(size[0] // stride)
    ]


def answer_in(layout: str, boxes: Array, classes: list[int], size: tuple[int, int], count: int) -> Array:
    """What a network of a layout would say of boxes in its frame, each at a cell of its own with a score of 0.8."""
    places = cells(size)
    lines = 3 * len(places) if layout == "yolov5" else len(places)
    table = np.zeros((lines, (4 if layout == "yolov8" else 5) + count))
    if layout in ("yolov5", "yolov8", "yolox-decoded"):
        table[:, :2] = size[0] / 2
    for number, (box, label) in enumerate(zip(boxes, classes, strict=True)):
        at = 7 + 11 * number
        middle, sides = (box[:2] + box[2:]) / 2, box[2:] - box[:2]
        if layout == "yolox":
            column, row, stride = places[at]
            middle, sides = middle / stride - (column, row), np.log(sides / stride)
        if layout == "yolov8":
            table[at, :4], table[at, 4 + label] = [*middle, *sides], 0.8
        else:
            table[at, :5], table[at, 5 + label] = [*middle, *sides, 0.9], 0.8 / 0.9
    return (table.T if layout == "yolov8" else table)[None]


@pytest.mark.parametrize("layout", ["yolox", "yolox-decoded", "yolov5", "yolov8", "nms"])
@pytest.mark.parametrize("size", SIZES)
def test_boxes_come_back_to_the_image(tmp_path: Path, layout: str, size: tuple[int, int]) -> None:
    target = (96, 64)
    expected = np.array([[0.1, 0.2, 0.6, 0.8], [0, 0, 1, 1], [0.5, 0.5, 0.9, 0.95]]) * [*size, *size]
    warp, _ = fitting(size, target, "corner" if layout.startswith("yolox") else "middle")
    classes = [0, 79, 17]
    boxes = warp.boxes(expected)
    rows = np.concatenate([boxes, np.full((3, 1), 0.8), np.array(classes)[:, None]], 1)
    answer = (
        np.concatenate([rows, np.zeros((5, 6))])[None]
        if layout == "nms"
        else answer_in(layout, boxes, classes, target, 80)
    )
    path = says(tmp_path / "made.onnx", (1, 3, 64, 96), found=answer)
    told = f", layout={layout}" if layout == "yolox-decoded" else ""
    found = only(system(f'onnx-detector("{path}"{told})'), plain(*size))
    order = np.argsort([COCO.index(label) for label in found.labels])
    assert [found.labels[i] for i in order] == ["person", "horse", "toothbrush"]
    assert found.boxes[order] == pytest.approx(expected[[0, 2, 1]], rel=1e-4, abs=1e-4 * max(size))
    assert found.scores == pytest.approx([0.8] * 3)


@pytest.mark.parametrize("size", [(640, 480), (481, 333), (333, 481), (900, 60), (61, 900)])
def test_geometry_end_to_end(tmp_path: Path, size: tuple[int, int]) -> None:
    """Nothing but pixels says here where the object is."""
    path = finds_white(tmp_path / "white.onnx", (96, 64), top=1)
    x0, y0, x1, y1 = (round(share * side) for share, side in zip((0.2, 0.3, 0.6, 0.9), size * 2, strict=True))
    pixels = np.zeros((size[1], size[0], 3), np.uint8)
    pixels[y0:y1, x0:x1] = 255
    pixels[0, 0] = 255  # lest a corner without margins be black, and the score 0
    pixels[0, 0, 0] = 0
    found = only(system(f'onnx-detector("{path}", floor=0)'), Image(pixels))
    cell = max(size[0] / 96, size[1] / 64)
    assert np.abs(found.boxes[0] - [x0, y0, x1, y1]).max() <= 0.51 * cell + 0.5


@pytest.mark.parametrize(("layout", "value"), [("nms", 30 / 255), ("yolox", 200.0)])
def test_colours_go_in_as_trained(tmp_path: Path, layout: str, value: float) -> None:
    """Seen from inside: the third channel at the frame's top-left pixel, of an image that fills it."""
    from instar.systems.onnx import _LAYOUTS, Network

    path = finds_white(tmp_path / "white.onnx", (64, 64), top=1)
    image = Image(np.tile(np.array([200, 100, 30], np.uint8), (64, 64, 1)))
    frame, _ = fitted(image, (64, 64), _LAYOUTS[layout].fit, _LAYOUTS[layout].pad)
    [found] = Network(path, "made", "a detector")(frame, _LAYOUTS[layout])
    assert found[0, 0, 4] == pytest.approx(value)


@pytest.mark.parametrize("dtype", ["UINT8", "FLOAT"])
@pytest.mark.parametrize("takes", [(1, 40, 60, 3), (1, "height", "width", 3)])
def test_tensorflow_layout(tmp_path: Path, takes: tuple[Any, ...], dtype: str) -> None:
    boxes = np.array([[[0.1, 0.2, 0.5, 0.6], [0, 0, 1, 1], [0, 0, 1, 1]]])
    path = says(
        tmp_path / "tf.onnx",
        takes,
        dtype=dtype,
        num_detections=np.array([2.0]),
        detection_boxes=boxes,
        detection_scores=np.array([[0.9, 0.5, 0.8]]),
        detection_classes=np.array([[1.0, 90, 1]]),
    )
    found = only(system(f'onnx-detector("{path}")'), plain(200, 100))
    assert found.labels == ("person", "toothbrush")
    assert found.boxes == pytest.approx(np.array([[40, 10, 120, 50], [0, 0, 200, 100]]), rel=1e-5)
    assert dict(zip(COCO_NUMBERS, COCO, strict=True))[13] == "stop sign"


def test_classes_of_ones_own(tmp_path: Path) -> None:
    answer = answer_in("yolov8", np.array([[8.0, 8, 40, 40]]), [1], (64, 64), 2)
    path = says(tmp_path / "two.onnx", (1, 3, 64, 64), found=answer)
    with pytest.raises(ValueError, match=r"tells 2 classes apart, and there are 80 names \(those of COCO\).*names="):
        system(f'onnx-detector("{path}")')
    names = tmp_path / "classes.txt"
    names.write_bytes("\ufeffKäfer\r\nWespe\r\n\r\n".encode())
    told = system(f'onnx-detector("{path}", names="{names}")')
    assert only(told, plain(64, 64)).labels == ("Wespe",)
    itself = says(tmp_path / "named.onnx", (1, 3, 64, 64), names="{0: 'ant', 1: 'bee'}", found=answer)
    assert only(system(f'onnx-detector("{itself}")'), plain(64, 64)).labels == ("bee",)
    names.write_text("\n")
    with pytest.raises(ValueError, match="is empty; it should hold a class per line"):
        system(f'onnx-detector("{path}", names="{names}")')
    with pytest.raises(FileNotFoundError, match="no file of names"):
        system(f'onnx-detector("{path}", names="nowhere.txt")')


def test_size_that_the_file_tells(tmp_path: Path) -> None:
    answer = answer_in("yolov8", np.array([[8.0, 8, 40, 40]]), [1], (96, 64), 80)
    path = says(tmp_path / "any.onnx", (1, 3, "height", "width"), imgsz="[64, 96]", found=answer)
    assert only(system(f'onnx-detector("{path}")'), plain(96, 64)).boxes == pytest.approx(np.array([[8, 8, 40, 40]]))
    with pytest.raises(ValueError, match="no layout fits: for 32×32"):
        system(f'onnx-detector("{path}", size=32)')


def test_fingerprint_names_what_decides(tmp_path: Path) -> None:
    answer = answer_in("yolov8", np.array([[8.0, 8, 40, 40]]), [1], (64, 64), 2)
    path = says(tmp_path / "two.onnx", (1, 3, 64, 64), found=answer)
    copy = tmp_path / "elsewhere.onnx"
    copy.write_bytes(path.read_bytes())
    (tmp_path / "a.txt").write_text("ant\nbee")
    (tmp_path / "b.txt").write_text("ant\nwasp")
    other = says(tmp_path / "other.onnx", (1, 3, 64, 64), found=0.9 * answer)

    def printed(file: Path, names: str = "a", more: str = "") -> str:
        return system(f'onnx-detector("{file}", names="{tmp_path}/{names}.txt"{more})').fingerprint

    assert printed(path) == printed(copy) == printed(path, more=", layout=yolov8")
    assert (
        len(
            {
                printed(path),
                printed(path, "b"),
                printed(other),
                printed(path, more=", floor=0.2"),
                printed(path, more=", overlap=0.5"),
            }
        )
        == 5
    )
    (tmp_path / "elsewhere.onnx.data").write_bytes(b"weights beside the file")
    assert printed(copy) != printed(path)


@pytest.mark.parametrize(
    ("takes", "shape", "more", "message"),
    [
        ((1, 3, 64, 64), (1, 5, 7), "", r"no layout fits: for 64×64 pixels .* returns found \(1, 5, 7\).* 84 cells"),
        ((1, 3, 64, 64), (1, 84, 84), ", layout=yolov5", "tells 79 classes apart"),
        (
            (1, 3, 64, 64),
            (1, 83, 85),
            ", layout=yolox",
            r"layout=yolox does not fit.*yolov8: \(1, 4 \+ classes, cells\)",
        ),
        ((1, 3, 64, 64), (1, 84, 85), ", layout=tf", r"layout=tf does not fit: .*found \(1, 84, 85\)"),
        ((1, 3, 64, 64), (1, 84, 85), ", size=32", "takes images of 64×64, not size=32"),
        ((1, 3, "h", "w"), (1, 84, 85), "", "any size; say the one it was trained on, e.g. size=640"),
        ((1, 4, 64, 64), (1, 84, 85), "", "a detector takes one image"),
        ((8, 3, 64, 64), (1, 84, 85), "", "a detector takes one image"),
    ],
)
def test_models_that_do_not_fit(
    tmp_path: Path, takes: tuple[Any, ...], shape: tuple[int, ...], more: str, message: str
) -> None:
    path = says(tmp_path / "odd.onnx", takes, found=np.zeros(shape))
    with pytest.raises(ValueError, match=message):
        system(f'onnx-detector("{path}"{more})')


def test_what_is_wrong_with_an_answer_is_said(tmp_path: Path) -> None:
    decoded = answer_in("yolox-decoded", np.array([[8.0, 8, 40, 40]]), [1], (64, 64), 80)
    path = says(tmp_path / "a.onnx", (1, 3, 64, 64), found=decoded)
    with pytest.raises(ValueError, match="decoded already; say layout=yolox-decoded, or layout=yolov5"):
        system(f'onnx-detector("{path}")')
    rows = np.array([[[0, 0, 9, 9, 7.5, 1]]])
    loud = system(f'onnx-detector("{says(tmp_path / "b.onnx", (1, 3, 64, 64), found=rows)}")')
    with pytest.raises(ValueError, match=r"score of 7.5; scores are 0 to 1, so layout=nms is not its own"):
        loud.answer([plain(9, 9)], [0])
    rows[0, 0, 4:] = 0.5, 80
    strange = system(f'onnx-detector("{says(tmp_path / "c.onnx", (1, 3, 64, 64), found=rows)}")')
    with pytest.raises(ValueError, match="returned class 80, and there are 80 names"):
        strange.answer([plain(9, 9)], [0])
    rows[0, 0, 0] = np.nan
    with pytest.raises(ValueError, match="numbers that are not finite"):
        system(f'onnx-detector("{says(tmp_path / "d.onnx", (1, 3, 64, 64), found=rows)}")')
    (tmp_path / "no.onnx").write_bytes(b"not a model")
    with pytest.raises(ValueError, match="not a model onnxruntime can load"):
        system(f'onnx-detector("{tmp_path}/no.onnx")')
    with pytest.raises(FileNotFoundError, match="no model file"):
        system('onnx-detector("nowhere.onnx")')
    with pytest.raises(ValueError, match="did you mean 'yolox'"):
        system('onnx-detector("nowhere.onnx", layout=yolo-x)')


# --- real ones -------------------------------------------------------------------------------------

REAL = {
    "efficientdet-lite0": "efficientdet-lite0",
    "efficientdet-lite1": "efficientdet-lite1",
    "efficientdet-lite2": "efficientdet-lite2",
    "yolox": f'onnx-detector("{YOLOX}")',
}


def need(name: str) -> System:
    return loaded_system(REAL[name], YOLOX if name == "yolox" else None)


def same(a: Detections, b: Detections) -> bool:
    return a.labels == b.labels and np.array_equal(a.boxes, b.boxes) and np.array_equal(a.scores, b.scores)


@pytest.mark.parametrize("name", REAL)
class TestContract:
    def test_finds_the_astronaut(self, name: str) -> None:
        found = only(need(name), astronaut())
        assert found.scores.tolist() == sorted(found.scores, reverse=True)
        assert found.labels[0] == "person"
        assert found.scores[0] > 0.8
        assert boxes_iou(found.boxes[:1], [[12, 5, 370, 512]])[0, 0] > 0.9  # she, not the flag beside her
        assert found.scores.min() < 0.1  # what is unsure is returned, too
        assert set(found.labels) <= set(COCO)

    @pytest.mark.parametrize("size", [(900, 512), (512, 900), (350, 250)])
    def test_boxes_follow_the_image(self, name: str, size: tuple[int, int]) -> None:
        """The same photo in another frame, at another size: the person goes along."""
        whole = astronaut()
        small = whole.warped(Warp.resize(whole.size, (240, 240)))
        pixels = np.full((size[1], size[0], 3), 127, np.uint8)
        pixels[5:245, -245:-5] = small.pixels
        found = only(need(name), Image(pixels))
        person = found.boxes[found.labels.index("person")]
        expected = only(need(name), small).boxes[0] + np.array([size[0] - 245, 5, size[0] - 245, 5])
        assert boxes_iou(person[None], expected[None])[0, 0] > 0.8

    def test_batch_order_and_layout_do_not_matter(self, name: str) -> None:
        found, whole = need(name), astronaut()
        before = whole.content_hash()
        crop = Image(np.ascontiguousarray(whole.pixels[:400, 20:420]))
        inputs = [whole, crop, plain(60, 40), whole, Image(np.asfortranarray(whole.pixels))]
        together = found.answer(inputs, [0] * len(inputs))
        assert all(isinstance(answer, Detections) for answer in together)
        for one, answer in zip(reversed(inputs), reversed(together), strict=True):
            assert same(only(found, one), answer)  # type: ignore[arg-type]
        assert same(together[0], together[4])  # type: ignore[arg-type]
        assert whole.content_hash() == before
        again = system(REAL[name])
        assert again.fingerprint == found.fingerprint
        assert same(only(again, crop), together[1])  # type: ignore[arg-type]

    @pytest.mark.parametrize("size", [(1, 1), (1, 50), (50, 1), (3, 2), (3000, 200)])
    def test_any_size(self, name: str, size: tuple[int, int]) -> None:
        for value in (0, 127, 255):
            found = only(need(name), plain(*size, value))
            assert (found.scores < 0.5).all()
            assert (found.boxes >= 0).all()
            assert (found.boxes <= [*size, *size]).all()


def test_a_floor_only_leaves_out() -> None:
    need("efficientdet-lite0")
    every = only(system("efficientdet-lite0(floor=0)"), astronaut())
    some = only(system("efficientdet-lite0(floor=0.2)"), astronaut())
    assert len(every) == 25
    kept = every.scores >= 0.2
    assert 0 < len(some) < 25
    assert np.array_equal(some.boxes, every.boxes[kept])


def test_files_that_are_no_efficientdet(tmp_path: Path) -> None:
    module("ai_edge_litert")
    with pytest.raises(FileNotFoundError, match="no model file"):
        system('efficientdet-lite0(model="nowhere.tflite")')
    (tmp_path / "no.tflite").write_bytes(b"not a model")
    with pytest.raises(ValueError, match="not a model LiteRT can load"):
        system(f'efficientdet-lite0(model="{tmp_path}/no.tflite")')
    movenet = shared("data/models/movenet_single_pose_lightning_ptq.tflite")
    with pytest.raises(ValueError, match=r"takes uint8 \(1, 192, 192, 3\) and returns \[\(1, 1, 17, 3\)\]"):
        system(f'efficientdet-lite0(model="{movenet}")')


# --- Hugging Face ----------------------------------------------------------------------------------


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A detector of Hugging Face's with random weights."""
    transformers, torch = module("transformers"), module("torch")
    torch.manual_seed(0)
    config = transformers.YolosConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=37,
        image_size=[64, 64],
        patch_size=16,
        num_detection_tokens=10,
        num_labels=3,
        id2label={0: "ant", 1: "bee", 2: "fly"},
        initializer_range=0.2,
    )
    transformers.YolosForObjectDetection(config).save_pretrained(tmp_path / "tiny")
    transformers.YolosImageProcessor(size={"shortest_edge": 64, "longest_edge": 96}).save_pretrained(tmp_path / "tiny")
    return tmp_path / "tiny"


def test_hugging_face(tiny: Path) -> None:
    image = noise(100, 80)
    found = system(f'huggingface-detector("{tiny}", floor=0.05)')
    answer = only(found, image)
    assert same(answer, only(found, image))
    from PIL.Image import fromarray

    pipeline = module("transformers").pipeline("object-detection", model=str(tiny))
    inside = [(each["label"], each["score"], each["box"]) for each in pipeline(fromarray(image.pixels), threshold=0.05)]
    assert len(answer) == len(inside) > 0
    by_score = sorted(zip(answer.scores, answer.labels, answer.boxes, strict=True), key=lambda each: -each[0])
    theirs = sorted(inside, key=lambda each: -each[1])
    for (score, label, box), (name, sure, edges) in zip(by_score, theirs, strict=True):
        assert (label, score) == (name, pytest.approx(sure))
        whole = [edges[edge] for edge in ("xmin", "ymin", "xmax", "ymax")]  # without what is behind the point
        assert np.abs(box - np.clip(whole, 0, [100, 80, 100, 80])).max() <= 1
    assert not np.array_equal(answer.boxes, np.round(answer.boxes))


def test_hugging_face_fingerprint(tiny: Path, tmp_path: Path) -> None:
    first = system(f'huggingface-detector("{tiny}")').fingerprint
    (tmp_path / "moved").mkdir()
    for file in tiny.iterdir():
        (tmp_path / "moved" / file.name).write_bytes(file.read_bytes())
    assert system(f'huggingface-detector("{tmp_path}/moved")').fingerprint == first
    torch, transformers = module("torch"), module("transformers")
    network = transformers.YolosForObjectDetection.from_pretrained(tiny)
    with torch.no_grad():
        next(network.parameters()).add_(0.001)
    network.save_pretrained(tiny)
    assert system(f'huggingface-detector("{tiny}")').fingerprint != first


def test_hugging_face_downloads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module("torch")
    module("transformers")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with pytest.raises(ValueError, match=r"no object detector in the folder 'nobody/nothing', nor .*hf download"):
        system("huggingface-detector(nobody/nothing)")
