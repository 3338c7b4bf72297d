"""Landmark models, made on the spot: they find a bright spot, whose place is known, or repeat what they were given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.image import Image
from instar.outputs.detections import Detections
from instar.outputs.poses import Poses
from instar.systems import MissingExtra, System, system
from instar.systems.landmarks import Cells, cells_onto, peaks
from instar.warp import Warp
from tests.missing import module

Array = npt.NDArray[Any]
SIDE = 64
SHIFTS = np.stack(np.meshgrid(*[np.linspace(-1.37, 1.37, 8)] * 2), -1).reshape(-1, 2)
"""In pixels of the frame. None halves one: of two cells of the same heat the first would be taken."""


# --- pictures and models ---------------------------------------------------------------------------


def spotted(size: tuple[int, int], at: Array, width: float, channels: tuple[int, ...] = (0, 1, 2)) -> Image:
    """Black, with one soft bright spot in some of the channels."""
    x, y = np.meshgrid(np.arange(size[0]) + 0.5, np.arange(size[1]) + 0.5)
    heat = 255 * np.exp(-((x - at[0]) ** 2 + (y - at[1]) ** 2) / (2 * width**2))
    pixels = np.zeros((size[1], size[0], 3), np.uint8)
    pixels[..., list(channels)] = np.rint(heat)[..., None]
    return Image(pixels)


def noise(width: int, height: int) -> Image:
    return Image(np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8))


def saved(
    path: Path,
    takes: tuple[Any, ...],
    nodes: list[Any],
    outputs: dict[str, tuple[Any, ...]],
    constants: dict[str, Array],
    dtype: str = "FLOAT",
) -> Path:
    onnx = module("onnx")
    module("onnxruntime")
    make, kinds = onnx.helper, onnx.TensorProto
    held = [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = make.make_graph(
        nodes,
        "made",
        [make.make_tensor_value_info("image", getattr(kinds, dtype), list(takes))],
        [make.make_tensor_value_info(name, kinds.FLOAT, list(shape)) for name, shape in outputs.items()],
        held,
    )
    made = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=9)
    path.write_bytes(made.SerializeToString())
    return path


def says(path: Path, takes: tuple[Any, ...] = (1, 3, SIDE, SIDE), dtype: str = "FLOAT", **answers: Array) -> Path:
    """Answers every image with the same arrays."""
    make = module("onnx").helper
    return saved(
        path,
        takes,
        [make.make_node("Identity", [f"{name}_held"], [name]) for name in answers],
        {name: value.shape for name, value in answers.items()},
        {f"{name}_held": value.astype(np.float32) for name, value in answers.items()},
        dtype,
    )


def heating(path: Path, stride: int, *, last: bool = False, gain: float = 1.0) -> Path:
    """Heat maps of 21 landmarks, each the first channel averaged over cells; `last`: images as (1, h, w, 3)."""
    make = module("onnx").helper
    first = make.make_node("Transpose", ["image"], ["turned"], perm=[0, 3, 1, 2] if last else [0, 1, 2, 3])
    nodes = [
        first,
        make.make_node("Slice", ["turned", "from", "to", "axis"], ["one"]),
        make.make_node("AveragePool", ["one"], ["heat"], kernel_shape=[stride] * 2, strides=[stride] * 2),
        make.make_node("Mul", ["heat", "gain"], ["hot"]),
        make.make_node("Tile", ["hot", "times"], ["maps"]),
    ]
    whole = {"from": [0], "to": [1], "axis": [1], "times": [1, 21, 1, 1]}
    cells = SIDE // stride
    return saved(
        path,
        (1, SIDE, SIDE, 3) if last else (1, 3, SIDE, SIDE),
        nodes,
        {"maps": (1, 21, cells, cells)},
        {**{key: np.array(value, np.int64) for key, value in whole.items()}, "gain": np.array([gain], np.float32)},
    )


def weighing(path: Path, unit: float, shape: tuple[int, ...]) -> Path:
    """The middle of the first channel's weight as the coordinates of 21 landmarks, in parts of `unit` pixels."""
    make = module("onnx").helper
    nodes = [
        make.make_node("Slice", ["image", "from", "to", "axis"], ["one"]),
        make.make_node("ReduceSum", ["one"], ["weight"], keepdims=1),
    ]
    for name in ("x", "y"):
        nodes += [
            make.make_node("Mul", ["one", f"{name}_at"], [f"{name}_all"]),
            make.make_node("ReduceSum", [f"{name}_all"], [f"{name}_sum"], keepdims=1),
            make.make_node("Div", [f"{name}_sum", "weight"], [name]),
        ]
    nodes += [
        make.make_node("Concat", ["x", "y"], ["xy"], axis=3),
        make.make_node("Tile", ["xy", "times"], ["all"]),
        make.make_node("Reshape", ["all", "shape"], ["points"]),
    ]
    places = ((np.arange(SIDE) + 0.5) / unit).astype(np.float32)
    whole = {"from": [0], "to": [1], "axis": [1], "times": [1, 1, 21, 1], "shape": list(shape)}
    return saved(
        path,
        (1, 3, SIDE, SIDE),
        nodes,
        {"points": shape},
        {
            **{key: np.array(value, np.int64) for key, value in whole.items()},
            "x_at": places[None, None, None, :],
            "y_at": places[None, None, :, None],
        },
    )


