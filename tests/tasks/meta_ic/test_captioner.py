"""Captioners: what one made of a detector says of given boxes, and models of Hugging Face's with random weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.image import Image, read_image
from instar.outputs.caption import Caption
from instar.outputs.detections import Detections
from instar.systems import MissingExtra, System, system
from instar.systems.boxes import COCO
from instar.tasks.meta_ic.captioner import said_of
from instar.tasks.meta_ic.language.nouns import counted, plural
from tests.missing import loaded_system, module, shared

GREY = Image(np.full((100, 100, 3), 127, np.uint8))
CLASSES = st.lists(
    st.tuples(
        st.sampled_from(COCO), st.integers(0, 180), st.integers(0, 180), st.integers(1, 120), st.integers(1, 120)
    ),
    max_size=8,
)


def said(**things: list[list[float]]) -> str:
    """Of boxes by class; `dining_table` is a dining table."""
    found = [(label, box) for label, boxes in things.items() for box in boxes]
    return said_of(Detections.from_xyxy([box for _, box in found], [label for label, _ in found]))


# --- in words --------------------------------------------------------------------------------------


def test_classes_are_named_once_with_their_number_the_largest_first() -> None:
    assert said(kite=[[90, 0, 95, 5]], person=[[0, 0, 20, 20]], dog=[[50, 50, 60, 60], [70, 50, 80, 60]]) == (
        "a person, two dogs and a kite"
    )
    assert said(elephant=[[0, 0, 9, 9]], apple=[[40, 0, 45, 5]]) == "an elephant and an apple"
    assert said(sheep=[[9 * k, 0, 9 * k + 5, 5] for k in range(14)]) == "14 sheep"
    assert said(skis=[[0, 0, 9, 9]], scissors=[[20, 0, 24, 2]] * 2) == "a pair of skis and two pairs of scissors"
    assert said(fire_hydrant=[[0, 0, 9, 9]]) == "a fire hydrant"


def test_a_surer_detection_of_the_same_size_comes_first() -> None:
    found = Detections.from_xyxy([[0, 0, 9, 9], [50, 0, 59, 9]], ["cat", "zebra"], [0.5, 0.9])
    assert said_of(found) == "a zebra and a cat"


def test_nothing_names_no_class() -> None:
    words = said()
    assert words == "nothing in particular"
    assert not {*COCO, *map(plural, COCO)} & {*words.split(), words}


@pytest.mark.parametrize(
    ("things", "words"),
    [
        # mounts: the rider ends within it, who stands beside it ends with it
        ({"person": [[20, 0, 50, 70]], "horse": [[0, 40, 90, 100]]}, "a person on a horse"),
        ({"person": [[20, 0, 50, 100]], "horse": [[0, 40, 90, 100]]}, "a horse and a person"),
        ({"person": [[20, 0, 50, 41]], "horse": [[0, 40, 90, 100]]}, "a horse and a person"),
        (
            {"person": [[20, 0, 50, 70], [120, 0, 150, 70]], "bicycle": [[0, 40, 90, 100], [100, 40, 190, 100]]},
            "two people on two bicycles",
        ),
        # one of two is not ridden, or one of two people does not ride: each class is still named once
        ({"person": [[20, 0, 50, 70]], "horse": [[0, 40, 90, 100], [100, 40, 190, 100]]}, "two horses and a person"),
        ({"person": [[20, 0, 50, 70], [150, 0, 180, 90]], "horse": [[0, 40, 90, 100]]}, "a horse and two people"),
        # seats
        ({"cat": [[20, 30, 50, 60]], "couch": [[0, 20, 99, 90]]}, "a cat on a couch"),
        (
            {"dog": [[10, 20, 30, 60], [40, 25, 60, 60]], "person": [[65, 5, 90, 70]], "bench": [[0, 20, 99, 90]]},
            "a person and two dogs on a bench",
        ),
        ({"person": [[20, 0, 50, 89]], "couch": [[0, 20, 99, 90]]}, "a couch and a person"),
        ({"person": [[20, 0, 50, 70]], "chair": [[0, 20, 70, 90]]}, "a chair and a person"),
        ({"cat": [[90, 30, 150, 60]], "couch": [[0, 20, 99, 90]]}, "a couch and a cat"),
        # tables
        ({"cup": [[20, 30, 30, 50]], "dining_table": [[0, 20, 99, 90]]}, "a cup on a dining table"),
        ({"chair": [[20, 30, 30, 50]], "dining_table": [[0, 20, 99, 90]]}, "a dining table and a chair"),
        ({"cup": [[20, 0, 30, 22]], "dining_table": [[0, 20, 99, 90]]}, "a dining table and a cup"),
        # boards: at the feet and lying
        ({"person": [[40, 0, 60, 90]], "surfboard": [[20, 82, 90, 96]]}, "a person on a surfboard"),
        ({"person": [[40, 0, 60, 90]], "surfboard": [[62, 0, 70, 90]]}, "a surfboard next to a person"),
        ({"person": [[40, 0, 60, 90]], "skateboard": [[45, 0, 60, 8]]}, "a person and a skateboard"),
        # carried
        ({"person": [[0, 0, 50, 100]], "tie": [[20, 20, 28, 60]]}, "a person with a tie"),
        ({"person": [[0, 0, 50, 100]], "tie": [[80, 20, 88, 60]]}, "a person and a tie"),
        ({"person": [[40, 30, 70, 100]], "umbrella": [[25, 10, 85, 45]]}, "a person with an umbrella"),
        ({"person": [[40, 30, 70, 100]], "umbrella": [[25, 80, 85, 99]]}, "a person and an umbrella"),
        ({"handbag": [[40, 30, 70, 100]]}, "a handbag"),
        (
            {"person": [[20, 0, 50, 70]], "backpack": [[22, 15, 36, 40]], "bicycle": [[0, 40, 90, 100]]},
            "a person with a backpack on a bicycle",
        ),
        # beside each other, the smaller next to the larger
        ({"cat": [[0, 50, 40, 90]], "dog": [[45, 40, 90, 92]]}, "a cat next to a dog"),
        ({"cat": [[0, 50, 40, 90]], "dog": [[75, 40, 120, 92]]}, "a dog and a cat"),
        ({"cat": [[0, 10, 40, 50]], "dog": [[45, 40, 90, 92]]}, "a dog and a cat"),
        ({"cat": [[0, 50, 40, 90]], "dog": [[45, 40, 90, 92]], "bird": [[0, 0, 3, 3]]}, "a dog, a cat and a bird"),
        # what is not on it is not read as if it were
        (
            {
                "bottle": [[20, 30, 30, 50]],
                "dining_table": [[0, 20, 99, 90]],
                "clock": [[80, 0, 90, 10]],
                "tv": [[50, 0, 70, 18]],
            },
            "a bottle on a dining table, a tv and a clock",
        ),
        (
            {
                "bottle": [[20, 30, 30, 50]],
                "cup": [[40, 30, 60, 50]],
                "dining_table": [[0, 20, 99, 90]],
                "clock": [[80, 0, 90, 10]],
                "tv": [[50, 0, 70, 18]],
            },
            "a cup and a bottle on a dining table, as well as a tv and a clock",
        ),
        ({"horse": [[5, 0, 5, 0]], "person": [[1, 0, 9, 0]]}, "a horse and a person"),  # boxes without an area
    ],
)
def test_where_things_are(things: dict[str, list[list[float]]], words: str) -> None:
    assert said(**things) == words


@given(CLASSES)
def test_every_class_is_said_with_its_number(things: list[tuple[str, int, int, int, int]]) -> None:
    boxes = np.array([[x, y, x + w, y + h] for _, x, y, w, h in things], float).reshape(-1, 4)
    labels = [label for label, *_ in things]
    words = said_of(Detections.from_xyxy(boxes, labels))
    for label in labels:
        assert counted(labels.count(label), label) in words
    number = (
        words.count(", ")
        + words.count(" and ")
        + words.count(" on ")
        + words.count(" with ")
        + words.count(" next to ")
        - words.count(", and ")
    )
    assert number + 1 == max(1, len(set(labels)))  # and none of them twice
    mirrored = boxes.copy()
    mirrored[:, [0, 2]] = 400 - boxes[:, [2, 0]]
    assert said_of(Detections.from_xyxy(mirrored, labels)) == words
    assert said_of(Detections.from_xyxy(boxes[::-1], labels[::-1])) == words


# --- the system ------------------------------------------------------------------------------------


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, str], System]:
    """A detector-captioner over a detector made here, whose module has a name of its own."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(module: str, body: str, more: str = "") -> System:
        (tmp_path / f"{module}.py").write_text(
            f"import instar\nfrom instar import Detections\n\n@instar.declare(kind='detections')\n{body}\n"
        )
        return system(f"detector-captioner(detector={module}:find{more})")

    return make


