"""Which rules our own suites need: every seeded fault against every candidate, and the fewest rules that catch all.

    python -m studies.suites [KIND …] [--as-is]

Ten minutes; writes `studies/suites.json` and the tables of `docs/suites.md`. A kind that is not named keeps what is
there.

A rule catches a fault where it is violated at its threshold, or where its relation is a test and more tests reject than
chance explains. A candidate that accuses any flawless system is none. Members that are given are the rules of the suite
whose purpose says why they are kept (“; kept because …”); all others must be the smallest set beside them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import instar
from instar import Suite
from instar.suites import KEPT
from studies.cover import alone, smallest
from studies.faulty import ELSEWHERE, KINDS, Fault

HERE = Path(__file__).parent
RESULT, PAGE = HERE / "suites.json", HERE.parent / "docs" / "suites.md"

# fmt: off
TURNED = ("mirror(v)", "mirror(both)", "rotation(20)", "rotation(25)")
QUARTERS = ("rotate90(1)", "rotate90(2)", "rotate90(3)")
MOVED = (
    "mirror(h)", "rotation(5)", "rotation(10)", "shear(0.1)", "stretch(1, 0.6)", "stretch(1, 0.8)", "stretch(0.8, 1)",
    "stretch(1.25, 1)", "stretch(1, 1.25)", "shift(0.1, 0.1)", "shift(0.12, 0.08)", "shift(-0.1, -0.1)", "crop(0.9)",
    "crop(0.8)", "crop(0.8, top_left)", "crop(0.85, bottom_right)", "pad(0.15)", "pad(0.25)", "pad(0.25, left_right)",
    "pad(0.25, top_bottom)", "pad(0.2, left_right)", "pad(0.2, top_bottom)", "rescale(2)", "rescale(0.5)",
    "resolution(0.2)", "resolution(0.5)", "resolution(0.7)",
)
LOOKS = (
    "gamma(0.3)", "gamma(0.4)", "gamma(0.5)", "gamma(1.5)", "gamma(2)", "gamma(2.5)", "gamma(3)", "brightness(0, 0.4)",
    "brightness(20, 1.2)", "contrast(0.5)", "contrast(0.7)", "contrast(1.5)", "blur(1)", "blur(2)", "motion(9, 0)",
    "motion(9, 45)", "motion(11, 0)", "motion(11, 90)", "bilateral(80, 7)", "noise(8)", "noise(16)", "jpeg(10)",
    "jpeg(20)", "jpeg(30)", "jpeg(50)", "greyscale",
)
SCENES = (
    "mirror(h)", "mirror(v)", "rotate90(1)", "rotate90(2)", "rotate90(3)", "rotation(22.5)", "rotation(45)",
    "rescale(2)", "rescale(0.5)", "rescale(0.8)", "shift(0.15, 0.1)", "shift(-0.1, -0.1)", "pad(0.2)",
    "pad(0.2, left_right)", "pad(0.2, top_bottom)", "crop(0.8)", "pad(0.25) | shift(0.15, 0.1)",
    "pad(0.35) | rotation(22.5)",
)
# fmt: on
GENERAL = ("identity", *MOVED, *LOOKS)
"""Single changes, so that a violated rule says what the system cannot bear; a chain would catch more and say less."""
POOLS: Mapping[str, tuple[str, ...]] = {
    "poses": ("met-pose/sub", *GENERAL, *TURNED),
    "hands": (*GENERAL, *TURNED, *QUARTERS, "gamma(5)", "gamma(0.2)", *(f"motion(20, {way})" for way in (0, 45, 90))),
    "detections": ("object-relevance", *GENERAL),
    "captions": ("meta-ic", "deeptest", *(f"{one} => {what}" for one in GENERAL for what in ("objects", "numbers"))),
    "forecasts": ("trajtest", "turn_past(180) => follows", *(f"{change} => wvc" for change in SCENES)),
    "labels": GENERAL,
    "segmentation": GENERAL,
}
"""Candidates beside the suite's own rules: the papers' suites, and what else applies. Of MET-POSE its restricted set:
the others are steps in between; of the hand paper its changes alone: its relations are over labelled datasets, and what
covers a finger may lose it. Photographs are upright, so that people lean at most, and objects and classes do not."""


def pool(kind: str) -> Suite:
    """All candidates, judged as the kind's own suite is."""
    own = instar.suite(kind)
    parts = [own.rules, *(instar.suite(spelling).rules for spelling in POOLS[kind])]
    rules = {one.id: one for part in parts for one in part}
    plain = {own.thresholds[one.id] for one in own.rules if one.relation is None and one.id in own.thresholds}
    thresholds = {one.id: limit for one in rules.values() if one.relation is None for limit in plain}
    return replace(own, name="candidates", rules=tuple(rules.values()), thresholds={**thresholds, **own.thresholds})


