"""A Kafka cluster for tests: the one librdkafka carries. It lives in this process.

It speaks Kafka's protocol on a real port, so other processes reach it by its address. It keeps the
newest 5 MB of a partition, and its topics come into being when they are first asked for.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer


@contextmanager
def running_kafka() -> Iterator[str]:
    """Yield the address (host:port) of a cluster of one broker."""
    keeper = Producer(
        {"bootstrap.servers": "in-this-process", "test.mock.num.brokers": 1, "log_level": 2}
    )
    brokers = keeper.list_topics(timeout=60).brokers.values()
    (address,) = [f"{broker.host}:{broker.port}" for broker in brokers]
    yield address
    # The cluster ends with the client it belongs to.
    keeper.close()
