"""Commands as a user types them, in this process; and a finished run to look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from instar.cli import app
from tests.toys import write_scenes


@dataclass(frozen=True)
class Typed:
    """What a command printed, and its exit code."""

    code: int
    stdout: str
    stderr: str

    @property
    def words(self) -> str:
        """All that was printed, without line breaks, frames and spaces of a table."""
        return " ".join((self.stdout + " " + self.stderr).replace("│", " ").split())


Type = Callable[..., Typed]


def typed(*arguments: object, **environment: str) -> Typed:
    result = CliRunner(env={"COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb", **environment}).invoke(
        app, [str(argument) for argument in arguments]
    )
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Typed(result.exit_code, result.stdout, result.stderr)


@pytest.fixture(name="typed", scope="session")
def typed_fixture() -> Type:
    return typed


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scenes(tmp_path_factory.mktemp("data") / "photos", 4)


FORGETFUL = ("run", "tests.engine.zones:forgetful", "mirror(h)+gamma(2)")


@pytest.fixture(scope="session")
def done(photos: Path) -> Path:
    """A finished run of a detector, made by the command."""
    out = photos.parent / "run"
    ran = typed(*FORGETFUL, photos, "--out", out, "--zones", "none", "--workers", 0)
    assert ran.code == 0, ran.stderr
    assert "12 new predictions" in ran.stdout
    assert "4 of 4 cases violate at least one rule" in ran.words
    assert f"instar show {out}" in ran.words
    return out


@pytest.fixture(scope="session")
def poses(photos: Path) -> Path:
    """A finished run of poses."""
    out = photos.parent / "poses"
    ran = typed(
        "run", "tests.toys:steady", "mirror(h)", photos, "--out", out, "--zones", "none", "--workers", 0, "--json"
    )
    assert ran.code == 0, ran.stderr
    return out
