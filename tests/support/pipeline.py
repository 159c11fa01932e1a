"""The data plane without Spark: its source, nodes and sink, called as Spark calls them."""

import json
import os
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import redis

from controlplane.wire import keys
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.publication import publish
from controlplane.wire.routing.table import RoutingDelta
from tests.support.whole_results import VARIABLE, results_database
from workers.pipeline.engine.store import MemoryStore
from workers.pipeline.exchange.envelope import node_input
from workers.pipeline.nodes.node_batch import NodeBatch
from workers.pipeline.sink import SinkWriter
from workers.pipeline.spark.connections import client_of, log_of, tables_of
from workers.pipeline.spark.partition_keys import node_keys
from workers.pipeline.split_nodes.source import LogReader


@dataclass
class Pipeline:
    """One cluster; `batch` does what a micro-batch does. State is kept in memory, by node."""

    client: "redis.Redis"
    url: str
    cluster: str = "c"
    nodes: int = 2
    splits: int = 1
    max_records: int = 10_000
    log_url: str = ""
    version: int = 0
    stores: dict[int, MemoryStore] = field(default_factory=dict)
    offset: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.stores = {node: MemoryStore() for node in range(self.nodes)}
        self._start()

    def restart(self) -> None:
        """Do what a new driver does: read the offset from its text, and forget all but state."""
        self.offset = json.loads(json.dumps(self.offset))
        self._start()

    def _start(self) -> None:
        results_database().close()
        for known in (client_of, log_of, tables_of):
            known.cache_clear()
        self.reader = LogReader(
            self.cluster, self.url, self.nodes, self.nodes, self.splits, self.max_records, 1 << 30,
            1 << 30, self.log_url,
        )  # fmt: skip

    def publish(self, *ops: Action) -> None:
        """Publish the next routing version."""
        self.version += 1
        publish(self.client, self.cluster, RoutingDelta(self.version, ops))

    def batch(self, repeat: int = 1) -> dict[str, Any]:
        """Process what is in the log as one batch, and return its telemetry row; {} for no batch.

        `repeat`: how often it is processed, from the same state, as after a crash.
        """
        begin = self.offset or self.reader.initialOffset()
        end = self.reader.latestOffset(begin, None)
        if end == begin:
            return {}
        before = {node: MemoryStore(store) for node, store in self.stores.items()}
        for _ in range(repeat):
            self.stores = {node: MemoryStore(store) for node, store in before.items()}
            self._process(begin, end)
        self.offset = end
        entries: Any = self.client.xrange(keys.telemetry_key(self.cluster))
        row: dict[str, Any] = json.loads(entries[-1][1][b"t"])
        return row

    def commit(self) -> None:
        """Let the log forget what is processed."""
        self.reader.commit(self.offset)

    def _process(self, begin: dict[str, Any], end: dict[str, Any]) -> None:
        parts = self.reader.partitions(begin, end)
        routed = pa.Table.from_batches([rows for part in parts for rows in self.reader.read(part)])
        frame, sink = routed.to_pandas(), SinkWriter(self.cluster, self.url, os.environ[VARIABLE])
        frame["node"] = [node_keys(self.nodes).node_of(key) for key in frame["nk"].tolist()]
        written = []
        for node, mine in frame.groupby("node"):
            given = node_input(int(str(node)), [mine])
            tables = tables_of(self.url, self.cluster)
            turn = NodeBatch(self.client, self.cluster, tables, self.stores[given.node], given)
            frames = [pa.RecordBatch.from_pandas(one) for one in turn.run().frames()]
            written.append(sink.write(iter(frames)))
        sink.commit(list(written), 0)
