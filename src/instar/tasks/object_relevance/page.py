"""The viewer's page of an explanation: the objects of a case, and one of them in the source and in follow-ups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files

import polars as pl
from starlette.exceptions import HTTPException

from instar.analysis import Run
from instar.relations import named_rule
from instar.report.words import percent
from instar.store import Row, Store
from instar.tasks.object_relevance.analysis import RELATION
from instar.tasks.object_relevance.explain import (
    WHOLE,
    Explained,
    ObjectView,
    ObjectViews,
    explained,
    object_alone,
    object_legend,
    object_names,
    object_panels,
    object_views,
    outcome_words,
)
from instar.viewer import CaseLink, Page, ShownCase
from instar.viewer.index import COLUMNS, Index, RuleFacts
from instar.viewer.pages import Viewer, neighbours
from instar.viewer.pictures import Picture, Side, Sides
from instar.viewer.query import Filters, address, whole
from instar.viewer.watch import Watched

DRAWS = 12
"""The most follow-ups of one rule that are shown."""
WORDS = {False: "unreliable", True: "reliable", None: "not judged"}
VIEWS = ("whole", "near", "alone")
"""An object in the whole image, the part of the image near it, or that part with nothing drawn on it."""

Query = Mapping[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """One case of a run, as far as rules are about its objects."""

    watched: Watched
    filters: Filters
    index: Index
    name: str
    number: int
    rules: Sequence[RuleFacts]

    def verdicts(self) -> pl.DataFrame:
        store = self.watched.store
        of_case = (pl.col("case") == self.name) & pl.col("rule").is_in([rule.id for rule in self.rules])
        rows = store.read(store.verdict_table(self.index.judging), dict.fromkeys(COLUMNS, pl.String), where=of_case)
        return rows.unique(["target", "rule"], keep="last", maintain_order=True)  # while a run is judged anew

    def link(self, **more: str | int) -> str:
        return address("/explain", {**self.filters.query(), "case": self.name, **more})

    def picture(self, side: Side, width: int, **more: str | int) -> str:
        query = {**self.filters.query("run", "judging"), "case": self.name, **more}
        return address("/explain/picture", {**query, "side": side, "w": width})


def _case(viewer: Viewer, query: Query) -> _Case:
    filters, name = viewer.filters(query), query.get("case", "")
    index = viewer.index(filters)
    number = index.case_number(name)
    if number is None:
        raise HTTPException(404, f"There is no case {name!r} in this run.")
    rules = _presence_rules(index)
    if not rules:
        raise HTTPException(
            404,
            "This run has no rules about the presence of objects; `instar run DETECTOR object-relevance DATASET` "
            "makes such a run.",
        )
    return _Case(viewer.run(filters.run), filters, index, name, number, rules)


def _presence_rules(index: Index) -> list[RuleFacts]:
    return [rule for rule in index.rules if rule.relation == RELATION]


def _link(shown: ShownCase) -> CaseLink | None:
    """From a case to its objects, and to the object and the rule that are shown in large."""
    rules = [rule.id for rule in _presence_rules(shown.index)]
    if not rules:
        return None
    query = {**shown.filters.query(), "case": shown.case}
    if shown.rule in rules and shown.target != WHOLE:
        query |= {"object": shown.target, "shown": shown.rule}
    return CaseLink("Why? Its objects explained", address("/explain", query))


def _picture(viewer: Viewer, query: Query, side: Side, width: int) -> Picture:
    """One side of what is shown of an object; its follow-up is one draw of one rule."""
    here = _case(viewer, query)
    rule, view, target = query.get("shown", ""), query.get("view", "whole"), query.get("object", "")
    draw = whole(query.get("draw"), 0)
    if rule not in [one.id for one in here.rules]:
        raise HTTPException(404, f"This run has no rule {rule!r} about the presence of objects.")
    if view not in VIEWS:
        raise HTTPException(404, f"view is one of {', '.join(VIEWS)}")
    judging, dataset = here.index.judging, here.watched.dataset

    def sides(rows: Store) -> Sides:
        run = Run(rows)
        if view == "alone":
            return {"source": object_alone(run, here.name, target, rule, judging=judging, dataset=dataset)}
        near = view == "near"
        source, follow_up = object_panels(
            run, here.name, target, rule, draw, judging=judging, dataset=dataset, near=near
        )
        return {"source": source, "follow-up": follow_up}

    key = ("object", judging, target, rule, draw, view)
    store, index = here.watched.store, here.index
    return viewer.pictures.of_case(store, index.manifest, index.version, here.name, key, side, width, sides)


def _content(viewer: Viewer, query: Query) -> Row:
    """A case's objects with a sentence each; of one of them all rules, and the follow-ups of one rule in pictures."""
    here = _case(viewer, query)
    filters, verdicts = here.filters, here.verdicts()
    explanations = explained(verdicts, here.index.thresholds(filters.threshold)) if verdicts.height else []
    objects = [one for one in explanations if one.target != WHOLE]
    target = query.get("object", "")
    chosen = next((one for one in objects if one.target == target), None if target or not objects else objects[0])
    if target and chosen is None:
        raise HTTPException(404, f"there is no object {target!r} in this case")
    viewer.pictures.expect(here.watched.store, [here.name])
    names = object_names(here.index.run, here.name, objects, judging=here.index.judging)
    kept = {name: query[name] for name in ("object", "shown", "draw") if query.get(name)}
    return {
        "filters": filters,
        "index": here.index,
        "case": here.name,
        "facts": here.index.case_facts(here.name),
        "waiting": False,
        "objects": [_object(here, one, one is chosen, names[one.target]) for one in objects],
        "counts": {word: sum(one.reliable is value for one in objects) for value, word in WORDS.items()},
        "note": next((one.why for one in explanations if one.target == WHOLE), ""),
        "source": address("/picture", {**filters.query("run", "judging"), "case": here.name, "w": 960}),
        "canonical": here.link(**kept),
        "back": address("/case", {**filters.query(), "case": here.name}),
        "entries": object_legend(),
        "shown": _shown(here, verdicts, chosen, query, names[chosen.target]) if chosen else None,
        **neighbours(here.index, filters, here.number, "/explain", False),
    }


