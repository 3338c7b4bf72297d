"""One version per run: whatever a worker loads must be what the run was begun with."""

from __future__ import annotations

from collections.abc import Mapping

from instar.engine.messages import WorkerInfo
from instar.store import ProviderInfo, SystemInfo


class SystemFailed(RuntimeError):
    """The system under test (or a provider) could not be loaded."""


class Changed(SystemFailed):
    """The system (or a provider) became another version while the run was under way. What it was before is stored."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}. Answers of two versions do not belong in one run, and none of the new version's were stored: "
            "put the earlier version back and start again, which goes on with what is missing, or give another folder "
            "(`out`)"
        )


def refuse_other(first: WorkerInfo, other: WorkerInfo) -> None:
    """Raise Changed where a worker loaded something else than the first one of the run."""
    refuse_changed(first.system.name, first.files, other.files)
    pairs: list[tuple[SystemInfo | ProviderInfo, SystemInfo | ProviderInfo]] = [(first.system, other.system)]
    pairs += [(who, other.providers[need]) for need, who in first.providers.items() if need in other.providers]
    for before, now in pairs:
        if before != now:
            raise Changed(
                f"{before.name} is not what the run was begun with (fingerprint {before.fingerprint}, now "
                f"{now.fingerprint}): a worker that was started later loaded another configuration or version of it"
            )


def refuse_changed(name: str, before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Raise Changed where a file that two workers loaded was not the same for both."""
    for path, digest in now.items():
        if before.get(path, digest) != digest:
            raise Changed(
                f"{path} changed while the run was under way: a worker that was started later loaded {name} or its "
                "rules with another content of it than the first one"
            )


def difference(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """What of a system is not what it was, in words."""
    if not before:
        return "its code, configuration or weights changed"
    changes = [f"{name} changed" for name, value in now.items() if before.get(name, value) != value]
    changes += [f"{name} is new in it" for name in now if name not in before]
    changes += [f"{name} is no longer part of it" for name in before if name not in now]
    if not changes:
        return "its adapter in Instar, or a library that it uses, is of another version"
    return ", ".join(changes[:4]) + (f", and {len(changes) - 4} more" if len(changes) > 4 else "")
