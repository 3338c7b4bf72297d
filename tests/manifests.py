"""Manifests of runs that never were: what a test says, and plain values for the rest."""

from __future__ import annotations

from typing import Any

from instar.store import Machine, Manifest, SystemInfo


def manifest_of(kind: str = "poses", **values: Any) -> Manifest:
    system = SystemInfo("a-system", kind, "fingerprint", deterministic=True, seedable=True, takes="image")
    return Manifest(
        "0", "2026-01-01", "2026-01-01", Machine("Linux", "6", "x86_64", "3.11", 2), {}, system, **{"seed": 0, **values}
    )
