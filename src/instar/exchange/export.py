"""Export: every follow-up of a plan as a file with its key, for whoever answers them elsewhere."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import cast

import numpy as np

from instar.case import Case, Input
from instar.datasets import Dataset
from instar.engine.cases import case_row, read_case
from instar.engine.follow_up import NoFollowUp, make_follow_up
from instar.engine.manifest import Conflict, refuse_pixels
from instar.engine.needs import Need, Provider, is_stored, provided, provider, stored_provider
from instar.engine.packing import packed_need
from instar.engine.plan import SOURCE, Key, Plan, bound_rules, make_plan, refuse_unloaded
from instar.engine.progress import Outcome, Progress
from instar.exchange.exported import (
    ExportedCase,
    ExportedInput,
    ExportManifest,
    case_folder,
    content_hash,
    gather_lines,
    inputs_folders,
    is_export,
    is_whole,
    opened_export,
    safe_name,
)
from instar.files import clear_unfinished, place_file
from instar.image import small_png
from instar.outputs import Output, output_kind, output_kinds
from instar.reading import most_pixels
from instar.store import DatasetInfo, ProviderInfo, Row, Store
from instar.suites import Suite
from instar.transforms import Change, NotApplicable, Transformation, draw_seed


def export_inputs(
    dataset: Dataset,
    suite: Suite,
    folder: str | Path,
    *,
    kind: str | None = None,
    stochastic: bool = False,
    seed: int | None = None,
    limit: int | None = None,
    providers: Mapping[str, str] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Write the source and every follow-up of every case, as far as the folder does not hold them yet.

    `kind` is what the answers will be; that of the suite, where it is for one. For a `stochastic` system the repeats
    that rules ask for are lines of their own. `providers` names who provides zones, objects and the pool. What could
    not be made before is tried again.
    """
    target, begun = Path(folder), time.monotonic()
    store = Store(target)
    store.refuse_bucket("inputs are exported to a folder on a disk; give one (`out`)")
    with store.lock():
        manifest, loaded = _grown(
            target, dataset, suite, _kind(kind, suite, dataset), stochastic, seed, providers or {}
        )
        if is_export(target):
            clear_unfinished([target, *inputs_folders(target)])
        manifest.write(target)
        plan = make_plan(
            bound_rules(manifest.rules, manifest.kind), seed=manifest.seed, deterministic=not manifest.stochastic
        )
        exporter = _Exporter(target, plan, stochastic, loaded, on_progress or (lambda progress: None))
        exporter.notes += dataset.notes
        interrupted = False
        try:
            exporter.cases(lambda: islice(dataset.cases(), limit))
        except KeyboardInterrupt:
            interrupted = True
        statuses, cases, unreadable = gather_lines(target)
    seconds = time.monotonic() - begun
    notes = tuple(exporter.notes)
    return Outcome(exporter.progress.fresh, seconds, statuses, cases, unreadable, interrupted, notes)


def _kind(name: str | None, suite: Suite, dataset: Dataset) -> str:
    kind = name or suite.output
    if kind is None:
        kinds = ", ".join(one for one, output in output_kinds().items() if output.answers == dataset.inputs)
        raise ValueError(
            f"suite {suite.name} is for any kind of output; say with the parameter kind what the answers will be: "
            f"{kinds}"
        )
    takes = output_kind(kind).answers
    if takes != dataset.inputs:
        raise ValueError(
            f"systems that answer with {kind} take {takes}s, the cases of {dataset.name} are "
            f"{dataset.inputs}s; give a dataset of {takes}s, or another kind"
        )
    return kind


