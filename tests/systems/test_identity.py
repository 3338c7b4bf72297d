"""What identifies a function: whatever of the user's own decides its answers changes its fingerprint, and is named."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import instar
from instar.engine.manifest import Conflict
from instar.outputs.caption import Caption
from instar.systems import System, function, system, systems
from instar.systems.closures import Holdings
from instar.systems.function import function_name, importable, unpacked
from instar.systems.identity import SHOWN_PARTS, Identity
from tests.toys import write_scenes

HEAD = "from instar.outputs.caption import Caption\n"
SAY = "def say(image) -> Caption: return word\n"

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes files of the user's, in a folder that can be imported from and is the current one."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def written(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        importlib.invalidate_caches()
        return path

    yield written
    _forget()


def _forget() -> None:
    for name in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[name]


def anew(name: str = "own_model:say") -> System:
    """The system as a new process loads it."""
    _forget()
    return system(name)


IMPORTS = {
    "a module": ("own_model.py", "from own_help import word\n" + SAY, {"own_help.py": "word = 'one'\n"}, "own_help.py"),
    "one that another imports": (
        "own_model.py",
        "import own_help\nword = own_help.word\n" + SAY,
        {"own_help.py": "from own_deep import word\n", "own_deep.py": "word = 'one'\n"},
        "own_deep.py",
    ),
    "one that is imported when the function is called": (
        "own_model.py",
        "def say(image) -> Caption:\n    from own_help import word\n    return word\n",
        {"own_help.py": "word = 'one'\n"},
        "own_help.py",
    ),
    "a neighbour in a package": (
        "own_pkg/model.py",
        "from . import help\nword = help.word\n" + SAY,
        {"own_pkg/__init__.py": "", "own_pkg/help.py": "word = 'one'\n"},
        "own_pkg/help.py",
    ),
    "the package around it": (
        "own_pkg/model.py",
        "from own_pkg import word\n" + SAY,
        {"own_pkg/__init__.py": "word = 'one'\n"},
        "own_pkg/__init__.py",
    ),
    "a module in a folder without an __init__": (
        "own_model.py",
        "from own_folder.help import word\n" + SAY,
        {"own_folder/help.py": "word = 'one'\n"},
        "own_folder/help.py",
    ),
    "one that is imported by a name": (
        "own_model.py",
        "import importlib\nword = importlib.import_module('own_help').word\n" + SAY,
        {"own_help.py": "word = 'one'\n"},
        "own_help.py",
    ),
    "one whose name is put together": (
        "own_model.py",
        "import importlib\nword = importlib.import_module('own_' + 'help').word\n" + SAY,
        {"own_help.py": "word = 'one'\n"},
        "own_help.py",
    ),
}


@pytest.mark.parametrize("name", IMPORTS)
def test_what_a_module_imports_is_part_of_its_functions(name: str, write: Write) -> None:
    """An edited helper and the same command used to show yesterday's results."""
    file, text, helpers, changed = IMPORTS[name]
    for path, content in {**helpers, file: HEAD + text}.items():
        write(path, content)
    spelling = f"{file.removesuffix('.py').replace('/', '.')}:say"
    before = anew(spelling)
    assert anew(spelling).fingerprint == before.fingerprint
    write(changed, helpers[changed].replace("one", "two"))
    after = anew(spelling)
    assert after.fingerprint != before.fingerprint
    values = before.identity.parts, after.identity.parts
    assert [part for part in values[0] if values[0][part] != values[1][part]] == [changed]
    assert changed in after.identity.words(spelling)


def test_a_helper_behind_a_link_is_watched_where_it_is(write: Write, tmp_path: Path) -> None:
    real = write("elsewhere/shared.py", "word = 'one'\n")
    (tmp_path / "own_help.py").symlink_to(real)
    write("own_model.py", HEAD + "from own_help import word\n" + SAY)
    before = anew().fingerprint
    real.write_text("word = 'two'\n")
    assert anew().fingerprint != before