def repeating(path: Path, takes: tuple[int, ...], dtype: str = "FLOAT") -> Path:
    """The first 42 numbers that it was given, as coordinates."""
    onnx = module("onnx")
    make = onnx.helper
    nodes = [
        make.make_node("Cast", ["image"], ["numbers"], to=onnx.TensorProto.FLOAT),
        make.make_node("Reshape", ["numbers", "flat"], ["line"]),
        make.make_node("Slice", ["line", "from", "to", "axis"], ["points"]),
    ]
    whole = {"flat": [1, -1], "from": [0], "to": [42], "axis": [1]}
    return saved(
        path, takes, nodes, {"points": (1, 42)}, {key: np.array(value, np.int64) for key, value in whole.items()}, dtype
    )


def loaded(path: Path, **more: object) -> System:
    told = "".join(f", {key}={value}" for key, value in more.items())
    return system(f'onnx-landmarks("{path}"{told})')


def only(found: System, image: Image) -> Poses:
    [answer] = found.answer([image], [0])
    assert isinstance(answer, Poses), answer
    return answer


def errors(found: System, size: tuple[int, int], width: float) -> Array:
    """By how much the spot's place is missed, in pixels of the image, at many places about its middle."""
    missed = []
    for shift in SHIFTS:
        at = np.array(size) / 2 + shift * max(size) / SIDE
        hand = only(found, spotted(size, at, width)).points[0]
        assert np.ptp(hand, axis=0).max() == 0
        missed.append(hand[0] - at)
    return np.array(missed)


# --- a bright spot is found where it is ------------------------------------------------------------

