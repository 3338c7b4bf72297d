"""Commands that help to decide."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import instar
from tests.cli.conftest import Type, Typed
from tests.toys import write_scenes

CASES = 16


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two versions of a detector: the first is right, the second misses what is red on the right half."""
    folder = tmp_path_factory.mktemp("versions")
    photos = write_scenes(folder / "photos", CASES)
    for name, system in (("right", "tests.toys:rectangles"), ("forgetful", "tests.engine.zones:forgetful")):
        instar.run(system, "mirror(h)+gamma(0.9)", photos, out=folder / name, workers=0)
    return folder / "right", folder / "forgetful"


def test_a_worse_version_is_called_worse_under_the_rule_that_finds_it(typed: Type, versions: tuple[Path, Path]) -> None:
    compared = typed("compare", *versions, "--flips", 3)
    assert compared.code == 0, compared.stderr
    first, second = "tests.toys:rectangles", "tests.engine.zones:forgetful"
    assert f"{second} is surely worse under 1 of 2 rules, most surely under mirror(h): 0 → " in compared.words
    assert f"Of {CASES} cases that both judged, 0 % (0) of {first} and" in compared.words
    assert "pairs that got worse, 3 of " in compared.words
    assert "better" not in compared.words
    backwards = typed("compare", *reversed(versions))
    assert f"{first} is surely better under 1 of 2 rules" in backwards.words


def test_a_run_of_one_answer_is_not_said_to_win(typed: Type, versions: tuple[Path, Path], tmp_path: Path) -> None:
    def everywhere(pixels: np.ndarray) -> instar.Detections:
        height, width = pixels.shape[:2]
        return instar.Detections.from_xyxy([[0, 0, width, height]], ["red"], [0.9])

    rules = "mirror(h)+gamma(0.9)"
    photos = versions[0].parent / "photos"
    instar.run(everywhere, rules, photos, out=tmp_path / "alike", workers=0)
    for pair in ((versions[1], tmp_path / "alike"), (tmp_path / "alike", versions[1])):
        words = typed("compare", *pair).words
        first, same, rates = words.index(" against "), words.index("have the same answer"), words.index(" surely ")
        assert first < same < rates and words.count("have the same answer") == 1
        assert "better" not in words[: words.index("pairs that got")] and "worse" not in words[:rates]


def test_the_same_for_programs_by_target_too(typed: Type, versions: tuple[Path, Path]) -> None:
    (verdict,) = json.loads(typed("compare", *versions, "--by", "target", "--json").stdout)
    mirrored, darkened = verdict["rules"]
    assert mirrored["rule"].startswith("mirror(h)")
    assert mirrored["second_only"] == mirrored["second"] == len(verdict["flips"])
    assert mirrored["low"] > 0
    assert mirrored["p_corrected"] < 0.05 < darkened["p_corrected"]
    assert {row["rule"]: row["p_corrected"] < 0.05 for row in verdict["targets"]} == {
        row["rule"]: row["p_corrected"] < 0.05 for row in verdict["rules"]
    }


def test_a_run_against_itself_shows_no_difference(typed: Type, versions: tuple[Path, Path]) -> None:
    words = typed("compare", versions[1], versions[1]).words
    assert "No rule shows a sure difference" in words
    assert "No pair is violated in one of them alone." in words


def test_wrong_use_says_what_is_allowed(typed: Type, versions: tuple[Path, Path]) -> None:
    assert (alone := typed("compare", versions[0])).code == 2
    assert "a comparison takes two runs or more, and one was given" in alone.words
    three = typed("compare", *versions, *["--judging", "default"] * 3)
    assert three.code == 2
    assert "3 judgings for 2 runs; give one for all, or one for each" in three.words


def test_a_gate_that_should_fail_fails_and_one_that_should_pass_passes(
    typed: Type, versions: tuple[Path, Path], tmp_path: Path
) -> None:
    policy, right, forgetful = tmp_path / "instar.toml", *versions
    assert (absent := typed("gate", right, "--policy", policy)).code == 2
    assert "--init writes one" in absent.words
    assert typed("gate", right, "--init", "--policy", policy).code == 0
    assert (again := typed("gate", right, "--init", "--policy", policy)).code == 2
    assert "is there already, and is kept" in again.words
    passed = typed("gate", right, "--policy", policy)
    assert passed.code == 0, passed.words
    assert "checks hold." in passed.words
    files = [tmp_path / name for name in ("out.xml", "out.sarif", "pr.md")]
    flags = [each for pair in zip(("--junit", "--sarif", "--summary"), files, strict=True) for each in pair]
    unused = typed("gate", forgetful, "--policy", policy, "--baseline", right)
    assert unused.code == 2 and "compares the run with no baseline" in unused.words
    text, tail = policy.read_text("utf-8").split("# [[no_worse]]")
    policy.write_text(f"{text}[[no_worse]]{tail.replace('# ', '')}", "utf-8")
    failed = typed("gate", forgetful, "--policy", policy, "--baseline", right, *flags)
    assert failed.code == 1
    assert "FAILS" in failed.words and "in the baseline" in failed.words
    assert all(file.stat().st_size for file in files)
    assert (tmp_path / "pr-pictures" / "1.png").is_file()
    values = json.loads(typed("gate", forgetful, "--policy", policy, "--baseline", right, "--json").stdout)
    assert not values["passed"]
    assert "mirror" in {one["name"] for one in values["checks"] if not one["passed"]}


def test_runs_are_told_apart_by_their_judgings(typed: Type, versions: tuple[Path, Path]) -> None:
    typed("judge", versions[0], "--set", "confidence=0.95")
    words = typed("compare", *[versions[0]] * 2, "--judging", "default", "--judging", "confidence=0.95").words
    assert "judged by confidence=0.95 against" in words


