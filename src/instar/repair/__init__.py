"""Repair: training sets from violations, retraining, and what it changed."""

from instar.repair.evaluate import compared, measured
from instar.repair.export import LABELS, Example, examples, export
from instar.repair.measures import MEASURES, TABLE, Measured, before_after, markdown, matched
from instar.repair.mutants import SHARE, Chosen, choose, exposing, mutants, presence_rules
from instar.repair.retraining import Repaired, augment, repair
from instar.repair.search import NOTHING, candidates, search
from instar.repair.splits import check_disjoint
from instar.repair.trainer import REFERENCE, Trainer, trained, trainer

__all__ = ["LABELS", "MEASURES", "NOTHING", "REFERENCE", "SHARE", "TABLE", "Chosen", "Example", "Measured", "Repaired",
           "Trainer", "augment", "before_after", "candidates", "check_disjoint", "choose", "compared", "examples",
           "export", "exposing", "markdown", "matched", "measured", "mutants", "presence_rules", "repair", "search",
           "trained", "trainer"]
