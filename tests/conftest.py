"""Nothing here fails for being slow: what things cost is in `benchmarks/`. What was skipped is counted at the end."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
import typer.testing
from hypothesis import settings

settings.register_profile("instar", deadline=None, max_examples=50)
settings.load_profile("instar")
# else all commands are made anew, with their parameters, for each one that is typed
typer.testing._get_command = cache(typer.main.get_command)  # type: ignore[attr-defined]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = Counter(
        report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.stats.get("skipped", [])
    )
    for reason, count in sorted(skipped.items(), key=lambda each: (-each[1], each[0])):
        terminalreporter.write_line(f"skipped {count}: {reason}")
