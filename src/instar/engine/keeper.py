"""The keeper of a run: makes tasks of what is missing, and commits what comes back."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import cast

import polars as pl

from instar.case import Case
from instar.datasets import Dataset
from instar.engine.cases import case_row
from instar.engine.messages import CaseTask, InputRead, InputUnreadable, NeedProvided, Rows
from instar.engine.needs import lost_needs, with_source
from instar.engine.order import Order
from instar.engine.plan import SOURCE, Plan, committed
from instar.engine.progress import Outcome, Progress, outcome_of
from instar.files import storable
from instar.outputs import Output, output_kind
from instar.store import APART, KEY, Header, Manifest, Row, Store, rows_frame
from instar.transforms import NotApplicable

COMMIT_SECONDS = 5.0
COMMIT_ROWS = 1000


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
    ) -> None:
        self.store, self.manifest, self.plan, self.dataset, self.limit = store, manifest, plan, dataset, limit
        self.kind = manifest.system.kind
        self.committed = committed(store, plan)
        self.order = Order(plan, self.kind)
        self.on_progress = on_progress or (lambda progress: None)
        self.progress = Progress()
        self.case_rows: list[Row] = []
        self.rows: list[Row] = []
        self.headers: set[str] = set()
        self.apart: dict[str, bytes] = {}
        self.stored = set(store.read("apart", APART, ["hash"])["hash"])
        self.provided: dict[str, set[str]] = {}
        for case, need in store.needs().select("case", "need").iter_rows():
            self.provided.setdefault(case, set()).add(need)
        self.users = {need: self._users(need) for need in (plan.needs & manifest.providers.keys()) - {"pool"}}
        self.oldest: float | None = None
        self.sources: dict[str, Row] = {}
        self.notes: list[str] = list(dataset.notes)
        self.started = time.monotonic()
        self._source_needed = "source" in with_source(plan.needs, None, self.kind)

    # -- tasks

    def cases(self) -> Iterator[Case]:
        return islice(self.dataset.cases(), self.limit)

    def tasks(self) -> Iterator[CaseTask]:
        progress = self.progress
        counted: set[str] = set()
        for case in self.cases():
            if case.id not in counted:
                counted.add(case.id)
                progress.cases += 1
                progress.done += len(self.committed.keys) - len(self.committed.missing(case.id))
        progress.rows = progress.cases * len(self.committed.keys)
        self._plan(progress.rows - progress.done)
        self.on_progress(progress)
        handed_out: set[str] = set()
        for case in self.cases():
            keys, lost = self.committed.missing(case.id), self._lost(case)
            if not keys and not lost and self.committed.knows(case.id):
                continue
            if case.id in handed_out:
                self.notes.append(f"{case.id} is the id of two cases of the dataset; the first one counts")
                continue
            handed_out.add(case.id)
            progress.began = progress.began or time.monotonic()
            task = CaseTask(case, self.order.of(case.id, keys), self.manifest.seed, lost=lost)
            yield self.resumed(task) if case.id in self.committed.partial or case.id in self.provided else task

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
            self.notes.append(
                f"{case.id} is not the input that this run knows by that id (its content changed); "
                "its stored rows stay, nothing was added"
            )
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
            self.notes.append(
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

    def on_rows(self, task: CaseTask, message: Rows) -> None:
        self.apart.update({name: content for name, content in message.contents.items() if name not in self.stored})
        for name, sent in message.headers.items():
            header = _storable(sent)
            if self.manifest.output is None:
                self.manifest = replace(self.manifest, output=header)
                self.store.write_manifest(self.manifest)
            if header == self.manifest.output:
                self.headers.add(name)
        rows = [
            row
            if row.get("header") in self.headers or row["status"] != "ok"
            else {
                **{k: row[k] for k in KEY},
                "status": "error",
                "message": f"what all answers have in common differs from the run's first answer ({self.kind})",
            }
            for row in message.rows
        ]
        if self._source_needed:
            self._remember_source(rows)
        self.rows += rows
        self.oldest = self.oldest or time.monotonic()
        self.progress.statuses.update(row["status"] for row in rows)
        self.progress.fresh += len(rows)
        self._advance(len(rows))

    def _remember_source(self, rows: list[Row]) -> None:
        """Until it is committed, the source output is only here; a replaced worker may need it."""
        for row in rows:
            if row["follow_up"] == SOURCE and row["repeat"] == 0 and row["status"] == "ok":
                self.sources[row["case"]] = row

    def _advance(self, count: int) -> None:
        self.progress.done += count
        self.on_progress(self.progress)

    def tick(self) -> None:
        if len(self.rows) >= COMMIT_ROWS or (self.oldest and time.monotonic() - self.oldest >= COMMIT_SECONDS):
            self.commit()
        self.on_progress(self.progress)

    def commit(self) -> None:
        """Cases and what is kept apart first: all that a prediction names is there."""
        cases, self.case_rows = self.case_rows, []
        rows, self.rows = self.rows, []
        self.oldest = None
        self.sources.clear()
        if cases:
            self.store.append_cases(cases, self.manifest.truth_kind)
        if self.apart:
            self.store.append_apart(self.apart)
            self.stored.update(self.apart)
            self.apart = {}
        if rows:
            self.store.append_predictions(rows, self.kind)

    def outcome(self, interrupted: bool) -> Outcome:
        if not interrupted:
            self._plan(0)  # what is still missing does not come: inputs that are not those of before
        return outcome_of(self.store, self.progress.fresh, self.started, self.notes, interrupted=interrupted)


def _storable(header: Header) -> Header:
    """A header as it comes back from the manifest: those of a run that goes on are compared with it."""
    text = json.dumps(header, ensure_ascii=False)
    plain = storable(text)
    return header if plain == text else json.loads(plain)
