"""What the pages show: the gallery and one case."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import polars as pl
from starlette.exceptions import HTTPException

from instar.engine import DEFAULT
from instar.relations import relations
from instar.report.marks import marked_pairs
from instar.report.rebuild import is_silent, source_answer
from instar.report.sentences import detail_words
from instar.report.targets import target_names
from instar.report.words import amount, distinct_names, landmark_words
from instar.spelling import nearest
from instar.store import MOST_NOTE, Row, Store
from instar.viewer.index import COLUMNS, OK, Index, Pairs, RuleFacts
from instar.viewer.marks import (
    CHOICES,
    mark_at,
    mark_codes,
    mark_counts,
    marks_of,
    others_at,
    pair_places,
    unfiltered,
    why_not,
)
from instar.viewer.page import Page, ShownCase, case_links
from instar.viewer.pictures import Picture, Pictures, Side
from instar.viewer.query import ALL, SORTS, STATES, Filters, Matches, address, matches
from instar.viewer.watch import Watched

PAGE = 48
MOST_NAMED = 200_000
"""In a run with more verdicts cards do not say what a verdict is about: its name is looked up among all of them."""
SHARED = ("run", "judging", "threshold", "group")
"""What a link to another page takes along."""
Places = npt.NDArray[np.int64]
"""Places of pairs in an index."""


@dataclass(frozen=True, eq=False)
class Viewer:
    """The runs that are looked at, and the pictures drawn of them."""

    runs: tuple[Watched, ...]
    pictures: Pictures = field(default_factory=Pictures)
    pages: Mapping[str, Page] = field(default_factory=dict)
    token: str = ""
    """What a request that marks a pair must bring; empty where none can."""

    def run(self, name: str) -> Watched:
        """The run that addresses or pages call so; without a name the first one."""
        run = next((run for run in self.runs if name in (run.name, "")), None)
        if run is None:
            names = self.names()
            run = next((run for run in self.runs if name == names[run.name]), None)
            if run is None:
                raise HTTPException(404, f"There is no run {name!r} here.")
        return run

    def filters(self, query: Mapping[str, str]) -> Filters:
        """What an address asks for, of a run that is there."""
        filters = Filters.read(query)
        return replace(filters, run=self.run(filters.run).name)

    def index(self, filters: Filters) -> Index:
        return self.run(filters.run).index(filters.judging)

    def names(self) -> dict[str, str]:
        """What runs are called on pages, by their names in addresses: by their own or their
        system's, and by folder where that is not
        enough."""
        called = [manifest.called if (manifest := run.manifest) else "" for run in self.runs]
        names = distinct_names(called, [run.name for run in self.runs])
        return {run.name: name for run, name in zip(self.runs, names, strict=True)}


def picture(viewer: Viewer, filters: Filters, name: str, side: Side, width: int) -> Picture:
    """One side of a pair; the case and the rule must be among the run's own."""
    run, index = viewer.run(filters.run), viewer.index(filters)
    number = index.case_number(name)
    if number is None:
        raise HTTPException(404, "there is no such case in this run")
    verdict = None
    if filters.rule:
        known = known_rule(index, filters.rule)
        verdict = verdict_of(index, filters.group, number, known)
        if verdict is None:
            raise HTTPException(404, "this case has no verdict under this rule")
        if verdict["severity"] is None and side == "source":
            verdict = None
    elif side == "follow-up":
        raise HTTPException(404, "a follow-up has a rule")
    return viewer.pictures.picture(
        run.store,
        index.manifest,
        index.version,
        case=name,
        side=side,
        width=width,
        verdict=verdict,
        judging=index.judging,
        dataset=run.dataset,
    )


def spelled_rule(index: Index, text: str) -> str:
    """The id of the run's rule that a text spells, as commands read it; the text itself where it spells none."""
    if any(text == rule.id for rule in index.rules):
        return text
    try:
        return index.run.rule_id(text)
    except (KeyError, ValueError):
        return text


def known_rule(index: Index, name: str) -> RuleFacts:
    """The rule of that id, or that is spelled so."""
    rule = next((rule for rule in index.rules if rule.id == spelled_rule(index, name)), None)
    if rule is None:
        raise HTTPException(
            404, f"This run has no rule {name!r}{nearest(name, [each.id for each in index.rules]) or '.'}"
        )
    return rule


def verdict_of(index: Index, group: str, number: int, rule: RuleFacts) -> Row | None:
    """The verdict of a rule on a case, in words; None where there is none."""
    pairs = index.group(group).pairs
    first, last = np.searchsorted(pairs.case, [number, number + 1])
    at = first + np.flatnonzero(pairs.rule[first:last] == index.rules.index(rule))
    return _verdict_at(index, pairs, int(at[0])) if len(at) else None


