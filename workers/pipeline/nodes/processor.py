"""The stateful operator: one call per node and batch, all the node's tasks immediately."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from controlplane.wire.limits import limit_memory
from workers.pipeline.checkpoints.bootstrap import Bootstrap
from workers.pipeline.exchange.envelope import node_input
from workers.pipeline.nodes.node_batch import NodeBatch
from workers.pipeline.nodes.state_store import NodeStore, open_state
from workers.pipeline.reports.activity import count_step
from workers.pipeline.spark.connections import client_of, freeze_heap, tables_of
from workers.pipeline.spark.partition_keys import node_keys

if TYPE_CHECKING:
    import pandas as pd


class NodeProcessor(StatefulProcessor):
    """Evaluates the tasks of one node per call, by grouping key."""

    def __init__(
        self, cluster: str, redis_url: str, partitions: int, seed: Bootstrap | None = None
    ) -> None:
        self.cluster = cluster
        self.redis_url = redis_url
        self.partitions = partitions
        self.seed = seed

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the node's state."""
        self._values = open_state(handle)

    # Spark gives pandas frames here; its base class allows for rows, too.
    def handleInputRows(  # type: ignore[override]  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: "Iterator[pd.DataFrame]",
        timerValues: TimerValues,  # noqa: N803
    ) -> "Iterator[pd.DataFrame]":
        """Evaluate one batch and yield the node's report and its changes."""
        limit_memory()
        batch = node_input(node_keys(self.partitions).node_of(int(key[0])), list(rows))
        batch = replace(batch, header=batch.header.of_task())
        store = NodeStore(self._values)
        if self.seed is not None:
            self.seed.import_state(store, batch.node, batch.header.batch)
        client, tables = client_of(self.redis_url), tables_of(self.redis_url, self.cluster)
        output = NodeBatch(client, self.cluster, tables, store, batch).run()
        store.save()
        count_step(client, self.cluster)
        freeze_heap()
        yield from output.frames()
