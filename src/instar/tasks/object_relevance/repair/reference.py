"""The reference trainer: it trains Instar's `reference-detector`, a small one-stage detector in plain PyTorch."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import xxhash

from instar.case import read_input
from instar.datasets import Dataset, dataset
from instar.files import place_file
from instar.image import Image
from instar.outputs.detections import Detections
from instar.spelling import spell_value
from instar.systems import System, fingerprint_of, hash_file, system
from instar.systems.system import imported
from instar.tasks.object_relevance.reference_detector import (
    STRIDE,
    VERSION,
    Torch,
    Weights,
    decoded,
    framed,
    network_of,
    normalised,
    read_weights,
)
from instar.tasks.object_relevance.repair.evaluate import compared
from instar.tasks.object_relevance.repair.export import LABELS, VALIDATION
from instar.warp import Warp

PROGRESS_EVERY = 10.0
"""Seconds between two lines of progress."""
SAVED_EVERY = 30.0
"""Seconds of a training that a stop costs at most."""

CHECKS = 20
"""How often a training of all steps looks at the validation set."""

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
    patience: int = 5,
) -> Path:
    """Train on an exported folder (COCO) and return the weights, `weights.npz` in the folder `out`.

    Images are letterboxed to `side` pixels. Where the folder has a validation set, mAP@0.5 is measured on it every
    20th of the `steps`; training ends when it has not risen in `patience` of these checks, or after all steps, and the
    weights are the best of any check. `saturation.json` says what came of the checks. Without a validation set all
    steps are done. The same seed on the same machine gives the same weights, as far as PyTorch can promise that.
    `start` are weights to go on from, whose classes are kept; they must know those of the set. A training that was
    stopped goes on where it was half a minute before, if it is asked for again with the same arguments.
    """
    torch = imported("torch", "repair", "PyTorch", "the reference trainer")
    first = None if start is None else read_weights(start)
    training = _loaded(folder, side, None if first is None else first.labels)
    labels = training.labels
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    digest = _digest([training.pixels, *training.boxes, *training.classes])
    started = hash_file(str(start)) if start else None
    validation = folder / VALIDATION
    checked = [hash_file(str(validation)), patience] if validation.is_file() else None
    fingerprint = fingerprint_of(
        VERSION, labels, side, steps, batch, seed, started, training.pixels.shape, digest, checked
    )
    unfinished = _Unfinished(out / "unfinished.pt", fingerprint)
    with _repeatable(torch, seed):
        network = first.network(torch, device) if first else network_of(torch, len(labels)).to(device)
        checks = None
        if checked is not None:
            checks = _Checks(dataset(validation), Weights(labels, side, {}), out, max(25, steps // CHECKS), patience)
        _fit(torch, network, training, device, unfinished, checks, seed=seed, steps=steps, batch=batch)
    path = out / "weights.npz"
    place_file(path, Weights(labels, side, checks.best if checks and checks.best else _state(network)).write)
    if checks is not None:
        checks.report(steps)
    unfinished.path.unlink(missing_ok=True)
    return path


def detector(weights: Path) -> System:
    """The system that answers with these weights; on a GPU where there is one."""
    return system(f"reference-detector({spell_value(str(weights))})")


# --- training --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Training:
    """Images in squares (N, side, side, 3), their boxes there, the number of each box's class, and the classes."""

    pixels: npt.NDArray[np.uint8]
    boxes: list[Floats]
    classes: list[npt.NDArray[np.int64]]
    labels: list[str]


def _state(network: Torch) -> dict[str, npt.NDArray[np.generic]]:
    return {name: value.cpu().numpy().copy() for name, value in network.state_dict().items()}


