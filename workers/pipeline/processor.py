"""The stateful operator: one call per node and batch, all the node's tasks at once."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
from pyspark.sql.streaming.stateful_processor import (
    MapState,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from controlplane.wire.routing import Transfer
from workers.pipeline import transfer
from workers.pipeline.changes import pack
from workers.pipeline.connections import client_of, tables_of
from workers.pipeline.engine.node import Changed, Task, Tasks, advanced, put_in, taken_out
from workers.pipeline.envelope import Envelope, newest_of, records_of
from workers.pipeline.executor import executor
from workers.pipeline.report import NodeReport, arrivals_of
from workers.pipeline.salt import node_of_key
from workers.pipeline.tables import TableCache

OUTPUT_DDL: Final = "node int, batch long, results binary, states binary, report string"


@dataclass(frozen=True)
class Input:
    """What one node gets in one batch."""

    node: int
    batch: int
    version: int
    leaving: int | None
    arriving: int | None
    envelopes: list[Envelope]
    bytes: int


class NodeProcessor(StatefulProcessor):
    """Evaluates the tasks of the node whose key it is called with."""

    def __init__(self, cluster: str, redis_url: str, slots: int) -> None:
        self.cluster = cluster
        self.redis_url = redis_url
        self.slots = slots

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the node's state."""
        self._store = _MapStore(handle.getMapState("values", "name string", "value binary"))

    # Spark gives pandas frames here; its base class allows for rows, too.
    def handleInputRows(  # type: ignore[override]  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Evaluate one batch and yield one row: changed windows and the node's report."""
        started = time.perf_counter()
        # Everything is collected first: Spark promises no order within a group.
        batch = _input(node_of_key(self.slots)[int(key[0])], rows)
        tables = tables_of(self.redis_url, self.cluster)
        table = tables.of_batch(batch.leaving, batch.version)
        tasks = table.tasks_of_node(batch.node)
        taken_in = self._take_in(batch, tables, tasks)
        records = records_of(batch.envelopes)
        changed = advanced(self._store, tasks, records, newest_of(batch.envelopes), batch.batch)
        handed_on = self._hand_on(batch, tables)
        # What has only moved away is still in the table.
        ended = [query for query in sorted(changed.ended) if query not in table.table.queries]
        busy_ms = (time.perf_counter() - started) * 1000
        moves = _moves(handed_on)
        report = _report(batch, changed, tasks, ended, busy_ms, moves, len(taken_in))
        yield _output(batch, pack(changed.windows), transfer.pack(handed_on), report)

    def _take_in(self, batch: Input, tables: TableCache, tasks: Tasks) -> list[Transfer]:
        """Put in the state of tasks that came; it was handed on in the batch before."""
        if batch.arriving is None:
            return []
        moved = tables.transfers(batch.arriving, batch.version)
        mine = [one for one in moved if one.target == batch.node]
        client = client_of(self.redis_url)
        put_in(self._store, tasks, transfer.read(client, self.cluster, batch.batch - 1, mine))
        return mine

    def _hand_on(self, batch: Input, tables: TableCache) -> dict[Task, dict[str, bytes]]:
        """Take out the state of tasks that leave, this batch's records in it."""
        if batch.leaving is None:
            return {}
        moved = tables.transfers(batch.leaving, batch.version)
        mine = [(one.query, one.task) for one in moved if one.source == batch.node]
        return taken_out(self._store, mine) if mine else {}


def _moves(handed_on: Mapping[Task, Mapping[str, bytes]]) -> list[list[int]]:
    """Return query, task and bytes of each task that was handed on."""
    return [
        [query, task, sum(map(len, forms.values()))] for (query, task), forms in handed_on.items()
    ]


class _MapStore:
    """Spark's state of one node as the engine takes it."""

    def __init__(self, state: MapState) -> None:
        self._state = state

    def get(self, name: str) -> bytes | None:
        found = self._state.getValue((name,))
        return None if found is None else bytes(found[0])

    def put(self, name: str, value: bytes) -> None:
        self._state.updateValue((name,), (value,))

    def remove(self, name: str) -> None:
        self._state.removeKey((name,))


def _input(node: int, frames: Iterator[pd.DataFrame]) -> Input:
    rows = pd.concat(list(frames))
    payloads = [bytes(payload) for payload in rows["payload"]]
    return Input(
        node=node,
        batch=int(rows["batch"].iloc[0]),
        version=int(rows["version"].iloc[0]),
        leaving=_optional(rows["leaving"].iloc[0]),
        arriving=_optional(rows["arriving"].iloc[0]),
        envelopes=[Envelope.decode(payload) for payload in payloads],
        bytes=sum(map(len, payloads)),
    )


def _optional(value: Any) -> int | None:
    """Return a version that may be missing; pandas makes missing numbers NaN."""
    return None if pd.isna(value) else int(value)


def _report(
    batch: Input,
    changed: Changed,
    tasks: Tasks,
    ended: list[int],
    busy_ms: float,
    moves: list[list[int]],
    taken_in: int,
) -> NodeReport:
    return NodeReport(
        node=batch.node,
        batch=batch.batch,
        version=batch.version,
        records=sum(envelope.records.num_rows for envelope in batch.envelopes),
        bytes=batch.bytes,
        busy_ms=round(busy_ms, 2),
        tasks=len(tasks.members),
        state_bytes=changed.state_bytes,
        late=changed.late,
        event_ms=max(newest_of(batch.envelopes).values(), default=None),
        arrivals=arrivals_of(batch.envelopes),
        sources=[envelope.source for envelope in batch.envelopes if envelope.source],
        ended=ended,
        split=tasks.split,
        moves=moves,
        taken_in=taken_in,
        executor=executor(),
    )


def _output(batch: Input, changed: bytes, states: bytes, report: NodeReport) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "node": [batch.node],
            "batch": [batch.batch],
            "results": [changed],
            "states": [states],
            "report": [report.to_json()],
        }
    )
