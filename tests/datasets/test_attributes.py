"""Attributes of cases from a table, for any dataset."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from instar.datasets import dataset, datasets

Write = Callable[..., Path]


@pytest.fixture
def photos(here: Path, picture: Write) -> Path:
    for name in ("a.png", "007.png", "grüße.png"):
        picture(here / "photos" / name)
    return here


def opened(table: str, here: Path) -> Any:
    (here / "table.csv").write_text(table, "utf-8")
    return dataset('folder("photos", attributes="table.csv")')


def test_a_table_gives_cases_attributes(photos: Path) -> None:
    found = opened("case,object,weight,place\n007.png,true,2,in\na.png,false,,out\ngru\u0308ße.png,true,1.5,\n", photos)
    assert {case.id: case.attributes for case in found.cases()} == {
        "007.png": {"object": True, "weight": 2.0, "place": "in"},
        "a.png": {"object": False, "place": "out"},
        "grüße.png": {"object": True, "weight": 1.5},
    }
    assert found.notes == ()
    assert found.name == "folder(photos, attributes=table.csv)"
    assert dataset(found.name).name == found.name


def test_what_does_not_match_is_said(photos: Path) -> None:
    found = opened("case,object\na.png,yes\nb.png,no\n", photos)
    assert [dict(case.attributes) for case in found.cases()] == [{}, {"object": "yes"}, {}]
    assert found.notes == (
        "1 line of table.csv of no case: b.png",
        "2 cases without a line in table.csv: 007.png, grüße.png",
    )


def test_own_attributes_stay_and_the_table_wins(photos: Path, picture: Write) -> None:
    for name in ("a.jpg", "b.jpg"):
        picture(photos / "Train" / "manual_test" / name)
        (photos / "Train" / "manual_test" / name).with_suffix(".json").write_text(
            f'{{"hand_pts": {[[k, k, 1] for k in range(21)]}, "is_left": 1}}'
        )
    (photos / "table.csv").write_text("case,hand,object\nmanual_test/a.jpg,right,1\n")
    first, second = dataset('panoptic("Train", attributes="table.csv")').cases()
    assert first.attributes == {"part": "manual_test", "hand": "right", "object": 1}
    assert second.attributes == {"part": "manual_test", "hand": "left"}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("case,object\nx.png,1\n", r"no line of it names a case; it has x\.png, the cases are 007\.png, a\.png"),
        ("case,object\na.png,1\na.png,2\n", r"line 3: a\.png has a line already"),
        ("case,object\n,1\n", "line 2: it names no case"),
        ("name,object\na.png,1\n", "a column 'case' and others; its first line names name, object"),
        ("case\na.png\n", "a column 'case' and others; its first line names case"),
        ("", "not a table in CSV"),
        ("case,object\na.png,1,2\n", "not a table in CSV"),
        (f"case,{','.join(map(str, range(1001)))}\n", "it has 1,002 columns, at most 1,000 are read"),
        (f"case,object\na.png,{'9' * 400}\n", r"not a table in CSV \(.{0,200}\)$"),
    ],
)
def test_tables_that_are_something_else(photos: Path, table: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        opened(table, photos)


def test_a_table_that_is_not_there(photos: Path) -> None:
    (photos / "tables.csv").write_text("case,object\na.png,1\n")
    with pytest.raises(FileNotFoundError, match=r"no table of attributes 'table.csv'; did you mean 'tables.csv'\?"):
        dataset('folder("photos", attributes="table.csv")')


def test_every_dataset_takes_one() -> None:
    assert all(
        sum(parameter.name == "attributes" for parameter in family.parameters) == 1 for family in datasets().values()
    )
