"""What follow-ups cost on a GPU, at 720×480: each family against a copy, and all rules of `met-pose` on one image.

python -m benchmarks.gpu [--small] [--write]

A machine with a GPU may have PyTorch and nothing else of what Instar needs. `--plan FILE` writes what is measured, with
what the CPU makes of it, where Instar is installed; `--from FILE` measures it there, with the modules `instar.levels`,
`instar.tensors` and this one, and prints the figures; `--store FILE` puts what was printed on the page, back here.
"""

from __future__ import annotations

import json
import pickle
import platform
import statistics
import sys
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from benchmarks.figures import Absent, Figures, Row, percentage, rounded, short, size_words

Pixels = npt.NDArray[np.uint8]

SUITE = "met-pose"
OTHERS = (
    "contrast(0.7)", "colour_wheel(90)", "colour_fill((0, 0, 255))", "colour_channels((0.9, 1.1, 1.1))",
    "colour_channels((1, 1, 1), encoding=xyz)", "shear(0.2)", "shift(0.1, 0.1)", "crop(0.9)", "pad(0.25)",
    "rotate90(1)", "rescale(0.7)", "blur(2)", "noise(8)",
)  # fmt: skip
FAMILIES = (
    "brightness(20, 0.8)", "gamma(0.5)", "contrast(0.7)", "colour_fill((0, 0, 255))",
    "colour_channels((0.9, 1.1, 1.1))", "greyscale", "colour_channels((1, 1, 1), encoding=xyz)", "colour_wheel(90)",
    "filtered(colour_wheel(90), background)",
    "mirror(h)", "rotate90(1)", "shift(0.1, y=0.1)", "crop(0.9)", "pad(0.25)", "rotation(5)", "shear(0.2)",
    "stretch(1.25, 1)", "rescale(0.7)", "resolution(0.5)", "resolution(0.1)", "motion(11, 0)", "motion(11, 40)",
    "blur(2)", "bilateral(80, 3)", "bilateral(80, 5)", "bilateral(80, 7)", "bilateral(80, 9)", "noise(8)",
)  # fmt: skip
"""One rule or two of every family that is made on the device."""
LARGE = (
    "rotation(5)",
    "stretch(1.25, 1)",
    "resolution(0.1)",
    "motion(11, 40)",
    "bilateral(80, 9)",
    "blur(2)",
    "noise(8)",
)
"""Compared with the CPU at full size, too: where an error would grow with the image."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A rule's operation on an image, its zone, and what the CPU makes of it; empty where that is not compared."""

    rule: str
    operation: Any
    mask: int | None
    expected: Pixels


@dataclass(frozen=True, slots=True)
class Plan:
    """An image, masks of its zones, and rules; `small` is the same for comparing all families, and every rule."""

    pixels: Pixels
    masks: list[Pixels]
    rules: list[Planned]
    others: list[Planned]
    cpu_ms: float
    """What one core takes for the suite, where the plan was made."""
    described_ms: float
    """What Python takes there to say what follow-ups of the suite are, before any is made on a device."""
    small: Plan | None = None


# --- the plan, made where Instar is installed -------------------------------------------------------


def planned(size: tuple[int, int], small: tuple[int, int] | None) -> Plan:
    import cv2

    from benchmarks.transforms import _image, _needs
    from instar.image import Image
    from instar.suites import suite
    from instar.tensors.image import TensorImage
    from instar.transforms import transformation

    cv2.setNumThreads(1)
    image, needs = _image(size), _needs(size)
    source: Image = TensorImage.of(image, "cpu")
    masks: list[Pixels] = []

    def plan(text: str, compared: bool) -> Planned:
        follow_up, _ = transformation(text)(source, needs=needs, seed=5)
        assert isinstance(follow_up, TensorImage), f"{text} is not made on the device"
        mask = follow_up._mask
        if mask is not None and not any(mask is one for one in masks):
            masks.append(mask)
        number = None if mask is None else next(n for n, one in enumerate(masks) if one is mask)
        expected = transformation(text)(image, needs=needs, seed=5)[0].pixels if compared else np.empty(0, np.uint8)
        return Planned(transformation(text).id, follow_up._operation, number, expected)

    rules = [rule.transformations[0].id for rule in suite(SUITE).rules]
    begun = time.process_time()
    for text in rules:
        transformation(text)(image, needs=needs, seed=5)
    cpu_ms = 1000 * (time.process_time() - begun)
    changes = [transformation(text) for text in rules]
    for change in (*changes, *changes):  # what is the same for all images is known after the first
        begun = time.process_time() if change is changes[0] else begun
        change(source, needs=needs, seed=5)
    described_ms = 1000 * (time.process_time() - begun)
    every = [plan(text, small is None or text in LARGE) for text in rules]
    others = [plan(text, small is None or text in LARGE) for text in OTHERS]
    return Plan(
        image.pixels, masks, every, others, cpu_ms, described_ms, None if small is None else planned(small, None)
    )


