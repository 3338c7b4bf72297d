"""Rules as tests of pytest: one for each rule of a suite, and one for the run as a whole.

Nothing happens unless a test carries the mark `instar`, or the command line says `--instar`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import warnings
from collections import Counter
from contextlib import chdir, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from instar.analysis import Run
    from instar.gate import Check, Policy

WHOLE = "the run"
"""The test that is about the run as a whole, and about limits of several rules."""
RATE = 0.05
"""Without a policy, a rule fails where it is shown that more cases than this violate it."""
COMMAND = Path(__file__).with_name("pytest_command.py")
"""The test that `--instar` collects; its system is named on the command line."""
SHOWN = 3
"""Worst pairs that a failure shows."""
WRONG = (ValueError, LookupError, OSError, ImportError, TypeError, RuntimeError)
"""What a mark may be wrong about, or the model's module; their messages say it, and our own lines would not."""
_RUNS = pytest.StashKey[dict["Trial", tuple["Run", list["Check"]] | str]]()
_REPORTS = pytest.StashKey[dict[Path, Path]]()
_SHARED = pytest.StashKey[Path]()
"""The folder that the workers of this session share, where there are several."""
_OPTIONS = (
    "policy",
    "baseline",
    "rate",
    "sure",
    "threshold",
    "limit",
    "workers",
    "timeout",
    "zones",
    "objects",
    "pool",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("instar", "metamorphic tests of perception systems")
    group.addoption(
        "--instar",
        nargs=3,
        metavar=("SYSTEM", "SUITE", "DATASET"),
        help="Test a system: one test for each rule of the suite.",
    )
    group.addoption("--instar-policy", metavar="FILE", help="The policy that the tests of --instar hold it to.")
    group.addoption("--instar-baseline", metavar="RUN", help="The run that the policy's [[no_worse]] compares with.")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "instar(system, suite, dataset, policy=None, baseline=None, rate=0.05, sure='lower', **options): one test for "
        f"each rule; options are {', '.join(_OPTIONS[4:])}",
    )
    if config.getoption("--instar", None) and str(COMMAND) not in config.args:
        named = config.args_source is config.ArgsSource.ARGS
        config.args[:] = [*(config.args if named else ()), str(COMMAND)]


@dataclass(frozen=True)
class Trial:
    """What a mark asks for. Paths are relative to `home`."""

    home: Path
    system: str
    suite: str
    dataset: str
    policy: str | None = None
    baseline: str | None = None
    rate: float = RATE
    sure: str = "lower"
    threshold: float | None = None
    options: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, mark: pytest.Mark, home: Path) -> Trial:
        if len(mark.args) != 3:
            raise ValueError(
                f"@pytest.mark.instar takes a system, a suite and a dataset, got {len(mark.args)} of them: {mark.args}"
            )
        unknown = sorted(set(mark.kwargs) - set(_OPTIONS))
        if unknown:
            from instar.gate.policy import near_key

            raise ValueError(
                f"@pytest.mark.instar has no {', '.join(unknown)}; {near_key(unknown[0], _OPTIONS)}"
                f"allowed are {', '.join(_OPTIONS)}"
            )
        fields = ("policy", "baseline", "rate", "sure", "threshold")
        own = {name: mark.kwargs[name] for name in fields if name in mark.kwargs}
        rest = tuple(sorted((name, value) for name, value in mark.kwargs.items() if name not in own))
        system, suite, dataset = map(str, mark.args)
        return cls(home, system, suite, dataset, **own, options=rest)

    def rules(self) -> list[str]:
        """The rules of the suite, without their relations where that tells them apart; identity changes nothing, and is
        no test."""
        from instar.suites import suite

        with chdir(self.home):
            rules = suite(self.suite).rules
        changing = [one for one in rules if one.transformations[0].steps[0].family.name != "identity"]
        alike = Counter(one.left for one in changing)
        return [one.left if alike[one.left] == 1 else one.id for one in changing]


@dataclass
class RuleTest:
    """What a test is given: its rule, the run, and the checks of the policy that are about it."""

    rule: str
    run: Run
    checks: list[Check] = field(default_factory=list)

    @property
    def failures(self) -> list[str]:
        return [one.words for one in self.checks if not one.passed]


def _trial(node: pytest.Item) -> Trial | None:
    """What is asked for by the mark of a test, or by the command line."""
    mark = node.get_closest_marker("instar")
    if mark is not None:
        return Trial.of(mark, node.config.rootpath)
    named = node.config.getoption("--instar", None)
    if named and node.path == COMMAND:
        system, suite, dataset = named
        here = node.config.invocation_params.dir  # where it was typed
        policy, baseline = (node.config.getoption(f"--instar-{name}") for name in ("policy", "baseline"))
        return Trial(here, system, suite, dataset, policy, baseline)
    return None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    try:
        trial = _trial(metafunc.definition)
        if trial is None:
            return
        names = [WHOLE, *trial.rules()]
    except WRONG:
        names = [WHOLE]  # this test says what is wrong, when it is asked for; the others go on
    if "instar_rule" not in metafunc.fixturenames:
        metafunc.fixturenames.append("instar_rule")
    metafunc.parametrize("instar_rule", names, ids=names, indirect=True)


def pytest_itemcollected(item: pytest.Item) -> None:
    """A test that is not written with the fixture has it made, too: from pytest 9.2 on nobody else asks for it."""
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return
    if "instar_rule" in item.callspec.params and "instar_rule" not in item.fixturenames:
        item.fixturenames.append("instar_rule")


