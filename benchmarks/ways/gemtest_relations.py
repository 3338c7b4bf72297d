"""gemtest: relations made with its decorators, which pytest runs.

Images are read when their test runs (`data_loader`), as gemtest's documentation advises for images. pytest has no
plugin but gemtest, and neither cache, logging nor capture, and nothing is stored: the cheapest that gemtest can do.
`as_in_its_examples` has a relation for every rule, and so a test for every pair. `in_one_relation` returns all
follow-ups of an image from one general transformation: one test, and one verdict for all rules together.
"""

from __future__ import annotations

import os
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.ways.clock import Clock, Work
from benchmarks.ways.rules import Pixels, Points, opencv_makers, pose, severities

PATHS: list[str] = []
"""What the module of tests, which pytest imports, is to test with."""
CLOCKS: list[Clock] = []


def as_in_its_examples(paths: list[Path], out: Path, clock: Clock) -> Work:
    return _tests("gemtest_pairs.py", paths, out, clock)


def in_one_relation(paths: list[Path], out: Path, clock: Clock) -> Work:
    return _tests("gemtest_images.py", paths, out, clock)


def timed_makers() -> dict[str, Any]:
    return {rule: CLOCKS[0].making(maker) for rule, maker in opencv_makers().items()}


def loader() -> Any:
    return CLOCKS[0].reading(import_module("gemtest").load_image_resource)


def estimate(pixels: Pixels) -> Points:
    """The system under test."""
    return pose(pixels.shape[1], pixels.shape[0])


def kept(rule: str, source: Points, follow_up: Points) -> bool:
    width = round(2 * float(source[0, 0]))  # the nose is in the middle
    return bool(severities([rule], source[None], follow_up[None], width)[0] < 0.1)


def _tests(module: str, paths: list[Path], out: Path, clock: Clock) -> Work:
    PATHS[:] = [str(path) for path in paths]
    CLOCKS[:] = [clock]
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    without = [word for plugin in ("cacheprovider", "logging") for word in ("-p", f"no:{plugin}")]
    options = ["-q", "--capture=no", "-p", "gemtest", *without, "-c", os.devnull, "--rootdir", str(out.parent)]
    import_module("gemtest")
    return partial(_tested, [*options, str(Path(__file__).with_name(module))])


def _tested(words: list[str]) -> None:
    code = import_module("pytest").main(words)
    assert code == 0, f"pytest ended with {code}"
