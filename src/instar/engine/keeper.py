"""The keeper of a run: makes tasks of what is missing, and commits what comes back."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import cast

import polars as pl

from instar.case import Case
from instar.datasets import Dataset
from instar.engine.cases import case_row
from instar.engine.messages import CaseTask, InputRead, InputUnreadable, NeedProvided, Rows
from instar.engine.needs import lost_needs, with_source
from instar.engine.order import Order
from instar.engine.plan import SOURCE, Choice, Key, Plan, bound_rules, committed, make_plan
from instar.engine.progress import Outcome, Progress, outcome_of
from instar.files import storable
from instar.outputs import Output, output_kind
from instar.relations import named_rule
from instar.store import APART, KEY, Header, Manifest, Row, Shard, Store, rows_frame
from instar.transforms import NotApplicable

COMMIT_SECONDS = 5.0
COMMIT_ROWS = 1000


def _written_since(case: Case, began: float) -> bool:
    """Whether the file that a case lies in was written later than a time; of what is no file this is not known."""
    with suppress(OSError, ValueError):
        return Path(case.path or "").stat().st_mtime > began
    return False


def shared_cases(dataset: Dataset, limit: int | None, shard: Shard | None) -> Iterator[Case]:
    """The cases of a dataset that fall to a shard, of the first ones up to a limit: all shards together have those that
    a run without shards has."""
    cases = islice(dataset.cases(), limit)
    return cases if shard is None else (case for case in cases if shard.holds(case.id))


class Keeper:
    """What is kept of a run under way. A sink for what workers send."""

    def __init__(
        self,
        store: Store,
        manifest: Manifest,
        plan: Plan,
        dataset: Dataset,
        limit: int | None,
        on_progress: Callable[[Progress], None] | None,
        choices: Iterable[Choice] = (),
    ) -> None:
        self.store, self.manifest, self.plan, self.dataset, self.limit = store, manifest, plan, dataset, limit
        self.kind = manifest.system.kind
        self.committed = committed(store, plan)
        self.on_progress = on_progress or (lambda progress: None)
        self.choices = list(choices)
        """What chooses the next rounds: the first one until it chooses nothing more, then the next one."""
        self.chosen: Mapping[str, Collection[str | Key]] | None = None
        """The follow-ups that cases are asked about in this round; None where it is all of every case."""
        self.state: object = None
        """What the store held when this round began."""
        self.progress = Progress()
        self.case_rows: list[Row] = []
        self.rows: list[Rows] = []
        self.uncommitted = 0
        self.headers: set[str] = set()
        self.apart: dict[str, bytes] = {}
        self.stored = set(store.read("apart", APART, ["hash"])["hash"])
        self.provided: dict[str, set[str]] = {}
        for case, need in store.needs().select("case", "need").iter_rows():
            self.provided.setdefault(case, set()).add(need)
        self.oldest: float | None = None
        self.sources: dict[str, Row] = {}
        self.notes: list[str] = list(dataset.notes)
        self.exchanged: list[str] = []
        """Cases whose input is another one than that of before."""
        self.started = time.monotonic()
        self.began = datetime.fromisoformat(manifest.created).timestamp()
        """When the run began, maybe long ago."""
        self._know_plan()

    def _know_plan(self) -> None:
        """What follows from the plan, which grows where a choice lets rules join the run."""
        needs = self.plan.needs
        self.order = Order(self.plan, self.kind)
        self.users = {need: self._users(need) for need in (needs & self.manifest.providers.keys()) - {"pool"}}
        self._source_needed = "source" in with_source(needs, None, self.kind)

    # -- tasks

    def cases(self) -> Iterator[Case]:
        return shared_cases(self.dataset, self.limit, self.manifest.shard)

    def again(self) -> Iterator[CaseTask] | None:
        """The tasks of the next round: what a choice of the run is, now that those of the last one are done."""
        self.commit()
        cases = list(dict.fromkeys(case.id for case in self.cases()))
        while self.choices:
            while chosen := self._of_follow_ups(self.choices[0](cases)):
                state = self.store.state("predictions"), self.store.state("cases")
                if (state, chosen) == (self.state, self.chosen):
                    break  # what is missing does not come: inputs that are not those of before
                self.state, self.chosen = state, chosen
                self.committed = committed(self.store, self.plan)
                if any(map(self._missing, chosen)):
                    return self.tasks()
            del self.choices[0]
        return None

    def _of_follow_ups(self, chosen: Mapping[str, Collection[str | Key]]) -> Mapping[str, Collection[str | Key]]:
        """What is chosen, by the ids of follow-ups. Rules among it that the run does not have yet join it."""
        names = {name for wanted in chosen.values() for name in wanted if isinstance(name, str)}
        rules = {name: named_rule(name) for name in sorted(names) if " => " in name}
        joining = [one.id for one in bound_rules(rules.values(), self.kind) if one.id not in self.manifest.rules]
        if joining:
            self.manifest = replace(self.manifest, rules=(*self.manifest.rules, *joining))
            self.store.write_manifest(self.manifest)
            known = bound_rules([*self.plan.rules, *rules.values()], self.kind)
            system = self.manifest.system
            self.plan = make_plan(known, seed=self.manifest.seed, deterministic=system.deterministic)
            self._know_plan()
        ids = {name: one.transformations[0].id for name, one in rules.items()}
        return {
            case: [ids.get(one, one) if isinstance(one, str) else one for one in wanted]
            for case, wanted in chosen.items()
        }

    def _missing(self, case: str) -> tuple[Key, ...]:
        """The keys that a case is still to be asked about; the source goes with every follow-up."""
        missing = self.committed.missing(case)
        if self.chosen is None:
            return missing
        wanted = self.chosen.get(case, ())
        planned = [key for key in missing if wanted and (key[0] in wanted or key[0] == SOURCE)]
        return *planned, *(key for key in wanted if not isinstance(key, str))

    def tasks(self) -> Iterator[CaseTask]:
        progress = self.progress
        progress.cases = progress.done = progress.rows = 0
        counted: set[str] = set()
        for case in self.cases():
            if case.id not in counted:
                counted.add(case.id)
                progress.cases += 1
                progress.done += len(self.committed.keys) - len(self.committed.missing(case.id))
                progress.rows += len(self._missing(case.id))
        progress.rows += progress.done
        if not progress.cases and self.manifest.shard is not None:
            self._note(f"no case of {self.dataset.name} falls to {self.manifest.shard.words}")
        if self.chosen is None:
            self._note_absent(counted)
        self._plan(progress.rows - progress.done)
        self.on_progress(progress)
        handed_out: set[str] = set()
        for case in self.cases():
            keys, lost = self._missing(case.id), self._lost(case)
            if not keys and (self.chosen is not None or (not lost and self._complete(case))):
                continue
            if case.id in handed_out:
                self._note(f"{case.id} is the id of two cases of the dataset; the first one counts")
                continue
            handed_out.add(case.id)
            progress.began = progress.began or time.monotonic()
            task = CaseTask(case, self.order.of(case.id, keys), self.manifest.seed, lost=lost)
            begun = case.id in self.committed.partial or case.id in self.committed.complete
            yield self.resumed(task) if begun or case.id in self.provided else task

    def _complete(self, case: Case) -> bool:
        """Whether a case that lacks no prediction need not be read: its input was read before, and nobody has written
        it since, or it could not be read."""
        if case.id not in self.committed.hashes:
            return self.committed.knows(case.id)
        return case.input is None and not _written_since(case, self.began)

    def _note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)

    def _note_absent(self, cases: set[str]) -> None:
        """Cases that were begun and are not in the dataset: what they lack would be missed by nobody."""
        absent = sorted(case for case in self.committed.hashes.keys() - cases if self.committed.missing(case))
        if absent and self.limit is None:
            names = ", ".join(absent[:3]) + ", …" * (len(absent) > 3)
            who = f"{names} lacks" if len(absent) == 1 else f"{len(absent):,} cases of this run ({names}) lack"
            verb = "is" if len(absent) == 1 else "are"
            self.notes.append(
                f"{who} predictions and {verb} not in {self.dataset.name}; stored rows stay, nothing was added"
            )

    def _plan(self, missing: int) -> None:
        """Write down how many predictions there will be, for whoever looks at the folder meanwhile."""
        rows = self.store.predictions(["status"], query=lambda table: table.select(pl.len())).item()
        unreadable = int((self.store.cases(["status"])["status"] != "ok").sum())
        planned = rows + unreadable * len(self.committed.keys) + missing
        if planned != self.manifest.planned:
            self.manifest = replace(self.manifest, planned=planned)
            self.store.write_manifest(self.manifest)

    def _users(self, need: str) -> frozenset[str]:
        """The cases of which a stored answer is to a follow-up that was made with a need."""
        names = [one.transformation.id for one in self.plan.follow_ups if need in one.transformation.needs]
        users = pl.col("follow_up").is_in(names) & (pl.col("status") == "ok")
        return frozenset(self.store.predictions(["case", "follow_up", "status"], where=users)["case"].unique())

    def _lost(self, case: Case) -> frozenset[str]:
        """Needs that follow-ups of the case were made with, and that the run folder does not hold any more."""
        known = self.provided.get(case.id, ())
        absent = frozenset(need for need, users in self.users.items() if case.id in users and need not in known)
        return lost_needs(absent, case)

    def resumed(self, task: CaseTask) -> CaseTask:
        """The task with what is known by now of its needs and its source output."""
        needs = dict(task.needs)
        for row in self.store.needs(pl.col("case") == task.case.id).iter_rows(named=True):
            needs[row["need"]] = self.store.need_value(row) if row["status"] == "ok" else NotApplicable(row["message"])
        source = None
        if self._source_needed and (SOURCE, 0, 0) not in task.keys:
            source = self._uncommitted_source(task.case.id) or self._stored_source(task.case.id)
        return replace(task, needs=needs, source=source)

    def _uncommitted_source(self, case: str) -> Output | None:
        row = self.sources.get(case)
        if row is None:
            return None
        whole = self.store.whole(rows_frame([row], self.store.prediction_schema(self.kind))).row(0, named=True)
        fresh = {name: self.apart[row[name]] for name in self.store.apart(self.kind) if row.get(name) in self.apart}
        return output_kind(self.kind).from_row({**whole, **fresh}, self.manifest.header)

    def _stored_source(self, case: str) -> Output | None:
        rows = self.store.predictions(
            where=(pl.col("case") == case)
            & (pl.col("follow_up") == SOURCE)
            & (pl.col("repeat") == 0)
            & (pl.col("status") == "ok")
        )
        row = next(self.store.whole(rows).iter_rows(named=True), None)
        return output_kind(self.kind).from_row(row, self.manifest.header) if row else None

    # -- what workers say

    def on_input(self, task: CaseTask, message: InputRead) -> bool:
        case = task.case
        known = self.committed.hashes.get(case.id)
        if known is not None:
            if known == message.hash:
                return True
            if case.id not in self.exchanged:
                self.exchanged.append(case.id)
            self._advance(len(task.keys))
            return False
        self.committed.hashes[case.id] = message.hash
        self.case_rows.append({**self._case_row(case), **message.row()})
        return True

    def _case_row(self, case: Case) -> Row:
        """The first case that has a truth says of what kind that of all cases is."""
        if case.truth is not None and self.manifest.truth is None:
            self.manifest = replace(self.manifest, truth=cast(Output, case.truth).header())
            self.store.write_manifest(self.manifest)
        return case_row(case, self.manifest.truth_kind)

    def on_unreadable(self, task: CaseTask, message: InputUnreadable) -> None:
        if task.case.id in self.committed.hashes:
            self._note(
                f"{task.case.id} was read before and cannot be read any more ({message.reason}); "
                "its stored rows stay, nothing was added"
            )
            self._advance(len(task.keys))
            return
        self.case_rows.append({**self._case_row(task.case), **message.row()})
        self.oldest = self.oldest or time.monotonic()
        self.progress.statuses["unreadable"] += 1
        self._advance(len(task.keys))

    def on_need(self, task: CaseTask, message: NeedProvided) -> None:
        """Stored at once, and once: the worker goes on when it is."""
        known = self.provided.setdefault(task.case.id, set())
        if message.need in known:
            return
        if message.hash is not None:
            self.store.put_blob(message.hash, message.content)
        self.store.append_needs([{**message.row(), "case": task.case.id}])
        known.add(message.need)

    def on_rows(self, message: Rows) -> None:
        self.apart.update({name: content for name, content in message.contents.items() if name not in self.stored})
        for name, sent in message.headers.items():
            header = _storable(sent)
            if self.manifest.output is None:
                self.manifest = replace(self.manifest, output=header)
                self.store.write_manifest(self.manifest)
            if header == self.manifest.output:
                self.headers.add(name)
        rows = self._comparable(message)
        if self._source_needed:
            self._remember_source(rows)
        self.rows.append(rows)
        self.uncommitted += len(rows)
        self.oldest = self.oldest or time.monotonic()
        self.progress.statuses.update(rows.columns["status"])
        self.progress.arrived(len(rows))
        if self.manifest.system.deterministic:
            self.progress.again += sum(repeat > 0 for _, _, repeat in rows.keys)
        self._advance(len(rows))

    def _comparable(self, rows: Rows) -> Rows:
        """The rows; an answer that has another header than the run's is an error."""
        statuses = rows.columns["status"]
        headers = rows.columns.get("header", [None] * len(rows))
        other = [place for place, name in enumerate(headers) if name not in self.headers and statuses[place] == "ok"]
        if not other:
            return rows
        message = f"what all answers have in common differs from the run's first answer ({self.kind})"
        single = [rows.row(place) for place in range(len(rows))]
        for place in other:
            single[place] = {**{name: single[place][name] for name in KEY}, "status": "error", "message": message}
        return Rows.of(single)

    def _remember_source(self, rows: Rows) -> None:
        """Until it is committed, the source output is only here; a replaced worker may need it."""
        for place, (name, _, repeat) in enumerate(rows.keys):
            if name == SOURCE and repeat == 0 and rows.columns["status"][place] == "ok":
                row = rows.row(place)
                self.sources[row["case"]] = row

    def _advance(self, count: int) -> None:
        self.progress.done += count
        self.on_progress(self.progress)

    def tick(self) -> None:
        if self.uncommitted >= COMMIT_ROWS or (self.oldest and time.monotonic() - self.oldest >= COMMIT_SECONDS):
            self.commit()
        self.on_progress(self.progress)

    def commit(self) -> None:
        """Cases and what is kept apart first: all that a prediction names is there."""
        cases, self.case_rows = self.case_rows, []
        rows, self.rows, self.uncommitted = self.rows, [], 0
        self.oldest = None
        self.sources.clear()
        if cases:
            self.store.append_cases(cases, self.manifest.truth_kind)
        if self.apart:
            self.store.append_apart(self.apart)
            self.stored.update(self.apart)
            self.apart = {}
        if rows:
            self.store.append_predictions(Rows.joined(rows), self.kind)

    def outcome(self, interrupted: bool) -> Outcome:
        if not interrupted:
            self._plan(0)  # what is still missing does not come: inputs that are not those of before
            there = None if self.manifest.until is None else committed(self.store, self.plan)
            if there is not None and not any(there.missing(case.id) for case in self.cases()):
                self.manifest = replace(self.manifest, until=None, looked=True)  # nothing is left out by answers
                self.store.write_manifest(self.manifest)
        notes = [*_exchanged_words(self.exchanged), *self.notes]
        fresh, again = self.progress.fresh - self.progress.again, self.progress.again
        return replace(outcome_of(self.store, fresh, self.started, notes, interrupted=interrupted), again=again)


def _exchanged_words(cases: Sequence[str]) -> Iterator[str]:
    if len(cases) == 1:
        yield (
            f"{cases[0]} is not the input that this run knows by that id (its content changed); its stored rows stay, "
            "nothing was added"
        )
    elif cases:
        names = ", ".join(cases[:3]) + ", …" * (len(cases) > 3)
        yield (
            f"{len(cases):,} cases are not the inputs that this run knows by their ids (their contents changed): "
            f"{names}; their stored rows stay, nothing was added"
        )


def _storable(header: Header) -> Header:
    """A header as it comes back from the manifest: those of a run that goes on are compared with it."""
    text = json.dumps(header, ensure_ascii=False)
    plain = storable(text)
    return header if plain == text else json.loads(plain)
