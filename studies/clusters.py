"""Shares of instances whose images are clusters: how often their intervals cover, and how wide they are.

`python -m studies.clusters --write` writes `studies/clusters.json`. Images are drawn with beta-binomial hits: every
image has its own rate, and the correlation of two instances of one image is what it says. The product's own functions
make the intervals. A width is the median one beside that of Clopper and Pearson's interval for the same share, made by
an oracle that knows how many independent instances the images are worth.

At most `WIDEST` of that width and at least `COVERAGE` cannot both be had everywhere: with 0 hits in 10 images of 3
instances, an upper end below 20 % misses too often if images fail as a whole (20 % of them, correlation 0.9), and
the oracle of independent instances needs 12 %. Coverage goes first; `too wide` lists the rates and
correlations at which intervals are wider, with their widths.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtri

from instar.stats import clustered_difference, clustered_interval, moments

RESULT = Path(__file__).with_suffix(".json")
Floats = npt.NDArray[np.float64]
Size = int | str
IMAGES = (10, 20, 40, 100, 300)
INSTANCES: tuple[Size, ...] = (1, 2, 3, 10, 30, "1 to 30", "mostly few")
PAIRED_INSTANCES: tuple[Size, ...] = (1, 3, 10, "mostly few")
RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
CORRELATIONS = (0.0, 0.1, 0.3, 0.6, 0.9)
COVERAGE, WIDEST = 0.94, 1.25
PAIRS = ((0.02, 0.02), (0.02, 0.1), (0.05, 0.15), (0.2, 0.2), (0.5, 0.5))
ALIKE = (0.0, 0.4, 0.95)
AGREEING = (0.0, 0.6, 0.95)


def drawn_sizes(instances: Size, shape: tuple[int, int], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Instances of each image: as many everywhere, any number from 1 to 30, or 7 on average and few in most."""
    if instances == "1 to 30":
        return rng.integers(1, 31, shape)
    if instances == "mostly few":
        return np.minimum(rng.geometric(1 / 7, shape), 30)
    return np.full(shape, instances)


def covered(
    images: int, instances: Size, rate: float, correlation: float, times: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return how often the interval of a share covers, and its median width beside the oracle's."""
    trials = drawn_sizes(instances, (images, times), rng)
    own: Floats | float = rate
    if correlation:
        heads = (1 - correlation) / correlation
        own = rng.beta(rate * heads, (1 - rate) * heads, trials.shape)
    hits = rng.binomial(trials, own)
    low, high = clustered_interval(moments(hits, trials))
    every = trials.sum(0)
    worth = every / (1 + ((trials**2).sum(0) / every - 1) * correlation)
    share = hits.sum(0) / every
    least = np.where(share > 0, betaincinv(np.maximum(share * worth, 1e-9), (1 - share) * worth + 1, 0.025), 0.0)
    most = np.where(share < 1, betaincinv(share * worth + 1, np.maximum((1 - share) * worth, 1e-9), 0.975), 1.0)
    width = float(np.median(high - low) / np.median(most - least))
    return float(((low <= rate) & (rate <= high)).mean()), width


def difference_covered(
    images: int,
    instances: Size,
    pair: tuple[float, float],
    alike: float,
    agreeing: float,
    times: int,
    rng: np.random.Generator,
) -> float:
    """Return how often the interval of the difference of two runs covers.

    An instance is a hit if a normal variable is small: `alike` is the share of it that is the image's, `agreeing` the
    share that is the same in both runs. Each run misses one instance in twenty.
    """
    sizes = drawn_sizes(instances, (times, images), rng)
    shape = (*sizes.shape, int(sizes.max()))
    there = np.arange(shape[-1]) < sizes[..., None]

    def normal(*size: int) -> npt.NDArray[np.float32]:
        return rng.standard_normal(size, np.float32)

    image, instance = normal(*sizes.shape, 1), normal(*shape)
    columns = []
    for rate in pair:
        level = np.sqrt(alike) * (np.sqrt(agreeing) * image + np.sqrt(1 - agreeing) * normal(*sizes.shape, 1))
        level = level + np.sqrt(1 - alike) * (np.sqrt(agreeing) * instance + np.sqrt(1 - agreeing) * normal(*shape))
        found = there & (rng.random(shape, np.float32) > 0.05)
        found[..., 0] = True
        columns += [(found & (level < ndtri(rate))).sum(-1), found.sum(-1)]
    _, low, high = clustered_difference(np.stack(columns, -1))
    return float(((low <= pair[1] - pair[0]) & (pair[1] - pair[0] <= high)).mean())


def shares(images: int, instances: Size, times: int) -> dict[str, object]:
    """Return what becomes of all rates and correlations: the worst of them, and which are too wide."""
    rng = np.random.default_rng([images, INSTANCES.index(instances)])
    found = {
        (rate, correlation): covered(images, instances, rate, correlation, times, rng)
        for rate, correlation in product(RATES, CORRELATIONS if instances != 1 else (0.0,))
    }
    worst = min(found, key=lambda cell: found[cell][0])
    widest = max(found, key=lambda cell: found[cell][1])
    return {
        "images": images,
        "instances": instances,
        "least coverage": round(found[worst][0], 4),
        "at rate and correlation": worst,
        "median width": round(float(np.median([width for _, width in found.values()])), 2),
        "widest": round(found[widest][1], 2),
        "widest at": widest,
        "settings": len(found),
        "too wide": {f"{rate:g}, {alike:g}": round(width, 2) for (rate, alike), (_, width) in found.items()
                     if width > WIDEST},
    }  # fmt: skip


def differences(images: int, instances: Size, times: int) -> dict[str, object]:
    """Return what becomes of all pairs of rates, correlations and agreements of two runs: the worst of them."""
    rng = np.random.default_rng([images, PAIRED_INSTANCES.index(instances)])
    found = {
        (pair, alike, agreeing): difference_covered(images, instances, pair, alike, agreeing, times, rng)
        for pair, alike, agreeing in product(PAIRS, ALIKE if instances != 1 else (0.0,), AGREEING)
    }
    worst = min(found, key=lambda cell: found[cell])
    return {
        "images": images,
        "instances": instances,
        "least coverage": round(found[worst], 4),
        "at rates, alike and agreeing": worst,
        "mean coverage": round(float(np.mean(list(found.values()))), 4),
    }


def study(times: int = 4000, pairs: int = 600) -> dict[str, object]:
    """All of it, as it is committed."""
    return {
        "shares": [shares(images, instances, times) for images, instances in product(IMAGES, INSTANCES)],
        "differences": [
            differences(images, instances, pairs) for images, instances in product(IMAGES, PAIRED_INSTANCES)
        ],
    }


def written(result: dict[str, object]) -> str:
    """JSON with one row a line."""
    parts = []
    for name, value in result.items():
        rows = ",\n".join(f"  {json.dumps(row)}" for row in value) if isinstance(value, list) else ""
        parts.append(f" {json.dumps(name)}: " + (f"[\n{rows}\n ]" if rows else json.dumps(value)))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the result beside this file")
    options = parser.parse_args(arguments)
    text = written(study())
    print(text, end="")
    if options.write:
        RESULT.write_text(text, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