DOGS = (
    "def find(image):\n    return Detections.from_xyxy([[0, 0, 9, 9], [20, 0, 25, 5], [40, 0, 50, 10]], "
    "['dog', 'dog', 'cat'], [0.9, 0.5, 0.3])"
)


def test_what_is_sure_enough_is_said_and_kept(made: Callable[..., System]) -> None:
    [caption] = made("captioned_dogs", DOGS).answer([GREY], [0])
    assert isinstance(caption, Caption)
    assert caption.text == "two dogs"
    assert caption.score == pytest.approx(0.5)
    assert caption.detections is not None
    assert caption.detections.labels == ("dog", "dog")
    assert "dog 0.90" in {shape.text for shape in caption.shapes()}  # drawn beside the caption
    back = Caption.from_row(caption.row(), caption.header())
    assert (back.text, back.detections and back.detections.labels) == ("two dogs", ("dog", "dog"))
    for confidence, words in ((0.2, "two dogs and a cat"), (0.6, "a dog"), (0.95, "nothing in particular")):
        [other] = made("captioned_dogs", DOGS, f", confidence={confidence}").answer([GREY], [0])
        assert isinstance(other, Caption)
        assert other.text == words
    assert isinstance(other, Caption)
    assert other.score is None


def test_fingerprint_and_determinism_are_those_of_the_detector(made: Callable[..., System]) -> None:
    first = made("captioned_dogs", DOGS)
    assert first.deterministic
    assert first.kind == "caption"
    assert first.fingerprint == made("captioned_dogs", DOGS).fingerprint
    assert first.fingerprint != made("captioned_dogs", DOGS, ", confidence=0.5").fingerprint
    other = made("captioned_more_dogs", DOGS + "  # another one")
    assert other.fingerprint != first.fingerprint
    seeded = made("captioned_dice", DOGS.replace("(image)", "(image, seed)"))
    assert not seeded.deterministic
    assert seeded.seedable


