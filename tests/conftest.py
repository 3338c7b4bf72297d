"""Nothing here fails for being slow: what things cost is in `benchmarks/`."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("instar", deadline=None)
settings.load_profile("instar")
