"""Any Python function as a system: `package.module:function`."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args, overload

import numpy as np

from instar.case import Input
from instar.image import Image
from instar.outputs import output_kinds
from instar.systems.alike import answers_by_shape
from instar.systems.closures import Holdings
from instar.systems.identity import Identity
from instar.systems.modules import imported_modules, own_modules
from instar.systems.settled import settled_parts
from instar.systems.system import Predict, System, content_hash, fingerprint_of, on_device, usable_device

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Batch = bool | Literal["array"]
SOME, MANY = 16, 64
"""So many inputs a batch function is given at once: on a GPU each call costs much, and each input little."""
F = TypeVar("F", bound=Callable[..., object])


@overload
def declare(function: F) -> F: ...
@overload
def declare(
    *,
    kind: str | None = None,
    version: str = "",
    weights: Paths = (),
    deterministic: bool | None = None,
    batch: Batch = False,
    takes_tensors: bool = False,
    device: str = "",
) -> Callable[[F], F]: ...
def declare(
    function: F | None = None,
    *,
    kind: str | None = None,
    version: str = "",
    weights: Paths = (),
    deterministic: bool | None = None,
    batch: Batch = False,
    takes_tensors: bool = False,
    device: str = "",
) -> F | Callable[[F], F]:
    """Say of a function what Instar cannot see: its output kind, what it reads, whether it is deterministic.

    A run is not continued when the content of a file in `weights` changed: one path or several, of files or of folders,
    relative to the current directory as for `open`. `version` should change when something does that is in no file. A
    `batch` function takes a list of arrays and returns a list; with `batch="array"` it takes images of one size as one
    array (N, H, W, 3). One that `takes_tensors` is given tensors of PyTorch in place of arrays, uint8 (H, W, 3) on its
    `device`: the first GPU, or without one the processor.

    >>> @declare(kind="poses", weights=["pose.onnx", "labels.txt"])
    ... def my_model(image): ...
    """
    paths = [weights] if isinstance(weights, str | os.PathLike) else list(weights)
    if batch not in (True, False, "array"):
        raise ValueError(
            f"@declare(batch={batch!r}); allowed are: False (one image), True (a list of images), 'array' "
            "(images of one size as one array)"
        )

    def mark(f: F) -> F:
        f.__instar__ = {  # type: ignore[attr-defined]
            "kind": kind,
            "version": version,
            "weights": {os.fspath(path): os.path.abspath(path) for path in paths},  # noqa: PTH100  (`..` stays in a link)
            "deterministic": deterministic,
            "batch": batch,
            "takes_tensors": takes_tensors,
            "device": device,
        }
        return f

    return mark if function is None else mark(function)


def function_name(function: Callable[..., object]) -> str:
    """What a callable is called: by the function in a partial, by its class for an object."""
    inner = unpacked(function)
    named = inner if hasattr(inner, "__qualname__") else type(inner)
    return f"{named.__module__}:{named.__qualname__}"


def unpacked(function: Callable[..., object]) -> Callable[..., object]:
    """The function in a partial."""
    while isinstance(function, partial):
        function = function.func
    return function


def importable(function: Callable[..., object], name: str) -> bool:
    """Whether another process gets this very object when it imports `package.module:function`."""
    module_name, _, path = name.partition(":")
    value: object = None if module_name == "__main__" else sys.modules.get(module_name)
    for part in path.split("."):
        value = getattr(value, part, None)
    return value is function or (inspect.ismethod(function) and value == function)


def from_function(function: Callable[..., object], name: str) -> System:
    """A function (H, W, 3) → output, or Scene → Forecast, as a System.

    A function with a parameter `seed` is given one, and is taken to be stochastic.
    """
    _refuse_async(function, name)
    declared = getattr(unpacked(function), "__instar__", {})
    signature = inspect.signature(function)
    seeded = "seed" in signature.parameters or "seeds" in signature.parameters
    deterministic = not seeded if declared.get("deterministic") is None else declared["deterministic"]
    batch: Batch = declared.get("batch", False)
    tensors = bool(declared.get("takes_tensors"))
    device = usable_device(declared["device"], name) if tensors else str(declared.get("device") or "")

    identity = _identity(function, name, declared, device if tensors else "")  # before it answers for the first time

    def predict(inputs: Sequence[Input], seeds: Sequence[int]) -> Sequence[object]:
        plain = [input.plain() for input in inputs]
        if batch == "array":
            return answers_by_shape(together, plain, seeds)
        if batch:
            return together(plain, seeds)
        return [function(one, seed=seed) if seeded else function(one) for one, seed in zip(plain, seeds, strict=True)]

    def together(several: object, seeds: Sequence[int]) -> list[object]:
        answers = function(several, seeds=list(seeds)) if seeded else function(several)
        return list(cast("Iterable[object]", answers))

    kind = (
        declared.get("kind")
        or _annotated(signature.return_annotation, bool(batch))
        or _probed(predict, name, device if tensors else "")
    )
    if kind not in output_kinds():
        raise ValueError(f"{name}: {kind!r} is no kind of output; there are {', '.join(output_kinds())}")
    takes = output_kinds()[kind].answers
    for option, chosen in {"takes_tensors=True": tensors, "batch='array'": batch == "array"}.items():
        if chosen and takes != "image":
            raise ValueError(f"{name}: {option} is for images; {kind} are answers to a {takes}")
    return System(
        name,
        kind,
        predict,
        fingerprint_of("function", name, *sorted(f"{part}={value}" for part, value in identity.parts.items())),
        deterministic=deterministic,
        seedable=seeded or deterministic,
        batch=(MANY if device.partition(":")[0] not in ("", "cpu") or tensors else SOME) if batch else 1,
        takes=takes,
        identity=identity,
        takes_tensors=tensors,
        device=device,
    )


def _refuse_async(function: Callable[..., object], name: str) -> None:
    """Raise for a function that returns what somebody has to await: nobody here does."""
    inner = unpacked(function)
    if inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(type(inner).__call__):
        called = name.rpartition(":")[2].rpartition(".")[2]
        raise TypeError(
            f"{name} is async, and a system is called and answers: wrap it in a function that returns "
            f"asyncio.run({called}(image)), and name that one"
        )


def _identity(function: Callable[..., object], name: str, declared: Mapping[str, Any], device: str) -> Identity:
    """What the function is made of, as far as that can be seen: the user's own modules, its code and the plain values
    that it holds where no file has them, the weights and the version that are declared, and what kind of device makes
    its tensors: a follow-up may differ by a grey level from another one's."""
    holdings = Holdings(function)
    at_top = importable(function, name)  # of a module, which says all
    objects, parts = ([], {}) if at_top else (holdings.objects, settled_parts(function, holdings.parts))
    module = name.partition(":")[0]
    files, edited = own_modules([module, *holdings.modules])
    paths = dict(declared.get("weights") or {})
    others = _weights_of_others([module, unpacked(function).__module__] if at_top else holdings.modules, paths)
    weights, sizes = _weights(others | paths, name)
    version = {"the version that you declared": str(declared["version"])} if declared.get("version") else {}
    place = {"the kind of device its tensors are made on": device.partition(":")[0]} if device else {}
    unwatched = ["other files it reads are not watched: name them in @declare(weights=…)"]
    if objects:
        names = ", ".join(objects[:4])
        unwatched.insert(0, f"what {names} may hold is not watched: change @declare(version=…) when it changes")
    if edited:
        changed = f"{', '.join(edited[:4])} changed after Python imported it"
        unwatched.append(f"{changed}, and what was imported answers: restart Python, or reload it")
    first = dict(list(files.items())[:1])  # what is shown of many parts
    return Identity({**first, **parts, **weights, **version, **place, **files}, sizes, unwatched=tuple(unwatched))