def test_a_detector_that_fails_costs_its_own_input(made: Callable[..., System]) -> None:
    fails = made("captioned_failure", "def find(image):\n    raise OSError('the lens is dirty')")
    with pytest.raises(OSError, match="the lens is dirty"):
        fails.answer([GREY], [0])
    rubbish = made("captioned_rubbish", "def find(image):\n    return 'a dog'")
    with pytest.raises(TypeError, match="expected Detections"):
        rubbish.answer([GREY], [0])


def test_only_detectors_can_be_worded() -> None:
    with pytest.raises(
        ValueError,
        match=r"constant-velocity answers with forecast; a detector-captioner needs a "
        "system that answers with detections, e.g. efficientdet-lite0",
    ):
        system("detector-captioner(detector=constant-velocity)")
    with pytest.raises(KeyError, match="unknown system 'efficientdet-lite9'; did you mean 'efficientdet-lite"):
        system("detector-captioner(detector=efficientdet-lite9)")
    with pytest.raises(ValueError, match="confidence=7 is not allowed; it takes a number from 0 to 1"):
        system("detector-captioner(confidence=7)")


def test_a_detector_that_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INSTAR_MODELS", str(tmp_path))
    with pytest.raises(MissingExtra, match="efficientdet-lite0"):
        system("detector-captioner")


