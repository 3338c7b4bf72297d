"""The commands as a user types them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import instar
from instar.image import read_image
from tests.toys import write_scenes

ROOT = Path(__file__).parents[2]


def command(*arguments: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-m", "instar", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": paths, "COLUMNS": "100", **environment},
        check=False,
    )


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scenes(tmp_path_factory.mktemp("data") / "photos", 4)


@pytest.fixture(scope="module")
def done(photos: Path) -> Path:
    """A finished run, made by the command."""
    out = photos.parent / "run"
    ran = command(
        "run",
        "tests.engine.zones:forgetful",
        "mirror(h)+gamma(2)",
        str(photos),
        "--out",
        str(out),
        "--zones",
        "none",
        "--workers",
        "1",
    )
    assert ran.returncode == 0, ran.stderr
    assert "12 new predictions" in ran.stdout
    assert "4 of 4 cases violate at least one rule" in ran.stdout
    return out


def test_the_same_command_again_says_that_nothing_is_left(photos: Path, done: Path) -> None:
    again = command(
        "run",
        "tests.engine.zones:forgetful",
        "mirror(h)+gamma(2)",
        str(photos),
        "--out",
        str(done),
        "--zones",
        "none",
        "--workers",
        "1",
    )
    assert again.returncode == 0
    assert "Nothing is left to do" in again.stdout


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("families", "family      rules"),
        ("suites", "of the suite"),
        ("counts", "violated"),
        ("coverage", "covered by"),
        ("classic", "no annotated"),
        ("landmarks", "landmarks are those of poses"),
        ("cover", "did you mean 'coverage'"),
    ],
)
def test_further_tables(done: Path, table: str, says: str) -> None:
    shown = command("show", str(done), "--table", table)
    assert says.split()[0] in shown.stdout + shown.stderr
    assert "Traceback" not in shown.stderr
    if shown.returncode == 0:
        assert json.loads(command("show", str(done), "--table", table, "--json").stdout)[0]["table"]


def test_show(done: Path) -> None:
    shown = command("show", str(done), "--threshold", "0.5")
    assert shown.returncode == 0
    assert "mirror(h)" in shown.stdout
    assert "95 % int." in shown.stdout
    found = json.loads(command("show", str(done), "--json").stdout)
    assert found["any"]["violated"] == 4
    assert {row["rule"] for row in found["rules"]} == {"mirror(h) => detections", "gamma(2) => detections"}
    assert found["worst"][0]["severity"] == 1.0


def test_judge_asks_again_without_inference(done: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in (done / "predictions").iterdir()}
    judged = command("judge", str(done), "--confidence", "0.9", "--json")
    assert judged.returncode == 0, judged.stderr
    assert json.loads(judged.stdout)["judging"] == "confidence=0.9"
    assert {p: p.stat().st_mtime_ns for p in (done / "predictions").iterdir()} == before


def test_draw_makes_pictures(done: Path, tmp_path: Path) -> None:
    drawn = command("draw", str(done), "--worst", "2", "--out", str(tmp_path / "pics"))
    assert drawn.returncode == 0, drawn.stderr
    files = sorted((tmp_path / "pics").iterdir())
    assert len(files) == 2
    assert min(read_image(files[0]).size) > 150
    one = command("draw", str(done), "--rule", "mirror(h)", "--case", "001.png", "--out", str(tmp_path / "one"))
    assert [p.name for p in (tmp_path / "one").iterdir()] == ["01_001_mirror(h).png"], one.stdout


def test_draw_says_why_it_cannot(photos: Path, tmp_path: Path) -> None:
    copy = write_scenes(tmp_path / "photos", 2)
    out = tmp_path / "run"
    instar.run("tests.engine.zones:forgetful", "mirror(h)", copy, out=out, workers=0)
    for file in copy.iterdir():
        file.rename(tmp_path / file.name)
    lost = command("draw", str(out), "--out", str(tmp_path / "pics"))
    assert "not drawn" in lost.stdout
    assert "--dataset" in lost.stdout
    found = command("draw", str(out), "--out", str(tmp_path / "pics"), "--dataset", str(tmp_path))
    assert "not drawn" not in found.stdout


def test_preview_makes_a_contact_sheet(photos: Path, tmp_path: Path) -> None:
    made = command(
        "preview",
        "met-pose/sub",
        str(photos / "000.png"),
        "--out",
        str(tmp_path / "sheet.png"),
        "--zones",
        "tests.engine.zones:painted",
    )
    assert made.returncode == 0, made.stderr
    assert read_image(tmp_path / "sheet.png").size[0] > 600
    assert "not applicable: filtered(colour_wheel(90), hair)" in made.stdout


def test_plan_counts_and_estimates(photos: Path, tmp_path: Path) -> None:
    planned = command(
        "run", "tests.toys:shaky", "noise(8) => poses(draws=3)", str(photos), "--plan", "--zones", "none", cwd=ROOT
    )
    assert planned.returncode == 0, planned.stderr
    assert "4 cases × 4 predictions = 16" in planned.stdout
    assert "about" in planned.stdout


def test_check_finds_a_wrong_adapter(photos: Path, tmp_path: Path) -> None:
    good = command("check", "tests.toys:rectangles", str(photos / "000.png"), "--out", str(tmp_path / "a"))
    assert good.returncode == 0, good.stdout
    assert (tmp_path / "a" / "000.png").is_file()
    bad = command("check", "tests.cli.wrong:normalised", str(photos / "000.png"), "--out", str(tmp_path / "b"))
    assert bad.returncode == 1
    assert "width" in bad.stdout


@pytest.mark.parametrize("what", ["rules", "suites", "systems", "datasets", "models"])
def test_lists(what: str) -> None:
    assert len(command(what).stdout.splitlines()) > 3
    rows = json.loads(command(what, "--json").stdout)
    assert all(row["name"] and row["help"] for row in rows)


def test_the_rules_of_a_suite() -> None:
    assert len(command("suites", "met-pose").stdout.splitlines()) == 123
    assert json.loads(command("suites", "met-pose@paper", "--json").stdout)["judging"]["space"] == "normalised"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "mediapipe-holistc", "met-pose", ".", "--out", "x"], "did you mean 'mediapipe-holistic'?"),
        (["run", "mediapipe-holistic(complexty=2)", "met-pose", ".", "--out", "x"], "did you mean 'complexity'?"),
        (["run", "tests.toys:steady", "met-poses", "PHOTOS", "--out", "x"], "did you mean 'met-pose'?"),
        (["run", "tests.toys:steady", "gama(1)", "PHOTOS", "--out", "x"], "did you mean 'gamma'?"),
        (["run", "tests.toys:steady", "gamma(1)", "no/such/folder", "--out", "x"], "no/such/folder"),
        (["run", "tests.toys:steady", "gamma(1)", "PHOTOS"], "--out runs/first"),
        (["run", "tests.toys:stedy", "gamma(1)", "PHOTOS", "--out", "TMP/x"], "did you mean 'steady'?"),
        (["run", "tests.toys:rectangles", "gamma(1) => poses", "PHOTOS", "--out", "TMP/x"], "answers with detections"),
        (["run", "tests.toys:steady", "gamma(1)", "PHOTOS", "--out", "RUN"], "give another folder"),
        (["show", "no/run"], "holds no run"),
        (["show", "RUN", "--judging", "nobody"], "has no judging 'nobody'"),
        (["judge", "RUN", "--landmarks", "hands"], "there is no judging option 'landmarks' for this run"),
        (["judge", "POSES", "--aggregate", "bogus"], "median, mean, max, min, median+mean, or a quantile from 0 to 1"),
        (["judge", "POSES", "--landmarks", "lft_arm"], "unknown landmark group 'lft_arm'"),
        (["draw", "RUN", "--rule", "gamma(3)", "--out", "x"], "unknown rule of this run"),
        (["preview", "met-pose/sub", "no.jpg"], "no.jpg"),
        (["models", "pull", "selfie"], "did you mean 'selfie-multiclass'?"),
    ],
)
def test_errors_help(arguments: list[str], message: str, photos: Path, done: Path, tmp_path: Path) -> None:
    meant = {"PHOTOS": photos, "RUN": done, "TMP/x": tmp_path / "x", "POSES": photos.parent / "poses"}
    if "POSES" in arguments:
        instar.run("tests.toys:steady", "mirror(h)", photos, out=meant["POSES"], workers=0, zones="none")
    failed = command(*(str(meant.get(a, a)) for a in arguments))
    assert failed.returncode == 2
    assert message in " ".join(failed.stderr.replace("│", " ").split())
    assert "Traceback" not in failed.stderr


def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    photos = write_scenes(tmp_path / "photos", 40)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "COUNT_FILE": str(tmp_path / "count"),
        "COUNT_SLEEP": "0.1",
    }
    child = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "instar",
            "run",
            "tests.toys:counting",
            "gamma(2)",
            str(photos),
            "--out",
            str(tmp_path / "run"),
            "--zones",
            "none",
            "--workers",
            "1",
        ],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "count").exists():
        assert child.poll() is None
        time.sleep(0.05)
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert child.returncode == 130, err
    assert "the same command again goes on" in out
    assert "Traceback" not in err


def test_help_has_examples() -> None:
    text = command("run", "--help").stdout
    assert "instar run mediapipe-holistic met-pose/sub photos/ --out runs/first" in " ".join(text.split())
    assert command("--version").stdout.strip() == instar.__version__