def _grown(
    folder: Path,
    dataset: Dataset,
    suite: Suite,
    kind: str,
    stochastic: bool,
    seed: int | None,
    names: Mapping[str, str],
) -> tuple[ExportManifest, dict[str, Provider]]:
    """What is exported, and who provides what it needs. Rules and cases may be added; nothing else may change."""
    from instar import __version__

    now = datetime.now(UTC).isoformat(timespec="seconds")
    source = DatasetInfo.of(dataset.name, dataset.root)
    options = json.loads(json.dumps(dict(suite.options)))  # as they come back from a file
    try:
        manifest = opened_export(folder)
    except FileNotFoundError:
        manifest = ExportManifest(__version__, now, now, kind, stochastic, source, seed or 0, options)
    wanted = replace(
        manifest,
        kind=kind,
        stochastic=stochastic,
        dataset=source,
        seed=manifest.seed if seed is None else seed,
        options=options or manifest.options,
    )
    refuse_pixels(folder, manifest.max_pixels)
    for name in ("kind", "stochastic", "dataset", "seed", "options"):
        _refuse_other(folder, name, getattr(manifest, name), getattr(wanted, name))
    rules = bound_rules([*manifest.rules, *suite.rules], kind)
    refuse_unloaded(folder, rules)
    needs = {need for rule in rules for one in rule.transformations for need in one.needs}
    before = {
        need: stored_provider(need, who.name) for need, who in manifest.providers.items() if need in needs - set(names)
    }
    providers = {need: provider(need, name) for need, name in {**before, **names}.items() if need in needs}
    infos = {need: ProviderInfo(who.name, who.fingerprint, who.parts) for need, who in providers.items()}
    for need, who in infos.items():
        _refuse_other(folder, need, manifest.providers.get(need, who), who)
    return replace(
        manifest,
        updated=now,
        rules=tuple(rule.id for rule in rules),
        suites=tuple(dict.fromkeys([*manifest.suites, suite.name])),
        panels=tuple(dict.fromkeys([*manifest.panels, *suite.panels])),
        thresholds={**manifest.thresholds, **suite.thresholds},
        titles={**manifest.titles, **suite.titles},
        providers={**manifest.providers, **infos},
        max_pixels=most_pixels(),
    ), providers


def _refuse_other(folder: Path, what: str, before: object, now: object) -> None:
    if before != now:
        raise Conflict(
            f"{folder} was exported with {what} {_spelled(before)}, not {_spelled(now)}; give another folder (`out`), "
            "or continue with what it was made with"
        )


def _spelled(value: object) -> str:
    if isinstance(value, DatasetInfo | ProviderInfo):
        return value.name
    return json.dumps(dict(value) if isinstance(value, Mapping) else value)


# --- one case --------------------------------------------------------------------------------------


@dataclass(slots=True)
class _CaseInHand:
    """A case that is being exported: what was provided for it, and what of that is stored."""

    case: Case
    source: Input
    folder: Path
    needs: dict[str, Need | NotApplicable]
    stored: dict[str, Row]


