"""What the public API and the commands stand on: run, and a Run to look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

from instar.analysis import any_rule, rates, worst
from instar.case import Case, Image, read_image, read_input
from instar.datasets import Dataset, dataset
from instar.engine import (
    DEFAULT,
    Estimate,
    Finding,
    Outcome,
    Progress,
    bound_rules,
    check_system,
    judge,
    predict,
    provided,
    provider,
)
from instar.engine import estimate as _estimate
from instar.relations import own_equivariance, rule
from instar.report import contact_sheet, draw_shapes, write_png
from instar.spelling import unknown
from instar.store import Store
from instar.suites import Suite, suite
from instar.systems import System, default_zones, from_function, system_name
from instar.systems import system as _system
from instar.transforms import NotApplicable, draw_seed

__all__ = ["Run", "check", "estimate", "open_run", "preview", "run", "zones_provider"]


@dataclass(frozen=True, slots=True)
class Run:
    """A run folder: predictions, verdicts and what they say. It needs the folder alone, wherever it was copied."""

    store: Store
    outcome: Outcome | None = None

    @property
    def folder(self) -> Path:
        return self.store.folder

    @property
    def manifest(self) -> dict[str, Any]:
        return self.store.manifest()

    def cases(self) -> pl.DataFrame:
        """One row per case: id, path, content hash, size, truth, attributes, measured properties."""
        return self.store.cases()

    def predictions(self) -> pl.DataFrame:
        """One row per prediction: its key (case, follow_up, draw, repeat), status, change, and the output."""
        return self.store.predictions()

    def judge(self, **options: Any) -> str:
        """Ask another question of the same predictions; returns the judging's id.

        For poses: landmarks, aggregate, normaliser, confidence, visibility, outside, space.
        """
        return judge(self.store, options)

    def verdicts(self, judging: str = DEFAULT, **options: Any) -> pl.DataFrame:
        """Severities, one row per case, target and rule; judged first where they are not up to date."""
        if options:
            judging = self.judge(**options)
        else:
            held = self.store.judging_info(judging)
            if held is not None or judging == DEFAULT:
                judge(self.store, held["options"] if held else {})
        return self.store.verdicts(judging)

    def thresholds(self, threshold: float | None = None) -> dict[str, float]:
        """Each rule's threshold: the one given, else the suite's, else its relation's."""
        manifest = self.manifest
        named = manifest["thresholds"]
        found: dict[str, float] = {}
        for one in bound_rules(manifest["rules"], manifest["system"]["kind"]):
            assert one.relation is not None
            relation = one.relation.relation
            fixed = relation.over == "cases"  # a threshold in body lengths says nothing about a correlation
            own = named.get(one.id, named.get(one.left, named.get("*", relation.threshold)))
            found[one.id] = float(own if threshold is None or fixed else threshold)
        return found

    def rates(self, threshold: float | None = None, *, judging: str = DEFAULT,
              by: Literal["case", "target"] = "case") -> pl.DataFrame:
        """Violation rate per rule with its 95 % interval."""
        return rates(self.verdicts(judging), self.thresholds(threshold), by=by)

    def any_rule(self, threshold: float | None = None, *, judging: str = DEFAULT) -> dict[str, Any]:
        """The share of cases that violate at least one rule, with its 95 % interval."""
        return any_rule(self.verdicts(judging), self.thresholds(threshold))

    def worst(self, count: int = 10, *, judging: str = DEFAULT, rule: str | None = None,
              case: str | None = None) -> pl.DataFrame:
        """The pairs with the highest severities, of all rules and cases or of one."""
        verdicts = self.verdicts(judging)
        if rule is not None:
            verdicts = verdicts.filter(rule=self._rule(rule))
        if case is not None:
            verdicts = verdicts.filter(case=case)
            if verdicts.is_empty():
                raise unknown("case", case, self.cases()["case"])
        return worst(verdicts, count)

    @property
    def unit(self) -> str:
        """What severities are measured in."""
        return own_equivariance(self.manifest["system"]["kind"]).relation.unit

    def _rule(self, text: str) -> str:
        """A rule of this run by its id, with or without its relation."""
        known = self.manifest["rules"]
        wanted = rule(text).id
        found = next((name for name in known if wanted in (name, name.partition(" => ")[0])), None)
        if found is None:
            raise unknown("rule of this run", wanted, known)
        return str(found)


def open_run(folder: str | Path) -> Run:
    """An existing run folder."""
    opened = Run(Store(folder))
    opened.store.manifest()
    return opened


def zones_provider(given: str | None, store: Store) -> str | None:
    """Who provides zones: the one asked for, else the run's own, else the best one installed. `none` is nobody."""
    if given == "none":
        return None
    if given and given != "auto":
        return given if given in ("masks", "boxes") else system_name(given)
    if store.exists and "zones" in store.manifest()["providers"]:
        return str(store.manifest()["providers"]["zones"]["name"])
    return default_zones()


