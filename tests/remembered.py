"""Follow-ups that are made once: all faulty and flawless systems of a kind are asked about the same ones."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping

import pytest
import xxhash

from instar import Zones
from instar.case import Input
from instar.engine.follow_up import make_follow_up
from instar.engine.needs import Need
from instar.pool import Pool
from instar.transforms import Change, NotApplicable, Transformation

MOST = 1000
"""Of a tenth of a megabyte each, as a rule."""
_made: OrderedDict[Hashable, tuple[Input, Change]] = OrderedDict()


def _content(need: Need | NotApplicable) -> bytes | str:
    if isinstance(need, Pool):
        return need.fingerprint
    assert not isinstance(need, NotApplicable)
    kept = need.labels.tobytes() if isinstance(need, Zones) else pickle.dumps(need.row())
    return xxhash.xxh3_128_digest(kept)


def _made_once(
    seed: int,
    case: str,
    source: Input,
    transformation: Transformation,
    draw: int,
    needs: Mapping[str, Need | NotApplicable],
) -> tuple[Input, Change]:
    """As `make_follow_up`; what needs more than the input is told apart by the content of that."""
    needed = {name: needs[name] for name in sorted(transformation.needs & needs.keys())}
    if any(isinstance(need, NotApplicable) for need in needed.values()):
        return make_follow_up(seed, case, source, transformation, draw, needs)
    chance = (seed, case, draw) if transformation.random else ()
    key = (source.content_hash(), transformation.id, *chance, *map(_content, needed.values()))
    if key not in _made:
        _made[key] = make_follow_up(seed, case, source, transformation, draw, needs)
        if len(_made) > MOST:
            _made.popitem(last=False)
    return _made[key]


@pytest.fixture(scope="module", autouse=True)
def follow_ups_made_once() -> Iterator[None]:
    """For the tests of a folder whose conftest imports this."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("instar.engine.maker.make_follow_up", _made_once)
        yield
