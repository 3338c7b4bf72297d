"""The JSON form of outputs: one for programs, services and tables."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from instar.image import Image
from instar.json_values import as_object
from instar.outputs import Output, json_columns, output_kinds
from instar.outputs.caption import Caption
from instar.outputs.detections import Detections
from instar.outputs.forecast import Forecast
from instar.outputs.heat import HeatMap
from instar.outputs.poses import Poses
from instar.outputs.zones import Zones
from instar.skeleton import skeleton
from instar.warp import Warp

FRAME = (6, 4)
coordinate = st.floats(-1e4, 1e4, width=32)
score = st.floats(0, 1, width=32)
word = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=8)


@st.composite
def poses(draw: st.DrawFn) -> Poses:
    bones = skeleton(draw(st.sampled_from(["coco-17", "hand-21"])))
    count, subjects = len(bones.landmarks), draw(st.integers(0, 3))
    points = draw(arrays(np.float32, (subjects, count, 2), elements=coordinate))
    points[draw(arrays(bool, (subjects, count)))] = np.nan
    return Poses.from_array(
        points,
        skeleton=bones,
        visibility=draw(arrays(np.float32, (subjects, count), elements=score)),
        scores=draw(arrays(np.float32, subjects, elements=score)),
    )


@st.composite
def detections(draw: st.DrawFn) -> Detections:
    count = draw(st.integers(0, 3))
    corners = draw(arrays(np.float32, (count, 2, 2), elements=coordinate))
    ids = draw(st.lists(word, min_size=count, max_size=count, unique=True)) if draw(st.booleans()) else ()
    masks = draw(arrays(bool, (count, *FRAME[::-1]))) if draw(st.booleans()) else None
    return Detections.from_xyxy(
        np.concatenate([corners.min(1), corners.max(1)], 1),
        draw(st.lists(word, min_size=count, max_size=count)),
        draw(arrays(np.float32, count, elements=score)),
        ids=ids,
        masks=masks,
    )


@st.composite
def heat(draw: st.DrawFn) -> HeatMap:
    cells = draw(arrays(np.float64, (2, 3), elements=st.floats(0.125, 8)))
    warp = draw(st.sampled_from([Warp.resize((3, 2), FRAME), Warp.resize((3, 2), FRAME).then(Warp.mirror(FRAME, "h"))]))
    return HeatMap.of(cells, warp)


@st.composite
def captions(draw: st.DrawFn) -> Caption:
    text = "\n".join(" ".join(draw(st.lists(word, min_size=1, max_size=3))) for _ in range(draw(st.integers(1, 3))))
    return Caption(text, draw(st.none() | score), draw(st.none() | heat()), draw(st.none() | detections()))


@st.composite
def forecasts(draw: st.DrawFn) -> Forecast:
    shape = (draw(st.integers(1, 3)), draw(st.integers(1, 4)), 2)
    return Forecast(draw(arrays(np.float32, shape, elements=coordinate)), draw(st.none() | heat()))


@st.composite
def zones(draw: st.DrawFn) -> Zones:
    names = draw(st.dictionaries(word, st.lists(st.integers(0, 255), max_size=3).map(tuple), max_size=3))
    return Zones(draw(arrays(np.uint8, FRAME[::-1])), names)


MADE: dict[str, st.SearchStrategy[Output]] = {
    "caption": captions(),
    "detections": detections(),
    "forecast": forecasts(),
    "poses": poses(),
    "zones": zones(),
}


def same(first: Any, second: Any) -> bool:
    """Equal in every field; what is normalised again is equal up to rounding."""
    if isinstance(first, HeatMap):
        return np.allclose(first.cells, second.cells, rtol=1e-12) and first.warp == second.warp
    if isinstance(first, np.ndarray):
        return np.array_equal(first, second, equal_nan=first.dtype.kind == "f")
    if hasattr(first, "__dataclass_fields__") and hasattr(first, "kind"):
        parts = [name for name, one in first.__dataclass_fields__.items() if one.compare]
        return all(same(getattr(first, name), getattr(second, name)) for name in parts)
    return bool(first == second)


@pytest.mark.parametrize("kind", sorted(MADE))
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_an_output_comes_back_from_its_json(kind: str, data: st.DataObject) -> None:
    output = data.draw(MADE[kind])
    form = json.loads(json.dumps(output.to_json(), allow_nan=False))
    assert list(form) == list(output.json_fields)
    fields = as_object(form, kind, output.json_fields)
    assert same(output, type(output).from_json(fields, FRAME, truth=True))


def test_every_kind_declares_itself() -> None:
    kinds = output_kinds()
    assert set(MADE) <= set(kinds)
    for kind, output in kinds.items():
        assert output.kind == kind and output.answers in ("image", "scene")
        assert any(output.json_fields.values()), "no output without a field"
    needs = {"caption": None, "detections": "objects", "forecast": None, "poses": "landmarks", "zones": "zones"}
    assert {kind: kinds[kind].need for kind in needs} == needs


def test_a_text_is_called_after_its_kind_in_a_table() -> None:
    assert json_columns("caption")["text"] == "caption"
    assert json_columns("detections")["boxes"] == "boxes"


def test_facts_of_zones_are_their_shares() -> None:
    cells = np.array([[0, 1, 1, 1]], np.uint8)
    assert Zones(cells, {"skin": (1,), "all": (0, 1)}).facts() == {"skin": 0.75, "all": 1}
    assert Caption("a dog").facts() == {}


def test_masks_are_as_large_as_the_image() -> None:
    fields = Detections.from_xyxy([[0, 0, 2, 2]], ["a"], masks=np.ones((1, 2, 2))).to_json()
    with pytest.raises(ValueError, match=r"the masks are \(2, 2\), the input is \(6, 4\)"):
        Detections.from_json(fields, FRAME)
    with pytest.raises(ValueError, match="masks are 2×2"):
        Detections.accept(Detections.from_json(fields), Image.blank(FRAME))


def test_several_captions_are_truth_and_no_answer() -> None:
    fields = {"text": ["a dog", "one dog"]}
    assert Caption.from_json(fields, truth=True).texts == ("a dog", "one dog")
    with pytest.raises(ValueError, match="it takes a text"):
        Caption.from_json(fields)


def test_a_map_lies_where_its_box_says_or_over_the_whole_frame() -> None:
    futures = [[[1, 2]]]
    whole = Forecast.from_json({"futures": futures, "map": {"probability": [[1, 3]]}}, FRAME)
    assert whole.heat is not None and whole.heat.warp.boxes([0, 0, 2, 1]).tolist() == [0, 0, 6, 4]
    part = Forecast.from_json({"futures": futures, "map": {"probability": [[1, 3]], "box": [1, 1, 3, 2]}})
    assert part.heat is not None and part.heat.warp.boxes([0, 0, 2, 1]).tolist() == [1, 1, 3, 2]
    with pytest.raises(ValueError, match="map needs box"):
        Forecast.from_json({"futures": futures, "map": {"probability": [[1, 3]]}})
