"""What the public API and the commands stand on: runs, and what they are made of and into."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from instar.analysis import Repeats
from instar.analysis import Run as Run
from instar.analysis import open_run as open_run
from instar.analysis.answers import idle
from instar.analysis.limits import LimitSearch
from instar.analysis.until import UntilSure
from instar.datasets import Dataset, dataset
from instar.engine import (
    DEFAULT,
    SOURCE,
    Estimate,
    Outcome,
    Progress,
    bound_rules,
    predict,
    stored_provider,
    unloaded_code,
)
from instar.engine import estimate as _estimate
from instar.engine import merge as _merge
from instar.exchange import export_inputs as _export_inputs
from instar.exchange import import_outputs as _import_outputs
from instar.exchange import opened_export
from instar.gate import until_sure
from instar.registry import loaded_object
from instar.report.cell_progress import CellProgress
from instar.report.compared import run_names
from instar.report.until import until_words
from instar.report.verdict import Verdict, verdict
from instar.skeleton import Skeleton
from instar.store import ProviderInfo, Shard, Store, run_name
from instar.suites import Suite, suite
from instar.systems import System, default_objects, default_zones, system_name
from instar.systems import system as _system
from instar.systems.function import function_name, importable
from instar.systems.settled import noted_answering
from instar.transforms import transformation


def providers_of(
    suite: Suite,
    earlier: Mapping[str, ProviderInfo],
    *,
    zones: str | None = None,
    objects: str | None = None,
    pool: str | Path | None = None,
    trust: bool = False,
) -> dict[str, str]:
    """Who provides what a suite needs: those asked for, else those of `earlier`, else the best ones installed.

    `none` is nobody. A detector is taken without being asked for only where something is to be inserted. Who is in
    `earlier`, as the folder says it, and would have to be started or loaded, works only for who trusts the folder.
    """
    needs = {need for rule in suite.rules for t in rule.transformations for need in t.needs}
    wanted = {"zones": zones, "objects": objects, "pool": None if pool is None else str(pool)}
    for relation in (rule.relation.relation for rule in suite.rules if rule.relation):
        for need in relation.own_needs:
            if wanted[need] not in (None, "auto", "none"):
                raise ValueError(
                    f"{relation.name} is about annotated {need} or what the system itself finds in the source; "
                    f"leave out `{need}`"
                )
    best: dict[str, Callable[[], str | None]] = {}
    if "zones" in needs:
        best["zones"] = default_zones
    if "pool" in needs:
        best["objects"] = default_objects
    names: dict[str, str] = {}
    for need, name in wanted.items():
        if name not in (None, "auto", "none"):
            assert name is not None
            names[need] = name if need == "pool" or name in ("masks", "boxes") else system_name(name)
        elif name != "none" and need in earlier:
            names[need] = earlier[need].name if trust else stored_provider(need, earlier[need].name)
        elif name != "none" and need in best and (installed := best[need]()):
            names[need] = installed
    return names


def run(
    system: str | System | Callable[..., object],
    suite: str | Suite,
    dataset: str | Path | Dataset,
    *,
    out: str | Path,
    seed: int | None = None,
    workers: int | None = None,
    predictors: int | None = None,
    engine: str = "local",
    address: str | None = None,
    timeout: float = 60.0,
    limit: int | None = None,
    shard: str | None = None,
    zones: str | None = None,
    objects: str | None = None,
    pool: str | Path | None = None,
    retry_failed: bool = False,
    fresh: bool = False,
    trust: bool = False,
    until: float | str | Path | LimitSearch | None = None,
    at_first_failure: bool = False,
    name: str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Run:
    """Test a system: predict what is missing in the run folder, then judge it.

    The same call again continues, or finds that nothing is left to do. At its start it says on stderr by what it knows
    the system again. In a notebook the cell shows how far it is, and interrupting the kernel loses nothing.

    Args:
        system: `mediapipe-holistic`, `package.module:function`, or a function of an (H, W, 3) RGB array.
        suite: `met-pose/sub`, a TOML file, one rule, or several joined by `+`.
        dataset: a folder of images, an address (`s3://photos/`), a list file, a video, a COCO file …
        out: the run folder, or an address in a bucket.
        workers: processes; one per core by default, 0 for this process (no protection from crashes and hangs).
        predictors: processes that hold the system, for which the workers then only make follow-ups; one for each GPU
            where the system says that it lives on one, otherwise every worker holds its own.
        engine: `local`, or `ray`: the workers are actors of a Ray cluster, as many as it has room for by default.
        address: of the cluster; else the one that this process is connected to or runs in, else one of this machine.
        timeout: seconds that one prediction may take.
        shard: `3/64` predicts the third of 64 shards of the cases, into `out` with `-03-of-64` after its name; `merge`
            joins them.
        zones: who finds skin, hair, clothes and background; `auto` by default, `none` for nobody.
        objects: the detector that finds objects in cases without annotated ones.
        pool: the folder of cut-out objects to insert.
        fresh: start over; a run that is in the folder is moved aside, with the time in its name, and not deleted.
        trust: whether to load and start what an existing run folder names and this call does not.
        until: 0.02 asks cases in random order, and each rule until its rate is known to ± 2 points ("family=0.02": each
            family); a policy's file asks until every limit of it is sure to hold or to fail.
        at_first_failure: with a policy, ask no more as soon as one of its limits is sure to fail.
        name: what tables, reports and comparisons call the run; the run keeps it until another one is given, and an
            empty one takes it away.
    """
    name = None if name is None else run_name(name)  # an error in it comes before any work
    part = None if shard is None else Shard.parse(shard)
    store, chosen = Store(out if part is None else part.folder(out)), chosen_suite(suite)
    choice, goal = _choice(store, until, part, at_first_failure)
    earlier = {} if fresh else stored_providers(store, trust)
    sent, workers = sendable(system, workers, engine)
    providers = providers_of(chosen, earlier, zones=zones, objects=objects, pool=pool, trust=trust)
    with CellProgress(store.folder, silent=on_progress is not None) as cell, noted_answering(system, _say):
        # fmt: off
        outcome = predict(
            sent, chosen, chosen_dataset(dataset), store, seed=seed, workers=workers, predictors=predictors,
            engine=engine, address=address, timeout=timeout, limit=limit, shard=part, providers=providers,
            retry_failed=retry_failed, fresh=fresh, choice=choice, until=goal, name=name,
            last=None if isinstance(choice, LimitSearch) else Repeats(store),
            options=choice.options if isinstance(choice, LimitSearch) else (),
            on_progress=on_progress or cell.update, say=_say,
        )
        # fmt: on
        cell.predicted(outcome)
        if outcome.interrupted and cell.shows:  # cells that wait for this one must not go on with a part of a run
            raise KeyboardInterrupt(cell.words)
        if isinstance(choice, UntilSure) and not outcome.interrupted:
            outcome = replace(outcome, notes=(*outcome.notes, until_words(store, choice)))
        finished = _judged(Run(store, outcome))
    return _warned(finished, outcome, choice.judging() if isinstance(choice, LimitSearch) else DEFAULT)


def _choice(
    store: Store, until: float | str | Path | LimitSearch | None, part: Shard | None, at_first_failure: bool
) -> tuple[UntilSure | LimitSearch | None, str | None]:
    """Who chooses what to ask next, and until when, in words; nobody where all is asked."""
    if isinstance(until, LimitSearch):
        return until, f"the limits of every case were known for {', '.join(grid.family for grid in until.grids)}"
    if until is None:
        return None, None
    return until_sure(store, until, part, at_first_failure=at_first_failure)


class NothingTold(UserWarning):
    """A run in which nothing is violated, and which is not clean for all that; the message says why."""


def _warned(finished: Run, outcome: Outcome, judging: str) -> Run:
    """The run; whoever called the caller is warned where nothing can be told by it."""
    if not outcome.interrupted and (trouble := nothing_to_tell(finished, judging)):
        warnings.warn(f"{trouble}: nothing can be told of the system by {finished.folder}", NothingTold, stacklevel=3)
    return finished


def nothing_to_tell(finished: Run, judging: str = DEFAULT) -> str | None:
    """Why a run that violates nothing by a judging is not clean; None where it can be judged by."""
    outcome = finished.outcome
    answered = outcome is None or bool(outcome.statuses.get("ok"))
    if finished.manifest.shard is not None and (answered or not (outcome and outcome.cases)):
        return None  # a shard may have few cases or none: what can be told is asked of all shards together
    if outcome is not None and not answered:
        why = f"every prediction in {finished.folder} failed" if outcome.statuses else "none could be read"
        return f"not one input was answered: {why}"
    if not finished.severities(judging).judged:
        return "not one pair was judged"
    why_idle = idle(finished, judging=judging)
    return None if why_idle is None else _IDLE[why_idle]


_IDLE = {
    "silent": "nothing was found in any input",
    "alike": "every input has the same answer, and no rule is violated",
    "undecided": "most pairs are near ties, which the judging forgives, and no rule is violated",
}


def _say(sentence: str) -> None:
    print(f"instar: {sentence}", file=sys.stderr, flush=True)


def stored_providers(store: Store, trust: bool) -> Mapping[str, ProviderInfo]:
    """Who provides what in the run that a folder holds. The code of a run that is trusted is loaded."""
    return open_run(store.folder, trust=trust).manifest.providers if store.exists else {}


def _judged(run: Run) -> Run:
    if run.store.state("predictions"):
        run.judge()
    return run


def estimate(
    system: str,
    suite: str | Suite,
    dataset: str | Path | Dataset,
    *,
    out: str | Path | None = None,
    limit: int | None = None,
    shard: str | None = None,
    workers: int | None = None,
    timeout: float = 60.0,
    zones: str | None = None,
    objects: str | None = None,
    pool: str | Path | None = None,
    trust: bool = False,
) -> Estimate:
    """What a run would cost, from three timed cases. Writes nothing."""
    part = None if shard is None else Shard.parse(shard)
    place = out if out is None or part is None else part.folder(out)
    store, chosen = Store(place if place is not None else "no run folder"), chosen_suite(suite)
    earlier = stored_providers(store, trust)
    return _estimate(
        system_name(system),
        chosen,
        chosen_dataset(dataset),
        store,
        workers=workers,
        timeout=timeout,
        limit=limit,
        shard=part,
        providers=providers_of(chosen, earlier, zones=zones, objects=objects, pool=pool, trust=trust),
    )


def merge(runs: Sequence[str | Path], *, out: str | Path) -> Run:
    """Join runs of one plan, each with cases of its own, in one run folder, and judge it.

    The same call again adds what has come since. Where shards are missing or not finished, the run says so, and `run`
    with its folder predicts the rest.

    Args:
        runs: the run folders: the shards of one plan, or runs of the same system, suite and seed on other cases.
        out: the run folder. It shares files with the others where it is on the same disk, and does not need them.
    """
    store = Store(out)
    outcome = _merge([Store(folder) for folder in runs], store)
    return _judged(Run(store, outcome))


def compare(
    first: Run | str | Path,
    second: Run | str | Path,
    *,
    judgings: tuple[str, str] = (DEFAULT, DEFAULT),
    threshold: float | None = None,
    p: float | None = None,
    group: str | None = None,
) -> Verdict:
    """The second run against the first, pair by pair, on the cases they share.

    `words` of it are the sentences to read first, `rules` has a row for each rule. A notebook shows both.
    """
    one, other = (run if isinstance(run, Run) else open_run(run) for run in (first, second))
    names = run_names([one, other])
    return verdict(one, other, (names[0], names[1]), judgings=judgings, threshold=threshold, p=p, group=group)


def export_inputs(
    dataset: str | Path | Dataset,
    suite: str | Suite,
    *,
    out: str | Path,
    kind: str | None = None,
    stochastic: bool = False,
    seed: int | None = None,
    limit: int | None = None,
    zones: str | None = None,
    objects: str | None = None,
    pool: str | Path | None = None,
    trust: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Write every follow-up of a plan as a file with its key, for whoever answers them elsewhere.

    The same call again writes only what is missing. `import_outputs` makes a run of the answers.

    Args:
        out: the folder; `inputs.jsonl` in it has one line per input.
        kind: the output kind of the answers; that of the suite by default.
        stochastic: the system answers the same input differently; ask for the repeats that rules want.
        trust: whether to load and start what an existing export names and this call does not.
    """
    chosen = chosen_suite(suite)
    earlier: Mapping[str, ProviderInfo] = {}
    with suppress(FileNotFoundError):
        manifest = opened_export(out)
        earlier = manifest.providers
        for code in unloaded_code(bound_rules(manifest.rules, manifest.kind)) if trust else ():
            loaded_object(code)
    return _export_inputs(
        chosen_dataset(dataset),
        chosen,
        out,
        kind=kind,
        stochastic=stochastic,
        seed=seed,
        limit=limit,
        providers=providers_of(chosen, earlier, zones=zones, objects=objects, pool=pool, trust=trust),
        on_progress=on_progress,
    )


