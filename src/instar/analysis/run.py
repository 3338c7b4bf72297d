"""A run to look at: its folder, and every question one can ask of it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar, cast

import polars as pl

from instar.analysis.answers import Answers, output_of
from instar.analysis.classes import SCHEMA as STRAYING_CLASSES
from instar.analysis.classes import class_severities, straying_classes
from instar.analysis.coverage import coverage, violated_counts
from instar.analysis.families import rules_by_suite, rules_table
from instar.analysis.kept import kept_answers, kept_conditions, kept_parts, kept_severities, kept_unjudged
from instar.analysis.parts import SCHEMA as STRAYING
from instar.analysis.parts import PartMatrix, straying_parts
from instar.analysis.rates import AnyRule, Judged, any_rule, by_case, curve, group_rates, judged_pairs, noise, rates
from instar.analysis.rejections import COLUMNS as TESTED
from instar.analysis.rejections import LEVEL, rejections
from instar.analysis.selection import costs, selected
from instar.analysis.severities import COLUMNS, Severities, group_of, severities
from instar.analysis.slices import described, slices
from instar.analysis.subjects import subject_columns
from instar.analysis.summary import summary
from instar.analysis.worst import worst_in_turn
from instar.engine import DEFAULT, SOURCE, Judging, Outcome, bound_rules, judge, stored_judging, unloaded_code
from instar.outputs import Output
from instar.registry import later_object, loaded_names, loaded_object
from instar.relations import BoundRule, named_rule
from instar.spelling import unknown
from instar.store import Manifest, Store, of_cases
from instar.suites import default_suite
from instar.suites.grid import PANEL

if TYPE_CHECKING:
    from instar.analysis.boundary import Boundary
    from instar.report.cells import Pairs

T = TypeVar("T")

CELLS = "instar.report.cells"
"""Where is written what a notebook shows of a run."""
ANY = "any rule"
"""The group of all rules of a relation."""


def searched_limits(manifest: Manifest) -> bool:
    """Whether cases were asked about single levels, to find their limits: then rates of rules are not those of all."""
    return manifest.until is not None and PANEL in manifest.panels


@dataclass(frozen=True, slots=True)
class Run:
    """A run folder: predictions, verdicts and what they say. It needs the folder alone, wherever it was copied."""

    store: Store
    outcome: Outcome | None = None
    _memo: dict[Hashable, tuple[object, object]] = field(default_factory=dict, compare=False, repr=False)

    def __repr__(self) -> str:
        return summary(self)

    def _repr_html_(self) -> str | None:
        """What a notebook shows: what was found, the rates, the worst pairs. Made by the report, which is found by its
        name: nothing here may import it."""
        page: str | None = later_object(f"{CELLS}:run_html")(self)
        return page

    @property
    def folder(self) -> Path:
        return self.store.folder

    @property
    def manifest(self) -> Manifest:
        return self.store.manifest()

    def cases(self) -> pl.DataFrame:
        """One row per case: id, path, content hash, size, truth, attributes, measured properties."""
        return self.store.cases()

    def predictions(self) -> pl.DataFrame:
        """Return one row per prediction: its key (case, follow_up, draw, repeat), status, change, and the output.

        The second predictions of violating pairs are not among them; `output(…, repeat=1)` returns one.
        """
        return self.store.predictions()

    def output(self, case: str, follow_up: str = SOURCE, *, draw: int = 0, repeat: int = 0) -> Output:
        """The answer to a case or to one of its follow-ups (`mirror(h)`), whole: boxes, landmarks, the cells of a map.

        Raises LookupError, with the reason, where the run holds none.
        """
        return output_of(self, case, follow_up, draw, repeat)

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` returns, kept on this object until the run has further predictions or needs."""
        return self._kept(key, (self.store.state("predictions"), self.store.state("needs")), make)

    def _kept(self, key: Hashable, state: object, make: Callable[[], T]) -> T:
        """What `make` returned when `state` was this, or returns now."""
        if key not in self._memo or self._memo[key][0] != state:
            self._memo[key] = state, make()
        return cast(T, self._memo[key][1])

    # -- verdicts

    def judging(self, judging: str = DEFAULT) -> Judging:
        """The options of a judging by its id."""
        return stored_judging(self.store, judging)

    def judge(self, **options: object) -> str:
        """Judge the same predictions with other options of the run's relations; returns the judging's id."""
        return judge(self.store, options)

    def _up_to_date(self, judging: str) -> None:
        if judging == DEFAULT or self.store.judging_info(judging) is not None:
            judge(self.store, self.judging(judging).options)

    def _judged_parts(self, judging: str) -> tuple[int, int] | None:
        """Which parts hold the verdicts of a judging, once they are up to date: they change with every judging anew."""
        self._up_to_date(judging)
        info = self.store.judging_info(judging)
        return info.parts if info else None

    def verdicts(self, judging: str = DEFAULT, **options: object) -> pl.DataFrame:
        """Severities, one row per case, target and rule; judged first where they are not up to date."""
        if options:
            judging = self.judge(**options)
        else:
            self._up_to_date(judging)
        return self.store.verdicts(judging)

    def severities(
        self, judging: str = DEFAULT, *, by: Literal["case", "target"] = "case", group: str | None = None
    ) -> Severities:
        """The same as a matrix of rules and cases, read part by part: for runs of any size.

        With `group` only the targets of that landmark group (`left_hand`) count.
        """
        numbers = self._judged_parts(judging)

        def make() -> Severities:
            if group is not None and group not in self.groups(judging):
                folder = shlex.quote(str(self.folder))
                see = f"A judging may have others: `instar judge {folder} --set landmarks={group}`."
                raise unknown("landmark group of this judging", group, self.groups(judging), see=see)
            if by == "case" and group is None:
                matrix = kept_severities(self, judging)
            else:
                parts = self.store.verdict_parts(judging, COLUMNS)
                matrix = severities(parts, rules=self.manifest.rules, by=by, group=group)
            return replace(matrix, looked=self.looked)

        return self.cached(("severities", judging, by, group, numbers), make)

    @property
    def looked(self) -> bool:
        """Whether what the answers were decided when to stop asking: then intervals have to hold at every look."""
        return self.manifest.until is not None and not self.searched

    @property
    def searched(self) -> bool:
        """Whether this is a search for limits."""
        return searched_limits(self.manifest)

    def groups(self, judging: str = DEFAULT) -> list[str]:
        """The landmark groups (parts) that verdicts are about, where subjects have several."""
        self._up_to_date(judging)
        names: set[str] = set()
        for part in self.store.verdict_parts(judging, ["target"]):
            grouped = part.filter(pl.col("target").str.contains("/", literal=True))
            names.update(grouped.select(group_of()).to_series().unique())
        return sorted(names)

    # -- rules and thresholds

    def bound_rules(self) -> tuple[BoundRule, ...]:
        """The rules of the run, parsed, with their relations."""
        manifest = self.manifest
        state = manifest.rules, manifest.system.kind, loaded_names()
        return self._kept("rules", state, lambda: bound_rules(manifest.rules, manifest.system.kind))

    def unloaded(self) -> list[str]:
        """The functions of others that make follow-ups of this run and were not loaded: the run names them, and the
        user did not. They are needed to draw those follow-ups, and to predict more."""
        return unloaded_code(self.bound_rules())

    def rule_id(self, text: str) -> str:
        """The id of a rule of this run, spelled with or without its relation."""
        known, named = self.manifest.rules, named_rule(text)
        own, wanted = named.for_output(self.manifest.system.kind).id, named.id
        if own in known:  # and not another relation of the same transformation
            return own
        for name in known:
            if wanted in (name, name.partition(" => ")[0]):
                return name
        raise unknown("rule of this run", wanted, known)

    def rules(self, judging: str = DEFAULT) -> pl.DataFrame:
        """One row per rule: its name (without the relation where that is the output's own), the same in a few words,
        family, relation, unit.

        The family is that of its transformation, or the zone that it changes.

        `over` is what it is judged over: one case, many cases, or one case as a level of a rule over many cases whose
        answers must change with the level. A level is no rule of its own: it counts in no headline. Nor is a
        combination that a search tried, which is a level, too: it was chosen because it breaks answers.
        """
        kind, bound, units = self.manifest.system.kind, self.bound_rules(), self.units(judging)
        search = self.manifest.search
        members = None if search is None else search.members
        return self._kept(
            ("rules", judging), (kind, bound, units, members), lambda: rules_table(kind, bound, units, members)
        )

    def grids(self) -> dict[str, tuple[float, ...]]:
        """The thresholds that each relation is looked at with."""
        relations = (one.relation.relation for one in self.bound_rules())
        return {relation.name: relation.grid for relation in relations if relation.over == "case"}

    def units(self, judging: str = DEFAULT) -> dict[str, str]:
        """What the severities of a judging are measured in, by relation."""
        options, relations = self.judging(judging), [one.relation.relation for one in self.bound_rules()]
        header = self.manifest.header
        return {relation.name: relation.unit_under(options.of(relation), header) for relation in relations}

    def panels(self) -> list[str]:
        """What a report shows besides what it shows of every run, as the suites ask for it."""
        manifest = self.manifest
        return list(manifest.panels or default_suite(manifest.system.kind, manifest.header).panels)

    def thresholds(self, threshold: float | None = None) -> dict[str, float]:
        """Each rule's threshold: this one, else the suite's, else its relation's."""
        named = self.manifest.thresholds
        limits: dict[str, float] = {}
        for one in self.bound_rules():
            relation = one.relation.relation
            fixed = relation.over == "cases"  # a threshold in body lengths says nothing about a correlation
            own = named.get(one.id, named.get(one.left, named.get("*", relation.threshold)))
            limits[one.id] = float(own if threshold is None or fixed else threshold)
        if self.manifest.search is not None:  # what it tried has the highest threshold of them
            members = {rule: limits[rule] for rule in self.manifest.search.members if rule in limits}
            limits = {
                rule: members.get(rule, max([*members.values()], default=limit)) for rule, limit in limits.items()
            }
        return limits

    def _limits(self, threshold: float | None = None, relation: str | None = None) -> dict[str, float]:
        """The same, of the rules that change something."""
        limits = self.thresholds(threshold)
        return {rule: limits[rule] for rule in self.changing_rules(relation)}

    def alphas(self, p: float | None) -> dict[str, float]:
        """The level of significance of every rule whose relation is a test; none where p is None."""
        if p is None:
            return {}
        if not 0 < p < 1:
            raise ValueError(f"p is above 0 and below 1, got {p}")
        return {one.id: p for one in self.bound_rules() if one.relation.relation.tests}

    def families(self, relation: str | None = None) -> dict[str, list[str]]:
        """The rules of each family of transformations, without identity; of one relation, or of all."""
        changing = self.rules().filter((pl.col("family") != "identity") & (pl.col("over") == "case"))
        if relation is not None:
            changing = changing.filter(relation=relation)
        return {str(name): part["rule"].to_list() for (name,), part in changing.group_by("family", maintain_order=True)}

    def changing_rules(self, relation: str | None = None) -> list[str]:
        """The rules that change something, family by family; of one relation, or of all."""
        return list(chain.from_iterable(self.families(relation).values()))

    def suites(self) -> dict[str, list[str]]:
        """The rules that change something by the suites of the run that are known by name, and those of no such."""
        manifest = self.manifest
        return rules_by_suite(manifest.suites, self.changing_rules(), manifest.system.kind)

    # -- what they say

    def rates(
        self,
        threshold: float | None = None,
        *,
        p: float | None = None,
        judging: str = DEFAULT,
        by: Literal["case", "target"] = "case",
        group: str | None = None,
    ) -> pl.DataFrame:
        """Violation rate per rule with its 95 % interval; with `p`, statistical relations by their test."""
        return rates(self.severities(judging, by=by, group=group), self.thresholds(threshold), alphas=self.alphas(p))

    def family_rates(
        self,
        threshold: float | None = None,
        *,
        p: float | None = None,
        judging: str = DEFAULT,
        group: str | None = None,
        suite: str | None = None,
    ) -> pl.DataFrame:
        """Per family, and for all together: the share of cases that violate at least one of its rules.

        With `suite`, one of `suites()`, only its rules count.
        """
        families, members = self.families(), self.changing_rules() if suite is None else self.suites()[suite]
        kept = {name: [rule for rule in rules if rule in members] for name, rules in families.items()}
        everything = {**{name: rules for name, rules in kept.items() if rules}, ANY: members}
        return group_rates(
            self.severities(judging, group=group), everything, self.thresholds(threshold), alphas=self.alphas(p)
        )

    def suite_rates(
        self, threshold: float | None = None, *, p: float | None = None, judging: str = DEFAULT
    ) -> pl.DataFrame:
        """Per suite of the run, as far as it is known by name: the share of cases that violate any of its rules."""
        return group_rates(self.severities(judging), self.suites(), self.thresholds(threshold), alphas=self.alphas(p))

    def any_rule(
        self,
        threshold: float | None = None,
        *,
        p: float | None = None,
        judging: str = DEFAULT,
        group: str | None = None,
    ) -> AnyRule:
        """The share of cases that violate at least one rule (identity is none), with its 95 % interval."""
        return any_rule(self.severities(judging, group=group), self._limits(threshold), alphas=self.alphas(p))

    def judged(self, judging: str = DEFAULT, *, group: str | None = None) -> Judged:
        """What became of the pairs, without identity: judged, nothing found in either input, not applicable, failed."""
        return judged_pairs(self.severities(judging, group=group), self.changing_rules())

    def answers(self, judging: str = DEFAULT) -> Answers:
        """What can be told from the answers alone: in how many inputs nothing counts, whether all have one answer."""
        return self.cached(("answers", judging), lambda: kept_answers(self, judging))

    def part_matrix(self, relation: str, judging: str = DEFAULT) -> PartMatrix | None:
        """Severities of the parts that a relation's verdicts are made of; None where they have none."""
        return self.cached(("parts", relation, judging), lambda: kept_parts(self, relation, judging))

    def straying_parts(self, threshold: float | None = None, *, judging: str = DEFAULT) -> pl.DataFrame:
        """Parts (landmarks) that stray surely more often than the pairs they belong to are violated, most first.

        What the median over landmarks hides: reflected ankles, a face whose sides are not exchanged, lost legs.
        """
        matrices = (self.part_matrix(relation, judging) for relation in self.grids())
        limits = self.thresholds(threshold)
        tables = [straying_parts(matrix, limits) for matrix in matrices if matrix is not None]
        return pl.concat([pl.DataFrame(schema=STRAYING), *tables])

    def class_severities(self, relation: str, judging: str = DEFAULT) -> pl.DataFrame:
        """How far each class strays in each case, under each rule of a relation; no row where it knows no classes."""
        key = "classes", relation, judging, self._judged_parts(judging)
        relations = {one.relation.relation.name: one.relation.relation for one in self.bound_rules()}
        return self.cached(key, lambda: class_severities(self, relations[relation], judging))

    def straying_classes(self, threshold: float | None = None, *, judging: str = DEFAULT) -> pl.DataFrame:
        """Classes that stray surely more often than the others, most first: `rule` is null for any of a relation."""
        limits = self.thresholds(threshold)
        tables = [straying_classes(self.class_severities(relation, judging), limits) for relation in self.grids()]
        return pl.concat([pl.DataFrame(schema=STRAYING_CLASSES), *tables])

    def tests(self, level: float = LEVEL, *, judging: str = DEFAULT, relation: str | None = None) -> pl.DataFrame:
        """Of relations that are tests, how many tests reject at this level, beside how many would by chance.

        Per rule, per family (`rule` is null) and all together; no row where no relation of the run is a test. The
        tests of all relations, or of one.
        """
        if not 0 < level < 1:
            raise ValueError(f"level is above 0 and below 1, got {level}")
        self._up_to_date(judging)
        bound = ((one.id, one.relation.relation) for one in self.bound_rules())
        relations = {name: own for name, own in bound if own.tests and relation in (None, own.name)}
        families = dict(self.rules().select("rule", "family").iter_rows())
        exact = [name for name, own in relations.items() if "p_least" in own.measures]
        parts = self.store.verdict_parts(judging, TESTED) if relations else ()
        return rejections(parts, {name: families[name] for name in relations}, exact, level)

    def curves(
        self,
        relation: str,
        *,
        sets: Mapping[str, Sequence[str]] | None = None,
        grid: Sequence[float] | None = None,
        judging: str = DEFAULT,
        group: str | None = None,
    ) -> pl.DataFrame:
        """The share of cases that violate at least one rule against the threshold: per family, all together, identity.

        One row per set of rules and threshold. `identity`, where the suite has it, is the system's own noise. `sets`
        asks for others, of rules with or without their relation: `{"grey or mirrored": ["greyscale", "mirror(h)"]}`.
        """
        if sets is not None:
            chosen: Mapping[str, Sequence[str]] = {name: [self.rule_id(one) for one in sets[name]] for name in sets}
        else:
            identity = [name for own, name in self._identity().items() if own == relation]
            chosen = {ANY: self.changing_rules(relation), **self.families(relation), "identity": identity}
        matrix = self.severities(judging, group=group)
        thresholds = grid or self.grids()[relation]
        return pl.concat(
            curve(matrix.only(rules), thresholds).select(pl.lit(name).alias("group"), pl.all())
            for name, rules in chosen.items()
            if rules
        )

    def noise(self, judging: str = DEFAULT) -> pl.DataFrame:
        """The system's own noise, per relation, from the rule `identity`; no row where the suite has none."""
        return noise(self.severities(judging), self._identity())

    def coverage(
        self, threshold: float | None = None, *, relation: str | None = None, judging: str = DEFAULT
    ) -> pl.DataFrame:
        """How far each rule covers each other one: of the cases that violate `of`, the share that violates `by`."""
        return coverage(self.severities(judging), self._limits(threshold, relation))

    def violated_counts(
        self,
        relation: str,
        *,
        grid: Sequence[float] | None = None,
        bins: Sequence[tuple[int, int]] | None = None,
        strict: bool = False,
        judging: str = DEFAULT,
    ) -> pl.DataFrame:
        """How many cases violate how many of a relation's rules (without identity), for each threshold."""
        matrix = self.severities(judging).only(self.changing_rules(relation))
        return violated_counts(matrix, grid or self.grids()[relation], bins, strict=strict)

    def select(
        self, share: float = 1.0, *, threshold: float | None = None, judging: str = DEFAULT
    ) -> tuple[pl.DataFrame, bool]:
        """The cheapest rules that find at least this share of the failing cases; and whether that is proven.

        One row per rule, in the order in which they earn their keep: the new cases it finds, and what all so far find.
        The cost is the seconds of prediction per case that the run measured.
        """
        follow_ups = {one.id: [t.id for t in one.transformations] for one in self.bound_rules()}
        limits = self._limits(threshold)
        return selected(self.severities(judging), limits, follow_ups, costs(self.store), share=share)

    def slices(
        self, *, threshold: float | None = None, rule: str | None = None, judging: str = DEFAULT
    ) -> pl.DataFrame:
        """How failing cases differ from the others: measured properties of the input and the dataset's own columns.

        Surest difference first; `p_corrected` takes into account how many questions were asked.
        """
        limits = self._limits(threshold)
        if rule is not None:
            chosen = self.rule_id(rule)
            limits = {chosen: self.thresholds(threshold)[chosen]}
        return slices(self.described(), self.severities(judging), limits)

    def described(self) -> pl.DataFrame:
        """What is known of each case, one column each: what slices are made of.

        Measured properties of the input, size and place of what was found in it, zones, the dataset's own columns.
        """
        return self.cached("described", lambda: described(self.cases(), subject_columns(self)))

    def worst(
        self,
        count: int = 10,
        *,
        threshold: float | None = None,
        p: float | None = None,
        judging: str = DEFAULT,
        rule: str | None = None,
        case: str | None = None,
        group: str | None = None,
    ) -> pl.DataFrame:
        """The verdicts of the worst pairs, of all rules that change something and all cases, or of one.

        What violates its rule comes first, as the column `violated` says; ∞ and finite severities alternate, and the
        rules take turns, so that no rule and no case stands before all others.
        """
        others = self.rules().filter(pl.col("over") != "level")["rule"].to_list()
        chosen = (self.changing_rules() or others) if rule is None else [self.rule_id(rule)]
        matrix = self.severities(judging, group=group).only(chosen)
        if case is not None:
            if case not in matrix.cases:
                raise unknown("case", case, self.cases()["case"])
            matrix = matrix.at(matrix.cases == case)
        families = dict(self.rules().select("rule", "family").iter_rows())
        limits, alphas = self.thresholds(threshold), self.alphas(p)
        pairs = worst_in_turn(matrix, count, limits, families=families, alphas=alphas)
        return self.verdicts_of(pairs, judging=judging, group=group).with_columns(pairs["violated"])

    def pairs(
        self,
        verdicts: pl.DataFrame | int = 6,
        *,
        threshold: float | None = None,
        judging: str = DEFAULT,
        dataset: str | Path | None = None,
    ) -> Pairs:
        """So many of the worst pairs, or those of some rows of `worst()` or `verdicts()`, drawn: a notebook shows them.

        `dataset` says where the images are now, if they are no longer where they were.
        """
        drawn: Pairs = later_object(f"{CELLS}:pairs")(
            self, verdicts, threshold=threshold, judging=judging, dataset=dataset
        )
        return drawn

    def verdicts_of(self, pairs: pl.DataFrame, *, judging: str = DEFAULT, group: str | None = None) -> pl.DataFrame:
        """The worst verdict of each pair of a `case` and a `rule`, in their order, with all its columns."""
        keys = pairs.select("case", "rule")
        rows = self.store.verdicts(judging, of_cases(keys["case"])).join(keys, on=["case", "rule"], how="semi")
        rows = rows if group is None else rows.filter(group_of() == group)
        return keys.join(by_case(rows), on=["case", "rule"], maintain_order="left").select(rows.columns)

    def over_cases(self, judging: str = DEFAULT) -> pl.DataFrame:
        """The verdicts of rules over many cases."""
        self._up_to_date(judging)
        return self.store.verdicts(judging, pl.col("case").is_null())

    def boundary(self, threshold: float | None = None, *, judging: str = DEFAULT) -> Boundary:
        """The limits that a search found: how far each case can be changed before its answer breaks."""
        from instar.analysis.boundary import boundary_of

        return boundary_of(self, threshold=threshold, judging=judging)

    def unjudged(self, judging: str = DEFAULT) -> pl.DataFrame:
        """Why pairs have no severity, most frequent first: status, reason, how many pairs and rules, an example.

        A pair of which any target was judged is not among them; nor are pairs of identity, which count in no rate.
        """
        key = "unjudged", judging, self._judged_parts(judging)
        return self.cached(key, lambda: kept_unjudged(self, judging))

    def conditions(self, judging: str = DEFAULT) -> pl.DataFrame:
        """Count the judged cases that meet the condition of their rule: a crop that cuts no hand tests no cut hand.

        Returns one row per rule for which a suite of this run declares a condition and which judged a case: `rule`,
        `condition` (`cut`: the border of the image cuts something that was found), `judged` and `met` (numbers of
        cases), and `absent`: fewer than 3 cases or less than 5 % of them meet the condition, so that the rule says
        nothing about it.
        """
        key = "conditions", judging, self._judged_parts(judging)
        return self.cached(key, lambda: kept_conditions(self, judging))

    def _identity(self) -> dict[str, str]:
        """The rule that changes nothing, by relation."""
        return dict(self.rules().filter(family="identity").select("relation", "rule").iter_rows())


def open_run(folder: str | Path, *, trust: bool = False) -> Run:
    """An existing run folder. Nothing that it names is loaded, unless you `trust` it: then its own code is imported."""
    opened = Run(Store(folder))
    opened.store.manifest()
    if trust:
        for name in opened.unloaded():
            loaded_object(name)
    return opened
