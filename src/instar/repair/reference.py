"""The reference trainer: a small one-stage detector in plain PyTorch, for small pictures.

A convolutional network looks at a square picture and says for each cell of eight pixels how much it is the middle of
an object of each class, and where that object's box ends. It trains in minutes on two cores and in seconds on a GPU.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from instar.case import Image, read_input
from instar.datasets import dataset
from instar.outputs import Detections
from instar.repair.export import LABELS, placed
from instar.systems import MissingExtra, System, fingerprint_of, hash_file
from instar.warp import Size, Warp, boxes_iou, warp_pixels

__all__ = ["detector", "train"]

VERSION = 1
STRIDE = 8
SAID_EVERY = 10.0
"""Seconds between two lines of progress."""
FLOOR = 0.05
"""Detections below this score are not said."""
MOST = 100
SAME = 0.5
"""Of two boxes of a class that overlap so much the surer one is said."""

Floats = npt.NDArray[np.float32]


def train(folder: Path, out: Path, *, seed: int, start: Path | None = None, steps: int = 3000, side: int = 128,
          batch: int = 32) -> Path:
    """Train on an exported folder (COCO) and return the weights, `weights.pt` in the folder `out`.

    Pictures are letterboxed to `side` pixels. The number of `steps` is the same whatever the size of the set, so that
    two trainings differ in what they saw and not in how long. The same seed on the same machine gives the same
    weights, as far as PyTorch can promise that. `start` are weights to go on from, of the same classes.
    """
    torch = _torch()
    pictures, boxes, classes, labels = _loaded(folder, side)
    if not labels:
        raise ValueError(f"{folder}: nothing is annotated in it, so there is nothing to learn")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with _repeatable(torch, seed):
        network = _network(torch, len(labels)).to(device)
        if start is not None:
            held = torch.load(start, map_location=device, weights_only=True)
            if held["labels"] != labels:
                raise ValueError(f"{start} knows the classes {', '.join(held['labels'])}, {folder} has "
                                 f"{', '.join(labels)}")
            network.load_state_dict(held["state"])
        _fit(torch, network, pictures, boxes, classes, len(labels), device, seed=seed, steps=steps, batch=batch)
    state = {name: value.cpu() for name, value in network.state_dict().items()}
    out.mkdir(parents=True, exist_ok=True)
    path = out / "weights.pt"
    placed(path, lambda part: torch.save({"version": VERSION, "labels": labels, "side": side, "state": state}, part))
    return path


def detector(weights: Path) -> System:
    """The system that answers with these weights; on a GPU where there is one."""
    torch = _torch()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    held = torch.load(weights, map_location=device, weights_only=True)
    if held.get("version") != VERSION:
        raise ValueError(f"{weights}: no weights of the reference trainer, version {VERSION}")
    network = _network(torch, len(held["labels"])).to(device)
    network.load_state_dict(held["state"])
    network.eval()

    def predict(inputs: Sequence[Image], seeds: Sequence[int]) -> list[Detections]:
        frames = [letterbox(one.size, held["side"]) for one in inputs]
        given = np.stack([warp_pixels(one.pixels, frame) for one, frame in zip(inputs, frames, strict=True)])
        with torch.inference_mode():
            answer = network(_floats(torch.from_numpy(given).to(device)))
            heat, boxes = _decoded(torch, answer, len(held["labels"]))
        return [_said(*each, held["labels"], frame) for each, frame in zip(
            _peaks(torch, heat, boxes), frames, strict=True)]

    return System(f"{__name__}:detector({str(weights)!r})", Detections.kind, predict,
                  fingerprint_of("reference", VERSION, hash_file(str(weights))), batch=256)


def letterbox(size: Size, side: int) -> Warp:
    """The whole picture as large as fits into a square, in its middle."""
    width, height = size
    scale = side / max(width, height)
    moved = [[scale, 0, (side - width * scale) / 2], [0, scale, (side - height * scale) / 2], [0, 0, 1]]
    return Warp(np.array(moved), size, (side, side))


# --- the network -----------------------------------------------------------------------------------

def _network(torch: Any, classes: int) -> Any:
    """Per cell: a score for each class, and the box's four sides as logarithms of their distance in cells.

    Its 190,000 weights see 140 pixels about a cell: much more than a small object.
    """
    nn = torch.nn

    def layer(inner: int, outer: int, stride: int = 1, apart: int = 1) -> list[Any]:
        return [nn.Conv2d(inner, outer, 3, stride, apart, dilation=apart, bias=False), nn.BatchNorm2d(outer),
                nn.ReLU(inplace=True)]

    last = nn.Conv2d(64, classes + 4, 1)
    with torch.no_grad():
        last.bias.zero_()
        last.bias[:classes] = math.log(0.02 / 0.98)  # cells without an object are the rule
    return nn.Sequential(*layer(3, 24, 2), *layer(24, 48, 2), *layer(48, 64, 2), *layer(64, 64),
                         *layer(64, 64, 1, 2), *layer(64, 64, 1, 4), *layer(64, 64), last)


def _floats(pixels: Any) -> Any:
    return pixels.permute(0, 3, 1, 2).float().div(127.5).sub(1)


def _decoded(torch: Any, answer: Any, classes: int) -> tuple[Any, Any]:
    """Scores (N, C, h, w) as logits, boxes (N, 4, h, w) in pixels."""
    rows, columns = answer.shape[2:]
    down = (torch.arange(rows, device=answer.device) + 0.5)[None, :, None] * STRIDE
    across = (torch.arange(columns, device=answer.device) + 0.5)[None, None, :] * STRIDE
    left, top, right, bottom = (answer[:, classes:].clamp(-4, 4).exp() * STRIDE).unbind(1)
    return answer[:, :classes], torch.stack([across - left, down - top, across + right, down + bottom], 1)


def _peaks(torch: Any, heat: Any, boxes: Any) -> list[tuple[Floats, npt.NDArray[np.int64], Floats]]:
    """For each picture the scores, classes and boxes of the cells that score higher than their neighbours."""
    scores = heat.sigmoid()
    highest = torch.nn.functional.max_pool2d(scores, 3, 1, 1)
    flat = torch.where((scores == highest) & (scores >= FLOOR), scores, scores.new_zeros(())).flatten(1)
    best, place = flat.topk(min(MOST, flat.shape[1]), 1)
    cells = boxes.shape[2] * boxes.shape[3]
    where = boxes.flatten(2).gather(2, (place % cells)[:, None].expand(-1, 4, -1)).transpose(1, 2)
    best, kinds, where = (each.cpu().numpy() for each in (best, place // cells, where))
    return [(one[one > 0], kind[one > 0], box[one > 0]) for one, kind, box in zip(best, kinds, where, strict=True)]


def _said(scores: Floats, kinds: npt.NDArray[np.int64], boxes: Floats, labels: Sequence[str],
          frame: Warp) -> Detections:
    same = (boxes_iou(boxes, boxes) > SAME) & (kinds[:, None] == kinds[None])
    kept: list[int] = []
    for number in range(len(scores)):  # surest first
        if not same[number, kept].any():
            kept.append(number)
    corners = frame.inverse.boxes(boxes[kept]) if kept else np.zeros((0, 4))
    inside = np.clip(corners, 0, np.array(frame.source * 2, np.float64))
    return Detections.from_xyxy(inside, [labels[kind] for kind in kinds[kept]], scores[kept])


# --- training --------------------------------------------------------------------------------------

def _fit(torch: Any, network: Any, pictures: npt.NDArray[np.uint8], boxes: list[Floats],
         classes: list[npt.NDArray[np.int64]], count: int, device: Any, *, seed: int, steps: int,
         batch: int) -> None:
    side = pictures.shape[1]
    turned = Warp.mirror((side, side), "h")
    twice = [*boxes, *(turned.boxes(each).astype(np.float32) for each in boxes)]
    heat, where, weight = (torch.from_numpy(each).to(device) for each in _targets(twice, classes * 2, count, side))
    seen = torch.from_numpy(pictures).to(device)
    optimiser = torch.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=1e-2, fused=device.type == "cuda")
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, total_steps=steps, pct_start=0.1)
    chance = np.random.default_rng(seed)
    order = _order(chance, len(seen), steps * batch)
    network.train()
    begun = said = time.monotonic()
    for step in range(steps):
        picked = torch.from_numpy(order[step * batch:(step + 1) * batch]).to(device)
        mirrored = torch.from_numpy(chance.random(len(picked)) < 0.5).to(device)
        given = seen[picked]
        given = torch.where(mirrored[:, None, None, None], given.flip(2), given)
        target = picked + mirrored * len(seen)
        scores, found = _decoded(torch, network(_floats(given)), count)
        loss = _focal(torch, scores, heat[target]) + _overlap(torch, found, where[target], weight[target])
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 10.0)
        optimiser.step()
        schedule.step()
        if time.monotonic() - said > SAID_EVERY:
            said = time.monotonic()
            left = (said - begun) * (steps - step - 1) / (step + 1)
            print(f"trained {step + 1:,} of {steps:,} steps, {left:.0f} s left", file=sys.stderr, flush=True)
    network.eval()


def _order(chance: np.random.Generator, count: int, wanted: int) -> npt.NDArray[np.int64]:
    """Every picture once before any comes again."""
    rounds = -(-wanted // count)
    return np.asarray(np.concatenate([chance.permutation(count) for _ in range(rounds)])[:wanted], np.int64)


def _focal(torch: Any, logits: Any, heat: Any) -> Any:
    """Focal loss for middles of objects; cells near one count little as its absence."""
    sure, unsure = torch.nn.functional.logsigmoid(logits), torch.nn.functional.logsigmoid(-logits)
    score = logits.sigmoid()
    middle = heat == 1
    loss = torch.where(middle, (1 - score) ** 2 * sure, (1 - heat) ** 4 * score**2 * unsure)
    return -loss.sum() / middle.sum().clamp(min=1)


def _overlap(torch: Any, found: Any, wanted: Any, weight: Any) -> Any:
    """1 − generalised IoU, over the cells near the middles of objects."""
    low, high = torch.maximum(found[:, :2], wanted[:, :2]), torch.minimum(found[:, 2:], wanted[:, 2:])
    both = (high - low).clamp(min=0).prod(1)
    area = [(each[:, 2:] - each[:, :2]).clamp(min=0).prod(1) for each in (found, wanted)]
    union = area[0] + area[1] - both
    around = (torch.maximum(found[:, 2:], wanted[:, 2:]) - torch.minimum(found[:, :2], wanted[:, :2])).prod(1)
    giou = both / union.clamp(min=1e-6) - (around - union) / around.clamp(min=1e-6)
    return ((1 - giou) * weight).sum() / weight.sum().clamp(min=1)


def _targets(boxes: list[Floats], classes: list[npt.NDArray[np.int64]], count: int,
             side: int) -> tuple[Floats, Floats, Floats]:
    """What the network should say: heat (N, C, h, w), boxes (N, 4, h, w), and how much a cell's box counts."""
    cells = side // STRIDE
    heat = np.zeros((len(boxes), count, cells, cells), np.float32)
    where = np.zeros((len(boxes), 4, cells, cells), np.float32)
    weight = np.zeros((len(boxes), cells, cells), np.float32)
    places = np.arange(cells)
    for number, (mine, kinds) in enumerate(zip(boxes, classes, strict=True)):
        for box, kind in zip(mine, kinds, strict=True):
            middle = np.clip((box[:2] + box[2:]) / 2 / STRIDE - 0.5, 0, cells - 1)
            spread = np.maximum((box[2:] - box[:2]) / STRIDE / 6, 0.4)
            nearest = np.rint(middle).astype(int)
            across = np.exp(-((places - nearest[0]) ** 2) / (2 * spread[0] ** 2))
            down = np.exp(-((places - nearest[1]) ** 2) / (2 * spread[1] ** 2))
            blob = (down[:, None] * across).astype(np.float32)
            heat[number, kind] = np.maximum(heat[number, kind], blob)
            mine_here = (blob > 0.5) & (blob > weight[number])
            weight[number][mine_here] = blob[mine_here]
            where[number][:, mine_here] = box[:, None]
    return heat, where, weight