def _verdict_at(index: Index, pairs: Pairs, at: int) -> Row:
    """A verdict in words."""
    return {
        "case": index.cases[int(pairs.case[at])],
        "rule": index.rules[int(pairs.rule[at])].id,
        "target": index.targets[int(pairs.target[at])],
        "severity": _known(pairs.severity[at]),
        "kind": index.kinds[int(pairs.kind[at])],
        "status": index.statuses[int(pairs.status[at])],
        "reason": index.reasons[int(pairs.reason[at])],
        "draw": int(pairs.draw[at]),
        "source_score": _known(pairs.source_score[at]),
        "follow_up_score": _known(pairs.follow_up_score[at]),
    }


def _known(number: np.float64) -> float | None:
    return None if np.isnan(number) else float(number)


def card(index: Index, filters: Filters, pairs: Pairs, at: int, *, width: int = 480) -> Row:
    """A pair with its addresses."""
    verdict = _verdict_at(index, pairs, at)
    rule = index.rules[int(pairs.rule[at])]
    limit = index.thresholds(filters.threshold)[rule.id]
    drawn = {**filters.query("run", "judging", "group"), "case": verdict["case"], "rule": rule.id, "w": width}
    judged = pairs.status[at] == OK
    return {
        **verdict,
        "marked": None,
        "mark": None,
        "about": "",
        "name": rule.name,
        "words": rule.words,
        "unit": rule.unit,
        "mapping": rule.mapping,
        "judged": bool(judged),
        "limit": limit,
        "violated": bool(judged and verdict["severity"] >= limit and verdict["severity"] > 0),
        **_sides(drawn, bool(judged)),
        "open": address("/case", {**filters.query(), "case": verdict["case"], "shown": rule.id}),
        "rule_page": address("/rule", {**filters.query(*SHARED), "rule": rule.id}),
    }


def _sides(drawn: Row, judged: bool) -> dict[str, str]:
    """The addresses of a pair's pictures."""
    source, follow_up = (address("/picture", {**drawn, "side": side}) for side in ("source", "follow-up"))
    return {"source": source, "follow_up": follow_up if judged else ""}


def worded(viewer: Viewer, filters: Filters, index: Index, pairs: Pairs, places: Places) -> list[Row]:
    """Pairs with what they are about by name, and their captions where a system answers in words; their pictures will
    be asked for next."""
    cards = [card(index, filters, pairs, int(at)) for at in places]
    store = viewer.run(filters.run).store
    viewer.pictures.expect(store, [each["case"] for each in cards])
    marked = marked_pairs(store, cards, index.judging)
    named = _target_words(index, cards) if len(index.verdicts) <= MOST_NAMED else [""] * len(cards)
    marks = marks_of(store)
    return [
        {**each, "marked": pair, "about": name, "mark": mark_at(marks, each)}
        for each, pair, name in zip(cards, marked, named, strict=True)
    ]


def _target_words(index: Index, cards: Sequence[Row]) -> list[str]:
    """What verdicts are about, as people call it."""
    keys = {name: pl.Series([each[name] for each in cards], dtype=pl.String) for name in ("case", "rule", "target")}
    return target_names(index.run, pl.DataFrame(keys), judging=index.judging)


# --- the gallery -----------------------------------------------------------------------------------


