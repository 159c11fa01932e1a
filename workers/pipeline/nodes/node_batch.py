"""One node's turn in one batch: from what it got to what it hands to the sink.

The order is fixed: state that came, then forwarded and new records as far as the node's capacity
goes, then the windows that the node merges, then state that leaves, with all of this in it.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import redis

from controlplane.wire import measures
from controlplane.wire.aggregates.state_schema import Form
from controlplane.wire.attempts import FAILURES
from controlplane.wire.routing import NOBODY
from controlplane.wire.routing.state_transfer import MERGE, Transfer
from workers.pipeline.engine import final_aggregation
from workers.pipeline.engine.advance import advanced
from workers.pipeline.engine.assignment.tasks import Task, Tasks
from workers.pipeline.engine.changes import Changed
from workers.pipeline.engine.failures.fault import Fault, Faults, keep_faults, read_faults, reported
from workers.pipeline.engine.failures.isolation import EXPORT, IMPORT, attempted, no_sample
from workers.pipeline.engine.storage import state_transfer
from workers.pipeline.engine.storage.idle_streams import Appended, Clock
from workers.pipeline.engine.storage.watermarks import marks_of
from workers.pipeline.engine.storage.widening import Widening, widening_of
from workers.pipeline.engine.store import Store
from workers.pipeline.exchange import task_states
from workers.pipeline.exchange.envelope import Envelope, appended_of, newest_of, records_of
from workers.pipeline.exchange.messages import Input
from workers.pipeline.exchange.node_report import NodeReport, arrivals_of
from workers.pipeline.exchange.output import Output, size_of
from workers.pipeline.nodes import aggregator
from workers.pipeline.nodes.backlog import WAITING, Waiting, Work
from workers.pipeline.nodes.quarantine import quarantined
from workers.pipeline.routing.compiled_table import CompiledTable, TableCache
from workers.pipeline.spark.executor import executor

# What the first batch of a checkpoint may take at an emulated capacity: so many ms of it.
_FIRST_MS: Final = 1_000


@dataclass
class Turn:
    """What a node has at hand in a batch."""

    client: "redis.Redis"
    cluster: str
    tables: TableCache
    store: Store
    input: Input
    # Queries that must not be evaluated, with the reason.
    excluded: Mapping[int, Fault] = field(default_factory=dict)
    waiting: Waiting = field(init=False)
    table: CompiledTable = field(init=False)
    tasks: Tasks = field(init=False)
    faults: Faults = field(init=False)
    # What the columns of streams have become since the batch before.
    widening: Widening | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        head = self.input.head
        self.waiting = Waiting(self.store)
        self.table = self.tables.of_batch(head.leaving, head.version)
        self.tasks = self.table.tasks_of_node(self.input.node)
        runs = {query: route.run for query, route in self.table.table.queries.items()}
        self.faults = read_faults(self.store, runs)
        broken = self.table.broken_of_node(self.input.node)
        self.note({query: Fault(why, "compile") for query, why in broken.items()})
        self.note(self.excluded)

    def run(self) -> Output:
        """Take the batch, and return what the sink has to write."""
        if self.input.head.attempt > FAILURES:
            self.note(quarantined(self))
        started, cpu = time.perf_counter(), time.thread_time_ns()
        marks = marks_of(self.store)
        clock = Clock.read(self.store, Appended(idle_ms=self.table.idle_ms))
        retired = self._widen()
        came = self._take_in()
        works, taken = self._works()
        changed = self._advance(works)
        merged = aggregator.merged(self, marks, clock)
        left = self._hand_on()
        self.waiting.save()
        keep_faults(self.store, self.faults)
        busy_ms = (time.perf_counter() - started) * 1000
        spent = Spent(busy_ms, (time.thread_time_ns() - cpu) / 1e6, taken)
        return Output(
            results=[*retired, *changed.windows],
            blocks=changed.blocks,
            merged=merged,
            states=left,
            measures=measures_of(changed, self.input.head.elapsed_ms),
            report=replace(
                self._report(changed, left, came, works, spent),
                emitted=size_of(changed.windows)
                + size_of(merged)
                + _bytes_of(left)
                + sum(size_of(one.tables) for one in changed.blocks),
            ),
        )

    def note(self, faults: Mapping[int, Fault]) -> None:
        """Remember that these queries have failed on this node, and why."""
        queries = self.table.table.queries
        self.faults |= {
            query: (queries[query].run, fault)
            for query, fault in faults.items()
            if query in queries and query not in self.faults
        }

    def _widen(self) -> list[tuple[str, Form, Any]]:
        """Bring the state of queries into other forms if columns of their streams are wider now.

        Return what takes away the windows that were given out under keys of another kind.
        """
        merges = self.table.merges_of_node(self.input.node)
        self.widening = widening_of(self.store, self.table.kinds, self.tasks, merges)
        if self.widening is None:
            return []
        faults: dict[int, Fault] = {}
        retired = self.widening.migrate(self.store, self.tasks, faults)
        self.note(faults)
        return retired

    def _take_in(self) -> list[Transfer]:
        """Put in the state of tasks that came; it was handed on in the batch before."""
        head = self.input.head
        if head.arriving is None:
            return []
        moved = self.tables.transfers(head.arriving, head.version)
        mine = [one for one in moved if one.target == self.input.node]
        states = task_states.read(self.client, self.cluster, head.batch - 1, mine)
        rows: dict[Task, dict[str, bytes]] = {}
        faults: dict[int, Fault] = {}
        for (query, task), forms in reversed(states.items()):
            if query in self.faults:
                continue
            if task == MERGE:
                final_aggregation.put_in(self.store, query, forms)
                continue
            pieces = [data for name, data in forms.items() if name.startswith(WAITING)]
            run = self.table.table.queries[query].run
            attempted(IMPORT, [query], partial(self.waiting.forwarded, pieces, (query, task), run),
                      faults, no_sample)  # fmt: skip
            rows[query, task] = {n: data for n, data in forms.items() if not n.startswith(WAITING)}
        state_transfer.put_in(self.store, self.tasks, rows, faults)
        self.note(faults)
        return mine

    def _works(self) -> tuple[list[Work], int]:
        """Return what there is to do now, and how many records the capacity has let through."""
        per_s = self.table.table.capacities.get(self.input.node)
        envelopes = self.input.envelopes
        if per_s is None and not self.waiting:
            return [Work(envelopes, None)], sum(one.records.num_rows for one in envelopes)
        since = self._at_work_ms()
        self.waiting.come(envelopes, self.tasks.owned())
        works = self.waiting.take(None if per_s is None else self.waiting.budget(per_s, since))
        return works, sum(e.records.num_rows for work in works for e in work.envelopes)

    def _at_work_ms(self) -> float:
        """Return how long there has been something to do since the batch before."""
        head = self.input.head
        elapsed = _FIRST_MS if head.elapsed_ms is None else head.elapsed_ms
        if self.waiting:
            return elapsed
        came = [ms for envelope in self.input.envelopes for ms in envelope.appended_ms]
        return min(elapsed, max(0, head.clock_ms - min(came, default=head.clock_ms)))

    def _advance(self, works: Sequence[Work]) -> Changed:
        """Take the work into the state; windows are closed once no older records are to come."""
        found, older = Changed(), self.waiting.has_older
        # A batch without work is a turn, too: closed windows leave.
        every = list(works) or [Work([], None)]
        for at, work in enumerate(every, start=1):
            tasks = self.tasks.without(self.faults)
            takers = tasks if work.owned is None else tasks.within(work.owned)
            newest = newest_of(work.envelopes)
            part = advanced(
                self.store, tasks, records_of(work.envelopes), newest,
                self.input.head.batch, takers, closes=at == len(every) and not older,
                republish=at == 1 and (self.input.head.republish or self.widening is not None),
                appended=appended_of(work.envelopes, self.table.idle_ms),
                apart=self._merged_elsewhere,
            )  # fmt: skip
            found.take(part)
            self.note(part.faults)
        return found

    @cached_property
    def _merged_elsewhere(self) -> list[int]:
        """Return the node's queries whose windows a merge node puts together."""
        queries = self.table.table.queries
        return [query for query in self.tasks.members if queries[query].merge != NOBODY]

    def _hand_on(self) -> dict[Task, dict[str, bytes]]:
        """Take out the state of tasks that leave, and what waits for them."""
        head = self.input.head
        if head.leaving is None:
            return {}
        moved = self.tables.transfers(head.leaving, head.version)
        mine = [(one.query, one.task) for one in moved if one.source == self.input.node]
        if not mine:
            return {}
        faults: dict[int, Fault] = {}
        found = state_transfer.taken_out(
            self.store, [one for one in mine if one[1] != MERGE], faults
        )
        for task in mine:
            if task[1] == MERGE:
                found[task] = final_aggregation.taken_out(self.store, task[0])
                continue
            streams = self.table.table.queries[task[0]].streams
            leave = partial(self.waiting.leave, task, streams)
            for pieces in attempted(EXPORT, [task[0]], leave, faults, no_sample):
                found[task] |= {f"{WAITING}{at}": data for at, data in enumerate(pieces)}
        self.note(faults)
        return found

    def _report(
        self,
        changed: Changed,
        left: Mapping[Task, Mapping[str, bytes]],
        came: Sequence[Transfer],
        works: Sequence[Work],
        spent: "Spent",
    ) -> NodeReport:
        head, queries = self.input.head, self.table.table.queries
        worked = [envelope for work in works for envelope in work.envelopes]
        return NodeReport(
            node=self.input.node,
            batch=head.batch,
            version=head.version,
            records=sum(one.records.num_rows for one in self.input.envelopes),
            bytes=self.input.bytes,
            busy_ms=round(spent.busy_ms, 2),
            tasks=len(self.tasks.members),
            state_bytes=changed.state_bytes,
            late=changed.late,
            event_ms=max(newest_of(worked).values(), default=None),
            arrivals=arrivals_of(worked),
            sources=[one.source for one in self.input.envelopes if one.source],
            # What has only moved away is still in the table.
            ended=[query for query in sorted(changed.ended) if query not in queries],
            split=self.tasks.split,
            merged=self._merged_elsewhere,
            moves=_moves(left),
            came=[[one.query, one.task] for one in came],
            executor=executor(),
            taken=spent.taken,
            waiting=self.waiting.records,
            capacity=self.table.table.capacities.get(self.input.node),
            cpu_ms=round(spent.cpu_ms, 2),
            state_us=changed.state_us,
            elapsed_ms=head.elapsed_ms,
            dropped=[[*arc, lost] for arc, lost in changed.dropped.items() if lost],
            faults=reported(self.faults),
        )


