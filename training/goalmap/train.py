"""Trains goalmap on simulated walkers and exports it as ONNX.

    python -m training.goalmap.train --minutes 8.5 --samples 600000 --workers 16 --out $OUT

writes `goalmap.onnx` and `metrics.json` into the folder `--out`. `--minutes` bounds everything: simulation (at most
45 % of it), training, export. The samples depend on the seed alone; the weights also on the machine, since the
schedule follows the clock and GPU arithmetic is not reproducible to the bit.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from training.goalmap.model import SIDE, GoalMap, Probabilities, parameters_of
from training.goalmap.simulate import Samples, simulated

_HOLD_OUT = 10_000_000
"""Worlds from this seed on are for validation; evaluate.py uses others again."""
_SIGMA = 0.75 * 2 / SIDE
"""Width of the target around a simulated position: three quarters of a cell."""
_OBSTACLES = (3, 5)
_EXPORT_S = 25


@dataclass
class Clock:
    """What the run's minutes leave."""

    minutes: float
    start: float

    @property
    def spent(self) -> float:
        return time.monotonic() - self.start

    @property
    def left(self) -> float:
        return self.minutes * 60 - self.spent

    def say(self, text: str) -> None:
        print(f"[{self.spent:5.0f} s] {text}", flush=True)


# --- data ------------------------------------------------------------------------------------------


def load(samples: Samples, device: torch.device) -> dict[str, Tensor]:
    return {name: torch.from_numpy(np.ascontiguousarray(value)).to(device) for name, value in samples.items()}


def simulate(first: int, count: int, workers: int, clock: Clock, until: float) -> Samples:
    """Simulated samples, with progress; fewer than asked where the time `until` has come."""
    begin, heard = clock.spent, [clock.spent]

    def say(made: int) -> bool:
        if clock.spent - heard[0] > 10:
            heard[0] = clock.spent
            rate = made / (clock.spent - begin)
            clock.say(f"simulated {made:,} of {count:,} samples, {rate:,.0f}/s, {(count - made) / rate:.0f} s to go")
        return clock.spent < until

    return simulated(first, count, workers, say=say)


