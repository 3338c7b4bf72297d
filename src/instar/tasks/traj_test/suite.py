"""Forecasts: a suite of our own, and TrajTest's, the paper's five relations with all their parameters.

The paper's resize factors 0.2 and 0.3 beside its own 0.25 are rescalings by 0.8 and 1.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from instar.suites import Suite, listed_suite

# fmt: off
FORECASTS: Mapping[str, str] = {  # every rule with what it is for
    "identity => wvc": "answers by chance; kept because it says how often the test rejects where nothing changes",
    "identity => varies": "a seed that is ignored, and futures that are all one",
    "mirror(h) => wvc": "left taken for right, and a bias or a preference to one side",
    "mirror(h) => hvc": "a probability map that is not mirrored with the scene, or lies beside it",
    "rotate90(1) => wvc": "x taken for y, a map that is read transposed, and one direction of the frame unlike "
    "others; kept because the predictor that comes with Instar strays most under it",
    "pad(0.35) | rotation(22.5) => wvc": "directions that snap to those of the grid",
    "rescale(2) => wvc": "lengths and speeds in pixels where the scene has another scale",
    "pad(0.25) | shift(0.15, 0.1) => wvc": "futures leaning on the middle or the edges of the frame, and positions in "
    "shares of it",
    "pad(0.2, left_right) => wvc": "positions in shares of the frame, and a letterbox that is ignored; kept because it "
    "alone changes the aspect of the frame",
    "turn_past(180) => follows": "a past that is ignored, and futures that never go anywhere",
    "obstacle(tree, 0.5, 0.5) => direction(avoid)": "paths through a tree in the way",
    "obstacle(structure, 0.5, 0.5) | rotate90(1) => direction(avoid)": "paths through the walls of a turned scene "
    "alone",
    "class_change(road, pavement) => direction(increase)": "classes of ground mixed up",
}

GEOMETRY: tuple[str, ...] = (
    "mirror(v)", "mirror(h)", "rotate90(1)", "rotate90(2)", "rotate90(3)", "rescale(0.8)", "rescale(1.2)")

CLASS_CHANGES: Mapping[str, tuple[str, ...]] = {  # Table 2: old, new, by what the probability there must do
    "decrease": ("pavement, road", "terrain, road", "pavement, terrain"),
    "increase": (
        "road, pavement", "road, terrain", "terrain, pavement",
        "structure, road", "structure, pavement", "structure, terrain",
        "tree, road", "tree, pavement", "tree, terrain"),
    "avoid": (
        "road, structure", "road, tree", "pavement, structure", "pavement, tree",
        "terrain, structure", "terrain, tree"),
}

OBSTACLES: tuple[str, ...] = (  # class, diameter and distance as shares of the predicted path
    "structure, 0.25, 0.5", "structure, 0.5, 0.5", "structure, 0.25, 1",
    "tree, 0.25, 0.5", "tree, 0.5, 0.5", "tree, 0.25, 1")
# fmt: on


def geometry(relations: tuple[str, ...], *, identity: bool) -> tuple[str, ...]:
    """Every change that moves all alike, with each of these relations; identity with the first alone."""
    own = (f"identity => {relations[0]}",) if identity else ()
    return own + tuple(f"{change} => {relation}" for change in GEOMETRY for relation in relations)


def map_rules(more: str = "") -> tuple[str, ...]:
    """Every change of the map with its expected effect; `more` are further parameters of the relation."""
    changes = [(f"class_change({pair})", effect) for effect, pairs in CLASS_CHANGES.items() for pair in pairs]
    changes += [(f"obstacle({values})", "avoid") for values in OBSTACLES]
    return tuple(f"{change} => direction({effect}{more})" for change, effect in changes)


_MOVED = geometry(("wvc", "hvc"), identity=True)
_PAPER = geometry(("wvc(8, 1, test=z)", "hvc(1)"), identity=False) + map_rules(", 8, test=wilcoxon")
SUITES: Mapping[str, Callable[[], Suite]] = {
    "forecasts": partial(
        listed_suite,
        "forecasts",
        tuple(FORECASTS),
        "Forecasts: the smallest set of rules that catches every seeded fault, and what is kept.",
        "forecast",
        panels=("trajtest",),
        purposes=FORECASTS,
    )
} | {
    name: partial(listed_suite, name, spellings, help, "forecast", panels=("trajtest",))
    for name, spellings, help in (
        (
            "trajtest",
            _MOVED + map_rules(),
            "TrajTest: mirrored, turned and rescaled scenes, changed classes and obstacles.",
        ),
        ("trajtest/geometry", _MOVED, "TrajTest: what moves map and past alike."),
        ("trajtest/map", map_rules(), "TrajTest: classes changed and obstacles in the way."),
        (
            "trajtest@paper",
            _PAPER,
            "TrajTest as published: 8 source runs, z-test per comparison, Wilcoxon's test on cells.",
        ),
    )
}
