"""Which dataset a spelling means, and what it says where it means none."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from instar.case import Case
from instar.datasets import Dataset, DatasetFamily, dataset, datasets
from instar.datasets.dataset import PATH
from instar.spelling import Parameter

Write = Callable[..., Path]


def ids(found: Dataset) -> list[str]:
    return [case.id for case in found.cases()]


def test_a_path_that_exists_is_recognised(here: Path, picture: Write) -> None:
    picture(here / "photos" / "b.png")
    picture(here / "photos" / "a.png")
    (here / "list.txt").write_text("photos/b.png\n")
    for given in ("photos", "photos/", Path("photos"), str(here / "photos")):
        found = dataset(given)
        assert ids(found) == ["a.png", "b.png"]
        assert found.root == str(here / "photos")
        again = dataset(found.name)
        assert again.name == found.name
        assert ids(again) == ids(found)
    assert ids(dataset("list.txt")) == ["photos/b.png"]
    one = dataset("photos/b.png")
    assert ids(one) == ["b.png"]
    assert one.root == str(here / "photos")


def test_names_keep_the_path_as_given(here: Path, picture: Write) -> None:
    picture(here / "my photos (2)" / "ä.png")
    found = dataset("my photos (2)")
    assert found.name == 'folder("my photos (2)")'
    assert ids(dataset(found.name)) == ["ä.png"]
    picture(here / 'a "quoted" \\ name' / "x.png")
    assert ids(dataset(dataset('a "quoted" \\ name').name)) == ["x.png"]
    picture(here / "2024" / "x.png")
    assert dataset("2024").name == 'folder("2024")'
    assert ids(dataset('folder("2024")')) == ["x.png"]


def test_a_folder_called_like_a_kind_is_a_folder(here: Path, picture: Write) -> None:
    picture(here / "coco" / "x.png")
    assert ids(dataset("coco")) == ["x.png"]


@pytest.mark.parametrize(
    ("spelling", "error", "message"),
    [
        ("photso", FileNotFoundError, r"there is no file or folder 'photso'; did you mean 'photos'\? A dataset is"),
        ("photos/../photso", FileNotFoundError, r"'photos/../photso'; did you mean 'photos/../photos'\? A dataset is"),
        ("away/further/x", FileNotFoundError, r"there is no file or folder 'away/further/x'"),
        ("photos/sub/x.png", FileNotFoundError, r"'photos/sub/x.png'.*'photos' is the last that exists"),
        (
            "foldr",
            FileNotFoundError,
            r"did you mean 'folder'\?.*coco, coco-classes, egohands, eth-ucy, flic, folder, freihand, ind,",
        ),
        ("video", ValueError, "needs path"),
        ("foldr(x)", KeyError, "unknown dataset 'foldr'; did you mean 'folder'"),
        ("folder(x, y, z)", ValueError, "takes 2 parameters"),
        ("folder(nowhere)", FileNotFoundError, "no file or folder 'nowhere'"),
        ('list("nowhere.txt")', FileNotFoundError, "no list"),
        ('video("nowhere.avi")', FileNotFoundError, "no video"),
        ('coco("nowhere.json")', FileNotFoundError, "no file"),
        ('flic("nowhere.mat")', FileNotFoundError, "no file"),
        ('lsp("nowhere.mat")', FileNotFoundError, "no file"),
        ('video("a.avi", strid=2)', ValueError, r"no parameter 'strid'; did you mean 'stride'"),
        ('video("a.avi", stride=0)', ValueError, "stride=0 is not allowed"),
        ("", ValueError, "nothing was given"),
        ("no_such_module_here:function", ModuleNotFoundError, "no module"),
        ("x" * 5000, FileNotFoundError, "no file or folder"),
        ("binary.dat", ValueError, "no reader recognises this file; datasets are captions, class-folders, coco"),
        ("odd.mat", ValueError, "not a MATLAB file"),
        ("empty", ValueError, r"no pictures in 'empty'.*\.jpg.*\.png.*1 file is no picture: \.txt 1"),
        ("empty.txt", ValueError, "names no pictures"),
    ],
)
def test_what_is_wrong_is_said(here: Path, picture: Write, spelling: str, error: type[Exception], message: str) -> None:
    picture(here / "photos" / "a.png")
    (here / "binary.dat").write_bytes(b"\0\1\2")
    (here / "odd.mat").write_bytes(b"\0\1\2")
    (here / "empty").mkdir()
    (here / "empty" / "notes.txt").write_text("nothing")
    (here / "empty.txt").write_text("# nothing\n\n")
    with pytest.raises(error, match=message):
        dataset(spelling)


def test_functions(here: Path, picture: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    (here.parent / "elsewhere").mkdir()
    picture(here / "b.png")
    picture(here / "a.png")
    (here / "my_dataset_module.py").write_text(
        "from pathlib import Path\n"
        "from instar.case import Case\n"
        "from instar.outputs.poses import Poses\n"
        "def cases():\n"
        "    for name in ('b', 'a'):\n"
        "        yield Case(name, f'{name}.png', truth=Poses.from_array([], skeleton='coco-17'))\n"
        "def paths():\n"
        "    return [Path('b.png'), 'a.png', 'b.png']\n"
        "def whole():\n"
        f"    return [{str(here / 'a.png')!r}]\n"
        "def twice():\n"
        "    return [Case('a', 'a.png'), Case('a', 'b.png')]\n"
        "def numbers():\n"
        "    return [1, 2]\n"
        "def nothing():\n"
        "    return []\n"
        "def text():\n"
        "    return 'a.png'\n"
        "constant = 3\n"
    )
    monkeypatch.syspath_prepend(here)
    found = dataset("my_dataset_module:cases")
    assert (found.truth, ids(found), ids(found)) == ("poses", ["b", "a"], ["b", "a"])
    assert found.name == "my_dataset_module:cases"
    paths = dataset("my_dataset_module:paths")
    assert ids(paths) == ["b.png", "a.png", "b.png#2"]
    assert next(paths.cases()).path == str(here / "b.png")
    monkeypatch.chdir(here.parent / "elsewhere")  # no id hangs on the others: they stay when more are added
    assert ids(dataset("my_dataset_module:whole")) == [(here / "a.png").as_posix()]
    with pytest.raises(ValueError, match="two cases have the id 'a'"):
        ids(dataset("my_dataset_module:twice"))
    with pytest.raises(TypeError, match="gives int"):
        dataset("my_dataset_module:numbers")
    with pytest.raises(TypeError, match="returned str"):
        dataset("my_dataset_module:text")
    with pytest.raises(ValueError, match="gives no cases"):
        dataset("my_dataset_module:nothing")
    with pytest.raises(TypeError, match="is a int"):
        dataset("my_dataset_module:constant")
    with pytest.raises(ValueError, match="takes no parameters"):
        dataset("my_dataset_module:cases(1)")
    with pytest.raises(KeyError, match="did you mean 'cases'"):
        dataset("my_dataset_module:case")


@dataclass
class Registered:
    """What the registry knows of a family that a package brings."""

    family: DatasetFamily
    name: str = "cells"
    owner: str = "a package"

    def load(self) -> DatasetFamily:
        return self.family


def test_datasets_of_installed_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def open_cells(name: str, *, count: int) -> Dataset:
        return Dataset(name, "/", lambda: iter([Case(f"cell-{i}", "/x") for i in range(count)]))

    cells = DatasetFamily("cells", open_cells, (Parameter("count", "int", 2, low=1),), "cells")

    monkeypatch.setattr("instar.registry._registered", lambda group: {"cells": Registered(cells)})
    assert "cells" in datasets()
    assert ids(dataset("cells")) == ["cell-0", "cell-1"]
    found = dataset("cells(count=3)")
    assert (found.name, len(ids(found))) == ("cells(count=3)", 3)


def test_a_reader_of_an_installed_package_recognises_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def open_cells(name: str, *, path: str) -> Dataset:
        return Dataset(name, path, lambda: iter([Case("cell", path)]))

    cells = DatasetFamily("cells", open_cells, (PATH,), "cells", recognises=lambda place: place.ending == "cells")
    monkeypatch.setattr("instar.registry._registered", lambda group: {"cells": Registered(cells)})
    (tmp_path / "one.cells").write_text("any text would be a list")
    assert dataset(tmp_path / "one.cells").name.startswith("cells(")


def test_scipy_is_imported_late() -> None:
    code = "import sys, instar.datasets; assert not any(m.split('.')[0] == 'scipy' for m in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
