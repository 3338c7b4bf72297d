"""A search for the worst mild combination: which transformations, one after the other, break answers that none of them
breaks alone. Cases are asked round after round, and what is asked next follows from the verdicts so far."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.analysis.combinations import combined, parts_of, rule_of, sets_of, turned, turns, weakened
from instar.analysis.onlooker import Onlooker
from instar.analysis.run import Run
from instar.analysis.severities import ABSENT, Severities, severities
from instar.analysis.until import random_order
from instar.engine import Plan, bound_rules, make_plan, verdicts_of
from instar.relations import BoundRule, Rule
from instar.stats import drawn_weights, wilson
from instar.store import CombinationInfo, Store

Floats = npt.NDArray[np.float64]
Pairs = list[tuple[str, str]]
"""(rule, case)."""
Asking = Iterator[Pairs]

MEMBERS, MOST_MEMBERS = 0.25, 24
"""The share of the budget that rules may have by themselves, and of how many of them combinations are made: those that
come nearest to a violation."""
SAMPLE, LOOKED_AT = 5, 20
"""On so many cases it is looked how much a person sees, while searching and of what was found."""
TRIES, PER_COMBINATION = 3, 8
"""On how many cases a combination is tried that breaks none, and on how many one that does."""
RESERVE, EACH_SHRUNK, WITNESSES, HALVINGS = 0.4, 40, 3, 3
"""The share of the budget that is kept at the most for other cases and for shrinking, what that takes of a combination,
on how many cases it must break what it broke, and how often a parameter's way is halved."""
FIRST_ROUND, GROWTH = 8, 50
"""Questions of the first round, and after how many more there is one more in each."""
NOISE, SPREAD, OWN = 0.005, 0.02, 0.01
"""The variances of how much further combinations stray than their rules alone (severities as shares, 0.5 at the
threshold), of what rules, pairs and cases add to that, and of what a combination adds to the sum of its parts."""


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """What a search may ask and find: predictions, the visual change that a mild combination stays below (None: any),
    the most rules in one, and how many combinations it finds."""

    budget: int = 2000
    visual: float | None = 0.3
    most: int = 3
    count: int = 5


@dataclass(slots=True, eq=False)
class _Winner:
    """A combination that broke cases none of its rules breaks, and its smallest form so far."""

    members: tuple[int, ...]
    rule: BoundRule
    broken: tuple[str, ...]
    searched: int
    shrunk: BoundRule


