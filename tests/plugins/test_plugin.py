"""A package from outside, installed as any other: what it brings is used without a change of Instar."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "examples" / "plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the example; nothing is fetched for it."""
    target = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "--target", target, PACKAGE], check=True)
    return target


def python(site: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths, "COLUMNS": "200"},
        timeout=600,
    )


def instar(site: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return python(site, "-m", "instar", *arguments)


SEVERAL = """
import sys
from instar.cli import main
for command in sys.argv[1:]:
    sys.argv = ["instar", command]
    try:
        main()
    except SystemExit as end:
        print(f"END of {command} {end.code or 0}")
"""
"""Commands one after the other in one process: to start one for each takes a second each."""


def test_everything_it_brings_is_listed(installed: Path) -> None:
    contents = {
        "systems": ["fruit-counter"],
        "datasets": ["bowls"],
        "suites": ["fruit"],
        "rules": ["lean", "=> same_count"],
        "--help": ["fruit"],
    }
    typed = python(installed, "-c", SEVERAL, *contents)
    rest = typed.stdout
    for command, names in contents.items():
        listing, end, rest = rest.partition(f"END of {command} 0\n")
        assert end and all(name in listing for name in names), (command, listing, typed.stderr)


@pytest.fixture(scope="module")
def fruit_run(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    ran = instar(installed, "run", "fruit-counter", "fruit", "bowls", "--out", folder / "fruit", "--workers", 1)
    assert ran.returncode == 0, ran.stderr
    return folder / "fruit"


def test_it_runs_in_workers_and_its_fault_is_found(installed: Path, fruit_run: Path) -> None:
    shown = json.loads(instar(installed, "show", fruit_run, "--json").stdout)
    rates = {row["rule"].partition(" => ")[0]: row["rate"] for row in shown["rules"]}
    assert rates["identity"] == rates["mirror(h)"] == rates["lean(0.1)"] == 0
    assert rates["gamma(2)"] > 0.9 and rates["greyscale"] > 0.9


def test_tables_report_pictures_and_its_own_command(installed: Path, fruit_run: Path, tmp_path: Path) -> None:
    tables = instar(installed, "tables", fruit_run)
    assert "Fruit, counted." in tables.stdout and "gamma(2)" in tables.stdout
    written = instar(installed, "report", fruit_run, "--out", tmp_path / "fruit.html")
    assert written.returncode == 0, written.stderr
    assert "How many fruits are lost" in (tmp_path / "fruit.html").read_text("utf-8")
    previewed = instar(installed, "preview", "speckle(0.1)", PACKAGE.parent / "plugin" / "nothing.png")
    assert previewed.returncode == 2 and "nothing.png" in previewed.stderr


def test_a_seeded_transformation_repeats_itself(installed: Path) -> None:
    code = (
        "import numpy as np\nfrom instar import Image, transformation\n"
        "image = Image(np.full((40, 40, 3), 100, np.uint8))\n"
        "change = transformation('speckle(0.2)')\n"
        "one, two, other = (change(image, seed=seed)[0].pixels for seed in (1, 1, 2))\n"
        "print(np.array_equal(one, two), np.array_equal(one, other))\n"
    )
    ran = python(installed, "-c", code)
    assert ran.stdout.split() == ["True", "False"]


def test_a_broken_package_is_reported_and_costs_nobody_else(tmp_path: Path) -> None:
    info = tmp_path / "broken-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[instar.tasks]\nbroken = no_such_module:TASK\n\n[instar.systems]\nbroken-system = also_missing:SYSTEM\n"
    )
    listed = instar(tmp_path, "systems")
    assert listed.returncode == 0 and "mediapipe-holistic" in listed.stdout
    assert "no_such_module" in listed.stderr and "broken" in listed.stderr and "Traceback" not in listed.stderr
    assert listed.stderr.count("; mend it, or `pip uninstall broken`") >= 1
    wanted = instar(tmp_path, "check", "broken-system")
    assert wanted.returncode == 2 and "also_missing" in wanted.stderr
