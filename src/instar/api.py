"""What the public API and the commands stand on: run, and what can be done without one."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

from instar.analysis import Run as Run
from instar.analysis import open_run as open_run
from instar.case import Case, Input, read_input
from instar.datasets import Dataset, dataset
from instar.engine import (
    SOURCE,
    Estimate,
    Need,
    Outcome,
    Progress,
    bound_rules,
    make_follow_up,
    predict,
    provided,
    provider,
    stored_provider,
    unloaded_code,
)
from instar.engine import estimate as _estimate
from instar.exchange import export_inputs as _export_inputs
from instar.exchange import import_outputs as _import_outputs
from instar.exchange import opened_export
from instar.image import Image, Unreadable, read_image
from instar.outputs import Output
from instar.registry import loaded_object
from instar.report import contact_sheet, draw_shapes, write_png
from instar.skeleton import Skeleton
from instar.store import ProviderInfo, Store
from instar.suites import Suite, suite
from instar.systems import System, default_objects, default_zones, system_name
from instar.systems import system as _system
from instar.systems.check import Finding, check_system
from instar.systems.function import function_name, importable
from instar.transforms import NotApplicable, transformation


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
    timeout: float = 60.0,
    limit: int | None = None,
    zones: str | None = None,
    objects: str | None = None,
    pool: str | Path | None = None,
    retry_failed: bool = False,
    fresh: bool = False,
    trust: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> Run:
    """Test a system: predict what is missing in the run folder, then judge it.

    The same call again continues, or finds that nothing is left to do. At its start it says on stderr by what it knows
    the system again.

    Args:
        system: `mediapipe-holistic`, `package.module:function`, or a function of an (H, W, 3) RGB array.
        suite: `met-pose/sub`, a TOML file, one rule, or several joined by `+`.
        dataset: a folder of images, a list file, a video, a COCO file …
        out: the run folder.
        workers: processes; one per core by default, 0 for this process (no protection from crashes and hangs).
        timeout: seconds that one prediction may take.
        zones: who finds skin, hair, clothes and background; `auto` by default, `none` for nobody.
        objects: the detector that finds objects in cases without annotated ones.
        pool: the folder of cut-out objects to insert.
        fresh: start over; a run that is in the folder is moved aside, with the time in its name, and not deleted.
        trust: whether to load and start what an existing run folder names and this call does not.
    """
    store, chosen = Store(out), _suite(suite)
    earlier = {} if fresh else _earlier(store, trust)
    system, workers = _sendable(system, workers)
    outcome = predict(
        system,
        chosen,
        _dataset(dataset),
        store,
        seed=seed,
        workers=workers,
        timeout=timeout,
        limit=limit,
        providers=providers_of(chosen, earlier, zones=zones, objects=objects, pool=pool, trust=trust),
        retry_failed=retry_failed,
        fresh=fresh,
        on_progress=on_progress,
        say=_say,
    )
    finished = _judged(Run(store, outcome))
    if not outcome.interrupted and (trouble := nothing_to_tell(finished)):
        warnings.warn(f"{trouble}: nothing can be told of the system by {store.folder}", NothingTold, stacklevel=2)
    return finished


class NothingTold(UserWarning):
    """A run in which nothing is violated, and which is not clean for all that; the message says why."""


def nothing_to_tell(finished: Run) -> str | None:
    """Why a run that violates nothing is not clean; None where it can be judged by."""
    outcome = finished.outcome
    if outcome is not None and not outcome.statuses.get("ok"):
        why = f"every prediction in {finished.folder} failed" if outcome.statuses else "none could be read"
        return f"not one input was answered: {why}"
    if not finished.severities().judged:
        return "not one pair was judged"
    answers = finished.answers()
    if answers.silent:
        return "nothing was found in any input"
    unbroken = not finished.any_rule()["violated"] and not finished.over_cases()["severity"].sum()
    return "every input has the same answer, and no rule is violated" if answers.alike and unbroken else None


def _say(sentence: str) -> None:
    print(f"instar: {sentence}", file=sys.stderr, flush=True)


def _earlier(store: Store, trust: bool) -> Mapping[str, ProviderInfo]:
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
    workers: int | None = None,
    timeout: float = 60.0,
    zones: str | None = None,
    objects: str | None = None,
    pool: str | Path | None = None,
    trust: bool = False,
) -> Estimate:
    """What a run would cost, from three timed cases. Writes nothing."""
    store, chosen = Store(out if out is not None else "no run folder"), _suite(suite)
    earlier = _earlier(store, trust)
    return _estimate(
        system_name(system),
        chosen,
        _dataset(dataset),
        store,
        workers=workers,
        timeout=timeout,
        limit=limit,
        providers=providers_of(chosen, earlier, zones=zones, objects=objects, pool=pool, trust=trust),
    )


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
    chosen = _suite(suite)
    earlier: Mapping[str, ProviderInfo] = {}
    with suppress(FileNotFoundError):
        manifest = opened_export(out)
        earlier = manifest.providers
        for code in unloaded_code(bound_rules(manifest.rules, manifest.kind)) if trust else ():
            loaded_object(code)
    return _export_inputs(
        _dataset(dataset),
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
        suite=None if suite is None else _suite(suite),
        kind=kind,
        export=export,
        dataset=None if dataset is None else _dataset(dataset),
        columns=columns,
        follow_up=follow_up if follow_up in (None, SOURCE) else transformation(follow_up).id,
        skeleton=skeleton,
        name=name,
    )
    return _judged(Run(store, outcome))


def preview(
    suite: str | Suite,
    image: str | Path | Input,
    *,
    system: str | System | Callable[..., object] | None = None,
    zones: str | None = None,
    objects: str | None = None,
    pool: str | Path | None = None,
    seed: int = 0,
) -> tuple[Image, list[tuple[str, str]]]:
    """A contact sheet of every rule of a suite on one image, and the rules that do not apply to it, with why.

    Of a dataset the first case is taken. What a run would take from the answer of the system under test, such as
    landmarks, is taken from that of `system`; objects that nobody answers with are found by a detector.
    """
    source = _first_input(image) if isinstance(image, str | Path) else image
    tiles, missing = [(_shown(source), "source")], []
    case = Case("preview", input=source)
    whole = _suite(suite)
    chosen = list(dict.fromkeys(t for rule in whole.rules for t in rule.transformations))
    wanted = frozenset().union(*(t.needs for t in chosen))
    plain = replace(whole, rules=tuple(replace(rule, relation=None) for rule in whole.rules))  # nothing is judged
    answer = None if system is None else _answer(system, source)
    named = providers_of(plain, {}, zones=zones, objects=objects, pool=pool)
    if system is None and objects in (None, "auto") and (detector := default_objects()):
        named.setdefault("objects", detector)
    providers = {need: provider(need, name) for need, name in named.items() if need in wanted}
    needs: dict[str, Need | NotApplicable] = {} if answer is None else {"source": answer}
    for changed in chosen:
        for need in changed.needs - needs.keys():
            needs[need] = provided(need, providers.get(need), case, source, answer)
        try:
            follow_up, _ = make_follow_up(seed, case.id, source, changed, 0, needs)
            tiles.append((_shown(follow_up), changed.id))
        except NotApplicable as error:
            missing.append((changed.id, str(error)))
    return contact_sheet(tiles), missing


def _answer(named: str | System | Callable[..., object], source: Input) -> Output:
    loaded = _system(named)
    answer = loaded.answer([source], [0])[0]
    if isinstance(answer, Exception):
        raise ValueError(f"{loaded.name} failed on this {source.kind}: {type(answer).__name__}: {answer}")
    return answer


def _first_input(path: str | Path) -> Input:
    """The image at a path, or the first case of the dataset there."""
    if Path(path).is_file():
        try:
            return read_image(path)
        except Unreadable:
            opened = dataset(path)
            if opened.inputs == Image.kind:
                raise
    else:
        opened = dataset(path)
    first = next(iter(opened.cases()), None)
    if first is None:
        raise ValueError(f"{opened.name} has no cases")
    return read_input(first)[0]


def _shown(source: Input) -> Image:
    return draw_shapes(Image(source.picture()), source.shapes())


def check(
    system: str | System | Callable[..., object], inputs: Sequence[str | Path], out: str | Path
) -> tuple[list[Finding], list[Path]]:
    """Whether a system's adapter is right, and pictures of its answers in a folder.

    Without inputs: sample photos, or scenes that are made for it. For a predictor of scenes, inputs are datasets.
    """
    loaded = _system(system)
    if loaded.takes == Image.kind:
        cases = [Case(Path(p).name, path=str(p)) for p in inputs] or list(_dataset("sample-photos").cases())
    else:
        cases = [case for path in inputs for case in islice(_dataset(path).cases(), 4)]
    named = [(case.id, made) for case in cases if (made := read_input(case)[0]).kind == loaded.takes]
    findings, answers = check_system(loaded, named)
    drawn = []
    for name, made, answer in answers:
        path = Path(out) / f"{Path(name).stem}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_png(path, draw_shapes(_shown(made), answer.shapes()))
        drawn.append(path)
    return findings, drawn


def _suite(name: str | Suite) -> Suite:
    return name if isinstance(name, Suite) else suite(name)


def _dataset(path: str | Path | Dataset) -> Dataset:
    return path if isinstance(path, Dataset) else dataset(path)


def _sendable(system: str | System | Callable[..., object], workers: int | None) -> tuple[str | System, int | None]:
    """A function that another process can import is sent by name; any other works in this process only."""
    if isinstance(system, str):
        return system_name(system), workers
    if isinstance(system, System):
        return system, 0 if workers is None else workers
    name = function_name(system)
    if importable(system, name):
        return name, workers
    if workers:
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