@dataclass(frozen=True, slots=True)
class Spent:
    """Time at work in all and of the processor (ms), and the records that were taken."""

    busy_ms: float
    cpu_ms: float
    taken: int


def measures_of(changed: Changed, elapsed_ms: int | None) -> bytes:
    """Return what was measured of tasks and operators, as the wire has it."""
    rows = np.concatenate([np.zeros((0, 4), np.int64), *changed.tasks])
    order = np.lexsort((rows[:, 1], rows[:, 0]))
    rows = rows[order]
    edges = np.flatnonzero(np.any(np.diff(rows[:, :2], axis=0, prepend=-1), axis=1))
    found = np.concatenate([rows[edges, :2], np.add.reduceat(rows[:, 2:], edges)], axis=1) if len(
        rows) else rows  # fmt: skip
    operators = np.array([astuple(one) for one in changed.operators], np.int64).reshape(-1, 6)
    return measures.packed(elapsed_ms or 0, found, operators)


def _bytes_of(left: Mapping[Task, Mapping[str, bytes]]) -> int:
    return sum(len(data) for forms in left.values() for data in forms.values())


def _moves(left: Mapping[Task, Mapping[str, bytes]]) -> list[list[int]]:
    """Return query, task, bytes of state, and records that waited, of each task that left."""
    found = []
    for (query, task), forms in left.items():
        waited = [Envelope.decode(data).records.num_rows for name, data in forms.items()
                  if name.startswith(WAITING)]  # fmt: skip
        state = sum(len(data) for name, data in forms.items() if not name.startswith(WAITING))
        found.append([query, task, state, sum(waited)])
    return found
