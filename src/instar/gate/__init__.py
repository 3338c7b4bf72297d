"""May it ship? A run held to a policy, with the reasons in words and in the formats that build servers read."""

from instar.gate.check import Check
from instar.gate.checks import checked
from instar.gate.formats import WorstPair, junit, markdown, sarif
from instar.gate.policy import Graph, Limit, NoWorse, Policy, PolicyError, read_policy
from instar.gate.proposal import Proposed, new_policy, proposed_limits
from instar.gate.until import until_sure

# fmt: off
__all__ = [
    "Check", "Graph", "Limit", "NoWorse", "Policy", "PolicyError", "Proposed", "WorstPair", "checked", "junit",
    "markdown", "new_policy", "proposed_limits", "read_policy", "sarif", "until_sure",
]
# fmt: on
