"""Which nodes take part in a batch: as many as the routing at its version has."""

import json
from dataclasses import replace
from typing import Any

import pytest
import redis

from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import AssignStream, SetNodeCount, SetSchema
from controlplane.wire.routing.publication import publish
from controlplane.wire.routing.query_actions import AddQuery, MoveTasks
from controlplane.wire.routing.table import RoutingDelta
from controlplane.wire.schema import ColumnSpec, StreamSchema
from workers.pipeline.exchange.envelope import Envelope, to_rows
from workers.pipeline.spark.connections import tables_of
from workers.pipeline.spark.partition_keys import node_keys
from workers.pipeline.split_nodes.offset import Offset
from workers.pipeline.split_nodes.partition import SplitPartition, grouped, parts_of
from workers.pipeline.split_nodes.source import LogReader


@pytest.fixture
def reader(redis_client: "redis.Redis", redis_server: str) -> LogReader:
    """The source of a driver that was started when there were three nodes."""
    tables_of.cache_clear()
    return LogReader("c", redis_server, 2, 3, 1, 10_000, 1 << 20, 1 << 30)


def versions(client: "redis.Redis", *deltas: tuple[Action, ...]) -> None:
    for version, ops in enumerate(deltas, start=1):
        publish(client, "c", RoutingDelta(version, ops))


def nodes_of(reader: LogReader, begin: dict[str, Any], end: dict[str, Any]) -> int:
    common: dict[str, Any] = {"position": "1-0", "total": 0}
    (partition,) = reader.partitions(
        Offset(batch=6, **common, **begin).to_json(), Offset(batch=7, **common, **end).to_json()
    )
    assert isinstance(partition, SplitPartition)
    head = partition.header
    keys = node_keys(reader.state_partitions)
    rows = to_rows(head, keys, [[Envelope()]] * head.nodes)
    found = [keys.node_of(int(key or 0)) for key in rows.column("nk").to_pylist()]
    assert found == list(range(head.nodes)), "a row for each"
    return head.nodes


WORDS = StreamSchema((ColumnSpec("word", "string"),))


def query(node: int) -> AddQuery:
    text = QueryText({"n": "count(*)"}, window_s=60.0)
    return AddQuery(1, 0, node, (1,), json.dumps(text.to_json()))


def test_added_nodes_take_part_at_their_version(
    redis_client: "redis.Redis", reader: LogReader
) -> None:
    """Neither the driver nor its checkpoint is asked; a replay of an older batch has fewer."""
    versions(redis_client, (AssignStream(1, 0),), (SetNodeCount(5),))
    assert nodes_of(reader, {"version": 1}, {"version": 1}) == 3, "the driver's, as before"
    assert nodes_of(reader, {"version": 1}, {"version": 2}) == 5
    assert nodes_of(reader, {"version": 2}, {"version": 2}) == 5
    assert nodes_of(reader, {"version": 1}, {"version": 1}) == 3


def test_a_removed_node_gives_out_its_state_first(
    redis_client: "redis.Redis", reader: LogReader
) -> None:
    """It takes part in the batch that leads to the version, and what it gave out is merged next."""
    versions(
        redis_client,
        (AssignStream(1, 0), SetNodeCount(4), query(3)),
        (MoveTasks(1, ((0, 0, 1),)), SetNodeCount(2)),
    )
    assert nodes_of(reader, {"version": 1}, {"version": 2, "export_version": 1}) == 4
    assert nodes_of(reader, {"version": 2, "export_version": 1}, {"version": 2}) == 4
    assert nodes_of(reader, {"version": 2}, {"version": 2}) == 2


def test_a_node_with_tasks_takes_part_whatever_the_number_says(
    redis_client: "redis.Redis", reader: LogReader
) -> None:
    """Records of its tasks would be lost without a word."""
    versions(redis_client, (AssignStream(1, 0), SetSchema(1, WORDS), SetNodeCount(2), query(6)))
    assert nodes_of(reader, {"version": 1}, {"version": 1}) == 7


def test_one_task_reads_a_light_batch(redis_client: "redis.Redis", reader: LogReader) -> None:
    """A task costs more than its records; larger batches and failed ones have one for each."""
    versions(redis_client, (AssignStream(1, 0), AssignStream(2, 1)))

    def planned(records: int) -> list[Any]:
        begin, end = (Offset(batch, "1-0", total, 1) for batch, total in ((6, 0), (7, records)))
        return list(reader.partitions(begin.to_json(), end.to_json()))

    (group,) = planned(1000)
    batches = list(reader.read(group))
    heads = [json.loads(batch.column("head")[0].as_py()) for batch in batches]
    assert [head["split"] for head in heads] == [0, 1]
    assert [batch.num_rows for batch in batches] == [3, 3], "a row for each node"
    assert [part.header.split for part in planned(1001)] == [0, 1]
    parts = [replace(part, header=replace(part.header, attempt=2)) for part in parts_of(group)]
    assert grouped(parts, 0) == parts
