"""A file is there whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from instar.files import place_file


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
