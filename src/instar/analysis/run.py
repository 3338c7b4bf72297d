"""A run to look at: its folder, and every question one can ask of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import polars as pl

from instar.analysis.coverage import coverage, violated_counts
from instar.analysis.rates import any_rule, by_case, curve, group_rates, noise, rates, worst_pairs
from instar.analysis.selection import costs, selected
from instar.analysis.severities import COLUMNS, Severities, group_of, severities
from instar.analysis.slices import described, slices
from instar.analysis.subjects import subject_columns
from instar.analysis.truth import classic, classic_vs_metamorphic
from instar.engine import DEFAULT, SOURCE, Outcome, bound_rules, judge
from instar.outputs.caption import Caption
from instar.outputs.forecast import Forecast
from instar.outputs.poses import Poses
from instar.relations import Relation, Rule, own_equivariance, rule
from instar.spelling import unknown
from instar.store import Manifest, Store
from instar.suites import default_suite, suite
from instar.tasks.hand_pose.analysis import HandCounts, hand_counts, hand_frames
from instar.tasks.met_pose.landmarks import Figure, landmark_table, typical_pose
from instar.tasks.meta_ic.analysis import caption_table
from instar.tasks.meta_ic.labels import label_problems
from instar.tasks.meta_ic.relations import vocabulary_of
from instar.tasks.object_relevance.analysis import object_table
from instar.tasks.traj_test.analysis import agreement, displacement, displacement_tests, map_table, preserving_table

__all__ = ["ANY", "Run", "open_run"]

ANY = "any rule"
"""The group of all rules of a relation."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run folder: predictions, verdicts and what they say. It needs the folder alone, wherever it was copied."""

    store: Store
    outcome: Outcome | None = None
    _held: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

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
        """One row per prediction: its key (case, follow_up, draw, repeat), status, change, and the output."""
        return self.store.predictions()

    # -- verdicts

    def judge(self, **options: Any) -> str:
        """Ask another question of the same predictions; returns the judging's id.

        For poses: landmarks, aggregate, normaliser, confidence, visibility, outside, space.
        """
        return judge(self.store, options)

    def _up_to_date(self, judging: str) -> None:
        held = self.store.judging_info(judging)
        if held is not None or judging == DEFAULT:
            judge(self.store, held.options if held else {})

    def verdicts(self, judging: str = DEFAULT, **options: Any) -> pl.DataFrame:
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
        self._up_to_date(judging)
        info = self.store.judging_info(judging)
        key = judging, by, group, str(info and info.parts)
        if key not in self._held:
            if group is not None and group not in self.groups(judging):
                raise unknown("landmark group of this run", group, self.groups(judging))
            parts = self.store.verdict_parts(judging, COLUMNS)
            self._held[key] = severities(parts, rules=self.manifest.rules, by=by, group=group)
        found: Severities = self._held[key]
        return found

    def groups(self, judging: str = DEFAULT) -> list[str]:
        """The landmark groups (parts) that verdicts are about, where subjects have several."""
        self._up_to_date(judging)
        found = [
            part.filter(pl.col("target").str.contains("/", literal=True)).select(group_of()).unique().to_series()
            for part in self.store.verdict_parts(judging, ["target"])
        ]
        return sorted(set(pl.concat(found))) if found else []

    # -- rules and thresholds

    def rules(self) -> pl.DataFrame:
        """One row per rule: its name (without the relation where that is the output's own), family, relation, unit."""
        own = own_equivariance(self.manifest.system.kind).relation.name if self._bound() else ""
        rows = []
        for one in self._bound():
            relation = _relation(one)
            rows.append(
                {
                    "rule": one.id,
                    "name": one.left if relation.name == own else one.id,
                    "family": " | ".join(step.family.name for step in one.transformations[0].steps),
                    "relation": relation.name,
                    "unit": relation.unit,
                    "over": relation.over,
                }
            )
        return pl.DataFrame(
            rows, schema=dict.fromkeys(("rule", "name", "family", "relation", "unit", "over"), pl.String)
        )

    def grids(self) -> dict[str, tuple[float, ...]]:
        """The thresholds that each relation is looked at with."""
        return {_relation(one).name: _relation(one).grid for one in self._bound() if _relation(one).over == "case"}

    def units(self) -> dict[str, str]:
        """What severities are measured in, by relation."""
        return {_relation(one).name: _relation(one).unit for one in self._bound()}

    def panels(self) -> list[str]:
        """What a report shows besides what it shows of every run, as the suites ask for it."""
        manifest = self.manifest
        return list(manifest.panels or default_suite(manifest.system.kind).panels)

    def thresholds(self, threshold: float | None = None) -> dict[str, float]:
        """Each rule's threshold: the one given, else the suite's, else its relation's."""
        named = self.manifest.thresholds
        found: dict[str, float] = {}
        for one in self._bound():
            relation = _relation(one)
            fixed = relation.over == "cases"  # a threshold in body lengths says nothing about a correlation
            own = named.get(one.id, named.get(one.left, named.get("*", relation.threshold)))
            found[one.id] = float(own if threshold is None or fixed else threshold)
        return found

    def alphas(self, p: float | None) -> dict[str, float]:
        """The level of significance of every rule whose relation is a test; none where p is None."""
        if p is None:
            return {}
        level = _level(p)
        return {one.id: level for one in self._bound() if _relation(one).tests}

    def families(self, relation: str | None = None) -> dict[str, list[str]]:
        """The rules of each family of transformations, without identity; of one relation, or of all."""
        mine = self.rules().filter((pl.col("family") != "identity") & (pl.col("over") == "case"))
        if relation is not None:
            mine = mine.filter(relation=relation)
        return {str(name): part["rule"].to_list() for (name,), part in mine.group_by("family", maintain_order=True)}

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
    ) -> pl.DataFrame:
        """Per family, and for the whole suite: the share of cases that violate at least one of its rules."""
        everything = {**self.families(), ANY: self._changing()}
        return group_rates(
            self.severities(judging, group=group), everything, self.thresholds(threshold), alphas=self.alphas(p)
        )

    def suite_rates(
        self, threshold: float | None = None, *, p: float | None = None, judging: str = DEFAULT
    ) -> pl.DataFrame:
        """Per suite of the run, as far as it is known by name: the share of cases that violate any of its rules."""
        mine = set(self._changing())
        sets: dict[str, list[str]] = {}
        for name in self.manifest.suites:
            with suppress(KeyError, ValueError, FileNotFoundError):  # a file that is elsewhere, or a list of rules
                bound = bound_rules(suite(name).rules, self.manifest.system.kind)
                sets[name] = [one.id for one in bound if one.id in mine]
        return group_rates(self.severities(judging), sets, self.thresholds(threshold), alphas=self.alphas(p))

    def any_rule(
        self,
        threshold: float | None = None,
        *,
        p: float | None = None,
        judging: str = DEFAULT,
        group: str | None = None,
    ) -> dict[str, Any]:
        """The share of cases that violate at least one rule (identity is none), with its 95 % interval."""
        limits = self.thresholds(threshold)
        mine = {rule: limits[rule] for rule in self._changing()}
        return any_rule(self.severities(judging, group=group), mine, alphas=self.alphas(p))

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
            chosen = {name: [self._rule(one) for one in rules] for name, rules in sets.items()}
            return self._curves(chosen, relation, grid, judging, group)
        usual = {ANY: self._changing(relation), **self.families(relation)}
        usual["identity"] = [name for kind, name in self._identity().items() if kind == relation]
        return self._curves(usual, relation, grid, judging, group)

    def _curves(
        self,
        sets: Mapping[str, Sequence[str]],
        relation: str,
        grid: Sequence[float] | None,
        judging: str,
        group: str | None,
    ) -> pl.DataFrame:
        held = self.severities(judging, group=group)
        found = [
            curve(held.only(rules), grid or self.grids()[relation]).select(pl.lit(name).alias("group"), pl.all())
            for name, rules in sets.items()
            if rules
        ]
        return pl.concat(found)

    def noise(self, judging: str = DEFAULT) -> pl.DataFrame:
        """The system's own noise, per relation, from the rule `identity`; no row where the suite has none."""
        return noise(self.severities(judging), self._identity())

    def coverage(
        self, threshold: float | None = None, *, relation: str | None = None, judging: str = DEFAULT
    ) -> pl.DataFrame:
        """How far each rule covers each other one: of the cases that violate `of`, the share that violates `by`."""
        mine = self._changing(relation)
        limits = self.thresholds(threshold)
        return coverage(self.severities(judging), {rule: limits[rule] for rule in mine})

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
        mine = self._changing(relation)
        return violated_counts(self.severities(judging).only(mine), grid or self.grids()[relation], bins, strict=strict)

    @property
    def has_truth(self) -> bool:
        """Whether cases have annotated poses, to which `classic` compares the source outputs."""
        manifest = self.manifest
        return bool(manifest.truth_kind == Poses.kind == manifest.system.kind)

    def classic(self, *, grid: Sequence[float] | None = None, judging: str = DEFAULT) -> pl.DataFrame:
        """Classic testing against ground truth beside metamorphic testing, per threshold, with precision and recall."""
        held = self.store.judging_info(judging)
        relation = own_equivariance(Poses.kind).relation.name
        mine = self._changing(relation)
        return classic_vs_metamorphic(
            classic(self.store, **(held.options if held else {})),
            self.severities(judging).only(mine),
            grid or self.grids()[relation],
        )

    def select(
        self, share: float = 1.0, *, threshold: float | None = None, judging: str = DEFAULT
    ) -> tuple[pl.DataFrame, bool]:
        """The cheapest rules that find at least this share of the failing cases; and whether that is proven.

        One row per rule, in the order in which they earn their keep: the new cases it finds, and what all so far find.
        The cost is the seconds of prediction per case that the run measured.
        """
        follow_ups = {one.id: [t.id for t in one.transformations] for one in self._bound()}
        return selected(
            self.severities(judging), self.thresholds(threshold), follow_ups, costs(self.store), share=share
        )

    def slices(
        self, *, threshold: float | None = None, rule: str | None = None, judging: str = DEFAULT
    ) -> pl.DataFrame:
        """How failing cases differ from the others: measured properties of the input and the dataset's own columns.

        Surest difference first; `p_corrected` takes into account how many questions were asked.
        """
        limits = self.thresholds(threshold)
        if rule is not None:
            chosen = self._rule(rule)
            limits = {chosen: limits[chosen]}
        return slices(self.described(), self.severities(judging), limits)

    def described(self) -> pl.DataFrame:
        """What is known of each case, one column each: what slices are made of.

        Measured properties of the input, size and place of what was found in it, zones, the dataset's own columns.
        """
        key = "described", str(self.store.state("predictions")), str(self.store.state("needs"))
        if key not in self._held:
            self._held[key] = described(self.cases(), subject_columns(self.store))
        found: pl.DataFrame = self._held[key]
        return found

    def landmarks(self, *, grid: Sequence[float] | None = None, judging: str = DEFAULT) -> pl.DataFrame:
        """How often each landmark violates each rule, per threshold; rows without a rule are all rules together."""
        held = self.store.judging_info(judging)
        relation = own_equivariance(Poses.kind).relation.name
        return landmark_table(self.store, grid or self.grids()[relation], **(held.options if held else {}))

    def figures(self) -> tuple[Figure, ...]:
        """How the run's subjects typically look, one figure per part of the skeleton: to draw landmarks on."""
        return typical_pose(self.store)

    def tables(self, *, p: float = 0.05, judging: str = DEFAULT) -> dict[str, pl.DataFrame]:
        """The tables of TrajTest for a run of forecasts.

        `preserving`: changes that move all alike (Table 3); `map`: changes of the map (Table 4); `agreement` with
        the displacement from the truth over levels of p (Figure 5) and `displacement` of the source's predictions,
        where there is a truth.
        """
        if self.manifest.system.kind != Forecast.kind:
            raise ValueError(f"{self.folder} is a run of {self.manifest.system.kind}; there are tables for forecasts")
        p = _level(p)
        verdicts = self.verdicts(judging)
        if self.manifest.truth_kind != Forecast.kind:
            return {"preserving": preserving_table(verdicts, None, p=p), "map": map_table(verdicts)}
        moved = [one.left for one in self._bound() if _relation(one).tests]
        apart = displacement(self.store, moved)
        truth = displacement_tests(apart)
        return {
            "preserving": preserving_table(verdicts, truth, p=p),
            "map": map_table(verdicts),
            "agreement": agreement(verdicts, truth),
            "displacement": apart.filter(follow_up=SOURCE).drop("follow_up", "draw"),
        }

    def objects(self, *, threshold: float | None = None, judging: str = DEFAULT) -> pl.DataFrame:
        """The tables of object relevance: per rule of `presence` how many objects and images show which outcome."""
        mine = self.rules().filter(relation="presence")["rule"].to_list()
        if not mine:
            raise ValueError(
                f"{self.folder} has no rules about the presence of objects; `instar run DETECTOR "
                "object-relevance DATASET` makes such a run"
            )
        limit = self.thresholds(threshold)[mine[0]]
        return object_table(self.verdicts(judging), mine, threshold=limit)

    def captions(self, *, threshold: float | None = None, judging: str = DEFAULT) -> pl.DataFrame:
        """The tables of MetaIC: per change how many pairs break which relation about captions, and how."""
        mine = self.rules().filter(pl.col("relation").is_in(["objects", "numbers", "verbatim"]))["rule"].to_list()
        if not mine:
            raise ValueError(
                f"{self.folder} has no rules about captions; `instar run CAPTIONER meta-ic DATASET --pool "
                "FOLDER` makes such a run"
            )
        return caption_table(self.verdicts(judging), mine, threshold=self.thresholds(threshold)[mine[0]])

    def label_problems(self, labels: Mapping[str, Sequence[str]] | None = None, *, words: str = "coco") -> pl.DataFrame:
        """Captions of people that leave out what the captioner names with and without an inserted object.

        `labels` are the captions of each case; those of the run's own dataset by default.
        """
        if self.manifest.system.kind != Caption.kind:
            raise ValueError(
                f"{self.folder} is a run of {self.manifest.system.kind}; labels are checked with a captioner's"
            )
        if labels is None:
            if self.manifest.truth_kind != Caption.kind:
                raise ValueError(f"{self.folder}: its dataset has no captions; give a dataset that has some")
            labels = {
                case: text.split("\n")
                for case, text in self.store.cases(["case", "truth_caption"]).drop_nulls("truth_caption").iter_rows()
            }
        rows = self.store.predictions(["case", "follow_up", "draw", "repeat", "status", "caption"]).filter(
            (pl.col("status") == "ok") & (pl.col("repeat") == 0)
        )
        source = rows.filter(follow_up=SOURCE).select("case", source="caption")
        said = (
            rows.filter(pl.col("follow_up") != SOURCE)
            .join(source, on="case", maintain_order="left")
            .select("case", "source", follow_up="caption")
        )
        return label_problems(said, labels, vocabulary_of(words))

    def hands(self, *, judging: str = DEFAULT, objects: bool | None = False) -> dict[str, pl.DataFrame]:
        """The measures of hand pose with their 95 % intervals, against the truth or the source's answers; and advice.

        `baselines`, `measures`, `groups`, `pck`, `fingers`, `landmarks`, `response`, `crucial` and `advice`, see
        `docs/hand-pose.md`. Hands that hold an object (the attribute `object`) are in `baselines` only, unless
        `objects` is None (all hands) or True (only those).
        """
        key = "hands", judging, objects, str(self.store.state("predictions"))
        if key not in self._held:
            self._held[key] = hand_frames(self.hand_counts(judging), objects=objects)
        found: dict[str, pl.DataFrame] = self._held[key]
        return found

    def hand_counts(self, judging: str = DEFAULT) -> HandCounts:
        """What the measures of hand pose are sums of: `hand_comparison` takes those of several runs."""
        key = "hand counts", judging, str(self.store.state("predictions"))
        if key not in self._held:
            told = self.store.judging_info(judging)
            known = described(self.cases())
            objects = known.select("case", "object" if "object" in known.columns else pl.lit(None).alias("object"))
            self._held[key] = hand_counts(self.store, objects, **(told.options if told else {}))
        found: HandCounts = self._held[key]
        return found

    def worst(
        self,
        count: int = 10,
        *,
        judging: str = DEFAULT,
        rule: str | None = None,
        case: str | None = None,
        group: str | None = None,
    ) -> pl.DataFrame:
        """The verdicts of the pairs with the highest severities, of all rules and cases or of one."""
        held = self.severities(judging, group=group)
        if rule is not None:
            held = held.only([self._rule(rule)])
        if case is not None:
            if case not in held.cases:
                raise unknown("case", case, self.cases()["case"])
            held = held.at(held.cases == case)
        return self.verdicts_of(worst_pairs(held, count, thresholds=self.thresholds()), judging=judging, group=group)

    def verdicts_of(self, pairs: pl.DataFrame, *, judging: str = DEFAULT, group: str | None = None) -> pl.DataFrame:
        """The worst verdict of each pair of a `case` and a `rule`, in their order, with all its columns."""
        keys = pairs.select("case", "rule")
        found = [part.join(keys, on=["case", "rule"], how="semi") for part in self.store.verdict_parts(judging)]
        rows = pl.concat(found, how="diagonal") if found else self.store.verdicts(judging)
        rows = rows if group is None else rows.filter(group_of() == group)
        return keys.join(by_case(rows), on=["case", "rule"], maintain_order="left").select(rows.columns)

    def over_cases(self, judging: str = DEFAULT) -> pl.DataFrame:
        """The verdicts of rules over many cases."""
        self._up_to_date(judging)
        found = [part.filter(pl.col("case").is_null()) for part in self.store.verdict_parts(judging)]
        return pl.concat(found, how="diagonal") if found else self.store.verdicts(judging)

    def unjudged(self, judging: str = DEFAULT) -> pl.DataFrame:
        """Why pairs have no severity, most frequent first: status, reason, how many pairs and rules, an example."""
        self._up_to_date(judging)
        columns = ["case", "rule", "severity", "status", "reason"]
        bare = [
            part.filter(pl.col("severity").is_null() & pl.col("case").is_not_null())
            for part in self.store.verdict_parts(judging, columns)
        ]
        return (
            pl.concat(bare or [pl.DataFrame(schema=dict.fromkeys(columns, pl.String))])
            .group_by("status", "reason")
            .agg(
                pairs=pl.len(),
                rules=pl.col("rule").n_unique(),
                case=pl.col("case").first(),
                rule=pl.col("rule").first(),
            )
            .sort("pairs", "status", "reason", descending=[True, False, False], nulls_last=True)
        )

    # -- rules, parsed

    def _bound(self) -> tuple[Rule, ...]:
        manifest = self.manifest
        return bound_rules(manifest.rules, manifest.system.kind)

    def _changing(self, relation: str | None = None) -> list[str]:
        """The rules that change something, family by family; of one relation, or of all."""
        return list(chain.from_iterable(self.families(relation).values()))

    def _identity(self) -> dict[str, str]:
        """The rule that changes nothing, by relation."""
        return dict(self.rules().filter(family="identity").select("relation", "rule").iter_rows())

    def _rule(self, text: str) -> str:
        """A rule of this run by its id, with or without its relation."""
        known = self.manifest.rules
        wanted = rule(text).id
        found = next((name for name in known if wanted in (name, name.partition(" => ")[0])), None)
        if found is None:
            raise unknown("rule of this run", wanted, known)
        return str(found)


def _relation(one: Rule) -> Relation:
    assert one.relation is not None
    return one.relation.relation


def _level(p: float) -> float:
    if not 0 < p < 1:
        raise ValueError(f"p is above 0 and below 1, got {p}")
    return p


def open_run(folder: str | Path) -> Run:
    """An existing run folder."""
    opened = Run(Store(folder))
    opened.store.manifest()
    return opened
