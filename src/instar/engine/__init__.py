"""Who predicts what, where, and what is left to do; and how verdicts come of it."""

from instar.engine.verdicts import DEFAULT, judge, judging_id
from instar.engine.local import SystemFailed
from instar.engine.plan import SOURCE, Plan, bound_rules, make_plan
from instar.engine.predictions import Conflict, Outcome, Progress, default_workers, predict

__all__ = ["DEFAULT", "SOURCE", "Conflict", "Outcome", "Plan", "Progress", "SystemFailed", "bound_rules",
           "default_workers", "judge", "judging_id", "make_plan", "predict"]