def given(suite: Suite) -> dict[str, str]:
    """The rules that are kept beside the smallest set, and why."""
    return {rule: text.partition(KEPT)[2] for rule, text in suite.purposes.items() if KEPT in text}


def asks(suite: Suite, output: str) -> dict[str, int]:
    """What each rule costs: the answers it asks for, and what has to be known beside the input."""
    costs: dict[str, int] = {}
    for one in suite.rules:
        relation = one.for_output(output).relation
        (change, *_) = one.transformations
        costs[one.id] = (relation.count("draws") if change.random else 1) + len(change.needs - {"source"})
    return costs


_SORTS = {
    "light": ("gamma", "brightness", "contrast"),
    "focus": ("blur", "motion", "bilateral"),
    "grain": ("noise",),
    "compression": ("jpeg",),
    "colour": ("greyscale", "colour_wheel", "colour_channels", "colour_fill"),
    "objects": ("erase", "object_noise", "background_noise"),
    "inserted": ("insert",),
    "map": ("obstacle", "class_change"),
    "past": ("turn_past",),
    "chance": ("identity",),
}
_SORT = {family: sort for sort, families in _SORTS.items() for family in families}


def sort_of(rule: str) -> str:
    """The sort of change that a rule makes: what its violation tells. Whatever moves the frame is of one sort."""
    name, _, values = rule.partition(" => ")[0].replace(" | rotate90(1)", "").partition("(")
    if name == "filtered":
        return values.rpartition(", ")[2].rstrip(")")
    sort = _SORT.get(name, "geometry")
    if sort != "light" or name == "contrast":
        return name if sort == "light" else sort
    number = float(values.rstrip(")").split(", ")[-1])
    return "dark" if (number > 1) == (name == "gamma") else "bright"


def sorts_of(patterns: Sequence[str], rules: Sequence[str]) -> set[str]:
    """The sorts of the rules that a table expects: patterns, or rules that are no candidates themselves."""
    matching = {rule for rule in rules if any(fnmatchcase(rule, pattern) for pattern in patterns)}
    return {sort_of(rule) for rule in (*matching, *(one for one in patterns if "*" not in one))}


def catching(fault: Fault, suite: Suite) -> frozenset[str]:
    with TemporaryDirectory() as folder:
        return fault.caught(fault.run(suite, Path(folder) / "run"), suite)


def accusing(kind: str, suite: Suite) -> dict[str, list[str]]:
    """The candidates that accuse flawless systems, and which."""
    accused: dict[str, list[str]] = {}
    for name, (run, caught) in KINDS[kind].flawless().items():
        with TemporaryDirectory() as folder:
            for rule in caught(run(suite, Path(folder) / "run"), suite):
                accused.setdefault(rule, []).append(name)
    return {one.id: accused[one.id] for one in suite.rules if one.id in accused}


def matrix(kind: str) -> dict[str, Any]:
    """Every fault of a kind, with the candidates that catch it."""
    suite = pool(kind)
    accused = accusing(kind, suite)
    candidates = replace(suite, rules=tuple(one for one in suite.rules if one.id not in accused))
    order = [one.id for one in candidates.rules]
    costs = asks(candidates, candidates.output or "")
    faults = {
        name: {
            "table": fault.table,
            "about": sorted(sorts_of(fault.about, order)),
            "channel": fault.channel,
            "caught": sorted(catching(fault, candidates), key=order.index),
        }
        for name, fault in KINDS[kind].faults().items()
    }
    return {"candidates": costs, "accusing the flawless": accused, "faults": faults}


def naming(row: Mapping[str, Any]) -> frozenset[str]:
    """The rules that catch a fault and say what it is about."""
    return frozenset(rule for rule in row["caught"] if sort_of(rule) in row["about"])


