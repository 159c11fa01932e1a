"""Both logs, empty: a test that takes `place` runs once over each."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from uuid import uuid4

import pytest
import redis

from controlplane.wire.log import open_log
from controlplane.wire.log.values import Log
from tests.support.kafka import running_kafka


@dataclass
class Place:
    """Where a log is; every opening is what another process would have."""

    url: str
    site: str
    stack: ExitStack = field(default_factory=ExitStack)

    def open(self) -> Log:
        """Return the log, newly opened; it is closed with the test."""
        opened = open_log(self.url, "c", self.site)
        self.stack.callback(opened.close)
        return opened


@pytest.fixture(scope="session")
def kafka() -> Iterator[str]:
    """The address of a Kafka that only this test session uses."""
    with running_kafka() as address:
        yield address


@pytest.fixture
def kafka_place(kafka: str, redis_client: "redis.Redis", redis_server: str) -> Iterator[Place]:
    """A topic that only this test uses."""
    with ExitStack() as stack:
        yield Place(f"kafka://{kafka}/t-{uuid4().hex}", redis_server, stack)


@pytest.fixture(params=["redis", "kafka"])
def place(
    request: pytest.FixtureRequest, redis_client: "redis.Redis", redis_server: str
) -> Iterator[Place]:
    """An empty log of each kind."""
    if request.param == "kafka":
        yield request.getfixturevalue("kafka_place")
        return
    with ExitStack() as stack:
        yield Place("", redis_server, stack)


@pytest.fixture
def log(place: Place) -> Log:
    """The log, opened once."""
    return place.open()