SIZES = [(64, 64), (128, 128), (200, 100), (75, 150), (40, 30)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("fit", ["middle", "stretch"])
def test_heat_maps_as_fine_as_the_frame(tmp_path: Path, size: tuple[int, int], fit: str) -> None:
    found = loaded(heating(tmp_path / "a.onnx", 1), fit=fit)
    pixel = np.array(size) / SIDE if fit == "stretch" else np.full(2, max(size) / SIDE)
    missed = errors(found, size, 1.5 * max(size) / SIDE) / pixel
    assert np.abs(missed).max() < 0.5
    assert np.abs(missed.mean(0)).max() < 0.1  # to no side: half a pixel would show here


@pytest.mark.parametrize("stride", [2, 4, 8])
def test_coarse_heat_maps_are_off_by_less_than_half_a_cell_and_to_no_side(tmp_path: Path, stride: int) -> None:
    found = loaded(heating(tmp_path / "a.onnx", stride))
    middle = SIDE / 2
    shifts = np.linspace(-stride, stride, 33)
    missed = np.array(
        [
            only(found, spotted((SIDE, SIDE), np.array([middle + s, middle - s]), stride)).points[0, 0]
            - (middle + s, middle - s)
            for s in shifts
        ]
    )
    assert np.abs(missed).max() < stride / 2
    assert np.abs(missed.mean(0)).max() < stride / 16


@pytest.mark.parametrize("size", SIZES)
def test_soft_peaks(tmp_path: Path, size: tuple[int, int]) -> None:
    """Maps that are logits: 60 at the peak."""
    missed = errors(loaded(heating(tmp_path / "a.onnx", 1, gain=60), peak="soft"), size, 3 * max(size) / SIDE)
    assert np.abs(missed).max() < 0.3 * max(size) / SIDE


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("unit", "given"), [(SIDE, "share"), (1, "pixels")])
@pytest.mark.parametrize("shape", [(1, 21, 2), (1, 42)])
def test_coordinates(tmp_path: Path, size: tuple[int, int], unit: float, given: str, shape: tuple[int, ...]) -> None:
    found = loaded(weighing(tmp_path / "a.onnx", unit, shape), unit=given)
    missed = errors(found, size, 3 * max(size) / SIDE)
    assert np.abs(missed).max() < 0.02 * max(size) / SIDE


def test_images_with_channels_last(tmp_path: Path) -> None:
    missed = errors(loaded(heating(tmp_path / "a.onnx", 1, last=True)), (100, 80), 4)
    assert np.abs(missed).max() < 0.5 * 100 / SIDE


def test_a_mirrored_image_is_answered_with_the_mirrored_landmarks(tmp_path: Path) -> None:
    found = loaded(heating(tmp_path / "a.onnx", 4))
    image = spotted((101, 67), np.array([33.3, 40.1]), 6)
    flip = Warp.mirror(image.size, "h")
    there, back = only(found, image), only(found, image.warped(flip))
    assert back.warped(flip).points == pytest.approx(there.points, abs=1e-4)


def dark_squares(pixels: Array) -> Detections:
    """A detector: what is black, on white."""
    rows, columns = np.nonzero(pixels[..., 1] < 200)
    box = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1] if len(rows) else []
    return Detections.from_xyxy([box] if box else [], ["hand"] * bool(box), [0.9] * bool(box))


@pytest.mark.parametrize("corner", [(60, 30), (-9, 20), (170, 110), (3, -20)])
@pytest.mark.parametrize("margin", [1, 1.5])
def test_behind_a_detector_the_spot_is_found_in_its_crop(
    tmp_path: Path, corner: tuple[int, int], margin: float
) -> None:
    """Also where the crop reaches beyond the border. The rest of the image is white in a channel it does not see."""
    path = heating(tmp_path / "a.onnx", 1)
    chained = system(f'chain({__name__}:dark_squares, "onnx-landmarks(\\"{path}\\")", margin={margin})')
    at = np.add(corner, (33.3, 29.9))
    whole = spotted((220, 160), at, 3, (0,)).pixels.copy()
    whole[..., 1] = 255
    x, y = corner
    whole[max(y, 0) : y + 60, max(x, 0) : x + 60, 1] = 0
    answer = only(chained, Image(whole))
    box = dark_squares(whole).boxes[0]
    pixel = margin * (box[2:] - box[:2]).max() / SIDE
    assert np.abs(answer.points[0] - at).max() < 0.5 * max(pixel, 1)
    assert answer.scores[0] <= 0.9


