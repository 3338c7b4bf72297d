"""Commands that look at runs."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
import uvicorn

import instar
from instar.image import read_image
from instar.report import panels
from instar.report.panels import Choice, Panel, PaperFigure, Table, TaskTables
from tests.cli.conftest import Type
from tests.toys import write_scenes


def test_show(typed: Type, done: Path) -> None:
    shown = typed("show", done, "--threshold", 0.5)
    assert shown.code == 0
    assert "mirror(h)" in shown.stdout
    assert "95 % int." in shown.stdout
    values = json.loads(typed("show", done, "--json").stdout)
    assert values["any"]["violated"] == 4
    assert {row["rule"] for row in values["rules"]} == {"mirror(h) => detections", "gamma(2) => detections"}
    assert values["worst"][0]["severity"] == 1.0
    by_target = json.loads(typed("show", done, "--json", "--by", "target").stdout)
    assert by_target["rules"][0]["judged"] > values["rules"][0]["judged"]


def test_a_long_list_of_rules_is_cut_unless_all_are_asked_for(typed: Type, photos: Path, tmp_path: Path) -> None:
    rules = "+".join(f"gamma({number / 20:g})" for number in range(1, 36) if number != 20)
    instar.run("tests.toys:rectangles", rules, photos, out=tmp_path, workers=0, limit=1)
    assert re.search(r"… and 4 rules .*violated less", typed("show", tmp_path).stdout)
    assert "violated less" not in typed("show", tmp_path, "--all").stdout


def test_rules_of_which_nothing_was_judged_are_not_said_to_be_violated_less(
    typed: Type, photos: Path, tmp_path: Path
) -> None:
    rules = "+".join(f"filtered(gamma({number / 20:g}), skin)" for number in range(1, 36) if number != 20)
    instar.run("tests.toys:rectangles", rules, photos, out=tmp_path, workers=0, limit=1, zones="none")
    shown = typed("show", tmp_path).stdout
    assert "… and 4 more rules (--all shows all)" in shown and "violated less" not in shown


@pytest.mark.parametrize(
    ("table", "title", "row"),
    [
        ("families", "Cases that violate at least one rule of the family", "mirror 1 4/4 100"),
        ("suites", "Cases that violate at least one rule of the suite", "mirror(h) + gamma(2) 2 4/4 100"),
        ("counts", "detections: cases by the number of rules that they violate", "2 4 4 4"),
        ("coverage", "Which rule covers which", "mirror(h) gamma(2) 100"),
    ],
)
def test_further_tables(typed: Type, done: Path, table: str, title: str, row: str) -> None:
    shown = typed("show", done, "--table", table)
    assert shown.code == 0, shown.stderr
    assert title in shown.words
    assert any(" ".join(line.split()).startswith(row) for line in shown.stdout.splitlines()), shown.stdout
    first = json.loads(typed("show", done, "--table", table, "--json").stdout)[0]
    assert first["table"].startswith(title)
    assert any(" ".join(values.values()).startswith(row) for values in first["rows"])


def test_a_table_that_does_not_exist(typed: Type, done: Path) -> None:
    refused = typed("show", done, "--table", "cover")
    assert (refused.code, refused.stdout) == (2, "")
    assert "unknown table 'cover'; did you mean 'coverage'?" in refused.stderr


# --- the tables of tasks


def _panel(runs: Sequence[instar.Run], judging: str, p: float) -> TaskTables:
    names = [run.folder.name for run in runs]
    table = Table("How many apples", ["run", "apples"], [[name, "3"] for name in names])
    frames = {"apples": pl.DataFrame({"run": names, "count": [3] * len(runs), "p": [p] * len(runs)})}
    return TaskTables([table], frames, before=[f"Judged by {judging}."], after=["* Eat them."])


@pytest.fixture
def apples(monkeypatch: pytest.MonkeyPatch) -> dict[str, Panel]:
    """A panel that every run names."""
    table = {"apples": Panel(tables=_panel)}
    monkeypatch.setattr(instar.Run, "panels", lambda run: list(table))
    monkeypatch.setattr(panels, "names", lambda group: list(table))
    monkeypatch.setattr(panels, "find", lambda what, name, group, kind: table[name])
    return table


def test_tables_of_a_task(typed: Type, done: Path, apples: dict[str, Panel]) -> None:
    shown = typed("tables", done)
    assert shown.code == 0, shown.stderr
    assert shown.words == "Judged by default. How many apples run apples run 3 * Eat them."
    assert "| run | 3 |" in typed("tables", done, "--markdown").stdout
    values = json.loads(typed("tables", done, "--json", "--p", 0.01).stdout)
    assert values == {"apples": {"apples": [{"run": "run", "count": 3, "p": 0.01}]}}


def test_tables_of_several_runs_where_the_task_has_them(
    typed: Type, done: Path, poses: Path, apples: dict[str, Panel]
) -> None:
    refused = typed("tables", done, poses)
    assert refused.code == 2
    words = " ".join(refused.stderr.split())
    assert "2 runs were given, and the tables of these tasks are of one run; give one run, or put the runs" in words
    assert f"`instar compare {done} {poses}`" in words
    apples["apples"] = Panel(tables=_panel, several=True)
    assert "run 3 poses 3" in typed("tables", done, poses).words


def _basket(runs: Sequence[instar.Run], choice: Choice) -> TaskTables:
    return TaskTables([Table(f"Judged by {choice.judging}, p {choice.p:g}", ["apples"], [["3"]])])


def test_figures_are_those_of_the_panels_that_all_runs_name(
    typed: Type, done: Path, poses: Path, apples: dict[str, Panel]
) -> None:
    """A plug-in lists its own; where two papers have a figure of one number, the panel's name tells them apart."""
    apples["apples"] = Panel(figures={"3": PaperFigure("apples in a basket", _basket, several=True)})
    assert typed("tables", done, poses, "--figure", 3, "--p", 0.01).words == "Judged by default, p 0.01 apples 3"
    apples["pears"] = Panel(figures={"3": PaperFigure("pears", _basket)})
    refused = typed("tables", done, "--figure", 3)
    assert refused.code == 2
    assert "There are: apples:3: apples in a basket; pears:3: pears" in " ".join(refused.stderr.split())
    assert typed("tables", done, "--figure", "pears:3").code == 0
    refused = typed("tables", done, poses, "--figure", "pears:3")
    assert "figure pears:3 is made of one run, and 2 were given" in refused.stderr


