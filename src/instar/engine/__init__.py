"""Who predicts what, where, and what is left to do; and how verdicts come of it."""

from instar.engine.check import Finding, check_system
from instar.engine.local import SystemFailed
from instar.engine.needs import Need, Provider, provided, provider
from instar.engine.plan import SOURCE, Plan, bound_rules, make_plan
from instar.engine.pool import MadePool, PoolProgress, make_pool
from instar.engine.predictions import Conflict, Estimate, Outcome, Progress, default_workers, estimate, predict
from instar.engine.verdicts import DEFAULT, check_options, chunks, evidence, judge, judging_id

__all__ = ["DEFAULT", "SOURCE", "Conflict", "Estimate", "Finding", "MadePool", "Need", "Outcome", "Plan",
           "PoolProgress", "Progress", "Provider", "SystemFailed", "bound_rules", "check_options", "check_system",
           "chunks", "default_workers", "estimate", "evidence", "judge", "judging_id", "make_plan", "make_pool",
           "predict", "provided", "provider"]
