"""What the public API and the commands stand on: run, and a Run to look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

from instar.analysis import (
    agreement,
    any_rule,
    costs,
    described,
    displacement,
    displacement_tests,
    map_table,
    preserving_table,
    rates,
    selected,
    slices,
    worst,
)
from instar.case import Case, Image, Input, Scene, Unreadable, read_image, read_input
from instar.datasets import Dataset, dataset
from instar.engine import (
    DEFAULT,
    SOURCE,
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
from instar.outputs import Forecast
from instar.relations import Rule, rule
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
        named = self.manifest["thresholds"]
        found: dict[str, float] = {}
        for one in self._bound():
            assert one.relation is not None
            relation = one.relation.relation
            fixed = relation.over == "cases"  # a threshold in body lengths says nothing about a correlation
            own = named.get(one.id, named.get(one.left, named.get("*", relation.threshold)))
            found[one.id] = float(own if threshold is None or fixed else threshold)
        return found

    def alphas(self, p: float | None) -> dict[str, float]:
        """The level of significance of every rule whose relation is a test; none where p is None."""
        if p is None:
            return {}
        level = _level(p)
        return {one.id: level for one in self._bound() if one.relation and one.relation.relation.tests}

    def rates(self, threshold: float | None = None, *, p: float | None = None, judging: str = DEFAULT,
              by: Literal["case", "target"] = "case") -> pl.DataFrame:
        """Violation rate per rule with its 95 % interval; with `p`, statistical relations by their test."""
        return rates(self.verdicts(judging), self.thresholds(threshold), by=by, alphas=self.alphas(p))

    def any_rule(self, threshold: float | None = None, *, p: float | None = None,
                 judging: str = DEFAULT) -> dict[str, Any]:
        """The share of cases that violate at least one rule, with its 95 % interval."""
        return any_rule(self.verdicts(judging), self.thresholds(threshold), alphas=self.alphas(p))

    def select(self, share: float = 1.0, *, threshold: float | None = None,
               judging: str = DEFAULT) -> tuple[pl.DataFrame, bool]:
        """The cheapest rules that find at least this share of the failing cases; and whether that is proven.

        One row per rule, in the order in which they earn their keep: the new cases it finds, and what all so far find.
        The cost is the seconds of prediction per case that the run measured.
        """
        follow_ups = {one.id: [t.id for t in one.transformations] for one in self._bound()}
        return selected(self.verdicts(judging), self.thresholds(threshold), follow_ups, costs(self.store), share=share)

    def slices(self, *, threshold: float | None = None, rule: str | None = None,
               judging: str = DEFAULT) -> pl.DataFrame:
        """How failing cases differ from the others: measured properties of the input and the dataset's own columns.

        Surest difference first; `p_corrected` takes into account how many questions were asked.
        """
        limits = self.thresholds(threshold)
        if rule is not None:
            chosen = self._rule(rule)
            limits = {chosen: limits[chosen]}
        return slices(described(self.cases()), self.verdicts(judging), limits)

    def tables(self, *, p: float = 0.05, judging: str = DEFAULT) -> dict[str, pl.DataFrame]:
        """The tables of TrajTest for a run of forecasts.

        `preserving`: changes that move all alike (Table 3); `map`: changes of the map (Table 4); `agreement` with
        the displacement from the truth over levels of p (Figure 5) and `displacement` of the source's predictions,
        where there is a truth.
        """
        if self.manifest["system"]["kind"] != Forecast.kind:
            raise ValueError(f"{self.folder} is a run of {self.manifest['system']['kind']}; "
                             "there are tables for forecasts")
        p = _level(p)
        verdicts = self.verdicts(judging)
        if (self.manifest["truth"] or {}).get("kind") != Forecast.kind:
            return {"preserving": preserving_table(verdicts, None, p=p), "map": map_table(verdicts)}
        moved = [one.left for one in self._bound() if one.relation and one.relation.relation.tests]
        apart = displacement(self.store, moved)
        truth = displacement_tests(apart)
        return {"preserving": preserving_table(verdicts, truth, p=p), "map": map_table(verdicts),
                "agreement": agreement(verdicts, truth),
                "displacement": apart.filter(follow_up=SOURCE).drop("follow_up", "draw")}

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
        return worst(verdicts, count, thresholds=self.thresholds())

    def units(self) -> dict[str, str]:
        """What severities are measured in, by relation."""
        return {one.relation.relation.name: one.relation.relation.unit for one in self._bound() if one.relation}

    def _bound(self) -> tuple[Rule, ...]:
        manifest = self.manifest
        return bound_rules(manifest["rules"], manifest["system"]["kind"])

    def _rule(self, text: str) -> str:
        """A rule of this run by its id, with or without its relation."""
        known = self.manifest["rules"]
        wanted = rule(text).id
        found = next((name for name in known if wanted in (name, name.partition(" => ")[0])), None)
        if found is None:
            raise unknown("rule of this run", wanted, known)
        return str(found)


def _level(p: float) -> float:
    if not 0 < p < 1:
        raise ValueError(f"p is above 0 and below 1, got {p}")
    return p


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


def preview(suite: str | Suite, picture: str | Path | Input, *, zones: str | None = None,
            seed: int = 0) -> tuple[Image, list[tuple[str, str]]]:
    """A contact sheet of every rule of a suite on one picture, and the rules that do not apply to it, with why.

    Of a dataset of scenes the first is taken.
    """
    given = picture if isinstance(picture, Image | Scene) else _first_input(picture)
    tiles, missing = [(_shown(given), "source")], []
    case = Case("preview", input=given)
    chosen = list(dict.fromkeys(t for rule in _suite(suite).rules for t in rule.transformations))
    name = zones_provider(zones, Store("no run folder")) if any("zones" in t.needs for t in chosen) else None
    providers = {"zones": provider("zones", name)} if name else {}
    held: dict[str, Any] = {}
    for transformation in chosen:
        try:
            for need in transformation.needs - held.keys():
                held[need] = provided(need, providers.get(need), case, given)
            for need in transformation.needs:
                if isinstance(held[need], NotApplicable):
                    raise held[need]
            follow_up, _ = transformation(given, needs=held, seed=draw_seed(seed, case.id, transformation, 0))
            tiles.append((_shown(follow_up), transformation.id))
        except NotApplicable as error:
            missing.append((transformation.id, str(error)))
    return contact_sheet(tiles), missing


def _first_input(path: str | Path) -> Input:
    """The picture at a path, or the first scene of the dataset there."""
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


def _shown(given: Input) -> Image:
    return draw_shapes(Image(given.picture()), given.shapes())


def check(system: str | System | Callable[..., Any], pictures: Sequence[str | Path],
          out: str | Path) -> tuple[list[Finding], list[Path]]:
    """Whether a system's adapter is right, and its answers drawn into a folder. Without pictures: sample photos."""
    loaded = _system(system)
    if loaded.takes != Image.kind:
        raise ValueError(f"{loaded.name} takes {loaded.takes}s; `check` asks questions about photographs. Whether its "
                         "coordinates are right is shown by `instar run SYSTEM trajtest/geometry DATASET --limit 20`")
    cases = ([Case(Path(p).name, path=str(p)) for p in pictures] if pictures
             else list(_dataset("sample-photos").cases()))
    images = [(case.id, image) for case in cases if isinstance(image := read_input(case)[0], Image)]
    findings, shown = check_system(loaded, images)
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