def _object(here: _Case, one: Explained, on: bool, name: str) -> Row:
    return {
        "label": name,
        "word": WORDS[one.reliable],
        "why": f"{one.why[:1].upper()}{one.why[1:]}.",
        "on": on,
        "open": here.link(object=one.target) + "#object",
        "picture": here.picture("source", 240, object=one.target, shown=one.rule or here.rules[0].id, view="alone"),
    }


@dataclass(frozen=True, slots=True)
class _Step:
    """A rule and what it says of an object. `state` is empty where it is not judged."""

    rule: str
    left: str
    family: str
    inner: str
    state: str
    words: str
    times: str
    kind: str | None
    reason: str | None
    limit: float
    draw: int
    open: str
    page: str


def _shown(here: _Case, verdicts: pl.DataFrame, chosen: Explained, query: Query, name: str) -> Row:
    """One object: every rule about it, and one of them in pictures."""
    rows = {
        row["rule"]: row
        for row in verdicts.sort(pl.col("target") != WHOLE).iter_rows(named=True)
        if row["target"] in (WHOLE, chosen.target)
    }  # where a rule has both, its own is the later one
    steps = [_step(here, chosen.target, rule, rows[rule.id]) for rule in here.rules if rule.id in rows]
    wanted = query.get("shown") or chosen.rule or _strongest(steps)
    step = next((one for one in steps if one.rule == wanted), None)
    if step is None:
        raise HTTPException(404, f"rule {wanted!r} has no verdict about object {chosen.target!r}")
    families: dict[str, list[_Step]] = {}
    alike = Counter((one.family, one.inner) for one in steps)
    for one in steps:
        if alike[one.family, one.inner] > 1:  # two relations of one change
            one = replace(one, inner=f"{one.inner} => {one.rule.partition(' => ')[2]}")
        families.setdefault(one.family, []).append(one)
    shown = {**_object(here, chosen, True, name), "families": families, "step": step}
    try:
        views = object_views(Run(here.watched.store), here.name, chosen.target, step.rule, judging=here.index.judging)
    except LookupError as error:  # the source has no answer
        return {**shown, "missing": error.args[0], "tiles": [], "left_out": 0, "large": None, "source": None}
    draw = whole(query.get("draw"), step.draw)
    tiles = [_tile(here, chosen, step, views, view, view.draw == draw) for view in views.follow_ups]
    large = next((tile for tile in tiles if tile["on"]), None)
    if tiles and large is None:
        raise HTTPException(404, f"{step.left} has no follow-up {draw}; they are numbered 0 to {len(tiles) - 1}")
    return {
        **shown,
        "missing": views.why,
        "large": large,
        "source": _tile(here, chosen, step, views, views.source, False),
        "tiles": tiles[:DRAWS],
        "left_out": len(tiles[DRAWS:]),
        "margin": views.margin,
    }


