"""Suite files of the user's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from instar.suites import suite


def written(folder: Path, text: str, name: str = "mine.toml") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_a_suite_file(tmp_path: Path) -> None:
    found = suite(
        written(
            tmp_path,
            """
        name = "lighting"
        help = "What the night shift sees."
        include = ["met-pose/sub"]
        rules = ["gamma(gamma=0.30)", {rule = "rotation(5)", threshold = 0.3}, "filtered(greyscale, skin)"]

        [thresholds]
        "*" = 0.2
        "mirror(axis=h)" = 0.1

        [judging]
        aggregate = "max"
        confidence = 0.5
    """,
        )
    )
    assert (found.name, found.help, found.output) == ("lighting", "What the night shift sees.", "poses")
    assert [one.id for one in found.rules[-2:]] == ["gamma(0.3)", "filtered(greyscale, skin)"]
    assert len(found) == 21  # rotation(5) is in the restricted set already
    assert found.thresholds == {"*": 0.2, "rotation(5)": 0.3, "mirror(h)": 0.1}
    assert found.options == {"aggregate": "max", "confidence": 0.5}


def test_a_file_has_its_own_name_and_joins_others(tmp_path: Path) -> None:
    path = written(tmp_path, 'rules = ["gamma(0.3)"]\n[thresholds]\n"*" = 0.5')
    assert suite(path).name == "mine"
    assert suite(path).output is None
    both = suite(f"{path} + mirror(h)")
    assert [one.id for one in both.rules] == ["gamma(0.3)", "mirror(h)"]
    assert both.thresholds == {"gamma(0.3)": 0.5}


def test_includes_are_relative_to_the_file_and_carry_their_judging(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    written(tmp_path / "deep", 'rules = ["mirror(h) => poses"]\n[judging]\noutside = "keep"', "base.toml")
    found = suite(written(tmp_path, 'include = ["deep/base.toml"]\n[judging]\naggregate = "mean"'))
    assert [one.id for one in found.rules] == ["mirror(h) => poses"]
    assert found.output == "poses"
    assert found.options == {"outside": "keep", "aggregate": "mean"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('rule = ["gamma(0.5)"]', "unknown key 'rule'; did you mean 'rules'"),
        ('name = "empty"', "it has no rules"),
        ('rules = "gamma(0.5)"', "rules is a list"),
        ('rules = ["gamma(0.5)", "gama(0.5)"]', "rules, number 2: unknown transformation 'gama'; did you mean 'gamma'"),
        ('rules = ["gamma(-1)"]', "rules, number 1: .*gamma=-1 is not allowed"),
        ("rules = [3]", "expected a rule"),
        ('rules = [{rule = "identity", treshold = 1}]', "unknown key 'treshold'; did you mean 'threshold'"),
        ('rules = [{rule = "identity", threshold = "high"}]', "a threshold is a number"),
        ('rules = ["gamma(0.5)"]\n[thresholds]\n"gamma(0.6)" = 1', "no rule 'gamma\\(0.6\\)'; did you mean"),
        ('rules = ["gamma(0.5)"]\n[judging]\nagregate = "max"', "unknown option 'agregate'; did you mean 'aggregate'"),
        ('rules = ["gamma(0.5) => poses"]\n[judging]\nspace = "pixel"', "space=pixel is not allowed.*'pixels'"),
        ('include = ["met-pos"]', "include: unknown suite 'met-pos'; did you mean 'met-pose'"),
        ('rules = ["identity"]\noutput = "pose"', "unknown output 'pose'; did you mean 'poses'"),
        ("rules = [", "not valid TOML"),
        ('include = ["mine.toml"]', "includes itself"),
    ],
)
def test_errors_name_the_file_the_key_and_what_is_near(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as found:
        suite(written(tmp_path, text))
    assert "mine.toml" in str(found.value)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.toml: No such file"):
        suite("nowhere.toml")


def test_files_that_include_each_other_twice_are_read_once(tmp_path: Path) -> None:
    """Each step would double what is read: after thirty steps nobody waits for the end."""
    written(tmp_path, 'rules = ["gamma(0.5)"]', "s0.toml")
    for number in range(1, 15):
        others = ", ".join([f'"s{number - 1}.toml"'] * 20)
        written(tmp_path, f'include = [{others}]\nrules = ["rotation({number})"]', f"s{number}.toml")
    assert len(suite(str(tmp_path / "s14.toml"))) == 15


def test_a_long_way_of_includes_is_not_followed(tmp_path: Path) -> None:
    for number in range(40):
        written(tmp_path, f'include = ["s{number + 1}.toml"]', f"s{number}.toml")
    with pytest.raises(ValueError, match="it is included through 16 other files"):
        suite(str(tmp_path / "s0.toml"))


def test_a_suite_is_a_small_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="it is larger than 1 MB; a suite is a list of rules"):
        suite(written(tmp_path, "#" * (1 << 20) + "#"))
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(FileNotFoundError, match="not a regular file"):
        suite(str(tmp_path / "pipe.toml"))


@pytest.mark.parametrize(
    "line", ['rules = [{{rule = "gamma(0.5)", threshold = {}}}]', 'rules = ["gamma(0.5)"]\nthresholds = {{"*" = {}}}']
)
def test_a_threshold_of_400_digits_is_none(tmp_path: Path, line: str) -> None:
    with pytest.raises(ValueError, match=r"a threshold is a number from 0 \(or inf\), got 9+…"):
        suite(written(tmp_path, line.format("9" * 400)))