def _loaded(folder: Path, side: int) -> tuple[npt.NDArray[np.uint8], list[Floats], list[npt.NDArray[np.int64]],
                                              list[str]]:
    """The pictures of a folder in squares, their boxes there, the number of each box's class, and the classes."""
    if side % STRIDE:
        raise ValueError(f"side is a multiple of {STRIDE}, got {side}")
    cases = list(dataset(folder / LABELS).cases())
    truths = [case.truth for case in cases if isinstance(case.truth, Detections)]
    labels = sorted({label for truth in truths for label in truth.labels})
    pictures = np.zeros((len(cases), side, side, 3), np.uint8)
    boxes, classes = [], []
    for number, (case, truth) in enumerate(zip(cases, truths, strict=True)):
        image, _ = read_input(case)
        assert isinstance(image, Image)
        frame = letterbox(image.size, side)
        pictures[number] = warp_pixels(image.pixels, frame)
        boxes.append(frame.boxes(truth.boxes).astype(np.float32).reshape(-1, 4))
        classes.append(np.array([labels.index(label) for label in truth.labels], np.int64))
    return pictures, boxes, classes, labels


# --- PyTorch ---------------------------------------------------------------------------------------

def _torch() -> Any:
    try:
        return import_module("torch")
    except ImportError:
        raise MissingExtra("the reference trainer needs PyTorch: pip install 'instar[repair]'") from None


@contextmanager
def _repeatable(torch: Any, seed: int) -> Iterator[None]:
    """Chance from the seed alone, and the caller's own chance and choices as they were."""
    kept = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            yield
    finally:
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = kept
