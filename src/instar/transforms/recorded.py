"""Follow-ups that were made elsewhere: Instar can judge what was said of them, and cannot make them."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from instar.case import Input
from instar.spelling import Parameter
from instar.transforms.change import Change
from instar.transforms.family import Needs, NotApplicable, TransformationFamily, Values


def recorded(source: Input, needs: Needs, rng: np.random.Generator, *, name: str) -> NoReturn:
    raise NotApplicable(f"{name} was recorded elsewhere: Instar cannot make this follow-up")


class _Recorded(TransformationFamily):
    """Takes no input, and says why before anybody asks which it takes."""

    __slots__ = ()

    def apply(self, source: Input, needs: Needs, rng: np.random.Generator, values: Values) -> tuple[Input, Change]:
        followed: tuple[Input, Change] = self.function(source, needs, rng, **values)
        return followed


# fmt: off
FAMILIES = (
    # random: a record may hold several draws of it
    _Recorded("recorded", "recorded", "general", recorded,
              (Parameter("name", "text", help="what the follow-up is called where it was made"),),
              "Made elsewhere: only outputs that `instar import` reads can have it.", random=True, inputs=(),
              words="{name}, made elsewhere"),
)
# fmt: on
