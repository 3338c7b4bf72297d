"""Detectors of Hugging Face's transformers: DETR, YOLOS, RT-DETR and whatever else detects objects there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import xxhash

from instar.case import Image
from instar.outputs import Detections
from instar.spelling import Parameter
from instar.systems.boxes import FLOOR, carried_back
from instar.systems.system import MissingExtra, System, SystemFamily, fingerprint_of
from instar.warp import Warp

__all__ = ["FAMILIES"]

_ADAPTER = "1"
"""Part of the fingerprint; changes when the adapter's answers do."""


def _huggingface_detector(name: str, *, model: str, floor: float) -> System:
    torch, _, transformers = (_imported(library) for library in ("torch", "PIL", "transformers"))
    bars = transformers.utils.logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()  # each worker would draw its own, for weights that lie here already
    try:
        processor: Any = transformers.AutoImageProcessor.from_pretrained(model, local_files_only=True)
        network: Any = transformers.AutoModelForObjectDetection.from_pretrained(model, local_files_only=True).eval()
    except (OSError, ValueError) as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ValueError(f"{name}: there is no object detector in the folder {model!r}, nor under this name among the "
                         f"models Hugging Face keeps on this machine; fetch it first: hf download {model} "
                         f"({said})") from None
    finally:
        if shown:
            bars.enable_progress_bar()
    labels: dict[int, str] = network.config.id2label

    def one(image: Image) -> Detections:
        width, height = image.size
        # The pipeline rounds boxes to whole pixels; here they stay as the network says them.
        given = processor(images=image.pixels, input_data_format="channels_last", return_tensors="pt")
        with torch.inference_mode():
            answer = network(**given)
        [found] = processor.post_process_object_detection(answer, threshold=floor, target_sizes=[(height, width)])
        called = [labels[int(label)] for label in found["labels"]]
        return carried_back(found["boxes"].numpy(), called, found["scores"].numpy(), Warp.identity(image.size))

    def predict(inputs: Sequence[Image], seeds: Sequence[int]) -> list[Detections]:
        return [one(image) for image in inputs]

    fingerprint = fingerprint_of("huggingface-detector", _ADAPTER, floor, processor.to_json_string(),
                                 _configured(network), _weights(network))
    return System(name, Detections.kind, predict, fingerprint)


def _imported(library: str) -> Any:
    try:
        return import_module(library)
    except ImportError as error:
        if find_spec(library) is not None:
            raise MissingExtra(f"{library} is installed but cannot be imported: {error}") from error
        needs = {"PIL": "Pillow", "torch": "PyTorch"}.get(library, library)
        raise MissingExtra(f"this system needs {needs}: pip install 'instar[huggingface]'") from None


def _configured(network: Any) -> str:
    """The configuration, less where it lies and who wrote it."""
    return json.dumps({key: value for key, value in network.config.to_dict().items()
                       if key not in ("_name_or_path", "transformers_version")}, sort_keys=True, default=str)


def _weights(network: Any) -> str:
    digest = xxhash.xxh3_128()
    for key, tensor in sorted(network.state_dict().items()):
        digest.update(key.encode())
        digest.update(tensor.detach().contiguous().flatten().view(dtype=import_module("torch").uint8).numpy())
    return str(digest.hexdigest())


FAMILIES = (
    SystemFamily("huggingface-detector", Detections.kind, _huggingface_detector, (
        Parameter("model", "text", help="a folder, or the name of a model that is on this machine already"), FLOOR,
    ), help="An object detector of Hugging Face's transformers.", extra="huggingface"),
)