def _weights_of_others(modules: Sequence[str], own: Mapping[str, str]) -> dict[str, str]:
    """The weights that are declared in the modules a function is made of: a wrapper reads what the wrapped one reads.

    A function that declares weights of its `own` does not answer for its neighbours in the same module, which may be
    other models; nor is a file missed that only another one needs.
    """
    paths: dict[str, str] = {}
    for module in imported_modules(modules):
        if own and module.__name__ in modules:
            continue
        values = list(vars(module).values())
        values += [each for value in values if isinstance(value, type) for each in list(vars(value).values())]
        for value in values:
            declared = inspect.getattr_static(value, "__instar__", None)
            paths |= (declared.get("weights") or {}) if isinstance(declared, dict) else {}
    return {text: path for text, path in paths.items() if _files_at(path)}


def _files_at(path: str) -> list[Path]:
    """A file, or all the files in a folder."""
    place = Path(path)
    return [file for file in (sorted(place.rglob("*")) if place.is_dir() else [place]) if file.is_file()]


def _weights(paths: Mapping[str, str], name: str) -> tuple[dict[str, str], dict[str, int]]:
    """Hashes and sizes of the files that are declared; a folder is all the files in it."""
    hashes: dict[str, str] = {}
    sizes: dict[str, int] = {}
    for text, path in paths.items():
        files = _files_at(path)
        if not files:
            why = "holds no file" if Path(path).is_dir() else "is no file and no folder"
            raise FileNotFoundError(
                f"{name}: {path}, which its @declare(weights=…) names, {why}. A relative path is one of the current "
                "directory, as for `open`; beside the module it is Path(__file__).with_name(…)"
            )
        for file in files:
            part = text if file == Path(path) else f"{text.rstrip('/')}/{file.relative_to(path)}"
            state = file.stat()
            hashes[part] = _content_hash(str(file), state.st_size, state.st_mtime_ns)
            sizes[part] = state.st_size
    return hashes, sizes


@cache
def _content_hash(path: str, size: int, changed: int) -> str:
    """The hash of a large file, once in a process as long as it is not written again."""
    return content_hash(path)


def _annotated(annotation: object, batch: bool = False) -> str | None:
    """The kind that a return annotation names; a batch function's is a list of them: `list[Poses]`."""
    if batch and not isinstance(annotation, str):
        annotation = next(iter(get_args(annotation)), annotation)
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    if batch:
        text = text.partition("[")[2].removesuffix("]") or text
    last = text.split(".")[-1]
    for name, kind in output_kinds().items():
        if last in (kind.__name__, *(plain.__name__ for plain in kind.accepts)):
            return name
    return None


def _probed(predict: Predict, name: str, device: str) -> str:
    """The kind of its answer to a grey square, for a function that does not say."""
    ask = "annotate its return type (-> Poses, -> Detections, -> str …) or mark it with @instar.declare(kind=…)"
    grey: list[Input] = [Image(np.full((64, 64, 3), 127, np.uint8))]
    try:
        answer = predict(on_device(grey, device) if device else grey, [0])[0]
    except Exception as error:
        raise ValueError(
            f"{name} does not say what it returns, and failed on a 64×64 grey image "
            f"({type(error).__name__}: {error}); {ask}"
        ) from error
    kind = next((name for name, kind in output_kinds().items() if isinstance(answer, (kind, *kind.accepts))), None)
    if kind is None:
        raise ValueError(f"{name} returned {type(answer).__name__}, which is no output of Instar; {ask}")
    return kind
