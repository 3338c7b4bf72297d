"""Repair: damaged files of a run are set aside, and what stood on them is forgotten, so that it is made again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import polars as pl

from instar.store.marks import set_marks_aside
from instar.store.merge import KEYS
from instar.store.parts import Damaged, Part, fault_of, live_parts, overlap_words, overlapping, rows_in
from instar.store.store import Store
from instar.store.tables import APART

ASIDE = "damaged"
_CONTENTS = {
    "apart": ("contents that predictions share", "the next run makes these predictions again"),
    "cases": ("rows of cases", "the next run reads these inputs again"),
    "needs": ("needs of cases", "the next run provides them again"),
    "predictions": ("predictions", "the next run makes them again"),
}
_RECORDED = "import the same tables again, as they were imported before"


@dataclass(frozen=True, slots=True)
class Repair:
    """A file that was set aside: where it was and where it is, what is wrong with it, what it had."""

    file: str
    aside: str | None
    fault: str
    content: str


def repair(store: Store) -> list[Repair]:
    """Check every stored file of a run from beginning to end, and set aside what is damaged.

    Raises NoRun where the manifest is: nothing else says what the run is.
    """
    with store.lock():
        recorded = store.manifest().recorded is not None
        repairs = []
        for table, (what, remedy) in _CONTENTS.items():
            remedy = _RECORDED if recorded else remedy
            faulty = ((part, _fault(store, table, part)) for part in live_parts(store.place.parts(table)))
            found = chain(faulty, _intruders(store, table))  # which looks at what is left
            repairs += [_part_aside(store, part, why, what, remedy) for part, why in found if why]
        repairs += _blobs(store)
        _forget_unfounded(store)
    return [*repairs, *_verdicts(store), *_marks(store)]


def _fault(store: Store, table: str, part: Part) -> str:
    """What is wrong with a part; of one in a bucket, with what the bucket has."""
    store.place.bring(table, [part])
    schema = store.table_schema(table)
    why = fault_of(part, schema)
    return fault_of(part, schema) if why and store.place.bring_again(table, part) else why


def _part_aside(store: Store, part: Part, why: str, what: str, remedy: str) -> Repair:
    rows = rows_in(part)
    count = "an unknown number of" if rows is None else f"{rows:,}"
    return _aside(store, part.path, why, f"{count} {what}; {remedy}")


def _intruders(store: Store, table: str) -> Iterator[tuple[Part, str]]:
    """Yield parts of the same rows as others, and why. Of each group one stays: the largest that repeats no key of the
    rest of the table. Without such a part all of them go, and the next run makes their rows again."""
    live = live_parts(store.place.parts(table))
    for group in overlapping(live):
        rest = [part for part in live if part not in group]
        group.sort(key=lambda part: -(rows_in(part) or 0))
        kept = next((part for part in group if not _repeats(part, rest, KEYS[table])), None)
        for part in group:
            if part != kept:
                yield part, overlap_words(kept or next(other for other in group if other != part))
        live = [*rest, *([kept] if kept else [])]


def _repeats(part: Part, others: Sequence[Part], key: Sequence[str]) -> bool:
    """Check that a part has a key that others have, too."""
    if not others:
        return False
    keys, theirs = (
        pl.concat([pl.scan_parquet(one.path, glob=False).select(key) for one in some]) for some in ([part], others)
    )
    return bool(keys.join(theirs, on=list(key), how="semi").select(pl.len()).collect().item())


def _aside(store: Store, path: Path, why: str, content: str) -> Repair:
    """Move a file into a folder that nobody reads; one that is gone already is only told of."""
    name = path.relative_to(store.place.path)
    aside = f"{ASIDE}/{'-'.join(name.parts)}"
    if not store.place.set_aside(name.as_posix(), aside):
        return Repair(str(name), None, why, content)
    return Repair(str(name), aside, why, content)


def _blobs(store: Store) -> list[Repair]:
    """Needs whose content is damaged are forgotten with it."""
    needs = store.needs(pl.col("hash").is_not_null())
    repairs: list[Repair] = []
    lost: list[str] = []
    for (name,), rows in needs.group_by("hash", maintain_order=True):
        try:
            store.blob(str(name))
        except Damaged as damage:
            lost.append(str(name))
            names = ", ".join(rows["need"].unique().sort())
            content = f"{names} of {rows.height:,} cases; the next run provides it again"
            repairs.append(_aside(store, damage.path, damage.why, content))
    if lost:
        store.merge("needs", keep=pl.col("hash").is_null() | ~pl.col("hash").is_in(lost))
    return repairs


def _forget_unfounded(store: Store) -> None:
    """Predictions that name contents which are gone."""
    there = store.read("apart", APART, ["hash"])["hash"].implode()
    columns = store.apart(store.manifest().system.kind)
    whole = pl.all_horizontal(pl.col(name).is_null() | pl.col(name).is_in(there) for name in columns)
    store.merge("predictions", keep=whole)


def _verdicts(store: Store) -> list[Repair]:
    """A judging that lost a part is not up to date any more; judging is cheap."""
    repairs: list[Repair] = []
    for judging in store.judgings():
        with store.judging_lock(judging):
            folder = store.inside(store.verdict_table(judging))
            info = store.judging_info(judging)
            if info is None:
                content = f"the options of the judging {judging}; judge by them again"
                repairs.append(_aside(store, folder / "judging.json", "it cannot be read", content))
                continue
            if not info.instar:  # what was wrong with it is known
                continue
            content = f"verdicts of the judging {judging}; it is judged anew when it is next looked at"
            table = store.verdict_table(judging)
            parts = {part.first: part for part in store.place.parts(table)}
            paths = {
                number: parts[number].path if number in parts else folder / f"part {number}"
                for number in range(*info.parts)
            }
            whys = {
                number: _fault(store, table, parts[number]) if number in parts else "it is gone" for number in paths
            }
            faults = [_aside(store, paths[number], why, content) for number, why in whys.items() if why]
            if faults:
                store.write_judging_info(judging, replace(info, predictions=(), cases=(), instar=""))
            repairs += faults
    return repairs


def _marks(store: Store) -> list[Repair]:
    """Nothing can make marks again but the people who made them."""
    file, aside, why = set_marks_aside(store, ASIDE)
    content = "marks of pairs; marks that were exported can be imported again (`instar marks`)"
    return [Repair(file, aside, why, content)] if why else []