class _Exporter:
    """Makes what is missing, case by case."""

    def __init__(
        self,
        folder: Path,
        plan: Plan,
        stochastic: bool,
        providers: Mapping[str, Provider],
        on_progress: Callable[[Progress], None],
    ) -> None:
        self.folder, self.plan, self.stochastic, self.providers = folder, plan, stochastic, providers
        self.keys = plan.keys()
        self.transformations = {one.transformation.id: one.transformation for one in plan.follow_ups}
        self.on_progress, self.progress = on_progress, Progress()
        self.notes: list[str] = []

    def cases(self, cases: Callable[[], Iterator[Case]]) -> None:
        progress = self.progress
        progress.cases = sum(1 for _ in cases())
        progress.rows = progress.cases * len(self.keys)
        progress.began = time.monotonic()
        self.on_progress(progress)
        for case in cases():
            self._case(case)
            progress.done += len(self.keys)
            self.on_progress(progress)

    def _case(self, case: Case) -> None:
        folder = case_folder(self.folder, case.id)
        before = ExportedCase.read(folder) or ExportedCase({})
        lines = {
            line.key: line
            for line in before.inputs
            if line.status == "ok" and line.file is not None and is_whole(self.folder, line)
        }
        missing = [key for key in self.keys if key not in lines]
        if not missing:
            return
        source, reading = read_case(case)
        truth = cast("Output | None", case.truth)
        row = {**case_row(case, None if truth is None else truth.kind), **reading.row()}
        if lines and row.get("hash") != before.case["hash"]:
            self.notes.append(
                f"{case.id} is not the input that this export knows by that id (its content changed, or "
                "it cannot be read any more); what was exported stays, nothing was added"
            )
            return
        stored = {need["need"]: need for need in before.needs}
        if source is None:
            self.progress.statuses["unreadable"] += 1
        else:
            fresh = self._lines(_CaseInHand(case, source, folder, {}, stored), missing)
            lines.update(fresh)
            self.progress.arrived(sum(line.status == "ok" for line in fresh.values()))
            self.progress.statuses.update(line.status for line in fresh.values())
        inputs = tuple(lines[key] for key in self.keys if key in lines)
        ExportedCase(row, None if truth is None else truth.header(), tuple(stored.values()), inputs).write(folder)

    def _lines(self, hand: _CaseInHand, keys: list[Key]) -> dict[Key, ExportedInput]:
        """A line for each key, its file written."""
        lines: dict[Key, ExportedInput] = {}
        made: dict[tuple[str, int], ExportedInput] = {}
        for name, draw, repeat in keys:
            transformation = self.transformations.get(name)
            if (name, draw) not in made:
                self._provide(hand, transformation)
                made[name, draw] = self._made(hand, transformation, draw)
            line = replace(made[name, draw], repeat=repeat)
            if line.status == "ok":  # a deterministic system has no use for a seed
                chance = draw_seed(self.plan.seed, hand.case.id, transformation or SOURCE, draw, repeat)
                line = replace(line, seed=chance if self.stochastic else 0)
            lines[name, draw, repeat] = line
        return lines

    def _provide(self, hand: _CaseInHand, transformation: Transformation | None) -> None:
        """What a transformation needs and was not provided yet; what is stored is put beside what was."""
        for need in sorted((transformation.needs if transformation else frozenset()) - hand.needs.keys()):
            who = self.providers.get(need)
            value = hand.needs[need] = provided(need, who, hand.case, hand.source)
            if who is not None and is_stored(who, value, hand.case):
                packed = packed_need(need, who, value)
                hand.stored[need] = {**packed.row(), "data": packed.content}

    def _made(self, hand: _CaseInHand, transformation: Transformation | None, draw: int) -> ExportedInput:
        """The follow-up written as a file and what is to be said of it, or why there is none."""
        line = ExportedInput(hand.case.id, transformation.id if transformation else SOURCE, draw, 0, "ok")
        follow_up, change = hand.source, Change.none(hand.source.size)
        if transformation is not None:
            try:
                follow_up, change = make_follow_up(
                    self.plan.seed, hand.case.id, hand.source, transformation, draw, hand.needs
                )
            except NoFollowUp as error:
                return replace(line, status=error.status, message=str(error))
        name = f"{safe_name(transformation.id)}-{draw}" if transformation else SOURCE
        ending, content = follow_up.encoded()
        facts: Row = {
            "warp": change.warp.matrix.tolist(),
            "regions": change.regions,
            "added": change.added,
            "removed": change.removed,
            "facts": dict(change.facts),
        }
        if change.mask is not None:
            cells = np.where(change.mask, np.uint8(255), np.uint8(0))
            mask = small_png(cells)
            facts["mask"] = self._written(hand.folder / f"{name}.mask.png", mask)
            facts["mask_hash"] = content_hash(mask)
        width, height = change.warp.target
        file = self._written(hand.folder / f"{name}.{ending}", content)
        return replace(line, file=file, hash=content_hash(content), width=width, height=height, change=facts)

    def _written(self, path: Path, content: bytes) -> str:
        return place_file(path, content).relative_to(self.folder).as_posix()
