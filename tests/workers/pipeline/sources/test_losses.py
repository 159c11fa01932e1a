"""Brokers that are away, and messages that they have deleted: a line and a count for each."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import redis
from confluent_kafka import Consumer, TopicPartition

from controlplane.wire import keys
from controlplane.wire.dead_letters import Reason, newest, read_counts
from controlplane.wire.producer import Producer
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.cluster_actions import AssignStream, SetSchema, SetSource
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.schema import ColumnSpec, StreamSchema
from controlplane.wire.topics.source import TopicSource
from tests.support.kafka import running_kafka
from tests.support.pipeline import Pipeline
from tests.support.topics import TopicProducer, create_topic, running_broker, wait_until
from tests.workers.pipeline.sources.planners import forget_planners
from workers.pipeline.sources.lag import LINES
from workers.pipeline.sources.plan import PartitionState

TEXT = StreamSchema(
    (ColumnSpec("at", "timestamp(ms)", nullable=False), ColumnSpec("text", "string")), "at"
)
COUNT = json.dumps(QueryText({"n": "count(*)"}).to_json())
STREAM, OWN = 7, 8


@pytest.fixture
def kafka() -> Iterator[str]:
    with running_kafka() as address:
        yield address


def source_of(address: str, **more: Any) -> TopicSource:
    return TopicSource(address, "texts", format="string", metadata={"at": "timestamp"}, **more)


def begin(pipeline: Pipeline, source: TopicSource) -> None:
    pipeline.publish(
        AssignStream(STREAM, 0), AssignStream(OWN, 0), SetSchema(STREAM, TEXT),
        SetSchema(OWN, TEXT), SetSource(STREAM, source),
        *(AddQuery(n, 0, 0, (n,), COUNT) for n in (STREAM, OWN)),
    )  # fmt: skip


def status(pipeline: Pipeline) -> dict[str, Any]:
    row: Any = pipeline.client.hget(keys.sources_key("c"), str(STREAM))
    return dict(json.loads(row)) if row else {}


def test_messages_that_kafka_deletes_stop_their_partition_until_the_loss_is_accepted(
    kafka: str, redis_client: "redis.Redis", redis_server: str
) -> None:
    """The other partitions are read on; then the deleted messages are counted, each once."""
    pipeline, producer = Pipeline(redis_client, redis_server), TopicProducer(kafka, "texts")
    for partition in (0, 1):
        producer.send(partition, b"first")
    producer.flush()
    begin(pipeline, source_of(kafka))
    read: list[int] = []

    def has_read(count: int) -> bool:
        read.append(pipeline.batch().get("in", 0))
        return sum(read) == count

    wait_until(lambda: has_read(2), "both messages are read", 120)
    for _ in range(20):
        producer.send(0, b"x" * 900_000)
    producer.send(1, b"second")
    producer.flush()

    def is_lost() -> bool:
        pipeline.batch()
        first, second, *_ = status(pipeline)["partitions"]
        return first["state"] == "lost" and (first["end"], second["end"]) == (21, 2)

    wait_until(is_lost, "partition 0 is stopped", 120)
    (lost, other) = status(pipeline)["partitions"][:2]
    assert lost["line"] == LINES[PartitionState.LOST]
    wait_until(lambda: not pipeline.batch(), "nothing is left", 120)
    assert pipeline.offset["sources"][str(STREAM)]["partitions"]["1"][0] == 2
    assert other["line"] == ""
    assert STREAM not in read_counts(redis_client, "c")
    pipeline.publish(SetSource(STREAM, source_of(kafka, on_loss="skip")))
    end = lost["end"]

    def is_done() -> bool:
        pipeline.batch(repeat=2)
        return bool(pipeline.offset["sources"][str(STREAM)]["partitions"]["0"][0] == end)

    wait_until(is_done, "the rest is read", 120)
    counts = read_counts(redis_client, "c")[STREAM]
    assert counts == {Reason.LOST: lost["first"] - lost["offset"]}
    (letter,) = newest(redis_client, "c")
    assert letter.position == f"0-{lost['offset']}"


def test_a_cluster_continues_while_the_brokers_of_a_topic_are_away(
    redis_client: "redis.Redis", redis_server: str
) -> None:
    """The status has the error of the client; records of the log are read meanwhile."""
    pipeline = Pipeline(redis_client, redis_server)
    begin(pipeline, source_of("127.0.0.1:9"))
    with Producer(redis_server, "c", schemas={OWN: TEXT}) as producer:
        producer.append({OWN: [{"at": 5, "text": "own"}]})
    assert pipeline.batch()["in"] == 1
    wait_until(lambda: not pipeline.batch() and status(pipeline)["error"], "an error", 120)
    assert status(pipeline)["partitions"] == []
    assert pipeline.offset["sources"] == {}


def test_the_consumer_group_has_the_offsets_and_a_new_checkpoint_starts_there(
    redis_client: "redis.Redis", redis_server: str
) -> None:
    """A team's own tools see the lag; tombstones are counted."""
    with running_broker() as address:
        create_topic(address, "texts", 2)
        pipeline, producer = Pipeline(redis_client, redis_server), TopicProducer(address, "texts")
        source = source_of(address, group="team", start="latest", offsets={"1": 1})
        for partition in (0, 1, 1):
            producer.send(partition, b"before", 5)
        producer.flush()
        begin(pipeline, source)
        wait_until(lambda: pipeline.batch().get("in") == 1, "one message is read", 120)
        producer.send(0, None, 6)
        producer.flush()
        client = Consumer({"bootstrap.servers": address, "group.id": "team", "log_level": 0})

        def committed() -> list[int]:
            pipeline.batch()
            pipeline.commit()
            places = [TopicPartition("texts", number) for number in (0, 1)]
            return [place.offset for place in client.committed(places, timeout=20)]

        wait_until(lambda: committed() == [2, 2], "both offsets are committed", 120)
        client.close()
        assert read_counts(redis_client, "c")[STREAM] == {Reason.TOMBSTONE: 1}
        forget_planners()
        again = Pipeline(redis_client, redis_server, cluster="d")
        begin(again, replace(source, start="earliest", offsets={}))
        wait_until(lambda: again.batch() and again.offset["sources"], "it is placed", 120)
        places = again.offset["sources"][str(STREAM)]["partitions"]
        assert [place[0] for place in places.values()] == [2, 2]
