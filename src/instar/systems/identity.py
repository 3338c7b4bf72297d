"""What a fingerprint covers: by name, so that a run can say it, and can say which of it changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

SHOWN_PARTS = 5
"""Parts that are named in a line; the run folder's manifest has all."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What identifies a system: `parts` by name, each with what stands for it (a hash, a version), and how large files
    are; what there is `besides`, and what is `unwatched`, in words."""

    parts: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    besides: tuple[str, ...] = ()
    unwatched: tuple[str, ...] = ()

    def words(self, name: str) -> str:
        """What a run says of its system when it starts, in one line; of many parts the first.

        >>> Identity({"mine.py": "5c33"}, {"mine.py": 900}, ("its options",)).words("mine:predict")
        'mine:predict is identified by mine.py and its options.'
        """
        parts = [
            f"{part} ({size / 1e6:,.0f} MB)" if (size := self.sizes.get(part, 0)) > 5e5 else part for part in self.parts
        ]
        more = [f"{len(parts) - SHOWN_PARTS} more"] if len(parts) > SHOWN_PARTS else []
        names = [*parts[:SHOWN_PARTS], *more, *self.besides] or ["its fingerprint alone"]
        listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
        return f"{'; '.join([f'{name} is identified by {listed}', *self.unwatched])}."


_noted: ContextVar[list[Identity] | None] = ContextVar("noted", default=None)


@contextmanager
def identities_noted() -> Iterator[list[Identity]]:
    """The files and the systems that what is loaded meanwhile is made of."""
    noted: list[Identity] = []
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


def note(identity: Identity) -> None:
    """Tell whoever loads a system what else it is made of."""
    noted = _noted.get()
    if noted is not None:
        noted.append(identity)


def together(identities: Sequence[Identity], *besides: str) -> Identity:
    """Several as one. A file is called by its name alone where there is only one of that name."""
    parts = {name: value for one in identities for name, value in one.parts.items()}
    sizes = {name: size for one in identities for name, size in one.sizes.items()}
    names = [Path(name).name for name in parts]
    short = {
        name: last if Path(name).is_absolute() and names.count(last) == 1 else name
        for name, last in zip(parts, names, strict=True)
    }
    return Identity(
        {short[name]: value for name, value in parts.items()},
        {short[name]: size for name, size in sizes.items()},
        tuple(dict.fromkeys([*besides, *(word for one in identities for word in one.besides)])),
        tuple(dict.fromkeys(word for one in identities for word in one.unwatched)),
    )
