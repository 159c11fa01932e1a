"""The check of a log's URL, against a real Redis and a Kafka that speaks its protocol."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
import redis
from confluent_kafka import Producer

from controlplane.wire.errors import BadLogUrl
from controlplane.wire.log import check as module
from controlplane.wire.log import open_log
from controlplane.wire.log.check import check_log
from controlplane.wire.log.values import Block
from tests.support.kafka import running_kafka


@pytest.fixture(scope="module")
def kafka() -> Iterator[str]:
    with running_kafka() as address:
        yield address


@pytest.fixture
def topic() -> str:
    return f"t-{uuid4().hex}"


def produce(kafka: str, topic: str, *values: bytes, partition: int = 0) -> None:
    """Append messages as a producer that knows nothing of Weir."""
    producer = Producer({"bootstrap.servers": kafka, "log_level": 2})
    for value in values:
        producer.produce(topic, value=value, partition=partition)
    assert producer.flush(20) == 0


def append(kafka: str, topic: str, redis_url: str) -> None:
    """Append a block of 1 record of stream 1, as a producer of Weir does."""
    log = open_log(f"kafka://{kafka}/{topic}", "sf", redis_url)
    log.append({1: Block(1, b"block", 1_000)})
    log.close()


def test_a_new_topic_and_a_log_of_weir_are_taken(kafka: str, topic: str, redis_server: str) -> None:
    url = f"kafka://me:secret@{kafka}/{topic}"
    check_log(url, "sf")
    # The check leaves no message.
    append(kafka, topic, redis_server)
    check_log(url, "sf")
    log = open_log(url, "sf", redis_server)
    position = log.append({1: Block(1, b"block", 1_000)})
    log.close()
    assert position == "2-0"


def test_json_of_others_is_refused_with_the_reason(kafka: str, topic: str) -> None:
    produce(kafka, topic, b'{"x": 1}')
    with pytest.raises(
        BadLogUrl, match=f"{topic} is not a log of Weir, message 0 .*no header 'weir'"
    ):
        check_log(f"kafka://{kafka}/{topic}", "sf")


def test_json_behind_appends_of_weir_is_refused(kafka: str, topic: str, redis_server: str) -> None:
    append(kafka, topic, redis_server)
    produce(kafka, topic, b'{"x": 1}')
    with pytest.raises(BadLogUrl, match=r"message 1 .*no header 'weir'.*name an empty topic"):
        check_log(f"kafka://{kafka}/{topic}", "sf")


def test_messages_that_weir_would_never_read_are_refused(kafka: str, topic: str) -> None:
    """Of a topic with several partitions Weir reads the first alone."""
    produce(kafka, topic, b"x", partition=2)
    with pytest.raises(BadLogUrl, match=r"messages in partition 2, .* first of 4 alone: name an"):
        check_log(f"kafka://{kafka}/{topic}", "sf")


@pytest.mark.parametrize(
    "url",
    ["kafka://me:secret@127.0.0.1:9/t", "redis://:secret@127.0.0.1:9/0",
     "unix:///nowhere.sock?password=secret"],
)  # fmt: skip
def test_what_does_not_respond_is_refused_without_its_password(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LIMIT_S", 1.0)
    with pytest.raises(BadLogUrl) as refused:
        check_log(url, "sf")
    assert "secret" not in str(refused.value)
    assert "check" in str(refused.value)


def test_another_server_than_kafka_is_refused(
    redis_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LIMIT_S", 1.0)
    address = redis_server.rpartition("@")[2].removeprefix("redis://").partition("/")[0]
    with pytest.raises(BadLogUrl, match="check servers"):
        check_log(f"kafka://{address}/t", "sf")


def test_a_redis_is_taken_and_a_replica_refused(
    redis_server: str, redis_client: redis.Redis
) -> None:
    check_log(redis_server, "sf")
    redis_client.slaveof("127.0.0.1", 9)
    try:
        with pytest.raises(BadLogUrl, match="read only replica"):
            check_log(redis_server, "sf")
    finally:
        redis_client.slaveof()
