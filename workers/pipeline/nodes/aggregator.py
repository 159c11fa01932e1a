"""An aggregator node: it merges the parts that tasks emitted in the batch before."""

import time
from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import redis

from controlplane.wire import keys
from controlplane.wire.aggregates.state_schema import StateSchema, from_bytes, schema_named
from workers.pipeline.engine.assignment.tasks import Member
from workers.pipeline.engine.failures.fault import FaultReason
from workers.pipeline.engine.failures.isolation import AGGREGATOR, no_sample, run_stage
from workers.pipeline.engine.final_aggregation import (
    KeyPartition,
    import_state,
    merge_parts,
    widen_state,
)
from workers.pipeline.engine.storage.idle_streams import StreamClock
from workers.pipeline.engine.storage.widening import Widening
from workers.pipeline.engine.store import Store
from workers.pipeline.exchange.envelope import BatchHeader
from workers.pipeline.routing.compiled_table import CompiledTable


@dataclass(frozen=True)
class MergedWindows:
    """The windows that a node has merged again, by state schema, and the queries that failed.

    `rows`: the number of partial results that it merged for its keys; `ms`: the time that this
    took, 0 if the node aggregates no query.
    """

    windows: list[tuple[str, StateSchema, Any]]
    faults: dict[int, FaultReason]
    rows: int
    ms: float


@dataclass(frozen=True)
class Aggregator:
    """A node that aggregates: its state, and the table and the header of the batch."""

    client: "redis.Redis"
    cluster: str
    store: Store
    node: int
    table: CompiledTable
    header: BatchHeader

    def merge(
        self,
        failed: Container[int],
        widening: Widening | None,
        watermarks: Mapping[int, int],
        clock: StreamClock,
    ) -> MergedWindows:
        """Return the windows of all queries but the failed ones that the node has merged again.

        A part comes to the aggregator node one batch after it was emitted: by then all nodes have
        written theirs, in any order. A replay reads the same. `watermarks`: what the node knew at
        the end of that batch, as all others did, unless records wait somewhere; then no window is
        closed. `clock`: what it knew of the log then.
        """
        started = time.perf_counter()
        every = self.table.aggregated_by_node(self.node)
        members = {query: item for query, item in every.items() if query not in failed}
        unreadable: dict[int, FaultReason] = {}
        parts = self._parts(list(members), unreadable) if members else {}
        for query, tables in parts.items():
            share = self._share(query)
            for name, rows in tables.items():
                tables[name] = [share.of(schema_named(name), part) for part in rows]
        merged_rows = _count_rows(parts)
        if widening is not None:
            parts = _widened(self.store, widening, members, parts, unreadable)
        closing = {} if self.header.has_backlog else watermarks
        result, faults = merge_parts(self.store, members, parts, closing, clock)
        elapsed_ms = round((time.perf_counter() - started) * 1000, 2)
        faults = unreadable | faults
        return MergedWindows(result, faults, merged_rows, elapsed_ms if members else 0.0)

    def import_state(self, query: int, forms: Mapping[str, bytes]) -> None:
        """Add what another node kept of a query, as far as this one has the keys."""
        import_state(self.store, query, forms, self._share(query))

    def _share(self, query: int) -> KeyPartition:
        """Return which keys of a query the node aggregates."""
        nodes = self.table.table.queries[query].aggregators
        return KeyPartition(nodes.index(self.node), len(nodes))

    def _parts(
        self, queries: list[int], faults: dict[int, FaultReason]
    ) -> dict[int, dict[str, list[Any]]]:
        """Return the parts of the batch before: by query its tables by the state schema's name."""
        batch = self.header.batch - 1
        pipe = self.client.pipeline(transaction=False)
        owners = [(query, node) for query in queries for node in range(self.header.nodes)]
        for query, node in owners:
            pipe.xrange(keys.part_key(self.cluster, query, node), f"{batch}-0", f"{batch}-0")
        result: dict[int, dict[str, list[Any]]] = {}
        entries = cast("list[list[Any]]", pipe.execute())
        for (query, _), rows in zip(owners, entries, strict=True):
            for parts in run_stage(AGGREGATOR, [query], partial(_read, rows), faults, no_sample):
                for name, table in parts:
                    result.setdefault(query, {}).setdefault(name, []).append(table)
        return {query: tables for query, tables in result.items() if query not in faults}


def _count_rows(parts: Mapping[int, Mapping[str, list[Any]]]) -> int:
    """Return the number of partial results of all queries."""
    tables = [table for forms in parts.values() for rows in forms.values() for table in rows]
    return sum(map(len, tables))


def _widened(
    store: Store,
    widening: Widening,
    members: Mapping[int, Member],
    parts: Mapping[int, dict[str, list[Any]]],
    faults: dict[int, FaultReason],
) -> dict[int, dict[str, list[Any]]]:
    """Return parts in the present schemas of their queries, and convert the stored parts."""
    widen_state(store, members, widening, faults)
    result: dict[int, dict[str, list[Any]]] = {}
    for query, tables in parts.items():
        computation = members[query].computation
        assert computation is not None
        work = partial(widening.convert_parts, tables, query, computation)
        for new in run_stage(AGGREGATOR, [query], work, faults, no_sample):
            result[query] = new
    return {query: tables for query, tables in result.items() if query not in faults}


def _read(rows: list[Any]) -> list[tuple[str, Any]]:
    """Return name of the state schema and rows of each part."""
    names = [(f.decode().rpartition("#")[0], data) for _, row in rows for f, data in row.items()]
    return [(name, from_bytes(schema_named(name), data)) for name, data in names]
