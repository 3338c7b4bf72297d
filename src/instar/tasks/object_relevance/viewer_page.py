"""What the page of an explanation shows: the objects of a case, and one of them in the source and in follow-ups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from starlette.exceptions import HTTPException

from instar.relations import rule as parsed
from instar.tasks.object_relevance.explain import WHOLE, Explained, Look, Looks, explained, looks
from instar.viewer.index import COLUMNS, Index, RuleFacts
from instar.viewer.pages import PRESENCE, Viewer, neighbours
from instar.viewer.pictures import Picture, Side, View
from instar.viewer.query import Filters, address, whole

__all__ = ["explanation", "picture"]

DRAWS = 12
"""The most follow-ups of one rule that are shown."""
WORDS = {False: "unreliable", True: "reliable", None: "not judged"}
VIEWS: dict[str, View] = {"whole": "whole", "near": "near", "alone": "alone"}


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """One case of a run, as far as rules are about its objects."""

    viewer: Viewer
    asked: Filters
    index: Index
    name: str
    number: int
    rules: Sequence[RuleFacts]

    @property
    def options(self) -> Mapping[str, Any]:
        """Those of the judging."""
        held = self.viewer.run(self.asked.run).store.judging_info(self.index.judging)
        return held.options if held else {}

    def verdicts(self) -> pl.DataFrame:
        store = self.viewer.run(self.asked.run).store
        mine = (pl.col("case") == self.name) & pl.col("rule").is_in([rule.id for rule in self.rules])
        found = store.read(store.verdict_table(self.index.judging), dict.fromkeys(COLUMNS, pl.String), where=mine)
        return found.unique(["target", "rule"], keep="last", maintain_order=True)  # while a run is judged anew

    def looks(self, target: str, rule: str) -> Looks:
        return looks(self.viewer.run(self.asked.run).store, self.index.manifest, self.name, target, rule, self.options)

    def link(self, **more: Any) -> str:
        return address("/explain", {**self.asked.query(), "case": self.name, **more})

    def picture(self, side: Side, width: int, **more: Any) -> str:
        about = {**self.asked.query("run", "judging"), "case": self.name, **more}
        return address("/explain/picture", {**about, "side": side, "w": width})


def _case(viewer: Viewer, asked: Filters, name: str) -> _Case:
    index = viewer.index(asked)
    number = index.case_number(name)
    if number is None:
        raise HTTPException(404, f"there is no case {name!r} in this run")
    rules = [rule for rule in index.rules if rule.relation == PRESENCE]
    if not rules:
        raise HTTPException(
            404,
            "this run has no rules about the presence of objects; `instar run DETECTOR "
            "object-relevance DATASET` makes such a run",
        )
    return _Case(viewer, asked, index, name, number, rules)


def picture(viewer: Viewer, asked: Filters, query: Mapping[str, str], side: Side, width: int) -> Picture:
    """One side of what is shown of an object; its follow-up is one draw of one rule."""
    here = _case(viewer, asked, query.get("case", ""))
    rule = query.get("shown", "")
    if rule not in [one.id for one in here.rules]:
        raise HTTPException(404, f"this run has no rule {rule!r} about the presence of objects")
    view = VIEWS.get(query.get("view", "whole"))
    if view is None:
        raise HTTPException(404, f"view is one of {', '.join(VIEWS)}")
    run = viewer.run(asked.run)
    return viewer.pictures.of_object(
        run.store,
        here.index.manifest,
        here.index.version,
        case=here.name,
        target=query.get("object", ""),
        rule=rule,
        draw=whole(query.get("draw"), 0),
        view=view,
        side=side,
        width=width,
        options=here.options,
        dataset=run.dataset,
    )


def explanation(viewer: Viewer, asked: Filters, query: Mapping[str, str]) -> dict[str, Any]:
    """A case's objects with a sentence each; of one of them all rules, and the follow-ups of one rule in pictures."""
    here = _case(viewer, asked, query.get("case", ""))
    verdicts = here.verdicts()
    said = explained(verdicts, here.index.thresholds(asked.threshold)) if verdicts.height else []
    objects = [each for each in said if each.target != WHOLE]
    target = query.get("object", "")
    chosen = next((each for each in objects if each.target == target), None if target or not objects else objects[0])
    if target and chosen is None:
        raise HTTPException(404, f"there is no object {target!r} in this case")
    viewer.pictures.expect(viewer.run(asked.run).store, [here.name])
    kept = {name: query[name] for name in ("object", "shown", "draw") if query.get(name)}
    return {
        "asked": asked,
        "index": here.index,
        "case": here.name,
        "facts": here.index.case_facts(here.name),
        "waiting": False,
        "objects": [_object(here, each, each is chosen) for each in objects],
        "counts": {word: sum(each.reliable is value for each in objects) for value, word in WORDS.items()},
        "note": next((each.why for each in said if each.target == WHOLE), ""),
        "source": address("/picture", {**asked.query("run", "judging"), "case": here.name, "w": 960}),
        "canonical": here.link(**kept),
        "back": address("/case", {**asked.query(), "case": here.name}),
        "shown": _shown(here, verdicts, chosen, query) if chosen else None,
        **neighbours(here.index, asked, here.number, "/explain", False),
    }


