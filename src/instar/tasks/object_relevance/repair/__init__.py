"""Repair: training sets from violations, retraining, and what it changed."""

from instar.tasks.object_relevance.repair.evaluate import compared, evaluate, evaluation_text, measured
from instar.tasks.object_relevance.repair.export import LABELS, NO_VALIDATION, Example, classes_of, examples, export
from instar.tasks.object_relevance.repair.measures import (
    COMPARED,
    MEASURES,
    TABLE,
    Measured,
    before_after,
    markdown,
    matched,
    measure_text,
)
from instar.tasks.object_relevance.repair.mutants import SHARE, Chosen, choose, exposing, mutant_rules, mutants
from instar.tasks.object_relevance.repair.retraining import Repaired, augment, repair
from instar.tasks.object_relevance.repair.search import NOTHING, candidates, search
from instar.tasks.object_relevance.repair.splits import check_disjoint
from instar.tasks.object_relevance.repair.trainer import REFERENCE, Trainer, trained, trainer

# fmt: off
__all__ = [
    "COMPARED", "LABELS", "MEASURES", "NOTHING", "NO_VALIDATION", "REFERENCE", "SHARE", "TABLE", "Chosen", "Example",
    "Measured", "Repaired", "Trainer", "augment", "before_after", "candidates", "check_disjoint", "choose",
    "classes_of", "compared", "evaluate", "evaluation_text", "examples", "export", "exposing", "markdown", "matched",
    "measure_text", "measured", "mutant_rules", "mutants", "repair", "search", "trained", "trainer",
]
# fmt: on
