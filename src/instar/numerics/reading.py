"""Reading an ONNX file: its graph, its constants, and sizes that it leaves open. Nothing is executed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from instar.numerics.domain import KINDS, OTHER, Array, Call, Kind, NotKnown, Shape
from instar.spelling import nearest
from instar.systems.system import MissingExtra

Proto = Any  # ONNX's modules and messages have no types
GRAPHS = (5, 10)
"""ONNX's numbers of attributes that hold graphs."""


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A graph, and what ONNX's own inference says of its tensors."""

    graph: Proto
    version: int
    folder: Path
    known: Mapping[str, tuple[Kind, Shape | None]] = field(default_factory=dict)


def _onnx(part: str = "") -> Proto:
    try:
        return import_module(f"onnx{part}")
    except ImportError as error:
        # Together: the newest onnx brings a protobuf that MediaPipe fails with, and pip then takes an older one.
        install = f"pip install 'instar[{'mediapipe,numerics' if find_spec('mediapipe') else 'numerics'}]'"
        if find_spec("onnx"):
            raise MissingExtra(f"onnx is installed but cannot be imported: {error}; {install}") from error
        raise MissingExtra(f"reading a model graph needs onnx: {install}") from None


def read_model(path: Path, dims: Mapping[str, int]) -> Model:
    """Read a file. `dims` says how large the axes are that it names but leaves open."""
    if not path.is_file():
        raise FileNotFoundError(f"no model file {path}")
    try:
        model = _onnx().load(str(path), load_external_data=False)
    except MissingExtra:
        raise
    except Exception as error:  # protobuf's have no common class but this
        raise ValueError(f"{path} is not an ONNX model: {error}") from None
    if not model.graph.node:
        raise ValueError(f"{path} is not an ONNX model, or one without a node")
    if model.functions:
        model = _onnx(".inliner").inline_local_functions(model)
    version = next((one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), 0)
    if 0 < version < 7:
        raise ValueError(
            f"{path} is written in ONNX's operator set {version}; 7 and later can be read. "
            "onnx.version_converter brings it up to date"
        )
    _settle(model.graph, dims)
    try:
        seen = _onnx(".shape_inference").infer_shapes(model, data_prop=True).graph
    except Exception:  # a graph it cannot follow: then sizes are what the analysis itself finds
        seen = model.graph
    known = {one.name: typed(one) for one in (*seen.value_info, *seen.output, *seen.input)}
    return Model(model.graph, version, path.parent, known)


def _settle(graph: Proto, dims: Mapping[str, int]) -> None:
    named = {dim.dim_param for one in graph.input for dim in one.type.tensor_type.shape.dim if dim.dim_param}
    for name, size in dims.items():
        if name not in named:
            raise ValueError(
                f"no input has an axis {name!r}{nearest(name, named)}; open are: {', '.join(sorted(named)) or 'none'}"
            )
        if size < 1:
            raise ValueError(f"axis {name!r} cannot be {size} long; at least 1")
    for one in (*graph.input, *graph.output, *graph.value_info):
        for dim in one.type.tensor_type.shape.dim:
            if dim.dim_param in dims:
                dim.dim_value = dims[dim.dim_param]


def typed(info: Proto) -> tuple[Kind, Shape | None]:
    """Type and shape as the file states them."""
    tensor = info.type.tensor_type
    kind = KINDS.get(tensor.elem_type, OTHER)
    if not tensor.HasField("shape"):
        return kind, None
    return kind, tuple(
        dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None for dim in tensor.shape.dim
    )


def stored_tensor(tensor: Proto, folder: Path) -> tuple[Kind, Array]:
    """Type and numbers of a stored tensor, from a file beside the model where they are kept there."""
    kind = KINDS.get(tensor.data_type)
    if kind is None:
        raise NotKnown(f"of type {_onnx().TensorProto.DataType.Name(tensor.data_type)}, which is not analysed")
    try:
        return kind, np.asarray(_onnx(".numpy_helper").to_array(tensor, str(folder))).astype(np.float64)
    except Exception as error:  # no such file, no permission, or a path that leads out of the folder
        raise NotKnown(f"cannot be read: {error}") from None


def call_of(node: Proto, model: Model) -> Call:
    """A node without its names."""
    read = _onnx(".helper").get_attribute_value
    attributes = {one.name: read(one) for one in node.attribute if one.type not in GRAPHS}
    if node.op_type == "ConstantOfShape" and "value" in attributes:
        kind, number = stored_tensor(attributes["value"], model.folder)
        attributes["value"] = kind, float(number.item())
    results = [model.known.get(name, (OTHER, None)) for name in node.output]
    operator = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
    return Call(
        operator,
        attributes,
        model.version,
        len(node.output),
        [kind for kind, _ in results],
        [shape for _, shape in results],
    )