def _object(here: _Case, said: Explained, on: bool) -> dict[str, Any]:
    rule = said.rule or here.rules[0].id
    return {
        "target": said.target,
        "label": said.label,
        "word": WORDS[said.reliable],
        "why": _sentence(said.why),
        "on": on,
        "open": here.link(object=said.target) + "#object",
        "picture": here.picture("source", 240, object=said.target, shown=rule, view="alone"),
    }


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _shown(here: _Case, verdicts: pl.DataFrame, chosen: Explained, query: Mapping[str, str]) -> dict[str, Any]:
    """One object: every rule about it, and one of them in pictures."""
    rows = {
        row["rule"]: row
        for row in verdicts.sort(pl.col("target") != WHOLE).iter_rows(named=True)
        if row["target"] in (WHOLE, chosen.target)
    }  # where a rule has both, its own is the later one
    steps = [_step(here, chosen.target, rule, rows[rule.id]) for rule in here.rules if rule.id in rows]
    wanted = query.get("shown") or chosen.rule or _strongest(steps)
    step = next((each for each in steps if each["rule"] == wanted), None)
    if step is None:
        raise HTTPException(404, f"rule {wanted!r} has no verdict about object {chosen.target!r}")
    families: dict[str, list[dict[str, Any]]] = {}
    for each in steps:
        families.setdefault(each["family"], []).append({**each, "on": each is step})
    about = {"object": chosen.target, "shown": step["rule"]}
    try:
        seen = here.looks(chosen.target, step["rule"])
    except LookupError as error:  # the source has no answer
        return {
            **_object(here, chosen, True),
            "families": families,
            "step": step,
            "missing": error.args[0],
            "tiles": [],
            "left_out": 0,
            "large": None,
            "source": None,
        }
    draw = whole(query.get("draw"), rows[step["rule"]].get("draw") or 0)
    tiles = [_tile(here, look, seen, chosen.label, about, look.draw == draw) for look in seen.follow_ups]
    large = next((tile for tile in tiles if tile["on"]), None)
    if tiles and large is None:
        raise HTTPException(404, f"{step['left']} has no follow-up {draw}; they are numbered 0 to {len(tiles) - 1}")
    return {
        **_object(here, chosen, True),
        "families": families,
        "step": step,
        "missing": seen.why,
        "large": large,
        "source": _tile(here, seen.source, seen, chosen.label, about, False),
        "tiles": tiles[:DRAWS],
        "left_out": len(tiles[DRAWS:]),
    }


def _step(here: _Case, target: str, rule: RuleFacts, row: Mapping[str, Any]) -> dict[str, Any]:
    """A rule and what it found of the object."""
    left, limit = parsed(rule.id).left, here.index.thresholds(here.asked.threshold)[rule.id]
    severity = row["severity"]
    state = "" if severity is None else "violated" if severity >= limit and severity > 0 else "kept"
    inner = left[len(rule.family) + 1 : -1] if left.startswith(f"{rule.family}(") and " | " not in left else left
    times = f"{round(row['found'] * row['tries'])}/{row['tries']}" if row["found"] is not None else "–"
    return {
        "rule": rule.id,
        "left": left,
        "family": rule.family,
        "inner": inner,
        "state": state,
        "times": times,
        "kind": row["kind"],
        "reason": row["reason"],
        "limit": limit,
        "open": here.link(object=target, shown=rule.id),
        "page": address("/rule", {**here.asked.query("run", "judging", "threshold"), "rule": rule.id}),
    }


def _strongest(steps: Sequence[Mapping[str, Any]]) -> str:
    """Where nothing speaks against an object, the largest change that does not: the last of the first family judged."""
    judged = [step for step in steps if step["state"]] or steps
    return str([step for step in judged if step["family"] == judged[0]["family"]][-1]["rule"])


def _tile(here: _Case, look: Look, seen: Looks, label: str, about: Mapping[str, Any], on: bool) -> dict[str, Any]:
    """One prediction: what is said of the object there, and its pictures."""
    side: Side = "source" if look.draw is None else "follow-up"
    one = {**about, "draw": look.draw or 0}
    return {
        "draw": look.draw,
        "on": on,
        "broken": look.broken,
        "said": _said(look, seen, label),
        "picture": here.picture(side, 960, **one),
        "near": here.picture(side, 480, **one, view="near"),
        "open": here.link(**one),
    }


def _said(look: Look, seen: Looks, label: str) -> str:
    if 0 < look.found < 1:
        return f"found in {round(100 * look.found)} % of the predictions"
    if look.score is None:
        return f"not found: nothing called {label} overlaps it enough (IoU {seen.iou:g})"
    if look.found:
        return f"found, score {look.score:.2f}"
    return f"not found: its score {look.score:.2f} is below {seen.confidence:g}"
