"""Families of transformations, and a transformation: a family with its values, or several in a row."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NoReturn, TypeVar, cast

import numpy as np
import xxhash

from instar.case import Input
from instar.image import Image
from instar.reading import too_many_pixels
from instar.spelling import REQUIRED, Call, Kind, Parameter, Value, bind, spell
from instar.transforms.change import Change
from instar.transforms.words import Template, in_words
from instar.warp import Resampling, Size, Warp

Form = Literal["spatial", "photometric", "general"]
Given = TypeVar("Given", bound=Input)
Needs = Mapping[str, Any]
"""What a transformation has to know of a case, by name: outputs that were found or annotated, or a pool."""
Values = Mapping[str, Any]


class NotApplicable(Exception):
    """This transformation says nothing about this case.

    The message says why and, where it helps, what to install.
    """


@dataclass(frozen=True, slots=True)
class TransformationFamily:
    """One registered transformation, with its parameters still open.

    `spatial` functions take (size, **values) and return a Warp; `photometric` ones take (pixels, **values),
    or (pixels, rng, **values) where the family is random, and return pixels of the same shape; `general`
    ones take (input, needs, rng, **values) and return an input and a Change. Spatial ones carry every input;
    others say which they take.
    """

    name: str
    room: str
    form: Form
    function: Callable[..., Any]
    parameters: tuple[Parameter, ...] = ()
    help: str = ""
    resampling: Resampling = "linear"
    needs: tuple[str, ...] = ()
    random: bool = False
    inputs: tuple[str, ...] = ("image",)
    check: Callable[..., object] | None = None
    """Raises ValueError for values that are allowed one by one, but not together."""
    words: Template = ""
    """What it does, in a few words with places for its values; empty: its name and values say it."""
    pointwise: bool = False
    """Whether it changes each pixel by itself: what a part becomes does not depend on the rest of the image."""
    device: str = ""
    """The function of `instar.tensors.operations` that does the same on a device; empty: it is done here, and sent."""

    def apply(self, source: Input, needs: Needs, rng: np.random.Generator, values: Values) -> tuple[Input, Change]:
        if self.form != "spatial" and source.kind not in self.inputs:
            kinds = " and ".join(f"{kind}s" for kind in self.inputs)
            article = "an" if source.kind[0] in "aeiou" else "a"
            raise NotApplicable(f"{self.name} changes {kinds}, and this case is {article} {source.kind}")
        missing = [need for need in self.needs if need not in needs]
        if missing:
            raise NotApplicable(f"{self.name} needs {' and '.join(missing)}, which this case does not have")
        if self.form == "spatial":
            warp = _warp(self.function, source.size, tuple(values.items()))
            if reason := too_many_pixels(*warp.target):  # said before the memory for them is taken
                raise NotApplicable(f"the follow-up would have {reason}")
            return _kept(source.warped(warp, self.resampling)), Change(warp)
        if self.form == "photometric":
            assert isinstance(source, Image)
            if self.device and (made := source.operated(self.device, rng, values)) is not None:
                return made, Change.none(source.size)
            pixels = source.pixels
            changed = self.function(*((pixels, rng) if self.random else (pixels,)), **values)
            if changed.shape != pixels.shape or changed.dtype != np.uint8:
                raise TypeError(f"{self.name} returned {changed.dtype} {changed.shape}, expected uint8 {pixels.shape}")
            return Image(changed), Change.none(source.size)
        followed, change = cast("tuple[Input, Change]", self.function(source, needs, rng, **values))
        return _kept(followed), change


@lru_cache(maxsize=1024)
def _warp(function: Callable[..., Warp], size: Size, values: tuple[tuple[str, Any], ...]) -> Warp:
    """Images of a dataset are mostly of one size: their warps are made once."""
    return function(size, **dict(values))


class UnloadedFamily(TransformationFamily):
    """A user's own transformation as a file names it, its code not loaded: it has a spelling, and makes nothing.

    `help` says why. It may be random for all that is known: the stored predictions say how many draws there are.
    """

    __slots__ = ()

    @classmethod
    def of(cls, call: Call, why: str) -> UnloadedFamily:
        positional = tuple(Parameter(f"{place}", "text") for place in range(len(call.args)))
        named = tuple(Parameter(key, "text", None) for key, _ in call.kwargs)
        return cls(call.name, "user", "general", cls.apply, positional + named, why, random=True)

    def apply(self, source: Input, needs: Needs, rng: np.random.Generator, values: Values) -> tuple[Input, Change]:
        raise NotApplicable(self.help)


def _kept(followed: Input) -> Input:
    """A follow-up that no system can answer says nothing: a scene whose person is no longer on the map."""
    try:
        followed.check()
    except ValueError:
        raise NotApplicable("the person's past was carried out of the frame") from None
    return followed


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A family with its values. Values of kind `transformation` are Transformations."""

    family: TransformationFamily
    values: Values

    @property
    def inner(self) -> tuple[Transformation, ...]:
        return tuple(v for v in self.values.values() if isinstance(v, Transformation))

    def spelled(self, *, shared: bool = True) -> str:
        """The canonical spelling; `shared=False` leaves out the parameters that do not enter the seed."""
        values: dict[str, Value] = {}
        for parameter in self.family.parameters:
            value = self.values[parameter.name]
            if isinstance(value, Transformation):
                value = Call(value.id if shared else value.seed_id)  # written as it stands
            values[parameter.name] = value
        kept = tuple(p for p in self.family.parameters if shared or not p.shared)
        return spell(self.family.name, values, kept)

    @property
    def words(self) -> str:
        """What it does, in a few words; of a family that has none, its name and values."""
        family = self.family
        name = family.name.rpartition(":")[2].replace("_", " ").replace("{", "{{").replace("}", "}}")
        return in_words(family.words or name, self.values, family.parameters)