def _step(here: _Case, target: str, rule: RuleFacts, row: Row) -> _Step:
    left, severity = named_rule(rule.id).left, row["severity"]
    limit = here.index.thresholds(here.filters.threshold)[rule.id]
    state = "" if severity is None else "violated" if severity >= limit and severity > 0 else "kept"
    return _Step(
        rule=rule.id,
        left=left,
        family=rule.family,
        inner=left[len(rule.family) + 1 : -1] if left.startswith(f"{rule.family}(") and " | " not in left else left,
        state=state,
        words=outcome_words(row),
        times=f"{round(row['found'] * row['tries'])}/{row['tries']}" if row["found"] is not None else "–",
        kind=row["kind"],
        reason=row["reason"],
        limit=limit,
        draw=row.get("draw") or 0,
        open=here.link(object=target, shown=rule.id),
        page=address("/rule", {**here.filters.query("run", "judging", "threshold"), "rule": rule.id}),
    )


def _strongest(steps: Sequence[_Step]) -> str:
    """Where nothing speaks against an object, the largest change that does not: the last of the first family judged."""
    judged = [step for step in steps if step.state] or steps
    return [step for step in judged if step.family == judged[0].family][-1].rule


def _tile(here: _Case, one: Explained, step: _Step, views: ObjectViews, view: ObjectView, on: bool) -> Row:
    """One prediction: what the system says of the object there, and its pictures."""
    side: Side = "source" if view.draw is None else "follow-up"
    query: dict[str, str | int] = {"object": one.target, "shown": step.rule, "draw": view.draw or 0}
    return {
        "draw": view.draw,
        "on": on,
        "broken": view.broken,
        "words": _words(view, views, one.label),
        "picture": here.picture(side, 960, **query),
        "near": here.picture(side, 480, **query, view="near"),
        "open": here.link(**query),
    }


def _words(view: ObjectView, views: ObjectViews, label: str) -> str:
    if 0 < view.found_share < 1:
        return f"found in {percent(view.found_share)} of the predictions"
    if view.score is None:
        return f"not found: nothing called {label} overlaps it enough (IoU {views.iou:g})"
    if view.found_share:
        return f"found, score {view.score:.2f}"
    forgiven = view.draw is not None and views.source.found_share and views.margin and not view.broken
    margin = f", but fell by no more than the margin of {views.margin:g}: that is not lost" if forgiven else ""
    return f"not found: its score {view.score:.2f} is below {views.confidence:g}{margin}"


_FOLDER = files("instar.tasks.object_relevance")
PAGE = Page(_FOLDER / "explain.html", _content, _picture, _FOLDER / "explain.css", _link)
