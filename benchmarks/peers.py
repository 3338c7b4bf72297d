"""Instar against others on the same images, rules and system: gemtest, nrtk, and plain loops that store their results.

    python -m benchmarks.peers [--small] [--write]

Every way (`benchmarks/ways`) runs in a process of its own for 100, 1,000, 10,000 and 100,000 pairs, until more would
take too long or too much memory. Others are installed into an environment of their own, which is made where it is
missing (requirements/peers.txt) and lies in the user's cache folder; Instar runs in it, too. What a way costs above
reading each image once and making its follow-ups is in seconds of the processor, as the slope between its two longest
runs, so that starting up does not count. In small mode Instar and the loop with OpenCV run once, in this process; the
others are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import cv2
import numpy as np
import xxhash

import instar
from benchmarks.command import main
from benchmarks.figures import Absent, Figures, Row, peak_megabytes, rounded, short, size_words
from benchmarks.ways import TITLES
from benchmarks.ways.__main__ import took
from benchmarks.ways.rules import RULES
from instar.engine import default_workers
from instar.files import cache_folder

ROOT = Path(__file__).parents[1]
REQUIREMENTS = ROOT / "requirements" / "peers.txt"
SIZE = (640, 480)
PAIRS = (100, 1_000, 10_000, 100_000)
SECONDS = 150
MEGABYTES = 6_000
"""A longer run is left out where it would take more seconds of the processor, or more memory, than this."""
SMALL = {"instar": "instar in one process", "opencv": "opencv"}


def measure(small: bool = False) -> Figures:
    size, pairs = ((64, 48), (2 * len(RULES),)) if small else (SIZE, PAIRS)
    with tempfile.TemporaryDirectory() as place:
        folder = _images(Path(place) / "images", pairs[-1] // len(RULES), size)
        runs = _runs_here(Path(place), folder, pairs[0]) if small else _runs_apart(Path(place), folder)
        ways = {way: _costs(series) for way, series in runs.items()}
        if not small:
            first = next(folder.iterdir())
            levels = _output(_environment(), "benchmarks.ways.differences", str(first))
            for way in ways.keys() & levels.keys():
                ways[way]["levels"] = levels[way]
    limits = {"seconds": SECONDS, "megabytes": MEGABYTES}
    sizes = {"width": size[0], "height": size[1], "rules": len(RULES), "cores": default_workers()}
    return {**sizes, "limits": limits, "ways": ways}


def rows(figures: Figures) -> list[Row]:
    ways = figures["ways"]
    ours = ways["instar"]
    what = f"{figures['rules']} rules at {size_words(figures)}, a system that costs nothing"
    lines = [
        Row(
            f"{TITLES[way]}: {what}",
            f"{short(costs['overhead_ms'])} ms overhead per pair"
            + ("" if way == "instar" else f", {short(costs['overhead_ms'] / ours['overhead_ms'])} times Instar's")
            + f"; {short(costs['pairs_per_second'])} pairs a second; {_largest(costs)}",
        )
        for way, costs in ways.items()
        if "overhead_ms" in costs
    ]
    return [*lines, *_all_cores(ways, what)]


def _all_cores(ways: Mapping[str, Figures], what: str) -> list[Row]:
    return [
        Row(f"{TITLES[way]}: {what}", f"{short(costs['pairs_per_second'])} pairs a second; {_largest(costs)}")
        for way, costs in ways.items()
        if "overhead_ms" not in costs
    ]


def _largest(costs: Figures) -> str:
    pairs, last = list(costs["growth"].items())[-1]
    return f"{short(last['megabytes'])} MB at {int(pairs):,} pairs"


def _costs(series: Mapping[int, Figures]) -> Figures:
    """What one way costs, of its runs by number of pairs: the slope between the two longest, or the only one."""
    few, many = ([0, *series])[-2:]
    first = series.get(few, dict.fromkeys(series[many], 0.0))
    more = {name: value - first[name] for name, value in series[many].items()}
    pairs = many - few
    growth = {
        str(number): {name: run[name] for name in ("seconds", "processor_seconds", "megabytes")}
        for number, run in series.items()
    }
    costs = {
        "pairs_per_second": pairs / more["seconds"],
        "processor_ms": 1000 * more["processor_seconds"] / pairs,
        "growth": growth,
    }
    if not more["read"]:  # not timed, since several workers read at the same time
        return costs
    once = more["read_seconds"] / more["read"] * pairs / len(RULES)
    rest = more["processor_seconds"] - more["made_seconds"]
    return {
        **costs,
        "read_ms": 1000 * more["read_seconds"] / more["read"],
        "made_ms": 1000 * more["made_seconds"] / more["made"],
        "overhead_ms": 1000 * (rest - once) / pairs,
        "overhead_without_reading_ms": 1000 * (rest - more["read_seconds"]) / pairs,
    }


def _runs_here(place: Path, folder: Path, pairs: int) -> dict[str, dict[int, Figures]]:
    print(f"peers: only {' and '.join(SMALL)}; the others need {REQUIREMENTS.name}, and full size", file=sys.stderr)
    runs = {way: took(name, folder, pairs // len(RULES), place / way) for way, name in SMALL.items()}
    return {way: {pairs: {**run, "megabytes": peak_megabytes()}} for way, run in runs.items()}


def _runs_apart(place: Path, folder: Path) -> dict[str, dict[int, Figures]]:
    """By way and number of pairs. All ways in turn at one size before the next, so that a machine that is busy for a
    while is so for all of them."""
    python = _environment()
    runs: dict[str, dict[int, Figures]] = {way: {} for way in TITLES}
    going = set(runs)
    for pairs in PAIRS:
        for way in [way for way in runs if way in going]:
            out = place / "out"
            runs[way][pairs] = _output(python, "benchmarks.ways", way, str(folder), str(pairs // len(RULES)), str(out))
            print(f"  {way}, {pairs:,} pairs: {rounded(runs[way][pairs])}", file=sys.stderr, flush=True)
            shutil.rmtree(out, ignore_errors=True)
            out.with_name(f"{out.name}.clock").unlink()
            if _too_much(list(runs[way].values())):
                going.remove(way)
    return runs


def _too_much(series: list[Figures]) -> bool:
    """Whether ten times the pairs would take more seconds of the processor or more memory than is allowed."""
    last, before = series[-1], (series[-2] if len(series) > 1 else {})
    return any(
        last[name] + 10 * (last[name] - before.get(name, 0.0)) > limit
        for name, limit in (("processor_seconds", SECONDS), ("megabytes", MEGABYTES))
    )


def _output(python: Path, module: str, *words: str) -> Figures:
    """What a module prints as its last line, in an interpreter of its own, and the most memory that it had."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(Path(instar.__file__).parents[1])))}
    environment["PYTHONWARNINGS"] = "ignore"
    with tempfile.TemporaryFile("w+") as printed:
        process = subprocess.Popen([python, "-m", module, *words], env=environment, stdout=printed, stderr=printed)
        peaks: dict[int, float] = {}
        while process.poll() is None:
            peaks.update(_peaks(process.pid))
            time.sleep(0.05)
        printed.seek(0)
        text = printed.read()
    if process.returncode:
        raise RuntimeError(f"{module} {' '.join(words)} ended with {process.returncode}:\n{text[-2000:]}")
    figures: Figures = json.loads(text.splitlines()[-1])
    return {**figures, "megabytes": sum(peaks.values())}


