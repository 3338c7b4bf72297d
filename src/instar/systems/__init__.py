"""Systems: adapters to what is under test, one file each. Third-party models live only here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches

from instar.registry import every, find, loaded_object
from instar.spelling import bind, parse_call, spell
from instar.systems import chain, efficientdet, http, huggingface, landmarks, litert, mediapipe, onnx, process
from instar.systems.function import declare, from_function, function_name, unpacked
from instar.systems.identity import Identity, identities_noted, note, together
from instar.systems.models import ModelError, default_objects, default_zones, model_path, models, pull, use, verify
from instar.systems.sources import imports_noted
from instar.systems.system import AnotherVersion, MissingExtra, System, SystemFamily, fingerprint_of, hash_file

__all__ = [
    "AnotherVersion",
    "Identity",
    "MissingExtra",
    "ModelError",
    "System",
    "SystemFamily",
    "declare",
    "default_objects",
    "default_zones",
    "fingerprint_of",
    "from_function",
    "hash_file",
    "imports_noted",
    "model_path",
    "models",
    "pull",
    "system",
    "system_name",
    "systems",
    "use",
    "verify",
]

# Families only: a third-party library is imported when one of its systems is loaded.
_ADAPTERS = (mediapipe, litert, efficientdet, onnx, landmarks, chain, huggingface, http, process)
_BUILT_IN: dict[str, SystemFamily] = {family.name: family for adapter in _ADAPTERS for family in adapter.FAMILIES}


def systems() -> dict[str, SystemFamily]:
    """Every system by name: those here, those of tasks and those of installed packages."""
    return every("systems", SystemFamily, _BUILT_IN)


def _family(name: str) -> SystemFamily:
    return find("system", name, "systems", SystemFamily, _BUILT_IN, see="Your own is written package.module:function.")


def system_name(spelling: str) -> str:
    """The canonical spelling of a system, checked without loading it."""
    call = parse_call(spelling, what="system")
    if ":" in call.name:
        if call.args or call.kwargs:
            raise ValueError(f"{spelling}: a function takes no parameters here; set them in Python")
        return call.name
    family = _family(call.name)
    return spell(family.name, bind(call, family.parameters, what="system"), family.parameters)


def system(spelling: str | System | Callable[..., object]) -> System:
    """Load a system: `mediapipe-holistic(complexity=2)`, `package.module:function`, a function, a System."""
    if isinstance(spelling, System):
        return spelling
    with identities_noted() as noted:
        loaded, *besides = _loaded(spelling)
    loaded = replace(loaded, identity=together([loaded.identity, *noted], *besides))
    note(loaded.identity)
    return loaded


def _its_method(name: str, value: object) -> str:
    """What to name instead of an object: that function of its own whose name is the likeliest."""
    own = [] if type(value).__module__ == "builtins" else [each for each in dir(value) if not each.startswith("_")]
    methods = [each for each in own if callable(getattr(value, each))]
    likely = get_close_matches("predict", methods, 1, cutoff=0)
    return f"; {name}.{likely[0]} is a function of it: name that" if likely else ""


def _loaded(spelling: str | Callable[..., object]) -> tuple[System, *tuple[str, ...]]:
    """A system, and what its fingerprint covers besides files."""
    if not isinstance(spelling, str):
        return (from_function(spelling, function_name(spelling)),)
    name = system_name(spelling)
    call = parse_call(name, what="system")
    if ":" in call.name:
        with imports_noted():
            loaded = loaded_object(call.name)
        if isinstance(loaded, System):
            return loaded, f"the fingerprint {loaded.fingerprint!r} that it declares, and by nothing else"
        if not callable(loaded):
            raise TypeError(
                f"{name} is a {type(loaded).__name__}, not a function or a System{_its_method(name, loaded)}"
            )
        return (from_function(loaded, name),)
    family = _family(call.name)
    built = family.build(name, **bind(call, family.parameters, what="system"))
    if not unpacked(family.build).__module__.startswith("instar."):
        return built, "the fingerprint that its package makes"
    return built, *(("its options",) if family.parameters else ()), "its adapter in Instar"