# --- into the network ------------------------------------------------------------------------------


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    ("told", "bgr", "mean", "std"),
    [
        ({}, False, 0, 255),
        ({"std": "(1, 1, 1)"}, False, 0, 1),
        ({"bgr": "true"}, True, 0, 255),
        (
            {"mean": "(123.675, 116.28, 103.53)", "std": "(58.395, 57.12, 57.375)"},
            False,
            (123.675, 116.28, 103.53),
            (58.395, 57.12, 57.375),
        ),
        ({"bgr": "true", "mean": "(1, 2, 3)", "std": "(127.5, 100, 50)"}, True, (1, 2, 3), (127.5, 100, 50)),
    ],
)
def test_colours_go_in_as_trained(
    tmp_path: Path, last: bool, told: dict[str, str], bgr: bool, mean: Any, std: Any
) -> None:
    image = noise(SIDE, SIDE)
    path = repeating(tmp_path / "a.onnx", (1, SIDE, SIDE, 3) if last else (1, 3, SIDE, SIDE))
    given = (image.pixels[..., ::-1] if bgr else image.pixels).astype(float)
    given = (given - mean) / std
    expected = (given if last else given.transpose(2, 0, 1)).ravel()[:42].reshape(21, 2)
    assert only(loaded(path, unit="pixels", **told), image).points[0] == pytest.approx(expected, abs=1e-4)


def test_bytes_go_in_as_they_are(tmp_path: Path) -> None:
    image = noise(SIDE, SIDE)
    path = repeating(tmp_path / "a.onnx", (1, SIDE, SIDE, 3), "UINT8")
    assert np.array_equal(only(loaded(path, unit="pixels"), image).points[0], image.pixels.ravel()[:42].reshape(21, 2))
    with pytest.raises(ValueError, match="takes colours of 0 to 255 as they are; leave out mean and std"):
        loaded(path, std="(1, 1, 1)")


def test_around_the_image_it_is_black(tmp_path: Path) -> None:
    path = repeating(tmp_path / "a.onnx", (1, 3, SIDE, SIDE))
    white = Image(np.full((40, 80, 3), 255, np.uint8))
    warp = Warp(np.array([[SIDE / 80, 0, 0], [0, SIDE / 80, 16], [0, 0, 1]]), (80, 40), (SIDE, SIDE))
    assert np.allclose(warp.points(only(loaded(path, unit="pixels"), white).points[0]), 0, atol=1e-5)
    assert np.allclose(
        only(loaded(path, unit="pixels", fit="stretch"), white).points[0],
        Warp.resize((SIDE, SIDE), (80, 40)).points([[1.0, 1.0]]),
    )


# --- out of it -------------------------------------------------------------------------------------


def one_hot(shape: tuple[int, ...], *cell: int, height: float = 0.8) -> Array:
    maps = np.zeros(shape)
    maps[..., cell[0], cell[1]] = height
    return maps


@given(st.integers(2, 9), st.integers(2, 9), st.data())
def test_a_peak_goes_a_quarter_towards_the_hotter_neighbour(height: int, width: int, data: st.DataObject) -> None:
    row, column = data.draw(st.integers(0, height - 1)), data.draw(st.integers(0, width - 1))
    maps = np.random.default_rng(height).uniform(0, 0.5, (2, height, width)).astype(np.float32)
    maps[:, row, column] = 0.9
    places, heights = peaks(maps, "quarter")

    def towards(line: Array, at: int) -> float:
        return 0.25 * np.sign(line[at + 1] - line[at - 1]) if 0 < at < len(line) - 1 else 0.0

    for one, place in zip(maps, places, strict=True):
        expected = column + 0.5 + towards(one[row], column), row + 0.5 + towards(one[:, column], row)
        assert place == pytest.approx(expected)
    assert heights == pytest.approx([0.9, 0.9])


@pytest.mark.parametrize(
    ("cells", "first", "last"), [("centre", 2.0, 254.0), ("corner", 0.5, 252.5), ("ends", 0.5, 255.5)]
)
def test_what_a_cell_stands_for(cells: Cells, first: float, last: float) -> None:
    """Of 64 cells for 256 pixels: the middle of the first and of the last."""
    warp = cells_onto(cells, (64, 64), (256, 256))
    assert warp.points([[0.5, 63.5]])[0] == pytest.approx((first, last))