def gallery(viewer: Viewer, filters: Filters) -> dict[str, object]:
    """Pairs as cards, filtered."""
    index = viewer.index(filters)
    matching = matches(index, filters)
    pages = max(1, -(-len(matching) // PAGE))
    filters = replace(filters, page=min(filters.page, pages))
    first = (filters.page - 1) * PAGE
    cards = worded(viewer, filters, index, matching.pairs, matching.order[first : first + PAGE])
    return {
        "filters": filters,
        "canonical": address("/gallery", filters.query()),
        "index": index,
        "cards": cards,
        "total": len(matching),
        "first": first + 1,
        "pages": pages,
        "cases": len(matching.cases()),
        "form": _form(index, filters),
        "chips": _chips(index, filters),
        "states": _states(filters, matching),
        "marking": marking(viewer, index, filters, matching),
        "loosened": _loosened(index, filters) if not len(matching) else [],
        "waiting": False,
        "links": {
            number: address("/gallery", replace(filters, page=number).query())
            for number in (1, filters.page - 1, filters.page + 1, pages)
            if 1 <= number <= pages
        },
        "mixed": len({index.rules[r].threshold for r in np.unique(matching.pairs.rule[matching.order])}) > 1,
        "clear": address("/gallery", filters.query("run")),
    }


def marking(viewer: Viewer, index: Index, filters: Filters, matching: Matches | None = None) -> dict[str, object]:
    """What a page needs to mark pairs; in a gallery also how many pairs have each mark, and the address of each."""
    run, links = viewer.run(filters.run), []
    if matching is not None:
        wider = matches(index, unfiltered(filters)) if filters.mark else matching
        counts = mark_counts(mark_codes(index, wider.pairs)[wider.order])
        addresses = {name: replace(filters, mark=name, page=1).query() for name in (*counts, "")}
        totals = {**counts, "": len(wider)}
        links = [(name, totals[name], address("/gallery", query)) for name, query in addresses.items()]
    return {
        "why": why_not(run.store, viewer.token),
        "token": viewer.token,
        "run": filters.run,
        "judging": index.judging,
        "links": links,
        "most": MOST_NOTE,
    }


def _form(index: Index, filters: Filters) -> dict[str, object]:
    """What can be chosen, with what is chosen already: a combination that a search tried is offered nowhere else."""
    per_case = [rule for rule in index.rules if rule.over == "case" or rule.id == filters.rule]
    slices: dict[str, list[tuple[str, str]]] = {}
    for name, one in index.slices.items():
        slices.setdefault(one.property, []).append((name, one.part))
    return {
        "rules": [(rule.id, rule.name) for rule in per_case],
        "families": sorted({rule.family for rule in per_case}),
        "relations": sorted({rule.relation for rule in per_case}),
        "groups": [(name, landmark_words(name)) for name in index.groups],
        "kinds": [kind for kind in index.kinds if kind],
        "slices": slices,
        "judgings": index.judgings,
        "sorts": SORTS,
        "statuses": [*STATES, *index.statuses[3:], ALL],
        "marks": CHOICES,
    }


_FILTERS = {"q": "case contains", "group": "part"}
"""What filters are called on the page, where that is not their name in the address."""


def _chips(index: Index, filters: Filters) -> list[tuple[str, str, str]]:
    """The filters that are on, each with the address without it."""
    active = filters.active()
    if filters.judging != DEFAULT:
        active["judging"] = filters.judging
    return [
        (*_filter_words(name, value), address("/gallery", filters.without(name).query()))
        for name, value in active.items()
    ]


def _filter_words(name: str, value: str) -> tuple[str, str]:
    """A filter as people call it."""
    return _FILTERS.get(name, name), landmark_words(value) if name == "group" else value


def _states(filters: Filters, matching: Matches) -> list[Row]:
    """The states with how many pairs have them, and the address of each."""
    counts = {**matching.states, ALL: sum(matching.states.values())}
    return [
        {
            "name": name,
            "count": count,
            "on": filters.status == name,
            "address": address("/gallery", replace(filters, status=name, page=1).query()),
        }
        for name, count in counts.items()
    ]


def _loosened(index: Index, filters: Filters) -> list[tuple[str, str, int, str]]:
    """Which filter, left out alone, would let something match."""
    less = {(name, value): filters.without(name) for name, value in filters.active().items()}
    if filters.status != ALL:
        less["status", filters.status] = replace(filters, status=ALL, page=1)
    rows = [
        (*_filter_words(name, value), len(matches(index, wider)), address("/gallery", wider.query()))
        for (name, value), wider in less.items()
    ]
    return sorted((row for row in rows if row[2]), key=lambda row: -row[2])


# --- one case --------------------------------------------------------------------------------------


def case(viewer: Viewer, filters: Filters, name: str, shown: str) -> dict[str, object]:
    """One case under all rules, and its neighbours among what the gallery shows."""
    index = viewer.index(filters)
    number, facts = index.case_number(name), index.case_facts(name)
    shown = spelled_rule(index, shown)
    if number is None:
        raise HTTPException(404, f"There is no case {name!r} in this run.")
    group = index.group(filters.group)
    first, last = np.searchsorted(group.pairs.case, [number, number + 1])
    of_case = group.by_severity[(group.by_severity >= first) & (group.by_severity < last)]
    cards = worded(viewer, filters, index, group.pairs, of_case)
    changing = {rule.id for rule, counts in zip(index.rules, index.counting().tolist(), strict=True) if counts}
    violated, others = (
        [each for each in cards if each["rule"] in changing and each["violated"] is hit] for hit in (True, False)
    )
    viewer.pictures.expect(viewer.run(filters.run).store, [name])
    chosen = next((each for each in cards if each["rule"] == shown), None)
    rule, target = (chosen["rule"], chosen["target"]) if chosen else ("", "")
    drawn = {**filters.query("run", "judging", "group"), "case": name, "w": 960}
    pair = _sides({**drawn, "rule": rule}, bool(chosen and chosen["judged"]))
    large = chosen and {**chosen, "about": _target_words(index, [chosen])[0], **pair}
    return {
        "filters": filters,
        "index": index,
        "case": name,
        "facts": facts,
        "properties": _properties(facts),
        "violated": violated,
        "others": others,
        "unchanged": [each for each in cards if each["rule"] not in changing],
        "counts": Counter(
            "kept" if each["judged"] else each["status"] if each["status"] in STATES else "failed" for each in others
        ),
        "large": large,
        "waiting": False,
        "canonical": address("/case", {**filters.query(), "case": name, "shown": rule}),
        "alone": address("/case", {**filters.query(), "case": name}),
        "source": address("/picture", {**drawn, "side": "source"}),
        "details": _details(viewer.run(filters.run).store, index, chosen) if chosen else [],
        "answer": _answer_words(index, name),
        "marking": {**marking(viewer, index, filters), **_pair_links(index, filters, number, rule, chosen)},
        "links": case_links(viewer.pages, ShownCase(index, filters, name, rule, target)),
        "back": address("/gallery", filters.query()),
        **neighbours(index, filters, number, "/case", chosen is not None),
    }


def _answer_words(index: Index, name: str) -> str:
    """What is to be seen of the answer to a case's source, or what it says in words."""
    answer = source_answer(index.run, name, judging=index.judging)
    if answer is None:
        return "source; the system gave no answer to it"
    if answer.says() is not None:
        return f"source; the answer to it: {answer.says() or 'no words'}"
    return "source; nothing was found in it" if is_silent(answer) else "source, with the answer to it"


def _pair_links(index: Index, filters: Filters, number: int, rule: str, shown: Row | None) -> dict[str, object]:
    """The pairs before and after the one that is shown, and marks of it that are about other targets."""
    if shown is None:
        return {}
    matching = matches(index, unfiltered(filters))
    pairs, rules = matching.pairs, [each.id for each in index.rules]
    here = np.flatnonzero((pairs.case == number) & (pairs.rule == rules.index(rule)))
    at, among, *around = pair_places(matching.order, mark_codes(index, pairs), filters, int(here[0]))
    links = [
        ""
        if place is None
        else address(
            "/case",
            {**filters.query(), "case": index.cases[int(pairs.case[place])], "shown": rules[int(pairs.rule[place])]},
        )
        for place in around
    ]
    others = others_at(marks_of(index.run.store), shown)
    names = _target_words(index, [{**shown, "target": mark.target} for mark in others])
    words = [(mark, name or mark.target) for mark, name in zip(others, names, strict=True)]
    return {"place": at, "among": among, "previous": links[0], "next": links[1], "others": words}


def _properties(facts: Row | None) -> list[tuple[str, str]]:
    """What is known of a case, as words."""
    if facts is None:
        return []
    rows = [("size", f"{facts['width']} × {facts['height']} px")] if facts["width"] else []
    rows += [(name, amount(value)) for name, value in (facts["properties"] or {}).items() if value is not None]
    own = json.loads(facts["attributes"] or "{}")
    rows += [
        (str(name), value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in own.items()
    ]
    return [*rows, ("path", facts["path"] or "none: in memory, or recorded elsewhere")]


def _details(store: Store, index: Index, shown: Row) -> list[str]:
    """What else was measured for a verdict, in the words of its relation."""
    same = pl.all_horizontal(pl.col(name) == shown[name] for name in ("case", "rule", "target"))
    rows = store.read(store.verdict_table(index.judging), dict.fromkeys(COLUMNS, pl.String), where=same)
    if rows.is_empty():
        return []
    return detail_words(relations()[known_rule(index, shown["rule"]).relation], rows.row(-1, named=True))


def neighbours(index: Index, filters: Filters, number: int, path: str, shown: bool) -> dict[str, object]:
    """The cases before and after this one among what matches; where a pair is shown, each with its first that does."""
    matching = matches(index, filters)
    order = matching.cases()
    at = np.flatnonzero(order == number)
    if not len(at):
        return {"place": None, "among": len(order), "previous": "", "next": ""}
    here, links = int(at[0]), []
    for place in (here - 1, here + 1):
        if not 0 <= place < len(order):
            links.append("")
            continue
        first = matching.order[np.argmax(matching.pairs.case[matching.order] == order[place])]
        rule = index.rules[int(matching.pairs.rule[first])].id if shown else ""
        links.append(address(path, {**filters.query(), "case": index.cases[int(order[place])], "shown": rule}))
    return {"place": here + 1, "among": len(order), "previous": links[0], "next": links[1]}
