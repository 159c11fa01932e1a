"""A real Redis and compiled tables for the pipeline's tests."""

from collections.abc import Iterator

import pytest
import redis

from controlplane.wire.routing import Op, RoutingDelta, RoutingTable
from tests.support.redis_server import running_redis
from workers.pipeline.tables import CompiledTable


@pytest.fixture(scope="session")
def pipeline_redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that only the pipeline's tests use."""
    with running_redis(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture
def client(pipeline_redis_url: str) -> Iterator["redis.Redis"]:
    """A connection to an empty database."""
    connection = redis.Redis.from_url(pipeline_redis_url)
    connection.flushdb()
    yield connection
    connection.close()


def compiled(*ops: Op) -> CompiledTable:
    """Return the table that `ops` make from nothing."""
    return CompiledTable(RoutingTable().apply(RoutingDelta(1, ops)))