@pytest.mark.parametrize("cells", ["centre", "corner", "ends"])
def test_cells_in_the_image(tmp_path: Path, cells: Cells) -> None:
    path = says(tmp_path / "a.onnx", maps=one_hot((1, 21, 16, 16), 5, 9))
    expected = cells_onto(cells, (16, 16), (SIDE, SIDE)).points([[9.5, 5.5]])[0] * 2
    assert np.allclose(only(loaded(path, cells=cells), noise(128, 128)).points[0], expected, atol=1e-4)


@pytest.mark.parametrize(
    "maps",
    [
        one_hot((1, 21, 16, 16), 5, 9),
        one_hot((1, 22, 16, 16), 5, 9),
        np.moveaxis(one_hot((1, 21, 16, 16), 5, 9), 1, 3),
        np.concatenate([one_hot((1, 2, 21, 16, 16), 1, 1), one_hot((1, 1, 21, 16, 16), 5, 9)], 1),
    ],
    ids=["plain", "with background", "channels last", "three stages"],
)
def test_maps_of_every_shape(tmp_path: Path, maps: Array) -> None:
    """Beside them maps of something else, as a network has that knows limbs, too."""
    path = says(tmp_path / "a.onnx", limbs=np.zeros((1, 3, 7, 16, 16)), maps=maps)
    found = only(loaded(path), noise(SIDE, SIDE))
    assert np.allclose(found.points[0], (38, 22))
    assert found.visibility[0] == pytest.approx([0.8] * 21)
    assert found.scores == pytest.approx([0.8])


def test_heights_are_visibility_and_a_cold_map_is_an_absent_landmark(tmp_path: Path) -> None:
    maps = one_hot((1, 21, 16, 16), 5, 9)
    maps[0, :3] *= np.array([0, 0.5, 3])[:, None, None]
    found = only(loaded(says(tmp_path / "a.onnx", maps=maps)), noise(SIDE, SIDE))
    assert np.isnan(found.points[0, 0]).all()
    assert found.visibility[0, 1:4] == pytest.approx([0.4, 1, 0.8])
    assert found.scores[0] == pytest.approx((0 + 0.4 + 1 + 18 * 0.8) / 21)
    assert len(only(loaded(says(tmp_path / "b.onnx", maps=0 * maps)), noise(SIDE, SIDE))) == 0


def test_a_third_coordinate_is_left_out(tmp_path: Path) -> None:
    points = np.random.default_rng(0).uniform(0, 1, (1, 21, 3))
    for shape in ((1, 21, 3), (1, 63)):
        path = says(tmp_path / "a.onnx", points=points.reshape(shape))
        assert only(loaded(path), noise(200, 200)).points[0] == pytest.approx(200 * points[0, :, :2], rel=1e-5)


def test_other_skeletons(tmp_path: Path) -> None:
    path = says(tmp_path / "a.onnx", maps=one_hot((1, 17, 16, 16), 5, 9))
    assert only(loaded(path, skeleton="coco-17"), noise(SIDE, SIDE)).skeleton.name == "coco-17"
    with pytest.raises(KeyError, match="unknown skeleton 'hand-12'; did you mean 'hand-21'"):
        loaded(path, skeleton="hand-12")


# --- what does not fit -----------------------------------------------------------------------------

MAPS = (1, 21, 16, 16)