# --- measured on the device -------------------------------------------------------------------------


class Clock:
    """Microseconds of work: the median of several rounds."""

    def __init__(self, device: str, rounds: int) -> None:
        import torch

        self.torch: Any = torch
        self.cuda, self.rounds = device.startswith("cuda"), rounds

    def __call__(self, work: Callable[[], object], times: int = 10) -> float:
        """The device's own time: a recorded graph of launches, again and again, which does not wait for Python."""
        if not self.cuda:
            return self.wall(work)
        work()
        again = self._recorded(work)
        taken: list[float] = []
        for _ in range(self.rounds):
            first, last = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
            self.wait()
            first.record()
            for _ in range(times):
                again()
            last.record()
            self.wait()
            taken.append(1000 * first.elapsed_time(last) / times)
        return statistics.median(taken)

    def _recorded(self, work: Callable[[], object]) -> Callable[[], object]:
        graph = self.torch.cuda.CUDAGraph()
        try:
            with self.torch.cuda.graph(graph):
                work()
        except Exception as error:  # work that sends something from here is no graph
            print(f"no graph: {type(error).__name__}: {str(error)[:100]}", file=sys.stderr)
            self.wait()
            return work
        return cast(Callable[[], object], graph.replay)

    def wall(self, work: Callable[[], object]) -> float:
        """With the time that Python takes to launch it, up to its end on the device."""
        if self.rounds > 1:
            work()
        taken = []
        for _ in range(self.rounds):
            self.wait()
            begun = time.perf_counter()
            work()
            self.wait()
            taken.append(1e6 * (time.perf_counter() - begun))
        return statistics.median(taken)

    def wait(self) -> None:
        if self.cuda:
            self.torch.cuda.synchronize()


def measured(plan: Plan, device: str, batch: int, rounds: int) -> Figures:
    import torch

    from instar.tensors import operations

    clock = Clock(device, rounds)
    source = torch.from_numpy(np.array(plan.pixels)).to(device)[None]
    masks = [torch.from_numpy(np.array(mask)).to(device) for mask in plan.masks]
    every = [one.operation for one in plan.rules]
    places = [None if one.mask is None else masks[one.mask] for one in plan.rules]

    def suite_made() -> object:
        return operations.together(source, every, places)

    begun = time.perf_counter()
    suite_made()
    clock.wait()
    first = time.perf_counter() - begun  # kernels are compiled, or found in Triton's cache
    images = source.repeat(batch, 1, 1, 1)
    copy = torch.empty_like(images)
    copy_us = clock(lambda: copy.copy_(images)) / batch
    known = {one.rule: one for one in (*plan.rules, *plan.others)}
    by_family = {}
    for one in (known[rule] for rule in FAMILIES):
        work = partial(operations.together, images, [one.operation], [_mask(one, masks)])
        by_family[one.rule] = clock(work) / batch
    compared = differences(plan, device)
    suite_ms = clock.wall(suite_made) / 1000
    return {
        "width": plan.pixels.shape[1],
        "height": plan.pixels.shape[0],
        "batch": batch,
        "rules": len(every),
        "first_seconds": first,
        "copy_us": copy_us,
        "copy_gigabytes_per_second": 2 * plan.pixels.nbytes / copy_us / 1000,
        "family_us": by_family,
        "suite_ms": suite_ms,
        "suite_device_ms": clock(suite_made) / 1000,
        "described_ms": plan.described_ms,
        "groups_us": _groups(clock, source, plan, masks),
        "cpu_core_ms": plan.cpu_ms,
        "upload_ms": uploaded(clock, plan, device),
        "noise_drawn_here_us": drawn(clock, plan, device),
        "compared": len(compared),
        "compared_levels": 1 + max(compared.values()),
        "kornia_us": kornia(clock, images) if device != "cpu" else {},
    }


def _mask(one: Planned, masks: Sequence[Any]) -> Any:
    return None if one.mask is None else masks[one.mask]


