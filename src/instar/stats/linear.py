"""What is likely of the weights of a sum, by what was seen of it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def drawn_weights(
    features: Floats, values: Floats, variances: Floats, noise: float, count: int, rng: np.random.Generator
) -> Floats:
    """Draws (count, d) from what is known of the weights w in values = features @ w + noise, Bayesian: before anything
    is seen, weights are normal about 0 with these variances, and so is the noise with its own.

    >>> rng = np.random.default_rng(0)
    >>> seen = drawn_weights(np.ones((400, 1)), np.full(400, 0.5), np.ones(1), 0.1, 1000, rng)
    >>> unseen = drawn_weights(np.ones((0, 1)), np.zeros(0), np.ones(1), 0.1, 1000, rng)
    >>> round(float(seen.mean()), 2), bool(seen.std() < 0.05 < 0.9 < unseen.std())
    (0.5, True)
    """
    precision = features.T @ features / noise + np.diag(1 / variances)
    inverse = np.linalg.inv(np.linalg.cholesky(precision))
    middle = inverse @ (features.T @ values / noise)
    chance = rng.standard_normal((len(variances), count))
    return np.asarray(((middle[:, None] + chance).T) @ inverse)
