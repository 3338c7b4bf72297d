"""`instar export` and `instar import`."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Type

RULES = "mirror(h) => verbatim + gamma(0.5) => verbatim"


@pytest.fixture(scope="module")
def exported(typed: Type, photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("export")
    shown = typed("export", photos, "mirror(h)+gamma(0.5)", "--kind", "caption", "--out", out, "--limit", 2)
    assert shown.code == 0, shown.stderr
    assert "6 ok; 6 new in" in shown.words
    assert "instar import answers.csv --export" in shown.words
    return out


def test_the_same_export_again_writes_nothing(typed: Type, photos: Path, exported: Path) -> None:
    command = ("export", photos, "mirror(h)+gamma(0.5)", "--kind", "caption", "--out", exported, "--limit", 2)
    outcome = json.loads(typed(*command, "--json").stdout)
    assert (outcome["export"], outcome["fresh"], outcome["statuses"]) == (str(exported), 0, {"ok": 6})


def test_answers_become_a_run(typed: Type, exported: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in (exported / "inputs.jsonl").read_text("utf-8").splitlines()]
    with (tmp_path / "answers.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["case", "follow_up", "text"])
        table.writerows([line["case"], line["follow_up"], f"dog {line['case']}"] for line in lines)
    command = ("import", tmp_path / "answers.csv", "--export", exported, "--columns", "caption=text")
    shown = typed(*command, "--out", tmp_path / "run", "--suite", RULES)
    assert shown.code == 0, shown.stderr
    assert "Imported 6 outputs of 2 cases in " in shown.stdout
    assert "mirror(h) => verbatim mirrored left to right: the caption must stay word for word 0/2" in shown.words
    again = json.loads(typed(*command, "--out", tmp_path / "other", "--suite", RULES, "--json").stdout)
    assert (again["fresh"], again["statuses"]) == (6, {"ok": 6})


def test_an_import_that_tells_nothing_ends_as_such_a_run(typed: Type, exported: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in (exported / "inputs.jsonl").read_text("utf-8").splitlines()]
    sources = [f"{line['case']},source,dog {line['case']}" for line in lines if line["follow_up"] == "source"]
    (tmp_path / "sources.csv").write_text("\n".join(["case,follow_up,caption", *sources]))
    command = ("import", tmp_path / "sources.csv", "--export", exported, "--suite", RULES)
    none = typed(*command, "--out", tmp_path / "run")
    assert none.code == 3 and "instar: not one pair was judged; `instar show" in none.words
    assert typed(*command, "--out", tmp_path / "other", "--json").code == 3
    bare = typed("import", tmp_path / "sources.csv", "--out", tmp_path / "bare")
    assert bare.code == 0, "without rules nothing was to be judged"


def test_import_asks_where_the_run_goes(typed: Type) -> None:
    refused = typed("import", "answers.csv")
    assert refused.code == 2
    assert "--out runs/recorded" in refused.words
