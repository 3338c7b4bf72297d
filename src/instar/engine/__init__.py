"""Who predicts what, where, and what is left to do; and how verdicts come of it."""

from instar.engine.check import Finding, check_system
from instar.engine.export import export_inputs, opened_export
from instar.engine.local import SystemFailed
from instar.engine.needs import Need, Provider, provided, provider
from instar.engine.plan import SOURCE, Plan, bound_rules, make_plan
from instar.engine.pool import MadePool, PoolProgress, make_pool
from instar.engine.predictions import Conflict, Estimate, Outcome, Progress, default_workers, estimate, predict
from instar.engine.recorded import import_outputs
from instar.engine.tables import columns_of
from instar.engine.verdicts import DEFAULT, check_options, chunks, evidence, judge, judging_id

__all__ = ["DEFAULT", "SOURCE", "Conflict", "Estimate", "Finding", "MadePool", "Need", "Outcome", "Plan",
           "PoolProgress", "Progress", "Provider", "SystemFailed", "bound_rules", "check_options", "check_system",
           "chunks", "columns_of", "default_workers", "estimate", "evidence", "export_inputs", "import_outputs",
           "judge", "judging_id", "make_plan", "make_pool", "opened_export", "predict", "provided", "provider"]