@pytest.mark.parametrize(
    ("photo", "words"),
    [
        ("000000163497", "a giraffe"),
        ("000000281789", "two zebras"),
        ("000000084533", "a person on a motorcycle"),
        ("000000054718", "three elephants"),
        ("000000419474", "nothing in particular"),
    ],
)
def test_photos(photo: str, words: str) -> None:
    """Clear ones: a score near the confidence may differ by the machine."""
    captioner = loaded_system("detector-captioner")
    [caption] = captioner.answer([read_image(str(shared(f"data/coco-mini/images/{photo}.jpg")))], [0])
    assert isinstance(caption, Caption)
    assert caption.text == words


# --- Hugging Face ----------------------------------------------------------------------------------

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "<image>",
    "user",
    ":",
    "a",
    "dog",
    "cat",
    "on",
    "bench",
    "the",
    "of",
    "two",
    "people",
    "red",
    "green",
    "kite",
    "ball",
    "sky",
    "Describe",
    "image",
    "in",
    "one",
    "short",
    "sentence.",
]
SIDES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 37}
SEEN = {**SIDES, "image_size": 32, "patch_size": 16}
SIZE = {"height": 32, "width": 32}
CHAT = (
    "{% for said in messages %}user : {% for part in said['content'] %}{% if part['type'] == 'image' %}<image> "
    "{% else %}{{ part['text'] }} {% endif %}{% endfor %}{% endfor %}"
)