def chosen(kind: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """The smallest set, and what each of its rules is alone in catching."""
    own = instar.suite(kind)
    caught = {name: by for name, fault in row["faults"].items() if (by := naming(fault))}
    kept = given(own)
    rules = smallest(caught, row["candidates"], list(kept), [one.id for one in own.rules])
    return {"kept": kept, "smallest": rules, "alone": alone(caught, rules)}


# --- what people read ------------------------------------------------------------------------------

INTRODUCTION = """# Suites of our own

A suite that is named for a kind of output is ours, and the default of its kind. It is the smallest set of rules that
catches every fault which `tests/quality` seeds and a rule can catch. A few rules are kept beside it for a reason that
is given. `python -m studies.suites` chooses it and writes this page and `studies/suites.json`, which has every fault
with every candidate that catches it.

* **Candidates** are the suite's own rules, those of the papers' suites and single changes that apply to the kind. A
  chain of changes would catch more and say less. A candidate that accuses a flawless system of `tests/perfect` is none.
  Photographs are upright, so that nothing but hands is turned by quarters.
* **A rule catches a fault** where it is violated at its default threshold on the small inputs of the tests. Where its
  relation is a test, more of its tests must reject than chance explains (p ≤ 0.0001). The rule must be about the fault,
  too. Its change must be of the same sort (geometry, darkness, brightness, contrast, focus, grain, compression, colour,
  …) as those of the rules that the fault's table names. Noise may well upset a system that cannot bear blur, but who
  reads that looks for the wrong cause.
* **A condition** has to occur before a rule shows what it is for. For example, a crop that cuts no object says nothing
  about objects that are cut. Instar [counts the cases](defaults.md#how-it-is-counted) and reports rules with too few.
* **The smallest set** is exact: an integer programme finds it. Of several smallest sets it is the one that asks the
  system least, then the one with most rules that are there today, then the one whose rules catch most.

The rules were chosen on these faults, and the numbers say little about others: that is what the kept rules are for.
"""


def table(kind: str, row: Mapping[str, Any]) -> str:
    """One kind: what each rule is for and alone in catching, and what no rule is needed for."""
    purposes = instar.suite(kind).purposes
    lines = [f"## `{kind}`", "", "| rule | looks for | alone in catching |", "|---|---|---|"]
    for rule in purposes:
        purpose, _, reason = purposes[rule].partition(KEPT)
        only = "; ".join(row["alone"].get(rule, ()))
        kept = f"kept because {reason}" if reason else ""
        escaped = rule.replace("|", "\\|")
        lines.append(f"| `{escaped}` | {purpose} | {'; '.join(filter(None, (only, kept)))} |")
    caught = {name for name, fault in row["faults"].items() if naming(fault)}
    many = len(row["kept"])
    lines += [
        "",
        f"{len(row['candidates'])} candidates, {len(caught)} of {len(row['faults'])} faults caught by rules; "
        f"{len(purposes)} rules, of which {many or 'none'} {'is' if many == 1 else 'are'} kept.",
    ]
    if conditions := instar.suite(kind).conditions:
        listed = ", ".join(f"`{rule}`" for rule in conditions)
        lines += ["", f"The border has to cut something that was found: {listed}."]
    others: dict[str, list[str]] = {}
    for name, fault in row["faults"].items():
        if name not in caught:
            others.setdefault(fault["channel"], []).append(name)
    if others:
        lines += ["", "Told by other means than rules:", ""]
        lines += [f"* {channel}: {'; '.join(names)}" for channel, names in others.items()]
    if row["accusing the flawless"]:
        accusing = ", ".join(f"`{rule}`" for rule in row["accusing the flawless"])
        lines += ["", f"Not among the candidates, because they accuse flawless systems: {accusing}."]
    return "\n".join(lines) + "\n"


def page(result: Mapping[str, Any]) -> str:
    others = [f"* `tests/quality/{name}.py`: {means}" for name, means in ELSEWHERE.items()]
    elsewhere = "\n".join(["## Faults that no rule has to catch", "", *others]) + "\n"
    return "\n".join([INTRODUCTION, *(table(kind, result[kind]) for kind in KINDS), elsewhere])


def written(result: Mapping[str, Any]) -> str:
    """JSON with one fault a line."""
    lines = []
    for kind in KINDS:
        parts = []
        for key, value in result[kind].items():
            if key == "faults":
                rows = (f"   {_json(name)}: {_json(row)}" for name, row in value.items())
                parts.append('  "faults": {\n' + ",\n".join(rows) + "\n  }")
            else:
                parts.append(f"  {_json(key)}: {_json(value)}")
        lines.append(f" {_json(kind)}: {{\n" + ",\n".join(parts) + "\n }")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []], help="whose faults are run again; all by default")
    parser.add_argument("--as-is", action="store_true", help="run no fault again: only choose")
    options = parser.parse_args(arguments)
    result = json.loads(RESULT.read_text("utf-8")) if RESULT.exists() else {}
    for kind in () if options.as_is else options.kinds or KINDS:
        start = time.perf_counter()
        result[kind] = matrix(kind)
        print(f"{kind}: {time.perf_counter() - start:.0f} s", flush=True)
    for kind, row in result.items():
        row |= chosen(kind, row)
        today = {one.id for one in instar.suite(kind).rules}
        for words, rules in (("not needed", today - set(row["smallest"])), ("missing", set(row["smallest"]) - today)):
            for rule in sorted(rules):
                print(f"{kind}: {words}: {rule}")
    RESULT.write_text(written(result), "utf-8")
    PAGE.write_text(page(result), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
