"""A large run is read in pieces: cases whose rows are sought where they lie, whatever their ids are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import polars as pl
import pytest

from instar.store import Store, pieces
from tests.manifests import manifest_of

ROW = pl.lit(1)
"""The size of a prediction: pieces of so many rows."""
NAMES = [f"{number * 7919 % 1000:03d}" for number in range(1000)]
"""Ids of cases in the order in which a dataset lists them: all of 000 to 999, as if they were shuffled."""


BOTH = ("source", "mirror(h)")


def store_of(folder: Path, parts: Sequence[Sequence[tuple[str, str]]]) -> Store:
    """A run with a row for each case and follow-up, in parts."""
    store = Store(folder)
    store.write_manifest(manifest_of())
    for part in parts:
        rows = [{"case": case, "follow_up": name, "draw": 0, "repeat": 0, "status": "ok"} for case, name in part]
        store.append_predictions(rows, "poses")
    return store


def source_and_follow_up(names: Sequence[str]) -> list[tuple[str, str]]:
    return [(name, follow_up) for name in names for follow_up in BOTH]


def rows_read(store: Store, at_most: int) -> int:
    """How many rows are decoded in order to have all pieces."""
    every = [piece.places("predictions")[piece.number] for piece in pieces(store, ROW, at_most)]
    return sum(count for rows in every for _, _, count in rows.ranges)


@pytest.fixture
def no_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables are looked at as large ones are."""
    monkeypatch.setattr(import_module("instar.store.pieces"), "GAP", 1)  # the room exports its function by that name


@pytest.mark.usefixtures("no_gap")
def test_a_run_whose_cases_are_listed_in_another_order_than_their_ids_is_read_once(tmp_path: Path) -> None:
    """By ranges of ids every piece was searched for in the whole run: 20 pieces of 2,000 rows were 40,000."""
    store = store_of(tmp_path, [source_and_follow_up(NAMES[:600]), source_and_follow_up(NAMES[600:])])
    assert rows_read(store, 100) == 2000
    read = [piece.predictions(["case", "follow_up"]) for piece in pieces(store, ROW, 100)]
    assert [frame.height for frame in read] == [100] * 20
    assert pl.concat(read).equals(store.predictions(["case", "follow_up"]))  # in the order in which they are stored


HISTORIES: dict[str, Callable[[list[str]], list[list[tuple[str, str]]]]] = {
    "resumed: the case at hand when the run was killed": lambda names: [
        [*source_and_follow_up(names[:5]), (names[5], "source")],
        [(names[5], "mirror(h)"), *source_and_follow_up(names[6:])],
    ],
    "retried: what failed in every third case comes at the end": lambda names: [
        [row for row in source_and_follow_up(names) if row[0] not in names[::3] or row[1] == "source"],
        [(name, "mirror(h)") for name in names[::3]],
    ],
    "widened by a rule: every case twice": lambda names: [
        [(name, "source") for name in names],
        [(name, "mirror(h)") for name in names],
    ],
    "two workers, whose rows lie between each other": lambda names: [
        [(name, follow_up) for two in zip(names[::2], names[1::2], strict=True) for follow_up in BOTH for name in two]
    ],
    "merged of three shards": lambda names: [source_and_follow_up(names[first::3]) for first in range(3)],
}
"""How rows of a case come to lie apart."""


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.usefixtures("no_gap")
def test_all_rows_of_a_case_are_in_one_piece_in_their_order(tmp_path: Path, history: str) -> None:
    names = NAMES[:12]
    store = store_of(tmp_path, HISTORIES[history](names))
    store.append_cases([{"case": name, "status": "ok"} for name in reversed(names)], None)
    stored = store.predictions()
    read = [(piece.predictions(), piece.cases()) for piece in pieces(store, ROW, 4)]
    assert len(read) >= 6
    for predictions, cases in read:
        own = predictions["case"].unique().implode()
        assert predictions.equals(stored.filter(pl.col("case").is_in(own)))
        assert cases["case"].sort().equals(predictions["case"].unique().sort())
    assert sorted(name for _, cases in read for name in cases["case"]) == sorted(names)


@pytest.mark.usefixtures("no_gap")
def test_pieces_of_a_run_that_goes_on_are_read_by_their_cases(tmp_path: Path) -> None:
    """Parts are put together, and failed rows forgotten, while somebody looks at the run: then places are others."""
    store = store_of(tmp_path, [source_and_follow_up(NAMES[:4]), source_and_follow_up(NAMES[4:8])])
    every = list(pieces(store, ROW, 4))
    before = [piece.predictions() for piece in every]
    store.append_predictions(
        [{"case": "new", "follow_up": "source", "draw": 0, "repeat": 0, "status": "error"}], "poses"
    )
    store.merge("predictions", keep=pl.col("follow_up") != "mirror(h)")
    after = [piece.predictions() for piece in every]
    for old, new in zip(before, after, strict=True):
        assert new.equals(old.filter(pl.col("follow_up") == "source"))


def test_a_piece_has_the_columns_of_all_parts(tmp_path: Path) -> None:
    """A part that an older version wrote lacks columns, which must not depend on where a piece lies."""
    store = store_of(tmp_path, [source_and_follow_up(NAMES[:2])])
    store.append("predictions", store.predictions().with_columns(case="new " + pl.col("case"), later=pl.lit(1)))
    first, second = (piece.predictions() for piece in pieces(store, ROW, 4))
    assert first.columns == second.columns == store.predictions().columns
    assert first["later"].to_list() == [None] * 4


def test_only_cases_that_meet_a_condition_are_in_pieces(tmp_path: Path) -> None:
    store = store_of(tmp_path, [[("a", "source"), ("b", "source"), ("c", "mirror(h)"), ("a", "mirror(h)")]])
    first = pl.col("follow_up") == "source"
    assert [piece.predictions(["case"], where=first)["case"].to_list() for piece in pieces(store, ROW, 1, first)] == [
        ["a"],
        ["b"],
    ]


def test_a_run_without_predictions_has_no_pieces(tmp_path: Path) -> None:
    assert [*pieces(store_of(tmp_path, []), ROW, 1)] == []
