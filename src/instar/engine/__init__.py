"""Who predicts what, where, and what is left to do; and how verdicts come of it."""

from instar.engine.coordinator import SystemFailed
from instar.engine.judge import check_options, chunks, evidence, judge
from instar.engine.judging import DEFAULT, Judging, judging_id, stored_judging
from instar.engine.needs import Need, Provider, provided, provider
from instar.engine.options import JudgingOption, judging_options, parsed_options
from instar.engine.plan import SOURCE, Plan, bound_rules, make_plan
from instar.engine.predict import Conflict, Estimate, Outcome, Progress, default_workers, estimate, predict

__all__ = [
    "DEFAULT",
    "SOURCE",
    "Conflict",
    "Estimate",
    "Judging",
    "JudgingOption",
    "Need",
    "Outcome",
    "Plan",
    "Progress",
    "Provider",
    "SystemFailed",
    "bound_rules",
    "check_options",
    "chunks",
    "default_workers",
    "estimate",
    "evidence",
    "judge",
    "judging_id",
    "judging_options",
    "make_plan",
    "parsed_options",
    "predict",
    "provided",
    "provider",
    "stored_judging",
]
