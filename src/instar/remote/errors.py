"""What can go wrong with an object at an address."""

from __future__ import annotations


class Unreachable(OSError):
    """An object that cannot be read or written; the message names its address, says why and holds no credentials."""


class TooLarge(Unreachable):
    """An object that has more bytes than may be read of it: the message says how many, and not yet how many may."""


class Missing(Unreachable, FileNotFoundError):
    """There is no such object."""


class Changed(Unreachable):
    """An object is not any more as it was when it was last seen, or is there already; nothing was written."""


class Advisory(UserWarning):
    """Something that whoever writes to a bucket must know, in one sentence."""