@pytest.fixture
def instar_rule(request: pytest.FixtureRequest) -> RuleTest:
    """The rule that this test is about, with the run it was judged in."""
    trial, wrong = None, "the fixture instar_rule is for tests with the mark instar"
    try:
        trial = _trial(request.node)
    except WRONG as error:
        wrong = str(error)
    if trial is None:  # not while the error is handled: pytest shows that one, too
        pytest.fail(f"instar: {wrong}", pytrace=False)
    if hasattr(request.config, "workerinput"):
        request.config.stash[_SHARED] = request.getfixturevalue("tmp_path_factory").getbasetemp().parent
    run, checks = _judged(request, trial)
    if request.param == WHOLE:
        return RuleTest(WHOLE, run, [one for one in checks if len(one.rules) != 1])
    own = run.rule_id(request.param)
    return RuleTest(request.param, run, [one for one in checks if one.rules == (own,)])


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """The test fails where its rule does, before its own code runs."""
    test = pyfuncitem.funcargs.get("instar_rule")
    if isinstance(test, RuleTest) and test.failures:
        trial = _trial(pyfuncitem)
        assert trial is not None
        pytest.fail(_words(test, trial, pyfuncitem.config), pytrace=False)


def _judged(request: pytest.FixtureRequest, trial: Trial) -> tuple[Run, list[Check]]:
    """The finished run and all checks of its policy, made once in a session; its predictions are kept in pytest's
    cache, and only what is missing is predicted. What went wrong is tried once, too."""
    runs = request.config.stash.setdefault(_RUNS, {})
    if trial not in runs:
        try:
            with chdir(trial.home):
                runs[trial] = _tested(_folder(request, trial), trial)
        except WRONG as error:
            runs[trial] = f"instar: {error}"
    judged = runs[trial]
    if isinstance(judged, str):
        pytest.fail(judged, pytrace=False)
    return judged


def _folder(request: pytest.FixtureRequest, trial: Trial) -> Path:
    """Where predictions are kept: pytest's cache, or a folder of this session where it is told to have none."""
    config = request.config
    place = () if trial.home == config.rootpath else (str(trial.home),)
    spelled = repr((trial.system, trial.suite, trial.dataset, trial.options, *place))
    name = hashlib.sha256(spelled.encode()).hexdigest()[:16]
    cache = getattr(config, "cache", None)
    if cache is not None:
        return Path(cache.mkdir("instar")) / name
    base: Path = request.getfixturevalue("tmp_path_factory").getbasetemp()
    return (base.parent if hasattr(config, "workerinput") else base) / "instar" / name  # workers share one run


def _tested(folder: Path, trial: Trial) -> tuple[Run, list[Check]]:
    """Test what is missing in a run folder, and check the policy. A folder that can't be used is made again."""
    from instar.analysis import open_run
    from instar.engine import Conflict
    from instar.files import Elsewhere
    from instar.store import Damaged, NoRun

    policy = _policy(trial)
    baseline = open_run(trial.baseline) if trial.baseline else None
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the workers of a session share the folder
        if os.path.lexists(folder):
            with suppress(Conflict, Damaged, Elsewhere, NoRun, NotADirectoryError):
                return _checked(folder, trial, policy, baseline)
            if folder.is_dir() and not folder.is_symlink():
                shutil.rmtree(folder)
            else:
                folder.unlink()
        return _checked(folder, trial, policy, baseline)


def _checked(folder: Path, trial: Trial, policy: Policy, baseline: Run | None) -> tuple[Run, list[Check]]:
    from instar.api import NothingTold, run
    from instar.datasets import dataset
    from instar.engine import forget_changed
    from instar.gate import checked
    from instar.store import Store

    options = dict(trial.options)
    there = folder.exists()
    if there:
        store = Store(folder)
        store.manifest()  # raises NoRun
        forget_changed(store, dataset(trial.dataset), options.get("limit"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingTold)  # a check says it
        finished = run(trial.system, trial.suite, trial.dataset, out=folder, retry_failed=there, **options)
    return finished, checked(finished, policy, baseline)


def _policy(trial: Trial) -> Policy:
    from instar.gate import Limit, Policy, read_policy

    if trial.policy is not None:
        return read_policy(Path(trial.policy))
    return Policy(threshold=trial.threshold, limits=(Limit("each rule", 1, rate=trial.rate, sure=trial.sure),))


def _words(test: RuleTest, trial: Trial, config: pytest.Config) -> str:
    """Why it fails, the worst pairs of its rule, and where the report is."""
    from instar.report.words import severity_text

    lines = list(test.failures)
    if test.rule != WHOLE:
        worst = test.run.worst(SHOWN, threshold=trial.threshold, rule=test.rule)
        lines += [
            f"  {severity_text(row['severity'])}  {row['case']}{f' ({kind})' if (kind := row['kind']) else ''}"
            for row in worst.filter("violated").iter_rows(named=True)
        ]
    return "\n".join([*lines, f"report: {_report(test.run, trial, config)}"])


def _report(run: Run, trial: Trial, config: pytest.Config) -> Path:
    """The report of a run with failures, beside it; written once in a session."""
    from instar.report import write_report

    reports = config.stash.setdefault(_REPORTS, {})
    if run.folder not in reports:
        reports[run.folder] = run.folder.with_suffix(".html")
        if _is_first(config, run.folder.name):
            write_report([run], reports[run.folder], threshold=trial.threshold)
    return reports[run.folder]


def _is_first(config: pytest.Config, name: str) -> bool:
    """Whether no other worker of this session writes that report: it takes longer than all else that a worker does."""
    shared = config.stash.get(_SHARED, None)
    if shared is None:
        return True
    try:
        (shared / f"{name}.report").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
