"""The check of a log's URL when it is given: a driver would fail on a wrong one at every start."""

import time
from typing import Any, Final

import redis

from controlplane.wire.errors import BadLogUrl, BadMessage
from controlplane.wire.log.address import (
    KAFKA_SCHEME,
    KafkaAddress,
    check_destination,
    check_url,
    kafka_address,
)
from controlplane.wire.network.destinations import SETTING
from controlplane.wire.redaction import without_password
from controlplane.wire.redis_clients import connect

# Of the whole check, in seconds.
LIMIT_S: Final = 5.0
_ANOTHER: Final = "name an empty topic; a producer of Weir appends the records of others"


def check_log(url: str, cluster: str) -> None:
    """Connect to the log of a cluster, for about `LIMIT_S` at most.

    A topic that does not exist is created by the first append. Raises `BadLogUrl` with the reason
    and what to do: a destination that the site does not allow, no connection, a login that is
    refused, messages that Weir did not append or does not read, a Redis that cannot be written.
    """
    check_url(url)
    try:
        check_destination(url)
        if url.startswith(f"{KAFKA_SCHEME}://"):
            _check_kafka(kafka_address(url, cluster), cluster)
            return
        with connect(url, read_s=LIMIT_S / 2, connect_s=LIMIT_S / 2) as client:
            # A replica, a full Redis and a user without the right refuse it.
            client.set(f"weir:{cluster}:log-check", "", px=1)
    except OSError as error:
        raise BadLogUrl(str(error)) from None
    except redis.RedisError as error:
        what = f"does not respond as a Redis: {error}; check address and password"
        raise BadLogUrl(without_password(what)) from None


def _check_kafka(address: KafkaAddress, cluster: str) -> None:
    # A site without Kafka should not load the client library.
    from confluent_kafka import Consumer, KafkaException  # noqa: PLC0415

    from controlplane.wire.log.kafka_clients import new_client  # noqa: PLC0415
    from controlplane.wire.log.kafka_reader import settings_of  # noqa: PLC0415

    errors = list[str]()
    noted = {"error_cb": lambda error: errors.append(error.str())}
    try:
        settings = settings_of(address, f"weir-{cluster}-check") | noted
        consumer = new_client(Consumer, address.servers, settings)
        try:
            _check_messages(consumer, address.topic, time.monotonic() + LIMIT_S)
        finally:
            consumer.close()
    except KafkaException as error:
        reason = errors[-1] if errors else error.args[0].str()
        what = f"Kafka at {address.servers}: {reason}; check servers, login and rights"
        # A name that a broker gives, which the site does not list, is not resolved.
        what += f", and that {SETTING} has all brokers" if "resolve" in reason else ""
        raise BadLogUrl(without_password(what)) from None


def _check_messages(consumer: Any, topic: str, deadline: float) -> None:
    """Raise `BadLogUrl` if the oldest or newest message is not Weir's, or where Weir reads none."""
    from confluent_kafka import KafkaException, TopicPartition  # noqa: PLC0415

    from controlplane.wire.log.kafka_message import decode  # noqa: PLC0415
    from controlplane.wire.log.kafka_reader import NO_TOPIC, PARTITION  # noqa: PLC0415

    def left() -> float:
        return max(0.1, deadline - time.monotonic())

    metadata = consumer.list_topics(topic, timeout=left()).topics[topic]
    if metadata.error is not None and metadata.error.code() not in NO_TOPIC:
        raise KafkaException(metadata.error)
    for number in sorted(metadata.partitions):
        place = TopicPartition(topic, number)
        first, end = consumer.get_watermark_offsets(place, timeout=left())
        if end > first and number != PARTITION:
            what = f"the topic {topic} has messages in partition {number}, and Weir reads the first"
            raise BadLogUrl(f"{what} of {len(metadata.partitions)} alone: {_ANOTHER}")
        for offset in {first, end - 1} if end > first else ():
            consumer.assign([TopicPartition(topic, number, offset)])
            message = consumer.poll(left())
            try:
                if message is not None and message.error() is None:
                    decode(message)
            except BadMessage as error:
                what = f"the topic {topic} is not a log of Weir, {error}: {_ANOTHER}"
                raise BadLogUrl(what) from None
