"""Relations: what must hold between source outputs and follow-up outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import polars as pl

from instar.outputs import Row, Schema
from instar.relations.marks import MarkedPair
from instar.relations.parts import PartSeverities
from instar.spelling import Parameter, Value, spell
from instar.transforms.words import Template, in_words

# fmt: off
VERDICT_COLUMNS: Schema = {
    "case": pl.String, "follow_up": pl.String, "target": pl.String, "severity": pl.Float64, "kind": pl.String,
    "reason": pl.String,
}
# fmt: on
"""What every judging function returns, besides its relation's own measures. A null severity is *not applicable*, or
*not judged* where the reason is `NOTHING_FOUND`."""

NOTHING_FOUND = "nothing was found in either image"
"""The reason of a pair that nobody can judge: a system that never finds anything must not be called clean."""
EMPTY = Parameter(
    "empty", "choice", "leave", choices=("leave", "keep"),
    help="nothing found in either image: leave the pair unjudged, or keep it as severity 0",
)  # fmt: skip
"""The judging option of relations between what was found in two images."""


ZONE_SHARE = Parameter(
    "zone_share",
    "float",
    0.25,
    low=0,
    high=1,
    help="the share of what the system found in the source that the background may hold; where a rule changes a "
    "background that holds more, the pair is not applicable: people or objects were painted over. 1 judges all",
)
"""An option of relations whose outputs say where things are. The engine leaves out what it excludes."""


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """All that a relation may look at: stored outputs and changes of many cases, for one relation.

    `sources` has one row per case and repeat (case, repeat, width, height and the output's columns);
    `follow_ups` one per case, follow_up, draw and repeat (with the change's columns and the output's).
    Only rows whose status is ok are here. For relations over many cases, `verdicts` holds the per-case
    verdicts of the levels instead, in the order given by `levels`.
    """

    header: Row
    cases: pl.DataFrame
    sources: pl.DataFrame
    follow_ups: pl.DataFrame
    parameters: Row
    options: Row
    verdicts: pl.DataFrame = field(default_factory=pl.DataFrame)
    levels: tuple[str, ...] = ()
    truth: Row | None = None
    """The header of the ground truth that `cases` hold, where they hold one."""


class UnusableTruth(ValueError):
    """Raised when outputs can't be compared with a ground truth of their own kind; the message says why."""


@dataclass(frozen=True, slots=True)
class Relation:
    """One registered relation.

    `parameters` are part of a rule's id and say what is to be predicted (`draws` follow-ups of a random
    transformation, `repeats` of each by a stochastic system, `sources` repeats of the source); `options`
    belong to the judging and can be asked again of the same predictions. `mapping`: what is expected is the source's
    answer carried by the change. `tests`: its measure `p` is that of a test whose rejection is a violation.
    """

    name: str
    output: str
    judge: Callable[[Evidence], pl.DataFrame]
    unit: str
    threshold: float
    grid: tuple[float, ...]
    over: Literal["case", "cases"] = "case"
    kinds: tuple[str, ...] = ()
    measures: Schema = field(default_factory=dict)
    parameters: tuple[Parameter, ...] = ()
    options: tuple[Parameter, ...] = ()
    mapping: bool = True
    tests: bool = False
    help: str = ""
    own_needs: tuple[str, ...] = ()
    """Needs that are annotated or found by the system itself in the source: those of another provider are not what the
    relation is about."""
    against_truth: Callable[[Evidence], Evidence] | None = None
    """How evidence whose sources are ground truth is put into the terms of that truth, so that the relation can judge
    answers by it; None where it cannot. Raises `UnusableTruth`, for evidence without rows too."""
    made_of: Mapping[str, str] = field(default_factory=dict)
    """Over many cases: which relation's verdicts a measure is taken from, where that is not the output kind's own."""
    parts: Callable[[Evidence], Iterator[PartSeverities]] | None = None
    """Severities of the named parts that verdicts are made of, each for itself; None where verdicts have none."""
    classes: str = ""
    """The measure that names the class which a verdict is about; empty where it is about none."""
    by_class: str = ""
    """Where it names several classes, with commas between them: the measure that has the severity of each alike."""
    forgiven: str = ""
    """The measure that is true where the judging's options would forgive nearly any other answer."""
    responds: bool = False
    """Answers must change with the input, so that there is nothing to judge where it did not change. Over many cases:
    they must change with the level; a level by itself is no rule that can be violated."""
    marked: Callable[[Row, Row, Row, Row], MarkedPair] | None = None
    """Marks the words of two answers: of a stored source and a stored follow-up, with the judging's options and the
    verdict on the pair, of which the rule, the case and mostly the kind are known."""
    meanings: Mapping[str, str] = field(default_factory=dict)
    """What kinds mean, as a clause; of those that do not say it themselves."""
    counted: Mapping[str, str] = field(default_factory=dict)
    """What several violations of a kind are called after their number, where that is not the kind itself: `omissions`,
    `of another class`."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """What the roles of its marks mean, in the order in which a legend has them."""
    units: Callable[[Row, Row], str | None] | None = None
    """Returns the unit under a judging's options for outputs with a header; None if it is `unit`."""
    words: Template = ""
    """What must hold, in a few words with places for its parameters; empty for an output kind's own equivariance."""
    title: str = ""
    """What headings call it, where its name is no word."""
    details: tuple[str, ...] = ()
    """What else was measured of a verdict, as clauses with places for measures. A clause is said where all its values
    are there and no count in it is 0; `worst` is not there where a severity is ∞."""

    @property
    def heading(self) -> str:
        """What people call it."""
        return self.title or self.name.replace("_", " ")

    def unit_under(self, options: Row, header: Row) -> str:
        """Return what severities are measured in, under these options of a judging."""
        return (self.units and self.units(options, header)) or self.unit


_COUNTS: Mapping[str, Template] = {
    "draws": "{draws:follow-up} of each input",
    "repeats": "each follow-up answered {repeats:time}",
    "sources": "each source answered {sources:time}",
}
"""How often something is done, in words: of relations with these parameters."""


@dataclass(frozen=True, slots=True, eq=False)
class BoundRelation:
    """A relation with its parameter values."""

    relation: Relation
    values: Mapping[str, Value]

    @property
    def id(self) -> str:
        return spell(self.relation.name, self.values, self.relation.parameters)

    @property
    def words(self) -> str:
        """What must hold, in a few words: parameters that are not at their default are named."""
        parameters = self.relation.parameters
        others = tuple(one for one in parameters if one.name not in _COUNTS)
        counts = [
            in_words(_COUNTS[one.name], self.values, ())
            for one in parameters
            if one.name in _COUNTS and self.values[one.name] != one.default
        ]
        return ", ".join(filter(None, (in_words(self.relation.words, self.values, others), *counts)))

    def count(self, what: Literal["draws", "repeats", "sources"]) -> int:
        """How many draws, repeats or source repeats it asks for."""
        number = self.values.get(what, 1)
        assert isinstance(number, int)
        return number
