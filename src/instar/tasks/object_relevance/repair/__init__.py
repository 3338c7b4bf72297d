"""Repair: training sets from violations, retraining, and what it changed."""

from instar.tasks.object_relevance.repair.evaluate import compared, measured
from instar.tasks.object_relevance.repair.export import LABELS, Example, examples, export
from instar.tasks.object_relevance.repair.measures import MEASURES, TABLE, Measured, before_after, markdown, matched
from instar.tasks.object_relevance.repair.mutants import SHARE, Chosen, choose, exposing, mutant_rules, mutants
from instar.tasks.object_relevance.repair.retraining import Repaired, augment, repair
from instar.tasks.object_relevance.repair.search import NOTHING, candidates, search
from instar.tasks.object_relevance.repair.splits import check_disjoint
from instar.tasks.object_relevance.repair.trainer import REFERENCE, Trainer, trained, trainer

# fmt: off
__all__ = [
    "LABELS", "MEASURES", "NOTHING", "REFERENCE", "SHARE", "TABLE", "Chosen", "Example", "Measured", "Repaired",
    "Trainer", "augment", "before_after", "candidates", "check_disjoint", "choose", "compared", "examples", "export",
    "exposing", "markdown", "matched", "measured", "mutant_rules", "mutants", "repair", "search", "trained", "trainer",
]
# fmt: on
