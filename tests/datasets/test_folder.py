from __future__ import annotations

import os
import tempfile
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.case import read_input
from instar.datasets import dataset
from instar.image import Unreadable
from tests.missing import not_as_root, unsuited

Write = Callable[..., Path]


def test_all_sub_folders_sorted_by_id(tmp_path: Path, picture: Write) -> None:
    names = ["b.png", "a/z.png", "a/b/c.png", "a-b/x.png", "a.png", "Z.PNG", "ä/x.JpG", "a/b.jpeg"]
    for name in names:
        picture(tmp_path / name)
    found = [case.id for case in dataset(tmp_path).cases()]
    assert found == sorted(names)
    assert [case.id for case in dataset(tmp_path).cases()] == found


def test_what_is_left_out_is_noted(tmp_path: Path, picture: Write) -> None:
    for name in ("a.png", ".hidden.png", ".git/x.png", "notes.txt", "b.txt", "README", "c.heic"):
        picture(tmp_path / name)
    found = dataset(tmp_path)
    assert [case.id for case in found.cases()] == ["a.png"]
    assert found.notes == ("4 files are no pictures: .txt 2, .heic 1, no ending 1",)


def test_broken_pictures_are_cases(tmp_path: Path) -> None:
    (tmp_path / "empty.jpg").touch()
    (tmp_path / "broken.png").write_bytes(b"rubbish")
    (tmp_path / "gone.png").symlink_to("nowhere.png")
    cases = list(dataset(tmp_path).cases())
    assert [case.id for case in cases] == ["broken.png", "empty.jpg", "gone.png"]
    for case in cases:
        with pytest.raises(Unreadable):
            read_input(case)


def test_links(tmp_path: Path, picture: Write) -> None:
    picture(tmp_path / "real" / "a.png")
    (tmp_path / "real" / "up").symlink_to(tmp_path)
    (tmp_path / "real" / "self").symlink_to(".")
    (tmp_path / "other").symlink_to("real")
    found = dataset(tmp_path)
    assert [case.id for case in found.cases()] == ["other/a.png", "real/a.png"]
    assert found.notes == ("4 links to a folder above not followed: other/self/, other/up/, real/self/ and 1 more",)


def test_folders_that_cannot_be_opened_are_noted(tmp_path: Path, picture: Write) -> None:
    not_as_root()
    picture(tmp_path / "a.png")
    (tmp_path / "closed").mkdir(mode=0)
    assert dataset(tmp_path).notes == ("1 folder cannot be opened: closed/",)


def test_closed_folders_are_noted_for_root_too(tmp_path: Path, picture: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    picture(tmp_path / "a.png")
    (tmp_path / "closed").mkdir()
    real = os.scandir

    def scandir(path: Path) -> object:
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr("os.scandir", scandir)
    assert dataset(tmp_path).notes == ("1 folder cannot be opened: closed/",)


def test_names_that_differ_only_in_how_accents_are_written(tmp_path: Path, picture: Write) -> None:
    nfc, nfd = (unicodedata.normalize(form, "é") for form in ("NFC", "NFD"))
    for name in (f"{nfc}.png", f"{nfd}.png", f"{nfc}/b.png", f"{nfd}/a.png", f"{nfd}/b.png"):
        picture(tmp_path / name)
    if len(list(tmp_path.iterdir())) < 4:
        unsuited("this file system knows no difference")
    cases = list(dataset(tmp_path).cases())
    ends = (".png", ".png#2", "/a.png", "/b.png", "/b.png#2")
    assert [case.id for case in cases] == [nfc + end for end in ends]
    assert len({case.path for case in cases}) == 5
    assert [(c.id, c.path) for c in dataset(tmp_path).cases()] == [(c.id, c.path) for c in cases]


def test_names_that_are_no_text_are_noted(tmp_path: Path, picture: Write) -> None:
    picture(tmp_path / "a.png")
    try:
        (tmp_path / os.fsdecode(b"caf\xe9.png")).touch()
    except OSError:
        unsuited("this file system takes UTF-8 only")
    found = dataset(tmp_path)
    assert [case.id for case in found.cases()] == ["a.png"]
    assert found.notes == ("1 name not in UTF-8 left out; rename them",)


letters = st.text(st.sampled_from("aäéÅ-. bZ\u0301\u0308写"), min_size=1, max_size=5)
parts = letters.filter(lambda part: not part.startswith("."))


@settings(max_examples=60, deadline=None)
@given(st.sets(st.lists(parts, min_size=1, max_size=3).map("/".join)))
def test_any_names_give_sorted_distinct_ids(names: set[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        written = set()
        for name in names:
            path = Path(folder, f"{name}.png")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            except OSError:  # a file where another name needs a folder
                continue
            written.add(path)
        if not written:
            return
        cases = list(dataset(folder).cases())
        ids = [case.id for case in cases]
        assert {Path(str(case.path)) for case in cases} == written
        assert len(set(ids)) == len(ids)
        assert all(unicodedata.is_normalized("NFC", each) for each in ids)
        plain = [each for each in ids if "#" not in each]
        assert plain == sorted(plain)


def test_many_files_are_quick(tmp_path: Path) -> None:
    for i in range(2000):
        (tmp_path / f"{i}.jpg").touch()
    assert sum(1 for _ in dataset(tmp_path).cases()) == 2000


def test_a_list_names_its_pictures(tmp_path: Path, picture: Write) -> None:
    picture(tmp_path / "in" / "b é.png")
    outside = picture(tmp_path / "out" / "a.png")
    (tmp_path / "in" / "list.txt").write_bytes(
        "\ufeff# my pictures\r\n\r\n  ./b e\u0301.png  \r\nmissing.png\n../out/a.png\nmissing.png\n".encode()
        + str(outside).encode()
    )
    found = dataset(tmp_path / "in" / "list.txt")
    cases = {case.id: case for case in found.cases()}
    out = outside.as_posix()
    assert list(cases) == sorted([out, f"{out}#2", "b é.png", "missing.png", "missing.png#2"])
    assert found.notes == ("2 lines repeat an earlier one; their ids end in #2, #3, …",)
    assert read_input(cases[out])[0].size == read_input(cases["b é.png"])[0].size == (16, 12)
    with pytest.raises(Unreadable, match="No such file"):
        read_input(cases["missing.png"])


def test_a_list_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_bytes(b"caf\xe9.png\n")
    with pytest.raises(ValueError, match="text in UTF-8"):
        dataset(tmp_path / "list.txt")


def test_annotations_that_are_not_read_are_noted(tmp_path: Path, picture: Write) -> None:
    picture(tmp_path / "images" / "a.jpg")
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations" / "instances.json").write_text("{}")
    assert any("if annotations/instances.json holds it, give that file" in note for note in dataset(tmp_path).notes)
