"""Every command and every hostile thing: a row or a clear error, nothing lost, no traceback, bounded time and memory.

The corpus is in `corpus.py` and `systems.py`; `tests/cli/test_trust.py` has what a received run folder may not do.
"""

from __future__ import annotations

import json
import resource
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import polars as pl
import pytest
import uvicorn
from starlette.testclient import TestClient

from instar.store import Store
from instar.store.parts import part_name
from instar.viewer import application
from tests.cli.conftest import Typed, typed
from tests.cli.test_trust import ARGUMENTS
from tests.hostile.corpus import (
    DAMAGES,
    NAMES,
    PICTURES,
    TABLES,
    TEXTS,
    encoded,
    hostile_folder,
    hostile_manifests,
    hostile_suites,
)

MOST_SECONDS = 600
MOST_MEMORY = 1 << 30
PORT = 8123
ASKED = ("tests.toys:rectangles", "mirror(h)+gamma(0.5)")


class _TooLate(BaseException):
    """Nothing that Instar catches."""


def _too_late(number: int, frame: FrameType | None) -> None:
    raise _TooLate(f"no end within {MOST_SECONDS} s")


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """Each test ends, and takes no more memory than a laptop has to spare."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    usual = signal.signal(signal.SIGALRM, _too_late)
    signal.alarm(MOST_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, usual)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MOST_MEMORY


def civil(*arguments: object) -> Typed:
    """A command ends with a code that is documented and with words that a terminal can be shown."""
    result = typed(*arguments)
    assert result.code in (0, 1, 2, 3), (arguments, result)
    printed = result.stdout + result.stderr
    assert "Traceback" not in printed, (arguments, printed)
    assert not any(ord(sign) < 32 and sign not in "\n\t\r" for sign in printed), (arguments, printed[:400])
    assert not any(sign in printed for sign in "\u202e\u2028"), arguments
    if result.code == 2:
        assert result.stderr.strip(), arguments
        assert len(result.stderr) < 4000, (arguments, result.stderr[:400])
    printed.encode("utf-8")
    return result


def looked_at(run: Path, out: Path) -> dict[str, Typed]:
    """Every command that looks at a run, and the viewer."""
    results = {
        name: civil(name, run, *more)
        for name, more in {
            "show": (),
            "tables": (),
            "select": (),
            "slices": (),
            "judge": (),
            "draw": ("--out", out / "drawn"),
            "report": ("--out", out / "report.html", "--format", "html,md", "--images", 6),
        }.items()
    }
    results["show --json"] = civil("show", run, "--json")
    if (page := out / "report.html").exists():
        text = page.read_text("utf-8")
        assert "<script>alert(" not in text and "<img src=x" not in text
    viewed(run)
    return results


def viewed(run: Path) -> None:
    made = application([run], port=PORT)
    for one in made.state.viewer.runs:
        one.look()
    with TestClient(made, base_url=f"http://127.0.0.1:{PORT}", raise_server_exceptions=True) as client:
        for page in ("/", "/gallery", "/pulse"):
            answer: Any = client.get(page)
            assert answer.status_code < 500, (page, answer.text[:300])
            assert "<script>alert(" not in answer.text


# -- pictures and names


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_folder(tmp_path_factory.mktemp("hostile") / "photos")


@pytest.fixture(scope="module")
def pictures_run(folder: Path) -> Path:
    out = folder.parent / "run"
    ran = civil("run", *ASKED, folder, "--out", out, "--workers", 1)
    assert ran.code == 0, ran.stderr
    return out


def test_a_folder_of_hostile_pictures_is_a_row_each(pictures_run: Path, tmp_path: Path) -> None:
    cases = Store(pictures_run).cases()
    statuses = dict(zip(cases["case"], cases["status"], strict=True))
    assert len([status for status in statuses.values() if status == "ok"]) >= len(NAMES), "every readable one was asked"
    for name in ("nothing.png", "text.jpg", "huge.png", "large.png", "none.png", "bomb.webp", "page.png"):
        assert statuses[name] != "ok", name
    results = looked_at(pictures_run, tmp_path)
    assert results["show"].code in (0, 1)
    again = civil(
        "run", "tests.toys:rectangles", "mirror(h)+gamma(0.5)", pictures_run.parent / "photos", "--out", pictures_run
    )
    assert "Nothing is left to do" in again.words


@pytest.mark.parametrize("name", PICTURES)
def test_one_hostile_picture_can_be_previewed_and_checked(folder: Path, tmp_path: Path, name: str) -> None:
    civil("preview", "mirror(h)", folder / name, "--out", tmp_path / "preview.png")
    civil("check", "tests.toys:rectangles", folder / name, "--out", tmp_path / "check")


@pytest.mark.parametrize("name", ["pipe.png", "folder.png", "nowhere.png", "loop.png", "noise.png"])
def test_what_is_no_file_hangs_nothing(folder: Path, tmp_path: Path, name: str) -> None:
    for command in (("preview", "mirror(h)", folder / name), ("check", "tests.toys:rectangles", folder / name)):
        assert civil(*command, "--out", tmp_path / "out").code in (1, 2)
    ran = civil("run", "tests.toys:rectangles", "mirror(h)", folder / name, "--out", tmp_path / "run", "--workers", 0)
    assert ran.code in (2, 3)


@pytest.mark.parametrize("damage", ["", "cut"])
@pytest.mark.parametrize("path", ARGUMENTS, ids=" ".join)
def test_every_command_is_civil(
    path: tuple[str, ...],
    damage: str,
    pictures_run: Path,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All commands at hostile images and a run of them, whole or damaged; a new command has to be in `ARGUMENTS`."""
    monkeypatch.setattr(uvicorn.Server, "run", lambda server, sockets: None)
    run, table = tmp_path / "run", tmp_path / "answers.jsonl"
    shutil.copytree(pictures_run, run)
    if damage:
        part = next((run / "predictions").glob("*.parquet"))
        part.write_bytes(DAMAGES[damage](part.read_bytes()))
    lines = [{"case": text, "follow_up": "source", "boxes": [], "labels": []} for text in TEXTS.values()]
    table.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "out").mkdir()
    meant = {"PHOTOS": folder, "RUN": run, "EXPORT": tmp_path / "export", "OUT": tmp_path / "out", "TABLE": table}
    for argument in ARGUMENTS[path]:
        assert argument.split("/")[0] in meant or not argument.split("/")[0].isupper(), "a placeholder that is new"
    civil(
        *path,
        *(
            Path(meant[first], *rest) if first in meant else argument
            for argument in ARGUMENTS[path]
            for first, *rest in [argument.split("/")]
        ),
    )


