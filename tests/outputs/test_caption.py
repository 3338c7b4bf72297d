"""Captions: words, where the captioner looked, and what the words were made of."""

from __future__ import annotations

import numpy as np
import pytest

from instar.image import Image
from instar.outputs.caption import Caption
from instar.outputs.detections import Detections
from instar.store import rows_frame
from instar.warp import Warp

PICTURE = Image(np.zeros((30, 40, 3), np.uint8))


def stored(caption: Caption) -> Caption:
    """Written as a row and read back."""
    frame = rows_frame([{**caption.row(), "width": 40, "height": 30}], {**Caption.columns})
    return Caption.from_row({**frame.row(0, named=True), "width": 40, "height": 30}, caption.header())


def test_words_alone() -> None:
    said = Caption.accept("  eine Katze 🐈\n auf dem Tisch ", PICTURE)
    assert said.text == said.says() == "eine Katze 🐈 auf dem Tisch"
    assert stored(said).text == said.text
    assert said.shapes() == []


def test_what_the_words_were_made_of_is_stored_drawn_and_carried() -> None:
    found = Detections.from_xyxy([[0, 0, 10, 20]], ["dog"], [0.75])
    back = stored(Caption.from_text("a dog", score=0.5, detections=found))
    assert back.score == 0.5
    assert back.detections is not None and back.detections.labels == ("dog",)
    assert [shape.text for shape in back.shapes() if shape.form == "text"] == ["dog 0.75"]
    mirrored = back.warped(Warp.mirror((40, 30), "h"))
    assert mirrored.text == "a dog"
    assert mirrored.detections is not None and mirrored.detections.boxes[0].tolist() == [30, 0, 40, 20]
    assert back.confident(0.9).detections is not None and len(back.confident(0.9).detections or ()) == 0


def test_attention_covers_the_frame() -> None:
    where = np.zeros((3, 4), np.float32)
    where[0, 3] = 2.0
    back = stored(Caption.accept(Caption.from_text("a dog", attention=where), PICTURE))
    assert back.attention is not None and back.attention.cells[0, 3] == pytest.approx(1, abs=1e-3)
    (shape,) = back.shapes()
    assert shape.form == "heat" and shape.xy.tolist() == [[0, 0, 40, 30]]


@pytest.mark.parametrize("rubbish", [None, 3, b"a dog", ["a dog"]])
def test_what_is_no_caption(rubbish: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        Caption.accept(rubbish, PICTURE)


@pytest.mark.parametrize(
    ("how", "told"),
    [({"score": float("nan")}, "finite"), ({"attention": [[-1.0]]}, "from 0 up"), ({"attention": [1.0]}, r"\(h, w\)")],
)
def test_rubbish_beside_the_words(how: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Caption.accept(Caption.from_text("a dog", **how), PICTURE)  # type: ignore[arg-type]


def test_several_captions_of_people() -> None:
    assert stored(Caption.from_texts(["a dog ", "one\ndog"])).texts == ("a dog", "one dog")


@pytest.mark.parametrize("silence", ["", " \n"])
def test_no_words_are_an_answer_but_no_truth(silence: str) -> None:
    assert Caption.from_text(silence).text == ""
    assert Caption.from_json({"text": silence}).text == ""
    with pytest.raises(ValueError, match="empty"):
        Caption.from_json({"text": silence}, truth=True)
