"""Captions drawn by chance, labelled before anything read them: 196 of the 200 were read right at the first look."""

from __future__ import annotations

import json
from collections import Counter

from tests.missing import shared
from tests.tasks.meta_ic.language.test_difficult import HERE, Labelled, score


def texts() -> dict[tuple[object, ...], str]:
    """The captions that `drawn.jsonl` refers to, by its file, id and which."""
    found: dict[tuple[object, ...], str] = {}
    captions = json.loads(shared("data/coco-mini/annotations/captions_train2017.json").read_text("utf-8"))
    seen: Counter[int] = Counter()
    for row in captions["annotations"]:
        found["coco-mini", row["image_id"], seen[row["image_id"]]] = row["caption"]
        seen[row["image_id"]] += 1
    for name in ("overlap-0", "overlap-15"):
        for line in shared(f"golden/meta-ic/{name}.jsonl").read_text("utf-8").splitlines():
            pair = json.loads(line)
            found |= {(name, pair["pair"], which): pair[which] for which in ("source", "follow_up")}
    return found


def drawn() -> list[Labelled]:
    captions = texts()
    rows = [json.loads(line) for line in (HERE / "drawn.jsonl").read_text("utf-8").splitlines()]
    return [
        Labelled(
            "coco-mini" if row["file"] == "coco-mini" else "meta-ic",
            captions[row["file"], row["id"], row["which"]],
            row["objects"],
        )
        for row in rows
    ]


def test_drawn_captions_are_read_right() -> None:
    share, table = score(drawn())
    assert share >= 0.95, table
