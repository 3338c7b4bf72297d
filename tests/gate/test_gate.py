"""A run held to a policy: what fails, with which words, and in which formats."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import instar
import instar.api
from instar import Detections
from instar.gate import PolicyError, checked, junit, markdown, new_policy, read_policy, sarif
from instar.gate.formats import WorstPair
from instar.image import read_image
from instar.report.findings import findings
from instar.report.verdict import verdict
from instar.report.words import SPACE
from instar.stats import binomial_bounds
from tests.missing import module
from tests.toys import rectangles, write_scenes

CASES = 16


def silent(pixels: np.ndarray) -> Detections:
    return Detections.from_xyxy(np.empty((0, 4)), [])


def constant(pixels: np.ndarray) -> Detections:
    return Detections.from_xyxy([[0, 0, 9, 9]], ["thing"])


def broken(pixels: np.ndarray) -> Detections:
    if pixels[0, 0, 0] < 80:
        raise ValueError("too dark")
    return rectangles(pixels)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scenes(tmp_path_factory.mktemp("data") / "photos", CASES)


@pytest.fixture(scope="module")
def runs(photos: Path) -> dict[str, instar.Run]:
    systems = {"right": "tests.toys:rectangles", "forgetful": "tests.engine.zones:forgetful"}
    return {
        name: instar.run(system, "mirror(h)+gamma(0.9)", photos, out=photos.parent / name, workers=0)
        for name, system in systems.items()
    }


def failures(run: instar.Run, folder: Path, policy: str, baseline: instar.Run | None = None) -> dict[str, str]:
    path = folder / "policy.toml"
    path.write_text(policy)
    return {
        one.name: one.words.replace(SPACE, " ") for one in checked(run, read_policy(path), baseline) if not one.passed
    }


LIMIT = '[[limit]]\nof = "{}"\n{}\n'


@pytest.mark.parametrize(
    ("of", "figures", "words"),
    [
        ("mirror(h)", "rate = 0.2", "with 95 % confidence at most"),
        ("mirror", 'rate = 0.2\nsure = "lower"', "with 95 % confidence at least"),
        ("any rule", 'rate = 0.2\nsure = "plain"', "; at most 20 % may."),
        ("mirror", 'severity = 0.5\nquantile = 0.5\nsure = "plain"', "in 50 % of 16 cases; 0.5 is allowed."),
        ("mirror", "severity = 0.5\nquantile = 0.5", "with 95 % confidence at most 1"),
    ],
)
def test_a_limit_fails_the_version_that_breaks_it_and_passes_the_other(
    runs: dict[str, instar.Run], tmp_path: Path, of: str, figures: str, words: str
) -> None:
    policy = LIMIT.format(of, figures)
    assert words in failures(runs["forgetful"], tmp_path, policy)[of]
    assert failures(runs["right"], tmp_path, policy) == {}


def test_a_clean_run_that_is_too_small_to_show_it_fails_and_says_how_many_cases_it_takes(
    runs: dict[str, instar.Run], tmp_path: Path
) -> None:
    failed = failures(runs["right"], tmp_path, LIMIT.format("mirror", "rate = 0.05"))
    assert "0 of 16 cases violate mirror: 0 %" in failed["mirror"]
    assert "Too few cases show it: at this rate it takes about 59." in failed["mirror"]
    assert failures(runs["right"], tmp_path, LIMIT.format("mirror", 'rate = 0.05\nsure = "lower"')) == {}


def test_no_regression_is_shown_or_fails(runs: dict[str, instar.Run], tmp_path: Path) -> None:
    policy = '[[no_worse]]\nof = "each rule"\nmargin = 0.3\n'
    failed = failures(runs["forgetful"], tmp_path, policy, runs["right"])
    assert list(failed) == ["mirror(h) against the baseline"]
    assert "0 did in the baseline" in failed["mirror(h) against the baseline"]
    assert failures(runs["right"], tmp_path, policy, runs["forgetful"]) == {}
    with pytest.raises(PolicyError, match=r"line 1: .*give the baseline"):
        failures(runs["right"], tmp_path, policy)


def test_a_run_does_not_pass_as_no_worse_by_finding_less(
    runs: dict[str, instar.Run], photos: Path, tmp_path: Path
) -> None:
    policy = '[[no_worse]]\nof = "any rule"\nmargin = 0.3\n'
    run = instar.run("tests.toys:shy", "mirror(h)+gamma(0.9)", photos, out=tmp_path / "shy", workers=0)
    judged = run.judged()
    lost = judged["pairs"] - judged["judged"]
    assert CASES < lost + 8 < 2 * CASES, "the toy finds less"
    failed = failures(run, tmp_path, policy, runs["right"])["any rule against the baseline"]
    assert f"Only the baseline judged {lost} pairs of " in failed
    assert f" of {CASES} cases violate any rule, 0 did in the baseline" in failed
    assert failures(runs["right"], tmp_path, policy.replace("0.3", "0.6"), run) == {}, (
        "what only the run judged is free"
    )


def test_a_run_that_finds_less_is_said_to_and_does_not_pass(
    runs: dict[str, instar.Run], photos: Path, tmp_path: Path
) -> None:
    """One box of each image is left: fewer can break a rule."""

    def largest(pixels: np.ndarray) -> Detections:
        boxes = rectangles(pixels)
        area = np.prod(boxes.boxes[:, 2:] - boxes.boxes[:, :2], 1)
        kept = np.argsort(-area)[:1]
        return Detections.from_xyxy(boxes.boxes[kept], [boxes.labels[one] for one in kept], boxes.scores[kept])

    run = instar.run(largest, "mirror(h)+gamma(0.9)", photos, out=tmp_path / "largest", workers=0)
    policy = '[[no_worse]]\nof = "any rule"\nmargin = 0.3\n'
    failed = failures(run, tmp_path, policy, runs["right"])
    assert list(failed) == ["found, against the baseline"]
    many = sum(len(rectangles(read_image(path).pixels)) for path in photos.iterdir())
    assert f"The run finds {CASES} in the unchanged inputs of {CASES} cases, the baseline {many}: " in str(failed)
    assert failures(run, tmp_path, f"least_found = 0.2\n{policy}", runs["right"]) == {}
    alone = failures(run, tmp_path, "least_found = 0.9\n", runs["right"])
    assert list(alone) == ["found, against the baseline"], "without [[no_worse]], too"
    one = verdict(runs["right"], run, ("right", "largest"))
    assert any(words.startswith(f"largest finds {CASES} in the unchanged inputs") for words in one.words)
    assert not any("better" in words for words in verdict(runs["forgetful"], run, ("forgetful", "largest")).words)
    turned = verdict(run, runs["forgetful"], ("largest", "forgetful")).words[0]
    assert turned.startswith("forgetful surely violates more cases under 1 of 2 rules"), "largest is no better"
    same = verdict(runs["right"], runs["forgetful"], ("right", "forgetful"))
    assert not any("in the unchanged inputs" in words for words in same.words)


@pytest.mark.parametrize(
    ("policy", "with_baseline", "words"),
    [
        ("least_found = 0.9\n", False, "line 1: least_found compares with another run; give the baseline"),
        ('[[no_worse]]\nof = "any rule"\nmargin = 0.3\n', False, "[[no_worse]] compares with another run"),
        ("cases = 1\n", True, "compares the run with no baseline, and one was given; add [[no_worse]]"),
    ],
)
def test_a_baseline_is_given_where_the_policy_compares_with_one(
    runs: dict[str, instar.Run], tmp_path: Path, policy: str, with_baseline: bool, words: str
) -> None:
    with pytest.raises(PolicyError, match=re.escape(words)):
        failures(runs["right"], tmp_path, policy, runs["forgetful"] if with_baseline else None)


def test_rules_and_cases_that_only_one_run_has_are_said(
    runs: dict[str, instar.Run], photos: Path, tmp_path: Path
) -> None:
    run = instar.run("tests.toys:rectangles", "mirror(h)+blur(1)", photos, out=tmp_path / "few", workers=0, limit=5)
    policy = tmp_path / "policy.toml"
    policy.write_text('[[no_worse]]\nof = "mirror"\nmargin = 0.9\n')
    for first, second in ((run, runs["right"]), (runs["right"], run)):
        checks = checked(second, read_policy(policy), first)
        (words,) = [one.words for one in checks if one.name == "mirror against the baseline"]
        larger, smaller = ("the run", "the baseline") if first is run else ("the baseline", "the run")
        assert words.endswith(" which no difference counts.")
        assert f"Only {larger} has 1 rule and {CASES - 5} cases, which no difference counts." in words
        assert f"Only {smaller} has 1 rule, which no difference counts." in words


def test_a_policy_that_says_nothing_is_none(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text("# later\n")
    with pytest.raises(PolicyError, match="says nothing that a run must hold"):
        read_policy(tmp_path / "policy.toml")


def test_a_useless_system_holds_no_policy(photos: Path, tmp_path: Path) -> None:
    for system, words in ((silent, "Nothing was found in any input"), (constant, "have the same answer")):
        with pytest.warns(instar.api.NothingTold):
            run = instar.run(system, "gamma(0.9)", photos, out=tmp_path / system.__name__, workers=0)
        assert words in failures(run, tmp_path, "cases = 0\n")["answers"]


def test_a_run_whose_rates_say_little_holds_no_policy(photos: Path, tmp_path: Path) -> None:
    """Shares taken for pixels, and answers that depend on what was asked before."""
    before: list[np.ndarray] = []

    def shares(pixels: np.ndarray) -> Detections:
        boxes = rectangles(pixels)
        return Detections.from_xyxy(boxes.boxes / 200, boxes.labels, boxes.scores)

    def remembers(pixels: np.ndarray) -> Detections:
        boxes = rectangles(pixels)
        corners = boxes.boxes if not before else boxes.boxes + 0.2 * before[0].mean()
        before[:] = [boxes.boxes]
        return Detections.from_xyxy(corners, boxes.labels, boxes.scores)

    rules = "identity + mirror(h) + gamma(0.4) + brightness(20, 1.2) + blur(2) + jpeg(20) + shift(0.1)"
    for answer, words in ((shares, "look like shares of the image"), (remembers, "The system remembers")):
        system = instar.declare(kind="detections", version="1")(answer)
        run = instar.run(system, rules, photos, out=tmp_path / answer.__name__, workers=0)
        assert words in failures(run, tmp_path, "cases = 0\n")["answers"]
        with pytest.raises(PolicyError, match=f"holds no policy: .*{words}"):
            new_policy(run)


def test_failed_predictions_and_unread_inputs_are_held_against_the_run(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    for path in photos.iterdir():
        (tmp_path / "photos" / path.name).write_bytes(path.read_bytes())
    (tmp_path / "photos" / "torn.png").write_bytes(b"no image")
    run = instar.run(broken, "gamma(1.1)", tmp_path / "photos", out=tmp_path / "run", workers=0)
    failed = failures(run, tmp_path, "cases = 1\n")
    assert "at most 0 % may." in failed["failed"]
    share = 1 - run.predictions()["status"].eq("ok").sum() / (2 * (CASES + 1))
    assert f"({100 * share:.0f} %)" in failed["failed"]
    assert "failed" not in failures(run, tmp_path, "failed = 1.0\n")


def test_a_shard_or_an_unfinished_run_does_not_pass(photos: Path, tmp_path: Path) -> None:
    part = instar.run("tests.toys:rectangles", "gamma(0.9)", photos, out=tmp_path / "run", workers=0, shard="1/2")
    assert "Only some shards" in failures(part, tmp_path, "cases = 1\n")["finished"]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("cases = 1\nrates = 2\n", "line 2: the policy has no 'rates'"),
        (LIMIT.format("mirror", "rat = 0.1"), "line 3: a limit has no 'rat'; did you mean rate?"),
        (LIMIT.format("mirror", "rate = 1.5"), "line 3: rate is between 0 and 1, got 1.5"),
        (LIMIT.format("mirror", 'rate = "low"'), "line 3: rate is a number, got 'low'"),
        (LIMIT.format("mirror", "rate = nan"), "line 3: rate is a finite number, got nan"),
        (LIMIT.format("mirror", "severity = inf"), "line 3: severity is a finite number, got inf"),
        (LIMIT.format("mirror", "severity = 1" + "0" * 400), "line 3: severity is a finite number, got 1000"),
        ("threshold = nan\n", "line 1: threshold is a finite number, got nan"),
        ("threshold = -inf\n", "line 1: threshold is a finite number, got -inf"),
        (LIMIT.format("mirror", 'rate = 0.1\nsure = "yes"'), "line 4: sure is one of upper, lower, plain, got 'yes'"),
        (LIMIT.format("mirror", ""), "line 1: a limit has one of rate, severity, at_most, at_least"),
        ('[limit]\nof = "mirror"\n', r"line 1: .*write \[\[limit\]\], with two brackets"),
        ("cases = \n", "line 1"),
        ("timeout = 0.1\n", "line 1: the policy has no 'timeout'; did you mean timeouts?"),
        ("[[limits]]\n", "line 1: the policy has no 'limits'; did you mean limit?"),
        ('judging = "hands"\n', "line 1: .*'hands'.*There are: default"),
        ('limit = [{ of = "mirror", rate = 2 }]\n', "line 1: rate is between 0 and 1"),
        (LIMIT.format("mirror", "at_most = 0.1"), "line 3: at_most and at_least are of a measure"),
        (LIMIT.format("mirror", 'measure = "r"\nat_least = 0.9'), "line 3: mirror is judged case by case"),
        ('[[numerics]]\ninput = "0..1"\n', 'line 1: numerics has to say model, e.g. model = "model.onnx"'),
        ('[[numerics]]\nmodel = "no.onnx"\ninput = "0..1"\n', "line 2: there is no .*no.onnx"),
        (LIMIT.format("miror", "rate = 0.1"), "line 2: .*'miror'.*did you mean 'mirror'"),
        (LIMIT.format("mirror", 'rate = 0.1\nwhere = { column = "brightnes", below = 9 }'), "line 4: .*'brightness'"),
        (LIMIT.format("mirror", 'rate = 0.1\nwhere = { colum = "brightness" }'), "line 4: where has no 'colum'"),
        (LIMIT.format("mirror", 'rate = 0.1\nwhere = { column = "brightness" }'), "line 4: where says which cases"),
        (LIMIT.format("mirror", 'rate = 1\n[limit.where]\nvalue = "a"\ncolum = "b"'), "line 6: where has no 'colum'"),
        (LIMIT.format("mirror", 'rate = 1\n[limit.where]\nvalue = "a"'), "line 4: where says which cases"),
        (LIMIT.format("mirror", 'rate = 1\nwhere.below = 1\nwhere.column = "b"'), "line 5: .*'b'"),
        (f"{LIMIT.format('mirror', 'rate = 1')}\n{LIMIT.format('miror', 'rate = 1')}", "line 6: .*'miror'"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_an_error_with_its_line(
    runs: dict[str, instar.Run], tmp_path: Path, policy: str, message: str
) -> None:
    with pytest.raises(PolicyError, match=message):
        failures(runs["right"], tmp_path, policy)


def test_a_slice_is_held_for_itself(runs: dict[str, instar.Run], tmp_path: Path) -> None:
    run = runs["forgetful"]
    brightness = run.described()["brightness"]
    middle = float(brightness.median())  # type: ignore[arg-type]
    where = f'rate = 0.0\nwhere = {{ column = "brightness", at_least = {middle} }}'
    (words,) = failures(run, tmp_path, LIMIT.format("any rule", where)).values()
    assert f" of {(brightness >= middle).sum()} cases violate any rule where brightness is at least" in words


@pytest.mark.parametrize(("end", "which"), [("below = 60", "all 16 cases"), ("at_least = 60", "none of the 16 cases")])
def test_a_slice_that_tells_no_cases_apart_says_so_with_what_its_column_is_like(
    runs: dict[str, instar.Run], tmp_path: Path, end: str, which: str
) -> None:
    brightness = runs["right"].described()["brightness"].to_numpy()
    between = f"brightness is between {brightness.min():.3g} and {brightness.max():.3g}."
    policy = tmp_path / "policy.toml"
    policy.write_text(LIMIT.format("any rule", f'rate = 0.9\nwhere = {{ column = "brightness", {end} }}'))
    *_, check = checked(runs["right"], read_policy(policy))
    assert check.words.endswith(f" Its `where` selects {which}: {between}")


def test_how_many_cases_it_takes_is_more_than_there_are_and_would_hold() -> None:
    from instar.gate.checks import _more_cases
    from instar.gate.policy import Limit

    words = _more_cases(Limit("motion", 1, rate=0.81), 5, 9, 0.95, binomial_bounds)
    assert words == " Too few cases show it: at this rate it takes about 14."
    assert binomial_bounds(5, 9)[1] > 0.81 >= binomial_bounds(8, 14)[1]


def test_a_bound_just_above_its_limit_does_not_read_like_it(runs: dict[str, instar.Run], tmp_path: Path) -> None:
    bound = binomial_bounds(0, CASES)[1]
    failed = failures(runs["right"], tmp_path, LIMIT.format("mirror", f"rate = {bound - 0.0001}"))["mirror"]
    assert f"at most {100 * bound:.2f} %; at most {100 * bound - 0.01:.2f} % may" in failed


def test_an_infinite_threshold_counts_what_is_lost_or_invented(runs: dict[str, instar.Run], tmp_path: Path) -> None:
    assert failures(runs["right"], tmp_path, "threshold = inf\n" + LIMIT.format("mirror", "rate = 0.5")) == {}
    assert set(failures(runs["forgetful"], tmp_path, "threshold = inf\n" + LIMIT.format("mirror", "rate = 0.1"))) == {
        "mirror"
    }


def test_a_new_policy_is_held_by_the_run_it_was_made_of(runs: dict[str, instar.Run], tmp_path: Path) -> None:
    for run in runs.values():
        assert f"between {run.described()['brightness'].to_numpy().min():.2g} and" in new_policy(run)
        assert failures(run, tmp_path, new_policy(run)) == {}
    assert "mirror" in failures(runs["forgetful"], tmp_path, new_policy(runs["right"]))


def test_a_new_policy_counts_an_image_that_cannot_be_read_and_none_is_made_of_silence(tmp_path: Path) -> None:
    folder = write_scenes(tmp_path / "photos", CASES)
    (folder / "broken.jpg").write_bytes(b"no image")
    run = instar.run("tests.toys:rectangles", "mirror(h)", folder, out=tmp_path / "run", workers=0)
    assert failures(run, tmp_path, new_policy(run)) == {}
    strict = failures(run, tmp_path, "failed = 0\n")["failed"]
    assert strict.startswith("2 of 34 predictions (6 %) failed, 2 of them for images that cannot be read; at most 0 %")
    for system in (silent, constant):
        with pytest.warns(UserWarning, match="nothing can be told"):
            idle = instar.run(system, "gamma(0.9)", folder, out=tmp_path / system.__name__, workers=0)
        with pytest.raises(PolicyError, match="so that it holds no policy; give a run that shows something"):
            new_policy(idle)


def test_copies_of_one_image_are_no_further_evidence_and_that_is_said(tmp_path: Path) -> None:
    folder = write_scenes(tmp_path / "photos", 2)
    first = sorted(folder.iterdir())[0]
    for number in range(14):
        (folder / f"copy{number:02}{first.suffix}").write_bytes(first.read_bytes())
    run = instar.run("tests.toys:rectangles", "mirror(h)", folder, out=tmp_path / "run", workers=0)
    words = f"The inputs of 16 cases have only 2 different ones; {run.cases()['case'][0]}, for one, is there 15 times."
    assert any(words in one.words for one in findings(run))
    assert words in new_policy(run)
    (tmp_path / "policy.toml").write_text("cases = 16\n")
    (cases,) = (one for one in checked(run, read_policy(tmp_path / "policy.toml")) if one.name == "cases")
    assert words in cases.words


def test_what_build_servers_read(runs: dict[str, instar.Run], tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(LIMIT.format("mirror", "rate = 0.1"))
    checks = checked(runs["forgetful"], read_policy(path))
    suite = ElementTree.fromstring(junit(checks, "run"))[0]
    assert suite.attrib["tests"] == str(len(checks))
    assert suite.attrib["failures"] == "1"
    assert [case.attrib["name"] for case in suite if case.find("failure") is not None] == ["mirror"]
    assert {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname"} == set(suite.attrib)
    assert all({"classname", "name", "time"} == set(case.attrib) for case in suite)
    whole = json.loads(sarif(checks, "policy.toml"))
    assert (whole["version"], set(whole)) == ("2.1.0", {"$schema", "version", "runs"})
    log = whole["runs"][0]
    assert set(log) == {"tool", "results"}
    assert all(set(one) == {"ruleId", "level", "message", "locations"} for one in log["results"])
    (result,) = log["results"]
    assert result["ruleId"] in {rule["id"] for rule in log["tool"]["driver"]["rules"]}
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 1
    odd = json.loads(sarif(checks, str(Path.cwd() / "my policies" / "é.toml")))["runs"][0]["results"][0]
    address = odd["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert address == "my%20policies/%C3%A9.toml"  # below the repository, and an address in which nothing is forbidden
    text = markdown(checks, "a|b", [WorstPair("c", "mirror(h)", "1 IoU lost", "p/1.png")])
    assert text.startswith("## a\\|b\n")
    assert f"1 of {len(checks)} checks fails" in text
    assert "![c](p/1.png)" in text


def test_no_two_checks_have_one_name(photos: Path, tmp_path: Path) -> None:
    """Build servers take two tests of one name for one, of which the last counts."""
    rules = "erase(1, only=0) => presence(gone) + erase(1, only=0) => presence(others) + mirror(h)"
    run = instar.run("tests.toys:rectangles", rules, photos, out=tmp_path / "run", workers=0)
    path = tmp_path / "policy.toml"
    twice = [LIMIT.format("mirror(h)", limit) for limit in ("rate = 0.5", "severity = 0.5")]
    path.write_text("".join([LIMIT.format("each rule", "rate = 0.5"), *twice]))
    checks = checked(run, read_policy(path))
    names = [case.attrib["name"] for case in ElementTree.fromstring(junit(checks, "run"))[0]]
    assert names[-5:] == [*rules.split(" + "), "mirror(h) (2)", "mirror(h) (3)"]
    assert len(set(names)) == len(names)


def test_each_kind_of_failure_has_a_limit_of_its_own(photos: Path, tmp_path: Path) -> None:
    run = instar.run(broken, "gamma(3)+gamma(0.9)", photos, out=tmp_path / "run", workers=0, limit=8)
    count = int(run.predictions()["status"].eq("error").sum())
    assert count
    assert "ended as errors; at most 0 % may." in failures(run, tmp_path, "errors = 0.0\n")["errors"]
    assert failures(run, tmp_path, "errors = 1.0\n") == {}, "failed is about the other failures then"
    assert set(failures(run, tmp_path, "timeouts = 0.0\n")) == {"failed"}
    words = failures(run, tmp_path, "failed = 1.0\nnot_judged = 0.0\nnot_applicable = 0.0\n")
    assert set(words) == {"not judged"}


def test_a_slice_with_too_few_cases_does_not_pass(runs: dict[str, instar.Run], tmp_path: Path) -> None:
    of = LIMIT.format("mirror", 'rate = 0.5\nsure = "lower"\ncases = {}')
    assert failures(runs["right"], tmp_path, of.format(CASES)) == {}
    few = failures(runs["right"], tmp_path, of.format(CASES + 1))
    assert few == {"mirror": "16 cases of mirror were judged; at least 17 must be."}


@pytest.fixture(scope="module")
def levels(photos: Path) -> instar.Run:
    """A run of the forgetful system with rules over many cases, against ground truth that nobody has: of severities."""
    rules = "[gamma(0.9), gamma(3)] => correlation(severity, least=0.5) + gamma(3) => degradation(severity, margin=0.1)"
    return instar.run("tests.engine.zones:forgetful", rules, photos, out=photos.parent / "levels", workers=0)


def test_a_rule_over_many_cases_is_gated_by_its_measure_and_interval(levels: instar.Run, tmp_path: Path) -> None:
    (rule,) = [row for row in levels.over_cases().to_dicts() if row["drop"] is not None]
    policy = f'[[limit]]\nof = "{rule["rule"]}"\nmeasure = "drop"\nat_most = {{}}\nsure = "{{}}"\n'
    for sure, bound in (("upper", "high"), ("lower", "low"), ("plain", "drop")):
        assert failures(levels, tmp_path, policy.format(rule[bound] + 1e-9, sure)) == {}
        failed = failures(levels, tmp_path, policy.format(rule[bound] - 1e-3, sure))
        assert list(failed) == [f"drop of {rule['rule']}"], "its level is a rule, too"
    assert failures(levels, tmp_path, new_policy(levels)) == {}, "which has rules over many cases, too"
    limit = f'[[limit]]\nof = "{rule["rule"]}"\n'
    for wrong, message in (
        ('measure = "dorp"\nat_most = 1', "line 3: .*'dorp'.*did you mean 'drop'"),
        ('measure = "baseline"\nat_most = 1', 'line 3: baseline of .* has no interval; say sure = "plain"'),
        ("rate = 0.1", "line 3: .* is judged over many cases together"),
    ):
        with pytest.raises(PolicyError, match=message):
            failures(levels, tmp_path, limit + wrong)
    with pytest.raises(PolicyError, match=r"a confidence of 0\.99 takes a measure without one"):
        failures(levels, tmp_path, f'confidence = 0.99\n{limit}measure = "drop"\nat_most = 1')


def test_numerical_defects_of_a_model_are_gated(runs: dict[str, instar.Run], tmp_path: Path) -> None:
    onnx = module("onnx")
    text = '<ir_version: 9, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Log(x) }'
    onnx.save(module("onnx.parser").parse_model(text), tmp_path / "my model.onnx")
    policy = '[[numerics]]\nmodel = "my model.onnx"\ninput = "{}"\n{}'
    failed = failures(runs["right"], tmp_path, policy.format("0..1", ""))
    assert "1 operation of my model.onnx can make an output NaN or ±∞; at most 0 may. Log" in " ".join(failed.values())
    assert failures(runs["right"], tmp_path, policy.format("0.5..1", "")) == {}
    assert failures(runs["right"], tmp_path, policy.format("0..1", "defects = 1")) == {}


def test_a_run_that_was_looked_at_before_its_end_has_less_risk_left(photos: Path, tmp_path: Path) -> None:
    """Undecided until all cases were asked: the gate had its chance to pass before."""
    policy = tmp_path / "policy.toml"
    policy.write_text(LIMIT.format("mirror", "rate = 0.18"))

    def bound(run: instar.Run) -> float | None:
        return next(one.bound for one in checked(run, read_policy(policy)) if one.name == "mirror")

    asked = ("tests.toys:rectangles", "mirror(h)", photos)
    looked = instar.run(*asked, out=tmp_path / "run", workers=0, until=policy)
    assert looked.manifest.looked
    assert not looked.severities().looked, "nothing was left out"
    assert bound(looked) == pytest.approx(binomial_bounds(0, CASES, 0.955)[1])
    plain = instar.run(*asked, out=tmp_path / "run", workers=0)
    assert bound(plain) == pytest.approx(binomial_bounds(0, CASES, 0.95)[1])
