"""Transformations: they turn an input into a follow-up and say what they did.

Adding one is a function in its room and a line in that room's table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches
from functools import partial

from instar.registry import Lookup, NotLoaded, every, find, known_object, loaded_object
from instar.spelling import REQUIRED, Call, parse_chain
from instar.transforms import colour, insertion, noise, occlusion, quality, recorded, region, scene, spatial
from instar.transforms.change import Change, mask_of
from instar.transforms.family import (
    NotApplicable,
    Transformation,
    TransformationFamily,
    UnloadedFamily,
    bound_step,
    draw_seed,
    family_of_function,
    refuse_unseeded,
)

__all__ = [
    "Change",
    "NotApplicable",
    "Transformation",
    "TransformationFamily",
    "called_family",
    "chain",
    "draw_seed",
    "families",
    "family_named",
    "mask_of",
    "named_transformation",
    "transformation",
]

_BUILT_IN: dict[str, TransformationFamily] = {
    family.name: family
    for room in (spatial, quality, colour, region, occlusion, noise, insertion, scene, recorded)
    for family in room.FAMILIES
}


def families() -> dict[str, TransformationFamily]:
    """Every family by name: those of Instar and those of installed packages."""
    return every("transformations", TransformationFamily, _BUILT_IN)


def family_named(name: str) -> TransformationFamily:
    """A family by name, or a function of the user's own as one."""
    return called_family(Call(name), loaded_object)


def called_family(call: Call, lookup: Lookup) -> TransformationFamily:
    """The family that a call names: a registered one, or a function of the user's as `lookup` has it."""
    name = call.name
    if ":" in name:
        try:
            loaded = lookup(name)
        except NotLoaded as error:
            return UnloadedFamily.of(call, str(error))
        if isinstance(loaded, TransformationFamily):
            return replace(loaded, name=name)  # its spelling says where it is to be found
        if not callable(loaded):
            raise TypeError(f"{name} is a {type(loaded).__name__}, not a function or a TransformationFamily")
        return family_of_function(loaded, name)
    return find(
        "transformation", name, "transformations", TransformationFamily, _BUILT_IN, see="`instar rules` lists them."
    )


def _names_zone(call: Call, family: TransformationFamily) -> bool:
    """Whether the last value is a zone's name: text, where the family takes no more or no such choice.

    A value that looks like a misspelt choice is none: it shall be told so.
    """
    if family.form != "photometric" or not call.args or not isinstance(call.args[-1], str):
        return False
    rest = family.parameters[len(call.args) - 1 :]
    if any(p.default is REQUIRED and p.name not in dict(call.kwargs) for p in rest):
        return False
    if not rest or rest[0].name in dict(call.kwargs):
        return True
    return rest[0].kind == "choice" and not get_close_matches(call.args[-1], rest[0].choices, cutoff=0.75)


def chain(calls: Iterable[Call], lookup: Lookup = known_object) -> Transformation:
    """A Transformation from parsed calls; `lookup` is how functions of the user's own are had."""
    steps = []
    for call in calls:
        family = called_family(call, lookup)
        if _names_zone(call, family):
            # colour_wheel(90, hair) is short for filtered(colour_wheel(90), hair)
            inner = Call(call.name, call.args[:-1], call.kwargs)
            call, family = Call("filtered", ((inner,), call.args[-1])), _BUILT_IN["filtered"]
        step = bound_step(call, family, partial(chain, lookup=lookup))
        refuse_unseeded(step)
        for inside in step.inner:
            if not inside.photometric and not inside.unloaded:
                raise ValueError(f"{family.name} takes photometric transformations, {inside.id!r} is not one")
        steps.append(step)
    return Transformation(tuple(steps))


def transformation(text: str) -> Transformation:
    """Parse one transformation: `gamma(0.5)`, `gamma(0.5) | rotation(5)`, `filtered(greyscale, skin)`."""
    return _parsed(text, loaded_object)


def named_transformation(text: str) -> Transformation:
    """The same of a text that stands in a file: what the user did not name is not loaded, and stays a name."""
    return _parsed(text, known_object)


def _parsed(text: str, lookup: Lookup) -> Transformation:
    chains, after = parse_chain(text, what="transformation")
    if after is not None or len(chains) != 1:
        raise ValueError(f"{text!r} is a rule, not a transformation")
    return chain(chains[0], lookup)
