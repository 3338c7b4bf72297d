"""The options that a run's relations leave to the judging: listed, and read from text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from instar.engine.judging import DEFAULT, Judging, stored_judging
from instar.engine.plan import bound_rules
from instar.relations import BoundRule
from instar.spelling import Parameter, Value, nearest, parse_call, spell_value
from instar.store import Store


@dataclass(frozen=True, slots=True)
class JudgingOption:
    """An option, the relations that take it, and its value in a judging."""

    parameter: Parameter
    relations: tuple[str, ...]
    value: object

    @property
    def text(self) -> str:
        """What it allows and what it is by default, in words."""
        usual = spelled_choice(self.parameter.default)
        return f"{self.parameter.allowed}; by default {usual} ({', '.join(self.relations)})"

    def json(self) -> dict[str, object]:
        parameter = self.parameter
        return {
            "name": parameter.name,
            "relations": list(self.relations),
            "allowed": parameter.allowed,
            "default": parameter.default,
            "value": self.value,
            "help": parameter.help,
        }


def spelled_choice(value: object) -> str:
    """A value as it is set; "" where none is."""
    return '""' if value in (None, "") else spell_value(value)


def refuse_options(names: Iterable[str], options: Sequence[JudgingOption]) -> None:
    """Refuse what is none of these options."""
    known = [option.parameter.name for option in options]
    for name in names:
        if name not in known:
            takes = " · ".join(f"{option.parameter.name}: {option.text}" for option in _each_once(options)) or "none"
            raise ValueError(
                f"there is no judging option {name!r} for this run{nearest(name, known) or '.'} "
                f"The options of its relations: {takes}"
            )


def judging_options(store: Store, judging: str = DEFAULT) -> list[JudgingOption]:
    """The options of a run's relations, with their values in a judging."""
    manifest = store.manifest()
    return options_of(bound_rules(manifest.rules, manifest.system.kind), stored_judging(store, judging))


def options_of(rules: Sequence[BoundRule], chosen: Judging) -> list[JudgingOption]:
    """The same of some rules, before there is a run of them."""
    bound = (rule.relation for rule in rules)
    relations = {one.relation.name: one.relation for one in bound if one is not None}
    takers: dict[Parameter, list[str]] = {}
    for name, relation in relations.items():
        for parameter in relation.options:
            takers.setdefault(parameter, []).append(name)
    return [
        JudgingOption(parameter, tuple(names), chosen.of(relations[names[0]])[parameter.name])
        for parameter, names in takers.items()
    ]


def parsed_options(store: Store, texts: Mapping[str, object]) -> dict[str, Value]:
    """The values that texts spell, by the options of the run's relations. One that is no text is itself."""
    options = judging_options(store)
    refuse_options(texts, options)
    known = {option.parameter.name: option.parameter for option in options}
    return {name: known[name].check(_value(known[name], text), "judging") for name, text in texts.items()}


def _each_once(options: Sequence[JudgingOption]) -> list[JudgingOption]:
    """Options that allow the same under one name, however each relation words what it does, as one."""
    alike: dict[Parameter, JudgingOption] = {}
    for option in options:
        parameter = replace(option.parameter, help="")
        known = alike.get(parameter)
        relations = (*known.relations, *option.relations) if known else option.relations
        alike[parameter] = replace(known or option, relations=relations)
    return list(alike.values())


def _value(parameter: Parameter, text: object) -> object:
    """A text as the parameter's kind reads it; what it cannot read stays text, which the parameter then refuses."""
    if not isinstance(text, str) or parameter.kind in ("text", "choice", "bool"):
        return text
    try:
        return dict(parse_call(f"judging(value={text})").kwargs)["value"]
    except ValueError:
        return text
