"""A fingerprint is that of the code which answers, whatever its file holds by now."""

from __future__ import annotations

import importlib
import os
import py_compile
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from instar.image import Image
from instar.systems import imports_noted, system
from instar.systems.sources import LOADED

GREY = Image(np.full((4, 6, 3), 127, np.uint8))
HEAD = "import functools\nfrom instar.outputs.caption import Caption\n"
FUNCTION = HEAD + 'def say(image) -> Caption: return "one"\n'

Written = Callable[[str], Path]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Written]:
    """Writes the module `edited_system`, and forgets it afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "edited_system", raising=False)
    path = tmp_path / "edited_system.py"

    def write(text: str) -> Path:
        path.write_text(text, "utf-8")
        importlib.invalidate_caches()
        return path

    yield write
    sys.modules.pop("edited_system", None)


def fingerprint(name: str = "say", *, anew: bool = False) -> str:
    if anew:
        sys.modules.pop("edited_system", None)
    return system(f"edited_system:{name}").fingerprint


def answer() -> str:
    [caption] = system("edited_system:say").answer([GREY], [0])
    return str(getattr(caption, "text", caption))


def test_a_module_that_is_edited_after_it_was_imported_is_still_the_one_that_answers(written: Written) -> None:
    written(FUNCTION)
    before = fingerprint()
    written(FUNCTION.replace("one", "two"))
    assert (fingerprint(), answer()) == (before, "one")
    assert fingerprint(anew=True) != before and answer() == "two"


def test_a_module_that_is_edited_while_it_loads(written: Written) -> None:
    """A model takes seconds to load, at the end of which its file was hashed: time enough to save an edit."""
    meanwhile = f"open(__file__, 'w').write({FUNCTION.replace('one', 'two')!r})\n"
    written(FUNCTION + meanwhile)
    first, said = fingerprint(), answer()
    assert (said, first != fingerprint(anew=True)) == ("one", True)


def test_a_module_of_an_old_pyc(written: Written) -> None:
    """Python takes the .pyc for a file of the same length and second: then the old code answers for the new file."""
    path = written(FUNCTION)
    before, when = fingerprint(), path.stat().st_mtime
    py_compile.compile(str(path))
    os.utime(written(FUNCTION.replace("one", "two")), (when, when))
    assert fingerprint(anew=True) != before and answer() == "two"


def test_a_module_that_the_user_imported_before_and_edited_since(written: Written) -> None:
    written(FUNCTION)
    importlib.import_module("edited_system")
    written(FUNCTION.replace("one", "two"))
    old = fingerprint()
    assert answer() == "one"
    assert old != fingerprint(anew=True)


@pytest.mark.parametrize(
    "code",
    [
        "class Model:\n    def __call__(self, image) -> Caption: return 'one'\nsay = Model()\n",
        "def reply(image, word) -> Caption: return word\nsay = functools.partial(reply, word='one')\n",
        "say = functools.lru_cache(lambda image: Caption('one'))\nsay.__instar__ = {'kind': 'caption'}\n",
        "class Model:\n    def reply(self, image) -> Caption: return 'one'\nsay = Model().reply\n",
    ],
    ids=["an object", "a partial function", "a wrapped function", "a method"],
)
def test_whatever_can_be_called_has_its_code_in_its_fingerprint(code: str, written: Written) -> None:
    written(HEAD + code)
    before = fingerprint()
    assert fingerprint(anew=True) == before
    written(HEAD + code.replace("one", "two"))
    assert fingerprint(anew=True) != before


def test_helpers_of_the_users_own_are_noted_and_libraries_are_not(written: Written, tmp_path: Path) -> None:
    (tmp_path / "edited_helper.py").write_text("WORD = 'one'\n")
    written(FUNCTION.replace('"one"', "edited_helper.WORD") + "import edited_helper, colorsys\n")
    LOADED.clear()
    with imports_noted():
        fingerprint()
    assert {Path(path).name for path in LOADED} == {"edited_system.py", "edited_helper.py"}
    sys.modules.pop("edited_helper")


def test_functions_without_a_file_have_a_fingerprint_of_their_code() -> None:
    spaces: list[dict[str, object]] = [{"__name__": "no_such_file"} for _ in range(3)]
    for space, word in zip(spaces, ("one", "one", "two"), strict=True):
        exec(f"def say(image) -> 'Caption': return {word!r}", space)
    one, same, two = (system(space["say"]).fingerprint for space in spaces)  # type: ignore[arg-type]
    assert one == same != two
