"""Any Python function as a system: `package.module:function`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar, cast, overload

import numpy as np

from instar.case import Input
from instar.image import Image
from instar.outputs import output_kinds
from instar.systems.sources import code_hashes
from instar.systems.system import Predict, System, fingerprint_of

F = TypeVar("F", bound=Callable[..., object])


@overload
def declare(function: F) -> F: ...
@overload
def declare(
    *, kind: str | None = None, version: str = "", deterministic: bool | None = None, batch: bool = False
) -> Callable[[F], F]: ...
def declare(
    function: F | None = None,
    *,
    kind: str | None = None,
    version: str = "",
    deterministic: bool | None = None,
    batch: bool = False,
) -> F | Callable[[F], F]:
    """Say of a function what Instar cannot see: its output kind, its version, whether it is deterministic.

    `version` should change when the weights do. A `batch` function takes a list of arrays and returns a list.

    >>> @declare(kind="poses", version="2")
    ... def my_model(image): ...
    """

    def mark(f: F) -> F:
        declared = {"kind": kind, "version": version, "deterministic": deterministic, "batch": batch}
        f.__instar__ = declared  # type: ignore[attr-defined]
        return f

    return mark if function is None else mark(function)


def from_function(function: Callable[..., object], name: str) -> System:
    """A function (H, W, 3) → output, or Scene → Forecast, as a System.

    A function with a parameter `seed` is given one, and is taken to be stochastic.
    """
    declared = getattr(function, "__instar__", {})
    signature = inspect.signature(function)
    seeded = "seed" in signature.parameters or "seeds" in signature.parameters
    deterministic = not seeded if declared.get("deterministic") is None else declared["deterministic"]
    batch = bool(declared.get("batch"))

    def predict(inputs: Sequence[Input], seeds: Sequence[int]) -> Sequence[object]:
        plain = [input.plain() for input in inputs]
        if batch:
            return list(cast("Iterable[object]", function(plain, seeds=list(seeds)) if seeded else function(plain)))
        return [function(one, seed=seed) if seeded else function(one) for one, seed in zip(plain, seeds, strict=True)]

    kind = declared.get("kind") or _annotated(signature.return_annotation) or _probed(predict, name)
    if kind not in output_kinds():
        raise ValueError(f"{name}: {kind!r} is no kind of output; there are {', '.join(output_kinds())}")
    return System(
        name,
        kind,
        predict,
        fingerprint_of("function", name, declared.get("version", ""), *code_hashes(function, name.partition(":")[0])),
        deterministic=deterministic,
        seedable=seeded or deterministic,
        batch=16 if batch else 1,
        takes=output_kinds()[kind].answers,
    )


def _annotated(annotation: object) -> str | None:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    last = text.split(".")[-1]
    for name, kind in output_kinds().items():
        if last in (kind.__name__, *(plain.__name__ for plain in kind.accepts)):
            return name
    return None


def _probed(predict: Predict, name: str) -> str:
    """The kind of its answer to a grey square, for a function that does not say."""
    ask = "annotate its return type (-> Poses, -> Detections, -> str …) or mark it with @instar.declare(kind=…)"
    try:
        answer = predict([Image(np.full((64, 64, 3), 127, np.uint8))], [0])[0]
    except Exception as error:
        raise ValueError(
            f"{name} does not say what it returns, and failed on a 64×64 grey image "
            f"({type(error).__name__}: {error}); {ask}"
        ) from error
    kind = next((name for name, kind in output_kinds().items() if isinstance(answer, (kind, *kind.accepts))), None)
    if kind is None:
        raise ValueError(f"{name} returned {type(answer).__name__}, which is no output of Instar; {ask}")
    return kind
