"""Who predicts what, where, and what is left to do; and how verdicts come of it."""

from instar.engine.cases import case_row, read_case
from instar.engine.follow_up import NoFollowUp, error_text, make_follow_up
from instar.engine.judge import check_options, chunks, evidence, judge, verdicts_of
from instar.engine.judging import DEFAULT, Judging, judging_id, stored_judging
from instar.engine.manifest import Conflict
from instar.engine.merge import merge
from instar.engine.needs import Need, Provider, provided, provider, stored_provider
from instar.engine.options import JudgingOption, judging_options, parsed_options
from instar.engine.order import Order
from instar.engine.plan import (
    SOURCE,
    SOURCE_ANSWERED,
    Choice,
    Key,
    Plan,
    bound_rules,
    make_plan,
    refuse_unloaded,
    unloaded_code,
)
from instar.engine.predict import Estimate, estimate, forget_changed, predict
from instar.engine.process import default_workers
from instar.engine.progress import Outcome, Progress
from instar.engine.versions import SystemFailed
from instar.engine.visible import visible_change
from instar.engine.zones import with_right_zones

# fmt: off
__all__ = [
    "DEFAULT", "SOURCE", "SOURCE_ANSWERED", "Choice", "Conflict", "Estimate", "Judging", "JudgingOption", "Key",
    "Need", "NoFollowUp", "Order", "Outcome", "Plan", "Progress", "Provider", "SystemFailed", "bound_rules",
    "case_row", "check_options", "chunks", "default_workers", "error_text", "estimate", "evidence", "forget_changed",
    "judge", "judging_id", "judging_options", "make_follow_up", "make_plan", "merge", "parsed_options", "predict",
    "provided", "provider", "read_case", "refuse_unloaded", "stored_judging", "stored_provider", "unloaded_code",
    "verdicts_of", "visible_change", "with_right_zones",
]
# fmt: on
