"""The evaluation of one query over given records, with the engine of the data plane."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from controlplane.catalog.computations import kinds_of
from controlplane.explain.drafts.values import MOST_WINDOWS, Preview, PreviewWindow, ReadStream
from controlplane.results.filters import WindowState
from controlplane.results.values import RawWindow, ResultColumns, moment
from controlplane.wire.aggregates.finalize import WindowRow, finalize, newest_rows
from controlplane.wire.aggregates.state_schema import schema_named
from controlplane.wire.query import Computation, computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.results.places import start_bytes
from controlplane.wire.schema import StreamSchema
from workers.pipeline.engine.advance import advance_state
from workers.pipeline.engine.assignment.subscriptions import NodeGroup, Subscription
from workers.pipeline.engine.assignment.tasks import Tasks
from workers.pipeline.engine.failures.fault import FaultReason
from workers.pipeline.engine.partial_aggregation import BatchChanges
from workers.pipeline.engine.store import MemoryStore
from workers.preview.records import NewestEntries, NewestRecords, newest_records

# The query, its only batch, and the time that the last steps of users' aggregates have.
_QUERY: Final = 1
_BATCH: Final = 1
_USER_S: Final = 1.0


@dataclass(frozen=True)
class Draft:
    """A query to evaluate: its text, and names, schemas and sources of its streams by id."""

    text: QueryText
    names: Mapping[int, str]
    schemas: Mapping[int, StreamSchema]
    sources: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def computation(self) -> Computation:
        """Return the computation over the columns of the streams. Raises `BadQuery`."""
        right = set(self.text.right)
        rows = [(id_ in right, schema.to_json()) for id_, schema in self.schemas.items()]
        sides = (
            kinds_of(row for is_right, row in rows if is_right is side) for side in (False, True)
        )
        return computation_of(self.text, *sides)


class QueryFailed(Exception):
    """The engine could not compute the query."""

    def __init__(self, fault: FaultReason) -> None:
        super().__init__(fault)
        self.fault = fault

    def __str__(self) -> str:
        return self.fault.why


def evaluate(draft: Draft, computation: Computation, newest: NewestEntries) -> Preview:
    """Return the windows of a query over these blocks, all as one batch on one node.

    Raises `QueryFailed`.
    """
    records = newest_records(newest, draft.schemas, computation)
    changes = _advanced(draft, computation, records)
    if fault := changes.faults.get(_QUERY):
        raise QueryFailed(fault)
    rows = _rows(computation, changes)
    names = ResultColumns(draft.text, computation, draft.names)
    return Preview(
        streams=_streams(draft, records),
        windows=[_window(names, row) for row in rows[:MOST_WINDOWS]],
        window_count=len(rows),
        late=changes.late,
        rejected=records.rejected,
        is_partial=records.is_partial,
    )


def _advanced(draft: Draft, computation: Computation, records: NewestRecords) -> BatchChanges:
    streams = tuple(sorted(draft.names))
    subscription = Subscription(_QUERY, 0, streams, 1, np.ones(1, np.bool_))
    tasks = Tasks.of([NodeGroup.of(computation, [subscription])])
    # No window closes: all of them are changes.
    return advance_state(MemoryStore(), tasks, records.parts, {}, _BATCH, closes=False)


def _rows(computation: Computation, changes: BatchChanges) -> list[WindowRow]:
    """Return the windows of all changes, newest first."""
    tables: dict[str, list[tuple[int, Any]]] = {}
    for name, _, rows in changes.windows:
        tables.setdefault(name, []).append((_BATCH, rows))
    newest = {name: newest_rows(schema_named(name), parts) for name, parts in tables.items()}
    return sorted(finalize(computation, newest, _USER_S), key=lambda row: -row.start_ms)


def _window(names: ResultColumns, row: WindowRow) -> PreviewWindow:
    place, key, values = (
        start_bytes(row.start_ms),
        list(row.key.values()),
        list(row.values.values()),
    )
    shown = names.shown(RawWindow(place, key, values, row.batch, WindowState.OPEN))
    return PreviewWindow(shown.start, shown.key, shown.values, dict(row.errors))


def _streams(draft: Draft, records: NewestRecords) -> list[ReadStream]:
    read = {next(iter(part.streams)): part for part in records.parts}
    result = []
    for stream, name in draft.names.items():
        times = read[stream].ts_ms if stream in read else None
        if times is None:
            result.append(ReadStream(name, 0))
        else:
            first, last = moment(int(times.min())), moment(int(times.max()))
            result.append(ReadStream(name, len(times), first, last))
    return result
