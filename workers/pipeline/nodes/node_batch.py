"""One node in one batch: from its input to its output for the sink.

The order is fixed: state that came, then forwarded and new records as far as the node's capacity
goes, then the windows that the node merges, then state that leaves, with all of this in it.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import redis

from controlplane.wire import measures
from controlplane.wire.aggregates.state_schema import StateSchema
from controlplane.wire.attempts import FAILURES
from controlplane.wire.node_faults import LOST
from controlplane.wire.routing.route import NO_AGGREGATOR
from controlplane.wire.routing.state_transfer import TaskTransfer
from workers.pipeline.engine import final_aggregation
from workers.pipeline.engine.advance import advance_state
from workers.pipeline.engine.assignment.tasks import Task, Tasks
from workers.pipeline.engine.failures.fault import (
    FaultReason,
    Faults,
    fault_rows,
    read_faults,
    write_faults,
)
from workers.pipeline.engine.partial_aggregation import BatchChanges
from workers.pipeline.engine.storage import state_transfer
from workers.pipeline.engine.storage.idle_streams import LogTimes, StreamClock
from workers.pipeline.engine.storage.watermarks import read_watermarks
from workers.pipeline.engine.storage.widening import Widening, detect_widening
from workers.pipeline.engine.store import Store
from workers.pipeline.exchange import task_states
from workers.pipeline.exchange.envelope import NodeInput, log_times_of, newest_of, records_of
from workers.pipeline.exchange.output import NodeMeasures, NodeOutput, arrivals_of, size_of
from workers.pipeline.nodes.aggregator import Aggregator
from workers.pipeline.nodes.backlog import (
    BACKLOG,
    ArrivingTask,
    NodeBacklog,
    WorkItem,
    records_exported,
)
from workers.pipeline.nodes.quarantine import find_quarantined
from workers.pipeline.routing.compiled_table import CompiledTable
from workers.pipeline.routing.table_cache import TableCache
from workers.pipeline.shedding.drops import LadderDrops
from workers.pipeline.spark.connections import executor

# What the first batch of a checkpoint may take at an emulated capacity: so many ms of it.
_FIRST_MS: Final = 1_000
# The longest delay of a slow node in one batch: Spark must still report progress.
_LONGEST_DELAY_S: Final = 8.0


@dataclass
class NodeBatch:
    """The inputs and the state of a node in one batch."""

    client: "redis.Redis"
    cluster: str
    tables: TableCache
    store: Store
    input: NodeInput
    # Queries that must not be evaluated, with the reason.
    excluded: Mapping[int, FaultReason] = field(default_factory=dict)
    backlog: NodeBacklog = field(init=False)
    table: CompiledTable = field(init=False)
    tasks: Tasks = field(init=False)
    faults: Faults = field(init=False)
    # The drop rules of the ladder in this batch, with the kept part of each edge.
    drops: LadderDrops = field(init=False)
    # What the columns of streams have become since the batch before.
    widening: Widening | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        header = self.input.header
        self.backlog = NodeBacklog(self.store)
        self.table = self.tables.of_batch(header.export_version, header.version)
        self.drops = LadderDrops.of(header.ladder, self.table.ladder)
        self.tasks = self.drops.tasks(self.table.tasks_of_node(self.input.node))
        incarnations = {
            query: route.incarnation for query, route in self.table.table.queries.items()
        }
        self.faults = read_faults(self.store, incarnations)
        broken = self.table.invalid_queries_of_node(self.input.node)
        self.add_faults({query: FaultReason(why, "compile") for query, why in broken.items()})
        self.add_faults(self.excluded)

    def run(self) -> NodeOutput:
        """Evaluate the batch and return the output for the sink."""
        if self.input.header.attempt > FAILURES:
            self.add_faults(self._find_quarantined())
        started, cpu = time.perf_counter(), time.thread_time_ns()
        watermarks = read_watermarks(self.store)
        clock = StreamClock.read(self.store, LogTimes(idle_ms=self._idle_ms()))
        retired = self._widen()
        imported = self._import_states()
        items, taken = self._work_items()
        changed = self._evaluate(items)
        self._delay(taken)
        merged = self._aggregator.merge(self.faults, self.widening, watermarks, clock)
        self.add_faults(merged.faults)
        exported = self._export_states()
        self.backlog.save()
        write_faults(self.store, self.faults)
        busy_ms = round((time.perf_counter() - started) * 1000, 2)
        cpu_ms = round((time.thread_time_ns() - cpu) / 1e6, 2)
        return NodeOutput(
            results=[*retired, *changed.windows],
            blocks=changed.blocks,
            merged=merged.windows,
            states=exported,
            measures=measures_of(changed, self.input.header.elapsed_ms),
            report=replace(
                self._report(changed, exported, imported, items),
                busy_ms=busy_ms,
                cpu_ms=cpu_ms,
                taken=taken,
                merged_rows=merged.rows,
                merge_ms=merged.ms,
                emitted=size_of(changed.windows)
                + size_of(merged.windows)
                + sum(len(data) for forms in exported.values() for data in forms.values())
                + sum(size_of(block.tables) for block in changed.blocks),
            ),
        )

    def add_faults(self, faults: Mapping[int, FaultReason]) -> None:
        """Remember that these queries have failed on this node, and why."""
        queries = self.table.table.queries
        self.faults |= {
            query: (queries[query].incarnation, fault)
            for query, fault in faults.items()
            if query in queries and query not in self.faults
        }

    def _find_quarantined(self) -> dict[int, FaultReason]:
        """Return the queries that end the node's process in this batch, with the reason."""
        queries = self.table.table.queries
        members = {*self.tasks.members, *self.table.aggregated_by_node(self.input.node)}
        streams = {query: queries[query].streams for query in members - self.faults.keys()}
        header = replace(self.input.header, attempt=1)

        def evaluate(store: Store, excluded: Mapping[int, FaultReason]) -> None:
            batch = replace(self.input, header=header)
            for _ in replace(self, store=store, input=batch, excluded=excluded).run().frames():
                # Packing what has changed is work for all queries, too.
                pass

        return find_quarantined(
            self.client, self.cluster, self.input, self.store, streams, evaluate
        )

    @cached_property
    def _aggregator(self) -> Aggregator:
        return Aggregator(
            self.client, self.cluster, self.store, self.input.node, self.table, self.input.header
        )

    def _widen(self) -> list[tuple[str, StateSchema, Any]]:
        """Convert the state of queries with wider columns; return the windows to take away."""
        merges = self.table.aggregated_by_node(self.input.node)
        self.widening = detect_widening(self.store, self.table.kinds, self.tasks, merges)
        if self.widening is None:
            return []
        faults: dict[int, FaultReason] = {}
        retired = self.widening.migrate(self.store, self.tasks, faults)
        self.add_faults(faults)
        return retired

    def _import_states(self) -> list[TaskTransfer]:
        """Import what others exported in the batch before; return the tasks that moved here."""
        header = self.input.header
        if header.import_version is None:
            return []
        moved = self.tables.task_transfers(header.import_version, header.version)
        transfers = [item for item in moved if item.target == self.input.node]
        states = task_states.read(self.client, self.cluster, header.batch - 1, transfers)
        rows: dict[Task, dict[str, bytes]] = {}
        faults: dict[int, FaultReason] = {}
        arriving: dict[int, list[ArrivingTask]] = {}
        for item in transfers:
            query, forms, has_failed = (
                item.query,
                states[item.query, item.task],
                item.query in self.faults,
            )
            if item.is_aggregator:
                if not has_failed:
                    self._aggregator.import_state(query, forms)
                continue
            pieces = {name: data for name, data in forms.items() if name.startswith(BACKLOG)}
            owner = query, item.task if item.successor is None else item.successor
            incarnation = None if has_failed else self.table.table.queries[query].incarnation
            arrival = ArrivingTask(owner, pieces, incarnation)
            arriving.setdefault(item.source, []).append(arrival)
            if item.successor is None and not has_failed:
                rows[owner] = {n: data for n, data in forms.items() if n not in pieces}
        for of_source in reversed(arriving.values()):
            self.backlog.prepend(of_source)
        state_transfer.import_state(self.store, self.tasks, rows, faults)
        self.add_faults(faults)
        return [item for item in transfers if item.successor is None]

    def _work_items(self) -> tuple[list[WorkItem], int]:
        """Return the work items that the capacity allows now, and their number of records."""
        per_s = self.table.table.capacities.get(self.input.node)
        if self._delay_us == LOST:
            per_s = 0.0
        envelopes = self.input.envelopes
        if per_s is None and not self.backlog:
            return [WorkItem(envelopes, None)], sum(
                envelope.records.num_rows for envelope in envelopes
            )
        since = self._busy_period_ms()
        self.backlog.append(envelopes, self.tasks.owned())
        items = self.backlog.take(None if per_s is None else self.backlog.budget(per_s, since))
        return items, sum(e.records.num_rows for work in items for e in work.envelopes)

    @property
    def _delay_us(self) -> int:
        """Return the delay of the node per record in microseconds, or `LOST`."""
        return self.input.header.delay_us(self.input.node)

    def _delay(self, records: int) -> None:
        """Wait as a slow node does: so much longer for each record."""
        if self._delay_us > 0:
            time.sleep(min(_LONGEST_DELAY_S, records * self._delay_us / 1e6))

    def _idle_ms(self) -> dict[int, int]:
        """Return after how long streams are idle; one with unread records is not."""
        delayed = set(self.input.header.delayed)
        return {s: ms for s, ms in self.table.idle_ms.items() if s not in delayed}

    def _busy_period_ms(self) -> float:
        """Return how long there has been something to do since the batch before."""
        header = self.input.header
        elapsed = _FIRST_MS if header.elapsed_ms is None else header.elapsed_ms
        if self.backlog:
            return elapsed
        appended = [ms for envelope in self.input.envelopes for ms in envelope.appended_ms]
        return min(elapsed, max(0, header.clock_ms - min(appended, default=header.clock_ms)))

    def _evaluate(self, items: Sequence[WorkItem]) -> BatchChanges:
        """Aggregate the work items; close windows unless older records are in the backlog."""
        result, holds_windows = BatchChanges(), self.backlog.has_forwarded
        # A batch without work is a turn, too: closed windows leave.
        every = list(items) or [WorkItem([], None)]
        for index, work in enumerate(every, start=1):
            tasks = self.tasks.without(self.faults)
            takers = tasks if work.tasks is None else tasks.within(work.tasks)
            newest = newest_of(work.envelopes)
            part = advance_state(
                self.store, tasks, records_of(work.envelopes), newest,
                self.input.header.batch, takers, closes=index == len(every) and not holds_windows,
                republish=index == 1 and (self.input.header.republish or self.widening is not None),
                log_times=log_times_of(work.envelopes, self._idle_ms()),
                merged_elsewhere=self._aggregated_queries,
            )  # fmt: skip
            result.take(part)
            self.add_faults(part.faults)
        return result

    @cached_property
    def _aggregated_queries(self) -> list[int]:
        """Return the node's queries whose windows an aggregator node merges."""
        queries = self.table.table.queries
        return [query for query in self.tasks.members if queries[query].aggregator != NO_AGGREGATOR]

    @cached_property
    def _leaving(self) -> list[TaskTransfer]:
        """Return the tasks that leave the node with this batch."""
        header = self.input.header
        if header.export_version is None:
            return []
        transfers = self.tables.task_transfers(header.export_version, header.version)
        return [item for item in transfers if item.source == self.input.node]

    def _export_states(self) -> dict[Task, dict[str, bytes]]:
        """Export the state and the backlog of tasks that move to another node."""
        transfers = self._leaving
        if not transfers:
            return {}
        faults: dict[int, FaultReason] = {}
        leaving = [(t.query, t.task) for t in transfers if not t.is_aggregator]
        result = state_transfer.export_state(self.store, leaving, faults)
        streams: dict[int, dict[Task, Sequence[int]]] = {}
        for transfer in transfers:
            task = transfer.query, transfer.task
            if transfer.is_aggregator:
                # Several nodes may import parts of it: the store has it once.
                if task not in result:
                    result[task] = final_aggregation.export_state(self.store, transfer.query)
                continue
            if transfer.successor is not None:
                # The aggregator has all windows of a removed task: only its backlog is left.
                result[task] = {}
            own = self.table.table.queries[transfer.query].streams
            streams.setdefault(transfer.target, {})[task] = own
        for of_target in streams.values():
            for task, pieces in self.backlog.export(of_target).items():
                result[task] |= pieces
        self.add_faults(faults)
        return result

    def _report(
        self,
        changed: BatchChanges,
        exported: Mapping[Task, Mapping[str, bytes]],
        imported: Sequence[TaskTransfer],
        items: Sequence[WorkItem],
    ) -> NodeMeasures:
        """Return the report, without the time that was spent."""
        worked = [envelope for work in items for envelope in work.envelopes]
        return NodeMeasures(
            node=self.input.node,
            batch=self.input.header.batch,
            version=self.input.header.version,
            records=sum(value.records.num_rows for value in self.input.envelopes),
            bytes=self.input.bytes,
            busy_ms=0.0,
            tasks=len(self.tasks.members),
            state_bytes=changed.state_bytes,
            late=changed.late,
            late_queries=[[*pair] for pair in changed.late_by_query.items() if pair[1]],
            event_ms=max(newest_of(worked).values(), default=None),
            arrivals=arrivals_of(worked),
            sources=[element.source for element in self.input.envelopes if element.source],
            # What has only moved away is still in the table.
            ended=sorted(changed.ended - self.table.table.queries.keys()),
            split=self.tasks.split,
            merged=self._aggregated_queries,
            moves=_moves(exported, self._leaving),
            imported=[[item.query, item.task] for item in imported],
            executor=executor(),
            waiting=self.backlog.records,
            waiting_since=self.backlog.waiting_since(),
            capacity=self.table.table.capacities.get(self.input.node),
            state_us=changed.state_us,
            elapsed_ms=self.input.header.elapsed_ms,
            dropped=[[*edge, lost] for edge, lost in changed.dropped.items() if lost],
            ladder_dropped=[[*edge, n] for edge, n in changed.ladder_dropped.items() if n],
            drop_counts=changed.drop_counts.rows(),
            faults=fault_rows(self.faults),
        )


def measures_of(changed: BatchChanges, elapsed_ms: int | None) -> bytes:
    """Return what was measured of tasks, as the wire has it."""
    rows = np.concatenate([np.zeros((0, 4), np.int64), *changed.tasks])
    order = np.lexsort((rows[:, 1], rows[:, 0]))
    rows = rows[order]
    edges = np.flatnonzero(np.any(np.diff(rows[:, :2], axis=0, prepend=-1), axis=1))
    result = np.concatenate([rows[edges, :2], np.add.reduceat(rows[:, 2:], edges)], axis=1) if len(
        rows) else rows  # fmt: skip
    return measures.packed(elapsed_ms or 0, result)


def _moves(
    exported: Mapping[Task, Mapping[str, bytes]], leaving: Sequence[TaskTransfer]
) -> list[list[int]]:
    """Return query, task, bytes of state and backlogged records of each task that moves."""
    result = []
    moving = [(item.query, item.task) for item in leaving if item.successor is None]
    for query, task in moving:
        forms = exported[query, task]
        state = sum(len(data) for name, data in forms.items() if not name.startswith(BACKLOG))
        result.append([query, task, state, records_exported(forms)])
    return result
