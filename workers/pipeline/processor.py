"""The stateful operator: one call per node and batch, all the node's tasks at once."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import (
    MapState,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from workers.pipeline.connections import tables_of
from workers.pipeline.envelope import Envelope
from workers.pipeline.evaluate import added_rows, records_of
from workers.pipeline.pages import load_rows, pages_to_visit, split_rows
from workers.pipeline.report import NodeReport, arrivals_of
from workers.pipeline.salt import node_of_key
from workers.pipeline.tables import CompiledTable
from workers.pipeline.windows import Column, Merged, Rows, keep_live, merge

OUTPUT_DDL: Final = "node int, batch long, results binary, report string"


@dataclass(frozen=True)
class Input:
    """What one node gets in one batch."""

    node: int
    batch: int
    version: int
    envelopes: list[Envelope]
    bytes: int


class NodeProcessor(StatefulProcessor):
    """Evaluates the tasks of the node whose key it is called with."""

    def __init__(self, cluster: str, redis_url: str, slots: int) -> None:
        self.cluster = cluster
        self.redis_url = redis_url
        self.slots = slots

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the node's state: pages of window rows, and their total size."""
        self._pages: MapState = handle.getMapState("pages", "page int", "rows binary")
        self._sizes: MapState = handle.getMapState("sizes", "page int", "bytes long")

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
        table = tables_of(self.redis_url, self.cluster).at(batch.version)
        merged, ended, state_bytes = self._advance(batch, table)
        queries, _ = table.queries_of_node(batch.node)
        busy_ms = (time.perf_counter() - started) * 1000
        report = _report(batch, merged.late, len(queries), ended, state_bytes, busy_ms)
        yield _output(batch, merged.changed, report)

    def _advance(self, batch: Input, table: CompiledTable) -> tuple[Merged, list[int], int]:
        added = added_rows(records_of(batch.envelopes), table.subscriptions_of_node(batch.node))
        visited = pages_to_visit(added, batch.batch)
        state = load_rows(self._load, visited)
        live = keep_live(state, *table.queries_of_node(batch.node))
        merged = merge(state[live], added)
        return merged, _departed(state[~live], table), self._store(merged.rows, visited)

    def _load(self, page: int) -> bytes | None:
        found = self._pages.getValue((page,))
        return None if found is None else bytes(found[0])

    def _store(self, rows: Rows, visited: list[int]) -> int:
        """Write the visited pages and return the size of all pages in bytes."""
        sizes = {int(key[0]): int(value[0]) for key, value in self._sizes.iterator()}
        for page, blob in split_rows(rows, visited).items():
            if blob:
                self._pages.updateValue((page,), (blob,))
            elif sizes.get(page):
                self._pages.removeKey((page,))
            if sizes.get(page) != len(blob):
                self._sizes.updateValue((page,), (len(blob),))
                sizes[page] = len(blob)
        return sum(sizes.values())


def _input(node: int, frames: Iterator[pd.DataFrame]) -> Input:
    rows = pd.concat(list(frames))
    payloads = [bytes(payload) for payload in rows["payload"]]
    return Input(
        node=node,
        batch=int(rows["batch"].iloc[0]),
        version=int(rows["version"].iloc[0]),
        envelopes=[Envelope.decode(payload) for payload in payloads],
        bytes=sum(map(len, payloads)),
    )


def _departed(dropped: Rows, table: CompiledTable) -> list[int]:
    """Return the queries that ended; those that only moved away are still in the table."""
    queries = np.unique(dropped[:, Column.QUERY]).tolist()
    return [query for query in queries if query not in table.table.queries]


def _report(
    batch: Input, late: int, tasks: int, ended: list[int], state_bytes: int, busy_ms: float
) -> NodeReport:
    return NodeReport(
        node=batch.node,
        batch=batch.batch,
        version=batch.version,
        records=sum(envelope.records.num_rows for envelope in batch.envelopes),
        bytes=batch.bytes,
        busy_ms=round(busy_ms, 2),
        tasks=tasks,
        state_bytes=state_bytes,
        late=late,
        event_ms=_newest_event(batch.envelopes),
        arrivals=arrivals_of(batch.envelopes),
        sources=[envelope.source for envelope in batch.envelopes if envelope.source],
        ended=ended,
    )


def _newest_event(envelopes: list[Envelope]) -> int | None:
    filled = [envelope.records for envelope in envelopes if envelope.records.num_rows]
    if not filled:
        return None
    return max(int(np.asarray(records.column("ts").cast(pa.int64())).max()) for records in filled)


def _output(batch: Input, changed: Rows, report: NodeReport) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "node": [batch.node],
            "batch": [batch.batch],
            "results": [changed.astype("<i8", copy=False).tobytes()],
            "report": [report.to_json()],
        }
    )