def _groups(clock: Clock, source: Any, plan: Plan, masks: Sequence[Any]) -> dict[str, float]:
    """Every kind of operation of the suite by itself, on the device: where its time goes."""
    from instar.tensors import operations

    kinds: dict[str, list[Planned]] = defaultdict(list)
    for one in plan.rules:
        kinds[type(one.operation).__name__].append(one)
    return {
        kind: clock(
            partial(operations.together, source, [o.operation for o in alike], [_mask(o, masks) for o in alike])
        )
        for kind, alike in kinds.items()
    }


def differences(plan: Plan, device: str) -> dict[str, int]:
    """The most grey levels that anything differs by from what the CPU makes; more than one is an error."""
    import torch

    from instar.tensors import operations

    levels: dict[str, int] = {}
    for part in filter(None, (plan, plan.small)):
        source = torch.from_numpy(np.array(part.pixels)).to(device)[None]
        masks = [torch.from_numpy(np.array(mask)).to(device) for mask in part.masks]
        for one in (*part.rules, *part.others):
            if one.expected.size:
                made = operations.together(source, [one.operation], [_mask(one, masks)])[0][0].cpu().numpy()
                assert made.shape == one.expected.shape, f"{one.rule}: {made.shape}, not {one.expected.shape}"
                most = int(np.abs(made.astype(np.int16) - one.expected).max())
                levels[f"{one.rule} at {made.shape[1]}×{made.shape[0]}"] = most
    wrong = {rule: most for rule, most in levels.items() if most > 1}
    off = sum(map(bool, levels.values()))
    print(f"compared with the CPU: {len(levels)} follow-ups, {off} of them differ by a level", file=sys.stderr)
    for rule, most in wrong.items():
        print(f"  {rule} by {most}", file=sys.stderr)
    return levels


def uploaded(clock: Clock, plan: Plan, device: str) -> float:
    """All follow-ups of the suite, made elsewhere, sent from pinned memory."""
    torch = clock.torch
    pixels = torch.from_numpy(np.array(plan.pixels))
    waiting = pixels.pin_memory() if clock.cuda else pixels
    target = torch.empty_like(waiting, device=device)

    def send() -> None:
        for _ in plan.rules:
            target.copy_(waiting, non_blocking=True)

    return clock.wall(send) / 1000


