"""Results after a loss: real source, nodes and sink on a real Redis, and Spark's part by hand.

What Spark does between them is little: it plans a batch, runs it, and marks the one before as
committed when it plans the next. So each loss takes seconds here; the end-to-end test has Spark.
"""

import json
from collections import defaultdict
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from django.utils import timezone

from controlplane.connections import redis_client
from controlplane.health.losses.detection import CheckpointFacts, Kind
from controlplane.health.losses.repair import facts_of, reconcile
from controlplane.models import Cluster, ClusterHealth, Incident, Query
from controlplane.results.pages import keyed_windows
from tests.support.cluster import actor, placed_split, small_cluster, stream_id
from tests.support.records import append_at
from workers.pipeline.engine.store import MemoryStore, Store
from workers.pipeline.exchange.envelope import node_input
from workers.pipeline.nodes.node_batch import NodeBatch
from workers.pipeline.sink import SinkWriter
from workers.pipeline.spark.connections import client_of, tables_of
from workers.pipeline.spark.partition_keys import node_keys
from workers.pipeline.split_nodes.source import LogReader

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("results_in_django"),
]

NOON_MS = 1_760_000_400_000
NAME = "checkpoint"


class Plant:
    """One cluster, its application and its checkpoint: offset and states of nodes."""

    def __init__(self, url: str, key_grouping: str) -> None:
        self.url, by = url, actor()
        self.cluster: Cluster = small_cluster(by, stream_count=2)
        self.query: Query = placed_split(by, self.cluster, key_grouping=key_grouping)
        self.start()

    def start(self, *, anew: bool = True) -> None:
        """Start the application's processes; `anew`: without its checkpoint."""
        tables_of.cache_clear()
        self.reader = LogReader("sf", self.url, 1, 4, 2, 10_000, 1 << 24, 1 << 30)
        self.sink = SinkWriter("sf", self.url, "")
        if anew:
            self.stores: dict[int, Store] = defaultdict(MemoryStore)
            self.offset: dict[str, Any] = _stored(self.reader.initialOffset())
            self.ran = False

    def run(self) -> list[int]:
        """Run batches until there is nothing to do; return their numbers."""
        numbers = []
        while (end := _stored(self.reader.latestOffset(self.offset, None))) != self.offset:
            if self.ran:
                self.reader.commit(self.offset)
            self._batch(end)
            self.offset, self.ran = end, True
            numbers.append(end["batch"])
        self.cluster.refresh_from_db()
        values = {"observed_at": timezone.now(), "batch": self.offset["batch"]}
        if self.ran:
            ClusterHealth.objects.update_or_create(
                cluster=self.cluster, defaults={**values, "checkpoint": NAME}
            )
        return numbers

    def _batch(self, end: dict[str, Any]) -> None:
        rows: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for split in self.reader.partitions(self.offset, end):
            for table in self.reader.read(split):
                for row in table.to_pylist():
                    rows[row["nk"]].append(row)
        frames = [frame for key, mine in rows.items() for frame in self._turn(key, mine)]
        tables = [pa.RecordBatch.from_pandas(frame, preserve_index=False) for frame in frames]
        self.sink.commit([self.sink.write(iter(tables))], 0)

    def _turn(self, key: int, rows: list[dict[str, Any]]) -> list[Any]:
        node = node_keys(1).node_of(key)
        batch = node_input(node, [pd.DataFrame(rows)])
        tables = tables_of(self.url, "sf")
        return list(
            NodeBatch(client_of(self.url), "sf", tables, self.stores[node], batch).run().frames()
        )

    def send(self, count: int) -> None:
        """Append records of one key in one minute."""
        for at in range(count):
            append_at(self.cluster, stream_id(self.cluster, f"s{at % 2}"), NOON_MS + at, records=1)

    def reconcile(self, *, lost: bool = False) -> list[Kind]:
        """Let the agent look for losses; `lost`: there is no checkpoint."""
        batch, version = self.offset["batch"], self.offset["version"]
        checkpoint = None if lost else CheckpointFacts(batch, batch, version)
        self.cluster.refresh_from_db()
        return reconcile(self.cluster, facts_of(self.cluster, checkpoint, NAME), str)

    def counted(self) -> int:
        """Return the records that the query's results have."""
        self.query.refresh_from_db()
        return sum(row.values["n"] for row in keyed_windows(self.cluster, self.query))


def _stored(offset: dict[str, Any]) -> dict[str, Any]:
    """Return an offset as it comes back from Spark's log."""
    found: dict[str, Any] = json.loads(json.dumps(offset))
    return found


@pytest.fixture(params=["", "two_choices"])
def import_state(request: pytest.FixtureRequest, redis_url: str, transactional_db: None) -> Plant:
    """A cluster whose query, with and without an aggregator node, has counted five records."""
    import_state = Plant(redis_url, request.param)
    import_state.reconcile(lost=True)
    import_state.send(5)
    import_state.run()
    assert import_state.counted() == 5
    assert import_state.reconcile() == []
    return import_state


@pytest.mark.parametrize("restarted", [True, False])
def test_an_emptied_redis_loses_no_open_window(import_state: Plant, restarted: bool) -> None:
    """Results are not in Redis, and nodes have their states. Without a record to read, too."""
    redis_client().flushdb()
    assert import_state.counted() == 5
    assert import_state.reconcile() == [Kind.REDIS_LOST]
    if restarted:
        import_state.start(anew=False)
    before = import_state.offset["batch"]
    assert min(import_state.run()) > before
    assert import_state.counted() == 5
    import_state.send(3)
    import_state.run()
    assert import_state.counted() == 8
    assert import_state.reconcile() == []


def test_a_lost_checkpoint_counts_each_record_once(import_state: Plant) -> None:
    """The newest batch is finished and not marked: it is not read again."""
    before = import_state.offset["batch"]
    assert import_state.reconcile(lost=True) == [Kind.CHECKPOINT_LOST]
    import_state.send(3)
    import_state.start()
    assert min(import_state.run()) > before
    assert import_state.counted() == 8
    assert import_state.reconcile() == []
    assert not any("micro-batch" in text for text in Incident.objects.get().lost)


def test_after_the_loss_of_both_windows_add_up(import_state: Plant) -> None:
    """What was written stays, and so do the numbers of batches."""
    before = import_state.offset["batch"]
    redis_client().flushdb()
    assert import_state.reconcile(lost=True) == [Kind.REDIS_LOST, Kind.CHECKPOINT_LOST]
    import_state.send(2)
    import_state.start()
    assert min(import_state.run()) > before
    assert import_state.counted() == 7
    assert import_state.reconcile() == []


def test_a_redis_of_an_older_moment_changes_no_window(import_state: Plant) -> None:
    """What it has is older than the results and the states of the nodes."""
    client = redis_client()
    backup = {key: client.dump(key) for key in client.keys("weir:{sf}:*")}
    import_state.send(4)
    import_state.run()
    assert import_state.counted() == 9
    client.flushdb()
    for key, value in backup.items():
        assert isinstance(value, bytes)
        client.restore(key, 0, value)
    assert import_state.counted() == 9
    assert import_state.reconcile() == [Kind.REDIS_OLDER]
    import_state.run()
    assert import_state.counted() == 9
    assert import_state.reconcile() == []