@dataclass(frozen=True, slots=True, eq=False)
class Transformation:
    """What turns an input into a follow-up. Equal ids are equal transformations.

    >>> from instar.transforms import transformation
    >>> transformation("gamma(gamma=.50) | mirror(axis=h)").id
    'gamma(0.5) | mirror(h)'
    """

    steps: tuple[Step, ...]
    id: str = field(init=False)
    seed_id: str = field(init=False)
    """The id less the parameters that levels of a family share."""
    needs: frozenset[str] = field(init=False)
    random: bool = field(init=False)

    def __post_init__(self) -> None:
        inner = [one for step in self.steps for one in step.inner]
        needs = {need for step in self.steps for need in step.family.needs}
        for name, value in (
            ("id", " | ".join(step.spelled() for step in self.steps)),
            ("seed_id", " | ".join(step.spelled(shared=False) for step in self.steps)),
            ("needs", frozenset(needs.union(*(one.needs for one in inner)))),
            ("random", any(s.family.random for s in self.steps) or any(i.random for i in inner)),
        ):
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transformation) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __str__(self) -> str:
        return self.id

    @property
    def unloaded(self) -> frozenset[str]:
        """The functions that make it and were not loaded, by name: a file names them, the user did not."""
        own = {step.family.name for step in self.steps if isinstance(step.family, UnloadedFamily)}
        return frozenset(own.union(*(one.unloaded for step in self.steps for one in step.inner)))

    @property
    def own_code(self) -> frozenset[str]:
        """The functions and families of the user's own that make it, as `package.module:object`."""
        own = {step.family.name for step in self.steps if ":" in step.family.name}
        return frozenset(own.union(*(one.own_code for step in self.steps for one in step.inner)))

    @property
    def words(self) -> str:
        """What it does to an input, in a few words.

        >>> from instar.transforms import transformation
        >>> transformation("motion(11, 100) | mirror(h)").words
        'motion blur, 11 pixels, at 100°, then mirrored left to right'
        """
        return ", then ".join(step.words for step in self.steps)

    @property
    def photometric(self) -> bool:
        """Whether it leaves every point where it was and needs nothing but the pixels."""
        return all(s.family.form == "photometric" for s in self.steps)

    @property
    def pointwise(self) -> bool:
        """Whether it changes each pixel by itself."""
        return all(s.family.pointwise for s in self.steps)

    def __call__(self, source: Given, *, needs: Needs | None = None, seed: int = 0) -> tuple[Given, Change]:
        """The follow-up and what was done. Needs are the source's; they are carried by the change so far."""
        followed: Input = source
        change = Change.none(source.size)
        for number, step in enumerate(self.steps):
            carried: Needs = needs or {}
            if number and not change.warp.is_identity:
                carried = {name: value.warped(change.warp) for name, value in carried.items()}
            rng = np.random.default_rng([seed, number]) if self.random else NO_CHANCE
            followed, did = step.family.apply(followed, carried, rng, step.values)
            change = did if number == 0 else change.then(did)
        return cast(Given, followed), change


