"""What verdicts say: rates with confidence, curves over thresholds, the worst cases."""

from instar.analysis.rates import any_rule, by_case, curve, rates, violated, worst

__all__ = ["any_rule", "by_case", "curve", "rates", "violated", "worst"]
