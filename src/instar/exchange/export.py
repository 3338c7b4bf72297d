"""Export: every follow-up of a plan as a file with its key, for whoever answers them elsewhere.

A case is a folder of files and a `case.json` that says what they are. That is written last, by one rename, so that a
case is there whole or not at all. `inputs.jsonl` gathers what all of them say, one line per input.
"""

from __future__ import annotations

import json
import re
import time
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from instar.case import Case, Input, read_input
from instar.datasets import Dataset
from instar.engine.manifest import Conflict
from instar.engine.needs import Need, Provider, is_stored, provided, provider
from instar.engine.packing import packed_need
from instar.engine.plan import SOURCE, Key, Plan, bound_rules, make_plan
from instar.engine.progress import Outcome, Progress
from instar.files import place_file
from instar.image import Unreadable, small_png
from instar.outputs import output_kind
from instar.scene import decode_classes
from instar.store import Store
from instar.suites import Suite
from instar.transforms import Change, NotApplicable, Transformation, draw_seed

__all__ = ["case_row", "export_inputs", "exported_cases", "opened_export", "read_mask"]

FORMAT = 1
_ABOUT, _INPUTS, _CASE, _LINES = "export.json", "inputs", "case.json", "inputs.jsonl"
_LETTERS = 60
"""As many of a name are kept for people to read; its hash makes it one of its own."""


# --- what an export is -----------------------------------------------------------------------------


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
    with Store(target).lock():
        about, asked = _grown(target, dataset, suite, _kind(kind, suite, dataset), stochastic, seed, providers or {})
        plan = make_plan(bound_rules(about["rules"], about["kind"]), seed=about["seed"], deterministic=not stochastic)
        exporter = _Exporter(target, plan, stochastic, asked, on_progress or (lambda progress: None))
        exporter.notes += dataset.notes
        interrupted = False
        try:
            exporter.cases(lambda: islice(dataset.cases(), limit))
        except KeyboardInterrupt:
            interrupted = True
        total, cases, unreadable = _gathered(target)
    return Outcome(
        exporter.progress.fresh, time.monotonic() - begun, total, cases, unreadable, interrupted, tuple(exporter.notes)
    )


def _kind(given: str | None, suite: Suite, dataset: Dataset) -> str:
    kind = given or suite.output
    if kind is None:
        raise ValueError(
            f"suite {suite.name} is for any kind of output; say with --kind what the answers will be: "
            "caption, detections, forecast or poses"
        )
    takes = output_kind(kind).answers
    if takes != dataset.inputs:
        raise ValueError(
            f"systems that answer with {kind} take {takes}s, the cases of {dataset.name} are "
            f"{dataset.inputs}s; give a dataset of {takes}s, or another --kind"
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
) -> tuple[dict[str, Any], dict[str, Provider]]:
    """What is exported, written down, and who provides what it needs. Rules and cases may be added; nothing else may
    change."""
    from instar import __version__

    now = datetime.now(UTC).isoformat(timespec="seconds")
    fixed = {"kind": kind, "stochastic": stochastic, "dataset": {"name": dataset.name, "root": dataset.root}}
    if (folder / _ABOUT).is_file():
        about = opened_export(folder)
        fixed.update(seed=about["seed"] if seed is None else seed, options=dict(suite.options or about["options"]))
    else:
        fixed.update(seed=seed or 0, options=dict(suite.options))
        about = {
            "format": FORMAT,
            "instar": __version__,
            "created": now,
            **fixed,
            "suites": [],
            "rules": [],
            "thresholds": {},
            "panels": [],
            "providers": {},
        }
    for what, asked in fixed.items():
        _refuse_other(folder, what, about[what], asked)
    rules = bound_rules([*about["rules"], *suite.rules], kind)
    needs = {need for rule in rules for one in rule.transformations for need in one.needs}
    held = {need: one["name"] for need, one in about["providers"].items()}
    providers = {need: provider(need, name) for need, name in {**held, **names}.items() if need in needs}
    for need, one in providers.items():
        who = {"name": one.name, "fingerprint": one.fingerprint}
        _refuse_other(folder, need, about["providers"].setdefault(need, who), who)
    about["rules"] = [rule.id for rule in rules]
    about["suites"] += [suite.name] if suite.name not in about["suites"] else []
    about["panels"] += [name for name in suite.panels if name not in about["panels"]]
    about["thresholds"].update(suite.thresholds)
    about["updated"] = now
    place_file(folder / _ABOUT, json.dumps(about, indent=1).encode("utf-8"))
    return about, providers