def test_what_decides_no_answer_is_not_watched(write: Write) -> None:
    """A change of these would refuse a run that is still good: libraries, types, modules that nobody imports, data."""
    write("own_types.py", "Word = str\n")
    write("own_train.py", "1\n")
    write("words.txt", "one")
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from own_types import Word\nimport json, numpy\n"
    write("own_model.py", HEAD + text + "word = open('words.txt').read()\n" + SAY)
    loaded = anew()
    assert list(loaded.identity.parts) == ["own_model.py"]
    assert "other files it reads are not watched: name them in @declare(weights=…)" in loaded.identity.words("x")


def test_what_else_was_imported_of_a_package_is_not_part_of_its_functions(write: Write) -> None:
    """A notebook that has imported more of a package than a worker has would refuse to go on with the worker's run."""
    write("own_pkg/__init__.py", "")
    write("own_pkg/other.py", "")
    write("own_pkg/model.py", HEAD + "import own_pkg\nword = 'one'\n" + SAY)
    alone = anew("own_pkg.model:say")
    importlib.import_module("own_pkg.other")
    assert system("own_pkg.model:say").fingerprint == alone.fingerprint
    assert "own_pkg/other.py" not in alone.identity.parts


def test_the_same_code_in_another_folder_is_the_same_system(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("one", "two"):
        write(f"{folder}/own_model.py", HEAD + "from own_help import word\n" + SAY)
        write(f"{folder}/own_help.py", "word = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path / "one"))
    here = anew().fingerprint
    monkeypatch.syspath_prepend(str(tmp_path / "two"))
    assert anew().fingerprint == here


def test_a_module_that_is_reloaded_is_the_new_one_and_an_edited_one_is_told(write: Write) -> None:
    write("own_model.py", HEAD + "word = 'one'\n" + SAY)
    before = anew()
    write("own_model.py", HEAD + "word = 'three'\n" + SAY)
    edited = system("own_model:say")
    assert edited.fingerprint == before.fingerprint, "the imported code answers"
    assert "own_model.py changed after Python imported it" in edited.identity.words("x")
    importlib.reload(sys.modules["own_model"])
    reloaded = system("own_model:say")
    assert reloaded.fingerprint != before.fingerprint
    assert "changed after" not in reloaded.identity.words("x")


# --- weights


def declared(paths: str) -> str:
    head = f"import instar, pathlib\nword = ''\n@instar.declare(kind='caption', weights={paths})\n"
    return head + SAY.replace(" -> Caption", "")


@pytest.mark.parametrize("paths", ["'w/a.bin'", "['w/b.txt', 'w/a.bin']", "'w'", "pathlib.Path('w/a.bin')"])
def test_declared_weights_are_known_by_their_content(paths: str, write: Write) -> None:
    write("w/b.txt", "names")
    write("w/a.bin", "1" * 3000)
    write("own_model.py", declared(paths))
    before = anew()
    assert anew().fingerprint == before.fingerprint
    write("w/a.bin", "2" * 3000)
    after = anew()
    assert after.fingerprint != before.fingerprint
    assert before.identity.parts["w/a.bin"] != after.identity.parts["w/a.bin"]
    assert "w/a.bin" in after.identity.words("x")


DETECT = declared("'w.bin'").replace("say", "detect")
WRAPPERS = {
    "a module": "import own_det\ndef say(image) -> Caption: return own_det.detect(image)\n",
    "a function": "from own_det import detect\ndef say(image) -> Caption: return detect(image)\n",
    "a module that another imports": "import own_mid\ndef say(image) -> Caption: return own_mid.det.detect(image)\n",
    "a method": "import own_class\ndef say(image) -> Caption: return own_class.Det().detect(image)\n",
    "a neighbour": DETECT + "def say(image) -> Caption: return detect(image)\n",
}


@pytest.mark.parametrize("wrapped", WRAPPERS)
def test_a_wrapper_is_known_by_the_weights_of_what_it_wraps(wrapped: str, write: Write) -> None:
    """A wrapper that reads no file itself would else go on with a run after its model was trained again."""
    write("w.bin", "1")
    write("own_det.py", DETECT)
    write("own_mid.py", "import own_det as det\n")
    write("own_class.py", "import instar\nclass Det:\n  @instar.declare(weights='w.bin')\n  def detect(self, i): ...\n")
    write("own_model.py", HEAD + WRAPPERS[wrapped])
    before = anew()
    assert anew().fingerprint == before.fingerprint
    write("w.bin", "22")
    after = anew()
    assert after.fingerprint != before.fingerprint and "w.bin" in after.identity.parts


def test_a_function_does_not_answer_for_other_models_beside_it(write: Write) -> None:
    """Of two models in one module, the first is the same after the second was trained again or was deleted."""
    write("a.bin", "1")
    write("w.bin", "1")
    write("own_model.py", DETECT + declared("'a.bin'"))
    before = anew()
    assert "w.bin" not in before.identity.parts
    write("w.bin", "22").unlink()
    assert anew().fingerprint == before.fingerprint


def test_weights_of_another_function_that_are_missing_are_no_error(write: Write) -> None:
    """A helper module may declare models that nobody has downloaded."""
    write("own_det.py", DETECT)
    write("own_model.py", HEAD + WRAPPERS["a module"])
    assert "w.bin" not in anew().identity.parts


def test_what_is_imported_in_a_call_is_the_same_before_and_after_it(write: Write) -> None:
    """Else a run would not be continued by a process that has asked the system before."""
    write("w.bin", "1")
    write("own_det.py", DETECT)
    write("own_model.py", HEAD + "def say(image) -> Caption:\n  import own_det\n  return own_det.detect(image)\n")
    before = anew()
    importlib.import_module("own_det")
    assert system("own_model:say").fingerprint == before.fingerprint


def test_weights_are_of_the_current_directory_also_for_a_module_elsewhere(write: Write, tmp_path: Path) -> None:
    write("code/own_model.py", declared("'w/a.bin'"))
    write("code/w/a.bin", "beside the module")
    sys.path.insert(0, str(tmp_path / "code"))
    try:
        with pytest.raises(FileNotFoundError, match=r"is no file and no folder\. A relative path is one of"):
            anew()
        write("w/a.bin", "in the current directory")
        assert "w/a.bin" in anew().identity.parts
    finally:
        sys.path.remove(str(tmp_path / "code"))


def test_large_weights_are_read_once_in_a_process(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def content_hash(path: str) -> str:
        read.append(path)
        return "5c33"

    monkeypatch.setattr(function, "content_hash", content_hash)
    path = write("w.bin", "1")
    write("own_model.py", declared("'w.bin'"))
    anew(), anew()
    assert read == [str(path)]
    os.utime(path, (1, 1))
    anew()
    assert len(read) == 2


def test_the_line_is_one_and_short() -> None:
    many = {f"help_{number}.py": "5c33" for number in range(40)}
    words = Identity({"mine.py": "1", "w.onnx": "2", **many}, {"w.onnx": 84_000_000}, unwatched=("the rest",)).words(
        "m:f"
    )
    assert words.startswith("m:f is identified by mine.py, w.onnx (84 MB), help_0.py")
    assert words.endswith(f"and {42 - SHOWN_PARTS} more; the rest.")
    assert "\n" not in words and len(words) < 150


def test_built_in_systems_say_what_identifies_them() -> None:
    words = system("constant-velocity").identity.words("walker")
    assert words == "walker is identified by its options and its adapter in Instar."


def test_every_family_of_instar_counts_as_its_own() -> None:
    """Some are made with a partial, whose module is Python's."""
    assert all(unpacked(family.build).__module__.startswith("instar.") for family in systems().values())


def test_a_service_is_its_template_and_says_that_it_may_change(write: Write) -> None:
    body = """json = '{"image": "{image_base64}"}'"""
    answer = '[answer]\ncaption = "text"\n'
    write("service.toml", f'url = "http://localhost/"\nversion = "1"\ndeterministic = true\n{body}\n{answer}')
    words = system('http("service.toml")').identity.words("service")
    assert words.startswith(
        "service is identified by service.toml, its options and its adapter in Instar; what answers"
    )
    assert words.endswith("is not watched: change `version` in the template when it changes.")


def test_a_chain_is_what_its_systems_are(write: Write) -> None:
    """Both stages are functions of one file; each says what is not watched, and the line says it once."""
    write(
        "own_model.py",
        "from instar import Detections, Poses\nimport numpy as np\n"
        "def boxes(image) -> Detections: return Detections.from_xyxy([[0, 0, 9, 9]], ['a'], [1])\n"
        "def marks(image) -> Poses: return Poses.from_array(np.ones((1, 17, 2)), skeleton='coco-17')\n",
    )
    words = anew("chain(own_model:boxes, own_model:marks)").identity.words("both")
    assert words.startswith("both is identified by own_model.py, its options and its adapter in Instar; other files")
    assert words.count("not watched") == 1


def test_a_system_that_the_user_made_is_what_it_declares(write: Write) -> None:
    write("own_model.py", "from instar import System\nS = System('s', 'caption', lambda i, s: [], 'v7')\n")
    assert "the fingerprint 'v7' that it declares, and by nothing else" in anew("own_model:S").identity.words("x")


# --- functions that no file has


def of_cell(text: str) -> Callable[..., object]:
    """The function `say` of a notebook's cell."""
    space: dict[str, object] = {
        "__name__": "__main__",
        "Caption": Caption,
        "np": np,
        "instar": instar,
        "partial": partial,
    }
    exec(text, space)
    return space["say"]  # type: ignore[return-value]


CELLS = {
    "its code": ("def say(image) -> 'Caption': return 'ONE'", "the code of say"),
    "a function of another cell": (
        "def word(): return 'ONE'\ndef say(image) -> 'Caption': return word()",
        "the code of word",
    ),
    "a method of a class": (
        "class Net:\n    def word(self): return 'ONE'\nnet = Net()\ndef say(image) -> 'Caption': return net.word()",
        "the code of Net.word",
    ),
    "a global value": ("word = 'ONE'\ndef say(image) -> 'Caption': return word", "the value of word"),
    "an array": ("word = np.array(['ONE'])\ndef say(image) -> 'Caption': return word[0]", "the value of word"),
    "a default": ("def say(image, word='ONE') -> 'Caption': return word", "the value of default 1"),
    "a value in a closure": (
        "def make(word):\n    def say(image) -> 'Caption': return word\n    return say\nsay = make('ONE')",
        "the value of word",
    ),
    "an argument of a partial": (
        "def tell(image, word) -> 'Caption': return word\nsay = partial(tell, word='ONE')",
        "the value of word",
    ),
    "what an object holds": (
        "class Net:\n    def __call__(self, image) -> 'Caption': return self.word\nsay = Net()\nsay.word = 'ONE'",
        "the value of Net.word",
    ),
    "a bound method": (
        "class Net:\n    def tell(self, image) -> 'Caption': return self.word\n"
        "net = Net()\nnet.word = 'ONE'\nsay = net.tell",
        "the value of Net.word",
    ),
    "a lambda": ("say = instar.declare(kind='caption')(lambda image: 'ONE')", "the code of <lambda>"),
}


@pytest.mark.parametrize("name", CELLS)
def test_a_function_of_a_notebook_is_its_code_and_the_plain_values_it_uses(name: str) -> None:
    text, part = CELLS[name]
    before, same = (system(of_cell(f"{comment}{text}")) for comment in ("", "# a comment\n"))
    after = system(of_cell(text.replace("ONE", "TWO")))
    assert before.fingerprint == same.fingerprint != after.fingerprint
    changed = [one for one in before.identity.parts if before.identity.parts[one] != after.identity.parts[one]]
    assert changed == [part]


class Counting:
    """It counts its answers and fills a cache, as models of notebooks do."""

    def __init__(self, level: float = 0.5) -> None:
        self.calls, self.level, self.cache = 0, level, dict[str, int]()

    def __call__(self, image: np.ndarray) -> Caption:
        self.calls += 1
        self.cache[str(self.calls)] = self.calls
        return Caption(f"{image.mean() > 255 * self.level}")

    def answer(self, image):  # type: ignore[no-untyped-def]  # asked once for the kind of its answer
        return self(image)


@pytest.mark.filterwarnings("ignore::instar.api.NothingTold")
@pytest.mark.parametrize("method", ["__call__", "answer"])
def test_what_a_function_changes_itself_makes_it_no_other_version(
    method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same call twice is the commonest habit: it goes on. What the user changes is another version."""
    model = Counting()
    photos = write_scenes(tmp_path / "photos", 2)
    asked = model if method == "__call__" else model.answer
    for _ in range(2):
        instar.run(asked, "gamma(2) => verbatim", photos, out=tmp_path / "run")
    told = capsys.readouterr().err
    assert told.count("changed while the system answered") == 1 and "the value of Counting.calls" in told
    calls = model.calls
    instar.run(asked, "gamma(2) => verbatim + gamma(0.5) => verbatim", photos, out=tmp_path / "run")
    assert model.calls > calls
    model.level = 0.3
    with pytest.raises(Conflict, match=r"the value of Counting.level changed"):
        instar.run(asked, "gamma(2) => verbatim", photos, out=tmp_path / "run")
    model.level, model.calls = 0.5, 7
    with pytest.raises(Conflict, match=r"the value of Counting.calls changed"):
        instar.run(asked, "gamma(2) => verbatim", photos, out=tmp_path / "run")


def test_two_values_that_change_places_are_another_function() -> None:
    """Equal values are one object in Python: one of them must not be taken for seen."""
    text = "a, b, c = 1, 2, {}\ndef say(image) -> 'Caption': return str((a, b, c))"
    assert system(of_cell(text.format(1))).fingerprint != system(of_cell(text.format(2))).fingerprint


def test_a_model_in_a_closure_is_named_as_not_watched() -> None:
    text = "import logging\nmodel = logging.getLogger('model')\ndef say(image) -> 'Caption': return model.name"
    words = system(of_cell(text)).identity.words("say")
    assert "what model may hold is not watched: change @declare(version=…) when it changes" in words


def test_values_of_a_closure_count_also_where_the_module_has_a_file(write: Write) -> None:
    write("own_model.py", HEAD + "def make(word):\n    def say(image) -> Caption: return word\n    return say\n")
    make = importlib.import_module("own_model").make
    one, same, two = (system(make(word)) for word in ("one", "one", "two"))
    assert one.fingerprint == same.fingerprint != two.fingerprint
    assert "own_model.py" in one.identity.parts


class Model:
    def __call__(self, image) -> Caption: ...  # type: ignore[no-untyped-def, empty-body]
    def answer(self, image) -> Caption: ...  # type: ignore[no-untyped-def, empty-body]

    @classmethod
    def shared(cls, image) -> Caption: ...  # type: ignore[no-untyped-def, empty-body]


def test_only_what_another_process_imports_by_its_name_is_sent_there() -> None:
    """A bound method has the name of a function that lacks its object; a partial has none."""
    sendable: dict[str, tuple[Callable[..., object], bool]] = {
        "a function": (plain, True),
        "a class's method": (Model.shared, True),
        "a bound method": (Model().answer, False),
        "an object": (Model(), False),
        "a partial": (partial(plain), False),
        "a lambda": (lambda image: None, False),
    }
    assert {name: importable(one, function_name(one)) for name, (one, _) in sendable.items()} == {
        name: sent for name, (_, sent) in sendable.items()
    }


def plain(image) -> Caption: ...  # type: ignore[no-untyped-def, empty-body]


def test_a_function_that_holds_a_large_table_has_one_part_of_it() -> None:
    """All parts are stored in every manifest."""

    def holding(table: dict[str, object]) -> Holdings:
        return Holdings(lambda image: table)

    tables: list[dict[str, object]] = [{f"row {number}": [number, object] for number in range(100)} for _ in range(2)]
    first, same = (holding(table) for table in tables)
    tables[1]["row 7"] = [8, object]
    other = holding(tables[1])
    assert len(first.parts) < 5
    assert first.parts == same.parts
    assert first.parts["the value of table"] != other.parts["the value of table"]