def as_input(batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """Bytes to fractions, with the background as the first class; in all 8 symmetries, an eighth of the batch each."""
    parts = [_turned({name: value[g::8] for name, value in batch.items()}, g) for g in range(8)]
    joined = {name: torch.cat([part[name] for part in parts]) for name in batch}
    known = joined["classes"].float() / 255
    joined["classes"] = torch.cat([1 - known.sum(1, keepdim=True), known], 1)
    return joined


def _turned(batch: dict[str, Tensor], symmetry: int) -> dict[str, Tensor]:
    """Transposed, then mirrored; pictures and points alike."""
    classes, swap = batch["classes"], symmetry & 4
    classes = classes.transpose(2, 3) if swap else classes
    flips = [axis for axis, bit in ((3, 1), (2, 2)) if symmetry & bit]
    made = {"classes": classes.flip(flips) if flips else classes}
    signs = torch.tensor([-1.0 if symmetry & 1 else 1.0, -1.0 if symmetry & 2 else 1.0], device=classes.device)
    for name in ("past", "motion", "ends"):
        xy = batch[name][..., :2]
        xy = (xy.flip(-1) if swap else xy) * signs
        made[name] = torch.cat([xy, batch[name][..., 2:]], -1)
    return made


def target(ends: Tensor, classes: Tensor) -> Tensor:
    """Where the simulated futures are (N, 2, 64, 64): Gaussians, hardly any of them inside obstacles."""
    centres = (torch.arange(SIDE, device=ends.device) + 0.5) * 2 / SIDE - 1
    sides = torch.softmax((centres - ends[..., None]) ** 2 * (-0.5 / _SIGMA**2), -1)  # (N, F, 2 maps, x|y, 64)
    heat = torch.einsum("nfmy,nfmx->nmyx", sides[..., 1, :], sides[..., 0, :])
    heat = heat * (1 - 0.98 * classes[:, _OBSTACLES].sum(1, keepdim=True))
    return heat / heat.sum((2, 3), keepdim=True)


def loss_of(logits: Tensor, aim: Tensor) -> Tensor:
    """Cross-entropy of goal and waypoint (2,)."""
    return -(aim * torch.log_softmax(logits.float().flatten(2), 2).reshape(aim.shape)).sum((2, 3)).mean(0)


# --- training --------------------------------------------------------------------------------------


@torch.no_grad()
def validate(network: nn.Module, data: dict[str, Tensor], size: int) -> dict[str, float]:
    """Cross-entropies, the entropy of the targets themselves, and how much probability lies inside obstacles."""
    network.eval()
    sums = torch.zeros(5, dtype=torch.float64)
    count = len(data["past"])
    for begin in range(0, count, size):
        batch = as_input({name: value[begin : begin + size] for name, value in data.items()})
        aim = target(batch["ends"], batch["classes"])
        logits = network(batch["classes"], batch["past"], batch["motion"]).float()
        chance = torch.softmax(logits.flatten(2), 2).reshape(aim.shape)
        blocked = (chance * batch["classes"][:, _OBSTACLES].sum(1, keepdim=True)).sum((2, 3)).mean()
        own = -(aim * torch.log(aim + 1e-12)).sum((2, 3)).mean(0)
        row = torch.cat([loss_of(logits, aim), own, blocked[None]])
        sums += row.double().cpu() * len(aim)
    goal, waypoint, goal_own, waypoint_own, blocked_mass = (sums / count).tolist()
    return {
        "goal": goal,
        "waypoint": waypoint,
        "loss": (goal + waypoint) / 2,
        "floor": (goal_own + waypoint_own) / 2,
        "obstacle_mass": blocked_mass,
    }


def train(
    data: dict[str, Tensor], held: dict[str, Tensor], options: argparse.Namespace, device: torch.device, clock: Clock
) -> tuple[GoalMap, dict[str, object]]:
    """The best weights by validation, of a running mean over the steps."""
    torch.manual_seed(options.seed)
    network = GoalMap(options.width).to(device)
    cuda = device.type == "cuda"
    if cuda:
        network = network.to(memory_format=torch.channels_last)
        network.wide = True
    mean = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(0.998 if cuda else 0.99), use_buffers=True)
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=1e-3, fused=cuda)
    count, size = len(data["past"]), options.batch or (1024 if cuda else 64)
    per_epoch = max(1, count // size)
    total, begin, budget = per_epoch * options.epochs, clock.spent, clock.left - _EXPORT_S
    clock.say(
        f"training {parameters_of(network):,} parameters on {count:,} samples, {device}, batches of {size}, "
        f"at most {options.epochs} epochs or {budget:.0f} s"
    )
    best: tuple[float, dict[str, Tensor], dict[str, float]] | None = None
    order = torch.Generator(device="cpu").manual_seed(options.seed)
    history, step, heard, losses = [], 0, clock.spent, []
    for epoch in range(options.epochs):
        network.train()
        for chosen in torch.randperm(count, generator=order)[: per_epoch * size].reshape(per_epoch, size):
            done = max(step / total, (clock.spent - begin) / budget)
            if done >= 1:
                break
            for group in optimiser.param_groups:
                group["lr"] = options.rate * min(1, done / 0.03 + 0.01) * 0.5 * (1 + math.cos(math.pi * done))
            chosen = chosen.to(device)
            batch = as_input({name: value[chosen] for name, value in data.items()})
            with torch.autocast(device.type, torch.bfloat16, enabled=cuda):
                logits = network(batch["classes"], batch["past"], batch["motion"])
            loss = loss_of(logits, target(batch["ends"], batch["classes"])).mean()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            mean.update_parameters(network)
            step += 1
            losses.append(loss.detach())
            if clock.spent - heard > 15:
                heard = clock.spent
                recent = torch.stack(losses[-100:]).mean().item()
                rate = step * size / (clock.spent - begin)
                to_go = (clock.spent - begin) * (1 / done - 1)
                clock.say(
                    f"epoch {epoch + 1}, step {step:,}: loss {recent:.3f}, {rate:,.0f} samples/s, "
                    f"{100 * done:.0f} % done, {to_go:.0f} s to go"
                )
        found = validate(mean.module, held, size)
        history.append({"epoch": epoch + 1, "train": torch.stack(losses[-per_epoch:]).mean().item(), **found})
        clock.say(f"epoch {epoch + 1}: validation " + ", ".join(f"{name} {value:.4f}" for name, value in found.items()))
        if best is None or found["loss"] < best[0]:
            best = found["loss"], {name: value.clone() for name, value in mean.module.state_dict().items()}, found
        if step >= total or (clock.spent - begin) >= budget:
            break
    assert best is not None
    network.load_state_dict(best[1])
    facts: dict[str, object] = {
        "validation": best[2],
        "history": history,
        "steps": step,
        "batch": size,
        "training_s": round(clock.spent - begin, 1),
    }
    return network, facts


# --- export ----------------------------------------------------------------------------------------


def fused(network: GoalMap) -> GoalMap:
    """On the CPU, batch norms folded into the convolutions, weights rounded to what float16 can hold."""
    network = network.cpu().eval()
    network.wide = False
    for blocks in (network.down, network.up):
        for block in blocks:
            for conv, norm in ((0, 1), (3, 4)):
                block[conv], block[norm] = fuse_conv_bn_eval(block[conv], block[norm]), nn.Identity()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(parameter.half().float())
    return network.to(memory_format=torch.contiguous_format)


def export(network: GoalMap, path: Path, facts: dict[str, str]) -> float:
    """Writes the ONNX file and returns the largest difference to torch of any probability."""
    import onnx

    model = Probabilities(fused(network)).eval()
    given = _example(2)
    names, axes = ["classes", "past", "motion"], ["goal", "waypoint"]
    try:
        torch.onnx.export(
            model,
            given,
            str(path),
            input_names=names,
            output_names=axes,
            opset_version=17,
            dynamic_axes={name: {0: "batch"} for name in names + axes},
            dynamo=False,
        )
    except Exception as error:  # later versions of torch have the new exporter alone
        print(f"the old exporter does not work here ({type(error).__name__}: {error}); trying the new one")
        batch = torch.export.Dim("batch", min=1, max=4096)
        torch.onnx.export(
            model,
            given,
            str(path),
            input_names=names,
            output_names=axes,
            opset_version=18,
            dynamo=True,
            external_data=False,
            dynamic_shapes=({0: batch},) * 3,
        )
    written = onnx.load(str(path))
    _halve(written)
    onnx.helper.set_model_props(written, facts)
    onnx.checker.check_model(written)
    onnx.save(written, str(path))
    return _difference(model, path)


def _example(count: int) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(1)
    return (
        torch.softmax(3 * torch.randn(count, 6, SIDE, SIDE), 1),
        torch.cat([torch.rand(count, 8, 2) - 0.5, torch.ones(count, 8, 1)], 2),
        torch.rand(count, 2, 2) - 0.5,
    )


def _halve(model: object) -> None:
    """Weights as float16 in the file, cast back when it is loaded: half the size, the same answers."""
    from onnx import TensorProto, helper, numpy_helper

    graph = model.graph  # type: ignore[attr-defined]
    casts = []
    for weights in graph.initializer:
        values = numpy_helper.to_array(weights)
        if values.dtype != np.float32 or values.size < 512 or values.ndim != 4:
            continue
        if not np.array_equal(values.astype(np.float16).astype(np.float32), values):
            continue  # a constant of the graph, not a weight that was rounded
        name = weights.name
        weights.CopyFrom(numpy_helper.from_array(values.astype(np.float16), name + ".half"))
        casts.append(helper.make_node("Cast", [name + ".half"], [name], to=TensorProto.FLOAT))
    nodes = list(graph.node)
    del graph.node[:]
    graph.node.extend(casts + nodes)


def _difference(model: Probabilities, path: Path) -> float:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    given = _example(5)
    with torch.no_grad():
        expected = model(*given)
    feed = {name: value.numpy() for name, value in zip(("classes", "past", "motion"), given, strict=True)}
    found = session.run(["goal", "waypoint"], feed)
    return max(float(np.abs(e.numpy() - f).max()) for e, f in zip(expected, found, strict=True))


# --- the command -----------------------------------------------------------------------------------


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m training.goalmap.train",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--samples", type=int, default=500_000)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--minutes", type=float, default=8.5, help="for everything")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "goalmap-trained")), help="a folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes that simulate")
    parser.add_argument("--batch", type=int, default=0, help="samples per step; 0: 1024 on a GPU, 64 on a CPU")
    parser.add_argument("--width", type=int, default=16, help="channels of the finest level")
    parser.add_argument("--rate", type=float, default=3e-3, help="the highest learning rate")
    parser.add_argument("--validation", type=int, default=6000, help="samples for validation")
    parser.add_argument("--keep", type=Path, help="file that holds the samples between runs")
    parser.add_argument("--quick", action="store_true", help="a few seconds, to see that everything runs")
    options = parser.parse_args(arguments)
    if options.quick:
        options.samples, options.validation, options.epochs, options.minutes, options.batch = 256, 64, 2, 5.0, 32
        options.workers, options.width = 1, 4
    return options