def _refuse_other(folder: Path, what: str, before: object, asked: object) -> None:
    if before != asked:
        raise Conflict(
            f"{folder} was exported with {what} {json.dumps(before)}, not {json.dumps(asked)}; give another "
            "--out, or continue with what it was made with"
        )


def opened_export(folder: str | Path) -> dict[str, Any]:
    """What an export says of itself."""
    path = Path(folder) / _ABOUT
    try:
        about: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(
            f"{folder} holds no export (there is no {_ABOUT} in it); "
            "`instar export DATASET SUITE --out FOLDER` makes one"
        ) from None
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}); restore it, or export again") from None
    if about.get("format") != FORMAT:
        raise ValueError(
            f"{folder} was exported in format {about.get('format')}, this Instar reads {FORMAT}; "
            f"it was written by Instar {about.get('instar')}"
        )
    return about


def exported_cases(folder: str | Path) -> Iterator[dict[str, Any]]:
    """Every case of an export: its row (`case`), the header of its `truth`, the `needs` of its follow-ups, and its
    `inputs`, one line each."""
    for path in sorted((Path(folder) / _INPUTS).glob(f"*/{_CASE}")):
        record = _record(path)
        assert record is not None
        yield record


def _record(path: Path) -> dict[str, Any] | None:
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return None
    try:
        record: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}); delete it and export again") from None
    for row in (record["case"], *record["needs"]):
        for name, value in row.items():
            if isinstance(value, dict) and "base64" in value:
                row[name] = b64decode(value["base64"])
    return record


def _gathered(folder: Path) -> tuple[dict[str, int], int, int]:
    """Write all lines into one file; how many there are by status, how many cases, and how many were unreadable."""
    total: Counter[str] = Counter()
    cases = unreadable = 0

    def write(place: Path) -> None:
        nonlocal cases, unreadable
        with place.open("w", encoding="utf-8") as file:
            for record in exported_cases(folder):
                cases += 1
                unreadable += record["case"]["status"] != "ok"
                total.update(line["status"] for line in record["inputs"])
                file.writelines(json.dumps(line) + "\n" for line in record["inputs"])

    place_file(folder / _LINES, write)
    return dict(total), cases, unreadable


