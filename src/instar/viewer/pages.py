"""What the pages show: the overview, the gallery and one case."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from starlette.exceptions import HTTPException

from instar.analysis import any_rule, group_rates
from instar.engine import DEFAULT
from instar.report.spoken import spoken
from instar.report.words import distinct_names, severity_text
from instar.store import Store
from instar.viewer import charts
from instar.viewer.index import COLUMNS, OK, Index, Pairs, RuleFacts
from instar.viewer.pictures import Picture, Pictures, Side
from instar.viewer.query import SORTS, STATES, Filters, Matches, address, matches
from instar.viewer.watch import Unavailable, Watched

__all__ = ["Viewer", "card", "case", "gallery", "neighbours", "overview", "picture", "unknown_rule"]

PAGE = 48
SHARED = ("run", "judging", "threshold", "group")
"""What a link to another page takes along."""
PRESENCE = "presence"
"""The relation whose verdicts are about objects, and can be explained."""


@dataclass(frozen=True, eq=False)
class Viewer:
    """The runs that are looked at, by their number on the command line, and the pictures drawn of them."""

    runs: tuple[Watched, ...]
    pictures: Pictures = field(default_factory=Pictures)

    def run(self, number: int) -> Watched:
        if not 0 <= number < len(self.runs):
            raise HTTPException(404, f"there is no run {number}; they are numbered 0 to {len(self.runs) - 1}")
        return self.runs[number]

    def index(self, asked: Filters) -> Index:
        return self.run(asked.run).index(asked.judging)

    def names(self) -> list[str]:
        """What runs are called: by their system, and by their folder where that is not enough."""
        return distinct_names([run.system[0] for run in self.runs], [run.store.folder.name for run in self.runs])

    def common(self) -> dict[str, Any]:
        """What every page needs."""
        return {"runs": self.names(), "pulse": self.pulse()}

    def pulse(self) -> dict[str, Any]:
        """Whether anything is new: pages ask every few seconds."""
        return {
            "version": "|".join(f"{run.version} {bool(run.problem)}" for run in self.runs),
            "live": any(run.live for run in self.runs),
            "age": round(time.time() - max(run.updated for run in self.runs), 1),
        }


def picture(viewer: Viewer, asked: Filters, name: str, side: Side, width: int) -> Picture:
    """One side of a pair; the case and the rule must be among the run's own."""
    run, index = viewer.run(asked.run), viewer.index(asked)
    number = index.case_number(name)
    if number is None:
        raise HTTPException(404, "there is no such case in this run")
    verdict = None
    if asked.rule:
        known = unknown_rule(index, asked.rule)
        verdict = _verdict(index, asked.group, number, known)
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


def unknown_rule(index: Index, name: str) -> RuleFacts:
    """The rule of that id."""
    found = index.rule(name)
    if found is None:
        raise HTTPException(404, f"this run has no rule {name!r}")
    return found


def _verdict(index: Index, group: str, number: int, rule: RuleFacts) -> dict[str, Any] | None:
    pairs = index.group(group).pairs
    first, last = np.searchsorted(pairs.case, [number, number + 1])
    at = first + np.flatnonzero(pairs.rule[first:last] == index.rules.index(rule))
    return _told(index, pairs, int(at[0])) if len(at) else None


def _told(index: Index, pairs: Pairs, at: int) -> dict[str, Any]:
    """A verdict in words."""
    severity = float(pairs.severity[at])
    return {
        "case": index.cases[int(pairs.case[at])],
        "rule": index.rules[int(pairs.rule[at])].id,
        "target": index.targets[int(pairs.target[at])],
        "severity": None if np.isnan(severity) else severity,
        "kind": index.kinds[int(pairs.kind[at])],
        "status": index.statuses[int(pairs.status[at])],
        "reason": index.reasons[int(pairs.reason[at])],
        "draw": int(pairs.draw[at]),
    }


def card(index: Index, asked: Filters, pairs: Pairs, at: int, *, width: int = 480) -> dict[str, Any]:
    """A pair with its addresses."""
    told = _told(index, pairs, at)
    rule = index.rules[int(pairs.rule[at])]
    limit = index.thresholds(asked.threshold)[rule.id]
    mine = {**asked.query(*SHARED), "case": told["case"], "rule": rule.id}
    drawn = {**asked.query("run", "judging", "group"), "case": told["case"], "rule": rule.id, "w": width}
    judged = pairs.status[at] == OK
    return {
        **told,
        "spoken": None,
        "name": rule.name,
        "unit": rule.unit,
        "judged": bool(judged),
        "limit": limit,
        "violated": bool(judged and told["severity"] >= limit and told["severity"] > 0),
        "source": address("/picture", {**drawn, "side": "source"}),
        "follow_up": address("/picture", {**drawn, "side": "follow-up"}) if judged else "",
        "open": address("/case", {**asked.query(), "case": told["case"], "shown": rule.id}),
        "rule_page": address("/rule", {name: value for name, value in mine.items() if name != "case"}),
    }


