"""Rules as tests, in a project of a user's own."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from _pytest.pytester import SysModulesSnapshot

import instar
from tests.toys import write_scenes

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
CASES = 12
DETECTOR = """
from pathlib import Path
from instar import Detections
from tests.toys import rectangles

def detect(pixels) -> Detections:
    with Path("calls").open("a") as calls:
        calls.write("x")
    answer = rectangles(pixels)
    return {}
"""
RIGHT, BLIND = "answer", "answer if pixels[0, 0, 0] > 80 else Detections.from_xyxy([[0, 0, 9, 9]], ['ghost'])"
TEST = """
import pytest

@pytest.mark.instar("detector:detect", "identity+mirror(h)+gamma(3)", "photos", workers=0{})
def test_detector(instar_rule):
    assert instar_rule.run.cases().height == 12
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'src'}:{ROOT}")
    monkeypatch.syspath_prepend(pytester.path)

    def forget_the_project(_: SysModulesSnapshot) -> None:
        """And nothing else that a session has imported: some libraries can be imported once."""
        for name, loaded in list(sys.modules.items()):
            if Path(getattr(loaded, "__file__", None) or "").is_relative_to(pytester.path):
                del sys.modules[name]

    monkeypatch.setattr(SysModulesSnapshot, "restore", forget_the_project)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # a module that changes within a second is read anew
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    write_scenes(pytester.path / "photos", CASES, (64, 48))
    return pytester