def test_a_run_without_figures_says_what_to_do(typed: Type, done: Path) -> None:
    refused = typed("tables", done, "--figure", 3)
    assert (refused.code, refused.stdout) == (2, "")
    assert "there is no figure '3' of a run of mirror(h) + gamma(2)" in refused.stderr
    assert "`instar report --format svg` draws figures of any run" in " ".join(refused.stderr.split())


def test_a_run_without_tables_says_what_to_do(typed: Type, done: Path) -> None:
    refused = typed("tables", done)
    assert (refused.code, refused.stdout) == (2, "")
    assert "has no tables" in refused.stderr and "`instar suites` lists the suites" in refused.stderr


# --- pictures and pages


def test_draw_makes_pictures(typed: Type, done: Path, tmp_path: Path) -> None:
    drawn = typed("draw", done, "--worst", 2, "--out", tmp_path / "pics")
    assert drawn.code == 0, drawn.stderr
    files = sorted((tmp_path / "pics").iterdir())
    assert len(files) == 2 and all(str(file) in drawn.stdout for file in files)
    assert min(read_image(files[0]).size) > 150
    one = typed("draw", done, "--rule", "mirror(h)", "--case", "001.png", "--out", tmp_path / "one")
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["01_001_mirror(h).png"], one.stdout


def test_draw_says_why_it_cannot(typed: Type, tmp_path: Path) -> None:
    copy = write_scenes(tmp_path / "photos", 2)
    out = tmp_path / "run"
    instar.run("tests.engine.zones:forgetful", "mirror(h)", copy, out=out, workers=0)
    for file in copy.iterdir():
        file.rename(tmp_path / file.name)
    lost = typed("draw", out, "--out", tmp_path / "pics")
    assert "not drawn" in lost.stdout and lost.code == 2
    assert "pass --dataset" in lost.stdout
    moved = typed("draw", out, "--out", tmp_path / "pics", "--dataset", tmp_path)
    assert moved.stdout and "not drawn" not in moved.stdout


def test_report_says_what_it_could_not_draw(typed: Type, tmp_path: Path) -> None:
    photos, out = write_scenes(tmp_path / "photos", 2), tmp_path / "run"
    instar.run("tests.engine.zones:forgetful", "mirror(h)", photos, out=out, workers=0)
    assert "drawn" not in typed("report", out, "--out", tmp_path / "page.html").stderr
    photos.rename(tmp_path / "moved")
    lost = typed("report", out, "--out", tmp_path / "page.html")
    assert "instar: 2 of 2 pairs could not be drawn on the page: " in lost.stderr and lost.code == 0
    assert "pass --dataset" in lost.stderr
    assert "drawn" not in typed("report", out, "--out", tmp_path / "page.html", "--images", 0).stderr
    assert "drawn" not in typed("report", out, "--out", tmp_path / "p.html", "--dataset", tmp_path / "moved").stderr


