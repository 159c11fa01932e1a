"""Brokers that are away, and messages that they have deleted: a line and a count for each."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import redis
from confluent_kafka import Consumer, TopicPartition

from controlplane.wire import attempts, keys
from controlplane.wire.dead_letters import Reason, newest, read_counts
from controlplane.wire.errors import SourceUnavailable
from controlplane.wire.producer import Producer
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.cluster_actions import AssignStream, SetSchema, SetSource
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.schema import ColumnSpec, StreamSchema
from controlplane.wire.topics import places
from controlplane.wire.topics.source import TopicSource
from tests.support.kafka import running_kafka
from tests.support.pipeline import Pipeline
from tests.support.topics import (
    TopicProducer,
    create_topic,
    delete_topic,
    running_broker,
    wait_until,
)
from tests.workers.pipeline.sources.planners import forget_planners
from workers.pipeline.sources.lag import LINES
from workers.pipeline.sources.plan import PartitionState
from workers.pipeline.sources.topic import latest, read
from workers.pipeline.split_nodes import source as source_module

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
    read_until(pipeline, 2)
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


def test_a_topic_that_is_deleted_is_a_state_and_the_others_of_its_pattern_are_read_on(
    redis_client: "redis.Redis", redis_server: str
) -> None:
    """Its position is kept: one of its name that is created again is not taken for a new one."""
    with running_broker() as address:
        pipeline, producers = Pipeline(redis_client, redis_server), {}
        for topic in ("shop-a", "shop-b"):
            create_topic(address, topic, 1)
            producers[topic] = TopicProducer(address, topic)
        begin(pipeline, pattern_of(address))
        send(producers)
        read_until(pipeline, 2)
        # Tansu answers a fetch of a topic that was deleted as librdkafka does not bear it.
        read.reader_of.cache_clear()
        delete_topic(address, "shop-a")
        wait_until(lambda: states(pipeline) == ["missing", "read"], "it is missing", 120)
        assert [row["topic"] for row in status(pipeline)["partitions"]] == ["shop-a", "shop-b"]
        assert (status(pipeline)["error"], bool(status(pipeline)["partitions"][0]["line"])) == (
            "", True,
        )  # fmt: skip
        producers["shop-b"].send(0, b"second")
        producers["shop-b"].flush()
        read_until(pipeline, 1)
        create_topic(address, "shop-a", 1)
        wait_until(lambda: states(pipeline) == ["recreated", "read"], "it is recreated", 120)
        assert STREAM not in read_counts(redis_client, "c")


def test_a_changed_pattern_reads_no_message_of_its_topics_again(
    redis_client: "redis.Redis", redis_server: str
) -> None:
    """Though the consumer group has no offset of the newest batch; a new topic begins."""
    with running_broker() as address:
        pipeline, producers = Pipeline(redis_client, redis_server), {}
        for topic in ("shop-c", "shop-b", "shop-a"):
            create_topic(address, topic, 1)
            producers[topic] = TopicProducer(address, topic)
        send(producers)
        begin(pipeline, replace(pattern_of(address), topic_pattern="shop-(b|c)"))
        read_until(pipeline, 2)
        pipeline.publish(SetSource(STREAM, pattern_of(address)))
        read_until(pipeline, 1)
        send(producers)
        read_until(pipeline, 3)
        assert [row["offset"] for row in status(pipeline)["partitions"]] == [2, 2, 2]


def test_a_stream_waits_while_more_topics_match_than_it_reads(
    redis_client: "redis.Redis", redis_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "MOST_TOPICS", 1)
    monkeypatch.setattr(latest, "_LISTED_S", 0.0)
    with running_broker() as address:
        create_topic(address, "shop-a", 1)
        pipeline = Pipeline(redis_client, redis_server)
        producers = {"shop-a": TopicProducer(address, "shop-a")}
        begin(pipeline, pattern_of(address))
        send(producers)
        read_until(pipeline, 1)
        create_topic(address, "shop-b", 1)
        producers["shop-b"] = TopicProducer(address, "shop-b")
        wait_until(lambda: states(pipeline) and status(pipeline)["error"], "an error", 120)
        send(producers)
        assert not pipeline.batch()
        assert status(pipeline)["partitions"][0]["unread"] == 0
        monkeypatch.setattr(places, "MOST_TOPICS", 2)
        read_until(pipeline, 2)
        assert status(pipeline)["error"] == ""


# By night: librdkafka 2.16 may end the process with the answer of this broker about the topic.
@pytest.mark.nightly("spark")
def test_the_partitions_of_a_topic_that_is_deleted_are_missing(
    redis_client: "redis.Redis", redis_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a batch had begun to read of it is waited for, then lost and counted."""
    monkeypatch.setattr(read, "_SILENT_S", 1.0)
    with running_broker() as address:
        create_topic(address, "texts", 2)
        pipeline, producer = Pipeline(redis_client, redis_server), TopicProducer(address, "texts")
        begin(pipeline, source_of(address))
        wait_until(lambda: not pipeline.batch() and states(pipeline), "it is placed", 120)
        for partition in (0, 0, 1):
            producer.send(partition, b"first")
        producer.flush()
        start, end = next_offsets(pipeline, 3)
        delete_topic(address, "texts")
        for driver in range(attempts.FAILURES):
            monkeypatch.setattr(source_module, "process_id", lambda driver=driver: f"d-{driver}")
            with pytest.raises(SourceUnavailable):
                pipeline._process(start, end)
        monkeypatch.setattr(source_module, "process_id", lambda: "the last one")
        pipeline._process(start, end)
        pipeline.offset = end
        assert read_counts(redis_client, "c") == {STREAM: {Reason.LOST: 3}}
        wait_until(lambda: states(pipeline) == ["missing", "missing"], "both are missing", 120)
        assert status(pipeline)["error"]
        assert [row["offset"] for row in status(pipeline)["partitions"]] == [2, 1]


def states(pipeline: Pipeline) -> list[str]:
    """Return the states of the partitions after one batch more."""
    pipeline.batch()
    return [row["state"] for row in status(pipeline).get("partitions", ())]


def pattern_of(address: str) -> TopicSource:
    metadata = {"at": "timestamp"}
    return TopicSource(address, topic_pattern="shop-.*", format="string", metadata=metadata)


def send(producers: dict[str, TopicProducer]) -> None:
    """Send a message to each topic."""
    for producer in producers.values():
        producer.send(0, b"first")
        producer.flush()


def read_until(pipeline: Pipeline, count: int) -> None:
    read: list[int] = []

    def is_done() -> bool:
        read.append(pipeline.batch().get("in", 0))
        return sum(read) == count

    wait_until(is_done, f"{count} messages are read", 120)


def next_offsets(pipeline: Pipeline, count: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return begin and end of a batch, which is not read, of this many messages of the topic."""
    ends: list[dict[str, Any]] = []

    def is_planned() -> bool:
        ends.append(pipeline.reader.latestOffset(pipeline.offset, None))
        places = ends[-1]["sources"][str(STREAM)]["partitions"].values()
        return bool(sum(place[0] for place in places) == count)

    wait_until(is_planned, "all messages are in the next batch", 120)
    return pipeline.offset, ends[-1]


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
