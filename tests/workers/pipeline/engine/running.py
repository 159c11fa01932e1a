"""Queries over tables, run through the engine as nodes do and read as a reader does."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from controlplane.wire.aggregates.finalize import WindowRow, finalize, newest_rows
from controlplane.wire.aggregates.state_schema import schema_named
from controlplane.wire.language.tree import Kind
from controlplane.wire.query import Computation, computation_of
from controlplane.wire.query_text import QueryText
from tests.workers.pipeline.engine.given import changed_rows
from workers.pipeline.engine.advance import advance_state
from workers.pipeline.engine.assignment.subscriptions import NodeGroup, Subscription
from workers.pipeline.engine.assignment.tasks import Tasks
from workers.pipeline.engine.evaluation.records import BlockRun, Records
from workers.pipeline.engine.store import MemoryStore


class Running:
    """Queries on some nodes, each of which has its share of the tasks of every keyed query."""

    def __init__(
        self,
        computations: Mapping[int, Computation],
        streams: tuple[int, ...] = (1,),
        tasks: int = 1,
        nodes: int = 1,
    ) -> None:
        self.computations = computations
        self.faults: dict[int, str] = {}
        self.late = 0
        self._stores = [MemoryStore() for _ in range(nodes)]
        self._tasks = [self._of_node(node, streams, tasks) for node in range(nodes)]
        self._written: dict[int, dict[str, list[tuple[int, Any]]]] = {}
        self._batches = 0

    def _of_node(self, node: int, streams: tuple[int, ...], tasks: int) -> Tasks:
        groups: dict[Computation, list[Subscription]] = {}
        for query, computation in self.computations.items():
            count = tasks if computation.key or computation.join else 1
            mine = np.arange(count) % len(self._stores) == node
            if mine.any():
                one = Subscription(query, 0, streams, count, mine)
                groups.setdefault(computation, []).append(one)
        return Tasks.of(NodeGroup.of(computation, found) for computation, found in groups.items())

    def take(self, records: Records) -> None:
        """Let every node take a batch; a query that failed is left out from then on."""
        self._batches += 1
        for node, store in enumerate(self._stores):
            self._tasks[node] = self._tasks[node].without(self.faults)
            changed = advance_state(store, self._tasks[node], records, {}, self._batches)
            self.faults |= {query: fault.why for query, fault in changed.faults.items()}
            self.late += changed.late
            for name, _, rows in changed_rows(changed):
                self._write(name, rows)

    def _write(self, name: str, rows: Any) -> None:
        owner = np.asarray(rows["query"])
        for query in np.unique(owner).tolist():
            mine = rows.filter(pa.array(owner == query))
            tables = self._written.setdefault(query, {})
            tables.setdefault(name, []).append((self._batches, mine))

    def rows(self, query: int) -> list[WindowRow]:
        """Return the windows of a query as a reader has them."""
        entries = self._written.get(query, {})
        tables = {name: newest_rows(schema_named(name), parts) for name, parts in entries.items()}
        return finalize(self.computations[query], tables)


def batch_of(columns: Mapping[str, Any], stream: int = 1, mark_ms: int | None = None) -> Records:
    """Return records of one stream; without event times all are of 1970-01-01 00:00."""
    table = pa.table(columns)
    if "ts" not in table.column_names:
        table = table.append_column(
            "ts", pa.repeat(pa.scalar(0, pa.timestamp("ms", "UTC")), len(table))
        )
    times = np.asarray(table["ts"].cast(pa.int64()))
    return Records.of(table, times, [BlockRun(stream, len(table), mark_ms)], event_time="ts")


def results(
    text: QueryText, kinds: Mapping[str, Kind], batches: Sequence[Mapping[str, Any]], **how: int
) -> list[WindowRow]:
    """Return the windows of a query over batches of columns. Raises `AssertionError` on a fault."""
    running = Running({9: computation_of(text, {"ts": Kind.TIME, **kinds})}, **how)  # type: ignore[arg-type]
    for columns in batches:
        running.take(batch_of(columns))
    assert not running.faults
    return running.rows(9)


def fault(text: QueryText, kinds: Mapping[str, Kind], columns: Mapping[str, Any]) -> str:
    """Return the fault of a query over one batch, empty for none."""
    running = Running({9: computation_of(text, {"ts": Kind.TIME, **kinds})})
    running.take(batch_of(columns))
    return running.faults.get(9, "")