def run(system: str | System | Callable[..., Any], suite: str | Suite, dataset: str | Path | Dataset, *,
        out: str | Path, seed: int | None = None, workers: int | None = None, timeout: float = 60.0,
        limit: int | None = None, zones: str | None = None, retry_failed: bool = False,
        on_progress: Callable[[Progress], None] | None = None) -> Run:
    """Test a system: predict what is missing in the run folder, then judge it.

    The same call again continues, or finds that nothing is left to do.

    Args:
        system: `mediapipe-holistic`, `package.module:function`, or a function of an (H, W, 3) RGB array.
        suite: `met-pose/sub`, a TOML file, one rule, or several joined by `+`.
        dataset: a folder of pictures, a list file, a video, a COCO file …
        out: the run folder.
        workers: processes; one per core by default, 0 for this process (no protection from crashes and hangs).
        timeout: seconds that one prediction may take.
        zones: who finds skin, hair, clothes and background; `auto` by default, `none` for nobody.
    """
    store = Store(out)
    system, workers = _sendable(system, workers)
    outcome = predict(system, _suite(suite), _dataset(dataset), store, seed=seed, workers=workers, timeout=timeout,
                      limit=limit, zones=zones_provider(zones, store), retry_failed=retry_failed,
                      on_progress=on_progress)
    finished = Run(store, outcome)
    if store.state("predictions"):
        finished.judge()
    return finished


def estimate(system: str, suite: str | Suite, dataset: str | Path | Dataset, *, out: str | Path | None = None,
             limit: int | None = None, workers: int | None = None, timeout: float = 60.0,
             zones: str | None = None) -> Estimate:
    """What a run would cost, from three timed cases. Writes nothing."""
    store = Store(out if out is not None else "no run folder")
    return _estimate(system_name(system), _suite(suite), _dataset(dataset), store, workers=workers, timeout=timeout,
                     limit=limit, zones=zones_provider(zones, store))


def preview(suite: str | Suite, picture: str | Path | Image, *, zones: str | None = None,
            seed: int = 0) -> tuple[Image, list[tuple[str, str]]]:
    """A contact sheet of every rule of a suite on one picture, and the rules that do not apply to it, with why."""
    image = picture if isinstance(picture, Image) else read_image(picture)
    tiles, missing = [(image, "source")], []
    case = Case("preview", input=image)
    chosen = list(dict.fromkeys(t for rule in _suite(suite).rules for t in rule.transformations))
    name = zones_provider(zones, Store("no run folder")) if any("zones" in t.needs for t in chosen) else None
    providers = {"zones": provider("zones", name)} if name else {}
    held: dict[str, Any] = {}
    for transformation in chosen:
        try:
            for need in transformation.needs - held.keys():
                held[need] = provided(need, providers.get(need), case, image)
            for need in transformation.needs:
                if isinstance(held[need], NotApplicable):
                    raise held[need]
            follow_up, _ = transformation(image, needs=held, seed=draw_seed(seed, case.id, transformation, 0))
            tiles.append((follow_up, transformation.id))
        except NotApplicable as error:
            missing.append((transformation.id, str(error)))
    return contact_sheet(tiles), missing


def check(system: str | System | Callable[..., Any], pictures: Sequence[str | Path],
          out: str | Path) -> tuple[list[Finding], list[Path]]:
    """Whether a system's adapter is right, and its answers drawn into a folder. Without pictures: sample photos."""
    cases = ([Case(Path(p).name, path=str(p)) for p in pictures] if pictures
             else list(_dataset("sample-photos").cases()))
    loaded = _system(system)
    findings, shown = check_system(loaded, [(case.id, read_input(case)[0]) for case in cases])
    drawn = []
    for name, image, answer in shown:
        path = Path(out) / f"{Path(name).stem}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_png(path, draw_shapes(image, answer.shapes()))
        drawn.append(path)
    return findings, drawn


def _suite(given: str | Suite) -> Suite:
    return given if isinstance(given, Suite) else suite(given)


def _dataset(given: str | Path | Dataset) -> Dataset:
    return given if isinstance(given, Dataset) else dataset(given)


def _sendable(system: str | System | Callable[..., Any], workers: int | None) -> tuple[str | System, int | None]:
    """A function that another process can import is sent by name; any other works in this process only."""
    if isinstance(system, str):
        return system_name(system), workers
    if isinstance(system, System):
        return system, 0 if workers is None else workers
    module, name = getattr(system, "__module__", "__main__"), getattr(system, "__qualname__", "")
    if module != "__main__" and name and "<" not in name:
        return f"{module}:{name}", workers
    if workers:
        raise ValueError(f"{name or system!r} lives in __main__ or inside another function, where worker processes "
                         "cannot import it; put it into a module, or give workers=0")
    return from_function(system, f"{module}:{name}"), 0