# -- what systems say


@pytest.fixture(scope="module")
def shades(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures that differ by the grey of their first pixel: systems choose by it what they say."""
    folder = tmp_path_factory.mktemp("shades") / "photos"
    folder.mkdir()
    for number in range(len(TEXTS)):
        pixels = np.full((24, 32, 3), 11 * number, np.uint8)
        pixels[:, -1] = 0  # mirrored, all are alike: what ends a worker does it once
        (folder / f"{number:02d}.png").write_bytes(encoded(".png", pixels))
    return folder


@pytest.mark.parametrize("system", ["talker", "labeller", "thrower", "liar", "chatty"])
def test_whatever_a_system_says_is_a_row(shades: Path, tmp_path: Path, system: str) -> None:
    out, images = tmp_path / "run", 9 if system == "thrower" else len(TEXTS)  # a worker that is ended costs a second
    arguments = ("mirror(h)", shades, "--out", out, "--workers", 1, "--limit", images)
    ran = civil("run", f"tests.hostile.systems:{system}", *arguments)
    assert ran.code in (0, 1, 3), ran.stderr
    assert Store(out).predictions().height == 2 * images, "one row per key"
    if system != "chatty":  # whatever it prints, its answers are plain boxes
        looked_at(out, tmp_path)
    if system not in ("chatty", "thrower"):  # `check` asks in this process: prints and Ctrl-C are the user's own
        civil("check", f"tests.hostile.systems:{system}", shades / "00.png", "--out", tmp_path / "check")


# -- files that users give


@pytest.mark.parametrize("name", TABLES)
def test_a_hostile_table_is_imported_or_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(TABLES[name])
    imported = civil("import", tmp_path / name, "--out", tmp_path / "run", "--kind", "captions")
    if imported.code == 0:
        looked_at(tmp_path / "run", tmp_path)
    else:
        assert not Store(tmp_path / "run").exists, "what was refused left no run behind"


def test_hostile_suites_are_refused(shades: Path, tmp_path: Path) -> None:
    for path in hostile_suites(tmp_path / "suites"):
        for command in (
            ("run", "tests.toys:rectangles", path, shades, "--out", tmp_path / "run", "--workers", 0),
            ("preview", path, shades / "03.png", "--out", tmp_path / "preview.png"),
            ("suites", path),
        ):
            assert civil(*command).code == 2 or path.name in ("many.toml",), (path.name, command)
    assert not Store(tmp_path / "run").exists


# -- run folders that were damaged or made to do harm


@pytest.fixture(scope="module")
def whole(shades: Path) -> Path:
    out = shades.parent / "whole"
    suite = "mirror(h)+gamma(0.5)"
    ran = civil("run", "tests.engine.zones:forgetful", suite, shades, "--out", out, "--workers", 0, "--limit", 3)
    assert ran.code in (0, 1), ran.stderr
    return out


def test_a_hostile_manifest_is_read_or_refused(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    for name, content in hostile_manifests(whole / "manifest.json").items():
        (out / "manifest.json").write_bytes(content)
        for command in ("show", "tables", "slices"):
            assert civil(command, out).code in (0, 1, 2), name


def test_a_damaged_file_is_named_by_whatever_needs_it(whole: Path, tmp_path: Path) -> None:
    undamaged = civil("show", whole).stdout
    parts = sorted(whole.rglob("*.parquet"))
    assert {path.parent.name for path in parts} >= {"cases", "predictions"}
    for part in parts:
        for damage, damaged in DAMAGES.items():
            out = tmp_path / "run"
            shutil.rmtree(out, ignore_errors=True)
            shutil.copytree(whole, out)
            hurt = out / part.relative_to(whole)
            hurt.write_bytes(damaged(part.read_bytes()))
            shown, reported = civil("show", out), civil("report", out, "--out", tmp_path / "report.html", "--images", 0)
            for result in (shown, reported):
                if result.code:
                    assert str(hurt) in "".join(result.stderr.split()), (part, damage, result)
            assert shown.code == 2 or shown.stdout == undamaged, (part, damage)
            assert reported.code == 2, (part, damage, "a report reads everything")


TAMPERED: Mapping[str, Callable[[pl.DataFrame, str], pl.DataFrame]] = {
    "missing": lambda frame, name: frame.drop(name),
    "of a number": lambda frame, name: frame.with_columns(pl.lit(7, pl.Int64).alias(name)),
    "of lists": lambda frame, name: frame.with_columns(pl.lit([[1]], pl.List(pl.List(pl.Int64))).alias(name)),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_a_part_with_other_columns_is_named_with_its_column(whole: Path, tmp_path: Path, how: str) -> None:
    """Somebody else's folder may hold Parquet files that are whole and none of Instar's."""
    typed("judge", whole)
    for part in sorted(whole.rglob("verdicts/*/*-*.parquet")) + sorted(whole.glob("*/*.parquet")):
        frame = pl.read_parquet(part)
        columns = ("case", "severity") if "verdicts" in part.parts else (frame.columns[0], frame.columns[-1])
        for column in columns:
            out = tmp_path / "run"
            shutil.rmtree(out, ignore_errors=True)
            shutil.copytree(whole, out)
            hurt = out / part.relative_to(whole)
            hurt.unlink()
            TAMPERED[how](frame, column).write_parquet(hurt)
            hurt = hurt.rename(hurt.with_name(part_name(int(part.name[:10]), int(part.name[11:21]), hurt)))
            reported = civil("report", out, "--out", tmp_path / "report.html", "--images", 0)
            assert reported.code == 2, (part, column)
            flat = "".join(reported.stderr.split())
            assert str(hurt) in flat and f"'{column}'" in flat, (part, column, reported.stderr)
            assert civil("repair-run", out).code == 0
            assert not hurt.exists()


def test_a_folder_that_cannot_be_written_says_so(shades: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    ran = civil("run", "tests.toys:rectangles", "mirror(h)", shades, "--out", tmp_path / "file", "--workers", 0)
    assert ran.code == 2 and (tmp_path / "file").read_text() == "mine"