def _peaks(pid: int) -> Iterator[tuple[int, float]]:
    """A process and all below it, with the most memory that each had so far. What two of them share counts twice."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        children = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:  # it has just ended
        return
    for line in status.splitlines():
        if line.startswith("VmHWM"):
            yield pid, int(line.split()[1]) / 1000
    for child in " ".join(children).split():
        yield from _peaks(int(child))


def _environment() -> Path:
    """The interpreter of an environment that has the others, made where it is missing.

    It sees the packages of this one, too, below its own: NumPy and OpenCV are those that Instar runs with.
    """
    key = xxhash.xxh3_64_hexdigest(f"{REQUIREMENTS.read_text('utf-8')} {sys.prefix} {sys.version}".encode())
    folder = cache_folder() / "benchmarks" / f"peers-{key}"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        print(f"peers: an environment is made in {folder}", file=sys.stderr, flush=True)
        words = [
            [sys.executable, "-m", "venv", str(folder)],
            [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "-r", str(REQUIREMENTS)],
        ]
        try:
            for command in words:
                subprocess.run(command, check=True, capture_output=True, text=True)
        except subprocess.CalledProcessError as error:
            raise Absent(f"the packages of {REQUIREMENTS}, which cannot be installed: {error.stderr[-500:]}") from None
        where = subprocess.run(
            [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        (Path(where) / "instar-runs-with.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
        (folder / "ready").touch()
    return python


def _images(folder: Path, count: int, size: tuple[int, int]) -> Path:
    """A folder of JPEG files that take as long to decode as photos. There are 50, under as many names as are needed."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(count):
        path = folder / f"{number:06d}.jpg"
        if number < 50:
            coarse = rng.integers(0, 256, (size[1] // 8, size[0] // 8, 3), np.uint8)
            cv2.imwrite(str(path), cv2.resize(coarse, size, interpolation=cv2.INTER_CUBIC))
        else:
            os.link(folder / f"{number % 50:06d}.jpg", path)
    return folder


if __name__ == "__main__":
    main("peers")
