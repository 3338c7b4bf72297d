"""System: what is under test. It answers inputs with outputs."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from instar.case import Input
from instar.image import Image
from instar.outputs import Output, output_kind
from instar.outputs.limits import within_limits
from instar.spelling import Parameter
from instar.systems.identity import Identity, note
from instar.systems.sources import LOADED

Predict = Callable[[Sequence[Any], Sequence[int]], Sequence[object]]


class MissingExtra(ImportError):
    """Something that must be installed or pulled first; the message says how."""


class AnotherVersion(BaseException):
    """A system is no longer the one that was loaded; the message says what changed.

    It is about the run and not about an input: nothing that turns an input's `Exception` into a row may turn this into
    one.
    """


def end_copy(owner: int) -> None:
    """End this process if it is a copy that a system forked, and that came back from it instead of exiting.

    It would go on with our work, and answer everything a second time.
    """
    if os.getpid() != owner:
        try:
            os.write(2, b"Instar ended a process that the system forked: it came back instead of exiting\n")
        finally:  # also where nobody can hear it any more
            os._exit(1)


@dataclass(frozen=True, slots=True, eq=False)
class System:
    """A loaded system.

    `predict(inputs, seeds)` takes inputs of any sizes (all images, or all scenes: what it `takes`) and one seed
    each, and returns one answer each: an output of `kind`, or what that kind accepts. A deterministic system
    answers the same input the same way each time (repeats collapse to one); one that is not `seedable` cannot be
    made to repeat itself. `batch` is how many inputs it likes at once. `identity` says what the fingerprint covers.
    One that `takes_tensors` is given images that lie on its `device`, a name as PyTorch has it: `plain()` of each is a
    uint8 tensor (H, W, 3) in RGB order.
    """

    name: str
    kind: str
    predict: Predict
    fingerprint: str
    deterministic: bool = True
    seedable: bool = True
    batch: int = 1
    takes: str = "image"
    close: Callable[[], None] = field(default=lambda: None)
    identity: Identity = field(default_factory=Identity)
    takes_tensors: bool = False
    device: str = ""

    def tested(self) -> System:
        """The system as it is tested: answers of a kind that has no rules of its own are taken for another kind's."""
        kind = output_kind(self.kind).tested_as
        return self if kind is None else replace(self, kind=kind)

    def placed(self, inputs: Sequence[Input]) -> list[Input]:
        """The inputs where the system takes them: for one that takes tensors on its device, all of them made."""
        return on_device(inputs, self.device) if self.takes_tensors else list(inputs)

    def answer(self, inputs: Sequence[Input], seeds: Sequence[int]) -> list[Output | Exception]:
        """The answers, checked; rubbish becomes the exception that describes it."""
        for input in inputs:
            if (kind := getattr(input, "kind", type(input).__name__)) != self.takes:
                array = "; an array of pixels becomes an image by instar.Image(array)" if kind == "ndarray" else ""
                raise TypeError(f"{self.name} takes a {self.takes}, this is a {kind}{array}")
        owner = os.getpid()
        try:
            answers = list(self.predict(self.placed(inputs), seeds))
        finally:
            end_copy(owner)
        if len(answers) != len(inputs):
            raise ValueError(f"{self.name} was given {len(inputs)} inputs and returned {len(answers)} answers")
        output = output_kind(self.kind)
        checked: list[Output | Exception] = []
        for answer, input in zip(answers, inputs, strict=True):
            try:
                checked.append(within_limits(output.accept(answer, input)))
            except (TypeError, ValueError) as error:
                checked.append(error)
        return checked


def on_device(inputs: Sequence[Input], device: str) -> list[Input]:
    """Images on a device: those that lie here are sent, and follow-ups that nobody wanted yet are made together."""
    from instar.tensors.image import TensorImage, make

    def sent(input: Input) -> Input:
        image: Image | None = TensorImage.of(input, device) if isinstance(input, Image) else None
        return input if image is None else image

    placed = [sent(input) for input in inputs]
    make(placed)
    return placed


def gpu_in_use() -> bool:
    """Whether PyTorch has begun to use a GPU in this process. It is not imported for that."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return bool(getattr(cuda, "is_initialized", bool)())


def page_locked(size: int) -> npt.NDArray[np.uint8]:
    """Memory that PyTorch's GPU fetches by itself: what lies there is sent several times faster. It is ordinary memory
    where the machine lets nobody lock so much."""
    import torch

    try:
        memory: npt.NDArray[np.uint8] = torch.empty(size, dtype=torch.uint8, pin_memory=True).numpy()
    except RuntimeError:
        return np.empty(size, np.uint8)
    return memory


def usable_device(device: str, name: str) -> str:
    """The device of a system's tensors: the one it names, else the first GPU or, without one, the processor."""
    torch = imported("torch", "torch", "PyTorch", f"{name}, which takes tensors,")
    device = device or ("cuda:0" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(
            f"{name}: device={device!r} cannot be used ({reason}); leave it out for the first GPU or, without one, the "
            "processor"
        ) from None
    return device


@dataclass(frozen=True, slots=True)
class SystemFamily:
    """A registered system, not loaded yet: `build` is called with its name and parameter values."""

    name: str
    kind: str
    build: Callable[..., System]
    parameters: tuple[Parameter, ...] = ()
    help: str = ""
    extra: str = ""


def fingerprint_of(*parts: object) -> str:
    """A short hash of what determines a system's answers: adapter version, configuration, weights."""
    return str(xxhash.xxh3_128_hexdigest("\x1f".join(map(str, parts)).encode()))[:16]


def hash_file(path: str) -> str:
    """The hash of a file's content. A run knows by it which file changed, where a fingerprint did."""
    digest = content_hash(path)
    note(Identity({path: digest}, {path: Path(path).stat().st_size}))
    return digest


def content_hash(path: str) -> str:
    """The hash of a file's content, read piece by piece."""
    if Path(path).exists() and not Path(path).is_file():
        raise ValueError(f"{path}: not a regular file")  # a pipe would be waited for
    with open(path, "rb") as file:  # noqa: PTH123  (a path or a package resource's name)
        LOADED[path] = digest = hashlib.file_digest(file, xxhash.xxh3_128).hexdigest()
        return digest


def one_by_one(answer: Callable[[Any], object]) -> Predict:
    """How a system predicts that answers one input at a time, and needs no seed for it."""
    return lambda inputs, seeds: [answer(input) for input in inputs]


def imported(module: str, extra: str, called: str = "", owner: str = "this system") -> Any:
    """A library, imported late; MissingExtra says what to do where that fails."""
    try:
        return import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        if find_spec(library) is not None:
            name = library.replace("_", "-")
            raise MissingExtra(f"{name} is installed but cannot be imported: {error}") from error
        raise MissingExtra(f"{owner} needs {called or library}: pip install 'instar[{extra}]'") from None