def samples_for(options: argparse.Namespace, clock: Clock) -> tuple[Samples, Samples]:
    """Those to train on and those to validate with; kept in a file where one is named."""
    if options.keep and options.keep.exists():
        with np.load(options.keep) as kept:
            halves = [
                {name[len(half) :]: kept[name] for name in kept.files if name.startswith(half)}
                for half in ("train.", "held.")
            ]
        return halves[0], halves[1]
    held = simulate(_HOLD_OUT, options.validation, options.workers, clock, clock.minutes * 60 * 0.1)
    made = simulate(options.seed * 1_000_000, options.samples, options.workers, clock, clock.minutes * 60 * 0.45)
    if options.keep:
        np.savez(
            options.keep,
            **{f"train.{name}": value for name, value in made.items()},
            **{f"held.{name}": value for name, value in held.items()},
        )
    return made, held


def main(arguments: list[str] | None = None) -> dict[str, object]:
    options = options_of(arguments)
    clock = Clock(options.minutes, time.monotonic())
    options.out.mkdir(parents=True, exist_ok=True)
    chosen = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(chosen if options.device == "auto" else options.device)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    made, held = samples_for(options, clock)
    simulation_s = clock.spent
    clock.say(f"{len(made['past']):,} samples to train on, {len(held['past']):,} to validate with")
    if device.type == "cpu":
        torch.set_num_threads(min(os.cpu_count() or 1, max(1, options.workers)))
    network, facts = train(load(made, device), load(held, device), options, device, clock)
    file = options.out / "goalmap.onnx"
    about = {"seed": str(options.seed), "samples": str(len(made["past"])), "torch": torch.__version__}
    gap = export(network, file, about)
    clock.say(f"{file}: {file.stat().st_size:,} bytes, probabilities differ from torch's by at most {gap:.1e}")
    if gap > 1e-4:
        raise SystemExit(f"the exported network differs from torch by {gap:.1e}")
    metrics: dict[str, object] = {
        **facts,
        "samples": len(made["past"]),
        "seed": options.seed,
        "simulation_s": round(simulation_s, 1),
        "total_s": round(clock.spent, 1),
        "parameters": parameters_of(network),
        "bytes": file.stat().st_size,
        "difference": gap,
        "device": torch.cuda.get_device_name() if device.type == "cuda" else platform.processor(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    (options.out / "metrics.json").write_text(json.dumps(metrics, indent=1))
    print(json.dumps({name: value for name, value in metrics.items() if name != "history"}))
    return metrics


if __name__ == "__main__":
    main()
