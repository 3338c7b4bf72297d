"""Judging: the choices that turn outputs into verdicts, resolved once for everybody who needs them."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import quote

from instar.outputs import Row
from instar.relations import Relation
from instar.spelling import spell_value
from instar.store import Store

DEFAULT = "default"


def judging_id(options: Row) -> str:
    """The id of a judging: its options, spelled; `default` for none."""
    spelled = [f"{name}={spell_value(value)}" for name, value in sorted(options.items())]
    return quote(",".join(spelled), safe=",=.+ ()") if spelled else DEFAULT


@dataclass(frozen=True, slots=True)
class Judging:
    """The options that were asked for, and those of the run's suites below them.

    Whoever judges, draws or explains a verdict takes a relation's options from `of`, so that all see the same.
    """

    options: Row = field(default_factory=dict)
    suite_options: Row = field(default_factory=dict)

    @property
    def id(self) -> str:
        return judging_id(self.options)

    def of(self, relation: Relation) -> Row:
        """A relation's options: what was asked for, else the suite's, else the relation's own defaults."""
        chosen = {**self.suite_options, **self.options}
        return {p.name: p.check(chosen[p.name], "judging") if p.name in chosen else p.default for p in relation.options}


def stored_judging(store: Store, judging: str = DEFAULT) -> Judging:
    """A judging of a run by its id; the default one where verdicts were not made yet."""
    info = store.judging_info(judging)
    return Judging(info.options if info else {}, store.manifest().options)