@pytest.mark.parametrize(
    ("takes", "answers", "more", "message"),
    [
        (
            (1, 3, 64, 64),
            {"a": (1, 20, 16, 16)},
            {},
            r"returns a \(1, 20, 16, 16\); for the 21 landmarks of hand-21 that "
            r"should be heat maps \(1, 21, h, w\).* coordinates \(1, 21, 2\)",
        ),
        (
            (1, 3, 64, 64),
            {"a": MAPS, "b": MAPS},
            {},
            "several outputs .* could be the landmarks: a .*; say which, e.g. output=b",
        ),
        ((1, 3, 64, 64), {"a": MAPS}, {"output": "c"}, "has no output 'c'; there are: a"),
        ((1, 3, 64, 64), {"a": MAPS, "b": (1, 5)}, {"output": "b"}, r"returns a .*, b \(1, 5\); for the 21 landmarks"),
        ((1, 3, 64, 64), {"a": MAPS}, {"size": 128}, "takes images of 64×64, not size=128"),
        ((1, 3, "h", "w"), {"a": MAPS}, {}, "any size; say the one it was trained on, e.g. size=256"),
        ((1, 4, 64, 64), {"a": MAPS}, {}, "a landmark model takes one image"),
        ((1, 3, 64, 64), {"a": (1, 21, 1, 16)}, {}, "should be heat maps"),
    ],
)
def test_models_that_do_not_fit(
    tmp_path: Path, takes: tuple[Any, ...], answers: dict[str, tuple[int, ...]], more: dict[str, object], message: str
) -> None:
    path = says(tmp_path / "a.onnx", takes, "FLOAT", **{name: np.zeros(shape) for name, shape in answers.items()})
    with pytest.raises(ValueError, match=message):
        loaded(path, **more)


def test_one_of_several_outputs(tmp_path: Path) -> None:
    path = says(tmp_path / "a.onnx", first=one_hot(MAPS, 1, 1), last=one_hot(MAPS, 5, 9))
    assert np.allclose(only(loaded(path, output="first"), noise(SIDE, SIDE)).points[0], (6, 6))
    assert np.allclose(only(loaded(path, output="last"), noise(SIDE, SIDE)).points[0], (38, 22))


def test_a_size_that_the_file_does_not_tell(tmp_path: Path) -> None:
    path = says(tmp_path / "a.onnx", (1, 3, "h", "w"), maps=one_hot(MAPS, 5, 9))
    assert np.allclose(only(loaded(path, size=128), noise(64, 64)).points[0], (38, 22))


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    pixels = loaded(says(tmp_path / "a.onnx", points=np.full((1, 42), 140.0)))
    with pytest.raises(ValueError, match="a coordinate of 140, which is no share of the side; say unit=pixels"):
        pixels.answer([noise(9, 9)], [0])
    with pytest.raises(ValueError, match="numbers that are not finite"):
        loaded(says(tmp_path / "b.onnx", points=np.full((1, 42), np.nan)))
    with pytest.raises(FileNotFoundError, match=r"there is no model file .*none\.onnx"):
        loaded(tmp_path / "none.onnx")
    (tmp_path / "no.onnx").write_bytes(b"not a model")
    with pytest.raises((ValueError, MissingExtra), match=r"not a model onnxruntime can load|needs onnxruntime"):
        loaded(tmp_path / "no.onnx")


def test_fingerprints(tmp_path: Path) -> None:
    path = says(tmp_path / "a.onnx", maps=one_hot(MAPS, 5, 9))
    copy = tmp_path / "copy.onnx"
    copy.write_bytes(path.read_bytes())
    other = says(tmp_path / "b.onnx", maps=one_hot(MAPS, 5, 8))
    plain: Callable[..., str] = lambda file=path, **more: loaded(file, **more).fingerprint  # noqa: E731
    assert plain() == plain(copy) == plain(output="maps")
    assert (
        len(
            {
                plain(),
                plain(other),
                plain(peak="soft"),
                plain(cells="corner"),
                plain(fit="stretch"),
                plain(bgr="true"),
                plain(mean="(1, 1, 1)"),
                plain(std="(1, 1, 1)"),
            }
        )
        == 8
    )


@pytest.mark.parametrize("size", [(1, 1), (1, 50), (3, 2), (2000, 1500)])
def test_any_size(tmp_path: Path, size: tuple[int, int]) -> None:
    found = only(loaded(says(tmp_path / "a.onnx", maps=one_hot(MAPS, 8, 8))), noise(*size))
    assert found.points[0] == pytest.approx(np.tile(np.array(size) / 2, (21, 1)), abs=max(size) / 16)
