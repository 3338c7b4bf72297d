"""What is tried on single inputs, without a run folder: a preview of rules, a check of an adapter, one severity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.api import chosen_suite, providers_of
from instar.case import Case, Input, read_input
from instar.datasets import Dataset, dataset
from instar.engine import Need, judge, make_follow_up, predict, provided, provider
from instar.image import Image, Unreadable, read_image
from instar.outputs import Output, output_kind
from instar.relations import Rule, relations
from instar.relations import rule as parsed_rule
from instar.report import draw_shapes, write_png
from instar.report.cells import Preview
from instar.report.words import count_of, listed
from instar.store import Store
from instar.suites import Suite
from instar.systems import System, default_objects
from instar.systems import system as loaded_system
from instar.systems.check import SAMPLES, Finding, check_system, watched
from instar.transforms import NotApplicable

ImageLike = Input | npt.NDArray[np.uint8] | str | Path
ONE = "input"
"""The id of the only case, where there is one."""


def preview(
    suite: str | Suite,
    image: str | Path | Input,
    *,
    system: str | System | Callable[..., object] | None = None,
    zones: str | None = None,
    objects: str | None = None,
    pool: str | Path | None = None,
    seed: int = 0,
) -> Preview:
    """Every follow-up of a suite on one image, which a notebook shows; `sheet` of it is one picture of all.

    Of a dataset the first case is taken. What a run would take from the answer of the system under test, such as
    landmarks, is taken from that of `system`; objects that nobody answers with are found by a detector.
    """
    source = _first_input(image) if isinstance(image, str | Path) else image
    tiles, missing = [(_shown(source), "source")], []
    case = Case("preview", input=source)
    whole = chosen_suite(suite)
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
    return Preview(tuple(tiles), tuple(missing))


def _answer(named: str | System | Callable[..., object], source: Input) -> Output:
    loaded = loaded_system(named)
    answer = loaded.answer([source], [0])[0]
    if isinstance(answer, Exception):
        raise ValueError(f"{loaded.name} failed on this {source.kind}: {type(answer).__name__}: {answer}")
    return answer


def _first_input(path: str | Path) -> Input:
    """The image at a path, or the first case of the dataset there."""
    first = next(iter(_cases(path)), None)
    if first is None:
        raise ValueError(f"{path} has no cases")
    return read_input(first)[0]


def _cases(path: str | Path) -> Iterable[Case]:
    """Those of a dataset as a run takes it, or the one image that a file is which no reader recognises by its name."""
    try:
        return dataset(path).cases()
    except ValueError:
        with suppress(Unreadable):
            read_image(path)
            return [Case(Path(path).name, path=str(path))]
        raise


def _shown(source: Input) -> Image:
    return draw_shapes(Image(source.picture()), source.shapes())


def check(
    system: str | System | Callable[..., object],
    inputs: Sequence[str | Path],
    out: str | Path,
    *,
    limit: int = SAMPLES,
    timeout: float | None = None,
) -> tuple[list[Finding], list[Path], bool]:
    """Whether a system's adapter is right, pictures of its answers in a folder, and whether it found anything at all.

    Inputs are images and datasets, as a run takes them; without any: sample photos, or scenes that are made for it. Of
    all that can be read the first `limit` are asked. What scores too little to count is not drawn, and pictures of
    the same inputs are replaced; findings say both. With a `timeout` in seconds for one answer, stderr also says what
    is waited for.
    """
    with nullcontext() if timeout is None else watched(f"{system} is not loaded", None):
        loaded = loaded_system(system)
    sources = inputs or (["sample-photos"] if loaded.takes == Image.kind else [])
    cases = [case for path in sources for case in _cases(path) if case.kind == loaded.takes]
    if sources and not cases:
        raise ValueError(f"{loaded.name} takes {loaded.takes}s, and there are none in {listed([*map(str, sources)])}")
    named, unreadable = _read(cases, limit)
    offered = len(cases) - len(unreadable)
    findings, answers = check_system(loaded, named, samples=limit, offered=offered, timeout=timeout)
    found_any = not output_kind(loaded.kind).has_marks or any(answer.marks() for _, _, answer in answers)
    if unreadable:
        verb = "is" if len(unreadable) == 1 else "are"
        message = f"{count_of(len(unreadable), loaded.takes)} that cannot be read {verb} left out: {unreadable[0]}"
        words = f"{message}{' …' if len(unreadable) > 1 else ''}"
        findings.append(Finding("inputs.unreadable", "inputs", "skipped", words, {"images": len(unreadable)}))
    confidence, fainter = _confidence(loaded.kind), 0
    paths = _pictures(Path(out), [name for name, _, _ in answers])
    replaced = sum(path.exists() for path in paths)
    for path, (_, made, answer) in zip(paths, answers, strict=True):
        sure = answer.confident(confidence)
        fainter += len(answer.marks()) - len(sure.marks())
        path.parent.mkdir(parents=True, exist_ok=True)
        write_png(path, draw_shapes(_shown(made), sure.shapes()))
    if replaced:
        message = f"{count_of(replaced, 'picture')} of an earlier check {'was' if replaced == 1 else 'were'} replaced"
        findings.append(Finding("pictures.replaced", "pictures", "ok", message, {"pictures": replaced}))
    if fainter:
        message = (
            f"answers that score at least {confidence:g} are drawn, which rules count by default; "
            f"{count_of(fainter, 'fainter one')} {'is' if fainter == 1 else 'are'} not"
        )
        findings.append(Finding("pictures.faint", "pictures", "ok", message, {"faint": fainter}))
    return findings, paths, found_any


def _read(cases: Iterable[Case], limit: int) -> tuple[list[tuple[str, Input]], list[Unreadable]]:
    """The first inputs that can be read, and what is wrong with those between them."""
    named: list[tuple[str, Input]] = []
    unreadable: list[Unreadable] = []
    for case in cases:
        if len(named) == limit:
            break
        try:
            named.append((case.id, read_input(case)[0]))
        except Unreadable as error:
            unreadable.append(error)
    if unreadable and not named:
        raise unreadable[0]
    return named, unreadable


def _pictures(out: Path, names: Sequence[str]) -> list[Path]:
    """A file for each of these inputs, also where two of them are called alike."""
    stems = [Path(name.replace("/", "-")).stem for name in names]
    return [
        out / f"{stem}{f' ({n})' if (n := stems[:at].count(stem) + 1) > 1 else ''}.png" for at, stem in enumerate(stems)
    ]


def _confidence(kind: str) -> float:
    """From which score on rules count an answer of this kind where nobody says otherwise."""
    own = output_kind(kind).relation
    options = {option.name: option.default for option in relations()[own].options} if own else {}
    default = options.get("confidence", 0.0)
    assert isinstance(default, float | int)
    return float(default)


@dataclass(frozen=True, slots=True)
class SeededRule:
    """A rule, or a transformation, as it is spelled, and the seed of what it draws at random."""

    rule: str
    seed: int = 0

    def follow_up(self, image: ImageLike) -> Input:
        """What it makes of an input. Raises NotApplicable where it says nothing about it."""
        (changed,) = parsed_rule(self.rule).transformations
        return make_follow_up(self.seed, ONE, _input(image), changed, 0, {})[0]


def severity(
    rule: str | Rule | SeededRule,
    system: str | System | Callable[..., object],
    image: ImageLike,
    *,
    seed: int = 0,
    zones: str | None = None,
    objects: str | None = None,
    pool: str | Path | None = None,
    **options: object,
) -> float:
    """How far a system strays under one rule on one input: what a run of this one case would say of its worst target.

    0 is perfect, and ∞ means found in one of the two alone. For a test, or a look at one input; a run answers about
    many, and keeps the answers. Raises NotApplicable where nothing can be said, with the reason, and RuntimeError where
    the system fails.

    Args:
        rule: as it is spelled, such as `mirror(h)`, or what a strategy of `instar.strategies` draws.
        image: an image or a scene, an (H, W, 3) uint8 array in RGB order, or a path.
        seed: of what is drawn at random.
        options: of the judging, as in `Run.judge`: confidence=0.5.
    """
    if isinstance(rule, SeededRule):
        seed, rule = rule.seed, rule.rule
    parsed = parsed_rule(rule) if isinstance(rule, str) else rule
    if len(parsed.transformations) != 1 or (parsed.relation and parsed.relation.relation.over == "cases"):
        raise ValueError(f"{parsed.id} is a rule over many cases, and has no severity on one; run a suite with it")
    source = _input(image)
    one = Dataset(ONE, "", lambda: iter([Case(ONE, input=source)]), inputs=source.kind)
    chosen = chosen_suite(parsed.id)
    providers = providers_of(chosen, {}, zones=zones, objects=objects, pool=pool)
    with TemporaryDirectory(prefix="instar-") as folder:
        store = Store(Path(folder) / "run")
        outcome = predict(loaded_system(system), chosen, one, store, seed=seed, workers=0, providers=providers)
        if outcome.interrupted:
            raise KeyboardInterrupt
        verdicts = store.verdicts(judge(store, options))
    return _worst(parsed.id, verdicts)


def _worst(rule: str, verdicts: pl.DataFrame) -> float:
    """The highest severity, or why there is none."""
    judged = verdicts["severity"].drop_nulls()
    if len(judged):
        return float(judged.max())  # type: ignore[arg-type]
    status, reason = verdicts.select("status", "reason").row(0)
    if status == "not applicable":
        raise NotApplicable(f"{rule}: {reason}")
    raise RuntimeError(f"{rule}: {reason}")


def _input(image: ImageLike) -> Input:
    if isinstance(image, str | Path):
        return _first_input(image)
    return Image(image) if isinstance(image, np.ndarray) else image