def test_draw_of_a_flawless_run(typed: Type, poses: Path, tmp_path: Path) -> None:
    assert "There is nothing to draw" in typed("draw", poses, "--out", tmp_path).stdout


def test_report_writes_a_page(typed: Type, done: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    written = typed("report", done, "--out", page, "--images", 1, "--format", "html,md")
    assert written.code == 0, written.stderr
    assert f"{page}  " in written.stdout and f"Open it in a browser: {page.as_uri()}" in written.stdout
    assert "tests.engine.zones:forgetful" in page.read_text("utf-8")
    assert "forgetful" in page.with_suffix(".md").read_text("utf-8")


def test_view_says_where_the_page_is(typed: Type, done: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uvicorn.Server, "run", lambda server, sockets: None)
    shown = typed("view", done, "--no-browser")
    assert shown.code == 0, shown.stderr
    assert "http://127.0.0.1:" in shown.stdout and "viewer stopped" in shown.stdout
    assert typed("view", "no/run").code == 2


# --- rules and cases


def test_select(typed: Type, done: Path) -> None:
    chosen = typed("select", done)
    assert "1 of 2 rules" in chosen.words and "the cheapest set" in chosen.words
    values = json.loads(typed("select", done, "--share", 0.5, "--json").stdout)
    assert values["proven"] and [row["total"] for row in values["rules"]] == [4]


def test_slices(typed: Type, done: Path, tmp_path: Path) -> None:
    assert "Nothing can be compared" in typed("slices", done).stdout, "all cases fail"
    photos = write_scenes(tmp_path / "photos", 12)
    instar.run("tests.engine.zones:forgetful", "mirror(h)", photos, out=tmp_path / "run", workers=0)
    values = json.loads(typed("slices", tmp_path / "run", "--rule", "mirror(h)", "--json").stdout)
    shown = typed("slices", tmp_path / "run", "--rule", "mirror(h)")
    assert shown.code == 0
    assert all(row["property"] in shown.stdout for row in values)


def test_the_viewer_of_a_folder_shows_the_runs_inside_it(
    typed: Type, done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waited forever for a run in the folder itself."""
    served: list[Path] = []
    monkeypatch.setattr("instar.viewer.serve", lambda runs, **options: served.extend(runs))
    for name in ("second run", "first"):
        shutil.copytree(done, tmp_path / "runs" / name)
    (tmp_path / "runs" / "notes").mkdir()
    assert typed("view", tmp_path / "runs", done).code == 0
    assert served == [tmp_path / "runs" / "first", tmp_path / "runs" / "second run", done]
    served.clear()
    typed("view", tmp_path / "runs" / "notes")
    assert served == [tmp_path / "runs" / "notes"], "a run may begin there"


@pytest.mark.parametrize(("name", "more", "suffixes"), [
    ("x.md", (), {".md"}), ("x.html", (), {".html"}), ("x", (), {".html"}), ("x.md", ("--format", "html"), {".html"}),
])  # fmt: skip
def test_the_suffix_of_a_report_is_its_format(
    name: str, more: tuple[str, ...], suffixes: set[str], typed: Type, done: Path, tmp_path: Path
) -> None:
    assert typed("report", done, "--out", tmp_path / name, "--images", 0, *more).code == 0
    assert {path.suffix for path in tmp_path.iterdir() if path.is_file()} == suffixes


@pytest.mark.parametrize("more", [(), ("--shard", "1/2")], ids=["whole", "shard"])
@pytest.mark.parametrize("command", ["run", "boundary"])
def test_suggested_commands_name_what_is_there(
    command: str, more: tuple[str, ...], typed: Type, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From any folder, with names that have spaces: what is printed can be pasted."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(photos, "my photos")
    what = ("tests.toys:rectangles", "gamma(2)") if command == "run" else ("tests.analysis.test_boundary:dim", "gamma")
    made = typed(command, *what, "my photos", "--out", "runs/my run", "--workers", 0, *more)
    assert made.code == 0, made.stderr
    suggested = [shlex.split(part) for part in re.findall(r"instar (?:show|draw|report|tables|view) [^·]*", made.words)]
    assert suggested and all(Path(words[2]).is_dir() for words in suggested), suggested
    where = Path(suggested[0][2])
    assert where.name == ("my run-1-of-2" if more else "my run")
    wrong = typed("show", where, "--group", "nobody")
    assert wrong.code == 2 and f"`instar judge {shlex.quote(str(where))} --set" in wrong.stderr.replace("\n", " ")
