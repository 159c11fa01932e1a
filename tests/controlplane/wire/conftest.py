"""A real Redis for the wire's tests."""

from collections.abc import Iterator

import pytest
import redis

from tests.support.redis_server import running_redis


@pytest.fixture(scope="session")
def wire_redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that only the wire's tests use."""
    with running_redis(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture
def client(wire_redis_url: str) -> Iterator["redis.Redis"]:
    """A connection to an empty database."""
    connection = redis.Redis.from_url(wire_redis_url)
    connection.flushdb()
    yield connection
    connection.close()
