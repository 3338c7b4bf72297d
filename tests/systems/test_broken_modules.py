"""A module of the user's that cannot be imported: one message with their file and line, and none of our frames."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import numpy as np
import pytest

import instar
from instar.engine.follow_up import error_text
from instar.own import BrokenModule
from instar.systems import system
from tests.cli.conftest import typed
from tests.toys import write_scenes

BROKEN = {
    "a syntax error": ("x = 1\ndef predict(image:\n", "broken_one.py, line 2: SyntaxError: '(' was never closed"),
    "a library that is not installed": ("import no_such_library\n", "line 1: ModuleNotFoundError: No module named"),
    "an exception at import": (
        "rows = []\nfirst = rows[0]\n",
        "line 2: IndexError: list index out of range, in `first",
    ),
    "an exception without words": ("assert 0\n", "broken_one.py, line 1: AssertionError, in `assert 0`"),
    "an exception in a library": (
        "import json\nnames = json.loads('{')\n",
        "broken_one.py, line 2: JSONDecodeError: Expecting property name",
    ),
    "a script that reads its arguments": ("import sys\nsys.exit(2)\n", "line 2: it ends Python when it is imported"),
    "an error in a helper": ("import broken_helper\n", "broken_helper.py, line 1: ZeroDivisionError: division by zero"),
    "a missing name that its own begins with": ("import broken\n", "line 1: ModuleNotFoundError: No module named"),
}

Written = Callable[[str], None]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Written]:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "broken_helper.py").write_text("1 / 0\n")

    def write(text: str) -> None:
        (tmp_path / "broken_one.py").write_text(text)

    yield write
    for name in ("broken_one", "broken_helper"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", BROKEN)
def test_the_message_names_the_users_file_and_line(name: str, written: Written) -> None:
    text, words = BROKEN[name]
    written(text)
    with pytest.raises(BrokenModule) as raised:
        system("broken_one:predict")
    assert words in str(raised.value)
    assert str(raised.value).startswith("broken_one cannot be imported: ")
    assert raised.value.__suppress_context__, "Python would print our frames and theirs"


@pytest.mark.parametrize("workers", [0, 1])
def test_both_doors_say_the_same(workers: int, written: Written, tmp_path: Path) -> None:
    """A worker process imports the module too; its message comes back as it is."""
    written(BROKEN["a syntax error"][0])
    photos, out = write_scenes(tmp_path / "photos", 1), tmp_path / "run"
    ended = typed("run", "broken_one:predict", "mirror(h)", photos, "--out", out, "--workers", workers)
    assert ended.code == 2
    assert ended.stderr.startswith("instar: broken_one cannot be imported: ")
    assert len(ended.stderr.splitlines()) == 1
    with pytest.raises((BrokenModule, RuntimeError), match=r"^broken_one cannot be imported: .*line 2: SyntaxError"):
        instar.run("broken_one:predict", "mirror(h)", photos, out=out, workers=workers)


def test_an_error_is_where_the_users_code_let_it_through_not_in_a_library(written: Written) -> None:
    """The last frame of an error in a library says nothing to whoever wrote the function."""
    written("import json\ndef predict(image) -> 'Caption':\n    return json.loads('{')\n")
    with pytest.raises(ValueError) as raised:
        system("broken_one:predict").predict([instar.Image(np.zeros((2, 2, 3), np.uint8))], [0])
    assert error_text(raised.value).endswith("(broken_one.py:3)")


def test_an_error_in_code_without_a_file_names_the_function() -> None:
    """A notebook's cell has a made-up file name that tells nobody anything."""
    space: dict[str, object] = {"__name__": "__main__"}
    exec(compile("def predict(image):\n    return 1 / 0\n", "/tmp/ipykernel_1/2.py", "exec"), space)
    with pytest.raises(ZeroDivisionError) as raised:
        space["predict"](None)  # type: ignore[operator]
    assert error_text(raised.value) == "ZeroDivisionError: division by zero (predict, line 2)"


def test_only_what_may_be_a_system_is_offered(written: Written) -> None:
    """Neither the modules and constants of the user's file, nor what it imports from packages, can be run."""
    written(
        "import numpy as np\nfrom functools import partial\nfrom instar import Detections\nLEAST = 0.5\n"
        "MEAN = np.zeros(3)\ndef predict(image): ...\nsmall = partial(predict)\n"
    )
    with pytest.raises(KeyError) as raised:
        system("broken_one:nq")
    assert str(raised.value) == "unknown object in broken_one 'nq'. There are: predict, small."


def test_an_error_in_code_without_a_file_is_not_placed_in_ours() -> None:
    """A lambda at a prompt: the `__init__` of a dataclass of ours has no file either, and is not the user's."""
    names: dict[str, object] = {"Labels": instar.Labels}
    exec(compile("answer = lambda pixels: \\\n  Labels(('cat',), [2.0])", "<stdin>", "exec"), names)
    answer = cast("Callable[[object], object]", names["answer"])
    with pytest.raises(ValueError, match="not a number from 0 to 1") as raised:
        answer(None)
    assert raised.value.__traceback__ is not None
    called = raised.value.with_traceback(raised.value.__traceback__.tb_next)  # this test is a file of the user's too
    assert error_text(called).endswith("(<lambda>, line 2)")
