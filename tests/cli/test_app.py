"""The command as a whole: groups, help, commands of tasks, errors, completion."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import typer

from instar import registry
from instar.cli import app
from instar.task import Task
from tests.cli.conftest import Type


def paths() -> list[tuple[str, ...]]:
    """Every command, also those of tasks."""

    def walk(command: object, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        names = command.list_commands(None) if hasattr(command, "list_commands") else ()
        if path and not (names and not getattr(command, "invoke_without_command", False)):
            yield path
        for name in names:
            yield from walk(command.get_command(None, name), (*path, name))  # type: ignore[attr-defined]

    return list(walk(typer.main.get_command(app), ()))


@pytest.mark.parametrize("path", paths(), ids=" ".join)
def test_every_command_has_examples(typed: Type, path: tuple[str, ...]) -> None:
    text = typed(*path, "--help")
    assert text.code == 0
    (_, examples) = re.split(r"Examples?:", text.words, maxsplit=1)
    assert f"instar {' '.join(path)}" in examples


def test_help_shows_groups_and_exit_codes(typed: Type) -> None:
    text = typed("--help")
    assert text.code == 0
    for group in ("Run", "Look", "Decide", "Check", "List"):
        assert f"─ {group} ─" in text.stdout
    assert "Predict what is missing in a run folder, judge it, and show which rules are violated." in text.words
    shown = re.findall(r"^│ (\w+) {2,}\S", text.stdout.split("─ Tasks ─")[0].split("─ Run ─")[1], re.MULTILINE)
    assert len(shown) == 15 and "preview" not in shown
    assert "More commands, each with a --help of its own: preview, search, select, slices," in text.words
    assert "Exit codes: 0 done;" in text.words
    assert "--install-completion" in text.stdout
    assert {"run", "judge", "tables", "models"} <= {path[0] for path in paths()}


def test_help_has_examples_that_can_be_typed(typed: Type) -> None:
    assert "instar run mediapipe-holistic met-pose/sub photos/ --out runs/first" in typed("run", "--help").words


# --- commands of tasks


@pytest.fixture
def orchard(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A task with a command that works and one that cannot be loaded."""
    module = ModuleType("orchard_commands")
    apples = typer.Typer(help="Apples and what becomes of them.")

    @apples.command()
    def pick(number: int) -> None:
        """Pick apples."""
        print(f"{number} apples")

    module.apples = apples  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "orchard_commands", module)
    task = Task("orchard", "", commands={"apples": "orchard_commands:apples", "pears": "no_such_module:pears"})
    monkeypatch.setattr(registry, "tasks", lambda: {"orchard": task})
    registry._registered.cache_clear()
    yield
    registry._registered.cache_clear()


@pytest.mark.usefixtures("orchard")
def test_commands_of_tasks_stand_in_a_group_of_their_own(typed: Type) -> None:
    text = typed("--help")
    assert text.code == 0
    tasks = text.stdout.partition("─ Tasks ─")[2]
    assert "apples" in tasks and "Apples and what becomes of them." in tasks
    assert typed("apples", "pick", 3).stdout == "3 apples\n"
    assert "Pick apples." in typed("apples", "--help").stdout


@pytest.mark.usefixtures("orchard")
def test_a_broken_command_is_one_line_and_costs_nobody_else(typed: Type) -> None:
    text = typed("--help")
    assert text.code == 0 and "pears" not in text.stdout
    (line,) = text.stderr.splitlines()
    assert line.startswith("instar: command 'pears' of the task orchard cannot be loaded: ModuleNotFoundError")
    refused = typed("pears")
    assert refused.code == 2
    assert "cannot be loaded" in refused.stderr