def tried(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """A session in this process, but for one with workers."""
    return project.runpytest_subprocess(*arguments) if "-n" in arguments else project.runpytest_inprocess(*arguments)


def test_one_test_for_each_rule_over_predictions_that_are_kept(project: pytest.Pytester) -> None:
    """Two workers share one run; another session predicts nothing; another version is predicted anew, and fails."""
    project.makepyfile(detector=DETECTOR.format(RIGHT), test_it=TEST.format(""))
    calls = project.path / "calls"
    tried(project, "-n", "2").assert_outcomes(passed=3)
    assert calls.stat().st_size == 4 * CASES
    (project.path / "instar.toml").write_text('[[limit]]\nof = "each rule"\nrate = 0.1\n')
    project.makepyfile(test_it=TEST.format(", policy='instar.toml'"))
    strict = tried(project)
    strict.assert_outcomes(passed=1, failed=2)
    strict.stdout.fnmatch_lines(["*Too few cases show it*"])
    assert calls.stat().st_size == 4 * CASES
    project.makepyfile(detector=DETECTOR.format(BLIND), test_it=TEST.format(""))
    blind = tried(project, "-v")
    blind.assert_outcomes(passed=2, failed=1)
    assert calls.stat().st_size == 9 * CASES, "violating pairs are predicted a second time"
    blind.stdout.fnmatch_lines(["*test_detector?the run? PASSED*", "*test_detector?gamma(3)? FAILED*"])
    blind.stdout.fnmatch_lines(["* of 12 cases violate gamma(3): *at most 5*may.*", "  1  *", "report: *.html"])
    (line,) = {line for line in blind.outlines if line.startswith("report: ")}  # twice where CI is set: in its summary
    assert Path(line.removeprefix("report: ")).is_file()


def test_an_image_that_was_replaced_is_predicted_again(project: pytest.Pytester) -> None:
    project.makepyfile(detector=DETECTOR.format(RIGHT), test_it=TEST.format(""))
    tried(project).assert_outcomes(passed=3)
    first, second, *_ = sorted((project.path / "photos").iterdir())
    first.write_bytes(second.read_bytes())
    tried(project).assert_outcomes(passed=3)
    assert (project.path / "calls").stat().st_size == 4 * (CASES + 1)
    (manifest,) = project.path.rglob("manifest.json")
    cases = instar.open_run(manifest.parent).cases()
    assert (cases.height, cases["hash"].n_unique()) == (CASES, CASES - 1)


@pytest.mark.parametrize("how", ["unreadable", "deleted"])
def test_images_that_cannot_be_read_are_noticed(project: pytest.Pytester, how: str) -> None:
    (project.path / "instar.toml").write_text("cases = 12\n")
    project.makepyfile(detector=DETECTOR.format(RIGHT), test_it=TEST.format(", policy='instar.toml'"))
    tried(project).assert_outcomes(passed=3)
    first = min((project.path / "photos").iterdir())
    first.write_bytes(b"no image") if how == "unreadable" else first.unlink()
    tried(project, "-k", "the and run").assert_outcomes(failed=1, deselected=2)


def damaged_manifest(run: Path) -> None:
    (run / "manifest.json").write_text("{}")


def without_manifest(run: Path) -> None:
    (run / "manifest.json").unlink()


def damaged_predictions(run: Path) -> None:
    for path in (run / "predictions").iterdir():
        path.write_bytes(path.read_bytes()[:-9])


def a_file(run: Path) -> None:
    shutil.rmtree(run)
    run.write_text("not a run")


def a_link(run: Path) -> None:
    (run / "predictions").rename(run.with_name("elsewhere"))
    (run / "predictions").symlink_to(run.with_name("elsewhere"))


@pytest.mark.parametrize("spoil", [damaged_manifest, without_manifest, damaged_predictions, a_file, a_link])
def test_an_unusable_cache_is_made_again(project: pytest.Pytester, spoil: Callable[[Path], None]) -> None:
    project.makepyfile(detector=DETECTOR.format(RIGHT), test_it=TEST.format(""))
    tried(project).assert_outcomes(passed=3)
    (manifest,) = project.path.rglob("manifest.json")
    spoil(manifest.parent)
    tried(project).assert_outcomes(passed=3)
    assert (project.path / "calls").stat().st_size == 8 * CASES


def test_a_marked_test_is_asked_also_where_it_is_written_without_the_fixture(project: pytest.Pytester) -> None:
    marked = TEST.format("").partition("def test_detector")[0]
    project.makepyfile(detector=DETECTOR.format(BLIND), test_it=f"{marked}def test_detector(): ...")
    tried(project).assert_outcomes(passed=2, failed=1)


def test_a_policy_that_compares_takes_its_baseline_from_the_mark(project: pytest.Pytester) -> None:
    (project.path / "instar.toml").write_text('[[no_worse]]\nof = "any rule"\nmargin = 0.4\n')
    rules = "identity+mirror(h)+gamma(3)"
    instar.run("tests.toys:rectangles", rules, project.path / "photos", out=project.path / "runs" / "v1", workers=0)
    project.makepyfile(detector=DETECTOR.format(RIGHT), test_it=TEST.format(", policy='instar.toml'"))
    tried(project).stdout.fnmatch_lines(['*give the baseline: *`baseline="runs/v1"` in a mark of pytest*'])
    project.makepyfile(test_it=TEST.format(", policy='instar.toml', baseline='runs/v1'"))
    tried(project).assert_outcomes(passed=3)
    project.makepyfile(detector=DETECTOR.format(BLIND))
    tried(project).stdout.fnmatch_lines(["* violate any rule, 0 did in the baseline*"])


def test_two_relations_of_one_change_are_two_tests_of_two_names(project: pytest.Pytester) -> None:
    rules = [f"erase(1, only=0) => presence({which})" for which in ("gone", "others")]
    result = tried(project, "-v", "--instar", "tests.toys:rectangles", " + ".join(rules), "photos")
    ids = [line.partition("[")[2].partition("]")[0] for line in result.outlines if "::" in line and "[" in line]
    assert {"the run", *rules} <= set(ids)


def test_from_the_command_line_alone(project: pytest.Pytester) -> None:
    tried(project, "--instar", "tests.toys:rectangles", "mirror(h)", "photos").assert_outcomes(passed=2)
    tried(project, "--instar", "no_module:nothing", "mirror(h)", "photos").assert_outcomes(errors=2)


def test_it_is_silent_unless_it_is_used_and_says_what_a_mark_may_have(project: pytest.Pytester) -> None:
    project.makepyfile("def test_other():\n    pass\n")
    plain = tried(project)
    plain.assert_outcomes(passed=1)
    assert "instar" not in plain.stdout.str().partition("plugins:")[2].partition("\n")[2]
    project.makepyfile("import pytest\n@pytest.mark.instar('a', 'b', 'c', rates=1)\ndef test_it():\n    pass\n")
    tried(project).stdout.fnmatch_lines(
        ["*instar has no rates; did you mean rate? allowed are policy, baseline, rate, sure,*"]
    )


def test_paths_are_of_the_project_wherever_pytest_is_started(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.makeini("[pytest]")
    project.makepyfile(detector=DETECTOR.format(RIGHT))
    project.mkdir("inside").joinpath("test_it.py").write_text(TEST.format(""))
    tried(project, "inside").assert_outcomes(passed=3)
    calls = (project.path / "calls").stat().st_size
    monkeypatch.chdir(project.path / "inside")
    tried(project).assert_outcomes(passed=3)
    assert (project.path / "calls").stat().st_size == calls == 4 * CASES
    assert not (project.path / "inside" / "calls").exists()


def test_what_is_named_on_the_command_line_is_relative_to_where_it_is_typed(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.makeini("[pytest]")
    write_scenes(project.path / "inside" / "others", 2, (64, 48))
    monkeypatch.chdir(project.path / "inside")
    tried(project, "--instar", "tests.toys:rectangles", "mirror(h)", "others").assert_outcomes(passed=2)


def test_without_a_cache_the_run_is_kept_for_the_session(project: pytest.Pytester) -> None:
    project.makepyfile(detector=DETECTOR.format(RIGHT), test_it=TEST.format(""))
    tried(project, "-p", "no:cacheprovider", "-n", "2").assert_outcomes(passed=3)
    assert (project.path / "calls").stat().st_size == 4 * CASES, "both workers share one run"
    tried(project, "-p", "no:cacheprovider").assert_outcomes(passed=3)
    assert (project.path / "calls").stat().st_size == 8 * CASES


@pytest.mark.parametrize(
    ("model", "more", "words"),
    [
        ("def detect(image:", "", "instar: detector cannot be imported: *detector.py, line 1: SyntaxError*"),
        (DETECTOR.format(RIGHT), ", policy='gone.toml'", "*gone.toml*"),
        (DETECTOR.format(RIGHT), ", zones='nobody'", "*nobody*"),
        (None, "", "*there is no module 'detector'*"),
    ],
    ids=["a syntax error", "no policy", "no provider", "no model"],
)
def test_what_is_wrong_is_said_once_and_without_our_own_lines(
    project: pytest.Pytester, model: str | None, more: str, words: str
) -> None:
    files = {"test_it": TEST.format(more), **({} if model is None else {"detector": model})}
    project.makepyfile(**files)
    failed = tried(project)
    failed.assert_outcomes(errors=3)
    failed.stdout.fnmatch_lines([words])
    assert "src/instar" not in failed.stdout.str()


def test_a_dataset_or_a_rule_that_is_not_there_is_a_line(project: pytest.Pytester) -> None:
    project.makepyfile(detector=DETECTOR.format(RIGHT), test_it=TEST.format("").replace('"photos"', '"phots"'))
    gone = tried(project)
    gone.assert_outcomes(errors=3)
    gone.stdout.fnmatch_lines(["instar: there is no file or folder 'phots'; did you mean 'photos'*"])
    project.makepyfile(test_it=TEST.format("").replace("gamma", "gama"))
    unknown = tried(project)
    unknown.assert_outcomes(errors=1)
    unknown.stdout.fnmatch_lines(["*instar: unknown transformation 'gama'; did you mean 'gamma'*"])
    assert "src/instar" not in gone.stdout.str() + unknown.stdout.str()


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        (
            "'tests.toys:rectangles', 'mirror(h)', 'photos', rat=0.1",
            "*has no rat; did you mean rate? allowed are policy,*",
        ),
        ("'tests.toys:rectangles', 'mirror(h)'", "*takes a system, a suite and a dataset, got 2 of them*"),
        ("'tests.toys:rectangles', 'miror(h)', 'photos'", "*unknown transformation 'miror'; did you mean 'mirror'*"),
        (
            "'tests.toys:rectangles', 'mirror(h)', 'photos', policy='gone.toml'",
            "*there is no gone.toml; `instar gate RUN --init --policy gone.toml` writes one that the run holds",
        ),
    ],
    ids=["a wrong name", "two arguments", "no such rule", "no policy"],
)
def test_a_mark_with_a_mistake_is_a_line_at_its_test_and_the_others_go_on(
    project: pytest.Pytester, mark: str, words: str
) -> None:
    marked = f"import pytest\n\n@pytest.mark.instar({mark})\ndef test_bad(instar_rule): ...\n"
    project.makepyfile(test_it=f"{marked}\ndef test_good(): ...\n")
    result = tried(project, "-rE")
    outcomes = result.parseoutcomes()
    assert outcomes["passed"] == 1 and outcomes["errors"] >= 1 and result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"instar: {words}", "ERROR test_it.py::test_bad[[]the run] - *instar: *"])
    assert not [line for line in result.outlines if "src/instar" in line or "UsageError" in line or "_pytest" in line]
    lines = [line for line in result.outlines if line.startswith("instar: ")]
    assert len(lines) == outcomes["errors"], "a line for each test of the mark"