def vocabulary(**more: Any) -> Any:
    tokenizers, transformers = module("tokenizers"), module("transformers")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: n for n, word in enumerate(WORDS)}, "[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", bos_token="[CLS]", eos_token="[SEP]", **more
    )


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """As a worker has it: a small network's threads wait for each other on a busy machine."""
    torch = module("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def encoder_decoder(tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> Path:
    transformers, folder = module("transformers"), tmp_path_factory.mktemp("models") / "encoder-decoder"
    module("torch").manual_seed(0)
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(
        transformers.ViTConfig(**SEEN, initializer_range=0.5),
        transformers.BertConfig(vocab_size=len(WORDS), **SIDES, max_position_embeddings=64, initializer_range=0.5),
    )
    network = transformers.VisionEncoderDecoderModel(config=config)
    network.generation_config.update(decoder_start_token_id=2, pad_token_id=0, eos_token_id=3)
    for part in (network, vocabulary(), transformers.ViTImageProcessor(size=SIZE)):
        part.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def chatting(tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> Path:
    transformers, folder = module("transformers"), tmp_path_factory.mktemp("models") / "chatting"
    module("torch").manual_seed(0)
    network = transformers.LlavaForConditionalGeneration(
        transformers.LlavaConfig(
            vision_config=transformers.CLIPVisionConfig(**SEEN, initializer_range=0.5),
            vision_feature_layer=-1,
            text_config=transformers.LlamaConfig(
                vocab_size=len(WORDS),
                **SIDES,
                num_key_value_heads=2,
                pad_token_id=0,
                bos_token_id=2,
                eos_token_id=3,
                initializer_range=0.5,
            ),
            image_token_index=WORDS.index("<image>"),
            image_seq_length=4,
        )
    )
    network.generation_config.do_sample = True  # as many that chat have it
    processor = transformers.LlavaProcessor(
        transformers.CLIPImageProcessor(size=SIZE, crop_size=SIZE),
        vocabulary(extra_special_tokens={"image_token": "<image>"}),
        patch_size=16,
        num_additional_image_tokens=1,
        vision_feature_select_strategy="default",
        chat_template=CHAT,
    )
    for part in (network, processor):
        part.save_pretrained(folder)
    return folder


def noise(seed: int) -> Image:
    return Image(np.random.default_rng(seed).integers(0, 256, (48, 64, 3), dtype=np.uint8))


def text_of(captioner: System, image: Image) -> str:
    [caption] = captioner.answer([image], [0])
    assert isinstance(caption, Caption), caption
    return caption.text


def test_an_encoder_with_a_decoder(encoder_decoder: Path) -> None:
    captioner = system(f'huggingface-captioner("{encoder_decoder}", tokens=7)')
    texts = [text_of(captioner, noise(seed)) for seed in range(4)]
    assert texts == [text_of(captioner, noise(seed)) for seed in range(4)]
    assert len(set(texts)) > 1  # it looks
    assert all(set(text.split()) <= set(WORDS) for text in texts)
    transformers = module("transformers")
    network = transformers.VisionEncoderDecoderModel.from_pretrained(encoder_decoder).eval()
    looks = transformers.AutoImageProcessor.from_pretrained(encoder_decoder)
    speaks = transformers.AutoTokenizer.from_pretrained(encoder_decoder)
    pixels = looks(images=noise(0).pixels, return_tensors="pt").pixel_values
    told = network.generate(pixels, max_new_tokens=7)
    assert texts[0] == speaks.decode(told[0], skip_special_tokens=True)
    start = speaks("two red", return_tensors="pt").input_ids
    told = network.generate(pixels, decoder_input_ids=start, max_new_tokens=3)
    begun = system(f'huggingface-captioner("{encoder_decoder}", prompt="two red", tokens=3)')
    assert f"two red {text_of(begun, noise(0))}" == speaks.decode(told[0], skip_special_tokens=True)


def test_a_model_that_chats(chatting: Path) -> None:
    """Greedily, also where the model would rather draw lots; and without what it was asked."""
    captioner = system(f'huggingface-captioner("{chatting}", prompt="the image in one")')
    assert captioner.deterministic
    texts = [text_of(captioner, noise(seed)) for seed in range(4)]
    assert texts == [text_of(captioner, noise(seed)) for seed in range(4)]
    from PIL.Image import fromarray

    chat = module("transformers").pipeline("image-text-to-text", model=str(chatting))
    for seed, text in enumerate(texts):
        content = [
            {"type": "image", "image": fromarray(noise(seed).pixels)},
            {"type": "text", "text": "the image in one"},
        ]
        [told] = chat(
            text=[{"role": "user", "content": content}],
            return_full_text=False,
            max_new_tokens=40,
            generate_kwargs={"do_sample": False},
        )
        assert told["generated_text"].split() == text.split()
    asked = system(f'huggingface-captioner("{chatting}")')
    assert (
        asked.fingerprint
        == system(
            f'huggingface-captioner("{chatting}", prompt="Describe the image in one short sentence.")'
        ).fingerprint
    )


def test_captioners_fingerprint(encoder_decoder: Path, tmp_path: Path) -> None:
    moved = copytree(encoder_decoder, tmp_path / "moved")

    def printed(folder: Path, more: str = "") -> str:
        return system(f'huggingface-captioner("{folder}"{more})').fingerprint

    assert printed(moved) == printed(encoder_decoder)
    settings = (moved / "generation_config.json").read_text()
    (moved / "generation_config.json").write_text(settings.replace("{", '{"num_beams": 3,', 1))
    assert (
        len(
            {
                printed(encoder_decoder),
                printed(moved),
                printed(encoder_decoder, ", tokens=9"),
                printed(encoder_decoder, ", prompt=a"),
            }
        )
        == 4
    )


def test_what_is_no_captioner(encoder_decoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    broken = copytree(encoder_decoder, tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(b"no weights")
    silent = copytree(encoder_decoder, tmp_path / "silent")
    (silent / "tokenizer.json").unlink()
    for model in (broken, silent, tmp_path, "nobody/nothing"):
        with pytest.raises(ValueError, match=f"there is no captioner in the folder '{model}', nor .*hf download"):
            system(f'huggingface-captioner("{model}")')