def _worded(viewer: Viewer, asked: Filters, index: Index, cards: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Cards with the captions of their pairs, where a system answers in words."""
    said = spoken(viewer.run(asked.run).store, index.manifest, cards, index.judging)
    return [{**each, "spoken": words} for each, words in zip(cards, said, strict=True)]


# --- the gallery -----------------------------------------------------------------------------------


def gallery(viewer: Viewer, asked: Filters) -> dict[str, Any]:
    """Pairs as cards, filtered."""
    index = viewer.index(asked)
    found = matches(index, asked)
    pages = max(1, -(-len(found) // PAGE))
    asked = replace(asked, page=min(asked.page, pages))
    first = (asked.page - 1) * PAGE
    cards = _worded(
        viewer, asked, index, [card(index, asked, found.pairs, int(at)) for at in found.order[first : first + PAGE]]
    )
    viewer.pictures.expect(viewer.run(asked.run).store, [each["case"] for each in cards])
    return {
        "asked": asked,
        "canonical": address("/gallery", asked.query()),
        "index": index,
        "cards": cards,
        "total": len(found),
        "first": first + 1,
        "pages": pages,
        "cases": len(found.cases()),
        "form": _form(index),
        "chips": _chips(index, asked),
        "states": _states(asked, found),
        "loosened": _loosened(index, asked) if not len(found) else [],
        "waiting": False,
        "links": {
            number: address("/gallery", replace(asked, page=number).query())
            for number in (1, asked.page - 1, asked.page + 1, pages)
            if 1 <= number <= pages
        },
        "mixed": len({index.rules[r].threshold for r in np.unique(found.pairs.rule[found.order])}) > 1,
    }


def _form(index: Index) -> dict[str, Any]:
    """What can be chosen."""
    per_case = [rule for rule in index.rules if rule.over == "case"]
    slices: dict[str, list[tuple[str, str]]] = {}
    for name, one in index.slices.items():
        slices.setdefault(one.property, []).append((name, one.part))
    return {
        "rules": [(rule.id, rule.name) for rule in per_case],
        "families": _sorted(r.family for r in per_case),
        "relations": _sorted(rule.relation for rule in per_case),
        "groups": index.groups,
        "kinds": [kind for kind in index.kinds if kind],
        "slices": slices,
        "judgings": index.judgings,
        "grid": sorted({value for grid in index.grids.values() for value in grid}),
        "sorts": SORTS,
        "statuses": [*STATES, *(name for name in index.statuses[2:])],
    }


def _sorted(names: Iterable[str]) -> list[str]:
    return sorted(set(names))


def _chips(index: Index, asked: Filters) -> list[tuple[str, str, str]]:
    """The filters that are on, each with the address without it."""
    words = {"q": "case contains", "group": "landmark group"}
    chips = [
        (words.get(name, name), value, address("/gallery", asked.without(name).query()))
        for name, value in asked.active().items()
    ]
    if asked.threshold is not None:
        chips.append(
            ("threshold", severity_text(asked.threshold), address("/gallery", asked.without("threshold").query()))
        )
    if asked.judging != DEFAULT:
        chips.append(("judging", asked.judging, address("/gallery", asked.without("judging").query())))
    return chips


def _states(asked: Filters, found: Matches) -> list[dict[str, Any]]:
    """The states with how many pairs have them, and the address of each."""
    counts = {"": sum(found.states.values()), **found.states}
    return [
        {
            "name": name or "all",
            "count": count,
            "on": asked.status == name,
            "address": address("/gallery", replace(asked, status=name, page=1).query()),
        }
        for name, count in counts.items()
    ]


def _loosened(index: Index, asked: Filters) -> list[tuple[str, str, int, str]]:
    """Which filter, left out alone, would let something match."""
    found = []
    for name, value in asked.active().items():
        less = asked.without(name)
        found.append((name, value, len(matches(index, less)), address("/gallery", less.query())))
    return sorted((row for row in found if row[2]), key=lambda row: -row[2])


# --- one case --------------------------------------------------------------------------------------


def case(viewer: Viewer, asked: Filters, name: str, shown: str) -> dict[str, Any]:
    """One case under all rules, and its neighbours among what the gallery shows."""
    index = viewer.index(asked)
    number, facts = index.case_number(name), index.case_facts(name)
    if number is None:
        raise HTTPException(404, f"there is no case {name!r} in this run")
    held = index.group(asked.group)
    first, last = np.searchsorted(held.pairs.case, [number, number + 1])
    mine = held.by_severity[(held.by_severity >= first) & (held.by_severity < last)]
    cards = _worded(viewer, asked, index, [card(index, asked, held.pairs, int(at)) for at in mine])
    viewer.pictures.expect(viewer.run(asked.run).store, [name])
    chosen = next((each for each in cards if each["rule"] == shown), None)
    drawn = {**asked.query("run", "judging", "group"), "case": name, "w": 960}
    large = None
    if chosen is not None:
        pair = {**drawn, "rule": chosen["rule"]}
        large = {
            **chosen,
            "source": address("/picture", {**pair, "side": "source"}),
            "follow_up": address("/picture", {**pair, "side": "follow-up"}) if chosen["judged"] else "",
        }
    return {
        "asked": asked,
        "index": index,
        "case": name,
        "facts": facts,
        "properties": _properties(facts),
        "cards": cards,
        "large": large,
        "waiting": False,
        "canonical": address("/case", {**asked.query(), "case": name, "shown": chosen["rule"] if chosen else ""}),
        "alone": address("/case", {**asked.query(), "case": name}),
        "source": address("/picture", {**drawn, "side": "source"}),
        "measures": _measures(viewer.run(asked.run).store, index, chosen) if chosen else [],
        "explanation": _explanation(index, asked, name, chosen),
        "back": address("/gallery", asked.query()),
        **neighbours(index, asked, number, "/case", chosen is not None),
    }


def _explanation(index: Index, asked: Filters, name: str, chosen: Mapping[str, Any] | None) -> str:
    """Where a case's objects are explained, and what is shown of it there; empty where no rule is about objects."""
    about = [rule.id for rule in index.rules if rule.relation == PRESENCE]
    shown = chosen if chosen and chosen["rule"] in about and chosen["target"] != "whole" else None
    return (
        address(
            "/explain",
            {**asked.query(), "case": name, **({"object": shown["target"], "shown": shown["rule"]} if shown else {})},
        )
        if about
        else ""
    )


def _properties(facts: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """What is known of a case, as words."""
    if facts is None:
        return []
    rows = [("size", f"{facts['width']} × {facts['height']} px")] if facts["width"] else []
    rows += [(name, f"{value:.3g}") for name, value in (facts["properties"] or {}).items() if value is not None]
    own = json.loads(facts["attributes"] or "{}")
    rows += [
        (str(name), value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in own.items()
    ]
    return [*rows, ("path", facts["path"] or "none: in memory, or recorded elsewhere")]


def _measures(store: Store, index: Index, shown: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What else was measured for a verdict, with the words of its relation."""
    mine = pl.all_horizontal(pl.col(name) == shown[name] for name in ("case", "rule", "target"))
    rows = store.read(store.verdict_table(index.judging), dict.fromkeys(COLUMNS, pl.String), where=mine)
    found = rows.row(-1, named=True) if rows.height else {}
    return [
        (name, f"{value:.4g}" if isinstance(value, float) else str(value))
        for name, value in found.items()
        if name not in COLUMNS and value is not None
    ]


def neighbours(index: Index, asked: Filters, number: int, path: str, shown: bool) -> dict[str, Any]:
    """The cases before and after this one among what matches; where a pair is shown, each with its first that does."""
    found = matches(index, asked)
    order = found.cases()
    at = np.flatnonzero(order == number)
    if not len(at):
        return {"place": None, "among": len(order), "previous": "", "next": ""}
    here, links = int(at[0]), []
    for place in (here - 1, here + 1):
        if not 0 <= place < len(order):
            links.append("")
            continue
        first = found.order[np.argmax(found.pairs.case[found.order] == order[place])]
        links.append(
            address(
                path,
                {
                    **asked.query(),
                    "case": index.cases[int(order[place])],
                    "shown": index.rules[int(found.pairs.rule[first])].id if shown else "",
                },
            )
        )
    return {"place": here + 1, "among": len(order), "previous": links[0], "next": links[1]}


# --- the overview ----------------------------------------------------------------------------------


def overview(viewer: Viewer, asked: Filters) -> dict[str, Any]:
    """All runs: how far they are, and what they found."""
    shown = [_run_card(viewer, replace(asked, run=number)) for number in range(len(viewer.runs))]
    grid = sorted({value for one in shown if one["index"] for value in _form(one["index"])["grid"]})
    chosen = {name: value for name, value in asked.query("judging", "threshold").items() if name != "run"}
    return {
        "asked": asked,
        "canonical": address("/", chosen),
        "shown": shown,
        "grid": grid,
        "waiting": any(not one["index"] for one in shown),
    }


def _run_card(viewer: Viewer, asked: Filters) -> dict[str, Any]:
    run = viewer.run(asked.run)
    plain: dict[str, Any] = {
        "number": asked.run,
        "name": viewer.names()[asked.run],
        "folder": str(run.store.folder),
        "live": run.live,
        "index": None,
        "problem": run.problem,
    }
    try:
        index = run.index(asked.judging if asked.judging in run.store.judgings() else DEFAULT)
    except Unavailable as error:
        return {**plain, "problem": str(error)}
    limits = {
        rule.id: index.thresholds(asked.threshold)[rule.id]
        for rule in index.rules
        if rule.over == "case" and rule.family != "identity"
    }
    found = index.rates(asked.threshold).sort(["rate", "median"], descending=True, nulls_last=True)
    names = {rule.id: rule for rule in index.rules}
    floors = {row["relation"]: row for row in index.noise().iter_rows(named=True)}
    rows = []
    for row in found.iter_rows(named=True):
        rule = names[row["rule"]]
        mine = replace(asked, rule=rule.id)
        links = {state: address("/gallery", replace(mine, status=state).query()) for state in STATES}
        floor = floors.get(rule.relation, {}).get("floor")
        rows.append(
            {
                **row,
                "name": rule.name,
                "unit": rule.unit,
                "links": links,
                "noisy": bool(floor) and row["threshold"] <= (floor or 0),
                "page": address("/rule", mine.query(*SHARED, "rule")),
            }
        )
    bad = index.facts.filter(pl.col("status") != "ok")
    return {
        **plain,
        "index": index,
        "manifest": index.manifest,
        "rows": rows,
        "noise": list(floors.values()),
        "whole": any_rule(index.matrix(), limits),
        "over_cases": index.over_cases.to_dicts(),
        "curves": charts.curves(index),
        "cases": index.facts.height,
        "unreadable": bad.head(3).to_dicts(),
        "unreadable_count": bad.height,
        "updated": run.updated,
        "families": _families(index, asked, limits),
        "units": {rule.relation: rule.unit for rule in index.rules if rule.over == "case"},
        "gallery": address("/gallery", asked.query("run", "judging", "threshold")),
        "violated": address("/gallery", {**asked.query("run", "judging", "threshold"), "status": "violated"}),
        "others": [
            (number, name)
            for number, name in enumerate(viewer.names())
            if number != asked.run and viewer.run(number).system[1] == run.system[1]
        ],
        "predictions": _predictions(index),
        "reasons": _reasons(index, asked),
    }


def _families(index: Index, asked: Filters, limits: Mapping[str, float]) -> list[dict[str, Any]]:
    """Per family the share of cases that violate at least one of its rules, highest first."""
    families: dict[str, list[str]] = {}
    for rule in index.rules:
        if rule.id in limits:
            families.setdefault(rule.family, []).append(rule.id)
    found = group_rates(index.matrix(), families, limits).sort("rate", descending=True, nulls_last=True)
    return [
        {**row, "address": address("/gallery", replace(asked, family=row["group"], status="violated").query())}
        for row in found.iter_rows(named=True)
    ]


def _predictions(index: Index) -> list[tuple[str, int]]:
    return sorted(index.predictions.items(), key=lambda item: (item[0] != "ok", item[0]))


def _reasons(index: Index, asked: Filters) -> Sequence[dict[str, Any]]:
    """Why pairs have no severity, most frequent first."""
    pairs = index.group().pairs
    bare = pairs.at(pairs.status != OK)
    table = (
        pl.DataFrame({"status": bare.status, "reason": bare.reason, "rule": bare.rule})
        .group_by("status", "reason")
        .agg(pairs=pl.len(), rules=pl.col("rule").n_unique())
        .sort("pairs", "status", "reason", descending=[True, False, False])
    )
    return [
        {
            "status": index.statuses[row["status"]],
            "reason": index.reasons[row["reason"]],
            "pairs": row["pairs"],
            "rules": row["rules"],
        }
        for row in table.head(6).iter_rows(named=True)
    ]
