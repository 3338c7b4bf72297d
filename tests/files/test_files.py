"""A file is there whole or not at all, and holds texts alone."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import polars as pl
import pytest

from instar.files import clear_unfinished, path_of, path_text, place_file, storable


def test_a_file_replaces_the_one_before_and_leaves_nothing_beside(tmp_path: Path) -> None:
    path = tmp_path / "deep" / ("ä" * 120)  # 240 bytes: nothing can be added to such a name
    assert place_file(path, b"first") == path
    place_file(path, lambda place: place.write_text("second"))
    assert path.read_text() == "second"
    assert list(path.parent.iterdir()) == [path]


def test_a_writer_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = place_file(tmp_path / "kept", b"whole")

    def half(place: Path) -> None:
        place.write_bytes(b"wh")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        place_file(path, half)
    assert path.read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("path", ["a/b.png", "ä/ö.png", "caf\udce9/1.png", "100%\udcff.png", "file://x", "file://x%41"])
def test_a_path_is_written_down_so_that_it_can_be_opened_again(path: str) -> None:
    text = path_text(path)
    text.encode("utf-8")
    assert path_of(text) == path
    assert (text == path) is (path in ("a/b.png", "ä/ö.png")), "only what is no text is spelled"


def test_a_text_that_no_file_could_hold_is_spelled_and_can_be_read_by_people() -> None:
    assert storable("größe 😀") == "größe 😀"
    assert storable("a\ud83dz") == "a<U+D83D>z"
    assert json.loads(storable(json.dumps({"a": "\udce9"}, ensure_ascii=False))) == {"a": "<U+DCE9>"}
    assert path_text("\ud83d.png") == "<U+D83D>.png", "no file can be called that"


def test_only_what_killed_writers_left_is_cleared_and_nothing_below(tmp_path: Path) -> None:
    own, users = f".{'0f' * 16}.part", [".film.mkv.part", f"{'0f' * 16}.part", f".{'0f' * 16}.part.zip"]
    (tmp_path / "sub").mkdir()
    for name in (own, *users, f"sub/{own}"):
        (tmp_path / name).touch()
    clear_unfinished([tmp_path, tmp_path / "nowhere"])
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert left == {*users, "sub", f"sub/{own}"}


def test_a_full_disk_names_the_file_whoever_writes_it(tmp_path: Path) -> None:
    def python(place: Path) -> None:
        raise OSError(28, "No space left on device")

    def polars(place: Path) -> None:
        raise pl.exceptions.ComputeError("parquet: underlying IO error: No space left on device (os error 28)")

    for writer in (python, polars):
        with pytest.raises(OSError, match=r"No space left on device.*the same command goes on.*'.*/kept'"):
            place_file(tmp_path / "kept", writer)


def test_a_disk_that_is_full_at_any_byte_of_a_table_is_told_as_a_full_disk(tmp_path: Path) -> None:
    table = pl.DataFrame({f"column_{one}": [f"photos/{number}.jpg" for number in range(30)] for one in range(60)})
    table.write_parquet(tmp_path / "whole")
    size = (tmp_path / "whole").stat().st_size  # most of it is what ends the file: there polars says it in other words
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for write in (table.write_parquet, table.lazy().sink_parquet):
        for most in (*range(0, size, 997), size - 1):
            try:
                resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
                with pytest.raises(OSError, match="it was not written: File too large") as refused:
                    place_file(tmp_path / "table", write)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            assert refused.value.filename == str(tmp_path / "table")
            assert [path.name for path in tmp_path.iterdir()] == ["whole"]


def test_a_writer_with_a_mistake_is_not_told_as_a_full_disk(tmp_path: Path) -> None:
    def mistaken(place: Path) -> None:
        place.write_bytes(b"half")
        raise pl.exceptions.ComputeError("no such column")

    with pytest.raises(pl.exceptions.ComputeError, match="no such column"):
        place_file(tmp_path / "table", mistaken)
    assert not [*tmp_path.iterdir()]
