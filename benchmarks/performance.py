"""docs/performance.md: its tables and the plan of a paper's experiment are made of the stored results.

    python -m benchmarks.performance

`python -m benchmarks --write` does the same after every measurement, and a test says whether the page is up to date.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.figures import percentage, short
from benchmarks.ways import TITLES

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
BEGIN = "<!-- {name}: from here on `python -m benchmarks.performance` makes this page. -->"
END = "<!-- {name}: up to here. -->"

IMAGES = 55_775
"""PHOENIX's dev frames, as the paper of MET-POSE counts them."""
RULES = 122
"""Configurations in its Table I, besides identity."""
MACHINE_CORES = 16
"""Of the machine with the GPU, and of each machine where there are 256 cores."""
CORES = (1, 16, 256)

ALONE = 0.9
"""The share of a core that a process has at least on a machine that does nothing else."""

Results = Mapping[str, Mapping[str, Any]]


def write(results: Results) -> None:
    PAGE.write_text(page(PAGE.read_text("utf-8"), results), "utf-8")


def page(text: str, results: Results) -> str:
    """The page with its tables made anew; the prose around them stays."""
    parts: dict[str, tuple[Callable[[Results], list[str]], set[str]]] = {
        "peers": (peers, {"peers"}),
        "plan": (plan, {"overhead", "throughput", "transforms", "judge", "predictors", "gpu"}),
    }
    for name, (lines, needed) in parts.items():
        before, begin, rest = text.partition(BEGIN.format(name=name))
        _, end, after = rest.partition(END.format(name=name))
        if not begin or not end:
            raise ValueError(f"{PAGE} has to have the lines {BEGIN.format(name=name)} and {END.format(name=name)}")
        missing = sorted(needed - results.keys())
        made = lines(results) if not missing else [f"Not measured yet: {', '.join(missing)}."]
        text = f"{before}{begin}\n\n" + "\n".join(made) + f"\n\n{end}{after}"
    return text


def peers(results: Results) -> list[str]:
    """What was measured of each way, then how it grows."""
    result = results["peers"]
    figures = result["figures"]
    ways = figures["ways"]
    where = f"{result['machine']}, Python {result['python']}, Instar {result['instar']}, {result['date']}"
    size = f"{figures['width']}×{figures['height']}"
    return [
        f"Measured on {where}: {figures['rules']} rules at {size}.{_shared(ways['opencv'])}",
        "",
        *_costs(ways),
        "",
        *_verdict(ways),
        "",
        *_growth(ways, figures["limits"]),
    ]


def _shared(loop: Mapping[str, Any]) -> str:
    """A warning where others used the machine: a loop in one process should have a core to itself."""
    longest = list(loop["growth"].values())[-1]
    share = longest["processor_seconds"] / longest["seconds"]
    if share > ALONE:
        return ""
    return (
        f" **Others used the machine**: the loop with OpenCV had {percentage(share)} of a core, so that pairs a second "
        "by the clock on the wall say nothing. Times of the processor are disturbed less."
    )


def _costs(ways: Mapping[str, Any]) -> list[str]:
    lines = [
        "| way | overhead per pair | of Instar's | the same without reading again | of Instar's | making a follow-up "
        "| processor time per pair | pairs a second |",
        "|---|---|---|---|---|---|---|---|",
    ]
    ours = ways["instar"]
    for way, costs in ways.items():
        cells = ["–"] * 5
        if "overhead_ms" in costs:
            cells = []
            for name in ("overhead_ms", "overhead_without_reading_ms"):
                cells += [f"{short(costs[name])} ms", f"{short(costs[name] / ours[name])}×"]
            cells.append(f"{short(costs['made_ms'])} ms")
        cells += [f"{short(costs['processor_ms'])} ms", short(costs["pairs_per_second"])]
        lines.append(f"| {TITLES[way]} | {' | '.join(cells)} |")
    return lines


def _verdict(ways: Mapping[str, Any]) -> list[str]:
    ours = ways["instar"]
    times = [
        [short(ways[way][name] / ours[name]) for way in ("gemtest", "nrtk")]
        for name in ("overhead_ms", "overhead_without_reading_ms")
    ]
    loop = ways["albumentations"]
    share = ours["processor_ms"] / loop["processor_ms"]
    speed = ways["instar on all cores"]["pairs_per_second"] / loop["pairs_per_second"]
    by_default = f" With all cores, as it runs by default, it is {short(speed)} times as fast as that loop."
    if _shared(ways["opencv"]):
        by_default = ""
    made = ours["made_ms"] - loop["made_ms"]
    rest = ours["processor_ms"] - loop["processor_ms"] - made
    levels = {way: costs["levels"] for way, costs in ways.items() if "levels" in costs}
    equal = ", ".join(f"{way} {number}" for way, number in levels.items())
    return [
        f"gemtest's overhead is {times[0][0]} times Instar's, and nrtk's {times[0][1]} times; {times[1][0]} and "
        f"{times[1][1]} times where all images are in memory already. Against the loop with albumentations, Instar "
        f"takes {short(share)} times as much of a processor, {short(made)} ms per pair of it in making follow-ups and "
        f"{short(rest)} ms in the rest.{by_default}",
        "",
        f"Follow-ups differ from Instar's by at most so many grey levels of 255: {equal}. gemtest makes them with "
        "OpenCV.",
    ]