@dataclass(slots=True)
class _Checks:
    """Whether a training is saturated: mAP@0.5 on the validation set every so many steps, and the best weights so far.

    Of two checks that are equally good the later one counts as the best, and not as a rise.
    """

    validation: Dataset
    shape: Weights
    out: Path
    every: int
    patience: int
    values: list[tuple[int, float]] = field(default_factory=list)
    best: dict[str, npt.NDArray[np.generic]] = field(default_factory=dict)

    def saturated(self, network: Torch, step: int, steps: int) -> bool:
        """Check where it is time to; True where training has nothing to gain any more."""
        if step % self.every and step != steps:
            return False
        state, place = _state(network), self.out / "checked.npz"
        place_file(place, Weights(self.shape.labels, self.shape.side, state).write)
        value = float(np.nan_to_num(compared(detector(place), self.validation).values()["mAP@0.5"]))
        place.unlink()
        if value >= max((known for _, known in self.values), default=0.0):
            self.best = state
        self.values.append((step, value))
        highest = max(known for _, known in self.values)
        rose = next(number for number, (_, known) in enumerate(self.values) if known == highest)
        return len(self.values) - 1 - rose >= self.patience

    def report(self, steps: int) -> None:
        """Write down how training ended, and say it."""
        last, highest = self.values[-1][0], max(known for _, known in self.values)
        best = max(step for step, known in self.values if known == highest)
        words = (
            f"mAP@0.5 on the validation set did not rise in {self.patience} checks"
            if last < steps
            else "all steps done"
        )
        content = {"steps": last, "most": steps, "best_step": best, "every": self.every, "patience": self.patience}
        record = {**content, "ended": words, "checks": [list(each) for each in self.values]}
        place_file(self.out / "saturation.json", json.dumps(record, indent=1).encode("utf-8"))
        print(
            f"training ended after {last:,} of {steps:,} steps: {words}; the weights are those of step {best:,}, "
            f"mAP@0.5 {highest:.3f}",
            file=sys.stderr,
            flush=True,
        )


@dataclass(frozen=True, slots=True)
class _Unfinished:
    """The file of a training that was stopped, and the fingerprint of everything that determines it."""

    path: Path
    fingerprint: str

    def save(self, torch: Torch, network: Torch, optimiser: Torch, step: int, checks: _Checks | None) -> None:
        states = {"network": network.state_dict(), "optimiser": optimiser.state_dict()}
        if checks is not None:
            best = {name: torch.from_numpy(value) for name, value in checks.best.items()}
            states |= {"best": best, "checks": checks.values}
        place_file(self.path, partial(torch.save, {"fingerprint": self.fingerprint, "step": step, **states}))

    def resume(self, torch: Torch, network: Torch, optimiser: Torch, device: Torch, checks: _Checks | None) -> int:
        """Take the training up, and say how many steps of it are done; 0 where there is none like it."""
        if not self.path.is_file():
            return 0
        stored = torch.load(self.path, map_location=device, weights_only=True)
        if stored["fingerprint"] != self.fingerprint:
            return 0
        network.load_state_dict(stored["network"])
        optimiser.load_state_dict(stored["optimiser"])
        if checks is not None:
            checks.values = [(int(step), float(value)) for step, value in stored["checks"]]
            checks.best = {name: value.cpu().numpy() for name, value in stored["best"].items()}
        print(f"going on with a training that was stopped after {stored['step']:,} steps", file=sys.stderr, flush=True)
        return int(stored["step"])


def _fit(
    torch: Torch,
    network: Torch,
    training: _Training,
    device: Torch,
    unfinished: _Unfinished,
    checks: _Checks | None,
    *,
    seed: int,
    steps: int,
    batch: int,
) -> None:
    side, count = training.pixels.shape[1], len(training.labels)
    mirror = Warp.mirror((side, side), "h")
    boxes = [*training.boxes, *(mirror.boxes(each).astype(np.float32) for each in training.boxes)]
    targets = _targets(boxes, training.classes * 2, count, side)
    heat, where, weight = (torch.from_numpy(each).to(device) for each in targets)
    seen = torch.from_numpy(training.pixels).to(device)
    optimiser = torch.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=1e-2, fused=device.type == "cuda")
    first = unfinished.resume(torch, network, optimiser, device, checks)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, 2e-3, total_steps=steps, pct_start=0.1, last_epoch=first - 1
    )
    chance = np.random.default_rng(seed)
    order = _order(chance, len(seen), steps * batch)
    turns = chance.random(len(order)) < 0.5
    network.train()
    begun = printed = saved = time.monotonic()
    for step in range(first, steps):
        now = slice(step * batch, (step + 1) * batch)
        picked, mirrored = (torch.from_numpy(each[now]).to(device) for each in (order, turns))
        pixels = seen[picked]
        pixels = torch.where(mirrored[:, None, None, None], pixels.flip(2), pixels)
        target = picked + mirrored * len(seen)
        scores, predicted = decoded(torch, network(normalised(pixels)), count)
        loss = _focal(torch, scores, heat[target]) + _overlap(torch, predicted, where[target], weight[target])
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 10.0)
        optimiser.step()
        schedule.step()
        if checks is not None:
            network.eval()
            if checks.saturated(network, step + 1, steps):
                break
            network.train()
        if time.monotonic() - saved > SAVED_EVERY:
            unfinished.save(torch, network, optimiser, step + 1, checks)
            saved = time.monotonic()
        if time.monotonic() - printed > PROGRESS_EVERY:
            printed = time.monotonic()
            left = (printed - begun) * (steps - step - 1) / (step + 1 - first)
            print(f"trained {step + 1:,} of {steps:,} steps, {left / 60:.1f} min left", file=sys.stderr, flush=True)
    network.eval()


