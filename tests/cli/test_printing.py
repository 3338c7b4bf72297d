"""What commands print of names from elsewhere: they are shown, and cannot speak to the terminal."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

import instar
from instar.report.console import PlainConsole
from instar.report.words import UNSEEN
from tests.cli.conftest import Type
from tests.toys import write_scenes

NAME = "a\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.b\rc\nFAKE LINE.png"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("names")
    photos = write_scenes(folder / "photos", 2)
    (photos / "000.png").rename(photos / NAME)
    instar.run("tests.engine.zones:forgetful", "mirror(h)", photos, out=folder / "run", workers=0)
    return folder / "run"


@pytest.mark.parametrize(
    "command", ["show", "judge", "select", "slices", "tables", "draw", "draw without images", "no such case"]
)
def test_a_name_reaches_no_terminal(typed: Type, hostile: Path, tmp_path: Path, command: str) -> None:
    arguments = {
        "draw": ("draw", hostile, "--out", tmp_path),
        "draw without images": ("draw", hostile, "--out", tmp_path, "--dataset", tmp_path),
        "no such case": ("draw", hostile, "--out", tmp_path, "--case", f"{NAME}!"),
    }.get(command, (command, hostile))
    printed = typed(*arguments)
    text = printed.stdout + printed.stderr
    assert not UNSEEN.search(text), text
    if command in ("show", "draw"):
        assert "a\ufffd]0;owned" in text, "the name is shown"
        assert not any(line.strip().startswith("FAKE LINE") for line in text.splitlines())


def test_json_says_the_name_as_it_is(typed: Type, hostile: Path) -> None:
    printed = typed("show", hostile, "--json")
    assert not UNSEEN.search(printed.stdout)
    assert NAME in {row["case"] for row in json.loads(printed.stdout)["worst"]}


def test_a_console_keeps_its_own_colours() -> None:
    """On a terminal, too: the console's own styles are written, a name's are not."""
    stream = io.StringIO()
    console = PlainConsole(file=stream, force_terminal=True, color_system="standard", width=60)
    table = Table(box=None)
    table.add_row(Text(NAME, style="bold"), "[red]plain[/]")
    console.print(table)
    console.print(f"note: {NAME}", markup=False, style="bold")
    written = stream.getvalue()
    assert "\x1b[1m" in written and "\x1b[31m" in written
    assert "\x1b]0" not in written and "\x9b" not in written and "\u202e" not in written and "\x07" not in written
    [row] = [line for line in written.split("note:")[0].splitlines() if "FAKE LINE" in line]
    assert "owned" in row, "a cell is one line"


@pytest.mark.parametrize("name", ["cat\nFAKE LINE", "cat\r\nFAKE LINE", "cat\tFAKE LINE"])
def test_a_name_breaks_no_sentence(name: str) -> None:
    """A class of a dataset may be called anything: what looks like a sentence of ours is one."""
    stream = io.StringIO()
    console = PlainConsole(file=stream, width=80)
    console.print(f"\nThe class {name} strays.", markup=False)
    console.print(Text.assemble("The class ", (name, "bold"), " strays."))
    assert stream.getvalue().splitlines()[0] == "", "an empty line before a sentence is ours"
    lines = [" ".join(line.split()) for line in stream.getvalue().splitlines()[1:]]
    assert lines == ["The class cat FAKE LINE strays."] * 2


def test_a_name_breaks_no_error(typed: Type, hostile: Path) -> None:
    refused = typed("judge", hostile, "--set", "confi\nFAKE LINE=3")
    assert refused.code == 2 and len(refused.stderr.splitlines()) == 1, refused.stderr
