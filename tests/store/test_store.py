"""The run folder against a simple model of it: a list of rows."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import xxhash
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from instar.store import VERDICT, Damaged, JudgingInfo, NoRun, Store, pieces, rows_frame
from instar.store import store as store_module
from tests.manifests import manifest_of


class StoreModel(RuleBasedStateMachine):
    """Appending, merging, forgetting and dying between any two renames never change what is read, but for the asked."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.store = Store(self.folder.name)
        self.store.write_manifest(manifest_of())
        self.rows: list[tuple[str, int, str]] = []
        self.number = 0

    @staticmethod
    def case(number: int) -> str:
        """Rows of five cases by turns, in another order than their ids."""
        return f"c{number * 3 % 5}"

    @rule(count=st.integers(1, 4), status=st.sampled_from(["ok", "error"]))
    def append(self, count: int, status: str) -> None:
        rows = []
        for _ in range(count):
            self.number += 1
            points = np.arange(self.number % 3 * 2, dtype=np.float32)
            rows.append(
                {
                    "case": self.case(self.number),
                    "follow_up": "source",
                    "draw": 0,
                    "repeat": self.number,
                    "status": status,
                    "points": points if status == "ok" else None,
                }
            )
            self.rows.append((self.case(self.number), self.number, status))
        self.store.append_predictions(rows, "poses")

    @rule(at_most=st.integers(1, 12))
    def merge(self, at_most: int) -> None:
        self.store.merge("predictions", at_most=at_most)

    @rule()
    def forget_failed(self) -> None:
        self.store.merge("predictions", keep=pl.col("status") == "ok")
        self.rows = [row for row in self.rows if row[2] == "ok"]

    @rule()
    def die_before_old_parts_are_deleted(self) -> None:
        """A merge that was killed between its rename and the deletion of what it merged."""
        unlink = Path.unlink
        try:
            Path.unlink = lambda self, missing_ok=False: None  # type: ignore[method-assign]
            self.store.merge("predictions")
        finally:
            Path.unlink = unlink  # type: ignore[method-assign]

    @rule()
    def read_in_pieces(self) -> None:
        """Every case is in one piece, with all its rows in their order."""
        names = ["case", "repeat", "status"]
        read = [piece.predictions(names, again=True).rows() for piece in pieces(self.store, pl.lit(1), 3)]
        assert sorted(row for rows in read for row in rows) == sorted(self.rows)
        for rows in read:
            cases = {case for case, _, _ in rows}
            assert rows == [row for row in self.rows if row[0] in cases]

    @invariant()
    def reads_what_was_written(self) -> None:
        if hasattr(self, "store"):
            assert self.store.predictions(["case", "repeat", "status"], again=True).rows() == self.rows

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()


TestStoreModel = StoreModel.TestCase
TestStoreModel.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)


def appended(store: Store, count: int) -> list[str]:
    """The names of so many cases, each committed for itself."""
    names = [f"{number:03d}" for number in range(count)]
    for name in names:
        store.append_needs([{"case": name, "need": "zones", "status": "ok"}])
    return names


def test_a_run_that_is_killed_late_has_few_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody merges them at its end, and to go on with thousands of parts would take a minute."""
    monkeypatch.setattr(store_module, "SPANS", (4, 16))
    store = Store(tmp_path)
    names = appended(store, 70)
    assert store.needs()["case"].to_list() == names
    assert len(store.state("needs")) == 70 // 16 + 70 % 16 // 4 + 70 % 4
    assert len(list((tmp_path / "needs").iterdir())) == len(store.state("needs")), "what was merged is deleted"


def test_large_parts_are_left_alone_while_a_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To write every row anew at every merge would take longer, the longer the run."""
    monkeypatch.setattr(store_module, "SPANS", (4, 16))
    monkeypatch.setattr(store_module, "SMALL", 8)
    store = Store(tmp_path)
    names = appended(store, 64)
    assert [int(name[:10]) for name in store.state("needs")] == list(range(0, 64, 8))
    assert store.needs()["case"].to_list() == names


def test_a_damaged_part_does_not_stop_the_run_that_wrote_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes after it is committed all the same; whoever reads the table is told."""
    monkeypatch.setattr(store_module, "SPANS", (4,))
    store = Store(tmp_path)
    appended(store, 2)
    path = next((tmp_path / "needs").iterdir())
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    appended(store, 4)
    assert len(store.state("needs")) == 6
    with pytest.raises(Damaged, match="repair-run"):
        store.needs()


def test_a_half_written_part_is_not_there(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write_manifest(manifest_of())
    (tmp_path / "predictions").mkdir()
    (tmp_path / "predictions" / f".{'0a' * 16}.part").write_bytes(b"half")
    assert store.predictions().is_empty()
    with store.lock():
        pass
    assert not list((tmp_path / "predictions").iterdir()), "the next writer clears what a killed one left"


def test_a_folder_of_runs_names_them(tmp_path: Path) -> None:
    for name in "ab":
        Store(tmp_path / name).write_manifest(manifest_of())
    with pytest.raises(NoRun, match=rf"holds no run .*; folders in it do: {tmp_path}/a, {tmp_path}/b$"):
        Store(tmp_path).manifest()
    assert Store(tmp_path).place.instead(most=1).endswith("/a and 1 more")


def test_a_folder_without_a_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoRun, match=r"holds no run .*instar run"):
        Store(tmp_path).manifest()
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(NoRun, match="damaged"):
        Store(tmp_path).manifest()
    (tmp_path / "manifest.json").write_text('{"format": 99, "instar": "7.0"}')
    with pytest.raises(NoRun, match=r"format 99.*Instar 7\.0"):
        Store(tmp_path).manifest()


def test_blobs_are_stored_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    name = xxhash.xxh3_128_hexdigest(b"mask")
    store.put_blob(name, b"mask")
    before = next((tmp_path / "blobs").glob("*/*")).stat().st_mtime_ns
    store.put_blob(name, b"mask")
    assert store.blob(name) == b"mask"
    assert next((tmp_path / "blobs").glob("*/*")).stat().st_mtime_ns == before


def test_rows_need_not_have_every_column() -> None:
    schema: dict[str, pl.DataType | type[pl.DataType]]
    schema = {"a": pl.String, "b": pl.List(pl.Float32), "c": pl.List(pl.String), "d": pl.Int32}
    frame = rows_frame([{"a": "x", "b": np.zeros(3, np.float32)}, {"c": ["y"], "d": 4}, {"b": [1.0, 2.0]}], schema)
    assert frame.schema == pl.Schema(schema)
    assert frame.rows() == [("x", [0, 0, 0], [], None), (None, [], ["y"], 4), (None, [1, 2], [], None)]


def test_what_is_known_of_a_judging_is_read_as_it_was_written(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write_manifest(manifest_of())
    info = JudgingInfo("0", {"confidence": 0.3}, ("mirror(h) => poses",), ("0-0",), ("0-1",))
    verdicts = rows_frame([{"case": "a", "rule": "mirror(h) => poses", "severity": 0.5}], VERDICT)
    assert store.judging_info("some") is None
    store.replace_verdicts("some", iter([verdicts, verdicts]), info)
    assert store.judging_info("some") == replace(info, parts=(0, 2))
    store.replace_verdicts("some", iter([verdicts]), info)
    assert store.judging_info("some") == replace(info, parts=(2, 3))
    assert store.verdicts("some").height == 1
    (tmp_path / "verdicts" / "some" / "judging.json").write_text('{"options": {}}')
    assert store.judging_info("some") is None