def test_a_comparison_in_which_nothing_was_judged_ends_with_3(
    typed: Type, versions: tuple[Path, Path], tmp_path: Path
) -> None:
    def silent(pixels: np.ndarray) -> instar.Detections:
        return instar.Detections.from_xyxy(np.empty((0, 4)), [])

    with pytest.warns(UserWarning, match="nothing can be told"):
        instar.run(silent, "gamma(0.9)", versions[0].parent / "photos", out=tmp_path / "silent", workers=0)
    compared = typed("compare", versions[0], tmp_path / "silent")
    assert "No case was judged in both." in compared.words and "too few" not in compared.words
    assert "no pair was judged in both" in compared.words and compared.code == 3
    assert typed("compare", versions[0], tmp_path / "silent", "--json").code == 3


LIMITS = '[[limit]]\nof = "mirror"\nrate = 0.3\n[[limit]]\nof = "gamma"\nrate = 0.2\n'


def test_a_gate_makes_its_run_until_the_policy_is_decided(typed: Type, tmp_path: Path) -> None:
    """A clear failure, and a clear pass, take a part of the predictions; the exit code is that of any gate."""
    photos, policy = write_scenes(tmp_path / "photos", 60), tmp_path / "instar.toml"
    policy.write_text(LIMITS.replace("0.2", "0.15"))

    def gated(name: str, system: str, *more: str) -> Typed:
        return typed(
            *("gate", tmp_path / name, "--policy", policy, "--workers", 0, *more),
            *("--until", system, "mirror(h)+gamma(0.9)", photos),
        )

    failed = gated("bad", "tests.engine.zones:forgetful")
    assert failed.code == 1, failed.stderr
    assert "A limit is sure to fail after 25 of 60 cases; of the others no more was asked." in failed.words
    assert "105 of 180 predictions (58 %) were not needed." in failed.words
    assert "FAILS 25 of 25 cases violate mirror" in failed.words
    assert "open Not decided, because asking stopped at a limit that is sure to fail: 0 of 25 cases violate gamma" in (
        failed.words
    )
    assert "1 of 7 checks fails; 1 is not decided." in failed.words
    passed = json.loads(gated("good", "tests.toys:rectangles", "--json").stdout)
    assert passed["passed"]
    assert passed["until"].startswith("Enough is known of 2 of 2 limits")
    assert gated("good", "tests.toys:rectangles").code == 0, "the same again asks nothing and says the same"
    assert instar.open_run(tmp_path / "good").severities().looked
    other = gated("good", "tests.engine.zones:forgetful")
    assert other.code == 2
    assert (
        "start over (`instar run … --fresh`), which moves the earlier run aside, give another folder (RUN)"
        in other.stderr
    )


def test_a_comparison_with_a_baseline_is_decided_when_all_cases_were_asked(typed: Type, tmp_path: Path) -> None:
    photos, policy = write_scenes(tmp_path / "photos", 30), tmp_path / "instar.toml"
    policy.write_text('[[limit]]\nof = "mirror"\nrate = 0.3\n[[no_worse]]\nof = "mirror"\nmargin = 0.3\n')
    instar.run("tests.toys:rectangles", "mirror(h)", photos, out=tmp_path / "v1", workers=0)
    gated = typed(
        *("gate", tmp_path / "v2", "--policy", policy, "--workers", 0, "--baseline", tmp_path / "v1"),
        *("--until", "tests.toys:rectangles", "mirror(h)", photos),
    )
    assert gated.code == 0, gated.words
    assert "Enough is known of 2 of 2 limits after 25 to 30 of 30 cases." in gated.words
    assert "not enough is known" not in gated.words and "checks hold." in gated.words


def test_a_gate_replaces_its_own_files_and_no_other_one_of_the_same_command(
    typed: Type, versions: tuple[Path, Path], tmp_path: Path
) -> None:
    policy, out = tmp_path / "instar.toml", tmp_path / "out.xml"
    policy.write_text(LIMITS)
    assert typed("gate", versions[1], "--policy", policy, "--junit", out).code == 1
    before = out.read_text()
    typed("gate", versions[0], "--policy", policy, "--junit", out)
    assert out.read_text() != before
    for file in (policy, out):
        refused = typed("gate", versions[0], "--policy", policy, "--junit", out, "--sarif", file)
        assert refused.code == 2
        assert "give another file" in refused.words
    assert policy.read_text() == LIMITS


@pytest.mark.parametrize("command", ["compare", "gate"])
def test_runs_that_cannot_be_held_together_are_named_with_what_to_do(
    typed: Type, versions: tuple[Path, Path], tmp_path: Path, command: str
) -> None:
    policy = tmp_path / "instar.toml"
    policy.write_text('[[no_worse]]\nof = "any rule"\nmargin = 0.1\n')
    others = write_scenes(tmp_path / "others", 3, (90, 90))
    elsewhere = instar.run("tests.toys:rectangles", "mirror(h)", others, out=tmp_path / "elsewhere", workers=0).folder
    poses = instar.run("tests.toys:steady", "mirror(h)", others, out=tmp_path / "poses", workers=0).folder
    (tmp_path / "empty").mkdir()
    for other, words in (
        (elsewhere, "each with another input: run both on one dataset"),
        (poses, "have no rule in common (mirror(h) + gamma(0.9) and mirror(h)): run one suite in both"),
        (tmp_path / "empty", "holds no run (there is no manifest.json in it)"),
    ):
        pair = (versions[0], other) if command == "compare" else (other, "--baseline", versions[0], "--policy", policy)
        refused = typed(command, *pair)
        assert refused.code == 2, refused.words
        assert words in refused.words
