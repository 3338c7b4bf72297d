"""Numbers as adapters give them: arrays, lists, tensors on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from instar.secrets import without_secrets


def floats(values: object, what: str) -> npt.NDArray[np.float32]:
    """A copy that nobody can write to (a system may use its own array again); the error names what was given.

    >>> floats([1, 2.5], "scores").tolist()
    [1.0, 2.5]
    """
    try:
        array = np.array(values, np.float32)
    except (TypeError, ValueError) as error:
        shown = without_secrets(repr(values))
        raise ValueError(f"{what} are numbers, got {shown[:60]}{'…' * (len(shown) > 60)} ({error})") from None
    array.setflags(write=False)
    return array


def put(record: object, **values: Any) -> None:
    """Set fields of a frozen record while it is made."""
    for name, value in values.items():
        object.__setattr__(record, name, value)