def test_a_broken_plug_in_is_one_line(typed: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task("orchard", "", systems={"apple-finder": "no_such_module:finder"})
    monkeypatch.setattr(registry, "tasks", lambda: {"orchard": task})
    registry._registered.cache_clear()
    try:
        shown = typed("systems")
    finally:
        registry._registered.cache_clear()
    assert shown.code == 0 and "mediapipe-holistic" in shown.stdout
    (line,) = shown.stderr.splitlines()
    assert line.startswith("instar: the task orchard: 'apple-finder' cannot be loaded and is left out")


# --- errors


ALONE = ("--workers", "0")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "mediapipe-holistc", "met-pose", ".", "--out", "x"], "did you mean 'mediapipe-holistic'?"),
        (["run", "mediapipe-holistic(complexty=2)", "met-pose", ".", "--out", "x"], "did you mean 'complexity'?"),
        (["run", "tests.toys:steady", "met-poses", "PHOTOS", "--out", "x"], "did you mean 'met-pose'?"),
        (["run", "tests.toys:steady", "gama(1)", "PHOTOS", "--out", "x"], "did you mean 'gamma'?"),
        (["run", "tests.toys:steady", "gamma(1)", "no/such/folder", "--out", "x"], "no/such/folder"),
        (["run", "tests.toys:steady", "gamma(1)", "PHOTOS"], "--out runs/first"),
        (["run", "tests.toys:steady", "gamma(1)", "PHOTOS", "--out", "x", "--retry", "all"], "allowed is: failed"),
        (["run", "tests.toys:stedy", "gamma(1)", "PHOTOS", *ALONE, "--out", "TMP/x"], "did you mean 'steady'?"),
        (
            ["run", "tests.toys:rectangles", "gamma(1) => poses", "PHOTOS", *ALONE, "--out", "TMP/x"],
            "answers with detections",
        ),
        (["run", "tests.toys:steady", "gamma(1)", "PHOTOS", *ALONE, "--out", "RUN"], "give another folder (--out)"),
        (["show", "no/run"], "holds no run"),
        (["show", "RUN", "--judging", "nobody"], "has no judging 'nobody'"),
        (["show", "RUN", "--by", "person"], "'person'; allowed are: case, target"),
        (["draw", "RUN", "--rule", "gamma(3)", "--out", "x"], "unknown rule of this run"),
        (["preview", "met-pose/sub", "no.jpg"], "no.jpg"),
        (["shwo", "RUN"], "No such command 'shwo'"),
    ],
)
def test_errors_help(typed: Type, arguments: list[str], message: str, photos: Path, done: Path, tmp_path: Path) -> None:
    meant = {"PHOTOS": photos, "RUN": done, "TMP/x": tmp_path / "x"}
    failed = typed(*(meant.get(argument, argument) for argument in arguments))
    assert failed.code == 2
    assert message in " ".join(failed.stderr.replace("│", " ").split())
    assert "Traceback" not in failed.stderr


def test_where_an_error_came_from_is_shown_when_debugging(typed: Type) -> None:
    with pytest.raises(FileNotFoundError, match="holds no run"):
        typed("show", "no/run", INSTAR_DEBUG="1")


def test_ctrl_c_is_130(typed: Type, done: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(run: object, **_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("instar.Run.slices", stop)
    stopped = typed("slices", done)
    assert (stopped.code, stopped.stderr) == (130, "instar: stopped\n")


# --- completion


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("instar nume", "numerics"),
        ("instar models ver", "verify"),
        ("instar run constant", "constant-velocity"),
        ("instar run tests.toys:steady met-pose/s", "met-pose/sub"),
    ],
)
def test_completion(typed: Type, words: str, completed: str) -> None:
    answer = typed(_INSTAR_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(len(words.split()) - 1))
    assert completed in answer.stdout.split()


@pytest.mark.parametrize(
    ("command", "flag"),
    {
        "a provider that is not asked for": (
            ("run", "tests.toys:rectangles", "object-relevance", "PHOTOS", "--objects", "yolox", "--out", "OUT"),
            "leave out --objects",
        ),
        "the same of a plan": (
            ("run", "tests.toys:rectangles", "object-relevance", "PHOTOS", "--objects", "yolox", "--plan"),
            "leave out --objects",
        ),
        "a kind that nobody names": (("export", "PHOTOS", "mirror(h)", "--out", "OUT"), "say with --kind"),
    }.values(),
)
def test_commands_refuse_by_naming_flags(
    typed: Type, photos: Path, tmp_path: Path, command: tuple[str, ...], flag: str
) -> None:
    """Exceptions name parameters, since they are raised in Python as well."""
    places = {"PHOTOS": str(photos), "OUT": str(tmp_path / "out")}
    refused = typed(*(places.get(word, word) for word in command))
    assert refused.code == 2 and flag in refused.stderr and "`" not in refused.stderr, refused.stderr
