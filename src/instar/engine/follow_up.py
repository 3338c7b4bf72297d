"""The one maker of follow-ups: a run, an export, a preview, a picture and a mutant all get the same from it."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Literal

from instar.case import Input
from instar.engine.needs import Need
from instar.own import failed_at, place_of
from instar.secrets import without_secrets
from instar.transforms import Change, NotApplicable, Transformation, draw_seed

MOST_LETTERS = 500
"""How much of an exception's message is kept."""


class NoFollowUp(NotApplicable):
    """Why a case has no follow-up: the transformation says nothing about it, or it failed (`status` is `error`)."""

    def __init__(self, message: str, status: Literal["not applicable", "error"] = "not applicable") -> None:
        super().__init__(message)
        self.status = status


def make_follow_up(
    seed: int,
    case: str,
    source: Input,
    transformation: Transformation,
    draw: int,
    needs: Mapping[str, Need | NotApplicable],
) -> tuple[Input, Change]:
    """The follow-up of a case's input and what was done to it, or raises NoFollowUp.

    `seed` is the run's and `case` the id of the case. A need that is the reason why it cannot be had is the reason why
    there is no follow-up; of several, each of them is.
    """
    known: dict[str, Need] = {}
    if transformation.needs:
        missing: dict[str, None] = {}
        for need in sorted(transformation.needs & needs.keys()):  # a set's own order is another one in each process
            value = needs[need]
            if isinstance(value, NotApplicable):
                missing[str(value)] = None
            else:
                known[need] = value
        if missing:
            raise NoFollowUp("; ".join(missing))
    try:
        chance = draw_seed(seed, case, transformation, draw) if transformation.random else 0
        return transformation(source, needs=known, seed=chance)
    except NotApplicable as error:
        raise NoFollowUp(str(error)) from error
    except Exception as error:
        raise NoFollowUp(f"the transformation failed: {error_text(error)}", "error") from error


def error_text(error: Exception) -> str:
    """An exception in one line, with where it was raised: in the user's own code, if it came by there."""
    frames = traceback.extract_tb(error.__traceback__)
    own = failed_at(error)
    where = f" ({place_of(own or frames[-1])})" if frames else ""
    text = " ".join(without_secrets(str(error)).split())
    if len(text) > MOST_LETTERS:  # cut between words
        text = f"{text[:MOST_LETTERS].rpartition(' ')[0] or text[:MOST_LETTERS]} …"
    return f"{type(error).__name__}: {text}{where}" if text else f"{type(error).__name__}{where}"