def _digest(arrays: Sequence[npt.NDArray[np.generic]]) -> str:
    digest = xxhash.xxh3_128()
    for each in arrays:
        digest.update(np.ascontiguousarray(each).tobytes())
    return digest.hexdigest()


def _order(chance: np.random.Generator, count: int, wanted: int) -> npt.NDArray[np.int64]:
    """Every image once before any comes again."""
    rounds = -(-wanted // count)
    return np.asarray(np.concatenate([chance.permutation(count) for _ in range(rounds)])[:wanted], np.int64)


def _focal(torch: Torch, logits: Torch, heat: Torch) -> Torch:
    """Focal loss for middles of objects; cells near one count little as its absence."""
    sure, unsure = torch.nn.functional.logsigmoid(logits), torch.nn.functional.logsigmoid(-logits)
    score = logits.sigmoid()
    middle = heat == 1
    loss = torch.where(middle, (1 - score) ** 2 * sure, (1 - heat) ** 4 * score**2 * unsure)
    return -loss.sum() / middle.sum().clamp(min=1)


def _overlap(torch: Torch, predicted: Torch, wanted: Torch, weight: Torch) -> Torch:
    """1 − generalised IoU, over the cells near the middles of objects."""
    low, high = torch.maximum(predicted[:, :2], wanted[:, :2]), torch.minimum(predicted[:, 2:], wanted[:, 2:])
    both = (high - low).clamp(min=0).prod(1)
    area = [(each[:, 2:] - each[:, :2]).clamp(min=0).prod(1) for each in (predicted, wanted)]
    union = area[0] + area[1] - both
    around = (torch.maximum(predicted[:, 2:], wanted[:, 2:]) - torch.minimum(predicted[:, :2], wanted[:, :2])).prod(1)
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
    for number, (of_image, kinds) in enumerate(zip(boxes, classes, strict=True)):
        for box, kind in zip(of_image, kinds, strict=True):
            middle = np.clip((box[:2] + box[2:]) / 2 / STRIDE - 0.5, 0, cells - 1)
            spread = np.maximum((box[2:] - box[:2]) / STRIDE / 6, 0.4)
            nearest = np.rint(middle).astype(int)
            across = np.exp(-((places - nearest[0]) ** 2) / (2 * spread[0] ** 2))
            down = np.exp(-((places - nearest[1]) ** 2) / (2 * spread[1] ** 2))
            blob = (down[:, None] * across).astype(np.float32)
            heat[number, kind] = np.maximum(heat[number, kind], blob)
            own = (blob > 0.5) & (blob > weight[number])
            weight[number][own] = blob[own]
            where[number][:, own] = box[:, None]
    return heat, where, weight


def _loaded(folder: Path, side: int, known: list[str] | None) -> _Training:
    """The set with the classes that are `known`, else with those that it lists, in their order."""
    if side % STRIDE:
        raise ValueError(f"side is a multiple of {STRIDE}, got {side}")
    data = dataset(folder / LABELS)
    cases = list(data.cases())
    truths = [case.truth for case in cases if isinstance(case.truth, Detections)]
    annotated = {label for truth in truths for label in truth.labels}
    if not annotated:
        raise ValueError(f"{folder}: nothing is annotated in it, so there is nothing to learn")
    if known is not None and annotated - set(known):
        raise ValueError(
            f"the weights to start from know the classes {', '.join(known)}, "
            f"and {folder} has {', '.join(sorted(annotated))}"
        )
    labels = known or [data.classes[number] for number in sorted(data.classes)]
    pixels = np.zeros((len(cases), side, side, 3), np.uint8)
    boxes, classes = [], []
    for number, (case, truth) in enumerate(zip(cases, truths, strict=True)):
        image, _ = read_input(case)
        assert isinstance(image, Image)
        pixels[number], frame = framed(image, side)
        boxes.append(frame.boxes(truth.boxes).astype(np.float32).reshape(-1, 4))
        classes.append(np.array([labels.index(label) for label in truth.labels], np.int64))
    return _Training(pixels, boxes, classes, labels)


@contextmanager
def _repeatable(torch: Torch, seed: int) -> Iterator[None]:
    """Chance from the seed alone, and the caller's own chance and choices as they were."""
    kept = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            yield
    finally:
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = kept
