"""The output of a node: rows of a few megabytes for the sink.

A row passes through the JVM as a whole, several times over, so its size is bounded. Rows of a node
follow each other: first its report, then blocks of complete windows, changed windows, states and
measures. Changed windows are grouped by query, so that the sink can write each query in one step; a
query that is larger than a row continues in the next one. Blocks are cut into pieces (`blocks.py`).
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from controlplane.wire.aggregates.state_schema import StateSchema
from workers.pipeline.engine.complete_windows import WindowBlock
from workers.pipeline.exchange import task_states
from workers.pipeline.exchange.blocks import pack_blocks, pack_tables, unpack_tables
from workers.pipeline.exchange.envelope import Envelope

if TYPE_CHECKING:
    import pandas as pd

Tables = Sequence[tuple[str, StateSchema, Any]]
OUTPUT_DDL: Final = "node int, batch long, kind string, payload binary, more boolean"
ROW_BYTES: Final = 4 << 20
REPORT: Final = "report"
BLOCKS: Final = "blocks"
RESULTS: Final = "results"
MERGED: Final = "merged"
STATES: Final = "states"
MEASURES: Final = "measures"


@dataclass(frozen=True)
class NodeMeasures:
    """Measures of one node in one batch.

    `records` came, `taken` were worked on and `waiting` are left, in `busy_ms`, of which `cpu_ms`
    were the processor's and `state_us` (µs) went into state. `capacity`: records/s where it is
    emulated. `arrivals` pairs the time a block was appended (ms) with its record count, for
    latencies; `waiting_since` does so for the records that wait. `sources` is what the split nodes
    report (in one node's envelopes only). `ended` are
    queries that left the table; `split` those of which other nodes may have tasks, `merged` those
    that an aggregator node combines. `moves` are the tasks that it exported (query, task, bytes of
    state, records that waited); `imported` those it got (query, task). `dropped`, `ladder_dropped`:
    stream, query and records of its query edges, which rules or else the ladder dropped;
    `drop_counts`: the same by event time (rows of `wire.drop_counts.DropCount`). `faults`: query,
    incarnation, reason, stage and sample (JSON) of failed queries, in this batch or before.
    `late_queries`: query and its late records.
    `emitted`: bytes of windows and states. `executor` is where it ran; `elapsed_ms`: since the
    batch before. `merged_rows`: the partial results that it merged as an aggregator node, which
    took `merge_ms` of `busy_ms`.
    """

    node: int
    batch: int
    version: int
    records: int
    bytes: int
    busy_ms: float
    tasks: int
    state_bytes: int
    late: int
    event_ms: int | None
    arrivals: list[list[int]] = field(default_factory=list)
    waiting_since: list[list[int]] = field(default_factory=list)
    sources: list[dict[str, Any]] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    split: list[int] = field(default_factory=list)
    merged: list[int] = field(default_factory=list)
    moves: list[list[int]] = field(default_factory=list)
    imported: list[list[int]] = field(default_factory=list)
    executor: str = ""
    taken: int = 0
    waiting: int = 0
    capacity: float | None = None
    cpu_ms: float = 0.0
    state_us: int = 0
    elapsed_ms: int | None = None
    dropped: list[list[int]] = field(default_factory=list)
    ladder_dropped: list[list[int]] = field(default_factory=list)
    drop_counts: list[list[int]] = field(default_factory=list)
    late_queries: list[list[int]] = field(default_factory=list)
    emitted: int = 0
    faults: list[tuple[int, int, str, str, str]] = field(default_factory=list)
    merged_rows: int = 0
    merge_ms: float = 0.0

    @property
    def utilisation(self) -> float | None:
        """Return the share of its capacity, or of its time, that the node used."""
        if not self.elapsed_ms:
            return None
        if self.capacity is None:
            return self.busy_ms / self.elapsed_ms
        return self.taken / (self.capacity * self.elapsed_ms / 1000) if self.capacity else 1.0

    def to_json(self) -> str:
        """Return the report as one line of JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "NodeMeasures":
        """Return the report that `to_json` wrote."""
        return cls(**json.loads(text))


def arrivals_of(envelopes: Sequence[Envelope]) -> list[list[int]]:
    """Return [appended ms, records] pairs, one per append."""
    result: dict[int, int] = {}
    for envelope in envelopes:
        for appended_ms, records in zip(envelope.appended_ms, envelope.lengths, strict=True):
            result[appended_ms] = result.get(appended_ms, 0) + records
    return sorted([ms, records] for ms, records in result.items())


@dataclass(frozen=True)
class OutputRow:
    """One row: its kind, its bytes, and whether the next row of its kind continues its query."""

    kind: str
    payload: bytes
    more: bool = False


@dataclass(frozen=True)
class NodeOutput:
    """The changes of a node in a batch, and its report.

    `results` are windows of the node's tasks, `merged` of the queries that it merges, `states` of
    tasks that leave; `measures`: rows of its tasks, as int64s; `blocks`: windows of its tasks that
    were complete immediately.
    """

    results: Tables
    merged: Tables
    states: task_states.States
    measures: bytes
    report: NodeMeasures
    blocks: Sequence[WindowBlock] = ()

    def rows(self, limit: int = ROW_BYTES) -> Iterator[OutputRow]:
        """Yield the rows, each of about `limit` bytes at most."""
        yield OutputRow(REPORT, self.report.to_json().encode())
        for payload in pack_blocks(self.blocks, limit):
            yield OutputRow(BLOCKS, payload)
        for kind, tables in ((RESULTS, self.results), (MERGED, self.merged)):
            for payload, more in pack_by_query(tables, limit):
                yield OutputRow(kind, payload, more)
        for states in _states(self.states, limit):
            yield OutputRow(STATES, task_states.pack(states))
        if self.measures:
            yield OutputRow(MEASURES, self.measures)

    def frames(self) -> "Iterator[pd.DataFrame]":
        """Yield the rows as Spark takes them, each in a frame of its own."""
        import pandas as pd  # noqa: PLC0415 - 46 MB in each process that only knows this module

        for piece in self.rows():
            row: dict[str, list[Any]] = {
                "node": [self.report.node],
                "batch": [self.report.batch],
                "kind": [piece.kind],
                "payload": [piece.payload],
                "more": [piece.more],
            }
            yield pd.DataFrame(row)


def size_of(tables: Tables) -> int:
    """Return the bytes of tables of changed windows, about."""
    return sum(rows.nbytes for _, _, rows in tables)


def pack_by_query(tables: Tables, limit: int) -> Iterator[tuple[bytes, bool]]:
    """Yield changed windows in packs of about `limit` bytes, and whether the query continues.

    A pack has several whole queries, or a part of one.
    """
    filled = [(name, form, rows) for name, form, rows in tables if len(rows)]
    if not filled:
        return
    if size_of(filled) <= limit:
        yield pack_tables(filled), False
        return
    ordered = [_Ordered.of(*table) for table in filled]
    for first, last, parts in _groups(ordered, limit):
        for part in range(parts):
            pieces = (item.part(first, last, part, parts) for item in ordered)
            yield pack_tables(pieces), part < parts - 1


@dataclass(frozen=True)
class _Ordered:
    """A table in the order of its queries; `queries` has the query of each row."""

    name: str
    form: StateSchema
    rows: Any
    queries: Any

    @classmethod
    def of(cls, name: str, form: StateSchema, rows: Any) -> "_Ordered":
        queries = np.asarray(rows["query"])
        order = np.argsort(queries, kind="stable")
        return cls(name, form, rows.take(pa.array(order)).combine_chunks(), queries[order])

    def part(self, first: int, last: int, part: int, parts: int) -> tuple[str, StateSchema, Any]:
        """Return one of so many equal parts of the rows of queries first..last."""
        start = int(np.searchsorted(self.queries, first, "left"))
        count = int(np.searchsorted(self.queries, last, "right")) - start
        begin, stop = count * part // parts, count * (part + 1) // parts
        return self.name, self.form, self.rows.slice(start + begin, stop - begin)


def _groups(tables: Sequence[_Ordered], limit: int) -> Iterator[tuple[int, int, int]]:
    """Yield the first and the last query of each group, and in how many parts it is packed."""
    first = last = None
    size = 0.0
    for query, weight in _weights(tables):
        if first is not None and last is not None and size + weight > limit:
            yield first, last, max(1, math.ceil(size / limit))
            first, size = None, 0.0
        first, last, size = query if first is None else first, query, size + weight
    if first is not None and last is not None:
        yield first, last, max(1, math.ceil(size / limit))


def _weights(tables: Sequence[_Ordered]) -> list[tuple[int, float]]:
    """Return the bytes of each query over all tables, about, by query."""
    result: dict[int, float] = {}
    for table in tables:
        per_row = table.rows.nbytes / len(table.queries)
        queries, counts = np.unique(table.queries, return_counts=True)
        for query, rows in zip(queries.tolist(), counts.tolist(), strict=True):
            result[query] = result.get(query, 0.0) + rows * per_row
    return sorted(result.items())


def _states(states: task_states.States, limit: int) -> Iterator[task_states.States]:
    """Yield states in groups of about `limit` bytes; a group may have a part of a task."""
    group: dict[tuple[int, int], dict[str, bytes]] = {}
    size = 0
    for task, forms in states.items():
        # A task without state is exported, too.
        group.setdefault(task, {})
        for name, data in forms.items():
            if size and size + len(data) > limit:
                yield group
                group, size = {}, 0
            group.setdefault(task, {})[name] = data
            size += len(data)
    if group:
        yield group


@dataclass
class RowCollector:
    """Puts the rows of one sink task together again; it holds one query's windows at most.

    `report` is that of the node whose rows are read.
    """

    report: NodeMeasures | None = None
    _partial: list[tuple[str, Any]] = field(default_factory=list)

    def take(self, row: Mapping[str, Any]) -> NodeMeasures:
        """Take a row, and return the report of its node."""
        if row["kind"] == REPORT:
            self.report = NodeMeasures.from_json(row["payload"].decode())
        assert self.report is not None, "a node's report is its first row"
        return self.report

    def changes(self, row: Mapping[str, Any]) -> list[tuple[str, Any]] | None:
        """Return the changed windows that a row completes; None if its query continues."""
        result = [*self._partial, *unpack_tables(row["payload"])]
        self._partial = result if row["more"] else []
        return None if row["more"] else _joined(result)


def _joined(tables: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return one table for each name."""
    result: dict[str, list[Any]] = {}
    for name, rows in tables:
        result.setdefault(name, []).append(rows)
    return [(name, pa.concat_tables(parts).combine_chunks()) for name, parts in result.items()]
