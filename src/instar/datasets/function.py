"""Any Python function as a dataset: `package.module:function`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from instar.case import Case
from instar.datasets.dataset import Dataset, Distinct
from instar.datasets.listing import path_id


def from_function(function: Callable[[], Iterable[object]], name: str) -> Dataset:
    """A function that returns cases, or paths of pictures, as a Dataset. It is asked anew for every pass.

    Its order is kept, and should be the same every time. Paths are relative to the current folder.
    """
    root = Path.cwd()
    cases = partial(_cases, function, name, root)
    first = next(cases(), None)  # mistakes show at once, not in the middle of a run
    if first is None:
        raise ValueError(f"{name} gives no cases")
    return Dataset(name, str(root), cases, getattr(first.truth, "kind", None), inputs=first.kind)


def _cases(function: Callable[[], Iterable[object]], name: str, root: Path) -> Iterator[Case]:
    distinct = Distinct()
    answer = function()
    if isinstance(answer, str) or not isinstance(answer, Iterable):
        raise TypeError(
            f"{name} returned {type(answer).__name__}; a dataset function returns an iterable of Case, or of paths"
        )
    for item in answer:
        if isinstance(item, Case):
            if distinct(item.id) != item.id:
                raise ValueError(f"{name}: two cases have the id {item.id!r}; ids must differ")
            yield item
        elif isinstance(item, str | Path):
            path = root / item
            yield Case(distinct(path_id(path, root)), str(path))
        else:
            raise TypeError(f"{name} gives {type(item).__name__}; a dataset function gives Case or paths")