def _growth(ways: Mapping[str, Any], limits: Mapping[str, float]) -> list[str]:
    sizes = list(ways["instar"]["growth"])
    lines = ["| way | " + " | ".join(f"{int(size):,} pairs" for size in sizes) + " |", "|---|" + "---|" * len(sizes)]
    for way, costs in ways.items():
        cells = [
            f"{short(run['processor_seconds'])} s, {short(run['megabytes'])} MB" for run in costs["growth"].values()
        ]
        cells += ["stopped"] * (len(sizes) - len(cells))
        lines.append(f"| {TITLES[way]} | {' | '.join(cells)} |")
    note = (
        f"Seconds are of the processor. *Stopped*: more than {limits['seconds']} s or {limits['megabytes']:,} MB were "
        "to be expected of it."
    )
    return [*lines, "", note]


def plan(results: Results) -> list[str]:
    """How long a paper's experiment takes, from what single steps take."""
    figures = {name: result["figures"] for name, result in results.items()}
    inputs = RULES + 1
    overhead = figures["overhead"]["overhead_ms_per_pair"]
    answer = answer_ms(figures["throughput"], figures["overhead"])
    made = figures["transforms"]["rules_together_ms"]
    image = inputs * (answer + overhead) + made
    judging = IMAGES * RULES / figures["judge"]["one_subject"]["verdicts_per_second"]
    names = {cores: f"{cores} core{'s' if cores > 1 else ''}" for cores in CORES}
    names[CORES[-1]] += f": {CORES[-1] // MACHINE_CORES} machines, a shard each"
    return [
        f"PHOENIX dev × {RULES} rules: {IMAGES:,} images, {IMAGES * RULES:,} pairs, {IMAGES * inputs:,} predictions.",
        "",
        "| machine | system | how long |",
        "|---|---|---|",
        *(f"| {name} | MediaPipe Holistic | {_duration(IMAGES * image / 1000 / n)} |" for n, name in names.items()),
        *_on_a_gpu(figures["gpu"], figures["predictors"], inputs),
        "",
        f"* With Holistic an image takes {short(image, 3)} ms of a core: {inputs} answers of {short(answer)} ms, "
        f"{short(made, 3)} ms for all follow-ups, {short(inputs * overhead)} ms for the run itself.",
        f"* Then judging takes {_duration(judging)} on one core, one subject per image.",
        *_gpu_notes(figures["gpu"], figures["predictors"]),
    ]


def answer_ms(throughput: Mapping[str, Any], overhead: Mapping[str, Any]) -> float:
    """What a core takes for one answer of Holistic: the whole of a run, less reading, making and the run itself."""
    whole = 1000 * throughput["workers"] / throughput["pairs_per_second"]
    return float(whole - overhead["read_and_transform_ms_per_pair"] - overhead["overhead_ms_per_pair"])


def _on_a_gpu(gpu: Mapping[str, Any], predictors: Mapping[str, Any], inputs: int) -> list[str]:
    way, speed = _fastest(predictors)
    seconds = max(IMAGES * _made_ms(gpu) / 1000, IMAGES * inputs / speed)
    device = IMAGES * (gpu["suite_ms"] + gpu["described_ms"]) / 1000
    return [
        f"| one H200, {MACHINE_CORES} cores that make follow-ups | a detector of a YOLO-nano's size, {way} | "
        f"{_duration(seconds)} |",
        f"| one H200 that makes follow-ups, too | any that takes tensors | {_duration(device)}, and the system's own "
        "time |",
    ]


def _gpu_notes(gpu: Mapping[str, Any], predictors: Mapping[str, Any]) -> list[str]:
    return [
        f"* With the detector a run is as fast as the slower of two: {short(_fastest(predictors)[1])} pairs a second "
        f"as measured at 640×480, and {short(_made_ms(gpu))} ms per image in which {MACHINE_CORES} cores make all "
        "follow-ups and send them.",
        f"* On the H200 follow-ups take {short(gpu['suite_ms'])} ms per image, after {short(gpu['described_ms'])} ms "
        "in which Python says what they are.",
    ]


def _fastest(predictors: Mapping[str, Any]) -> tuple[str, float]:
    way, speed = max(predictors["pairs_per_second"].items(), key=lambda item: item[1])
    return way, speed


def _made_ms(gpu: Mapping[str, Any]) -> float:
    return float(gpu["cpu_core_ms"] / MACHINE_CORES + gpu["upload_ms"])


def _duration(seconds: float) -> str:
    """In the unit that a person would use."""
    for unit, length, most in (("s", 1, 120), ("min", 60, 120), ("h", 3600, 48)):
        if seconds / length < most:
            return f"{short(seconds / length)} {unit}"
    return f"{short(seconds / 86_400)} days"


if __name__ == "__main__":
    from benchmarks.page import stored_results

    write(stored_results())