class _NoChance:
    """What a family that is not random gets in place of a generator, which costs more to make than many a follow-up."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # whoever looks at it, such as a debugger, draws nothing
            raise AttributeError(name)
        raise TypeError(f"rng.{name} is not for this transformation: one that draws is declared with random=True")


NO_CHANCE = cast("np.random.Generator", _NoChance())


def draw_seed(run_seed: int, case: str, transformation: Transformation | str, draw: int, *more: int) -> int:
    """The seed of a draw (and, with the repeat as one number more, of a prediction)."""
    name = transformation if isinstance(transformation, str) else transformation.seed_id
    text = "\x1f".join([str(run_seed), case, name, str(draw), *map(str, more)])
    return int(xxhash.xxh3_64_intdigest(text.encode()) >> 1)


_KINDS: dict[object, Kind] = {"float": "float", "int": "int", "str": "text", "bool": "bool"}


def family_of_function(function: Callable[..., object], name: str) -> TransformationFamily:
    """A user's plain function (pixels, **parameters) → pixels as a photometric family.

    A function with a second parameter `rng` is random, and is given a seeded generator to draw from.
    """
    parameters = []
    taken = list(inspect.signature(function).parameters.items())
    random = len(taken) > 1 and taken[1][0] == "rng"
    for key, declared in taken[1 + random :]:
        annotation = declared.annotation  # a class, or its name where annotations are not evaluated
        kind = _KINDS.get(annotation.__name__ if isinstance(annotation, type) else annotation)
        if kind is None:
            raise TypeError(f"{name}: parameter {key} must be annotated float, int, str or bool")
        default = REQUIRED if declared.default is inspect.Parameter.empty else declared.default
        parameters.append(Parameter(key, kind, default))
    return TransformationFamily(
        name, "user", "photometric", function, tuple(parameters), inspect.getdoc(function) or "", random=random
    )


_TRIES = 8


def refuse_unseeded(step: Step) -> None:
    """Raise where a user's own transformation makes another follow-up each time: nobody could make it once more, to
    draw it or to go on with a run. Tried on a small image; one that cannot change that is believed."""
    family = step.family
    if ":" not in family.name or family.form != "photometric" or family.random:
        return
    pixels = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)
    try:
        follow_ups = [np.array(family.function(pixels.copy(), **step.values)) for _ in range(_TRIES)]
    except Exception:
        return  # a row will say what it raises, with the image that it raises on
    if not all(np.array_equal(follow_ups[0], other) for other in follow_ups[1:]):
        raise ValueError(
            f"{step.spelled()} makes another follow-up each time, and nobody could make the same once more: give the "
            "function a second parameter `rng` (a numpy Generator, seeded for every image) and draw from that"
        )


def bound_step(call: Call, family: TransformationFamily, resolve: Callable[[tuple[Call, ...]], Transformation]) -> Step:
    """A call bound to its family, nested transformations resolved."""
    if isinstance(family, UnloadedFamily):
        written = (*call.args, *(value for _, value in call.kwargs))
        return Step(family, dict(zip((p.name for p in family.parameters), written, strict=True)))
    values: dict[str, Any] = dict(bind(call, family.parameters, what="transformation"))
    for parameter in family.parameters:
        if parameter.kind == "transformation":
            values[parameter.name] = resolve(values[parameter.name])
    if family.check is not None:
        family.check(**values)
    return Step(family, values)