# --- one case --------------------------------------------------------------------------------------


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
        place = self.folder / _INPUTS / _safe(case.id)
        held = _record(place / _CASE) or {"case": {}, "needs": [], "inputs": []}
        lines = {
            _key(line): line
            for line in held["inputs"]
            if line["status"] == "ok" and (self.folder / line["file"]).is_file()
        }
        missing = [key for key in self.keys if key not in lines]
        if not missing:
            return
        given, row, truth = case_row(case)
        if lines and row.get("hash") != held["case"]["hash"]:
            self.notes.append(
                f"{case.id} is not the input that this export knows by that id (its content changed, or "
                "it cannot be read any more); what was exported stays, nothing was added"
            )
            return
        needs = {row["need"]: row for row in held["needs"]}
        if given is None:
            self.progress.statuses["unreadable"] += 1
        else:
            fresh = self._lines(case, given, missing, place, needs)
            lines.update(fresh)
            self.progress.fresh += sum(line["status"] == "ok" for line in fresh.values())
            self.progress.statuses.update(line["status"] for line in fresh.values())
        record = {
            "case": row,
            "truth": truth,
            "needs": list(needs.values()),
            "inputs": [lines[key] for key in self.keys if key in lines],
        }
        place_file(place / _CASE, json.dumps(_plain(record), allow_nan=False).encode("utf-8"))

    def _lines(
        self, case: Case, given: Input, keys: list[Key], place: Path, stored: dict[str, dict[str, Any]]
    ) -> dict[Key, dict[str, Any]]:
        """A line for each key, its file written; needs that are stored are put beside those that are."""
        lines: dict[Key, dict[str, Any]] = {}
        needs: dict[str, Need | NotApplicable] = {}
        made: dict[tuple[str, int], dict[str, Any]] = {}
        for name, draw, repeat in keys:
            wanted = self.transformations.get(name)
            if (name, draw) not in made:
                for need in sorted((wanted.needs if wanted else frozenset()) - needs.keys()):
                    who = self.providers.get(need)
                    needs[need] = provided(need, who, case, given)
                    if who is not None and is_stored(who, needs[need], case):
                        one = packed_need(need, who, needs[need])
                        stored[need] = {**one.row(), "data": one.content}
                made[name, draw] = self._made(case, given, wanted, draw, needs, place)
            line = {"case": case.id, "follow_up": name, "draw": draw, "repeat": repeat, **made[name, draw]}
            if line["status"] == "ok":  # a deterministic system has no use for a seed
                line["seed"] = (
                    draw_seed(self.plan.seed, case.id, wanted or SOURCE, draw, repeat) if self.stochastic else 0
                )
            lines[name, draw, repeat] = line
        return lines

    def _made(
        self,
        case: Case,
        given: Input,
        wanted: Transformation | None,
        draw: int,
        needs: Mapping[str, Need | NotApplicable],
        place: Path,
    ) -> dict[str, Any]:
        """The follow-up written as a file and what is to be said of it, or why there is none."""
        have = {need: needs[need] for need in wanted.needs} if wanted else {}
        missing = next((value for value in have.values() if isinstance(value, NotApplicable)), None)
        if missing is not None:
            return {"status": "not applicable", "message": str(missing)}
        try:
            followed, change = given, Change.none(given.size)
            if wanted is not None:
                seed = draw_seed(self.plan.seed, case.id, wanted, draw) if wanted.random else 0
                followed, change = wanted(given, needs=have, seed=seed)
        except NotApplicable as error:
            return {"status": "not applicable", "message": str(error)}
        except Exception as error:
            return {"status": "error", "message": f"the transformation failed: {type(error).__name__}: {error}"}
        name = f"{_safe(wanted.id)}-{draw}" if wanted else SOURCE
        ending, content = followed.encoded()
        file = self._written(place / f"{name}.{ending}", content)
        said = {
            "warp": change.warp.matrix,
            "regions": change.regions,
            "added": change.added,
            "removed": change.removed,
            "facts": dict(change.facts),
        }
        if change.mask is not None:
            cells = np.where(change.mask, np.uint8(255), np.uint8(0))
            said["mask"] = self._written(place / f"{name}.mask.png", small_png(cells))
        width, height = change.warp.target
        return {"status": "ok", "file": file, "width": width, "height": height, "change": said}

    def _written(self, path: Path, data: bytes) -> str:
        return place_file(path, data).relative_to(self.folder).as_posix()


def _key(line: Mapping[str, Any]) -> Key:
    return line["follow_up"], line["draw"], line["repeat"]


def case_row(case: Case) -> tuple[Input | None, dict[str, Any], dict[str, Any] | None]:
    """A case's input (None where it cannot be read), its row in a run folder, and the header of its truth."""
    track = case.stored_track
    truth: Any = case.truth
    row: dict[str, Any] = {
        "case": case.id,
        "path": case.path,
        "frame": case.frame,
        "crop": list(case.crop or ()),
        "track": track.json() if track else None,
        "attributes": json.dumps(dict(case.attributes), ensure_ascii=False, default=str),
    }
    if truth is not None:
        row.update({f"truth_{name}": value for name, value in truth.row().items()})
    header = None if truth is None else truth.header()
    try:
        given, digest = read_input(case)
    except Exception as error:
        why = str(error) if isinstance(error, Unreadable) else f"{case.path}: {type(error).__name__}: {error}"
        return None, {**row, "status": "error", "message": why}, header
    return (
        given,
        {
            **row,
            "status": "ok",
            "hash": digest,
            "width": given.size[0],
            "height": given.size[1],
            "properties": given.properties() or None,
        },
        header,
    )


# --- files -----------------------------------------------------------------------------------------


def _safe(name: str) -> str:
    """A file name for any text: on every system, for people to recognise, and never that of another text."""
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", name)[-_LETTERS:].strip("-.")
    return f"{slug}-{xxhash.xxh3_64_hexdigest(name.encode('utf-8', 'surrogatepass'))}".lstrip("-")


def read_mask(path: Path) -> npt.NDArray[np.bool_]:
    """The changed cells as an export keeps them."""
    try:
        return decode_classes(path.read_bytes()) > 0
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}; export again") from None


def _plain(value: Any) -> Any:
    """What JSON can say: arrays as lists, what is not a number as null, bytes in base64."""
    if isinstance(value, bytes):
        return {"base64": b64encode(value).decode("ascii")}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