def test_the_fixture_without_the_mark_is_a_line(project: pytest.Pytester) -> None:
    project.makepyfile(test_it="def test_bad(instar_rule): ...\n")
    result = tried(project)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["instar: the fixture instar_rule is for tests with the mark instar"])


def test_where_ci_is_set_a_failure_has_its_words_in_the_summary(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    project.makepyfile(detector=DETECTOR.format(BLIND), test_it=TEST.format(""))
    failed = tried(project)
    failed.assert_outcomes(passed=2, failed=1)
    failed.stdout.fnmatch_lines(["FAILED *gamma(3)* - Failed: * of 12 cases violate gamma(3)*", "report: *.html"])


def test_workers_of_a_session_write_a_report_once(project: pytest.Pytester) -> None:
    """It takes longer than everything else that a worker does."""
    project.makeconftest(
        "from pathlib import Path\nimport instar.report\n"
        "def written(runs, path, **options):\n"
        "    with Path('reports').open('a') as file:\n        file.write('x')\n"
        "instar.report.write_report = written\n"
    )
    project.makepyfile(detector=DETECTOR.format(BLIND), test_it=TEST.format(", rate=0.0, sure='upper'"))
    tried(project, "-n", "2").assert_outcomes(passed=1, failed=2)
    assert (project.path / "reports").read_text() == "x"
