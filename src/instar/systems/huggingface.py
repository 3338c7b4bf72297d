"""Models of Hugging Face's transformers: whatever detects objects there, and whatever puts images into words."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import xxhash

from instar.image import Image
from instar.outputs.caption import Caption
from instar.outputs.detections import Detections
from instar.spelling import Parameter
from instar.systems.boxes import FLOOR, carried_back
from instar.systems.system import MissingExtra, System, SystemFamily, fingerprint_of, imported, one_by_one
from instar.warp import Warp

_ADAPTER = "1"
"""Part of the fingerprint; changes when the adapter's answers do."""
Untyped = Any
"""Models, processors and modules of torch and transformers."""
_ASK = "Describe the image in one short sentence."
"""What a model that chats is asked."""


def _huggingface_detector(name: str, *, model: str, floor: float) -> System:
    torch, _, transformers = _libraries()
    processor, network = _loaded(
        name, "object detector", model, transformers.AutoImageProcessor, transformers.AutoModelForObjectDetection
    )
    network.eval()
    labels: dict[int, str] = network.config.id2label

    def one(image: Image) -> Detections:
        width, height = image.size
        # The pipeline rounds boxes to whole pixels; here they stay as the network says them.
        tensors = processor(images=image.pixels, input_data_format="channels_last", return_tensors="pt")
        with torch.inference_mode():
            answer = network(**tensors)
        [boxes] = processor.post_process_object_detection(answer, threshold=floor, target_sizes=[(height, width)])
        called = [labels[int(label)] for label in boxes["labels"]]
        return carried_back(boxes["boxes"].numpy(), called, boxes["scores"].numpy(), Warp.identity(image.size))

    fingerprint = fingerprint_of(
        "huggingface-detector",
        _ADAPTER,
        floor,
        processor.to_json_string(),
        _configured(network.config),
        _weights(network),
    )
    return System(name, Detections.kind, one_by_one(one), fingerprint)


def _huggingface_captioner(name: str, *, model: str, prompt: str | None, tokens: int) -> System:
    torch, _, transformers = _libraries()
    if not hasattr(transformers, "AutoModelForImageTextToText"):
        raise MissingExtra(
            f"{name}: transformers {transformers.__version__} is too old for captioners: pip install -U transformers"
        )
    processor, network = _loaded(
        name, "captioner", model, transformers.AutoProcessor, transformers.AutoModelForImageTextToText
    )
    network.float().eval()  # half precision is for other devices
    whole = hasattr(processor, "image_processor")  # those of an encoder and a decoder have none for both
    looks, speaks = (
        (processor.image_processor, processor.tokenizer)
        if whole
        else _loaded(name, "captioner", model, transformers.AutoImageProcessor, transformers.AutoTokenizer)
    )
    chats = whole and processor.chat_template is not None
    question = _ASK if chats and prompt is None else prompt

    def inputs_of(image: Image) -> Untyped:
        picture = import_module("PIL.Image").fromarray(image.pixels)
        if chats:
            messages = [
                {"role": "user", "content": [{"type": "image", "image": picture}, {"type": "text", "text": question}]}
            ]
            return processor.apply_chat_template(
                messages, tokenize=True, add_generation_prompt=True, return_dict=True, return_tensors="pt"
            )
        if whole:
            return processor(images=picture, text=question, return_tensors="pt")
        words = speaks(question, return_tensors="pt", return_token_type_ids=False) if question else {}
        return {**looks(images=picture, return_tensors="pt"), **words}

    def one(image: Image) -> Caption:
        parts = inputs_of(image)
        with torch.inference_mode():
            [answer] = network.generate(**parts, do_sample=False, max_new_tokens=tokens)
        words = speaks.decode(answer, skip_special_tokens=True).strip()
        if "input_ids" in parts:  # most models repeat what they were asked, some do not
            words = words.removeprefix(speaks.decode(parts["input_ids"][0], skip_special_tokens=True).strip())
        return Caption.from_text(words)

    fingerprint = fingerprint_of(
        "huggingface-captioner",
        _ADAPTER,
        question,
        tokens,
        looks.to_json_string(),
        json.dumps(speaks.get_vocab(), sort_keys=True),
        processor.chat_template if chats else "",
        _configured(network.config),
        _configured(network.generation_config),
        _weights(network),
    )
    return System(name, Caption.kind, one_by_one(one), fingerprint)


def _loaded(name: str, what: str, model: str, *classes: Untyped) -> list[Untyped]:
    """What lies here under a model's name. Nothing is downloaded, and no code that comes with a model is run."""
    bars = import_module("transformers").utils.logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()  # each worker would draw its own, for weights that lie here already
    try:
        return [one.from_pretrained(model, local_files_only=True, trust_remote_code=False) for one in classes]
    except Exception as error:  # each kind of file has its own
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if isinstance(error, ImportError):
            raise MissingExtra(f"{name}: {reason}") from None
        raise ValueError(
            f"{name}: there is no {what} in the folder {model!r}, nor under this name among the models "
            f"Hugging Face keeps on this machine; fetch it first: hf download {model} ({reason})"
        ) from None
    finally:
        if shown:
            bars.enable_progress_bar()


def _libraries() -> list[Untyped]:
    """torch and transformers, and Pillow, which those need for images."""
    called = {"torch": "PyTorch", "PIL": "Pillow", "transformers": "transformers"}
    return [imported(library, "huggingface", name) for library, name in called.items()]


def _configured(config: Untyped) -> str:
    """A configuration, less where it lies and who wrote it."""
    return json.dumps(
        {key: value for key, value in config.to_dict().items() if key not in ("_name_or_path", "transformers_version")},
        sort_keys=True,
        default=str,
    )


def _weights(network: Untyped) -> str:
    digest = xxhash.xxh3_128()
    for key, tensor in sorted(network.state_dict().items()):
        digest.update(key.encode())
        digest.update(tensor.detach().contiguous().flatten().view(dtype=import_module("torch").uint8).numpy())
    return str(digest.hexdigest())


# fmt: off
FAMILIES = (
    SystemFamily("huggingface-detector", Detections.kind, _huggingface_detector, (
        Parameter("model", "text", help="a folder, or the name of a model that is on this machine already"),
        FLOOR,
    ), help="An object detector of Hugging Face's transformers.", extra="huggingface"),
    SystemFamily("huggingface-captioner", Caption.kind, _huggingface_captioner, (
        Parameter("model", "text", help="a folder, or the name of a model that is on this machine already"),
        Parameter("prompt", "text", None, help="what the model is asked, or how its captions begin"),
        Parameter("tokens", "int", 40, low=1, help="the most that it says"),
    ), help="A captioner of Hugging Face's transformers, or a model that chats about images.", extra="huggingface"),
)
# fmt: on