def drawn(clock: Clock, plan: Plan, device: str) -> float:
    """The random bits of one noisy image, drawn by numpy and sent: what the device is spared."""
    torch, words = clock.torch, -(-plan.pixels.size // 4)
    generator = np.random.PCG64(1)

    def send() -> object:
        return torch.from_numpy(generator.random_raw(words).view(np.int16)).to(device)

    return clock.wall(send)


def kornia(clock: Clock, images: Any) -> Figures:
    """The same operations by kornia, on what it takes: 32-bit floats of channels first, which it is not billed for."""
    try:
        import kornia
    except ImportError as error:
        print(f"no kornia: {error}", file=sys.stderr)
        return {}
    torch, count = clock.torch, len(images)
    unit = images.permute(0, 3, 1, 2).float().div(255).contiguous()
    height, width = unit.shape[2:]
    angle = torch.full((count,), 5.0, device=unit.device)
    ways: dict[str, Callable[[], object]] = {
        "brightness(20, 0.8)": lambda: kornia.enhance.adjust_brightness(unit, 0.1),
        "gamma(0.5)": lambda: kornia.enhance.adjust_gamma(unit, 0.5),
        "contrast(0.7)": lambda: kornia.enhance.adjust_contrast(unit, 0.7),
        "greyscale": lambda: kornia.color.rgb_to_grayscale(unit),
        "colour_wheel(90)": lambda: kornia.enhance.adjust_hue(unit, 1.5708),
        "mirror(h)": lambda: kornia.geometry.hflip(unit),
        "rotation(5)": lambda: kornia.geometry.rotate(unit, angle),
        "stretch(1.25, 1)": lambda: kornia.geometry.resize(unit, (height * 5 // 4, width), align_corners=False),
        "motion(11, 40)": lambda: kornia.filters.motion_blur(unit, 11, 40.0, 0.0),
        "blur(2)": lambda: kornia.filters.gaussian_blur2d(unit, (13, 13), (2.0, 2.0)),
        "bilateral(80, 5)": lambda: [
            kornia.filters.bilateral_blur(part, 5, 80 / 255, (80.0, 80.0)) for part in unit.split(8)
        ],
        "noise(8)": lambda: unit + torch.randn_like(unit) * (8 / 255),
    }
    costs = {}
    for rule, work in ways.items():
        try:
            costs[rule] = clock(work, 3) / count
        except Exception as error:
            print(f"kornia's {rule}: {type(error).__name__}: {error}", file=sys.stderr)
    return costs


def measure(small: bool = False) -> Figures:
    try:
        import torch
    except ImportError:
        raise Absent("PyTorch (pip install -r requirements/training.txt)") from None
    if small:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # so small an image is changed sooner than a thread starts
        try:
            return measured(planned((36, 24), None), "cpu", 1, 1)
        finally:
            torch.set_num_threads(threads)
    if not torch.cuda.is_available():
        raise Absent("a GPU that PyTorch can use")
    return measured(planned((720, 480), (160, 120)), "cuda:0", 64, 20)


def rows(figures: Figures) -> list[Row]:
    copy, costs = figures["copy_us"], figures["family_us"]
    each = "; ".join(f"{rule} {short(cost)} µs ({percentage(copy / cost)} of copying)" for rule, cost in costs.items())
    alone = figures["cpu_core_ms"] / 16 + figures["upload_ms"]
    words = (
        f"{figures['rules']} rules of `{SUITE}` on one image {short(figures['suite_ms'])} ms, "
        f"{short(figures['suite_device_ms'])} ms of it on the device, after {short(figures['described_ms'])} ms in "
        f"which Python says what they are; reckoned for 16 cores that make them and send them: {short(alone)} ms"
    )
    lines = [
        Row(
            f"follow-ups on a GPU at {size_words(figures)}, an image in batches of {figures['batch']}",
            f"copying {short(copy)} µs ({short(figures['copy_gigabytes_per_second'], 3)} GB/s); {each}",
        ),
        Row(f"a suite on a GPU at {size_words(figures)}", words),
    ]
    if figures["kornia_us"]:
        times = (f"{rule} {short(cost / costs[rule])}×" for rule, cost in figures["kornia_us"].items() if rule in costs)
        lines.append(Row("kornia's time for the same on that GPU, in 32-bit floats, of ours", ", ".join(times)))
    return lines


def _from(path: Path) -> None:
    """What a machine with a GPU prints: one line of JSON, and a table for people."""
    import torch

    plan: Plan = pickle.loads(zlib.decompress(path.read_bytes()))
    cuda = torch.cuda.is_available()
    figures = rounded(measured(plan, "cuda:0" if cuda else "cpu", 64 if cuda else 1, 20 if cuda else 1))
    place = {"machine": torch.cuda.get_device_name() if cuda else "cpu", "python": platform.python_version()}
    print(json.dumps({"benchmark": "gpu", **place, **figures}))
    copy = figures["copy_us"]
    print(f"\n{'copy':45} {copy:9.3f} µs  100 %")
    for rule, cost in figures["family_us"].items():
        other = figures["kornia_us"].get(rule)
        beside = f"   kornia {other:9.3f} µs, {other / cost:6.1f}×" if other else ""
        print(f"{rule:45} {cost:9.3f} µs {100 * copy / cost:4.0f} %{beside}")
    print("\nthe suite on one image, on the device:")
    for name, cost in figures["groups_us"].items():
        print(f"{name:45} {cost:9.1f} µs")
    for name in (
        "suite_ms",
        "suite_device_ms",
        "described_ms",
        "first_seconds",
        "cpu_core_ms",
        "upload_ms",
        "noise_drawn_here_us",
    ):
        print(f"{name:45} {figures[name]:9.3f}")


def _store(path: Path) -> None:
    from benchmarks.command import setting
    from benchmarks.page import store_results, stored_results

    line = next(line for line in path.read_text("utf-8").splitlines() if line.startswith('{"benchmark": "gpu"'))
    figures = json.loads(line)
    del figures["benchmark"]
    place = {name: figures.pop(name) for name in ("machine", "python")}
    store_results({**stored_results(), "gpu": {"figures": figures, **setting(), **place}})


if __name__ == "__main__":
    from benchmarks import gpu  # by its own name: what is pickled here is read there

    match sys.argv[1:]:
        case ["--plan", path]:
            Path(path).write_bytes(zlib.compress(pickle.dumps(gpu.planned((720, 480), (160, 120)))))
        case ["--from", path]:
            gpu._from(Path(path))
        case ["--store", path]:
            gpu._store(Path(path))
        case _:
            from benchmarks.command import main

            main("gpu")
