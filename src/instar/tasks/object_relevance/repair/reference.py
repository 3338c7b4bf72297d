"""The reference trainer: it trains Instar's `reference-detector`, a small one-stage detector in plain PyTorch."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from instar.case import read_input
from instar.datasets import dataset
from instar.files import place_file
from instar.image import Image
from instar.outputs.detections import Detections
from instar.spelling import spell_value
from instar.systems import System, fingerprint_of, hash_file, system
from instar.tasks.object_relevance.reference_detector import (
    STRIDE,
    VERSION,
    Weights,
    decoded,
    framed,
    network_of,
    normalised,
    pytorch,
    read_weights,
)
from instar.tasks.object_relevance.repair.export import LABELS
from instar.warp import Warp

__all__ = ["detector", "train"]

SAID_EVERY = 10.0
"""Seconds between two lines of progress."""
SAVED_EVERY = 30.0
"""Seconds of a training that a stop costs at most."""

Floats = npt.NDArray[np.float32]


def train(
    folder: Path,
    out: Path,
    *,
    seed: int,
    start: Path | None = None,
    steps: int = 3000,
    side: int = 128,
    batch: int = 32,
) -> Path:
    """Train on an exported folder (COCO) and return the weights, `weights.npz` in the folder `out`.

    Pictures are letterboxed to `side` pixels. The number of `steps` is the same whatever the size of the set, so that
    two trainings differ in what they saw and not in how long. The same seed on the same machine gives the same
    weights, as far as PyTorch can promise that. `start` are weights to go on from, of the same classes. A training
    that was stopped goes on where it was half a minute before, if it is asked for again with the same arguments.
    """
    torch = pytorch("the reference trainer")
    pictures, boxes, classes, labels = _loaded(folder, side)
    if not labels:
        raise ValueError(f"{folder}: nothing is annotated in it, so there is nothing to learn")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    asked = fingerprint_of(
        VERSION,
        labels,
        side,
        steps,
        batch,
        seed,
        hash_file(str(start)) if start else None,
        pictures.shape,
        _digest([pictures, *boxes, *classes]),
    )
    kept = out / "unfinished.pt"
    with _repeatable(torch, seed):
        if start is None:
            network = network_of(torch, len(labels)).to(device)
        else:
            held = read_weights(start)
            if held.labels != labels:
                raise ValueError(
                    f"{start} knows the classes {', '.join(held.labels)}, {folder} has {', '.join(labels)}"
                )
            network = held.network(torch, device)
        _fit(
            torch,
            network,
            pictures,
            boxes,
            classes,
            len(labels),
            device,
            seed=seed,
            steps=steps,
            batch=batch,
            kept=kept,
            asked=asked,
        )
    state = {name: value.cpu().numpy() for name, value in network.state_dict().items()}
    path = out / "weights.npz"
    place_file(path, Weights(labels, side, state).write)
    kept.unlink(missing_ok=True)
    return path


def detector(weights: Path) -> System:
    """The system that answers with these weights; on a GPU where there is one."""
    return system(f"reference-detector({spell_value(str(weights))})")


# --- training --------------------------------------------------------------------------------------


def _fit(
    torch: Any,
    network: Any,
    pictures: npt.NDArray[np.uint8],
    boxes: list[Floats],
    classes: list[npt.NDArray[np.int64]],
    count: int,
    device: Any,
    *,
    seed: int,
    steps: int,
    batch: int,
    kept: Path,
    asked: str,
) -> None:
    side = pictures.shape[1]
    turned = Warp.mirror((side, side), "h")
    twice = [*boxes, *(turned.boxes(each).astype(np.float32) for each in boxes)]
    heat, where, weight = (torch.from_numpy(each).to(device) for each in _targets(twice, classes * 2, count, side))
    seen = torch.from_numpy(pictures).to(device)
    optimiser = torch.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=1e-2, fused=device.type == "cuda")
    first = _resumed(torch, network, optimiser, kept, asked, device)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, 2e-3, total_steps=steps, pct_start=0.1, last_epoch=first - 1
    )
    chance = np.random.default_rng(seed)
    order = _order(chance, len(seen), steps * batch)
    turns = chance.random(len(order)) < 0.5
    network.train()
    begun = said = saved = time.monotonic()
    for step in range(first, steps):
        now = slice(step * batch, (step + 1) * batch)
        picked, mirrored = (torch.from_numpy(each[now]).to(device) for each in (order, turns))
        given = seen[picked]
        given = torch.where(mirrored[:, None, None, None], given.flip(2), given)
        target = picked + mirrored * len(seen)
        scores, found = decoded(torch, network(normalised(given)), count)
        loss = _focal(torch, scores, heat[target]) + _overlap(torch, found, where[target], weight[target])
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 10.0)
        optimiser.step()
        schedule.step()
        if time.monotonic() - saved > SAVED_EVERY:
            held = {
                "asked": asked,
                "step": step + 1,
                "network": network.state_dict(),
                "optimiser": optimiser.state_dict(),
            }
            place_file(kept, partial(torch.save, held))
            saved = time.monotonic()
        if time.monotonic() - said > SAID_EVERY:
            said = time.monotonic()
            left = (said - begun) * (steps - step - 1) / (step + 1 - first)
            print(f"trained {step + 1:,} of {steps:,} steps, {left / 60:.1f} min left", file=sys.stderr, flush=True)
    network.eval()


def _resumed(torch: Any, network: Any, optimiser: Any, kept: Path, asked: str, device: Any) -> int:
    """Take up a training that was stopped, and say how many steps of it are done; 0 where there is none like it."""
    if not kept.is_file():
        return 0
    held = torch.load(kept, map_location=device, weights_only=True)
    if held["asked"] != asked:
        return 0
    network.load_state_dict(held["network"])
    optimiser.load_state_dict(held["optimiser"])
    print(f"going on with a training that was stopped after {held['step']:,} steps", file=sys.stderr, flush=True)
    return int(held["step"])


def _digest(arrays: Sequence[npt.NDArray[Any]]) -> str:
    digest = xxhash.xxh3_128()
    for each in arrays:
        digest.update(np.ascontiguousarray(each).tobytes())
    return digest.hexdigest()


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


def _targets(
    boxes: list[Floats], classes: list[npt.NDArray[np.int64]], count: int, side: int
) -> tuple[Floats, Floats, Floats]:
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


def _loaded(
    folder: Path, side: int
) -> tuple[npt.NDArray[np.uint8], list[Floats], list[npt.NDArray[np.int64]], list[str]]:
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
        pictures[number], frame = framed(image, side)
        boxes.append(frame.boxes(truth.boxes).astype(np.float32).reshape(-1, 4))
        classes.append(np.array([labels.index(label) for label in truth.labels], np.int64))
    return pictures, boxes, classes, labels


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