def import_outputs(
    tables: str | Path | Sequence[str | Path],
    *,
    out: str | Path,
    suite: str | Suite | None = None,
    kind: str | None = None,
    export: str | Path | None = None,
    dataset: str | Path | Dataset | None = None,
    columns: Mapping[str, str] | None = None,
    follow_up: str | None = None,
    skeleton: Skeleton | str | None = None,
    name: str | None = None,
) -> Run:
    """Make a run of recorded outputs, or add to one that was made so, and judge it.

    Args:
        tables: CSV or JSONL files, one output or one pair per line.
        out: the run folder.
        suite: the rules; those of the export by default, else the kind's own equivariance for every follow-up.
        kind: the output kind; by default the columns decide.
        export: the folder whose inputs were answered. It knows what was changed.
        dataset: where the cases come from; it has their sizes, their truth and the images.
        columns: what a column is called in the tables: {"caption": "text"}.
        follow_up: the follow-up of lines that name none.
        skeleton: the skeleton of the landmarks.
        name: what the system is called; the table's name by default.
    """
    store = Store(out)
    outcome = _import_outputs(
        [tables] if isinstance(tables, str | Path) else list(tables),
        store,
        suite=None if suite is None else chosen_suite(suite),
        kind=kind,
        export=export,
        dataset=None if dataset is None else chosen_dataset(dataset),
        columns=columns,
        follow_up=follow_up if follow_up in (None, SOURCE) else transformation(follow_up).id,
        skeleton=skeleton,
        name=name,
    )
    return _judged(Run(store, outcome))


def chosen_suite(name: str | Suite) -> Suite:
    """A suite, or the one of this name."""
    return name if isinstance(name, Suite) else suite(name)


def chosen_dataset(path: str | Path | Dataset) -> Dataset:
    """A dataset, or the one at this place."""
    return path if isinstance(path, Dataset) else dataset(path)


def sendable(
    system: str | System | Callable[..., object], workers: int | None, engine: str
) -> tuple[str | System, int | None]:
    """A function that another process can import is sent by name; any other works in this process only."""
    if isinstance(system, str):
        return system_name(system), workers
    if isinstance(system, System):
        return system, 0 if workers is None and engine == "local" else workers
    name = function_name(system)
    if importable(system, name):
        return name, workers
    if workers or engine != "local":
        raise ValueError(
            f"{name} is not what another process would import by that name: it is defined in __main__, in a notebook "
            "or inside another function, or it holds values; put a function into a module, or give workers=0"
        )
    if workers is None:
        _say(
            f"{name} runs in this process, as no other one can import it: on one core, without a time limit (Ctrl-C "
            "twice ends it where it hangs), and a crash of it ends Python. A function in a module runs in processes of "
            "its own."
        )
    return _system(system), 0