@dataclass(slots=True, eq=False)
class Search:
    """A choice of what to ask next. It follows from the seed and from the verdicts that the run holds: a search that
    was stopped asks itself through what is stored, and goes on."""

    store: Store
    rules: Sequence[Rule]
    limits: Limits
    onlooker: Onlooker | None
    """Who sees how much is changed; None where nobody does, as of scenes."""
    picks: Literal["likely", "random"] = "likely"
    """How combinations are picked: by what is likely of them, or (to compare with) by chance."""
    used: int = 0
    winners: list[_Winner] = field(default_factory=list)
    members: list[BoundRule] = field(default_factory=list)
    weaker: dict[str, str] = field(default_factory=dict)
    """Rules that a person sees more of than the limit allows, and the weaker ones that are combined in their place."""
    held_out: list[str] = field(default_factory=list)
    searching: list[str] = field(default_factory=list)
    unreached: int = 0
    """How many cases might have been searched with, had the budget been larger."""
    tried: int = 0
    """How many combinations were asked about."""
    turning: dict[str, str] = field(default_factory=dict)
    """Weaker forms of rules that alone break a case which the rule itself does not."""
    _counted: set[tuple[str, str]] = field(default_factory=set)
    _requested: set[tuple[str, str]] = field(default_factory=set)
    _asking: Asking | None = None
    _request: Pairs | None = None
    _scores: dict[tuple[str, str], float] = field(default_factory=dict)
    _broken: set[tuple[str, str]] = field(default_factory=set)
    _judged: set[tuple[str, str]] = field(default_factory=set)
    _unreadable: set[str] = field(default_factory=set)
    _rules: dict[str, BoundRule] = field(default_factory=dict)
    """Those that were asked about, by id."""

    def __call__(self, cases: Sequence[str]) -> Mapping[str, Collection[str]]:
        self._read()
        if self._asking is None:
            self._asking = self._search(cases)
            self._request = next(self._asking, None)
        while self._request is not None:
            waiting = [key for key in self._request if not self._answered(*key)]
            if waiting:
                chosen = self._affordable(waiting)
                self._requested.update((rule, case) for case, rules in chosen.items() for rule in rules)
                return chosen
            self._request = next(self._asking, None)
        return {}

    def _affordable(self, waiting: Pairs) -> dict[str, set[str]]:
        """What the budget still has room for beside all that the folder holds, also of a search with another budget."""
        left = self.limits.budget - self.store.predictions(["status"], query=lambda rows: rows.select(pl.len())).item()
        known, chosen = set(self.store.cases(["case"])["case"]), dict[str, set[str]]()
        for rule, case in waiting:
            left -= self._cost(self._rules[rule]) + (0 if case in known else self._plan(self.rules).sources)
            known.add(case)
            if left < 0:
                break
            chosen.setdefault(case, set()).add(rule)
        return chosen

    # -- what is known

    def _read(self) -> None:
        """The verdicts that came since the last time; in the beginning, all that the run holds."""
        if not self.store.state("predictions"):
            return
        manifest = self.store.manifest()
        cases = self.store.cases(["case", "status"])
        self._unreadable = set(cases.filter(pl.col("status") != "ok")["case"])
        if self._request is None:
            rules, wanted = bound_rules(manifest.rules, manifest.system.kind), cases["case"].to_list()
        else:
            waiting = [key for key in self._request if key not in self._scores]
            rules = tuple(self._rules[name] for name in dict.fromkeys(rule for rule, _ in waiting))
            wanted = list(dict.fromkeys(case for _, case in waiting))
        if rules and wanted:
            self._take(severities(verdicts_of(self.store, rules, wanted)), Run(self.store).thresholds())

    def _take(self, matrix: Severities, limits: Mapping[str, float]) -> None:
        for row, rule in enumerate(matrix.rules):
            limit = limits[rule]
            for column in np.flatnonzero(matrix.status[row] != ABSENT).tolist():
                key, severity = (rule, matrix.cases[column]), float(matrix.severity[row, column])
                self._scores[key] = _score(severity, limit)
                if not np.isnan(severity):
                    self._judged.add(key)
                    if severity >= limit and severity > 0:
                        self._broken.add(key)

    def _answered(self, rule: str, case: str) -> bool:
        """Whether there is a verdict, or none comes: what was asked and did not come does not."""
        return (rule, case) in self._scores or case in self._unreadable or (rule, case) in self._requested

    def _breaks(self, rule: BoundRule, cases: Iterable[str]) -> bool:
        return all((rule.id, case) in self._broken for case in cases)

    def _alone(self, members: Iterable[int], case: str) -> bool:
        """Whether none of the members breaks the case by itself."""
        return not any((self.members[one].id, case) in self._broken for one in members)

    def _plan(self, rules: Sequence[Rule]) -> Plan:
        system = self.store.manifest().system
        return make_plan(bound_rules(rules, system.kind), seed=0, deterministic=system.deterministic)

    def _cost(self, rule: BoundRule) -> int:
        """How many predictions one case under this rule takes beside those of its unchanged input."""
        return sum(one.draws * one.repeats for one in self._plan([rule]).follow_ups)

    # -- asking

    def _ask(self, pairs: Iterable[tuple[BoundRule, str]], most: float) -> Asking:
        """Ask about these, as far as the budget up to `most` goes; what was asked before costs nothing."""
        fitting: Pairs = []
        for rule, case in pairs:
            new = [key for key in ((rule.id, case), ("", case)) if key not in self._counted]
            cost = sum(self._cost(rule) if key[0] else self._plan(self.rules).sources for key in new)
            if self.used + cost > most:
                break
            self.used += cost
            self._counted.update(new)
            self._rules[rule.id] = rule
            fitting.append((rule.id, case))
        if fitting:
            yield fitting

    def _search(self, cases: Sequence[str]) -> Asking:
        """All questions, in order; each waits until the ones before are answered."""
        manifest, limits = self.store.manifest(), self.limits
        order = random_order(cases, manifest.seed)
        half = -(-len(order) // 2)
        apart = self.held_out = order[half:]
        rules = [one.for_output(manifest.system.kind) for one in self.rules]
        each, source = [self._cost(one) for one in rules], self._plan(self.rules).sources
        kept = max(1, int(MEMBERS * limits.budget) // (sum(each) + source))
        self.searching, self.unreached = order[: min(kept, half)], max(0, half - kept)
        yield from self._members(rules, self.searching)
        reserve = len(apart) * source + (len(apart) * (limits.most + 1) + EACH_SHRUNK) * limits.count * max(each)
        kept_back = min(RESERVE * limits.budget, reserve)
        explorer = _Explorer(self, self.searching, manifest.seed)
        yield from explorer.explore(limits.budget - kept_back)
        self.tried, self.winners = len(explorer.trials), explorer.winners()
        together = sorted({one for winner in self.winners for one in winner.members})
        last = [*(winner.rule for winner in self.winners), *(self.members[one] for one in together)]
        yield from self._ask(((rule, case) for case in self.held_out for rule in last), limits.budget - kept_back / 4)
        yield from _together([self._shrink(winner) for winner in self.winners])

    def _members(self, rules: Sequence[BoundRule], cases: Sequence[str]) -> Asking:
        """What rules do by themselves: those that a person sees too much of in a weaker form."""
        sample, budget = cases[:SAMPLE], self.limits.budget
        needing = [one for one in rules if one.transformations[0].needs]
        yield from self._ask(((one, case) for case in sample for one in needing), budget)
        self.members = [mild for one in rules if (mild := self._mild_form(one, sample)) is not None]
        yield from self._ask(((one, case) for case in cases for one in self.members), budget)
        if len(self.members) > MOST_MEMBERS:
            means = [np.mean([self._scores.get((one.id, case), 0.0) for case in cases]) for one in self.members]
            best = sorted(np.argsort(-np.array(means), kind="stable")[:MOST_MEMBERS].tolist())
            self.members = [self.members[one] for one in best]

    def _mild_form(self, rule: BoundRule, sample: Sequence[str]) -> BoundRule | None:
        """The rule, or its strongest form of which a person sees half of what is allowed, or all of it."""
        if self.is_mild(rule, sample):
            return rule
        for most in (0.5, 1.0):  # half of the limit leaves room for another one
            for share in (0.7, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05):
                weaker = weakened(rule, share)
                if weaker is not None and self.is_mild(weaker, sample, most):
                    self.weaker[rule.left] = weaker.left
                    return weaker
        self.weaker[rule.left] = ""
        return None

    def is_mild(self, rule: BoundRule, sample: Sequence[str], share: float = 1.0) -> bool:
        """Whether a person sees less than this share of the limit, in the median over the sample."""
        if self.onlooker is None or self.limits.visual is None:
            return True
        seen = self.onlooker(rule.transformations[0], sample)
        return seen is None or seen <= share * self.limits.visual

    # -- shrinking

    def _shrink(self, winner: _Winner) -> Asking:
        """Turn parameters back, one after the other, as long as the same cases break, and none of them by a part of the
        form: a weaker rule may break what a stronger one does not, and then nothing is left that takes several."""
        cases, relation, most = winner.broken[:WITNESSES], winner.rule.relation, self.limits.budget
        members = [self.members[one] for one in winner.members]
        steps = winner.shrunk.transformations[0].steps
        for turn in turns(steps):
            low, high = 0.0, 1.0
            for _ in range(HALVINGS):
                share = (low + high) / 2
                weaker = turned(steps, turn, share)
                if weaker is None:
                    break
                rule = rule_of(weaker, relation)
                yield from self._ask(((rule, case) for case in cases), most)
                holds = self._breaks(rule, cases)
                if holds:
                    alone, *others = (rule_of(part, relation) for part in parts_of(members, weaker, turn.place))
                    of_parts = [(part, case) for part in (alone, *others) for case in cases]
                    yield from self._ask(of_parts, most)
                    breaking = [(part, case) for part, case in of_parts if (part.id, case) in self._broken]
                    holds = not breaking and all((part.id, case) in self._scores for part, case in of_parts)
                    self.turning.update({part.left: case for part, case in breaking if part is alone})
                if holds:
                    winner.shrunk, high = rule, share
                else:
                    low = share
            steps = winner.shrunk.transformations[0].steps

    def _combined(self, members: Iterable[int]) -> BoundRule:
        return combined([self.members[one] for one in members])

    def _seen(self, rule: BoundRule, cases: Sequence[str]) -> float:
        seen = None if self.onlooker is None else self.onlooker(rule.transformations[0], cases)
        return 0.0 if seen is None else seen

    # -- what came of it

    def combinations(self) -> tuple[CombinationInfo, ...]:
        """What was found: first what breaks most of the other cases that none of its rules breaks."""
        return tuple(sorted(map(self._info, self.winners), key=lambda one: (-one.alone, -one.broken, -one.hits)))

    def _info(self, winner: _Winner) -> CombinationInfo:
        rules = [winner.rule, *(self.members[one] for one in winner.members)]
        judged = [
            case
            for case in self.held_out
            if (winner.rule.id, case) in self._judged and all((one.id, case) in self._scores for one in rules)
        ]
        broken = [case for case in judged if (winner.rule.id, case) in self._broken]
        alone = [case for case in broken if self._alone(winner.members, case)]
        looker, shown = self.onlooker, (judged or winner.broken)[:LOOKED_AT]
        return CombinationInfo(
            winner.rule.id,
            tuple(one.id for one in rules[1:]),
            winner.shrunk.id,
            (*winner.broken, *alone),
            winner.searched,
            len(winner.broken),
            len(judged),
            len(broken),
            len(alone),
            None if looker is None else looker(winner.rule.transformations[0], shown),
        )


def _score(severity: float, limit: float) -> float:
    """A severity as a share: 0.5 at its threshold, 1 for ∞, 0 where there is none."""
    if np.isnan(severity):
        return 0.0
    if np.isinf(severity) or limit <= 0:
        return float(severity > 0)
    return severity / (severity + limit)


def _together(several: Sequence[Asking]) -> Asking:
    """Several lines of questions at once: in each round the next question of each."""
    open_lines = list(several)
    while open_lines:
        together: Pairs = []
        for line in list(open_lines):
            pairs = next(line, None)
            if pairs is None:
                open_lines.remove(line)
            else:
                together += pairs
        if together:
            yield together


class _Explorer:
    """Which combinations are asked about next: those that are likely to break something, by how much further than their
    members alone others with the same members and pairs strayed so far. Each question of a round is picked by another
    draw of what may be so (Thompson sampling), every other one by chance, so that what nobody knows yet is asked, too.

    What breaks a case is reduced at once to the rules that it takes, and asked about other cases. A case that a part of
    a combination breaks tells nothing of the whole, and is closed to it.
    """

    def __init__(self, search: Search, cases: Sequence[str], seed: int) -> None:
        self.search, self.cases, self.rng = search, list(cases), np.random.default_rng([seed, 1])
        members = len(search.members)
        self.sets = sets_of(search.members, search.limits.most)
        self.number = {members: one for one, members in enumerate(self.sets)}
        self.pairs = {one: 1 + members + place for place, one in enumerate(combinations(range(members), 2))}
        self.width = 1 + members + len(self.pairs)
        self.features = np.array([self._features(one) for one in self.sets]).reshape(-1, self.width)
        self.rules: dict[int, BoundRule | None] = {}
        self.trials: dict[int, list[int]] = {}
        self.settled: set[int] = set()
        self.seen: list[tuple[int, Floats, int, float]] = []
        self.open = self._open_cases()

    def _features(self, members: tuple[int, ...]) -> Floats:
        row = np.zeros(self.width)
        row[0] = 1
        row[[1 + one for one in members]] = 1
        row[[self.pairs[pair] for pair in combinations(members, 2)]] = 1
        return row

    def _open_cases(self) -> npt.NDArray[np.bool_]:
        """By set and case: whether none of its members breaks the case alone."""
        search = self.search
        alone = np.array(
            [[(one.id, case) not in search._broken for case in self.cases] for one in search.members], np.bool_
        ).reshape(len(search.members), len(self.cases))
        readable = np.array([case not in search._unreadable for case in self.cases], np.bool_)
        return np.array([alone[list(one)].all(0) & readable for one in self.sets], np.bool_)

    # -- asking

    def explore(self, most: float) -> Asking:
        search, questions = self.search, 0
        while search.used < most and (picked := self._picked(FIRST_ROUND + questions // GROWTH)):
            before = search.used
            yield from self._asking(picked, most)
            questions += len(picked)
            broken = [(one, place) for one, place in picked if self._breaks(one, place) and self.open[one, place]]
            yield from _together([self._settle(one, place, most) for one, place in broken])
            if search.used == before:
                break

    def _asking(self, picked: Sequence[tuple[int, int]], most: float) -> Asking:
        """Ask sets about cases, and learn from the answers."""
        search = self.search
        fresh = [(one, place) for one, place in picked if place not in self.trials.get(one, ())]
        rules = [(rule, self.cases[place]) for one, place in fresh if (rule := self._rule(one)) is not None]
        yield from search._ask(rules, most)
        for one, place in fresh:
            rule, case = self._rule(one), self.cases[place]
            if rule is not None and (rule.id, case) in search._counted and place not in self.trials.get(one, ()):
                self.trials.setdefault(one, []).append(place)
                self.seen.append((one, self.features[one], place, self._excess(one, rule, case)))

    def _excess(self, one: int, rule: BoundRule, case: str) -> float:
        """How much further a combination strays than the rule of it that strays furthest alone."""
        search = self.search
        alone = max(search._scores.get((search.members[each].id, case), 0.0) for each in self.sets[one])
        return max(0.0, search._scores.get((rule.id, case), 0.0) - alone)

    def _settle(self, one: int, place: int, most: float) -> Asking:
        """What of a set breaks the case, and which others that breaks; what holds it has nothing to tell of them."""
        while len(self.sets[one]) > 2:
            parts = [self.number[part] for part in combinations(self.sets[one], len(self.sets[one]) - 1)]
            yield from self._asking([(part, place) for part in parts], most)
            breaking = [part for part in parts if self._breaks(part, place)]
            if not breaking:
                break
            one = breaking[0]
        if one not in self.settled:
            self.settled.add(one)
            others = np.flatnonzero(self.open[one]).tolist()
            for places in (others[:3], others[3:PER_COMBINATION]):
                yield from self._asking([(one, other) for other in places], most)
                if sum(self._breaks(one, other) for other in self.trials.get(one, ())) < 2:
                    break  # a single case, so far: no more is spent on it
        broken = [other for other in self.trials.get(one, ()) if self._breaks(one, other)]
        for whole, members in enumerate(self.sets):
            if set(members) > set(self.sets[one]):
                self.open[whole, broken] = False

    def _breaks(self, one: int, place: int) -> bool:
        rule = self._rule(one)
        return rule is not None and (rule.id, self.cases[place]) in self.search._broken

    def _rule(self, one: int) -> BoundRule | None:
        """The rule of a set; None where a person sees too much of it."""
        if one not in self.rules:
            rule = self.search._combined(self.sets[one])
            self.rules[one] = rule if self.search.is_mild(rule, self.cases[:SAMPLE]) else None
        return self.rules[one]

    # -- picking

    def _picked(self, count: int) -> list[tuple[int, int]]:
        """Sets and places of cases for one round."""
        picked: list[tuple[int, int]] = []
        for worth, cases in self._draws(count):
            for one in np.argsort(-worth, kind="stable").tolist():
                done = [*self.trials.get(one, ()), *(place for other, place in picked if other == one)]
                places = [place for place in np.flatnonzero(self.open[one]).tolist() if place not in done]
                if places and one not in self.settled and len(done) < TRIES and self._rule(one) is not None:
                    picked.append((one, max(places, key=lambda place: cases[place])))
                    break
        return picked

    def _draws(self, count: int) -> Iterator[tuple[Floats, Floats]]:
        """What each set and each case may be worth: one draw for each question."""
        if self.search.picks == "random":
            for _ in range(count):
                yield self.rng.random(len(self.sets)), self.rng.random(len(self.cases))
            return
        known = list(self.trials)  # what a set adds to the sum of its parts can be learned where it was asked about
        column = {one: self.width + len(self.cases) + place for place, one in enumerate(known)}
        rows = np.zeros((len(self.seen), self.width + len(self.cases) + len(known)))
        for number, (one, features, place, _) in enumerate(self.seen):
            rows[number, : self.width] = features
            rows[number, self.width + place] = 1
            rows[number, column[one]] = 1
        variances = np.full(rows.shape[1], SPREAD)
        variances[0], variances[self.width + len(self.cases) :] = 1, OWN
        values = np.array([value for *_, value in self.seen])
        own = self.width + len(self.cases)
        for number, weights in enumerate(drawn_weights(rows, values, variances, NOISE, count, self.rng)):
            if number % 2:  # severities may mislead: every other question goes to any combination
                yield self.rng.random(len(self.sets)), self.rng.random(len(self.cases))
                continue
            worth = self.features @ weights[: self.width] + self.rng.normal(0, OWN**0.5, len(self.sets))
            worth[known] = self.features[known] @ weights[: self.width] + weights[own:]
            yield worth, self.rng.random(len(self.cases))  # a case that is hard need not be one that shows a fault

    def winners(self) -> list[_Winner]:
        """Those that surely break the largest share of the cases they were asked about, less the cases that a part of
        them breaks. One that holds another one is the same find."""
        search, ranked = self.search, []
        for one, places in self.trials.items():
            rule = self._rule(one)
            cases = [self.cases[place] for place in places]
            broken = tuple(self.cases[place] for place in places if self._breaks(one, place) and self.open[one, place])
            if broken and rule is not None:
                mean = float(np.mean([search._scores.get((rule.id, case), 0.0) for case in cases]))
                order = (-wilson(len(broken), len(cases))[0], len(self.sets[one]), -mean, one)
                ranked.append((order, _Winner(self.sets[one], rule, broken, len(cases), rule)))
        chosen: list[_Winner] = []
        for _, winner in sorted(ranked, key=lambda pair: pair[0]):
            if len(chosen) < search.limits.count and not any(
                set(other.members) < set(winner.members) for other in chosen
            ):
                chosen.append(winner)
        return chosen
