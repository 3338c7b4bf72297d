"""Is this adapter right? Questions with known answers, asked of a system before a night is spent on it.

Each finding says what was seen and what to change. A system that raises gets a finding, too.
"""

from instar.systems.check.findings import SAMPLES, check_system
from instar.systems.check.patience import watched
from instar.systems.check.results import Finding

__all__ = ["SAMPLES", "Finding", "check_system", "watched"]
